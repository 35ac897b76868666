"""Assembly modes for a batch of targets, matched from member to member as branches."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from kic.analysis.assemblies import (
    ISOLATED_CONDITION_MAX,
    Assemblies,
    AssemblySearch,
    assembly_search,
    distinct_solutions,
    find_for_target,
    raise_beyond_limits,
    raise_not_found,
    solution_tolerance,
    state_distance,
)
from kic.configuration import Configuration
from kic.errors import ConfigurationError
from kic.kinematics.state import distance
from kic.position import follow_complex_step, real_configuration, real_inputs
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.continuation import continue_to
from kic.transfer.limits import LIMIT_ATOL, Limits
from kic.transfer.targets import BatchTargets

# every member but the first has this share of the starts, at least a few, because its neighbours contribute
MEMBER_STARTS_FACTOR, MEMBER_STARTS_MIN = 1 / 8, 8


def find_assemblies(
    model: CompiledModel,
    inputs: Any,
    near: Configuration | None,
    starts: int,
    seed: Any,
    limits: Limits,
) -> Assemblies:
    """Return the distinct assembly modes for one target or a batch. See `Mechanism.assemblies`."""
    if model.has_complex_step:  # solve in real numbers, then carry the step along
        real = find_assemblies(
            model.real, real_inputs(inputs), real_configuration(model, near), starts, seed, limits
        )
        targets, _ = model.position_problem(inputs)
        states = follow_complex_step(model, targets, targets.values, real)._states
        return Assemblies(model, states, real.starts, real.counts, real.singular, real.continued)
    search = assembly_search(model, inputs, near, starts, seed, limits)
    return find_for_batch(search) if search.targets.batch else find_for_target(search)


def find_for_batch(search: AssemblySearch) -> Assemblies:
    """Return the distinct solutions for each target of a batch, matched from member to member.

    Each member has random starts of its own. Its solutions are then continued to the neighbours. This matches
    solutions along the batch and finds those that the neighbours' own starts missed.
    """
    model, targets, closure = search.model, search.targets, search.closure
    count, batch = prod(targets.batch), targets.batch
    values = targets.values.reshape(count, targets.values.shape[-1])
    reasons = targets.impossible.ravel()
    feasible = np.array([not why for why in reasons], dtype=bool)
    if count and not feasible.any():
        why = str(next(w for w in reasons if w))
        raise ConfigurationError(
            f"'{model.description.name}' has no configuration with these inputs at any of {count} "
            f"members: {why}.",
            failed=search.members,
            reasons=[str(w) for w in reasons],
        )
    tracker = _BranchTracker(search, values, feasible, preceding_members(batch))
    tracker.start()
    tracker.propagate()
    if count and not any(map(len, tracker.states)):
        raise_beyond_limits(search, *tracker.rejected(), tracker.starts)
    slots = tracker.slots()
    shape = (max(map(len, slots), default=0), count)
    states = np.full((*shape, closure.transfer.tree.state_size), np.nan)
    counts, continued = np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=bool)
    for b, slot in enumerate(slots):
        states[slot, b], counts[slot, b] = tracker.states[b], tracker.counts[b]
        continued[slot, b] = tracker.origins[b] >= 0
    flat = states.reshape(-1, states.shape[-1])
    valid = np.isfinite(flat).all(axis=1)
    singular = np.zeros(len(flat), dtype=bool)
    singular[valid] = closure.condition(flat[valid]) > ISOLATED_CONDITION_MAX
    whole = (shape[0], *batch)
    return Assemblies(
        model,
        flat,
        tracker.starts,
        counts.reshape(whole),
        singular.reshape(whole),
        continued.reshape(whole),
        BatchTargets(targets.names, targets.held, np.tile(values, (shape[0], 1))),
    )


def preceding_members(batch: tuple[int, ...]) -> np.ndarray:
    """Return the preceding member (B,) of each along the last axis on which it is not the first, or -1."""
    index = np.indices(batch).reshape(len(batch), -1)
    at = np.arange(index.shape[1])
    parent, strides = np.full(len(at), -1), np.cumprod([1, *batch[:0:-1]])[::-1]
    for axis, stride in enumerate(strides):
        parent = np.where(index[axis] > 0, at - stride, parent)
    return parent


class _BranchTracker:
    """The solutions (K_b, S) found at each member so far, with the number of starts that converged to each.

    `origins` has the solution of the preceding member that each continues, -1 if unknown. `is_fixed` is
    True if the inputs fix the solution well; only these can be continued.
    """

    def __init__(
        self, search: AssemblySearch, values: np.ndarray, feasible: np.ndarray, parent: np.ndarray
    ) -> None:
        self.search, self.values, self.feasible, self.parent = search, values, feasible, parent
        size = search.closure.transfer.tree.state_size
        self.states = [np.empty((0, size)) for _ in values]
        self.counts = [np.empty(0, dtype=np.intp) for _ in values]
        self.origins = [np.empty(0, dtype=np.intp) for _ in values]
        self.is_fixed = [np.empty(0, dtype=bool) for _ in values]
        self.starts = 0
        self._beyond: list[tuple[np.ndarray, np.ndarray]] = []

    def start(self) -> None:
        """Solve from random starts: all of them at the first feasible member, a share at the others."""
        search, members = self.search, np.flatnonzero(self.feasible)
        if not members.size:
            return
        per_member = min(search.starts, max(int(search.starts * MEMBER_STARTS_FACTOR), MEMBER_STARTS_MIN))
        numbers = np.full(len(members), per_member)
        numbers[0] = search.starts
        owner = np.repeat(members, numbers)
        values = self.values[owner]
        # the starts of the first member equal those of a search for it alone
        head = search.starting_states(search.starts, values[: search.starts])
        tail = search.starting_states(len(owner) - search.starts, values[search.starts :])
        final, residuals, failures = search.closure.newton_global(np.concatenate([head, tail]), values)
        self.starts += len(owner)
        converged = np.array([not why for why in failures])
        if not converged.any():
            raise_not_found(search, final, residuals, failures)
        states = self._within(search.nearest_turns(final[converged], search.base))
        owner = owner[converged]
        for b in np.unique(owner[np.isfinite(states).all(axis=1)]):
            own = states[(owner == b) & np.isfinite(states).all(axis=1)]
            kept, self.counts[b] = distinct_solutions(search.closure, search.base, own)
            self.states[b] = own[kept]
            self.origins[b] = np.full(len(kept), -1)
            self.is_fixed[b] = search.closure.condition(self.states[b]) <= ISOLATED_CONDITION_MAX

    def _within(self, states: np.ndarray) -> np.ndarray:
        """Return states (n, S), NaN where they are beyond limits."""
        beyond = self.search.beyond(states)
        excluded = beyond.max(axis=1, initial=0.0) > LIMIT_ATOL
        self._beyond.append((states[excluded], beyond[excluded]))
        return np.where(excluded[:, None], np.nan, states)

    def rejected(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the solutions found beyond limits, and their excess."""
        states, beyond = zip(*self._beyond, strict=True)
        return np.concatenate(states), np.concatenate(beyond)

    def propagate(self) -> None:
        """Continue solutions to the adjacent members until nothing new is found."""
        done: set[tuple[int, int, int]] = set()
        children = [np.flatnonzero(self.parent == b) for b in range(len(self.values))]
        while True:
            steps = [
                (b, k, int(c))
                for b, own in enumerate(self.states)
                for k in np.flatnonzero(self.is_fixed[b]).tolist()
                for c in (*children[b], *([self.parent[b]] if self.origins[b][k] < 0 else []))
                if c >= 0 and self.feasible[c] and (b, k, int(c)) not in done
            ]
            if not steps:
                return
            done.update(steps)
            self._continue_branches(steps)

    def _continue_branches(self, steps: list[tuple[int, int, int]]) -> None:
        """Continue solution k of member b to member c for each step (b, k, c), and record the results."""
        search, t = self.search, self.search.closure.transfer
        start = np.stack([self.states[b][k] for b, k, _ in steps])
        outcome = continue_to(
            search.closure, start, self.values[[c for _, _, c in steps]], want_reasons=False
        )
        self.starts += len(steps)
        converged = np.flatnonzero([not why for why in outcome.reasons])
        # keep the number of turns of the branch
        final = self._within(search.nearest_turns(outcome.states[converged], outcome.states[converged]))
        conditions = search.closure.condition(outcome.states[converged])
        for end, tolerance, condition, n in zip(
            final, solution_tolerance(conditions), conditions, converged, strict=True
        ):
            b, k, c = steps[n]
            if not np.isfinite(end).all():
                continue
            distances = state_distance(t, self.states[c], end)
            j = int(np.argmin(distances)) if distances.size else -1
            if j < 0 or distances[j] > tolerance:
                j = len(self.states[c])
                self.states[c] = np.concatenate([self.states[c], end[None]])
                self.counts[c] = np.append(self.counts[c], 0)
                self.origins[c] = np.append(self.origins[c], -1)
                self.is_fixed[c] = np.append(self.is_fixed[c], condition <= ISOLATED_CONDITION_MAX)
            self.counts[c][j] += 1
            if self.parent[c] == b and k not in self.origins[c]:
                self.origins[c][j] = k
            elif self.parent[b] == c and j not in self.origins[b]:
                self.origins[b][k] = j

    def slots(self) -> list[np.ndarray]:
        """Return the slice of each solution of each member: that of the one it continues, else a free one.

        The angles of continued solutions get the turns of their branch.
        """
        from scipy.optimize import linear_sum_assignment

        search = self.search
        t, most = search.closure.transfer, max(map(len, self.states), default=0)
        slots: list[np.ndarray] = []
        for b, own in enumerate(self.states):
            slot, origin, p = np.full(len(own), -1), self.origins[b], self.parent[b]
            continued = origin >= 0
            if continued.any():
                slot[continued] = slots[p][origin[continued]]
                own[continued] = search.nearest_turns(own[continued], self.states[p][origin[continued]])
            new = np.flatnonzero(~continued)
            distances = np.linalg.norm(
                distance(t.tree, own[new], np.broadcast_to(search.base, own[new].shape), t.column_scale),
                axis=1,
            )
            new = new[np.argsort(distances, kind="stable")]
            free = [s for s in range(most) if s not in slot]
            # a branch that ends by a jump passes its slice to the nearest of those that begin
            ended = np.flatnonzero(np.isin(slots[p], free)) if p >= 0 else np.empty(0, dtype=np.intp)
            if ended.size and new.size:
                distances_left = np.array([state_distance(t, own[new], self.states[p][k]) for k in ended])
                for i, j in zip(*linear_sum_assignment(distances_left), strict=True):
                    slot[new[j]] = slots[p][ended[i]]
            rest = [s for s in free if s not in slot]
            unmatched = new[slot[new] < 0]
            slot[unmatched] = rest[: len(unmatched)]
            slots.append(slot)
        return slots
