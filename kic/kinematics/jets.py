"""Jets: (G, H, D) as the Taylor part of a map to third order, composed and inverted; plain arrays only.

A jet is the tuple of the tensors that are there: (G,), (G, H) or (G, H, D), with shapes (..., P, M),
(..., P, M, M), (..., P, M, M, M). The differentiating index comes first, and H need not be symmetric: the
formulas hold for rows of angular velocity, and with respect to them, as they stand. Batches broadcast, and
the scalar type is kept: float, complex (nothing is conjugated, so complex steps pass), or symbols.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from kic.errors import InputError, SingularError
from kic.kinematics.scaling import EPS, Scaling
from kic.numerics.arrays import as_array, broadcast_batches

Tensors = tuple[np.ndarray, ...]

# a row or column is round-off when so small beside all others (lengths and angles differ by less), or when
# so small beside the largest entry of all
NOTHING, ROUNDOFF = 1e-12, 1e-14
# kic promises 100 eps condition: beyond this, two digits are no more sure
WORST_CONDITION = 1e12
# times the estimated error of entries: a singular value below is none
ERROR_FACTOR = 64.0


class Jet:
    """First to third order of a map, G, H and D, and the motion that they give; see `Coefficients`."""

    __array_ufunc__ = None  # an array beside @ is refused, not taken apart

    def __init__(self, G: np.ndarray, H: np.ndarray | None = None, D: np.ndarray | None = None) -> None:
        self.G = G
        self.H = H
        self.D = D

    @property
    def tensors(self) -> Tensors:
        """The tensors that are here: (G,), (G, H) or (G, H, D)."""
        return tuple(t for t in (self.G, self.H, self.D) if t is not None)

    @property
    def order(self) -> int:
        """Highest order that is here: 1, 2 or 3."""
        return 1 if self.H is None else 2 if self.D is None else 3

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.G.shape[:-2]

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
        (v,) = self._motion(qd=qd)
        return np.einsum("...pn,...n->...p", self.G, v)

    def _motion(self, **given: Any) -> list[np.ndarray]:
        """Arguments of shape (..., M) whose batches go with the tensors'."""
        arrays = {name: as_array(name, value, self.G.shape[-1]) for name, value in given.items()}
        broadcast_batches(coefficients=self.batch, **{name: a.shape[:-1] for name, a in arrays.items()})
        return list(arrays.values())

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
        H = self.needed("H", 2)
        v, a = self._motion(qd=qd, qdd=qdd)
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
        H, D = self.needed("H", 2), self.needed("D", 3)
        v, a, j = self._motion(qd=qd, qdd=qdd, qddd=qddd)
        weighted = H + 2 * np.swapaxes(H, -1, -2)
        return (
            np.einsum("...pn,...n->...p", self.G, j)
            + np.einsum("...pmn,...m,...n->...p", weighted, a, v)
            + np.einsum("...plmn,...l,...m,...n->...p", D, v, v, v)
        )

    def needed(self, name: str, order: int) -> np.ndarray:
        """A tensor, or an error that asks for its order."""
        tensor = getattr(self, name)
        if tensor is None:
            raise InputError(
                f"This needs {name}, of order {order}; these coefficients have order={self.order}. "
                f"Ask with order={order}."
            )
        return tensor


def contract(X: np.ndarray, T: np.ndarray, left: int, right: int) -> np.ndarray:
    """Sum the last index of X with the first of T, each after its batch.

    Parameters
    ----------
    X : (..., *left, N) ndarray
        With `left` indices between batch and N.
    T : (..., N, *right) ndarray
        With `right` indices after N.
    left, right : int
        How many indices remain.

    Returns
    -------
    (..., *left, *right) ndarray

    Examples
    --------
    >>> contract(np.ones((5, 2, 3)), np.ones((3, 4, 4)), 1, 2).shape
    (5, 2, 4, 4)
    """
    head, tail = X.shape[X.ndim - left - 1 : -1], T.shape[T.ndim - right :]
    # with the indices that remain run together, this is an ordinary product
    rows = X.reshape(*X.shape[: X.ndim - left - 1], prod(head), X.shape[-1])
    columns = T.reshape(*T.shape[: T.ndim - right], prod(tail))
    product = rows @ columns
    return product.reshape(*product.shape[:-2], *head, *tail)


def compose(outer: Tensors, inner: Tensors) -> Tensors:
    """Jet of u(φ(q)) from those of u(φ) and φ(q), to the order that both have.

    With A, B, C of the inner map (eqs 3-22 and 3-26 are this with an inverse inside)::

        G'_a   = G_n A_na
        H'_ab  = H_mn A_ma A_nb + G_n B_nab
        D'_cab = D_lmn A_lc A_ma A_nb + H_mn B_mca A_nb + H_mn A_ma B_ncb + H_ln A_lc B_nab + G_n C_ncab

    Parameters
    ----------
    outer : tuple of (..., P, N), (..., P, N, N), (..., P, N, N, N) ndarray
        One to three tensors.
    inner : tuple of (..., N, M), (..., N, M, M), (..., N, M, M, M) ndarray
        One to three tensors.

    Returns
    -------
    tuple of (..., P, M), (..., P, M, M), (..., P, M, M, M) ndarray
        As many as the shorter of the two has.

    Examples
    --------
    >>> square = (np.array([[6.0]]), np.array([[[2.0]]]), np.zeros((1, 1, 1, 1)))  # φ² at φ = 3
    >>> [t.item() for t in compose(square, square)]  # q⁴ from φ = q², where 3 = q²
    [36.0, 84.0, 72.0]
    """
    order, A = min(len(outer), len(inner)), inner[0]
    made = [outer[0] @ A]
    if order > 1:
        made.append(_every(outer[1], A, 2) + contract(outer[0], inner[1], 1, 2))
    if order > 2:
        rest = _third(outer[1], outer[2], A, inner[1])
        made.append(rest + contract(outer[0], inner[2], 1, 3))
    return tuple(made)


def invert(jet: Tensors) -> Tensors:
    """Jet of the inverse of a square map: composed with the map it gives the identity.

    First order is (3-15), second (3-19); the third is (3-47), which the source leaves out. One inverse
    serves all orders. It asks nothing about condition: see `diagnose`.

    Parameters
    ----------
    jet : tuple of (..., M, M), (..., M, M, M), (..., M, M, M, M) ndarray
        One to three tensors. A member with an entry that is not finite becomes NaN.

    Returns
    -------
    tuple of ndarray
        Of the same shapes.

    Raises
    ------
    InputError
        If G is not square.
    SingularError, numpy.linalg.LinAlgError
        If symbols, or numbers, have no inverse at all.

    Examples
    --------
    >>> square = (np.array([[6.0]]), np.array([[[2.0]]]))  # φ² at φ = 3
    >>> [t.item() for t in invert(square)]  # √q at q = 9: 1/(2·3), -1/(4·27)
    [0.16666666666666666, -0.009259259259259259]
    """
    A = _inverse(jet[0])
    made = [A]
    if len(jet) > 1:
        made.append(-contract(A, _every(jet[1], A, 2), 1, 2))
    if len(jet) > 2:
        made.append(-contract(A, _third(jet[1], jet[2], A, made[1]), 1, 3))
    return tuple(made)


def take(jet: Tensors, rows: list[int] | None, columns: list[int] | None) -> Tensors:
    """Some rows and some columns of a jet, in the order given; None for all."""
    made = []
    for order, T in enumerate(jet, 1):
        if rows is not None:
            T = T.take(rows, axis=-order - 1)
        if columns is not None:
            for axis in range(-order, 0):
                T = T.take(columns, axis=axis)
        made.append(T)
    return tuple(made)


def stack(parts: list[Tensors], batch: tuple[int, ...]) -> Tensors:
    """Rows of jets with the same columns, one below the other, to the lowest order; in a common batch."""
    made = []
    for order, tensors in enumerate(zip(*parts, strict=False), 1):
        each = [np.broadcast_to(T, batch + T.shape[-order - 1 :]) for T in tensors]
        made.append(np.concatenate(each, axis=-order - 1))
    return tuple(made)


def _every(T: np.ndarray, A: np.ndarray, order: int) -> np.ndarray:
    """All indices of T (..., P, N, …) but the first, each summed with A (..., N, M), one after the other."""
    for _ in range(order):  # what comes out last goes in front of those still to do
        T = np.moveaxis(contract(T, A, order, 1), -1, -order)
    return T


def _third(H: np.ndarray, D: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Third order of a composition without G_n C_ncab, which an inversion solves for."""
    first = np.swapaxes(contract(np.swapaxes(H, -1, -2), A, 2, 1), -1, -2)  # H_mn A_ma at [p, a, n]
    second = np.swapaxes(contract(H, A, 2, 1), -1, -2)  # H_mn A_nb at [p, b, m]
    cab = contract(first, B, 2, 2)
    bca = contract(second, B, 2, 2)
    return _every(D, A, 3) + cab + np.swapaxes(cab, -2, -3) + np.moveaxis(bca, -3, -1)


def _inverse(G: np.ndarray) -> np.ndarray:
    """Inverse of square matrices; NaN for members that are not finite."""
    if G.shape[-1] != G.shape[-2]:
        raise InputError(f"Expected `G` to be square, got {G.shape}.", got=G.shape)
    if G.dtype == object:
        return _exact_inverse(G)
    known = np.isfinite(G).all(axis=(-1, -2))[..., None, None]
    if known.all():
        return np.linalg.inv(G)
    return np.where(known, np.linalg.inv(np.where(known, G, np.eye(G.shape[-1]))), np.nan)


def _exact_inverse(G: np.ndarray) -> np.ndarray:
    """Inverse of symbols by Faddeev and Leverrier: only the determinant divides, so no hidden zero does."""
    size = G.shape[-1]
    eye = np.eye(size, dtype=int).astype(object)
    adjugate, product = eye, G
    for k in range(1, size):
        adjugate = product - _trace(product) / k * eye
        product = G @ adjugate
    if not size:
        return G
    determinant = _trace(product) / size
    if any((d == 0) is True for d in determinant.flat):
        raise SingularError("These symbols have no inverse: their determinant is 0.", condition=np.inf)
    return adjugate / determinant


def _trace(a: np.ndarray) -> np.ndarray:
    """Traces (..., 1, 1)."""
    return a.diagonal(axis1=-2, axis2=-1).sum(axis=-1, keepdims=True)[..., None]


def diagnose(
    G: np.ndarray, H: np.ndarray | None = None, scaling: Scaling | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the condition number of G whatever its units are, and the rows and columns to blame.

    With a scaling, G is measured in units of its mechanism, and a singular value within the error of its
    entries is zero. Without, rows and columns are divided by their own size in turn, five times. Round-off
    would be blown up by that, and counts as zero before: a row or column below 1e-12 of all others, below
    1e-14 of the largest entry, or, where H is given, below what a rounding of the coordinates makes of it.

    Parameters
    ----------
    G : (..., P, M) ndarray
        First-order coefficients; of complex numbers the real part counts.
    H : (..., P, M, M) ndarray, optional
        Second-order coefficients.
    scaling : Scaling, optional
        Sizes of rows and columns, and the error of the entries.

    Returns
    -------
    condition : (...) ndarray
        Largest by smallest singular value of the scaled matrix; NaN for members that are not finite.
    rows, columns : (..., P) and (..., M) ndarray
        Shares in the singular directions that are as good as lost: the rows that depend on each other,
        the columns that together move nothing.

    Examples
    --------
    >>> condition, rows, columns = diagnose(np.array([[1.0, 1.0], [2000.0, 2000.0]]))
    >>> condition, rows.round(2), columns.round(2)
    (array(inf), array([0.71, 0.71]), array([0.71, 0.71]))
    """
    batch, (height, width) = G.shape[:-2], G.shape[-2:]
    every = np.real(G).reshape(prod(batch), height, width)
    known = np.isfinite(every).all(axis=(1, 2))
    condition = np.where(known, 1.0, np.nan)
    rows, columns = np.zeros((len(every), height)), np.zeros((len(every), width))
    if not known.any() or not height or not width:
        return condition.reshape(batch), rows.reshape(*batch, height), columns.reshape(*batch, width)
    a = every[known]
    bent = None if H is None else 8 * EPS * np.abs(np.real(H)).sum(axis=-2).reshape(every.shape)[known]
    if scaling is None:
        scaled, error = _equilibrated(a, bent), np.zeros_like(a)
    else:
        scaled = scaling.scaled(a)
        of_each = np.broadcast_to(scaling.error, batch).reshape(-1)[known]
        error = np.broadcast_to(ERROR_FACTOR * of_each[:, None, None], a.shape)
        if bent is not None:
            error = error + scaling.scaled(np.where(np.isfinite(bent), bent, 0.0))
    left, s, right = np.linalg.svd(scaled, full_matrices=False)
    # to first order, what errors of the entries do to singular values
    floor = np.einsum("bpk,bpm,bkm->bk", np.abs(left), error, np.abs(right))
    none = s <= np.maximum(floor, EPS * s[:, :1])
    last = np.where(none[:, -1], 1.0, s[:, -1])
    condition[known] = np.where(none[:, -1], np.inf, s[:, 0] / last)
    lost = none | (s * WORST_CONDITION <= s[:, :1])
    rows[known] = np.sqrt((left**2 * lost[:, None, :]).sum(axis=2))
    columns[known] = np.sqrt((right**2 * lost[:, :, None]).sum(axis=1))
    return condition.reshape(batch), rows.reshape(*batch, height), columns.reshape(*batch, width)


def _equilibrated(signed: np.ndarray, bent: np.ndarray | None) -> np.ndarray:
    """Scale matrices (n, P, M) of unknown units by their own rows and columns, with round-off as zero."""
    a = np.abs(signed)
    least = ROUNDOFF * a.max(axis=(1, 2), keepdims=True)
    if bent is not None:
        least = np.maximum(least, bent)
    row = (a <= NOTHING * a.max(axis=1, keepdims=True)) | (a <= least)
    column = (a <= NOTHING * a.max(axis=2, keepdims=True)) | (a <= least)
    blank = row.all(axis=2)[:, :, None] | column.all(axis=1)[:, None, :]
    scaled = np.where(blank, 0.0, signed)
    for axis in (2, 1) * 5:
        size = np.sqrt((scaled**2).sum(axis=axis, keepdims=True))
        scaled = scaled / np.where(size > 0, size, 1.0)
    return scaled
