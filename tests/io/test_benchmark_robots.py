"""Robots written here, compared with MuJoCo and Pinocchio; needs the extra `bench`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import kic

pytest.importorskip("mujoco")
pytest.importorskip("pinocchio")
sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.robots import CLOSED_RTOL, OPEN_RTOL, MujocoPeer, compare_closed, compare_open

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
}  # fmt: skip


def peer_of(text: str, m: kic.Mechanism, path):
    path.write_text(text)
    return MujocoPeer(path, m)


@pytest.mark.parametrize("name", OPEN)
def test_open(name, tmp_path):
    m = kic.from_mjcf(OPEN[name])
    worst = compare_open(m, peer_of(OPEN[name], m, tmp_path / "robot.xml"), np.random.default_rng(0))
    assert max(worst.values()) < OPEN_RTOL, worst


@pytest.mark.parametrize("name", CLOSED)
def test_closed(name, tmp_path):
    m = kic.from_mjcf(CLOSED[name])
    assert not m._model.tree.open
    worst = compare_closed(m, peer_of(CLOSED[name], m, tmp_path / "robot.xml"), np.random.default_rng(0))
    assert max(worst.values()) < CLOSED_RTOL, worst
