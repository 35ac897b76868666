"""Desk: what every worker of a sweep has before him: the mechanism, how it is closed, and what is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kic.configuration import Configuration
from kic.errors import InputError, MemberError, short_repr
from kic.mechanism import Mechanism
from kic.numerics.arrays import as_numbers
from kic.sweeps.grid_continuation import continue_cell
from kic.sweeps.metrics import Metric
from kic.transfer.closure import Closure
from kic.transfer.targets import PoseTarget


class CellResult(NamedTuple):
    """What some configurations answered.

    Attributes
    ----------
    values : dict of (str, str) to (n, ...) ndarray
        By question and name of the value; NaN where there is no answer. Of a question that none answered it
        is not known what it would have returned.
    sides : dict of (str, str) to (n,) ndarray
        For an answer and the rows on which it depends ("inputs A, E"), a determinant that changes its sign
        where they are singular.
    reasons : list of str
        Why a configuration has no answer; '' for those that have.
    """

    values: dict[tuple[str, str], np.ndarray]
    sides: dict[tuple[str, str], np.ndarray]
    reasons: list[str]


@dataclass(frozen=True, eq=False)
class SweepProblem:
    """A mechanism and questions.

    Attributes
    ----------
    mechanism : Mechanism
        As drawn.
    names, held
        Rows and bodies that the grid gives, as `Targets` has them.
    answers : dict of str to callable
        Functions of a `Configuration` (n,).
    """

    mechanism: Mechanism
    names: tuple[str, ...]
    held: tuple[PoseTarget, ...]
    answers: Mapping[str, Callable[[Configuration], Any]]

    @cached_property
    def _closure(self) -> Closure:
        return self.mechanism._model.closure(self.names, self.held)

    def lead(self, start: np.ndarray, target: np.ndarray, step: bool) -> tuple[np.ndarray, list[str]]:
        """See `led`."""
        return continue_cell(self._closure, start, target, step)

    def answer(self, states: np.ndarray) -> CellResult:
        """What closed states (n, S) answer."""
        values: dict[tuple[str, str], np.ndarray] = {}
        sides: dict[tuple[str, str], np.ndarray] = {}
        reasons = [""] * len(states)
        for name, question in self.answers.items():
            found, refused = self._asked(name, question, states)
            twice = sorted(found.keys() & {key for _, key in values})
            if twice:
                raise InputError(f"Two answers of the sweep are called '{twice[0]}'. Call one otherwise.")
            values |= {(name, key): value for key, value in found.items()}
            reasons = [a or b for a, b in zip(reasons, refused, strict=True)]
            if isinstance(question, Metric):
                for kind, rows in question.singular.items():
                    rows = self.mechanism.coordinate_names if rows is None else rows
                    side = self._side(rows, states)
                    if side is not None:
                        sides[name, f"{kind} {', '.join(rows)}"] = side
        return CellResult(values, sides, reasons)

    def _asked(
        self, name: str, question: Callable[[Configuration], Any], states: np.ndarray
    ) -> tuple[dict[str, np.ndarray], list[str]]:
        """Values of one answer, by name, and the reasons of those that have none."""
        model, reasons = self.mechanism._model, [""] * len(states)
        good = np.arange(len(states))
        while good.size:
            try:
                found = question(Configuration(model, (len(good),), states[good]))
                break
            except MemberError as error:
                failed = sorted({index[0] for index in error.numbers.get("failed", ())})
                if not failed:
                    raise
                for k in good[failed]:
                    reasons[k] = self._why(question, states[k : k + 1], error)
                good = np.delete(good, failed)
        else:
            return {}, reasons
        several = found if isinstance(found, Mapping) else {name: found}
        values = {}
        for key, value in several.items():
            a = as_numbers(value)
            if a is None or a.dtype != np.float64 or a.shape[:1] != good.shape:
                raise InputError(
                    f"The metric '{key}' must be real numbers, one for each of "
                    f"{len(good)} configurations that it got, got {short_repr(value)}. A sweep asks batches: write the "
                    "answer with c.value(), c.coefficients() and so on, whose batch axis comes first."
                )
            whole = np.full((len(states), *a.shape[1:]), np.nan)
            whole[good] = a
            values[key] = whole
        return values, reasons

    def _why(self, question: Callable[[Configuration], Any], state: np.ndarray, among: MemberError) -> str:
        """Why one configuration has no answer, in a sentence that knows of no others."""
        try:
            question(Configuration(self.mechanism._model, (1,), state))
        except MemberError as error:
            among = error
        # what stands in brackets are numbers of this configuration
        return re.sub(r" \([^()]*\)", "", among.message.split(". ")[0].rstrip("."))

    def _side(self, rows: tuple[str, ...], states: np.ndarray) -> np.ndarray | None:
        """Determinant (n,) of rows with respect to what the grid gives; None where there is none.

        The grid's own rows stay regular along a branch, so that its sign changes where the rows are singular.
        """
        model = self.mechanism._model
        if self.held or set(rows) == set(self.names):
            return None
        c = Configuration(model, (len(states),), states)
        G = c.coefficients(rows, order=1, wrt=self.names, failures="mask").G
        if G.shape[-1] != G.shape[-2]:
            return None
        known = np.isfinite(G).all(axis=(1, 2))
        side = np.full(len(G), np.nan)
        side[known] = np.linalg.det(G[known])
        return side


def lead_cells(
    desk: SweepProblem, start: np.ndarray, target: np.ndarray, step: bool
) -> tuple[np.ndarray, list[str]]:
    """`Desk.lead`, as a function that can be sent."""
    return desk.lead(start, target, step)


def answer_cells(desk: SweepProblem, states: np.ndarray) -> CellResult:
    """`Desk.answer`, as a function that can be sent."""
    return desk.answer(states)
