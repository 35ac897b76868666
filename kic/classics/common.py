"""Helpers that the closed forms share: sines and cosines, angles, and checks of arguments and fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.description.validation import assign, number
from kic.errors import ModelError, invalid
from kic.kernels.functions import cosine, sine
from kic.numerics.arrays import as_array

# |sin theta2| at or below which the statics have no inverse; limits their condition to about 1e12
SINGULAR_SINE_ATOL = 1e-12


def sin_cos(angle: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sine and cosine of real numbers, complex numbers or symbols."""
    a = np.asarray(angle)  # the sum of two symbols is a scalar without a dtype
    if a.dtype != object:
        return np.sin(a), np.cos(a)
    s, c = (np.asarray(np.frompyfunc(f, 1, 1)(a), dtype=object) for f in (sine, cosine))
    return s, c


def wrap_to_pi(angle: np.ndarray) -> np.ndarray:
    """Return angles in (−π, π]; angles in this interval are returned unchanged."""
    return angle - 2 * np.pi * np.ceil((angle - np.pi) / (2 * np.pi)) + 0.0


def real_array(name: str, value: Any, size: int) -> np.ndarray:
    """Return finite real numbers (..., size), or raise `InputError`."""
    a = as_array(name, value, size)
    if a.dtype != np.float64:
        raise invalid(
            name,
            "must be real",
            value,
            "Solution branches and directions are undefined for complex numbers and symbols.",
        )
    return a


def check_fields(
    arm: Any, positive: Iterable[str] = (), nonnegative: Iterable[str] = (), finite: Iterable[str] = ()
) -> None:
    """Convert fields of a frozen dataclass to finite floats and check their signs."""
    owner = type(arm).__name__
    for keys, minimum in ((positive, 0.0), (nonnegative, 0.0), (finite, None)):
        for key in keys:
            value = number(owner, key, getattr(arm, key), minimum)
            if keys is positive and not value:
                message = f"{owner}: `{key}` must be positive, got 0. Give the link a length."
                raise ModelError(message, key=key)
            assign(arm, **{key: value})
