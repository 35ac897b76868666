"""Values that a user gives for a configuration: coordinates in order or by name, rows, poses and rotations.

They become coordinates of an open chain, or targets of a position problem. Nothing below reads them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.parts import Body, Frame, Joint
from kic.description.units import DEGREES_ANGLE_MIN, warn_of_degrees
from kic.description.validation import GROUND, part_of, split_row
from kic.errors import InputError, coordinates_named, invalid, short_repr, unknown
from kic.kinematics.euler import EULER, check_sequence
from kic.kinematics.state import reference_coordinates
from kic.kinematics.tree import Tree, ball_axes
from kic.numerics.arrays import ARGUMENT_MAX, as_numbers, broadcast_batches, numbers, real_array, require_real
from kic.numerics.rotations import displaced
from kic.transfer.closure import Closure
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.targets import (
    MotionSubspace,
    NamedInput,
    PoseTarget,
    Targets,
    frame_part,
    motion_subspace,
    placed_reference,
    reference_of,
)

# largest distance of a given pose from the body's plane of motion, relative to the length, and largest tilt
# (rad)
PLANARITY_TOL = 1e-10


def position_problem(model: CompiledModel, inputs: Any) -> tuple[Targets, Closure]:
    """Return the targets and the position problem of inputs; there must be as many inputs as dof."""
    names, given = model.coordinates, inputs
    if type(given) is np.ndarray and given.shape == (len(names),) and given.dtype == np.float64:
        given = dict(zip(names, given.tolist(), strict=True))
    # names in the cache need no interpretation
    if not (isinstance(given, Mapping) and model.inputs.keys() >= given.keys()):
        try:
            given = named_inputs(model.description, inputs)
        except InputError:
            if not isinstance(inputs, Mapping):  # missing or surplus coordinates explain a wrong shape
                model.check_number(None)
            raise
    named = {key: model.inputs.get(key) or model.named_input(key) for key in given}
    targets = targets_of(model.tree, named, model.length, given)
    held = model.description._held
    if held and not held.keys() <= given.keys() and _count(model.tree, named, targets) != model.dof:
        return position_problem(model, {**held, **given})
    key = targets.names, targets.held
    return targets, model.problems.get(key) or model.problem(*key)


def _count(tree: Tree, named: Mapping[str, NamedInput], targets: Targets) -> int:
    """Return the number of degrees of freedom that targets determine."""
    rows = sum(named[name].height for name in targets.names)
    return rows + sum(map(motion_subspace(tree).count, targets.held))


def named_inputs(description: MechanismDescription, inputs: Any) -> dict[str, Any]:
    """Return inputs as a dict by names of rows, and of bodies and frames with a pose.

    An array is in the order of the coordinates. Euler angles and coordinates of free joints become poses.
    """
    if not isinstance(inputs, Mapping):
        a = coordinate_array(description, "values", inputs)
        inputs = {name: a[..., k] for k, name in enumerate(description.coordinates)}
    named: dict[str, Any] = {}
    for key, value in free_joints_as_poses(description, _gathered(description, inputs)).items():
        if not isinstance(key, str):
            raise InputError(
                f"Keys of `values` must be names of rows, got {short_repr(key)}.", key="values", got=key
            )
        name, plain = _orientation(description, key, value)
        if name in named:
            raise InputError(f"The orientation of '{name}' is given twice. Give it once.", name=name)
        named[name] = plain
    return named


def _gathered(description: MechanismDescription, inputs: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return inputs with numbers under separate keys, such as axes of a grid, joined in one array.

    They are Euler angles, components of the rotation vector of a joint, or coordinates of a free joint.
    """
    rest = dict(inputs)
    turned = [key.rpartition(".")[0] for key in inputs if isinstance(key, str) and "." in key]
    joints = {**description._ball_joints, **_free_joints(description)}
    turned = [whole for whole in turned if f".{EULER}" in whole or whole in joints]
    for whole in dict.fromkeys(turned):
        names = joints[whole].components if whole in joints else [f"{whole}.{k}" for k in (1, 2, 3)]
        if whole in rest and any(name in rest for name in names):
            raise InputError(f"'{whole}' is given twice. Give it once.", name=whole)
        if all(name in rest for name in names):
            parts = {name: numbers(name, rest.pop(name)) for name in names}
            batch = broadcast_batches(**{name: part.shape for name, part in parts.items()})
            rest[whole] = np.stack([np.broadcast_to(part, batch) for part in parts.values()], axis=-1)
    return rest


def _orientation(description: MechanismDescription, key: str, value: Any) -> tuple[str, Any]:
    """Return name and `Rotation` for the three Euler angles of a frame or body; other inputs are unchanged.

    The orientation is regular in gimbal lock too.
    """
    name, row = split_row(key)
    part = description._parts.get(name)
    if not row.startswith(EULER) or part is None:
        return key, value
    sequence = check_sequence(row.removeprefix(EULER).partition(".")[0], name)
    if "." in row or not isinstance(part, Body | Frame):
        raise InputError(
            f"'{key}' cannot be given. Give all three Euler angles of a frame or body, such as "
            f"'{name}.{EULER}{sequence}', or the Rotation of a spherical joint.",
            name=key,
        )
    from scipy.spatial.transform import Rotation

    angles = real_array(key, value, 3)
    flat = Rotation.from_euler(sequence, angles.reshape(-1, 3)).as_quat()
    return name, Rotation.from_quat(flat.reshape(*angles.shape[:-1], 4))


def targets_of(
    tree: Tree, named: Mapping[str, NamedInput], length: float, inputs: Mapping[str, Any]
) -> Targets:
    """Return the targets of `named_inputs`: values of rows, and poses of bodies and frames.

    Raises
    ------
    InputError, UnknownNameError
        If a shape is wrong, or a name has no value.
    """
    names: list[str] = []
    held: list[PoseTarget] = []
    rows: list[Any] = []
    pose_rows: list[np.ndarray] = []
    reasons: list[np.ndarray] = []
    shapes: dict[str, tuple[int, ...]] = {}
    for key, value in inputs.items():
        one = named[key]
        if one.has_pose and (key in tree.description._ball_joints or hasattr(value, "as_matrix")):
            target, parts, why = _pose_rows(tree, key, value, length)
            held.append(target)
            pose_rows += parts
            reasons.append(why)
        else:
            plain = type(value) is float and one.height == 1 and one.valued
            parts = [value] if plain else _values(tree, one, key, value)
            names.append(key)
            rows += parts
            if one.largest:
                reasons.append(_no_measure(key, np.asarray(parts[0]), one.largest))
        if parts and type(parts[0]) is not float and parts[0].shape:
            shapes[key] = parts[0].shape
    rows += pose_rows
    batch = broadcast_batches(**shapes) if shapes else ()
    values = np.stack([np.broadcast_to(c, batch) for c in rows], axis=-1) if shapes else np.array(rows)
    # one product shows that all numbers are moderate
    size = abs(np.vdot(values, values)) if values.dtype.kind != "O" else 0.0
    if not size < DEGREES_ANGLE_MIN**2:
        warn_of_degrees(tree.description, [name for name, _ in _first_rows(named, names)], values)
    if not size < ARGUMENT_MAX:
        reasons += [_too_large(name, values[..., k]) for name, k in _first_rows(named, names)]
        finite = np.isfinite(values).all(axis=-1)
        nan = [
            np.where(np.isnan(values[..., k]), f"{name} is NaN, and values must be finite", "")
            for name, k in _first_rows(named, names)
        ]
        nan.append(np.where(finite, "", "values must be finite"))
        reasons += [why.astype(object) for why in nan]
    reasons = [why for why in reasons if (why != "").any()]
    return Targets(tuple(names), tuple(held), values, batch, reasons)


def _first_rows(named: Mapping[str, NamedInput], names: list[str]) -> list[tuple[str, int]]:
    """Return the name and index of each row among the values."""
    owners = [name for name in names for _ in range(named[name].height)]
    return [(name, k) for k, name in enumerate(owners)]


def _pose_rows(
    tree: Tree, name: str, value: Any, length: float
) -> tuple[PoseTarget, list[np.ndarray], np.ndarray]:
    """Return the target of a pose or rotation, the values of its rows, and reasons why it is impossible."""
    joint = tree.description._ball_joints.get(name)
    target = PoseTarget(name, whole=joint is None and hasattr(value, "translation"))
    if joint is not None:
        R = ball_matrix(tree.description, joint, value)
    else:
        R = (value.rotation if target.whole else value).as_matrix()
    parts = [R[..., i, k] for k in range(3) for i in range(3)]
    if joint is not None:
        return target, parts, _out_of_room(motion_subspace(tree), name, R, None, length)
    part, move = frame_part(tree, name), None
    if target.whole:
        place = placed_reference(part, value)
        move = place - reference_of(part)
        parts = [*np.moveaxis(place, -1, 0), *parts]
    return target, parts, _out_of_room(motion_subspace(tree), name, R @ np.array(part.axes), move, length)


def _values(tree: Tree, one: NamedInput, key: str, value: Any) -> list[np.ndarray]:
    """Return an array of target values for each row of a name, real or of the mechanism's scalar type."""
    if not one.valued:
        given = as_numbers(value)
        if given is not None and given.shape[-2:] == (4, 4):
            message = (
                f"`{key}` must be a pose, got a matrix. Give RigidTransform.from_matrix(matrix) of SciPy."
            )
            raise InputError(message, name=key, key=key)
        hinges = [j for j in tree.description.joints if j.bodies[1] == key and j.dof == 1]
        if hinges and given is not None and given.ndim == 0:
            name = hinges[0].name
            message = f"'{key}' is a body, which has no value. Give its joint '{name}' a value, or '{key}' a "
            raise InputError(f"{message}RigidTransform or Rotation of SciPy.", name=key, joint=name)
        ball = part_of(key)
        if ball in tree.description._ball_joints:
            message = f"'{key}' is an angular velocity alone. Give '{ball}' a rotation vector or a Rotation."
            raise InputError(message, name=key)
        raise InputError(
            f"'{key}' includes angular velocities, which have no value that could fix a "
            "configuration. Give the pose of the body as a SciPy RigidTransform, the displacement from the "
            "reference configuration as returned by pose(), or its orientation as a Rotation; or give points "
            "of it.",
            name=key,
        )
    a = numbers(key, value)
    if a.dtype not in (np.float64, tree.scalar):
        raise InputError(f"`{key}` must be real numbers, got {a.dtype}.", key=key, got=a.dtype)
    if one.height > 1 and (a.ndim == 0 or a.shape[-1] != one.height):
        raise invalid(key, f"must have shape (..., {one.height})", a.shape)
    return [a] if one.height == 1 else [a[..., k] for k in range(one.height)]


def _too_large(name: str, wanted: np.ndarray) -> np.ndarray:
    """Return reasons why values above `ARGUMENT_MAX` are impossible; '' for smaller values."""
    why = np.full(wanted.shape, "", dtype=object)
    for index in np.argwhere(np.abs(wanted.real) > ARGUMENT_MAX):
        why[tuple(index)] = f"{name} = {wanted[tuple(index)].real:g}, which exceeds {ARGUMENT_MAX:g}"
    return why


def _no_measure(name: str, wanted: np.ndarray, largest: float) -> np.ndarray:
    """Return reasons why a distance or an angle cannot have given values; '' for possible values."""
    why = np.full(wanted.shape, "", dtype=object)
    for index in np.argwhere((wanted.real <= 0) | (np.isfinite(largest) & (wanted.real >= largest))):
        x = float(wanted[tuple(index)].real)
        why[tuple(index)] = (
            f"{name} = {x:g}, but an angle of two directions must be more than 0 and less than π"
            if largest < np.inf
            else f"{name} = {x:g}, but a distance is never negative"
            if x < 0
            else f"{name} = 0, where a distance has no direction; name the rows of a point instead"
        )
    return why


def _out_of_room(
    room: MotionSubspace, body: str, R: np.ndarray, move: np.ndarray | None, length: float
) -> np.ndarray:
    """Return reasons why a body cannot have a pose; '' for possible poses.

    The reason is a rotation about another direction, or a translation out of the plane of motion.
    """
    tilt = np.zeros(R.shape[:-2])
    if room.turns == 0:
        tilt = np.linalg.norm(R - np.eye(3), axis=(-2, -1))
    elif room.normal is not None:
        tilt = np.linalg.norm(R @ room.normal - room.normal, axis=-1)
    rise = np.zeros(tilt.shape)
    if move is not None and room.normal is not None and room.moves == 2:
        rise = np.abs(move @ room.normal)
    why = np.full(tilt.shape, "", dtype=object)
    for index in np.argwhere((tilt > PLANARITY_TOL) | (rise > PLANARITY_TOL * length)):
        k = tuple(index)
        if tilt[k] > PLANARITY_TOL:
            free = "does not turn" if room.turns == 0 else f"turns about {_direction(room)} only"
            why[k] = f"'{body}' {free}, and the requested pose tilts it by {tilt[k]:.2g} rad"
        else:
            why[k] = (
                f"'{body}' moves in the plane normal to {_direction(room)}, and the requested pose leaves it "
                f"by {rise[k]:.2g}"
            )
    return why


def _direction(room: MotionSubspace) -> str:
    """Return the direction of all axes of rotation, as text."""
    assert room.normal is not None  # for the type checker
    return "(" + ", ".join(f"{x:.3g}" for x in room.normal + 0.0) + ")"


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
    if held := description._held:
        moving = [k for k, name in enumerate(names) if name not in held]
        a = a[None] if a.ndim == 0 and len(moving) == 1 else a
        if a.ndim and a.shape[-1] == len(moving) < len(names):
            whole = np.array([held.get(name, 0.0) for name in names], a.dtype)
            whole = np.tile(whole, (*a.shape[:-1], 1))
            whole[..., moving] = a
            return whole
    elif a.ndim == 0 and len(names) == 1:
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
    names = [split_row(key) for key in inputs if isinstance(key, str)]
    return not any(base in description._valued_names or row.startswith(EULER) for base, row in names)


def _free_joints(description: MechanismDescription) -> dict[str, Joint]:
    """Return the free joints to ground by name."""
    return {j.name: j for j in description.joints if j.type == "free" and GROUND in j.bodies}


def free_joints_as_poses(description: MechanismDescription, inputs: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return inputs with a body pose in place of each free joint to ground."""
    free = _free_joints(description)
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


def _from_names(description: MechanismDescription, inputs: Mapping[Any, Any]) -> np.ndarray:
    """Return coordinates (..., M) from a dict of joints, components or rotations."""
    names = description.coordinates
    given: dict[str, np.ndarray] = {}
    for key, value in inputs.items():
        for name, x in single_entries(description, key, value):
            if name in given:
                raise InputError(f"Coordinate '{name}' of '{description.name}' is given twice.", name=name)
            given[name] = x
    for name, value in description._held.items():
        given.setdefault(name, np.asarray(value))
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
    if (whole := part_of(key)) in description._parts and whole not in joints:
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


def real_inputs(inputs: Any) -> Any:
    """Return inputs without complex steps."""
    if isinstance(inputs, Mapping):
        return {key: real_inputs(value) for key, value in inputs.items()}
    a = as_numbers(inputs)
    return a.real if a is not None and a.dtype.kind == "c" else inputs
