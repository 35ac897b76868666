"""Sets of coordinates that can drive a mechanism: ranked, counted, and the same in every unit."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from linkages import closed_gap
from raising import refuses

import kic
from kic.mechanism import input_sets


def by_hand(
    m: kic.Mechanism, c: kic.Configuration, names: tuple[str, ...], reference: tuple[str, ...]
) -> float:
    """The least that names move, by way of the rates of all joints in some regular coordinates."""
    tree = m._model.tree.columns
    X = c.coefficients(list(tree), wrt=reference, order=1).G
    basis = np.linalg.qr(X)[0]
    J = c.coefficients(list(names), wrt=reference, order=1).G @ np.linalg.lstsq(X, basis, rcond=None)[0]
    return np.linalg.svd(J, compute_uv=False)[-1]


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "geared-five-bar", "three-legged-robot", "ladder"])
def test_every_set_against_the_coefficients(name: str) -> None:
    """Revolutes only: nothing is scaled, so that the measure follows from G in any coordinates."""
    m = kic.load(name)
    c = m.at()
    joints = [j.name for j in m.joints]
    found = m.mobility().independent_sets(count=10_000)
    assert found.tried == found.total == comb(len(joints), m.dof)
    assert (np.diff([one.worst for one in found]) < 1e-9).all()
    assert set(found.of) == set(joints)
    for one in found:
        assert one.worst == one.median
        assert one.where == ()
        assert abs(one.worst - by_hand(m, c, one.names, m.coordinates)) < 1e-12
    left_out = set(combinations(sorted(joints), m.dof)) - {tuple(sorted(one.names)) for one in found}
    for names in left_out:
        refuses(lambda names=names: c.coefficients(joints[0], wrt=names), kic.SingularError)


def test_the_best_set_drives_and_is_fit_for_wrt_and_at() -> None:
    m = kic.load("five-bar")
    c = m.at({"A": 1.3, "E": 1.5})
    best = m.mobility().independent_sets(c)[0].names
    assert m.mobility(c).independent_sets().sets == m.mobility().independent_sets(c).sets
    c.coefficients("tip", wrt=best)
    again = m.at({name: c.value(name) for name in best}, near=m.at({"A": 1.25, "E": 1.55}))
    np.testing.assert_allclose(again.value("tip"), c.value("tip"), rtol=1e-12)


def test_over_a_batch_the_worst_configuration_counts() -> None:
    m = kic.load("four-bar")
    turn = m.path({"A": 1 + np.linspace(0, 2 * np.pi, 40)})
    found = {one.names: one for one in m.mobility().independent_sets(turn)}
    assert len(found) == 4
    for names, one in found.items():
        single = [by_hand(m, m.at({"A": a}), names, ("A",)) for a in turn.value("A")[:8]]
        measures = turn.singularities(drivers=names).measures["inputs"]
        np.testing.assert_allclose(measures[:8], single, atol=1e-12)
        # singular values of matrices of order one are known to a few eps
        assert one.worst == pytest.approx(measures.min(), abs=1e-13)
        assert one.median == pytest.approx(np.median(measures), abs=1e-13)
        assert measures[one.where] == pytest.approx(one.worst, abs=1e-13)
    assert m.mobility().independent_sets(turn)[0].names == ("A",)  # a crank: no dead centre
    assert "worst member" in str(m.mobility().independent_sets(turn).summary())


def test_members_without_a_configuration_are_passed_over() -> None:
    m = kic.load("four-bar")
    a = np.array([[1.0, np.nan, 1.4], [0.8, 1.2, np.inf]])
    c = m.at({"A": a}, failures="mask")
    fine = m.at({"A": a[c.ok]})
    for one, other in zip(m.mobility().independent_sets(c), m.mobility().independent_sets(fine), strict=True):
        assert one.names == other.names
        assert (one.worst, one.median) == pytest.approx((other.worst, other.median), abs=1e-13)
        assert c.ok[one.where]
        assert a[one.where] == a[c.ok][other.where]


def test_units_do_not_matter() -> None:
    """The same slider-crank in metres and in millimetres."""

    def crank(unit: float) -> kic.Mechanism:
        at = unit * np.array([[0, 0, 0], [0.1, 0.2, 0], [0.7, 0, 0]])
        return kic.Mechanism(
            "slider-crank",
            [kic.Body(n) for n in ("crank", "rod", "piston")],
            [
                kic.Joint("A", "revolute", ("ground", "crank"), at=tuple(at[0]), axis=(0, 0, 1)),
                kic.Joint("B", "revolute", ("crank", "rod"), at=tuple(at[1]), axis=(0, 0, 1)),
                kic.Joint("C", "revolute", ("rod", "piston"), at=tuple(at[2]), axis=(0, 0, 1)),
                kic.Joint("P", "prismatic", ("ground", "piston"), at=tuple(at[2]), axis=(1, 0, 0)),
            ],
            points=[kic.Point("pin", "rod", tuple(at[1]))],
        )

    among = ["A", "B", "C", "P", "pin.x", "pin.y"]
    metres, mm = (crank(unit).mobility().independent_sets(of=among) for unit in (1.0, 1000.0))
    assert len(metres) == 6
    for one, other in zip(metres, mm, strict=True):
        assert one.names == other.names
        assert one.worst == pytest.approx(other.worst, rel=1e-12)


def test_ties_keep_the_order_of_the_description() -> None:
    """The four joints of a Bennett linkage turn alike two by two, and by rounding alone one is better."""
    found = kic.load("bennett").mobility().independent_sets()
    assert abs(found[0].worst - found[1].worst) < 1e-9 < found[1].worst - found[2].worst
    assert [one.names for one in found] == [("A",), ("C",), ("B",), ("D",)]


def test_passive_dof_are_in_every_set() -> None:
    """The spin of a rod between two balls appears only in rates of the balls and of the rod."""
    m = kic.load("rssr")
    found = m.mobility().independent_sets(count=1000)
    assert found.always == ("spin",)
    assert all("spin" in one.names for one in found)
    assert "in every set: spin" in str(found.summary())
    # without the spin's own coordinate the rate of a ball stands in, and for nothing else
    joints = [c for j in m.joints if j.name != "spin" for c in j.components]
    rest = m.mobility().independent_sets(of=joints, count=1000)
    assert len(rest)
    valued = {"crank", "rocker", "pin.1", "pin.2"}
    for one in rest:
        assert len(valued & set(one.names)) == 1, one.names


def crank_and_ball() -> kic.Mechanism:
    """A crank and a body on a ball, tied by a rod."""
    return kic.Mechanism(
        "pair",
        [kic.Body("crank"), kic.Body("body")],
        [
            kic.Joint("A", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=(0, 0.6, 0.8)),
            kic.Joint("S", "spherical", ("ground", "body"), at=(1, 0, 0)),
        ],
        points=[kic.Point("p", "crank", (0.3, 0.9, 0.2)), kic.Point("q", "body", (1.4, 0.1, 0.8))],
        distances=[kic.Distance("rod", ("p", "q"), fixed=True)],
        coordinates=[],
    )


def test_rows_with_values_are_preferred_in_every_set() -> None:
    """The three rates of the ball could drive the crank, too; but they have no value."""
    found = crank_and_ball().mobility().independent_sets()
    assert found.dof == 3
    assert set.intersection(*(set(one.names) for one in found)) == {"A"}
    assert found.always == ("A",)
    assert crank_and_ball().mobility().independent_sets(of="S").always == ("S.1", "S.2", "S.3")


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_sliders_alone_in_a_loop_are_as_long_as_the_mechanism(unit: float) -> None:
    """Directions of sliders are not lengths: the characteristic length of the loop scales with the unit."""

    def at(*v: float) -> tuple:
        return tuple((unit * np.array(v)).tolist())

    m = kic.Mechanism(
        "cross slide",
        [kic.Body(name) for name in ("base", "wedge", "crank", "bar")],
        [
            kic.Joint("X", "prismatic", ("ground", "base"), axis=(1, 0, 0)),
            kic.Joint("Y", "prismatic", ("base", "wedge"), axis=(0.6, 0.8, 0)),
            kic.Joint("A", "revolute", ("ground", "crank"), at=at(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("B", "revolute", ("crank", "bar"), at=at(1, 0.7, 0), axis=(0, 0, 1)),
            kic.Joint("C", "revolute", ("bar", "base"), at=at(2.5, 0.2, 0), axis=(0, 0, 1)),
            kic.Joint("Z", "prismatic", ("ground", "wedge"), axis=(0, 1, 0)),
        ],
        coordinates=["A"],
    )
    assert m.mobility().caveat() == ""
    best = m.mobility().independent_sets()
    names = ["A", "B", "C", "X", "Y", "Z"]
    G = m.at().coefficients(names, order=1).G[:, 0] / np.repeat([1, 2.5 * unit], 3)
    tree = [names.index(name) for name in m._model.tree.columns]
    for one in best:
        expected = np.abs(G[names.index(one.names[0])]) / np.linalg.norm(G[tree])
        assert one.worst == pytest.approx(expected, rel=1e-9)


def test_an_exchange_reports_that_not_all_were_tried_and_finds_no_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = kic.load("three-legged-robot")
    c = m.at({"A1": 1.38974986604135 + np.linspace(0, 0.2, 5), "A2": -2.8, "A3": -0.7})
    full = m.mobility().independent_sets(c)
    monkeypatch.setattr(input_sets, "ALL_SETS_MAX", 10)
    some = m.mobility().independent_sets(c)
    assert some.tried < some.total == full.total == 84
    assert some[0].worst == pytest.approx(full[0].worst, abs=1e-13)
    assert "not" not in str(full.summary())
    assert f"{some.tried} of 84 sets were tried" in " ".join(str(some.summary()).split())
    assert "a better one may exist" in " ".join(str(some.summary()).split())
    big = kic.load("stewart-6r").mobility().independent_sets(count=3)
    assert big.total == comb(36, 6)
    assert big.tried < big.total
    kic.load("stewart-6r").at().coefficients("C1", wrt=big[0].names)


def test_the_errors_name_the_same_sets() -> None:
    m = kic.load("four-bar")
    c = m.at({"A": np.pi})  # C turns back where the crank lies along the ground link
    caught = refuses(lambda: c.coefficients("tip", wrt="C"), kic.SingularError)
    tree = [
        one.names
        for one in m.mobility().independent_sets(c, of=list(m._model.tree.columns))
        if one.worst > 1e-3
    ]
    said = [tuple(names.split(", ")) for names in caught.possible]
    assert set(said) == set(tree)
    assert [x for x in said if x != ("A",)] == [x for x in tree if x != ("A",)]


def test_coordinates_of_open_arms() -> None:
    arm = kic.load("horn-two-link")
    assert [one.names for one in arm.mobility().independent_sets()] == [("shoulder", "elbow")]
    assert arm.mobility().independent_sets()[0].worst == 1.0
    assert "there is no other set" in arm.mobility().independent_sets().summary().text()
    c = arm.at([0.3, 0.9])
    found = arm.mobility().independent_sets(c, of=["tip.x", "tip.y", "shoulder"])
    assert len(found) == 3
    tip = next(one for one in found if one.names == ("tip.x", "tip.y"))
    length = arm._model.length
    G = c.coefficients(["tip.x", "tip.y"], order=1).G / length
    assert tip.worst == pytest.approx(np.linalg.svd(G, compute_uv=False)[-1], rel=1e-12)


def test_zero_distance_has_no_rates() -> None:
    m = closed_gap()
    refuses(lambda: m.mobility().independent_sets(of=["A", "gap"]), names=("A", "gap"))
    assert len(m.mobility().independent_sets(m.at([0.4]), of=["A", "gap"])) == 2
