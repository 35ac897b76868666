"""Simulation against closed forms, energy and other coordinates; errors of runs that cannot continue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate
from dynamic_cases import TIGHT, pendulum, top
from raising import raises
from sampling import mismatch
from scipy.special import ellipj, ellipk

import kic
from kic.mechanism.configuration import displacement
from kic.mechanism.evaluator import Motions
from kic.simulation.coordinates import Chart
from kic.simulation.motion import Motion
from kic.simulation.options import METHODS
from kic.simulation.stages import EXPLICIT, NO_STEP, Stages
from kic.transfer.coordinate_transfer import CoordinateTransfer


@pytest.mark.parametrize("method", METHODS)
def test_pendulum_matches_the_elliptic_function(method: str) -> None:
    m, most, g = pendulum(), 1.2, 9.81
    stiff = method in ("Radau", "BDF", "RK23")
    t = np.linspace(0, 2.0, 21)
    limits = kic.Integrator(rtol=1e-8, atol=1e-10) if stiff else TIGHT
    run = m.simulate(t, near=m.at([most]), integrator=replace(limits, method=method))
    k = np.sin(most / 2)
    sn = ellipj(ellipk(k**2) - np.sqrt(g) * t, k**2)[0]
    exact = 2 * np.arcsin(k * sn)
    assert np.abs(run.q[:, 0] - exact).max() < (2e-5 if stiff else 1e-9)
    assert run.t is run.t
    assert np.array_equal(run.t, t)
    assert mismatch(run["tip"][:, 0], np.sin(run.q[:, 0])) < 1e-14


def test_error_is_proportional_to_the_tolerance() -> None:
    """The error follows the tolerance with a slope near one in logarithms."""
    m, t = kic.load("four-bar"), [0.0, 1.0]
    best = m.simulate(t, near=m.at(), integrator=kic.Integrator(rtol=1e-13, atol=1e-14)).q[-1, 0]
    tolerances = 10.0 ** -np.arange(4, 11)
    errors = [
        abs(m.simulate(t, near=m.at(), integrator=kic.Integrator(rtol=x, atol=x)).q[-1, 0] - best)
        for x in tolerances
    ]
    slope = np.polyfit(np.log(tolerances), np.log(errors), 1)[0]
    assert 0.7 < slope < 1.3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "order", "finest"), [("RK23", 3, (5, 8)), ("RK45", 5, (7, 11)), ("DOP853", 8, (7, 12))]
)
def test_error_has_the_order_of_the_integrator(method: str, order: int, finest) -> None:
    """The error of a closed mechanism over the number of steps has the known order."""
    m, t = kic.load("four-bar"), [0.0, 1.0]

    def end(**given) -> tuple[np.ndarray, int]:
        run = m.simulate(t, near=m.at(), integrator=kic.Integrator(**given))
        return np.array([run.q[-1, 0], run.qd[-1, 0] / 10]), run.steps

    best = end(rtol=1e-13, atol=1e-14)[0]
    runs = [end(method=method, rtol=x, atol=x) for x in 10.0 ** -np.linspace(*finest, 9)]
    missed = [np.linalg.norm(last - best) for last, _ in runs]
    slope = np.polyfit(np.log([steps for _, steps in runs]), np.log(missed), 1)[0]
    assert -slope == pytest.approx(order, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four-bar", "rssr"])
def test_free_swing_conserves_energy_and_closure(name: str) -> None:
    m = replace(kic.load(name), springs=())
    run = m.simulate(np.linspace(0, 60, 121), near=m.at(), integrator=TIGHT)
    e = run.energy
    scale = np.ptp(e.potential)
    assert scale > 0.1
    assert np.abs(e.total - e.total[0]).max() < 1e-9 * scale
    assert np.abs(e.residual).max() < 1e-9 * scale
    assert run.closure.max() < 1e-11
    assert not run.stopped


@pytest.mark.slow
def test_dead_centres_are_passed_in_other_coordinates() -> None:
    """The rocker of a crank-rocker cannot drive it at its dead centres; the run continues."""
    m = kic.load("four-bar")
    start, t = m.at(), np.linspace(0, 3, 61)
    A, D = (
        m.simulate(t, near=start, qd=qd, wrt=q, integrator=TIGHT) for q, qd in (("A", [6.0]), ("D", None))
    )
    rate = start.coefficients("D", order=1).G[0, 0] * 6.0
    D = m.simulate(t, near=start, qd=[rate], wrt="D", integrator=TIGHT)
    assert A.charts == 1 < D.charts
    assert np.ptp(A["A"]) > 2 * np.pi
    assert np.abs(D["tip"] - A["tip"]).max() < 1e-8
    assert D.coordinates == ("D",)
    assert (
        np.abs(D.qd[:, 0] - (A.configuration.coefficients("D", order=1).G[:, 0, 0] * A.qd[:, 0])).max() < 1e-6
    )
    assert D.closure.max() < 1e-11


def test_sample_times_do_not_change_a_run() -> None:
    """Without samples nothing is evaluated between steps; the final states are equal."""
    m = kic.load("rssr")
    few, many = (m.simulate(t, near=m.at(), integrator=TIGHT) for t in ([0.0, 1.0], np.linspace(0, 1, 101)))
    assert few.steps == many.steps
    assert mismatch(few.q[-1], many.q[-1]) < 1e-11


@pytest.mark.parametrize("effort", [None, lambda t, now: -0.1 * now.qd], ids=["none", "function"])
@pytest.mark.parametrize("name", ["four-bar", "horn-two-link"])
def test_samples_are_evaluated_in_batches(name: str, effort, monkeypatch) -> None:
    """Loops are closed once for all samples of a step, and the equations of motion hold for all at once."""
    m, counts = kic.load(name), dict[str, int]()

    def count(owner: type, call: str) -> None:
        original = getattr(owner, call)

        def counted(self, *given, **more):
            counts[call] = counts.get(call, 0) + 1
            return original(self, *given, **more)

        monkeypatch.setattr(owner, call, counted)

    count(Stages, "__call__")
    count(CoordinateTransfer, "track")
    count(Motions, "terms")
    # the dense output of a step is made for both runs
    few = m.simulate(np.linspace(0, 0.3, 31), near=m.at(), effort=effort)
    first, steps = dict(counts), few.steps
    counts.clear()
    assert m.simulate(np.linspace(0, 0.3, 3001), near=m.at(), effort=effort).steps == steps
    assert sum(counts.values()) <= sum(first.values()) + 2 * steps + 2


def test_free_top_precesses_steadily() -> None:
    """The axis of a symmetric top without torque precesses steadily about the angular momentum."""
    m = top((0.3, 0.3, 0.5))
    w = np.array([0.4, 0.0, 2.0])
    run = m.simulate(np.linspace(0, 20, 41), near=m.at(), qd=[0.1, 0, 0, *w], integrator=TIGHT)
    L = np.array([0.3, 0.3, 0.5]) * w
    axis = run.configuration.pose("body").rotation.apply([0, 0, 1])
    assert np.abs(axis @ L - L[2]).max() < 1e-9
    # round L with |L| / I_1
    u = L / np.linalg.norm(L)
    first = np.array([0, 0, 1]) - u * u[2]
    turn = np.linalg.norm(L) / 0.3 * run.t[:, None]
    exact = u * u[2] + first * np.cos(turn) + np.cross(u, first) * np.sin(turn)
    assert np.abs(axis - exact).max() < 1e-8
    assert np.abs(run["body.x"] - 0.1 * run.t).max() < 1e-10
    assert np.abs(np.linalg.norm(run.state[:, 3:], axis=1) - 1).max() < 1e-14


@pytest.mark.parametrize("method", EXPLICIT)
@pytest.mark.parametrize("name", ["puma560", "four-bar", "gough-stewart", "five-rod-suspension", "top"])
def test_compiled_stages_match_those_of_scipy(name: str, method: str) -> None:
    """Steps with stages from one compiled call equal steps that call the equations of motion in Python."""
    m = top((0.3, 0.3, 0.5)) if name == "top" else kic.load(name)
    c = m.at()
    names = c._model.coordinates
    motion = Motion(c._model, names, np.linspace(-0.2, 0.1, len(names)), {})
    # the orientation of a free body has no values
    q = np.zeros(len(names)) if name == "top" else np.atleast_1d(c.value(list(names)))
    solvers = []
    for compiled in (True, False):
        chart = Chart(motion, names, c.state, q)
        if not compiled:
            chart.__dict__["_stages"] = None
        y = chart.pack(c.state, np.linspace(0.1, 0.3, chart.size), np.zeros(chart.n_accounts))
        tolerances = {"rtol": 1e-6, "atol": 1e-8, "first_step": 1e-2, "max_step": 1e-2}
        solver = chart.integrator(method)(chart, 0.0, y, 1.0, **tolerances)
        solver.stages = chart.stages
        solvers.append(solver)
    fast, plain = solvers
    assert type(plain) is getattr(scipy.integrate, method)
    assert type(fast) is not type(plain)
    for _ in range(6):
        assert fast.step() is plain.step() is None
        # the error estimate, and with it the step, is a small difference of the stages
        assert abs(fast.t - plain.t) < 1e-5 * plain.t
        assert abs(fast.h_abs - plain.h_abs) < 1e-5 * plain.h_abs
        t = min(fast.t, plain.t)
        assert mismatch(fast.dense_output()(t), plain.dense_output()(t)) < 1e-10


def test_compiled_stages_return_none_where_the_motion_has_no_derivative() -> None:
    """A position that is not a number and rates that overflow have no derivatives."""
    m = kic.load("four-bar")
    c = m.at()
    names = c._model.coordinates
    chart = Chart(Motion(c._model, names, None, {}), names, c.state, np.zeros(len(names)))
    y = chart.pack(c.state, np.ones(chart.size), np.zeros(chart.n_accounts))
    K = np.zeros((2, len(y)))
    assert mismatch(chart.stages(0.0, y, 0.0, NO_STEP, K, 0, 1), y) == 0
    assert mismatch(K[1], chart(0.0, y)) < 1e-12
    for k, wrong in ((0, np.nan), (chart.size, 1e200)):
        y_wrong = np.where(np.arange(len(y)) == k, wrong, y)
        assert chart.stages(0.0, y_wrong, 0.0, NO_STEP, K, 0, 1) is None


@pytest.mark.parametrize("name", ["horn-two-link", "gough-stewart", "five-bar"])
def test_accelerations_match_forward_dynamics(name: str) -> None:
    m = kic.load(name)
    push = np.random.default_rng(0).normal(size=m.dof)
    t = np.linspace(0, 0.1, 5)
    run = m.simulate(t, near=m.at(), effort=lambda t, now: push * (1 + t) - 0.1 * now.qd, qd=0.1 * push)
    exact = run.configuration.dynamics().inverse_dynamics(run.qd, run.qdd)
    assert mismatch(run.effort, exact) < 1e-9
    assert mismatch(run.effort, push * (1 + t[:, None]) - 0.1 * run.qd) < 1e-12
    # rates are slopes of values
    fine = m.simulate(
        np.linspace(0, 0.1, 401),
        near=m.at(),
        effort=lambda t, now: push * (1 + t) - 0.1 * now.qd,
        qd=0.1 * push,
        integrator=TIGHT,
    )
    for a, b in ((fine.q, fine.qd), (fine.qd, fine.qdd)):
        slope = (a[:-4] - 8 * a[1:-3] + 8 * a[3:-1] - a[4:]) / (12 * (fine.t[1] - fine.t[0]))
        assert mismatch(slope, b[2:-2]) < 1e-6
    assert np.abs(run.energy.residual).max() < 1e-7 * max(1, np.abs(run.energy.work).max())


def test_prescribed_motion_matches_inverse_dynamics() -> None:
    m = kic.load("five-bar")
    start = m.at()
    a0, e0 = start.value("A"), start.value("E")
    ways = {
        "A": lambda t: (a0 + 0.2 * t**3, 0.6 * t**2, 1.2 * t),
        "E": lambda t: (e0 - 0.1 * t**3, -0.3 * t**2, -0.6 * t),
    }
    t = np.linspace(0, 1, 11)
    both = m.simulate(t, near=start, prescribed=ways)
    assert mismatch(both.q[:, 0], a0 + 0.2 * t**3) < 1e-14
    c = m.path({"A": a0 + 0.2 * t**3, "E": e0 - 0.1 * t**3})
    qd, qdd = np.stack([0.6 * t**2, -0.3 * t**2], 1), np.stack([1.2 * t, -0.6 * t], 1)
    assert mismatch(both.effort, c.dynamics().inverse_dynamics(qd, qdd)) < 1e-10
    assert mismatch(both.qdd, qdd) < 1e-10
    # one given, one free: the free one has no effort
    one = m.simulate(t, near=start, prescribed={"A": ways["A"]}, integrator=TIGHT)
    T = one.configuration.dynamics().inverse_dynamics(one.qd, one.qdd)
    assert np.abs(T[:, 1]).max() < 1e-9 * np.abs(T).max()
    assert mismatch(one.effort[:, 0], T[:, 0]) < 1e-9
    assert np.abs(one.energy.residual).max() < 1e-8


def test_energy_balance_includes_dampers_and_loads() -> None:
    m = pendulum()
    damped = replace(
        m,
        joints=(replace(m.joints[0], damping=0.4, stiffness=1.0, rest=0.2),),
        forces=(kic.Force("wind", "tip", (0.5, 0, 0)),),
    )
    run = damped.simulate(3.0, near=damped.at([1.0]), integrator=TIGHT)
    e = run.energy
    assert e.dissipated[-1] > 1
    assert mismatch(e.applied, 0.5 * (run["tip"][:, 0] - run["tip"][0, 0])) < 1e-9
    assert np.abs(e.residual).max() < 1e-9
    assert "dissipated" in run.summary().text()
    assert "work of loads" in run.summary().text()


def test_events_are_located_and_limits_stop() -> None:
    m = pendulum()

    def bottom(t: float, now: kic.simulating.motion.Now) -> float:
        return now.q[0]

    bottom.direction = -1
    run = m.simulate(6.0, near=m.at([1.2]), events=bottom, integrator=TIGHT)
    period = 4 * ellipk(np.sin(0.6) ** 2) / np.sqrt(9.81)
    assert [i for _, i in run.events] == [0, 0, 0]
    assert np.allclose([t for t, _ in run.events], period * (0.25 + np.arange(3)), atol=1e-9)
    stop = m.simulate(6.0, near=m.at([1.2]), limits={"A": (-0.5, 2.0)}, integrator=TIGHT)
    assert stop.stopped.startswith("stopped at t = ")
    assert "the lower limit of A" in stop.stopped
    assert stop.q[-1, 0] == pytest.approx(-0.5, abs=1e-12)
    assert stop.t[-1] == stop.events[-1][0]


def test_a_run_can_be_continued() -> None:
    m = kic.load("four-bar")
    t = np.linspace(0, 2, 21)
    whole = m.simulate(t, near=m.at(), integrator=TIGHT)
    half = m.simulate(t[:11], near=m.at(), integrator=TIGHT)
    rest = m.simulate(t[10:], near=half, integrator=TIGHT)
    assert np.array_equal(rest.t, t)
    assert mismatch(rest.q, whole.q) < 1e-10
    assert np.abs(rest.energy.residual).max() < 1e-9
    assert rest.steps > half.steps
    with raises(kic.InputError, key="near"):
        pendulum().simulate(2.0, near=half)


def test_save_and_load_round_trip(tmp_path) -> None:
    m = kic.load("rssr")
    run = m.simulate(np.linspace(0, 0.5, 26), near=m.at(), limits={"crank": (-9, 9)})
    run.save(tmp_path / "run.npz")
    again = kic.results.Simulation.load(tmp_path / "run.npz")
    assert again.mechanism == m
    for key in ("t", "q", "qd", "qdd", "effort", "state"):
        assert np.array_equal(getattr(again, key), getattr(run, key))
    assert (again.steps, again.charts, again.events, again.stopped) == (run.steps, run.charts, run.events, "")
    assert np.array_equal(again.energy.total, run.energy.total)
    assert mismatch(again.at(0.25).value("flag"), run.at(0.25).value("flag")) == 0
    (tmp_path / "other.npz").write_bytes(b"no run")
    with raises(kic.ModelFileError, path=tmp_path / "other.npz"):
        kic.results.Simulation.load(tmp_path / "other.npz")
    with raises(kic.ModelFileError, errno=2):
        kic.results.Simulation.load(tmp_path / "none.npz")
    with raises(kic.FileError, errno=2):
        run.save(tmp_path / "no" / "run.npz")


@pytest.mark.parametrize("name", ["horn-two-link", "four-bar", "gough-stewart", "top"])
def test_interpolation_between_samples(name: str) -> None:
    m = top((0.3, 0.4, 0.5)) if name == "top" else kic.load(name)
    qd = [0, 0, 0, 1.0, 0.2, 2.0] if name == "top" else None
    runs = [m.simulate(np.linspace(0, 0.2, n), near=m.at(), qd=qd, integrator=TIGHT) for n in (11, 21, 81)]
    body, fine = m.bodies[-1].name, runs[-1]
    exact = displacement(fine.configuration, body)
    far = [np.abs(displacement(run.at(fine.t), body) - exact).max() for run in runs[:2]]
    assert far[1] < max(far[0] / 40, 1e-11)  # sixth order: 1/64
    coarse = runs[1]
    assert np.abs(coarse.at(coarse.t).state - coarse.state).max() < 1e-14
    assert coarse.at([0.05, 0.1]).batch == (2,)
    with raises(kic.InputError, key="t"):
        coarse.at(0.3)


def test_interpolation_error_estimate() -> None:
    """Accepted interpolation has an error below the tolerance; otherwise the error states the estimate."""
    m = kic.load("four-bar")
    start = m.at({"A": 1.2})
    fine = m.simulate(np.linspace(0, 0.4, 801), near=start, qd=[3.0], integrator=TIGHT)
    run = m.simulate(np.linspace(0, 0.4, 21), near=start, qd=[3.0], integrator=TIGHT)
    accepted = 0
    for tolerance in (1e-3, 1e-4, 1e-6):
        for k in range(7, 800, 20):
            try:
                c = run.at(fine.t[k], tolerance=tolerance)
            except kic.InputError:
                continue
            accepted += 1
            assert np.abs(c.state - fine.state[k]).max() < 3 * tolerance
            assert abs(m._model.closure(()).rows(c.state[None])[0]).max() < 1e-13
    assert 60 < accepted < 120
    assert abs(run.at(0.265).state - fine.configuration[530].state).max() < 2e-4


def test_interpolation_with_few_or_uneven_samples() -> None:
    """Two samples have no neighbours for comparison; short intervals do not improve long ones."""
    m = kic.load("horn-two-link")
    t = np.array([0.0, 0.1, 0.1 + 1e-9, 0.2])
    for times in (t[:2], t):
        run = m.simulate(times, near=m.at([0.0, 0.5]), integrator=TIGHT)
        exact = m.simulate([0.0, 0.05], near=m.at([0.0, 0.5]), integrator=TIGHT)
        assert np.abs(run.at(0.05, tolerance=1e-3).state - exact.state[-1]).max() < 1e-3


def test_computed_torque_tracks_a_trajectory() -> None:
    m = kic.load("puma560")
    q0 = np.array([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
    way = kic.trajectory.quintic(q0, q0 + 0.5, 0.6)
    f = kic.controllers.ComputedTorque(m, way, kp=100.0, kd=20.0)
    t = np.linspace(0, 0.6, 7)
    run = m.simulate(t, near=m.at(q0), effort=f, integrator=TIGHT)
    assert np.abs(run.q - way(t)[0]).max() < 1e-9
    off = m.simulate(t, near=m.at(q0 + 0.01), effort=lambda t, now: f(t, (now.q, now.qd)), integrator=TIGHT)
    # critically damped at 10 / s: the error shrinks as (1 + 10 t) exp(-10 t)
    exact = 0.01 * (1 + 10 * t) * np.exp(-10 * t)
    assert np.abs(off.q - way(t)[0] - exact[:, None]).max() < 1e-9


def test_controllers_are_accepted_as_efforts() -> None:
    """A five-bar in the coordinates of its tip; controllers in other coordinates raise errors."""
    m = kic.load("five-bar")
    start, tip = m.at(), ["tip.x", "tip.y"]
    here = {x: float(start.value(x)) for x in tip}
    way = kic.trajectory.quintic(here, {"tip.x": here["tip.x"] + 0.1, "tip.y": here["tip.y"] - 0.2}, 0.5)
    t = np.linspace(0, 0.5, 5)
    f = kic.controllers.ComputedTorque(m, way, kp=100.0, kd=20.0, wrt=tip)
    run = m.simulate(t, near=start, effort=f, wrt=tip, integrator=TIGHT)
    assert np.abs(run.q - way(t).q).max() < 1e-9
    by_hand = m.simulate(t, near=start, effort=lambda t, now: f(t, now), wrt=tip, integrator=TIGHT)
    assert np.array_equal(run.q, by_hand.q)
    assert repr(f) == "controller that gives efforts of tip.x, tip.y"
    with raises(kic.InputError, got=("tip.x", "tip.y")):
        m.simulate(t, near=start, effort=f)
    rates = kic.controllers.ResolvedAcceleration(m, way, 100.0, 20.0)
    with raises(kic.InputError, key="effort", got="accelerations", expected="efforts"):
        m.simulate(t, near=start, effort=rates)


@pytest.mark.slow
def test_trajectories_are_accepted_as_prescribed_motion() -> None:
    m = kic.load("five-bar")
    start = m.at()
    q = np.array([start.value("A"), start.value("E")])
    way = kic.trajectory.septic(q, q + np.array([0.2, -0.1]), 0.8)
    t = np.linspace(0, 1.0, 6)  # and rests to the end
    both = m.simulate(t, near=start, prescribed=way)
    assert mismatch(both.q, way(t, beyond="hold").q) < 1e-13
    motion = way(t, beyond="hold")
    c = m.path({"A": motion.q[:, 0], "E": motion.q[:, 1]})
    assert mismatch(both.effort, c.dynamics().inverse_dynamics(motion.qd, motion.qdd)) < 1e-10
    # one of them; named, or a trajectory of one number
    a = kic.trajectory.septic({"A": q[0]}, {"A": q[0] + 0.2}, 0.8)
    one = m.simulate(t, near=start, prescribed=a, integrator=TIGHT)
    assert mismatch(one.q[:, 0], motion.q[:, 0]) < 1e-13
    same = m.simulate(
        t, near=start, prescribed={"A": kic.trajectory.septic([q[0]], [q[0] + 0.2], 1.0).lasting(1.0)}
    )
    assert same.q[-1, 0] == pytest.approx(q[0] + 0.2)
    tip = {x: float(start.value(x)) for x in ("tip.x", "tip.y")}
    led = kic.trajectory.s_curve(
        tip,
        {"tip.x": tip["tip.x"] + 0.1, "tip.y": tip["tip.y"] - 0.1},
        rate_limits=1.0,
        acceleration_limits=5.0,
        jerk_limits=50.0,
    )
    run = m.simulate([0.0, led.duration], near=start, prescribed=led, wrt=["tip.x", "tip.y"])
    assert mismatch(run["tip"][-1, :2], led(led.duration).q) < 1e-12
    moving = kic.trajectory.quintic({"A": q[0]}, {"A": q[0] + 0.2}, 0.5, end_rate={"A": 1.0})
    with raises(kic.InputError, key="t"):
        m.simulate(t, near=start, prescribed=moving)
    with raises(kic.UnknownNameError, name="tip.x"):
        m.simulate(t, near=start, prescribed=led)


def test_interrupted_run_keeps_its_results() -> None:
    def push(t: float, now: kic.simulating.motion.Now) -> np.ndarray:
        if t > 0.5:
            raise KeyboardInterrupt
        return np.zeros(1)

    m = pendulum()
    run = m.simulate(np.linspace(0, 2, 201), near=m.at([1.0]), effort=push)
    assert run.stopped.startswith("interrupted, the last sample is at t = 0.")
    assert 0.2 < run.t[-1] <= 0.5
    assert len(run.q) == len(run.t) == len(run.qdd)
    whole = m.simulate(np.linspace(0, 2, 201), near=m.at([1.0]))
    assert mismatch(run.q[:-1], whole.q[: len(run.q) - 1]) < 1e-12
    # the last good state, too, which was none of the times wanted
    assert mismatch(run.q[-1, 0], whole.at(run.t[-1]).value("A")) < 1e-7
    few = m.simulate([0, 2], near=m.at([1.0]), effort=push)
    assert np.array_equal(few.q, run.q[[0, -1]])
    rest = m.simulate([few.t[-1], 2], near=few)
    assert np.abs(rest.q[-1] - whole.q[-1]).max() < 1e-7


@pytest.mark.slow
def test_errors_state_why_a_run_stops() -> None:
    m = pendulum()
    start = m.at([1.0])

    def spoilt(t: float, now: kic.simulating.motion.Now) -> list[float]:
        return [np.nan if t > 0.3 else 0.0]

    with raises(kic.SimulationError, key="effort", name="A") as caught:
        m.simulate(1.0, near=start, effort=spoilt)
    assert 0 < caught.value.simulation.t[-1] <= 0.3 < caught.value.time
    # q'' = q'^2 reaches infinity after a second: the steps shrink before it
    flat = replace(m, gravity=(0, 0, 0))
    with raises(kic.SimulationError, key="method") as caught:
        flat.simulate(2.0, near=flat.at([0.0]), qd=[1.0], effort=lambda t, now: 2.0 * now.qd**2)
    last = caught.value.simulation
    assert 0.999 < last.t[-1] < 1.001
    # wanted were start and end alone; the last good state is kept all the same
    both = flat.simulate([0, 0.9], near=flat.at([0.0]), qd=[1.0], effort=lambda t, now: 2.0 * now.qd**2)
    assert both.qd[-1] == pytest.approx(10.0, rel=1e-6)
    with pytest.raises(kic.SimulationError) as caught:
        flat.simulate([0, 2.0], near=flat.at([0.0]), qd=[1.0], effort=lambda t, now: 2.0 * now.qd**2)
    assert len(caught.value.simulation.t) == 2
    assert caught.value.simulation.t[-1] == caught.value.time == pytest.approx(1.0, abs=1e-3)
    assert caught.value.simulation.qd[-1, 0] > 1e4
    light = replace(m, bodies=(kic.Body("bob", mass=0.0, com=(0, -1, 0), inertia=(0, 0, 0)),))
    with raises(kic.InertiaError, bodies=("bob",)):
        light.simulate(1.0, near=light.at([1.0]))
    arm = kic.load("horn-two-link")
    still = replace(arm, bodies=(arm.bodies[0], replace(arm.bodies[1], mass=0.0, inertia=(0, 0, 0))))
    with raises(kic.SingularError, coordinates=("shoulder", "elbow")):
        still.simulate(1.0, near=still.at([0.1, 0.2]))


WRONG = [
    ({"t": [0.0, 0.0]}, {"key": "t"}),
    ({"t": -1.0}, {"key": "t"}),
    ({"t": "soon"}, {"key": "t"}),
    ({"qd": [1.0, 2.0]}, {"key": "qd", "got": (2,), "expected": (1,)}),
    ({"qd": [[1.0]]}, {"key": "qd"}),
    ({"effort": [1.0, 2.0]}, {"key": "effort"}),
    ({"integrator": np.array(["RK45", "BDF"])}, {"key": "integrator"}),
    ({"events": "none"}, {"key": "events", "got": "none"}),
    ({"limits": {"A": (1, 0)}}, {"key": "limits", "name": "A", "got": (1, 0)}),
    ({"limits": {"B": (0, 1)}}, {"name": "B"}),
    ({"prescribed": {"A": 1.0}}, {"key": "prescribed"}),
    ({"prescribed": {"B": lambda t: (0, 0, 0)}}, {"name": "B"}),
    ({"wrt": ["A", "tip.x"]}, {"mobility": 1, "count": 2}),
    ({"near": 0.0}, {"key": "near"}),
]


@pytest.mark.parametrize(("what", "data"), WRONG, ids=lambda x: str(x)[:30])
def test_invalid_arguments_raise(what: dict, data: dict) -> None:
    m = pendulum()
    arguments = {"near": m.at([1.0]), "t": 1.0, **what}
    with raises(kic.KicError, **data):
        m.simulate(**arguments)


def test_progress_bar_on_request(capsys, monkeypatch) -> None:
    m = pendulum()
    monkeypatch.setattr("kic.numerics.progress.REFRESH_S", 0.0)
    m.simulate(5.0, near=m.at([1.0]), integrator=kic.Integrator(progress=True))
    shown = capsys.readouterr().err
    assert "kic: [" in shown
    assert shown.endswith("\n")
    m.simulate(5.0, near=m.at([1.0]))
    assert not capsys.readouterr().err
