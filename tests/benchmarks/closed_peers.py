"""Closed mechanisms in Pinocchio: the spanning tree of kic, its loops closed by constraints.

Pinocchio solves for accelerations of the constrained tree (`constraintDynamics`), kic for the coefficients
and the dynamics in chosen coordinates, from which the same accelerations follow; `check_accelerations`
compares these, so that both have answered one question before any time is taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import kic
from benchmarks.peers import axes_along, check, inertia_of, missing, pinocchio
from kic.mechanism.configuration import displacement

SIX_ROWS, THREE_ROWS = "6-row", "3-row"


class ClosedPeer:
    """The equal Pinocchio model of a mechanism with loops, cut where kic cuts it.

    Parameters
    ----------
    mechanism : kic.Mechanism
        Of revolute, prismatic, universal, spherical and fixed joints.
    closures : {"6-row", "3-row"}
        How a loop is closed. With six rows, the cut joint belongs to the tree and the body beyond it is
        split into equal parts, which are welded together. With three, the joint is left out and its two
        points are kept together, which is right for ball joints, and for hinges of planar mechanisms.

    Attributes
    ----------
    model, data
        Of Pinocchio.
    """

    def __init__(self, mechanism: kic.Mechanism, closures: str = SIX_ROWS) -> None:
        if pinocchio is None:
            raise ImportError(missing()[0])
        self.mechanism = mechanism
        self.model = pinocchio.Model()
        self.model.gravity.linear = np.array(mechanism.gravity, dtype=float)
        # of each velocity of Pinocchio (a ball's three at once): joint, component, bodies before and after it
        self._columns: list[tuple[kic.Joint, int, tuple[str, str]]] = []
        self._parts: dict[str, list[str]] = {body.name: [body.name] for body in mechanism.bodies}
        self._body: dict[str, str] = {}  # of each part of a split body
        edges, ties = self._open(closures)
        carrier = self._hang(edges)
        self.carrier = carrier  # joint of every part, and its placement in the drawing
        self._load(carrier)
        contacts = pinocchio.ContactType
        kind = contacts.CONTACT_6D if closures == SIX_ROWS else contacts.CONTACT_3D
        self.constraints = pinocchio.StdVec_RigidConstraintModel()
        for a, b, at in ties:
            (one, first), (other, second) = carrier[a], carrier[b]
            place = pinocchio.SE3(np.eye(3), np.array(at))
            self.constraints.append(
                pinocchio.RigidConstraintModel(
                    kind, self.model, one, first.actInv(place), other, second.actInv(place),
                    pinocchio.ReferenceFrame.LOCAL,
                )
            )  # fmt: skip
        self.data = self.model.createData()
        self.constraint_data = pinocchio.StdVec_RigidConstraintData()
        for constraint in self.constraints:
            self.constraint_data.append(constraint.createData())
        pinocchio.initConstraintDynamics(self.model, self.data, self.constraints, self.constraint_data)
        # as in Pinocchio's example of a closed kinematic chain
        self.proximal = pinocchio.ProximalSettings(1e-8, 1e-10, 10)

    def _open(self, closures: str) -> tuple[list[Any], list[Any]]:
        """Return the joints of the tree with their bodies or parts of bodies, and the loop constraints."""
        edges, ties = [], []
        for joint in self.mechanism.joints:
            if joint.name not in self.mechanism.mobility().cuts:
                edges.append((joint, *joint.bodies))
            elif closures == THREE_ROWS:
                ties.append((*joint.bodies, joint.at))
            else:
                first = "ground" in joint.bodies[1:]  # the ground cannot be split
                body = joint.bodies[0 if first else 1]
                part = f"{body} at {joint.name}"
                self._parts[body].append(part)
                self._body[part] = body
                edges.append((joint, part, joint.bodies[1]) if first else (joint, joint.bodies[0], part))
                ties.append((part, body, joint.at))
        return edges, ties

    def _hang(self, edges: list[Any]) -> dict[str, Any]:
        """Add joints depth first; joint of Pinocchio and its placement in the drawing, of every part."""
        carrier = {"ground": (0, pinocchio.SE3.Identity())}
        waiting = [(edge, "ground") for edge in reversed(edges) if "ground" in edge[1:]]
        while waiting:
            edge, parent = waiting.pop()
            joint, first, second = edge
            child = second if first == parent else first
            carrier[child] = self._joint(joint, carrier[parent], parent, child, first == child)
            waiting += [(e, child) for e in reversed(edges) if child in e[1:] and e is not edge]
        return carrier

    def _joint(self, joint: kic.Joint, above: Any, parent: str, child: str, backwards: bool) -> Any:
        """Add a joint, and return the placement of its child."""
        if joint.type == "fixed":
            return above
        pin = pinocchio
        sign = -1 if backwards else 1  # walked backwards, axes turn round and come in the other order
        axes = [sign * np.array(a) / np.linalg.norm(a) for a in (joint.axis, joint.axis2) if a is not None]
        if joint.type == "spherical":
            kind, R, count = pin.JointModelSpherical(), np.eye(3), 1
        elif joint.type == "universal":
            kind, R, count = pin.JointModelUniversal(*axes[::sign]), np.eye(3), 2
        else:
            kinds = {"revolute": pin.JointModelRZ, "prismatic": pin.JointModelPZ}
            kind, R, count = kinds[joint.type](), axes_along(axes[0]), 1
        here = pin.SE3(R, np.array(joint.at or (0.0, 0.0, 0.0)))
        index = self.model.addJoint(above[0], kind, above[1].actInv(here), joint.name)
        bodies = self._body.get(parent, parent), self._body.get(child, child)
        self._columns += [(joint, k, bodies) for k in range(count)[::sign]]
        return index, here

    def _load(self, carrier: dict[str, Any]) -> None:
        """Give every part of a body its share of the inertia."""
        for body, parts in zip(self.mechanism.bodies, self._parts.values(), strict=True):
            if body.mass is not None and body.inertia is not None:
                share = 1 / len(parts)
                moments = share * np.array(body.inertia)
                piece = replace(body, mass=share * body.mass, inertia=moments)
                for part in parts:
                    joint, placement = carrier[part]
                    self.model.appendBodyToJoint(joint, *inertia_of(piece, placement))
        for point in self.mechanism.points:
            if point.mass:
                joint, placement = carrier[point.body]
                mass = pinocchio.Inertia(point.mass, placement.actInv(np.array(point.at)), np.zeros((3, 3)))
                self.model.appendBodyToJoint(joint, mass, pinocchio.SE3.Identity())

    # kic's configuration and motion in Pinocchio's variables

    def _ball(self, c: kic.Configuration, bodies: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """Rotations from the drawing of the bodies of a ball."""
        R = [np.eye(3) if name == "ground" else displacement(c, name)[:3, :3] for name in bodies]
        return R[0], R[1]

    def q(self, c: kic.Configuration) -> np.ndarray:
        """Configuration (nq,) of one configuration."""
        q: list[float] = []
        for joint, k, bodies in self._columns:
            if joint.type == "spherical":
                parent, child = self._ball(c, bodies)
                q += pinocchio.Quaternion(parent.T @ child).coeffs().tolist()
            else:
                q.append(np.ravel(c.value(joint.name))[k] - np.ravel(joint.value)[k])
        return np.array(q)

    def motion(self, c: kic.Configuration, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and accelerations (nv,) of a motion of the mechanism's coordinates, by kic's G and H."""

        def of(name: str) -> tuple[np.ndarray, np.ndarray]:
            if name == "ground":
                return np.zeros(3), np.zeros(3)
            rows = self.mechanism[name]
            named = [f"{name}.w{axis}" for axis in "xyz"] if isinstance(rows, kic.Body) else name
            co = c.coefficients(named, order=2)
            return co.G @ qd, co.G @ qdd + np.einsum("pmn,m,n->p", co.H, qd, qd)

        v: list[float] = []
        a: list[float] = []
        for joint, k, bodies in self._columns:
            if joint.type == "spherical":
                # components of the child's spin relative to the parent, in axes of the child
                R = self._ball(c, bodies)[1]
                (w0, alpha0), (w1, alpha1) = (of(name) for name in bodies)
                v += (R.T @ (w1 - w0)).tolist()
                a += (R.T @ (alpha1 - alpha0 - np.cross(w1, w1 - w0))).tolist()
            else:
                rate, second = of(joint.name)
                v.append(rate[k])
                a.append(second[k])
        return np.array(v), np.array(a)

    def tau(self, effort: np.ndarray) -> np.ndarray:
        """Efforts (nv,) of the tree from those at the mechanism's coordinates (M,)."""
        tau = np.zeros(self.model.nv)
        names, place = self.mechanism.coordinates, 0
        for joint, k, _ in self._columns:
            if joint.type == "spherical":
                place += 3
                continue
            if joint.components[k] in names:
                tau[place] = effort[names.index(joint.components[k])]
            place += 1
        return tau

    def raw(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Accelerations of the constrained tree in Pinocchio's format, which is timed."""
        return pinocchio.constraintDynamics(
            self.model, self.data, q, v, tau, self.constraints, self.constraint_data, self.proximal
        )


def check_accelerations(mechanism: kic.Mechanism, peer: ClosedPeer, c: kic.Configuration) -> dict[str, float]:
    """Compare accelerations of the whole tree in a moving configuration with the peer's."""
    rng = np.random.default_rng(0)
    qd, effort = rng.normal(size=(2, len(c.coordinates)))
    v, a = peer.motion(c, qd, c.dynamics().forward_dynamics(qd, effort))
    return check(1e-11, acceleration=(a, np.array(peer.raw(peer.q(c), v, peer.tau(effort)))))


def with_masses(mechanism: kic.Mechanism) -> kic.Mechanism:
    """The same mechanism with masses for massless bodies: Pinocchio requires them."""
    unit = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
    bodies = [b if b.mass else replace(b, com=b.com or b.at, **unit) for b in mechanism.bodies]
    return replace(mechanism, bodies=bodies)
