"""Small dense systems: LU with partial pivoting that leaves out what is zero, and its solutions.

Rows of closed mechanisms are mostly zeros, for a loop knows its own joints only: multipliers that are zero
are skipped and a row is worked on as far as it reaches, so that the cost grows with the loops and not with
their cube. Pivots are chosen by size, a branch on values that kernels otherwise avoid.
"""

from kic.kernels.compiled import helper
from kic.kernels.functions import at
from kic.kernels.ranges import add_range, scale_range

# a pivot is left for one that is so much larger
MUCH_LARGER = 10


@helper
def factor(W, pivots, ends):
    """Factor W (n, n) in place; returns the smallest pivot as a share of the largest, 0 if there is none.

    `pivots` (n,) receives the row that each one came from, `ends` (n,) the last column of each row.
    """
    size = W.shape[0]
    for i in range(size):
        pivots[i] = i
        ends[i] = 0
        for j in range(size):
            if W[i, j] != 0:
                ends[i] = j
    small = large = 1.0
    for k in range(size):
        best, place = abs(W[k, k]), k
        for i in range(k + 1, size):
            # the rows come in an order that keeps zeros: only a much larger pivot is worth another
            if W[i, k] != 0 and abs(W[i, k]) > max(best, MUCH_LARGER * abs(W[k, k])):
                best, place = abs(W[i, k]), i
        pivots[k] = place
        if place != k:
            last = max(ends[k], ends[place])
            for j in range(last + 1):
                W[k, j], W[place, j] = W[place, j], W[k, j]
            ends[k], ends[place] = ends[place], ends[k]
        if not best > 0:  # nor is it a number that is none
            return 0.0
        small = best if k == 0 else min(small, best)
        large = best if k == 0 else max(large, best)
        last, inverse = ends[k], 1 / W[k, k]
        for i in range(k + 1, size):
            if W[i, k] != 0:
                f = W[i, k] * inverse
                W[i, k] = f
                for j in range(k + 1, last + 1):
                    W[i, j] -= f * W[k, j]
                ends[i] = max(ends[i], last)
    return small / large


@helper
def solve(W, pivots, ends, R, width):
    """Solve for `width` right sides R (n width) in place, side by side for each row."""
    size = W.shape[0]
    for k in range(size):
        place = pivots[k]
        if place != k:
            i, j = at(k * width), at(place * width)
            for c in range(at(width)):
                R[i + c], R[j + c] = R[j + c], R[i + c]
    for k in range(size):
        for i in range(k + 1, size):
            f = W[i, k]
            if f != 0:
                add_range(R, i * width, -f, R, k * width, width)
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, ends[k] + 1):
            f = W[k, j]
            if f != 0:
                add_range(R, k * width, -f, R, j * width, width)
        scale_range(R, k * width, 1 / W[k, k], R, k * width, width)
