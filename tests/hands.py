"""Random hands for the tests of contacts and grasps."""

from __future__ import annotations

import numpy as np
from sampling import random_body

import kic

BOUNDS = {
    "point": {},
    "friction": {"friction": 0.6},
    "soft": {"friction": 0.6, "torsion": 0.02},
    "pinned": {},
}


def hand(seed: int, kinds: tuple[str, ...], links: int | tuple[int, ...] = 3, turned: bool = False, **given):
    """Return a free object, and a finger of revolute joints for each contact, with a point at its tip.

    `turned` exchanges the two bodies of each contact.
    """
    rng = np.random.default_rng(seed)
    count = [links] * len(kinds) if isinstance(links, int) else list(links)
    centre = np.array([0.1, -0.2, 0.9])
    box = random_body(rng, "box")
    bodies = [kic.Body("box", mass=box.mass, com=box.com, inertia=box.inertia, at=tuple(centre))]
    joints = [kic.Joint("float", "free", ("ground", "box"), at=tuple(rng.normal(size=3)))]
    contacts, points = [], []
    for k, kind in enumerate(kinds):
        before = "ground"
        for n in range(count[k]):
            name = f"f{k}{n}"
            pair = (before, name) if rng.random() < 0.5 else (name, before)
            axis, at = rng.normal(size=3), rng.normal(size=3)
            joints.append(kic.Joint(f"j{k}{n}", "revolute", pair, tuple(at), tuple(axis)))
            bodies.append(random_body(rng, name))
            before = name
        normal = rng.normal(size=3)
        at = tuple(centre - 0.3 * normal / np.linalg.norm(normal) + 0.05 * rng.normal(size=3))
        pair = ("box", before) if turned else (before, "box")
        contacts.append(kic.Contact(f"c{k}", kind, pair, at, normal=tuple(normal), **BOUNDS[kind]))
        points += [kic.Point(f"tip{k}", before, at), kic.Point(f"spot{k}", "box", at)]
    return kic.Mechanism(
        "hand", bodies, joints, points=points, contacts=contacts, gravity=(0.3, -0.2, -9.81), **given
    )
