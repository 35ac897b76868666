"""Functions beyond + - * / that kernels need, for machine numbers and symbolic objects."""

from __future__ import annotations

import numpy as np

from kic.kernels.jit import compiled_by, helper

# bit masks of a float64: the exponent and the sign
_EXPONENT, _SIGN = np.uint64(0x7FF << 52), np.uint64(1 << 63)
# addends that carry the exponents of non-finite numbers, or of numbers of at least 2^100, into the sign bit
_NONFINITE, _LARGE = np.uint64(1 << 52), np.uint64((0x800 - 0x3FF - 100) << 52)


def cosine(x):
    """Return the cosine of a number, or of an object with a method or library function `cos`."""
    return _of_object("cos", x)


def sine(x):
    """Return the sine."""
    return _of_object("sin", x)


def root(x):
    """Return the square root."""
    return _of_object("sqrt", x)


def logarithm(x):
    """Return the natural logarithm, or the principal logarithm of a complex number."""
    return _of_object("log", x)


def at(n):
    """Return a nonnegative index, unsigned in compiled code to avoid the test for negative indices."""
    return n


def larger(a, b):
    """Return the larger of two numbers; a recording scalar `b` keeps both."""
    return b.maximum(a) if hasattr(b, "maximum") else max(a, b)


def share_of(x, whole):
    """Return x, a divisor that is small or large compared with `whole`; a recording scalar stores it."""
    return x.share_of(whole) if hasattr(x, "share_of") else x


def has_nonfinite(t):
    """Return True if an array (n,) of numbers has a NaN or an infinite entry; False for objects."""
    return t.dtype.kind != "O" and not np.isfinite(t).all()


def has_large(t):
    """Return True if an array (n,) has an entry that is at least 2^100 or not finite; False for objects."""
    return t.dtype.kind != "O" and not (np.abs(t) < 2.0**100).all()


def _of_object(name, x):
    """Apply a method of the scalar, else a function of its library, else a function of NumPy."""
    own = getattr(x, name, None)
    if own is not None:
        return own()
    library = type(x).__module__.split(".")[0]
    if library == "sympy":
        import sympy

        return getattr(sympy, name)(x)
    if library == "mpmath":
        return getattr(x.context, name)(x)
    return getattr(np, name)(x)


compiled_by(at, lambda n: np.uint64(n))
compiled_by(cosine, lambda x: np.cos(x))
compiled_by(sine, lambda x: np.sin(x))
compiled_by(root, lambda x: np.sqrt(x))
compiled_by(logarithm, lambda x: np.log(x))
compiled_by(larger, lambda a, b: max(a, b))
compiled_by(share_of, lambda x, whole: x)


@helper
def _has_exponent(t, complement):
    """Return True if adding `complement` carries the exponent of a member of t (n,) into the sign.

    The compiler vectorizes integer sums, but not floating-point sums.
    """
    carried, bits = np.uint64(0), t.view(np.uint64)
    for i in range(bits.shape[0]):
        carried |= (bits[i] & _EXPONENT) + complement
    return carried >= _SIGN


compiled_by(has_nonfinite, lambda t: _has_exponent(t, _NONFINITE))
compiled_by(has_large, lambda t: _has_exponent(t, _LARGE))
