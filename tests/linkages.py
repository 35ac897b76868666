"""Linkages in special positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import kic


def hinged(
    places: Sequence[Any],
    axes: Sequence[Any] | None = None,
    bodies: Iterable[str | kic.Body] | None = None,
    coordinates: Sequence[str] | None = ("A",),
    values: Sequence[float] | None = None,
    name: str = "linkage",
    closed: bool = True,
    **more: Any,
) -> kic.Mechanism:
    """Return bars on hinges A, B, …, by default along z; the last hinge of a closed chain is on ground."""
    drawn = [
        b if isinstance(b, kic.Body) else kic.Body(b)
        for b in bodies or [f"bar{k}" for k in range(1, len(places) + (not closed))]
    ]
    pairs = pairwise(["ground", *(b.name for b in drawn), *["ground"] * closed])
    axes, values = axes if axes is not None else [(0, 0, 1)] * len(places), values or [0.0] * len(places)
    joints = [
        kic.Joint("ABCDEFG"[k], "revolute", pair, at=tuple(at), axis=tuple(axis), value=value)
        for k, (pair, at, axis, value) in enumerate(zip(pairs, places, axes, values, strict=True))
    ]
    return kic.Mechanism(name, drawn, joints, coordinates=coordinates, **more)


def serial(places: Sequence[Any], bodies: Iterable[str | kic.Body], **more: Any) -> kic.Mechanism:
    """Return an arm on hinges A, B, …, by default along z."""
    return hinged(places, bodies=bodies, closed=False, coordinates=None, **more)


def resized(m: kic.Mechanism, length: float, mass: float = 1.0) -> kic.Mechanism:
    """Return the same mechanism in other units of length and mass."""

    def grown(v: Any) -> Any:
        return None if v is None else tuple(length * np.array(v))

    return replace(
        m,
        bodies=[
            replace(
                b,
                mass=b.mass if b.mass is None else b.mass * mass,
                com=grown(b.com),
                at=grown(b.at),
                inertia=b.inertia if b.inertia is None else mass * length**2 * np.array(b.inertia),
            )
            for b in m.bodies
        ],
        joints=[
            replace(j, at=grown(j.at), value=grown(j.value) if j.type == "prismatic" else j.value)
            for j in m.joints
        ],
        points=[replace(p, at=grown(p.at), mass=p.mass * mass) for p in m.points],
        gravity=grown(m.gravity),
    )


def shifted(m: kic.Mechanism, by: Any) -> kic.Mechanism:
    """Return the same mechanism elsewhere."""

    def moved(part: Any) -> Any:
        places = {k: getattr(part, k) for k in {"at", "com"} & set(vars(part)) if getattr(part, k)}
        return replace(part, **{k: tuple(np.array(x) + by) for k, x in places.items()})

    return replace(
        m, **{kind: tuple(map(moved, getattr(m, kind))) for kind in ("bodies", "joints", "points")}
    )


def rigid() -> kic.Mechanism:
    return hinged([(0, 0, 0), (1, 1, 0), (2, 0, 0)], bodies="ab", coordinates=None)


def parallelogram(angle: float = 1.0) -> kic.Mechanism:
    """Four bars of lengths 2, 1, 2, 1, drawn as a parallelogram: A = D = −B = C."""
    p = np.array([np.cos(angle), np.sin(angle), 0])
    q = p + np.array([2, 0, 0])
    return kic.Mechanism(
        "parallelogram",
        [kic.Body(n) for n in ("crank", "coupler", "rocker")],
        [
            kic.Joint("A", "revolute", ("ground", "crank"), (0, 0, 0), (0, 0, 1), value=angle),
            kic.Joint("B", "revolute", ("crank", "coupler"), tuple(p), (0, 0, 1), value=-angle),
            kic.Joint("C", "revolute", ("coupler", "rocker"), tuple(q), (0, 0, 1), value=angle),
            kic.Joint("D", "revolute", ("ground", "rocker"), (2, 0, 0), (0, 0, 1), value=angle),
        ],
        coordinates=["A"],
    )


def bennett(
    alpha: float = 0.6, beta: float = 1.1, theta: float = 0.9
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the points and axes of the four revolute joints of a Bennett linkage.

    Twists alpha and beta, lengths 1 and sin β / sin α; opposite angles add up to a full turn, and Bennett's
    closure equation gives the second angle from the first, theta.
    """
    a, b = 1.0, np.sin(beta) / np.sin(alpha)
    other = 2 * np.arctan(np.sin((beta + alpha) / 2) / (np.sin((beta - alpha) / 2) * np.tan(theta / 2)))
    T, points, axes = np.eye(4), [], []
    for length, twist, angle in ((a, alpha, theta), (b, beta, other), (a, alpha, -theta), (b, beta, -other)):
        points.append(T[:3, 3])
        axes.append(T[:3, 2])
        c, s, C, S = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
        T = T @ [[c, -s * C, s * S, length * c], [s, c * C, -c * S, length * s], [0, S, C, 0], [0, 0, 0, 1]]
    assert np.abs(T - np.eye(4)).max() < 1e-12
    return points, axes


def four_bar_pivots(
    crank: float, coupler: float, rocker: float, ground: float, angle: float, side: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the pivots (3,) of a four-bar linkage: ground, crank end, coupler end, ground.

    `side` is +1 where the coupler end lies to the left of the line from the crank end to the rocker's pivot.
    """
    A, D = np.zeros(3), np.array([ground, 0.0, 0.0])
    B = crank * np.array([np.cos(angle), np.sin(angle), 0.0])
    span = np.linalg.norm(D - B)
    u = (D - B) / span
    foot = (coupler**2 - rocker**2 + span**2) / (2 * span)
    C = B + foot * u + side * np.sqrt(coupler**2 - foot**2) * np.array([-u[1], u[0], 0.0])
    return A, B, C, D


def bars_between(pivots: Sequence[Any], value: float = 0.0) -> kic.Mechanism:
    """Return crank, coupler and rocker between four pivots; D is the angle of the rocker from ground."""
    ties = ("ground", "crank"), ("crank", "coupler"), ("coupler", "rocker"), ("ground", "rocker")
    joints = [
        kic.Joint(name, "revolute", tie, tuple(at), (0, 0, 1), value=value * (name == "A"))
        for name, tie, at in zip("ABCD", ties, pivots, strict=True)
    ]
    return kic.Mechanism(
        "bars", [kic.Body(b) for b in ("crank", "coupler", "rocker")], joints, coordinates=["A"]
    )


def xy_table(**more) -> kic.Mechanism:
    """Return two perpendicular slides of 1 and 2 kg that carry a pen."""
    return kic.Mechanism(
        "xy table",
        [kic.Body(n, mass=k, com=(0, 0, 0), inertia=(0, 0, 0)) for n, k in (("x", 1.0), ("y", 2.0))],
        [
            kic.Joint("X", "prismatic", ("ground", "x"), at=(0, 0, 0), axis=(1, 0, 0)),
            kic.Joint("Y", "prismatic", ("x", "y"), at=(0, 0, 0), axis=(0, 1, 0)),
        ],
        points=[kic.Point("pen", "y", at=(0, 0, 0))],
        **more,
    )


def needle() -> kic.Mechanism:
    """Return a rod with a massless tip, whose turning B moves no mass."""
    rod, tip = (
        kic.Body("rod", mass=1, com=(1, 0, 0), inertia=(0, 1, 1)),
        kic.Body("tip", mass=0, inertia=(0, 0, 0)),
    )
    return serial([(0, 0, 0), (1, 0, 0)], [rod, tip], axes=[(0, 0, 1), (1, 0, 0)])


def closed_gap() -> kic.Mechanism:
    """Return an arm with a distance that is zero in the reference configuration."""
    return serial(
        [(0, 0, 0)],
        "a",
        points=[kic.Point("p", "a", (1, 0, 0)), kic.Point("q", "ground", (1, 0, 0))],
        distances=[kic.Distance("gap", ("p", "q"))],
    )
