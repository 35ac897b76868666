"""Switching of coordinates in runs, with prescribed motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dynamic_cases import TIGHT
from raising import raises
from sampling import mismatch

import kic
from kic.simulation.coordinates import Chart
from kic.simulation.motion import Snapshot


def five_bar() -> kic.Mechanism:
    """Every link with mass: of those without, the last one would be stopped at once where it is stretched."""
    m = kic.load("five-bar")
    return replace(m, bodies=[replace(b, mass=0.005, inertia=(0.02, 0.02, 0.04)) for b in m.bodies])


@pytest.mark.slow
@pytest.mark.parametrize("speed", [2.0, -2.0])
def test_prescribed_coordinates_stay_in_all_charts(speed: float) -> None:
    """One crank is prescribed, the other swings through its dead centre in other coordinates."""
    m = five_bar()
    c, t = m.at(), np.linspace(0, 6, 201)
    a = float(c.value("A"))

    def way(t: float) -> tuple[float, float, float]:
        return a + 0.3 * np.sin(t), 0.3 * np.cos(t), -0.3 * np.sin(t)

    runs = []
    for other in ("E", "B", "C"):
        rate = c.coefficients(["A", "E"], order=1, wrt=["A", other]).G
        qd = np.linalg.solve(rate, [0.3, speed])
        runs.append(m.simulate(t, near=c, qd=qd, wrt=["A", other], prescribed={"A": way}, integrator=TIGHT))
    run = runs[0]
    assert run.charts > 1
    assert run.t[-1] == 6
    # it came through places where A and E cannot drive the mechanism
    G = run.configuration.coefficients("E", order=1, wrt=["A", "B"]).G[:, 0, 1]
    assert G.min() < 0 < G.max()
    assert np.abs(run["A"] - [way(x)[0] for x in t]).max() < 1e-12
    assert np.abs(run.qd[:, 0] - [way(x)[1] for x in t]).max() < 1e-12
    assert np.abs(run.qdd[:, 0] - [way(x)[2] for x in t]).max() < 1e-10
    for twin in runs[1:]:
        assert mismatch(twin["tip"], run["tip"]) < 1e-8
        assert mismatch(twin.effort[:, 0], run.effort[:, 0]) < 1e-6
    # the effort that the prescribed motion takes is that of the dynamics, with none at the other
    B = runs[1]
    T = B.configuration.dynamics(wrt=["A", "B"]).inverse_dynamics(B.qd, B.qdd)
    # where these do not drive it well, accelerations are too large to tell
    well = m._model.closure(("A", "B")).condition(B.state) < 100
    assert 0.5 < well.mean() < 1
    assert mismatch(B.effort[well], T[well]) < 1e-9
    assert np.abs(B.effort[:, 1]).max() == 0
    kinetic = np.abs(run.energy.kinetic).max()
    assert np.abs(run.energy.residual).max() < 1e-7 * kinetic
    assert run.closure.max() < 1e-11


@pytest.mark.slow
def test_efforts_at_free_coordinates_with_prescribed_ones() -> None:
    m = five_bar()
    c, t = m.at(), np.linspace(0, 5, 61)
    a = float(c.value("A"))
    ways = {"A": lambda t: (a + 0.3 * np.sin(t), 0.3 * np.cos(t), -0.3 * np.sin(t))}

    def push(t: float, now: Snapshot) -> np.ndarray:
        # what is given at a prescribed coordinate counts for nothing
        return np.array([7.0, 0.05 * np.cos(3 * t)])

    run = m.simulate(t, near=c, qd=[0.3, 2.0], prescribed=ways, effort=push, integrator=TIGHT)
    assert run.charts > 1
    assert run.effort[:, 1] == pytest.approx(0.05 * np.cos(3 * t))
    assert np.abs(run.effort[:, 0] - 7).min() > 1e-3
    assert np.abs(run.energy.residual).max() < 1e-7 * np.abs(run.energy.kinetic).max()


def test_prescribed_coordinate_stops_at_its_dead_centre() -> None:
    m = kic.load("four-bar")
    begin = float(m.at().value("C"))
    with raises(kic.SimulationError, key="prescribed", names=("C",)) as e:
        m.simulate(4.0, near=m.at(), wrt="C", prescribed={"C": lambda t: (begin - t * t / 2, -t, -1.0)})
    kept = e.value.simulation
    assert kept.t[-1] > 0.5
    last = kept.configuration.coefficients("A", order=1, wrt="C").G[-1, 0, 0]
    assert abs(last) > 5  # the crank runs away from the angle that shall lead it


@pytest.mark.slow
def test_angles_of_cut_joints_are_not_integrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's coordinate closes the loop. It is in the results, but other coordinates are integrated."""
    m = kic.load("four-bar")
    assert "D" not in m._model.tree.columns
    used: list[tuple[str, ...]] = []
    call = Chart.__call__

    def counted(self: Chart, t: float, y: np.ndarray) -> np.ndarray:
        used.append(self.names)
        return call(self, t, y)

    monkeypatch.setattr(Chart, "__call__", counted)
    c, t = m.at(), np.linspace(0, 1, 21)
    ratio = c.coefficients("D", order=1).G[0, 0]
    run = m.simulate(t, near=c, qd=[3 * ratio], wrt="D", effort=[0.3], integrator=TIGHT)
    assert ("D",) not in used
    assert run.coordinates == ("D",)
    assert run.q.shape == (21, 1)
    push = m.prepare.coefficients(["D"], order=1)
    own = m.simulate(
        t, near=c, qd=[3.0], effort=lambda t, now: push(now.state).D.G.T @ [0.3], wrt="A", integrator=TIGHT
    )
    assert mismatch(run["tip"], own["tip"]) < 1e-9
    assert np.abs(run.q[:, 0] - own["D"]).max() < 1e-9
    assert run.effort[:, 0] == pytest.approx(np.full(21, 0.3))
