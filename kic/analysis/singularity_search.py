"""Locating singular postures in a batch: sign changes between neighbours, and least measures near zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kic.analysis.branches import BranchEnd, BranchTargets, InputSegment
from kic.analysis.tangent_chart import ChartSegments, TangentSpace, between, crossings, tangents
from kic.kinematics.queries import OutputQuery
from kic.kinematics.state import difference, distance, integrate
from kic.numerics.linalg import min_singular_value
from kic.transfer.closure import Closure

# a measure below this is zero: closed postures are known to about 1e-13
EXACT = 1e-9
# what a posture may miss that was found where the measure only touches zero, and is known to half the digits
TOUCHED = 1e-7
# the same singular posture, as the largest gap of coordinates (rad, characteristic lengths)
SAME = 1e-6
# Newton's steps to a singular posture; where the measure only touches zero each gains one binary digit
STEPS = 40
# how far a singular posture may be from where a way stopped because of it: this is the root of the shortest
# leap, but for several that meet (rad, characteristic lengths)
ENDING = 1e-3
# how far out of the neighbours a posture may be, as a share of the way to them
SLACK = 1e-6


@dataclass(frozen=True)
class Place:
    """A singular posture: its kind, state (S,), the members beside it, and its measure."""

    kind: str
    state: np.ndarray
    between: tuple[tuple[int, ...], ...]
    left: float


class Search:
    """Measures of all members of a batch, and the singular postures between them.

    Parameters
    ----------
    closure : Closure
        The rows of inputs and outputs, with the closure.
    spans : dict of str to slice or None
        Rows of each kind; None for the closure.
    freedoms : int
        Mobility.
    states, ok : (B, S), (...) bool
        The members, and which of them have a posture.
    course : Course, optional
        What the members were to have: those without a posture are where a way from a neighbour ends.
    """

    def __init__(
        self,
        closure: Closure,
        spans: Mapping[str, slice | None],
        freedoms: int,
        states: np.ndarray,
        ok: np.ndarray,
        course: BranchTargets | None = None,
    ) -> None:
        self.closure, self.spans, self.freedoms = closure, spans, freedoms
        self._course = course
        self.batch = ok.shape
        self._states = states
        good = np.flatnonzero(ok)
        # a distance that is zero has no direction
        finite = np.isfinite(closure.rows(states[good])[1]).all(axis=(1, 2))
        self._good = good[finite]
        self._number = np.full(ok.size, -1)
        self._number[self._good] = np.arange(self._good.size)
        self._here = self.at(states[self._good])
        self.measures: dict[str, np.ndarray] = {}
        for kind in spans:
            whole = np.full(ok.size, np.nan)
            whole[self._good] = self.measure(kind, self._here)
            self.measures[kind] = whole.reshape(self.batch)

    def at(self, states: np.ndarray) -> TangentSpace:
        """First order at closed states (B, S)."""
        return tangents(self.closure, states, self.freedoms)

    def measure(self, kind: str, here: TangentSpace) -> np.ndarray:
        """Smallest singular value (B,) of a kind."""
        span = self.spans[kind]
        if span is not None:
            return min_singular_value(here.G[:, span] @ here.basis)
        sigma = np.linalg.svd(here.G[:, self.closure.transfer.first :], compute_uv=False)
        return sigma[:, here.kept.shape[1] - 1] / sigma[:, 0]

    def _square(self, kind: str) -> bool:
        """Whether a kind has a sign."""
        span = self.spans[kind]
        return span is None or span.stop - span.start == self.freedoms

    def _index(self, member: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(member, self.batch))

    def _pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Neighbouring members along each axis of the batch."""
        number = np.arange(self._number.size).reshape(self.batch)
        for axis in range(len(self.batch)):
            front = np.moveaxis(number, axis, 0)
            yield front[:-1].ravel(), front[1:].ravel()

    @cached_property
    def _edges(self) -> np.ndarray:
        """Neighbours (E, 2) that both have a posture, by member."""
        pairs = [np.stack(pair, axis=1) for pair in self._pairs()]
        every = np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=np.intp)
        return every[(self._number[every] >= 0).all(axis=1)]

    def _zero(self, kind: str) -> np.ndarray:
        """Members (B,) that are singular themselves; those without posture are not."""
        with np.errstate(invalid="ignore"):
            return self.measures[kind].ravel() < EXACT

    @cached_property
    def _chords(self) -> tuple[ChartSegments, np.ndarray]:
        """Chords between neighbours, but for those that end where motions meet and no tangent space is."""
        edges = self._joined
        a, b = (self._here.take(self._number[edges[:, k]]) for k in (0, 1))
        chords, lost = between(self.closure, a, b)
        return chords, edges[lost]

    @cached_property
    def _joined(self) -> np.ndarray:
        """Neighbours (E, 2) of the chords, in the order of their numbers."""
        edges = self._edges
        return edges[~self._zero("closure")[edges].any(axis=1)] if "closure" in self.spans else edges

    @cached_property
    def _last(self) -> tuple[ChartSegments, np.ndarray]:
        """Chords from members to where ways beyond them end, and members (E, 2) at both ends of these."""
        here = np.array([self._number[end.member] for end in self._ends], dtype=np.intp)
        states = np.array([end.state for end in self._ends]).reshape(len(here), self._states.shape[1])
        edges = np.array([(end.member, end.after) for end in self._ends], dtype=np.intp).reshape(-1, 2)
        return between(self.closure, self._here.take(here), self.at(states))[0], edges

    @property
    def untold(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Neighbours between which nothing could be looked for."""
        return tuple((self._index(a), self._index(b)) for a, b in self._chords[1].tolist())

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Singular postures found, in the order of the members."""
        found: list[Place] = []
        # where motions meet nothing else is certain: the closure comes first
        for kind in sorted(self.spans, key=lambda k: self.spans[k] is not None):
            crossed = self._crossed(kind) if self._square(kind) else []
            beside = {m for place in crossed for m in place.between}
            members = [
                Place(kind, self._states[m], (self._index(m),), float(self.measures[kind].flat[m]))
                for m in np.flatnonzero(self._zero(kind)).tolist()
            ]
            for place in (*crossed, *members, *self._touched(kind, beside)):
                meet = "closure" in self.spans and kind != "closure" and self._meets(place.state)
                if not meet and not self._known(place, found):
                    found.append(place)
        found += [place for place in self._folds() if not self._known(place, found)]
        order = list(self.spans)
        return tuple(sorted(found, key=lambda p: (p.between[0], p.between[-1], order.index(p.kind))))

    def _meets(self, state: np.ndarray) -> bool:
        """Whether the closure is singular at a state."""
        return bool(self.measure("closure", self.at(state[None]))[0] < TOUCHED)

    def _known(self, place: Place, found: list[Place]) -> bool:
        """Whether a place was found before, near the same members."""
        return any(
            other.kind == place.kind
            and set(other.between) & set(place.between)
            and self._gap(other.state, place.state) < SAME
            for other in found
        )

    def _gap(self, a: np.ndarray, b: np.ndarray) -> float:
        """The largest gap of coordinates between two states."""
        t = self.closure.transfer
        return float(distance(t.tree, a[None], b[None], t.column_scale).max(initial=0.0))

    def _crossed(self, kind: str) -> list[Place]:
        """Where a sign changes between neighbours, or before the end of a way from one to the other."""
        return [
            place
            for chords, edges in ((self._chords[0], self._joined), self._last)
            for place in self._changes(kind, chords, edges)
        ]

    def _changes(self, kind: str, chords: ChartSegments, edges: np.ndarray) -> Iterator[Place]:
        """Where a sign changes on chords of edges (E, 2)."""
        zero = self._zero(kind)[edges].any(axis=1)
        some = chords.take(~zero[chords.edge]) if len(chords.edge) else chords
        if not len(some.edge):
            return
        which, states = crossings(some, self.spans[kind])
        for k, state in zip(which, states, strict=True):
            if self.spans[kind] is None:
                # near it Newton knows a posture to half the digits only
                nearest = self._nearest(kind, state)
                state = state if nearest is None else nearest
            left = float(self.measure(kind, self.at(state[None]))[0])
            if left < TOUCHED:
                a, b = edges[some.edge[k]].tolist()
                yield Place(kind, state, (self._index(a), self._index(b)), left)

    def _touched(self, kind: str, beside: set[tuple[int, ...]]) -> Iterator[Place]:
        """Where the measure is least among neighbours and near zero."""
        measure = self.measures[kind].ravel()
        for m in self._good.tolist():
            around = self._around(m)
            there = [n for pair in around for n in pair if n >= 0 and self._number[n] >= 0]
            if measure[m] < EXACT or self._index(m) in beside or not there:
                continue
            change = measure[there] - measure[m]
            if (change < 0).any() or change.max() < measure[m]:
                continue
            state, left = self._judged(kind, m)
            if left < TOUCHED:
                go, *chords = self._steps(m, np.stack([state, *self._states[there]]))
                if self._within(go, dict(zip(there, chords, strict=True)), around):
                    yield Place(kind, state, (self._index(m),), left)

    @cached_property
    def _ends(self) -> list[BranchEnd]:
        """Where ways from members to neighbours without posture end."""
        if self._course is None:
            return []
        near = np.concatenate([np.zeros((0, 2), dtype=np.intp), *map(np.column_stack, self._pairs())])
        near = np.concatenate([near, near[:, ::-1]])
        have = self._number >= 0
        return self._course.ends(self._states, near[have[near[:, 0]] & ~have[near[:, 1]]])

    def _folds(self) -> Iterator[Place]:
        """Where postures end on the way to a neighbour that has none, of whatever kind."""
        for end in self._ends:
            if not end.stopped:
                continue
            assert self._course is not None  # for the type checker: else there are no ends
            line = self._course.line(end)
            best, nearest = None, ENDING
            for kind in self.spans:
                state = self._nearest(kind, end.state, line)
                if state is None:
                    continue
                off = self._gap(end.state, state)
                left = float(self.measure(kind, self.at(state[None]))[0])
                if left < TOUCHED and off < nearest:
                    nearest = off
                    best = Place(kind, state, (self._index(end.member), self._index(end.after)), left)
            if best:
                yield best

    def _steps(self, member: int, states: np.ndarray) -> np.ndarray:
        """Scaled steps (n, M) from a member to states (n, S)."""
        t = self.closure.transfer
        return difference(t.tree, self._states[[member] * len(states)], states) / t.column_scale

    def _judged(self, kind: str, member: int) -> tuple[np.ndarray, float]:
        """The singular posture that Newton finds from a member, and its measure; infinite without one."""
        state = self._nearest(kind, self._states[member])
        if state is None:
            return self._states[member], np.inf
        return state, float(self.measure(kind, self.at(state[None]))[0])

    def _around(self, member: int) -> list[tuple[int, int]]:
        """Neighbours of a member before and after it, along each axis; -1 for none."""
        index, pairs = self._index(member), []
        for axis, size in enumerate(self.batch):
            beside = []
            for step in (-1, 1):
                k = index[axis] + step
                other = (*index[:axis], k, *index[axis + 1 :])
                beside.append(int(np.ravel_multi_index(other, self.batch)) if 0 <= k < size else -1)
            pairs.append((beside[0], beside[1]))
        return pairs

    @staticmethod
    def _within(go: np.ndarray, chords: dict[int, np.ndarray], around: list[tuple[int, int]]) -> bool:
        """Whether a step is between a member and its neighbours, along every axis that has some."""
        reach = 0.0
        for pair in around:
            there = [chords[n] for n in pair if n in chords]
            if not there:
                continue
            squares = [max(float(d @ d), 1e-300) for d in there]
            shares = [float(go @ d) / square for d, square in zip(there, squares, strict=True)]
            if not any(-SLACK <= share <= 1 + SLACK for share in shares):
                return False
            reach += max(squares)
        return float(go @ go) <= reach * (1 + SLACK)

    @cached_property
    def _curved(self) -> OutputQuery:
        """The question for the second order of all rows."""
        return OutputQuery(self.closure.transfer.tree, self.closure.transfer.system.rows, 2)

    def _nearest(self, kind: str, state: np.ndarray, line: InputSegment | None = None) -> np.ndarray | None:
        """Singular posture (S,) near a state (S,), if there is one: Newton for it and the rows that vanish.

        The unknowns are the posture and the shares u of the rows; wanted are c = 0, uᵀ W = 0, |u| = 1 (Moore
        and Spence 1980), W being the rows of the kind with independent ones of the closure. Steps are the
        shortest, so that a posture on a line or a surface of singular ones is found near the start. On a
        line of inputs it is that where these have values of the line, how far along being one more unknown.
        """
        t, span = self.closure.transfer, self.spans[kind]
        here = self.at(state[None])
        own = np.arange(0) if span is None else np.arange(span.start, span.stop)
        rows = np.concatenate([own, here.kept[0]])
        closing = np.arange(len(own), len(rows))
        u = np.linalg.svd(here.G[0, rows])[0][:, -1]
        size, held, on = t.tree.size, len(closing), 0 if line is None else len(line.along)
        far, shares = 0.0, slice(t.tree.size, t.tree.size + len(u))
        for _ in range(STEPS):
            values, W, H = self._second_order(state, rows)
            left = np.concatenate([values[closing], u @ W, [(u @ u - 1) / 2], np.zeros(on)])
            J = np.zeros((len(left), shares.stop + (on > 0)))
            J[:held, :size] = W[closing]
            J[held : held + size, :size] = np.einsum("p,pmn->nm", u, H)
            J[held : held + size, shares] = W.T
            J[held + size, shares] = u
            if line is not None:
                left[-on:], J[-on:, :size] = line.missed(state, far)
                J[-on:, -1] = -line.along
            if not np.isfinite(J).all():
                return None
            step = np.linalg.lstsq(J, -left, rcond=1e-12)[0]
            step /= max(1.0, 4 * float(np.abs(step[:size]).max()))
            state = integrate(t.tree, state[None], (step[:size] * t.column_scale)[None])[0]
            u = u + step[shares]
            far += float(step[-1])
            if np.abs(step).max() < 1e-15:
                break
        if line is not None and np.abs(line.missed(state, far)[0]).max() > TOUCHED:
            return None
        # the posture proper has to be closed, whatever the shares say
        missing = self.closure.rows(state[None])[0][0, t.first :]
        return state if np.linalg.norm(missing) <= max(self.closure.limit, t.tolerance) else None

    def _second_order(self, state: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scaled values, first and second order of rows (n,) at one state."""
        t, question = self.closure.transfer, self._curved
        values, G, H = (x[0] for x in question.layout.split(question.table(state[None]), (1,)))
        picked, scale, column = t.system.picked[rows], t.scale[rows], t.column_scale
        values = t.system.rows.complete(values[None].copy())[0]
        return (
            values[picked] / scale,
            G[picked] / scale[:, None] * column,
            H[picked] / scale[:, None, None] * column[:, None] * column,
        )
