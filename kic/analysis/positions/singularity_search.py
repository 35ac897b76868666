"""Search for singular configurations in a batch: sign changes between neighbours, and minima near zero.

Closed configurations near a given one are described by coordinates in its tangent space, the orthonormal
motions that the closure allows. In this chart no coordinate of the mechanism has to be regular. With N that
basis and C independent closure rows, the tangent X of the chart follows from [Nᵀ; C] X = [1; 0]. Rows s of as
many coordinates as degrees of freedom have det(s X) = 0 where they lose rank, and det [Nᵀ; C] = 0 where the
closure does. Both are smooth along a segment and change sign with the singularity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod

import numpy as np

from kic.kinematics.queries import Query, output_query
from kic.kinematics.state import difference, distance, integrate
from kic.numerics.gauss_newton import gauss_newton
from kic.numerics.linalg import min_singular_value, null_space
from kic.numerics.tolerances import MEASURE_ATOL
from kic.transfer.closure import Closure
from kic.transfer.continuation import FOLLOWED_CONDITION_MAX, continue_to

# smallest cosine between the tangent spaces at the ends of a segment
TANGENT_COSINE_MIN = 0.7
# largest share of a segment that lies outside the tangent spaces at its ends
NORMAL_SHARE_MAX = 0.5
# largest rotation along a segment (rad)
SEGMENT_TURN_MAX = 1.0
# splits of a segment that is too long, and their position: the middle may itself be singular
SPLITS_MAX, SPLIT_FRACTION = 8, 0.4721
# largest entry of a step to a closed configuration (rad, characteristic lengths)
CLOSING_STEP_MAX = 0.5
# residual of a closed configuration on a segment
CLOSURE_ATOL = 1e-10
# the independent rows of one configuration are kept for another above this share of the conditioning of all
KEPT_ROWS_RTOL = 0.1
# relative cutoff of singular values in pseudo-inverses
CHART_PINV_RTOL = 1e-14


@dataclass
class TangentSpace:
    """Closed configurations with their tangent spaces."""

    states: np.ndarray  # (B, S): the configurations
    G: np.ndarray  # (B, P, M): scaled chosen and closure rows
    basis: np.ndarray  # (B, M, f): orthonormal motions that the closure leaves
    kept: np.ndarray  # (B, r) int: independent closure rows

    def take(self, some: np.ndarray) -> TangentSpace:
        """Return selected configurations."""
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
    """Return the indices of the `held` closure rows that are most independent at one configuration."""
    return np.sort(closure.transfer.shares(G)[1][:held]) + closure.transfer.size


@dataclass
class ChartSegments:
    """Segments from configurations to nearby ones."""

    closure: Closure  # the equations
    start: TangentSpace  # start of each segment
    end: np.ndarray  # (E, S): states at the ends
    step: np.ndarray  # (E, M): scaled steps from start to end
    edge: np.ndarray  # (E,) int: pair of members to which each belongs

    def take(self, some: np.ndarray) -> ChartSegments:
        """Return selected segments."""
        return ChartSegments(
            self.closure, self.start.take(some), self.end[some], self.step[some], self.edge[some]
        )

    def at(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return closed states (E, S) at fractions (E,) of the segments, and a convergence mask."""
        t = self.closure.transfer
        aim = self.closure.moved(self.start.states, share[:, None] * self.step)

        def rows(states: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            some, (values, G) = self.take(members), self.closure.rows(states)
            missing = np.take_along_axis(values, some.start.kept, axis=1)
            off = difference(t.tree, aim[members], states) / t.column_scale
            chart = np.einsum("bmf,bm->bf", some.start.basis, off)
            return np.concatenate([chart, missing], axis=1), some.square(G)

        states, left = gauss_newton(
            rows, self.closure.moved, aim, rtol=CHART_PINV_RTOL, step_max=CLOSING_STEP_MAX
        )
        return states, left <= max(self.closure.limit, CLOSURE_ATOL)

    def square(self, G: np.ndarray) -> np.ndarray:
        """Return the square matrix [Nᵀ; C] (E, M, M) of the tangent basis and the closure Jacobian."""
        closing = np.take_along_axis(G, self.start.kept[:, :, None], axis=1)
        return np.concatenate([np.swapaxes(self.start.basis, 1, 2), closing], axis=1)

    def sign_function(self, states: np.ndarray, rows: slice | None) -> np.ndarray:
        """Return values (E,) of a function that changes sign where the rows (None: the closure) lose rank."""
        G = self.closure.rows(states)[1]
        W, W0 = self.square(G), self.square(self.start.G)
        if rows is None:
            sign, size = np.linalg.slogdet(W)
            sign0, size0 = np.linalg.slogdet(W0)
            return sign * sign0 * np.exp(size - size0)
        right = np.eye(W.shape[1], self.start.basis.shape[2])
        X = np.einsum("bnp,pf->bnf", np.linalg.pinv(W, rcond=CHART_PINV_RTOL), right)
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
    arrays = (np.concatenate([getattr(part, key) for part in parts]) for key in ("end", "step", "edge"))
    whole = ChartSegments(closure, _joined(*(part.start for part in parts)), *arrays)
    return whole, np.unique(np.array(lost, dtype=np.intp))


def _joined(*spaces: TangentSpace) -> TangentSpace:
    arrays = (np.concatenate([getattr(space, f.name) for space in spaces]) for f in fields(TangentSpace))
    return TangentSpace(*arrays)


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


# measure of a singular configuration where it touches zero, which is determined to half the digits
TANGENTIAL_MEASURE_ATOL = 1e-7
# largest coordinate distance between equal singular configurations (rad, characteristic lengths)
DUPLICATE_ATOL = 1e-6
# Newton steps to a singular configuration; where the measure touches zero, each gains one binary digit
SEARCH_STEPS_MAX = 40
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
    """Last configuration (S,) of a continuation between two members; `stopped` if it was not completed."""

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
        """Return the residual (p,) and G of the inputs at a state (S,), for a distance along the segment."""
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
        """Return the measure (B,): the smallest singular value, for the closure over the largest."""
        span = self.spans[kind]
        if span is not None:
            return min_singular_value(tangent_space.G[:, span] @ tangent_space.basis)
        sigma = np.linalg.svd(tangent_space.G[:, self.closure.transfer.size :], compute_uv=False)
        return sigma[:, tangent_space.kept.shape[1] - 1] / sigma[:, 0]

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
        """Array (E, 2) of pairs of neighbouring members that both have a configuration."""
        pairs = [np.stack(pair, axis=1) for pair in self._pairs()]
        every = np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=np.intp)
        return every[(self._number[every] >= 0).all(axis=1)]

    def _is_singular(self, kind: str) -> np.ndarray:
        """Return a mask (B,) of the members that are singular themselves."""
        with np.errstate(invalid="ignore"):
            return self.measures[kind].ravel() < MEASURE_ATOL

    @cached_property
    def _segments(self) -> tuple[ChartSegments, np.ndarray]:
        """Pair of segments between neighbours with a regular closure, and of pairs that are not connected."""
        edges = self._segment_edges
        a, b = (self._tangent_space.take(self._number[edges[:, k]]) for k in (0, 1))
        segments, lost = between(self.closure, a, b)
        return segments, edges[lost]

    @cached_property
    def _segment_edges(self) -> np.ndarray:
        """Array (E, 2) of pairs of members to which `ChartSegments.edge` refers."""
        edges = self._edges
        return edges[~self._is_singular("closure")[edges].any(axis=1)] if "closure" in self.spans else edges

    @cached_property
    def _end_segments(self) -> tuple[ChartSegments, np.ndarray]:
        """Pair of segments from members to the ends of continuations, and of the members (E, 2) of these."""
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
        # where motions meet, the other measures are undefined: search the closure first
        for kind in sorted(self.spans, key=lambda kind: self.spans[kind] is not None):
            excluded = "closure" in self.spans and kind != "closure"
            span = self.spans[kind]
            # other measures are never negative
            changes_sign = span is None or span.stop - span.start == self.dof
            crossed = list(self._sign_changes(kind)) if changes_sign else []
            near_crossings = {m for point in crossed for m in point.between}
            members = [
                SingularPoint(kind, self._states[m], (self._index(m),), float(self.measures[kind].flat[m]))
                for m in np.flatnonzero(self._is_singular(kind)).tolist()
            ]
            for point in (*crossed, *members, *self._minima(kind, near_crossings)):
                if excluded and self._measure_at("closure", point.state) < TANGENTIAL_MEASURE_ATOL:
                    continue
                if not self._is_duplicate(point, found):
                    found.append(point)
        found += [point for point in self._folds() if not self._is_duplicate(point, found)]
        order = list(self.spans)
        return tuple(sorted(found, key=lambda p: (p.between[0], p.between[-1], order.index(p.kind))))

    def _measure_at(self, kind: str, state: np.ndarray) -> float:
        """Return the measure of one kind at a state."""
        return float(self.measure(kind, self.tangents_at(state[None]))[0])

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

    def _sign_changes(self, kind: str) -> Iterator[SingularPoint]:
        """Yield singular points at sign changes between neighbours, and towards the ends of continuations."""
        for segments, edges in ((self._segments[0], self._segment_edges), self._end_segments):
            zero = self._is_singular(kind)[edges].any(axis=1)
            some = segments.take(~zero[segments.edge])
            if not len(some.edge):
                continue
            for k, state in zip(*crossings(some, self.spans[kind]), strict=True):
                if self.spans[kind] is None:
                    # near a closure singularity Newton's method determines a state to half the digits only
                    nearest = self._newton(kind, state)
                    state = state if nearest is None else nearest
                measure = self._measure_at(kind, state)
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
            state = self._newton(kind, self._states[m])
            measure = np.inf if state is None else self._measure_at(kind, state)
            if state is not None and measure < TANGENTIAL_MEASURE_ATOL:
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
                measure = self._measure_at(kind, state)
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

    def _adjacent(self, member: int) -> list[tuple[int, int]]:
        """Return the members before and after a member along each axis; -1 for none."""
        pairs = []
        for axis, (k, size) in enumerate(zip(self._index(member), self.batch, strict=True)):
            stride = prod(self.batch[axis + 1 :])
            pairs.append((member - stride if k > 0 else -1, member + stride if k < size - 1 else -1))
        return pairs

    @staticmethod
    def _is_within(
        step: np.ndarray, segments: dict[int, np.ndarray], adjacent: list[tuple[int, int]]
    ) -> bool:
        """Return True if a step stays between a member and its neighbours, on every axis with neighbours."""
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
    def _second_order_query(self) -> Query:
        """Query for the second order of all rows."""
        return output_query(self.closure.transfer.tree, self.closure.transfer.system.rows, 2)

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
        for _ in range(SEARCH_STEPS_MAX):
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
        """Return the scaled values, G and H of rows (n,) at one state."""
        t, query = self.closure.transfer, self._second_order_query
        values, G, H = (x[0] for x in query.arrays(state[None]))
        picked, scale, column = t.system.picked[rows], t.scale[rows], t.column_scale
        values = t.system.rows.complete(values[None].copy())[0]
        return (
            values[picked] / scale,
            G[picked] / scale[:, None] * column,
            H[picked] / scale[:, None, None] * column[:, None] * column,
        )
