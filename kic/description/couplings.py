"""Couplings: constant linear relations between joint coordinates, as gears, belts and racks make them.

Two wheels turn in bearings of one carrier. Relative to it, toothed wheels have the same velocity at their
pitch point, and pulleys the same speed along their belt. Either way the relation of the two coordinates
follows from the drawing, whichever way their axes point and their bodies are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kic.description.parts import Joint
from kic.description.validation import STRICT, Vector, assign, check_name, check_size, listed, vector
from kic.display import Summary
from kic.errors import ModelError, short_repr, unknown
from kic.numerics.arrays import reals, step_vanishes, strip_complex_step

WAYS = ("ratios", "gears", "belt", "pitch_point")
# cosine (sine) below which two directions of a drawing count as square (parallel)
_PARALLEL = 1e-9

Terms = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Coupling:
    """A constant linear relation between joint coordinates: of gears, a belt, a rack, a differential.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    joints : sequence of str
        The joints coupled, two or more; one freedom of a joint with several is written "hip.1".
    ratios : sequence of float, optional
        The relation itself, one number other than zero for each joint: Σ ratio (φ − φ as drawn) = 0.
    gears : (2,) float, optional
        Numbers of teeth (or pitch radii) of two wheels with parallel axes in one carrier. They turn
        opposite ways; a ring gear, toothed inside, has a negative number.
    belt : (2,) float, optional
        Radii (or numbers of teeth) of two pulleys with parallel axes in one carrier, which an open belt or
        a chain turns the same way.
    pitch_point : (3,) float, optional
        Where two wheels, or a pinion and a rack, roll on one another, as drawn: there they have the same
        velocity relative to the body that carries both.

    Raises
    ------
    ModelError
        For none or several of the four ways to say it, or numbers that make no sense; by the mechanism,
        for joints that are not there, have no such coordinate, or do not stand as the relation needs.

    Notes
    -----
    Gears, belt and pitch point need joints that share a body, their carrier. Where wheel and carrier hang on
    the same third body, as in a planetary gear whose sun and arm both turn in the frame, write the relation
    relative to the carrier (Willis) as ratios: z_sun (sun − arm) + z_planet planet = 0.

    Examples
    --------
    >>> import kic
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

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    joints: tuple[str, ...]
    """The joints coupled, two or more; one freedom of a joint with several is written "hip.1"."""
    ratios: tuple[float, ...] | None = None
    """The relation itself, one number for each joint: Σ ratio (φ − φ as drawn) = 0."""
    gears: tuple[float, float] | None = None
    """Numbers of teeth (or pitch radii) of two wheels, which turn opposite ways; negative of a ring gear."""
    belt: tuple[float, float] | None = None
    """Radii (or numbers of teeth) of two pulleys, which an open belt or a chain turns the same way."""
    pitch_point: Vector | None = None
    """Where two wheels, or a pinion and a rack, roll on one another in the drawing."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("coupling", self.name))
        who = f"Coupling '{self.name}'"
        joints = listed(who, "joints", self.joints, "joint names")
        if not all(isinstance(name, str) for name in joints) or len(joints) < 2:
            raise ModelError(
                f"{who}: expected `joints` to name two joints or more, got {short_repr(self.joints)}. "
                "A joint that must not move is a fixed one.",
                key="joints",
            )
        if len(set(joints)) < len(joints):
            raise ModelError(f"{who}: `joints` names a joint twice, got {short_repr(joints)}.", key="joints")
        assign(self, joints=tuple(map(str, joints)))
        given = [way for way in WAYS if getattr(self, way) is not None]
        if len(given) != 1:
            raise ModelError(
                f"{who}: expected one of {', '.join(WAYS)}, got {' and '.join(given) or 'none'}.",
                key=given[1] if given else "ratios",
            )
        way = given[0]
        if way != "ratios" and len(joints) != 2:
            raise ModelError(
                f"{who}: `{way}` is about two joints, got {len(joints)}: {', '.join(joints)}. "
                "Several terms are written with `ratios`.",
                key="joints",
            )
        if way == "pitch_point":
            assign(self, pitch_point=vector(who, way, self.pitch_point))
        else:
            assign(self, **{way: self._numbers(who, way)})

    def _numbers(self, who: str, way: str) -> tuple[float, ...]:
        """One number for each joint, with the signs that its kind allows."""
        given, count = reals(getattr(self, way)), len(self.joints)
        a = np.zeros(0) if given is None else given.real
        if given is None or a.shape != (count,) or not a.all():
            raise ModelError(
                f"{who}: expected `{way}` to be {count} finite numbers other than zero, one for each joint, "
                f"got {short_repr(getattr(self, way))}.",
                key=way,
            )
        check_size(who, way, a)
        if way == "belt" and (a < 0).any():
            raise ModelError(
                f"{who}: radii of pulleys are positive, got {short_repr(self.belt)}. A crossed belt turns its "
                "pulleys opposite ways, as `gears` do.",
                key=way,
            )
        if way == "gears" and (a < 0).any() and not a.max() > 0:
            raise ModelError(
                f"{who}: two ring gears can not mesh, got {short_repr(self.gears)}. Only the one that is toothed "
                "inside has a negative number.",
                key=way,
            )
        if way == "gears" and not a.sum() * a.min() > 0:
            raise ModelError(
                f"{who}: a ring gear is larger than the wheel in it, got {short_repr(self.gears)}.", key=way
            )
        return tuple(given.tolist())


def terms(coupling: Coupling, owner: str, joints: Mapping[str, Joint]) -> Terms:
    """Coordinates of a coupling with the numbers that multiply them: Σ number (φ − φ as drawn) = 0.

    Parameters
    ----------
    coupling : Coupling
        The coupling.
    owner : str
        Name of the mechanism.
    joints : mapping of str to Joint
        All its joints.

    Raises
    ------
    ModelError
        For joints that are not there, have no such coordinate, or stand otherwise than the relation needs.
    """
    who = f"Coupling '{coupling.name}'"
    found = [coordinate_of(who, owner, name, joints) for name in coupling.joints]
    names = [coordinate for _, coordinate in found]
    if len(set(names)) < len(names):
        raise ModelError(
            f"{who}: `joints` names a joint twice, got {short_repr(coupling.joints)}.", key="joints"
        )
    if coupling.ratios is not None:
        return tuple(zip(names, coupling.ratios, strict=True))
    one, two = (joint for joint, _ in found)
    carrier = _carrier(who, one, two)
    if coupling.pitch_point is not None:
        numbers = _rolling(who, one, two, carrier, np.array(coupling.pitch_point))
    else:
        numbers = _wheels(who, one, two, carrier, coupling)
    return tuple(zip(names, numbers, strict=True))


def add_couplings(sheet: Summary, couplings: Mapping[str, Terms]) -> None:
    """Write the equations of couplings on a sheet, if there are any."""
    if couplings:
        equations = [[relation(strip_complex_step(terms))] for terms in couplings.values()]
        sheet.texts("couplings", list(couplings), ["changes from the drawing"], equations)


def relation(terms: Terms) -> str:
    """A coupling as an equation between changes from the drawing.

    Examples
    --------
    >>> from kic.description.couplings import relation
    >>> relation((("A", 20.0), ("B", -1.0)))
    '20 ΔA − ΔB = 0'
    """
    said = ""
    for coordinate, ratio in terms:
        sign = " − " if ratio < 0 else " + " if said else ""
        factor = "" if abs(ratio) == 1 else f"{abs(ratio):.6g} "
        said += f"{sign if said else sign.strip()}{factor}Δ{coordinate}"
    return f"{said} = 0"


def coordinate_of(who: str, owner: str, name: str, joints: Mapping[str, Joint]) -> tuple[Joint, str]:
    """The joint of a name and the one coordinate of it that is meant.

    Raises
    ------
    ModelError
        For a joint that is not there, has none or several, or turns of a ball; `who` is at fault.
    """
    joint = joints.get(name)
    if joint is None and isinstance(name, str):  # names have no dots, components may
        joint = joints.get(name.partition(".")[0])
        joint = joint if joint and name in joint.components else None
    if joint is None:
        components = (c for joint in joints.values() for c in joint.components)
        error = unknown("joint", name, owner, [*joints, *(c for c in components if c not in joints)])
        raise ModelError(f"{who}: {error}", key="joints", name=name, candidates=error.numbers["candidates"])
    if name in joints and joint.dof != 1:
        if joint.dof == 0:
            remedy = "is fixed and has no coordinate; leave it out."
        elif joint.type == "spherical":
            remedy = "is spherical: its turns have no coordinates. Draw it as three revolute joints."
        else:
            remedy = f"has {joint.dof} freedoms. Name one: {', '.join(joint.components)}."
        raise ModelError(f"{who}: joint '{name}' {remedy}", key="joints", name=name)
    first_turn = {"spherical": 0, "free": 3}.get(joint.type, 6)
    if joint.components.index(name) >= first_turn:
        raise ModelError(
            f"{who}: '{name}' is a turn of a {joint.type} joint, which has no coordinate. Draw the joint "
            "with revolute ones.",
            key="joints",
            name=name,
        )
    return joint, name


def _carrier(who: str, one: Joint, two: Joint) -> str:
    """The body that carries both joints."""
    shared = set(one.bodies) & set(two.bodies)
    if len(shared) == 1:
        return shared.pop()
    why = "tie the same two bodies" if shared else "have no body in common that could carry both wheels"
    raise ModelError(
        f"{who}: joints '{one.name}' and '{two.name}' {why}. Write the relation as `ratios`, relative to the "
        "carrier, such as (z1, -z1, z2) for the joints of wheel, carrier and planet.",
        key="joints",
    )


def _sense(joint: Joint, carrier: str) -> int:
    """1 where the coordinate moves the wheel in its carrier, -1 where it is written the other way round."""
    return 1 if joint.bodies[0] == carrier else -1


def _axis(joint: Joint) -> np.ndarray:
    axis = np.array(joint.axis)
    return axis / np.sqrt(axis @ axis)


def _centre(joint: Joint) -> np.ndarray:
    return np.array(joint.at)


def _wheels(who: str, one: Joint, two: Joint, carrier: str, coupling: Coupling) -> tuple[float, float]:
    """Numbers of gears or of a belt: both wheels' turns are counted about the axis of the first."""
    way = "belt" if coupling.gears is None else "gears"
    for joint in (one, two):
        if joint.type != "revolute":
            raise ModelError(
                f"{who}: `{way}` needs revolute joints, '{joint.name}' is {joint.type}. A rack has a "
                "`pitch_point`; anything else can be written with `ratios`.",
                key="joints",
            )
    a, b = (np.array(joint.axis) / np.linalg.norm(joint.axis) for joint in (one, two))  # type: ignore[arg-type]
    cosine, across = float((a @ b).real), np.cross(a, b)
    if np.linalg.norm(across) > _PARALLEL or not step_vanishes(across, a, b):
        raise ModelError(
            f"{who}: `{way}` needs parallel axes; the cosine of '{one.name}' and '{two.name}' is "
            f"{cosine:.6g}. Bevel gears have a `pitch_point`; worms and crossed axes are written with "
            "`ratios`.",
            key=way,
            cosine=cosine,
        )
    centres = np.array([_centre(one), _centre(two)])
    apart = np.cross(a, centres[1] - centres[0])
    if way == "gears" and np.linalg.norm(apart) <= _PARALLEL * np.abs(centres).max():
        raise ModelError(
            f"{who}: '{one.name}' and '{two.name}' turn about the same axis, where wheels can not mesh. "
            "Couple each with the wheel between them, or write the relation as `ratios`.",
            key="joints",
        )
    first, second = coupling.gears or coupling.belt or (0.0, 0.0)
    sign = round(cosine) * (1 if way == "gears" else -1)
    return first * _sense(one, carrier), sign * second * _sense(two, carrier)


def _rolling(who: str, one: Joint, two: Joint, carrier: str, at: np.ndarray) -> tuple[float, float]:
    """Numbers of two bodies that roll on one another: the same velocity at the pitch point."""
    velocities = []
    for joint in (one, two):
        if joint.type not in ("revolute", "prismatic"):
            raise ModelError(
                f"{who}: `pitch_point` needs revolute or prismatic joints, '{joint.name}' is {joint.type}. "
                "Write the relation as `ratios`.",
                key="joints",
            )
        v, size = _axis(joint), 1.0
        if joint.type == "revolute":
            v, size = np.cross(v, at - _centre(joint)), float(np.abs([at, _centre(joint)]).max())
        if np.linalg.norm(v) <= _PARALLEL * size:
            raise ModelError(
                f"{who}: the pitch point {short_repr(at.tolist())} lies on the axis of '{joint.name}', which does "
                "not move it. Give the point where the two roll on one another.",
                key="pitch_point",
            )
        velocities.append(_sense(joint, carrier) * v)
    u, v = velocities
    along, across = u / np.sqrt(u @ u), np.cross(u, v) / np.linalg.norm(u)
    sine = float(np.linalg.norm(across) / np.linalg.norm(v))
    if sine > _PARALLEL or not step_vanishes(across, *velocities):
        raise ModelError(
            f"{who}: at the pitch point {short_repr(at.tolist())} '{one.name}' and '{two.name}' move in different "
            f"directions (sine {sine:.3g}). Give the point where they roll on one another, or, if they "
            "slide as a worm does, the relation as `ratios`.",
            key="pitch_point",
            sine=sine,
        )
    return (along @ u).item(), -(along @ v).item()
