"""Mechanisms whose assembly modes are counted, and calls that serve several tests."""

from __future__ import annotations

import numpy as np

import kic
from kic.analysis.positions.monodromy import GenericSolutions

# hinges between links of the six-bars; the ternary links share a hinge (Watt), or not (Stephenson)
WATT = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 5), (5, 3)]
STEPHENSON = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (4, 5), (5, 2)]

# N. Rojas, F. Thomas, "Distance-based position analysis of the three seven-link Assur kinematic chains",
# Mechanism and Machine Theory 46, 2011: numbers of assembly modes of the three Baranov trusses
BARANOV = {
    14: [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 4), (2, 6), (3, 5), (3, 6)],
    16: [(0, 1), (0, 2), (0, 4), (1, 3), (1, 5), (2, 5), (2, 6), (3, 4), (3, 6)],
    18: [(0, 3), (0, 4), (0, 5), (0, 6), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6)],
}


def arm_of_six(a, d, alpha) -> kic.Mechanism:
    rows = [kic.DHRow(f"J{k}", f"link{k}", a=a[k], d=d[k], alpha=alpha[k], theta=0.0) for k in range(len(a))]
    hand = kic.Frame("hand", f"link{len(a) - 1}")
    return kic.from_dh("arm", rows, convention="standard", frames=[hand])


def platform(base, top) -> kic.Mechanism:
    """Return a body on six distances from points of ground to points of the body."""
    points = [kic.Point(f"A{k}", "ground", at=p) for k, p in enumerate(base)]
    points += [kic.Point(f"B{k}", "plate", at=p) for k, p in enumerate(top)]
    return kic.Mechanism(
        "platform",
        [kic.Body("plate", at=(0.0, 0.0, 1.0))],
        [kic.Joint("free", "free", ("ground", "plate"), at=(0.0, 0.0, 1.0))],
        points=points,
        distances=[kic.Distance(f"L{k}", (f"A{k}", f"B{k}")) for k in range(6)],
        coordinates=[f"L{k}" for k in range(6)],
    )


def six_distances(rng: np.random.Generator) -> kic.Mechanism:
    """Return a platform on random points."""
    return platform(rng.normal(size=(6, 3)), 0.6 * rng.normal(size=(6, 3)) + [0.0, 0.0, 1.0])


def planar(edges, at, coordinates="J0", bar: int | None = None) -> kic.Mechanism:
    """Return planar links with hinges at points (n, 2): link 0 is ground.

    The link `bar` is the distance "L" of its two hinges.
    """
    names = ["ground", *(f"b{k}" for k in range(1, 1 + max(map(max, edges))))]
    hinges = [(f"J{k}", names[a], names[b], (*at[k], 0.0)) for k, (a, b) in enumerate(edges)]
    joints = [
        kic.Joint(n, "revolute", (a, b), at=p, axis=(0, 0, 1))
        for n, a, b, p in hinges
        if f"b{bar}" not in (a, b)
    ]
    points = [kic.Point(n, a if b == f"b{bar}" else b, at=p) for n, a, b, p in hinges if f"b{bar}" in (a, b)]
    bodies = [kic.Body(n) for k, n in enumerate(names) if k not in (0, bar)]
    lengths = [] if bar is None else [kic.Distance("L", tuple(p.name for p in points))]
    return kic.Mechanism(
        "planar",
        bodies,
        joints,
        points=points,
        distances=lengths,
        coordinates=[coordinates] if isinstance(coordinates, str) else coordinates,
    )


def inputs_of(m: kic.Mechanism) -> np.ndarray:
    """Return the coordinates of the reference configuration."""
    return np.array([float(m.at().value(name)) for name in m.coordinates])


def modes_of(m: kic.Mechanism, values=None, **options) -> kic.results.AssemblyModes:
    return m.assembly_modes(inputs_of(m) if values is None else values, complete=True, **options)


def generic_of(m: kic.Mechanism) -> GenericSolutions:
    """Return the generic solutions of the only complete search of a mechanism."""
    (generic,) = (x for key, x in m._model._prepared.items() if key[0] == "generic solutions")
    return generic


def spatial_four_bar(rng: np.random.Generator) -> kic.Mechanism:
    """Return a crank and a rocker about random axes, with a distance as the coupler."""
    links = [kic.Body("crank"), kic.Body("rocker")]
    at, axes, ends = rng.normal(size=(3, 2, 3))
    hinges = [
        kic.Joint(name, "revolute", ("ground", body.name), at=at[k], axis=axes[k])
        for k, (name, body) in enumerate(zip("AD", links, strict=True))
    ]
    balls = [kic.Point("B", "crank", at=ends[0]), kic.Point("C", "rocker", at=ends[1])]
    coupler = [kic.Distance("coupler", ("B", "C"), fixed=True)]
    return kic.Mechanism("rssr", links, hinges, points=balls, distances=coupler, coordinates=["A"])


def translating_delta(rng: np.random.Generator) -> kic.Mechanism:
    """Return a Delta robot whose plate has three sliders, and each leg an arm and one rod.

    The sliders take the place of the parallelograms.
    """
    joints, points, rods = [], [kic.Point("tip", "plate", at=(0, 0, -0.6))], []
    for k, axis in enumerate(np.eye(3)):
        ends = ("ground" if k == 0 else f"slide{k}", "plate" if k == 2 else f"slide{k + 1}")
        joints.append(kic.Joint(f"T{k}", "prismatic", ends, at=(0, 0, -0.6), axis=axis))
    for k in range(3):
        c, s = np.cos(2.0 * k), np.sin(2.0 * k)
        reach, height = rng.uniform(0.3, 0.5), rng.uniform(-0.2, 0.0)
        joints.append(
            kic.Joint(f"A{k}", "revolute", ("ground", f"arm{k}"), at=(0.2 * c, 0.2 * s, 0), axis=(-s, c, 0))
        )
        elbow, end = (reach * c, reach * s, height), (0.05 * c, 0.05 * s, -0.6)
        points += [kic.Point(f"B{k}", f"arm{k}", at=elbow), kic.Point(f"C{k}", "plate", at=end)]
        rods.append(kic.Distance(f"rod{k}", (f"B{k}", f"C{k}"), fixed=True))
    bodies = [kic.Body(n) for n in ("slide1", "slide2", "plate", "arm0", "arm1", "arm2")]
    return kic.Mechanism(
        "delta", bodies, joints, points=points, distances=rods, coordinates=["A0", "A1", "A2"]
    )
