"""Smooth branches of the loop closure through change points.

At a change point, such as all links of a parallelogram in line, the closure rows lose rank and several
branches of configurations meet. Transfer to any coordinates is singular there. Each branch is smooth: every
quantity on it is an analytic function of the coordinates, with a removable singularity.

Method.

1. Search along the direction of motion for the point where the smallest singular value of the closure
   vanishes (`_search`).
2. Close the loops at Chebyshev points on both sides of it (`_sampled`). The predicted state selects the
   branch on the far side.
3. Interpolate states and dynamics between the samples inside the gap; estimate the error by leaving out the
   outermost samples. Several widths are tried and the most accurate is kept.
4. For several coordinates, close the loops on parallel lines through the requested point.

The rank may drop by more than one, for example where all legs of a symmetric walker fold. Configurations then
form a cone, and a motion through its vertex continues along the same line. The loops do not close on parallel
lines near the vertex, so motions near it are integrated without a branch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kic.errors import ConfigurationError, InputError, SingularError
from kic.mechanism.evaluator import Results, tables_of

if TYPE_CHECKING:
    from kic.mechanism.evaluator import Evaluator
    from kic.simulation.coordinates import Chart


# largest distance of samples from the change point, in radians and shares of the characteristic length
HALF_WIDTHS = (0.2, 0.1, 0.05, 0.025, 0.0125)
# smallest distance as a share of the largest: transfer loses digits with the square of the distance
GAP_SHARE = 0.25
SAMPLES_PER_SIDE = 8
# largest distance of the search for a change point, and its steps
SEARCH_MAX = 1.5
STEP_FIRST, CHANGE_POINT_STEP_MAX, CHANGE_POINT_STEP_MIN = 1e-2, 0.1, 1e-5
# step of difference quotients
DIFFERENCE_STEP = 1e-5
# distance from which the place of a change point is extrapolated
EXTRAPOLATION_MAX = 0.01
# relative error of interpolation at which a half width is taken at once, and the largest one accepted
ERROR_GOOD, ERROR_MAX = 1e-11, 1e-8
# distances tried for the first state away from a start near a change point
START_STEPS = (0.02, 0.01, 0.003)
# largest scaled difference between a start at a change point and the branch on which it lies
ON_BRANCH_ATOL = 1e-6
# largest distance of a sample from its prediction, as a share of its distance from the change point
PREDICTION_RTOL = 0.1
# limit of the residual of interpolated configurations, in closure tolerances; above it no branches meet
RESIDUAL_FACTOR = 10.0
# offsets of parallel lines below this are rounding
OFFSET_ATOL = 1e-13


@dataclass(frozen=True)
class _Line:
    """Samples on a line across the change point."""

    # (n,): signed distances of the samples from the centre of the branch, negative before the change point
    places: np.ndarray
    states: np.ndarray  # (n, S): closed states
    tables: dict[Evaluator, Results] = field(default_factory=dict)  # results of evaluators at the samples

    def table(self, evaluator: Evaluator) -> Results:
        """Return the results of an evaluator at the samples."""
        if evaluator not in self.tables:
            self.tables[evaluator] = evaluator(self.states)
        return self.tables[evaluator]


class Branch:
    """A smooth branch of the closure through a change point. Made by `branch_ahead`.

    `center` (M,) has the scaled coordinates of the change point, to within a small share of the gap. One unit
    along `direction` (M,) moves the scaled tree coordinates by at most one. Quantities are interpolated
    within the distance `gap` from the centre, from samples on a line up to the distance `half_width`. `error`
    is the estimated relative error.
    """

    def __init__(self, chart: Chart, center: np.ndarray, direction: np.ndarray, line: _Line) -> None:
        self._chart, self._center, self._direction, self._line = chart, center, direction, line
        self.gap, self.half_width = float(np.abs(line.places).min()), float(np.abs(line.places).max())
        self._zero = self._root(line)
        self._normal = direction / (direction @ direction)
        if len(center) > 1:
            self._normal = self._gradient()
        # cache of the last parallel line, by its offset
        self._offset, self._parallel = np.zeros_like(center), line
        self.error = self._error()

    def distance(self, x: np.ndarray) -> float:
        """Return the signed distance of coordinates (M,) from the change point, negative before it."""
        return self._place(x) - self._zero

    def inside(self, x: np.ndarray) -> bool:
        """Return True if coordinates (M,) lie in the gap, where quantities are interpolated."""
        return abs(self._place(x)) <= self.gap

    def state(self, x: np.ndarray) -> np.ndarray:
        """Return the closed state (S,) at coordinates (M,).

        Raise `ConfigurationError` if the loops do not close on this branch.
        """
        s = self._place(x)
        if abs(s) > self.gap:
            return self._near_gap(x, s)
        line = self._across(x, s)
        return self._chart.normalized(_weights(line.places, s) @ line.states)

    def evaluated(self, evaluator: Evaluator, x: np.ndarray) -> Results:
        """Return the interpolated results of an evaluator at coordinates (M,) inside the gap."""
        s = self._place(x)
        line = self._across(x, s)
        weights, table = _weights(line.places, s), line.table(evaluator)
        rows, model = (np.ascontiguousarray((weights @ part)[None]) for part in tables_of(table)[:2])
        return table._tables.results((), rows, model)

    def _place(self, x: np.ndarray) -> float:
        return float(self._normal @ (x / self._chart.position_scale - self._center))

    def _near_gap(self, x: np.ndarray, s: float) -> np.ndarray:
        """Return the closed state outside the gap, from the nearest known state on the same side."""
        chart, places = self._chart, self._line.places
        k = int(np.argmin(np.where(places * s > 0, np.abs(places - s), np.inf)))
        start, near, known = self._at(places[k]), self._line.states[k], self._place(chart.anchor_position)
        if known * s > 0 and abs(known) > self.gap and abs(known - s) < abs(places[k] - s):
            start, near = chart.anchor_position, chart.anchor_state
        return self._closed(x, start, near)

    def _closed(self, x: np.ndarray, start: np.ndarray, near: np.ndarray) -> np.ndarray:
        state = self._chart.close_stepwise(x, start, near)[0]
        if state is None:
            names = ", ".join(self._chart.names)
            message = f"the loops do not close for {names} near a change point"
            raise ConfigurationError(message, values=x.copy())
        return state

    def _at(self, place: float, offset: np.ndarray | float = 0.0) -> np.ndarray:
        """Return coordinates (M,) at a position on the line, or on a parallel line."""
        return self._chart.position_scale * (self._center + offset + place * self._direction)

    def _across(self, x: np.ndarray, s: float) -> _Line:
        """Return samples on the parallel line through coordinates (M,)."""
        offset = x / self._chart.position_scale - self._center - s * self._direction
        if np.abs(offset).max() <= OFFSET_ATOL:
            return self._line
        if not np.array_equal(offset, self._offset):
            line = self._shifted(offset, 0.0)
            shift = self._root(line) - self._zero
            if abs(shift) > self.gap / 4:  # the set of change points is curved
                line = self._shifted(offset, shift)
            if not self._meets(line):
                raise ConfigurationError(
                    "it passes near a change point where several motions of its loops meet, and none of "
                    "them continues it smoothly",
                    values=x.copy(),
                )
            self._offset, self._parallel = offset, line
        return self._parallel

    def _shifted(self, offset: np.ndarray, shift: float) -> _Line:
        """Return samples on a parallel line, closed from the samples of this line."""
        places = self._line.places
        pairs = zip(places, self._line.states, strict=True)
        states = [self._closed(self._at(s + shift, offset), self._at(s), near) for s, near in pairs]
        return _Line(places + shift, np.array(states))

    def _root(self, line: _Line) -> float:
        """Return the position on a line where the smallest singular value changes its sign."""
        signed = -np.sign(line.places) * self._chart.closure_margin(line.states)
        before, after = np.flatnonzero(line.places < 0).max(), np.flatnonzero(line.places > 0).min()
        a, b = float(line.places[before]), float(line.places[after])
        from scipy.optimize import brentq

        return float(brentq(lambda s: _weights(line.places, s) @ signed, a, b, xtol=1e-14))

    def _gradient(self) -> np.ndarray:
        """Return the gradient (M,) of the distance, from change points on parallel lines."""
        size, step = len(self._center), self.gap / 4
        roots = np.array([self._root(self._shifted(step * e, 0.0)) for e in np.eye(size)])
        slopes = (self._zero - roots) / step
        along = float(slopes @ self._direction)
        if not abs(along - 1) < 0.5:
            raise ConfigurationError("its loops are singular along a curve that the motion does not cross")
        return slopes / along

    def _error(self) -> float:
        """Estimate the relative error at the centre by leaving out the outermost samples."""
        line, chart = self._line, self._chart
        inner = np.abs(line.places) < self.half_width * (1 - 1e-9)
        apart = _weights(line.places, 0.0)
        apart[inner] -= _weights(line.places[inner], 0.0)
        worst = float((np.abs(apart @ line.states) / chart.state_scale).max(initial=0.0))
        # P* is of second order and loses the most digits; its scale is that of I*. Only its part along the
        # motion counts: where the rank drops by more than one, as in symmetric mechanisms, the configurations
        # form a cone about the direction, and P* across it has a pole
        r, n, scale = line.table(chart.evaluator), len(line.places), chart.position_scale
        inertia = r.I * scale[:, None] * scale
        large = float(np.abs(inertia).max(initial=0.0)) or 1.0
        for part in (inertia, scale[:, None] * (r.P @ (scale * self._direction)) * scale):
            worst = max(worst, float(np.abs(apart @ part.reshape(n, -1)).max(initial=0.0)) / large)
        return worst

    def _meets(self, line: _Line) -> bool:
        """Return True if interpolated configurations on a line across the change point close the loops."""
        chart = self._chart
        return all(
            chart.residual(chart.normalized(_weights(line.places, s) @ line.states)) <= RESIDUAL_FACTOR
            for s in self._root(line) + self.gap * np.array([-0.5, 0.0, 0.5])
        )

    def meets(self) -> bool:
        """Return True if interpolated configurations close the loops, as they do only where branches meet."""
        return self._meets(self._line)


def branch_ahead(chart: Chart, direction: np.ndarray) -> Branch | None:
    """Return the smooth branch through the change point ahead of the regular anchor of a chart, or None.

    `direction` (M,) is the direction of motion in the coordinates of the chart.
    """
    for d in (_descent(chart), direction / chart.position_scale):
        tangent = None if d is None else chart.tangent(d)
        if tangent is not None:
            branch = _branch(chart, d / np.abs(tangent).max(), chart.anchor_position, chart.anchor_state)
            if branch is not None:
                return branch
    return None


def _descent(chart: Chart) -> np.ndarray | None:
    """Return the scaled direction (M,) in which the closure margin falls fastest, or None."""
    size = len(chart.anchor_position)
    if size == 1:
        return None
    margin, slopes = chart.closure_margin(chart.anchor_state[None])[0], np.empty(size)
    for j, e in enumerate(np.eye(size)):
        there = chart.close_stepwise(
            chart.anchor_position + DIFFERENCE_STEP * e * chart.position_scale,
            chart.anchor_position,
            chart.anchor_state,
        )[0]
        if there is None:
            return None
        slopes[j] = margin - chart.closure_margin(there[None])[0]
    return slopes


def branch_here(chart: Chart, tangent: np.ndarray) -> Branch | None:
    """Return the smooth branch through an anchor at or near a change point, or None.

    `tangent` (columns,) gives the scaled rates of the tree's columns on the branch.
    """
    tangent = tangent / np.abs(tangent).max()
    d = chart.rates_of_tangent(tangent)
    for step in START_STEPS:
        start, predicted = (
            chart.anchor_position - step * d * chart.position_scale,
            chart.state_after(-step * tangent),
        )
        near = chart.close_locally(start, predicted)
        if near is None or chart.distance(predicted, near) > PREDICTION_RTOL * step:
            continue
        branch = _branch(chart, d, start, near)
        if (
            branch is not None
            and chart.distance(branch.state(chart.anchor_position), chart.anchor_state) < ON_BRANCH_ATOL
        ):
            return branch
    return None


def _branch(chart: Chart, d: np.ndarray, start: np.ndarray, near: np.ndarray) -> Branch | None:
    """Return the smooth branch through the change point ahead of a regular state, or None."""
    found = _search(chart, d, start, near)
    if found is None:
        return None
    root, last, state = found
    center, best = start / chart.position_scale + root * d, None
    for half_width in HALF_WIDTHS:
        try:
            line = _sampled(chart, center, d, half_width, last - root, state)
            branch = None if line is None else Branch(chart, center, d, line)
            if branch is None or not branch.error <= ERROR_MAX or not branch.meets():
                continue
        except (ConfigurationError, SingularError, InputError):
            continue
        if best is None or branch.error < best.error:
            best = branch
        if best.error <= ERROR_GOOD:
            break
    return best


def _search(
    chart: Chart, d: np.ndarray, start: np.ndarray, near: np.ndarray
) -> tuple[float, float, np.ndarray] | None:
    """Return the position of rank loss on a line, and a nearby position with its closed state, or None."""
    begin, s, state, step = start / chart.position_scale, 0.0, near, STEP_FIRST
    margin, root = float(chart.closure_margin(state[None])[0]), np.inf
    while step >= CHANGE_POINT_STEP_MIN:
        x, known = (chart.position_scale * (begin + place * d) for place in (s + step, s))
        there = chart.close_stepwise(x, known, state)[0]
        if there is None:
            step /= 4
            continue
        ahead = float(chart.closure_margin(there[None])[0])
        if not ahead < margin:
            return None
        left = step * ahead / (margin - ahead)
        s, state, margin = s + step, there, ahead
        if s + left > SEARCH_MAX:
            return None
        root = s + left
        if left <= EXTRAPOLATION_MAX:
            break
        step = min(left / 2, CHANGE_POINT_STEP_MAX)
    # accept a place beyond the last closed state only if it is near
    return (root, s, state) if root - s <= EXTRAPOLATION_MAX * 2 else None


def _sampled(
    chart: Chart, center: np.ndarray, d: np.ndarray, half_width: float, place: float, state: np.ndarray
) -> _Line | None:
    """Return samples on both sides of a change point, from a closed state at a position before it."""
    gap, n = GAP_SHARE * half_width, SAMPLES_PER_SIDE
    # Chebyshev points in the square of the distance are optimal for two intervals
    nodes = np.cos((2 * np.arange(n) + 1) * np.pi / (2 * n))
    distances = np.sort(np.sqrt((gap**2 + half_width**2) / 2 + (half_width**2 - gap**2) / 2 * nodes))

    def at(s: float) -> np.ndarray:
        return chart.position_scale * (center + s * d)

    places, states = list[float](), list[np.ndarray]()
    # near a change point Newton's method converges only over steps shorter than the distance from it
    while -2 * place < gap:
        there = chart.close_stepwise(at(2 * place), at(place), state)[0]
        if there is None:
            return None
        place, state = 2 * place, there
    for s in (-distances).tolist():
        there = chart.close_stepwise(at(s), at(place), state)[0]
        if there is None:
            return None
        place, state = s, there
        places, states = [s, *places], [there, *states]
    for s in distances.tolist():
        predicted = chart.normalized(_weights(np.array(places), s) @ np.array(states))
        there = chart.close_locally(at(s), predicted)
        if there is None or chart.distance(predicted, there) > PREDICTION_RTOL * s:
            return None
        places, states = [*places, s], [*states, there]
    return _Line(np.array(places), np.array(states))


def _weights(nodes: np.ndarray, s: float) -> np.ndarray:
    """Return the Lagrange weights (n,) that interpolate values at nodes (n,) to a position."""
    apart = nodes[:, None] - nodes
    np.fill_diagonal(apart, 1.0)
    ahead = np.broadcast_to(s - nodes, apart.shape).copy()
    np.fill_diagonal(ahead, 1.0)
    return np.asarray((ahead / apart).prod(axis=1))
