"""URDF files: robots as trees of links, with loops given separately."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from kic.errors import ModelFileError, short_repr
from kic.io import robot as rb
from kic.io.elements import URDF
from kic.io.loop_files import CLOSING_ELEMENTS, add_elements, add_loops
from kic.io.robot import WORLD, Robot, RobotJoint
from kic.io.sdf import add_joints
from kic.io.xml import Element, read_root
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import flag

_TYPES = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
    "spherical": "spherical",
}


def from_urdf(
    model: str | os.PathLike[str],
    *,
    loops: Iterable[Any] | str | os.PathLike[str] = (),
    floating_base: bool = False,
    gravity: Any = None,
    coordinates: Iterable[str] | None = None,
    near: Mapping[str, float] | None = None,
    spins: str = "held",
    strict: bool = False,
) -> Mechanism:
    """Read a robot from a URDF file, and close its loops.

    Parameters
    ----------
    model : str or path
        Path of the file, or its text, which starts with "<".
    loops : sequence of (str, str) or (str, str, str), or path
        Frames that coincide where loops close, because URDF describes trees only. A frame is a link, or the
        link below a joint. The third word is the type of the closing joint: "spherical" (the default),
        "revolute" about the z axis of the first frame, "fixed", "cylindrical", "prismatic", "universal" (and
        about x) or "planar" (along z and x). Its coordinates are 0 where both frames coincide. An asterisk
        in both names stands for the same text, as in ``("closing_*_1", "closing_*_2", "revolute")`` for files
        of onshape-to-robot. Or the path of a side file in YAML: `robot.yaml` of toolbox-parallel-robots, with
        frames that coincide, or `loop_closures.yaml` of sw2robot, with hinges of links. Elements <loop_joint>
        of Isaac Sim, <loop> and <constraint> of URDF+, <constraint> as proposed for ROS, and SDF joints in
        <gazebo> close loops without `loops`.
    floating_base : bool
        True to let the root link move freely on a free joint called "root_joint".
    gravity : (3,) float, optional
        Acceleration of gravity, which URDF does not contain; −9.81 m/s² along z by default.
    coordinates : sequence of str, optional
        Joints of the default coordinates. By default all joints of an open chain. In a closed one, the joints
        of transmissions, with the best conditioned others if these joints cannot drive it.
    near : dict of str to float, optional
        Joint values from which the loops are closed; no other start is then used. By default, starts are
        tried until the loops close within limits: the zero of the file, the zero within the limits, their
        middle, and samples if the loops are open at the zero. In a file without loops, `near` has no effect
        and causes a remark.
    spins : {"held", "free"}
        "held" applies `Mechanism.hold_spins`: a rod between two ball joints does not spin about its axis,
        unless `coordinates` has a coordinate of these joints. "free" keeps spins as degrees of freedom.
    strict : bool
        True to raise an error if something that affects motion is ignored.

    Returns
    -------
    Mechanism
        In a closed configuration. Coordinates have the values of the file. `Mechanism.remarks` lists what was
        merged, renamed, replaced and ignored.

    Raises
    ------
    ModelFileError
        If the file cannot be read or contradicts itself, or the loops do not close; the error carries `path`
        and `line`.

    Examples
    --------
    >>> text = '''<robot name="pendulum"><link name="base"/>
    ... <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    ... <inertia ixx="0.2" iyy="0.2" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
    ... <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/>
    ... <axis xyz="0 1 0"/></joint></robot>'''
    >>> kic.from_urdf(text).at([0.0]).dynamics().I.round(6).tolist()
    [[0.7]]
    """
    root = read_root(model, "URDF")
    if root.tag != "robot":
        root.fail("the root of a URDF file must be <robot>.")
    robot = Robot(root.source, root.get("name", "robot"), strict=flag("strict", strict), gravity=gravity)
    closing = list(root.all(*CLOSING_ELEMENTS))
    root.children = [element for element in root.children if element.tag not in CLOSING_ELEMENTS]
    hinges = _gazebo_joints(root, robot)
    URDF.check(root, robot)
    for element in root.all("link"):
        robot.add(_link(element))
    for element in root.all("joint"):
        robot.add(_joint(element, robot))
    _mimics(root, robot)
    _transmissions(root, robot)
    _roots(robot, flag("floating_base", floating_base))
    add_elements(robot, closing, placement)
    add_joints(robot, hinges)
    add_loops(robot, loops)
    remedy = "A free body needs `from_urdf` with `floating_base=True`."
    return rb.mechanism_of(robot, coordinates, near, remedy, spins)


def _gazebo_joints(root: Element, robot: Robot) -> list[Element]:
    """Return the SDF joints of a file, and remove them from its elements."""
    found = []
    for element in root.all("gazebo"):
        joints = list(element.all("joint"))
        element.children = [child for child in element.children if child.tag != "joint"]
        if "reference" not in element.attributes:
            found += joints
            continue
        for joint in joints:  # they would be parts of a link, which has none
            text = f"<joint> {short_repr(joint.get('name'))} of a <gazebo> with `reference` is ignored"
            text += ", which leaves its loop open. Remove the attribute `reference`."
            robot.remark_lost(joint.line, text)
    return found


def placement(element: Element | None) -> np.ndarray:
    """Return the frame (4, 4) of an <origin>."""
    if element is None:
        return np.eye(4)
    if "quat_xyzw" in element.attributes:  # an extension of urdfdom
        axes = rb.quaternion_axes(element, element.vector("quat_xyzw", count=4))
        return rb.transform(element.vector("xyz", "0 0 0"), axes)
    return rb.transform(element.vector("xyz", "0 0 0"), rb.rpy(element.vector("rpy", "0 0 0")))


def _link(element: Element) -> rb.Link:
    """Return a link; without <inertial> it is massless."""
    link = rb.Link(element.get("name"), element.line)
    own = element.find("inertial")
    if own is None:
        return link
    mass, moments = own.find("mass"), own.find("inertia")
    if mass is None:
        own.fail("<mass> is missing.")
    link.mass = mass.number("value")
    if link.mass < 0:
        mass.fail(f"`value` must not be negative, got {link.mass:g}.")
    keys = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    numbers = dict.fromkeys(keys, 0.0)
    if moments is not None:
        numbers = {key: moments.number(key, "0" if key in ("ixy", "ixz", "iyz") else None) for key in keys}
    rb.set_inertia(link, placement(own.find("origin")), numbers)
    return link


def _joint(element: Element, robot: Robot) -> RobotJoint:
    """Return the joint of an element <joint>."""
    name, kind = element.get("name"), element.get("type")
    if kind not in _TYPES:
        element.fail(f"joint '{name}': `type` must be one of {', '.join(_TYPES)}, got {short_repr(kind)}.")
    parent, child = element.find("parent"), element.find("child")
    if parent is None or child is None:
        element.fail(f"joint '{name}' must have <parent> and <child>.")
    joint = RobotJoint(
        name,
        _TYPES[kind],
        parent.get("link"),
        child.get("link"),
        placement(element.find("origin")),
        element.line,
    )
    own = element.find("axis")
    axis = np.array((1.0, 0.0, 0.0) if own is None else own.vector("xyz", "1 0 0"))
    size = float(np.linalg.norm(axis))
    if kind in ("revolute", "continuous", "prismatic", "planar"):
        if not size > 1e-12:
            (own or element).fail(f"joint '{name}': the axis is zero. Give a direction.")
        axis = axis / size
        joint.axis = tuple(axis.tolist())
    if kind == "planar":
        # translations along two axes of the plane; x and y if its normal is z
        first = np.array([1.0, 0.0, 0.0]) - axis[0] * axis
        if np.linalg.norm(first) < 1e-6:
            first = np.array([0.0, 1.0, 0.0])
        first /= np.linalg.norm(first)
        joint.axis, joint.axis2 = tuple(first.tolist()), tuple(np.cross(axis, first).tolist())
    dynamics, limit = element.find("dynamics"), element.find("limit")
    if dynamics is not None:
        rest = dynamics.number("spring_reference", "0")
        if len(joint.rest) == 1:
            joint.rest[:] = rest
        words = {key: key for key in ("damping", "friction", "armature")} | {"stiffness": "spring_stiffness"}
        for key, word in words.items():
            law = dynamics.number(word, "0")
            if law < 0:
                robot.remark_lost(dynamics.line, f"joint '{name}': negative {key} is ignored.")
            getattr(joint, key)[:] = max(law, 0.0)
        is_ball = joint.type in ("free", "spherical")
        if joint.stiffness.any() and (is_ball or (rest and len(joint.rest) > 1)):
            word = "spring_stiffness" if is_ball else "spring_reference"
            robot.remark_lost(dynamics.line, f"`{word}` of the {kind} joint '{name}' is ignored.")
    if limit is not None:
        pair = rb.bounds(*(limit.number(key, "0", finite=False) for key in ("lower", "upper")))
        if kind in ("revolute", "prismatic"):
            joint.lower, joint.upper = pair
        elif kind != "fixed" and any(np.isfinite(x) and x != 0.0 for x in pair):
            robot.remark_lost(limit.line, f"limits of the {kind} joint '{name}' are ignored.")
        robot.read_limits(limit, joint)
    safety = element.find("safety_controller")
    if safety is not None:
        robot.remark(safety.line, f"the safety controller of joint '{name}' is ignored.")
    return joint


def _mimics(root: Element, robot: Robot) -> None:
    """Add the couplings of mimic joints."""
    for element in root.all("joint"):
        mimic = element.find("mimic")
        if mimic is None:
            continue
        name, other = element.get("name"), mimic.get("joint")
        factor, offset = mimic.number("multiplier", "1"), mimic.number("offset", "0")
        if other not in robot.joints:
            mimic.fail(f"joint '{name}' mimics '{other}', which does not exist.")
        if other == name:
            mimic.fail(f"joint '{name}' mimics itself.")
        joints = (robot.joints[name], robot.joints[other])
        if joints[0].type == "fixed":
            robot.remark(mimic.line, f"joint '{name}' is fixed; it does not mimic '{other}'.")
            continue
        if joints[1].type == "fixed":
            factor = 0.0
        elif any(joint.type not in ("revolute", "prismatic") for joint in joints):
            mimic.fail(f"joint '{name}' mimics '{other}'; both must be revolute or prismatic.")
        if not factor:
            joints[0].pose = joints[0].pose @ rb.joint_motion(joints[0], offset)
            joints[0].type = "fixed"
            robot.remark(
                mimic.line, f"joint '{name}' mimics one that does not move, and is fixed at {offset:g}."
            )
            continue
        robot.couplings.append(
            rb.RobotCoupling(f"{name} mimics {other}", (name, other), (1.0, -factor), offset, mimic.line)
        )


def _transmissions(root: Element, robot: Robot) -> None:
    """Add the actuators of transmissions: shaft motion is the reduction times the joint motion."""
    found = [(one, False) for one in root.all("transmission")]
    found += [(one, True) for control in root.all("ros2_control") for one in control.all("transmission")]
    for element, is_ros2 in found:
        name = element.attributes.get("name", "transmission")
        kind = element.word("plugin") or element.word("type") or element.attributes.get("type", "")
        couple = _COUPLES.get(kind.rpartition("/")[2])
        own = element.find("joint")
        try:
            reductions = _reductions(element)
        except ModelFileError:  # other readers leave transmissions out, and templates have words there
            robot.remark_lost(
                element.line, f"transmission '{name}' is ignored: its reduction is not a number."
            )
            continue
        joint = robot.joints.get(own.get("name", "")) if own is not None else None
        if couple is not None:
            _couple(element, name, couple, robot, is_ros2)
        elif joint is None or len(list(element.all("joint"))) > 1:
            robot.remark_lost(element.line, f"transmission '{name}' is ignored.")
        elif joint.type not in ("revolute", "prismatic"):
            robot.remark_lost(element.line, f"transmission '{name}' of a {joint.type} joint is ignored.")
        elif is_ros2 and any(x != 1.0 for one in element.all("actuator") for x in _reductions(one)):
            text = "ros2_control reads the reduction of the joint, not that of the actuator."
            robot.remark_lost(element.line, f"transmission '{name}' is ignored: {text}")
        else:
            reduction = ((_reductions(own) if is_ros2 and own else reductions) or [1.0])[0] or 1.0
            robot.actuators.append(rb.RobotActuator(name, (joint.name,), (reduction,), element.line))


def _differential(a: list[float], j: list[float]) -> list[tuple[float, float]]:
    """Return the ratios of two shafts to two joints, from the reductions of actuators and joints.

    These are the rates of transmission_interface::DifferentialTransmission. Its efforts have equal power.
    """
    return [(a[0] * j[0], a[0] * j[1]), (a[1] * j[0], -a[1] * j[1])]


def _four_bar(a: list[float], j: list[float]) -> list[tuple[float, float]]:
    """Return the ratios of two shafts to two joints, from the reductions of actuators and joints.

    These are the rates of transmission_interface::FourBarLinkageTransmission. Its efforts are not used: their
    power differs from that of the actuators.
    """
    return [(a[0] * j[0], 0.0), (a[1], a[1] * j[1])]


_COUPLES = {"DifferentialTransmission": _differential, "FourBarLinkageTransmission": _four_bar}
# tags of ros_control and of ros2_control
_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")


def _couple(
    element: Element,
    name: str,
    couple: Callable[[list[float], list[float]], list[tuple[float, float]]],
    robot: Robot,
    is_ros2: bool,
) -> None:
    """Add the two actuators of a transmission with two joints, or a remark if it cannot be read."""
    reductions, ends = list[list[float]](), list[list[str]]()
    for tag in ("actuator", "joint"):
        parts = list(element.all(tag))
        roles = [part.word("role") or part.attributes.get("role", "") for part in parts]
        if (roles if is_ros2 else sorted(roles)) != [f"{tag}1", f"{tag}2"]:  # ros2_control goes by the order
            text = f"it must have two <{tag}>, with the roles {tag}1 and {tag}2{' in this order' * is_ros2}."
            robot.remark_lost(element.line, f"transmission '{name}' is ignored: {text}")
            return
        parts = [parts[roles.index(f"{tag}{k}")] for k in (1, 2)]
        reductions.append([(_reductions(part) or [1.0])[0] for part in parts])
        ends.append([part.get("name", "") for part in parts])
    joints = [robot.joints.get(end) for end in ends[1]]
    kinds = [getattr(joint, "type", "missing") for joint in joints]
    is_known = {*kinds} <= {"revolute", "prismatic"} and ends[1][0] != ends[1][1]
    if not is_known or not np.all(reductions):
        text = "two different revolute or prismatic joints, and reductions other than zero"
        robot.remark_lost(element.line, f"transmission '{name}' is ignored: it must have {text}.")
        return
    for actuator, ratios in zip(ends[0], couple(*reductions), strict=True):
        terms = {joint: ratio for joint, ratio in zip(ends[1], ratios, strict=True) if ratio}
        robot.actuators.append(rb.RobotActuator(actuator, (*terms,), (*terms.values(),), element.line))
    if couple is _four_bar:
        text = "efforts conserve the power of the actuators; those of transmission_interface do not."
        robot.remark(element.line, f"transmission '{name}': {text}")


def _reductions(element: Element) -> list[float]:
    """Return the numbers of all reductions below an element."""
    found = list[float]()
    for child in element.children:
        found += (
            child.numbers(child.text, 1, f"<{child.tag}>") if child.tag in _REDUCTIONS else _reductions(child)
        )
    return found


def _roots(robot: Robot, floating_base: bool) -> None:
    """Fix the root link to the world, or let it move freely."""
    children = {joint.child for joint in robot.joints.values()}
    roots = [name for name in robot.links if name not in children]
    if not robot.links:
        raise robot.source.error(0, "has no links.")
    if len(roots) > 1:
        raise robot.source.error(
            robot.links[roots[1]].line,
            f"several links have no parent: {', '.join(map(repr, roots[:5]))}. Connect them by joints.",
        )
    if not floating_base:
        robot.roots = roots
    elif roots:
        root = roots[0]
        name = rb.Names(robot.joints).new(rb.FREE_JOINT)
        robot.joints = {
            name: RobotJoint(name, "free", WORLD, root, np.eye(4), robot.links[root].line),
            **robot.joints,
        }
