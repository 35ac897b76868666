"""Following a path in time: task errors, loop closure and drift of the coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import raises
from sampling import mismatch

import kic

HOME = np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
TURN = 2 * np.pi


@pytest.fixture(scope="module")
def panda() -> kic.Mechanism:
    return kic.load("panda")


def circle(c: kic.Configuration, radius: float = 0.1):
    """A circle of the flange that begins where it is; analytic in time."""
    home = c.value("flange")

    def course(t: float) -> np.ndarray:
        return home + radius * np.stack([np.cos(t) - 1, np.sin(t), 0 * t])

    return course


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["minimum norm", "minimum kinetic energy"])
def test_ten_turns_of_a_circle(panda: kic.Mechanism, weight: str) -> None:
    """The task stays on its path and the joints drift, since the law is not repeatable."""
    c = panda.at(HOME)
    f = panda.track({"flange": circle(c)}, np.linspace(0, 10 * TURN, 201), near=c, criterion=weight)
    assert np.abs(f.error).max() < 1e-12
    gap = f.configuration.value("flange")[::20] - c.value("flange")
    assert np.abs(gap).max() < 1e-12
    drift = f.drift(TURN)
    assert drift.shape == (10, 7)
    assert (np.abs(drift).max(axis=1) > 1e-3).all()
    assert np.abs(f.phi[-1] - f.phi[0] - drift.sum(axis=0)).max() < 1e-13
    assert "end − start" in f.summary().text()
    # half the steps, the same motion
    again = panda.track({"flange": circle(c)}, np.linspace(0, TURN, 11), near=c, criterion=weight)
    assert np.abs(again.phi[-1] - f.phi[20]).max() < 1e-8


def test_exact_task_keeps_the_integrated_motion(panda: kic.Mechanism) -> None:
    """The coordinates match the integral of the law by another integrator."""
    from scipy.integrate import solve_ivp

    c = panda.at(HOME)
    course = circle(c)
    f = panda.track({"flange": course}, np.linspace(0, TURN, 21), near=c)
    law = panda.prepare.resolve_redundancy("flange", order=1)

    def rate(t: float, q: np.ndarray) -> np.ndarray:
        return law(q, 0.1 * np.array([-np.sin(t), np.cos(t), 0.0])).qd

    other = solve_ivp(rate, (0, TURN), HOME, method="LSODA", rtol=1e-11, atol=1e-12)
    assert np.abs(other.y[:, -1] - f.phi[-1]).max() < 1e-8


@pytest.mark.slow
def test_preferred_configuration_makes_the_motion_repeatable(panda: kic.Mechanism) -> None:
    c = panda.at(HOME)
    aim = kic.PreferredConfiguration(dict(zip(c.coordinates, HOME, strict=True)), gain=4.0)
    f = panda.track({"flange": circle(c)}, np.linspace(0, 3 * TURN, 31), near=c, secondary=aim)
    free = panda.track({"flange": circle(c)}, np.linspace(0, 3 * TURN, 31), near=c)
    assert np.abs(f.error).max() < 1e-12
    assert np.abs(f.drift(TURN)[-1]).max() < 1e-4 * np.abs(free.drift(TURN)[-1]).max()


@pytest.mark.slow
def test_samples_functions_and_rates_agree(panda: kic.Mechanism) -> None:
    c = panda.at(HOME)
    t = np.linspace(0, 1, 41)
    course = circle(c)

    def rated(x: float) -> tuple[np.ndarray, ...]:
        rate = 0.1 * np.stack([-np.sin(x), np.cos(x), 0])
        return course(x), rate, 0.1 * np.stack([-np.cos(x), -np.sin(x), 0])

    by_step = panda.track({"flange": course}, t, near=c)
    by_rate = panda.track({"flange": rated}, t, near=c)
    by_spline = panda.track({"flange": np.stack([course(x) for x in t])}, t, near=c)
    assert np.abs(by_step.phi - by_rate.phi).max() < 1e-12
    assert np.abs(by_spline.phi - by_rate.phi).max() < 1e-8
    rest = panda.track({"flange": rated}, t, near=c, secondary=lambda x: -np.abs(x._phi))
    assert rest.qdd is None
    given = {name: v for name, v in zip(c.coordinates, HOME, strict=True)}
    drawn = panda.track({"flange": rated}, t, near=c, secondary=kic.PreferredConfiguration(given, gain=2.0))
    called = panda.track({"flange": rated}, t, near=c, secondary=lambda x: 2.0 * (HOME - x._phi))
    assert np.abs(drawn.phi - called.phi).max() < 1e-12
    u = drawn.configuration.coefficients("flange")
    assert mismatch(u.acceleration(drawn.qd, drawn.qdd), np.stack([rated(x)[2] for x in t])) < 1e-11
    assert by_step.qdd is None
    again = by_rate.configuration.resolve_redundancy(
        "flange", *(np.stack([np.broadcast_to(rated(x)[k], 3) for x in t]) for k in (1, 2))
    )
    assert mismatch(by_rate.qdd, again.qdd) < 1e-12
    assert np.abs(by_spline.qdd - by_rate.qdd).max() < 1e-3
    one = panda.track({"flange.x": lambda x: course(x)[0], "elbow.y": 0 * t}, t, near=c)
    assert one.rows == ("flange.x", "elbow.y")
    assert np.abs(one.error).max() < 1e-12


def test_gain_corrects_errors_without_exact(panda: kic.Mechanism) -> None:
    """An error at the start decays by exp(−gain · t)."""
    c = panda.at(HOME)
    home = c.value("flange") + np.array([0.01, -0.02, 0.01])
    t = np.linspace(0, 2, 5)
    given = {"near": c, "exact": False}
    f = panda.track({"flange": lambda x: home + 0 * x}, t, gain=3.0, **given)
    assert mismatch(f.error, np.exp(-3 * t)[:, None] * f.error[0]) < 1e-8
    assert mismatch(f.qd[0], c.resolve_redundancy("flange", 3 * f.error[0]).qd) < 1e-12
    f = panda.track({"flange": lambda x: home + 0 * x}, t, **given)
    assert np.abs(f.error - f.error[0]).max() < 1e-12
    assert np.abs(f.qd).max() == 0
    f = panda.track({"flange": lambda x: home + 0 * x}, t, near=c)
    assert np.abs(f.error).max() < 1e-13


@pytest.mark.slow
def test_poses(panda: kic.Mechanism) -> None:
    """Samples of a pose, and a function with its rates; the whole pose, or the orientation alone."""
    from scipy.spatial.transform import RigidTransform, Rotation

    c = panda.at(HOME)
    t = np.linspace(0, 1, 21)
    axis = np.array([0.2, -0.3, 0.1])
    place = c.pose("link7")

    def pose(x: float) -> tuple:
        turn = Rotation.from_rotvec(x * axis) * place.rotation
        at = c.value("link7.x") + 0.05 * x, c.value("link7.y") - 0.02 * x**2, c.value("link7.z")
        drawn = panda.at().value("link7.x"), panda.at().value("link7.y"), panda.at().value("link7.z")
        shift = np.array(at) - turn.apply(np.array(drawn))
        rate = np.concatenate([[0.05, -0.04 * x, 0.0], axis])
        later = np.concatenate([[0.0, -0.04, 0.0], np.zeros(3)])
        return RigidTransform.from_components(shift, turn), rate, later

    f = panda.track({"link7": pose}, t, near=c)
    assert f.rows == tuple(f"link7.{x}" for x in ("x", "y", "z", "wx", "wy", "wz"))
    assert np.abs(f.error).max() < 1e-12
    end = f.configuration.pose("link7")[-1].as_matrix()
    assert mismatch(end, pose(1.0)[0].as_matrix()) < 1e-12
    assert mismatch(c.coefficients("link7", order=1).velocity(f.qd[0]), pose(0.0)[1]) < 1e-12
    u = f.configuration.coefficients("link7")
    assert mismatch(u.acceleration(f.qd, f.qdd), np.stack([pose(x)[2] for x in t])) < 1e-11
    poses = RigidTransform.concatenate([pose(x)[0] for x in t])
    by_samples = panda.track({"link7": poses}, t, near=c)
    assert np.abs(by_samples.phi - f.phi).max() < 1e-7
    assert np.abs(by_samples.qdd - f.qdd).max() < 1e-5
    turned = panda.track({"link7": poses.rotation, "flange.z": c.value("flange.z") + 0 * t}, t, near=c)
    assert turned.rows == ("link7.wx", "link7.wy", "link7.wz", "flange.z")
    assert np.abs(turned.error).max() < 1e-12
    turned = panda.track({"link7": lambda x: (pose(x)[0].rotation, axis)}, t, near=c)
    assert np.abs(turned.error).max() < 1e-12


CLOSED = {
    "gough-stewart": {"platform.x": 0.05, "platform.z": -0.03},
    "three-legged-robot": {"w.x": 0.2, "platform.angle": 0.1},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLOSED)
def test_closed_mechanisms(name: str) -> None:
    """A partial task of a platform: loops closed at every time, the task met, rates those of the motion."""
    m = kic.load(name)
    c = m.at()
    t = np.linspace(0, 2 * TURN, 81)
    path = {
        row: (lambda x, row=row, size=size: c.value(row) + size * np.sin(x))
        for row, size in CLOSED[name].items()
    }
    f = m.track(path, t, near=c, criterion="minimum kinetic energy")
    assert np.abs(f.error).max() < 1e-11
    values, _ = f.configuration._model.closure(()).rows(f.configuration._states)
    assert np.abs(values).max() < 1e-12
    assert f.drift(TURN).shape == (2, f.phi.shape[-1])
    # rates of the coordinates by differences of sixth order, at the times between
    q = np.stack([f.configuration.value(x) for x in f.coordinates], axis=-1)
    near = sum(
        w * q[3 + k : len(t) - 3 + k] for k, w in zip((1, 2, 3), (45 / 60, -9 / 60, 1 / 60), strict=True)
    ) - sum(w * q[3 - k : len(t) - 3 - k] for k, w in zip((1, 2, 3), (45 / 60, -9 / 60, 1 / 60), strict=True))
    assert np.abs(near / (t[1] - t[0]) - f.qd[3:-3]).max() < 1e-4 * np.abs(f.qd).max()
    ud = np.stack([s * np.cos(t) for s in CLOSED[name].values()], axis=-1)
    law = f.configuration.resolve_redundancy(f.rows, ud, criterion="minimum kinetic energy")
    assert mismatch(f.qd, law.qd) < 1e-11


def test_cut_joint_turns_through_full_circles() -> None:
    """Its value is known modulo full turns, on the path and in the preferred configuration."""
    bars = kic.load("four-bar")
    joint = {j.name: j for j in bars.joints}
    m = replace(bars, joints=tuple(joint[k] for k in "BCDA"), coordinates=("B",))
    assert [j.name for j in m._model.tree.cuts] == ["A"]
    c = m.at()
    home = float(c.value("A"))
    f = m.track({"A": lambda t: home + t}, np.linspace(0, TURN, 41), near=c)
    assert np.abs(f.error).max() < 1e-12
    assert np.ptp(f.configuration.value("A")) > 6
    assert mismatch(f.configuration.coefficients("A").velocity(f.qd), np.ones((41, 1))) < 1e-11
    assert np.abs(f.configuration.value("C")[-1] - c.value("C")) < 1e-12
    there = [
        kic.PreferredConfiguration({"A": home + 0.2 + turns * TURN}).rates(c, None, ())
        for turns in (-1, 0, 2)
    ]
    for z in there:
        assert mismatch(z, 0.2 * c.coefficients("A").G[0]) < 1e-12


def test_batches(panda: kic.Mechanism) -> None:
    """Batches of starts and paths give the same results as single ones."""
    rng = np.random.default_rng(0)
    c = panda.at(HOME + 0.05 * rng.normal(size=(2, 7)))
    t = np.linspace(0, 1, 9)
    size = rng.uniform(0.02, 0.1, size=(3, 1, 1))
    home = c.value("flange")

    def course(x: float) -> np.ndarray:
        return home + size * np.stack([np.cos(x) - 1, np.sin(x), 0 * x])

    f = panda.track({"flange": course}, t, near=c)
    assert f.batch == (9, 3, 2)
    assert f.qd.shape == (9, 3, 2, 7)
    assert f.error.shape == (9, 3, 2, 3)
    assert f.damping.shape == (9, 3, 2)
    assert np.abs(f.error).max() < 1e-12
    one = panda.track({"flange": lambda x: course(x)[1, 0]}, t, near=panda.at(c._phi[0]))
    assert np.abs(one.phi - f.phi[:, 1, 0]).max() < 1e-9
    samples = panda.track({"flange": np.stack([course(x) for x in t])}, t, near=c)
    assert np.abs(samples.phi - f.phi).max() < 1e-6
    none = panda.track({"flange": circle(panda.at(HOME))}, t, near=panda.at(np.zeros((0, 7))))
    assert none.qd.shape == (9, 0, 7)
    assert "empty batch" in none.summary().text()
    assert "shown: member" in f.summary().text()
    assert "<table>" in f._repr_html_()


@pytest.mark.slow
def test_balls_keep_unit_quaternions() -> None:
    m = kic.Mechanism(
        "ball arm",
        bodies=[
            kic.Body(n, mass=1.0, com=(x, 0, 0), inertia=(0.1, 0.2, 0.2)) for n, x in (("a", 0.5), ("b", 1.5))
        ],
        joints=[
            kic.Joint("S", "spherical", ("ground", "a"), at=(0, 0, 0)),
            kic.Joint("E", "revolute", ("a", "b"), at=(1, 0, 0), axis=(0, 0, 1), value=0.5),
        ],
        points=[kic.Point("tip", "b", at=(1.8, 0.4, 0))],
    )
    c = m.at()
    home = c.value("tip")
    f = m.track(
        {"tip": lambda t: home + 0.3 * np.stack([np.cos(t) - 1, 0 * t, np.sin(t)])},
        np.linspace(0, TURN, 21),
        near=c,
    )
    assert np.abs(f.error).max() < 1e-12
    assert np.abs(np.linalg.norm(f.configuration.state[:, :4], axis=1) - 1).max() < 1e-14
    assert f.drift(TURN).shape == (1, 4)
    r = c.resolve_redundancy("tip", [0.1, 0.2, 0.3], [0.1, 0.0, 0.0], [0.0, 0.2, 0.0])
    assert np.abs(c.coefficients("tip", order=3).jerk(r.qd, r.qdd, r.qddd) - [0.0, 0.2, 0.0]).max() < 1e-12


@pytest.mark.slow
def test_damped_through_a_singular_configuration() -> None:
    """A two-link arm beyond its reach: an error without damping, with damping a reported task error."""
    m = kic.load("horn-two-link")
    c = m.at([0.3, 0.6])
    home = c.value("tip")[:2]
    out = home / np.linalg.norm(home)

    def course(t: float) -> tuple[np.ndarray, np.ndarray]:
        return home + 0.2 * t * out, 0.2 * out

    path = {
        "tip.x": lambda t: (course(t)[0][0], course(t)[1][0]),
        "tip.y": lambda t: (course(t)[0][1], course(t)[1][1]),
    }
    t = np.linspace(0, 1, 21)
    with pytest.raises((kic.ConfigurationError, kic.SingularError)):
        m.track(path, t, near=c)
    f = m.track(path, t, near=c, damping=(0.2, 0.1), gain=1.0)
    assert f.damping[0] == 0
    assert f.damping[-1] > 0
    assert np.abs(f.error[-1]).max() > 1e-3
    assert "damped in" in f.summary().text()
    assert f.qdd is None


def test_other_coordinates_and_weights() -> None:
    """A pose as coordinates, and a weight for each member."""
    m = kic.load("gough-stewart")
    c = m.at()
    t = np.linspace(0, 1, 5)
    path = {"platform.x": lambda x: 0.05 * np.sin(x), "L1": 0 * t + float(c.value("L1"))}
    Q = np.stack([np.eye(6), np.diag([1.0, 1.0, 1.0, 5.0, 5.0, 5.0])])
    f = m.track(path, t, near=c, wrt="platform", criterion=Q)
    assert f.batch == (5, 2)
    assert f.coordinates == c.coefficients("platform", order=1).rows
    assert np.abs(f.error).max() < 1e-12
    alone = m.track(path, t, near=c, wrt="platform", criterion=Q[1])
    assert np.abs(alone.phi - f.phi[:, 1]).max() < 1e-10
    assert np.abs(f.phi[-1, 0] - f.phi[-1, 1]).max() > 1e-5


def test_step_limits_raise(panda: kic.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    from kic.trajectory import tracking as following

    c = panda.at(HOME)
    given = {"path": {"flange": circle(c)}, "t": [0.0, 3.0], "near": c}
    panda.track(**given)
    monkeypatch.setattr(following, "TRACKING_STEPS_MAX", 2)
    with raises(kic.ConfigurationError, key="path") as caught:
        panda.track(**given)
    assert 0 < caught.value.time < 3


def test_loops_that_do_not_close_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    from kic.transfer.closure import Closure

    m = kic.load("five-bar")
    monkeypatch.setattr(Closure, "failure_reasons", lambda self, states, left: ["torn"] * len(states))
    with raises(kic.ConfigurationError, time=1.0):
        m.track({"tip.x": [m.at().value("tip.x")] * 2}, [0.0, 1.0])


def test_start_far_from_the_path(panda: kic.Mechanism) -> None:
    """Newton's method, with shortened steps where needed, reaches the path in every member that can."""
    rng = np.random.default_rng(1)
    c = panda.at(HOME + 0.3 * rng.normal(size=(20, 7)))
    goal = panda.at(HOME).value("flange")
    f = panda.track({"flange": np.stack([goal, goal])}, [0.0, 1.0], near=c)
    assert np.abs(f.error).max() < 1e-12
    far = np.broadcast_to(goal, (2, 20, 3)).copy()
    far[:, 3] += 2.0
    with raises(kic.ConfigurationError, key="near", failed=[(3,)]) as caught:
        panda.track({"flange": far}, [0.0, 1.0], near=c)
    assert caught.value.residual > 1.0


@pytest.mark.slow
def test_invalid_arguments_raise(panda: kic.Mechanism) -> None:
    from scipy.spatial.transform import Rotation

    c = panda.at(HOME)
    t = np.linspace(0, 1, 5)
    course = circle(c)
    good = {"path": {"flange": course}, "t": t, "near": c}
    cases = [
        ({"t": [0.0]}, {"key": "t", "got": [0.0]}),
        ({"t": [0.0, 1.0, 1.0]}, {"key": "t", "got": [0.0, 1.0, 1.0]}),
        ({"gain": -1.0}, {"key": "gain"}),
        ({"exact": "no"}, {"key": "exact", "got": "no"}),
        ({"tolerance": 0.0}, {"key": "tolerance"}),
        ({"path": course}, {"key": "path", "got": course}),
        ({"path": {}}, {"key": "path", "got": {}}),
        ({"path": {1: course}}, {"key": "path", "got": 1}),
        ({"path": {"nose": course}}, {"name": "nose"}),
        ({"path": {"link7": np.zeros((5, 6))}}, {"name": "link7"}),
        ({"path": {"flange": np.zeros((4, 3))}}, {"key": "path", "name": "flange"}),
        ({"path": {"flange": np.full((5, 3), np.nan)}}, {"key": "path", "name": "flange"}),
        ({"path": {"flange": lambda x: np.zeros(2)}}, {"key": "path", "name": "flange"}),
        ({"path": {"flange": lambda x: course(float(x))}}, {"key": "path", "name": "flange"}),
        ({"path": {"flange": lambda x: course(x).real}}, {"key": "path", "name": "flange"}),
        ({"path": {"flange": lambda x: (course(x), np.zeros(2))}}, {"key": "path", "name": "flange"}),
        ({"path": {"flange": Rotation.identity(5)}}, {"name": "flange"}),
        ({"path": {"link7": Rotation.identity(4)}}, {"key": "path", "got": (4,)}),
        ({"path": {"link7": lambda x: Rotation.identity()}}, {"key": "path", "name": "link7"}),
        ({"near": 3}, {"key": "near", "got": 3}),
        ({"secondary": (np.zeros(7), np.zeros(7))}, {"key": "secondary"}),
        ({"path": {"flange": lambda x: course(x) + 2.0}}, {"key": "near", "time": 0.0}),
        ({"path": {"flange": lambda x: course(x) + 2.0 * x}}, {"key": "path"}),
        ({"path": {"flange": lambda x: course(x) + 0 * x, "elbow": circle(c), "wrist": circle(c)}},
            {"key": "of", "got": 9}),
    ]  # fmt: skip
    for given, data in cases:
        with raises(kic.KicError, **data):
            panda.track(**{**good, **given})
    with raises(kic.InputError, function="Following a path"):
        panda.sensitivity(lambda m: m.track({"flange": course}, t).qd, ["flange.at.x"])
    f = panda.track(**good)
    with raises(kic.InputError, key="t"):
        f.drift(0.3)
    for period in (2.0, 5e-324):
        with raises(kic.InputError, key="t"):
            f.drift(period)
    with raises(kic.InputError, key="period"):
        f.drift(-1.0)


def test_trajectories_are_accepted_as_paths(panda: kic.Mechanism) -> None:
    c = panda.at(HOME)
    home = np.array(c.value("flange"))
    way = kic.trajectory.quintic({"flange": home}, {"flange": home + np.array([0.05, -0.03, 0.02])}, 1.0)
    t = np.linspace(0, 1, 4)
    f = panda.track(way, t, near=c)
    assert mismatch(f.configuration.value("flange"), way(t).q) < 1e-12
    rows = f.configuration.coefficients("flange")
    assert mismatch(rows.velocity(f.qd), way(t).qd) < 1e-10
    assert mismatch(rows.acceleration(f.qd, f.qdd), way(t).qdd) < 1e-9
    parts = {
        f"flange.{x}": kic.trajectory.quintic([a], [b], 1.0)
        for x, a, b in zip("xyz", home, way(1.0).q, strict=True)
    }
    again = panda.track(parts, t, near=c)
    assert mismatch(again.phi, f.phi) < 1e-9
    # longer than it lasts: it rests, as it does at its end
    rest = panda.track(way, [0.0, 1.0, 2.0], near=c)
    assert np.abs(rest.qd[-1]).max() < 1e-12
    five = kic.load("five-bar")
    here = five.at()
    q = np.array([here.value(x) for x in here.coordinates])
    bare = five.track(kic.trajectory.quintic(q, q + 0.1, 1.0), [0.0, 0.4, 1.0], near=here)
    assert (
        mismatch(
            bare.configuration.value("A"), kic.trajectory.quintic(q, q + 0.1, 1.0)([0.0, 0.4, 1.0]).q[:, 0]
        )
        < 1e-12
    )
    with raises(kic.InputError, key="names"):
        panda.track(kic.trajectory.line([0.0], [1.0]), t)
    with raises(kic.InputError, key="t"):
        panda.track(kic.trajectory.line({"flange": home}, {"flange": home + 0.01}), [0.0, 1.5], near=c)


@pytest.mark.slow
def test_stated_rates_are_checked(panda: kic.Mechanism) -> None:
    c = panda.at(HOME)
    home = np.array(c.value("flange"))
    t = np.linspace(0, 2, 9)

    def path(rate=1.0, bend=1.0, swing=1.0, turn=0):
        def course(x):
            e = np.array([0.05, 0.0, 0.02])
            u, v, a = np.sin(swing * x), swing * np.cos(swing * x), -(swing**2) * np.sin(swing * x)
            return (home + e * u, np.roll(rate * e * v, turn), bend * e * a)

        return {"flange": course}

    # what is right is believed: also fast, and to a part in a hundred thousand
    for good in (path(), path(swing=3.0), path(1 + 3e-6, 1 - 3e-6)):
        assert np.abs(panda.track(good, t, near=c).error).max() < 1e-12
    for wrong, order, row in (
        (path(rate=2.0), 1, "flange.x"),
        (path(rate=1.001), 1, "flange.x"),
        (path(rate=0.0, bend=0.0), 1, "flange.x"),
        (path(turn=1), 1, "flange.y"),
        (path(bend=0.0), 2, "flange.x"),
        (path(bend=-1.0), 2, "flange.x"),
    ):
        with raises(kic.InputError, name="flange", row=row, order=order) as caught:
            panda.track(wrong, t, near=c)
        e = caught.value
        at = wrong["flange"](e.time)[order]
        assert np.abs(at - e.stated).min() < 1e-12
        h = 1e-5
        before, after = (wrong["flange"](e.time + s)[order - 1] for s in (-h, h))
        assert np.abs((after - before) / (2 * h) - e.found).min() < 1e-7
    # a kink of the rate is no contradiction: the values are those of a trapezoid
    edge = kic.trajectory.trapezoid(
        home, home + np.array([0.1, 0.0, 0.0]), rate_limits=0.1, acceleration_limits=0.2
    )
    f = panda.track({"flange": lambda x: edge(x)[:2]}, np.linspace(0, edge.duration, 5), near=c)
    assert np.abs(f.error).max() < 1e-12
    # what stands still but for rounding, or for the noise of a calculation, is not refused either
    noise = np.random.default_rng(0)
    many = np.linspace(0, 1, 51)
    for size in (0.0, 1e-16, 1e-13):
        still = lambda x, size=size: (home + size * noise.normal(size=3), np.zeros(3), 1e-18 * np.ones(3))  # noqa: E731
        assert np.abs(panda.track({"flange": still}, many, near=c).qd).max() < 1e-12
    # paths side by side with one rate, and one path with rates side by side
    side = home + 0.01 * np.arange(4)[:, None] * np.array([0.0, 1.0, 0.0])
    step = np.array([0.0, 0.0, -0.02])
    f = panda.track({"flange": lambda x: (side + step * x, step)}, [0.0, 0.5, 1.0], near=c)
    assert f.batch == (3, 4)
    with raises(kic.InputError, name="flange", row="flange.y", order=1):
        panda.track({"flange": lambda x: (home + step * x, step + side - home)}, [0.0, 0.5, 1.0], near=c)
    # one row, of shape ()
    with raises(kic.InputError, name="flange.x", order=1):
        panda.track({"flange.x": lambda x: (home[0], 1.0)}, t, near=c)
