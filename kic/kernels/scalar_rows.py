"""Scalar rows that are products of two vectors, and lengths and angles of these, to third order.

`U` and `W` are tables of three rows each with the values and coefficients of the vectors, in any coordinates.
A vector that has a rate but no value (an angular velocity) is passed as W with `has_value` False: the row is
then u . dw. The third order is not compiled if `with_third` is None. Products follow Leibniz' rule.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.functions import root
from kic.kernels.jit import helper, inlined
from kic.kernels.offsets import g_at, pair_count
from kic.kernels.ranges import vector_at
from kic.kernels.vectors import dot


@helper
def column1(t, size, n):
    """Return a first-order column of a three-row table."""
    return vector_at(t, g_at(3, size, 0, n), size)


@helper
def column2(t, size, count, p):
    """Return the second-order column of pair p of a three-row table of `count` pairs."""
    return vector_at(t, 3 * (1 + size) + p, count)


@helper
def column3(t, size, p):
    """Return the third-order column of triple p of a three-row table with all pairs."""
    return vector_at(t, 3 * (1 + size + size * size) + p, size * size * size)


@inlined
def product_row(U, W, has_value, size, pairs, with_third, order, t, rows, row):
    """Compute one row: u . w with coefficients, or the coefficients of u . dw if w has no value."""
    u, w = vector_at(U, 0, 1), vector_at(W, 0, 1)
    if has_value:
        t[row] = dot(u, w)
    for n in range(size):
        x = dot(u, column1(W, size, n))
        if has_value:
            x += dot(column1(U, size, n), w)
        t[rows + row * size + n] = x
    if order < 2:
        return
    count, p = pair_count(size, pairs), 0
    start = rows * (1 + size) + row * count
    for m in range(size):
        um, wm = column1(U, size, m), column1(W, size, m)
        for n in range(size if pairs == lay.EVERY else m + 1):
            x = dot(um, column1(W, size, n)) + dot(u, column2(W, size, count, p))
            if has_value:
                x += dot(column2(U, size, count, p), w) + dot(column1(U, size, n), wm)
            t[start + p] = x
            p += 1
    if with_third is None:
        return
    if order < 3:
        return
    start, p = rows * (1 + size + size * size) + row * size * size * size, 0
    for k in range(size):
        uk, wk = column1(U, size, k), column1(W, size, k)
        for m in range(size):
            um, wm = column1(U, size, m), column1(W, size, m)
            ukm, wkm = column2(U, size, count, k * size + m), column2(W, size, count, k * size + m)
            for n in range(size):
                kn, mn = k * size + n, m * size + n
                x = dot(ukm, column1(W, size, n)) + dot(um, column2(W, size, count, kn))
                x += dot(uk, column2(W, size, count, mn)) + dot(u, column3(W, size, p))
                if has_value:
                    x += dot(column3(U, size, p), w) + dot(column2(U, size, count, mn), wk)
                    x += dot(column2(U, size, count, kn), wm) + dot(column1(U, size, n), wkm)
                t[start + p] = x
                p += 1


@helper
def angle_row(size, pairs, with_third, order, t, rows, row):
    """Compute the coefficients of the angle Im log(c + i s); the two preceding rows are s and c.

    With z = c + i s, p + i q = dz / z and P + i Q = d²z / z, the first order is q_n and the second
    Q_mn − (p_m q_n + q_m p_n). The value is not computed here.
    """
    s, c = t[row - 2], t[row - 1]
    a = c / (c * c + s * s)
    b = s / (c * c + s * s)
    count = pair_count(size, pairs)
    g = rows + row * size
    for n in range(size):
        t[g + n] = a * t[g - 2 * size + n] - b * t[g - size + n]
    if order < 2:
        return
    h = rows * (1 + size) + row * count
    p = h
    for m in range(size):
        pm, qm = a * t[g - size + m] + b * t[g - 2 * size + m], t[g + m]
        for n in range(size if pairs == lay.EVERY else m + 1):
            pn, qn = a * t[g - size + n] + b * t[g - 2 * size + n], t[g + n]
            t[p] = a * t[p - 2 * count] - b * t[p - count] - pm * qn - qm * pn
            p += 1
    if with_third is None:
        return
    if order < 3:
        return
    cube = size * size * size
    p = rows * (1 + size + size * size) + row * cube
    for k in range(size):
        pk, qk = a * t[g - size + k] + b * t[g - 2 * size + k], t[g + k]
        for m in range(size):
            pm, qm = a * t[g - size + m] + b * t[g - 2 * size + m], t[g + m]
            i = h + k * size + m
            # second order of log z, from that of its imaginary part
            Pkm = a * t[i - count] + b * t[i - 2 * count]
            Qkm = a * t[i - 2 * count] - b * t[i - count]
            for n in range(size):
                pn, qn = a * t[g - size + n] + b * t[g - 2 * size + n], t[g + n]
                i = h + k * size + n
                Pkn = a * t[i - count] + b * t[i - 2 * count]
                Qkn = a * t[i - 2 * count] - b * t[i - count]
                i = h + m * size + n
                Pmn = a * t[i - count] + b * t[i - 2 * count]
                Qmn = a * t[i - 2 * count] - b * t[i - count]
                x = a * t[p - 2 * cube] - b * t[p - cube]
                x -= Pkm * qn + Qkm * pn + Pkn * qm + Qkn * pm + Pmn * qk + Qmn * pk
                t[p] = x + 2 * (pk * pm * qn + pk * qm * pn + qk * pm * pn - qk * qm * qn)
                p += 1


@helper
def chain_row(f1, f2, f3, more, size, pairs, with_third, order, t, rows, source, row):
    """Compute the coefficients, but not the value, of f(y) from those of y, in row `source` or `row`.

    This is Faà di Bruno's rule with the derivatives of f. The highest order is the first, because it needs
    the lower orders of y. With `more`, the coefficients are added to those of `row`.
    """
    count, cube = pair_count(size, pairs), size * size * size
    g, h = rows + source * size, rows * (1 + size) + source * count
    if with_third is not None and order > 2:
        p = rows * (1 + size + size * size) + row * cube
        shift = (source - row) * cube
        for k in range(size):
            for m in range(size):
                for n in range(size):
                    x = t[g + m] * t[h + k * size + n] + t[g + k] * t[h + m * size + n]
                    x += t[h + k * size + m] * t[g + n]
                    x = f1 * t[p + shift] + f2 * x + f3 * t[g + k] * t[g + m] * t[g + n]
                    t[p] = t[p] + x if more else x
                    p += 1
    if order > 1:
        p = rows * (1 + size) + row * count
        for m in range(size):
            for n in range(size if pairs == lay.EVERY else m + 1):
                x = f1 * t[h] + f2 * t[g + m] * t[g + n]
                t[p] = t[p] + x if more else x
                h += 1
                p += 1
    for n in range(size):
        p, x = rows + row * size + n, f1 * t[g + n]
        t[p] = t[p] + x if more else x


@helper
def arcsine_row(size, pairs, with_third, order, t, rows, row):
    """Compute the coefficients, but not the value, of arcsin s; s is the preceding row.

    The cosine is the norm of rows `row` - 4 and `row` - 3, because 1 - s² loses digits near a right angle.
    """
    s, x, y = t[row - 1], t[row - 4], t[row - 3]
    f = 1 / root(x * x + y * y)
    f2 = f * f * f * s
    f3 = f * f * f + 3 * f * f * s * f2
    chain_row(f, f2, f3, False, size, pairs, with_third, order, t, rows, row - 1, row)


@helper
def norm_row(size, pairs, with_third, order, t, rows, row):
    """Compute value and coefficients of the norm of the two preceding rows, from those of its square."""
    for k in range(1, 3):
        chain_row(2 * t[row - k], 2, 0, k > 1, size, pairs, with_third, order, t, rows, row - k, row)
    t[row] = t[row - 2] * t[row - 2] + t[row - 1] * t[row - 1]
    root_row(size, pairs, with_third, order, t, rows, row)


@helper
def root_row(size, pairs, with_third, order, t, rows, row):
    """Transform value and coefficients of f² in `row` to those of a distance f."""
    f = root(t[row])
    t[row] = f
    f1 = 1 / (2 * f)
    f2 = -2 * f1 * f1 * f1
    f3 = -6 * f1 * f1 * f2
    chain_row(f1, f2, f3, False, size, pairs, with_third, order, t, rows, row, row)
