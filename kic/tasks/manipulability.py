"""Manipulability of a task, Yoshikawa's w = √det(G Gᵀ), and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, numbers, trailing
from kic.errors import InputError

# a singular value below this share of the largest can not be told from 0
FLAT = 1e-14


def manipulability(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Manipulability and the right inverse Gᵀ(G Gᵀ)⁻¹, of real numbers and of those with a complex step.

    Parameters
    ----------
    G : (..., P, M) ndarray
        First-order coefficients of no more rows than coordinates.

    Returns
    -------
    w, inverse : (...,), (..., M, P) ndarray
        NaN where G is singular: there w is 0 and has an edge.

    Raises
    ------
    InputError
        For more rows than coordinates.

    Examples
    --------
    >>> w, inverse = manipulability(np.array([[3.0, 0.0, 4.0]]))
    >>> w.round(12), inverse[:, 0].round(12).tolist()
    (np.float64(5.0), [0.12, 0.0, 0.16])
    """
    P = G.shape[-2]
    if G.shape[-1] < P:
        raise InputError(
            "Manipulability has a gradient for at most as many rows as coordinates, got G of shape "
            f"{G.shape}; with more it is 0 everywhere. Name fewer rows."
        )
    known = np.isfinite(G).all(axis=(-1, -2))
    safe = np.where(known[..., None, None], G, 0.0)
    U, s, _ = np.linalg.svd(safe.real, full_matrices=False)
    regular = known & (s[..., -1] > FLAT * s[..., 0])
    # makes rows that are orthonormal, but for a complex step: G Gᵀ would lose the square of its condition
    unit = np.swapaxes(U, -1, -2) / np.where(regular[..., None], s, 1.0)[..., None]
    N = unit @ safe
    A = np.where(regular[..., None, None], N @ np.swapaxes(N, -1, -2), np.eye(P))
    w = np.where(regular, s.prod(axis=-1) * np.sqrt(np.linalg.det(A)), np.nan)
    inverse = np.swapaxes(N, -1, -2) @ np.linalg.inv(A) @ unit
    return w, np.where(regular[..., None, None], inverse, np.nan)


def manipulability_gradient(G: Any, H: Any) -> np.ndarray:
    """Gradient of Yoshikawa's w = √det(G Gᵀ) along the coordinates: ∂w/∂q_m = w tr(G⁺ ∂G/∂q_m).

    Parameters
    ----------
    G : (..., P, M) array_like
        First-order coefficients of no more rows than coordinates, all of one unit; or S G R of scaled ones.
    H : (..., P, M, M) array_like
        Their derivatives, the differentiating index first; or S H R, which leaves that index as it is.

    Returns
    -------
    (..., M)
        NaN where G is singular: there w is 0 and has an edge.

    Raises
    ------
    InputError
        For other shapes, more rows than coordinates, or numbers that are not real.

    Examples
    --------
    >>> import kic
    >>> c = kic.load("horn-two-link").at([0.0, 1.5]).coefficients(["tip.x", "tip.y"])
    >>> manipulability_gradient(c.G, c.H).round(4)  # of sin elbow
    array([0.    , 0.0707])
    """
    G = numbers("G", G)
    if G.ndim < 2:
        raise InputError(f"Expected `G` to have shape (..., P, M), got {G.shape}.")
    H = trailing("H", H, *G.shape[-2:], G.shape[-1], finite=False)
    if not G.dtype == H.dtype == np.float64:
        raise InputError(f"Expected G and H of real numbers, got {G.dtype} and {H.dtype}.")
    broadcast_batches(G=G.shape[:-2], H=H.shape[:-3])
    w, inverse = manipulability(G)
    return w[..., None] * np.einsum("...np,...pmn->...m", inverse, H)
