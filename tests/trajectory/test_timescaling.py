"""Time scaling: closed forms, a linear program, and limits recomputed on the timed motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import raises
from sampling import mismatch
from scipy.optimize import brentq, linprog

import kic
from kic import trajectory as tr
from kic.numerics.polynomials import allowed, united
from kic.trajectory.path_constraints import path_constraints, sample_path
from kic.trajectory.timing import grid_points

ARM = kic.load("horn-two-link")
FREE = replace(ARM, gravity=(0.0, 0.0, 0.0))
VIA = np.array([[-1.2, 0.3], [-0.4, 1.0], [0.2, 0.6], [0.5, 1.2], [0.9, 0.7], [1.2, 1.5]])
PATH = tr.spline(VIA, ends="free")
LIMITS = np.array([60.0, 20.0])


def slider(damping: float = 0.0, gravity: float = 0.0) -> kic.Mechanism:
    """A mass of 2 on a vertical rail."""
    return kic.Mechanism(
        "slider",
        [kic.Body("mass", mass=2.0, com=(0, 0, 0), inertia=(1.0, 1.0, 1.0))],
        [kic.Joint("A", "prismatic", ("ground", "mass"), at=(0, 0, 0), axis=(0, 0, 1), damping=damping)],
        gravity=(0, 0, -gravity),
    )


# quadratics


def test_nonnegative_intervals_of_quadratics() -> None:
    """Comparison with signs at many points, in all degenerate cases."""
    rng = np.random.default_rng(0)
    v = np.linspace(0, 4, 4001)
    for _ in range(300):
        c = rng.choice([-1.0, 0.0, 1.0, 2.0], size=(3, 3)) * rng.choice([1.0, 0.3], size=(3, 3))
        room = allowed(*c)
        there = (c[0][:, None] + c[1][:, None] * v + c[2][:, None] * v * v >= 0).all(axis=0)
        inside = ((room[:, :1] <= v) & (v <= room[:, 1:])).any(axis=0)
        edges = np.abs(room.reshape(-1, 1) - v).min(axis=0, initial=np.inf) < 1e-9
        roots = np.concatenate([np.roots(p[::-1]) for p in c.T])
        edges |= np.abs(roots[:, None] - v).min(axis=0, initial=np.inf) < 1e-6
        assert ((there == inside) | edges).all()


def test_touching_quadratics_and_unions() -> None:
    assert allowed(np.zeros(1), np.zeros(1), -np.ones(1)).tolist() == [[0.0, 0.0]]
    assert allowed(-np.ones(1), np.zeros(1), -np.ones(1)).shape == (0, 2)
    assert allowed(np.array([-1.0, 1.0]), np.zeros(2), np.array([1.0, -1.0])).tolist() == [[1.0, 1.0]]
    assert united([np.array([[3.0, 4.0]]), np.array([[0.0, 1.0], [0.5, 2.0]])]).tolist() == [[0, 2], [3, 4]]
    assert united([]).shape == (0, 2)


# uniform


def test_kinematic_limits_in_closed_form() -> None:
    t = tr.quintic([0.0, 1.0], [1.0, -1.0], 10.0)
    assert tr.uniform(t, rate_limits=[1e9, 3.75]).duration == pytest.approx(1.0, rel=1e-12)
    assert tr.uniform(t, acceleration_limits=10 / np.sqrt(3)).duration == pytest.approx(
        np.sqrt(2.0), rel=1e-12
    )
    assert tr.uniform(t, jerk_limits=[60.0, 1e9]).duration == pytest.approx(1.0, rel=1e-12)
    both = tr.uniform(t, rate_limits=1.0, acceleration_limits=2.0, jerk_limits=500.0)
    reached = [np.abs(both.extremes(k)).max() / limit for k, limit in ((1, 1.0), (2, 2.0), (3, 500.0))]
    assert max(reached) == pytest.approx(1.0, rel=1e-12)
    one_way = tr.uniform(t, rate_limits=[[-1e9, -0.5], [1e9, 0.0]])
    assert one_way.extremes(1)[0][1] == pytest.approx(-0.5, rel=1e-12)


def test_efforts_scale_with_speed_squared_without_gravity() -> None:
    t = tr.quintic([0.0, 0.5], [1.0, 1.5], 1.0)
    T = t.on(FREE, 201).effort()
    k = np.sqrt((np.abs(T) / LIMITS).max())
    fast = tr.uniform(t, FREE, effort_limits=LIMITS)
    assert fast.duration == pytest.approx(k, rel=1e-12)
    assert mismatch(fast.on(FREE, 201).effort() * k**2, T) < 1e-12


@pytest.mark.parametrize("damping", [0.0, 3.0])
def test_uniform_reaches_the_effort_limit_with_gravity(damping: float) -> None:
    m = replace(ARM, joints=[replace(j, damping=damping) for j in ARM.joints])
    t = tr.septic([-0.5, 0.5], [1.0, 1.5], 1.0)
    fast = tr.uniform(t, m, effort_limits=LIMITS)
    assert (np.abs(fast.on(m, 201).effort()) / LIMITS).max() == pytest.approx(1.0, rel=1e-12)
    faster = fast.scaled(1 / 1.001)
    assert (np.abs(faster.on(m, 201).effort()) / LIMITS).max() > 1.0


def test_uniform_in_other_coordinates_and_by_actuators() -> None:
    m = kic.load("five-bar")
    c = m.at()
    tip = {x: c.value(x) for x in ("tip.x", "tip.y")}
    t = tr.quintic(tip, {"tip.x": tip["tip.x"] + 0.1, "tip.y": tip["tip.y"] - 0.05}, 1.0)
    fast = tr.uniform(t, m, effort_limits={"A": 0.7, "E": (-0.4, 0.5)}, actuators=["A", "E"])
    T = fast.on(m, 201).effort(actuators=["A", "E"])
    shares = np.stack([T[:, 0] / 0.7, -T[:, 0] / 0.7, T[:, 1] / 0.5, -T[:, 1] / 0.4])
    assert shares.max() == pytest.approx(1.0, rel=1e-9)


# fastest


@pytest.mark.parametrize("d", [1.0, 0.01, 300.0])
def test_bang_bang_double_integrator(d: float) -> None:
    """The double integrator accelerates for half of the path and decelerates for the other half."""
    for duration in (1.0, 7.0):
        best = tr.fastest(tr.line([0.0], [d], duration), acceleration_limits=3.0)
        assert best.trajectory.duration == pytest.approx(2 * np.sqrt(d / 3.0), rel=1e-12)
        assert mismatch(best.trajectory(best.trajectory.duration / 2).q, np.array([d / 2])) < 1e-12
        assert np.abs(np.abs(best.trajectory.extremes(2)) - 3.0).max() < 1e-9


def test_velocity_limit_gives_the_trapezoid() -> None:
    exact = tr.trapezoid([0.0, 1.0], [2.0, 0.0], rate_limits=[1.0, 9.0], acceleration_limits=2.0).duration
    off = []
    for grid in (51, 101, 201):
        best = tr.fastest(
            tr.line([0.0, 1.0], [2.0, 0.0]), rate_limits=[1.0, 9.0], acceleration_limits=2.0, grid=grid
        )
        off.append(best.trajectory.duration / exact - 1)
        assert best.slack.min() > -1e-12
    assert min(off) > -1e-12
    assert max(off[2], 0) < 1e-4


@pytest.mark.slow
def test_speeds_at_the_ends() -> None:
    """From 1 to 2 within 1, over a way of 10: up to v and down, v² = (1 + 4 + 2·10) / 2."""
    best = tr.fastest(
        tr.line([0.0], [10.0], 10.0), acceleration_limits=1.0, start_speed=1.0, end_speed=2.0, grid=801
    )
    v = np.sqrt(12.5)
    assert best.trajectory([0.0, best.trajectory.duration]).qd[:, 0] == pytest.approx([1.0, 2.0], rel=1e-9)
    assert best.trajectory.duration == pytest.approx((v - 1) + (v - 2), rel=1e-5)


@pytest.mark.slow
def test_lifted_weight() -> None:
    """Up with F/m − g, and the brake −F/m − g."""
    best = tr.fastest(tr.line([0.0], [1.5]), slider(gravity=10.0), effort_limits=30.0, grid=2001)
    up, down = 30 / 2 - 10, 30 / 2 + 10
    v = np.sqrt(2 * 1.5 * up * down / (up + down))
    assert best.trajectory.duration == pytest.approx(v / up + v / down, rel=1e-5)
    assert best.slack.min() > -1e-12


@pytest.mark.slow
def test_damped_mass() -> None:
    """m u = ±F − b v, switched where both halves meet: against the integrals in closed form."""
    m, b, F, d = 2.0, 1.5, 4.0, 3.0
    tau, end = m / b, F / b

    def ways(t: float) -> tuple[float, float]:
        """Way done faster for t and then slower to rest, and the whole time."""
        v = end * (1 - np.exp(-t / tau))
        first = end * (t - tau * (1 - np.exp(-t / tau)))
        stop = tau * np.log((v + end) / end)
        second = (v + end) * tau * (1 - np.exp(-stop / tau)) - end * stop
        return first + second, t + stop

    exact = ways(brentq(lambda t: ways(t)[0] - d, 0.1, 10.0, xtol=1e-14))[1]
    off = []
    for grid in (101, 201, 401):
        best = tr.fastest(tr.line([0.0], [d]), slider(damping=b), effort_limits=F, grid=grid)
        off.append(best.trajectory.duration / exact - 1)
        assert best.slack.min() > -1e-9
        # one actuator: it is saturated on every interval but that of the switch
        assert (best.slack.min(axis=(1, 2)) > 1e-9).sum() <= 2
    assert 0 < off[2] < off[1] < off[0] < 0.02
    assert off[2] < 0.6 * off[1]


def highest(path: tr.Trajectory, m: kic.Mechanism, s: np.ndarray, **limits: object) -> np.ndarray:
    """Speeds whose squares have the largest sum, by one linear program over the whole path."""
    rows = path_constraints(sample_path(path, m, None, s), **limits)
    n, h = len(s), np.diff(s)
    # of the squares: s̈ on each interval and ṡ² at both of its ends
    U = (np.eye(n)[1:] - np.eye(n)[:-1]) / (2 * h[:, None])
    ends = np.stack([np.eye(n)[:-1], np.eye(n)[1:]], axis=1)
    M = rows.A[..., None] * U[:, None, None] + rows.B[..., None] * ends[:, :, None]
    found = linprog(
        -np.ones(n),
        A_ub=np.concatenate([M, -M]).reshape(-1, n),
        b_ub=np.concatenate([rows.upper - rows.D, rows.D - rows.lower]).reshape(-1),
        bounds=[(0, 0), *[(0, None)] * (n - 2), (0, 0)],
        method="highs-ds",
    )
    assert found.success
    return np.sqrt(found.x)


def test_profile_is_optimal_on_the_grid() -> None:
    """If no row is without inertia, the speed at each point is the highest of all profiles on the grid."""
    m = kic.load("five-bar")
    q = np.array([m.at().value(x) for x in ("A", "E")])
    path = tr.line(q, q + np.array([0.5, 0.2]))
    best = tr.fastest(path, m, effort_limits=[1.0, 0.9], grid=61)
    assert mismatch(best.speed, highest(path, m, best.s, effort=[1.0, 0.9])) < 1e-9


@pytest.mark.slow
def test_time_matches_dynamic_programming() -> None:
    """The minimum time over a mesh of the phase plane, with limits at both ends of each step."""
    m = kic.load("five-bar")
    q = np.array([m.at().value(x) for x in ("A", "E")])
    path, limit = tr.line(q, q + np.array([0.5, 0.2])), np.array([1.0, 0.9])
    best = tr.fastest(path, m, effort_limits=limit, grid=41)
    s, h = best.s, np.diff(best.s)
    course = path.on(m, s)
    # efforts straight from the dynamics: parts with s̈, with ṡ², and at rest
    d, way = course.configuration.dynamics(), course.motion.qd
    rest = d.inverse_dynamics(0 * way, 0 * way)
    assert not d.damping.any()
    A, B = d.inverse_dynamics(0 * way, way) - rest, d.inverse_dynamics(way, 0 * way) - rest
    w = np.linspace(0, 1.05 * best.speed.max() ** 2, 801)  # of the speed, squared
    left = np.where(w == 0, 0.0, np.inf)
    for k in range(len(h) - 1, -1, -1):
        u = (w - w[:, None]) / (2 * h[k])  # from rows to columns
        fits = np.ones(u.shape, dtype=bool)
        for end, b in ((k, w[:, None]), (k + 1, w)):
            for n in range(2):
                fits &= np.abs(A[end, n] * u + B[end, n] * b + rest[end, n]) <= limit[n] * (1 + 1e-12)
        with np.errstate(divide="ignore"):
            took = 2 * h[k] / (np.sqrt(w) + np.sqrt(w)[:, None])
        left = np.where(fits, took + left, np.inf).min(axis=1)
    # no way through the mesh is faster, and one comes near
    assert best.trajectory.duration < left[0] * (1 + 1e-9)
    assert left[0] < best.trajectory.duration * 1.02


def test_rows_without_inertia() -> None:
    """Where the factor of s̈ in a row vanishes, the highest speed may reduce the next; less on finer grids."""
    lost = []
    for grid in (41, 161):
        best = tr.fastest(PATH, ARM, effort_limits=LIMITS, grid=grid)
        v = highest(PATH, ARM, best.s, effort=LIMITS)
        lost.append(best.trajectory.duration / (2 * np.diff(best.s) / (v[1:] + v[:-1])).sum() - 1)
    assert abs(lost[0]) < 3e-3
    assert abs(lost[1]) < abs(lost[0]) / 10


@pytest.mark.slow
def test_one_actuator_is_always_saturated() -> None:
    """Except on intervals where the active actuator changes; their number does not grow with the grid."""
    over, idle = [], []
    for grid in (101, 401):
        best = tr.fastest(PATH, ARM, effort_limits=LIMITS, grid=grid)
        slack = best.slack.min(axis=(1, 2))
        assert slack.min() > -1e-12
        assert (slack > 1e-9).sum() <= 8
        # the efforts of the motion are those of the result, also inside the intervals
        t = best.trajectory
        T = np.abs(t.on(ARM, np.linspace(0, t.duration, 1501)).effort()) / LIMITS
        over.append(T.max() - 1)
        idle.append(1 - np.median(T.max(axis=1)))
    assert over[1] < min(3e-3, over[0] / 4)
    assert idle[1] < min(0.01, idle[0] / 3)
    # s̈ is that of the interval which begins there
    k = np.flatnonzero(np.diff(best.t) > 1e-6)
    at = t.on(ARM, best.t[k] + 1e-9).effort()
    assert mismatch(at, best.values[k, 0]) < 1e-5


@pytest.mark.slow_for("201")
@pytest.mark.parametrize("grid", [51, 201])
def test_limit_violation_between_points(grid: int) -> None:
    """The violation in the middles equals the one of dense samples, for efforts and kinematic limits."""
    best = tr.fastest(PATH, ARM, effort_limits=LIMITS, grid=grid)
    t = best.trajectory
    share = np.linspace(0.05, 0.95, 9)[:, None]
    inside = (best.t[:-1] + share * np.diff(best.t)).ravel(order="F")
    passed = (np.abs(t.on(ARM, inside).effort()) / LIMITS).max() - 1
    assert 0.5 * passed < best.excess <= passed * 1.001
    assert f"{best.excess:.1e} between" in best.summary().text()
    smooth = tr.fastest(PATH, rate_limits=3.0, acceleration_limits=7.0, grid=grid)
    most = [np.abs(smooth.trajectory.extremes(k)).max() / limit - 1 for k, limit in ((1, 3.0), (2, 7.0))]
    assert 0.5 * max(most) < smooth.excess <= max(most) * 1.001
    assert tr.fastest(STRAIGHT, acceleration_limits=1.0, grid=grid).excess < 1e-12


def test_values_match_the_timed_trajectory() -> None:
    best = tr.fastest(PATH, rate_limits=3.0, acceleration_limits=7.0, grid=51)
    t = best.trajectory
    for order, span in ((1, slice(0, 2)), (2, slice(2, 4))):
        start, end = t.pieces.end_derivatives(order)
        assert mismatch(best.values[:, :, span], np.stack([start, end], axis=1)) < 1e-9
    assert mismatch(t(best.t).q, PATH(best.s).q) < 1e-12
    assert best.names[:3] == (
        "velocity of coordinate 1",
        "velocity of coordinate 2",
        "acceleration of coordinate 1",
    )
    assert set(best.binding) <= set(best.names)
    assert "active limits" in best.summary().text()


@pytest.mark.parametrize("actuators", [None, ["A", "E"]])
def test_closed_mechanism_in_tip_coordinates(actuators: list[str] | None) -> None:
    m = kic.load("five-bar")
    c = m.at()
    tip = {x: float(c.value(x)) for x in ("tip.x", "tip.y")}
    path = tr.line(tip, {"tip.x": tip["tip.x"] + 0.1, "tip.y": tip["tip.y"] - 0.05})
    limit = {"A": 1.0, "E": 0.8} if actuators else {"tip.x": 3.0, "tip.y": 4.0}
    best = tr.fastest(path, m, effort_limits=limit, actuators=actuators, grid=101)
    T = np.abs(best.trajectory.on(m, 301).effort(actuators=actuators)) / np.array(list(limit.values()))
    assert T.max() < 1 + 1e-3
    assert np.median(T.max(axis=1)) > 1 - 2e-3


@pytest.mark.slow
def test_voltage_limits_as_rows() -> None:
    """Motors without inductance: V = R T / k + k q̇; a finer grid finds a shorter time."""
    R, k, top = 0.4, 2.0, 12.0

    def voltage(of: tr.PathSamples) -> tr.PathConstraints:
        names, A, B, C, D = of.terms()
        said = tuple(f"voltage of {name}" for name in names)
        return tr.PathConstraints(said, R / k * A, R / k * B, R / k * C + k * of.first, R / k * D, -top, top)

    durations = []
    for grid in (51, 101, 201):
        best = tr.fastest(PATH, ARM, rows=voltage, grid=grid)
        assert best.slack.min() > -1e-9
        assert (best.slack.min(axis=(1, 2)) > 1e-6).sum() <= 6
        durations.append(best.trajectory.duration)
    assert durations[0] > durations[1] > durations[2]
    t = best.trajectory
    course = t.on(ARM, np.linspace(0, t.duration, 801))
    V = R / k * course.effort() + k * course.motion.qd
    assert np.abs(V).max() < top * (1 + 2e-3)
    slow = tr.uniform(tr.quintic(VIA[0], VIA[-1], 1.0), ARM, rows=[voltage])
    course = slow.on(ARM, 201)
    assert np.abs(R / k * course.effort() + k * course.motion.qd).max() == pytest.approx(top, rel=1e-12)


def test_terms_that_do_not_converge_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kic.trajectory.timing.ITERATIONS_MAX", 0)
    with raises(kic.InputError, excess=pytest.approx(0.131, abs=1e-3)):
        tr.fastest(tr.line([0.0], [3.0]), slider(damping=1.5), effort_limits=4.0, grid=21)


@pytest.mark.slow
def test_several_ranges_of_speed() -> None:
    """A row forbids speeds from 1 to 2 between s = 0.4 and 0.6; the solution passes above."""

    def gap(of: tr.PathSamples) -> tr.PathConstraints:
        s = of.both(of.s)
        shut = (s > 0.4) & (s < 0.6)
        # (v − 1)(v − 2) ≥ 0
        return tr.PathConstraints(
            ("gap",), B=1.0, C=-3.0, D=2.0, lower=np.where(shut, 0.0, -np.inf)[..., None]
        )

    fast = tr.fastest(tr.line([0.0], [1.0]), acceleration_limits=8.0, rows=gap)
    there = (fast.s > 0.4) & (fast.s < 0.6)
    assert (fast.speed[there] >= 2 - 1e-9).all()
    slow = tr.fastest(tr.line([0.0], [1.0]), acceleration_limits=4.0, rows=gap)
    assert (slow.speed[there] <= 1 + 1e-9).all()


def test_grid_includes_the_knots() -> None:
    for clustered in (True, False):
        s = grid_points(PATH, 51, clustered)
        assert np.isin(PATH.knots, s).all()
        assert (np.diff(s) > 0).all()
        assert 45 <= len(s) <= 56


CORNER = tr.hermite([[0.0], [1.0], [0.0]], [0.0, 1.0, 2.0], [[1.0], [0.0], [1.0]])
STRAIGHT = tr.line([0.0], [1.0])
AT_REST = tr.trapezoid([0.0], [0.0], rate_limits=1.0, acceleration_limits=1.0)


def bad(**changes: object) -> object:
    return lambda of: tr.PathConstraints(("odd",), **changes)  # type: ignore[arg-type]


ERRORS = [
    ({"key": "path"}, lambda: tr.fastest([0.0, 1.0], acceleration_limits=1.0)),  # type: ignore[arg-type]
    ({"key": "path"}, lambda: tr.fastest(AT_REST, acceleration_limits=1.0)),
    ({"key": "trajectory"}, lambda: tr.uniform(AT_REST, rate_limits=1.0)),
    ({"key": "path"}, lambda: tr.fastest(tr.line([0.0], [0.0]), acceleration_limits=1.0)),
    ({"key": "path", "s": 0.0}, lambda: tr.fastest(tr.quintic([0.0], [1.0], 1.0), acceleration_limits=1.0)),
    ({"key": "path", "s": 1.0}, lambda: tr.fastest(CORNER, acceleration_limits=1.0)),
    ({"key": "path", "name": "coordinate 1"}, lambda: tr.fastest(
        tr.Trajectory(tr.concatenate([STRAIGHT, tr.line([1.0], [2.0])]).pieces.__class__(
            np.array([0.0, 1.0, 2.0]), np.array([[[0.0], [1.0]], [[1.0], [3.0]]])), STRAIGHT.naming),
        acceleration_limits=1.0)),
    ({"key": "limits"}, lambda: tr.fastest(STRAIGHT, rate_limits=1.0)),
    ({"key": "limits"}, lambda: tr.uniform(STRAIGHT, acceleration_limits=1.0)),
    ({"key": "limits", "s": pytest.approx(0.0, abs=1e-4)}, lambda: tr.fastest(
        STRAIGHT, rows=lambda of: tr.PathConstraints(
        ("push",), A=of.first, lower=np.where(of.both(of.s)[..., None] < 0.5, -1.0, -np.inf),
        upper=np.where(of.both(of.s)[..., None] < 0.5, np.inf, 1.0)))),
    ({"key": "mechanism"}, lambda: tr.fastest(STRAIGHT, effort_limits=1.0)),
    ({"key": "actuators"}, lambda: tr.fastest(STRAIGHT, actuators="A")),
    ({"key": "start_speed"}, lambda: tr.fastest(STRAIGHT, start_speed=-1.0)),
    ({"key": "grid"}, lambda: tr.fastest(STRAIGHT, acceleration_limits=1.0, grid=2)),
    ({"key": "start_speed"}, lambda: tr.fastest(STRAIGHT, acceleration_limits=1.0, start_speed=9.0)),
    ({"key": "rows", "got": 3}, lambda: tr.uniform(
        STRAIGHT, rate_limits=1.0, rows=3)),  # type: ignore[arg-type]
    ({"key": "mechanism", "got": 3}, lambda: tr.fastest(STRAIGHT, 3, acceleration_limits=1.0)),  # type: ignore[arg-type]
    ({"key": "rows", "got": 3}, lambda: tr.fastest(STRAIGHT, rows=[3])),  # type: ignore[list-item]
    ({"key": "rows", "got": 3}, lambda: tr.fastest(STRAIGHT, rows=lambda of: 3)),  # type: ignore[arg-type, return-value]
    ({"key": "A"}, lambda: tr.fastest(STRAIGHT, rows=bad(A=[1.0, 2.0, 3.0]))),  # type: ignore[arg-type]
    ({"key": "B"}, lambda: tr.fastest(STRAIGHT, rows=bad(B=np.nan))),  # type: ignore[arg-type]
    ({"key": "C"}, lambda: tr.fastest(STRAIGHT, rows=bad(C=np.inf))),  # type: ignore[arg-type]
    ({"key": "lower"}, lambda: tr.fastest(STRAIGHT, rows=bad(lower=1.0, upper=0.0))),  # type: ignore[arg-type]
    ({"key": "path", "got": 1}, lambda: tr.fastest(STRAIGHT, ARM, effort_limits=1.0)),
    ({"key": "limits"}, lambda: tr.fastest(PATH, ARM, effort_limits={"elbow": 1.0})),
    ({"key": "limits"}, lambda: tr.uniform(
        tr.quintic(VIA[0], VIA[1], 1.0), ARM, effort_limits=[5.0, 20.0])),
    ({"key": "limits"}, lambda: tr.uniform(STRAIGHT, rate_limits=[[-1.0], [0.0]])),
    ({"key": "limits"}, lambda: tr.uniform(
        tr.quintic([0.0], [1.0], 1.0), acceleration_limits=[[0.0], [1.0]])),
    ({"key": "limits"}, lambda: tr.fastest(
        STRAIGHT, rate_limits=1.0, acceleration_limits=1.0, end_speed=5.0)),
    ({"key": "limits", "s": pytest.approx(0.4, abs=0.02)}, lambda: tr.fastest(
        STRAIGHT, acceleration_limits=1.0, rows=lambda of: tr.PathConstraints(
            ("stop",), C=1.0, upper=np.where(abs(of.both(of.s) - 0.5) < 0.1, 0.0, 9.0)[..., None]))),
]  # fmt: skip


@pytest.mark.parametrize(("data", "call"), ERRORS)
def test_invalid_arguments_raise(data: dict, call) -> None:
    with raises(kic.InputError, **data):
        call()
