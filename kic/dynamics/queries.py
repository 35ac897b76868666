"""Queries to the dynamics kernels: I*, P*, loads, and the contribution of each body."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np

from kic.dynamics.mass_and_load_tables import Loads, Masses
from kic.kernels.layout import TERMS, WANT_INERTIA, WANT_LOADS
from kic.kinematics.linear_map import LinearMap
from kic.kinematics.queries import KernelQuery, Table
from kic.kinematics.tree import Tree


class ModelTable(Table):
    """Requested parts of I*, P*, load and damping in a number of coordinates."""

    def __init__(self, size: int, want: int) -> None:
        shapes: list[tuple[int, ...]] = [(size, size), (size,) * 3] if want & WANT_INERTIA else []
        shapes += [(size,), (size, size)] if want & WANT_LOADS else []
        super().__init__(shapes)


class DynamicsQuery(KernelQuery):
    """Query of I* and P*, load and damping, or both pairs, in coordinates of the tree or a linear map."""

    def __init__(
        self, tree: Tree, masses: Masses, loads: Loads, want: int, linear: LinearMap | None = None
    ) -> None:
        size = tree.size if linear is None else linear.size
        self.model = ModelTable(size, want)
        self.entry = "dynamics" if linear is None else "linear_dynamics"
        super().__init__(
            tree, masses=masses, loads=loads, asked=(2, 0, size, want), width=self.model.width, linear=linear
        )

    @cached_property
    def scratch(self) -> int:
        """Length of the scratch array, with the loads of the tree for other coordinates."""
        mobile = self.tree.size
        return super().scratch + (mobile * (1 + mobile) if self.plan[1, TERMS] else 0)

    def table(
        self,
        states: np.ndarray,
        applied: np.ndarray,
        out: np.ndarray | None = None,
        not_finite: list[int] | None = None,
    ) -> np.ndarray:
        """Return the parts side by side, (B, width); applied forces are (B or 1, n, 3)."""
        T = np.empty((len(states), self.width), states.dtype) if out is None else out
        if applied.dtype != states.dtype or not applied.flags.carray:
            applied = np.require(applied, states.dtype, ["C", "A", "W"])
        return self.run(self.entry, states, T, applied, not_finite=not_finite)


class ContributionsQuery(KernelQuery):
    """Query of the contributions of each body to I* and P*, in coordinates of the tree or `size` others."""

    def __init__(self, tree: Tree, masses: Masses, size: int | None = None) -> None:
        M, N = tree.size if size is None else size, len(masses.names)
        self.shapes = [(N, M, M), (N, M, M), (N, M, M, M), (N, M, M, M)]
        super().__init__(tree, masses=masses, asked=(2, 0, M, 0), width=2 * M * M * (1 + M))
        self._transferred = size is not None

    @cached_property
    def scratch(self) -> int:
        """Length of the scratch array, with the tables of the frames for other coordinates."""
        size, mobile = int(self.plan[1, 2]), len(self.tree.cols)
        pair = 6 * (1 + size + size * size)
        blocks = (mobile + 1) * (6 * size + 15 * size * size) if self._transferred else 0
        return 20 * mobile + pair + blocks

    def table(self, states: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """Return I linear, I angular, P linear and P angular side by side, (B, N, width)."""
        T = np.empty((len(states), self.plan[0, 2], self.width), states.dtype)
        return self.run("links", states, T, X, np.zeros(len(self.tree.cols), np.int64))

    def split(self, T: np.ndarray, batch: tuple[int, ...]) -> list[np.ndarray]:
        """Return views of the four parts with the batch axes in front."""
        parts, start = [], 0
        for shape in self.shapes:
            width = prod(shape[1:])
            parts.append(T[..., start : start + width].reshape(batch + shape))
            start += width
        return parts
