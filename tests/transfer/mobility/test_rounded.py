"""Overconstrained linkages typed with rounded dimensions, against the exact ones."""

from __future__ import annotations

from dataclasses import replace

import linkages
import numpy as np
import pytest
from raising import raises

import kic

ALPHA, BETA, DRAWN = 0.6, 1.1, 0.9
RATIO = np.sin((BETA + ALPHA) / 2) / np.sin((BETA - ALPHA) / 2)
OF = ["B", "C", "D", "tip"]


def other_angle(theta: float) -> np.ndarray:
    """The angle beside θ and its first three derivatives: tan(θ/2) tan(y/2) = k, so y' = −sin y / sin θ."""
    y = 2 * np.arctan(RATIO / np.tan(theta / 2))
    s, c = np.sin(theta), np.cos(theta)
    first = -np.sin(y) / s
    # y' sin θ = −sin y, differentiated twice more
    second = -(np.cos(y) * first + first * c) / s
    third = (np.sin(y) * first**2 - np.cos(y) * second - 2 * second * c + first * s) / s
    return np.array([y, first, second, third])


PLACES, AXES = map(np.array, linkages.bennett(ALPHA, BETA, DRAWN))


def loop(places: np.ndarray, axes: np.ndarray, tolerance: float = 0.0) -> kic.Mechanism:
    """Four bars between four hinges."""
    bodies = [
        kic.Body(f"bar{k + 1}", mass=1.0, com=tuple(centre), inertia=(0.1, 0.1, 0.1))
        for k, centre in enumerate((PLACES[:3] + PLACES[1:]) / 2)
    ]
    tip, gravity = kic.Point("tip", "bar2", tuple(PLACES[2])), (1.0, 2.0, -9.0)
    return linkages.hinged(
        places, axes, bodies, points=[tip], gravity=gravity, closure_tolerance=tolerance, name="bennett"
    )


def disturbed(size: float, seed: int, tolerance: float, flat: bool = False) -> kic.Mechanism:
    """Every dimension off by up to half of `size`, as rounding to that leaves it."""
    rng = np.random.default_rng(seed)
    places, axes = square() if flat else (PLACES, AXES)
    dx, da = size * rng.uniform(-0.5, 0.5, (2, 4, 3))
    return loop(places + (0 if flat else dx), axes + da, tolerance)


def square() -> tuple[np.ndarray, np.ndarray]:
    """A planar four-bar: places, and axes that are parallel."""
    return np.array([[0, 0, 0], [0.3, 1, 0], [2, 1.5, 0], [2.2, 0, 0.0]]), np.array([[0, 0, 1.0]] * 4)


def test_the_exact_linkage() -> None:
    m = loop(PLACES, AXES)
    assert (m.dof, m.mobility().redundant, m.mobility().caveat()) == (1, 3, "")
    for A in (-0.5, 0.0, 0.3, 1.2, 2.0):
        c, y = m.at({"A": A}), other_angle(DRAWN + A)
        u = c.coefficients(["B", "C", "D"], order=3)
        assert c.value("B") == pytest.approx(y[0] - other_angle(DRAWN)[0], abs=1e-13)
        assert c.value("C") == pytest.approx(-A, abs=1e-13)
        for k, T in enumerate(u.tensors, 1):
            want = np.array([y[k], -1.0 if k == 1 else 0.0, -y[k]])
            assert np.abs(T.ravel() - want).max() < 1e-11 * max(1, np.abs(y).max())


@pytest.mark.slow
@pytest.mark.parametrize("digits", [3, 5])
def test_without_a_tolerance_the_loops_contradict_one_another(digits: int) -> None:
    """The linkage is rigid; the error reports the residual share and a remedy."""
    m = loop(PLACES.round(digits), AXES.round(digits))
    assert (m.dof, m.mobility().redundant, m.mobility().regular) == (0, 2, True)
    share = m.mobility().shares[-1]
    assert 0.01 < share * 10**digits < 1
    text = (
        rf"'bennett' has mobility 0; 1 coordinate was named: A\. It does not move: name none\. "
        rf"The weakest condition contributes {share:.1e} of the strongest\. If that is rounding of "
        rf"dimensions, closure_tolerance = (1e-0\d|0\.\d+) makes the mobility 1\."
    )
    for question in (
        lambda: m.at({"A": 0.1}),
        lambda: m.at().coefficients("B"),
        lambda: m.prepare.coefficients("tip"),
    ):
        with pytest.raises(kic.InputError, match=text):
            question()
    # and with what it proposes, it moves
    proposed = float(m.mobility().caveat().split("closure_tolerance = ")[1].split()[0])
    assert loop(PLACES.round(digits), AXES.round(digits), proposed).at({"A": 0.1}).ok


@pytest.mark.parametrize("digits", [3, 5])
def test_linkage_moves_within_the_closure_tolerance(digits: int) -> None:
    """Answers as good as the dimensions, the input met exactly, and the dropped rows reported."""
    tolerance, exact = 2 * 10.0**-digits, loop(PLACES, AXES)
    m = loop(PLACES.round(digits), AXES.round(digits), tolerance)
    f = m.mobility()
    assert (f.dof, f.redundant, f.regular) == (1, 3, True)
    assert f.shares[1] > 0.1 > tolerance > f.shares[2] > 1e-9
    said = (
        f"Of the redundant ones 1 is redundant only within closure_tolerance = {tolerance:g}: the strongest "
        f"dropped contributes {f.shares[2]:.1e} of the strongest kept, the weakest kept {f.shares[1]:.1e}."
    )
    assert said in f.summary()
    wanted = np.linspace(-0.5, 1.0, 7)
    c, e = m.at({"A": wanted}), exact.at({"A": wanted})
    assert np.abs(c.value("A") - wanted).max() <= 1e-15
    for a, b in zip(c.coefficients(OF, order=3).tensors, e.coefficients(OF, order=3).tensors, strict=True):
        assert 0 < np.abs(a - b).max() < 20 * 10.0**-digits * np.abs(b).max()
    # so is the angle of a cut joint
    assert m.mobility().cuts == ("D",)
    turned = m.at({"D": 0.2})
    assert turned.value("D") == pytest.approx(0.2, abs=1e-13)
    back = m.at({"A": turned.value("A")})
    assert back.value("D") == pytest.approx(0.2, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("flat", [False, True], ids=["bennett", "tilted four-bar"])
@pytest.mark.parametrize("seed", range(4))
def test_errors_grow_as_the_rounding(flat: bool, seed: int) -> None:
    """Over six decades: slope one, for every order and the dynamics."""
    sizes = 10.0 ** -np.arange(3, 9)
    exact = loop(*square()) if flat else loop(PLACES, AXES)
    wanted = [-0.3, 0.0, 0.4]
    e = exact.at({"A": wanted})
    u, d = e.coefficients(OF, order=3), e.dynamics()
    right = [*u.tensors, d.I, d.P, d.load]
    errors = []
    for size in sizes:
        m = disturbed(size, seed, 10 * size, flat)
        assert (m.dof, m.mobility().redundant) == (1, 3)
        c = m.at({"A": wanted})
        assert np.abs(c.value("A") - wanted).max() <= 1e-15
        v, g = c.coefficients(OF, order=3), c.dynamics()
        found = [*v.tensors, g.I, g.P, g.load]
        errors.append([np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, right, strict=True)])
    slope = np.polyfit(np.log10(sizes), np.log10(errors), 1)[0]
    assert np.abs(slope - 1).max() < 0.02, slope
    # and the constant is that of a well-conditioned linkage
    share = exact.mobility().shares[1]
    assert (np.array(errors) < 20 / share * sizes[:, None]).all()


@pytest.mark.slow
def test_errors_beyond_the_tolerance_raise() -> None:
    """A tolerance that holds at the drawing and not on the way: how far, and by how much."""
    m = loop(PLACES.round(3), AXES.round(3), 2e-4)
    assert m.at({"A": 0.3}).ok
    for A, text in (
        (
            -0.8,
            r"its loops are inconsistent by \d\.\de-04 \(relative to its length\), more than "
            r"closure_tolerance",
        ),
        (1.5, r"from there on its loops are inconsistent by more than closure_tolerance = 0\.0002 allows"),
    ):
        with pytest.raises(
            kic.ConfigurationError, match=rf"it completed [\d.]+ % .* \(requested {A}\).*{text}"
        ) as caught:
            m.at({"A": A})
        assert 0 < caught.value.share[0] < 1
    # a state from elsewhere is open; its conditions leave no freedom at all
    far = loop(PLACES.round(3), AXES.round(3), 3e-3).at({"A": 2.5})
    with raises(kic.InputError, key="state", joint="D") as caught:
        m.prepare.coefficients("tip")(far.state)
    assert 2e-4 < caught.value.residual < 1e-3
    transfer = m._model.transfer(("A",))
    with raises(kic.SingularError, dof=0, coordinates=("A",)) as caught:
        transfer._choice(transfer.scaled_rates(far.state[None].copy())[0])
    assert (caught.value.dof, caught.value.coordinates) == (0, ("A",))
    assert 2e-4 < caught.value.share < 1e-2


@pytest.mark.parametrize("decade", range(6, 12))
def test_without_a_tolerance_small_roundings_raise(decade: int) -> None:
    """Rigid where they are distinct from roundings of arithmetic; otherwise it cannot be closed far off."""
    m = disturbed(10.0**-decade, 0, 0.0)
    assert m.dof == (0 if decade < 9 else 1)
    kind, text = (
        (kic.InputError, "has mobility 0") if decade < 9 else (kic.ConfigurationError, "more than 1e-12 of")
    )
    with pytest.raises(kind, match=rf"{text}.*closure_tolerance"):
        m.at({"A": 0.3})


@pytest.mark.parametrize("decade", range(12, 16))
def test_roundings_of_arithmetic_are_none(decade: int) -> None:
    m, right = disturbed(10.0**-decade, 0, 0.0), loop(PLACES, AXES)
    found, right = (x.at({"A": 0.3}).coefficients(OF, order=3).tensors for x in (m, right))
    for a, b in zip(found, right, strict=True):
        assert np.abs(a - b).max() < (200 * 10.0**-decade + 1e-13) * np.abs(b).max()


def test_slightly_open_state_is_detected() -> None:
    """Conditions that follow from others at closed states do so no more: by so much, at which condition."""
    m = loop(PLACES, AXES)
    f = m.prepare.coefficients("tip", order=3)
    state = m.at({"A": 0.3}).state
    f(state)
    state[1] += 2e-9
    with raises(kic.SingularError, failed=[()]) as caught:
        f(state)
    state[1] += 1e-6
    with raises(kic.SingularError, dof=0, coordinates=("A",)):
        f(state)
    assert 1e-9 < caught.value.residual < 1e-6
    assert caught.value.condition < 1e3


@pytest.mark.parametrize("wrt", ["tip.x", "A"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_an_opened_state_raises_in_every_unit(unit: float, wrt: str) -> None:
    """Rows that are not used are judged without units, whatever the coordinates are."""
    m = linkages.resized(loop(PLACES, AXES), unit)
    state = m.at().state
    f = m.prepare.coefficients(["tip"], wrt=wrt)
    f(state)
    opened = state.copy()
    opened[1] += 4e-7
    with raises(kic.SingularError, dof=0):
        f(opened)
    with raises(kic.SingularError, dof=0):
        f(np.stack([state, opened]))


CLOSED = [name for name in kic.model_names() if not kic.load(name)._model.tree.open]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in ("four-bar", "delta") else pytest.mark.slow) for n in CLOSED]
)
def test_every_tolerance_has_an_answer(name):
    """A tolerance that drops exact conditions is named, with the number below which they count."""
    exact = kic.load(name)
    here, values = exact.mobility(), {c: exact.at().value(c) for c in exact.coordinates if "hub" not in c}
    for tolerance in (1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5, 0.99):
        m = exact.replace(closure_tolerance=tolerance)
        found, dropped = m.mobility(), here.shares[(here.shares > 1e-9) & (here.shares < tolerance)]
        assert found.dof >= here.dof
        assert "mobility" in found.summary()
        if found.dof == here.dof:
            assert not dropped.size
            assert m.at(values or None).ok.all()
            continue
        assert f"closure_tolerance = {tolerance:g}" in found.caveat()
        assert f"counts if closure_tolerance is below {dropped.max():.1e}" in found.caveat()
        with raises(kic.InputError, mobility=found.dof):
            m.at({c: 0.0 for c in exact.coordinates})
        # the number is right
        below = exact.replace(closure_tolerance=0.99 * float(dropped.max()))
        assert below.mobility().dof < found.dof
    with raises(kic.ModelError, key="closure_tolerance"):
        exact.replace(closure_tolerance=1.0)


def beside(*loops: kic.Mechanism) -> kic.Mechanism:
    """Loops on one ground; names have the number of the loop."""
    bodies, joints, coordinates = [], [], []
    for k, m in enumerate(loops):
        bodies += [replace(b, name=f"{b.name}{k}") for b in m.bodies]
        for j in m.joints:
            ends = tuple(b if b == "ground" else f"{b}{k}" for b in j.bodies)
            joints.append(replace(j, name=f"{j.name}{k}", bodies=ends))
        coordinates += [f"{name}{k}" for name in m.coordinates]
    tolerance = loops[0].closure_tolerance
    return kic.Mechanism("both", bodies, joints, coordinates=coordinates, closure_tolerance=tolerance)


def test_loops_that_share_no_joint_move_as_each_alone() -> None:
    """Beyond a dead centre of one loop there is no configuration."""
    bar = kic.load("four-bar").replace(coordinates=["D"], closure_tolerance=1e-4)
    loops, rng = (bar, disturbed(1e-5, 3, 1e-4)), np.random.default_rng(0)
    values = {"D0": np.array([2.4, 2.7, 3.0]), "A1": rng.uniform(0.4, 2.5, 3)}
    c = beside(*loops).at(values, failures="mask")
    alone = [m.at({name[0]: x}, failures="mask") for m, (name, x) in zip(loops, values.items(), strict=True)]
    np.testing.assert_array_equal(c.ok, alone[0].ok & alone[1].ok)
    assert c.ok.tolist() == [True, True, False]
    for k, one in enumerate(alone):
        for name in "ABCD":
            # loops are closed to 1e-12, and conditions are below 100 here
            np.testing.assert_allclose(c.value(f"{name}{k}")[c.ok], one.value(name)[c.ok], rtol=0, atol=2e-9)


@pytest.mark.parametrize("opened", ["B0", "B1"])
def test_curves_are_certified_if_all_loops_are(opened: str) -> None:
    """A curve that opens one loop proves nothing, whichever loop it is."""
    m = beside(disturbed(1e-5, 3, 1e-4), disturbed(1e-5, 4, 1e-4))
    closure = m._model.closure(m.coordinates)
    assert len(closure.blocks) == 2
    steps = np.zeros((2, 3, m._model.tree.size))
    steps[1, 1:, m._model.tree.columns.index(opened)] = 0.1
    states = closure.moved(np.repeat(m.at().state[None], 6, axis=0), steps.reshape(6, -1))
    values, G = (a.reshape(2, 3, *a.shape[1:]) for a in closure.rows(states))
    error = values[:1, :1] - values
    found = closure.certified(states.reshape(2, 3, -1), steps, values, G, error)
    np.testing.assert_array_equal(found, [True, False])
