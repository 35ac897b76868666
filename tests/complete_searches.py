"""Complete searches of assembly modes, compared with independent solvers and many random starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from assembly_cases import (
    BARANOV,
    STEPHENSON,
    WATT,
    arm_of_six,
    inputs_of,
    modes_of,
    planar,
    six_distances,
    spatial_four_bar,
    translating_delta,
)  # fmt: skip
from scipy.spatial.transform import RigidTransform

import kic


def random_arm(rng: np.random.Generator) -> tuple[kic.Mechanism, np.ndarray, np.ndarray, np.ndarray]:
    """Return an arm of six revolute joints, and its a, d, alpha."""
    a, d = rng.uniform(0.1, 1.0, size=(2, 6))
    alpha = rng.uniform(-np.pi, np.pi, 6)
    return arm_of_six(a, d, alpha), a, d, alpha


def compare_arm(rng: np.random.Generator, inputs: int) -> int:
    """Compare all solutions of a random arm with those of IKDH; return their number.

    IKDH eliminates variables, after M. Husty, M. Pfurner, H.-P. Schröcker, 2007. Its solutions are a subset
    of ours: it loses some near singular configurations, where its polynomial has close roots.
    """
    import ikdh  # optional

    arm, a, d, alpha = random_arm(rng)
    table = ikdh.DHTable(list(a), list(d), list(alpha), [0.0] * 6)
    solver, total = ikdh.Solver(table), 0
    for q in rng.uniform(-np.pi, np.pi, size=(inputs, 6)):
        T = np.asarray(arm.at(q).pose("hand").as_matrix())
        found = modes_of(arm, {"hand": RigidTransform.from_matrix(T)})
        assert found.completeness.evidence == "proven number"
        assert np.abs(found.configuration.pose("hand").as_matrix() - T).max() < 1e-8
        turns = np.exp(1j * found.configuration._phi)
        assert np.abs(turns - np.exp(1j * q)).max(axis=1).min() < 1e-6
        for other in map(np.radians, solver.solve(T)):
            if np.abs(ikdh.forward_kin(table, np.degrees(other)) - T).max() < 1e-6:
                assert np.abs(turns - np.exp(1j * other)).max(axis=1).min() < 1e-4
        total += len(turns)
    return total


def hinges(rng: np.random.Generator, number: int) -> np.ndarray:
    return rng.uniform(-1, 1, size=(number, 2))


def compare_dyad(rng: np.random.Generator, inputs: int) -> int:
    """Compare both places of the tip of a random five-bar with the intersections of two circles."""
    at = hinges(rng, 5)
    m, z = planar([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], at, ("J0", "J4")), at @ [1, 1j]
    start, elbow, total = inputs_of(m), float(m.at().value("J1")), 0
    for q in start + rng.uniform(-np.pi, np.pi, (inputs, 2)):
        found = modes_of(m, q)
        # J4 leads from its body to ground
        B, D = (
            z[0] + (z[1] - z[0]) * np.exp(1j * (q - start)[0]),
            z[4] + (z[3] - z[4]) * np.exp(-1j * (q - start)[1]),
        )
        span, first, second = abs(D - B), abs(z[1] - z[2]), abs(z[3] - z[2])
        along = (span**2 + first**2 - second**2) / (2 * span)
        across = np.sqrt(complex(first**2 - along**2))
        if abs(across.real) > 0:
            turn = np.exp(1j * ((q - start)[0] + found.configuration.value("J1") - elbow))
            tips = B + (z[2] - z[1]) * turn
            expected = B + (D - B) / span * (along + np.array([1j, -1j]) * across)
            assert np.abs(tips[:, None] - expected).min(axis=0).max() < 1e-9 * max(1.0, 1 / abs(across))
        assert len(found) == found.completeness.real == (2 if abs(across.real) > 0 else 0)
        assert found.completeness.evidence != "incomplete"
        total += len(found)
    return total


# random mechanisms; the reference configuration closes
FAMILIES: dict[str, Callable[[np.random.Generator], kic.Mechanism]] = {
    "four-bar": lambda rng: planar([(0, 1), (1, 2), (2, 3), (3, 0)], hinges(rng, 4)),
    "five-bar": lambda rng: planar([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], hinges(rng, 5), ("J0", "J4")),
    "Watt": lambda rng: planar(WATT, hinges(rng, 7), f"J{rng.integers(7)}"),
    "Stephenson": lambda rng: planar(STEPHENSON, hinges(rng, 7), f"J{rng.integers(7)}"),
    "3-RRR": lambda rng: planar(
        [(0, 1), (1, 2), (2, 7), (0, 3), (3, 4), (4, 7), (0, 5), (5, 6), (6, 7)],
        hinges(rng, 9),
        ("J0", "J3", "J6"),
    ),
    "Baranov": lambda rng: planar(BARANOV[[14, 16, 18][rng.integers(3)]], hinges(rng, 9), "L", 6),
    "RSSR": spatial_four_bar,
    "six distances": six_distances,
    "Delta": translating_delta,
    "6R": lambda rng: random_arm(rng)[0],
}


def compare_starts(make: Callable[[np.random.Generator], kic.Mechanism], seed: int, starts: int) -> int:
    """Compare a random mechanism's complete search with one from random starts; return its number."""
    rng = np.random.default_rng(seed)
    m = make(rng)
    values = inputs_of(m)
    if m.name == "arm":
        values = {"hand": m.at(rng.uniform(-3, 3, 6)).pose("hand")}
    found = modes_of(m, values)
    known = found.completeness
    assert known.evidence != "incomplete", (seed, known.statement)
    assert known.certified[~found.singular].all()
    searched = m.assembly_modes(values, starts=starts, rng=seed)
    # each of the others is among ours
    turns, others = (np.exp(1j * x.configuration._phi) for x in (found, searched))
    apart = np.abs(others[:, None] - turns).max(axis=-1)
    assert apart.min(axis=1)[~searched.singular].max(initial=0.0) < 1e-4, seed
    return len(found)
