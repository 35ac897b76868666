"""The few functions beyond + - * / that kernels need, for machine numbers and symbolic objects."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from kic.kernels.jit import HELPER_OPTIONS, compiled_by


def cosine(x):
    """Return the cosine of a machine number, or of any object with a method or library function for it."""
    return _of_object("cos", x)


def sine(x):
    """Return the sine."""
    return _of_object("sin", x)


def root(x):
    """Return the square root."""
    return _of_object("sqrt", x)


def at(n):
    """Return a nonnegative index: compiled, it avoids the test for negative indices."""
    return n


def has_nonfinite(t):
    """Return True if an array (n,) of numbers has a NaN or an infinite member; False for objects."""
    return t.dtype.kind != "O" and not np.isfinite(t).all()


def _of_object(name, x):
    """Apply the method of the scalar itself, else the function of its library, else that of NumPy."""
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


@overload(has_nonfinite, jit_options=HELPER_OPTIONS)
def _has_nonfinite(t):
    def found(t):
        # four sums, which the processor adds side by side
        n = t.shape[0]
        a = b = c = d = 0 * t[0] if n > 0 else t.dtype.type(0)
        k = n // 4 * 4
        for i in range(0, k, 4):
            a += 0 * t[i]
            b += 0 * t[i + 1]
            c += 0 * t[i + 2]
            d += 0 * t[i + 3]
        for i in range(k, n):
            a += 0 * t[i]
        return a + b + c + d != 0

    return found
