"""Entry: contributions of each body to I* and P*, in the tree's coordinates or in others.

They are Freeman's sums (2-157, 2-158, 2-193, 2-194): linear momentum m g·h, angular momentum g·II h and the
gyroscopic term (II g_a)·(g_k × g_b), which gives the correct torques but is not symmetric.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import frames, motion, world_point
from kic.kernels.inertia import rotated_inertia
from kic.kernels.jit import entry, helper
from kic.kernels.offsets import block, sections, table_width
from kic.kernels.outputs import add_vector_rows
from kic.kernels.ranges import clear_range
from kic.kernels.scalar_rows import column1, column2
from kic.kernels.transferred_influence import first_motion, second_motion
from kic.kernels.vectors import cross, dot, symmetric, take


@helper
def add_link(L, A, mass, j, size, t, linear_i, angular_i, linear_p, angular_p, momentum):
    """Add the contributions of a body to I (2-157, 2-193), P (2-158, 2-194) and the momentum m g_k (3, M).

    L and A are the tables of its centre of mass and of its angular velocity.
    """
    for k in range(size):
        gk, wk = column1(L, size, k), column1(A, size, k)
        for axis in range(3):
            t[momentum + axis * size + k] += mass * gk[axis]
        jk = symmetric(j, wk)
        for a in range(size):
            ga, wa = column1(L, size, a), column1(A, size, a)
            ja = symmetric(j, wa)
            t[linear_i + k * size + a] += mass * dot(gk, ga)
            t[angular_i + k * size + a] += dot(wk, ja)
            for b in range(size):
                wb = column1(A, size, b)
                place = (k * size + a) * size + b
                t[linear_p + place] += mass * dot(gk, column2(L, size, size * size, a * size + b))
                t[angular_p + place] += dot(jk, column2(A, size, size * size, a * size + b)) + dot(
                    ja, cross(wk, wb)
                )


@helper
def body_tables(cols, F, into, frame, centre, size, L, A):
    """Compute second-order tables of a body's centre of mass and angular velocity."""
    p = world_point(F, frame, centre)
    for part in range(2):
        target = A if part else L
        clear_range(target, 0, table_width(3, size, 2))
        add_vector_rows(
            cols, F, into, frame, lay.OMEGA if part else lay.POINT, p, 1, 2, True, size, target, 3, 0
        )


@entry
def links(plan, numbers, states, X, whole, scratch, T):
    """Compute the contributions of bodies to I* and P*, in the tree's coordinates, or in those of X (B, …).

    `whole` (M,) is zero: no frame is omitted. T (B, n, 2 M² + 2 M³ + 3 M) receives, for each body, the linear
    and the angular part of I, then those of P, and the Jacobian of its linear momentum.
    """
    mobile = plan[0, lay.COLUMNS]
    (cols, geometry), _, (bodies, inertias), _, _, _ = sections(plan, numbers)
    size = plan[1, lay.SIZE]
    framed = mobile * lay.FRAME_WIDTH
    F = scratch[:framed].reshape(mobile, lay.FRAME_WIDTH)
    width = table_width(3, size, 2)
    L, A = scratch[framed : framed + width], scratch[framed + width : framed + 2 * width]
    square, cube = size * size, size * size * size
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        for i in range(T.shape[1]):
            clear_range(T[b, i], 0, T.shape[2])
        into = None
        if X is not None:
            Z = scratch[framed + 2 * width :]
            one = block(size, size * size, 2)
            clear_range(Z, 0, one)
            first_motion(cols, F, X[b], Z, one, size)
            second_motion(cols, F, X[b], Z, one, size, lay.EVERY, whole)
            into = Z, X[b], one, lay.EVERY, None
        for i in range(bodies.shape[0]):
            frame = bodies[i, lay.CARRIER]
            if frame >= 0:
                body_tables(cols, F, into, frame, take(inertias, i, lay.CENTRE), size, L, A)
                j = rotated_inertia(F, frame, inertias, i)
                add_link(
                    L, A, inertias[i, lay.MASS], j, size, T[b, i],
                    0, square, 2 * square, 2 * square + cube, 2 * square + 2 * cube,
                )  # fmt: skip
