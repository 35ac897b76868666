"""Plots of a report: what the coordinates do one at a time, where points go, what holds the loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.description.parts import Point
from kic.display import largest_of
from kic.errors import KicError
from kic.kinematics.scales import row_unit
from kic.mechanism import Mechanism
from kic.plotting.figures import INK, Picture, axis_label, literal, new_figure, style
from kic.report.ranges import CoordinateRange

# inches: three panels stand beside each other on a page
PANEL, SQUARE = (3.15, 2.0), (4.0, 3.6)
# inches around the axes of a panel: the same in all, so that neighbours are level
LEFT, RIGHT, BELOW, ABOVE = 0.52, 0.06, 0.42, 0.16
# told apart without colours
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)))
# more lines in one panel are not told apart
MOST = 6
# near singular postures numbers grow without bound: the frame ends at so many times the usual one
FRAME = 8.0
# what changes by less, beside the largest of its kind, does not; what by less of the frame is a level line
ROUNDING, VISIBLE = 1e-9, 0.02
# shares of conditions below this are drawn there
FLOOR = 1e-17


@dataclass(frozen=True, eq=False)
class Plot:
    """A picture with its caption, and with words for those who do not see it."""

    picture: Picture
    caption: str
    alt: str


def coordinate_plots(span: CoordinateRange, rows: Sequence[str], mechanism: Mechanism) -> list[Plot]:
    """What is asked, effective inertias and the holding effort, as they change while one coordinate moves.

    Parameters
    ----------
    span : CoordinateRange
        The coordinate and its postures.
    rows : sequence of str
        Rows of dependents; those without a value are passed over.
    mechanism : Mechanism
        The mechanism.

    Returns
    -------
    list of Plot
        One for each unit among the rows that change, then among the inertias I*_kk, then the coordinate's own
        effort −Tᴸ, as far as there are masses and loads. In an open chain a coordinate changes the inertia
        of those before it, not its own.
    """
    u, values = mechanism.units, {row: _values(span.configuration, row) for row in rows if row != span.name}
    known = {row: y for row, y in values.items() if y is not None}
    units = {row: row_unit(mechanism, row) for row in known}
    plots = _grouped(span, known, {row: "°" if unit == "rad" else unit for row, unit in units.items()}, "")
    try:
        dynamics = span.configuration.dynamics(failures="mask")
    except KicError:  # no masses, or springs whose ends meet: the table of the report says so
        return plots
    names = dynamics.coordinates
    turns = {q: row_unit(mechanism, q) == "rad" for q in names}
    inertia = {q: dynamics.I[:, k, k] for k, q in enumerate(names)}
    per = {q: f"{u.mass} {u.length}²" if turn else u.mass for q, turn in turns.items()}
    plots += _grouped(span, inertia, per, "effective inertia", from_zero=True)
    effort = {span.name: -dynamics.load[:, names.index(span.name)]}
    per = {span.name: f"{u.force} {u.length}" if turns[span.name] else u.force}
    return plots + _grouped(span, effort, per, "holding effort")


def _grouped(
    span: CoordinateRange,
    lines: dict[str, np.ndarray],
    units: dict[str, str],
    what: str,
    from_zero: bool = False,
) -> list[Plot]:
    """One panel for each unit among the lines that change; of many lines those that change most.

    A line that starts at zero must change so much that it is seen.
    """
    plots = []
    for unit in dict.fromkeys(units.values()):
        alike = {name: y for name, y in lines.items() if units[name] == unit}
        size = max(map(largest_of, alike.values()))
        own = {name: y for name, y in alike.items() if _changes(y, size, VISIBLE if from_zero else ROUNDING)}
        first = sorted(own, key=lambda name: -float(np.ptp(own[name][np.isfinite(own[name])])))[:MOST]
        shown = {name: (np.degrees(y) if unit == "°" else y) for name, y in own.items() if name in first}
        more = f" and {len(own) - MOST} more that change less" if len(own) > MOST else ""
        if shown:
            said = what if what and len(shown) > 1 else " of ".join(filter(None, (what, _listed(shown))))
            plots.append(_panel(span, shown, unit, said + more, from_zero))
    return plots


def _values(configuration: Configuration, row: str) -> np.ndarray | None:
    """Values (n,) of a row; None of an angular velocity."""
    try:
        return configuration.value(row)
    except KicError:
        return None


def _changes(y: np.ndarray, size: float, share: float = ROUNDING) -> bool:
    """Whether numbers differ by more than a share of the size of what they stand with."""
    return bool(np.nanmax(y) - np.nanmin(y) > share * size)


def _axes() -> tuple[Any, Any]:
    """Figure and axes of a panel; a layout that is fixed costs half the time of one that is found."""
    figure = new_figure(*PANEL)
    figure.set_layout_engine(None)
    wide, high = PANEL
    figure.subplots_adjust(LEFT / wide, BELOW / high, 1 - RIGHT / wide, 1 - ABOVE / high)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _panel(
    span: CoordinateRange, lines: dict[str, np.ndarray], unit: str, what: str, from_zero: bool = False
) -> Plot:
    """Lines over the coordinate, with a dot at the posture."""
    factor, sign = (np.degrees(1.0), "°") if span.unit == "rad" else (1.0, f" {span.unit}")
    x = factor * span.values
    with style():
        figure, axes = _axes()
        axes.axvline(x[span.here], color=INK, linewidth=0.6, alpha=0.4)
        for k, (name, y) in enumerate(lines.items()):
            (line,) = axes.plot(x, y, label=literal(name), linestyle=DASHES[k % len(DASHES)])
            axes.plot(x[span.here], y[span.here], "o", color=line.get_color(), markersize=3.5)
        if len(lines) > 1:
            axes.legend(fontsize=7, handlelength=2.2, loc="best")
        axes.set_xlabel(axis_label(span.name, sign.strip()))
        axes.ticklabel_format(axis="y", scilimits=(-3, 4), useOffset=False)
        axes.margins(x=0.02)
        if span.unit == "rad":
            axes.xaxis.set_major_locator(_degrees(span))
        beyond = _frame(axes, np.array(list(lines.values())), from_zero)
    first, last = (f"{factor * value:.4g}{sign}" for value in span.reached)
    said = "; ".join(f"{name} from {np.nanmin(y):.4g} to {np.nanmax(y):.4g}" for name, y in lines.items())
    caption = f"{what} ({unit})" + ", cut off where large" * beyond
    alt = f"{what} in {unit} over {span.name} from {first} to {last}: {said}"
    return Plot(Picture(figure, axes), caption, f"{alt}.")


def _degrees(span: CoordinateRange) -> Any:
    """Ticks at angles that people know."""
    from matplotlib.ticker import MultipleLocator

    low, high = np.degrees(span.reached)
    return MultipleLocator(next((step for step in (1, 5, 15, 30, 45) if high - low < 5 * step), 90))


def _frame(axes: Any, y: np.ndarray, from_zero: bool) -> bool:
    """Set the limits of the ordinate so that a pole does not flatten the rest; whether it cuts something."""
    usual, finite = max(float(np.nanmedian(np.abs(line))) for line in y), y[np.isfinite(y)]
    low, high = max(float(finite.min()), -FRAME * usual), min(float(finite.max()), FRAME * usual)
    if not usual:
        return False
    if from_zero:
        axes.set_ylim(0.0, 1.08 * high)
    elif low > finite.min() or high < finite.max():
        room = 0.05 * (high - low)
        axes.set_ylim(low - room, high + room)
    return bool(low > finite.min() or high < finite.max())


def point_curves(mechanism: Mechanism, spans: Sequence[CoordinateRange], names: Sequence[str]) -> list[Plot]:
    """Where points go while each coordinate moves alone: of one freedom, the coupler curve.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    spans : sequence of CoordinateRange
        Coordinates and their postures.
    names : sequence of str
        Names or rows of dependents; points among them are drawn.

    Returns
    -------
    list of Plot
        One of each point in its plane; of mechanisms in space one from above and one from the front.
    """
    points = list(dict.fromkeys(name.partition(".")[0] for name in names))
    points = [name for name in points if isinstance(mechanism.part(name), Point)]
    plots = []
    for name in points:
        ways = {span.name: span.configuration.value(name) for span in spans}
        size = max(map(largest_of, ways.values()), default=0.0)
        ways = {q: way for q, way in ways.items() if any(_changes(way[:, k], size) for k in range(3))}
        if ways:
            here = spans[0].configuration.value(name)[spans[0].here]
            plots += [_curve(mechanism, name, ways, here, pair) for pair in _views(mechanism)]
    return plots


def _views(mechanism: Mechanism) -> list[tuple[int, int]]:
    """Pairs of world axes in which curves are drawn."""
    normal = mechanism._model.tree.planar_normal
    if normal is not None:
        flat = [k for k in range(3) if abs(normal[k]) < 1e-9]
        if len(flat) == 2:
            return [(flat[0], flat[1])]
    return [(0, 1), (0, 2)]


def _curve(
    mechanism: Mechanism, name: str, ways: dict[str, np.ndarray], here: np.ndarray, pair: tuple[int, int]
) -> Plot:
    """The ways of a point in two world axes, in equal scales."""
    figure, unit = new_figure(*SQUARE), mechanism.units.length
    a, b = pair
    with style():
        axes = figure.add_subplot()
        for k, (q, way) in enumerate(ways.items()):
            axes.plot(way[:, a], way[:, b], label=literal(f"moving {q}"), linestyle=DASHES[k % len(DASHES)])
        axes.plot(here[a], here[b], "o", color=INK, markersize=4, zorder=5)
        axes.set_aspect("equal", "datalim")
        axes.set_xlabel(axis_label(f"{name}.{'xyz'[a]}", unit))
        axes.set_ylabel(axis_label(f"{name}.{'xyz'[b]}", unit))
        axes.margins(0.08)
        axes.spines[["top", "right"]].set_visible(False)
        if len(ways) > 1:
            figure.legend(loc="outside upper left", ncols=3, fontsize=7, handlelength=2.2)
    plane = f"{'xyz'[a]}{'xyz'[b]}"
    caption = f"{name} in the {plane} plane"
    ends = "; ".join(
        f"moving {q} it spans {_span(way[:, a])} in {'xyz'[a]} and {_span(way[:, b])} in {'xyz'[b]}"
        for q, way in ways.items()
    )
    return Plot(Picture(figure, axes), caption, f"Curve of {name} in the {plane} plane, in {unit}: {ends}.")


def _span(y: np.ndarray) -> str:
    return f"{np.nanmin(y):.4g} to {np.nanmax(y):.4g}"


def closure_condition_plots(mechanism: Mechanism, configuration: Configuration) -> list[Plot]:
    """What every closure condition adds to those before it; none for an open chain.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    configuration : Configuration
        One posture of it.

    Returns
    -------
    list of Plot
    """
    if mechanism._model.tree.open:
        return []
    account = mechanism.mobility(configuration)
    kept, total = account.coordinates - account.first_order, sum(account.conditions.values())
    shares = np.zeros(total)  # of more conditions than coordinates the last add nothing
    shares[: len(account.shares)] = account.shares
    y, n = np.maximum(shares, FLOOR), np.arange(1, len(shares) + 1)
    with style():
        figure, axes = _axes()
        axes.vlines(n, FLOOR, y, color=INK, linewidth=0.8, alpha=0.4)
        axes.plot(n[:kept], y[:kept], "o", markersize=4, label=f"{kept} independent")
        if kept < len(shares):
            said = f"{len(shares) - kept} that follow"
            axes.plot(n[kept:], y[kept:], "o", markersize=4, markerfacecolor="white", label=said)
        axes.set_yscale("log")
        axes.set_ylim(FLOOR, 5.0)
        axes.set_yticks([1.0, 1e-4, 1e-8, 1e-12, 1e-16], ["1", "1e-4", "1e-8", "1e-12", "1e-16"])
        axes.set_xlim(0.5, len(shares) + 0.5)
        axes.set_xlabel("condition, the best first")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0.0, 0.1))
    alt = f"{kept} conditions are independent, the weakest worth {shares[kept - 1]:.2g} of the best"
    if kept < len(shares):
        alt += f"; {len(shares) - kept} follow from them, the strongest worth {shares[kept]:.2g}"
    return [Plot(Picture(figure, axes), "worth of each closure condition, as a share of the best", f"{alt}.")]


def _listed(names: Any) -> str:
    return ", ".join(names)
