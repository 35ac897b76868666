"""Rows of closure of cut joints, couplings, distances, angles and contacts; coordinates of cut joints."""

from __future__ import annotations

from collections.abc import Iterable
from math import pi
from typing import Any

import numpy as np

from kic.description.contacts import CONTACT_ROWS, Contact
from kic.description.parts import Angle, Distance, Joint
from kic.errors import LoopError, unfinished_type
from kic.kernels import layout as lay
from kic.kinematics.items import CLOSED, Between, Ends, Item, Part, heights, summed
from kic.kinematics.tree import Tree, ball_axes, frame_axes
from kic.numerics.linalg import unit

# pairs (j, k) of the products bⱼ·aₖ of the axes of two bodies
_PAIRS = ((1, 2), (2, 0), (0, 1))


def closure_items(tree: Tree, joint: Joint, ends: Ends = CLOSED) -> list[Item]:
    """Return the holonomic constraint rows of a cut joint, which are zero when the loop is closed.

    Points coincide, directions stay perpendicular, or a direction stays perpendicular to a difference of
    points. Redundant rows of a loop are kept; a rank decision selects among them. If the loop is open, `ends`
    are the poses in the two bodies of the frame that describes the joint.
    """
    between = Between(tree, joint.bodies, joint.at, ends)
    coincide, in_plane, perpendicular = between.coincide, between.distance_along, between.cosine
    axis = unit(joint.axis) if joint.axis else np.array([0.0, 0.0, 1.0])
    x, y, z = frame_axes(axis).T
    parallel = [perpendicular(x, z), perpendicular(y, z)]
    if joint.type == "spherical":
        return [coincide()]
    if joint.type == "revolute":
        return [coincide(), *parallel]
    if joint.type == "cylindrical":
        return [*parallel, in_plane(x), in_plane(y)]
    if joint.type == "prismatic":
        return [*parallel, perpendicular(x, y), in_plane(x), in_plane(y)]
    if joint.type == "universal":
        return [coincide(), perpendicular(axis, unit(joint.axis2))]
    if joint.type == "planar":
        normal = np.cross(axis, unit(joint.axis2))
        u, v, w = frame_axes(normal).T
        return [perpendicular(u, w), perpendicular(v, w), in_plane(w)]
    if joint.type == "fixed":
        return [coincide(), *parallel, perpendicular(x, y)]
    if joint.type == "free":
        return []
    where = "closure_items() in kic/kinematics/closure_rows.py"
    raise unfinished_type("joint", joint.name, joint.type, "closure rows", where)


def relative_axes(tree: Tree, bodies: Iterable[str]) -> list[Item]:
    """Return the nine cosines between each axis of the second body in turn and the axes of the first.

    The axes are world axes in the reference configuration.
    """
    between = Between(tree, bodies)
    return [between.cosine(a, b) for b in np.eye(3) for a in np.eye(3)]


def rotation_items(between: Between, axes: np.ndarray) -> list[Item]:
    """Return three rows of the rotation of the second body relative to the first, zero in the reference.

    `axes` (3, 3) are orthogonal directions as rows. See `rotation_rows`.
    """
    return [between.cosine(axes[k], axes[j]) for j, k in _PAIRS]


def rotation_rows(R: np.ndarray) -> np.ndarray:
    """Return the three rows (..., 3) of rotations (..., 3, 3), which determine rotations of less than 60°.

    They are b₂·a₃, b₃·a₁ and b₁·a₂ with axes aⱼ of the first body, and bⱼ = R aⱼ.
    """
    return np.stack([R[..., k, j] for j, k in _PAIRS], axis=-1)


def coupling_items(tree: Tree, terms: Iterable[tuple[str, float]], value: float | None = None) -> list[Item]:
    """Return the row of a coupling, one item for each coordinate with its ratio.

    The row is the sum of the coupling minus its value, by default that of the reference configuration.
    """
    made = list[Item]()
    for coordinate, ratio in terms:
        n = tree.column[coordinate]
        constant = ratio * tree.geometry[n, lay.DRAWN] if value is None else 0.0 if made else value
        made.append(Item.coordinate_term(n, ratio, constant))
    return summed(made)


def measure_part(tree: Tree, measure: Distance | Angle) -> Part:
    """Return the row of a distance or an angle, the last of its items.

    The angle of u and w is π/2 + arcsin(−u·w), where the cosine of the arcsine is the norm of the components
    of w along two directions perpendicular to u.
    """
    name = measure.name
    if isinstance(measure, Distance):
        points = [tree.description._point(point) for point in measure.points]
        first, second = (Item.point_on(tree, point.body, point.at) for point in points)
        if measure.axis is None:
            return Part([Item.distance(first, second)], [name], [True])
        across = frame_axes(unit(measure.axis)).T[:2]
        return Part(Item.distance_from_line(tree, first, second, *across), [name], [True], labelled=(2,))
    between, w = Between(tree, measure.bodies), unit(measure.axis2)
    x, y, s = (between.cosine(v, w) for v in frame_axes(unit(measure.axis)).T * [[1.0], [1.0], [-1.0]])
    # the third row only takes a place, see `Part.angles`
    return Part([x, y, s, s, between.arcsine()], [name], [True], ((4, 3, -2, pi / 2),), labelled=(4,))


def fixed_items(tree: Tree, measure: Distance | Angle) -> list[Item]:
    """Return items whose last row is constant for a fixed measure: the distance, or minus the cosine."""
    items = measure_part(tree, measure).items
    return items[3:4] if isinstance(measure, Angle) else items


def fixed_rows(tree: Tree, measures: Iterable[Distance | Angle]) -> tuple[list[Item], list[int]]:
    """Return the items of fixed distances and angles, and the index of the constant row of each."""
    made = [fixed_items(tree, measure) for measure in measures]
    last = np.cumsum([sum(heights(items)) for items in made], dtype=int) - 1
    return [item for items in made for item in items], last.tolist()


def contact_axes(contact: Contact) -> np.ndarray:
    """Return the unit vectors n, t1, t2 of a contact as rows (3, 3), in world axes; t1 × t2 = n."""
    normal = unit(contact.normal) if contact.normal else np.array([0.0, 0.0, 1.0])
    if contact.tangent is None:
        return np.roll(frame_axes(normal).T, 1, axis=0)
    tangent = _across(normal, contact.tangent)
    return np.array([normal, tangent, np.cross(normal, tangent)])


def spin_axis(contact: Contact) -> np.ndarray:
    """Return the unit vector t2 (3,) that the first body of a contact carries, perpendicular to t1."""
    _, t1, t2 = contact_axes(contact)
    return t2 if contact.tangent2 is None else _across(t1, contact.tangent2)


def _across(u: np.ndarray, v: Any) -> np.ndarray:
    """Return the unit vector along the part of v perpendicular to a unit vector u."""
    return unit(v - (u @ v) * u)


def contact_items(tree: Tree, contact: Contact) -> list[Item]:
    """Return the rows of a contact, one for each of `Contact.rows`; they are constraints if it is closed.

    The first rows are components, in axes of the second body, of its contact point minus that of the first.
    The kernels compute the opposite difference, hence the negative directions. Spin is the cosine of t1 of
    the second and t2 of the first body. Its rate is the angular velocity of the second body about t1 × t2,
    relative to the first.
    """
    n, t1, t2 = contact_axes(contact)
    between = Between(tree, contact.bodies[::-1], contact.at)
    made = {row: between.distance_along(-u) for row, u in (("n", n), ("t1", t1), ("t2", t2))}
    made["s"] = between.cosine(t1, spin_axis(contact))
    rows = CONTACT_ROWS[contact.type]
    if not made.keys() >= set(rows):
        where = "contact_items() in kic/kinematics/closure_rows.py"
        raise unfinished_type("contact", contact.name, contact.type, "known rows", where)
    return [made[row] for row in rows]


def facing_items(tree: Tree, joint: Joint, ends: Ends = CLOSED) -> list[Item]:
    """Return cosines of directions shared by two bodies: 1 in the right assembly, -1 if flipped."""
    axis = unit(joint.axis) if joint.axis else np.array([0.0, 0.0, 1.0])
    shared = {
        "revolute": [axis],
        "cylindrical": [axis],
        "planar": [np.cross(axis, unit(joint.axis2))] if joint.axis2 else [],
        "prismatic": [axis, frame_axes(axis)[:, 0]],
        "fixed": [axis, frame_axes(axis)[:, 0]],
        "universal": [],
        "spherical": [],
        "free": [],
    }.get(joint.type)
    if shared is None:
        where = "facing_items() in kic/kinematics/closure_rows.py"
        raise unfinished_type("joint", joint.name, joint.type, "shared directions", where)
    return [Between(tree, joint.bodies, ends=ends).cosine(u, u) for u in shared]


def all_closure_rows(tree: Tree) -> tuple[list[Item], list[str], tuple[tuple[int, float], ...]]:
    """Return closure rows of all joints, couplings, measures and contacts; their G and H are (4-1), (4-2).

    Returns
    -------
    items : list of Item
    owners : list of str
        Part to which each row belongs; "" for a row that is no condition, and only serves to compute others.
    offsets : tuple of (int, float)
        Rows that are constant when closed, and the constant to add: minus the length of a rod.
    """
    drawing = tree.description
    made = [(joint.name, closure_items(tree, joint)) for joint in tree.cuts]
    made += [
        (coupling.name, coupling_items(tree, drawing._terms[coupling.name])) for coupling in drawing.couplings
    ]
    for name, items in [(measure.name, fixed_items(tree, measure)) for measure in drawing._fixed_measures]:
        made += [*(("", [item]) for item in items[:-1]), (name, items[-1:])]
    made += [(contact.name, contact_items(tree, contact)) for contact in drawing._closed_contacts]
    owners = [name for name, items in made for height in heights(items) for _ in range(height)]
    values = [(m.name, drawing._drawn_value(m), isinstance(m, Angle)) for m in drawing._fixed_measures]
    offsets = tuple([(owners.index(name), np.cos(x) if turns else -x) for name, x, turns in values])
    return [item for _, items in made for item in items], owners, offsets


def facing_rows(tree: Tree) -> tuple[list[Item], list[str]]:
    """Return the cosines of directions that closed joints share, and the joint of each.

    Contacts share no directions: a soft contact may tilt by any angle, like a universal joint.
    """
    made = [(item, joint.name) for joint in tree.cuts for item in facing_items(tree, joint)]
    return [item for item, _ in made], [name for _, name in made]


def cut_joint_part(tree: Tree, joint: Joint) -> Part:
    """Return the coordinates of a cut joint: rates a·(ω₂ − ω₁) and a·(p₂ − p₁), angles by atan2.

    Raise `LoopError` for a joint without coordinates.
    """
    between = Between(tree, joint.bodies, joint.at)
    cosine = between.cosine
    axis = unit(joint.axis) if joint.axis else np.zeros(3)
    axis2 = unit(joint.axis2) if joint.axis2 else np.zeros(3)
    # of each coordinate: its rate, then sine and cosine of its angle
    made: list[list[Item]] = []

    def rotation(u: np.ndarray) -> list[Item]:
        """Return the rows of the rotation of b about the direction u of a."""
        x = frame_axes(u)[:, 0]
        return [between.rate(u), cosine(np.cross(u, x), x), cosine(x, x)]

    if joint.type in ("revolute", "cylindrical"):
        made.append(rotation(axis))
    if joint.type in ("prismatic", "cylindrical", "planar"):
        made.append([between.distance_along(axis)])
    if joint.type == "planar":
        made += [[between.distance_along(axis2)], rotation(np.cross(axis, axis2))]
    if joint.type == "universal":
        # each axis is fixed in one body, and they stay perpendicular
        third, other = np.cross(axis, axis2), Between(tree, joint.bodies[::-1])
        made.append([between.rate(axis), cosine(third, axis2), cosine(axis2, axis2)])
        made.append([other.rate(-axis2), cosine(axis, third), cosine(axis, axis)])
    if joint.type == "spherical":
        made += [[between.rate(u)] for u in ball_axes(joint).T]
    if joint.type in ("fixed", "free"):
        message = f"Joint '{joint.name}' is {joint.type} and closes a loop; it has no coordinates there."
        raise LoopError(message, joint=joint.name)
    if len(made) != joint.dof:
        where = "cut_joint_part() in kic/kinematics/closure_rows.py"
        raise unfinished_type("joint", joint.name, joint.type, "coordinates in a loop", where)
    items, angles, offsets = [rows[0] for rows in made], [], []
    for k, rows in enumerate(made):
        if len(rows) > 1:
            angles.append((k, len(items), len(items) + 1, joint.value[k]))  # type: ignore[index]
        elif joint.type != "spherical":
            offsets.append((k, joint.value[k]))  # type: ignore[index]
        items += rows[1:]
    valued = joint.type != "spherical"
    return Part(items, list(joint.components), [valued] * len(made), tuple(angles), tuple(offsets))
