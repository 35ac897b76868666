"""Small convex programs for efforts T = start + N z within bounds, with free z.

Zero rows of N are efforts that cannot change. The solvers only identify the active bounds; the resulting
equations are then solved to full accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.errors import SingularError

# smallest multiplier of an active bound, relative to the largest
_MULTIPLIER_RTOL = 1e-9
# smallest norm of a row, relative to the largest
_ROW_RTOL = 1e-12
# bounds are scaled by at least this share of the largest effort, so that squares of ratios do not overflow
_MAGNITUDE_RTOL = 1e-150
# iterations of the active-set solver for each condition
_ITERATIONS_PER_ROW = 50
# violation of a bound, relative to the terms of an effort, that counts as active
_BOUND_RTOL = 1e-12
# width of a feasible set, relative to the bounds, that may be a face
_WIDTH_RTOL = 1e-9


def nearest(start: np.ndarray, N: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray | None:
    """Find the efforts start + N z within bounds with the least |z|; return None if no efforts are feasible.

    The method is the least distance programming of Lawson and Hanson. Bounds (A,) may be infinite, and N has
    shape (A, K). Raise `SingularError` if the problem is feasible, but the program does not converge.
    """
    both, bound = np.concatenate([N, -N]), np.concatenate([lower, -upper])
    size = np.linalg.norm(both, axis=1)
    given = np.flatnonzero(np.isfinite(bound) & (size > 0))
    size, gap = size[given], bound[given] - np.concatenate([start, -start])[given]
    far = max(0.0, float(np.max(gap / size, initial=0.0)))
    z = np.zeros(N.shape[1])
    if far > 0:
        z = far * _least_distance(both[given] / size[:, None], gap / size / far)
    found = _within(start, N, z, lower, upper)
    if found is not None or not N.shape[1]:
        return found
    # the feasible set may be a face, where some bounds are always active: treat these as equations
    wide, tight = _widening(start, N, lower, upper)
    if wide > _WIDTH_RTOL or not tight.any():
        return None
    if wide < -_WIDTH_RTOL:
        raise SingularError(
            "The optimization of efforts within limits did not converge: it has a relative margin of "
            f"{-wide:.1e}, but its constraints are nearly dependent. Scale the weights, or change the "
            "limits.",
            room=-wide,
        )
    rows, met = np.tile(N, (2, 1))[tight], np.concatenate([upper - start, lower - start])[tight]
    z, Z = np.linalg.lstsq(rows, met, rcond=_ROW_RTOL)[0], _null(rows)
    if Z.shape[1] == len(Z):
        return None
    left = N @ Z
    stands = np.linalg.norm(left, axis=1) <= _ROW_RTOL * np.linalg.norm(N, axis=1)
    return nearest(start + N @ z, np.where(stands[:, None], 0.0, left), lower, upper)


def _least_distance(C: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the shortest z with C z ≥ d, or some other z if this is infeasible."""
    from scipy.optimize import nnls

    E = np.concatenate([C.T, d[None]])
    try:
        u, _ = nnls(E, np.append(np.zeros(C.shape[1]), 1.0), maxiter=_ITERATIONS_PER_ROW * len(d))
    except RuntimeError:  # cycling, for an almost empty feasible set
        return np.zeros(C.shape[1])
    return np.linalg.lstsq(C[u > 0], d[u > 0], rcond=None)[0]


def _within(
    start: np.ndarray, N: np.ndarray, z: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray | None:
    """Return the efforts for z, moved to bounds that they violate by rounding; None if not within bounds."""
    T = start + N @ z
    allowed = _BOUND_RTOL * (np.abs(start) + np.linalg.norm(N, axis=1) * np.linalg.norm(z))
    for bound in (lower, upper):
        known = np.where(np.isfinite(bound), bound, 0.0)
        near = np.isfinite(bound) & (np.abs(T - known) <= allowed)
        T = np.where(near, known, T)
    return T if ((lower <= T) & (upper >= T)).all() else None


def minimize_largest_share(
    start: np.ndarray, N: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray | None:
    """Find the efforts start + N z that minimize the largest share of finite bounds, then the next largest.

    The share of an effort is T/upper or T/lower, depending on its sign. The solution is the strict Chebyshev
    approximation of Rice, which is unique. A linear program gives the largest share and, by its multipliers,
    the efforts that attain it in every solution. These are fixed, and the process repeats for the other
    efforts. Return None if no efforts lie within the bounds.
    """
    size = np.maximum(np.abs(lower), np.abs(upper))
    # rows a z + c ≤ t for shares, a z + c ≤ 0 for bounds of the other sign
    rows, constants, shared = [], [], []
    for bound, sign in ((upper, 1.0), (lower, -1.0)):
        as_share = bound * sign > 0
        by = np.where(as_share, np.abs(bound), np.where(size > 0, size, 1.0))
        rows.append(sign * N / by[:, None])
        constants.append((sign * start - np.where(as_share, 0.0, sign * bound)) / by)
        shared.append(as_share)
    a, c, share = np.concatenate(rows), np.concatenate(constants), np.concatenate(shared)
    z, Z = np.zeros(N.shape[1]), np.eye(N.shape[1])
    unit = max(float(np.abs(c).max(initial=0.0)), 1e-300)
    longest = np.linalg.norm(a, axis=1)
    while Z.shape[1]:
        free = np.linalg.norm(a @ Z, axis=1) > _ROW_RTOL * longest
        if not (free & share).any():
            break
        A_ub = np.concatenate([a[free] @ Z, -share[free, None].astype(float)], axis=1)
        b_ub = -(c[free] + a[free] @ z)
        program = _program(A_ub, b_ub / unit, 1.0, (None, None))
        if program.status != 0:
            return None
        weight = np.abs(program.ineqlin.marginals)
        tight = weight > _MULTIPLIER_RTOL * weight.max()
        step = np.linalg.lstsq(A_ub[tight], b_ub[tight], rcond=_ROW_RTOL)[0]
        z = z + Z @ step[:-1]
        Z = Z @ _null(A_ub[tight, :-1])
    return _within(start, N, z, lower, upper)


def _null(a: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (n, k) of the null space of rows (m, n)."""
    from scipy.linalg import null_space

    return null_space(a, rcond=_ROW_RTOL)


@dataclass(frozen=True)
class FeasibleShare:
    """Largest feasible share of a demand."""

    scale: float | None  # largest share of the demand, 1 at most; None if the bounds allow none
    widen: float  # relative widening of the bounds that would allow some share
    binding: tuple[int, ...]  # efforts with active bounds


def largest_feasible_share(
    start: np.ndarray, N: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> FeasibleShare:
    """Compute the largest share of a demand within bounds, or the widening of bounds that makes it feasible.

    Efforts are start + N z, with `start` in proportion to the demand. Bounds may be infinite.
    """
    rows, T, bound, given = _bounded(start, N, lower, upper)
    unit = max(1.0, float(np.abs(T).max(initial=0.0)))
    share = _program(np.column_stack([rows, T / unit]), bound, -1.0, (0.0, unit))
    if share.status == 0:
        weight = np.abs(share.ineqlin.marginals)
        strong = given[weight > _MULTIPLIER_RTOL * weight.max(initial=0.0)] % len(start)
        return FeasibleShare(max(0.0, float(share.x[-1]) / unit), 0.0, tuple(sorted(set(strong.tolist()))))
    wide, tight = _widening(start, N, lower, upper)
    stops = tight.reshape(2, -1).any(axis=0)
    return FeasibleShare(None, wide, tuple(np.flatnonzero(stops).tolist()))


def _bounded(
    start: np.ndarray, N: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return conditions rows z + T ≤ bound, scaled by the bounds, and their indices, upper bounds first."""
    magnitude = np.maximum(*(np.where(np.isfinite(b), np.abs(b), 0.0) for b in (lower, upper)))
    largest = max(np.abs(a).max(initial=0.0) for a in (start, N))
    magnitude = np.where(magnitude > 0, magnitude, magnitude.max(initial=0.0) or 1.0)
    size = np.tile(np.maximum(magnitude, _MAGNITUDE_RTOL * largest), 2)
    bound = np.concatenate([upper, -lower])
    given = np.flatnonzero(np.isfinite(bound))
    rows, T = np.concatenate([N, -N]) / size[:, None], np.concatenate([start, -start]) / size
    width = np.linalg.norm(rows[given], axis=0)
    return rows[given] / np.where(width > 0, width, 1.0), T[given], (bound / size)[given], given


def _widening(
    start: np.ndarray, N: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the least relative widening of the bounds, below 0 if feasible, and the active bounds (2A,)."""
    rows, T, bound, given = _bounded(start, N, lower, upper)
    unit = max(1.0, float(np.abs(bound - T).max(initial=0.0)))
    least = _program(np.column_stack([rows, -np.ones(len(T))]), (bound - T) / unit, 1.0, (-1.0, None))
    weight = np.abs(least.ineqlin.marginals)
    tight = np.zeros(2 * len(start), dtype=bool)
    tight[given[weight > _MULTIPLIER_RTOL * weight.max(initial=0.0)]] = True
    return float(least.x[-1]) * unit, tight


def _program(
    rows: np.ndarray, bound: np.ndarray, cost: float, last: tuple[float | None, float | None]
) -> Any:
    """Minimize cost · x_n for rows x ≤ bound, with bounds on x_n only."""
    from scipy.optimize import linprog

    n = rows.shape[1]
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(
        np.append(np.zeros(n - 1), cost),
        rows,
        bound,
        bounds=[(None, None)] * (n - 1) + [last],
        method="highs-ds",
        options=exact,
    )
