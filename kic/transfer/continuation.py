"""Numerical continuation of closed states to target values of the chosen rows, on one branch.

The targets move along a straight line from the values of the start. Compiled steps follow them first (see
`kernels.newton`). Predictor–corrector steps in NumPy, with a second-order predictor, complete the path.
A Newton–Kantorovich test certifies every step: no singular configuration lies between its ends, and
both are on one branch. Only the end of a path may be a dead centre.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.kernels import layout as lay
from kic.kinematics.state import difference, distance, integrate
from kic.numerics.arrays import one_batch_axis
from kic.numerics.linalg import condition_number
from kic.numerics.rotations import quaternion_from_vector, rotated, vector_from_matrix
from kic.numerics.tolerances import CONDITION_MAX, EPS, RANK_RTOL
from kic.transfer.closure import LOOP_DRIFT_RTOL, Closure
from kic.transfer.coordinate_transfer import TRIES, TRIES_MAX

# largest condition of all rows at which inputs drive a configuration
FOLLOWED_CONDITION_MAX = CONDITION_MAX**0.5
# largest angle of a step (rad), and largest ratio of the second-order part of the predictor to the first
TURN_MAX, BEND_MAX = 1.0, 0.375
# Largest correction times the condition, and smallest bound on corrections (rad, lengths), for paths that end
# in a singular configuration. Other branches are at least as far as the nearest singular configuration, about
# one over the condition (Kantorovich).
CORRECTION_FACTOR, CORRECTION_MIN = 0.2, 3e-3
# largest excursion of the Newton iteration, in units of the largest correction
EXCURSION_FACTOR = 2.0
# a step is certified along chords: their largest number and approximate length (rad, lengths)
CHORDS_MAX, CHORD_LENGTH = 12, 0.05
# Largest distance of a dead centre at the end of a path from the last certified state (rad, lengths). A dead
# centre cannot be certified, and a gap of about the square of this distance would be missed.
DEAD_CENTRE_DISTANCE_MAX = 3e-4
# smallest share of the second-order part of the rows, outside the range of the first order, that counts
CURVATURE_MIN = 1e-4
# relative difference between values of a start and the targets that counts as rounding
SAME_VALUE_RTOL = 8 * EPS
# condition above which a configuration counts as singular: a double root has half the digits
SINGULAR_CONDITION = 1e5
# Largest number of steps, steps between checks of progress, and a factor. A path is too long if the remaining
# steps, each the factor times the longest one so far, would not complete it.
CONTINUATION_STEPS_MAX, CHECK_STEPS, SPEEDUP_MAX = 2000, 200, 50
# share of the mean step below which steps are shrinking, as towards a dead centre
SHRUNK_STEP_FACTOR = 0.1
# number of turns of one input above which a path is shortened by whole periods, and longest period in turns
TURNS_MAX, PERIOD_MAX = 16, 8
# largest distance of a state after a period from the one before (rad, lengths)
PERIOD_ATOL = 1e-9
# shortest step, as a share of the whole path
CONTINUATION_STEP_MIN = 1e-11
# the reason of failed members where reasons are not requested
NO_REASON = "its path ended before"
# number of starts around a singular start (rad, characteristic length) from which a target is sought, and
# largest number of members for which this is done: it takes up to 50 ms, and messages have three reasons
REACH_STARTS, SOUGHT_MAX = 8, 3
# condition above which the end of a path is reported as a dead centre
DEAD_CENTRE_FACTOR = 100.0


@dataclass
class Outcome:
    """Results of a continuation for a batch.

    Attributes
    ----------
    states : (B, S)
        Closed configurations; for members that failed, the last one on their path.
    reasons : list of str
        Reason for each member that failed; '' for members that converged.
    share : (B,)
        Completed share of the path from start to target.
    """

    states: np.ndarray
    reasons: list[str]
    share: np.ndarray


def placed(closure: Closure, start: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return closed states (B, S) with bodies on free joints moved to their poses among the targets (B, P).

    This is done for bodies that move no other row. The loops stay closed during this motion, and the states
    stay on their branch.
    """
    t = closure.transfer
    item = t.system.rows.item_of[t.system.picked]
    items, kinds = t.system.rows.items[item], t.tree.cols[:, lay.KIND]
    # a coordinate depends on itself alone
    alone = items[:, [lay.FRAME_B]] == np.arange(t.tree.size)
    moving = t.system.moving[item] & ((items[:, [lay.ITEM]] != lay.COORDINATE) | alone)
    for _, first, turn in closure.held:
        point, axes = np.arange(first, turn), np.arange(turn, turn + 9)
        own = np.flatnonzero(moving[first])
        slides, ball = own[kinds[own] == lay.PRISMATIC], own[kinds[own] == lay.BALL]
        is_free = len(point) == len(slides) == len(ball) == 3 and len(own) == 6
        if not is_free or np.delete(moving, [*point, *axes], axis=0)[:, own].any():
            continue
        goal = closure.goal(target)
        values, G = closure.rows(start)
        about = _turn_between(values[:, axes], goal[:, axes])
        turning = np.cross(about[:, None], values[:, axes].reshape(-1, 3, 3)).reshape(-1, 9, 1)
        step = np.zeros((len(start), t.tree.size))
        step[:, ball] = (np.linalg.pinv(G[:, axes][:, :, ball]) @ turning)[..., 0]
        start = closure.moved(start, step)
        values, G = closure.rows(start)
        step = np.zeros_like(step)
        away = (goal - values)[:, point, None]
        step[:, slides] = np.linalg.solve(G[:, point][:, :, slides], away)[..., 0]
        start = closure.moved(start, step)
    return start


def continue_to(
    closure: Closure,
    start: np.ndarray,
    target: np.ndarray,
    want_reasons: bool = True,
    sought_max: int = SOUGHT_MAX,
) -> Outcome:
    """Continue closed states (B, S) to targets (B, P) of the chosen rows, on their branch.

    Without `want_reasons` all failed members have the same reason. Around singular starts of `sought_max`
    members, other starts are tried for their reasons.
    """
    states, share = closure.track(start, target, tries=TRIES_MAX)
    return continue_from(closure, start, target, states, share, want_reasons, sought_max)


def continue_from(
    closure: Closure,
    start: np.ndarray,
    target: np.ndarray,
    states: np.ndarray,
    share: np.ndarray,
    want_reasons: bool,
    sought_max: int = SOUGHT_MAX,
) -> Outcome:
    """Continue the results of `Closure.track`, states (B, S) after a share (B,) of their paths."""
    reasons = [""] * len(start)
    far = np.flatnonzero(share < 1)
    if far.size:
        same = _has_values(closure, start[far], target[far])
        states[far[same]], share[far[same]] = start[far[same]], 1.0
        far = far[~same]
    start, skipped = start.copy(), np.zeros(len(start))
    for b in far.tolist():
        found = _without_periods(closure, start[[b]], target[[b]])
        if found is not None:
            start[b], skipped[b], why = found
            reasons[b] = why
            if why:
                states[b], share[b] = start[b], 0.0
            else:
                (states[b],), (share[b],) = closure.track(start[[b]], target[[b]], tries=TRIES_MAX)
    far = np.array([b for b in far.tolist() if share[b] < 1 and not reasons[b]], dtype=np.intp)
    if far.size:
        rest = _continue_in_steps(
            closure, start[far], target[far], states[far], share[far], want_reasons, sought_max
        )
        states[far], share[far] = rest.states, rest.share
        for b, why in zip(far.tolist(), rest.reasons, strict=True):
            reasons[b] = why
    share = np.where(share < 1, skipped + (1 - skipped) * share, 1.0)
    return Outcome(states, reasons, share)


def _without_periods(
    closure: Closure, start: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, float, str] | None:
    """Return a start (S,) whole periods closer to a target (1, P), the skipped share, and a failure reason.

    One revolute input turns, and the others keep their values. A path is periodic if the configuration after
    some turns equals the start (1, S) except for whole turns of joints. The reason is '' unless the angles
    are so large that their rounding opens the loops. Return None for paths that are short or not periodic.
    """
    t = closure.transfer
    values = closure.rows(start)[0][:, : t.size] * t.scale[: t.size]
    change = target[0] - values[0]
    row = int(np.argmax(np.abs(change)))
    constant = np.delete(np.abs(change), row).max(initial=0.0) <= SAME_VALUE_RTOL * max(
        1.0, np.abs(values).max()
    )
    far = abs(change[row]) > TURNS_MAX * 2 * np.pi
    if not (far and constant and closure.compiled and _is_angle(closure, row)):
        return None
    columns, entries = t.tree.single_columns
    turning = entries[t.tree.cols[columns, lay.KIND] == lay.REVOLUTE]
    here, aim = start, values.copy()
    for k in range(1, PERIOD_MAX + 1):
        aim[0, row] = values[0, row] + k * np.copysign(2 * np.pi, change[row])
        here, share = closure.track(here, aim, tries=TRIES_MAX)
        if share[0] < 1:
            return None
        turns = np.zeros(start.shape[1])
        turns[turning] = np.round((here - start)[0, turning] / (2 * np.pi))
        error = distance(t.tree, start + 2 * np.pi * turns, here, t.column_scale)
        if error.max(initial=0.0) <= PERIOD_ATOL:
            count = int(abs(change[row]) / (2 * np.pi * k))
            new = start[0] + 2 * np.pi * count * turns
            rounding = 4 * EPS * np.abs(new[turning]).max()
            if rounding > LOOP_DRIFT_RTOL:
                return start[0], 0.0, f"rounding of its angles would open its loops by {rounding:.0e} rad"
            return new, 2 * np.pi * k * count / abs(change[row]), ""
    return None


def _is_angle(closure: Closure, row: int) -> bool:
    """Return True if a chosen row is the angle of a revolute joint of the tree."""
    t = closure.transfer
    item = t.system.rows.source[t.system.rows.item_of[t.system.picked[row]]]
    return bool(item.kind == lay.COORDINATE and t.tree.cols[item.frame_b, lay.KIND] == lay.REVOLUTE)


def _known_turns(closure: Closure, G: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the largest rotation (B,) of a joint that a change (B, P) of the rows determines on any path.

    Rows with a constant gradient, such as coordinates, gears and racks, are linear equations for angles.
    """
    linear = closure.constant_rows
    if not linear.any():
        return np.zeros(len(G))
    # the gradients are those of any member
    inverse = np.linalg.pinv(G[0, linear], rcond=RANK_RTOL)
    resolution = inverse @ G[0, linear]
    known = closure.turning & (np.abs(resolution - np.eye(len(resolution))).max(axis=1) < RANK_RTOL)
    return np.abs(change[:, linear] @ inverse.T)[:, known].max(axis=1, initial=0.0)


def _has_values(closure: Closure, states: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return a mask of closed states (B, S) that have the target values and are determined by them.

    At a dead centre the rows leave one direction v free to first order. They determine the state to second
    order if H(v, v) is outside the range of the first order.
    """
    t = closure.transfer
    (values, G), goal = closure.rows(states), closure.goal(target)
    error = np.abs(closure.residual(goal, values))
    same = (error[:, : t.size] <= SAME_VALUE_RTOL * np.maximum(1.0, np.abs(values[:, : t.size]))).all(axis=1)
    same &= error[:, t.size :].max(axis=1, initial=0.0) <= max(closure.limit, t.tolerance)
    for b in np.flatnonzero(same):
        if not np.isfinite(G[b]).all() or G.shape[1] < G.shape[2]:
            same[b] = False
            continue
        U, sigma, V = np.linalg.svd(G[b])
        rank = int((sigma * FOLLOWED_CONDITION_MAX > sigma[0]).sum())
        if rank < len(sigma) - 1:
            same[b] = False
        elif rank == len(sigma) - 1:
            second = t.curvature(states[[b]], V[[-1]] * t.column_scale)[0] / t.scale
            same[b] = bool(
                np.linalg.norm(U[:, rank:].T @ second) > CURVATURE_MIN * max(1.0, np.abs(second).max())
            )
    return same


def _continue_in_steps(
    closure: Closure,
    start: np.ndarray,
    target: np.ndarray,
    states: np.ndarray,
    share: np.ndarray,
    want_reasons: bool,
    sought_max: int,
) -> Outcome:
    """Continue members from states (B, S) after a share (B,) of their paths, by predictor–corrector steps."""
    t, goal = closure.transfer, closure.goal(target)
    states, share, step = states.copy(), share.copy(), 1 - share
    values, G = closure.rows(states)
    worst, at_start = condition_number(G), closure.rows(start)[1]
    regular = condition_number(at_start) < FOLLOWED_CONDITION_MAX
    # compiled steps reach closer to a dead centre than the condition at which steps may start here
    going = regular & ((worst < FOLLOWED_CONDITION_MAX) | (share > 0))
    # the rotation of a joint in one step is bounded
    turn = _known_turns(closure, G, closure.residual(goal, values))
    too_long = turn > CONTINUATION_STEPS_MAX * TURN_MAX
    going &= ~too_long
    fresh = np.ones(len(start), dtype=bool)
    # compiled steps completed the first share; their number is unknown and counts as `TRIES`
    before, longest, unfinished = share.copy(), share / TRIES, np.zeros(len(start), dtype=int)
    for n in range(CONTINUATION_STEPS_MAX):
        if n and n % CHECK_STEPS == 0:
            slow = SPEEDUP_MAX * longest * (CONTINUATION_STEPS_MAX - n) < 1 - share
            slow &= going & (step > SHRUNK_STEP_FACTOR * (share - before) / n)
            unfinished[slow] = n
            going &= ~slow
        k = np.flatnonzero(going)
        if not k.size:
            break
        predictor = _Predictor(closure, states[k], values[k], G[k], goal[k])
        part = np.minimum(predictor.longest(), step[k] / (1 - share[k]))
        # near a dead centre, the possible end, one step to the goal is tried from each certified state
        whole = fresh[k] & (worst[k] > SINGULAR_CONDITION / 10)
        part[(part > 0.999) | whole] = 1.0
        predicted = predictor.predict(part)
        # results beyond the largest correction are rejected
        within = np.maximum(CORRECTION_FACTOR / worst[k], CORRECTION_MIN)
        found, residual = closure.newton(predicted, predictor.aim(part), EXCURSION_FACTOR * within)
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
        # branches meet at singular configurations, where a path could change its branch
        good &= dead | (worse <= SINGULAR_CONDITION)
        some = np.flatnonzero(good & ~dead)
        if some.size:
            good[some] = predictor.certified(some, part[some], predicted[some], found[some])
        done = k[good]
        states[done], values[done], G[done], worst[done] = found[good], v[good], g[good], worse[good]
        length = part * (1 - share[k])
        share[done] = np.where(part[good] == 1, 1.0, share[done] + length[good])
        longest[done] = np.maximum(longest[done], length[good])
        fresh[k] = good
        step[k] = np.where(good, 2 * length, np.where(whole, step[k], length / 2))
        going[k] = (share[k] < 1) & (step[k] >= CONTINUATION_STEP_MIN)
    unfinished[going] = CONTINUATION_STEPS_MAX
    reasons, ended = [NO_REASON if part < 1 else "" for part in share], np.empty(0, dtype=np.intp)
    if want_reasons:
        long = (share < 1) & ((regular & too_long) | (unfinished > 0))
        for b in np.flatnonzero(long):
            reasons[b] = f"its path is too long: {100 * share[b]:.3g} % of it took {unfinished[b]} steps"
            if regular[b] and too_long[b]:
                most = CONTINUATION_STEPS_MAX * TURN_MAX
                reasons[b] = (
                    f"its path is too long: a joint turns by {turn[b]:.3g} rad, more than {most:g} rad"
                )
        ended = np.flatnonzero((share < 1) & ~long)
    elsewhere = closure.failure_reasons(*closure.newton(states[ended], goal[ended])) if ended.size else []
    sought = ended[~regular[ended]][:sought_max]
    for b, why in zip(ended, elsewhere, strict=True):
        if "wrong way" in why:
            reasons[b] = why
        elif regular[b]:
            reasons[b] = _stopped_reason(closure, at_start[b], values[b], G[b], goal[b], share[b], why)
        else:
            reasons[b] = _undriven_reason(closure, at_start[b])
        if b in sought:
            reasons[b] = _out_of_reach_reason(closure, start[[b]], goal[[b]]) + reasons[b]
    return Outcome(states, reasons, share)


class _Predictor:
    """Second-order prediction of the path of a batch from its states to its goal.

    Parameters
    ----------
    closure : Closure
        The equations.
    states, values, G : (B, S), (B, P), (B, P, M)
        States, with their scaled rows.
    goal : (B, P)
        Scaled goals of all rows.
    """

    def __init__(
        self, closure: Closure, states: np.ndarray, values: np.ndarray, G: np.ndarray, goal: np.ndarray
    ) -> None:
        self.closure, self.states, self.goal = closure, states, goal
        t = closure.transfer
        # w(τ) is linear in τ, except for orientations, which turn about one axis. Closure rows are zero
        self.here = values.copy()
        self.here[:, t.size :] = 0.0
        self.change = closure.residual(goal, self.here)
        first, second = self.change.copy(), np.zeros_like(self.change)
        self.about = [_turn_between(values[:, k : k + 9], goal[:, k : k + 9]) for k in closure.turns]
        for k, about in zip(closure.turns, self.about, strict=True):
            axes = values[:, k : k + 9].reshape(-1, 3, 3)
            turning = np.cross(about[:, None], axes)
            first[:, k : k + 9] = turning.reshape(-1, 9)
            second[:, k : k + 9] = np.cross(about[:, None], turning).reshape(-1, 9)
        # G φ' = w', G φ'' = w'' − H(φ', φ'): (3-15) and (3-19) along one direction
        inverse = np.linalg.pinv(G, rcond=1e-10)
        self.first = np.einsum("bnp,bp->bn", inverse, first)
        second -= self._curvature(self.first * t.column_scale)
        self.second = np.einsum("bnp,bp->bn", inverse, second)

    def _curvature(self, rate: np.ndarray) -> np.ndarray:
        """Return the scaled H(φ', φ') of all rows."""
        t = self.closure.transfer
        return t.curvature(self.states, rate) / t.scale

    def longest(self) -> np.ndarray:
        """Return the share (B,) of the path over which the prediction is accurate."""
        first = np.abs(self.first).max(axis=1, initial=0.0)
        second = np.abs(self.second).max(axis=1, initial=0.0)
        turn = np.abs(self.first[:, self.closure.turning]).max(axis=1, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.fmin(np.fmin(1.0, BEND_MAX * first / second), TURN_MAX / turn)
        # at least the length of the smallest allowed correction
        return np.maximum(most, np.minimum(1.0, CORRECTION_MIN / np.maximum(first + second, CORRECTION_MIN)))

    def predict(self, part: np.ndarray) -> np.ndarray:
        """Return predicted states (B, S) after a part (B,) of the path."""
        t = self.closure.transfer
        step = part[:, None] * self.first + part[:, None] ** 2 / 2 * self.second
        return integrate(t.tree, self.states, step * t.column_scale)

    def aim(self, part: np.ndarray) -> np.ndarray:
        """Return goals (B, P) after a part of the path."""
        aim = self.here + part[:, None] * self.change
        for k, about in zip(self.closure.turns, self.about, strict=True):
            axes = self.here[:, k : k + 9].reshape(-1, 3, 3)
            q = quaternion_from_vector(part[:, None] * about)
            aim[:, k : k + 9] = rotated(q[:, None], axes).reshape(-1, 9)
        end = part == 1
        aim[end] = self.goal[end]
        return aim

    def certified(
        self, some: np.ndarray, part: np.ndarray, predicted: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        """Return a mask of the steps of members `some` that are proved to stay on their branch.

        The curve is the prediction plus a cubic term that makes it end in the state found. Its intervals have
        a node in the middle, and are tested like the chords of `kernels.newton`.
        """
        longest = np.abs(part[:, None] * self.first[some]).max(axis=1, initial=0.0)
        chords = np.minimum(CHORDS_MAX, 1 + (longest / CHORD_LENGTH).astype(int))
        good = np.zeros(len(some), dtype=bool)
        for count in np.unique(chords):  # the proof of a member does not depend on others
            k = np.flatnonzero(chords == count)
            good[k] = self._certified(some[k], part[k], predicted[k], found[k], int(count))
        return good

    def _certified(
        self, some: np.ndarray, part: np.ndarray, predicted: np.ndarray, found: np.ndarray, chords: int
    ) -> np.ndarray:
        """Return the mask of `certified` for a number of chords."""
        closure, t, count = self.closure, self.closure.transfer, len(some)
        own = _Predictor.__new__(_Predictor)
        own.closure, own.states, own.goal = closure, self.states[some], self.goal[some]
        own.here, own.change = self.here[some], self.change[some]
        own.about = [about[some] for about in self.about]
        own.first, own.second = self.first[some], self.second[some]
        off = difference(t.tree, predicted, found) / t.column_scale
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
        values, G = closure.rows(one_batch_axis(all_states))
        error = closure.residual(np.stack(aims, axis=1).reshape(values.shape), values)
        shape = count, 2 * chords + 1
        return closure.certified(
            all_states, np.stack(steps, axis=1), values.reshape(*shape, -1), G.reshape(*shape, *G.shape[1:]),
            error.reshape(*shape, -1),
        )  # fmt: skip


def _turn_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the rotation vector (B, 3) from one triple of unit vectors (B, 9) to another."""
    A, B = a.reshape(-1, 3, 3), b.reshape(-1, 3, 3)
    return vector_from_matrix(np.einsum("bki,bkj->bij", B, A))


def _stopped_reason(
    closure: Closure,
    before: np.ndarray,
    values: np.ndarray,
    G: np.ndarray,
    goal: np.ndarray,
    share: float,
    elsewhere: str,
) -> str:
    """Return the reason why one member did not reach its goal (P,), from the rows where its path ends.

    `values` (P,) and `G` (P, M) are those of the end, `before` (P, M) is G at the start. `elsewhere` is the
    reason why Newton's method, begun at the end, does not reach the goal either; '' if it does.
    """
    strained = closure.strained(values, G)
    there = (
        elsewhere or "a configuration with these values is on another branch, which this start does not reach"
    )
    progress = (
        f"it completed {min(100 * share, 99.99):.4g} % of the path, {_values_reached(closure, values, goal)}"
    )
    if strained and "inconsistent" not in elsewhere:
        return f"{progress}: {strained}"
    return f"{progress}: {ending(closure, before, G)}; {there}"


def ending(closure: Closure, before: np.ndarray, G: np.ndarray) -> str:
    """Return a description of the configuration at which a path ends.

    `G` and `before` (P, M) are the scaled first order of the rows there, and at the start.
    """
    t = closure.transfer
    rank = len(t.independent(before))
    loops = np.linalg.svd(G[t.size :], compute_uv=False)[:rank]
    if rank and loops[-1] * DEAD_CENTRE_FACTOR < loops[0]:
        return "several motions of its loops meet there, a constraint singularity"
    worst = condition_number(G[None])[0]
    if worst > DEAD_CENTRE_FACTOR:
        return f"a dead centre, where its inputs drive it no further (condition {worst:.0e})"
    return "no step can be certified from there"


def _out_of_reach_reason(closure: Closure, start: np.ndarray, goal: np.ndarray) -> str:
    """Return text on the smallest residual if no start near a singular one reaches a goal (1, P), else ''."""
    tree = closure.transfer.tree
    steps = np.random.default_rng(0).uniform(-1, 1, (REACH_STARTS, tree.size)) * closure.transfer.column_scale
    with np.errstate(invalid="ignore"):  # quaternions without a direction
        starts = integrate(tree, np.repeat(start, REACH_STARTS, axis=0), steps)
    states, residual = closure.newton(starts, np.repeat(goal, REACH_STARTS, axis=0))
    reasons = closure.failure_reasons(states, residual)
    if not all(reasons):
        return ""
    return f"{reasons[int(np.argmin(residual))]}, the smallest from {REACH_STARTS} nearby starts; also "


def _undriven_reason(closure: Closure, G: np.ndarray) -> str:
    """Return text on the motions that inputs leave free where they cannot drive it, from rows G (P, M)."""
    if not np.isfinite(G).all():
        return (
            "it starts where a distance among its inputs is zero, or the directions of an angle are parallel"
        )
    condition, free = condition_number(G[None])[0], closure.transfer.unconstrained_coordinates(G)
    text = (
        f"its inputs are dependent where it starts (condition {condition:.0e}, at most "
        f"{FOLLOWED_CONDITION_MAX:.0e} can be followed): while they are at rest, "
        f"{free} can move. {closure.transfer.undriven_freedom()}"
    )
    return text.rstrip(". ")


def _values_reached(closure: Closure, values: np.ndarray, goal: np.ndarray) -> str:
    """Return text with values (P,) of the chosen rows, and their goals."""
    t = closure.transfer
    missing = closure.residual(goal[None], values[None])[0] * t.scale
    texts = [
        f"{name} = {values[k] * t.scale[k]:.6g} (requested {goal[k] * t.scale[k]:.6g})"
        for k, name in enumerate(t.labels)
    ]
    for name, first, turn in closure.held:
        offset = f"{np.linalg.norm(missing[first:turn]):.3g} away and " if turn > first else ""
        about = _turn_between(values[turn : turn + 9], goal[turn : turn + 9])
        texts.append(f"{name} {offset}{np.linalg.norm(about):.3g} rad off")
    return "to " + ", ".join(texts[:4]) + (", …" if len(texts) > 4 else "")
