"""Spreading: postures over a grid, each led from a neighbour, so that a map is of one branch.

From the start a first cell is reached, and from every cell that is closed its neighbours, wave by wave. A
cell is closed by the first neighbour from which a watched way leads to it (see `kic.continuation`): no dead
centre is stepped over. First all are tried that one step reaches for certain; only where that comes to an end
the others are led, in leaps, which takes long where there is no posture. Which neighbour closes a cell
depends on the grid alone, not on who does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kic.analysis.assemblies import LIMIT_ATOL, beyond_limits
from kic.configuration import Configuration
from kic.errors import ConfigurationError
from kic.position import initial_states
from kic.sweeps.grid import Grid
from kic.transfer.closure import Closure
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.continuation import continue_to
from kic.transfer.targets import Targets

# leads members (B, S) to targets (B, P), by one step alone or all the way: states (B, S), and why some failed
Lead = Callable[[np.ndarray, np.ndarray, bool], tuple[np.ndarray, list[str]]]
# the first cell is looked for among so many, and so many times more if none of them is reached
FIRST, MORE = 1, 8


def continue_cell(
    closure: Closure, start: np.ndarray, target: np.ndarray, step: bool
) -> tuple[np.ndarray, list[str]]:
    """Closed states (B, S) at targets (B, P), and the reasons of those that failed."""
    if step:
        states, arrived = closure.newton_local(start, target)
        return states, ["" if there else "not in one step" for there in arrived]
    outcome = continue_to(closure, start, target)
    return outcome.states, outcome.reasons


class GridContinuation:
    """Closed postures of a grid's cells, as far as they are known.

    Attributes
    ----------
    states : (cells, S)
        NaN where there is none.
    reasons : list of str
        Why a cell has no posture; '' for those that have.
    """

    def __init__(
        self,
        model: CompiledModel,
        grid: Grid,
        targets: Targets,
        limits: Mapping[str, tuple[float, float]],
    ) -> None:
        self.model, self.grid, self.limits = model, grid, dict(limits)
        self.values = targets.values.reshape(grid.size, -1)
        self.states = np.full((grid.size, model.tree.state_size), np.nan)
        self.reasons = [str(why) for why in np.broadcast_to(targets.impossible, grid.size)]
        self._able = np.array([not why for why in self.reasons], dtype=bool)
        self.done = ~self._able

    @property
    def ok(self) -> np.ndarray:
        """Cells that have a posture, (cells,) bool."""
        return np.isfinite(self.states).all(axis=1)

    def go(self, near: Configuration | None, lead: Lead, tell: Callable[[float], None]) -> None:
        """Close all cells to which ways over the grid lead.

        Raises
        ------
        ConfigurationError
            If no cell can be reached from the start.
        """
        new = np.array([self._first(near, lead)])
        beside = self.grid.neighbours()
        # from which neighbours each cell was tried by a step, and led
        tried = {True: beside < 0, False: beside < 0}
        waiting = np.empty(0, dtype=np.intp)
        while True:
            # who might be closed now: who is beside a new cell, and who was not closed from another one
            waiting = np.union1d(waiting, beside[new].ravel())
            waiting = waiting[(waiting >= 0) & self._able[waiting]]
            waiting = waiting[~self.ok[waiting]]
            for step in (True, False):
                ready = ~tried[step][waiting] & self.ok[beside[waiting]]
                able = ready.any(axis=1)
                if able.any():
                    break
            else:
                break
            cells, way = waiting[able], ready[able].argmax(axis=1)
            tried[step][cells, way] = True
            states, reasons = lead(self.states[beside[cells, way]], self.values[cells], step)
            self._put(cells, states, reasons)
            new = cells[self.ok[cells]]
            tell(self.done.mean())
        for cell in np.flatnonzero(~self.done):
            self.reasons[cell] = "no way over cells of the grid leads to it on this branch"
        self.done[:] = True

    def _put(self, cells: np.ndarray, states: np.ndarray, reasons: list[str]) -> None:
        """Keep what became of some cells."""
        over = self._beyond(states)
        for cell, state, why, limit in zip(cells.tolist(), states, reasons, over, strict=True):
            self.reasons[cell] = why or limit
            if not self.reasons[cell]:
                self.states[cell] = state
        self.done[cells] = True

    def _beyond(self, states: np.ndarray) -> list[str]:
        """Which limits states (B, S) exceed, in words; '' for none."""
        said = [""] * len(states)
        over = beyond_limits(self.model, states, self.limits)
        for b in np.flatnonzero((over > LIMIT_ATOL).any(axis=1)):
            name = list(self.limits)[int(np.argmax(over[b]))]
            said[b] = f"beyond the limits of '{name}' by {over[b].max():.3g}"
        return said

    def set(self, states: np.ndarray) -> None:
        """Take states (cells, S) that need no closing."""
        cells = np.flatnonzero(self._able)
        self._put(cells, states[cells], [""] * len(cells))

    def _first(self, near: Configuration | None, lead: Lead) -> int:
        """The cell from which all others are reached: the nearest to the start that can be."""
        start, _ = initial_states(self.model, near)
        here = Configuration(self.model, (), start.reshape(1, -1))
        order = self.grid.by_distance({name: float(here.value(name)) for name in self.grid.axes})
        order = order[self._able[order]]
        begin, count = 0, FIRST
        while begin < len(order):
            cells = order[begin : begin + count]
            begin, count = begin + count, count * MORE
            self._put(
                cells, *lead(np.repeat(start.reshape(1, -1), len(cells), axis=0), self.values[cells], False)
            )
            reached = np.flatnonzero(self.ok[cells])
            if reached.size:
                # the others of this round wait for a neighbour, as all do
                rest = np.delete(cells, reached[0])
                self.states[rest], self.done[rest] = np.nan, False
                for cell in rest:
                    self.reasons[cell] = ""
                return int(cells[reached[0]])
        why = next((self.reasons[k] for k in order[:1]), next(iter(self.reasons)))
        raise ConfigurationError(
            f"'{self.model.description.name}' reaches no cell of this grid from its start; to the nearest one "
            f"{why}. Give `near` a posture within the grid, or other axes.",
            failed=[tuple(map(int, np.unravel_index(k, self.grid.shape))) for k in range(self.grid.size)],
            reasons=list(self.reasons),
            configuration=Configuration(
                self.model, self.grid.shape, self.states, np.zeros(self.grid.shape, dtype=bool)
            ),
        )
