"""Plots of a report: outputs over each coordinate, curves of points, closure conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.parts import Point
from kic.description.units import effort_unit, energy_unit, row_unit
from kic.description.validation import part_of
from kic.errors import KicError
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.display import largest_of
from kic.plotting.figures import INK, Picture, axis_label, literal, new_figure, style
from kic.tasks.actuation.distribution import static_efforts
from kic.ui.report.ranges import CoordinateRange

# sizes in inches; three panels fit side by side on a page
PANEL_SIZE, CURVE_SIZE = (3.15, 2.0), (4.0, 3.6)
# margins in inches, equal in all panels to align neighbours
LEFT, RIGHT, BELOW, ABOVE = 0.52, 0.06, 0.42, 0.16
# line styles, distinguishable without colours
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)))
PANEL_LINES_MAX = 6
# limit of the ordinate in medians of |y|, which cuts off poles at singular configurations
ORDINATE_MAX_FACTOR = 8.0
# relative to the largest value of a unit: smaller changes are round-off; with an axis from zero, invisible
CHANGE_RTOL, VISIBLE_CHANGE_RTOL = 1e-9, 0.02
# smallest contribution of a closure condition on the logarithmic axis
CONTRIBUTION_MIN = 1e-17


@dataclass(frozen=True, eq=False)
class Plot:
    """Picture with its caption and a text alternative."""

    picture: Picture
    caption: str
    alt: str


def coordinate_plots(span: CoordinateRange, rows: Sequence[str], mechanism: Mechanism) -> list[Plot]:
    """Plot outputs, effective inertias and holding efforts over one coordinate.

    There is one plot for each unit of the rows that change, then of the inertias I*_kk, then of the holding
    effort −Tᴸ of the coordinate, if masses and loads are given. Efforts, rates and powers of declared
    actuators follow, for a slow motion. Rows without a value are ignored. In an open chain a coordinate
    changes the inertia of the preceding coordinates, not its own.
    """
    u, values = mechanism.units, {row: _values(span.configuration, row) for row in rows if row != span.name}
    known = {row: y for row, y in values.items() if y is not None}
    units = {row: row_unit(mechanism, row) for row in known}
    shown = {row: "°" if unit == "rad" else unit for row, unit in units.items()}
    plots = _panels_by_unit(span, known, shown, "")
    try:
        dynamics = span.configuration.dynamics(failures="mask")
    except KicError:  # no masses, or a spring of zero length; the report prints the reason
        return plots
    names = dynamics.coordinates
    turns = {q: row_unit(mechanism, q) == "rad" for q in names}
    inertia = {q: dynamics.I[:, k, k] for k, q in enumerate(names)}
    per = {q: f"{u.mass} {u.length}²" if turn else u.mass for q, turn in turns.items()}
    plots += _panels_by_unit(span, inertia, per, "effective inertia", from_zero=True)
    effort = {span.name: -dynamics.load[:, names.index(span.name)]}
    per = {span.name: f"{u.force} {u.length}" if turns[span.name] else u.force}
    plots += _panels_by_unit(span, effort, per, "holding effort")
    return plots + _actuator_plots(span, mechanism) + _shaking_plots(span)


def _shaking_plots(span: CoordinateRange) -> list[Plot]:
    """Plot the force and moment on ground of a mechanism with one degree of freedom at unit rate."""
    if len(span.configuration.coordinates) != 1:
        return []
    try:
        s = span.configuration.shaking_force(1.0, failures="mask")
    except KicError:  # the report prints the reason
        return []
    plots = []
    for what, unit, lines in s.curves():
        per = dict.fromkeys(lines, f"{unit} per squared rate of {span.name}")
        plots += _panels_by_unit(span, lines, per, what)
    return plots


def _actuator_plots(span: CoordinateRange, mechanism: Mechanism) -> list[Plot]:
    """Plot holding efforts, rates and powers of actuators that are not the coordinates."""
    c, m = span.configuration, mechanism
    if m.actuators == m.coordinates:
        return []
    try:
        names, efforts = static_efforts(c, failures="mask")
        rates = c.coefficients(names, order=1, failures="mask").G[..., c.coordinates.index(span.name)]
    except KicError:  # the report prints the reason
        return []
    plots = []
    for what, values, units in (
        ("holding effort", efforts, {q: effort_unit(m, q) for q in names}),
        (f"rate per rate of {span.name}", rates, {q: f"{row_unit(m, q)}/{span.unit}" for q in names}),
        (
            f"power per rate of {span.name}",
            efforts * rates,
            {q: f"{energy_unit(m)}/{span.unit}" for q in names},
        ),
    ):
        plots += _panels_by_unit(span, dict(zip(names, values.T, strict=True)), units, what)
    return plots


def _panels_by_unit(
    span: CoordinateRange,
    lines: dict[str, np.ndarray],
    units: dict[str, str],
    what: str,
    from_zero: bool = False,
) -> list[Plot]:
    """Return one panel for each unit among the lines that change, at most `PANEL_LINES_MAX` lines in each.

    With an axis from zero, lines whose change is not visible are omitted.
    """
    plots = []
    for unit in dict.fromkeys(units.values()):
        alike = {name: y for name, y in lines.items() if units[name] == unit}
        size = max(map(largest_of, alike.values()))
        share = VISIBLE_CHANGE_RTOL if from_zero else CHANGE_RTOL
        own = {name: y for name, y in alike.items() if _changes(y, size, share)}
        first = sorted(own, key=lambda name: -float(np.ptp(own[name][np.isfinite(own[name])])))[
            :PANEL_LINES_MAX
        ]
        shown = {name: (np.degrees(y) if unit == "°" else y) for name, y in own.items() if name in first}
        more = (
            f" and {len(own) - PANEL_LINES_MAX} more with smaller changes"
            if len(own) > PANEL_LINES_MAX
            else ""
        )
        if shown:
            quantity = (
                what if what and len(shown) > 1 else " of ".join(filter(None, (what, ", ".join(shown))))
            )
            plots.append(_panel(span, shown, unit, quantity + more, from_zero))
    return plots


def _values(configuration: Configuration, row: str) -> np.ndarray | None:
    """Return the values (n,) of a row, or None for an angular velocity."""
    try:
        return configuration.value(row)
    except KicError:
        return None


def _changes(y: np.ndarray, size: float, share: float = CHANGE_RTOL) -> bool:
    """Return True if the range of the numbers exceeds a share of a reference size."""
    return bool(np.nanmax(y) - np.nanmin(y) > share * size)


def _axes() -> tuple[Any, Any]:
    """Return figure and axes of a panel; the fixed layout takes half the time of a constrained layout."""
    figure = new_figure(*PANEL_SIZE)
    figure.set_layout_engine(None)
    wide, high = PANEL_SIZE
    figure.subplots_adjust(LEFT / wide, BELOW / high, 1 - RIGHT / wide, 1 - ABOVE / high)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _panel(
    span: CoordinateRange, lines: dict[str, np.ndarray], unit: str, what: str, from_zero: bool = False
) -> Plot:
    """Plot lines over the coordinate with a dot at the given configuration."""
    factor, sign = (np.degrees(1.0), "°") if span.unit == "rad" else (1.0, f" {span.unit}")
    x = factor * span.values
    with style():
        figure, axes = _axes()
        axes.axvline(x[span.index], color=INK, linewidth=0.6, alpha=0.4)
        for k, (name, y) in enumerate(lines.items()):
            (line,) = axes.plot(x, y, label=literal(name), linestyle=DASHES[k % len(DASHES)])
            axes.plot(x[span.index], y[span.index], "o", color=line.get_color(), markersize=3.5)
        if len(lines) > 1:
            axes.legend(fontsize=7, handlelength=2.2, loc="best")
        axes.set_xlabel(axis_label(span.name, sign.strip()))
        axes.ticklabel_format(axis="y", scilimits=(-3, 4), useOffset=False)
        axes.margins(x=0.02)
        if span.unit == "rad":
            axes.xaxis.set_major_locator(_degrees(span))
        beyond = _set_ordinate(axes, np.array(list(lines.values())), from_zero)
    first, last = (f"{factor * value:.4g}{sign}" for value in span.limits)
    ranges = "; ".join(f"{name} from {np.nanmin(y):.4g} to {np.nanmax(y):.4g}" for name, y in lines.items())
    caption = f"{what} ({unit})" + ", large values cut off" * beyond
    alt = f"{what} in {unit} over {span.name} from {first} to {last}: {ranges}"
    return Plot(Picture(figure, axes), caption, f"{alt}.")


def _degrees(span: CoordinateRange) -> Any:
    """Return ticks at round angles."""
    from matplotlib.ticker import MultipleLocator

    low, high = np.degrees(span.limits)
    return MultipleLocator(next((step for step in (1, 5, 15, 30, 45) if high - low < 5 * step), 90))


def _set_ordinate(axes: Any, y: np.ndarray, from_zero: bool) -> bool:
    """Set limits of the ordinate that cut off poles; return True if values are cut off."""
    typical, finite = max(float(np.nanmedian(np.abs(line))) for line in y), y[np.isfinite(y)]
    if not typical:
        return False
    largest = ORDINATE_MAX_FACTOR * typical
    low, high = max(float(finite.min()), -largest), min(float(finite.max()), largest)
    cuts = bool(low > finite.min() or high < finite.max())
    if from_zero:
        axes.set_ylim(0.0, 1.08 * high)
    elif cuts:
        margin = 0.05 * (high - low)
        axes.set_ylim(low - margin, high + margin)
    return cuts


def point_curves(mechanism: Mechanism, spans: Sequence[CoordinateRange], names: Sequence[str]) -> list[Plot]:
    """Plot the curves of points while each coordinate moves alone, such as a coupler curve.

    Names or rows that do not belong to a point are ignored. Each point of a planar mechanism has one plot;
    points of a spatial mechanism have a top and a front view.
    """
    points = list(dict.fromkeys(part_of(name) for name in names))
    points = [name for name in points if isinstance(mechanism[name], Point)]
    plots = []
    for name in points:
        curves = {span.name: span.configuration.value(name) for span in spans}
        size = max(map(largest_of, curves.values()), default=0.0)
        curves = {q: xyz for q, xyz in curves.items() if any(_changes(x, size) for x in xyz.T)}
        if curves:
            here = spans[0].configuration.value(name)[spans[0].index]
            plots += [_curve(mechanism, name, curves, here, pair) for pair in _views(mechanism)]
    return plots


def _views(mechanism: Mechanism) -> list[tuple[int, int]]:
    """Return the pairs of world axes in which curves are drawn."""
    normal = model_of(mechanism).tree.planar_normal
    if normal is not None:
        flat = [k for k in range(3) if abs(normal[k]) < 1e-9]
        if len(flat) == 2:
            return [(flat[0], flat[1])]
    return [(0, 1), (0, 2)]


def _curve(
    mechanism: Mechanism, name: str, curves: dict[str, np.ndarray], here: np.ndarray, pair: tuple[int, int]
) -> Plot:
    """Plot curves of a point in two world axes with equal scales."""
    figure, unit = new_figure(*CURVE_SIZE), mechanism.units.length
    a, b = pair
    with style():
        axes = figure.add_subplot()
        for k, (q, curve) in enumerate(curves.items()):
            axes.plot(
                curve[:, a], curve[:, b], label=literal(f"moving {q}"), linestyle=DASHES[k % len(DASHES)]
            )
        axes.plot(here[a], here[b], "o", color=INK, markersize=4, zorder=5)
        axes.set_aspect("equal", "datalim")
        axes.set_xlabel(axis_label(f"{name}.{'xyz'[a]}", unit))
        axes.set_ylabel(axis_label(f"{name}.{'xyz'[b]}", unit))
        axes.margins(0.08)
        axes.spines[["top", "right"]].set_visible(False)
        if len(curves) > 1:
            figure.legend(loc="outside upper left", ncols=3, fontsize=7, handlelength=2.2)
    plane = f"{'xyz'[a]}{'xyz'[b]}"
    caption = f"{name} in the {plane} plane"
    ends = "; ".join(
        f"moving {q} it spans {_span(curve[:, a])} in {'xyz'[a]} and {_span(curve[:, b])} in {'xyz'[b]}"
        for q, curve in curves.items()
    )
    return Plot(Picture(figure, axes), caption, f"Curve of {name} in the {plane} plane, in {unit}: {ends}.")


def _span(y: np.ndarray) -> str:
    return f"{np.nanmin(y):.4g} to {np.nanmax(y):.4g}"


def closure_condition_plots(mechanism: Mechanism, configuration: Configuration) -> list[Plot]:
    """Plot the contribution of each closure condition at a single configuration; none for an open chain."""
    if model_of(mechanism).tree.open:
        return []
    account = mechanism.mobility(configuration)
    kept, total = account.coordinates - account.first_order, sum(account.conditions.values())
    shares = np.zeros(total)  # conditions beyond the number of coordinates contribute nothing
    shares[: len(account.shares)] = account.shares
    y, n = np.maximum(shares, CONTRIBUTION_MIN), np.arange(1, len(shares) + 1)
    with style():
        figure, axes = _axes()
        axes.vlines(n, CONTRIBUTION_MIN, y, color=INK, linewidth=0.8, alpha=0.4)
        axes.plot(n[:kept], y[:kept], "o", markersize=4, label=f"{kept} independent")
        if kept < len(shares):
            label = f"{len(shares) - kept} redundant"
            axes.plot(n[kept:], y[kept:], "o", markersize=4, markerfacecolor="white", label=label)
        axes.set_yscale("log")
        axes.set_ylim(CONTRIBUTION_MIN, 5.0)
        axes.set_yticks([1.0, 1e-4, 1e-8, 1e-12, 1e-16], ["1", "1e-4", "1e-8", "1e-12", "1e-16"])
        axes.set_xlim(0.5, len(shares) + 0.5)
        axes.set_xlabel("closure condition, in descending order")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0.0, 0.1))
    least = f"the smallest contribution {shares[kept - 1]:.2g} of the largest"
    alt = f"{kept} conditions are independent, {least}"
    if kept < len(shares):
        alt += f"; {len(shares) - kept} are redundant, the largest contribution {shares[kept]:.2g}"
    caption = "contribution of each closure condition, relative to the largest"
    return [Plot(Picture(figure, axes), caption, f"{alt}.")]
