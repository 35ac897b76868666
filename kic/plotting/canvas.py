"""Paper: shapes on Matplotlib axes of equal scale, with a bar that says how long a unit is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kic.numerics.optional import import_optional
from kic.plotting.figures import COLUMN, INK, literal, new_figure, style
from kic.plotting.overlays import arrow
from kic.plotting.symbols import LINE, Shape, extent, rgba
from kic.plotting.view import View

# inches: around the drawing, below it for scale bar and axes, and how high a picture may be
_MARGIN, _FOOT, _LINE = 0.1, 0.36, 0.22
# rows of the legend that there is room for, and points of a row
_ROWS, _ROW = 2, 9.0
_LOWEST, _HIGHEST = 1.5, 4.4
# room above and below where there is enough, in such on the left and right
_ABOVE = 2.0
SMALL = 6.5
NEEDED = "Pictures need Matplotlib"


class Canvas:
    """Axes on which everything is in units of length.

    Attributes
    ----------
    figure, axes : Matplotlib's
    points : float
        Points of the page in a unit of length.
    """

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
        self.more = 0.0  # inches that a legend needs below
        self.made: list[Any] = []

    def size(self) -> tuple[float, float]:
        """Width and greatest height in inches that there are."""
        if self.own:
            return COLUMN, _HIGHEST
        root = self.axes.get_figure(root=True)
        # of a layout that is made when a figure is drawn, this is the time
        if root.get_layout_engine() is not None:
            root.get_layout_engine().execute(root)
        box = self.axes.get_position(original=True).transformed(self.axes.get_figure().transSubfigure)
        dpi = root.get_dpi()
        return box.width / dpi, box.height / dpi

    def fitting(self, low: np.ndarray, high: np.ndarray, extra: float = 0.0) -> float:
        """Points in a unit of length so that corners fit, with some points around."""
        width, height = self.size()
        span = np.maximum(high - low, 1e-9 * max(1.0, np.abs([low, high]).max()))
        free = np.array([width - 2 * _MARGIN, height - 2 * _MARGIN - self._below]) * 72 - 2 * extra
        return float((np.maximum(free, 10.0) / span).min())

    def spare(self, low: np.ndarray, high: np.ndarray, points: float) -> float:
        """Points of height that corners leave free."""
        free = (self.size()[1] - 2 * _MARGIN - self._below) * 72
        return free - float((high - low)[1]) * points

    @property
    def _below(self) -> float:
        return _FOOT + self.more

    def clear(self) -> None:
        """Take away what was drawn here, and nothing else."""
        for artist in self.made:
            artist.remove()
        self.made = []

    def frame(self, low: np.ndarray, high: np.ndarray, points: float) -> None:
        """Limits of the axes around some corners, with room for the bar below."""
        self.points = points
        width, height = self.size()
        if self.own:
            height = float(
                np.clip((high - low)[1] * points / 72 + 2 * _MARGIN + self._below, _LOWEST, _HIGHEST)
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
        # a box that changes afterwards shows the same, larger or smaller
        self.axes.set_aspect("equal", adjustable="box")

    def paint(self, shapes: Sequence[Shape], zorder: float = 2.0) -> None:
        """Shapes in their order."""
        if not shapes:
            return
        Path = import_optional("matplotlib.path", "plot", NEEDED).Path
        PathCollection = import_optional("matplotlib.collections", "plot", NEEDED).PathCollection
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
        """Words at a place; with a halo they are legible on lines."""
        given = {"ha": "center", "va": "center", "color": INK, "fontsize": SMALL, **how}
        if halo:
            effects = import_optional("matplotlib.patheffects", "plot", NEEDED)
            given["path_effects"] = [effects.withStroke(linewidth=1.4, foreground="white", alpha=0.8)]
        with style():
            self.made.append(self.axes.text(*at, literal(words), **given))

    def bar(self, unit: str) -> None:
        """A scale bar at the lower right."""
        length = nice(0.28 * (self.right - self.left))
        pt = 1 / self.points
        b = np.array([self.right - 9 * pt, self.foot - 6 * pt])
        a = b - [length, 0.0]
        tick = np.array([0.0, 2.2 * pt])
        lines = [np.stack([a, b]), np.stack([a - tick, a + tick]), np.stack([b - tick, b + tick])]
        self.paint([_line(xy) for xy in lines])
        self.text((a + b) / 2 + [0, 2.5 * pt], f"{length:g} {unit}", va="bottom")

    def triad(self, view: View) -> None:
        """World axes at the lower left."""
        pt = 1 / self.points
        ways = view.project(np.eye(3))
        length = 15 * pt
        # what points left or down stays on the paper, with its name
        start = (
            np.array([self.left, self.bottom])
            + 5 * pt
            - np.minimum((length + 8 * pt) * ways, 0.0).min(axis=0)
        )
        for name, d in zip("xyz", ways, strict=True):
            size = float(np.linalg.norm(d))
            if size > 0.25:
                self.paint(arrow(start, length * d, rgba(INK), self.points, "axes", LINE, 4.0))
                self.text(start + (length + 4.5 * pt / size) * d, name, style="italic")

    def reserve(self, rows: int) -> None:
        """Room for so many rows of a legend."""
        self.more = max(0, rows - _ROWS) * _ROW / 72

    def legend(self, rows: Sequence[tuple[str, str, str, float]]) -> None:
        """Below the drawing, for each kind of vector (what, unit, colour, scale): how long so much is."""
        pt = 1 / self.points
        left, right = self.left + 42 * pt, self.right - 14 * pt - 0.28 * (self.right - self.left)
        for k, (what, unit, colour, scale) in enumerate(rows):
            value = nice(0.3 * (right - left) / scale)
            length = value * scale
            words = f"{what} {value:g} {unit}"
            y = self.foot + (1 - _ROW * k) * pt
            width = length + 4 * pt + measure(words, SMALL)[0] * pt
            x = max(left, (left + right - width) / 2)
            self.paint(arrow(np.array([x, y]), np.array([length, 0.0]), rgba(colour), self.points, what))
            self.text(np.array([x + length + 4 * pt, y]), words, ha="left", va="center_baseline")


def measure(words: str, size: float, italic: bool = False) -> np.ndarray:
    """Width and height of words in points; lines are all of one height."""
    with style():
        font = import_optional("matplotlib.font_manager", "plot", NEEDED)
        prop = font.FontProperties(size=size, style="italic" if italic else "normal")
        textpath = import_optional("matplotlib.textpath", "plot", NEEDED)
        box = textpath.TextPath((0, 0), literal(words), prop=prop).get_extents()
    return np.array([box.width + 1.5, 1.15 * size])


def nice(most: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten up to some number."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(k for k in (1.0, 2.0, 5.0) if k * power <= most * (1 + 1e-12)) * power)


def _line(xy: np.ndarray) -> Shape:
    return Shape(xy, None, rgba(INK), LINE, False, (0.0,))


def _corners(shapes: list[Shape], least: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of shapes and of what is seen of them without symbols."""
    low, high = extent(shapes)
    return np.minimum(low, least), np.maximum(high, most)


def settle(
    canvas: Canvas, low: np.ndarray, high: np.ndarray, make: Callable[[float], list[Shape]], extra: float
) -> list[Shape]:
    """Shapes whose symbols have their size on the page: scale and shapes in turn until they fit."""
    least, most = low, high
    points = canvas.fitting(low, high, 12.0)
    shapes = make(points)
    for _ in range(3):
        low, high = _corners(shapes, least, most)
        fitted = canvas.fitting(low, high, extra)
        if abs(fitted / points - 1) < 0.01:
            break
        points = fitted
        shapes = make(points)
    low, high = _corners(shapes, least, most)
    points = min(points, canvas.fitting(low, high, extra))
    # what is wide leaves room above and below
    pad = np.array([extra, min(_ABOVE * extra, max(extra, canvas.spare(low, high, points) / 2))]) / points
    canvas.frame(low - pad, high + pad, points)
    return shapes
