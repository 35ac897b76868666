"""Symbols of a spatial mechanism: projected cylinders, boxes, balls and faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kic.plotting import symbols as sym
from kic.plotting.depth_sort import depth_sorted
from kic.plotting.diagram import Mark
from kic.plotting.figures import INK
from kic.plotting.link_shapes import hull
from kic.plotting.symbols import DRIVEN, FLOOR, STEEL, Colour, Shape, Symbols, circle, rgba
from kic.plotting.view import View

_RIM_WIDTH = 0.6  # points
_BAR_PIECES_MAX = 60
# symbols are moved toward the viewer by this many radii, to cover the ends of bars
_FRONT_OFFSET = 1.8
# half width of a link in radii of a joint
_LINK_HALF_WIDTH = 0.42
# minimum aspect ratio of the circle of a turning arrow
_ARROW_ASPECT_MIN = 0.35
_CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
_SQUARE = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
_SIDES = [(k, s) for k in range(3) for s in (-1, 1)]


class SpatialSymbols(Symbols):
    """Converter from marks to shapes in an orthographic view, sorted by depth.

    The other parameters are those of `Symbols`; `down` (3,) is the direction toward ground.
    """

    def __init__(
        self, view: View, size: float, points: float, order: Mapping[str, int], down: np.ndarray
    ) -> None:
        super().__init__(view, size, points, order)
        self.down = down
        self._solids = 0

    def _project(
        self, mark: Mark, places: np.ndarray, depth: float | None, sub: float
    ) -> tuple[np.ndarray, tuple[float, ...]]:
        """Project points (n, 3), by default at their mean depth; points (n, 2) are already projected."""
        depth = float(self.view.depth(places).mean()) if depth is None else depth
        self._solids += sub == 0
        return self.view.project(places) if places.shape[1] == 3 else places, (depth, self._solids, sub)

    def _face(self, mark: Mark, places: np.ndarray, face: Colour, edge: Colour | None) -> None:
        """Add a planar polygon; its plane is stored for depth sorting of overlapping shapes."""
        depth = self.view.depth(places)
        self._put(mark, places, float(depth.mean()), face, edge)
        shape = self._shapes[-1]
        middle = shape.xy.mean(axis=0)
        slope, _, rank, _ = np.linalg.lstsq(shape.xy - middle, depth - depth.mean(), rcond=1e-6)
        if rank == 2:  # a face seen edge-on hides nothing
            level = float(depth.mean() - middle @ slope)
            self._shapes[-1] = replace(shape, plane=(level, *map(float, slope)))  # type: ignore[arg-type]

    def _bar(self, mark: Mark, a: np.ndarray, b: np.ndarray, half: float, colour: Colour) -> None:
        """Add a round bar, divided into pieces that are sorted independently."""
        flat = self.view.project(np.stack([a, b]))
        d = flat[1] - flat[0]
        length, radius = float(np.linalg.norm(d)), half * self.size
        near = self.view.depth(np.stack([a, b]))
        if length < 0.05 * self.size:
            self._put(mark, flat[0] + radius * circle(24), float(near.max()), colour, width=sym.FINE)
            return
        along = d / length
        across = radius * sym.perpendicular(along)
        pieces = int(np.clip(np.ceil(length / (3 * self.size)), 1, _BAR_PIECES_MAX))
        t = np.linspace(0, 1, pieces + 1)
        over = 0.02 * length / pieces * along
        for k in range(pieces):
            p, q = flat[0] + t[k] * d, flat[0] + t[k + 1] * d
            depth = float(near[0] + 0.5 * (t[k] + t[k + 1]) * (near[1] - near[0]))
            strip = np.stack([p + across - over, q + across + over, q - across + over, p - across - over])
            self._put(mark, strip, depth, colour, None)
            for side in (across, -across):
                self._line(mark, np.stack([p + side, q + side]), depth, _RIM_WIDTH, sub=1)
        # the end toward the viewer is fully visible, the other one only behind the bar
        tilt = (near[1] - near[0]) / float(np.hypot(length, near[1] - near[0]))
        for end, depth, toward in ((flat[0], near[0], -tilt), (flat[1], near[1], tilt)):
            ring = end + circle(32) @ np.stack([across, abs(tilt) * radius * along])
            self._put(mark, ring, float(depth), colour, width=_RIM_WIDTH, sub=2 if toward > 0 else -1)

    def _path(self, mark: Mark, p: np.ndarray, half: float, colour: Colour) -> None:
        for a, b in pairwise(p):
            self._bar(mark, a, b, half, colour)
        for corner in p[1:-1]:
            disc = self.view.project(corner) + half * self.size * circle(24)
            near = float(self.view.depth(corner)) + 0.1 * self.size
            self._put(mark, disc, near, colour, width=_RIM_WIDTH)

    def _ball(self, mark: Mark, centre: np.ndarray, radius: float, named: bool = False) -> None:
        flat, r = self.view.project(centre), radius * self.size
        near = float(self.view.depth(centre)) + _FRONT_OFFSET * self.size
        self._put(mark, flat + r * circle(), near, rgba(STEEL), named=named)
        highlight = flat + r * (0.42 * circle(24) + np.array([-0.3, 0.32]))
        self._put(mark, highlight, near, rgba(sym.WHITE), None, sub=1)

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
        ring = radius * r * circle(40) @ sym.perpendicular_axes(axis)
        ends = [centre - half * r * axis, centre + half * r * axis]
        if axis @ self.view.toward < 0:
            ends = ends[::-1]
        near = float(self.view.depth(centre)) + _FRONT_OFFSET * r
        outline = hull(self.view.project(np.concatenate([ends[0] + ring, ends[1] + ring])))
        self._put(mark, outline, near, colour, named=named)
        light = tuple(0.5 * c + 0.5 for c in colour[:3])
        self._put(mark, ends[1] + ring, near, (*light, 1.0), width=_RIM_WIDTH, sub=1)  # type: ignore[arg-type]

    def _box(
        self, mark: Mark, centre: np.ndarray, axes: np.ndarray, half: np.ndarray, colour: Colour
    ) -> None:
        """Add the visible sides of a box with shading."""
        corners = centre + (_CUBE * half * self.size) @ axes
        near = float(self.view.depth(centre)) + _FRONT_OFFSET * self.size
        named = True
        for k, s in _SIDES:
            facing = s * float(axes[k] @ self.view.toward)
            if facing > 1e-6:
                side = corners[_CUBE[:, k] == s]
                flat = hull(self.view.project(side))
                light = 0.45 * facing
                shade = tuple(c + (1 - c) * light for c in colour[:3])
                self._put(mark, flat, near, (*shade, 1.0), width=_RIM_WIDTH, named=named)  # type: ignore[arg-type]
                named = False

    def _pedestal(
        self,
        mark: Mark,
        p: np.ndarray,
        axis: np.ndarray | None,
        reach: float = 2.4,
        down: np.ndarray | None = None,
    ) -> None:
        """Add a hatched plate on the ground and a column to the joint."""
        r, down = self.size, self.down if down is None else down
        upright = axis is not None and abs(float(axis @ down)) > 0.9
        foot = p + (1.3 if upright else reach) * r * down
        if not upright:
            self._bar(mark, p, foot, 0.5, rgba(STEEL))
        sides = 1.9 * r * sym.perpendicular_axes(down)
        plate = foot + _SQUARE @ sides
        depth = float(self.view.depth(foot)) - 1.5 * r
        self._put(mark, plate, depth, rgba(FLOOR), width=sym.LINE)
        self._strokes(mark, foot, sides, depth)

    def _ground(self, mark: Mark, p: np.ndarray, axis: np.ndarray | None = None) -> None:
        """Add a pedestal below a joint on ground."""
        if mark.grounded:
            self._pedestal(mark, p, axis)

    def _strokes(self, mark: Mark, middle: np.ndarray, sides: np.ndarray, near: float) -> None:
        """Add hatching of a square with half sides (2, 3)."""
        for x in (-1.0, 0.0, 1.0):
            start = max(-1.0, x - 1), max(-1.0, -x - 1)
            end = min(1.0, x + 1), min(1.0, 1 - x)
            stroke = middle + np.array([start, end]) @ sides
            self._line(mark, stroke, near, sym.FINE, sub=1)

    def draw(self, marks: Sequence[Mark]) -> list[Shape]:
        """Return shapes of all marks of one configuration in painting order."""
        self._shapes = []
        for mark in marks:
            self._symbol(mark, mark.places)
        return depth_sorted(self._shapes, 0.3 * self.size)

    def _link(self, mark: Mark, p: np.ndarray) -> None:
        self._path(mark, p, _LINK_HALF_WIDTH, self._colour(mark))

    def _stem(self, mark: Mark, p: np.ndarray) -> None:
        self._path(mark, p, 0.22, self._colour(mark))

    def _rod(self, mark: Mark, p: np.ndarray) -> None:
        self._bar(mark, p[0], p[1], 0.3, rgba(STEEL))
        for end in p:
            self._ball(mark, end, 0.65)

    def _guide(self, mark: Mark, p: np.ndarray) -> None:
        axis = mark.directions[0]
        reach = float((p[1] - p[0]) @ axis)
        end = reach + np.copysign(4 * self.size, reach)
        start = -end if mark.sizes[0] else 0.0
        self._bar(mark, p[0] + start * axis, p[0] + end * axis, _LINK_HALF_WIDTH, self._colour(mark))

    def _telescope(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a cylinder and its piston rod, in the colour of driven joints if it is driven."""
        a, b = p
        length = float(np.linalg.norm(b - a))
        u = (b - a) / length
        start, middle = a + min(0.1 * length, 1.2 * self.size) * u, a + 0.58 * length * u
        self._barrel(mark, a, b, start, middle)

    def _ram(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a cylinder with its piston rod between two balls."""
        a, b = p
        length = float(np.linalg.norm(b - a))
        u, shortest = (b - a) / length, length + min(0.0, *mark.travel)
        self._barrel(mark, a, b, a + min(0.1 * shortest, 1.2 * self.size) * u, a + 0.62 * shortest * u)
        for end in p:
            self._ball(mark, end, 0.65)

    def _barrel(
        self, mark: Mark, a: np.ndarray, b: np.ndarray, start: np.ndarray, middle: np.ndarray
    ) -> None:
        """Draw a barrel from `start` to `middle` on the rod from a to b."""
        u = (b - a) / float(np.linalg.norm(b - a))
        self._bar(mark, a, start, 0.3, rgba(STEEL))
        self._bar(mark, middle, b, 0.3, rgba(STEEL))
        colour = rgba(DRIVEN, 0.25) if mark.driven else self._colour(mark) if mark.body else rgba(FLOOR)
        self._bar(mark, start, middle, 0.75, colour)
        near, far = (start, middle) if self.view.depth(start) > self.view.depth(middle) else (middle, start)
        ring = 0.75 * self.size * circle(32) @ sym.perpendicular_axes(u)
        for end in (far, near):
            depth = float(self.view.depth(end)) + 0.3 * self.size
            face = rgba(DRIVEN, 0.5) if mark.driven else rgba(FLOOR)
            self._put(mark, end + ring, depth, face, width=_RIM_WIDTH, named=end is near)

    def _plate(self, mark: Mark, p: np.ndarray) -> None:
        colour = self._colour(mark, 0.62)
        self._face(mark, p, colour, None)
        for a, b in zip(p, np.roll(p, -1, axis=0), strict=True):
            self._bar(mark, a, b, 0.24, self._colour(mark))

    def _solid(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a hull: its visible faces and all its edges."""
        from scipy.spatial import ConvexHull

        made = ConvexHull(p)
        colour = self._colour(mark, 0.4)
        facing = made.equations[:, :3] @ self.view.toward
        for corners, front in zip(made.simplices, facing, strict=True):
            if front > 0:
                self._face(mark, p[corners], colour, None)
        for k, corners in enumerate(made.simplices):
            for n, other in enumerate(made.neighbors[k]):
                if other < k or made.equations[k, :3] @ made.equations[other, :3] > 1 - 1e-9:
                    continue
                edge = p[[c for m, c in enumerate(corners) if m != n]]
                seen = max(facing[k], facing[other]) > 0
                style = (sym.LINE, sym.INK_RGBA) if seen else (sym.FINE, rgba(INK, 0.6))
                self._line(mark, edge, None, *style)

    def _revolute(self, mark: Mark, p: np.ndarray) -> None:
        axis = mark.directions[0]
        self._ground(mark, p[0], axis)
        self._centre_line(mark, p[0], axis)
        self._cylinder(mark, p[0], axis, 1.0, 1.3, rgba(DRIVEN if mark.driven else STEEL))
        if mark.driven:
            self._turn(mark, p[0], axis)

    def _centre_line(self, mark: Mark, p: np.ndarray, axis: np.ndarray) -> None:
        """Draw the axis of a joint slightly beyond both ends."""
        for side in (1.3, -1.3):
            line = p + self.size * np.outer([side, 2.1 * side], axis)
            self._line(mark, line, None, sym.FINE)

    def _turn(self, mark: Mark, p: np.ndarray, axis: np.ndarray) -> None:
        """Draw an arrow around the axis, at the visible end or at the end away from ground."""
        r = self.size
        side = 1.0 if axis @ self.view.toward > 0 else -1.0
        if mark.grounded and abs(float(axis @ self.down)) > 0.7:
            side = -1.0 if axis @ self.down > 0 else 1.0
        tip = self.view.project(axis)
        slant = float(np.linalg.norm(tip))
        along = tip / slant if slant > 1e-9 else np.array([0.0, 1.0])
        # a circle seen edge-on would be a line
        open_ = float(axis @ self.view.toward)
        open_ = np.copysign(max(abs(open_), _ARROW_ASPECT_MIN), open_)
        turn = np.stack([-sym.perpendicular(along), open_ * along])
        centre = p + side * 2.0 * r * axis
        middle, depth = self.view.project(centre), float(self.view.depth(centre))
        # open to the front, since it has the colour of the joint; half of it is behind the joint
        for start, span, near in ((-0.5, 0.5, 2.2 * r), (0.0, np.pi, -0.5 * r), (np.pi, 0.8, 2.2 * r)):
            flat = middle + 1.6 * r * circle(24, start, span) @ turn
            self._line(mark, flat, depth + near, sym.LINE + 0.1, rgba(DRIVEN))
        tip = middle + 1.6 * r * circle(2, np.pi + 0.8, 0.35) @ turn
        self._put(mark, sym.arrow_head(tip[1], tip[1] - tip[0], r), depth + 2.2 * r, rgba(DRIVEN), None)

    def _cylindrical(self, mark: Mark, p: np.ndarray) -> None:
        axis = mark.directions[0]
        self._ground(mark, p[0], axis)
        self._bar(mark, p[0] - 3.2 * self.size * axis, p[0] + 3.2 * self.size * axis, 0.4, rgba(STEEL))
        self._cylinder(mark, p[0], axis, 1.0, 1.8, rgba(DRIVEN if mark.driven else STEEL))
        if mark.driven:
            self._turn(mark, p[0] + 0.6 * self.size * axis, axis)

    def _spherical(self, mark: Mark, p: np.ndarray) -> None:
        self._ground(mark, p[0])
        self._ball(mark, p[0], 1.0, named=True)

    def _universal(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a cross of two pins."""
        self._ground(mark, p[0])
        colour = rgba(DRIVEN if mark.driven else STEEL)
        for axis in sorted(mark.directions, key=lambda a: -abs(float(a @ self.view.toward))):
            self._cylinder(mark, p[0], axis, 0.5, 1.5, colour)

    def _fixed(self, mark: Mark, p: np.ndarray) -> None:
        self._ground(mark, p[0])
        self._box(mark, p[0], np.eye(3), np.full(3, 0.55), rgba(INK, 0.3))

    def _prismatic(self, mark: Mark, p: np.ndarray) -> None:
        axis = mark.directions[0]
        one, two = sym.perpendicular_axes(axis)
        r = self.size
        if mark.grounded:
            ends = p[0] + np.outer([-6 * r, 6 * r], axis)
            self._bar(mark, ends[0], ends[1], 0.3, rgba(STEEL))
            upright = abs(float(axis @ self.down)) > 0.5
            for end in sorted(ends, key=lambda p: float(p @ self.down))[1 if upright else 0 :]:
                self._pedestal(mark, end, axis, 1.0)
        colour = rgba(DRIVEN, 0.2) if mark.driven else self._colour(mark)
        self._box(mark, p[0], np.stack([axis, one, two]), np.array([1.7, 1.0, 1.0]), colour)
        if mark.driven:
            across = np.cross(axis, self.view.toward)
            size = np.linalg.norm(across)
            across = across / size if size > 1e-9 else one
            line = p[0] + 2.3 * r * across + np.outer([-2.2 * r, 2.2 * r], axis)
            depth = float(self.view.depth(p[0])) + 2 * r
            flat = self.view.project(line)
            self._line(mark, flat, depth, sym.LINE + 0.1, rgba(DRIVEN))
            self._put(mark, sym.arrow_head(flat[1], flat[1] - flat[0], 1.2 * r), depth, rgba(DRIVEN), None)

    def _anchor(self, mark: Mark, p: np.ndarray) -> None:
        """Draw ground at the end of a spring or a rod, away from its other end."""
        away = p[1] - p[0]
        up = float(away @ self.down) > 0.7 * float(np.linalg.norm(away))
        self._pedestal(mark, p[0], None, down=-self.down if up else self.down)

    def _coil(self, mark: Mark, p: np.ndarray) -> None:
        flat, depth = self.view.project(p), self.view.depth(p)
        wire = sym.zigzag(flat[0], flat[1], 1.2 * self.size)
        # windings are sorted independently, since they may pass other shapes on both sides
        for one, other in pairwise(wire):
            share = np.linalg.norm((one + other) / 2 - flat[0]) / np.linalg.norm(flat[1] - flat[0])
            near = float(depth[0] + share * (depth[1] - depth[0]))
            self._line(mark, np.stack([one, other]), near)

    def _dashpot(self, mark: Mark, p: np.ndarray) -> None:
        self._bar(mark, p[0], p[1], 0.2, rgba(STEEL))
        self._bar(mark, p[0] + 0.4 * (p[1] - p[0]), p[0] + 0.6 * (p[1] - p[0]), 0.7, rgba(FLOOR))

    def _wheel(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a pulley as a disc, a gear with teeth."""
        colour = self._colour(mark, 0.45)
        if len(mark.sizes) == 1:
            ring = mark.sizes[0] * circle(96) @ sym.perpendicular_axes(mark.directions[0])
        else:
            axis, along = mark.directions
            radius, teeth, phase = mark.sizes
            axes = np.stack([along, np.cross(axis, along)])
            ring = sym.gear_outline(radius, int(teeth), phase) @ axes
            if teeth < 0:  # a ring is a polygon with a slit, and outlines without it
                rim = sym.rim_radius(radius, int(teeth)) * circle(97, 0.0, 2 * np.pi - 1e-9) @ axes
                self._face(mark, p[0] + np.concatenate([rim, ring[::-1], ring[-1:]]), colour, None)
                for line in (np.concatenate([ring, ring[:1]]), rim):
                    self._line(mark, p[0] + line, None, sym.FINE, rgba(INK, 0.3))
                return
        self._face(mark, p[0] + ring, colour, rgba(INK, 0.3))

    def _belt(self, mark: Mark, p: np.ndarray) -> None:
        """Draw an open belt around both pulleys, in pieces that are sorted independently."""
        d = p[1] - p[0]
        between = float(np.linalg.norm(d))
        axes = np.stack([d / between, np.cross(mark.directions[0], d / between)])
        path = p[0] + sym.belt_outline(mark.sizes, between) @ axes
        for one, other in zip(path, np.roll(path, -1, axis=0), strict=True):
            self._line(mark, np.stack([one, other]), None, sym.BOLD)

    def _tie(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a coupling with general ratios in front of the joints."""
        self._dashes(mark, self.view.project(p), float(self.view.depth(p).max()) + 4 * self.size)

    def _touch(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a contact with its tangent plane, hatched on ground."""
        normal = mark.directions[0]
        sides = 1.7 * self.size * sym.perpendicular_axes(normal)
        plane = p[0] + _SQUARE @ sides
        depth = float(self.view.depth(p[0]))
        self._put(
            mark, plane, depth - self.size if mark.grounded else depth, rgba(FLOOR, 0, 0.8), width=sym.FINE
        )
        if mark.grounded:
            self._strokes(mark, p[0], sides, depth - self.size)
        self._disc(mark, p[0], 1.0, sym.INK_RGBA)

    def _lifted(self, mark: Mark, p: np.ndarray) -> None:
        self._disc(mark, p[0], 1.0, rgba(sym.WHITE))

    def _dot(self, mark: Mark, p: np.ndarray) -> None:
        self._disc(mark, p[0], 1.2, sym.INK_RGBA, None, 32)

    def _disc(
        self,
        mark: Mark,
        centre: np.ndarray,
        toward: float,
        face: Colour,
        edge: Colour | None = sym.INK_RGBA,
        count: int = 48,
    ) -> None:
        """Add a small disc, moved by `toward` radii of a joint toward the viewer."""
        disc = self.view.project(centre) + 0.5 * self.size * circle(count)
        self._put(mark, disc, float(self.view.depth(centre)) + toward * self.size, face, edge, named=True)

    def _frame(self, mark: Mark, p: np.ndarray) -> None:
        depth = float(self.view.depth(p[0])) + 1.3 * self.size
        self._axes(mark, self.view.project(p[0]), depth)
