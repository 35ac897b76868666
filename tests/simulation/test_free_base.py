"""Closed mechanisms with a free base: angular velocities as coordinates of position problems and simulations.

A run in other coordinates, SciPy's integrator with Euler angles, and conserved momenta are the references.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from raising import raises
from scipy.integrate import solve_ivp
from scipy.spatial.transform import RigidTransform, Rotation
from stage_counter import compiled_and_plain

import kic

ROOT = tuple(f"root.{k}" for k in range(1, 7))
TIGHT = kic.Integrator(rtol=1e-11, atol=1e-11)


def sine(t: float) -> tuple[float, float, float]:
    """Value, rate and acceleration of a prescribed motion."""
    return np.sin(t), np.cos(t), -np.sin(t)


def body(name: str, mass: float, com: tuple[float, float, float]) -> kic.Body:
    """A body with three different moments of inertia."""
    return kic.Body(name, mass=mass, com=com, inertia=(0.02 * mass, 0.03 * mass, 0.025 * mass))


@pytest.fixture(scope="module")
def floating() -> kic.Mechanism:
    """A four-bar linkage on a base that floats in space."""
    return kic.Mechanism(
        "floating-four-bar",
        bodies=[
            body("base", 2.0, (0.2, 0.1, 0.05)),
            body("crank", 1.0, (0.0, 0.1, 0.0)),
            body("coupler", 1.0, (0.2, 0.25, 0.02)),
            body("rocker", 1.0, (0.4, 0.15, 0.0)),
        ],
        joints=[
            kic.Joint("root", "free", ("ground", "base"), at=(0.1, 0.2, 0.3)),
            kic.Joint("A", "revolute", ("base", "crank"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("B", "revolute", ("crank", "coupler"), at=(0, 0.2, 0), axis=(0, 0, 1)),
            kic.Joint("C", "revolute", ("coupler", "rocker"), at=(0.4, 0.3, 0), axis=(0, 0, 1)),
            kic.Joint("D", "revolute", ("base", "rocker"), at=(0.4, 0, 0), axis=(0, 0, 1)),
        ],
        coordinates=["root", "A"],
        gravity=(0, 0, 0),
    )


@pytest.fixture(scope="module")
def standing() -> kic.Mechanism:
    """A base on three legs with three hinges each, whose feet are pinned to the ground."""
    bodies, joints, contacts = [body("base", 4.0, (0.02, 0.01, 0.42))], [], []
    joints.append(kic.Joint("root", "free", ("ground", "base"), at=(0, 0, 0.4)))
    for k, angle in enumerate(np.pi * np.array([0.1, 0.75, 1.4]), 1):
        out, side = np.array([np.cos(angle), np.sin(angle), 0]), (-np.sin(angle), np.cos(angle), 0)
        up = np.array([0, 0, 1])
        hip, knee, foot = 0.2 * out + 0.4 * up, 0.35 * out + 0.25 * up, 0.25 * out
        names = "base", f"hip{k}", f"thigh{k}", f"shank{k}"
        centres = hip + 0.05 * out, (hip + knee) / 2, (knee + foot) / 2
        bodies += [
            body(n, m, tuple(c.tolist())) for n, m, c in zip(names[1:], (0.1, 0.4, 0.3), centres, strict=True)
        ]
        places = (hip, (0, 0, 1)), (hip, side), (knee, side)
        for letter, pair, (at, axis) in zip("abc", pairwise(names), places, strict=True):
            joints.append(kic.Joint(f"{letter}{k}", "revolute", pair, at=tuple(at.tolist()), axis=axis))
        contacts.append(
            kic.Contact(f"foot{k}", "pinned", (names[3], "ground"), tuple(foot.tolist()), closed=True)
        )
    return kic.Mechanism(
        "standing-tripod",
        bodies=bodies,
        joints=joints,
        contacts=contacts,
        gravity=(0, 0, -9.81),
        coordinates=["root"],
    )


def alike(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference of states, whose quaternion (3:7) has either sign."""
    other = b.copy()
    other[3:7] *= -1
    return float(min(np.abs(a - b).max(), np.abs(a - other).max()))


def angles_of(m: kic.Mechanism, joint: str) -> tuple[str, ...]:
    """The coordinates with Euler angles of the base in place of the free joint."""
    return ("base.x", "base.y", "base.z", "base.euler_xyz", joint)


@pytest.mark.slow
def test_positions_of_free_bases_equal_those_of_at(floating, standing):
    rng = np.random.default_rng(0)
    for m, size in ((floating, 0.8), (standing, 0.02)):
        c, close = m.at(), m.prepare.position()
        assert close.names == tuple(m.coordinates)
        values = size * rng.normal(size=(6, len(close.names)))
        exact = m.at(values, near=c)
        found = close(c.state, values)
        assert found.shape == exact.state.shape
        assert max(map(alike, found, exact.state)) < 1e-11
        assert alike(close(c, values[0]), exact.state[0]) < 1e-11
        assert close(c.state, np.zeros((0, values.shape[1]))).shape == (0, c.state.size)


def test_positions_with_quaternions(floating):
    c, close = floating.at(), floating.prepare.position()
    x = np.array([0.1, 0.2, 0.3, *Rotation.from_rotvec([0.3, 0.1, -0.2]).as_quat(scalar_first=True), 0.2])
    order = [*close.names].index("A")
    assert order == len(close.names) - 1
    x = np.concatenate([x[:3], x[-1:], x[3:-1]])  # values first
    found = close(c.state, x)
    assert alike(found, close(c.state, [0.1, 0.2, 0.3, 0.3, 0.1, -0.2, 0.2])) < 1e-11
    x[4:] *= 3.0
    assert alike(found, close(c.state, x)) < 1e-11
    for bad in (0.0, np.nan):
        x[4:] = bad
        with raises(kic.InputError, name="root"):
            close(c.state, x)


def test_positions_by_angular_velocities_of_a_body(standing):
    """A body's rotation vector is its rotation from the reference configuration."""
    c, turn = standing.at(), np.array([0.1, -0.05, 0.2])
    pose = RigidTransform.from_components([0.01, 0.02, -0.03], Rotation.from_rotvec(turn))
    exact = standing.at({"base": pose})
    close = standing.prepare.position(wrt=["base"])
    found = close(c.state, np.concatenate([exact.value(["base.x", "base.y", "base.z"]), turn]))
    assert alike(found, exact.state) < 1e-11


def test_a_full_turn_of_the_base_is_made_in_parts(floating):
    c, close = floating.at(), floating.prepare.position()
    for angle in (3.0, -3.1, np.pi):
        values = np.array([0.1, 0.2, 0.3, 0.0, 0.6 * angle, 0.8 * angle, 0.2])
        assert alike(close(c.state, values), floating.at(values, near=c).state) < 1e-11


@pytest.mark.parametrize("ball", ["V", "S1"])
def test_orientations_of_ball_joints_in_a_loop(ball):
    """A ball joint between moving bodies, and one that closes a loop, have orientations like others."""
    bodies, joints = [body("plate", 1.0, (0.1, 0.05, 0.3))], []
    for k, (foot, head) in enumerate([((0.6, 0, 0), (0.3, 0.1, 0.3)), ((0, 0.5, 0.1), (-0.1, 0.3, 0.4))], 1):
        foot, head = np.array(foot), np.array(head)
        line = head - foot
        names = "ground", f"yoke{k}", f"cylinder{k}", f"rod{k}", "plate"
        for n, share in zip(names[1:4], (0.0, 0.3, 0.8), strict=True):
            bodies.append(body(n, 0.2 + share, tuple((foot + share * line).tolist())))
        foot, head, line = (tuple(x.tolist()) for x in (foot, head, line))
        level = tuple(np.cross(line, (0, 0, 1)).tolist())
        axes = (
            ("a", "revolute", foot, (0, 0, 1)),
            ("b", "revolute", foot, level),
            ("P", "prismatic", None, line),
        )
        for (letter, kind, at, axis), pair in zip(axes, pairwise(names), strict=False):
            joints.append(kic.Joint(f"{letter}{k}", kind, pair, at=at, axis=axis))
        joints.append(kic.Joint(f"S{k}", "spherical", names[3:], at=head))
    joints.append(kic.Joint("V", "spherical", ("ground", "plate"), at=(0, 0, 0)))
    m = kic.Mechanism(
        "plate-on-a-ball", bodies=bodies, joints=joints, gravity=(0, 0, -9.81), coordinates=["P1", "P2", "a1"]
    )
    cuts = {joint.name for joint in m._model.tree.cuts}
    assert "V" in cuts
    assert "S1" not in cuts
    c, names = m.at(), tuple(f"{ball}.{k}" for k in (1, 2, 3))
    rates = np.array([0.3, -0.2, 0.1])
    run = m.simulate([0.0, 0.1, 0.2], near=c, qd=rates, integrator=TIGHT)
    turns = c.coefficients(list(names), order=1).G @ rates
    turned = m.simulate(run.t, near=c, wrt=ball, qd=turns, integrator=TIGHT)
    assert turned.coordinates == names
    assert turned.charts == 1
    assert max(alike_everywhere(m, a, b) for a, b in zip(run.state, turned.state, strict=True)) < 1e-8
    close = m.prepare.position(wrt=ball)
    for there, q in zip(run.state, turned.q, strict=True):
        assert alike_everywhere(m, close(c.state, q), there) < 1e-8


def alike_everywhere(m: kic.Mechanism, a: np.ndarray, b: np.ndarray) -> float:
    """Largest distance of the axes and points of bodies at two states."""
    poses = [[m._model.poses(one.name, x[None])[0] for one in m.bodies] for x in (a, b)]
    return float(np.abs(np.subtract(*poses)).max())


@pytest.mark.slow_for("False")
@pytest.mark.parametrize("backwards", [False, True])
def test_second_order_in_angular_velocities(floating, backwards):
    """Pairs of one order, for rotation vectors, give the coefficients for angular velocities.

    A pendulum hangs on the coupler by a ball joint, whose angular velocity is a coordinate, too. References
    are the tables of every pair, which third order needs, and the transfer from Euler angles.
    """
    pair = ("ball", "coupler") if backwards else ("coupler", "ball")
    m = replace(
        floating,
        bodies=[*floating.bodies, body("ball", 0.7, (0.3, 0.5, -0.2))],
        joints=[*floating.joints, kic.Joint("S", "spherical", pair, at=(0.2, 0.3, 0.1))],
        points=[kic.Point("tip", "ball", at=(0.3, 0.4, -0.3)), kic.Point("eye", "base", at=(0.1, 0.0, 0.2))],
        distances=[kic.Distance("gap", ("tip", "eye"))],
        coordinates=["S", "A", "root"],
        gravity=(0, 0, -9.81),
    )
    start = m.at(
        {"root": [0.1, -0.2, 0.3, 0.5, -0.4, 0.8], "A": 0.3, "ball": Rotation.from_rotvec([0.7, 0.2, -0.5])}
    )
    c, outputs = start, ["tip", "gap", "ball", "rocker.wx", "rocker.wy", "rocker.wz", "com", "B", "D"]
    second, third = (c.coefficients(outputs, order=order) for order in (2, 3))
    assert np.abs(second.H - np.swapaxes(second.H, -1, -2)).max() > 0.1
    assert np.abs(second.H - third.H).max() < 1e-12 * np.abs(third.H).max()
    angles = ["ball.euler_xyz", "A", "base.x", "base.y", "base.z", "base.euler_zyx"]
    found, other = c.dynamics(), c.dynamics(wrt=angles).transfer(c.coefficients(angles, order=2))
    assert np.abs(found.I - other.I).max() < 1e-11 * np.abs(other.I).max()
    assert np.abs(found.P - other.P).max() < 1e-11 * np.abs(other.P).max()
    single = m.prepare.coefficients_and_dynamics(outputs, order=2)(c.state)
    assert np.abs(single.P - found.P).max() < 1e-12 * np.abs(found.P).max()
    # only one ball, and single rates of the other, have every pair
    wrt = ["S", "A", "base"]
    mixed = c.dynamics(wrt=wrt).transfer(c.coefficients(wrt, order=2))
    assert np.abs(found.P - mixed.P).max() < 1e-11 * np.abs(other.P).max()


@pytest.mark.slow
def test_runs_equal_integration_in_euler_angles(floating):
    """SciPy integrates positions and rates of Euler angles, with loops closed by at()."""
    m = replace(floating, gravity=(0, 0, -9.81))
    c, names = m.at({"root": [0, 0, 0, 0.2, -0.1, 0.3], "A": 0.2}, near=m.at()), angles_of(m, "A")
    rates = np.array([0.3, -0.2, 0.5, 1.5, 0.4, -0.8, 2.0])
    effort = np.array([0.1, 0.2, -0.3, 0.02, -0.03, 0.05, 0.1])
    run = m.simulate(np.linspace(0, 0.5, 6), near=c, effort=effort, qd=rates, integrator=TIGHT)
    assert run.charts == 1
    assert np.abs(run.energy.residual).max() < 1e-9
    assert run.closure.max() < 1e-12
    euler = c.coefficients(list(names), order=1)
    near = [c]

    def slope(t, y):
        values = dict(zip(names, (*y[:3], y[3:6], y[6]), strict=True))
        near[0] = here = m.at(values, near=near[0])
        to_root = here.coefficients([*ROOT, "A"], order=1, wrt=list(names)).G
        return np.concatenate([y[7:], here.forward_dynamics(y[7:], to_root.T @ effort, wrt=list(names))])

    start = np.concatenate([c.value(list(names)), euler.G @ rates])
    exact = solve_ivp(slope, (0, 0.5), start, "DOP853", t_eval=run.t, rtol=1e-9, atol=1e-11)
    assert np.abs(run.configuration.value(list(names)) - exact.y[:7].T).max() < 1e-8
    # coordinates of the run are those of the free joint, rotation vectors among them
    for k, t in enumerate(run.t):
        assert alike(m.at(run.q[k], near=c).state, run.state[k]) < 1e-10, t


@pytest.mark.slow
def test_compiled_stages_of_angular_velocities(floating, standing, monkeypatch):
    """Runs with quaternions among the unknowns equal those whose right-hand sides are evaluated in Python."""
    t, rates = np.linspace(0, 0.4, 9), np.array([0.1, -0.2, 0.3, 1.5, -1.0, 0.8, 2.0])
    effort = np.linspace(-0.2, 0.2, 7)
    given = {"A": lambda t: (np.sin(t), np.cos(t), -np.sin(t))}
    for args, more in (
        ((floating, floating.at(), t, effort), {"qd": rates}),
        ((floating, floating.at(), t, lambda t, now: effort - 0.1 * now.qd), {"qd": rates}),
        ((floating, floating.at(), t, effort), {"prescribed": given}),
        ((standing, standing.at(), t / 10, lambda t, now: 0.1 * now.qd), {}),
    ):
        run, plain = compiled_and_plain(monkeypatch, *args, integrator=TIGHT, **more)
        for key, value in run._arrays.items():
            assert np.abs(value - plain._arrays[key]).max(initial=0.0) < 1e-8, key


def test_momenta_of_a_floating_linkage_are_conserved(floating):
    """Without gravity momentum and angular momentum about the centre of mass stay."""
    c, rates = floating.at(), np.array([0.1, -0.3, 0.2, 2.0, -1.0, 3.0, 4.0])
    run = floating.simulate(np.linspace(0, 3, 13), near=c, qd=rates, integrator=TIGHT)
    momentum = np.einsum("tij,tj->ti", run.configuration.centroidal_momentum().matrix, run.qd)
    assert np.abs(momentum - momentum[0]).max() < 1e-8 * np.abs(momentum[0]).max()
    # the base turns more than once, so that no chart of three numbers serves
    assert np.abs(np.linalg.norm(run.qd[:, 3:6], axis=1)).min() * 3 > np.pi
    assert np.abs(run.energy.residual).max() < 1e-8


def test_standing_robot_moves_alike_in_angles_of_its_legs(standing):
    """Feet are closed contacts; the base drives the legs, or six of their hinges drive the base."""
    c, rates = standing.at(), np.array([0.05, -0.1, 0.1, 0.3, -0.2, 0.6])
    legs = ("a1", "b1", "c1", "a2", "b2", "c3")
    effort = np.array([0.0, 0.0, 9.81 * 6.4, 0.3, -0.2, 0.1])
    to_root = lambda t, now: standing_effort(standing, now, legs, effort)  # noqa: E731
    t = np.linspace(0, 0.3, 4)
    run = standing.simulate(t, near=c, effort=effort, qd=rates, integrator=replace(TIGHT, contacts="hold"))
    G = c.coefficients(list(legs), order=1).G
    other = standing.simulate(
        t, near=c, effort=to_root, qd=G @ rates, wrt=legs, integrator=replace(TIGHT, contacts="hold")
    )
    assert np.abs(run.energy.residual).max() < 1e-8
    assert run.closure.max() < 1e-12
    assert max(alike(a, b) for a, b in zip(run.state, other.state, strict=True)) < 1e-8
    assert np.abs(run.state[-1] - run.state[0]).max() > 0.05


def standing_effort(m: kic.Mechanism, now, legs: tuple[str, ...], effort: np.ndarray) -> np.ndarray:
    """Efforts at hinges of the legs that are equal to forces and moments at the base."""
    here = kic.mechanism.configuration.Configuration(m._model, (), now.state[None].copy())
    return here.coefficients(list(ROOT), order=1, wrt=list(legs)).G.T @ effort


def test_error_falls_with_the_tolerance_in_proportion_to_the_tolerance(floating):
    """Quaternions are integrated as other unknowns: the error is proportional to the tolerance."""
    c, rates = floating.at(), np.array([0.1, -0.3, 0.2, 2.0, -1.0, 3.0, 4.0])
    t = [0.0, 1.0]
    best = kic.Integrator(rtol=1e-13, atol=1e-13)
    exact = floating.simulate(t, near=c, qd=rates, integrator=best).state[-1]
    tolerances = np.array([1e-4, 1e-6, 1e-8])
    errors = [
        alike(floating.simulate(t, near=c, qd=rates, integrator=limits).state[-1], exact)
        for limits in (kic.Integrator("RK45", rtol=r, atol=r) for r in tolerances)
    ]
    assert np.polyfit(np.log(tolerances), np.log(errors), 1)[0] > 0.8


@pytest.mark.slow
def test_methods_agree(floating):
    c, rates = floating.at(), np.array([0.1, -0.3, 0.2, 2.0, -1.0, 3.0, 4.0])
    one, *others = (
        floating.simulate(0.3, near=c, qd=rates, integrator=kic.Integrator(name, rtol=1e-8, atol=1e-8))
        for name in ("RK45", "DOP853", "LSODA", "Radau")
    )
    for other in others:
        assert alike(one.state[-1], other.state[-1]) < 1e-5


def test_body_angular_velocities_of_an_open_chain():
    """A chain may be simulated in angular velocities other than its own."""
    m = kic.Mechanism(
        "arm-in-space",
        bodies=[body("base", 2.0, (0.1, 0.2, 0.3)), body("arm", 1.0, (0.6, 0.2, 0.1))],
        joints=[
            kic.Joint("root", "free", ("ground", "base"), at=(0, 0, 0)),
            kic.Joint("A", "revolute", ("base", "arm"), at=(0.3, 0.2, 0.1), axis=(0, 0.6, 0.8)),
        ],
    )
    c, rates = m.at(), np.array([0.1, -0.3, 0.2, 2.0, -1.0, 3.0, 4.0])
    own = m.simulate([0.0, 0.5, 1.0], near=c, qd=rates, integrator=TIGHT)
    names = ("arm", "A")
    other = m.simulate(
        own.t, near=c, wrt=names, qd=c.coefficients(list(names), order=1).G @ rates, integrator=TIGHT
    )
    assert alike(own.state[-1], other.state[-1]) < 1e-9
    turned = own.configuration.pose("arm").rotation
    assert np.abs((Rotation.from_rotvec(other.q[:, 3:6]) * turned.inv()).magnitude()).max() < 1e-9


def test_prescribed_joints_events_and_limits_of_a_floating_linkage(floating):
    c, rates = floating.at(), np.array([0.1, -0.3, 0.2, 0.5, -0.4, 0.3, 1.0])
    run = floating.simulate(
        np.linspace(0, 1, 5),
        near=c,
        qd=rates,
        prescribed={"A": sine},
        events=[lambda t, now: now.q[5] - 0.1],
        integrator=TIGHT,
    )
    assert np.abs(run["A"] - np.sin(run.t)).max() < 1e-9
    assert np.abs(run.energy.residual).max() < 1e-8
    (when, _), *_ = run.events
    fine = floating.simulate([0.0, when], near=c, qd=rates, prescribed={"A": sine}, integrator=TIGHT)
    assert abs(fine.q[-1, 5] - 0.1) < 1e-9
    stopped = floating.simulate(1.0, near=c, qd=rates, limits={"A": (-1, 0.3)})
    assert abs(stopped.q[-1, 6] - 0.3) < 1e-8


def test_runs_are_continued_and_saved(floating, tmp_path):
    c, rates = floating.at(), np.array([0.1, -0.3, 0.2, 2.0, -1.0, 3.0, 4.0])
    whole = floating.simulate([0.0, 0.4, 0.8], near=c, qd=rates, integrator=TIGHT)
    first = floating.simulate([0.0, 0.4], near=c, qd=rates, integrator=TIGHT)
    both = floating.simulate([0.4, 0.8], near=first, integrator=TIGHT)
    assert alike(both.state[-1], whole.state[-1]) < 1e-9
    path = tmp_path / "run.npz"
    whole.save(path)
    again = kic.results.Simulation.load(path)
    assert np.array_equal(again.q, whole.q)
    assert again.coordinates == (*ROOT, "A")


def test_coordinates_change_where_the_rocker_is_at_a_dead_centre(floating):
    """The crank turns fully; angular velocities stay while another joint replaces the rocker's."""
    c = floating.at()
    still = np.array([0, 0, 0, 0.3, 0.2, 0.1, 6.0])
    rates = c.coefficients([*ROOT, "D"], order=1).G @ still
    run = floating.simulate(np.linspace(0, 1.5, 7), near=c, qd=rates, wrt=["root", "D"], integrator=TIGHT)
    assert run.charts > 1
    other = floating.simulate(run.t, near=c, qd=still, integrator=TIGHT)
    assert max(alike(a, b) for a, b in zip(run.state, other.state, strict=True)) < 1e-7
    assert np.abs(run.q[:, 3:6] - other.q[:, 3:6]).max() < 1e-7


@pytest.mark.slow
def test_invalid_requests_raise(floating, standing):
    c = floating.at()
    close = floating.prepare.position()
    with raises(kic.InputError, names=("root.4", "root.5")):
        floating.simulate(1.0, near=c, wrt=[*ROOT[:5], "A", "base.euler_xyz.3"])
    with raises(kic.InputError, names=("base.wz",)):
        floating.prepare.position(wrt=[*ROOT[:3], "base.wz", "A", "base.euler_xyz.1", "base.euler_xyz.2"])
    with raises(kic.InputError, got=(6,)):
        close(c.state, np.zeros(6))
    with pytest.raises(kic.ConfigurationError):
        close(c.state, np.r_[np.zeros(6), np.nan])
    with pytest.raises(kic.InputError):
        close(c.state * np.nan, np.zeros(7))
    for wrong in (np.inf, 1e300):
        with raises(kic.ConfigurationError, failed=[(1,)]):
            close(c.state, [np.zeros(7), np.full(7, wrong)])
    with pytest.raises(kic.KicError):  # a quaternion without a direction
        close(np.zeros(c.state.size), np.zeros(7))
    with raises(kic.InputError, name="root.5"):
        floating.simulate(1.0, near=c, prescribed={"root.5": lambda t: (t, 1.0, 0.0)})
    with raises(kic.ConfigurationError, failed=[()]):
        standing.prepare.position()(standing.at().state, np.r_[0, 0, 1.0, 0, 0, 0])
