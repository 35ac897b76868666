"""Controllers: closed-loop identities in the dynamics of open and closed mechanisms."""

from __future__ import annotations

import pickle
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from raising import raises
from sampling import mismatch
from scipy.integrate import solve_ivp
from scipy.linalg import solve_discrete_lyapunov
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic import controllers as co
from kic import trajectory as tr
from kic.simulation.reference import Reference

# mechanism, where it is, rows that are led, coordinates of q̇ and efforts
CASES = {
    "arm": ("horn-two-link", [0.4, 0.9], None, None),
    "arm at its tip": ("horn-two-link", [0.4, 0.9], ["tip.x", "tip.y"], None),
    "arm in tip coordinates": ("horn-two-link", [0.4, 0.9], None, ["tip.x", "tip.y"]),
    "five-bar": ("five-bar", None, None, None),
    "five-bar at its tip": ("five-bar", None, ["tip.x", "tip.y"], None),
    "four-bar by its rocker": ("four-bar", None, ["D"], None),
    "platform": ("gough-stewart", None, None, None),
}
every_case = pytest.mark.parametrize("name", CASES)
T = 0.3


class Case:
    """A configuration off its trajectory."""

    def __init__(self, name: str) -> None:
        model, at, rows, self.wrt = CASES[name]
        self.m = kic.load(model)
        self.c = self.m.at(at)
        self.rows = rows or list(self.c.coordinates)
        rng = np.random.default_rng(3)
        y = np.array([self.c.value(row) for row in self.rows])
        size = len(y)
        ends = [dict(zip(self.rows, y + rng.normal(size=size), strict=True)) for _ in range(2)]
        self.t = tr.septic(*ends, 1.0)
        self.kp, self.kd, self.ka = (np.diag(rng.uniform(1, 3, size)) + 0.1 for _ in range(3))
        self.qd, self.qdd = rng.normal(size=(2, size))
        self.q = np.array([self.c.value(x) for x in self.wrt or self.c.coordinates])
        self.measured = SimpleNamespace(q=self.q, qd=self.qd, qdd=self.qdd, state=self.c.state)
        self.want = self.t(T)
        self.error = self.want.q - y
        self.u = self.c.coefficients(self.rows, order=3, wrt=self.wrt)
        self.rate = self.want.qd - self.u.velocity(self.qd)
        self.args = self.m, self.t


@every_case
def test_computed_torque_gives_linear_error_dynamics(name: str) -> None:
    case = Case(name)
    effort = co.ComputedTorque(*case.args, case.kp, case.kd, wrt=case.wrt)(T, case.measured)
    qdd = case.c.dynamics(wrt=case.wrt).forward_dynamics(case.qd, effort)
    led = case.want.qdd + case.kd @ case.rate + case.kp @ case.error
    assert mismatch(case.u.acceleration(case.qd, qdd), led) < 1e-9
    same = co.ResolvedAcceleration(*case.args, case.kp, case.kd, wrt=case.wrt)
    assert mismatch(same(T, case.measured), qdd) < 1e-9


def pickled(control: co.Control) -> co.Control:
    """Return a controller from another process."""
    made: co.Control = pickle.loads(pickle.dumps(control))
    return made


@every_case
@pytest.mark.parametrize("law", [co.ComputedTorque, co.Impedance, co.GravityCompensation])
def test_a_copy_continues_alone(name: str, law: type[co.Control]) -> None:
    """A copy or a pickled controller shares no results with the first, before its first call and after."""
    case = Case(name)
    given = {"reference": case.t, "wrt": case.wrt}
    gains = {"stiffness": 2.0, "damping": 1.0} if law is co.Impedance else {"kp": 2.0, "kd": 1.0}
    control = law(case.m, **given, **gains)  # type: ignore[call-arg]
    other = case.m.at(case.c.value(case.m.coordinates) + 0.02)
    q = np.array([other.value(x) for x in case.wrt or other.coordinates])
    later = SimpleNamespace(q=q, qd=case.qd, state=other.state)
    copies = [deepcopy(control), pickled(control)]
    first = control(T, case.measured)
    copies += [deepcopy(control), pickled(control)]
    known = control(T, later)
    for one in copies:
        assert np.array_equal(one(T, later), known)
        assert np.array_equal(one(T, case.measured), first)


@every_case
def test_measurements_without_state(name: str) -> None:
    """A closed state is found from measured coordinates, near the one of the last call."""
    case = Case(name)
    control = co.ComputedTorque(*case.args, 2.0, 1.0, wrt=case.wrt)
    control.start(near=case.c)
    for _ in range(2):
        pair = control(T, (case.q.tolist(), case.qd.tolist()))
        assert mismatch(pair, control(T, case.measured)) < 1e-9


@every_case
def test_resolved_rates_and_jerks(name: str) -> None:
    case = Case(name)
    rate = co.ResolvedRate(*case.args, case.kp, wrt=case.wrt)(T, case.measured)
    assert mismatch(case.u.velocity(rate), case.want.qd + case.kp @ case.error) < 1e-10
    jerk = co.ResolvedJerk(*case.args, case.kp, case.kd, case.ka, wrt=case.wrt)
    qddd = jerk(T, case.measured)
    second = case.want.qdd - case.u.acceleration(case.qd, case.qdd)
    led = case.want.qddd + case.ka @ second + case.kd @ case.rate + case.kp @ case.error
    assert mismatch(case.u.jerk(case.qd, case.qdd, qddd), led) < 1e-9


@pytest.mark.parametrize("turns", [2, 3], ids=["about one axis", "through three orientations"])
@pytest.mark.parametrize("form", ["trajectories", "function", "rows apart"])
def test_resolved_motion_of_a_hand(turns: int, form: str) -> None:
    """Rates, accelerations and jerks of an arm that lead its pose along a trajectory of poses."""
    m, rng = kic.load("puma560"), np.random.default_rng(8)
    c = m.at([0.0, 0.5, -2.2, 0.7, 0.8, -0.4])
    u = c.coefficients("link6", order=3)
    ways = np.cumsum(rng.uniform(-0.5, 0.5, (turns, 3)), axis=0)
    turn = tr.rotation(Rotation.from_rotvec(ways) * c.pose("link6").rotation, duration=1.0)
    ends = u.values[:3] + 0.1, u.values[:3] - 0.1
    place = tr.septic(*ends, 1.0)
    reference = {
        "trajectories": {"link6": (place, turn)},
        "function": {"link6": lambda t: (
            (place(t).q, turn(t).rotation),
            *(np.append(x, w) for x, w in zip(place(t)[1:], turn(t)[1:], strict=True)),
        )},
        "rows apart": {
            "link6": turn,
            **{f"link6.{x}": tr.septic([a], [b], 1.0) for x, a, b in zip("xyz", *ends, strict=True)},
        },
    }[form]  # fmt: skip
    order = [3, 4, 5, 0, 1, 2] if form == "rows apart" else range(6)
    kp, kd, ka = (np.diag(rng.uniform(1, 3, 6)) + 0.1 for _ in range(3))
    p, k, a = (np.empty((6, 6)) for _ in range(3))
    for whole, gain in ((p, kp), (k, kd), (a, ka)):
        whole[np.ix_(order, order)] = gain
    qd, qdd = rng.normal(size=(2, 6))
    now = SimpleNamespace(q=c.value(m.coordinates), qd=qd, qdd=qdd, state=c.state)
    want = [np.append(x, w) for x, w in zip(place(T)[1:], turn(T)[1:], strict=True)]
    error = np.append(
        place(T).q - u.values[:3], (turn(T).rotation * c.pose("link6").rotation.inv()).as_rotvec()
    )
    rate, second = want[0] - u.velocity(qd), want[1] - u.acceleration(qd, qdd)
    found = co.ResolvedRate(m, reference, kp)(T, now)
    assert mismatch(u.velocity(found), want[0] + p @ error) < 1e-9
    found = co.ResolvedAcceleration(m, reference, kp, kd)(T, now)
    assert mismatch(u.acceleration(qd, found), want[1] + k @ rate + p @ error) < 1e-9
    found = co.ResolvedJerk(m, reference, kp, kd, ka)(T, now)
    assert mismatch(u.jerk(qd, qdd, found), want[2] + a @ second + k @ rate + p @ error) < 1e-9


@every_case
def test_gravity_compensation_balances_static_loads(name: str) -> None:
    case = Case(name)
    control = co.GravityCompensation(*case.args, case.kp, case.kd, wrt=case.wrt)
    load = case.c.dynamics(wrt=case.wrt).load
    force = case.kp @ case.error + case.kd @ case.rate
    assert mismatch(control(T, case.measured), case.u.G.T @ force - load) < 1e-11
    assert mismatch(co.GravityCompensation(case.m, wrt=case.wrt)(T, case.measured), -load) < 1e-11
    slowed = co.GravityCompensation(case.m, kd=2.0, wrt=case.wrt)(T, case.measured)
    assert mismatch(slowed, -load - 2.0 * case.qd) < 1e-11
    stay = dict(zip(case.rows, (case.want.q - case.error).tolist(), strict=True))
    hold = co.GravityCompensation(case.m, stay, 5.0, 1.0, wrt=case.wrt)
    still = np.zeros_like(case.qd)
    effort = hold(9.0, SimpleNamespace(q=case.q, qd=still, state=case.c.state))
    assert np.abs(case.c.dynamics(wrt=case.wrt).forward_dynamics(still, effort)).max() < 1e-8


# mechanism, rows or bodies; redundant and square, open and closed
TASKS: dict[str, tuple[str, Any, list[str]]] = {
    "panda pose": ("panda", [0.1, 0.3, -0.2, -1.5, 0.3, 1.8, 0.2], ["link7"]),
    "panda point": ("panda", [0.1, 0.3, -0.2, -1.5, 0.3, 1.8, 0.2], ["flange"]),
    "panda orientation and height": (
        "panda", [0.1, 0.3, -0.2, -1.5, 0.3, 1.8, 0.2],
        ["flange.z", "link7.wx", "link7.wy", "link7.wz"],
    ),
    "platform pose": ("gough-stewart", None, ["platform"]),
    "platform rows": ("gough-stewart", None, ["platform.x", "platform.y", "L1"]),
}  # fmt: skip
every_task = pytest.mark.parametrize("name", TASKS)


class Task:
    """A configuration off a moving reference of a task."""

    def __init__(self, name: str) -> None:
        model, at, of = TASKS[name]
        self.m, rng = kic.load(model), np.random.default_rng(5)
        self.c = self.m.at(at)
        M = len(self.m.coordinates)
        self.qd, self.q = rng.normal(size=M), np.array([self.c.value(x) for x in self.c.coordinates])
        self.measured = SimpleNamespace(q=self.q, qd=self.qd, state=self.c.state)
        self.u = self.c.coefficients(of, order=2)
        P = len(self.u.rows)
        self.qdd_task, self.qd_task, self.error = rng.normal(size=(3, P)) * 0.1
        self.kp, self.kd = np.diag(rng.uniform(1, 3, P)) + 0.1, np.diag(rng.uniform(1, 3, P)) + 0.2
        # desired minus actual is `error`
        self.reference, k = {}, 0
        turned = []
        for part in of:
            n = len(self.c.coefficients(part, order=1).rows)
            rows = slice(k, k + n)
            e, v, a, k = self.error[rows], self.qd_task[rows], self.qdd_task[rows], k + n
            if part.endswith((".wx", ".wy", ".wz")):
                turned.append(rows.start)
                continue
            if n == 6:
                now = self.c.pose(part)
                p = self.c.coefficients([f"{part}.{x}" for x in "xyz"], order=1).values + e[:3]
                value: Any = (p, (Rotation.from_rotvec(e[3:]) * now.rotation).as_matrix())
            else:
                value = self.c.coefficients(part, order=1).values + e
            self.reference[part] = lambda t, given=(value, v, a): given
        if turned:
            e, v, a = (x[turned] for x in (self.error, self.qd_task, self.qdd_task))
            aim = Rotation.from_rotvec(e) * self.c.pose("link7").rotation
            self.reference["link7"] = lambda t: (aim, v, a)
        self.rate = self.qd_task - self.u.G @ self.qd
        self.space = self.c.operational_space(of)

    def accelerations(self, effort: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the accelerations of the coordinates and of the task."""
        qdd = self.c.forward_dynamics(self.qd, effort)
        return qdd, self.u.acceleration(self.qd, qdd)


@every_task
def test_operational_space_control_decouples_task_and_null_space(name: str) -> None:
    """Task errors decay linearly whatever moves in the null space; T = GᵀF + NᵀT₀ with Λ, μ and p."""
    case = Task(name)
    a = case.qdd_task + case.kd @ case.rate + case.kp @ case.error
    args = case.m, case.reference, case.kp, case.kd
    plain = co.OperationalSpaceControl(*args)(T, case.measured)
    assert mismatch(case.accelerations(plain)[1], a) < 1e-9
    M, P = len(case.q), len(a)
    if M == P:
        assert mismatch(plain, case.space.effort(case.space.force(case.qd, a))) < 1e-10
        return
    first = case.m.coordinates[2]
    assert mismatch(co.OperationalSpaceControl(*args, null_damping=0.0)(T, case.measured), plain) < 1e-12
    bent = kic.PreferredConfiguration({first: 0.4}, gain=2.0)
    limits = kic.JointLimits({case.m.coordinates[0]: (0.0, 2.0)}, gain=1.5)
    control = co.OperationalSpaceControl(*args, secondary=[bent, limits], null_damping=8.0)
    effort = control(T, case.measured)
    qdd, udd = case.accelerations(effort)
    assert mismatch(udd, a) < 1e-9
    z = bent.rates(case.c, None, ()) + limits.rates(case.c, None, ())
    G, d = case.u.G, case.c.dynamics()
    null = 8.0 * (z - np.linalg.pinv(G) @ (G @ z) - case.qd)
    assert mismatch(case.space.projector @ qdd, case.space.projector @ null) < 1e-9
    T0 = d.inverse_dynamics(case.qd, null)
    assert mismatch(effort, case.space.effort(case.space.force(case.qd, a), T0)) < 1e-9


@every_task
def test_impedance_gives_stiffness_damping_and_inertia(name: str) -> None:
    """Λ ë + D ė + K e = −f; with an apparent inertia M ë + D ė + K e = −f."""
    case = Task(name)
    P = len(case.error)
    f = np.linspace(-1.0, 2.0, P)
    M = np.diag(np.linspace(1.0, 2.0, P)) + 0.1
    soft = co.Impedance(case.m, case.reference, case.kp, case.kd)
    shaped = co.Impedance(case.m, case.reference, case.kp, case.kd, inertia=M, sensor=lambda t, measured: f)
    for control, inertia in ((soft, case.space.Lambda), (shaped, M)):
        # the environment pushes with f at the rows
        effort = control(T, case.measured) + case.u.G.T @ f
        later = case.qdd_task - case.accelerations(effort)[1]
        assert mismatch(inertia @ later + case.kd @ case.rate + case.kp @ case.error, -f) < 1e-8


def test_admittance_displaces_its_reference_exactly() -> None:
    """δ follows the linear equation under a constant force; turned references have the stated rates."""
    m = kic.load("panda")
    c = m.at(TASKS["panda pose"][1])
    pose, f = c.pose("link7"), np.array([3.0, -2.0, 1.0, 0.2, 0.1, -0.3])
    inertia, damping, stiffness = np.linspace(1, 2, 6), np.linspace(5, 9, 6), np.linspace(20, 40, 6)
    control = co.Admittance(
        m, {"link7": pose}, inertia, damping, stiffness, 400.0, 40.0, sensor=lambda t, measured: f
    )
    measured = (c._phi, np.zeros(7))
    run = solve_ivp(
        lambda t, x: np.concatenate([x[6:], (f - damping * x[6:] - stiffness * x[:6]) / inertia]),
        (0, 0.4), np.zeros(12), "DOP853", rtol=1e-11, atol=1e-13,
    )  # fmt: skip
    for t in (0.0, 0.1, 0.25, 0.4):
        control(t, measured)
    assert np.abs(control._x[:12] - run.y[:, -1]).max() < 1e-9
    # twist and its rate are the derivatives of the displaced orientation
    want, h = control._desired(0.4, measured), 1e-3
    around = [control._desired(0.4 + k * h, measured) for k in range(5)]
    turns = [Rotation.from_matrix(d.R[0] @ want.R[0].T).as_rotvec() for d in around]
    rate = (-25 * turns[0] + 48 * turns[1] - 36 * turns[2] + 16 * turns[3] - 3 * turns[4]) / (12 * h)
    assert np.abs(rate - want.qd[3:]).max() < 1e-9
    rates = [d.qd for d in around]
    later = (-25 * rates[0] + 48 * rates[1] - 36 * rates[2] + 16 * rates[3] - 3 * rates[4]) / (12 * h)
    assert np.abs(later - want.qdd).max() < 1e-8
    with raises(kic.InputError, key="t") as caught:
        control(0.1, measured)
    assert all(remedy in str(caught.value) for remedy in ("controller=", "controllers.Sampled", "start()"))
    control.start(near=c)
    control(0.1, measured)
    assert not control._x[:12].any()


def test_sensors_return_forces_of_the_environment_on_the_mechanism() -> None:
    """The environment holds the tip with f: all controllers with a sensor stay, or press less, alike."""
    m, at = kic.load("three-link-arm"), ([0.4, 0.5, 0.6], [0.0, 0.0, 0.0])
    c = m.at(at[0])
    x = float(c.value("frame3.x"))
    G, load = c.coefficients("frame3.x", order=1).G, c.dynamics().load
    # the tip pulls with 12 along x and the environment pulls back, by the equation of rest
    wall = {"frame3.y": float(c.value("frame3.y"))}
    more: dict[str, Any] = {"null_damping": 1.0, "sensor": lambda t, measured: [-12.0]}
    press = co.HybridForcePosition(m, wall, {"frame3.x": 12.0}, 1.0, 1.0, gain=3.0, **more)
    assert mismatch(press(0.0, at), 12.0 * G[0] - load) < 1e-9
    soft = co.Impedance(m, {"frame3.x": x}, 60.0, 1.0, inertia=2.0, **more)
    drawn = m.at(at[0]).forward_dynamics(at[1], soft(0.0, at) - 12.0 * G[0])
    assert G[0] @ drawn == pytest.approx(-12.0 / 2.0)
    # forces of inertia 2 at the reference: both yield towards the force
    light = co.Admittance(m, {"frame3.x": x}, 2.0, 1.0, 60.0, 1.0, 1.0, **more)
    assert light._desired(0.0, at).qdd == pytest.approx([-12.0 / 2.0])


def test_hybrid_control_presses_with_the_wanted_force() -> None:
    """A three-link arm whose tip slides on a wall: the constraint force is that of the reference."""
    m, rng = kic.load("three-link-arm"), np.random.default_rng(2)
    c = m.at([0.4, 0.5, 0.6])
    qd = rng.normal(size=3)
    u = c.coefficients(["frame3.x", "frame3.y"], order=2)
    qd -= np.linalg.pinv(u.G[:1])[:, 0] * (u.G[0] @ qd)  # along the wall x = const
    y = float(c.value("frame3.y"))
    motion = {"frame3.y": lambda t: (y + 0.02, 0.3, -0.4)}
    force = {"frame3.x": lambda t: 12.0 + t}
    control = co.HybridForcePosition(m, motion, force, kp=30.0, kd=7.0, null_damping=5.0)
    effort = control(0.5, (c._phi, qd))
    # accelerations and force of the wall of the arm in contact, by the augmented equations
    d, G, H = c.dynamics(), u.G[:1], u.H[:1]
    bias = d.inverse_dynamics(qd, np.zeros(3))
    system = np.block([[d.I, -G.T], [G, np.zeros((1, 1))]])
    known = np.concatenate([effort - bias, -np.einsum("pmn,m,n->p", H, qd, qd)])
    *qdd, wall = np.linalg.solve(system, known)
    assert wall == pytest.approx(-12.5, rel=1e-10)
    want = -0.4 + 7.0 * (0.3 - u.G[1] @ qd) + 30.0 * 0.02
    assert u.acceleration(qd, np.array(qdd))[1] == pytest.approx(want, rel=1e-10)
    felt = co.HybridForcePosition(
        m, motion, force, 30.0, 7.0, null_damping=5.0, gain=2.0, sensor=lambda t, measured: [-10.5]
    )
    assert mismatch(felt(0.5, (c._phi, qd)) - effort, 2.0 * (12.5 - 10.5) * G[0]) < 1e-9


def test_poles_of_the_regulator() -> None:
    """K is that of the Riccati equation, and the closed loop has the poles of A − B K."""
    for name, at, actuators in (("horn-two-link", [0.4, 0.9], None), ("five-bar", None, None)):
        m = kic.load(name)
        c = m.at(at)
        control = co.LQR(m, [100.0, 50.0, 1.0, 2.0], [0.1, 0.2], near=c, actuators=actuators)
        ss, q = c.linearize().state_space(), np.array([c.value(x) for x in c.coordinates])
        closed = ss.A - ss.B @ control.K
        assert np.linalg.eigvals(closed).real.max() < 0
        # derivatives of the closed loop in the nonlinear equations of motion
        h, found = 1e-6, np.zeros((4, 4))
        for k in range(4):
            ends = []
            for sign in (1, -1):
                x = np.concatenate([q, np.zeros(2)])
                x[k] += sign * h
                now = m.at(x[:2], near=c)
                ends.append(np.append(x[2:], now.forward_dynamics(x[2:], control(0.0, (x[:2], x[2:])))))
            found[:, k] = (ends[0] - ends[1]) / (2 * h)
        poles = [np.sort_complex(np.linalg.eigvals(a)) for a in (found, closed)]
        assert mismatch(*poles) < 1e-6


def test_regulator_of_an_underactuated_mechanism() -> None:
    """A cart balances its pendulum, also with held efforts; away from equilibrium it cannot rest."""
    m = kic.Mechanism(
        "cart-pole",
        [
            kic.Body("cart", mass=2.0, com=(0, 0, 0), inertia=(1.0, 1.0, 1.0)),
            kic.Body("pole", mass=0.5, com=(0, 0, 0.6), inertia=(0.02, 0.02, 0.001)),
        ],
        [
            kic.Joint("x", "prismatic", ("ground", "cart"), at=(0, 0, 0), axis=(1, 0, 0)),
            kic.Joint("hinge", "revolute", ("cart", "pole"), at=(0, 0, 0), axis=(0, 1, 0)),
        ],
        gravity=(0, 0, -9.81),
    )
    control = co.LQR(m, 1.0, 0.1, actuators="x")
    assert control.K.shape == (1, 4)
    run = m.simulate([0.0, 4.0, 8.0], near=m.at([0.2, 0.15]), effort=control, actuators="x")
    assert np.abs(run.q[-1]).max() < 1e-2
    assert control(0.0, ([0.1, 0.1], [0.0, 0.0])).shape == (1,)
    short: dict[str, Any] = {"t": [0.0, 0.01], "near": m.at([0.2, 0.15])}
    held = kic.controllers.Sampled(control, 0.005)
    sampled = m.simulate(**short, controller=held, actuators="x")
    assert sampled.control.effort.shape == (2, 1)
    for given in ({"effort": control}, {"controller": held}):
        with raises(kic.InputError, key="actuators", got=("x",), expected=("x", "hinge")):
            m.simulate(**short, **given)
    held = co.LQR(m, 1.0, 0.1, actuators="x", sample_time=0.01)
    ss = m.at([0.0, 0.0]).linearize().state_space(inputs="x").discretize(0.01)
    assert np.abs(np.linalg.eigvals(ss.A - ss.B @ held.K)).max() < 1
    with raises(kic.InputError, key="near", name="hinge"):
        co.LQR(m, 1.0, 0.1, near=m.at([0.0, 0.3]), actuators="x")


def block(damping: float) -> kic.Mechanism:
    """Return a unit mass on a line with a viscous damper."""
    return kic.Mechanism(
        "block",
        [kic.Body("block", mass=1.0, com=(0, 0, 0), inertia=1.0)],
        [kic.Joint("x", "prismatic", ("ground", "block"), at=(0, 0, 0), axis=(1, 0, 0), damping=damping)],
    )


def held(ss: kic.results.StateSpace, Q: np.ndarray, R: np.ndarray, h: float) -> tuple[np.ndarray, ...]:
    """Return the motion (X, X + U) after a time, and weights of x and u with held u, by quadrature."""
    x, w = np.polynomial.legendre.leggauss(60)  # exact to rounding, as rates times h are at most 50
    models = [ss.discretize(t) for t in [*(h / 2 * (1 + x)), h]]
    motions = np.array([np.hstack([s.A, s.B]) for s in models])
    W = np.einsum("t,tji,jk,tkl->il", h / 2 * w, motions[:-1], Q, motions[:-1], optimize=True)
    W[len(Q) :, len(Q) :] += h * R
    return motions[-1], W


def cost_and_gain(K: np.ndarray, motion: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P of the cost xᵀ P x of a gain, and the gain with the least cost of a step with P after it."""
    policy = np.vstack([np.eye(K.shape[1]), -K])
    P = solve_discrete_lyapunov((motion @ policy).T, policy.T @ W @ policy)
    whole, X = W + motion.T @ P @ motion, K.shape[1]
    return P, np.linalg.solve(whole[X:, X:], whole[X:, :X])


HELD_EFFORTS = {
    "open": (kic.load("horn-two-link"), [0.4, 0.9], 0.1),
    "closed": (kic.load("five-bar"), None, 0.02),
    "damped": (block(100.0), None, 0.5),
}


@pytest.mark.parametrize("name", HELD_EFFORTS)
def test_gain_of_held_efforts_has_the_least_integral(name: str) -> None:
    """No other gain has a lower integral of the cost, by quadrature between samples."""
    m, at, h = HELD_EFFORTS[name]
    c, n = m.at(at), len(m.coordinates)
    Q, R = np.diag([100.0, 50.0][:n] + [1.0, 2.0][:n]), np.diag([0.1, 0.2][:n])
    Q[0, -1] = Q[-1, 0] = 0.3
    K = co.LQR(m, Q, R, near=c, sample_time=h).K
    best = cost_and_gain(K, *held(c.linearize().state_space(), Q, R, h))[1]
    assert mismatch(K, best) < 1e-9


def test_simulated_cost_of_held_efforts() -> None:
    """A mass on a line: the gain from a single block exponential, and the cost in a simulation."""
    m, h = block(0.0), 0.5
    Q, R, x = np.diag([10.0, 1.0]), np.array([[0.1]]), np.array([0.3, -0.2])
    control = co.LQR(m, Q, R, sample_time=h)
    assert mismatch(control.K, np.array([[3.02756046, 2.64040398]])) < 1e-8
    P, _ = cost_and_gain(control.K, *held(m.at().linearize().state_space(), Q, R, h))
    t = np.linspace(0.0, 25 * h, 101)
    run = m.simulate(
        t,
        near=m.at(x[:1]),
        qd=x[1:],
        controller=kic.controllers.Sampled(control, h),
        integrator=kic.Integrator(rtol=1e-12, atol=1e-14),
    )
    states, effort = np.hstack([run.q, run.qd]), run.control.effort
    rate = np.einsum("ti,ij,tj->t", states, Q, states)
    # Boole's rule is exact between samples, where x² is a polynomial of degree 4
    boole = np.lib.stride_tricks.sliding_window_view(rate, 5)[::4] @ [7, 32, 12, 32, 7]
    whole = h * (boole.sum() / 90 + R[0, 0] * (effort[:25] ** 2).sum())
    assert abs(whole - x @ P @ x) < 1e-9 * whole


def test_gain_of_short_sample_times_is_continuous() -> None:
    m = kic.load("five-bar")
    steps = np.array([1e-3, 1e-4, 1e-5])
    continuous = co.LQR(m, 1.0, 0.1).K
    errors = [mismatch(co.LQR(m, 1.0, 0.1, sample_time=h).K, continuous) for h in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(1.0, abs=0.1)


def test_weights_are_symmetric_to_rounding() -> None:
    Q = np.eye(4) + 1e-12 * np.eye(4, k=1)
    for h in (None, 0.01):
        assert mismatch(*(co.LQR(ARM, q, 1.0, near=HELD, sample_time=h).K for q in (Q, Q.T))) < 1e-9


def test_simulated_error_matches_the_linear_solution() -> None:
    """The simulated arm starts off its trajectory; e follows the linear equation, (1 + 5 t) exp(−5 t)."""
    m = kic.load("horn-two-link")
    t = tr.quintic([0.2, 0.5], [1.0, 1.2], 1.0)
    control = co.ComputedTorque(m, t, 25.0, 10.0)
    off = np.array([0.3, -0.2])

    def moves(time: float, x: np.ndarray) -> np.ndarray:
        effort = control(time, (x[:2], x[2:]))
        return np.concatenate([x[2:], m.at(x[:2]).dynamics().forward_dynamics(x[2:], effort)])

    start = np.concatenate([t(0.0).q - off, t(0.0).qd])
    times = np.linspace(0, 1, 11)
    run = solve_ivp(moves, (0, 1), start, "DOP853", times, rtol=1e-10, atol=1e-12)
    exact = off * ((1 + 5 * times) * np.exp(-5 * times))[:, None]
    assert np.abs(t(times).q - run.y[:2].T - exact).max() < 1e-8


@pytest.mark.parametrize(("model", "body"), [("panda", "link7"), ("gough-stewart", "platform")])
def test_simulated_pose_follows_its_trajectory(model: str, body: str) -> None:
    """Position and orientation follow a moving pose, and the null space to preferred values."""
    m = kic.load(model)
    c = m.at(TASKS["panda pose"][1] if model == "panda" else None)
    pose = c.pose(body)
    place = c.coefficients([f"{body}.{x}" for x in "xyz"], order=1).values
    path = tr.quintic(place, place + np.array([0.05, -0.04, 0.06]), 0.4)
    turns = [pose.rotation, Rotation.from_rotvec([0.1, 0.2, -0.1]) * pose.rotation]
    turn = tr.rotation(Rotation.concatenate(turns), duration=0.4)
    more: dict[str, Any] = {}
    if model == "panda":
        more = {"secondary": kic.PreferredConfiguration({"joint3": 0.0}, gain=4.0), "null_damping": 16.0}
    control = co.OperationalSpaceControl(m, {body: (path, turn)}, kp=400.0, kd=40.0, **more)
    run = m.simulate(
        [0.0, 0.2, 0.4, 2.0], near=c, effort=control, integrator=kic.Integrator(rtol=1e-10, atol=1e-10)
    )
    for k, t in enumerate(run.t):
        now = run.configuration[k].pose(body)
        there = RigidTransform.from_components(
            path(t, beyond="hold").q, turn(float(t), beyond="hold").rotation
        )
        off = now.rotation * there.rotation.inv()
        found = run.configuration[k].coefficients([f"{body}.{x}" for x in "xyz"], order=1).values
        assert np.abs(found - there.translation).max() < 1e-8
        assert off.magnitude() < 1e-8
    if model == "panda":
        assert abs(run.q[-1, 2]) < abs(run.q[0, 2])


def test_errors_modulo_full_turns() -> None:
    """Angles of a cut joint are known modulo full turns; coordinates of the tree are not."""
    m = kic.load("four-bar")
    c = m.at()

    def led(name: str, turns: float) -> np.ndarray:
        to = {name: c.value(name) + 0.1 + 2 * np.pi * turns}
        return co.ResolvedRate(m, tr.line(to, to), 1.0)(0.0, ([c.value("A")], [0.0]))

    assert m.mobility().cuts == ("D",)
    assert mismatch(led("D", 0), led("D", -3)) < 1e-12
    assert led("A", 0) == pytest.approx([0.1])
    assert led("A", 1) == pytest.approx([0.1 + 2 * np.pi])


TURNS = Rotation.from_rotvec([[0.0, 0.0, 0.0], [0.3, 0.2, 1.0], [0.9, 0.2, 1.0]])
PLACE = tr.quintic([0.4, 0.0, 0.5], [0.5, 0.1, 0.4], 1.0)


@pytest.mark.parametrize("turns", [TURNS[:2], TURNS])
def test_references_of_poses(turns: Rotation) -> None:
    """Pairs, rotations alone, and functions give the same orientation, and its rates; ends are held."""
    m, turn = kic.load("panda"), tr.rotation(turns, duration=1.0)
    pair = Reference(m._model, {"link7": (PLACE, turn)})
    alone = Reference(m._model, {"flange": PLACE, "link7": turn})
    timed = Reference(
        m._model,
        {"link7": lambda t: (
            (PLACE(t, beyond="hold").q, turn(t, beyond="hold").rotation),
            np.append(PLACE(t, beyond="hold").qd, turn(t, beyond="hold").w),
            np.append(PLACE(t, beyond="hold").qdd, turn(t, beyond="hold").wd),
        )},
    )  # fmt: skip
    assert (pair.size, alone.size, timed.size) == (6, 6, 6)
    for t in (-0.5, 0.0, 0.3, 0.7, 1.0, 1.5):
        rotation, w, wd, _ = turn(t, beyond="hold")
        q, qd, qdd, _ = PLACE(t, beyond="hold")
        for reference in (pair, alone, timed):
            now = reference(t)
            assert np.abs(now.R[0] - rotation.as_matrix()).max() < 1e-14
            assert np.abs(now.q[:3] - q).max() < 1e-14
            assert np.abs(now.qd - np.append(qd, w)).max() < 1e-11
            assert np.abs(now.qdd - np.append(qdd, wd)).max() < 1e-11


def test_public_names() -> None:
    assert dir(co) == sorted(co.__all__, key=dir(co).index)
    assert set(dir(co)) == set(co.__all__)
    assert "np" not in dir(co)
    assert issubclass(co.LQR, co.Control)
    assert co.Impedance(ARM, AT, 1.0, 1.0).rows == ("tip.x", "tip.y")
    assert co.ResolvedRate(ARM, TIP, 1.0).rows == ("tip.x", "tip.y")
    assert co.GravityCompensation(ARM).rows == ()


BALL = kic.Mechanism(
    "ball",
    [kic.Body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))],
    [kic.Joint("hip", "spherical", ("ground", "rod"), at=(0, 0, 0))],
)
ARM, STAY = kic.load("horn-two-link"), tr.line([0.0, 0.0], [0.0, 0.0])
PANDA = kic.load("panda")
TIP = tr.line({"tip.x": 1.0, "tip.y": 0.0}, {"tip.x": 1.5, "tip.y": 0.0})
AT = {"tip.x": 1.0, "tip.y": 1.0}
HELD = ARM.at([0.3, 0.2])
ERRORS = [
    ({"key": "reference"}, lambda: co.ResolvedRate(ARM, [0.0, 0.0], 1.0)),
    ({"key": "reference"}, lambda: co.ComputedTorque(ARM, [0.0, 0.0], 1.0, 1.0)),
    ({"key": "kp"}, lambda: co.ResolvedRate(ARM, STAY, [1.0, 2.0, 3.0])),
    ({"key": "kd"}, lambda: co.ComputedTorque(ARM, STAY, 1.0, np.nan)),
    ({"key": "reference", "got": 1}, lambda: co.ResolvedRate(
        ARM, tr.line({"tip.x": 0.0}, {"tip.x": 1.0}), 1.0)),
    ({"key": "reference", "got": 1}, lambda: co.ComputedTorque(ARM, {"tip.x": 1.0}, 1.0, 1.0)),
    ({"key": "reference", "dof": 2}, lambda: co.Impedance(ARM, {"tip": [1.0, 1.0, 0.0]}, 1.0, 1.0)),
    ({"key": "reference", "name": "tip"}, lambda: co.GravityCompensation(
        ARM, tr.line({"tip": [0.0, 0.0]}, {"tip": [0.0, 1.0]}), 1.0, 1.0)),
    ({"key": "reference", "names": ("hip.1",)},
        lambda: co.ComputedTorque(BALL, tr.line([0.0] * 3, [0.1] * 3), 1.0, 1.0)),
    ({"name": "wrist"}, lambda: co.ResolvedRate(ARM, tr.line({"wrist": 0.0}, {"wrist": 1.0}), 1.0)),
    ({"names": ("tip.x", "tip.y")}, lambda: co.ResolvedRate(ARM, TIP, 1.0)(0.0, ([0.3, 0.0], [0.0, 0.0]))),
    ({"key": "measured"}, lambda: co.ComputedTorque(ARM, STAY, 1.0, 1.0)(0.0, [0.0, 0.0])),
    ({"key": "measured"}, lambda: co.ComputedTorque(ARM, STAY, 1.0, 1.0)(0.0, ([0.0], [0.0]))),
    ({"key": "reference", "got": 6, "dof": 7}, lambda: co.ResolvedRate(
        PANDA, {"link7": PANDA.at().pose("link7")}, 1.0)),
    ({"key": "reference", "name": "tip.x"}, lambda: co.ResolvedJerk(
        ARM, {"tip.x": lambda t: (0.5, 0.0, 0.0), "tip.y": 0.5}, 1.0, 1.0, 1.0)(
        0.0, ([0.1, 0.5], [0.0] * 2, [0.0] * 2))),
    ({"key": "measured"}, lambda: co.ResolvedJerk(ARM, STAY, 1.0, 1.0, 1.0)(0.0, ([0.0] * 2, [0.0] * 2))),
    ({"key": "reference", "name": "link7"}, lambda: co.Impedance(PANDA, {"link7": [1.0] * 6}, 1.0, 1.0)),
    ({"key": "reference", "name": "link7"}, lambda: co.Impedance(
        PANDA, {"link7": lambda t: (Rotation.identity(), [1.0])}, 1.0, 1.0)(0.0, (np.zeros(7), np.zeros(7)))),
    ({"key": "reference", "name": "flange"}, lambda: co.Impedance(
        PANDA, {"flange": lambda t: [0.0, 0.0, 0.0]}, 1.0, 1.0)(0.0, (np.zeros(7), np.zeros(7)))),
    ({"key": "reference", "name": "flange"}, lambda: co.Impedance(
        PANDA, {"flange": PANDA.at().pose("link7")}, 1.0, 1.0)),
    ({"key": "reference"}, lambda: co.Impedance(PANDA, {3: [0.0, 0.0, 0.0]}, 1.0, 1.0)),
    ({"key": "t"}, lambda: co.ComputedTorque(ARM, STAY, 1.0, 1.0)("x", ([0.0] * 2, [0.0] * 2))),
    ({"key": "secondary"}, lambda: co.OperationalSpaceControl(
        PANDA, {"flange": [0.3, 0.0, 0.5]}, 1.0, 1.0, secondary=3.0, null_damping=1.0)),
    ({"key": "null_damping"}, lambda: co.OperationalSpaceControl(
        PANDA, {"flange": [0.3, 0.0, 0.5]}, 1.0, 1.0, secondary=kic.Manipulability())),
    ({"key": "null_damping", "dof": 2}, lambda: co.OperationalSpaceControl(
        ARM, AT, 1.0, 1.0, null_damping=1.0)),
    ({"key": "null_damping"}, lambda: co.OperationalSpaceControl(
        PANDA, {"flange": [0.3, 0.0, 0.5]}, 1.0, 1.0, null_damping=-1.0)),
    ({"key": "null_damping"}, lambda: co.OperationalSpaceControl(
        PANDA, {"flange": [0.3, 0.0, 0.5]}, 1.0, 1.0, secondary=kic.Manipulability(), null_damping=0.0)),
    ({"key": "kp"}, lambda: co.GravityCompensation(ARM, AT)),
    ({"key": "reference"}, lambda: co.GravityCompensation(ARM, kp=100.0, kd=10.0)),
    ({"key": "kd"}, lambda: co.GravityCompensation(ARM, kd=[1.0, 1.0, 1.0])),
    ({"key": "kp"}, lambda: co.ComputedTorque(ARM, STAY, -1.0, 1.0)),
    ({"key": "kd"}, lambda: co.ComputedTorque(ARM, STAY, 1.0, [1.0, -1.0])),
    ({"key": "kp"}, lambda: co.ComputedTorque(ARM, STAY, [[1.0, 3.0], [0.0, 1.0]], 1.0)),
    ({"key": "kp"}, lambda: co.ResolvedRate(ARM, STAY, -1.0)),
    ({"key": "ka"}, lambda: co.ResolvedJerk(ARM, STAY, 1.0, 1.0, -1.0)),
    ({"key": "stiffness"}, lambda: co.Impedance(ARM, AT, -1.0, 1.0)),
    ({"key": "damping"}, lambda: co.Impedance(ARM, AT, 1.0, -1.0)),
    ({"key": "kd_force"}, lambda: co.HybridForcePosition(
        ARM, {"tip.x": 1.0}, {"tip.y": 1.0}, 1.0, 1.0, kd_force=-1.0)),
    ({"key": "sensor"}, lambda: co.Impedance(ARM, AT, 1.0, 1.0, inertia=1.0)),
    ({"key": "inertia"}, lambda: co.Admittance(
        ARM, AT, -1.0, 1.0, 1.0, 1.0, 1.0, sensor=lambda t, x: [0.0, 0.0])),
    ({"key": "sensor"}, lambda: co.Admittance(ARM, AT, 1.0, 1.0, 1.0, 1.0, 1.0, sensor=lambda t, x: [0])(
        0.0, ([0.3, 0.4], [0.0, 0.0]))),
    ({"key": "force"}, lambda: co.HybridForcePosition(ARM, {"tip.x": 1.0}, {"tip.x": 1.0}, 1.0, 1.0)),
    ({"key": "gain"}, lambda: co.HybridForcePosition(
        ARM, {"tip.x": 1.0}, {"tip.y": 1.0}, 1.0, 1.0, sensor=lambda t, x: [0.0])),
    ({"key": "Q"}, lambda: co.LQR(ARM, -1.0, 1.0, near=HELD)),
    ({"key": "R"}, lambda: co.LQR(ARM, 1.0, [1.0, 2.0, 3.0], near=HELD)),
    ({"key": "R"}, lambda: co.LQR(ARM, 1.0, 0.0, near=HELD)),
    ({"key": "sample_time"}, lambda: co.LQR(ARM, 1.0, 1.0, near=HELD, sample_time=-1.0)),
    ({"key": "sample_time"}, lambda: co.LQR(ARM, 1.0, 1.0, near=ARM.at([1.5, 0.0]), sample_time=1e9)),
    ({"key": "Q"}, lambda: co.LQR(ARM, 1.0, 1.0, near=ARM.at([1.5, 0.0]), sample_time=45.0)),
    # of the cost alone: e^(7.2 · 60), the largest change of deviations, is a float, and its square is not
    ({"key": "sample_time"}, lambda: co.LQR(ARM, 1.0, 1.0, near=ARM.at([1.5, 0.0]), sample_time=60.0)),
    ({"key": "actuators"}, lambda: co.LQR(ARM, 1.0, 1.0, actuators="tip.x")),
    ({"key": "actuators"}, lambda: co.LQR(ARM, 1.0, 1.0, near=HELD, actuators=[ARM.coordinates[0]] * 2)),
]  # fmt: skip


@pytest.mark.parametrize(("data", "call"), ERRORS)
def test_invalid_arguments_raise(data: dict, call) -> None:
    with raises(kic.KicError, **data):
        call()


def sensed(t: float, measured: Any) -> list[float]:
    """Return forces of the environment."""
    return [0.1, t]


CONTROLS = [
    lambda: co.ComputedTorque(ARM, STAY, 1.0, 1.0),
    lambda: co.GravityCompensation(ARM),
    lambda: co.Impedance(ARM, {"tip.x": lambda t: (1.0, 0.0, 0.0)}, 1.0, 1.0),
    lambda: co.Admittance(ARM, AT, 1.0, 1.0, 1.0, 1.0, 1.0, sensor=lambda t, measured: [0.0, 0.0]),
    lambda: co.LQR(ARM, 1.0, 1.0, near=HELD),
    lambda: co.ResolvedRate(ARM, STAY, 1.0),
]


PICKLED = [
    lambda: co.ResolvedAcceleration(ARM, STAY, 1.0, 1.0),
    lambda: co.ResolvedJerk(ARM, STAY, 1.0, 1.0, 1.0),
    lambda: co.OperationalSpaceControl(ARM, {"tip.x": 1.0}, 1.0, 1.0, null_damping=1.0),
    lambda: co.Admittance(ARM, AT, 1.0, 1.0, 1.0, 1.0, 1.0, sensor=sensed),
    lambda: co.HybridForcePosition(ARM, {"tip.x": 1.0}, {"tip.y": -2.0}, 1.0, 1.0),
]


@pytest.mark.parametrize("make", [*PICKLED, CONTROLS[4], CONTROLS[5]])
def test_controllers_can_be_pickled(make) -> None:
    now = SimpleNamespace(q=np.array([0.3, 0.4]), qd=np.array([0.1, -0.2]), qdd=np.array([1.0, 2.0]))
    control = make()
    assert np.array_equal(pickled(control)(0.1, now), control(0.1, now))


def test_a_pickled_reference_has_the_values_that_were_given() -> None:
    tip = np.array([1.0, 1.0])
    control = co.ComputedTorque(ARM, {"tip.x": tip[:1], "tip.y": [1.0]}, 1.0, 1.0)
    known = control(0.1, ([0.3, 0.4], [0.0, 0.0]))
    tip[:] = 0.5
    assert np.array_equal(pickled(control)(0.1, ([0.3, 0.4], [0.0, 0.0])), known)


def test_functions_without_a_name_cannot_be_pickled() -> None:
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pickle.dumps(CONTROLS[2]())


@pytest.mark.parametrize("make", CONTROLS)
@pytest.mark.parametrize("t", [np.nan, np.float64("nan"), [0.0]])
def test_times_must_be_numbers(make, t) -> None:
    control = make()
    assert np.isfinite(control(0.0, ([0.3, 0.4], [0.0, 0.0]))).all()
    with raises(kic.InputError, key="t"):
        control(t, ([0.3, 0.4], [0.0, 0.0]))


# nearly rotations: scaled, mirrored, rounded to five digits, zero, huge
WRONG = [
    *(3 * np.eye(3), np.diag([1.0, 1.0, -1.0]), -np.eye(3), TURNS[1].as_matrix().round(5)),
    *(np.zeros((3, 3)), np.full((3, 3), 1e200)),
]


@pytest.mark.parametrize("R", WRONG)
def test_matrices_that_are_no_rotations_raise(R: np.ndarray) -> None:
    """Constants once, functions at each call, and targets of poses, also one member of a batch."""
    p, at, good = [0.3, 0.0, 0.5], (TASKS["panda pose"][1], np.zeros(7)), TURNS[1].as_matrix()
    with raises(kic.InputError, key="reference", name="link7"):
        co.Impedance(PANDA, {"link7": (p, R)}, 1.0, 1.0)
    moved = co.Impedance(PANDA, {"link7": lambda t: ((p, R if t else good), [0.0] * 6, [0.0] * 6)}, 1.0, 1.0)
    moved(0.0, at)
    with raises(kic.InputError, key="reference", name="link7"):
        moved(1.0, at)
    now, T = PANDA.prepare.pose("link7")(PANDA.at().state), np.eye(4)
    T[:3, :3] = R
    assert now.error((p, good)).shape == (6,)
    for target in ((p, R), (p, np.array([good, R])), T, np.array([np.eye(4), T]), np.eye(4)[::-1]):
        with raises(kic.InputError, key="target"):
            now.error(target)


@pytest.mark.parametrize("moves", ["place", "turn", "both"])
def test_references_rest_at_times_of_every_type(moves: str) -> None:
    """Integrators give numbers of NumPy; a trajectory rests before and after its ends."""
    m = kic.load("puma560")
    c = m.at([0.0, 0.5, -2.2, 0.7, 0.8, -0.4])
    pose = c.pose("link6")
    R, p = pose.rotation, c.coefficients([f"link6.{x}" for x in "xyz"], order=1).values
    turn = tr.rotation(Rotation.concatenate([R, Rotation.from_rotvec([0, 0, 0.2]) * R]), duration=1.0)
    place = tr.quintic(p, p + 0.05, 1.0)
    motion = {"place": (place, R), "turn": (p, turn), "both": (place, turn)}[moves]
    wanted = Reference(m._model, {"link6": motion})
    for t, end in ((-0.5, 0.0), (1.5, 1.0)):
        for kind in (float, np.float64, np.float32):
            for found, there in zip(wanted(kind(t))[:4], wanted(end)[:4], strict=True):  # the jerk jumps
                assert np.allclose(found, there, atol=1e-12)
