"""Selection of inputs: unconstrained coordinates, and sets of coordinates that can drive a mechanism.

Closure rows allow the first-order motions of their null space. An orthonormal basis of it is used. A set of
rows drives the mechanism if every such motion moves it. Its measure is the least norm of its rates in a
motion of length one: the smallest singular value of its rows on that basis. With scaled rows and coordinates
the measure has no unit; it is 0 where the set cannot drive the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import comb

import numpy as np

from kic.kernels import layout as lay
from kic.kinematics.tree import Tree
from kic.numerics.linalg import min_singular_value, null_space, pivoted_qr

# a set of coordinates is accepted if its measure is larger than this
GOOD = 1e-3
# largest number of sets, times configurations, up to which all sets are tried: in an analysis, and where time
# matters more than the best set
ALL_SETS_MAX, ALL_SETS_QUICK_MAX = 100_000, 1_000
# largest number of configurations that an exchange uses, and number of its starts among them
SAMPLE, STARTS = 64, 8
# an exchange continues while the measure grows by more than this share
GAIN = 1e-9
# number of decimals to which equal measures agree
TIED = 9
# number of matrix entries that are decomposed at once
_BLOCK = 1_000_000


def unconstrained_coordinates(tree: Tree, scaled: np.ndarray, share: float) -> str:
    """Return up to three names of tree coordinates that move most in the null space of rows, for errors.

    The rows are the scaled G (P, M). Singular values up to a `share` of the largest count as zero.
    """
    _, sigma, V = np.linalg.svd(scaled.real)
    nullity = max(1, V.shape[0] - int((sigma > share * sigma.max(initial=0.0)).sum()))
    free = np.linalg.norm(V[-nullity:], axis=0)
    # rounded, so that equal rates keep the order of the columns
    ranks = np.argsort(-np.round(free / free.max(), 6), kind="stable")
    most = [n for n in ranks[:3] if free[n] > 0.1 * free.max()]
    return ", ".join(tree.columns[n] for n in most)


@dataclass(frozen=True)
class Ranking:
    """Sets of rows, the best first.

    Attributes
    ----------
    picks : (K, f) int
        Rows of each set.
    measures : (K, B)
        Measure of each set at each configuration.
    pool : (n,) int
        Rows that were candidates.
    share : int
        Number of preferred rows in each set.
    tried, total : int
        Number of sets that were tried, and of all sets.
    """

    picks: np.ndarray
    measures: np.ndarray
    pool: np.ndarray
    share: int
    tried: int
    total: int


def ranking(J: np.ndarray, preferred: np.ndarray, most: int, all_sets_max: int) -> Ranking:
    """Find the best sets of f rows, f the number of dof, by their measure at the worst configuration.

    If there are few sets, all are tried. Otherwise pivoted QR selects sets at some of the configurations, and
    single rows are exchanged while the measure grows.

    Parameters
    ----------
    J : (B, R, f)
        Scaled rows on the null space of the closure, at one configuration or several.
    preferred : (R,) bool
        Preferred rows. Other rows are used only for dof that the preferred rows do not determine.
    most : int
        Largest number of sets to return.
    all_sets_max : int
        Largest number of sets, times configurations, up to which all sets are tried.
    """
    J, dof = np.ascontiguousarray(J), J.shape[2]
    first, second = np.flatnonzero(preferred), np.flatnonzero(~preferred)
    values = np.linalg.svd(J[:, first], compute_uv=False) if first.size else np.zeros((len(J), 0))
    share = min(int((values > GOOD).sum(axis=1).max(initial=0)), dof)
    groups = [(first, share), (second, dof - share)]
    total = comb(len(first), share) * comb(len(second), dof - share)
    pool = np.sort(np.concatenate([rows for rows, n in groups if n]))
    if not total:
        return Ranking(np.zeros((0, dof), dtype=np.intp), np.zeros((0, len(J))), pool, share, 0, 0)
    if total * len(J) <= all_sets_max:
        found = product(*(combinations(rows.tolist(), n) for rows, n in groups))
        picks = np.array([list(chain(*pick)) for pick in found], dtype=np.intp).reshape(total, dof)
        tried = total
    else:
        picks, tried = _exchanged(J, groups, most)
    measures = _measures(J, picks)
    # sets that differ by rounding errors only stay in the order of the rows
    worst, median = (np.round(x, TIED) for x in (measures.min(axis=1), np.median(measures, axis=1)))
    best = np.lexsort((-median, -worst))[:most]
    return Ranking(np.sort(picks[best], axis=1), measures[best], pool, share, tried, total)


def _measures(J: np.ndarray, picks: np.ndarray) -> np.ndarray:
    """Compute the measures (K, B) of sets of rows (K, f)."""
    block = max(1, _BLOCK // max(1, len(J) * picks.shape[1] ** 2))
    parts = [min_singular_value(J[:, picks[k : k + block]]).T for k in range(0, len(picks), block)]
    return np.concatenate(parts) if parts else np.zeros((0, len(J)))


def _exchanged(J: np.ndarray, groups: Sequence[tuple[np.ndarray, int]], most: int) -> tuple[np.ndarray, int]:
    """Return good sets (K, f) among too many to try all, and the number of sets tried."""
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
    """Return the rows that pivoted QR selects at one configuration, group by group."""
    rest, pick = J.copy(), list[int]()
    for rows, count in groups:
        if count:
            taken = rows[pivoted_qr(rest[rows].T)[1][:count]]
            pick += taken.tolist()
            Q = np.linalg.qr(J[pick].T)[0]
            rest = J - (J @ Q) @ Q.T
    return tuple(sorted(pick))


def admissible_inputs(tree: Tree, closing: np.ndarray) -> list[str]:
    """Return at most three sets of tree coordinates that can drive the mechanism at one configuration.

    The default coordinates come first if they can drive it, then the best sets. `closing` are independent
    closure rows (R, M). Angular velocities of ball joints have no value and are used only if needed.
    """
    mobility = tree.size - len(closing)
    if not 0 < mobility <= tree.size:
        return []
    null = null_space(closing, mobility)

    def named(pick: Sequence[int] | np.ndarray) -> str:
        return ", ".join(tree.columns[n] for n in pick)

    own = [tree.column[name] for name in tree.description.coordinates if name in tree.column]
    first = [named(own)] if len(own) == mobility and min_singular_value(null[own]) > GOOD else []
    found = ranking(null[None], tree.cols[:, lay.KIND] <= lay.PRISMATIC, 3, ALL_SETS_QUICK_MAX)
    others = [named(pick) for pick, x in zip(found.picks, found.measures[:, 0], strict=True) if x > GOOD]
    return [*first, *(names for names in others if names not in first)][:3]
