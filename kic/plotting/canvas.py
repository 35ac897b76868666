"""Canvas: shapes on Matplotlib axes of equal scale, with scale bar, world axes and legend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kic.plotting.figures import COLUMN, INK, literal, matplotlib_part, new_figure, style
from kic.plotting.overlays import arrow
from kic.plotting.symbols import LINE, Shape, extent, rgba
from kic.plotting.view import View

# inches: margin, height of the foot with scale bar and axes, height of the scale bar
_MARGIN, _FOOT, _LINE = 0.1, 0.36, 0.22
# legend rows that fit into the foot, and the height of a row in points
_FOOT_ROWS, _ROW_PT = 2, 9.0
# bounds of the height of a picture in inches
_HEIGHT_MIN, _HEIGHT_MAX = 1.5, 4.4
# maximum vertical padding in multiples of the horizontal padding
_PADDING_FACTOR = 2.0
FONT_SIZE_PT = 6.5


class Canvas:
    """Axes in units of length; `points` is the number of points of the page per unit."""

    def __init__(self, axes: Any = None) -> None:
        self.own = axes is None
        if axes is None:
            self.figure = new_figure(COLUMN, COLUMN)
            self.figure.set_layout_engine("none")
            self.axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        else:
            self.axes, self.figure = axes, axes.figure
        self.axes.set_axis_off()
        self.points = 1.0
        self.common_points = 0.0  # of drawings side by side; 0 to fit the page
        self.more = 0.0  # height in inches of legend rows below the foot
        self.made: list[Any] = []

    def size(self) -> tuple[float, float]:
        """Return the available width and the maximum height in inches."""
        if self.own:
            return COLUMN, _HEIGHT_MAX
        root = self.axes.get_figure().figure  # of a subfigure, the whole figure
        # execute a deferred layout to obtain the final size
        if root.get_layout_engine() is not None:
            root.get_layout_engine().execute(root)
        box = self.axes.get_position(original=True).transformed(self.axes.get_figure().transSubfigure)
        dpi = root.get_dpi()
        return box.width / dpi, box.height / dpi

    def fitting(self, low: np.ndarray, high: np.ndarray, extra: float = 0.0) -> float:
        """Return the largest scale (points per unit of length) at which corners fit with margins `extra`."""
        width, height = self.size()
        span = np.maximum(high - low, 1e-9 * max(1.0, np.abs([low, high]).max()))
        free = np.array([width - 2 * _MARGIN, height - 2 * _MARGIN - self._below]) * 72 - 2 * extra
        return float((np.maximum(free, 10.0) / span).min())

    def spare(self, low: np.ndarray, high: np.ndarray, points: float) -> float:
        """Return the unused height in points."""
        free = (self.size()[1] - 2 * _MARGIN - self._below) * 72
        return free - float((high - low)[1]) * points

    @property
    def _below(self) -> float:
        return _FOOT + self.more

    def clear(self) -> None:
        """Remove the artists of this canvas only."""
        for artist in self.made:
            artist.remove()
        self.made = []

    def frame(self, low: np.ndarray, high: np.ndarray, points: float) -> None:
        """Set axis limits around the corners, with room for the foot."""
        self.points = points
        width, height = self.size()
        if self.own:
            height = float(
                np.clip((high - low)[1] * points / 72 + 2 * _MARGIN + self._below, _HEIGHT_MIN, _HEIGHT_MAX)
            )
            self.figure.set_size_inches(width, height)
        inch = 72 / points
        spare = height - self._below - float((high - low)[1]) / inch
        self.bottom = float(low[1]) - (self._below + max(spare, 0.0) / 2) * inch
        self.foot, self.top = self.bottom + (_LINE + self.more) * inch, self.bottom + height * inch
        middle = float(low[0] + high[0]) / 2
        self.left, self.right = middle - width * inch / 2, middle + width * inch / 2
        self.axes.set_xlim(self.left, self.right)
        self.axes.set_ylim(self.bottom, self.top)
        # resizing the axes later changes only the scale
        self.axes.set_aspect("equal", adjustable="box")

    def paint(self, shapes: Sequence[Shape], zorder: float = 2.0) -> None:
        """Paint shapes in order."""
        if not shapes:
            return
        Path = matplotlib_part("path").Path
        PathCollection = matplotlib_part("collections").PathCollection
        none = (0.0, 0.0, 0.0, 0.0)
        with style():
            made = PathCollection(
                [
                    Path(np.concatenate([s.xy, s.xy[:1]]) if s.closed else s.xy, closed=s.closed)
                    for s in shapes
                ],
                facecolors=[s.face or none for s in shapes],
                edgecolors=[s.edge or none for s in shapes],
                linewidths=[s.width if s.edge else 0.0 for s in shapes],
                capstyle="round",
                joinstyle="round",
                zorder=zorder,
            )
        self.axes.add_collection(made, autolim=False)
        self.made.append(made)

    def text(self, at: np.ndarray, words: str, halo: bool = False, **how: Any) -> None:
        """Write text at a position; a halo keeps it legible on lines."""
        given = {"ha": "center", "va": "center", "color": INK, "fontsize": FONT_SIZE_PT, **how}
        if halo:
            effects = matplotlib_part("patheffects")
            given["path_effects"] = [effects.withStroke(linewidth=1.4, foreground="white", alpha=0.8)]
        with style():
            self.made.append(self.axes.text(*at, literal(words), **given))

    def bar(self, unit: str) -> None:
        """Draw a scale bar at the lower right."""
        length = nice(0.28 * (self.right - self.left))
        pt = 1 / self.points
        b = np.array([self.right - 9 * pt, self.foot - 6 * pt])
        a = b - [length, 0.0]
        tick = np.array([0.0, 2.2 * pt])
        lines = [np.stack([a, b]), np.stack([a - tick, a + tick]), np.stack([b - tick, b + tick])]
        self.paint([_line(xy) for xy in lines])
        self.text((a + b) / 2 + [0, 2.5 * pt], f"{length:g} {unit}", va="bottom")

    def triad(self, view: View) -> None:
        """Draw the world axes at the lower left."""
        pt = 1 / self.points
        axes_seen = view.project(np.eye(3))
        length = 15 * pt
        # keep axes that point left or down within the picture, with their names
        start = (
            np.array([self.left, self.bottom])
            + 5 * pt
            - np.minimum((length + 8 * pt) * axes_seen, 0.0).min(axis=0)
        )
        for name, d in zip("xyz", axes_seen, strict=True):
            size = float(np.linalg.norm(d))
            if size > 0.25:
                self.paint(arrow(start, length * d, rgba(INK), self.points, "axes", LINE, 4.0))
                self.text(start + (length + 4.5 * pt / size) * d, name, style="italic")

    def reserve(self, rows: int) -> None:
        """Set the height for the rows of a legend."""
        self.more = max(0, rows - _FOOT_ROWS) * _ROW_PT / 72

    def legend(self, rows: Sequence[tuple[str, str, str, float]]) -> None:
        """Draw a scale arrow for each kind of vector (quantity, unit, colour, scale) below the drawing."""
        pt = 1 / self.points
        left, right = self.left + 42 * pt, self.right - 14 * pt - 0.28 * (self.right - self.left)
        for k, (what, unit, colour, scale) in enumerate(rows):
            value = nice(0.3 * (right - left) / scale)
            length = value * scale
            words = f"{what} {value:g} {unit}"
            y = self.foot + (1 - _ROW_PT * k) * pt
            width = length + 4 * pt + measure(words, FONT_SIZE_PT)[0] * pt
            x = max(left, (left + right - width) / 2)
            self.paint(arrow(np.array([x, y]), np.array([length, 0.0]), rgba(colour), self.points, what))
            self.text(np.array([x + length + 4 * pt, y]), words, ha="left", va="center_baseline")


def measure(words: str, size: float, italic: bool = False) -> np.ndarray:
    """Return width and height of a text in points; all texts have the same height."""
    with style():
        prop = matplotlib_part("font_manager").FontProperties(
            size=size, style="italic" if italic else "normal"
        )
        box = matplotlib_part("textpath").TextPath((0, 0), literal(words), prop=prop).get_extents()
    return np.array([box.width + 1.5, 1.15 * size])


def nice(most: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten up to `most`."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(k for k in (1.0, 2.0, 5.0) if k * power <= most * (1 + 1e-12)) * power)


def _line(xy: np.ndarray) -> Shape:
    return Shape(xy, None, rgba(INK), LINE, False, (0.0,))


def _corners(shapes: list[Shape], least: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the box around shapes and given corners."""
    low, high = extent(shapes)
    return np.minimum(low, least), np.maximum(high, most)


def fit_to_page(
    canvas: Canvas, low: np.ndarray, high: np.ndarray, make: Callable[[float], list[Shape]], extra: float
) -> list[Shape]:
    """Choose the scale, and return the shapes; their symbols have a fixed size on the page.

    Scale and shapes are computed alternately until they fit.
    """
    least, most = low, high
    points = canvas.common_points or canvas.fitting(low, high, 12.0)
    shapes = make(points)
    for _ in range(0 if canvas.common_points else 3):
        low, high = _corners(shapes, least, most)
        fitted = canvas.fitting(low, high, extra)
        if abs(fitted / points - 1) < 0.01:
            break
        points = fitted
        shapes = make(points)
    low, high = _corners(shapes, least, most)
    points = canvas.common_points or min(points, canvas.fitting(low, high, extra))
    # wide drawings leave room above and below
    pad = (
        np.array([extra, min(_PADDING_FACTOR * extra, max(extra, canvas.spare(low, high, points) / 2))])
        / points
    )
    canvas.frame(low - pad, high + pad, points)
    return shapes
