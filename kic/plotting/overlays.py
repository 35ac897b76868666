"""What is added to a drawing: vectors with their scale, ellipsoids, paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kic.errors import InputError, short_repr
from kic.numerics.arrays import LARGEST, reals
from kic.plotting.symbols import Colour, Shape, arrow_head, circle, rgba
from kic.plotting.view import View

# the longest vector of a kind is so long, as a share of the drawing
_LONGEST = 0.24
_FRONT = (np.inf, 0.0)
_WIDTH, _HEAD = 1.2, 5.5
_ROUND = 72


@dataclass(frozen=True)
class VectorOverlay:
    """VectorOverlay of one kind at places, (n, 3) each, of every member that is drawn."""

    kind: str
    unit: str
    colour: str
    starts: np.ndarray
    vectors: np.ndarray
    given: float | None = None

    def scale(self, view: View, extent: float) -> float:
        """Length in the drawing of a unit of these; the longest has a good length."""
        longest = float(np.linalg.norm(view.project(self.vectors), axis=-1).max(initial=0.0))
        return _LONGEST * extent / longest if longest > 0 else 0.0

    def shapes(self, view: View, scale: float, points: float) -> list[Shape]:
        """Arrows; those too short to be seen are left out."""
        made = []
        starts, ways = view.project(self.starts), scale * view.project(self.vectors)
        for start, d in zip(starts, ways, strict=True):
            if np.linalg.norm(d) * points > 1.0:
                made += arrow(start, d, rgba(self.colour), points, self.kind)
        return made


def arrow(
    start: np.ndarray,
    d: np.ndarray,
    colour: Colour,
    points: float,
    of: str,
    width: float = _WIDTH,
    tip: float = _HEAD,
) -> list[Shape]:
    """A straight arrow; its head is no longer than itself."""
    length = float(np.linalg.norm(d))
    size = min(tip / points, 0.6 * length)
    shaft = np.stack([start, start + d * (1 - 0.7 * size / length)])
    return [
        Shape(shaft, None, colour, width, False, _FRONT, of),
        Shape(arrow_head(start + d, d, size), colour, None, 0.0, True, _FRONT, of),
    ]


@dataclass(frozen=True)
class EllipsoidOverlay:
    """An ellipsoid (x − c)ᵀE⁻¹(x − c) ≤ 1 at a place, given as an image (3, k) of the unit ball."""

    kind: str
    unit: str
    colour: str
    at: np.ndarray
    centre: np.ndarray
    image: np.ndarray
    given: float | None = None

    def scale(self, view: View, extent: float) -> float:
        """Length in the drawing of a unit of its; the longest axis has a good length."""
        longest = float(np.linalg.norm(self.image, axis=0).max())
        return _LONGEST * extent / longest if longest > 0 else 0.0

    def shapes(self, view: View, scale: float, points: float) -> list[Shape]:
        """The outline that the ellipsoid shows, and its principal axes."""
        middle = view.project(self.at + scale * self.centre)
        flat = scale * view.project(self.image.T).T
        # the image of a ball is seen as the image of a disc: by the two singular directions
        u, s, _ = np.linalg.svd(flat, full_matrices=False)
        outline = middle + circle(_ROUND) @ (u * s).T
        made = [Shape(outline, rgba(self.colour, 0.3, 0.25), rgba(self.colour), 1.0, True, _FRONT, self.kind)]
        for axis in flat.T:
            line = np.stack([middle - axis, middle + axis])
            made.append(Shape(line, None, rgba(self.colour), 0.6, False, _FRONT, self.kind))
        return made


def check_scale(scale: float | None) -> float | None:
    """A scale that is given, checked."""
    if scale is None:
        return None
    a = reals(scale)
    if a is None or a.ndim or not 1 / LARGEST <= a <= LARGEST:
        raise InputError(f"Expected `scale` to be a positive length, got {short_repr(scale)}.")
    return float(a)


def common_scales(
    added: Sequence[VectorOverlay | EllipsoidOverlay], view: View, extent: float
) -> dict[tuple[str, str, str], float]:
    """One scale for all of a kind, unit and colour: the last that was given, or one with which all fit."""
    found: dict[tuple[str, str, str], float] = {}
    for one in added:
        key, scale = (one.kind, one.unit, one.colour), one.scale(view, extent)
        if scale > 0:
            found[key] = min(scale, found.get(key, np.inf))
    return found | {(one.kind, one.unit, one.colour): one.given for one in added if one.given is not None}


def curve_shapes(places: np.ndarray, view: View, colour: str, name: str) -> list[Shape]:
    """A curve through places (n, 3), broken where they are NaN."""
    made, run = [], list[np.ndarray]()
    for p in [*view.project(places), np.full(2, np.nan)]:
        if np.isnan(p).any():
            if len(run) > 1:
                made.append(Shape(np.stack(run), None, rgba(colour), 1.1, False, _FRONT, "trace", name))
            run = []
        else:
            run.append(p)
    return made
