"""Targets: what a posture is to have, as rows of the kernels and the values that they are to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.parts import Body, Distance
from kic.errors import InputError, short_repr
from kic.kernels.layout import DIRECTION, KIND, LARGEST, POINT, PRISMATIC
from kic.kinematics.items import Item
from kic.kinematics.state import coordinate_array
from kic.kinematics.tree import Tree
from kic.numerics.arrays import ARGUMENT_MAX, broadcast_batches, numbers
from kic.numerics.rotations import displaced

# how far a given pose may stand out of the plane in which its body moves, relative to the length
PLANARITY_TOL = 1e-10


@dataclass(frozen=True)
class PoseTarget:
    """A body whose pose is given, or its orientation alone."""

    body: str
    whole: bool

    @property
    def turns_at(self) -> int:
        """Which of its rows are the first of the nine components of its orientation."""
        return 3 if self.whole else 0

    def __str__(self) -> str:
        return f"{self.body} ({'pose' if self.whole else 'orientation'})"


@dataclass(frozen=True)
class Targets:
    """Rows by name and bodies by pose, with the values wanted of them.

    Attributes
    ----------
    names : tuple of str
        Rows that are given by name.
    held : tuple of Held
        Bodies whose pose or orientation is given.
    values : (..., P)
        Values of the named rows, then, for each body held, of its `pose_items`.
    batch : tuple of int
        Shape of the batch.
    impossible : (...) str
        Why a member can not be, before anything is solved; '' for the others.
    """

    names: tuple[str, ...]
    held: tuple[PoseTarget, ...]
    values: np.ndarray
    batch: tuple[int, ...]
    impossible: np.ndarray


@dataclass(frozen=True)
class BatchTargets:
    """What the members of a batch were to have: `values` (B, P) of rows and of poses, as in `Targets`."""

    names: tuple[str, ...]
    held: tuple[PoseTarget, ...]
    values: np.ndarray

    def take(self, some: np.ndarray) -> BatchTargets:
        """Those of some members (n,)."""
        return BatchTargets(self.names, self.held, self.values[some])


def pose_items(tree: Tree, held: PoseTarget) -> list[Item]:
    """Rows of a body's place: one point of it, if the whole pose counts, and the drawing's unit vectors.

    The nine components of the unit vectors say three things; like redundant closure rows they agree.
    """
    frame = tree.frame[held.body]
    items = [Item(DIRECTION, frame, local_b=tuple(tree.local_vector(frame, e))) for e in np.eye(3)]
    if held.whole:
        place = tuple(tree.local_point(frame, reference_of(tree, held.body)))
        items.insert(0, Item(POINT, frame, local_b=place))
    return items


def reference_of(tree: Tree, name: str) -> np.ndarray:
    """The point of a body that stands for its place: its reference, else what is drawn at the origin."""
    body = tree.description.part(name, "bodies")
    assert isinstance(body, Body)  # for the type checker: `part` looked among bodies only
    return np.array(body.reference or (0.0, 0.0, 0.0))


@dataclass(frozen=True)
class MotionSubspace:
    """The motions that bodies can have at most: in space, about one direction, in a plane, or sliding.

    Attributes
    ----------
    turns : {0, 1, 3}
        Freedoms of an orientation.
    moves : {2, 3}
        Freedoms of a point.
    normal : (3,) or None
        The direction about which all turning is.
    """

    turns: int
    moves: int
    normal: np.ndarray | None

    def count(self, held: PoseTarget) -> int:
        """As how many inputs a body's pose or orientation counts."""
        return self.turns + (self.moves if held.whole else 0)


def motion_subspace(tree: Tree) -> MotionSubspace:
    """What the joints of a tree leave to its bodies: a group of motions that holds them all."""
    if tree.balls:
        return MotionSubspace(3, 3, None)
    slides = tree.cols[:, KIND] == PRISMATIC
    axes = np.array([a[:, 2] for a in tree.zero_axes]).reshape(-1, 3)
    turning = axes[~slides]
    if not len(turning):
        return MotionSubspace(0, 3, None)
    normal = turning[0]
    if np.abs(np.cross(turning, normal)).max() > 1e-12:
        return MotionSubspace(3, 3, None)
    flat = np.abs(axes[slides] @ normal).max(initial=0.0) < 1e-12
    return MotionSubspace(1, 2 if flat else 3, normal)


def targets_of(tree: Tree, rows: Callable[[str], tuple[int, bool]], length: float, inputs: Any) -> Targets:
    """Targets from an array in the order of the coordinates, or a dict of rows with values and of poses.

    `rows` tells of a name how many rows it has, and whether they all have values.

    Raises
    ------
    InputError, UnknownNameError
        For a wrong shape, or something that has no value.
    """
    drawing = tree.description
    if not isinstance(inputs, Mapping):
        a = coordinate_array(drawing, "inputs", inputs)
        inputs = {name: a[..., k] for k, name in enumerate(drawing.coordinate_names)}
    room = motion_subspace(tree)
    names: list[str] = []
    held: list[PoseTarget] = []
    named: list[np.ndarray] = []
    placed: list[np.ndarray] = []
    reasons: list[np.ndarray] = []
    batches: dict[str, tuple[int, ...]] = {}
    for key, value in inputs.items():
        if not isinstance(key, str):
            raise InputError(f"Expected names of rows as keys, got {short_repr(key)}.")
        if isinstance(drawing.parts.get(key), Body) and hasattr(value, "as_matrix"):
            one = PoseTarget(key, whole=hasattr(value, "translation"))
            rotation = value.rotation if one.whole else value
            reference = reference_of(tree, key)
            place = displaced(value, reference) if one.whole else None
            R = rotation.as_matrix()
            parts = [R[..., i, k] for k in range(3) for i in range(3)]
            if place is not None:
                parts = [*np.moveaxis(place, -1, 0), *parts]
            held.append(one)
            placed += parts
            reasons.append(_out_of_room(room, key, R, None if place is None else place - reference, length))
        else:
            parts = _values(rows, key, value, tree.scalar)
            names.append(key)
            named += parts
            reasons += [_too_large(key, part) for part in parts]
            if isinstance(drawing.parts.get(key), Distance):
                reasons.append(_no_distance(key, parts[0]))
        batches[key] = parts[0].shape if parts else ()
    batch = broadcast_batches(**batches) if batches else ()
    columns = [np.broadcast_to(c, batch) for c in (*named, *placed)]
    values = np.stack(columns, axis=-1) if columns else np.zeros(0)
    impossible = np.full(batch, "", dtype=object)
    for why in reasons:
        if why.ndim == 0 and not why.item():
            continue
        impossible = np.where(impossible == "", np.broadcast_to(why, batch), impossible)
    return Targets(tuple(names), tuple(held), values, batch, impossible)


def _values(
    rows: Callable[[str], tuple[int, bool]], key: str, value: Any, scalar: np.dtype
) -> list[np.ndarray]:
    """Wanted values of the rows of a name, one array each, real or of the drawing's scalar type."""
    height, valued = rows(key)
    if not valued:
        raise InputError(
            f"'{key}' includes angular velocities, which have no value that could fix a posture. Give a body "
            "its pose as a SciPy RigidTransform, the displacement from the drawing as pose() has it, or its "
            "orientation as a Rotation; or give points of it.",
            name=key,
        )
    a = numbers(key, value)
    if a.dtype not in (np.float64, scalar):
        raise InputError(f"Expected `{key}` to be real numbers, got {a.dtype}.", name=key)
    if height > 1 and (a.ndim == 0 or a.shape[-1] != height):
        raise InputError(f"Expected `{key}` to have shape (..., {height}), got {a.shape}.", got=a.shape)
    return [a] if height == 1 else [a[..., k] for k in range(height)]


def _too_large(name: str, wanted: np.ndarray) -> np.ndarray:
    """Reasons against values whose squares are not finite."""
    if wanted.dtype == object or not (np.abs(wanted.real) > LARGEST).any():
        return np.array("", dtype=object)
    why = np.full(wanted.shape, "", dtype=object)
    for index in np.argwhere(np.abs(wanted.real) > ARGUMENT_MAX) if wanted.dtype != object else ():
        why[tuple(index)] = f"{name} = {wanted[tuple(index)].real:g}, which exceeds {ARGUMENT_MAX:g}"
    return why


def _no_distance(name: str, wanted: np.ndarray) -> np.ndarray:
    """Why a distance can not be so long."""
    why = np.full(wanted.shape, "", dtype=object)
    for index in np.argwhere(wanted.real <= 0):
        x = float(wanted[tuple(index)].real)
        why[tuple(index)] = (
            f"{name} = {x:g}, but a distance is never negative"
            if x < 0
            else f"{name} = 0, where a distance has no direction; name the rows of a point instead"
        )
    return why


def _out_of_room(
    room: MotionSubspace, body: str, R: np.ndarray, move: np.ndarray | None, length: float
) -> np.ndarray:
    """Why a body can not have a pose: it turns about one direction, or moves in a plane, only."""
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
            why[k] = f"'{body}' {free}, and the pose asked for tilts it by {tilt[k]:.2g} rad"
        else:
            why[k] = (
                f"'{body}' moves in the plane across {_direction(room)}, and the pose asked for leaves it "
                f"by {rise[k]:.2g}"
            )
    return why


def _direction(room: MotionSubspace) -> str:
    assert room.normal is not None  # for the type checker
    return "(" + ", ".join(f"{x:.3g}" for x in room.normal + 0.0) + ")"
