"""Limits of more actuators than degrees of freedom along a path.

Efforts T_q at the coordinates are possible if there are efforts T within their limits with GᵀT = T_q. These
T_q form a zonotope. With m degrees of freedom, the normal n of a facet is perpendicular to m − 1 rows of G.
The facet is n·T_q = Σ max(n·g l, n·g u) over the rows g with limits l and u. On a path T_q is A s̈ + B ṡ² + C
ṡ + D, so that every facet is a constraint on s̈, ṡ² and ṡ. Most of these constraints are redundant. The
others correspond to the vertices of the convex hull of the duals.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from kic.errors import InputError

# largest number of facets of one point, and the number above which redundant ones are removed
FACETS_MAX, FACETS_FEW_MAX = 20_000, 24
# size of a normal or a projection, as a share of the largest, below which it is rounding
NORMAL_RTOL = 1e-10
# coefficients below this share of the largest are rounding
TERM_RTOL = 1e-10
# margin of the inner point of the dual to all facets, as a share of the limits
INNER_MARGIN_MIN = 1e-6


def facets(
    G: np.ndarray, lower: np.ndarray, upper: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return normals n (L, K, M) and limits (L, K) of n·T_q for Jacobians G (L, A, M) and limits (A,).

    Normals are scaled so that the larger finite limit is 1. Rows without a facet are zero, without limits.
    """
    free = np.isinf(lower) & np.isinf(upper)
    dof, basis = G.shape[2], np.broadcast_to(np.eye(G.shape[2]), (len(G), G.shape[2], G.shape[2]))
    if free.any():  # efforts of these balance every load along their rows
        _, sizes, turned = np.linalg.svd(G[:, free], full_matrices=True)
        ranks = (sizes > NORMAL_RTOL * sizes[:, :1]).sum(axis=1)
        rank = int(ranks.max(initial=0))
        if (ranks < rank).any():
            listed = ", ".join(np.array(names)[free].tolist())
            raise InputError(
                "Actuators without limits must drive the same number of degrees of freedom along the path, "
                f"got {ranks.min()} to {rank} of {listed}. Give limits of all of them.",
                key="effort_limits",
                got=int(ranks.min()),
                expected=rank,
            )
        basis = np.swapaxes(turned[:, rank:], 1, 2)
        dof -= rank
    if dof <= 0:
        return np.zeros((len(G), 0, G.shape[2])), np.zeros((len(G), 0)), np.zeros((len(G), 0))
    rows = G[:, ~free] @ basis
    count = comb(rows.shape[1], dof - 1)
    if count > FACETS_MAX:
        raise InputError(
            f"Limits of {len(names)} actuators for {G.shape[2]} degrees of freedom give {count} constraints "
            f"at each point, more than {FACETS_MAX}. Give limits of fewer actuators.",
            key="effort_limits",
            got=count,
        )
    chosen = np.array(list(combinations(range(rows.shape[1]), dof - 1)), dtype=np.intp).reshape(
        count, dof - 1
    )
    size = np.linalg.norm(rows, axis=(1, 2), keepdims=True)
    square = np.zeros((len(G), count, dof, dof))
    square[..., : dof - 1] = np.swapaxes((rows / size)[:, chosen], 2, 3)
    Q, R = np.linalg.qr(square[..., : dof - 1], mode="complete")
    normal = Q[..., -1]
    diagonal = np.abs(np.einsum("...ii->...i", R[..., : dof - 1, :]))
    proper = (diagonal > NORMAL_RTOL).all(axis=-1)
    moved = normal @ np.swapaxes(rows, 1, 2)
    moved = np.where(np.abs(moved) > NORMAL_RTOL * size, moved, 0.0)
    low, high = lower[~free], upper[~free]
    with np.errstate(invalid="ignore"):  # limits of efforts that do not count may be infinite
        sides = [np.where(moved == 0, 0.0, moved * limit) for limit in (low, high)]
    most, least = np.maximum(*sides).sum(axis=-1), np.minimum(*sides).sum(axis=-1)
    finite = np.maximum(*(np.where(np.isfinite(a), np.abs(a), 0.0) for a in (most, least)))
    proper &= np.isfinite(most) | np.isfinite(least)
    # both limits are zero, or one is zero and the other infinite
    scale = np.where(finite > 0, finite, size[..., 0])
    normal = np.where(proper[..., None], normal @ np.swapaxes(basis, 1, 2) / scale[..., None], 0.0)
    return normal, np.where(proper, least / scale, -np.inf), np.where(proper, most / scale, np.inf)


def needed(terms: np.ndarray, rest: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the indices of constraints lower ≤ terms·x + rest ≤ upper (K,) that are not redundant.

    `terms` (K, 3) are the coefficients of x = (s̈, ṡ², ṡ). All are returned if no x satisfies all of them.
    """
    K = len(rest)
    size = np.abs(terms).max(axis=0, initial=0.0)
    # limits are 1, so that the square of a coefficient of ṡ is one of ṡ²
    used = size > TERM_RTOL * np.array([size[:2].max(), size[:2].max(), np.sqrt(size[:2].max())])
    scaled = terms[:, used] / size[used]
    rows = np.concatenate([scaled, -scaled])
    room = np.concatenate([upper - rest, rest - lower])
    held = np.isfinite(room) & (np.abs(rows).max(axis=1, initial=0.0) > 0)
    inside = np.zeros(rows.shape[1])
    if room[held].min(initial=np.inf) < INNER_MARGIN_MIN:
        found = _inner_point(rows[held], room[held])
        if found is None:
            return np.arange(K)
        inside = found
    places = np.flatnonzero(held)
    duals = rows[held] / (room[held] - rows[held] @ inside)[:, None]
    if duals.shape[1] < 2:
        ends = {int(np.argmin(duals)), int(np.argmax(duals))} if duals.size else set[int]()
        return np.unique(places[list(ends)] % K)
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = ConvexHull(duals).vertices
    except QhullError:  # all of them are in a plane
        corners = np.arange(len(duals))
    return np.unique(places[corners] % K)


def _inner_point(rows: np.ndarray, room: np.ndarray) -> np.ndarray | None:
    """Return the point with the largest margin to rows·x ≤ room, or None if no point is inside."""
    from scipy.optimize import linprog

    cost = np.zeros(rows.shape[1] + 1)
    cost[-1] = -1.0
    A = np.column_stack([rows, np.ones(len(rows))])
    found = linprog(cost, A, room, bounds=[(None, None)] * rows.shape[1] + [(0, 1)])
    inside: np.ndarray = found.x
    return inside[:-1] if found.success and inside[-1] > INNER_MARGIN_MIN else None
