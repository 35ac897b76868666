"""Scene: drawn configurations of a mechanism and their view, converted to shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.validation import GROUND
from kic.errors import InputError, invalid
from kic.mechanism.configuration import Configuration, displacements, flat_states, model_of
from kic.plotting.diagram import KinematicDiagram, Mark, move_marks, slider_travel
from kic.plotting.joint_offsets import JointPlacement
from kic.plotting.planar_symbols import PlanarSymbols
from kic.plotting.spatial_symbols import SpatialSymbols
from kic.plotting.symbols import TINTS, Shape
from kic.plotting.view import ViewName, view_of

# maximum number of drawn members of a batch
DRAWN_MAX = 12
PLACED = ("points", "frames", "centers", "bodies")  # kinds of parts with rows x, y, z
# share of white in members between the first and the last
_FADE_WHITE_SHARE = 0.72
# bounds of the radius of a joint in points: in plan view and in space
_RADIUS_MAX_PT, _RADIUS_MIN_PT = (3.5, 4.0), (2.1, 2.7)
# enlargement of the joints of a mechanism whose joints all coincide
_COINCIDENT_FACTOR = 1.5
# radius of a joint as a share of the distance of near joints
_RADIUS_DISTANCE_SHARE = 0.26
# kinds of marks shown in faded members, without ground and arrows
_FADED_KINDS = ("link", "plate", "stem", "solid", "rod", "ram", "guide", "telescope", "coil", "dashpot")


def evenly_spaced(count: int, most: int) -> np.ndarray:
    """Return at most `most` indices below `count`, evenly spaced from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def body_order(drawing: MechanismDescription) -> dict[str, int]:
    """Return an index for each body, increasing in their order, such that tints of neighbours differ."""
    count, names = len(TINTS), [body.name for body in drawing.bodies]
    near: dict[str, set[str]] = {name: set() for name in names}
    for joint in drawing.joints:
        one, other = joint.bodies
        if GROUND not in (one, other):
            near[one].add(other)
            near[other].add(one)
    tints: dict[str, int] = {}
    # bodies with many neighbours are assigned first
    for name in sorted(names, key=lambda name: len(near[name]) < count):
        k, taken = names.index(name), {tints.get(other) for other in near[name]}
        tints[name] = next((t % count for t in range(k, k + count) if t % count not in taken), k % count)
    order, last = {}, -1
    for name in names:
        last += 1 + (tints[name] - last - 1) % count
        order[name] = last
    return order


class Scene:
    """Drawn configurations of a mechanism.

    `members` (n,) are the flat indices of the drawn members of the batch, and `shown` their configurations.
    `displacements` (n, 4, 4) move each body from the reference configuration, and `normal` is the normal of a
    planar mechanism.
    """

    def __init__(self, configuration: Configuration, view: ViewName | None, most: int = DRAWN_MAX) -> None:
        self.configuration = configuration
        self.model = model_of(configuration)
        self.model.require_real("A drawing", "Draw the configuration without it.")
        states = flat_states(configuration)
        if states.dtype != np.float64:
            raise invalid("configuration", "must hold real numbers", states.dtype, shown=f"{states.dtype}")
        good = np.flatnonzero(configuration.ok)
        if not len(good):
            cause = "an empty batch" if not configuration.ok.size else "no valid member"
            message = f"`configuration` must have a valid member, got {cause} of '{configuration.name}'."
            raise InputError(message, key="configuration")
        self.members = good[evenly_spaced(len(good), most)]
        self.description = self.model.description
        # indexing copies: the kernels require contiguous members
        self.shown = Configuration(self.model, (len(self.members),), states[self.members])
        # of every body, including ground, in the drawn members
        self.displacements = displacements(self.shown)
        self.normal = self.model.tree.planar_normal
        # positions of sliding pairs and fixed joints do not depend on the size of symbols
        self._placement = JointPlacement(self.model, 0.02 * self.model.length, self.normal, np.zeros(3))
        self.anchors = self._anchors()
        self.view = view_of(view, self.normal, np.array(self.description.gravity, float), self.anchors[0])
        self.down = self._down()

    def _anchors(self) -> np.ndarray:
        """Return the positions (members, n, 3) of all joints, points and contacts."""
        d = self.description
        held = [(body, j.at) for j in d.joints if j.at is not None for body in j.bodies]
        slides = self._placement.sliders.values()
        held += [(body, tuple(s.place)) for s in slides for body in (s.guide, s.slider)]
        self._joints = len(held)
        held += [(p.body, p.at) for p in d.points] + [(body, c.at) for c in d.contacts for body in c.bodies]
        counts = {b.name: sum(b.name == body for body, _ in held) for b in d.bodies}
        held += [(b.name, b.reference) for b in d.bodies if counts[b.name] < 2 and b.reference is not None]
        if not held:
            held = [(GROUND, (0.0, 0.0, 0.0))]
        T = np.stack([self.displacements[body] for body, _ in held], axis=1)
        p = np.array([at for _, at in held], dtype=float)
        return np.einsum("bnij,nj->bni", T[..., :3, :3], p) + T[..., :3, 3]

    def _down(self) -> np.ndarray:
        """Return the direction toward ground: down, or up for hanging mechanisms."""
        gravity = np.array(self.description.gravity, float)
        k = int(np.argmax(np.abs(gravity))) if gravity.any() else 2
        down = -np.eye(3)[k]
        base = [
            j.at
            for j in self.description.joints
            if GROUND in j.bodies and j.at is not None and j.type != "free"
        ]
        if not base:
            return down
        height = (self.anchors - np.array(base, float).mean(axis=0)) @ -down
        return -down if height.max() + height.min() < -0.5 * np.ptp(height) else down

    def joint_positions(self, joint: str) -> np.ndarray | None:
        """Return the drawn positions (members, 3) of a joint without `at`, or None for other joints."""
        part = next((j for j in self.description.joints if j.name == joint), None)
        if part is None or part.at is not None:
            return None
        slide = self._placement.sliders.get(joint)
        if slide is None:
            ends = [(part.bodies[1], self._placement.positions[joint])]
        else:
            ends = [(slide.slider, slide.place), (slide.guide, slide.foot)][: 1 + slide.telescopic]
        found = [
            self.displacements[body][:, :3, :3] @ p + self.displacements[body][:, :3, 3] for body, p in ends
        ]
        return np.mean(found, axis=0)

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the drawing without the size of symbols."""
        seen = self.view.project(self.anchors).reshape(-1, 2)
        low, high = seen.min(axis=0), seen.max(axis=0)
        if (high - low).max() < 1e-6 * self.model.length:  # a single position
            return low - self.model.length / 2, high + self.model.length / 2
        return low, high

    def radius(self, points: float) -> float:
        """Return the radius of a joint in units of length, given the points per unit of length."""
        seen = self.view.project(self.anchors[0][: self._joints])
        pairs = np.array(list(combinations(range(len(seen)), 2)), dtype=int).reshape(-1, 2)
        apart = np.linalg.norm(seen[pairs[:, 0]] - seen[pairs[:, 1]], axis=1) * points
        most, least = _RADIUS_MAX_PT[not self.view.flat], _RADIUS_MIN_PT[not self.view.flat]
        if len(self.description.joints) > 2 and not (apart > 2 * least).any():
            return _COINCIDENT_FACTOR * most / points  # joints are offset from their common position
        apart = np.sort(apart[apart > 2 * least])  # closer joints overlap in any case
        room = float(apart[len(apart) // 30]) if len(apart) else np.inf
        return float(np.clip(_RADIUS_DISTANCE_SHARE * room, least, most)) / points

    def shapes(self, points: float) -> tuple[list[Shape], list[list[Mark]], float]:
        """Return shapes of all members in painting order, their marks, and the radius of joints."""
        draw_member, size = self.member_renderer(points)
        every: list[Shape] = []
        marks = []
        last = len(self.members) - 1
        drawn = [draw_member(k) for k in range(last + 1)]
        for k in [*range(1, last), *dict.fromkeys((0, last))]:
            shapes, there = drawn[k]
            faded = 0 < k < last
            if faded:
                every += [s.faded(_FADE_WHITE_SHARE) for s in shapes if s.name or s.of in _FADED_KINDS]
            else:
                clear = len(drawn) > 1 and self.view.flat  # translucent faces show the members behind
                every += [s.translucent() for s in shapes] if clear else shapes
                marks.append(there)
        return every, marks, size

    def member_renderer(self, points: float) -> tuple[Callable[[int], tuple[list[Shape], list[Mark]]], float]:
        """Return a function that draws one member with its marks, and the radius of joints."""
        size = self.radius(points)
        flat = self.normal if self.view.flat else None
        diagram = KinematicDiagram(self.model, size, flat, self.down)
        along = [slider_travel(mark, self.displacements) for mark in diagram.marks]
        order = body_order(self.description)
        symbols = (
            PlanarSymbols(self.view, size, points, order)
            if self.view.flat
            else SpatialSymbols(self.view, size, points, order, self.down)
        )

        def draw_member(k: int) -> tuple[list[Shape], list[Mark]]:
            marks = [
                mark if s is None else replace(mark, travel=(float(s.min() - s[k]), float(s.max() - s[k])))
                for mark, s in zip(diagram.marks, along, strict=True)
            ]
            there = move_marks(marks, {body: T[k] for body, T in self.displacements.items()})
            return sorted(symbols.draw(there), key=lambda s: s.key), there

        return draw_member, size
