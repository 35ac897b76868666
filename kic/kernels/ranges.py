"""Contiguous ranges of one long array, and vectors with strided components in it.

Every index goes through `at`: loops over nonnegative indices are vectorized.
"""

from __future__ import annotations

from kic.kernels.functions import at
from kic.kernels.jit import inlined


@inlined
def vector_at(Z, place, stride):
    """Return the vector whose components are a stride apart."""
    p, s = at(place), at(stride)
    return (Z[p], Z[p + s], Z[p + s + s])


@inlined
def put_at(Z, place, stride, v):
    """Write a vector whose components are a stride apart."""
    p, s = at(place), at(stride)
    Z[p] = v[0]
    Z[p + s] = v[1]
    Z[p + s + s] = v[2]


@inlined
def accumulate(t, place, stride, v):
    """Add a vector to one whose components are a stride apart."""
    p, s = at(place), at(stride)
    t[p] += v[0]
    t[p + s] += v[1]
    t[p + s + s] += v[2]


@inlined
def clear_range(t, start, count):
    """Set a range to zero."""
    i = at(start)
    for p in range(at(count)):
        t[i + p] = 0


@inlined
def copy_range(t, start, Z, place, count):
    """Copy a range of Z."""
    i, k = at(start), at(place)
    for p in range(at(count)):
        t[i + p] = Z[k + p]


@inlined
def add_range(t, start, f, Z, place, count):
    """Add f times a range of Z."""
    i, k = at(start), at(place)
    for p in range(at(count)):
        t[i + p] += f * Z[k + p]


@inlined
def scale_range(t, start, f, Z, place, count):
    """Write f times a range of Z."""
    i, k = at(start), at(place)
    for p in range(at(count)):
        t[i + p] = f * Z[k + p]
