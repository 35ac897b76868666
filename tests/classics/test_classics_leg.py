"""Leg with three degrees of freedom: closed form against the general library, printed formulas and errata."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from classic_arms import BATCHES, MASSES, random_leg
from classic_arms import random_motion as motion
from expressions import angles, evaluate, rates, relative_difference
from numpy.testing import assert_allclose
from raising import refuses
from sampling import STEP, agree, mismatch

import kic
from kic.classics import Leg

DATA = json.loads((Path(__file__).parents[1] / "data" / "leg.json").read_text(encoding="utf-8"))
CASES = [(name, k) for name, system in DATA["cases"].items() for k in range(len(system["cases"]))]
FORMULA_ERRATA = [e for e in DATA["errata"] if e["kind"] == "formula"]
# the masses of the bodies, and products of velocities with the indices of their coefficients in P*
MASS_OF = dict(zip(("column", "link2", "link3", "mass2", "mass3"), MASSES, strict=True))
PRODUCTS = {"w1w1": (0, 0), "w2w2": (1, 1), "w3w3": (2, 2), "w1w2": (0, 1), "w2w3": (1, 2), "w3w1": (2, 0)}


def only(leg: Leg, mass: str) -> Leg:
    """Return the leg with one of its masses alone."""
    return replace(leg, **{m: 0.0 for m in MASSES if m != mass})


def point(leg: Leg, q: np.ndarray, link: int, s: float, order: int = 2) -> kic.Coefficients:
    """Return the coefficients of the point of link 2 or 3 at a distance s: the tip of a shorter leg."""
    short = {"l3": s} if link == 3 else {"l2": s, "l3": 1e-300, "d3": leg.d2}
    return replace(leg, **short).tip_coefficients(q, order)


def velocity_product_coefficients(leg: Leg, q: np.ndarray) -> dict[str, np.ndarray]:
    """Return the coefficients C_ijk of the products of joint velocities in the torques (p. 6)."""
    P = leg.dynamics(q).P
    return {name: P[..., a, b] * (1 if a == b else 2) for name, (a, b) in PRODUCTS.items()}


def motion_torques(leg: Leg, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Return the torques (..., 3) without gravity in closed form."""
    d = leg.dynamics(q)
    return d.inverse_dynamics(qd, qdd) + d.load


def general_motion_torques(leg: Leg, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Return the torques without gravity by the general library."""
    return replace(leg, gravity=(0, 0, 0)).mechanism().at(q).dynamics().inverse_dynamics(qd, qdd)


@pytest.mark.parametrize(("name", "k"), CASES)
def test_reference_cases(name: str, k: int) -> None:
    system = DATA["cases"][name]
    leg = Leg(**system["parameters"], gravity=system["gravity_vector"])
    case = system["cases"][k]
    q, qd, qdd = (np.array(case[x]) for x in ("q", "qd", "qdd"))
    out, d = case["outputs"], leg.dynamics(q)

    def check(found: np.ndarray, expected: object) -> None:
        assert np.abs(found - np.array(expected)).max() <= 1e-12 * max(1.0, np.abs(expected).max())

    points = {"com2": (2, leg.l2 / 2), "end2": (2, leg.l2), "com3": (3, leg.l3 / 2), "tip": (3, leg.l3)}
    for name_of, (link, s) in points.items():
        check(point(leg, q, link, s).values, out["kinematics"][name_of])
    check(leg.tip_coefficients(q).velocity(qd), out["kinematics"]["tip_velocity"])
    check(leg.tip_coefficients(q, order=1).G, out["kinematics"]["tip_jacobian"])
    check(d.I, out["mass_matrix"])
    check(motion_torques(leg, q, qd, np.zeros(3)), out["velocity_torque"])
    check(-d.load, out["gravity_torque"])
    check(d.inverse_dynamics(qd, qdd), out["tau"])
    check(d.forward_dynamics(qd, np.array(out["tau"])), qdd)
    check(d.kinetic_energy(qd), out["kinetic_energy"])
    check(replace(leg, m1=0.0).mechanism().at(q).potential_energy(), out["potential_energy"])
    coefficients = velocity_product_coefficients(leg, q)
    assert set(coefficients) == set(out["velocity_product_coefficients"])
    for product, expected in out["velocity_product_coefficients"].items():
        check(coefficients[product], expected)
    for part, expected in out["components"].items():
        alone = only(leg, MASS_OF[part])
        check(motion_torques(alone, q, qd, qdd), expected["inertial_plus_velocity_torque"])
        check(-alone.dynamics(q).load, expected["gravity_torque"])
    # values of the misprinted formulas
    check(d.load, out["literal_wrong"]["gravity_torque_printed_sign"])
    if "tau1_with_printed_2_delta3_l2_s23" in out["literal_wrong"]:
        more = 2 * leg.M3 * leg.d3 * (leg.l2 - leg.l3) * np.sin(q[1] + q[2]) * qd[1] * qd[2]
        check(
            d.inverse_dynamics(qd, qdd)[0] + more, out["literal_wrong"]["tau1_with_printed_2_delta3_l2_s23"]
        )


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_points_and_bodies_agree_with_the_mechanism(batch: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    leg = random_leg(rng)
    q, qd, _ = motion(rng, batch)
    c = leg.mechanism().at(q)
    for closed, name in ((leg.tip_coefficients(q, 3), "tip"), (point(leg, q, 2, leg.l2, 3), "end")):
        assert agree(closed, c.coefficients(name, order=3), ("values", *"GHD"))
    contributions = c.body_contributions()
    assert len(contributions.bodies) == len(MASS_OF)
    I = contributions.I_linear + contributions.I_angular
    P = contributions.P_linear + contributions.P_angular
    for k, mass in enumerate(MASS_OF.values()):
        d = only(leg, mass).dynamics(q)
        # the mismatch is relative to the largest body
        assert np.abs(d.I - I[..., k, :, :]).max(initial=0.0) < 1e-12 * np.abs(I).max(initial=1.0)
        symmetric = (P[..., k, :, :, :] + np.swapaxes(P[..., k, :, :, :], -1, -2)) / 2
        assert np.abs(d.P - symmetric).max(initial=0.0) < 1e-12 * np.abs(P).max(initial=1.0)
    # the torques are the sum over products of velocities
    w = dict(zip("123", np.moveaxis(qd, -1, 0), strict=True))
    products = velocity_product_coefficients(leg, q)
    terms = [x * (w[n[1]] * w[n[3]])[..., None] for n, x in products.items()]
    assert mismatch(np.sum(terms, axis=0), motion_torques(leg, q, qd, 0 * qd)) < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_orders_of_points_by_complex_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    leg = random_leg(rng)
    q = rng.normal(size=(4, 3))
    steps = q[..., None, :] + 1j * STEP * np.eye(3)

    def derivative_of(found: np.ndarray) -> np.ndarray:
        return found.imag / STEP

    exact, stepped = leg.tip_coefficients(q, order=3), leg.tip_coefficients(steps, order=3)
    assert mismatch(np.swapaxes(exact.G, -1, -2), derivative_of(stepped.values)) < 1e-12
    for low, high in (("G", "H"), ("H", "D")):
        derivative = np.moveaxis(derivative_of(getattr(stepped, low)), 1, 2)
        assert mismatch(getattr(exact, high), derivative) < 1e-12


def test_orders_of_a_point_are_consistent() -> None:
    leg, q = Leg(0.5, 0.4, 7.0, 4.0, d3=0.2), [0.3, 0.9, -0.4]
    whole = leg.tip_coefficients(q, order=3)
    assert leg.tip_coefficients(q, order=1).H is None
    assert leg.tip_coefficients(q).D is None
    np.testing.assert_array_equal(leg.tip_coefficients(q).H, whole.H)


def leg_of(rng: np.random.Generator, entry: dict) -> Leg:
    """Return a random leg with mass only in the bodies of an entry, with or without offsets."""
    leg = random_leg(rng)
    leg = replace(leg, **{m: 0.0 for m in MASSES if m not in entry["bodies"]})
    if entry.get("vertical"):
        leg = replace(leg, gravity=(0.0, 0.0, -abs(leg.gravity[2])))
    return leg if entry["offsets"] else replace(leg, d2=0.0, d3=0.0)


def reference_value(leg: Leg, quantity: str, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Return a quantity of the memo by the general library."""
    c = leg.mechanism().at(q)
    d = c.dynamics()
    if quantity == "K":
        return d.kinetic_energy(qd)
    if quantity == "tip.y":
        return c.value("tip")[..., 1]
    if quantity[0] in "TG":
        torque = general_motion_torques(leg, q, qd, qdd) if quantity[0] == "T" else -d.load
        return torque[..., int(quantity[1]) - 1]
    twice = 2 if quantity.startswith("2 ") else 1
    name, _, mass = quantity.removeprefix("2 ").partition(" / ")
    value = twice * d.I[..., int(name[1]) - 1, int(name[2]) - 1]
    return value / getattr(leg, mass) if mass else value


def evaluation_of(seed: int, entry: dict) -> tuple[np.ndarray, dict]:
    """Return the value of the quantity of an entry and the variables of its formulas."""
    rng = np.random.default_rng(seed)
    leg = leg_of(rng, entry)
    q, qd, qdd = motion(rng, (5,))
    g = dict(zip(("g1", "g2", "g3"), leg.gravity, strict=True))
    names = rates(angles(asdict(leg) | g | {"g": -leg.gravity[2], "s": rng.uniform(0, leg.l3)}, q), qd, qdd)
    return reference_value(leg, entry["quantity"], q, qd, qdd), names


@pytest.mark.parametrize("entry", DATA["formulas"], ids=lambda e: f"p{e['page']} {e['quantity']}")
def test_printed_formulas(entry: dict) -> None:
    expected, names = evaluation_of(entry["page"], entry)
    assert relative_difference(evaluate(entry["formula"], names), expected) < 1e-12


@pytest.mark.parametrize("entry", FORMULA_ERRATA, ids=lambda e: f"{e['id']} p{e['page']} {e['quantity']}")
def test_errata(entry: dict) -> None:
    expected, names = evaluation_of(entry["page"], entry)
    assert relative_difference(evaluate(entry["correct"], names), expected) < 1e-12
    assert relative_difference(evaluate(entry["as_read"], names), expected) > 1e-3
    if entry["id"] == "A1":  # only the sign is wrong
        assert relative_difference(-evaluate(entry["as_read"], names), expected) < 1e-12
    assert entry["why"]


def test_every_erratum_has_a_reason() -> None:
    assert {e["id"] for e in DATA["errata"]} == {f"A{k}" for k in range(1, 11)}
    assert all(e["why"] for e in DATA["errata"])


@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_velocity_products_of_link_2_vanish_at_right_angles(offset: float) -> None:
    """Coefficients of w1 w2 and w1² vanish at multiples of 90 degrees (p. 14)."""
    leg = Leg(0.5, 0.4, 7.0, 0.0, d2=offset)
    right_angles = np.stack([np.zeros(5), np.arange(-2, 3) * np.pi / 2, np.full(5, 0.3)], axis=-1)
    c = velocity_product_coefficients(leg, right_angles)
    for product in ("w1w1", "w1w2", "w2w3", "w3w3", "w3w1"):
        assert np.abs(c[product]).max() < 1e-14
    # an offset leaves the centrifugal term of link 2 about the waist
    assert np.abs(c["w2w2"]).max() == pytest.approx(7.0 * 0.25 * offset)
    between = velocity_product_coefficients(leg, [0.0, 0.7, 0.3])
    assert abs(between["w1w2"][0]) > 0.1
    assert abs(between["w1w1"][1]) > 0.1


def test_coriolis_torques_of_single_velocities_vanish() -> None:
    """The torque T1 has no w1² term and T2 of link 2 no w2² term."""
    q, leg = np.array([0.4, 0.7, 0.3]), Leg(0.5, 0.4, 7.0, 0.0, gravity=(0, 0, 0))
    for joint in (0, 1):
        qd = np.eye(3)[joint]
        assert abs(leg.dynamics(q).inverse_dynamics(qd, np.zeros(3))[joint]) < 1e-14
    assert not leg.dynamics(q).inverse_dynamics(np.zeros(3), np.zeros(3)).any()


def test_velocity_products_that_cancel_with_offsets() -> None:
    """T2 has no w1 w2 and w1 w3, and T3 no w1 w2, w2 w3 and w3 w1, because two terms cancel (pp. 35, 36)."""
    rng = np.random.default_rng(5)
    leg, q = random_leg(rng), rng.normal(size=(50, 3))
    c = velocity_product_coefficients(leg, q)
    P = leg.mechanism().at(q).dynamics().P
    for product, torque, (a, b) in [
        ("w1w2", 1, (0, 1)), ("w3w1", 1, (0, 2)), ("w1w2", 2, (0, 1)), ("w2w3", 2, (1, 2)),
        ("w3w1", 2, (0, 2)),
    ]:  # fmt: skip
        assert np.abs(c[product][:, torque]).max() < 1e-14 * np.abs(P).max()
        assert np.abs(P[:, torque, a, b]).max() < 1e-14 * np.abs(P).max()
    # the cancelling terms ∂I_12/∂θ₃ and ∂I_13/∂θ₂ are equal and not zero
    gradient = leg.dynamics(q).inertia_gradient()
    assert np.abs(gradient[:, 0, 1, 2]).min() > 1e-4
    assert_allclose(gradient[:, 0, 2, 1], gradient[:, 0, 1, 2], rtol=1e-12)


def test_column_height_and_energy_of_thin_rods() -> None:
    """The height has no effect (p. 8). The energy of a rod follows from v² = a + b s + c s² (p. 4)."""
    rng = np.random.default_rng(2)
    leg = random_leg(rng)
    q, qd, qdd = motion(rng)
    for height in (0.0, 5.0):
        other = replace(leg, H=height)
        np.testing.assert_array_equal(leg.dynamics(q).I, other.dynamics(q).I)
        effort = other.mechanism().at(q).dynamics().inverse_dynamics(qd, qdd)
        assert relative_difference(effort, leg.dynamics(q).inverse_dynamics(qd, qdd)) < 1e-12
    places = np.array([0.1, 0.5, 1.0]) * leg.l3
    c, b, a = np.polyfit(places, [(point(leg, q, 3, s).velocity(qd) ** 2).sum() for s in places], 2)
    energy = leg.m3 / 2 * (a + b * leg.l3 / 2 + c * leg.l3**2 / 3)
    assert only(leg, "m3").dynamics(q).kinetic_energy(qd) == pytest.approx(energy, rel=1e-12)
    upright = Leg(0.5, 0.4, 7.0, 4.0, m1=10.0, R=0.1)
    assert upright.dynamics([0.0, 0.0, 0.0]).I[0, 0] == pytest.approx(10.0 * 0.01 / 2)


@pytest.mark.parametrize(
    ("model", "more"), [("leg", {}), ("leg-offsets", {"M2": 1.7, "M3": 2.4, "d2": 0.13, "d3": 0.07})]
)
def test_model_files_equal_the_mechanism(model: str, more: dict) -> None:
    m = kic.load(model)
    leg = Leg(l2=0.48, l3=0.39, m2=7.3, m3=4.1, m1=12.5, R=0.11, H=0.6, **more)
    drawn = leg.mechanism()
    assert m.at()._phi.tolist() == [0.0, np.pi / 2, np.pi / 2]
    for part in ("points", "joints", "distances"):
        assert [p.name for p in getattr(m, part)] == [p.name for p in getattr(drawn, part)]
    for shipped, made in zip(m.bodies, drawn.bodies, strict=True):
        assert_allclose(shipped.inertia, made.inertia, rtol=1e-14)
        assert_allclose(shipped.com, made.com, rtol=1e-14)
    q, qd, qdd = motion(np.random.default_rng(0), (4,))
    effort = m.at(q).dynamics().inverse_dynamics(qd, qdd)
    assert mismatch(effort, leg.dynamics(q).inverse_dynamics(qd, qdd)) < 1e-12
    assert mismatch(m.at(q).value("tip"), leg.tip_coefficients(q).values) < 1e-12
    if not more:  # statement of the model file
        reach = m.at(q).coefficients("reach", order=1).G
        assert np.abs(reach[..., :2]).max() < 1e-14


def test_massless_column_is_singular() -> None:
    q = np.zeros(3)
    caught = refuses(lambda: Leg(0.5, 0.4, 7.0, 4.0).dynamics(q).forward_dynamics(q, q), kic.SingularError)
    assert np.isinf(caught.condition)
