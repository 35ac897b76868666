"""Planar arm of point masses: closed form, printed forces between links and errata of the source."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from classic_arms import random_motion as motion
from classic_arms import random_point_masses as random_arm
from expressions import angles, evaluate, rates, relative_difference

from kic.classics import PointMassArm

DATA = json.loads((Path(__file__).parents[1] / "data" / "point_mass_arm.json").read_text(encoding="utf-8"))
CASES = DATA["cases"]["cases"]
FORMULA_ERRATA = [e for e in DATA["errata"] if "quantity" in e]
ARM = PointMassArm()


def variables(arm: PointMassArm, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict:
    """Return the variables of the printed formulas."""
    return rates(angles(asdict(arm), q), qd, qdd)


def in_link_frame(vector: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return world components (..., 3) in a link frame with absolute angle `angle` (...)."""
    c, s, (x, y, z) = np.cos(angle), np.sin(angle), np.moveaxis(vector, -1, 0)
    return np.stack([c * x + s * y, c * y - s * x, z], axis=-1)


def reference_value(arm: PointMassArm, quantity: str, *given: np.ndarray) -> np.ndarray:
    """Return a quantity of the source by the general library."""
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
        return d.inverse_dynamics(qd, qdd)[..., int(quantity[3]) - 1]
    length, _, force = quantity.rpartition(" ")
    link, axis = int(force[1]), "xy".index(force[2])
    # f3y is needed in frame 2, where it contributes to the moment about joint 2
    frame = 2 if quantity == "l2 f3y" else link
    angle = np.cumsum(q, axis=-1)[..., frame - 1]
    found = link_wrenches(arm, *given, angle=angle)[link][0][..., axis]
    return found * (getattr(arm, length) if length else 1.0)


def link_wrenches(arm: PointMassArm, q, qd, qdd, angle=None) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return force and moment at each joint in the frame of its link, or in frames at an absolute angle."""
    forces, angles_of = arm.mechanism().at(q).joint_forces(qd, qdd), np.cumsum(q, axis=-1)
    wrenches = {k: forces[f"joint{k}"] for k in (1, 2, 3)}
    frames = {k: angles_of[..., k - 1] if angle is None else angle for k in wrenches}
    return {
        k: (in_link_frame(w.force, frames[k]), in_link_frame(w.moment, frames[k]))
        for k, w in wrenches.items()
    }


def test_defaults_are_those_of_the_source() -> None:
    assert asdict(ARM) == DATA["cases"]["parameters"]


@pytest.mark.parametrize("case", CASES, ids=["first", "second"])
def test_reference_cases(case: dict) -> None:
    q, qd, qdd = (np.array(case[x]) for x in ("q", "qd", "qdd"))
    out, m = case["outputs"], ARM.mechanism().at(case["q"])
    d, n, newton = ARM.dynamics(q), link_wrenches(ARM, q, qd, qdd), case["outputs"]["newton_euler"]

    def check(found: np.ndarray, expected: object) -> None:
        assert np.abs(found - np.array(expected)).max() <= 1e-12 * max(1.0, np.abs(expected).max())

    check(m.value("frame2")[:2], out["origin_frame2"])
    check(m.value("frame3")[:2], out["origin_frame3"])
    for model in (d, m.dynamics()):
        check(model.I, out["mass_matrix"])
        check(np.einsum("kab,a,b->k", model.P, qd, qd), out["velocity_torque"])
        check(-model.load, out["gravity_torque"])
        check(model.inverse_dynamics(qd, qdd), out["tau"])
    for k, force, moment in ((3, "F3_in_3", None), (2, "f2_in_2", "n2z"), (1, "f1_in_1", "n1z")):
        check(n[k][0][:2], newton[force])
        if moment:
            check(n[k][1][2], newton[moment])
    check(ARM.forward_kinematics(q)[:2], out["origin_frame3"])
    # the printed result from its printed entries
    printed = {
        e["quantity"]: e["as_read"]
        for e in FORMULA_ERRATA
        if e["id"] not in ("D1", "D2", "D3", "D4", "D5", "D6")
    }
    printed |= {e["quantity"]: e["formula"] for e in DATA["right"]}
    names, wrong = variables(ARM, q, qd, qdd), out["document_literal_wrong"]
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


def test_nothing_depends_on_joint_3() -> None:
    rng = np.random.default_rng(1)
    q, qd, qdd = motion(rng)
    other = q + np.array([0.0, 0.0, 1.3])
    np.testing.assert_array_equal(ARM.dynamics(q).I, ARM.dynamics(other).I)
    np.testing.assert_array_equal(
        ARM.dynamics(q).inverse_dynamics(qd, qdd), ARM.dynamics(other).inverse_dynamics(qd, qdd)
    )
    assert ARM.dynamics(q).inverse_dynamics(qd, qdd)[2] == pytest.approx(0.1 * qdd.sum())


def evaluation_of(seed: int, masses: list[str]) -> tuple[PointMassArm, tuple[np.ndarray, ...], dict]:
    """Return a random arm with the named masses only, a motion, and the variables of the formulas."""
    rng = np.random.default_rng(seed)
    arm = random_arm(rng)
    without = {m: 0.0 for m in ("m1", "m2", "m3") if m not in masses}
    arm = replace(arm, **without, **({"Izz": 0.0} if "m3" in without else {}))
    given = motion(rng, (6,))
    return arm, given, variables(arm, *given)


@pytest.mark.parametrize("entry", FORMULA_ERRATA, ids=lambda e: f"{e['id']} {e['quantity']}")
def test_errata(entry: dict) -> None:
    """The corrected formula is right; the printed one differs from it by exactly the stated terms."""
    arm, given, names = evaluation_of(int(entry["id"][1:]), entry["masses"])
    expected = reference_value(arm, entry["quantity"], *given)
    as_read, difference = (evaluate(entry[x], names) for x in ("as_read", "difference"))
    assert relative_difference(evaluate(entry["correct"], names), expected) < 1e-12
    assert relative_difference(as_read, expected + difference) < 1e-12
    assert np.abs(difference).max() > 1e-3 * np.abs(expected).max()
    assert entry["why"]


@pytest.mark.parametrize("entry", DATA["right"], ids=lambda e: e["quantity"])
def test_correct_printed_formulas(entry: dict) -> None:
    arm, given, names = evaluation_of(17, ["m1", "m2", "m3"])
    quantity = entry["quantity"].replace("F", "f")
    expected = reference_value(arm, quantity, *given)
    assert np.abs(evaluate(entry["formula"], names) - expected).max() < 1e-12 * max(
        1.0, np.abs(expected).max()
    )


def test_every_erratum_has_a_reason() -> None:
    assert {e["id"] for e in DATA["errata"]} == {f"D{k}" for k in range(1, 15)}
    assert all(e["why"] for e in DATA["errata"])
    # D7 to D10: the printed formulas are right for m3 = 0
    arm, given, names = evaluation_of(3, ["m1", "m2"])
    for entry in FORMULA_ERRATA:
        if entry["id"] in ("D7", "D8", "D9", "D10"):
            expected = reference_value(arm, entry["quantity"], *given)
            assert relative_difference(evaluate(entry["as_read"], names), expected) < 1e-12, entry["id"]


def test_common_cause_of_the_errata() -> None:
    """The wrong moment of link 3 about joint 2 uses its force in frame 3."""
    rng = np.random.default_rng(7)
    q, qd, qdd = motion(rng, (4,))
    entry = next(e for e in FORMULA_ERRATA if e["id"] == "D1")
    as_read = evaluate(entry["as_read"], variables(ARM, q, qd, qdd))
    assert relative_difference(as_read, ARM.l2 * link_wrenches(ARM, q, qd, qdd)[3][0][..., 1]) < 1e-12
