"""Prepared poses: position, orientation, twist, Jacobian and errors, for one state and batches."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from raising import raises
from sampling import mismatch
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.kernels.row_feedback import rotation_vector
from kic.numerics.rotations import matrix_from_quaternion, turning_rates, vector_from_matrix

PANDA = kic.load("panda")
ARM = kic.load("puma560").add(
    kic.Frame("grip", "link6", origin=(0.1, 0.2, 0.3), axes=[[0, 1, 0], [0, 0, 1], [1, 0, 0]])
)
MODELS: dict[str, tuple[kic.Mechanism, str, Any]] = {
    "arm": (PANDA, "link7", None),
    "frame": (ARM, "grip", None),
    "frame in its own coordinates": (ARM, "grip", ["grip"]),
    "platform": (kic.load("gough-stewart"), "platform", None),
    "platform in its pose": (kic.load("gough-stewart"), "platform", ["platform"]),
    "named backwards": (PANDA.replace(coordinates=PANDA.coordinates[::-1]), "link7", None),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_pose_and_twist_are_those_of_the_configuration(name: str) -> None:
    m, of, wrt = MODELS[name]
    rng = np.random.default_rng(4)
    f, c = m.prepare.pose(of, wrt=wrt), m.at()
    if m._model.is_open_chain:
        c = m.at(c._phi + rng.normal(size=c._phi.shape) * 0.3)
    qd = rng.normal(size=len(f.coordinates))
    u = c.coefficients(of, order=1, wrt=wrt)
    now = f(c.state, qd)
    for _ in range(2):
        assert np.abs(now.R - c.pose(of).rotation.as_matrix()).max() < 1e-12
        assert np.abs(now.p - np.array([c.value(f"{of}.{x}") for x in "xyz"])).max() < 1e-12 * m._model.length
        assert mismatch(now.G, u.G) < 1e-12
        assert mismatch(now.twist, u.velocity(qd)) < 1e-12
        now = f(c.state, qd, out=now)
    assert f(c.state).twist is None
    turn, shift = Rotation.from_rotvec([0.3, -0.2, 0.4]), np.array([0.1, 0.2, -0.3])
    expected = np.concatenate([shift, turn.as_rotvec()])
    aim = (now.p + shift, turn.as_matrix() @ now.R)
    assert np.abs(now.error(aim) - expected).max() < 1e-12
    assert np.abs(now.error(c.pose(of))).max() < 1e-12 * m._model.length
    assert np.abs(now.error(c.pose(of).as_matrix())).max() < 1e-12 * m._model.length
    many = f(np.stack([c.state] * 3), qd)
    assert many.p.shape == (3, 3)
    assert many.R.shape == (3, 3, 3)
    assert many.twist.shape == (3, 6)
    assert mismatch(many.G[2], now.G) < 1e-13
    assert np.abs(many.error(aim) - expected).max() < 1e-12
    again = pickle.loads(pickle.dumps(f))
    assert np.array_equal(again(c.state, qd).twist, now.twist)


def test_pose_evaluator_is_shown() -> None:
    m = kic.load("panda")
    f = m.prepare.pose("link7")
    assert repr(f) == "evaluator of pose of link7 of 'panda': f(state, qd)"


def test_rotation_vectors_of_one_matrix() -> None:
    """All angles up to half a turn, along axes and between."""
    rng = np.random.default_rng(1)
    axes = [*np.eye(3), *rng.normal(size=(40, 3))]
    for axis in axes:
        for angle in (0.0, 1e-12, 1e-4, 5e-4, 0.1, 1.0, 1.6, 2.0, 2.2, 3.0, np.pi - 1e-7):
            r = angle * axis / np.linalg.norm(axis)
            R = Rotation.from_rotvec(r).as_matrix()
            one = np.array(rotation_vector(*R.ravel().tolist()))
            assert np.abs(one - r).max() < 1e-13
            assert np.abs(one - vector_from_matrix(R)).max() < 1e-7
            half = np.append(np.cos(angle / 2), np.sin(angle / 2) * axis / np.linalg.norm(axis))
            assert np.abs(matrix_from_quaternion(3.0 * half) - R).max() < 5e-14
    assert np.isnan(rotation_vector(*[np.nan] * 9)).all()
    assert np.linalg.norm(rotation_vector(1.0, 0, 0, 0, -1.0, 0, 0, 0, -1.0)) == pytest.approx(np.pi)


def test_rates_of_rotation_vectors() -> None:
    """ω of a rotation vector is 2 vec(ṗ p̄), from central differences of the rotations."""
    rng = np.random.default_rng(2)
    for size in (1e-3, 0.5, 2.0, 5.0):
        r, rd, rdd = rng.normal(size=(3, 3))
        r *= size / np.linalg.norm(r)
        w, wd = turning_rates(r, rd, rdd)
        h = 1e-3
        ends = [
            turning_rates(r + k * h * rd + (k * h) ** 2 / 2 * rdd, rd + k * h * rdd, rdd)[0]
            for k in (-2, -1, 1, 2)
        ]
        assert np.abs((ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h) - wd).max() < 1e-8
        turns = [Rotation.from_rotvec(r + k * h * rd + (k * h) ** 2 / 2 * rdd) for k in (-2, -1, 1, 2)]
        base = Rotation.from_rotvec(r).inv()
        v = [(turn * base).as_rotvec() for turn in turns]
        assert np.abs((v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * h) - w).max() < 1e-8


def test_targets_as_configurations_give_them() -> None:
    """A RigidTransform of a body is its displacement; the error is that of its reference point."""
    m = kic.load("gough-stewart")
    now = m.prepare.pose("platform")(m.at().state)
    moved = RigidTransform.from_components([0.0, 0.0, 0.1], Rotation.identity()) * m.at().pose("platform")
    assert np.abs(now.error(moved) - [0, 0, 0.1, 0, 0, 0]).max() < 1e-12


def test_rates_are_real_numbers_of_the_batch() -> None:
    m = kic.load("puma560")
    f, states = m.prepare.pose("link6"), m.at(np.linspace(0.1, 0.4, 24).reshape(4, 6)).state
    assert np.array_equal(f(states, np.ones(6, int)).twist, f(states, np.ones((4, 6))).twist)


@pytest.mark.parametrize("name", ["grip", "link6"])
def test_all_readers_of_poses_take_the_same_forms(name: str) -> None:
    """Errors of `prepare.pose(of)`, and references of controllers, constant and in time."""
    m = kic.load("puma560")
    m = m.add(kic.Frame("grip", "link6", origin=(0.1, 0.2, 0.3), axes=Rotation.from_rotvec([0.3, -0.2, 0.5])))
    c, there = m.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4]), m.at([0.35, 0.4, -2.1, 0.6, 0.9, -0.3])
    f, pose = m.prepare.pose(name), there.pose(name)
    goal = f(there.state)
    forms = [(goal.p, goal.R), (goal.p, Rotation.from_matrix(goal.R)), pose, pose.as_matrix()]
    errors, efforts = [], []
    for form in forms:
        errors.append(f(c.state).error(form))
        for given in (form, lambda t, form=form: (form, np.zeros(6), np.zeros(6))):
            control = kic.controllers.OperationalSpaceControl(m, {name: given}, 50.0, 5.0)
            efforts.append(control(0.0, (c._phi, np.zeros(6))))
    assert max(np.abs(e - errors[0]).max() for e in errors) < 1e-13
    assert max(np.abs(e - efforts[0]).max() for e in efforts) < 1e-11 * np.abs(efforts[0]).max()
    mirrored = np.diag([1.0, 1.0, -1.0])
    for wrong in ((goal.p, mirrored), (goal.p[:2], goal.R), np.diag([1.0, 1.0, -1.0, 1.0])):
        with raises(kic.InputError, key="target"):
            f(c.state).error(wrong)
        with raises(kic.InputError, key="reference", name=name):
            kic.controllers.OperationalSpaceControl(m, {name: wrong}, 50.0, 5.0)
