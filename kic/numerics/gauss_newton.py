"""Damped Gauss–Newton method for batches of nonlinear systems, even overdetermined or rank-deficient.

A step x solves J x = −e in the sense of least squares, by singular values, with damping (Levenberg 1944,
Marquardt 1963). Damping in proportion to the residual keeps the quadratic convergence (Fan & Yuan, Computing
74 (2005) 23).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kic.numerics.tolerances import EPS

# residuals (B, P) and derivatives (B, P, N) by scaled steps, at points (B, S) of some members (B,)
Rows = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
# points (B, S) after scaled steps (B, N)
Move = Callable[[np.ndarray, np.ndarray], np.ndarray]
# rows and columns of blocks
Blocks = Sequence[tuple[Any, Any]]

GAUSS_NEWTON_STEPS_MAX = 60
# damping over the residual after the first step that does not reduce it, and factor of its changes
DAMPING_MIN, DAMPING_FACTOR = 1e-2, 10.0
# a residual is a minimum after this many successive steps that reduce it by less than 2 %
STALLED_STEPS_MAX, STALLED_FACTOR = 5, 0.98
# steps shorter than this, relative to the scale of the unknowns, reduce a residual no further
STEP_ATOL = 4 * EPS
# smaller derivatives are rounding errors, and no step is taken
DERIVATIVE_MIN = 1e-9


def gauss_newton(
    rows: Rows,
    move: Move,
    start: np.ndarray,
    *,
    rtol: float,
    step_max: float | np.ndarray,
    damping: float = 0.0,
    enough: float | np.ndarray = EPS,
    inside: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    blocks: Blocks | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Reduce the residuals of a batch; return points (B, S) and the norms (B,) of their residuals.

    Every accepted step reduces the residual. Members whose derivatives are not finite stay at their start.
    Norms that are not finite become infinite.

    Parameters
    ----------
    rows, move : callable
        Residuals with derivatives, and points after a step.
    start : (B, S)
        Initial points.
    rtol : float
        Singular values below this share of the largest are zero.
    step_max : float or (N,)
        Largest entries of one step.
    damping : float, optional
        Damping of the first step, as a multiple of the residual and of the largest singular value.
    enough : float or (B,), optional
        Residual below which a member has converged.
    inside : callable, optional
        Function of points (n, S) and their members (n,) that returns a mask; other members are abandoned.
    blocks : sequence of (rows, columns), optional
        Row and column indices of blocks of the derivatives, which are zero elsewhere. Singular values by
        block are the same, and faster.
    """
    points = start.copy()
    every = np.arange(len(points))
    error, J = rows(points, every)
    norm = np.linalg.norm(error, axis=1)
    factor, stalled = np.full(len(points), damping), np.zeros(len(points), dtype=int)
    going = np.isfinite(J).all(axis=(1, 2)) & (norm > enough)
    enough = np.broadcast_to(enough, norm.shape)
    for _ in range(GAUSS_NEWTON_STEPS_MAX):
        active = every[going]
        if not active.size:
            break
        step = least_squares_step(
            J[active], error[active], (factor[active] * norm[active])[:, None], rtol, blocks
        )
        step /= np.maximum(1.0, (np.abs(step) / step_max).max(axis=1, initial=0.0))[:, None]
        trial = move(points[active], step)
        trial_error, trial_J = rows(trial, active)
        trial_norm = np.linalg.norm(trial_error, axis=1)
        better = (trial_norm < norm[active]) & np.isfinite(trial_J).all(axis=(1, 2))
        falls = better & (trial_norm < STALLED_FACTOR * norm[active])
        stalled[active] = np.where(falls, 0, stalled[active] + 1)
        factor[active] = np.where(
            better, factor[active] / DAMPING_FACTOR, np.maximum(factor[active] * DAMPING_FACTOR, DAMPING_MIN)
        )
        k = active[better]
        points[k], norm[k] = trial[better], trial_norm[better]
        error[k], J[k] = trial_error[better], trial_J[better]
        short = np.abs(step).max(axis=1, initial=0.0) <= STEP_ATOL
        going[active] = (norm[active] > enough[active]) & (stalled[active] < STALLED_STEPS_MAX) & ~short
        if inside is not None:
            going[k] &= inside(points[k], k)
    norm[~np.isfinite(norm)] = np.inf
    return points, norm


def least_squares_step(
    J: np.ndarray, error: np.ndarray, damping: np.ndarray | float, rtol: float, blocks: Blocks | None = None
) -> np.ndarray:
    """Return the damped least-squares steps (B, N) for derivatives (B, P, N) and residuals (B, P).

    For `blocks` see `gauss_newton`.
    """
    whole = ((slice(None), slice(None)),)
    parts = [
        (rows, columns, *np.linalg.svd(J[:, rows][:, :, columns], full_matrices=False))
        for rows, columns in (whole if blocks is None else blocks)
    ]
    tops = [sigma.max(axis=1, initial=0.0, keepdims=True) for *_, sigma, _ in parts]
    largest, step = np.max(tops, axis=0, initial=0.0), np.zeros((len(J), J.shape[2]), J.dtype)
    for rows, columns, U, sigma, V in parts:
        kept = (sigma > rtol * largest) & (largest > DERIVATIVE_MIN)
        damped = np.where(kept, sigma**2 + (np.minimum(damping, 1.0) * largest) ** 2, 1.0)
        inverse = np.where(kept, sigma / damped, 0.0)
        along = inverse * np.einsum("bpk,bp->bk", U.conj(), error[:, rows])
        step[:, columns] = -np.einsum("bkn,bk->bn", V.conj(), along)
    return step
