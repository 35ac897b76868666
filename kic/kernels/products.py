"""Scalar rows that are products of two carried vectors, by the product rule to third order.

`U` and `W` are tables (1, …) of three rows each, the two vectors' values and coefficients; the same
rule serves tree coordinates and any others. A vector that has a rate but no value (an angular
velocity) enters as W with `has_value` False: the row is then u . dw.
"""

from kic.kernels.compiled import helper
from kic.kernels.functions import root
from kic.kernels.layout import d_at, g_at, h_at
from kic.kernels.vectors import dot


@helper
def three(t, place, stride):
    """The vector that stands in three rows of member 0."""
    return (t[place], t[place + stride], t[place + 2 * stride])


@helper
def column1(t, size, n):
    """First-order column of a three-row table."""
    return three(t, g_at(3, size, 0, n), size)


@helper
def column2(t, size, m, n):
    """Second-order column of a three-row table."""
    return three(t, h_at(3, size, 0, m, n), size * size)


@helper
def column3(t, size, l, m, n):
    """Third-order column of a three-row table."""
    return three(t, d_at(3, size, 0, l, m, n), size * size * size)


@helper
def product_row(U, W, has_value, size, order, t, rows, row):
    """Value and coefficients of u . w, or those of u . dw where w has no value, into one row."""
    u, w = three(U, 0, 1), three(W, 0, 1)
    if has_value:
        t[row] = dot(u, w)
    for n in range(size):
        x = dot(u, column1(W, size, n))
        if has_value:
            x += dot(column1(U, size, n), w)
        t[g_at(rows, size, row, n)] = x
    if order < 2:
        return
    for m in range(size):
        um, wm = column1(U, size, m), column1(W, size, m)
        for n in range(size):
            x = dot(um, column1(W, size, n)) + dot(u, column2(W, size, m, n))
            if has_value:
                x += dot(column2(U, size, m, n), w) + dot(column1(U, size, n), wm)
            t[h_at(rows, size, row, m, n)] = x
    if order < 3:
        return
    for k in range(size):
        uk, wk = column1(U, size, k), column1(W, size, k)
        for m in range(size):
            um, wm = column1(U, size, m), column1(W, size, m)
            ukm, wkm = column2(U, size, k, m), column2(W, size, k, m)
            for n in range(size):
                x = dot(ukm, column1(W, size, n)) + dot(um, column2(W, size, k, n))
                x += dot(uk, column2(W, size, m, n)) + dot(u, column3(W, size, k, m, n))
                if has_value:
                    x += dot(column3(U, size, k, m, n), w) + dot(column2(U, size, m, n), wk)
                    x += dot(column2(U, size, k, n), wm) + dot(column1(U, size, n), wkm)
                t[d_at(rows, size, row, k, m, n)] = x


@helper
def root_row(size, order, t, rows, row):
    """Turn value and coefficients of f^2, already in `row`, into those of f: a distance.

    Overwrites from the value up; each order uses those of f below it.
    """
    f = root(t[row])
    t[row] = f
    g = g_at(rows, size, row, 0)
    h = h_at(rows, size, row, 0, 0)
    for n in range(size):
        t[g + n] = t[g + n] / (2 * f)
    if order < 2:
        return
    for m in range(size):
        for n in range(size):
            x = t[g + m] * t[g + n]
            t[h + m * size + n] = (t[h + m * size + n] / 2 - x) / f
    if order < 3:
        return
    for k in range(size):
        for m in range(size):
            for n in range(size):
                x = t[g + m] * t[h + k * size + n] + t[g + k] * t[h + m * size + n]
                x += t[h + k * size + m] * t[g + n]
                place = d_at(rows, size, row, k, m, n)
                t[place] = (t[place] / 2 - x) / f
