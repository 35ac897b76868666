"""Output rows by name: kernel items with labels for points, bodies, joints, measures and contacts.

A row is one dependent with its G, H and D, and its value if it has one. Closure conditions of a cut joint are
rows of the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kic.description.contacts import Contact
from kic.description.couplings import Coupling
from kic.description.description import find_part
from kic.description.motors import Motor
from kic.description.parts import Body, CenterOfMass, Frame, Joint, Measure, Point
from kic.description.validation import GROUND, part_of, split_row
from kic.errors import InertiaError, InputError, unknown
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import contact_items, cut_joint_part, measure_part
from kic.kinematics.euler import EULER, euler_part, middle_cosine
from kic.kinematics.items import HEIGHT, ROOT, Item, Part, summed
from kic.kinematics.tree import Tree
from kic.numerics.tolerances import DIGITS_LOST, EPS, ROUNDING_FACTOR

# rows of a point and of an angular velocity
XYZ = ("x", "y", "z")
# components of a wrench
WRENCH_LABELS: tuple[str, ...] = ("fx", "fy", "fz", "mx", "my", "mz")
OMEGA = ("wx", "wy", "wz")
# sine of the angle between two directions below which its derivatives lose digits: their errors are those of
# direction cosines, divided by the sine
PARALLEL_SINE_MIN = ROUNDING_FACTOR * EPS / DIGITS_LOST


@dataclass(frozen=True)
class Rows:
    """Kernel items of a query, and the selected rows of their table."""

    labels: tuple[str, ...]  # names of the rows
    spans: dict[str, slice]  # rows of each requested name
    valued: np.ndarray  # (P,) bool: True for rows with a value; angular velocities have none
    select: np.ndarray | None  # (P,) int or None: requested rows of the table; None for all
    items: np.ndarray
    kinds: np.ndarray  # (n,) int: kind of each item, which indexes the masks of `kic.kinematics.items`
    vectors: np.ndarray
    height: int
    holonomic: bool  # True if no row is a quasi-velocity
    source: tuple[Item, ...]
    item_of: np.ndarray  # (height,) int: item of each row; of a sum, its last term
    angles: tuple[tuple[int, int, int, float], ...] = ()
    offsets: tuple[tuple[int, float], ...] = ()
    distances: tuple[str, ...] = ()
    directed: tuple[tuple[str, int], ...] = ()  # angles between directions, and their sine rows

    def complete(self, values: np.ndarray) -> np.ndarray:
        """Add reference values to values (..., height) in place, and set angles of cut joints by arctan2."""
        for row, reference in self.offsets:
            values[..., row] += reference
        if self.angles and values.dtype.kind == "O":
            message = "Angles of parts require arctan2, which symbols do not support. Leave them out."
            raise InputError(message, key="configuration")
        for row, sine, cosine, reference in self.angles:
            s = values[..., sine]
            c = middle_cosine(values, sine) if cosine < 0 else values[..., cosine]
            angle = np.arctan2(s.real, c.real).astype(values.dtype)
            if values.dtype.kind == "c":  # keep a complex step
                angle += 1j * (c.real * s.imag - s.real * c.imag) / (c.real**2 + s.real**2)
            values[..., row] = reference + angle
        return values

    @cached_property
    def _blank(self) -> np.ndarray | None:
        """Mask (P,) of the rows without a value; None if all have one."""
        return None if self.valued.all() else ~self.valued

    def requested(self, T: np.ndarray) -> np.ndarray:
        """Return the requested rows (..., n, P) of values and derivatives (..., n, height), completed."""
        if self.offsets or self.angles:
            self.complete(T[..., 0, :])
        if self.select is not None:
            T = T[..., self.select]
        if self._blank is not None:
            T[..., 0, self._blank] = np.nan
        return T

    @cached_property
    def euler(self) -> tuple[int, ...]:
        """Sine rows of the middle Euler angles."""
        return tuple([sine for _, sine, cosine, _ in self.angles if cosine == -1])

    def check_directions(self, values: np.ndarray) -> None:
        """Raise `InputError` if two directions of an angle are parallel, from values (B, height) of rows."""
        for name, sine in self.directed:
            failed = np.flatnonzero(np.abs(middle_cosine(values.real, sine)) < PARALLEL_SINE_MIN)
            if failed.size:
                raise InputError(
                    f"The directions of '{name}' are parallel here within {PARALLEL_SINE_MIN:.0e} rad, where "
                    "the angle has no accurate derivatives. Use another direction, such as a perpendicular "
                    "one.",
                    name=name,
                    failed=failed.tolist(),
                )

    def shortest(self, apart: np.ndarray) -> np.ndarray:
        """Return differences (..., P) of the rows, reduced to ±π for angles of cut joints."""
        return apart - self.turns * np.round(apart.real / (2 * np.pi))

    @cached_property
    def turns(self) -> np.ndarray:
        """Period (P,) of the rows: 2π for angles of cut joints, 0 for others."""
        angles = {row for row, *_ in self.angles}
        rows = range(self.height) if self.select is None else self.select
        return np.array([row in angles for row in rows]) * 2 * np.pi


def make_rows(tree: Tree, names: Sequence[str]) -> Rows:
    """Return the rows for names, such as ``("tip", "hand.wx", "A")``.

    Raise `UnknownNameError` or `InputError` for an unknown name, or a part without such rows.
    """
    if not names:
        raise InputError("`of` must contain at least one name, got none.", key="of")
    items: list[Item] = []
    # of each name: the whole part, and the key of the items that have its rows
    keys: list[tuple[str, str]] = []
    known: dict[str, tuple[int, Part]] = {}
    for name in names:
        whole, part = split_row(name) if "." in name else (name, "")
        group = "omega" if part in OMEGA else "angle" if part == "angle" else ""
        if part.startswith(EULER):
            group = part.partition(".")[0]
        key = f"{whole}.{group}" if group else whole
        keys.append((whole, key))
        if key not in known:
            made = _part(tree, whole, group)
            known[key] = len(items), made
            items += made.items
    plain = plain_rows(tree, items)
    starts = plain.items[:, lay.ROW].tolist()
    labels: list[str] = []
    valued: list[bool] = []
    chosen: list[int] = []
    spans: dict[str, slice] = {}
    angles: list[tuple[int, int, int, float]] = []
    offsets: list[tuple[int, float]] = []
    distances: list[str] = []
    directed: list[tuple[str, int]] = []
    for key, (first_item, made) in known.items():
        start = starts[first_item]
        for row, sine, cosine, reference in made.angles:
            root = cosine if cosine < 0 else start + cosine
            angles.append((start + row, start + sine, root, reference))
            directed += [(key, start + sine)] * (cosine == -2)
        offsets += [(start + row, reference) for row, reference in made.offsets]
        if ROOT[made.items[-1].kind]:
            distances.append(key)
    for name, (whole, key) in zip(names, keys, strict=True):
        first_item, made = known[key]
        if key == name or name == whole:
            picked = range(len(made.labels))
        elif name in made.labels:
            first = made.labels.index(name)
            picked = range(first, first + 1)
        else:
            groups: tuple[str, ...] = ()
            if isinstance(tree.description._parts.get(whole), Body | Frame):
                groups = (f"{whole}.angle",) if tree.planar_normal is not None else ()
                groups += (f"{whole}.{EULER}xyz",)
            raise unknown("row", name, tree.description.name, [*made.labels, *groups])
        spans[name] = slice(len(chosen), len(chosen) + len(picked))
        rows = range(len(made.labels)) if made.labelled is None else made.labelled
        chosen += [starts[first_item] + row for row in rows[picked.start : picked.stop]]
        labels += made.labels[picked.start : picked.stop]
        valued += made.valued[picked.start : picked.stop]
    everything = chosen == list(range(plain.height))
    return replace(
        plain,
        labels=tuple(labels),
        spans=spans,
        valued=np.array(valued),
        select=None if everything else np.array(chosen, dtype=np.intp),
        holonomic=all(valued),
        angles=tuple(angles),
        offsets=tuple(offsets),
        distances=tuple(distances),
        directed=tuple(directed),
    )


def plain_rows(tree: Tree, items: list[Item]) -> Rows:
    """Return the rows of a list of items, without names."""
    table = np.zeros((len(items), lay.PLAN_WIDTH), dtype=np.int64)
    vectors = np.zeros((len(items), 9), tree.scalar)
    item_of: list[int] = []
    turned = tree.turned_by_balls
    for i, item in enumerate(items):
        ordered = turned[item.frame_b] or turned[max(item.frame_a, -1)]
        table[i] = (item.kind, item.frame_b, item.frame_a, len(item_of), int(ordered))
        vectors[i] = (*item.local_b, *item.local_a, *item.extra)
        item_of += [i] * (0 if item.has_next_term else HEIGHT[item.kind])
    height, indices = len(item_of), np.array(item_of, dtype=np.intp)
    valued = np.ones(height, dtype=bool)
    kinds = table[:, lay.ITEM]
    return Rows((), {}, valued, None, table, kinds, vectors, height, True, tuple(items), indices)


def _part(tree: Tree, name: str, group: str) -> Part:
    """Return the items of a part, or of the angle or angular velocity of a body."""
    key = f"{name}.{group}"
    if name == GROUND:
        raise InputError(f"'{GROUND}' does not move. Name a point, a body or a joint.", name=GROUND)
    part = find_part(tree.description, name)
    if group == "angle":
        return _angle(tree, part, key)
    if group.startswith(EULER):
        return euler_part(tree, part, key)
    if group == "omega" and isinstance(part, Body | Frame):
        made = [Item.angular_velocity(tree.frame[part.body])]
        return Part(made, [f"{name}.{c}" for c in OMEGA], [False] * 3)
    if isinstance(part, Joint):
        return _joint(tree, part)
    if isinstance(part, Point):
        return Part([Item.point_on(tree, part.body, part.at)], [f"{name}.{c}" for c in XYZ], [True] * 3)
    if isinstance(part, Body | Frame):
        return _frame(tree, part)
    if isinstance(part, CenterOfMass):
        return center_part(tree, part)
    if isinstance(part, Measure):
        return measure_part(tree, part)
    if isinstance(part, Contact):
        return Part(contact_items(tree, part), list(part.rows), [True] * len(part.rows))
    if isinstance(part, Coupling):
        raise InputError(
            f"'{name}' is a coupling, and couplings have no rows. Name its joints: {', '.join(part.joints)}.",
            name=name,
        )
    if isinstance(part, Motor):
        message = f"'{name}' is a motor, and motors have no rows. Name its joints: {', '.join(part.joints)}."
        raise InputError(message, name=name)
    raise InputError(f"'{name}' is a load, and loads have no rows. Name its point or body.", name=name)


def center_part(tree: Tree, center: CenterOfMass) -> Part:
    """Return the items of a centre of mass, one point for the masses of each frame."""
    description = tree.description
    masses: dict[int, list[tuple[float, np.ndarray]]] = {}
    for body in description.bodies:
        frame = tree.frame[body.name]
        # by default those that move
        if frame < 0 if center.bodies is None else body.name not in center.bodies:
            continue
        if body.mass is None:
            raise InertiaError(
                f"Body '{body.name}' has no mass, which the centre of mass '{center.name}' needs. Write mass "
                "= 0 for a massless body.",
                bodies=(body.name,),
            )
        carried = [(body.mass, body.com)] if body.com is not None else []
        carried += [(p.mass, p.at) for p in description.points if p.body == body.name]
        found = [(mass, tree.local_point(frame, at)) for mass, at in carried if mass]
        if found:
            masses.setdefault(frame, []).extend(found)
    total = sum(mass for found in masses.values() for mass, _ in found)
    if not total:
        message = f"The bodies of centre of mass '{center.name}' have no mass. Choose others."
        raise InertiaError(message, bodies=center.bodies or ())
    items = []
    for frame, found in masses.items():
        mass = sum(mass for mass, _ in found)
        local = sum((one * at for one, at in found), np.zeros(3)) / mass
        items.append(Item.weighted_point(frame, local, mass / total))
    return Part(summed(items), [f"{center.name}.{c}" for c in XYZ], [True] * 3)


def _joint(tree: Tree, joint: Joint) -> Part:
    """Return the items of the coordinates of a joint."""
    components = joint.components
    if not components:
        raise InputError(f"Joint '{joint.name}' is fixed and has no rows.", name=joint.name)
    if joint in tree.cuts:
        return cut_joint_part(tree, joint)
    columns = [tree.column[c] for c in components]
    values = (tree.cols[columns, lay.KIND] <= lay.PRISMATIC).tolist()
    return Part([Item.coordinate(n) for n in columns], list(components), values)


def _frame(tree: Tree, part: Body | Frame) -> Part:
    """Return the items of the reference point and the angular velocity of a body or frame."""
    if part.reference is None:
        raise InputError(
            f"Body '{part.name}' has no reference point. Give it `at` (or `com`), or request "
            f"'{part.name}.wx' … or a point of it.",
            name=part.name,
        )
    made = [Item.point_on(tree, part.body, part.reference), Item.angular_velocity(tree.frame[part.body])]
    labels = [f"{part.name}.{c}" for c in (*XYZ, *OMEGA)]
    return Part(made, labels, [True] * 3 + [False] * 3)


def _angle(tree: Tree, part: object, key: str) -> Part:
    """Return the item of the angle of a body of a planar mechanism."""
    name = part_of(key)
    normal = tree.planar_normal
    if not isinstance(part, Body):
        message = f"'{name}' is not a body; only bodies of planar mechanisms have an `.angle`."
        raise InputError(message, name=name)
    if normal is None:
        raise InputError(
            f"'{tree.description.name}' is not planar, so '{name}' has no `.angle`. "
            f"Request '{name}.wx', '{name}.wy', '{name}.wz'.",
            name=name,
        )
    frame = tree.frame[name]
    reference = 0.0  # the angle is zero in the reference configuration
    for n in tree.path(frame):
        if tree.cols[n, lay.KIND] == lay.REVOLUTE:
            reference += (normal @ tree.zero_axes[n][:, 2]) * tree.geometry[n, lay.DRAWN]
    return Part([Item.plane_angle(frame, normal, reference)], [key], [True])
