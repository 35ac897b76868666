"""Classical planar linkages: straight-line motions, six-bars, a walking leg, a lift and a gripper."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any, Literal

import numpy as np

from kic.description.couplings import Coupling
from kic.description.description import KINDS
from kic.description.parts import Point
from kic.description.validation import GROUND
from kic.errors import InputError
from kic.io.basic_linkages import four_bar
from kic.io.linkage_parts import (
    Parts,
    apex,
    cos,
    lengths,
    line_angle,
    norm,
    number,
    on_bar,
    polar,
    sin,
    two_numbers,
)
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import choice, integer, mapping

# points of the fully extended leg in US patent 6,260,862, Table 1: 15, 29X, 27X, 11, 35X, 37X, 9 and 33X
KLANN = {
    "A": (1.599, 0.750), "B": (1.331, 0.750), "C": (0.741, 0.750), "D": (1.009, 0.574),
    "E": (0.232, 0.866), "F": (0.866, 1.500), "G": (1.366, 1.366), "foot": (0.0, 0.0),
}  # fmt: skip


def klann(
    *, scale: float = 1.0, masses: Mapping[str, float] | None = None, name: str = "klann", **rest: Any
) -> Mechanism:
    """Make the walking leg of J. Klann, a Stephenson six-bar, with the proportions of its patent.

    Joints A (ground, crank), B (crank, rod), C (rod, lower_rocker), D (ground, lower_rocker), E (rod, leg), F
    (leg, upper_rocker) and G (ground, upper_rocker). The value of A is the crank's angle from x.

    Parameters
    ----------
    scale : float
        Length of one unit of the patent, in which the crank has a length of 0.268.
    masses : dict of str to float, optional
        Masses of "crank", "rod", "lower_rocker", "leg" and "upper_rocker".
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With the coordinate A, and the point "foot".

    References
    ----------
    J. C. Klann, US patent 6,260,862, 2001, Table 1.

    Examples
    --------
    >>> m = kic.linkages.klann(scale=0.1)
    >>> m.at().value("foot").round(6) + 0.0
    array([-0.1599, -0.075 ,  0.    ])
    """
    (unit,) = lengths(scale=scale)
    origin = np.array(KLANN["A"])
    parts = Parts(name, masses)
    places = {key: np.append(unit * (np.array(xy) - origin), 0.0) for key, xy in KLANN.items()}
    bodies = {
        GROUND: "ADG", "crank": "AB", "rod": "BCE", "lower_rocker": "DC", "leg": ("F", "E", "foot"),
        "upper_rocker": "GF",
    }  # fmt: skip
    parts.pinned(places, bodies)
    return parts.mechanism(["A"], rest)


def _six_bar(
    carrier: str,
    four: tuple[float, float, float, float],
    tip: Any,
    rod: float,
    follower: float,
    pivot: Any,
    dyad: str,
    masses: Mapping[str, float] | None,
    name: str,
    rest: dict[str, Any],
    **options: Any,
) -> Mechanism:
    """Return a four-bar with a rod from a point of its coupler or rocker to a follower."""
    given = dict(mapping("masses", {} if masses is None else masses, "bodies to masses"))
    own: dict[str, float] = {key: given.pop(key) for key in ("rod", "follower") if key in given}
    g, a, b, c = four
    base = four_bar(ground=g, crank=a, coupler=b, rocker=c, masses=given, name=name, **options)
    ends = {joint.name: np.array(joint.at) for joint in base.joints}
    p, r = lengths(rod=rod, follower=follower)
    E = on_bar(ends["B" if carrier == "coupler" else "D"], ends["C"], tip)
    G = np.append(two_numbers("pivot", pivot), 0.0)
    F = apex(E, G, p, r, 1.0 if choice("dyad", dyad, ("left", "right")) == "left" else -1.0)
    if F is None:
        gap = norm(G - E).real
        message = (
            f"`rod` and `follower` must span the distance {gap:.4g} from the point of the {carrier} to "
            f"`pivot` in the reference configuration, got {p.real:g} and {r.real:g}."
        )
        raise InputError(message, key="rod", distance=gap)
    parts = Parts(name, own)
    parts.bar("rod", E, F)
    parts.bar("follower", G, F)
    turned = line_angle(ends["B" if carrier == "coupler" else "D"], ends["C"])
    parts.hinge("E", (carrier, "rod"), E, line_angle(E, F) - turned)
    parts.hinge("F", ("rod", "follower"), F, line_angle(G, F) - line_angle(E, F))
    parts.hinge("G", (GROUND, "follower"), G, line_angle(G, F))
    made = base.without("tip").add(*parts.bodies, *parts.joints, Point("tip", carrier, tuple(E)))
    added = [part for kind in KINDS for part in rest.pop(kind, None) or ()]
    return made.add(*added).replace(**rest)


def stephenson(
    *,
    ground: float,
    crank: float,
    coupler: float,
    rocker: float,
    tip: tuple[float, float],
    rod: float,
    follower: float,
    pivot: tuple[float, float],
    angle: float | None = None,
    branch: Literal["open", "crossed"] = "open",
    dyad: Literal["left", "right"] = "left",
    masses: Mapping[str, float] | None = None,
    name: str = "stephenson",
    **rest: Any,
) -> Mechanism:
    """Make a Stephenson III six-bar: a rod connects a coupler point of a four-bar to a follower.

    Joints A to D are those of `four_bar`; E (coupler, rod), F (rod, follower) and G (ground, follower). The
    value of G is the angle of the follower from the x axis.

    Parameters
    ----------
    ground, crank, coupler, rocker : float
        Lengths, as in `four_bar`.
    tip : (float, float)
        Position of E on the coupler: along it from B, and to its left.
    rod, follower : float
        Lengths from E to F, and from F to G.
    pivot : (float, float)
        Position of G.
    angle : float, optional
        Angle A (rad) of the reference configuration.
    branch : {"open", "crossed"}
        Branch of the four-bar.
    dyad : {"left", "right"}
        Side of the line from E to G on which F lies.
    masses : dict of str to float, optional
        Masses of the bodies of `four_bar`, "rod" and "follower".
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With the coordinate A, and the point "tip" at E.

    Raises
    ------
    InputError
        If the links cannot form a closed loop.

    Examples
    --------
    >>> m = kic.linkages.stephenson(
    ...     ground=4.0, crank=1.0, coupler=3.5, rocker=3.0,
    ...     tip=(1.75, 1.0), rod=3.0, follower=2.5, pivot=(2.0, 6.0),
    ... )
    >>> m.dof, len(m.bodies)
    (1, 5)
    """
    four = (ground, crank, coupler, rocker)
    return _six_bar(
        "coupler", four, tip, rod, follower, pivot, dyad, masses, name, rest, angle=angle, branch=branch
    )


def watt(
    *,
    ground: float,
    crank: float,
    coupler: float,
    rocker: float,
    tip: tuple[float, float],
    rod: float,
    follower: float,
    pivot: tuple[float, float],
    angle: float | None = None,
    branch: Literal["open", "crossed"] = "open",
    dyad: Literal["left", "right"] = "left",
    masses: Mapping[str, float] | None = None,
    name: str = "watt",
    **rest: Any,
) -> Mechanism:
    """Make a Watt II six-bar: the rocker of a four-bar drives a second four-bar.

    Joints A to D are those of `four_bar`; E (rocker, rod), F (rod, follower) and G (ground, follower). The
    value of G is the angle of the follower from the x axis.

    Parameters
    ----------
    ground, crank, coupler, rocker
        As in `stephenson`.
    tip : (float, float)
        Position of E on the rocker: along it from D towards C, and to its left.
    rod, follower, pivot, angle, branch, dyad, masses, name, **rest
        As in `stephenson`.

    Returns
    -------
    Mechanism
        With the coordinate A, and the point "tip" at E.

    Raises
    ------
    InputError
        If the links cannot form a closed loop.

    Examples
    --------
    >>> m = kic.linkages.watt(
    ...     ground=4.0, crank=1.0, coupler=3.5, rocker=3.0,
    ...     tip=(1.5, -1.0), rod=4.0, follower=2.0, pivot=(8.0, 0.0),
    ... )
    >>> m.dof, len(m.bodies)
    (1, 5)
    """
    four = (ground, crank, coupler, rocker)
    return _six_bar(
        "rocker", four, tip, rod, follower, pivot, dyad, masses, name, rest, angle=angle, branch=branch
    )


def chebyshev(
    *, coupler: float, masses: Mapping[str, float] | None = None, name: str = "chebyshev", **rest: Any
) -> Mechanism:
    """Make Chebyshev's linkage: the middle of the coupler moves nearly on a straight line.

    The ground is twice as long as the coupler, and the crossed arms two and a half times. The middle of the
    coupler passes its reference height, twice the coupler's length, in three positions. Joints A
    (ground, crank), B (crank, coupler), C (coupler, rocker) and D (ground, rocker).

    Parameters
    ----------
    coupler : float
        Length of the coupler.
    masses : dict of str to float, optional
        Masses of the bodies "crank", "coupler" and "rocker".
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With the coordinate A, and the point "tip" in the middle of the coupler.

    Examples
    --------
    >>> m = kic.linkages.chebyshev(coupler=1.0)
    >>> way = m.path({"tip.x": np.linspace(1.0, 1.5, 11)})
    >>> float(np.ptp(way.value("tip.y")).round(4))
    0.0045
    """
    (u,) = lengths(coupler=coupler)
    parts = Parts(name, masses)
    xy = {"A": (0, 0), "D": (2, 0), "B": (1.5, 2), "C": (0.5, 2), "tip": (1, 2)}
    places = {key: u * np.array([*x, 0.0]) for key, x in xy.items()}
    bodies = {GROUND: "AD", "crank": "AB", "coupler": ("B", "tip", "C"), "rocker": "DC"}
    parts.pinned(places, bodies)
    return parts.mechanism(["A"], rest)


def scott_russell(
    *,
    crank: float,
    angle: float = pi / 4,
    masses: Mapping[str, float] | None = None,
    name: str = "scott-russell",
    **rest: Any,
) -> Mechanism:
    """Make the Scott Russell linkage: the end of a rod moves exactly along the y axis.

    The crank is hinged to the middle of a rod of twice its length, one end of which slides along x. Joints A
    (ground, crank), B (crank, rod), C (rod, slider), and the prismatic joint D at x of the slider.

    Parameters
    ----------
    crank : float
        Length of the crank, half that of the rod. A is at the origin.
    angle : float
        Angle A (rad) of the reference configuration.
    masses : dict of str to float, optional
        Masses of the bodies "crank", "rod" and "slider".
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With the coordinate A, and the point "tip" at the end of the rod.

    Examples
    --------
    >>> m = kic.linkages.scott_russell(crank=1.0)
    >>> float(abs(m.at({"A": [0.3, 0.9, 1.4]}).value("tip.x")).max().round(12))
    0.0
    """
    (c,), theta = lengths(crank=crank), number("angle", angle)
    parts = Parts(name, masses, A=theta)
    x, y = np.array([2 * c * cos(theta), 0.0, 0.0]), np.array([0.0, 2 * c * sin(theta), 0.0])
    places = {"A": np.zeros(3), "B": polar(c, theta), "C": x, "tip": y}
    bodies = {GROUND: "A", "crank": "AB", "rod": ("C", "B", "tip"), "slider": "C"}
    parts.pinned(places, bodies)
    parts.slide("D", (GROUND, "slider"), x, x[0])
    return parts.mechanism(["A"], rest)


def peaucellier(
    *,
    long: float,
    short: float,
    crank: float,
    angle: float = pi / 3,
    masses: Mapping[str, float] | None = None,
    name: str = "peaucellier",
    **rest: Any,
) -> Mechanism:
    """Make the cell of Peaucellier and Lipkin: the point "tip" moves exactly along a straight line.

    Bars OA and OB are long; AP, BP, AQ and BQ are the sides of a rhombus. The crank CP about C passes through
    O, so that "tip" at Q moves along x = (long² − short²) / (2 crank). Joints at points of several bars are
    numbered: O1, O2, A1 …

    Parameters
    ----------
    long, short : float
        Lengths of the bars from O, and of the sides of the rhombus.
    crank : float
        Length of the crank, and distance of C from O at the origin, along x.
    angle : float
        Angle C (rad) of the reference configuration.
    masses : dict of str to float, optional
        Masses of the bars "CP", "OA" ….
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With the coordinate C, the angle of the crank from the x axis.

    Raises
    ------
    InputError
        If the links cannot form a closed loop.

    Examples
    --------
    >>> m = kic.linkages.peaucellier(long=5.0, short=2.0, crank=2.0)
    >>> m.at({"C": [0.5, 1.0, 1.4]}).value("tip.x").round(9)
    array([5.25, 5.25, 5.25])
    """
    (a, b, c), theta = lengths(long=long, short=short, crank=crank), number("angle", angle)
    if a.real == b.real:
        raise InputError("`long` and `short` must differ, or the tip stays at O.", key="long", got=a)
    O, C = np.zeros(3), np.array([c, 0.0, 0.0])
    P = C + polar(c, theta)
    A, B = (apex(O, P, a, b, side) for side in (1.0, -1.0))
    if A is None or B is None:
        gap = norm(P).real
        message = f"`angle` must place P between {abs(a - b):g} and {abs(a + b):g} from O, got {gap:.4g}."
        raise InputError(message, key="angle", distance=gap)
    parts = Parts(name, masses, C=theta)
    places = {"O": O, "C": C, "A": A, "B": B, "P": P, "Q": A + B - P}
    bars = ("CP", "OA", "OB", "AP", "BP", "AQ", "BQ")
    parts.pinned(places, {GROUND: "OC"} | {bar: bar for bar in bars})
    parts.points.append(Point("tip", "AQ", tuple(places["Q"])))
    return parts.mechanism(["C"], rest)


def scissor_lift(
    *,
    arm: float,
    stages: int = 1,
    angle: float = pi / 6,
    masses: Mapping[str, float] | None = None,
    name: str = "scissor-lift",
    **rest: Any,
) -> Mechanism:
    """Make a scissor lift: the platform's height is stages · arm · sin(angle).

    Arms "up1", "down1", "up2" … cross at their midpoints C1, C2 …; "up1" is hinged to the ground at A, whose
    value is the angle of this arm from the x axis. The foot of "down1" and the upper end of the last "up"
    roll along x, at the prismatic joints S and T.

    Parameters
    ----------
    arm : float
        Length of the arms.
    stages : int
        Number of crossed pairs of arms.
    angle : float
        Angle A (rad) of the reference configuration.
    masses : dict of str to float, optional
        Masses of "up1", "down1" …, "platform", "foot" and "roller".
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With the coordinate A, and the point "top" of the platform above the middle of the arms.

    Examples
    --------
    >>> m = kic.linkages.scissor_lift(arm=1.2, stages=3)
    >>> m.at({"A": 0.5}).value("top.y").round(6)
    np.float64(1.725932)
    """
    (l,), n = lengths(arm=arm), integer("stages", stages, 1)
    theta = number("angle", angle)
    if not 0 < theta.real < pi / 2:
        raise InputError(f"`angle` must be between 0 and π/2, got {theta.real:g}.", key="angle", got=theta)
    w, h = l * cos(theta), l * sin(theta)
    left = {f"L{k}" if k else "A": np.array([0.0, k * h, 0.0]) for k in range(n + 1)}
    right = {f"R{k}": np.array([w, k * h, 0.0]) for k in range(n + 1)}
    centers = {f"C{k}": np.array([w / 2, (k - 0.5) * h, 0.0]) for k in range(1, n + 1)}
    bodies: dict[str, Any] = {GROUND: ["A"], "foot": ["R0"]}
    for k in range(1, n + 1):
        bodies[f"up{k}"] = [f"L{k - 1}" if k > 1 else "A", f"C{k}", f"R{k}"]
        bodies[f"down{k}"] = [f"R{k - 1}", f"C{k}", f"L{k}"]
    bodies |= {"platform": [f"L{n}"], "roller": [f"R{n}"]}
    parts = Parts(name, masses, A=theta)
    parts.bar("platform", left[f"L{n}"], right[f"R{n}"])
    parts.pinned(left | right | centers, bodies)
    parts.slide("S", (GROUND, "foot"), right["R0"], w)
    parts.slide("T", ("platform", "roller"), right[f"R{n}"], w)
    parts.points.append(Point("top", "platform", (w / 2, n * h, 0.0)))
    return parts.mechanism(["A"], rest)


def parallel_gripper(
    *,
    arm: float,
    palm: float,
    spacing: float,
    finger: float = 0.0,
    angle: float = 0.3,
    masses: Mapping[str, float] | None = None,
    name: str = "parallel-gripper",
    **rest: Any,
) -> Mechanism:
    """Make a gripper of two parallelograms, coupled by equal gears: the fingers stay parallel to the y axis.

    Joints A1 (ground, arm1), B1 (ground, link1), C1 (arm1, finger1) and D1 (link1, finger1) on the right; A2
    … on the left. The value of A1 is the angle of the right arm from the x axis. The points "pad1" and "pad2"
    are palm + 2 arm sin(angle) apart.

    Parameters
    ----------
    arm : float
        Length of the driven arms and of the parallel links.
    palm : float
        Distance between A1 and A2, which lie on the x axis on both sides of the origin.
    spacing : float
        Distance between links and arms.
    finger : float
        Distance of the pads from C1 and C2, along y.
    angle : float
        Angle of the arms (rad) in the reference configuration, from the y axis outwards.
    masses : dict of str to float, optional
        Masses of "arm1", "link1", "finger1" ….
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With coordinate A1.

    Examples
    --------
    >>> m = kic.linkages.parallel_gripper(arm=0.06, palm=0.04, spacing=0.02, finger=0.05)
    >>> c = m.at({"A1": np.pi / 2})
    >>> (c.value("pad1") - c.value("pad2")).round(9) + 0.0
    array([0.04, 0.  , 0.  ])
    """
    l, p, s = lengths(arm=arm, palm=palm, spacing=spacing)
    reach, theta = number("finger", finger), number("angle", angle)
    parts = Parts(name, masses, A1=pi / 2 - theta, A2=pi / 2 + theta)
    places: dict[str, np.ndarray] = {}
    bodies: dict[str, Any] = {GROUND: []}
    for k, side in ((1, 1.0), (2, -1.0)):
        out = l * np.array([side * sin(theta), cos(theta), 0.0])
        A, B = np.array([side * p / 2, 0.0, 0.0]), np.array([side * (p / 2 + s), 0.0, 0.0])
        up = np.array([0.0, reach, 0.0])
        places |= {f"A{k}": A, f"B{k}": B, f"C{k}": A + out, f"D{k}": B + out, f"pad{k}": A + out + up}
        bodies[GROUND] += [f"A{k}", f"B{k}"]
        bodies |= {
            f"arm{k}": [f"A{k}", f"C{k}"], f"link{k}": [f"B{k}", f"D{k}"],
            f"finger{k}": [f"D{k}", f"C{k}", f"pad{k}"],
        }  # fmt: skip
    parts.pinned(places, bodies)
    gears = Coupling("gears", ("A1", "A2"), ratios=(1.0, 1.0))
    return parts.mechanism(["A1"], {**rest, "couplings": [gears, *rest.get("couplings", ())]})
