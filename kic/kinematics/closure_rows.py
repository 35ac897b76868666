"""Constraint rows of cut joints, couplings, fixed distances and contacts; coordinates of cut joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kic.description.contacts import CONTACT_ROWS, Contact
from kic.description.parts import Distance, Joint
from kic.errors import LoopError
from kic.kernels.layout import DISTANCE, DOT1, DOT2, DRAWN, LINEAR_TERM, POINT, RELATIVE_OMEGA
from kic.kinematics.items import Item, Part, point_item
from kic.kinematics.tree import Tree, frame_axes, unit


def closure_items(tree: Tree, joint: Joint) -> list[Item]:
    """Return the holonomic constraint rows of a cut joint, which are zero when the loop is closed.

    Points coincide, directions stay perpendicular, or a direction stays perpendicular to a difference of
    points. Redundant rows of a loop are kept; a rank decision selects among them.
    """
    first, second = joint.bodies
    a, b = tree.frame[first], tree.frame[second]
    at = joint.at or (0.0, 0.0, 0.0)
    here, there = tuple(tree.local_point(a, at)), tuple(tree.local_point(b, at))

    def coincide() -> Item:
        return Item(POINT, b, a, there, here)

    def perpendicular(u: np.ndarray, w: np.ndarray) -> Item:
        return _cosine(tree, a, b, u, w)

    def in_plane(u: np.ndarray) -> Item:
        return Item(DOT2, b, a, there, here, tuple(tree.local_vector(a, u)))

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
    return []  # a free joint has no constraints


def coupling_items(tree: Tree, name: str) -> list[Item]:
    """Return the row of a coupling: one item for each of its terms."""
    made = []
    for coordinate, ratio in tree.description.terms[name]:
        n = tree.column[coordinate]
        made.append(
            Item(LINEAR_TERM, n, extra=(ratio, ratio * tree.geometry[n, DRAWN], 0.0), has_next_term=True)
        )
    return [*made[:-1], replace(made[-1], has_next_term=False)]


def distance_item(tree: Tree, distance: Distance) -> Item:
    """Return the row of a distance; a fixed distance keeps its value in the reference configuration."""
    a, b = (point_item(tree, tree.description.point(name)) for name in distance.points)
    return Item(DISTANCE, b.frame_b, a.frame_b, b.local_b, a.local_b)


def contact_axes(contact: Contact) -> np.ndarray:
    """Return the unit vectors n, t1, t2 of a contact as rows (3, 3), in world axes; t1 × t2 = n."""
    normal = unit(contact.normal) if contact.normal else np.array([0.0, 0.0, 1.0])
    return np.roll(frame_axes(normal).T, 1, axis=0)


def contact_items(tree: Tree, contact: Contact) -> list[Item]:
    """Return the rows of a contact, one for each of `Contact.rows`; they are constraints if it is closed.

    The first rows are components, in axes of the second body, of its contact point minus that of the first.
    The kernels compute the opposite difference, hence the negative directions. Spin is the cosine of t1 of
    the second and t2 of the first body. Its rate is the angular velocity of the second body about t1 × t2,
    relative to the first.
    """
    finger, touched = (tree.frame[body] for body in contact.bodies)
    here, there = tuple(tree.local_point(touched, contact.at)), tuple(tree.local_point(finger, contact.at))
    n, t1, t2 = contact_axes(contact)
    made = {
        row: Item(DOT2, finger, touched, there, here, tuple(tree.local_vector(touched, -u)))
        for row, u in (("n", n), ("t1", t1), ("t2", t2))
    }
    made["s"] = _cosine(tree, touched, finger, t1, t2)
    return [made[row] for row in CONTACT_ROWS[contact.type]]


def facing_items(tree: Tree, joint: Joint | Contact) -> list[Item]:
    """Return cosines of directions shared by two bodies: 1 in the right assembly, -1 if flipped."""
    a, b = (tree.frame[body] for body in joint.bodies)
    if isinstance(joint, Contact):
        tangent = contact_axes(joint)[2]
        return [_cosine(tree, b, a, tangent, tangent)] if joint.type == "soft" else []
    axis = unit(joint.axis) if joint.axis else np.array([0.0, 0.0, 1.0])
    shared = {
        "revolute": [axis],
        "cylindrical": [axis],
        "planar": [np.cross(axis, unit(joint.axis2))] if joint.axis2 else [],
        "prismatic": [axis, frame_axes(axis)[:, 0]],
        "fixed": [axis, frame_axes(axis)[:, 0]],
    }.get(joint.type, [])
    return [_cosine(tree, a, b, u, u) for u in shared]


def _cosine(tree: Tree, a: int, b: int, u: np.ndarray, w: np.ndarray) -> Item:
    """Return the product of direction u of frame a and w of frame b, both in world axes."""
    return Item(DOT1, b, a, tuple(tree.local_vector(b, w)), tuple(tree.local_vector(a, u)))


def cut_joint_part(tree: Tree, joint: Joint) -> Part:
    """Return the coordinates of a cut joint: rates a·(ω₂ − ω₁) and a·(p₂ − p₁), angles by atan2.

    Raise `LoopError` for a joint without coordinates.
    """
    a, b = (tree.frame[body] for body in joint.bodies)
    at = joint.at or (0.0, 0.0, 0.0)
    axis = unit(joint.axis) if joint.axis else np.zeros(3)
    axis2 = unit(joint.axis2) if joint.axis2 else np.zeros(3)
    labelled: list[Item] = []
    auxiliary: list[Item] = []
    angles: list[tuple[int, float, list[Item]]] = []
    offsets: list[tuple[int, float]] = []

    def add_rotation(frame: int, other: int, u: np.ndarray, pair: list[Item] | None) -> None:
        """Add the angular rate about u, fixed in `frame`; `pair` are sine and cosine of its angle."""
        if pair:
            angles.append((len(labelled), joint.value[len(labelled)], pair))  # type: ignore[index]
        labelled.append(Item(RELATIVE_OMEGA, other, frame, extra=tuple(tree.local_vector(frame, u))))

    def add_translation(u: np.ndarray) -> None:
        """Add the rate of translation along u of body a."""
        offsets.append((len(labelled), joint.value[len(labelled)]))  # type: ignore[index]
        here, there = tuple(tree.local_point(a, at)), tuple(tree.local_point(b, at))
        labelled.append(Item(DOT2, b, a, there, here, tuple(tree.local_vector(a, u))))

    def sine_and_cosine(u: np.ndarray) -> list[Item]:
        """Return sine and cosine of the rotation of b about the direction u of a."""
        x = frame_axes(u)[:, 0]
        return [_cosine(tree, a, b, np.cross(u, x), x), _cosine(tree, a, b, x, x)]

    if joint.type in ("revolute", "cylindrical"):
        add_rotation(a, b, axis, sine_and_cosine(axis))
    if joint.type in ("prismatic", "cylindrical", "planar"):
        add_translation(axis)
    if joint.type == "planar":
        add_translation(axis2)
        add_rotation(a, b, np.cross(axis, axis2), sine_and_cosine(np.cross(axis, axis2)))
    if joint.type == "universal":
        # each axis is fixed in its own body, and they stay perpendicular
        third = np.cross(axis, axis2)
        add_rotation(a, b, axis, [_cosine(tree, a, b, third, axis2), _cosine(tree, a, b, axis2, axis2)])
        add_rotation(b, a, -axis2, [_cosine(tree, a, b, axis, third), _cosine(tree, a, b, axis, axis)])
    if joint.type == "spherical":
        for u in np.eye(3):
            add_rotation(a, b, u, None)
    if not labelled:
        raise LoopError(
            f"Joint '{joint.name}' is {joint.type} and closes a loop; it has no coordinates there.",
            joint=joint.name,
        )
    rows = []
    for row, reference, pair in angles:
        sine = len(labelled) + len(auxiliary)
        auxiliary += pair
        rows.append((row, sine, sine + 1, reference))
    valued = joint.type != "spherical"
    return Part(
        labelled + auxiliary, list(joint.components), [valued] * len(labelled), tuple(rows), tuple(offsets)
    )
