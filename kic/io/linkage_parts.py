"""Helpers for linkages: points in the plane, and bodies, joints and points under construction.

Numbers may carry a complex step of a sensitivity. The functions below equal those of `math` and NumPy for
real numbers, and are analytic for complex steps. They raise `InputError` where they have no derivative.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kic.description.parts import Body, Joint, Point, combined_inertia
from kic.description.validation import GROUND
from kic.errors import InputError, invalid, short_repr
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import mapping
from kic.numerics.arrays import as_array, numbers, ordinary, reals, require_real, step_vanishes
from kic.numerics.rotations import wrap_to_pi

# relative difference of lengths, or of their sums, below which they are equal
EQUAL_LENGTHS_RTOL = 1e-12
# share of a squared length by which the square of a height may be negative: the triangle is flat
FLAT_RTOL = 1e-12


def real_or_stepped(name: str, value: Any, *shape: int) -> np.ndarray:
    """Return the array of `real_array`; inside `stepping` it may have complex steps."""
    a = as_array(name, value, *shape)
    known = reals(a)
    return require_real(name, a) if known is None else known


def lengths(**given: Any) -> list[Any]:
    """Return lengths after a check that they are positive."""
    found = []
    for name, value in given.items():
        a = reals(value)
        if a is None or a.ndim or not a.real > 0:
            raise invalid(name, "must be a positive finite number", value)
        found.append(ordinary(name, a).item())
    return found


def number(name: str, value: Any) -> Any:
    """Return a finite number."""
    a = real_or_stepped(name, value)
    if a.ndim:
        raise invalid(name, "must be a number", value)
    return a.item()


def one_of(**given: Any) -> None:
    """Raise an error unless exactly one argument is given."""
    if sum(value is not None for value in given.values()) != 1:
        one, other = given
        got = ", ".join(f"{name}={short_repr(value)}" for name, value in given.items())
        raise InputError(f"Exactly one of `{one}` and `{other}` must be given, got {got}.", key=one, got=got)


def two_numbers(name: str, value: Any, repeat: bool = False) -> tuple[Any, Any]:
    """Return two finite numbers; with `repeat`, one number stands for both."""
    if repeat and numbers(name, value).ndim == 0:
        return (number(name, value),) * 2
    a = real_or_stepped(name, value, 2)
    if a.ndim != 1:
        raise invalid(name, "must be two numbers", value)
    return a[0].item(), a[1].item()


def _not_smooth() -> InputError:
    return InputError(
        "The reference configuration must change smoothly with the dimensions of the linkage, got one where "
        "links are in line or lengths are equal. Give the angles of another one, or other lengths."
    )


def at_most(x: complex, y: complex, size: complex) -> bool:
    """Return True if x ≤ y; raise an error if only a complex step decides, for lengths of order `size`."""
    if abs(x.real - y.real) <= EQUAL_LENGTHS_RTOL * size.real and not step_vanishes(x - y, x, y):
        raise _not_smooth()
    return x.real <= y.real


def largest(size: complex, *values: complex) -> Any:
    """Return the largest number; raise an error if only a complex step decides (see `at_most`)."""
    found = max(values, key=lambda x: x.real)
    for x in values:
        at_most(x, found, size)
    return found


def sin(x: complex) -> Any:
    """Return the sine."""
    return cmath.sin(x) if x.imag else math.sin(x.real)


def cos(x: complex) -> Any:
    """Return the cosine."""
    return cmath.cos(x) if x.imag else math.cos(x.real)


def sqrt(x: complex, size: complex = 0.0) -> Any:
    """Return the square root of a sum of terms of order `size`, or zero if rounding makes it negative."""
    if x.imag and x.real <= EQUAL_LENGTHS_RTOL * size.real:
        raise _not_smooth()
    return cmath.sqrt(x) if x.imag else math.sqrt(max(x.real, 0.0))


def acos(x: complex) -> Any:
    """Return the arc cosine of a number, clipped to ±1 because of rounding."""
    if x.imag and abs(x.real) >= 1 - EQUAL_LENGTHS_RTOL:
        raise _not_smooth()
    return cmath.acos(x) if x.imag else math.acos(min(1.0, max(-1.0, x.real)))


def hypot(x: complex, y: complex) -> Any:
    """Return the length of a vector in the plane."""
    return norm(np.array([x, y])) if x.imag or y.imag else float(np.hypot(x.real, y.real))


def norm(v: np.ndarray) -> Any:
    """Return the length of a vector."""
    if v.imag.any() and not v.real.any():
        raise _not_smooth()
    return sqrt(v @ v)


def atan2(y: complex, x: complex) -> Any:
    """Return the angle of a vector in the plane."""
    angle = math.atan2(y.real, x.real)
    if not (x.imag or y.imag):
        return angle
    return angle + 1j * (x.real * y.imag - y.real * x.imag) / hypot(x, y).real ** 2


def apex(a: np.ndarray, b: np.ndarray, one: complex, other: complex, side: float) -> np.ndarray | None:
    """Return the point at given distances from a and b, left (side 1) or right of line ab, or None."""
    d = b - a
    f = hypot(d[0], d[1])
    along = (f * f + one * one - other * other) / (2 * f) if f else np.inf
    square = one * one - along * along
    if not square.real >= -FLAT_RTOL * one.real * one.real:
        return None
    normal = np.array([-d[1], d[0], 0.0]) / f
    return a + along * d / f + side * sqrt(square, one * one) * normal


def polar(length: complex, angle: complex) -> np.ndarray:
    """Return the vector of a length and an angle in the plane."""
    return length * np.array([cos(angle), sin(angle), 0.0])


def line_angle(a: np.ndarray, b: np.ndarray) -> Any:
    """Return the angle of the line from a to b in the plane."""
    return atan2(b[1] - a[1], b[0] - a[0])


class Parts:
    """Bodies, joints and points of a linkage under construction; `angles` are values of hinges by name."""

    def __init__(self, name: str, masses: Mapping[str, float] | None, **angles: complex) -> None:
        self.name, self.masses = name, mapping("masses", {} if masses is None else masses, "bodies to masses")
        self.angles = angles
        self.bodies: list[Body] = []
        self.joints: list[Joint] = []
        self.points: list[Point] = []

    def mass(self, name: str) -> Any:
        """Return the mass of a body; None if it was not given."""
        given = self.masses.pop(name, None)
        return None if given is None else number("masses", given)

    def bar(self, name: str, a: np.ndarray, b: np.ndarray) -> None:
        """Add a slender uniform bar from a to b, or a point mass if a and b coincide."""
        v = b - a
        mass = self.mass(name)
        inertia = None if mass is None else mass / 12 * ((v @ v) * np.eye(3) - np.outer(v, v))
        self.add(name, mass, (a + b) / 2, inertia)

    def add(self, name: str, mass: float | None, com: np.ndarray, inertia: Any) -> None:
        """Add a body; without mass its centre is its reference point."""
        self.bodies.append(Body(name, mass=mass, com=tuple(com), inertia=inertia))

    def hinge(self, name: str, bodies: tuple[str, str], at: np.ndarray, value: Any) -> None:
        """Add a revolute joint about z with the value given in `angles`, or else `value` within ±π."""
        value = self.angles.get(name, wrap_to_pi(value.real) + (value - value.real))
        self.joints.append(Joint(name, "revolute", bodies, tuple(at), (0.0, 0.0, 1.0), value=value))

    def slide(self, name: str, bodies: tuple[str, str], at: np.ndarray, value: Any) -> None:
        """Add a prismatic joint along x."""
        self.joints.append(Joint(name, "prismatic", bodies, tuple(at), (1.0, 0.0, 0.0), value=value))

    def disc(self, name: str, radius: complex, height: complex) -> None:
        """Add a uniform level disc about the z axis."""
        mass = self.mass(name)
        inertia = None if mass is None else mass * radius * radius / 4 * np.array([1.0, 1.0, 2.0])
        self.add(name, mass, np.array([0.0, 0.0, height]), inertia)

    def box(self, name: str, points: np.ndarray, at: np.ndarray) -> None:
        """Add a uniform box along the axes with the size of the bounding box of points."""
        mass, inertia = self.mass(name), None
        if mass is not None:
            scale = np.abs(points).max()
            size = np.array([largest(scale, *x) + largest(scale, *-x) for x in points.T])
            inertia = mass / 12 * np.diag(size @ size - size * size)
        self.add(name, mass, at, inertia)

    def pinned(self, places: Mapping[str, np.ndarray], bodies: Mapping[str, Iterable[str]]) -> None:
        """Add planar bodies, given by their points, and a hinge at every point that several bodies share.

        New bodies are slender uniform bars through their points in order. Their angles are those of the
        lines from the first to the second point. A point with more than two bodies has hinges name1,
        name2 …; a point of one body is a `Point`.
        """
        known = {GROUND, *(body.name for body in self.bodies)}
        angles: dict[str, float] = {}
        sharing: dict[str, list[str]] = {place: [] for place in places}
        for name, own in bodies.items():
            corners = [places[place] for place in own]
            angles[name] = 0.0 if name == GROUND or len(corners) < 2 else line_angle(*corners[:2])
            for place in own:
                sharing[place].append(name)
            if name in known:
                continue
            bars = list(zip(corners, corners[1:] or corners, strict=False))
            share = np.array([norm(b - a) for a, b in bars])
            mass, share = self.mass(name), share / (share.sum() or 1.0)
            shell = [
                (k, (a + b) / 2, k / 12 * ((b - a) @ (b - a) * np.eye(3) - np.outer(b - a, b - a)))
                for k, (a, b) in zip(share if share.any() else [1.0], bars, strict=True)
            ]
            _, com, inertia = combined_inertia(shell)
            self.add(name, mass, com, None if mass is None else mass * inertia)
        for place, owners in sharing.items():
            base = GROUND if GROUND in owners else owners[0]
            others = [name for name in owners if name != base]
            for k, name in enumerate(others, 1):
                joint = place if len(others) == 1 else f"{place}{k}"
                self.hinge(joint, (base, name), places[place], angles[name] - angles[base])
            if not others:
                self.points.append(Point(place, base, tuple(places[place])))

    def strut(self, k: int, b: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Add cylinder k from b and piston k to t, with the prismatic joint Lk; return the leg."""
        middle, leg = (b + t) / 2, t - b
        cylinder, piston = f"cylinder{k}", f"piston{k}"
        self.bar(cylinder, b, middle)
        self.bar(piston, middle, t)
        self.joints.append(Joint(f"L{k}", "prismatic", (cylinder, piston), axis=tuple(leg), value=norm(leg)))
        self.joints.append(Joint(f"S{k}", "spherical", (piston, "platform"), tuple(t)))
        return leg

    def ups_leg(self, k: int, b: np.ndarray, t: np.ndarray) -> None:
        """Add a leg from the base to the body "platform": joints Uk (universal), Lk, and Sk (spherical)."""
        place = len(self.joints)
        leg, tangent = self.strut(k, b, t), np.array([-b[1], b[0], 0.0])
        across = np.cross(leg, tangent)
        # the first axis is level and perpendicular to the second, which is perpendicular to the leg
        first = np.cross(across, leg)
        # real lengths: steps of unit axes along themselves would be rounding
        first, across = first / norm(first).real, across / norm(across).real
        joint = Joint(
            f"U{k}", "universal", (GROUND, f"cylinder{k}"), tuple(b), tuple(first), axis2=tuple(across)
        )
        self.joints.insert(place, joint)

    def mechanism(self, coordinates: list[str], rest: dict[str, Any]) -> Mechanism:
        """Return the mechanism; all masses must belong to bodies."""
        if self.masses:
            there = ", ".join(body.name for body in self.bodies)
            message = f"`masses` has no body '{next(iter(self.masses))}'. Bodies: {there}."
            raise InputError(message, key="masses")
        for key in ("bodies", "joints"):
            if key in rest:
                raise InputError(
                    f"`{key}` must be left out: '{self.name}' has its own. Add others by `add`.", key=key
                )
        given = {"coordinates": coordinates, **rest}
        given["points"] = [*self.points, *(rest.get("points") or ())]
        return Mechanism(self.name, bodies=tuple(self.bodies), joints=tuple(self.joints), **given)


def on_bar(a: np.ndarray, b: np.ndarray, tip: Any) -> np.ndarray:
    """Return the point at `tip`, along and to the left of the line from a to b; by default its middle."""
    if tip is None:
        return (a + b) / 2
    along, left = two_numbers("tip", tip)
    u = (b - a) / norm(b - a)
    return a + along * u + left * np.array([-u[1], u[0], 0.0])
