"""Coefficients with respect to chosen coordinates q, frame by frame, never forming those of the tree.

Let the tree's coordinates have coefficients A, B, C (a table x of M rows) with respect to some q. Every frame
then has a turning ω and an origin with coefficients of their own, two tables of three rows, each made from
those of the frame before it; and whatever a frame carries follows from its two tables by the product rule:

    ∂_a e = ω_a × e        ∂_a ∂_b e = Ω_ab × e + ω_b × (ω_a × e),        Ω_ab = ∂_a ω_b

Cost grows with the number of frames, not with the length of paths. In true coordinates places have no order
of differentiation and turnings differ by Ω_ab - Ω_ba = ω_a × ω_b, so that b <= a is enough: `pairs` says which
are there and which are wanted.
"""

from kic.kernels.compiled import helper
from kic.kernels.frames import turns
from kic.kernels.functions import at
from kic.kernels.layout import (
    AXIS,
    BALL,
    EVERY,
    GROUP,
    KIND,
    LO,
    LOWER,
    MIRRORED,
    OMEGA,
    ORIGIN,
    PARENT,
    POINT,
    d_at,
    g_at,
    h_at,
)
from kic.kernels.rows import accumulate
from kic.kernels.vectors import add, axpy, cross, scale, sub, take

# Z (2 (M + 1), width): tables of three rows, the turning of each frame and then its origin; ground first, which rests


@helper
def turning(frame):
    """Row of Z that holds the turning of a frame (-1: ground); that of its origin comes next."""
    return 2 * (frame + 1)


@helper
def of_row(Z, i, place, stride):
    """A vector of a table of three rows."""
    k, p, s = at(i), at(place), at(stride)
    return (Z[k, p], Z[k, p + s], Z[k, p + s + s])


@helper
def first_of(Z, i, size, a):
    """First-order column a of table i."""
    return of_row(Z, i, g_at(3, size, 0, a), size)


@helper
def second_of(Z, i, size, a, b):
    """Second-order column a, b of table i."""
    return of_row(Z, i, h_at(3, size, 0, a, b), size * size)


@helper
def third_of(Z, i, size, c, a, b):
    """Third-order column c, a, b of table i."""
    return of_row(Z, i, d_at(3, size, 0, c, a, b), size * size * size)


@helper
def carried_first(F, Z, frame, kind, e, sign, size, t, rows, row):
    """Add `sign` times the first order of a carried vector to three rows."""
    i = turning(frame)
    for a in range(size):
        v = first_of(Z, i, size, a)
        if kind != OMEGA:
            v = cross(v, e)
        if kind == POINT:
            v = add(v, first_of(Z, i + 1, size, a))
        accumulate(t, g_at(rows, size, row, a), size, scale(sign, v))


@helper
def carried_second(F, Z, pairs, frame, kind, e, sign, size, t, rows, row):
    """Add `sign` times the second order of a carried vector to three rows."""
    i, square = turning(frame), size * size
    for a in range(size):
        wa = first_of(Z, i, size, a)
        ea = cross(wa, e)
        for b in range(size if pairs == EVERY else a + 1):
            wb, wab = first_of(Z, i, size, b), second_of(Z, i, size, a, b)
            v = wab
            if kind != OMEGA:
                v = add(cross(wab, e), cross(wb, ea))
            if kind == POINT:
                v = add(v, second_of(Z, i + 1, size, a, b))
            accumulate(t, h_at(rows, size, row, a, b), square, scale(sign, v))
            if pairs == MIRRORED and b < a:
                if kind == OMEGA:
                    v = sub(v, cross(wa, wb))
                accumulate(t, h_at(rows, size, row, b, a), square, scale(sign, v))


@helper
def carried_third(F, Z, frame, kind, e, sign, size, t, rows, row):
    """Add `sign` times the third order of a carried vector to three rows."""
    i, cube = turning(frame), size * size * size
    for c in range(size):
        ec = cross(first_of(Z, i, size, c), e)
        for a in range(size):
            wa, wca = first_of(Z, i, size, a), second_of(Z, i, size, c, a)
            ea = cross(wa, e)
            eca = add(cross(wca, e), cross(wa, ec))
            for b in range(size):
                v = third_of(Z, i, size, c, a, b)
                if kind != OMEGA:
                    v = add(cross(v, e), cross(second_of(Z, i, size, a, b), ec))
                    v = add(v, cross(second_of(Z, i, size, c, b), ea))
                    v = add(v, cross(first_of(Z, i, size, b), eca))
                if kind == POINT:
                    v = add(v, third_of(Z, i + 1, size, c, a, b))
                accumulate(t, d_at(rows, size, row, c, a, b), cube, scale(sign, v))


@helper
def carried_rows(F, Z, pairs, frame, kind, e, sign, low, high, size, t, rows, row):
    """Add `sign` times the coefficients of one carried vector, of orders `low` to `high`, to three rows.

    `e` is the world position of the point (POINT) or the world vector (DIRECTION).
    """
    if frame < 0:
        return
    if kind == POINT:
        e = sub(e, take(F, frame, ORIGIN))
    if low < 2:
        carried_first(F, Z, frame, kind, e, sign, size, t, rows, row)
    if low < 3 and high > 1:
        carried_second(F, Z, pairs, frame, kind, e, sign, size, t, rows, row)
    if high > 2:
        carried_third(F, Z, frame, kind, e, sign, size, t, rows, row)


@helper
def clear(Z, i, order, size):
    """Zeros in one order of a table of three rows."""
    start, count = g_at(3, size, 0, 0), 3 * size
    if order == 2:
        start, count = h_at(3, size, 0, 0, 0), 3 * size * size
    elif order == 3:
        start, count = d_at(3, size, 0, 0, 0, 0), 3 * size * size * size
    for place in range(start, start + count):
        Z[i, place] = 0


@helper
def frame_motion(cols, F, x, Z, order, pairs, size):
    """One order of every frame's two tables; those of lower order are there already."""
    pairs = LOWER if pairs == MIRRORED else pairs
    clear(Z, 0, order, size)
    clear(Z, 1, order, size)
    for n in range(cols.shape[0]):
        i, parent = turning(n), cols[n, PARENT]
        clear(Z, i, order, size)
        clear(Z, i + 1, order, size)
        origin = take(F, n, ORIGIN)
        carried_rows(F, Z, pairs, parent, OMEGA, origin, 1, order, order, size, Z[i], 3, 0)
        carried_rows(F, Z, pairs, parent, POINT, origin, 1, order, order, size, Z[i + 1], 3, 0)
        # the axis is carried by the parent of its joint, or by the child of a ball walked backwards
        group = cols[n, GROUP]
        by = turning(group + 2 if cols[n, LO] > group else cols[group, PARENT])
        slides = 0 if turns(cols, n) else 1
        t = Z[i + slides]
        if order == 1:
            joint_first(cols, F, x, n, size, t)
        elif order == 2:
            joint_second(cols, F, x, Z, by, n, pairs, slides, size, t)
        else:
            joint_third(cols, F, x, Z, by, n, slides, size, t)


@helper
def joint_first(cols, F, x, n, size, t):
    """s A: what joint n adds to the turning (or, a slider, to the place) of its frame."""
    mobile, s = cols.shape[0], take(F, n, AXIS)
    for a in range(size):
        accumulate(t, g_at(3, size, 0, a), size, scale(x[g_at(mobile, size, n, a)], s))


@helper
def joint_second(cols, F, x, Z, by, n, pairs, slides, size, t):
    """The derivative of s A; a slider's is that of the length along s, by the product rule twice."""
    mobile, s, square = cols.shape[0], take(F, n, AXIS), size * size
    for a in range(size):
        sa, xa = cross(first_of(Z, by, size, a), s), x[g_at(mobile, size, n, a)]
        for b in range(size if pairs == EVERY else a + 1):
            v = axpy(x[g_at(mobile, size, n, b)], sa, scale(x[h_at(mobile, size, n, a, b)], s))
            if slides:
                v = axpy(xa, cross(first_of(Z, by, size, b), s), v)
            accumulate(t, h_at(3, size, 0, a, b), square, v)


@helper
def joint_third(cols, F, x, Z, by, n, slides, size, t):
    """The second derivative of s A."""
    mobile, s, cube = cols.shape[0], take(F, n, AXIS), size * size * size
    for c in range(size):
        sc, xc = cross(first_of(Z, by, size, c), s), x[g_at(mobile, size, n, c)]
        for a in range(size):
            wa, xa = first_of(Z, by, size, a), x[g_at(mobile, size, n, a)]
            sa = cross(wa, s)
            sca = add(cross(second_of(Z, by, size, c, a), s), cross(wa, sc))
            for b in range(size):
                v = axpy(x[g_at(mobile, size, n, b)], sca, scale(x[d_at(mobile, size, n, c, a, b)], s))
                v = axpy(x[h_at(mobile, size, n, c, b)], sa, axpy(x[h_at(mobile, size, n, a, b)], sc, v))
                if slides:
                    wb = first_of(Z, by, size, b)
                    scb = add(cross(second_of(Z, by, size, c, b), s), cross(wb, sc))
                    sab = add(cross(second_of(Z, by, size, a, b), s), cross(wb, sa))
                    v = axpy(xa, scb, axpy(xc, sab, v))
                    v = axpy(x[h_at(mobile, size, n, c, a)], cross(wb, s), v)
                accumulate(t, d_at(3, size, 0, c, a, b), cube, v)


@helper
def ball_turns(cols, x, size):
    """The part of B that the angular velocities of balls have whatever is chosen: half of w_a × w_b.

    What is left of their B has no order of differentiation, in true coordinates q.
    """
    mobile = cols.shape[0]
    for n in range(mobile):
        if cols[n, KIND] == BALL and cols[n, GROUP] == n:
            for a in range(size):
                wa = of_column(x, mobile, size, n, a)
                for b in range(size):
                    v = cross(wa, of_column(x, mobile, size, n, b))
                    for k in range(3):
                        x[h_at(mobile, size, n + k, a, b)] = v[k] / 2


@helper
def of_column(x, mobile, size, n, a):
    """First order of the three columns from n on, with respect to q_a."""
    return (
        x[g_at(mobile, size, n, a)], x[g_at(mobile, size, n + 1, a)], x[g_at(mobile, size, n + 2, a)],
    )  # fmt: skip
