"""Sizes of rows and columns of coefficients in their mechanism, and the round-off beside them.

A matrix cannot tell its own round-off from motion: a column that should be zero has the direction of its last
digits. Entries are therefore compared with what moves in the mechanism, whatever the units: 1 for angles, the
characteristic length for lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Scaling:
    """Sizes of the rows and columns of coefficients, and the error of their scaled entries.

    Attributes
    ----------
    rows, columns : (P,) and (M,)
        Characteristic sizes. `G * columns / rows[:, None]` has no units.
    error : float or (...)
        Estimate of the absolute error of these scaled entries, by member of the batch.
    """

    rows: np.ndarray
    columns: np.ndarray
    error: Any = EPS

    def scaled(self, G: np.ndarray) -> np.ndarray:
        """Return the real part of G in units of the mechanism (..., P, M)."""
        return np.real(G) * (self.columns / self.rows[:, None])

    def errors(self) -> np.ndarray:
        """Return the errors (..., P, M) of the entries of G in their own units."""
        return np.asarray(self.error)[..., None, None] * (self.rows[:, None] / self.columns)

    def take(self, rows: list[int] | None, columns: list[int] | None) -> Scaling:
        """Return the scaling of some rows and some columns, None for all."""
        return Scaling(
            self.rows if rows is None else self.rows[rows],
            self.columns if columns is None else self.columns[columns],
            self.error,
        )

    def inverse(self, inverse: np.ndarray) -> Scaling:
        """Return the scaling of an inverse (..., M, P) of the scaled matrix.

        The factor of the error is that of the smallest singular value and of entries near it. The largest
        entries of an ill-conditioned inverse have larger errors, which cannot hide a singularity.
        """
        other = Scaling(self.columns, self.rows)
        return replace(other, error=self.error * np.maximum(1.0, other._size(inverse)))

    def _size(self, G: np.ndarray) -> Any:
        """Return a bound of the rows and columns of G (...), scaled."""
        if G.dtype == object or not G.shape[-1] * G.shape[-2]:
            return 1.0
        return np.abs(self.scaled(G)).max(axis=(-1, -2)) * max(G.shape[-2:])


def composed(outer: Scaling | None, G: np.ndarray, inner: Scaling | None, A: np.ndarray) -> Scaling | None:
    """Return the scaling of G A, from those of G (..., P, N) and A (..., N, M); None without any.

    A matrix without scaling is exact: its rows, or its columns, are as large as what they make of the other.
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
    """Return the scaling of matrices one below the other, from theirs; None without any.

    The columns have the sizes of the first that has some. Rows without size get it from these.
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
    """Return the sizes (P,) of rows of exact numbers, from G (..., P, M) and sizes of its columns."""
    if G.dtype == object:
        return np.ones(G.shape[-2])
    size = (np.abs(np.real(G)) * columns).max(axis=-1, initial=0.0).reshape(-1, G.shape[-2])
    size = np.where(np.isfinite(size), size, 0.0).max(axis=0, initial=0.0)
    return np.where(size > 0, size, 1.0)


def moved_error(error: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the error (..., m) of the diagonal of Aᵀ I A, from that (..., M) of the symmetric I."""
    if A.dtype == object:
        return np.zeros(A.shape[-1])
    return np.einsum("...na,...n->...a", np.abs(np.real(A)), np.sqrt(error)) ** 2
