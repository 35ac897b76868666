"""What a name means: rows of kernel items with labels, for points, bodies, joints and distances.

A row is one dependent with its value (if it has one) and its G, H and D. Closure conditions of a cut
joint are rows of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kic.description.contacts import Contact
from kic.description.couplings import Coupling
from kic.description.motors import Motor
from kic.description.parts import Body, Distance, Joint, Point
from kic.description.validation import GROUND
from kic.errors import InputError, unknown
from kic.kernels.layout import (
    COORDINATE,
    DISTANCE,
    DRAWN,
    KIND,
    OMEGA,
    PLANE_ANGLE,
    POINT,
    PRISMATIC,
    REVOLUTE,
)
from kic.kinematics.closure_rows import contact_items, cut_joint_part, distance_item
from kic.kinematics.items import Item, Part, pack, point_item
from kic.kinematics.tree import Tree
from kic.numerics.arguments import names_of

_XYZ = ("x", "y", "z")
_OMEGA = ("wx", "wy", "wz")


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
    source: tuple[Item, ...]
    angles: tuple[tuple[int, int, int, float], ...] = ()
    offsets: tuple[tuple[int, float], ...] = ()
    distances: tuple[str, ...] = ()

    @property
    def turns(self) -> np.ndarray:
        """Which rows (P,) have a value that is known but for full turns: angles of cut joints."""
        places = np.arange(len(self.labels)) if self.select is None else self.select
        return np.isin(places, [row for row, *_ in self.angles])

    def complete(self, values: np.ndarray) -> np.ndarray:
        """Values (..., height) of the table, with those of cut joints put in: angles by sine and cosine."""
        for row, drawn in self.offsets:
            values[..., row] += drawn
        for row, sine, cosine, drawn in self.angles:
            s, c = values[..., sine], values[..., cosine]
            angle = np.arctan2(s.real, c.real).astype(values.dtype)
            if values.dtype.kind == "c":  # a complex step passes
                angle += 1j * (c.real * s.imag - s.real * c.imag) / (c.real**2 + s.real**2)
            values[..., row] = drawn + angle
        return values

    def shortest(self, apart: np.ndarray) -> np.ndarray:
        """Differences (..., P) of the rows asked for; of cut joints, known but for full turns, the least."""
        angles = {row for row, *_ in self.angles}
        asked = range(self.height) if self.select is None else self.select
        whole = np.array([row in angles for row in asked]) * 2 * np.pi
        return apart - whole * np.round(apart.real / (2 * np.pi))


def make_rows(tree: Tree, of: Iterable[str]) -> Rows:
    """Rows of a list of names, such as ``["tip", "hand.wx", "A"]``.

    Raises
    ------
    UnknownNameError, InputError
        For a name that is not there, or a part that has no such rows.
    """
    names = names_of(of, least=1)
    items: list[Item] = []
    labels: list[str] = []
    valued: list[bool] = []
    chosen: list[int] = []
    spans: dict[str, slice] = {}
    height = 0
    known: dict[str, tuple[int, Part]] = {}
    for name in names:
        whole, _, part = name.partition(".")
        group = "omega" if part in _OMEGA else "angle" if part == "angle" else ""
        key = f"{whole}.{group}" if group else whole
        if key not in known:
            made = _part(tree, key)
            known[key] = (height, made)
            items += made.items
            height += sum(item.height for item in made.items)
        start, made = known[key]
        if key == name or name == whole:
            picked = list(range(len(made.labels)))
        elif name in made.labels:
            picked = [made.labels.index(name)]
        else:
            raise unknown("row", name, tree.description.name, made.labels)
        spans[name] = slice(len(chosen), len(chosen) + len(picked))
        chosen += [start + k for k in picked]
        labels += [made.labels[k] for k in picked]
        valued += [made.valued[k] for k in picked]
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
        source=tuple(items),
        angles=tuple(
            (start + row, start + sine, start + cosine, drawn)
            for start, made in known.values()
            for row, sine, cosine, drawn in made.angles
        ),
        offsets=tuple((start + row, drawn) for start, made in known.values() for row, drawn in made.offsets),
        distances=tuple(key for key, (_, made) in known.items() if made.items[0].kind == DISTANCE),
    )


def plain_rows(tree: Tree, items: list[Item]) -> Rows:
    """Rows of a list of items, without names."""
    height = sum(item.height for item in items)
    table, vectors = pack(tree, items)
    return Rows((), {}, np.ones(height, dtype=bool), None, table, vectors, height, True, tuple(items))


def _part(tree: Tree, key: str) -> Part:
    """What one part (or a body's angle or turning) stands for."""
    name, _, group = key.partition(".")
    if name == GROUND:
        raise InputError(f"'{GROUND}' does not move; ask about a point, a body or a joint.")
    part = tree.description.part(name)
    if group == "angle":
        return _angle(tree, part, key)
    if group == "omega" and isinstance(part, Body):
        return Part([Item(OMEGA, tree.frame[name])], [f"{name}.{c}" for c in _OMEGA], [False] * 3)
    if isinstance(part, Joint):
        return _joint(tree, part)
    if isinstance(part, Point):
        return Part([point_item(tree, part)], [f"{name}.{c}" for c in _XYZ], [True] * 3)
    if isinstance(part, Body):
        return _body(tree, part)
    if isinstance(part, Distance):
        return Part([distance_item(tree, part)], [name], [True])
    if isinstance(part, Contact):
        return Part(contact_items(tree, part), list(part.rows), [True] * len(part.rows))
    if isinstance(part, Coupling):
        raise InputError(f"'{name}' is a coupling; ask about its joints: {', '.join(part.joints)}.")
    if isinstance(part, Motor):
        raise InputError(f"'{name}' is a motor; ask about its joints: {', '.join(part.joints)}.")
    raise InputError(f"'{name}' is a load; it has no motion. Ask about its point or body.")


def _joint(tree: Tree, joint: Joint) -> Part:
    if not joint.dof:
        raise InputError(f"Joint '{joint.name}' is fixed; it has no motion.")
    if joint in tree.cuts:
        return cut_joint_part(tree, joint)
    columns = [tree.column[c] for c in joint.components]
    values = [bool(tree.cols[n, KIND] <= PRISMATIC) for n in columns]
    return Part([Item(COORDINATE, n) for n in columns], list(joint.components), values)


def _body(tree: Tree, body: Body) -> Part:
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
    return Part(made, labels, [True] * 3 + [False] * 3)


def _angle(tree: Tree, part: object, key: str) -> Part:
    name = key.partition(".")[0]
    normal = tree.planar_normal
    if not isinstance(part, Body):
        raise InputError(f"'{name}' is no body; only bodies of planar mechanisms have an `.angle`.")
    if normal is None:
        raise InputError(
            f"'{tree.description.name}' is not planar, so '{name}' has no `.angle`. "
            f"Ask for '{name}.wx', '{name}.wy', '{name}.wz'."
        )
    frame = tree.frame[name]
    drawn = 0.0  # the angle is zero as drawn
    for n in tree.path(frame):
        if tree.cols[n, KIND] == REVOLUTE:
            drawn += (normal @ tree.zero_axes[n][:, 2]) * tree.geometry[n, DRAWN]
    return Part([Item(PLANE_ANGLE, frame, local_b=(-drawn, 0.0, 0.0), extra=tuple(normal))], [key], [True])
