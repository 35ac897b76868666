"""I*, P* and G, H of a humanoid whose hands have mimic joints, beside the same without couplings.

The other road to the same numbers, a square system of couplings and coordinates, is compared first.
"""

from __future__ import annotations

import numpy as np

import kic
from benchmarks.peers import check
from benchmarks.timing import Report, Work, reused, side_by_side

DYNAMICS, RATES = "I*, P*, load", "G, H"
TARGETS = {DYNAMICS: "≤ 1.3"}


def humanoid(mimic: bool) -> kic.Mechanism:
    """Return a floating humanoid of 43 joint coordinates, of which 12 joints of the hands are followers."""
    rng = np.random.default_rng(7)
    bodies, joints, couplings = [], [], []

    def link(name: str) -> None:
        inertia = tuple(np.abs(rng.normal(size=3)) * 0.01 + 0.02)
        com = tuple(rng.normal(size=3) * 0.1)
        bodies.append(kic.Body(name, mass=float(rng.uniform(0.2, 3)), com=com, inertia=inertia))

    def chain(name: str, parent: str, count: int, start: tuple[float, float, float], step: float) -> str:
        for k in range(count):
            axis = tuple(np.eye(3)[(k + len(name)) % 3])
            at = (start[0], start[1], start[2] + step * k)
            link(f"{name}{k}b")
            joints.append(kic.Joint(f"{name}{k}", "revolute", (parent, f"{name}{k}b"), at, axis))
            parent = f"{name}{k}b"
        return parent

    link("pelvis")
    joints.append(kic.Joint("base", "free", ("ground", "pelvis"), (0, 0, 1)))
    torso = chain("waist", "pelvis", 1, (0, 0, 1.1), 0.1)
    for side, y in (("l", 0.2), ("r", -0.2)):
        chain(f"{side}leg", "pelvis", 6, (0, y, 0.9), -0.15)
        palm = chain(f"{side}arm", torso, 4, (0, 2 * y, 1.5), -0.15)
        for finger in range(4):
            chain(f"{side}f{finger}", palm, 2, (0.02 * finger, 2 * y, 0.85), -0.04)
        first, second = f"{side}f00", f"{side}f10"
        followers = {f"{side}f01": (first, 0.8), f"{side}f11": (second, 1.1)}
        followers |= {f"{side}f{k}{j}": ((first, second)[j], 0.9 + 0.1 * k) for k in (2, 3) for j in (0, 1)}
        for follower, (driver, ratio) in followers.items():
            couplings.append(kic.Coupling(f"{follower}m", (follower, driver), ratios=(1.0, -ratio)))
    followers = {coupling.joints[0] for coupling in couplings}
    names = ["base", *(j.name for j in joints[1:] if not (mimic and j.name in followers))]
    return kic.Mechanism(
        "humanoid", bodies, joints, couplings=couplings if mimic else [], coordinates=names,
        points=[kic.Point("tip", "lf01b", (0.1, 0.4, 0.8))], gravity=(0, 0, -9.81),
    )  # fmt: skip


def by_system(mechanism: kic.Mechanism) -> list[np.ndarray]:
    """Return I*, P*, load, and G, H of the tip, by the square system of coordinates and couplings."""
    model, c = mechanism._model, mechanism.at()
    transfer = model.transfer(model.coordinates)
    found = model.program(transfer, ("tip",), 2, want=3).run(c._states)
    return [*found.model[:3], *found.arrays[1:]]


def works(mechanism: kic.Mechanism, of: str) -> dict[str, Work]:
    """Return the calls for one configuration or motion, which use their memory again."""
    state, v = mechanism.at().state, np.ones(mechanism.dof)
    return {
        DYNAMICS: reused(mechanism.prepare.dynamics(), state),
        RATES: reused(mechanism.prepare.coefficients([of], order=2), state),
        "inverse dynamics": reused(mechanism.prepare.inverse_dynamics(), state, v, v),
        "forward dynamics": reused(mechanism.prepare.forward_dynamics(), state, v, v),
    }


def table(report: Report, seconds: float) -> None:
    """Write the table."""
    both = {word: works(humanoid(word == "with"), "tip") for word in ("with", "without")}
    own, rates = both["with"][DYNAMICS](), both["with"][RATES]().tip
    results = zip(("I", "P", "load", "G", "H"), (own.I, own.P, own.load, rates.G, rates.H), strict=True)
    expected = by_system(humanoid(True))
    worst = max(check(1e-12, **{n: (x, y[0]) for (n, x), y in zip(results, expected, strict=True)}).values())
    side_by_side(report, "43 joint coordinates, 12 mimic joints", both, TARGETS, worst, seconds)
