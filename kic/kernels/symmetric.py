"""Small symmetric positive systems: L D Lᵀ without roots, which every scalar can follow, and solutions."""

from kic.kernels.compiled import helper
from kic.kernels.ranges import add_range, scale_range


@helper
def factor_symmetric(Z, start, size):
    """Factor the (size, size) matrix at `start` in place, from its lower half: L below, D on the diagonal.

    Returns the smallest share of its diagonal that a pivot keeps: near zero, the rows depend on one another.
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
            Z[row + j] = x  # L times D until the row is done
        for j in range(i):
            x = Z[row + j]
            Z[row + j] = x / Z[start + j * size + j]
            d -= x * Z[row + j]
        Z[row + i] = d
        share = abs(d) / abs(own) if abs(own) > 0 else 0.0
        if not share >= least:  # nor is it a number that is none
            least = share
    return least


@helper
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
