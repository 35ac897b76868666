"""Freeman's arms as kic mechanisms, with independent forward kinematics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import kic

DATA = json.loads((Path(__file__).parent / "data" / "freeman.json").read_text(encoding="utf-8"))


def arm(chain: dict, **more) -> kic.Mechanism:
    """Return a chain of the reference data from DH rows; joints j1 …, links l1 …, hand at `hand`.

    The source has no gravity.
    """
    size = len(chain["types"])
    a, alpha = [0.0, *chain["a"]], [0.0, *chain["alpha"]]
    rows, bodies = [], []
    for n, kind in enumerate(chain["types"]):
        revolute = kind == "R"
        rows.append(
            kic.DHRow(
                f"j{n + 1}", f"l{n + 1}", type="revolute" if revolute else "prismatic",
                a=a[n], alpha=alpha[n],
                d=chain["s"][n] if revolute else 0.0, theta=0.0 if revolute else chain["theta"][n],
            )
        )  # fmt: skip
        if "m" in chain:
            bodies.append(
                kic.Body(
                    f"l{n + 1}", mass=chain["m"][n], com=chain["c"][n], inertia=chain["II"][n],
                    inertia_exception="random test data",
                )
            )  # fmt: skip
    hand = more.pop("hand", (0.0, 0.0, 0.0))
    return kic.from_dh(
        "freeman",
        rows,
        convention="freeman",
        bodies=bodies,
        points=[kic.Point("hand", f"l{size}", at=hand)],
        **{"gravity": (0.0, 0.0, 0.0)} | more,
    )


def frames(chain: dict, phi: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return rotations T^j and origins R^j by eqs 2-45 to 2-50."""
    T, R = np.eye(3), np.zeros(3)
    Ts, Rs = [], []
    for n, kind in enumerate(chain["types"]):
        theta = phi[n] if kind == "R" else chain["theta"][n]
        s = chain["s"][n] if kind == "R" else phi[n]
        if n:
            alpha = chain["alpha"][n - 1]
            R = R + chain["a"][n - 1] * T[:, 0]
            c, si = np.cos(alpha), np.sin(alpha)
            T = T @ np.array([[1, 0, 0], [0, c, -si], [0, si, c]])
        c, si = np.cos(theta), np.sin(theta)
        T = T @ np.array([[c, -si, 0], [si, c, 0], [0, 0, 1]])
        R = R + s * T[:, 2]
        Ts.append(T)
        Rs.append(R)
    return Ts, Rs


# of redundant and other arms, away from singularities
CONFIGURATIONS = {
    "panda": [0.1, 0.3, 0.2, -1.5, 0.3, 1.8, 0.2],
    "puma560": [0.3, 0.5, -2.2, 0.7, 0.8, -0.4],
    "twin-arm": [0.9, 0.3, 0.4, -0.8, 0.1, 0.2, 0.7, 0.15, 0.1, -0.2],
}


def configuration(name: str) -> kic.Configuration:
    """Return a shipped model at a regular configuration, or at its reference."""
    return kic.load(name).at(CONFIGURATIONS.get(name))
