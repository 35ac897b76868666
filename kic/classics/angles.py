"""Angles of planar arms: their cosines and sums, for machine numbers and symbols, and their turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.arrays import trailing
from kic.errors import InputError, shown
from kic.kernels.functions import cosine, sine


def cos(a: Any) -> np.ndarray:
    """Cosines of machine numbers or symbols."""
    return np.cos(a) if a.dtype != object else np.asarray(np.frompyfunc(cosine, 1, 1)(a), dtype=object)


def sin(a: Any) -> np.ndarray:
    """Sines of machine numbers or symbols."""
    return np.sin(a) if a.dtype != object else np.asarray(np.frompyfunc(sine, 1, 1)(a), dtype=object)


def sin_cos(angle: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of real or complex numbers, or of symbols.

    Examples
    --------
    >>> sin_cos([0.0])
    (array([0.]), array([1.]))
    """
    a = np.asarray(angle)  # the sum of two symbols is none
    return sin(a), cos(a)


def beyond(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Sums over each entry and all after it."""
    return np.flip(np.cumsum(np.flip(x, axis), axis=axis), axis)


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Angles in (−π, π]; those that lie there are not touched."""
    return angle - 2 * np.pi * np.ceil((angle - np.pi) / (2 * np.pi)) + 0.0


def real(name: str, value: Any, size: int) -> np.ndarray:
    """Finite real numbers (..., size): what a question with branches takes.

    Raises
    ------
    InputError
        For another shape, complex numbers or symbols, or entries that are not finite.
    """
    a = trailing(name, value, size)
    if a.dtype != np.float64:
        raise InputError(
            f"Expected `{name}` to be real numbers here, got {shown(value)}. Branches and directions have no "
            "meaning for complex numbers and symbols.",
            name=name,
        )
    return a
