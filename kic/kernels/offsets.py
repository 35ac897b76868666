"""Offsets and widths of the packed tables described in `kic.kernels.layout`."""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.jit import helper, inlined


@inlined
def sections(plan, numbers):
    """Return the sections of columns, items, bodies, forces and springs, and the rest of `numbers`.

    Each of the first five is a pair: its rows in the plan, and in `numbers`.
    """
    h, a = lay.HEADER, plan[0, lay.COLUMNS]
    b = a + plan[0, lay.ITEMS]
    c = b + plan[0, lay.BODIES]
    d = c + plan[0, lay.FORCES]
    e = d + plan[0, lay.SPRINGS]
    return (
        (plan[h : h + a], numbers[:a]),
        (plan[h + a : h + b], numbers[a:b]),
        (plan[h + b : h + c], numbers[b:c]),
        (plan[h + c : h + d], numbers[c:d]),
        (plan[h + d : h + e], numbers[d:e]),
        numbers[e:],
    )


@helper
def g_at(rows, size, row, n):
    """Return the index of G[row, n] in a table of `rows` rows and `size` coordinates."""
    return rows + row * size + n


@helper
def h_at(rows, size, row, m, n):
    """Return the index of H[row, m, n]."""
    return rows + rows * size + (row * size + m) * size + n


@helper
def d_at(rows, size, row, l, m, n):
    """Return the index of D[row, l, m, n]."""
    return rows + rows * size * (1 + size) + ((row * size + l) * size + m) * size + n


@helper
def pair_count(size, pairs):
    """Return the number of pairs of second order."""
    return size * size if pairs == lay.EVERY else size * (size + 1) // 2


@helper
def packed_width(rows, size, pairs, order):
    """Return the length of a table for one configuration, with the given pairs of second order."""
    width = rows * (1 + size)
    if order > 1:
        width += rows * pair_count(size, pairs)
    if order > 2:
        width += rows * size * size * size
    return width


@helper
def table_width(rows, size, order):
    """Return the length of a table for one configuration, with all pairs of second order."""
    return packed_width(rows, size, lay.EVERY, order)


@helper
def block(size, count, order):
    """Return the number of entries of one frame in Z, the table of all frames, with ground at rest first.

    The entries are ω (3, m), origin (3, m); Ω (3, p), N (9, p) and origin (3, p) for p pairs; then, to third
    order, rotation (3, m³) and origin (3, m³).
    """
    width = 6 * size
    if order > 1:
        width += 15 * count
    if order > 2:
        width += 6 * size * size * size
    return width
