"""Scales of rows and columns: characteristic sizes with round-off, and factors between lengths and angles.

Round-off in a matrix looks like motion: a column that should be zero has the direction of its last digits.
`Scaling` therefore compares entries with the sizes of the mechanism: 1 for angles, the characteristic length
for lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription, declared_limits
from kic.description.units import row_unit
from kic.errors import InputError, invalid
from kic.numerics.arrays import is_scalar, ordinary, reals
from kic.numerics.limits import bounds
from kic.numerics.tolerances import EPS


@dataclass(frozen=True)
class Scaling:
    """Sizes of the rows and columns of coefficients, and the error of their scaled entries."""

    # (P,) and (M,): characteristic sizes. `G * columns / rows[:, None]` has no units.
    rows: np.ndarray
    columns: np.ndarray
    # float or (...): estimated absolute error of these scaled entries, for each member of the batch
    error: Any = EPS

    def scaled(self, G: np.ndarray) -> np.ndarray:
        """Return the real part of G (..., P, M) without units."""
        return np.real(G) * (self.columns / self.rows[:, None])

    def errors(self) -> np.ndarray:
        """Return the errors (..., P, M) of the entries of G, with units."""
        return np.asarray(self.error)[..., None, None] * (self.rows[:, None] / self.columns)

    def take(self, rows: list[int] | None, columns: list[int] | None) -> Scaling:
        """Return the scaling of selected rows and columns; None for all."""
        return Scaling(
            self.rows if rows is None else self.rows[rows],
            self.columns if columns is None else self.columns[columns],
            self.error,
        )

    def inverse(self, inverse: np.ndarray) -> Scaling:
        """Return the scaling of an inverse (..., M, P) of the scaled matrix.

        The error is that of entries near the smallest singular value. The largest entries of an
        ill-conditioned inverse have larger errors; these cannot hide a singularity.
        """
        other = Scaling(self.columns, self.rows)
        return replace(other, error=self.error * np.maximum(1.0, other._size(inverse)))

    def _size(self, G: np.ndarray) -> Any:
        """Return a bound (...) of the row and column sums of the scaled G."""
        if G.dtype == object or not G.shape[-1] * G.shape[-2]:
            return 1.0
        return np.abs(self.scaled(G)).max(axis=(-1, -2)) * max(G.shape[-2:])


def composed(outer: Scaling | None, G: np.ndarray, inner: Scaling | None, A: np.ndarray) -> Scaling | None:
    """Return the scaling of G A from those of G (..., P, N) and A (..., N, M); None if both are None.

    A matrix without scaling counts as exact; its sizes of rows or columns follow from the other matrix.
    """
    if outer is None:
        if inner is None:
            return None
        outer = Scaling(row_sizes(G, inner.rows), inner.rows)
    if inner is None:
        inner = Scaling(outer.columns, 1 / row_sizes(np.swapaxes(A, -1, -2), 1 / outer.columns))
    if not outer.columns.size:
        return Scaling(outer.rows, inner.columns)
    between = replace(inner, rows=outer.columns)
    error = inner.error * float((inner.rows / outer.columns).max())
    return Scaling(
        outer.rows, inner.columns, outer.error * between._size(A) + np.maximum(1.0, outer._size(G)) * error
    )


def stacked(parts: Sequence[tuple[Scaling | None, np.ndarray]]) -> Scaling | None:
    """Return the scaling of concatenated rows; None if no part has a scaling.

    The first scaling sets the sizes of the columns. These set the sizes of rows without scaling.
    """
    columns = next((scaling.columns for scaling, _ in parts if scaling is not None), None)
    if columns is None:
        return None
    rows, error = [], EPS
    for scaling, G in parts:
        if scaling is None:
            rows.append(row_sizes(G, columns))
        else:
            rows.append(scaling.rows)
            change = float((columns / scaling.columns).max(initial=1.0))
            error = np.maximum(error, scaling.error * change)
    return Scaling(np.concatenate(rows), columns, error)


def row_sizes(G: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the sizes (P,) of the rows of an exact G (..., P, M) from the sizes of its columns."""
    if G.dtype == object:
        return np.ones(G.shape[-2])
    size = (np.abs(np.real(G)) * columns).max(axis=-1, initial=0.0).reshape(-1, G.shape[-2])
    size = np.where(np.isfinite(size), size, 0.0).max(axis=0, initial=0.0)
    return np.where(size > 0, size, 1.0)


def row_factors(description: MechanismDescription, rows: tuple[str, ...], length: Any) -> np.ndarray:
    """Return factors (P,) that bring rows to one unit: `length` for angular rows, 1 for others.

    Raise `InputError` if there are rows of both kinds and no length, or the length is not positive.
    """
    units = [row_unit(description, row) for row in rows]
    if length is None:
        remedy = (
            f"Give `length` (in {description.units.length}): angular rows times it are arc lengths at "
            "that radius. Or request rows of one unit."
        )
        _check_one_unit("Rows", rows, units, remedy)
        return np.ones(len(rows))
    found = reals(length)
    if found is None or found.ndim or found <= 0:
        raise invalid("length", "must be a positive number", length)
    return np.where(np.array(units) == "rad", ordinary("length", found), 1.0)


def coordinate_limits(
    description: MechanismDescription, columns: tuple[str, ...], limits: Any, key: str
) -> np.ndarray:
    """Return `rate_limits` or `effort_limits` (M,), given by name or in order; 1 by default.

    Raise `InputError` if coordinates have different units and no limits, or limits are missing or not
    magnitudes. Raise `UnknownNameError` for a name that is not a coordinate.
    """
    if limits is None or is_scalar(limits):
        units = [row_unit(description, column) for column in columns]
        _check_one_unit("Coordinates", columns, units, f"Give `{key}` as {{name: limit}}.", key)
        limits = 1.0 if limits is None else limits
    lower, upper = bounds(key, declared_limits(description, key, limits, columns), columns)
    missing = tuple(name for name, x in zip(columns, upper, strict=True) if x == np.inf)
    if missing:
        message = f"`{key}` must have an entry for each coordinate; missing: {', '.join(missing)}."
        raise InputError(message, key=key, missing=missing)
    if (lower != -upper).any():
        raise invalid(
            key, f"must be magnitudes for {', '.join(columns)}", limits, "An ellipsoid is symmetric."
        )
    return ordinary(key, upper)


def _check_one_unit(
    kind: str, names: tuple[str, ...], units: list[str], remedy: str, key: str = "length"
) -> None:
    """Raise an error unless all names have the same unit."""
    if len(set(units)) > 1:
        listed = ", ".join(f"{name} ({unit})" for name, unit in zip(names, units, strict=True))
        message = f"{kind} must have the same unit, got {listed}. {remedy}"
        raise InputError(message, key=key, units=tuple(units))
