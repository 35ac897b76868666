"""Hands and walking machines that hold a body, in configurations near the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hands import hand

import kic
from kic.mechanism.configuration import Configuration

# well-conditioned reference configurations
HANDS = {
    "friction": (11, ("friction",) * 3, 3),
    "pinned": (11, ("pinned",) * 3, 3),
    "soft": (20, ("soft",) * 3, 4),
    "mixed": (38, ("point", "soft", "pinned"), (1, 4, 3)),
    "turned": (11, ("friction",) * 3, 3),
}

HELD = {"three-finger-hand": "ball", "quadruped": "trunk"} | dict.fromkeys(HANDS, "box")

every_grasp = pytest.mark.parametrize("name", HELD)


def mechanism(name: str) -> kic.Mechanism:
    """Return a random hand or a shipped model."""
    return hand(*HANDS[name], turned=name == "turned") if name in HANDS else kic.load(name)


def configuration(name: str) -> tuple[kic.Mechanism, Configuration]:
    """Return a mechanism and a configuration whose object is slightly displaced from the reference."""
    m = mechanism(name)
    c = m.at()
    among = [joint.name for joint in m.joints if joint.type == "revolute"]
    best = list(m.mobility().independent_sets(of=among, count=1)[0].names)
    way = np.random.default_rng(7).uniform(-0.06, 0.06, len(best))
    return m, m.at({q: c.value(q) + x for q, x in zip(best, way, strict=True)}, near=c)


def moving(name: str, seed: int = 3):
    """Return a grasp, random rates and accelerations of its object, and its motion with random grip."""
    m, c = configuration(name)
    g = c.grasp(HELD[name])
    rng = np.random.default_rng(seed)
    qd, qdd = rng.normal(size=(2, len(g.coordinates)))
    grip = g.internal @ rng.normal(size=g.internal.shape[-1])
    least = g.motion(qd, qdd)
    return m, c, g, qd, qdd, g.motion(qd, qdd, forces=least.force + grip)
