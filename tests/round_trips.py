"""Random mechanisms written for MuJoCo and Pinocchio, and their differences from those of the package.

Loops are cut at joints with laws, too. The package evaluates the tree of the file: mass matrix, bias forces
with gravity, springs and dampers, and its conditions for loops. These are projected on the coordinates of the
mechanism by the rates of the tree. Springs and armature of URDF files are read by kic alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sampling import random_body, random_joint
from scipy.spatial.transform import RigidTransform

import kic
from kic.description.joint_types import JOINT_DOF
from kic.mechanism.assembly import default_coordinates
from kic.mechanism.configuration import Configuration

PEERS = ("mujoco", "pinocchio")
# joints of the tree that both formats have
KINDS = ("revolute", "revolute", "prismatic", "cylindrical", "universal", "planar")
# largest rate of a joint per unit of the coordinates; mechanisms nearer to change points are not taken
RATE_MAX = 30.0


def random_mechanism(rng: np.random.Generator, peer: str) -> kic.Mechanism:
    """Return a mechanism with laws at random joints, and a well-conditioned configuration."""
    while True:
        made = _flat(rng, peer) if rng.random() < 0.3 else _spatial(rng, peer)
        if made is None:
            continue
        try:
            names = default_coordinates(made, [])
            if names == ():
                continue
            made = replace(made, coordinates=names)
            if _is_regular(made, made.at()):
                return made
        except kic.KicError:
            continue


def _is_regular(m: kic.Mechanism, c: Configuration) -> bool:
    """Return True far from change points of the default coordinates."""
    names = [joint.name for joint in m.joints if joint.dof]
    return float(np.abs(c.coefficients(names, order=1).G).max()) < RATE_MAX


def _parts(rng: np.random.Generator, joints: list[kic.Joint], names: list[str], peer: str) -> dict[str, Any]:
    """Return bodies, joints with laws, points, springs and couplings."""
    points = [
        kic.Point(f"p{k}", name, tuple(rng.normal(size=3)), mass=0.3 * (k % 2))
        for k, name in enumerate(names)
    ]
    extra: dict[str, Any] = {}
    if peer == "mujoco" and rng.random() < 0.5:
        ends = ("p0", f"p{len(names) - 1}")
        extra["springs"] = [kic.Spring("coil", ends, stiffness=3.0, rest=0.4, damping=0.5)]
    single = [j.name for j in joints[: len(names) - 1] if JOINT_DOF[j.type] == 1]
    if peer == "mujoco" and len(single) > 1 and rng.random() < 0.4:
        count = int(rng.integers(2, min(len(single), 3) + 1))
        extra["couplings"] = [kic.Coupling("gear", single[:count], ratios=tuple(rng.uniform(0.5, 2, count)))]
    return {
        "bodies": [random_body(rng, name) for name in names[1:]],
        "joints": [_with_laws(rng, joint, peer) for joint in joints],
        "points": points,
        "gravity": tuple(rng.normal(size=3)),
        **extra,
    }


def _with_laws(rng: np.random.Generator, joint: kic.Joint, peer: str) -> kic.Joint:
    """Return a joint with random laws that the format has."""
    if rng.random() < 0.4:
        return joint
    ball = joint.type in ("spherical", "free")
    if ball and peer == "pinocchio":
        return joint
    count = JOINT_DOF[joint.type]
    laws: dict[str, Any] = {}
    for key in ("damping", "friction", "armature", "stiffness", "rest"):
        if rng.random() < 0.5 or (peer == "pinocchio" and key not in ("damping", "friction")):
            continue
        values = rng.uniform(0.1, 1.0, count)
        if ball and key in ("stiffness", "rest"):
            values[count - 3 :] = 0.0
        elif ball:
            values[count - 3 :] = values[-1]
        laws[key] = tuple(values)
    if joint.valued and rng.random() < 0.5:
        pairs = [(float(x) - 1.0, float(x) + 1.5) for x in np.atleast_1d(joint.value)[: len(joint.valued)]]
        pairs[0] = (pairs[0][0], np.inf)
        laws["limits"] = pairs[0] if len(pairs) == 1 else pairs
    return replace(joint, **laws)


def _spatial(rng: np.random.Generator, peer: str) -> kic.Mechanism | None:
    """Return a spatial tree, with up to two joints that close loops."""
    names, joints = ["ground"], list[kic.Joint]()
    for k in range(int(rng.integers(2, 6))):
        parent = names[rng.integers(len(names))]
        kinds = (*KINDS, "spherical", "free") if peer == "mujoco" else (*KINDS, *["free"] * (k == 0))
        kind = str(rng.choice(kinds))
        made = random_joint(rng, f"j{k}", kind, parent, f"b{k}")
        if kind in ("spherical", "free"):
            made = replace(made, bodies=(parent, f"b{k}"))
        joints.append(made)
        names.append(f"b{k}")
    free = sum(joint.dof for joint in joints)
    for k in range(int(rng.integers(3))):
        one, two = (names[i] for i in rng.choice(len(names), 2, replace=False))
        kind = str(rng.choice((*KINDS, "spherical", "spherical", "fixed")))
        if kind in ("spherical", "fixed") and two == "ground":
            one, two = two, one
        made = random_joint(rng, f"c{k}", kind, one, two)
        if kind in ("spherical", "fixed"):
            made = replace(made, bodies=(one, two))
        if free + made.dof - 6 >= 1:
            free += made.dof - 6
            joints.append(made)
    return kic.Mechanism("random", **_parts(rng, joints, names, peer))


def _flat(rng: np.random.Generator, peer: str) -> kic.Mechanism | None:
    """Return a planar mechanism of hinges and slides, with up to two loops, each redundant in space."""
    turn = kic_rotation(rng)
    names, joints = ["ground"], list[kic.Joint]()

    def add(name: str, one: str, two: str) -> None:
        kind = "revolute" if rng.random() < 0.8 else "prismatic"
        local = (0, 0, 1) if kind == "revolute" else (*rng.normal(size=2), 0)
        pair = (one, two) if rng.random() < 0.5 else (two, one)
        at = turn @ [*rng.normal(size=2), rng.normal()]
        value = float(rng.normal())
        joints.append(kic.Joint(name, kind, pair, at=tuple(at), axis=tuple(turn @ local), value=value))

    for k in range(int(rng.integers(3, 7))):
        parent = names[rng.integers(len(names))]
        add(f"j{k}", parent, f"b{k}")
        names.append(f"b{k}")
    free = len(joints)
    for k in range(int(rng.integers(1, 3))):
        if free >= 3:
            one, two = (names[i] for i in rng.choice(len(names), 2, replace=False))
            add(f"c{k}", one, two)
            free -= 2
    return kic.Mechanism("random", **_parts(rng, joints, names, peer))


def kic_rotation(rng: np.random.Generator) -> np.ndarray:
    """Return a random rotation matrix."""
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.linalg.det(q)


def moved(m: kic.Mechanism, rng: np.random.Generator) -> Configuration:
    """Return a configuration near the reference, or it if that does not close."""
    c = m.at()
    inputs = {}
    for joint in m.joints:
        for name in joint.components:
            if name in m.coordinates and name in joint.valued and joint.type != "free":
                inputs[name] = float(c.value(name)) + rng.uniform(-0.1, 0.1)
    if len(inputs) < len(m.coordinates):
        return c
    try:
        found = m.at(inputs, near=c)
        return found if _is_regular(m, found) else c
    except kic.KicError:
        return c


def differences(
    m: kic.Mechanism, peer: str, written: kic.Mechanism | None = None, seed: int = 0
) -> dict[str, float]:
    """Return the differences of each quantity, relative to the sizes of its sums; by kic itself for "urdf".

    The file is that of the mechanism itself, or of another one.
    """
    source = m if written is None else written
    file = kic.to_mjcf(source) if peer == "mujoco" else kic.to_urdf(source)
    if peer == "urdf":
        return _read_again(m, file)  # type: ignore[arg-type]
    rng = np.random.default_rng(seed)
    c = moved(m, rng)
    qd = rng.normal(size=m.dof)
    d = c.dynamics()
    evaluate = _mujoco if peer == "mujoco" else _pinocchio
    there = evaluate(m, c, qd, file)
    S, M, force, damping, J = there["S"], there["M"], there["force"], there["damping"], there["J"]
    effort = d.inverse_dynamics(qd, np.zeros(m.dof)) - there["without"] * (d.damping @ qd)
    sizes = np.abs(S).T @ np.abs(M) @ np.abs(S)
    out = {
        "mass": float(np.abs(S.T @ M @ S - d.I).max() / sizes.max()),
        "bias": float(np.abs(S.T @ force - effort).max() / max(1.0, (np.abs(S).T @ np.abs(force)).max())),
        "damping": float(np.abs(S.T @ damping @ S - d.damping).max() / max(1.0, np.abs(d.damping).max())),
        "gap": there["gap"],
        **there["more"],
    }
    if J is not None and J.size:
        # the conditions of the file leave as many degrees of freedom as the mechanism
        s = np.linalg.svd(J, compute_uv=False)
        out["mobility"] = float(abs(S.shape[0] - int((s > 1e-7 * s[0]).sum()) - m.dof))
        out["closure"] = float(np.abs(J @ S).max() / max(1.0, (np.abs(J) @ np.abs(S)).max()))
    elif J is not None:
        out["mobility"] = float(abs(S.shape[0] - m.dof))
    return out


def _same(pairs: list[tuple[float, float]]) -> float:
    """Return the largest difference of pairs of numbers that may be infinite."""
    return float(max([0.0, *(0.0 if a == b else abs(a - b) for a, b in pairs)]))


def _mujoco(m: kic.Mechanism, c: Configuration, qd: np.ndarray, file: str) -> dict[str, Any]:
    """Evaluate the file in MuJoCo."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(file)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data, order = mujoco.MjData(model), kic.joint_order(m, model)
    assert not order.missing
    data.qpos[:], data.qvel[:] = order.q(c), order.v(c, qd)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    force = M @ order.acceleration(c, qd, np.zeros(m.dof)) + data.qfrc_bias - data.qfrc_passive
    count = data.ne
    J = np.zeros((data.nefc, model.nv))
    if data.nefc:
        J = data.efc_J.reshape(data.nefc, -1).copy()
    limits, friction = [], []
    for joint in m.joints:
        for k, name in enumerate(joint.components):
            # a ball has the name of its joint, or of its first coordinate; a missing joint has no laws
            names = (name, joint.name, joint.components[-3] if joint.dof > 3 else name)
            j = max(mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, one) for one in names)
            first = 3 if j >= 0 and model.jnt_type[j] == 1 and joint.type == "free" else 0
            own = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
            offset = 0 if j < 0 or model.jnt_type[j] > 1 else k - first
            if own >= 0 and model.jnt_type[own] > 1:
                j, offset = own, 0
            friction.append(
                (0.0 if j < 0 else model.dof_frictionloss[model.jnt_dofadr[j] + offset], joint.friction[k])
            )
            is_limited = j >= 0 and model.jnt_limited[j]
            none = (-np.inf, np.inf)
            limits += zip(
                model.jnt_range[j] if is_limited else none, joint.ranges.get(name, none), strict=True
            )
            is_limited = j >= 0 and model.jnt_actfrclimited[j]
            efforts = model.jnt_actfrcrange[j] if is_limited else none
            limits += zip(efforts, m.effort_limits.get(name, none), strict=True)
    gap = float(np.abs(data.efc_pos[:count]).max(initial=0.0))
    sites = [
        (mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_SITE, s), data.site_xpos[s].copy(),
         data.site_xmat[s].reshape(3, 3).copy())
        for s in range(model.nsite)
    ]  # fmt: skip
    speeds = {
        mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, a): float(data.actuator_velocity[a])
        for a in range(model.nu)
    }
    shafts = []
    for motor in m.motors:
        rate = c.coefficients(list(m._shafts[motor.name]), order=1).G
        shafts.append((speeds.get(motor.name, np.inf), float(np.array(motor.ratios) @ rate @ qd)))
    damping = np.zeros((model.nv, model.nv))
    for column, unit in enumerate(np.eye(model.nv)):
        data.qvel[:] = unit
        mujoco.mj_forward(model, data)
        damping[:, column] = -data.qfrc_damper
    return {
        "S": order.rates(c), "M": M, "force": force, "damping": damping, "J": J[:count], "gap": gap,
        "without": 0.0,
        "more": {"friction": _same(friction), "limits": _same(limits), "places": _places(m, c, sites),
                 "motors": _same(shafts)},
    }  # fmt: skip


def _places(m: kic.Mechanism, c: Configuration, found: list[tuple[str, np.ndarray, np.ndarray]]) -> float:
    """Return the largest difference of places and axes of points and frames."""
    there = {name: (at, axes) for name, at, axes in found}
    pairs = [(c.value(point.name), there[point.name][0]) for point in m.points]
    for frame in m.frames:
        pose = c.pose(frame.name)
        pairs += zip((pose.translation, pose.rotation.as_matrix()), there[frame.name], strict=True)
    return max([0.0, *(float(np.abs(a - b).max()) for a, b in pairs)])


def _pinocchio(
    m: kic.Mechanism, c: Configuration, qd: np.ndarray, made: kic.results.UrdfText
) -> dict[str, Any]:
    """Evaluate the tree of the file in Pinocchio, which does not know its loops."""
    import pinocchio

    model = pinocchio.buildModelFromXML(made.text)
    model.gravity.linear = np.array(made.gravity)
    data, order = model.createData(), kic.joint_order(m, model)
    assert not order.missing
    q, v = order.q(c), order.v(c, qd)
    M = pinocchio.crba(model, data, q).copy()
    M = np.triu(M) + np.triu(M, 1).T
    force = pinocchio.rnea(model, data, q, v, order.acceleration(c, qd, np.zeros(m.dof)))
    pinocchio.framesForwardKinematics(model, data, q)
    gap = 0.0
    for one, two, kind in made.loops:
        A, B = (data.oMf[model.getFrameId(end)] for end in (one, two))
        shift, turn = A.rotation.T @ (B.translation - A.translation), A.rotation.T @ B.rotation
        if kind in ("fixed", "spherical", "revolute", "universal"):
            gap = max(gap, float(np.abs(shift).max()))
        if kind == "fixed":
            gap = max(gap, float(np.abs(turn - np.eye(3)).max()))
        elif kind in ("revolute", "cylindrical"):
            gap = max(gap, float(np.abs(turn[:, 2] - [0, 0, 1]).max()))
    names = [part.name for part in (*m.points, *m.frames)]
    sites = [(x, data.oMf[k].translation, data.oMf[k].rotation) for x in names for k in [model.getFrameId(x)]]
    limits, friction = [], []
    dry = getattr(model, "friction", None)
    dry = model.upperDryFrictionLimit if dry is None else dry
    for joint in m.joints:
        for k, name in enumerate(joint.components):
            own = name.replace(".", "_")
            if not model.existJointName(own) or joint.type in ("free", "fixed"):
                continue
            there = model.joints[model.getJointId(own)]
            friction.append((float(dry[there.idx_v]), joint.friction[k]))
            pair = joint.ranges.get(name)
            if pair is not None:
                found = (model.lowerPositionLimit[there.idx_q], model.upperPositionLimit[there.idx_q])
                limits += zip(found, np.clip(pair, -1e16, 1e16), strict=True)
    return {
        "S": order.rates(c), "M": M, "force": force, "damping": np.diag(model.damping), "J": None,
        "gap": gap, "without": 1.0,
        "more": {"friction": _same(friction), "limits": _same(limits), "places": _places(m, c, sites),
                 **_read_again(m, made)},
    }  # fmt: skip


def _read_again(m: kic.Mechanism, made: kic.results.UrdfText) -> dict[str, float]:
    """Return the differences of the mechanism that `from_urdf` reads, at the reference configuration."""
    here = moved(m, np.random.default_rng(0))
    free = {name: joint.name for joint in m.joints if joint.type == "free" for name in joint.components}
    wrt = [name if name in free else name.replace(".", "_") for name in m.coordinates]
    inputs: dict[str, Any] = {
        free.get(own, there): RigidTransform.identity() if own in free else float(here.value(own))
        for own, there in zip(m.coordinates, wrt, strict=True)
    }
    try:
        again = kic.from_urdf(
            made.text, loops=made.loops, gravity=made.gravity, near=made.near, coordinates=wrt
        )
        c = again.at(inputs)
        found, own = c.dynamics(wrt=wrt), here.dynamics()
    except kic.KicError:
        return {"read": np.inf}
    out = {}
    for key in ("I", "P", "load", "damping"):
        a, b = getattr(found, key), getattr(own, key)
        out[f"{key} read"] = float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))
    mates = {joint.name: joint for joint in again.joints}
    values, limits, laws, none = [], [], [], (-np.inf, np.inf)
    for joint in m.joints:
        for k, name in enumerate(joint.components):
            mate, at = (
                (mates.get(joint.name), k) if joint.type == "free" else (mates.get(name.replace(".", "_")), 0)
            )
            laws += [(getattr(mate, key, (0.0,) * 6)[at], getattr(joint, key)[k])
                     for key in ("stiffness", "rest", "damping", "armature", "friction")]  # fmt: skip
            if joint.type != "free":
                found_limits = none if mate is None else mate.ranges.get(mate.name, none)
                limits += zip(joint.ranges.get(name, none), found_limits, strict=True)
                for key in ("effort_limits", "rate_limits"):
                    found_limits = none if mate is None else getattr(again, key).get(mate.name, none)
                    limits += zip(getattr(m, key).get(name, none), found_limits, strict=True)
            if mate is not None and joint.type != "free":
                values.append((float(c.value(mate.name)), float(here.value(name))))
    frames = [(x.name, c.pose(x.name).translation, c.pose(x.name).rotation.as_matrix()) for x in again.frames]
    out["places read"] = _places(m, here, frames)
    motors = {motor.name: (motor.joints, motor.ratios) for motor in again.motors}
    shafts = {x.name: (tuple(y.replace(".", "_") for y in x.joints), x.ratios) for x in m.motors}
    out |= {
        "value read": _same(values),
        "limits read": _same(limits),
        "laws read": _same(laws),
        "motors read": float(motors != shafts),
    }
    return out
