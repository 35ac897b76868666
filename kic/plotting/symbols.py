"""Flat shapes that make up symbols, with colours and depth keys."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np

from kic.description.joint_types import JOINT_DOF
from kic.kinematics.tree import frame_axes
from kic.plotting.diagram import Mark
from kic.plotting.figures import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from kic.plotting.view import View

WHITE, STEEL, FLOOR = "#ffffff", "#d4d7da", "#e4e4e4"
DRIVEN = VERMILION
# base colours of bodies, lightened by `tint`
TINTS = (SKY, ORANGE, GREEN, YELLOW, PURPLE, BLUE)
_TINT_WHITE_SHARE, _TRANSLUCENT_ALPHA = 0.58, 0.5
FINE, LINE, BOLD = 0.5, 0.8, 1.1  # line widths in points

Colour = tuple[float, float, float, float]


def rgba(colour: str, white: float = 0.0, alpha: float = 1.0) -> Colour:
    """Return a colour mixed with a share of white."""
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return (r + (1 - r) * white, g + (1 - g) * white, b + (1 - b) * white, alpha)


INK_RGBA = rgba(INK)


def tint(index: int, alpha: float = 1.0) -> Colour:
    """Return the light colour of a body."""
    return rgba(TINTS[index % len(TINTS)], _TINT_WHITE_SHARE, alpha)


@dataclass(frozen=True)
class Shape:
    """Polygon or line of a picture."""

    xy: np.ndarray  # (n, 2): corners in units of length
    face: Colour | None  # colour of the interior
    edge: Colour | None  # colour of the outline
    width: float  # width of the outline in points
    closed: bool  # True if the last corner is connected to the first
    key: tuple[float, ...]  # sort key of the painting order
    of: str = ""  # kind of the mark to which the shape belongs
    name: str = ""  # part at which it is located; empty for secondary shapes of a mark
    plane: tuple[float, float, float] | None = None  # depth a + b x + c y of a face in space

    def translucent(self) -> Shape:
        """Return the shape, made translucent if it is the face of a plate."""
        if self.of == "plate" and self.closed and self.face:
            return replace(self, face=(*self.face[:3], _TRANSLUCENT_ALPHA))
        return self

    def faded(self, white: float) -> Shape:
        """Return the shape mixed with a share of white; faces of plates and solids become outlines."""

        def pale(c: Colour | None) -> Colour | None:
            return c and (*(x + (1 - x) * white for x in c[:3]), c[3])  # type: ignore[return-value]

        if self.of in ("plate", "solid") and self.closed:  # a face would hide the configurations behind it
            return replace(self, face=None, edge=pale(INK_RGBA), width=FINE)
        return replace(self, face=pale(self.face), edge=pale(self.edge))


class Symbols(ABC):
    """Base of the converters from marks to shapes.

    `size` is the radius of a joint in units of length, `points` the points of the page per unit of length;
    `order` gives the bodies numbers that determine tints and overlap. A subclass has a method `_kind` for
    each kind of mark that has a symbol.
    """

    def __init__(self, view: View, size: float, points: float, order: Mapping[str, int]) -> None:
        self.view, self.size, self.points, self.order = view, size, points, order
        self._shapes: list[Shape] = []

    @abstractmethod
    def _project(
        self, mark: Mark, places: np.ndarray, depth: float | None, sub: float
    ) -> tuple[np.ndarray, tuple[float, ...]]:
        """Return the points (n, 2) in the plane and the sort key of the painting order."""

    def _symbol(self, mark: Mark, places: np.ndarray) -> None:
        """Add the shapes of a mark, if its kind has a symbol; a joint without a symbol is a dot."""
        draw = getattr(self, f"_{mark.kind}", None)
        if draw is None and mark.kind in JOINT_DOF:
            _warn_of_dots(mark.kind)
            draw = getattr(self, "_dot", None)
        if draw is not None:
            draw(mark, places)

    def _put(
        self,
        mark: Mark,
        places: np.ndarray,
        depth: float | None,
        face: Colour | None = None,
        edge: Colour | None = INK_RGBA,
        width: float = LINE,
        closed: bool = True,
        named: bool = False,
        sub: float = 0.0,
    ) -> None:
        """Add a shape at a depth or layer; `sub` places it above or below the previous shape there."""
        xy, key = self._project(mark, places, depth, sub)
        self._shapes.append(Shape(xy, face, edge, width, closed, key, mark.kind, mark.name if named else ""))

    def _line(
        self,
        mark: Mark,
        places: np.ndarray,
        depth: float | None,
        width: float = LINE,
        colour: Colour = INK_RGBA,
        sub: float = 0.0,
    ) -> None:
        """Add an open line."""
        self._put(mark, places, depth, None, colour, width, closed=False, sub=sub)

    def _dashes(self, mark: Mark, p: np.ndarray, depth: float) -> None:
        """Add dashes between the joints (n, 2) of a coupling with general ratios."""
        for a, b in pairwise(p):
            count = max(1, round(float(np.linalg.norm(b - a)) / (1.6 * self.size)))
            for k in range(count):
                dash = np.stack([a + (b - a) * (k + share) / count for share in (0.2, 0.8)])
                self._line(mark, dash, depth, colour=rgba(PURPLE))

    def _axes(self, mark: Mark, start: np.ndarray, depth: float) -> None:
        """Add arrows along the axes of a frame at a projected point (2,); axes seen end-on are omitted."""
        axes = self.view.project(mark.directions)
        for d, colour in zip(4.0 * self.size * axes, (VERMILION, GREEN, BLUE), strict=True):
            length = float(np.linalg.norm(d))
            if length > 0.8 * self.size:
                shaft = np.stack([start, start + d * (1 - 0.5 * self.size / length)])
                self._line(mark, shaft, depth, BOLD, rgba(colour))
                self._put(mark, arrow_head(start + d, d, 1.1 * self.size), depth, rgba(colour), None)

    def _colour(self, mark: Mark, alpha: float = 1.0) -> Colour:
        """Return the light colour of the body of a mark."""
        return tint(self.order.get(mark.body, 0), alpha)


@cache
def _warn_of_dots(kind: str) -> None:
    """Warn once for each type of joint without a symbol."""
    text = f"Joints of the type '{kind}' have no symbol in kic.plotting, and are drawn as dots."
    warnings.warn_explicit(text, UserWarning, "kic", 0, "kic.plotting")


def circle(count: int = 48, start: float = 0.0, span: float = 2 * np.pi) -> np.ndarray:
    """Return points (count, 2) of the unit circle; arcs include their end, whole turns do not."""
    whole = abs(span) >= 2 * np.pi
    angle = start + np.linspace(0.0, span, count, endpoint=not whole)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def gear_outline(radius: float, teeth: int, phase: float) -> np.ndarray:
    """Return the outline (n, 2) of a gear in its own axes, with straight flanks.

    The number of teeth is negative for an internal gear. `radius` is the pitch radius, and `phase` the
    share of a pitch by which the first tooth is turned from the first axis.
    """
    count = abs(teeth)
    module = 2 * radius / count
    tip, root = (0.9, -1.1) if teeth > 0 else (1.1, -0.9)
    # half widths of a tooth at its tip and root, as shares of the pitch
    share = np.array([-0.33, -0.12, 0.12, 0.33])
    level = radius + module * np.array([root, tip, tip, root])
    turn = 2 * np.pi * (np.arange(count)[:, None] + phase + share) / count
    return (level[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)).reshape(-1, 2)


def rim_radius(radius: float, teeth: int) -> float:
    """Return the outer radius of an internal gear."""
    return (1 + 5 / abs(teeth)) * radius


def belt_outline(radii: tuple[float, ...], between: float) -> np.ndarray:
    """Return the closed path (n, 2) of an open belt around pulleys at the origin and at (between, 0)."""
    lean = float(np.arcsin(np.clip((radii[0] - radii[1]) / between, -1, 1)))
    first = radii[0] * circle(33, np.pi / 2 - lean, np.pi + 2 * lean)
    second = radii[1] * circle(33, -np.pi / 2 + lean, np.pi - 2 * lean) + [between, 0.0]
    return np.concatenate([first, second])


def perpendicular(d: np.ndarray) -> np.ndarray:
    """Return a plane direction rotated by 90° counter-clockwise."""
    return np.array([-d[1], d[0]])


def zigzag(a: np.ndarray, b: np.ndarray, half: float) -> np.ndarray:
    """Return a coil spring from a to b with straight ends and windings of the given half width."""
    d = b - a
    length = float(np.linalg.norm(d))
    if length == 0:
        return np.stack([a, b])
    along, across = d / length, perpendicular(d / length)
    lead = min(0.2 * length, 2 * half)
    turns = int(np.clip(round((length - 2 * lead) / (1.6 * half)), 4, 24))
    x = np.linspace(lead, length - lead, 2 * turns + 2)
    y = half * np.where(np.arange(2 * turns + 2) % 2, 1.0, -1.0)
    y[[0, -1]] = 0
    inner = a + x[:, None] * along + y[:, None] * across
    return np.concatenate([[a], inner, [b]])


def arrow_head(tip: np.ndarray, along: np.ndarray, length: float) -> np.ndarray:
    """Return an arrow head (4, 2) that ends at `tip`."""
    size = float(np.linalg.norm(along))
    along = along / size if size else np.array([1.0, 0.0])
    across = 0.38 * length * perpendicular(along)
    back = tip - length * along
    return np.stack([tip, back + across, back + 0.25 * length * along, back - across])


def perpendicular_axes(axis: np.ndarray) -> np.ndarray:
    """Return two unit vectors (2, 3) perpendicular to an axis and to each other."""
    return frame_axes(axis).T[:2]


def extent(shapes: Iterable[Shape]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower left and upper right corners of a box around all shapes."""
    every = np.concatenate([s.xy for s in shapes])
    return every.min(axis=0), every.max(axis=0)
