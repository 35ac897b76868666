"""Description of a mechanism: all parts in one namespace, validated as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args

import numpy as np

from kic.description import validation as valid
from kic.description.contacts import CONTACT_FIELDS, Contact, add_contacts
from kic.description.couplings import Coupling, Terms, add_couplings, terms
from kic.description.joint_types import BALL_TYPES, JOINT_AXES, JOINT_COORDINATES
from kic.description.motors import Motor, driven, list_motors
from kic.description.parts import (
    COM,
    Angle,
    Body,
    CenterOfMass,
    Distance,
    Force,
    Frame,
    Joint,
    Measure,
    Moment,
    Point,
    Spring,
    ends_text,
    limits_by_row,
)
from kic.description.units import Units, default_gravity, rate_unit
from kic.description.validation import GROUND, Vector, assign, listed, part_of, split_row
from kic.errors import (
    InputError,
    ModelError,
    UnknownNameError,
    either,
    invalid,
    invalid_part,
    short_repr,
    unknown,
)
from kic.numerics.arguments import choice
from kic.numerics.arrays import has_complex_step, strip_complex_step
from kic.numerics.caches import without_caches
from kic.numerics.display import OneLine, Summary

KINDS = (
    "bodies", "joints", "points", "distances", "angles", "forces", "moments", "springs", "couplings",
    "contacts", "motors", "frames", "centers",
)  # fmt: skip
_SINGULAR = {kind: kind[:-1] for kind in KINDS} | {"bodies": "body", "centers": "centre of mass"}
Part = (
    Body
    | Joint
    | Point
    | Distance
    | Angle
    | Force
    | Moment
    | Spring
    | Coupling
    | Contact
    | Motor
    | Frame
    | CenterOfMass
)
_KIND = dict(zip(get_args(Part), KINDS, strict=True))
# fields with the names of bodies or points
REFERENCES = {
    "joints": "bodies", "contacts": "bodies", "points": "body", "frames": "body", "moments": "body",
    "distances": "points", "angles": "bodies", "springs": "points", "centers": "bodies",
    "forces": "point",
}  # fmt: skip
# kinds of parts other than joints whose rows have values
VALUED_KINDS = ("points", "frames", "distances", "angles", "bodies", "contacts", "centers")
MEASURES = ("distances", "angles")
# rows of points and bodies, where external efforts can act
ROWS: Mapping[type, tuple[str, ...]] = {
    Point: ("x", "y", "z"),
    Body: ("x", "y", "z", "wx", "wy", "wz", "angle"),
}
# a fixed distance below this share of the coordinates of its points has no reliable direction
FIXED_DISTANCE_RTOL = 1e-12
# smallest fixed angle, and its distance from π: the row is its cosine, whose derivative is the sine
FIXED_ANGLE_MIN = 1e-5


class _DefaultNames(tuple[str, ...]):
    """Default names, marked so that `replace` treats them as a default again."""

    __slots__ = ()


class _DefaultGravity(tuple[float, float, float]):
    """Default gravity, marked so that `replace` treats it as a default again."""

    __slots__ = ()


class _RowNames:
    """Descriptor that returns the single rows of an argument with names of parts, or of its default."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.key, self.rows = f"_{name}", f"_{name}_rows"

    def __get__(self, instance: Any, owner: type | None = None) -> tuple[str, ...] | None:
        if instance is None:
            return None  # the default of the argument
        values = instance.__dict__
        if self.rows not in values:
            given = values[self.key]
            parts = instance._moving_parts if given is None else given
            if given is None and self.key == "_actuators":
                parts = instance.coordinates
            rows = (row for part in parts for row in instance._components(part) or ())
            values[self.rows] = _DefaultNames(rows) if given is None else tuple(rows)
        return values[self.rows]

    def __set__(self, instance: Any, given: Iterable[str] | None) -> None:
        instance.__dict__[self.key] = None if isinstance(given, _DefaultNames) else given
        instance.__dict__.pop(self.rows, None)


@dataclass(frozen=True, repr=False)
class Info(OneLine):
    """Texts about a mechanism, its `info`.

    Parameters
    ----------
    title : str
        Headline.
    about : str
        Description.
    source : str
        Source of the data.
    drawing : str
        Reference configuration.

    Examples
    --------
    >>> kic.load("horn-two-link").info
    <Info: title Horn's planar two-link arm of equal thin sticks>
    """

    _one_line = ("title",)

    title: str = ""
    about: str = ""
    source: str = ""
    drawing: str = ""

    def __post_init__(self) -> None:
        for key, value in vars(self).items():
            valid.text("Info", key, value)


@dataclass(frozen=True)
class MechanismDescription:
    """Parts of a mechanism in an assembled reference configuration, in world coordinates; see `Mechanism`."""

    name: str
    bodies: tuple[Body, ...] = ()
    joints: tuple[Joint, ...] = ()
    _: KW_ONLY
    points: tuple[Point, ...] = ()
    distances: tuple[Distance, ...] = ()
    angles: tuple[Angle, ...] = ()
    forces: tuple[Force, ...] = ()
    moments: tuple[Moment, ...] = ()
    springs: tuple[Spring, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    contacts: tuple[Contact, ...] = ()
    motors: tuple[Motor, ...] = ()
    frames: tuple[Frame, ...] = ()
    centers: tuple[CenterOfMass, ...] = ()
    if TYPE_CHECKING:  # the attributes are tuples, also of arguments that are left out
        gravity: Vector = (0.0, 0.0, -9.81)
        closure_tolerance: float = 0.0
        coordinates: tuple[str, ...] = ()
        actuators: tuple[str, ...] = ()
    else:
        gravity: Vector | None = None
        closure_tolerance: float = 0.0
        coordinates: tuple[str, ...] | None = None
        actuators: tuple[str, ...] | None = None
    info: Info = Info()
    units: Units = field(default_factory=Units)
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        label = valid.check_part(self, "mechanism", closure_tolerance=valid.share)
        if not isinstance(self.info, Info):
            known = [f.name for f in fields(Info)]
            if not isinstance(self.info, Mapping) or not {*self.info} <= {*known}:
                rule = f"must be Info, or a dict with keys among {either(known, 'and')}"
                raise invalid_part(label, "info", rule, self.info)
            assign(self, info=Info(**self.info))
        if not isinstance(self.units, Units):
            raise invalid_part(label, "units", "must be Units", self.units)
        if self.gravity is None or isinstance(self.gravity, _DefaultGravity):
            assign(self, gravity=_DefaultGravity(default_gravity(self.units, label)))
        else:
            assign(self, gravity=valid.vector(label, "gravity", self.gravity))
        for part_type, kind in _KIND.items():
            parts = listed(label, kind, getattr(self, kind), f"{part_type.__name__} parts")
            for i, part in enumerate(parts):
                if not isinstance(part, part_type):
                    rule = (
                        f"{label}: `{kind}` must contain {part_type.__name__} parts, got {short_repr(part)}."
                    )
                    raise ModelError(rule, key=f"{kind}[{i}]")
            assign(self, **{kind: parts})
        remarks = listed(label, "remarks", self.remarks, "texts")
        assign(self, remarks=tuple(valid.text(label, "remarks", x) for x in remarks))
        self._check_names()
        self._check_references()
        self._check_attached()
        self._check_couplings()
        self._check_motors()
        self._check_fixed_measures()
        for key, rows in (("coordinates", False), ("actuators", True)):
            given = given_names(self, key)
            if given is not None:
                assign(self, **{key: self._checked_rows(label, key, given, rows)})

    def __getstate__(self) -> dict[str, object]:
        """Return the state without caches; copies and pickles compute these again."""
        left_out = ("_coordinates_rows", "_actuators_rows")  # made from the names
        return {key: x for key, x in without_caches(self).items() if key not in left_out}

    @cached_property
    def _parts(self) -> Mapping[str, Part]:
        """Mapping from names to parts."""
        return MappingProxyType({part.name: part for kind in KINDS for part in getattr(self, kind)})

    @cached_property
    def _ball_joints(self) -> Mapping[str, Joint]:
        """Mapping from names to spherical joints."""
        return MappingProxyType({joint.name: joint for joint in self.joints if joint.type == "spherical"})

    def _check_names(self) -> None:
        """Check that all names differ."""
        owners: dict[str, str] = {}
        for kind in KINDS:
            for i, part in enumerate(getattr(self, kind)):
                name, label = part.name, _SINGULAR[kind]
                if name == GROUND:
                    message = f"'{self.name}': '{GROUND}' is the fixed world; give the {label} another name."
                    raise ModelError(message, key=f"{kind}[{i}].name")
                if name in owners:
                    both = f"a {owners[name]} and a {label}" if owners[name] != label else f"two {kind}"
                    message = (
                        f"'{self.name}': the name '{name}' is given to {both}. Bodies, joints, points, "
                        "distances, angles, loads, couplings, contacts, motors, frames and centres of mass "
                        "share one namespace; rename one."
                    )
                    raise ModelError(message, key=f"{kind}[{i}].name", name=name)
                owners[name] = label

    def _check_references(self) -> None:
        """Check that all bodies and points that parts refer to exist."""
        bodies = dict.fromkeys((GROUND, *(body.name for body in self.bodies)))
        points = dict.fromkeys(point.name for point in self.points)
        for kind, key in REFERENCES.items():
            sought, there = ("point", points) if key.startswith("point") else ("body", bodies)
            for i, part in enumerate(getattr(self, kind)):
                given = getattr(part, key)
                for name in (given,) if isinstance(given, str) else given or ():
                    if name not in there:
                        label = f"{_SINGULAR[kind].capitalize()} '{part.name}'"
                        error = unknown(sought, name, self.name, there)
                        raise ModelError(
                            f"{label}: {error}", key=f"{kind}[{i}].{key}", name=name, candidates=tuple(there)
                        )

    def _check_attached(self) -> None:
        """Check that joints connect every body to ground; free joints must be explicit."""
        if not self.joints:
            message = f"'{self.name}' has no joints; a mechanism needs at least one, to '{GROUND}'."
            raise ModelError(message, key="joints")
        attached = connected(self.joints, [GROUND])
        loose = [body.name for body in self.bodies if body.name not in attached]
        if loose:
            raise ModelError(
                f"'{self.name}': no joint connects {', '.join(map(repr, loose[:8]))}"
                f"{' …' if len(loose) > 8 else ''} to '{GROUND}'. Add joints; a body that "
                "moves freely needs a joint of type 'free'.",
                key=f"bodies[{[body.name for body in self.bodies].index(loose[0])}]",
                bodies=tuple(loose),
            )

    @cached_property
    def _terms(self) -> Mapping[str, Terms]:
        """Mapping from each coupling to its coordinates and coefficients."""
        return MappingProxyType({c.name: terms(c, self.name, self._joints) for c in self.couplings})

    @cached_property
    def _joints(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    @cached_property
    def _coupled(self) -> frozenset[str]:
        """Set of joints with a coordinate in a coupling; all are in the spanning tree."""
        components = {c: joint.name for joint in self.joints for c in joint.components}
        return frozenset(components[c] for made in self._terms.values() for c, _ in made)

    def _check_couplings(self) -> None:
        """Check couplings, and that coupled joints do not form a loop."""
        for i, coupling in enumerate(self.couplings):
            try:
                terms(coupling, self.name, self._joints)
            except ModelError as error:
                numbers = {**error.numbers, "key": f"couplings[{i}].{error.numbers['key']}"}
                raise ModelError(error.message, **numbers) from None
        coupled = [joint for joint in self.joints if joint.name in self._coupled]
        loose = self._coupled - forest(coupled)
        if loose:
            joint = next(joint for joint in coupled if joint.name in loose)
            i, named = next(
                (i, c.name)
                for i, c in enumerate(self.couplings)
                if any(q in joint.components for q, _ in self._terms[c.name])
            )
            raise ModelError(
                f"'{self.name}': coupled joints close a loop among themselves, at '{joint.name}' of coupling "
                f"'{named}'. One joint of each loop must have no coupling, because the loop is cut there. "
                "Write one coupling in terms of other joints of the loop.",
                key=f"couplings[{i}].joints",
                joint=joint.name,
            )

    def _check_motors(self) -> None:
        """Check that the joints, distances and angles of every motor exist and have one coordinate."""
        for i, motor in enumerate(self.motors):
            try:
                driven(motor, self.name, self._joints, self._variable_measures)
            except ModelError as error:
                numbers = {**error.numbers, "key": f"motors[{i}].{error.numbers['key']}"}
                raise ModelError(error.message, **numbers) from None

    @cached_property
    def _shafts(self) -> Mapping[str, tuple[str, ...]]:
        """Mapping from each motor to the coordinates driven by its shaft."""
        distances = self._variable_measures
        return MappingProxyType({m.name: driven(m, self.name, self._joints, distances) for m in self.motors})

    @cached_property
    def _measures(self) -> tuple[Distance | Angle, ...]:
        """Tuple of the distances and angles."""
        return (*self.distances, *self.angles)

    def _bodies_of(self, measure: Distance | Angle) -> tuple[str, str]:
        """Return the two bodies of a distance or an angle."""
        if isinstance(measure, Angle):
            return measure.bodies
        first, second = (self._point(name).body for name in measure.points)
        return first, second

    def _check_fixed_measures(self) -> None:
        """Check that fixed distances and angles connect different bodies and have a direction."""
        for measure in self._fixed_measures:
            kind, bodies, value = _KIND[type(measure)], self._bodies_of(measure), self._drawn_value(measure)
            label, key = self._label(measure.name), f"{kind}[{getattr(self, kind).index(measure)}].fixed"
            if bodies[0] == bodies[1]:
                raise ModelError(
                    f"{label}: both points are on '{bodies[0]}', and their distance cannot change. Leave "
                    "`fixed` out.",
                    key=key,
                )
            if isinstance(measure, Angle):
                least, left = FIXED_ANGLE_MIN, min(value.real, np.pi - value.real)
                remedy = (
                    "Use two fixed angles of 90°, each with one of the directions and one of two that are "
                    "perpendicular to the other."
                )
            else:
                size = max(map(abs, sum((self._point(p).at for p in measure.points), ())))
                least, left = FIXED_DISTANCE_RTOL * size, value.real
                remedy = "Use a spherical joint to keep points together."
                if measure.axis is not None:
                    remedy = "Use a massless body with a spherical joint at the point and one along the line."
            if not left > least:
                message = f"{label} is fixed at {value.real:.3g}, where it is not accurate. {remedy}"
                raise ModelError(message, key=key, length=value.real)

    def _drawn_value(self, measure: Distance | Angle) -> float:
        """Return a distance or an angle in the reference configuration; complex steps are kept."""
        if isinstance(measure, Angle):
            u, w = (np.array(v) / valid.point_distance(v, (0.0,) * 3) for v in (measure.axis, measure.axis2))
            apart, along = (valid.point_distance(tuple(u), tuple(x)) for x in (w, -w))
            return 2 * np.arctan(apart / along).item() if along else np.pi
        first, second = (self._point(name).at for name in measure.points)
        if measure.axis is None:
            return valid.point_distance(first, second)
        across = np.cross(np.subtract(first, second), measure.axis)
        zero = (0.0,) * 3
        return valid.point_distance(tuple(across), zero) / valid.point_distance(measure.axis, zero)

    @cached_property
    def _fixed_measures(self) -> tuple[Distance | Angle, ...]:
        """Tuple of the fixed distances and angles."""
        return tuple(m for m in self._measures if m.fixed)

    @cached_property
    def _fixed_names(self) -> tuple[str, ...]:
        """Tuple of the names of the fixed distances and angles."""
        return tuple([measure.name for measure in self._fixed_measures])

    @cached_property
    def _fixed_distances(self) -> Mapping[str, float]:
        """Mapping from each fixed distance to its length."""
        return MappingProxyType({d.name: self._drawn_value(d) for d in self.distances if d.fixed})

    @cached_property
    def _fixed_angles(self) -> Mapping[str, float]:
        """Mapping from each fixed angle to its value."""
        return MappingProxyType({a.name: self._drawn_value(a) for a in self.angles if a.fixed})

    @cached_property
    def _variable_measures(self) -> tuple[str, ...]:
        """Tuple of the distances and angles that are not fixed."""
        return tuple(m.name for m in self._measures if not m.fixed)

    @cached_property
    def limits(self) -> Mapping[str, tuple[float, float]]:
        """Mapping from coordinates, distances, angles and swings ("S1.swing") to lower and upper limits.

        Functions with an argument `limits` accept this mapping; True selects it.
        """
        found = {name: pair for joint in self.joints for name, pair in joint.ranges.items()}
        return MappingProxyType(found | {x.name: x.limits for x in self._measures if x.limits is not None})

    @cached_property
    def effort_limits(self) -> Mapping[str, tuple[float, float]]:
        """Mapping from coordinates, distances and angles to the lower and upper limits of their efforts."""
        return self._bounds("effort_limits")

    @cached_property
    def rate_limits(self) -> Mapping[str, tuple[float, float]]:
        """Mapping from coordinates, distances and angles to the lower and upper limits of their rates."""
        return self._bounds("rate_limits")

    def _bounds(self, key: str) -> Mapping[str, tuple[float, float]]:
        parts: tuple[Joint | Distance | Angle, ...] = (*self.joints, *self._measures)
        return MappingProxyType({row: x for part in parts for row, x in limits_by_row(part, key).items()})

    @cached_property
    def _has_complex_step(self) -> bool:
        """True if some number carries a complex step, as in a sensitivity."""
        values = [tuple(vars(part).values()) for part in self._parts.values()]
        return has_complex_step((self.gravity, *values))

    def _without_complex_step(self) -> Self:
        """Return the description in real numbers."""
        parts = {
            kind: tuple(
                replace(part, **{f.name: strip_complex_step(getattr(part, f.name)) for f in fields(part)})
                for part in getattr(self, kind)
            )
            for kind in KINDS
        }
        return replace(self, **parts, gravity=strip_complex_step(self.gravity))  # type: ignore[arg-type]

    @cached_property
    def _closed_contacts(self) -> tuple[Contact, ...]:
        """Tuple of the contacts that are closed."""
        return tuple(contact for contact in self.contacts if contact.closed)

    def _checked_rows(self, label: str, key: str, given: object, rows: bool) -> tuple[str, ...]:
        """Check and return names of joints, components and distances, and with `rows` of any rows."""
        names = listed(label, key, given, "names")
        seen: set[str] = set()
        for i, name in enumerate(names):
            place = f"{key}[{i}]"
            components = self._components(name, rows) if isinstance(name, str) else None
            if components is None:
                there = [*self._components_of_joints, *self._variable_measures]
                there += [c for cs in self._components_of_joints.values() for c in cs if c not in there]
                there += [*(p.name for p in self.points), *(b.name for b in self.bodies)] if rows else []
                kinds = ["joint", *(_SINGULAR[k] for k in MEASURES if getattr(self, k))]
                kinds += ["row"] * rows
                error = unknown(either(kinds), name, self.name, there)
                message = f"`{key}`: {error}"
                if isinstance(name, str) and not rows and self._components(name, True):
                    message += f" '{name}' names rows of a part: give it to at({{…}}) or as `wrt` instead."
                raise ModelError(message, key=place, name=name, candidates=error.numbers["candidates"])
            if not components:
                raise ModelError(
                    f"'{self.name}': {self._describe(name)} in `{key}` is fixed and has no coordinates; "
                    "leave it out.",
                    key=place,
                )
            twice = seen.intersection(components)
            if twice:
                message = f"'{self.name}': coordinate '{min(twice)}' is named twice in `{key}`."
                raise ModelError(message, key=place)
            seen.update(components)
        return tuple(map(str, names))

    @cached_property
    def _components_of_joints(self) -> dict[str, tuple[str, ...]]:
        return {joint.name: joint.components for joint in self.joints}

    def _components(self, name: str, rows: bool = True) -> tuple[str, ...] | None:
        """Return the single rows of a joint, component, distance, or row; None if unknown, () if fixed."""
        part = self._parts.get(name)
        if isinstance(part, Joint):
            return part.components
        if isinstance(part, Measure):
            return () if part.fixed else (name,)
        base, row = split_row(name)
        owner = self._parts.get(base)
        if isinstance(owner, Joint):
            return (name,) if name in owner.components else None
        known = ROWS.get(type(owner), ()) if rows else ()
        if row:
            return (name,) if row in known else None
        return tuple(f"{name}.{one}" for one in known if one != "angle") or None

    @property
    def _moving_parts(self) -> tuple[str, ...]:
        """Tuple of the parts of `coordinates`, by default every joint that moves, in order."""
        if (given := given_names(self, "coordinates")) is not None:
            return given
        return tuple(joint.name for joint in self.joints if joint.dof)

    @cached_property
    def _reference_values(self) -> Mapping[str, float]:
        """Mapping from each coordinate of every joint to its value in the reference configuration."""
        return MappingProxyType(
            {c: x for j in self.joints for c, x in zip(j.components, j.value, strict=True)}  # type: ignore[arg-type]
        )

    @cached_property
    def _held(self) -> Mapping[str, float]:
        """Mapping from coordinates that keep their reference values, unless they are given, to these."""
        found: dict[str, float] = {}
        parts: tuple[Any, ...] = *self.joints, *self.distances, *self.angles
        for part in parts:
            if part.held:
                joint = isinstance(part, Joint)
                found[part.name] = self._reference_values[part.name] if joint else self._drawn_value(part)
        return MappingProxyType(found)

    @cached_property
    def _named_parts(self) -> Mapping[str, Part]:
        """Mapping from names to parts, with the centre of mass of all bodies."""
        return MappingProxyType({COM: CenterOfMass(COM), **self._parts})

    @cached_property
    def _valued_names(self) -> frozenset[str]:
        """Set of the names of parts other than joints whose rows have values."""
        return frozenset(n for n, part in self._named_parts.items() if _KIND[type(part)] in VALUED_KINDS)

    def _describe(self, name: str) -> str:
        """Return the kind and the name of a part, for messages."""
        return f"{_SINGULAR[_KIND[type(self._parts[name])]]} '{name}'"

    def _label(self, name: str) -> str:
        """Return the kind and the name of a part, to begin a sentence."""
        text = self._describe(name)
        return text[0].upper() + text[1:]

    def _point(self, name: str) -> Point:
        """Return the point with a name."""
        point = find_part(self, name, "points")
        assert isinstance(point, Point)  # for the type checker: `find_part` searched points only
        return point

    def _unknown(self, label: str, name: str, *kinds: str) -> UnknownNameError:
        """Return the error for an unknown name."""
        there = [part.name for kind in (kinds or KINDS) for part in getattr(self, kind)]
        other = self._named_parts.get(name)
        instead = "" if other is None else f"a {_SINGULAR[_KIND[type(other)]]}"
        body = getattr(other, "body", None)
        return unknown(label, name, self.name, there, f"{instead} of body '{body}'" if body else instead)


def find_part(description: MechanismDescription, name: str, *kinds: str, argument: str = "name") -> Part:
    """Return the part with a name, among `kinds` if given; `argument` names the argument in errors."""
    if not isinstance(name, str):
        raise invalid(argument, "must be a string", name)
    for kind in kinds:
        choice("kinds", kind, KINDS)
    among = kinds or KINDS
    part = description._named_parts.get(name)
    if part is not None and (not kinds or _KIND[type(part)] in kinds):
        return part
    label = either(_SINGULAR[kind] for kind in among) if kinds else "part"
    raise description._unknown(label, name, *among)


def closed_contacts(description: MechanismDescription) -> tuple[Contact, ...]:
    """Return the contacts that are closed."""
    return description._closed_contacts


def coupled_joints(description: MechanismDescription) -> frozenset[str]:
    """Return the names of the joints with a coordinate in a coupling."""
    return description._coupled


def reference_values(description: MechanismDescription) -> Mapping[str, float]:
    """Return the value of each coordinate of every joint in the reference configuration."""
    return description._reference_values


def held_coordinates(description: MechanismDescription) -> Mapping[str, float]:
    """Return the coordinates that keep their reference values unless they are given, with these values."""
    return description._held


def check_variable(
    description: MechanismDescription, names: Iterable[str], use: str, remedy: str = ""
) -> None:
    """Raise an error if a fixed distance or angle is among names; `use` and `remedy` complete the text."""
    fixed = [name for name in names if name in description._fixed_names]
    if fixed:
        label = f"{description._label(fixed[0])} of '{description.name}'"
        raise InputError(f"{label} is fixed and cannot be {use}. {remedy}".rstrip(), name=fixed[0])


def given_names(description: MechanismDescription, key: str) -> tuple[str, ...] | None:
    """Return the argument "coordinates" or "actuators", or None for its default."""
    given: tuple[str, ...] | None = description.__dict__[f"_{key}"]
    return given


def declared_limits(
    description: MechanismDescription, key: str, limits: Any, actuators: Iterable[str] | None = None
) -> Any:
    """Return limits of efforts or rates; True selects those of the description.

    Efforts are those of `actuators`, by default those declared. Raise `InputError` if no limits exist.
    """
    if limits is not True:
        return limits
    acting, name = description.actuators if actuators is None else tuple(actuators), description.name
    of_all = actuators is None and key != "effort_limits"
    found = {k: x for k, x in description._bounds(key).items() if of_all or k in acting}
    if not found:
        raise InputError(
            f"`{key}` is True, but '{name}' has none. Give its joints `{key}`, or give them here.", key=key
        )
    return found


def connected(joints: Iterable[Joint], bodies: Iterable[str]) -> set[str]:
    """Return the bodies that joints connect to some bodies, with these bodies."""
    neighbours: dict[str, list[str]] = {}
    for joint in joints:
        for one, other in (joint.bodies, joint.bodies[::-1]):
            neighbours.setdefault(one, []).append(other)
    found, front = {*bodies}, [*bodies]
    while front:
        new = {body for one in front for body in neighbours.get(one, ())} - found
        found |= new
        front = list(new)
    return found


def forest(joints: Iterable[Joint]) -> frozenset[str]:
    """Return the names of joints that close no loop with earlier joints in the list (Kruskal)."""
    root: dict[str, str] = {}

    def find(body: str) -> str:
        """Return the representative of a connected set of bodies."""
        while (above := root.get(body, body)) != body:
            root[body] = root.get(above, above)  # halve the path to shorten the next search
            body = above
        return body

    kept = []
    for joint in joints:
        a, b = map(find, joint.bodies)
        if a != b:
            root[a] = b
            kept.append(joint.name)
    return frozenset(kept)


for _key in ("coordinates", "actuators"):
    _names = _RowNames()
    _names.__set_name__(MechanismDescription, _key)
    setattr(MechanismDescription, _key, _names)

D = TypeVar("D", bound=MechanismDescription)


def replace_fields(description: D, part: str | None = None, /, **changes: Any) -> D:
    """Return the mechanism with changed fields, or with changed fields of one part.

    Parameters
    ----------
    part : str, optional
        Name of a part; by default the mechanism itself changes.
    **changes
        New values by field, such as ``gravity=(0, 0, 0)`` or, of a joint, ``limits=(-1, 1)``. A joint of
        another ``type`` keeps its point and those axes that the type has. If its coordinates change, then
        value, spring, damping and limits return to their defaults. Parts that become fixed are no longer
        among `coordinates` and `actuators`.

    Returns
    -------
    Mechanism

    Raises
    ------
    UnknownNameError
        If there is no such part or field.
    ModelError
        If the changed description contradicts itself.

    Examples
    --------
    >>> m = kic.load("four-bar").replace("A", stiffness=2.0).replace(gravity=(0, 0, 0))
    >>> m["A"].stiffness, m.gravity
    ((2.0,), (0.0, 0.0, 0.0))
    """
    owner = description if part is None else find_part(description, part)
    known = [f.name for f in fields(owner) if f.init]
    for key in changes:
        if key not in known:
            instead = "in `info`, a dict of texts" if part is None and hasattr(Info, key) else ""
            raise unknown("field", key, description.name if part is None else part, known, instead)
    if part is None:
        return replace(description, **changes)
    if isinstance(owner, Joint | Contact) and "type" in changes:
        changes = {**_lost_fields(owner, changes["type"]), **changes}
    made = replace(owner, **changes)
    kind = _KIND[type(owner)]
    parts: Any = {kind: tuple(made if p is owner else p for p in getattr(description, kind))}
    fixed = isinstance(made, Joint | Measure) and (not made.dof if isinstance(made, Joint) else made.fixed)
    for key in ("coordinates", "actuators"):
        if fixed and (given := given_names(description, key)) is not None:
            parts[key] = tuple(row for row in given if part_of(row) != part)
    return replace(description, **parts)


def _lost_fields(joint: Joint | Contact, joint_type: Any) -> dict[str, Any]:
    """Return the defaults of the fields that a joint or contact loses when its type changes."""
    if isinstance(joint, Contact):
        return {key: None for key, types in CONTACT_FIELDS.items() if joint_type not in types}
    if joint_type not in list(JOINT_COORDINATES) or joint_type == joint.type:
        return {}
    # the axes of a ball joint are not axes of a hinge
    axes = JOINT_AXES.get(joint_type, ()) if (joint.type in BALL_TYPES) == (joint_type in BALL_TYPES) else ()
    kept = {"name", "type", "bodies", "at", *axes}
    return {f.name: None if f.default is MISSING else f.default for f in fields(joint) if f.name not in kept}


def add(description: D, *parts: Part) -> D:
    """Return the mechanism with further parts: bodies, joints, points and others.

    Parameters
    ----------
    *parts : Body, Joint, Point, …
        Parts to add, each to the sequence of its kind.

    Returns
    -------
    Mechanism

    Raises
    ------
    InputError
        If an object is not a part.
    ModelError
        If a name is taken, or the description contradicts itself.

    Examples
    --------
    >>> m = kic.load("horn-two-link").add(kic.Frame("tool", "link2", origin=(2, 0, 0)))
    >>> m.at([0.0, 0.0]).pose("tool").translation
    array([2., 0., 0.])
    """
    changes: dict[str, Any] = {}
    for part in parts:
        if type(part) not in _KIND:
            raise invalid("parts", "must be bodies, joints, points or other parts", part)
        kind = _KIND[type(part)]
        changes[kind] = (*changes.get(kind, getattr(description, kind)), part)
    return replace(description, **changes)


def without(description: D, *names: str) -> D:
    """Return the mechanism without the named parts.

    Parameters
    ----------
    *names : str
        Names of the parts. Parts that refer to them must be removed as well.

    Returns
    -------
    Mechanism

    Raises
    ------
    UnknownNameError
        If there is no such part.
    ModelError
        If a remaining part refers to a removed part.

    Examples
    --------
    >>> [p.name for p in kic.load("four-bar").without("tip").points]
    []
    """
    out = [find_part(description, name) for name in names]
    kinds = {_KIND[type(one)] for one in out}
    parts: Any = {kind: tuple(p for p in getattr(description, kind) if p not in out) for kind in kinds}
    return replace(description, **parts)


def parts_sheet(description: MechanismDescription, account: str) -> Summary:
    """Return a table of the parts, with an account of the mobility."""
    title, units = description.info.title, description.units
    sheet = Summary(f"{description.name}: {title}" if title else description.name)
    if account:
        sheet.say(account)
    for kind in ("coordinates", "actuators"):
        if (named := getattr(description, kind)) is not None:
            sheet.say(f"{kind}: {', '.join(named) or 'none'}")
    pull = ", ".join(f"{x:.5g}" for x in description.gravity) if any(description.gravity) else "none"
    sheet.say(f"gravity ({rate_unit(units.length, units.time, 2)}): {pull}")
    joints = [[j.type, " – ".join(j.bodies), ", ".join(j.components)] for j in description.joints]
    sheet.texts("joints", [j.name for j in description.joints], ["type", "ties", "coordinates"], joints)
    if description.bodies:
        mass = [["?" if b.mass is None else f"{b.mass:.5g}"] for b in description.bodies]
        sheet.texts("bodies", [b.name for b in description.bodies], [f"mass ({units.mass})"], mass)
    if description.points:
        carried = [[p.body, ", ".join(f"{x:.5g}" for x in p.at)] for p in description.points]
        sheet.texts("points", [p.name for p in description.points], ["body", "reference position"], carried)
    for kind in MEASURES:
        if free := [x for x in getattr(description, kind) if not x.fixed]:
            sheet.texts(kind, [x.name for x in free], ["between"], [[ends_text(x)] for x in free])
    several = {
        "limits": description.limits,
        "effort limits": description.effort_limits,
        "rate limits": description.rate_limits,
    }
    for caption, limits in several.items():
        if limits:
            pairs = [[f"{lower:.5g}", f"{upper:.5g}"] for lower, upper in limits.values()]
            sheet.texts(caption, list(limits), ["lower", "upper"], pairs)
    if description.frames:
        carried = [
            [f.body, ", ".join(f"{x:.5g}" for x in f.origin)]
            + [", ".join(f"{x + 0.0:.4g}" for x in axis) for axis in f.axes]
            for f in description.frames
        ]
        heads = ["body", "reference origin", "x axis", "y axis", "z axis"]
        sheet.texts("frames", [f.name for f in description.frames], heads, carried)
    if description.centers:
        carried = [[", ".join(x.bodies or ("all",))] for x in description.centers]
        sheet.texts("centres of mass", [x.name for x in description.centers], ["bodies"], carried)
    add_couplings(sheet, description._terms)
    add_contacts(sheet, description.contacts)
    if description._fixed_distances:
        rods = [[f"{length:.5g}"] for length in description._fixed_distances.values()]
        sheet.texts("fixed distances", list(description._fixed_distances), [f"length ({units.length})"], rods)
    if description._fixed_angles:
        angles = [[f"{angle:.5g}"] for angle in description._fixed_angles.values()]
        sheet.texts("fixed angles", list(description._fixed_angles), ["angle (rad)"], angles)
    list_motors(sheet, description.motors)
    return sheet
