"""Small convex programs for one posture: efforts T = start + N z within bounds, z being free.

Rows of N that vanish are efforts that nothing can change. Solutions do not keep the tolerance of a program: which
bounds are met is taken from it, and the equations that these make are solved anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# beside the largest multiplier, one that is none; beside the longest, a row without direction
_NO_MULTIPLIER, _NO_ROW = 1e-9, 1e-12
# as shares of efforts and bounds: what a bound may be exceeded by, before it is met exactly
SLACK = 1e-12


def nearest(start: np.ndarray, N: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray | None:
    """Efforts within bounds with the least |z|: least distance programming of Lawson and Hanson.

    Parameters
    ----------
    start, lower, upper : (A,)
        Efforts for z = 0, and their bounds, which may be infinite.
    N : (A, K)
        How they may vary.

    Returns
    -------
    (A,) or None
        None where the bounds leave nothing.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(2)
    >>> nearest(np.array([3.0, 1.0]), np.array([[1.0], [-1.0]]), -2 * one, 2 * one)
    array([2., 2.])
    """
    both, bound = np.concatenate([N, -N]), np.concatenate([lower, -upper])
    size = np.linalg.norm(both, axis=1)
    given = np.flatnonzero(np.isfinite(bound) & (size > 0))
    size, gap = size[given], bound[given] - np.concatenate([start, -start])[given]
    far = float(np.max(gap / size, initial=0.0)) if given.size else 0.0
    if far == 0:
        return within(start, lower, upper)
    from scipy.optimize import nnls

    # scaled so that the answer is not shorter than 1, and rarely much longer
    C, d = both[given] / size[:, None], gap / size / far
    E = np.concatenate([C.T, d[None]])
    f = np.append(np.zeros(N.shape[1]), 1.0)
    try:
        u, _ = nnls(E, f)
    except RuntimeError:  # it goes in circles, where bounds leave next to nothing
        return None
    if not E[-1] @ u < 1:
        return None
    tight = u > 0
    z = far * np.linalg.lstsq(C[tight], d[tight], rcond=None)[0]
    return within(_met(start + N @ z, given[tight], lower, upper), lower, upper)


def within(T: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray | None:
    """Efforts put on the bounds that they exceed by round-off only; None where one is exceeded by more."""
    inside = np.clip(T, lower, upper)
    allowed = SLACK * np.maximum(np.abs(T), np.abs(inside))
    return inside if (np.abs(T - inside) <= allowed).all() else None


def _met(T: np.ndarray, tight: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Efforts exactly on the bounds that are met, numbered with the lower ones first."""
    count = len(T)
    for bound, k in ((lower, tight[tight < count]), (upper, tight[tight >= count] - count)):
        T[k] = bound[k]
    return T


def least_largest(
    start: np.ndarray, N: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray | None:
    """Efforts whose largest share of their bounds is least; among those the next largest, and so on.

    The share of an effort is T/upper or T/lower, whichever has its sign. This, the strict Chebyshev
    approximation of Rice, is unique: a linear program tells the least largest share and, by its multipliers,
    efforts that have it in every solution; these stand, and the same is asked of the others.

    Parameters
    ----------
    start, lower, upper : (A,)
        Efforts for z = 0, and their bounds, all finite.
    N : (A, K)
        How they may vary.

    Returns
    -------
    (A,) or None
        None where the bounds leave nothing.

    Examples
    --------
    >>> import numpy as np
    >>> upper = np.array([4.0, 2.0])
    >>> least_largest(np.array([3.0, 0.0]), np.array([[1.0], [-1.0]]), -upper, upper)
    array([2., 1.])
    """
    from scipy.optimize import linprog

    size = np.maximum(np.abs(lower), np.abs(upper))
    # rows a z + c ≤ t: shares; a z + c ≤ 0: bounds that no share stands for
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
        free = np.linalg.norm(a @ Z, axis=1) > _NO_ROW * longest
        if not (free & share).any():
            break
        A_ub = np.concatenate([a[free] @ Z, -share[free, None].astype(float)], axis=1)
        b_ub = -(c[free] + a[free] @ z)
        program = linprog(
            np.append(np.zeros(Z.shape[1]), 1.0), A_ub, b_ub / unit, bounds=(None, None), method="highs-ds"
        )
        if program.status != 0:
            return None
        weight = np.abs(program.ineqlin.marginals)
        tight = weight > _NO_MULTIPLIER * weight.max()
        step = np.linalg.lstsq(A_ub[tight], b_ub[tight], rcond=_NO_ROW)[0]
        z = z + Z @ step[:-1]
        Z = Z @ _null(A_ub[tight, :-1])
    return within(start + N @ z, lower, upper)


def _null(a: np.ndarray) -> np.ndarray:
    """Orthonormal basis (n, k) of what rows (m, n) give zero."""
    from scipy.linalg import null_space

    return null_space(a, rcond=_NO_ROW)


@dataclass(frozen=True)
class Reach:
    """How much of a demand bounds allow.

    Attributes
    ----------
    scale : float or None
        Largest share of the demand, 1 at most; None where they allow no share of it.
    widen : float
        Where they allow none: how much wider the bounds would have to be, as a share of their size.
    binding : tuple of int
        Efforts whose bounds are what stops it.
    """

    scale: float | None
    widen: float
    binding: tuple[int, ...]


def reach(start: np.ndarray, N: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Reach:
    """How much of a demand bounds allow, by linear programs over z and a scale or a widening.

    Parameters
    ----------
    start, lower, upper : (A,)
        Efforts for z = 0, in proportion to the demand, and their bounds, which may be infinite.
    N : (A, K)
        How they may vary.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(2)
    >>> reach(np.array([6.0, 2.0]), np.array([[1.0], [-1.0]]), -2 * one, 2 * one)
    Reach(scale=0.5, widen=0.0, binding=(0, 1))
    """
    from scipy.optimize import linprog

    K = N.shape[1]
    both = np.concatenate([N, -N])
    T, bound = np.concatenate([start, -start]), np.concatenate([upper, -lower])
    magnitude = np.maximum(*(np.where(np.isfinite(b), np.abs(b), 0.0) for b in (lower, upper)))
    size = np.tile(np.where(magnitude > 0, magnitude, 1.0), 2)
    given = np.flatnonzero(np.isfinite(bound))
    both, T, bound = (x[given] / size[given].reshape(-1, *[1] * (x.ndim - 1)) for x in (both, T, bound))
    widths = np.linalg.norm(both, axis=0) if len(both) else np.ones(K)
    both = both / np.where(widths > 0, widths, 1.0)
    free: list[tuple[float | None, float | None]] = [(None, None)] * K

    def binding(program: object) -> tuple[int, ...]:
        weight = np.abs(program.ineqlin.marginals)  # type: ignore[attr-defined]
        strong = given[weight > _NO_MULTIPLIER * weight.max(initial=0.0)] % len(start)
        return tuple(sorted(set(strong.tolist())))

    unit = max(1.0, float(np.abs(T).max(initial=0.0)))
    share = linprog(
        np.append(np.zeros(K), -1.0),
        np.column_stack([both, T / unit]),
        bound,
        bounds=[*free, (0, unit)],
        method="highs-ds",
    )
    if share.status == 0:
        return Reach(float(share.x[-1]) / unit, 0.0, binding(share))
    wider = linprog(
        np.append(np.zeros(K), 1.0),
        np.column_stack([both, -np.ones(len(T))]),
        bound - T,
        bounds=[*free, (0, None)],
        method="highs-ds",
    )
    return Reach(None, float(wider.x[-1]), binding(wider))
