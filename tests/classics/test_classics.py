"""Claims that the closed forms of all sources share: the general library, derivatives, symbols and errors."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from classic_arms import (
    BATCHES,
    random_leg,
    random_planar,
    random_point_masses,
    random_puma,
)  # fmt: skip
from raising import refuses
from sampling import STEP, mismatch, solved

import kic
from kic.classics import Leg, PointMassArm, ThreeLink, ThreeLinkPuma, TwoLink, WristPartitioned

MAKERS = {
    "leg": random_leg,
    "point masses": random_point_masses,
    "two links": partial(random_planar, kind=TwoLink),
    "three links": partial(random_planar, kind=ThreeLink),
}
every_arm = pytest.mark.parametrize("name", MAKERS)


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("seed", range(3))
@every_arm
def test_dynamics_agree_with_the_mechanism(name: str, seed: int, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    arm = MAKERS[name](rng)
    n = len(arm.coordinates)
    q, qd, qdd, torques = rng.uniform(-3, 3, size=(4, *batch, n))
    own, d = arm.dynamics(q), arm.mechanism().at(q).dynamics()
    assert own.coordinates == d.coordinates == arm.coordinates
    assert (own.I.shape, own.P.shape, own.load.shape) == ((*batch, n, n), (*batch, n, n, n), (*batch, n))
    for letter in ("I", "P", "load", "damping"):
        assert mismatch(getattr(own, letter), getattr(d, letter)) < 1e-12, letter
    assert mismatch(own.inverse_dynamics(qd, qdd), d.inverse_dynamics(qd, qdd)) < 1e-12
    assert mismatch(own.forward_dynamics(qd, torques), d.forward_dynamics(qd, torques)) < solved(d.I)
    assert mismatch(own.forward_dynamics(qd, own.inverse_dynamics(qd, qdd)), qdd) < solved(d.I)


@pytest.mark.parametrize("seed", range(3))
@every_arm
def test_dynamics_by_complex_step(name: str, seed: int) -> None:
    """P* has the Christoffel symbols of I*."""
    rng = np.random.default_rng(seed)
    arm = MAKERS[name](rng)
    q = rng.normal(size=(6, len(arm.coordinates)))
    steps = q[..., None, :] + 1j * STEP * np.eye(q.shape[-1])
    gradient = arm.dynamics(steps).I.imag / STEP  # [..., k, m, n] = ∂I_mn/∂q_k
    christoffel = (np.swapaxes(gradient, -3, -2) + np.moveaxis(gradient, -3, -1) - gradient) / 2
    assert mismatch(arm.dynamics(q).P, christoffel) < 1e-12


LEG, POINTS, WRIST = Leg(0.5, 0.4, 7.0, 4.0, d2=0.1, d3=0.2), PointMassArm(), WristPartitioned(1.3, 0.9, 0.4)
PUMA = random_puma(np.random.default_rng(6))
SYMBOLIC = {
    "leg": lambda q: [*model(LEG.dynamics(q)), LEG.tip_coefficients(q).values],
    "point masses": lambda q: [*model(POINTS.dynamics(q)), POINTS.jacobian(q)],
    "wrist-partitioned arm": lambda q: WRIST.inverse_coefficients(q).tensors,
    "three links of a PUMA": lambda q: [
        *(getattr(PUMA.dynamics(q), part) for part in ("D_tran", "D_rot", "P_tran", "P_rot", "G")),
        PUMA.dynamics(q).H_tran(q),
    ],
}


def model(d: kic.Dynamics) -> tuple[np.ndarray, ...]:
    return d.I, d.P, d.load


@pytest.mark.slow_for("wrist-partitioned arm")
@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_joint_angles(name: str) -> None:
    sympy = pytest.importorskip("sympy")
    q, numbers = np.array(sympy.symbols("theta1:4")), np.array([0.3, 0.7, -1.1])
    values = dict(zip(q, numbers, strict=True))
    for symbols, expected in zip(SYMBOLIC[name](q), SYMBOLIC[name](numbers), strict=True):
        found = [float(sympy.sympify(x).subs(values)) for x in np.ravel(symbols)]
        np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("arm", "name"),
    [
        (TwoLink(1, 1, 1, 1, 9.81), "horn-two-link"),
        (ThreeLink(1, 1, 1, 1, 1, 1, 9.81), "horn-three-link"),
        (PointMassArm(), "three-link-arm"),
    ],
)
def test_model_files_equal_the_mechanisms(arm, name: str) -> None:
    drawn, shipped = arm.mechanism(), kic.load(name)
    for part in ("bodies", "joints", "points", "distances", "gravity"):
        assert getattr(drawn, part) == getattr(shipped, part)


def key_of(error: kic.KicError) -> object:
    """Return the argument that an error names, or those whose batches do not fit."""
    return error.numbers.get("batches") or error.numbers.get("key")


LENGTHS = {"l2": 0.5, "l3": 0.4, "m2": 7.0, "m3": 4.0}
LINKS = {"masses": [1, 1, 1], "coms": [[0, 0, 0]] * 3, "inertias": [[0.1, 0.1, 0.1]] * 3}
PARAMETERS = [
    (TwoLink, {"l1": 0, "l2": 1}, "l1"), (TwoLink, {"l1": 1, "l2": -1}, "l2"),
    (TwoLink, {"l1": 1, "l2": 1, "m1": -2}, "m1"), (TwoLink, {"l1": 1, "l2": 1, "g": np.nan}, "g"),
    (TwoLink, {"l1": 1, "l2": None}, "l2"), (ThreeLink, {"l1": 1, "l2": 1, "l3": "1"}, "l3"),
    (Leg, LENGTHS | {"l2": 0.0}, "l2"), (Leg, LENGTHS | {"l3": -1.0}, "l3"),
    (Leg, LENGTHS | {"M3": -0.1}, "M3"),
    (Leg, LENGTHS | {"m1": "heavy"}, "m1"), (Leg, LENGTHS | {"d2": np.inf}, "d2"),
    (Leg, LENGTHS | {"gravity": (0, 9.81)}, "gravity"),
    (PointMassArm, {"l1": 0}, "l1"), (PointMassArm, {"l2": -0.5}, "l2"), (PointMassArm, {"m2": None}, "m2"),
    (PointMassArm, {"g": np.nan}, "g"), (PointMassArm, {"Izz": -0.1}, "Izz"),
    (PointMassArm, {"m3": 0}, "Izz"),
    (WristPartitioned, {"a23": 0.0, "a34": 1.0}, "a23"), (WristPartitioned, {"a23": 1.0, "a34": -1.0}, "a34"),
    (WristPartitioned, {"a23": 1.0, "a34": 1.0, "s11": "high"}, "s11"),
    (ThreeLinkPuma, LINKS | {"masses": [1, 2]}, "masses"), (ThreeLinkPuma, LINKS | {"d2": "long"}, "d2"),
    (ThreeLinkPuma, LINKS | {"inertias": [0.1, 0.1, math.inf]}, "inertias"),
    (ThreeLinkPuma, LINKS | {"masses": [1, -1, 1]}, "mass"),
    (ThreeLinkPuma, LINKS | {"inertias": [[0.1, 0.1, 0.9]] * 3}, "inertia"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "key"), PARAMETERS)
def test_invalid_parameters_raise(kind: type, given: dict, key: str) -> None:
    refuses(lambda: kind(**given), kic.ModelError, key=key)


TWO, THREE, ZERO = TwoLink(0.7, 0.45, 1.0, 1.0), ThreeLink(1.0, 1.0, 0.5), np.zeros(3)
BAD_ANGLES = ([0.0, 0.0], [0.0, np.nan, 0.0])
METHODS_OF_ANGLES = [
    ("q", LEG.dynamics), ("q", LEG.tip_coefficients), ("q", THREE.jacobian), ("q", THREE.forward_kinematics),
    ("theta", WRIST.wrist_coefficients), ("theta", WRIST.inverse_coefficients),
    ("P", WRIST.inverse_kinematics),
]  # fmt: skip


def theta() -> object:
    from sympy import Symbol

    return Symbol("theta")


ARGUMENTS = [
    *((key, partial(f, bad)) for key, f in METHODS_OF_ANGLES for bad in BAD_ANGLES),
    ("q", lambda: TWO.forward_kinematics(ZERO)), ("q", lambda: TWO.dynamics("no")),
    ("tip", lambda: TWO.inverse_kinematics([1.0, np.nan])),
    ("tip", lambda: TWO.inverse_kinematics([0.5, 0.5j])),
    ("tip", lambda: TWO.inverse_kinematics([theta(), 0.5])),
    ("failures", lambda: TWO.inverse_kinematics([0.5, 0.5], failures="drop")),
    ("tip", lambda: THREE.inverse_kinematics([0.5, 0.5])),
    ("tip", lambda: THREE.inverse_kinematics([0.5, 0.5, 1j])),
    ("failures", lambda: THREE.inverse_kinematics([1.0, 1.0, 0.0], failures=None)),
    ("order", lambda: LEG.tip_coefficients(ZERO, order=4)),
    ("q", lambda: POINTS.dynamics([0.0, 0.0])),
    ("order", lambda: WRIST.wrist_coefficients(ZERO, order=0)),
    ("order", lambda: WRIST.inverse_coefficients(ZERO, order=0)),
    ("P", lambda: WRIST.inverse_kinematics([1.0 + 1e-40j, 0.5, 0.8])),
    ("failures", lambda: WRIST.inverse_kinematics([1.0, 0.5, 0.8], failures="skip")),
    ("q", lambda: PUMA.dynamics([0.0, 1.0])),
    ({"model": (2,), "qd": (5,)}, lambda: PUMA.dynamics(np.zeros((2, 3))).H_rot(np.zeros((5, 3)))),
]  # fmt: skip


@pytest.mark.parametrize(("key", "call"), ARGUMENTS)
def test_invalid_arguments_raise(key: str | dict, call) -> None:
    caught = refuses(call)
    found = key_of(caught)
    assert key in found if isinstance(found, dict) and isinstance(key, str) else found == key
