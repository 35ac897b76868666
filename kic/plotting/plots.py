"""Panels: what moves in time, named and with its units, ready to be plotted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.errors import InputError
from kic.kinematics.scales import effort_unit, rate_unit, row_unit
from kic.plotting.figures import COLUMN, INK, Picture, axis_label, check_width, literal, new_figure, style

# inches: a panel's height at least, that of a name at a line's end, and what stands below the lowest panel
PANEL, NAME, FOOT = 1.15, 0.135, 0.45
# of a panel that stands still: numbers are the same to so many of their digits
STILL = 1e-9
# so many names find room in one panel
MOST = 24


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines of one unit over time.

    Attributes
    ----------
    what : str
        What they are, such as "value" or "effort".
    unit : str
        Their unit; '' for none.
    lines : dict of str to (T,)
        By name.
    """

    what: str
    unit: str
    lines: Mapping[str, np.ndarray]

    @property
    def label(self) -> str:
        """What stands at its axis."""
        return axis_label(self.what, self.unit)


def by_unit(what: str, units: Sequence[str], names: Sequence[str], values: np.ndarray) -> list[Panel]:
    """Panels of columns (T, n), one for each unit, in the order in which units first come.

    Examples
    --------
    >>> [panel.label for panel in by_unit("value", ["rad", "m", "rad"], ["a", "b", "c"], np.zeros((2, 3)))]
    ['value (rad)', 'value (m)']
    """
    return [
        Panel(
            what,
            unit,
            {n: values[:, k] for k, (n, u) in enumerate(zip(names, units, strict=True)) if u == unit},
        )
        for unit in dict.fromkeys(units)
    ]


def draw_plots(
    t: np.ndarray,
    panels: Sequence[Panel],
    unit: str = "s",
    marks: Iterable[float] = (),
    width: float = COLUMN,
    title: str = "",
) -> Picture:
    """Panels above one another that share the axis of time.

    Parameters
    ----------
    t : (T,)
        Times.
    panels : list of Panel
        From the top.
    unit : str
        Of time.
    marks : list of float
        Times at which a thin line goes through all panels, such as those of events.
    width : float
        In inches.
    title : str
        Above them.

    Returns
    -------
    Picture
        Its ``axes`` are a tuple, one for each panel.

    Raises
    ------
    InputError
        For no panel, or more names in one than can be told apart.
    MissingExtraError
        Without Matplotlib.
    """
    if not panels:
        raise InputError("There is nothing to plot.")
    crowded = [panel for panel in panels if len(panel.lines) > MOST]
    if crowded:
        raise InputError(
            f"{len(crowded[0].lines)} lines in one panel ({crowded[0].label}) can not be told apart; {MOST} "
            "at most. Name fewer."
        )
    heights = [max(PANEL, NAME * (len(panel.lines) + 1)) for panel in panels]
    with style():
        figure = new_figure(check_width(width), sum(heights) + FOOT)
        figure.get_layout_engine().set(h_pad=0.02, hspace=0.02)
        all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for axes, panel, height in zip(all_axes, panels, heights, strict=True):
            axes.set_ylabel(panel.label)
            if len(t) > 1 and t[0] != t[-1]:
                axes.set_xlim(t[0], t[-1])
            for k, (name, y) in enumerate(panel.lines.items()):
                dash = ("-", "--", ":", "-.")[k // 7 % 4]
                axes.plot(t, np.where(np.isfinite(y), y, np.nan), dash, label=literal(name))
            for when in marks:
                axes.axvline(when, color=INK, lw=0.5, ls=(0, (2, 2)), zorder=0)
            axes.set_ylim(*axis_limits(list(panel.lines.values())))
            axes.ticklabel_format(axis="y", useOffset=False, scilimits=(-3, 4))
            _name_lines(axes, height)
        all_axes[0].set_title(literal(title))
        all_axes[-1].set_xlabel(axis_label("t", unit))
        figure.align_ylabels(all_axes)
    return Picture(figure, tuple(all_axes))


def axis_limits(lines: Sequence[np.ndarray]) -> tuple[float, float]:
    """Ends of an axis that shows lines, with what stands still standing still: rounding is not blown up.

    Examples
    --------
    >>> axis_limits([np.array([0.0, 1.0])])
    (-0.06, 1.06)
    """
    known = np.concatenate([y[np.isfinite(y)] for y in lines] or [np.zeros(0)])
    if not known.size:
        return -1.0, 1.0
    low, high = float(known.min()), float(known.max())
    size = max(abs(low), abs(high))
    if high - low <= STILL * size or size == 0:
        return (low + high) / 2 - max(0.5 * size, 0.5 * (size == 0)), (low + high) / 2 + max(
            0.5 * size, 0.5 * (size == 0)
        )
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def separate(places: np.ndarray, gap: float) -> np.ndarray:
    """Places (n,) moved as little as may be so that they are a gap apart, within 0 to 1 as far as they fit.

    Examples
    --------
    >>> separate(np.array([0.5, 0.5]), 0.2).tolist()
    [0.4, 0.6]
    """
    order = np.argsort(places, kind="stable")
    # groups of names that touch: their middle, and how many they are
    groups: list[tuple[float, int]] = []
    for place in places[order]:
        groups.append((float(place), 1))
        while True:
            middle, n = groups[-1]
            half = (n - 1) * gap / 2
            middle = min(max(middle, half), max(1 - half, half))
            groups[-1] = middle, n
            if len(groups) < 2:
                break
            below, m = groups[-2]
            if middle - half - (below + (m - 1) * gap / 2) >= gap - 1e-12:
                break
            groups[-2:] = [((below * m + middle * n) / (m + n), m + n)]
    spread = np.concatenate([middle + gap * (np.arange(n) - (n - 1) / 2) for middle, n in groups])
    moved = np.empty(len(places))
    moved[order] = spread
    return moved


def _name_lines(axes: Any, height: float) -> None:
    """Each line's name at its end, in its colour, none over another."""
    low, high = axes.get_ylim()
    lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
    ends = []
    for line in lines:
        y = np.asarray(line.get_ydata())
        known = y[np.isfinite(y)]
        ends.append((known[-1] - low) / (high - low) if known.size else 0.0)
    for line, end, place in zip(lines, ends, separate(np.array(ends), NAME / height), strict=True):
        axes.annotate(
            line.get_label(),
            (1.0, end),
            (1.05, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=line.get_color(),
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "lw": 0.5,
                "color": line.get_color(),
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )


# what a derivative of so high order is called
ORDERS = ("value", "rate", "acceleration", "jerk")
# beside rows that move, those that do not (in a plane, say) are left out
CONSTANT_RTOL = 1e-12


def motion_panels(
    drawing: MechanismDescription, names: Sequence[str], values: np.ndarray, order: int = 0, what: str = ""
) -> list[Panel]:
    """Values (T, n) of rows, or their derivatives in time: a panel for each unit.

    Parameters
    ----------
    drawing : Drawing
        Which knows the units.
    names : list of str
        Of n rows.
    values : (T, n)
        Columns.
    order : {0, 1, 2, 3}
        Which derivative.
    what : str
        What they are called, if not after their order.
    """
    units = [rate_unit(row_unit(drawing, name), drawing.units.time, order) for name in names]
    return by_unit(what or ORDERS[order], units, names, values)


def effort_panels(drawing: MechanismDescription, names: Sequence[str], efforts: np.ndarray) -> list[Panel]:
    """Efforts (T, n) at rows: a panel for each unit."""
    return by_unit("effort", [effort_unit(drawing, name) for name in names], names, efforts)


def part_panels(
    drawing: MechanismDescription, configuration: Any, names: Sequence[str], which: Any = ...
) -> list[Panel]:
    """Values of points, joints, distances or rows at postures, of which an index takes (T,): some panels.

    Names of single rows come first, a panel for each unit; then each part with several. Rows of a part that
    stand still while others of it move are left out, such as z in a plane.
    """
    panels: list[Panel] = []
    plain: list[str] = []
    columns: list[np.ndarray] = []
    for name in names:
        values = configuration.value(name)[which]
        if values.ndim == 1:
            plain.append(name)
            columns.append(values)
            continue
        labels = configuration.coefficients(name, order=1).rows
        moved = np.ptp(values, axis=0) > CONSTANT_RTOL * max(float(np.abs(values).max()), 1e-300)
        kept = np.flatnonzero(moved) if moved.any() else np.arange(len(labels))
        panels += motion_panels(drawing, [labels[k] for k in kept], values[:, kept])
    if plain:
        panels = motion_panels(drawing, plain, np.stack(columns, axis=1)) + panels
    return panels


def course_index(batch: tuple[int, ...], member: Any) -> tuple[Any, ...]:
    """Index of one course in a batch of courses (beside time).

    Raises
    ------
    InputError
        If there are several and none is named, or there is no such one.
    """
    index = () if member is None else tuple(np.atleast_1d(np.asarray(member)).tolist())
    fits = len(index) == len(batch) and all(
        isinstance(i, int) and -n <= i < n for i, n in zip(index, batch, strict=True)
    )
    if not fits:
        raise InputError(
            f"A plot shows one course; this is a batch {batch} of them. Give `member`, the index of one, as "
            f"member={tuple(0 for _ in batch)}; got {member}."
            if batch
            else f"There is but one course here: leave `member` out, got {member}."
        )
    return index
