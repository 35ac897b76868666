"""Loops of URDF files from patterns, side files and elements equal those of `loops`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from raising import raises

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
)


def results(m: kic.Mechanism) -> np.ndarray:
    """Return a crank's inertia and the rates of the other joints."""
    c = m.at({"A": 0.4}, wrt=["A"]) if m.coordinates != ("A",) else m.at({"A": 0.4})
    return np.append(c.coefficients(["B", "D"])["D"].G.ravel(), c.dynamics().I.ravel())


KNOWN = results(
    kic.from_urdf(
        FOUR_BAR.format(""), loops=[("closing_pin_1", "closing_pin_2", "revolute")], coordinates=["A"]
    )
)


def test_pattern() -> None:
    loops = [("closing_*_1", "closing_*_2", "revolute")]
    m = kic.from_urdf(FOUR_BAR.format(""), loops=loops, coordinates=["A"])
    assert np.allclose(results(m), KNOWN, rtol=1e-10)
    for wrong in ("closed_*_1", "closing_*_3"):
        with raises(kic.InputError, key="loops"):
            kic.from_urdf(FOUR_BAR.format(""), loops=[(wrong, "closing_*_2", "revolute")])
        with raises(kic.InputError, key="loops"):
            kic.from_urdf(FOUR_BAR.format(""), loops=[("closing_*_1", wrong, "revolute")])


def test_axis_of_an_element_is_not_zero() -> None:
    closing = CLOSINGS[0].replace("</loop_joint>", '<axis xyz="0 0 0"/></loop_joint>')
    with pytest.raises(kic.ModelFileError):
        kic.from_urdf(FOUR_BAR.format(closing))


def test_pair_of_frames_is_not_a_text(tmp_path: Path) -> None:
    """A text of two letters is not two frames with these names."""
    pytest.importorskip("yaml", reason="needs PyYAML: pip install -e '.[yaml]'")
    text, path = (
        FOUR_BAR.format("").replace("closing_pin_1", "p").replace("closing_pin_2", "q"),
        tmp_path / "a",
    )
    path.write_text("closed_loop: [[p, q]]")
    kic.from_urdf(text, loops=path)
    path.write_text("closed_loop: [pq]")
    with pytest.raises(kic.ModelFileError):
        kic.from_urdf(text, loops=path)


@pytest.mark.parametrize("closing", CLOSINGS)
def test_elements(closing: str) -> None:
    m = kic.from_urdf(FOUR_BAR.format(closing), coordinates=["A"])
    assert np.allclose(results(m), KNOWN, rtol=1e-10)
    for wrong in ("elastic", "floating"):
        with pytest.raises(kic.ModelFileError):
            kic.from_urdf(FOUR_BAR.format(closing.replace("revolute", wrong).replace("continuous", wrong)))
    with pytest.raises(kic.ModelFileError):
        kic.from_urdf(FOUR_BAR.format(closing.replace('"rocker"', '"rod"')))
    with pytest.raises(kic.ModelFileError):
        kic.from_urdf(FOUR_BAR.format(closing.replace("link1", "link").replace("predecessor", "before")))


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
        with pytest.raises(kic.ModelFileError):
            kic.from_urdf(text, loops=path)
    with pytest.raises(kic.ModelFileError):
        kic.from_urdf(text, loops=tmp_path / "absent.yaml")
    path.write_text("closed_loop: [['turned', 'nothing']]\n")
    with raises(kic.InputError, key="loops"):
        kic.from_urdf(text, loops=path)
