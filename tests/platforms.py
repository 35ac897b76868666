"""A platform on six legs that are distances, and a boom on a cylinder."""

from __future__ import annotations

from dataclasses import replace

import kic

LEGS = tuple(f"L{k}" for k in range(1, 7))
STROKE = (0.8, 1.2)


def massless_gough_stewart() -> kic.Mechanism:
    """Return the shipped platform, whose legs are bodies, without their mass."""
    m = kic.load("gough-stewart")
    bodies = [b if b.name == "platform" else replace(b, mass=0.0, inertia=(0, 0, 0)) for b in m.bodies]
    return replace(m, bodies=bodies)


def platform_on_distances() -> kic.Mechanism:
    """Return the same platform as a free body on six distances, its legs."""
    m = kic.load("gough-stewart")
    body = next(b for b in m.bodies if b.name == "platform")
    at = {j.name: j.at for j in m.joints}
    points = [kic.Point(f"B{k}", "ground", at[f"U{k}"]) for k in range(1, 7)]
    points += [kic.Point(f"P{k}", "platform", at[f"S{k}"]) for k in range(1, 7)]
    return kic.Mechanism(
        "six legs",
        [body],
        [kic.Joint("float", "free", ("ground", "platform"), at=body.com)],
        points=points,
        distances=[kic.Distance(f"L{k}", (f"B{k}", f"P{k}"), limits=STROKE) for k in range(1, 7)],
        gravity=m.gravity,
        coordinates=LEGS,
    )


def boom(**more) -> kic.Mechanism:
    """Return an arm of 50 kg, 2 m long, which a cylinder lifts."""
    return kic.Mechanism(
        "boom",
        [kic.Body("arm", mass=50.0, com=(1, 0, 0), inertia=(1, 20, 20))],
        [kic.Joint("A", "revolute", ("ground", "arm"), at=(0, 0, 0), axis=(0, 0, 1), limits=(-0.2, 0.6))],
        points=[kic.Point("a", "ground", (0.2, -0.8, 0)), kic.Point("b", "arm", (0.8, 0, 0)),
            kic.Point("tip", "arm", (2, 0, 0))],
        distances=[kic.Distance("ram", ("a", "b"), limits=(0.7, 1.4)), kic.Distance("gauge", ("a", "tip"))],
        gravity=(0, -9.81, 0),
        **{"coordinates": ["ram"]} | more,
    )  # fmt: skip
