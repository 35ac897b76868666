"""Continuation: track closed states to the values wanted of them, on the branch where they are.

The wanted values move along a straight line from those of the start to the target. Compiled steps follow
them as far as they can (see `kernels.newton`); the rest of the way is made in leaps along a prediction to
second order. Both count only if they are proved by a Newton–Kantorovich test: no dead centre lies between,
and Newton's method ended on the same branch. The end of a way may itself be a dead centre.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.kernels.layout import COORDINATE, KIND, REVOLUTE
from kic.kinematics.state import difference, distance, integrate
from kic.numerics.linalg import condition_number
from kic.numerics.rotations import quaternion_from_vector, rotated, vector_from_matrix
from kic.transfer.closure import DRIFT_RTOL, Closure
from kic.transfer.coordinate_transfer import WORST_CONDITION

# inputs drive a configuration if the condition of all rows there is below this
CONDITION_MAX = WORST_CONDITION**0.5
# a leap: no turn of more than a radian, and the second-order part below this share of the first
TURN_MAX, BEND_MAX = 1.0, 0.375
# largest correction, over the condition: other branches are at least as far as the nearest singular
# configuration, about one over the condition (Kantorovich). The second value holds where a way ends in a
# singular configuration (rad, lengths)
CORRECTION_FACTOR, CORRECTION_MIN = 0.2, 3e-3
# largest excursion of the Newton iteration, in units of the largest correction
EXCURSION_FACTOR = 2.0
# a leap is proved along chords, no more than so many and each of about so much (rad, lengths)
CHORDS_MAX, CHORD_LENGTH = 6, 0.1
# how near a dead centre at the end of a way must be to the last state that was proved (rad, lengths): there
# no test holds, and a gap of about the square of this would be passed
DEAD_CENTRE_DISTANCE_MAX = 3e-4
# share of the second-order part of the rows, beyond any first-order part, by which they count as bent
CURVATURE_MIN = 1e-4
# units of the last digit within which a start already has the values wanted
SAME_VALUE_RTOL = 8 * float(np.finfo(float).eps)
# above this condition a configuration counts as singular: a double root is known to half the digits only
SINGULAR_CONDITION = 1e5
# largest number of leaps
STEPS_MAX = 2000
# a way of more turns of one input is shortened by whole periods, if it repeats itself within so many turns
TURNS_MAX, PERIOD_MAX = 16, 8
# largest distance of a state after a period from the one before (rad, lengths)
PERIOD_ATOL = 1e-9
# the shortest leap, as a share of the whole way
STEP_MIN = 1e-11
# the reason of failed members where reasons are not requested
NO_REASON = "its way ended before"
# a condition by which a stop is called a dead centre: it was approached as far as the shortest leap goes
DEAD_CENTRE_FACTOR = 100.0


@dataclass
class Outcome:
    """Results of a batch.

    Attributes
    ----------
    states : (B, S)
        Closed configurations; of members that failed, the last on their way.
    reasons : list of str
        The reason of each member that failed; '' where it closed.
    share : (B,)
        The part of the way from start to target that each made.
    """

    states: np.ndarray
    reasons: list[str]
    share: np.ndarray


def continue_to(
    closure: Closure, start: np.ndarray, target: np.ndarray, want_reasons: bool = True
) -> Outcome:
    """Lead closed states (B, S) to the chosen rows' targets (B, P), on their branch.

    Without `want_reasons` the reasons of failed members are all the same.
    """
    states, share = closure.track(start, target)
    return continue_from(closure, start, target, states, share, want_reasons)


def continue_from(
    closure: Closure,
    start: np.ndarray,
    target: np.ndarray,
    states: np.ndarray,
    share: np.ndarray,
    want_reasons: bool,
) -> Outcome:
    """Complete the results of `Closure.track`, where these have come to states (B, S) after a share (B,)."""
    reasons = [""] * len(start)
    far = np.flatnonzero(share < 1)
    if far.size:
        same = _there(closure, start[far], target[far])
        states[far[same]], share[far[same]] = start[far[same]], 1.0
        far = far[~same]
    start, made = start.copy(), np.zeros(len(start))
    for b in far.tolist():
        found = _whole_periods(closure, start[[b]], target[[b]])
        if found is not None:
            start[b], made[b], why = found
            reasons[b] = why
            if why:
                states[b], share[b] = start[b], 0.0
            else:
                (states[b],), (share[b],) = closure.track(start[[b]], target[[b]])
    far = np.array([b for b in far.tolist() if share[b] < 1 and not reasons[b]], dtype=np.intp)
    if far.size:
        rest = _lead_far(closure, start[far], target[far], states[far], share[far], want_reasons)
        states[far], share[far] = rest.states, rest.share
        for b, why in zip(far.tolist(), rest.reasons, strict=True):
            reasons[b] = why
    share = np.where(share < 1, made + (1 - made) * share, 1.0)
    return Outcome(states, reasons, share)


def _whole_periods(
    closure: Closure, start: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, float, str] | None:
    """Return a start (S,) whole periods closer to a target (1, P), the share of the way, and a reason.

    One revolute input turns, the others keep their values. If the configuration after some turns is that of
    the start (1, S) but for whole turns of joints, all rows repeat, and so does the branch. The reason is ''
    unless the angles are so large that their rounding opens the loops. Return None for ways that are not so
    long, or do not repeat.
    """
    t = closure.transfer
    values = closure.rows(start)[0][:, : t.first] * t.scale[: t.first]
    way = target[0] - values[0]
    row = int(np.argmax(np.abs(way)))
    still = np.delete(np.abs(way), row).max(initial=0.0) <= SAME_VALUE_RTOL * max(1.0, np.abs(values).max())
    far = abs(way[row]) > TURNS_MAX * 2 * np.pi
    if not (far and still and closure.compiled and _turns(closure, row)):
        return None
    columns, entries = t.tree.single_columns
    turning = entries[t.tree.cols[columns, KIND] == REVOLUTE]
    here, aim = start, values.copy()
    for k in range(1, PERIOD_MAX + 1):
        aim[0, row] = values[0, row] + k * np.copysign(2 * np.pi, way[row])
        here, share = closure.track(here, aim)
        if share[0] < 1:
            return None
        turns = np.zeros(start.shape[1])
        turns[turning] = np.round((here - start)[0, turning] / (2 * np.pi))
        left = distance(t.tree, start + 2 * np.pi * turns, here, t.column_scale)
        if left.max(initial=0.0) <= PERIOD_ATOL:
            count = int(abs(way[row]) / (2 * np.pi * k))
            new = start[0] + 2 * np.pi * count * turns
            rounding = 4 * float(np.finfo(float).eps) * np.abs(new[turning]).max()
            if rounding > DRIFT_RTOL:
                return start[0], 0.0, f"rounding of its angles would open its loops by {rounding:.0e} rad"
            return new, 2 * np.pi * k * count / abs(way[row]), ""
    return None


def _turns(closure: Closure, row: int) -> bool:
    """Return True if a chosen row is the angle of a revolute joint of the tree."""
    t = closure.transfer
    item = t.system.rows.source[t.system.item_of[t.system.picked[row]]]
    return bool(item.kind == COORDINATE and t.tree.cols[item.frame_b, KIND] == REVOLUTE)


def _there(closure: Closure, states: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return a mask of closed states (B, S) that have the target's values and are fixed by them.

    At a dead centre the rows leave one direction v open to first order. They fix the state all the same if
    they bend along it: H(v, v) is then no first-order part of any other step.
    """
    t = closure.transfer
    (values, G), goal = closure.rows(states), closure.goal(target)
    left = np.abs(closure.residual(goal, values))
    same = (left[:, : t.first] <= SAME_VALUE_RTOL * np.maximum(1.0, np.abs(values[:, : t.first]))).all(axis=1)
    same &= left[:, t.first :].max(axis=1, initial=0.0) <= max(closure.limit, t.tolerance)
    for b in np.flatnonzero(same):
        if not np.isfinite(G[b]).all() or G.shape[1] < G.shape[2]:
            same[b] = False
            continue
        U, sigma, V = np.linalg.svd(G[b])
        rank = int((sigma * CONDITION_MAX > sigma[0]).sum())
        if rank < len(sigma) - 1:
            same[b] = False
        elif rank == len(sigma) - 1:
            bend = t.curvature(states[[b]], V[[-1]] * t.column_scale)[0] / t.scale
            same[b] = bool(
                np.linalg.norm(U[:, rank:].T @ bend) > CURVATURE_MIN * max(1.0, np.abs(bend).max())
            )
    return same


def _lead_far(
    closure: Closure,
    start: np.ndarray,
    target: np.ndarray,
    states: np.ndarray,
    share: np.ndarray,
    want_reasons: bool,
) -> Outcome:
    """Continue in leaps, for members that have come to states (B, S) after a share (B,) of the way."""
    t, goal = closure.transfer, closure.goal(target)
    states, share, step = states.copy(), share.copy(), 1 - share
    values, G = closure.rows(states)
    worst = condition_number(G)
    regular = condition_number(closure.rows(start)[1]) < CONDITION_MAX
    # compiled steps may have come nearer to a dead centre than leaps may start
    going = regular & ((worst < CONDITION_MAX) | (share > 0))
    # a leap turns no joint by more than a bound
    turned = [k for k in range(t.first) if _turns(closure, k)]
    turns = np.abs(closure.residual(goal, values)[:, turned]).max(axis=1, initial=0.0)
    too_long = turns > STEPS_MAX * TURN_MAX
    going &= ~too_long
    fresh = np.ones(len(start), dtype=bool)
    for _ in range(STEPS_MAX):
        k = np.flatnonzero(going)
        if not k.size:
            break
        leap = _PredictorStep(closure, states[k], values[k], G[k], goal[k])
        part = np.minimum(leap.longest(), step[k] / (1 - share[k]))
        # near a dead centre the rest is tried at once, from each state that was proved: it may be the end
        whole = fresh[k] & (worst[k] > SINGULAR_CONDITION / 10)
        part[(part > 0.999) | whole] = 1.0
        predicted = leap.predict(part)
        # a result farther away than may be corrected does not count
        within = np.maximum(CORRECTION_FACTOR / worst[k], CORRECTION_MIN)
        found, residual = closure.newton(predicted, leap.aim(part), EXCURSION_FACTOR * within)
        v, g = closure.rows(found)
        worse = condition_number(g)
        good = residual <= closure.limit
        good[good] = [not why for why in closure.flipped(found[good])]
        dead = (part == 1) & (worse > SINGULAR_CONDITION)
        if dead.any():
            good &= ~dead | (
                distance(t.tree, states[k], found, t.column_scale).max(axis=1, initial=0.0)
                <= DEAD_CENTRE_DISTANCE_MAX
            )
        # at a singular configuration the side is undecided: a way that only touches one could change branches
        good &= dead | (worse <= SINGULAR_CONDITION)
        some = np.flatnonzero(good & ~dead)
        if some.size:
            good[some] = leap.proved(some, part[some], predicted[some], found[some])
        done = k[good]
        states[done], values[done], G[done], worst[done] = found[good], v[good], g[good], worse[good]
        gone = part * (1 - share[k])
        share[done] = np.where(part[good] == 1, 1.0, share[done] + gone[good])
        fresh[k] = good
        step[k] = np.where(good, 2 * gone, np.where(whole, step[k], gone / 2))
        going[k] = (share[k] < 1) & (step[k] >= STEP_MIN)
    reasons = [""] * len(start)
    for b in np.flatnonzero(share < 1):
        here, way = slice(b, b + 1), float(share[b])
        if not want_reasons:
            reasons[b] = NO_REASON
        elif going[b] or (regular[b] and too_long[b]):
            reasons[b] = f"its way is too long: it came {100 * way:.3g} % of it"
        else:
            reasons[b] = _why(closure, start[here], states[here], goal[here], way, bool(regular[b]))
    return Outcome(states, reasons, share)


class _PredictorStep:
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
        self.way = closure.residual(goal, self.here)
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
        """Return H(φ', φ') of all rows, scaled."""
        t = self.closure.transfer
        return t.curvature(self.states, rate) / t.scale

    def longest(self) -> np.ndarray:
        """Return the share (B,) of the way over which the prediction is accurate."""
        first = np.abs(self.first).max(axis=1, initial=0.0)
        second = np.abs(self.second).max(axis=1, initial=0.0)
        turn = np.abs(self.first[:, self.closure.turning]).max(axis=1, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.fmin(np.fmin(1.0, BEND_MAX * first / second), TURN_MAX / turn)
        # no shorter than what may be corrected at the end anyway
        return np.maximum(most, np.minimum(1.0, CORRECTION_MIN / np.maximum(first + second, CORRECTION_MIN)))

    def predict(self, part: np.ndarray) -> np.ndarray:
        """Return predicted states (B, S) after a part (B,) of the way."""
        t = self.closure.transfer
        step = part[:, None] * self.first + part[:, None] ** 2 / 2 * self.second
        return integrate(t.tree, self.states, step * t.column_scale)

    def aim(self, part: np.ndarray) -> np.ndarray:
        """Return goals (B, P) after a part of the way."""
        aim = self.here + part[:, None] * self.way
        for k, about in zip(self.closure.turns, self.about, strict=True):
            axes = self.here[:, k : k + 9].reshape(-1, 3, 3)
            q = quaternion_from_vector(part[:, None] * about)
            aim[:, k : k + 9] = rotated(q[:, None], axes).reshape(-1, 9)
        arrived = part == 1
        aim[arrived] = self.goal[arrived]
        return aim

    def proved(
        self, some: np.ndarray, part: np.ndarray, predicted: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        """Return a mask of leaps of members `some` that are proved to stay on their branch.

        The curve is the prediction, bent so that it ends in what was found. It is cut into intervals, each
        with a node in the middle, and each is tested as the chords of `kernels.newton` are.
        """
        closure, t, count = self.closure, self.closure.transfer, len(some)
        own = _PredictorStep.__new__(_PredictorStep)
        own.closure, own.states, own.goal = closure, self.states[some], self.goal[some]
        own.here, own.way = self.here[some], self.way[some]
        own.about = [about[some] for about in self.about]
        own.first, own.second = self.first[some], self.second[some]
        off = difference(t.tree, predicted, found) / t.column_scale
        longest = float(np.abs(part[:, None] * own.first).max(initial=0.0))
        chords = min(CHORDS_MAX, 1 + int(longest / CHORD_LENGTH))
        nodes, aims = [own.states], [own.here]
        steps = [np.zeros((count, t.tree.size))]
        for k in range(1, 2 * chords + 1):
            tau = k / (2 * chords)
            at = tau * part
            step = at[:, None] * own.first + at[:, None] ** 2 / 2 * own.second + tau**3 * off
            steps.append(step)
            nodes.append(integrate(t.tree, own.states, step * t.column_scale) if tau < 1 else found)
            aims.append(own.aim(at))
        all_states = np.stack(nodes, axis=1)
        values, G = closure.rows(all_states.reshape(-1, all_states.shape[-1]))
        left = closure.residual(np.stack(aims, axis=1).reshape(values.shape), values)
        shape = count, 2 * chords + 1
        return closure.proved(
            all_states, np.stack(steps, axis=1), values.reshape(*shape, -1), G.reshape(*shape, *G.shape[1:]),
            left.reshape(*shape, -1),
        )  # fmt: skip


def _turn_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the rotation vector (B, 3) from one triple of unit vectors (B, 9) to another."""
    A, B = a.reshape(-1, 3, 3), b.reshape(-1, 3, 3)
    return vector_from_matrix(np.einsum("bki,bkj->bij", B, A))


def _why(
    closure: Closure, start: np.ndarray, reached: np.ndarray, goal: np.ndarray, share: float, regular: bool
) -> str:
    """Return the reason why one member did not reach its goal, and the last values on its way."""
    tried, residual = closure.newton(reached, goal)
    elsewhere = closure.failure_reasons(tried, residual)[0]
    if "wrong way" in elsewhere:
        return elsewhere
    if not regular:
        return _stuck(closure, start)
    strained = closure.strained(reached[0])
    there = elsewhere or "another branch has such a configuration, to which this start does not lead"
    way = f"it came {min(100 * share, 99.99):.4g} % of the way, {_reading(closure, reached, goal)}"
    if strained and "contradict" not in elsewhere:
        return f"{way}: {strained}"
    return f"{way}: {ending(closure, start, reached)}; {there}"


def ending(closure: Closure, start: np.ndarray, reached: np.ndarray) -> str:
    """Return a description of the configuration (1, S) at which a way from another ends."""
    t = closure.transfer
    before, here = closure.rows(start)[1][0], closure.rows(reached)[1]
    rank = len(t.independent(before))
    loops = np.linalg.svd(here[0, t.first :], compute_uv=False)[:rank]
    if rank and loops[-1] * DEAD_CENTRE_FACTOR < loops[0]:
        return "there several motions of its loops meet"
    worst = condition_number(here)[0]
    if worst > DEAD_CENTRE_FACTOR:
        return f"a dead centre, where its inputs drive it no further (condition {worst:.0e})"
    return "no step leads on from there"


def _stuck(closure: Closure, states: np.ndarray) -> str:
    """Return the motions that the inputs leave open at a configuration that they cannot drive."""
    G = closure.rows(states)[1][0]
    if not np.isfinite(G).all():
        return "it starts where a distance among its inputs is zero and has no direction"
    condition, free = condition_number(G[None])[0], closure.transfer.unconstrained_coordinates(G)
    text = (
        f"its inputs depend on one another where it starts (condition {condition:.0e}, at most "
        f"{CONDITION_MAX:.0e} can be followed), and lead nowhere from there: while they stand still, "
        f"{free} can move. {closure.transfer.undriven_freedom()}"
    )
    return text.rstrip(". ")


def _reading(closure: Closure, states: np.ndarray, goal: np.ndarray) -> str:
    """Return the values of the chosen rows at one configuration, beside the goals."""
    t = closure.transfer
    values = closure.rows(states)[0]
    missing = closure.residual(goal, values)[0] * t.scale
    said = [
        f"{name} = {values[0, k] * t.scale[k]:.6g} (asked {goal[0, k] * t.scale[k]:.6g})"
        for k, name in enumerate(t.labels)
    ]
    for name, first, turn in closure.held:
        away = f"{np.linalg.norm(missing[first:turn]):.3g} away and " if turn > first else ""
        about = _turn_between(values[:, turn : turn + 9], goal[:, turn : turn + 9])
        said.append(f"{name} {away}{np.linalg.norm(about):.3g} rad off")
    return "to " + ", ".join(said[:4]) + (", …" if len(said) > 4 else "")
