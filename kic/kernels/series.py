"""Time derivatives of vectors fixed in frames along a motion: influence coefficients of one column.

This special case of `transferred_influence` holds its vectors in registers, at half the cost of the general
rule. Its tables are those of one coordinate, the time: a table (4, rows) holds values, velocities,
accelerations and jerks.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import has_frame, rotates
from kic.kernels.jit import helper, inlined
from kic.kernels.transferred_influence import arm, axis_carrier
from kic.kernels.vectors import add, axpy, cross, put, scale, sub, take


@inlined
def vector_series(V, frame, kind, e, order):
    """Return the first to third time derivatives of a vector e fixed in a frame.

    `e` is a direction, or the arm of a point from the frame's origin. Orders above `order` are zero.
    """
    n = frame + 1
    w = take(V, n, lay.ANGULAR_VELOCITY)
    first = w if kind == lay.OMEGA else cross(w, e)
    second = third = scale(0, w)
    if order > 1:
        a = take(V, n, lay.ANGULAR_ACCELERATION)
        second = a if kind == lay.OMEGA else add(cross(a, e), cross(w, first))
        if order > 2:
            third = take(V, n, lay.ANGULAR_JERK)
            if kind != lay.OMEGA:
                third = add(add(cross(third, e), scale(2, cross(a, first))), cross(w, second))
                if kind == lay.POINT:
                    third = add(third, take(V, n, lay.JERK))
        if kind == lay.POINT:
            second = add(second, take(V, n, lay.ACCELERATION))
    if kind == lay.POINT:
        first = add(first, take(V, n, lay.VELOCITY))
    return first, second, third


@inlined
def frame_series(cols, F, x, V, order):
    """Compute the motion of every frame up to an order from x (3, M), the series of the tree's coordinates.

    If a ball joint is reversed, the third order needs the lower orders of an earlier call. The lower orders
    are the same if the axes of a ball joint are fixed in the parent or in the child, because ω × ω is zero.
    """
    mobile = cols.shape[0]
    for n in range(mobile):
        if not has_frame(cols, n):
            continue
        up, s, slides, x1 = cols[n, lay.PARENT], take(F, n, lay.AXIS), not rotates(cols, n), x[n]
        one, two, three = vector_series(V, up, lay.POINT, arm(cols, F, n), order)
        w = take(V, up + 1, lay.ANGULAR_VELOCITY)
        if slides:
            one = axpy(x1, s, one)
        else:
            w = axpy(x1, s, w)
        put(V, n + 1, lay.ANGULAR_VELOCITY, w)
        put(V, n + 1, lay.VELOCITY, one)
        if order == 1:
            continue
        carrier = axis_carrier(cols, n) if order > 2 else cols[cols[n, lay.GROUP], lay.PARENT]
        s1, s2, _ = vector_series(V, carrier, lay.DIRECTION, s, order - 1)
        x2, a = x[mobile + n], take(V, up + 1, lay.ANGULAR_ACCELERATION)
        if slides:
            two = axpy(2 * x1, s1, axpy(x2, s, two))
        else:
            a = axpy(x1, s1, axpy(x2, s, a))
        put(V, n + 1, lay.ANGULAR_ACCELERATION, a)
        put(V, n + 1, lay.ACCELERATION, two)
        if order == 2:
            continue
        x3, a = x[2 * mobile + n], take(V, up + 1, lay.ANGULAR_JERK)
        if slides:
            three = axpy(3 * x1, s2, axpy(3 * x2, s1, axpy(x3, s, three)))
        else:
            a = axpy(x1, s2, axpy(2 * x2, s1, axpy(x3, s, a)))
        put(V, n + 1, lay.ANGULAR_JERK, a)
        put(V, n + 1, lay.JERK, three)


@helper
def first_pass(cols, order):
    """Return the first order for which `frame_series` is called to obtain `order`; 2 for reversed balls."""
    for n in range(cols.shape[0]):
        if cols[n, lay.KIND] == lay.BALL and cols[n, lay.LO] > cols[n, lay.GROUP]:
            return min(order, 2)
    return order


@inlined
def world_series(F, V, frame, kind, e, order):
    """Return `vector_series` of a point at the world position `e` (POINT), or of a world vector."""
    if kind == lay.POINT and frame >= 0:
        e = sub(e, take(F, frame, lay.ORIGIN))
    return vector_series(V, frame, kind, e, order)
