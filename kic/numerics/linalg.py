"""Linear algebra of batches: condition numbers, null spaces and singular values."""

from __future__ import annotations

import numpy as np


def condition_number(G: np.ndarray) -> np.ndarray:
    """Return condition numbers (B,) of matrices (B, P, M), infinite if P < M or an entry is not finite."""
    if not G.shape[2]:
        return np.ones(len(G))
    worst = np.full(len(G), np.inf)
    if G.shape[1] >= G.shape[2]:
        fine = np.isfinite(G).all(axis=(1, 2))
        worst[fine] = np.linalg.cond(G[fine])
    return worst


def null_space(rows: np.ndarray, dimension: int) -> np.ndarray:
    """Return orthonormal vectors (..., M, f) of the null space of rows (..., R, M) with a given dimension f.

    If the null space is smaller, the right singular vectors of the smallest singular values complete it.
    """
    size = rows.shape[-1]
    if not rows.shape[-2]:
        return np.broadcast_to(np.eye(size), (*rows.shape[:-2], size, size))
    V = np.linalg.svd(rows, full_matrices=rows.shape[-2] < size)[2]
    return np.swapaxes(V[..., size - dimension :, :], -1, -2)


def decomposition(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the singular value decomposition (U, σ, Vᵀ) of one matrix (P, M); Vᵀ is square.

    The checks of NumPy's function take longer than the decomposition of a small matrix.
    """
    if not a.size:
        return np.linalg.svd(a)
    from scipy.linalg.lapack import dgesdd

    U, sigma, V, failed = dgesdd(a, full_matrices=a.shape[0] < a.shape[1])
    if failed:
        raise np.linalg.LinAlgError("SVD did not converge")
    return U, sigma, V


def min_singular_value(a: np.ndarray, rank: int | None = None) -> np.ndarray:
    """Return the smallest singular value (...) of matrices (..., P, M), or of the largest `rank` ones."""
    rank = min(a.shape[-2:]) if rank is None else rank
    if not rank:
        return np.ones(a.shape[:-2])
    return np.linalg.svd(a, compute_uv=False)[..., rank - 1]
