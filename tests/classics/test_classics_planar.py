"""Horn's planar arms: closed forms against reference values, printed formulas and the general library."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from classic_arms import (
    BATCHES,
    angle_distance,
    dexterous_radii,
    dexterous_workspace,
    reachable_radii,
    solution_count,
)  # fmt: skip
from classic_arms import random_planar as random_arm
from raising import raises, refuses
from sampling import mismatch

import kic
from kic.classics import ThreeLink, TwoLink

DATA = json.loads((Path(__file__).parents[1] / "data" / "horn_planar.json").read_text(encoding="utf-8"))
CASES = DATA["cases"]
ERRATA = {erratum["id"]: erratum for erratum in DATA["errata"]}
EPS = np.finfo(float).eps


def close(found, expected, tolerance: float = 1e-12) -> None:
    assert mismatch(np.asarray(found, dtype=float), np.asarray(expected, dtype=float)) < tolerance


def inverse_statics(arm: TwoLink | ThreeLink, q) -> np.ndarray:
    """Return the matrix from joint torques to the wrench of the tip (pp. 12, 25)."""
    return np.linalg.inv(np.swapaxes(arm.jacobian(q), -1, -2))


def static_torques(arm: TwoLink | ThreeLink, q, wrench) -> np.ndarray:
    """Return the joint torques with which the tip exerts a wrench (pp. 11, 24)."""
    return np.einsum("...ji,...j->...i", arm.jacobian(q), wrench)


def first_two_links(arm: ThreeLink) -> TwoLink:
    """Return the arm of the first two links, with the wrist as its tip."""
    return TwoLink(arm.l1, arm.l2, arm.m1, arm.m2, arm.g)


def polar(arm: TwoLink, q) -> np.ndarray:
    """Return the radius and the polar angle of the tip (pp. 5, 9)."""
    x, y = np.moveaxis(arm.forward_kinematics(q), -1, 0)
    return np.stack([np.hypot(x, y), np.arctan2(y, x)], axis=-1)


def inverse_mass_matrix(arm: TwoLink, q) -> np.ndarray:
    """Return the inverse of the mass matrix (p. 19)."""
    return np.linalg.inv(arm.dynamics(q).I)


def two_link_results(arm: TwoLink, case: dict) -> dict:
    q, qd, qdd, expected = case["q"], case["qd"], case["qdd"], case["outputs"]
    (r, theta), given = polar(arm, q), expected["statics"]
    forces, tip = inverse_statics(arm, q), arm.forward_kinematics(q)
    statics = {
        "F": given["F"],
        "T_in": given["T_in"],
        "T_from_F": static_torques(arm, q, given["F"]),
        "det": np.linalg.det(arm.jacobian(q)),
        "F_from_T_in": forces @ given["T_in"],
        "F_from_T1_only_unit": forces[:, 0],
        "F_from_T2_only_unit": forces[:, 1],
    }
    results = common_results(arm, q, qd, qdd)
    results |= {
        "jacobian": arm.jacobian(q),
        "polar": {"r": r, "theta": theta, "alpha": theta - q[0]},
        "inverse_kinematics_branches": arm.inverse_kinematics(tip),
        "cos_theta2_from_tip": np.cos(arm.inverse_kinematics(tip)[:, 1]).mean(),
        "statics": {key: statics[key] for key in given},
    }
    if "equal_links" in expected:
        unit = arm.m1 * arm.l1**2 / 2
        weightless = replace(arm, g=0.0)
        results["equal_links"] = {
            "sensitivity_matrix": arm.dynamics(q).I / unit,
            "sensitivity_det": np.linalg.det(arm.dynamics(q).I) / unit**2,
            "inverse_matrix": inverse_mass_matrix(arm, q) * unit,
            "qdd_from_T_in_no_gravity": weightless.dynamics(q).forward_dynamics(
                qd, expected["equal_links"]["T_in"]
            ),
            "T_in": expected["equal_links"]["T_in"],
            "half_angle_tip": tip,
        }
    return results


def three_link_results(arm: ThreeLink, case: dict) -> dict:
    q, qd, qdd, expected = case["q"], case["qd"], case["qdd"], case["outputs"]
    given = expected["statics"]
    results = common_results(arm, q, qd, qdd)
    results |= {
        "tip_velocity": (arm.jacobian(q) @ qd)[:2],
        "phi": arm.forward_kinematics(q)[2],
        "joint2": first_two_links(arm).forward_kinematics(q[:2]),
        "inverse_kinematics_branches": arm.inverse_kinematics(arm.forward_kinematics(q)),
        "statics": {
            "F_and_torque": given["F_and_torque"],
            "T_in": given["T_in"],
            "matrix": arm.jacobian(q).T,
            "T_from_F": static_torques(arm, q, given["F_and_torque"]),
            "det": np.linalg.det(arm.jacobian(q)),
            "F_from_T_in": inverse_statics(arm, q) @ given["T_in"],
            "inverse_matrix": inverse_statics(arm, q),
        },
    }
    if "equal_sticks" in expected:
        results["equal_sticks"] = {"sensitivity_matrix": arm.dynamics(q).I / (arm.m1 * arm.l1**2 / 2)}
    return results


def coriolis_torques(arm, q, qd) -> np.ndarray:
    """Return the Coriolis and centrifugal torques."""
    d = arm.dynamics(q)
    return np.einsum("...kab,...a,...b->...k", d.P, qd, qd)


def common_results(arm, q, qd, qdd) -> dict:
    return {
        "tip": arm.forward_kinematics(q)[:2],
        "tip_velocity": arm.jacobian(q) @ qd,
        "gravity_torque": -arm.dynamics(q).load,
        "mass_matrix": arm.dynamics(q).I,
        "velocity_torque": coriolis_torques(arm, q, qd),
        "tau": arm.dynamics(q).inverse_dynamics(qd, qdd),
        "kinetic_energy": arm.dynamics(q).kinetic_energy(qd),
        "potential_energy": arm.mechanism().at(q).potential_energy(),
    }


def compare(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        compare(found[key], value) if isinstance(value, dict) else close(found[key], value)


@pytest.mark.parametrize("name", [name for name in CASES if "parameters" in CASES[name]])
def test_reference_cases(name: str) -> None:
    system = CASES[name]
    two = "two_link" in name
    arm = (TwoLink if two else ThreeLink)(**system["parameters"])
    for case in system["cases"]:
        if "q" in case:
            compare((two_link_results if two else three_link_results)(arm, case), case["outputs"])
        else:
            assert solution_count(arm, [case["x"], case["y"]]) == len(case["solutions"]) == 1
            for branch in arm.inverse_kinematics([case["x"], case["y"]]):
                close(branch, case["solutions"][0])
    if "workspace" in system:
        inner, outer = reachable_radii(*arm.lengths)
        found = {"r_inner": inner, "r_outer": outer, "width": outer - inner}
        compare(found | {"mean_radius": (inner + outer) / 2}, system["workspace"])
    if "usable_workspace" in system:
        close(dexterous_workspace(arm), system["usable_workspace"])


@pytest.mark.parametrize("case", CASES["B6_usable_workspace"]["cases"], ids=lambda case: case["note"])
def test_reference_dexterous_workspaces(case: dict) -> None:
    close(dexterous_workspace(ThreeLink(case["l1"], case["l2"], case["l3"])), case["usable_radii"])


def test_printed_equations_of_equal_links() -> None:
    """Compare with the corrected formulas of pp. 17, 19 and 29 in units of m l²/2."""
    rng = np.random.default_rng(1)
    l, m = 0.7, 1.9
    unit = m * l**2 / 2
    q, w, a = rng.normal(size=(3, 50, 3))
    c2, s2, c3, s3 = np.cos(q[:, 1]), np.sin(q[:, 1]), np.cos(q[:, 2]), np.sin(q[:, 2])
    c23, s23 = np.cos(q[:, 1] + q[:, 2]), np.sin(q[:, 1] + q[:, 2])
    (w1, w2, w3), (a1, a2, _) = w.T, a.T
    two = TwoLink(l, l, m, m)
    T1 = 2 * (5 / 3 + c2) * a1 + (2 / 3 + c2) * a2 - s2 * w2 * (2 * w1 + w2)
    T2 = (2 / 3 + c2) * a1 + 2 / 3 * a2 + s2 * w1**2
    close(two.dynamics(q[:, :2]).inverse_dynamics(w[:, :2], a[:, :2]), np.stack([T1, T2], -1) * unit)
    bracket = [[2 / 3 + 0 * c2, -(2 / 3 + c2)], [-(2 / 3 + c2), 2 * (5 / 3 + c2)]] / (16 / 9 - c2**2)
    close(inverse_mass_matrix(two, q[:, :2]), np.moveaxis(bracket, -1, 0) / unit)
    three = ThreeLink(l, l, l, m, m, m)
    M12, M13, M23 = 10 / 3 + 3 * c2 + c23 + 2 * c3, 2 / 3 + c23 + c3, 2 / 3 + c3
    M = [[2 * (4 + 3 * c2 + c23 + c3), M12, M13], [M12, 2 * (5 / 3 + c3), M23], [M13, M23, 2 / 3 + 0 * c2]]
    close(three.dynamics(q).I, np.moveaxis(np.array(M), -1, 0) * unit)
    V1 = -w1 * w2 * (6 * s2 + 2 * s23) - w2**2 * (3 * s2 + s23) - (w2 + w1) * w3 * (2 * s23 + 2 * s3)
    V2 = w1**2 * (3 * s2 + s23) - 2 * s3 * w2 * w3 - s3 * w3**2 - 2 * s3 * w3 * w1
    V3 = w1**2 * (s23 + s3) + 2 * s3 * w1 * w2 + s3 * w2**2
    close(coriolis_torques(three, q, w), np.stack([V1 - w3**2 * (s23 + s3), V2, V3], -1) * unit)


def test_printed_gravity_and_statics() -> None:
    """Compare with pp. 11-13 and 24-26 for unequal links."""
    rng = np.random.default_rng(2)
    arm = random_arm(rng, ThreeLink)
    two = first_two_links(arm)
    l1, l2, l3, m1, m2, m3, g = arm.l1, arm.l2, arm.l3, arm.m1, arm.m2, arm.m3, arm.g
    q, F, T = rng.normal(size=(3, 50, 3))
    c1, c12, c123 = np.cos(np.cumsum(q, -1)).T
    s1, s12, _ = np.sin(np.cumsum(q, -1)).T
    s2, s3, s23 = np.sin(q[:, 1]), np.sin(q[:, 2]), np.sin(q[:, 1] + q[:, 2])
    weight3 = g * m3 * l3 / 2 * c123
    weight2 = weight3 + g * (m2 / 2 + m3) * l2 * c12
    weight1 = weight2 + g * (m1 / 2 + m2 + m3) * l1 * c1
    close(-arm.dynamics(q).load, np.stack([weight1, weight2, weight3], -1))
    X, Y = two.forward_kinematics(q[:, :2]).T
    T1, T2, _ = T.T
    u, v = F[:, 0], F[:, 1]
    close(static_torques(two, q[:, :2], F[:, :2]), np.stack([X * v - Y * u, l2 * c12 * v - l2 * s12 * u], -1))
    span = (l1 * l2 * s2)[:, None]
    close(
        np.einsum("bij,bj->bi", inverse_statics(two, q[:, :2]), T[:, :2]),
        np.stack([l2 * c12 * T1 - X * T2, l2 * s12 * T1 - Y * T2], -1) / span,
    )
    rows = [
        [l2 * c12, -X, l1 * c1],
        [l2 * s12, -Y, l1 * s1],
        [l2 * l3 * s3, -(l1 * l3 * s23 + l2 * l3 * s3), l1 * l2 * s2 + l1 * l3 * s23],
    ]
    inverse = np.moveaxis(np.array(rows), -1, 0) / span[..., None]
    close(inverse_statics(arm, q), inverse)
    close(np.linalg.det(arm.jacobian(q)), span[:, 0])


def test_printed_polar_form_and_inverse_kinematics() -> None:
    """Compare with pp. 5-9 and 21: radius, sine and cosine of theta1, half angles of equal links."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        arm = random_arm(rng, TwoLink)
        l1, l2 = arm.l1, arm.l2
        q = rng.uniform(-3, 3, size=(40, 2))
        c2, s2 = np.cos(q[:, 1]), np.sin(q[:, 1])
        x, y = arm.forward_kinematics(q).T
        r, theta = polar(arm, q).T
        close(r**2, l1**2 + 2 * l1 * l2 * c2 + l2**2)
        assert (angle_distance(theta, q[:, 0] + np.arctan2(l2 * s2, l1 + l2 * c2)) < 1e-12).all()
        for branch in arm.inverse_kinematics(arm.forward_kinematics(q)):
            close(np.cos(branch[:, 1]), (x**2 + y**2 - l1**2 - l2**2) / (2 * l1 * l2), 1e-11)
            s2, c2 = np.sin(branch[:, 1]), np.cos(branch[:, 1])
            close(l1 + l2 * c2, (x**2 + y**2 + l1**2 - l2**2) / (2 * l1), 1e-11)
            close(np.sin(branch[:, 0]) * r**2, (l1 + l2 * c2) * y - l2 * s2 * x, 1e-11)
            close(np.cos(branch[:, 0]) * r**2, (l1 + l2 * c2) * x + l2 * s2 * y, 1e-11)
    equal = TwoLink(0.8, 0.8)
    half = q[:, 1] / 2
    tip = 1.6 * np.cos(half)[:, None] * np.stack([np.cos(q[:, 0] + half), np.sin(q[:, 0] + half)], -1)
    close(equal.forward_kinematics(q), tip)


def test_half_angles_are_accurate_near_the_base() -> None:
    """The cosine of theta2 loses the tip position of folded equal links; half angles keep it."""
    arm = TwoLink(1.0, 1.0)
    tip = 1e-9 * np.array([np.cos(0.4), np.sin(0.4)])
    found = arm.inverse_kinematics(tip)[0]
    assert np.abs(arm.forward_kinematics(found) - tip).max() < 20 * EPS
    cosine = (tip @ tip - 2) / 2
    inaccurate = np.array([0.0, np.arccos(cosine)])
    assert abs(np.hypot(*arm.forward_kinematics(inaccurate)) - 1e-9) > 1e-10


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("kind", [TwoLink, ThreeLink])
def test_tip_and_statics_agree_with_the_general_library(kind: type, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    size = kind.dof
    place = ["tip.x", "tip.y"] if size == 2 else ["tip.x", "tip.y", "link3.angle"]
    for _ in range(4):
        arm = random_arm(rng, kind, g=rng.normal())
        q, force = rng.uniform(-3, 3, size=(2, *batch, size))
        c = arm.mechanism().at(q)
        rows = c.coefficients(place, order=1)
        assert mismatch(arm.forward_kinematics(q), rows.values) < 1e-12
        assert mismatch(arm.jacobian(q), rows.G) < 1e-12
        # The environment exerts the opposite wrench on the tip.
        held = replace(
            replace(arm, g=0.0).mechanism(),
            forces=(kic.Force("push", "tip", (0, 0, 0)),),
            moments=(kic.Moment("twist", f"link{size}", (0, 0, 0)),),
        ).at(q)
        push, twist = np.zeros((2, *batch, 3))
        push[..., :2] = -force[..., :2]
        if size == 3:
            twist[..., 2] = -force[..., 2]
        rest = np.zeros(size)
        loaded = held.dynamics(applied={"push": push, "twist": twist}).inverse_dynamics(rest, rest)
        assert mismatch(static_torques(arm, q, force), loaded) < 1e-12


@pytest.mark.slow
def test_symbolic_arguments_give_the_printed_formulas() -> None:
    t1, t2, t3 = sp.symbols("theta1:4", real=True)
    arm = ThreeLink(1.0, 1.0, 1.0, 2.0, 2.0, 2.0, g=1.0)
    I = arm.dynamics([t1, t2, t3]).I
    expected = 2 * (4 + 3 * sp.cos(t2) + sp.cos(t2 + t3) + sp.cos(t3))
    assert sp.simplify(sp.nsimplify(I[0, 0] - expected)) == 0
    assert not any(t1 in sp.sympify(x).free_symbols for x in I.flat)
    determinant = sp.Matrix(arm.jacobian([t1, t2, t3])).det()
    assert sp.simplify(sp.nsimplify(determinant - sp.sin(t2), rational=True)) == 0


def test_only_gravity_depends_on_the_first_angle() -> None:
    arm = TwoLink(1.0, 0.6, 1.3, 0.8, g=9.81)
    assert (arm.dynamics([1e9, 0.7]).I == arm.dynamics([0.0, 0.7]).I).all()
    assert (arm.dynamics([1e9, 0.7]).P == arm.dynamics([0.0, 0.7]).P).all()


def test_kinematics_need_no_masses() -> None:
    c = TwoLink(1.0, 0.5).mechanism().at([0.2, 0.9])
    close(c.value("tip")[:2], TwoLink(1.0, 0.5).forward_kinematics([0.2, 0.9]))
    refuses(c.dynamics, kic.InertiaError, bodies=("link1", "link2"))


@pytest.mark.parametrize("batch", BATCHES)
def test_branches_reproduce_the_target(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    for kind in (TwoLink, ThreeLink):
        for _ in range(10):
            arm = random_arm(rng, kind)
            q = rng.uniform(-np.pi, np.pi, size=(*batch, kind.dof))
            target = arm.forward_kinematics(q)
            branches = arm.inverse_kinematics(target)
            assert branches.shape == (2, *batch, kind.dof)
            assert (np.abs(branches) <= np.pi).all()
            assert (branches[0, ..., 1] >= 0).all()
            assert (branches[1, ..., 1] <= 0).all()
            assert (solution_count(arm, target) == 2).all()
            length = sum(arm.lengths)
            for branch in branches:
                reproduced = arm.forward_kinematics(branch)
                assert (np.abs(reproduced - target)[..., :2] < 100 * EPS * length).all()
                assert (angle_distance(reproduced[..., 2:], target[..., 2:]) < 200 * EPS).all()
            own = np.where(q[..., 1:2] >= 0, branches[0], branches[1])
            # accuracy is proportional to sin theta2
            assert (angle_distance(own, q).max(axis=-1) * np.abs(np.sin(q[..., 1])) < 400 * EPS).all()


# relative radii between the inner and the outer boundary of the workspace
SHARES = np.array([1e-4, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999])
LINKS = [(0.7, 0.45), (0.5, 0.5), (0.4, 0.9)]


def workspace_samples(two: TwoLink) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (9, 7, 2) over the whole workspace, and starting points further inside."""
    inside = 0.05 + 0.9 * SHARES
    angle = np.linspace(-3, 3, 7)
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    inner, outer = reachable_radii(*two.lengths)
    first, second = (inner + share * (outer - inner) for share in (SHARES, inside))
    return first[:, None, None] * directions, second[:, None, None] * directions


def check_within_condition(arm, found: np.ndarray, expected: np.ndarray) -> None:
    """Compare angles within rounding times the condition of the Jacobian."""
    condition = np.linalg.cond(arm.jacobian(expected))
    assert (angle_distance(found, expected).max(axis=-1) < np.maximum(1e-12, 1000 * EPS * condition)).all()


@pytest.mark.parametrize("lengths", LINKS, ids=repr)
def test_two_link_inverse_agrees_with_the_general_solver(lengths: tuple[float, float]) -> None:
    """Compare both branches over the whole workspace, close to both boundaries."""
    arm = TwoLink(*lengths)
    m, (tips, inside) = arm.mechanism(), workspace_samples(arm)
    branches = arm.inverse_kinematics(tips)
    solved = m.at({"tip.x": tips[..., 0], "tip.y": tips[..., 1]}, near=m.at(arm.inverse_kinematics(inside)))
    check_within_condition(arm, solved._phi, branches)


@pytest.mark.parametrize("lengths", LINKS, ids=repr)
@pytest.mark.parametrize("l3", [0.3, 1.4])
def test_three_link_inverse_agrees_with_the_general_solver(lengths: tuple[float, float], l3: float) -> None:
    """Compare both branches for wrists over the whole workspace and all directions of the last link."""
    arm = ThreeLink(*lengths, l3)
    m, (wrists, inside) = arm.mechanism(), workspace_samples(first_two_links(arm))
    phi = np.linspace(-3, 3, 5)

    def poses(places: np.ndarray) -> np.ndarray:
        ends = places[:, :, None] + l3 * np.stack([np.cos(phi), np.sin(phi)], axis=-1)
        return np.concatenate([ends, np.broadcast_to(phi[:, None], (*ends.shape[:-1], 1))], axis=-1)

    branches = arm.inverse_kinematics(poses(wrists))
    near = m.at(arm.inverse_kinematics(poses(inside)))
    x, y, phi_target = np.moveaxis(poses(wrists), -1, 0)
    # `link3.angle` counts full turns; choose the value closest to the start
    start = near.value("link3.angle")
    angle = start + np.angle(np.exp(1j * (phi_target - start)))
    solved = m.at({"tip.x": x, "tip.y": y, "link3.angle": angle}, near=near)
    check_within_condition(arm, solved._phi, branches)


@pytest.mark.parametrize("arm", [TwoLink(0.7, 0.45), TwoLink(0.45, 0.7), TwoLink(0.5, 0.5)], ids=repr)
def test_two_link_solution_count_agrees_with_a_search(arm: TwoLink) -> None:
    """Expect two solutions inside, one on a boundary, none outside, and infinitely many at the base."""
    m, (inner, outer) = arm.mechanism(), reachable_radii(*arm.lengths)
    direction = np.array([np.cos(0.7), np.sin(0.7)])
    for radius, count in (((inner + outer) / 2, 2), (outer, 1), (inner, 1), (outer * 1.01, 0)):
        tip = radius * direction
        inputs = {"tip.x": tip[0], "tip.y": tip[1]}
        if not radius:
            caught = refuses(lambda tip=tip: arm.inverse_kinematics(tip), kic.ConfigurationError, key="tip")
            assert "any theta1" in caught.reasons[0]
            for shoulder in (-1.0, 0.3):
                assert np.abs(m.at([shoulder, np.pi]).value("tip")[:2]).max() < 20 * EPS
            continue
        assert solution_count(arm, tip) == count
        if not count:
            assert len(m.assembly_modes(inputs, starts=16)) == 0
            refuses(lambda tip=tip: arm.inverse_kinematics(tip), kic.ConfigurationError, key="tip")
            continue
        found = m.assembly_modes(inputs, starts=32)
        assert len(found.counts) == count
        assert found.singular.all() == (count == 1)
        tolerance = 1e-3 if count == 1 else 1e-9  # a search keeps half of the digits on a boundary
        for branch in arm.inverse_kinematics(tip):
            assert angle_distance(found.configuration._phi, branch).max(axis=-1).min() < tolerance
        assert (arm.inverse_kinematics(tip)[0] == arm.inverse_kinematics(tip)[1]).all() == (count == 1)


@pytest.mark.parametrize("arm", [ThreeLink(0.7, 0.45, 0.3), ThreeLink(0.45, 0.7, 1.4)], ids=repr)
def test_three_link_solution_count_agrees_with_a_search(arm: ThreeLink) -> None:
    """Expect two solutions for a wrist inside its workspace, one on a boundary and none outside."""
    m, (inner, outer), phi = arm.mechanism(), reachable_radii(arm.l1, arm.l2), 0.9
    last = arm.l3 * np.array([np.cos(phi), np.sin(phi)])
    for radius, count in (((inner + outer) / 2, 2), (outer, 1), (inner, 1), (outer * 1.01, 0)):
        x, y = radius * np.array([np.cos(0.7), np.sin(0.7)]) + last
        assert solution_count(arm, [x, y, phi]) == count
        inputs = {"tip.x": x, "tip.y": y, "link3.angle": phi}
        if not count:
            assert len(m.assembly_modes(inputs, starts=16)) == 0
            continue
        found = m.assembly_modes(inputs, starts=32)
        assert len(found.counts) == count
        assert found.singular.all() == (count == 1)
        tolerance = 1e-3 if count == 1 else 1e-9  # a search keeps half of the digits on a boundary
        for branch in arm.inverse_kinematics([x, y, phi]):
            assert angle_distance(found.configuration._phi, branch).max(axis=-1).min() < tolerance


def test_boundary_solutions_are_exact() -> None:
    """Stretched and folded arms of all proportions have one solution with exact theta2."""
    rng = np.random.default_rng(7)
    for kind in (TwoLink, ThreeLink):
        for _ in range(200):
            lengths = 10 ** rng.uniform(-2, 2, size=kind.dof)
            arm = kind(*lengths)
            q = rng.uniform(-np.pi, np.pi, size=(50, kind.dof))
            q[:, 1] = rng.choice([0, np.pi], size=50)
            target = arm.forward_kinematics(q)
            assert (solution_count(arm, target) == 1).all()
            first, second = arm.inverse_kinematics(target)
            assert (first[:, 1] == q[:, 1]).all()
            np.testing.assert_array_equal(first, second)
    # a change of 1e-9 is larger than the boundary tolerance
    arm = TwoLink(0.7, 0.45)
    steps = np.array([-1e-9, 1e-9])
    assert solution_count(arm, np.stack([1.15 + steps, 0 * steps], -1)).tolist() == [2, 0]
    assert solution_count(arm, np.stack([0.25 + steps, 0 * steps], -1)).tolist() == [0, 2]


def test_masked_members_are_nan() -> None:
    arm = TwoLink(1.0, 1.0)
    tips = np.array([[[1.0, 0.5]], [[3.0, 0.0]], [[0.0, 0.0]]])
    branches = arm.inverse_kinematics(tips, failures="mask")
    assert np.isnan(branches[:, 1:]).all()
    close(branches[:, 0], arm.inverse_kinematics(tips[0]))
    poses = np.array([[1.0, 0.5, 0.2], [9.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    three = ThreeLink(1.0, 1.0, 0.5)
    assert solution_count(three, poses).tolist() == [2, 0, 0]
    assert np.isnan(three.inverse_kinematics(poses, failures="mask")[:, 1:]).all()


def test_reachable_workspace_by_brute_force() -> None:
    """Compare with the smallest and largest radius over a grid of joint angles."""
    rng = np.random.default_rng(8)
    fine = np.linspace(-np.pi, np.pi, 181)
    for _ in range(20):
        two, three = random_arm(rng, TwoLink), random_arm(rng, ThreeLink)
        inner, outer = reachable_radii(*two.lengths)
        r = polar(two, np.stack([0 * fine, fine], -1))[:, 0]
        assert (r.min(), r.max()) == pytest.approx((inner, outer), abs=1e-12)
        assert outer - inner == pytest.approx(2 * min(two.lengths))
        assert (outer + inner) / 2 == pytest.approx(max(two.lengths))
        inner, outer = reachable_radii(*three.lengths)
        elbows = np.stack(np.meshgrid([0.0], fine, fine), -1).reshape(-1, 3)
        r = np.hypot(*three.forward_kinematics(elbows)[:, :2].T)
        assert r.max() == pytest.approx(outer)
        assert inner - 1e-12 <= r.min() < inner + 0.02 * sum(three.lengths)


def proportions(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return link lengths (3, count): random ones, and all cases where the rule changes."""
    l1, l2, l3 = 10 ** rng.uniform(-0.5, 0.5, size=(3, count))
    kind = np.arange(count) % 8
    l2 = np.where(kind >= 6, l1, l2)
    edges = [l3, np.abs(l1 - l2), np.minimum(l1, l2), np.maximum(l1, l2), l1 + l2, (l1 + l2) * 1.1]
    l3 = np.choose(np.minimum(kind, 6), [*edges, l3])
    return np.stack([l1, l2, l3])


def sampled_radii(l: np.ndarray) -> np.ndarray:
    """Return tip radii (count, D) over the workspace and close to both sides of possible boundaries."""
    gap, span, l3 = np.abs(l[0] - l[1]), l[0] + l[1], l[2]
    edges = np.stack([abs(l3 - gap), l3 + gap, abs(span - l3), gap, l3, (l3 - gap + span - l3) / 2], -1)
    grid = np.linspace(0, 1, 20) * (span + l3)[:, None]
    return np.concatenate([np.abs(edges - 1e-6), edges + 1e-6, grid], axis=-1)


def within(radii: np.ndarray, d: np.ndarray, slack: float = 0.0) -> np.ndarray:
    """Return True where radii d (count, D) are in one of the intervals (count, 2, 2)."""
    low, high = radii[:, :, 0, None] - slack, radii[:, :, 1, None] + slack
    with np.errstate(invalid="ignore"):
        return ((low <= d[:, None]) & (d[:, None] <= high)).any(axis=1)


def brute_force(l: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return True where the wrist stays reachable for all directions of the last link."""
    turn = np.linspace(0, np.pi, 13)
    l1, l2, l3 = l[:, :, None, None]
    wrist = np.hypot(d[..., None] - l3 * np.cos(turn), l3 * np.sin(turn))
    gap, span = np.abs(l1 - l2), l1 + l2
    return ((wrist >= gap - 1e-9) & (wrist <= span + 1e-9)).all(axis=-1)


def printed_rule(l: np.ndarray) -> np.ndarray:
    """Return the printed rule of p. 22: a ring, and a disc for l3 > |l1 − l2|."""
    gap, span, l3 = np.abs(l[0] - l[1]), l[0] + l[1], l[2]
    radii = np.full((l.shape[1], 2, 2), np.nan)
    radii[:, 1, 0], radii[:, 1, 1] = l3 + gap, span - l3
    radii[:, 0, 0] = 0.0
    radii[:, 0, 1] = np.where(l3 > gap, l3 - gap, np.nan)
    return radii


def test_dexterous_workspace_by_brute_force() -> None:
    l = proportions(np.random.default_rng(9), 4000)
    d = sampled_radii(l)
    true = brute_force(l, d)
    radii = dexterous_radii(*l)
    assert radii.shape == (4000, 2, 2)
    # exclude samples on a boundary to rounding
    decided = within(radii, d, 1e-8) == within(radii, d, -1e-8)
    assert decided.mean() > 0.9
    assert (within(radii, d) == true)[decided].all()
    assert true.any(axis=1).mean() > 0.5
    # the printed rule is wrong exactly for arms with the longest link last
    wrong = ((within(printed_rule(l), d) != true) & decided).any(axis=1)
    # equal lengths are decided by rounding
    longest = l[2] > np.maximum(l[0], l[1]) * (1 + 1e-5)
    even = np.isclose(l[2], np.maximum(l[0], l[1]), rtol=1e-5)
    assert (wrong == longest)[~even].all()
    assert 500 < wrong.sum() < 3000


def test_special_cases_of_the_dexterous_workspace() -> None:
    """Check equal links, l3 = |l1 − l2|, l3 = min(l1, l2), l3 = l1 + l2 and longer last links."""
    nan = np.nan
    for lengths, expected in (
        ((1.0, 1.0, 0.5), [[0, 1.5], [nan, nan]]),
        ((1.0, 1.0, 1.0), [[0, 1.0], [nan, nan]]),
        ((1.0, 1.0, 1.5), [[0, 0.5], [nan, nan]]),
        ((1.0, 1.0, 2.0), [[0, 0.0], [nan, nan]]),
        ((1.0, 0.75, 0.25), [[0, 0.0], [0.5, 1.5]]),  # a point and a ring
        ((1.0, 0.75, 0.75), [[0, 0.5], [1.0, 1.0]]),  # a disc and one circle
        ((0.75, 1.0, 1.0), [[0, 0.75], [nan, nan]]),
        ((1.0, 0.25, 0.5), [[nan, nan], [nan, nan]]),  # neither ring nor disc
        ((1.0, 0.75, 1.75), [[0, 0.0], [nan, nan]]),
        ((1.0, 0.75, 2.0), [[nan, nan], [nan, nan]]),
    ):
        found = dexterous_radii(*map(np.float64, lengths))
        assert np.array_equal(found, np.array(expected, dtype=float), equal_nan=True), lengths


def test_dexterous_workspace_agrees_with_inverse_kinematics() -> None:
    """Inverse kinematics has solutions for all directions of link 3 exactly inside the workspace."""
    phi = np.linspace(-np.pi, np.pi, 73)
    for lengths in ((1.0, 0.6, 0.5), (1.0, 0.6, 0.3), (1.0, 0.6, 1.2), (0.8, 0.8, 0.3)):
        arm = ThreeLink(*lengths)
        d = np.linspace(0.0123, 0.999 * sum(lengths), 60)
        radius, turn = np.meshgrid(d, phi, indexing="ij")
        usable = (solution_count(arm, np.stack([radius, 0 * radius, turn], -1)) > 0).all(axis=1)
        expected = np.any([(low <= d) & (d <= high) for low, high in dexterous_workspace(arm)], axis=0)
        assert (usable == expected).all()
        assert usable.any() and not usable.all()  # noqa: PT018


def test_force_directions_of_single_torques() -> None:
    """Torque 1 acts along link 2, torque 2 along r1 + r2 and torque 3 along link 1 (pp. 11-12, 25)."""
    rng = np.random.default_rng(10)
    for kind in (TwoLink, ThreeLink):
        arm = random_arm(rng, kind)
        q = rng.uniform(-3, 3, size=(30, kind.dof))
        angle = np.cumsum(q, axis=-1)[:, :2]
        r1, r2 = np.moveaxis(
            np.stack([np.cos(angle), np.sin(angle)], -1) * np.array(arm.lengths)[:2, None], 1, 0
        )
        forces = inverse_statics(arm, q)[:, :2]
        for k, direction in enumerate([r2, r1 + r2, r1][: kind.dof]):
            cross = direction[:, 0] * forces[:, 1, k] - direction[:, 1] * forces[:, 0, k]
            size = np.hypot(*direction.T) * np.hypot(forces[:, 0, k], forces[:, 1, k])
            assert np.abs(cross / size).max() < 1e-11


def test_decoupling_angles() -> None:
    rng = np.random.default_rng(11)
    assert TwoLink(1, 1).decoupling_angles()[0] == pytest.approx(2.300523983021863, abs=1e-14)
    close(np.cos(TwoLink(0.4, 0.4, 2.0, 2.0).decoupling_angles()), [-2 / 3, -2 / 3])
    for _ in range(20):
        l1 = rng.uniform(0.5, 2)
        arm = TwoLink(l1, l1 * rng.uniform(0.1, 1.5), *rng.uniform(0.1, 3, size=2))
        q = np.stack([rng.normal(size=2), arm.decoupling_angles()], axis=-1)
        I = arm.dynamics(q).I
        assert np.abs(I[:, 0, 1] / I[:, 1, 1]).max() < 1e-14
        only = arm.dynamics(q).forward_dynamics(np.zeros(2), [1.0, 0.0])
        assert np.abs(only[:, 1] / only[:, 0]).max() < 1e-13
    for l1, l2 in ((1.0, 1.5), (0.2, 0.3), (0.7, 1.05)):
        assert TwoLink(l1, l2).decoupling_angles().tolist() == [np.pi, np.pi]
    refuses(lambda: TwoLink(1.0, 1.5 + 1e-12).decoupling_angles(), kic.ConfigurationError)
    fine = np.linspace(-np.pi, np.pi, 400)
    coupled = TwoLink(1.0, 1.8, 1.0, 1.0).dynamics(np.stack([0 * fine, fine], -1)).I[:, 0, 1]
    assert (coupled > 0).all()


EQUAL = TwoLink(0.5, 0.5, 1.8, 1.8)
UNEQUAL = ThreeLink(0.7, 0.45, 0.3, 2.3, 1.4, 0.9, 9.81)
Q = np.array([-1.2, -2.1, 1.3])


def erratum_b1() -> tuple[float, float]:
    l = np.array([[1.0], [0.6], [1.2]])
    d = np.array([[0.6]])
    true = brute_force(l, d)
    return float((within(printed_rule(l), d) != true).all()), float(
        (within(dexterous_radii(*l), d) != true).any()
    )


def erratum_b2() -> tuple[float, float]:
    ((inner, outer),) = dexterous_workspace(ThreeLink(1.0, 0.6, 0.3))
    return abs(outer - inner - (2 * 0.6 - 0.3)), abs(outer - inner - 2 * (0.6 - 0.3))


def erratum_b3() -> tuple[float, float]:
    unit = EQUAL.m1 * EQUAL.l1**2 / 2
    gain = inverse_mass_matrix(EQUAL, [[0, 0], [0, np.pi], [0, np.pi / 2], [0, -np.pi / 2]])[:, 0, 0] * unit
    fine = (
        inverse_mass_matrix(EQUAL, np.stack([np.zeros(181), np.linspace(-np.pi, np.pi, 181)], -1))[:, 0, 0]
        * unit
    )
    held = 1 / EQUAL.dynamics([[0, 0], [0, np.pi]]).I[:, 0, 0]
    assert held[1] > held[0]  # the printed statement holds for a locked joint 2
    assert fine.min() == pytest.approx(gain[2])
    return abs(gain[0] - fine.min()), np.abs(gain - [6 / 7, 6 / 7, 3 / 8, 3 / 8]).max()


def erratum_b4() -> tuple[float, float]:
    torque = np.array([2.0, -1.0])
    q = Q[:2]
    given = EQUAL.dynamics(q).forward_dynamics(np.zeros(2), torque)
    return (
        np.abs(EQUAL.dynamics(q).I @ torque - given).max(),
        np.abs(inverse_mass_matrix(EQUAL, q) @ torque - given).max(),
    )


def erratum_b5() -> tuple[float, float]:
    q = np.array([2.5, 0.4])  # tip left of the base, where the arctangent is half a turn off
    x, y = TwoLink(0.7, 0.45).forward_kinematics(q)
    alpha = np.arctan(0.45 * np.sin(q[1]) / (0.7 + 0.45 * np.cos(q[1])))
    found = TwoLink(0.7, 0.45).inverse_kinematics([x, y])[0, 0]
    return float(angle_distance(np.arctan(y / x) - alpha, q[0])), float(angle_distance(found, q[0]))


def erratum_b6() -> tuple[float, float]:
    l1, l2, l3 = UNEQUAL.lengths
    right = inverse_statics(UNEQUAL, Q)
    read = right.copy()
    read[2, 2] = (l1 * l2 * np.sin(Q[1]) + l1 * l3 * np.sin(Q[2])) / (l1 * l2 * np.sin(Q[1]))
    statics = UNEQUAL.jacobian(Q).T
    return np.abs(read @ statics - np.eye(3)).max(), np.abs(right @ statics - np.eye(3)).max()


def erratum_b7() -> tuple[float, float]:
    arm = ThreeLink(1, 1, 1, 2, 2, 2)
    M12 = arm.mechanism().at(Q).dynamics().I[0, 1]
    rest = 3 * np.cos(Q[1]) + np.cos(Q[1] + Q[2]) + 2 * np.cos(Q[2])
    return abs(19 / 3 + rest - M12), abs(10 / 3 + rest - M12)


def erratum_b8() -> tuple[float, float]:
    step = 1e-40
    raised = (UNEQUAL.forward_kinematics(Q + 1j * step * np.eye(3))[:, 1].imag / step)[2]
    pull = -UNEQUAL.dynamics(Q).load[2] / (UNEQUAL.m3 * raised / 2)
    return abs(pull + UNEQUAL.g), abs(pull - UNEQUAL.g)


def erratum_b9() -> tuple[float, float]:
    l1, l2 = 0.7, 0.45
    x, y = TwoLink(l1, l2).forward_kinematics(Q[:2])
    along, across = l1 + l2 * np.cos(Q[1]), l2 * np.sin(Q[1])
    tangent = (along * y - across * x) / (along * x + across * y)
    return abs(y / x - np.tan(Q[0])), abs(tangent - np.tan(Q[0]))


CHECKS = {
    "B1": erratum_b1, "B2": erratum_b2, "B3": erratum_b3, "B4": erratum_b4, "B5": erratum_b5,
    "B6": erratum_b6, "B7": erratum_b7, "B8": erratum_b8, "B9": erratum_b9,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_errata(name: str) -> None:
    """The printed formula is wrong and the corrected one is right."""
    assert ERRATA[name]["page"]
    assert ERRATA[name]["correct"]
    printed, corrected = CHECKS[name]()
    assert printed > 1e-2
    assert corrected < 1e-12


def test_every_erratum_is_tested() -> None:
    assert CHECKS.keys() == ERRATA.keys()


ARM, THREE = TwoLink(0.7, 0.45), ThreeLink(1.0, 1.0, 0.5)


def test_unreachable_targets_raise() -> None:
    error = refuses(lambda: ARM.inverse_kinematics([1.2, 0.5]), kic.ConfigurationError)
    assert str(error) == (
        "`tip` must be reachable by TwoLink(l1=0.7, l2=0.45, m1=None, m2=None, g=0.0), got [1.2, 0.5] "
        "(tip radius 1.3 is outside [0.25, 1.15]; move it 0.15 inwards). Choose another target."
    )
    assert error.failed == [()]
    close(error.radius, [1.3])
    with raises(kic.ConfigurationError, key="tip") as caught:
        ARM.inverse_kinematics([[[0.5, 0.5]], [[2.0, 0.0]], [[0.0, 0.0]]])
    error = caught.value
    assert error.failed == [(1, 0), (2, 0)]
    assert len(error.reasons) == 2
    close(error.radius, [2.0, 0.0])
    close(error.branches[:, 0, 0], ARM.inverse_kinematics([0.5, 0.5]))


def test_default_gravity_is_zero() -> None:
    assert (TwoLink(1, 1, 1, 1).dynamics([0.3, 0.2]).load == 0).all()
