"""Prepared evaluators: the same numbers as the methods of `Configuration`, plain arrays, reused memory."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest
from questions import EXPORTED, asked_of_evaluator
from raising import raises
from sampling import random_posture, random_tree

import kic
from kic.kernels.jit import entry
from kic.transfer.program import ARGUMENTS


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Equal but for the last digits, which bringing quaternions to unit length may move."""
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_quaternions_are_brought_to_unit_length() -> None:
    m = random_tree(np.random.default_rng(1), ["spherical"])
    c = random_posture(np.random.default_rng(2), m)
    f = m.prepare.coefficients(["p0"])
    assert np.allclose(f(3 * c.state).p0.H, c.coefficients("p0").H, atol=1e-14)


def test_names_that_clash_or_are_not_there() -> None:
    m = kic.load("horn-two-link")
    m = replace(m, points=(*m.points, kic.Point("P", "link2", (2, 0, 0))))
    with raises(kic.InputError, name="P"):
        m.prepare.coefficients_and_dynamics(["P"])
    r = m.prepare.coefficients(["P"])(m.at().state)
    assert r.P.G.shape == (3, 2)
    assert not hasattr(r, "tip")


def test_inertia_alone() -> None:
    m = kic.load("puma560")
    c = m.at(np.linspace(-1, 1, 6))
    r = m.prepare.dynamics(wrt="link6", loads=False)(c.state)
    assert np.array_equal(r.P, c.dynamics(wrt="link6").P)
    with raises(kic.UnknownNameError, name="load"):
        r.load  # noqa: B018


def test_results_are_freed_at_once() -> None:
    """No cycle holds their memory until the collector runs."""
    m = kic.load("puma560")
    r = m.prepare.coefficients_and_dynamics(["face", "link6"], order=3)(m.at(np.zeros((8, 6))).state)
    assert r.face.G.shape == (8, 3, 6)
    assert r.link6.value.shape == (8, 6)
    gone = weakref.ref(r)
    gc.disable()
    try:
        del r
        assert gone() is None
    finally:
        gc.enable()


def test_states_are_checked_on_request() -> None:
    m = kic.load("gough-stewart")
    c = m.at()
    f = m.prepare.coefficients_and_dynamics(["platform"], loads=False)
    states = np.repeat(c.state[None], 3, axis=0)
    checked = f(states, check=True)
    assert np.array_equal(checked.I, f(states).I)
    condition = f.check(states)
    assert condition.shape == (3,)
    assert (condition == f.check(c.state)).all()
    assert 1 < condition[0] < 1e3
    states[1, 2] += 1e-3
    with raises(kic.InputError, joint="S2"):
        f(states, check=True)
    with raises(kic.InputError, joint="S2", failed=[(1,)]):
        f(states)
    arm = kic.load("horn-two-link")
    assert arm.prepare.coefficients(["tip"]).check(arm.at([[0.0, 0.0], [1.0, 1.0]]).state).tolist() == [
        1.0,
        1.0,
    ]


def test_memory_of_results_is_released() -> None:
    m = kic.load("five-bar")
    f = m.prepare.coefficients_and_dynamics(["tip"])
    assert f.__name__ == "coefficients_and_dynamics"
    made = f(m.at().state)
    tables = [weakref.ref(table) for table in (made._rows, made._model)]
    del made
    assert not any(table() is not None for table in tables)


@pytest.mark.slow_for("gough-stewart")
@pytest.mark.parametrize("name", ["five-bar", "gough-stewart", "ladder"])
def test_uninitialized_memory_is_not_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Singular and unsolved members with arbitrary scratch memory give NaN or an error."""
    honest = ARGUMENTS["transfer"]

    def poisoned(*given):
        arguments = honest(*given)
        arguments[6][:] = 1e300
        arguments[7][:] = 2**40
        return arguments

    monkeypatch.setitem(ARGUMENTS, "transfer", poisoned)
    m = kic.load(name)
    state = m.at().state
    clean = m.prepare.dynamics()(state)
    bad = np.stack([np.full(state.shape, np.nan), state, np.full(state.shape, np.nan)])
    f = m.prepare.dynamics()
    found = f(bad)
    assert np.isnan(found.I[[0, 2]]).all()
    assert np.isnan(found.load[[0, 2]]).all()
    assert np.abs(found.P[1] - clean.P).max() < 1e-12 * np.abs(clean.P).max()
    assert np.isnan(f(bad[0]).P).all()
    # rows that are dependent in every configuration
    turning = [f"cylinder1.{w}" for w in ("wx", "wy", "wz")]
    useless = {"five-bar": ["A", "tip.z"], "gough-stewart": [*turning, "L1", "L2", "L3"]}
    if name in useless:
        with pytest.raises(kic.SingularError) as caught:
            m.prepare.dynamics(wrt=useless[name])(np.stack([state] * 5))
        assert caught.value.failed == [(k,) for k in range(5)]
        assert "(members 0, 1, 2, 3, … of 5)" in str(caught.value)


def slides() -> kic.Mechanism:
    """Return an arm that turns and slides."""
    bodies = [
        kic.Body(name, mass=2.0, com=(0.3, 0.1, 0.0), inertia=(0.1, 0.2, 0.3)) for name in ("turret", "ram")
    ]
    joints = [
        kic.Joint("R", "revolute", ("ground", "turret"), (0, 0, 0), (0, 0, 1)),
        kic.Joint("S", "prismatic", ("turret", "ram"), (0, 0, 0), (1, 0, 0)),
    ]
    points = [kic.Point("tip", "ram", (1.0, 0.0, 0.0)), kic.Point("eye", "ram", (0.0, 0.0, 0.0))]
    return kic.Mechanism(
        "ram", bodies, joints, points=points, distances=[kic.Distance("reach", ("tip", "eye"))]
    )


@pytest.mark.parametrize("wrt", [None, ["R", "tip.x"]])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_results_that_overflow_raise_in_hot_calls(wrt: list[str] | None, batch: tuple[int, ...]) -> None:
    m = slides()
    sound = np.broadcast_to([0.3, 0.2], (*batch, 2)).copy()
    huge = sound.copy()
    huge[(-1,) * len(batch)][...] = 0.3, 1e200  # S² overflows
    unknown = sound.copy()
    unknown[(-1,) * len(batch)][...] = np.nan
    ones = np.ones(2)
    evaluators = [
        m.prepare.coefficients_and_dynamics(["tip"], order=2, wrt=wrt),
        m.prepare.coefficients_and_dynamics(["tip"], wrt=wrt, loads=False),
    ]
    for f in evaluators:
        out = f(sound)
        for _ in range(2):
            with pytest.raises(kic.KicError):
                f(huge)
            with pytest.raises(kic.KicError):
                f(huge, out=out)
        assert np.isfinite(f(sound, out=out).I).all()
        made = f(unknown).I
        assert np.isnan(made).any(axis=(-1, -2)).sum() == 1
    for g in (m.prepare.inverse_dynamics(wrt=wrt), m.prepare.forward_dynamics(wrt=wrt)):
        result = g(sound, ones, ones)
        for state, qd in ((huge, ones), (sound, 1e200 * ones)):
            with pytest.raises(kic.KicError):
                g(state, qd, ones)
            with pytest.raises(kic.KicError):
                g(state, qd, ones, out=result.copy())
        assert np.isnan(g(unknown, ones, ones)).any(axis=-1).sum() == 1
    for h in (m.prepare.operational_space("tip.x", wrt=wrt), m.prepare.resolve_redundancy("tip.x", wrt=wrt)):
        with pytest.raises(kic.KicError):
            h(huge) if h.question == "operational_space" else h(huge, ud=[1.0])


@pytest.mark.parametrize("dtype", [float, complex])
def test_exponent_check_detects_large_and_nonfinite_numbers(dtype: type) -> None:
    from kic.kernels.functions import has_large, has_nonfinite

    @entry
    def found(t):
        return has_nonfinite(t[1]), has_large(t[1])

    top, limit = np.finfo(float).max, 2.0**100
    for x in (
        0.0,
        -0.0,
        5e-324,
        1.0,
        np.nextafter(limit, 0),
        limit,
        -limit,
        top,
        -top,
        np.inf,
        -np.inf,
        np.nan,
    ):
        for n in (1, 9, 16):
            for k in {0, n // 2, n - 1}:
                t = np.ones((2, n), dtype)
                t.view(float)[1, k] = x
                want = not np.isfinite(x), not abs(x) < limit
                assert tuple(map(bool, found(t))) == want
                assert tuple(map(bool, found.py_func(t))) == want
    assert found(np.ones((2, 0), dtype)) == (False, False)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_third_order_of_long_arms(batch: tuple[int, ...]) -> None:
    """Results are checked one by one only where lengths or states are large."""
    m = slides()
    f = m.prepare.coefficients(["tip"], order=3)
    unit = f(np.array([0.3, 0.0])).tip
    for length in (1e20, 1e40, 1e300):
        state = np.broadcast_to([0.3, length - 1], (*batch, 2)).copy()
        made = f(state).tip
        for got, want in ((made.G[..., 0], unit.G[:, 0]), (made.D[..., 0, 0, 0], unit.D[:, 0, 0, 0])):
            same(got / length, np.broadcast_to(want, got.shape))
    twice = replace(
        m,
        bodies=(*m.bodies, kic.Body("rod")),
        joints=(*m.joints, kic.Joint("U", "prismatic", ("ram", "rod"), (0, 0, 0), (1, 0, 0))),
        points=(kic.Point("tip", "rod", (1.0, 0.0, 0.0)), *m.points[1:]),
    ).prepare.coefficients(["tip"], order=3)
    assert np.isfinite(twice(np.broadcast_to([0.3, 1.5e308, 0.0], (*batch, 3)).copy()).tip.D).all()
    with pytest.raises(kic.InputError, match="finite"):
        twice(np.broadcast_to([0.3, 1.5e308, 1.5e308], (*batch, 3)).copy())
    assert np.isnan(f(np.full((*batch, 2), np.nan)).tip.D).any()


def test_rows_without_derivatives_raise_in_hot_calls() -> None:
    m = replace(slides(), points=(kic.Point("tip", "ram", (0, 0, 0)), kic.Point("eye", "turret", (0, 0, 0))))
    f = m.prepare.coefficients(["reach"])
    assert f(np.array([0.3, 0.2])).reach.G.shape == (1, 2)
    for state in (np.zeros(2), np.zeros((3, 2))):
        with raises(kic.InputError, distances=("reach",)):
            f(state)


def moved(rng: np.random.Generator, name: str) -> tuple[kic.Mechanism, np.ndarray, list[np.ndarray]]:
    m = kic.load(name)
    return m, m.at().state, [rng.normal(size=len(m.coordinates)) for _ in range(3)]


@pytest.mark.parametrize("name", kic.model_names())
def test_motions_of_one_state_are_those_of_a_batch(name: str) -> None:
    """One state takes one call of each kernel; the numbers and the masks are those of a batch."""
    m, state, rates = moved(np.random.default_rng(4), name)
    joint = m.coordinates[0]
    for of in (joint, *(p.name for p in (*m.points, *m.frames))):
        f = m.prepare.motion(of)
        one, many = f(state, *rates), f(state[None], *rates)
        for a, b in zip(one, many, strict=True):
            np.testing.assert_array_equal(a, b[0])
        np.testing.assert_array_equal(one[0], m.at().value(of))
        for a, b in zip(
            f(state, rates[0]), f(state[None], rates[0], None, [0.0] * len(rates[0])), strict=True
        ):
            np.testing.assert_array_equal(a, b[0])
        long = np.append(rates[0], 0.0)
        no_numbers = [rates[0] > 0], [np.ma.array(rates[0], mask=True)]
        for given in ([long], [rates[0], long], [*rates[:2], long], [long, long, long], *no_numbers):
            with raises(kic.InputError):
                f(state, *given)
        with raises(kic.InputError, key="state"):
            f(state[:-1], *rates)
        bad = state.copy()
        bad[0], infinite = np.nan, 0 * rates[2] + np.inf
        for given in ((bad, *rates), (state, *rates[:2], infinite), (state, infinite, *rates[1:])):
            assert all(np.isnan(a).all() for a in f(*given))
        large = 1e200 * rates[0]
        try:
            many = f(state[None], large)
        except kic.KicError as error:  # accelerations overflow
            with raises(type(error)):
                f(state, large)
        else:
            np.testing.assert_array_equal(f(state, large)[2], many[2][0])


# from planar loops to spatial ones with quaternions; of couplings only; in other coordinates
CLOSED = [
    "four-bar", "five-bar", "slider-crank", "delta", "gough-stewart", "three-rps", "scara by followers",
    "four-bar by D",
]  # fmt: skip
QUESTIONS = [name for name in EXPORTED if name not in ("position", "actuation_map")]


def test_numbers_without_effect_are_read() -> None:
    """Results are NaN also where the requested rows do not depend on the number."""
    scara, arm = kic.load("scara"), kic.load("puma560")
    row = scara.bodies[-1].name + ".x"
    f, g = scara.prepare.coefficients([row]), arm.prepare.regressor([arm.bodies[0].name])
    for number in (np.nan, np.inf):
        for shape in ((), (3,), (16,), (17,), (2, 3)):
            state, S, qd = scara.at().state, arm.at().state, np.zeros((*shape, 6))
            states = np.broadcast_to(state, (*shape, state.size)).copy()
            clean = f(states)
            states[..., 2] = number
            assert np.isnan(f(states)[row].value).all()
            assert np.isnan(f(states)[row].H).all()
            assert np.isnan(f(states, out=clean)[row].value).all()
            S, strange = np.broadcast_to(S, (*shape, 6)).copy(), qd.copy()
            strange[..., 5] = number
            assert np.isnan(g(S, strange, qd)).all()
            assert np.isnan(g(S, qd, strange)).all()


@pytest.mark.parametrize("shape", [(), (4,), (20,)])
def test_results_in_place_can_be_copied(shape: tuple[int, ...]) -> None:
    m = kic.load("five-bar")
    f, state = m.prepare.dynamics(), m.at().state
    r = f(np.broadcast_to(state, (*shape, state.size)).copy())
    f(np.broadcast_to(state, (*shape, state.size)).copy(), out=r)
    for made in (pickle.loads(pickle.dumps(r)), copy.deepcopy(r)):
        np.testing.assert_array_equal(made.P, r.P)


def test_open_states_of_the_terms_of_forward_dynamics() -> None:
    """Errors have the index in the batch, as those of the question itself."""
    m = kic.load("five-bar")
    f, states, zero = m.prepare.forward_dynamics(), np.tile(m.at().state, (2, 3, 1)), np.zeros(2)
    states[1, 2, 0] += 0.1
    for ask in (f, f.terms):
        with raises(kic.InputError, key="state", failed=[(1, 2)]):
            ask(states, np.zeros((2, 3, 2)), np.zeros((2, 3, 2)))
        with raises(kic.InputError, key="state", failed=[()]):
            ask(states[1, 2], zero, zero)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", CLOSED)
def test_open_states_are_errors(name: str, question: str) -> None:
    a = asked_of_evaluator(question, name)
    f, state, motion = a.f, a.state[0], [x[0] for x in a.x.values()]
    r = f(state, *motion)
    away = state.copy()
    away[0] += 0.1
    with raises(kic.InputError, key="state") as told:
        f.check(away)
    error = {"key": "state", "joint": told.value.joint, "residual": told.value.residual}
    assert error["residual"] > 1e-3
    states = np.repeat(state[None], 6, axis=0).reshape(3, 2, -1)
    several = f(states, *motion)
    opened = states.copy()
    opened[2, 0] = away
    for given, out, failed in ((away, r, [()]), (opened, several, [(2, 0)])):
        for more in ({}, {"out": out}):
            with raises(kic.InputError, failed=failed, **error):
                f(given, *motion, **more)
    f(state, *motion, out=r)
    opened[0] = np.nan
    with pytest.raises(kic.InputError, match=r"member 4 of 6") as told:
        f(opened, *motion)
    assert told.value.failed == [(2, 0)]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", [*CLOSED, "free base", "puma560 by its hand", "planar-4r"])
def test_small_batches_have_the_numbers_of_batches_of_any_shape(name: str, question: str) -> None:
    """Batches with one axis take the calls of one state, those with two axes all checks."""
    a = asked_of_evaluator(question, name)
    f, states, motion = a.f, a.state, [*a.x.values()]

    def compare(found: object, want: object, *member: int) -> None:
        for (key, x), y in zip(a.numbers(found).items(), a.numbers(want).values(), strict=True):
            np.testing.assert_array_equal(x, y[member] if member else y[0], key)

    for count in (1, 4):
        given = [states[:count], *(x[:count] for x in motion)]
        want, r = f(*(x[None] for x in given)), f(*given)
        compare(r, want)
        f(*(x[::-1] for x in given), out=r)  # strided
        compare(r, f(*(x[None, ::-1] for x in given)))
        compare(f(*given, out=r), want)
        for x in given:
            x.flags.writeable = False
        compare(f(*map(np.asfortranarray, given)), want)
        lost = states[:count].copy()
        lost[-1] = np.nan
        found = f(lost, *given[1:], out=r)
        compare(found, f(lost[None], *(x[None] for x in given[1:])))
        assert any(np.isnan(x[-1]).any() for x in a.numbers(found).values())
        for k, x in enumerate(given):  # also where the results do not depend on it
            for place in range(x.shape[-1]):
                strange = [y.copy() for y in given]
                strange[k][-1, place] = np.nan
                want_strange = f(*(y[None] for y in strange))
                compare(f(*strange), want_strange)
                compare(f(*(y[-1] for y in strange)), want_strange, 0, -1)
        for k in range(count):
            compare(f(*(x[k] for x in given)), want, 0, k)
    with raises(kic.InputError, key="out"):
        f(*(x[:2] for x in given), out=r)
    # the numbers of a batch in other shapes
    for shape in ((-1,), (1, -1), (2, -1)):
        with pytest.raises(kic.InputError):
            f(*(x.reshape(shape) for x in given))
        with pytest.raises(kic.InputError):
            f(states, *(x.reshape(shape) for x in motion)) if motion else f(states.reshape(shape))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", CLOSED)
def test_rounded_and_unknown_states_are_no_errors(name: str, question: str) -> None:
    a = asked_of_evaluator(question, name)
    state, motion, want = a.state[0], [x[0] for x in a.x.values()], a.numbers(a(0))
    for rounded, rtol in ((state + 1e-13, 1e-9), (state.astype(np.float32).astype(float), 1e-3)):
        for key, x in a.numbers(a.f(rounded, *motion)).items():
            np.testing.assert_allclose(x, want[key], rtol=rtol, atol=rtol * np.nanmax(np.abs(want[key])))
    for unknown in (np.nan, np.inf):
        lost = state.copy()
        lost[0] = unknown
        for given, good in ((lost, False), (np.array([state, lost]), True)):
            found = np.concatenate([x.ravel() for x in a.numbers(a.f(given, *motion)).values()])
            assert np.isnan(found).any()
            assert np.isfinite(found).any() or not good


def test_state_of_a_five_bar_that_misses_by_a_tenth() -> None:
    """The efforts of a state that does not close would be 4 % wrong."""
    m = kic.load("five-bar")
    f, state = m.prepare.inverse_dynamics(), m.at().state
    state[1] += 0.1
    with raises(kic.InputError, key="state", joint="D"):
        f(state, np.array([1.0, 0.5]), np.zeros(2))


def test_open_chains_have_no_states_that_do_not_close() -> None:
    m, rates, state = kic.load("puma560"), np.zeros(6), np.linspace(-1, 1, 6) + 0.1
    for wrt in (None, "link6"):
        f = m.prepare.inverse_dynamics(wrt=wrt)
        assert np.isfinite(f(state, rates, rates)).all()
        assert f.check(state) >= 1


def test_states_of_rounded_dimensions_close_within_their_tolerance() -> None:
    m = kic.load("five-bar").replace(closure_tolerance=1e-3)
    f, state = m.prepare.coefficients("tip"), m.at().state
    state[1] += 1e-4
    f(state)
    with raises(kic.InputError, key="state"):
        kic.load("five-bar").prepare.coefficients("tip")(state)
    state[1] += 0.1
    with raises(kic.InputError, key="state"):
        f(state)


def test_states_of_a_fixed_distance_are_compared_with_its_length() -> None:
    m = kic.Mechanism(
        "rod",
        bodies=[kic.Body("a", mass=1.0, com=(0.5, 0, 0), inertia=(0, 0.1, 0.1)),
                kic.Body("b", mass=1.0, com=(2.0, 0.5, 0), inertia=(0.1, 0, 0.1))],
        joints=[kic.Joint("A", "revolute", ("ground", "a"), at=(0, 0, 0), axis=(0, 0, 1)),
                kic.Joint("B", "revolute", ("ground", "b"), at=(2, 0, 0), axis=(0, 0, 1))],
        points=[kic.Point("p", "a", at=(1, 0, 0)), kic.Point("q", "b", at=(2, 1, 0))],
        distances=[kic.Distance("rod", ("p", "q"), fixed=True)],
        coordinates=["A"],
    )  # fmt: skip
    f, state = m.prepare.inverse_dynamics(), m.at({"A": 0.2}).state
    assert np.isfinite(f(state, np.ones(1), np.ones(1))).all()
    with raises(kic.InputError, key="state", joint="rod"):
        f(state + np.array([0.0, 0.1]), np.ones(1), np.ones(1))


def test_states_that_do_not_close_near_a_singularity() -> None:
    """Rows are chosen again there; the residual decides first."""
    m = kic.load("four-bar")
    names = [joint.name for joint in m.joints]
    f = m.prepare.inverse_dynamics(wrt=names[-1])
    state = m.at().state
    assert np.isfinite(f(state, np.ones(1), np.ones(1))).all()
    state[1] += 0.3
    with raises(kic.InputError, key="state"):
        f(state, np.ones(1), np.ones(1))


def test_terms_of_strided_arrays_are_those_of_contiguous_ones() -> None:
    m = kic.load("five-bar")
    f = m.prepare.forward_dynamics()
    given = [m.at().state, np.array([0.4, -0.7]), np.array([0.02, 0.05])]
    spread = [np.repeat(a, 2)[::2] for a in given]
    assert not any(a.flags.c_contiguous for a in spread)
    for got, want in zip(f.terms(*spread), f.terms(*given), strict=True):
        assert np.array_equal(got, want)


def test_results_without_loads_have_none() -> None:
    m = kic.load("puma560")
    found, whole = (m.prepare.dynamics(loads=loads)(m.at().state) for loads in (False, True))
    assert np.array_equal(found.I, whole.I)
    assert not hasattr(found, "load")
