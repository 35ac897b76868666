"""Linear models against simulations: the difference is of second order in the disturbance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import make_interp_spline
from scipy.linalg import expm
from scipy.signal import lsim

import kic
from kic import trajectory as tr

TIGHT = kic.Integrator(rtol=1e-11, atol=1e-12)
SIZES = np.array([3e-2, 1e-2, 3e-3])


def slope(missed: list[float]) -> float:
    """Return the slope of the error over the size of the disturbance, in logarithms."""
    return float(np.polyfit(np.log(SIZES[: len(missed)]), np.log(missed), 1)[0])


def hanging() -> kic.Mechanism:
    """A four-bar that hangs from its ground, with a spring and dampers in its joints."""
    m = kic.load("four-bar")
    joints = [replace(j, damping=0.3, stiffness=2.0) if j.name in "AD" else j for j in m.joints]
    return replace(m, joints=joints, gravity=(0.0, -9.81, 0.0))


@pytest.mark.slow
def test_a_closed_mechanism_about_its_equilibrium() -> None:
    """A four-bar let go beside where it rests; in the angle of its crank, and in the place of its tip."""
    m = hanging()
    rest = m.find_equilibrium()
    assert rest.stability == "asymptotically stable"
    c = rest.configuration
    scale = float(np.abs(c.linearize().state_space().eigenvalues).max())
    t = np.linspace(0, 2.0 / scale, 9)
    for wrt, unit in (("A", 1.0), ("tip.x", m._model.length)):
        s = c.linearize(wrt=wrt).state_space()
        x0 = np.array([0.8, 0.5 * scale]) * unit * 0.5
        rested = np.array([float(c.value(wrt)), 0.0])
        missed = []
        for size in SIZES:
            x = rested + size * x0
            run = m.simulate(t, near=m.at({wrt: x[0]}, near=c), qd=x[1:], wrt=wrt, integrator=TIGHT)
            linear = rested + np.stack([expm(s.A * k) for k in t]) @ (size * x0)
            missed.append(np.abs((np.hstack([run.q, run.qd]) - linear) / [unit, unit * scale]).max())
        assert missed[-1] > 1e-8  # well above what integration leaves
        assert slope(missed) == pytest.approx(2.0, abs=0.05), wrt


def test_an_effort_set_on_at_rest() -> None:
    """A step of the crank's torque agrees with the linear model in scipy.signal.lsim, including the tip."""
    m = hanging()
    c = m.find_equilibrium().configuration
    s = c.linearize().state_space(inputs=["A"], outputs=["tip.x", "tip.y", "A"])
    scale = float(np.abs(s.eigenvalues).max())
    t = np.linspace(0, 3.0 / scale, 11)
    torque = 0.3 * scale**2 * float(c.dynamics().I[0, 0])
    _, y, _ = lsim(s.to_scipy(), np.full((11, 1), torque), t)
    still = np.append(c.value("tip")[:2], c.value("A"))
    missed = []
    for size in SIZES:
        run = m.simulate(t, near=c, effort=[size * torque], integrator=TIGHT)
        moved = np.column_stack([run["tip"][:, :2], run["A"]]) - still
        missed.append(np.abs((moved - size * y) / np.abs(y).max(axis=0)).max())
    assert missed[-1] > 1e-8
    assert slope(missed) == pytest.approx(2.0, abs=0.05)


def parted(
    m: kic.Mechanism, way: tr.Trajectory, wrt: list[str] | None, start: kic.Configuration
) -> tuple[list[float], float]:
    """Return the distances of disturbed runs from the linear model along a path and a constant one."""
    fine = np.linspace(0, way.duration, 161)
    course = way.on(m, fine, near=start)
    effort = make_interp_spline(fine, course.effort(), k=7)
    space = course.configuration.linearize(course.motion.qd, course.motion.qdd, wrt=wrt).state_space()
    A = make_interp_spline(fine, space.A, k=7)
    t = np.linspace(0, way.duration, 7)
    M = way.size
    rng = np.random.default_rng(2)
    x0 = rng.normal(size=2 * M) * np.repeat([0.3, 1.0], M)

    def run(x: np.ndarray) -> np.ndarray:
        at = m.at(way.inputs(way(0.0).q + x[:M]), near=start)
        there = m.simulate(
            t, near=at, effort=lambda t, now: effort(t), qd=way(0.0).qd + x[M:], wrt=wrt, integrator=TIGHT
        )
        return np.hstack([there.q, there.qd])

    nominal = run(0 * x0)
    assert np.abs(nominal[:, :M] - way(t).q).max() < 1e-8  # the efforts are those of the way
    linear = solve_ivp(lambda t, x: A(t) @ x, (0, way.duration), x0, "DOP853", t, rtol=1e-11, atol=1e-12).y.T
    missed = [np.abs(run(a * x0) - nominal - a * linear).max() for a in SIZES]
    # a model that stays as it was at the start misses already in the first order
    still = np.stack([expm(space.A[0] * k) for k in t]) @ x0
    return missed, float(np.abs(still - linear).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four-bar", "five-bar", "five-bar at its tip", "arm"])
def test_along_a_motion(name: str) -> None:
    """The model changes in time with the nominal motion, whose efforts both are given."""
    if name == "four-bar":
        m = hanging()
        c, wrt = m.at({"A": 1.0}), None
        way = tr.quintic({"A": 1.0}, {"A": 2.2}, 0.5, end_rate={"A": 3.0})
    elif name == "arm":
        m = replace(kic.load("horn-two-link"), gravity=(0.0, -9.81, 0.0))
        c, wrt = m.at([0.2, 0.8]), None
        way = tr.septic([0.2, 0.8], [1.4, 1.6], 0.8)
    else:
        m = kic.load("five-bar")
        c = m.at()
        wrt = ["tip.x", "tip.y"] if "tip" in name else None
        names = wrt or ["A", "E"]
        here = {x: float(c.value(x)) for x in names}
        move = (-0.6, -1.5) if wrt else (0.5, -0.4)
        way = tr.quintic(here, {x: here[x] + d for x, d in zip(names, move, strict=True)}, 0.6)
        if wrt is None:
            way = tr.quintic(
                list(here.values()), [here[x] + d for x, d in zip(names, move, strict=True)], 0.6
            )
    missed, first = parted(m, way, wrt, c)
    assert slope(missed) == pytest.approx(2.0, abs=0.05)
    assert missed[-1] < 0.1 * SIZES[-1] * first
