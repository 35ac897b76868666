"""Rank of the closure: independent conditions and degrees of freedom at one configuration.

Each closure condition has a share: the part of its row that the previous rows of a pivoted QR do not span,
relative to the largest, or to the scale of the closure if all are smaller. A condition is independent if its
share exceeds the rounding error of closed configurations, or `closure_tolerance` for rounded dimensions. The
degrees of freedom to first order are the coordinates of the tree minus the independent conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kic.numerics.linalg import pivoted_qr

if TYPE_CHECKING:
    from kic.kinematics.tree import Tree
    from kic.transfer.coordinate_transfer import CoordinateTransfer

# share of the largest pivot below which a condition is rounding error: closed configurations have about 1e-13
RANK_SHARE = 1e-9
# largest error of unit vectors that count as parallel
PLANAR_ATOL = 1e-12


def nearby_rtol(tolerance: float) -> float:
    """Return the share below which conditions are redundant near a configuration with `tolerance`.

    Rounding grows along a motion, at most tenfold.
    """
    return max(RANK_SHARE, min(10 * tolerance, tolerance**0.5))


def condition_shares(closing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of each condition, largest first, and the corresponding rows.

    Parameters
    ----------
    closing : (R, M)
        Closure rows, scaled.

    Returns
    -------
    shares, pivot : (min(R, M),), (R,) int
        All shares are small if all conditions are redundant, such as those of the second hinge of a door.
    """
    closing = closing.real
    if not len(closing):
        return np.empty(0), np.empty(0, dtype=np.intp)
    diagonal, pivot = pivoted_qr(closing.T)
    diagonal = np.abs(diagonal)
    return diagonal / max(diagonal.max(initial=0.0), 1.0), pivot


def count_independent(shares: np.ndarray, tolerance: float) -> int:
    """Return the number of independent conditions from their shares."""
    return int((shares > max(RANK_SHARE, tolerance)).sum())


def independent_rows(closing: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the indices of independent rows among the closure rows (R, M) of one configuration."""
    shares, pivot = condition_shares(closing)
    return np.sort(pivot[: count_independent(shares, tolerance)])


def rank(transfer: CoordinateTransfer, state: np.ndarray) -> int:
    """Return the number of independent closure rows at one configuration (1, S)."""
    if not transfer.owners:
        return 0
    return len(independent_rows(transfer.scaled_rates(state)[0, transfer.size :], transfer.tolerance))


def first_order_dof(transfer: CoordinateTransfer, state: np.ndarray) -> tuple[int, bool]:
    """Return the degrees of freedom to first order at one configuration (1, S), and True if they are certain.

    They are certain if nothing moves, or if the closure has the largest possible rank: the rank is then
    constant nearby. Vanishing rows prove nothing, because they also occur in singular configurations.
    """
    size = transfer.tree.size
    if not transfer.owners:
        return size, True
    rows = transfer.scaled_rates(state)[0, transfer.size :]
    found = len(independent_rows(rows, transfer.tolerance))
    return size - found, found in (size, largest_rank(transfer.tree, len(rows)))


def largest_rank(tree: Tree, rows: int) -> int:
    """Return the largest possible rank of some closure rows: two for each cut of a planar mechanism."""
    normal, drawing = tree.planar_normal, tree.description
    if normal is None or drawing.couplings or drawing._closed_contacts:
        return rows
    for joint in tree.cuts:
        if joint.type == "revolute":
            off = np.linalg.norm(np.cross(joint.axis, normal))  # type: ignore[arg-type]
        elif joint.type == "prismatic":
            off = abs(np.dot(joint.axis, normal))  # type: ignore[arg-type]
        else:
            return rows
        if off > PLANAR_ATOL:
            return rows
    return min(rows, 2 * len(tree.cuts) + len(drawing._fixed_measures))
