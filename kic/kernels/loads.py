"""Generalized loads of the tree by virtual work (2-125, 2-147), and its damping matrix."""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import rotates, world_point, world_vector
from kic.kernels.functions import root
from kic.kernels.inertia import FIRST
from kic.kernels.influence import affects, first
from kic.kernels.jit import helper
from kic.kernels.ranges import clear_range
from kic.kernels.vectors import cross, dot, scale, sub, take


@helper
def virtual_work(cols, F, frame, kind, p, force, t):
    """Add the generalized loads gᵀf (2-125) of a force at p (kind POINT) or a moment (kind OMEGA)."""
    n = frame
    while n >= 0:
        if affects(cols, n, kind):
            t[n] += dot(first(cols, F, n, kind, p), force)
        n = cols[n, lay.PARENT]


@helper
def gravity_loads(cols, F, C, gravity, t):
    """Add the weight carried by each column, from its composite mass and first moment (2-147)."""
    for n in range(cols.shape[0]):
        s = take(F, n, lay.AXIS)
        if rotates(cols, n):
            t[n] += dot(s, cross(take(C, n, FIRST), gravity))
        else:
            t[n] += C[n, 0] * dot(s, gravity)


@helper
def applied_loads(cols, F, forces, places, applied, b, t):
    """Add the loads of forces and moments `applied` (B or 1, n, 3), in world or in body axes (2-125)."""
    member = b if applied.shape[0] > 1 else 0
    for i in range(forces.shape[0]):
        frame = forces[i, lay.CARRIER]
        f = (applied[member, i, 0], applied[member, i, 1], applied[member, i, 2])
        if forces[i, lay.FORCE_AXES] == lay.BODY_AXES:
            f = world_vector(F, frame, f)
        kind = lay.OMEGA if forces[i, lay.FORCE_KIND] == lay.MOMENT else lay.POINT
        virtual_work(cols, F, frame, kind, world_point(F, frame, take(places, i, 0)), f, t)


@helper
def spring_pull(w, numbers, i):
    """Return the tension of spring i divided by the length of the vector w between its ends."""
    if numbers[i, lay.FREE_LENGTH] == 0:
        return numbers[i, lay.STIFFNESS]
    return numbers[i, lay.STIFFNESS] * (1 - numbers[i, lay.FREE_LENGTH] / root(dot(w, w)))


@helper
def spring_loads(cols, F, springs, numbers, size, t, stretch):
    """Add loads of springs and damping of dampers between two points.

    numbers (n, 9): the two local points, stiffness, free length, damping. `stretch` (M,) is scratch.
    """
    for i in range(springs.shape[0]):
        a, b = springs[i, lay.END_A], springs[i, lay.END_B]
        pa = world_point(F, a, take(numbers, i, lay.POINT_A))
        pb = world_point(F, b, take(numbers, i, lay.POINT_B))
        w = sub(pb, pa)
        damping = numbers[i, lay.DAMPING]
        f = scale(spring_pull(w, numbers, i), w)
        virtual_work(cols, F, a, lay.POINT, pa, f, t)
        virtual_work(cols, F, b, lay.POINT, pb, scale(-1, f), t)
        if damping != 0:
            clear_range(stretch, 0, size)
            along = scale(1 / root(dot(w, w)), w)
            virtual_work(cols, F, b, lay.POINT, pb, along, stretch)
            virtual_work(cols, F, a, lay.POINT, pa, scale(-1, along), stretch)
            for m in range(size):
                for n in range(size):
                    t[size + m * size + n] += damping * stretch[m] * stretch[n]


@helper
def joint_loads(cols, laws, states, b, size, t):
    """Add loads of springs and damping of dampers in joints; laws (M, 3): stiffness, free value, damping."""
    for n in range(size):
        if cols[n, lay.KIND] <= lay.PRISMATIC:
            t[n] -= laws[n, lay.JOINT_STIFFNESS] * (states[b, cols[n, lay.STATE]] - laws[n, lay.FREE_VALUE])
        t[size + n * size + n] += laws[n, lay.JOINT_DAMPING]


@helper
def load_tables(cols, F, C, forces, places, applied, springs, numbers, rest, states, b, t, stretch):
    """Compute T^L (M,) and the damping matrix (M, M) side by side at one configuration with given frames.

    `rest` holds springs, dampers and armature of the columns and, in its last row, gravity.
    """
    size = cols.shape[0]
    clear_range(t, 0, size + size * size)
    gravity_loads(cols, F, C, take(rest, size, lay.GRAVITY), t)
    applied_loads(cols, F, forces, places, applied, b, t)
    spring_loads(cols, F, springs, numbers, size, t, stretch)
    joint_loads(cols, rest, states, b, size, t)
