"""Contacts: places where one body touches another, as a finger an object, or a foot the ground."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from kic.description.validation import (
    STRICT,
    Vector,
    assign,
    check_name,
    choice,
    direction,
    number,
    two_names,
    vector,
)
from kic.display import Summary
from kic.errors import ModelError, short_repr

ContactType = Literal["point", "friction", "soft", "pinned"]
# the rows that a contact keeps at zero while it is closed: along the normal, the two tangents, and spin
CONTACT_ROWS: dict[str, tuple[str, ...]] = {
    "point": ("n",),
    "friction": ("n", "t1", "t2"),
    "soft": ("n", "t1", "t2", "s"),
    "pinned": ("n", "t1", "t2"),
}


@dataclass(frozen=True)
class Contact:
    """A place where one body touches another: a finger an object, a foot the ground.

    While it is closed, a contact keeps together what touches: a "point" without friction only along the
    normal; "friction" and "pinned" keep the two points of contact together, as a ball joint does; a "soft"
    finger also keeps the second body from spinning on the first, as a universal joint does whose two axes
    are the tangents, the first carried by the second body. Bodies do not roll on one another: the points of
    contact stay where they are in both bodies, and second orders are those of such points. A point without
    friction is one of the first body, and glides on the tangent plane of the second.

    A contact holds nothing of its bodies in the spanning tree: an object in a hand, or a trunk on its legs,
    hangs on ground by a joint of its own, a free one where it moves freely.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism. Its rows are called name.n (the gap), name.t1, name.t2, name.s, and
        are the motion of the second body relative to the first.
    type : {"point", "friction", "soft", "pinned"}
        Point without friction, point with friction (a hard finger), soft finger, or a pin, which holds
        forces of any direction and can pull.
    bodies : (2,) str
        Who touches, and who is touched: finger and object, foot and ground.
    at : (3,) float
        Where they touch in the drawing.
    normal : (3,) float, optional
        The direction in which the first pushes the second: into the object, into the ground. Turns with the
        second body. A pin needs none; its rows are then along the axes of the drawing, n along z.
    friction : float, optional
        Coefficient of friction; of "friction" and "soft".
    torsion : float, optional
        Length γ that, times the normal force, is the largest moment about the normal; of "soft". Friction
        takes its part of it: (fₜ / μ)² + (m / γ)² ≤ fₙ².
    closed : bool
        Whether it holds; an open one, such as a lifted foot, has rows to ask about, and holds nothing.

    Raises
    ------
    ModelError
        For numbers that are missing, have no meaning for the type, or are out of range.

    Examples
    --------
    >>> import kic
    >>> foot = kic.Contact("step", "friction", ("foot", "ground"), (0, 0, 0), (0, 0, -1), friction=0.6)
    >>> foot.rows
    ('step.n', 'step.t1', 'step.t2')
    """

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism. Its rows are called name.n (the gap), name.t1, name.t2 and name.s."""
    type: ContactType
    """Kind of contact: point (without friction), friction (a point with it), soft (finger) or pinned."""
    bodies: tuple[str, str]
    """Who touches, and who is touched: finger and object, foot and ground."""
    at: Vector
    """Where they touch in the drawing."""
    normal: Vector | None = None
    """Direction in which the first body pushes the second; need not have unit length. A pin needs none."""
    friction: float | None = None
    """Coefficient of friction, of "friction" and "soft"."""
    torsion: float | None = None
    """Largest moment about the normal for each unit of normal force, a length; of "soft"."""
    closed: bool = True
    """Whether it holds; an open one, such as a lifted foot, can be asked about and holds nothing."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("contact", self.name))
        who = f"Contact '{self.name}'"
        assign(self, type=choice(who, "type", self.type, CONTACT_ROWS))
        assign(self, bodies=two_names(who, "bodies", self.bodies, "bodies"))
        assign(self, at=vector(who, "at", self.at))
        if self.normal is not None:
            assign(self, normal=direction(who, "normal", self.normal))
        elif self.type != "pinned":
            raise ModelError(
                f"{who}: a {self.type} contact needs `normal`, the direction in which '{self.bodies[0]}' "
                f"pushes '{self.bodies[1]}'.",
                key="normal",
            )
        for key, what, types in (
            ("friction", "the coefficient of friction", ("friction", "soft")),
            ("torsion", "the largest moment for each unit of normal force, a length", ("soft",)),
        ):
            self._bound(who, key, what, types)
        if self.closed is not True and self.closed is not False:
            raise ModelError(
                f"{who}: expected `closed` to be True or False, got {short_repr(self.closed)}.", key="closed"
            )

    def _bound(self, who: str, key: str, what: str, types: tuple[str, ...]) -> None:
        """A positive number where the type has one, and none elsewhere."""
        given = getattr(self, key)
        if self.type not in types:
            if given is not None:
                raise ModelError(
                    f"{who}: a {self.type} contact has no `{key}`, got {short_repr(given)}. Leave it out, or make "
                    f"the contact one of type {' or '.join(map(repr, types))}.",
                    key=key,
                )
            return
        if given is None:
            raise ModelError(f"{who}: a {self.type} contact needs `{key}`, {what}.", key=key)
        value = number(who, key, given)
        if not value.real > 0:
            less = "'friction'" if key == "torsion" else "'point'"
            raise ModelError(
                f"{who}: expected `{key}` to be larger than 0, got {short_repr(given)}. A contact without is one "
                f"of type {less}.",
                key=key,
            )
        assign(self, **{key: value})

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of its rows: what it keeps at zero while it is closed."""
        return tuple(f"{self.name}.{row}" for row in CONTACT_ROWS[self.type])


def add_contacts(sheet: Summary, contacts: Iterable[Contact]) -> None:
    """Write contacts on a sheet, who touches whom and how, if there are any."""
    told = {
        c.name: [
            c.type,
            " on ".join(c.bodies),
            f"{c.friction:g}" if c.friction else "",
            "" if c.closed else "open",
        ]
        for c in contacts
    }
    if told:
        sheet.texts("contacts", list(told), ["type", "bodies", "friction", ""], list(told.values()))
