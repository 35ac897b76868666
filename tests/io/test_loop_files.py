"""Loops of URDF files from patterns, side files and elements equal those of `loops`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from raising import raises, refuses
from scipy.spatial.transform import Rotation

import kic

LINK = """<link name="{}"><inertial><origin xyz="{} 0 0"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>"""
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>
<origin xyz="{}"/><axis xyz="0 0 1"/></joint>"""
# a parallelogram; its loop is closed at the zero of the file
FOUR_BAR = "".join(
    [
        '<robot name="four"><link name="base"/>',
        *(LINK.format(name, x) for name, x in (("crank", 0.0), ("coupler", 0.5), ("rocker", 0.1))),
        '<link name="closing_pin_1"/><link name="closing_pin_2"/>',
        JOINT.format("A", "continuous", "base", "crank", "0 0 0"),
        JOINT.format("B", "continuous", "crank", "coupler", "0 1 0"),
        JOINT.format("D", "continuous", "base", "rocker", "2 0 0"),
        JOINT.format("end 1", "fixed", "coupler", "closing_pin_1", "2 0 0"),
        JOINT.format("end 2", "fixed", "rocker", "closing_pin_2", "0 1 0"),
        "{}</robot>",
    ]
)
CLOSINGS = (
    '<loop_joint name="C" type="revolute"><link1 link="coupler" xyz="2 0 0" rpy="0 0 0"/>'
    '<link1 link="rocker" xyz="0 1 0" rpy="0 0 0"/></loop_joint>',
    '<loop name="C" type="continuous">'
    '<predecessor link="coupler"><origin xyz="2 0 0" rpy="0.5 0 0"/></predecessor>'
    '<successor link="rocker"><origin xyz="0 1 0" rpy="0.5 0 0"/></successor>'
    '<axis xyz="0 0.479425538604203 0.8775825618903728"/></loop>',
    '<constraint name="C" type="revolute"><predecessor link="coupler"/><predecessor_origin xyz="2 0 0"/>'
    '<successor link="rocker"/><successor_origin xyz="0 1 0"/></constraint>',
    '<constraint name="C" type="revolute_joint"><child_origin xyz="0 1 0"/><child link="rocker"/>'
    '<parent link="coupler"/><parent_origin xyz="2 0 0"/><parent_axis xyz="0 0 3"/></constraint>',
)
GAZEBO = """<gazebo><joint name="C" type="revolute"><parent>coupler</parent><child>rocker</child>
<pose>0 1 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis></joint></gazebo>"""


def results(m: kic.Mechanism) -> np.ndarray:
    """Return a crank's inertia and the rates of the other joints."""
    c = m.at({"A": 0.4}, wrt=["A"]) if m.coordinates != ("A",) else m.at({"A": 0.4})
    return np.append(c.coefficients(["B", "D"])["D"].G.ravel(), c.dynamics().I.ravel())


PINS = ("closing_pin_1", "closing_pin_2", "revolute")
KNOWN = results(kic.from_urdf(FOUR_BAR.format(""), loops=[PINS], coordinates=["A"]))


def test_pattern() -> None:
    loops = [("closing_*_1", "closing_*_2", "revolute")]
    m = kic.from_urdf(FOUR_BAR.format(""), loops=loops, coordinates=["A"])
    assert np.allclose(results(m), KNOWN, rtol=1e-10)
    for wrong in ("closed_*_1", "closing_*_3"):
        for loop in ((wrong, "closing_*_2", "revolute"), ("closing_*_1", wrong, "revolute")):
            refuses(lambda loop=loop: kic.from_urdf(FOUR_BAR.format(""), loops=[loop]), key="loops")


def test_axis_of_an_element_is_not_zero() -> None:
    closing = CLOSINGS[0].replace("</loop_joint>", '<axis xyz="0 0 0"/></loop_joint>')
    refuses(lambda: kic.from_urdf(FOUR_BAR.format(closing)), kic.ModelFileError)


def test_pair_of_frames_is_not_a_text(tmp_path: Path) -> None:
    """A text of two letters is not two frames with these names."""
    pytest.importorskip("yaml", reason="needs PyYAML: pip install -e '.[yaml]'")
    text, path = FOUR_BAR.format(""), tmp_path / "a"
    text = text.replace("closing_pin_1", "p").replace("closing_pin_2", "q")
    path.write_text("closed_loop: [[p, q]]")
    kic.from_urdf(text, loops=path)
    path.write_text("closed_loop: [pq]")
    refuses(lambda: kic.from_urdf(text, loops=path), kic.ModelFileError)


@pytest.mark.parametrize("closing", CLOSINGS)
def test_elements(closing: str) -> None:
    m = kic.from_urdf(FOUR_BAR.format(closing), coordinates=["A"])
    assert np.allclose(results(m), KNOWN, rtol=1e-10)
    for wrong in ("elastic", "floating"):
        with pytest.raises(kic.ModelFileError):
            kic.from_urdf(FOUR_BAR.format(closing.replace("revolute", wrong).replace("continuous", wrong)))
    refuses(lambda: kic.from_urdf(FOUR_BAR.format(closing.replace('"rocker"', '"rod"'))), kic.ModelFileError)
    unknown = closing.replace("link1", "link").replace("predecessor", "x").replace("parent ", "x ")
    refuses(lambda: kic.from_urdf(FOUR_BAR.format(unknown)), kic.ModelFileError)


# degrees of freedom and names of the types in the proposal for ROS, and of joints in <gazebo>
KINDS = {
    "revolute": (1, "revolute_joint", "continuous"), "prismatic": (1, "prismatic", "prismatic"),
    "universal": (2, "universal_joint", "universal"), "spherical": (3, "spherical", "ball"),
    "fixed": (0, "link", "fixed"),
}  # fmt: skip


def frame_of(rng: np.random.Generator) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3] = Rotation.random(rng=rng).as_matrix()
    T[:3, 3] = rng.uniform(-0.5, 0.5, 3)
    return T


def place_of(T: np.ndarray) -> tuple[str, str]:
    numbers = T[:3, 3], Rotation.from_matrix(T[:3, :3]).as_euler("xyz")
    return tuple(" ".join(repr(float(x)) for x in some) for some in numbers)  # type: ignore[return-value]


@pytest.mark.parametrize("tool", ["ros", "gazebo"])
@pytest.mark.parametrize("kind", KINDS)
def test_closing_joints_of_all_types(kind: str, tool: str) -> None:
    """The two frames of a random spatial loop move relative to each other as its closing joint allows."""
    rng = np.random.default_rng([len(kind), len(tool)])
    freedoms, word, other = KINDS[kind]
    poses, text = {"base": np.eye(4)}, '<robot name="loop"><link name="base"/>'
    origin = '<origin xyz="{}" rpy="{}"/>'
    for k, parent in enumerate(["base", "link0", "link1", "link2", "base", "link4", "link5"]):
        T = frame_of(rng)
        poses[f"link{k}"] = poses[parent] @ T
        hinge = JOINT.replace('<origin xyz="{}"/>', origin.format(*place_of(T)))
        text += LINK.format(f"link{k}", 0.1) + hinge.format(f"J{k}", "continuous", parent, f"link{k}")
    ends, closed = ("link3", "link6"), frame_of(rng)
    places = [place_of(np.linalg.inv(poses[end]) @ closed) for end in ends]
    for name, end, place in zip(("first", "second"), ends, places, strict=True):
        joint = JOINT.replace('<origin xyz="{}"/>', origin.format(*place))
        text += f'<link name="{name}"/>' + joint.format(f"{name} fixed", "fixed", end, name)
    a, b = np.array([0.6, 0.8, 0.0]), np.array([0.0, 0.0, 1.0])
    if tool == "ros":
        text += f"""<constraint name="C" type="{word}"><parent link="link3"/><child link="link6"/>
        <parent_origin xyz="{places[0][0]}" rpy="{places[0][1]}"/><parent_axis xyz="0.6 0.8 0"/>
        <child_origin xyz="{places[1][0]}" rpy="{places[1][1]}"/>""" + (
            '<child_axis xyz="0 0 1"/>' * (kind == "universal") + "</constraint>"
        )
    else:
        axes = "<axis><xyz>0.6 0.8 0</xyz></axis>" * (kind not in ("fixed", "spherical"))
        axes += "<axis2><xyz>0 0 1</xyz></axis2>" * (kind == "universal")
        text += f"""<gazebo><joint name="C" type="{other}"><parent>link3</parent><child>link6</child>
        <pose>{" ".join(places[1])}</pose>{axes}</joint></gazebo>"""
    m = kic.from_urdf(text + "</robot>", strict=True)
    assert m.dof == 1 + freedoms
    c = m.at([0.05] * m.dof)
    first, second = (c.pose(name).as_matrix() for name in ("first", "second"))
    T = np.linalg.inv(first) @ second
    gaps = {
        "revolute": [T[:3, 3], T[:3, :3] @ a - a],
        "prismatic": [np.cross(T[:3, 3], a), T[:3, :3] - np.eye(3)],
        "universal": [T[:3, 3], a @ T[:3, :3] @ b],
        "spherical": [T[:3, 3]],
        "fixed": [T - np.eye(4)],
    }[kind]
    assert all(np.allclose(gap, 0.0, atol=1e-7) for gap in gaps)
    assert kind == "fixed" or not np.allclose(T, np.eye(4), atol=1e-3)


def test_joint_in_gazebo() -> None:
    """It closes the loop with its limits, damping and the poses of the file."""
    m = kic.from_urdf(FOUR_BAR.format(GAZEBO), coordinates=["A"])
    assert np.allclose(results(m), KNOWN, rtol=1e-10)
    more = "</xyz><dynamics><damping>0.3</damping></dynamics><limit><lower>-1</lower><upper>2</upper></limit>"
    damped = kic.from_urdf(FOUR_BAR.format(GAZEBO.replace("</xyz>", more)), coordinates=["A"])
    (pin,) = (joint for joint in damped.joints if joint.name == "C")
    assert pin.damping == (0.3,)
    assert pin.ranges["C"] == (-1.0, 2.0)
    # relative to the joint of the child, and with the axis of the model
    turned = GAZEBO.replace("<pose>", '<pose relative_to="D">').replace("0 0 0</pose>", "1 0 0</pose>")
    turned = turned.replace("<xyz>", '<xyz expressed_in="__model__">')
    assert np.allclose(results(kic.from_urdf(FOUR_BAR.format(turned), coordinates=["A"])), KNOWN, rtol=1e-10)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('type="revolute"', 'type="gearbox"'),
        ('type="revolute"', 'type="screw"'),
        ('type="revolute"', 'type="revolute2"'),
        ("</xyz>", '</xyz><mimic joint="A"><multiplier>2</multiplier></mimic>'),
        ("<gazebo>", '<gazebo reference="rocker">'),
    ],
)
def test_joint_in_gazebo_that_is_ignored(old: str, new: str) -> None:
    text = FOUR_BAR.format(GAZEBO.replace(old, new))
    m = kic.from_urdf(text)
    assert m.dof == 3
    assert any("leaves its loop open" in remark and "'C'" in remark for remark in m.remarks)
    refuses(lambda: kic.from_urdf(text, strict=True), kic.ModelFileError, match="leaves its loop open")


@pytest.mark.parametrize(
    ("old", "new"),
    [("coupler<", "rod<"), ("<child>rocker</child>", ""), ('"C"', '"A"'), ('"C"', '"crank"')],
)
def test_joint_in_gazebo_with_an_error(old: str, new: str) -> None:
    before = FOUR_BAR.format("\n").count("\n")
    with raises(kic.ModelFileError, line=before + 1):
        kic.from_urdf(FOUR_BAR.format("\n" + GAZEBO.replace(old, new)))


def test_joint_in_gazebo_of_the_root() -> None:
    """A fixed joint to the world has no effect on a fixed root; another one needs a free root."""
    text = FOUR_BAR.format(GAZEBO.replace(">coupler<", ">world<").replace(">rocker<", ">base<"))
    assert kic.from_urdf(text.replace('type="revolute"', 'type="fixed"'), strict=True).dof == 3
    refuses(lambda: kic.from_urdf(text), kic.ModelFileError, match="floating_base=True")
    assert kic.from_urdf(text, floating_base=True).dof == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("revolute_joint", "planar"),
        ("revolute_joint", "planar_joint"),
        ("revolute_joint", "universal_joint"),
        ("revolute_joint", "gear"),
        ('"rocker"', '"rod"'),
        ("parent_axis", "axis"),
        ("<child ", "<parent "),
        ("<child ", "<successor "),
    ],
)
def test_constraint_of_ros_with_an_error(old: str, new: str) -> None:
    """The error names the other way to close the loop."""
    closing = CLOSINGS[-1].replace('"0 0 3"', '"1 0 1"')
    with pytest.raises(kic.ModelFileError, match="give both in `loops`"):
        kic.from_urdf(FOUR_BAR.format(closing.replace(old, new)))


def test_parts_of_elements_that_are_ignored_have_a_remark() -> None:
    more = '<child_axis xyz="0 1 0"/><limit lower="0" upper="1"/></constraint>'
    text = FOUR_BAR.format(CLOSINGS[-1].replace("</constraint>", more))
    found = kic.from_urdf(text, coordinates=["A"]).remarks
    assert all(any(f"<{tag}> of <constraint>" in one for one in found) for tag in ("child_axis", "limit"))
    refuses(lambda: kic.from_urdf(text, strict=True), kic.ModelFileError)


def test_side_file_of_hinges(tmp_path: Path) -> None:
    """The point and the axis are those of the base at the zero of the file."""
    pytest.importorskip("yaml", reason="needs PyYAML: pip install -e '.[yaml]'")
    path = tmp_path / "loop_closures.yaml"
    path.write_text(
        "closures:\n- link_a: coupler\n  link_b: rocker\n  point: [2.0, 1.0, 0.0]\n  axis: [0.0, 0.0, 2.0]\n"
        "dependent: [B, D]\nindependent: [A]\n"
    )
    m = kic.from_urdf(FOUR_BAR.format(""), loops=path, coordinates=["A"])
    assert np.allclose(results(m), KNOWN, rtol=1e-10)


def test_side_file_of_frames(tmp_path: Path) -> None:
    """Frames coincide, joints get other types, and motors are the default coordinates."""
    pytest.importorskip("yaml", reason="needs PyYAML: pip install -e '.[yaml]'")
    path = tmp_path / "robot.yaml"
    hinge = JOINT.format("C", "continuous", "closing_pin_1", "turned", "0 0 0").replace("{}", "")
    text = FOUR_BAR.format('<link name="turned"/>' + hinge)
    path.write_text("closed_loop: [['turned', 'closing_pin_2']]\ntype: ['6d']\nname_mot: ['A']\n")
    m = kic.from_urdf(text, loops=str(path))
    assert m.coordinates == ("A",)
    assert np.allclose(results(m), KNOWN, rtol=1e-10)
    path.write_text(
        "closed_loop: [['turned', 'closing_pin_2']]\ntype: ['3d']\njoint_name: ['C']\njoint_type: ['FIXED']\n"
    )
    assert "C" not in [joint.name for joint in kic.from_urdf(text, loops=path, coordinates=["A"]).joints]
    for wrong in (
        "", "closed_loop", "[1, 2", "other: 1", "closed_loop: 3", "closed_loop: [[turned]]",
        "closed_loop: [['turned', 'closing_pin_2']]\ntype: [9d]", "closures: [{link_a: coupler}]",
        "closed_loop: []\nname_mot: [X]", "closed_loop: []\njoint_name: [X]\njoint_type: [FIXED]",
        "closed_loop: []\njoint_name: [C]\njoint_type: []",
        "closures: [{link_a: coupler, link_b: rocker, point: [1, 2], axis: [0, 0, 1]}]",
        "closures: [{link_a: coupler, link_b: rocker, point: [1, 2, 3], axis: [0, 0, 0]}]",
        "closures: [{link_a: coupler, link_b: rocker, point: 1, axis: [0, 0, 1]}]",
    ):  # fmt: skip
        path.write_text(wrong)
        refuses(lambda: kic.from_urdf(text, loops=path), kic.ModelFileError)
    refuses(lambda: kic.from_urdf(text, loops=tmp_path / "absent.yaml"), kic.ModelFileError)
    path.write_text("closed_loop: [['turned', 'nothing']]\n")
    refuses(lambda: kic.from_urdf(text, loops=path), key="loops")
