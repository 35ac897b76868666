"""Targets of a configuration: rows of the kernels and the values that they must take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.description.description import find_part
from kic.description.parts import Body, Frame
from kic.description.validation import GROUND
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import relative_axes, rotation_items
from kic.kinematics.items import Between, Item, directions_on
from kic.kinematics.tree import Tree
from kic.numerics.rotations import displaced


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


def turned_items(tree: Tree, held: PoseTarget) -> list[Item]:
    """Return the rows of a pose with three `rotation_items` in place of the nine components of the axes."""
    joint = tree.description._ball_joints.get(held.body)
    if joint is not None:
        return rotation_items(Between(tree, joint.bodies), np.eye(3))
    part = frame_part(tree, held.body)
    place = [Item.point_on(tree, part.body, reference_of(part))] if held.whole else []
    return place + rotation_items(Between(tree, (GROUND, part.body)), np.array(part.axes))


def frame_part(tree: Tree, name: str) -> Body | Frame:
    """Return the body or frame with a name."""
    part = find_part(tree.description, name, "bodies", "frames", argument="of")
    assert isinstance(part, Body | Frame)  # for the type checker: `find_part` searches these kinds only
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
