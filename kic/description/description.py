"""A drawing: all parts of a mechanism under one namespace, checked as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Self

from kic.description.contacts import Contact
from kic.description.couplings import Coupling, Terms, terms
from kic.description.motors import Motor, driven
from kic.description.parts import Body, Distance, Force, Joint, Moment, Point, Spring
from kic.description.units import Units
from kic.description.validation import (
    GROUND,
    STRICT,
    Vector,
    apart,
    assign,
    check_name,
    listed,
    number,
    text,
    vector,
)
from kic.errors import InputError, ModelError, UnknownNameError, short_repr, unknown
from kic.numerics.arguments import choice
from kic.numerics.arrays import has_complex_step, strip_complex_step

KINDS = (
    "bodies", "joints", "points", "distances", "forces", "moments", "springs", "couplings", "contacts",
    "motors",
)  # fmt: skip
_SINGULAR = {
    "bodies": "body",
    "joints": "joint",
    "points": "point",
    "distances": "distance",
    "forces": "force",
    "moments": "moment",
    "springs": "spring",
    "couplings": "coupling",
    "contacts": "contact",
    "motors": "motor",
}
Part = Body | Joint | Point | Distance | Force | Moment | Spring | Coupling | Contact | Motor
_KIND = dict(
    zip((Body, Joint, Point, Distance, Force, Moment, Spring, Coupling, Contact, Motor), KINDS, strict=True)
)
# a rod shorter than this share of the drawing's coordinates has no direction that could be trusted
_NO_LENGTH = 1e-12


@dataclass(frozen=True)
class MechanismDescription:
    """Everything that is drawn, in one assembled posture and in world coordinates; see `Mechanism`."""

    __pydantic_config__ = STRICT
    name: str
    """Short name."""
    bodies: tuple[Body, ...] = ()
    """The moving bodies."""
    joints: tuple[Joint, ...] = ()
    """The joints."""
    points: tuple[Point, ...] = ()
    """Points of interest."""
    distances: tuple[Distance, ...] = ()
    """Distances of interest; those that are fixed are rods."""
    forces: tuple[Force, ...] = ()
    """Forces at points."""
    moments: tuple[Moment, ...] = ()
    """Moments on bodies."""
    springs: tuple[Spring, ...] = ()
    """Springs and dampers between points."""
    couplings: tuple[Coupling, ...] = ()
    """Gears, belts and other linear relations between joint coordinates."""
    contacts: tuple[Contact, ...] = ()
    """Places where bodies touch, as fingers an object, or feet the ground."""
    motors: tuple[Motor, ...] = ()
    """Motors with their gears, rotors and circuits."""
    gravity: Vector = (0.0, 0.0, 0.0)
    """Acceleration of gravity."""
    closure_tolerance: float = 0.0
    """Relative length within which a redundant loop may contradict itself, for rounded dimensions."""
    coordinates: tuple[str, ...] | None = None
    """Joints whose coordinates are meant where none are named; by default all, as written."""
    title: str = ""
    """Headline."""
    about: str = ""
    """Description."""
    source: str = ""
    """Where the numbers come from."""
    drawing: str = ""
    """Which posture is drawn, and what the coordinates read there."""
    units: Units = field(default_factory=Units)
    """Names of the units."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("mechanism", self.name))
        who = f"Mechanism '{self.name}'"
        for expected, kind in _KIND.items():
            parts = listed(who, kind, getattr(self, kind), f"{expected.__name__} parts")
            for i, part in enumerate(parts):
                if not isinstance(part, expected):
                    raise ModelError(
                        f"{who}: `{kind}` must hold {expected.__name__} parts, got {short_repr(part)}.",
                        key=f"{kind}[{i}]",
                    )
            assign(self, **{kind: parts})
        assign(self, gravity=vector(who, "gravity", self.gravity))
        assign(self, closure_tolerance=number(who, "closure_tolerance", self.closure_tolerance, 0.0))
        for key in ("title", "about", "source", "drawing"):
            assign(self, **{key: text(who, key, getattr(self, key))})
        if not isinstance(self.units, Units):
            raise ModelError(
                f"{who}: expected `units` to be Units, got {short_repr(self.units)}.", key="units"
            )
        self._check_names()
        self._check_references()
        self._check_held()
        self._check_couplings()
        self._check_motors()
        self._check_rods()
        self._check_coordinates(who)

    def __getstate__(self) -> dict[str, object]:
        """Return the state without read-only views, which cannot be pickled and are made again."""
        return {key: x for key, x in self.__dict__.items() if not isinstance(x, MappingProxyType)}

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """Every named part."""
        return MappingProxyType({part.name: part for kind in KINDS for part in getattr(self, kind)})

    def _check_names(self) -> None:
        owners: dict[str, str] = {}
        for kind in KINDS:
            for i, part in enumerate(getattr(self, kind)):
                name, label = part.name, _SINGULAR[kind]
                if name == GROUND:
                    raise ModelError(
                        f"'{self.name}': '{GROUND}' is the fixed world; give the {label} another name.",
                        key=f"{kind}[{i}].name",
                    )
                if name in owners:
                    both = f"a {owners[name]} and a {label}" if owners[name] != label else f"two {kind}"
                    raise ModelError(
                        f"'{self.name}': the name '{name}' is given to {both}. Bodies, joints, points, "
                        "distances, loads, couplings, contacts and motors share one namespace; rename one.",
                        key=f"{kind}[{i}].name",
                        name=name,
                    )
                owners[name] = label

    def _check_references(self) -> None:
        bodies = dict.fromkeys((GROUND, *(body.name for body in self.bodies)))
        points = dict.fromkeys(point.name for point in self.points)
        for kind in ("joints", "contacts"):
            for i, pair in enumerate(getattr(self, kind)):
                who = f"{_SINGULAR[kind].capitalize()} '{pair.name}'"
                for body in pair.bodies:
                    self._known(who, f"{kind}[{i}].bodies", "body", body, bodies)
        for kind in ("points", "moments"):
            for i, part in enumerate(getattr(self, kind)):
                who = f"{_SINGULAR[kind].capitalize()} '{part.name}'"
                self._known(who, f"{kind}[{i}].body", "body", part.body, bodies)
        for kind in ("distances", "springs"):
            for i, part in enumerate(getattr(self, kind)):
                who = f"{_SINGULAR[kind].capitalize()} '{part.name}'"
                for point in part.points:
                    self._known(who, f"{kind}[{i}].points", "point", point, points)
        for i, force in enumerate(self.forces):
            self._known(f"Force '{force.name}'", f"forces[{i}].point", "point", force.point, points)

    def _known(self, who: str, key: str, kind: str, name: str, there: Collection[str]) -> None:
        if name not in there:
            error = unknown(kind, name, self.name, there)
            raise ModelError(f"{who}: {error}", key=key, name=name, candidates=tuple(there))

    def _check_held(self) -> None:
        """Every body must hang on ground through joints: a free joint is written, not implied."""
        if not self.joints:
            raise ModelError(
                f"'{self.name}' has no joints; a mechanism needs at least one, to '{GROUND}'.", key="joints"
            )
        beside: dict[str, list[str]] = {}
        for joint in self.joints:
            for one, other in (joint.bodies, joint.bodies[::-1]):
                beside.setdefault(one, []).append(other)
        held, front = {GROUND}, [GROUND]
        while front:
            new = {body for one in front for body in beside.get(one, ())} - held
            held |= new
            front = list(new)
        loose = [body.name for body in self.bodies if body.name not in held]
        if loose:
            raise ModelError(
                f"'{self.name}': nothing holds {', '.join(map(repr, loose[:8]))}"
                f"{' …' if len(loose) > 8 else ''}. Tie each body to '{GROUND}' through joints; one that "
                "moves freely gets a joint of type 'free'.",
                key=f"bodies[{[body.name for body in self.bodies].index(loose[0])}]",
                bodies=tuple(loose),
            )

    @cached_property
    def terms(self) -> Mapping[str, Terms]:
        """Of each coupling: its coordinates with the numbers that multiply them."""
        joints = {joint.name: joint for joint in self.joints}
        return MappingProxyType({c.name: terms(c, self.name, joints) for c in self.couplings})

    @cached_property
    def coupled(self) -> frozenset[str]:
        """Joints with a coordinate in a coupling; the spanning tree keeps them all."""
        components = {c: joint.name for joint in self.joints for c in joint.components}
        return frozenset(components[c] for made in self.terms.values() for c, _ in made)

    def _check_couplings(self) -> None:
        """Joints there are, that stand as the relation needs, and of which none closes a loop."""
        joints = {joint.name: joint for joint in self.joints}
        for i, coupling in enumerate(self.couplings):
            try:
                terms(coupling, self.name, joints)
            except ModelError as error:
                numbers = {**error.numbers, "key": f"couplings[{i}].{error.numbers['key']}"}
                raise ModelError(error.message, **numbers) from None
        coupled = [joint for joint in self.joints if joint.name in self.coupled]
        loose = self.coupled - forest(coupled)
        if loose:
            joint = next(joint for joint in coupled if joint.name in loose)
            i, named = next(
                (i, c.name)
                for i, c in enumerate(self.couplings)
                if any(q in joint.components for q, _ in self.terms[c.name])
            )
            raise ModelError(
                f"'{self.name}': coupled joints close a loop among themselves, at '{joint.name}' of coupling "
                f"'{named}'. One joint of each loop must be free of couplings, for the loop is opened there: "
                "write one coupling in other joints of the loop.",
                key=f"couplings[{i}].joints",
                joint=joint.name,
            )

    def _check_motors(self) -> None:
        """The joints of every motor are there, and have one coordinate each."""
        joints = {joint.name: joint for joint in self.joints}
        for i, motor in enumerate(self.motors):
            try:
                driven(motor, self.name, joints)
            except ModelError as error:
                numbers = {**error.numbers, "key": f"motors[{i}].{error.numbers['key']}"}
                raise ModelError(error.message, **numbers) from None

    @cached_property
    def shafts(self) -> Mapping[str, tuple[str, ...]]:
        """Of each motor: the coordinates that turn with its shaft."""
        joints = {joint.name: joint for joint in self.joints}
        return MappingProxyType({motor.name: driven(motor, self.name, joints) for motor in self.motors})

    def _check_rods(self) -> None:
        """A distance that stays as drawn needs two bodies, and a length."""
        points = {point.name: point for point in self.points}
        for i, rod in enumerate(self.distances):
            one, two = (points[name] for name in rod.points)
            if rod.fixed and one.body == two.body:
                raise ModelError(
                    f"Distance '{rod.name}': both points are of '{one.body}', so that their distance can not "
                    "change. Leave `fixed` out.",
                    key=f"distances[{i}].fixed",
                )
            length, size = apart(one.at, two.at).real, max(map(abs, (*one.at, *two.at)))
            if rod.fixed and not length > _NO_LENGTH * size:
                raise ModelError(
                    f"Distance '{rod.name}' is fixed, but drawn as {length:.3g}, where it has no direction. "
                    "Points that stay together are tied by a spherical joint.",
                    key=f"distances[{i}].fixed",
                    length=length,
                )

    @cached_property
    def fixed_distances(self) -> Mapping[str, float]:
        """Fixed distances with their lengths as drawn."""
        fixed = [d for d in self.distances if d.fixed]
        return MappingProxyType({d.name: apart(*(self.point(name).at for name in d.points)) for d in fixed})

    @cached_property
    def has_complex_step(self) -> bool:
        """Whether some number carries a complex step, as in a sensitivity."""
        values = (value for part in self.parts.values() for value in vars(part).values())
        return any(map(has_complex_step, (self.gravity, *values)))

    def without_complex_step(self) -> Self:
        """The same drawing in real numbers."""
        parts = {
            kind: tuple(
                replace(part, **{key: strip_complex_step(value) for key, value in vars(part).items()})
                for part in getattr(self, kind)
            )
            for kind in KINDS
        }
        return replace(self, **parts, gravity=strip_complex_step(self.gravity))  # type: ignore[arg-type]

    @cached_property
    def closed_contacts(self) -> tuple[Contact, ...]:
        """Contacts that are closed."""
        return tuple(contact for contact in self.contacts if contact.closed)

    def _check_coordinates(self, who: str) -> None:
        if self.coordinates is None:
            return
        assign(self, coordinates=listed(who, "coordinates", self.coordinates, "joint names"))
        joints = {joint.name: joint.components for joint in self.joints}
        singles = {c: (c,) for components in joints.values() for c in components}
        seen: set[str] = set()
        for i, name in enumerate(self.named_coordinates):
            key = f"coordinates[{i}]"
            components = joints.get(name, singles.get(name)) if isinstance(name, str) else None
            if components is None:
                error = unknown("joint", name, self.name, [*joints, *(c for c in singles if c not in joints)])
                raise ModelError(
                    f"`coordinates`: {error}", key=key, name=name, candidates=error.numbers["candidates"]
                )
            if not components:
                raise ModelError(
                    f"'{self.name}': joint '{name}' in `coordinates` is fixed and has none; leave it out.",
                    key=key,
                )
            twice = seen.intersection(components)
            if twice:
                raise ModelError(
                    f"'{self.name}': coordinate '{min(twice)}' is named twice in `coordinates`.", key=key
                )
            seen.update(components)
        assign(self, coordinates=tuple(map(str, self.named_coordinates)))

    @property
    def named_coordinates(self) -> tuple[str, ...]:
        """The joints (or components) of `coordinates`, by default every joint that moves, as written."""
        if self.coordinates is not None:
            return self.coordinates
        return tuple(joint.name for joint in self.joints if joint.dof)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the default coordinates, one for each freedom."""
        joints = {joint.name: joint.components for joint in self.joints}
        return tuple(c for name in self.named_coordinates for c in joints.get(name, (name,)))

    def part(self, name: str, *kinds: str) -> Part:
        """The part of a name; of some kinds only, if any are given.

        Raises
        ------
        UnknownNameError
            With the candidates.
        """
        if not isinstance(name, str):
            raise InputError(f"Expected a name, got {short_repr(name)}.")
        for kind in kinds:
            choice("kinds", kind, KINDS)
        among = kinds or KINDS
        part = self.parts.get(name)
        if part is not None and (not kinds or _KIND[type(part)] in kinds):
            return part
        label = " or ".join(_SINGULAR[kind] for kind in among) if kinds else "part"
        raise self.unknown(label, name, *among)

    def describe(self, name: str) -> str:
        """A part's name with what it is, for messages."""
        return f"{_SINGULAR[_KIND[type(self.parts[name])]]} '{name}'"

    def point(self, name: str) -> Point:
        """The point of a name."""
        point = self.part(name, "points")
        assert isinstance(point, Point)  # for the type checker: `part` looked among points only
        return point

    def unknown(self, label: str, name: str, *kinds: str) -> UnknownNameError:
        """The error for a name that is not there."""
        there = [part.name for kind in (kinds or KINDS) for part in getattr(self, kind)]
        return unknown(label, name, self.name, there)


def forest(joints: Iterable[Joint]) -> frozenset[str]:
    """Names of the joints, taken in this order, that close no loop with those before (Kruskal)."""
    root: dict[str, str] = {}

    def find(body: str) -> str:
        while (above := root.get(body, body)) != body:
            root[body] = root.get(above, above)  # halve the path, so that the next search is short
            body = above
        return body

    kept = []
    for joint in joints:
        a, b = (find(body) for body in joint.bodies)
        if a != b:
            root[a] = b
            kept.append(joint.name)
    return frozenset(kept)
