"""Linear algebra: unit vectors, and condition numbers, null spaces and singular values of batches."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np


def unit(v: Any) -> np.ndarray:
    """Return the unit vector along v; complex steps are kept."""
    a = np.asarray(v)
    return a / np.sqrt(a @ a)


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


@cache
def lapack() -> Any:
    """Return the module of SciPy's LAPACK functions.

    The package `scipy.linalg` takes longer to import than NumPy, mainly for modules that kic does not use.
    """
    with suppress(ImportError):
        import scipy

        for suffix in EXTENSION_SUFFIXES:
            file = Path(scipy.__file__).with_name("linalg") / f"_flapack{suffix}"
            spec = spec_from_file_location("scipy.linalg._flapack", file) if file.exists() else None
            if spec is not None and spec.loader is not None:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    from scipy.linalg import lapack as found

    return found


def pivoted_qr(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonal (min(P, M),) of R and the order (M,) of the columns of a pivoted QR decomposition.

    The results are those of `scipy.linalg.qr` for one matrix (P, M).
    """
    a = np.asarray_chkfinite(a)
    if not a.size:
        return np.empty(0), np.arange(a.shape[1])
    geqp3 = lapack().dgeqp3
    R, pivot = geqp3(a, lwork=int(geqp3(a, lwork=-1)[-2][0]))[:2]
    return np.diag(R), pivot - 1


def decomposition(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the singular value decomposition (U, σ, Vᵀ) of one matrix (P, M); Vᵀ is square.

    The checks of NumPy's function take longer than the decomposition of a small matrix.
    """
    if not a.size:
        return np.linalg.svd(a)
    U, sigma, V, failed = lapack().dgesdd(a, full_matrices=a.shape[0] < a.shape[1])
    if failed:
        raise np.linalg.LinAlgError("SVD did not converge")
    return U, sigma, V


def min_singular_value(a: np.ndarray, rank: int | None = None) -> np.ndarray:
    """Return the smallest singular value (...) of matrices (..., P, M), or that of index `rank` - 1."""
    rank = min(a.shape[-2:]) if rank is None else rank
    if not rank:
        return np.ones(a.shape[:-2])
    return np.linalg.svd(a, compute_uv=False)[..., rank - 1]
