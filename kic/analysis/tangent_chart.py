"""Chords: closed postures between two that are near, and where a sign changes on the way.

Closed postures near one of them are known by their place in its tangent space, the orthonormal motions that
the closure leaves there: a chart in which no coordinate of the mechanism has to be regular. With N that basis
and C independent closure rows, the tangent X of the chart follows from [Nᵀ; C] X = [1; 0]; rows s of as many
coordinates as freedoms have det(s X) = 0 where they lose rank, and det [Nᵀ; C] = 0 where the closure does.
Both are smooth along a chord and change their sign together with what they measure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from kic.kinematics.state import difference, integrate
from kic.numerics.linalg import min_singular_value, null_space
from kic.transfer.closure import Closure

# two postures are near if their tangent spaces are, as the least cosine; if the chord lies along them, as
# the share that does not; and if nothing turns by more than this
ALIKE, ASIDE, TURN = 0.7, 0.5, 1.0
# so often a chord that is too long is split, and where: not in the middle, which may be singular itself
SPLITS, SPLIT = 8, 0.4721
# Newton's steps to the closed posture, and those of the search for a sign
STEPS, ROUNDS = 20, 80
# independent rows of the first posture serve another if they are no worse than this share of all
SERVE = 0.1
_EPS = float(np.finfo(float).eps)


@dataclass
class TangentSpace:
    """Postures with their first order.

    Attributes
    ----------
    states : (B, S)
        The postures.
    G : (B, P, M)
        Scaled chosen and closure rows.
    basis : (B, M, f)
        Orthonormal motions that the closure leaves.
    kept : (B, r) int
        Independent closure rows.
    """

    states: np.ndarray
    G: np.ndarray
    basis: np.ndarray
    kept: np.ndarray

    def take(self, some: np.ndarray) -> TangentSpace:
        """Some of the postures."""
        return TangentSpace(*(getattr(self, field.name)[some] for field in fields(self)))


def tangents(closure: Closure, states: np.ndarray, freedoms: int) -> TangentSpace:
    """First order at closed states (B, S)."""
    t = closure.transfer
    G = closure.rows(states)[1]
    closing, held = G[:, t.first :], t.tree.size - freedoms
    kept = np.zeros((len(states), held), dtype=np.intp)
    if held and len(states):
        kept[:] = _strongest(closure, G[0], held)
        every = np.linalg.svd(closing, compute_uv=False)[:, held - 1]
        for b in np.flatnonzero(min_singular_value(closing[:, kept[0] - t.first]) < SERVE * every):
            kept[b] = _strongest(closure, G[b], held)
    return TangentSpace(states, G, null_space(closing, freedoms), kept)


def _strongest(closure: Closure, G: np.ndarray, held: int) -> np.ndarray:
    """So many closure rows, those that are most independent at one posture."""
    return np.sort(closure.transfer.shares(G)[1][:held]) + closure.transfer.first


@dataclass
class ChartSegments:
    """Chords from postures to others that are near.

    Attributes
    ----------
    closure : Closure
        The equations.
    start : Tangents
        Where they begin.
    end : (E, S)
        States where they end.
    way : (E, M)
        Scaled steps from one to the other.
    edge : (E,) int
        Which pair of members each belongs to.
    """

    closure: Closure
    start: TangentSpace
    end: np.ndarray
    way: np.ndarray
    edge: np.ndarray

    def take(self, some: np.ndarray) -> ChartSegments:
        """Some of the chords."""
        return ChartSegments(
            self.closure, self.start.take(some), self.end[some], self.way[some], self.edge[some]
        )

    def at(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Closed states (E, S) after a share (E,) of the chords, and which of them arrived."""
        t, tree = self.closure.transfer, self.closure.transfer.tree
        aim = integrate(tree, self.start.states, share[:, None] * self.way * t.column_scale)
        states, size = aim.copy(), np.full(len(aim), np.inf)
        for _ in range(STEPS):
            values, G = self.closure.rows(states)
            missing = np.take_along_axis(values, self.start.kept, axis=1)
            off = difference(tree, aim, states) / t.column_scale
            left = np.concatenate([np.einsum("bmf,bm->bf", self.start.basis, off), missing], axis=1)
            W = self.square(G)
            fine = np.isfinite(W).all(axis=(1, 2)) & np.isfinite(left).all(axis=1)
            step = np.zeros_like(off)
            step[fine] = -np.einsum("bnp,bp->bn", np.linalg.pinv(W[fine], rcond=1e-14), left[fine])
            size = np.where(fine, np.abs(step).max(axis=1, initial=0.0), np.inf)
            # no turn of more than half a radian at once
            step /= np.where(fine, np.maximum(1.0, 2 * size), 1.0)[:, None]
            states = integrate(tree, states, step * t.column_scale)
            if not (size[fine] > 4 * _EPS).any():
                break
        missing = np.take_along_axis(self.closure.rows(states)[0], self.start.kept, axis=1)
        return states, np.linalg.norm(missing, axis=1) <= max(self.closure.limit, 1e-10)

    def square(self, G: np.ndarray) -> np.ndarray:
        """The chart with the closure, [Nᵀ; C] (E, M, M), from the rows' first order."""
        closing = np.take_along_axis(G, self.start.kept[:, :, None], axis=1)
        return np.concatenate([np.swapaxes(self.start.basis, 1, 2), closing], axis=1)

    def turning(self, states: np.ndarray, rows: slice | None) -> np.ndarray:
        """A number (E,) that changes its sign where the rows (None: the closure) lose rank."""
        G = self.closure.rows(states)[1]
        W, W0 = self.square(G), self.square(self.start.G)
        if rows is None:
            sign, size = np.linalg.slogdet(W)
            sign0, size0 = np.linalg.slogdet(W0)
            return sign * sign0 * np.exp(size - size0)
        right = np.eye(W.shape[1], self.start.basis.shape[2])
        X = np.einsum("bnp,pf->bnf", np.linalg.pinv(W, rcond=1e-14), right)
        return np.linalg.det(G[:, rows] @ X)


def between(closure: Closure, a: TangentSpace, b: TangentSpace) -> tuple[ChartSegments, np.ndarray]:
    """Chords (E,) between postures, split where they are too long to be followed, and the pairs that can not.

    Two postures are joined if their tangent spaces are alike and the chord lies along them; others are split
    by a closed posture between them, a few times.
    """
    t, tree, freedoms = closure.transfer, closure.transfer.tree, a.basis.shape[2]
    turning = closure.turning
    edge, lost, parts = np.arange(len(a.states)), list[int](), list[ChartSegments]()
    for _ in range(SPLITS + 1):
        steps = difference(tree, a.states, b.states) / t.column_scale
        chords = ChartSegments(closure, a, b.states, steps, edge)
        length = np.linalg.norm(steps, axis=1)
        alike = min_singular_value(np.swapaxes(a.basis, 1, 2) @ b.basis) >= ALIKE
        aside = [
            np.linalg.norm(steps - np.einsum("bmf,bnf,bn->bm", N, N, steps), axis=1) <= ASIDE * length
            for N in (a.basis, b.basis)
        ]
        short = np.abs(steps[:, turning]).max(axis=1, initial=0.0) <= TURN
        near = alike & aside[0] & aside[1] & short
        parts.append(chords.take(near))
        if near.all():
            break
        far = np.flatnonzero(~near)
        middle, arrived = chords.take(far).at(np.full(far.size, SPLIT))
        lost += edge[far[~arrived]].tolist()
        far, m = far[arrived], tangents(closure, middle[arrived], freedoms)
        a, b = _joined(a.take(far), m), _joined(m, b.take(far))
        edge = np.concatenate([edge[far], edge[far]])
    else:
        lost += edge.tolist()
    whole = parts[0]
    for more in parts[1:]:
        whole = ChartSegments(
            closure,
            _joined(whole.start, more.start),
            np.concatenate([whole.end, more.end]),
            np.concatenate([whole.way, more.way]),
            np.concatenate([whole.edge, more.edge]),
        )
    return whole, np.unique(np.array(lost, dtype=np.intp))


def _joined(a: TangentSpace, b: TangentSpace) -> TangentSpace:
    return TangentSpace(*(np.concatenate([getattr(a, f.name), getattr(b, f.name)]) for f in fields(a)))


def crossings(chords: ChartSegments, rows: slice | None) -> tuple[np.ndarray, np.ndarray]:
    """Where on chords some rows (None: the closure) lose rank with a change of sign, or have a pole.

    Returns
    -------
    which : (K,) int
        The chords.
    states : (K, S)
        The closed postures.
    """
    f0, f1 = (chords.turning(states, rows) for states in (chords.start.states, chords.end))
    which = np.flatnonzero(f0 * f1 < 0)
    some = chords.take(which)
    if not which.size:
        return which, some.end

    def value(share: np.ndarray) -> np.ndarray:
        return some.turning(some.at(share)[0], rows)

    share = root(value, f0[which], f1[which])
    states, arrived = some.at(share)
    return which[arrived], states[arrived]


def root(value: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Roots (K,) between 0 and 1 of functions that change their sign there: Illinois, with halvings.

    Parameters
    ----------
    value : callable
        Values (K,) at places (K,).
    low, high : (K,)
        Values at 0 and at 1, of opposite signs.

    Examples
    --------
    >>> import numpy as np
    >>> root(lambda x: x**3 - 0.125, np.array([-0.125]), np.array([0.875])).round(12)
    array([0.5])
    """
    a, b, fa, fb = np.zeros(len(low)), np.ones(len(low)), low.copy(), high.copy()
    best, smallest = np.where(np.abs(fa) < np.abs(fb), a, b), np.minimum(np.abs(fa), np.abs(fb))
    done, side = np.zeros(len(low), dtype=bool), np.zeros(len(low))
    for k in range(ROUNDS):
        x = (a * fb - b * fa) / (fb - fa)
        # a halving now and then, so that no side stays; and never onto an end
        x = np.where((k % 4 == 3) | ~((x > a) & (x < b)), (a + b) / 2, x)
        f = value(x)
        done |= (np.abs(x - best) <= 2 * _EPS) | (b - a <= 2 * _EPS) | (f == 0)
        better = np.abs(f) <= smallest
        best, smallest = np.where(better, x, best), np.where(better, np.abs(f), smallest)
        if done.all():
            break
        left = f * fa > 0
        # an end that stays twice counts half (Dowell and Jarratt 1971)
        again = side == np.where(left, 1, -1)
        fa, fb = (
            np.where(left, f, np.where(again, fa / 2, fa)),
            np.where(left, np.where(again, fb / 2, fb), f),
        )
        a, b, side = np.where(left, x, a), np.where(left, b, x), np.where(left, 1, -1)
    return best
