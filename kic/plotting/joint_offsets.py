"""Where joints are drawn: on their axes, apart from one another, and sliding pairs where they make sense."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from kic.description.parts import Joint
from kic.description.validation import GROUND
from kic.transfer.compiled_model import CompiledModel

_ROTARY = ("revolute", "universal", "spherical", "cylindrical")
# joints that share a place are set apart by so many radii along their axes
_APART = 3.6
_NEAR = 2.2
_STEPS = (0, 1, -1, 2, -2, 3, -3)
_FEW = 3


def unit_of(v: Any) -> np.ndarray:
    """The unit vector along v, in real numbers."""
    a = np.array(v, dtype=float)
    return a / np.linalg.norm(a)


@dataclass(frozen=True)
class Slide:
    """How a sliding pair is drawn: what slides on what."""

    guide: str
    slider: str
    foot: np.ndarray  # where the guide body holds the line
    place: np.ndarray  # where the slider is on it
    telescopic: bool  # both ends hang on rotary joints of the line
    through: bool  # whether the guide goes on behind its foot


class JointPlacement:
    """Places and axes of all joints in the drawing, as they are to be shown.

    Attributes
    ----------
    places : dict of str to (3,)
        Of every joint that has one.
    axes : dict of str to (3,)
        Unit vectors, of those with an axis.
    slides : dict of str to Slide
        Sliding pairs.
    """

    def __init__(
        self, model: CompiledModel, size: float, normal: np.ndarray | None, down: np.ndarray
    ) -> None:
        self.description, self.size, self.down = model.description, size, down
        joints = self.description.joints
        self.axes = {j.name: unit_of(j.axis) for j in joints if j.axis is not None}
        self.places = {
            j.name: np.array(j.at, float) for j in joints if j.at is not None and j.type != "prismatic"
        }
        self.slides = {j.name: self._slide(j) for j in joints if j.type == "prismatic"}
        self.places |= {name: slide.place for name, slide in self.slides.items()}
        self.places |= {j.name: self._weld(j) for j in joints if j.type == "fixed" and j.at is None}
        if normal is None:
            self._spread()

    def directions(self, joint: Joint) -> tuple[np.ndarray | None, tuple[str, ...]]:
        """Axes of a joint and the bodies that carry them."""
        if joint.axis is None:
            return None, ()
        first, second = joint.bodies
        if joint.axis2 is None:
            return self.axes[joint.name][None], (first,)
        return np.stack([self.axes[joint.name], unit_of(joint.axis2)]), (first, second)

    def _anchors(self, body: str, but: Joint) -> list[tuple[np.ndarray, bool, bool]]:
        """What else a body is held by: place, whether it is a rotary joint, whether a sliding one."""
        if body == GROUND:
            return []
        found = [
            (np.array(j.at, float), j.type in _ROTARY, j.type == "prismatic")
            for j in self.description.joints
            if body in j.bodies and j is not but and j.at is not None and j.type not in ("free", "planar")
        ]
        found += [(np.array(c.at, float), False, False) for c in self.description.contacts if body in c.bodies]
        found += [(np.array(p.at, float), False, False) for p in self.description.points if p.body == body]
        reference = next((b.reference for b in self.description.bodies if b.name == body), None)
        if reference is not None:
            found.append((np.array(reference, float), False, False))
        return found

    def _slide(self, joint: Joint) -> Slide:
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
            return Slide(guide, slider, base, base, False, False)

        def off(place: np.ndarray) -> float:
            d = place - base
            return float(np.linalg.norm(d - (d @ axis) * axis))

        # of what lies on the line, joints come before mere points
        held, turning, _ = min(
            theirs, key=lambda anchor: (round(off(anchor[0]) / self.size), not anchor[1], not anchor[2])
        )
        foot = base + ((held - base) @ axis) * axis
        along = float(np.linalg.norm(foot - base))
        telescopic = rotary and turning and off(held) < self.size and along > 6 * self.size
        # what slides itself holds the rod of another in its middle, as a yoke does
        return Slide(guide, slider, foot, base, telescopic, any(slides for *_, slides in theirs))

    def _weld(self, joint: Joint) -> np.ndarray:
        """Where two bodies that are fixed to one another come nearest, at a joint rather than a point."""
        one, two = (self._anchors(body, joint) for body in joint.bodies)
        pairs = [(a, b) for a in one or two for b in two or one]
        if not pairs:
            return np.zeros(3)
        a, b = min(pairs, key=lambda ab: float(np.linalg.norm(ab[0][0] - ab[1][0])))
        return a[0] if a[1] or not b[1] else b[0]

    def _spread(self) -> None:
        """Set revolutes that share a place apart along their axes, in the direction of their links."""
        free = [j for j in self.description.joints if j.type in ("revolute", "cylindrical")]
        fixed = {j.name: j for j in self.description.joints if j.name in self.places and j not in free}
        done: set[str] = set()
        for joint in free:
            if joint.name in done:
                continue
            group = [
                j for j in free
                if j.name not in done
                and np.linalg.norm(self.places[j.name] - self.places[joint.name]) < _NEAR * self.size
            ]  # fmt: skip
            done |= {j.name for j in group}
            others = [p for name, p in self.places.items() if name in fixed]
            near = [p for p in others if np.linalg.norm(p - self.places[joint.name]) < _NEAR * self.size]
            # few at a time: all ways of setting them apart are compared
            for k in range(0, len(group), _FEW):
                few = group[k : k + _FEW]
                if len(few) + len(near) > 1:
                    self._set_apart(few, near)
                near += [self.places[j.name] for j in few]

    def _set_apart(self, group: list[Joint], near: list[np.ndarray]) -> None:
        """The way of setting a few joints apart that moves least, and along links rather than off them."""
        names = {j.name for j in group}
        start = {j.name: self.places[j.name] for j in group}
        costs: dict[str, dict[int, float]] = {}
        for j in group:
            outward = [
                float((p - start[j.name]) @ self.axes[j.name])
                for body in j.bodies
                for p in self._others(body, names)
            ]
            reach = _APART * self.size
            costs[j.name] = {0: 0.0}
            for k in _STEPS[1:]:
                led = any(np.sign(k) * d > (abs(k) + 0.6) * reach for d in outward)
                based = GROUND in j.bodies and k * float(self.axes[j.name] @ self.down) > 0.5
                costs[j.name][k] = abs(k) * (0.5 if led or based else 2.5) + (abs(k) > 1) * 0.6
        best, least = (0,) * len(group), np.inf
        for steps in product(_STEPS, repeat=len(group)):
            moved = [
                start[j.name] + k * _APART * self.size * self.axes[j.name]
                for j, k in zip(group, steps, strict=True)
            ]
            cost = sum(costs[j.name][k] for j, k in zip(group, steps, strict=True))
            every = [*moved, *near]
            for a in range(len(moved)):
                for b in range(a + 1, len(every)):
                    cost += 20.0 * (np.linalg.norm(every[a] - every[b]) < _NEAR * self.size)
            if cost < least - 1e-9:
                best, least = steps, cost
        for j, k in zip(group, best, strict=True):
            self.places[j.name] = start[j.name] + k * _APART * self.size * self.axes[j.name]

    def _others(self, body: str, but: set[str]) -> list[np.ndarray]:
        """Places of a body's other joints and points."""
        if body == GROUND:
            return []
        found = [
            self.places[j.name]
            for j in self.description.joints
            if body in j.bodies and j.name not in but and j.name in self.places
        ]
        found += [np.array(p.at, float) for p in self.description.points if p.body == body]
        return found
