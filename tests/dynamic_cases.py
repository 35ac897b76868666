"""Mechanisms with known motions, and tolerances near round-off."""

from __future__ import annotations

import kic

TIGHT = kic.Integrator(rtol=1e-12, atol=1e-13)


def pendulum(length: float = 1.0, g: float = 9.81) -> kic.Mechanism:
    return kic.Mechanism(
        "pendulum",
        bodies=[kic.Body("bob", mass=2.0, com=(0, -length, 0), inertia=(0, 0, 0))],
        joints=[kic.Joint("A", "revolute", ("ground", "bob"), at=(0, 0, 0), axis=(0, 0, 1))],
        points=[kic.Point("tip", "bob", at=(0, -length, 0))],
        gravity=(0, -g, 0),
    )


def top(inertia: tuple[float, float, float]) -> kic.Mechanism:
    return kic.Mechanism(
        "top",
        bodies=[kic.Body("body", mass=1.5, com=(0, 0, 0), inertia=inertia, at=(0, 0, 0))],
        joints=[kic.Joint("hold", "free", ("ground", "body"), at=(0, 0, 0))],
    )
