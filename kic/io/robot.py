"""Robots as described by files: a tree of links with frames, and joints that close its loops.

URDF, SDF and MJCF give the frame of each link relative to that of its parent, at the zero of all joints.
Loops are usually open at this zero. `mechanism_of` merges links without relative motion and closes the loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kic.description.couplings import Coupling
from kic.description.joint_types import BALL_TYPES, JOINT_COORDINATES
from kic.description.motors import Motor
from kic.description.parts import Body, Frame, Joint, Point, Spring, combined_inertia
from kic.description.validation import GROUND
from kic.errors import ModelError, ModelFileError, printable, short_repr
from kic.io.xml import Element, Source
from kic.mechanism.assembly import (
    NEAR,
    ClosingJoint,
    Loop,
    LoopFrame,
    closed_mechanism,
    default_coordinates,
    start_columns,
    without_spins,
)
from kic.mechanism.configuration import model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import choice, mapping, names_of

FREE_JOINT = "root_joint"
# the world in a file, which may have a link called "ground"
WORLD = ""
# size from which a limit counts as infinite
NO_LIMIT = 1e16
# characters of a name
NAME_MAX = 1000
# largest mesh file that is read, in bytes; meshes of robots have up to 50 MB
MESH_BYTES_MAX = 100_000_000
TOO_LARGE = f"more than {MESH_BYTES_MAX // 10**6} MB"
# conditions of loops and couplings times the square of the number of joints: a dense problem of 2 s
CLOSURE_MAX = 5e8
# conditions alone: memory grows with their square, to 200 MB
CONDITIONS_MAX = 3000


@dataclass
class Link:
    """Link with its inertia in the link frame; `mass` is None if unknown."""

    name: str
    line: int
    mass: float | None = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass
class RobotJoint:
    """Joint above a link: `pose` (4, 4) is the link's frame in its parent's frame, at the zero of the file.

    Point and axes are given in the link's frame. `zero` is the value of the coordinate at this zero. `ranges`
    has the limits of a joint with several coordinates. The joint moves the link relative to its parent, or
    the parent relative to the link if `turned`.
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
    lower: float = -np.inf
    upper: float = np.inf
    ranges: tuple[tuple[float, float], ...] | None = None
    turned: bool = False

    def __post_init__(self) -> None:
        # arrays with a number for each coordinate
        count = len(JOINT_COORDINATES[self.type])
        self.stiffness, self.rest, self.damping, self.armature, self.friction = np.zeros((5, count))
        # lower and upper limits for each coordinate
        self.effort_limits, self.rate_limits = np.tile([-np.inf, np.inf], (2, count, 1))

    def limit(self, key: str, k: int, lower: float, upper: float) -> bool:
        """Tighten effort or rate limits of a coordinate; return False if the new ones do not enclose 0."""
        if not (lower <= 0 <= upper and lower < upper):
            return False
        pair = getattr(self, key)[k]
        pair[:] = max(pair[0], lower), min(pair[1], upper)
        return True


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
    joint: RobotJoint | None = None


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
    """Robot as described by a file."""

    source: Source
    name: str
    roots: list[str] = field(default_factory=list)
    """Links that are fixed to the world at its origin."""
    links: dict[str, Link] = field(default_factory=dict)
    joints: dict[str, RobotJoint] = field(default_factory=dict)
    couplings: list[RobotCoupling] = field(default_factory=list)
    loops: list[RobotLoop] = field(default_factory=list)
    frames: list[RobotFrame] = field(default_factory=list)
    actuators: list[RobotActuator] = field(default_factory=list)
    springs: list[RobotSpring] = field(default_factory=list)
    gravity: tuple[float, ...] | None = None
    """Acceleration of gravity; None for the default of `Mechanism`."""
    starts: dict[str, dict[str, float]] = field(default_factory=dict)
    """Joint values of starts, by name, from which the loops may be closed; without the zero of the file."""
    chosen: str = ""
    """Name of the only start to use; "" allows all."""
    remarks: list[str] = field(default_factory=list)
    strict: bool = False
    has_limits_remark: bool = False

    def remark(self, line: int, what: str, lost: bool = False) -> None:
        """Add a remark; if a part that affects motion is `lost`, a strict reader raises instead."""
        if lost and self.strict:
            raise self.source.error(line, f"{what} Read it with `strict=False` to accept this.")
        self.remarks.append(f"{self.source.location(line)}: {what}")

    def remark_lost(self, line: int, what: str) -> None:
        """Add a remark on a part that is lost; a strict reader raises instead."""
        self.remark(line, what, lost=True)

    def remark_limits(self, line: int) -> None:
        """Add a remark, once, that some limits of efforts and velocities are ignored."""
        if not self.has_limits_remark:
            self.has_limits_remark = True
            self.remark(line, "some effort and velocity limits are ignored.")

    def read_limits(self, element: Element, joint: RobotJoint, k: int = 0) -> None:
        """Set the effort and velocity limits of a coordinate, which may be infinite.

        Values that are not limits get a remark, including 0, which files often have for unknown limits.
        """
        for name, key in (("effort", "effort_limits"), ("velocity", "rate_limits")):
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
            _, most = bounds(0.0, value)
            one = k < len(joint.rest) and joint.type not in BALL_TYPES
            if not (one and joint.limit(key, k, -most, most)) and most != -1.0:
                self.remark_limits(element.line)

    def add(self, part: Link | RobotJoint) -> None:
        """Add a link or a joint with a new name."""
        kind = "links" if isinstance(part, Link) else "joints"
        parts = getattr(self, kind)
        if part.name in parts:
            raise self.source.error(part.line, f"the name '{part.name}' is used by two {kind}. Rename one.")
        parts[part.name] = part


def transform(at: Any = (0.0, 0.0, 0.0), axes: Any = None) -> np.ndarray:
    """Return the matrix (4, 4) of a frame with an origin and axes as columns."""
    T = np.eye(4)
    T[:3, 3] = at
    if axes is not None:
        T[:3, :3] = axes
    return T


def frame_of(at: Any, wxyz: np.ndarray) -> np.ndarray:
    """Return the frame (4, 4) at a point, with the axes of a quaternion w, x, y, z."""
    from scipy.spatial.transform import Rotation

    return transform(at, Rotation.from_quat(wxyz, scalar_first=True).as_matrix())


def bounds(lower: float, upper: float) -> tuple[float, float]:
    """Return limits with very large ones replaced by infinity."""
    found = (x if abs(x) < NO_LIMIT else float(np.copysign(np.inf, x)) for x in (lower, upper))
    return tuple(found)  # type: ignore[return-value]


def set_inertia(link: Link, T: np.ndarray, moments: Mapping[str, float]) -> None:
    """Set the inertia of a link from entries ixx … about the origin and in the axes of a frame (4, 4)."""
    x = moments
    J = [[x["ixx"], x["ixy"], x["ixz"]], [x["ixy"], x["iyy"], x["iyz"]], [x["ixz"], x["iyz"], x["izz"]]]
    link.com, link.inertia = T[:3, 3], T[:3, :3] @ np.array(J) @ T[:3, :3].T


def link_origin(joint: Joint, body: Body) -> np.ndarray:
    """Return the origin of a written link: the point of its joint, or the reference point of its body."""
    return np.array(joint.at or body.reference or (0.0, 0.0, 0.0), dtype=float)


def joint_motion(joint: RobotJoint, value: float) -> np.ndarray:
    """Return the displacement (4, 4) of a link by its joint, in the link's frame at zero."""
    from scipy.spatial.transform import Rotation

    axis, at = np.array(joint.axis), np.array(joint.at)
    if joint.type == "prismatic":
        return transform(value * axis)
    R = Rotation.from_rotvec(value * axis).as_matrix()
    return transform(at - R @ at, R)


def rpy(angles: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the rotation of roll, pitch and yaw about fixed axes x, y, z."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_euler("xyz", angles).as_matrix()


def quaternion_axes(element: Element, xyzw: Iterable[float]) -> np.ndarray:
    """Return the rotation matrix of the quaternion x, y, z, w of an element."""
    from scipy.spatial.transform import Rotation

    q = np.array(tuple(xyzw))
    size = float(np.abs(q).max())
    if not size > 0:
        element.fail("the quaternion must not be zero.")
    return Rotation.from_quat(q / size).as_matrix()


def clean_name(name: str) -> str:
    """Return a name without dots and control characters."""
    return "".join(c if c.isprintable() and c != "." else "_" for c in name).strip()


class Names:
    """Names in use. A new name that is taken gets a suffix, then a number."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used, self._counts = set(used), dict[str, int]()

    def new(self, name: str, suffix: str = "_") -> str:
        """Return a free name and mark it as used."""
        found, suffixed = name, name + suffix
        while found in self._used:
            # counts start where the last ones with this name ended
            count = self._counts[suffixed] = self._counts.get(suffixed, 0) + 1
            found = suffixed if count == 1 else f"{suffixed}{count}"
        self._used.add(found)
        return found


def part_names(mujoco: Any, model: Any, kind: str) -> list[str]:
    """Return the names of all parts of a kind in a MuJoCo model; unnamed parts get new names."""
    count = {"joint": "njnt", "equality": "neq"}.get(kind, f"n{kind}")
    tag = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    found = [mujoco.mj_id2name(model, tag, k) or "" for k in range(getattr(model, count))]
    names = Names(found)
    return [name or names.new(f"{kind}{k}") for k, name in enumerate(found)]


def place(robot: Robot) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the poses (4, 4) of all links at the zero of the file, and the link that carries each."""
    below: dict[str, list[RobotJoint]] = {}
    above: dict[str, RobotJoint] = {}
    for joint in robot.joints.values():
        for link in (joint.parent, joint.child):
            if link != WORLD and link not in robot.links:
                raise robot.source.error(
                    joint.line,
                    f"joint '{joint.name}': there is no link '{link}'. Correct the name, or add the link.",
                )
        below.setdefault(joint.parent, []).append(joint)
    for joint in robot.joints.values():
        if joint.child in above or joint.child in (*robot.roots, WORLD):
            other = above[joint.child].name if joint.child in above else "the world"
            raise robot.source.error(
                joint.line,
                f"link '{joint.child}' has two parents, by '{other}' and '{joint.name}'. Remove one "
                "joint, and give it in `loops`.",
            )
        above[joint.child] = joint
    pose = {link: np.eye(4) for link in (WORLD, *robot.roots)}
    carrier = dict.fromkeys(pose, WORLD)
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
            f"link '{lost[0]}' is in a cycle of joints that is not connected to a root "
            f"({', '.join(lost[:5])}). Remove one joint, and give it in `loops`.",
        )
    return pose, carrier


def mechanism_of(
    robot: Robot,
    coordinates: Iterable[str] | None = None,
    start: Mapping[str, float] | None = None,
    free_remedy: str = "",
    spins: str = "held",
) -> Mechanism:
    """Return the mechanism of a robot, with its remarks, in a configuration that closes its loops.

    `free_remedy` is the remedy in the error for a file without moving joints.
    """
    names = None if coordinates is None else names_of(coordinates, "coordinates")
    values = None if start is None else mapping("near", start, "joints to values")
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # numbers are checked by the parts
            return _Builder(robot, free_remedy).mechanism(
                names, values, choice("spins", spins, ("held", "free"))
            )
    except ModelFileError:
        raise
    except ModelError as error:
        raise ModelFileError(
            f"{robot.source.path or robot.source.name}: {error}",
            **{"path": robot.source.path, "key": "", **error.numbers},
        ) from None


class _Builder:
    """Builder of a mechanism from the parts of a file."""

    def __init__(self, robot: Robot, free_remedy: str) -> None:
        self.robot, self.names = robot, Names([GROUND])
        self.pose, self.carrier = place(robot)
        self.moving = [joint for joint in robot.joints.values() if joint.type != "fixed"]
        if not self.moving:
            raise robot.source.error(0, f"has no joint that moves. {free_remedy}".rstrip())
        conditions = 6 * len(robot.loops) + len(robot.couplings)
        if conditions > CONDITIONS_MAX:
            raise robot.source.error(
                0,
                f"must have at most {CONDITIONS_MAX:,} conditions, 6 for each loop and 1 for each coupling, "
                f"got {conditions:,}. Read a part with fewer loops.",
                limit=CONDITIONS_MAX,
            )
        if conditions * len(self.moving) ** 2 > CLOSURE_MAX:
            raise robot.source.error(
                0,
                f"is too large: {conditions:,} loop conditions × {len(self.moving):,}² joints exceed "
                f"{CLOSURE_MAX:,.0f}. Read a part with fewer loops or joints.",
                limit=CLOSURE_MAX,
            )
        self.joint_names = {j.name: self.new_name(j.name, "joint", j.line) for j in self.moving}
        self.bodies = {WORLD: GROUND}
        for name, link in robot.links.items():
            if self.carrier[name] == name:
                self.bodies[name] = self.new_name(name, "body", link.line)

    def new_name(self, name: str, kind: str, line: int) -> str:
        """Return a free name without dots; add a remark if it differs from the name in the file."""
        if len(name) > NAME_MAX:
            rule = f"{kind} {short_repr(name)}: a name must have at most {NAME_MAX} characters."
            raise self.robot.source.error(line, rule, limit=NAME_MAX)
        found = self.names.new(clean_name(name) or kind, f"_{kind}")
        if found != name:
            self.robot.remark(line, f"{kind} '{name}' is called '{found}'.")
        return found

    def body_of(self, link: str) -> str:
        """Return the name of the body that carries a link."""
        return self.bodies[self.carrier[link]]

    def mechanism(
        self, coordinates: tuple[str, ...] | None, start: Mapping[str, float] | None, spins: str
    ) -> Mechanism:
        """Return the mechanism, with its loops closed."""
        robot = self.robot
        bodies, joints = self._bodies(), [self._joint(joint) for joint in self.moving]
        frames, points, springs = self._frames()
        name = self.new_name(robot.name, "mechanism", 0)
        loops, rows = self._loops(), self._coupling_rows()
        couplings = tuple(
            Coupling(
                self.new_name(c.name, "coupling", c.line), (*map(self.coordinate, c.joints),), ratios=c.ratios
            )
            for c in robot.couplings
        )
        motors = [
            Motor(self.new_name(a.name, "motor", a.line), self._driven([a]), ratios=a.ratios)
            for a in robot.actuators
        ]
        starts, own = dict(robot.starts), robot.chosen
        if start is not None:
            starts, own = {**starts, NEAR: {**starts.get(own, {}), **start}}, NEAR
        starts = {name: {self._given(k): v for k, v in s.items()} for name, s in starts.items()}
        is_open = not loops and not rows
        if is_open and starts.get(own):
            robot.remark(0, f"{own} has no effect, because there are no loops to close.")
        made = Mechanism(
            name,
            tuple(bodies),
            tuple(joints),
            points=tuple(points),
            frames=tuple(frames),
            springs=tuple(springs),
            motors=tuple(motors),
            gravity=robot.gravity,
            coordinates=coordinates if is_open else None,
            actuators=self._driven(robot.actuators) or None,
            remarks=map(printable, robot.remarks),
        )
        if is_open:
            start_columns(model_of(made).tree, starts.get(NEAR, {}))  # raises an error for unknown names
            return made
        made, remarks = closed_mechanism(made, loops, rows, starts, own, couplings=couplings)
        made, more = without_spins(made, coordinates, spins)
        robot.remarks += [f"{robot.source.name}: {text}" for text in (*remarks, *more)]
        chosen = self._coordinates(made, coordinates)
        return made.replace(coordinates=chosen, remarks=map(printable, robot.remarks))

    def _bodies(self) -> list[Body]:
        """Return the bodies, with the inertia of all links that they carry, in world axes."""
        robot, groups = self.robot, dict[str, list[Link]]()
        for name, link in robot.links.items():
            carrier = self.carrier[name]
            groups.setdefault(carrier, []).append(link)
            if carrier != name and link.mass and carrier == WORLD:
                robot.remark(link.line, f"link '{name}' is fixed to the ground; its mass has no effect.")
            elif carrier not in (name, WORLD):
                robot.remark(link.line, f"link '{name}' is fixed to '{carrier}' and merged into it.")
        made = []
        for carrier, links in groups.items():
            if carrier == WORLD:
                continue
            origin = tuple(self.pose[carrier][:3, 3].tolist())
            own = robot.links[carrier]
            unknown = [link for link in links if link.mass is None]
            if unknown:
                made.append(Body(self.bodies[carrier], at=origin))
                continue
            mass, com, inertia = self._merged(links)
            given: dict[str, Any] = {
                "mass": mass,
                "com": tuple(com) if mass else None,
                "inertia": inertia,
                "at": origin,
            }
            try:
                body = Body(self.bodies[carrier], **given)
            except ModelError as error:
                try:
                    body = Body(self.bodies[carrier], **given, inertia_exception="as in the file")
                except ModelError:
                    raise robot.source.error(own.line, str(error), **error.numbers) from None
                robot.remark(own.line, f"inertia of link '{carrier}' is kept as it is. {error}")
            made.append(body)
        return made

    def _merged(self, links: Sequence[Link]) -> tuple[float, np.ndarray, np.ndarray]:
        """Return mass, centre of mass and inertia about it of rigidly connected links, in world axes."""
        poses = [self.pose[link.name] for link in links]
        mass, com, inertia = combined_inertia(
            (link.mass or 0.0, T[:3, :3] @ link.com + T[:3, 3], T[:3, :3] @ link.inertia @ T[:3, :3].T)
            for T, link in zip(poses, links, strict=True)
        )
        return mass, com, (inertia + inertia.T) / 2

    def _joint(self, joint: RobotJoint) -> Joint:
        """Return a joint in world axes."""
        T = self.pose[joint.child]
        direction: dict[str, Any] = {
            key: tuple((T[:3, :3] @ value).tolist())
            for key, value in (("axis", joint.axis), ("axis2", joint.axis2))
            if value is not None
        }
        at = tuple((T[:3, :3] @ joint.at + T[:3, 3]).tolist())
        one, two = self.body_of(joint.parent), self.body_of(joint.child)
        try:
            return Joint(
                self.joint_names[joint.name],
                joint.type,  # type: ignore[arg-type]
                (two, one) if joint.turned else (one, two),
                at,
                **direction,
                value=joint.zero if len(joint.rest) == 1 else 0.0,
                **self.laws(joint),
            )
        except ModelError as error:
            raise self.robot.source.error(joint.line, str(error), **error.numbers) from None

    def laws(self, joint: RobotJoint) -> dict[str, Any]:
        """Return springs, damping, armature, friction and limits of a joint."""
        keys = ["damping", "armature", "friction"]
        keys += [] if joint.type in BALL_TYPES else ["stiffness", "rest"]
        limits = self._limits(joint) if len(joint.rest) == 1 else joint.ranges
        found = {key: tuple(getattr(joint, key).tolist()) for key in keys} | {"limits": limits}
        for key in ("effort_limits", "rate_limits"):
            pairs = getattr(joint, key).tolist()
            found[key] = pairs[0] if len(pairs) == 1 else pairs
            if not np.isfinite(pairs).any():
                found[key] = None
        return found

    def _limits(self, joint: RobotJoint) -> tuple[float, float] | None:
        """Return the limits of a joint, or None."""
        if joint.lower == -np.inf and joint.upper == np.inf:
            return None
        if joint.lower < joint.upper:
            return joint.lower, joint.upper
        span = f"{joint.lower:g} to {joint.upper:g}"
        text = f"limits of joint '{joint.name}' are ignored: {span} is not an increasing range."
        self.robot.remark_lost(joint.line, text)
        joint.lower, joint.upper = -np.inf, np.inf
        return None

    def _frames(self) -> tuple[list[Frame], list[Point], list[Spring]]:
        """Return the frames of links and of the file, and the springs with their end points."""
        robot, frames, carriers = self.robot, list[Frame](), dict[str, Frame]()
        for name, link in robot.links.items():
            body = self.carrier[name] == name
            own = f"{name}_frame" if body else name
            found = self.new_name(own, "frame", link.line)
            frames.append(self._frame(found, name, np.eye(4)))
        for frame in robot.frames:
            found = self.new_name(frame.name, "frame", frame.line)
            frames.append(self._frame(found, frame.link, frame.pose))
            carriers[frame.name] = frames[-1]
        points, springs = list[Point](), list[Spring]()
        for spring in robot.springs:
            ends = []
            for k, frame_name in enumerate(spring.frames):
                end = carriers[frame_name]
                ends.append(self.new_name(f"{spring.name}_{k + 1}", "point", spring.line))
                points.append(Point(ends[-1], end.body, end.origin))
            own = self.new_name(spring.name, "spring", spring.line)
            springs.append(
                Spring(
                    own,
                    (ends[0], ends[1]),
                    stiffness=spring.stiffness,
                    rest=spring.rest,
                    damping=spring.damping,
                )
            )
        return frames, points, springs

    def _frame(self, name: str, link: str, pose: np.ndarray) -> Frame:
        """Return a frame from its pose in the frame of a link."""
        T = self.pose[link] @ pose
        axes: Any = tuple(map(tuple, T[:3, :3].T.tolist()))
        return Frame(name, self.body_of(link), origin=tuple(T[:3, 3].tolist()), axes=axes)

    def _loops(self) -> list[Loop]:
        """Return the closing joints, each with its two frames in world axes."""
        made = []
        for loop in self.robot.loops:
            ends = []
            for link, pose in zip(loop.links, loop.frames, strict=True):
                if link != WORLD and link not in self.robot.links:
                    raise self.robot.source.error(
                        loop.line, f"loop '{loop.name}': there is no link '{link}'."
                    )
                ends.append(LoopFrame(self.body_of(link), self.pose[link] @ pose))
            if ends[0].body == ends[1].body:
                raise self.robot.source.error(
                    loop.line, f"loop '{loop.name}' connects '{ends[0].body}' with itself. Remove it."
                )
            name = self.new_name(loop.name, "joint", loop.line)
            laws = {} if loop.joint is None else self.laws(loop.joint)
            first, second = ends
            made.append(Loop(name, loop.type, first, second, laws, axis=loop.axis, axis2=loop.axis2))
        return made

    def _coupling_rows(self) -> list[tuple[str, dict[str, float], float]]:
        """Return couplings as rows: name, coefficients of the joints, and value."""
        made = []
        for c in self.robot.couplings:
            try:
                names = [self.coordinate(j) for j in c.joints]
            except KeyError as error:
                text = f"coupling '{c.name}': there is no moving joint '{error.args[0]}'."
                raise self.robot.source.error(c.line, text) from None
            zeros = [self.robot.joints[j].zero if j in self.robot.joints else 0.0 for j in c.joints]
            value = c.offset + sum(r * zero for r, zero in zip(c.ratios, zeros, strict=True))
            made.append((c.name, dict(zip(names, c.ratios, strict=True)), value))
        return made

    def coordinate(self, name: str) -> str:
        """Return the mechanism's name for a joint of the file, or for one of its components."""
        base, dot, component = name.rpartition(".")
        if dot and name not in self.joint_names and base in self.joint_names:
            return f"{self.joint_names[base]}.{component}"
        return self.joint_names[name]

    def _given(self, name: str) -> str:
        """Return the mechanism's name for a joint or component; return unknown names unchanged."""
        try:
            return self.coordinate(name)
        except KeyError:
            return name

    def _driven(self, actuators: Iterable[RobotActuator]) -> tuple[str, ...]:
        """Return the names of the joints of actuators."""
        return tuple(dict.fromkeys(self.joint_names[j] for actuator in actuators for j in actuator.joints))

    def _coordinates(self, made: Mechanism, wanted: Iterable[str] | None) -> tuple[str, ...] | None:
        """Return the default coordinates: those given, the actuated joints, or the best conditioned."""
        if wanted is not None:
            return tuple(wanted)
        actuated = self._driven(self.robot.actuators)
        free = tuple(j.name for j in made.joints if j.type == "free")
        sets = (tuple(dict.fromkeys((*free, *actuated))), actuated)
        names = default_coordinates(made, sets)
        if names:
            others = ", and the best conditioned others" if {*actuated} < {*names} - {*free} else ""
            are_driven = actuated and {*actuated} <= {*names}
            how = f"are the actuated joints{others}" if are_driven else "are the best conditioned"
            self.robot.remark(0, f"the default coordinates {how}: {', '.join(names)}.")
        elif names is None:
            self.robot.remark(
                0, "no coordinates drive this configuration, which is singular. Give `near` or `coordinates`."
            )
        return names
