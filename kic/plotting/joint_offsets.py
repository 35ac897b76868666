"""Positions of joints in a drawing: offsets along axes, sliding pairs, and fixed joints."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from kic.description.joint_types import BALL_TYPES
from kic.description.parts import Joint
from kic.description.validation import GROUND
from kic.numerics.linalg import unit
from kic.transfer.compiled_model import CompiledModel

_ROTARY_TYPES = ("revolute", "universal", "spherical", "cylindrical")
# in radii of a joint: offset of coincident joints along their axes, and their minimum distance
_OFFSET_FACTOR, _DISTANCE_MIN_FACTOR = 3.6, 2.2
# candidate offsets of a joint
_OFFSET_STEPS = (0, 1, -1, 2, -2, 3, -3)
# number of joints whose offsets are combined exhaustively
_GROUP_SIZE_MAX = 3


@dataclass(frozen=True)
class SlidingPair:
    """Shape of a sliding pair."""

    guide: str
    slider: str
    foot: np.ndarray  # position of the line on the guide body
    place: np.ndarray  # position of the slider on the line
    telescopic: bool  # both ends are at rotary joints on the line
    through: bool  # the guide extends beyond its foot


class JointPlacement:
    """Positions and axes (3,) of all joints in the reference configuration, as drawn, and sliding pairs."""

    def __init__(
        self, model: CompiledModel, size: float, normal: np.ndarray | None, down: np.ndarray
    ) -> None:
        self.description, self.size, self.down = model.description, size, down
        joints = self.description.joints
        self.axes = {j.name: unit(j.axis) for j in joints if j.axis is not None and j.type not in BALL_TYPES}
        self.positions = {
            j.name: np.array(j.at, float) for j in joints if j.at is not None and j.type != "prismatic"
        }
        self.sliders = {j.name: self._slide(j) for j in joints if j.type == "prismatic"}
        self.positions |= {name: slide.place for name, slide in self.sliders.items()}
        self.positions |= {j.name: self._weld(j) for j in joints if j.type == "fixed" and j.at is None}
        if normal is None:
            self._offset_coincident()

    def directions(self, joint: Joint) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the axes of a joint and the bodies that carry them."""
        given = () if joint.type in BALL_TYPES else (joint.axis, joint.axis2)
        axes = [unit(axis) for axis in given if axis is not None]
        return np.reshape(axes, (-1, 3)), joint.bodies[: len(axes)]

    def _anchors(self, body: str, but: Joint) -> list[tuple[np.ndarray, bool, bool]]:
        """Return the other connections of a body as (position, is rotary joint, is sliding joint)."""
        if body == GROUND:
            return []
        found = [
            (np.array(j.at, float), j.type in _ROTARY_TYPES, j.type == "prismatic")
            for j in self.description.joints
            if body in j.bodies and j is not but and j.at is not None and j.type not in ("free", "planar")
        ]
        found += [
            (np.array(c.at, float), False, False) for c in self.description.contacts if body in c.bodies
        ]
        found += [(np.array(p.at, float), False, False) for p in self.description.points if p.body == body]
        reference = next((b.reference for b in self.description.bodies if b.name == body), None)
        if reference is not None:
            found.append((np.array(reference, float), False, False))
        return found

    def _slide(self, joint: Joint) -> SlidingPair:
        guide, slider = joint.bodies if joint.bodies[1] != GROUND else joint.bodies[::-1]
        axis = self.axes[joint.name]
        mine, theirs = self._anchors(slider, joint), self._anchors(guide, joint)
        if joint.at is not None:
            base, rotary = np.array(joint.at, float), any(r and np.allclose(joint.at, p) for p, r, _ in mine)
        elif mine:
            base, rotary, _ = mine[0]
        elif theirs:
            base, rotary = theirs[0][0], False
        else:
            base, rotary = np.zeros(3), False
        if not theirs:
            return SlidingPair(guide, slider, base, base, False, False)

        def off(place: np.ndarray) -> float:
            d = place - base
            return float(np.linalg.norm(d - (d @ axis) * axis))

        # on the line, joints come before points
        held, turning, _ = min(
            theirs, key=lambda anchor: (round(off(anchor[0]) / self.size), not anchor[1], not anchor[2])
        )
        foot = base + ((held - base) @ axis) * axis
        along = float(np.linalg.norm(foot - base))
        telescopic = rotary and turning and off(held) < self.size and along > 6 * self.size
        # a sliding body holds the rod of another slider in its middle, like a yoke
        return SlidingPair(guide, slider, foot, base, telescopic, any(slides for *_, slides in theirs))

    def _weld(self, joint: Joint) -> np.ndarray:
        """Return the position of a fixed joint: where its bodies are closest, preferably at a joint."""
        one, two = (self._anchors(body, joint) for body in joint.bodies)
        pairs = [(a, b) for a in one or two for b in two or one]
        if not pairs:
            return np.zeros(3)
        a, b = min(pairs, key=lambda ab: float(np.linalg.norm(ab[0][0] - ab[1][0])))
        return a[0] if a[1] or not b[1] else b[0]

    def _offset_coincident(self) -> None:
        """Offset revolute joints with a common position along their axes, toward their links."""
        free = [j for j in self.description.joints if j.type in ("revolute", "cylindrical")]
        fixed = {j.name: j for j in self.description.joints if j.name in self.positions and j not in free}
        done: set[str] = set()
        for joint in free:
            if joint.name in done:
                continue
            here, apart = self.positions[joint.name], _DISTANCE_MIN_FACTOR * self.size
            group = [
                j
                for j in free
                if j.name not in done and np.linalg.norm(self.positions[j.name] - here) < apart
            ]
            done |= {j.name for j in group}
            others = [p for name, p in self.positions.items() if name in fixed]
            near = [p for p in others if np.linalg.norm(p - here) < apart]
            # small groups, since all combinations of offsets are compared
            for k in range(0, len(group), _GROUP_SIZE_MAX):
                few = group[k : k + _GROUP_SIZE_MAX]
                if len(few) + len(near) > 1:
                    self._offset_group(few, near)
                near += [self.positions[j.name] for j in few]

    def _offset_group(self, group: list[Joint], near: list[np.ndarray]) -> None:
        """Choose small offsets of a few joints, toward their links."""
        names = {j.name for j in group}
        start = {j.name: self.positions[j.name] for j in group}
        costs: dict[str, dict[int, float]] = {}
        for j in group:
            outward = [
                float((p - start[j.name]) @ self.axes[j.name])
                for body in j.bodies
                for p in self._others(body, names)
            ]
            reach = _OFFSET_FACTOR * self.size
            costs[j.name] = {0: 0.0}
            for k in _OFFSET_STEPS[1:]:
                toward_link = any(np.sign(k) * d > (abs(k) + 0.6) * reach for d in outward)
                based = GROUND in j.bodies and k * float(self.axes[j.name] @ self.down) > 0.5
                costs[j.name][k] = abs(k) * (0.5 if toward_link or based else 2.5) + (abs(k) > 1) * 0.6
        best, least = [start[j.name] for j in group], np.inf
        for steps in product(_OFFSET_STEPS, repeat=len(group)):
            chosen = list(zip(group, steps, strict=True))
            moved = [start[j.name] + k * _OFFSET_FACTOR * self.size * self.axes[j.name] for j, k in chosen]
            cost = sum(costs[j.name][k] for j, k in chosen)
            every = [*moved, *near]
            for a, place in enumerate(moved):
                for other in every[a + 1 :]:
                    cost += 20.0 * (np.linalg.norm(place - other) < _DISTANCE_MIN_FACTOR * self.size)
            if cost < least - 1e-9:
                best, least = moved, cost
        self.positions |= {j.name: place for j, place in zip(group, best, strict=True)}

    def _others(self, body: str, but: set[str]) -> list[np.ndarray]:
        """Return positions of a body's other joints and points."""
        if body == GROUND:
            return []
        found = [
            self.positions[j.name]
            for j in self.description.joints
            if body in j.bodies and j.name not in but and j.name in self.positions
        ]
        found += [np.array(p.at, float) for p in self.description.points if p.body == body]
        return found
