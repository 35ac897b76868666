"""The dissertation's chains and case tables: coefficients, inertia, efforts."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from arms import DATA, arm, frames
from sampling import derivative, mismatch

CHAINS = DATA["chains"]
ROTATION = ["wx", "wy", "wz"]


def test_every_reference_number_is_tested() -> None:
    """Keys of the chains and of the hand: inputs, and numbers compared by tests (T_j in test_dh.py)."""
    given = {"chain", "phi", "phid", "phidd", "link_j", "P_local", "sources"}
    compared = {"P", "T_j", "trans", "rot", "I", "P_star", "tau_no_gravity", "dtau_dphi", "dtau_dphid"}
    for case in CHAINS:
        assert set(case) == given | compared
        assert set(case["trans"]) == set(case["rot"]) == {"G", "H", "D"}
    hand = {"G_phi_q", "H_phiphi_q", "D_phi_q", "I_phi", "P_phi"}
    inverted = {"G_q_phi", "H_qq_phi", "D_qqq_phi", "I_qq", "P_qqq"}  # in test_transfer_by_hand.py
    asked = {"chain", "phi", "P_local", "q", "cond_G", "formula_3_47"}
    assert set(DATA["transfer_hand"]) == asked | hand | inverted


@pytest.mark.parametrize("case", CHAINS, ids=lambda case: case["chain"]["types"])
def test_chains(case: dict) -> None:
    c = arm(case["chain"], hand=case["P_local"]).at(case["phi"])
    link = f"l{case['link_j']}"
    trans = c.coefficients("hand", order=3)
    rot = c.coefficients([f"{link}.{w}" for w in ROTATION], order=3)
    assert mismatch(c.value("hand"), np.array(case["P"])) < 1e-12
    for found, kind in ((trans, "trans"), (rot, "rot")):
        for letter in "GHD":
            assert mismatch(getattr(found, letter), np.array(case[kind][letter])) < 1e-12, (kind, letter)
    d = c.dynamics()
    assert mismatch(d.I, np.array(case["I"])) < 1e-12
    assert mismatch(d.inverse_dynamics(case["phid"], case["phidd"]), np.array(case["tau_no_gravity"])) < 1e-12
    # Freeman's own sums are not symmetric; entry by entry they are the source's P*
    parts = c.body_contributions()
    freeman = (parts.P_linear + parts.P_angular).sum(axis=0)
    assert mismatch(freeman, np.array(case["P_star"])) < 1e-12
    assert mismatch((freeman + freeman.swapaxes(1, 2)) / 2, d.P) < 1e-12


@pytest.mark.parametrize("case", CHAINS, ids=lambda case: case["chain"]["types"])
def test_derivatives_of_the_effort(case: dict) -> None:
    c = arm(case["chain"]).at(case["phi"])
    v, a = np.array(case["phid"]), np.array(case["phidd"])
    along = derivative(c, lambda x: x.dynamics().inverse_dynamics(v, a))
    assert mismatch(along, np.array(case["dtau_dphi"])) < 1e-12
    d = c.dynamics()
    by_rate = np.einsum("kab,b->ka", d.P + d.P.swapaxes(1, 2), v)
    assert mismatch(by_rate, np.array(case["dtau_dphid"])) < 1e-12


def test_the_arm_of_the_third_order_transfer() -> None:
    case = DATA["transfer_hand"]
    c = arm(case["chain"], hand=case["P_local"]).at(case["phi"])
    rows = c.coefficients(["hand", *(f"l6.{w}" for w in ROTATION)], order=3)
    assert mismatch(rows.G, np.array(case["G_phi_q"])) < 1e-12
    assert mismatch(rows.H, np.array(case["H_phiphi_q"])) < 1e-12
    assert mismatch(rows.D, np.array(case["D_phi_q"])) < 1e-12
    assert np.linalg.cond(rows.G) == pytest.approx(case["cond_G"], rel=1e-12)
    parts, d = c.body_contributions(), c.dynamics()
    assert mismatch(d.I, np.array(case["I_phi"])) < 1e-12
    assert mismatch((parts.P_linear + parts.P_angular).sum(axis=0), np.array(case["P_phi"])) < 1e-12


class Vector:
    """A vector for which @ is the cross product, so that a printed rule can be evaluated as it stands."""

    def __init__(self, v: np.ndarray) -> None:
        self.v = v

    def __matmul__(self, other: Vector) -> Vector:
        return Vector(np.cross(self.v, other.v))


def evaluate(rule: str, names: dict[str, int], axes: list[np.ndarray], arms: list[np.ndarray]) -> np.ndarray:
    """A rule of the tables, such as 's^l x (s^m x (P-R^m))', for given indices."""
    if rule == "0":
        return np.zeros(3)
    code = re.sub(r"\(P-R\^([lmn])\)", r"p['\1']", rule)
    code = re.sub(r"s\^([lmn])", r"s['\1']", code).replace(" x ", " @ ")
    s = {k: Vector(axes[i]) for k, i in names.items()}
    p = {k: Vector(arms[i]) for k, i in names.items()}
    return eval(code, {}, {"s": s, "p": p}).v


def ordering(names: dict[str, int]) -> list[str]:
    """All ways in which the weak order of the indices can be written ('l=m<n')."""
    groups: dict[int, list[str]] = {}
    for name, i in names.items():
        groups.setdefault(i, []).append(name)
    return ["<".join("=".join(sorted(groups[i])) for i in sorted(groups))]


@pytest.mark.parametrize("types", ["".join(t) for t in product("RP", repeat=4)])
def test_case_tables(types: str) -> None:
    """Tables 2-3 to 2-5, row by row, on every four-joint chain of revolutes and sliders."""
    rng = np.random.default_rng(int("".join("01"["RP".index(t)] for t in types), 2))
    chain = {
        "types": types,
        "a": rng.normal(size=3).tolist(),
        "alpha": rng.normal(size=3).tolist(),
        "s": rng.normal(size=4).tolist(),
        "theta": rng.normal(size=4).tolist(),
    }
    phi, local = rng.normal(size=4), rng.normal(size=3)
    c = arm(chain, hand=tuple(local)).at(phi)
    T, R = frames(chain, phi)
    axes, arms = [t[:, 2] for t in T], [R[-1] + T[-1] @ local - r for r in R]
    trans = c.coefficients("hand", order=3)
    rot = c.coefficients([f"l4.{w}" for w in ROTATION], order=3)
    rows = {}
    for table in ("first", "second", "third"):
        for entry in DATA["case_tables_corrected"][table]:
            kinds = "".join(entry["types"][k] for k in sorted(entry["types"]))
            rows[entry["order"], kinds] = entry
    used = set()
    for letters, tensor in (("n", "G"), ("mn", "H"), ("lmn", "D")):
        for indices in product(range(4), repeat=len(letters)):
            names = dict(zip(letters, indices, strict=True))
            kinds = "".join(types[names[k]] for k in sorted(names))
            key = (*ordering(names), kinds)
            used.add(key)
            for found, column in ((trans, "translational"), (rot, "rotational")):
                wanted = evaluate(rows[key][column], names, axes, arms)
                got = getattr(found, tensor)[(slice(None), *indices)]
                assert np.abs(got - wanted).max() < 1e-12 * max(1, np.abs(wanted).max()), (key, column)
    assert len(used) > 10
