"""What a controller is: a law, with names of what it gives and of the coordinates whose rates it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kic.errors import InputError


class Control:
    """A controller: a function of time and state, or of time and what `kic.simulate` shows of a moment.

    Attributes
    ----------
    gives : str
        What comes back: "efforts", "voltages", "rates", "accelerations" or "jerks".
    coordinates : tuple of str
        Names of the M coordinates that it gives them for, but for voltages; and whose rates it takes.
    """

    def __init__(self, gives: str, coordinates: tuple[str, ...], law: Callable[..., np.ndarray]) -> None:
        self.gives, self.coordinates, self._law = gives, coordinates, law

    def __call__(self, t: Any, state: Any, *rates: Any) -> np.ndarray:
        """(..., M) at a time, for a closed state (..., S) and rates (..., M) as the law takes them."""
        if not rates and hasattr(state, "state"):  # a moment of a run
            currents = (state.current,) if self.gives == "voltages" else ()
            return self._law(t, state.state, state.qd, *currents)
        return self._law(t, state, *rates)

    def check(self, gives: str, coordinates: tuple[str, ...]) -> None:
        """Refuse a controller of something else, or in other coordinates."""
        if self.gives != gives:
            raise InputError(f"Expected a controller that gives {gives}, got one of {self.gives}.")
        if self.coordinates != coordinates:
            raise InputError(
                f"Expected a controller in the coordinates {', '.join(coordinates)}, got one in "
                f"{', '.join(self.coordinates)}. Give both the same `wrt`.",
                coordinates=self.coordinates,
            )

    def __repr__(self) -> str:
        return f"controller that gives {self.gives} of {', '.join(self.coordinates)}"
