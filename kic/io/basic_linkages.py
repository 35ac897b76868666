"""Four-bar, slider-crank, five-bar, Stewart platform and Delta robot from their usual lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Any, Literal

import numpy as np

from kic.description.parts import Distance, Joint, Point
from kic.errors import InputError, invalid
from kic.io.linkage_parts import (
    EQUAL_LENGTHS_RTOL,
    Parts,
    acos,
    apex,
    at_most,
    atan2,
    cos,
    hypot,
    largest,
    lengths,
    line_angle,
    norm,
    number,
    on_bar,
    one_of,
    polar,
    sin,
    sqrt,
    two_numbers,
)
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import choice, positive
from kic.numerics.display import Printable, Summary

FourBarType = Literal[
    "crank-rocker", "rocker-crank", "double-crank", "double-rocker", "triple-rocker", "change-point"
]


@dataclass(frozen=True, repr=False)
class FourBarMotion(Printable):
    """Grashof class and range of motion of a four-bar linkage.

    Parameters
    ----------
    type : str
        "crank-rocker", "rocker-crank" (the rocker rotates), "double-crank" (drag link), "double-rocker" (the
        coupler rotates), "triple-rocker" (non-Grashof), or "change-point".
    grashof : bool
        True if the sum of the shortest and longest length is at most that of the other two (Grashof's
        condition), so that a link rotates fully.
    margin : float
        Sum of the other two lengths, minus that of the shortest and longest.
    crank : (float, float)
        Smallest and largest angle of the crank from the ground line (rad). A range of 2π is a full rotation.
        If the mirror image has another range, this is the one with positive angles.
    rocker : (float, float)
        Smallest and largest angle of the rocker, measured likewise.
    transmission : (float, float)
        Smallest and largest angle between coupler and rocker (rad), the transmission angle.
    """

    _one_line = ("type",)

    type: FourBarType
    grashof: bool
    margin: float
    crank: tuple[float, float]
    rocker: tuple[float, float]
    transmission: tuple[float, float]

    def summary(self) -> Summary:
        """Return a table of the ranges."""
        sheet = Summary(f"four-bar: {self.type}")
        sheet.say(f"Grashof condition {'met' if self.grashof else 'not met'}, margin {self.margin:.4g}")
        ranges = [[f"{np.degrees(x):.2f}" for x in r] for r in (self.crank, self.rocker, self.transmission)]
        sheet.texts(
            "ranges", ["crank", "rocker", "transmission"], ["smallest (degrees)", "largest (degrees)"], ranges
        )
        return sheet


def four_bar_motion(*, ground: float, crank: float, coupler: float, rocker: float) -> FourBarMotion:
    """Return the Grashof type, ranges of motion and transmission angles of a four-bar linkage.

    Parameters
    ----------
    ground, crank, coupler, rocker : float
        Lengths.

    Returns
    -------
    FourBarMotion

    Raises
    ------
    InputError
        If a length is not positive, or the links cannot form a closed loop.

    Examples
    --------
    >>> motion = kic.linkages.four_bar_motion(ground=4.0, crank=1.0, coupler=3.5, rocker=3.0)
    >>> motion.type, motion.grashof, [round(float(x), 4) for x in motion.rocker]
    ('crank-rocker', True, [1.77, 2.4675])
    """
    given = {"ground": ground, "crank": crank, "coupler": coupler, "rocker": rocker}
    g, c, p, r = (positive(name, value) for name, value in given.items())
    _check_closing(ground=g, crank=c, coupler=p, rocker=r)
    shortest, *middle, longest = sorted((g, c, p, r))
    margin = sum(middle) - shortest - longest
    kinds: dict[float, FourBarType] = {
        p: "double-rocker", r: "rocker-crank", c: "crank-rocker", g: "double-crank",
    }  # fmt: skip
    type_: FourBarType = kinds[shortest] if margin > 0 else "triple-rocker"
    if abs(margin) <= EQUAL_LENGTHS_RTOL * (g + c + p + r):
        type_ = "change-point"
    grashof = margin >= 0 or type_ == "change-point"
    # the rocker's angle is measured from the ground line continued beyond its pivot
    low, high = _angles(g, r, p, c)
    # the diagonal from the crank's end to the ground pivot of the rocker is shortest and longest there
    transmission = (_corner(p, r, max(abs(g - c), abs(p - r))), _corner(p, r, min(g + c, p + r)))
    return FourBarMotion(type_, grashof, margin, _angles(g, c, p, r), (pi - high, pi - low), transmission)


def _angles(base: complex, arm: complex, one: complex, other: complex) -> tuple[Any, Any]:
    """Return the range of the angle between two links for which the other two can join their ends."""
    size = base + arm + one + other
    gap, least = (x if x.real >= 0 else -x for x in (base - arm, one - other))
    if max(gap.real, least.real) <= EQUAL_LENGTHS_RTOL * size.real:  # a kite: on both sides of a step
        gap, least = complex(gap.real, abs(gap.imag)), complex(least.real, abs(least.imag))
        through_zero = least.imag <= gap.imag or at_most(least, gap, size)
    else:
        through_zero = at_most(least, gap, size)
    through_pi = at_most(base + arm, one + other, size)
    low = 0.0 if through_zero else _corner(base, arm, least)
    if through_pi:
        return (low, 2 * pi - low)
    high = _corner(base, arm, one + other)
    return (-high if through_zero else low, high)


def _corner(a: complex, b: complex, opposite: complex) -> Any:
    """Return the angle of a triangle between sides a and b."""
    return acos((a * a + b * b - opposite * opposite) / (2 * a * b))


def _check_closing(**lengths: float) -> None:
    """Raise an error if four lengths cannot form a quadrilateral."""
    name = max(lengths, key=lambda key: lengths[key])
    rest = sum(lengths.values()) - lengths[name]
    if lengths[name] >= rest:
        rule, shown = "must be less than the sum of the other lengths", f"{lengths[name]:g} and {rest:g}"
        raise invalid(name, rule, lengths[name], "The links cannot form a closed loop.", shown=shown)


def four_bar(
    *,
    ground: float,
    crank: float,
    coupler: float,
    rocker: float,
    angle: float | None = None,
    branch: Literal["open", "crossed"] = "open",
    tip: tuple[float, float] | None = None,
    masses: Mapping[str, float] | None = None,
    name: str = "four-bar",
    **rest: Any,
) -> Mechanism:
    """Make a four-bar linkage from its lengths.

    Joints A (ground, crank), B (crank, coupler), C (coupler, rocker) and D (ground, rocker). The values of A
    and D are the angles of crank and rocker from the line of the ground pivots, the x axis.

    Parameters
    ----------
    ground, crank, coupler, rocker : float
        Lengths. A is at the origin, D at (ground, 0).
    angle : float, optional
        Angle A (rad) of the reference configuration; by default a third of the way through its range.
    branch : {"open", "crossed"}
        C to the left or to the right of the line from B to D.
    tip : (float, float), optional
        Coupler point "tip", along the coupler from B and to the left of it; by default the middle.
    masses : dict of str to float, optional
        Masses of "crank", "coupler" and "rocker", slender uniform bars.
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With the coordinate A.

    Raises
    ------
    InputError
        If the links cannot form a closed loop, or the crank cannot reach the angle.

    Examples
    --------
    >>> m = kic.linkages.four_bar(ground=4.0, crank=1.0, coupler=3.5, rocker=3.0)
    >>> m.at({"A": 0.0}).value("D").round(4)
    np.float64(1.8959)
    """
    g, c, p, r = lengths(ground=ground, crank=crank, coupler=coupler, rocker=rocker)
    choice("branch", branch, ("open", "crossed"))
    low, high = four_bar_motion(ground=g.real, crank=c.real, coupler=p.real, rocker=r.real).crank
    if angle is None:
        low, high = _angles(g, c, p, r)
    theta = low + (high - low) / 3 if angle is None else number("angle", angle)
    A, B, D = np.zeros(3), polar(c, theta), np.array([g, 0.0, 0.0])
    C = apex(B, D, p, r, 1.0 if branch == "open" else -1.0)
    if C is None:
        message = (
            f"`angle` must be within the range of the crank, {low:.4g} to {high:.4g}, got {theta.real:g}."
        )
        raise InputError(message, key="angle", got=theta, range=(low, high))
    parts = Parts(name, masses, A=theta)
    for body, a, b in (("crank", A, B), ("coupler", B, C), ("rocker", D, C)):
        parts.bar(body, a, b)
    turned, followed = line_angle(B, C), line_angle(D, C)
    parts.hinge("A", ("ground", "crank"), A, theta)
    parts.hinge("B", ("crank", "coupler"), B, turned - theta)
    parts.hinge("C", ("coupler", "rocker"), C, followed - turned)
    parts.hinge("D", ("ground", "rocker"), D, followed)
    parts.points.append(Point("tip", "coupler", tuple(on_bar(B, C, tip))))
    return parts.mechanism(["A"], rest)


def slider_crank(
    *,
    crank: float,
    rod: float,
    offset: float = 0.0,
    angle: float = pi / 3,
    masses: Mapping[str, float] | None = None,
    name: str = "slider-crank",
    **rest: Any,
) -> Mechanism:
    """Make a slider-crank from its lengths.

    Joints A (ground, crank), B (crank, rod), C (rod, slider), and the prismatic joint D (ground, slider)
    along x, which measures x of the slider.

    Parameters
    ----------
    crank, rod : float
        Lengths. A is at the origin.
    offset : float
        y of the slider.
    angle : float
        Angle A (rad) of the reference configuration.
    masses : dict of str to float, optional
        Masses of "crank" and "rod", slender uniform bars, and of "slider".
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With coordinate A, and the point "tip" of the slider.

    Raises
    ------
    InputError
        If the rod does not reach the line of the slider.

    Examples
    --------
    >>> m = kic.linkages.slider_crank(crank=0.05, rod=0.2)
    >>> m.at({"A": 0.0}).value("D").round(4)
    np.float64(0.25)
    """
    c, p = lengths(crank=crank, rod=rod)
    e, theta = number("offset", offset), number("angle", angle)
    A, B = np.zeros(3), polar(c, theta)
    square = p * p - (B[1] - e) ** 2
    if not square.real > 0:
        rule = f"must exceed the distance {abs(B[1] - e):g} from the crank pin to the line of the slider"
        raise invalid("rod", rule, p, shown=f"{p.real:g}")
    C = np.array([B[0] + sqrt(square, p * p), e, 0.0])
    parts = Parts(name, masses, A=theta)
    for body, a, b in (("crank", A, B), ("rod", B, C), ("slider", C, C)):
        parts.bar(body, a, b)
    turned = line_angle(B, C)
    parts.hinge("A", ("ground", "crank"), A, theta)
    parts.hinge("B", ("crank", "rod"), B, turned - theta)
    parts.hinge("C", ("rod", "slider"), C, -turned)
    parts.joints.append(Joint("D", "prismatic", ("ground", "slider"), tuple(C), (1.0, 0.0, 0.0), value=C[0]))
    parts.points.append(Point("tip", "slider", tuple(C)))
    return parts.mechanism(["A"], rest)


def five_bar(
    *,
    ground: float,
    proximal: float | tuple[float, float],
    distal: float | tuple[float, float],
    angles: tuple[float, float] | None = None,
    masses: Mapping[str, float] | None = None,
    name: str = "five-bar",
    **rest: Any,
) -> Mechanism:
    """Make a planar five-bar linkage, the two-degree-of-freedom parallel robot, from its lengths.

    Joints A (ground, left), B (left, left_rod), C (left_rod, right_rod), D (right, right_rod) and E (ground,
    right). The values of A and E are the angles of the driven links from the x axis.

    Parameters
    ----------
    ground : float
        Distance between the ground pivots, A at the origin and E at (ground, 0).
    proximal, distal : float or (float, float)
        Lengths of the driven links and of the rods: one for both sides, or left and right.
    angles : (float, float), optional
        Angles A and E (rad) of the reference configuration; by default elbows apart and symmetric for equal
        lengths. The tip C is above the line of the elbows.
    masses : dict of str to float, optional
        Masses of "left", "right", "left_rod" and "right_rod", slender uniform bars.
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With coordinates A and E, and the point "tip" at C.

    Raises
    ------
    InputError
        If the links cannot form a closed loop.

    Examples
    --------
    >>> m = kic.linkages.five_bar(ground=0.2, proximal=0.25, distal=0.4)
    >>> m.at().value("tip.x").round(6)
    np.float64(0.1)
    """
    (left, right), (left_rod, right_rod) = (
        two_numbers("proximal", proximal, True),
        two_numbers("distal", distal, True),
    )
    g, a, b, p, r = lengths(ground=ground, left=left, right=right, left_rod=left_rod, right_rod=right_rod)
    if angles is None:
        # proximal links at opposite angles, with elbows in the middle of the distances that the rods span
        size, gaps = g + a + b + p + r, (0.0, g - a - b, a - b - g, b - a - g)
        least, most = largest(size, *gaps, p - r, r - p), -largest(size, -(p + r), -(g + a + b))
        if not least.real < most.real:
            nearest, farthest = max(x.real for x in gaps), (g + a + b).real
            message = (
                f"`distal` must span the elbows, which are {nearest:g} to {farthest:g} apart, got rods that "
                f"span {abs(p - r):g} to {(p + r).real:g}."
            )
            raise InputError(message, key="distal", got=p + r)
        width = (least + most) / 2
        # 4 a b cos² + 2 g (a + b) cos = width² − g² − (b − a)²
        middle = g * (a + b)
        square = middle**2 + 4 * a * b * (width**2 - g**2 - (b - a) ** 2)
        # without a root, the angles at which the elbows are nearest to the width
        root = 0.0 if square.real < -EQUAL_LENGTHS_RTOL * middle.real**2 else sqrt(square, middle**2)
        corner = acos((root - middle) / (4 * a * b))
        angles = (pi - corner, corner)
    one, two = two_numbers("angles", angles)
    A, E = np.zeros(3), np.array([g, 0.0, 0.0])
    B, D = polar(a, one), E + polar(b, two)
    C = apex(B, D, p, r, 1.0)
    if C is None:
        gap = hypot(*(D - B)[:2]).real
        message = (
            f"`angles` must place the elbows within the reach of the rods, got {gap:g} between elbows and "
            f"rods of {p.real:g} and {r.real:g}."
        )
        raise InputError(message, key="angles", distance=gap)
    parts = Parts(name, masses, A=one, E=two)
    for body, u, v in (("left", A, B), ("right", E, D), ("left_rod", B, C), ("right_rod", D, C)):
        parts.bar(body, u, v)
    left, right = line_angle(B, C), line_angle(D, C)
    parts.hinge("A", ("ground", "left"), A, one)
    parts.hinge("B", ("left", "left_rod"), B, left - one)
    parts.hinge("C", ("left_rod", "right_rod"), C, right - left)
    parts.hinge("D", ("right", "right_rod"), D, right - two)
    parts.hinge("E", ("ground", "right"), E, two)
    parts.points.append(Point("tip", "left_rod", tuple(C)))
    return parts.mechanism(["A", "E"], rest)


def stewart(
    *,
    base_radius: float,
    platform_radius: float,
    height: float | None = None,
    leg_length: float | None = None,
    base_angle: float = pi / 9,
    platform_angle: float = pi / 9,
    legs: Literal["UPS", "distance"] = "UPS",
    masses: Mapping[str, float] | None = None,
    name: str = "stewart",
    **rest: Any,
) -> Mechanism:
    """Make a Gough–Stewart platform with six legs from its radii, angles and height.

    Leg k has a universal joint Uk on the base, a prismatic joint Lk for its length, and a spherical joint Sk
    on the platform. Base joints are in pairs about 0°, 120° and 240°, platform joints in pairs about 60°,
    180° and 300°; legs 1 and 2 share a pair of the base, legs 2 and 3 one of the platform.

    Parameters
    ----------
    base_radius, platform_radius : float
        Radii of the circles of joints.
    height, leg_length : float
        Height of the platform's joints above those of the base in the level reference configuration, or the
        length of the legs there; give one.
    base_angle, platform_angle : float
        Angles (rad) between the two joints of a pair.
    legs : {"UPS", "distance"}
        Legs of two bodies with a universal, a prismatic and a spherical joint; or massless legs, each a
        `Distance` Lk between the points Bk of the base and Pk of a free platform.
    masses : dict of str to float, optional
        Masses of "platform", a uniform disc, and of "cylinder1" …, "piston1" …, slender bars of half the leg.
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With coordinates L1 to L6.

    Raises
    ------
    InputError
        If a length is invalid, or not exactly one of `height` and `leg_length` is given.

    Examples
    --------
    >>> m = kic.linkages.stewart(base_radius=0.8, platform_radius=0.5, height=0.9)
    >>> m.at().value("L1").round(4)
    np.float64(1.0427)
    """
    R, r = lengths(base_radius=base_radius, platform_radius=platform_radius)
    one_of(height=height, leg_length=leg_length)
    pairs, sides = np.repeat(np.arange(3) * 2 * pi / 3, 2), np.tile([-0.5, 0.5], 3)
    gaps = number("base_angle", base_angle), 2 * pi / 3 - number("platform_angle", platform_angle)
    base, top = (
        np.array([polar(radius, angle) for angle in pairs + sides * gap])
        for radius, gap in zip((R, r), gaps, strict=True)
    )
    if leg_length is None:
        (h,) = lengths(height=height)
    else:
        (L,) = lengths(leg_length=leg_length)
        across = base[0] - top[0]
        flat = norm(across.real)
        if not flat < L.real:
            message = f"`leg_length` must exceed {flat:g}, the distance of the circles, got {L.real:g}."
            raise InputError(message, key="leg_length", got=L)
        h = sqrt(L * L - across @ across, L * L)
    top = top + np.array([0.0, 0.0, h])
    parts = Parts(name, masses)
    names = [f"L{k}" for k in range(1, 7)]
    if choice("legs", legs, ("UPS", "distance")) == "distance":
        for k, (b, t) in enumerate(zip(base, top, strict=True), 1):
            parts.points += [Point(f"B{k}", "ground", tuple(b)), Point(f"P{k}", "platform", tuple(t))]
        parts.disc("platform", r, h)
        parts.joints.append(Joint("free", "free", ("ground", "platform"), (0.0, 0.0, h)))
        rods = [Distance(name, (f"B{k}", f"P{k}")) for k, name in enumerate(names, 1)]
        return parts.mechanism(names, {**rest, "distances": [*rods, *rest.get("distances", ())]})
    for k, (b, t) in enumerate(zip(base, top, strict=True), 1):
        parts.ups_leg(k, b, t)
    parts.disc("platform", r, h)
    return parts.mechanism(names, rest)


def delta(
    *,
    base_radius: float,
    platform_radius: float,
    arm: float,
    forearm: float,
    angle: float | None = None,
    height: float | None = None,
    width: float | None = None,
    masses: Mapping[str, float] | None = None,
    name: str = "delta",
    **rest: Any,
) -> Mechanism:
    """Make a Delta robot from its usual dimensions: three driven arms and three parallelograms.

    Arm k hangs from hinge Ak, whose value is the angle of the arm below horizontal. The rods "rodka" and
    "rodkb" have universal joints Uka, Ukb on the arm and spherical joints Ska, Skb on the platform. The base
    is at z = 0, and the platform below it.

    Parameters
    ----------
    base_radius : float
        Distance of the hinges from the axis.
    platform_radius : float
        Distance of the rods' ends on the platform from its centre.
    arm, forearm : float
        Lengths of the arms, and of the rods of the parallelograms.
    angle, height : float, optional
        Angle of the arms (rad) below horizontal, or z of the platform below the base, in the reference
        configuration; at most one. The default is an angle of 0.4 rad.
    width : float, optional
        Distance between the two rods of a parallelogram; by default a tenth of `forearm`.
    masses : dict of str to float, optional
        Masses of "platform", a uniform disc, "arm1" … and "rod1a" …, slender bars.
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With coordinates A1, A2, A3, and the point "tip" at the centre of the platform.

    Raises
    ------
    InputError
        If the rods do not reach the platform, or both `angle` and `height` are given.

    Examples
    --------
    >>> m = kic.linkages.delta(base_radius=0.2, platform_radius=0.05, arm=0.26, forearm=0.65)
    >>> m.at({"tip": [0.1, 0.0, -0.6]}).value("A1").round(4)
    np.float64(0.1074)
    """
    R, r, a, p = lengths(base_radius=base_radius, platform_radius=platform_radius, arm=arm, forearm=forearm)
    (w,) = lengths(width=forearm / 10 if width is None else width)
    if angle is None and height is None:
        angle = 0.4
    one_of(angle=angle, height=height)
    if height is None:
        theta = number("angle", angle)
        gap = R + a * cos(theta) - r
        if not p.real > abs(gap):
            raise invalid("forearm", f"must exceed {abs(gap):g} at this angle", p, shown=f"{p.real:g}")
        z = -a * sin(theta) - sqrt(p * p - gap * gap, p * p)
    else:
        z = -lengths(height=height)[0]
        # two-link arm from the hinge to the rod's end on the platform
        x = r - R
        d = sqrt(x * x + z * z)
        if not abs(a - p) < d.real < (a + p).real:
            raise invalid("height", "must be within the reach of arm and forearm", -z, shown=f"{-z.real:g}")
        theta = -atan2(z, x) - acos((a * a + d * d - p * p) / (2 * a * d))
    parts = Parts(name, masses)
    for k in range(3):
        out, up = polar(1.0, 2 * pi * k / 3), np.array([0.0, 0.0, 1.0])
        side = np.cross(up, out)
        hinge = R * out
        elbow = hinge + a * (cos(theta) * out - sin(theta) * up)
        end = r * out + z * up
        arm_name = f"arm{k + 1}"
        parts.bar(arm_name, hinge, elbow)
        parts.joints.append(
            Joint(f"A{k + 1}", "revolute", ("ground", arm_name), tuple(hinge), tuple(side), value=theta)
        )
        across = np.cross(end - elbow, side)
        for letter, shift in (("a", w / 2 * side), ("b", -w / 2 * side)):
            rod, start, stop = f"rod{k + 1}{letter}", elbow + shift, end + shift
            parts.bar(rod, start, stop)
            parts.joints += [
                Joint(
                    f"U{k + 1}{letter}",
                    "universal",
                    (arm_name, rod),
                    tuple(start),
                    tuple(side),
                    axis2=tuple(across),
                ),
                Joint(f"S{k + 1}{letter}", "spherical", (rod, "platform"), tuple(stop)),
            ]
    parts.disc("platform", r, z)
    parts.points.append(Point("tip", "platform", (0.0, 0.0, z)))
    return parts.mechanism(["A1", "A2", "A3"], rest)
