"""Targets of a configuration: rows of the kernels and the values that they must take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.parts import Body, Frame
from kic.description.units import DEGREES_ANGLE_MIN, warn_of_degrees
from kic.errors import InputError, invalid, short_repr
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import relative_axes
from kic.kinematics.euler import EULER, check_sequence
from kic.kinematics.items import Item, directions_on
from kic.kinematics.state import ball_matrix, coordinate_array, free_joints_as_poses
from kic.kinematics.tree import Tree
from kic.numerics.arrays import ARGUMENT_MAX, as_numbers, broadcast_batches, numbers, real_array
from kic.numerics.rotations import displaced

# largest distance of a given pose from the body's plane of motion, relative to the length, and largest tilt
# (rad)
PLANARITY_TOL = 1e-10


@dataclass(frozen=True)
class PoseTarget:
    """Body or frame with a given pose or orientation, or spherical joint with a given rotation.

    Attributes
    ----------
    body : str
        Name of the body, frame or joint.
    whole : bool
        True if the pose is given, False if only the orientation is.
    """

    body: str
    whole: bool

    @property
    def turns_at(self) -> int:
        """Index of the first of the nine orientation rows among the rows of this target."""
        return 3 if self.whole else 0

    def __str__(self) -> str:
        return f"{self.body} ({'pose' if self.whole else 'orientation'})"


@dataclass(frozen=True, slots=True)
class NamedInput:
    """Part or row that inputs may name.

    Attributes
    ----------
    height : int
        Number of rows.
    valued : bool
        True if all rows have values.
    has_pose : bool
        True for a body, frame or spherical joint, which may have a pose.
    largest : float
        Upper bound of values, which are positive: infinite for a distance, π for an angle; 0 for other parts.
    """

    height: int
    valued: bool
    has_pose: bool
    largest: float = 0.0


@dataclass(frozen=True)
class Targets:
    """Named rows and poses of bodies, with their target values.

    Attributes
    ----------
    names : tuple of str
        Rows that are given by name.
    held : tuple of PoseTarget
        Bodies whose pose or orientation is given.
    values : (..., P)
        Values of the named rows, then of the `pose_items` of each body of `held`.
    batch : tuple of int
        Shape of the batch.
    reasons : list of (...) str
        Reasons why members are impossible, known before solving; '' for possible members.
    """

    names: tuple[str, ...]
    held: tuple[PoseTarget, ...]
    values: np.ndarray
    batch: tuple[int, ...]
    reasons: list[np.ndarray]

    @property
    def impossible(self) -> np.ndarray:
        """Array (...) of the first reason why each member is impossible; '' for possible members."""
        first = np.full(self.batch, "", dtype=object)
        for why in self.reasons:
            first = np.where(first == "", np.broadcast_to(why, self.batch), first)
        return first


@dataclass(frozen=True)
class BatchTargets:
    """Targets of a flat batch, with `values` (B, P) of rows and poses as in `Targets`."""

    names: tuple[str, ...]
    held: tuple[PoseTarget, ...]
    values: np.ndarray

    def take(self, some: np.ndarray) -> BatchTargets:
        """Return the targets of some members (n,)."""
        return replace(self, values=self.values[some])


def pose_items(tree: Tree, held: PoseTarget) -> list[Item]:
    """Return the rows of the pose of a body or frame: its reference point and its three axes.

    If only the orientation is given, the point is omitted. The nine components of the axes fix three dof, and
    are redundant but consistent. The rows of a joint are in axes of its first body.
    """
    if held.body in tree.description._ball_joints:
        return relative_axes(tree, tree.description._ball_joints[held.body].bodies)
    part = frame_part(tree, held.body)
    place = [Item.point_on(tree, part.body, reference_of(part))] if held.whole else []
    return place + directions_on(tree, part.body, part.axes)


def frame_part(tree: Tree, name: str) -> Body | Frame:
    """Return the body or frame with a name."""
    part = tree.description._part(name, "bodies", "frames", argument="of")
    assert isinstance(part, Body | Frame)  # for the type checker: `part` searches these kinds only
    return part


def reference_of(part: Body | Frame) -> np.ndarray:
    """Return the reference point, or else the origin, of a body or frame in the reference configuration."""
    return np.array(part.reference or part.origin)


def placed_reference(part: Body | Frame, pose: Any) -> np.ndarray:
    """Return the reference point (..., 3) of a body or frame at a pose, a SciPy `RigidTransform`.

    The pose of a frame locates its origin and axes in the world. The pose of a body is its displacement: that
    of a frame which coincides with the world in the reference configuration.
    """
    return displaced(pose, reference_of(part) - np.array(part.origin))


@dataclass(frozen=True)
class MotionSubspace:
    """Group that contains the motions of all bodies: spatial, about one direction, planar or translation.

    Attributes
    ----------
    turns : {0, 1, 3}
        Number of dof of an orientation.
    moves : {2, 3}
        Number of dof of a point.
    normal : (3,) or None
        Direction of all axes of rotation; None without a single direction.
    """

    turns: int
    moves: int
    normal: np.ndarray | None

    def count(self, held: PoseTarget) -> int:
        """Return the number of dof that the pose or orientation of a body fixes."""
        return self.turns + (self.moves if held.whole else 0)


def motion_subspace(tree: Tree) -> MotionSubspace:
    """Return the group of motions that the joints of a tree allow."""
    if tree.balls:
        return MotionSubspace(3, 3, None)
    slides = tree.cols[:, lay.KIND] == lay.PRISMATIC
    axes = np.array([a[:, 2] for a in tree.zero_axes]).reshape(-1, 3)
    turning = axes[~slides]
    if not len(turning):
        return MotionSubspace(0, 3, None)
    normal = turning[0]
    if np.abs(np.cross(turning, normal)).max() > 1e-12:
        return MotionSubspace(3, 3, None)
    flat = np.abs(axes[slides] @ normal).max(initial=0.0) < 1e-12
    return MotionSubspace(1, 2 if flat else 3, normal)


def named_inputs(description: MechanismDescription, inputs: Any) -> dict[str, Any]:
    """Return inputs as a dict by names of rows, and of bodies and frames with a pose.

    An array is in the order of the coordinates. Euler angles and coordinates of free joints become poses.
    """
    inputs = free_joints_as_poses(description, inputs)
    if not isinstance(inputs, Mapping):
        a = coordinate_array(description, "values", inputs)
        inputs = {name: a[..., k] for k, name in enumerate(description.coordinates)}
    named: dict[str, Any] = {}
    for key, value in _gathered(description, inputs).items():
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
    """Return inputs with three angles under separate keys, such as axes of a grid, joined in one array.

    They are Euler angles, or components of the rotation vector of a joint.
    """
    rest = dict(inputs)
    turned = [key.rpartition(".")[0] for key in inputs if isinstance(key, str) and "." in key]
    balls = description._ball_joints
    turned = [whole for whole in turned if f".{EULER}" in whole or whole in balls]
    for whole in dict.fromkeys(turned):
        names = [f"{whole}.{k}" for k in (1, 2, 3)]
        if whole in rest and any(name in rest for name in names):
            raise InputError(f"The orientation of '{whole}' is given twice. Give it once.", name=whole)
        if all(name in rest for name in names):
            parts = {name: numbers(name, rest.pop(name)) for name in names}
            batch = broadcast_batches(**{name: part.shape for name, part in parts.items()})
            rest[whole] = np.stack([np.broadcast_to(part, batch) for part in parts.values()], axis=-1)
    return rest


def _orientation(description: MechanismDescription, key: str, value: Any) -> tuple[str, Any]:
    """Return name and `Rotation` for the three Euler angles of a frame or body; other inputs are unchanged.

    The orientation is regular in gimbal lock too.
    """
    name, _, row = key.partition(".")
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
        ball = key.partition(".")[0]
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
