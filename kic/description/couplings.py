"""Couplings: constant linear relations between joint coordinates, such as gears, belts and racks.

Two wheels rotate in bearings of one carrier. Relative to it, toothed wheels have the same velocity at their
pitch point, and pulleys the same speed along their belt. The relation of the two coordinates follows from the
reference configuration, for any directions of the axes and any order of the bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kic.description import validation as valid
from kic.description.parts import Joint
from kic.description.validation import PARALLEL_ATOL, Vector, assign, check_part
from kic.errors import ModelError, invalid_part, short_repr, unknown
from kic.numerics.arrays import reals, step_vanishes, strip_complex_step
from kic.numerics.display import Summary

# mutually exclusive fields that define a coupling
DEFINITIONS = ("ratios", "gears", "belt", "pitch_point")

Terms = tuple[tuple[str, float], ...]


def ratio_fields(terms: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """Return the fields of a coupling that is described by ratios."""
    joints, ratios = zip(*terms, strict=True)
    return {**dict.fromkeys(DEFINITIONS), "joints": joints, "ratios": ratios}


@dataclass(frozen=True)
class Coupling:
    """Constant linear relation between joint coordinates: gears, a belt, a rack, a differential.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    joints : sequence of str
        Two or more coupled joints. One coordinate of a joint with several is written "hip.1".
    ratios : sequence of float, optional
        Coefficients, one nonzero number for each joint: Σ ratio (φ − φ₀) = 0, with φ₀ in the reference
        configuration.
    gears : (2,) float, optional
        Numbers of teeth (or pitch radii) of two wheels with parallel axes in one carrier. They rotate in
        opposite directions. The number of a ring gear is negative.
    belt : (2,) float, optional
        Radii (or numbers of teeth) of two pulleys with parallel axes in one carrier. An open belt or a
        chain turns both in the same direction.
    pitch_point : (3,) float, optional
        Point, in the reference configuration, where two wheels, or a pinion and a rack, roll on each other
        and have the same velocity relative to their carrier.

    Raises
    ------
    ModelError
        If not exactly one of the four definitions is given, or a number is out of range. The mechanism also
        raises it if a joint or coordinate is unknown, or axes do not fit the definition.

    Notes
    -----
    Gears, belt and pitch point need joints that share a body, their carrier. If wheel and carrier are
    attached to the same third body, as sun and arm of a planetary gear, write the relation relative to the
    carrier (Willis) as ratios: z_sun (sun − arm) + z_planet planet = 0.

    Examples
    --------
    >>> wheels = [kic.Body("small"), kic.Body("large")]
    >>> axles = [
    ...     kic.Joint("A", "revolute", ("ground", "small"), at=(0, 0, 0), axis=(0, 0, 1)),
    ...     kic.Joint("B", "revolute", ("ground", "large"), at=(3, 0, 0), axis=(0, 0, 1)),
    ... ]
    >>> mesh = kic.Coupling("mesh", ("A", "B"), gears=(20, 40))
    >>> pair = kic.Mechanism("pair", wheels, axles, couplings=[mesh], coordinates=["A"])
    >>> pair.dof, pair.at({"A": 1.0}).value("B").round(12)
    (1, np.float64(-0.5))
    """

    name: str
    joints: tuple[str, ...]
    _: KW_ONLY
    ratios: tuple[float, ...] | None = None
    gears: tuple[float, float] | None = None
    belt: tuple[float, float] | None = None
    pitch_point: Vector | None = None

    def __post_init__(self) -> None:
        label = check_part(self, "coupling")
        joints = valid.joint_names(label, self.joints, 2, "Use a fixed joint for one that must not move.")
        assign(self, joints=joints)
        given = [way for way in DEFINITIONS if getattr(self, way) is not None]
        if len(given) != 1:
            raise ModelError(
                f"{label}: exactly one of {', '.join(DEFINITIONS)} must be given, "
                f"got {' and '.join(given) or 'none'}.",
                key=given[1] if given else "ratios",
            )
        way = given[0]
        if way != "ratios" and len(joints) != 2:
            raise ModelError(
                f"{label}: `{way}` must have two joints, got {len(joints)}: {', '.join(joints)}. "
                "Use `ratios` for more joints.",
                key="joints",
            )
        if way == "pitch_point":
            assign(self, pitch_point=valid.vector(label, way, self.pitch_point))
        else:
            assign(self, **{way: self._numbers(label, way)})

    def _numbers(self, label: str, way: str) -> tuple[float, ...]:
        """Return one number for each joint, with the signs allowed for the definition."""
        given, count = reals(getattr(self, way)), len(self.joints)
        a = np.zeros(0) if given is None else given.real
        if given is None or a.shape != (count,) or not a.all():
            rule = f"must be {count} nonzero finite numbers, one for each joint"
            raise invalid_part(label, way, rule, getattr(self, way))
        valid.check_size(label, way, a)
        if way == "belt" and (a < 0).any():
            remedy = "Write a crossed belt, which reverses the rotation, as `gears`."
            raise invalid_part(label, way, "must be positive radii", self.belt, remedy)
        if way == "gears" and (a < 0).any() and not a.max() > 0:
            raise ModelError(
                f"{label}: two ring gears cannot mesh, got {short_repr(self.gears)}. Only the number of the "
                "ring gear is negative.",
                key=way,
            )
        if way == "gears" and not a.sum() * a.min() > 0:
            raise ModelError(
                f"{label}: a ring gear must be larger than the wheel in it, got {short_repr(self.gears)}.",
                key=way,
            )
        return tuple(given.tolist())


def terms(coupling: Coupling, owner: str, joints: Mapping[str, Joint]) -> Terms:
    """Return the coordinates of a coupling with their coefficients: Σ coefficient (φ − φ₀) = 0.

    `owner` is the name of the mechanism. Raise `ModelError` for unknown joints or coordinates, or joints
    whose axes do not fit the definition.
    """
    label = f"Coupling '{coupling.name}'"
    found = [coordinate_of(label, owner, name, joints) for name in coupling.joints]
    names = [coordinate for _, coordinate in found]
    valid.check_distinct(label, names, coupling.joints)
    if coupling.ratios is not None:
        return tuple(zip(names, coupling.ratios, strict=True))
    one, two = (joint for joint, _ in found)
    carrier = _carrier(label, one, two)
    if coupling.pitch_point is not None:
        numbers = _rolling(label, one, two, carrier, np.array(coupling.pitch_point))
    else:
        numbers = _wheels(label, one, two, carrier, coupling)
    return tuple(zip(names, numbers, strict=True))


def add_couplings(sheet: Summary, couplings: Mapping[str, Terms]) -> None:
    """Add the equations of couplings to a summary, if there are any."""
    if couplings:
        equations = [[relation(strip_complex_step(terms))] for terms in couplings.values()]
        sheet.texts("couplings", list(couplings), ["changes from the reference configuration"], equations)


def relation(terms: Terms) -> str:
    """Return a coupling as an equation between changes from the reference configuration."""
    text = ""
    for coordinate, ratio in terms:
        sign = " − " if ratio < 0 else " + " if text else ""
        factor = "" if abs(ratio) == 1 else f"{abs(ratio):.6g} "
        text += f"{sign if text else sign.strip()}{factor}Δ{coordinate}"
    return f"{text} = 0"


def coordinate_of(label: str, owner: str, name: str, joints: Mapping[str, Joint]) -> tuple[Joint, str]:
    """Return the joint that a name refers to, and the name of its coordinate.

    Raise a `ModelError` that begins with `label` for an unknown joint, a joint with no or several
    coordinates, or the angles of a ball joint.
    """
    joint = joints.get(name)
    if joint is None and isinstance(name, str):  # names have no dots, components may
        joint = joints.get(valid.part_of(name))
        joint = joint if joint and name in joint.components else None
    if joint is None:
        components = (c for joint in joints.values() for c in joint.components)
        error = unknown("joint", name, owner, [*joints, *(c for c in components if c not in joints)])
        raise ModelError(f"{label}: {error}", key="joints", name=name, candidates=error.numbers["candidates"])
    if name in joints and joint.dof != 1:
        if joint.dof == 0:
            remedy = "is fixed and has no coordinate; leave it out."
        elif joint.type == "spherical":
            remedy = "is spherical and its rotation has no coordinates. Replace it by three revolute joints."
        else:
            remedy = f"has {joint.dof} coordinates. Name one: {', '.join(joint.components)}."
        raise ModelError(f"{label}: joint '{name}' {remedy}", key="joints", name=name)
    first_rotation = {"spherical": 0, "free": 3}.get(joint.type, 6)
    if joint.components.index(name) >= first_rotation:
        message = (
            f"{label}: '{name}' is a rotation of a {joint.type} joint, which has no coordinate. Use revolute "
            "joints instead."
        )
        raise ModelError(message, key="joints", name=name)
    return joint, name


def _carrier(label: str, one: Joint, two: Joint) -> str:
    """Return the body that carries both joints."""
    shared = set(one.bodies) & set(two.bodies)
    if len(shared) == 1:
        return shared.pop()
    why = "connect the same two bodies" if shared else "have no common body that could carry both wheels"
    message = (
        f"{label}: joints '{one.name}' and '{two.name}' {why}. Write the relation as `ratios`, relative to "
        "the carrier, such as (z1, -z1, z2) for the joints of wheel, carrier and planet."
    )
    raise ModelError(message, key="joints", names=(one.name, two.name))


def _sense(joint: Joint, carrier: str) -> int:
    """Return 1 if the coordinate moves the wheel relative to its carrier, -1 if it does the opposite."""
    return 1 if joint.bodies[0] == carrier else -1


def _axis(joint: Joint) -> np.ndarray:
    """Return the unit vector along the axis."""
    axis = np.array(joint.axis)
    return axis / np.sqrt(axis @ axis)


def _wheels(label: str, one: Joint, two: Joint, carrier: str, coupling: Coupling) -> tuple[float, float]:
    """Return the coefficients of gears or a belt, with both rotations about the axis of the first joint."""
    way = "belt" if coupling.gears is None else "gears"
    for joint in (one, two):
        if joint.type != "revolute":
            message = (
                f"{label}: `{way}` needs revolute joints, '{joint.name}' is {joint.type}. Use `pitch_point` "
                "for a rack, and `ratios` for other relations."
            )
            raise ModelError(message, key="joints", name=joint.name)
    a, b = (np.array(joint.axis) / np.linalg.norm(joint.axis) for joint in (one, two))  # type: ignore[arg-type]
    cosine, across = float((a @ b).real), np.cross(a, b)
    if np.linalg.norm(across) > PARALLEL_ATOL or not step_vanishes(across, a, b):
        message = (
            f"{label}: `{way}` needs parallel axes; the cosine between '{one.name}' and '{two.name}' is "
            f"{cosine:.6g}. Use `pitch_point` for bevel gears, and `ratios` for worms and crossed axes."
        )
        raise ModelError(message, key=way, cosine=cosine)
    centres = np.array([one.at, two.at])
    apart = np.cross(a, centres[1] - centres[0])
    if way == "gears" and np.linalg.norm(apart) <= PARALLEL_ATOL * np.abs(centres).max():
        message = (
            f"{label}: '{one.name}' and '{two.name}' have the same axis, and their wheels cannot mesh. "
            "Couple each with the wheel between them, or write the relation as `ratios`."
        )
        raise ModelError(message, key="joints", names=(one.name, two.name))
    first, second = coupling.gears or coupling.belt or (0.0, 0.0)
    sign = round(cosine) * (1 if way == "gears" else -1)
    return first * _sense(one, carrier), sign * second * _sense(two, carrier)


def _rolling(label: str, one: Joint, two: Joint, carrier: str, at: np.ndarray) -> tuple[float, float]:
    """Return the coefficients of two bodies that roll: equal velocities at the pitch point."""
    velocities = []
    for joint in (one, two):
        if joint.type not in ("revolute", "prismatic"):
            message = (
                f"{label}: `pitch_point` needs revolute or prismatic joints, '{joint.name}' is {joint.type}. "
                "Write the relation as `ratios`."
            )
            raise ModelError(message, key="joints", name=joint.name)
        v, size = _axis(joint), 1.0
        if joint.type == "revolute":
            centre = np.array(joint.at)
            v, size = np.cross(v, at - centre), float(np.abs([at, centre]).max())
        if np.linalg.norm(v) <= PARALLEL_ATOL * size:
            message = (
                f"{label}: the pitch point {short_repr(at.tolist())} is on the axis of '{joint.name}' and "
                "does not move. Give the point where the two roll on each other."
            )
            raise ModelError(message, key="pitch_point", name=joint.name)
        velocities.append(_sense(joint, carrier) * v)
    u, v = velocities
    along, across = u / np.sqrt(u @ u), np.cross(u, v) / np.linalg.norm(u)
    sine = float(np.linalg.norm(across) / np.linalg.norm(v))
    if sine > PARALLEL_ATOL or not step_vanishes(across, *velocities):
        message = (
            f"{label}: at the pitch point {short_repr(at.tolist())} '{one.name}' and '{two.name}' move in "
            f"different directions (sine {sine:.3g}). Give the point where they roll on each other, or, if "
            "they slide as in a worm gear, the relation as `ratios`."
        )
        raise ModelError(message, key="pitch_point", sine=sine)
    return (along @ u).item(), -(along @ v).item()
