"""Results of a sweep: metrics over the grid, reasons for missing values, and plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.description.units import row_unit
from kic.errors import InputError, invalid, unknown
from kic.mechanism import Mechanism
from kic.numerics.arguments import integer, mapping, text
from kic.numerics.arrays import reals
from kic.numerics.display import ROUNDOFF, Printable, Summary
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable
from kic.plotting.figures import Picture, axis_label
from kic.plotting.maps import Axis, draw_line, draw_map
from kic.sweeps.metrics import Metric


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
        ok = self.reached
        return Configuration(self.mechanism._model, self.shape, self._states.copy(), None if ok.all() else ok)

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
        return self._values_of("name", name)

    def _values_of(self, argument: str, name: str | Metric) -> np.ndarray:
        name = name.name if isinstance(name, Metric) else text(argument, name)
        name = name if name in self.values else self._aliases.get(name, name)
        if name not in self.values:
            raise unknown("metric", name, "the sweep", self.values, quoted=False)
        return self.values[name]

    def plot(
        self,
        of: str | None = None,
        *,
        at: Mapping[str, float] | None = None,
        bounds: Any = None,
        contours: int = 8,
        width: float = 3.5,
    ) -> Picture:
        """Plot a metric as a map over two axes, or as a line over one.

        Cells without a configuration are hatched grey. Cells where the metric is undefined, mostly because
        they are singular, are dotted. For metrics of `kic.metrics` a line marks where they are singular:
        where the determinant of the inputs, or of a task of as many rows as degrees of freedom, with respect
        to the grid's own coordinates changes its sign between cells.

        Parameters
        ----------
        of : str, optional
            The metric; by default the only metric.
        at : dict of str to float, optional
            Values at which axes that are not shown are cut; the nearest cell is used.
        bounds : (lower, upper), optional
            Range of the colours. By default the range of the values. If the values diverge, as towards a
            singularity, the range of the middle 96 %, with arrows at the colour bar.
        contours : int
            Approximate number of contour lines; 0 for none.
        width : float
            Width in inches.

        Raises
        ------
        InputError
            If more than two axes are not cut, a cut is beyond the grid, values are not scalars, or there is
            nothing to show.
        """
        if of is None:
            if len(self.values) != 1:
                raise InputError(f"`of` must be one of the metrics: {', '.join(self.values)}.", key="of")
            of = next(iter(self.values))
        values = self._values_of("of", of)
        if values.ndim != len(self.shape):
            raise InputError(
                f"'{of}' has values of shape {values.shape[len(self.shape) :]} in each cell; a map shows "
                "one number. Return several numbers by name.",
                name=of,
                got=values.shape[len(self.shape) :],
            )
        contours = integer("contours", contours, 0)
        where, cut_label = self._cut(at)
        shown_axes = [axis for axis, index in zip(self.axes, where, strict=True) if isinstance(index, slice)]
        if len(shown_axes) not in (1, 2):
            raise InputError(
                f"A plot shows one or two axes, but {len(shown_axes)} are left: "
                f"{', '.join(shown_axes) or 'none'}. Cut with `at`, as "
                f"at={{'{next(iter(self.axes))}': value}}.",
                axes=tuple(shown_axes),
            )
        if not np.isfinite(values[where]).any():
            raise InputError(f"'{of}' has no value in any cell shown; see `reasons`.", name=of)
        axes = [Axis(axis, row_unit(self.mechanism, axis), self.axes[axis]) for axis in shown_axes]
        label = axis_label(of, self.units.get(of))
        reached = self.reached[where]
        singular = {f"{rows} singular": x[where] for (metric, rows), x in self.sides.items() if metric == of}
        shown = label, values[where], reached, singular, cut_label
        if len(axes) == 1:
            return draw_line(axes[0], *shown, width)
        return draw_map(axes[0], axes[1], *shown, _bounds(bounds), contours, width)

    def _cut(self, at: Mapping[str, float] | None) -> tuple[tuple[Any, ...], str]:
        """Return the index of the shown cells, and a description of the cut."""
        for axis in mapping("at", at, "axes to values") if at is not None else {}:
            if axis not in self.axes:
                raise unknown("axis", axis, "the sweep", self.axes, quoted=False)
        where: list[Any] = []
        cut_label = []
        for axis, values in self.axes.items():
            if axis not in (at or {}):
                where.append(slice(None) if len(values) > 1 else 0)
                continue
            cut = reals((at or {})[axis])
            low, high = values.min(), values.max()
            if cut is None or cut.ndim or not low <= cut <= high:
                rule = f"of '{axis}' must be a number from {low:g} to {high:g}"
                raise invalid("at", rule, (at or {})[axis], name=axis)
            where.append(int(np.argmin(np.abs(values - cut))))
            cut_label.append(f"{axis} = {values[where[-1]]:.4g} {row_unit(self.mechanism, axis)}")
        return tuple(where), ", ".join(cut_label)

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


def _bounds(bounds: Any) -> tuple[float, float] | None:
    """Return the checked range of the colours."""
    if bounds is None:
        return None
    a = reals(bounds)
    if a is None or a.shape != (2,) or not a[0] < a[1]:
        raise invalid("bounds", "must be (lower, upper)", bounds)
    return float(a[0]), float(a[1])
