"""Loops of URDF files: pairs of frames, side files of other tools, and elements that are not part of URDF."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from kic.description.joint_types import BALL_TYPES, JOINT_AXES, LOOP_TYPES
from kic.errors import InputError, KicError, short_repr
from kic.io import robot as rb
from kic.io.robot import Robot
from kic.io.xml import Element, Source, read_source
from kic.mechanism.assembly import loop_words
from kic.numerics.arguments import entries
from kic.numerics.optional import import_optional

# elements that close loops: of Isaac Sim, of URDF+ and its predecessor, and of a proposal for ROS
# (github.com/ros/urdfdom_headers/pull/108); and tags of their two links, in order
CLOSING_ELEMENTS = ("loop_joint", "loop", "constraint")
_ENDS = (("link1", "link1"), ("link1", "link2"), ("predecessor", "successor"), ("parent", "child"))
_TAGS = [tag for pair in _ENDS for tag in pair]
_REMEDY = "Correct it; or remove it, fix a link to each of the two where they meet, and give both in `loops`."
_AXES = ("parent_axis", "child_axis")
# cosine of the angle between the axes of a universal joint, at most: files have six digits
_PERPENDICULAR_RTOL = 1e-5
# joints of `robot.yaml`, and of elements
_JOINTS = {
    "6d": "fixed",
    "3d": "spherical",
    "FIXED": "fixed",
    "SPHERICAL": "spherical",
    "continuous": "revolute",
}


def add_loops(robot: Robot, given: Any) -> None:
    """Add the loops of the argument: pairs of frames or of patterns, or the path of a side file."""
    if isinstance(given, str | os.PathLike):
        _read_side_file(robot, given)
        return
    for k, loop in enumerate(entries(given)):
        first, second, kind = loop_words(k, loop)
        for pair in _matched(robot, first, second):
            _add(robot, pair, kind)


def add_elements(robot: Robot, elements: list[Element], placement: Any) -> None:
    """Add the loops of elements, whose frames are those of the links or of an <origin>."""
    for element in elements:
        kind = element.get("type", "spherical").removesuffix("_joint")
        kind = (_JOINTS | {"link": "fixed"}).get(kind, kind)  # a link is cut in two
        ends = sorted(element.all(*_TAGS), key=lambda end: _TAGS.index(end.tag))
        tags = tuple(end.tag for end in ends)
        if kind not in LOOP_TYPES or tags not in _ENDS:
            element.fail(
                f"it must have {', or '.join(' and '.join(pair) for pair in _ENDS)}; and a type of "
                f"{', '.join(LOOP_TYPES)}; got {', '.join(tags) or 'none'} and {short_repr(kind)}. {_REMEDY}"
            )
        is_ros, axis, turn = tags == ("parent", "child"), element.find("axis"), np.eye(4)
        axes = _axes(element, kind) if is_ros else {}
        if axis is not None:
            turn = _along(_direction(axis))
        axis_tags = _AXES if kind == "universal" else _AXES[:1]
        read = {*tags, *(f"{tag}_origin" for tag in tags), *(axis_tags if is_ros else ("axis",))}
        for child in element.children:
            if child.tag not in read:
                robot.remark_lost(child.line, f"<{child.tag}> of <{element.tag}> is ignored.")
        frames = []
        for end in ends:
            origin = element.find(f"{end.tag}_origin")
            frames.append(placement(origin or end.find("origin") or end) @ turn)
        links = tuple(end.get("link") for end in ends)
        for end, link in zip(ends, links, strict=True):
            if link not in robot.links:
                end.fail(f"there is no link '{link}'. {_REMEDY}")
        _add(robot, links, kind, (frames[0], frames[1]), element.get("name", ""), element.line, axes)


def _axes(element: Element, kind: str) -> dict[str, tuple[float, ...]]:
    """Return the axes of a closing joint of ROS in its two frames, x by default."""
    if (stray := element.find("axis")) is not None:
        stray.fail(f"the axis of a joint between <parent> and <child> is <{_AXES[0]}>. {_REMEDY}")
    if kind == "planar":
        element.fail(f"a planar joint between <parent> and <child> cannot be read. {_REMEDY}")
    if kind not in JOINT_AXES or kind in BALL_TYPES:
        return {}
    own = map(element.find, _AXES)
    one, two = ((1.0, 0.0, 0.0) if axis is None else _direction(axis) for axis in own)
    if kind != "universal":
        return {"axis": one}
    if abs(np.dot(one, two)) > _PERPENDICULAR_RTOL * np.linalg.norm(one) * np.linalg.norm(two):
        element.fail(
            "the axes of a universal joint must be perpendicular where its two frames coincide, got "
            f"{one} and {two}. {_REMEDY}",
            axes=(one, two),
        )
    return {"axis": one, "axis2": two}


def _direction(element: Element) -> tuple[float, ...]:
    """Return the direction of an axis."""
    direction = element.vector("xyz")
    if not any(direction):
        element.fail("the axis is zero. Give a direction.")
    return direction


def _add(
    robot: Robot,
    names: tuple[str, ...],
    kind: str,
    frames: tuple[np.ndarray, np.ndarray] | None = None,
    name: str = "",
    line: int = 0,
    axes: Mapping[str, tuple[float, ...]] = MappingProxyType({}),
) -> None:
    first, second = (_link_of(robot, name) for name in names)
    title = name or f"{names[0]} to {names[1]}"
    ends = frames or (np.eye(4), np.eye(4))
    robot.loops.append(rb.RobotLoop(title, kind, (first, second), ends, line, **axes))  # type: ignore[arg-type]


def _along(axis: Any) -> np.ndarray:
    """Return a frame (4, 4) whose z axis has a given direction."""
    from scipy.spatial.transform import Rotation

    return rb.transform(axes=Rotation.align_vectors([axis], [[0.0, 0.0, 1.0]])[0].as_matrix())


def _link_of(robot: Robot, name: str) -> str:
    """Return a link, or the link below a joint."""
    link = name if name in robot.links else getattr(robot.joints.get(name), "child", None)
    if link is None:
        raise InputError(f"`loops`: '{robot.name}' has no link or joint '{name}'.", key="loops", name=name)
    return link


def _matched(robot: Robot, first: str, second: str) -> list[tuple[str, str]]:
    """Return the pairs of links whose names have the same text in place of an asterisk."""
    if first.count("*") != 1 or second.count("*") != 1 or first in robot.links:
        return [(first, second)]
    start, end = first.split("*")
    size = len(start) + len(end)
    inner = [
        name[len(start) : len(name) - len(end)]
        for name in robot.links
        if name.startswith(start) and name.endswith(end) and len(name) > size
    ]
    if not inner:
        raise InputError(
            f"`loops`: '{robot.name}' has no link that matches '{first}'.", key="loops", name=first
        )
    return [(first.replace("*", word), second.replace("*", word)) for word in inner]


def _read_side_file(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Add the loops of a side file of toolbox-parallel-robots or of the SolidWorks exporter."""
    yaml = import_optional("yaml", "yaml", "Side files for loops require PyYAML")
    source = read_source(path, "YAML")
    try:
        found = yaml.safe_load(source.data)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise source.error(0, f"is not valid YAML: {short_repr(str(error))}.") from None
    found = found if isinstance(found, dict) else {}
    if not {"closed_loop", "closures"} & found.keys():
        raise source.error(0, f"must have `closed_loop` or `closures`, got {short_repr(list(found))}.")
    try:
        _add_pairs(robot, found, source)
        _add_closures(robot, found)
    except KicError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise source.error(0, f"has an entry that cannot be read: {short_repr(str(error))}.") from None


def _word(source: Source, word: Any) -> str:
    """Return the joint type for a word of a side file."""
    kind = _JOINTS.get(word)
    if kind is None:
        raise source.error(0, f"`type` must be one of {', '.join(_JOINTS)}, got {short_repr(word)}.")
    return kind


def _add_pairs(robot: Robot, found: dict[str, Any], source: Source) -> None:
    """Add frames that coincide, joints of other types, and motors."""
    pairs = found.get("closed_loop", [])
    if not all(isinstance(pair, list) for pair in pairs):  # a text has letters
        raise source.error(0, f"`closed_loop` must be a list of pairs of frames, got {short_repr(pairs)}.")
    for (first, second), word in zip(pairs, found.get("type", ["6d"] * len(pairs)), strict=True):
        _add(robot, (first, second), _word(source, word))
    for name, word in zip(found.get("joint_name", []), found.get("joint_type", []), strict=True):
        if name not in robot.joints:
            raise source.error(0, f"`joint_name`: '{robot.name}' has no joint '{name}'.")
        robot.joints[name].type = _word(source, word)
    for name in found.get("name_mot", []):
        if name not in robot.joints:
            raise source.error(0, f"`name_mot`: '{robot.name}' has no joint '{name}'.")
        robot.actuators.append(rb.RobotActuator(name, (name,), (1.0,), 0))


def _add_closures(robot: Robot, found: dict[str, Any]) -> None:
    """Add hinges about lines given in the base frame at the zero of the file."""
    pose = rb.place(robot)[0]
    for one in found.get("closures", []):
        names = one["link_a"], one["link_b"]
        frame = _along(one["axis"])
        frame[:3, 3] = np.reshape(one["point"], 3)
        frame = pose[robot.roots[0] if robot.roots else next(iter(robot.links))] @ frame
        first, second = (np.linalg.inv(pose[_link_of(robot, name)]) @ frame for name in names)
        _add(robot, names, "revolute", (first, second))
