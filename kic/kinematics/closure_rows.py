"""What ties the tree: cut joints, couplings, rods and contacts; a cut joint's own coordinates."""

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
            DOT1, b, a, tuple(tree.local_vector(b, w)), tuple(tree.local_vector(a, u))
        )  # fmt: skip

    def beside(u: np.ndarray) -> Item:
        return Item(DOT2, b, a, there, here, tuple(tree.local_vector(a, u)))

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


def coupling_items(tree: Tree, name: str) -> list[Item]:
    """The condition of a coupling: one row, to which each of its terms adds."""
    made = []
    for coordinate, ratio in tree.description.terms[name]:
        n = tree.column[coordinate]
        made.append(Item(LINEAR_TERM, n, extra=(ratio, ratio * tree.geometry[n, DRAWN], 0.0), goes_on=True))
    return [*made[:-1], replace(made[-1], goes_on=False)]


def distance_item(tree: Tree, distance: Distance) -> Item:
    """One row, how far the two points are apart; a rod's condition is that it stays as drawn."""
    a, b = (point_item(tree, tree.description.point(name)) for name in distance.points)
    return Item(DISTANCE, b.frame_b, a.frame_b, b.local_b, a.local_b)


def contact_axes(contact: Contact) -> np.ndarray:
    """Unit vectors n, t1, t2 (3, 3) of a contact in the drawing, below each other; t1 × t2 = n."""
    normal = unit(contact.normal) if contact.normal else np.array([0.0, 0.0, 1.0])
    return np.roll(frame_axes(normal).T, 1, axis=0)


def contact_items(tree: Tree, contact: Contact) -> list[Item]:
    """Rows of a contact, one for each of `Contact.rows`: conditions where it is closed.

    Components, in axes of the second body, of its contact point less that of the first; the direction is
    taken against the difference as the kernels have it. Spin is the cosine of t1 of the second and t2 of the
    first body, whose rate is that of the second about t1 × t2, relative to the first.
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
    """Cosines of directions that two bodies share: 1 when closed as drawn, -1 when flipped."""
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
    """Product of direction u of frame a and direction w of frame b, both as drawn."""
    return Item(DOT1, b, a, tuple(tree.local_vector(b, w)), tuple(tree.local_vector(a, u)))


def cut_joint_part(tree: Tree, joint: Joint) -> Part:
    """Coordinates of a cut joint: turns a·(ω₂ − ω₁), slides a·(p₂ − p₁), values by sine and cosine.

    Raises
    ------
    LoopError
        For a free joint, whose cut leaves no loop.
    """
    a, b = (tree.frame[body] for body in joint.bodies)
    at = joint.at or (0.0, 0.0, 0.0)
    axis = unit(joint.axis) if joint.axis else np.zeros(3)
    axis2 = unit(joint.axis2) if joint.axis2 else np.zeros(3)
    shown: list[Item] = []
    hidden: list[Item] = []
    angles: list[tuple[int, float, list[Item]]] = []
    offsets: list[tuple[int, float]] = []

    def turn(frame: int, other: int, u: np.ndarray, pair: list[Item] | None) -> None:
        """A rate of turning about u, fixed in `frame`; `pair` are sine and cosine of its angle."""
        if pair:
            angles.append((len(shown), joint.value[len(shown)], pair))  # type: ignore[index]
        shown.append(Item(RELATIVE_OMEGA, other, frame, extra=tuple(tree.local_vector(frame, u))))

    def slide(u: np.ndarray) -> None:
        offsets.append((len(shown), joint.value[len(shown)]))  # type: ignore[index]
        here, there = tuple(tree.local_point(a, at)), tuple(tree.local_point(b, at))
        shown.append(Item(DOT2, b, a, there, here, tuple(tree.local_vector(a, u))))

    def about(u: np.ndarray) -> list[Item]:
        """Sine and cosine of the turn of b about the direction u of a."""
        x = frame_axes(u)[:, 0]
        return [_cosine(tree, a, b, np.cross(u, x), x), _cosine(tree, a, b, x, x)]

    if joint.type in ("revolute", "cylindrical"):
        turn(a, b, axis, about(axis))
    if joint.type in ("prismatic", "cylindrical", "planar"):
        slide(axis)
    if joint.type == "planar":
        slide(axis2)
        turn(a, b, np.cross(axis, axis2), about(np.cross(axis, axis2)))
    if joint.type == "universal":
        # the first axis stays with the first body, the second with the second; they stay perpendicular
        third = np.cross(axis, axis2)
        turn(a, b, axis, [_cosine(tree, a, b, third, axis2), _cosine(tree, a, b, axis2, axis2)])
        turn(b, a, -axis2, [_cosine(tree, a, b, axis, third), _cosine(tree, a, b, axis, axis)])
    if joint.type == "spherical":
        for u in np.eye(3):
            turn(a, b, u, None)
    if not shown:
        raise LoopError(
            f"Joint '{joint.name}' is {joint.type} and closes a loop; it has no coordinate to ask for."
        )
    placed = []
    for row, drawn, pair in angles:
        place = len(shown) + len(hidden)
        hidden += pair
        placed.append((row, place, place + 1, drawn))
    valued = joint.type != "spherical"
    return Part(shown + hidden, list(joint.components), [valued] * len(shown), tuple(placed), tuple(offsets))
