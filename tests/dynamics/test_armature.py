"""Armature of joints: the same inertia by motors, in every result that has inertia."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kic

ROTORS = {"A": 0.7, "C": 0.3, "E": 0.2}


@pytest.fixture(scope="module")
def pair() -> tuple[kic.Mechanism, kic.Mechanism]:
    """Return a five-bar with armature, one joint of which is cut, and with motors of the same inertia."""
    m = kic.load("five-bar")
    rotors = {**dict.fromkeys(m.mobility().cuts, 0.4), **ROTORS}
    joints = [replace(j, armature=rotors.get(j.name, 0.0)) for j in m.joints]
    motors = [kic.Motor(f"rotor {name}", [name], inertia=J) for name, J in rotors.items()]
    return replace(m, joints=joints), replace(m, motors=motors)


def configurations(pair):
    q = pair[0].at().value("A"), pair[0].at().value("E")
    return tuple(m.at({"A": q[0] + 0.1, "E": q[1] - 0.2}) for m in pair)


@pytest.mark.parametrize("wrt", [None, ["tip.x", "tip.y"]])
def test_dynamics_of_armature(pair, wrt):
    pair = tuple(
        replace(m, points=[*m.points, kic.Point("tip", m.joints[2].bodies[1], m.joints[2].at)])
        if "tip" not in m._parts else m for m in pair
    )  # fmt: skip
    c, by_motors = configurations(pair)
    d, expected = c.dynamics(wrt=wrt), by_motors.dynamics(wrt=wrt, motors=True)
    assert np.abs(d.I - expected.I).max() < 1e-13 * np.abs(d.I).max()
    symmetric = [x.P + np.swapaxes(x.P, -1, -2) for x in (d, expected)]
    assert np.abs(symmetric[0] - symmetric[1]).max() < 1e-12 * np.abs(d.P).max()
    f = pair[0].prepare.dynamics(wrt=wrt)
    r = f(c.state)
    assert np.abs(r.I - d.I).max() < 1e-13 * np.abs(d.I).max()
    only = pair[0].prepare.dynamics(wrt=wrt, loads=False)(c.state)
    assert np.abs(only.P - d.P).max() < 1e-13 * np.abs(d.P).max()


def test_joint_forces_with_armature(pair):
    c, _ = configurations(pair)
    qd, qdd = np.array([0.4, -0.7]), np.array([1.3, 0.6])
    f = c.joint_forces(qd, qdd)
    assert np.abs(f.effort - c.dynamics().inverse_dynamics(qd, qdd)).max() < 1e-11 * np.abs(f.effort).max()


def test_contributions_and_stiffness_with_armature(pair):
    c, by_motors = configurations(pair)
    parts = c.body_contributions()
    total = parts.I_linear.sum(axis=0) + parts.I_angular.sum(axis=0)
    assert np.abs(total - c.dynamics().I).max() < 1e-13 * np.abs(total).max()
    qd, qdd = np.array([0.4, -0.7]), np.array([1.3, 0.6])
    K, expected = (x.linearize(qd, qdd, **more).K for x, more in ((c, {}), (by_motors, {"motors": True})))
    assert np.abs(K - expected).max() < 1e-11 * np.abs(K).max()


def test_operational_space_with_armature(pair):
    c, by_motors = configurations(pair)
    task = ["A"]
    found = c.operational_space(task)
    inverse = np.linalg.inv(by_motors.dynamics(motors=True).I)[0, 0]
    assert abs(1 / inverse - found.Lambda[0, 0]) < 1e-12 * abs(found.Lambda[0, 0])
