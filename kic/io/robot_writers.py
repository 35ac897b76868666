"""Writers of mechanisms as URDF and MJCF, for other packages.

A joint at which a loop is cut is written as a closing condition, if the format has it and the joint has no
laws, limits or motors and is not a coordinate. Such joints are cut first. Any other cut joint stays in the
tree and carries a share of its body's inertia; the loop fixes this share to the rest of the body.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Comment, Element, SubElement, indent, tostring

import numpy as np

from kic.description.description import closed_contacts, coupled_joints, forest, given_names, reference_values
from kic.description.joint_types import BALL_TYPES
from kic.description.motors import Motor
from kic.description.parts import INERTIA_RTOL, Body, Joint, combined_inertia, limits_by_row
from kic.description.validation import GROUND, part_of
from kic.errors import ModelError, counted, invalid
from kic.io.robot import NO_LIMIT, Names, clean_name, link_origin
from kic.io.toml import save as save_toml
from kic.io.toml import write_model
from kic.kernels import layout as lay
from kic.kinematics.tree import Step, frame_axes, steps
from kic.mechanism.assembly import LOOP_TYPES
from kic.mechanism.configuration import model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import entries, flag, instance, positive
from kic.numerics.arrays import ordinary
from kic.numerics.linalg import unit
from kic.numerics.polynomial_map import PolynomialMap

# laws of coordinates; `rest` acts by the stiffness
LAWS = ("stiffness", "damping", "armature", "friction")
# smallest mass and moment of inertia of MuJoCo (mjMINVAL)
MUJOCO_MIN = 1e-15
# coordinates of the joints of a body of MuJoCo
MUJOCO_DOF_MAX = 6
# relative excess of a moment over the sum of the others that is round-off, and has no comment
SUM_RTOL = 1e-13
# relative difference of ratios of a differential that is round-off
COUPLE_RTOL = 1e-13
# equality constraints as stiff as MuJoCo allows: critically damped, with a time constant of two steps (the
# minimum of `refsafe`) and the largest impedance; width, midpoint and power are defaults without effect
SOLREF_STEPS = 2.0
SOLIMP = (0.9999, 0.9999, 0.001, 0.5, 2.0)
# largest difference of a reference value from a polynomial beyond its bound (rad, length)
BELONGS_ATOL = 1e-9


@dataclass(frozen=True)
class UrdfText:
    """Text of a URDF file, and the loops that it cannot express. Made by `kic.to_urdf`.

    Attributes
    ----------
    text : str
        The file.
    loops : tuple of (str, str, str)
        Two frames and the type of the closing joint, as `from_urdf` takes them.
    gravity : tuple of float
        Acceleration of gravity, as `from_urdf` takes it.
    near : dict of str to float
        Values of joints that close the loops, as `from_urdf` takes them.
    """

    text: str
    loops: tuple[tuple[str, str, str], ...]
    gravity: tuple[float, float, float]
    near: dict[str, float]


def save(
    mechanism: Mechanism,
    path: str | os.PathLike[str],
    *,
    polynomials: PolynomialMap | Sequence[PolynomialMap] = (),
) -> None:
    """Write the mechanism to a file; its suffix selects the format. A TOML file reads back equal.

    Parameters
    ----------
    path : path
        File to write: ".toml", ".urdf", or ".xml" or ".mjcf" for MJCF. An existing file is replaced.
    polynomials : PolynomialMap or sequence of PolynomialMap
        Maps that replace loops, see `kic.to_mjcf` and `kic.to_urdf`.

    Raises
    ------
    InputError
        If the file has another suffix.
    ModelFileError
        If the file cannot be written; an existing file stays unchanged.
    ModelError
        If the format cannot express the mechanism; see `kic.to_urdf` and `kic.to_mjcf`. URDF has no
        loops.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> arm = kic.load("horn-two-link")
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "arm.toml"
    >>> arm.save(file)
    >>> kic.load(file) == arm
    True
    """
    is_path = isinstance(path, str | os.PathLike)
    suffix = os.path.splitext(os.fspath(path))[1].lower() if is_path else ""
    if (suffix == ".toml" or not is_path) and _maps(polynomials):
        raise invalid("polynomials", "must be left out for .toml", polynomials, "Model files keep the loops.")
    if suffix == ".toml" or not is_path:
        save_toml(mechanism, path)
    elif suffix == ".urdf":
        made = to_urdf(mechanism, polynomials=polynomials)
        if made.loops:
            message = (
                f"URDF cannot express loops: '{mechanism.name}' would be read as an open chain. Save it as "
                ".toml or .xml, or keep `loops` of to_urdf()."
            )
            raise ModelError(message, key="path", loops=made.loops)
        write_model(path, lambda: made.text)
    elif suffix in (".xml", ".mjcf"):
        write_model(path, lambda: to_mjcf(mechanism, polynomials=polynomials))
    else:
        raise invalid("path", "must end with .toml, .urdf, .xml or .mjcf", os.fspath(path))


def to_urdf(
    mechanism: Mechanism, *, strict: bool = True, polynomials: PolynomialMap | Sequence[PolynomialMap] = ()
) -> UrdfText:
    """Return a mechanism as the text of a URDF file, and its loops.

    In the reference configuration, links have world axes and their origins at their joints. Coordinates keep
    their values. A joint with several coordinates becomes several joints "hip_1", "hip_2" … . Springs and
    armature are attributes of <dynamics> that `from_urdf` reads and other packages may ignore. Ideal motors
    of one joint become transmissions, as do pairs of motors of two joints that form a differential or a
    four-bar transmission of ROS. Rows of bodies, such as "crank.x", refer to the joint of the link. The file
    omits `coordinates`, `actuators` and `closure_tolerance`.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to write; `Mechanism.save` writes it to a file.
    strict : bool
        True to raise an error for properties with an effect on results that the format cannot express.
        False leaves them out and names them in a comment.
    polynomials : PolynomialMap or sequence of PolynomialMap
        Maps of one motor and of degree 1, from `export`. Their joints have <mimic>, with the certified
        error bound in a comment, and their loops are left out. Limits must include the reference
        configuration.

    Returns
    -------
    UrdfText
        The text, its loops, and gravity. A comment lists omitted outputs, settings and reference points of
        bodies.

    Raises
    ------
    ModelError
        If there are ball joints, couplings of more than two joints, closed contacts or fixed distances, or if
        other properties would be lost; they are listed in `parts`.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> made = kic.to_urdf(m)
    >>> made.loops
    (('D_A', 'D_B', 'revolute'),)
    >>> again = kic.from_urdf(made.text, loops=made.loops, gravity=made.gravity, near=made.near)
    >>> bool(abs(again.at({"A": 1.2}).dynamics(wrt="A").I - m.at([1.2]).dynamics().I).max() < 1e-12)
    True
    """
    from scipy.spatial.transform import Rotation

    m = _checked(mechanism)
    plan, root = _Plan(m, LOOP_TYPES, _maps(polynomials)), Element("robot", name=m.name)
    _add(root, "link", name=GROUND)
    place, start, lost = {GROUND: np.zeros(3)}, dict[str, float](), plan.lost
    mimics, joint_names = (
        _mimics(m, plan),
        Names(_urdf_name(c) for joint in m.joints for c in joint.components),
    )
    for spring in m.springs:
        lost.add(spring.name)
    for branch in plan.branches:
        joint, above = branch.joint, branch.parent
        made = steps(joint, branch.backwards)
        origin = place[branch.child] = link_origin(joint, branch.body)
        at = origin - place[above]
        if joint.type in ("free", "fixed"):
            if joint.type == "free" and branch.backwards:
                raise _first_body(joint, above)
            kind, made = "floating" if joint.type == "free" else "fixed", []
            own = _urdf_joint(root, joint.name, kind, above, branch.child, at)
            if joint.type == "free":
                for key in ("stiffness", "value"):
                    if np.any(getattr(joint, key)):
                        lost.add(joint.name, key)
                if any(_limits(joint, c) for c in joint.components):
                    lost.add(joint.name, "limits")
                laws = _common_laws(joint, slice(6), lost)
                if laws:
                    _add(own, "dynamics", **laws)
        if any(s.kind == lay.BALL for s in made):
            message = f"Joint '{joint.name}' is {joint.type}, which URDF cannot express. Use kic.to_mjcf()."
            raise ModelError(message, joint=joint.name)
        for k, step in enumerate(made):
            below = branch.child if step is made[-1] else plan.names.new(f"{joint.name} link {k + 1}")
            if below != branch.child:
                _add(root, "link", name=below)
            component = joint.components[step.component]
            column = _urdf_name(component)
            start[column] = value = float(joint.value[step.component])  # type: ignore[index]
            if step.kind == lay.PRISMATIC:
                own = _urdf_joint(root, column, "prismatic", above, below, at - value * step.axis)
            else:
                R = Rotation.from_rotvec(-value * step.axis).as_matrix()
                own = _urdf_joint(root, column, "revolute", above, below, at, R)
            _add_urdf_laws(own, joint, step)
            if component in mimics:
                other, factor, offset = mimics[component]
                _add(own, "mimic", joint=_urdf_name(other), multiplier=factor, offset=offset)
                if component in plan.mapped:
                    _note(own, plan.mapped[component].about)
            above, at = below, np.zeros(3)
        _urdf_link(root, branch.child, plan.inertia(branch), origin)

    def add_frame(name: str, body: str, at: np.ndarray, axes: np.ndarray) -> None:
        """Add a massless link fixed to a body."""
        _add(root, "link", name=name)
        _urdf_joint(root, joint_names.new(f"{name} fixed"), "fixed", body, name, at - place[body], axes)

    every: tuple[Any, ...] = (*m.points, *m.frames)
    for frame in every:
        add_frame(frame.name, frame.body, *_place_of(frame))
    loops = []
    for loop in plan.loops:
        joint = loop.joint
        ends = plan.names.new(f"{joint.name}_A"), plan.names.new(f"{joint.name}_B")
        axes = np.eye(3)
        if joint.axis is not None and loop.type == joint.type:
            z = unit(joint.axis)
            x = None if joint.axis2 is None else unit(joint.axis2)
            axes = frame_axes(z) if x is None else np.stack([x, np.cross(z, x), z], axis=1)
        for end, body in zip(ends, loop.bodies, strict=True):
            add_frame(end, body, np.array(joint.at or (0.0, 0.0, 0.0)), axes)
        _note(root, f"loop: {ends[0]} {ends[1]} {loop.type}")
        loops.append((*ends, loop.type))
    _add_transmissions(root, m, lost)
    plan.finish(root, "URDF", strict)
    for twice, count in Counter(x.get("name") for x in root.findall("joint")).items():
        if count > 1:
            raise ModelError(f"Several joints are called '{twice}' in the file. Rename one.", name=twice)
    gravity = tuple(float(np.real(x)) for x in m.gravity)
    return UrdfText(_text(root), tuple(loops), gravity, start)  # type: ignore[arg-type]


def to_mjcf(
    mechanism: Mechanism,
    *,
    strict: bool = True,
    polynomials: PolynomialMap | Sequence[PolynomialMap] = (),
    timestep: float = 0.002,
) -> str:
    """Return a mechanism as the text of an MJCF file, with its loops as equality constraints.

    In the reference configuration, bodies have world axes and their origins at their joints. Coordinates keep
    their values, except that a free joint has the position of its body. A closing revolute joint becomes two
    points on its axis. A joint with several coordinates becomes several joints "hip.1", "hip.2" …, as does a
    free joint whose laws differ. A massless body between joints, which MuJoCo does not allow, is replaced by
    several joints in the body below it. Ideal motors become actuators. Rows of bodies, such as "crank.x",
    refer to the joint of the body. The file omits `coordinates`, `actuators` and `closure_tolerance`.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to write; `Mechanism.save` writes it to a file.
    strict : bool
        True to raise an error for properties with an effect on results that the format cannot express.
        False leaves them out and names them in a comment.
    polynomials : PolynomialMap or sequence of PolynomialMap
        Maps from `export`, of one motor up to degree 4, or of several of degree 1. Joints follow their motors
        by equality constraints, with the certified error bound in a comment. They replace fixed distances and
        loops, whose joints must all be motors or rows of the maps. Limits must include the reference
        configuration; outside them the error is not bounded.
    timestep : float
        Step of MuJoCo in the unit of time, by default MuJoCo's. Equality constraints, which are soft in
        MuJoCo, are as stiff as it allows at this step: critically damped, with a time constant of two steps.
        Springs and limits keep their stiffness. The error is of first order in the step, or of second order
        with the integrator RK4, which the file does not select.

    Returns
    -------
    str
        The text. A comment lists omitted outputs, settings and reference points of bodies. Another comment
        marks a body whose largest moment of inertia exceeds the sum of the others by the rounding that `Body`
        allows; the moment is lowered to this sum, as MuJoCo requires.

    Raises
    ------
    ModelError
        If MuJoCo does not allow the inertia of a body, with the `excess` of a moment over the sum of the
        others; if there are closed contacts or fixed distances, or other properties would be lost, listed in
        `parts`.

    Examples
    --------
    >>> kic.to_mjcf(kic.load("three-rrr")).splitlines()[0]
    '<mujoco model="three-rrr">'
    """
    m, timestep = _checked(mechanism), positive("timestep", timestep)
    ordinary("timestep", np.array(timestep))
    plan = _Plan(m, ("fixed", "spherical", "revolute"), _maps(polynomials))
    root = Element("mujoco", model=m.name)
    _add(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    _add(root, "option", gravity=m.gravity, timestep=timestep)
    made, origins = {GROUND: _add(root, "worldbody")}, {GROUND: np.zeros(3)}
    _add_sites(made[GROUND], m, GROUND, origins[GROUND])
    for chain in plan.chains():
        branch = chain[-1]
        name, parent = branch.child, chain[0].parent
        if name == "world":
            raise ModelError("Body 'world' has the name of the ground in MJCF. Rename it.", name=name)
        origin = origins[name] = link_origin(branch.joint, branch.body)
        own = made[name] = _add(made[parent], "body", name=name, pos=origin - origins[parent])
        _add_mjcf_inertia(own, name, plan.inertia(branch), origin)
        plan.merge(chain, origin)
        for one in chain:
            _add_mjcf_joints(own, one, origin, plan.lost)
        _add_sites(own, m, name, origin)
    relations = _mjcf_relations(m, plan, origins)
    if any(part.tag == "equality" and len(part) for part in relations):
        _add(_add(root, "default"), "equality", solref=(SOLREF_STEPS * timestep, 1), solimp=SOLIMP)
    root.extend(part for part in relations if len(part))
    plan.finish(root, "MJCF", strict)
    return _text(root)


def _checked(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism after a check that its numbers are real."""
    if not isinstance(mechanism, Mechanism):
        raise invalid("mechanism", "must be a Mechanism", mechanism)
    model_of(mechanism).require_real("to_urdf() and to_mjcf()", "Write the mechanism without it.")
    model_of(mechanism).require_none_held("A URDF or MJCF")
    return mechanism


def _maps(polynomials: Any) -> tuple[PolynomialMap, ...]:
    """Return one or several maps as a tuple."""
    return tuple(instance("polynomials", p, PolynomialMap) for p in entries(polynomials))


@dataclass(frozen=True)
class _Mapped:
    """Coordinate given as a polynomial in motor coordinates."""

    map: PolynomialMap
    place: int  # of its row
    start: dict[str, float]  # values in the reference configuration

    @property
    def box(self) -> str:
        """Text of the limits of the motors."""
        ranges = zip(self.map.variables, self.map.limits, self.map.units[len(self.map.rows) :], strict=True)
        return ", ".join(f"'{name}' from {a:g} to {b:g} {unit}" for name, (a, b), unit in ranges)

    @property
    def about(self) -> str:
        """Text of the certified error bound, including rounding of powers, rounded up."""
        p, k = self.map, self.place
        one = len(p.variables) == 1
        bound = p.powers(p.rows[k], self.start[p.variables[0]])[1] if one else p.error_bound[k]
        within = f"{1.01 * bound + 1e-14:.3g} {p.units[k]}"
        return f"'{p.rows[k]}' for {self.box}: within {within} of the closed loop"

    def _check(self, form: str, degree_max: int, motors_max: int = 1) -> None:
        p = self.map
        if p.degree > degree_max or len(p.variables) > motors_max:
            remedy = f"Export them with `degree={degree_max}`"
            remedy = "Use kic.to_mjcf()" if len(p.variables) > motors_max else remedy
            raise ModelError(
                f"`polynomials` for {form} must have at most {counted(motors_max, 'variable')} and degree "
                f"{degree_max}, got degree {p.degree} in {', '.join(p.variables)}. "
                f"{remedy}.",
                key="polynomials",
                name=p.rows[self.place],
            )

    def powers(self, form: str, degree_max: int) -> np.ndarray:
        """Return the coefficients of the row's change as a polynomial in the motor's change, lowest first."""
        self._check(form, degree_max)
        row = self.map.rows[self.place]
        found, _ = self.map.powers(row, self.start[self.map.variables[0]])
        found[0] -= self.start[row]
        return np.pad(found, (0, degree_max + 1 - len(found)))

    def ratios(self) -> tuple[dict[str, float], float]:
        """Return the factors of the motors' changes in the row's change, and its constant part."""
        self._check("fixed tendons", 1, len(self.map.variables))
        p, middle = self.map, self.map.limits.mean(axis=1)
        slopes = p.J(middle)[self.place]
        change = np.array([self.start[name] for name in p.variables]) - middle
        offset = float(p(middle)[self.place] + slopes @ change) - self.start[p.rows[self.place]]
        return dict(zip(p.variables, slopes.tolist(), strict=True)), offset


@dataclass(frozen=True)
class _Branch:
    """Joint of the written tree and the body below it; `child` is this body or a share of it."""

    joint: Joint
    parent: str
    child: str
    body: Body

    @property
    def backwards(self) -> bool:
        """True if the second body of the joint is above it."""
        return self.joint.bodies[0] == self.body.name


@dataclass(frozen=True)
class _Loop:
    """Condition that closes a loop: its type, and its two bodies in the file."""

    joint: Joint
    type: str
    bodies: tuple[str, str]


@dataclass
class _Lost:
    """Properties that a file cannot express, by part; an empty list means the whole part."""

    parts: dict[str, list[str]] = field(default_factory=dict)

    def add(self, part: str, *properties: str) -> None:
        """Record properties of a part as lost, or the whole part if none are given."""
        known = self.parts.setdefault(part, [])
        known += [one for one in properties if one not in known]


class _Plan:
    """Tree and loops of a file, with the names in use and the properties that are lost."""

    def __init__(self, m: Mechanism, closing: Iterable[str], maps: tuple[PolynomialMap, ...]) -> None:
        self.mechanism, self.lost, self.names = m, _Lost(), Names([GROUND, *model_of(m).parts])
        bodies = {body.name: body for body in m.bodies}
        driven = {part_of(c) for shaft in m._shafts.values() for c in shaft}
        self.start = start = {name: float(np.real(x)) for name, x in reference_values(m).items()}
        mapped = [
            (row, _Mapped(p, k, start))
            for p in maps
            for k, row in enumerate(p.rows)
            if row not in p.variables
        ]
        for row, count in Counter(row for row, _ in mapped).items():
            if count > 1:
                message = (
                    f"`polynomials` must have each joint once, got '{row}' {count} times. Leave one out."
                )
                raise ModelError(message, key="polynomials", name=row)
        self.mapped = dict(mapped)
        followers = {part_of(c) for c in self.mapped}
        motors = [name for p in maps for name in p.variables]
        wanted = {part_of(c) for c in (*(given_names(m, "coordinates") or ()), *motors)}
        stay = {
            j.name for j in m.joints if j.type not in closing or j.name in driven | wanted or _has_laws(j)
        }
        first = coupled_joints(m) | followers | {part_of(name) for name in motors}
        kept = forest(sorted(m.joints, key=lambda j: (j.name not in first, j.name not in stay, j.dof)))
        self.branches = [
            _Branch(joint, parent, child, bodies[child])
            for joint, parent, child in model_of(m).tree.walk(m, kept)
        ]
        self.loops = []
        for joint in (j for j in m.joints if j.name not in kept):
            one, two = joint.bodies
            if joint.name in stay:
                above, below = (one, two) if two != GROUND else (two, one)
                share = self.names.new(f"{joint.name} end")
                self.branches.append(_Branch(joint, above, share, bodies[below]))
                self.loops.append(_Loop(joint, "fixed", (share, below)))
            else:
                self.loops.append(_Loop(joint, joint.type, (one, two)))
        self.shares = Counter(branch.body.name for branch in self.branches)
        self.merged: set[str] = set()
        """Bodies without inertia whose joints are merged into the body below."""
        self.left_out: list[str] = []
        """Merged bodies and their frames that a reader does not restore."""
        self._replace_loops(motors)

    def _replace_loops(self, motors: Sequence[str]) -> None:
        """Leave out loops whose joints are all motors or given by polynomials.

        Raise an error for polynomials of other rows, and for fixed distances and contacts that remain.
        """
        m, above = self.mechanism, {branch.child: branch for branch in self.branches}
        joints = {c for j in m.joints if j.type not in BALL_TYPES for c in j.components}
        coupled = {c for terms in m._terms.values() for c, _ in terms}
        for name in (*motors, *self.mapped):
            if name not in joints or name in {*self.mapped} & (coupled | {*motors}):
                message = (
                    "`polynomials` must map joint coordinates to others, which are neither coupled nor "
                    f"variables of another polynomial, got '{name}'. Export others."
                )
                raise ModelError(message, key="polynomials", name=name)

        def above_of(body: str) -> set[str]:
            found: set[str] = set()
            while body != GROUND:
                found |= {*above[body].joint.components}
                body = above[body].parent
            return found

        def is_replaced(name: str, bodies: Sequence[str]) -> bool:
            loop = above_of(bodies[0]) ^ above_of(bodies[1])
            left = sorted(loop - {*motors, *self.mapped})
            if left and loop & {*self.mapped}:
                raise ModelError(
                    f"`polynomials` must have all joints of the loop that '{name}' closes, and "
                    f"{', '.join(left)} {'are' if len(left) > 1 else 'is'} missing. Name them in `of`.",
                    key="polynomials",
                    names=tuple(left),
                )
            return bool(loop & {*self.mapped})

        self.loops = [loop for loop in self.loops if not is_replaced(loop.joint.name, loop.bodies)]
        fixed: list[Any] = [*closed_contacts(m)]
        ends = {d.name: [m[point].body for point in d.points] for d in m.distances}
        fixed += [d for d in m.distances if d.fixed and not is_replaced(d.name, ends[d.name])]
        fixed += [a for a in m.angles if a.fixed and not is_replaced(a.name, a.bodies)]
        for part in fixed:
            raise ModelError(
                f"{m._label(part.name)} is a constraint that the format cannot express. Open the contact, or "
                "replace a fixed distance or angle by a body with joints, or by `polynomials`.",
                name=part.name,
            )
        for row, one in self.mapped.items():
            x = np.array([one.start[name] for name in one.map.variables])
            lower, upper = one.map.limits.T
            if not ((lower <= x) & (x <= upper)).all():
                raise ModelError(
                    f"`polynomials` must hold in the reference configuration of '{m.name}', from which the "
                    f"file starts, got limits that exclude it: {one.box}. Extend `limits`.",
                    key="polynomials",
                    name=row,
                )
            gap = abs(float(one.map(x)[one.place]) - one.start[row])
            if gap > one.map.error_bound[one.place] + BELONGS_ATOL:
                raise ModelError(
                    f"`polynomials` must be those of '{m.name}', and '{row}' in the reference configuration "
                    f"differs by {gap:.2g}. Export them from this mechanism.",
                    key="polynomials",
                    name=row,
                )
        written = {c for branch in self.branches for c in branch.joint.components}
        self.mapped = {row: one for row, one in self.mapped.items() if row in written}

    def chains(self) -> list[list[_Branch]]:
        """Return the joints of each MJCF body, with those of the bodies without inertia above it.

        MuJoCo does not allow bodies without inertia. It allows several joints in a body: at most six
        coordinates, and only slides after a ball.
        """
        m, below = self.mechanism, Counter(branch.parent for branch in self.branches)
        parts: tuple[Any, ...] = (*m.points, *m.frames)
        # the reader gives each body a frame
        used = {part.body for part in parts if part.name != f"{part.body}_frame"}
        used |= {body for loop in self.loops for body in loop.bodies}
        above: dict[str, list[_Branch]] = {}
        made = []
        for branch in self.branches:
            body, chain = branch.body, [*above.pop(branch.parent, []), branch]
            turns_after_ball = branch.joint.type not in ("fixed", "prismatic") and any(
                one.joint.type in BALL_TYPES for one in chain[:-1]
            )
            if turns_after_ball or sum(one.joint.dof for one in chain) > MUJOCO_DOF_MAX:
                made.append(chain[:-1])
                chain = chain[-1:]
            is_bare = body.mass == 0 and not np.any(body.inertia or 0.0) and self.shares[body.name] == 1
            if is_bare and branch.child not in used and below[branch.child] == 1:
                above[branch.child] = chain
            else:
                made.append(chain)
        return made + list(above.values())

    def merge(self, chain: Sequence[_Branch], origin: np.ndarray) -> None:
        """Record the merged bodies of a chain, and those that a reader does not restore."""
        for one, two in pairwise(chain):
            self.merged.add(one.child)
            names = [two.joint.name if step.kind == lay.BALL else two.joint.components[step.component]
                     for step in steps(two.joint, two.backwards)]  # fmt: skip
            is_named = one.child == clean_name(f"{chain[-1].child} before {''.join(names[:1])}")
            self.left_out += [] if is_named else [one.child]
            for frame in (frame for frame in self.mechanism.frames if frame.body == one.child):
                at, axes = _place_of(frame)
                is_placed = np.allclose(at, origin) and np.allclose(axes, np.eye(3))
                self.left_out += [] if is_named and is_placed else [frame.name]

    def inertia(self, branch: _Branch) -> tuple[float, np.ndarray, np.ndarray] | None:
        """Return mass, centre of mass and inertia of a body with its point masses, or of its share.

        Return None if they are not known.
        """
        body = branch.body
        missing = [key for key in ("mass", "inertia") if getattr(body, key) is None]
        if missing and body.mass != 0:
            self.lost.add(body.name, f"dynamics (its {missing[0]} is not given)")
            return None
        J = np.zeros((3, 3)) if body.inertia is None else np.array(body.inertia)
        parts = [(body.mass or 0.0, np.array(body.com or (0.0, 0.0, 0.0)), J)]
        lumps = [p for p in self.mechanism.points if p.body == body.name and p.mass]
        parts += [(p.mass, np.array(p.at), np.zeros((3, 3))) for p in lumps]
        mass, com, J = combined_inertia(parts)
        return mass / self.shares[body.name], com, J / self.shares[body.name]

    def finish(self, root: Element, kind: str, strict: bool) -> None:
        """Raise an error for the properties that are lost, or name them in a comment."""
        m, lost = self.mechanism, self.lost
        for load in (*(force.name for force in m.forces), *(moment.name for moment in m.moments)):
            lost.add(load)
        for joint in m.joints:
            if joint.swing is not None:
                lost.add(joint.name, "swing")
        for distance in (*m.distances, *m.angles):
            for key in ("limits", "effort_limits", "rate_limits"):
                if getattr(distance, key) is not None:
                    lost.add(distance.name, key)
        for joint in m.joints:
            for key in ("effort_limits", "rate_limits"):
                if self._loses(joint, key, kind):
                    lost.add(joint.name, key)
        named = [
            " of ".join([*filter(None, [", ".join(keys)]), m._describe(part)])
            for part, keys in lost.parts.items()
        ]
        if flag("strict", strict) and named:
            raise ModelError(
                f"{kind} cannot express: {'; '.join(named)}. Remove this, or leave it out by "
                f"`to_{kind.lower()}(strict=False)`.",
                key="mechanism",
                parts={part: tuple(keys) for part, keys in lost.parts.items()},
            )
        outputs: tuple[Any, ...] = (*m.distances, *m.angles, *m.contacts, *m.centers)
        quiet = [m._describe(name) for name in (*(part.name for part in outputs), *self.left_out)]
        quiet += self._settings()
        if named or quiet:
            _note(root, f"not written: {'; '.join([*named, *quiet])}")
            root.insert(0, root[-1])
            del root[-1]

    def _loses(self, joint: Joint, key: str, kind: str) -> bool:
        """Return True if a format cannot express limits of efforts or rates of a joint."""
        pairs = limits_by_row(joint, key).values()
        if kind == "URDF":
            return (joint.type in ("free", "fixed") and bool(pairs)) or any(-a != b for a, b in pairs)
        return bool(pairs) and (key == "rate_limits" or joint.type in ("free", "spherical"))

    def _settings(self) -> list[str]:
        """Return the settings and the reference points of bodies that a file omits."""
        m = self.mechanism
        names: dict[str, Sequence[str]] = {
            key: given_names(m, key) or () for key in ("coordinates", "actuators")
        }
        names["reference points (now at the joints) of bodies"] = [
            branch.child
            for branch in self.branches
            if branch.child == branch.body.name and branch.child not in self.merged
            if branch.body.reference is not None
            if np.any(link_origin(branch.joint, branch.body) != np.array(branch.body.reference))
        ]
        found = [f"{key} {', '.join(some)}" for key, some in names.items() if some]
        return found + [f"closure_tolerance {m.closure_tolerance:g}"] * bool(m.closure_tolerance)


def _has_laws(joint: Joint) -> bool:
    """Return True if a joint has springs, dampers, armature, friction or limits."""
    rows = limits_by_row(joint, "effort_limits") | limits_by_row(joint, "rate_limits")
    limits = *joint.ranges.values(), *rows.values()
    return any(np.any(getattr(joint, key)) for key in LAWS) or any(np.isfinite(x).any() for x in limits)


def _limits(joint: Joint, component: str) -> tuple[float, float] | None:
    """Return the limits of a coordinate, or None if both are infinite."""
    pair = joint.ranges.get(component)
    return pair if pair is not None and np.isfinite(pair).any() else None


def _common_laws(joint: Joint, among: slice, lost: _Lost) -> dict[str, float]:
    """Return the laws that are equal for all given coordinates; record others as lost."""
    found: dict[str, float] = {}
    for key in LAWS[1:]:
        values = getattr(joint, key)[among]
        if min(values) == max(values):
            found |= {key: float(values[0])} if values[0] else {}
        else:
            lost.add(joint.name, key)
    return found


def _first_body(joint: Joint, name: str) -> ModelError:
    """Return the error for a joint that can only be written from its first body."""
    return ModelError(f"Joint '{joint.name}' must have '{name}' as its first body.", joint=joint.name)


def _is_ideal(motor: Motor) -> bool:
    """Return True for a motor without rotor, losses and circuit."""
    return not (motor.inertia or motor.damping or motor.friction or motor.electrical)


def _place_of(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return origin and axes (as columns) of a frame, or of a point with the axes of the world."""
    if hasattr(frame, "origin"):
        return np.array(frame.origin), np.array(frame.axes).T
    return np.array(frame.at), np.eye(3)


def _add(parent: Element, tag: str, **attributes: Any) -> Element:
    """Add an element; write numbers with all digits, and omit attributes that are None."""
    return SubElement(
        parent,
        tag,
        {
            key: value if isinstance(value, str) else " ".join(repr(float(x)) for x in np.ravel(value))
            for key, value in attributes.items()
            if value is not None
        },
    )


def _note(parent: Element, text: str) -> None:
    """Add a comment, in which two adjacent hyphens are not allowed."""
    parent.append(Comment(f" {re.sub('-(?=-)', '- ', text)} "))


def _text(root: Element) -> str:
    """Return an element as indented text."""
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def _urdf_name(component: str) -> str:
    """Return the name of the URDF joint of a coordinate."""
    return component.replace(".", "_")


def _urdf_link(
    root: Element, name: str, inertia: tuple[float, np.ndarray, np.ndarray] | None, origin: np.ndarray
) -> None:
    """Add a link with its inertia."""
    link = _add(root, "link", name=name)
    if inertia is not None:
        mass, com, J = inertia
        own = _add(link, "inertial")
        _add(own, "origin", xyz=com - origin)
        _add(own, "mass", value=mass)
        _add(own, "inertia", **{f"i{'xyz'[i]}{'xyz'[j]}": J[i, j] for i in range(3) for j in range(i, 3)})


def _urdf_joint(
    root: Element, name: str, kind: str, parent: str, child: str, at: np.ndarray, R: Any = None
) -> Element:
    """Add a joint at a position and a rotation."""
    own = _add(root, "joint", name=name, type=kind)
    _add(own, "parent", link=parent)
    _add(own, "child", link=child)
    _add(own, "origin", xyz=at, rpy=_rpy(np.eye(3) if R is None else R))
    return own


def _rpy(R: np.ndarray) -> tuple[float, float, float]:
    """Return roll, pitch and yaw that reproduce a rotation to full precision near gimbal lock."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    # of the rotation without its yaw, which makes up for an error of the yaw
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return float(roll), float(pitch), float(yaw)


def _add_transmissions(root: Element, m: Mechanism, lost: _Lost) -> None:
    """Add motors of one joint, and pairs of motors of two joints, as transmissions."""
    left = dict[str, dict[str, float]]()
    for motor in m.motors:
        if _is_ideal(motor) and not {*m._shafts[motor.name]} & {x.name for x in (*m.distances, *m.angles)}:
            left[motor.name] = dict(zip(m._shafts[motor.name], motor.ratios or (), strict=True))
        else:
            lost.add(motor.name)
    for name in [name for name, turns in left.items() if len(turns) == 2]:
        pairs = [_couple_of(left, name, other) for other in left] if name in left else []
        # a differential first, whose other motor has no other partner
        couple = min(filter(None, pairs), key=lambda one: one[0], default=None)
        if couple is None:
            continue
        kind, actuators, joints = couple
        own = _add(root, "transmission", name=" ".join(actuators))
        _add(own, "type").text = f"transmission_interface/{kind}Transmission"
        for tag, parts in (("actuator", actuators), ("joint", joints)):
            for k, (part, reduction) in enumerate(parts.items()):
                end = _add(own, tag, name=part if tag == "actuator" else _urdf_name(part))
                _add(end, "role").text = f"{tag}{k + 1}"
                _add(end, "mechanicalReduction").text = repr(reduction)
        for actuator in actuators:
            del left[actuator]
    for name, turns in left.items():
        if len(turns) > 1:
            lost.add(name)
            continue
        ((joint, ratio),) = turns.items()
        own = _add(root, "transmission", name=name)
        _add(own, "type").text = "transmission_interface/SimpleTransmission"
        _add(own, "joint", name=_urdf_name(joint))
        _add(_add(own, "actuator", name=f"{name} actuator"), "mechanicalReduction").text = repr(ratio)


def _couple_of(
    motors: dict[str, dict[str, float]], name: str, other: str
) -> tuple[str, dict[str, float], dict[str, float]] | None:
    """Return a motor of two joints and another one as a transmission of ROS, or None if they do not form one.

    The result has its type, and the reductions of actuators and joints in order.
    """
    turns, more = motors[name], motors[other]
    (x, p), (y, q) = turns.items()
    if (
        other != name
        and {*turns} == {*more}
        and np.isclose(p * more[y], -q * more[x], rtol=COUPLE_RTOL, atol=0)
    ):
        return "Differential", {name: 1.0, other: more[x] / p}, {x: p, y: q}
    if len(more) == 1 and {*more} <= {*turns}:
        (x, p), (y, q) = sorted(turns.items(), key=lambda pair: pair[0] not in more)
        return "FourBarLinkage", {other: 1.0, name: p}, {x: more[x], y: q / p}
    return None


def _add_urdf_laws(own: Element, joint: Joint, step: Step) -> None:
    """Add axis, springs, damping, friction, armature and limits of a coordinate."""
    _add(own, "axis", xyz=step.axis)
    laws = _laws(joint, step.component, spring_stiffness="stiffness", spring_reference="rest",
                 damping="damping", friction="friction", armature="armature")  # fmt: skip
    if laws:
        _add(own, "dynamics", **laws)
    component = joint.components[step.component]
    limits = _limits(joint, component)
    keys = (("effort", "effort_limits"), ("velocity", "rate_limits"))
    pairs = {word: limits_by_row(joint, key).get(component) for word, key in keys}
    most = {word: pair[1] for word, pair in pairs.items() if pair}
    if limits is None and own.get("type") == "revolute":
        own.set("type", "continuous")
        if most:
            _add(own, "limit", **{word: most.get(word, NO_LIMIT) for word, _ in keys})
    else:
        lower, upper = np.clip(limits or (-np.inf, np.inf), -NO_LIMIT, NO_LIMIT)
        _add(own, "limit", lower=lower, upper=upper, **{word: most.get(word, NO_LIMIT) for word, _ in keys})


def _laws(joint: Joint, k: int, **keys: str) -> dict[str, float]:
    """Return the nonzero laws of a coordinate, by the words of a format."""
    numbers = {word: float(getattr(joint, key)[k]) for word, key in keys.items()}
    return {word: x for word, x in numbers.items() if x}


def _mimics(m: Mechanism, plan: _Plan) -> dict[str, tuple[str, float, float]]:
    """Return the leader, factor and offset of each joint that follows another."""
    values = plan.start
    made: dict[str, tuple[str, float, float]] = {}
    for name, terms in m._terms.items():
        pairs = [pair for pair in (terms, terms[::-1]) if pair[0][0] not in made]
        if len(terms) != 2 or not pairs:
            message = (
                f"Coupling '{name}' relates several joints, which URDF cannot express. Use kic.to_mjcf()."
            )
            raise ModelError(message, name=name)
        # default coordinates stay independent
        pairs.sort(key=lambda pair: pair[0][0] in m.coordinates)
        (one, r), (two, s) = pairs[0]
        factor = float(-s / r)
        made[one] = (two, factor, float(values[one] - factor * values[two]))
    for row, mapped in plan.mapped.items():
        motor = mapped.map.variables[0]
        offset, factor = (float(x) for x in mapped.powers("URDF", 1))
        made[row] = (motor, factor, float(values[row]) + offset - factor * float(values[motor]))
    return made


def _add_mjcf_inertia(
    own: Element, name: str, inertia: tuple[float, np.ndarray, np.ndarray] | None, origin: np.ndarray
) -> None:
    """Add the inertia of a body by its principal moments, which MuJoCo does not recompute."""
    from scipy.spatial.transform import Rotation

    if inertia is None or not inertia[0] > 0:
        raise ModelError(
            f"Body '{name}' moves but lacks mass or inertia, and MuJoCo requires both. Give them.",
            name=name,
        )
    mass, com, J = inertia
    (low, middle, high), axes = np.linalg.eigh(J)
    principal, excess = (float(low), float(middle), float(high)), float(high - (low + middle))
    is_beyond = excess > INERTIA_RTOL * high * (1 + SUM_RTOL)
    if not min(mass, low) >= MUJOCO_MIN or is_beyond:
        found = f", of which the largest exceeds the sum of the others by {excess:.3g}" if is_beyond else ""
        message = (
            f"Body '{name}' has the mass {mass:.3g} and the principal moments {low:.3g}, {middle:.3g}, "
            f"{high:.3g}{found}, and MuJoCo allows no such body. All must be at least {MUJOCO_MIN:g}, if "
            "need be in other units, and no moment may exceed the sum of the others."
        )
        raise ModelError(message, name=name, mass=mass, principal=principal, excess=excess)
    if excess > SUM_RTOL * high:
        _note(own, f"rounded data: the largest moment is lowered by {excess:.2g} to the sum of the others")
    high = min(high, low + middle)  # MuJoCo compares them exactly
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    quat = Rotation.from_matrix(axes).as_quat(scalar_first=True)
    _add(own, "inertial", pos=com - origin, quat=quat, mass=mass, diaginertia=(low, middle, high))


def _add_mjcf_joints(own: Element, branch: _Branch, origin: np.ndarray, lost: _Lost) -> None:
    """Add a joint to a body; a free joint with differing laws becomes three slides and a ball."""
    joint = branch.joint
    made = steps(joint, branch.backwards)
    words = {"damping": "damping", "armature": "armature", "friction": "frictionloss"}
    alike = all(len(set(getattr(joint, key))) < 2 for key in LAWS)
    plain = alike and not any(joint.stiffness) and not joint.ranges  # type: ignore[arg-type]
    if joint.type == "free" and branch.parent == GROUND and not branch.backwards and plain:
        # the attributes of <freejoint> do not include damping and armature
        laws = _common_laws(joint, slice(6), lost)
        _add(own, "joint", name=joint.name, type="free", **{words[key]: x for key, x in laws.items()})
        return
    at = None if joint.at is None else joint.at - origin
    place = {} if at is None or not at.any() else {"pos": at}
    balls = [step.component for step in made if step.kind == lay.BALL]
    if branch.backwards and balls:
        raise _first_body(joint, branch.parent)
    keys = {word: key for key, word in words.items()} | {"stiffness": "stiffness", "springref": "rest"}
    for step in made:
        if step.kind != lay.BALL:
            k, kind = step.component, "slide" if step.kind == lay.PRISMATIC else "hinge"
            laws = {"ref": joint.value[k], **_laws(joint, k, **keys)}  # type: ignore[index]
            limits = _limits(joint, joint.components[k])
            efforts = limits_by_row(joint, "effort_limits").get(joint.components[k])
            if efforts is not None:
                efforts = tuple(np.clip(efforts, -NO_LIMIT, NO_LIMIT))
            ranges = {"range": limits, "actuatorfrcrange": efforts}
            _add(own, "joint", name=joint.components[k], type=kind, axis=step.axis, **place, **laws, **ranges)
    if balls:
        name = joint.components[balls[0]] if joint.type == "free" else joint.name
        laws = _common_laws(joint, slice(balls[0], balls[0] + 3), lost)
        _add(own, "joint", name=name, type="ball", **place, **{words[key]: x for key, x in laws.items()})


def _add_sites(own: Element, m: Mechanism, body: str, origin: np.ndarray) -> None:
    """Add points and frames of a body as sites."""
    from scipy.spatial.transform import Rotation

    every: tuple[Any, ...] = (*m.points, *m.frames)
    for part in every:
        if part.body == body:
            at, axes = _place_of(part)
            quat = Rotation.from_matrix(axes).as_quat(scalar_first=True)
            _add(own, "site", name=part.name, pos=at - origin, quat=quat)


def _mjcf_relations(
    m: Mechanism, plan: _Plan, origins: dict[str, np.ndarray]
) -> tuple[Element, Element, Element]:
    """Return elements with tendons (springs), equalities (loops and couplings), and actuators.

    Couplings of more than two joints, and motors of several joints, have a fixed tendon each.
    """
    tendons, equalities, actuators = Element("tendon"), Element("equality"), Element("actuator")
    names = Names([*model_of(m).parts])
    for loop in plan.loops:
        one, two = (body if body != GROUND else "world" for body in loop.bodies)
        pair, joint = {"body1": one, "body2": two}, loop.joint
        at = np.array(joint.at or (0.0, 0.0, 0.0)) - origins[loop.bodies[0]]
        if loop.type == "fixed":
            _add(equalities, "weld", name=joint.name, **pair)
            continue
        _add(equalities, "connect", name=joint.name, **pair, anchor=at)
        if loop.type == "revolute":
            other = at + model_of(m).length * unit(joint.axis)
            _add(equalities, "connect", name=names.new(f"{joint.name} axis"), **pair, anchor=other)

    def add_tendon(name: str, joints: Iterable[tuple[str, float]]) -> None:
        fixed = _add(tendons, "fixed", name=name)
        for joint, ratio in joints:
            _add(fixed, "joint", joint=joint, coef=ratio)

    for name, terms in m._terms.items():  # of changes from the reference values
        if len(terms) == 2:
            (first, r), (second, s) = terms
            ratio = (0, -s / r, 0, 0, 0)
            _add(equalities, "joint", name=name, joint1=first, joint2=second, polycoef=ratio)
        else:
            add_tendon(name, terms)
            _add(equalities, "tendon", name=name, tendon1=name, polycoef=np.zeros(5))
    for row, mapped in plan.mapped.items():
        _note(equalities, mapped.about)
        name = names.new(f"{row} of {' '.join(mapped.map.variables)}")
        if len(mapped.map.variables) == 1:
            pair = {"joint1": row, "joint2": mapped.map.variables[0]}
            _add(equalities, "joint", name=name, **pair, polycoef=mapped.powers("MJCF", 4))
        else:
            slopes, offset = mapped.ratios()
            add_tendon(name, [(row, 1.0), *((motor, -slope) for motor, slope in slopes.items())])
            _add(equalities, "tendon", name=name, tendon1=name, polycoef=(offset, 0, 0, 0, 0))
    for spring in m.springs:
        laws = {"stiffness": spring.stiffness, "damping": spring.damping, "springlength": [spring.rest] * 2}
        own = _add(tendons, "spatial", name=spring.name, **laws)
        for point in spring.points:
            _add(own, "site", site=point)
    hinges = {c for joint in m.joints if joint.type not in BALL_TYPES for c in joint.components}
    for motor in m.motors:
        shaft, ratios = m._shafts[motor.name], motor.ratios or ()
        if not _is_ideal(motor) or not hinges.issuperset(shaft):
            plan.lost.add(motor.name)
        elif len(shaft) == 1:
            _add(actuators, "motor", name=motor.name, joint=shaft[0], gear=ratios)
        else:
            add_tendon(motor.name, zip(shaft, ratios, strict=True))
            _add(actuators, "motor", name=motor.name, tendon=motor.name)
    return tendons, equalities, actuators
