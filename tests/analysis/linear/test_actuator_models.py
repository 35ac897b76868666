"""Linear models and equilibria with efforts of actuators, against differences of forward dynamics."""

import numpy as np
import pytest
from raising import refuses

import kic

EFFORTS = {"A": 0.6, "D": -0.9}
STEP = 1e-5


def acceleration(c, qd=None):
    """Return the acceleration of the four-bar under constant efforts of two actuators."""
    G = c.coefficients(list(EFFORTS), order=1).G
    return c.dynamics().forward_dynamics(np.zeros(1) if qd is None else qd, G.T @ list(EFFORTS.values()))


def test_linearization_with_constant_efforts_of_actuators():
    """K is the slope of the acceleration where the efforts of the actuators stay constant."""
    m = kic.load("four-bar")
    at = lambda a: m.at({"A": a}, near=m.at({"A": 1.2}))  # noqa: E731
    c = at(1.2)
    lin = c.linearize(effort=EFFORTS)
    assert lin.qdd == pytest.approx(acceleration(c), rel=1e-12)
    slope = (acceleration(at(1.2 + STEP)) - acceleration(at(1.2 - STEP))) / (2 * STEP)
    # differences: the square of the step, and round-off over it
    assert lin.forward_dynamics(dq=[1.0]) == pytest.approx(slope, rel=1e-6)
    # efforts at the coordinates stay constant instead
    fixed = c.linearize(effort=lin.T)
    assert abs(fixed.K / lin.K - 1).max() > 1e-3


def test_state_space_with_inputs_of_actuators():
    m = kic.load("four-bar")
    c = m.at({"A": 1.2})
    s = c.linearize(effort=EFFORTS).state_space(inputs=["D", "A", "tip.x"])
    G = c.coefficients(["D", "A", "tip.x"], order=1).G
    assert s.inputs == ("D", "A", "tip.x")
    assert np.abs(s.B[1:] - np.linalg.inv(c.dynamics().I) @ G.T).max() < 1e-12 * np.abs(s.B).max()
    assert s.A[1, 0] == pytest.approx(c.linearize(effort=EFFORTS).forward_dynamics(dq=[1.0])[0])
    path = m.path({"A": [1.1, 1.2]})
    many, one = (x.linearize().state_space(inputs=["D"]).B for x in (path, c))
    assert np.abs(many[1] - one).max() < 1e-10
    refuses(lambda: c.linearize().state_space(inputs=["nothing"]), kic.UnknownNameError)


def test_equilibrium_with_efforts_of_actuators():
    m = kic.load("four-bar").replace(gravity=(0.0, -9.81, 0.0))
    found = m.find_equilibrium({"D": 0.4}, stable=True)
    c = found.configuration
    G = c.coefficients("D", order=1).G
    assert np.abs(G.T @ [0.4] + c.dynamics().load).max() < 1e-9 * np.abs(c.dynamics().load).max() + 1e-9
    assert found.stability == "stable"
    run = m.simulate(0.5, effort={"D": 0.4}, near=c)
    assert np.abs(run.q - run.q[0]).max() < 1e-6
    # frequency of small motions under the constant effort
    lin = c.linearize(effort={"D": 0.4})
    natural = np.sqrt(lin.K / lin.I)[0, 0]
    assert found.modes.natural[0] == pytest.approx(natural, rel=1e-6)
    a = float(run.q[0, 0])
    swing = m.simulate(
        np.linspace(0, 2 * np.pi / natural, 9), effort={"D": 0.4}, near=m.at({"A": a + 1e-4}, near=c)
    )
    # small to second order
    assert abs(swing.q[-1, 0] - (a + 1e-4)) < 1e-6
    refuses(lambda: m.find_equilibrium({"A": 0.4}, fixed="A"), key="effort")
    refuses(lambda: m.find_equilibrium({"nothing": 0.4}), kic.UnknownNameError)
