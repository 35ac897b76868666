"""Writers of mechanisms as URDF and MJCF, for other packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Comment, Element, SubElement, indent, tostring

import numpy as np

from kic.description.parts import Body, Joint, as_matrix, combined_inertia
from kic.description.validation import GROUND
from kic.errors import ModelError, invalid
from kic.kernels.layout import BALL, PRISMATIC
from kic.kinematics.tree import Step, frame_axes, steps, unit
from kic.mechanism import Mechanism

# parts without a counterpart in a format, which are named in a comment
_URDF_LEFT = ("distances", "forces", "moments", "springs", "contacts", "motors")
_MJCF_LEFT = ("distances", "forces", "moments", "contacts", "motors")


@dataclass(frozen=True)
class UrdfText:
    """Text of a URDF file, and the loops that it cannot express.

    Attributes
    ----------
    text : str
        The file.
    loops : tuple of (str, str, str)
        Two frames and the type of the closing joint, as `from_urdf` takes them.
    gravity : tuple of float
        Acceleration of gravity, as `from_urdf` takes it.
    start : dict of str to float
        Values of joints that close the loops, as `from_urdf` takes them.
    """

    text: str
    loops: tuple[tuple[str, str, str], ...]
    gravity: tuple[float, float, float]
    start: dict[str, float]


def to_urdf(mechanism: Mechanism) -> UrdfText:
    """Return a mechanism as the text of a URDF file, and its loops.

    Links have the axes of the world in the reference configuration, and coordinates keep their values. The
    format has neither ball joints nor general couplings.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to write.

    Returns
    -------
    UrdfText
        The text, its loops, and gravity. Parts that the format cannot express are named in a comment.

    Raises
    ------
    ModelError
        For ball joints, couplings of more than two joints, closed contacts and fixed distances.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> made = kic.to_urdf(m)
    >>> made.loops
    (('D_A', 'D_B', 'revolute'),)
    >>> again = kic.from_urdf(made.text, made.loops, gravity=made.gravity, start=made.start)
    >>> bool(abs(again.at({"A": 1.2}).dynamics("A").I - m.at([1.2]).dynamics().I).max() < 1e-12)
    True
    """
    from scipy.spatial.transform import Rotation

    m = _checked(mechanism)
    root = Element("robot", name=m.name)
    _note_left_out(root, m, _URDF_LEFT)
    _add(root, "link", name=GROUND)
    place, start = {GROUND: np.zeros(3)}, {}
    mimics, bodies = _mimics(m), {body.name: body for body in m.bodies}
    for joint, parent, child, backwards in _walk(m):
        made = steps(joint, backwards)
        origin = place[child] = _origin(joint, bodies[child])
        above, at = parent, origin - place[parent]
        if joint.type in ("free", "fixed"):
            made = []
            _urdf_joint(root, joint.name, "floating" if joint.type == "free" else "fixed", above, child, at)
        if any(s.kind == BALL for s in made):
            raise ModelError(
                f"Joint '{joint.name}' is {joint.type}, which URDF cannot express. Use to_mjcf().",
                joint=joint.name,
            )
        for k, step in enumerate(made):
            below = child if step is made[-1] else f"{joint.name} link {k + 1}"
            if below != child:
                _add(root, "link", name=below)
            name = joint.components[step.component].replace(".", "_")
            start[name] = value = float(joint.value[step.component])  # type: ignore[index]
            if step.kind == PRISMATIC:
                own = _urdf_joint(root, name, "prismatic", above, below, at - value * step.axis)
            else:
                R = Rotation.from_rotvec(-value * step.axis).as_matrix()
                own = _urdf_joint(root, name, "revolute", above, below, at, R)
            _add_urdf_laws(own, joint, step)
            if name in mimics:
                other, factor, offset = mimics[name]
                _add(own, "mimic", joint=other, multiplier=factor, offset=offset)
            above, at = below, np.zeros(3)
        _urdf_link(root, m, bodies[child], origin)
    loops = []
    every: tuple[Any, ...] = (*m.points, *m.frames)
    for frame in every:
        at, axes = _place_of(frame)
        _urdf_frame(root, frame.name, frame.body, at - place[frame.body], axes)
    for joint in m._model.tree.cuts:
        ends = (f"{joint.name}_A", f"{joint.name}_B")
        axes = np.eye(3)
        if joint.axis is not None:
            z = unit(joint.axis)
            x = None if joint.axis2 is None else unit(joint.axis2)
            axes = frame_axes(z) if x is None else np.stack([x, np.cross(z, x), z], axis=1)
        for end, body in zip(ends, joint.bodies, strict=True):
            _urdf_frame(root, end, body, np.array(joint.at or (0.0, 0.0, 0.0)) - place[body], axes)
        _note(root, f"loop: {ends[0]} {ends[1]} {joint.type}")
        loops.append((*ends, joint.type))
    gravity = tuple(float(np.real(x)) for x in m.gravity)
    return UrdfText(_text(root), tuple(loops), gravity, start)  # type: ignore[arg-type]


def to_mjcf(mechanism: Mechanism) -> str:
    """Return a mechanism as the text of an MJCF file, with its loops as equality constraints.

    Bodies have the axes of the world in the reference configuration, and coordinates keep their values. A
    closing revolute joint becomes two points on its axis.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to write. Every moving body needs mass and inertia.

    Returns
    -------
    str
        The text. Parts that the format cannot express are named in a comment.

    Raises
    ------
    ModelError
        For bodies whose inertia MuJoCo does not allow, closing joints without a counterpart, closed contacts
        and fixed distances.

    Examples
    --------
    >>> kic.to_mjcf(kic.load("three-rrr")).splitlines()[0]
    '<mujoco model="three-rrr">'
    """
    m = _checked(mechanism)
    root = Element("mujoco", model=m.name)
    _note_left_out(root, m, _MJCF_LEFT)
    _add(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    _add(root, "option", gravity=m.gravity)
    bodies = {body.name: body for body in m.bodies}
    made, origins = {GROUND: _add(root, "worldbody")}, {GROUND: np.zeros(3)}
    _add_sites(made[GROUND], m, GROUND, origins[GROUND])
    for joint, parent, child, backwards in _walk(m):
        origin = origins[child] = _origin(joint, bodies[child])
        own = made[child] = _add(made[parent], "body", name=child, pos=origin - origins[parent])
        _add_mjcf_inertia(own, m, bodies[child], origin)
        _add_mjcf_joints(own, joint, backwards, parent)
        _add_sites(own, m, child, origin)
    root.extend(part for part in _mjcf_relations(m, origins) if len(part))
    return _text(root)


def _checked(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism in real numbers."""
    if not isinstance(mechanism, Mechanism):
        raise invalid("mechanism", "must be a Mechanism", mechanism)
    mechanism._model.require_real("to_urdf() and to_mjcf()", "Write the mechanism without it.")
    fixed: tuple[Any, ...] = (*mechanism.closed_contacts, *(d for d in mechanism.distances if d.fixed))
    for part in fixed:
        raise ModelError(
            f"{mechanism.describe(part.name).capitalize()} is a constraint that the format cannot express. "
            "Open the contact, or replace a fixed distance by a body with ball joints.",
            name=part.name,
        )
    return mechanism


def _walk(m: Mechanism) -> Iterator[tuple[Joint, str, str, bool]]:
    """Iterate over the joints of the tree with parent and child, parents first."""
    tree = m._model.tree
    kept = frozenset(joint.name for joint in m.joints) - {joint.name for joint in tree.cuts}
    for joint, parent, child in tree._walk(m, kept):
        yield joint, parent, child, tree.backwards[joint.name]


def _origin(joint: Joint, child: Body) -> np.ndarray:
    """Return the origin of a link: the point of its joint, or that of the body."""
    return np.array(joint.at or child.reference or (0.0, 0.0, 0.0), dtype=float)


def _place_of(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return origin and axes (as columns) of a frame, or of a point with the axes of the world."""
    if hasattr(frame, "origin"):
        return np.array(frame.origin), np.array(frame.axes).T
    return np.array(frame.at), np.eye(3)


def _add(parent: Element, tag: str, **attributes: Any) -> Element:
    """Add an element with texts, and with numbers that have all digits; None is left out."""
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
    """Add a comment, in which two hyphens are not allowed."""
    parent.append(Comment(f" {text.replace('--', '- -')} "))


def _note_left_out(root: Element, m: Mechanism, kinds: Iterable[str]) -> None:
    """Add a comment on parts without a counterpart."""
    left = [f"{part.name} ({kind})" for kind in kinds for part in getattr(m, kind)]
    if left:
        _note(root, f"not written: {', '.join(left)}")


def _text(root: Element) -> str:
    """Return an element as indented text."""
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def _inertia(m: Mechanism, body: Body) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Return mass, centre of mass and inertia of a body with its point masses; None without mass."""
    if body.mass is None:
        return None
    parts = [(float(body.mass), np.array(body.com or (0.0, 0.0, 0.0)), as_matrix(body.inertia or (0.0,) * 6))]  # type: ignore[arg-type]
    parts += [(p.mass, np.array(p.at), np.zeros((3, 3))) for p in m.points if p.body == body.name and p.mass]
    return combined_inertia(parts)


def _urdf_link(root: Element, m: Mechanism, body: Body, origin: np.ndarray) -> None:
    """Add a link with its inertia."""
    link, made = _add(root, "link", name=body.name), _inertia(m, body)
    if made is not None:
        mass, com, J = made
        own = _add(link, "inertial")
        _add(own, "origin", xyz=com - origin)
        _add(own, "mass", value=mass)
        _add(own, "inertia", **{f"i{'xyz'[i]}{'xyz'[j]}": J[i, j] for i in range(3) for j in range(i, 3)})


def _urdf_frame(root: Element, name: str, body: str, at: np.ndarray, axes: np.ndarray) -> None:
    """Add a massless link fixed to a body."""
    _add(root, "link", name=name)
    _urdf_joint(root, f"{name} fixed", "fixed", body, name, at, axes)


def _urdf_joint(
    root: Element, name: str, kind: str, parent: str, child: str, at: np.ndarray, R: Any = None
) -> Element:
    """Add a joint at a position and a rotation."""
    from scipy.spatial.transform import Rotation

    own = _add(root, "joint", name=name, type=kind)
    _add(own, "parent", link=parent)
    _add(own, "child", link=child)
    turn = Rotation.from_matrix(np.eye(3) if R is None else R)
    _add(own, "origin", xyz=at, rpy=turn.as_euler("xyz", suppress_warnings=True))
    return own


def _add_urdf_laws(own: Element, joint: Joint, step: Step) -> None:
    """Add axis, springs, damping, friction, armature and limits of a coordinate."""
    _add(own, "axis", xyz=step.axis)
    laws = _laws(joint, step.component, spring_stiffness="stiffness", spring_reference="rest",
                 damping="damping", friction="friction", armature="armature")  # fmt: skip
    if laws:
        _add(own, "dynamics", **laws)
    limits = _finite_limits(joint)
    if limits is None and own.get("type") == "revolute":
        own.set("type", "continuous")
    else:
        lower, upper = limits or (-1e9, 1e9)
        _add(own, "limit", lower=lower, upper=upper, effort=1e9, velocity=1e9)


def _laws(joint: Joint, k: int, **keys: str) -> dict[str, float]:
    """Return the numbers of a coordinate that are not zero, by the words of a format."""
    numbers = {word: float(getattr(joint, key)[k]) for word, key in keys.items()}
    return {word: x for word, x in numbers.items() if x}


def _finite_limits(joint: Joint) -> tuple[float, float] | None:
    """Return the limits of a joint with one coordinate, if both are finite."""
    limits: Any = joint.limits if joint.dof == 1 else None
    return limits if limits is not None and np.isfinite(limits).all() else None


def _mimics(m: Mechanism) -> dict[str, tuple[str, float, float]]:
    """Return for each joint that follows another: its name, factor and offset."""
    values = m.reference_values
    made: dict[str, tuple[str, float, float]] = {}
    for name, terms in m.terms.items():
        pairs = [pair for pair in (terms, terms[::-1]) if pair[0][0] not in made]
        if len(terms) != 2 or not pairs:
            raise ModelError(
                f"Coupling '{name}' relates several joints, which URDF cannot express. Use to_mjcf().",
                name=name,
            )
        # default coordinates stay independent
        pairs.sort(key=lambda pair: pair[0][0] in m.coordinate_names)
        (one, r), (two, s) = pairs[0]
        factor = float(-s / r)
        made[one] = (two, factor, float(values[one] - factor * values[two]))
    return made


def _add_mjcf_inertia(own: Element, m: Mechanism, body: Body, origin: np.ndarray) -> None:
    """Add the inertia of a body."""
    made = _inertia(m, body)
    if made is None or not made[0] > 0:
        raise ModelError(
            f"Body '{body.name}' has no mass, and MuJoCo allows no massless body that moves. Give it one.",
            name=body.name,
        )
    mass, com, J = made
    low, middle, high = np.linalg.eigvalsh(J)
    if not low > 0 or not low + middle >= high:
        raise ModelError(
            f"Body '{body.name}' has the principal moments {low:.3g}, {middle:.3g}, {high:.3g}, and MuJoCo "
            "allows no such body. All must be positive, and none may exceed the sum of the others.",
            name=body.name,
        )
    six = J[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    _add(own, "inertial", pos=com - origin, mass=mass, fullinertia=six)


def _add_mjcf_joints(own: Element, joint: Joint, backwards: bool, parent: str) -> None:
    """Add the joints of a body."""
    made = steps(joint, backwards)
    words = {"damping": "damping", "armature": "armature", "frictionloss": "friction"}
    if joint.type == "free" and parent == GROUND and not backwards:
        # the attributes of <freejoint> do not include damping and armature
        _add(own, "joint", name=joint.name, type="free", **_laws(joint, 3, **words))
        return
    balls = [step.component for step in made if step.kind == BALL]
    if joint.type == "free" or (backwards and balls):
        first = GROUND if joint.type == "free" else parent
        raise ModelError(f"Joint '{joint.name}' must have '{first}' as its first body.", joint=joint.name)
    if balls:
        _add(own, "joint", name=joint.name, type="ball", **_laws(joint, balls[0], **words))
    words |= {"stiffness": "stiffness", "springref": "rest"}
    for step in made:
        if step.kind != BALL:
            k, kind = step.component, "slide" if step.kind == PRISMATIC else "hinge"
            laws = {"ref": joint.value[k], **_laws(joint, k, **words)}  # type: ignore[index]
            limits = _finite_limits(joint)
            _add(own, "joint", name=joint.components[k], type=kind, axis=step.axis, **laws, range=limits)


def _add_sites(own: Element, m: Mechanism, body: str, origin: np.ndarray) -> None:
    """Add points and frames of a body as sites."""
    from scipy.spatial.transform import Rotation

    every: tuple[Any, ...] = (*m.points, *m.frames)
    for part in every:
        if part.body == body:
            at, axes = _place_of(part)
            quat = Rotation.from_matrix(axes).as_quat(scalar_first=True)
            _add(own, "site", name=part.name, pos=at - origin, quat=quat)


def _mjcf_relations(m: Mechanism, origins: dict[str, np.ndarray]) -> tuple[Element, Element]:
    """Return springs between points as straight tendons; loops and couplings as equality constraints.

    Couplings of more than two joints have a fixed tendon each.
    """
    tendons, equalities = Element("tendon"), Element("equality")
    for joint in m._model.tree.cuts:
        one, two = (body if body != GROUND else "world" for body in joint.bodies)
        pair = {"body1": one, "body2": two}
        at = np.array(joint.at or (0.0, 0.0, 0.0)) - origins[joint.bodies[0]]
        if joint.type == "fixed":
            _add(equalities, "weld", name=joint.name, **pair)
        elif joint.type in ("spherical", "revolute"):
            _add(equalities, "connect", name=joint.name, **pair, anchor=at)
            if joint.type == "revolute":
                other = at + m._model.length * unit(joint.axis)
                _add(equalities, "connect", name=f"{joint.name} axis", **pair, anchor=other)
        else:
            raise ModelError(
                f"Joint '{joint.name}' is {joint.type} and closes a loop, which MJCF cannot express. Name "
                "other coordinates, so that another joint closes it.",
                joint=joint.name,
            )
    for name, terms in m.terms.items():  # of changes from the reference values
        if len(terms) == 2:
            (first, r), (second, s) = terms
            ratio = (0, -s / r, 0, 0, 0)
            _add(equalities, "joint", name=name, joint1=first, joint2=second, polycoef=ratio)
        else:
            fixed = _add(tendons, "fixed", name=name)
            for first, r in terms:
                _add(fixed, "joint", joint=first, coef=r)
            _add(equalities, "tendon", name=name, tendon1=name, polycoef=np.zeros(5))
    for spring in m.springs:
        laws = {"stiffness": spring.stiffness, "damping": spring.damping, "springlength": [spring.rest] * 2}
        own = _add(tendons, "spatial", name=spring.name, **laws)
        for point in spring.points:
            _add(own, "site", site=point)
    return tendons, equalities
