"""Whether rates that a function states are those of its values: against differences at a few moments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kic.errors import InputError
from kic.rotations import vector_from_matrix

# value, turn (3, 3), rate, acceleration: some may be missing
Told = tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None]

# how many intervals between times are looked into, where, and how far the difference reaches in each
_LOOKS = 6
_PLACE, _REACH = 0.382, 5e-3
# rates may be off by this share of their size, by what would move the values by so little of theirs in the
# whole time, and by so many of their roundings
_SHARE, _DRIFT, _ROUNDINGS = 1e-5, 1e-8, 16 * float(np.finfo(float).eps)


def check_rates(name: str, labels: tuple[str, ...], told: Callable[[float], Told], t: np.ndarray) -> None:
    """Refuse rates that are not the slopes of the values, and accelerations that are not those of the rates.

    Central differences over two widths are taken inside a few of the intervals between times. What they
    differ by themselves, as at a kink, is not held against the function.

    Parameters
    ----------
    name : str
        Whose path it is, for messages.
    labels : tuple of str
        A word for each number of a rate.
    told : callable
        The function: value (..., a), turn, rate (..., n) and acceleration or None, of a time.
    t : (K,) ndarray
        Increasing times.

    Raises
    ------
    InputError
        With the moment, what was stated, and what the values say.
    """
    looks = np.unique(np.linspace(0, len(t) - 2, _LOOKS).round().astype(int))
    steps = np.diff(t)[looks]
    times, h = t[looks] + _PLACE * steps, _REACH * steps
    middle = [told(x) for x in times.tolist()]
    # narrow and wide pairs around each
    around = [[(told(x - w * r), told(x + w * r)) for x, r in zip(times, h, strict=True)] for w in (0.5, 1.0)]
    slow = 0.0
    stated = [[m[2] for m in middle], [m[3] for m in middle if m[3] is not None]]
    for order, (word, below) in enumerate((("rate", "values"), ("acceleration", "rates"))):
        if not stated[order]:
            break
        # a batch of values may have rates in common, or the other way round
        shape = np.broadcast_shapes(stated[order][0].shape, _change(*around[0][0], order).shape)
        said = np.stack([np.broadcast_to(a, shape) for a in stated[order]])
        size = max(slow, *(_size(m, order) for m in middle))
        slow = _DRIFT * size / float(t[-1] - t[0])
        wide = np.broadcast_to(h.reshape(-1, *[1] * (said.ndim - 1)), said.shape)
        one, two = (
            np.stack([np.broadcast_to(_change(a, b, order), shape) for a, b in pairs]) / (w * wide)
            for w, pairs in zip((1.0, 2.0), around, strict=True)
        )
        slope = (4 * one - two) / 3
        allowed = 4 * np.abs(one - two) + _ROUNDINGS * size / wide + slow
        allowed = allowed + _SHARE * np.maximum(np.abs(said), np.abs(slope)).max(axis=0)
        off = np.abs(slope - said) - allowed
        if off.max(initial=-1.0) > 0:
            at = np.unravel_index(int(np.argmax(off)), off.shape)
            time, width = float(times[at[0]]), float(h[at[0]])
            raise InputError(
                f"The {word} that the path of '{name}' states contradicts its {below}: for {labels[at[-1]]} "
                f"at t = {time:.6g} it says {said[at]:.6g}, where the {below} within {width:.2g} change by "
                f"{slope[at]:.6g} per unit of time. Return the derivative, or leave it out.",
                name=name,
                time=time,
                stated=float(said[at]),
                found=float(slope[at]),
            )


def _change(before: Told, after: Told, order: int) -> np.ndarray:
    """From one to the other, turns as rotation vectors."""
    if order:
        change: np.ndarray = after[2] - before[2]
        return change
    moved: np.ndarray = after[0] - before[0]
    if after[1] is None or before[1] is None:
        return moved
    return np.concatenate([moved, vector_from_matrix(after[1] @ before[1].swapaxes(-1, -2))], axis=-1)


def _size(told: Told, order: int) -> float:
    """How large the numbers are of which differences are taken."""
    value, turn, rate, _ = told
    if order:
        return float(np.abs(rate).max(initial=0.0))
    return max(float(np.abs(value).max(initial=0.0)), 0.0 if turn is None else 1.0)
