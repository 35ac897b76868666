"""The planar arm of point masses: closed form, recursion and drawing, and where the web page went astray."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from expressions import angles, evaluate, rates, same
from sampling import STEP, mismatch

import kic
from kic.classics import PointMassArm

DATA = json.loads((Path(__file__).parent / "data" / "point_mass_arm.json").read_text(encoding="utf-8"))
CASES = DATA["cases"]["cases"]
WRONG = [e for e in DATA["errata"] if "quantity" in e]
PAGE = PointMassArm()
BATCHES = [(), (3,), (2, 1), (0,)]


def random_arm(rng: np.random.Generator) -> PointMassArm:
    return PointMassArm(*rng.uniform(0.3, 2.0, size=6), g=rng.normal() * 9)


def motion(rng: np.random.Generator, batch: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    return tuple(rng.normal(size=(3, *batch, 3)) * 2)


def names_of(arm: PointMassArm, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict:
    """What the page's formulas speak of."""
    return rates(angles(asdict(arm), q), qd, qdd)


def in_links(vector: np.ndarray, turned: np.ndarray) -> np.ndarray:
    """World components (..., 3) in the axes of a link turned by (...)."""
    c, s, (x, y, z) = np.cos(turned), np.sin(turned), np.moveaxis(vector, -1, 0)
    return np.stack([c * x + s * y, c * y - s * x, z], axis=-1)


def true_value(arm: PointMassArm, quantity: str, *given: np.ndarray) -> np.ndarray:
    """A quantity of the page, by the general machinery."""
    q, qd, qdd = given
    c = arm.mechanism().at(q)
    d = c.dynamics()
    if quantity[0] == "M":
        return d.I[..., int(quantity[1]) - 1, int(quantity[2]) - 1]
    if quantity[0] == "G":
        return -d.load[..., int(quantity[1]) - 1]
    if quantity[0] == "V":
        return np.einsum("...kab,...a,...b->...k", d.P, qd, qd)[..., int(quantity[1]) - 1]
    if quantity.startswith("tau"):
        return d.effort(qd, qdd)[..., int(quantity[3]) - 1]
    length, _, force = quantity.rpartition(" ")
    link, axis = int(force[1]), "xy".index(force[2])
    # the force of link 3 is wanted in the axes of link 2, where it makes the moment about joint 2
    axes = 2 if quantity == "l2 f3y" else link
    turned = np.cumsum(q, axis=-1)[..., axes - 1]
    found = in_links(c.joint_forces(qd, qdd)[f"joint{link}"].force, turned)[..., axis]
    return found * (getattr(arm, length) if length else 1.0)


def test_the_arm_of_the_page() -> None:
    assert asdict(PAGE) == DATA["cases"]["parameters"]


@pytest.mark.parametrize("case", CASES, ids=["first", "second"])
def test_reference_cases(case: dict) -> None:
    q, qd, qdd = (np.array(case[x]) for x in ("q", "qd", "qdd"))
    out, m = case["outputs"], PAGE.mechanism().at(case["q"])
    d, n, newton = PAGE.dynamics(q), PAGE.inward(q, qd, qdd), case["outputs"]["newton_euler"]

    def check(found: np.ndarray, wanted: object) -> None:
        assert np.abs(found - np.array(wanted)).max() <= 1e-12 * max(1.0, np.abs(wanted).max())

    check(m.value("frame2")[:2], out["origin_frame2"])
    check(m.value("frame3")[:2], out["origin_frame3"])
    for model in (d, m.dynamics()):
        check(model.I, out["mass_matrix"])
        check(np.einsum("kab,a,b->k", model.P, qd, qd), out["velocity_torque"])
        check(-model.load, out["gravity_torque"])
        check(model.effort(qd, qdd), out["tau"])
    check(n.F3[:2], newton["F3_in_3"])
    check(n.f2[:2], newton["f2_in_2"])
    check(n.n2[2], newton["n2z"])
    check(n.f1[:2], newton["f1_in_1"])
    check(n.n1[2], newton["n1z"])
    # the printed result, put together from its printed entries
    printed = {
        e["quantity"]: e["as_read"] for e in WRONG if e["id"] not in ("D1", "D2", "D3", "D4", "D5", "D6")
    }
    printed |= {e["quantity"]: e["formula"] for e in DATA["right"]}
    names, wrong = names_of(PAGE, q, qd, qdd), out["document_literal_wrong"]
    M, V, G = (
        np.array([evaluate(printed[f"{x}{k}"], names) for k in range(1, 4)]).reshape(-1)
        if x != "M"
        else np.array([[evaluate(printed[f"M{k}{n}"], names) for n in range(1, 4)] for k in range(1, 4)])
        for x in "MVG"
    )
    check(M, wrong["M"])
    check(V, wrong["V"])
    check(G, wrong["G"])
    check(M @ qdd + V + G, wrong["tau"])


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_closed_form_against_the_drawing(batch: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    arm = random_arm(rng)
    q, qd, qdd = motion(rng, batch)
    c, d = arm.mechanism().at(q), arm.dynamics(q)
    general = c.dynamics()
    assert d.coordinates == general.coordinates == PointMassArm.coordinates
    assert (d.I.shape, d.P.shape, d.load.shape) == ((*batch, 3, 3), (*batch, 3, 3, 3), (*batch, 3))
    for mine, its in ((d.I, general.I), (d.P, general.P), (d.load, general.load)):
        assert mismatch(mine, its) < 1e-12
    # link by link
    n, forces, turned = arm.inward(q, qd, qdd), c.joint_forces(qd, qdd), np.cumsum(q, axis=-1)
    for k, force, moment in ((1, n.f1, n.n1), (2, n.f2, n.n2), (3, n.F3, n.N3)):
        for mine, its in ((force, forces[f"joint{k}"].force), (moment, forces[f"joint{k}"].moment)):
            wanted = in_links(its, turned[..., k - 1])
            assert mine.shape == (*batch, 3)
            assert np.abs(mine - wanted).max(initial=0.0) < 1e-12 * np.abs(n.f1).max(initial=1.0)
    torques = np.stack([n.n1[..., 2], n.n2[..., 2], n.N3[..., 2]], axis=-1)
    assert mismatch(torques, d.effort(qd, qdd)) < 1e-12


def test_christoffel_by_complex_step() -> None:
    rng = np.random.default_rng(4)
    arm, q = random_arm(rng), rng.normal(size=(4, 3))
    dI = arm.dynamics(q[..., None, :] + 1j * STEP * np.eye(3)).I.imag / STEP
    christoffel = (np.swapaxes(dI, -3, -2) + np.moveaxis(dI, -3, -1) - dI) / 2
    assert mismatch(arm.dynamics(q).P, christoffel) < 1e-12


def test_nothing_depends_on_joint_3() -> None:
    rng = np.random.default_rng(1)
    q, qd, qdd = motion(rng)
    other = q + np.array([0.0, 0.0, 1.3])
    np.testing.assert_array_equal(PAGE.dynamics(q).I, PAGE.dynamics(other).I)
    np.testing.assert_array_equal(PAGE.dynamics(q).effort(qd, qdd), PAGE.dynamics(other).effort(qd, qdd))
    assert PAGE.dynamics(q).effort(qd, qdd)[2] == pytest.approx(0.1 * qdd.sum())


def scene(seed: int, masses: list[str]) -> tuple[PointMassArm, tuple[np.ndarray, ...], dict]:
    """A random arm with the named masses only, a motion, and the names of formulas."""
    rng = np.random.default_rng(seed)
    arm = random_arm(rng)
    without = {m: 0.0 for m in ("m1", "m2", "m3") if m not in masses}
    arm = replace(arm, **without, **({"Izz": 0.0} if "m3" in without else {}))
    given = motion(rng, (6,))
    return arm, given, names_of(arm, *given)


@pytest.mark.parametrize("entry", WRONG, ids=lambda e: f"{e['id']} {e['quantity']}")
def test_errata(entry: dict) -> None:
    """Corrected it is the truth; as printed it differs from that by the terms named, and by no other."""
    arm, given, names = scene(int(entry["id"][1:]), entry["masses"])
    truth = true_value(arm, entry["quantity"], *given)
    as_read, difference = (evaluate(entry[x], names) for x in ("as_read", "difference"))
    assert same(evaluate(entry["correct"], names), truth) < 1e-12
    assert same(as_read, truth + difference) < 1e-12
    assert np.abs(difference).max() > 1e-3 * np.abs(truth).max()
    assert entry["why"]


@pytest.mark.parametrize("entry", DATA["right"], ids=lambda e: e["quantity"])
def test_what_is_right_in_the_page(entry: dict) -> None:
    arm, given, names = scene(17, ["m1", "m2", "m3"])
    quantity = entry["quantity"].replace("F", "f")
    truth = true_value(arm, quantity, *given)
    assert np.abs(evaluate(entry["formula"], names) - truth).max() < 1e-12 * max(1.0, np.abs(truth).max())


def test_every_erratum_is_there() -> None:
    assert {e["id"] for e in DATA["errata"]} == {f"D{k}" for k in range(1, 15)}
    assert all(e["why"] for e in DATA["errata"])
    # D7 to D10: with m3 = 0, and in the two-link part, the page is right
    arm, given, names = scene(3, ["m1", "m2"])
    for entry in WRONG:
        if entry["id"] not in ("D3", "D4"):
            truth = true_value(arm, entry["quantity"], *given) if entry["masses"] != ["m3"] else 0.0
            wanted = evaluate(entry["as_read"], names)
            assert np.abs(wanted - truth).max() < 1e-12 * max(1.0, np.abs(truth).max())


def test_root_of_the_errors() -> None:
    """The wrong moment of link 3 at joint 2 is l2 times y of its force in its own axes."""
    rng = np.random.default_rng(7)
    q, qd, qdd = motion(rng, (4,))
    entry = next(e for e in WRONG if e["id"] == "D1")
    as_read = evaluate(entry["as_read"], names_of(PAGE, q, qd, qdd))
    assert same(as_read, PAGE.l2 * PAGE.inward(q, qd, qdd).F3[..., 1]) < 1e-12


def test_model() -> None:
    m, drawn = kic.load("three-link-arm"), PAGE.mechanism()
    assert m.bodies == drawn.bodies
    assert m.joints == drawn.joints
    assert m.points == drawn.points
    assert m.gravity == drawn.gravity
    q, qd, qdd = motion(np.random.default_rng(0), (3,))
    assert mismatch(m.at(q).dynamics().effort(qd, qdd), PAGE.dynamics(q).effort(qd, qdd)) < 1e-12


def test_symbols() -> None:
    sympy = pytest.importorskip("sympy")
    q, numbers = np.array(sympy.symbols("theta1:4")), np.array([0.3, 0.4, -0.5])
    values = dict(zip(q, numbers, strict=True))
    for mine, wanted in (
        (PAGE.dynamics(q).I, PAGE.dynamics(numbers).I),
        (PAGE.dynamics(q).P, PAGE.dynamics(numbers).P),
        (PAGE.inward(q, q, q).n1, PAGE.inward(numbers, numbers, numbers).n1),
    ):
        found = [sympy.sympify(x).subs(values) for x in mine.flat]
        np.testing.assert_allclose(np.array(found, float), wanted.ravel(), atol=1e-13)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"l1": 0}, "PointMassArm: `l1` is zero; a link of no length has no direction."),
        ({"l2": -0.5}, "PointMassArm: expected `l2` to be a finite number of at least 0, got -0.5."),
        ({"m2": None}, "PointMassArm: expected `m2` to be a finite number of at least 0, got None."),
        ({"g": np.nan}, "PointMassArm: expected `g` to be a finite number, got nan."),
        ({"Izz": -0.1}, "PointMassArm: expected `Izz` to be a finite number of at least 0, got -0.1."),
        (
            {"m3": 0},
            "PointMassArm: a body without mass has no inertia, got m3 = 0 and Izz = 0.1. Give it mass, or "
            "Izz = 0.",
        ),
    ],
)
def test_dimensions_that_are_refused(given: dict, says: str) -> None:
    with pytest.raises(kic.ModelError) as caught:
        PointMassArm(**given)
    assert str(caught.value) == says


def test_questions_that_are_refused() -> None:
    with pytest.raises(kic.InputError, match=r"Expected `q` to have shape \(\.\.\., 3\), got \(2,\)"):
        PAGE.dynamics([0.0, 0.0])
    with pytest.raises(kic.InputError, match="Expected `qd` to be finite"):
        PAGE.inward([0, 0, 0], [0, np.inf, 0], [0, 0, 0])
    with pytest.raises(kic.InputError, match="Batch shapes do not broadcast"):
        PAGE.inward(np.zeros((2, 3)), np.zeros((3, 3)), np.zeros(3))
