"""Read robot files, move them, and compare their dynamics with Pinocchio, MuJoCo or Drake.

Run ``python -m tests.benchmarks robots FOLDER…`` for a table. Each file is read, or raises one error. Each
actuated or default coordinate is moved by 0.2 rad or 20 mm within its limits. There, and at random closed
configurations, open robots are compared in G, H, I*, bias, gravity and inverse dynamics; closed ones in
inverse dynamics and in accelerations without efforts, with the exact constraints of the other package. SDF
files are compared with Drake without joints that close loops, gears, springs and dampers, and with the first
link fixed; their loops are compared with MuJoCo as `kic.to_mjcf` writes them. A package that is not
installed compares nothing, and the table says so.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import kic
from kic.mechanism.configuration import displacement

OPEN_RTOL, CLOSED_RTOL = 1e-10, 1e-8
SAMPLES = 3
STEP, SLIDE = 0.2, 0.02
"""Motion of each coordinate, in rad and m."""
COMPARED_MAX = 12
"""Moved configurations of a file that are compared, evenly among all."""
SUFFIXES = (".urdf", ".xml", ".sdf", ".mjcf")


def share(found: np.ndarray, expected: np.ndarray, size: float = 0.0) -> float:
    """Return the largest difference, relative to the largest number expected."""
    size = max(size, float(np.abs(expected).max(initial=0.0)), 1e-300)
    return float(np.abs(found - expected).max(initial=0.0)) / size


def loops_of(path: Path) -> list[tuple[str, str, str]]:
    """Return the loops that a file robot.yaml beside a URDF lists, as pairs of frames and their types."""
    beside = path.with_name("robot.yaml")
    if not beside.is_file():
        return []
    import yaml

    listed = yaml.safe_load(beside.read_text()) or {}
    pairs = listed.get("closed_loop") or []
    kinds = listed.get("type") or []
    words = {"3d": "spherical", "6d": "fixed"}
    made = []
    for k, pair in enumerate(pairs):
        kind = kinds[k] if k < len(kinds) else "6d"
        made.append((*pair, words[kind.lower()]))
    return made


class PinocchioPeer:
    """Kinematics and dynamics of a URDF by Pinocchio, with loops and mimic joints as constraints."""

    def __init__(self, path: Path, mechanism: kic.Mechanism, loops, floating: bool) -> None:
        import pinocchio as pin

        self.pin, self.m = pin, mechanism
        args = (str(path), pin.JointModelFreeFlyer()) if floating else (str(path),)
        self.model = pin.buildModelFromUrdf(*args)
        self.data = self.model.createData()
        self.order = kic.joint_order(mechanism, self.model)
        self.loops = [(self._frame(a), self._frame(b), kind) for a, b, kind in loops]
        self.couplings = [
            {self.model.names[1:].tolist().index(j) + 1: r for j, r in terms}
            for terms in mechanism._terms.values()
        ]

    def _frame(self, name: str) -> int:
        return self.model.getFrameId(name)

    def at(self, q, v):
        """Evaluate at q, v."""
        pin, model, data = self.pin, self.model, self.data
        self.q, self.v = q, v
        pin.computeJointJacobians(model, data, q)
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        pin.updateFramePlacements(model, data)
        M = pin.crba(model, data, q)
        self.M = np.triu(M) + np.triu(M, 1).T
        damping = np.zeros(model.nv)
        for joint in self.m.joints:
            if joint.name in self.order.joints and any(joint.damping) and joint.dof == 1:
                found = next(j for j in self.order._joints if j.name == joint.name)
                damping[found.v] = joint.damping[0]
        self.bias = pin.nonLinearEffects(model, data, q, v) + damping * v
        self.gravity = pin.computeGeneralizedGravity(model, data, q).copy()

    def body(self, name: str):
        """Return the Jacobian of a body and its rate times v, or None."""
        pin, model, data = self.pin, self.model, self.data
        index = [
            i
            for i, f in enumerate(model.frames)
            if f.name.replace(".", "_") == name and f.type == pin.FrameType.BODY
        ]
        if not index:
            return None
        pair = model, data, index[0], pin.LOCAL_WORLD_ALIGNED
        rate = pin.getFrameJacobianTimeVariation(*pair).reshape(6, -1)
        return pin.getFrameJacobian(*pair).reshape(6, -1), rate @ self.v

    def constraints(self):
        """Return J and J̇ v."""
        pin, model, data = self.pin, self.model, self.data
        rows, rates = [np.zeros((0, model.nv))], [np.zeros(0)]
        for a, b, kind in self.loops:
            Js, ds = [], []
            for frame in (a, b):
                pair = model, data, frame, pin.LOCAL_WORLD_ALIGNED
                Js.append(pin.getFrameJacobian(*pair).copy())
                ds.append(pin.getFrameJacobianTimeVariation(*pair) @ self.v)
            count = 3 if kind == "spherical" else 6
            rows.append((Js[0] - Js[1])[:count])
            rates.append((ds[0] - ds[1])[:count])
        for terms in self.couplings:
            row = np.zeros((1, model.nv))
            for joint, ratio in terms.items():
                row[0, model.joints[joint].idx_v] = ratio
            rows.append(row)
            rates.append(np.zeros(1))
        return np.concatenate(rows), np.concatenate(rates)


class MujocoPeer:
    """Kinematics and dynamics of an MJCF file by MuJoCo, with equality constraints made exact."""

    def __init__(self, path: Path | str, mechanism: kic.Mechanism) -> None:
        import mujoco

        from kic.io.mjcf import _compiled
        from kic.io.xml import parse, read_source

        self.mj, self.m = mujoco, mechanism
        self.model = _compiled(mujoco, parse(read_source(path, "MJCF")))[0]
        self._leave_out()
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        self.data = mujoco.MjData(self.model)
        self.order = kic.joint_order(mechanism, self.model)

    def _leave_out(self) -> None:
        """Leave out forces that kic leaves out, with remarks: of fluids, tendons and ball joints' springs."""
        mj, model = self.mj, self.model
        model.opt.density = model.opt.viscosity = 0.0
        model.opt.wind[:] = 0.0
        model.body_gravcomp[:] = 0.0
        model.jnt_stiffness[
            np.isin(model.jnt_type, (int(mj.mjtJoint.mjJNT_FREE), int(mj.mjtJoint.mjJNT_BALL)))
        ] = 0
        for t in range(model.ntendon):
            some = slice(model.tendon_adr[t], model.tendon_adr[t] + model.tendon_num[t])
            low, high = model.tendon_lengthspring[t]
            straight = model.wrap_type[some].tolist() == [int(mj.mjtWrap.mjWRAP_SITE)] * 2
            others = model.tendon_frictionloss[t] or model.tendon_armature[t]
            if not straight or low != high or others:
                model.tendon_stiffness[t] = model.tendon_damping[t] = model.tendon_armature[t] = 0.0

    def at(self, q, v):
        """Evaluate at q, v."""
        mj, model, data = self.mj, self.model, self.data
        data.qpos[:], data.qvel[:] = q, v
        mj.mj_forward(model, data)
        self.M = np.zeros((model.nv, model.nv))
        mj.mj_fullM(model, data, self.M)
        self.bias = data.qfrc_bias - data.qfrc_passive
        self.v = np.array(v)
        still = mj.MjData(model)
        still.qpos[:] = q
        mj.mj_forward(model, still)
        self.gravity = still.qfrc_bias - still.qfrc_passive

    def body(self, name: str):
        """Return the Jacobian of a body and its rate times v, or None."""
        mj, model, data = self.mj, self.model, self.data
        b = mj.mj_name2id(model, mj.mjtObj.mjOBJ_BODY, name)
        return None if b < 0 else self._point(b, data.xpos[b])

    def _point(self, b: int, point):
        mj, model, data = self.mj, self.model, self.data
        J, dJ = np.zeros((6, model.nv)), np.zeros((6, model.nv))
        mj.mj_jac(model, data, J[:3], J[3:], point, b)
        mj.mj_jacDot(model, data, dJ[:3], dJ[3:], point, b)
        return J, dJ @ self.v

    def constraints(self):
        """Return J and J̇ v."""
        mj, model, data = self.mj, self.model, self.data
        rows, rates = [np.zeros((0, model.nv))], [np.zeros(0)]
        for e in range(model.neq):
            if not model.eq_active0[e]:
                continue
            one, two, kind, x = (
                model.eq_obj1id[e],
                model.eq_obj2id[e],
                int(model.eq_type[e]),
                model.eq_data[e],
            )
            if kind == int(mj.mjtEq.mjEQ_JOINT):
                row = np.zeros((1, model.nv))
                row[0, model.jnt_dofadr[one]] = 1
                if two >= 0:
                    row[0, model.jnt_dofadr[two]] = -x[1]
                rows.append(row)
                rates.append(np.zeros(1))
            elif kind == int(mj.mjtEq.mjEQ_TENDON):
                row = self._tendon(one)
                rows.append(row if two < 0 else row - x[1] * self._tendon(two))
                rates.append(np.zeros(1))
            elif kind in (int(mj.mjtEq.mjEQ_CONNECT), int(mj.mjtEq.mjEQ_WELD)):
                weld = kind == int(mj.mjtEq.mjEQ_WELD)
                if int(model.eq_objtype[e]) == int(mj.mjtObj.mjOBJ_SITE):
                    bodies = [model.site_bodyid[s] for s in (one, two)]
                    points = [data.site_xpos[s] for s in (one, two)]
                else:
                    bodies = [one, two]
                    local = [x[3:6], x[:3]] if weld else [x[:3], x[3:6]]
                    points = [
                        data.xpos[b] + data.xmat[b].reshape(3, 3) @ p
                        for b, p in zip(bodies, local, strict=True)
                    ]
                (J, a), (K, b) = (self._point(*pair) for pair in zip(bodies, points, strict=True))
                count = 6 if weld else 3
                rows.append((J - K)[:count])
                rates.append((a - b)[:count])
            else:
                raise ValueError(f"equality of type {kind} is not compared")
        return np.concatenate(rows), np.concatenate(rates)

    def _tendon(self, t: int) -> np.ndarray:
        """Return the change (1, nv) of the length of a fixed tendon."""
        row = np.zeros((1, self.model.nv))
        for w in range(self.model.tendon_adr[t], self.model.tendon_adr[t] + self.model.tendon_num[t]):
            row[0, self.model.jnt_dofadr[self.model.wrap_objid[w]]] += self.model.wrap_prm[w]
        return row


def sdf_tree(path: Path, bare: tuple[str, ...] = ()) -> tuple[str, str]:
    """Return the text of an SDF model without joints that close loops and gears, and its first link.

    The links in `bare` get the inertia that the format has by default.
    """
    root = ET.parse(path).getroot()
    model = next(root.iter("model"))
    children = set()
    for joint in model.findall("joint"):
        child = joint.findtext("child").strip()
        if joint.get("type") == "gearbox" or child in children:
            model.remove(joint)
        children.add(child)
    for link in model.findall("link"):
        if link.get("name") in bare:
            link.remove(link.find("inertial"))
    return ET.tostring(root, encoding="unicode"), model.find("link").get("name")


class DrakePeer:
    """Kinematics and dynamics of a tree from SDF by Drake, with the first link fixed.

    It is its own joint order. The velocity of a ball joint is an angular velocity in axes that the
    first body carries.
    """

    def __init__(self, text: str, mechanism: kic.Mechanism, root: str) -> None:
        import pydrake.all as drake

        logging.getLogger("drake").setLevel(logging.ERROR)
        self.drake, self.m, self.order = drake, mechanism, self
        self.plant = plant = drake.MultibodyPlant(0.0)
        drake.Parser(plant).AddModelsFromString(text, "sdf")
        base = plant.GetBodyByName(root)
        if "<parent>world</parent>" not in text:
            pose = mechanism.at().pose(root).as_matrix()
            plant.WeldFrames(plant.world_frame(), base.body_frame(), drake.RigidTransform(pose))
        plant.mutable_gravity_field().set_gravity_vector(mechanism.gravity)
        plant.Finalize()
        self.context = plant.CreateDefaultContext()
        self.joints = []
        for joint in mechanism.joints:
            own = plant.GetJointByName(joint.name)
            frame = plant.CalcRelativeTransform(self.context, plant.world_frame(), own.frame_on_parent())
            axes = frame.rotation().matrix() if joint.dof == 3 else np.eye(1)
            self.joints.append((joint, own, axes))

    def rates(self, c: kic.Configuration) -> np.ndarray:
        """Return the matrix S (nv, M) of v = S q̇."""
        S = np.zeros((self.plant.num_velocities(), len(self.m.coordinates)))
        column = 0
        for joint, own, axes in self.joints:
            first = own.velocity_start()
            S[first : first + joint.dof, column : column + joint.dof] = axes.T
            column += joint.dof
        return S

    def acceleration(self, c: kic.Configuration, qd, qdd) -> np.ndarray:
        """Return v̇ (nv,): S is constant."""
        return self.rates(c) @ qdd

    def q(self, c: kic.Configuration) -> np.ndarray:
        """Return q (nq,)."""
        q = np.zeros(self.plant.num_positions())
        for joint, own, axes in self.joints:
            start = own.position_start()
            if joint.dof == 1:
                q[start] = c.value(joint.name)
                continue
            first, second = (
                np.eye(3) if body == "ground" else displacement(c, body)[:3, :3] for body in joint.bodies
            )
            turn = self.drake.RotationMatrix(axes.T @ first.T @ second @ axes)
            q[start : start + 3] = self.drake.RollPitchYaw(turn).vector()
        return q

    def at(self, q, v):
        """Evaluate at q, v."""
        plant, context = self.plant, self.context
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        self.M = plant.CalcMassMatrix(context)
        self.gravity = -plant.CalcGravityGeneralizedForces(context)
        self.bias = plant.CalcBiasTerm(context) + self.gravity

    def body(self, name: str):
        """Return the Jacobian of a body and its rate times v, or None."""
        plant, world = self.plant, self.plant.world_frame()
        if not plant.HasBodyNamed(name):
            return None
        frame, rate = plant.GetFrameByName(name), self.drake.JacobianWrtVariable.kV
        J = plant.CalcJacobianSpatialVelocity(self.context, rate, frame, np.zeros(3), world, world)
        bias = plant.CalcBiasSpatialAcceleration(self.context, rate, frame, np.zeros(3), world, world)
        return J[[3, 4, 5, 0, 1, 2]], np.concatenate([bias.translational(), bias.rotational()])


def random_state(m: kic.Mechanism, rng: np.random.Generator):
    """Return a random closed configuration of a mechanism whose coordinates include angular velocities."""
    from kic.kinematics.state import integrate

    model = m._model
    closure, tree = model.closure(()), model.tree
    for reach in (0.3, 0.1, 0.03):
        start = integrate(tree, model.reference_state, reach * rng.uniform(-1, 1, (1, tree.size)))
        states, left, _ = closure.solve_from(start, np.zeros((1, 0)))
        if left[0] < 1e-12 * model.length:
            return kic.Configuration(model, (), states)
    raise RuntimeError("no random closed configuration was found near the reference")


def random_configuration(m: kic.Mechanism, rng: np.random.Generator):
    """Return a random configuration, closed near the reference configuration."""
    from scipy.spatial.transform import RigidTransform, Rotation

    names = m.coordinates
    base = m.at()
    if not m._model.tree.open and not all(m._model.value_rows(name)[1] for name in m._moving_parts):
        return random_state(m, rng)
    for reach in (0.5, 0.3, 0.1, 0.03, 0.01, 0.003):
        inputs = {}
        for joint in m.joints:
            if not set(joint.components) & set(names):
                continue
            if joint.type == "free":
                shift = rng.normal(size=3)
                inputs[joint.name] = RigidTransform.from_components(shift, Rotation.random(rng=rng))
            elif joint.type == "spherical":
                inputs[joint.name] = Rotation.from_rotvec(reach * rng.normal(size=3))
            else:
                value = base.value(joint.name)
                inputs[joint.name] = value + reach * rng.uniform(-1, 1, np.shape(value))
        try:
            return m.at(inputs)
        except kic.ConfigurationError:
            continue
    raise RuntimeError("no random closed configuration was found near the reference")


def compare_open(
    m: kic.Mechanism, peer, rng: np.random.Generator, moved: Sequence[kic.Configuration] = ()
) -> dict[str, float]:
    """Return the largest relative differences of an open robot, at random and moved configurations."""
    worst: dict[str, float] = {}

    def note(key, *pair):
        worst[key] = max(worst.get(key, 0.0), share(*pair))

    for c in [*moved, *(random_configuration(m, rng) for _ in range(SAMPLES))]:
        qd, qdd = rng.normal(size=(2, len(m.coordinates)))
        S = peer.order.rates(c)
        v, a = S @ qd, peer.order.acceleration(c, qd, qdd)
        peer.at(peer.order.q(c), v)
        d = c.dynamics()
        zero = peer.order.acceleration(c, qd, 0 * qdd)
        found = [(b, *pair) for b in m.bodies if (pair := peer.body(b.name)) is not None]
        J = np.concatenate([np.zeros((0, S.shape[0])), *(J for _, J, _ in found)])
        rate = np.concatenate([np.zeros(0), *(r for *_, r in found)])
        # sums may cancel, and are compared with the size of their terms
        fast = float(np.abs(qd).max()) ** 2
        weight = max((b.mass or 0.0 for b, *_ in found), default=0.0) * np.linalg.norm(m.gravity)
        gravity = weight * float(np.abs(J).max(initial=0.0))
        size = max(float(np.abs(S.T @ peer.bias).max()), gravity, float(np.abs(peer.M).max()) * fast)
        note("I*", d.I, S.T @ peer.M @ S)
        note("gravity", -d.load, S.T @ peer.gravity, gravity)
        note("bias", d.inverse_dynamics(qd, 0 * qdd), S.T @ (peer.M @ zero + peer.bias), size)
        note("inverse dynamics", d.inverse_dynamics(qd, qdd), S.T @ (peer.M @ a + peer.bias), gravity)
        if found:
            rows = c.coefficients([b.name for b, *_ in found])
            note("G", rows.G, J @ S)
            size = max(
                float(np.abs(J @ zero).max()), float(np.abs(rate).max()), float(np.abs(J).max()) * fast
            )
            note("H", rows.acceleration(qd, 0 * qdd), J @ zero + rate, size)
    return worst


def compare_closed(
    m: kic.Mechanism, peer, rng: np.random.Generator, moved: Sequence[kic.Configuration] = ()
) -> dict[str, float]:
    """Return the largest relative differences of a closed robot, at random and moved configurations.

    Accelerations are those without efforts. Spins that kic holds are free in the peer, which is then
    restricted to the motions of kic.
    """
    worst = {"inverse dynamics": 0.0, "closure": 0.0}
    held = sum(m[name].type == "universal" for name in ball_names(peer.order))
    for c in [*moved, *(random_configuration(m, rng) for _ in range(SAMPLES))]:
        qd, qdd = rng.normal(size=(2, len(m.coordinates)))
        d, S = c.dynamics(), peer.order.rates(c)
        v, a = S @ qd, peer.order.acceleration(c, qd, qdd)
        peer.at(peer.order.q(c), v)
        J, rate = peer.constraints()
        worst["closure"] = max(worst["closure"], share(J @ a + rate, 0 * rate, float(np.abs(a).max())))
        efforts = S.T @ (peer.M @ a + peer.bias)
        worst["inverse dynamics"] = max(
            worst["inverse dynamics"], share(d.inverse_dynamics(qd, qdd), efforts)
        )
        try:
            a = peer.order.acceleration(c, qd, d.forward_dynamics(qd, np.zeros(len(qd))))
        except kic.SingularError:  # massless links: every acceleration is possible
            continue
        # masses and lengths scale the unknowns, so that the rank of J is clear
        units = 1 / np.sqrt(np.diagonal(peer.M))
        U, s, Vt = np.linalg.svd(J * units)
        rank = int((s > 1e-7 * s[0]).sum()) if len(s) else 0
        if len(Vt) - rank != len(qd) + held:
            raise MobilityError(f"mobility {len(qd)}, and the constraints of the peer leave {len(Vt) - rank}")
        N = units[:, None] * Vt[rank:].T
        particular = -units * (Vt[:rank].T @ ((U[:, :rank].T @ rate) / s[:rank]))
        if held:
            N, particular = S, peer.order.acceleration(c, qd, 0 * qdd)
        z = np.linalg.solve(N.T @ peer.M @ N, N.T @ (-peer.bias - peer.M @ particular))
        worst["acceleration"] = max(worst.get("acceleration", 0.0), share(a, particular + N @ z))
    return worst


def ball_names(order) -> list[str]:
    """Return the names of the ball joints of the other package, if a mechanism has them."""
    return [] if isinstance(order, DrakePeer) else [j.name for j in order._joints if j.kind == "spherical"]


class MobilityError(Exception):
    """The mobility differs from that by the constraints of the other package."""


class TimeOutError(BaseException):
    """The time of a file is over; not an Exception, which the examined code might catch."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise a TimeOutError after some seconds, where the system has alarms."""

    def stop(*_: object) -> None:
        raise TimeOutError

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def first_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


@dataclass
class Outcome:
    """Result of a file: words for the counts, and the columns of the table."""

    loaded: str = "failed"
    moved: str = ""
    compared: str = ""
    dof: str = ""
    loops: str = ""
    seconds: float = 0.0
    count: str = ""
    worst: dict[str, float] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def row(self, name: str) -> str:
        """Return the row of the table."""
        if self.worst:
            key = max(self.worst, key=lambda one: self.worst[one])
            largest = f"{self.worst[key]:.0e} {key}"
        else:
            largest = ""
        cells = (name, self.dof, self.loops, f"{self.seconds:.2f}", self.count, largest)
        return f"| {' | '.join(cells)} | {'; '.join(self.reasons)} |"


def targets(value: float, step: float, lower: float, upper: float) -> list[float]:
    """Return values to move to, a step away within limits, or else as far as they allow."""
    both = [x for x in (value + step, value - step) if lower <= x <= upper]
    return both or [max(lower, min(upper, value + step)), max(lower, min(upper, value - step))]


def inputs_of(m: kic.Mechanism, base: kic.Configuration) -> dict[str, np.ndarray]:
    """Return the values of the default coordinates, by joint."""
    values = {}
    for joint in m.joints:
        own = [name for name in joint.components if name in m.coordinates]
        if joint.type in ("spherical", "free") and own:
            if len(own) < joint.dof:
                raise RuntimeError(f"only {', '.join(own)} of joint '{joint.name}' are coordinates")
            values[joint.name] = np.array(joint.value)
        elif len(own) == joint.dof > 0:
            values[joint.name] = np.atleast_1d(base.value(joint.name))
        else:
            values |= {name: np.atleast_1d(base.value(name)) for name in own}
    rest = set(m.coordinates).difference(values, *(j.components for j in m.joints if j.name in values))
    return values | {name: np.atleast_1d(base.value(name)) for name in rest}


def move(m: kic.Mechanism) -> tuple[list[kic.Configuration], list[tuple[str, str]]]:
    """Return a configuration for each coordinate or actuated joint that moves, and reasons for the others."""
    base, moved, failed = m.at(), [], []
    inputs = inputs_of(m, base)
    joints = {joint.name: joint for joint in m.joints}
    places = [(name, k) for name, value in inputs.items() for k in range(len(value))]
    extra = [name for name in m.actuators if name not in m.coordinates and name in joints]
    for name, k in [*places, *((name, 0) for name in extra)]:
        joint, given = joints.get(name.partition(".")[0]), dict(inputs)
        if name in extra:
            # it takes the place of the coordinate with which it moves most
            G = np.abs(base.coefficients([name], order=1).G[0])
            lost = m.coordinates[int(np.argmax(G))]
            if lost not in given or G.max() < 1e-6:
                failed.append((name, "no coordinate moves it at the reference configuration"))
                continue
            del given[lost]
            given[name] = np.atleast_1d(base.value(name))
        limits = None if joint is None or name not in joints else joint.limits
        lower, upper = (-np.inf, np.inf) if limits is None else np.atleast_2d(limits)[k]
        kinds = {"prismatic": (0,), "cylindrical": (1,), "planar": (0, 1), "free": (0, 1, 2)}
        step = SLIDE if joint is not None and k in kinds.get(joint.type, ()) else STEP
        reason = ""
        for target in targets(float(given[name][k]), step, float(lower), float(upper)):
            values = {key: value.copy() for key, value in given.items()}
            values[name][k] = target
            try:
                given_now = {key: x if len(x) > 1 else x[0] for key, x in values.items()}
                moved.append(m.at(given_now, near=None if m._model.tree.open else base))
                break
            except kic.KicError as error:
                reason = reason or first_line(error)
        else:
            failed.append((name, reason))
    return moved, failed


def load(path: Path, floating: bool, loops: list[tuple[str, str, str]]) -> kic.Mechanism:
    """Read a file by its suffix."""
    if path.suffix == ".urdf":
        return kic.from_urdf(path, loops=loops, floating_base=floating)
    return kic.from_sdf(path) if path.suffix == ".sdf" else kic.from_mjcf(path)


def compare_sdf_tree(path: Path, rng: np.random.Generator) -> dict[str, float]:
    """Compare the tree of an SDF file with Drake."""
    text, root = sdf_tree(path)
    m = kic.from_sdf(text, floating_base=False)
    # Drake replaces an inertia that no body can have
    text, _ = sdf_tree(path, tuple(b.name for b in m.bodies if b.inertia_exception))
    m = kic.from_sdf(text, floating_base=False)
    m = replace(m, joints=[replace(j, damping=0.0, stiffness=0.0, rest=0.0) for j in m.joints])
    return compare_open(m, DrakePeer(text, m, root), rng)


def compare(
    path: Path, m: kic.Mechanism, floating: bool, loops: list, moved: list[kic.Configuration], out: Outcome
) -> None:
    """Compare a robot with the packages that read its file, and note the differences."""
    rng, is_open = np.random.default_rng(0), m._model.tree.open
    function, limit = (compare_open, OPEN_RTOL) if is_open else (compare_closed, CLOSED_RTOL)
    # redundant conditions of rounded loops are left out
    limit = max(limit, m.closure_tolerance)
    moved = moved[:: max(1, len(moved) // COMPARED_MAX)]
    works = []
    if path.suffix == ".sdf":
        works.append((OPEN_RTOL, "tree", lambda: compare_sdf_tree(path, rng)))
    if path.suffix == ".urdf" and (loops or not m.mobility().cuts):
        works.append((limit, "", lambda: function(m, PinocchioPeer(path, m, loops, floating), rng, moved)))
    elif path.suffix in (".urdf", ".sdf") and not is_open:
        text = kic.to_mjcf(m, strict=False)
        works.append((limit, "as written", lambda: function(m, MujocoPeer(text, m), rng, moved)))
    elif path.suffix != ".sdf":
        works.append((limit, "", lambda: function(m, MujocoPeer(path, m), rng, moved)))
    words = set()
    for most, label, work in works:
        try:
            found = work()
        except ImportError as error:
            words.add("peer not installed")
            out.reasons.append(f"not compared: {error}")
            continue
        except kic.InertiaError as error:
            words.add("inertia is missing")
            out.reasons.append(first_line(error))
            continue
        except MobilityError as error:
            words.add("DIFFERS")
            out.reasons.append(first_line(error))
            continue
        except (ValueError, RuntimeError, OSError) as error:  # of the peer, and errors of kic
            words.add("not compared")
            out.reasons.append(f"not compared: {first_line(error)}")
            continue
        out.worst |= {f"{key} {label}".rstrip(): value for key, value in found.items()}
        words.add("agrees" if max(found.values()) <= most else "DIFFERS")
    order = ("DIFFERS", "agrees", "not compared", "inertia is missing", "peer not installed")
    out.compared = next(word for word in order if word in words)


def examine(path: Path, floating: bool = False, seconds: float = 60.0) -> Outcome:
    """Read, move and compare a file; every error is in the outcome."""
    out, loops = Outcome(), []
    start = time.process_time()
    try:
        with time_limit(seconds):
            loops = loops_of(path) if path.suffix == ".urdf" else []
            m = load(path, floating, loops)
            out.seconds = time.process_time() - start
            out.loaded, out.dof, out.loops = "loaded", str(m.dof), str(len(m.mobility().cuts))
            moved, failed = move(m)
            out.count = f"{len(moved)}/{len(moved) + len(failed)}"
            out.moved = "some coordinates do not move" if failed else "all coordinates move"
            for reason in dict.fromkeys(why for _, why in failed):
                names = [name for name, why in failed if why == reason]
                out.reasons.append(f"{', '.join(dict.fromkeys(names))}: {reason}")
            compare(path, m, floating, loops, moved, out)
    except TimeOutError:
        out.reasons.append(f"takes more than {seconds:g} s")
        out.compared = out.compared or "OVER TIME"
    except kic.KicError as error:
        if out.loaded == "loaded":
            out.reasons.append(first_line(error))
            out.compared = out.compared or "not compared"
        else:
            out.seconds = time.process_time() - start
            out.loaded = f"refused by {type(error).__name__}"
            out.reasons.append(first_line(error))
    except Exception as error:  # every other error is a defect
        out.reasons.append(f"RAISES {first_line(error)}")
        out.compared = "RAISES"
    return out


def robot_files(folders: list[Path]) -> Iterator[Path]:
    """Iterate over the robot files below some folders, or given as files."""
    for folder in folders:
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            if path.suffix.lower() not in SUFFIXES or not path.is_file():
                continue
            if path.suffix.lower() == ".xml" and b"<mujoco" not in path.read_bytes()[:4000]:
                continue
            yield path


def main(arguments: list[str] | None = None) -> int:
    """Print the table of the files of some folders, and counts; return 1 if one is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks robots",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", nargs="+", type=Path, help="folders or files")
    parser.add_argument("--floating", action="store_true", help="read URDF files with a floating base")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of a file")
    given = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    print("| file | dof | loops | load s | moved | largest relative difference | reason |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for path in robot_files(given.folders):
        out = examine(path, given.floating, given.seconds)
        counts.update(["files", *filter(None, (out.loaded, out.moved, out.compared))])
        print(out.row(f"{path.parent.name}/{path.name}"), flush=True)
    print()
    for word, count in counts.items():
        print(f"{count:5d} {word}")
    return int(any(word.isupper() for word in " ".join(counts).split()))


if __name__ == "__main__":
    sys.exit(main())
