"""States of a tree: conversion from and to coordinates, integration, differences and distances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.parts import Joint
from kic.description.units import DEGREES_ANGLE_MIN, warn_of_degrees
from kic.description.validation import GROUND
from kic.errors import InputError, coordinates_named, invalid, short_repr, unknown
from kic.kinematics.euler import EULER
from kic.kinematics.tree import Tree, ball_axes
from kic.numerics.arrays import broadcast_batches, numbers, require_real
from kic.numerics.rotations import (
    displaced,
    product,
    quaternion_from_vector,
    vector_from_quaternion,
)


def coordinates_of(description: MechanismDescription, inputs: Any) -> np.ndarray:
    """Return coordinates (..., M) in order, from an array, a dict of names, or None.

    Raise `InputError` or `UnknownNameError` for a wrong shape, a missing or surplus coordinate, or a
    value that `at` does not accept.
    """
    if inputs is None:
        return reference_coordinates(description)
    if isinstance(inputs, Mapping):
        return _from_names(description, inputs)
    return coordinate_array(description, "values", inputs)


def coordinate_array(description: MechanismDescription, name: str, value: Any) -> np.ndarray:
    """Return an array (..., M) of all coordinates in order."""
    names = description.coordinates
    a = numbers(name, value)
    if a.ndim == 0 and len(names) == 1:
        a = a[None]
    if a.ndim == 0 or a.shape[-1] != len(names):
        raise invalid(
            name,
            f"must have shape (..., {len(names)})",
            a.shape,
            f"The coordinates of '{description.name}' are {', '.join(names) or 'none'}.",
            expected=(len(names),),
        )
    return a


def only_coordinates(description: MechanismDescription, inputs: Any) -> bool:
    """Return True if inputs are an array or name joints only; an open chain then needs no position solver."""
    if not isinstance(inputs, Mapping):
        return True
    names = [key.partition(".") for key in inputs if isinstance(key, str)]
    return not any(base in description._valued_names or row.startswith(EULER) for base, _, row in names)


def free_joints_as_poses(description: MechanismDescription, inputs: Any) -> Any:
    """Return inputs with a body pose in place of each free joint to ground."""
    free = {j.name: j for j in description.joints if j.type == "free" and GROUND in j.bodies}
    if free and not isinstance(inputs, Mapping):
        names = description.coordinates
        whole = [j for j in free.values() if set(j.components) <= set(names)]
        if not whole:
            return inputs
        a = coordinate_array(description, "values", inputs)
        column = {name: k for k, name in enumerate(names)}
        inputs = {j.name: a[..., [column.pop(c) for c in j.components]] for j in whole}
        inputs |= {name: a[..., k] for name, k in column.items()}
    if not isinstance(inputs, Mapping):
        return inputs
    if not any(isinstance(key, str) and key in free for key in inputs):
        return inputs
    from scipy.spatial.transform import RigidTransform, Rotation

    made = {}
    for key, value in inputs.items():
        joint = free.get(key) if isinstance(key, str) else None
        if joint is None:
            made[key] = value
            continue
        a = _real_entries(description, joint, value)
        # a member without finite numbers keeps a rotation, which SciPy requires, and has no position
        a = np.where(np.isfinite(a).all(axis=-1, keepdims=True), a, np.nan)
        T, axes = np.zeros((*a.shape[:-1], 4, 4)), ball_axes(joint)
        turn = Rotation.from_rotvec((np.nan_to_num(a[..., 3:]) @ axes.T).reshape(-1, 3))
        T[..., :3, :3] = turn.as_matrix().reshape(*a.shape[:-1], 3, 3)
        at = np.array(joint.at)
        # the coordinates are the displacement of the joint's point
        T[..., :3, 3] = (a[..., :3] - joint.value[:3]) @ axes.T + at - T[..., :3, :3] @ at  # type: ignore[index]
        T[..., 3, 3] = 1.0
        backwards = joint.bodies[1] == GROUND
        pose = RigidTransform.from_matrix(T)
        body = joint.bodies[0 if backwards else 1]
        if body in inputs:
            message = f"The pose of '{body}' is given twice, as '{key}' too. Give it once."
            raise InputError(message, name=body)
        made[body] = pose.inv() if backwards else pose
    return made


def reference_coordinates(description: MechanismDescription) -> np.ndarray:
    """Return the coordinates (M,) of the reference configuration."""
    return np.array([description._reference_values[name] for name in description.coordinates])


def _from_names(description: MechanismDescription, inputs: Mapping[Any, Any]) -> np.ndarray:
    """Return coordinates (..., M) from a dict of joints, components or rotations."""
    names = description.coordinates
    given: dict[str, np.ndarray] = {}
    for key, value in inputs.items():
        for name, x in single_entries(description, key, value):
            if name in given:
                raise InputError(f"Coordinate '{name}' of '{description.name}' is given twice.", name=name)
            given[name] = x
    missing = [name for name in names if name not in given]
    surplus = [name for name in given if name not in names]
    if missing or surplus:
        raise InputError(
            f"'{description.name}' has mobility {len(names)}; {coordinates_named(len(given))}: "
            f"{', '.join(given) or 'none'}."
            + (f" Missing: {', '.join(missing)}." if missing else "")
            + (f" Not among its coordinates: {', '.join(surplus)}." if surplus else ""),
            missing=tuple(missing),
            surplus=tuple(surplus),
        )
    batch = broadcast_batches(**{name: given[name].shape for name in names})
    columns = [np.broadcast_to(given[name], batch) for name in names]
    return np.stack(columns, axis=-1) if columns else np.zeros((0,))


def single_entries(description: MechanismDescription, key: Any, value: Any) -> list[tuple[str, np.ndarray]]:
    """Return the single coordinates, with their values, from one entry of a dict of inputs."""
    if not isinstance(key, str):
        raise InputError(f"Keys must be names of joints, got {short_repr(key)}.", key="values", got=key)
    joints = {joint.name: joint for joint in description.joints}
    components = [c for joint in description.joints for c in joint.components]
    if key in joints and not joints[key].dof:
        raise InputError(f"Joint '{key}' is fixed; it has no coordinate. Leave it out.", name=key)
    if key in joints and joints[key].dof > 1:
        joint = joints[key]
        a = _entries(joint, value)
        return [(c, a[..., k]) for k, c in enumerate(joint.components)]
    if key in components:
        return [(key, numbers(key, value))]
    if (whole := key.partition(".")[0]) in description._parts and whole not in joints:
        kind = "motor" if any(motor.name == whole for motor in description.motors) else "load"
        raise InputError(
            f"'{key}' is a {kind} and cannot be an input; at() takes joints, points, distances and angles.",
            name=key,
        )
    several = [joint.name for joint in description.joints if joint.dof > 1]
    raise unknown("joint", key, description.name, [*components, *several])


_FORMS = {
    "spherical": " (a rotation vector or a SciPy Rotation)",
    "free": " (x y z and a rotation vector, or a SciPy RigidTransform)",
}


def _entries(joint: Joint, value: Any) -> np.ndarray:
    """Return the coordinates (..., dof) of a joint with several coordinates, from one of `_FORMS`."""
    a = numbers(joint.name, _several(joint, value))
    if a.ndim == 0 or a.shape[-1] != joint.dof:
        raise invalid(
            joint.name,
            f"must have shape (..., {joint.dof}) for a {joint.type} joint{_FORMS.get(joint.type, '')}",
            a.shape,
            expected=(joint.dof,),
        )
    return a


def _real_entries(description: MechanismDescription, joint: Joint, value: Any) -> np.ndarray:
    """Return real `_entries`, and warn of angles that may be meant in degrees."""
    a = require_real(joint.name, _entries(joint, value))
    if np.abs(a).max(initial=0.0) > DEGREES_ANGLE_MIN:
        warn_of_degrees(description, joint.components, a)
    return a


def _several(joint: Joint, value: Any) -> Any:
    """Return the coordinates of a joint; convert them from a `Rotation` or `RigidTransform`.

    These displace the second body relative to the first from the reference configuration.
    """
    if joint.type == "spherical" and hasattr(value, "as_rotvec"):
        return value.as_rotvec() @ ball_axes(joint)
    if joint.type == "spherical" and hasattr(value, "rotation"):
        rule = "must be a rotation vector or a SciPy Rotation"
        raise invalid(joint.name, rule, value, "Give its `rotation`.", shown="a pose")
    if joint.type == "free" and hasattr(value, "rotation") and hasattr(value, "translation"):
        at = np.asarray(joint.at)
        moved = np.stack([displaced(value, at) - at, value.rotation.as_rotvec()], axis=-2) @ ball_axes(joint)
        return moved.reshape(*moved.shape[:-2], 6) + joint.value
    return value


def ball_matrix(description: MechanismDescription, joint: Joint, value: Any) -> np.ndarray:
    """Return the matrix (..., 3, 3) of a spherical joint from a `Rotation` or a vector (..., 3) in its axes.

    It turns the second body relative to the first from the reference configuration.
    """
    from scipy.spatial.transform import Rotation

    if hasattr(value, "as_rotvec"):
        return np.asarray(value.as_matrix())
    a, axes = _real_entries(description, joint, value), ball_axes(joint)
    a = np.where(np.isfinite(a).all(axis=-1, keepdims=True), a, np.nan)
    return axes @ Rotation.from_rotvec(a).as_matrix() @ axes.T


def states_of(tree: Tree, phi: np.ndarray) -> np.ndarray:
    """Return the states (B, S) of coordinates (B, M) in the order of the mechanism."""
    if phi.dtype == np.float64 and tree.scalar != phi.dtype:
        phi = phi.astype(tree.scalar)
    if tree.to_coordinates is not None:
        columns = np.empty_like(phi)
        columns[:, tree.to_coordinates] = phi
        phi = columns
    return tree.states(phi)


def phi_of(tree: Tree, states: np.ndarray) -> np.ndarray:
    """Return a copy of the coordinates (B, M) of states (B, S), in the order of the mechanism."""
    if tree.balls:
        phi = np.empty((len(states), tree.size), states.dtype)
        columns, entries = tree.single_columns
        phi[:, columns] = states[:, entries]
        for turn, quaternion in tree.ball_slices:
            phi[:, turn] = vector_from_quaternion(states[:, quaternion])
    else:
        phi = states.copy()
    return phi if tree.to_coordinates is None else phi[:, tree.to_coordinates]


def integrate(tree: Tree, states: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return states (B, S) moved by steps (B, M) of the tree's coordinates."""
    if not tree.balls:
        return states + step
    moved = states.copy()
    columns, entries = tree.single_columns
    moved[:, entries] += step[:, columns]
    for turn, quaternion in tree.ball_slices:
        # the step is about axes of the first body, and therefore multiplies from the left
        q = product(quaternion_from_vector(step[:, turn]), states[:, quaternion])
        moved[:, quaternion] = q / np.sqrt(np.einsum("bi,bi->b", q, q))[:, None]
    return moved


def difference(tree: Tree, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the steps (B, M) by which `integrate` moves states a to states b (B, S)."""
    steps = np.zeros((len(a), tree.size), np.result_type(a, b))
    columns, entries = tree.single_columns
    steps[:, columns] = b[:, entries] - a[:, entries]
    for turn, quaternion in tree.ball_slices:
        inverse = a[:, quaternion] * [1, -1, -1, -1]
        steps[:, turn] = vector_from_quaternion(product(b[:, quaternion], inverse))
    return steps


def distance(tree: Tree, a: np.ndarray, b: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return distances (B, M) of states (B, S): angles, translations over `scale`, one angle per ball."""
    gap = np.zeros((len(a), tree.size))
    columns, entries = tree.single_columns
    gap[:, columns] = np.abs(a[:, entries] - b[:, entries]) / scale[columns]
    for turn, quaternion in tree.ball_slices:
        p, q = a[:, quaternion], b[:, quaternion]
        # both signs are one rotation; the chord between unit quaternions subtends half the angle
        chord = np.minimum(np.linalg.norm(p - q, axis=1), np.linalg.norm(p + q, axis=1))
        gap[:, turn.start] = 4 * np.arcsin(np.minimum(chord / 2, 1.0))
    return gap
