"""Queries along motions: efforts of a motion, or accelerations due to efforts, without I* and P*."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kic.dynamics.mass_and_load_tables import Loads, Masses
from kic.kernels.layout import PIVOT, QUALITY_WIDTH, STATE_SIZE, WANT_FORWARD, WANT_SERIES
from kic.kinematics.linear_map import LinearMap
from kic.kinematics.queries import KernelQuery, kernel, over_batch
from kic.kinematics.tree import Tree
from kic.numerics.arrays import scatter
from kic.transfer.constraint_system import ConstraintSystem, TransferQuery

# estimated cost of one configuration (µs), for sharing a batch among threads
_START_US, _PER_COLUMN_US = 0.05, 0.06

Rates = tuple[np.ndarray, ...]


def result_width(size: int, want: int) -> int:
    """Return the length of a result: efforts (m,); or accelerations, bias, I* (m, m) and two powers."""
    return size * (size + 2) + 2 if want & WANT_FORWARD else size


def brief_result(rates: Rates) -> MotionResult:
    """Return a result without quality rows, for real members that are all regular."""
    return MotionResult(rates, np.empty_like(rates[0]), np.empty((0, QUALITY_WIDTH)))


@dataclass(slots=True)
class MotionResult:
    """Motions of a batch, and what the kernels write.

    Attributes
    ----------
    rates : tuple of (B, m)
        Rates of the coordinates; their accelerations, or efforts; perhaps jerks.
    T : (B, n)
        Results, see `result_width`.
    quality : (B, QUALITY_WIDTH)
        Pivots and residuals of the systems; without members if none is solved, and in brief results.
    error : (B,), optional
        Relative error that the error of solved states causes.
    finite : bool
        As in `TransferResult`.
    """

    rates: Rates
    T: np.ndarray
    quality: np.ndarray
    error: np.ndarray | None = None
    finite: bool = True

    @property
    def pivot(self) -> np.ndarray | None:
        """Smallest pivot (B,) of each member's system; None if none was solved."""
        return self.quality[:, PIVOT] if len(self.quality) else None

    def members(self, some: slice) -> MotionResult:
        """Return the views of some members."""
        quality = self.quality[some] if len(self.quality) else self.quality
        return MotionResult(tuple(a[some] for a in self.rates), self.T[some], quality)

    def scatter(self, good: np.ndarray) -> MotionResult:
        """Return the results for a batch (B,) of which these are the good members; the others are NaN."""
        return replace(self, T=scatter(self.T, good))


class TreeMotionQuery(KernelQuery):
    """Query along motions of an open chain in the coordinates of its tree, or in others of a linear map."""

    def __init__(
        self, tree: Tree, masses: Masses, loads: Loads, want: int, linear: LinearMap | None = None
    ) -> None:
        size = tree.size if linear is None else linear.size
        self.entry = "tree_motion" if linear is None else "linear_tree_motion"
        super().__init__(
            tree,
            masses=masses,
            loads=loads,
            asked=(2, 0, size, want),
            width=result_width(size, want),
            linear=linear,
        )
        self.plan[2, STATE_SIZE] = tree.state_size

    @cached_property
    def places(self) -> int:
        """Length of the scratch array."""
        from kic.kernels.motion import tree_places

        return int(tree_places(self.plan))

    def result(self, rates: Rates, dtype: np.dtype) -> MotionResult:
        """Return a result for motions, NaN until the kernel writes it."""
        return MotionResult(rates, np.full((len(rates[0]), self.width), np.nan, dtype), np.empty((0, 0)))

    def arguments(self, out: MotionResult, states: np.ndarray, applied: np.ndarray) -> tuple[Any, ...]:
        """Return the arguments of the kernel."""
        dtype, (first, second) = states.dtype, out.rates
        flat = states.reshape(-1), applied, first.reshape(-1), second.reshape(-1)
        return self.plan, self.numbers_in(dtype), *flat, np.empty(self.places, dtype), out.T.reshape(-1)

    def run_into(
        self, out: MotionResult, states: np.ndarray, applied: np.ndarray, choice: None = None
    ) -> int:
        """Fill the results of a batch; return the number of members without, or that are not finite."""
        entry, count, symbols = kernel(self.entry), len(states), states.dtype.kind == "O"
        entry = entry.py_func if symbols else entry
        applied = np.require(applied, states.dtype, ["C", "A", "W"])
        rejected: list[int] = []

        def work(a: int, b: int) -> None:
            force = applied[a:b] if len(applied) == count else applied
            rejected.append(entry(*self.arguments(out.members(slice(a, b)), states[a:b], force)))

        if count > 1 and not symbols:
            over_batch()(work, count, _START_US + _PER_COLUMN_US * self.tree.size)
        elif count:
            work(0, count)
        return sum(rejected)

    def evaluate(
        self, states: np.ndarray, applied: np.ndarray | None = None, out: MotionResult | None = None
    ) -> MotionResult:
        """Fill and return the results of a batch."""
        # both are given along motions; for the type checker
        assert out is not None
        assert applied is not None
        out.finite = not self.run_into(out, states, applied)
        return out


class MotionQuery(TransferQuery):
    """Query along motions in the coordinates of a system: efforts, or accelerations; or series of φ.

    With WANT_SERIES, derivatives (M,) of the tree's coordinates to the order of the query follow the efforts,
    which are zero.
    """

    entry = "motion_in_coordinates"

    def __init__(
        self,
        system: ConstraintSystem,
        masses: Masses | None,
        loads: Loads | None,
        want: int,
        order: int = 2,
    ) -> None:
        super().__init__(system, order, masses=masses, loads=loads, want=want)
        self.plan[2, STATE_SIZE] = system.tree.state_size
        self.width = result_width(system.n_chosen, want)
        if want & WANT_SERIES:
            self.width += order * system.tree.size

    @cached_property
    def places(self) -> int:
        """Length of the scratch array."""
        from kic.kernels.motion import motion_scratch

        return int(motion_scratch(self.plan)[-1])

    def result(self, rates: Rates, dtype: np.dtype) -> MotionResult:
        """Return an empty result for motions."""
        count = len(rates[0])
        return MotionResult(rates, np.empty((count, self.width), dtype), np.empty((count, QUALITY_WIDTH)))

    def arguments(  # type: ignore[override]
        self, out: MotionResult, states: np.ndarray, applied: np.ndarray, choice: np.ndarray
    ) -> tuple[Any, ...]:
        """Return the arguments of the kernel."""
        dtype, rates = states.dtype, [a.reshape(-1) for a in out.rates]
        given = states.reshape(-1), applied, choice, rates[0], rates[1], rates[-1]
        scratch, whole = np.empty(self.places, dtype), np.empty((2, self.columns), np.int64)
        return self.plan, self.numbers_in(dtype), *given, scratch, whole, out.T.reshape(-1), out.quality
