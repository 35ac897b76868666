"""Robots as files describe them: a tree of links with their own frames, and joints that close its loops.

URDF, SDF and MJCF give the frame of each link relative to that of its parent, at the zero of all joints.
Loops are usually open there. `mechanism_of` merges links without relative motion and closes the loops.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kic.assembly import ClosingJoint, Loop, LoopFrame, close_loops, default_coordinates, start_columns
from kic.description.couplings import Coupling
from kic.description.joint_types import JOINT_COORDINATES
from kic.description.motors import Motor
from kic.description.parts import Body, Frame, Joint, Point, Spring, combined_inertia
from kic.description.validation import GROUND
from kic.errors import ModelError, ModelFileError, short_repr
from kic.io.xml import Element, Source
from kic.mechanism import Mechanism
from kic.numerics.arguments import mapping, names_of

GRAVITY = (0.0, 0.0, -9.81)
FREE_JOINT = "root_joint"
# the world in a file, which may have a link called "ground"
WORLD = ""
# characters of a name
NAME_MAX = 1000
# conditions of loops and couplings times the square of the number of joints: a dense problem of 2 s
CLOSURE_MAX = 5e8


@dataclass
class Link:
    """Link with its inertia in its own frame; `mass` None is unknown."""

    name: str
    line: int
    mass: float | None = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass
class RobotJoint:
    """Joint above a link: `pose` (4, 4) is the link's frame in that of its parent, at the zero of the file.

    Point and axes are given in the link's frame. `zero` has the values of the coordinates there.
    """

    name: str
    type: str
    parent: str
    child: str
    pose: np.ndarray
    line: int
    at: tuple[float, ...] = (0.0, 0.0, 0.0)
    axis: tuple[float, ...] | None = None
    axis2: tuple[float, ...] | None = None
    zero: float = 0.0
    # one number, or one for each coordinate
    stiffness: float | tuple[float, ...] = 0.0
    rest: float | tuple[float, ...] = 0.0
    damping: float | tuple[float, ...] = 0.0
    armature: float = 0.0
    friction: float | tuple[float, ...] = 0.0
    lower: float = -np.inf
    upper: float = np.inf


@dataclass
class RobotCoupling:
    """Linear relation Σ ratio (φ − zero) = offset between joints."""

    name: str
    joints: tuple[str, ...]
    ratios: tuple[float, ...]
    offset: float
    line: int


@dataclass(frozen=True)
class RobotLoop(ClosingJoint):
    """Joint that closes a loop: its frame (4, 4) in each of two links."""

    links: tuple[str, str]
    frames: tuple[np.ndarray, np.ndarray]
    line: int


@dataclass
class RobotFrame:
    """Named frame (4, 4) of a link."""

    name: str
    link: str
    pose: np.ndarray
    line: int


@dataclass
class RobotSpring:
    """Spring and damper between the origins of two frames."""

    name: str
    frames: tuple[str, str]
    stiffness: float
    rest: float
    damping: float
    line: int


@dataclass
class RobotActuator:
    """Actuator of joints: shaft speed Σ ratio φ̇."""

    name: str
    joints: tuple[str, ...]
    ratios: tuple[float, ...]
    line: int


@dataclass
class Robot:
    """Contents of a file."""

    source: Source
    name: str
    roots: list[str] = field(default_factory=list)
    """Links fixed to the world, which coincide with its frame."""
    links: dict[str, Link] = field(default_factory=dict)
    joints: dict[str, RobotJoint] = field(default_factory=dict)
    couplings: list[RobotCoupling] = field(default_factory=list)
    loops: list[RobotLoop] = field(default_factory=list)
    frames: list[RobotFrame] = field(default_factory=list)
    actuators: list[RobotActuator] = field(default_factory=list)
    springs: list[RobotSpring] = field(default_factory=list)
    gravity: tuple[float, ...] = GRAVITY
    starts: list[dict[str, Any]] = field(default_factory=list)
    """Values of joints from which the loops may be closed, beside the zero of the file."""
    remarks: list[str] = field(default_factory=list)
    strict: bool = False
    has_limits_remark: bool = False

    def remark(self, line: int, what: str, lost: bool = False) -> None:
        """Add a remark; if a part is lost, a strict reader raises instead."""
        if lost and self.strict:
            raise self.source.error(line, f"{what} Read it with `strict=False` to accept this.")
        self.remarks.append(f"{self.source.location(line)}: {what}")

    def remark_limits(self, line: int) -> None:
        """Add a remark, once, that limits of efforts and velocities are ignored."""
        if not self.has_limits_remark:
            self.has_limits_remark = True
            self.remark(line, "effort and velocity limits are ignored.")

    def remark_limits_of(self, element: Element) -> None:
        """Add a remark on limits of an element that are ignored, which must be numbers or infinite."""
        for name in ("effort", "velocity"):
            own = element.find(name)
            text = element.attributes.get(name) if own is None else own.text
            if text is None:
                continue
            try:
                value = float(text)
            except ValueError:
                value = np.nan
            if np.isnan(value):
                element.fail(f"`{name}` must be a number, got {short_repr(text)}.")
            self.remark_limits(element.line)

    def free_name(self, name: str, others: Container[str] = ()) -> str:
        """Return a name, with underscores if a joint, or another part, has it already."""
        while name in self.joints or name in others:
            name += "_"
        return name

    def add_link(self, link: Link) -> None:
        """Add a link with a new name."""
        if link.name in self.links:
            raise self.source.error(link.line, f"two links are called '{link.name}'. Rename one.")
        self.links[link.name] = link

    def add_joint(self, joint: RobotJoint) -> None:
        """Add a joint with a new name."""
        if joint.name in self.joints:
            raise self.source.error(joint.line, f"two joints are called '{joint.name}'. Rename one.")
        self.joints[joint.name] = joint


def transform(at: Any = (0.0, 0.0, 0.0), axes: Any = None) -> np.ndarray:
    """Return the matrix (4, 4) of a frame with an origin and axes as columns."""
    T = np.eye(4)
    T[:3, 3] = at
    if axes is not None:
        T[:3, :3] = axes
    return T


def set_inertia(link: Link, T: np.ndarray, moments: Mapping[str, float]) -> None:
    """Set the inertia of a link from its entries ixx … about the origin of a frame (4, 4), in its axes."""
    x = moments
    J = [[x["ixx"], x["ixy"], x["ixz"]], [x["ixy"], x["iyy"], x["iyz"]], [x["ixz"], x["iyz"], x["izz"]]]
    link.com, link.inertia = T[:3, 3], T[:3, :3] @ np.array(J) @ T[:3, :3].T


def joint_motion(joint: RobotJoint, value: float) -> np.ndarray:
    """Return the displacement (4, 4) of a link by its joint, in the link's frame at zero."""
    from scipy.spatial.transform import Rotation

    axis, at = np.array(joint.axis), np.array(joint.at)
    if joint.type == "prismatic":
        return transform(value * axis)
    R = Rotation.from_rotvec(value * axis).as_matrix()
    return transform(at - R @ at, R)


def rpy(angles: Iterable[float]) -> np.ndarray:
    """Return the rotation of roll, pitch and yaw about fixed axes x, y, z."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(tuple(angles)), np.sin(tuple(angles))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def quaternion_axes(element: Element, xyzw: Iterable[float]) -> np.ndarray:
    """Return the rotation of a quaternion x, y, z, w of an element."""
    from scipy.spatial.transform import Rotation

    q = np.array(tuple(xyzw))
    size = float(np.abs(q).max())
    if not size > 0:
        element.fail("the quaternion must not be zero.")
    return Rotation.from_quat(q / size).as_matrix()


def clean_name(name: str) -> str:
    """Return a name without dots and control characters."""
    return "".join(c if c.isprintable() and c != "." else "_" for c in name).strip()


def part_names(mujoco: Any, model: Any, kind: str) -> list[str]:
    """Return the names of all parts of a kind in a MuJoCo model; those without get a new one."""
    count = {"joint": "njnt", "equality": "neq", "actuator": "nu"}.get(kind, f"n{kind}")
    tag = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    names = [mujoco.mj_id2name(model, tag, k) or "" for k in range(getattr(model, count))]
    used = set(names)
    for k, name in enumerate(names):
        if not name:
            names[k] = f"{kind}{k}"
            while names[k] in used:
                names[k] += "_"
            used.add(names[k])
    return names


class _Names:
    """Names of one namespace: dots are replaced, and a name in use gets a suffix."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.used = robot, {GROUND}
        self.counts: dict[tuple[str, str], int] = {}

    def new(self, name: str, kind: str, line: int) -> str:
        """Return a free name, with a remark if it differs from that of the file."""
        if len(name) > NAME_MAX:
            rule = f"{kind} {short_repr(name)}: a name must have at most {NAME_MAX} characters."
            raise self.robot.source.error(line, rule, limit=NAME_MAX)
        clean = clean_name(name) or kind
        found = clean
        while found in self.used:
            # counts start where the last ones with this name ended
            count = self.counts[clean, kind] = self.counts.get((clean, kind), 0) + 1
            found = f"{clean}_{kind}" if count == 1 else f"{clean}_{kind}{count}"
        self.used.add(found)
        if found != name:
            self.robot.remark(line, f"{kind} '{name}' is called '{found}'.")
        return found


@dataclass
class _Placed:
    """Links in the world: pose (4, 4) of each, and the body that carries it."""

    pose: dict[str, np.ndarray]
    carrier: dict[str, str]


def _place(robot: Robot) -> _Placed:
    """Return the poses of all links at the zero of the file, and the first link of each rigid group."""
    below: dict[str, list[RobotJoint]] = {}
    for joint in robot.joints.values():
        for link in (joint.parent, joint.child):
            if link != WORLD and link not in robot.links:
                raise robot.source.error(joint.line, f"joint '{joint.name}': there is no link '{link}'.")
        below.setdefault(joint.parent, []).append(joint)
    above: dict[str, RobotJoint] = {}
    for joint in robot.joints.values():
        if joint.child in above or joint.child in (*robot.roots, WORLD):
            other = above[joint.child].name if joint.child in above else "the world"
            raise robot.source.error(
                joint.line,
                f"link '{joint.child}' has two parents, by '{other}' and '{joint.name}'. Remove one "
                "joint, and give it in `loops`.",
            )
        above[joint.child] = joint
    pose = {WORLD: np.eye(4), **{link: np.eye(4) for link in robot.roots}}
    carrier = {WORLD: WORLD, **dict.fromkeys(robot.roots, WORLD)}
    front = list(pose)
    while front:
        link = front.pop()
        for joint in below.get(link, ()):
            pose[joint.child] = pose[link] @ joint.pose
            carrier[joint.child] = carrier[link] if joint.type == "fixed" else joint.child
            front.append(joint.child)
    lost = [link for link in robot.links if link not in pose]
    if lost:
        raise robot.source.error(
            robot.links[lost[0]].line,
            f"link '{lost[0]}' is in a cycle of joints that no root carries ({', '.join(lost[:5])}). Remove "
            "one joint, and give it in `loops`.",
        )
    return _Placed(pose, carrier)


def mechanism_of(
    robot: Robot,
    coordinates: Iterable[str] | None = None,
    start: Mapping[str, float] | None = None,
    free_remedy: str = "",
) -> Mechanism:
    """Return the mechanism of a robot, in a configuration that closes its loops.

    Parameters
    ----------
    robot : Robot
        Contents of the file.
    coordinates : sequence of str, optional
        Joints of the default coordinates.
    start : dict of str to float, optional
        Values of joints from which the loops are closed.
    free_remedy : str
        Remedy of a file without a joint that moves.

    Returns
    -------
    Mechanism
        With the remarks of the robot.

    Raises
    ------
    ModelFileError
        If the file contradicts itself, or a loop does not close.
    """
    names = None if coordinates is None else names_of(coordinates, "coordinates")
    values = None if start is None else mapping("start", start, "joints to values")
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # numbers are checked by the parts
            return _Builder(robot, free_remedy).mechanism(names, values)
    except ModelFileError:
        raise
    except ModelError as error:
        raise ModelFileError(
            f"{robot.source.path or robot.source.name}: {error}",
            **{"path": robot.source.path, "key": "", **error.numbers},
        ) from None


class _Builder:
    """Parts of a mechanism, made from those of a file."""

    def __init__(self, robot: Robot, free_remedy: str) -> None:
        self.robot, self.names = robot, _Names(robot)
        self.placed = _place(robot)
        moving = [joint for joint in robot.joints.values() if joint.type != "fixed"]
        if not moving:
            raise robot.source.error(0, f"has no joint that moves. {free_remedy}".rstrip())
        conditions = 6 * len(robot.loops) + len(robot.couplings)
        if conditions * len(moving) ** 2 > CLOSURE_MAX:
            raise robot.source.error(
                0,
                f"has too many joints and conditions of loops: {conditions:,} conditions × {len(moving):,}² "
                f"joints must be at most {CLOSURE_MAX:,.0f}. Read a part with fewer loops or joints.",
                limit=CLOSURE_MAX,
            )
        self.joint_names = {j.name: self.names.new(j.name, "joint", j.line) for j in moving}
        self.moving = moving
        self.bodies = {WORLD: GROUND}
        for name, link in robot.links.items():
            if self.placed.carrier[name] == name:
                self.bodies[name] = self.names.new(name, "body", link.line)

    def body_of(self, link: str) -> str:
        """Return the name of the body that carries a link."""
        return self.bodies[self.placed.carrier[link]]

    def mechanism(self, coordinates: tuple[str, ...] | None, start: Mapping[str, float] | None) -> Mechanism:
        """Return the mechanism."""
        robot = self.robot
        bodies, joints = self._bodies(), [self._joint(joint) for joint in self.moving]
        frames, points, springs = self._frames()
        name = self.names.new(robot.name, "mechanism", 0)
        loops, rows = self._loops(), self._coupling_rows()
        couplings = [
            Coupling(
                self.names.new(c.name, "coupling", c.line), tuple(map(self.coordinate, c.joints)), c.ratios
            )
            for c in robot.couplings
        ]
        motors, actuators = tuple(self._motors()), self._actuators()
        is_open = not loops and not rows
        made = Mechanism(
            name,
            tuple(bodies),
            tuple(joints),
            tuple(points),
            frames=tuple(frames),
            springs=tuple(springs),
            motors=motors,
            gravity=robot.gravity,  # type: ignore[arg-type]
            coordinates=coordinates if is_open else None,
            actuators=actuators,
            remarks=tuple(robot.remarks),
        )
        if start is not None:
            start = {self.joint_names.get(k, k): v for k, v in start.items()}
        if is_open:
            start_columns(made._model.tree, start or {})  # raises an error for unknown names
            return made
        starts = [
            {self.joint_names[k]: v for k, v in s.items() if k in self.joint_names} for s in robot.starts
        ]
        made, remarks = close_loops(made, loops, rows, starts, start)
        robot.remarks += [f"{robot.source.name}: {text}" for text in remarks]
        made = replace(made, couplings=tuple(couplings))
        chosen = self._coordinates(made, coordinates)
        return replace(made, coordinates=chosen, remarks=tuple(robot.remarks))

    def _bodies(self) -> list[Body]:
        """Return the bodies, with the inertia of all links that they carry, in world axes."""
        robot, groups = self.robot, dict[str, list[Link]]()
        for name, link in robot.links.items():
            carrier = self.placed.carrier[name]
            groups.setdefault(carrier, []).append(link)
            if carrier != name and link.mass and carrier == WORLD:
                robot.remark(link.line, f"link '{name}' is fixed to the ground; its mass has no effect.")
            elif carrier not in (name, WORLD):
                robot.remark(link.line, f"link '{name}' is fixed to '{carrier}' and merged into it.")
        made = []
        for carrier, links in groups.items():
            if carrier == WORLD:
                continue
            origin = tuple(self.placed.pose[carrier][:3, 3].tolist())
            own = robot.links[carrier]
            unknown = [link for link in links if link.mass is None]
            if unknown:
                made.append(Body(self.bodies[carrier], at=origin))
                continue
            mass, com, inertia = self._merged(links)
            given = (self.bodies[carrier], mass, tuple(com) if mass else None, inertia, origin)
            try:
                body = Body(*given)  # type: ignore[arg-type]
            except ModelError as error:
                try:
                    body = Body(*given, inertia_exception="as in the file")  # type: ignore[arg-type]
                except ModelError:
                    raise robot.source.error(own.line, str(error), **error.numbers) from None
                robot.remark(own.line, f"inertia of link '{carrier}' is kept as it is. {error}")
            made.append(body)
        return made

    def _merged(self, links: Sequence[Link]) -> tuple[float, np.ndarray, np.ndarray]:
        """Return mass, centre of mass and inertia about it of rigidly connected links, in world axes."""
        poses = [self.placed.pose[link.name] for link in links]
        mass, com, inertia = combined_inertia(
            (link.mass or 0.0, T[:3, :3] @ link.com + T[:3, 3], T[:3, :3] @ link.inertia @ T[:3, :3].T)
            for T, link in zip(poses, links, strict=True)
        )
        return mass, com, (inertia + inertia.T) / 2

    def _joint(self, joint: RobotJoint) -> Joint:
        """Return a joint in world axes."""
        T = self.placed.pose[joint.child]
        direction: dict[str, Any] = {
            key: tuple((T[:3, :3] @ value).tolist())
            for key, value in (("axis", joint.axis), ("axis2", joint.axis2))
            if value is not None
        }
        at = tuple((T[:3, :3] @ joint.at + T[:3, 3]).tolist())
        kinds = JOINT_COORDINATES[joint.type]
        single = len(kinds) == 1
        angles = joint.type not in ("spherical", "free")
        try:
            return Joint(
                self.joint_names[joint.name],
                joint.type,  # type: ignore[arg-type]
                (self.body_of(joint.parent), self.body_of(joint.child)),
                at,
                **direction,
                value=joint.zero if single else 0.0,
                stiffness=joint.stiffness if angles else 0.0,
                rest=joint.rest if single or isinstance(joint.rest, tuple) else 0.0,
                damping=joint.damping,
                armature=joint.armature,
                friction=joint.friction,
                limits=self._limits(joint) if single else None,
            )
        except ModelError as error:
            raise self.robot.source.error(joint.line, str(error), **error.numbers) from None

    def _limits(self, joint: RobotJoint) -> tuple[float, float] | None:
        """Return the limits of a joint, or None."""
        if joint.lower == -np.inf and joint.upper == np.inf:
            return None
        if joint.lower < joint.upper:
            return joint.lower, joint.upper
        text = f"limits of joint '{joint.name}', {joint.lower:g} to {joint.upper:g}, are left out."
        self.robot.remark(joint.line, text)
        joint.lower, joint.upper = -np.inf, np.inf
        return None

    def _frames(self) -> tuple[list[Frame], list[Point], list[Spring]]:
        """Return the frames of links and of the file, and springs between points at some of them."""
        robot, frames, carriers = self.robot, list[Frame](), dict[str, Frame]()
        for name, link in robot.links.items():
            body = self.placed.carrier[name] == name
            own = f"{name}_frame" if body else name
            found = self.names.new(own, "frame", link.line)
            frames.append(self._frame(found, name, np.eye(4)))
        for frame in robot.frames:
            found = self.names.new(frame.name, "frame", frame.line)
            frames.append(self._frame(found, frame.link, frame.pose))
            carriers[frame.name] = frames[-1]
        points, springs = list[Point](), list[Spring]()
        for spring in robot.springs:
            ends = []
            for k, frame_name in enumerate(spring.frames):
                end = carriers[frame_name]
                ends.append(self.names.new(f"{spring.name}_{k + 1}", "point", spring.line))
                points.append(Point(ends[-1], end.body, end.origin))
            own = self.names.new(spring.name, "spring", spring.line)
            springs.append(Spring(own, (ends[0], ends[1]), spring.stiffness, spring.rest, spring.damping))
        return frames, points, springs

    def _frame(self, name: str, link: str, pose: np.ndarray) -> Frame:
        """Return a frame given in that of a link."""
        T = self.placed.pose[link] @ pose
        axes: Any = tuple(map(tuple, T[:3, :3].T.tolist()))
        return Frame(name, self.body_of(link), tuple(T[:3, 3].tolist()), axes)

    def _loops(self) -> list[Loop]:
        """Return the closing joints with their two frames in the world."""
        made = []
        for loop in self.robot.loops:
            ends = []
            for link, pose in zip(loop.links, loop.frames, strict=True):
                if link != WORLD and link not in self.robot.links:
                    raise self.robot.source.error(
                        loop.line, f"loop '{loop.name}': there is no link '{link}'."
                    )
                ends.append(LoopFrame(self.body_of(link), self.placed.pose[link] @ pose))
            if ends[0].body == ends[1].body:
                raise self.robot.source.error(
                    loop.line, f"loop '{loop.name}' connects '{ends[0].body}' with itself. Remove it."
                )
            name = self.names.new(loop.name, "joint", loop.line)
            laws = {key: getattr(loop, key) for key in ("axis", "axis2", "damping", "friction")}
            made.append(Loop(name, loop.type, ends[0], ends[1], **laws))
        return made

    def _coupling_rows(self) -> list[tuple[str, dict[str, float], float]]:
        """Return couplings as rows: name, coefficients of the joints, and value."""
        made = []
        for c in self.robot.couplings:
            try:
                names = [self.coordinate(j) for j in c.joints]
            except KeyError as error:
                text = f"coupling '{c.name}': no joint '{error.args[0]}' moves."
                raise self.robot.source.error(c.line, text) from None
            zeros = [self.robot.joints[j].zero if j in self.robot.joints else 0.0 for j in c.joints]
            value = c.offset + sum(r * zero for r, zero in zip(c.ratios, zeros, strict=True))
            made.append((c.name, dict(zip(names, c.ratios, strict=True)), value))
        return made

    def coordinate(self, name: str) -> str:
        """Return the name of a joint, or of a component of one with several coordinates."""
        base, dot, component = name.rpartition(".")
        if dot and name not in self.joint_names and base in self.joint_names:
            return f"{self.joint_names[base]}.{component}"
        return self.joint_names[name]

    def _actuators(self) -> tuple[str, ...] | None:
        """Return the actuated joints; None if the file has no actuators."""
        driven = [j for actuator in self.robot.actuators for j in actuator.joints]
        return tuple(dict.fromkeys(self.joint_names[j] for j in driven)) or None

    def _motors(self) -> list[Motor]:
        """Return the actuators as ideal motors."""
        made = []
        for actuator in self.robot.actuators:
            joints = tuple(self.joint_names[j] for j in actuator.joints)
            made.append(Motor(self.names.new(actuator.name, "motor", actuator.line), joints, actuator.ratios))
        return made

    def _coordinates(self, made: Mechanism, wanted: Iterable[str] | None) -> tuple[str, ...] | None:
        """Return the default coordinates: those given, the actuated joints, or the best conditioned."""
        if wanted is not None:
            return tuple(wanted)
        actuated = self._actuators() or ()
        free = tuple(j.name for j in made.joints if j.type == "free")
        sets = (tuple(dict.fromkeys((*free, *actuated))), actuated)
        names = default_coordinates(made, sets)
        if names:
            how = "are the actuated joints" if names in sets else "were chosen by their condition"
            self.robot.remark(0, f"the default coordinates {how}: {', '.join(names)}.")
        elif names is None:
            self.robot.remark(
                0,
                "no coordinates drive this configuration, which is singular. Give `start` or `coordinates`.",
            )
        return names
