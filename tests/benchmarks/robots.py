"""Read robot files and compare their kinematics and dynamics with Pinocchio or MuJoCo.

Run ``python -m tests.benchmarks.robots FOLDER…`` for a table. Each file is read, or raises one error. Open
robots are compared in G, H, I*, bias, gravity and inverse dynamics; closed ones in the accelerations of a
motion without efforts, at random closed configurations, with the exact constraints of the other package. SDF
files are compared with Drake if it is installed: without joints that close loops, gears, springs and dampers,
and with the first link fixed.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np

import kic

OPEN_RTOL, CLOSED_RTOL = 1e-10, 1e-8
SAMPLES = 3


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
        self.order = mechanism.joint_order(self.model)
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

    def __init__(self, path: Path, mechanism: kic.Mechanism) -> None:
        import mujoco

        from kic.io.mjcf import _compiled
        from kic.io.xml import parse, read_source

        self.mj, self.m = mujoco, mechanism
        self.model = _compiled(mujoco, parse(read_source(path, "MJCF")))[0]
        self._leave_out()
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        self.data = mujoco.MjData(self.model)
        self.order = mechanism.joint_order(self.model)

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
                np.eye(3) if body == "ground" else c._displacement(body)[:3, :3] for body in joint.bodies
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


def examine_sdf(path: Path, said: str, rng: np.random.Generator) -> tuple[str, str, dict[str, float]]:
    """Compare the tree of an SDF file with Drake."""
    try:
        import pydrake.all  # noqa: F401
    except ImportError:
        return "read; Drake is not installed", said, {}
    text, root = sdf_tree(path)
    try:
        m = kic.from_sdf(text, floating_base=False)
        # Drake replaces an inertia that no body can have
        text, _ = sdf_tree(path, tuple(b.name for b in m.bodies if b.inertia_exception))
        m = kic.from_sdf(text, floating_base=False)
        m = replace(m, joints=[replace(j, damping=0.0, stiffness=0.0, rest=0.0) for j in m.joints])
        worst = compare_open(m, DrakePeer(text, m, root), rng)
    except (kic.KicError, RuntimeError) as error:
        return "read; not compared", f"{said}; {type(error).__name__}: {str(error).splitlines()[0]}", {}
    word = "agrees" if max(worst.values()) <= OPEN_RTOL else "DIFFERS"
    return f"tree of SDF, {word}", said, worst


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


def compare_open(m: kic.Mechanism, peer, rng: np.random.Generator) -> dict[str, float]:
    """Return the largest relative differences of an open robot."""
    worst: dict[str, float] = {}

    def note(key, *pair):
        worst[key] = max(worst.get(key, 0.0), share(*pair))

    for _ in range(SAMPLES):
        c = random_configuration(m, rng)
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


def compare_closed(m: kic.Mechanism, peer, rng: np.random.Generator) -> dict[str, float]:
    """Return the largest relative difference of the accelerations of a closed robot without efforts."""
    worst = {"inverse dynamics": 0.0, "closure": 0.0}
    for _ in range(SAMPLES):
        c = random_configuration(m, rng)
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
        N = units[:, None] * Vt[rank:].T
        particular = -units * (Vt[:rank].T @ ((U[:, :rank].T @ rate) / s[:rank]))
        z = np.linalg.solve(N.T @ peer.M @ N, N.T @ (-peer.bias - peer.M @ particular))
        worst["acceleration"] = max(worst.get("acceleration", 0.0), share(a, particular + N @ z))
        if N.shape[1] != len(qd):
            raise RuntimeError(f"mobility {len(qd)}, and the constraints of the peer leave {N.shape[1]}")
    return worst


def examine(path: Path, floating: bool = False) -> tuple[str, str, dict[str, float]]:
    """Return the outcome of a file: a word, a description, and differences."""
    rng = np.random.default_rng(0)
    urdf = path.suffix == ".urdf"
    loops = loops_of(path) if urdf else []
    start = time.perf_counter()
    try:
        if urdf:
            m = kic.from_urdf(path, loops=loops, floating_base=floating)
        elif path.suffix == ".sdf":
            m = kic.from_sdf(path)
        else:
            m = kic.from_mjcf(path)
    except kic.KicError as error:
        return "error", str(error).splitlines()[0], {}
    is_open = m._model.tree.open
    said = (
        f"{len(m.joints)} joints, dof {m.dof}, {len(m.remarks)} remarks, {time.perf_counter() - start:.2f} s"
    )
    if path.suffix == ".sdf":
        return examine_sdf(path, said, rng)
    try:
        peer = PinocchioPeer(path, m, loops, floating) if urdf else MujocoPeer(path, m)
    except (ValueError, RuntimeError, OSError) as error:
        return "read; not read by the peer", f"{said}; {str(error).splitlines()[0]}", {}
    try:
        worst = (compare_open if is_open else compare_closed)(m, peer, rng)
    except kic.InertiaError as error:
        return "read; dynamics needs missing mesh files", f"{said}; {str(error).splitlines()[0]}", {}
    except (kic.KicError, RuntimeError, ValueError) as error:
        return "read; not compared", f"{said}; {type(error).__name__}: {str(error).splitlines()[0]}", {}
    limit = OPEN_RTOL if is_open else CLOSED_RTOL
    word = "open" if is_open else "closed"
    return f"{word}, {'agrees' if max(worst.values()) <= limit else 'DIFFERS'}", said, worst


def main() -> int:
    """Print the table of the files of some folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--floating", action="store_true", help="read URDF files with a floating base")
    given = parser.parse_args()
    counts: dict[str, int] = {}
    for folder in given.folders:
        files = [folder] if folder.is_file() else sorted(folder.rglob("*"))
        for path in files:
            if path.suffix not in (".urdf", ".xml", ".sdf") or not path.is_file():
                continue
            if path.suffix == ".xml" and b"<mujoco" not in path.read_bytes()[:4000]:
                continue
            word, said, worst = examine(path, given.floating)
            counts[word] = counts.get(word, 0) + 1
            numbers = ", ".join(f"{key} {value:.0e}" for key, value in worst.items())
            print(f"{path.parent.name}/{path.name}: {word}: {said}. {numbers}", flush=True)
    print("\n" + "\n".join(f"{count:4d} {word}" for word, count in sorted(counts.items())))
    return int(any("DIFFERS" in word for word in counts))


if __name__ == "__main__":
    sys.exit(main())
