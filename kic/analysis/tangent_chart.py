"""Chart segments: closed configurations between two that are near, and sign changes along them.

Closed configurations near one of them are described by their coordinates in its tangent space, the
orthonormal motions that the closure leaves. In this chart no coordinate of the mechanism has to be regular.
With N that basis and C independent closure rows, the tangent X of the chart follows from [Nᵀ; C] X = [1; 0].
Rows s of as many coordinates as degrees of freedom have det(s X) = 0 where they lose rank, and
det [Nᵀ; C] = 0 where the closure does. Both are smooth along a segment and change sign with the singularity.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from kic.kinematics.state import difference, integrate
from kic.numerics.linalg import min_singular_value, null_space
from kic.numerics.tolerances import EPS
from kic.transfer.closure import Closure

# smallest cosine between the tangent spaces at the ends of a segment
TANGENT_COSINE_MIN = 0.7
# largest share of a segment that lies outside the tangent spaces at its ends
NORMAL_SHARE_MAX = 0.5
# largest rotation along a segment (rad)
SEGMENT_TURN_MAX = 1.0
# splits of a segment that is too long, and their position: the middle may itself be singular
SPLITS_MAX, SPLIT_FRACTION = 8, 0.4721
# Newton steps to a closed configuration
NEWTON_STEPS_MAX = 20
# residual of a closed configuration on a segment
CLOSURE_ATOL = 1e-10
# the independent rows of one configuration are kept for another above this share of the conditioning of all
KEPT_ROWS_RTOL = 0.1
# relative cutoff of singular values in pseudo-inverses
PINV_RTOL = 1e-14


@dataclass
class TangentSpace:
    """Closed configurations with their first order."""

    states: np.ndarray  # (B, S): the configurations
    G: np.ndarray  # (B, P, M): scaled chosen and closure rows
    basis: np.ndarray  # (B, M, f): orthonormal motions that the closure leaves
    kept: np.ndarray  # (B, r) int: independent closure rows

    def take(self, some: np.ndarray) -> TangentSpace:
        """Return some of the configurations."""
        return TangentSpace(*(getattr(self, field.name)[some] for field in fields(self)))


def tangents(closure: Closure, states: np.ndarray, dof: int) -> TangentSpace:
    """Return the tangent space at closed states (B, S)."""
    t = closure.transfer
    G = closure.rows(states)[1]
    closing, held = G[:, t.size :], t.tree.size - dof
    kept = np.zeros((len(states), held), dtype=np.intp)
    if held and len(states):
        kept[:] = _strongest(closure, G[0], held)
        every = np.linalg.svd(closing, compute_uv=False)[:, held - 1]
        for b in np.flatnonzero(min_singular_value(closing[:, kept[0] - t.size]) < KEPT_ROWS_RTOL * every):
            kept[b] = _strongest(closure, G[b], held)
    return TangentSpace(states, G, null_space(closing, dof), kept)


def _strongest(closure: Closure, G: np.ndarray, held: int) -> np.ndarray:
    """Return the `held` closure rows that are most independent at one configuration."""
    return np.sort(closure.transfer.shares(G)[1][:held]) + closure.transfer.size


@dataclass
class ChartSegments:
    """Segments from configurations to others that are near."""

    closure: Closure  # the equations
    start: TangentSpace  # start of each segment
    end: np.ndarray  # (E, S): states at the ends
    step: np.ndarray  # (E, M): scaled steps from start to end
    edge: np.ndarray  # (E,) int: pair of members to which each belongs

    def take(self, some: np.ndarray) -> ChartSegments:
        """Return some of the segments."""
        return ChartSegments(
            self.closure, self.start.take(some), self.end[some], self.step[some], self.edge[some]
        )

    def at(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return closed states (E, S) at fractions (E,) of the segments, and a convergence mask."""
        t, tree = self.closure.transfer, self.closure.transfer.tree
        aim = integrate(tree, self.start.states, share[:, None] * self.step * t.column_scale)
        states, size = aim.copy(), np.full(len(aim), np.inf)
        for _ in range(NEWTON_STEPS_MAX):
            values, G = self.closure.rows(states)
            missing = np.take_along_axis(values, self.start.kept, axis=1)
            off = difference(tree, aim, states) / t.column_scale
            left = np.concatenate([np.einsum("bmf,bm->bf", self.start.basis, off), missing], axis=1)
            W = self.square(G)
            fine = np.isfinite(W).all(axis=(1, 2)) & np.isfinite(left).all(axis=1)
            step = np.zeros_like(off)
            step[fine] = -np.einsum("bnp,bp->bn", np.linalg.pinv(W[fine], rcond=PINV_RTOL), left[fine])
            size = np.where(fine, np.abs(step).max(axis=1, initial=0.0), np.inf)
            # limit each step to half a radian
            step /= np.where(fine, np.maximum(1.0, 2 * size), 1.0)[:, None]
            states = integrate(tree, states, step * t.column_scale)
            if not (size[fine] > 4 * EPS).any():
                break
        missing = np.take_along_axis(self.closure.rows(states)[0], self.start.kept, axis=1)
        return states, np.linalg.norm(missing, axis=1) <= max(self.closure.limit, CLOSURE_ATOL)

    def square(self, G: np.ndarray) -> np.ndarray:
        """Return the chart with the closure, [Nᵀ; C] (E, M, M), from the first order of the rows."""
        closing = np.take_along_axis(G, self.start.kept[:, :, None], axis=1)
        return np.concatenate([np.swapaxes(self.start.basis, 1, 2), closing], axis=1)

    def sign_function(self, states: np.ndarray, rows: slice | None) -> np.ndarray:
        """Return a function (E,) that changes sign where the rows (None: the closure) lose rank."""
        G = self.closure.rows(states)[1]
        W, W0 = self.square(G), self.square(self.start.G)
        if rows is None:
            sign, size = np.linalg.slogdet(W)
            sign0, size0 = np.linalg.slogdet(W0)
            return sign * sign0 * np.exp(size - size0)
        right = np.eye(W.shape[1], self.start.basis.shape[2])
        X = np.einsum("bnp,pf->bnf", np.linalg.pinv(W, rcond=PINV_RTOL), right)
        return np.linalg.det(G[:, rows] @ X)


def between(closure: Closure, a: TangentSpace, b: TangentSpace) -> tuple[ChartSegments, np.ndarray]:
    """Return segments between configurations, and the pairs that could not be connected.

    Two configurations are connected if their tangent spaces are close and the segment lies along them. Other
    segments are split at a closed configuration between them, up to `SPLITS_MAX` times.
    """
    t, tree, dof = closure.transfer, closure.transfer.tree, a.basis.shape[2]
    turning = closure.turning
    edge, lost, parts = np.arange(len(a.states)), list[int](), list[ChartSegments]()
    for _ in range(SPLITS_MAX + 1):
        steps = difference(tree, a.states, b.states) / t.column_scale
        segments = ChartSegments(closure, a, b.states, steps, edge)
        length = np.linalg.norm(steps, axis=1)
        alike = min_singular_value(np.swapaxes(a.basis, 1, 2) @ b.basis) >= TANGENT_COSINE_MIN
        aside = [
            np.linalg.norm(steps - np.einsum("bmf,bnf,bn->bm", N, N, steps), axis=1)
            <= NORMAL_SHARE_MAX * length
            for N in (a.basis, b.basis)
        ]
        short = np.abs(steps[:, turning]).max(axis=1, initial=0.0) <= SEGMENT_TURN_MAX
        near = alike & aside[0] & aside[1] & short
        parts.append(segments.take(near))
        if near.all():
            break
        far = np.flatnonzero(~near)
        middle, converged = segments.take(far).at(np.full(far.size, SPLIT_FRACTION))
        lost += edge[far[~converged]].tolist()
        far, m = far[converged], tangents(closure, middle[converged], dof)
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
            np.concatenate([whole.step, more.step]),
            np.concatenate([whole.edge, more.edge]),
        )
    return whole, np.unique(np.array(lost, dtype=np.intp))


def _joined(a: TangentSpace, b: TangentSpace) -> TangentSpace:
    return TangentSpace(*(np.concatenate([getattr(a, f.name), getattr(b, f.name)]) for f in fields(a)))


def crossings(segments: ChartSegments, rows: slice | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the points on segments at which rows (None: the closure) lose rank, or have a pole.

    They are given by their segments (K,) and closed states (K, S).
    """
    from scipy.optimize.elementwise import find_root

    f0, f1 = (segments.sign_function(states, rows) for states in (segments.start.states, segments.end))
    which = np.flatnonzero(f0 * f1 < 0)
    some = segments.take(which)
    if not which.size:
        return which, some.end

    def value(share: np.ndarray, k: np.ndarray) -> np.ndarray:
        left = some.take(k)  # segments whose root is not yet known
        return left.sign_function(left.at(share)[0], rows)

    ends = np.zeros(which.size), np.ones(which.size)
    share = find_root(value, ends, args=(np.arange(which.size),)).x
    states, converged = some.at(share)
    return which[converged], states[converged]
