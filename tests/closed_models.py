"""Closed mechanisms: shipped models away from their reference configuration, and a row of four-bars."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform

import kic
from kic.mechanism.configuration import Configuration


class Case(NamedTuple):
    """Moves from the reference, rows, coordinate sets, joints cut in another tree, quasi-velocities."""

    dof: int
    moves: tuple[tuple[float, ...], tuple[float, ...]]
    of: str
    wrt: tuple[str, ...]
    tree: str
    quasi: str = ""


# fmt: off
CASES = {
    "four-bar": Case(1, ((0.7,), (-2.0,)), "tip A B C D coupler rocker.angle", ("C", "tip.x"), "D"),
    "slider-crank": Case(1, ((0.9,), (-2.4,)), "rod crown shaft crankpin wristpin piston",
        ("piston", "rod.angle"), "piston"),
    "five-bar": Case(2, ((0.3, 0.2), (-0.2, 0.3)), "tip coupler A B C D E rocker.angle",
        ("tip.x tip.y", "B D"), "C D"),
    "three-legged-robot": Case(3, ((-0.15, 0.1, 0.1), (0.1, 0.07, -0.2)),
        "w platform link2 A1 A2 A3 B1 B2 B3 C1 C2 C3",
        ("w.x w.y platform.angle", "B1 C2 A3"), "C1 C2 C3", "w.x platform.wz w.y"),
    "gough-stewart": Case(6, ((0.1, 0.15, -0.05, 0.0, 0.08, -0.1), (-0.05, 0.05, 0.1, 0.1, -0.1, 0.03)),
        "eye platform piston2 L3 U1 U4 S1 S2",
        ("eye.x eye.y eye.z L1 U3.1 L5",), "S1 S2 S3 S4 S5 S6", "platform"),
    "stewart-6r": Case(6, ((0.08, -0.05, 0.06, 0.02, -0.09, 0.04), (-0.1, -0.05, 0.03, 0.08, 0.0, 0.05)),
        "tool plate fore3 A2 B1 E4 F1 F5", ("A1 B1 C1 D1 E1 F1",), "F1 F2 F3 F4 F5 F6", "plate"),
    "rssr": Case(2, ((2.1, 0.6), (-1.3, -0.8)), "flag coupler crank pin spin ball rocker",
        ("rocker spin", "crank flag.z"), "ball", "rocker coupler.wx"),
    "ladder": Case(1, ((0.4,), (-0.3,)), "tip coupler1 D0 D1 D2 D3 A2 B3 rocker2.angle",
        ("D3", "tip.y"), "D2 B1"),
    "watt-parallel-motion": Case(1, ((0.25,), (-0.2,)),
        "piston pump parallel_bar A B C D E1 E2 F radius_bar.angle", ("F", "piston.y"), "D"),
    "stephenson-six-bar": Case(1, ((0.6,), (-1.1,)), "tip pin coupler A B C D E F O link.angle",
        ("O", "tip.y"), "F"),
    "scotch-yoke": Case(1, ((0.4,), (-2.0,)), "face block slider shaft pin slot yoke crank.angle",
        ("yoke", "slot"), "yoke"),
    "peaucellier": Case(1, ((0.2,), (-0.9,)), "tracer inverse AQ C O1 O2 A1 B2 P1 P2 Q1 OP OQ BP.angle",
        ("tracer.y", "Q1"), "A1"),
    "jansen-leg": Case(1, ((1.0,), (-2.5,)), "foot shank A B1 P1 P2 X Y Z1 Z2 W rod_f.angle",
        ("foot.x", "P2"), "W"),
    "three-rrr": Case(3, ((0.1, -0.1, 0.15), (-0.12, 0.08, -0.1)),
        "tool platform outer2 A1 A2 A3 B1 B2 B3 C1 C2 C3",
        ("tool.x tool.y platform.angle", "B1 C2 A3"), "C1 C2 C3", "tool.x platform.wz tool.y"),
    "six-freedom-planar": Case(6, ((0.1, -0.1, 0.05, 0.1, 0.15, -0.1), (-0.05, 0.1, 0.1, -0.15, 0.1, 0.1)),
        "tool platform third2 A1 B2 C1 C2 C3 D1 D2 D3",
        ("platform.x platform.y platform.angle A1 A2 A3", "A1 B2 C1 C2 C3 D3"), "D1 D2 D3 C1 C2 C3"),
    "parallel-serial": Case(6, ((0.1, -0.1, 0.15, 0.3, -0.4, 0.6), (-0.1, 0.05, 0.1, -0.3, 0.3, -0.8)),
        "tip hand platform A1 A2 A3 B1 C1 C2 C3 shoulder roll",
        ("platform.x platform.y C2 shoulder elbow roll", "tip.x tip.y tip.z A1 C2 elbow"),
        "C1 C2 C3 roll elbow shoulder", "hand"),
}

# constraints other than joints
TIED = {
    "geared-five-bar": Case(1, ((0.4,), (-0.7,)), "tip rod1 A B C D E rod2.angle", ("C", "tip.y"), "D"),
    "five-rod-suspension": Case(1, ((0.05,), (-0.07,)), "contact carrier coil hub", ("coil", "contact.y"), "",
        "carrier.wx"),
}

SPATIAL = {
    "spatial-slider-crank": Case(2, ((1.1, -0.7), (-1.3, 1.5)),
        "P crank coupler slider theta1 theta2 theta3 theta4 theta5 theta6 theta7 slide",
        ("theta5 P.z", "theta1 theta3"), "theta5 slide", "theta1 coupler.wx"),
    "bricard": Case(1, ((-0.4,), (0.35,)), "P link34 theta1 theta2 theta3 theta4 theta5 theta6",
        ("theta1", "P.x"), "theta5", "link34.wz"),
    "bennett": Case(1, ((0.9,), (-1.3,)), "M bar2 A B C D", ("B", "M.x"), "D", "bar2.wx"),
    "sarrus": Case(1, ((-0.5,), (0.3,)), "corner plate upper2 A1 B1 C1 A2 B2 C2",
        ("plate.z", "upper2.y"), "C2", "lower1.wy"),
    "three-rps": Case(3, ((0.04, -0.03, 0.06), (-0.05, 0.02, 0.01)), "tool plate piston2 L1 R1 R2 R3 S1 S2",
        ("tool.x tool.y tool.z", "R1 R2 L3"), "S2 S3", "plate.z plate.wx plate.wy"),
    "delta": Case(3, ((0.5, -0.3, 0.2), (-0.4, 0.6, 0.7)), "gripper plate rod2a A1 U1a U3b S1a S2b",
        ("gripper.x gripper.y gripper.z", "A1 U2a.1 A3"), "S1b S2b S3b", "plate.x plate.y rod1a.wy"),
}

EVERY = {**CASES, **TIED, **SPATIAL}
# fmt: on

# fmt: on
every_configuration = pytest.mark.parametrize(
    ("name", "place"), [(name, k) for name in EVERY for k in (0, 1)]
)


@cache
def configuration(name: str, place: int) -> tuple[kic.Mechanism, Configuration]:
    """Return a model loaded by gravity only, and the configuration after one of its moves."""
    m = replace(kic.load(name), springs=(), forces=())
    move = dict(zip(m.coordinates, EVERY[name].moves[place], strict=True))
    return m, m.at({q: m.at().value(q) + dx for q, dx in move.items()})


def displaced(c: Configuration, body: str) -> RigidTransform:
    return RigidTransform.identity() if body == "ground" else c.pose(body)


def ladder(count: int, lean: float = 0.0) -> kic.Mechanism:
    """Return `count` four-bars in a row, with bars of 1 kg; without `lean`, all are parallelograms."""
    rng = np.random.default_rng(count)
    feet = np.array([[k, 0.0, 0.0] for k in range(count + 1)])
    tops = feet + [0.3, 0.4, 0.0] + lean * rng.uniform(-1, 1, (count + 1, 3)) * [1, 1, 0]
    rods = [(f"r{k}", feet[k], tops[k]) for k in range(count + 1)]
    rods += [(f"c{k}", tops[k - 1], tops[k]) for k in range(1, count + 1)]
    hinges = [(f"D{k}", ("ground", f"r{k}"), feet[k]) for k in range(count + 1)]
    for k in range(1, count + 1):
        hinges += [(f"A{k}", (f"r{k - 1}", f"c{k}"), tops[k - 1]), (f"B{k}", (f"c{k}", f"r{k}"), tops[k])]
    bodies = [
        kic.Body(
            name,
            mass=1.0,
            com=(p + q) / 2,
            inertia=((q - p) @ (q - p) * np.eye(3) - np.outer(q - p, q - p)) / 12,
        )
        for name, p, q in rods
    ]
    joints = [kic.Joint(name, "revolute", pair, at, axis=(0, 0, 1)) for name, pair, at in hinges]
    return kic.Mechanism("ladder", bodies, joints, gravity=(0, -9.81, 0), coordinates=["D0"])
