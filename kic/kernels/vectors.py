"""Three-vectors as tuples, the basic operations of all kernels.

They compile into Numba kernels, and run as plain Python on any scalar that supports ``+ - *``.
"""

from __future__ import annotations

from kic.kernels.functions import at
from kic.kernels.jit import helper


@helper
def take(a, n, k):
    """Return the vector in row n from column k on."""
    i = at(n)
    return (a[i, k], a[i, k + 1], a[i, k + 2])


@helper
def put(a, n, k, v):
    """Write a vector into row n from column k on."""
    i = at(n)
    a[i, k] = v[0]
    a[i, k + 1] = v[1]
    a[i, k + 2] = v[2]


@helper
def add_to(a, n, k, v):
    """Add a vector to the one in row n from column k on."""
    put(a, n, k, add(take(a, n, k), v))


@helper
def dot(a, b):
    """Return the scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@helper
def cross(a, b):
    """Return the vector product."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@helper
def add(a, b):
    """Return the sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@helper
def sub(a, b):
    """Return the difference."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@helper
def scale(x, a):
    """Return x times a vector."""
    return (x * a[0], x * a[1], x * a[2])


@helper
def half(a):
    """Return half of a vector."""
    return (a[0] / 2, a[1] / 2, a[2] / 2)


@helper
def axpy(x, a, b):
    """Return x a + b."""
    return (x * a[0] + b[0], x * a[1] + b[1], x * a[2] + b[2])


@helper
def turn(a, n, k, v):
    """Multiply v by the matrix stored row-major in row n from column k on."""
    return (dot(take(a, n, k), v), dot(take(a, n, k + 3), v), dot(take(a, n, k + 6), v))


@helper
def turn_back(a, n, k, v):
    """Multiply v by the transpose of the matrix stored row-major in row n from column k on."""
    x, y, z = take(a, n, k), take(a, n, k + 3), take(a, n, k + 6)
    return axpy(v[0], x, axpy(v[1], y, scale(v[2], z)))


@helper
def symmetric(j, v):
    """Multiply v by a symmetric matrix (xx, yy, zz, xy, xz, yz)."""
    return (
        j[0] * v[0] + j[3] * v[1] + j[4] * v[2],
        j[3] * v[0] + j[1] * v[1] + j[5] * v[2],
        j[4] * v[0] + j[5] * v[1] + j[2] * v[2],
    )
