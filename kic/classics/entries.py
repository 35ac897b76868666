"""Which entries of a part of the dynamics are meant: at some joints, by the motion of some joints."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.errors import InputError, shown, unknown

PARTS = ("D_tran", "D_rot", "H_tran", "H_rot", "G")
Rate = str | tuple[str, str]


def entries(
    coordinates: tuple[str, ...], part: str, at: tuple[Any, ...] | None, by: tuple[Any, ...] | None
) -> np.ndarray:
    """Entries of a part, as a mask of the part's shape; `None` stands for all coordinates.

    Parameters
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    part : str
        One of `PARTS`.
    at, by : tuple of names (or of pairs of rates), or None
        As in `SplitDynamics.without`.

    Returns
    -------
    (M,), (M, M) or (M, M, M) bool ndarray

    Raises
    ------
    UnknownNameError
        For a coordinate that is not there.
    InputError
        If G is asked by joints, D by pairs of rates, or something is no name.

    Examples
    --------
    >>> entries(("A", "B"), "D_rot", ("A",), ("B",)).tolist()
    [[False, True], [True, False]]
    """
    rows = _places(coordinates, "at", at)
    if part == "G":
        if by is not None:
            raise InputError("G comes by no motion: leave `by` out, and say with `at` at which joints.")
        return rows
    if part[0] == "D":
        pairs = np.logical_and.outer(rows, _places(coordinates, "by", by))
        return pairs | pairs.T
    return np.logical_and.outer(rows, _rates(coordinates, by))


def _places(coordinates: tuple[str, ...], argument: str, names: tuple[Any, ...] | None) -> np.ndarray:
    """Which coordinates (M,) are named; all if there are no names."""
    places = np.full(len(coordinates), names is None)
    for name in names or ():
        places[_place(coordinates, argument, name)] = True
    return places


def _place(coordinates: tuple[str, ...], argument: str, name: Any) -> int:
    if not isinstance(name, str):
        raise InputError(
            f"Expected names of coordinates in `{argument}`, got {shown(name)}. Pairs of rates are for `by` "
            "of H_tran and H_rot."
        )
    if name not in coordinates:
        raise unknown("coordinate", name, "split dynamics", coordinates)
    return coordinates.index(name)


def _rates(coordinates: tuple[str, ...], by: tuple[Any, ...] | None) -> np.ndarray:
    """Which pairs of rates (M, M) are named, either way round: all with a rate, or one pair."""
    pairs = np.full((len(coordinates),) * 2, by is None)
    for one in by or ():
        if isinstance(one, tuple) and len(one) == 2:
            p, q = (_place(coordinates, "by", name) for name in one)
            pairs[p, q] = pairs[q, p] = True
        else:
            p = _place(coordinates, "by", one)
            pairs[p], pairs[:, p] = True, True
    return pairs


def listed(names: Any) -> tuple[Any, ...]:
    """One name or several, as a tuple."""
    several = np.iterable(names) and not isinstance(names, str)
    return tuple(names) if several else (names,)


def said(word: str, names: tuple[Any, ...] | None) -> str:
    """At or by what, in words; pairs of rates with a dot between them."""
    if names is None:
        return ""
    if not names:
        return f" {word} no joint"
    return f" {word} " + ", ".join("·".join(n) if isinstance(n, tuple) else n for n in names)
