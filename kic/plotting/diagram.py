"""Kinematic diagram of a mechanism as a list of marks: links, joints and other symbols.

Marks are made once for the reference configuration and refer to the bodies that carry their positions;
`move_marks` moves them to a configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from kic.description.couplings import Coupling
from kic.description.description import given_names
from kic.description.parts import Distance, Joint, Spring
from kic.description.validation import GROUND, part_of
from kic.kinematics.tree import frame_axes
from kic.numerics.linalg import unit
from kic.plotting.joint_offsets import JointPlacement
from kic.plotting.link_shapes import LinkEnd, distinct, links
from kic.transfer.compiled_model import CompiledModel

_SLIDING_KINDS = ("guide", "telescope")
# teeth of a drawn gear: smallest number, pitch in radii of a joint, and largest number in a ratio
_TEETH_MIN, _TOOTH_PITCH_FACTOR, _RATIO_MAX = 8, 1.8, 40
# kinds of joints that couplings can connect
_COUPLED_KINDS = ("revolute", "prismatic", "cylindrical", "universal", "telescope")


@dataclass(frozen=True)
class Mark:
    """Symbol of a mechanism."""

    # "link", "plate" (a face with a rim), "solid" (a hull), or the type of a joint; "telescope" and "guide"
    # of sliding pairs; "ram" (a cylinder between two points); "coil", "dashpot", "rod", "dot", "touch",
    # "wheel", "belt", "tie", "frame", "anchor"
    kind: str
    name: str  # name of the part, or ""
    body: str  # body to which the mark belongs
    # (n,) names, (n, 3): positions, and the bodies that carry them
    place_bodies: tuple[str, ...]
    places: np.ndarray
    # (k,) names, (k, 3): unit vectors, and the bodies that carry them
    direction_bodies: tuple[str, ...] = ()
    directions: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    driven: bool = False  # True if it belongs to an actuator of the mechanism
    grounded: bool = False  # True if it is attached to ground
    # radii of pulleys; or radius, number of teeth and phase of a gear, a tooth at the second direction
    # having phase 0; the number of an internal gear is negative
    sizes: tuple[float, ...] = ()
    bodies: tuple[str, ...] = ()  # bodies connected by a joint
    # (2,) floats: range of a sliding pair over all drawn configurations, relative to its current position
    travel: tuple[float, float] = (0.0, 0.0)


def slider_travel(mark: Mark, displacements: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return positions along the axis of a sliding pair, or lengths of a ram; None for other marks.

    The array has one entry for each of the `displacements` (n, 4, 4). For rams and pairs of moving bodies,
    the entry of the reference configuration is appended, so that pictures show equal lengths.
    """
    T = [displacements[body] for body in mark.place_bodies]
    ends = [t[:, :3, :3] @ p + t[:, :3, 3] for t, p in zip(T, mark.places, strict=True)]
    drawn = mark.places[-1] - mark.places[0]
    if mark.kind == "ram":
        return np.append(np.linalg.norm(ends[1] - ends[0], axis=1), np.linalg.norm(drawn))
    slides = mark.kind in _SLIDING_KINDS or (mark.kind == "prismatic" and mark.grounded)
    if not (slides and len(mark.directions)):
        return None
    axis = displacements[mark.direction_bodies[0]][:, :3, :3] @ mark.directions[0]
    if len(ends) == 1:
        return np.einsum("ni,ni->n", axis, ends[0])
    return np.append(np.einsum("ni,ni->n", axis, ends[-1] - ends[0]), drawn @ mark.directions[0])


def move_marks(marks: Iterable[Mark], displacements: Mapping[str, np.ndarray]) -> list[Mark]:
    """Return marks of the reference configuration moved by the displacements (4, 4) of their bodies."""
    moved = []
    for mark in marks:
        T = np.stack([displacements[body] for body in mark.place_bodies])
        places = np.einsum("nij,nj->ni", T[:, :3, :3], mark.places) + T[:, :3, 3]
        R = np.reshape([displacements[body][:3, :3] for body in mark.direction_bodies], (-1, 3, 3))
        moved.append(replace(mark, places=places, directions=np.einsum("nij,nj->ni", R, mark.directions)))
    return moved


class KinematicDiagram:
    """Marks of a mechanism and the ends of each body, in the reference configuration.

    Positions closer than `size`, the radius of a joint in units of length, are merged. `normal` (3,) is the
    normal of a planar mechanism in plan view; offsets along it are ignored; `down` (3,) is the direction
    toward ground.
    """

    def __init__(
        self, model: CompiledModel, size: float, normal: np.ndarray | None, down: np.ndarray
    ) -> None:
        self.description, self.size, self.normal = model.description, size, normal
        self.placement = JointPlacement(model, size, normal, down)
        self.points = {p.name: p for p in self.description.points}
        closed = not model.tree.open
        joints = () if closed else tuple(joint.name for joint in self.description.joints if joint.dof)
        driven = joints if (named := given_names(self.description, "coordinates")) is None else named
        driven = driven if (actuators := given_names(self.description, "actuators")) is None else actuators
        self.driven = frozenset(part_of(name) for name in driven)
        # distances of two points that are drawn, and their ends
        shown = (d for d in self.description.distances if d.fixed or d.name in self.driven)
        self.rods = tuple(d for d in shown if d.axis is None)
        self.held = {name for d in self.rods for name in d.points}
        self.serial = not closed and normal is None
        self.marks: list[Mark] = []
        self.ends: dict[str, list[LinkEnd]] = {GROUND: [], **{b.name: [] for b in self.description.bodies}}
        self._add_sliding_pairs()
        self._collect_ends()
        for body in self.description.bodies:
            self._add_body(body.name)
        for joint in self.description.joints:
            self._add_joint(joint)
        self._add_couplings()
        self._add_rods_and_springs()
        self._add_contacts()
        self._add_points()
        self._add_frames()

    def _add(
        self,
        kind: str,
        name: str,
        body: str,
        places: Iterable,
        place_bodies: tuple[str, ...] = (),
        **more: Any,
    ) -> None:
        placed = np.array(list(places), dtype=float).reshape(-1, 3)
        self.marks.append(Mark(kind, name, body, place_bodies or (body,) * len(placed), placed, **more))

    def _add_sliding_pairs(self) -> None:
        """Add sliding pairs: a block on a rail, a block on the rod of a moving body, or a telescope."""
        for joint in self.description.joints:
            slide = self.placement.sliders.get(joint.name)
            if slide is None:
                continue
            axis, driven = self.placement.axes[joint.name], joint.name in self.driven
            line = [slide.foot, slide.place]
            pair = (slide.guide, slide.slider)
            shared: dict[str, Any] = {"direction_bodies": (slide.guide,), "directions": axis[None]}
            if slide.telescopic:
                self._add("telescope", joint.name, slide.slider, line, pair, driven=driven, **shared)
                self.ends[slide.guide].append(LinkEnd(slide.foot, None, "telescope"))
            elif slide.guide != GROUND:
                shared |= {"sizes": (float(slide.through),), "bodies": pair}
                self._add("guide", joint.name, slide.guide, line, pair, **shared)
                self.ends[slide.guide].append(LinkEnd(slide.foot, None, joint.name))
            self.ends[slide.slider].append(LinkEnd(slide.place, None, joint.name))

    def _collect_ends(self) -> None:
        """Collect the ends of every body: joints, contacts, ends of rods and springs, then points."""
        for joint in self.description.joints:
            place = self.placement.positions.get(joint.name)
            if place is None or joint.name in self.placement.sliders or joint.type in ("free", "planar"):
                continue
            turning = joint.type in ("revolute", "cylindrical")
            for body in joint.bodies:
                self.ends[body].append(
                    LinkEnd(place, self.placement.axes[joint.name] if turning else None, joint.name)
                )
        for contact in self.description.contacts:
            for body in contact.bodies:
                self.ends[body].append(LinkEnd(np.array(contact.at, float), None, contact.name))
        held = self.held | {name for spring in self.description.springs for name in spring.points}
        for point in self.description.points:
            self.ends[point.body].append(
                LinkEnd(np.array(point.at, float), None, point.name, point.name in held)
            )
        for frame in self.description.frames:
            self.ends[frame.body].append(LinkEnd(np.array(frame.origin, float), None, frame.name))

    def _add_body(self, name: str) -> None:
        """Add rods and faces of a body."""
        body = next(b for b in self.description.bodies if b.name == name)
        spare = None if body.reference is None else np.array(body.reference, float)
        if any(
            name in (slide.guide, slide.slider)
            for slide in self.placement.sliders.values()
            if slide.telescopic
        ):
            spare = None  # the telescope replaces the rod
        # a point at the original position of an offset joint needs no stem
        met = [np.array(j.at, float) for j in self.description.joints if j.at is not None]
        ends = [
            e for e in self.ends[name] if e.bearing or distinct(e.place, met, 0.1 * self.size, self.normal)
        ]
        ends = ends if len(ends) > 1 else self.ends[name]
        for kind, places in links(ends, spare, self.size, self.normal, self.serial):
            self._add(kind, name, name, places)
        mine = [j for j in self.description.joints if name in j.bodies]
        tips = [p for p in self.description.points if p.body == name]
        framed = any(frame.body == name for frame in self.description.frames)
        if (
            self.serial
            and len(mine) == 1
            and tips
            and not framed
            and name in mine[0].bodies[1]
            and mine[0].axis
        ):
            directions = frame_axes(unit(mine[0].axis)).T
            at = np.array(mine[0].at or (0.0, 0.0, 0.0))
            tip = max(tips, key=lambda p: float(np.linalg.norm(np.array(p.at) - at)))
            self._add("frame", tip.name, name, [tip.at], direction_bodies=(name,) * 3, directions=directions)

    def _add_joint(self, joint: Joint) -> None:
        place = self.placement.positions.get(joint.name)
        if place is None or joint.type in ("free", "planar"):
            return
        slide = self.placement.sliders.get(joint.name)
        if slide is not None and slide.telescopic:
            return
        first, second = joint.bodies
        grounded = GROUND in joint.bodies
        carrier = slide.slider if slide is not None else second if second != GROUND else first
        directions, direction_bodies = self.placement.directions(joint)
        base = self._base_below(joint) if grounded else None
        if base is not None:
            self._add("anchor", "", GROUND, [base, place], (GROUND, GROUND), grounded=True)
            self._add("rod", "", GROUND, [base, place], (GROUND, GROUND), bodies=(GROUND, GROUND))
            grounded = False
        self._add(
            joint.type, joint.name, carrier, [place], (carrier,),
            direction_bodies=direction_bodies, directions=directions, driven=joint.name in self.driven,
            grounded=grounded, bodies=joint.bodies,
        )  # fmt: skip

    def _base_below(self, joint: Joint) -> np.ndarray | None:
        """Return the origin of a ground frame with the joint on its z axis: the base of an imported arm."""
        for frame in self.description.frames:
            away = np.array(joint.at or frame.origin) - np.array(frame.origin)
            height = float(away @ frame.axes[2])
            if frame.body == GROUND and height > self.size and np.linalg.norm(away) < 1.01 * height:
                return np.array(frame.origin)
        return None

    def _add_couplings(self) -> None:
        """Add pitch circles of wheels, and belts; couplings with general ratios are ties between joints."""
        joints = {joint.name: joint for joint in self.description.joints}
        for coupling in self.description.couplings:
            if coupling.ratios is not None:
                self._add_tie(coupling)
                continue
            pair = [joints[part_of(name)] for name in coupling.joints]
            if any(joint.at is None or joint.axis is None for joint in pair):
                continue
            shared = set(pair[0].bodies) & set(pair[1].bodies)
            centres, axes = [np.array(j.at, float) for j in pair], [unit(j.axis) for j in pair]
            apart = centres[1] - centres[0]
            if coupling.pitch_point is not None:
                pitch = np.array(coupling.pitch_point, float)
                numbers = None
                centres = [c + ((pitch - c) @ a) * a for c, a in zip(centres, axes, strict=True)]
                radii = [float(np.linalg.norm(pitch - c)) for c in centres]
            else:
                one, two = numbers = coupling.gears or coupling.belt or (1.0, 1.0)
                apart = apart - (apart @ axes[0]) * axes[0]
                between = float(np.linalg.norm(apart))
                centres[1] = centres[0] + apart
                # gears fill the centre distance; radii of pulleys are lengths, or ratios if too large
                fill = between / abs(one + two)
                if coupling.belt and one + two < between:
                    fill = 1.0
                elif coupling.belt:
                    fill *= 0.5
                radii = [abs(one) * fill, abs(two) * fill]
                # wheels touch on the line of centres; an internal gear encloses the other
                inner = int(two < 0)
                toward = (centres[1 - inner] - centres[inner]) / between
                pitch = centres[inner] + radii[inner] * toward
            wheels = tuple(next((b for b in j.bodies if b not in shared), j.bodies[1]) for j in pair)
            teeth = (0, 0) if coupling.belt else self._teeth(numbers, radii)
            for k, (joint, centre, axis) in enumerate(zip(pair, centres, axes, strict=True)):
                if joint.type == "revolute":
                    directions, sizes = axis[None], list(radii[k : k + 1])
                    if not coupling.belt:
                        directions = np.stack([axis, (pitch - centre) / radii[k]])
                        sizes += [float(teeth[k]), 0.5 * k]
                    self._add(
                        "wheel", "", wheels[k], [centre], direction_bodies=(wheels[k],) * len(directions),
                        directions=directions, sizes=tuple(sizes),
                    )  # fmt: skip
            if coupling.belt:
                frame = next(iter(shared))
                self._add(
                    "belt", coupling.name, frame, centres, (frame,) * 2,
                    direction_bodies=(frame,), directions=axes[0][None], sizes=tuple(radii),
                )  # fmt: skip

    def _teeth(self, numbers: tuple[float, float] | None, radii: list[float]) -> tuple[int, int]:
        """Return the tooth numbers of two meshing wheels: the given numbers, or fewer if too fine."""
        ratio = Fraction(radii[0] / radii[1] if radii[0] and radii[1] else 1.0).limit_denominator(_RATIO_MAX)
        pair = (max(ratio.numerator, 1), ratio.denominator)
        fewest = max(1, -(-_TEETH_MIN // min(pair)))
        finest = int(2 * np.pi * min(radii) / (_TOOTH_PITCH_FACTOR * self.size) / min(pair))
        times = max(fewest, finest)
        given = numbers is not None and all(float(n).is_integer() and abs(n) >= _TEETH_MIN for n in numbers)
        if numbers is not None and given:
            times = min(times, max(1, round(abs(numbers[0]) / pair[0])))
        sign = [-1 if numbers is not None and n < 0 else 1 for n in numbers or (1, 1)]
        return sign[0] * pair[0] * times, sign[1] * pair[1] * times

    def _add_tie(self, coupling: Coupling) -> None:
        """Add a tie between the coupled joints."""
        names = dict.fromkeys(part_of(name) for name in coupling.joints)
        marks = [m for name in names for m in self.marks if m.name == name and m.kind in _COUPLED_KINDS]
        places = [m.places[-1] for m in marks]
        place_bodies = tuple(m.place_bodies[-1] for m in marks)
        if len(places) > 1:
            self._add("tie", coupling.name, "", places, place_bodies)

    def _add_rods_and_springs(self) -> None:
        """Add rods, rams, springs and dampers, with anchors at ends on ground."""
        kinds: list[tuple[Distance | Spring, str]] = [(d, "rod" if d.fixed else "ram") for d in self.rods]
        kinds += [
            (s, "coil" if s.stiffness or not s.damping else "dashpot") for s in self.description.springs
        ]
        for part, kind in kinds:
            ends = [self.points[name] for name in part.points]
            bodies = tuple(p.body for p in ends)
            self._add(kind, part.name, "", [p.at for p in ends], bodies, driven=part.name in self.driven)
            grounded = [np.array(j.at, float) for j in self.description.joints if j.at and GROUND in j.bodies]
            for p in ends:
                if p.body == GROUND and distinct(
                    np.array(p.at, float), grounded, 0.3 * self.size, self.normal
                ):
                    other = ends[0] if p is ends[1] else ends[1]
                    held = (GROUND, other.body)
                    self._add("anchor", "", GROUND, [p.at, other.at], held, grounded=True)

    def _add_contacts(self) -> None:
        # pinned contacts need no normal; in a plane picture it is in the plane
        level = self.normal is not None and abs(self.normal[2]) > 0.5
        upright = np.array([0.0, -1.0, 0.0] if level else [0.0, 0.0, 1.0])
        for contact in self.description.contacts:
            first, second = contact.bodies
            normal = unit(contact.normal) if contact.normal else upright
            self._add(
                "touch" if contact.closed else "lifted", contact.name, first, [contact.at],
                direction_bodies=(second,), directions=normal[None], grounded=GROUND in contact.bodies,
            )  # fmt: skip

    def _add_points(self) -> None:
        taken = list(self.placement.positions.values())
        for point in self.description.points:
            at = np.array(point.at, float)
            if point.name in self.held or not distinct(at, taken, 0.3 * self.size, self.normal):
                self._add("node", point.name, point.body, [at])  # a label without a symbol
            else:
                self._add("dot", point.name, point.body, [at])

    def _add_frames(self) -> None:
        """Add the axes of frames, and their names at their origins."""
        for frame in self.description.frames:
            self._add("node", frame.name, frame.body, [frame.origin])
            self._add(
                "frame", "", frame.body, [frame.origin],
                direction_bodies=(frame.body,) * 3, directions=np.array(frame.axes),
            )  # fmt: skip
