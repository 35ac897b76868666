"""Finite and infinitesimal mobility: trusses, osculating curves, overconstrained linkages."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import linkages
import numpy as np
import pytest
from click.testing import CliRunner
from linkages import hinged
from raising import raises

import kic
from kic.kinematics.state import integrate
from kic.transfer.mobility.finite_mobility import definite, extends, extension, obstructions
from kic.ui.cli.main import main

Z = (0, 0, 1)


FOUR = kic.load("four-bar")


def held(m: kic.Mechanism, point: str, post) -> kic.Mechanism:
    """The same with a rod from a point of it, as drawn, to a post on ground."""
    return replace(
        m,
        points=[*m.points, kic.Point("post", "ground", tuple(post))],
        distances=[*m.distances, kic.Distance("rod", ("post", point), fixed=True)],
        coordinates=[],
    )


def curve(m: kic.Mechanism, point: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Point, velocity, acceleration and jerk along the reference configuration's one coordinate."""
    c = m.at().coefficients(point, order=3)
    return c.values, c.G[:, 0], c.H[:, 0, 0], c.D[:, 0, 0, 0]


def centre(m: kic.Mechanism, point: str) -> np.ndarray:
    """Centre of curvature of a point's path."""
    p, v, a, _ = curve(m, point)
    normal = np.cross(Z, v)
    return p + normal * (v @ v) / (a @ normal)


def bend_of_bend(m: kic.Mechanism, point: str) -> float:
    """Third order of |p − c|²/2 along the path, about the centre of curvature: zero at a vertex."""
    p, v, a, j = curve(m, point)
    return float(3 * v @ a + (p - centre(m, point)) @ j)


def test_a_rod_to_a_point_on_a_path() -> None:
    """The rod's circle touches the coupler curve as closely as its post is chosen, and that is the order.

    On the normal: first. In the centre of curvature: second. There, at a vertex of the curve: third.
    """
    p, v, _, _ = curve(FOUR, "tip")
    c = centre(FOUR, "tip")
    assert abs(bend_of_bend(FOUR, "tip")) > 1e-3
    firm = held(FOUR, "tip", p + v / np.linalg.norm(v)).mobility()
    assert (firm.first_order, firm.finite, firm.extends, firm.dof) == (0, True, None, 0)
    touching = held(FOUR, "tip", p + 0.5 * (c - p)).mobility()
    assert (touching.first_order, touching.finite, touching.extends, touching.dof) == (1, False, 1, 0)
    assert "It is rigid, but infinitesimally mobile: " in touching.caveat()
    osculating = held(FOUR, "tip", c).mobility()
    assert (osculating.first_order, osculating.finite, osculating.extends) == (1, False, 2)
    assert (osculating.dof, osculating.infinitesimal) == (0, 1)
    assert [(x.verdict, x.order) for x in osculating.motions] == [("obstructed", 3)]
    assert osculating.caveat() == (
        "It is rigid, but infinitesimally mobile: at the reference configuration the closure conditions are "
        "dependent and leave 1 degree of freedom to first order, and no motion extends to third order."
    )


def test_third_order_is_reached_at_a_vertex() -> None:
    """In the symmetric configuration of a symmetric linkage the coupler curve has a vertex."""
    m = hinged(
        [(0, 0, 0), (0.5, 1.0, 0), (1.5, 1.0, 0), (2, 0, 0)], points=[kic.Point("mid", "bar2", (1, 1.7, 0))]
    )
    assert abs(bend_of_bend(m, "mid")) < 1e-12
    f = held(m, "mid", centre(m, "mid")).mobility()
    assert (f.first_order, f.finite, f.extends) == (1, False, 3)
    assert f.caveat().endswith("and no motion extends to 4th order.")
    # a bar of the rocker's length to the rocker's own centre is no tie at all: it goes on
    free = held(replace(m, points=[kic.Point("C2", "bar3", (1.5, 1, 0))]), "C2", (2, 0, 0)).mobility()
    assert (free.finite, free.extends, free.regular, free.dof) == (True, None, True, 1)


def pair_of_rods(height: float) -> kic.Mechanism:
    """A point of space on three sliders, between two posts on x: two ways to shake."""
    bodies = [kic.Body(name) for name in "abc"]
    chain = ["ground", "a", "b", "c"]
    joints = [
        kic.Joint("XYZ"[k], "prismatic", pair, axis=tuple(axis))
        for k, (pair, axis) in enumerate(zip(pairwise(chain), np.eye(3), strict=True))
    ]
    points = [
        kic.Point("left", "ground", (-1, 0, 0)),
        kic.Point("right", "ground", (1, 0, 0)),
        kic.Point("p", "c", (0, height, 0)),
    ]
    rods = [
        kic.Distance(name, (f"{side}", "p"), fixed=True) for name, side in (("r0", "left"), ("r1", "right"))
    ]
    return kic.Mechanism("rods", bodies, joints, points=points, distances=rods, coordinates=[])


def test_several_ways_to_shake() -> None:
    """In one line the middle of two rods may shake two ways, and each stretches both; bent, it turns."""
    f = pair_of_rods(0.0).mobility()
    assert (f.first_order, f.finite, f.extends, f.dof) == (2, False, 1, 0)
    bent = pair_of_rods(0.5).mobility()
    assert (bent.first_order, bent.finite, bent.dof, bent.regular) == (1, True, 1, True)


def bennett() -> kic.Mechanism:
    return hinged(*linkages.bennett())


def sarrus() -> kic.Mechanism:
    """Two pairs of plates at right angles guide a table along z."""
    places = [(1, 0, 0), (1.5, 0, 0.6), (1, 0, 1.2), (0, 1, 1.2), (0, 1.5, 0.6), (0, 1, 0)]
    y, x = (0, 1, 0), (1, 0, 0)
    return hinged(places, [y, y, y, x, x, x])


FINITE = {
    "Bennett": (bennett(), 1, 3),
    "Sarrus": (sarrus(), 1, 1),
    "plane in space": (kic.load("four-bar"), 1, 3),
    "parallelogram": (hinged([(0, 0, 0), (0.6, 0.8, 0), (2.6, 0.8, 0), (2, 0, 0)]), 1, 3),
}


@pytest.mark.parametrize("name", FINITE)
def test_overconstrained_and_finite(name: str) -> None:
    """Finite motions are found at closed neighbours; the extension analysis does not contradict."""
    m, freedoms, redundant = FINITE[name]
    f = m.mobility()
    assert (f.dof, f.redundant, f.regular, f.finite, f.extends) == (freedoms, redundant, True, True, None)
    assert f.nearby
    got = extension(m._model.closure(()), m._model.reference_state, freedoms)
    assert (got.order, got.is_certain) == (3, False)


def test_a_change_point() -> None:
    """A parallelogram folded flat: two motions meet, each of them finite."""
    m = hinged([(0, 0, 0), (1, 0, 0), (3, 0, 0), (2, 0, 0)])
    f = m.mobility()
    assert (f.first_order, f.dof, f.finite, f.regular, f.extends) == (2, 1, True, False, None)
    # of the two ways out, only two directions meet the second order: those of the two motions
    Q, _ = obstructions(m._model.closure(()), m._model.reference_state, 2)
    values = np.linalg.eigvalsh(Q[0])
    assert len(Q) == 1
    assert values[0] < 0 < values[1]
    assert extension(m._model.closure(()), m._model.reference_state, 2).order == 3


def test_at_another_configuration() -> None:
    """Asked where the linkage is stretched out, the account is that of this configuration."""
    m = hinged([(0, 0, 0), (0.6, 0.8, 0), (2.6, 0.8, 0), (2, 0, 0)])
    flat = m.at({"A": 0.0 - np.arctan2(0.8, 0.6)})
    f = m.mobility(configuration=flat)
    assert (f.first_order, f.dof, f.regular) == (2, 1, False)
    assert f.caveat().startswith("But this configuration is singular: it has 2 degrees of freedom")
    assert f.caveat().endswith("Choose another configuration.")
    assert m.mobility().regular is True
    for wrong, data in (
        (m.at({"A": np.array([0.1, 0.2])}), {"key": "configuration", "got": (2,)}),
        (FOUR.at(), {"key": "configuration", "got": "four-bar"}),
        (3.0, {"key": "configuration"}),
    ):
        with raises(kic.InputError, **data):
            m.mobility(configuration=wrong)


@pytest.mark.parametrize("name", ["osculating", "Bennett", "rods"])
def test_the_forms_are_the_orders_of_the_closure(name: str) -> None:
    """The closure residual along x₁ t + x₂ t²/2 is Q t²/2 + (C + 3 Q) t³/6."""
    m = {
        "osculating": held(FOUR, "tip", centre(FOUR, "tip")),
        "Bennett": bennett(),
        "rods": pair_of_rods(0.0),
    }[name]
    closure, state = m._model.closure(()), m._model.reference_state
    t = closure.transfer
    freedoms = m.mobility().first_order
    G = closure.rows(state)[1][0]
    rank = t.tree.size - freedoms
    U, sigma, V = np.linalg.svd(G)
    K, W = V[rank:].T, U[:, rank:]
    inverse = V[:rank].T / sigma[:rank] @ U[:, :rank].T
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, freedoms))
    a /= np.linalg.norm(a)
    question = t.curvature(state, (K @ a * t.column_scale)[None])[0] / t.scale
    second = K @ b - inverse @ question
    h = 1e-3 * np.arange(-6, 7)
    left = []
    for time in h:
        step = K @ a * time + second * time**2 / 2
        left.append(W.T @ closure.rows(integrate(t.tree, state, (step * t.column_scale)[None]))[0][0])
    powers = np.linalg.lstsq(1e3 ** np.arange(9) * h[:, None] ** np.arange(9), np.array(left), rcond=None)[0]
    series = powers * (1e3 ** np.arange(9) * [1, 1, 2, 6, 24, 120, 720, 5040, 40320])[:, None]
    Q, C = obstructions(closure, state, freedoms)
    expected = [
        np.einsum("sab,a,b->s", Q, a, a),
        np.einsum("sabc,a,b,c->s", C, a, a, a) + 3 * np.einsum("sab,a,b->s", Q, a, b),
    ]
    # obstructions() turns and shortens the dependences: lengths are what is kept
    assert np.abs(series[:2]).max() < 1e-9
    large = [np.linalg.norm(x) for x in expected]
    got = [np.linalg.norm(x) for x in series[2:4]]
    if len(Q):
        assert got == pytest.approx([x * _scale(m, freedoms) for x in large], rel=1e-6, abs=1e-6)
    else:
        assert max(got) < 1e-5


def _scale(m: kic.Mechanism, freedoms: int) -> float:
    """By what obstructions() divides: the largest curvature of the conditions along motions, 1 at least."""
    closure, state = m._model.closure(()), m._model.reference_state
    t = closure.transfer
    K = np.linalg.svd(closure.rows(state)[1][0])[2][t.tree.size - freedoms :]
    pairs = [(x + y, x - y) for x in K for y in K]
    both = np.array([x for pair in pairs for x in pair]) * t.column_scale
    bent = t.curvature(state.repeat(len(both), axis=0), both) / t.scale
    return max(1.0, float(np.abs(bent[::2] - bent[1::2]).max() / 4))


@pytest.mark.slow
def test_forms_that_have_a_zero_in_common_or_none() -> None:
    one, two = np.diag([1.0, -1.0, 0.0]), np.diag([0.0, 1.0, -1.0])
    none = np.zeros((2, 3, 3, 3))
    assert extends(np.array([one, two]), none, second=True)
    assert not definite(np.array([one, two]))
    three = np.diag([1.0, 1.0, 1.0]) + one
    assert not extends(np.array([one, three]), none, second=True)
    assert definite(np.array([one, three]))
    # cubic terms that b can take up, and such that it cannot
    Q, C = np.diag([1.0, -1.0])[None], np.zeros((1, 2, 2, 2))
    C[0, 0, 0, 0] = 1.0
    assert extends(Q, C)
    blind = np.zeros((2, 2, 2))
    blind[1] = np.diag([1.0, 0.0])
    C = np.zeros((2, 2, 2, 2))
    C[0, 1, 1, 1] = 1.0
    assert extends(blind, C, second=True)
    assert not extends(blind, C)
    # two forms of the plane without a common zero, none of whose combinations is definite: not proved
    pair = np.array([np.diag([1.0, -1.0]), [[0.0, 1.0], [1.0, 0.0]]])
    assert not extends(pair, np.zeros((2, 2, 2, 2)), second=True)
    assert not definite(pair)


@pytest.mark.slow
def test_undecided_mobility_is_reported_by_check(tmp_path) -> None:
    """Two linkages that are shaky to different orders: a motion in which both take part is not excluded."""
    m = held(FOUR, "tip", centre(FOUR, "tip"))
    offset = np.array([50.0, 0, 0])
    other = [
        replace(
            j,
            name=f"{j.name}_2",
            at=tuple(j.at + offset),
            bodies=tuple(b if b == "ground" else f"{b}_2" for b in j.bodies),
        )
        for j in m.joints
    ]
    points = [
        replace(
            p,
            name=f"{p.name}_2",
            at=tuple(p.at + offset),
            body=p.body if p.body == "ground" else f"{p.body}_2",
        )
        for p in m.points
    ]
    two = kic.Mechanism(
        "two",
        [kic.Body(b.name) for b in m.bodies] + [kic.Body(f"{b.name}_2") for b in m.bodies],
        [*m.joints, *other],
        points=[*m.points, *points],
        distances=[*m.distances, replace(m.distances[-1], name="rod_2", points=("post_2", "tip_2"))],
        coordinates=["A", "A_2"],
    )
    f = two.mobility()
    assert (f.first_order, f.finite, f.extends, f.dof) == (2, None, 2, 2)
    assert {x.order for x in f.motions} == {3}
    two.save(tmp_path / "m.toml")
    run = CliRunner().invoke(main, ["check", str(tmp_path / "m.toml")])
    assert run.output.startswith("ok: two, at most 2 degrees of freedom, ")
    assert "warning: mobility at most 2" in run.output
    assert "no motion was found that extends beyond second order" in " ".join(run.output.split())


def test_an_infinitesimal_dof_of_fourth_order_beside_a_finite_one() -> None:
    """A cylindrical joint, a hinge and a ball in one loop shake; a hinge beside them turns."""
    m = kic.Mechanism(
        "shaky",
        [kic.Body(name) for name in "abp"],
        [
            kic.Joint("C", "cylindrical", ("ground", "a"), at=(-1, 0, 0), axis=(0, 1, 0)),
            kic.Joint("R", "revolute", ("a", "b"), at=(1, 0, 0), axis=Z),
            kic.Joint("S", "spherical", ("b", "ground"), at=(-1, 0, 1)),
            kic.Joint("P", "revolute", ("ground", "p"), at=(5, 0, 0), axis=Z),
        ],
    )
    f = m.mobility()
    assert (f.dof, m.dof, f.first_order, f.finite, f.regular) == (1, 1, 2, True, False)
    assert (f.infinitesimal, set(f.nearby)) == (1, {1})
    assert [(x.verdict, x.order) for x in f.motions] == [
        ("finite", None), ("obstructed", 4), ("obstructed", 4)
    ]  # fmt: skip
    turns = f.motions[0].rates / np.abs(f.motions[0].rates).max()
    assert np.sort(np.abs(turns))[-2] < 1e-2
    said = "1 of 2 degrees of freedom to first order is infinitesimal of order 4"
    assert said in f.summary()
