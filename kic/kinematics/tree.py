"""Spanning tree of a drawing, its cuts, and the packed tables that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription, forest
from kic.description.parts import Joint
from kic.description.validation import GROUND
from kic.kernels.layout import BALL, GROUP, KIND, PARENT, PRISMATIC, REVOLUTE
from kic.numerics.arrays import step_vanishes


@dataclass(frozen=True)
class Step:
    """One freedom of a joint as a column of the tree: kind, which component, unit axis in the drawing."""

    kind: int
    component: int
    axis: np.ndarray


def unit(v: Any) -> np.ndarray:
    """The unit vector along v; complex steps pass."""
    a = np.asarray(v)
    return a / np.sqrt(a @ a)


def steps(joint: Joint, backwards: bool) -> list[Step]:
    """A joint as revolutes, sliders and balls, in the order from parent to child.

    Walked backwards, order and axes turn round and every coordinate keeps its sign.
    """
    kind = joint.type
    axis = unit(joint.axis) if joint.axis else np.zeros(3)
    axis2 = unit(joint.axis2) if joint.axis2 else np.zeros(3)
    ball = [(BALL, k, e) for k, e in enumerate(np.eye(3))]
    sliders = [(PRISMATIC, k, e) for k, e in enumerate(np.eye(3))]
    made: list[tuple[int, int, np.ndarray]] = {
        "fixed": [],
        "revolute": [(REVOLUTE, 0, axis)],
        "prismatic": [(PRISMATIC, 0, axis)],
        "cylindrical": [(REVOLUTE, 0, axis), (PRISMATIC, 1, axis)],
        "universal": [(REVOLUTE, 0, axis), (REVOLUTE, 1, axis2)],
        "spherical": ball,
        "planar": [(PRISMATIC, 0, axis), (PRISMATIC, 1, axis2), (REVOLUTE, 2, np.cross(axis, axis2))],
        "free": sliders + [(BALL, k + 3, e) for _, k, e in ball],
    }[kind]
    if backwards:
        # the three axes of a ball come together and keep their order
        balls = [Step(k, c, a) for k, c, a in made if k == BALL]
        return balls + [Step(k, c, -a) for k, c, a in reversed(made) if k != BALL]
    return [Step(k, c, a) for k, c, a in made]


def frame_axes(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column is `axis`; exact for axes along x, y or z."""
    first = np.zeros(3, axis.dtype)
    first[np.argmin(np.abs(axis.real))] = 1  # the same one under a complex step
    first = unit(first - (first @ axis) * axis)
    return np.stack([first, np.cross(axis, first), axis], axis=1)


class Tree:
    """Spanning tree of a drawing.

    Coupled joints and then those named in `coordinates` are kept; of the others, those with the most freedoms
    are cut first.
    Columns are numbered parents first and otherwise in the order of the coordinates.

    Attributes
    ----------
    cuts : tuple of Joint
        Joints left out of the tree, one for each loop.
    columns : tuple of str
        Coordinate (component) that each column moves.
    frame : dict of str to int
        Column whose frame carries each body; -1 for what stands on ground.
    cols, geometry
        Tables of the kernels (see `kic.kernels.layout`).
    """

    def __init__(self, drawing: MechanismDescription) -> None:
        self.description = drawing
        self.scalar = np.dtype(complex if drawing.has_complex_step else float)
        kept = self._span(drawing)
        self.cuts = tuple(joint for joint in drawing.joints if joint.name not in kept)
        self.frame: dict[str, int] = {GROUND: -1}
        self.backwards: dict[str, bool] = {}
        self._names: list[str] = []
        self.zero_axes: list[np.ndarray] = []
        self.zero_origins: list[np.ndarray] = []
        self._cols: list[list[int]] = []
        self._drawn: list[float] = []
        self.state_size = 0
        for joint, parent, child in self._walk(drawing, kept):
            self._append(joint, parent, child)
        self.columns: tuple[str, ...] = tuple(self._names)
        self.cols = np.array(self._cols, dtype=np.int64).reshape(-1, 5)
        self.geometry = self._geometry()
        self.column: dict[str, int] = dict(zip(self.columns, range(self.size), strict=True))

    @staticmethod
    def _span(drawing: MechanismDescription) -> frozenset[str]:
        """Names of the joints of a spanning tree: coupled ones first, then wanted ones, then the stiffest."""
        wanted, coupled = {name.split(".")[0] for name in drawing.coordinates or ()}, drawing.coupled
        return forest(
            sorted(drawing.joints, key=lambda j: (j.name not in coupled, j.name not in wanted, j.dof))
        )

    @staticmethod
    def _walk(drawing: MechanismDescription, kept: frozenset[str]) -> list[tuple[Joint, str, str]]:
        """Kept joints with parent and child body, parents first, else in the order of the coordinates."""
        rank = {name: i for i, name in enumerate(drawing.coordinate_names)}
        at: dict[str, list[tuple[int, int, Joint]]] = {}
        for i, joint in enumerate(drawing.joints):
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
        """Add the columns of a joint and hang the child body on the last of them."""
        backwards = joint.bodies[0] == child
        self.backwards[joint.name] = backwards
        above = self.frame[parent]
        origin = np.array(joint.at or (0.0, 0.0, 0.0))
        made = steps(joint, backwards)
        first_ball = next((len(self._cols) + i for i, s in enumerate(made) if s.kind == BALL), -1)
        for step in made:
            n = len(self._cols)
            ball = step.kind == BALL
            group = first_ball if ball else n
            reach = (group + 3 if backwards else group) if ball else n
            self._cols.append([above, step.kind, reach, self.state_size if n == group else -1, group])
            if n == group:
                self.state_size += 4 if ball else 1
            self._drawn.append(joint.value[step.component])  # type: ignore[index]
            self.zero_axes.append(np.eye(3) if ball else frame_axes(step.axis))
            self.zero_origins.append(origin)
            self._names.append(joint.components[step.component])
            above = n
        self.frame[child] = above

    def _geometry(self) -> np.ndarray:
        """Table of offsets, zero rotations and drawn values."""
        table = np.zeros((len(self._cols), 13), self.scalar)
        for n, (parent, _, _, _, group) in enumerate(self._cols):
            if group == n:  # the later axes of a ball are never read
                table[n, :3] = self.local_point(parent, self.zero_origins[n])
                table[n, 3:12] = (self.axes(parent).T @ self.zero_axes[n]).ravel()
            table[n, 12] = self._drawn[n]
        return table

    def axes(self, frame: int) -> np.ndarray:
        """Axes (3, 3) of a frame in the drawing."""
        return np.eye(3) if frame < 0 else self.zero_axes[frame]

    def local_point(self, frame: int, point: Any) -> np.ndarray:
        """Coordinates, in a frame, of a point of the drawing."""
        if frame < 0:
            return np.asarray(point, dtype=self.scalar)
        return self.zero_axes[frame].T @ (np.asarray(point, dtype=self.scalar) - self.zero_origins[frame])

    def world_point(self, frame: int, local: Any) -> np.ndarray:
        """Where a point given in a frame is drawn."""
        if frame < 0:
            return np.asarray(local, dtype=self.scalar)
        return self.zero_origins[frame] + self.zero_axes[frame] @ np.asarray(local, dtype=self.scalar)

    def local_vector(self, frame: int, vector: Any) -> np.ndarray:
        """Components, in a frame, of a vector of the drawing."""
        return self.axes(frame).T @ np.asarray(vector, dtype=self.scalar)

    @property
    def size(self) -> int:
        """Number of columns M."""
        return len(self.columns)

    @cached_property
    def balls(self) -> tuple[int, ...]:
        """First columns of the ball joints."""
        return tuple(n for n in range(self.size) if self._cols[n][KIND] == BALL and self._cols[n][GROUP] == n)

    @cached_property
    def open(self) -> bool:
        """Whether nothing ties the columns: no loop, no coupling, no fixed distance, no contact."""
        drawing = self.description
        return not (self.cuts or drawing.couplings or drawing.fixed_distances or drawing.closed_contacts)

    @cached_property
    def to_coordinates(self) -> np.ndarray | None:
        """Column of each default coordinate; None where they are the columns as they stand, or not all."""
        if not self.open or len(self.description.coordinate_names) != self.size:
            return None
        order = np.array([self.column[name] for name in self.description.coordinate_names], dtype=np.intp)
        return None if np.array_equal(order, np.arange(self.size)) else order

    def path(self, frame: int) -> list[int]:
        """Columns between ground and a frame."""
        columns: list[int] = []
        while frame >= 0:
            columns.append(frame)
            frame = self._cols[frame][PARENT]
        return columns[::-1]

    def has_ball(self, frame: int) -> bool:
        """Whether a ball joint is on the path to a frame."""
        return any(self._cols[n][KIND] == BALL for n in self.path(frame))

    @cached_property
    def planar_normal(self) -> np.ndarray | None:
        """Common normal if every motion is in parallel planes, else None."""
        axes = [a[:, 2] for a, c in zip(self.zero_axes, self._cols, strict=True) if c[1] == REVOLUTE]
        slides = [a[:, 2] for a, c in zip(self.zero_axes, self._cols, strict=True) if c[1] == PRISMATIC]
        if not axes or self.balls:
            return None
        normal = axes[0]
        # the sign is the one that the reader sees: positive along the world axis it is closest to
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))].real)
        out = [*np.cross(axes, normal), *(s @ normal for s in slides)]
        flat = all(np.linalg.norm(x) < 1e-12 and step_vanishes(x, *axes, *slides) for x in out)
        return normal if flat else None
