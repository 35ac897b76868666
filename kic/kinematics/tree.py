"""Spanning tree of a mechanism, its cut joints, and the packed tables of the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import starmap
from math import floor, log10
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription, forest, given_names
from kic.description.parts import Joint
from kic.description.validation import GROUND, part_of
from kic.errors import unfinished_type
from kic.kernels import layout as lay
from kic.numerics.arrays import step_vanishes
from kic.numerics.caches import without_caches
from kic.numerics.linalg import unit
from kic.numerics.rotations import quaternion_from_vector

# sine of the angle below which axes count as parallel; unit vectors are exact to a few eps
PLANARITY_ATOL = 1e-12
# share of the extent below which distances count as small, and below which they may be rounding
SMALL, SMALLEST = 0.1, 1e-7


@dataclass(frozen=True)
class Step:
    """One coordinate of a joint as a column of the tree: kind, component, unit axis in world axes."""

    kind: int
    component: int
    axis: np.ndarray


def ball_axes(joint: Joint) -> np.ndarray:
    """Return the axes (3, 3), as columns, of the coordinates of a spherical or free joint."""
    if joint.axis is None or joint.axis2 is None:
        return np.eye(3)
    x, z = unit(joint.axis), unit(np.cross(joint.axis, joint.axis2))
    return np.stack([x, np.cross(z, x), z], axis=1)


def steps(joint: Joint, backwards: bool) -> list[Step]:
    """Return a joint as revolute, prismatic and ball columns, in the order from parent to child.

    For a joint traversed backwards, order and axes are reversed and every coordinate keeps its sign.
    """
    kind = joint.type
    axis = unit(joint.axis) if joint.axis else np.zeros(3)
    axis2 = unit(joint.axis2) if joint.axis2 else np.zeros(3)
    three = ball_axes(joint).T
    made: list[tuple[int, int, np.ndarray]] | None = {
        "fixed": [],
        "revolute": [(lay.REVOLUTE, 0, axis)],
        "prismatic": [(lay.PRISMATIC, 0, axis)],
        "cylindrical": [(lay.REVOLUTE, 0, axis), (lay.PRISMATIC, 1, axis)],
        "universal": [(lay.REVOLUTE, 0, axis), (lay.REVOLUTE, 1, axis2)],
        "spherical": [(lay.BALL, k, e) for k, e in enumerate(three)],
        "planar": [
            (lay.PRISMATIC, 0, axis),
            (lay.PRISMATIC, 1, axis2),
            (lay.REVOLUTE, 2, np.cross(axis, axis2)),
        ],
        "free": [
            *((lay.PRISMATIC, k, e) for k, e in enumerate(three)),
            *((lay.BALL, k + 3, e) for k, e in enumerate(three)),
        ],
    }.get(kind)
    if made is None:
        where = "steps() in kic/kinematics/tree.py"
        raise unfinished_type("joint", joint.name, kind, "columns of the tree", where)
    if backwards:
        # the three axes of a ball joint stay together and keep their order
        balls = [step for step in made if step[0] == lay.BALL]
        made = balls + [(kind, c, -a) for kind, c, a in reversed(made) if kind != lay.BALL]
    return list(starmap(Step, made))


def frame_axes(axis: np.ndarray) -> np.ndarray:
    """Return a rotation whose third column is `axis`; it is exact for axes along x, y or z."""
    first = np.zeros(3, axis.dtype)
    first[np.argmin(np.abs(axis.real))] = 1  # a complex step does not change the choice
    x, y, z = first = unit(first - (first @ axis) * axis)
    a, b, c = axis
    # written out, because np.cross dominates the time to read a long chain
    return np.array([[x, b * z - c * y, a], [y, c * x - a * z, b], [z, a * y - b * x, c]])


def _size_classes(description: MechanismDescription) -> dict[str, int]:
    """Return by joint the power of ten, at most 0, of its distance to the nearest joints of its bodies.

    It is relative to `SMALL` times the extent of all joints. The larger distance of the two bodies counts; it
    is small for joints of a small loop. Joints at the same position are ignored.
    """
    sizes = dict.fromkeys((joint.name for joint in description.joints), 0)
    placed = [joint for joint in description.joints if joint.at]
    if not placed or len(forest(description.joints)) == len(sizes):  # no loops
        return sizes
    places = np.array([joint.at for joint in placed]).real
    extent = float(np.ptp(places, axis=0).max())
    at: dict[str, list[int]] = {}
    for k, joint in enumerate(placed):
        for body in joint.bodies:
            at.setdefault(body, []).append(k)
    for k, joint in enumerate(placed):
        apart = [np.linalg.norm(places[at[body]] - places[k], axis=1) for body in joint.bodies]
        near = max(a[a > SMALLEST * extent].min(initial=extent) for a in apart)
        if near < SMALL * extent:
            sizes[joint.name] = floor(log10(near / (SMALL * extent)))
    return sizes


class Tree:
    """Spanning tree of a mechanism.

    The tree keeps coupled joints first, then those named in `coordinates`. Of the others, joints with the
    most degrees of freedom are cut first, then those far from others: a small loop in a large mechanism is
    cut once, and keeps small closure rows. Columns are numbered with parents first, and otherwise in the
    order of the coordinates.

    Attributes
    ----------
    cuts : tuple of Joint
        Joints left out of the tree, one for each loop.
    columns, size : tuple of str, int
        Coordinate (component) of each of the M columns, and M.
    frame : dict of str to int
        Column whose frame carries each body; -1 for bodies fixed to ground.
    cols, geometry : (M, 5) int64 and (M, 13) ndarray
        Tables of the kernels (see `kic.kernels.layout`).
    """

    def __init__(self, description: MechanismDescription) -> None:
        self.description = description
        self.scalar = np.dtype(complex if description._has_complex_step else float)
        kept = self._span(description)
        self.cuts = tuple(joint for joint in description.joints if joint.name not in kept)
        self.frame: dict[str, int] = {GROUND: -1}
        self.backwards: dict[str, bool] = {}
        self._names: list[str] = []
        self.zero_axes: list[np.ndarray] = []
        self.zero_origins: list[np.ndarray] = []
        self._cols: list[list[int]] = []
        self._drawn: list[float] = []
        self.state_size = 0
        for joint, parent, child in self.walk(description, kept):
            self._append(joint, parent, child)
        self.columns: tuple[str, ...] = tuple(self._names)
        self.size = len(self.columns)
        self.cols = np.array(self._cols, dtype=np.int64).reshape(-1, lay.PLAN_WIDTH)
        self.geometry = self._geometry()
        self.column: dict[str, int] = dict(zip(self.columns, range(self.size), strict=True))

    __getstate__ = without_caches

    @staticmethod
    def _span(description: MechanismDescription) -> frozenset[str]:
        """Return the joints of a spanning tree by priority: coupled, `coordinates`, few dof, small loops."""
        wanted, coupled = (
            {part_of(name) for name in given_names(description, "coordinates") or ()},
            description._coupled,
        )
        sizes = _size_classes(description)
        return forest(
            sorted(
                description.joints,
                key=lambda j: (j.name not in coupled, j.name not in wanted, j.dof, sizes[j.name]),
            )
        )

    @staticmethod
    def walk(description: MechanismDescription, kept: frozenset[str]) -> list[tuple[Joint, str, str]]:
        """Return kept joints with parent and child body, parents first, otherwise in coordinate order."""
        rank = {name: i for i, name in enumerate(description.coordinates)}
        at: dict[str, list[tuple[int, int, Joint]]] = {}
        for i, joint in enumerate(description.joints):
            if joint.name in kept:
                place = min((rank[c] for c in joint.components if c in rank), default=-1)
                for body in joint.bodies:
                    at.setdefault(body, []).append((place, i, joint))
        reached, heap, walk = {GROUND}, list[tuple[int, int, Joint]](), []
        heap.extend(sorted(at.get(GROUND, []), key=lambda entry: entry[:2]))
        while heap:
            _, _, joint = heappop(heap)
            first, second = joint.bodies
            parent, child = (first, second) if first in reached else (second, first)
            walk.append((joint, parent, child))
            reached.add(child)
            for entry in at[child]:
                if entry[2] is not joint:
                    heappush(heap, entry)
        return walk

    def _append(self, joint: Joint, parent: str, child: str) -> None:
        """Add the columns of a joint and attach the child body to the last of them."""
        backwards = joint.bodies[0] == child
        self.backwards[joint.name] = backwards
        above = self.frame[parent]
        origin = np.array(joint.at or (0.0, 0.0, 0.0))
        made = steps(joint, backwards)
        first_ball = next((len(self._cols) + i for i, s in enumerate(made) if s.kind == lay.BALL), -1)
        for step in made:
            n = len(self._cols)
            ball = step.kind == lay.BALL
            group = first_ball if ball else n
            reach = (group + 3 if backwards else group) if ball else n
            self._cols.append([above, step.kind, reach, self.state_size if n == group else -1, group])
            if n == group:
                self.state_size += 4 if ball else 1
            self._drawn.append(joint.value[step.component])  # type: ignore[index]
            self.zero_axes.append(ball_axes(joint) if ball else frame_axes(step.axis))
            self.zero_origins.append(origin)
            self._names.append(joint.components[step.component])
            above = n
        self.frame[child] = above

    def _geometry(self) -> np.ndarray:
        """Return the table of offsets, zero rotations and reference values."""
        table = np.zeros((len(self._cols), lay.NUMBERS_WIDTH), self.scalar)
        for n, (parent, _, _, _, group) in enumerate(self._cols):
            if group == n:  # the other axes of a ball joint are never read
                table[n, lay.OFFSET : lay.TURN0] = self.local_point(parent, self.zero_origins[n])
                table[n, lay.TURN0 : lay.DRAWN] = (self.axes(parent).T @ self.zero_axes[n]).ravel()
            table[n, lay.DRAWN] = self._drawn[n]
        return table

    def axes(self, frame: int) -> np.ndarray:
        """Return the axes (3, 3) of a frame in the reference configuration."""
        return np.eye(3) if frame < 0 else self.zero_axes[frame]

    def local_point(self, frame: int, point: Any) -> np.ndarray:
        """Return the coordinates, in a frame, of a world point of the reference configuration."""
        if frame < 0:
            return np.asarray(point, dtype=self.scalar)
        return self.zero_axes[frame].T @ (np.asarray(point, dtype=self.scalar) - self.zero_origins[frame])

    def local_vector(self, frame: int, vector: Any) -> np.ndarray:
        """Return the components, in a frame, of a world vector of the reference configuration."""
        axes = np.eye(3) if frame < 0 else self.zero_axes[frame]
        return axes.T @ np.asarray(vector, dtype=self.scalar)

    @cached_property
    def balls(self) -> tuple[int, ...]:
        """Tuple of the first columns of the ball joints."""
        return tuple(
            n
            for n in range(self.size)
            if self._cols[n][lay.KIND] == lay.BALL and self._cols[n][lay.GROUP] == n
        )

    @cached_property
    def single_columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Pair of columns of revolute and prismatic coordinates, and their entries in the state."""
        columns = np.flatnonzero(self.cols[:, lay.KIND] != lay.BALL)
        return columns, self.cols[columns, lay.STATE]

    @cached_property
    def ball_slices(self) -> tuple[tuple[slice, slice], ...]:
        """Tuple of columns and entries in the state (quaternion) of each ball joint."""
        starts = ((n, int(self.cols[n, lay.STATE])) for n in self.balls)
        return tuple((slice(n, n + 3), slice(entry, entry + 4)) for n, entry in starts)

    def states(self, phi: np.ndarray) -> np.ndarray:
        """Return the states (B, S) of coordinates (B, M) in the order of the columns."""
        if not self.balls:
            return phi
        states = np.empty((len(phi), self.state_size), phi.dtype)
        columns, entries = self.single_columns
        states[:, entries] = phi[:, columns]
        for turn, quaternion in self.ball_slices:
            states[:, quaternion] = quaternion_from_vector(phi[:, turn])
        return states

    @cached_property
    def reference_state(self) -> np.ndarray:
        """State (1, S) of the reference configuration."""
        return self.states(self.geometry[None, :, lay.DRAWN].copy())

    @cached_property
    def open(self) -> bool:
        """True if there are no constraints: no loop, coupling, fixed distance or closed contact."""
        description = self.description
        return not (
            self.cuts or description.couplings or description._fixed_measures or description._closed_contacts
        )

    @cached_property
    def has_own_coordinates(self) -> bool:
        """True for an open chain whose default coordinates are all the columns, in any order."""
        return self.open and set(self.description.coordinates) == set(self.columns)

    @cached_property
    def to_coordinates(self) -> np.ndarray | None:
        """Column of each default coordinate; None if these are the columns in order, or do not cover them."""
        if not self.has_own_coordinates:
            return None
        order = np.array([self.column[name] for name in self.description.coordinates], dtype=np.intp)
        return None if np.array_equal(order, np.arange(self.size)) else order

    def path(self, frame: int) -> list[int]:
        """Return the columns between ground and a frame."""
        columns: list[int] = []
        while frame >= 0:
            columns.append(frame)
            frame = self._cols[frame][lay.PARENT]
        return columns[::-1]

    @cached_property
    def paths(self) -> np.ndarray:
        """Mask (M + 1, M) of the columns between ground and each frame; the last row is for ground."""
        paths = np.zeros((self.size + 1, self.size), dtype=bool)
        for n, (parent, *_) in enumerate(self._cols):
            paths[n] = paths[parent]
            paths[n, n] = True
        return paths

    @cached_property
    def turned_by_balls(self) -> list[bool]:
        """List (M + 1) with True for frames that a ball joint carries; the last entry is for ground."""
        return list(np.asarray(self.paths[:, list(self.balls)].any(axis=1)))

    @cached_property
    def planar_normal(self) -> np.ndarray | None:
        """Common normal if all motion is parallel to one plane, else None."""
        axes = [
            a[:, 2] for a, c in zip(self.zero_axes, self._cols, strict=True) if c[lay.KIND] == lay.REVOLUTE
        ]
        slides = [
            a[:, 2] for a, c in zip(self.zero_axes, self._cols, strict=True) if c[lay.KIND] == lay.PRISMATIC
        ]
        if not axes or self.balls:
            return None
        normal = axes[0]
        # make the component along the closest world axis positive
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))].real)
        out = [*np.cross(axes, normal), *(s @ normal for s in slides)]
        if any([np.linalg.norm(x) >= PLANARITY_ATOL for x in out]):
            return None
        stepped = self.scalar.kind == "c" and not all(step_vanishes(x, *axes, *slides) for x in out)
        return None if stepped else normal
