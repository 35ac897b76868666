"""Loops of rounded dimensions: which of their conditions are redundant, and by how much these miss.

Planar and other overconstrained loops move because some of their conditions follow from the others. In
dimensions of a file with a few digits they almost do: their singular values are as small as the rounding, all
along the motion. The loops move if the weakest conditions, beyond a gap of the singular values, are left out.
Their residuals are measured along the motion that the others allow. Where these exceed what rounding makes,
as next to a dead centre or at an infinitesimal motion, the conditions are not redundant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.kernels import layout as lay
from kic.numerics.gauss_newton import gauss_newton
from kic.numerics.graphs import components
from kic.numerics.linalg import pivoted_qr
from kic.numerics.tolerances import EPS
from kic.transfer.closure import PINV_RTOL, Closure
from kic.transfer.rank import independent_rows

# singular values and residuals, relative to the largest and to the size of the loops: of conditions that hold
# by themselves, of dimensions with 16 digits, and the largest of rounded ones, as of an angle written 3.14
ZERO_SHARE, EXACT_SHARE, ROUNDED_SHARE_MAX = 4 * EPS, 64 * EPS, 8e-3
# share of the residual of closed configurations that exact conditions may miss, and residual of steps
EXACT_FACTOR, STEP_RESIDUAL = 0.1, 1e-14
# the largest of loops that move without: their conditions may be meant
MOVING_SHARE_MAX = 1e-3
# ratio of successive singular values between which a rank is sought: the smallest rank, and others
GAP_MIN, FURTHER_GAP_MIN = 10.0, 100.0
# margin of the tolerance over what redundant conditions miss
TOLERANCE_FACTOR = 10.0
# steps along the motion: their length (radians, shares of the characteristic length) and number, and the
# motions in which they begin, both ways
STEP_LENGTH, STEPS, WAYS = 0.1, 32, 4
# a step ends where a direction has turned so far out of the motions, or the conditions are so much closer to
# dependence, as shares of what they were
DIRECTION_SHARE_MIN, INDEPENDENCE_SHARE_MIN = 0.3, 0.3
# distance along the motion that shows that conditions are redundant
PROVED_DISTANCE_MIN = 0.1


@dataclass(frozen=True)
class RoundedLoops:
    """Loops from which conditions are left out that follow from the others but for rounding.

    Attributes
    ----------
    parts : tuple of str
        Parts that impose these conditions.
    length, angle : float
        By how much the conditions miss along the motion: a length, and radians.
    share : float
        Largest residual of them, and contribution beyond the others, in the scales of the closure.
    rank : int
        Number of the other conditions that are independent.
    """

    parts: tuple[str, ...]
    length: float
    angle: float
    share: float
    rank: int


def rounded_loops(closure: Closure, state: np.ndarray) -> tuple[float, list[RoundedLoops]]:
    """Return the tolerance with which loops of rounded dimensions move, and these loops, at a closed state.

    Loops that share no joint are judged one by one. The tolerance is 0 if there are none, or if none
    separates the conditions of all loops that are redundant from those that are not. `closure` has the
    conditions alone, without chosen rows; the state is (1, S).
    """
    t = closure.transfer
    if t.tree.open or not t.owners:
        return 0.0, []
    G = closure.rows(state)[1][0]
    rows, columns = np.nonzero(t.system.moving[t.system.rows.item_of[t.system.picked]])
    links = list(zip(rows.tolist(), (len(G) + columns).tolist(), strict=True))
    group, found, total = components(links, sum(G.shape)), list[RoundedLoops](), 0
    for k in np.unique(group[: len(G)]):
        own, free = np.flatnonzero(group[: len(G)] == k), np.flatnonzero(group[len(G) :] == k)
        made = _rounded(closure, state, own, free)
        if made is not None:
            found.append(made)
        total += made.rank if made is not None else len(independent_rows(G[own], 0.0))
    tolerance = TOLERANCE_FACTOR * max((loops.share for loops in found), default=0.0)
    if len(independent_rows(G, tolerance)) != total:
        return 0.0, []
    return tolerance, found


def _rounded(closure: Closure, state: np.ndarray, own: np.ndarray, free: np.ndarray) -> RoundedLoops | None:
    """Return the conditions that some loops leave out to move, None if there are none.

    `own` are the rows of the loops, and `free` the columns that move them.
    """
    G = closure.rows(state)[1][0][np.ix_(own, free)]
    sigma = np.linalg.svd(G, compute_uv=False)
    if not sigma.size or not sigma[0] > EXACT_SHARE:
        return None
    sigma = np.append(sigma / sigma[0], 0.0)
    strong, certain = (int((sigma > share).sum()) for share in (ROUNDED_SHARE_MAX, EXACT_SHARE))
    if sigma[strong] < ZERO_SHARE:
        return None
    most = ROUNDED_SHARE_MAX if certain == len(free) else MOVING_SHARE_MAX
    for rank in range(strong, min(certain + 1, len(own), len(free))):
        if sigma[rank] * (GAP_MIN if rank == strong else FURTHER_GAP_MIN) < sigma[rank - 1]:
            made = _missed_along(closure, state, own, free, rank)
            if made is not None and made.share < most:
                return made if made.share > EXACT_FACTOR * closure.limit else None
    return None


def _missed_along(
    closure: Closure, state: np.ndarray, own: np.ndarray, free: np.ndarray, rank: int
) -> RoundedLoops | None:
    """Return what conditions beyond a rank miss along motions; None if they are not redundant.

    `own` and `free` are those of `_rounded`.
    """
    t = closure.transfer

    def rows(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, G = closure.rows(states)
        return values[:, own], G[:, own][:, :, free]

    def moved(states: np.ndarray, steps: np.ndarray) -> np.ndarray:
        every = np.zeros((len(steps), t.tree.size))
        every[:, free] = steps
        return closure.moved(states, every)

    def solved(states: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, G = rows(states)
        return values[:, kept], G[:, kept]

    values, G = rows(state)
    order = pivoted_qr(G[0].T)[1]
    kept, left = order[:rank], order[rank:]
    ways = np.random.default_rng(0).normal(size=(1 if len(free) - rank == 1 else WAYS, len(free)))
    ways = np.concatenate([ways, -ways])
    states, worst, share = state.repeat(len(ways), axis=0), np.zeros(len(left)), 0.0
    first, gone = None, 0.0
    for _ in range(STEPS):
        values, G = rows(states)
        sigma, V = np.linalg.svd(G[:, kept])[1:]
        N = V[:, rank:]
        missed, beyond = np.abs(values[:, left]), np.linalg.norm(G[:, left] @ np.swapaxes(N, 1, 2), axis=2)
        along = np.einsum("bki,bk->bi", N, np.einsum("bki,bi->bk", N, ways))
        size = np.linalg.norm(along, axis=1)
        least = sigma[:, -1] if rank else np.ones(len(states))
        first = least[0] if first is None else first
        # conditions meet other motions where they come close to dependence
        going = (least > INDEPENDENCE_SHARE_MIN * first) & (least > 10 * beyond.max(axis=1, initial=0.0))
        going &= size > DIRECTION_SHARE_MIN * np.linalg.norm(ways, axis=1) if gone else size > 0
        share = max(share, missed[going].max(initial=0.0), beyond[going].max(initial=0.0))
        if share > ROUNDED_SHARE_MAX:
            return None
        worst = np.maximum(worst, missed[going].max(axis=0, initial=0.0))
        ways = along[going] / np.abs(along[going]).max(axis=1, keepdims=True)
        if not len(ways):
            break
        ahead = moved(states[going], STEP_LENGTH * ways)
        states, residual = gauss_newton(
            solved, moved, ahead, rtol=PINV_RTOL, step_max=STEP_LENGTH, enough=STEP_RESIDUAL
        )
        closed = residual <= closure.limit
        states, ways = states[closed], ways[closed]
        gone += STEP_LENGTH
        if not len(ways):
            break
    if gone < PROVED_DISTANCE_MIN:
        return None
    rows_of = t.system.rows
    angular = rows_of.items[rows_of.item_of[t.system.picked[own[left]]], lay.ITEM] == lay.DOT1
    lengths = worst * t.scale[own[left]]
    parts = tuple(dict.fromkeys(t.owners[row] for row in own[left]))
    length, angle = lengths[~angular].max(initial=0.0), worst[angular].max(initial=0.0)
    return RoundedLoops(parts, float(length), float(angle), float(share), rank)
