"""Loops of files close in the assembly mode of `near`, or of a key frame, also where numbers are rounded."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises, refuses
from scipy.spatial.transform import Rotation

import kic

LENGTHS = (0.1, 0.3, 0.25, 0.28)  # crank, coupler, rocker, base


def by_circles(lengths: tuple[float, ...], crank: float, side: int) -> dict[str, float]:
    """Return the angles of a four-bar whose pin is on one side of the line between crank and base."""
    a, b, c, base = lengths
    P, O = a * np.array([np.cos(crank), np.sin(crank)]), np.array([base, 0.0])
    size = np.hypot(*(O - P))
    along, u = (b**2 - c**2 + size**2) / (2 * size), (O - P) / size
    C = P + along * u + side * np.sqrt(b**2 - along**2) * np.array([-u[1], u[0]])
    rod, rocker = np.arctan2(*(C - P)[::-1]), np.arctan2(*(C - O)[::-1])
    turn = (rod - crank + np.pi) % (2 * np.pi) - np.pi
    return {"A": crank, "B": float(turn), "D": float(rocker)}


def urdf(lengths: tuple[float, ...], roll: float) -> str:
    """Return a four-bar whose base hinges are turned by a right angle, one of them rounded."""
    a, b, c, base = lengths
    names = ("base", "crank", "rod", "rocker", "e1", "e2")
    hinges = [
        ("A", "base", "crank", 0.0, roll, "continuous"),
        ("B", "crank", "rod", a, 0.0, "continuous"),
        ("D", "base", "rocker", base, np.pi / 2, "continuous"),
        ("f1", "rod", "e1", b, 0.0, "fixed"),
        ("f2", "rocker", "e2", c, 0.0, "fixed"),
    ]
    text = "".join(
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x!r} 0 0" rpy="{turn!r} 0 0"/><axis xyz="0 0 1"/></joint>'
        for name, parent, child, x, turn, kind in hinges
    )
    return f'<robot name="r">{"".join(f"""<link name="{n}"/>""" for n in names)}{text}</robot>'


def four_bars() -> list[tuple[float, ...]]:
    """Return cranks that turn fully, so that both modes exist everywhere and are well apart."""
    rng, made = np.random.default_rng(41), [LENGTHS]
    while len(made) < 8:
        lengths = np.sort(rng.uniform(0.1, 0.5, 4))
        if lengths[0] + lengths[3] < 0.85 * (lengths[1] + lengths[2]):
            made.append(tuple(float(x) for x in (lengths[0], *rng.permutation(lengths[1:]))))
    return made


def gap(found: dict[str, float], m: kic.Mechanism) -> float:
    """Return the largest difference of angles of the reference configuration."""
    turns = [float(m.at().value(name)) - x for name, x in found.items()]
    return float(np.abs(np.exp(1j * np.array(turns)) - 1).max())


@pytest.mark.parametrize("roll", [np.pi / 2, 1.57079632679, 1.5707963, 1.5708, 1.571, 1.57])
def test_rounding_does_not_change_the_mode_of_near(roll):
    """An axis off by e moves the pin by e times the length at most, and angles by few times as much."""
    for lengths in four_bars():
        for side in (1, -1):
            for off in (0.0, 0.05):
                near = {name: x + off for name, x in by_circles(lengths, 1.0, side).items()}
                m = kic.from_urdf(urdf(lengths, roll), loops=[("e1", "e2", "revolute")], near=near)
                crank = float(m.at().value("A"))
                assert abs(crank - 1.0) < 0.2
                assert gap(by_circles(lengths, crank, side), m) < 20 * abs(roll - np.pi / 2) + 1e-9


def place(m: kic.Mechanism, name: str) -> np.ndarray:
    """Return the origin of a frame in the reference configuration."""
    return np.array(m[name].origin)


def mjcf(keys: str, lengths: tuple[float, ...] = LENGTHS, kind: str = "hinge", limits: str = "") -> str:
    """Return a four-bar whose rod is on the crank by a hinge or ball, or free, and tied to the rocker."""
    a, b, c, base = lengths
    body = '<inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>'
    moves = {
        "hinge": '<joint name="B" axis="0 0 1"/>',
        "ball": '<joint name="B" type="ball"/>',
        "free": '<freejoint name="B"/>',
    }
    rod = f'<body name="rod" pos="{a} 0 0">{moves[kind]}{body}<site name="s" pos="{b} 0 0"/></body>'
    inside, outside = ("", rod) if kind == "free" else (rod, "")
    tie = '<connect body1="rod" body2="crank" anchor="0 0 0"/>' * (kind == "free")
    return f"""<mujoco><compiler autolimits="true" angle="radian"/><worldbody>
      <body name="crank"><joint name="A" axis="0 0 1"/>{body}{inside}</body>
      <body name="rocker" pos="{base} 0 0"><joint name="D" axis="0 0 1" {limits}/>{body}
        <site name="t" pos="{c} 0 0"/></body>{outside}</worldbody>
      <equality><connect name="tie" site1="s" site2="t"/>{tie}</equality>
      <keyframe>{keys}</keyframe></mujoco>"""


def frame(name: str, kind: str, lengths: tuple[float, ...], near: dict[str, float]) -> str:
    """Return a key frame with the angles of a four-bar."""
    turn = near["B"] + near["A"] * (kind == "free")
    rod = [turn] if kind == "hinge" else [np.cos(turn / 2), 0.0, 0.0, np.sin(turn / 2)]
    crank, rocker = [near["A"]], [near["D"]]
    if kind == "free":
        place = lengths[0] * np.array([np.cos(near["A"]), np.sin(near["A"])])
        numbers = [*crank, *rocker, *place, 0.0, *rod]
    else:
        numbers = [*crank, *rod, *rocker]
    return f'<key name="{name}" qpos="{" ".join(map(repr, map(float, numbers)))}"/>'


@pytest.mark.parametrize("kind", ["hinge", "ball", "free"])
def test_key_frames_select_the_mode(kind):
    """Rods on balls and free rods have the rotation of the key frame at the start, too."""
    pytest.importorskip("mujoco")
    for lengths in four_bars()[:4]:
        modes = {"up": by_circles(lengths, 1.0, 1), "down": by_circles(lengths, 1.0, -1)}
        text = mjcf("".join(frame(name, kind, lengths, near) for name, near in modes.items()), lengths, kind)
        for name, near in modes.items():
            m = kic.from_mjcf(text, key=name)
            assert gap({"A": near["A"], "D": near["D"]}, m) < 1e-9
            assert any(f"a search from key frame '{name}'" in remark for remark in m.remarks)
            # described where the rod has turned: frames of sites are in the world
            assert np.abs(place(m, "s") - place(m, "t")).max() < 1e-9
        with raises(kic.UnknownNameError, name="side", candidates=("up", "down")):
            kic.from_mjcf(text, key="side")


def test_a_key_frame_is_used_where_the_zero_is_closed():
    """A parallelogram is closed where it is drawn, and at every angle of its cranks."""
    pytest.importorskip("mujoco")
    lengths, near = (0.2, 0.3, 0.2, 0.3), {"A": 0.7, "B": -0.7, "D": 0.7}
    text = mjcf(frame("home", "hinge", lengths, near), lengths)
    for key, wanted in ((None, dict.fromkeys(near, 0.0)), ("home", near)):
        m = kic.from_mjcf(text, key=key)
        assert gap(wanted, m) < 1e-9
        assert any("a search from key frame 'home' is used" in x for x in m.remarks) == (key == "home")


def test_values_near_a_key_frame_replace_its_own():
    pytest.importorskip("mujoco")
    modes = {side: by_circles(LENGTHS, 1.0, side) for side in (1, -1)}
    text = mjcf(frame("home", "hinge", LENGTHS, modes[1]))
    m = kic.from_mjcf(text, key="home", near={"B": modes[-1]["B"], "D": modes[-1]["D"]})
    assert gap(modes[-1], m) < 1e-9


@pytest.mark.parametrize("side", [1, -1])
def test_starts_are_tried_in_order(side):
    """Straight bars along the base stay straight; limits exclude the first key frame, or the second."""
    pytest.importorskip("mujoco")
    modes = {1: by_circles(LENGTHS, 1.0, 1), -1: by_circles(LENGTHS, 1.0, -1)}
    keys = frame("up", "hinge", LENGTHS, modes[1]) + frame("down", "hinge", LENGTHS, modes[-1])
    limits = f'range="{"0.5 3" if side == 1 else "-3 -0.5"}"'
    m = kic.from_mjcf(mjcf(keys, limits=limits))
    assert gap(modes[side], m) < 1e-9
    said = f"a search from key frame '{'up' if side == 1 else 'down'}' closed them"
    assert any(said in remark for remark in m.remarks)
    # without key frames the zero within the limits leads to one of the two sides
    m = kic.from_mjcf(mjcf("", limits=limits))
    assert side * m.at().value("D") > 0.5
    # the key frame of the other mode is not left without an error
    with pytest.raises(kic.ModelFileError, match="beyond their limits: D by") as caught:
        kic.from_mjcf(mjcf(keys, limits=limits), key="down" if side == 1 else "up")
    assert gap(modes[side], kic.from_mjcf(mjcf(keys, limits=limits), near=caught.value.near)) < 1e-2


def test_a_start_may_turn_a_ball_joint():
    pytest.importorskip("mujoco")
    for side in (1, -1):
        near = by_circles(LENGTHS, 1.0, side)
        text = mjcf("", kind="ball")
        given = {"A": near["A"], "D": near["D"], "B.1": 0.0, "B.2": 0.0, "B.3": near["B"]}
        m = kic.from_mjcf(text, near=given)
        assert gap({"A": near["A"], "D": near["D"]}, m) < 1e-9
        along = (place(m, "s") - place(m, "rod_frame"))[:2]
        there = Rotation.from_euler("z", near["A"] + near["B"]).apply([LENGTHS[1], 0, 0])[:2]
        assert np.abs(along - there).max() < 1e-9


PENDULUM = """<sdf version="1.9"><model name="p"><link name="rod"/><joint name="A" type="revolute">
<parent>world</parent><child>rod</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""


@pytest.mark.parametrize("value", ["x", "0.3", [0.1, 0.2], np.nan, None, 1j])
def test_a_start_that_is_no_number_is_named(value):
    chain = kic.from_sdf(PENDULUM)
    readers = kic.from_urdf, kic.to_urdf(chain).text, urdf(LENGTHS, np.pi / 2)
    for read, text in ((kic.from_sdf, PENDULUM), *((readers[0], text) for text in readers[1:])):
        refuses(lambda read=read, text=text: read(text, near={"A": value}), key="near['A']", name="A")
    refuses(lambda: chain.close_loops([], near={"A": value}), key="near['A']", name="A")


def test_a_start_of_a_file_without_loops_has_a_remark():
    for text, read in ((PENDULUM, kic.from_sdf), (kic.to_urdf(kic.from_sdf(PENDULUM)).text, kic.from_urdf)):
        m = read(text, near={"A": 0.3})
        assert (m.at().value("A"), sum("`near` has no effect" in remark for remark in m.remarks)) == (0.0, 1)
        assert not any("has no effect" in remark for remark in read(text, near={}).remarks)


def test_a_key_frame_of_a_file_without_loops_has_a_remark():
    pytest.importorskip("mujoco")
    text = '<mujoco><worldbody><body><joint name="A"/><geom size="1"/></body></worldbody>'
    text += '<keyframe><key name="home" qpos="0.3"/></keyframe></mujoco>'
    for options in ({"key": "home"}, {"near": {"A": 0.3}}):
        assert any("has no effect" in remark for remark in kic.from_mjcf(text, **options).remarks)
    assert not any("has no effect" in remark for remark in kic.from_mjcf(text).remarks)


def parallelogram(limit: str, more: str = "") -> kic.Mechanism:
    """Return a parallelogram that is closed at the zero of its file, with a limit of its crank."""
    joints = [
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at}"/><axis xyz="0 0 1"/><limit {limit} effort="1" velocity="1"/></joint>'
        for name, kind, parent, child, at in (
            ("A", "revolute", "base", "crank", "0 0 0"), ("B", "continuous", "crank", "rod", "0 0.2 0"),
            ("D", "continuous", "base", "rocker", "0.3 0 0"), ("f1", "fixed", "rod", "e1", "0.3 0 0"),
            ("f2", "fixed", "rocker", "e2", "0 0.2 0"),
        )
    ]  # fmt: skip
    links = "".join(f'<link name="{n}"/>' for n in ("base", "crank", "rod", "rocker", "e1", "e2"))
    return kic.from_urdf(
        f'<robot name="r">{links}{"".join(joints)}{more}</robot>', loops=[("e1", "e2", "revolute")]
    )


def test_a_zero_beyond_the_limits_is_left_for_a_start_within():
    """A parallelogram turns its rocker as its crank."""
    m = parallelogram('lower="0.1" upper="1"')
    turn = float(m.at().value("A"))
    assert 0.1 <= turn <= 1
    assert float(m.at().value("D")) == pytest.approx(turn, abs=1e-9)
    assert any("but beyond limits" in remark for remark in m.remarks)
    assert not any("beyond their limits" in remark for remark in m.remarks)
    assert float(parallelogram('lower="-1" upper="1"').at().value("A")) == 0.0
    # with limits that no start satisfies, it stays where it is described
    out = parallelogram('lower="4" upper="4.001"')
    assert float(out.at().value("A")) == 0.0
    assert any("beyond their limits where the loops close: A" in remark for remark in out.remarks)


def test_motors_that_leave_joints_free_are_coordinates_with_others():
    """A pendulum on the rod has no motor; the rocker has one, and the crank would serve as well."""
    pendulum = (
        '<link name="bob"/><joint name="P" type="continuous"><parent link="rod"/><child link="bob"/>'
        '<axis xyz="0 0 1"/></joint><transmission name="t"><type>SimpleTransmission</type><joint name="D"/>'
        '<actuator name="m"/></transmission>'
    )
    m = parallelogram('lower="-1" upper="1"', pendulum)
    assert (m.dof, m.actuators, m.coordinates) == (2, ("D",), ("D", "P"))
    assert any("the actuated joints, and the best conditioned others: D, P" in remark for remark in m.remarks)
