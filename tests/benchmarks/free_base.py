"""I*, P* and G, H of a closed biped in the angular velocities of its base, beside sliders and hinges."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import kic
from benchmarks.couplings import DYNAMICS, RATES, works
from benchmarks.peers import check
from benchmarks.timing import Report, side_by_side

TARGETS = {DYNAMICS: "≤ 1.5", RATES: "≤ 1.5"}


def biped(free: bool) -> kic.Mechanism:
    """Return a floating biped whose legs have six joints each, the knee and the toe by four-bar linkages."""
    rng = np.random.default_rng(5)
    bodies, joints = [], []

    def hinge(name: str, pair: tuple[str, str], at: tuple[float, float, float], axis: int) -> None:
        joints.append(kic.Joint(name, "revolute", pair, at, tuple(np.eye(3)[axis])))

    def link(name: str, at: tuple[float, float, float]) -> None:
        inertia = tuple(rng.uniform(0.02, 0.03, 3))
        bodies.append(kic.Body(name, mass=float(rng.uniform(0.3, 3)), com=at, inertia=inertia))

    centre = (0.0, 0.0, 1.0)
    link("pelvis", centre)
    if free:
        joints.append(kic.Joint("base", "free", ("ground", "pelvis"), centre))
        names = ["base"]
    else:
        names = [f"base{k}" for k in range(6)]
        steps = ["ground", *(f"step{k}" for k in range(5)), "pelvis"]
        bodies += [kic.Body(step, mass=0.0, com=centre, inertia=(0, 0, 0)) for step in steps[1:-1]]
        for k, pair in enumerate(pairwise(steps)):
            kind = "prismatic" if k < 3 else "revolute"
            joints.append(kic.Joint(names[k], kind, pair, centre, tuple(np.eye(3)[k % 3])))
    for side, y in (("l", 0.1), ("r", -0.1)):
        chain = ["pelvis", *(f"{side}{part}" for part in ("yaw", "roll", "thigh"))]
        for k, pair in enumerate(pairwise(chain)):
            link(pair[1], (0.02, y, 0.95 - 0.05 * k))
            hinge(f"{side}hip{k}", pair, (0, y, 0.95), (2, 0, 1)[k])
            names.append(f"{side}hip{k}")
        above = chain[-1]
        for part, z in (("knee", 0.5), ("ankle", 0.2), ("toe", 0.1)):
            crank, rod, below = (f"{side}{part}{piece}" for piece in ("crank", "rod", ""))
            for k, name in enumerate((crank, rod, below)):
                link(name, (0.05 * k, y, z))
            hinge(f"{crank}0", (above, crank), (0.1, y, z + 0.08), 1)
            hinge(f"{rod}0", (crank, rod), (0.16, y, z + 0.08), 1)
            hinge(f"{below}0", (above, below), (0, y, z), 1)
            hinge(f"{rod}1", (rod, below), (0.07, y, z), 1)
            names.append(f"{crank}0")
            above = below
    return kic.Mechanism("biped", bodies, joints, coordinates=names, gravity=(0, 0, -9.81))


def table(report: Report, seconds: float) -> None:
    """Write the table; rates of both bases are equal in the reference configuration."""
    bases = {"free joint": biped(True), "sliders and hinges": biped(False)}
    both = {word: works(m, "pelvis") for word, m in bases.items()}
    own, other = ((jobs[DYNAMICS](), jobs[RATES]().pelvis.G) for jobs in both.values())
    pairs = {name: (getattr(own[0], name), getattr(other[0], name)) for name in ("I", "load")}
    worst = max(check(1e-11, **pairs, G=(own[1], other[1])).values())
    side_by_side(report, "closed biped, 18 coordinates", both, TARGETS, worst, seconds)
