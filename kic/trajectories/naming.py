"""Names of coordinates that move in time: their numbers come by name or bare, and go to `Mechanism.at`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.arrays import as_numbers, reals
from kic.errors import InputError, shown, unknown


@dataclass(frozen=True)
class Naming:
    """M coordinates: by name, or bare and in the order of the mechanism.

    Attributes
    ----------
    names : tuple of str
        Joints, points or rows; none means the coordinates of the mechanism.
    widths : tuple of int
        How many numbers stand for each name; 0 for one number that is no list.
    size : int
        Number M of coordinates.
    """

    names: tuple[str, ...]
    widths: tuple[int, ...]
    size: int

    @property
    def labels(self) -> tuple[str, ...]:
        """A word for each coordinate, for messages and tables."""
        if not self.names:
            return tuple(f"coordinate {k + 1}" for k in range(self.size))
        return tuple(
            f"{name}[{k}]" if width else name
            for name, width in zip(self.names, self.widths, strict=True)
            for k in range(max(width, 1))
        )

    def inputs(self, q: np.ndarray) -> Any:
        """Positions (..., M) as `Mechanism.at` takes them: by name, or bare where there are none."""
        if not self.names:
            return q
        return {name: q[..., at] if width else q[..., at.start] for name, width, at in self._places()}

    def _places(self) -> list[tuple[str, int, slice]]:
        ends = np.cumsum([max(width, 1) for width in self.widths]).tolist()
        starts = [0, *ends][:-1]
        return [
            (name, width, slice(a, b))
            for name, width, a, b in zip(self.names, self.widths, starts, ends, strict=True)
        ]

    def array(self, key: str, value: Any, front: tuple[int, ...] = ()) -> np.ndarray:
        """Finite numbers (*front, M) from a dict of all names, or a bare array; 0 for None."""
        if value is None:
            return np.zeros((*front, self.size))
        if isinstance(value, Mapping):
            self._same_names(key, value)
            parts = []
            for name, width, _ in self._places():
                shape = (*front, width) if width else front
                parts.append(_finite(f"{key}[{name!r}]", value[name], shape).reshape(*front, -1))
            return np.concatenate(parts, axis=-1)
        if self.names:
            raise InputError(
                f"Expected `{key}` by name, as the others, {{{', '.join(map(repr, self.names))}}}, got "
                f"{shown(value)}."
            )
        return _finite(key, value, (*front, self.size))

    def _same_names(self, key: str, value: Mapping[str, Any]) -> None:
        wanted = ", ".join(self.names) or "none: the others came as bare arrays"
        if not self.names or set(value) != set(self.names):
            raise InputError(
                f"Expected `{key}` for the names of the others ({wanted}), got {', '.join(map(str, value))}."
            )

    def bounds(self, key: str, value: Any, rest: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits (M,); where there must be room for `rest`, with 0 between them.

        A number is the limit of the size of all, (M,) numbers those of each, (2, M) lower and upper ones; a
        dict gives a number, a pair, or (w,) or (2, w) numbers for some names, and leaves others free.
        """
        if not isinstance(value, Mapping):
            return _pair(key, value, self.size, rest)
        lower, upper = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        places = {name: (width, at) for name, width, at in self._places()}
        for name, limit in value.items():
            if name not in places:
                raise unknown("coordinate", name, f"limits of {key}", self.names)
            width, at = places[name]
            a = as_numbers(limit)
            if not width and a is not None and a.shape == (2,):
                limit = a[:, None]
            lower[at], upper[at] = _pair(f"{key}[{name!r}]", limit, max(width, 1), rest)
        return lower, upper


def naming(key: str, value: Any, rank: int = 0) -> Naming:
    """Names and widths of what is given first: a dict of values of a rank, or of rank + 1; or an array."""
    if isinstance(value, Mapping):
        if not value or not all(isinstance(name, str) for name in value):
            raise InputError(f"Expected `{key}` to give coordinates by name, got {shown(value)}.")
        widths = []
        for name, given in value.items():
            a = as_numbers(given)
            if a is None or a.ndim not in (rank, rank + 1) or 0 in a.shape:
                shapes = ("a number", "a list of numbers") if rank == 0 else ("(K,)", "(K, w) numbers")
                raise InputError(
                    f"Expected `{key}[{name!r}]` to be {shapes[0]} or {shapes[1]}, got {shown(given)}."
                )
            widths.append(0 if a.ndim == rank else a.shape[-1])
        return Naming(tuple(value), tuple(widths), sum(max(w, 1) for w in widths))
    a = as_numbers(value)
    if a is None or a.ndim != rank + 1 or 0 in a.shape:
        shape = "(M,)" if rank == 0 else "(K, M)"
        raise InputError(
            f"Expected `{key}` to be numbers {shape}, or a dict of them by name, got {shown(value)}.", key=key
        )
    return Naming((), (), a.shape[-1])


def _finite(key: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    a = reals(value)
    if a is None or a.shape != shape or a.dtype != np.float64:
        raise InputError(
            f"Expected `{key}` to be finite numbers of shape {shape}, got "
            f"{shown(value) if a is None else a.shape}.",
            key=key,
        )
    return a


def _pair(key: str, value: Any, size: int, rest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits (size,); infinite ones are none."""
    a = as_numbers(value)
    if a is None or a.dtype != np.float64 or a.shape not in ((), (size,), (2, size)) or np.isnan(a).any():
        raise InputError(
            f"Expected `{key}` to be a number, ({size},) numbers, or (2, {size}) lower and upper ones, got "
            f"{shown(value)}.",
            key=key,
        )
    lower, upper = a if a.shape == (2, size) else (-np.broadcast_to(a, size), np.broadcast_to(a, size))
    if not (lower < upper).all() or (rest and not ((lower <= 0) & (upper >= 0)).all()):
        raise InputError(
            f"Expected limits of `{key}` to be positive, or a lower one below an upper one"
            f"{' with 0 between them' if rest else ''}, got {shown(value)}.",
            key=key,
        )
    return lower, upper
