"""What moves where coordinates stand still, and which coordinates could drive a mechanism instead."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from kic.tree import PRISMATIC, Tree

# a set of coordinates is good if the least that it moves is more than this share
GOOD = 1e-3
# so many sets are tried one by one
MANY = 3000


def loose(tree: Tree, scaled: np.ndarray, share: float) -> str:
    """Names of the tree's coordinates that move most where rows give way, from scaled G (P, M)."""
    _, sigma, V = np.linalg.svd(scaled.real)
    slack = max(1, V.shape[0] - int((sigma > share * sigma.max(initial=0.0)).sum()))
    free = np.linalg.norm(V[-slack:], axis=0)
    most = [n for n in np.argsort(-free)[:3] if free[n] > 0.1 * free.max()]
    return ", ".join(tree.columns[n] for n in most)


def possible(tree: Tree, closing: np.ndarray) -> list[str]:
    """Sets of the tree's coordinates that can drive the mechanism at one posture, three at most.

    The mechanism's own come first if they can; then the best. `closing` are independent closure rows (R, M).
    """
    mobility = tree.size - len(closing)
    if not 0 < mobility <= tree.size:
        return []
    # null space of the closure: a set of coordinates drives it if its rows there are regular
    null = np.linalg.svd(closing)[2][len(closing) :].T if len(closing) else np.eye(tree.size)

    def named(pick: list[int]) -> str:
        return ", ".join(tree.columns[n] for n in pick)

    own = [tree.column[name] for name in tree.drawing.coordinate_names if name in tree.column]
    first = [named(own)] if len(own) == mobility and _least(null, own) > GOOD else []
    # rates of turning of balls have no value: they are named only where nothing else would do
    valued = [n for n in range(tree.size) if tree.cols[n, 1] <= PRISMATIC]
    others = _sets(null, valued, mobility) or _sets(null, list(range(tree.size)), mobility)
    return [*first, *(names for names in map(named, others) if names not in first)][:3]


def _least(null: np.ndarray, pick: list[int]) -> float:
    """The least that a set of coordinates moves."""
    return float(np.linalg.svd(null[pick], compute_uv=False)[-1])


def _sets(null: np.ndarray, among: list[int], mobility: int) -> list[list[int]]:
    """Good sets of coordinates, best first; only one where there are too many to try."""
    if len(among) < mobility:
        return []
    if comb(len(among), mobility) > MANY:
        from scipy.linalg import qr

        best = [among[k] for k in np.sort(qr(null[among].T, mode="r", pivoting=True)[1][:mobility])]
        return [best] if _least(null, best) > GOOD else []
    found = [(_least(null, list(pick)), list(pick)) for pick in combinations(among, mobility)]
    return [pick for x, pick in sorted(found, key=lambda one: -one[0]) if x > GOOD]
