"""A humanoid of a file of six digits: eight loops beside long open branches, on a floating base."""

from __future__ import annotations

import numpy as np
import pytest
from humanoid import DOF, LOOPS, humanoid
from numpy.testing import assert_allclose
from scipy.spatial.transform import RigidTransform, Rotation

import kic

mujoco = pytest.importorskip("mujoco")

DIGITS, TURN = 6, 0.2
# rounding of the file, which links of 0.03 amplify by 30, with a margin of 20
ROUNDING_ATOL = 20 * 30 * 10.0**-DIGITS
# sums of 60 terms of equal size, and loops closed to 1e-12
RTOL = 1e-9


@pytest.fixture(scope="module")
def text() -> str:
    return humanoid(DIGITS)


@pytest.fixture(scope="module")
def robot(text: str) -> kic.Mechanism:
    return kic.from_mjcf(text)


def moved(m: kic.Mechanism, **values: float) -> kic.Configuration:
    """The reference configuration with some coordinates changed, elsewhere in the world."""
    ref = m.at()
    own = {n: float(ref.value(n)) for n in m.coordinates if not n.startswith("base.")}
    base = RigidTransform.from_components([0.3, -0.2, 0.1], Rotation.from_rotvec([0.2, 0.5, -0.3]))
    return m.at({"base": base, **own, **values}, near=ref)


def gaps(text: str, c: kic.Configuration) -> np.ndarray:
    """MuJoCo's residuals of the equalities, in the reference orientation of the file for balls."""
    model, bits = mujoco.MjModel.from_xml_string(text), mujoco.mjtDisableBit
    data, zero = mujoco.MjData(model), mujoco.MjData(model)
    mujoco.mj_kinematics(model, zero)
    balls = []
    for j in range(model.njnt):
        joint, at, body = model.joint(j), model.jnt_qposadr[j], model.jnt_bodyid[j]
        kind = mujoco.mjtJoint(int(joint.type[0]))
        if kind == mujoco.mjtJoint.mjJNT_HINGE:
            data.qpos[at] = float(c.value(joint.name))
            continue
        pose = c.pose(model.body(body).name)
        turn = pose.rotation * Rotation.from_matrix(zero.xmat[body].reshape(3, 3))
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            data.qpos[at : at + 3] = pose.apply(zero.xpos[body])
            data.qpos[at + 3 : at + 7] = turn.as_quat(scalar_first=True)
        else:
            balls.append((at, body, turn))
    mujoco.mj_kinematics(model, data)
    for at, body, turn in balls:
        above = Rotation.from_matrix(data.xmat[model.body_parentid[body]].reshape(3, 3))
        own = Rotation.from_quat(model.body_quat[body], scalar_first=True)
        data.qpos[at : at + 4] = (own.inv() * above.inv() * turn).as_quat(scalar_first=True)
    model.opt.disableflags |= int(bits.mjDSBL_CONTACT) | int(bits.mjDSBL_LIMIT)
    mujoco.mj_forward(model, data)
    return data.efc_pos.copy()


def test_it_has_its_degrees_of_freedom(robot: kic.Mechanism) -> None:
    """All motors and the base are coordinates; the spins of the rods are held; arms move nothing idly."""
    motors = {f"base.{k}" for k in range(1, 7)} | {c for motor in robot.motors for c in motor.joints}
    assert (robot.dof, len(robot.motors)) == (DOF, DOF - 6)
    assert set(robot.coordinates) == motors > {name for names in LOOPS for name in names}
    assert sum("spins that move nothing else" in remark for remark in robot.remarks) == 1
    assert robot.mobility().passive_freedoms == ()


@pytest.mark.parametrize("motors", LOOPS, ids=lambda motors: motors[0])
def test_every_motor_moves_its_loop(text: str, robot: kic.Mechanism, motors: tuple[str, ...]) -> None:
    """Parallel rods copy the angle, and MuJoCo's equalities hold; other joints rest."""
    joints, turned = LOOPS[motors], {name: TURN * (-1) ** k for k, name in enumerate(motors)}
    c, rest = moved(robot, **turned), moved(robot)
    if len(motors) == 1:
        assert float(c.value(joints[0])) == pytest.approx(TURN, abs=ROUNDING_ATOL)
    else:
        assert abs(float(c.value(joints[1])) - float(rest.value(joints[1]))) > TURN / 2
    found = gaps(text, c)
    assert len(found) == 4 * 6 + 4 * 3
    assert np.abs(found).max() < ROUNDING_ATOL
    for other in {*LOOPS.values()} - {joints}:
        assert c.value(other[0]) == pytest.approx(rest.value(other[0]), abs=RTOL)


def test_its_dynamics_are_sums_over_bodies(robot: kic.Mechanism) -> None:
    """Newton's and Euler's equations of each body, with its Jacobian, in place of composite inertias."""
    c = moved(robot, **{name: 0.1 for names in LOOPS for name in names}, left_knee=0.4, right_elbow=-0.5)
    qd, qdd = np.random.default_rng(0).normal(size=(2, robot.dof))
    inertia, force = np.zeros((robot.dof, robot.dof)), np.zeros(robot.dof)
    for body in (b for b in robot.bodies if b.mass):
        rows, R = c.coefficients(body.name, order=2), c.pose(body.name).rotation.as_matrix()
        r = R @ (np.array(body.com) - body.reference)
        G, a = rows.G.copy(), rows.acceleration(qd, qdd)
        w, alpha = G[3:] @ qd, a[3:]
        G[:3] += np.cross(G[3:].T, r).T
        centre = a[:3] + np.cross(alpha, r) + np.cross(w, np.cross(w, r))
        J = R @ np.array(body.inertia) @ R.T
        inertia += body.mass * G[:3].T @ G[:3] + G[3:].T @ J @ G[3:]
        force += G[:3].T @ (body.mass * (centre - robot.gravity)) + G[3:].T @ (J @ alpha + np.cross(w, J @ w))
    for joint in robot.joints:
        for name, armature, damping in zip(joint.components, joint.armature, joint.damping, strict=True):
            if armature or damping:
                rows = c.coefficients(name, order=2)
                inertia += armature * rows.G.T @ rows.G
                force += rows.G.T @ (armature * rows.acceleration(qd, qdd) + damping * rows.G @ qd)
    d = c.dynamics()
    assert_allclose(d.I, inertia, rtol=0, atol=RTOL * np.abs(inertia).max())
    got = d.inverse_dynamics(qd, qdd)
    assert_allclose(got, force, rtol=0, atol=RTOL * np.abs(force).max())
    assert_allclose(d.forward_dynamics(qd, force), qdd, rtol=0, atol=RTOL * np.linalg.cond(inertia))


def test_spins_that_are_free_are_passive(text: str) -> None:
    """Each rod of an ankle alone, and nothing else of the robot."""
    m = kic.from_mjcf(text, spins="free")
    found = m.mobility().passive_freedoms
    rods = {f"{side}_ankle_{part}_rod" for side in ("left", "right") for part in ("upper", "lower")}
    assert m.dof == DOF + len(rods)
    assert {one.bodies for one in found} == {(rod,) for rod in rods}


def test_a_map_of_two_motors(robot: kic.Mechanism) -> None:
    """The bound holds although the loops of the other leg, waist and neck are left out."""
    motors, joints = ("left_ankle_upper", "left_ankle_lower"), LOOPS["left_ankle_upper", "left_ankle_lower"]
    m = robot.lock(["base", *(n for n in robot.coordinates if n not in motors and not n.startswith("base."))])
    limits = dict.fromkeys(motors, (-0.05, 0.05))
    made = m.export.actuation_map(joints, wrt=motors).to_polynomial(limits=limits, error_max=1e-3)
    at = np.random.default_rng(0).uniform(-0.05, 0.05, (20, 2))
    c = m.at(dict(zip(motors, at.T, strict=True)), near=m.at())
    expected = np.stack([c.value(joint) for joint in joints], axis=-1)
    assert (np.abs(made(at) - expected) <= made.error_bound).all()
