"""Random instances of the closed forms of the sources, and rules that only tests need."""

from __future__ import annotations

import numpy as np

import kic
from kic.classics import Leg, PointMassArm, ThreeLink, ThreeLinkPuma, TwoLink, WristPartitioned

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


def solution_count(arm: TwoLink | ThreeLink, tip) -> np.ndarray:
    """Return the number of solutions of inverse kinematics (Horn 1975, p. 8); 0 also for infinitely many."""
    first, second = arm.inverse_kinematics(tip, failures="mask")
    return np.where(np.isnan(first).any(axis=-1), 0, 2 - (first == second).all(axis=-1))


def dexterous_radii(l1, l2, l3) -> np.ndarray:
    """Return the radii (..., 2, 2) of a disc and a ring where link 3 can point anywhere (p. 22, corrected).

    They are NaN where one does not exist. For l1 = l2 (to rounding) the two are one disc.
    """
    difference, total, shorter = abs(l1 - l2), l1 + l2, np.minimum(l1, l2)
    atol = 4 * np.finfo(float).eps * total
    equal = difference <= atol
    outer = np.where(equal, total - l3, np.minimum(l3 - difference, total - l3))
    disc, inner = np.stack([0 * outer, np.maximum(outer, 0.0)], axis=-1), l3 + difference
    ring = np.stack([inner, inner + 2 * np.maximum(shorter - l3, 0.0)], axis=-1)
    exists = [(difference <= l3 + atol) & (l3 <= total + atol), (l3 <= shorter + atol) & ~equal]
    return np.where(np.stack(exists, axis=-1)[..., None], np.stack([disc, ring], axis=-2), np.nan)


def dexterous_workspace(arm: ThreeLink) -> list[list[float]]:
    """Return the disc and the ring that exist, as pairs of radii."""
    radii = dexterous_radii(*map(np.float64, arm.lengths))
    return radii[~np.isnan(radii[:, 0])].tolist()


def reachable_radii(*lengths: float) -> tuple[float, float]:
    """Return the radii of the annulus that the tip of a planar chain reaches (p. 8 for two links)."""
    *rest, longest = sorted(lengths)
    return max(0.0, longest - sum(rest)), longest + sum(rest)


def generic_revolute_arm(n: int) -> kic.Mechanism:
    """Return an arm of general geometry with joints j1…, bodies l1… and the point "hand"."""
    k = range(1, n + 1)
    return kic.from_dh(
        f"{n} revolute joints",
        [kic.DHRow(f"j{i}", f"l{i}", a=0.3 + 0.1 * i, alpha=0.4 * i, d=0.2, theta=0.5 * i) for i in k],
        convention="standard",
        bodies=[kic.Body(f"l{i}", mass=1.0, com=(-0.1, 0.02, 0.03), inertia=(0.1, 0.12, 0.15)) for i in k],
        points=[kic.Point("hand", f"l{n}", at=(0.0, 0.0, 0.0))],
        gravity=(0.0, 0.0, -9.8062),
    )
