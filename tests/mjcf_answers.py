"""Answers of kic and of MuJoCo to the same questions about an MJCF file, and MJCF's own schema."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import kic
from kic.io.mjcf_schema import ANY, ATTRIBUTES, attributes_of
from kic.io.robot import clean_name, part_names

# relative and absolute difference of answers that agree: loops close to 1e-11 of their length
RTOL = ATOL = 1e-8


def schema() -> dict[tuple[str, ...], set[str]]:
    """Return the attributes of all elements of the installed MuJoCo, by their path below the root."""
    import mujoco

    found: dict[tuple[str, ...], set[str]] = {}
    path: list[str] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        head = re.match(r"( *)(\S+) \(.\)(.*)", line)
        words = line.split()
        if head:
            path = [*path[: len(head[1]) // 3], head[2].removeprefix("(world)")]
            words = head[3].split()
        found.setdefault(tuple(path[1:]), set()).update(words)
    # the printed element is worldbody and body at once, and contains what both do
    return {
        ("worldbody", *(path[1:] or path)) if path[:1] == ("body",) else path: own
        for path, own in found.items()
        if path
    }


def treatment(path: tuple[str, ...], name: str) -> str | None:
    """Return the treatment of an attribute of an element of the schema, or None."""
    known = dict(ATTRIBUTES["mujoco"])
    for k, tag in enumerate(path):
        found = attributes_of(path[0] if k else "", tag, known if k else None)
        if found is None:
            return None
        known = dict(found)
    return known.get(name, known.get(ANY))


def compare(text: str) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Return the answers of kic and of MuJoCo, as arrays by name, and the remarks of kic."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(text)
    m = kic.from_mjcf(text)
    return *answers(model, m), m.remarks


def answers(model: Any, m: kic.Mechanism) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the answers of kic and of MuJoCo in one state."""
    import mujoco

    order, data = kic.joint_order(m, model), mujoco.MjData(model)
    is_open = m._model.tree.open
    c = m.at(order.inputs(state(model)[0])) if is_open else m.at()
    qd, qdd = np.random.default_rng(2).normal(size=(2, m.dof))
    data.qpos[:], data.qvel[:] = order.q(c), order.v(c, qd)
    for e in range(model.neq):  # joints that equalities fix
        if model.eq_active0[e] and model.eq_type[e] == mujoco.mjtEq.mjEQ_JOINT and model.eq_obj2id[e] < 0:
            j = model.eq_obj1id[e]
            data.qpos[model.jnt_qposadr[j]] = model.qpos0[model.jnt_qposadr[j]] + model.eq_data[e, 0]
    peer = peer_answers(model, data)
    S = order.rates(c)
    M = peer.pop("M")
    force = M @ order.acceleration(c, qd, qdd) + peer.pop("bias") - peer.pop("passive")
    peer |= {"inertia": S.T @ M @ S, "force": S.T @ force}
    dynamics = c.dynamics()
    own: dict[str, Any] = {"inertia": dynamics.I, "force": dynamics.inverse_dynamics(qd, qdd)}
    own["freedom"] = np.array(float(m.dof))
    own["gap"] = np.zeros_like(peer["gap"])
    frames = m.frames[len(m.frames) - model.nsite :]
    poses = [c.pose(frame.name) for frame in frames]
    own["sites"] = np.array([np.append(p.translation, p.rotation.as_matrix()) for p in poses]).reshape(-1, 12)
    friction, limits, effort = (
        np.zeros(model.nv),
        np.full((model.njnt, 2), [-np.inf, np.inf]),
        np.zeros(model.nv),
    )
    adr = {joint.name: joint.v for joint in order._joints}
    index = {clean_name(name): j for j, name in enumerate(part_names(mujoco, model, "joint"))}
    for joint in m.joints:
        if joint.name in adr:
            friction[adr[joint.name] :][: joint.dof] = joint.friction
            if joint.limits is not None:
                limits[index[joint.name]] = joint.limits
    actuators = [clean_name(name) for name in part_names(mujoco, model, "actuator")]
    for motor in m.motors:
        ctrl = data.ctrl[model.actuator_ctrladr[actuators.index(motor.name.removesuffix("_motor"))]]
        for joint, ratio in zip(motor.joints, motor.ratios, strict=True):
            effort[adr[joint]] += ratio * ctrl
    for joint, pair in m.effort_limits.items():
        effort[adr[joint]] = np.clip(effort[adr[joint]], *pair)
    own |= {"friction": friction, "limits": limits, "effort": effort, "tendons": np.zeros(2)}
    return own, peer


def state(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a seeded state of a MuJoCo model near its reference."""
    import mujoco

    generator = np.random.default_rng(1)
    q = model.qpos0.copy()
    mujoco.mj_integratePos(model, q, 0.3 * generator.normal(size=model.nv), 1.0)
    return q, generator.normal(size=model.nv)


def peer_answers(model: Any, data: Any) -> dict[str, Any]:
    """Return the answers of MuJoCo in the state of the data."""
    import mujoco

    data.ctrl[:] = np.linspace(0.01, 0.02, model.nu)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    kinds, rows = mujoco.mjtConstraint, np.array(data.efc_type[: data.nefc])
    J = np.zeros((data.nefc, model.nv))
    if data.nefc:
        if mujoco.mj_isSparse(model):
            mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
        else:
            J[:] = np.reshape(data.efc_J, J.shape)
    equal = rows == kinds.mjCNSTR_EQUALITY
    freedom = model.nv - (np.linalg.matrix_rank(J[equal], tol=1e-7) if equal.any() else 0)
    friction = np.zeros(model.nv)
    for row in np.flatnonzero(rows == kinds.mjCNSTR_FRICTION_DOF):
        friction[data.efc_id[row]] = data.efc_frictionloss[row]
    bits = mujoco.mjtDisableBit
    limited = not model.opt.disableflags & (int(bits.mjDSBL_LIMIT) | int(bits.mjDSBL_CONSTRAINT))
    limits = np.full((model.njnt, 2), [-np.inf, np.inf])
    on = np.array(model.jnt_limited, bool) & limited
    limits[on] = model.jnt_range[on]
    tendons = (rows == kinds.mjCNSTR_FRICTION_TENDON).any(), limited and np.any(model.tendon_limited)
    return {
        "M": M,
        "bias": data.qfrc_bias.copy(),
        "passive": data.qfrc_passive.copy(),
        "freedom": np.array(float(freedom)),
        "gap": data.efc_pos[: data.nefc][equal],
        "sites": np.hstack([data.site_xpos, data.site_xmat]),
        "friction": friction,
        "limits": limits,
        "effort": data.qfrc_actuator.copy(),
        "tendons": np.array(tendons, float),
    }


def different(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """Return the names of the answers that differ."""

    def agree(a: np.ndarray, b: np.ndarray) -> bool:
        if a.shape != b.shape:
            return False
        size = max(np.abs(b[np.isfinite(b)]).max(initial=0.0), 0.0)
        return np.allclose(a, b, rtol=0, atol=ATOL + RTOL * size)

    return {key for key in one.keys() | other.keys() if not agree(one[key], other[key])}
