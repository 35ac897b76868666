"""Rotations of spherical joints among the values of a position problem, beside loops and in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import kic

AXES = {"axis": (0.0, 1.0, 0.0), "axis2": (0.0, 0.0, 1.0)}


def machine(free: bool = False, **axes: Any) -> kic.Mechanism:
    """A four-bar with an arm on a ball joint at its coupler, on the ground or on a free base."""
    m = kic.load("four-bar")
    arm = kic.Body("arm", mass=1.0, com=(0.1, 0.2, 1.0), inertia=(1.0, 1.0, 1.0))
    ball = kic.Joint("S", "spherical", ("coupler", "arm"), at=m["B"].at, **axes)
    if not free:
        return m.add(arm, ball).replace(coordinates=["A", "S"])
    base = kic.Body("base", mass=1.0, com=(0.0, 0.0, 0.0), inertia=(1.0, 1.0, 1.0))
    joints = [replace(j, bodies=tuple("base" if b == "ground" else b for b in j.bodies)) for j in m.joints]
    joints += [kic.Joint("root", "free", ("ground", "base"), at=(0.0, 0.0, 0.0)), ball]
    return kic.Mechanism("mobile", [*m.bodies, arm, base], joints, coordinates=["root", "A", "S"])


def relative(c: kic.Configuration, joint: kic.Joint) -> Rotation:
    """Rotation of the second body of a joint relative to the first, from the poses of both."""
    first, second = (c.pose(body).rotation for body in joint.bodies)
    return first.inv() * second


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("axes", [{}, AXES])
@pytest.mark.parametrize("free", [False, True])
def test_a_ball_joint_takes_its_rotation(seed: int, axes: dict[str, Any], free: bool) -> None:
    """It is a vector in its axes, in three components or an array, or a Rotation, also beyond half a turn."""
    rng = np.random.default_rng(seed)
    m = machine(free, **axes)
    columns = np.eye(3) if not axes else np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]).T
    vector, crank = rng.normal(size=3) * rng.choice([0.3, 1.0, 3.0]), rng.uniform(0.0, 6.0)
    root = rng.normal(size=6) if free else np.zeros(0)
    rest = {"A": crank} | ({"root": root} if free else {})
    wanted = Rotation.from_rotvec(columns @ vector)
    given = (
        rest | {"S": vector},
        rest | {"S": wanted},
        rest | {f"S.{k + 1}": x for k, x in enumerate(vector)},
        np.concatenate([root, [crank], vector]),
    )
    for values in given:
        c = m.at(values)
        assert (relative(c, m["S"]) * wanted.inv()).magnitude() < 1e-9
        assert abs(c.value("A") - crank) < 1e-9
        assert np.abs(m.at(given[0]).pose("arm").as_matrix() - c.pose("arm").as_matrix()).max() < 1e-9


def test_batches_and_paths_of_rotations() -> None:
    m = machine()
    vectors = np.linspace([0.1, 0.0, -0.2], [1.0, 2.0, 0.4], 7)
    for values in ({"A": np.linspace(1, 2, 7), "S": vectors}, {"A": 1.2, "S": Rotation.from_rotvec(vectors)}):
        for c in (m.at(values), m.path(values)):
            assert c.batch == (7,)
            assert (relative(c, m["S"]) * Rotation.from_rotvec(vectors).inv()).magnitude().max() < 1e-9
    found = m.at({"A": 1.2, "S": [[np.nan, 0, 0], [0.1, 0, 0], [np.inf, 0, 0]]}, failures="mask")
    assert found.ok.tolist() == [False, True, False]
    modes = m.assembly_modes({"A": 1.2, "S": [0.1, 0.2, 0.3]})
    assert relative(modes.configuration, m["S"]).as_rotvec() == pytest.approx(np.array([[0.1, 0.2, 0.3]] * 2))
    assert m.lock({"S": [0.1, 0.2, 0.3]}).coordinates == ("A",)


@pytest.mark.parametrize("seed", range(3))
def test_a_ball_joint_of_a_leg_drives_a_platform(seed: int) -> None:
    """With three lengths: the other lengths are those from which the rotation was taken."""
    m = kic.load("gough-stewart")
    c = m.at(m.at().value(m.coordinates) + np.random.default_rng(seed).uniform(-0.05, 0.05, 6))
    d = m.at({"S1": relative(c, m["S1"])} | {name: c.value(name) for name in ("L1", "L2", "L3")})
    assert np.abs(d.value(m.coordinates) - c.value(m.coordinates)).max() < 1e-10


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"A": 1.0, "S": [0.1, 0.2]}, r"`S` must have shape \(\.\.\., 3\)"),
        ({"A": 1.0, "S": "x"}, "`S` must be an array of numbers"),
        ({"A": 1.0, "S": np.array([0.1, 0.2, 1e-30j])}, "`S` must be real numbers"),
        ({"A": 1.0, "S.1": 0.1}, "Give 'S' a rotation vector or a Rotation"),
        ({"S": [0.1, 0.2, 0.3]}, r"S \(orientation\): 3. Name 1 more"),
        ({"A": 1.0, "arm.euler_xyz": np.array([0.1, 0.2, 1e-30j])}, "must be real numbers"),
    ],
)
def test_wrong_rotations_raise(values: dict[str, Any], message: str) -> None:
    with pytest.raises(kic.InputError, match=message):
        machine().at(values)
    with pytest.raises(kic.InputError, match="`root` must be real numbers"):
        machine(free=True).at({"A": 1.0, "S": [0.0, 0, 0], "root": np.array([0, 0, 0, 0, 0, 1e-30j])})
