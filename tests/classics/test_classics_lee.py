"""Lee, Lee and Nigam (1982): split dynamics, effort errors of simplified models and operation counts."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import astuple, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from classic_arms import BATCHES, generic_revolute_arm, random_puma
from raising import refuses
from sampling import STEP, random_tree, solved

import kic
from kic.classics import (
    EffortDeviation,
    OperationCount,
    SplitDynamics,
    ThreeLinkPuma,
    count_operations,
    split,
    table_1,
)  # fmt: skip
from kic.classics.operation_count import TABLE_1, CountingScalar, run_counted
from kic.classics.split_dynamics import TENSORS
from kic.mechanism.configuration import displacement

DATA = json.loads((Path(__file__).parents[1] / "data" / "lee_puma.json").read_text(encoding="utf-8"))
PARTS = tuple(TENSORS)
CASES = [(name, k) for name, system in DATA["systems"].items() for k in range(len(system["cases"]))]


def relative_error(a, b) -> float:
    """Return the largest difference divided by the largest entry of b."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    top = np.abs(b).max(initial=0.0)
    return float(np.abs(a - b).max(initial=0.0) / (top if top else 1.0))


def case(name: str, k: int) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
    system = DATA["systems"][name]
    given = system["cases"][k]
    q, qd, qdd = (np.array(given[key]) for key in ("q", "qd", "qdd"))
    return system["parameters"], q, qd, qdd, given["outputs"]


def mechanism_of(parameters: dict) -> kic.Mechanism:
    """Return the mechanism of a reference case."""
    rows = [
        kic.DHRow(f"joint{k}", f"link{k}", a=row["a"], alpha=math.radians(row["alpha_deg"]), d=row["d"])
        for k, row in enumerate(parameters["dh"], 1)
    ]
    bodies = [
        kic.Body(
            f"link{k}",
            mass=link["m"],
            com=link["com_in_frame_i"],
            inertia=link["inertia_about_com_diag_in_frame_i"],
            inertia_exception="synthetic",
        )
        for k, link in enumerate(parameters["links"], 1)
    ]
    ends = [kic.Point(f"end{k}", f"link{k}", at=(0, 0, 0)) for k in range(1, len(rows) + 1)]
    return kic.from_dh(
        "puma", rows, convention="standard", bodies=bodies, points=ends, gravity=parameters["gravity"]
    )


def closed_form(parameters: dict, **other) -> ThreeLinkPuma:
    links, dh = parameters["links"], parameters["dh"]
    lengths = {"a2": dh[1]["a"], "a3": dh[2]["a"], "d2": dh[1]["d"], "g": -parameters["gravity"][2]}
    return ThreeLinkPuma(
        [link["m"] for link in links],
        [link["com_in_frame_i"] for link in links],
        [link["inertia_about_com_diag_in_frame_i"] for link in links],
        inertia_exception="synthetic",
        **(lengths | other),
    )


@pytest.mark.parametrize(("name", "k"), CASES)
def test_reference_values(name: str, k: int) -> None:
    parameters, q, qd, qdd, expected = case(name, k)
    m = mechanism_of(parameters)
    c = m.at(q)
    for n, p in enumerate(expected["p"], 1):
        assert relative_error(c.value(f"end{n}"), p) < 1e-12
    arm = split(c)
    for part in ("D_tran", "D_rot"):
        assert relative_error(getattr(arm, part), expected[part]) < 1e-12
    assert relative_error(arm.D_tran + arm.D_rot, expected["D"]) < 1e-12
    assert relative_error(arm.H_tran(qd), expected["H_tran"]) < 1e-12
    assert relative_error(arm.H_rot(qd), expected["H_rot"]) < 1e-12
    assert relative_error(arm.H_tran(qd) + arm.H_rot(qd), expected["H"]) < 1e-12
    assert relative_error(arm.G, expected["gravity"]) < 1e-12
    assert relative_error(arm.dynamics().inverse_dynamics(qd, qdd), expected["tau"]) < 1e-12
    moving = arm.without("D_rot").without("H_rot").dynamics()
    assert relative_error(moving.inverse_dynamics(qd, qdd), expected["tau_translational_only_model"]) < 1e-12
    assert relative_error(c.dynamics().kinetic_energy(qd), expected["kinetic_energy"]) < 1e-12


@pytest.mark.parametrize("k", [0, 1])
def test_lagrange_euler_coefficients(k: int) -> None:
    """D_ikm of (4), from the 4×4 matrices, equals the sum of P_tran and P_rot."""
    parameters, q, _, _, expected = case("C3_puma", k)
    arm = split(mechanism_of(parameters).at(q))
    assert relative_error(arm.P_tran + arm.P_rot, expected["LE_D_ikm"]) < 1e-12


@pytest.mark.parametrize("k", [0, 1])
def test_shipped_model_gives_the_reference_values(k: int) -> None:
    parameters, q, qd, qdd, expected = case("C6_puma", k)
    m = kic.load("lee-puma")
    c = m.at(q)
    assert relative_error(c.dynamics().inverse_dynamics(qd, qdd), expected["tau"]) < 1e-12
    assert relative_error(c.value("hand"), expected["p"][-1]) < 1e-12
    assert relative_error(c.value("elbow"), expected["p"][1]) < 1e-12
    # axes 4, 5 and 6 intersect in the wrist
    assert relative_error(c.value("wrist"), expected["p"][3]) < 1e-12
    assert relative_error(c.value("wrist"), expected["p"][4]) < 1e-12
    assert m.gravity == tuple(parameters["gravity"])
    assert "SYNTHETIC" in m.info.about


@pytest.mark.parametrize("k", [0, 1])
def test_closed_form_of_three_links(k: int) -> None:
    parameters, q, qd, _, expected = case("C3_puma", k)
    dynamics = closed_form(parameters).dynamics(q)
    for part in ("D_tran", "D_rot"):
        assert relative_error(getattr(dynamics, part), expected[part]) < 1e-12
    assert relative_error(dynamics.H_tran(qd), expected["H_tran"]) < 1e-12
    assert relative_error(dynamics.H_rot(qd), expected["H_rot"]) < 1e-12
    assert relative_error(dynamics.G, expected["gravity"]) < 1e-12


def test_errata_of_the_closed_form() -> None:
    """Check errata C1 (sign of G), C2 (d₂ omitted on p. 19) and C3 (factor 2 in H₁)."""
    parameters, q, qd, _, expected = case("C3_puma", 0)
    printed = expected["literal_wrong"]
    correct, without_d2 = closed_form(parameters).dynamics(q), closed_form(parameters, d2=0.0).dynamics(q)
    assert relative_error(-correct.G, printed["gravity_with_printed_sign_and_g_positive"]) < 1e-12
    assert relative_error(without_d2.D_tran + without_d2.D_rot, printed["D_if_d2_omitted"]) < 1e-12
    assert relative_error(without_d2.H_tran(qd) + without_d2.H_rot(qd), printed["H_if_d2_omitted"]) < 1e-12
    differs = np.abs(correct.D_tran - without_d2.D_tran) > 1e-3
    assert differs.tolist() == [[True, True, True], [True, False, False], [True, False, False]]
    # the term of link 3 with q̇1 q̇2, from the vectors of the source
    links = [link | {"m": 0.0} for link in parameters["links"][:2]] + parameters["links"][2:]
    link3_only = closed_form(parameters | {"links": links}).dynamics(q)
    (_, p2, _), (_, _, c3) = expected["p"], expected["com_c"]
    r3, m3 = np.add(p2, c3), parameters["links"][2]["m"]
    along = math.sin(q[0]) * r3[1] + math.cos(q[0]) * r3[0]
    assert abs(2 * link3_only.P_tran[0, 0, 1] - 2 * m3 * (p2[2] + c3[2]) * along) < 1e-12


@pytest.mark.parametrize("batch", BATCHES)
def test_closed_form_agrees_with_the_mechanism(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    for trial in range(4):
        arm = random_puma(rng)
        q, qd = rng.normal(size=(2, *batch, 3)) * (trial > 0)  # the first trial is at rest
        closed, general = arm.dynamics(q), split(arm.mechanism().at(q))
        assert closed.coordinates == general.coordinates
        for part in ("D_tran", "D_rot", "P_tran", "P_rot", "G"):
            assert relative_error(getattr(closed, part), getattr(general, part)) < 1e-12
        assert relative_error(closed.H_tran(qd), general.H_tran(qd)) < 1e-12
        assert relative_error(closed.H_rot(qd), general.H_rot(qd)) < 1e-12


def test_closed_form_by_complex_step() -> None:
    """P_tran and P_rot are the Christoffel symbols of D_tran and D_rot."""
    parameters, q, _, _, _ = case("C3_puma", 0)
    arm = closed_form(parameters)
    exact, stepped = arm.dynamics(q), arm.dynamics(q + 1j * STEP * np.eye(3))
    for D, P in (("D_tran", exact.P_tran), ("D_rot", exact.P_rot)):
        gradient = getattr(stepped, D).imag / STEP  # [n, l, m] = ∂D_lm/∂q_n
        christoffel = (np.moveaxis(gradient, 0, 1) + np.moveaxis(gradient, 0, 2) - gradient) / 2
        assert relative_error(P, christoffel) < 1e-12


def test_velocities_broadcast_over_one_configuration() -> None:
    arm = closed_form(case("C3_puma", 0)[0])
    assert arm.dynamics(np.zeros(3)).H_tran(np.ones((4, 3))).shape == (4, 3)


def test_closed_form_of_a_serial_arm_can_be_simplified() -> None:
    dynamics = closed_form(case("C3_puma", 0)[0]).dynamics(np.ones(3))
    assert dynamics.simplified(n_major=2).dropped == ("D_rot among joint1, joint2; D_tran among joint3",)
    assert dynamics.simplified().dropped == ("D_rot among joint1, joint2, joint3",)


def source_sums(m: kic.Mechanism, q: np.ndarray, qd: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sums (30)-(33) for a serial arm of revolute joints, with the limits of erratum C5."""
    n, c = len(q), m.at(q)
    transforms = [displacement(c, b.name) for b in m.bodies]
    z = [T[:3, :3] @ j.axis / np.linalg.norm(j.axis) for T, j in zip(transforms, m.joints, strict=True)]
    # a joint axis is that of its second body relative to the first
    z = [v if j.bodies[1] == b.name else -v for v, j, b in zip(z, m.joints, m.bodies, strict=True)]
    p = [T[:3, :3] @ j.at + T[:3, 3] for T, j in zip(transforms, m.joints, strict=True)]  # p_(s-1)
    r = [T[:3, :3] @ b.com + T[:3, 3] for T, b in zip(transforms, m.bodies, strict=True)]
    inertia = [
        T[:3, :3] @ np.array(b.inertia) @ T[:3, :3].T for T, b in zip(transforms, m.bodies, strict=True)
    ]
    mass = [b.mass for b in m.bodies]
    w = [sum(qd[k] * z[k] for k in range(s + 1)) for s in range(n)]
    bias = [sum((np.cross(w[k - 1], qd[k] * z[k]) for k in range(1, s + 1)), np.zeros(3)) for s in range(n)]
    out = {name: np.zeros((n, n)) for name in PARTS[:2]} | {name: np.zeros(n) for name in PARTS[2:]}
    for i in range(n):
        for s in range(i, n):
            arm_i = np.cross(z[i], r[s] - p[i])
            for j in range(s + 1):
                out["D_tran"][i, j] += mass[s] * np.cross(z[j], r[s] - p[j]) @ arm_i
                out["D_rot"][i, j] += z[i] @ inertia[s] @ z[j]
            links = [p[k + 1] - p[k] for k in range(s)] + [r[s] - p[s]]
            a = sum(np.cross(w[k], np.cross(w[k], x)) + np.cross(bias[k], x) for k, x in enumerate(links))
            out["H_tran"][i] += mass[s] * a @ arm_i
            first = sum(
                np.cross(qd[j] * z[j], sum((qd[k] * z[k] for k in range(j + 1, s + 1)), np.zeros(3)))
                for j in range(s + 1)
            )
            out["H_rot"][i] += z[i] @ inertia[s] @ first + np.cross(z[i], w[s]) @ inertia[s] @ w[s]
            out["G"][i] -= mass[s] * np.array(m.gravity) @ arm_i
    for name in PARTS[:2]:
        out[name] = np.where(np.tri(n), out[name], out[name].T)
    return out


@pytest.mark.parametrize("n", range(1, 8))
def test_random_revolute_arms(n: int) -> None:
    rng = np.random.default_rng(40 + n)
    base = random_tree(rng, ["R"] * n)
    m = kic.Mechanism("arm", bodies=base.bodies, joints=base.joints, gravity=rng.normal(size=3))
    for k in range(3):
        q, qd, qdd = rng.normal(size=(3, n)) * (k > 0)
        expected, arm = source_sums(m, q, qd), split(m.at(q))
        assert relative_error(arm.D_tran, expected["D_tran"]) < 1e-12
        assert relative_error(arm.D_rot, expected["D_rot"]) < 1e-12
        # for one joint H is round-off of the size of its inertia
        magnitude = (np.abs(arm.D_tran).max() + np.abs(arm.D_rot).max()) * (1 + qd @ qd)
        assert np.abs(arm.H_tran(qd) - expected["H_tran"]).max() < 1e-13 * n * magnitude
        assert np.abs(arm.H_rot(qd) - expected["H_rot"]).max() < 1e-13 * n * magnitude
        assert relative_error(arm.G, expected["G"]) < 1e-12
        efforts = [d.inverse_dynamics(qd, qdd) for d in (arm.dynamics(), m.at(q).dynamics())]
        assert relative_error(*efforts) < 1e-12


HAND = ["hand.x", "hand.y", "hand.z", "link6.wx", "link6.wy", "link6.wz"]
GENERAL = {
    "branched": (lambda: random_tree(np.random.default_rng(3), ["R", "P", "R", "universal"], True), None),
    "balls": (lambda: random_tree(np.random.default_rng(4), ["R", "spherical", "P"], True), None),
    "loop": (lambda: kic.load("five-bar"), None),
    "tip": (lambda: kic.load("five-bar"), ["tip.x", "tip.y"]),
    "hand": (lambda: kic.load("lee-puma"), HAND),
    "platform": (lambda: kic.load("gough-stewart"), None),
    "crank": (lambda: kic.load("four-bar"), None),
    "delta": (lambda: kic.load("delta"), None),
}  # fmt: skip


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("batch", BATCHES)
def test_parts_sum_to_the_dynamics(name: str, batch: tuple[int, ...]) -> None:
    constructor, wrt = GENERAL[name]
    m, rng = constructor(), np.random.default_rng(8)
    reference = m.at()
    if name == "hand":
        reference = m.at([0.35, -0.6, 1.1, 0.8, -0.9, 0.25])
    start = reference._phi
    if m.mobility().cuts:
        start = np.concatenate([reference.value(x).reshape(-1) for x in reference.coordinates])
    c = m.at(start + 0.01 * rng.normal(size=(*batch, len(start))))
    M = len(reference.dynamics(wrt=wrt).coordinates)
    qd, qdd = rng.normal(size=(2, *batch, M))
    arm, whole = split(c, wrt=wrt), c.dynamics(wrt=wrt)
    assert arm.batch == batch
    assert arm.coordinates == whole.coordinates
    assert relative_error(arm.D_tran + arm.D_rot, whole.I) < 1e-12
    d = arm.dynamics()
    assert relative_error(d.inverse_dynamics(qd, qdd), whole.inverse_dynamics(qd, qdd)) < 1e-12
    assert relative_error(d.forward_dynamics(qd, d.inverse_dynamics(qd, qdd)), qdd) < solved(whole.I)
    if whole.holonomic:
        assert relative_error(arm.P_tran + arm.P_rot, whole.P) < 1e-12
    at_rest = d.inverse_dynamics(0 * qd, 0 * qd)
    assert relative_error(at_rest, arm.G) == 0


@pytest.mark.parametrize("name", ["horn-two-link", "five-bar"])
def test_each_part_is_transferred(name: str) -> None:
    """D and P of each part in the coordinates of the tip are those of the joints, transferred."""
    c = kic.load(name).at([0.4, 0.9] if name == "horn-two-link" else None)
    inside, outside = split(c), split(c, wrt=["tip.x", "tip.y"])
    back = c.coefficients(["tip.x", "tip.y"]).inverse()
    load, damping = np.zeros(2), np.zeros((2, 2))
    for D, P in (("D_tran", "P_tran"), ("D_rot", "P_rot")):
        d = kic.Dynamics(inside.coordinates, getattr(inside, D), getattr(inside, P), load, damping=damping)
        moved = d.transfer(back)
        assert relative_error(getattr(outside, D), moved.I) < 1e-12
        assert relative_error(getattr(outside, P), moved.P) < 1e-12


def test_parts_of_P_are_christoffel_symbols() -> None:
    """Lagrange's equations hold for each kinetic energy alone (14, 23)."""
    m, q = kic.load("lee-puma"), np.array([0.35, -0.6, 1.1, 0.8, -0.9, 0.25])
    here = split(m.at(q))
    for D, P in (("D_tran", here.P_tran), ("D_rot", here.P_rot)):
        step = [getattr(split(m.at(q + 1j * STEP * e)), D).imag / STEP for e in np.eye(6)]
        slope = np.moveaxis(np.array(step), 0, -1)  # [l, m, n] = ∂D_lm/∂q_n
        lmn = np.swapaxes(P, -1, -2)
        assert relative_error(lmn + np.swapaxes(lmn, 0, 1), slope) < 1e-12
        assert relative_error(P, np.swapaxes(P, -1, -2)) == 0


def test_damping_is_never_dropped() -> None:
    m = random_tree(np.random.default_rng(11), ["R", "R", "P"], loads=True)
    c = m.at([0.2, -0.3, 0.4])
    d, arm = c.dynamics(), split(c)
    assert np.abs(d.damping).max() > 0
    assert relative_error(arm.G, -d.load) == 0
    bare = arm
    for part in PARTS:
        bare = bare.without(part)
    qd = np.array([1.0, 2.0, -1.0])
    assert relative_error(bare.dynamics().inverse_dynamics(qd, qd), d.damping @ qd) < 1e-14


def test_masked_members_are_nan() -> None:
    c = kic.load("lee-puma").at([[0.1] * 6, [math.nan] * 6], failures="mask")
    arm = split(c)
    assert np.isfinite(arm.D_tran[0]).all()
    for array in (arm.D_tran, arm.D_rot, arm.G, arm.dynamics().inverse_dynamics(np.ones(6), np.ones(6))):
        assert np.isnan(array[1]).all()
    assert np.isnan(arm.without("D_rot").effort_deviation(np.ones(6), np.ones(6)).relative).all()


@pytest.fixture(scope="module")
def motion() -> tuple[SplitDynamics, np.ndarray, np.ndarray]:
    """Return the PUMA along a smooth motion of all joints."""
    t = np.linspace(0.0, 2.0, 41)[:, None]
    k = np.arange(1, 7)
    q, qd, qdd = np.sin(k * t / 2 + k), k / 2 * np.cos(k * t / 2 + k), -((k / 2) ** 2) * np.sin(k * t / 2 + k)
    return split(kic.load("lee-puma").at(q)), qd, qdd


def test_full_model_has_no_effort_error(motion) -> None:
    arm, qd, qdd = motion
    deviation = arm.effort_deviation(qd, qdd)
    assert not deviation.error.any()
    assert not deviation.relative.any()
    assert deviation.dropped == ()


def test_effort_error_is_the_effort_of_the_dropped_part(motion) -> None:
    arm, qd, qdd = motion
    efforts = {part: np.einsum("tij,tj->ti", getattr(arm, part), qdd) for part in ("D_tran", "D_rot")}
    efforts |= {"H_tran": arm.H_tran(qd), "H_rot": arm.H_rot(qd), "G": arm.G}
    effort = arm.dynamics().inverse_dynamics(qd, qdd)
    assert relative_error(sum(efforts.values()), effort) < 1e-12
    for part in PARTS:
        # deviations are those from the full model, whatever was dropped before
        for simple in (arm.without(part), arm.without("G").without(part)):
            dropped = efforts[part] + (efforts["G"] if simple.dropped == ("G", part) and part != "G" else 0)
            deviation = simple.effort_deviation(qd, qdd)
            assert np.abs(deviation.error + dropped).max() < 1e-12 * np.abs(effort).max()
            assert relative_error(deviation.effort, effort) == 0
            share = np.abs(dropped).max(axis=0) / np.abs(effort).max(axis=0)
            assert relative_error(deviation.relative, share) < 1e-11
        assert arm.without(part).dropped == (part,)


@pytest.mark.parametrize("name", ["lee-puma", "five-bar", "gough-stewart"])
@pytest.mark.parametrize("n_major", [1, 3])
def test_simplified_model_of_the_source(name: str, n_major: int) -> None:
    """The entries of the parts are dropped for arms, and for loops in the coordinates that remain."""
    m, rng = kic.load(name), np.random.default_rng(2)
    arm = split(m.at(rng.normal(size=(4, 6))) if name == "lee-puma" else m.at())
    M = len(arm.coordinates)
    k = min(n_major, M - 1)
    qd, qdd = rng.normal(size=(2, *arm.batch, M))
    simple = arm.simplified(k)
    expected = arm.D_tran + arm.D_rot
    expected[..., :k, :k], expected[..., k:, k:] = arm.D_tran[..., :k, :k], arm.D_rot[..., k:, k:]
    assert relative_error(simple.dynamics().I, expected) == 0
    assert relative_error(simple.dynamics().P, arm.dynamics().P) == 0
    dropped = np.einsum("...ij,...j->...i", expected - arm.D_tran - arm.D_rot, qdd)
    effort = arm.dynamics().inverse_dynamics(qd, qdd)
    assert np.abs(simple.effort_deviation(qd, qdd).error - dropped).max() < 1e-12 * np.abs(effort).max()
    if name == "lee-puma" and k == 3:
        d = simple.dynamics()
        assert relative_error(d.forward_dynamics(qd, d.inverse_dynamics(qd, qdd)), qdd) < solved(d.I)


def test_effort_deviation_of_one_configuration() -> None:
    zero = np.zeros((2, 1))
    assert EffortDeviation(("A",), (), zero, zero).relative.tolist() == [0.0]
    assert EffortDeviation(("A",), ("G",), zero, zero + 1).relative.tolist() == [math.inf]
    arm = split(kic.load("lee-puma").at([0.3] * 6))
    deviation = arm.without("G").effort_deviation(np.zeros(6), np.zeros(6))
    assert "errors over 1 configuration\n" in deviation.summary().text()
    assert relative_error(deviation.relative[1:], np.ones(5)) < 1e-12
    assert deviation.relative[0] == 0
    assert arm.without("H_tran").effort_deviation(np.ones((5, 6)), np.zeros(6)).error.shape == (5, 6)


def test_summaries(motion) -> None:
    arm, qd, qdd = motion
    text = arm.simplified().summary().text()
    assert "dropped: D_rot among joint1" in text
    assert "D_tran (translational mass matrix)" in text
    assert "batch (41,)" in text
    assert "empty batch" in str(split(kic.load("lee-puma").at(np.zeros((0, 6)))).summary())
    deviation = arm.without("H_rot").effort_deviation(qd, qdd)
    lines = deviation.summary().text().splitlines()
    assert lines[0] == "dropped: H_rot"
    error, effort = (np.abs(a[:, 5]) for a in (deviation.error, deviation.effort))
    row = [error.max(), np.sqrt((error**2).mean()), effort.max(), deviation.relative[5]]
    assert [float(x) for x in lines[-1].split()[1:]] == pytest.approx(row, rel=1e-4)
    assert "dropped: nothing" in arm.effort_deviation(qd, qdd).summary().text()
    for shown in (arm, deviation):
        assert "<table>" in shown._repr_html_()


@pytest.mark.parametrize("method", TABLE_1)
@pytest.mark.parametrize("n", range(1, 8))
def test_table_1(method: str, n: int) -> None:
    printed = {name.lower(): of for name, of in DATA["operation_counts"].items()}
    expected = printed[method.lower()]["values"][str(n)]
    assert table_1(method, n) == (expected["mult"], expected["add"])


def test_counting_scalar_counts_an_expression() -> None:
    counts = Counter()
    x, y = CountingScalar(2.0, counts), CountingScalar(3.0, counts)
    z = -(x * y + 4 * x - 1) / (2 / y - x.cos() * y.sin()) + (x + 7).sqrt()
    z -= 1
    value = -(2.0 * 3 + 4 * 2 - 1) / (2 / 3 - math.cos(2) * math.sin(3)) + 3 - 1
    assert float(z) == pytest.approx(value, rel=1e-14)
    expected = OperationCount(3, 3, 3, 2, 1, cosines=1, sines=1, roots=1)
    assert OperationCount(**counts) == expected
    assert (expected.products, expected.sums) == (5, 6)
    # comparisons are not counted
    assert x < y <= 3 != x >= 2
    assert y > 0
    assert abs(-1 * x) == 2
    assert counts["multiplications"] == 4


def hand_count(n: int) -> tuple[int, int]:
    """Return products and sums of G and H of a point at the end of n revolute joints.

    Frames (2-45 to 2-50) need 12 products and 7 sums per joint, and 36 and 27 per frame on another frame. The
    point needs 9 and 9. G (Table 2-3) needs a difference, a cross product and a sign per joint. H (Table 2-4)
    needs a sign per joint and a cross product per pair of joints.
    """
    pairs = n * (n + 1) // 2
    products = 12 * n + 36 * (n - 1) + 9 + (6 + 3) * n + 3 * n + 6 * pairs
    sums = 7 * n + 27 * (n - 1) + 9 + (3 + 3 + 3) * n + (3 + 3) * pairs
    return products, sums


@pytest.mark.parametrize("n", range(1, 8))
def test_counts_of_G_and_H_agree_with_a_count_by_hand(n: int) -> None:
    count = count_operations(generic_revolute_arm(n), of="hand")
    assert (count.products, count.sums) == hand_count(n)
    assert (count.cosines, count.sines, count.roots, count.divisions) == (n, n, 0, 0)


def test_count_of_the_inertia_is_a_cubic_polynomial() -> None:
    """Two scalar products of screws are needed for each i <= j <= k."""
    counts = [count_operations(generic_revolute_arm(n), dynamics="inertia").products for n in range(1, 8)]
    assert np.diff(counts, n=3).tolist() == [12] * 4


def test_counts_are_independent_of_configuration_and_geometry() -> None:
    m = kic.load("lee-puma")
    for query in ({"of": "hand", "order": 3}, {"dynamics": "inertia"}, {"dynamics": "inverse_dynamics"}):
        expected = count_operations(m, **query)
        assert expected == count_operations(generic_revolute_arm(6), **query)
        moved = replace(m, joints=tuple(replace(j, value=0.3) for j in m.joints))
        assert count_operations(moved, **query) == expected


def test_counts_are_additive() -> None:
    m = kic.load("lee-puma")
    rows, inertia = count_operations(m, of="hand"), count_operations(m, dynamics="inertia")
    whole = count_operations(m, of="hand", dynamics="inertia")
    sums = np.add(astuple(rows), astuple(inertia))
    assert tuple(sums) == astuple(whole)  # separate kernels
    full, effort = count_operations(m, dynamics=True), count_operations(m, dynamics="inverse_dynamics")
    # products: M² for I* q̈, M³ and M² for q̇ᵀ P* q̇, and M² for B q̇
    assert effort.products - full.products == 3 * 6**2 + 6**3
    # "inertia" excludes the loads
    assert full.products > inertia.products


QUERIES = [
    ("lee-puma", {"of": ["hand", "link6"], "order": 3, "dynamics": "inverse_dynamics"}),
    ("lee-puma", {"of": "hand", "order": 1, "dynamics": True}),
    ("panda", {"dynamics": "inertia"}),
    ("five-bar", {"of": ["coupler", "tip"], "order": 3, "dynamics": "inverse_dynamics"}),
    ("gough-stewart", {"of": "eye", "dynamics": True}),
    ("geared-five-bar", {"dynamics": "inverse_dynamics"}),
    ("horn-three-link", {"of": "reach", "dynamics": True, "wrt": ["tip.x", "tip.y", "link3.angle"]}),
]  # fmt: skip


@pytest.mark.slow_for("gough-stewart")
@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_counted_run_gives_the_same_values(name: str, query: dict) -> None:
    m = kic.load(name)
    c = m.at()
    if query.get("of") == ["coupler", "tip"]:
        query = query | {"of": [m.bodies[0].name, m.points[0].name]}
    given = {"of": (), "order": 2, "wrt": None} | query
    count, counted = run_counted(m, **given)
    inverse_dynamics = query["dynamics"] == "inverse_dynamics"
    options = {key: x for key, x in query.items() if key != "dynamics"}
    asked = "_and_".join(["coefficients"] * ("of" in options) + ["dynamics"] * bool(query["dynamics"]))
    if query["dynamics"]:
        options["loads"] = query["dynamics"] != "inertia"
    result = getattr(m.prepare, asked)(**options)(c.state)
    compiled = [a[0] for a in (result._rows, result._model) if a.size]
    assert len(counted) == len(compiled) + inverse_dynamics
    for mine, expected in zip(counted, compiled, strict=False):
        assert relative_error(mine, expected) < 1e-12
    if inverse_dynamics:
        ones = np.ones(len(counted[-1]))
        effort = c.dynamics(wrt=query.get("wrt")).inverse_dynamics(ones, ones)
        assert relative_error(counted[-1], effort) < 1e-12
    assert count == count_operations(m, **query)
    assert count.multiplications > 0


def test_counts_grow_with_the_order() -> None:
    m = kic.load("lee-puma")
    counts = [count_operations(m, of="hand", order=k).products for k in (1, 2, 3)]
    assert all(a < b for a, b in pairwise(counts))
    closed = kic.load("five-bar")
    assert count_operations(closed, dynamics="inertia").products > 0
    assert count_operations(kic.load("gough-stewart"), of="eye").roots >= 1  # normalisation of a quaternion


def test_count_with_dependent_closure_equations_raises() -> None:
    """The closure equations of a parallelogram depend on each other only where it is flat."""
    joints = zip("ABCD", ("ground", "a", "b", "ground"), ("a", "b", "c", "c"), (0, 1, 3, 2), strict=True)
    flat = kic.Mechanism(
        "flat",
        bodies=[kic.Body(name) for name in "abc"],
        joints=[kic.Joint(n, "revolute", (p, q), at=(x, 0, 0), axis=(0, 0, 1)) for n, p, q, x in joints],
        points=[kic.Point("tip", "b", at=(2, 0, 0))],
        coordinates=["A"],
    )
    assert flat.assembly_modes([0.5]).counts.size
    refuses(lambda: count_operations(flat, of="tip"), kic.SingularError)
