"""The parts of a drawing: bodies, joints, points and loads, immutable and free of any posture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from kic.errors import ModelError
from kic.inertias import check_inertia

Vector = tuple[float, float, float]
JointType = Literal[
    "revolute", "prismatic", "fixed", "cylindrical", "universal", "spherical", "planar", "free"
]
FREEDOMS: dict[str, int] = {
    "fixed": 0, "revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2,
    "spherical": 3, "planar": 3, "free": 6,
}  # fmt: skip
GROUND = "ground"
STRICT = {"extra": "forbid", "use_attribute_docstrings": True}


def vector(owner: str, key: str, value: Any) -> Vector:
    """Three finite numbers, or an error that names whose they are."""
    try:
        v = tuple(float(x) for x in value)
    except (TypeError, ValueError):
        raise ModelError(f"{owner}: expected `{key}` to be three numbers, got {value!r}.") from None
    if len(v) != 3 or not all(isfinite(x) for x in v):
        raise ModelError(f"{owner}: expected `{key}` to be three finite numbers, got {value!r}.")
    return v


def number(owner: str, key: str, value: Any, least: float | None = None) -> float:
    """One finite number, not below `least`."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{owner}: expected `{key}` to be a number, got {value!r}.") from None
    if not isfinite(x) or (least is not None and x < least):
        at_least = "" if least is None else f" of at least {least:g}"
        raise ModelError(f"{owner}: expected `{key}` to be a finite number{at_least}, got {value!r}.")
    return x


def check_name(kind: str, value: Any) -> str:
    """A name without dots, or an error."""
    if not isinstance(value, str) or not value or "." in value or value != value.strip():
        raise ModelError(f"A {kind}'s name must be a non-empty word without dots, got {value!r}.")
    return value


def assign(item: object, **values: Any) -> None:
    """Write normalised fields of a frozen item that is being made."""
    for key, value in values.items():
        object.__setattr__(item, key, value)


@dataclass(frozen=True)
class Body:
    """A rigid body, described where it stands in the drawing."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    mass: float | None = None
    """Mass. Without it the body has no dynamics; 0 says that it is massless."""
    com: Vector | None = None
    """Centre of mass in the drawing."""
    inertia: (
        Vector | tuple[float, float, float, float, float, float] | tuple[Vector, Vector, Vector] | None
    ) = None
    """Inertia about the centre of mass in the drawing's axes: 3 principal, 6 (xx yy zz xy xz yz) or 3×3."""
    at: Vector | None = None
    """Reference point whose motion is the body's x y z; the centre of mass if left out."""
    inertia_exception: str = ""
    """Why an inertia is allowed that no real body can have, such as published partial data."""

    def __post_init__(self) -> None:
        check_name("body", self.name)
        who = f"Body '{self.name}'"
        if self.name == GROUND:
            raise ModelError(f"'{GROUND}' is the fixed world and can not be a body of its own.")
        if self.mass is not None:
            assign(self, mass=number(who, "mass", self.mass, 0.0))
        if self.com is not None:
            assign(self, com=vector(who, "com", self.com))
        if self.at is not None:
            assign(self, at=vector(who, "at", self.at))
        if self.mass and self.com is None:
            raise ModelError(f"{who} has mass {self.mass:g} but no `com`. Say where its centre of mass is.")
        if self.inertia is not None:
            assign(self, inertia=check_inertia(who, self.inertia, self.inertia_exception))

    @property
    def reference(self) -> Vector | None:
        """The point whose motion is the body's x y z: `at`, else the centre of mass."""
        return self.at if self.at is not None else self.com


@dataclass(frozen=True)
class Joint:
    """A joint between two bodies, as drawn; its coordinate is the second's motion relative to the first."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism. The freedoms of a joint with several are called name.1, name.2 …"""
    type: JointType
    """Kind of pair: revolute, prismatic, fixed, cylindrical, universal, spherical, planar or free."""
    bodies: tuple[str, str]
    """The two bodies tied. The coordinate is the second's motion relative to the first."""
    at: Vector | None = None
    """A point of the joint in the drawing: on the axis, or the centre."""
    axis: Vector | None = None
    """Direction in the drawing; need not have unit length. Universal and planar: the first of two."""
    axis2: Vector | None = None
    """Second axis: of a universal joint (carried by the first), or second direction of a planar one."""
    value: float | tuple[float, ...] = 0.0
    """What the coordinate reads in the drawing, one number for each freedom."""
    stiffness: float | tuple[float, ...] = 0.0
    """Stiffness of a spring in the joint, for each freedom."""
    rest: float | tuple[float, ...] = 0.0
    """Coordinate at which that spring is free."""
    damping: float | tuple[float, ...] = 0.0
    """Viscous damping in the joint, for each freedom."""

    def __post_init__(self) -> None:
        check_name("joint", self.name)
        who = f"Joint '{self.name}'"
        if self.type not in FREEDOMS:
            raise ModelError(f"{who}: no joint type '{self.type}'. Types: {', '.join(FREEDOMS)}.")
        pair = tuple(self.bodies)
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ModelError(f"{who} must tie two different bodies, got {self.bodies!r}.")
        assign(self, bodies=pair)
        self._geometry(who)
        for key in ("value", "stiffness", "rest", "damping"):
            assign(self, **{key: self._per_freedom(who, key)})
        if self.type in ("spherical", "free"):
            self._no_angles(who)

    def _geometry(self, who: str) -> None:
        needs_at = self.type not in ("fixed", "prismatic")
        needs_axis = self.type in ("revolute", "prismatic", "cylindrical", "universal", "planar")
        needs_second = self.type in ("universal", "planar")
        for key, needed in (("at", needs_at), ("axis", needs_axis), ("axis2", needs_second)):
            given = getattr(self, key)
            if given is None and needed:
                raise ModelError(f"{who}: a {self.type} joint needs `{key}`, three numbers in the drawing.")
            if given is not None and key != "at" and not needed:
                raise ModelError(f"{who}: a {self.type} joint has no `{key}`; leave it out.")
            if given is not None:
                v = vector(who, key, given)
                if key != "at" and not any(v):
                    raise ModelError(f"{who}: `{key}` is zero; give a direction.")
                assign(self, **{key: v})
        if needs_second:
            a, b = self.axis, self.axis2
            assert a is not None  # for the type checker: needed above
            assert b is not None
            inner = sum(x * y for x, y in zip(a, b, strict=True))
            size = (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5
            if abs(inner) > 1e-9 * size:
                raise ModelError(
                    f"{who}: the two axes of a {self.type} joint must be perpendicular; "
                    f"their cosine is {inner / size:.3g}."
                )

    def _per_freedom(self, who: str, key: str) -> tuple[float, ...]:
        given = getattr(self, key)
        count = FREEDOMS[self.type]
        if isinstance(given, Sequence) and not isinstance(given, str):
            values = tuple(number(who, key, x) for x in given)
            if len(values) != count:
                raise ModelError(
                    f"{who}: expected `{key}` to have {count} numbers, one for each freedom, "
                    f"got {len(values)}."
                )
        else:
            values = (number(who, key, given),) * count
        if key in ("stiffness", "damping") and any(x < 0 for x in values):
            raise ModelError(f"{who}: `{key}` must not be negative, got {given!r}.")
        return values

    def _no_angles(self, who: str) -> None:
        first = 3 if self.type == "free" else 0
        for key in ("value", "stiffness", "rest"):
            if any(getattr(self, key)[first:]):
                raise ModelError(
                    f"{who}: the three turns of a {self.type} joint have no coordinates that `{key}` "
                    "could refer to; the drawing is their zero."
                )

    @property
    def freedoms(self) -> int:
        """Number of freedoms."""
        return FREEDOMS[self.type]

    @property
    def components(self) -> tuple[str, ...]:
        """Names of its coordinates: the joint's own, or name.1, name.2 … of several."""
        if self.freedoms == 1:
            return (self.name,)
        return tuple(f"{self.name}.{k + 1}" for k in range(self.freedoms))


@dataclass(frozen=True)
class Point:
    """A point fixed in a body (or in ground), where it stands in the drawing; it may carry a mass."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    body: str
    """The body (or ground) that carries it."""
    at: Vector
    """Place in the drawing."""
    mass: float = 0.0
    """Point mass there."""

    def __post_init__(self) -> None:
        check_name("point", self.name)
        who = f"Point '{self.name}'"
        assign(self, at=vector(who, "at", self.at), mass=number(who, "mass", self.mass, 0.0))


@dataclass(frozen=True)
class Distance:
    """The distance between two points, as something to ask about."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    points: tuple[str, str]
    """The two points."""

    def __post_init__(self) -> None:
        check_name("distance", self.name)
        assign(self, points=_two_points(f"Distance '{self.name}'", self.points))


@dataclass(frozen=True)
class Force:
    """A force at a point; `dynamics(applied=…)` may give another for each posture."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    point: str
    """The point where it acts."""
    force: Vector = (0.0, 0.0, 0.0)
    """Its components."""
    axes: Literal["world", "body"] = "world"
    """Axes of the components: world, or turning with the body (as they are in the drawing)."""

    def __post_init__(self) -> None:
        check_name("force", self.name)
        who = f"Force '{self.name}'"
        assign(self, force=vector(who, "force", self.force), axes=_axes(who, self.axes))


@dataclass(frozen=True)
class Moment:
    """A moment on a body; `dynamics(applied=…)` may give another for each posture."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    body: str
    """The body on which it acts."""
    moment: Vector = (0.0, 0.0, 0.0)
    """Its components."""
    axes: Literal["world", "body"] = "world"
    """Axes of the components: world, or turning with the body (as they are in the drawing)."""

    def __post_init__(self) -> None:
        check_name("moment", self.name)
        who = f"Moment '{self.name}'"
        assign(self, moment=vector(who, "moment", self.moment), axes=_axes(who, self.axes))


@dataclass(frozen=True)
class Spring:
    """A spring, a damper or both, between two points."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    points: tuple[str, str]
    """The two points."""
    stiffness: float = 0.0
    """Force for each length of stretch."""
    rest: float = 0.0
    """Free length."""
    damping: float = 0.0
    """Force for each speed of stretch."""

    def __post_init__(self) -> None:
        check_name("spring", self.name)
        who = f"Spring '{self.name}'"
        assign(self, points=_two_points(who, self.points))
        for key in ("stiffness", "rest", "damping"):
            assign(self, **{key: number(who, key, getattr(self, key), 0.0)})


def _two_points(who: str, given: Any) -> tuple[str, str]:
    pair = tuple(given)
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ModelError(f"{who} must name two different points, got {given!r}.")
    return pair


def _axes(who: str, given: str) -> str:
    if given not in ("world", "body"):
        raise ModelError(f"{who}: `axes` must be 'world' or 'body', got {given!r}.")
    return given


@dataclass(frozen=True)
class Units:
    """Names of the units that a model's numbers are in; angles are always radians."""

    __pydantic_config__ = STRICT
    length: str = "m"
    """Unit of length."""
    mass: str = "kg"
    """Unit of mass."""
    time: str = "s"
    """Unit of time."""
    force: str = "N"
    """Unit of force, length · mass / time²."""
