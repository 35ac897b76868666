"""Arguments as arrays: one scalar type, the shape that the question needs, finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.errors import InputError


def numbers(name: str, value: Any) -> np.ndarray:
    """An array of float64, complex128 or objects (symbols).

    Raises
    ------
    InputError
        If it is no array of numbers.
    """
    try:
        a = np.asarray(value)
    except ValueError as ragged:
        raise InputError(
            f"Expected `{name}` to be an array of numbers, got a ragged list: {ragged}."
        ) from None
    if a.dtype == np.float64 or a.dtype == np.complex128:
        return a
    if a.dtype.kind in "fiu":
        return a.astype(np.float64)
    if a.dtype.kind == "c":
        return a.astype(np.complex128)
    if a.dtype.kind == "O" and not any(x is None or isinstance(x, str | list | dict) for x in a.flat):
        return a
    raise InputError(f"Expected `{name}` to be an array of numbers, got {_shown(value)}.")


def trailing(name: str, value: Any, *shape: int, finite: bool = True) -> np.ndarray:
    """An array whose last axes have the given lengths; whatever stands in front is batch.

    Raises
    ------
    InputError
        For another shape, or entries that are not finite.
    """
    a = numbers(name, value)
    if a.ndim < len(shape) or a.shape[a.ndim - len(shape) :] != shape:
        wanted = ", ".join(["...", *map(str, shape)])
        raise InputError(
            f"Expected `{name}` to have shape ({wanted}), got {a.shape}.", expected=shape, got=a.shape
        )
    if finite and a.dtype != object and not np.isfinite(a).all():
        bad = np.argwhere(~np.isfinite(a))
        where = ", ".join(map(str, map(tuple, bad[:4].tolist())))
        raise InputError(
            f"Expected `{name}` to be finite, got {a[tuple(bad[0])]} at {where}"
            f"{' …' if len(bad) > 4 else ''} ({len(bad)} of {a.size} entries)."
        )
    return a


def broadcast_batches(**batches: tuple[int, ...]) -> tuple[int, ...]:
    """Common batch shape of named arguments.

    Raises
    ------
    InputError
        If they do not go together.
    """
    try:
        return np.broadcast_shapes(*batches.values())
    except ValueError:
        shown = ", ".join(f"`{name}` {shape}" for name, shape in batches.items())
        raise InputError(f"Batch shapes do not broadcast: {shown}.") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "…"
