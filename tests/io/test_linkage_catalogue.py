"""Catalogue of linkages against closed forms: circles, straight lines, inverse kinematics of legs."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from raising import refuses
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic import linkages

FOUR = {"ground": 4.0, "crank": 1.0, "coupler": 3.5, "rocker": 3.0}
SIX_BAR = {"tip": (1.5, -1.0), "rod": 4.0, "follower": 2.5, "pivot": (6.0, -0.5)}


def meet(a: complex, b: complex, one: float, other: float, near: complex) -> complex:
    """Return the intersection of two circles that is nearer to a point."""
    f = abs(b - a)
    along = (f * f + one * one - other * other) / (2 * f)
    found = [a + (along + s * 1j * np.sqrt(one * one - along * along)) * (b - a) / f for s in (1, -1)]
    return min(found, key=lambda z: abs(z - near))


def test_the_foot_of_klanns_leg_against_intersecting_circles() -> None:
    m = linkages.klann(scale=2.0, masses={"crank": 0.2, "leg": 0.5})
    table = {
        "A": 1.599 + 0.75j, "B": 1.331 + 0.75j, "C": 0.741 + 0.75j, "D": 1.009 + 0.574j, "E": 0.232 + 0.866j,
        "F": 0.866 + 1.5j, "G": 1.366 + 1.366j, "foot": 0j,
    }  # fmt: skip
    A, B, C, D, E, F, G, foot = (2.0 * (z - table["A"]) for z in table.values())
    turn = np.linspace(np.pi, 3 * np.pi, 73)
    found = m.path({"A": turn}).value("foot")
    c, f, expected = C, F, []
    for theta in turn:
        b = A + abs(B - A) * np.exp(1j * theta)
        c = meet(b, D, abs(C - B), abs(C - D), c)
        e = b + (E - B) * (c - b) / (C - B)
        f = meet(e, G, abs(F - E), abs(F - G), f)
        z = e + (foot - E) * (f - e) / (F - E)
        expected.append((z.real, z.imag, 0.0))
    assert np.allclose(found, expected, atol=1e-11)
    assert m["leg"].com is not None
    # one half of the turn is the step: nearly level, and longer than the crank
    low = found[found[:, 1] < found[:, 1].min() + 0.08 * np.ptp(found[:, 1])]
    assert np.ptp(low[:, 0]) > 3 * abs(B - A) / 2


@pytest.mark.parametrize("kind", ["watt", "stephenson"])
@pytest.mark.parametrize("dyad", ["left", "right"])
def test_six_bars_against_intersecting_circles(kind: str, dyad: str) -> None:
    m = getattr(linkages, kind)(**FOUR, **SIX_BAR, dyad=dyad, masses={"rod": 1.0, "crank": 2.0})
    assert (m.dof, m.coordinates, len(m.bodies)) == (1, ("A",), 5)
    assert (m["rod"].mass, m["crank"].mass, m["rocker"].mass) == (1.0, 2.0, None)
    flat = m.at({"A": m.at().value("A") + np.linspace(0.0, 1.0, 9)})
    start = {name: complex(*m[name].at[:2]) for name in "BCEFG"}
    for k, theta in enumerate(flat.value("A")):
        B = np.exp(1j * theta)
        C = meet(B, 4.0 + 0j, 3.5, 3.0, start["C"])
        base, u = (B, (C - B) / 3.5) if kind == "stephenson" else (4.0 + 0j, (C - 4.0) / 3.0)
        E = base + (1.5 - 1.0j) * u
        assert abs(complex(*flat.value("tip")[k, :2]) - E) < 1e-11
        F = meet(E, 6.0 - 0.5j, 4.0, 2.5, start["F"])
        wrapped = np.angle(np.exp(1j * flat.value("G")[k]) / ((F - 6.0 + 0.5j) / 2.5))
        assert abs(wrapped) < 1e-10
        start |= {"C": C, "F": F}


def test_exact_and_approximate_straight_lines() -> None:
    m = linkages.peaucellier(long=5.0, short=2.0, crank=2.0, masses={"CP": 1.0})
    way = m.path({"C": np.linspace(0.2, 1.4, 25)})
    assert np.abs(way.value("tip.x") - (25 - 4) / 4).max() < 1e-12 * 25
    assert np.ptp(way.value("tip.y")) > 1.0
    for tensor in (way.coefficients("tip.x", order=2).G, way.coefficients("tip.x", order=2).H):
        assert np.abs(tensor).max() < 1e-10
    m = linkages.scott_russell(crank=1.5)
    way = m.path({"A": np.linspace(0.8, 1.5, 9)})
    assert np.abs(way.value("tip.x")).max() < 1e-12 * 3
    assert np.allclose(way.value("tip.y"), 3 * np.sin(way.value("A")), atol=1e-12)
    assert np.allclose(way.value("D"), 3 * np.cos(way.value("A")), atol=1e-12)


def test_chebyshevs_linkage_has_one_height_in_three_positions() -> None:
    m = linkages.chebyshev(coupler=2.0)
    way = m.path({"tip.x": 2.0 - np.linspace(0.0, 2.0, 41)})
    height = way.value("tip.y")
    assert np.allclose(height[[0, -1]], 4.0, atol=1e-11)
    # the middle of the coupler is at (B + C) / 2, where B and C are 5 from A and D, and 2 apart
    B, C = way.value("tip") * 0, way.value("tip") * 0
    for name, end, pivot, length in (("crank", B, 0.0, 5.0), ("rocker", C, 4.0, 5.0)):
        angle = way.value("A" if name == "crank" else "D")
        end[:, 0], end[:, 1] = pivot + length * np.cos(angle), length * np.sin(angle)
    assert np.allclose((B + C) / 2, way.value("tip"), atol=1e-11)
    assert np.allclose(np.linalg.norm(B - C, axis=1), 2.0, atol=1e-11)
    assert 0.0 < np.abs(height - 4.0).max() < 0.011 * 2.0


@pytest.mark.parametrize("stages", [1, 3])
def test_the_height_of_a_scissor_lift(stages: int) -> None:
    masses = {"platform": 50.0, "up1": 5.0, "down1": 5.0}
    m = linkages.scissor_lift(arm=1.2, stages=stages, masses=masses | {n: 1e-9 for n in ("foot", "roller")})
    angle = np.linspace(0.2, 1.2, 7)
    lifted = m.at({"A": angle})
    assert m.dof == 1
    assert np.allclose(lifted.value("top.y"), stages * 1.2 * np.sin(angle), atol=1e-11)
    assert np.allclose(lifted.value("S"), 1.2 * np.cos(angle), atol=1e-11)
    assert np.allclose(lifted.value("T"), 1.2 * np.cos(angle), atol=1e-11)


def test_the_fingers_of_a_gripper_stay_parallel() -> None:
    m = linkages.parallel_gripper(arm=0.06, palm=0.04, spacing=0.02, finger=0.05, angle=0.2)
    opening = np.linspace(-0.1, 0.9, 6)
    c = m.at({"A1": np.pi / 2 - opening})
    gap = c.value("pad1") - c.value("pad2")
    assert m.dof == 1
    assert np.allclose(gap[:, 0], 0.04 + 2 * 0.06 * np.sin(opening), atol=1e-12)
    assert np.abs(gap[:, 1:]).max() < 1e-12
    assert np.allclose(c.value("pad1.y"), 0.06 * np.cos(opening) + 0.05, atol=1e-12)
    assert np.abs(c.value("finger1.angle") - m.at().value("finger1.angle")).max() < 1e-12


def test_inverse_kinematics_of_a_planar_3rrr() -> None:
    m = linkages.three_rrr(base_radius=0.5, platform_radius=0.1, proximal=0.3, distal=0.35)
    x, y, turn = 0.05, -0.04, 0.15
    c = m.at({"tip.x": x, "tip.y": y, "platform.angle": turn})
    assert m.dof == 3
    for k in range(3):
        out = np.exp(1j * (np.pi / 2 + 2 * np.pi / 3 * k))
        A, C = 0.5 * out, x + 1j * y + 0.1 * out * np.exp(1j * turn)
        d = abs(C - A)
        corner = np.arccos((0.3**2 + d * d - 0.35**2) / (2 * 0.3 * d))
        expected = np.angle((C - A) * np.exp(-1j * corner))  # the elbow is to the right
        assert abs(np.angle(np.exp(1j * (c.value(f"A{k + 1}") - expected)))) < 1e-11


def test_legs_of_a_3rps() -> None:
    m = linkages.three_rps(base_radius=0.5, platform_radius=0.3, height=0.8)
    c = m.at({"L1": 0.9, "L2": 0.85, "L3": 0.8})
    T = c.pose("platform")
    assert m.dof == 3
    for k in range(3):
        angle = 2 * np.pi / 3 * k
        out, side = np.array([np.cos(angle), np.sin(angle), 0]), np.array([-np.sin(angle), np.cos(angle), 0])
        end = T.apply(0.3 * out + [0, 0, 0.8])
        assert abs(np.linalg.norm(end - 0.5 * out) - (0.9, 0.85, 0.8)[k]) < 1e-11
        assert abs(side @ end) < 1e-11  # the hinge keeps the leg in its plane


def test_inverse_kinematics_of_a_tricept() -> None:
    m = linkages.tricept(base_radius=0.5, platform_radius=0.2, height=1.0)
    p = np.array([0.2, 0.1, 0.9])
    c = m.at({"tip": p})
    assert m.dof == 3
    length = np.linalg.norm(p)
    a = np.arctan2(-p[1], p[2])
    b = np.arcsin(p[0] / length)
    R = Rotation.from_euler("XY", [a, b])
    assert abs(c.value("L0") - length) < 1e-12
    assert np.allclose(R.apply([0, 0, length]), p)
    for k in range(3):
        angle = 2 * np.pi / 3 * k
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        assert abs(c.value(f"L{k + 1}") - np.linalg.norm(p + R.apply(0.2 * out) - 0.5 * out)) < 1e-11


@pytest.mark.parametrize("size", [2, 3])
def test_the_cables_of_a_robot_pull(size: int) -> None:
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * size)).reshape(size, -1).T
    # crossed cables resist rotation
    turned = corners * ([0.15, -0.15] if size == 2 else [0.3, 0.15, -0.1])
    gravity = (0.0, -9.81, 0.0) if size == 2 else (0.0, 0.0, -9.81)
    m = linkages.cable_robot(
        anchors=2.0 * corners, attachments=turned, masses={"platform": 12.0}, gravity=gravity
    )
    assert m.actuators == tuple(f"L{k + 1}" for k in range(2**size))
    turn = Rotation.from_rotvec([0.0, 0.0, 0.05])
    place = np.array([0.3, -0.2, 0.1 if size == 3 else 0.0])
    flat = {"tip.x": 0.3, "tip.y": -0.2, "platform.angle": 0.05}
    c = m.at({"platform": RigidTransform.from_components(place, turn)} if size == 3 else flat)
    tension = -c.distribute(c.inverse_dynamics(), effort_limits=[[-900.0], [-20.0]]).effort
    assert tension.min() > 20.0 - 1e-9
    assert tension.max() < 900.0
    own, ends = np.zeros((2, len(corners), 3))
    own[:, :size], ends[:, :size] = turned, 2.0 * corners
    at = place + turn.apply(own)
    pull = (ends - at) * (tension / np.linalg.norm(ends - at, axis=1))[:, None]
    assert np.allclose(pull.sum(0), -12.0 * np.array(gravity), atol=1e-9)
    assert np.allclose(np.cross(at - place, pull).sum(0), 0.0, atol=1e-9)
    assert np.allclose([c.value(name) for name in m.actuators], np.linalg.norm(ends - at, axis=1))


def test_a_five_bar_with_unequal_arms_has_default_angles() -> None:
    m = kic.linkages.five_bar(ground=0.2, proximal=(0.1, 0.5), distal=0.35)
    assert m.dof == 2
    refuses(lambda: kic.linkages.five_bar(ground=0.2, proximal=(0.1, 0.5), distal=0.05), key="distal")


# linkages at an angle with the values that their coordinates then read; the crank of "four_bar" does not turn
AT_ANGLE: dict[str, Callable[[float], tuple[kic.Mechanism, dict[str, float]]]] = {
    "four_bar": lambda x: (
        linkages.four_bar(ground=1.2, crank=0.8, coupler=2.0, rocker=2.6, angle=x),
        {"A": x},
    ),
    "slider_crank": lambda x: (linkages.slider_crank(crank=0.3, rod=1.0, angle=x), {"A": x}),
    "five_bar": lambda x: (
        linkages.five_bar(ground=1.0, proximal=0.5, distal=1.2, angles=(x, x + 2.0)),
        {"A": x, "E": x + 2.0},
    ),
    "delta": lambda x: (
        linkages.delta(base_radius=0.2, platform_radius=0.05, arm=0.26, forearm=0.65, angle=x),
        {f"A{k}": x for k in (1, 2, 3)},
    ),
    "stephenson": lambda x: (linkages.stephenson(**FOUR, **SIX_BAR, angle=x), {"A": x}),
    "watt": lambda x: (linkages.watt(**FOUR, **SIX_BAR, angle=x), {"A": x}),
    "scott_russell": lambda x: (linkages.scott_russell(crank=1.0, angle=x), {"A": x}),
    "peaucellier": lambda x: (linkages.peaucellier(long=5.0, short=4.0, crank=2.0, angle=x), {"C": x}),
    "scissor_lift": lambda x: (linkages.scissor_lift(arm=1.2, stages=2, angle=x), {"A": x}),
    "parallel_gripper": lambda x: (
        linkages.parallel_gripper(arm=0.06, palm=0.04, spacing=0.02, angle=x),
        {"A1": np.pi / 2 - x},
    ),
}


@pytest.mark.parametrize("angle", [0.6, 4.4, -4.4, 7.0, 10.0])
@pytest.mark.parametrize("name", AT_ANGLE)
def test_coordinates_read_the_angle_given(name: str, angle: float) -> None:
    m, values = AT_ANGLE[name](0.6 if name == "scissor_lift" else angle)  # below π/2
    assert set(m.coordinates) == values.keys()
    for coordinate, value in values.items():
        assert abs(m.at().value(coordinate) - value) < 1e-12
    assert np.abs(m.at(values).state - m.at().state).max() < 1e-12
    if name == "parallel_gripper":
        assert m.at().value("A2") == np.pi / 2 + angle


def test_all_linkages_with_an_angle_are_tested() -> None:
    functions = {name: getattr(linkages, name) for name in linkages.__all__ if name != "FourBarMotion"}
    found = {n for n, f in functions.items() if {"angle", "angles"} & inspect.signature(f).parameters.keys()}
    assert found == AT_ANGLE.keys()
