"""Solids as flat shapes, each as near as it is: what symbols in space are painted with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kic.picturing.figures import INK
from kic.picturing.skeleton import hull
from kic.picturing.sketch import Mark
from kic.picturing.symbols import (
    FINE,
    FLOOR,
    LINE,
    STEEL,
    WHITE,
    Colour,
    Shape,
    beside,
    circle,
    frame_about,
    rgba,
    tint,
)
from kic.picturing.views import View

_INK = rgba(INK)
_RIM = 0.6
_PIECES = 60
# symbols lie so many radii before their place, so that bars seem to end in them
_FRONT = 1.8
_CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
_SIDES = [(k, s) for k in range(3) for s in (-1, 1)]


class SolidBrush:
    """Bars, cylinders, balls, boxes and pedestals, as shapes that know how near they are.

    Parameters
    ----------
    view : View
    size : float
        Radius of a joint, in units of length.
    points : float
        Points of the page in a unit of length.
    order : mapping of str to int
        Bodies in their order.
    down : (3,)
        Where ground is.
    """

    def __init__(
        self, view: View, size: float, points: float, order: Mapping[str, int], down: np.ndarray
    ) -> None:
        self.view, self.size, self.points, self.order, self.down = view, size, points, order, down
        self._shapes: list[Shape] = []
        self._solids = 0

    def _put(
        self,
        mark: Mark,
        places: np.ndarray,
        near: float,
        face: Colour | None = None,
        edge: Colour | None = _INK,
        width: float = LINE,
        closed: bool = True,
        named: bool = False,
        sub: float = 0.0,
    ) -> None:
        """A shape of places (n, 3), or (n, 2) where they are projected already.

        What is at the same depth and has a `sub` belongs to the shape before it, over or under that.
        """
        self._solids += sub == 0
        xy = self.view.project(places) if places.shape[1] == 3 else places
        self._shapes.append(
            Shape(
                xy,
                face,
                edge,
                width,
                closed,
                (near, self._solids, sub),
                mark.kind,
                mark.name if named else "",
            )
        )

    def _face(self, mark: Mark, places: np.ndarray, face: Colour, edge: Colour | None) -> None:
        """A face of places (n, 3) in a plane, which what is near it lies before or behind."""
        depth = self.view.depth(places)
        self._put(mark, places, float(depth.mean()), face, edge)
        shape = self._shapes[-1]
        middle = shape.xy.mean(axis=0)
        slope, _, rank, _ = np.linalg.lstsq(shape.xy - middle, depth - depth.mean(), rcond=1e-6)
        if rank == 2:  # seen from its edge, it hides nothing
            level = float(depth.mean() - middle @ slope)
            self._shapes[-1] = replace(shape, plane=(level, *map(float, slope)))  # type: ignore[arg-type]

    def _colour(self, mark: Mark) -> Colour:
        return tint(self.order.get(mark.body, 0))

    def _bar(self, mark: Mark, a: np.ndarray, b: np.ndarray, half: float, colour: Colour) -> None:
        """A round bar, in pieces that are sorted each for itself."""
        flat = self.view.project(np.stack([a, b]))
        d = flat[1] - flat[0]
        length, radius = float(np.linalg.norm(d)), half * self.size
        near = self.view.depth(np.stack([a, b]))
        if length < 0.05 * self.size:
            self._put(mark, flat[0] + radius * circle(24), float(near.max()), colour, width=FINE)
            return
        along = d / length
        across = radius * beside(along)
        pieces = int(np.clip(np.ceil(length / (3 * self.size)), 1, _PIECES))
        t = np.linspace(0, 1, pieces + 1)
        over = 0.02 * length / pieces * along
        for k in range(pieces):
            p, q = flat[0] + t[k] * d, flat[0] + t[k + 1] * d
            depth = float(near[0] + 0.5 * (t[k] + t[k + 1]) * (near[1] - near[0]))
            strip = np.stack([p + across - over, q + across + over, q - across + over, p - across - over])
            self._put(mark, strip, depth, colour, None)
            for side in (across, -across):
                self._put(mark, np.stack([p + side, q + side]), depth, None, width=_RIM, closed=False, sub=1)
        # ends as they are seen: whole where they are turned to who looks, else as far as they stand out
        tilt = (near[1] - near[0]) / float(np.hypot(length, near[1] - near[0]))
        for end, depth, toward in ((flat[0], near[0], -tilt), (flat[1], near[1], tilt)):
            ring = end + circle(32) @ np.stack([across, abs(tilt) * radius * along])
            self._put(mark, ring, float(depth), colour, width=_RIM, sub=2 if toward > 0 else -1)

    def _path(self, mark: Mark, p: np.ndarray, half: float, colour: Colour) -> None:
        for a, b in pairwise(p):
            self._bar(mark, a, b, half, colour)
        for corner in p[1:-1]:
            self._put(
                mark,
                self.view.project(corner) + half * self.size * circle(24),
                float(self.view.depth(corner)) + 0.1 * self.size,
                colour,
                width=_RIM,
            )

    def _ball(self, mark: Mark, centre: np.ndarray, radius: float, named: bool = False) -> None:
        flat, r = self.view.project(centre), radius * self.size
        near = float(self.view.depth(centre)) + _FRONT * self.size
        self._put(mark, flat + r * circle(), near, rgba(STEEL), named=named)
        self._put(
            mark, flat + r * (0.42 * circle(24) + np.array([-0.3, 0.32])), near, rgba(WHITE), None, sub=1
        )

    def _cylinder(
        self,
        mark: Mark,
        centre: np.ndarray,
        axis: np.ndarray,
        radius: float,
        half: float,
        colour: Colour,
        named: bool = True,
    ) -> None:
        r = self.size
        one, two = frame_about(axis)
        ring = radius * r * circle(40) @ np.stack([one, two])
        ends = [centre - half * r * axis, centre + half * r * axis]
        if axis @ self.view.toward < 0:
            ends = ends[::-1]
        near = float(self.view.depth(centre)) + _FRONT * r
        outline = hull(self.view.project(np.concatenate([ends[0] + ring, ends[1] + ring])))
        self._put(mark, outline, near, colour, named=named)
        light = tuple(0.5 * c + 0.5 for c in colour[:3])
        self._put(mark, ends[1] + ring, near, (*light, 1.0), width=_RIM, sub=1)  # type: ignore[arg-type]

    def _box(
        self, mark: Mark, centre: np.ndarray, axes: np.ndarray, half: np.ndarray, colour: Colour
    ) -> None:
        """The three sides of a box that are seen, each in its light."""
        corners = centre + (_CUBE * half * self.size) @ axes
        near = float(self.view.depth(centre)) + _FRONT * self.size
        named = True
        for k, s in _SIDES:
            facing = s * float(axes[k] @ self.view.toward)
            if facing > 1e-6:
                side = corners[_CUBE[:, k] == s]
                flat = hull(self.view.project(side))
                light = 0.45 * facing
                shade = tuple(c + (1 - c) * light for c in colour[:3])
                self._put(mark, flat, near, (*shade, 1.0), width=_RIM, named=named)  # type: ignore[arg-type]
                named = False

    def _pedestal(
        self,
        mark: Mark,
        p: np.ndarray,
        axis: np.ndarray | None,
        reach: float = 2.4,
        down: np.ndarray | None = None,
    ) -> None:
        """A hatched plate on the ground below, and what holds the joint on it."""
        r, down = self.size, self.down if down is None else down
        upright = axis is not None and abs(float(axis @ down)) > 0.9
        foot = p + (1.3 if upright else reach) * r * down
        if not upright:
            self._bar(mark, p, foot, 0.5, rgba(STEEL))
        one, two = frame_about(down)
        plate = foot + 1.9 * r * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) @ np.stack([one, two])
        depth = float(self.view.depth(foot)) - 1.5 * r
        self._put(mark, plate, depth, rgba(FLOOR), width=LINE)
        self._strokes(mark, foot, 1.9 * r * np.stack([one, two]), depth)

    def _strokes(self, mark: Mark, middle: np.ndarray, sides: np.ndarray, near: float) -> None:
        """Hatching of a square (half sides (2, 3)): strokes from side to side, all one way."""
        for x in (-1.0, 0.0, 1.0):
            start = max(-1.0, x - 1), max(-1.0, -x - 1)
            end = min(1.0, x + 1), min(1.0, 1 - x)
            stroke = middle + np.array([start, end]) @ sides
            self._put(mark, stroke, near, None, width=FINE, closed=False, sub=1)
