"""What symbols are made of: flat shapes with a place in the order of painting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from kic.plotting.figures import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, YELLOW

WHITE, STEEL, FLOOR = "#ffffff", "#d4d7da", "#e4e4e4"
DRIVEN = VERMILION
# bodies in this order, made light: their colours help, their outlines tell
TINTS = (SKY, ORANGE, GREEN, YELLOW, PURPLE, BLUE)
_LIGHT, _CLEAR = 0.58, 0.5
FINE, LINE, BOLD = 0.5, 0.8, 1.1  # widths of lines in points

Colour = tuple[float, float, float, float]


def rgba(colour: str, white: float = 0.0, alpha: float = 1.0) -> Colour:
    """A colour with a share of white in it."""
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return (r + (1 - r) * white, g + (1 - g) * white, b + (1 - b) * white, alpha)


def tint(index: int, alpha: float = 1.0) -> Colour:
    """The light colour of a body."""
    return rgba(TINTS[index % len(TINTS)], _LIGHT, alpha)


@dataclass(frozen=True)
class Shape:
    """A polygon or a line of the picture.

    Attributes
    ----------
    xy : (n, 2)
        Corners, in units of length.
    face, edge : rgba or None
        Colours of inside and outline.
    width : float
        Of the outline, in points.
    closed : bool
        Whether the last corner is joined to the first.
    key : tuple of float
        Shapes are painted in this order.
    of : str
        The kind of mark that it belongs to.
    name : str
        Its part, of the one shape that stands where the part is.
    plane : (float, float, float) or None
        Of a face in space: its depth is a + b x + c y.
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
        """The same, where it is a face as one to be looked through."""
        if self.of == "plate" and self.closed and self.face:
            return replace(self, face=(*self.face[:3], _CLEAR))
        return self

    def faded(self, white: float) -> Shape:
        """The same, as something that is less important."""

        def pale(c: Colour | None) -> Colour | None:
            return c and (*(x + (1 - x) * white for x in c[:3]), c[3])  # type: ignore[return-value]

        if self.of in ("plate", "solid") and self.closed:  # a face would hide the postures behind it
            return replace(self, face=None, edge=pale(rgba(INK)), width=FINE)
        return replace(self, face=pale(self.face), edge=pale(self.edge))


def circle(count: int = 48, start: float = 0.0, span: float = 2 * np.pi) -> np.ndarray:
    """Points (count, 2) of the unit circle; of an arc with its end, of a whole turn without."""
    whole = abs(span) >= 2 * np.pi
    angle = start + np.linspace(0.0, span, count, endpoint=not whole)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def perpendicular(d: np.ndarray) -> np.ndarray:
    """A plane direction turned to the left."""
    return np.array([-d[1], d[0]])


def zigzag(a: np.ndarray, b: np.ndarray, half: float) -> np.ndarray:
    """A coil spring from a to b: straight ends, and turns of some half width between."""
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
    """An arrow head (4, 2) that ends at a tip."""
    size = float(np.linalg.norm(along))
    along = along / size if size else np.array([1.0, 0.0])
    across = 0.38 * length * perpendicular(along)
    back = tip - length * along
    return np.stack([tip, back + across, back + 0.25 * length * along, back - across])


def perpendicular_axes(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors (3,) across an axis."""
    one = np.eye(3)[np.argmin(np.abs(axis))]
    one = one - (one @ axis) * axis
    one = one / np.linalg.norm(one)
    return one, np.cross(axis, one)


def extent(shapes: Iterable[Shape]) -> tuple[np.ndarray, np.ndarray]:
    """Lower left and upper right corner of all shapes."""
    every = np.concatenate([s.xy for s in shapes])
    return every.min(axis=0), every.max(axis=0)
