"""Plots of a quantity over one or two axes, with unreached cells and singular curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.description.units import row_unit
from kic.errors import InputError, invalid, unknown
from kic.numerics.arguments import integer, mapping, text
from kic.numerics.arrays import reals
from kic.plotting import figures
from kic.plotting.figures import INK, Picture, axis_label, literal, style

if TYPE_CHECKING:
    from kic.analysis.sweeps.result import Sweep

# percentage at either end that may be outliers; they are cut off if the range of all values exceeds this
# multiple of the range of the rest
OUTLIER_PERCENT, OUTLIER_RANGE_FACTOR = 2.0, 2.0
COLOUR_MAP = "viridis"
# cells that are not reached; colours and dashes of singular curves
_HATCHED = {"facecolor": "#ececec", "edgecolor": "#b4b4b4", "hatch": "/////", "linewidth": 0}
_SINGULAR_STYLES = ((figures.VERMILION, "-"), (figures.ORANGE, "--"))


@dataclass(frozen=True, eq=False)
class Axis:
    """Axis of a map: name, unit and values (n,)."""

    name: str
    unit: str
    values: np.ndarray

    @property
    def label(self) -> str:
        """Name with unit."""
        return axis_label(self.name, self.unit)

    @property
    def edges(self) -> np.ndarray:
        """Array (n + 1,) of the edges of the cells."""
        x = self.values
        middle = (x[1:] + x[:-1]) / 2
        return np.concatenate([[x[0] - (middle[0] - x[0])], middle, [x[-1] + (x[-1] - middle[-1])]])


def draw_map(
    x: Axis,
    y: Axis,
    label: str,
    values: np.ndarray,
    reached: np.ndarray,
    singular: Mapping[str, np.ndarray],
    title: str = "",
    bounds: tuple[float, float] | None = None,
    contours: int = 8,
    width: float = 3.5,
) -> Picture:
    """Plot values (n, m) over two axes as coloured cells with contour lines.

    Reached cells without a finite value are dotted, cells that are not `reached` (n, m) hatched. `singular`
    holds determinants (n, m) by name; a curve marks their change of sign. `bounds` are the range of the
    colours, `contours` is the approximate number of contour lines and `width` is in inches.
    """
    with style():
        Patch = figures.matplotlib_part("patches").Patch
        equal_scales = x.unit == y.unit and x.unit != "rad"
        figure = figures.new_figure(figures.check_width(width), width * 0.95)
        axes = figure.add_subplot()
        axes.set(xlabel=x.label, ylabel=y.label, title=literal(title))
        # hatch the background; reached cells cover it
        axes.patch.set(**_HATCHED)
        legend: list[Any] = [] if reached.all() else [Patch(**_HATCHED, label="not reached")]
        known = np.isfinite(values)
        low, high, extend = colour_limits(values[known], bounds)
        empty = reached & ~known
        if empty.any():
            white = figures.matplotlib_part("colors").ListedColormap(["#ffffff"])
            _cells(axes, x, y, np.where(empty, 0.0, np.nan), cmap=white)
            i, j = np.nonzero(empty)
            axes.plot(x.values[i], y.values[j], ".", color=INK, ms=1.2, mew=0, zorder=3)
            legend.append(Patch(facecolor="#ffffff", edgecolor=INK, hatch="....", lw=0, label="no value"))
        mesh = _cells(axes, x, y, np.where(known, values, np.nan), cmap=COLOUR_MAP, vmin=low, vmax=high)
        bar = figure.colorbar(mesh, ax=axes, label=label, extend=extend, shrink=0.9 if equal_scales else 1.0)
        if contours and min(values.shape) > 1 and high > low:
            ticker = figures.matplotlib_part("ticker")
            levels = ticker.MaxNLocator(contours).tick_values(low, high)
            levels = levels[(levels > low) & (levels < high)]
            if len(levels):
                masked = np.ma.masked_invalid(values)
                axes.contour(x.values, y.values, masked.T, levels, colors="white", linewidths=0.5, alpha=0.7)
                bar.add_lines(levels, ["white"] * len(levels), [0.5] * len(levels))
        for (name, side), (colour, dash) in zip(singular.items(), _SINGULAR_STYLES, strict=False):
            if has_both_signs(side):
                line = {"linewidths": 1.6, "linestyles": dash, "colors": colour}
                axes.contour(x.values, y.values, np.ma.masked_invalid(side).T, [0.0], **line)
                handle = figures.matplotlib_part("lines").Line2D([], [], color=colour, lw=1.6, ls=dash)
                handle.set_label(literal(name))
                legend.append(handle)
        axes.set_xlim(np.sort(x.edges[[0, -1]]))
        axes.set_ylim(np.sort(y.edges[[0, -1]]))
        if equal_scales:
            axes.set_aspect("equal")
        _add_legend(figure, legend)
    return Picture(figure, axes)


def draw_line(
    x: Axis,
    label: str,
    values: np.ndarray,
    reached: np.ndarray,
    singular: Mapping[str, np.ndarray],
    title: str = "",
    width: float = 3.5,
) -> Picture:
    """Plot values over one axis (n,); unreached intervals are hatched and singular positions marked."""
    with style():
        figure = figures.new_figure(figures.check_width(width), width * 0.7)
        axes = figure.add_subplot()
        axes.set(xlabel=x.label, ylabel=label, title=literal(title))
        axes.plot(x.values, np.where(np.isfinite(values), values, np.nan), color=figures.BLUE)
        legend: list[Any] = []
        edges = x.edges
        for first, last in true_runs(~reached):
            legend = [axes.axvspan(*np.sort(edges[[first, last]]), **_HATCHED, label="not reached")]
        for (name, side), (colour, dash) in zip(singular.items(), _SINGULAR_STYLES, strict=False):
            lines = [axes.axvline(place, color=colour, ls=dash) for place in zero_crossings(x.values, side)]
            for line in lines[-1:]:
                line.set_label(literal(name))
                legend.append(line)
        axes.set_xlim(np.sort(edges[[0, -1]]))
        _add_legend(figure, legend)
    return Picture(figure, axes)


def colour_limits(known: np.ndarray, bounds: tuple[float, float] | None) -> tuple[float, float, str]:
    """Return the range of the colours for values (k,) and the ends at which values exceed it.

    Examples
    --------
    >>> colour_limits(np.array([0.0, 1.0, 2.0, 3.0]), None)
    (0.0, 3.0, 'neither')
    """
    if not known.size:
        raise InputError("The map must contain a finite value, got none.", key="values")
    least, most = float(known.min()), float(known.max())
    low, high = least, most
    if bounds is not None:
        low, high = bounds
    else:
        inner = np.percentile(known, [OUTLIER_PERCENT, 100 - OUTLIER_PERCENT])
        if most - least > OUTLIER_RANGE_FACTOR * (inner[1] - inner[0]) > 0:
            # cut off each end independently
            span = inner[1] - inner[0]
            low = float(inner[0]) if inner[0] - least > (OUTLIER_RANGE_FACTOR - 1) / 2 * span else least
            high = float(inner[1]) if most - inner[1] > (OUTLIER_RANGE_FACTOR - 1) / 2 * span else most
    below, above = least < low, most > high
    return low, high, "both" if below and above else "min" if below else "max" if above else "neither"


def has_both_signs(side: np.ndarray) -> bool:
    """Return True if there are positive and negative values."""
    return bool((side > 0).any() and (side < 0).any())


def zero_crossings(x: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Return the positions of zeros of a determinant (n,) over x (n,): at a cell or between neighbours.

    Examples
    --------
    >>> zero_crossings(np.array([0.0, 1.0, 2.0]), np.array([-1.0, 1.0, 3.0])).tolist()
    [0.5]
    """
    a, b = side[:-1], side[1:]
    k = np.flatnonzero(a * b < 0)
    between = x[k] + (x[k + 1] - x[k]) * a[k] / (a[k] - b[k])
    return np.sort(np.concatenate([between, x[side == 0]]))


def true_runs(held: np.ndarray) -> list[tuple[int, int]]:
    """Return the first index and one past the last of each run of True (n,).

    Examples
    --------
    >>> true_runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    change = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(int), [0]])))
    return [(int(a), int(b)) for a, b in change.reshape(-1, 2)]


def _cells(axes: Any, x: Axis, y: Axis, values: np.ndarray, **how: Any) -> Any:
    """Draw coloured cells; NaN cells show the background."""
    shown = np.ma.masked_invalid(values).T
    return axes.pcolormesh(x.edges, y.edges, shown, shading="flat", rasterized=True, **how)


def _add_legend(figure: Any, handles: list[Any]) -> None:
    """Add a legend below the axes, if there are handles."""
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=1.8)


def plot_sweep(
    sweep: Sweep,
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
        if len(sweep.values) != 1:
            raise InputError(f"`of` must be one of the metrics: {', '.join(sweep.values)}.", key="of")
        of = next(iter(sweep.values))
    values = sweep[text("of", of)]
    if values.ndim != len(sweep.shape):
        raise InputError(
            f"'{of}' has values of shape {values.shape[len(sweep.shape) :]} in each cell; a map shows "
            "one number. Return several numbers by name.",
            name=of,
            got=values.shape[len(sweep.shape) :],
        )
    contours = integer("contours", contours, 0)
    where, cut_label = _cut(sweep, at)
    shown_axes = [axis for axis, index in zip(sweep.axes, where, strict=True) if isinstance(index, slice)]
    if len(shown_axes) not in (1, 2):
        raise InputError(
            f"A plot shows one or two axes, but {len(shown_axes)} are left: "
            f"{', '.join(shown_axes) or 'none'}. Cut with `at`, as "
            f"at={{'{next(iter(sweep.axes))}': value}}.",
            axes=tuple(shown_axes),
        )
    if not np.isfinite(values[where]).any():
        raise InputError(f"'{of}' has no value in any cell shown; see `reasons`.", name=of)
    axes = [Axis(axis, row_unit(sweep.mechanism, axis), sweep.axes[axis]) for axis in shown_axes]
    label = axis_label(of, sweep.units.get(of))
    reached = sweep.reached[where]
    singular = {f"{rows} singular": x[where] for (metric, rows), x in sweep.sides.items() if metric == of}
    shown = label, values[where], reached, singular, cut_label
    if len(axes) == 1:
        return draw_line(axes[0], *shown, width)
    return draw_map(axes[0], axes[1], *shown, _bounds(bounds), contours, width)


def _cut(sweep: Sweep, at: Mapping[str, float] | None) -> tuple[tuple[Any, ...], str]:
    """Return the index of the shown cells, and a description of the cut."""
    for axis in mapping("at", at, "axes to values") if at is not None else {}:
        if axis not in sweep.axes:
            raise unknown("axis", axis, "the sweep", sweep.axes, quoted=False)
    where: list[Any] = []
    cut_label = []
    for axis, values in sweep.axes.items():
        if axis not in (at or {}):
            where.append(slice(None) if len(values) > 1 else 0)
            continue
        cut = reals((at or {})[axis])
        low, high = values.min(), values.max()
        if cut is None or cut.ndim or not low <= cut <= high:
            rule = f"of '{axis}' must be a number from {low:g} to {high:g}"
            raise invalid("at", rule, (at or {})[axis], name=axis)
        where.append(int(np.argmin(np.abs(values - cut))))
        cut_label.append(f"{axis} = {values[where[-1]]:.4g} {row_unit(sweep.mechanism, axis)}")
    return tuple(where), ", ".join(cut_label)


def _bounds(bounds: Any) -> tuple[float, float] | None:
    """Return the checked range of the colours."""
    if bounds is None:
        return None
    a = reals(bounds)
    if a is None or a.shape != (2,) or not a[0] < a[1]:
        raise invalid("bounds", "must be (lower, upper)", bounds)
    return float(a[0]), float(a[1])
