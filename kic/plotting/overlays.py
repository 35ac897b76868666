"""Overlays of a drawing: vectors, ellipsoids and curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kic.errors import invalid
from kic.numerics.arrays import ARGUMENT_MAX, reals
from kic.plotting.symbols import Colour, Shape, arrow_head, circle, rgba
from kic.plotting.view import View

# length of the longest vector as a share of the size of the drawing
_LONGEST_SHARE = 0.24
_FRONT_KEY = (np.inf, 0.0)
_SHAFT_WIDTH, _HEAD_LENGTH = 1.2, 5.5  # points
_OUTLINE_POINTS = 72


@dataclass(frozen=True)
class VectorOverlay:
    """Vectors of one kind at points, (n, 3) each, of all drawn members."""

    kind: str
    unit: str
    colour: str
    starts: np.ndarray
    vectors: np.ndarray
    given: float | None = None

    def scale(self, view: View, extent: float) -> float:
        """Return the drawing length per unit for which the longest vector has its standard length."""
        longest = float(np.linalg.norm(view.project(self.vectors), axis=-1).max(initial=0.0))
        return _LONGEST_SHARE * extent / longest if longest > 0 else 0.0

    def shapes(self, view: View, scale: float, points: float) -> list[Shape]:
        """Return arrows; vectors shorter than a point are omitted."""
        made = []
        starts, vectors = view.project(self.starts), scale * view.project(self.vectors)
        for start, d in zip(starts, vectors, strict=True):
            if np.linalg.norm(d) * points > 1.0:
                made += arrow(start, d, rgba(self.colour), points, self.kind)
        return made


def arrow(
    start: np.ndarray,
    d: np.ndarray,
    colour: Colour,
    points: float,
    of: str,
    width: float = _SHAFT_WIDTH,
    tip: float = _HEAD_LENGTH,
) -> list[Shape]:
    """Return the shapes of a straight arrow; the head is not longer than the arrow."""
    length = float(np.linalg.norm(d))
    size = min(tip / points, 0.6 * length)
    shaft = np.stack([start, start + d * (1 - 0.7 * size / length)])
    return [
        Shape(shaft, None, colour, width, False, _FRONT_KEY, of),
        Shape(arrow_head(start + d, d, size), colour, None, 0.0, True, _FRONT_KEY, of),
    ]


@dataclass(frozen=True)
class EllipsoidOverlay:
    """Ellipsoid (x − c)ᵀE⁻¹(x − c) ≤ 1 at a point, the image (3, k) of the unit ball."""

    kind: str
    unit: str
    colour: str
    at: np.ndarray
    centre: np.ndarray
    image: np.ndarray
    given: float | None = None

    def scale(self, view: View, extent: float) -> float:
        """Return the drawing length per unit for which the longest semi-axis has its standard length."""
        longest = float(np.linalg.norm(self.image, axis=0).max())
        return _LONGEST_SHARE * extent / longest if longest > 0 else 0.0

    def shapes(self, view: View, scale: float, points: float) -> list[Shape]:
        """Return the outline and the principal axes."""
        middle = view.project(self.at + scale * self.centre)
        flat = scale * view.project(self.image.T).T
        # the projected ball is the image of a disc under the two singular directions
        u, s, _ = np.linalg.svd(flat, full_matrices=False)
        outline = middle + circle(_OUTLINE_POINTS) @ (u * s).T
        made = [
            Shape(outline, rgba(self.colour, 0.3, 0.25), rgba(self.colour), 1.0, True, _FRONT_KEY, self.kind)
        ]
        for axis in flat.T:
            line = np.stack([middle - axis, middle + axis])
            made.append(Shape(line, None, rgba(self.colour), 0.6, False, _FRONT_KEY, self.kind))
        return made


def check_scale(scale: float | None) -> float | None:
    """Return a given scale as a float; raise `InputError` unless it is positive and finite."""
    if scale is None:
        return None
    a = reals(scale)
    if a is None or a.ndim or not 1 / ARGUMENT_MAX <= a <= ARGUMENT_MAX:
        raise invalid("scale", "must be a positive number", scale)
    return float(a)


def common_scales(
    added: Sequence[VectorOverlay | EllipsoidOverlay], view: View, extent: float
) -> dict[tuple[str, str, str], float]:
    """Return a scale for each kind, unit and colour: the last given, or the largest that fits."""
    found: dict[tuple[str, str, str], float] = {}
    for one in added:
        key, scale = (one.kind, one.unit, one.colour), one.scale(view, extent)
        if scale > 0:
            found[key] = min(scale, found.get(key, np.inf))
    return found | {(one.kind, one.unit, one.colour): one.given for one in added if one.given is not None}


def curve_shapes(places: np.ndarray, view: View, colour: str, name: str) -> list[Shape]:
    """Return a curve through points (n, 3), interrupted at NaN."""
    made, run = [], list[np.ndarray]()
    for p in [*view.project(places), np.full(2, np.nan)]:
        if np.isnan(p).any():
            if len(run) > 1:
                made.append(Shape(np.stack(run), None, rgba(colour), 1.1, False, _FRONT_KEY, "trace", name))
            run = []
        else:
            run.append(p)
    return made
