"""Assemblies for a batch of targets: the postures at each member, in order as branches along the batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from kic.analysis.assemblies import (
    ROUND_OFF,
    SINGULAR,
    Assemblies,
    Search,
    apart,
    distinct,
    one_target,
    refuse,
    refuse_limits,
    sameness,
    searched,
)
from kic.configuration import Configuration
from kic.errors import ConfigurationError
from kic.kinematics.state import distance
from kic.position import follow_complex_step, real_configuration, real_inputs
from kic.transfer.closure import Closure
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.continuation import CONDITION_MAX, continue_to
from kic.transfer.targets import BatchTargets


@dataclass(frozen=True)
class BranchTargets:
    """What the members of a batch were to have: rows with the closure, and their values (B, P)."""

    closure: Closure
    values: np.ndarray

    def ends(self, states: np.ndarray, pairs: np.ndarray) -> list[BranchEnd]:
        """Where the ways of pairs (E, 2) end, from members with a posture, of states (B, S), to others.

        Members whose inputs are not finite are nowhere, and from where inputs drive nothing there is no way.
        """
        pairs = pairs[np.isfinite(self.values[pairs[:, 1]]).all(axis=1)]
        begin, place = np.unique(pairs[:, 0], return_inverse=True)
        pairs = pairs[(self.closure.condition(states[begin]) < CONDITION_MAX)[place]]
        if not len(pairs):
            return []
        outcome = continue_to(self.closure, states[pairs[:, 0]], self.values[pairs[:, 1]], want_reasons=False)
        return [
            BranchEnd(int(member), int(after), state, bool(share < 1))
            for (member, after), state, share in zip(pairs, outcome.states, outcome.share, strict=True)
            if share > 0
        ]

    def line(self, end: BranchEnd) -> InputSegment:
        """The straight way of inputs that is left from where one ended."""
        values = self.closure.rows(end.state[None])[0]
        left = self.closure.residual(self.closure.goal(self.values[[end.after]]), values)[0]
        return InputSegment(self.closure, values[0], left[: self.closure.transfer.first])


@dataclass(frozen=True)
class BranchEnd:
    """The last posture (S,) on the way from a member to one after it, and whether it stopped there."""

    member: int
    after: int
    state: np.ndarray
    stopped: bool


@dataclass(frozen=True)
class InputSegment:
    """A straight way of inputs: their rows with the closure, scaled values (P,) at its begin, direction."""

    closure: Closure
    begin: np.ndarray
    along: np.ndarray

    def missed(self, state: np.ndarray, far: float) -> tuple[np.ndarray, np.ndarray]:
        """What inputs miss (p,) at a state (S,) of their values so far on the way, and their first order."""
        values, G = self.closure.rows(state[None])
        first = len(self.along)
        goal = self.begin.copy()
        goal[:first] += far * self.along
        return -self.closure.residual(goal[None], values)[0, :first], G[0, :first]


# members beside the first have this share of the starts, and so many at least: their neighbours help
SHARE, LEAST = 8, 8


def find_assemblies(
    model: CompiledModel,
    inputs: Any,
    near: Configuration | None,
    starts: int,
    seed: Any,
    limits: Mapping[str, Any] | None,
) -> Assemblies:
    """Distinct postures found, for one target or a batch of them; see `Mechanism.assemblies`."""
    if model.has_complex_step:  # found in real numbers, then the step follows
        real = find_assemblies(
            model.real, real_inputs(inputs), real_configuration(model, near), starts, seed, limits
        )
        targets = model.targets(inputs)
        states = follow_complex_step(model, targets, targets.values, real)._states
        return Assemblies(model, states, real.starts, real.counts, real.singular, real.continued)
    search = searched(model, inputs, near, starts, seed, limits)
    return several_targets(search) if search.targets.batch else one_target(search)


def several_targets(search: Search) -> Assemblies:
    """Distinct solutions found for each target of a batch, matched from member to member.

    Each member has random starts of its own. What is found at one is then led to its neighbours, which tells
    which of their postures go on from it, and finds those that their own starts missed.
    """
    model, targets, closure = search.model, search.targets, search.closure
    count, batch = prod(targets.batch), targets.batch
    values = targets.values.reshape(count, targets.values.shape[-1])
    whys = targets.impossible.ravel()
    able = np.array([not why for why in whys], dtype=bool) & np.isfinite(values).all(axis=1)
    if count and not able.any():
        why = str(next((w for w in whys if w), "inputs must be finite"))
        raise ConfigurationError(
            f"'{model.description.name}' has no such posture at any of {count} members: {why}.",
            failed=search.members,
            reasons=[str(w) or "inputs must be finite" for w in whys],
        )
    found = _BranchTracker(search, values, able, before(batch))
    found.start()
    found.spread()
    if count and not any(map(len, found.states)):
        refuse_limits(search, *found.outside(), found.starts)
    slots = found.slots()
    shape = (max(map(len, slots), default=0), count)
    states = np.full((*shape, closure.transfer.tree.state_size), np.nan)
    hits, continued = np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=bool)
    for b, taken in enumerate(slots):
        states[taken, b], hits[taken, b] = found.states[b], found.hits[b]
        continued[taken, b] = found.come[b] >= 0
    flat = states.reshape(-1, states.shape[-1])
    have = np.isfinite(flat).all(axis=1)
    singular = np.zeros(len(flat), dtype=bool)
    singular[have] = closure.condition(flat[have]) > SINGULAR
    whole = (shape[0], *batch)
    return Assemblies(
        model,
        flat,
        found.starts,
        hits.reshape(whole),
        singular.reshape(whole),
        continued.reshape(whole),
        BatchTargets(targets.names, targets.held, np.tile(values, (shape[0], 1))),
    )


def before(batch: tuple[int, ...]) -> np.ndarray:
    """The member before each of a batch, (B,): beside it along the last axis that it is not at the start of.

    Examples
    --------
    >>> before((2, 3)).tolist()
    [-1, 0, 1, 0, 3, 4]
    """
    index = np.indices(batch).reshape(len(batch), -1)
    at = np.arange(index.shape[1])
    parent, strides = np.full(len(at), -1), np.cumprod([1, *batch[:0:-1]])[::-1]
    for axis, stride in enumerate(strides):
        parent = np.where(index[axis] > 0, at - stride, parent)
    return parent


class _BranchTracker:
    """The postures found at each member so far.

    Attributes
    ----------
    states : list of (K_b, S)
        Of each member.
    hits : list of (K_b,)
        How many starts led to each.
    come : list of (K_b,)
        From which posture of the member before each goes on; -1 where none is known.
    fixed : list of (K_b,) bool
        Whether the inputs fix it well; only such postures can be led on.
    """

    def __init__(self, search: Search, values: np.ndarray, able: np.ndarray, parent: np.ndarray) -> None:
        self.search, self.values, self.able, self.parent = search, values, able, parent
        size = search.closure.transfer.tree.state_size
        self.states = [np.empty((0, size)) for _ in values]
        self.hits = [np.empty(0, dtype=np.intp) for _ in values]
        self.come = [np.empty(0, dtype=np.intp) for _ in values]
        self.fixed = [np.empty(0, dtype=bool) for _ in values]
        self.starts = 0
        self._beyond: list[tuple[np.ndarray, np.ndarray]] = []

    def start(self) -> None:
        """Random starts: all of them at the first member that can be, a share at the others."""
        search, members = self.search, np.flatnonzero(self.able)
        if not members.size:
            return
        share = min(search.starts, max(search.starts // SHARE, LEAST))
        each = np.full(len(members), share)
        each[0] = search.starts
        owner = np.repeat(members, each)
        values = self.values[owner]
        # the first member's are those of a search for it alone
        head = search.begin(search.starts, values[: search.starts])
        tail = search.begin(len(owner) - search.starts, values[search.starts :])
        ended, left, reasons = search.closure.newton_global(np.concatenate([head, tail]), values)
        self.starts += len(owner)
        closed = np.array([not why for why in reasons])
        if not closed.any():
            refuse(search, ended, left, reasons)
        states = self._within(search.unwound(ended[closed], search.base))
        owner = owner[closed]
        for b in np.unique(owner[np.isfinite(states).all(axis=1)]):
            own = states[(owner == b) & np.isfinite(states).all(axis=1)]
            kept, self.hits[b] = distinct(search.closure, search.base, own)
            self.states[b] = own[kept]
            self.come[b] = np.full(len(kept), -1)
            self.fixed[b] = search.closure.condition(self.states[b]) <= SINGULAR

    def _within(self, states: np.ndarray) -> np.ndarray:
        """States (n, S), NaN where they are beyond limits."""
        beyond = self.search.beyond(states)
        out = beyond.max(axis=1, initial=0.0) > ROUND_OFF
        self._beyond.append((states[out], beyond[out]))
        return np.where(out[:, None], np.nan, states)

    def outside(self) -> tuple[np.ndarray, np.ndarray]:
        """Postures that were found beyond limits, and how far they are."""
        states, beyond = zip(*self._beyond, strict=True)
        return np.concatenate(states), np.concatenate(beyond)

    def spread(self) -> None:
        """Lead what is found to the members after and before, until nothing new is found."""
        led: set[tuple[int, int, int]] = set()
        children = [np.flatnonzero(self.parent == b) for b in range(len(self.values))]
        while True:
            ways = [
                (b, k, int(c))
                for b, own in enumerate(self.states)
                for k in np.flatnonzero(self.fixed[b]).tolist()
                for c in (*children[b], *([self.parent[b]] if self.come[b][k] < 0 else []))
                if c >= 0 and self.able[c] and (b, k, int(c)) not in led
            ]
            if not ways:
                return
            led.update(ways)
            self._lead(ways)

    def _lead(self, ways: list[tuple[int, int, int]]) -> None:
        """Lead posture k of member b to member c, for each way (b, k, c), and note where it ends."""
        search, t = self.search, self.search.closure.transfer
        start = np.stack([self.states[b][k] for b, k, _ in ways])
        outcome = continue_to(search.closure, start, self.values[[c for _, _, c in ways]], want_reasons=False)
        self.starts += len(ways)
        good = np.flatnonzero([not why for why in outcome.reasons])
        # turns stay with the branch
        ended = self._within(search.unwound(outcome.states[good], outcome.states[good]))
        worst = search.closure.condition(outcome.states[good])
        for end, same, condition, n in zip(ended, sameness(worst), worst, good, strict=True):
            b, k, c = ways[n]
            if not np.isfinite(end).all():
                continue
            gap = apart(t, self.states[c], end)
            j = int(np.argmin(gap)) if gap.size else -1
            if j < 0 or gap[j] > same:
                j = len(self.states[c])
                self.states[c] = np.concatenate([self.states[c], end[None]])
                self.hits[c] = np.append(self.hits[c], 0)
                self.come[c] = np.append(self.come[c], -1)
                self.fixed[c] = np.append(self.fixed[c], condition <= SINGULAR)
            self.hits[c][j] += 1
            if self.parent[c] == b and k not in self.come[c]:
                self.come[c][j] = k
            elif self.parent[b] == c and j not in self.come[b]:
                self.come[b][k] = j

    def slots(self) -> list[np.ndarray]:
        """The slice of each posture of each member: that of the one it goes on from, else a free one.

        On the way angles are wound as their branch has them.
        """
        from scipy.optimize import linear_sum_assignment

        search = self.search
        t, most = search.closure.transfer, max(map(len, self.states), default=0)
        slots: list[np.ndarray] = []
        for b, own in enumerate(self.states):
            taken, come, p = np.full(len(own), -1), self.come[b], self.parent[b]
            on = come >= 0
            if on.any():
                taken[on] = slots[p][come[on]]
                own[on] = search.unwound(own[on], self.states[p][come[on]])
            new = np.flatnonzero(~on)
            far = np.linalg.norm(
                distance(t.tree, own[new], np.broadcast_to(search.base, own[new].shape), t.column_scale),
                axis=1,
            )
            new = new[np.argsort(far, kind="stable")]
            free = [s for s in range(most) if s not in taken]
            # a branch that ended by a jump is followed by the nearest of those that begin
            left = np.flatnonzero(np.isin(slots[p], free)) if p >= 0 else np.empty(0, dtype=np.intp)
            if left.size and new.size:
                gap = np.array([apart(t, own[new], self.states[p][k]) for k in left])
                for i, j in zip(*linear_sum_assignment(gap), strict=True):
                    taken[new[j]] = slots[p][left[i]]
            rest = [s for s in free if s not in taken]
            late = new[taken[new] < 0]
            taken[late] = rest[: len(late)]
            slots.append(taken)
        return slots
