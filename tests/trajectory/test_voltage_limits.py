"""Voltage limits in time scaling: recomputed on the results, and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import raises

import kic
from kic import trajectory as tr
from kic.trajectory.path_constraints import intersection, nonnegative_intervals

PUMA = kic.load("puma560-motors")
SWING = tr.septic([0, 0, 0, 0, 0.3, 0], [1.0, 0.8, -0.7, 0.5, 0.8, 1.0], 1.0)
CIRCUIT = {"resistance": 0.5, "torque_constant": 0.02, "speed_constant": 0.021}


def quick(m: kic.Mechanism) -> kic.Mechanism:
    return replace(m, motors=[replace(motor, inductance=0.0) for motor in m.motors])


def five_bar(**more) -> kic.Mechanism:
    """A five-bar whose motors sit at the joints that are not its coordinates, geared together."""
    motors = [
        kic.Motor(
            "P", ["A", "B"], ratios=[30.0, 4.0], inertia=2e-5, damping=1e-5, friction=0.01, **CIRCUIT, **more
        ),
        kic.Motor("Q", ["D"], ratios=[-25.0], inertia=1e-5, damping=2e-5, friction=0.02, **CIRCUIT, **more),
    ]
    return replace(kic.load("five-bar"), motors=motors)


def sampled(trajectory: tr.Trajectory, m: kic.Mechanism) -> np.ndarray:
    return trajectory.on(m, 201).motor_demand().voltage


@pytest.mark.parametrize("inductance", [0.0, 1e-3, 0.2])
def test_uniform_just_reaches_the_voltage(inductance: float) -> None:
    """The largest voltage, recomputed with the jerk, equals the limit."""
    m = replace(PUMA, motors=[replace(motor, inductance=inductance) for motor in PUMA.motors])
    timed = tr.uniform(SWING, m, voltage_limits=40.0)
    most = np.abs(sampled(timed, m)).max()
    assert most == pytest.approx(40.0, rel=1e-9)
    # a little faster would be too fast
    assert np.abs(sampled(timed.scaled(0.999), m)).max() > 40.0


def test_inductance_adds_the_jerk() -> None:
    """A motor turns a flywheel by a cubic: V = k u̇ + R J ü/k + L J u⃛/k, largest at the end."""
    J, k, R, L = 1e-3, 0.05, 2.0, 0.5
    disc = kic.Mechanism(
        "disc",
        bodies=[kic.Body("disc", mass=1.0, com=(0, 0, 0), inertia=(J, J, J))],
        joints=[kic.Joint("A", "revolute", ("ground", "disc"), at=(0, 0, 0), axis=(0, 0, 1))],
        motors=[kic.Motor("M", ["A"], resistance=R, inductance=L, torque_constant=k)],
    )
    cubic = tr.septic(
        [0.0], [1.0], 1.0, end_rate=[3.0], end_acceleration=[6.0], start_jerk=[6.0], end_jerk=[6.0]
    )
    assert cubic.pieces.extremes(3)[1] == pytest.approx(6.0)
    r = 1 / tr.uniform(cubic, disc, voltage_limits=10.0).duration
    assert k * 3 * r + R * J * 6 * r**2 / k + L * J * 6 * r**3 / k == pytest.approx(10.0, rel=1e-10)


@pytest.mark.slow
def test_limits_by_name_and_one_sided() -> None:
    timed = tr.uniform(SWING, PUMA, voltage_limits={"elbow_motor": (-3.0, 10.0)})
    elbow = sampled(timed, PUMA)[:, 2]
    reach = max(elbow.max() / 10, -elbow.min() / 3)
    assert reach == pytest.approx(1.0, rel=1e-9)
    both = tr.uniform(SWING, PUMA, voltage_limits=40.0, effort_limits=1e3, rate_limits=0.5)
    assert np.abs(both.extremes(1)).max() == pytest.approx(0.5, rel=1e-12)
    efforts = tr.uniform(SWING, PUMA, voltage_limits=400.0, effort_limits=50.0)
    assert np.abs(efforts.on(PUMA, 201).effort()).max() == pytest.approx(50.0, rel=1e-9)
    assert np.abs(sampled(efforts, PUMA)).max() < 400


@pytest.mark.parametrize("inductance", [0.0, 2e-3])
def test_closed_mechanism_with_gears_and_friction(inductance: float) -> None:
    m = five_bar(inductance=inductance)
    at = m.at().value
    go = tr.septic({"A": at("A"), "E": at("E")}, {"A": at("A") + 0.3, "E": at("E") - 0.2}, 1.0)
    timed = tr.uniform(go, m, voltage_limits=24.0)
    # not at the ends, where the shafts stand still and dry friction is taken as none
    assert np.abs(sampled(timed, m)).max() == pytest.approx(24.0, rel=1e-9)


@pytest.mark.slow
def test_path_in_tip_coordinates() -> None:
    """Coordinates that are neither those of the mechanism nor the joints of the motors; both timings."""
    m = five_bar(inductance=2e-3)
    x, y, _ = m.at().value("tip")
    ends = {"tip.x": x, "tip.y": y}, {"tip.x": x + 0.05, "tip.y": y - 0.03}
    timed = tr.uniform(tr.septic(*ends, 1.0), m, voltage_limits=24.0)
    assert np.abs(sampled(timed, m)).max() == pytest.approx(24.0, rel=1e-9)
    # the same motion, asked in the mechanism's own coordinates
    course = timed.on(m, 5)
    own = course.of(["A", "E"])
    drive = course.configuration.motor_demand(own.qd, own.qdd, own.qddd)
    for key in ("speed", "torque", "current", "voltage"):
        a, b = getattr(course.motor_demand(), key), getattr(drive, key)
        assert np.abs(a - b).max() < 1e-8 * np.abs(b).max(), key
    best = tr.fastest(tr.line(*ends), quick(m), voltage_limits={"P": 24.0, "Q": (-20.0, 12.0)})
    middle = (best.t[1:] + best.t[:-1]) / 2
    P, Q = best.trajectory.on(quick(m), middle).motor_demand().voltage.T
    assert np.abs(P).max() < 24.1
    assert -20.1 < Q.min() < Q.max() < 12.1


@pytest.mark.slow
@pytest.mark.parametrize("which", ["arm", "five-bar"])
def test_fastest_respects_and_reaches_the_voltage(which: str) -> None:
    if which == "arm":
        m, limit = quick(PUMA), 40.0
        path = tr.line([0, 0, 0, 0, 0.3, 0], [1.0, 0.8, -0.7, 0.5, 0.8, 1.0])
    else:
        m, limit = five_bar(), 24.0
        at = m.at().value
        path = tr.line({"A": at("A"), "E": at("E")}, {"A": at("A") + 0.3, "E": at("E") - 0.2})
    grid = 401
    best = tr.fastest(path, m, voltage_limits=limit, grid=grid)
    assert all("voltage of " in name for name in best.binding)
    # recomputed between the points of the grid, where limits may be passed by the square of its step
    middle = (best.t[1:] + best.t[:-1]) / 2
    most = np.abs(best.trajectory.on(m, middle).motor_demand().voltage).max(axis=1)
    assert most.max() < limit * (1 + 1e-3)
    # at one end of each interval the limit is reached, at the other missed by what falls with its length
    assert np.median(most) > limit * (1 - 1 / grid)
    # and at the points, from inside of the intervals, exactly
    for side in (1e-7, -1e-7):
        t = best.t[1:-1] + side * np.diff(best.t).min()
        at_points = np.abs(best.trajectory.on(m, t).motor_demand().voltage).max()
        assert at_points < limit * (1 + 1e-6)


def test_nonnegative_intervals_of_cubics() -> None:
    """Comparison with a fine grid of speeds, for cubics with any roots, double roots, and lower degrees."""
    rng = np.random.default_rng(0)
    r = np.linspace(0, 6, 60001)
    for _ in range(50):
        c = rng.normal(size=(4, 3))
        c[0] += 1.0
        c[rng.random(c.shape) < 0.2] = 0.0
        room = nonnegative_intervals(c)
        good = (c[:, :, None] * r ** np.arange(4)[:, None, None]).sum(axis=0).min(axis=0)
        inside = ((r >= room[:, :1]) & (r <= room[:, 1:])).any(axis=0)
        assert (inside[good > 1e-9]).all()
        assert not inside[good < -1e-9].any()
    # touched, not crossed; and once more in units a million times as large
    assert nonnegative_intervals(np.array([[4.0], [-4.0], [1.0], [0.0]])).tolist() == [[0.0, np.inf]]
    far = np.array([[6.0], [-11.0], [6.0], [-1.0]])
    for s in (1.0, 1e6, 1e-6):
        scaled = far * s ** -np.arange(4.0)[:, None]
        assert nonnegative_intervals(scaled) == pytest.approx(
            s * np.array([[0.0, 1.0], [2.0, 3.0]]), rel=1e-12
        )
    assert nonnegative_intervals(np.array([[-1.0], [0.0], [0.0], [0.0]])).shape == (0, 2)
    assert intersection(np.zeros((0, 2)), np.array([[0.0, 1.0]])).shape == (0, 2)


SOURCE = replace(kic.load("horn-two-link"), motors=[kic.Motor("S", ["shoulder"]), kic.Motor("E", ["elbow"])])
LINE = tr.line([0.0] * 6, [0.5] * 6)
PUMA_MOTORS = tuple(motor.name for motor in PUMA.motors)
REFUSED = [
    ({"key": "mechanism"}, lambda: tr.uniform(SWING, voltage_limits=40.0)),
    ({"motors": ()}, lambda: tr.uniform(SWING, kic.load("puma560"), voltage_limits=40.0)),
    ({"name": "waist"}, lambda: tr.uniform(SWING, PUMA, voltage_limits={"waist": 1.0})),
    ({"key": "voltage_limits"}, lambda: tr.uniform(SWING, PUMA, voltage_limits=[1.0, 2.0])),
    ({"key": "voltage_limits", "motors": PUMA_MOTORS}, lambda: tr.fastest(
        LINE, PUMA, voltage_limits=40.0)),
    ({"key": "voltage_limits", "motors": ("S", "E")}, lambda: tr.uniform(
        tr.septic([0.0, 0.1], [0.4, 0.6], 1.0), SOURCE, voltage_limits=1.0)),
    ({"key": "limits"}, lambda: tr.uniform(
        SWING, PUMA, voltage_limits={"shoulder_motor": 1.0})),
    ({"key": "start_speed"}, lambda: tr.fastest(
        LINE, quick(PUMA), voltage_limits={"shoulder_motor": 1.0})),
]  # fmt: skip


@pytest.mark.parametrize(("data", "call"), REFUSED)
def test_invalid_arguments_raise(data: dict, call) -> None:
    with raises(kic.KicError, **data):
        call()
