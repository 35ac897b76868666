"""What a name means: rows of kernel items with labels, for points, bodies, joints and distances.

A row is one dependent with its value (if it has one) and its G, H and D. Closure conditions of a cut
joint are rows of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kic.errors import InputError, LoopError, unknown
from kic.parts import GROUND, Body, Distance, Joint, Point
from kic.tree import Tree, frame_axes, unit

# as in kernels.layout, which is not imported here: it would pull in the compiler
POINT, OMEGA, UNIT, PLANE_ANGLE = 0, 2, 3, 4
DISTANCE, PERPENDICULAR, REACH = 5, 6, 7
NONE = -2
_XYZ = ("x", "y", "z")
_OMEGA = ("wx", "wy", "wz")


@dataclass(frozen=True)
class Item:
    """One entry for the kernels: what, on which frames, with which vectors (in those frames' axes)."""

    kind: int
    frame_b: int
    frame_a: int = NONE
    local_b: tuple[float, ...] = (0.0, 0.0, 0.0)
    local_a: tuple[float, ...] = (0.0, 0.0, 0.0)
    extra: tuple[float, ...] = (0.0, 0.0, 0.0)

    @property
    def height(self) -> int:
        """Rows that it makes."""
        return 3 if self.kind <= OMEGA else 1


@dataclass(frozen=True)
class Rows:
    """Kernel items of a question, and the rows of their table that answer it.

    Attributes
    ----------
    labels : tuple of str
        Names of the rows.
    spans : dict of str to slice
        Rows that each asked name has.
    valued : (P,) bool
        Which rows have a value (angular velocities have none).
    holonomic : bool
        Whether every row is the rate of something.
    select : (P,) int or None
        Rows of the table that were asked for; None for all.
    """

    labels: tuple[str, ...]
    spans: dict[str, slice]
    valued: np.ndarray
    select: np.ndarray | None
    items: np.ndarray
    vectors: np.ndarray
    height: int
    holonomic: bool


def make_rows(tree: Tree, of: Iterable[str]) -> Rows:
    """Rows of a list of names, such as ``["tip", "hand.wx", "A"]``.

    Raises
    ------
    UnknownNameError, InputError
        For a name that is not there, or a part that has no such rows.
    """
    names = tuple(of)
    if not names:
        raise InputError("Expected at least one name in `of`, got none.")
    items: list[Item] = []
    labels: list[str] = []
    valued: list[bool] = []
    chosen: list[int] = []
    spans: dict[str, slice] = {}
    height = 0
    known: dict[str, tuple[int, list[str], list[bool]]] = {}
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"Expected names in `of`, got {name!r}.")
        whole, _, part = name.partition(".")
        group = "omega" if part in _OMEGA else "angle" if part == "angle" else ""
        key = f"{whole}.{group}" if group else whole
        if key not in known:
            made, row_labels, has_value = _items(tree, key)
            known[key] = (height, row_labels, has_value)
            items += made
            height += sum(item.height for item in made)
        start, row_labels, has_value = known[key]
        if not part or key == name:
            picked = list(range(len(row_labels)))
        elif name in row_labels:
            picked = [row_labels.index(name)]
        else:
            raise unknown("row", name, tree.drawing.name, row_labels)
        spans[name] = slice(len(chosen), len(chosen) + len(picked))
        chosen += [start + k for k in picked]
        labels += [row_labels[k] for k in picked]
        valued += [has_value[k] for k in picked]
    everything = chosen == list(range(height))
    table, vectors = pack(tree, items)
    return Rows(
        labels=tuple(labels),
        spans=spans,
        valued=np.array(valued),
        select=None if everything else np.array(chosen, dtype=np.intp),
        items=table,
        vectors=vectors,
        height=height,
        holonomic=all(valued),
    )


def pack(tree: Tree, items: list[Item]) -> tuple[np.ndarray, np.ndarray]:
    """Tables (n, 5) and (n, 9) of the kernels for a list of items, their rows one after the other."""
    table = np.zeros((len(items), 5), dtype=np.int64)
    vectors = np.zeros((len(items), 9))
    row = 0
    for i, item in enumerate(items):
        ordered = tree.has_ball(item.frame_b) or tree.has_ball(item.frame_a)
        table[i] = (item.kind, item.frame_b, item.frame_a, row, int(ordered))
        vectors[i] = (*item.local_b, *item.local_a, *item.extra)
        row += item.height
    return table, vectors


def plain_rows(tree: Tree, items: list[Item]) -> Rows:
    """Rows of a list of items, without names."""
    height = sum(item.height for item in items)
    table, vectors = pack(tree, items)
    return Rows((), {}, np.ones(height, dtype=bool), None, table, vectors, height, True)


def _items(tree: Tree, key: str) -> tuple[list[Item], list[str], list[bool]]:
    """Items of one part (or a body's angle or turning), labels of their rows and which have values."""
    name, _, group = key.partition(".")
    if name == GROUND:
        raise InputError(f"'{GROUND}' does not move; ask about a point, a body or a joint.")
    part = tree.drawing.part(name)
    if group == "angle":
        return _angle_items(tree, part, key)
    if group == "omega" and isinstance(part, Body):
        return [Item(OMEGA, tree.frame[name])], [f"{name}.{c}" for c in _OMEGA], [False] * 3
    if isinstance(part, Joint):
        return _joint_items(tree, part)
    if isinstance(part, Point):
        return [point_item(tree, part)], [f"{name}.{c}" for c in _XYZ], [True] * 3
    if isinstance(part, Body):
        return _body_items(tree, part)
    if isinstance(part, Distance):
        a, b = (point_item(tree, tree.drawing.point(p)) for p in part.points)
        return [Item(DISTANCE, b.frame_b, a.frame_b, b.local_b, a.local_b)], [name], [True]
    raise InputError(f"'{name}' is a load; it has no motion. Ask about its point or body.")


def _joint_items(tree: Tree, joint: Joint) -> tuple[list[Item], list[str], list[bool]]:
    if joint in tree.cuts:
        raise LoopError(
            f"Joint '{joint.name}' closes a loop of '{tree.drawing.name}'; its motion follows from closing, "
            "which this version does not do."
        )
    if not joint.freedoms:
        raise InputError(f"Joint '{joint.name}' is fixed; it has no motion.")
    columns = [tree.column[c] for c in joint.components]
    values = [tree.cols[n, 1] <= 1 for n in columns]
    return [Item(UNIT, n) for n in columns], list(joint.components), values


def point_item(tree: Tree, point: Point) -> Item:
    """Three rows of a point."""
    frame = tree.frame[point.body]
    return Item(POINT, frame, local_b=tuple(tree.local_point(frame, point.at)))


def _body_items(tree: Tree, body: Body) -> tuple[list[Item], list[str], list[bool]]:
    if body.reference is None:
        raise InputError(
            f"Body '{body.name}' has no reference point: give it `at` (or `com`), or ask for "
            f"'{body.name}.wx' … through a point of it."
        )
    frame = tree.frame[body.name]
    made = [
        Item(POINT, frame, local_b=tuple(tree.local_point(frame, body.reference))),
        Item(OMEGA, frame),
    ]
    labels = [f"{body.name}.{c}" for c in (*_XYZ, *_OMEGA)]
    return made, labels, [True] * 3 + [False] * 3


def _angle_items(tree: Tree, part: object, key: str) -> tuple[list[Item], list[str], list[bool]]:
    name = key.partition(".")[0]
    normal = tree.planar_normal
    if not isinstance(part, Body):
        raise InputError(f"'{name}' is no body; only bodies of planar mechanisms have an `.angle`.")
    if normal is None:
        raise InputError(
            f"'{tree.drawing.name}' is not planar, so '{name}' has no `.angle`. "
            f"Ask for '{name}.wx', '{name}.wy', '{name}.wz'."
        )
    frame = tree.frame[name]
    drawn = 0.0  # the angle is zero as drawn
    for n in tree.path(frame):
        if tree.cols[n, 1] == 0:
            drawn += float(normal @ tree.zero_axes[n][:, 2]) * tree.geometry[n, 12]
    return [Item(PLANE_ANGLE, frame, local_b=(-drawn, 0.0, 0.0), extra=tuple(normal))], [key], [True]


def closure_items(tree: Tree, joint: Joint) -> list[Item]:
    """Conditions that a cut joint puts on its two bodies, as holonomic rows that are zero when closed.

    Points coincide, directions stay perpendicular, a direction stays perpendicular to a difference of
    points. Redundant conditions of a loop are left in; choosing among them is a question of rank.
    """
    a, b = (tree.frame[body] for body in joint.bodies)
    at = joint.at or (0.0, 0.0, 0.0)
    here, there = tuple(tree.local_point(a, at)), tuple(tree.local_point(b, at))

    def meet() -> Item:
        return Item(POINT, b, a, there, here)

    def perpendicular(u: np.ndarray, w: np.ndarray) -> Item:
        return Item(
            PERPENDICULAR, b, a, tuple(tree.local_vector(b, w)), tuple(tree.local_vector(a, u))
        )  # fmt: skip

    def beside(u: np.ndarray) -> Item:
        return Item(REACH, b, a, there, here, tuple(tree.local_vector(a, u)))

    axis = unit(joint.axis) if joint.axis else np.array([0.0, 0.0, 1.0])
    x, y, z = frame_axes(axis).T
    parallel = [perpendicular(x, z), perpendicular(y, z)]
    if joint.type == "spherical":
        return [meet()]
    if joint.type == "revolute":
        return [meet(), *parallel]
    if joint.type == "cylindrical":
        return [*parallel, beside(x), beside(y)]
    if joint.type == "prismatic":
        return [*parallel, perpendicular(x, y), beside(x), beside(y)]
    if joint.type == "universal":
        return [meet(), perpendicular(axis, unit(joint.axis2))]
    if joint.type == "planar":
        normal = np.cross(axis, unit(joint.axis2))
        u, v, w = frame_axes(normal).T
        return [perpendicular(u, w), perpendicular(v, w), beside(w)]
    if joint.type == "fixed":
        return [meet(), *parallel, perpendicular(x, y)]
    return []  # a free joint asks nothing
