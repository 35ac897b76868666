"""Overconstrained loops in files of a few digits, or many: they move as the exact ones do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from raising import refuses
from scipy.spatial.transform import Rotation

import kic
from kic.mechanism.assembly import tolerate_rounding

TURN = 0.3
INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
INERTIAL = f'<inertial><mass value="1"/>{INERTIA}</inertial>'
# hinges, and rotation vectors of their frames
Turns = Sequence[tuple[int, np.ndarray]]
# error of joint angles, and the tolerance that is chosen, over the rounding: links of 0.1 amplify it by ten,
# and positions near dead centres by three; the tolerance has a margin of ten
ERROR_MAX, TOLERANCE_MAX = 100, 1000


def planar(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A crank, a coupler and a rocker."""
    places = np.array([[0, 0, 0], [0.1, 0.1, 0], [0.3, 0.25, 0], [0.3, 0, 0]])
    return places + 0.03 * rng.uniform(-1, 1, (4, 3)) * [1, 1, 0], np.tile([0, 0, 1.0], (4, 1))


def parallelogram(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two pairs of equal links."""
    a, b = rng.uniform(0.1, 0.3), np.array([rng.uniform(-0.1, 0.1), rng.uniform(0.1, 0.2), 0])
    return np.array([0 * b, b, b + np.array([a, 0, 0]), [a, 0, 0]]), np.tile([0, 0, 1.0], (4, 1))


def spherical(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Four axes through one point."""
    axes = planar(rng)[0] + [0, 0, 0.3]
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return axes * rng.uniform(0.1, 0.3, (4, 1)), axes


def bennett(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Opposite links are equal, lengths go with the sines of their twists, and tan(θ/2) tan(y/2) = k."""
    alpha, beta, theta = rng.uniform(0.5, 0.7), rng.uniform(1.0, 1.3), rng.uniform(0.8, 1.2)
    k = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    y, T, places, axes = 2 * np.arctan(k / np.tan(theta / 2)), np.eye(4), [], []
    for twist, angle in zip((alpha, beta, alpha, beta), (theta, y, -theta, -y), strict=True):
        places.append(T[:3, 3])
        axes.append(T[:3, 2])
        R = Rotation.from_euler("ZX", [angle, twist]).as_matrix()
        T = T @ np.block([[R, R[:, :1] * 0.2 * np.sin(twist) / np.sin(alpha)], [np.zeros((1, 3)), 1.0]])
    return np.array(places), np.array(axes)


def sarrus(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three parallel axes, and three others."""
    places = np.array(
        [[0, 0, 0], [0.1, 0, 0.1], [0, 0, 0.2], [0.1, 0.1, 0.2], [0.1, 0.2, 0.1], [0.1, 0.1, 0]]
    )
    return places + 0.02 * rng.uniform(-1, 1, (6, 3)), np.repeat([[0, 1.0, 0], [1.0, 0, 0]], 3, axis=0)


def bricard(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The shipped model, in another size."""
    joints, size = kic.load("bricard").joints, rng.uniform(0.5, 2.0)
    # in the order of the loop
    order, at = [joints[0]], joints[0].bodies[1]
    while len(order) < len(joints):
        order.append(next(j for j in joints if j not in order and at in j.bodies))
        at = next(body for body in order[-1].bodies if body != at)
    return size * np.array([j.at for j in order]), np.array([j.axis for j in order])


LOOPS = (planar, parallelogram, spherical, bennett, sarrus, bricard)


def linkage(
    kind: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Places and unit axes (n, 3) of the hinges of a loop, somewhere in space, with no dead centre nearby."""
    rng = np.random.default_rng(seed)
    while True:
        turn, shift = Rotation.from_rotvec(rng.uniform(-2, 2, 3)), rng.uniform(-0.2, 0.2, 3)
        places, axes = kind(rng)
        axes = turn.apply(axes / np.linalg.norm(axes, axis=1, keepdims=True))
        places = turn.apply(places) + shift
        if exact(places, axes).at({"J0": [-TURN, 1.5 * TURN]}, failures="mask").ok.all():
            return places, axes


def exact(places: np.ndarray, axes: np.ndarray) -> kic.Mechanism:
    """The linkage with all digits: hinge k joins links k and k + 1, and link 0 is the ground."""
    names = ["ground", *(f"link{k}" for k in range(1, len(places)))]
    bodies = [kic.Body(name, mass=1.0, com=tuple(places[0]), inertia=(1.0, 1.0, 1.0)) for name in names[1:]]
    ends = [*pairwise(names), (names[-1], names[0])]
    joints = [
        kic.Joint(f"J{k}", "revolute", ends[k], tuple(places[k]), tuple(axes[k])) for k in range(len(places))
    ]
    return kic.Mechanism("linkage", bodies, joints, coordinates=["J0"])


def poses(places: np.ndarray, axes: np.ndarray, turns: Turns = ()) -> list[np.ndarray]:
    """Frames (4, 4) of the hinges, z along the axis, each in that before; then two of the last hinge.

    Some are turned by rotation vectors, with all below.
    """
    made = [np.eye(4)]
    for place, axis in zip(places, axes, strict=True):
        T = np.eye(4)
        T[:3, 0] = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
        T[:3, 0] /= np.linalg.norm(T[:3, 0])
        T[:3, 1], T[:3, 2], T[:3, 3] = np.cross(axis, T[:3, 0]), axis, place
        made.append(T)
    frames = [*(np.linalg.inv(a) @ b for a, b in pairwise(made)), made[-1]]
    for hinge, turn in turns:
        frames[hinge][:3, :3] = frames[hinge][:3, :3] @ Rotation.from_rotvec(turn).as_matrix()
    return frames


def numbers(x: np.ndarray, digits: int) -> str:
    return " ".join(f"{value:.{digits}f}" for value in x)


def six(T: np.ndarray, digits: int) -> tuple[str, str]:
    """Place, and roll, pitch and yaw."""
    return numbers(T[:3, 3], digits), numbers(Rotation.from_matrix(T[:3, :3]).as_euler("xyz"), digits)


def urdf(places: np.ndarray, axes: np.ndarray, digits: int, turns: Turns = ()) -> kic.Mechanism:
    n, frames = len(places), poses(places, axes, turns)
    links = "".join(f'<link name="link{k}">{INERTIAL}</link>' for k in range(1, n))
    joints = ""
    for k in range(n + 1):
        parent = "base" if k in (0, n) else f"link{k}"
        child = f"link{k + 1}" if k < n - 1 else ("end", "pin")[k - n + 1]
        xyz, rpy = six(frames[k], digits)
        joints += (
            f'<joint name="J{k}" type="{"continuous" if k < n - 1 else "fixed"}"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/></joint>'
        )
    ends = '<link name="end"/><link name="pin"/>'
    text = f'<robot name="r"><link name="base"/>{links}{ends}{joints}</robot>'
    return kic.from_urdf(text, loops=[("end", "pin", "revolute")], coordinates=["J0"])


def sdf(places: np.ndarray, axes: np.ndarray, digits: int, turns: Turns = ()) -> kic.Mechanism:
    n, frames, text = len(places), poses(places, axes, turns), ""
    for k in range(n):
        parent, child = f"link{k}" if k else "world", f"link{k + 1}" if k < n - 1 else "closing"
        pose, before = " ".join(six(frames[k], digits)), parent if k else "__model__"
        text += (
            f'<link name="{child}"><pose relative_to="J{k}">0 0 0 0 0 0</pose><inertial/></link>'
            f'<joint name="J{k}" type="revolute"><pose relative_to="{before}">{pose}</pose>'
            f"<parent>{parent}</parent><child>{child}</child><axis><xyz>0 0 1</xyz></axis></joint>"
        )
    text += f'<frame name="pin"><pose>{" ".join(six(frames[n], digits))}</pose></frame>'
    text += '<joint name="weld" type="fixed"><pose relative_to="pin"/><parent>world</parent>'
    text += "<child>closing</child></joint>"
    return kic.from_sdf(f'<sdf version="1.9"><model name="r">{text}</model></sdf>', coordinates=["J0"])


def mjcf(places: np.ndarray, axes: np.ndarray, digits: int, turns: Turns = ()) -> kic.Mechanism:
    n, frames, text = len(places), poses(places, axes, turns), ""
    for k in range(n):
        quat = numbers(Rotation.from_matrix(frames[k][:3, :3]).as_quat()[[3, 0, 1, 2]], digits)
        text += (
            f'<body name="link{k + 1}" pos="{numbers(frames[k][:3, 3], digits)}" quat="{quat}">'
            f'<joint name="J{k}" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        )
    return kic.from_mjcf(
        f'<mujoco><compiler angle="radian"/><worldbody>{text}{"</body>" * n}</worldbody>'
        f'<equality><weld body1="link{n}"/></equality></mujoco>'
    ).replace(coordinates=["J0"])


def toml(places: np.ndarray, axes: np.ndarray, digits: int, folder: Path) -> kic.Mechanism:
    path = folder / "linkage.toml"
    exact(places, axes).save(path)
    text = re.sub(r"-?\d+\.\d+(e-\d+)?", lambda x: f"{float(x.group()):.{digits}f}", path.read_text())
    path.write_text(text)
    return kic.load(path)


def check(m: kic.Mechanism, e: kic.Mechanism, digits: int) -> None:
    """A mechanism moves as the exact one does."""
    assert (m.dof, m.mobility().finite) == (1, True)
    assert m.closure_tolerance <= TOLERANCE_MAX * 10.0**-digits
    assert bool(m.closure_tolerance) == any("by rounding" in remark for remark in m.remarks)
    names = [f"J{k}" for k in range(1, len(e.joints) - 1)]
    here, there = m.at(), e.at()
    start = float(here.value("J0"))
    atol = ERROR_MAX * 10.0**-digits + 1e-12
    wanted = e.at({"J0": start + TURN * np.arange(3)[:, None] / 2}, near=there)
    for c in (
        m.path({"J0": start + TURN * np.arange(3) / 2}, near=here),
        m.at({"J0": start + TURN * np.arange(3) / 2}, near=here),
    ):
        for name in names:
            off = c.value(name) - wanted.value(name)[:, 0]
            off -= 2 * np.pi * np.round(off / (2 * np.pi))
            assert np.abs(off).max() < atol
        G = c.coefficients(names).G, wanted.coefficients(names).G[:, 0]
        assert np.abs(G[0] - G[1]).max() < 20 * atol * max(1.0, np.abs(G[1]).max() ** 2)
    assert m.simulate(0.01, near=here).t[-1] == 0.01


@pytest.mark.parametrize(
    "digits", [4, 10, *(pytest.param(n, marks=pytest.mark.slow) for n in range(5, 18) if n != 10)]
)
@pytest.mark.parametrize("kind", LOOPS)
def test_rounded_loops_move(
    kind: Callable[..., tuple[np.ndarray, np.ndarray]], digits: int, tmp_path: Path
) -> None:
    """With any number of digits, in TOML, URDF and SDF."""
    places, axes = linkage(kind, digits)
    e = exact(places, axes)
    for m in (toml(places, axes, digits, tmp_path), urdf(places, axes, digits), sdf(places, axes, digits)):
        check(m, e, digits)


def door(joint: str, closing: str, digits: int, seed: int, arms: bool) -> kic.Mechanism:
    """A body on a joint, held a second time further along its axis; the axis z of both is rounded.

    With `arms`, it is part of a robot: on a turned base, with a hinge more on the body.
    """
    rng = np.random.default_rng(seed)
    turn, place = Rotation.from_rotvec(rng.uniform(-1, 1, 3)), rng.uniform(-0.3, 0.3, 3)
    first = np.eye(4)
    first[:3, :3], first[:3, 3] = turn.as_matrix(), place
    second = first.copy()
    second[:3, 3] += turn.apply([0, 0, rng.uniform(0.3, 1.0)])
    parts = [("A", joint, "base", "door", first), ("k", "fixed", "base", "pin", second)]
    parts += [("h", "fixed", "door", "end", np.linalg.inv(first) @ second)]
    turret = ("turret", "continuous", "ground", "base", np.eye(4))
    parts += [turret, ("B", "continuous", "door", "arm", first)] * arms
    text = "".join(
        f'<joint name="{name}" type="{kind}"><parent link="{a}"/><child link="{b}"/><axis xyz="0 0 1"/>'
        f'<limit lower="-1" upper="1" effort="1" velocity="1"/>'
        f'<origin xyz="{six(T, digits)[0]}" rpy="{six(T, digits)[1]}"/></joint>'
        for name, kind, a, b, T in parts
    )
    links = "".join(f'<link name="{name}">{INERTIAL}</link>' for name in ("door", *["base", "arm"] * arms))
    links += '<link name="end"/><link name="pin"/>' + f'<link name="{"ground" if arms else "base"}"/>'
    return kic.from_urdf(f'<robot name="r">{links}{text}</robot>', loops=[("end", "pin", closing)])


@pytest.mark.parametrize("arms", [False, True])
@pytest.mark.parametrize("digits", [4, 6, 9, 17])
@pytest.mark.parametrize(
    ("joint", "closing"),
    [
        ("continuous", "revolute"), ("continuous", "spherical"), ("continuous", "cylindrical"),
        ("prismatic", "prismatic"), ("prismatic", "cylindrical"),
    ],
)  # fmt: skip
def test_loops_of_redundant_conditions_alone_move(joint: str, closing: str, digits: int, arms: bool) -> None:
    """Doors on two hinges, drawers on two rails: the second joint holds nothing that the first does not."""
    for seed in range(4):
        m = door(joint, closing, digits, seed, arms)
        assert (m.dof, m.mobility().finite) == (3 if arms else 1, True)
        assert m.closure_tolerance <= TOLERANCE_MAX * 10.0**-digits
        assert "A" in m.coordinates
        values = np.linspace(-1, 1, 5)
        c = m.at({name: values for name in m.coordinates}, failures="mask")
        assert c.ok.all()
        # a turn of one about the axis, or a slide
        rates = c.coefficients("door").G[..., m.coordinates.index("A")]
        assert np.linalg.norm(rates, axis=-1).min() > 1 - 1e-9
        assert np.abs(c.dynamics().I[:, 0, 0] - c.dynamics().I[0, 0, 0]).max() < 1e-9
        assert m.simulate(0.01).t[-1] == 0.01


@pytest.mark.parametrize("digits", [4, 10])
@pytest.mark.parametrize("kind", LOOPS)
def test_rounded_loops_of_mjcf_move(kind: Callable[..., tuple[np.ndarray, np.ndarray]], digits: int) -> None:
    pytest.importorskip("mujoco")
    places, axes = linkage(kind, digits)
    check(mjcf(places, axes, digits), exact(places, axes), digits)


def tilted(places: np.ndarray, axes: np.ndarray, angle: float, hinge: int = 1) -> kic.Mechanism:
    """The linkage in URDF with all digits, one axis off by an angle."""
    about = np.cross(axes[hinge], np.eye(3)[np.argmin(np.abs(axes[hinge]))])
    axes = axes.copy()
    axes[hinge] = Rotation.from_rotvec(angle * about / np.linalg.norm(about)).apply(axes[hinge])
    return urdf(places, axes, 17)


@pytest.mark.parametrize("written", [1.57, 1.5708, 3.14])
@pytest.mark.parametrize("kind", LOOPS)
def test_right_angles_may_be_written_by_hand(
    kind: Callable[..., tuple[np.ndarray, np.ndarray]], written: float
) -> None:
    """An axis turns by the error of the angle; joint angles are off by some times as much."""
    angle = abs(written - np.pi / round(np.pi / written))
    places, axes = linkage(kind, 3)
    m, e = tilted(places, axes, angle), exact(places, axes)
    start = float(m.at().value("J0"))
    c = m.path({"J0": start + np.linspace(0, TURN, 4)}, near=m.at())
    off = c.value("J1") - e.path({"J0": start + np.linspace(0, TURN, 4)}, near=e.at({"J0": start})).value(
        "J1"
    )
    assert m.dof == 1
    assert np.abs(off).max() < 20 * angle


@pytest.mark.parametrize("hinge", [1, 2, 3])
@pytest.mark.parametrize("kind", LOOPS)
def test_an_axis_off_by_a_hundredth_is_named(
    kind: Callable[..., tuple[np.ndarray, np.ndarray]], hinge: int
) -> None:
    """It is no rounding. Turned back, the loop moves; several axes of a Bricard loop may turn instead."""
    places, axes = linkage(kind, 3)
    m = tilted(places, axes, 0.01, hinge)
    assert (m.dof, m.closure_tolerance) == (0, 0.0)
    name = "end to pin" if hinge == len(axes) - 1 else f"J{hinge}"
    (remark,) = (text for text in m.remarks if "makes a condition of its loops redundant" in text)
    angle, *entries = map(
        float, re.search(f"the axis of '{name}' by (.*?) rad to .(.*?), (.*?), (.*?)[)]", remark).groups()
    )
    assert remark[remark.index("urning the ") :] in m.mobility().caveat()
    # of second order in the tilt, but for a Bricard loop, which may become another one
    assert angle == pytest.approx(0.01, rel=0.6 if kind is bricard else 0.05)
    assert kind is bricard or np.abs(entries - axes[hinge]).max() < 0.05 * 0.01
    refuses(lambda: m.at({"J0": 0.1}), kic.KicError, match=f"the axis of '{name}' by 0.0")


def turned_frames(axes: np.ndarray, count: int = 3) -> Iterator[tuple[int, int, str]]:
    """Hinges of `urdf` but the first, each with axes of its frame and its name; both frames of the last."""
    for hinge in range(1, len(axes) + 1):
        for k in range(count):
            yield hinge, k, f"J{hinge}" if hinge < len(axes) - 1 else "end to pin"


@pytest.mark.parametrize("kind", LOOPS)
def test_one_frame_in_a_loop_may_be_written_by_hand(
    kind: Callable[..., tuple[np.ndarray, np.ndarray]],
) -> None:
    """A frame that is off by the error of 3.14 turns all below: the loop closes to that, and moves."""
    places, axes = linkage(kind, int(kind is sarrus))
    for hinge, k, _ in turned_frames(axes):
        m = urdf(places, axes, 17, [(hinge, 0.0016 * np.eye(3)[k])])
        start = m.at()
        c = m.path({"J0": float(start.value("J0")) + np.linspace(0, 0.2, 3)}, near=start)
        assert (m.dof, c.ok.all()) == (1, True)


def test_frames_of_other_formats_may_be_written_by_hand() -> None:
    """Where the loop does not close, a remark names the hinge and the angle."""
    pytest.importorskip("mujoco")
    for hinge in (1, 3):
        for write in (urdf, sdf, mjcf):
            m = write(*linkage(planar, 0), 17, [(hinge, np.array([0.0025, 0.0, 0.0]))])
            assert m.dof == 1
            assert m.at({"J0": float(m.at().value("J0")) + 0.2}).ok
    for hinge, name in ((1, "J1"), (3, "end to pin"), (4, "end to pin")):
        m = urdf(*linkage(planar, 0), 17, [(hinge, np.array([0.0025, 0.0, 0.0]))])
        remark = f"turning the frame of '{name}' by 0.0025 rad closes loop 'end to pin'"
        assert any(remark in text for text in m.remarks)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))])
@pytest.mark.parametrize("kind", LOOPS[:4])
def test_a_frame_off_by_a_hundredth_is_named(
    kind: Callable[..., tuple[np.ndarray, np.ndarray]], seed: int
) -> None:
    """It is no rounding, and the error has the hinge and the angle."""
    places, axes = linkage(kind, seed)
    for hinge, k, name in turned_frames(axes, 2):
        with pytest.raises(kic.ModelError, match=f"the frame of '{name}' by 0.0") as caught:
            urdf(places, axes, 17, [(hinge, 0.01 * np.eye(3)[k])])
        assert 0.008 < caught.value.turns[name] < 0.022


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        (sarrus, 0),
        (bricard, 3),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((sarrus, 1), (bricard, 4), (bricard, 5))),
    ],
)
def test_a_frame_is_named_where_the_loop_closes_and_is_rigid(
    kind: Callable[..., tuple[np.ndarray, np.ndarray]], seed: int
) -> None:
    """Loops of six hinges may close when a frame is off. They move if it turns back, or axes beside it."""
    places, axes = linkage(kind, seed)
    refused, framed = list[bool](), list[bool]()
    for hinge, k, name in turned_frames(axes, 2):
        try:
            m = urdf(places, axes, 17, [(hinge, 0.01 * np.eye(3)[k])])
        except kic.ModelError as error:
            refused.append(name in error.turns)
            continue
        assert (m.dof, m.closure_tolerance) == (0, 0.0)
        (remark,) = (text for text in m.remarks if "makes a condition of its loops redundant" in text)
        angles = dict(re.findall("the frame of '(.*?)' by (.*?) rad", remark))
        assert name in angles or f"the axis of '{name}' by 0.0" in remark
        assert 0.007 < float(angles.get(name, 0.01)) < 0.014
        framed.append(name in angles)
        # the axes that are named, turned, let it move
        for joint, *axis in re.findall("the axis of '(.*?)' by .*? rad to .(.*?), (.*?), (.*?)[)]", remark):
            there = m.replace(joint, axis=tuple(map(float, axis)))
            assert tolerate_rounding(there.replace(coordinates=None)).dof == 1
    assert all(refused)
    assert 2 * sum(framed) >= len(framed) > 0


def test_a_turn_that_parallel_hinges_take_up_is_none() -> None:
    """Between the triples of a Sarrus linkage, a frame turns about the axes of one of them by 0.01 rad.

    Perpendicular to both the turn is 0.0016 rad, and rounding; the rest is in the angles of the hinges.
    """
    places, axes = linkage(sarrus, 3)
    T = np.linalg.multi_dot(poses(places, axes)[:4])
    off = 0.01 * T[:3, 0] @ np.cross(axes[0], axes[-1])
    m = urdf(places, axes, 17, [(3, np.array([0.01, 0.0, 0.0]))])
    assert m.dof == 1
    assert any(f"the frame of 'J3' by {abs(off):.2g} rad" in text for text in m.remarks)


def test_two_axes_off_by_a_hundredth_are_no_rounding() -> None:
    """Those of the fixed hinges, of which neither alone explains what the loop misses."""
    places, axes = linkage(planar, 3)
    axes = axes.copy()
    for hinge, angle in ((0, 0.01), (2, -0.01)):
        about = np.cross(axes[hinge], np.eye(3)[np.argmin(np.abs(axes[hinge]))])
        axes[hinge] = Rotation.from_rotvec(angle * about / np.linalg.norm(about)).apply(axes[hinge])
    assert urdf(places, axes, 17).dof == 0


@pytest.mark.parametrize("turn", [0.005, 0.01, 0.02])
def test_a_leg_that_is_not_parallel_to_two_others_is_no_rounding(turn: float) -> None:
    """Three equal legs of a platform are parallel but for one: no axis is tilted, and it is rigid."""
    z, legs = (0.0, 0.0, 1.0), range(3)
    joints = []
    for k in legs:
        foot = np.array([0.3 * k, 0.0, 0.0])
        angle = np.pi / 3 + turn * (k == 1)
        top = foot + np.array([np.cos(angle), np.sin(angle), 0.0])
        joints += [
            kic.Joint(f"A{k}", "revolute", ("ground", f"leg{k}"), tuple(foot), z),
            kic.Joint(f"B{k}", "revolute", (f"leg{k}", "platform"), tuple(top), z),
        ]
    m = kic.Mechanism("legs", [kic.Body(n) for n in ("leg0", "leg1", "leg2", "platform")], joints)
    assert tolerate_rounding(m).closure_tolerance == 0.0


def test_a_saved_mechanism_keeps_its_tolerance(tmp_path: Path) -> None:
    """Also of zero, where reading would choose one."""
    places, axes = linkage(bennett, 3)
    m = exact(places.round(5), axes.round(5))
    m.save(tmp_path / "saved.toml")
    assert (m.dof, kic.load(tmp_path / "saved.toml")) == (0, m)


@pytest.mark.parametrize("seed", range(8))
def test_conditions_of_one_size_are_not_divided(seed: int) -> None:
    """A ring of six nearly parallel hinges is rigid, or planar: no tolerance lies between its tilts."""
    rng = np.random.default_rng(seed)
    turn = np.linspace(0, 2 * np.pi, 6, endpoint=False) + rng.uniform(-0.3, 0.3, 6)
    places = np.array([np.cos(turn), np.sin(turn), 0 * turn]).T * rng.uniform(0.7, 1.3, (6, 1))
    axes = np.array([0, 0, 1.0]) + 3e-3 * rng.uniform(-1, 1, (6, 3))
    m = urdf(places, axes / np.linalg.norm(axes, axis=1, keepdims=True), 17)
    assert m.dof == (3 if m.closure_tolerance else 0)
