"""Freeman's Appendix B: the wrist-partitioned arm, its inverse to third order and the printed formulas."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from classic_arms import BATCHES, angle_distance
from classic_arms import random_wrist_partitioned as random_arm
from expressions import angles, evaluate, relative_difference
from numpy.testing import assert_allclose
from raising import raises, refuses
from sampling import STEP, agree, mismatch

import kic
from kic.classics import WristPartitioned

DATA = json.loads((Path(__file__).parents[1] / "data" / "appendix_b.json").read_text(encoding="utf-8"))
NUMBERS = DATA["numbers"]
TABLES = {(t["table"], t["quantity"]): t for t in DATA["tables"]}
ARM = WristPartitioned(*(NUMBERS["inputs"][x] for x in ("a23", "a34", "s11")))
TENSORS = ("G", "H", "D")


def random_angles(rng: np.random.Generator, batch: tuple[int, ...] = ()) -> np.ndarray:
    """Return random joint angles away from singularities, in all branches."""
    q = rng.uniform(-np.pi, np.pi, size=(*batch, 3))
    q[..., 2] = rng.choice([-1, 1], size=batch) * rng.uniform(0.3, 2.8, size=batch)
    return q


def test_reference_values() -> None:
    theta = np.array([NUMBERS["inputs"][f"theta{k}"] for k in (1, 2, 3)])
    w, inverse = ARM.wrist_coefficients(theta), ARM.inverse_coefficients(theta)
    for found, expected in [
        (w.values, "P"), (w.G, "G_phi_P"), (w.H, "H_P"), (w.D, "D_P"),
        (inverse.G, "G_P_phi"), (inverse.H, "H_PP_phi"), (inverse.D, "D_PPP_phi"),
        (w.inverse().G, "G_P_phi"), (w.inverse().H, "H_PP_phi"), (w.inverse().D, "D_PPP_phi"),
    ]:  # fmt: skip
        assert mismatch(found, np.array(NUMBERS[expected])) < 1e-12
    assert angle_distance(ARM.inverse_kinematics(NUMBERS["P"])[1], theta).max() < 1e-14


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_closed_form_agrees_with_the_general_inverse(batch: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    arm = random_arm(rng)
    theta = random_angles(rng, batch)
    forward = arm.mechanism().at(theta).coefficients("wrist", order=3)
    closed_form, general = arm.wrist_coefficients(theta), forward.inverse()
    closed = arm.inverse_coefficients(theta)
    for one, two in ((closed_form, forward), (closed, general)):
        assert (one.rows, one.columns) == (two.rows, two.columns)
    assert (forward.rows, forward.columns) == (arm.rows, arm.coordinates)
    limit = max(1e-12, 100 * np.finfo(float).eps * forward.condition().max(initial=1.0))
    assert agree(closed_form, forward, TENSORS)
    assert agree(closed, general, TENSORS, limit)
    assert mismatch(closed_form.values, forward.values) < 1e-12
    np.testing.assert_array_equal(closed.values, theta)
    assert (closed.order, arm.inverse_coefficients(theta, order=1).order) == (3, 1)
    assert arm.inverse_coefficients(theta, order=2).D is None
    assert closed.holonomic
    # derivatives with respect to coordinates are symmetric in the differentiating indices
    assert mismatch(np.swapaxes(closed.H, -1, -2), closed.H) < limit
    for a, b in ((-1, -2), (-2, -3)):
        assert mismatch(np.swapaxes(closed.D, a, b), closed.D) < limit


@pytest.mark.parametrize("seed", range(4))
def test_each_order_by_complex_step(seed: int) -> None:
    """Differentiate along P by stepping the joint angles along the columns of G."""
    rng = np.random.default_rng(seed)
    arm, theta = random_arm(rng), random_angles(rng, (5,))
    exact = arm.inverse_coefficients(theta)
    steps = theta[:, None, :] + 1j * STEP * np.swapaxes(exact.G, -1, -2)
    moved = arm.inverse_coefficients(steps)
    rates = arm.wrist_coefficients(steps).values.imag / STEP
    assert mismatch(rates, np.broadcast_to(np.eye(3), (5, 3, 3))) < 1e-12
    for low, high in pairwise(TENSORS):
        derivative = np.moveaxis(getattr(moved, low).imag / STEP, 1, 2)
        assert mismatch(getattr(exact, high), derivative) < 1e-12


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_four_branches(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(8)
    arm = random_arm(rng)
    theta = random_angles(rng, batch)
    P = arm.wrist_coefficients(theta).values
    found = arm.inverse_kinematics(P)
    assert found.shape == (4, *batch, 3)
    assert (np.abs(found) <= np.pi).all()
    w = arm.wrist_coefficients(found)
    size = arm.a23 + arm.a34
    assert np.abs(w.values - P).max(initial=0.0) < 1e-13 * size
    # one branch is the original one, and all branches differ
    assert (angle_distance(found, theta).max(axis=-1).min(axis=0) < 1e-13).all()
    for a in range(4):
        for b in range(a):
            assert (angle_distance(found[a], found[b]).max(axis=-1) > 0.1).all()
    # branches have the properties of their names
    r = arm.a23 * np.cos(found[..., 1]) + arm.a34 * np.cos(found[..., 1] + found[..., 2])
    z = P[..., 2] - arm.s11
    upper = arm.a23 * np.stack([np.cos(found[..., 1]), np.sin(found[..., 1])], axis=-1)
    for k, (side, elbow) in enumerate(arm.branches):
        sign = 1 if side == "front" else -1
        assert (sign * r[k] > 0).all()
        # position of the elbow relative to the line from shoulder to P, with P on the right
        across = sign * (r[k] * upper[k, ..., 1] - z * upper[k, ..., 0])
        assert ((across > 0) == (elbow == "up")).all()
        if side == "front":
            assert ((found[k, ..., 2] > 0) == (elbow == "down")).all()


def test_inverse_kinematics_agrees_with_the_general_solver() -> None:
    """`at` and `assembly_modes` find the same configurations, also near workspace boundaries."""
    arm = ARM
    m = arm.mechanism()
    radii = np.array([0.4 + 1e-3, 0.5, 1.2, 1.9, 2.2 - 1e-3])
    tilt, turn = np.meshgrid(np.linspace(-1.2, 1.2, 5), np.linspace(-3, 3, 4), indexing="ij")
    direction = np.stack([np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), np.sin(tilt)], axis=-1)
    P = radii[:, None, None, None] * direction + [0.0, 0.0, arm.s11]
    branches = arm.inverse_kinematics(P)
    w = arm.wrist_coefficients(branches, order=1)
    assert np.abs(w.values - P).max() < 1e-13
    target = dict(zip(arm.rows, np.moveaxis(P, -1, 0), strict=True))
    for k in range(4):
        # start near the solution with the elbow on the same side but bent more
        bend = branches[k][..., 2]
        aside = branches[k] + [0.05, -0.04, 0.0]
        aside[..., 2] += 0.05 * np.sign(bend) * np.where(np.abs(bend) < np.pi / 2, 1, -1)
        c = m.at(target, near=m.at(aside))
        condition = w.condition()[k]
        error = angle_distance(c._phi, branches[k]).max(axis=-1)
        assert (error < 100 * np.finfo(float).eps * condition + 1e-12).all()
    found = m.assembly_modes({"wrist.x": 1.1, "wrist.y": -0.6, "wrist.z": 1.0})
    closed_form = arm.inverse_kinematics([1.1, -0.6, 1.0])
    assert len(found.configuration._phi) == 4
    distances = angle_distance(found.configuration._phi[:, None], closed_form).max(axis=-1)
    assert (distances.min(axis=0) < 1e-9).all()


@pytest.mark.parametrize("lengths", [(1.3, 0.9), (0.9, 1.3), (1.0, 1.0)])
def test_workspace_boundaries(lengths: tuple[float, float]) -> None:
    arm = WristPartitioned(*lengths, 0.4)
    rng = np.random.default_rng(3)
    direction = rng.normal(size=(200, 3))
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    outer, inner = sum(lengths), abs(lengths[0] - lengths[1])
    for radius, elbow in ((outer, 0.0), (inner, np.pi)):
        if not radius:
            continue
        found = arm.inverse_kinematics(radius * direction + [0, 0, 0.4])
        # the elbow branches are equal on a boundary, to rounding
        assert angle_distance(found[..., 2], elbow).max() == 0
        for k in (0, 2):
            np.testing.assert_array_equal(found[k], found[k + 1])
        assert np.abs(arm.wrist_coefficients(found).values - radius * direction - [0, 0, 0.4]).max() < 1e-13
        # inside they separate as a square root, and outside there is no solution
        inside = radius + 1e-8 * (1 if radius == inner else -1)
        bent = angle_distance(arm.inverse_kinematics(inside * direction + [0, 0, 0.4])[..., 2], elbow)
        expected = np.arccos(
            np.clip((inside**2 - lengths[0] ** 2 - lengths[1] ** 2) / (2 * np.prod(lengths)), -1, 1)
        )
        assert_allclose(bent, abs(expected - elbow), rtol=1e-6)
        outside = radius - 1e-12 * (1 if radius == inner else -1)
        masked = arm.inverse_kinematics(outside * direction + [0, 0, 0.4], failures="mask")
        assert np.isnan(masked).all()


def test_boundary_solutions_are_exact() -> None:
    """Arms of all proportions recover stretched and folded elbows from the wrist centre."""
    rng = np.random.default_rng(8)
    for _ in range(100):
        arm = WristPartitioned(*10 ** rng.uniform(-2, 2, size=2), 10 ** rng.uniform(-2, 2) * rng.normal())
        theta = rng.uniform(-np.pi, np.pi, size=(50, 3))
        theta[:, 2] = rng.choice([0, np.pi], size=50)
        found = arm.inverse_kinematics(arm.wrist_coefficients(theta, order=1).values)
        assert (angle_distance(found[..., 2], theta[:, 2]) == 0).all()
        for k in (0, 2):
            np.testing.assert_array_equal(found[k], found[k + 1])


@pytest.mark.parametrize("radius", [2.2, 0.4], ids=["stretched", "folded"])
def test_boundary_solutions_agree_with_a_search(radius: float) -> None:
    """Expect two singular configurations, in front of the waist and behind it."""
    P = radius * np.array([0.6, 0.48, 0.64]) + [0.0, 0.0, ARM.s11]
    found = ARM.mechanism().assembly_modes(dict(zip(ARM.rows, P, strict=True)))
    assert len(found.counts) == 2
    assert found.singular.all()
    distances = angle_distance(found.configuration._phi[:, None], ARM.inverse_kinematics(P)[::2]).max(axis=-1)
    assert distances.min(axis=0).max() < 1e-3  # a search keeps half of the digits on a boundary


def test_unreachable_positions_raise() -> None:
    P = [[1.0, 0.5, 0.8], [3.0, 0.0, 0.4], [0.1, 0.0, 0.4], [0.0, 0.0, 1.4]]
    error = refuses(lambda: ARM.inverse_kinematics(P), kic.ConfigurationError, key="P")
    assert error.failed == [(1,), (2,), (3,)]
    assert error.reasons == [
        "distance of P from the shoulder 3 is outside [0.4, 2.2]; move it 0.8 inwards",
        "distance of P from the shoulder 0.1 is outside [0.4, 2.2]; move it 0.3 outwards",
        "P is on the waist axis, where any waist angle is possible",
    ]
    np.testing.assert_array_equal(error.branches[:, 0], ARM.inverse_kinematics(P[0]))
    assert np.isnan(error.branches[:, 1:]).all()
    masked = ARM.inverse_kinematics(P, failures="mask")
    np.testing.assert_array_equal(np.isnan(masked).any(axis=(0, 2)), [False, True, True, True])


@pytest.mark.parametrize(
    ("arm", "P"),
    [
        (ARM, [0.0, 0.0, 1.0]),
        (ARM, [1e-17, 0.0, 1.0]),
        (WristPartitioned(1.0, 1.0), [0.0, 0.0, 0.0]),  # equal links folded onto the shoulder
    ],
)
def test_positions_on_the_waist_axis_raise(arm: WristPartitioned, P: list) -> None:
    with raises(
        kic.ConfigurationError, key="P", reasons=["P is on the waist axis, where any waist angle is possible"]
    ) as caught:
        arm.inverse_kinematics(P)
    assert caught.value.failed == [()]


@pytest.mark.parametrize("elbow", [0.0, np.pi, -np.pi])
def test_derivatives_at_a_singular_elbow_raise(elbow: float) -> None:
    with raises(kic.SingularError, key="theta", failed=[(1,)]) as caught:
        ARM.inverse_coefficients([[0.1, 0.2, 0.3], [0.1, 0.2, elbow]])
    assert abs(caught.value.s3) < 1e-14
    with pytest.raises(kic.SingularError):  # the general library agrees
        ARM.wrist_coefficients([0.1, 0.2, elbow]).inverse()


def test_derivatives_on_the_waist_axis_raise() -> None:
    arm, theta = WristPartitioned(1.0, 1.0), [0.3, np.pi / 4, np.pi / 2]
    caught = refuses(lambda: arm.inverse_coefficients(theta), kic.SingularError, key="theta", failed=[()])
    assert abs(caught.r) < 1e-14
    refuses(lambda: arm.wrist_coefficients(theta).inverse(), kic.SingularError)


def variables(arm: WristPartitioned, theta: np.ndarray) -> dict:
    """Return the variables of the printed formulas."""
    names = angles({"a23": arm.a23, "a34": arm.a34, "theta1": theta[..., 0]}, theta)
    r = arm.a23 * names["c2"] + arm.a34 * names["c23"]
    z = arm.a23 * names["s2"] + arm.a34 * names["s23"]
    return names | {"r": r, "z": z, "sin": np.sin, "cos": np.cos}


def reference_tables(arm: WristPartitioned, theta: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    """Return the printed tables by the general library."""
    w = arm.mechanism().at(theta).coefficients("wrist")
    inverse = w.inverse()
    return {
        **{("B-1", f"H{k + 1}"): w.H[..., k, :, :] for k in range(3)},
        ("B-1", "G"): w.G,
        ("B-6", "inverse G"): inverse.G,
        ("B-7", "inverse G . H"): np.einsum("...k,...kmn->...mn", inverse.G[..., 0, :], w.H),
        ("B-8", "H of theta1"): inverse.H[..., 0, :, :],
        ("B-9", "H of theta1"): inverse.H[..., 0, :, :],
    }


@pytest.mark.parametrize("key", TABLES, ids=lambda key: " ".join(key))
def test_printed_tables(key: tuple[str, str]) -> None:
    """Printed entries are right except the errata, which are wrong as printed and right as corrected."""
    rng = np.random.default_rng(6)
    arm, theta = random_arm(rng), random_angles(rng, (7,))
    names, exact = variables(arm, theta), reference_tables(arm, theta)[key]
    errata = {tuple(e["at"]): e for e in TABLES[key]["errata"]}
    size = np.abs(exact).max()

    def relative_error(formula: str, at: tuple[int, int]) -> float:
        return float(np.abs(evaluate(formula, names) - exact[..., *at]).max() / size)

    seen = set()
    for at in np.ndindex(3, 3):
        printed = TABLES[key]["printed"][at[0]][at[1]]
        if at not in errata:
            assert relative_error(printed, at) < 1e-12, (at, printed)
            continue
        seen.add(at)
        entry = errata[at]
        assert entry["as_read"] == printed
        assert entry["why"]
        assert relative_error(entry["correct"], at) < 1e-12
        if "no quantity" in entry["why"]:
            refuses(lambda at=at, printed=printed: relative_error(printed, at), NameError, match="s_34")
        else:
            assert relative_error(printed, at) > 1e-3
    assert seen == set(errata)


def test_reasons_given_for_errata() -> None:
    rng = np.random.default_rng(9)
    arm, theta = random_arm(rng), random_angles(rng, (4,))
    n = variables(arm, theta)
    for key, table in TABLES.items():
        for e in table["errata"]:
            if "symmetric" in e["why"]:
                assert table["printed"][e["at"][1]][e["at"][0]] == e["correct"], key
    printed = (-n["z"] * n["c2"] + n["r"] * n["s2"]) / (arm.a23 * n["s3"])
    assert relative_difference(printed, np.array(-arm.a34 / arm.a23)) < 1e-12
    eight, nine = TABLES["B-8", "H of theta1"], TABLES["B-9", "H of theta1"]
    assert eight["printed"][1][1] == nine["errata"][0]["correct"]
    assert sum(len(t["errata"]) for t in TABLES.values()) == 9


@pytest.mark.parametrize("entry", DATA["equations"], ids=lambda e: f"{e['equation']} {e['left']}")
def test_printed_equations(entry: dict) -> None:
    """Check (B-4) and (B-10) to (B-15) along a motion of P."""
    rng = np.random.default_rng(11)
    arm, theta = random_arm(rng), random_angles(rng)
    w = arm.mechanism().at(theta).coefficients("wrist", order=3)
    inverse = w.inverse()
    Pd, Pdd = rng.normal(size=(2, 3))
    wd = inverse.velocity(Pd)
    names = variables(arm, theta)
    rd = Pd[0] * names["c1"] + Pd[1] * names["s1"]
    rd_by_joints = -names["z"] * wd[1] - arm.a34 * names["s23"] * wd[2]
    assert rd == pytest.approx(rd_by_joints, rel=1e-12)
    names |= dict(zip(("Px", "Py"), w.values, strict=False))
    names |= dict(zip(("Pxd", "Pyd"), Pd, strict=False)) | dict(zip(("Pxdd", "Pydd"), Pdd, strict=False))
    names |= {"rd": rd_by_joints, "w1": wd[0], "w1d": inverse.acceleration(Pd, Pdd)[0]}
    names |= {"H": w.H, "inverse": inverse.G, "H1_transferred": inverse.H[0]}
    names["dot"] = lambda a, b: np.einsum("pk,kmn->pmn", a, b)  # the generalized dot product of Appendix A
    left = evaluate(entry["left"], names)
    assert relative_difference(evaluate(entry["right"], names), left) < 1e-12
    if "as_read" in entry:
        assert relative_difference(evaluate(entry["as_read"], names), left) > 1e-3
        assert entry["why"]


def test_wrist_coefficients_as_vector_products() -> None:
    """Check g_n = s^n × (P − R^n) and H_1n = s^1 × g_n (Table B-1)."""
    rng = np.random.default_rng(2)
    arm, theta = random_arm(rng), random_angles(rng)
    w = arm.wrist_coefficients(theta)
    n = variables(arm, theta)
    axis = np.array([[0, 0, 1], [n["s1"], -n["c1"], 0], [n["s1"], -n["c1"], 0]])
    out = np.array([n["c1"], n["s1"], 0])
    elbow = arm.a23 * (n["c2"] * out + n["s2"] * axis[0])
    R = arm.s11 * axis[:1] + np.array([0 * elbow, 0 * elbow, elbow])
    for k in range(3):
        g = np.cross(axis[k], w.values - R[k])
        assert_allclose(w.G[:, k], g, atol=1e-14)
        assert_allclose(w.H[:, 0, k], np.cross(axis[0], g), atol=1e-14)


def test_model_file_agrees_with_the_closed_form() -> None:
    """The first three joints of the complete arm are those of the appendix for any wrist angles."""
    m = kic.load("wrist-partitioned")
    rng = np.random.default_rng(0)
    q = np.concatenate([random_angles(rng, (5,)), rng.normal(size=(5, 3))], axis=-1)
    c = m.at(q)
    w = c.coefficients("wrist", order=3)
    assert w.columns[:3] == ARM.coordinates
    closed_form = ARM.wrist_coefficients(q[:, :3])
    first = w.columns_of(ARM.coordinates)
    assert agree(first, closed_form, ("values", *TENSORS))
    assert not w.G[..., 3:].any()
    closed, general = ARM.inverse_coefficients(q[:, :3]), first.inverse()
    assert agree(closed, general, TENSORS, 1e-11)
    # the three wrist axes intersect in P
    centre = kic.Point("centre", "hand", m.points[1].at)
    other = replace(m, points=(*m.points, centre))
    assert_allclose(other.at(q).value("centre"), c.value("wrist"), atol=1e-14)
    assert_allclose(m.at()._phi, np.array([0, 1, -1, -1, 1, 0]) * np.pi / 2, atol=1e-14)
    # only the elbow changes the reach, as the model file states
    assert np.abs(c.coefficients("reach", order=1).G[..., [0, 1, 3, 4, 5]]).max() < 1e-14


def test_inverse_kinematics_of_the_complete_arm() -> None:
    """`at` finds all branches for a wrist position with fixed wrist angles."""
    m = kic.load("wrist-partitioned")
    P = np.array([1.2, 0.7, 1.1])
    wrist = {"wrist_bend": 0.3, "wrist_swing": 1.0, "wrist_roll": -0.4}
    for branch in ARM.inverse_kinematics(P):
        near = m.at([*(branch + 0.05), *wrist.values()])
        c = m.at(dict(zip(ARM.rows, P, strict=True)) | wrist, near=near)
        assert angle_distance(c._phi[:3], branch).max() < 1e-12
