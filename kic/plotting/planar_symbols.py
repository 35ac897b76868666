"""Symbols of a planar mechanism in plan view, as in textbooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from kic.plotting import symbols as sym
from kic.plotting.diagram import Mark
from kic.plotting.figures import INK
from kic.plotting.symbols import BOLD, DRIVEN, FINE, FLOOR, LINE, Shape, Symbols, circle, rgba
from kic.plotting.view import View

# layers in painting order; faces hide no ground, and joints cover the links that they connect
_WHEEL, _FACE, _GROUND, _BODY, _ROD, _JOINT, _DOT, _SIGN = range(-1, 7)
_FACES, _ON_BODY, _ON_BLOCK = -1e4, 2.0, 3.0
# candidate directions of a pedestal, in order of preference
_DOWN = np.array([[0.0, -1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
# cosines of the angle to the nearest link: free direction; limit for a pedestal that points down
_FREE_COS_MAX, _PEDESTAL_COS_MAX = 0.2, 0.66
# an arrow keeps its direction up to this cosine, which avoids jumps in animations
_ARROW_COS_MAX = 0.6
_CHAIN_PERIOD_PT = 13.0  # of a chain line
_LINK_HALF_WIDTH = 0.52  # in radii of a joint


class PlanarSymbols(Symbols):
    """Converter from marks to shapes in the plane."""

    def __init__(self, view: View, size: float, points: float, order: Mapping[str, int]) -> None:
        super().__init__(view, size, points, order)
        self._segments: list[tuple[np.ndarray, np.ndarray]] = []
        self._pedestal_directions: dict[str, np.ndarray] = {}
        self._arrow_directions: dict[str, np.ndarray] = {}
        self._levels: dict[str, float] = {}

    def draw(self, marks: Sequence[Mark]) -> list[Shape]:
        """Return shapes of all marks of one configuration.

        Pedestals keep the direction from the first configuration drawn.
        """
        self._shapes, self._segments = [], []
        for mark in marks:
            if mark.kind in ("link", "plate", "solid", "guide", "rod", "ram", "telescope"):
                p = self.view.project(mark.places)
                closing = [(p[-1], p[0])] if mark.kind == "plate" else []
                # the interior of a face is also occupied
                within = [(corner, p.mean(axis=0)) for corner in p] if closing else []
                self._segments += [*pairwise(p), *closing, *within]
        self._levels = self._body_levels(marks)
        for mark in marks:
            self._symbol(mark, self.view.project(mark.places))
        return self._shapes

    def _body_levels(self, marks: Sequence[Mark]) -> dict[str, float]:
        """Return the levels of bodies: in their order, but faces first, and sliders above their guides."""
        levels = {body: float(k) for body, k in self.order.items()}
        for mark in marks:
            if mark.kind in ("plate", "solid") and levels[mark.body] >= 0:
                levels[mark.body] += _FACES
        for mark in [mark for mark in marks if mark.kind == "guide"]:
            guide, slider = mark.bodies
            levels[slider] = max(levels[slider], levels[guide] + 0.1)
        return levels

    def _level(self, mark: Mark) -> float:
        """Return the highest level of the bodies of a mark."""
        return max(self._levels.get(body, -np.inf) for body in (mark.body, *mark.bodies))

    def _project(
        self, mark: Mark, places: np.ndarray, depth: float | None, sub: float
    ) -> tuple[np.ndarray, tuple[float, ...]]:
        assert depth is not None  # for the type checker: shapes in the plane have layers
        level = self._level(mark) if depth == _BODY else 0.0
        # joints of faces lie on the level of the face, but ground pivots stay visible
        if level < 0 and not mark.grounded:
            depth = _FACE
        return places, (float(depth), level, sub)

    def _bar(self, mark: Mark, xy: np.ndarray, closed: bool = False, half: float = _LINK_HALF_WIDTH) -> None:
        """Draw a body of constant width along a path or around a face, with an outline."""
        width, colour = 2 * half * self.size * self.points, self._colour(mark)
        self._put(mark, xy, _BODY, None, width=width + 2 * LINE * 0.8, closed=closed)
        self._put(mark, xy, _BODY, colour if closed else None, colour, width, closed, sub=1)

    def _link(self, mark: Mark, p: np.ndarray) -> None:
        self._bar(mark, p)

    def _plate(self, mark: Mark, p: np.ndarray) -> None:
        self._bar(mark, p, closed=True)

    def _stem(self, mark: Mark, p: np.ndarray) -> None:
        self._bar(mark, p, half=0.3)

    def _rod(self, mark: Mark, p: np.ndarray) -> None:
        self._line(mark, p, _ROD, BOLD)
        for end in p:
            self._put(mark, end + 0.55 * self.size * circle(), _JOINT, rgba(sym.WHITE), width=LINE)

    def _ram(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a cylinder with its piston rod between two pins."""
        shortest = float(np.linalg.norm(p[1] - p[0])) + min(0.0, *mark.travel)
        self._barrel(mark, p, 0.1 * shortest, 0.62 * shortest)
        for pin in p:
            self._put(mark, pin + 0.55 * self.size * circle(), _JOINT, rgba(sym.WHITE), width=LINE)

    def _guide(self, mark: Mark, p: np.ndarray) -> None:
        """Draw the rod of a sliding block; the rod of a yoke extends to both sides."""
        axis = self._along(mark)
        low, high = float((p[1] - p[0]) @ axis) + np.array(mark.travel)
        spare = 4.5 * self.size
        if mark.sizes[0]:
            high = max(abs(low), abs(high))
            low = -high
        start = low - spare if low < 0 else 0.0
        end = high + spare if high > 0 else 0.0
        self._bar(mark, p[0] + np.outer([start, end], axis))

    def _telescope(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a cylinder and its piston rod."""
        d = p[1] - p[0]
        # constant length of the barrel, limited by the shortest configuration
        length = float(np.linalg.norm(d)) * np.sign(d @ self._along(mark))
        shortest = min(abs(length + t) for t in mark.travel)
        self._barrel(mark, p, 0.12 * shortest, 0.55 * shortest)

    def _barrel(self, mark: Mark, p: np.ndarray, start: float, end: float) -> None:
        """Draw a piston rod with a barrel between two distances from its first end."""
        u = (p[1] - p[0]) / float(np.linalg.norm(p[1] - p[0]))
        colour = rgba(DRIVEN, 0.25) if mark.driven else rgba(FLOOR)
        self._line(mark, p, _ROD, BOLD)
        barrel = self._strip(p[0] + start * u, p[0] + end * u, 0.75)
        self._put(mark, barrel, _ROD, colour, width=LINE, named=True, sub=1)

    def _strip(self, a: np.ndarray, b: np.ndarray, half: float) -> np.ndarray:
        d = (b - a) / np.linalg.norm(b - a)
        across = half * self.size * sym.perpendicular(d)
        return np.stack([a + across, b + across, b - across, a - across])

    def _along(self, mark: Mark) -> np.ndarray:
        d = self.view.project(mark.directions[0])
        return d / np.linalg.norm(d)

    def _revolute(self, mark: Mark, p: np.ndarray) -> None:
        r = self.size
        stand = [self._pedestal(mark, p[0])] if mark.grounded else []
        face = rgba(DRIVEN) if mark.driven else rgba(sym.WHITE)
        self._put(mark, p[0] + r * circle(), _BODY, face, named=True, sub=_ON_BLOCK)
        if mark.driven:
            self._turn(mark, p[0], float(np.sign(mark.directions[0] @ self.view.toward)), stand)

    def _spherical(self, mark: Mark, p: np.ndarray) -> None:
        if mark.grounded:
            self._pedestal(mark, p[0])
        face = rgba(FLOOR)
        self._put(mark, p[0] + self.size * circle(), _BODY, face, width=BOLD, named=True, sub=_ON_BLOCK)

    _universal = _cylindrical = _spherical

    def _fixed(self, mark: Mark, p: np.ndarray) -> None:
        square = 0.6 * self.size * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        self._put(mark, p[0] + square, _BODY, sym.INK_RGBA, named=True, sub=_ON_BLOCK)
        if mark.grounded:
            self._hatch(mark, p[0], np.array([0.0, -1.0]), 2.0)

    def _prismatic(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a block; on ground it slides along a rail."""
        axis, r = self._along(mark), self.size
        across = sym.perpendicular(axis)
        if mark.grounded:
            if across[1] > 1e-9 or (abs(across[1]) <= 1e-9 and across[0] < 0):
                across = -across
            rail = p[0] + 1.25 * r * across
            # the rail is fixed and covers the travel of the block
            start, end = mark.travel[0] - 6.0 * r, mark.travel[1] + 6.0 * r
            self._line(mark, rail + np.outer([start, end], axis), _GROUND, BOLD)
            self._hatch(mark, rail + (start + end) / 2 * axis, across, (end - start) / (2 * r), line=False)
        block = self._strip(p[0] - 2.1 * r * axis, p[0] + 2.1 * r * axis, 1.25)
        colour = rgba(DRIVEN, 0.35) if mark.driven else self._colour(mark)
        self._put(mark, block, _BODY, colour, named=True, sub=_ON_BODY)
        if mark.driven:
            offset = -2.4 * r * across
            a, b = p[0] + offset - 2.4 * r * axis, p[0] + offset + 2.4 * r * axis
            self._arrow(mark, np.stack([a, b]))

    def _arrow(self, mark: Mark, line: np.ndarray) -> None:
        length = 1.5 * self.size
        colour = rgba(DRIVEN)
        tip = sym.arrow_head(line[-1], line[-1] - line[-2], length)
        self._put(mark, tip, _SIGN, colour, None, closed=True)
        shaft = line[:-1] if len(line) > 2 else np.stack([line[0], tip[2]])
        self._line(mark, shaft, _SIGN, BOLD, colour)

    def _turn(self, mark: Mark, centre: np.ndarray, sense: float, stand: list[np.ndarray]) -> None:
        """Draw a curved arrow in the direction farthest from links and pedestals."""
        taken = [*self._link_directions(centre), *stand]
        room = self._arrow_directions.get(mark.name)
        if room is None or any(room @ d > _ARROW_COS_MAX for d in taken):
            room = self._arrow_directions[mark.name] = _freest_direction(circle(16), taken, _FREE_COS_MAX)
        start = np.arctan2(room[1], room[0]) - sense * 0.95
        arc = centre + 2.15 * self.size * circle(24, start, sense * 1.9)
        self._arrow(mark, arc)

    def _link_directions(self, centre: np.ndarray) -> list[np.ndarray]:
        """Return the directions of links at a point where they end or pass through."""
        taken = []
        for a, b in self._segments:
            d = b - a
            length = float(np.linalg.norm(d))
            if length == 0:
                continue
            along = float((centre - a) @ d) / length
            if np.linalg.norm(a + np.clip(along, 0.0, length) * d / length - centre) < 0.6 * self.size:
                taken += [d / length] if along < length - self.size else []
                taken += [-d / length] if along > self.size else []
        return taken

    def _pedestal(self, mark: Mark, p: np.ndarray, down: np.ndarray | None = None) -> np.ndarray:
        """Draw a triangle on hatched ground and return its direction."""
        r = self.size
        if down is None:
            # joints with a common position share one pedestal
            key = str((np.round(p / r) + 0.0).tolist())  # no negative zero
            if key not in self._pedestal_directions:
                taken = self._link_directions(p)
                stands = not any(_DOWN[0] @ d > _PEDESTAL_COS_MAX for d in taken)
                self._pedestal_directions[key] = (
                    _DOWN[0] if stands else _freest_direction(_DOWN, taken, _FREE_COS_MAX)
                )
            down = self._pedestal_directions[key]
        across = sym.perpendicular(down)
        foot = p + 2.6 * r * down
        corners = np.stack(
            [p + 0.7 * r * across, foot + 1.5 * r * across, foot - 1.5 * r * across, p - 0.7 * r * across]
        )
        self._put(mark, corners, _GROUND + 0.5, rgba(sym.WHITE))
        self._hatch(mark, foot, down, 2.3)
        return down

    def _anchor(self, mark: Mark, p: np.ndarray) -> None:
        """Draw ground at the end of a spring or a rod, away from its other end."""
        away = p[0] - p[1]
        self._pedestal(mark, p[0], _DOWN[int(np.argmax(_DOWN @ away))])

    def _hatch(
        self, mark: Mark, middle: np.ndarray, down: np.ndarray, half: float, line: bool = True
    ) -> None:
        """Draw hatching below a ground line."""
        r, across = self.size, sym.perpendicular(down)
        if line:
            ends = middle + np.outer([-half * r, half * r], across)
            self._line(mark, ends, _GROUND + 0.6, BOLD)
        count = max(4, round(2 * half / 0.85))
        for x in np.linspace(-half, half, count + 1)[1:]:
            a = middle + x * r * across
            b = a + r * (0.85 * down - 0.8 * across)
            self._line(mark, np.stack([a, b]), _GROUND, FINE)

    def _coil(self, mark: Mark, p: np.ndarray) -> None:
        self._line(mark, sym.zigzag(p[0], p[1], 1.2 * self.size), _ROD)

    def _dashpot(self, mark: Mark, p: np.ndarray) -> None:
        a, b = p[0] + 0.4 * (p[1] - p[0]), p[0] + 0.6 * (p[1] - p[0])
        self._line(mark, np.stack([p[0], p[1]]), _ROD)
        self._put(mark, self._strip(a, b, 0.9), _ROD + 0.5, rgba(sym.WHITE))

    def _wheel(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a pulley with its rim, or a gear with teeth and its pitch circle as a chain line."""
        face, rim, radius = self._colour(mark, 0.35), rgba(INK, 0.35), mark.sizes[0]
        if len(mark.sizes) == 1:
            self._put(mark, p[0] + radius * circle(96), _WHEEL, face, rim, LINE)
            return
        teeth = int(mark.sizes[1])
        along = self.view.project(mark.directions[1])
        outline = sym.gear_outline(radius, teeth, mark.sizes[2]) @ np.stack([along, sym.perpendicular(along)])
        if teeth < 0:
            self._put(
                mark, p[0] + sym.rim_radius(radius, teeth) * circle(96), _WHEEL, face, rim, FINE, sub=-1
            )
        self._put(mark, p[0] + outline, _WHEEL, face if teeth > 0 else rgba(sym.WHITE), rim, FINE)
        count = max(8, round(2 * np.pi * radius * self.points / _CHAIN_PERIOD_PT))
        for k in range(count):
            for start, span in ((0.0, 0.6), (0.77, 0.06)):
                arc = circle(9, 2 * np.pi * (k + start) / count, 2 * np.pi * span / count)
                self._line(mark, p[0] + radius * arc, _WHEEL + 0.5, FINE, colour=rim)

    def _belt(self, mark: Mark, p: np.ndarray) -> None:
        """Draw an open belt around both pulleys."""
        d = p[1] - p[0]
        between = float(np.linalg.norm(d))
        path = sym.belt_outline(mark.sizes, between) @ np.stack([d / between, sym.perpendicular(d / between)])
        self._put(mark, p[0] + path, _ROD, None, rgba(INK), BOLD)

    def _tie(self, mark: Mark, p: np.ndarray) -> None:
        self._dashes(mark, p, _SIGN)

    def _touch(self, mark: Mark, p: np.ndarray) -> None:
        """Draw a contact with its tangent, hatched on ground."""
        n = self._along(mark)
        if mark.grounded:
            # rounded ends of bodies stay above the ground line
            self._hatch(mark, p[0] + 0.6 * self.size * n, n, 2.6)
        else:
            tangent = 1.8 * self.size * np.outer([-1, 1], sym.perpendicular(n))
            self._line(mark, p[0] + tangent, _JOINT, BOLD)
        self._put(mark, p[0] + 0.6 * self.size * circle(), _JOINT, sym.INK_RGBA, named=True)

    def _lifted(self, mark: Mark, p: np.ndarray) -> None:
        self._put(mark, p[0] + 0.6 * self.size * circle(), _JOINT, rgba(sym.WHITE), named=True)

    def _dot(self, mark: Mark, p: np.ndarray) -> None:
        self._put(mark, p[0] + 0.5 * self.size * circle(32), _DOT, sym.INK_RGBA, None, named=True)

    def _frame(self, mark: Mark, p: np.ndarray) -> None:
        self._axes(mark, p[0], _SIGN)


def _freest_direction(candidates: np.ndarray, taken: list[np.ndarray], enough: float) -> np.ndarray:
    """Return the candidate farthest from the occupied directions, or the first that is far enough."""
    if not taken:
        return candidates[0]
    nearest = np.maximum((candidates @ np.array(taken).T).max(axis=1), enough)
    return candidates[int(np.argmin(np.round(nearest, 6)))]
