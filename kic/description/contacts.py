"""Contacts between two bodies, such as a finger and an object or a foot and the ground."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np

from kic.description import validation as valid
from kic.description.validation import PARALLEL_ATOL, Vector, assign, check_part
from kic.errors import ModelError, invalid_part, short_repr
from kic.numerics.display import Summary

ContactType = Literal["point", "friction", "soft", "pinned"]
# rows that are zero while a contact is closed: along the normal, the two tangents, and spin
CONTACT_ROWS: dict[str, tuple[str, ...]] = {
    "point": ("n",),
    "friction": ("n", "t1", "t2"),
    "soft": ("n", "t1", "t2", "s"),
    "pinned": ("n", "t1", "t2"),
}
# fields that only some types of contacts have, and these types
CONTACT_FIELDS = {"friction": ("friction", "soft"), "torsion": ("soft",), "tangent2": ("soft",)}


@dataclass(frozen=True)
class Contact:
    """Contact of two bodies, such as a finger and an object or a foot and the ground.

    A closed contact is a constraint. A "point" without friction constrains the normal direction only.
    "friction" and "pinned" keep the two contact points together, like a ball joint. A "soft" finger also
    prevents spin about the normal, like a universal joint whose axes are the tangents, the first carried by
    the second body. Bodies may tilt by any angle, and half a turn of spin is another assembly mode. They do
    not roll: contact points are fixed in both bodies, and this sets the second-order terms. The contact point
    without friction is fixed in the first body and slides on the tangent plane of the second.

    Contacts do not belong to the spanning tree. An object in a hand, or a trunk on its legs, needs its own
    joint to ground, of type "free" if it moves freely.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism. The rows are name.n (the gap), name.t1, name.t2 and name.s; they
        describe the motion of the second body relative to the first.
    type : {"point", "friction", "soft", "pinned"}
        Point without friction, point with friction (a hard finger), soft finger, or a pin, which carries
        forces of any direction, including tension.
    bodies : (2,) str
        Touching and touched body: finger and object, foot and ground.
    at : (3,) float
        Contact point in the reference configuration.
    normal : (3,) float, optional
        Direction in which the first body pushes the second: into the object, into the ground. It is fixed in
        the second body. Optional for a pin, whose rows are then along the world axes, n along z.
    tangent : (3,) float, optional
        Direction of t1, fixed in the second body; its component along the normal is ignored. The rows are
        along n, t1 and t2 = n × t1. By default the world axis most perpendicular to the normal.
    tangent2 : (3,) float, optional
        For type "soft": direction of t2 in the first body; its component along t1 is ignored. By default n ×
        t1. `Mechanism.lock` sets it where the bodies have tilted about t1.
    friction : float, optional
        Coefficient of friction, for types "friction" and "soft".
    torsion : float, optional
        Length γ for type "soft": the largest moment about the normal is γ times the normal force. It is
        reduced by tangential forces, (fₜ / μ)² + (m / γ)² ≤ fₙ².
    closed : bool
        True for an active contact. An open contact, such as a lifted foot, has rows but is not a constraint.

    Examples
    --------
    >>> foot = kic.Contact("step", "friction", ("foot", "ground"), (0, 0, 0), normal=(0, 0, -1), friction=0.6)
    >>> foot.rows
    ('step.n', 'step.t1', 'step.t2')
    """

    name: str
    type: ContactType
    bodies: tuple[str, str]
    at: Vector
    _: KW_ONLY
    normal: Vector | None = None
    tangent: Vector | None = None
    tangent2: Vector | None = None
    friction: float | None = None
    torsion: float | None = None
    closed: bool = True

    def __post_init__(self) -> None:
        kinds = partial(valid.choice, among=CONTACT_ROWS)
        label = check_part(
            self,
            "contact",
            type=kinds,
            bodies=valid.two_names,
            at=valid.vector,
            normal=valid.direction,
            tangent=valid.direction,
            tangent2=valid.direction,
        )
        if self.normal is None and self.type != "pinned":
            raise ModelError(
                f"{label}: a {self.type} contact needs `normal`, the direction in which '{self.bodies[0]}' "
                f"pushes '{self.bodies[1]}'.",
                key="normal",
            )
        self._check_tangents(label)
        for key, what in (
            ("friction", "the coefficient of friction"),
            ("torsion", "the largest moment per unit of normal force, a length"),
        ):
            self._bound(label, key, what, CONTACT_FIELDS[key])
        valid.flag(label, "closed", self.closed)

    def _check_tangents(self, label: str) -> None:
        """Check that no tangent is parallel to a vector that it must be perpendicular to."""
        if self.tangent2 is not None and (self.type not in CONTACT_FIELDS["tangent2"] or not self.tangent):
            rule = "soft contact with `tangent`" if self.type == "soft" else "contact of type 'soft'"
            raise invalid_part(label, "tangent2", f"needs a {rule}", self.tangent2, "Leave it out.")
        vectors = {
            "normal": self.normal or (0.0, 0.0, 1.0),
            "tangent": self.tangent,
            "tangent2": self.tangent2,
        }
        known = [(key, v, np.linalg.norm(np.real(v))) for key, v in vectors.items() if v is not None]
        for (other, u, size), (key, v, own) in pairwise(known):
            if np.linalg.norm(np.cross(np.real(u), np.real(v))) <= PARALLEL_ATOL * size * own:
                raise invalid_part(label, key, f"must not be parallel to `{other}`", v)

    def _bound(self, label: str, key: str, what: str, types: tuple[str, ...]) -> None:
        """Check that a limit is positive if the type has it, and absent otherwise."""
        given = getattr(self, key)
        if self.type not in types:
            if given is not None:
                raise ModelError(
                    f"{label}: a {self.type} contact has no `{key}`, got {short_repr(given)}. Leave it out, "
                    f"or use the type {' or '.join(map(repr, types))}.",
                    key=key,
                )
            return
        if given is None:
            raise ModelError(f"{label}: a {self.type} contact needs `{key}`, {what}.", key=key)
        value = valid.number(label, key, given)
        if not value.real > 0:
            weaker = "'friction'" if key == "torsion" else "'point'"
            raise invalid_part(
                label, key, "must be larger than 0", given, f"Without it, use the type {weaker}."
            )
        assign(self, **{key: value})

    @property
    def rows(self) -> tuple[str, ...]:
        """Tuple of the names of the rows, which are zero while the contact is closed."""
        return tuple(f"{self.name}.{row}" for row in CONTACT_ROWS[self.type])


def add_contacts(sheet: Summary, contacts: Iterable[Contact]) -> None:
    """Add a table of contacts to a summary, if there are any."""
    lines = {
        c.name: [
            c.type,
            " on ".join(c.bodies),
            f"{c.friction:g}" if c.friction else "",
            "" if c.closed else "open",
        ]
        for c in contacts
    }
    if lines:
        sheet.texts("contacts", list(lines), ["type", "bodies", "friction", ""], list(lines.values()))
