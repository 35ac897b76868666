"""Masses and loads of a mechanism, packed for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.parts import TENSOR_ENTRIES
from kic.errors import InertiaError, unknown
from kic.kernels import layout as lay
from kic.kinematics.tree import Tree
from kic.numerics.arguments import mapping
from kic.numerics.arrays import as_array, broadcast_batches


@dataclass(frozen=True)
class Masses:
    """Bodies and point masses in the layout of the kernels: names, frames (n,), numbers (n, 10)."""

    names: tuple[str, ...]
    frames: np.ndarray
    numbers: np.ndarray


def pack_masses(tree: Tree) -> Masses:
    """Pack all bodies and point masses, each in the axes of its frame.

    Raise `InertiaError` if a moving body has no mass or inertia, or if neither masses nor loads are given.
    The tables may be empty for a structure.
    """
    description = tree.description
    _check_complete(tree)
    names, frames, numbers = [], [], []
    for body in description.bodies:
        frame = tree.frame[body.name]
        if frame < 0 or not (body.mass or np.any(body.inertia or 0.0)):
            continue
        names.append(body.name)
        frames.append(frame)
        axes = tree.axes(frame)
        moments = (axes.T @ np.array(body.inertia) @ axes)[TENSOR_ENTRIES]
        centre = tree.local_point(frame, body.com) if body.com else np.zeros(3)
        numbers.append(np.concatenate([[body.mass], centre, moments]))
    for point in description.points:
        frame = tree.frame[point.body]
        if frame >= 0 and point.mass:
            names.append(point.name)
            frames.append(frame)
            numbers.append(np.concatenate([[point.mass], tree.local_point(frame, point.at), np.zeros(6)]))
    table = np.array(numbers).reshape(-1, 10)
    loaded = description.forces or description.moments or description.springs
    if tree.size and not table.any() and not loaded:
        raise InertiaError(
            f"No moving body of '{description.name}' has mass, so its dynamics would be 0 = T. "
            "Give bodies `mass`, `com` and `inertia`.",
            bodies=tuple(b.name for b in description.bodies),
        )
    return Masses(tuple(names), np.array(frames, dtype=np.int64), table)


def _check_complete(tree: Tree) -> None:
    """Raise an error for moving bodies with unspecified mass or inertia."""
    moving = [b for b in tree.description.bodies if tree.frame[b.name] >= 0]
    bare = [b.name for b in moving if b.mass is None]
    flat = [b.name for b in moving if b.mass and b.inertia is None]
    if bare or flat:
        missing = [f"{name} (mass)" for name in bare] + [f"{name} (inertia)" for name in flat]
        raise InertiaError(
            f"Dynamics of '{tree.description.name}' needs the inertia of every moving body; missing: "
            f"{', '.join(missing)}. Write mass = 0 for a massless body and inertia = [0, 0, 0] for a "
            "point mass.",
            bodies=tuple(bare + flat),
        )


@dataclass(frozen=True)
class Loads:
    """Loads of the tree in the layout of the kernels; see `kic.kernels.loads`."""

    gravity: np.ndarray
    names: tuple[str, ...]
    forces: np.ndarray
    places: np.ndarray
    constant: np.ndarray
    turns: tuple[np.ndarray | None, ...]
    springs: np.ndarray
    spring_numbers: np.ndarray
    laws: np.ndarray

    def applied(self, given: dict[str, Any] | None, owner: str) -> tuple[np.ndarray, tuple[int, ...]]:
        """Return forces and moments (..., n, 3), with `given` replacements, and their batch shape."""
        if given is None:
            return self.constant, ()
        arrays = {}
        for name, value in mapping("applied", given, "loads to components").items():
            if name not in self.names:
                raise unknown("force or moment", name, owner, self.names)
            arrays[name] = as_array(name, value, 3)
        batch = broadcast_batches(**{name: a.shape[:-1] for name, a in arrays.items()})
        full = np.broadcast_to(self.constant, (*batch, *self.constant.shape)).astype(
            np.result_type(self.constant, *arrays.values())
        )
        for name, a in arrays.items():
            i = self.names.index(name)
            full[..., i, :] = a if self.turns[i] is None else a @ self.turns[i]
        return full, batch


def pack_loads(tree: Tree) -> Loads:
    """Pack gravity, forces, moments, springs and the laws of the joints."""
    description = tree.description
    names, forces, places, constant = [], [], [], []
    for force in description.forces:
        point = description._point(force.point)
        frame = tree.frame[point.body]
        names.append(force.name)
        forces.append((frame, 0, int(force.axes == "body")))
        places.append(tree.local_point(frame, point.at))
        constant.append(_components(tree, frame, force.force, force.axes))
    for moment in description.moments:
        frame = tree.frame[moment.body]
        names.append(moment.name)
        forces.append((frame, 1, int(moment.axes == "body")))
        places.append(np.zeros(3))
        constant.append(_components(tree, frame, moment.moment, moment.axes))
    springs, numbers = [], []
    for spring in description.springs:
        a, b = (description._point(name) for name in spring.points)
        fa, fb = tree.frame[a.body], tree.frame[b.body]
        springs.append((fa, fb))
        pa, pb = tree.local_point(fa, a.at), tree.local_point(fb, b.at)
        numbers.append(np.concatenate([pa, pb, [spring.stiffness, spring.rest, spring.damping]]))
    return Loads(
        gravity=np.array([description.gravity]),
        names=tuple(names),
        forces=np.array(forces, dtype=np.int64).reshape(-1, 3),
        places=np.array(places, dtype=tree.scalar).reshape(-1, 3),
        constant=np.array(constant, dtype=tree.scalar).reshape(-1, 3),
        springs=np.array(springs, dtype=np.int64).reshape(-1, 2),
        turns=tuple(tree.axes(frame) if body else None for frame, _, body in forces),
        spring_numbers=np.array(numbers, dtype=tree.scalar).reshape(-1, 9),
        laws=_laws(tree),
    )


def _components(tree: Tree, frame: int, v: Any, axes: str) -> np.ndarray:
    """Return the components of a vector in world axes, or for body `axes` in those of the frame."""
    return tree.local_vector(frame, v) if axes == "body" else np.asarray(v, dtype=tree.scalar)


def _laws(tree: Tree) -> np.ndarray:
    """Return stiffness, rest value, damping and armature of every column, in the layout of the kernels."""
    laws = np.zeros((tree.size, lay.ARMATURE + 1), tree.scalar)
    for joint in tree.description.joints:
        for k, name in enumerate(joint.components):
            if name in tree.column:
                laws[tree.column[name], [0, 1, 2, lay.ARMATURE]] = [
                    getattr(joint, key)[k] for key in ("stiffness", "rest", "damping", "armature")
                ]
    return laws
