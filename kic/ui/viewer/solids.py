"""Solids of a mechanism: the marks of its drawings as meshes that follow the bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kic.description.validation import GROUND
from kic.kinematics.tree import frame_axes
from kic.mechanism.configuration import Configuration, displacements
from kic.plotting.diagram import KinematicDiagram, Mark, move_marks
from kic.plotting.figures import BLUE, GREEN, PURPLE, VERMILION
from kic.plotting.scene import Scene, body_order
from kic.plotting.spatial_symbols import SpatialSymbols
from kic.plotting.symbols import (
    DRIVEN,
    FLOOR,
    INK_RGBA,
    STEEL,
    Colour,
    circle,
    gear_outline,
    perpendicular_axes,
    rgba,
    rim_radius,
)

# width of the view in points, from which the sizes of symbols follow as in a drawing
_VIEW_WIDTH_PT = 250.0
# extent of the barrel of a cylinder as a share of its length in the reference configuration
_BARREL_START_FACTOR, _BARREL_END_FACTOR = 0.05, 0.6
# half length of a rail on ground as a share of the size of the mechanism, without limits
_RAIL_FACTOR = 0.2
_SIDES = 24
# frames are drawn if there are at most so many; robots may have one for each link
_FRAMES_MAX = 12
# marks whose directions belong to another body than their position
_TURNED_KINDS = ("universal", "touch", "lifted")


class Mesh(NamedTuple):
    """Triangle mesh: vertices (n, 3), and indices (k, 3) of the corners of triangles."""

    vertices: np.ndarray
    faces: np.ndarray


@dataclass(frozen=True)
class Solid:
    """Mesh at a position with axes (3, 3) in columns and scales (3,) along them."""

    mesh: Mesh
    colour: Colour
    position: np.ndarray
    axes: np.ndarray
    scale: np.ndarray

    def placed(self) -> np.ndarray:
        """Return the vertices (n, 3) in the axes of `position`."""
        return self.mesh.vertices * self.scale @ self.axes.T + self.position


def _surface(*patches: Sequence[np.ndarray]) -> Mesh:
    """Return the mesh through closed loops (n, 3) of equal length; edges between patches are sharp."""
    vertices: list[np.ndarray] = []
    faces: list[np.ndarray] = []
    start = 0
    for loops in patches:
        n = len(loops[0])
        i = np.arange(n)
        j = (i + 1) % n
        for a in range(start, start + n * (len(loops) - 1), n):
            faces += [np.stack([a + i, a + n + i, a + n + j], 1), np.stack([a + i, a + n + j, a + j], 1)]
        vertices += loops
        start += n * len(loops)
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def _loop(radius: float, height: float, sides: int = _SIDES) -> np.ndarray:
    return np.column_stack([radius * circle(sides), np.full(sides, height)])


def _prism(sides: int, start: float = 0.0) -> Mesh:
    """Return a prism or cylinder of unit radius and height, centred at the origin."""
    ring = circle(sides, start)
    ends = [np.column_stack([s * ring, np.full(sides, z)]) for z in (0.5, -0.5) for s in (0.0, 1.0)]
    if sides > 4:
        return _surface(ends[:2], ends[1::2], ends[:1:-1])
    walls = [np.concatenate([ends[1][[k, k - 1]], ends[3][[k - 1, k]]]) for k in range(4)]
    return _surface(ends[:2], ends[:1:-1], *([np.tile(w.mean(0), (4, 1)), w] for w in walls))


def _coil_mesh(turns: int = 10, radius: float = 0.16) -> Mesh:
    """Return a coil spring of unit radius and height."""
    t = np.linspace(0.0, 1.0, 14 * turns)
    u = circle(len(t), 0.0, 2 * np.pi * turns + 1e-9)
    around = circle(6)
    loops = [
        np.column_stack([(1 + radius * around[:, :1]) * u[k], t[k] - 0.5 + 0.01 * around[:, 1]])
        for k in range(len(t))
    ]
    return _surface(loops)


CYLINDER, COIL = _prism(_SIDES), _coil_mesh()
# a square prism of half side 1
BOX = Mesh(_prism(4, np.pi / 4).vertices * [np.sqrt(2), np.sqrt(2), 2.0], _prism(4, np.pi / 4).faces)
BALL = _surface([_loop(np.sin(a), np.cos(a)) for a in np.linspace(0, np.pi, 13)])


class SolidSymbols(SpatialSymbols):
    """Converter from marks to solids: the symbols of spatial drawings, with meshes instead of outlines."""

    _solid_list: list[Solid]

    def __init__(self, *args: Any, lengths: Mapping[str, float]) -> None:
        super().__init__(*args)
        self.lengths, self._solid_list = lengths, []

    def solids(self, marks: Sequence[Mark]) -> list[Solid]:
        """Return the solids of marks, always in the same order."""
        self._solid_list = []
        for mark in marks:
            self._symbol(mark, mark.places)
        return self._solid_list

    def pedestals(self, mark: Mark) -> list[Solid]:
        """Return the solids on ground below a joint that do not rotate with its body."""
        self._solid_list = []
        axis = mark.directions[0] if mark.kind in ("revolute", "cylindrical") else None
        if mark.kind == "prismatic":
            half = max(6 * self.size, self.lengths[mark.name] / 2)
            ends = mark.places[0] + np.outer([-half, half], mark.directions[0])
            self._bar(mark, ends[0], ends[1], 0.3, rgba(STEEL))
        elif mark.kind not in ("touch", "lifted"):
            self._pedestal(mark, mark.places[0], axis)
        return self._solid_list

    def _add(
        self, mesh: Mesh, colour: Colour, position: Any, axes: np.ndarray | None = None, scale: Any = 1.0
    ) -> None:
        axes = np.eye(3) if axes is None else axes
        self._solid_list.append(
            Solid(mesh, colour, np.array(position, float), axes, np.broadcast_to(scale, 3))
        )

    def _along(self, mesh: Mesh, a: np.ndarray, b: np.ndarray, radius: float, colour: Colour) -> None:
        length = float(np.linalg.norm(b - a))
        axes = frame_axes((b - a) / length) if length > 1e-9 * self.size else np.eye(3)
        self._add(mesh, colour, (a + b) / 2, axes, [radius, radius, max(length, 1e-9 * self.size)])

    def _bar(self, mark: Mark, a: np.ndarray, b: np.ndarray, half: float, colour: Colour) -> None:
        self._along(CYLINDER, a, b, half * self.size, colour)

    def _path(self, mark: Mark, p: np.ndarray, half: float, colour: Colour) -> None:
        super()._path(mark, p, half, colour)
        for corner in p:
            self._add(BALL, colour, corner, scale=half * self.size)

    def _ball(self, mark: Mark, centre: np.ndarray, radius: float, named: bool = False) -> None:
        self._add(BALL, rgba(STEEL), centre, scale=radius * self.size)

    def _cylinder(
        self, mark: Mark, centre: np.ndarray, axis: np.ndarray, radius: float, half: float, colour: Colour,
        named: bool = True,
    ) -> None:  # fmt: skip
        step = half * self.size * axis
        self._along(CYLINDER, centre - step, centre + step, radius * self.size, colour)

    def _box(
        self, mark: Mark, centre: np.ndarray, axes: np.ndarray, half: np.ndarray, colour: Colour
    ) -> None:
        self._add(BOX, colour, centre, np.column_stack([*axes[:2], np.cross(*axes[:2])]), half * self.size)

    def _put(self, mark: Mark, places: np.ndarray, depth: Any, face: Any = None, *_: Any, **__: Any) -> None:
        """Add a polygon in space; outlines in the plane of a picture have no solid."""
        if places.shape[1] == 3 and face is not None:
            middle = np.broadcast_to(places.mean(axis=0), places.shape)
            self._add(_surface([middle, places]), face, np.zeros(3))

    def _face(self, mark: Mark, places: np.ndarray, face: Colour, edge: Colour | None) -> None:
        self._put(mark, places, 0.0, face)

    def _line(self, mark: Mark, places: np.ndarray, depth: Any, width: Any = 0.8, colour: Colour = INK_RGBA,
              sub: float = 0.0) -> None:  # fmt: skip
        for a, b in pairwise(places if places.shape[1] == 3 else ()):
            self._along(CYLINDER, a, b, 0.12 * self.size, colour)

    def _disc(self, mark: Mark, centre: np.ndarray, toward: float, face: Colour, *_: Any) -> None:
        self._add(BALL, face, centre, scale=0.6 * self.size)

    def _barrel_between(self, mark: Mark, p: np.ndarray) -> None:
        """Add a barrel of constant length and its rod."""
        a, b = p
        between, length = float(np.linalg.norm(b - a)), self.lengths[mark.name]
        u = (b - a) / max(between, 1e-9 * self.size)
        start, end = (
            a + min(share * length, between) * u for share in (_BARREL_START_FACTOR, _BARREL_END_FACTOR)
        )
        self._bar(mark, a, start, 0.3, rgba(STEEL))
        self._bar(mark, end, b, 0.3, rgba(STEEL))
        plain = self._colour(mark) if mark.body else rgba(FLOOR)
        self._bar(mark, start, end, 0.75, rgba(DRIVEN, 0.25) if mark.driven else plain)

    _telescope = _barrel_between

    def _ram(self, mark: Mark, p: np.ndarray) -> None:
        self._barrel_between(mark, p)
        for end in p:
            self._ball(mark, end, 0.65)

    def _prismatic(self, mark: Mark, p: np.ndarray) -> None:
        axis = mark.directions[0]
        colour = rgba(DRIVEN, 0.2) if mark.driven else self._colour(mark)
        self._box(mark, p[0], np.stack([axis, *perpendicular_axes(axis)]), np.array([1.7, 1.0, 1.0]), colour)

    def _solid(self, mark: Mark, p: np.ndarray) -> None:
        from scipy.spatial import ConvexHull

        self._add(Mesh(p, ConvexHull(p).simplices), self._colour(mark, 0.4), np.zeros(3))

    def _coil(self, mark: Mark, p: np.ndarray) -> None:
        self._along(COIL, p[0], p[1], 1.2 * self.size, INK_RGBA)

    def _wheel(self, mark: Mark, p: np.ndarray) -> None:
        axis, radius = mark.directions[0], mark.sizes[0]
        teeth = int(mark.sizes[1]) if len(mark.sizes) > 1 else 0
        flat, axes = radius * circle(96), perpendicular_axes(axis)
        if teeth:
            along = mark.directions[1]
            flat, axes = gear_outline(radius, teeth, mark.sizes[2]), np.stack([along, np.cross(axis, along)])
        inner = 0 * flat if teeth >= 0 else flat
        if teeth < 0:
            flat = flat * (rim_radius(radius, teeth) / np.linalg.norm(flat, axis=1, keepdims=True))
        loops = [
            p[0] + loop @ axes + side * 0.5 * self.size * axis
            for side, loop in ((1, inner), (1, flat), (-1, flat), (-1, inner))
        ]
        mesh = _surface(loops[:2], loops[1:3], loops[2:], [loops[3], loops[0]])
        self._add(mesh, self._colour(mark, 0.8), np.zeros(3))

    def _tie(self, mark: Mark, p: np.ndarray) -> None:
        self._line(mark, p, None, colour=rgba(PURPLE))

    def _touch(self, mark: Mark, p: np.ndarray) -> None:
        axes = frame_axes(mark.directions[0])
        self._add(BOX, rgba(FLOOR, 0, 0.8), p[0], axes, self.size * np.array([1.7, 1.7, 0.05]))
        self._disc(mark, p[0], 1.0, INK_RGBA)

    def _frame(self, mark: Mark, p: np.ndarray) -> None:
        for axis, colour in zip(mark.directions, (VERMILION, GREEN, BLUE), strict=True):
            self._bar(mark, p[0], p[0] + 4 * self.size * axis, 0.15, rgba(colour))


@dataclass(frozen=True)
class Part:
    """Mesh of one colour that moves with a body, in the axes of the reference configuration."""

    body: str
    mesh: Mesh
    colour: Colour


class SolidScene:
    """Solids of a mechanism: parts that move with bodies, and solids that connect several bodies.

    `size` is the radius of a joint, `extent` (2, 3) the lower and upper corner of the solids and the
    `visuals`, `view` the default view of a drawing.
    """

    def __init__(self, configuration: Configuration, visuals: Sequence[Part] = ()) -> None:
        scene = Scene(configuration, None, most=2)
        self.view, self.description = scene.view, scene.description
        wide = float(np.linalg.norm(np.ptp(scene.anchors.reshape(-1, 3), axis=0))) or scene.model.length
        points = _VIEW_WIDTH_PT / wide
        self.size = scene.radius(points)
        self.normal = scene.normal
        diagram = KinematicDiagram(scene.model, self.size, None, scene.down)
        slides = [j for j in self.description.joints if j.type == "prismatic"]
        limits = {j.name: float(np.ptp(j.limits)) for j in slides if j.limits}
        lengths = {
            m.name: float(np.linalg.norm(m.places[-1] - m.places[0])) or limits.get(m.name, 0.0)
            for m in diagram.marks
        }
        lengths |= {j.name: limits.get(j.name, 2 * _RAIL_FACTOR * wide) for j in slides}
        order = body_order(self.description)
        self._symbols = SolidSymbols(scene.view, self.size, points, order, scene.down, lengths=lengths)
        self._links: list[Mark] = []
        held: list[tuple[str, Solid]] = []
        crowded = len(self.description.frames) > _FRAMES_MAX
        for mark in diagram.marks:
            if mark.kind == "frame" and crowded:
                continue
            if mark.grounded and mark.kind != "anchor":
                held += [(GROUND, solid) for solid in self._symbols.pedestals(mark)]
                mark = replace(mark, grounded=False)
            if mark.kind in _TURNED_KINDS or (len(set(mark.place_bodies)) > 1 and mark.kind != "anchor"):
                self._links.append(mark)
            else:
                held += [(mark.place_bodies[0], solid) for solid in self._symbols.solids([mark])]
        groups: dict[tuple[str, Colour], list[Solid]] = {}
        for body, solid in held:
            groups.setdefault((body, solid.colour), []).append(solid)
        self.parts = [
            Part(body, joined_meshes([Mesh(s.placed(), s.mesh.faces) for s in solids]), colour)
            for (body, colour), solids in groups.items()
        ] + [*visuals]
        T = displacements(configuration)
        seen = [p.mesh.vertices @ T[p.body][:3, :3].T + T[p.body][:3, 3] for p in self.parts]
        corners = np.concatenate([*seen, *(solid.placed() for solid in self.links(T))])
        self.extent = np.stack([corners.min(axis=0), corners.max(axis=0)])

    def links(self, displacements: Mapping[str, np.ndarray]) -> list[Solid]:
        """Return the solids that connect several bodies, given the displacements (4, 4) of all bodies."""
        return self._symbols.solids(move_marks(self._links, displacements))


def joined_meshes(meshes: Sequence[Mesh]) -> Mesh:
    """Join meshes to one mesh."""
    starts = np.cumsum([0, *(len(one.vertices) for one in meshes)])
    faces = [one.faces + start for one, start in zip(meshes, starts, strict=False)]
    return Mesh(np.concatenate([one.vertices for one in meshes]), np.concatenate(faces))
