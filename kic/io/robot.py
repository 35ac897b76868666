"""Robots as files describe them: links with local frames in a tree, and loops that close it elsewhere.

URDF, SDF and MJCF give each link a frame relative to its parent's, at the zero of all joints, where loops are
usually open. `Robot` holds that; `mechanism_of` merges links without relative motion, closes the loops, and
returns the mechanism in this closed configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kic.description.couplings import Coupling
from kic.description.joint_types import JOINT_COORDINATES
from kic.description.motors import Motor
from kic.description.parts import Body, Frame, Joint, Point, Spring, check_inertia
from kic.description.validation import GROUND
from kic.errors import KicError, ModelError, ModelFileError, SingularError
from kic.io.assembly import Loop, LoopFrame, closed_state
from kic.io.xml import Source
from kic.kinematics.state import phi_of
from kic.mechanism import Mechanism

GRAVITY = (0.0, 0.0, -9.81)
FREE_JOINT = "root_joint"
# the world in a file, which may have a link called "ground"
WORLD = ""


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
    """Joint above a link: `place` (4, 4) is the link's frame in that of its parent, at the zero of the file.

    Point and axes are given in the link's frame. `zero` has the values of the coordinates there.
    """

    name: str
    type: str
    parent: str
    child: str
    place: np.ndarray
    line: int
    at: tuple[float, ...] = (0.0, 0.0, 0.0)
    axis: tuple[float, ...] | None = None
    axis2: tuple[float, ...] | None = None
    zero: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    friction: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    speed: float = np.inf
    effort: float = np.inf


@dataclass
class RobotCoupling:
    """Linear relation Σ ratio (φ − zero) = offset between joints."""

    name: str
    joints: tuple[str, ...]
    ratios: tuple[float, ...]
    offset: float
    line: int


@dataclass
class RobotLoop:
    """Joint that closes a loop: its frame (4, 4) in each of two links; its axes are those of the frame."""

    name: str
    type: str
    links: tuple[str, str]
    frames: tuple[np.ndarray, np.ndarray]
    line: int
    axis: tuple[float, ...] = (0.0, 0.0, 1.0)
    axis2: tuple[float, ...] = (1.0, 0.0, 0.0)
    damping: float = 0.0
    friction: float = 0.0


@dataclass
class RobotFrame:
    """Named frame (4, 4) of a link."""

    name: str
    link: str
    place: np.ndarray
    line: int


@dataclass
class Drive:
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
    drives: list[Drive] = field(default_factory=list)
    springs: list[tuple[str, str, str, float, float, float, int]] = field(default_factory=list)
    """Springs: name, two frames, stiffness, rest length, damping, line."""
    gravity: tuple[float, ...] = GRAVITY
    starts: list[dict[str, Any]] = field(default_factory=list)
    """Values of joints from which the loops may be closed, beside the zero of the file."""
    remarks: list[str] = field(default_factory=list)
    strict: bool = False

    def remark(self, line: int, what: str, lost: bool = False) -> None:
        """Add a remark; if a part is lost, a strict reader raises instead."""
        if lost and self.strict:
            raise self.source.error(line, f"{what} Read it with `strict=False` to accept this.")
        self.remarks.append(f"{self.source.place(line)}: {what}")

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


class _Names:
    """Names of one namespace: dots are replaced, and a name in use gets a suffix."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.used = robot, {GROUND}

    def new(self, name: str, kind: str, line: int) -> str:
        """Return a free name, with a remark if it differs from that of the file."""
        clean = "".join(c if c.isprintable() and c != "." else "_" for c in name).strip() or kind
        found, count = clean, 1
        while found in self.used:
            found = f"{clean}_{kind}" if count == 1 else f"{clean}_{kind}{count}"
            count += 1
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
            pose[joint.child] = pose[link] @ joint.place
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
    robot: Robot, coordinates: Iterable[str] | None = None, start: Mapping[str, float] | None = None
) -> Mechanism:
    """Return the mechanism of a robot, in a configuration that closes its loops.

    Raises
    ------
    ModelFileError
        If the file contradicts itself, or a loop does not close.
    """
    try:
        return _Builder(robot).mechanism(coordinates, start)
    except ModelFileError:
        raise
    except ModelError as error:
        raise ModelFileError(
            f"{robot.source.path or robot.source.name}: {error}",
            **{"path": robot.source.path, "key": "", **error.numbers},
        ) from None


class _Builder:
    """Parts of a mechanism, made from those of a file."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.names = robot, _Names(robot)
        self.placed = _place(robot)
        moving = [joint for joint in robot.joints.values() if joint.type != "fixed"]
        if not moving:
            raise robot.source.error(0, "has no joint that moves. A free body needs `floating_base=True`.")
        self.joint_names = {j.name: self.names.new(j.name, "joint", j.line) for j in moving}
        self.moving = moving
        self.bodies = {WORLD: GROUND}
        for name, link in robot.links.items():
            if self.placed.carrier[name] == name:
                self.bodies[name] = self.names.new(name, "body", link.line)

    def body_of(self, link: str) -> str:
        """Return the name of the body that carries a link."""
        return self.bodies[self.placed.carrier[link]]

    def mechanism(self, coordinates: Iterable[str] | None, start: Mapping[str, float] | None) -> Mechanism:
        """Return the mechanism."""
        robot = self.robot
        bodies, joints = self._bodies(), [self._joint(joint) for joint in self.moving]
        frames, points, springs = self._frames()
        tree = Mechanism(
            self.names.new(robot.name, "mechanism", 0),
            bodies,
            joints,
            points,
            frames=frames,
            gravity=robot.gravity,  # type: ignore[arg-type]
        )
        loops, rows = self._loops(), self._coupling_rows()
        couplings = [
            Coupling(
                self.names.new(c.name, "coupling", c.line), list(map(self.coordinate, c.joints)), c.ratios
            )
            for c in robot.couplings
        ]
        tolerance = 0.0
        if loops or rows:
            limits = {self.joint_names[j.name]: (j.lower, j.upper) for j in self.moving}
            starts = [
                {self.joint_names[k]: v for k, v in s.items() if k in self.joint_names} for s in robot.starts
            ]
            if start is not None:
                start = {self.joint_names.get(k, k): v for k, v in start.items()}
            found = closed_state(tree._model, loops, rows, limits, starts, start, robot.source)
            robot.remarks += [f"{robot.source.name}: {text}" for text in found.remarks]
            tolerance = found.tolerance
            tree, closing = _described_at(tree, found.state, loops)
            joints = [*tree.joints, *closing]
        made = replace(
            tree,
            joints=tuple(joints),
            springs=tuple(springs),
            couplings=tuple(couplings),
            motors=tuple(self._motors()),
            actuators=self._actuators(),
            closure_tolerance=tolerance,
        )
        made = replace(made, coordinates=self._coordinates(made, coordinates))
        return replace(made, remarks=tuple(robot.remarks))

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
            reason = ""
            try:
                check_inertia(f"Body '{carrier}'", inertia, mass)
            except ModelError as error:
                reason = "as in the file"
                robot.remark(own.line, f"inertia of link '{carrier}' is kept as it is. {error}")
            try:
                made.append(
                    Body(
                        self.bodies[carrier],
                        mass,
                        tuple(com) if mass else None,
                        inertia,
                        origin,
                        inertia_exception=reason,
                    )
                )
            except ModelError as error:
                raise robot.source.error(own.line, str(error)) from None
        return made

    def _merged(self, links: Sequence[Link]) -> tuple[float, np.ndarray, np.ndarray]:
        """Return mass, centre of mass and inertia about it of rigidly connected links, in world axes."""
        mass = sum(link.mass or 0.0 for link in links)
        poses = [self.placed.pose[link.name] for link in links]
        centres = [T[:3, :3] @ link.com + T[:3, 3] for T, link in zip(poses, links, strict=True)]
        com = centres[0]
        if mass and len(links) > 1:
            com = sum((link.mass or 0.0) * c for link, c in zip(links, centres, strict=True)) / mass
        inertia = np.zeros((3, 3))
        for link, T, c in zip(links, poses, centres, strict=True):
            arm = c - com
            inertia += T[:3, :3] @ link.inertia @ T[:3, :3].T
            inertia += (link.mass or 0.0) * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        return mass, com, (inertia + inertia.T) / 2

    def _joint(self, joint: RobotJoint) -> Joint:
        """Return a joint in world axes."""
        T = self.placed.pose[joint.child]
        direction = {
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
                rest=joint.rest if single else 0.0,
                damping=joint.damping,
                armature=joint.armature,
                friction=joint.friction,
                limits=self._limits(joint) if single else None,
            )
        except ModelError as error:
            raise self.robot.source.error(joint.line, str(error)) from None

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
            frames.append(self._frame(found, frame.link, frame.place))
            carriers[frame.name] = frames[-1]
        points, springs = list[Point](), list[Spring]()
        for name, a, b, stiffness, rest, damping, line in robot.springs:
            ends = []
            for k, end in enumerate((carriers[a], carriers[b])):
                ends.append(self.names.new(f"{name}_{k + 1}", "point", line))
                points.append(Point(ends[-1], end.body, end.origin))
            own = self.names.new(name, "spring", line)
            springs.append(Spring(own, (ends[0], ends[1]), stiffness, rest, damping))
        return frames, points, springs

    def _frame(self, name: str, link: str, place: np.ndarray) -> Frame:
        """Return a frame given in that of a link."""
        T = self.placed.pose[link] @ place
        return Frame(
            name, self.body_of(link), tuple(T[:3, 3].tolist()), tuple(map(tuple, T[:3, :3].T.tolist()))
        )

    def _loops(self) -> list[Loop]:
        """Return the closing joints with their two frames in the world."""
        made = []
        for loop in self.robot.loops:
            ends = []
            for link, place in zip(loop.links, loop.frames, strict=True):
                if link != WORLD and link not in self.robot.links:
                    raise self.robot.source.error(
                        loop.line, f"loop '{loop.name}': there is no link '{link}'."
                    )
                ends.append(LoopFrame(self.body_of(link), self.placed.pose[link] @ place))
            if ends[0].body == ends[1].body:
                raise self.robot.source.error(
                    loop.line, f"loop '{loop.name}' connects '{ends[0].body}' with itself. Remove it."
                )
            name = self.names.new(loop.name, "joint", loop.line)
            made.append(
                Loop(name, loop.type, ends[0], ends[1], loop.axis, loop.axis2, loop.damping, loop.friction)
            )
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
        driven = [j for drive in self.robot.drives for j in drive.joints]
        return tuple(dict.fromkeys(self.joint_names[j] for j in driven)) or None

    def _motors(self) -> list[Motor]:
        """Return the actuators as ideal motors."""
        made = []
        for drive in self.robot.drives:
            joints = tuple(self.joint_names[j] for j in drive.joints)
            made.append(Motor(self.names.new(drive.name, "motor", drive.line), joints, drive.ratios))
        return made

    def _coordinates(self, made: Mechanism, wanted: Iterable[str] | None) -> tuple[str, ...] | None:
        """Return the default coordinates: those given, the actuated joints, or the best conditioned."""
        if wanted is not None:
            return tuple(wanted)
        if made._model.tree.open:
            return None
        if not made.dof:
            return ()
        tried = self._actuators() or ()
        loose = tuple(j.name for j in made.joints if j.type == "free")
        for names in (tuple(dict.fromkeys((*loose, *tried))), tried):
            if names and _drives(made, names):
                self.robot.remark(0, f"the default coordinates are the actuated joints: {', '.join(names)}.")
                return names
        try:
            found = made.independent_sets(count=1)
            names = found[0].names
        except (KicError, IndexError):
            return None
        self.robot.remark(0, f"the default coordinates were chosen by their condition: {', '.join(names)}.")
        return names


def _drives(mechanism: Mechanism, names: tuple[str, ...]) -> bool:
    """Return True if joints can drive the mechanism in its reference configuration."""
    try:
        own = replace(mechanism, coordinates=names)
        if sum(j.dof for j in own.joints if j.name in names) != own.dof:
            return False
        own.at().coefficients(own.joints[0].name, order=1)
    except (KicError, SingularError):
        return False
    return True


def _described_at(tree: Mechanism, state: np.ndarray, loops: Sequence[Loop]) -> tuple[Mechanism, list[Joint]]:
    """Return an open mechanism described in another configuration, and the joints that close its loops there.

    Free and ball joints are at their zero in the new description.
    """
    from kic.configuration import Configuration

    model = tree._model
    configuration = Configuration(model, (), state[None])
    moved = {GROUND: np.eye(4)} | {b.name: configuration.pose(b.name).as_matrix() for b in tree.bodies}
    values = dict(zip(model.tree.columns, phi_of_columns(model, state), strict=True))

    def point(body: str, x: Any) -> Any:
        return None if x is None else tuple((moved[body][:3, :3] @ x + moved[body][:3, 3]).tolist())

    def vector(body: str, x: Any) -> Any:
        return None if x is None else tuple((moved[body][:3, :3] @ x).tolist())

    bodies = []
    for body in tree.bodies:
        R = moved[body.name][:3, :3]
        inertia = None
        if body.inertia is not None:
            xx, yy, zz, xy, xz, yz = body.inertia
            J = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
            inertia = (J + J.T) / 2
        bodies.append(
            replace(
                body,
                com=point(body.name, body.com),
                at=point(body.name, body.at),
                inertia=inertia,
            )
        )
    joints = []
    for joint in tree.joints:
        first, second = joint.bodies
        ball = joint.type in ("spherical", "free")
        joints.append(
            replace(
                joint,
                at=point(second, joint.at),
                axis=vector(first, joint.axis),
                axis2=vector(second if joint.type == "universal" else first, joint.axis2),
                value=0.0 if ball else tuple(values[c] for c in joint.components),
            )
        )
    points = [replace(p, at=point(p.body, p.at)) for p in tree.points]
    frames = [
        replace(f, origin=point(f.body, f.origin), axes=tuple(vector(f.body, e) for e in f.axes))
        for f in tree.frames
    ]
    closing = []
    for loop in loops:
        frame = moved[loop.first.body] @ loop.first.place
        other = moved[loop.second.body] @ loop.second.place
        axes = {}
        if loop.type in ("revolute", "prismatic", "cylindrical", "universal", "planar"):
            axes["axis"] = tuple((frame[:3, :3] @ loop.axis).tolist())
        if loop.type in ("universal", "planar"):
            axes["axis2"] = tuple((frame[:3, :3] @ loop.axis2).tolist())
        at = tuple(((frame[:3, 3] + other[:3, 3]) / 2).tolist())
        laws = {"damping": loop.damping, "friction": loop.friction}
        closing.append(Joint(loop.name, loop.type, (loop.first.body, loop.second.body), at, **axes, **laws))  # type: ignore[arg-type]
    made = replace(
        tree, bodies=tuple(bodies), joints=tuple(joints), points=tuple(points), frames=tuple(frames)
    )
    return made, closing


def phi_of_columns(model: Any, state: np.ndarray) -> np.ndarray:
    """Return the coordinates (M,) of a state, in the order of the columns of the tree."""
    tree = model.tree
    phi = np.empty(tree.size)
    phi[[tree.column[c] for c in model.coordinates]] = phi_of(tree, state[None])[0]
    return phi
