"""Jets: Taylor coefficients (G, H, D) of a map to third order, with composition and inversion.

A jet is a tuple of one to three arrays: (G,), (G, H) or (G, H, D), with shapes (..., P, M), (..., P, M, M)
and (..., P, M, M, M). The differentiating index comes first. H need not be symmetric: the formulas also hold
for rows and columns of angular velocity. Batches broadcast. The scalar type is kept: float, complex (without
conjugation, which keeps complex steps), or symbols.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from kic.errors import InputError, SingularError
from kic.kinematics.products import contract, evaluate_form, transform
from kic.kinematics.scaling import Scaling
from kic.numerics.arrays import as_array, broadcast_batches
from kic.numerics.tolerances import CONDITION_MAX, EPS

Tensors = tuple[np.ndarray, ...]

# a row or column counts as zero below this share of all others; lengths and angles differ by less
ZERO_ROW_RTOL = 1e-12
# an entry counts as zero below this share of the largest entry
ZERO_ENTRY_RTOL = 1e-14
# a singular value below this multiple of the estimated error of the entries counts as zero
ERROR_FACTOR = 64.0
# number of alternating divisions by the sizes of rows and columns
EQUILIBRATION_SWEEPS = 5


class Jet:
    """Derivatives G, H and D of a map, and the motion they give; see `Coefficients`."""

    __array_ufunc__ = None  # `array @ jet` is an error, instead of a product with each entry of the array

    G: np.ndarray
    H: np.ndarray | None
    D: np.ndarray | None

    @property
    def tensors(self) -> Tensors:
        """Tuple of tensors up to the order: (G,), (G, H) or (G, H, D)."""
        return tuple(t for t in (self.G, self.H, self.D) if t is not None)

    @property
    def order(self) -> int:
        """Highest order: 1, 2 or 3."""
        return 1 if self.H is None else 2 if self.D is None else 3

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.G.shape[:-2]

    def velocity(self, qd: Any) -> np.ndarray:
        """Compute the velocity (..., P) of the dependents, u̇ = G q̇ (2-7 to 2-10, 3-4, 3-8).

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).coefficients("tip").velocity([1.0, 0.0])
        array([0., 2., 0.])
        """
        (v,) = self._motion(qd=qd)
        return evaluate_form(self.G, (v,))

    def _motion(self, **given: Any) -> list[np.ndarray]:
        """Return arguments of shape (..., M) whose batches broadcast with that of the tensors."""
        arrays = {name: as_array(name, value, self.G.shape[-1]) for name, value in given.items()}
        broadcast_batches(coefficients=self.batch, **{name: a.shape[:-1] for name, a in arrays.items()})
        return list(arrays.values())

    def acceleration(self, qd: Any, qdd: Any) -> np.ndarray:
        """Compute the acceleration (..., P) of the dependents, ü = G q̈ + q̇ᵀ H q̇ (3-4, 3-9).

        The source derives it in (2-11) to (2-27).

        Examples
        --------
        >>> tip = kic.load("horn-two-link").at([0.0, 0.0]).coefficients("tip")
        >>> tip.acceleration([1.0, 0.0], [0.0, 0.0])
        array([-2.,  0.,  0.])
        """
        H = self.needed("H", 2)
        v, a = self._motion(qd=qd, qdd=qdd)
        return evaluate_form(self.G, (a,)) + evaluate_form(H, (v, v))

    def jerk(self, qd: Any, qdd: Any, qddd: Any) -> np.ndarray:
        """Compute the jerk (..., P), u⃛ = G q⃛ + q̈ᵀ (H + 2Hᵀ) q̇ + D(q̇, q̇, q̇) (2-44, corrected).

        The source derives it in (2-28) to (2-44). For coordinates q as dependents of φ it is (3-43), (3-44).

        Examples
        --------
        >>> tip = kic.load("horn-two-link").at([0.0, 0.0]).coefficients("tip", order=3)
        >>> tip.jerk([1.0, 0.0], [0.0, 0.0], [0.0, 0.0])
        array([ 0., -2.,  0.])
        """
        H, D = self.needed("H", 2), self.needed("D", 3)
        v, a, j = self._motion(qd=qd, qdd=qdd, qddd=qddd)
        mixed = H + 2 * np.swapaxes(H, -1, -2)
        return evaluate_form(self.G, (j,)) + evaluate_form(mixed, (a, v)) + evaluate_form(D, (v, v, v))

    def needed(self, name: str, order: int) -> np.ndarray:
        """Return a tensor, or raise an error with the required order if it was not computed."""
        tensor = getattr(self, name)
        if tensor is None:
            message = (
                f"`order` must be at least {order} because {name} is needed, got coefficients of order "
                f"{self.order}. Compute them with order={order}."
            )
            raise InputError(message, key="order", got=self.order)
        return tensor


def compose(outer: Tensors, inner: Tensors) -> Tensors:
    """Return the jet of u(φ(q)) from the jets of u(φ) and φ(q), to the order that both have.

    A, B, C are G, H, D of the inner map, which is an inverse in (3-22) and (3-26)::

        G'_a   = G_n A_na
        H'_ab  = H_mn A_ma A_nb + G_n B_nab
        D'_cab = D_lmn A_lc A_ma A_nb + H_mn B_mca A_nb + H_mn A_ma B_ncb + H_ln A_lc B_nab + G_n C_ncab

    Examples
    --------
    >>> square = (np.array([[6.0]]), np.array([[[2.0]]]), np.zeros((1, 1, 1, 1)))  # φ² at φ = 3
    >>> [t.item() for t in compose(square, square)]  # q⁴ from φ = q², where 3 = q²
    [36.0, 84.0, 72.0]
    """
    order, A = min(len(outer), len(inner)), inner[0]
    made = [outer[0] @ A]
    if order > 1:
        made.append(transform(outer[1], A, 2) + contract(outer[0], inner[1], 1, 2))
    if order > 2:
        rest = _third(outer[1], outer[2], A, inner[1])
        made.append(rest + contract(outer[0], inner[2], 1, 3))
    return tuple(made)


def invert(jet: Tensors) -> Tensors:
    """Return the jet of the inverse of a square map to third order (3-15, 3-19, 3-47).

    Generalized products lead from (3-17) and (3-18) to (3-19), as here. The source gives only the arguments
    of (3-47). One matrix inverse serves all orders. Members with entries that are not finite become NaN. The
    condition is not checked: see `diagnose`.

    Raises
    ------
    SingularError, numpy.linalg.LinAlgError
        If the determinant of symbols, or of numbers, is exactly zero.

    Examples
    --------
    >>> square = (np.array([[6.0]]), np.array([[[2.0]]]))  # φ² at φ = 3
    >>> [t.item() for t in invert(square)]  # √q at q = 9: 1/(2·3), -1/(4·27)
    [0.16666666666666666, -0.009259259259259259]
    """
    A = _inverse(jet[0])
    made = [A]
    if len(jet) > 1:
        made.append(-contract(A, transform(jet[1], A, 2), 1, 2))
    if len(jet) > 2:
        made.append(-contract(A, _third(jet[1], jet[2], A, made[1]), 1, 3))
    return tuple(made)


def take(jet: Tensors, rows: list[int] | None, columns: list[int] | None) -> Tensors:
    """Return selected rows and columns of a jet, in the order given; None for all."""
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
    """Concatenate the rows of jets with the same columns, to the lowest order, in a common batch."""
    made = []
    for order, tensors in enumerate(zip(*parts, strict=False), 1):
        each = [np.broadcast_to(T, batch + T.shape[-order - 1 :]) for T in tensors]
        made.append(np.concatenate(each, axis=-order - 1))
    return tuple(made)


def _third(H: np.ndarray, D: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the third order of a composition without G_n C_ncab, which is unknown in an inversion."""
    first = np.swapaxes(contract(np.swapaxes(H, -1, -2), A, 2, 1), -1, -2)  # H_mn A_ma at [p, a, n]
    second = np.swapaxes(contract(H, A, 2, 1), -1, -2)  # H_mn A_nb at [p, b, m]
    cab = contract(first, B, 2, 2)
    bca = contract(second, B, 2, 2)
    return transform(D, A, 3) + cab + np.swapaxes(cab, -2, -3) + np.moveaxis(bca, -3, -1)


def _inverse(G: np.ndarray) -> np.ndarray:
    """Invert square matrices; members that are not finite become NaN."""
    if G.shape[-1] != G.shape[-2]:
        raise InputError(f"`G` must be square, got shape {G.shape}.", key="G", got=G.shape)
    if G.dtype == object:
        return _exact_inverse(G)
    finite = np.isfinite(G).all(axis=(-1, -2))[..., None, None]
    if finite.all():
        return np.linalg.inv(G)
    return np.where(finite, np.linalg.inv(np.where(finite, G, np.eye(G.shape[-1]))), np.nan)


def _exact_inverse(G: np.ndarray) -> np.ndarray:
    """Invert symbols by the Faddeev-Leverrier method, which divides by the determinant only."""
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
        raise SingularError("`G` has no inverse: its determinant is 0.", key="G", condition=np.inf)
    return adjugate / determinant


def _trace(a: np.ndarray) -> np.ndarray:
    """Return the traces (..., 1, 1)."""
    return a.diagonal(axis1=-2, axis2=-1).sum(axis=-1, keepdims=True)[..., None]


def diagnose(
    G: np.ndarray, H: np.ndarray | None = None, scaling: Scaling | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute a condition number of G, independent of units, and the rows and columns that cause it.

    With a scaling, G is made dimensionless by the sizes of its mechanism, and a singular value within the
    error of the entries counts as zero. Without a scaling, rows and columns are divided by their own size in
    turn, five times. This would amplify round-off, which is set to zero before: rows and columns below 1e-12
    of all others, below 1e-14 of the largest entry, or, if H is given, below the change of G that a rounding
    of the coordinates causes. Imaginary parts are ignored.

    Returns
    -------
    condition : (...) ndarray
        Ratio of the largest to the smallest singular value of the scaled matrix; NaN for members that are
        not finite.
    rows, columns : (..., P) and (..., M) ndarray
        Shares in the singular directions beyond `CONDITION_MAX`: rows that depend on each other, and
        columns whose combined motion moves no row.

    Examples
    --------
    >>> condition, rows, columns = diagnose(np.array([[1.0, 1.0], [2000.0, 2000.0]]))
    >>> condition, rows.round(2), columns.round(2)
    (array(inf), array([0.71, 0.71]), array([0.71, 0.71]))
    """
    batch, (height, width) = G.shape[:-2], G.shape[-2:]
    flat = np.real(G).reshape(prod(batch), height, width)
    finite = np.isfinite(flat).all(axis=(1, 2))
    condition = np.where(finite, 1.0, np.nan)
    rows, columns = np.zeros((len(flat), height)), np.zeros((len(flat), width))
    if not finite.any() or not height or not width:
        return condition.reshape(batch), rows.reshape(*batch, height), columns.reshape(*batch, width)
    a = flat[finite]
    rounding = None if H is None else 8 * EPS * np.abs(np.real(H)).sum(axis=-2).reshape(flat.shape)[finite]
    if scaling is None:
        scaled, error = _equilibrated(a, rounding), np.zeros_like(a)
    else:
        scaled = scaling.scaled(a)
        member_error = np.broadcast_to(scaling.error, batch).reshape(-1)[finite]
        error = np.broadcast_to(ERROR_FACTOR * member_error[:, None, None], a.shape)
        if rounding is not None:
            error = error + scaling.scaled(np.where(np.isfinite(rounding), rounding, 0.0))
    left, s, right = np.linalg.svd(scaled, full_matrices=False)
    # first-order bound of the change of singular values by errors of the entries
    floor = np.einsum("bpk,bpm,bkm->bk", np.abs(left), error, np.abs(right))
    zero = s <= np.maximum(floor, EPS * s[:, :1])
    smallest = np.where(zero[:, -1], 1.0, s[:, -1])
    condition[finite] = np.where(zero[:, -1], np.inf, s[:, 0] / smallest)
    lost = zero | (s * CONDITION_MAX <= s[:, :1])
    rows[finite] = np.sqrt((left**2 * lost[:, None, :]).sum(axis=2))
    columns[finite] = np.sqrt((right**2 * lost[:, :, None]).sum(axis=1))
    return condition.reshape(batch), rows.reshape(*batch, height), columns.reshape(*batch, width)


def _equilibrated(signed: np.ndarray, rounding: np.ndarray | None) -> np.ndarray:
    """Scale matrices (n, P, M) of unknown units by norms of rows and columns, with round-off set to zero."""
    a = np.abs(signed)
    floor = ZERO_ENTRY_RTOL * a.max(axis=(1, 2), keepdims=True)
    if rounding is not None:
        floor = np.maximum(floor, rounding)
    row = (a <= ZERO_ROW_RTOL * a.max(axis=1, keepdims=True)) | (a <= floor)
    column = (a <= ZERO_ROW_RTOL * a.max(axis=2, keepdims=True)) | (a <= floor)
    zero = row.all(axis=2)[:, :, None] | column.all(axis=1)[:, None, :]
    scaled = np.where(zero, 0.0, signed)
    for axis in (2, 1) * EQUILIBRATION_SWEEPS:
        size = np.sqrt((scaled**2).sum(axis=axis, keepdims=True))
        scaled = scaled / np.where(size > 0, size, 1.0)
    return scaled
