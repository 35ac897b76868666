"""Coordinates to states and back: what a user gives for joints, one posture or a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.parts import Joint
from kic.errors import InputError, short_repr, unknown
from kic.kernels.layout import DRAWN, STATE
from kic.kinematics.tree import Tree
from kic.numerics.arrays import broadcast_batches, numbers, scalar_hint
from kic.numerics.rotations import (
    as_pose_vector,
    as_rotation_vector,
    product,
    quaternion_from_vector,
    vector_from_quaternion,
)


def coordinates_of(drawing: MechanismDescription, inputs: Any) -> np.ndarray:
    """Array (..., M) in the order of the coordinates, from an array, a dict of names, or None.

    Raises
    ------
    InputError, UnknownNameError
        For a wrong shape, a missing or surplus coordinate, or something `at` can not use.
    """
    if inputs is None:
        return reference_coordinates(drawing)
    if isinstance(inputs, Mapping):
        return _from_names(drawing, inputs)
    return coordinate_array(drawing, "phi", inputs)


def coordinate_array(drawing: MechanismDescription, name: str, value: Any) -> np.ndarray:
    """An array (..., M) of all coordinates in order."""
    names = drawing.coordinate_names
    a = numbers(name, value)
    if a.ndim == 0 or a.shape[-1] != len(names):
        raise InputError(
            f"Expected `{name}` to have shape (..., {len(names)}), got {a.shape}.{scalar_hint(a, len(names))} "
            f"The coordinates of '{drawing.name}' are {', '.join(names) or 'none'}.",
            expected=(len(names),),
            got=a.shape,
        )
    return a


def only_coordinates(drawing: MechanismDescription, inputs: Any) -> bool:
    """Whether inputs are an array, or name joints only: no position problem for an open chain."""
    if not isinstance(inputs, Mapping):
        return True
    kinds = ("points", "distances", "bodies", "contacts")
    others = {part.name for kind in kinds for part in getattr(drawing, kind)}
    return not any(isinstance(key, str) and key.partition(".")[0] in others for key in inputs)


def reference_states(tree: Tree) -> np.ndarray:
    """State (1, S) of the drawing."""
    return columns_to_states(tree, tree.geometry[None, :, DRAWN].copy())


def reference_coordinates(drawing: MechanismDescription) -> np.ndarray:
    """Coordinates (M,) of the drawing."""
    drawn = {
        c: value
        for joint in drawing.joints
        for c, value in zip(joint.components, joint.value, strict=True)  # type: ignore[arg-type]
    }
    return np.array([drawn[name] for name in drawing.coordinate_names])


def _from_names(drawing: MechanismDescription, inputs: Mapping[Any, Any]) -> np.ndarray:
    """Array (..., M) from a dict of joints, components or rotations."""
    names = drawing.coordinate_names
    given: dict[str, np.ndarray] = {}
    for key, value in inputs.items():
        for name, x in _entries(drawing, key, value):
            if name in given:
                raise InputError(f"Coordinate '{name}' of '{drawing.name}' is given twice.", name=name)
            given[name] = x
    missing = [name for name in names if name not in given]
    surplus = [name for name in given if name not in names]
    if missing or surplus:
        raise InputError(
            f"'{drawing.name}' has mobility {len(names)}; {len(given)} coordinates were named: "
            f"{', '.join(given) or 'none'}."
            + (f" Missing: {', '.join(missing)}." if missing else "")
            + (f" Not among its coordinates: {', '.join(surplus)}." if surplus else ""),
            missing=tuple(missing),
            surplus=tuple(surplus),
        )
    batch = broadcast_batches(**{name: given[name].shape for name in names})
    columns = [np.broadcast_to(given[name], batch) for name in names]
    return np.stack(columns, axis=-1) if columns else np.zeros((0,))


def _entries(drawing: MechanismDescription, key: Any, value: Any) -> list[tuple[str, np.ndarray]]:
    """Single coordinates of one entry of the dict."""
    if not isinstance(key, str):
        raise InputError(f"Expected names of joints as keys, got {short_repr(key)}.")
    joints = {joint.name: joint for joint in drawing.joints}
    components = [c for joint in drawing.joints for c in joint.components]
    if key in joints and not joints[key].dof:
        raise InputError(f"Joint '{key}' is fixed; it has no coordinate. Leave it out.", name=key)
    if key in joints and joints[key].dof > 1:
        joint = joints[key]
        a = numbers(key, _several(joint, value))
        if a.ndim == 0 or a.shape[-1] != joint.dof:
            raise InputError(
                f"Expected `{key}` to have shape (..., {joint.dof}) for a {joint.type} joint"
                f"{_REMARKS.get(joint.type, '')}, got {a.shape}.",
                expected=(joint.dof,),
                got=a.shape,
            )
        return [(c, a[..., k]) for k, c in enumerate(joint.components)]
    if key in components:
        return [(key, numbers(key, value))]
    if (whole := key.partition(".")[0]) in drawing.parts and whole not in joints:
        kind = "motor" if any(motor.name == whole for motor in drawing.motors) else "load"
        raise InputError(
            f"'{key}' is a {kind} and can not be an input; at() takes joints, points, distances and angles.",
            name=key,
        )
    several = [joint.name for joint in drawing.joints if joint.dof > 1]
    raise unknown("joint", key, drawing.name, [*components, *several])


_REMARKS = {
    "spherical": " (a rotation vector or a SciPy Rotation)",
    "free": " (x y z and a rotation vector, or a SciPy RigidTransform)",
}


def _several(joint: Joint, value: Any) -> Any:
    if joint.type == "spherical":
        return as_rotation_vector(joint.name, value)
    if joint.type == "free":
        return as_pose_vector(joint.at, value)
    return value


def states_of(tree: Tree, phi: np.ndarray) -> np.ndarray:
    """States (B, S) of coordinates (B, M) in the order of the coordinates."""
    if phi.dtype == np.float64 and tree.scalar != phi.dtype:
        phi = phi.astype(tree.scalar)
    if tree.to_coordinates is not None:
        columns = np.empty_like(phi)
        columns[:, tree.to_coordinates] = phi
        phi = columns
    return columns_to_states(tree, phi)


def columns_to_states(tree: Tree, phi: np.ndarray) -> np.ndarray:
    """States (B, S) of coordinates (B, M) in the order of the tree."""
    if not tree.balls:
        return phi
    states = np.empty((len(phi), tree.state_size), phi.dtype)
    for n in range(tree.size):
        place = tree.cols[n, STATE]
        if n in tree.balls:
            states[:, place : place + 4] = quaternion_from_vector(phi[:, n : n + 3])
        elif place >= 0:
            states[:, place] = phi[:, n]
    return states


def phi_of(tree: Tree, states: np.ndarray) -> np.ndarray:
    """Coordinates (B, M), in the order of the coordinates, of states (B, S); always a copy."""
    if tree.balls:
        phi = np.empty((len(states), tree.size), states.dtype)
        for n in range(tree.size):
            place = tree.cols[n, STATE]
            if n in tree.balls:
                phi[:, n : n + 3] = vector_from_quaternion(states[:, place : place + 4])
            elif place >= 0:
                phi[:, n] = states[:, place]
    else:
        phi = states.copy()
    return phi if tree.to_coordinates is None else phi[:, tree.to_coordinates]


def integrate(tree: Tree, states: np.ndarray, step: np.ndarray) -> np.ndarray:
    """States (B, S) moved by small steps (B, M) of the tree's own coordinates."""
    if not tree.balls:
        return states + step
    moved = states.copy()
    for n in range(tree.size):
        place = tree.cols[n, STATE]
        if n in tree.balls:
            # a turn about axes of the first body, before what stands there already
            turn = quaternion_from_vector(step[:, n : n + 3])
            q = product(turn, states[:, place : place + 4])
            moved[:, place : place + 4] = q / np.sqrt(np.einsum("bi,bi->b", q, q))[:, None]
        elif place >= 0:
            moved[:, place] += step[:, n]
    return moved


def difference(tree: Tree, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Steps (B, M) of the tree's own coordinates by which `advance` comes from states a to b (B, S)."""
    steps = np.zeros((len(a), tree.size))
    for n in range(tree.size):
        place = tree.cols[n, STATE]
        if n in tree.balls:
            back = a[:, place : place + 4] * [1, -1, -1, -1]
            steps[:, n : n + 3] = vector_from_quaternion(product(b[:, place : place + 4], back))
        elif place >= 0:
            steps[:, n] = b[:, place] - a[:, place]
    return steps


def distance(tree: Tree, a: np.ndarray, b: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """How far states (B, S) are from one another, (B, M): turns, slides over a scale, balls as one turn."""
    gap = np.zeros((len(a), tree.size))
    for n in range(tree.size):
        place = tree.cols[n, STATE]
        if n in tree.balls:
            p, q = a[:, place : place + 4], b[:, place : place + 4]
            # both signs are one rotation; the chord between unit quaternions belongs to half the turn
            chord = np.minimum(np.linalg.norm(p - q, axis=1), np.linalg.norm(p + q, axis=1))
            gap[:, n] = 4 * np.arcsin(np.minimum(chord / 2, 1.0))
        elif place >= 0:
            gap[:, n] = np.abs(a[:, place] - b[:, place]) / scale[n]
    return gap
