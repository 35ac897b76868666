"""Solutions of a position problem that a motion connects at fixed values.

Such solutions lie on one curve, or on a part of higher dimension: the outer axes of an aligned wrist turn
against each other, and an arm whose wrist is on its first axis turns about it. The Jacobian is singular
there, but also at isolated multiple solutions, from which no motion starts.

Walks in the null space of the Jacobian sample a part. Gauss–Newton iterations correct each step, which is
accepted if the correction is small. Its length is bounded by the smallest nonzero singular value, which
vanishes where parts cross, so that a walk does not jump to another part nearby. Another solution belongs to
the part if steps from these samples towards it arrive.
"""

from __future__ import annotations

import time

import numpy as np

from kic.kernels import layout as lay
from kic.kinematics.state import difference
from kic.transfer.closure import Closure

# singular values below this share of the largest are zero
NULL_RTOL = 1e-7
# length of a step (rad, characteristic lengths): ratio to the smallest nonzero singular value of the scaled
# rows, whose second derivatives are of order 1; its bounds; and the ratio of the correction to it
PACE_FACTOR, PACE_MIN, PACE_MAX, CORRECTION_MAX = 0.5, 1e-3, 0.3, 0.5
# steps of a walk; samples of a part from which others lead towards a solution
WALK_MAX, STARTS_MAX = 1_000, 4
# a walk is back at its start if the cosine of its directions exceeds this
RETURN_COSINE_MIN = 0.9
# steps lead towards a solution if the cosine of directions exceeds this, and the distance falls by this share
# of what a straight step gives
APPROACH_COSINE_MIN, APPROACH_FACTOR = 0.1, 0.1


class SelfMotion:
    """Motions between real solutions of a closure for one set of values (P,)."""

    def __init__(self, closure: Closure, values: np.ndarray, deadline: float = np.inf) -> None:
        self.closure, self.goal, self.deadline = closure, closure.goal(values[None]), deadline
        self.turning = closure.transfer.tree.cols[:, lay.KIND] == lay.REVOLUTE

    def parts(self, states: np.ndarray, atol: float) -> np.ndarray:
        """Number the parts (n,) to which solutions (n, S) belong; each isolated solution is a part.

        Solutions closer than `atol` count as one, and those not compared before the deadline as isolated.
        """
        part, count = np.full(len(states), -1), 0
        for k in range(len(states)):
            if part[k] >= 0:
                continue
            part[k], left = count, np.flatnonzero(part < 0)
            count += 1
            for sampled in (lambda k: states[[k]], lambda k: self._walk(states[k])):
                if left.size:
                    there = self._arrive(sampled(k), states[left], atol)
                    part[left[there]], left = part[k], left[~there]
        return part

    def _apart(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return scaled steps (B, M) from states a to states b (B, S), up to full turns."""
        t = self.closure.transfer
        steps = difference(t.tree, a, b)
        steps[:, self.turning] -= 2 * np.pi * np.round(steps[:, self.turning] / (2 * np.pi))
        return steps / t.column_scale

    def _null_space(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return projections (B, M, M) onto the null space, and bounds (B,) of steps."""
        s, V = np.linalg.svd(self.closure.rows(states)[1])[1:]
        s = np.pad(s, ((0, 0), (0, V.shape[1] - s.shape[1])))
        null = s < NULL_RTOL * s[:, :1]
        smallest = np.where(null, np.inf, s).min(axis=1)
        N = V * null[..., None]
        return np.swapaxes(N, 1, 2) @ N, np.clip(PACE_FACTOR * smallest, PACE_MIN, PACE_MAX)

    def _step(
        self, states: np.ndarray, ways: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return states after steps along unit tangents (B, M), shortened if needed, and a success mask."""
        ends, arrived = states.copy(), np.zeros(len(states), dtype=bool)
        k = np.arange(len(states))
        while k.size:
            trial = self.closure.moved(states[k], lengths[k, None] * ways[k])
            closed, residual = self.closure.newton(trial, np.repeat(self.goal, len(k), axis=0))
            good = np.linalg.norm(self._apart(trial, closed), axis=1) < CORRECTION_MAX * lengths[k]
            good &= np.array([not why for why in self.closure.failure_reasons(closed, residual)], dtype=bool)
            ends[k[good]], arrived[k[good]] = closed[good], True
            k = k[~good & (lengths[k] > PACE_MIN)]
            lengths[k] = np.maximum(lengths[k] / 4, PACE_MIN)
        return ends, arrived

    def _walk(self, state: np.ndarray) -> np.ndarray:
        """Return states (n, S) on the part of a solution (S,), itself first, by walks in both directions."""
        start, bound = self._null_space(state[None])
        N = np.linalg.svd(start[0])[2][: round(np.trace(start[0]))]
        ways = np.concatenate([N, -N])
        here, length, samples = np.tile(state, (len(ways), 1)), np.tile(bound, len(ways)), [state[None]]
        first = ways
        for n in range(WALK_MAX):
            ends, arrived = self._step(here, ways, length)
            moved = self._apart(here, ends)[arrived]
            here, first = ends[arrived], first[arrived]
            if not len(here) or time.monotonic() > self.deadline:
                break
            samples.append(here)
            P, length = self._null_space(here)
            ways = np.einsum("bij,bj->bi", P, moved)
            size = np.linalg.norm(ways, axis=1)
            ways /= np.maximum(size, 1e-300)[:, None]
            back = np.linalg.norm(self._apart(here, state + 0 * here), axis=1) < length
            back &= (ways * first).sum(axis=1) > RETURN_COSINE_MIN
            going = (size > 0) & ~(back & (n > 1))
            here, ways, length, first = here[going], ways[going], length[going], first[going]
        return np.concatenate(samples)

    def _arrive(self, samples: np.ndarray, states: np.ndarray, atol: float) -> np.ndarray:
        """Return a mask (n,) of solutions (n, S) that steps from samples (m, S) of a part reach."""
        off = [np.linalg.norm(self._apart(samples, b + 0 * samples), axis=1) for b in states]
        near = np.argsort(off, axis=1)[:, :STARTS_MAX]
        here, of = samples[near.ravel()], np.repeat(np.arange(len(states)), near.shape[1])
        found, most = np.zeros(len(states), dtype=bool), np.full(len(of), np.inf)
        for _ in range(WALK_MAX):
            ways = self._apart(here, states[of])
            apart = np.linalg.norm(ways, axis=1)
            P, length = self._null_space(here)
            found[of[(np.abs(ways).max(axis=1) <= atol) & P.any(axis=(1, 2))]] = True
            ways = np.einsum("bij,bj->bi", P, ways)
            size = np.linalg.norm(ways, axis=1)
            k = np.flatnonzero(~found[of] & (apart < most) & (size > APPROACH_COSINE_MIN * apart))
            length = np.minimum(size, length)
            ends, arrived = self._step(here[k], ways[k] / size[k, None], length[k].copy())
            k = k[arrived]
            here, of = ends[arrived], of[k]
            most = apart[k] - APPROACH_FACTOR * length[k] * size[k] / apart[k]
            if not of.size or time.monotonic() > self.deadline:
                break
        return found
