"""Compute offsets and widths of the packed tables described in `kic.kernels.layout`."""

from __future__ import annotations

from kic.kernels.jit import helper
from kic.kernels.layout import EVERY


@helper
def section(plan, which):
    """Where a section begins and ends in `numbers`; in the plan it does so HEADER rows later."""
    start = 0
    for k in range(which):
        start += plan[0, k]
    return start, start + plan[0, which]


@helper
def g_at(rows, size, row, n):
    """Place of G[row, n] in a table of `rows` rows and `size` coordinates."""
    return rows + row * size + n


@helper
def h_at(rows, size, row, m, n):
    """Place of H[row, m, n]."""
    return rows + rows * size + (row * size + m) * size + n


@helper
def d_at(rows, size, row, l, m, n):
    """Place of D[row, l, m, n]."""
    return rows + rows * size * (1 + size) + ((row * size + l) * size + m) * size + n


@helper
def pair_count(size, pairs):
    """Pairs of second order."""
    return size * size if pairs == EVERY else size * (size + 1) // 2


@helper
def packed_width(rows, size, pairs, order):
    """Numbers that one posture takes in a table of so many pairs."""
    width = rows * (1 + size)
    if order > 1:
        width += rows * pair_count(size, pairs)
    if order > 2:
        width += rows * size * size * size
    return width


@helper
def table_width(rows, size, order):
    """Numbers that one posture takes in a table of every pair."""
    return packed_width(rows, size, EVERY, order)
