"""SDF files, including models with loops, which other readers do not support."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

import numpy as np

from kic.errors import short_repr
from kic.io import robot as rb
from kic.io.elements import SDF
from kic.io.robot import WORLD, Robot, RobotJoint
from kic.io.xml import Element, read_root
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import flag

# default of the format
SDF_GRAVITY = (0.0, 0.0, -9.8)
_TYPES = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "universal": "universal",
    "screw": "cylindrical",
}


def from_sdf(
    model: str | os.PathLike[str],
    *,
    floating_base: bool = True,
    coordinates: Iterable[str] | None = None,
    near: Mapping[str, float] | None = None,
    spins: str = "held",
    strict: bool = False,
) -> Mechanism:
    """Read a robot from an SDF file; joints that close loops are kept.

    Parameters
    ----------
    model : str or path
        Path of the file, or its text, which starts with "<". It must have one model.
    floating_base : bool
        True as in the format: a model without a joint to the world moves freely on a free joint called
        "root_joint". False fixes its first link.
    coordinates : sequence of str, optional
        Joints of the default coordinates. By default all joints of an open chain; in a closed one, the best
        conditioned joints.
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
        In a closed configuration. `Mechanism.remarks` lists what was merged, renamed, replaced and ignored.

    Raises
    ------
    ModelFileError
        If the file cannot be read or contradicts itself; the error carries `path` and `line`.

    Examples
    --------
    >>> text = '''<sdf version="1.9"><model name="pendulum"><link name="rod"><inertial>
    ... <pose>0 0 -0.5 0 0 0</pose><mass>2</mass></inertial></link>
    ... <joint name="hinge" type="revolute"><parent>world</parent><child>rod</child>
    ... <axis><xyz>0 1 0</xyz></axis></joint></model></sdf>'''
    >>> kic.from_sdf(text).at([0.0]).dynamics().I.tolist()
    [[1.5]]
    """
    root = read_root(model, "SDF")
    if root.tag != "sdf":
        root.fail("the root of an SDF file must be <sdf>.")
    world = root.find("world")
    models = list((world or root).all("model"))
    if len(models) != 1:
        root.fail(f"the file must have one <model>, got {len(models)}.")
    robot = Robot(
        root.source, models[0].get("name", "robot"), strict=flag("strict", strict), gravity=SDF_GRAVITY
    )
    if world is not None and world.find("gravity") is not None:
        robot.gravity = world.content("gravity", 3)
    for element in (*root.all("include"), *(() if world is None else world.all("include"))):
        element.fail("included models cannot be read. Give the text of the whole model.")
    SDF.check(root, robot)
    major, _, minor = root.get("version", "1.12").partition(".")
    old = major == "1" and minor in ("0", "1", "2", "3", "4")
    _Model(models[0], robot, old).read(flag("floating_base", floating_base))
    remedy = "A free body needs `from_sdf` with `floating_base=True`, and no <static>."
    return rb.mechanism_of(robot, coordinates, near, remedy, spins)


def add_joints(robot: Robot, elements: list[Element]) -> None:
    """Add SDF joints between the links of a tree as joints that close its loops, as in SDF 1.7 and later.

    The pose of the child at the zero of the file places each joint in both links.
    """
    if not elements:
        return
    (pose, carrier), model = rb.place(robot), _Model(elements[0], robot, old=False)
    model.poses |= {j.name: pose[j.child] for j in robot.joints.values()}
    model.poses |= {link: pose[link] for link in robot.links}
    model.carriers |= {link: link for link in robot.links}
    for element in elements:
        if (name := element.get("name")) in model.poses or name in model.parts:
            element.fail(f"two parts of the model are called {short_repr(name)}. Rename one.")
        model.parts[name] = element
    for element in elements:
        model.element, name, kind = element, element.get("name"), element.get("type")
        is_open = _TYPES.get(kind, "cylindrical") == "cylindrical"
        if is_open or any(axis.find("mimic") for axis in element.all("axis", "axis2")):
            what = f"{short_repr(kind)} joint" if is_open else "mimic joint"
            text = f"the {what} {short_repr(name)} of <gazebo> is ignored, which leaves its loop open."
            robot.remark_lost(element.line, f"{text} Close it by `loops`.")
            continue
        SDF.check(element, robot)
        joint = model.joint(element)
        model.close(joint)
        loop = robot.loops[-1]
        if carrier[loop.links[0]] == carrier[loop.links[1]]:
            text = f"joint '{name}' connects two links that are fixed to each other"
            if joint.type != "fixed":
                element.fail(f"{text}. A root that moves needs `floating_base=True`.")
            robot.loops.pop()
            robot.remark(element.line, f"{text}, and has no effect.")


class _Model:
    """Links, joints and frames of a model, with their poses."""

    def __init__(self, element: Element, robot: Robot, old: bool) -> None:
        self.element, self.robot, self.old = element, robot, old
        self.parts: dict[str, Element] = {}
        self.poses: dict[str, np.ndarray] = {"__model__": np.eye(4), "world": np.eye(4)}
        self.carriers: dict[str, str] = {"world": "world"}

    def read(self, floating_base: bool) -> None:
        """Add the links, joints and frames of the model to the robot."""
        robot, element = self.robot, self.element
        for child in element.children:
            if child.tag in ("link", "joint", "frame"):
                name = child.get("name")
                if name == "world" or name.startswith("__"):
                    child.fail(
                        f"the name {short_repr(name)} is reserved by the format. Rename this <{child.tag}>."
                    )
                if name in self.parts:
                    child.fail(f"two parts of the model are called '{name}'. Rename one.")
                self.parts[name] = child
            elif child.tag in ("model", "include"):
                child.fail("models in models cannot be read. Merge them into one.")
        links = [child for child in element.all("link")]
        if not links:
            element.fail("the model has no links.")
        self._place(links)
        for one in links:
            robot.add(self._link(one))
        gears = [one for one in element.all("joint") if one.get("type") == "gearbox"]
        joints = [self.joint(one) for one in element.all("joint") if one not in gears]
        for gear in gears:
            self._gear(gear, joints)
        for frame in element.all("frame"):
            link = self._attached(frame.get("name"))
            pose = np.linalg.inv(self.pose(link)) @ self.pose(frame.get("name"))
            robot.frames.append(
                rb.RobotFrame(frame.get("name"), "" if link == "world" else link, pose, frame.line)
            )
        static, fixed = element.find("static"), element.flag("static")
        if static is not None and fixed:
            robot.remark(static.line, "<static> fixes the first link; joints can move.", lost=bool(joints))
        self._span([link.get("name") for link in links], joints, floating_base and not fixed, fixed)

    def _place(self, links: list[Element]) -> None:
        """Set the pose of the model, which may refer to one of its frames, and the link that carries it."""
        names = [link.get("name") for link in links]
        carrier = self.element.get("canonical_link", "") or names[0]
        if carrier not in names:
            self.element.fail(f"`canonical_link` {short_repr(carrier)} must be a link of the model.")
        self.carriers |= {name: name for name in names} | {"__model__": carrier}
        own = self.element.find("pose")
        if own is not None and own.get("relative_to", "") not in ("", "world"):
            own.fail("the pose of the model must be relative to the world. Give it in world axes.")
        T, frame = own_pose(self.element), self.element.get("placement_frame", "")
        if frame:
            T = T @ np.linalg.inv(self.pose(frame))
        self.poses = {"world": np.eye(4), "__model__": T}

    def pose(self, name: str) -> np.ndarray:
        """Return the pose (4, 4) of a part in the world."""
        for part in reversed(self._chain(name, self.poses, self._base)):
            self.poses[part.get("name")] = self.poses[self._base(part)] @ own_pose(part)
        return self.poses[name]

    def _base(self, part: Element) -> str:
        """Return the name of the part relative to which the pose of a part is given."""
        own = part.find("pose")
        relative = "" if own is None else own.get("relative_to", "")
        return relative or self._above(part) or "__model__"

    def _attached(self, name: str) -> str:
        """Return the link (or "world") that carries a part."""
        for part in reversed(self._chain(name, self.carriers, self._above)):
            self.carriers[part.get("name")] = self.carriers[self._above(part) or "__model__"]
        return self.carriers[name]

    def _above(self, part: Element) -> str:
        """Return the name of the part that carries a joint or frame; '' for links, or if not given."""
        if part.tag == "joint":
            return part.word("child")
        return part.get("attached_to", "") if part.tag == "frame" else ""

    def _chain(self, name: str, known: Mapping[str, Any], above: Callable[[Element], str]) -> list[Element]:
        """Return the chain of parts from a name up to, but excluding, the first known part."""
        chain: dict[str, Element] = {}
        while name not in known:
            part = self.parts.get(name)
            if part is None:
                self.element.fail(f"there is no link, joint or frame {short_repr(name)}.")
            if name in chain:
                part.fail(f"{short_repr(name)} is given relative to itself.")
            chain[name] = part
            name = above(part) or "__model__"
        return list(chain.values())

    def _link(self, element: Element) -> rb.Link:
        """Return a link. The format's defaults are a mass and moments of inertia of 1."""
        link = rb.Link(element.get("name"), element.line, 1.0, inertia=np.eye(3))
        own = element.find("inertial")
        if own is None:
            self.robot.remark(
                element.line, f"link '{link.name}' has no inertia; the format's default is used."
            )
            return link
        link.mass = own.content("mass", 1, "1")[0]
        if link.mass < 0:
            own.fail(f"<mass> must not be negative, got {link.mass:g}.")
        moments = own.find("inertia")
        keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        x = dict.fromkeys(keys, 0.0) | {"ixx": 1.0, "iyy": 1.0, "izz": 1.0}
        if moments is not None:
            x = {key: moments.content(key, 1, str(x[key]))[0] for key in keys}
        if own.flag("auto"):
            link.mass = None
            text = f"mass of link '{link.name}' is unknown: <inertial> leaves it to the collision geometry."
            self.robot.remark_lost(own.line, text)
        rb.set_inertia(link, own_pose(own), x)
        return link

    def joint(self, element: Element) -> RobotJoint:
        """Return a joint, with axes in world coordinates."""
        name, kind = element.get("name"), element.get("type")
        if kind not in _TYPES:
            element.fail(f"joint '{name}': `type` must be one of {', '.join(_TYPES)}, got '{kind}'.")
        ends = []
        for tag in ("parent", "child"):
            own = element.find(tag)
            if own is None:
                element.fail(f"joint '{name}' must have <{tag}>.")
            ends.append(self._attached(own.text.strip()))
        joint = RobotJoint(name, _TYPES[kind], ends[0], ends[1], np.eye(4), element.line)
        for tag, key in (("axis", "axis"), ("axis2", "axis2")):
            own = element.find(tag)
            needed = kind not in ("fixed", "ball") and (tag == "axis" or kind == "universal")
            if needed:
                setattr(joint, key, self._axis(own, name))
            if own is not None and needed:
                self._limits(own, joint, tag, kind == "continuous")
            elif own is not None and kind != "fixed" and self._acts(own):
                text = f"limits and dynamics of <{tag}> of the {kind} joint '{name}' are ignored."
                self.robot.remark_lost(own.line, text)
            mimic = None if own is None else own.find("mimic")
            if mimic is not None:
                self._mimic(mimic, joint, tag)
        if kind == "screw":
            # the translation is the thread's pitch for each turn
            rate = element.content("screw_thread_pitch", 1, "1")[0] / (2 * np.pi)
            if element.find("thread_pitch") is not None and element.find("screw_thread_pitch") is None:
                turns = element.content("thread_pitch", 1)[0]
                if not turns:
                    element.fail("<thread_pitch> must not be zero.")
                rate = -1 / turns
            self.robot.couplings.append(
                rb.RobotCoupling(
                    f"{name} thread", (f"{name}.2", f"{name}.1"), (1.0, -rate), 0.0, element.line
                )
            )
        return joint

    def _mimic(self, element: Element, joint: RobotJoint, tag: str) -> None:
        """Add a coupling: follower = multiplier (leader − reference) + offset (sdf/1.11/mimic.sdf)."""
        leader, axis = element.get("joint"), element.get("axis", "axis")
        other = self.parts.get(leader)
        if other is None or other.tag != "joint" or leader == joint.name:
            element.fail(f"joint '{joint.name}' mimics '{leader}', which is not another joint of the model.")
        names = []
        kinds = {"axis": ("revolute", "prismatic", "universal"), "axis2": ("universal",)}
        followed = (_TYPES.get(other.get("type")), leader, axis)
        for kind, name, which in ((joint.type, joint.name, tag), followed):
            if kind not in kinds.get(which, kinds["axis"]):
                element.fail(f"joint '{joint.name}' mimics '{leader}'; each must have the axis `{which}`.")
            names.append(f"{name}.{2 if which == 'axis2' else 1}" if kind == "universal" else name)
        defaults = {"multiplier": "1", "offset": "0", "reference": "0"}
        factor, offset, reference = (element.content(key, 1, x)[0] for key, x in defaults.items())
        if not factor:
            self.robot.remark_lost(element.line, f"mimic of joint '{joint.name}' with factor 0 is ignored.")
            return
        name, ratios = f"{joint.name} mimics {leader}", (1.0, -factor)
        offset -= factor * reference
        self.robot.couplings.append(rb.RobotCoupling(name, tuple(names), ratios, offset, element.line))

    def _gear(self, element: Element, joints: list[RobotJoint]) -> None:
        """Add a gearbox: θ₂ = −ratio θ₁, by the specification (sdf/1.12/joint.sdf, gearbox_ratio).

        θ₁ is the angle from the reference body to the parent about `axis`, θ₂ to the child about `axis2`.
        """
        name = element.get("name")
        parent, child, base = map(element.word, ("parent", "child", "gearbox_reference_body"))
        ratio = element.content("gearbox_ratio", 1, "1")[0]
        terms = []
        for link, tag in ((child, "axis2"), (parent, "axis")):
            found = [j for j in joints if {j.parent, j.child} == {base, link} and j.type == "revolute"]
            if not found or not ratio:
                text = f"gearbox '{name}' is ignored: no revolute joint connects '{link}' with '{base}'."
                self.robot.remark_lost(element.line, text)
                return
            along = np.array(self._axis(element.find(tag), name)) @ np.array(found[0].axis)
            sign = float(np.sign(along)) * (1.0 if found[0].parent == base else -1.0)
            terms.append((found[0].name, sign * (1.0 if link == child else ratio)))
        names, ratios = zip(*terms, strict=True)
        self.robot.couplings.append(rb.RobotCoupling(name, names, ratios, 0.0, element.line))

    def _axis(self, element: Element | None, name: str) -> tuple[float, ...]:
        """Return the unit axis of a joint in world axes."""
        xyz = (0.0, 0.0, 1.0) if element is None else element.content("xyz", 3, "0 0 1")
        frame = name
        if element is not None and (own := element.find("xyz")) is not None:
            # the only frame of axes before version 1.5, whatever the element says
            of_model = self.old or element.flag("use_parent_model_frame")
            frame = own.get("expressed_in", "") or ("__model__" if of_model else name)
        axis = self.pose(frame)[:3, :3] @ xyz
        size = float(np.linalg.norm(axis))
        if not size > 1e-12:
            (element or self.element).fail(f"the axis of joint '{name}' is zero. Give a direction.")
        return tuple((axis / size).tolist())

    def _acts(self, element: Element) -> bool:
        """Return True if an axis has limits, springs, damping or friction."""
        given = {
            child.tag: part.content(child.tag, 1, finite=False)[0]
            for part in element.all("limit", "dynamics")
            for child in part.children
            if child.tag in ("lower", "upper", "damping", "friction", "spring_stiffness")
        }
        return any(
            abs(x) < rb.NO_LIMIT if key in ("lower", "upper") else x != 0.0 for key, x in given.items()
        )

    def _limits(self, element: Element, joint: RobotJoint, tag: str, continuous: bool) -> None:
        """Set limits, springs, damping and friction of a joint about one of its axes."""
        limit, dynamics = element.find("limit"), element.find("dynamics")
        if limit is not None:
            (lower,), (upper,) = (
                limit.content(key, 1, default, finite=False)
                for key, default in (("lower", "-inf"), ("upper", "inf"))
            )
            lower, upper = rb.bounds(lower, upper)
            if continuous:
                if np.isfinite([lower, upper]).any():
                    text = f"joint '{joint.name}' is continuous, and its limits are ignored."
                    self.robot.remark(limit.line, text)
            elif joint.type in ("revolute", "prismatic"):
                joint.lower, joint.upper = lower, upper
            elif not lower < upper:
                text = f"limits {lower:g} to {upper:g} of joint '{joint.name}' are ignored."
                self.robot.remark_lost(limit.line, text)
            elif np.isfinite([lower, upper]).any():
                # a screw has them at its rotation
                pairs = [*(joint.ranges or [(-np.inf, np.inf)] * 2)]
                pairs[int(tag == "axis2")] = lower, upper
                joint.ranges = tuple(pairs)
            self.robot.read_limits(limit, joint, int(tag == "axis2"))
        if dynamics is not None:
            words = ("damping", "friction", "spring_stiffness", "spring_reference")
            for key, word in zip(("damping", "friction", "stiffness", "rest"), words, strict=True):
                # a screw has them at its rotation
                getattr(joint, key)[int(tag == "axis2")] = dynamics.content(word, 1, "0")[0]

    def _span(self, links: list[str], joints: list[RobotJoint], floating: bool, static: bool) -> None:
        """Add the joints of a tree from the world, and the others as loops.

        Coupled joints go into the tree first. A joint is reversed only if nothing else reaches its parent.
        Links without a connection to the world get a free or fixed joint.
        """
        robot, pose = self.robot, {link: self.pose(link) for link in (*links, "world")}
        named = [name for c in robot.couplings for name in c.joints]
        coupled = {*named, *(name.rpartition(".")[0] for name in named)}
        at: dict[str, list[int]] = {}
        for k, joint in enumerate(joints):
            for end in {joint.parent, joint.child}:
                at.setdefault(end, []).append(k)
        names = rb.Names(joint.name for joint in joints)
        reached, left = set[str](), dict(enumerate(joints))
        front = list[tuple[bool, bool, int]]()

        def reach(link: str) -> None:
            reached.add(link)
            for k in at.get(link, ()):
                joint = joints[k]
                heappush(front, (joint.name not in coupled, joint.parent != link, k))

        def span() -> None:
            while front:
                _, turned, k = heappop(front)
                joint = joints[k]
                above, below = (joint.child, joint.parent) if turned else (joint.parent, joint.child)
                if k in left and below not in reached:
                    del left[k]
                    self._add(joint, above, below, pose)
                    reach(below)

        first = not any("world" in (joint.parent, joint.child) for joint in joints)
        if first:
            self._add_root(names.new(rb.FREE_JOINT), links[0], pose, floating)
            reach(links[0])
        base = links[0] if first else "world"
        reach("world")
        span()
        for link in links:
            if link not in reached:
                name = names.new(f"{rb.FREE_JOINT}_{link}")
                self._add_root(name, link, pose, floating)
                if not static:
                    how = f"it moves freely by joint '{name}'" if floating else "it is fixed to the world"
                    text = f"no joint connects link '{link}' with '{base}'; {how}."
                    robot.remark_lost(self.parts[link].line, text)
                reach(link)
                span()
        for joint in left.values():
            self.close(joint)

    def close(self, joint: RobotJoint) -> None:
        """Add a joint that closes a loop, with its frames in both links at the zero of the file."""
        place, links = self.pose(joint.name), (joint.parent, joint.child)
        frames = tuple(np.linalg.inv(self.pose(link)) @ place for link in links)
        # URDF files may have a link of this name
        world = () if "world" in self.robot.links else ("world",)
        ends = tuple(WORLD if link in world else link for link in links)
        inverse = np.linalg.inv(place)[:3, :3]
        axes = {
            key: tuple((inverse @ axis).tolist())
            for key in ("axis", "axis2")
            if (axis := getattr(joint, key)) is not None
        }
        self.robot.loops.append(
            rb.RobotLoop(joint.name, joint.type, ends, frames, joint.line, joint, **axes)  # type: ignore[arg-type]
        )

    def _add_root(self, name: str, link: str, pose: Mapping[str, np.ndarray], floating: bool) -> None:
        """Add a free or fixed joint from the world to a link; free coordinates are the pose of the link."""
        T = np.eye(4) if floating else pose[link]
        self.robot.add(RobotJoint(name, "free" if floating else "fixed", WORLD, link, T, 0))

    def _add(self, joint: RobotJoint, above: str, below: str, pose: Mapping[str, np.ndarray]) -> None:
        """Add a joint of the tree between two links, reversed if the upper one is its child."""
        place, own = self.pose(joint.name), np.linalg.inv(pose[below])
        joint.turned = joint.parent != above
        joint.parent, joint.child = WORLD if above == "world" else above, below
        joint.pose = np.linalg.inv(pose[above]) @ pose[below]
        joint.at = tuple((own @ place)[:3, 3].tolist())
        for key in ("axis", "axis2"):
            axis = getattr(joint, key)
            if axis is not None:
                setattr(joint, key, tuple((own[:3, :3] @ axis).tolist()))
        self.robot.add(joint)


def own_pose(element: Element) -> np.ndarray:
    """Return the frame (4, 4) of the <pose> of an element."""
    own = element.find("pose")
    if own is None:
        return np.eye(4)
    form = own.get("rotation_format", "euler_rpy")
    if form == "quat_xyzw":
        seven = own.numbers(own.text.strip() or "0 0 0 0 0 0 1", 7, "<pose>")
        return rb.transform(seven[:3], rb.quaternion_axes(own, seven[3:]))
    if form != "euler_rpy":
        own.fail(f"`rotation_format` must be euler_rpy or quat_xyzw, got {short_repr(form)}.")
    six = np.array(own.numbers(own.text.strip() or "0 0 0 0 0 0", 6, "<pose>"))
    return rb.transform(six[:3], rb.rpy(np.radians(six[3:]) if own.flag("degrees") else six[3:]))
