"""Redundantly actuated mechanisms with random demands and limits."""

from __future__ import annotations

import numpy as np

import kic

OBJECT = ["object.x", "object.y", "object.angle"]

TRUNK = ["trunk.x", "trunk.y", "trunk.angle"]

# model, actuators, coordinates of the effort (none: the model's own)
CASES = {
    "hand": ("two-finger-hand", "A1 B1 A2 B2", OBJECT),
    "hand, all six": ("two-finger-hand", "A1 B1 C1 A2 B2 C2", None),
    "walker": ("walking-machine", "B1 C1 B2 C2", TRUNK),
    "walker, all six": ("walking-machine", "A1 B1 C1 A2 B2 C2", TRUNK),
    "walker, five": ("walking-machine", "A1 B1 C1 B2 C2", None),
    "arms": ("two-arms", " ".join(f"{x}{i}" for i in (1, 2) for x in "ABCDEF"), ["load"]),
    "arms, seven": ("two-arms", "A1 B1 C1 D1 E1 F1 A2", None),
    "plate": ("three-rrr", "A1 B1 A2 B2 A3", ["tool", "platform.angle"]),
    "four-bar": ("four-bar", "A B D", None),
    "platform": (
        "gough-stewart",
        "L1 L2 L3 L4 L5 L6",
        ["platform"],
    ),  # as many actuators as degrees of freedom
}


class Case:
    """A configuration near the reference, with random demands and limits of suitable size."""

    def __init__(self, name: str, seed: int = 0) -> None:
        model, actuators, wrt = CASES[name]
        self.m = kic.load(model)
        drawn = self.m.at()
        self.rng = np.random.default_rng(seed)
        size = 0.02 if model == "gough-stewart" else 0.05
        way = self.rng.uniform(-size, size, len(self.m.coordinates))
        self.at = np.array([float(drawn.value(q)) for q in self.m.coordinates]) + way
        self.c = self.m.at(self.at, near=drawn)
        self.actuators, self.wrt = actuators.split(), wrt
        if wrt == ["tool", "platform.angle"]:
            self.wrt = ["tool.x", "tool.y", "platform.angle"]
        self.of = self.c.coefficients(self.actuators, wrt=self.wrt)
        self.G, self.H = self.of.G, np.asarray(self.of.H)
        self.A, self.M = self.G.shape
        self.demand = self.rng.normal(size=self.M) * np.abs(self.G).max(axis=0)
        # efforts of a distribution that is no special one, and limits about as large
        usual = np.abs(np.linalg.lstsq(self.G.T, self.demand, rcond=None)[0])
        self.limits = usual.max() * self.rng.uniform(0.7, 1.5, self.A)

    def distribute(self, criterion="minimum norm", **kwargs) -> kic.results.Distribution:
        given = {"actuators": self.actuators, "criterion": criterion, "wrt": self.wrt}
        return self.c.distribute(self.demand, **(given | kwargs))

    def least(self) -> float:
        """Return the largest share of the limits that is needed, which may exceed 1."""
        return 1e6 * float(
            self.distribute("least largest share", effort_limits=1e6 * self.limits).share.max()
        )

    def weights(self) -> np.ndarray:
        a = self.rng.normal(size=(self.A, self.A))
        return a @ a.T + np.eye(self.A)

    def missed(self, T: np.ndarray) -> float:
        """Return the residual of the demand, relative to the sum of its absolute terms."""
        return float((np.abs(T @ self.G - self.demand) / (np.abs(T) @ np.abs(self.G))).max())
