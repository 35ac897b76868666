"""The least time along a path within limits, by reachability: one pass back, one pass forth.

After H. Pham and Q.-C. Pham, "A new approach to time-optimal path parameterization based on reachability
analysis" (TOPP-RA), 2018. Between neighbouring points of a grid s̈ is constant, and limits hold at both ends
of each interval. The pass back finds the speeds from which the end can be reached; the pass forth takes the
highest of them that it can. Here s̈ is eliminated from the rows in pairs, which leaves quadratics in the
speed itself: terms with ṡ, of dampers and voltages, need no approximation at the start of an interval, and
allowed speeds may be several ranges. At its end they are met by tangents, repeated until they touch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.display import Summary
from kic.errors import InputError, short_repr
from kic.mechanism import Mechanism
from kic.numerics.arrays import reals
from kic.numerics.polynomials import allowed, united
from kic.trajectory.path_constraints import (
    ConstraintFactory,
    PathConstraints,
    PathSamples,
    constraint_factories,
    gathered,
    impossible,
    sample_path,
    voltage_rows,
)
from kic.trajectory.time_scaling import check_way, grid_of
from kic.trajectory.trajectory import Trajectory

# factors of s̈ smaller than this share of the largest of their row are rounding
_NO_INERTIA = 1e-13
# a path that moves slower than this share of its fastest stands still
_STANDS = 1e-4
# terms with the speed at the end of an interval are met by repetition
_REPEATS = 40
_SETTLED = 1e-10
# more than this share of a limit is not its rounding
_EXCESS = 1e-6
# speeds this share outside of a range are on its edge
_ROUNDED = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class TimeOptimal:
    """The fastest motion along a path; made by `fastest`.

    Attributes
    ----------
    trajectory : Trajectory
        The motion in time.
    s : (L + 1,)
        Parameter of the path at the ends of the intervals.
    t : (L + 1,)
        When it comes there.
    speed : (L + 1,)
        ṡ there.
    acceleration : (L,)
        s̈ on each interval.
    names : tuple of str
        A word for each of R limits.
    values, lower, upper : (L, 2, R)
        What is limited at the start and the end of each interval, and the limits.
    excess : float
        By how much limits are passed in the middle of intervals at most, as a share of their size.
    """

    trajectory: Trajectory
    s: np.ndarray
    t: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    excess: float

    @property
    def slack(self) -> np.ndarray:
        """How far each value is inside its limits (L, 2, R), as a share of their size; negative outside."""
        return _slack(self.values, self.lower, self.upper)

    @property
    def binding(self) -> tuple[str, ...]:
        """The limit that holds the motion back on each of the L intervals: the one with the least slack."""
        return tuple(self.names[n] for n in np.argmin(self.slack.min(axis=1), axis=1).tolist())

    def summary(self) -> Summary:
        """Labelled account of what holds the motion back, to print or to show."""
        sheet = Summary(
            f"the fastest way: duration {self.trajectory.duration:.6g}, {len(self.acceleration)} intervals, "
            f"limits exceeded by {max(0.0, -float(self.slack.min())):.1e} of themselves at their ends, "
            f"{self.excess:.1e} between"
        )
        bound, time = np.array(self.binding), np.diff(self.t)
        names = [name for name in self.names if name in bound]
        cells = np.array([[time[bound == name].sum() / self.t[-1]] for name in names])
        sheet.matrix("what holds it back, for which share of the time", names, ["share"], cells)
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def fastest(
    path: Trajectory,
    mechanism: Mechanism | None = None,
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    actuators: str | Iterable[str] | None = None,
    rows: ConstraintFactory | Iterable[ConstraintFactory] = (),
    near: Configuration | None = None,
    start_speed: float = 0.0,
    end_speed: float = 0.0,
    grid: int = 201,
    voltage: Any = None,
) -> TimeOptimal:
    """The least time along a path within limits of velocity, acceleration, effort, voltage, or any others.

    Parameters
    ----------
    path : Trajectory
        Where to go, whatever its timing: smooth and never at rest, as `line` and `through` with
        ``ends="free"`` make it.
    mechanism : Mechanism, optional
        What moves, open or closed, where efforts are limited.
    velocity, acceleration, effort : float, (M,) or (2, M) array_like, or dict of str to those
        Limits: of the size of all or of each, or lower and upper ones; a dict may leave names free.
    actuators : str or list of str, optional
        Coordinates at which efforts act, as many as freedoms; by default those of the path.
    rows : callable or list of those, optional
        Further limits: each takes an `Along` and returns `Rows` of it.
    near : Configuration, optional
        From where the first configuration is led; by default the drawing.
    start_speed, end_speed : float
        ṡ at both ends, at rest by default.
    grid : int
        Points of the path at which limits are met; its knots join them. They are denser at the ends. The time
        found is above the least by what falls with the interval: by a hundredth, say, for efforts of an arm
        on a winding path, less where the path is straight. Between the points limits may be passed by what
        falls with the square of the interval; ``excess`` tells how far. Where they must not be passed at
        all, set them lower by so much, or take a finer grid.
    voltage : float, (K,) or (2, K) array_like, or dict of str to those, optional
        Limits of the voltages of the motors, by name or in the order of the drawing, as many motors as
        freedoms. Rotors, damping and friction count. Motors with inductance are refused: accelerations of
        the fastest motion jump, and so would their currents, which no voltage makes them do. Leave the
        inductance out, ``replace(motor, inductance=0.0)``, or take a smooth motion and `uniform`.

    Returns
    -------
    TimeOptimal

    Raises
    ------
    InputError
        If the path stands still or has a corner, nothing limits the accelerations, or limits leave nothing:
        which of them, and where.

    Examples
    --------
    >>> from kic import trajectory
    >>> straight = trajectory.line({"tip.x": 0.0}, {"tip.x": 1.0})
    >>> best = trajectory.fastest(straight, acceleration=1.0)
    >>> round(best.trajectory.duration, 12), best.binding[0]
    (2.0, 'acceleration of tip.x')
    """
    check_way(path)
    ends = [_speed("start_speed", start_speed), _speed("end_speed", end_speed)]
    s = grid_of(path, grid, clustered=True)
    of = sample_path(path, mechanism, near, np.sort(np.concatenate([s, (s[1:] + s[:-1]) / 2])))
    _check_moves(of)
    hooks = constraint_factories(rows)
    if voltage is not None:
        hooks.append(voltage_rows(mechanism, voltage))
    limits, middle = _parted(gathered(of, velocity, acceleration, effort, actuators, hooks))
    if not (np.abs(limits.A) > 0).any():
        raise InputError(
            "Nothing limits the accelerations: give limits of acceleration, effort or voltage, or rows with "
            "A. Those of velocity alone would be met by jumps."
        )
    phase = _Phase(s, limits, ends[1])
    v = phase.solved(ends[0])
    dt = 2 * np.diff(s) / (v[1:] + v[:-1])
    u = (v[1:] - v[:-1]) / dt
    t = np.concatenate([[0.0], np.cumsum(dt)])
    # on each interval, the share of it that is done as a polynomial of the share of its time
    begun = v[:-1] * dt / np.diff(s)
    share = np.stack([np.zeros_like(begun), begun, 1 - begun], axis=1)
    timed = Trajectory(path.pieces.refined(s).clocked(t, share), path.naming)
    values = _values(limits, np.stack([v[:-1], v[1:]], axis=1), u)
    inside = _values(middle, np.sqrt((v[:-1] ** 2 + v[1:] ** 2) / 2)[:, None], u)
    excess = max(0.0, -float(_slack(inside, middle.lower, middle.upper).min(initial=0.0)))
    found = TimeOptimal(timed, s, t, v, u, limits.names, values, limits.lower, limits.upper, excess)
    worst = float(found.slack.min())
    if worst < -_EXCESS:
        raise InputError(
            f"Terms with ṡ did not settle: limits would be exceeded by {-worst:.1e} of themselves. Take a "
            "finer grid.",
            excess=-worst,
        )
    return found


def _parted(rows: PathConstraints) -> tuple[PathConstraints, PathConstraints]:
    """Rows over halves of intervals as those at the ends of the whole ones, and those in their middles."""
    parts = [np.asarray(a) for a in (rows.A, rows.B, rows.C, rows.D, rows.lower, rows.upper)]
    ends = [np.stack([a[::2, 0], a[1::2, 1]], axis=1) for a in parts]
    middles = [np.stack([a[::2, 1], a[1::2, 0]], axis=1) for a in parts]
    return PathConstraints(rows.names, *ends), PathConstraints(rows.names, *middles)


def _values(rows: PathConstraints, speed: np.ndarray, u: np.ndarray) -> np.ndarray:
    """What is limited (L, 2, R) for speeds (L, 2) or (L, 1) and accelerations (L,)."""
    v = speed[:, :, None]
    values: np.ndarray = rows.A * u[:, None, None] + rows.B * v**2 + rows.C * v + rows.D
    return values


def _slack(values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """How far values are inside their limits, as a share of their size; negative outside."""
    size = np.maximum(*(np.where(np.isfinite(a), np.abs(a), 0.0) for a in (lower, upper)))
    slack: np.ndarray = np.minimum(upper - values, values - lower) / np.where(size > 0, size, 1.0)
    return slack


def _speed(key: str, value: Any) -> float:
    a = reals(value)
    if a is None or a.shape != () or a < 0:
        raise InputError(f"`{key}` must be a number of at least 0, got {short_repr(value)}.", key=key)
    return float(a)


def _check_moves(of: PathSamples) -> None:
    """Refuse a path that stands still somewhere: its parameter says nothing of the way there."""
    size = np.abs(of.first).max(axis=(0, 1), initial=0.0)
    if not size.any():
        raise InputError("The path goes nowhere: there is no time to find.")
    rate = (np.abs(of.first) / np.where(size > 0, size, 1.0)).max(axis=2)
    if rate.min() < _STANDS * rate.max():
        k, end = np.unravel_index(int(np.argmin(rate)), rate.shape)
        raise InputError(
            f"The path stands still at {of.s[k + end]:.4g}: its own timing rests there. Give one that keeps "
            "moving, such as line() or through(…, ends='free'); time parts between stops one by one.",
            s=float(of.s[k + end]),
        )


class _Phase:
    """Rows of limits over the plane of s and ṡ."""

    def __init__(self, s: np.ndarray, rows: PathConstraints, end: float) -> None:
        self.s, self.step, self.rows, self.end = s, np.diff(s), rows, end
        self.lower, self.upper = rows.lower.copy(), rows.upper.copy()
        # limits of the speed alone are met at the start of the next interval
        state = ~(rows.A.any(axis=(0, 1)) | rows.B.any(axis=(0, 1)))
        for a in (rows.C, rows.D, rows.lower, rows.upper):
            state &= np.isclose(a[1:, 0], a[:-1, 1], rtol=_ROUNDED, atol=0).all(axis=0)
        self.lower[:-1, 1, state], self.upper[:-1, 1, state] = -np.inf, np.inf
        self.late = np.where(state, 0.0, rows.C[:, 1])
        self.late[-1] = 0.0
        self._set(rows.C[:, 1] * (np.arange(len(self.step)) < len(self.step) - 1)[:, None], 0.0, 0.0)

    def _set(self, slope: Any, constant: Any, square: Any) -> None:
        """Rows with what stands for C ṡ at the ends of the intervals: constant + slope v + square w².

        There the speed w is no polynomial of s̈ and the speed v at the start: w² = v² + 2 Δ s̈.
        """
        r = self.rows
        constant = constant + r.D[:, 1]
        constant[-1] += r.C[-1, 1] * self.end
        square = r.B[:, 1] + square
        A = np.stack([r.A[:, 0], r.A[:, 1] + 2 * self.step[:, None] * square], axis=1)
        small = np.abs(A) <= _NO_INERTIA * np.abs(A).max(axis=(0, 1), initial=0.0)
        self.A = np.where(small, 0.0, A)
        first = np.stack([r.D[:, 0], r.C[:, 0], r.B[:, 0]], axis=-1)
        last = np.stack([constant, np.broadcast_to(slope, constant.shape), square], axis=-1)
        self.motion = np.stack([first, last], axis=1)

    def _tangent(self, v: np.ndarray) -> None:
        """At the ends of intervals take for the speed w the tangent of √w² at speeds (L + 1,)."""
        w = v[1:, None]
        moves = w > _NO_INERTIA * v.max()  # at rest there is nothing to add
        C, at = np.where(moves, self.late, 0.0) / 2, np.where(moves, w, 1.0)
        self._set(0.0, C * at, C / at)

    def solved(self, start: float) -> np.ndarray:
        """Speeds (L + 1,) of the fastest motion."""
        v = self._forth(start, self._back())
        for _ in range(_REPEATS if self.late.any() else 0):
            self._tangent(v)
            before, v = v, self._forth(start, self._back())
            if np.abs(v - before).max() <= _SETTLED * v.max():
                break
        return v

    def _bounds(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bounds of s̈ on an interval from above and below, and what must not be negative, in 1, v, v²."""
        A = self.A[k].reshape(-1)
        motion = self.motion[k].reshape(-1, 3)
        above, below, plain = [], [], []
        for sign, limit in ((1.0, self.upper[k]), (-1.0, self.lower[k])):
            flat = limit.reshape(-1)
            held = np.isfinite(flat)
            room = -motion[held]
            room[:, 0] += flat[held]
            a = A[held]
            moves, rising = a != 0, sign * a > 0
            plain.append(sign * room[~moves])
            bound = room[moves] / a[moves, None]
            above.append(bound[rising[moves]])
            below.append(bound[~rising[moves]])
        return np.concatenate(above), np.concatenate(below), np.concatenate(plain)

    def _back(self) -> list[np.ndarray]:
        """Ranges of speed (n, 2) at each point from which the end can be reached."""
        ranges = [np.array([[self.end, self.end]])]
        for k in range(len(self.step) - 1, -1, -1):
            above, below, plain = self._bounds(k)
            double, found = 2 * self.step[k], []
            for low, high in ranges[-1].tolist():
                tops = above
                if high < np.inf:
                    tops = np.concatenate([above, [[high**2 / double, 0.0, -1 / double]]])
                floors = np.concatenate([below, [[low**2 / double, 0.0, -1 / double]]])
                pairs = (tops[:, None] - floors).reshape(-1, 3)
                found.append(allowed(*np.concatenate([pairs, plain]).T))
            ranges.append(united(found))
            if not len(ranges[-1]):
                self._refuse(k)
        return ranges[::-1]

    def _forth(self, start: float, ranges: list[np.ndarray]) -> np.ndarray:
        """The highest speeds (L + 1,) from which one can go on."""
        near = ranges[0] * (1 + np.array([-_ROUNDED, _ROUNDED]))
        if not ((near[:, 0] <= start) & (start <= near[:, 1])).any():
            self._refuse_start(start, ranges[0])
        v = [start]
        for k, step in enumerate(self.step.tolist()):
            above, below, _ = self._bounds(k)
            powers = np.array([1.0, v[-1], v[-1] ** 2])
            high = v[-1] ** 2 + 2 * step * np.min(above @ powers, initial=np.inf)
            low = v[-1] ** 2 + 2 * step * np.max(below @ powers, initial=-np.inf)
            squares = ranges[k + 1] ** 2
            # by rounding, the speed may be a little outside of what it can be
            met = np.minimum(squares[:, 1], max(high, low)), np.maximum(squares[:, 0], min(high, low))
            gap = np.maximum(met[1] - met[0], 0.0)
            best = int(np.flatnonzero(gap <= max(_ROUNDED * squares.max(), gap.min()))[-1])
            x = max(float(met[0][best]), float(squares[best, 0]))
            if x == np.inf:
                raise InputError(
                    f"Nothing limits the speed at s = {self.s[k + 1]:.4g}: give limits for what moves there."
                )
            v.append(float(np.sqrt(max(x, 0.0))))
            if not v[-1] + v[-2] > 0:
                raise InputError(
                    f"The limits leave no speed at all between s = {self.s[k]:.4g} and {self.s[k + 1]:.4g}. "
                    "Allow more, or take another path.",
                    s=float(self.s[k]),
                )
        return np.array(v)

    def _refuse(self, k: int) -> None:
        why = impossible(self._at(slice(k, k + 1)), self.s[k : k + 2], "s")
        if why is None:
            why = f"from s = {self.s[k]:.4g} no speed leads on to the end with ṡ = {self.end:g}"
        raise InputError(
            f"Limits leave nothing: {why}. Allow more, or take another path.", s=float(self.s[k])
        )

    def _refuse_start(self, start: float, ranges: np.ndarray) -> None:
        why = impossible(self._at(slice(0, 1)), self.s[:2], "s")
        can = " or ".join(f"{low:.5g} to {high:.5g}" for low, high in ranges.tolist())
        raise InputError(
            f"The path cannot start with ṡ = {start:.5g}"
            + (f": {why}." if why else ".")
            + f" With ṡ from {can} the end is reached.",
            ranges=ranges,
        )

    def _at(self, interval: slice) -> PathConstraints:
        r = self.rows
        parts = (np.asarray(a)[interval] for a in (r.A, r.B, r.C, r.D, r.lower, r.upper))
        return PathConstraints(r.names, *parts)
