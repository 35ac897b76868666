"""Parallel robots from their usual dimensions: 3-RRR, 3-RPS, Tricept and cable robots."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any

import numpy as np

from kic.description.parts import Distance, Joint, Point
from kic.description.validation import GROUND
from kic.errors import InputError, invalid
from kic.io.linkage_parts import Parts, apex, lengths, polar, real_or_stepped
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arrays import numbers


def three_rrr(
    *,
    base_radius: float,
    platform_radius: float,
    proximal: float,
    distal: float,
    masses: Mapping[str, float] | None = None,
    name: str = "3-rrr",
    **rest: Any,
) -> Mechanism:
    """Make a planar 3-RRR robot: three driven arms move a platform in the plane.

    Hinges A1, A2, A3 of the arms are at 90°, 210° and 330° on the base, C1, C2, C3 of the rods at the same
    angles on the platform. Bk is the elbow. The value of Ak is the arm's angle from the x axis. In the
    reference configuration the platform is centred, and every elbow is to the right of the line from Ak to
    Ck.

    Parameters
    ----------
    base_radius, platform_radius : float
        Radii of the circles of joints.
    proximal, distal : float
        Lengths of the arms and of the rods.
    masses : dict of str to float, optional
        Masses of the bodies "platform", a uniform disc, "arm1" … and "rod1" ….
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With coordinates A1, A2, A3, and the point "tip" at the centre of the platform.

    Raises
    ------
    InputError
        If the links cannot form a closed loop.

    Examples
    --------
    >>> m = kic.linkages.three_rrr(base_radius=0.5, platform_radius=0.1, proximal=0.3, distal=0.3)
    >>> m.at({"tip.x": 0.05, "tip.y": 0.0, "platform.angle": 0.1}).value("A1").round(6)
    np.float64(-2.306688)
    """
    R, r, a, b = lengths(
        base_radius=base_radius, platform_radius=platform_radius, proximal=proximal, distal=distal
    )
    parts = Parts(name, masses)
    parts.disc("platform", r, 0.0)
    places: dict[str, np.ndarray] = {}
    bodies: dict[str, Any] = {GROUND: [], "platform": []}
    for k in (1, 2, 3):
        out = polar(1.0, pi / 2 + 2 * pi / 3 * (k - 1))
        elbow = apex(R * out, r * out, a, b, -1.0)
        if elbow is None:
            message = f"`distal` must span {abs(R - r):g} with `proximal`, got {b.real:g} and {a.real:g}."
            raise InputError(message, key="distal", got=b)
        places |= {f"A{k}": R * out, f"B{k}": elbow, f"C{k}": r * out}
        bodies |= {f"arm{k}": [f"A{k}", f"B{k}"], f"rod{k}": [f"B{k}", f"C{k}"]}
        bodies[GROUND].append(f"A{k}")
        bodies["platform"].append(f"C{k}")
    parts.pinned(places, bodies)
    parts.points.append(Point("tip", "platform", (0.0, 0.0, 0.0)))
    return parts.mechanism(["A1", "A2", "A3"], rest)


def three_rps(
    *,
    base_radius: float,
    platform_radius: float,
    height: float,
    masses: Mapping[str, float] | None = None,
    name: str = "3-rps",
    **rest: Any,
) -> Mechanism:
    """Make a 3-RPS robot, which moves its platform up and down and tilts it.

    Leg k has a hinge Ak on the base, whose axis is tangential, a prismatic joint Lk whose value is its
    length, and a spherical joint Sk on the platform, at 0°, 120° and 240°.

    Parameters
    ----------
    base_radius, platform_radius : float
        Radii of the circles of joints.
    height : float
        Height of the platform in the level reference configuration.
    masses : dict of str to float, optional
        Masses of the bodies "platform", a uniform disc, and "cylinder1" …, "piston1" …, bars of half a leg.
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With coordinates L1, L2, L3, and the point "tip" at the centre of the platform.

    References
    ----------
    K. H. Hunt, Structural kinematics of in-parallel-actuated robot-arms, J. Mech. Trans. Autom. Des. 105
    (1983).

    Examples
    --------
    >>> m = kic.linkages.three_rps(base_radius=0.5, platform_radius=0.3, height=0.8)
    >>> m.dof, m.at().value("L1").round(6)
    (3, np.float64(0.824621))
    """
    R, r, h = lengths(base_radius=base_radius, platform_radius=platform_radius, height=height)
    parts = Parts(name, masses)
    for k in (1, 2, 3):
        out = polar(1.0, 2 * pi / 3 * (k - 1))
        b, t = R * out, r * out + [0.0, 0.0, h]
        side = (-out[1], out[0], 0.0)
        parts.joints.append(Joint(f"A{k}", "revolute", (GROUND, f"cylinder{k}"), tuple(b), side))
        parts.strut(k, b, t)
    return _with_platform(parts, r, h, rest)


def tricept(
    *,
    base_radius: float,
    platform_radius: float,
    height: float,
    masses: Mapping[str, float] | None = None,
    name: str = "tricept",
    **rest: Any,
) -> Mechanism:
    """Make a Tricept: three driven legs and a passive one in the middle, which guides the platform.

    The passive leg has a universal joint U0 at the centre of the base (axes x, y) and a prismatic joint L0
    along which the platform slides without rotation. Leg k has joints Uk (universal), Lk (prismatic, its
    length) and Sk (spherical), at 0°, 120° and 240°.

    Parameters
    ----------
    base_radius, platform_radius, height : float
        As in `three_rps`.
    masses : dict of str to float, optional
        Masses of the bodies "platform", a uniform disc, "guide", and "cylinder1" …, "piston1" …, bars of half
        a leg.
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With coordinates L1, L2, L3, and the point "tip" at the centre of the platform.

    References
    ----------
    K.-E. Neumann, Robot, US patent 4,732,525, 1988.

    Examples
    --------
    >>> m = kic.linkages.tricept(base_radius=0.5, platform_radius=0.2, height=1.0)
    >>> m.at({"tip": [0.2, 0.1, 0.9]}).value("L0").round(6)
    np.float64(0.927362)
    """
    R, r, h = lengths(base_radius=base_radius, platform_radius=platform_radius, height=height)
    parts = Parts(name, masses)
    up = np.array([0.0, 0.0, h])
    parts.bar("guide", np.zeros(3), up / 2)
    x, y, z = map(tuple, np.eye(3))
    parts.joints += [
        Joint("U0", "universal", (GROUND, "guide"), (0.0, 0.0, 0.0), x, axis2=y),
        Joint("L0", "prismatic", ("guide", "platform"), axis=z, value=h),
    ]
    for k in (1, 2, 3):
        out = polar(1.0, 2 * pi / 3 * (k - 1))
        parts.ups_leg(k, R * out, r * out + up)
    return _with_platform(parts, r, h, rest)


def _with_platform(parts: Parts, radius: float, height: float, rest: dict[str, Any]) -> Mechanism:
    """Add the platform with the point "tip" at its centre to the legs; return the mechanism."""
    parts.disc("platform", radius, height)
    parts.points.append(Point("tip", "platform", (0.0, 0.0, height)))
    return parts.mechanism(["L1", "L2", "L3"], rest)


def cable_robot(
    *,
    anchors: Any,
    attachments: Any,
    center: Any = None,
    masses: Mapping[str, float] | None = None,
    name: str = "cable-robot",
    **rest: Any,
) -> Mechanism:
    """Make a cable robot: massless cables, each a distance, between fixed anchors and a free platform.

    Cable k is the distance Lk between the points Ak of the base and Bk of the platform; cables are the
    actuators. The effort of a pulling distance is negative: tension is minus the effort.

    Parameters
    ----------
    anchors : (n, 3) or (n, 2) array_like
        Fixed ends of the cables. With two numbers each, the robot is planar.
    attachments : (n, 3) or (n, 2) array_like
        Ends at the platform, relative to its centre.
    center : (3,) or (2,) array_like, optional
        Centre of the platform in the reference configuration; by default the mean of the anchors.
    masses : dict of str to float, optional
        Mass of "platform", a uniform box around the attachments.
    name, **rest
        Name and other arguments of `Mechanism`, such as gravity and units.

    Returns
    -------
    Mechanism
        With the pose of the platform, the joint "free", as coordinates, and the point "tip" at its centre.

    Raises
    ------
    InputError
        If the arrays have different shapes.

    Examples
    --------
    A mass that hangs on four cables, which can only pull:

    >>> corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    >>> crossed = 0.1 * corners * [1, -1]
    >>> m = kic.linkages.cable_robot(
    ...     anchors=2.0 * corners, attachments=crossed, masses={"platform": 5.0}, gravity=(0, -9.81, 0)
    ... )
    >>> c = m.at({"tip.x": 0.5, "tip.y": -0.3, "platform.angle": 0.0})
    >>> pull = [[-500.0], [-10.0]]  # lower and upper limits of all
    >>> tension = -c.distribute(c.inverse_dynamics(), effort_limits=pull).effort
    >>> bool(tension.min() >= 10.0 - 1e-9), len(tension)
    (True, 4)
    """
    ends = real_or_stepped("anchors", anchors, *numbers("anchors", anchors).shape[-2:])
    size = ends.shape[-1] if ends.ndim == 2 else 0
    if size not in (2, 3):
        raise invalid("anchors", "must have shape (n, 3) or (n, 2)", ends.shape)
    own = real_or_stepped("attachments", attachments, *ends.shape)
    middle = ends.mean(axis=0) if center is None else real_or_stepped("center", center, size)
    ends, own, middle = (np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 3 - size)]) for x in (ends, own, middle))
    parts = Parts(name, masses)
    parts.box("platform", own, middle)
    names = [f"L{k + 1}" for k in range(len(ends))]
    for k, (a, b) in enumerate(zip(ends, middle + own, strict=True), 1):
        parts.points += [Point(f"A{k}", GROUND, tuple(a)), Point(f"B{k}", "platform", tuple(b))]
    parts.points.append(Point("tip", "platform", tuple(middle)))
    axes: dict[str, Any] = {} if size == 3 else {"axis": (1.0, 0.0, 0.0), "axis2": (0.0, 1.0, 0.0)}
    kind = "free" if size == 3 else "planar"
    parts.joints.append(Joint("free", kind, (GROUND, "platform"), tuple(middle), **axes))  # type: ignore[arg-type]
    cables = [Distance(name, (f"A{k}", f"B{k}")) for k, name in enumerate(names, 1)]
    given = {"actuators": names, **rest, "distances": [*cables, *rest.get("distances", ())]}
    return parts.mechanism(["free"], given)
