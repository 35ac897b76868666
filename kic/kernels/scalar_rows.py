"""Scalar rows that are products of two vectors, by the product rule to third order.

`U` and `W` are tables of three rows each with the values and coefficients of the vectors, in any coordinates.
A vector that has a rate but no value (an angular velocity) is passed as W with `has_value` False: the row is
then u . dw.
"""

from __future__ import annotations

from kic.kernels.functions import root
from kic.kernels.jit import helper
from kic.kernels.layout import EVERY
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


@helper
def product_row(U, W, has_value, size, pairs, order, t, rows, row):
    """Compute value and coefficients of u . w, or those of u . dw if w has no value, in one row."""
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
        for n in range(size if pairs == EVERY else m + 1):
            x = dot(um, column1(W, size, n)) + dot(u, column2(W, size, count, p))
            if has_value:
                x += dot(column2(U, size, count, p), w) + dot(column1(U, size, n), wm)
            t[start + p] = x
            p += 1
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
def root_row(size, pairs, order, t, rows, row):
    """Transform value and coefficients of f², already in `row`, into those of f: a distance.

    Overwrites in ascending order; each order uses the lower orders of f.
    """
    f = root(t[row])
    t[row] = f
    g = rows + row * size
    h = rows * (1 + size) + row * pair_count(size, pairs)
    for n in range(size):
        t[g + n] = t[g + n] / (2 * f)
    if order < 2:
        return
    p = h
    for m in range(size):
        for n in range(size if pairs == EVERY else m + 1):
            t[p] = (t[p] / 2 - t[g + m] * t[g + n]) / f
            p += 1
    if order < 3:
        return
    p = rows * (1 + size + size * size) + row * size * size * size
    for k in range(size):
        for m in range(size):
            for n in range(size):
                x = t[g + m] * t[h + k * size + n] + t[g + k] * t[h + m * size + n]
                x += t[h + k * size + m] * t[g + n]
                t[p] = (t[p] / 2 - x) / f
                p += 1
