"""Results of a sweep: metrics over the grid, reasons for missing values, and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.analysis.sweeps.metrics import Metric
from kic.description.units import row_unit
from kic.errors import unknown
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import text
from kic.numerics.display import ROUNDOFF, Printable, Summary
from kic.numerics.registration import with_methods
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable

if TYPE_CHECKING:
    from kic.plotting import maps as _maps


@with_methods
@dataclass(eq=False, repr=False)
class Sweep(Printable, Tabular):
    """Metrics over a grid; made by `Mechanism.sweep`. ``s["name"]`` gives the values of one metric.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism.
    axes : dict of str to (n,)
        The axes of the grid, in the order of the arrays' axes.
    fixed : dict
        Inputs that all cells have in common.
    values : dict of str to (...) ndarray
        Metrics by name, of the grid's shape; NaN where undefined.
    units : dict of str to str
        Units of the metrics, as far as known.
    reached : (...) bool
        Cells that have a configuration, on the branch of the start and within limits.
    reasons : (...) of str
        Reason why a cell has no configuration, or a metric is undefined; '' otherwise.
    sides : dict of (str, str) to (...) ndarray
        For a metric and the rows on which it depends ("inputs A, E"), a determinant that changes its sign
        where they are singular.
    stopped : str
        Reason why the sweep ended early; '' for a complete sweep.

    Examples
    --------
    >>> x = np.linspace(0.2, 2.6, 4)
    >>> s = kic.load("horn-two-link").sweep({"tip.x": x, "tip.y": 0.3}, "elbow",
    ...               near=kic.load("horn-two-link").at([0.3, 1.0]))
    >>> s["elbow"].round(3).tolist(), s.reached.tolist()
    ([2.779, 2.043, 0.843, nan], [True, True, True, False])
    """

    _one_line = ("shape",)

    mechanism: Mechanism
    axes: dict[str, np.ndarray]
    fixed: dict[str, Any]
    _states: np.ndarray
    values: dict[str, np.ndarray]
    units: dict[str, str]
    reasons: np.ndarray
    sides: dict[tuple[str, str], np.ndarray]
    stopped: str = ""
    # names of metrics by the functions that make them
    _aliases: dict[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def reached(self) -> np.ndarray:
        """Mask (...) of the cells that have a configuration."""
        return np.isfinite(self._states).all(axis=1).reshape(self.shape)

    @property
    def configuration(self) -> Configuration:
        """The configurations, a batch of the grid's shape; cells that were not reached are masked."""
        return Configuration(model_of(self.mechanism), self.shape, self._states.copy(), self.reached)

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        units = {axis: self.units.get(axis) or row_unit(self.mechanism, axis) for axis in self.axes}
        index = tuple(TableAxis(axis, x, units[axis]) for axis, x in self.axes.items())
        made = []
        for name, values in self.values.items():
            more = values.shape[len(self.shape) :]
            axes = tuple(TableAxis(f"{name}_{k + 1}", range(n)) for k, n in enumerate(more))
            made.append(Variable(name, values, self.units.get(name, ""), axes))
        made.append(Variable("reached", self.reached))
        table = DataTable(f"{self.mechanism.name}: sweep", index, tuple(made)).select(names)
        # a metric that is an axis has the values of the axis
        return replace(table, variables=tuple(v for v in table.variables if v.name not in self.axes))

    def __getitem__(self, name: str | Metric) -> np.ndarray:
        """Return the values of a metric, of the grid's shape.

        `name` is the name of the metric, the metric itself, or the name of its function in `kic.metrics`.
        """
        name = name.name if isinstance(name, Metric) else text("name", name)
        name = name if name in self.values else self._aliases.get(name, name)
        if name not in self.values:
            raise unknown("metric", name, "the sweep", self.values, quoted=False)
        return self.values[name]

    def summary(self) -> Summary:
        """Return a summary of the sweep."""
        grid = " × ".join(f"{axis} ({len(values)})" for axis, values in self.axes.items())
        sheet = Summary(f"{self.mechanism.name}: {grid}")
        if self.stopped:
            sheet.say(self.stopped)
        reached = self.reached
        sheet.say(f"{int(reached.sum())} of {reached.size} cells reached")
        rows, table = [], []
        for name, values in self.values.items():
            known = values[np.isfinite(values)]
            if values.ndim == len(self.shape) and known.size:
                unit = self.units.get(name)
                rows.append(f"{name} ({unit})" if unit else name)
                statistics = np.array([known.min(), np.median(known), known.max()])
                # values below rounding of the largest are shown as zero
                statistics[np.abs(statistics) < ROUNDOFF * np.abs(statistics).max()] = 0.0
                table.append([*statistics, known.size])
        if rows:
            sheet.matrix("metrics", rows, ["min", "median", "max", "cells"], np.array(table), largest=0)
        reasons, counts = np.unique(
            [str(why) for why in self.reasons[reached] if why] or [""], return_counts=True
        )
        for reason, count in sorted(zip(reasons, counts, strict=True), key=lambda pair: -pair[1])[:4]:
            if reason:
                sheet.say(f"{count} cells reached without a value: {reason}")
        return sheet

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        plot = _maps.plot_sweep
