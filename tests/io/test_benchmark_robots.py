"""Robots written here, compared with MuJoCo, which the extra `bench` has; and the table of robot files."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import kic

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.robots import CLOSED_RTOL, OPEN_RTOL, MujocoPeer, compare_closed, compare_open, examine, main

BODY = '<inertial pos="0.1 0.02 0.03" mass="1.3" fullinertia="0.02 0.03 0.04 0.001 0.002 -0.003"/>'


def mjcf(bodies: str, rest: str = "") -> str:
    return f'<mujoco model="robot"><compiler angle="radian"/><worldbody>{bodies}</worldbody>{rest}</mujoco>'


def body(name: str, pos: str, joints: str, inner: str = "", quat: str = "1 0 0 0") -> str:
    return f'<body name="{name}" pos="{pos}" quat="{quat}">{joints}{BODY}{inner}</body>'


HINGE = '<joint name="{}" axis="{}" armature="0.1" damping="0.3"/>'

OPEN = {
    "free and ball": mjcf(
        body(
            "base", "1 2 3", '<freejoint name="root"/>',
            body("arm", "0.2 0 0.1", '<joint name="ball" type="ball" armature="0.2" damping="0.1"/>',
                 body("hand", "0.3 0 0", HINGE.format("wrist", "0 1 1")), quat="0.8 0.1 0.5 0.2"),
            quat="0.5 0.5 0.5 0.5",
        )
    ),
    "several joints on one body": mjcf(
        body("cart", "0 0 1", '<joint name="x" type="slide" axis="1 0 0" ref="0.4"/>'
             '<joint name="turn" axis="0 0 1" pos="0.1 0 0" stiffness="2" springref="0.3"/>'
             '<joint name="tilt" axis="0 1 0" pos="0 0.2 0"/>')
    ),
}  # fmt: skip

FOUR_BAR = body(
    "crank", "0 0 0", HINGE.format("A", "0 0 1"),
    body("coupler", "0.3 0 0", HINGE.format("B", "0 0 1"), quat="0.9 0 0 0.3"),
) + body("rocker", "0.5 0 0", HINGE.format("C", "0 0 1"), quat="0.8 0 0 0.6")  # fmt: skip
CLOSED = {
    "connect": mjcf(
        FOUR_BAR,
        '<equality><connect body1="coupler" body2="rocker" anchor="0.4 0 0"/></equality>',
    ),
    "open at the zero": mjcf(
        FOUR_BAR.replace("/></body><body", '/><site name="p" pos="0.42 0.03 0"/></body><body', 1).replace(
            "</body>", '<site name="p" pos="0.42 0.01 0"/></body>', 1
        )[:-7]
        + '<site name="r" pos="0.35 0 0"/></body>',
        '<equality><connect site1="p" site2="r"/></equality>',
    ),
    "weld and coupling": mjcf(
        body("one", "0 0 0", HINGE.format("A", "0 0 1"), body("two", "0.3 0 0", HINGE.format("B", "0 0 1")))
        + body("three", "0.7 0 0", '<joint name="x" type="slide" axis="1 0 0"/>'
               '<joint name="y" type="slide" axis="0 1 0"/>' + HINGE.format("turn", "0 0 1"))
        + body("four", "0 0 1", HINGE.format("D", "0 1 0")),
        '<equality><weld body1="two" body2="three"/>'
        '<joint joint1="D" joint2="A" polycoef="0.2 -1.5 0 0 0"/></equality>',
    ),
    "ball joint in a loop": mjcf(
        body("crank", "0 0 0", HINGE.format("A", "0 0 1"),
             body("rod", "0.3 0 0", '<joint name="ball" type="ball"/>',
                  '<body name="tip"><site name="p" pos="0.5 0.1 0"/></body>', quat="0.9 0.1 0.2 0.3"))
        + body("slider", "0.2 0.6 0.1", '<joint name="x" type="slide" axis="1 0 0"/>',
               '<body name="end"><site name="r"/></body>'),
        '<equality><connect site1="p" site2="r"/></equality>',
    ),
    "rod whose spin is held": mjcf(
        body("crank", "0 0 0", HINGE.format("A", "0 0 1"),
             body("rod", "0.1 0 0", '<joint name="ball" type="ball" damping="0.2"/>', quat="0.7 0 0.3 0"))
        + body("rocker", "0.3 0 0", HINGE.format("D", "0 1 0"), '<site name="s" pos="0 0.05 0.2"/>'),
        '<equality><connect body1="rod" body2="rocker" anchor="0.05 0.1 0.2"/></equality>',
    ),
}  # fmt: skip


def peer_of(text: str, m: kic.Mechanism, path):
    pytest.importorskip("mujoco")
    path.write_text(text)
    return MujocoPeer(path, m)


@pytest.mark.parametrize("name", OPEN)
def test_open(name, tmp_path):
    pytest.importorskip("mujoco")
    m = kic.from_mjcf(OPEN[name])
    worst = compare_open(m, peer_of(OPEN[name], m, tmp_path / "robot.xml"), np.random.default_rng(0))
    assert max(worst.values()) < OPEN_RTOL, worst


@pytest.mark.parametrize("name", CLOSED)
def test_closed(name, tmp_path):
    pytest.importorskip("mujoco")
    m = kic.from_mjcf(CLOSED[name])
    assert not m._model.tree.open
    worst = compare_closed(m, peer_of(CLOSED[name], m, tmp_path / "robot.xml"), np.random.default_rng(0))
    assert max(worst.values()) < CLOSED_RTOL, worst


def test_held_spin_in_the_order_of_mujoco():
    """Rates of a universal joint are those of the ball joint of the file; a spin in its q is an error."""
    mujoco = pytest.importorskip("mujoco")
    text = CLOSED["rod whose spin is held"]
    m = kic.from_mjcf(text)
    assert m["ball"].type == "universal"
    order = kic.joint_order(m, mujoco.MjModel.from_xml_string(text))
    h, c = 1e-5, m.at()
    near, ends = float(c.value("A")), []
    for step in (-h, h):
        data = mujoco.MjData(mujoco.MjModel.from_xml_string(text))
        ends.append(order.q(m.at({"A": near + step}, near=c)))
    v = np.zeros(order.nv)
    mujoco.mj_differentiatePos(data.model, v, 2 * h, *ends)
    assert order.v(c, [1.0]) == pytest.approx(v, abs=20 * h**2)
    both = m.replace(coordinates=["ball.1"])
    assert kic.joint_order(both, data.model).inputs(order.q(c))["ball"] == pytest.approx(
        c.value("ball"), abs=1e-12
    )


def test_angles_of_a_held_spin_may_exceed_a_right_angle():
    """Also the second one, whose cosine is then negative; and a batch may be empty."""
    mujoco = pytest.importorskip("mujoco")
    text = mjcf(body("rod", "0 0 1", '<joint name="B" type="ball"/>'))
    ball = kic.from_mjcf(text)
    m = ball.replace("B", type="universal", axis=(1, 2, 0), axis2=(0, 0, 1))
    order = kic.joint_order(m, mujoco.MjModel.from_xml_string(text))
    for angles in ([0.3, 2.0], [-2.9, 1.2], [3.0, -3.0], [0.5, np.pi / 2]):
        given = order.inputs(order.q(m.at({"B": angles})))["B"]
        assert given == pytest.approx(angles, abs=1e-12)
    assert order.inputs(np.zeros((0, 4)))["B"].shape == (0, 2)


URDF = """<robot name="{name}"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="hand"/>
<joint name="A" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="0" upper="0.1" effort="1" velocity="1"/></joint>
<joint name="B" type="continuous"><parent link="{parent}"/><child link="hand"/><origin xyz="0.3 0 0"/></joint>
</robot>"""
SLIDER = """<sdf version="1.9"><model name="slider">
<link name="crank"><inertial><mass>1</mass></inertial></link>
<link name="rod"><pose>0.1 0 0 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<link name="cart"><pose>0.1 0.3 0 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<joint name="A" type="revolute"><parent>world</parent><child>crank</child>
<axis><xyz>0 0 1</xyz></axis></joint>
<joint name="B" type="revolute"><parent>crank</parent><child>rod</child><axis><xyz>0 0 1</xyz></axis></joint>
<joint name="C" type="revolute"><pose>0 0.3 0 0 0 0</pose><parent>rod</parent><child>cart</child>
<axis><xyz>0 0 1</xyz></axis></joint>
<joint name="D" type="prismatic"><parent>world</parent><child>cart</child>
<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""


def test_table_of_files(tmp_path, capsys):
    """The table has a row for each file, and counts; an error that is not of kic is wrong."""
    texts = {
        "broken.urdf": URDF.format(name="broken", parent="nobody"),
        "open.urdf": URDF.format(name="open", parent="arm"),
        "slider.sdf": SLIDER,
        "notes.xml": "<notes/>",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    rows = {row.split("|")[1].split("/")[-1].strip(): row for row in said.splitlines() if "/" in row}
    assert {*rows} >= {*texts} - {"notes.xml"}
    assert "| 1 | 1 |" in rows["slider.sdf"]
    assert "1/1" in rows["slider.sdf"]
    assert "2/2" in rows["open.urdf"]
    assert "ModelFileError" in rows["broken.urdf"]
    for words in ("3 files", "2 loaded", "1 refused by ModelFileError"):
        assert f"    {words}\n" in said


def test_no_failure_is_silent(tmp_path, monkeypatch, capsys):
    path = tmp_path / "open.urdf"
    path.write_text(URDF.format(name="open", parent="arm"))

    def fail(*_, **__):
        raise ZeroDivisionError("by accident")

    monkeypatch.setattr(kic, "from_urdf", fail)
    assert examine(path).reasons == ["RAISES ZeroDivisionError: by accident"]
    assert main([str(path)]) == 1
    if hasattr(signal, "SIGALRM"):
        monkeypatch.setattr(kic, "from_urdf", lambda *_, **__: [None for _ in iter(int, 1)])
        assert examine(path, seconds=0.1).compared == "OVER TIME"
