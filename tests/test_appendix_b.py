"""Freeman's Appendix B: the wrist-partitioned arm, its inverse to third order, and the printed formulas."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from expressions import angles, evaluate, same
from sampling import STEP, mismatch

import kic
from kic.classics import WristPartitioned

DATA = json.loads((Path(__file__).parent / "data" / "appendix_b.json").read_text(encoding="utf-8"))
NUMBERS = DATA["numbers"]
TABLES = {(t["table"], t["quantity"]): t for t in DATA["tables"]}
BATCHES = [(), (3,), (2, 1), (0,)]
ARM = WristPartitioned(*(NUMBERS["inputs"][x] for x in ("a23", "a34", "s11")))
TENSORS = ("G", "H", "D")


def random_arm(rng: np.random.Generator) -> WristPartitioned:
    return WristPartitioned(*rng.uniform(0.5, 2.0, size=2), rng.normal())


def posture(rng: np.random.Generator, batch: tuple[int, ...] = ()) -> np.ndarray:
    """Random angles with an elbow well bent; in front of the waist and behind it, above and below."""
    q = rng.uniform(-np.pi, np.pi, size=(*batch, 3))
    q[..., 2] = rng.choice([-1, 1], size=batch) * rng.uniform(0.3, 2.8, size=batch)
    return q


def turned(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Differences of angles, but for full turns."""
    return np.abs((found - wanted + np.pi) % (2 * np.pi) - np.pi)


def test_reference_numbers() -> None:
    theta = np.array([NUMBERS["inputs"][f"theta{k}"] for k in (1, 2, 3)])
    w, inverse = ARM.wrist(theta), ARM.inverse_coefficients(theta)
    for found, wanted in [
        (w.values, "P"), (w.G, "G_phi_P"), (w.H, "H_P"), (w.D, "D_P"),
        (inverse.G, "G_P_phi"), (inverse.H, "H_PP_phi"), (inverse.D, "D_PPP_phi"),
        (w.inverse().G, "G_P_phi"), (w.inverse().H, "H_PP_phi"), (w.inverse().D, "D_PPP_phi"),
    ]:  # fmt: skip
        assert mismatch(found, np.array(NUMBERS[wanted])) < 1e-12
    assert turned(ARM.inverse(NUMBERS["P"])[1], theta).max() < 1e-14


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_closed_form_against_the_general_inverse(batch: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    arm = random_arm(rng)
    theta = posture(rng, batch)
    forward = arm.mechanism().at(theta).coefficients("wrist", order=3)
    mine, general = arm.wrist(theta), forward.inverse()
    closed = arm.inverse_coefficients(theta)
    assert (mine.rows, mine.columns) == (forward.rows, forward.columns) == (arm.rows, arm.coordinates)
    assert (closed.rows, closed.columns) == (general.rows, general.columns)
    limit = max(1e-12, 100 * np.finfo(float).eps * forward.condition().max(initial=1.0))
    for x in TENSORS:
        assert mismatch(getattr(mine, x), getattr(forward, x)) < 1e-12
        assert mismatch(getattr(closed, x), getattr(general, x)) < limit
    assert mismatch(mine.values, forward.values) < 1e-12
    np.testing.assert_array_equal(closed.values, theta)
    assert (closed.order, arm.inverse_coefficients(theta, order=1).order) == (3, 1)
    assert arm.inverse_coefficients(theta, order=2).D is None
    assert closed.holonomic
    # derivatives with respect to coordinates are symmetric in all that differentiates
    assert mismatch(np.swapaxes(closed.H, -1, -2), closed.H) < limit
    for a, b in ((-1, -2), (-2, -3)):
        assert mismatch(np.swapaxes(closed.D, a, b), closed.D) < limit


@pytest.mark.parametrize("seed", range(4))
def test_each_order_is_the_complex_step_of_the_one_below(seed: int) -> None:
    """Along P: the posture is stepped by G, and the next order read from the imaginary part."""
    rng = np.random.default_rng(seed)
    arm, theta = random_arm(rng), posture(rng, (5,))
    exact = arm.inverse_coefficients(theta)
    steps = theta[:, None, :] + 1j * STEP * np.swapaxes(exact.G, -1, -2)
    moved = arm.inverse_coefficients(steps)
    assert mismatch(arm.wrist(steps).values.imag / STEP, np.broadcast_to(np.eye(3), (5, 3, 3))) < 1e-12
    for low, high in pairwise(TENSORS):
        derivative = np.moveaxis(getattr(moved, low).imag / STEP, 1, 2)
        assert mismatch(getattr(exact, high), derivative) < 1e-12


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_four_branches(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(8)
    arm = random_arm(rng)
    theta = posture(rng, batch)
    P = arm.wrist(theta).values
    found = arm.inverse(P)
    assert found.shape == (4, *batch, 3)
    assert (np.abs(found) <= np.pi).all()
    w = arm.wrist(found)
    size = arm.a23 + arm.a34
    assert np.abs(w.values - P).max(initial=0.0) < 1e-13 * size
    # one of them is where it came from, and they differ
    assert (turned(found, theta).max(axis=-1).min(axis=0) < 1e-13).all()
    for a in range(4):
        for b in range(a):
            assert (turned(found[a], found[b]).max(axis=-1) > 0.1).all()
    # and are what they are called
    r = arm.a23 * np.cos(found[..., 1]) + arm.a34 * np.cos(found[..., 1] + found[..., 2])
    z = P[..., 2] - arm.s11
    upper = arm.a23 * np.stack([np.cos(found[..., 1]), np.sin(found[..., 1])], axis=-1)
    for k, (side, elbow) in enumerate(arm.branches):
        sign = 1 if side == "front" else -1
        assert (sign * r[k] > 0).all()
        # the side of the line from shoulder to P on which the elbow is, seen with P to the right
        across = sign * (r[k] * upper[k, ..., 1] - z * upper[k, ..., 0])
        assert ((across > 0) == (elbow == "up")).all()
        if side == "front":
            assert ((found[k, ..., 2] > 0) == (elbow == "down")).all()


def test_against_the_general_solver_over_the_workspace() -> None:
    """`at` and `assemblies` find the same postures, near the boundaries of reach, too."""
    arm = ARM
    m = arm.mechanism()
    radii = np.array([0.4 + 1e-3, 0.5, 1.2, 1.9, 2.2 - 1e-3])
    tilt, turn = np.meshgrid(np.linspace(-1.2, 1.2, 5), np.linspace(-3, 3, 4), indexing="ij")
    way = np.stack([np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), np.sin(tilt)], axis=-1)
    P = radii[:, None, None, None] * way + [0.0, 0.0, arm.s11]
    branches = arm.inverse(P)
    w = arm.wrist(branches, order=1)
    assert np.abs(w.values - P).max() < 1e-13
    target = dict(zip(arm.rows, np.moveaxis(P, -1, 0), strict=True))
    for k in range(4):
        # begun beside the answer, with an elbow that is bent to the same side, and more
        bend = branches[k][..., 2]
        aside = branches[k] + [0.05, -0.04, 0.0]
        aside[..., 2] += 0.05 * np.sign(bend) * np.where(np.abs(bend) < np.pi / 2, 1, -1)
        c = m.at(target, near=m.at(aside))
        condition = w.condition()[k]
        error = turned(c.phi, branches[k]).max(axis=-1)
        assert (error < 100 * np.finfo(float).eps * condition + 1e-12).all()
    found = m.assemblies({"wrist.x": 1.1, "wrist.y": -0.6, "wrist.z": 1.0})
    mine = arm.inverse([1.1, -0.6, 1.0])
    assert len(found.phi) == 4
    gaps = turned(found.phi[:, None], mine).max(axis=-1)
    assert (gaps.min(axis=0) < 1e-9).all()


@pytest.mark.parametrize("lengths", [(1.3, 0.9), (0.9, 1.3), (1.0, 1.0)])
def test_boundaries_of_reach(lengths: tuple[float, float]) -> None:
    arm = WristPartitioned(*lengths, 0.4)
    rng = np.random.default_rng(3)
    way = rng.normal(size=(200, 3))
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    most, least = sum(lengths), abs(lengths[0] - lengths[1])
    for far, elbow in ((most, 0.0), (least, np.pi)):
        if not far:
            continue
        found = arm.inverse(far * way + [0, 0, 0.4])
        # on the boundary to rounding, two branches are one
        assert turned(found[..., 2], elbow).max() == 0
        for k in (0, 2):
            np.testing.assert_array_equal(found[k], found[k + 1])
        assert np.abs(arm.wrist(found).values - far * way - [0, 0, 0.4]).max() < 1e-13
        # a little inside they part as a square root, a little outside there is nothing
        inside = far + 1e-8 * (1 if far == least else -1)
        bent = turned(arm.inverse(inside * way + [0, 0, 0.4])[..., 2], elbow)
        wanted = np.arccos(
            np.clip((inside**2 - lengths[0] ** 2 - lengths[1] ** 2) / (2 * np.prod(lengths)), -1, 1)
        )
        np.testing.assert_allclose(bent, abs(wanted - elbow), rtol=1e-6)
        outside = far - 1e-12 * (1 if far == least else -1)
        masked = arm.inverse(outside * way + [0, 0, 0.4], failures="mask")
        assert np.isnan(masked).all()


def test_boundaries_are_met_within_rounding() -> None:
    """Stretched and folded elbows of arms of all proportions, from the place that they lead to."""
    rng = np.random.default_rng(8)
    for _ in range(100):
        arm = WristPartitioned(*10 ** rng.uniform(-2, 2, size=2), 10 ** rng.uniform(-2, 2) * rng.normal())
        theta = rng.uniform(-np.pi, np.pi, size=(50, 3))
        theta[:, 2] = rng.choice([0, np.pi], size=50)
        found = arm.inverse(arm.wrist(theta, order=1).values)
        assert (turned(found[..., 2], theta[:, 2]) == 0).all()
        for k in (0, 2):
            np.testing.assert_array_equal(found[k], found[k + 1])


@pytest.mark.parametrize("far", [2.2, 0.4], ids=["stretched", "folded"])
def test_on_a_boundary_a_search_finds_the_same(far: float) -> None:
    """Two postures, in front and behind, singular both."""
    P = far * np.array([0.6, 0.48, 0.64]) + [0.0, 0.0, ARM.s11]
    found = ARM.mechanism().assemblies(dict(zip(ARM.rows, P, strict=True)))
    assert len(found.hits) == 2
    assert found.singular.all()
    gaps = turned(found.phi[:, None], ARM.inverse(P)[::2]).max(axis=-1)
    assert gaps.min(axis=0).max() < 1e-3  # at a boundary a search finds half of the digits


def test_places_without_an_answer() -> None:
    with pytest.raises(kic.PostureError) as caught:
        ARM.inverse([[1.0, 0.5, 0.8], [3.0, 0.0, 0.4], [0.1, 0.0, 0.4], [0.0, 0.0, 1.4]])
    error = caught.value
    assert error.failed == [(1,), (2,), (3,)]
    assert error.reasons == [
        "3 from the shoulder, which reaches from 0.4 to 2.2",
        "0.1 from the shoulder, which reaches from 0.4 to 2.2",
        "on the waist's axis, where any angle of the waist will do",
    ]
    assert str(error) == (
        "WristPartitioned(a23=1.3, a34=0.9, s11=0.4) has no posture: "
        "(1,): P = [3.0, 0.0, 0.4] is 3 from the shoulder, which reaches from 0.4 to 2.2; "
        "(2,): P = [0.1, 0.0, 0.4] is 0.1 from the shoulder, which reaches from 0.4 to 2.2; "
        "(3,): P = [0.0, 0.0, 1.4] is on the waist's axis, where any angle of the waist will do. "
        "Move P, or keep the others with failures='mask'."
    )
    np.testing.assert_array_equal(error.branches[:, 0], ARM.inverse([1.0, 0.5, 0.8]))
    assert np.isnan(error.branches[:, 1:]).all()
    masked = ARM.inverse([[1.0, 0.5, 0.8], [3.0, 0.0, 0.4]], failures="mask")
    np.testing.assert_array_equal(np.isnan(masked).any(axis=(0, 2)), [False, True])
    with pytest.raises(kic.PostureError, match=r"has no posture: P = \[0.0, 0.0, 1.0\] is on .* Move P\.$"):
        ARM.inverse([0.0, 0.0, 1.0])
    with pytest.raises(kic.PostureError, match="on the waist's axis"):  # to rounding
        ARM.inverse([1e-17, 0.0, 1.0])
    # equal links fold onto the shoulder in infinitely many ways
    with pytest.raises(kic.PostureError, match="on the waist's axis"):
        WristPartitioned(1.0, 1.0).inverse([0.0, 0.0, 0.0])


def test_postures_without_derivatives() -> None:
    for elbow in (0.0, np.pi, -np.pi):
        with pytest.raises(kic.SingularError, match="where the elbow is straight or folded") as caught:
            ARM.inverse_coefficients([[0.1, 0.2, 0.3], [0.1, 0.2, elbow]])
        assert caught.value.failed == [(1,)]
        assert "at member (1,), one of 1 that fail" in str(caught.value)
        assert abs(caught.value.s3) < 1e-14
        with pytest.raises(kic.SingularError):  # as the general machinery
            ARM.wrist([0.1, 0.2, elbow]).inverse()
    arm = WristPartitioned(1.0, 1.0)
    above = [0.3, np.pi / 4, np.pi / 2]
    with pytest.raises(kic.SingularError, match="where P stands on the waist's axis: r = ") as caught:
        arm.inverse_coefficients(above)
    assert caught.value.failed == [()]
    assert abs(caught.value.r) < 1e-14
    with pytest.raises(kic.SingularError):
        arm.wrist(above).inverse()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0.0, 1.0), "WristPartitioned: `a23` is zero; a link of no length has no direction."),
        ((1.0, -1.0), "WristPartitioned: expected `a34` to be a finite number of at least 0, got -1.0."),
        ((1.0, 1.0, "high"), "WristPartitioned: expected `s11` to be a finite number, got 'high'."),
    ],
)
def test_dimensions_that_are_refused(given: tuple, says: str) -> None:
    with pytest.raises(kic.ModelError) as caught:
        WristPartitioned(*given)
    assert str(caught.value) == says


def test_questions_that_are_refused() -> None:
    for ask in (ARM.wrist, ARM.inverse_coefficients, ARM.inverse):
        with pytest.raises(kic.InputError, match=r"to have shape \(\.\.\., 3\), got \(2,\)"):
            ask([0.0, 0.0])
        with pytest.raises(kic.InputError, match="to be finite, got nan"):
            ask([0.0, np.nan, 1.0])
    for ask in (ARM.wrist, ARM.inverse_coefficients):
        with pytest.raises(kic.InputError, match="Expected `order` to be 1, 2 or 3, got 0"):
            ask([0.1, 0.2, 0.3], order=0)
    with pytest.raises(kic.InputError, match="Expected `P` to be real numbers here"):
        ARM.inverse([1.0 + 1e-40j, 0.5, 0.8])
    with pytest.raises(kic.InputError, match="Expected `failures` to be 'raise' or 'mask', got 'skip'"):
        ARM.inverse([1.0, 0.5, 0.8], failures="skip")


def names_of(arm: WristPartitioned, theta: np.ndarray) -> dict:
    """What the appendix's formulas speak of."""
    names = angles({"a23": arm.a23, "a34": arm.a34, "theta1": theta[..., 0]}, theta)
    r = arm.a23 * names["c2"] + arm.a34 * names["c23"]
    z = arm.a23 * names["s2"] + arm.a34 * names["s23"]
    return names | {"r": r, "z": z, "sin": np.sin, "cos": np.cos}


def truth(arm: WristPartitioned, theta: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    """The printed tables by the general machinery."""
    w = arm.mechanism().at(theta).coefficients("wrist")
    inverse = w.inverse()
    return {
        ("B-1", "G"): w.G,
        ("B-1", "H1"): w.H[..., 0, :, :],
        ("B-1", "H2"): w.H[..., 1, :, :],
        ("B-1", "H3"): w.H[..., 2, :, :],
        ("B-6", "inverse G"): inverse.G,
        ("B-7", "inverse G . H"): np.einsum("...k,...kmn->...mn", inverse.G[..., 0, :], w.H),
        ("B-8", "H of theta1"): inverse.H[..., 0, :, :],
        ("B-9", "H of theta1"): inverse.H[..., 0, :, :],
    }


@pytest.mark.parametrize("key", TABLES, ids=lambda key: " ".join(key))
def test_printed_tables(key: tuple[str, str]) -> None:
    """Right as printed, entry by entry, but for the errata: those are wrong as read, and right corrected."""
    rng = np.random.default_rng(6)
    arm, theta = random_arm(rng), posture(rng, (7,))
    names, exact = names_of(arm, theta), truth(arm, theta)[key]
    errata = {tuple(e["at"]): e for e in TABLES[key]["errata"]}
    size = np.abs(exact).max()

    def gap(formula: str, at: tuple[int, int]) -> float:
        return float(np.abs(evaluate(formula, names) - exact[..., *at]).max() / size)

    seen = set()
    for at in np.ndindex(3, 3):
        printed = TABLES[key]["printed"][at[0]][at[1]]
        if at not in errata:
            assert gap(printed, at) < 1e-12, (at, printed)
            continue
        seen.add(at)
        entry = errata[at]
        assert entry["as_read"] == printed
        assert entry["why"]
        assert gap(entry["correct"], at) < 1e-12
        if "no quantity" in entry["why"]:
            with pytest.raises(NameError, match="s_34"):
                gap(printed, at)
        else:
            assert gap(printed, at) > 1e-3
    assert seen == set(errata)


def test_reasons_of_the_errata() -> None:
    rng = np.random.default_rng(9)
    arm, theta = random_arm(rng), posture(rng, (4,))
    n = names_of(arm, theta)
    for key, table in TABLES.items():
        for e in table["errata"]:
            if "symmetric" in e["why"]:
                assert table["printed"][e["at"][1]][e["at"][0]] == e["correct"], key
    assert (
        same((-n["z"] * n["c2"] + n["r"] * n["s2"]) / (arm.a23 * n["s3"]), np.array(-arm.a34 / arm.a23))
        < 1e-12
    )
    eight, nine = TABLES["B-8", "H of theta1"], TABLES["B-9", "H of theta1"]
    assert eight["printed"][1][1] == nine["errata"][0]["correct"]
    assert sum(len(t["errata"]) for t in TABLES.values()) == 9


@pytest.mark.parametrize("entry", DATA["equations"], ids=lambda e: f"{e['equation']} {e['left']}")
def test_printed_equations(entry: dict) -> None:
    """(B-4) and (B-10) to (B-15), along a motion of P."""
    rng = np.random.default_rng(11)
    arm, theta = random_arm(rng), posture(rng)
    w = arm.mechanism().at(theta).coefficients("wrist", order=3)
    inverse = w.inverse()
    Pd, Pdd = rng.normal(size=(2, 3))
    wd = inverse.velocity(Pd)
    names = names_of(arm, theta)
    rd = Pd[0] * names["c1"] + Pd[1] * names["s1"]
    rd_by_joints = -names["z"] * wd[1] - arm.a34 * names["s23"] * wd[2]
    assert rd == pytest.approx(rd_by_joints, rel=1e-12)
    names |= dict(zip(("Px", "Py"), w.values, strict=False))
    names |= dict(zip(("Pxd", "Pyd"), Pd, strict=False)) | dict(zip(("Pxdd", "Pydd"), Pdd, strict=False))
    names |= {"rd": rd_by_joints, "w1": wd[0], "w1d": inverse.acceleration(Pd, Pdd)[0]}
    names |= {"H": w.H, "inverse": inverse.G, "H1_transferred": inverse.H[0]}
    names["dot"] = lambda a, b: np.einsum("pk,kmn->pmn", a, b)  # the generalized dot product of Appendix A
    left = evaluate(entry["left"], names)
    assert same(evaluate(entry["right"], names), left) < 1e-12
    if "as_read" in entry:
        assert same(evaluate(entry["as_read"], names), left) > 1e-3
        assert entry["why"]


def test_wrist_as_columns_and_vectors() -> None:
    """Table B-1: g_n = s^n × (P − R^n), and H_1n = s^1 × g_n."""
    rng = np.random.default_rng(2)
    arm, theta = random_arm(rng), posture(rng)
    w = arm.wrist(theta)
    n = names_of(arm, theta)
    axis = np.array([[0, 0, 1], [n["s1"], -n["c1"], 0], [n["s1"], -n["c1"], 0]])
    out = np.array([n["c1"], n["s1"], 0])
    elbow = arm.a23 * (n["c2"] * out + n["s2"] * axis[0])
    R = arm.s11 * axis[:1] + np.array([0 * elbow, 0 * elbow, elbow])
    for k in range(3):
        g = np.cross(axis[k], w.values - R[k])
        np.testing.assert_allclose(w.G[:, k], g, atol=1e-14)
        np.testing.assert_allclose(w.H[:, 0, k], np.cross(axis[0], g), atol=1e-14)


def test_model() -> None:
    """The whole arm: its first three joints are those of the appendix, whatever the wrist does."""
    m = kic.load("wrist-partitioned")
    rng = np.random.default_rng(0)
    q = np.concatenate([posture(rng, (5,)), rng.normal(size=(5, 3))], axis=-1)
    c = m.at(q)
    w = c.coefficients("wrist", order=3)
    assert w.columns[:3] == ARM.coordinates
    mine = ARM.wrist(q[:, :3])
    first = w.columns_of(ARM.coordinates)
    for x in ("values", *TENSORS):
        assert mismatch(getattr(first, x), getattr(mine, x)) < 1e-12
    assert not w.G[..., 3:].any()
    closed, general = ARM.inverse_coefficients(q[:, :3]), first.inverse()
    for x in TENSORS:
        assert mismatch(getattr(closed, x), getattr(general, x)) < 1e-11
    # the wrist is spherical: its three axes meet in P
    centre = kic.Point("centre", "hand", m.points[1].at)
    other = replace(m, points=(*m.points, centre))
    np.testing.assert_allclose(other.at(q).value("centre"), c.value("wrist"), atol=1e-14)
    np.testing.assert_allclose(m.at().phi, np.array([0, 1, -1, -1, 1, 0]) * np.pi / 2, atol=1e-15)
    # what the prose says of reach
    assert np.abs(c.coefficients("reach", order=1).G[..., [0, 1, 3, 4, 5]]).max() < 1e-14


def test_inverse_of_the_whole_arm() -> None:
    """Postures of the whole arm for places of the wrist, the wrist's own angles held."""
    m = kic.load("wrist-partitioned")
    P = np.array([1.2, 0.7, 1.1])
    wrist = {"wrist_bend": 0.3, "wrist_swing": 1.0, "wrist_roll": -0.4}
    for branch in ARM.inverse(P):
        near = m.at([*(branch + 0.05), *wrist.values()])
        c = m.at(dict(zip(ARM.rows, P, strict=True)) | wrist, near=near)
        assert turned(c.phi[:3], branch).max() < 1e-12


def test_symbols() -> None:
    sympy = pytest.importorskip("sympy")
    theta, numbers = np.array(sympy.symbols("theta1:4")), np.array([0.3, 0.7, -1.1])
    values = dict(zip(theta, numbers, strict=True))
    mine, wanted = ARM.inverse_coefficients(theta), ARM.inverse_coefficients(numbers)
    for x in TENSORS:
        found = [sympy.sympify(entry).subs(values) for entry in getattr(mine, x).flat]
        np.testing.assert_allclose(np.array(found, float), getattr(wanted, x).ravel(), atol=1e-12)
