"""Robots read from URDF, SDF and MJCF texts: geometry, loops, remarks and errors."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from raising import raises, refuses
from scipy.spatial.transform import RigidTransform, Rotation

import kic

needs_mujoco = pytest.mark.skipif(importlib.util.find_spec("mujoco") is None, reason="needs mujoco")

INERTIA = '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="-0.002" iyz="0.003"/>'


def link(name: str, mass: float = 1.0, com: str = "0.1 0.2 0.3", rpy: str = "0.1 0.2 0.3") -> str:
    inertial = f'<origin xyz="{com}" rpy="{rpy}"/><mass value="{mass}"/>{INERTIA}'
    return f'<link name="{name}"><inertial>{inertial}</inertial></link>'


def joint(
    name: str, kind: str, parent: str, child: str, xyz: str = "0 0 0", rpy: str = "0 0 0", more: str = ""
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/>{more}</joint>'
    )


ARM = (
    '<robot name="arm"><link name="base"/>'
    + link("upper", 2.0)
    + link("lower")
    + link("plate", 0.5)
    + link("tool", 0.3)
    + joint("shoulder", "revolute", "base", "upper", "0 0 0.5", "0.3 0 0.2",
            '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="10" velocity="3"/>'
            '<dynamics damping="0.7" friction="0.2"/>')
    + joint("slide", "prismatic", "upper", "lower", "0.4 0 0", "0 0.5 0", '<axis xyz="1 1 0"/>'
            '<limit lower="-1" upper="1" effort="10" velocity="3"/>')
    + joint("mount", "fixed", "lower", "plate", "0.1 0.2 0", "0 0 1.2")
    + joint("wrist.1", "continuous", "plate", "tool", "0 0 0.2", "1.1 0 0", '<axis xyz="0 0 2"/>')
    + "</robot>"
)  # fmt: skip

# four links of a square of side 1 in the plane x y, cut between the third link and the base
FOUR_BAR = (
    '<robot name="four-bar"><link name="base"/>'
    + "".join(link(f"bar{k}", com="0.5 0 0", rpy="0 0 0") for k in (1, 2, 3))
    + '<link name="end"/><link name="pivot"/>'
    + joint("A", "continuous", "base", "bar1", rpy="0 0 1.3", more='<axis xyz="0 0 1"/>')
    + joint("B", "continuous", "bar1", "bar2", "1 0 0", "0 0 -1.1", '<axis xyz="0 0 1"/>')
    + joint("C", "continuous", "bar2", "bar3", "1 0 0", "0 0 -1.4", '<axis xyz="0 0 1"/>')
    + joint("end_fixed", "fixed", "bar3", "end", "1 0 0")
    + joint("pivot_fixed", "fixed", "base", "pivot", "1 0 0")
    + "</robot>"
)


def chain(values: dict[str, float]) -> dict[str, np.ndarray]:
    """Return the poses of the links of ARM, multiplied out."""

    def origin(xyz, rpy):
        T = np.eye(4)
        T[:3, :3] = Rotation.from_euler("xyz", rpy).as_matrix()
        T[:3, 3] = xyz
        return T

    def turned(axis, angle):
        T = np.eye(4)
        T[:3, :3] = Rotation.from_rotvec(angle * np.array(axis) / np.linalg.norm(axis)).as_matrix()
        return T

    def moved(axis, length):
        T = np.eye(4)
        T[:3, 3] = length * np.array(axis) / np.linalg.norm(axis)
        return T

    upper = origin((0, 0, 0.5), (0.3, 0, 0.2)) @ turned((0, 1, 0), values["shoulder"])
    lower = upper @ origin((0.4, 0, 0), (0, 0.5, 0)) @ moved((1, 1, 0), values["slide"])
    plate = lower @ origin((0.1, 0.2, 0), (0, 0, 1.2))
    tool = plate @ origin((0, 0, 0.2), (1.1, 0, 0)) @ turned((0, 0, 1), values["wrist_1"])
    return {"upper": upper, "lower": lower, "plate": plate, "tool": tool}


def test_poses_and_inertia_of_an_arm():
    m = kic.from_urdf(ARM)
    values = {"shoulder": 0.7, "slide": -0.3, "wrist_1": 1.9}
    c = m.at(values)
    placed = chain(values)
    for name, T in placed.items():
        frame = name if name == "plate" else f"{name}_frame"
        assert np.abs(c.pose(frame).as_matrix() - T).max() < 1e-13
    # kinetic energy of each link by itself, with velocities by differences
    qd, h = np.array([0.3, -0.8, 1.1]), 1e-6
    ahead, behind = (
        chain({k: v + s * h * r for (k, v), r in zip(values.items(), qd, strict=True)}) for s in (1, -1)
    )
    J = np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.003], [-0.002, 0.003, 0.04]])
    own = Rotation.from_euler("xyz", (0.1, 0.2, 0.3)).as_matrix()
    energy, weight = 0.0, 0.0
    for name, mass in (("upper", 2.0), ("lower", 1.0), ("plate", 0.5), ("tool", 0.3)):
        T, rate = placed[name], (ahead[name] - behind[name]) / (2 * h)
        com = np.array([0.1, 0.2, 0.3, 1.0])
        W = T[:3, :3].T @ rate[:3, :3]
        omega = own.T @ [W[2, 1], W[0, 2], W[1, 0]]
        energy += mass * (rate @ com)[:3] @ (rate @ com)[:3] / 2 + omega @ J @ omega / 2
        weight += mass * 9.81 * (rate @ com)[2]
    d = c.dynamics()
    assert abs(qd @ d.I @ qd / 2 - energy) < 1e-8
    assert abs(d.load @ qd + weight) < 1e-7
    assert d.damping[0, 0] == 0.7
    assert m.joints[0].friction == (0.2,)
    assert m.joints[0].limits == (-2.0, 2.0)


def test_remarks_name_lines_and_strict_raises():
    text = "\n".join(["<robot name='r'><link name='a'/><link name='b'>", "<visual/></link>",
                      joint("j", "revolute", "a", "b"), "<sensor name='s'/></robot>"])  # fmt: skip
    m = kic.from_urdf(text)
    assert any(":4:" in remark and "sensor" in remark for remark in m.remarks)
    assert any(":2:" in remark and "visual" in remark for remark in m.remarks)
    refuses(lambda: kic.from_urdf(text, strict=True), kic.ModelFileError, line=4)


def test_names_that_collide_are_mapped():
    parts = link("hip") + joint("hip", "continuous", "ground", "hip")
    m = kic.from_urdf(f'<robot name="x"><link name="ground"/>{parts}</robot>')
    assert [j.name for j in m.joints] == ["hip"]
    assert [b.name for b in m.bodies] == ["hip_body"]
    assert any("'hip_body'" in remark for remark in m.remarks)


def test_impossible_inertia_is_kept_with_a_remark():
    bad = link("b").replace('ixx="0.02"', 'ixx="5"')
    bad += joint("j", "continuous", "a", "b")
    m = kic.from_urdf(f'<robot name="x"><link name="a"/>{bad}</robot>')
    assert m.bodies[0].inertia_exception
    assert any("inertia" in remark for remark in m.remarks)


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_loop_of_a_urdf_closes(kind):
    m = kic.from_urdf(FOUR_BAR, loops=[("end", "pivot", kind)], coordinates=["A"])
    assert m.dof == 1
    assert any("open" in remark for remark in m.remarks)
    # a square linkage: opposite bars stay parallel, or cross
    for angle in (0.1, 0.4):
        c = m.at({"A": angle})
        assert np.abs(c.pose("end").translation - [1, 0, 0]).max() < 1e-12
        A, B, C = (c.value(name) for name in "ABC")
        bars = np.cumsum([A + 1.3, B - 1.1, C - 1.4])
        reach = np.array([np.cos(bars).sum(), np.sin(bars).sum()])
        assert np.abs(reach - [1, 0]).max() < 1e-12


def test_loop_that_cannot_close_is_named():
    far = FOUR_BAR.replace('"pivot" xyz="1 0 0"', "").replace(
        joint("pivot_fixed", "fixed", "base", "pivot", "1 0 0"),
        joint("pivot_fixed", "fixed", "base", "pivot", "9 0 0"),
    )
    with raises(kic.ModelFileError, loop="end to pivot") as caught:
        kic.from_urdf(far, loops=[("end", "pivot")])
    assert caught.value.residual > 0.1


def test_floating_base_by_name_and_pose():
    m = kic.from_urdf(ARM, floating_base=True)
    assert m.dof == 9
    pose = RigidTransform.from_components([1.0, 2.0, 3.0], Rotation.from_rotvec([0.3, -0.2, 0.5]))
    values = {"shoulder": 0.7, "slide": -0.3, "wrist_1": 1.9}
    c = m.at({"root_joint": pose, **values})
    for name, T in chain(values).items():
        frame = name if name == "plate" else f"{name}_frame"
        assert np.abs(c.pose(frame).as_matrix() - pose.as_matrix() @ T).max() < 1e-12


def test_floating_base_of_a_closed_robot_by_name_and_pose():
    m = kic.from_urdf(
        FOUR_BAR, loops=[("end", "pivot", "revolute")], floating_base=True, coordinates=["root_joint", "A"]
    )
    pose = RigidTransform.from_components([0.1, 0.2, 0.3], Rotation.from_rotvec([0.3, -0.2, 0.5]))
    c = m.at({"root_joint": pose, "A": 0.2})
    assert np.abs(c.pose("base").as_matrix() - pose.as_matrix()).max() < 1e-12
    again = m.at(np.concatenate([pose.translation, pose.rotation.as_rotvec(), [0.2]]))
    assert np.abs(again.value("C") - c.value("C")) < 1e-12


def test_mimic_joint_keeps_factor_and_offset():
    hinge = ("C", "continuous", "bar2", "bar3", "1 0 0", "0 0 -1.4")
    axis, mimic = '<axis xyz="0 0 1"/>', '<mimic joint="B" multiplier="-2" offset="0.3"/>'
    text = FOUR_BAR.replace(joint(*hinge, axis), joint(*hinge, axis + mimic)).replace(
        "continuous", "revolute"
    )
    m = kic.from_urdf(text, coordinates=["A", "B"])
    c = m.at({"A": 0.1, "B": 0.4})
    assert abs(c.value("C") - (-2 * 0.4 + 0.3)) < 1e-12


SDF = """<sdf version="1.9"><model name="four-bar"><pose>0 0 1 0 0 0</pose>
<link name="crank"><inertial><pose>0.5 0 0 0 0 0</pose><mass>1</mass></inertial></link>
<link name="coupler"><pose relative_to="crank">1 0 0 0 0 0.4</pose></link>
<link name="rocker"><pose>2 0.2 0 0 0 0</pose></link>
<joint name="J1" type="revolute"><parent>world</parent><child>crank</child>
<axis><xyz>0 0 1</xyz></axis></joint>
<joint name="J2" type="revolute"><parent>crank</parent><child>coupler</child>
<axis><xyz>0 0 1</xyz></axis></joint>
<joint name="J3" type="revolute"><parent>world</parent><child>rocker</child>
<axis><xyz expressed_in="__model__">0 0 2</xyz></axis></joint>
<joint name="J4" type="revolute"><pose relative_to="coupler">1 0.5 0 0 0 0</pose><parent>coupler</parent>
<child>rocker</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""


def test_sdf_joint_that_closes_a_loop():
    m = kic.from_sdf(SDF)
    assert (m.dof, len(m.joints)) == (1, 4)
    T = RigidTransform.from_components([1, 0, 1], Rotation.from_rotvec([0, 0, 0.4]))
    pin = T.apply([1, 0.5, 0])
    ends = np.linalg.norm(pin[:2] - [1, 0]), np.linalg.norm(pin - np.array([2, 0.2, 1]))
    c = m.at({"J1": 0.3})
    crank = np.array([np.cos(0.3), np.sin(0.3)])
    moved = c.pose("rocker").apply(pin)  # displacement from the reference configuration
    assert abs(np.linalg.norm(moved[:2] - crank) - ends[0]) < 1e-12
    assert abs(np.linalg.norm(moved - np.array([2, 0.2, 1])) - ends[1]) < 1e-12


TWO = "<robot name='x'><link name='a'/><link name='b'/>"


@pytest.mark.parametrize(
    "text",
    [
        "<robot",
        "<robot name='x'></robot>",
        "<sdf version='1.9'/>",
        "<!DOCTYPE r [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><robot name='&b;'/>",
        "<!DOCTYPE r SYSTEM 'http://127.0.0.1/x.dtd'><robot name='x'/>",
        "<robot name='x'><link name='a'/><link name='a'/></robot>",
        "<robot name='x'><link name='a'/><link name='b'/></robot>",
        TWO + joint("j", "revolute", "a", "b") + joint("k", "revolute", "b", "a") + "</robot>",
        "<robot name='x'><link name='a'/>" + joint("j", "revolute", "a", "b") + "</robot>",
        TWO + joint("j", "screw", "a", "b") + "</robot>",
        TWO + joint("j", "revolute", "a", "b", "nan 0 0") + "</robot>",
        TWO + joint("j", "revolute", "a", "b", more="<axis xyz='0 0 0'/>") + "</robot>",
        "<r>" * 100_000,
        "<robot name='x'>" + "<link name='a'/>" * 500_000 + "</robot>",
        "<robot name='x'>" + "a " * 4_900_000 + "</robot>",
    ],
    ids=(f"file{k}" for k in itertools.count()),
)  # fmt: skip
def test_invalid_files_raise(text):
    refuses(lambda: kic.from_urdf(text), kic.ModelFileError)
    refuses(lambda: kic.from_sdf(text), kic.ModelFileError)


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe\x01" * 100, b"\x7fELF" + bytes(1000)])
@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".xml"])
def test_binary_and_empty_files(tmp_path, data, suffix):
    path = tmp_path / f"robot{suffix}"
    path.write_bytes(data)
    refuses(lambda: kic.load(path), kic.ModelFileError, path=path)


def test_sdf_poses_in_a_circle():
    text = SDF.replace('<pose relative_to="crank">', '<pose relative_to="J4">')
    refuses(lambda: kic.from_sdf(text), kic.ModelFileError)


def test_load_reads_robots(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    assert kic.load(path) == kic.from_urdf(path)


MJCF = """<mujoco model="slider"><option gravity="0 1 -9"/><worldbody>
<body name="cart" pos="0 0 1"><joint name="cart" type="slide" axis="1 0 0" armature="0.7"
damping="0.2" ref="0.5"/>
<inertial pos="0 0 0" mass="2" diaginertia="0.1 0.1 0.1"/><site name="tip.x" pos="0.1 0.2 0.3"/>
<body name="pole" pos="0 0 0.2"><joint name="swing" axis="0 1 0" stiffness="3" springref="0.4"
frictionloss="0.1"/>
<joint name="twist" axis="0 0 1" pos="0 0.1 0"/>
<inertial pos="0 0 0.5" mass="1" diaginertia="0.2 0.2 0.01"/></body></body></worldbody>
<actuator><motor name="push" joint="cart" gear="3" armature="0.1" damping="0.2"/></actuator></mujoco>"""


@needs_mujoco
def test_mjcf_joints_sites_and_actuators():
    import mujoco

    m = kic.from_mjcf(MJCF)
    model = mujoco.MjModel.from_xml_string(MJCF)
    assert m.actuators == ("cart",)
    assert abs(m.joints[0].armature[0] - (0.7 + 9 * 0.1)) < 1e-14
    c = m.at({"cart": 0.9, "swing": 0.3, "twist": -0.4})
    order = kic.joint_order(m, model)
    data = mujoco.MjData(model)
    qd, qdd = np.array([0.3, -0.5, 0.8]), np.array([1.0, 2.0, 3.0])
    data.qpos[:], data.qvel[:] = order.q(c), order.v(c, qd)
    mujoco.mj_forward(model, data)
    M = np.zeros((3, 3))
    mujoco.mj_fullM(model, data, M)
    d = c.dynamics()
    assert np.abs(d.I - M).max() < 1e-13
    expected = M @ qdd + data.qfrc_bias - data.qfrc_passive
    assert np.abs(d.inverse_dynamics(qd, qdd) - expected).max() < 1e-12
    assert np.abs(c.pose("tip_x").translation - data.site_xpos[0]).max() < 1e-13


@needs_mujoco
def test_compiled_models_equal_their_text():
    import mujoco

    model = mujoco.MjModel.from_xml_string(MJCF)
    one, two = kic.from_mjcf(model), kic.from_mjcf(MJCF)
    assert replace(one, remarks=()) == replace(two, remarks=())


@needs_mujoco
@pytest.mark.parametrize(
    "text",
    [
        "<mujoco",
        "<mujoco/>",
        "<mujoco><include file='/etc/passwd'/></mujoco>",
        "<mujoco><worldbody><body/></worldbody></mujoco>",
        "<!DOCTYPE x [<!ENTITY a 'b'>]><mujoco/>",
        "<mujoco><extension><plugin plugin='x'/></extension></mujoco>",
    ],
)
def test_invalid_mjcf(text):
    refuses(lambda: kic.from_mjcf(text), kic.ModelFileError)


ROUND = ["four-bar", "panda", "three-rrr", "two-finger-hand", "six-freedom-planar", "jansen-leg"]


@pytest.mark.parametrize("name", ROUND)
def test_urdf_written_and_read_again(name):
    m = kic.load(name)
    made = kic.to_urdf(m)
    again = kic.from_urdf(
        made.text, loops=made.loops, gravity=made.gravity, near=made.near, coordinates=m.coordinates
    )
    same(m, again)


@needs_mujoco
@pytest.mark.parametrize(
    "name",
    ["four-bar", "panda", "three-rrr", "two-finger-hand", "gough-stewart", "jansen-leg", "bevel-wrist"],
)
def test_mjcf_written_and_read_again(name):
    m = kic.load(name)
    same(m, kic.from_mjcf(kic.to_mjcf(m), coordinates=m.coordinates))


def plate(inertia: np.ndarray, exception: str = "") -> kic.Mechanism:
    """Return a body with an inertia that turns about an axis."""
    body = kic.Body("plate", mass=1.0, com=(0, 0, 0), inertia=inertia, inertia_exception=exception)
    joint = kic.Joint("A", "revolute", ("ground", "plate"), (0, 0, 0), (0, 0, 1))
    return kic.Mechanism("plates", [body], [joint])


@pytest.mark.parametrize("digits", range(7, 13))
def test_rounded_plates_are_written_to_mjcf(digits):
    """Rounded moments of plates, in any axes, miss the sum by the last digits; MuJoCo compares exactly."""
    rng, notes = np.random.default_rng(digits), 0
    for _ in range(20):
        moments = rng.uniform(0.1, 1, 2)
        R = Rotation.random(rng=rng).as_matrix()
        J = np.round(R @ np.diag([*moments, moments.sum()]) @ R.T, digits)
        root = ElementTree.fromstring(kic.to_mjcf(plate((J + J.T) / 2)))
        low, middle, high = map(float, root.find(".//inertial").get("diaginertia").split())
        assert high <= low + middle
        known = np.linalg.eigvalsh(J)
        assert np.abs(known - (low, middle, high)).max() < 3 * 10.0**-digits
        notes += "is lowered" in kic.to_mjcf(plate(J))
        if importlib.util.find_spec("mujoco"):
            kic.from_mjcf(kic.to_mjcf(plate(J)))
    assert 3 < notes < 17  # half of them exceed the sum


@pytest.mark.parametrize("excess", [2e-6, 2.6e-5, 0.1])
def test_excess_of_a_moment_is_in_the_error(excess):
    with raises(kic.ModelError, name="plate", excess=pytest.approx(excess)) as caught:
        kic.to_mjcf(plate((0.4, 0.6, 1 + excess), exception="as printed"))
    assert f"exceeds the sum of the others by {excess:.3g}" in caught.value.message


def same(one: kic.Mechanism, other: kic.Mechanism) -> None:
    """Check that two mechanisms have the same dynamics in the reference configuration of the first."""
    q = [float(one.at().value(name)) for name in one.coordinates]
    a, b = (m.at(q).dynamics() for m in (one, other))
    for T, U in ((a.I, b.I), (a.P, b.P), (a.load, b.load)):
        size = max(np.abs(T).max(), 1e-6 * np.abs(a.I).max())
        assert np.abs(T - U).max() < 1e-12 * size


def test_formats_that_cannot_say_a_mechanism():
    caught = refuses(lambda: kic.to_urdf(kic.load("gough-stewart")), kic.ModelError)
    assert caught.joint


def test_gearbox_of_sdf():
    wheels = "".join(
        f'<link name="{name}"/><joint name="{name}_hinge" type="revolute"><parent>{up}</parent>'
        f"<child>{name}</child><axis><xyz>0 0 {z}</xyz></axis></joint>"
        for name, up, z in (("arm", "world", 1), ("sun", "arm", 1), ("planet", "arm", -1))
    )
    gear = (
        '<joint name="gear" type="gearbox"><parent>sun</parent><child>planet</child>'
        "<gearbox_reference_body>arm</gearbox_reference_body><gearbox_ratio>3</gearbox_ratio>"
        "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>"
    )
    text = f'<sdf version="1.9"><model name="gears">{wheels}{gear}</model></sdf>'
    m = kic.from_sdf(text, coordinates=["arm_hinge", "sun_hinge"])
    # the planet turns by -3 times the sun about z, and its hinge points along -z
    assert abs(m.at({"arm_hinge": 0.3, "sun_hinge": 0.2}).value("planet_hinge") - 0.6) < 1e-12


def test_mimic_of_sdf():
    bars = "".join(
        f'<link name="{name}"/><joint name="{name}_hinge" type="revolute"><parent>{up}</parent>'
        f"<child>{name}</child><axis><xyz>0 0 1</xyz>{more}</axis></joint>"
        for name, up, more in (
            ("one", "world", ""),
            ("two", "one", '<mimic joint="one_hinge"><multiplier>-2</multiplier><offset>0.3</offset>'
             "<reference>0.1</reference></mimic>"),
        )
    )  # fmt: skip
    text = f'<sdf version="1.11"><model name="finger">{bars}</model></sdf>'
    m = kic.from_sdf(text, coordinates=["one_hinge"])
    assert abs(m.at({"one_hinge": 0.4}).value("two_hinge") - (-2 * (0.4 - 0.1) + 0.3)) < 1e-12
    with pytest.raises(kic.ModelFileError):
        kic.from_sdf(text.replace('mimic joint="one_hinge"', 'mimic joint="nobody"'))


SPIN = '<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}</child>{more}</joint>'


def hinge(name: str, parent: str, child: str, more: str = "") -> str:
    """Return a joint of SDF about z."""
    axis = f"<axis><xyz>0 0 1</xyz>{more}</axis>"
    return SPIN.format(name=name, parent=parent, child=child, more=axis)


def test_trees_of_an_sdf_model_move_on_their_own():
    links = "".join(f'<link name="l{k}"><pose>{k} 0 0 0 0 0</pose></link>' for k in range(4))
    joints = "".join(hinge(f"j{k}", f"l{k}", f"l{k + 1}") for k in (0, 2))
    text = f'<sdf version="1.9"><model name="pair">{links}{joints}</model></sdf>'
    m = kic.from_sdf(text)
    assert {joint.name: joint.bodies[1] for joint in m.joints if joint.type == "free"} == {
        "root_joint": "l0", "root_joint_l2": "l2",
    }  # fmt: skip
    assert kic.from_sdf(text, floating_base=False).dof == 2
    assert sum("no joint connects link 'l2' with 'l0'" in remark for remark in m.remarks) == 1
    for floating in (True, False):
        with pytest.raises(kic.ModelFileError, match="no joint connects"):
            kic.from_sdf(text, floating_base=floating, strict=True)
    m = kic.from_sdf(text.replace('"j0"', '"root_joint"').replace('"j2"', '"root_joint_l2"'))
    assert {joint.name for joint in m.joints} == {
        "root_joint", "root_joint_", "root_joint_l2", "root_joint_l2_",
    }  # fmt: skip


def test_pose_of_an_sdf_model_is_that_of_its_placement_frame():
    text = (
        '<sdf version="1.9"><model name="m" placement_frame="grip" canonical_link="b">'
        "<pose>0 0 5 0 0 0</pose>"
        '<link name="a"><pose>1 0 0 0 0 0</pose></link><link name="b"><pose>2 0 0 0 0 0</pose></link>'
        '<frame name="free"/><frame name="grip" attached_to="b"><pose rotation_format="quat_xyzw">'
        "0 3 0 0 0 1 1</pose></frame>" + hinge("j", "world", "a") + hinge("k", "a", "b") + "</model></sdf>"
    )
    m = kic.from_sdf(text)
    frames = {frame.name: frame for frame in m.frames}
    assert np.allclose(frames["grip"].origin, [0, 0, 5], atol=1e-12)
    assert np.allclose(frames["grip"].axes, np.eye(3), atol=1e-12)
    # the axes of the model are those of the frame turned by -90° about z
    assert np.allclose(frames["a_frame"].origin, [-3, 1, 5], atol=1e-12)
    assert frames["free"].body == "b"  # the canonical link


def test_parts_of_sdf_links_and_joints_that_are_left_out():
    text = (
        '<sdf version="1.11"><model name="m"><link name="a"><gravity>false</gravity>{link}</link>'
        + hinge("j", "world", "a", "<limit><effort>3</effort></limit>")
        + "</model></sdf>"
    )
    m = kic.from_sdf(text.replace("{link}", '<inertial auto="true"/>'))
    assert m.bodies[0].mass is None
    assert m.effort_limits == {"j": (-3.0, 3.0)}
    for words in ("<gravity> of link 'a'", "mass of link 'a' is unknown"):
        assert sum(words in remark for remark in m.remarks) == 1
    refuses(lambda: kic.from_sdf(text.replace("{link}", ""), strict=True), kic.ModelFileError)


def test_axes_of_ball_and_continuous_joints_of_sdf():
    text = '<sdf version="1.9"><model name="m"><link name="a"/>{}</model></sdf>'
    ball = SPIN.format(name="j", parent="world", child="a", more="<axis>{}</axis>").replace(
        "revolute", "ball"
    )
    for part in ("<dynamics><damping>2</damping></dynamics>", "<limit><lower>-1</lower></limit>"):
        found = text.format(ball.format(part))
        assert any("of the ball joint 'j' are ignored" in remark for remark in kic.from_sdf(found).remarks)
        with pytest.raises(kic.ModelFileError, match="ball joint 'j'"):
            kic.from_sdf(found, strict=True)
    inertial = '<link name="a"><inertial><mass>1</mass></inertial></link>'
    none = "<dynamics><damping>0</damping></dynamics><limit><lower>-1e16</lower></limit>"
    quiet = text.replace('<link name="a"/>', inertial).format(ball.format(none))
    assert not any("ball" in remark for remark in kic.from_sdf(quiet, strict=True).remarks)
    pin = hinge("j", "world", "a", "<limit><lower>-1</lower><upper>1</upper></limit>")
    assert kic.from_sdf(text.format(pin)).joints[0].limits == (-1.0, 1.0)
    m = kic.from_sdf(text.format(pin.replace("revolute", "continuous")))
    assert m.joints[0].limits is None
    assert any("'j' is continuous" in remark for remark in m.remarks)


@pytest.mark.parametrize("value", ["abc", "nan", ""])
def test_limits_that_are_ignored_are_numbers(value):
    with raises(kic.ModelFileError, key="limit"):
        kic.from_urdf(ARM.replace('effort="10"', f'effort="{value}"', 1))
    pin = hinge("j", "world", "a", f"<limit><effort>{value}</effort></limit>")
    text = f'<sdf version="1.9"><model name="m"><link name="a"/>{pin}</model></sdf>'
    refuses(lambda: kic.from_sdf(text), kic.ModelFileError, key="limit")
    assert kic.from_sdf(text.replace(f">{value}<", ">inf<")).dof == 1


def test_strict_names_unknown_parts_of_urdf_links():
    text = ARM.replace("inertial>", "inertal>", 2)
    assert any("<inertal> of link 'upper' is ignored" in remark for remark in kic.from_urdf(text).remarks)
    refuses(lambda: kic.from_urdf(text, strict=True), kic.ModelFileError, match="<inertal>")


def test_universal_and_screw_joints_of_sdf_have_their_own_damping():
    axis = "<{0}><xyz>{1}</xyz><dynamics><damping>{2}</damping><friction>{3}</friction></dynamics></{0}>"
    text = (
        '<sdf version="1.9"><model name="m"><link name="a"/><link name="b"/>'
        '<joint name="u" type="universal"><parent>world</parent><child>a</child>'
        + axis.format("axis", "1 0 0", 1, 2)
        + axis.format("axis2", "0 1 0", 3, 4)
        + '</joint><joint name="s" type="screw"><parent>a</parent><child>b</child>'
        + axis.format("axis", "0 0 1", 5, 6)
        + "<screw_thread_pitch>0.1</screw_thread_pitch></joint></model></sdf>"
    )
    u, s = kic.from_sdf(text, coordinates=["u", "s.1"]).joints
    assert (u.damping, u.friction, s.damping, s.friction) == ((1, 3), (2, 4), (5, 0), (6, 0))
    with pytest.raises(kic.ModelFileError):
        kic.from_sdf(text.replace("screw_thread_pitch>0.1", "thread_pitch>0").replace("screw_t", "t"))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["frame", "pose"])
def test_long_chains_of_frames(part):
    count, key = 3000, "attached_to" if part == "frame" else "relative_to"
    inner = {"frame": lambda up: f'attached_to="{up}">', "pose": lambda up: f'><pose {key}="{up}"/>'}[part]
    frames = "".join(f'<frame name="f{k}" {inner(f"f{k + 1}" if k < count - 1 else "a")}</frame>'
                     for k in range(count))  # fmt: skip
    pin = hinge("j", "world", "a")
    text = f'<sdf version="1.9"><model name="m"><link name="a"/>{pin}{frames}</model></sdf>'
    assert len(kic.from_sdf(text).frames) == count + 1


def test_transmission_without_a_number_is_left_out():
    actuator = (
        '<transmission name="t"><joint name="shoulder"/><actuator name="motor">'
        "<mechanicalReduction>reduction</mechanicalReduction></actuator></transmission></robot>"
    )
    text = ARM.replace("</robot>", actuator)
    m = kic.from_urdf(text)
    assert m.motors == ()
    assert any("transmission 't' is ignored: its reduction is not a number" in remark for remark in m.remarks)
    refuses(lambda: kic.from_urdf(text, strict=True), kic.ModelFileError)


@pytest.mark.parametrize(
    ("more", "data"),
    [
        ("<x " + " ".join(f"a{k}='1'" for k in range(201)) + "/>", {"limit": 200}),
        ("<x a='='/>" * 38_000 + "=" * 300_000, {"limit": 300000}),
        ("<link name='" + "a" * 1001 + "'/>" + joint("k", "continuous", "b", "a" * 1001), {"limit": 1000}),
    ],
    ids=["attributes", "signs", "names"],
)
def test_attributes_and_names_are_bounded(more, data):
    with raises(kic.ModelFileError, **data):
        kic.from_urdf(TWO + joint("j", "continuous", "a", "b") + more + "</robot>")


def test_loops_alone_are_bounded():
    text = TWO + joint("j", "continuous", "a", "b") + "</robot>"
    refuses(lambda: kic.from_urdf(text, loops=[("a", "b")] * 501), kic.ModelFileError, limit=3000)


@pytest.mark.slow
def test_loops_of_a_file_are_bounded():
    count = 1200
    chain = "".join(
        f"<link name='l{k + 1}'/>"
        + joint(f"j{k}", "continuous", f"l{k}", f"l{k + 1}", more=f"<mimic joint='j{k - 1}'/>" if k else "")
        for k in range(count)
    )
    with raises(kic.ModelFileError, limit=500_000_000):
        kic.from_urdf(f"<robot name='r'><link name='l0'/>{chain}</robot>")


FINGER = """<mujoco><compiler angle="radian"/><worldbody>
<body><joint name="a" axis="0 0 1"/><joint axis="0 1 0"/><joint name="c" axis="1 0 0"/>
<inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/></body>
<body><joint name="joint1" axis="0 0 1"/><inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/></body>
</worldbody><tendon><fixed name="t"><joint joint="a" coef="2"/><joint joint="c" coef="-1"/></fixed>
<fixed name="s"><joint joint="joint1" coef="0.5"/></fixed></tendon><equality>{}</equality></mujoco>"""


@needs_mujoco
def test_equalities_of_fixed_tendons():
    # a tendon without a second one keeps its length, whatever the other coefficients
    m = kic.from_mjcf(FINGER.format('<tendon tendon1="t"/>'), coordinates=["a", "joint1", "joint1_"])
    assert abs(m.at({"a": 0.3, "joint1": 0.1, "joint1_": 0.2}).value("c") - 0.6) < 1e-12
    both = FINGER.format('<tendon tendon1="t" tendon2="s" polycoef="0.4 3 0 0 0"/>')
    m = kic.from_mjcf(both, coordinates=["a", "joint1", "joint1_"])
    # 2 a - c = 0.4 + 3 (joint1 / 2)
    assert abs(m.at({"a": 0.3, "joint1": 0.1, "joint1_": 0.2}).value("c") - (0.6 - 0.4 - 0.15)) < 1e-12
    m = kic.from_mjcf(FINGER.format('<tendon tendon1="s" polycoef="0.4 1 0 0 0"/>'))
    assert "joint1" not in {joint.name for joint in m.joints}
    m = kic.from_mjcf(FINGER.format('<tendon tendon1="t" tendon2="s" polycoef="0 0 1 0 0"/>'))
    assert m.dof == 4
    assert any("polynomial" in remark for remark in m.remarks)


@needs_mujoco
@pytest.mark.parametrize("turned", [False, True])
def test_equalities_with_joints_that_others_fix(turned):
    one = '<joint joint1="a" joint2="c" polycoef="0.1 2 0 0 0"/>'
    two = '<joint joint1="c" polycoef="0.3 1 0 0 0"/>'
    m = kic.from_mjcf(FINGER.format(two + one if turned else one + two))
    assert {joint.name for joint in m.joints}.isdisjoint({"a", "c"})
    # a = 0.1 + 2 c at c = 0.3
    free = kic.from_mjcf(FINGER.format("")).at({"a": 0.7, "joint1_": 0.2, "c": 0.3, "joint1": 0.1})
    c = m.at({"joint1_": 0.2, "joint1": 0.1})
    assert np.abs(c.value("com") - free.value("com")).max() < 1e-12


@needs_mujoco
def test_equality_with_one_joint_that_another_fixes():
    both = '<tendon tendon1="t" tendon2="s" polycoef="0.4 3 0 0 0"/>'
    both += '<joint joint1="c" polycoef="0.3 1 0 0 0"/>'
    m = kic.from_mjcf(FINGER.format(both), coordinates=["joint1", "joint1_"])
    # 2 a - c = 0.4 + 3 (joint1 / 2) at c = 0.3
    assert abs(m.at({"joint1": 0.1, "joint1_": 0.2}).value("a") - (0.3 + 0.4 + 0.15) / 2) < 1e-12


@needs_mujoco
@pytest.mark.parametrize("more", ['forcerange="-1 2"', 'ctrlrange="-1 2"', ""])
def test_limits_of_mjcf_actuators_are_those_of_their_joints(more):
    m = kic.from_mjcf(MJCF.replace('gear="3"', f'gear="3" {more}'))
    assert list(m.effort_limits.values()) == ([(-3.0, 6.0)] if more else [])
    m = kic.from_mjcf(MJCF.replace('gear="3"', 'gear="3" forcerange="1 2"'))
    assert not m.effort_limits
    assert any("limits of actuator" in remark for remark in m.remarks)
    one = '<motor name="limited" joint="cart" forcerange="-1 2"/>'
    m = kic.from_mjcf(MJCF.replace("</actuator>", f"{one}</actuator>"))
    assert not m.effort_limits
    assert any("another actuator" in remark for remark in m.remarks)


def test_limits_of_urdf_and_sdf_joints_are_written_and_read():
    m = kic.load("panda").replace("joint1", effort_limits=87.0, rate_limits=2.0)
    text = kic.to_urdf(m).text
    again = kic.from_urdf(text)
    assert again.effort_limits == {"joint1": (-87.0, 87.0)}
    assert again.rate_limits == {"joint1": (-2.0, 2.0)}
    unknown = kic.from_urdf(text.replace('effort="87.0"', 'effort="0"').replace('effort="87"', 'effort="0"'))
    assert not unknown.effort_limits
    assert any("effort and velocity limits" in remark for remark in unknown.remarks)
    refuses(lambda: kic.to_urdf(m.replace("joint1", effort_limits=(-80.0, 87.0))), kic.ModelError)


@needs_mujoco
def test_joints_without_a_name_get_a_new_one():
    import mujoco

    m = kic.from_mjcf(FINGER.format(""))
    assert [joint.name for joint in m.joints] == ["a", "joint1_", "c", "joint1"]
    assert kic.joint_order(m, mujoco.MjModel.from_xml_string(FINGER.format(""))).missing == ()


ROD = '<body><joint/><inertial pos="0 0 1" mass="1" diaginertia="1 1 1"/></body>'


@needs_mujoco
@pytest.mark.parametrize(
    ("parts", "data"),
    [
        ('<worldbody><replicate count="1000"><replicate count="1000"><geom size="1"/></replicate>'
         "</replicate></worldbody>", {"key": "replicate", "limit": 40000}),
        ('<asset><hfield name="h" nrow="30000" ncol="30000" size="1 1 1 1"/></asset>',
            {"key": "hfield", "limit": 4000000}),
        ('<custom><numeric name="n" size="1000000000" data="1"/></custom>',
            {"key": "numeric", "limit": 4000000}),
        ('<size nuser_body="100000000"/>', {"key": "size", "limit": 1000}),
        ('<size nuser_site="100" nuser_geom="900"/><worldbody><replicate count="5000"><geom size="1"/>'
         "</replicate></worldbody>", {"key": "size", "limit": 4000000}),
        ("<worldbody>" + ROD * 4000 + "</worldbody>", {"limit": 2400}),
        ('<worldbody><body name="x"><flexcomp name="f" type="grid" count="15 15 15" spacing="1 1 1" '
         'mass="1"/></body></worldbody>', {"limit": 2400}),
        ('<worldbody><body name="x"><flexcomp name="f" type="mesh" file="m.obj"/></body></worldbody>',
         {"key": "flexcomp"}),
    ],
)  # fmt: skip
def test_mjcf_expanding_to_many_parts_raises(parts, data):
    text = f"<mujoco>{parts}<worldbody>{ROD}</worldbody></mujoco>"
    refuses(lambda: kic.from_mjcf(text), kic.ModelFileError, **data)


@needs_mujoco
@pytest.mark.parametrize(
    "parts",
    [
        '<size nuserdata="1000" nkey="50" nuser_body="10" nuser_jnt="10"/>',
        "<size " + " ".join(f'nuser_{kind}="8"' for kind in ("body", "jnt", "geom", "site", "cam",
                                                           "tendon", "actuator", "sensor")) + "/>",
        '<worldbody><body name="x"><flexcomp name="f" type="grid" count="15 15 15" spacing="1 1 1" mass="1" '
        'dim="3" radius="0.01" dof="trilinear"/></body></worldbody>',
    ],
)  # fmt: skip
def test_mjcf_with_tables_and_flexible_bodies_of_usual_size(parts):
    assert kic.from_mjcf(f"<mujoco>{parts}<worldbody>{ROD}</worldbody></mujoco>").dof


@needs_mujoco
def test_attached_models_are_counted(tmp_path):
    part = "<mujoco><worldbody><body name='b'>{}</body></worldbody></mujoco>"
    (tmp_path / "part.xml").write_text(part.format(ROD * 500))
    attach = "".join(f'<attach model="p" body="b" prefix="p{k}"/>' for k in range(8))
    path = tmp_path / "robot.xml"
    text = f'<mujoco><asset><model name="p" file="part.xml"/></asset><worldbody>{attach}</worldbody></mujoco>'
    path.write_text(text)
    refuses(lambda: kic.load(path), kic.ModelFileError, key="attach", limit=2400)
    path.write_text(text.replace(attach, '<attach model="p" body="b" prefix="x"/>'))
    (tmp_path / "part.xml").write_text(part.format(ROD * 2))
    assert kic.load(path).dof == 2


@needs_mujoco
def test_models_that_contain_each_other(tmp_path):
    for k in range(8):
        assets = "".join(f'<model name="m{j}" file="part{k + 1}.xml"/>' for j in range(10))
        text = f"<mujoco><asset>{assets}</asset><worldbody>{ROD}</worldbody></mujoco>"
        (tmp_path / f"part{k}.xml").write_text(text)
    (tmp_path / "part8.xml").write_text(f"<mujoco><worldbody>{ROD}</worldbody></mujoco>")
    refuses(lambda: kic.load(tmp_path / "part0.xml"), kic.ModelFileError, key="model", limit=2400)
    (tmp_path / "part1.xml").write_text('<mujoco><asset><model file="part0.xml"/></asset></mujoco>')
    refuses(lambda: kic.load(tmp_path / "part0.xml"), kic.ModelFileError, limit=8)


@needs_mujoco
def test_included_files_are_bounded(tmp_path):
    path = tmp_path / "robot.xml"
    for k in range(8):
        inner = "<default>" * 180 + f'<include file="f{k + 1}.xml"/>' + "</default>" * 180
        (tmp_path / f"f{k}.xml").write_text(f"<mujoco>{inner}</mujoco>")
    path.write_text('<mujoco><include file="f0.xml"/></mujoco>')
    refuses(lambda: kic.load(path), kic.ModelFileError, key="default", limit=200)
    (tmp_path / "f0.xml").write_text("<mujoco><!--" + " " * 6_000_000 + "--></mujoco>")
    path.write_text('<mujoco><include file="f0.xml"/><include file="./f0.xml"/></mujoco>')
    refuses(lambda: kic.load(path), kic.ModelFileError, key="include")
    (tmp_path / "f1.xml").write_text((tmp_path / "f0.xml").read_text())
    path.write_text('<mujoco><include file="f0.xml"/><include file="f1.xml"/></mujoco>')
    refuses(lambda: kic.load(path), kic.ModelFileError, key="include", limit=10000000)


@needs_mujoco
@pytest.mark.parametrize("kind", ["include", "model"])
@pytest.mark.parametrize("name", ["../outside.xml", "..\\outside.xml", "/outside.xml", "link.xml"])
def test_mjcf_files_outside_the_folder(tmp_path, kind, name):
    (tmp_path / "outside.xml").write_text(FINGER.format(""))
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "link.xml").symlink_to(tmp_path / "outside.xml")
    part = f'<include file="{name}"/>' if kind == "include" else f'<asset><model file="{name}"/></asset>'
    path = tmp_path / "robots" / "robot.xml"
    path.write_text(f"<mujoco>{part}</mujoco>")
    refuses(lambda: kic.load(path), kic.ModelFileError, key="file")


CUBE = (
    "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    + "f 1 2 4\nf 1 4 3\nf 5 7 8\nf 5 8 6\nf 1 5 6\nf 1 6 2\n"
    + "f 3 4 8\nf 3 8 7\nf 1 3 7\nf 1 7 5\nf 2 6 8\nf 2 8 4\n"
)


@needs_mujoco
@pytest.mark.parametrize(
    ("folder", "name", "inside"),
    [
        ("", "in.obj", True),
        ("assets", "deep.obj", True),
        ("", "../out.obj", False),
        ("..", "out.obj", False),
        ("", "{tmp}/out.obj", False),
        ("{tmp}", "out.obj", False),
        ("", "link.obj", False),
        ("assets", "..\\..\\out.obj", False),
    ],
)
def test_meshes_of_masses_are_in_the_folder(tmp_path, folder, name, inside):
    (tmp_path / "robots" / "assets").mkdir(parents=True)
    for place in ("out.obj", "robots/in.obj", "robots/assets/deep.obj"):
        (tmp_path / place).write_text(CUBE)
    (tmp_path / "robots" / "link.obj").symlink_to(tmp_path / "out.obj")
    text = (
        f'<mujoco><compiler meshdir="{folder}"/><asset><mesh name="cube" file="{name}"/></asset><worldbody>'
        '<body><joint/><geom type="mesh" mesh="cube" density="3"/></body></worldbody></mujoco>'
    ).replace("{tmp}", str(tmp_path))
    path = tmp_path / "robots" / "robot.xml"
    path.write_text(text)
    if inside:
        assert abs(kic.load(path).bodies[0].mass - 3.0) < 1e-6
    else:
        refuses(lambda: kic.load(path), kic.ModelFileError, key="file")
    refuses(lambda: kic.from_mjcf(text), kic.ModelFileError, key="file")


def test_a_body_without_joints_has_a_remedy(tmp_path):
    text = f"<robot name='stone'>{link('stone')}</robot>"
    refuses(lambda: kic.from_urdf(text), kic.ModelFileError, match="floating_base")
    assert kic.from_urdf(text, floating_base=True).dof == 6
    static = '<model name="m"><static>1</static><link name="a"/><link name="b"/></model>'
    with pytest.raises(kic.ModelFileError, match=r"no joint that moves.*from_sdf"):
        kic.from_sdf(f'<sdf version="1.9">{static}</sdf>', strict=True)


@needs_mujoco
def test_an_mjcf_body_without_joints_has_a_remedy():
    text = f"<mujoco><worldbody>{ROD}</worldbody></mujoco>"
    refuses(lambda: kic.from_mjcf(text.replace("<joint/>", "")), kic.ModelFileError, match="<freejoint/>")
    assert kic.from_mjcf(text.replace("<joint/>", "<freejoint/>")).dof == 6


# a planar loop of four bars, whose last hinge closes it, and a pair of wheels in a gearbox
FREE_BARS = """<sdf version="1.9"><world name="w"><gravity>1 -9 2</gravity><model name="m">
<pose>0.1 0.2 0.3 0.2 -0.3 0.4</pose>
{links}<joint name="A" type="revolute"><parent>world</parent><child>a</child>{axis}</joint>
<joint name="B" type="revolute"><parent>a</parent><child>b</child>{axis}</joint>
<joint name="C" type="revolute"><pose>0.5 -0.1 0 0 0 0</pose><parent>c</parent><child>b</child>{axis}</joint>
<joint name="D" type="revolute"><parent>world</parent><child>c</child>{axis}</joint>
<joint name="W" type="revolute"><parent>a</parent><child>w</child>{axis}</joint>
<joint name="V" type="revolute"><parent>a</parent><child>v</child><axis><xyz>0 0 -1</xyz></axis></joint>
<joint name="gear" type="gearbox"><parent>w</parent><child>v</child>
<gearbox_reference_body>a</gearbox_reference_body><gearbox_ratio>2.5</gearbox_ratio>{axis}
<axis2><xyz>0 0 1</xyz></axis2></joint></model></world></sdf>"""
PLACES = {"a": (0, 0), "b": (0.3, 0.4), "c": (1.1, 0.1), "w": (0.1, 0.2), "v": (0.2, 0.1)}
MASSES = {"a": 1.1, "b": 0.7, "c": 0.9, "w": 0.4, "v": 0.3}
COM, MOMENTS = np.array([0.2, 0.1, 0.05]), np.array([0.02, 0.03, 0.04])


def test_loops_and_gears_of_sdf_against_equations_by_hand():
    """Accelerations by d'Alembert's principle: Lagrange multipliers, with derivatives by complex steps."""
    inertial = (
        "<inertial><pose>{} {} {} 0 0 0</pose><mass>{}</mass><inertia><ixx>{}</ixx><iyy>{}</iyy><izz>{}</izz>"
    )
    links = "".join(
        f'<link name="{n}"><pose>{x} {y} 0 0 0 0</pose>'
        + inertial.format(*COM, MASSES[n], *MOMENTS)
        + "</inertia></inertial></link>"
        for n, (x, y) in PLACES.items()
    )
    text = FREE_BARS.format(links=links, axis="<axis><xyz>0 0 1</xyz></axis>")
    m = kic.from_sdf(text, coordinates=["A", "W"])
    assert (m.dof, m._model.tree.open) == (2, False)
    T = Rotation.from_euler("xyz", [0.2, -0.3, 0.4]).as_matrix()
    g = T.T @ [1, -9, 2]

    def plane(angle):
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    def motion(x):
        """Return centres of mass (5, 2) and angles (5,) of the bodies, and the constraints (4,)."""
        A, B, D, W, V, C = x
        at = {n: np.array(p) for n, p in PLACES.items()}
        turn = {"a": A, "b": A + B, "c": D, "w": A + W, "v": A - V}
        base = {"a": at["a"], "c": at["c"]}
        for n in ("b", "w", "v"):
            base[n] = at["a"] + plane(A) @ (at[n] - at["a"])
        centres = [base[n] + plane(turn[n]) @ COM[:2] for n in MASSES]
        arm = np.array([0.5, -0.1])  # hinge C in its child
        pin = base["c"] + plane(D) @ (at["b"] + arm - at["c"])
        # the wheels turn by W and −V about z, and −V = −2.5 W
        rows = [*(pin - base["b"] - plane(A + B) @ arm), turn["b"] - turn["c"] - C, V - 2.5 * W]
        return np.array(centres), np.array([turn[n] for n in MASSES]), np.array(rows)

    def jacobian(x):
        h = 1e-30
        parts = [motion(x + 1j * h * e) for e in np.eye(6)]
        return [np.stack([part[k].imag / h for part in parts], axis=-1) for k in range(3)]

    c = m.at({"A": -0.25, "W": 0.4})
    names = ["A", "B", "D", "W", "V", "C"]
    x = np.array([c.value(n) for n in names])
    assert np.abs(motion(x)[2]).max() < 1e-12
    qd = np.array([0.7, -1.3])
    v = c.coefficients(names).velocity(qd)
    P, R, J = jacobian(x)
    assert np.abs(J @ v).max() < 1e-12

    def rate(k):
        h = 1e-5  # of the complex step's results, along the motion
        return (jacobian(x + h * v)[k] - jacobian(x - h * v)[k]) @ v / (2 * h)

    mass = np.array(list(MASSES.values()))
    M = np.einsum("bia,bic,b->ac", P, P, mass) + MOMENTS[2] * R.T @ R
    force = np.einsum("bia,bi,b->a", P, g[:2] - rate(0), mass)
    zero = np.zeros((4, 4))
    solved = np.linalg.solve(np.block([[M, J.T], [J, zero]]), np.concatenate([force, -rate(2)]))
    found = c.coefficients(names).acceleration(qd, c.dynamics().forward_dynamics(qd, [0, 0]))
    assert np.abs(found - solved[:6]).max() < 1e-8 * np.abs(found).max()


def test_numbers_that_overflow_when_links_are_merged():
    ends = link("b", com="1e200 0 0") + link("c", com="-1e200 0 0")
    text = TWO.replace("<link name='b'/>", ends) + joint("j", "continuous", "a", "b")
    with raises(kic.ModelFileError, key="inertia"):
        kic.from_urdf(text + joint("k", "fixed", "b", "c") + "</robot>")


@needs_mujoco
@pytest.mark.parametrize(
    ("more", "data"),
    [
        ('quat="1e308 1e308 0 0"><joint/><inertial pos="0 0 1" mass="1" diaginertia="1 1 1"/>',
         {"name": "b"}),
        ('><joint/><inertial pos="0 0 1" mass="1" fullinertia="1e200 1e200 1e200 1e199 1e199 1e199"/>',
         {"key": "inertia"}),
        ('><joint/><geom type="capsule" size="0.1" fromto="0 0 0 1e150 0 -1e150"/>',
         {"key": "mass"}),
        ('><joint/><geom type="capsule" size="0.1" fromto="0 0 0 1e308 0 -1e308"/>', {"line": 0}),
    ],
    ids=["orientation", "inertia", "mass", "overflow"],
)  # fmt: skip
def test_mjcf_with_huge_numbers(more, data):
    with raises(kic.ModelFileError, **data):
        kic.from_mjcf(f'<mujoco><worldbody><body name="b" {more}</body></worldbody></mujoco>')
