"""Flat shapes of which symbols consist, with colours and depth keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from kic.plotting.figures import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, YELLOW

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


def tint(index: int, alpha: float = 1.0) -> Colour:
    """Return the light colour of a body."""
    return rgba(TINTS[index % len(TINTS)], _TINT_WHITE_SHARE, alpha)


@dataclass(frozen=True)
class Shape:
    """Polygon or line of a picture.

    Attributes
    ----------
    xy : (n, 2)
        Corners in units of length.
    face, edge : rgba or None
        Colours of the interior and the outline.
    width : float
        Width of the outline in points.
    closed : bool
        True if the last corner is connected to the first.
    key : tuple of float
        Sort key of the painting order.
    of : str
        Kind of the mark to which the shape belongs.
    name : str
        Part at which the shape is located; empty for secondary shapes of a mark.
    plane : (float, float, float) or None
        Depth a + b x + c y of a face in space.
    """

    xy: np.ndarray
    face: Colour | None
    edge: Colour | None
    width: float
    closed: bool
    key: tuple[float, ...]
    of: str = ""
    name: str = ""
    plane: tuple[float, float, float] | None = None

    def translucent(self) -> Shape:
        """Return the shape; translucent if it is a face of a plate."""
        if self.of == "plate" and self.closed and self.face:
            return replace(self, face=(*self.face[:3], _TRANSLUCENT_ALPHA))
        return self

    def faded(self, white: float) -> Shape:
        """Return the shape mixed with a share of white."""

        def pale(c: Colour | None) -> Colour | None:
            return c and (*(x + (1 - x) * white for x in c[:3]), c[3])  # type: ignore[return-value]

        if self.of in ("plate", "solid") and self.closed:  # a face would hide the configurations behind it
            return replace(self, face=None, edge=pale(rgba(INK)), width=FINE)
        return replace(self, face=pale(self.face), edge=pale(self.edge))


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
    """Return the closed path (n, 2) of an open belt about pulleys at the origin and at (between, 0)."""
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


def axis_arrows(
    start: np.ndarray, axes: np.ndarray, size: float
) -> list[tuple[np.ndarray, np.ndarray, Colour]]:
    """Return shaft, head and colour of the projected axes (3, 2) of a frame; those seen end-on are omitted.

    `size` is the radius of a joint.
    """
    made = []
    for d, colour in zip(4.0 * size * axes, (VERMILION, GREEN, BLUE), strict=True):
        length = float(np.linalg.norm(d))
        if length > 0.8 * size:
            shaft = np.stack([start, start + d * (1 - 0.5 * size / length)])
            made.append((shaft, arrow_head(start + d, d, 1.1 * size), rgba(colour)))
    return made


def perpendicular_axes(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors (3,) perpendicular to an axis and to each other."""
    one = np.eye(3)[np.argmin(np.abs(axis))]
    one = one - (one @ axis) * axis
    one = one / np.linalg.norm(one)
    return one, np.cross(axis, one)


def extent(shapes: Iterable[Shape]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower left and upper right corner of all shapes."""
    every = np.concatenate([s.xy for s in shapes])
    return every.min(axis=0), every.max(axis=0)
