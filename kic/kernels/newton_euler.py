"""I* and P* in chosen coordinates: Newton–Euler equations on coefficients of bodies, summed up the tree.

These are Freeman's sums (2-157, 2-158, 2-193, 2-194) with forces that are projected on joint axes last. The
acceleration coefficients of a body give coefficients of force and moment, which are summed from each frame to
its parent and projected on each joint. With N of the body's frame (see `transferred_influence`) and its
second moment E = ∫ρρᵀ dm about the centre of mass, the moment is ∫ρ × N ρ dm. It includes gyroscopic terms in
the metric-compatible form, with Ṁ - 2C skew.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import rotates
from kic.kernels.functions import at
from kic.kernels.inertia import rotated_inertia
from kic.kernels.jit import helper, part
from kic.kernels.ranges import add_range, clear_range, copy_range, put_at, scale_range, vector_at
from kic.kernels.transferred_influence import arm, turned
from kic.kernels.vectors import add, cross, dot, scale, symmetric, take, turn

# A block: moment about the frame's origin (3, m) and force (3, m), then both for p pairs. In Z it overwrites
# the motion of a frame, which is not used after the forces of its bodies are computed.


@helper
def loads_block(size, count):
    """Return the number of entries of a block of moments and forces."""
    return 6 * (size + count)


@helper
def add_lever(Y, moment, force, c, count):
    """Add the moments of forces (3, count) at c to moments (3, count)."""
    n = at(count)
    m0, f0 = at(moment), at(force)
    m1, m2, f1, f2 = m0 + n, m0 + n + n, f0 + n, f0 + n + n
    for p in range(n):
        Y[m0 + p] += c[1] * Y[f2 + p] - c[2] * Y[f1 + p]
    for p in range(n):
        Y[m1 + p] += c[2] * Y[f0 + p] - c[0] * Y[f2 + p]
    for p in range(n):
        Y[m2 + p] += c[0] * Y[f1 + p] - c[1] * Y[f0 + p]


@helper
def add_euler(Z, n, Y, moment, e, count):
    """Add the moments ∫ρ × N ρ dm of all pairs, for a second moment e (xx yy zz xy xz yz)."""
    k = at(count)
    rows = ((e[0], e[3], e[4]), (e[3], e[1], e[5]), (e[4], e[5], e[2]))
    for c in range(3):
        # component c: (N E)_ba - (N E)_ab with c, a, b in turn
        a, b = (c + 1) % 3, (c + 2) % 3
        i, j, m = at(n + 3 * a * count), at(n + 3 * b * count), at(moment + c * count)
        ea, eb = rows[a], rows[b]
        for p in range(k):
            Y[m + p] += (
                Z[j + p] * ea[0] + Z[j + k + p] * ea[1] + Z[j + k + k + p] * ea[2]
                - Z[i + p] * eb[0] - Z[i + k + p] * eb[1] - Z[i + k + k + p] * eb[2]
            )  # fmt: skip


@helper
def body_forces(F, Z, width, own, bodies, inertias, i, size, count):
    """Compute the coefficients of moment and force of body i in the block `own`."""
    n = bodies[i, lay.CARRIER]
    o = width * (n + 1)
    m, c = inertias[i, lay.MASS], turn(F, n, lay.ROTATION, take(inertias, i, lay.CENTRE))
    j = rotated_inertia(F, n, inertias, i)
    half_trace = (j[0] + j[1] + j[2]) / 2
    e = (half_trace - j[0], half_trace - j[1], half_trace - j[2], -j[3], -j[4], -j[5])
    for a in range(size):
        w = vector_at(Z, o + a, size)
        f = scale(m, add(vector_at(Z, o + 3 * size + a, size), cross(w, c)))
        put_at(own, 3 * size + a, size, f)
        put_at(own, a, size, add(symmetric(j, w), cross(c, f)))
    moment, force, second = 6 * size, 6 * size + 3 * count, o + 6 * size
    clear_range(own, moment, 3 * count)
    scale_range(own, force, m, Z, second + 12 * count, 3 * count)
    turned(Z, second + 3 * count, count, c, m, own, force)
    add_euler(Z, second + 3 * count, own, moment, e, count)
    add_lever(own, moment, force, c, count)


@helper
def frame_forces(cols, F, Z, width, own, bodies, inertias, size, count):
    """Replace the motion of every frame by the forces of its bodies, which must be sorted by frame.

    `own` is scratch for two blocks.
    """
    one, i = loads_block(size, count), 0
    for n in range(cols.shape[0]):
        o = width * (n + 1)
        clear_range(own, one, one)
        while i < bodies.shape[0] and bodies[i, lay.CARRIER] == n:
            body_forces(F, Z, width, own, bodies, inertias, i, size, count)
            add_range(own, one, 1, own, 0, one)
            i += 1
        copy_range(Z, o, own, one, 6 * size + 3 * count)
        copy_range(Z, o + 6 * size + 12 * count, own, one + 6 * size + 3 * count, 3 * count)


@helper
def joint_shares(cols, F, x, Z, o, B, n, rotor, size, count, loads, t):
    """Add the projection of the frame's forces on joint n, times A of the joint, to I (m, m) and P (m, p).

    `B` (M p,) is the part of the second order of the tree's coordinates that is not included in that of the
    frames; `loads` (p,) is scratch, `rotor` the armature of the joint.
    """
    mobile, s, square = cols.shape[0], take(F, n, lay.AXIS), size * size
    first = o if rotates(cols, n) else o + 3 * size
    second = o + 6 * size if rotates(cols, n) else o + 6 * size + 12 * count
    k, i = at(count), at(second)
    for p in range(k):
        loads[p] = s[0] * Z[i + p] + s[1] * Z[i + k + p] + s[2] * Z[i + k + k + p]
    b = at(n * count)
    for a in range(size):
        share = x[mobile + n * size + a]
        load = dot(s, vector_at(Z, first + a, size)) + rotor * share
        j = at(square + a * count)
        if share == 0:
            for p in range(k):
                t[j + p] += load * B[b + p]
        else:
            for c in range(size):
                t[a * size + c] += share * (
                    dot(s, vector_at(Z, first + c, size)) + rotor * x[mobile + n * size + c]
                )
            for p in range(k):
                t[j + p] += share * loads[p] + load * B[b + p]


@helper
def to_parent(cols, F, Z, width, n, size, count):
    """Add the forces of frame n to those of its parent, with moments about the parent's origin."""
    if cols[n, lay.PARENT] < 0:
        return
    o, up, r = width * (n + 1), width * (cols[n, lay.PARENT] + 1), arm(cols, F, n)
    far = 6 * size + 12 * count
    add_range(Z, up, 1, Z, o, 6 * size + 3 * count)
    add_range(Z, up + far, 1, Z, o + far, 3 * count)
    if r[0] != 0 or r[1] != 0 or r[2] != 0:
        add_lever(Z, up, o + 3 * size, r, size)
        add_lever(Z, up + 6 * size, o + far, r, count)


@part
def inertia_tables(cols, F, bodies, inertias, rest, x, Z, width, own, B, size, count, t):
    """Compute I* (m, m) and P* (m, p) side by side in t; overwrite the motion of the frames.

    This is (3-34) and (3-35), or (4-24) to (4-27) for closed loops, with forces in place of tensors.
    """
    clear_range(t, 0, size * (size + count))
    frame_forces(cols, F, Z, width, own, bodies, inertias, size, count)
    for n in range(cols.shape[0] - 1, -1, -1):
        joint_shares(cols, F, x, Z, width * (n + 1), B, n, rest[n, lay.ARMATURE], size, count, own, t)
        to_parent(cols, F, Z, width, n, size, count)
