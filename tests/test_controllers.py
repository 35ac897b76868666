"""Controllers: error dynamics in the dynamics of open and closed mechanisms."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises
from sampling import mismatch
from scipy.integrate import solve_ivp

import kic
from kic import trajectory as tr
from kic.simulation import controllers

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
        self.want = self.t(T)
        self.error = self.want.q - y
        self.u = self.c.coefficients(self.rows, order=3, wrt=self.wrt)
        self.rate = self.want.qd - self.u.velocity(self.qd)
        self.args = self.m, self.t


@every_case
def test_computed_torque_gives_linear_error_dynamics(name: str) -> None:
    case = Case(name)
    effort = controllers.computed_torque(*case.args, case.kp, case.kd, wrt=case.wrt)(T, case.c.state, case.qd)
    qdd = case.c.dynamics(wrt=case.wrt).forward_dynamics(case.qd, effort)
    led = case.want.qdd + case.kd @ case.rate + case.kp @ case.error
    assert mismatch(case.u.acceleration(case.qd, qdd), led) < 1e-9
    same = controllers.resolved_acceleration(*case.args, case.kp, case.kd, wrt=case.wrt)
    assert mismatch(same(T, case.c.state, case.qd), qdd) < 1e-9


@every_case
def test_resolved_rates_and_jerks(name: str) -> None:
    case = Case(name)
    rate = controllers.resolved_rate(*case.args, case.kp, wrt=case.wrt)(T, case.c.state)
    assert mismatch(case.u.velocity(rate), case.want.qd + case.kp @ case.error) < 1e-10
    jerk = controllers.resolved_jerk(*case.args, case.kp, case.kd, case.ka, wrt=case.wrt)
    qddd = jerk(T, case.c.state, case.qd, case.qdd)
    second = case.want.qdd - case.u.acceleration(case.qd, case.qdd)
    led = case.want.qddd + case.ka @ second + case.kd @ case.rate + case.kp @ case.error
    assert mismatch(case.u.jerk(case.qd, case.qdd, qddd), led) < 1e-9


@every_case
def test_pd_gravity_balances_static_loads(name: str) -> None:
    case = Case(name)
    control = controllers.pd_gravity(*case.args, case.kp, case.kd, wrt=case.wrt)
    load = case.c.dynamics(wrt=case.wrt).load
    force = case.kp @ case.error + case.kd @ case.rate
    assert mismatch(control(T, case.c.state, case.qd), case.u.G.T @ force - load) < 1e-11
    stay = dict(zip(case.rows, (case.want.q - case.error).tolist(), strict=True))
    hold = controllers.pd_gravity(case.m, tr.line(stay, stay), 5.0, 1.0, wrt=case.wrt)
    still = np.zeros_like(case.qd)
    qdd = case.c.dynamics(wrt=case.wrt).forward_dynamics(still, hold(9.0, case.c.state, still))
    assert np.abs(qdd).max() < 1e-8


@every_case
def test_batches(name: str) -> None:
    case = Case(name)
    f = controllers.computed_torque(*case.args, 2.0, [1.0] * len(case.qd), wrt=case.wrt)
    one = f(T, case.c.state, case.qd)
    for batch in ((), (3,), (2, 1), (0,)):
        state = np.broadcast_to(case.c.state, batch + case.c.state.shape)
        many = f(np.full(batch, T), state, np.broadcast_to(case.qd, batch + case.qd.shape))
        assert many.shape == (*batch, len(case.qd))
        assert not many.size or mismatch(many, np.broadcast_to(one, many.shape)) < 1e-13


def test_simulated_error_matches_the_linear_solution() -> None:
    """The simulated arm starts off its trajectory; e follows the linear equation, (1 + 5 t) exp(−5 t)."""
    m = kic.load("horn-two-link")
    t = tr.quintic([0.2, 0.5], [1.0, 1.2], 1.0)
    control = controllers.computed_torque(m, t, 25.0, 10.0)
    off = np.array([0.3, -0.2])

    def moves(time: float, x: np.ndarray) -> np.ndarray:
        qd = x[2:]
        effort = control(time, x[:2], qd)
        return np.concatenate([qd, m.at(x[:2]).dynamics().forward_dynamics(qd, effort)])

    start = np.concatenate([t(0.0).q - off, t(0.0).qd])
    times = np.linspace(0, 1, 11)
    run = solve_ivp(moves, (0, 1), start, "DOP853", times, rtol=1e-10, atol=1e-12)
    exact = off * ((1 + 5 * times) * np.exp(-5 * times))[:, None]
    assert np.abs(t(times).q - run.y[:2].T - exact).max() < 1e-8


def test_errors_modulo_full_turns() -> None:
    """Angles of a cut joint are known modulo full turns; coordinates of the tree are not."""
    m = kic.load("four-bar")
    c = m.at()

    def led(name: str, turns: float) -> np.ndarray:
        to = {name: c.value(name) + 0.1 + 2 * np.pi * turns}
        return controllers.resolved_rate(m, tr.line(to, to), 1.0)(0.0, c.state)

    assert m.cuts == ("D",)
    assert mismatch(led("D", 0), led("D", -3)) < 1e-12
    assert led("A", 0) == pytest.approx([0.1])
    assert led("A", 1) == pytest.approx([0.1 + 2 * np.pi])


BALL = kic.Mechanism(
    "ball",
    [kic.Body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))],
    [kic.Joint("hip", "spherical", ("ground", "rod"), at=(0, 0, 0))],
)
ARM, STAY = kic.load("horn-two-link"), tr.line([0.0, 0.0], [0.0, 0.0])
TIP = tr.line({"tip.x": 1.0, "tip.y": 0.0}, {"tip.x": 1.5, "tip.y": 0.0})
ERRORS = [
    ({"key": "trajectory"}, lambda: controllers.resolved_rate(ARM, [0.0, 0.0], 1.0)),  # type: ignore[arg-type]
    ({"key": "kp"}, lambda: controllers.resolved_rate(ARM, STAY, [1.0, 2.0, 3.0])),
    ({"key": "kd"}, lambda: controllers.computed_torque(ARM, STAY, 1.0, np.nan)),
    ({"key": "trajectory", "got": 1}, lambda: controllers.resolved_rate(
        ARM, tr.line({"tip.x": 0.0}, {"tip.x": 1.0}), 1.0)),
    ({"key": "trajectory", "got": 2}, lambda: controllers.pd_gravity(
        ARM, tr.line({"tip": [0.0, 0.0]}, {"tip": [0.0, 1.0]}), 1.0, 1.0)),
    ({"key": "trajectory", "names": ("hip.1", "hip.2", "hip.3")},
        lambda: controllers.computed_torque(BALL, tr.line([0.0] * 3, [0.1] * 3), 1.0, 1.0)),
    ({"name": "wrist"}, lambda: controllers.resolved_rate(ARM, tr.line({"wrist": 0.0}, {"wrist": 1.0}), 1.0)),
    ({"names": ("tip.x", "tip.y")}, lambda: controllers.resolved_rate(ARM, TIP, 1.0)(
        0.0, ARM.at([0.3, 0.0]).state)),
]  # fmt: skip


@pytest.mark.parametrize(("data", "call"), ERRORS)
def test_invalid_arguments_raise(data: dict, call) -> None:
    with raises(kic.KicError, **data):
        call()
