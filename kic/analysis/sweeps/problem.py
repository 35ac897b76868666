"""Data and functions shared by all sweep workers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kic.analysis.sweeps.metrics import Metric
from kic.description.units import row_unit
from kic.errors import InputError, MemberError, short_repr
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arrays import as_numbers
from kic.transfer.closure import Closure
from kic.transfer.continuation import continue_to
from kic.transfer.targets import PoseTarget

# rounding of the values of a metric that is an axis of the grid, relative to them and to 1 rad or the length
AXIS_RTOL = 1e-9


class CellResult(NamedTuple):
    """Metrics of a set of cells."""

    # (n, ...): values by metric and name; NaN where undefined. A metric that is
    # undefined in all cells has no entry.
    values: dict[tuple[str, str], np.ndarray]
    # (n,): for a metric and the rows on which it depends ("inputs A, E"), a
    # determinant that changes its sign where they are singular
    sides: dict[tuple[str, str], np.ndarray]
    reasons: list[str]  # why a metric is undefined in a cell; '' for the others


@dataclass(frozen=True, eq=False)
class SweepProblem:
    """Data shared by all sweep workers: mechanism, closure settings, requested metrics."""

    mechanism: Mechanism
    # rows and bodies that the grid gives, as in `Targets`
    names: tuple[str, ...]
    held: tuple[PoseTarget, ...]
    # names of the grid's axes
    axes: tuple[str, ...]
    # functions of a `Configuration` (n,)
    metrics: Mapping[str, Callable[[Configuration], Any]]

    @cached_property
    def _closure(self) -> Closure:
        return model_of(self.mechanism).closure(self.names, self.held)

    def continue_cells(
        self, start: np.ndarray, target: np.ndarray, step: bool, sought_max: int
    ) -> tuple[np.ndarray, list[str]]:
        """Return closed states (B, S) at targets (B, P), in one step or several, and failure reasons.

        For `sought_max` see `continue_to`.
        """
        if step:
            states, share = self._closure.track(start, target)
            return states, ["" if done == 1 else "not in one step" for done in share]
        outcome = continue_to(self._closure, start, target, sought_max=sought_max)
        return outcome.states, outcome.reasons

    def evaluate(self, states: np.ndarray) -> CellResult:
        """Evaluate the metrics at closed states (n, S)."""
        values: dict[tuple[str, str], np.ndarray] = {}
        sides: dict[tuple[str, str], np.ndarray] = {}
        reasons = [""] * len(states)
        for name, metric in self.metrics.items():
            found, undefined = self._evaluate_metric(name, metric, states)
            repeated = sorted(found.keys() & {key for _, key in values})
            if repeated:
                raise InputError(
                    f"The name '{repeated[0]}' is used by two metrics. Rename one.",
                    key="of",
                    name=repeated[0],
                )
            values |= {(name, key): value for key, value in found.items()}
            reasons = [a or b for a, b in zip(reasons, undefined, strict=True)]
            if isinstance(metric, Metric):
                for kind, rows in metric.singular.items():
                    rows = self.mechanism.coordinates if rows is None else rows
                    side = self._side(rows, states)
                    if side is not None:
                        sides[name, f"{kind} {', '.join(rows)}"] = side
        return CellResult(values, sides, reasons)

    def _evaluate_metric(
        self, name: str, metric: Callable[[Configuration], Any], states: np.ndarray
    ) -> tuple[dict[str, np.ndarray], list[str]]:
        """Return the values of one metric by name, and the reasons where it is undefined."""
        model, reasons = model_of(self.mechanism), [""] * len(states)
        good = np.arange(len(states))
        while good.size:
            try:
                found = metric(Configuration(model, (len(good),), states[good]))
                break
            except MemberError as error:
                failed = sorted({index[0] for index in error.numbers.get("failed", ())})
                if not failed:
                    raise
                for k in good[failed]:
                    reasons[k] = self._reason(metric, states[k : k + 1], error)
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
                    f"{len(good)} configurations, got {short_repr(value)}. A sweep evaluates batches: write "
                    "the metric with c.value(), c.coefficients() and similar, whose batch axis is the first.",
                    key="of",
                    name=key,
                    got=value,
                )
            if key in self.axes:
                axis = Configuration(model, (len(good),), states[good]).value(key)
                atol = AXIS_RTOL * (1.0 if row_unit(self.mechanism, key) == "rad" else model.length)
                if a.shape != good.shape or not np.allclose(a, axis, AXIS_RTOL, atol):
                    raise InputError(
                        f"The metric '{key}' must equal the axis of this name, got {short_repr(a)} where it "
                        f"is {short_repr(axis)}. Rename it.",
                        key="of",
                        name=key,
                        got=a,
                    )
            whole = np.full((len(states), *a.shape[1:]), np.nan)
            whole[good] = a
            values[key] = whole
        return values, reasons

    def _reason(
        self, metric: Callable[[Configuration], Any], state: np.ndarray, of_batch: MemberError
    ) -> str:
        """Return the reason that a metric is undefined at a state, without numbers of other members."""
        found = of_batch
        try:
            metric(Configuration(model_of(self.mechanism), (1,), state))
        except MemberError as error:
            found = error
        # parentheses contain numbers of single members
        return re.sub(r" \([^()]*\)", "", found.message.split(". ")[0].rstrip("."))

    def _side(self, rows: tuple[str, ...], states: np.ndarray) -> np.ndarray | None:
        """Return the determinant (n,) of rows with respect to the inputs of the grid, or None.

        The rows of the grid stay regular along a branch, so the sign changes where the rows are singular.
        """
        model = model_of(self.mechanism)
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
