"""Rows of the tree contracted with other coordinates, never forming the tree's own H and D.

Let the tree's coordinates have coefficients A, B, C (a table X of M rows) with respect to some q. A
carried vector has the velocity sum_n g_n A_na; differentiating that sum term by term needs only the
derivative of each column g_n along each q_a, and this follows from sums over the part of the path before
column n (what turns its axis) and from there on (what carries the point along):

    d_a g_n = W_a x g_n + omega_n x U_a

with W_a the turning of axis n and U_a the displacement of the point by column n and all after it. Cost
grows with the length of the path, not with its square or cube.
"""

from kic.kernels.compiled import helper
from kic.kernels.frames import turns
from kic.kernels.layout import AXIS, EFFECT, LO, OMEGA, PARENT, d_at, g_at, h_at
from kic.kernels.rows import accumulate, acts, first, zero
from kic.kernels.vectors import add, axpy, cross, put, scale, sub, take

# scratch (6, M + 1, 3 size; order 3: 3 size²):
# sums over the columns before each one of the path, and derivatives of its own columns
TURN1, MOVE1, TURN2, MOVE2, RATE, SPUN = 0, 1, 2, 3, 4, 5


@helper
def path_of(cols, frame, path):
    """Columns from ground to a frame into `path`; returns how many."""
    depth = 0
    n = frame
    while n >= 0:
        depth += 1
        n = cols[n, PARENT]
    n = frame
    for i in range(depth - 1, -1, -1):
        path[i] = n
        n = cols[n, PARENT]
    return depth


@helper
def contracted_rows(cols, F, path, S, frame, kind, e, sign, order, X, size, t, rows, row):
    """Add `sign` times the coefficients of one carried vector with respect to q to three rows.

    `X` is the table of the tree's coordinates at this posture (1-D), `size` the number of q, `S` and
    `path` are scratch.
    """
    depth = path_of(cols, frame, path)
    mobile = cols.shape[0]
    for i in range(depth):
        n = path[i]
        v = first(cols, F, n, kind, e) if acts(cols, n, kind) else zero(take(F, n, AXIS))
        put(F, n, EFFECT, v)
    sums(cols, F, path, depth, S, X, size)
    for i in range(depth):
        n = path[i]
        g = take(F, n, EFFECT)
        for a in range(size):
            v = scale(sign * X[g_at(mobile, size, n, a)], g)
            accumulate(t, g_at(rows, size, row, a), size, v)
    if order < 2:
        return
    rates(cols, F, path, depth, S, kind, size)
    for i in range(depth):
        n = path[i]
        g = take(F, n, EFFECT)
        for a in range(size):
            rate = take(S[RATE], i, 3 * a)
            for b in range(size):
                v = scale(X[g_at(mobile, size, n, b)], rate)
                v = scale(sign, axpy(X[h_at(mobile, size, n, a, b)], g, v))
                accumulate(t, h_at(rows, size, row, a, b), size * size, v)
    if order < 3:
        return
    second_sums(cols, F, path, depth, S, X, size)
    for i in range(depth):
        n = path[i]
        g = take(F, n, EFFECT)
        for c in range(size):
            rate_c = take(S[RATE], i, 3 * c)
            for a in range(size):
                rate_a = take(S[RATE], i, 3 * a)
                twice = second_rate(cols, F, path, depth, S, kind, size, i, c, a)
                for b in range(size):
                    v = scale(X[g_at(mobile, size, n, b)], twice)
                    v = axpy(X[h_at(mobile, size, n, c, b)], rate_a, v)
                    v = axpy(X[h_at(mobile, size, n, a, b)], rate_c, v)
                    v = scale(sign, axpy(X[d_at(mobile, size, n, c, a, b)], g, v))
                    accumulate(t, d_at(rows, size, row, c, a, b), size * size * size, v)


@helper
def sums(cols, F, path, depth, S, X, size):
    """Turning and displacement by the columns before each one, for each q."""
    mobile = cols.shape[0]
    nothing = zero(take(F, path[0], AXIS)) if depth > 0 else zero((X[0], X[0], X[0]))
    for a in range(size):
        turned, moved = nothing, nothing
        put(S[TURN1], 0, 3 * a, turned)
        put(S[MOVE1], 0, 3 * a, moved)
        for i in range(depth):
            n = path[i]
            x = X[g_at(mobile, size, n, a)]
            if turns(cols, n):
                turned = axpy(x, take(F, n, AXIS), turned)
            moved = axpy(x, take(F, n, EFFECT), moved)
            put(S[TURN1], i + 1, 3 * a, turned)
            put(S[MOVE1], i + 1, 3 * a, moved)


@helper
def rates(cols, F, path, depth, S, kind, size):
    """Derivative of every column g_n, and of every axis, along each q."""
    for i in range(depth):
        n = path[i]
        s, g = take(F, n, AXIS), take(F, n, EFFECT)
        before = i + cols[n, LO] - n
        for a in range(size):
            turned = take(S[TURN1], before, 3 * a)
            rate = cross(turned, g)
            if turns(cols, n):
                put(S[SPUN], i, 3 * a, cross(turned, s))
                if kind != OMEGA:
                    moved = sub(take(S[MOVE1], depth, 3 * a), take(S[MOVE1], before, 3 * a))
                    rate = add(rate, cross(s, moved))
            put(S[RATE], i, 3 * a, rate)


@helper
def second_sums(cols, F, path, depth, S, X, size):
    """Derivatives of the sums along each q: turning and displacement of second order."""
    mobile = cols.shape[0]
    nothing = zero(take(F, path[0], AXIS)) if depth > 0 else zero((X[0], X[0], X[0]))
    for c in range(size):
        for a in range(size):
            place = 3 * (c * size + a)
            turned, moved = nothing, nothing
            put(S[TURN2], 0, place, turned)
            put(S[MOVE2], 0, place, moved)
            for i in range(depth):
                n = path[i]
                x, y = X[g_at(mobile, size, n, a)], X[h_at(mobile, size, n, c, a)]
                if turns(cols, n):
                    turned = axpy(x, take(S[SPUN], i, 3 * c), axpy(y, take(F, n, AXIS), turned))
                moved = axpy(x, take(S[RATE], i, 3 * c), axpy(y, take(F, n, EFFECT), moved))
                put(S[TURN2], i + 1, place, turned)
                put(S[MOVE2], i + 1, place, moved)


@helper
def second_rate(cols, F, path, depth, S, kind, size, i, c, a):
    """Derivative along q_c of the derivative along q_a of column g_n, n = path[i]."""
    n = path[i]
    before = i + cols[n, LO] - n
    place = 3 * (c * size + a)
    v = cross(take(S[TURN2], before, place), take(F, n, EFFECT))
    v = add(v, cross(take(S[TURN1], before, 3 * a), take(S[RATE], i, 3 * c)))
    if turns(cols, n) and kind != OMEGA:
        moved = sub(take(S[MOVE1], depth, 3 * a), take(S[MOVE1], before, 3 * a))
        v = add(v, cross(take(S[SPUN], i, 3 * c), moved))
        moved = sub(take(S[MOVE2], depth, place), take(S[MOVE2], before, place))
        v = add(v, cross(take(F, n, AXIS), moved))
    return v
