"""Plots over time: panels of lines with names and units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.units import effort_unit, motor_unit, rate_unit, row_unit
from kic.errors import InputError
from kic.numerics.display import cut
from kic.plotting.figures import COLUMN, INK, Picture, axis_label, check_width, literal, new_figure, style

# heights in inches: a panel, the name of a line, the time axis
PANEL_HEIGHT_MIN, NAME_HEIGHT, TIME_AXIS_HEIGHT = 1.15, 0.135, 0.45
# values with a smaller relative range are constant up to round-off
CONSTANT_RANGE_RTOL = 1e-9
if TYPE_CHECKING:
    from kic.analysis.identification.calibrate import Calibration
    from kic.analysis.identification.identify import Identification
    from kic.analysis.tolerances.tolerance_analysis import ToleranceAnalysis

# standard deviations that contain 95 % of normal noise
NOISE_95 = 1.96
# standard deviations of limits of deviations
LIMIT_SIGMAS = 3.0
# most rows in a panel of residuals, most bars in one of shares, and the length of their names
PANEL_ROWS_MAX, BARS_MAX, BAR_NAME_MAX = 3, 12, 20
# maximum number of lines in a panel, limited by the room for names
LINES_MAX = 24


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines of one unit over time."""

    what: str  # quantity, such as "value" or "effort"
    unit: str  # unit; '' if dimensionless
    lines: Mapping[str, np.ndarray]  # (T,) by name

    @property
    def label(self) -> str:
        """Label of the ordinate."""
        return axis_label(self.what, self.unit)


def by_unit(what: str, units: Sequence[str], names: Sequence[str], values: np.ndarray) -> list[Panel]:
    """Return panels of columns (T, n), one for each unit, in the order of first occurrence.

    Examples
    --------
    >>> [panel.label for panel in by_unit("value", ["rad", "m", "rad"], ["a", "b", "c"], np.zeros((2, 3)))]
    ['value (rad)', 'value (m)']
    """
    lines = {name: (values[:, k], units[k]) for k, name in enumerate(names)}
    return [
        Panel(what, unit, {name: y for name, (y, own) in lines.items() if own == unit})
        for unit in dict.fromkeys(units)
    ]


def draw_plots(
    t: np.ndarray,
    panels: Sequence[Panel],
    unit: str = "s",
    marks: Iterable[float] = (),
    width: float = COLUMN,
    title: str = "",
    abscissa: str = "t",
) -> Picture:
    """Plot panels one above the other with a common time axis; the ``axes`` of the picture are a tuple.

    `marks` are times marked by a thin line through all panels, such as those of events; `width` is in inches.
    Raise InputError if there is no panel or more than 24 lines in one, MissingExtraError without Matplotlib.
    """
    if not panels:
        raise InputError(
            "A plot must have at least one panel, got none. Name quantities that have values: ideal torque "
            "sources, for example, have no current.",
            key="panels",
        )
    crowded = [panel for panel in panels if len(panel.lines) > LINES_MAX]
    if crowded:
        message = (
            f"A panel must have at most {LINES_MAX} lines, got {len(crowded[0].lines)} in "
            f"'{crowded[0].label}'. Name fewer."
        )
        raise InputError(message, key="panels", got=len(crowded[0].lines))
    heights = [max(PANEL_HEIGHT_MIN, NAME_HEIGHT * (len(panel.lines) + 1)) for panel in panels]
    with style():
        figure = new_figure(check_width(width), sum(heights) + TIME_AXIS_HEIGHT)
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
        all_axes[-1].set_xlabel(axis_label(abscissa, unit))
        figure.align_ylabels(all_axes)
    return Picture(figure, tuple(all_axes))


def axis_limits(lines: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return limits of an axis for lines; round-off of constant values is not magnified.

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
    if high - low <= CONSTANT_RANGE_RTOL * size or size == 0:
        low = high = (low + high) / 2
        margin = 0.5 * size if size else 0.5
    else:
        margin = 0.06 * (high - low)
    return low - margin, high + margin


def separate(places: np.ndarray, gap: float) -> np.ndarray:
    """Return positions (n,) shifted as little as possible to be a gap apart, within 0 to 1 if they fit.

    Examples
    --------
    >>> separate(np.array([0.5, 0.5]), 0.2).tolist()
    [0.4, 0.6]
    """
    order = np.argsort(places, kind="stable")
    # adjacent groups of positions: middle and number
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
    """Label each line at its end in its colour, without overlap."""
    low, high = axes.get_ylim()
    lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
    ends = []
    for line in lines:
        y = np.asarray(line.get_ydata())
        known = y[np.isfinite(y)]
        ends.append((known[-1] - low) / (high - low) if known.size else 0.0)
    for line, end, place in zip(lines, ends, separate(np.array(ends), NAME_HEIGHT / height), strict=True):
        colour = line.get_color()
        leader = {"arrowstyle": "-", "lw": 0.5, "color": colour, "shrinkA": 1, "shrinkB": 0}
        axes.annotate(
            line.get_label(), (1.0, end), (1.05, place), xycoords="axes fraction",
            textcoords="axes fraction", color=colour, va="center", annotation_clip=False,
            arrowprops={**leader, "relpos": (0.0, 0.5)},
        )  # fmt: skip


# names of derivatives by order
ORDERS = ("value", "rate", "acceleration", "jerk")
# rows with a smaller relative range are constant and omitted from panels with moving rows
CONSTANT_RTOL = 1e-12


def motion_panels(
    description: MechanismDescription,
    names: Sequence[str],
    values: np.ndarray,
    order: int = 0,
    what: str = "",
) -> list[Panel]:
    """Return panels of row values (T, n) or their time derivatives, one for each unit.

    `what` names the quantity, by default from the order of the derivative, 0 to 3.
    """
    units = [rate_unit(row_unit(description, name), description.units.time, order) for name in names]
    return by_unit(what or ORDERS[order], units, names, values)


def effort_panels(
    description: MechanismDescription, names: Sequence[str], efforts: np.ndarray
) -> list[Panel]:
    """Return panels of efforts (T, n) at rows, one for each unit."""
    return by_unit("effort", [effort_unit(description, name) for name in names], names, efforts)


def plot_identification(found: Identification, *, width: float = COLUMN) -> Picture:
    """Plot the measured and estimated efforts, and the residuals with the limits of 95 % of the noise.

    Parameters
    ----------
    width : float
        Width in inches.

    Returns
    -------
    Picture
        Its ``axes`` are a tuple, two for each effort.
    """
    panels, m = [], found.description
    for k, name in enumerate(found.efforts):
        unit, left = effort_unit(m, name), found.residual[:, k]
        limit = np.full(len(left), NOISE_95 * found.noise[k])
        measured = found.effort[:, k]
        panels.append(Panel("effort", unit, {name: measured, "estimate": measured - left}))
        panels.append(Panel("residual", unit, {name: left, "95 %": limit, "−95 %": -limit}))
    if found.t is None:
        return draw_plots(np.arange(len(found.effort)), panels, "", width=width, abscissa="sample")
    return draw_plots(found.t, panels, m.units.time, width=width)


def plot_calibration(found: Calibration, *, width: float = COLUMN) -> Picture:
    """Plot the residuals of samples with the limits of 95 %, rows of the same noise in one panel.

    Parameters
    ----------
    width : float
        Width in inches.

    Returns
    -------
    Picture
    """
    panels, units = [], [row_unit(found.description, name) for name in found.rows]
    kinds = list(zip(found.noise.tolist(), units, strict=True))
    for kind in dict.fromkeys(kinds):
        own = [k for k, other in enumerate(kinds) if other == kind]
        for some in (own[i : i + PANEL_ROWS_MAX] for i in range(0, len(own), PANEL_ROWS_MAX)):
            lines = {found.rows[k]: found.residual[:, k] for k in some}
            limit = NOISE_95 * np.fmax.reduce(found.deviation[:, some], axis=1)
            panels.append(Panel("residual", kind[1], {**lines, "95 %": limit, "−95 %": -limit}))
    return draw_plots(found.samples, panels, "", width=width, abscissa="sample")


def plot_tolerance_analysis(found: ToleranceAnalysis, *, width: float = COLUMN) -> Picture:
    """Plot deviations from nominal values along a path, or for one configuration the shares of tolerances.

    Limits of deviations are the mean ± 3 σ, and the worst case.

    Parameters
    ----------
    width : float
        Width in inches.

    Returns
    -------
    Picture
        Its ``axes`` are a tuple, one for each row; without path only for rows that vary.

    Raises
    ------
    InputError
        If the batch has several axes or is empty, or no row varies.
    """
    if prod(found.batch) == 1:
        return _plot_shares(found, check_width(width))
    if len(found.batch) > 1 or 0 in found.batch:
        message = f"A plot of tolerances must show one configuration or a path, got the batch {found.batch}."
        raise InputError(f"{message} Choose members before the analysis.", key="batch", got=found.batch)
    panels, m = [], found.mechanism
    shift, sigma = found.mean - found.nominal, LIMIT_SIGMAS * found.sigma
    table = found.table()
    for k, row in enumerate(found.rows):
        limits = {"mean + 3 σ": shift + sigma, "mean − 3 σ": shift - sigma}
        lines = {end: a[:, k] for end, a in ({"mean": shift} | limits).items()}
        worst = {"worst +": table[f"{row}.high"], "worst −": table[f"{row}.low"]}
        lines |= {end: a - found.nominal[:, k] for end, a in worst.items()}
        panels.append(Panel(f"Δ {row}", row_unit(m, row), lines))
    name = table.columns[0]
    return draw_plots(table[name], panels, row_unit(m, name), width=width, abscissa=name)


def _plot_shares(found: ToleranceAnalysis, width: float) -> Picture:
    """Plot the largest shares of tolerances in the variance of each row as bars."""
    names, share = list(found.tolerances), 100 * found.share.reshape(len(found.rows), -1)
    shares = dict(zip(found.rows, share, strict=True))
    shares = {row: share for row, share in shares.items() if np.isfinite(share).all()}
    if not shares:
        raise InputError("A plot of shares must have a row that varies, got none.", key="rows")
    count = min(len(names), BARS_MAX)
    with style():
        figure = new_figure(width, len(shares) * (2 + count) * NAME_HEIGHT * 1.2 + TIME_AXIS_HEIGHT)
        all_axes = figure.subplots(len(shares), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (row, share) in zip(all_axes, shares.items(), strict=True):
            order = np.argsort(-share, kind="stable")[:count]
            axes.barh(range(count), share[order], height=0.6)
            axes.set_yticks(range(count), [literal(cut(names[k], BAR_NAME_MAX)) for k in order])
            axes.invert_yaxis()
            axes.set_title(literal(row))
        some = f", {count} of {len(names)}" * (count < len(names))
        all_axes[-1].set_xlabel(f"share of the variance (%){some}")
    return Picture(figure, tuple(all_axes))


def part_panels(
    description: MechanismDescription, configuration: Any, names: Sequence[str], which: Any = ...
) -> list[Panel]:
    """Return panels of the values of points, joints, distances or rows at the configurations `which` (T,).

    Single rows come first, one panel for each unit; then the parts with several rows. Constant rows of a part
    with moving rows are omitted, such as z in a plane.
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
        panels += motion_panels(description, [labels[k] for k in kept], values[:, kept])
    if plain:
        panels = motion_panels(description, plain, np.stack(columns, axis=1)) + panels
    return panels


def course_index(batch: tuple[int, ...], member: Any) -> tuple[Any, ...]:
    """Return the index of one motion in a batch of motions, without the time axis.

    Raise `InputError` if the batch has several members and `member` is None, or `member` does not exist.
    """
    given = () if member is None else member if isinstance(member, tuple | list | np.ndarray) else (member,)
    index = tuple(np.atleast_1d(given)) if isinstance(given, np.ndarray) else tuple(given)
    fits = len(index) == len(batch) and all(
        isinstance(i, int | np.integer) and -n <= i < n for i, n in zip(index, batch, strict=True)
    )
    if not fits:
        raise InputError(
            f"`member` must be the index of one motion in the batch {batch}, such as "
            f"{tuple(0 for _ in batch)}, got {member}."
            if batch
            else f"`member` must be left out for a single motion, got {member}.",
            key="member",
            got=member,
        )
    return index


# groups of quantities of motors, with the attributes that hold them
MOTOR_GROUPS = {"torques": "torque", "currents": "current", "voltages": "voltage"}


def motor_panels(description: MechanismDescription, found: Any, quantity: str) -> list[Panel]:
    """Return the panels of a quantity of `MOTOR_GROUPS` of a run or `MotorDemand`, for motors with values."""
    values = getattr(found, quantity)
    has_values = np.isfinite(values).any(axis=0)  # plain sources of torque have no current
    names = [motor for motor, valid in zip(found.motors, has_values, strict=True) if valid]
    return by_unit(quantity, [motor_unit(description, quantity)] * len(names), names, values[:, has_values])
