"""Random mechanisms and their derivatives by complex step, shared by the tests."""

from __future__ import annotations

import numpy as np

import kic
from kic.configuration import Configuration
from kic.kernels.layout import GROUP, KIND, STATE

STEP = 1e-40


def random_body(rng: np.random.Generator, name: str) -> kic.Body:
    """A body with an inertia that a real one can have."""
    a = rng.normal(size=(5, 3))
    mass = rng.uniform(0.5, 2, size=5)
    com = mass @ a / mass.sum()
    r = a - com
    inertia = np.einsum(
        "p,pij->ij", mass, np.eye(3) * (r**2).sum(-1)[:, None, None] - r[:, :, None] * r[:, None]
    )
    return kic.Body(name, mass=mass.sum(), com=tuple(com), inertia=tuple(map(tuple, inertia)))


def random_joint(rng: np.random.Generator, name: str, kind: str, parent: str, child: str) -> kic.Joint:
    """A joint at a random place; written in a random order of its two bodies."""
    axis = rng.normal(size=3)
    second = np.cross(axis, rng.normal(size=3))
    pair = (parent, child) if rng.random() < 0.5 else (child, parent)
    two = kind in ("universal", "planar")
    one = two or kind in ("revolute", "prismatic", "cylindrical")
    values = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2, "planar": 3}.get(kind, 0)
    return kic.Joint(
        name,
        kind,
        pair,
        at=None if kind == "fixed" else tuple(rng.normal(size=3)),
        axis=tuple(axis) if one else None,
        axis2=tuple(second) if two else None,
        value=tuple(rng.normal(size=values)) if values else 0.0,
    )


def random_tree(
    rng: np.random.Generator, kinds: list[str] | str, branched: bool = False, loads: bool = False
) -> kic.Mechanism:
    """An open mechanism with a joint of each kind; R and P stand for revolute and prismatic."""
    words = {"R": "revolute", "P": "prismatic"}
    bodies, joints = [], []
    names = ["ground"]
    for n, kind in enumerate(kinds):
        parent = names[rng.integers(len(names))] if branched else names[-1]
        child = f"b{n}"
        joints.append(random_joint(rng, f"j{n}", words.get(kind, kind), parent, child))
        bodies.append(random_body(rng, child))
        names.append(child)
    points = [kic.Point(f"p{n}", f"b{n}", at=tuple(rng.normal(size=3))) for n in range(len(kinds))]
    points.append(kic.Point("post", "ground", at=tuple(rng.normal(size=3))))
    last = points[-2].name
    extra = {}
    if loads:
        points.append(kic.Point("lump", "b0", at=tuple(rng.normal(size=3)), mass=0.7))
        extra = {
            "forces": [
                kic.Force("push", last, tuple(rng.normal(size=3))),
                kic.Force("thrust", "p0", tuple(rng.normal(size=3)), axes="body"),
            ],
            "moments": [
                kic.Moment("twist", f"b{len(kinds) - 1}", tuple(rng.normal(size=3)), axes="body"),
                kic.Moment("wrench", "b0", tuple(rng.normal(size=3))),
            ],
            "springs": [
                kic.Spring("coil", (last, "post"), stiffness=3.0, rest=0.4, damping=0.5),
                kic.Spring("rubber", ("lump", "post"), stiffness=2.0),
            ],
        }
    return kic.Mechanism(
        "random",
        bodies,
        joints,
        points,
        distances=[kic.Distance("gap", (last, "post"))],
        gravity=tuple(rng.normal(size=3)),
        **extra,
    )


def random_posture(
    rng: np.random.Generator, mechanism: kic.Mechanism, batch: tuple[int, ...] = ()
) -> Configuration:
    """A posture with random coordinates, balls turned far from their drawing."""
    return mechanism.at(rng.normal(size=(*batch, len(mechanism.coordinate_names))))


def stepped(c: Configuration, name: str) -> Configuration:
    """The same posture with a complex step along one coordinate (a rate of turning, for balls)."""
    tree = c._model.tree
    n = tree.column[name]
    states = c._states.astype(complex)
    group = tree.cols[n, GROUP]
    if tree.cols[n, KIND] <= 1:
        states[:, tree.cols[n, STATE]] += 1j * STEP
    else:  # q' = (1, ½ ih e) q: a turn about an axis of the first body
        place = tree.cols[group, STATE]
        q = states[:, place : place + 4].copy()
        e = np.zeros(3, dtype=complex)
        e[n - group] = 0.5j * STEP
        w, v = q[:, :1], q[:, 1:]
        states[:, place : place + 4] += np.concatenate([-(v @ e)[:, None], w * e + np.cross(e, v)], axis=1)
    return Configuration(c._model, c.batch, states)


def derivative(c: Configuration, question) -> np.ndarray:
    """Derivative of an array-valued question along every coordinate, the new axis last of all."""
    parts = [np.imag(question(stepped(c, name))) / STEP for name in c.coordinates]
    return np.stack(parts, axis=-1)


def solved(A: np.ndarray) -> float:
    """Limit of error where a system A (..., n, n) is solved: what its condition makes of rounding."""
    return max(1e-12, 100 * float(np.finfo(float).eps * np.linalg.cond(A).max(initial=1.0)))


def mismatch(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference over largest entry."""
    assert a.shape == b.shape, (a.shape, b.shape)
    if a.size == 0:
        return 0.0
    return (
        float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))
        if np.abs(b).max() > 0
        else float(np.abs(a).max())
    )
