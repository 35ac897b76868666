"""Lee, Lee and Nigam 1982: the split of the dynamics, what dropping parts costs, counted operations."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from sampling import STEP, random_tree, solved

import kic
from kic.classics import (
    OperationCount,
    OperationTable,
    SplitDynamics,
    Survey,
    ThreeLinkPuma,
    count_operations,
    split,
    table_1,
)
from kic.classics.counting import Counted, run
from kic.classics.dropping import DroppingCost
from kic.classics.operation_counts import METHODS, revolute_arm
from kic.configuration import Configuration
from kic.inertias import as_matrix

DATA = json.loads((Path(__file__).parent / "data" / "lee_puma.json").read_text(encoding="utf-8"))
CASES = [(name, k) for name, system in DATA["systems"].items() for k in range(len(system["cases"]))]
PARTS = ("D_tran", "D_rot", "H_tran", "H_rot", "G")


def off(a, b) -> float:
    """Largest difference beside the largest entry."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    top = np.abs(b).max(initial=0.0)
    return float(np.abs(a - b).max(initial=0.0) / (top if top else 1.0))


def case(name: str, k: int) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
    system = DATA["systems"][name]
    given = system["cases"][k]
    q, qd, qdd = (np.array(given[key]) for key in ("q", "qd", "qdd"))
    return system["parameters"], q, qd, qdd, given["outputs"]


def drawn(parameters: dict) -> kic.Mechanism:
    """The arm of a case from its parameters."""
    rows = [
        kic.DHRow(f"joint{k}", f"link{k}", a=row["a"], alpha=math.radians(row["alpha_deg"]), s=row["d"])
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
    return kic.from_dh("puma", rows, "standard", bodies, ends, gravity=parameters["gravity"])


def closed_form(parameters: dict, **other) -> ThreeLinkPuma:
    links, dh = parameters["links"], parameters["dh"]
    numbers = {"a2": dh[1]["a"], "a3": dh[2]["a"], "d2": dh[1]["d"], "g": -parameters["gravity"][2]}
    return ThreeLinkPuma(
        [link["m"] for link in links],
        [link["com_in_frame_i"] for link in links],
        [link["inertia_about_com_diag_in_frame_i"] for link in links],
        inertia_exception="synthetic",
        **(numbers | other),
    )


# ----- the split, against the reference numbers


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k"), CASES)
def test_reference_numbers(name: str, k: int) -> None:
    parameters, q, qd, qdd, expected = case(name, k)
    m = drawn(parameters)
    c = m.at(q)
    for n, p in enumerate(expected["p"], 1):
        assert off(c.value(f"end{n}"), p) < 1e-12
    arm = split(c)
    for part in ("D_tran", "D_rot"):
        assert off(getattr(arm, part), expected[part]) < 1e-12
    assert off(arm.D_tran + arm.D_rot, expected["D"]) < 1e-12
    assert off(arm.H_tran(qd), expected["H_tran"]) < 1e-12
    assert off(arm.H_rot(qd), expected["H_rot"]) < 1e-12
    assert off(arm.H_tran(qd) + arm.H_rot(qd), expected["H"]) < 1e-12
    assert off(arm.G, expected["gravity"]) < 1e-12
    assert off(arm.effort(qd, qdd), expected["tau"]) < 1e-12
    moving = arm.without("D_rot").without("H_rot")
    assert off(moving.effort(qd, qdd), expected["tau_translational_only_model"]) < 1e-12
    assert off(c.dynamics().kinetic_energy(qd), expected["kinetic_energy"]) < 1e-12


@pytest.mark.parametrize("k", [0, 1])
def test_lagrange_euler_coefficients(k: int) -> None:
    """D_ikm of (4), by the 4×4 matrices, is what a pair of rates takes."""
    parameters, q, _, _, expected = case("C3_puma", k)
    arm = split(drawn(parameters).at(q))
    assert off(arm.P_tran + arm.P_rot, expected["LE_D_ikm"]) < 1e-12


@pytest.mark.parametrize("k", [0, 1])
def test_the_shipped_model_is_that_of_the_reference(k: int) -> None:
    parameters, q, qd, qdd, expected = case("C6_puma", k)
    m = kic.load("lee-puma")
    c = m.at(q)
    assert off(c.dynamics().effort(qd, qdd), expected["tau"]) < 1e-12
    assert off(c.value("hand"), expected["p"][-1]) < 1e-12
    assert off(c.value("elbow"), expected["p"][1]) < 1e-12
    # the wrist: where axes 4, 5 and 6 meet
    assert off(c.value("wrist"), expected["p"][3]) < 1e-12
    assert off(c.value("wrist"), expected["p"][4]) < 1e-12
    assert m.gravity == tuple(parameters["gravity"])
    assert "SYNTHETIC" in m.about


# ----- the closed form of the first three links


@pytest.mark.parametrize("k", [0, 1])
def test_closed_form_of_three_links(k: int) -> None:
    parameters, q, qd, _, expected = case("C3_puma", k)
    arm = closed_form(parameters)
    for part in ("D_tran", "D_rot"):
        assert off(getattr(arm, part)(q), expected[part]) < 1e-12
    assert off(arm.H_tran(q, qd), expected["H_tran"]) < 1e-12
    assert off(arm.H_rot(q, qd), expected["H_rot"]) < 1e-12
    assert off(arm.G(q), expected["gravity"]) < 1e-12


def test_errata_of_the_closed_form() -> None:
    """C1: the printed sign of G. C2: d₂ left out, as on p 19, is another arm. C3: the factor 2 in H₁."""
    parameters, q, qd, _, expected = case("C3_puma", 0)
    printed = expected["literal_wrong"]
    right, short = closed_form(parameters), closed_form(parameters, d2=0.0)
    assert off(-right.G(q), printed["gravity_with_printed_sign_and_g_positive"]) < 1e-12
    assert off(short.D_tran(q) + short.D_rot(q), printed["D_if_d2_omitted"]) < 1e-12
    assert off(short.H_tran(q, qd) + short.H_rot(q, qd), printed["H_if_d2_omitted"]) < 1e-12
    differs = np.abs(right.D_tran(q) - short.D_tran(q)) > 1e-3
    assert differs.tolist() == [[True, True, True], [True, False, False], [True, False, False]]
    # the term of link 3 with q̇1 q̇2, from the document's own vectors
    heavy = closed_form(parameters | {"links": [link | {"m": 0.0} for link in parameters["links"][:2]]
                                      + parameters["links"][2:]})  # fmt: skip
    w = np.eye(3)
    cross = [heavy.H_tran(q, x)[0] for x in (w[0] + w[1], w[0], w[1])]
    (_, p2, _), (_, _, c3) = expected["p"], expected["com_c"]
    r3, m3 = np.add(p2, c3), parameters["links"][2]["m"]
    along = math.sin(q[0]) * r3[1] + math.cos(q[0]) * r3[0]
    assert abs(cross[0] - cross[1] - cross[2] - 2 * m3 * (p2[2] + c3[2]) * along) < 1e-12


@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_closed_form_is_the_drawn_arm(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    for trial in range(4):
        # moments of real bodies: sums of two squares
        squares = rng.uniform(0.1, 1.0, (3, 3))
        moments = squares.sum(-1, keepdims=True) - squares
        arm = ThreeLinkPuma(
            rng.uniform(1, 9, 3), rng.normal(size=(3, 3)), moments, *rng.normal(size=3), g=rng.normal()
        )
        q, qd = rng.normal(size=(2, *batch, 3)) * (trial > 0)  # also as drawn, at rest
        there = split(arm.mechanism().at(q))
        assert off(arm.D_tran(q), there.D_tran) < 1e-12
        assert off(arm.D_rot(q), there.D_rot) < 1e-12
        assert off(arm.H_tran(q, qd), there.H_tran(qd)) < 1e-12
        assert off(arm.H_rot(q, qd), there.H_rot(qd)) < 1e-12
        assert off(arm.G(q), there.G) < 1e-12


def test_closed_form_broadcasts_and_steps() -> None:
    """One posture with many rates; and H_tran from the complex step of D_tran."""
    parameters, q, _, _, _ = case("C3_puma", 0)
    arm = closed_form(parameters)
    rates = np.random.default_rng(0).normal(size=(4, 3))
    assert arm.H_tran(q, rates).shape == (4, 3)
    for D, H in ((arm.D_tran, arm.H_tran), (arm.D_rot, arm.H_rot)):
        slope = np.stack([D(q + 1j * STEP * e).imag / STEP for e in np.eye(3)])  # [n, l, m]
        for w in rates:
            expected = np.einsum("nlm,n,m->l", slope, w, w) - np.einsum("nlm,l,m->n", slope, w, w) / 2
            assert off(H(q, w), expected) < 1e-12


def test_closed_form_refuses() -> None:
    good = [1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3
    with pytest.raises(
        kic.ModelError, match=r"expected `masses` to be finite numbers of shape \(3,\)"
    ) as told:
        ThreeLinkPuma([1, 2], *good[1:])
    assert told.value.key == "masses"
    with pytest.raises(kic.ModelError, match=r"expected `moments` to be finite numbers of shape \(3, 3\)"):
        ThreeLinkPuma(*good[:2], [0.1, 0.1, math.inf])
    with pytest.raises(
        kic.ModelError, match="ThreeLinkPuma: expected `d2` to be a finite number, got 'long'"
    ):
        ThreeLinkPuma(*good, d2="long")
    with pytest.raises(kic.ModelError, match=r"'link2': expected `mass` to be a finite number of at least 0"):
        ThreeLinkPuma([1, -1, 1], *good[1:])
    arm = ThreeLinkPuma(*good)
    with pytest.raises(kic.InputError, match=r"Expected `q` to have shape \(\.\.\., 3\)"):
        arm.G([0.0, 1.0])
    with pytest.raises(kic.InputError, match="Batch shapes do not broadcast"):
        arm.H_rot(np.zeros((2, 3)), np.zeros((5, 3)))
    with pytest.raises(kic.ModelError, match="no body has the principal moments"):
        ThreeLinkPuma(*good[:2], [[0.1, 0.1, 0.9]] * 3)


def test_closed_form_of_symbols() -> None:
    """Every part, with letters for the angles and rates, is the formula itself."""
    rng = np.random.default_rng(6)
    arm = ThreeLinkPuma(rng.uniform(1, 2, 3), rng.normal(size=(3, 3)), rng.uniform(0.5, 0.9, size=(3, 3)))
    letters = np.array(sp.symbols("q1:4 w1:4"))
    numbers = rng.normal(size=6)
    values = dict(zip(letters, numbers, strict=True))
    for part, needs in (("D_tran", 3), ("D_rot", 3), ("G", 3), ("H_tran", 6), ("H_rot", 6)):
        ask = getattr(arm, part)
        found = ask(*letters[:needs].reshape(-1, 3))
        wanted = ask(*numbers[:needs].reshape(-1, 3))
        at = [float(sp.sympify(x).subs(values)) for x in found.ravel()]
        np.testing.assert_allclose(at, wanted.ravel(), rtol=1e-12, atol=1e-14)


# ----- the split, against the document's own sums and in general


def document(m: kic.Mechanism, q: np.ndarray, qd: np.ndarray) -> dict[str, np.ndarray]:
    """Eqs 30 to 33 for a serial arm of revolute joints, sum by sum, with the limits of errata C5."""
    n, c = len(q), m.at(q)
    turned = [c.displacement(b.name) for b in m.bodies]
    z = [T[:3, :3] @ j.axis / np.linalg.norm(j.axis) for T, j in zip(turned, m.joints, strict=True)]
    # an axis is that of the second body about the first
    z = [v if j.bodies[1] == b.name else -v for v, j, b in zip(z, m.joints, m.bodies, strict=True)]
    p = [T[:3, :3] @ j.at + T[:3, 3] for T, j in zip(turned, m.joints, strict=True)]  # p_(s-1)
    r = [T[:3, :3] @ b.com + T[:3, 3] for T, b in zip(turned, m.bodies, strict=True)]
    inertia = [T[:3, :3] @ as_matrix(b.inertia) @ T[:3, :3].T for T, b in zip(turned, m.bodies, strict=True)]
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
        expected, arm = document(m, q, qd), split(m.at(q))
        assert off(arm.D_tran, expected["D_tran"]) < 1e-12
        assert off(arm.D_rot, expected["D_rot"]) < 1e-12
        # one joint alone has none: round-off of numbers of the size of its inertia
        size = (np.abs(arm.D_tran).max() + np.abs(arm.D_rot).max()) * (1 + qd @ qd)
        assert np.abs(arm.H_tran(qd) - expected["H_tran"]).max() < 1e-13 * n * size
        assert np.abs(arm.H_rot(qd) - expected["H_rot"]).max() < 1e-13 * n * size
        assert off(arm.G, expected["G"]) < 1e-12
        assert off(arm.effort(qd, qdd), m.at(q).dynamics().effort(qd, qdd)) < 1e-12


HAND = ["hand.x", "hand.y", "hand.z", "link6.wx", "link6.wy", "link6.wz"]
GENERAL = {
    "branched": (lambda: random_tree(np.random.default_rng(3), ["R", "P", "R", "universal"], True), None),
    "balls": (lambda: random_tree(np.random.default_rng(4), ["R", "spherical", "P"], True), None),
    "loop": (lambda: kic.load("five-bar"), None),
    "tip": (lambda: kic.load("five-bar"), ["tip.x", "tip.y"]),
    "hand": (lambda: kic.load("lee-puma"), HAND),
    "platform": (lambda: kic.load("gough-stewart"), None),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_the_parts_together_are_the_dynamics(name: str, batch: tuple[int, ...]) -> None:
    made, wrt = GENERAL[name]
    m, rng = made(), np.random.default_rng(8)
    drawing = m.at()
    if name == "hand":
        drawing = m.at([0.35, -0.6, 1.1, 0.8, -0.9, 0.25])
    start = drawing.phi
    if m.cuts:
        start = np.concatenate([drawing.value(x).reshape(-1) for x in drawing.coordinates])
    c = m.at(start + 0.01 * rng.normal(size=(*batch, len(start))))
    M = len(drawing.dynamics(wrt).coordinates)
    qd, qdd = rng.normal(size=(2, *batch, M))
    arm, whole = split(c, wrt), c.dynamics(wrt)
    assert arm.batch == batch
    assert arm.coordinates == whole.coordinates
    assert off(arm.D_tran + arm.D_rot, whole.I) < 1e-12
    assert off(arm.effort(qd, qdd), whole.effort(qd, qdd)) < 1e-12
    assert off(arm.acceleration(qd, arm.effort(qd, qdd)), qdd) < solved(whole.I)
    if whole.holonomic:
        assert off(arm.P_tran + arm.P_rot, whole.P) < 1e-12
    at_rest = arm.effort(0 * qd, 0 * qd)
    assert off(at_rest, arm.G) == 0


@pytest.mark.slow
def test_each_part_has_its_own_christoffel_symbols() -> None:
    """Lagrange's equations hold for each kinetic energy alone (eqs 14 and 23)."""
    m, q = kic.load("lee-puma"), np.array([0.35, -0.6, 1.1, 0.8, -0.9, 0.25])
    here = split(m.at(q))
    for D, P in (("D_tran", here.P_tran), ("D_rot", here.P_rot)):
        step = [getattr(split(m.at(q + 1j * STEP * e)), D).imag / STEP for e in np.eye(6)]
        slope = np.moveaxis(np.array(step), 0, -1)  # [l, m, n] = ∂D_lm/∂q_n
        lmn = np.swapaxes(P, -1, -2)
        assert off(lmn + np.swapaxes(lmn, 0, 1), slope) < 1e-12
        assert off(P, np.swapaxes(P, -1, -2)) == 0


def test_dampers_and_springs_are_kept() -> None:
    m = random_tree(np.random.default_rng(11), ["R", "R", "P"], loads=True)
    c = m.at([0.2, -0.3, 0.4])
    d, arm = c.dynamics(), split(c)
    assert np.abs(d.damping).max() > 0
    assert off(arm.G, -d.load) == 0
    bare = arm
    for part in PARTS:
        bare = bare.without(part)
    qd = np.array([1.0, 2.0, -1.0])
    assert off(bare.effort(qd, qd), d.damping @ qd) < 1e-14


def test_masked_members_are_not_numbers() -> None:
    c = kic.load("lee-puma").at([[0.1] * 6, [math.nan] * 6], failures="mask")
    arm = split(c)
    assert np.isfinite(arm.D_tran[0]).all()
    for array in (arm.D_tran, arm.D_rot, arm.G, arm.effort(np.ones(6), np.ones(6))):
        assert np.isnan(array[1]).all()
    assert np.isnan(arm.without("D_rot").cost(np.ones(6), np.ones(6)).largest).all()


# ----- dropping parts


@pytest.fixture(scope="module")
def motion() -> tuple[SplitDynamics, np.ndarray, np.ndarray]:
    """The PUMA along a smooth motion of all its joints."""
    t = np.linspace(0.0, 2.0, 41)[:, None]
    k = np.arange(1, 7)
    q, qd, qdd = np.sin(k * t / 2 + k), k / 2 * np.cos(k * t / 2 + k), -((k / 2) ** 2) * np.sin(k * t / 2 + k)
    return split(kic.load("lee-puma").at(q)), qd, qdd


def test_dropping_nothing_costs_nothing(motion) -> None:
    arm, qd, qdd = motion
    cost = arm.cost(qd, qdd)
    assert not cost.error.any()
    assert not cost.share.any()
    assert cost.dropped == ()
    assert arm.whole is arm
    same = arm.without("D_rot", at=[]).cost(qd, qdd)
    assert not same.error.any()


def test_cost_is_the_difference_of_two_routes(motion) -> None:
    arm, qd, qdd = motion
    routes = {
        "D_tran": np.einsum("tij,tj->ti", arm.D_tran, qdd),
        "D_rot": np.einsum("tij,tj->ti", arm.D_rot, qdd),
        "H_tran": arm.H_tran(qd),
        "H_rot": arm.H_rot(qd),
        "G": arm.G,
    }
    survey = arm.survey(qd, qdd)
    assert [cost.dropped for cost in survey.costs] == [(part,) for part in PARTS]
    effort = arm.effort(qd, qdd)
    assert off(sum(routes.values()), effort) < 1e-12
    for cost, part in zip(survey.costs, PARTS, strict=True):
        lost = routes[part]
        assert np.abs(cost.error + lost).max() < 1e-12 * np.abs(effort).max()
        assert off(cost.largest, np.abs(lost).max(axis=0)) < 1e-12
        assert off(cost.rms, np.sqrt((lost**2).mean(axis=0))) < 1e-12
        assert off(cost.peak, np.abs(effort).max(axis=0)) < 1e-12
        assert off(cost.share, np.abs(lost).max(axis=0) / np.abs(effort).max(axis=0)) < 1e-11
    assert survey.share.shape == (5, 6)
    # asked of a simplified model, it is still that of the whole
    assert off(arm.without("G").survey(qd, qdd).share, survey.share) == 0


def test_the_document_s_simplified_model(motion) -> None:
    arm, qd, qdd = motion
    blocks = {"both": (1, 1), "tran": (1, 0), "rot": (0, 1), "none": (0, 0)}
    for mixed, (tran, rot) in blocks.items():
        simple = arm.simplified(mixed=mixed)
        expected = tran * arm.D_tran + rot * arm.D_rot
        expected[:, :3, :3], expected[:, 3:, 3:] = arm.D_tran[:, :3, :3], arm.D_rot[:, 3:, 3:]
        assert off(simple.D_tran + simple.D_rot, expected) == 0
        assert off(simple.P_tran + simple.P_rot, arm.P_tran + arm.P_rot) == 0
        assert simple.whole is arm
        lost = np.einsum("tij,tj->ti", expected - arm.D_tran - arm.D_rot, qdd)
        assert np.abs(simple.cost(qd, qdd).error - lost).max() < 1e-12 * np.abs(arm.effort(qd, qdd)).max()
    # the same by names
    first, last = arm.coordinates[:3], arm.coordinates[3:]
    named = arm.without("D_rot", at=first, by=first).without("D_tran", at=last, by=last)
    simple = arm.simplified()
    for part in ("D_tran", "D_rot"):
        assert off(getattr(named, part), getattr(simple, part)) == 0
    assert "D_rot and D_tran between these" in arm.simplified(mixed="none").dropped[0]
    # and it keeps the heavy joints: what the first three lose is small beside their peaks
    assert simple.cost(qd, qdd).share.shape == (6,)


def test_parts_by_joints(motion) -> None:
    arm, qd, _ = motion
    n = dict(zip(arm.coordinates, range(6), strict=True))
    lost = arm.D_tran - arm.without("D_tran", at="joint2", by=["joint3", "joint4"]).D_tran
    kept = np.zeros((6, 6), bool)
    for a, b in (("joint2", "joint3"), ("joint2", "joint4")):
        kept[n[a], n[b]] = kept[n[b], n[a]] = True
    assert off(lost, np.where(kept, arm.D_tran, 0)) == 0
    # terms with a rate vanish where that joint stands still
    still = qd.copy()
    still[:, n["joint2"]] = 0
    assert off(arm.without("H_tran", by="joint2").H_tran(qd), arm.H_tran(still)) < 1e-12
    part = arm.without("H_rot", at=["joint1", "joint5"], by="joint2")
    both = np.where(np.isin(np.arange(6), [0, 4]), arm.H_rot(still), arm.H_rot(qd))
    assert off(part.H_rot(qd), both) < 1e-12
    # one product of rates alone
    pair = arm.without("H_tran", by=[("joint1", "joint2")])
    product = 2 * arm.P_tran[:, :, 0, 1] * (qd[:, 0] * qd[:, 1])[:, None]
    assert off(arm.H_tran(qd) - pair.H_tran(qd), product) < 1e-11
    assert pair.dropped == ("H_tran by joint1·joint2",)
    square = arm.without("H_tran", at="joint3", by=[("joint1", "joint1")])
    assert off((arm.H_tran(qd) - square.H_tran(qd))[:, 2], arm.P_tran[:, 2, 0, 0] * qd[:, 0] ** 2) < 1e-11
    assert off(arm.without("G", at="joint2").G, arm.G * (np.arange(6) != 1)) == 0


def test_acceleration_of_a_simplified_model(motion) -> None:
    arm, qd, qdd = motion
    simple = arm.simplified().without("H_rot")
    assert off(simple.acceleration(qd, simple.effort(qd, qdd)), qdd) < solved(simple.D_tran + simple.D_rot)
    with pytest.raises(
        kic.SingularError, match=r"left after dropping D_tran; D_rot is not positive definite"
    ):
        arm.without("D_tran").without("D_rot").acceleration(qd, qdd)
    massless = kic.Mechanism(
        "massless",
        bodies=[
            kic.Body("a", mass=0.0, inertia=(0, 0, 0)),
            kic.Body("b", mass=1.0, com=(2, 0, 0), inertia=(0, 0, 0)),
        ],
        joints=[
            kic.Joint("A", "revolute", ("ground", "a"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("B", "revolute", ("a", "b"), at=(2, 0, 0), axis=(0, 0, 1)),
        ],
    )  # fmt: skip
    with pytest.raises(kic.SingularError, match="moves no mass"):
        split(massless.at([0.0, 0.0])).acceleration([0, 0], [0, 0])


def test_cost_of_one_posture_and_without_effort() -> None:
    still = np.zeros((2, 1))
    assert DroppingCost("A", [], still, still).share.tolist() == [0.0]
    assert DroppingCost("A", ["G"], still, still + 1).share.tolist() == [math.inf]
    arm = split(kic.load("lee-puma").at([0.3] * 6))
    cost = arm.without("G").cost(np.zeros(6), np.zeros(6))
    assert cost.postures == 1
    assert "errors over 1 posture\n" in repr(cost)
    assert cost.largest.shape == (6,)
    assert off(cost.share[1:], np.ones(5)) < 1e-12
    assert cost.share[0] == 0
    one_to_many = arm.without("H_tran").cost(np.ones((5, 6)), np.zeros(6))
    assert one_to_many.error.shape == (5, 6)
    assert DroppingCost(["A"], "H_rot", [[4.0], [2.0]], [[1.0], [0.0]]).share.tolist() == [0.25]
    with pytest.raises(kic.InputError, match=r"Expected `error` to have shape \(\.\.\., 1\), got \(2, 2\)"):
        DroppingCost(["A"], [], still, np.zeros((2, 2)))
    with pytest.raises(kic.InputError, match=r"do not broadcast: `effort` \(2,\), `error` \(3,\)"):
        DroppingCost(["A"], [], still, np.zeros((3, 1)))
    letters = split(kic.load("horn-two-link").at(sp.symbols("q1:3")))
    with pytest.raises(kic.InputError, match="Costs are compared by size, which symbols have not"):
        letters.without("G").cost([0.0, 0.0], [0.0, 0.0])
    with pytest.raises(kic.InputError, match="A survey needs costs to put side by side, got none"):
        Survey([])


def test_split_and_costs_can_be_printed(motion) -> None:
    arm, qd, qdd = motion
    text = repr(arm.simplified())
    assert "dropped: D_rot among joint1" in text
    assert "D_tran (inertia, by moving)" in text
    assert "batch (41,)" in text
    assert "empty batch" in repr(split(kic.load("lee-puma").at(np.zeros((0, 6)))))
    cost = arm.without("H_rot").cost(qd, qdd)
    lines = repr(cost).splitlines()
    assert lines[0] == "dropped: H_rot"
    assert [float(x) for x in lines[-1].split()[1:]] == pytest.approx(
        [x[5] for x in (cost.largest, cost.rms, cost.peak, cost.share)], rel=1e-4
    )
    assert "dropped: nothing" in repr(arm.cost(qd, qdd))
    survey = arm.survey(qd, qdd)
    assert all(part in repr(survey) for part in PARTS)
    for shown in (arm, cost, survey):
        assert "<table>" in shown._repr_html_()


def test_split_refuses() -> None:
    m = kic.load("lee-puma")
    arm = split(m.at([0.3] * 6))
    with pytest.raises(
        kic.InputError, match=r"Expected `configuration` to be a posture, got .*Mechanism\.at"
    ):
        split(m)
    with pytest.raises(kic.UnknownNameError, match=r"No part 'D_rto' .* Did you mean 'D_rot'"):
        arm.without("D_rto")
    with pytest.raises(kic.UnknownNameError, match="No part 3"):
        arm.without(3)
    with pytest.raises(kic.UnknownNameError, match="No coordinate 'joint7'"):
        arm.without("D_rot", at="joint7")
    with pytest.raises(kic.UnknownNameError, match="No coordinate 'joint0'"):
        arm.without("H_rot", by=[("joint1", "joint0")])
    with pytest.raises(kic.InputError, match=r"Expected names of coordinates in `by`.*Pairs of rates"):
        arm.without("D_rot", by=[("joint1", "joint2")])
    with pytest.raises(kic.InputError, match="Expected names of coordinates in `at`, got 1"):
        arm.without("H_rot", at=1)
    assert arm.without("H_rot", at=[]).dropped == ("H_rot at no joint",)
    with pytest.raises(kic.InputError, match="G comes by no motion"):
        arm.without("G", by="joint1")
    with pytest.raises(kic.InputError, match=r"Expected `qd` to have shape \(\.\.\., 6\)"):
        arm.H_tran([1.0, 2.0])
    with pytest.raises(kic.InputError, match="Batch shapes do not broadcast"):
        split(m.at(np.zeros((3, 6)))).H_rot(np.ones((2, 6)))
    with pytest.raises(kic.InputError, match=r"A motion needs postures to be judged by, got the empty batch"):
        split(m.at(np.zeros((0, 6)))).cost(np.ones(6), np.ones(6))
    for first in (0, 6, True, 2.5):
        with pytest.raises(kic.InputError, match="Expected `first` to be a number of joints from 1 to 5"):
            arm.simplified(first)
    with pytest.raises(kic.InputError, match="Expected `mixed` to be one of 'both', 'tran', 'rot', 'none'"):
        arm.simplified(mixed="half")


def test_the_simplified_model_is_one_of_arms() -> None:
    rng = np.random.default_rng(0)
    branched = random_tree(np.random.default_rng(1), ["R"] * 5, branched=True)
    assert len({j.bodies[0] for j in branched.joints} & {"ground"}) == 1
    turned = kic.load("lee-puma")
    order = kic.Mechanism(
        "other order", bodies=turned.bodies, joints=turned.joints, coordinates=turned._model.coordinates[::-1]
    )
    some = "Drop parts by name: `without`"
    for m, wrt, why in (
        (random_tree(rng, ["R", "P", "R"]), None, r"joints that are not revolute \(prismatic\)"),
        (kic.load("five-bar"), None, "it has loops"),
        (branched, None, "it branches"),
        (order, None, "do not follow one another"),
        (kic.load("horn-two-link"), ["tip.x", "tip.y"], "others than those of the joints"),
    ):
        c = m.at([0.3, 0.5]) if wrt else m.at()
        with pytest.raises(kic.InputError, match=f"serial arm of revolute joints.*{why}.*{some}"):
            split(c, wrt).simplified(1)
    bare = kic.from_dh("bare", [kic.DHRow("A", "link")])
    with pytest.raises(kic.InertiaError):
        split(bare.at([0.0]))


# ----- Table 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", range(1, 8))
def test_table_1(method: str, n: int) -> None:
    printed = {name.lower(): of for name, of in DATA["operation_counts"].items()}
    expected = printed[method.lower()]["values"][str(n)]
    assert table_1(method, n) == (expected["mult"], expected["add"])


def test_table_1_refuses() -> None:
    with pytest.raises(kic.InputError, match="Expected `method` to be one of Lagrange-Euler"):
        table_1("Kane", 3)
    for n in (0, -1, 2.0, True, "3"):
        with pytest.raises(kic.InputError, match="Expected `n` to be a whole number of joints, 1 or more"):
            table_1("Newton-Euler", n)
    with pytest.raises(kic.InputError, match="Expected `joints` to be a whole number"):
        OperationTable([3, 0])
    for joints in (6, [], "67"):
        with pytest.raises(kic.InputError, match="Expected `joints` to be a list of numbers of joints, got"):
            OperationTable(joints)
    with pytest.raises(kic.InputError, match="Expected `n` to be a whole number"):
        revolute_arm(0)


# ----- counting


def test_a_known_expression_is_counted_exactly() -> None:
    ledger = Counter()
    x, y = Counted(2.0, ledger), Counted(3.0, ledger)
    z = -(x * y + 4 * x - 1) / (2 / y - x.cos() * y.sin()) + (x + 7).sqrt()
    z -= 1
    value = -(2.0 * 3 + 4 * 2 - 1) / (2 / 3 - math.cos(2) * math.sin(3)) + 3 - 1
    assert float(z) == pytest.approx(value, rel=1e-15)
    expected = OperationCount(3, 3, 3, 2, 1, cosines=1, sines=1, roots=1)
    assert OperationCount(**ledger) == expected
    assert (expected.products, expected.sums) == (5, 6)
    # looking is not calculating
    assert x < y <= 3 != x >= 2
    assert y > 0
    assert abs(-1 * x) == 2
    assert ledger["multiplications"] == 4
    assert OperationCount(1) + OperationCount(0, 2) == OperationCount(1, 2)
    with pytest.raises(TypeError):
        OperationCount() + 1
    assert "cosines" in repr(expected)
    assert "<table>" in expected._repr_html_()
    assert repr(x) == "Counted(2.0)"


def hand_count(n: int) -> tuple[int, int]:
    """Operations of G and H of a point at the end of n revolute joints, from the formulas of the thesis.

    Frames (2-45 to 2-50): 12 products and 7 sums for turning about each joint (6 and the angle), 36 and 27
    for each that stands on another; the point, 9 and 9. G (Table 2-3): a difference, a cross product, a sign
    and place for each joint. H (Table 2-4): a sign for each joint, a cross product and its place for each
    pair.
    """
    pairs = n * (n + 1) // 2
    products = 12 * n + 36 * (n - 1) + 9 + (6 + 3) * n + 3 * n + 6 * pairs
    sums = 7 * n + 27 * (n - 1) + 9 + (3 + 3 + 3) * n + (3 + 3) * pairs
    return products, sums


@pytest.mark.parametrize("n", range(1, 8))
def test_g_and_h_are_counted_as_by_hand(n: int) -> None:
    count = count_operations(revolute_arm(n), of="hand")
    assert (count.products, count.sums) == hand_count(n)
    assert (count.cosines, count.sines, count.roots, count.divisions) == (n, n, 0, 0)


def test_operation_table() -> None:
    table = OperationTable()
    assert table.joints == tuple(range(1, 8))
    for k, method in enumerate(METHODS):
        for row, n in enumerate(table.joints):
            assert (table.products[row, k], table.sums[row, k]) == table_1(method, n)
    assert [tuple(x) for x in zip(table.products[:, 5], table.sums[:, 5], strict=True)] == [
        hand_count(n) for n in table.joints
    ]
    # I* and P* are a polynomial of third degree: two scalar products of screws for each i <= j <= k
    differences = table.products[:, 4]
    for _ in range(3):
        differences = np.diff(differences)
    assert differences.tolist() == [12] * 4
    # effort beside them: T is formed once for each, and everything else is at least its part
    assert (table.products[:, 3] > table.products[:, 4]).all()
    assert (table.sums[:, 3] > table.sums[:, 4]).all()
    text = repr(table)
    assert "101348" in text
    assert "kic effort" in text
    assert "<table>" in table._repr_html_()


def test_counts_know_no_posture_and_no_geometry() -> None:
    m = kic.load("lee-puma")
    rng = np.random.default_rng(2)
    for question in ({"of": "hand", "order": 3}, {"dynamics": "inertia"}, {"dynamics": "effort"}):
        drawn_count = count_operations(m, **question)
        assert drawn_count == count_operations(revolute_arm(6), **question)
        for _ in range(2):
            assert count_operations(m, at=m.at(rng.normal(size=6)), **question) == drawn_count


def test_counts_add_up() -> None:
    m = kic.load("lee-puma")
    rows, inertia = count_operations(m, of="hand"), count_operations(m, dynamics="inertia")
    whole = count_operations(m, of="hand", dynamics="inertia")
    assert rows + inertia == whole  # two kernels, each with its own frames
    full, effort = count_operations(m, dynamics=True), count_operations(m, dynamics="effort")
    # I* q̈ is M² products, q̇ᵀ P* q̇ 2 M³, B q̇ M²
    assert effort.products - full.products == 2 * 6**2 + 2 * 6**3
    # the loads are not counted where they are not asked for
    assert full.products > inertia.products


QUESTIONS = [
    ("lee-puma", None, {"of": ["hand", "link6"], "order": 3, "dynamics": "effort"}),
    ("lee-puma", None, {"of": "hand", "order": 1, "dynamics": True}),
    ("panda", None, {"dynamics": "inertia"}),
    ("five-bar", None, {"of": ["coupler", "tip"], "order": 3, "dynamics": "effort"}),
    ("gough-stewart", None, {"of": "eye", "dynamics": True}),
    ("geared-five-bar", None, {"dynamics": "effort"}),
    ("horn-two-link", [0.4, 0.9], {"of": "reach", "dynamics": "effort", "wrt": ["tip.x", "tip.y"]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "posture", "question"), QUESTIONS)
def test_a_counted_run_gives_the_same_numbers(name: str, posture, question: dict) -> None:
    m = kic.load(name)
    c = m.at() if posture is None else m.at(posture)
    if question.get("of") == ["coupler", "tip"]:
        question = question | {"of": [m.bodies[0].name, m.points[0].name]}
    ledger = Counter()
    tables = run(ledger, m, at=c, **question)
    asked = {k: v for k, v in question.items() if k != "dynamics"}
    wants = question["dynamics"]
    f = m.prepare(dynamics=True if wants == "effort" else wants, **asked)
    r = f(c.state)
    written = [a[0] for a in (r._rows, r._model) if a.size]
    assert len(tables) == len(written) + (wants == "effort")
    for counted, compiled in zip(tables, written, strict=False):
        assert off(counted, compiled) < 1e-12
    if wants == "effort":
        ones = np.ones(len(tables[-1]))
        assert off(tables[-1], c.dynamics(question.get("wrt")).effort(ones, ones)) < 1e-12
    assert OperationCount(**ledger) == count_operations(m, at=c, **question)
    assert ledger["multiplications"] > 0


def test_more_is_more() -> None:
    m = kic.load("lee-puma")
    counts = [count_operations(m, of="hand", order=k).products for k in (1, 2, 3)]
    assert all(a < b for a, b in pairwise(counts))
    closed = kic.load("five-bar")
    assert count_operations(closed, dynamics="inertia").products > 0
    assert count_operations(kic.load("gough-stewart"), of="eye").roots >= 1  # the quaternion's length


def test_counting_refuses() -> None:
    m = kic.load("lee-puma")
    with pytest.raises(kic.InputError, match=r"Expected a Mechanism, got .*kic\.load"):
        count_operations(m.at([0.0] * 6), of="hand")
    with pytest.raises(kic.InputError, match="Expected `dynamics` to be True, False, 'inertia' or 'effort'"):
        count_operations(m, dynamics="torque")
    with pytest.raises(kic.InputError, match="Expected `dynamics` to be True, False, 'inertia' or 'effort'"):
        count_operations(m, dynamics=np.array([1, 0]))
    with pytest.raises(kic.InputError, match="Nothing was asked"):
        count_operations(m)
    with pytest.raises(kic.UnknownNameError, match="hnad"):
        count_operations(m, of="hnad")
    with pytest.raises(kic.InputError, match="Expected `at` to be a Configuration, got"):
        count_operations(m, of="hand", at=[0.0] * 6)
    with pytest.raises(kic.InputError, match="got one of another mechanism"):
        count_operations(m, of="hand", at=kic.load("panda").at())
    with pytest.raises(kic.InputError, match=r"one posture of real numbers, got the batch \(2,\)"):
        count_operations(m, of="hand", at=m.at(np.zeros((2, 6))))
    with pytest.raises(
        kic.InputError, match=r"one posture of real numbers, got the batch \(\) of complex128"
    ):
        count_operations(m, of="hand", at=m.at(np.zeros(6) + 1j * STEP))
    with pytest.raises(kic.SingularError):  # the wrist is straight
        count_operations(m, of="joint1", wrt=HAND, at=m.at(np.zeros(6)))
    # an answer there is, after a second look
    near = kic.load("horn-two-link")
    straight = near.at([0.4, 1e-5])
    assert straight.coefficients("reach", wrt=["tip.x", "tip.y"]).G.shape == (1, 2)
    with pytest.raises(kic.SingularError, match="near a singular posture here, where rows are chosen anew"):
        count_operations(near, of="reach", wrt=["tip.x", "tip.y"], at=straight)


def test_counting_refuses_where_the_drawing_can_not_choose() -> None:
    """A parallelogram drawn flat: its closure conditions depend on one another there, and nowhere else."""
    joints = zip("ABCD", ("ground", "a", "b", "ground"), ("a", "b", "c", "c"), (0, 1, 3, 2), strict=True)
    flat = kic.Mechanism(
        "flat",
        bodies=[kic.Body(name) for name in "abc"],
        joints=[kic.Joint(n, "revolute", (p, q), at=(x, 0, 0), axis=(0, 0, 1)) for n, p, q, x in joints],
        points=[kic.Point("tip", "b", at=(2, 0, 0))],
        coordinates=["A"],
    )
    found = flat.assemblies([0.5])
    one = Configuration(flat._model, (), found._states[:1])
    assert one.coefficients("tip").G.shape == (3, 1)
    with pytest.raises(kic.InputError, match="Loops of 'flat' depend on one another as it is drawn"):
        count_operations(flat, of="tip", at=one)
