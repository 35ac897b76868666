"""Factorization and solution of small linear systems: LU with threshold pivoting, and L D Lᵀ.

L D Lᵀ needs no square roots and works for every scalar type.
"""

from __future__ import annotations

from kic.kernels.functions import at, share_of
from kic.kernels.jit import helper, inlined
from kic.kernels.ranges import add_range, scale_range

# threshold pivoting: exchange rows only for a pivot that is larger by this factor
PIVOT_SWAP_FACTOR = 10


@helper
def factor(W, pivots, ends):
    """Factor W (n, n) in place; return the ratio of the smallest pivot to the largest entry, 0 if singular.

    All pivots may be small if rows are not exchanged, so the largest pivot does not measure the size of W.
    `pivots` (n,) receives the row exchanged at each step, `ends` (n,) the last nonzero column of each row.
    """
    size, large = W.shape[0], 0.0
    for i in range(size):
        pivots[i] = i
        ends[i] = 0
        for j in range(size):
            if W[i, j] != 0:
                ends[i] = j
                large = max(large, abs(W[i, j]))
    small = large
    for k in range(size):
        best, place = abs(W[k, k]), k
        for i in range(k + 1, size):
            # the order of the rows preserves sparsity: exchange only for a much larger pivot
            if W[i, k] != 0 and abs(W[i, k]) > max(best, PIVOT_SWAP_FACTOR * abs(W[k, k])):
                best, place = abs(W[i, k]), i
        pivots[k] = place
        if place != k:
            last = max(ends[k], ends[place])
            for j in range(last + 1):
                W[k, j], W[place, j] = W[place, j], W[k, j]
            ends[k], ends[place] = ends[place], ends[k]
        if not best > 0:  # also catches NaN
            return 0.0
        small = min(small, best)
        last, inverse = ends[k], 1 / W[k, k]
        for i in range(k + 1, size):
            if W[i, k] != 0:
                f = W[i, k] * inverse
                W[i, k] = f
                for j in range(k + 1, last + 1):
                    W[i, j] -= f * W[k, j]
                ends[i] = max(ends[i], last)
    return small / large if size > 0 else 1.0


@helper
def solve(W, pivots, ends, R, width):
    """Solve for `width` right sides R (n width,) in place; each row holds them side by side."""
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


@helper
def solve_transposed(W, pivots, ends, r):
    """Solve Wᵀ x = r (n,) in place, with the same factors."""
    size = W.shape[0]
    for k in range(size):
        r[k] *= 1 / W[k, k]
        for j in range(k + 1, ends[k] + 1):
            r[j] -= W[k, j] * r[k]
    for k in range(size - 1, 0, -1):
        for i in range(k):
            f = W[k, i]
            if f != 0:
                r[i] -= f * r[k]
    for k in range(size - 1, -1, -1):
        place = pivots[k]
        if place != k:
            r[k], r[place] = r[place], r[k]


@inlined
def factor_symmetric(Z, start, size):
    """Factor the (size, size) matrix at `start` in place, from its lower half: L below, D on the diagonal.

    Returns the smallest ratio of a pivot to its diagonal entry: near zero for dependent rows.
    """
    least = 1.0
    for i in range(size):
        row = start + i * size
        d = own = Z[row + i]
        for j in range(i):
            other = start + j * size
            x = Z[row + j]
            for k in range(j):
                x -= Z[row + k] * Z[other + k]
            Z[row + j] = x  # L times D until the row is complete
        for j in range(i):
            x = Z[row + j]
            Z[row + j] = x / Z[start + j * size + j]
            d -= x * Z[row + j]
        Z[row + i] = share_of(d, own)
        share = abs(d) / abs(own) if abs(own) > 0 else 0.0
        if not share >= least:  # also catches NaN
            least = share
    return least


@inlined
def solve_symmetric(Z, start, size, R, place, width):
    """Solve for `width` right sides R (size, width) at `place`, in place."""
    for i in range(size):
        for k in range(i):
            add_range(R, place + i * width, -Z[start + i * size + k], R, place + k * width, width)
    for i in range(size):
        scale_range(R, place + i * width, 1 / Z[start + i * size + i], R, place + i * width, width)
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            add_range(R, place + i * width, -Z[start + k * size + i], R, place + k * width, width)
