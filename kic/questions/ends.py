"""Where ways end: from a member of a batch towards a neighbour that has no posture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.closure import Closure
from kic.continuation import REGULAR, lead


@dataclass(frozen=True)
class Course:
    """What the members of a batch were to have: rows with the closure, and their values (B, P)."""

    closure: Closure
    values: np.ndarray

    def ends(self, states: np.ndarray, pairs: np.ndarray) -> list[End]:
        """Where the ways of pairs (E, 2) end, from members with a posture, of states (B, S), to others.

        Members whose inputs are not finite are nowhere, and from where inputs drive nothing there is no way.
        """
        pairs = pairs[np.isfinite(self.values[pairs[:, 1]]).all(axis=1)]
        begin, place = np.unique(pairs[:, 0], return_inverse=True)
        pairs = pairs[(self.closure.condition(states[begin]) < REGULAR)[place]]
        if not len(pairs):
            return []
        outcome = lead(self.closure, states[pairs[:, 0]], self.values[pairs[:, 1]], told=False)
        return [
            End(int(member), int(after), state, bool(share < 1))
            for (member, after), state, share in zip(pairs, outcome.states, outcome.share, strict=True)
            if share > 0
        ]

    def line(self, end: End) -> Line:
        """The straight way of inputs that is left from where one ended."""
        values = self.closure.rows(end.state[None])[0]
        left = self.closure.miss(self.closure.goal(self.values[[end.after]]), values)[0]
        return Line(self.closure, values[0], left[: self.closure.transfer.first])


@dataclass(frozen=True)
class End:
    """The last posture (S,) on the way from a member to one after it, and whether it stopped there."""

    member: int
    after: int
    state: np.ndarray
    stopped: bool


@dataclass(frozen=True)
class Line:
    """A straight way of inputs: their rows with the closure, scaled values (P,) at its begin, direction."""

    closure: Closure
    begin: np.ndarray
    along: np.ndarray

    def missed(self, state: np.ndarray, far: float) -> tuple[np.ndarray, np.ndarray]:
        """What inputs miss (p,) at a state (S,) of their values so far on the way, and their first order."""
        values, G = self.closure.rows(state[None])
        first = len(self.along)
        goal = self.begin.copy()
        goal[:first] += far * self.along
        return -self.closure.miss(goal[None], values)[0, :first], G[0, :first]
