"""Coefficients: G, H and D of named dependents with respect to named coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.arrays import trailing
from kic.errors import InputError, unknown
from kic.tables import Sheet, member


class Coefficients:
    """Kinematic influence coefficients of named dependents u with respect to named coordinates q.

    The differentiating index comes first: ``H[..., p, m, n]`` = ∂G[p, n]/∂q_m and
    ``D[..., p, l, m, n]`` = ∂H[p, m, n]/∂q_l. Translational rows are symmetric; rows of angular velocity
    are not, and neither are rows with respect to angular velocities.

    Attributes
    ----------
    rows : tuple of str
        Names of the P dependents.
    columns : tuple of str
        Names of the M coordinates.
    values : (..., P)
        Values of the dependents; NaN for angular velocities, which have none.
    G : (..., P, M)
        First order (eq 2-6).
    H : (..., P, M, M) or None
        Second order (eq 2-17); None below order 2.
    D : (..., P, M, M, M) or None
        Third order (eq 2-42); None below order 3.
    holonomic : bool
        Whether all dependents and coordinates have values; H is then symmetric.

    Examples
    --------
    >>> import kic
    >>> tip = kic.load("horn-two-link").at([0.0, 0.5]).coefficients("tip")
    >>> tip.G.shape, tip.H.shape
    ((3, 2), (3, 2, 2))
    >>> tip["tip.y"].rows
    ('tip.y',)
    """

    def __init__(
        self,
        rows: tuple[str, ...],
        columns: tuple[str, ...],
        G: np.ndarray,
        H: np.ndarray | None = None,
        D: np.ndarray | None = None,
        values: np.ndarray | None = None,
        holonomic: bool = True,
    ) -> None:
        self.rows = rows
        self.columns = columns
        self.G = G
        self.H = H
        self.D = D
        self.values = values
        self.holonomic = holonomic

    @property
    def order(self) -> int:
        """Highest order that is here: 1, 2 or 3."""
        return 1 if self.H is None else 2 if self.D is None else 3

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.G.shape[:-2]

    def __getitem__(self, names: str | list[str] | tuple[str, ...]) -> Coefficients:
        """Rows by name: one, several, or all of a part ("hand" for "hand.x", "hand.y" …)."""
        asked = [names] if isinstance(names, str) else list(names)
        picked: list[int] = []
        for name in asked:
            found = [i for i, row in enumerate(self.rows) if row == name or row.startswith(f"{name}.")]
            if not found:
                raise unknown("row", str(name), "these coefficients", self.rows)
            picked += found
        return Coefficients(
            tuple(self.rows[i] for i in picked),
            self.columns,
            self.G[..., picked, :],
            None if self.H is None else self.H[..., picked, :, :],
            None if self.D is None else self.D[..., picked, :, :, :],
            None if self.values is None else self.values[..., picked],
            self.holonomic,
        )

    def velocity(self, qd: Any) -> np.ndarray:
        """Rates of the dependents, u̇ = G q̇ (eq 2-7).

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.

        Returns
        -------
        (..., P)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 0.0]).coefficients("tip").velocity([1.0, 0.0])
        array([0., 2., 0.])
        """
        v = trailing("qd", qd, len(self.columns))
        return np.einsum("...pn,...n->...p", self.G, v)

    def acceleration(self, qd: Any, qdd: Any) -> np.ndarray:
        """Accelerations of the dependents, ü = G q̈ + q̇ᵀ H q̇ (eq 2-27).

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations of the coordinates.

        Returns
        -------
        (..., P)

        Raises
        ------
        InputError
            For another shape, entries that are not finite, or coefficients of order 1.

        Examples
        --------
        >>> import kic
        >>> tip = kic.load("horn-two-link").at([0.0, 0.0]).coefficients("tip")
        >>> tip.acceleration([1.0, 0.0], [0.0, 0.0])
        array([-2.,  0.,  0.])
        """
        H = self._needed("H", 2)
        v = trailing("qd", qd, len(self.columns))
        a = trailing("qdd", qdd, len(self.columns))
        return np.einsum("...pn,...n->...p", self.G, a) + np.einsum("...pmn,...m,...n->...p", H, v, v)

    def jerk(self, qd: Any, qdd: Any, qddd: Any) -> np.ndarray:
        """Jerks of the dependents, u⃛ = G q⃛ + q̈ᵀ (H + 2Hᵀ) q̇ + D(q̇, q̇, q̇) (eq 2-44, corrected).

        Parameters
        ----------
        qd, qdd, qddd : (..., M) array_like
            Rates, accelerations and jerks of the coordinates.

        Returns
        -------
        (..., P)

        Raises
        ------
        InputError
            For another shape, entries that are not finite, or coefficients below order 3.

        Examples
        --------
        >>> import kic
        >>> tip = kic.load("horn-two-link").at([0.0, 0.0]).coefficients("tip", order=3)
        >>> tip.jerk([1.0, 0.0], [0.0, 0.0], [0.0, 0.0])
        array([ 0., -2.,  0.])
        """
        H, D = self._needed("H", 2), self._needed("D", 3)
        size = len(self.columns)
        v, a, j = trailing("qd", qd, size), trailing("qdd", qdd, size), trailing("qddd", qddd, size)
        weighted = H + 2 * np.swapaxes(H, -1, -2)
        return (
            np.einsum("...pn,...n->...p", self.G, j)
            + np.einsum("...pmn,...m,...n->...p", weighted, a, v)
            + np.einsum("...plmn,...l,...m,...n->...p", D, v, v, v)
        )

    def _needed(self, name: str, order: int) -> np.ndarray:
        tensor = getattr(self, name)
        if tensor is None:
            raise InputError(
                f"This needs {name}, of order {order}; these coefficients have order={self.order}. "
                f"Ask with order={order}."
            )
        return tensor

    def sheet(self, order: int | None = None) -> Sheet:
        """Labelled tables of everything up to an order (by default 2 at most), to print or to show."""
        upto = min(self.order, 2) if order is None else min(order, self.order)
        count = f"{len(self.rows)} row{'s' if len(self.rows) > 1 else ''}"
        sheet = Sheet(f"{count} with respect to {', '.join(self.columns)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        if self.values is not None:
            known = [i for i in range(len(self.rows)) if not _is_nan(self.values[index][i])]
            if known:
                sheet.matrix(
                    "value",
                    [self.rows[i] for i in known],
                    [""],
                    self.values[index][known][:, None],
                )
        sheet.matrix("G = ∂u/∂q", self.rows, self.columns, self.G[index])
        if upto > 1:
            sheet.say("\nH[u] = ∂G/∂q, rows: the differentiating coordinate")
            sheet.planes("H", self.rows, self.columns, self.columns, np.asarray(self.H)[index])
        if upto > 2:
            D = np.asarray(self.D)[index]
            labels = [f"{row}, {c}" for row in self.rows for c in self.columns]
            sheet.say("\nD[u, q_l] = ∂H/∂q_l")
            sheet.planes("D", labels, self.columns, self.columns, D.reshape(-1, *D.shape[-2:]))
        elif self.D is not None:
            sheet.say(f"\nD {self.D.shape} is here too: print(….sheet(order=3).text())")
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


def _is_nan(x: object) -> bool:
    return isinstance(x, float | complex | np.number) and bool(np.isnan(x))
