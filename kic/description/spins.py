"""Spins of rods: rotations of bodies about the line through their joints that move nothing else.

A rod between two spherical joints is the usual case. The spin is held by a fixed hinge along the line, or by
a universal joint in place of a spherical joint, as in the standard model of such a rod. Only the geometry of
the reference configuration is used, for speed. These spins exist in every configuration, and are a part of
`Mobility.passive_freedoms`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription, given_names
from kic.description.parts import Angle, Joint
from kic.description.validation import GROUND, part_of
from kic.errors import either
from kic.numerics.graphs import components
from kic.numerics.linalg import unit

# distances of centres and axes from one line, relative to the extent of all joints; sines of angles
LINE_RTOL = 1e-9
# the largest share of the extent that counts as one line, however rounded the loops are
LINE_RTOL_MAX = 1e-3
# distance of a centre of mass from the line, relative to the length between the joints, beyond which a body
# on a hinge is a pendulum, not a rod
PENDULUM_SHARE = 0.25
# start of a remark on spins that are held
HELD = "spins that move nothing else are held: "


@dataclass(frozen=True)
class Spin:
    """Spin of bodies about the line through some joints.

    `held` is the joint that replaces its namesake to hold the spin; None if a `reason` prevents this.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    held: Joint | None = None
    reason: str = ""


@dataclass
class _Rod:
    """Candidate rod: a group of bodies, its joints to other bodies, and a point and direction of the line."""

    bodies: tuple[str, ...]
    ends: list[Joint]
    point: np.ndarray
    along: np.ndarray
    reason: str = ""


def find_spins(description: MechanismDescription, free: Iterable[str] = ()) -> list[Spin]:
    """Return the spins of a closed mechanism about lines through at least one spherical joint.

    Bodies that only slide along one another spin as one. Spins that a motor drives or a coupling transmits
    are excluded, and those of hinges and ball joints with a coordinate in `free`. A body that swings about a
    hinge under its weight keeps its spin; the weight of a rod on ball joints is not considered.
    """
    if all(joint.type != "spherical" for joint in description.joints):
        return []
    graph = _Graph(description)
    kept = {part_of(name) for name in free}
    rods = [rod for rod in graph.rods() if kept.isdisjoint(joint.name for joint in rod.ends)]
    loose = {body for rod in rods for body in rod.bodies}
    made, waiting = dict[int, Spin](), list(range(len(rods)))
    while waiting:
        before = len(waiting)
        for k in list(waiting):
            rod = rods[k]
            # an end at a body that itself spins cannot hold a spin
            steady = [j for j in rod.ends if all(b in rod.bodies or b not in loose for b in j.bodies)]
            if rod.reason or steady:
                waiting.remove(k)
                made[k] = graph.held(rod, steady)
                if made[k].held:
                    loose -= set(rod.bodies)
        if len(waiting) == before:
            for k in waiting:
                rods[k].reason = "the bodies at its ends spin, too"
    return [made[k] for k in range(len(rods))]


def held_remark(spins: Iterable[Spin]) -> str:
    """Return a remark on the spins that are held; '' if there are none."""
    phrases = [
        f"{either(map(repr, spin.bodies), 'and')} by '{spin.held.name}', now a {spin.held.type} joint"
        for spin in spins
        if spin.held
    ]
    return f"{HELD}{'; '.join(phrases)}." if phrases else ""


def free_remarks(spins: Iterable[Spin]) -> list[str]:
    """Return remarks on the spins that stay free."""
    return [
        f"the spin of {either(map(repr, spin.bodies), 'and')} moves nothing else, but stays free: "
        f"{spin.reason}."
        for spin in spins
        if not spin.held
    ]


class _Graph:
    """Graph of bodies; `unit` and `group` number sets joined by fixed, and by fixed or sliding joints."""

    def __init__(self, description: MechanismDescription) -> None:
        self.description = description
        self.names = (GROUND, *(body.name for body in description.bodies))
        self.index = {name: k for k, name in enumerate(self.names)}
        joints = description.joints
        self.unit = self._connected(j for j in joints if j.type == "fixed")
        self.group = self._connected(j for j in joints if j.type in ("fixed", "prismatic"))
        self.carrier = {point.name: point.body for point in description.points}
        self.place = {point.name: point.at for point in description.points}
        # pairs of bodies that constrain one another
        self.links = [j.bodies for j in joints if j.type != "free"]
        self.links += [description._bodies_of(measure) for measure in description._fixed_measures]
        self.links += [contact.bodies for contact in description._closed_contacts]
        self.size = float(np.ptp([j.at for j in joints if j.at] or [(0.0,) * 3], axis=0).max())
        self.rtol = min(max(LINE_RTOL, 10 * description.closure_tolerance), LINE_RTOL_MAX)
        driven = {c for coordinates in description._shafts.values() for c in coordinates}
        driven |= set(given_names(description, "actuators") or ())
        self.driven = {part_of(name) for name in driven} | description._coupled

    def _connected(self, joints: Iterable[Joint]) -> np.ndarray:
        links = [(self.index[a], self.index[b]) for a, b in (joint.bodies for joint in joints)]
        return components(links, len(self.names))

    def rods(self) -> list[_Rod]:
        """Return the groups that can rotate about the line through all their joints."""
        ends: dict[int, list[Joint]] = {}
        for joint in self.description.joints:
            groups = {int(self.group[self.index[body]]) for body in joint.bodies}
            if joint.type not in ("fixed", "prismatic"):
                for group in groups:
                    ends.setdefault(group, []).append(joint)
        touched = [body for contact in self.description._closed_contacts for body in contact.bodies]
        out = {0, *(int(self.group[self.index[body]]) for body in touched)}
        found = []
        for group, joints in ends.items():
            kinds = {joint.type for joint in joints}
            idle = group not in out and self.driven.isdisjoint(joint.name for joint in joints)
            if idle and "spherical" in kinds <= {"spherical", "revolute", "cylindrical"}:
                found.append(self._rod(group, joints))
        return [rod for rod in found if rod is not None]

    def _rod(self, group: int, joints: list[Joint]) -> _Rod | None:
        """Return a group of bodies if it is a rod of a closed loop with all joints on a line, else None."""
        members = np.flatnonzero(self.group == group)
        bodies = tuple(self.names[k] for k in members)
        balls = [joint.at for joint in joints if joint.type == "spherical"]
        hinges = [joint for joint in joints if joint.type != "spherical"]
        others = [b for joint in joints for b in joint.bodies if b not in bodies]
        if len(others) < len(joints):
            return None
        for rod in self.description._measures:
            ends = self.description._bodies_of(rod)
            acts = rod.fixed or rod.name in self.driven
            if acts and (ends[0] in bodies) != (ends[1] in bodies):
                mine = 0 if ends[0] in bodies else 1
                if isinstance(rod, Angle) or (mine and rod.axis):
                    return None
                balls.append(self.place[rod.points[mine]])
                if rod.fixed:
                    others.append(ends[1 - mine])
        places = np.array(balls, dtype=float)
        arms = places - places[0]
        far = arms[np.argmax(np.linalg.norm(arms, axis=1))]
        if np.linalg.norm(far) <= self.rtol * self.size:
            if not hinges:
                return None
            far = np.array(hinges[0].axis, dtype=float)
        found = _Rod(bodies, joints, places[0], far / np.linalg.norm(far))
        sliding = [
            j for j in self.description.joints if j.type == "prismatic" and set(j.bodies) <= set(bodies)
        ]
        axes = [j.axis for j in (*hinges, *(sliding if hinges else ()))]
        on_line = all(self._is_on_line(found, at) for at in (*places, *(h.at for h in hinges)))
        parallel = all(np.linalg.norm(np.cross(found.along, unit(axis))) <= self.rtol for axis in axes)
        if not (on_line and parallel and self._in_a_loop(members, others)):
            return None
        found.reason = self._load_beside(found)
        return found

    def _is_on_line(self, rod: _Rod, at: Any) -> bool:
        """Return True if a point is on the line of a rod."""
        return bool(np.linalg.norm(np.cross(rod.along, at - rod.point)) <= self.rtol * self.size)

    def _in_a_loop(self, members: np.ndarray, others: list[str]) -> bool:
        """Return True if the bodies at the ends differ, and are connected without the group."""
        inside = set(members.tolist())
        links = [(self.index[a], self.index[b]) for a, b in self.links]
        links = [link for link in links if inside.isdisjoint(link)]
        piece = components(links, len(self.names))
        ends = {int(self.unit[self.index[body]]): int(piece[self.index[body]]) for body in others}
        return len(ends) > len(set(ends.values()))

    def _load_beside(self, rod: _Rod) -> str:
        """Return the reason why a spin does work on loads other than weight; '' if it does no work."""
        d = self.description
        loads = [(s.name, name) for s in d.springs for name in s.points]
        loads += [(force.name, force.point) for force in d.forces]
        for load, name in loads:
            if self.carrier[name] in rod.bodies and not self._is_on_line(rod, self.place[name]):
                return f"'{load}' acts off its axis"
        turned = [moment.name for moment in d.moments if moment.body in rod.bodies]
        return f"'{turned[0]}' turns it" if turned else ""

    def _hangs(self, rod: _Rod) -> bool:
        """Return True if the centre of mass is so far from the line that the body is a pendulum."""
        bodies = [b for b in self.description.bodies if b.name in rod.bodies and b.mass and b.com is not None]
        if not bodies:
            return False
        com = np.average(np.array([b.com for b in bodies]), axis=0, weights=[b.mass or 0.0 for b in bodies])
        away = float(np.linalg.norm(np.cross(rod.along, com - rod.point)))
        length = float(np.ptp([np.array(joint.at) @ rod.along for joint in rod.ends]))
        return away > max(PENDULUM_SHARE * length, self.rtol * self.size)

    def held(self, rod: _Rod, steady: list[Joint]) -> Spin:
        """Return the spin of a rod, with a joint at a steady end that holds it, or a reason why none can."""
        names = tuple(joint.name for joint in rod.ends)
        hinges = [joint for joint in steady if joint.type == "revolute"]
        balls = [joint for joint in steady if joint.type == "spherical"]
        uneven = {joint.name: _uneven(joint) for joint in balls}
        usable = [joint for joint in balls if not uneven[joint.name]]
        if rod.reason:
            return Spin(rod.bodies, names, None, rod.reason)
        if hinges:
            if self._hangs(rod):
                return Spin(
                    rod.bodies, names, None, f"its centre of mass is off the axis of '{hinges[0].name}'"
                )
            return Spin(rod.bodies, names, _changed(hinges[0], "fixed"))
        if not usable:
            what = [
                f"{keys} of '{name}' {'are' if ' and ' in keys else 'is'} given by axis"
                for name, keys in uneven.items()
            ]
            return Spin(rod.bodies, names, None, "; ".join(what))
        # prefer a body with a hinge, about which the rod swings far
        hinged = [(joint, self._hinge(rod, joint)) for joint in usable]
        joint, hinge = next(((j, h) for j, h in hinged if h is not None), hinged[0])
        return Spin(rod.bodies, names, _universal(joint, joint.bodies[0] in rod.bodies, rod.along, hinge))

    def _hinge(self, rod: _Rod, end: Joint) -> np.ndarray | None:
        """Return the axis of the first hinge of the body that carries an end of a rod, or None."""
        other = next(body for body in end.bodies if body not in rod.bodies)
        own = self.unit[self.index[other]]
        for joint in self.description.joints if own else ():
            units = [self.unit[self.index[body]] for body in joint.bodies]
            if joint.type == "revolute" and own in units and rod.ends.count(joint) == 0:
                return unit(joint.axis)
        return None


def _uneven(joint: Joint) -> str:
    """Return the fields of a ball joint that a universal joint cannot represent; '' if there are none.

    Isotropic dry friction cannot be split between two hinges: its power is the sum of the magnitudes of rates
    about other axes.
    """
    keys = [key for key in ("damping", "armature") if len(set(getattr(joint, key))) > 1]
    keys += ["friction"] if np.any(joint.friction) else []
    keys += [key for key in ("effort_limits", "rate_limits") if getattr(joint, key) is not None]
    return either(keys, "and") if keys else ""


def _changed(joint: Joint, kind: Any, **fields: Any) -> Joint:
    """Return a joint of another type, with defaults for all fields that are not given."""
    return Joint(joint.name, kind, joint.bodies, joint.at, **fields)


def _universal(ball: Joint, reverse: bool, along: np.ndarray, hinge: np.ndarray | None) -> Joint:
    """Return the universal joint that replaces a ball joint to hold the spin.

    The joint is singular where the rod lies along the axis `a` of the other body. If that body turns about a
    hinge, the angle between rod and hinge is almost constant: `a` is the axis of the hinge if that angle is
    at least 45 degrees, and else perpendicular to it. Damping and armature that are equal about all axes
    remain so, because both axes are always perpendicular.
    """
    a = hinge
    if a is None or abs(a @ along) > np.sqrt(0.5):
        a = np.zeros(3) if a is None else np.cross(along, a)
        if np.linalg.norm(a) < np.sqrt(LINE_RTOL):
            a = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
        a = unit(a)
    b = unit(np.cross(a, along))
    first, second = (b, a) if reverse else (a, b)
    laws = {key: getattr(ball, key)[:2] for key in ("damping", "armature")}
    axes: dict[str, Any] = {"axis": tuple(first.tolist()), "axis2": tuple(second.tolist())}
    return _changed(ball, "universal", **axes, **laws, swing=ball.swing, swing_axis=ball.swing_axis)


def with_held_spins(description: Any, spins: Iterable[Spin]) -> Any:
    """Return a description with the joints that hold spins, and without coordinates of these joints."""
    made = {spin.held.name: spin.held for spin in spins if spin.held}
    changes: dict[str, Any] = {"joints": tuple(made.get(j.name, j) for j in description.joints)}
    for key in ("coordinates", "actuators"):
        if (given := given_names(description, key)) is not None:
            changes[key] = tuple(name for name in given if part_of(name) not in made)
    return replace(description, **changes)
