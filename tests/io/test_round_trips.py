"""Mechanisms written for other packages: random ones through these packages, and properties of all parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, get_args
from xml.dom import minidom

import numpy as np
import pytest
from raising import refuses
from round_trips import PEERS, differences, random_mechanism
from sampling import random_body

import kic
from kic.description.description import MechanismDescription, Part

# relative to sums of about 30 terms with 6 joints in a row; 20 times the largest of 1,300 mechanisms
ROUND_OFF = 1e-11
X = (1.0, 0.0, 0.0)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("seed", range(16))
def test_random_mechanisms_through_another_package(peer, seed):
    pytest.importorskip(peer)
    m = random_mechanism(np.random.default_rng([seed, 17]), peer)
    found = differences(m, peer)
    assert max(found.values()) < ROUND_OFF, found


@pytest.mark.parametrize(
    ("first", "kind", "more"),
    [
        ("a", "spherical", {}),
        ("ground", "free", {}),
        ("ground", "free", {"damping": (1.0, 2.0, 3.0, 4.0, 4.0, 4.0)}),  # three slides and a ball
        ("a", "free", {"value": (0.5, 0.6, 0.7, 0.0, 0.0, 0.0)}),
    ],
)
def test_ball_joints_with_axes_in_mujoco(first, kind, more):
    pytest.importorskip("mujoco")
    rng = np.random.default_rng(5)
    axis = rng.normal(size=3)
    m = kic.Mechanism(
        "ball",
        [random_body(rng, name) for name in "ab"],
        [
            kic.Joint("R", "revolute", ("ground", "a"), (0, 0, 0), (0.0, 0.2, 1.0)),
            kic.Joint("S", kind, (first, "b"), (0.5, 0.1, 0.3), axis, axis2=np.cross(axis, X), **more),
        ],
        gravity=(1.0, 2.0, -9.0),
    )
    found = differences(m, "mujoco")
    assert max(found.values()) < ROUND_OFF, found


def several_joints(seed: int, loop: bool, ball: bool) -> str:
    """Return a chain in MJCF of bodies with several hinges and slides, with a ball at the end or without."""
    rng = np.random.default_rng(seed)

    def numbers(count: int = 3) -> str:
        return " ".join(map(repr, rng.normal(size=count).tolist()))

    kinds = [rng.permutation(["hinge", "hinge", "slide", "hinge"])[: 2 + k % 3] for k in range(3)]
    kinds.append(np.array(["slide", "hinge", "ball" if ball else "hinge"]))
    text = f'<mujoco model="m"><compiler angle="radian"/><option gravity="{numbers()}"/><worldbody>'
    for k, body in enumerate(kinds):
        text += f'<body name="b{k}" pos="{numbers()}" quat="{numbers(4)}">'
        text += f'<inertial pos="{numbers()}" mass="{1 + k}" diaginertia="0.3 0.4 0.5"/>'
        for j, kind in enumerate(body):
            own = f'pos="{numbers()}"' + f' axis="{numbers()}" ref="{rng.normal()}" stiffness="2"' * (
                kind != "ball"
            )
            text += f'<joint name="j{k}{j}" type="{kind}" damping="{0.1 * (j + 1)}" {own}/>'
    text += '<site name="tip" pos="0.1 0.2 0.3"/>' + "</body>" * len(kinds) + "</worldbody>"
    closing = '<equality><connect name="loop" body1="b2" body2="world" anchor="0 0 0.1"/></equality>'
    return text + closing * loop + '<actuator><motor name="M" joint="j11" gear="3"/></actuator></mujoco>'


@pytest.mark.parametrize("seed", range(6))
def test_bodies_with_several_joints_are_written_as_they_were_read(seed):
    mujoco = pytest.importorskip("mujoco")
    text = several_joints(seed, loop=seed % 2 == 1, ball=seed > 3)
    m = kic.from_mjcf(text)
    written = kic.to_mjcf(m)
    given, found = (mujoco.MjModel.from_xml_string(one) for one in (text, written))
    names = "nbody", "njnt", "nu", "neq"
    assert [getattr(given, key) for key in names] == [getattr(found, key) for key in names]
    assert given.jnt_type.tolist() == found.jnt_type.tolist()
    again = kic.from_mjcf(written, coordinates=m.coordinates)
    assert [body.name for body in again.bodies] == [body.name for body in m.bodies]
    assert [joint.name for joint in again.joints] == [joint.name for joint in m.joints]
    for one in ("body", "; body"):
        assert f"{one} 'b" not in written
    # rates of a ball are in the axes of its body, which differ
    qpos = given.qpos0 + 0.3 * np.arange(given.nq)
    there = [] if seed > 3 else [forces_in_mujoco(mujoco, model, qpos) for model in (given, found)]
    assert all(
        np.allclose(a, b, rtol=0.0, atol=ROUND_OFF * np.abs(a).max()) for a, b in zip(*there, strict=True)
    )
    # frames of bodies have the axes of the file that was read, by which `joint_order` turns balls
    for read in (m, again):
        differing = differences(replace(read, frames=m.frames[-1:]), "mujoco")
        assert max(differing.values()) < ROUND_OFF, differing


def forces_in_mujoco(mujoco: Any, model: Any, qpos: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the mass matrix, the bias forces and those of springs and dampers."""
    data, M = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    data.qpos[:], data.qvel[:] = qpos, np.linspace(-1.0, 2.0, model.nv)
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, M)
    return M, data.qfrc_bias.copy(), data.qfrc_passive.copy()


def test_bodies_without_mass_are_joints_of_the_body_below():
    """Those with parts that others refer to remain errors, as do more than six joints in a row."""
    rng = np.random.default_rng(4)

    def chain(count: int, kind: str = "revolute", **more: Any) -> kic.Mechanism:
        names = [*(f"k{k}" for k in range(count - 1)), "rod"]
        joints = []
        for k, ends in enumerate(zip(["ground", *names], names, strict=False)):
            own = kind if k == 1 else "revolute"
            place = [] if own == "fixed" else [rng.normal(size=3), rng.normal(size=3)]
            joints.append(kic.Joint(f"J{k}", own, ends, *place))
        bodies = [*(kic.Body(name, mass=0.0) for name in names[:-1]), random_body(rng, "rod")]
        return kic.Mechanism("m", bodies, joints, **more)

    text = kic.to_mjcf(chain(6))
    assert text.count("<body ") == 1
    assert text.count('type="hinge"') == 6
    assert "not written: body 'k0'; body 'k1'" in text
    for m in (chain(3, "fixed"), chain(3, "cylindrical"), chain(4, "prismatic")):
        text = kic.to_mjcf(m)
        assert text.count("<body ") == 1
        assert text.count("<joint ") == m.dof
    pointed, framed = chain(3, points=[kic.Point("P", "k1", X)]), chain(3, frames=[kic.Frame("F", "k0")])
    for wrong in (chain(7), pointed, framed):
        refuses(lambda wrong=wrong: kic.to_mjcf(wrong), kic.ModelError, match="lacks mass")


def ring(kind: str = "revolute", closed: bool = True, laws: bool = False, **more: Any) -> kic.Mechanism:
    """Return a loop with a joint "K" of a kind, or an open chain; all other joints may have laws, too."""
    rng = np.random.default_rng(3)
    bodies = [random_body(rng, name) for name in "abc"]
    axes = {"revolute": 1, "prismatic": 1, "cylindrical": 1, "universal": 2, "planar": 2}

    def add(name: str, kind: str, pair: tuple[str, str], **more: Any) -> kic.Joint:
        axis = rng.normal(size=3)
        both = {"axis": tuple(axis), "axis2": tuple(np.cross(axis, rng.normal(size=3)))}
        own = {key: both[key] for key in ("axis", "axis2")[: axes.get(kind, 0)]}
        return kic.Joint(name, kind, pair, **({"at": tuple(rng.normal(size=3))} | own | more))  # type: ignore[arg-type]

    own = {"damping": 0.3} if laws else {}
    ends = ("c", "ground") if closed and kind not in ("spherical", "free") else ("ground", "c")
    joints = [
        add("A", "cylindrical", ("ground", "a"), **own),
        add("B", "universal", ("a", "b"), **own),
        add("D", "planar", ("c", "b"), **own),
        add("K", kind, ends, **more),
    ]
    if not closed:
        joints[2:] = [add("K", kind, ("ground" if kind in ("spherical", "free") else "b", "c"), **more)]
    points = [kic.Point(f"p{body}", body, tuple(rng.normal(size=3))) for body in ("ground", *"abc")]
    return kic.Mechanism("ring", bodies, joints, points=points, gravity=(1.0, 2.0, -9.0))


def ready(m: kic.Mechanism) -> kic.Mechanism:
    """Return a mechanism with default coordinates that drive it."""
    names = m.mobility().independent_sets(count=1)[0].names
    return replace(m, coordinates=names)


def joint_cases(
    key: str, give: Callable[[int], Any], balls: bool = True
) -> list[tuple[kic.Mechanism, kic.Mechanism]]:
    """Return mechanisms without and with a property of a joint, in chains, loops, and where they are cut."""
    made = []
    counts = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2, "planar": 3}
    if key not in ("damping", "limits"):  # which show that all kinds are written alike
        counts = {kind: counts[kind] for kind in ("revolute", "universal")}
    counts = ({} if give is uniform else counts) | ({"spherical": 3, "free": 6} if balls else {})
    for kind, count in counts.items():
        forms = [{"closed": False}, {}, {"laws": True}]
        # a free joint in a loop has no coordinates, and the value of a cut joint is no law
        for form in forms[:1] if kind == "free" or key == "value" else forms:
            rest = {"stiffness": 2.0} if key == "rest" else {}
            made.append((ring(kind, **form, **rest), ring(kind, **form, **rest, **{key: give(count)})))
    return made


def spread(count: int) -> Any:
    """Return different numbers for the coordinates, equal for the rotation of a ball."""
    numbers = [0.4, 0.7, 0.2, 0.9, 0.9, 0.9][:count]
    return numbers[0] if count == 1 else tuple(numbers)


def uniform(count: int) -> Any:
    return 0.7


def pairs(count: int) -> Any:
    made = [(-1.0, 2.0), (-np.inf, 3.0), (-2.0, np.inf)][:count]
    return made[0] if count == 1 else tuple(made)


def bounds(count: int) -> Any:
    made = [(-2.0, 2.0), (-3.0, 3.0), (-4.0, 4.0), (-5.0, 5.0), (-6.0, 6.0), (-7.0, 7.0)][:count]
    return made[0] if count == 1 else tuple(made)


def with_parts(**parts: Any) -> list[tuple[kic.Mechanism, kic.Mechanism]]:
    """Return an open chain and a loop, without and with some parts."""
    made = []
    for form in ({"closed": False}, {}):
        m = ring(**form)
        made.append((m, replace(m, **{kind: (*getattr(m, kind), *more) for kind, more in parts.items()})))
    return made


def changed(kind: str, index: int, **more: Any) -> list[tuple[kic.Mechanism, kic.Mechanism]]:
    """Return an open chain and a loop, before and after a change of a part."""
    made = []
    for form in ({"closed": False}, {}):
        m = ring(**form)
        parts = [*getattr(m, kind)]
        parts[index] = replace(parts[index], **more)
        made.append((m, replace(m, **{kind: tuple(parts)})))
    return made


ENDS = ("pa", "pc")
SPRING = kic.Spring("coil", ENDS, stiffness=2.0, rest=0.3, damping=0.4)
COUPLED = ("A.1", "B.2")
TOOL = kic.Frame("tool", "b", origin=(0.1, 0.2, 0.3), axes=((0, 1, 0), (-1, 0, 0), (0, 0, 1)))
MOTOR = kic.Motor("M", ("A.1",), ratios=(5.0,))
ELECTRIC = {"inertia": 0.0, "damping": 0.0, "friction": 0.0, "resistance": 1.0, "inductance": 0.1}
ELECTRIC |= {"torque_constant": 0.2, "speed_constant": 0.3}

# mechanisms without and with each property
CASES: dict[str, Callable[[], list[tuple[kic.Mechanism, kic.Mechanism]]]] = {
    "Body.mass": lambda: changed("bodies", 1, mass=9.0) + changed("bodies", 1, mass=None, inertia=None),
    "Body.com": lambda: changed("bodies", 1, com=(0.4, 0.5, 0.6)),
    "Body.inertia": lambda: (
        changed("bodies", 1, inertia=(5.0, 6.0, 7.0, 0.1, 0.2, 0.3)) + changed("bodies", 1, inertia=None)
    ),
    "Joint.type": lambda: [(ring(), ring("prismatic"))],
    "Joint.bodies": lambda: changed("joints", 1, bodies=("b", "a")),
    "Joint.at": lambda: changed("joints", 1, at=(0.3, 0.1, 0.2)),
    "Joint.axis": lambda: changed("joints", 0, axis=(0.3, 0.1, 0.2)),
    "Joint.axis2": lambda: [
        (ring("planar"), replace(m, joints=(*m.joints[:3], turned(m.joints[3])))) for m in [ring("planar")]
    ],
    "Joint.value": lambda: joint_cases("value", lambda n: spread(n), balls=False),
    "Joint.stiffness": lambda: joint_cases("stiffness", spread, balls=False),
    "Joint.rest": lambda: joint_cases("rest", spread, balls=False),
    "Joint.damping": lambda: joint_cases("damping", spread) + joint_cases("damping", uniform),
    "Joint.armature": lambda: joint_cases("armature", spread) + joint_cases("armature", uniform),
    "Joint.friction": lambda: joint_cases("friction", spread) + joint_cases("friction", uniform),
    "Joint.limits": lambda: [
        *joint_cases("limits", pairs, balls=False),
        (ring("free", closed=False), ring("free", closed=False, limits=pairs(3))),
    ],
    "Joint.effort_limits": lambda: joint_cases("effort_limits", bounds),
    "Joint.rate_limits": lambda: joint_cases("rate_limits", bounds),
    "Joint.swing": lambda: [(ring("universal"), ring("universal", swing=0.5))],
    "Joint.swing_axis": lambda: [(ring("spherical"), ring("spherical", swing=0.5, swing_axis=(0, 0, 1)))],
    "Point.body": lambda: changed("points", 1, body="b"),
    "Point.at": lambda: changed("points", 1, at=(0.1, 0.2, 0.3)),
    "Point.mass": lambda: changed("points", 2, mass=1.5),
    "Spring.damping": lambda: with_parts(springs=[replace(SPRING, stiffness=0.0)]),
    "Force.axes": lambda: with_parts(forces=[kic.Force("push", "pa", (1, 2, 3), axes="body")]),
    "Moment.axes": lambda: with_parts(moments=[kic.Moment("twist", "a", (1, 2, 3), axes="body")]),
    "Distance.limits": lambda: with_parts(distances=[kic.Distance("rod", ENDS, limits=(0.1, 9.0))]),
    "Distance.effort_limits": lambda: with_parts(distances=[kic.Distance("rod", ENDS, effort_limits=9.0)]),
    "Distance.rate_limits": lambda: with_parts(distances=[kic.Distance("rod", ENDS, rate_limits=9.0)]),
    "Coupling.joints": lambda: with_parts(couplings=[kic.Coupling("gear", COUPLED, ratios=(1.0, 2.0))]),
    "Coupling.ratios": lambda: with_parts(
        couplings=[kic.Coupling("gear", ("A.1", "A.2", "B.2"), ratios=(1.0, 2.0, 0.7))]
    ),
    "Motor.joints": lambda: (
        with_parts(motors=[MOTOR]) + with_parts(motors=[replace(MOTOR, joints=COUPLED, ratios=(2.0, 3.0))])
    ),
    "Motor.ratios": lambda: with_parts(motors=[MOTOR]),
    "Motor.inertia": lambda: with_parts(motors=[replace(MOTOR, inertia=0.1)]),
    "Motor.damping": lambda: with_parts(motors=[replace(MOTOR, damping=0.1)]),
    "Motor.friction": lambda: with_parts(motors=[replace(MOTOR, friction=0.1)]),
    **dict.fromkeys(
        [f"Motor.{key}" for key in ("resistance", "inductance", "torque_constant", "speed_constant")],
        lambda: with_parts(motors=[replace(MOTOR, **ELECTRIC)]),
    ),
    "MechanismDescription.gravity": lambda: [(ring(), replace(ring(), gravity=(3.0, 2.0, 1.0)))],
}
TOUCH = kic.Contact(
    "touch", "soft", ("a", "ground"), (0.1, 0.2, 0.3), normal=(0, 0, 1), friction=0.5, torsion=0.1
)
AXES, LIMITED = (("ground", "a"), (1, 0, 0), (0, 1, 1)), ("limits", "effort_limits", "rate_limits")
for kind, part, keys in (
    ("frames", TOOL, ("body", "origin", "axes")),
    ("springs", SPRING, ("points", "stiffness", "rest")),
    ("forces", kic.Force("push", "pa", (1, 2, 3)), ("point", "force")),
    ("moments", kic.Moment("twist", "a", (1, 2, 3)), ("body", "moment")),
    ("distances", kic.Distance("rod", ENDS, axis=(0.3, -1, 0.2), fixed=True), ("points", "axis", "fixed")),
    ("angles", kic.Angle("w", *AXES, fixed=True), ("bodies", "axis", "axis2", "fixed")),
    ("angles", kic.Angle("w", *AXES, limits=(0.1, 3), effort_limits=9, rate_limits=9), LIMITED),
    ("contacts", TOUCH, [x.name for x in fields(kic.Contact) if x.name != "name"]),
):
    names = [f"{type(part).__name__}.{key}" for key in keys]
    CASES |= dict.fromkeys(names, lambda kind=kind, part=part: with_parts(**{kind: [part]}))
# definitions that `terms` turns into ratios, and fields without an effect on motion
NONE = {
    "Coupling.gears", "Coupling.belt", "Coupling.pitch_point", "Body.inertia_exception",
    "Body.at",  # rows of a body are those of its link, whose origin is at its joint
    "CenterOfMass.bodies",  # an output, named in a comment
    "Joint.held", "Distance.held", "Angle.held",  # an error, because files cannot hold coordinates
    *(f"MechanismDescription.{key}" for key in (
        "info", "units", "remarks", "closure_tolerance",
        "coordinates", "actuators",  # arguments of the readers
    )),
}  # fmt: skip


def turned(joint: kic.Joint) -> kic.Joint:
    """Return a joint with its second axis turned about the first."""
    return replace(joint, axis2=tuple(np.cross(joint.axis, joint.axis2)))


def every_field() -> set[str]:
    """Return the fields of all parts, and those of a description that hold no parts."""
    kinds = {x.name for x in fields(MechanismDescription) if "..." in str(x.type) and x.name != "remarks"}
    kinds -= {"coordinates", "actuators"}
    found = {f"{part.__name__}.{x.name}" for part in get_args(Part) for x in fields(part) if x.name != "name"}
    own = {x.name for x in fields(MechanismDescription)} - kinds - {"name"}
    return found | {f"MechanismDescription.{key}" for key in own}


def test_every_field_of_a_description_has_a_case():
    assert every_field() == set(CASES) | NONE
    assert not set(CASES) & NONE


@pytest.mark.slow_for(  # properties that joints of all types have
    "Joint.armature", "Joint.damping", "Joint.effort_limits", "Joint.friction", "Joint.limits",
    "Joint.rate_limits", "Joint.rest", "Joint.stiffness",
)  # fmt: skip
@pytest.mark.parametrize("peer", ["mujoco", "urdf"])
@pytest.mark.parametrize("key", {cases: key for key, cases in CASES.items()}.values())
def test_properties_are_written_or_raise(key, peer):
    if peer == "mujoco":
        pytest.importorskip(peer)
    for without, given in CASES[key]():
        try:
            kic.to_mjcf(given) if peer == "mujoco" else kic.to_urdf(given)
        except kic.ModelError as error:
            raised = error
        else:
            raised = None
        if raised is not None:
            numbers = raised.numbers
            lost = numbers.get("parts") or [numbers.get("name", numbers.get("joint"))]
            assert {"K", *(x for x in given._parts if given._parts[x] != without._parts.get(x))} & {*lost}, (
                raised
            )
            continue
        given, without = ready(given), ready(without)
        found = differences(given, peer)
        assert max(found.values()) < ROUND_OFF, (key, given.joints, found)
        # the comparison sees the property
        try:
            assert max(differences(given, peer, without).values()) > 1e-6, (key, given.joints)
        except KeyError:
            continue


@pytest.mark.parametrize("write", [lambda m: kic.to_urdf(m).text, kic.to_mjcf])
def test_settings_that_a_file_does_not_have_are_named(write):
    """Reference points, settings and outputs do not change the motion, but rows and results."""
    bodies = [
        kic.Body("a", mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.2)),
        kic.Body("b", mass=1.0, com=(1, 0, 0), inertia=(0.1, 0.2, 0.2)),
    ]
    joints = [
        kic.Joint("A", "revolute", ("ground", "a"), (0, 0, 0), (0, 0, 1)),
        kic.Joint("B", "revolute", ("a", "b"), (1, 0, 0), (0, 0, 1)),
    ]
    m = kic.Mechanism("two", bodies, joints)
    words = {"coordinates": ("B", "A"), "actuators": ("B",), "closure_tolerance": 0.001}
    for key, value in words.items():
        shown = f"{key} {value if key == 'closure_tolerance' else ', '.join(value)}"  # type: ignore[arg-type]
        assert shown in write(replace(m, **{key: value}))  # type: ignore[arg-type]
        assert key not in write(m)
    note = next(line for line in write(m).splitlines() if "<!--" in line)
    # the centre of mass of "b" is at its joint
    assert "of bodies a -->" in note


@pytest.mark.parametrize("write", [lambda m: kic.to_urdf(m).text, kic.to_mjcf])
@pytest.mark.parametrize(
    "name", ["a--b", "a---b", "a----b", "--", "-->", "<!--", "]]>", "a-", "&amp;", "'\""]
)
def test_any_name_is_valid_in_xml(write, name):
    """Names are in attributes, and in the comment on what a file does not have."""
    body = kic.Body(name, mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.2))
    joint = kic.Joint(f"{name} A", "revolute", ("ground", name), (0, 0, 0), (0, 0, 1))
    points = [kic.Point("p", name, (1, 0, 0)), kic.Point("n", "ground", (0, 0, 0))]
    distance = kic.Distance(f"{name} d", ("p", "n"))
    root = minidom.parseString(
        write(kic.Mechanism(name, [body], [joint], points=points, distances=[distance]))
    )
    comments = [node.data for node in root.documentElement.childNodes if isinstance(node, minidom.Comment)]
    assert name in "".join(comments).replace("- ", "-")
