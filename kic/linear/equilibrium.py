"""Equilibrium: postures that loads and given efforts leave at rest, and what small motions do about them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kic.configuration import Configuration
from kic.linear.linearize import Linearization
from kic.linear.modes import Modes
from kic.tables import Sheet


class Equilibrium:
    """A posture at rest under its loads, and whether it stays there.

    Attributes
    ----------
    configuration : Configuration
        The posture.
    coordinates : tuple of str
        Names of the M coordinates: those of the mechanism, or others, if these can not drive it there.
    free, held : tuple of str
        Those that found their place, and those that were held in it.
    effort : (M,)
        Efforts at all coordinates: those given at the free ones, what it takes at those held.
    left : float
        What of the effort was left at the free coordinates, beside the size of the loads.
    steps : int
        Steps of the search.

    Examples
    --------
    >>> import kic
    >>> found = kic.load("four-bar").find_equilibrium(stable=True)
    >>> found.words()
    ['stable', 'swings at 2.877 Hz: A 1']
    """

    def __init__(
        self,
        configuration: Configuration,
        linearization: Linearization,
        free: tuple[str, ...],
        left: float,
        steps: int,
    ) -> None:
        self.configuration = configuration
        self.coordinates = linearization.coordinates
        self.free = free
        self.held = tuple(name for name in self.coordinates if name not in free)
        self.effort = linearization.T
        self.left = left
        self.steps = steps
        self._linearization = linearization

    @cached_property
    def linearization(self) -> Linearization:
        """Stiffness, damping and inertia of the free coordinates."""
        return self._linearization.held(self.held)

    @cached_property
    def modes(self) -> Modes:
        """Small motions of the free coordinates."""
        return self.linearization.modes()

    @property
    def stability(self) -> str:
        """What becomes of small disturbances.

        "asymptotically stable" if all die away; "stable" if the potential energy has a minimum, so that
        none grows; "unstable" if one grows; "undecided" if first order can not tell.
        """
        if not self.free:
            return "stable"
        growth, squares = float(self.modes.growth), self.modes.squares
        if growth < 0:
            return "asymptotically stable"
        # of a potential: its minimum is stable, with dampers or without, and nothing else is
        if np.isfinite(squares).all():
            return "stable" if squares.min() > 0 else "unstable"
        return "unstable" if growth > 0 else "undecided"

    def words(self) -> list[str]:
        """Stability and every mode, in lines."""
        return [self.stability, *(self.modes.words() if self.free else [])]

    def sheet(self) -> Sheet:
        """Labelled account, to print or to show."""
        sheet = Sheet(f"{self.configuration.name}: equilibrium, {self.stability}")
        place = [float(self.configuration.value(c)) if self._valued(c) else np.nan for c in self.coordinates]
        table = np.stack([np.array(place), self.effort], axis=-1)
        sheet.matrix("coordinates", self.coordinates, ["value", "effort"], table)
        if self.held:
            sheet.say(f"held: {', '.join(self.held)}")
        for line in self.modes.words() if self.free else []:
            sheet.say(line)
        return sheet

    def _valued(self, name: str) -> bool:
        return self.configuration._model.value_rows(name)[1]

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
