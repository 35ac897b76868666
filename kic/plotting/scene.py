"""A posture, or a fan of them, as shapes seen from one side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np

from kic.configuration import Configuration
from kic.description.description import MechanismDescription
from kic.description.validation import GROUND
from kic.errors import InputError
from kic.plotting.diagram import KinematicDiagram, Mark, move_marks, slider_travel
from kic.plotting.joint_offsets import JointPlacement
from kic.plotting.planar_symbols import PlanarSymbols
from kic.plotting.solid_symbols import SpatialSymbols
from kic.plotting.symbols import TINTS, Shape
from kic.plotting.view import ViewName, view_of

# postures of a batch that are drawn at most
MEMBERS_MAX = 12
_FAINT = 0.72
# radius of a joint in points where there is room, and where there is none: in the plane and in space, where
# a joint has two sides
_ROOMY, _LEAST = (3.5, 4.0), (2.1, 2.7)
# how much larger joints are that are all in one place
_CROWD = 1.5
# of the distance of near joints
_SHARE = 0.26
# of faint postures nothing else is shown: no ground, no signs
_FAINT_KINDS = ("link", "plate", "stem", "solid", "rod", "guide", "telescope", "coil", "dashpot")


def evenly_spaced(count: int, most: int) -> np.ndarray:
    """Places of so many, the first and the last among them, or of as many as there may be."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def check_path_batch(batch: tuple[int, ...]) -> None:
    """Refuse to trace what is no row of postures."""
    if len(batch) != 1:
        raise InputError(
            f"trace() needs a batch of postures (B,) in a row, got a batch {batch}. Make one with path(), "
            'such as turn = mechanism.path({"A": np.linspace(0, 2 * np.pi, 97)}), and give it: '
            'trace("tip", turn).',
            batch=batch,
        )


def body_order(drawing: MechanismDescription) -> dict[str, int]:
    """Numbers of bodies that rise as they are listed, and by which neighbours get different tints."""
    count, names = len(TINTS), [body.name for body in drawing.bodies]
    near: dict[str, set[str]] = {name: set() for name in names}
    for joint in drawing.joints:
        one, other = joint.bodies
        if GROUND not in (one, other):
            near[one].add(other)
            near[other].add(one)
    tints: dict[str, int] = {}
    # what has as many neighbours as there are tints chooses first
    for name in sorted(names, key=lambda name: len(near[name]) < count):
        k, taken = names.index(name), {tints.get(other) for other in near[name]}
        tints[name] = next((t % count for t in range(k, k + count) if t % count not in taken), k % count)
    order, last = {}, -1
    for name in names:
        last += 1 + (tints[name] - last - 1) % count
        order[name] = last
    return order


class Scene:
    """What is to be seen of a configuration.

    Attributes
    ----------
    members : (n,) int
        Members of the batch that are drawn, by their flat index.
    view : View
    few : Configuration
        These members alone.
    where : dict of str to (n, 4, 4)
        Displacement of every body from the drawing.
    normal : (3,) or None
        Of a planar mechanism.
    """

    def __init__(self, configuration: Configuration, view: ViewName | None, most: int = MEMBERS_MAX) -> None:
        self.configuration = configuration
        self.model = configuration._model
        self.model.require_real("A drawing", "Draw the posture without it.")
        states = configuration._states
        if states.dtype != np.float64:
            raise InputError(f"draw() needs real numbers; this posture holds {states.dtype}.")
        good = np.flatnonzero(configuration.ok)
        if not len(good):
            what = "the batch is empty" if not configuration.ok.size else "no member has a posture"
            raise InputError(f"There is nothing of '{configuration.name}' to draw: {what}.")
        self.members = good[
            np.unique(np.linspace(0, len(good) - 1, min(len(good), most)).round().astype(int))
        ]
        self.description = self.model.description
        # indexing copies: kernels want the members one behind the other
        self.shown = Configuration(self.model, (len(self.members),), states[self.members])
        self.displacements = self._displacements()
        self.normal = self.model.tree.planar_normal
        # where sliding pairs are does not depend on the size of symbols, nor do welds
        self._sites = JointPlacement(self.model, 0.02 * self.model.length, self.normal, np.zeros(3))
        self.anchors = self._anchors()
        self.view = view_of(view, self.normal, np.array(self.description.gravity, float), self.anchors[0])
        self.down = self._down()

    def _displacements(self) -> dict[str, np.ndarray]:
        """Of every body, ground too, as matrices (n, 4, 4) for the members that are drawn."""
        found = {body.name: self.shown.displacement(body.name) for body in self.description.bodies}
        return {GROUND: np.broadcast_to(np.eye(4), (len(self.members), 4, 4)), **found}

    def _anchors(self) -> np.ndarray:
        """Places (members, n, 3) of all joints, points and contacts."""
        d = self.description
        held = [(body, j.at) for j in d.joints if j.at is not None for body in j.bodies]
        slides = self._sites.slides.values()
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
        """Where ground is below spatial mechanisms; those that hang have it above."""
        gravity = np.array(self.description.gravity, float)
        k = int(np.argmax(np.abs(gravity))) if gravity.any() else 2
        down = -np.eye(3)[k]
        base = [
            j.at for j in self.description.joints if GROUND in j.bodies and j.at is not None and j.type != "free"
        ]
        if not base:
            return down
        height = (self.anchors - np.array(base, float).mean(axis=0)) @ -down
        return -down if height.max() + height.min() < -0.5 * np.ptp(height) else down

    def joint_positions(self, joint: str) -> np.ndarray | None:
        """Places (members, 3) at which a joint that was drawn without `at` is shown; None of all others."""
        part = next((j for j in self.description.joints if j.name == joint), None)
        if part is None or part.at is not None:
            return None
        slide = self._sites.slides.get(joint)
        ends = (
            [(part.bodies[1], self._sites.places[joint])] if slide is None else [(slide.slider, slide.place)]
        )
        if slide is not None and slide.telescopic:
            ends.append((slide.guide, slide.foot))
        found = [
            self.displacements[body][:, :3, :3] @ p + self.displacements[body][:, :3, 3] for body, p in ends
        ]
        return np.mean(found, axis=0)

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners of what is drawn, without the size of symbols."""
        seen = self.view.project(self.anchors).reshape(-1, 2)
        low, high = seen.min(axis=0), seen.max(axis=0)
        if (high - low).max() < 1e-6 * self.model.length:  # all in one place: something has to be seen
            return low - self.model.length / 2, high + self.model.length / 2
        return low, high

    def radius(self, points: float) -> float:
        """Radius of a joint in units of length, where so many points are a unit."""
        seen = self.view.project(self.anchors[0][: self._joints])
        pairs = np.array(list(combinations(range(len(seen)), 2)), dtype=int).reshape(-1, 2)
        apart = np.linalg.norm(seen[pairs[:, 0]] - seen[pairs[:, 1]], axis=1) * points
        most, least = _ROOMY[not self.view.flat], _LEAST[not self.view.flat]
        if len(self.description.joints) > 2 and not (apart > 2 * least).any():
            return _CROWD * most / points  # all in one place, and set apart there
        apart = np.sort(apart[apart > 2 * least])  # what is nearer is not told apart anyhow
        room = float(apart[len(apart) // 30]) if len(apart) else np.inf
        return float(np.clip(_SHARE * room, least, most)) / points

    def shapes(self, points: float) -> tuple[list[Shape], list[list[Mark]], float]:
        """Shapes of all members in the order of painting, their marks, and the radius of joints."""
        posture, size = self.pen(points)
        every: list[Shape] = []
        marks = []
        last = len(self.members) - 1
        drawn = [posture(k) for k in range(last + 1)]
        for k in [*range(1, last), *dict.fromkeys((0, last))]:
            shapes, there = drawn[k]
            faint = 0 < k < last
            if faint:
                every += [s.faded(_FAINT) for s in shapes if s.name or s.of in _FAINT_KINDS]
            else:
                clear = len(drawn) > 1 and self.view.flat  # faces let other postures through
                every += [s.translucent() for s in shapes] if clear else shapes
                marks.append(there)
        return every, marks, size

    def pen(self, points: float) -> tuple[Callable[[int], tuple[list[Shape], list[Mark]]], float]:
        """What draws one member, by its place among them, with its marks; and the radius of joints."""
        size = self.radius(points)
        flat = self.normal if self.view.flat else None
        sketch = KinematicDiagram(self.model, size, flat, self.down)
        along = [slider_travel(mark, self.displacements) for mark in sketch.marks]
        order = body_order(self.description)
        pen = (
            PlanarSymbols(self.view, size, points, order)
            if self.view.flat
            else SpatialSymbols(self.view, size, points, order, self.down)
        )

        def posture(k: int) -> tuple[list[Shape], list[Mark]]:
            marks = [
                mark if s is None else replace(mark, travel=(float(s.min() - s[k]), float(s.max() - s[k])))
                for mark, s in zip(sketch.marks, along, strict=True)
            ]
            there = move_marks(marks, {body: T[k] for body, T in self.displacements.items()})
            return sorted(pen.draw(there), key=lambda s: s.key), there

        return posture, size
