"""Joint order of other packages: maps of positions, rates and efforts between kic, Pinocchio and MuJoCo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kic.description.parts import Joint
from kic.description.validation import GROUND
from kic.errors import InputError, invalid
from kic.io.robot import clean_name, frame_of, link_origin, part_names, transform
from kic.kinematics.tree import ball_axes
from kic.mechanism.configuration import Configuration, displacement
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import instance
from kic.numerics.arrays import as_array
from kic.numerics.linalg import unit
from kic.numerics.rotations import universal_angles

# axes of a frame in a file and in the mechanism that agree this well are those of a file that kic wrote
WRITTEN_ATOL = 1e-9
# coordinates of the kinds of joints
PEER_DOF = {"single": 1, "circle": 1, "planar": 3, "spherical": 3, "free": 6}
# rad: a spin in q that is rounding, of a joint that holds it
SPIN_ATOL = 1e-6


@dataclass(frozen=True)
class PeerJoint:
    """Joint in another package: its type and its first entries in q and v.

    `pose` (4, 4) is the frame of the link below, relative to the joint above it, at the zero of the joint.
    `quaternion` is the order of a quaternion in q, as indices of x y z w. The rows of `slides` (3, 3) are the
    directions in that frame of the translations of a free joint. `name` may be that of a coordinate, with "_"
    for the dot.
    """

    name: str
    kind: str
    q: int
    v: int
    pose: np.ndarray
    link: str
    quaternion: tuple[int, ...] = (0, 1, 2, 3)
    slides: np.ndarray = field(default_factory=partial(np.eye, 3))


def joint_order(mechanism: Mechanism, peer: Any) -> JointOrder:
    """Return the maps between the coordinates of a mechanism and those of another package's model.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism that was written to, or read from, a file of the model.
    peer : pinocchio.Model or mujoco.MjModel
        Model with joints of the same names.

    Returns
    -------
    JointOrder
        Maps of positions, rates, accelerations and efforts.

    Raises
    ------
    InputError
        If the object is of another type, or the model has no common joint.
    """
    return JointOrder(instance("mechanism", mechanism, Mechanism), peer)


class JointOrder:
    """Maps from the configurations and rates of a mechanism to q and v of another package, and back.

    Made by `kic.joint_order`.

    Joints are matched by name, or coordinate by coordinate: "hip.1" is a joint "hip.1" or "hip_1" of the
    package, if no joint of the mechanism has this name. Revolute and prismatic joints have the same values in
    both. Pinocchio writes the angle of a continuous joint as cosine and sine. Quaternions and the velocities
    of free and ball joints follow the conventions of the package, even for a ball joint that is universal in
    kic to hold the spin of a rod.

    Attributes
    ----------
    package : str
        "pinocchio" or "mujoco".
    joints : tuple of str
        Names of the joints, or of their coordinates, in the order of the package.
    missing : tuple of str
        Joints of the package that the mechanism does not have; they keep their neutral values.
    nq, nv : int
        Sizes of q and v.
    """

    def __init__(self, mechanism: Mechanism, peer: Any) -> None:
        self._mechanism = mechanism
        if hasattr(peer, "jointPlacements"):
            self.package, (joints, self._neutral, self._axes_of) = "pinocchio", _pinocchio(peer)
        elif hasattr(peer, "qpos0"):
            self.package, (joints, self._neutral, self._axes_of) = "mujoco", _mujoco(peer)
        else:
            raise invalid("peer", "must be a pinocchio.Model or mujoco.MjModel", type(peer).__name__)
        self.nq, self.nv = len(self._neutral), int(peer.nv)
        own = {clean_name(c): (c, joint) for joint in mechanism.joints for c in joint.components}
        own |= {joint.name: (joint.name, joint) for joint in mechanism.joints}
        names = [joint.name for joint in joints]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"After dots are replaced, several joints of the {self.package} model have the name "
                f"'{twice}'. Rename them in the file.",
                name=twice,
            )
        self._joints = [joint for joint in joints if joint.name in own]
        self._own = {joint.name: own[joint.name] for joint in self._joints}
        self.joints = tuple(row for row, _ in self._own.values())
        self.missing = tuple(joint.name for joint in joints if joint.name not in own)
        if not self._joints:
            message = (
                f"'{mechanism.name}' and the {self.package} model have no joint names in common. Joints of "
                "the model: "
                f"{', '.join(joint.name for joint in joints[:8])}{', …' if len(joints) > 8 else ''}."
            )
            raise InputError(message, key="peer", names=tuple(joint.name for joint in joints))
        for joint in self._joints:
            row, mine = self._own[joint.name]
            count = mine.dof if row == mine.name else 1
            holds_spin = (mine.type, joint.kind) == ("universal", "spherical") and (
                abs(unit(mine.axis) @ unit(mine.axis2)) < SPIN_ATOL
            )
            if count != PEER_DOF[joint.kind] and not holds_spin:
                message = (
                    f"joint '{row}' has {count} coordinates, and {PEER_DOF[joint.kind]} in the "
                    f"{self.package} model. Give the model of the same mechanism, unlock the joint, or read "
                    "the file with `spins='free'` if it is fixed to hold a spin."
                )
                raise InputError(message, key="peer", name=row)

    def q(self, configuration: Configuration) -> np.ndarray:
        """Return q (..., nq) of the package at configurations."""
        instance("configuration", configuration, Configuration, "Use `Mechanism.at`.")
        from scipy.spatial.transform import Rotation

        q = np.broadcast_to(self._neutral, (*configuration.batch, self.nq)).copy()
        for joint in self._joints:
            at = joint.q
            if joint.kind == "single":
                q[..., at] = configuration.value(self._own[joint.name][0])
            elif joint.kind in ("circle", "planar"):
                value = configuration.value(self._own[joint.name][0])
                if joint.kind == "planar":
                    q[..., at : at + 2], value, at = value[..., :2], value[..., 2], at + 2
                q[..., at], q[..., at + 1] = np.cos(value), np.sin(value)
            else:
                T = self._relative(configuration, joint)
                if joint.kind == "free":
                    q[..., at : at + 3], at = T[..., :3, 3] @ joint.slides.T, at + 3
                turn = Rotation.from_matrix(T[..., :3, :3].reshape(-1, 3, 3)).as_quat(canonical=True)
                q[..., at : at + 4] = turn.reshape(*configuration.batch, 4)[..., list(joint.quaternion)]
        return q

    def v(self, configuration: Configuration, qd: Any, *, wrt: Any = None) -> np.ndarray:
        """Return v (..., nv) of the package for rates (..., M) of coordinates."""
        return np.einsum("...va,...a->...v", self.rates(configuration, wrt=wrt), as_array("qd", qd))

    def rates(self, configuration: Configuration, *, wrt: Any = None) -> np.ndarray:
        """Return the matrix S (..., nv, M) of v = S q̇; efforts of the package are mapped by its transpose."""
        instance("configuration", configuration, Configuration, "Use `Mechanism.at`.")
        rows = configuration.coefficients(list(self.joints), order=1, wrt=wrt)
        S = np.zeros((*configuration.batch, self.nv, rows.G.shape[-1]), rows.G.dtype)
        for joint, own, there in self._columns():
            S[..., there, :] = self._axes(configuration, joint) @ rows.G[..., own, :]
        return S

    def effort(self, configuration: Configuration, tau: Any, *, wrt: Any = None) -> np.ndarray:
        """Return the efforts (..., M) at coordinates that are equivalent to efforts tau (..., nv)."""
        return np.einsum(
            "...va,...v->...a", self.rates(configuration, wrt=wrt), as_array("tau", tau, self.nv)
        )

    def acceleration(self, configuration: Configuration, qd: Any, qdd: Any, *, wrt: Any = None) -> np.ndarray:
        """Return v̇ (..., nv) of the package for rates and accelerations (..., M) of coordinates."""
        instance("configuration", configuration, Configuration, "Use `Mechanism.at`.")
        rows = configuration.coefficients(list(self.joints), wrt=wrt)
        qd, qdd = as_array("qd", qd), as_array("qdd", qdd)
        rate, own_rate = rows.velocity(qd), rows.acceleration(qd, qdd)
        out = np.zeros((*rate.shape[:-1], self.nv), rate.dtype)
        for joint, own, there in self._columns():
            v, a = rate[..., own], own_rate[..., own].copy()
            # axes of v turn with the body
            if joint.kind == "free" and self.package == "pinocchio":
                a[..., :3] -= np.cross(v[..., 3:], v[..., :3])
            elif joint.kind == "planar":
                a[..., 0] += v[..., 2] * v[..., 1]
                a[..., 1] -= v[..., 2] * v[..., 0]
            axes = self._axes(configuration, joint)
            out[..., there] = np.einsum("...ij,...j->...i", axes, a)
            if axes.shape[-1] == 2:  # the first axis of a universal joint turns in the link
                turning = np.cross(axes[..., 0], axes[..., 1])
                out[..., there] += v[..., :1] * v[..., 1:] * turning
        return out

    def _columns(self) -> Iterator[tuple[PeerJoint, slice, slice]]:
        """Iterate over the joints with their slices of the stacked rates and of v."""
        start = 0
        for joint in self._joints:
            row, own = self._own[joint.name]
            dof = own.dof if row == own.name else 1
            yield joint, slice(start, start + dof), slice(joint.v, joint.v + PEER_DOF[joint.kind])
            start += dof

    def inputs(self, q: Any) -> dict[str, Any]:
        """Return values for `Mechanism.at` of the default coordinates, from q (nq,) of the package."""
        q = as_array("q", q, self.nq)
        made: dict[str, Any] = {}
        wanted = set(self._mechanism.coordinates)
        for joint in self._joints:
            row, own = self._own[joint.name]
            if not wanted.intersection([row] if row != own.name else own.components):
                continue
            if joint.kind == "single":
                made[row] = q[..., joint.q]
            elif joint.kind == "circle":
                made[row] = np.arctan2(q[..., joint.q + 1], q[..., joint.q])
            elif joint.kind == "planar":
                angle = np.arctan2(q[..., joint.q + 3], q[..., joint.q + 2])
                made[row] = np.concatenate([q[..., joint.q : joint.q + 2], angle[..., None]], axis=-1)
            else:
                made[row] = self._displacement(joint, q)
        return made

    def _frames(self, joint: PeerJoint) -> tuple[np.ndarray, np.ndarray]:
        """Return the frames (4, 4) of the joint on its two bodies in the reference configuration.

        The frame on the second body is that of its link.
        """
        own = self._own[joint.name][1]
        first, second = own.bodies
        # joints of one link have bodies between them
        is_inner = any(
            peer.link == joint.link and self._own[peer.name][1].bodies[1] == first for peer in self._joints
        )
        below, above = (
            self._link_frame(second, joint.link),
            self._link_frame(first, joint.link if is_inner else first.removesuffix("_body")),
        )
        if below is None:
            below = transform(own.at)
        if above is None:
            above = np.eye(4)
            if joint.kind == "free" and first != GROUND:  # the origin of a link that kic wrote
                above = transform(self._origin(own.name, first))
        return above @ joint.pose, below

    def _link_frame(self, body: str, link: str) -> np.ndarray | None:
        """Return the frame (4, 4) of a body's link in the reference configuration, or None.

        Links that kic wrote have world axes in that configuration, and the package has the link frame of the
        original file as a frame, too. A frame of this name that the file itself defines is renamed in the
        mechanism.
        """
        names, known = (f"{body}_frame", f"{link}_frame"), {frame.name for frame in self._mechanism.frames}
        frames = [frame for frame in self._mechanism.frames if frame.name in names]
        for frame in frames:
            there, renamed = self._axes_of.get(frame.name), f"{frame.name}_frame"
            own = renamed in known and renamed not in self._axes_of
            if there is not None and not own and np.abs(np.array(frame.axes).T - there).max() < WRITTEN_ATOL:
                return None
        found = [transform(frame.origin, np.array(frame.axes).T) for frame in frames if frame.body == body]
        return found[0] if found else None

    def _origin(self, name: str, body: str) -> np.ndarray:
        """Return the origin of a link above a joint, as `to_urdf` and `to_mjcf` place it."""
        carriers = (peer.name for peer in self._joints if peer.link == clean_name(body))
        carrier = next((self._own[one][1] for one in carriers), None)
        if carrier is None:
            message = (
                f"joint '{name}' moves relative to '{body}', and the joint that carries '{body}' has another "
                f"name in the {self.package} model. Give both the same name."
            )
            raise InputError(message, key="peer", name=name)
        return link_origin(carrier, self._mechanism[body])

    def _relative(self, configuration: Configuration, joint: PeerJoint) -> np.ndarray:
        """Return the pose (..., 4, 4) of a link relative to its joint's zero."""
        above, below = self._frames(joint)
        first, second = self._own[joint.name][1].bodies
        moved = displacement(configuration, second) @ below
        base = above if first == GROUND else displacement(configuration, first) @ above
        return np.linalg.inv(base) @ moved

    def _displacement(self, joint: PeerJoint, q: np.ndarray) -> Any:
        """Return the pose of a free joint, or the rotation of a ball joint, for `Mechanism.at`."""
        from scipy.spatial.transform import RigidTransform, Rotation

        above, below = self._frames(joint)
        own = self._own[joint.name][1]
        T = np.zeros((*q.shape[:-1], 4, 4))
        T[..., 3, 3] = 1.0
        at = joint.q
        if joint.kind == "free":
            T[..., :3, 3] = q[..., at : at + 3] @ joint.slides
            at += 3
        turn = q[..., [at + joint.quaternion.index(k) for k in range(4)]]
        T[..., :3, :3] = Rotation.from_quat(turn.reshape(-1, 4)).as_matrix().reshape(*q.shape[:-1], 3, 3)
        moved = above @ T @ np.linalg.inv(below)
        if joint.kind == "free":
            return RigidTransform.from_matrix(moved)
        if own.type == "universal":
            return self._angles(own, moved[..., :3, :3])
        return Rotation.from_matrix(moved[..., :3, :3])

    def _angles(self, joint: Joint, R: np.ndarray) -> np.ndarray:
        """Return the angles (..., 2) of a universal joint at rotations (..., 3, 3) between its bodies."""
        from scipy.spatial.transform import Rotation

        a, b, turn = unit(joint.axis), unit(joint.axis2), R.reshape(-1, 3, 3)
        angles = universal_angles(a, b, turn)
        made = Rotation.from_rotvec(angles[:, :1] * a) * Rotation.from_rotvec(angles[:, 1:] * b)
        spin = float((made.inv() * Rotation.from_matrix(turn)).magnitude().max(initial=0.0))
        if spin > SPIN_ATOL:
            message = (
                f"`q` must not turn joint '{joint.name}' about the rod whose spin it holds, got {spin:.3g} "
                "rad. Read the file with `spins='free'`."
            )
            raise InputError(message, key="q", name=joint.name)
        return angles.reshape(*R.shape[:-2], 2) + joint.value

    def _axes(self, configuration: Configuration, joint: PeerJoint) -> np.ndarray:
        """Return the matrix of a batch that maps kic's rates of a joint to those of the package."""
        dof = PEER_DOF[joint.kind]
        out = np.zeros((*configuration.batch, dof, dof))
        if joint.kind in ("single", "circle"):
            out[...] = np.eye(dof)
            return out
        if joint.kind == "planar":
            angle = configuration.value(self._own[joint.name][0])[..., 2]
            out[..., 2, 2] = 1.0
            out[..., 0, 0] = out[..., 1, 1] = np.cos(angle)
            out[..., 0, 1], out[..., 1, 0] = np.sin(angle), -np.sin(angle)
            return out
        # kic: axes of the joint, carried by the first body
        above, below = self._frames(joint)
        own = self._own[joint.name][1]
        turn = np.swapaxes(self._relative(configuration, joint)[..., :3, :3], -1, -2)
        if own.type == "universal":  # its second axis is carried by the second body
            first, second = above[:3, :3].T @ unit(own.axis), below[:3, :3].T @ unit(own.axis2)
            return np.stack(np.broadcast_arrays(turn @ first, second), axis=-1)
        to_joint = above[:3, :3].T @ ball_axes(own)
        to_link = turn @ to_joint
        out[..., dof - 3 :, dof - 3 :] = to_link
        if joint.kind == "free":
            out[..., :3, :3] = to_link if self.package == "pinocchio" else joint.slides @ to_joint
        return out


def _pinocchio(model: Any) -> tuple[list[PeerJoint], np.ndarray, dict[str, np.ndarray]]:
    """Return the joints and the neutral q of a Pinocchio model, and the axes (3, 3) of frames in links."""
    import pinocchio

    kinds = {"FreeFlyer": "free", "Spherical": "spherical", "Planar": "planar"}
    made = []
    for k in range(1, model.njoints):
        joint = model.joints[k]
        name = joint.shortname().removeprefix("JointModel")
        if name.startswith("Mimic"):
            continue
        kind = kinds.get(name, "single" if (joint.nq, joint.nv) == (1, 1) else "circle")
        if kind == "circle" and (joint.nq, joint.nv) != (2, 1):
            message = f"Joint '{model.names[k]}' is of type {name}, which has no counterpart in kic."
            raise InputError(message, key="peer", name=model.names[k], got=name)
        links = [
            clean_name(f.name)
            for f in model.frames
            if f.parentJoint == k and f.type == pinocchio.FrameType.BODY and f.placement.isIdentity()
        ]
        name, pose = clean_name(model.names[k]), np.asarray(model.jointPlacements[k].homogeneous)
        made.append(PeerJoint(name, kind, joint.idx_q, joint.idx_v, pose, (links or [""])[0]))
    axes = {clean_name(f.name): np.asarray(f.placement.rotation) for f in model.frames}
    return made, np.asarray(pinocchio.neutral(model)), axes


def _mujoco(model: Any) -> tuple[list[PeerJoint], np.ndarray, dict[str, np.ndarray]]:
    """Return the joints and the reference q of a MuJoCo model, and the axes (3, 3) of sites in bodies."""
    import mujoco

    made: list[PeerJoint] = []
    bodies = part_names(mujoco, model, "body")
    for k, name in enumerate(map(clean_name, part_names(mujoco, model, "joint"))):
        kind, b = ("free", "spherical", "single", "single")[model.jnt_type[k]], model.jnt_bodyid[k]
        # a free joint is placed in the world, and one below others where they leave the body
        is_turned = kind == "spherical" and k == model.body_jntadr[b]
        pose = frame_of((0.0, 0.0, 0.0), model.body_quat[b]) if is_turned else np.eye(4)
        q, v, link = int(model.jnt_qposadr[k]), int(model.jnt_dofadr[k]), clean_name(bodies[b])
        slides = np.eye(3)
        joint = name.removesuffix("_4")
        if kind == "spherical" and [x.name for x in made[-3:]] == [f"{joint}_{i}" for i in (1, 2, 3)]:
            # a free joint as `to_mjcf` writes it if its laws differ
            slides = model.jnt_axis[k - 3 : k].copy()
            pose = frame_of(model.body_pos[b], model.body_quat[b])
            pose = pose @ transform(-model.qpos0[q - 3 : q] @ slides)
            name, kind, q, v = joint, "free", q - 3, v - 3
            del made[-3:]
        made.append(PeerJoint(name, kind, q, v, pose, link, (3, 0, 1, 2), slides))
    sites = map(clean_name, part_names(mujoco, model, "site"))
    axes = {name: frame_of(0.0, model.site_quat[k])[:3, :3] for k, name in enumerate(sites)}
    return made, model.qpos0.copy(), axes
