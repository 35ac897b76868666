"""Continuation over a grid: each cell is closed from a neighbour, so that a map shows one branch.

The first cell is reached from the start. Each closed cell then starts its neighbours, in waves. A cell is
closed from the first neighbour that a continuation path connects to it (see `kic.transfer.continuation`), so
no dead centre is crossed. Cells that a single certified Newton step reaches come first. The others are tried
in several steps; this takes long where no configuration exists. The neighbour that closes a cell depends on
the grid alone, not on the executor.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kic.analysis.sweeps.grid import Grid
from kic.description.parts import Joint
from kic.description.validation import part_of
from kic.errors import ConfigurationError
from kic.mechanism.configuration import Configuration, flat_states
from kic.mechanism.position import initial_states
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import MotionLimits
from kic.transfer.targets import Targets

# function of states (B, S), targets (B, P) and a flag for one step only; returns states and failure reasons
Continue = Callable[[np.ndarray, np.ndarray, bool], tuple[np.ndarray, list[str]]]
# number of cells tried first, and the factor on it each time none is reached
FIRST_TRIED, GROWTH = 1, 8


class GridContinuation:
    """Closed configurations of the cells of a grid.

    Attributes
    ----------
    states : (cells, S) ndarray
        Their states, or NaN.
    ok : (cells,) ndarray
        Mask of the cells that have a configuration.
    done : (cells,) ndarray
        Mask of the cells that were tried, or cannot have a configuration.
    reasons : (cells,) ndarray of str
        Reason for each cell without a configuration; '' for others.
    """

    def __init__(self, model: CompiledModel, grid: Grid, targets: Targets, limits: MotionLimits) -> None:
        self.model, self.grid, self.limits = model, grid, limits
        self.values = targets.values.reshape(grid.size, -1)
        self.states = np.full((grid.size, model.tree.state_size), np.nan)
        self.reasons = np.array(np.broadcast_to(targets.impossible, grid.size), dtype=object)
        self._possible = self.reasons == ""
        self.done = ~self._possible
        self.ok = np.zeros(grid.size, dtype=bool)

    def run(
        self, near: Configuration | None, continue_cells: Continue, report: Callable[[float], None]
    ) -> None:
        """Close all cells that are connected to the first cell over the grid.

        Raise `ConfigurationError` if no cell can be reached from the start.
        """
        new = np.array([self._close_first(near, continue_cells)])
        neighbours = self.grid.neighbours()
        # neighbours from which each cell was tried, by one step (True) or several (False)
        tried = {True: neighbours < 0, False: neighbours < 0}
        candidates = np.empty(0, dtype=np.intp)
        while True:
            # candidates are the neighbours of new cells, and cells that other neighbours did not close
            candidates = np.union1d(candidates, neighbours[new].ravel())
            candidates = candidates[(candidates >= 0) & self._possible[candidates]]
            candidates = candidates[~self.ok[candidates]]
            for step in (True, False):
                ready = ~tried[step][candidates] & self.ok[neighbours[candidates]]
                able = ready.any(axis=1)
                if able.any():
                    break
            else:
                break
            cells, direction = candidates[able], ready[able].argmax(axis=1)
            tried[step][cells, direction] = True
            starts = self.states[neighbours[cells, direction]]
            self._store(cells, *continue_cells(starts, self.values[cells], step))
            new = cells[self.ok[cells]]
            report(np.count_nonzero(self.done) / self.grid.size)
        self.reasons[~self.done] = "no path over cells of the grid connects it to the start on this branch"
        self.done[:] = True

    def _store(self, cells: np.ndarray, states: np.ndarray, reasons: list[str]) -> None:
        """Store the results of the given cells."""
        why = np.array(reasons, dtype=object)
        if self.limits.bounds:
            for k, violation in enumerate(self.limits.violations(states)):
                why[k] = why[k] or self.limits.reason(violation)
        self.reasons[cells] = why
        closed = (why == "") & np.isfinite(states).all(axis=1)
        self.states[cells[closed]], self.ok[cells[closed]] = states[closed], True
        self.done[cells] = True

    def set(self, states: np.ndarray) -> None:
        """Store states (cells, S) that are already closed."""
        cells = np.flatnonzero(self._possible)
        self._store(cells, states[cells], [""] * len(cells))

    def _value(self, here: Configuration, name: str) -> float:
        """Return the value of an axis at a configuration; axes of ball joints are rotation vectors."""
        ball = self.model.parts.get(part_of(name))
        if not (isinstance(ball, Joint) and ball.type == "spherical"):
            return float(here.value(name))
        turn = self.model.coordinate_values(ball.components, flat_states(here))
        return float(turn[0, ball.components.index(name)])

    def _close_first(self, near: Configuration | None, continue_cells: Continue) -> int:
        """Close the nearest cell that can be reached from the start, and return its index."""
        start, _ = initial_states(self.model, near)
        here = Configuration(self.model, (), start.reshape(1, -1))
        order = self.grid.by_distance({name: self._value(here, name) for name in self.grid.axes})
        order = order[self._possible[order]]
        begin, count = 0, FIRST_TRIED
        while begin < len(order):
            cells = order[begin : begin + count]
            begin, count = begin + count, count * GROWTH
            starts = np.repeat(start.reshape(1, -1), len(cells), axis=0)
            self._store(cells, *continue_cells(starts, self.values[cells], False))
            reached = np.flatnonzero(self.ok[cells])
            if reached.size:
                # the remaining cells of this round are closed from neighbours
                rest = np.delete(cells, reached[0])
                self.states[rest], self.ok[rest], self.done[rest] = np.nan, False, False
                self.reasons[rest] = ""
                return int(cells[reached[0]])
        why = next((self.reasons[k] for k in order[:1]), next(iter(self.reasons)))
        raise ConfigurationError(
            f"'{self.model.description.name}' reaches no cell of this grid from its start; at the nearest "
            f"cell: {why}. Give a configuration within the grid as `near`, or other axes.",
            failed=[tuple(map(int, np.unravel_index(k, self.grid.shape))) for k in range(self.grid.size)],
            reasons=list(self.reasons),
            configuration=Configuration(
                self.model, self.grid.shape, self.states, np.zeros(self.grid.shape, bool)
            ),
        )
