"""A mechanism as a list of marks: rods, plates, pairs and what else an engineer draws, without a picture.

Marks are made once, of the drawing, and say which body carries each of their places; `move_marks` moves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.description.couplings import Coupling
from kic.description.parts import Distance, Joint, Spring
from kic.description.validation import GROUND
from kic.plotting.joint_offsets import JointPlacement, unit_of
from kic.plotting.link_shapes import End, distinct, links
from kic.transfer.compiled_model import CompiledModel

_SLIDING = ("guide", "telescope")
# the marks of joints that couplings may tie
_TIED = ("revolute", "prismatic", "cylindrical", "universal", "telescope")


@dataclass(frozen=True)
class Mark:
    """One thing to draw.

    Attributes
    ----------
    kind : str
        "link", "plate" (a face with a rim), "solid" (a hull), or the type of a joint; "telescope" and "guide"
        of sliding pairs; "coil", "dashpot", "rod", "dot", "touch", "wheel", "belt", "tie", "frame", "anchor".
    name : str
        Of the part; "" of what has none.
    body : str
        Whose it is.
    place_bodies, places : (n,) names, (n, 3)
        Its places, and the bodies that carry them.
    direction_bodies, ways : (k,) names, (k, 3)
        Its unit directions, and the bodies that carry them.
    driven : bool
        Whether a coordinate of the mechanism belongs to it.
    grounded : bool
        Whether it stands on ground.
    sizes : tuple of float
        Radii of wheels; of those that mesh a second number.
    bodies : tuple of str
        What a joint ties.
    travel : (2,) floats
        How far a sliding pair goes from here, back and forth, in all postures that are drawn.
    """

    kind: str
    name: str
    body: str
    place_bodies: tuple[str, ...]
    places: np.ndarray
    direction_bodies: tuple[str, ...] = ()
    directions: np.ndarray | None = None
    driven: bool = False
    grounded: bool = False
    sizes: tuple[float, ...] = ()
    bodies: tuple[str, ...] = ()
    travel: tuple[float, float] = (0.0, 0.0)


def slider_travel(mark: Mark, where: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Where (n,) along its axis a sliding pair is in postures; None of what slides on nothing shown.

    Of pairs of moving bodies the last is where they are drawn, so that they are as long in all pictures.

    Parameters
    ----------
    mark : Mark
        As drawn.
    where : mapping of str to (n, 4, 4)
        Displacement of each body from the drawing.
    """
    if mark.directions is None or not (mark.kind in _SLIDING or (mark.kind == "prismatic" and mark.grounded)):
        return None
    axis = where[mark.direction_bodies[0]][:, :3, :3] @ mark.directions[0]
    T = [where[body] for body in mark.place_bodies]
    ends = [t[:, :3, :3] @ p + t[:, :3, 3] for t, p in zip(T, mark.places, strict=True)]
    if len(ends) == 1:
        return np.einsum("ni,ni->n", axis, ends[0])
    drawn = float((mark.places[-1] - mark.places[0]) @ mark.directions[0])
    return np.append(np.einsum("ni,ni->n", axis, ends[-1] - ends[0]), drawn)


def move_marks(marks: Iterable[Mark], where: Mapping[str, np.ndarray]) -> list[Mark]:
    """Marks where bodies have carried them.

    Parameters
    ----------
    marks : iterable of Mark
        As drawn.
    where : mapping of str to (4, 4)
        Displacement of each body from the drawing.
    """
    moved = []
    for mark in marks:
        T = np.stack([where[body] for body in mark.place_bodies])
        places = np.einsum("nij,nj->ni", T[:, :3, :3], mark.places) + T[:, :3, 3]
        ways = mark.directions
        if ways is not None:
            R = np.stack([where[body][:3, :3] for body in mark.direction_bodies])
            ways = np.einsum("nij,nj->ni", R, ways)
        moved.append(replace(mark, places=places, directions=ways))
    return moved


class KinematicDiagram:
    """The marks of a mechanism.

    Parameters
    ----------
    model : Model
        In real numbers.
    size : float
        Radius of a joint, in units of length: what is nearer than that is one place.
    normal : (3,) or None
        Normal of a planar mechanism that is seen flat; offsets along it do not show.
    down : (3,)
        Where ground is.

    Attributes
    ----------
    marks : list of Mark
    ends : dict of str to list of End
        What each body has to hold together.
    """

    def __init__(
        self, model: CompiledModel, size: float, normal: np.ndarray | None, down: np.ndarray
    ) -> None:
        self.description, self.size, self.normal = model.description, size, normal
        self.sites = JointPlacement(model, size, normal, down)
        self.points = {p.name: p for p in self.description.points}
        closed = not model.tree.open
        driven = self.description.named_coordinates if self.description.coordinates or not closed else ()
        self.driven = frozenset(name.partition(".")[0] for name in driven)
        self.serial = not closed and normal is None
        self.marks: list[Mark] = []
        self.ends: dict[str, list[End]] = {GROUND: [], **{b.name: [] for b in self.description.bodies}}
        self._slides()
        self._collect()
        for body in self.description.bodies:
            self._body(body.name)
        for joint in self.description.joints:
            self._pair(joint)
        self._couplings()
        self._between_points()
        self._touches()
        self._dots()

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

    def _slides(self) -> None:
        """Sliding pairs: a block on a rail, a block on a rod of a moving body, or a telescope."""
        for joint in self.description.joints:
            slide = self.sites.slides.get(joint.name)
            if slide is None:
                continue
            axis, driven = self.sites.axes[joint.name], joint.name in self.driven
            ways = {"direction_bodies": (slide.guide,), "ways": axis[None]}
            two = (slide.guide, slide.slider)
            if slide.telescopic:
                self._add(
                    "telescope",
                    joint.name,
                    slide.slider,
                    [slide.foot, slide.place],
                    two,
                    driven=driven,
                    **ways,
                )
                self.ends[slide.guide].append(End(slide.foot, None, "telescope"))
            elif slide.guide != GROUND:
                self._add(
                    "guide",
                    joint.name,
                    slide.guide,
                    [slide.foot, slide.place],
                    two,
                    sizes=(float(slide.through),),
                    bodies=two,
                    **ways,
                )
                self.ends[slide.guide].append(End(slide.foot, None, joint.name))
            self.ends[slide.slider].append(End(slide.place, None, joint.name))

    def _collect(self) -> None:
        """What every body has to hold: its joints, contacts, ends of rods and springs; then its points."""
        for joint in self.description.joints:
            place = self.sites.places.get(joint.name)
            if place is None or joint.name in self.sites.slides or joint.type in ("free", "planar"):
                continue
            turning = joint.type in ("revolute", "cylindrical")
            for body in joint.bodies:
                self.ends[body].append(
                    End(place, self.sites.axes[joint.name] if turning else None, joint.name)
                )
        for contact in self.description.contacts:
            for body in contact.bodies:
                self.ends[body].append(End(np.array(contact.at, float), None, contact.name))
        held = {name for d in self.description.distances if d.fixed for name in d.points}
        held |= {name for spring in self.description.springs for name in spring.points}
        for point in self.description.points:
            self.ends[point.body].append(End(np.array(point.at, float), None, point.name, point.name in held))

    def _body(self, name: str) -> None:
        """Rods and faces of a body."""
        body = next(b for b in self.description.bodies if b.name == name)
        spare = None if body.reference is None else np.array(body.reference, float)
        if any(
            name in (slide.guide, slide.slider) for slide in self.sites.slides.values() if slide.telescopic
        ):
            spare = None  # what slides in one another is shown as such
        # a point where some joint was drawn, before that was set apart, needs no stem
        met = [np.array(j.at, float) for j in self.description.joints if j.at is not None]
        ends = [
            e for e in self.ends[name] if e.bearing or distinct(e.place, met, 0.1 * self.size, self.normal)
        ]
        ends = ends if len(ends) > 1 else self.ends[name]
        for kind, places in links(ends, spare, self.size, self.normal, self.serial):
            self._add(kind, name, name, places)
        mine = [j for j in self.description.joints if name in j.bodies]
        tips = [p for p in self.description.points if p.body == name]
        if self.serial and len(mine) == 1 and tips and name in mine[0].bodies[1] and mine[0].axis:
            axis = unit_of(mine[0].axis)
            side = np.eye(3)[np.argmin(np.abs(axis))]
            side = unit_of(side - (side @ axis) * axis)
            ways = np.stack([side, np.cross(axis, side), axis])
            at = np.array(mine[0].at or (0.0, 0.0, 0.0))
            tip = max(tips, key=lambda p: float(np.linalg.norm(np.array(p.at) - at)))
            self._add("frame", tip.name, name, [tip.at], direction_bodies=(name,) * 3, directions=ways)

    def _pair(self, joint: Joint) -> None:
        place = self.sites.places.get(joint.name)
        if place is None or joint.type in ("free", "planar"):
            return
        slide = self.sites.slides.get(joint.name)
        if slide is not None and slide.telescopic:
            return
        first, second = joint.bodies
        grounded = GROUND in joint.bodies
        carrier = slide.slider if slide is not None else second if second != GROUND else first
        ways, place_bodies = self.sites.directions(joint)
        self._add(
            joint.type, joint.name, carrier, [place], (carrier,),
            direction_bodies=place_bodies, directions=ways, driven=joint.name in self.driven, grounded=grounded,
            bodies=joint.bodies,
        )  # fmt: skip

    def _couplings(self) -> None:
        """Pitch circles of wheels, and belts; of those with mere ratios, which joints they tie."""
        joints = {joint.name: joint for joint in self.description.joints}
        for coupling in self.description.couplings:
            if coupling.ratios is not None:
                self._tie(coupling)
                continue
            pair = [joints[name.partition(".")[0]] for name in coupling.joints]
            if any(joint.at is None or joint.axis is None for joint in pair):
                continue
            shared = set(pair[0].bodies) & set(pair[1].bodies)
            centres, axes = [np.array(j.at, float) for j in pair], [unit_of(j.axis) for j in pair]
            apart = centres[1] - centres[0]
            if coupling.pitch_point is not None:
                pitch = np.array(coupling.pitch_point, float)
                centres = [c + ((pitch - c) @ a) * a for c, a in zip(centres, axes, strict=True)]
                radii = [float(np.linalg.norm(pitch - c)) for c in centres]
            else:
                one, two = coupling.gears or coupling.belt or (1.0, 1.0)
                apart = apart - (apart @ axes[0]) * axes[0]
                between = float(np.linalg.norm(apart))
                centres[1] = centres[0] + apart
                # what meshes fills the distance of the axles; pulleys are in length, or only in proportion
                fill = between / abs(one + two)
                if coupling.belt and one + two < between:
                    fill = 1.0
                elif coupling.belt:
                    fill *= 0.5
                radii = [abs(one) * fill, abs(two) * fill]
            place_bodies = tuple(next((b for b in j.bodies if b not in shared), j.bodies[1]) for j in pair)
            kind = "belt" if coupling.belt else "wheel"
            for joint, centre, axis, radius, body in zip(
                pair, centres, axes, radii, place_bodies, strict=True
            ):
                if joint.type == "revolute":
                    self._add(
                        "wheel",
                        "",
                        body,
                        [centre],
                        direction_bodies=(body,),
                        directions=axis[None],
                        sizes=(radius,) if coupling.belt else (radius, 1.0),
                    )
            if kind == "belt":
                frame = next(iter(shared))
                self._add(
                    "belt",
                    coupling.name,
                    frame,
                    centres,
                    (frame,) * 2,
                    direction_bodies=(frame,),
                    directions=axes[0][None],
                    sizes=tuple(radii),
                )

    def _tie(self, coupling: Coupling) -> None:
        """From joint to joint, as they are named."""
        names = dict.fromkeys(name.partition(".")[0] for name in coupling.joints)
        marks = [m for name in names for m in self.marks if m.name == name and m.kind in _TIED]
        places = [m.places[-1] for m in marks]
        place_bodies = tuple(m.place_bodies[-1] for m in marks)
        if len(places) > 1:
            self._add("tie", coupling.name, "", places, place_bodies)

    def _between_points(self) -> None:
        """Rods, springs and dampers; on ground their ends are held."""
        kinds: list[tuple[Distance | Spring, str]] = [(d, "rod") for d in self.description.distances if d.fixed]
        kinds += [(s, "coil" if s.stiffness or not s.damping else "dashpot") for s in self.description.springs]
        for part, kind in kinds:
            ends = [self.points[name] for name in part.points]
            self._add(kind, part.name, "", [p.at for p in ends], tuple(p.body for p in ends))
            for p in ends:
                if p.body == GROUND:
                    other = ends[0] if p is ends[1] else ends[1]
                    held = (GROUND, other.body)
                    self._add("anchor", "", GROUND, [p.at, other.at], held, grounded=True)

    def _touches(self) -> None:
        for contact in self.description.contacts:
            first, second = contact.bodies
            normal = unit_of(contact.normal) if contact.normal else np.array([0.0, 0.0, 1.0])
            self._add(
                "touch" if contact.closed else "lifted", contact.name, first, [contact.at],
                direction_bodies=(second,), directions=normal[None], grounded=GROUND in contact.bodies,
            )  # fmt: skip

    def _dots(self) -> None:
        taken = [p for p in self.sites.places.values()]
        held = {name for d in self.description.distances if d.fixed for name in d.points}
        for point in self.description.points:
            at = np.array(point.at, float)
            if point.name in held or not distinct(at, taken, 0.3 * self.size, self.normal):
                self._add("node", point.name, point.body, [at])  # only its name shows
            else:
                self._add("dot", point.name, point.body, [at])
