"""What moves where coordinates stand still, and which sets of coordinates could drive a mechanism instead.

Closure rows leave the first-order motions of their null space, of which an orthonormal basis is taken. A set
of rows drives the mechanism if no motion of length one leaves it still: its measure is the least that it
moves, the smallest singular value of its rows on that basis. With scaled rows and coordinates the measure
has no unit; it is 0 where the set can not drive the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import comb

import numpy as np

from kic.kernels.layout import KIND, PRISMATIC
from kic.kinematics.tree import Tree

# a set of coordinates is good if the least that it moves is more than this share
GOOD = 1e-3
# so many sets, times postures, are tried one by one
MANY = 100_000
# of more postures than these an exchange looks at some only; it starts from the best sets of a few
SAMPLE, STARTS = 64, 8
# an exchange goes on where it gains more than this share
GAIN = 1e-9
# measures that agree to so many decimals are equal
TIED = 9
# numbers that are decomposed at once
_BLOCK = 1_000_000


def unconstrained_coordinates(tree: Tree, scaled: np.ndarray, share: float) -> str:
    """Names of the tree's coordinates that move most where rows give way, from scaled G (P, M)."""
    _, sigma, V = np.linalg.svd(scaled.real)
    slack = max(1, V.shape[0] - int((sigma > share * sigma.max(initial=0.0)).sum()))
    free = np.linalg.norm(V[-slack:], axis=0)
    most = [n for n in np.argsort(-free)[:3] if free[n] > 0.1 * free.max()]
    return ", ".join(tree.columns[n] for n in most)


def null_space(closing: np.ndarray, freedoms: int) -> np.ndarray:
    """Orthonormal first-order motions (..., M, f) that closure rows (..., R, M) leave, or hold least."""
    size = closing.shape[-1]
    if not closing.shape[-2]:
        return np.broadcast_to(np.eye(size), (*closing.shape[:-2], size, size))
    V = np.linalg.svd(closing, full_matrices=closing.shape[-2] < size)[2]
    return np.swapaxes(V[..., size - freedoms :, :], -1, -2)


def min_singular_value(rows: np.ndarray, of: int | None = None) -> np.ndarray:
    """The least (...) that rows (..., P, f) move while the mechanism moves by one.

    It is the smallest singular value, of a rank P or f, or of the largest so many that are asked for.
    """
    of = min(rows.shape[-2:]) if of is None else of
    if not of:
        return np.ones(rows.shape[:-2])
    return np.linalg.svd(rows, compute_uv=False)[..., of - 1]


@dataclass(frozen=True)
class Ranking:
    """Sets of rows, the best first.

    Attributes
    ----------
    picks : (K, f) int
        Rows of each set.
    measures : (K, B)
        The least that each set moves at each posture.
    pool : (n,) int
        Rows that were candidates at all.
    share : int
        How many rows of each set are preferred ones.
    tried, total : int
        How many sets were tried, of how many.
    """

    picks: np.ndarray
    measures: np.ndarray
    pool: np.ndarray
    share: int
    tried: int
    total: int


def ranking(J: np.ndarray, preferred: np.ndarray, most: int) -> Ranking:
    """The best sets of as many rows as there are freedoms, by the least that they move at the worst posture.

    Few sets are all tried. Of many, those that pivoted QR names at some of the postures, and what comes of
    exchanging one row after the other as long as the measure grows.

    Parameters
    ----------
    J : (B, R, f)
        Scaled rows on the null space of the closure, at one posture or several.
    preferred : (R,) bool
        Rows to be taken; the others only stand in for freedoms that these do not have.
    most : int
        How many sets are wanted.
    """
    J, freedoms = np.ascontiguousarray(J), J.shape[2]
    first, second = np.flatnonzero(preferred), np.flatnonzero(~preferred)
    values = np.linalg.svd(J[:, first], compute_uv=False) if first.size else np.zeros((len(J), 0))
    share = min(int((values > GOOD).sum(axis=1).max(initial=0)), freedoms)
    groups = [(first, share), (second, freedoms - share)]
    total = comb(len(first), share) * comb(len(second), freedoms - share)
    pool = np.sort(np.concatenate([rows for rows, n in groups if n]))
    if not total:
        return Ranking(np.zeros((0, freedoms), dtype=np.intp), np.zeros((0, len(J))), pool, share, 0, 0)
    if total * len(J) <= MANY:
        found = product(*(combinations(rows.tolist(), n) for rows, n in groups))
        picks = np.array([list(chain(*pick)) for pick in found], dtype=np.intp).reshape(total, freedoms)
        tried = total
    else:
        picks, tried = _exchanged(J, groups, most)
    measures = _measures(J, picks)
    # what differs by rounding alone stays in the order of the rows
    worst, median = (np.round(x, TIED) for x in (measures.min(axis=1), np.median(measures, axis=1)))
    best = np.lexsort((-median, -worst))[:most]
    return Ranking(np.sort(picks[best], axis=1), measures[best], pool, share, tried, total)


def _measures(J: np.ndarray, picks: np.ndarray) -> np.ndarray:
    """The least (K, B) that sets of rows (K, f) move."""
    block = max(1, _BLOCK // max(1, len(J) * picks.shape[1] ** 2))
    parts = [min_singular_value(J[:, picks[k : k + block]]).T for k in range(0, len(picks), block)]
    return np.concatenate(parts) if parts else np.zeros((0, len(J)))


def _exchanged(J: np.ndarray, groups: Sequence[tuple[np.ndarray, int]], most: int) -> tuple[np.ndarray, int]:
    """Good sets among too many to try, (K, f), and how many were tried."""
    sample = J[:: -(-len(J) // SAMPLE)]
    known: dict[tuple[int, ...], float] = {}

    def look(sets: list[tuple[int, ...]]) -> None:
        new = [pick for pick in dict.fromkeys(sets) if pick not in known]
        if new:
            known.update(zip(new, _measures(sample, np.array(new)).min(axis=1).tolist(), strict=True))

    for b in np.unique(np.linspace(0, len(sample) - 1, STARTS).astype(int)):
        here = _pivots(sample[b], groups)
        look([here])
        while True:
            beside = [
                tuple(sorted({*here, new} - {old}))
                for rows, _ in groups
                for old in here
                if old in rows
                for new in rows.tolist()
                if new not in here
            ]
            look(beside)
            best = max(beside, key=known.__getitem__)
            if known[best] <= known[here] * (1 + GAIN):
                break
            here = best
    chosen = sorted(known, key=lambda pick: -known[pick])[:most]
    return np.array(chosen, dtype=np.intp), len(known)


def _pivots(J: np.ndarray, groups: Sequence[tuple[np.ndarray, int]]) -> tuple[int, ...]:
    """The rows of a pivoted QR at one posture, group by group."""
    from scipy.linalg import qr

    rest, pick = J.copy(), list[int]()
    for rows, count in groups:
        if count:
            taken = rows[qr(rest[rows].T, mode="r", pivoting=True)[1][:count]]
            pick += taken.tolist()
            Q = np.linalg.qr(J[pick].T)[0]
            rest = J - (J @ Q) @ Q.T
    return tuple(sorted(pick))


def admissible_inputs(tree: Tree, closing: np.ndarray) -> list[str]:
    """Sets of the tree's coordinates that can drive the mechanism at one posture, three at most.

    The mechanism's own come first if they can; then the best. `closing` are independent closure rows (R, M).
    Rates of turning of balls have no value: they are named only where nothing else would do.
    """
    mobility = tree.size - len(closing)
    if not 0 < mobility <= tree.size:
        return []
    null = null_space(closing, mobility)

    def named(pick: Sequence[int] | np.ndarray) -> str:
        return ", ".join(tree.columns[n] for n in pick)

    own = [tree.column[name] for name in tree.description.coordinate_names if name in tree.column]
    first = [named(own)] if len(own) == mobility and min_singular_value(null[own]) > GOOD else []
    found = ranking(null[None], tree.cols[:, KIND] <= PRISMATIC, 3)
    others = [named(pick) for pick, x in zip(found.picks, found.measures[:, 0], strict=True) if x > GOOD]
    return [*first, *(names for names in others if names not in first)][:3]
