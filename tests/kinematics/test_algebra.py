"""Algebra of coefficients and dynamics: composition, inversion, stacking, transfer, sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from linkages import serial
from raising import raises
from sampling import compose, derivative, mismatch, random_posture, random_tree

import kic
from kic.kinematics import jets
from kic.kinematics.coefficients import Coefficients

BATCHES = [(), (1,), (3, 1, 2), (0,)]
EPS = np.finfo(float).eps


def names(letter: str, size: int) -> tuple[str, ...]:
    return tuple(f"{letter}{k}" for k in range(size))


def jet(rng: np.random.Generator, height: int, width: int, batch=(), order=3, dtype=float):
    shapes = [(*batch, height, *(width,) * k) for k in range(1, order + 1)]
    made = [rng.normal(size=s).astype(dtype) for s in shapes]
    return tuple(t + 1j * rng.normal(size=t.shape) for t in made) if dtype is complex else tuple(made)


def random_map(rng, rows, columns, batch=(), order=3, dtype=float) -> Coefficients:
    """Not symmetric, as those of angular velocities are not."""
    rows, columns = (names(*x) if isinstance(x[1], int) else tuple(x) for x in (rows, columns))
    return Coefficients(rows, columns, *jet(rng, len(rows), len(columns), batch, order, dtype))


def same(a: Coefficients, b: Coefficients, tolerance: float = 1e-12) -> None:
    assert a.rows == b.rows
    assert a.columns == b.columns
    assert a.order == b.order
    for s, t in zip(a.tensors, b.tensors, strict=True):
        assert mismatch(s, t) < tolerance


# --- composition -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("sizes", [(2, 3, 4), (4, 3, 2), (1, 1, 1), (3, 1, 2), (2, 2, 0), (0, 2, 3)], ids=str)
def test_composition_equals_the_written_formula(sizes, dtype, batch) -> None:
    rng = np.random.default_rng(1)
    p, n, m = sizes
    for outer_batch, inner_batch in ((batch, batch), (batch, ()), ((), batch)):
        a, b = jet(rng, p, n, outer_batch, dtype=dtype), jet(rng, n, m, inner_batch, dtype=dtype)
        found = jets.compose(a, b)
        for k, t in enumerate(found):
            assert t.shape == (*batch, p, *(m,) * (k + 1))
            assert t.dtype == dtype
        for index in np.ndindex(batch):
            one = [t[index] if outer_batch else t for t in a], [t[index] if inner_batch else t for t in b]
            for s, t in zip(found, compose(*one[0], *one[1]), strict=True):
                assert mismatch(s[index], t) < 1e-13
        for order in (1, 2):  # the shorter decides
            for x, y in ((a[:order], b), (a, b[:order])):
                assert len(jets.compose(x, y)) == order
                assert all(np.array_equal(s, t) for s, t in zip(jets.compose(x, y), found, strict=False))


def test_composition_is_associative_and_the_identity_is_neutral() -> None:
    rng = np.random.default_rng(2)
    a, b, c = (
        random_map(rng, *x) for x in ((("u", 2), ("v", 3)), (("v", 3), ("w", 4)), (("w", 4), ("q", 2)))
    )
    same((a @ b) @ c, a @ (b @ c))
    same(a @ Coefficients.identity(a.columns), a)
    same(Coefficients.identity(a.rows) @ a, a)
    # picking columns is a composition too, and so is picking rows
    picked = Coefficients.identity(b.columns).columns_of(["w3", "w1"])
    same(b.columns_of(["w3", "w1"]), b @ picked)
    same(b[["v2", "v0"]], Coefficients.identity(b.rows)[["v2", "v0"]] @ b)
    # and a stack composed is the stack of the composed
    other = random_map(rng, ("x", 2), ("v", 3))
    same(a.stack(other) @ b, (a @ b).stack(other @ b))


def test_rows_and_columns_find_each_other_by_name() -> None:
    rng = np.random.default_rng(3)
    a, b = random_map(rng, ("u", 2), ("v", 3)), random_map(rng, ("v", 3), ("w", 2))
    more = b.stack(random_map(rng, ("x", 2), ("w", 2)))
    same(a @ more[["x1", "v2", "v0", "x0", "v1"]], a @ b)
    same(a.columns_of(["v1", "v0", "v2"]) @ b, a @ b)
    turned = a.columns_of(["v2", "v1", "v0"])
    assert np.array_equal(turned.G, a.G[:, ::-1])
    assert np.array_equal(turned.H, a.H[:, ::-1, ::-1])
    assert np.array_equal(turned.D, a.D[:, ::-1, ::-1, ::-1])
    same(a.stack(turned.renamed({"u0": "t0", "u1": "t1"}))[["t0", "t1"]].renamed({"t0": "u0", "t1": "u1"}), a)
    # inverse after a shuffle is the shuffled inverse
    s = random_map(rng, ("q", 3), ("v", 3))
    shuffled = s[["q2", "q0", "q1"]].columns_of(["v1", "v2", "v0"]).inverse()
    same(shuffled[["v0", "v1", "v2"]].columns_of(["q0", "q1", "q2"]), s.inverse(), 1e-11)


CHAINS = [
    (["R", "P", "R"], ["R", "R"]),
    (["R", "R", "R", "P"], ["spherical", "P"]),
    (["spherical", "R"], ["universal"]),
    (["free"], ["R", "P"]),
]


def series(rng: np.random.Generator, first: list[str], second: list[str]):
    """A chain, and its second part on a free body where the first part holds it, as map after map."""
    whole = random_tree(rng, first + second)
    k = len(first)
    held, hand = f"b{k - 1}", f"p{k - 1}"
    place = next(p for p in whole.points if p.name == hand)
    rest = [p for p in whole.points if p.body in {b.name for b in whole.bodies[k - 1 :]}]
    second_part = kic.Mechanism(
        "second",
        whole.bodies[k - 1 :],
        [kic.Joint("J", "free", ("ground", held), at=place.at), *whole.joints[k:]],
        points=rest,
        gravity=whole.gravity,
    )
    # only what the second part has, has mass
    bare = [replace(b, mass=0.0, inertia=(0, 0, 0)) for b in whole.bodies[: k - 1]]
    whole = kic.Mechanism(
        "whole", [*bare, *whole.bodies[k - 1 :]], whole.joints, points=whole.points, gravity=whole.gravity
    )
    c = random_posture(rng, whole)
    later = [x for j in whole.joints[k:] for x in j.components]
    moved = c.value(hand) - place.at
    angles = {x: v for x, v in zip(c.coordinates, c._phi, strict=True)}
    there = {f"J.{i + 1}": v for i, v in enumerate([*moved, *c.pose(held).rotation.as_rotvec()])}
    there |= {x: angles[x] for x in later}
    d = second_part.at(there)
    hold = [hand, *(f"{held}.{w}" for w in ("wx", "wy", "wz"))]
    inner = c.coefficients(hold, order=3)
    inner = inner.renamed(dict(zip(inner.rows, names("J.", 7)[1:], strict=True)))
    return c, d, inner.stack(c.coefficients([j.name for j in whole.joints[k:]], order=3))


@pytest.mark.parametrize(("first", "second"), CHAINS, ids=str)
def test_one_chain_on_another_is_their_composition(first, second) -> None:
    """Angular velocities stand between the maps, and among the rows: against the kernels of the whole."""
    for seed in range(3):
        c, d, inner = series(np.random.default_rng(seed), first, second)
        last = f"b{len(first + second) - 1}"
        of = [f"p{len(first + second) - 1}", *(f"{last}.{w}" for w in ("wx", "wy", "wz"))]
        found, want = d.coefficients(of, order=3) @ inner, c.coefficients(of, order=3)
        for s, t in zip(found.tensors, want.tensors, strict=True):
            assert mismatch(s, t) < 1e-12
        assert np.allclose(found.values, want.values, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize(("first", "second"), CHAINS, ids=str)
def test_dynamics_of_one_chain_on_another(first, second) -> None:
    """From the velocities of a free body (v, ω) into joint coordinates: the Christoffel symbols come out."""
    for seed in range(3):
        c, d, inner = series(np.random.default_rng(seed), first, second)
        found, want = d.dynamics().transfer(inner), c.dynamics()
        assert found.coordinates == want.coordinates
        assert mismatch(found.I, want.I) < 1e-12
        assert mismatch(found.load, want.load) < 1e-12
        scale = max(np.abs(want.P).max(), np.abs(want.I).max())
        assert np.abs(found.P - want.P).max() < 1e-12 * scale


def test_composition_with_another_mechanism_s_map_by_complex_step() -> None:
    """A chain whose joints follow a second mechanism's rows: order k is the complex step of order k - 1."""
    rng = np.random.default_rng(5)
    first, second = random_tree(rng, "RPR"), random_tree(rng, "RRP")
    of = ["p2", "b2.wx", "b2.wy", "b2.wz", "gap"]

    def at(q: np.ndarray, order: int) -> Coefficients:
        drive = first.at(q).coefficients("p2", order=order)
        chain = second.at(drive.values).coefficients(of, order=order)
        return chain @ drive.renamed(dict(zip(drive.rows, chain.columns, strict=True)))

    q = rng.normal(size=3)
    exact, step = at(q, 3), 1e-40
    for a in range(3):
        moved = at(q + 1j * step * np.eye(3)[a], 2)
        assert mismatch(moved.values[:3].imag / step, exact.G[:3, a]) < 1e-12
        assert mismatch(moved.G.imag / step, exact.H[:, a]) < 1e-12
        assert mismatch(moved.H.imag / step, exact.D[:, a]) < 1e-12


# --- inversion ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("size", [0, 1, 2, 6])
def test_the_inverse_of_the_inverse_is_the_map(size: int, dtype, batch) -> None:
    rng = np.random.default_rng(6)
    a = random_map(rng, ("q", size), ("v", size), batch, dtype=dtype)
    a.G[...] += 3 * np.eye(size)  # well away from singular, so that third powers of the condition are small
    back = a.inverse()
    assert back.rows == a.columns
    assert back.columns == a.rows
    assert back.values is None
    assert [t.dtype for t in back.tensors] == [dtype] * 3
    assert [t.shape for t in back.tensors] == [t.shape for t in a.tensors]
    for one, other in ((a, back), (back, a)):
        both = one @ other
        for s, t in zip(both.tensors, Coefficients.identity(both.rows).tensors, strict=True):
            scale = np.abs(one.tensors[-1]).max(initial=1) * np.abs(other.tensors[-1]).max(initial=1)
            assert np.abs(s - t).max(initial=0) < 1e-13 * scale
    same(back.inverse(), a, 1e-10)
    for order in (1, 2):
        low = Coefficients(a.rows, a.columns, *a.tensors[:order]).inverse()
        assert low.order == order
        assert all(np.array_equal(s, t) for s, t in zip(low.tensors, back.tensors, strict=False))


def test_the_inverse_is_exact_for_a_known_map() -> None:
    """Polar coordinates: the inverse of (x, y) of (r, θ) is in every book."""
    r, t, x, y = sp.symbols("r t x y", positive=True)

    def coefficients(us, qs, at) -> Coefficients:
        G = sp.derive_by_array(us, qs)
        H, D = sp.derive_by_array(G, qs), sp.derive_by_array(sp.derive_by_array(G, qs), qs)
        arrays = [np.array(T.subs(at).tolist(), dtype=float) for T in (G, H, D)]
        return Coefficients(
            names("u", 2), names("q", 2), *(np.moveaxis(T, -1, 0) for T in arrays)
        )  # fmt: skip

    at = {r: 2, t: sp.Rational(7, 10)}
    forth = coefficients([r * sp.cos(t), r * sp.sin(t)], [r, t], at)
    where = {x: (r * sp.cos(t)).subs(at).evalf(30), y: (r * sp.sin(t)).subs(at).evalf(30)}
    back = coefficients([sp.sqrt(x**2 + y**2), sp.atan2(y, x)], [x, y], where)
    for s, want in zip(forth.inverse().tensors, back.tensors, strict=True):
        assert mismatch(s, want) < 1e-14


@pytest.mark.parametrize("kinds", ["RRPRRR", ["R", "spherical", "P", "R"], ["free"]], ids="-".join)
def test_the_inverse_of_a_hand_by_complex_step(kinds) -> None:
    """Complex steps of order k of the inverse along the joints equal order k + 1."""
    rng = np.random.default_rng(7)
    m = random_tree(rng, kinds)
    last = len(m.bodies) - 1
    of = [f"p{last}", *(f"b{last}.{w}" for w in ("wx", "wy", "wz"))]
    c = random_posture(rng, m)
    inverse = c.coefficients(of, order=3).inverse()
    tolerance = max(1e-12, 100 * EPS * c.coefficients(of).condition())
    for k, letter in enumerate("GH"):
        steps = derivative(c, lambda x, t=letter: getattr(x.coefficients(of).inverse(), t))
        along = np.moveaxis(steps @ inverse.G, -1, 1)  # the quasi-derivative ∂/∂q_a = A_na ∂/∂φ_n
        assert mismatch(along, inverse.tensors[k + 1]) < tolerance


@pytest.mark.slow
def test_symbols() -> None:
    a, b, c, d = sp.symbols("a b c d")
    G = np.array([[a, b], [c, d]], dtype=object)
    forth = Coefficients(["x", "y"], ["u", "v"], G, np.array([[[a, 0], [0, 1]]] * 2, dtype=object))
    back = forth.inverse()
    assert sp.simplify(sp.Matrix(back.G) - sp.Matrix(G).inv()) == sp.zeros(2)
    both = forth @ back
    assert sp.simplify(sp.Matrix(both.G)) == sp.eye(2)
    assert all(sp.simplify(x) == 0 for x in both.H.flat)
    third = np.array([[1, a, 0], [0, b, 1], [c, 0, 2]], dtype=object)
    assert sp.simplify(sp.Matrix(jets.invert((third,))[0]) * sp.Matrix(third)) == sp.eye(3)
    batch = jets.invert((np.array([[[a]], [[b]]], dtype=object),))[0]
    assert batch.tolist() == [[[1 / a]], [[1 / b]]]
    assert jets.invert((np.zeros((0, 0), dtype=object),))[0].shape == (0, 0)
    with raises(kic.SingularError, key="G"):
        Coefficients(["x", "y"], ["u", "v"], np.array([[a, b], [a, b]], dtype=object)).inverse()
    with raises(kic.InputError, key="G"):
        forth.condition()
    # Horn's arm: the inverse of the tip's motion, and the weight at the tip, in closed form
    t1, t2 = sp.symbols("t1 t2", real=True)
    arm = kic.load("horn-two-link").at([t1, t2])
    hand = arm.coefficients(["tip.x", "tip.y"]).inverse()
    first = sp.cos(t1 + t2) / sp.sin(t2)  # the elbow's rate when the tip goes along x
    assert sp.simplify(sp.nsimplify(hand.G[0, 0]) - first) == 0
    put = {t1: 0.3, t2: 1.5}
    numbers = kic.load("horn-two-link").at([0.3, 1.5])
    want = numbers.dynamics().transfer(numbers.coefficients(["tip.x", "tip.y"]).inverse())
    found = arm.dynamics().transfer(hand)
    for s, t in ((found.I, want.I), (found.P, want.P), (found.load, want.load)):
        assert np.allclose(np.vectorize(lambda x: float(sp.sympify(x).subs(put)))(s), t, atol=1e-12)


# --- condition and refusals --------------------------------------------------------------------------------


def test_condition_is_independent_of_units() -> None:
    rng = np.random.default_rng(8)
    a = random_map(rng, ("q", 5), ("v", 5), (2,))
    units = np.array([1e3, 1e3, 1, 1, 1e-3])
    other = units[:, None] * a.G / units[::-1]
    found = Coefficients(a.rows, a.columns, other).condition()
    assert found == pytest.approx(Coefficients(a.rows, a.columns, a.G).condition(), rel=0.1)
    assert Coefficients(["x"], ["a", "b"], [[3.0, 4.0]]).condition() == 1
    assert random_map(rng, ("q", 0), ("v", 0), (3,)).condition().tolist() == [1, 1, 1]
    assert random_map(rng, ("q", 2), ("v", 2), (0,)).condition().shape == (0,)
    # diagonal units alone are no condition at all
    assert Coefficients(["x", "y"], ["a", "b"], np.diag([1e-4, 1e4])).condition() == 1


def arm_at(*phi) -> kic.Configuration:
    return kic.load("horn-two-link").at(phi)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("phi", [(0, 0), (np.pi, 0), (0.3, 0), (0.7, np.pi), (np.pi / 2, np.pi)], ids=str)
def test_a_stretched_arm_is_singular(phi, order: int) -> None:
    """Even where round-off leaves no exact zero."""
    c = arm_at(*phi)
    with pytest.raises(kic.SingularError):
        c.coefficients(["tip.x", "tip.y"], order=order).inverse()


def test_round_off_is_not_motion() -> None:
    crank = serial([(0, 0, 0)], ["rod"], points=[kic.Point("tip", "rod", at=(0, 1, 0))])
    top = crank.at([np.pi]).coefficients("tip.y", order=2)
    assert 0 < abs(top.G.item()) < 1e-14
    with raises(kic.SingularError, columns=("A",), rows=("tip.y",)):
        top.inverse()
    # the column of a joint whose axis passes through the point, at an arbitrary configuration
    m = kic.load("puma560")
    rng = np.random.default_rng(0)
    phi = rng.normal(size=6)
    assert m.at(phi).coefficients("link6").condition() < 1e3
    phi[4] = np.pi  # wrist stretched backwards: joints 4 and 6 are one
    with pytest.raises(kic.SingularError) as caught:
        m.at(phi).coefficients("link6").inverse()
    assert set(caught.value.columns) == {m.coordinates[3], m.coordinates[5]}
    assert caught.value.condition > 1e12


def test_singular_members_are_named() -> None:
    phi = np.array([[[0.1, 1.0], [0.2, 0.0]], [[0.3, 2.0], [0.4, 0.0]]])
    tip = kic.load("horn-two-link").at(phi).coefficients(["tip.x", "tip.y"])
    assert tip.condition().shape == (2, 2)
    # a single configuration has no members; rows that are not involved are not named
    G = np.array([[1.0, 2, 3], [2.0, 4, 6], [1.0, 0, 1]])
    with raises(kic.SingularError, columns=("a", "b", "c"), rows=("x", "y")) as caught:
        Coefficients(["x", "y", "z"], ["a", "b", "c"], G).inverse()
    assert caught.value.failed == [()]


def test_nearly_singular_results_raise_or_are_accurate() -> None:
    for small in (1e-3, 1e-6, 1e-9, 1e-11):
        a = Coefficients(["x", "y"], ["a", "b"], [[1.0, 1.0], [1.0, 1.0 + small]], np.ones((2, 2, 2)))
        assert 1 < a.condition() * small < 10
        both = a @ a.inverse()
        assert np.abs(both.G - np.eye(2)).max() < 100 * EPS / small
    for small in (1e-12, 1e-14, 1e-16):
        with pytest.raises(kic.SingularError):
            Coefficients(["x", "y"], ["a", "b"], [[1.0, 1.0], [1.0, 1.0 + small]]).inverse()


def test_members_that_are_nan_stay_nan() -> None:
    rng = np.random.default_rng(9)
    a = random_map(rng, ("q", 3), ("v", 3), (4,))
    alone = a.inverse()
    for t in a.tensors:
        t[2] = np.nan
    back = a.inverse()
    for t, want in zip(back.tensors, alone.tensors, strict=True):
        assert np.isnan(t[2]).all()
        assert np.array_equal(t[[0, 1, 3]], want[[0, 1, 3]])
    assert np.isnan(a.condition()).tolist() == [False, False, True, False]
    both = (a @ back).G
    assert np.isnan(both[2]).all()
    a.G[...] = np.nan
    assert np.isnan(a.inverse().D).all()


def test_the_inverse_of_a_complex_step_is_analytic() -> None:
    rng = np.random.default_rng(10)
    G, change = rng.normal(size=(2, 5, 3, 3))
    stepped = Coefficients(names("q", 3), names("v", 3), G + 1e-40j * change).inverse().G
    K = np.linalg.inv(G)
    assert mismatch(stepped.real, K) < 1e-14
    assert mismatch(stepped.imag / 1e-40, -K @ change @ K) < 1e-12


# --- stacking, names, construction -------------------------------------------------------------------------


def test_stack() -> None:
    rng = np.random.default_rng(11)
    a = random_map(rng, ("u", 2), ("v", 3), (3, 1))
    b = random_map(rng, ("x", 1), ("v", 3), (2,), order=2).columns_of(["v2", "v0", "v1"])
    c = random_map(rng, ("y", 2), ("v", 3), dtype=complex)
    whole = a.stack(b, c)
    assert whole.rows == ("u0", "u1", "x0", "y0", "y1")
    assert whole.columns == a.columns
    assert whole.batch == (3, 2)
    assert whole.order == 2
    assert whole.H.dtype == complex
    assert whole.values is None
    assert np.array_equal(whole["x0"].H[1], b.columns_of(a.columns).H + 0j)
    assert np.array_equal(whole[["y0", "y1"]].G[2, 1], c.G)
    same(a.stack(), a)
    assert a[[]].stack(a).rows == a.rows
    p = arm_at(0.2, 0.5)
    both = p.coefficients("tip").stack(Coefficients.identity(p.coordinates))
    assert np.array_equal(both.values[:3], p.value("tip"))
    assert np.isnan(both.values[3:]).all()


def test_names_pick_parts() -> None:
    c = kic.load("puma560").at(np.zeros(6))
    hand = c.coefficients(["link6", "face"], order=3)
    assert hand["face"].rows == ("face.x", "face.y", "face.z")
    assert hand[["link6.wz", "face"]].rows == ("link6.wz", "face.x", "face.y", "face.z")
    assert np.array_equal(hand["link6.wz"].D, hand.D[5:6])
    ball = random_posture(np.random.default_rng(0), random_tree(np.random.default_rng(1), ["R", "spherical"]))
    some = ball.coefficients("p1", order=3).columns_of("j1")
    assert some.columns == ("j1.1", "j1.2", "j1.3")
    assert some.D.shape == (3, 3, 3, 3)


def test_quasi_velocities_are_remembered() -> None:
    q = {"hand.wx", "S.1"}
    a = Coefficients(["hand.x", "hand.wx"], ["A", "S.1"], np.eye(2), np.zeros((2, 2, 2)), quasi=q)
    assert a.quasi == q
    assert not a.holonomic
    assert a["hand.x"].quasi == {"S.1"}
    assert a["hand.x"].columns_of("A").holonomic
    assert a.columns_of("A").quasi == {"hand.wx"}
    assert a.inverse().quasi == q
    assert a.renamed({"hand.wx": "turn"}).quasi == {"turn", "S.1"}
    assert a.stack(Coefficients(["t"], ["A", "S.1"], [[1.0, 0.0]])).quasi == q
    drive = Coefficients(["A", "S.1"], ["s", "t.wz"], np.eye(2), quasi=["S.1", "t.wz"])
    assert (a @ drive).quasi == {"hand.wx", "t.wz"}
    assert (a["hand.x"] @ drive.columns_of("s")).holonomic
    assert Coefficients.identity(["A", "S.1"], quasi=["S.1"]).quasi == {"S.1"}
    d = kic.Dynamics(["A", "S.1"], np.eye(2), np.zeros((2, 2, 2)), holonomic=False)
    assert not d.transfer(a.inverse()).holonomic
    assert d.transfer(a.inverse().columns_of("hand.x")).holonomic
    # without names, every row without a value counts as a quasi-velocity
    doubt = Coefficients(["x", "wx"], ["A"], np.ones((2, 1)), values=[1.0, np.nan], holonomic=False)
    assert doubt.quasi == {"wx", "A"}
    assert Coefficients(["x"], ["A"], [[1.0]], holonomic=False).quasi == {"x", "A"}
    assert Coefficients(["x"], ["x"], np.ones((0, 1, 1)), holonomic=False, values=np.ones((0, 1))).quasi == {
        "x"
    }


def test_typed_numbers() -> None:
    a = Coefficients(["x", "y"], ["a"], [[1], [2]], [[[3]], [[4]]])
    assert a.G.dtype == float
    assert a.order == 2
    assert (a @ Coefficients(["a"], ["t"], [[2]], [[[0]]])).H.tolist() == [[[12.0]], [[16.0]]]
    d = kic.Dynamics(["a"], [[2]], [[[0]]])
    assert d.load.tolist() == [0]
    assert d.damping.tolist() == [[0]]
    assert d.inverse_dynamics([1.0], [3.0]).tolist() == [6]
    many = kic.Dynamics(["a"], np.ones((5, 1, 1)), np.ones((5, 1, 1, 1)))
    assert many.load.shape == (5, 1)


@pytest.mark.parametrize(
    ("call", "data"),
    [
        (lambda a, b: a @ a, {"missing": ("v0", "v1")}),
        (lambda a, b: a @ b["v1"], {"missing": ("v0",)}),
        (lambda a, b: a.compose(np.eye(2)), {"key": "inner"}),
        (lambda a, b: a.inverse(), {"key": "G", "got": (3, 2)}),
        (lambda a, b: a.stack(b), {"key": "others"}),
        (lambda a, b: a.stack(a["u1"]), {"names": ("u1",)}),
        (lambda a, b: Coefficients(["x", "y"], "a", [[1.0]]), {"key": "G", "expected": (2, 1)}),
        (lambda a, b: Coefficients("x", "a", [[1.0]], [[1.0]]), {"key": "H", "expected": (1, 1, 1)}),
        (lambda a, b: Coefficients("x", "a", [[1.0]], D=[[[[1.0]]]]), {"key": "H"}),
        (lambda a, b: Coefficients("x", "a", [["?"]]), {"key": "G", "got": [["?"]]}),
        (lambda a, b: Coefficients("x", "a", [[1.0]], values=[3.0, 4.0]), {"key": "values", "got": (2,)}),
        (lambda a, b: Coefficients("a", "a", [[1.0]]).jerk([1], [1], [1]), {"key": "order"}),
        (lambda a, b: jets.invert((a.G,)), {"key": "G", "got": (3, 2)}),
    ],
)  # fmt: skip
def test_invalid_requests_raise(call, data: dict) -> None:
    rng = np.random.default_rng(12)
    a, b = random_map(rng, ("u", 3), ("v", 2)), random_map(rng, ("v", 2), ("w", 2))
    with raises(kic.InputError, **data):
        call(a, b)


def test_more_invalid_arguments_raise() -> None:
    rng = np.random.default_rng(13)
    a, b = random_map(rng, ("u", 3), ("v", 2), (2,)), random_map(rng, ("v", 2), ("w", 2), (3,))
    with raises(kic.InputError, batches={"outer": (2,), "inner": (3,)}):
        a @ b
    with raises(kic.InputError, batches={"part 0": (2,), "part 1": (3,)}):
        a.stack(random_map(rng, ("x", 1), ("v", 2), (3,)))
    with pytest.raises(TypeError):
        a @ np.eye(2)
    with raises(kic.UnknownNameError, name="v3"):
        a.columns_of(["v0", "v3"])
    with raises(kic.UnknownNameError, name="v0"):
        a["v0"]
    with raises(kic.UnknownNameError, name="z"):
        a.renamed({"z": "u0"})


# --- dynamics ----------------------------------------------------------------------------------------------


def hand_of(m: kic.Mechanism) -> list[str]:
    last = len(m.bodies) - 1
    return [f"p{last}", *(f"b{last}.{w}" for w in ("wx", "wy", "wz"))]


@pytest.mark.parametrize("kinds", ["RRPRRR", ["R", "spherical", "P", "R"], ["free"]], ids="-".join)
def test_identities_hold_in_the_coordinates_of_the_hand(kinds) -> None:
    """∂I*/∂q and Ṁ − 2C, where three of the coordinates are angular velocities."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        m = random_tree(rng, kinds, loads=True)
        of = hand_of(m)
        c = random_posture(rng, m)

        def transferred(x, of=of):
            return x.dynamics().transfer(x.coefficients(of).inverse())

        inverse, d = c.coefficients(of).inverse(), transferred(c)
        assert d.coordinates == inverse.columns
        assert d.efforts == d.coordinates
        tolerance = max(1e-12, 100 * EPS * c.coefficients(of).condition())
        gradient = derivative(c, lambda x: transferred(x).I) @ inverse.G
        scale = max(np.abs(d.P).max(), np.abs(d.I).max())
        assert np.abs(d.inertia_gradient() - gradient).max() < tolerance * scale
        qd, qdd = rng.normal(size=(2, 6))
        skew = gradient @ qd - 2 * d.coriolis(qd)
        assert np.abs(skew + skew.T).max() < tolerance * scale * np.abs(qd).max()
        # the same motion, the same power, and the same efforts: T_q = Aᵀ T_φ
        v, a = inverse.velocity(qd), inverse.acceleration(qd, qdd)
        tree = c.dynamics()
        assert (
            mismatch(d.inverse_dynamics(qd, qdd), inverse.G.T @ tree.inverse_dynamics(v, a)) < 10 * tolerance
        )
        assert mismatch(d.forward_dynamics(qd, d.inverse_dynamics(qd, qdd)), qdd) < 1e-7
        assert d.kinetic_energy(qd) == pytest.approx(tree.kinetic_energy(v), rel=10 * tolerance)
        # and there and back again
        back = d.transfer(c.coefficients(of))
        for s, t in ((back.I, tree.I), (back.load, tree.load), (back.damping, tree.damping)):
            assert mismatch(s, t) < 100 * tolerance
        assert np.abs(back.P - tree.P).max() < 100 * tolerance * max(
            np.abs(tree.P).max(), np.abs(tree.I).max()
        )


@pytest.mark.parametrize("batch", BATCHES)
def test_transfer_by_any_matrix(batch) -> None:
    """Rectangular factors, left and right different, names in any order, against sums over every index."""
    rng = np.random.default_rng(14)
    phi, e = names("v", 4), np.einsum
    I, P, load, B = (rng.normal(size=(*batch, *(4,) * k)) for k in (2, 3, 1, 2))
    d = kic.Dynamics(phi, I, P, load, damping=B)
    right = random_map(rng, phi[::-1], ("q", 3), batch, order=2)
    left = random_map(rng, ("v", 4), ("w", 5), order=1)
    A, H, L = right.G[..., ::-1, :], right.H[..., ::-1, :, :], left.G
    for other in (None, left):
        found = d.transfer(right, left=other)
        side = A if other is None else L
        want_p = e("...ik,...imn,...ma,...nb->...kab", side, P, A, A) + e(
            "...ik,...in,...nab->...kab", side, I, H
        )
        size = 3 if other is None else 5
        for s, t in (
            (found.I, e("...ik,...in,...nb->...kb", side, I, A)),
            (found.P, want_p),
            (found.load, e("...ik,...i->...k", side, load)),
            (found.damping, e("...ik,...in,...nb->...kb", side, B, A)),
        ):
            assert mismatch(s, t) < 1e-13
            assert s.shape[: len(batch)] == batch
        assert found.coordinates == names("q", 3)
        assert found.efforts == (names("q", 3) if other is None else names("w", 5))
        assert found.load.shape == (*batch, size)
        qd, qdd = rng.normal(size=(2, *batch, 3))
        motion = Coefficients(phi, right.columns, A, H)
        want = d.inverse_dynamics(motion.velocity(qd), motion.acceleration(qd, qdd))
        assert mismatch(found.inverse_dynamics(qd, qdd), e("...ik,...i->...k", side, want)) < 1e-12
    # a batch of directions for one model is a batch
    wide = d.transfer(right, left=random_map(rng, ("v", 4), ("w", 5), (7, *(1,) * len(batch)), order=1))
    assert wide.load.shape == wide.I.shape[:-1] == (7, *batch, 5)


def test_efforts_elsewhere() -> None:
    rng = np.random.default_rng(15)
    m = random_tree(rng, "RRPRRR", loads=True)
    c = random_posture(rng, m)
    inverse = c.coefficients(hand_of(m)).inverse()
    free = ["p5.x", "p5.y"]
    d = c.dynamics().transfer(inverse.columns_of(free), left=inverse)
    assert d.efforts == inverse.columns
    assert d.I.shape == (6, 2)
    for call in (
        lambda: d.forward_dynamics([0, 0], np.zeros(6)),
        lambda: d.kinetic_energy([0, 0]),
        lambda: d.coriolis([0, 0]),
        d.inertia_gradient,
    ):
        with raises(kic.InputError, efforts=("p5.x", "p5.y", "p5.z", "b5.wx", "b5.wy", "b5.wz")):
            call()
    with raises(kic.InputError, key="left"):
        d.transfer(Coefficients.identity(free))
    kept = d.transfer(Coefficients.identity(free).columns_of("p5.y"), left=Coefficients.identity(d.efforts))
    assert kept.efforts == d.efforts
    assert np.array_equal(kept.P[:, 0, 0], d.P[:, 1, 1])
    # brought to the free coordinates, they are those of the model in these
    own = d.transfer(Coefficients.identity(free), left=Coefficients.identity(d.efforts).columns_of(free))
    direct = c.dynamics().transfer(inverse.columns_of(free))
    assert own.efforts == own.coordinates == direct.coordinates
    assert mismatch(own.I, direct.I) < 1e-12
    assert mismatch(own.P, direct.P) < 1e-12
    text = d.summary().text()
    assert "b5.wz" in text
    assert (d + d).efforts == d.efforts


def test_models_in_the_same_coordinates_add() -> None:
    """A tree whose bodies are shared out among three models is their sum (eq 4-48)."""
    rng = np.random.default_rng(16)
    m = random_tree(rng, ["R", "P", "spherical", "R"], branched=True)
    phi = rng.normal(size=(2, len(m.coordinates)))
    parts = []
    for own in ({"b0"}, {"b1", "b3"}, {"b2"}):
        bodies = [b if b.name in own else replace(b, mass=0.0, inertia=(0, 0, 0)) for b in m.bodies]
        parts.append(
            kic.Mechanism("part", bodies, m.joints, points=m.points, gravity=m.gravity).at(phi).dynamics()
        )
    names_now = parts[0].coordinates
    shuffle = Coefficients.identity(names_now).columns_of(rng.permutation(names_now).tolist())
    parts[1] = parts[1].transfer(shuffle)
    whole, want = sum(parts), m.at(phi).dynamics()
    assert whole.coordinates == names_now
    assert whole.holonomic == want.holonomic
    for s, t in (
        (whole.I, want.I),
        (whole.P, want.P),
        (whole.load, want.load),
        (whole.damping, want.damping),
    ):
        assert mismatch(s, t) < 1e-13
    one = kic.Dynamics(names_now, parts[0].I[0], parts[0].P[0], damping=np.eye(len(names_now)))
    more = one + parts[1]
    assert more.batch == (2,)
    assert more.load.shape == (2, len(names_now))
    assert np.array_equal(more.damping[1], np.eye(len(names_now)))
    with raises(kic.InputError, got=("a",)):
        one + kic.Dynamics(["a"], [[1.0]], [[[0.0]]])
    with raises(kic.InputError, batches={"first": (2,), "second": (3,)}):
        whole + sum([kic.Dynamics(names_now, *(np.repeat(t[:1], 3, axis=0) for t in (want.I, want.P)))])
    for wrong in (3, 1.0, "d"):
        with pytest.raises(TypeError):
            one + wrong
        with pytest.raises(TypeError):
            wrong + one
