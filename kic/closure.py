"""Closing a posture: a path from one that is closed, predicted to second order, corrected by damped Newton.

The unknowns are the tree's coordinates; the equations are the chosen rows and all closure rows, redundant
ones included, each divided by its own scale. The wanted values move from those of the start to the target;
the mechanism follows in leaps that are as long as the prediction can be trusted. A leap counts only if
Newton ends near the prediction and on the same side of every dead centre: so that the assembly that comes
out is the one that the start leads to, or none. The perpendicularities that serve as closure rows also hold
for flipped parts; every solution is looked at again: directions that must agree may not oppose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.cuts import facing_items
from kic.kinematics import RowsQuestion
from kic.posture import advance, apart
from kic.rotations import quaternion_from_vector, rotated, vector_from_matrix
from kic.rows import plain_rows
from kic.transfer import WORST_CONDITION, Transfer, side_by_side
from kic.tree import PRISMATIC

STEPS = 50
# residual, relative to the characteristic length, at which a posture counts as closed
CLOSED = 1e-12
# inputs drive a posture if the condition of all rows there is below this
REGULAR = WORST_CONDITION**0.5
# a leap: no turn of more than a radian, the second-order part below this share of the first,
LARGEST_TURN, BEND = 1.0, 0.8
# what Newton corrects below this share of what was predicted, or below this by itself (rad, or lengths)
TRUST, NEAR = 0.25, 3e-3
# the shortest leap, as a share of the whole way
LEAST = 1e-7


@dataclass
class Outcome:
    """What became of a batch.

    Attributes
    ----------
    states : (B, S)
        Closed postures; of members that failed, the last on their way.
    reasons : list of str
        Why a member failed; '' where it closed.
    share : (B,)
        How far each came, as a share of the way from its start to its target.
    """

    states: np.ndarray
    reasons: list[str]
    share: np.ndarray


class Closure:
    """Solves s(φ) = target, c(φ) = 0 for the tree's coordinates.

    Parameters
    ----------
    transfer : Transfer
        The chosen rows with the closure rows, scales and tree.
    held : tuple of (str, int, int)
        Bodies whose pose is among the chosen rows: what to call them, the first of their rows, and the
        first of the nine rows of their orientation.
    """

    def __init__(self, transfer: Transfer, held: tuple[tuple[str, int, int], ...] = ()) -> None:
        self.transfer = transfer
        self.held = held
        self.turns = tuple(turn for _, _, turn in held)
        tree = transfer.tree
        facing = [(item, joint.name) for joint in tree.cuts for item in facing_items(tree, joint)]
        self.joints = [name for _, name in facing]
        self._facing = (
            RowsQuestion(tree, plain_rows(tree, [item for item, _ in facing]), 1) if facing else None
        )
        self._turning = tree.cols[:, 1] != PRISMATIC
        self._round = [
            k for k, row in enumerate(transfer.picked) if row in {a[0] for a in transfer.rows.angles}
        ]

    def rows(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and first order of the chosen and closure rows, scaled."""
        t = self.transfer
        question = t._question(1, None)
        values, G = question.split(question.table(states), (len(states),))
        values = t.rows.complete(values)
        return values[:, t.picked] / t.scale, G[:, t.picked] / t.scale[:, None] * t.column_scale

    def goal(self, target: np.ndarray) -> np.ndarray:
        """Scaled values of all rows (B, P) from those wanted of the chosen ones; closure rows are zero."""
        t = self.transfer
        goal = np.zeros((len(target), len(t.scale)))
        goal[:, : t.first] = target / t.scale[: t.first]
        return goal

    # ------------------------------------------------------------------------------------ the way there

    def solve(self, start: np.ndarray, target: np.ndarray) -> Outcome:
        """Lead closed states (B, S) to the chosen rows' targets (B, P), on their branch."""
        goal = self.goal(target)
        states, share, step = start.copy(), np.zeros(len(start)), np.ones(len(start))
        values, G = self.rows(states)
        regular = self._condition(G) < REGULAR
        going = regular.copy()
        while going.any():
            k = np.flatnonzero(going)
            leap = _Leap(self, states[k], values[k], G[k], goal[k])
            part = np.minimum(leap.longest(), step[k] / (1 - share[k]))
            part[part > 0.999] = 1.0
            predicted, size = leap.predict(part)
            found, residual = self._newton(predicted, leap.aim(part))
            v, g = self.rows(found)
            near = apart(self.transfer.tree, predicted, found, self.transfer.column_scale)
            good = (residual <= CLOSED) & (near <= np.maximum(TRUST * size, NEAR))
            good &= self._same_side(G[k], g) | ((part == 1) & (self._condition(g) > REGULAR))
            good[good] = [not why for why in self._flipped(found[good])]
            done = k[good]
            states[done], values[done], G[done] = found[good], v[good], g[good]
            gone = part * (1 - share[k])
            share[done] = np.where(part[good] == 1, 1.0, share[done] + gone[good])
            step[k] = np.where(good, 2 * gone, gone / 2)
            going[k] = (share[k] < 1) & (step[k] >= LEAST)
        reasons = [""] * len(start)
        for b in np.flatnonzero(share < 1):
            here, way = slice(b, b + 1), float(share[b])
            reasons[b] = self._why(start[here], states[here], goal[here], way, bool(regular[b]))
        return Outcome(states, reasons, share)

    def find(self, start: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """The same equations from anywhere (B, S): where Newton ends, what is left (B,) in length, why."""
        states, residual = self._newton(start, self.goal(target))
        return states, residual * self.transfer.length, self._judge(states, residual)

    def condition(self, states: np.ndarray) -> np.ndarray:
        """Condition (B,) of all rows, scaled: how well the inputs fix the postures."""
        return self._condition(self.rows(states)[1])

    @staticmethod
    def _condition(G: np.ndarray) -> np.ndarray:
        if not G.shape[2]:
            return np.ones(len(G))
        if G.shape[1] < G.shape[2]:
            return np.full(len(G), np.inf)
        worst = np.full(len(G), np.inf)
        finite = np.isfinite(G).all(axis=(1, 2))  # a distance that has shrunk to nothing has no direction
        worst[finite] = np.linalg.cond(G[finite])
        return worst

    @staticmethod
    def _same_side(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Whether no dead centre lies between: det GᵀG' > 0, of a square system det G det G' > 0."""
        with np.errstate(invalid="ignore"):
            return np.linalg.slogdet(np.swapaxes(before, 1, 2) @ after)[0] > 0

    # ----------------------------------------------------------------------------------------- Newton

    def _newton(self, states: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Damped Newton for a batch; returns states and the norm of what is left.

        Of rounded dimensions redundant rows contradict one another: only independent ones are solved, so
        that no input gives way; what the others miss counts as the share of the tolerance that it takes.
        """
        tree, t = self.transfer.tree, self.transfer
        states = states.copy()
        values, G = self.rows(states)
        kept = self._kept(G)
        G = G * kept[:, :, None]
        error = self.miss(goal, values) * kept
        left = np.linalg.norm(error, axis=1)
        for _ in range(STEPS):
            # a distance that has shrunk to nothing has no direction in which to go on
            driven = np.isfinite(G).all(axis=(1, 2))
            active = np.flatnonzero(driven & (left > 1e-15 * (1 + np.abs(values).max(initial=0.0))))
            if not active.size:
                break
            step = np.einsum("bnp,bp->bn", np.linalg.pinv(G[active], rcond=1e-10), error[active])
            # no turn of more than a radian at once; slides are linear and may go as far as they must
            step /= np.maximum(1.0, np.abs(step[:, self._turning]).max(axis=1, initial=0.0))[:, None]
            moved = np.zeros(active.size, dtype=bool)
            for damping in (1.0, 0.5, 0.25, 0.0625):
                todo = active[~moved]
                if not todo.size:
                    break
                tried = advance(tree, states[todo], damping * step[~moved] * t.column_scale)
                v, g = self.rows(tried)
                g = g * kept[todo, :, None]
                e = self.miss(goal[todo], v) * kept[todo]
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
        if t.tolerance:
            others = np.linalg.norm((goal - values) * (1 - kept), axis=1)
            left = np.maximum(left, others * CLOSED / t.tolerance)
        return states, left

    def _kept(self, G: np.ndarray) -> np.ndarray:
        """Rows (B, P) that are solved: 1, or 0 for those that follow from others but for rounding."""
        t = self.transfer
        if not t.tolerance:
            return np.ones(G.shape[:2])
        kept = np.zeros(G.shape[:2])
        kept[:, : t.first] = 1
        for b in np.flatnonzero(np.isfinite(G).all(axis=(1, 2))):
            kept[b, t.independent(G[b])] = 1
        return kept

    def miss(self, goal: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What is left to the goal; angles of cut joints are known but for full turns."""
        error = goal - values
        error[:, self._round] = np.remainder(error[:, self._round] + np.pi, 2 * np.pi) - np.pi
        return error

    # ---------------------------------------------------------------------------------------- verdicts

    def _judge(self, states: np.ndarray, residual: np.ndarray) -> list[str]:
        """Why members are not closed; '' for those that are."""
        reasons = [
            "" if left <= CLOSED else f"{left * self.transfer.length:.1e} left where no step brings it closer"
            for left in residual
        ]
        closed = [b for b, why in enumerate(reasons) if not why]
        for b, why in zip(closed, self._flipped(states[closed]), strict=True):
            reasons[b] = why
        return reasons

    def _flipped(self, states: np.ndarray) -> list[str]:
        """Which joint of each member is closed the wrong way round; '' for none."""
        if self._facing is None or not len(states):
            return [""] * len(states)
        values = self._facing.split(self._facing.table(states), (len(states),))[0]
        worst = np.argmin(values, axis=1)
        return [
            f"joint '{self.joints[k]}' closed the wrong way round: its two axes oppose each other"
            if row[k] < 0
            else ""
            for k, row in zip(worst, values, strict=True)
        ]

    def _why(
        self, start: np.ndarray, reached: np.ndarray, goal: np.ndarray, share: float, regular: bool
    ) -> str:
        """Why one member did not come to its goal, and how far it got."""
        with np.errstate(invalid="ignore"):
            tried, residual = self._newton(reached, goal)
        elsewhere = self._judge(tried, residual)[0]
        if "wrong way" in elsewhere:
            return elsewhere
        if not regular:
            return self._stuck(start)
        left = f"{residual[0] * self.transfer.length:.1e} would be left"
        there = left if elsewhere else "another branch has such a posture, which this start does not lead to"
        condition = self.condition(reached)[0]
        end = (
            f"a dead centre, where its inputs drive it no further (condition {condition:.0e})"
            if condition > 100
            else "where no step brings it closer"
        )
        return f"it came {100 * share:.3g} % of the way, {self._reading(reached, goal)}: {end}; {there}"

    def _stuck(self, states: np.ndarray) -> str:
        """What the inputs leave open at a posture where they can not drive the mechanism."""
        G = self.rows(states)[1][0]
        if not np.isfinite(G).all():
            return "it starts where a distance among its inputs is zero and has no direction"
        free = np.abs(np.linalg.svd(G)[2][-1])
        loose = [self.transfer.tree.columns[n] for n in np.argsort(-free)[:3] if free[n] > 0.1 * free.max()]
        return (
            "its inputs depend on one another where it starts, and lead nowhere from there: while they stand "
            f"still, {', '.join(loose)} can move"
        )

    def _reading(self, states: np.ndarray, goal: np.ndarray) -> str:
        """Values of the chosen rows at one posture, beside those wanted."""
        t = self.transfer
        values = self.rows(states)[0]
        missing = self.miss(goal, values)[0] * t.scale
        said = [
            f"{name} = {values[0, k] * t.scale[k]:.6g} (asked {goal[0, k] * t.scale[k]:.6g})"
            for k, name in enumerate(t.labels)
        ]
        for name, first, turn in self.held:
            away = f"{np.linalg.norm(missing[first:turn]):.3g} away and " if turn > first else ""
            about = _turn_between(values[:, turn : turn + 9], goal[:, turn : turn + 9])
            said.append(f"{name} {away}{np.linalg.norm(about):.3g} rad off")
        return "to " + ", ".join(said[:4]) + (", …" if len(said) > 4 else "")


class _Leap:
    """The way of a batch from where it is to its goal, predicted to second order.

    Parameters
    ----------
    closure : Closure
        The equations.
    states, values, G : (B, S), (B, P), (B, P, M)
        Where it is, with its rows there.
    goal : (B, P)
        Where it goes.
    """

    def __init__(
        self, closure: Closure, states: np.ndarray, values: np.ndarray, G: np.ndarray, goal: np.ndarray
    ) -> None:
        self.closure, self.states, self.goal = closure, states, goal
        t = closure.transfer
        # w(τ) is straight, but for orientations, which turn about one axis; closure rows are zero at once
        self.here = values.copy()
        self.here[:, t.first :] = 0.0
        self.way = closure.miss(goal, self.here)
        speed, bend = self.way.copy(), np.zeros_like(self.way)
        self.about = [_turn_between(values[:, k : k + 9], goal[:, k : k + 9]) for k in closure.turns]
        for k, about in zip(closure.turns, self.about, strict=True):
            axes = values[:, k : k + 9].reshape(-1, 3, 3)
            turning = np.cross(about[:, None], axes)
            speed[:, k : k + 9] = turning.reshape(-1, 9)
            bend[:, k : k + 9] = np.cross(about[:, None], turning).reshape(-1, 9)
        # G φ' = w', G φ'' = w'' − H(φ', φ'): (3-15) and (3-19) along one direction
        inverse = np.linalg.pinv(G, rcond=1e-10)
        self.first = np.einsum("bnp,bp->bn", inverse, speed)
        second = bend - self._curvature(self.first * t.column_scale)
        self.second = np.einsum("bnp,bp->bn", inverse, second)

    def _curvature(self, rate: np.ndarray) -> np.ndarray:
        """H(φ', φ') of all rows, scaled."""
        t, count = self.closure.transfer, len(rate)
        question = t._question(2, 1)
        X = np.ascontiguousarray(side_by_side([0 * rate, rate, 0 * rate]))
        return question.split(question.table(self.states, X), (count,))[2][:, t.picked, 0, 0] / t.scale

    def longest(self) -> np.ndarray:
        """The share (B,) of the way for which the prediction may be trusted."""
        first = np.abs(self.first).max(axis=1, initial=0.0)
        second = np.abs(self.second).max(axis=1, initial=0.0)
        turn = np.abs(self.first[:, self.closure._turning]).max(axis=1, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.fmin(np.fmin(1.0, BEND * first / second), LARGEST_TURN / turn)
        # no shorter than what may be corrected anyway
        return np.maximum(most, np.minimum(1.0, NEAR / np.maximum(first + second, NEAR)))

    def predict(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States (B, S) after a part (B,) of the way, and the largest turn or slide to them."""
        t = self.closure.transfer
        step = part[:, None] * self.first + part[:, None] ** 2 / 2 * self.second
        return advance(t.tree, self.states, step * t.column_scale), np.abs(step).max(axis=1, initial=0.0)

    def aim(self, part: np.ndarray) -> np.ndarray:
        """Wanted values (B, P) after a part of the way."""
        aim = self.here + part[:, None] * self.way
        for k, about in zip(self.closure.turns, self.about, strict=True):
            axes = self.here[:, k : k + 9].reshape(-1, 3, 3)
            q = quaternion_from_vector(part[:, None] * about)
            aim[:, k : k + 9] = rotated(q[:, None], axes).reshape(-1, 9)
        arrived = part == 1
        aim[arrived] = self.goal[arrived]
        return aim


def _turn_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rotation vector (B, 3) from one triple of unit vectors (B, 9) to another."""
    A, B = a.reshape(-1, 3, 3), b.reshape(-1, 3, 3)
    return vector_from_matrix(np.einsum("bki,bkj->bij", B, A))
