"""Linkages from lengths against closed forms: loop equations, sampled ranges, inverse kinematics of legs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform, Rotation

from kic import linkages

EPS = np.finfo(float).eps

FOUR_BARS = {
    "crank-rocker": (4.0, 1.0, 3.5, 3.0), "rocker-crank": (4.0, 3.0, 3.5, 1.0),
    "double-crank": (1.0, 3.0, 3.5, 4.0), "double-rocker": (4.0, 3.0, 1.0, 3.5),
    "triple-rocker": (4.0, 2.0, 1.5, 2.0),
}  # fmt: skip
SIX_LEGS = {"base_radius": 0.8, "platform_radius": 0.5, "base_angle": 0.3, "platform_angle": 0.4}


def sampled(g: float, c: float, p: float, r: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the angles of the crank, of a fine grid, that close, and the rocker's on the open branch."""
    theta = np.linspace(-np.pi, 2 * np.pi, 60001)
    bx, by = c * np.cos(theta), c * np.sin(theta)
    # Freudenstein: K1 cos(psi) + K2 sin(psi) = K3 for the rocker angle
    k1, k2 = 2 * r * (g - bx), -2 * r * by
    k3 = p * p - r * r - (g - bx) ** 2 - by**2
    size = np.hypot(k1, k2)
    real = np.abs(k3) <= size
    psi = np.arctan2(k2, k1)[real] - np.arccos(k3[real] / size[real])
    return theta[real], psi


@pytest.mark.parametrize("kind", FOUR_BARS)
def test_class_and_ranges_of_a_four_bar(kind):
    g, c, p, r = FOUR_BARS[kind]
    motion = linkages.four_bar_motion(ground=g, crank=c, coupler=p, rocker=r)
    assert motion.type == kind
    assert motion.grashof == (kind != "triple-rocker")
    theta, _ = sampled(g, c, p, r)
    low, high = motion.crank
    step = 3 * np.pi / 60000
    within = (theta >= low - step) & (theta <= high + step)
    if high - low < 2 * np.pi:
        assert abs(theta[within].min() - low) < 2 * step
        assert abs(theta[within].max() - high) < 2 * step
    else:
        assert within.sum() > 39990
    f = np.sqrt(g * g + c * c - 2 * g * c * np.cos(theta))
    mu = np.arccos(np.clip((p * p + r * r - f * f) / (2 * p * r), -1, 1))
    # at the ends of a range the angle has a root: an error of the step is one of its root
    assert abs(mu.min() - motion.transmission[0]) < 4 * np.sqrt(step)
    assert abs(mu.max() - motion.transmission[1]) < 4 * np.sqrt(step)


def test_the_rocker_of_a_crank_rocker_swings_between_its_dead_centres():
    g, c, p, r = FOUR_BARS["crank-rocker"]
    m = linkages.four_bar(ground=g, crank=c, coupler=p, rocker=r)
    turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 721)})
    low, high = linkages.four_bar_motion(ground=g, crank=c, coupler=p, rocker=r).rocker
    assert abs(turn.value("D").min() - low) < 1e-4
    assert abs(turn.value("D").max() - high) < 1e-4
    # law of cosines in the two dead centres
    assert abs(np.pi - np.arccos((g**2 + r**2 - (p + c) ** 2) / (2 * g * r)) - low) < 10 * EPS


@pytest.mark.parametrize("kind", FOUR_BARS)
@pytest.mark.parametrize("branch", ["open", "crossed"])
def test_four_bars_have_their_lengths(kind, branch):
    lengths = FOUR_BARS[kind]
    bars = dict(zip(("ground", "crank", "coupler", "rocker"), lengths, strict=True))
    more = {"masses": {"coupler": 2.0}, "gravity": (0, -9.81, 0)}
    m = linkages.four_bar(**bars, branch=branch, tip=(0.5, 0.2), **more)
    place = {joint.name: np.array(joint.at) for joint in m.joints}
    sides = [place[b] - place[a] for a, b in ("AD", "AB", "BC", "DC")]
    assert np.abs(np.linalg.norm(sides, axis=1) - lengths).max() < 50 * EPS * max(lengths)
    across = np.cross(place["D"] - place["B"], place["C"] - place["B"])[2]
    assert (across > 0) == (branch == "open")
    assert m.dof == 1
    theta = m.at().value("A")
    c = m.at({"A": theta + 0.05})
    g, a, p, r = lengths
    psi, phi = c.value("D"), c.value("A") + c.value("B")
    loop = a * np.exp(1j * c.value("A")) + p * np.exp(1j * phi) - g - r * np.exp(1j * psi)
    assert abs(loop) < 1e-11
    tip = a * np.exp(1j * c.value("A")) + (0.5 + 0.2j) * np.exp(1j * phi)
    assert abs(complex(*c.value("tip")[:2]) - tip) < 1e-11


def test_change_point():
    assert linkages.four_bar_motion(ground=2, crank=1, coupler=2, rocker=1).type == "change-point"


@pytest.mark.parametrize("offset", [0.0, 0.03])
def test_slider_crank(offset):
    m = linkages.slider_crank(crank=0.05, rod=0.2, offset=offset, masses={"slider": 1.0})
    theta = np.linspace(0.1, 6.0, 30)
    c = m.path({"A": np.linspace(m.at().value("A"), 6.0, 30)})
    theta = c.value("A")
    x = 0.05 * np.cos(theta) + np.sqrt(0.2**2 - (0.05 * np.sin(theta) - offset) ** 2)
    assert np.abs(c.value("D") - x).max() < 1e-12
    assert np.abs(c.value("tip")[:, 1] - offset).max() < 1e-12


def test_five_bar():
    m = linkages.five_bar(ground=0.2, proximal=0.25, distal=(0.4, 0.35))
    assert m.dof == 2
    c = m.at({"A": m.at().value("A") + 0.1, "E": m.at().value("E") - 0.05})
    B = 0.25 * np.exp(1j * c.value("A"))
    D = 0.2 + 0.25 * np.exp(1j * c.value("E"))
    tip = complex(*c.value("tip")[:2])
    assert abs(abs(tip - B) - 0.4) < 1e-12
    assert abs(abs(tip - D) - 0.35) < 1e-12


def test_stewart_legs_are_distances_of_joints():
    m = linkages.stewart(**SIX_LEGS, height=0.9, masses={"platform": 20.0})
    assert m.dof == 6
    joints = {j.name: j for j in m.joints}
    pose = RigidTransform.from_components([0.05, -0.03, 0.1], Rotation.from_rotvec([0.1, -0.05, 0.2]))
    c = m.at({"platform": pose})
    for k in range(1, 7):
        base, top = (np.array(joints[f"{x}{k}"].at) for x in "US")
        assert abs(c.value(f"L{k}") - np.linalg.norm(pose.apply(top) - base)) < 1e-11
    radii = [np.hypot(*joints[f"U{k}"].at[:2]) for k in range(1, 7)]
    assert np.abs(np.array(radii) - 0.8).max() < 10 * EPS
    same = linkages.stewart(**SIX_LEGS, leg_length=float(m.at().value("L1")))
    assert abs(same.joints[2].at[2] - 0.9) < 1e-12


def test_massless_legs_of_a_stewart_platform():
    shape = {"height": 0.9, "base_angle": 0.3, "platform_angle": 0.4, "masses": {"platform": 20.0}}
    rods = linkages.stewart(
        base_radius=0.8, platform_radius=0.5, legs="distance", gravity=(0, 0, -9.81), **shape
    )
    massless = {f"{kind}{k}": 0.0 for kind in ("cylinder", "piston") for k in range(1, 7)}
    given = shape | {"masses": {"platform": 20.0, **massless}, "gravity": (0, 0, -9.81)}
    bars = linkages.stewart(base_radius=0.8, platform_radius=0.5, **given)
    pose = RigidTransform.from_components([0.05, -0.03, 0.1], Rotation.from_rotvec([0.1, -0.05, 0.2]))
    c, d = rods.at({"platform": pose}), bars.at({"platform": pose})
    for k in range(1, 7):
        assert abs(c.value(f"L{k}") - d.value(f"L{k}")) < 1e-11
    one, other = c.dynamics(), d.dynamics()
    assert one.coordinates == other.coordinates
    assert np.abs(one.I - other.I).max() < 1e-10 * np.abs(other.I).max()
    assert np.abs(one.load - other.load).max() < 1e-10 * np.abs(other.load).max()


def test_delta_follows_its_closed_form():
    R, r, a, p = 0.2, 0.05, 0.26, 0.65
    m = linkages.delta(base_radius=R, platform_radius=r, arm=a, forearm=p, masses={"platform": 0.3})
    assert m.dof == 3
    tip = np.array([0.1, -0.05, -0.55])
    c = m.at({"tip": tip})
    for k in range(3):
        turn = Rotation.from_euler("z", -2 * np.pi * k / 3)
        x, y, z = turn.apply(tip)
        # elbow on the circle of the arm, at distance p from the rod's end: E cos + F sin + G = 0
        end = np.array([x + r - R, y, z])
        reach = (end @ end + a * a - p * p) / (2 * a)
        theta = -np.arctan2(end[2], end[0]) - np.arccos(reach / np.hypot(end[0], end[2]))
        assert abs(c.value(f"A{k + 1}") - theta) < 1e-11
    assert np.abs(c.coefficients(["platform.wx", "platform.wy", "platform.wz"], order=3).D).max() < 1e-8
    low = linkages.delta(base_radius=R, platform_radius=r, arm=a, forearm=p, height=0.62)
    assert abs(low.at().value("tip.z") + 0.62) < 10 * EPS
    assert np.abs(low.at({"tip": [0, 0, -0.62]})._phi - low.at()._phi).max() < 1e-10
