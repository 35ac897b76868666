"""Touching: which contacts hold a body, the coordinates of what holds it, and how its contacts stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.checks import GROUND
from kic.contacts import Contact
from kic.cuts import contact_axes
from kic.errors import InputError
from kic.items import DIRECTION, POINT, Item
from kic.kinematics import RowsQuestion
from kic.model import Model
from kic.parts import Body
from kic.rows import names_of, plain_rows
from kic.tree import BALL


@dataclass(frozen=True)
class Frames:
    """Where contacts are, and how they stand.

    Attributes
    ----------
    point : (..., K, 3)
        Points of contact, as the first bodies carry them.
    axes : (..., K, 3, 3)
        Unit vectors n, t1, t2 below each other, as the second bodies carry them.
    spin : (..., K, 3)
        Normals of the crosses of the soft ones, t1 of the second × t2 of the first body; n of the others.
    reference : (..., 3)
        Reference point of the object.
    """

    point: np.ndarray
    axes: np.ndarray
    spin: np.ndarray
    reference: np.ndarray


def contacts_of(model: Model, held: str) -> tuple[Contact, ...]:
    """Closed contacts that hold a body: those with it or, where there are none, of its feet with ground.

    Raises
    ------
    UnknownNameError
        For a body that is not there.
    InputError
        If no closed contact holds it.
    """
    tree, drawing = model.tree, model.drawing
    drawing.part(held, "bodies")
    found = tuple(contact for contact in drawing.touching if held in contact.bodies)
    if not found:
        feet = [body for body in tree.frame if tree.frame[held] in tree.path(tree.frame[body])]
        sole = [{GROUND, foot} for foot in feet]
        found = tuple(contact for contact in drawing.touching if set(contact.bodies) in sole)
    if found:
        return found
    there = [f"{c.name} ({' on '.join(c.bodies)}{'' if c.closed else ', open'})" for c in drawing.contacts]
    raise InputError(
        f"No closed contact holds '{held}' of '{drawing.name}'. Contacts: {', '.join(there) or 'none'}. A "
        f"grasp needs contacts with '{held}', or of the feet on which it stands with '{GROUND}'.",
        name=held,
    )


def coordinates_of(
    model: Model, held: str, fingers: str | Iterable[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Coordinates of the fingers and of the body held, where its contacts are open.

    Raises
    ------
    InputError
        For a body that stands still, or fingers whose coordinates must be named.
    """
    tree, drawing = model.tree, model.drawing
    path = tree.path(tree.frame[held])
    if not path:
        raise InputError(
            f"'{held}' of '{drawing.name}' stands still; nothing can grasp or lift it.", name=held
        )
    own = [tree.columns[n] for n in path]
    body = drawing.part(held, "bodies")
    free = len(path) == 6 and sum(tree.cols[n, 1] == BALL for n in path) == 3
    rows = (held,) if free and isinstance(body, Body) and body.reference else tuple(own)
    if fingers is not None:
        return names_of(fingers, "fingers"), rows
    count = model.freedoms - len(own)
    drawn = [c for joint in drawing.joints for c in joint.components]
    for candidates in (sorted(tree.columns, key=drawn.index), model.coordinates):
        rest = tuple(name for name in candidates if name not in own)
        if len(rest) == count:
            return rest, rows
    raise InputError(
        f"With the contacts of '{held}' open, '{drawing.name}' has mobility {model.freedoms}: {len(own)} of "
        f"'{held}', and {count} of what holds it. Name {count} coordinates in `fingers`.",
        mobility=model.freedoms,
    )


def frames_of(model: Model, held: str, contacts: tuple[Contact, ...], states: np.ndarray) -> Frames:
    """Places and axes of contacts at states (..., S)."""
    tree = model.tree
    body = model.drawing.part(held, "bodies")
    assert isinstance(body, Body)  # for the type checker: `part` looked among bodies only
    if body.reference is None:
        raise InputError(
            f"Body '{held}' has no reference point, about which its grasp could be told: give it `at` (or "
            "`com`).",
            name=held,
        )
    pairs = [[tree.frame[name] for name in contact.bodies] for contact in contacts]
    axes = [contact_axes(contact) for contact in contacts]

    def point(frame: int, at: Any) -> Item:
        return Item(POINT, frame, local_b=tuple(tree.local_point(frame, at)))

    def along(frame: int, u: np.ndarray) -> Item:
        return Item(DIRECTION, frame, local_b=tuple(tree.local_vector(frame, u)))

    items = [point(tree.frame[held], body.reference)]
    items += [point(first, c.at) for (first, _), c in zip(pairs, contacts, strict=True)]
    items += [along(second, u) for (_, second), three in zip(pairs, axes, strict=True) for u in three]
    items += [along(first, three[2]) for (first, _), three in zip(pairs, axes, strict=True)]
    question = RowsQuestion(tree, plain_rows(tree, items), 1)
    flat = states.reshape(-1, states.shape[-1])
    found = question.answer.split(question.table(flat), states.shape[:-1])[0]
    vectors, count = found.reshape(*states.shape[:-1], len(items), 3), len(contacts)
    turned = vectors[..., 1 + count : 1 + 4 * count, :].reshape(*states.shape[:-1], count, 3, 3)
    soft = np.array([contact.type == "soft" for contact in contacts])
    cross = np.cross(turned[..., 1, :], vectors[..., 1 + 4 * count :, :])
    spin = np.where(soft[:, None], cross, turned[..., 0, :])
    return Frames(vectors[..., 1 : 1 + count, :], turned, spin, vectors[..., 0, :])
