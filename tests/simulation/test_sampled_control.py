"""Sampled controllers and efforts of actuators in simulations, against closed-form equations of motion."""

from collections import deque
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from raising import raises
from scipy.integrate import solve_ivp

import kic
from kic.simulation.controllers import Sampled

# two links of an arm in a vertical plane: mass, length, distance of the centre of mass, inertia about it
MASSES, LENGTHS, CENTERS, INERTIAS = (2.0, 1.5), (0.7, 0.5), (0.3, 0.2), (0.08, 0.03)
GRAVITY = 9.81


def arm():
    """Return the arm, drawn along x."""
    ends = (0.0, LENGTHS[0])
    return kic.Mechanism(
        "arm",
        [
            kic.Body(f"link{k}", mass=MASSES[k], com=(ends[k] + CENTERS[k], 0, 0), inertia=INERTIAS[k])
            for k in (0, 1)
        ],
        [
            kic.Joint("A", "revolute", ("ground", "link0"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("B", "revolute", ("link0", "link1"), at=(LENGTHS[0], 0, 0), axis=(0, 0, 1)),
        ],
        points=[kic.Point("tip", "link1", at=(sum(LENGTHS), 0, 0))],
        gravity=(0, -GRAVITY, 0),
        coordinates=["A", "B"],
    )


def arm_acceleration(q, v, T):
    """Return the accelerations of the arm, from its equations of motion in closed form."""
    (m1, m2), (l1, _), (c1, c2), (i1, i2) = MASSES, LENGTHS, CENTERS, INERTIAS
    h = m2 * l1 * c2
    off = i2 + m2 * c2**2 + h * np.cos(q[1])
    M = np.array([[i1 + m1 * c1**2 + m2 * l1**2 + 2 * off - i2 - m2 * c2**2, off], [off, i2 + m2 * c2**2]])
    bias = h * np.sin(q[1]) * np.array([-v[1] * (2 * v[0] + v[1]), v[0] ** 2])
    outer = m2 * c2 * np.cos(q.sum())
    weight = GRAVITY * np.array([(m1 * c1 + m2 * l1) * np.cos(q[0]) + outer, outer])
    return np.linalg.solve(M, T - bias - weight)


# slider-crank: crank of length R about the origin, rod of length L to a slider along x; mass of each
R, L, CRANK, ROD, SLIDER = 0.2, 0.55, (1.2, 0.009), (0.8, 0.02), 1.7


def slider_crank():
    """Return the slider-crank, drawn with the crank along y."""
    x = np.sqrt(L**2 - R**2)
    return kic.Mechanism(
        "slider-crank",
        [
            kic.Body("crank", mass=CRANK[0], com=(0, R / 2, 0), inertia=CRANK[1]),
            kic.Body("rod", mass=ROD[0], com=(x / 2, R / 2, 0), inertia=ROD[1]),
            kic.Body("slider", mass=SLIDER, com=(x, 0, 0), inertia=0.01),
        ],
        [
            kic.Joint("A", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=(0, 0, 1), value=np.pi / 2),
            kic.Joint("B", "revolute", ("crank", "rod"), at=(0, R, 0), axis=(0, 0, 1)),
            kic.Joint("C", "revolute", ("rod", "slider"), at=(x, 0, 0), axis=(0, 0, 1)),
            kic.Joint("S", "prismatic", ("ground", "slider"), at=(0, 0, 0), axis=(1, 0, 0), value=x),
        ],
        gravity=(0, -GRAVITY, 0),
        coordinates=["A"],
    )


def slide(a):
    """Return the position of the slider, and its derivative by the angle of the crank."""
    s, c = R * np.sin(a), R * np.cos(a)
    w = np.sqrt(L**2 - s**2)
    return c + w, -s - s * c / w


def slider_crank_acceleration(a, v, T):
    """Return the acceleration of the crank under a torque T: J(a) a'' + J' v²/2 = T − U'."""

    def inertia(a):
        s, c = R * np.sin(a), R * np.cos(a)
        w = np.sqrt(L**2 - s**2)
        turn, dx = -c / w, -s - s * c / w  # of the rod, and of the slider
        middle = ((dx - s) / 2) ** 2 + (c / 2) ** 2
        return CRANK[1] + CRANK[0] * R**2 / 4 + ROD[0] * middle + ROD[1] * turn**2 + SLIDER * dx**2

    slope = np.imag(inertia(a + 1e-30j)) / 1e-30
    weight = GRAVITY * (CRANK[0] + ROD[0]) * R * np.cos(a) / 2
    return (T - weight - slope * v**2 / 2) / np.real(inertia(a))


def sampled(rate, y, period, count, controller, act, delay=0.0):
    """Integrate y' = rate(y, u) with sample and hold; return the states (count + 1, n) at the samples.

    ``controller(t, y)`` returns the efforts, which act after the delay, and ``act(u)`` those of the model.
    """
    found, u, waiting = [y], 0.0 * np.asarray(controller(0.0, y)), deque()
    for k in range(count):
        t, end = k * period, (k + 1) * period
        waiting.append((t + delay, np.asarray(controller(t, y))))
        while t < end - 1e-12:
            while waiting and waiting[0][0] <= t + 1e-12:
                u = waiting.popleft()[1]
            stop = min([end, *(when for when, _ in waiting)])
            held = act(u)
            y = solve_ivp(
                lambda _, y, held=held: rate(y, held), (t, stop), y, "DOP853", rtol=1e-12, atol=1e-12
            ).y[:, -1]
            t = stop
        found.append(y)
    return np.array(found)


# errors of both integrators, at relative tolerances of 1e-12, grow tenfold in these runs
TIGHT = kic.Integrator(rtol=1e-12, atol=1e-12)
AGREED = 1e-8


def arm_rate(y, T):
    return np.concatenate([y[2:], arm_acceleration(y[:2], y[2:], T)])


GOAL, KP, KD = np.array([0.4, 0.6]), np.array([60.0, 20.0]), np.array([9.0, 3.0])


def pd(t, q, qd):
    return KP * (GOAL * np.cos(3 * t) - q) - KD * qd


@pytest.mark.parametrize("delay", [0.0, 4e-3, 1e-2, 2.5e-2])
def test_samples_of_an_arm_with_delay_and_limits(delay):
    m, limits = arm(), np.array([12.0, 3.0])
    most = {"A": 12.0, "B": (-3.0, 3.0)}
    held = Sampled(lambda t, now: pd(t, now.q, now.qd), 1e-2, delay=delay, effort_limits=most)
    run = m.simulate(0.5, controller=held, integrator=TIGHT)
    known = sampled(
        arm_rate,
        np.zeros(4),
        1e-2,
        50,
        lambda t, y: pd(t, y[:2], y[2:]),
        lambda u: np.clip(u, -limits, limits),
        delay,
    )
    assert np.abs(np.hstack([run.q, run.qd]) - known).max() < AGREED
    assert np.abs(run.energy.residual).max() < 1e-9
    assert run.t.shape == (51,)
    assert run.control.t.shape == (50,)
    assert np.abs(run.control.q - known[:-1, :2]).max() < AGREED
    assert (run.control.effort == np.clip(run.control.command, -limits, limits)).all()
    assert (np.abs(run.control.command) > limits).any()
    if not delay:
        assert np.array_equal(run.effort[:-1], run.control.effort)


def test_fewer_actuators_than_degrees_of_freedom():
    m = arm()
    run = m.simulate(
        0.5,
        controller=Sampled(lambda t, now: [5.0 - now.qd[1]], 1e-2),
        actuators="B",
        integrator=TIGHT,
    )
    known = sampled(
        arm_rate, np.zeros(4), 1e-2, 50, lambda t, y: [5.0 - y[3]], lambda u: np.array([0.0, u[0]])
    )
    assert np.abs(np.hstack([run.q, run.qd]) - known).max() < AGREED
    assert run.actuators == ("B",)
    assert run.actuator_power.shape == (51, 1)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sampled", "function", "constants", "names"])
def test_more_actuators_than_degrees_of_freedom(form):
    m, start = slider_crank(), np.array([np.pi / 2, 0.4])

    def law(t, a, v):
        return np.array([3.0 - 0.2 * v, 20.0 * np.cos(a)]) if form != "constants" else np.array([1.0, -4.0])

    def rate(y, u):
        u = law(0.0, *y) if form in ("function", "names") else u
        return np.array([y[1], slider_crank_acceleration(y[0], y[1], u[0] + u[1] * slide(y[0])[1])])

    by_name = {"A": lambda t, now: 3.0 - 0.2 * now.qd[0], "S": lambda t, now: 20.0 * np.cos(now.q[0])}
    given = {
        "sampled": {"controller": Sampled(lambda t, now: law(t, *now.q, *now.qd), 1e-2)},
        "function": {"effort": lambda t, now: law(t, *now.q, *now.qd)},
        "constants": {"effort": [1.0, -4.0]},
        "names": {"effort": by_name},
    }[form]  # fmt: skip
    acting = {} if form == "names" else {"actuators": ["A", "S"]}
    run = m.simulate(np.arange(101) * 1e-2, qd=[0.4], **given, **acting, integrator=TIGHT)
    known = sampled(rate, start, 1e-2, 100, lambda t, y: law(t, *y), lambda u: u)
    assert np.abs(np.hstack([run.q, run.qd]) - known).max() < AGREED
    assert np.abs(run.energy.residual).max() < 1e-9
    assert run.closure.max() < 1e-12
    x, slope = slide(run.q[:, 0])
    assert np.abs(run.actuator_rate - np.stack([run.qd[:, 0], slope * run.qd[:, 0]], axis=1)).max() < 1e-9
    total = run.actuator_effort[:, 0] + run.actuator_effort[:, 1] * slope
    assert np.abs(run.effort[:, 0] - total).max() < 1e-9
    assert np.abs(run["S"] - x).max() < 1e-9
    assert {"S.rate", "S.effort", "S.power"} <= {v.name for v in run._table().variables}
    assert "power" in str(type(run.plot("powers"))) or run.plot(["efforts", "powers"]).axes


def test_actuators_hold_where_coordinates_do_not_drive():
    """A run passes the dead centre of its coordinate, where others replace it, with efforts of actuators."""
    m = slider_crank()
    run = m.simulate(np.arange(101) * 1e-2, effort={"A": 1.5}, wrt="S", qd=[0.1], integrator=TIGHT)
    assert run.charts > 1
    start = np.array([np.pi / 2, 0.1 / slide(np.pi / 2)[1]])
    known = sampled(
        lambda y, u: np.array([y[1], slider_crank_acceleration(*y, 1.5)]),
        start,
        1e-2,
        100,
        lambda t, y: [0.0],
        lambda u: u,
    )
    assert np.abs(run["A"] - known[:, 0]).max() < AGREED
    assert np.abs(run.energy.residual).max() < 1e-9


@pytest.mark.slow
def test_measured_rows_noise_and_quantization():
    m = arm()
    held = Sampled(
        lambda t, now: [0.0, -now.qd[0]],
        time=1e-3,
        measured=["B", "tip.x"],
        noise={"B": 1e-3},
        quantization=[0.0, 1e-2],
        rate_noise=2e-2,
        rng=7,
    )
    run = m.simulate(0.4, controller=held)
    assert run.control.measured == ("B", "tip.x")
    true = np.stack([run["B"], run["tip.x"]], axis=1)[:-1]
    off = run.control.q - true
    # 400 samples: the standard deviation is known to 3.5 %
    assert 0.85e-3 < off[:, 0].std() < 1.15e-3
    assert np.abs(off[:, 1]).max() <= 0.5e-2 * (1 + 1e-9)
    assert np.abs(run.control.q[:, 1] / 1e-2 - np.round(run.control.q[:, 1] / 1e-2)).max() < 1e-9
    again = m.simulate(0.4, controller=held)
    assert np.array_equal(again.control.q, run.control.q)


def test_measured_state_closes_the_loops():
    m, seen = slider_crank(), []

    def watch(t, now):
        seen.append((now.q.copy(), m._model.values(["A", "S"], now.state[None])[0]))
        return [0.0]

    m.simulate(0.02, controller=Sampled(watch, 1e-3, noise=0.05, rng=1))
    for q, (a, x) in seen:
        assert abs(a - q[0]) < 1e-12
        assert abs(x - slide(a)[0]) < 1e-12


def test_the_controller_sees_the_efforts_within_limits():
    """An integrator with anti-windup by the difference of command and effort does not wind up."""
    m, state = arm(), {"sum": np.zeros(2), "last": np.zeros(2)}

    def pi(t, now):
        state["sum"] += (now.effort - state["last"]) + 0.01 * 50 * (GOAL - now.q)
        state["last"] = state["sum"] + 5 * (GOAL - now.q)
        return state["last"]

    run = m.simulate(1.0, controller=Sampled(pi, 1e-2, effort_limits=[10.0, 2.0]))
    assert (run.control.effort != run.control.command).any()
    applied = np.vstack([np.zeros(2), run.control.effort[:-1]])
    total, command = np.zeros(2), []
    for q, effort in zip(run.control.q, applied, strict=True):
        total = total + (effort - (command[-1] if command else 0.0)) + 0.01 * 50 * (GOAL - q)
        command.append(total + 5 * (GOAL - q))
    assert np.abs(np.array(command) - run.control.command).max() < 1e-12


@pytest.mark.slow
def test_controllers_of_the_package_and_other_methods():
    m = arm()
    go = kic.trajectory.quintic({"A": 0.0, "B": 0.0}, {"A": 0.5, "B": 0.3}, 0.3)
    law = kic.controllers.ComputedTorque(m, go, kp=400.0, kd=40.0)
    runs = [
        m.simulate(0.3, controller=Sampled(law, 2e-3), integrator=method)
        for method in ("DOP853", "RK45", "LSODA", "Radau")
    ]
    assert np.abs(runs[0].q[-1] - [0.5, 0.3]).max() < 1e-3
    for run in runs[1:]:
        assert np.abs(run.q - runs[0].q).max() < 1e-6


@pytest.mark.parametrize("delay", [0.0, 3e-3])
def test_a_sampled_run_is_saved_and_continued(tmp_path, delay):
    m = slider_crank()
    given = {
        "controller": Sampled(lambda t, now: [1.0 - now.qd[0], 2.0], 1e-3, delay=delay),
        "actuators": ["A", "S"],
    }
    whole, first = m.simulate(0.1, **given), m.simulate(0.05, **given)
    first.save(tmp_path / "run.npz")
    loaded = kic.results.Simulation.load(tmp_path / "run.npz")
    assert loaded.actuators == ("A", "S")
    assert np.array_equal(loaded.control.command, first.control.command)
    run = m.simulate(0.1, near=loaded, **given)
    assert np.abs(run.q[-1] - whole.q[-1]).max() < 1e-9
    assert np.abs(run.control.t - whole.control.t).max() < 1e-12
    assert np.abs(run.control.effort - whole.control.effort).max() < 1e-8
    with raises(kic.InputError, key="actuators"):
        m.simulate(0.2, near=run)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"controller": lambda t, now: [0.0, 0.0]}, "controller"),
        ({"controller": 3.0}, "controller"),
        ({"controller": Sampled(lambda t, now: [0.0], 1e-3)}, "controller"),
        ({"controller": Sampled(lambda t, now: [0.0, 0.0], 1e-12)}, "time"),
        ({"effort": {"A": 1.0}, "actuators": ["A"]}, "actuators"),
        ({"effort": [1.0], "actuators": ["A", "A"]}, "actuators"),
        ({"actuators": []}, "actuators"),
        ({"effort": lambda t, q, qd: q}, "effort"),
        ({"effort": {"A": lambda t: t}}, "effort"),
        ({"effort": {"A": kic.controllers.GravityCompensation(arm())}}, "effort"),
    ],
)
def test_wrong_arguments(given, key):
    with raises(kic.InputError, key=key):
        arm().simulate(0.1, **given)


def test_wrong_samplings():
    for key in ("noise", "rate_noise", "quantization", "rate_quantization"):
        for value in (-1.0, [1.0], np.nan, np.inf, "much"):
            with raises(kic.InputError, key=key):
                arm().simulate(0.1, controller=Sampled(lambda t, now: now.q, 1e-3, **{key: value}))
    with raises(kic.InputError, key="rng"):
        arm().simulate(0.1, controller=Sampled(lambda t, now: now.q, 1e-3, rng=-1))
    with pytest.raises(kic.UnknownNameError):
        arm().simulate(0.1, controller=Sampled(lambda t, now: now.q, 1e-3, effort_limits={"C": 1.0}))


@pytest.mark.parametrize("law", [lambda t, now: [0.0, 0.0], kic.controllers.GravityCompensation(arm())])
def test_the_remedy_for_a_controller_that_is_not_sampled_works(law):
    with raises(kic.InputError, key="controller") as caught:
        arm().simulate(0.01, controller=law)
    remedy = "Write `kic.controllers.Sampled(controller, time)`, or pass a continuous one as `effort`."
    assert str(caught.value).endswith(remedy)
    assert len(arm().simulate(0.01, controller=Sampled(law, 1e-3)).control.t) == 10
    arm().simulate(0.01, effort=law)


@pytest.mark.parametrize(
    ("key", "given", "place"),
    [
        ("effort", Sampled(lambda t, now: 0.0, 0.01), "controller"),
        ("voltage", Sampled(lambda t, now: 0.0, 0.01), "controller"),
        ("effort", kic.Voltage(1.0), "voltage"),
    ],
)
def test_samplers_and_voltages_in_the_wrong_place(key, given, place):
    with raises(kic.InputError, key=key) as caught:
        arm().simulate(0.01, **{key: given})
    assert str(caught.value).endswith(f"Pass it as `{place}`.")


def test_voltages_must_be_given():
    with raises(kic.InputError, key="integrator"):
        arm().simulate(0.01, integrator=None)


def test_declared_limits_of_some_actuators_and_a_class():
    """Limits of actuators that do not act are left out; a method `check` of a user's class is its own."""

    class Push:
        def check(self) -> None:
            raise AssertionError

        def __call__(self, t, now):
            return [100.0]

    declared = arm().replace("A", effort_limits=5.0).replace("B", effort_limits=1.0)
    held = Sampled(Push(), 1e-2, effort_limits=True)
    run = declared.simulate(0.05, controller=held, actuators="A")
    assert run.control.actuators == ("A",)
    assert (run.control.effort == 5.0).all()


def test_limits_and_events_between_samples():
    """A run with events finds them between samples, at the time of a run without interruption."""
    m = arm()
    hold = {"events": lambda t, now: now.q[0] + 0.3}
    run = m.simulate(0.5, effort=[1.0, 0.2], **hold, integrator=TIGHT)
    at = m.simulate(0.5, controller=Sampled(lambda t, now: [1.0, 0.2], 7e-3), **hold, integrator=TIGHT)
    assert len(run.events) == len(at.events) == 1
    assert abs(run.events[0][0] - at.events[0][0]) < 1e-9


@pytest.mark.slow
def test_a_platform_at_one_kilohertz():
    m = kic.load("gough-stewart")
    rest = m.at().inverse_dynamics()
    home = m.simulate(1e-3, effort=rest).q[0]

    def law(t, now):
        return rest + 5e4 * (home + 0.02 * np.sin(6 * t) - now.q) - 2e3 * now.qd

    run = m.simulate(1.0, controller=Sampled(law, 1e-3))
    assert len(run.control.t) == 1000
    assert np.abs(run.energy.residual).max() < 1e-9 * np.abs(run.energy.total).max()
    assert run.closure.max() < 1e-12


def test_a_spatial_arm_against_mujoco():
    """Joint control of seven joints with a delay and limited torques, held between samples in both."""
    mujoco = pytest.importorskip("mujoco")
    m = kic.load("panda")
    text = kic.to_mjcf(m)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 2.5e-4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    start = np.array([0.1, 0.3, -0.2, -1.5, 0.2, 1.8, 0.3])
    limits = np.array([60.0] * 4 + [10.0] * 3)
    goal = start + np.array([0.3, -0.4, 0.3, 0.5, -0.3, 0.2, 0.6])

    def law(q, v):
        return np.array([200.0] * 4 + [40.0] * 3) * (goal - q) - np.array([25.0] * 4 + [3.0] * 3) * v

    held = Sampled(lambda t, now: law(now.q, now.qd), 4e-3, delay=4e-3, effort_limits=limits)
    run = m.simulate(0.2, controller=held, near=m.at(start), integrator=TIGHT)
    data = mujoco.MjData(model)
    data.qpos[:] = start
    held, waiting, found = np.zeros(7), np.zeros(7), [start.copy()]
    for _ in range(50):
        held, waiting = waiting, np.clip(law(data.qpos, data.qvel), -limits, limits)
        data.qfrc_applied[:] = held
        for _ in range(16):
            mujoco.mj_step(model, data)
        found.append(data.qpos.copy())
    assert (run.control.command != run.control.effort).any()
    # RK4 at steps of 0.25 ms: a step of half the length changes the result by less than 1e-10
    assert np.abs(run.q - np.array(found)).max() < AGREED


@pytest.mark.slow_for("gough-stewart")
@pytest.mark.parametrize("name", ["five-bar", "gough-stewart"])
def test_actuators_that_are_no_coordinates(name):
    """Runs in other coordinates agree with those in the coordinates of the actuators."""
    m = kic.load(name)
    motors = list(m.coordinates)
    wrt = (
        ["tip.x", "tip.y"]
        if name == "five-bar"
        else [f"platform.{x}" for x in ("x", "y", "z", "wx", "wy", "wz")]
    )
    rest, home = m.at().inverse_dynamics(), m.simulate(1e-3).q[0]
    scale = 200.0 if name == "five-bar" else 2e4

    def law(t, now):
        return rest + scale * (home + 0.02 * np.sin(9 * t) - now.q) - 0.1 * scale * now.qd

    own = m.simulate(0.1, controller=Sampled(law, 2e-3), integrator=TIGHT)
    held = Sampled(law, 2e-3, measured=motors)
    run = m.simulate(0.1, wrt=wrt, actuators=motors, controller=held, integrator=TIGHT)
    assert run.charts == 2  # in the coordinates of the motors
    steps = m.simulate(
        0.1,
        effort=lambda t, now: np.zeros(len(motors)),
        wrt=wrt,
        actuators=motors,
        controller=held,
        integrator=TIGHT,
    )
    assert steps.charts == 1
    for other in (run, steps):
        found = np.stack([other[motor] for motor in motors], axis=1)
        assert np.abs(found - own.q).max() < 1e-9 * np.abs(own.q).max()
        assert np.abs(other.actuator_effort - own.effort).max() < 1e-7 * np.abs(own.effort).max()
        work = other.effort * other.qd
        assert np.abs(work.sum(axis=1) - own.actuator_power.sum(axis=1)).max() < 1e-6 * np.abs(work).max()


def test_a_continued_run_keeps_the_clock_of_its_controller():
    """Samples stay 1 ms apart, wherever the earlier run ended, also before its next sample."""
    m = slider_crank()
    given = {
        "controller": Sampled(lambda t, now: [1.0 - now.qd[0] + t, 2.0], 1e-3, delay=4e-4),
        "actuators": ["A", "S"],
    }
    run, whole = m.simulate(0.0104, **given), m.simulate(0.02, **given)
    for end in (0.0107, 0.0142, 0.015, 0.02):
        run = m.simulate(end, near=run, **given)
    assert run.control.t == pytest.approx(1e-3 * np.arange(20), abs=1e-12)
    assert np.abs(run.control.effort - whole.control.effort).max() < 1e-8
    assert np.abs(run.q[-1] - whole.q[-1]).max() < 1e-9
    # another sample time continues from the last sample
    other = m.simulate(0.03, near=run, **{**given, "controller": replace(given["controller"], time=3e-3)})
    assert other.control.t[20:] == pytest.approx([0.022, 0.025, 0.028], abs=1e-12)


@pytest.mark.parametrize("later", [0.0, 5e-4, 9e-3])
def test_pending_efforts_keep_their_delay(later):
    """A point mass pushed by known pulses, against its closed form; the second part has another delay."""
    m = kic.Mechanism(
        "cart",
        bodies=[kic.Body("cart", mass=2.0, com=(0, 0, 0), inertia=0.0)],
        joints=[kic.Joint("S", "prismatic", ("ground", "cart"), at=(0, 0, 0), axis=(1, 0, 0))],
    )

    def law(t, now):
        return 1.0 + 1000 * t**2

    first = m.simulate(0.01, controller=Sampled(law, 2e-3, delay=5e-3))
    run = m.simulate(0.02, near=first, controller=Sampled(law, 2e-3, delay=later))
    t = 2e-3 * np.arange(10)
    assert run.control.t == pytest.approx(t, abs=1e-12)
    assert run.control.effective == pytest.approx(t + np.where(t < 0.00999, 5e-3, later), abs=1e-12)
    # the latest sample that has arrived acts
    ends = np.union1d(run.control.effective, [0.0, 0.02])
    ends = ends[ends < 0.02 + 1e-12]
    rate = 0.0
    for a, b in pairwise(ends):
        arrived = np.flatnonzero(run.control.effective < (a + b) / 2)
        rate += (b - a) * (law(t[arrived.max()], None) if len(arrived) else 0.0) / 2.0
    assert run.qd[-1, 0] == pytest.approx(rate, rel=1e-8)


@pytest.mark.parametrize("inductance", [0.0, 2e-3])
def test_sampled_voltages_against_scipy(inductance):
    """A DC motor with gear, rotor and delay on a hinged bar: J φ̈ + m g l cos φ = torque, in own variables."""
    g, mass, length, ratio, k, R, Jr = 9.81, 2.0, 0.4, 20.0, 0.05, 1.2, 3e-5
    m = kic.Mechanism(
        "bar",
        bodies=[kic.Body("bar", mass=mass, com=(length, 0, 0), inertia=0.02)],
        joints=[kic.Joint("A", "revolute", ("ground", "bar"), at=(0, 0, 0), axis=(0, 0, 1))],
        motors=[kic.Motor("motor", ["A"], ratios=[ratio], inertia=Jr, torque_constant=k, resistance=R,
                          inductance=inductance)],
        gravity=(0, -g, 0),
    )  # fmt: skip
    period, delay, most = 2e-3, 5e-4, 9.0
    seen = []

    def law(t, now):
        seen.append(now.current.copy())
        return [40.0 * (0.5 - now.q[0]) - 2.0 * now.qd[0] + 3.0]

    held = Sampled(law, period, delay=delay, gives="voltages", voltage_limits=most)
    run = m.simulate(0.1, controller=held, voltage=0.0, integrator=kic.Integrator(rtol=1e-11, atol=1e-11))
    J = 0.02 + mass * length**2 + ratio**2 * Jr

    def rates(t, x, voltage):
        current = x[2] if inductance else (voltage - k * ratio * x[1]) / R
        torque = ratio * k * current - mass * g * length * np.cos(x[0])
        electric = (voltage - R * current - k * ratio * x[1]) / inductance if inductance else 0.0
        return [x[1], torque / J, electric]

    x, voltage, known, commands = np.zeros(3), 0.0, [], []
    for _ in range(50):
        command = 40.0 * (0.5 - x[0]) - 2.0 * x[1] + 3.0
        known.append(x[:2].copy())
        commands.append(command)
        for span, u in ((delay, voltage), (period - delay, np.clip(command, -most, most))):
            x = solve_ivp(rates, (0, span), x, args=(u,), rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
        voltage = np.clip(command, -most, most)
    assert run.control.actuators == ("motor",)
    assert np.abs(run.control.command[:, 0] - commands).max() < 1e-6 * np.abs(commands).max()
    assert (np.abs(run.control.command) > most).any()
    assert np.abs(run.control.effort).max() == most
    assert np.abs(np.array(known)[:, 0] - run.control.q[:, 0]).max() < AGREED
    assert np.abs(run.q[-1, 0] - x[0]) < AGREED
    assert np.array(seen).shape == (50, 1)
    assert np.isfinite(seen).all()
    assert abs(run.energy.residual).max() < 1e-7


@pytest.mark.slow
def test_controllers_of_voltages_are_sampled(tmp_path):
    m = kic.load("four-bar-motor")
    start = float(m.at().value("A"))
    go = kic.trajectory.quintic({"A": start}, {"A": start + 0.4}, 0.3)
    control = kic.controllers.ComputedVoltage(m, go, kp=400.0, kd=40.0)
    fine = m.simulate(0.3, controller=Sampled(control, 1e-4), voltage=0.0)
    assert np.abs(fine.q - go(fine.t).q).max() < 2e-3
    fine.save(tmp_path / "run.npz")
    loaded = kic.results.Simulation.load(tmp_path / "run.npz")
    assert loaded.control.actuators == fine.control.actuators == ("motor",)
    assert np.array_equal(loaded.control.effort, fine.control.effort)
    assert np.abs(fine.voltage[:-1] - fine.control.effort).max() == 0.0


def test_noise_goes_on_in_a_continued_run() -> None:
    m = kic.load("four-bar")
    held = Sampled(lambda t, now: [0.0], 0.01, noise=0.1)
    whole = m.simulate(0.09, controller=held)
    part = m.simulate(0.03, controller=held)
    for end in (0.06, 0.09):
        part = m.simulate(end, near=part, controller=held)
    assert len(whole.control.t) == len(part.control.t)
    assert np.abs(whole.control.q - part.control.q).max() < 1e-6


def test_controllers_keep_copies_of_their_arguments() -> None:
    m = kic.load("panda")
    now = m.prepare.pose("link7")(m.at().state)
    p, R, gain = now.p.copy(), now.R.copy(), 50.0 * np.eye(6)
    control = kic.controllers.OperationalSpaceControl(m, {"link7": (p, R)}, gain, 5.0)
    measured = m.at()._phi + 0.1, np.zeros(7)
    first = control(0.0, measured)
    for a in (p, R, gain):
        a += 1.0
    assert np.array_equal(control(0.0, measured), first)
