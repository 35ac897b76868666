"""Coefficients with respect to chosen coordinates q, frame by frame, without coefficients of the tree.

Let the tree's coordinates have coefficients A, B, C (a table x of M rows) with respect to q. The coefficients
of every frame follow from those of its parent: of its rotation, ω_a, Ω_ab = ∂_a ω_b and so on, of its origin,
and of vectors e fixed in it:

    ∂_a e = ω_a × e        ∂_a ∂_b e = N_ab e,        N_ab = [Ω_ab]× + ω_a ω_bᵀ - (ω_a · ω_b) 1

The cost grows with the number of frames, not with the length of paths. In true coordinates N is symmetric in
a and b, and pairs with b <= a suffice (LOWER). Otherwise this is Leibniz' rule, whose general form stands in
`tests/leibniz.py`.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import has_frame, rotates
from kic.kernels.functions import at
from kic.kernels.jit import helper, inlined
from kic.kernels.offsets import pair_count
from kic.kernels.ranges import add_range, clear_range, copy_range, put_at, vector_at
from kic.kernels.vectors import add, axpy, cross, dot, half, scale, sub, take


@helper
def transferred_first(Z, o, kind, e, sign, size, t, start):
    """Add `sign` times the first order of a vector fixed in a frame to three rows."""
    for a in range(size):
        v = vector_at(Z, o + a, size)
        if kind != lay.OMEGA:
            v = cross(v, e)
        if kind == lay.POINT:
            v = add(v, vector_at(Z, o + 3 * size + a, size))
        put_at(t, start + a, size, axpy(sign, v, vector_at(t, start + a, size)))


@helper
def turned(Z, o, count, e, sign, t, start):
    """Add `sign` times N e of all pairs to three rows: the second order of a fixed vector due to rotation."""
    x, y, z = sign * e[0], sign * e[1], sign * e[2]
    stride = at(count)
    for c in range(3):
        i, k = at(o + 3 * c * count), at(start + c * count)
        for p in range(stride):
            t[k + p] += Z[i + p] * x + Z[i + stride + p] * y + Z[i + stride + stride + p] * z


@helper
def transferred_second(Z, o, size, count, kind, e, sign, t, start):
    """Add `sign` times the second order of a vector fixed in a frame to three rows."""
    second = o + 6 * size
    if kind != lay.OMEGA:
        turned(Z, second + 3 * count, count, e, sign, t, start)
    if kind == lay.POINT:
        second += 12 * count
    if kind == lay.POINT or kind == lay.OMEGA:
        add_range(t, start, sign, Z, second, 3 * count)


@helper
def transferred_third(Z, o, size, kind, e, sign, t, start):
    """Add `sign` times the third order of a vector fixed in a frame to three rows, for all triples."""
    square, cube = size * size, size * size * size
    second, third = o + 6 * size, o + 6 * size + 15 * square
    for c in range(size):
        ec = cross(vector_at(Z, o + c, size), e)
        for a in range(size):
            wa, wca = vector_at(Z, o + a, size), vector_at(Z, second + c * size + a, square)
            ea = cross(wa, e)
            eca = add(cross(wca, e), cross(wa, ec))
            for b in range(size):
                p = (c * size + a) * size + b
                v = vector_at(Z, third + p, cube)
                if kind != lay.OMEGA:
                    v = add(cross(v, e), cross(vector_at(Z, second + a * size + b, square), ec))
                    v = add(v, cross(vector_at(Z, second + c * size + b, square), ea))
                    v = add(v, cross(vector_at(Z, o + b, size), eca))
                if kind == lay.POINT:
                    v = add(v, vector_at(Z, third + 3 * cube + p, cube))
                put_at(t, start + p, cube, axpy(sign, v, vector_at(t, start + p, cube)))


@helper
def transferred_rows(F, Z, width, pairs, with_third, frame, kind, e, sign, order, size, t, rows, row):
    """Add `sign` times the coefficients of one vector fixed in a frame to three rows of a table.

    `e` is the world position of the point (POINT) or the world vector (DIRECTION).
    """
    if frame < 0:
        return
    if kind == lay.POINT:
        e = sub(e, take(F, frame, lay.ORIGIN))
    o, count = width * (frame + 1), pair_count(size, pairs)
    transferred_first(Z, o, kind, e, sign, size, t, rows + row * size)
    if order > 1:
        transferred_second(Z, o, size, count, kind, e, sign, t, rows * (1 + size) + row * count)
    if with_third is not None and order > 2:
        start = rows * (1 + size + size * size) + row * size * size * size
        transferred_third(Z, o, size, kind, e, sign, t, start)


@helper
def arm(cols, F, n):
    """Return the vector from the origin of the parent's frame to the origin of frame n."""
    parent = cols[n, lay.PARENT]
    origin = take(F, n, lay.ORIGIN)
    return origin if parent < 0 else sub(origin, take(F, parent, lay.ORIGIN))


@helper
def axis_carrier(cols, n):
    """Return the frame in which axis n is fixed: the parent of its joint, or the child of a reversed ball."""
    group = cols[n, lay.GROUP]
    return group + 2 if cols[n, lay.LO] > group else cols[group, lay.PARENT]


@inlined
def first_motion(cols, F, x, Z, width, size):
    """Compute the first order of every frame, rotation and origin: (3-20) to (3-22) link by link."""
    mobile = cols.shape[0]
    for n in range(mobile):
        if not has_frame(cols, n):
            continue
        o, up = width * (n + 1), width * (cols[n, lay.PARENT] + 1)
        s, r, slides = take(F, n, lay.AXIS), arm(cols, F, n), not rotates(cols, n)
        for a in range(size):
            w, xa = vector_at(Z, up + a, size), x[mobile + n * size + a]
            v = add(vector_at(Z, up + 3 * size + a, size), cross(w, r))
            if slides:
                v = axpy(xa, s, v)
            else:
                w = axpy(xa, s, w)
            put_at(Z, o + a, size, w)
            put_at(Z, o + 3 * size + a, size, v)


@helper
def bare_frames(cols, geometry, items, bodies, bare):
    """Mark frames whose N is not needed, because they carry nothing away from their origin."""
    for n in range(cols.shape[0]):
        bare[n] = 1
    for i in range(bodies.shape[0]):
        if bodies[i, lay.CARRIER] >= 0:
            bare[bodies[i, lay.CARRIER]] = 0
    for i in range(items.shape[0]):
        for k in range(lay.FRAME_B, lay.FRAME_A + 1):
            if items[i, k] >= 0:
                bare[items[i, k]] = 0
    for n in range(cols.shape[0]):
        o = take(geometry, n, lay.OFFSET)
        away = o[0] != 0 or o[1] != 0 or o[2] != 0 or not rotates(cols, n)
        if away and cols[n, lay.GROUP] == n and cols[n, lay.PARENT] >= 0:
            bare[cols[n, lay.PARENT]] = 0


@inlined
def second_motion(cols, F, x, Z, width, size, pairs, bare):
    """Compute the second order of every frame: rotation, N except for `bare` frames, and origin.

    This is (3-23) to (3-26) link by link.
    """
    mobile, count = cols.shape[0], pair_count(size, pairs)
    for n in range(mobile):
        if not has_frame(cols, n):
            continue
        o, up, by = width * (n + 1), width * (cols[n, lay.PARENT] + 1), width * (axis_carrier(cols, n) + 1)
        s, r = take(F, n, lay.AXIS), arm(cols, F, n)
        own, above = o + 6 * size, up + 6 * size
        xn, bn = mobile + n * size, mobile * (1 + size) + n * count
        copy_range(Z, own + 12 * count, Z, above + 12 * count, 3 * count)
        if cols[n, lay.PARENT] >= 0 and bare[cols[n, lay.PARENT]] == 0:
            turned(Z, above + 3 * count, count, r, 1, Z, own + 12 * count)
        if rotates(cols, n):
            q = 0
            for a in range(size):
                wa, sa = vector_at(Z, o + a, size), cross(vector_at(Z, by + a, size), s)
                last = size if pairs == lay.EVERY else a + 1
                for b in range(last):
                    p = own + q + b
                    wb, xb, bb = vector_at(Z, o + b, size), x[xn + b], x[bn + q + b]
                    w = axpy(bb, s, axpy(xb, sa, vector_at(Z, above + q + b, count)))
                    put_at(Z, p, count, w)
                    if bare[n] != 0:
                        continue
                    d = dot(wa, wb)
                    p += 3 * count
                    put_at(Z, p, count, (wa[0] * wb[0] - d, wa[0] * wb[1] - w[2], wa[0] * wb[2] + w[1]))
                    p += 3 * count
                    put_at(Z, p, count, (wa[1] * wb[0] + w[2], wa[1] * wb[1] - d, wa[1] * wb[2] - w[0]))
                    p += 3 * count
                    put_at(Z, p, count, (wa[2] * wb[0] - w[1], wa[2] * wb[1] + w[0], wa[2] * wb[2] - d))
                q += last
        else:
            copy_range(Z, own, Z, above, 12 * count)
            slide_second(x, Z, by, own + 12 * count, s, xn, bn, size, count, pairs)


@helper
def slide_second(x, Z, by, place, s, xn, bn, size, count, pairs):
    """Add the second order of a slider's origin, a length along an axis that is fixed in a frame."""
    q = 0
    for a in range(size):
        sa, xa = cross(vector_at(Z, by + a, size), s), x[xn + a]
        last = size if pairs == lay.EVERY else a + 1
        for b in range(last):
            sb = cross(vector_at(Z, by + b, size), s)
            v = axpy(x[bn + q + b], s, axpy(x[xn + b], sa, scale(xa, sb)))
            put_at(Z, place + q + b, count, add(v, vector_at(Z, place + q + b, count)))
        q += last


@helper
def third_motion(cols, F, x, Z, width, size):
    """Compute the third order of every frame, rotation and origin, for all triples.

    These are the derivatives of (3-47), link by link.
    """
    mobile, square, cube = cols.shape[0], size * size, size * size * size
    for n in range(mobile):
        if not has_frame(cols, n):
            continue
        o, up, by = width * (n + 1), width * (cols[n, lay.PARENT] + 1), width * (axis_carrier(cols, n) + 1)
        s, slides = take(F, n, lay.AXIS), not rotates(cols, n)
        third = o + 6 * size + 15 * square
        clear_range(Z, third, 6 * cube)
        r = arm(cols, F, n)
        transferred_third(Z, up, size, lay.OMEGA, r, 1, Z, third)
        transferred_third(Z, up, size, lay.POINT, r, 1, Z, third + 3 * cube)
        start = third + 3 * cube if slides else third
        second, xn = by + 6 * size, mobile + n * size
        bn, cn = mobile * (1 + size) + n * square, mobile * (1 + size + square) + n * cube
        for c in range(size):
            wc, xc = vector_at(Z, by + c, size), x[xn + c]
            sc = cross(wc, s)
            for a in range(size):
                wa, xa = vector_at(Z, by + a, size), x[xn + a]
                sa = cross(wa, s)
                sca = add(cross(vector_at(Z, second + c * size + a, square), s), cross(wa, sc))
                for b in range(size):
                    p = (c * size + a) * size + b
                    v = axpy(x[xn + b], sca, scale(x[cn + p], s))
                    v = axpy(x[bn + c * size + b], sa, axpy(x[bn + a * size + b], sc, v))
                    if slides:
                        wb = vector_at(Z, by + b, size)
                        scb = add(cross(vector_at(Z, second + c * size + b, square), s), cross(wb, sc))
                        sab = add(cross(vector_at(Z, second + a * size + b, square), s), cross(wb, sa))
                        v = axpy(xa, scb, axpy(xc, sab, axpy(x[bn + c * size + a], cross(wb, s), v)))
                    put_at(Z, start + p, cube, add(v, vector_at(Z, start + p, cube)))


@inlined
def ball_turns(cols, x, size, pairs):
    """Write the antisymmetric part ½ w_a × w_b of B of the angular velocities of balls, in any coordinates.

    In true coordinates q, the rest of their B does not depend on the order of differentiation.
    """
    mobile, count = cols.shape[0], pair_count(size, pairs)
    for n in range(mobile):
        if cols[n, lay.KIND] == lay.BALL and cols[n, lay.GROUP] == n:
            q = 0
            for a in range(size):
                last = size if pairs == lay.EVERY else a + 1
                for b in range(last):
                    v = cross(
                        vector_at(x, mobile + n * size + a, size), vector_at(x, mobile + n * size + b, size)
                    )
                    place = mobile * (1 + size) + n * count + q + b
                    put_at(x, place, count, half(v))
                q += last
