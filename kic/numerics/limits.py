"""Limits of efforts, rates and accelerations as arguments: magnitudes or pairs, in order or by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kic.errors import InputError, invalid, unknown
from kic.numerics.arrays import as_numbers


def bounds(
    key: str,
    value: Any,
    labels: tuple[str, ...],
    places: Mapping[str, slice] | None = None,
    *,
    rest: bool = False,
    batch: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper limits (A,); infinite values mean no limit.

    A scalar bounds all magnitudes, (A,) numbers bound one each, and (2, A) or (2, 1) are lower and upper
    limits. A dict gives a scalar or a pair by name; a name of w labels, at its `places`, takes (w,) or (2, w)
    numbers. Other labels are unlimited. With `rest`, 0 must lie within the limits. With `batch`, (2, ..., A)
    give limits (..., A), and a lower limit may equal the upper limit.

    Raises
    ------
    UnknownNameError
        If a name is not among the labels or places.
    InputError
        If a shape or number is wrong, or limits are in the wrong order, with their label as `name`.
    """
    if isinstance(value, Mapping):
        at = {name: slice(k, k + 1) for k, name in enumerate(labels)} if places is None else places
        pairs = np.stack([np.full(len(labels), -np.inf), np.full(len(labels), np.inf)])
        for name, limit in value.items():
            if name not in at:
                raise unknown("coordinate", name, key, at)
            width = at[name].stop - at[name].start
            pairs[:, at[name]] = _pairs(key, limit, width, name=name)
    else:
        pairs = _pairs(key, value, len(labels), batch=batch)
    lower, upper = pairs
    right = (lower <= upper) & (lower < np.inf) & (upper > -np.inf) if batch else lower < upper
    if rest:
        right &= (lower <= 0) & (upper >= 0)
    if not right.all():
        k = tuple(np.argwhere(~right)[0])
        raise InputError(
            f"Limits of `{key}` must be positive, or a lower one below an upper one"
            f"{' with 0 between them' if rest else ''}, got {lower[k]:g} to {upper[k]:g} for "
            f"'{labels[k[-1]]}'. Give magnitudes, or pairs with the lower limit first.",
            key=key,
            got=(lower[k], upper[k]),
            name=labels[k[-1]],
        )
    return lower, upper


def _pairs(key: str, value: Any, size: int, *, batch: bool = False, name: str = "") -> np.ndarray:
    """Return lower and upper limits (2, ..., size) from an array, or from the entry of a name."""
    a = as_numbers(value)
    if a is not None and a.dtype == np.float64 and not np.isnan(a).any():
        if name and size == 1 and a.shape == (2,):
            a = a[:, None]
        if a.shape in ((), (size,)):
            a = np.broadcast_to(a, size)
            return np.stack([-a, a])
        if a.shape[0] == 2 and a.shape[-1] in (1, size) and (a.ndim == 2 or (batch and a.ndim > 2)):
            return np.broadcast_to(a, (*a.shape[:-1], size))
    arrays = "(2,)" if name and size == 1 else f"({size},) numbers or ({'2, ...' if batch else '2'}, {size})"
    rule = f"must be a number, or {arrays} lower and upper limits{f' for {name!r}' * bool(name)}"
    raise invalid(key, rule, value, name=name)
