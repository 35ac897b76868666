"""The few functions beyond + - * / that kernels need, for machine numbers and for symbolic objects."""

from __future__ import annotations

import numpy as np
from numba.extending import overload


def cosine(x):
    """Cosine of a machine number, or of any object that knows its own."""
    return _of_object("cos", x)


def sine(x):
    """Sine."""
    return _of_object("sin", x)


def root(x):
    """Square root."""
    return _of_object("sqrt", x)


def at(n):
    """An index that is never negative: compiled, it spares the test for counting from the end."""
    return n


def _of_object(name, x):
    """Method of the scalar itself, else the function of the library that made it, else NumPy's."""
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


@overload(at)
def _at(n):
    return lambda n: np.uint64(n)


@overload(cosine)
def _cosine(x):
    return lambda x: np.cos(x)


@overload(sine)
def _sine(x):
    return lambda x: np.sin(x)


@overload(root)
def _root(x):
    return lambda x: np.sqrt(x)
