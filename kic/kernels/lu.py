"""Small dense systems: LU with partial pivoting that leaves out what is zero, and its solutions.

Rows of closed mechanisms are mostly zeros, for a loop knows its own joints only: multipliers that are zero are
skipped and a row is worked on as far as it reaches, so that the cost grows with the loops and not with
their cube. Pivots are chosen by size, the one branch on values in all kernels.
"""

from kic.kernels.compiled import helper


@helper
def factor(W, pivots, ends):
    """Factor W (n, n) in place; returns the smallest pivot as a share of the largest.

    `pivots` (n,) receives the row that each one came from, `ends` (n,) the last column of each row.
    """
    size = W.shape[0]
    for i in range(size):
        ends[i] = 0
        for j in range(size):
            if W[i, j] != 0:
                ends[i] = j
    small = large = abs(W[0, 0]) if size > 0 else 1.0
    for k in range(size):
        best, place = abs(W[k, k]), k
        for i in range(k + 1, size):
            if W[i, k] != 0 and abs(W[i, k]) > best:
                best, place = abs(W[i, k]), i
        pivots[k] = place
        if place != k:
            last = max(ends[k], ends[place])
            for j in range(last + 1):
                W[k, j], W[place, j] = W[place, j], W[k, j]
            ends[k], ends[place] = ends[place], ends[k]
        if best == 0:
            return 0 * best
        small = best if k == 0 else min(small, best)
        large = best if k == 0 else max(large, best)
        last = ends[k]
        for i in range(k + 1, size):
            if W[i, k] != 0:
                f = W[i, k] / W[k, k]
                W[i, k] = f
                for j in range(k + 1, last + 1):
                    W[i, j] -= f * W[k, j]
                ends[i] = max(ends[i], last)
    return small / large


@helper
def solve(W, pivots, ends, R, width):
    """Solve for `width` right sides R (n, …) in place, side by side in each row."""
    size = W.shape[0]
    for k in range(size):
        place = pivots[k]
        if place != k:
            for c in range(width):
                R[k, c], R[place, c] = R[place, c], R[k, c]
    for k in range(size):
        for i in range(k + 1, size):
            f = W[i, k]
            if f != 0:
                for c in range(width):
                    R[i, c] -= f * R[k, c]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, ends[k] + 1):
            f = W[k, j]
            if f != 0:
                for c in range(width):
                    R[k, c] -= f * R[j, c]
        f = 1 / W[k, k]
        for c in range(width):
            R[k, c] *= f
