"""Writers of mechanisms as URDF and MJCF, for other packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

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
    """Return a mechanism as the text of a URDF file, with its loops beside it.

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
    lines = [f"<robot name={quoteattr(m.name)}>", *_left_out(m, _URDF_LEFT)]
    place = {GROUND: np.zeros(3)}
    lines.append(f"  <link name={quoteattr(GROUND)}/>")
    start_values: dict[str, float] = {}
    mimics, bodies = _mimics(m), {body.name: body for body in m.bodies}
    for joint, parent, child, backwards in _walk(m):
        made = steps(joint, backwards)
        origin = _origin(joint, bodies[child])
        place[child] = origin
        if any(s.kind == BALL for s in made) and joint.type != "free":
            raise ModelError(
                f"Joint '{joint.name}' is {joint.type}, which URDF cannot express. Use to_mjcf().",
                joint=joint.name,
            )
        above = parent
        if joint.type in ("free", "fixed"):
            kind = "floating" if joint.type == "free" else "fixed"
            lines += _urdf_joint(joint.name, kind, above, child, origin - place[parent], np.eye(3))
        for k, step in enumerate(made if joint.type != "free" else ()):
            last = k == len(made) - 1
            below = child if last else f"{joint.name} link {k + 1}"
            if not last:
                lines.append(f"  <link name={quoteattr(below)}/>")
            value = joint.value[step.component]  # type: ignore[index]
            shift, R = np.zeros(3), np.eye(3)
            if step.kind == PRISMATIC:
                shift = -value * step.axis
            else:
                R = Rotation.from_rotvec(-value * step.axis).as_matrix()
            start = origin - place[parent] if k == 0 else np.zeros(3)
            name = joint.components[step.component].replace(".", "_")
            start_values[name] = float(value)
            lines += _urdf_joint(
                name, "prismatic" if step.kind == PRISMATIC else "revolute", above, below, start + shift, R,
                step, joint, mimics.get(name),
            )  # fmt: skip
            above = below
        lines += _urdf_link(m, bodies[child], origin)
    loops = []
    every: tuple[Any, ...] = (*m.points, *m.frames)
    for frame in every:
        at, axes = _place_of(frame)
        lines += _urdf_frame(frame.name, frame.body, at - place[frame.body], axes)
    for joint in m._model.tree.cuts:
        ends = (f"{joint.name}_A", f"{joint.name}_B")
        at = np.array(joint.at or (0.0, 0.0, 0.0))
        axes = np.eye(3)
        if joint.axis is not None:
            axes = frame_axes(unit(joint.axis))
            if joint.axis2 is not None:
                x = unit(joint.axis2)
                axes = np.stack([x, np.cross(unit(joint.axis), x), unit(joint.axis)], axis=1)
        for end, body in zip(ends, joint.bodies, strict=True):
            lines += _urdf_frame(end, body, at - place[body], axes)
        lines.append(f"  <!-- loop: {escape(ends[0])} {escape(ends[1])} {joint.type} -->")
        loops.append((*ends, joint.type))
    lines.append("</robot>\n")
    gravity = tuple(float(np.real(x)) for x in m.gravity)
    return UrdfText("\n".join(lines), tuple(loops), gravity, start_values)  # type: ignore[arg-type]


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
    below: dict[str, list[tuple[Joint, str, bool]]] = {}
    for joint, parent, child, backwards in _walk(m):
        below.setdefault(parent, []).append((joint, child, backwards))
    bodies = {body.name: body for body in m.bodies}
    lines = [
        f"<mujoco model={quoteattr(m.name)}>",
        *_left_out(m, _MJCF_LEFT),
        '  <compiler angle="radian" autolimits="true" inertiafromgeom="false"/>',
        f'  <option gravity="{_numbers(m.gravity)}"/>',
        "  <worldbody>",
        *_sites(m, GROUND, np.zeros(3), "    "),
    ]

    def add(parent: str, origin: np.ndarray, indent: str) -> None:
        for joint, child, backwards in below.get(parent, ()):
            own = _origin(joint, bodies[child])
            lines.append(f'{indent}<body name={quoteattr(child)} pos="{_numbers(own - origin)}">')
            lines.append(f"{indent}  {_mjcf_inertial(m, bodies[child], own)}")
            lines.extend(f"{indent}  {text}" for text in _mjcf_joints(joint, backwards, own, parent))
            lines.extend(_sites(m, child, own, f"{indent}  "))
            add(child, own, f"{indent}  ")
            lines.append(f"{indent}</body>")

    add(GROUND, np.zeros(3), "    ")
    lines += ["  </worldbody>", *_mjcf_tendons(m), *_mjcf_equalities(m), "</mujoco>\n"]
    return "\n".join(lines)


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


def _left_out(m: Mechanism, kinds: Iterable[str]) -> list[str]:
    """Return a comment on parts without a counterpart."""
    left = [f"{part.name} ({kind})" for kind in kinds for part in getattr(m, kind)]
    words = escape(", ".join(left)).replace("--", "- -")
    return [f"  <!-- not written: {words} -->"] if left else []


def _numbers(values: Iterable[float]) -> str:
    """Return numbers with all digits."""
    return " ".join(repr(float(x)) for x in values)


def _inertia(m: Mechanism, body: Body) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Return mass, centre of mass and inertia of a body with its point masses; None without mass."""
    if body.mass is None:
        return None
    parts = [(float(body.mass), np.array(body.com or (0.0, 0.0, 0.0)), as_matrix(body.inertia or (0.0,) * 6))]  # type: ignore[arg-type]
    parts += [(p.mass, np.array(p.at), np.zeros((3, 3))) for p in m.points if p.body == body.name and p.mass]
    return combined_inertia(parts)


def _euler(R: np.ndarray) -> np.ndarray:
    """Return roll, pitch and yaw of a rotation."""
    import warnings

    from scipy.spatial.transform import Rotation

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # at a pitch of 90° roll is chosen
        return Rotation.from_matrix(R).as_euler("xyz")


def _urdf_link(m: Mechanism, body: Body, origin: np.ndarray) -> list[str]:
    """Return a link with its inertia."""
    made = _inertia(m, body)
    if made is None:
        return [f"  <link name={quoteattr(body.name)}/>"]
    mass, com, J = made
    moments = " ".join(f'i{"xyz"[i]}{"xyz"[j]}="{float(J[i, j])!r}"' for i in range(3) for j in range(i, 3))
    return [
        f"  <link name={quoteattr(body.name)}>",
        f'    <inertial><origin xyz="{_numbers(com - origin)}"/><mass value="{mass!r}"/>',
        f"    <inertia {moments}/></inertial>",
        "  </link>",
    ]


def _urdf_frame(name: str, body: str, at: np.ndarray, axes: np.ndarray) -> list[str]:
    """Return a massless link fixed to a body."""
    return [f"  <link name={quoteattr(name)}/>", *_urdf_joint(f"{name} fixed", "fixed", body, name, at, axes)]


def _urdf_joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    at: np.ndarray,
    R: np.ndarray,
    step: Step | None = None,
    joint: Joint | None = None,
    mimic: tuple[str, float, float] | None = None,
) -> list[str]:
    """Return a joint."""
    lines = []
    if step is not None and joint is not None:
        k = step.component
        lines.append(f'<axis xyz="{_numbers(step.axis)}"/>')
        keys: tuple[tuple[str, str], ...] = tuple((x, x) for x in ("damping", "friction", "armature"))
        keys += (("spring_stiffness", "stiffness"), ("spring_reference", "rest"))
        numbers = {word: getattr(joint, key)[k] for word, key in keys}
        if any(numbers.values()):
            words = " ".join(f'{word}="{float(x)!r}"' for word, x in numbers.items() if x)
            lines.append(f"<dynamics {words}/>")
        limits: Any = joint.limits if joint.dof == 1 else None
        if limits is not None and np.isfinite(limits).all():
            lines.append(f'<limit lower="{limits[0]!r}" upper="{limits[1]!r}" effort="1e9" velocity="1e9"/>')
        elif kind == "revolute":
            kind = "continuous"
        else:
            lines.append('<limit lower="-1e9" upper="1e9" effort="1e9" velocity="1e9"/>')
    if mimic is not None:
        other, factor, offset = mimic
        lines.append(f'<mimic joint={quoteattr(other)} multiplier="{factor!r}" offset="{offset!r}"/>')
    return [
        f'  <joint name={quoteattr(name)} type="{kind}">',
        f"    <parent link={quoteattr(parent)}/><child link={quoteattr(child)}/>",
        f'    <origin xyz="{_numbers(at)}" rpy="{_numbers(_euler(R))}"/>',
        *(f"    {line}" for line in lines),
        "  </joint>",
    ]


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


def _mjcf_inertial(m: Mechanism, body: Body, origin: np.ndarray) -> str:
    """Return the inertia of a body."""
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
    six = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
    return f'<inertial pos="{_numbers(com - origin)}" mass="{mass!r}" fullinertia="{_numbers(six)}"/>'


def _mjcf_joints(joint: Joint, backwards: bool, origin: np.ndarray, parent: str) -> list[str]:
    """Return the joints of a body."""
    if joint.type == "free" and parent == GROUND and not backwards:
        # the attributes of <freejoint> do not include damping and armature
        return [
            f'<joint name={quoteattr(joint.name)} type="free" {_mjcf_numbers(joint, 3, False)}/>'.replace(
                " />", "/>"
            )
        ]
    made = steps(joint, backwards)
    if joint.type == "free" or (backwards and any(s.kind == BALL for s in made)):
        raise ModelError(
            f"Joint '{joint.name}' must connect ground with a body, in this order.", joint=joint.name
        )
    lines, balls = [], 0
    for step in made:
        if step.kind == BALL:
            balls += 1
            if balls == 1:
                numbers = _mjcf_numbers(joint, step.component, False)
                lines.append(f'<joint name={quoteattr(joint.name)} type="ball" {numbers}/>')
            continue
        name = joint.components[step.component] if joint.dof > 1 else joint.name
        kind = "slide" if step.kind == PRISMATIC else "hinge"
        lines.append(
            f'<joint name={quoteattr(name)} type="{kind}" axis="{_numbers(step.axis)}" '
            f'ref="{float(joint.value[step.component])!r}" {_mjcf_numbers(joint, step.component, True)}/>'  # type: ignore[index]
        )
    return lines


def _mjcf_numbers(joint: Joint, k: int, single: bool) -> str:
    """Return spring, damping, armature, friction and limits of a coordinate."""
    keys = [("damping", "damping"), ("armature", "armature"), ("frictionloss", "friction")]
    if single:
        keys += [("stiffness", "stiffness"), ("springref", "rest")]
    values = [(word, float(getattr(joint, key)[k])) for word, key in keys]
    made = [f'{word}="{x!r}"' for word, x in values if x]
    limits: Any = joint.limits if single and joint.dof == 1 else None
    if limits is not None and np.isfinite(limits).all():
        made.append(f'range="{_numbers(limits)}"')
    return " ".join(made)


def _sites(m: Mechanism, body: str, origin: np.ndarray, indent: str) -> list[str]:
    """Return points and frames of a body as sites."""
    from scipy.spatial.transform import Rotation

    lines = []
    every: tuple[Any, ...] = (*m.points, *m.frames)
    for part in every:
        if part.body == body:
            at, axes = _place_of(part)
            x, y, z, w = Rotation.from_matrix(axes).as_quat()
            lines.append(
                f'{indent}<site name={quoteattr(part.name)} pos="{_numbers(at - origin)}" '
                f'quat="{_numbers((w, x, y, z))}"/>'
            )
    return lines


def _mjcf_tendons(m: Mechanism) -> list[str]:
    """Return springs between points as straight tendons, and couplings of several joints as fixed ones."""
    lines = []
    for name, terms in m.terms.items():
        if len(terms) == 2:
            continue
        joints = "".join(f'<joint joint={quoteattr(j)} coef="{float(r)!r}"/>' for j, r in terms)
        lines.append(f"    <fixed name={quoteattr(name)}>{joints}</fixed>")
    for spring in m.springs:
        sites = "".join(f"<site site={quoteattr(name)}/>" for name in spring.points)
        lines.append(
            f'    <spatial name={quoteattr(spring.name)} stiffness="{spring.stiffness!r}" '
            f'damping="{spring.damping!r}" springlength="{spring.rest!r} {spring.rest!r}">{sites}</spatial>'
        )
    return ["  <tendon>", *lines, "  </tendon>"] if lines else []


def _mjcf_equalities(m: Mechanism) -> list[str]:
    """Return loops and couplings as equality constraints."""
    lines = []
    origins = {
        child: _origin(joint, next(b for b in m.bodies if b.name == child)) for joint, _, child, _ in _walk(m)
    }
    origins[GROUND] = np.zeros(3)
    for joint in m._model.tree.cuts:
        bodies = [body if body != GROUND else "world" for body in joint.bodies]
        pair = f"body1={quoteattr(bodies[0])} body2={quoteattr(bodies[1])}"
        at = np.array(joint.at or (0.0, 0.0, 0.0)) - origins[joint.bodies[0]]
        if joint.type == "fixed":
            lines.append(f"    <weld name={quoteattr(joint.name)} {pair}/>")
        elif joint.type in ("spherical", "revolute"):
            lines.append(f'    <connect name={quoteattr(joint.name)} {pair} anchor="{_numbers(at)}"/>')
            if joint.type == "revolute":
                other = at + m._model.length * unit(joint.axis)
                name = quoteattr(f"{joint.name} axis")
                lines.append(f'    <connect name={name} {pair} anchor="{_numbers(other)}"/>')
        else:
            raise ModelError(
                f"Joint '{joint.name}' is {joint.type} and closes a loop, which MJCF cannot express. Name "
                "other coordinates, so that another joint closes it.",
                joint=joint.name,
            )
    for name, terms in m.terms.items():  # of changes from the reference values
        own, ends = quoteattr(name), [quoteattr(joint) for joint, _ in terms]
        if len(terms) == 2:
            factor = float(-terms[1][1] / terms[0][1])
            lines.append(
                f'    <joint name={own} joint1={ends[0]} joint2={ends[1]} polycoef="0 {factor!r} 0 0 0"/>'
            )
        else:
            lines.append(f'    <tendon name={own} tendon1={own} polycoef="0 0 0 0 0"/>')
    return ["  <equality>", *lines, "  </equality>"] if lines else []
