"""Search for singular configurations in a batch: sign changes between neighbours, and minima near zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kic.analysis.tangent_chart import ChartSegments, TangentSpace, between, crossings, tangents
from kic.kinematics.queries import OutputQuery
from kic.kinematics.state import difference, distance, integrate
from kic.numerics.linalg import min_singular_value
from kic.numerics.tolerances import MEASURE_ATOL
from kic.transfer.closure import Closure
from kic.transfer.continuation import FOLLOWED_CONDITION_MAX, continue_to

# measure of a singular configuration where it touches zero, which is determined to half the digits
TANGENTIAL_MEASURE_ATOL = 1e-7
# largest coordinate distance between equal singular configurations (rad, characteristic lengths)
DUPLICATE_ATOL = 1e-6
# Newton steps to a singular configuration; where the measure touches zero, each gains one binary digit
NEWTON_STEPS_MAX = 40
# largest distance of a singular configuration from the end of a continuation that it stopped: the square
# root of the shortest predictor step, with a margin for several that meet (rad, characteristic lengths)
BRANCH_END_ATOL = 1e-3
# excess of a configuration over the box of its neighbours, as a share of the step to them
BOX_RTOL = 1e-6


@dataclass(frozen=True)
class BranchTargets:
    """Targets of the members of a batch: rows with the closure, and their values (B, P)."""

    closure: Closure
    values: np.ndarray

    def ends(self, states: np.ndarray, pairs: np.ndarray) -> list[BranchEnd]:
        """Return the ends of continuations along pairs (E, 2) of members, from solved to unsolved ones.

        Members with inputs that are not finite are skipped, and so are starts at which the inputs are
        singular.
        """
        pairs = pairs[np.isfinite(self.values[pairs[:, 1]]).all(axis=1)]
        starts, start_index = np.unique(pairs[:, 0], return_inverse=True)
        pairs = pairs[(self.closure.condition(states[starts]) < FOLLOWED_CONDITION_MAX)[start_index]]
        if not len(pairs):
            return []
        outcome = continue_to(self.closure, states[pairs[:, 0]], self.values[pairs[:, 1]], want_reasons=False)
        return [
            BranchEnd(int(member), int(after), state, bool(share < 1))
            for (member, after), state, share in zip(pairs, outcome.states, outcome.share, strict=True)
            if share > 0
        ]

    def remaining_inputs(self, end: BranchEnd) -> InputSegment:
        """Return the straight segment of inputs that remains beyond an end."""
        values = self.closure.rows(end.state[None])[0]
        remaining = self.closure.residual(self.closure.goal(self.values[[end.after]]), values)[0]
        return InputSegment(self.closure, values[0], remaining[: self.closure.transfer.size])


@dataclass(frozen=True)
class BranchEnd:
    """Last configuration (S,) of a continuation between two members, and whether it stopped there."""

    member: int
    after: int
    state: np.ndarray
    stopped: bool


@dataclass(frozen=True)
class InputSegment:
    """Straight segment of inputs: rows with the closure, scaled initial values (P,), and direction."""

    closure: Closure
    start: np.ndarray
    direction: np.ndarray

    def residual(self, state: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the residual (p,) of the inputs at a state (S,) after a distance, and its first order."""
        values, G = self.closure.rows(state[None])
        first = len(self.direction)
        goal = self.start.copy()
        goal[:first] += distance * self.direction
        return -self.closure.residual(goal[None], values)[0, :first], G[0, :first]


@dataclass(frozen=True)
class SingularPoint:
    """A singular configuration: its kind, state (S,), the members next to it, and its measure."""

    kind: str
    state: np.ndarray
    between: tuple[tuple[int, ...], ...]
    measure: float


class SingularitySearch:
    """Measures of all members of a batch, and the singular configurations between them.

    `closure` has the rows of inputs and outputs with the closure, and `spans` the rows of each kind; None
    for the closure. `ok` is the mask of the members with a configuration. Continuations towards the
    `targets` of unsolved members end at singular configurations.
    """

    def __init__(
        self,
        closure: Closure,
        spans: Mapping[str, slice | None],
        dof: int,
        states: np.ndarray,
        ok: np.ndarray,
        targets: BranchTargets | None = None,
    ) -> None:
        self.closure, self.spans, self.dof = closure, spans, dof
        self._targets = targets
        self.batch = ok.shape
        self._states = states
        valid = np.flatnonzero(ok)
        # a distance that is zero has no direction
        finite = np.isfinite(closure.rows(states[valid])[1]).all(axis=(1, 2))
        self._valid = valid[finite]
        self._number = np.full(ok.size, -1)
        self._number[self._valid] = np.arange(self._valid.size)
        self._tangent_space = self.tangents_at(states[self._valid])
        self.measures: dict[str, np.ndarray] = {}
        for kind in spans:
            whole = np.full(ok.size, np.nan)
            whole[self._valid] = self.measure(kind, self._tangent_space)
            self.measures[kind] = whole.reshape(self.batch)

    def tangents_at(self, states: np.ndarray) -> TangentSpace:
        """Return the tangent space at closed states (B, S)."""
        return tangents(self.closure, states, self.dof)

    def measure(self, kind: str, tangent_space: TangentSpace) -> np.ndarray:
        """Return the smallest singular value (B,) of a kind."""
        span = self.spans[kind]
        if span is not None:
            return min_singular_value(tangent_space.G[:, span] @ tangent_space.basis)
        sigma = np.linalg.svd(tangent_space.G[:, self.closure.transfer.size :], compute_uv=False)
        return sigma[:, tangent_space.kept.shape[1] - 1] / sigma[:, 0]

    def _has_sign(self, kind: str) -> bool:
        """Return True if the measure of a kind changes sign at a singularity."""
        span = self.spans[kind]
        return span is None or span.stop - span.start == self.dof

    def _index(self, member: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(member, self.batch))

    def _pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield neighbouring members along each axis of the batch."""
        number = np.arange(self._number.size).reshape(self.batch)
        for axis in range(len(self.batch)):
            front = np.moveaxis(number, axis, 0)
            yield front[:-1].ravel(), front[1:].ravel()

    @cached_property
    def _edges(self) -> np.ndarray:
        """Array (E, 2) of neighbours, by member, that both have a configuration."""
        pairs = [np.stack(pair, axis=1) for pair in self._pairs()]
        every = np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=np.intp)
        return every[(self._number[every] >= 0).all(axis=1)]

    def _is_singular(self, kind: str) -> np.ndarray:
        """Return a mask (B,) of the members that are singular themselves."""
        with np.errstate(invalid="ignore"):
            return self.measures[kind].ravel() < MEASURE_ATOL

    @cached_property
    def _segments(self) -> tuple[ChartSegments, np.ndarray]:
        """Return segments between neighbours, without those that end where the closure is singular."""
        edges = self._segment_edges
        a, b = (self._tangent_space.take(self._number[edges[:, k]]) for k in (0, 1))
        segments, lost = between(self.closure, a, b)
        return segments, edges[lost]

    @cached_property
    def _segment_edges(self) -> np.ndarray:
        """Array (E, 2) of neighbours of the segments, in the order of their numbers."""
        edges = self._edges
        return edges[~self._is_singular("closure")[edges].any(axis=1)] if "closure" in self.spans else edges

    @cached_property
    def _end_segments(self) -> tuple[ChartSegments, np.ndarray]:
        """Return segments from members to the ends of continuations, and the members (E, 2) of these."""
        start = np.array([self._number[end.member] for end in self._branch_ends], dtype=np.intp)
        states = np.array([end.state for end in self._branch_ends])
        states = states.reshape(len(start), self._states.shape[1])
        edges = np.array([(end.member, end.after) for end in self._branch_ends], dtype=np.intp).reshape(-1, 2)
        segments, _ = between(self.closure, self._tangent_space.take(start), self.tangents_at(states))
        return segments, edges

    @property
    def unresolved(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Tuple of pairs of neighbours that no segments connect, between which nothing was searched."""
        return tuple((self._index(a), self._index(b)) for a, b in self._segments[1].tolist())

    @cached_property
    def points(self) -> tuple[SingularPoint, ...]:
        """Singular configurations found, in the order of the members."""
        found: list[SingularPoint] = []
        # where motions meet the other measures are undefined: search the closure first
        for kind in sorted(self.spans, key=lambda kind: self.spans[kind] is not None):
            excluded = "closure" in self.spans and kind != "closure"
            crossed = self._sign_changes(kind) if self._has_sign(kind) else []
            near_crossings = {m for point in crossed for m in point.between}
            members = [
                SingularPoint(kind, self._states[m], (self._index(m),), float(self.measures[kind].flat[m]))
                for m in np.flatnonzero(self._is_singular(kind)).tolist()
            ]
            for point in (*crossed, *members, *self._minima(kind, near_crossings)):
                if excluded and self._closure_is_singular(point.state):
                    continue
                if not self._is_duplicate(point, found):
                    found.append(point)
        found += [point for point in self._folds() if not self._is_duplicate(point, found)]
        order = list(self.spans)
        return tuple(sorted(found, key=lambda p: (p.between[0], p.between[-1], order.index(p.kind))))

    def _closure_is_singular(self, state: np.ndarray) -> bool:
        """Return True if the closure is singular at a state."""
        return bool(self.measure("closure", self.tangents_at(state[None]))[0] < TANGENTIAL_MEASURE_ATOL)

    def _is_duplicate(self, point: SingularPoint, found: list[SingularPoint]) -> bool:
        """Return True if a point was found before, near the same members."""
        return any(
            other.kind == point.kind
            and set(other.between) & set(point.between)
            and self._distance(other.state, point.state) < DUPLICATE_ATOL
            for other in found
        )

    def _distance(self, a: np.ndarray, b: np.ndarray) -> float:
        """Return the largest coordinate distance between two states."""
        t = self.closure.transfer
        return float(distance(t.tree, a[None], b[None], t.column_scale).max(initial=0.0))

    def _sign_changes(self, kind: str) -> list[SingularPoint]:
        """Return sign changes between neighbours, and between members and the ends of continuations."""
        return [
            point
            for segments, edges in ((self._segments[0], self._segment_edges), self._end_segments)
            for point in self._sign_changes_on(kind, segments, edges)
        ]

    def _sign_changes_on(
        self, kind: str, segments: ChartSegments, edges: np.ndarray
    ) -> Iterator[SingularPoint]:
        """Yield sign changes on segments of edges (E, 2)."""
        zero = self._is_singular(kind)[edges].any(axis=1)
        some = segments.take(~zero[segments.edge]) if len(segments.edge) else segments
        if not len(some.edge):
            return
        which, states = crossings(some, self.spans[kind])
        for k, state in zip(which, states, strict=True):
            if self.spans[kind] is None:
                # near a closure singularity Newton's method determines a state to half the digits only
                nearest = self._newton(kind, state)
                state = state if nearest is None else nearest
            measure = float(self.measure(kind, self.tangents_at(state[None]))[0])
            if measure < TANGENTIAL_MEASURE_ATOL:
                a, b = edges[some.edge[k]].tolist()
                yield SingularPoint(kind, state, (self._index(a), self._index(b)), measure)

    def _minima(self, kind: str, near_crossings: set[tuple[int, ...]]) -> Iterator[SingularPoint]:
        """Yield singular configurations at minima of the measure that are near zero."""
        measures = self.measures[kind].ravel()
        for m in self._valid.tolist():
            adjacent = self._adjacent(m)
            neighbours = [n for pair in adjacent for n in pair if n >= 0 and self._number[n] >= 0]
            if measures[m] < MEASURE_ATOL or self._index(m) in near_crossings or not neighbours:
                continue
            change = measures[neighbours] - measures[m]
            if (change < 0).any() or change.max() < measures[m]:
                continue
            state, measure = self._newton_from(kind, m)
            if measure < TANGENTIAL_MEASURE_ATOL:
                step, *segments = self._steps(m, np.stack([state, *self._states[neighbours]]))
                if self._is_within(step, dict(zip(neighbours, segments, strict=True)), adjacent):
                    yield SingularPoint(kind, state, (self._index(m),), measure)

    @cached_property
    def _branch_ends(self) -> list[BranchEnd]:
        """List of ends of continuations from members to neighbours without a configuration."""
        if self._targets is None:
            return []
        near = np.concatenate([np.zeros((0, 2), dtype=np.intp), *map(np.column_stack, self._pairs())])
        near = np.concatenate([near, near[:, ::-1]])
        have = self._number >= 0
        return self._targets.ends(self._states, near[have[near[:, 0]] & ~have[near[:, 1]]])

    def _folds(self) -> Iterator[SingularPoint]:
        """Yield singular configurations of any kind at the ends of continuations."""
        for end in self._branch_ends:
            if not end.stopped:
                continue
            assert self._targets is not None  # for the type checker: without targets there are no ends
            line = self._targets.remaining_inputs(end)
            best, nearest = None, BRANCH_END_ATOL
            for kind in self.spans:
                state = self._newton(kind, end.state, line)
                if state is None:
                    continue
                separation = self._distance(end.state, state)
                measure = float(self.measure(kind, self.tangents_at(state[None]))[0])
                if measure < TANGENTIAL_MEASURE_ATOL and separation < nearest:
                    nearest = separation
                    best = SingularPoint(
                        kind, state, (self._index(end.member), self._index(end.after)), measure
                    )
            if best:
                yield best

    def _steps(self, member: int, states: np.ndarray) -> np.ndarray:
        """Return scaled steps (n, M) from a member to states (n, S)."""
        t = self.closure.transfer
        return difference(t.tree, self._states[[member] * len(states)], states) / t.column_scale

    def _newton_from(self, kind: str, member: int) -> tuple[np.ndarray, float]:
        """Return the singular configuration that Newton's method finds from a member, and its measure."""
        state = self._newton(kind, self._states[member])
        if state is None:
            return self._states[member], np.inf
        return state, float(self.measure(kind, self.tangents_at(state[None]))[0])

    def _adjacent(self, member: int) -> list[tuple[int, int]]:
        """Return the members before and after a member along each axis; -1 for none."""
        index, pairs = self._index(member), []
        for axis, size in enumerate(self.batch):
            members = []
            for step in (-1, 1):
                k = index[axis] + step
                other = (*index[:axis], k, *index[axis + 1 :])
                members.append(int(np.ravel_multi_index(other, self.batch)) if 0 <= k < size else -1)
            pairs.append((members[0], members[1]))
        return pairs

    @staticmethod
    def _is_within(
        step: np.ndarray, segments: dict[int, np.ndarray], adjacent: list[tuple[int, int]]
    ) -> bool:
        """Return True if a step stays between a member and its neighbours, along every axis that has some."""
        reach = 0.0
        for pair in adjacent:
            neighbours = [segments[n] for n in pair if n in segments]
            if not neighbours:
                continue
            squares = [max(float(d @ d), 1e-300) for d in neighbours]
            shares = [float(step @ d) / square for d, square in zip(neighbours, squares, strict=True)]
            if not any(-BOX_RTOL <= share <= 1 + BOX_RTOL for share in shares):
                return False
            reach += max(squares)
        return float(step @ step) <= reach * (1 + BOX_RTOL)

    @cached_property
    def _second_order_query(self) -> OutputQuery:
        """Query for the second order of all rows."""
        return OutputQuery(self.closure.transfer.tree, self.closure.transfer.system.rows, 2)

    def _newton(self, kind: str, state: np.ndarray, line: InputSegment | None = None) -> np.ndarray | None:
        """Return a singular configuration (S,) near a state (S,), found by Newton's method; None if it fails.

        The unknowns are the state and a left null vector u. The equations are c = 0, uᵀ W = 0, |u| = 1 (Moore
        and Spence 1980), W being the rows of the kind with independent ones of the closure. Steps have
        minimum norm: a solution on a line or surface of singular configurations is found near the start. With
        an input segment, the inputs must have values on it, and the distance along it is one more unknown.
        """
        t, span = self.closure.transfer, self.spans[kind]
        tangent_space = self.tangents_at(state[None])
        own = np.arange(0) if span is None else np.arange(span.start, span.stop)
        rows = np.concatenate([own, tangent_space.kept[0]])
        closing = np.arange(len(own), len(rows))
        u = np.linalg.svd(tangent_space.G[0, rows])[0][:, -1]
        size, held, extra = t.tree.size, len(closing), 0 if line is None else len(line.direction)
        along, null_columns = 0.0, slice(t.tree.size, t.tree.size + len(u))
        for _ in range(NEWTON_STEPS_MAX):
            values, W, H = self._second_order(state, rows)
            equations = np.concatenate([values[closing], u @ W, [(u @ u - 1) / 2], np.zeros(extra)])
            J = np.zeros((len(equations), null_columns.stop + (extra > 0)))
            J[:held, :size] = W[closing]
            J[held : held + size, :size] = np.einsum("p,pmn->nm", u, H)
            J[held : held + size, null_columns] = W.T
            J[held + size, null_columns] = u
            if line is not None:
                equations[-extra:], J[-extra:, :size] = line.residual(state, along)
                J[-extra:, -1] = -line.direction
            if not np.isfinite(J).all():
                return None
            step = np.linalg.lstsq(J, -equations, rcond=1e-12)[0]
            step /= max(1.0, 4 * float(np.abs(step[:size]).max()))
            state = integrate(t.tree, state[None], (step[:size] * t.column_scale)[None])[0]
            u = u + step[null_columns]
            along += float(step[-1])
            if np.abs(step).max() < 1e-15:
                break
        if line is not None and np.abs(line.residual(state, along)[0]).max() > TANGENTIAL_MEASURE_ATOL:
            return None
        # the state must be closed even if the equations of u are satisfied
        missing = self.closure.rows(state[None])[0][0, t.size :]
        return state if np.linalg.norm(missing) <= max(self.closure.limit, t.tolerance) else None

    def _second_order(self, state: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return scaled values, first and second order of rows (n,) at one state."""
        t, query = self.closure.transfer, self._second_order_query
        values, G, H = (x[0] for x in query.layout.split(query.table(state[None]), (1,)))
        picked, scale, column = t.system.picked[rows], t.scale[rows], t.column_scale
        values = t.system.rows.complete(values[None].copy())[0]
        return (
            values[picked] / scale,
            G[picked] / scale[:, None] * column,
            H[picked] / scale[:, None, None] * column[:, None] * column,
        )
