"""A drawing: all parts of a mechanism under one namespace, checked as a whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from kic.errors import InputError, ModelError, UnknownNameError, unknown
from kic.parts import (
    GROUND,
    STRICT,
    Body,
    Distance,
    Force,
    Joint,
    Moment,
    Point,
    Spring,
    Units,
    Vector,
    assign,
    check_name,
    vector,
)

KINDS = ("bodies", "joints", "points", "distances", "forces", "moments", "springs")
Part = Body | Joint | Point | Distance | Force | Moment | Spring


@dataclass(frozen=True)
class Drawing:
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
    """Distances of interest."""
    forces: tuple[Force, ...] = ()
    """Forces at points."""
    moments: tuple[Moment, ...] = ()
    """Moments on bodies."""
    springs: tuple[Spring, ...] = ()
    """Springs and dampers between points."""
    gravity: Vector = (0.0, 0.0, 0.0)
    """Acceleration of gravity."""
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
        check_name("mechanism", self.name)
        who = f"Mechanism '{self.name}'"
        types = (Body, Joint, Point, Distance, Force, Moment, Spring)
        for kind, expected in zip(KINDS, types, strict=True):
            parts = tuple(getattr(self, kind))
            for part in parts:
                if not isinstance(part, expected):
                    raise ModelError(f"{who}: `{kind}` must hold {expected.__name__} parts, got {part!r}.")
            assign(self, **{kind: parts})
        assign(self, gravity=vector(who, "gravity", self.gravity))
        if self.coordinates is not None:
            if isinstance(self.coordinates, str):
                raise ModelError(f"{who}: `coordinates` must be a list of names, got {self.coordinates!r}.")
            assign(self, coordinates=tuple(self.coordinates))
        self._check_names()
        self._check_references()
        self._check_held()

    @cached_property
    def parts(self) -> dict[str, Part]:
        """Every named part."""
        return {part.name: part for kind in KINDS for part in getattr(self, kind)}

    def _check_names(self) -> None:
        count = Counter(part.name for kind in KINDS for part in getattr(self, kind))
        twice = [name for name, n in count.items() if n > 1]
        if twice:
            owners = [
                f"{kind}[{i}]"
                for kind in KINDS
                for i, part in enumerate(getattr(self, kind))
                if part.name == twice[0]
            ]
            raise ModelError(
                f"'{self.name}': the name '{twice[0]}' is given to {' and '.join(owners)}. "
                "Bodies, joints, points, distances and loads share one namespace.",
                name=twice[0],
            )
        if GROUND in count:
            raise ModelError(f"'{self.name}': '{GROUND}' is the fixed world; choose another name.")

    def _check_references(self) -> None:
        bodies = (GROUND, *(body.name for body in self.bodies))
        points = tuple(point.name for point in self.points)
        for joint in self.joints:
            for body in joint.bodies:
                self._known(f"joint '{joint.name}'", "body", body, bodies)
        for holder in (*self.points, *self.moments):
            kind = "point" if isinstance(holder, Point) else "moment"
            self._known(f"{kind} '{holder.name}'", "body", holder.body, bodies)
        for pair in (*self.distances, *self.springs):
            for point in pair.points:
                self._known(f"'{pair.name}'", "point", point, points)
        for force in self.forces:
            self._known(f"force '{force.name}'", "point", force.point, points)
        if not self.joints:
            raise ModelError(f"'{self.name}' has no joints; a mechanism needs one at least.")
        named = [c for name in self.named_coordinates for c in self._components(name)]
        twice = [name for name, n in Counter(named).items() if n > 1]
        if twice:
            raise ModelError(f"'{self.name}': coordinate '{twice[0]}' is named twice in `coordinates`.")

    def _known(self, owner: str, kind: str, name: str, there: tuple[str, ...]) -> None:
        if name not in there:
            raise ModelError(f"{owner}: {unknown(kind, name, self.name, there)}", name=name)

    def _components(self, name: str) -> tuple[str, ...]:
        joints = {joint.name: joint.components for joint in self.joints}
        singles = {c for components in joints.values() for c in components}
        if name in joints:
            return joints[name]
        if name in singles:
            return (name,)
        raise ModelError(f"`coordinates`: {unknown('joint', name, self.name, joints)}", name=name)

    def _check_held(self) -> None:
        """Every body must hang on ground through joints: a free joint is written, not implied."""
        held = {GROUND}
        while True:
            more = {b for joint in self.joints if held & set(joint.bodies) for b in joint.bodies}
            if more <= held:
                break
            held |= more
        loose = [body.name for body in self.bodies if body.name not in held]
        if loose:
            raise ModelError(
                f"'{self.name}': nothing holds {', '.join(map(repr, loose))}. Tie each body to "
                f"'{GROUND}' through joints; one that moves freely gets a joint of type 'free'.",
                bodies=tuple(loose),
            )

    @property
    def named_coordinates(self) -> tuple[str, ...]:
        """The joints (or components) of `coordinates`, by default every joint that moves, as written."""
        if self.coordinates is not None:
            return self.coordinates
        return tuple(joint.name for joint in self.joints if joint.freedoms)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the default coordinates, one for each freedom."""
        return tuple(c for name in self.named_coordinates for c in self._components(name))

    def part(self, name: str, *kinds: str) -> Part:
        """The part of a name; of some kinds only, if any are given.

        Raises
        ------
        UnknownNameError
            With the candidates.
        """
        if not isinstance(name, str):
            raise InputError(f"Expected a name, got {name!r}.")
        among = kinds or KINDS
        for kind in among:
            for part in getattr(self, kind):
                if part.name == name:
                    return part
        label = " or ".join(_SINGULAR[kind] for kind in among) if kinds else "part"
        raise self.unknown(label, name, *among)

    def point(self, name: str) -> Point:
        """The point of a name."""
        point = self.part(name, "points")
        assert isinstance(point, Point)  # for the type checker: `part` looked among points only
        return point

    def unknown(self, label: str, name: str, *kinds: str) -> UnknownNameError:
        """The error for a name that is not there."""
        there = [part.name for kind in (kinds or KINDS) for part in getattr(self, kind)]
        return unknown(label, name, self.name, there)


_SINGULAR = {
    "bodies": "body",
    "joints": "joint",
    "points": "point",
    "distances": "distance",
    "forces": "force",
    "moments": "moment",
    "springs": "spring",
}
