"""Closing a posture: damped Newton on the analytic first order, led from a posture that is closed.

The unknowns are the tree's coordinates; the equations are the chosen rows and all closure rows, redundant
ones included, each divided by its own scale. The perpendicularities that serve as closure rows also hold
for flipped parts, so that every solution is looked at again: directions that must agree may not oppose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.cuts import facing_items
from kic.kinematics import RowsQuestion
from kic.posture import advance
from kic.rows import plain_rows
from kic.transfer import WORST_CONDITION, Transfer
from kic.tree import PRISMATIC

STEPS = 50
# residual, relative to the characteristic length, at which a posture counts as closed
CLOSED = 1e-12


@dataclass
class Outcome:
    """What became of a batch: states (B, S), residuals (B,), reasons ('' where closed)."""

    states: np.ndarray
    residual: np.ndarray
    reasons: list[str]


class Closure:
    """Solves s(φ) = target, c(φ) = 0 for the tree's coordinates.

    Parameters
    ----------
    transfer : Transfer
        The chosen rows with the closure rows, scales and tree.
    """

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        tree = transfer.tree
        facing = [(item, joint.name) for joint in tree.cuts for item in facing_items(tree, joint)]
        self.joints = [name for _, name in facing]
        self._facing = (
            RowsQuestion(tree, plain_rows(tree, [item for item, _ in facing]), 1) if facing else None
        )

    def rows(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and first order of the chosen and closure rows, scaled."""
        t = self.transfer
        values, G = t.values_and_rates(states)
        return values / t.scale, G / t.scale[:, None] * t.column_scale

    def solve(self, start: np.ndarray, target: np.ndarray) -> Outcome:
        """From closed states (B, S) to the chosen rows' targets (B, P), in as many leaps as it takes."""
        t = self.transfer
        goal = np.zeros((len(start), len(t.scale)))
        goal[:, : t.first] = target / t.scale[: t.first]
        states, residual = self._newton(start, goal)
        reasons = self._judge(states, residual)
        for b in np.flatnonzero([bool(r) for r in reasons]):
            one = self._walk(start[b : b + 1], goal[b : b + 1])
            if one is not None:
                states[b], residual[b], reasons[b] = one[0][0], one[1][0], ""
            elif "wrong way" not in reasons[b] and self._dependent(start[b : b + 1]):
                reasons[b] = "its inputs depend on one another where it starts, and lead nowhere from there"
        return Outcome(states, residual, reasons)

    def _newton(self, states: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Damped Newton for a batch; returns states and the norm of what is left."""
        tree, t = self.transfer.tree, self.transfer
        states = states.copy()
        values, G = self.rows(states)
        error = self._miss(goal, values)
        left = np.linalg.norm(error, axis=1)
        for _ in range(STEPS):
            active = np.flatnonzero(left > 1e-15 * (1 + np.abs(values).max(initial=0.0)))
            if not active.size:
                break
            step = np.einsum("bnp,bp->bn", np.linalg.pinv(G[active], rcond=1e-10), error[active])
            # no turn of more than a radian at once; slides are linear and may go as far as they must
            turning = t.tree.cols[:, 1] != PRISMATIC
            step /= np.maximum(1.0, np.abs(step[:, turning]).max(axis=1, initial=0.0))[:, None]
            moved = np.zeros(active.size, dtype=bool)
            for damping in (1.0, 0.5, 0.25, 0.0625):
                todo = active[~moved]
                if not todo.size:
                    break
                tried = advance(tree, states[todo], damping * step[~moved] * t.column_scale)
                v, g = self.rows(tried)
                e = self._miss(goal[todo], v)
                n = np.linalg.norm(e, axis=1)
                better = n < left[todo]
                k = todo[better]
                states[k], values[k], G[k], error[k], left[k] = (
                    tried[better],
                    v[better],
                    g[better],
                    e[better],
                    n[better],
                )
                moved[np.flatnonzero(~moved)[better]] = True
            if not moved.any():
                break
        return states, left

    def _miss(self, goal: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What is left to the goal; angles of cut joints are known but for full turns."""
        t = self.transfer
        error = goal - values
        for row, *_ in t.system.rows.angles:
            for place in np.flatnonzero(t.system.picked == row):
                error[:, place] = np.remainder(error[:, place] + np.pi, 2 * np.pi) - np.pi
        return error

    def _walk(self, start: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """One member, led from where it is closed to its goal in steps that are halved as needed."""
        here, _ = self.rows(start)
        first = goal.copy()
        first[:, : self.transfer.first] = here[:, : self.transfer.first]
        done, step = 0.0, 0.25
        states, residual = start, np.zeros(1)
        while done < 1:
            share = min(1.0, done + step)
            states_next, residual = self._newton(states, first + share * self._miss(goal, first))
            if self._judge(states_next, residual)[0] or self._jump(states, states_next):
                step /= 2
                if step < 1e-3:
                    return None
                continue
            states, done, step = states_next, share, min(step * 2, 0.5)
        return states, residual

    def _dependent(self, start: np.ndarray) -> bool:
        """Whether the inputs can not drive the mechanism at the start."""
        t = self.transfer
        _, G = self.rows(start)
        rows = np.concatenate([np.arange(t.first), t.independent(G[0])])
        return len(rows) != t.tree.size or not np.linalg.cond(G[0, rows]) < WORST_CONDITION**0.5

    def _jump(self, before: np.ndarray, after: np.ndarray) -> bool:
        """Whether a small step of the goal moved the mechanism far: another branch."""
        return bool(np.abs(after - before).max(initial=0.0) > 1.0 * max(1.0, self.transfer.length))

    def _judge(self, states: np.ndarray, residual: np.ndarray) -> list[str]:
        """Why members are not closed; '' for those that are."""
        limit = max(CLOSED, self.transfer.tolerance)
        reasons = [
            "" if left <= limit else f"{left * self.transfer.length:.1e} left where no step brings it closer"
            for left in residual
        ]
        if self._facing is not None and len(states):
            values = self._facing.answer.split(self._facing.table(states), (len(states),))[0]
            for b in range(len(states)):
                if not reasons[b] and (values[b] < 0).any():
                    joint = self.joints[int(np.argmin(values[b]))]
                    reasons[b] = f"joint '{joint}' closed the wrong way round: its two axes oppose each other"
        return reasons
