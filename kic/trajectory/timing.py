"""Timing of a path within limits: uniform scaling in closed form, and the time-optimal motion.

Uniform scaling follows J. M. Hollerbach, "Dynamic scaling of manipulator trajectories", 1984. At r times the
speed, rates scale with r, accelerations and inertial efforts with r², jerks with r³, damper efforts with r.
Loads are unchanged.

The time-optimal motion follows by reachability analysis (TOPP-RA), after H. Pham and Q.-C. Pham, "A new
approach to time-optimal path parameterization based on reachability analysis", 2018. Between neighbouring
grid points s̈ is constant, and limits hold at both ends of each interval. The backward pass finds the speeds
from which the end can be reached. The forward pass takes the highest of these speeds that it can reach. Here
s̈ is eliminated from the rows in pairs; quadratics in the speed ṡ remain. Terms with ṡ, from dampers and
voltages, therefore need no approximation at the start of an interval, and the allowed speeds may form several
ranges. At the end of an interval these terms are linearized iteratively until convergence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.description import declared_limits
from kic.errors import InputError
from kic.mechanism.configuration import Configuration
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import at_least, instance, integer
from kic.numerics.display import ROUNDOFF, Printable, Summary
from kic.numerics.polynomials import allowed, united
from kic.trajectory import path_constraints as pc
from kic.trajectory.path_constraints import ConstraintFactory, PathConstraints, PathSamples
from kic.trajectory.trajectory import Trajectory


def uniform(
    trajectory: Trajectory,
    mechanism: Mechanism | None = None,
    *,
    rate_limits: Any = None,
    acceleration_limits: Any = None,
    jerk_limits: Any = None,
    effort_limits: Any = None,
    voltage_limits: Any = None,
    actuators: str | Iterable[str] | None = None,
    rows: ConstraintFactory | Iterable[ConstraintFactory] = (),
    near: Configuration | None = None,
    samples: int = 201,
) -> Trajectory:
    """Return the same motion at the highest speed that the limits allow; one limit is just reached.

    Limits of velocity, acceleration and jerk hold everywhere, by the exact extremes of the polynomials. Other
    limits hold at the samples and on both sides of all knots. Between them they may be exceeded by an amount
    that falls with the square of the sample distance.

    Parameters
    ----------
    trajectory : Trajectory
        The motion. Its rates at the ends are scaled as well.
    mechanism, rate_limits, acceleration_limits, jerk_limits, effort_limits
        Mechanism and limits, as in `fastest`.
    voltage_limits : float, (K,) or (2, K) array_like, or dict of str to those, optional
        Limits of the motor voltages, by name or in the order of the description. Rotors, damping, friction
        and inductance are included; the share of the inductance scales with the jerk.
    actuators, rows, near
        Actuators, further limits and start of the continuation, as in `fastest`.
    samples : int
        Number of sample times.

    Returns
    -------
    Trajectory
        The scaled motion; the factor is the ratio of its duration to that of `trajectory`.

    Raises
    ------
    InputError
        If nothing limits the motion, or no speed meets the limits, for example where gravity alone exceeds an
        effort limit; the message names the limit and the time. Also if a shape is wrong or the duration is
        zero.

    Examples
    --------
    >>> slow = kic.trajectory.quintic({"A": 0.0}, {"A": 1.0}, duration=10.0)
    >>> round(kic.trajectory.uniform(slow, rate_limits=1.875).duration, 12)
    1.0
    """
    check_duration("trajectory", trajectory)
    highest, of = np.inf, pc.named(trajectory, mechanism)
    given = (
        ("rate_limits", rate_limits),
        ("acceleration_limits", acceleration_limits),
        ("jerk_limits", jerk_limits),
    )
    others = dict[str, Any]()
    for order, (key, limits) in enumerate(given, start=1):
        if limits is not None:
            if mechanism is not None and order == 1:
                limits = declared_limits(mechanism, key, limits)
            own, others[key] = _divided(limits, of.names, mechanism is not None and order < 3)
            share = _share(trajectory.extremes(order), of.bounds(key, own))
            highest = min(highest, share ** (-1 / order) if share else np.inf)
    s = grid_points(trajectory, integer("samples", samples, 3), clustered=False)
    made = PathConstraints(())
    allowed_speeds = np.array([[0.0, np.inf]])
    hooks = pc.constraint_factories(rows)
    if effort_limits is not None or actuators is not None or hooks or any(others.values()):
        made = pc.path_constraints(
            pc.sample_path(trajectory, mechanism, near, s),
            others.get("rate_limits"),
            others.get("acceleration_limits"),
            effort_limits,
            actuators,
            hooks,
        )
        allowed_speeds = allowed(*(np.concatenate(c) for c in zip(*_quadratics(made), strict=True)))
    if voltage_limits is not None:
        allowed_speeds = pc.intersection(
            allowed_speeds, pc.voltage_speed_intervals(trajectory, mechanism, near, s, voltage_limits)
        )
    allowed_speeds = allowed_speeds[allowed_speeds[:, 0] <= highest]
    speed = min(float(allowed_speeds[-1, 1]), highest) if len(allowed_speeds) else 0.0
    if speed == np.inf:
        raise InputError(
            "No limit restricts this motion. Give limits for coordinates that move.", key="limits"
        )
    if not speed > 0:
        why = pc.static_violation(made, s, "t")
        if voltage_limits is not None and why is None:
            why = "the motors cannot hold the static load"
        raise InputError(
            f"No speed meets the limits{f': {why}' if why else ''}. Relax the limits, or use another path.",
            key="limits",
        )
    return trajectory.scaled(1 / speed)


def _divided(limits: Any, names: tuple[str, ...], by_rows: bool) -> tuple[Any, dict[str, Any] | None]:
    """Return the limits of coordinates of the trajectory, and the limits of other rows or None."""
    if not by_rows or not isinstance(limits, Mapping):
        return limits, None
    others = {name: limit for name, limit in limits.items() if name not in names}
    return {name: limit for name, limit in limits.items() if name in names}, others or None


def _quadratics(made: PathConstraints) -> list[list[np.ndarray]]:
    """Return coefficients of upper − (B r² + C r + D) and of (B r² + C r + D) − lower, for finite limits."""
    found = []
    for sign, limit in ((-1.0, made.upper), (1.0, made.lower)):
        held = np.isfinite(limit)
        found.append([(sign * (made.D - limit))[held], sign * made.C[held], sign * made.B[held]])
    return found


def _share(reach: tuple[np.ndarray, np.ndarray], bounds: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the largest ratio of extremes to bounds; extremes within rounding count as zero."""
    # a limit of −0 would have the wrong sign in the ratio
    out, most = np.array([-reach[0], reach[1]]), np.abs([bounds[0], bounds[1]])
    moves = out > ROUNDOFF * np.abs(reach).max(initial=0.0)
    with np.errstate(divide="ignore"):
        return float(np.max(out[moves] / most[moves], initial=0.0))


def check_duration(argument: str, trajectory: Any) -> None:
    """Check that a trajectory has a positive duration."""
    if isinstance(trajectory, Configuration):
        raise InputError(
            f"`{argument}` must be a Trajectory, got a batch of configurations. Make one with "
            "trajectory.spline or trajectory.line, of the values of the path.",
            key=argument,
            got=trajectory,
        )
    if not instance(argument, trajectory, Trajectory).duration:
        raise InputError(f"`{argument}` must have a positive duration, got 0.", key=argument, got=0.0)


def grid_points(path: Trajectory, count: int, clustered: bool) -> np.ndarray:
    """Return interval ends (L + 1,) of a path, including all knots; `clustered` refines both ends."""
    share = np.linspace(0.0, 1.0, count)
    base = path.duration * ((1 - np.cos(np.pi * share)) / 2 if clustered else share)
    knots = path.pieces.knots
    # knots replace points of the grid near them
    place = np.clip(np.searchsorted(knots, base), 1, len(knots) - 1)
    off = np.minimum(np.abs(base - knots[place - 1]), np.abs(base - knots[place]))
    return np.unique(np.concatenate([knots, base[off > np.gradient(base) / 4]]))


# coefficients of s̈ and speeds below this share of the largest are rounding
TIMING_RTOL = 1e-13
# rate of the path, as a share of its largest, below which it is at rest
STANDSTILL_RTOL = 1e-4
# iterations on terms with the speed at the end of an interval, and their relative tolerance
ITERATIONS_MAX, SPEED_RTOL = 40, 1e-10
# violation of a limit, as a share of it, that exceeds rounding
VIOLATION_RTOL = 1e-6
# relative distance of a speed outside a range that is rounding
TIMING_RANGE_RTOL = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class TimeOptimal(Printable):
    """Time-optimal motion along a path; made by `fastest`.

    Attributes
    ----------
    trajectory : Trajectory
        The motion in time.
    s : (L + 1,)
        Path parameter at the ends of the intervals.
    t : (L + 1,)
        Times at these points.
    speed : (L + 1,)
        ṡ at these points.
    acceleration : (L,)
        s̈ on each interval.
    names : tuple of str
        Label of each of R limits.
    values, lower, upper : (L, 2, R)
        Limited quantities at the start and the end of each interval, and their limits.
    excess : float
        Largest violation of limits in the middle of intervals, as a share of the limits.
    """

    _one_line = ("names",)

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
        """Distance of each value from its limits (L, 2, R), as a share of the limits; negative outside."""
        return _slack(self.values, self.lower, self.upper)

    @property
    def binding(self) -> tuple[str, ...]:
        """Label of the active limit on each of the L intervals: the limit with the least slack."""
        return tuple(self.names[n] for n in np.argmin(self.slack.min(axis=1), axis=1).tolist())

    def summary(self) -> Summary:
        """Return a summary of the active limits."""
        sheet = Summary(
            f"time-optimal motion: duration {self.trajectory.duration:.6g}, {len(self.acceleration)} "
            f"intervals, relative excess of limits {max(0.0, -float(self.slack.min())):.1e} at grid points, "
            f"{self.excess:.1e} between"
        )
        bound, time = np.array(self.binding), np.diff(self.t)
        names = list(dict.fromkeys(name for name in self.names if name in bound))
        cells = np.array([[time[bound == name].sum() / self.t[-1]] for name in names])
        sheet.matrix("active limits, and their share of the time", names, ["share"], cells)
        return sheet


def fastest(
    path: Trajectory,
    mechanism: Mechanism | None = None,
    *,
    rate_limits: Any = None,
    acceleration_limits: Any = None,
    effort_limits: Any = None,
    voltage_limits: Any = None,
    actuators: str | Iterable[str] | None = None,
    rows: ConstraintFactory | Iterable[ConstraintFactory] = (),
    near: Configuration | None = None,
    start_speed: float = 0.0,
    end_speed: float = 0.0,
    grid: int = 201,
) -> TimeOptimal:
    """Return the time-optimal motion along a path within limits.

    Parameters
    ----------
    path : Trajectory
        The path; its timing is ignored. It must be smooth and never at rest, as made by `line`, or by
        `spline` with ``ends="free"``.
    mechanism : Mechanism, optional
        The mechanism, open or closed, needed for limits of efforts, voltages and other rows.
    rate_limits, acceleration_limits, effort_limits : float, (M,) or (2, M) array_like, or dict to those
        One limit for all magnitudes, one for each, or lower and upper limits; a dict may omit names. Rate and
        acceleration limits may name any rows of the mechanism, such as motors for a path of the tool. Effort
        limits may name `actuators` of the mechanism. True selects the limits of the description,
        `Mechanism.effort_limits` and `Mechanism.rate_limits`.
    voltage_limits : float, (K,) or (2, K) array_like, or dict of str to those, optional
        Limits of the motor voltages, by name or in the order of the description, with as many motors as
        degrees of freedom. Rotors, damping and friction are included. Motors with inductance raise an error:
        accelerations of the fastest motion jump, but currents in an inductance cannot. Omit the inductance,
        ``replace(motor, inductance=0.0)``, or scale a smooth motion by `uniform`.
    actuators : str or list of str, optional
        Rows at which efforts act; by default the coordinates of the path, or the actuators of the mechanism
        if `effort_limits` names others. With more actuators than degrees of freedom, some efforts within the
        limits must produce the motion; `Configuration.distribute` chooses among them.
    rows : callable or list of those, optional
        Further limits: functions of a `PathSamples` that return `PathConstraints`.
    near : Configuration, optional
        Start of the continuation to the first configuration; by default the reference configuration.
    start_speed, end_speed : float
        ṡ at both ends, at rest by default.
    grid : int
        Number of points of the path at which limits hold, in addition to its knots; they are denser at the
        ends. The error of the minimum time is of first order in the interval: about one percent for efforts
        of an arm on a winding path, less on a straight path. Between the points limits may be exceeded by an
        amount of second order, given by ``excess``. To respect them everywhere, lower them by this amount, or
        take a finer grid.

    Raises
    ------
    InputError
        If the path comes to rest or has a corner, nothing limits the accelerations, or the limits cannot be
        met; the message names the limit and the position.

    Examples
    --------
    >>> straight = kic.trajectory.line({"tip.x": 0.0}, {"tip.x": 1.0})
    >>> best = kic.trajectory.fastest(straight, acceleration_limits=1.0)
    >>> round(best.trajectory.duration, 12), best.binding[0]
    (2.0, 'acceleration of tip.x')

    Limit the joints of an arm whose tip moves along a line:

    >>> arm = kic.load("horn-two-link")
    >>> reach = kic.trajectory.line({"tip.x": 1.0, "tip.y": 1.0}, {"tip.x": 1.5, "tip.y": 1.0})
    >>> near = arm.at([0.3, 1.0])
    >>> limits = {"effort_limits": {"shoulder": 50.0}, "rate_limits": {"elbow": 2.0}}
    >>> kic.trajectory.fastest(reach, arm, **limits, near=near).names
    ('velocity of elbow', 'effort of shoulder')
    """
    check_duration("path", path)
    ends = [at_least("start_speed", start_speed, 0.0), at_least("end_speed", end_speed, 0.0)]
    s = grid_points(path, integer("grid", grid, 3), clustered=True)
    of = pc.sample_path(path, mechanism, near, np.sort(np.concatenate([s, (s[1:] + s[:-1]) / 2])))
    _check_moving(of)
    factories = pc.constraint_factories(rows)
    if voltage_limits is not None:
        factories.append(pc.voltage_rows(mechanism, voltage_limits))
    limits, middle = _ends_and_middles(
        pc.path_constraints(of, rate_limits, acceleration_limits, effort_limits, actuators, factories)
    )
    if not (np.abs(limits.A) > 0).any():
        raise InputError(
            "No limit restricts the accelerations. Give `acceleration_limits`, `effort_limits`, "
            "`voltage_limits`, or `rows` with nonzero A. With `rate_limits` alone, the speed would be "
            "discontinuous.",
            key="limits",
        )
    phase = _Phase(s, limits, ends[1])
    v = phase.solve(ends[0])
    dt = 2 * np.diff(s) / (v[1:] + v[:-1])
    u = (v[1:] - v[:-1]) / dt
    t = np.concatenate([[0.0], np.cumsum(dt)])
    # share of each interval as a polynomial of the share of its time
    begun = v[:-1] * dt / np.diff(s)
    share = np.stack([np.zeros_like(begun), begun, 1 - begun], axis=1)
    timed = Trajectory(path.pieces.refined(s).clocked(t, share), path.naming)
    values = _values(limits, np.stack([v[:-1], v[1:]], axis=1), u)
    inside = _values(middle, np.sqrt((v[:-1] ** 2 + v[1:] ** 2) / 2)[:, None], u)
    excess = max(0.0, -float(_slack(inside, middle.lower, middle.upper).min(initial=0.0)))
    found = TimeOptimal(timed, s, t, v, u, limits.names, values, limits.lower, limits.upper, excess)
    worst = float(found.slack.min())
    if worst < -VIOLATION_RTOL:
        raise InputError(
            f"The iteration on terms with ṡ did not converge: the relative excess of limits is "
            f"{-worst:.1e}. Use a finer grid.",
            excess=-worst,
        )
    return found


def _ends_and_middles(rows: PathConstraints) -> tuple[PathConstraints, PathConstraints]:
    """Return constraints at the ends of intervals, and in their middles, from those of half intervals."""
    parts = [np.asarray(a) for a in (rows.A, rows.B, rows.C, rows.D, rows.lower, rows.upper)]
    ends = [np.stack([a[::2, 0], a[1::2, 1]], axis=1) for a in parts]
    middles = [np.stack([a[::2, 1], a[1::2, 0]], axis=1) for a in parts]
    return PathConstraints(rows.names, *ends), PathConstraints(rows.names, *middles)


def _values(rows: PathConstraints, speed: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the limited quantities (L, 2, R) for speeds (L, 2) or (L, 1) and accelerations (L,)."""
    v = speed[:, :, None]
    values: np.ndarray = rows.A * u[:, None, None] + rows.B * v**2 + rows.C * v + rows.D
    return values


def _slack(values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the distance of values from their limits, as a share of the limits; negative outside."""
    size = np.maximum(*(np.where(np.isfinite(a), np.abs(a), 0.0) for a in (lower, upper)))
    slack: np.ndarray = np.minimum(upper - values, values - lower) / np.where(size > 0, size, 1.0)
    return slack


def _check_moving(of: PathSamples) -> None:
    """Raise `InputError` if a path comes to rest, where its parameter defines no direction."""
    size = np.abs(of.first).max(axis=(0, 1), initial=0.0)
    if not size.any():
        raise InputError("The path has zero length, so it cannot be time-parameterized.", key="path")
    rate = (np.abs(of.first) / np.where(size > 0, size, 1.0)).max(axis=2)
    if rate.min() < STANDSTILL_RTOL * rate.max():
        k, end = np.unravel_index(int(np.argmin(rate)), rate.shape)
        raise InputError(
            f"The path is at rest at {of.s[k + end]:.4g}. Give a path that keeps moving, such as line() or "
            "spline(…, ends='free'), and time the parts between stops separately.",
            key="path",
            s=float(of.s[k + end]),
        )


class _Phase:
    """Constraints in the phase plane of s and ṡ."""

    def __init__(self, s: np.ndarray, rows: PathConstraints, end: float) -> None:
        self.s, self.step, self.rows, self.end = s, np.diff(s), rows, end
        self.lower, self.upper = rows.lower.copy(), rows.upper.copy()
        # limits of the speed alone apply at the start of the next interval
        state = ~(rows.A.any(axis=(0, 1)) | rows.B.any(axis=(0, 1)))
        for a in (rows.C, rows.D, rows.lower, rows.upper):
            state &= np.isclose(a[1:, 0], a[:-1, 1], rtol=TIMING_RANGE_RTOL, atol=0).all(axis=0)
        self.lower[:-1, 1, state], self.upper[:-1, 1, state] = -np.inf, np.inf
        self.late = np.where(state, 0.0, rows.C[:, 1])
        self.late[-1] = 0.0
        self._set(rows.C[:, 1] * (np.arange(len(self.step)) < len(self.step) - 1)[:, None], 0.0, 0.0)

    def _set(self, slope: Any, constant: Any, square: Any) -> None:
        """Replace C ṡ at the ends of intervals by constant + slope v + square w².

        There, the speed w is not a polynomial in s̈ and the initial speed v: w² = v² + 2 Δ s̈.
        """
        r = self.rows
        constant = constant + r.D[:, 1]
        constant[-1] += r.C[-1, 1] * self.end
        square = r.B[:, 1] + square
        A = np.stack([r.A[:, 0], r.A[:, 1] + 2 * self.step[:, None] * square], axis=1)
        small = np.abs(A) <= TIMING_RTOL * np.abs(A).max(axis=(0, 1), initial=0.0)
        self.A = np.where(small, 0.0, A)
        first = np.stack([r.D[:, 0], r.C[:, 0], r.B[:, 0]], axis=-1)
        last = np.stack([constant, np.broadcast_to(slope, constant.shape), square], axis=-1)
        self.motion = np.stack([first, last], axis=1)

    def _linearize(self, v: np.ndarray) -> None:
        """Replace the speed w at the ends of intervals by the tangent of √w² at speeds (L + 1,)."""
        w = v[1:, None]
        moves = w > TIMING_RTOL * v.max()  # at rest the term vanishes
        C, at = np.where(moves, self.late, 0.0) / 2, np.where(moves, w, 1.0)
        self._set(0.0, C * at, C / at)

    def solve(self, start: float) -> np.ndarray:
        """Return the speeds (L + 1,) of the time-optimal motion."""
        v = self._forward_pass(start, self._backward_pass())
        for _ in range(ITERATIONS_MAX if self.late.any() else 0):
            self._linearize(v)
            before, v = v, self._forward_pass(start, self._backward_pass())
            if np.abs(v - before).max() <= SPEED_RTOL * v.max():
                break
        return v

    def _bounds(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return upper and lower bounds of s̈ on an interval, and terms that must be ≥ 0, by powers of v."""
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

    def _backward_pass(self) -> list[np.ndarray]:
        """Return ranges of speed (n, 2) at each point from which the end can be reached."""
        ranges = [np.array([[self.end, self.end]])]
        for k in range(len(self.step) - 1, -1, -1):
            above, below, plain = self._bounds(k)
            double, found = 2 * self.step[k], []
            for low, high in ranges[-1].tolist():
                tops = above
                if high < np.inf:
                    tops = np.concatenate([above, [[high * high / double, 0.0, -1 / double]]])
                floors = np.concatenate([below, [[low * low / double, 0.0, -1 / double]]])
                with np.errstate(invalid="ignore"):  # squares of speeds that overflow leave no range
                    pairs = (tops[:, None] - floors).reshape(-1, 3)
                found.append(allowed(*np.concatenate([pairs, plain]).T))
            ranges.append(united(found))
            if not len(ranges[-1]):
                self._raise_infeasible(k)
        return ranges[::-1]

    def _forward_pass(self, start: float, ranges: list[np.ndarray]) -> np.ndarray:
        """Return the highest reachable speeds (L + 1,) from which the end can be reached."""
        near = ranges[0] * (1 + np.array([-TIMING_RANGE_RTOL, TIMING_RANGE_RTOL]))
        if not ((near[:, 0] <= start) & (start <= near[:, 1])).any():
            self._raise_at_start(start, ranges[0])
        v = [start]
        for k, step in enumerate(self.step.tolist()):
            above, below, _ = self._bounds(k)
            powers = np.array([1.0, v[-1], v[-1] ** 2])
            high = v[-1] ** 2 + 2 * step * np.min(above @ powers, initial=np.inf)
            low = v[-1] ** 2 + 2 * step * np.max(below @ powers, initial=-np.inf)
            squares = ranges[k + 1] ** 2
            # rounding may put the speed slightly outside its range
            met = np.minimum(squares[:, 1], max(high, low)), np.maximum(squares[:, 0], min(high, low))
            gap = np.maximum(met[1] - met[0], 0.0)
            best = int(np.flatnonzero(gap <= max(TIMING_RANGE_RTOL * squares.max(), gap.min()))[-1])
            x = max(float(met[0][best]), float(squares[best, 0]))
            if x == np.inf:
                raise InputError(
                    f"Nothing limits the speed at s = {self.s[k + 1]:.4g}. Give limits for coordinates that "
                    "move.",
                    key="limits",
                    s=float(self.s[k + 1]),
                )
            v.append(float(np.sqrt(max(x, 0.0))))
            if not v[-1] + v[-2] > 0:
                raise InputError(
                    f"The limits allow no motion between s = {self.s[k]:.4g} and {self.s[k + 1]:.4g}. "
                    "Relax the limits, or use another path.",
                    key="limits",
                    s=float(self.s[k]),
                )
        return np.array(v)

    def _raise_infeasible(self, k: int) -> None:
        why = pc.static_violation(self._at(slice(k, k + 1)), self.s[k : k + 2], "s")
        if why is None:
            why = f"from s = {self.s[k]:.4g} no speed reaches the end with ṡ = {self.end:g}"
        raise InputError(
            f"The limits cannot be met: {why}. Relax the limits, or use another path.",
            key="limits",
            s=float(self.s[k]),
        )

    def _raise_at_start(self, start: float, ranges: np.ndarray) -> None:
        why = pc.static_violation(self._at(slice(0, 1)), self.s[:2], "s")
        can = " or ".join(f"{low:.5g} to {high:.5g}" for low, high in ranges.tolist())
        raise InputError(
            f"The path cannot start with ṡ = {start:.5g}"
            + (f": {why}." if why else ".")
            + f" The end can be reached from ṡ = {can}.",
            key="start_speed",
            got=start,
            ranges=ranges,
        )

    def _at(self, interval: slice) -> PathConstraints:
        r = self.rows
        parts = (np.asarray(a)[interval] for a in (r.A, r.B, r.C, r.D, r.lower, r.upper))
        return PathConstraints(r.names, *parts)
