"""Random instances of the closed forms of the sources."""

from __future__ import annotations

import numpy as np

from kic.classics.horn import ThreeLink, TwoLink
from kic.classics.lee_puma import ThreeLinkPuma
from kic.classics.leg import Leg
from kic.classics.point_mass_arm import PointMassArm
from kic.classics.wrist_partitioned import WristPartitioned

BATCHES = [(), (3,), (2, 1), (0,)]
MASSES = ("m1", "m2", "m3", "M2", "M3")


def random_leg(rng: np.random.Generator, **fixed: object) -> Leg:
    """Return a leg with random values of all parameters."""
    names = ("l2", "l3", *MASSES, "R", "H")
    values = dict(zip(names, rng.uniform(0.2, 3.0, size=len(names)), strict=True))
    values |= {"d2": rng.normal(), "d3": rng.normal(), "gravity": tuple(rng.normal(size=3) * 9)}
    return Leg(**(values | fixed))


def random_point_masses(rng: np.random.Generator) -> PointMassArm:
    """Return a planar arm of point masses."""
    return PointMassArm(*rng.uniform(0.3, 2.0, size=6), g=rng.normal() * 9)


def random_planar(rng: np.random.Generator, kind: type, **more) -> TwoLink | ThreeLink:
    """Return an arm with random lengths and masses; some have equal links."""
    lengths = 10 ** rng.uniform(-0.7, 0.7, size=kind.dof)
    if rng.random() < 0.3:
        lengths[1] = lengths[0]
    return kind(*lengths, *rng.uniform(0.2, 3, size=kind.dof), **{"g": 9.81, **more})


def random_puma(rng: np.random.Generator) -> ThreeLinkPuma:
    """Return the first three links of a PUMA, with moments that satisfy the triangle inequality."""
    squares = rng.uniform(0.1, 1.0, (3, 3))
    inertias = squares.sum(-1, keepdims=True) - squares
    return ThreeLinkPuma(
        rng.uniform(1, 9, 3), rng.normal(size=(3, 3)), inertias, *rng.normal(size=3), g=rng.normal()
    )


def random_wrist_partitioned(rng: np.random.Generator) -> WristPartitioned:
    """Return the first three links of a wrist-partitioned arm."""
    return WristPartitioned(*rng.uniform(0.5, 2.0, size=2), rng.normal())


def random_motion(rng: np.random.Generator, batch: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    """Return random joint angles, velocities and accelerations."""
    return tuple(rng.normal(size=(3, *batch, 3)) * 2)


def angle_distance(found, expected) -> np.ndarray:
    """Return the absolute differences of angles modulo full turns."""
    return np.abs((np.asarray(found) - expected + np.pi) % (2 * np.pi) - np.pi)
