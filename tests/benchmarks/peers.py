"""The same mechanism in kic and in other libraries, with results converted to one format.

Peers are optional: a package that is not installed is None in `pinocchio` and `toolbox`, and `missing()`
returns the command that installs it. All arrays are in kic's order: rows x y z wx wy wz of a point in
world axes, and ``H[p, m, n]`` = ∂G[p, n]/∂q_m.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

import kic


def optional(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError:
            return None


pinocchio = optional("pinocchio")
toolbox = optional("roboticstoolbox")


def missing() -> list[str]:
    """Return notes on packages to install for the empty columns."""
    lines = []
    if pinocchio is None:
        lines.append("Pinocchio is not installed, its columns are empty: pip install 'pin>=4.1'")
    if toolbox is None:
        lines.append("roboticstoolbox is not installed, its row is empty: pip install roboticstoolbox-python")
    return lines


# Mechanisms


def _random_body(rng: np.random.Generator, name: str, at: np.ndarray) -> kic.Body:
    """Return a body with a physically valid inertia near a point."""
    a = at + rng.normal(size=(5, 3)) * 0.3
    mass = rng.uniform(0.2, 1, size=5)
    com = mass @ a / mass.sum()
    r = a - com
    square = (r**2).sum(-1)[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None]
    inertia = np.einsum("p,pij->ij", mass, square)
    return kic.Body(
        name,
        mass=float(mass.sum()),
        com=tuple(com),
        inertia=tuple(map(tuple, inertia)),
        at=tuple(at + rng.normal(size=3) * 0.3),
    )


def random_tree(parents: Iterable[int], seed: int = 0, sliders: Iterable[int] = ()) -> kic.Mechanism:
    """Revolute joints at random places along random axes, one body each; `hand` is the last, `tip` its point.

    Parameters
    ----------
    parents : iterable of int
        For each joint the joint before it, -1 for ground.
    seed : int
        Of the random places.
    sliders : iterable of int
        Joints that slide instead.
    """
    rng = np.random.default_rng(seed)
    parents, sliders = list(parents), set(sliders)
    names = [f"b{n}" for n in range(len(parents) - 1)] + ["hand"]
    places: list[np.ndarray] = []
    bodies, joints = [], []
    for n, parent in enumerate(parents):
        start = np.zeros(3) if parent < 0 else places[parent]
        places.append(start + rng.normal(size=3) * 0.4)
        bodies.append(_random_body(rng, names[n], places[n]))
        slides = n in sliders
        joints.append(
            kic.Joint(
                f"j{n}",
                "prismatic" if slides else "revolute",
                ("ground" if parent < 0 else names[parent], names[n]),
                at=tuple(places[n]),
                axis=tuple(rng.normal(size=3)),
                value=float(rng.normal()),
            )
        )
    tip = kic.Point("tip", "hand", at=bodies[-1].at)
    return kic.Mechanism("random", bodies, joints, points=[tip], gravity=(0.3, -0.2, -9.81))


def serial_arm(joints: int = 6, seed: int = 0) -> kic.Mechanism:
    """An open chain of revolute joints at random places along random axes."""
    return random_tree(range(-1, joints - 1), seed)


def binary_tree(joints: int, seed: int = 0) -> kic.Mechanism:
    """A binary tree of revolute joints, written depth first."""
    parents: list[int] = []

    def grow(parent: int, count: int) -> None:
        if count:
            parents.append(parent)
            here = len(parents) - 1
            grow(here, (count - 1) // 2)
            grow(here, count - 1 - (count - 1) // 2)

    grow(-1, joints)
    return random_tree(parents, seed)


# Pinocchio


def hessian_array(raw: np.ndarray) -> np.ndarray:
    """A Hessian of Pinocchio as H[p, m, n].

    Pinocchio 4.1's wheel hands out the column-major memory of its (6, nv, nv) tensor under a C-ordered shape,
    so its axes read wrongly (pinocchio issue 2543). In memory the row p runs fastest, then n, then m.
    """
    size = raw.shape[-1]
    return raw.ravel(order="K").reshape(size, size, 6).transpose(2, 0, 1)


class PinocchioPeer:
    """The equal Pinocchio model of an open mechanism of revolute, prismatic and fixed joints.

    Every point, and every body with a reference point, is a frame of the same name.

    Parameters
    ----------
    mechanism : kic.Mechanism
        Its coordinates must be all of its joints.

    Attributes
    ----------
    model, data
        Of Pinocchio; joints in depth-first order, as its algorithms need them.
    order : (nv,) int
        Place among kic's coordinates of each velocity of Pinocchio.
    """

    def __init__(self, mechanism: kic.Mechanism) -> None:
        if pinocchio is None:
            raise ImportError(missing()[0])
        pin = pinocchio
        self.mechanism = mechanism
        self.model = pin.Model()
        self.model.gravity.linear = np.array(mechanism.gravity, dtype=float)
        drawn: list[float] = []
        names: list[str] = []
        # where each body hangs: joint of Pinocchio and its placement in the drawing
        carrier = {"ground": (0, pin.SE3.Identity())}
        waiting = [(joint, "ground") for joint in reversed(mechanism.joints) if "ground" in joint.bodies]
        while waiting:
            joint, parent = waiting.pop()
            child = joint.bodies[1] if joint.bodies[0] == parent else joint.bodies[0]
            sign = 1.0 if joint.bodies[0] == parent else -1.0
            above, placement = carrier[parent]
            if joint.type == "fixed":
                carrier[child] = carrier[parent]
            else:
                kind = {"revolute": pin.JointModelRZ, "prismatic": pin.JointModelPZ}[joint.type]()
                here = pin.SE3(axes_along(sign * np.array(joint.axis)), np.array(joint.at or (0.0, 0.0, 0.0)))
                index = self.model.addJoint(above, kind, placement.actInv(here), joint.name)
                carrier[child] = (index, here)
                names.append(joint.name)
                drawn.append(float(np.ravel(joint.value)[0]))
            waiting += [
                (j, child) for j in reversed(mechanism.joints) if child in j.bodies and j is not joint
            ]
        self._hang_bodies(carrier)
        coordinates = list(mechanism.coordinates or [j.name for j in mechanism.joints if j.type != "fixed"])
        self.order = np.array([coordinates.index(name) for name in names])
        self.back = np.argsort(self.order)
        self._drawn = np.array(drawn)
        self.data = self.model.createData()
        self.axes = pin.LOCAL_WORLD_ALIGNED

    def _hang_bodies(self, carrier: dict[str, Any]) -> None:
        pin = pinocchio
        for body in self.mechanism.bodies:
            joint, placement = carrier[body.name]
            if body.mass is not None and body.inertia is not None:
                self.model.appendBodyToJoint(joint, *inertia_of(body, placement))
            if body.reference is not None:
                self._add_frame(body.name, joint, placement, body.reference)
        for point in self.mechanism.points:
            joint, placement = carrier[point.body]
            if point.mass:
                inertia = pin.Inertia(point.mass, placement.actInv(np.array(point.at)), np.zeros((3, 3)))
                self.model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
            self._add_frame(point.name, joint, placement, point.at)

    def _add_frame(self, name: str, joint: int, placement: Any, at: Any) -> None:
        pin = pinocchio
        where = pin.SE3(np.eye(3), placement.actInv(np.array(at)))
        self.model.addFrame(pin.Frame(name, joint, 0, where, pin.FrameType.OP_FRAME))

    def q(self, phi: np.ndarray) -> np.ndarray:
        """Configurations (..., nq) of kic's coordinates (..., M)."""
        return np.ascontiguousarray(np.asarray(phi)[..., self.order] - self._drawn)

    def v(self, rates: np.ndarray) -> np.ndarray:
        """Velocities or accelerations (..., nv) of kic's (..., M)."""
        return np.ascontiguousarray(np.asarray(rates)[..., self.order])

    def frame(self, name: str) -> int:
        """Index of the frame of a point or body."""
        return self.model.getFrameId(name)

    def raw_rates(self, q: np.ndarray, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """Jacobian and Hessian in Pinocchio's format, which are timed."""
        pin, model, data = pinocchio, self.model, self.data
        pin.computeJointJacobians(model, data, q)
        G = pin.getFrameJacobian(model, data, frame, self.axes)
        pin.computeJointKinematicHessians(model, data)
        return G, pin.getFrameKinematicHessian(model, data, frame, self.axes)

    def raw_dynamics(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mass matrix (upper triangle) and Coriolis matrix in Pinocchio's format, which are timed."""
        pin, model, data = pinocchio, self.model, self.data
        return pin.crba(model, data, q), pin.computeCoriolisMatrix(model, data, q, v)

    def rates(self, phi: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        """G (6, M) and H (6, M, M) of a point or body, one configuration."""
        G, H = self.raw_rates(self.q(phi), self.frame(name))
        back = self.back
        return np.array(G)[:, back], hessian_array(H)[:, back[:, None], back]

    def inertia(self, phi: np.ndarray) -> np.ndarray:
        """I* (M, M)."""
        upper = np.triu(pinocchio.crba(self.model, self.data, self.q(phi)))
        full = upper + np.triu(upper, 1).T
        return full[self.back[:, None], self.back]

    def velocity_effort(self, phi: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """C(q, q̇) q̇, which is q̇ᵀ P* q̇ (M,)."""
        v = self.v(qd)
        return (pinocchio.computeCoriolisMatrix(self.model, self.data, self.q(phi), v) @ v)[self.back]

    def load(self, phi: np.ndarray) -> np.ndarray:
        """Tᴸ of gravity (M,)."""
        return -pinocchio.computeGeneralizedGravity(self.model, self.data, self.q(phi))[self.back]

    def effort(self, phi: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Efforts of a motion (M,), by recursive Newton-Euler."""
        return pinocchio.rnea(self.model, self.data, self.q(phi), self.v(qd), self.v(qdd))[self.back]


def inertia_of(body: kic.Body, placement: Any) -> tuple[Any, Any]:
    """Inertia of a body for Pinocchio, and its place in a frame of a given placement in the drawing."""
    matrix = np.array(body.inertia)
    centre = np.array(body.com or (0.0, 0.0, 0.0))
    inertia = pinocchio.Inertia(body.mass, np.zeros(3), matrix)
    return inertia, pinocchio.SE3(placement.rotation.T, placement.actInv(centre))


def axes_along(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column lies along an axis."""
    z = axis / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


# roboticstoolbox


class ToolboxPeer:
    """The path to one point of a serial arm of revolute and prismatic joints, as elementary transforms."""

    def __init__(self, mechanism: kic.Mechanism, name: str) -> None:
        if toolbox is None:
            raise ImportError(missing()[-1])
        ET = toolbox.ET
        part = mechanism[name]
        at = part.reference if isinstance(part, kic.Body) else part.at
        here, steps, drawn = np.eye(4), [], []
        for joint in mechanism.joints:
            next_ = np.eye(4)
            next_[:3, :3] = axes_along(np.array(joint.axis))
            next_[:3, 3] = joint.at or (0.0, 0.0, 0.0)
            turn = ET.Rz() if joint.type == "revolute" else ET.tz()
            steps += [ET.SE3(np.linalg.solve(here, next_)), turn]
            drawn.append(float(np.ravel(joint.value)[0]))
            here = next_
        tool = np.eye(4)
        tool[:3, 3] = at
        tool[:3, :3] = np.eye(3)
        steps.append(ET.SE3(np.linalg.solve(here, tool)))
        self.steps = toolbox.ETS(steps)
        self._drawn = np.array(drawn)

    def q(self, phi: np.ndarray) -> np.ndarray:
        """Configurations of kic's coordinates."""
        return np.asarray(phi) - self._drawn

    def raw_rates(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Jacobian and Hessian in the toolbox's format, which are timed."""
        return self.steps.jacob0(q), self.steps.hessian0(q)

    def rates(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G (6, M) and H (6, M, M)."""
        G, H = self.raw_rates(self.q(phi))
        return G, H.transpose(1, 0, 2)


# Agreement


class DisagreementError(AssertionError):
    """kic and a peer differ by more than the tolerance, so that times are not comparable."""


def mismatch(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference over the largest number."""
    if ours.shape != theirs.shape:
        raise DisagreementError(f"shapes {ours.shape} and {theirs.shape}")
    if not prod(ours.shape):
        return 0.0
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-300))


def check(tolerance: float = 1e-12, **pairs: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    """Mismatches of named pairs of arrays; an error for any above the tolerance."""
    found = {name: mismatch(*pair) for name, pair in pairs.items()}
    bad = {name: x for name, x in found.items() if not x <= tolerance}
    if bad:
        raise DisagreementError(", ".join(f"{name} differs by {x:.1e}" for name, x in bad.items()))
    return found


def check_rates(mechanism: kic.Mechanism, peer: Any, name: str, phi: np.ndarray) -> dict[str, float]:
    """G and H of kic against a peer's at one configuration; of a point, its three rows."""
    c = mechanism.at(phi).coefficients(name, order=2)
    G, H = peer.rates(phi, name) if isinstance(peer, PinocchioPeer) else peer.rates(phi)
    P = len(c.rows)
    return check(G=(c.G, G[:P]), H=(c.H, H[:P]))


def check_third(
    mechanism: kic.Mechanism, peer: PinocchioPeer, name: str, phi: np.ndarray
) -> dict[str, float]:
    """D against central differences of the peer's Hessian, as good as those are."""
    step = 1e-5
    D = mechanism.at(phi).coefficients(name, order=3).D
    sides = [
        [peer.rates(phi + sign * step * e, name)[1] for sign in (1, -1)]
        for e in np.eye(len(np.atleast_1d(phi)))
    ]
    theirs = np.stack([(plus - minus) / (2 * step) for plus, minus in sides], axis=1)
    return check(1e-7, D=(D, theirs[: len(D)]))


def check_dynamics(mechanism: kic.Mechanism, peer: PinocchioPeer, phi: np.ndarray) -> dict[str, float]:
    """I*, q̇ᵀ P* q̇, the load of gravity and an effort against the peer's at one configuration."""
    rng = np.random.default_rng(0)
    qd, qdd = rng.normal(size=(2, len(phi)))
    d = mechanism.at(phi).dynamics()
    power = np.einsum("kab,a,b->k", d.P, qd, qd)
    return check(
        1e-11,
        I=(d.I, peer.inertia(phi)),
        P=(power, peer.velocity_effort(phi, qd)),
        load=(d.load, peer.load(phi)),
        effort=(d.inverse_dynamics(qd, qdd), peer.effort(phi, qd, qdd)),
    )
