"""Evaluators of every question: against tensors, in batches, overwritten, in threads, and sent."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from questions import EVALUATED, EXPORTED, answered
from questions import asked_of_evaluator as asked
from sampling import OFFSETS, STEP, WEIGHTS, mismatch, stepped

import kic

QUESTIONS = [name for name in EXPORTED if name != "actuation_map"]
# rounding errors of accelerations and tasks grow with the condition of I*, up to 1e4 here
RTOL = 1e-10


every_evaluator = pytest.mark.parametrize(
    ("question", "name"),
    [
        (q, n)
        for q in QUESTIONS
        for n in EVALUATED
        if q != "position" or not {"ball", "free", "hand"} & {*n.split()}
    ],
)


@every_evaluator
def test_evaluators_equal_tensors(question: str, name: str) -> None:
    """For batches and each member, also where earlier results are overwritten."""
    a = asked(question, name)
    whole, out = a.numbers(a(slice(None))), a(3)
    assert a.f.__name__ == question  # Dask splits names of tasks at hyphens
    held = a.numbers(out) if question != "pose" else {}  # made anew
    for k in range(4):
        known = answered(a.c[k], question, a.of, a.body, {key: x[k] for key, x in a.x.items()}, a.wrt)
        again = a(k, out=out)
        assert again is out
        assert {*known} <= {*whole}
        for found in (a.numbers(a(k)), {key: x[k] for key, x in whole.items()}, a.numbers(again), held):
            for key in known.keys() & found.keys():
                x = np.asarray(known[key])
                assert mismatch(found[key], x) < RTOL or np.abs(found[key] - x).max() < 1e-12, key


@pytest.mark.parametrize("name", EVALUATED)
@pytest.mark.parametrize("question", ["inverse_dynamics", "forward_dynamics", "motion"])
def test_methods_equal_evaluators(question: str, name: str) -> None:
    """Motions of methods are found without tensors, too."""
    a = asked(question, name)
    of = [a.of] if question == "motion" else []
    whole = getattr(a.c, question)(*of, *a.x.values(), wrt=a.wrt)
    found = a(slice(None))
    for x, known in zip(*((y,) if isinstance(y, np.ndarray) else y for y in (whole, found)), strict=True):
        np.testing.assert_allclose(x, known, rtol=1e-12, atol=1e-12 * np.abs(np.nan_to_num(known)).max())


@every_evaluator
def test_numbers_do_not_depend_on_the_way_of_a_call(question: str, name: str) -> None:
    """In threads, sent, for lists, strided and frozen arrays; results can be sent, too."""
    a = asked(question, name)
    want, sent, frozen = (
        [a.numbers(a(k)) for k in range(4)],
        pickle.loads(pickle.dumps(a.f)),
        a.state[1].copy(),
    )
    frozen.flags.writeable = False
    x = {key: np.repeat(y[1], 2)[::2] for key, y in a.x.items()}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: a.numbers(a(k)), [0, 1, 2, 3] * 8))
    ways = [
        sent(a.state[1], **x),
        a.f(a.state[1].tolist(), **x),
        a.f(frozen, **x),
        pickle.loads(pickle.dumps(a(1))),
    ]
    ways.append(a.f(np.stack([a.state[1]] * 2, axis=1)[:, 0], check=True, **x))
    for known, one in [*zip(want * 8, found, strict=True), *((want[1], a.numbers(one)) for one in ways)]:
        for key, y in known.items():
            np.testing.assert_array_equal(one[key], y, err_msg=key)


@every_evaluator
def test_members_without_numbers_are_nan(question: str, name: str) -> None:
    a = asked(question, name)
    if question == "position":
        with pytest.raises(kic.ConfigurationError):
            a.f(a.state, a.x["values"] * np.array([1, np.nan, 1, 1])[:, None])
        return
    state = a.state.copy()
    state[1] = np.nan
    whole, found = a.numbers(a(slice(None))), a.numbers(a.f(state, **a.x))
    for key, x in found.items():
        assert np.isnan(x[1]).any() or not whole[key][1].any(), key  # without dampers
        np.testing.assert_array_equal(x[[0, 2, 3]], whole[key][[0, 2, 3]], err_msg=key)
    for key, x in a.numbers(a.f(state[1], **{key: x[1] for key, x in a.x.items()})).items():
        assert np.isnan(x).any() or not whole[key][1].any(), key
    empty = a.numbers(a(slice(0, 0)))
    assert {key: x.shape for key, x in empty.items()} == {key: (0, *x.shape[1:]) for key, x in whole.items()}


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", EVALUATED)
def test_orders_of_evaluators_are_complex_steps(name: str, order: int) -> None:
    """Each order is the complex step of the order below, and each is that of all orders."""
    a = asked("coefficients", name)
    f = a.m.prepare.coefficients(a.of, order=order, wrt=a.wrt)
    below, whole, found = f(stepped(a.c[1], a.wrt).state), a(1), f(a.state[1])
    for row in a.of:
        assert all(getattr(found[row], letter) is None for letter in "GHD"[order:])
        for n, letter in enumerate("GHD"[:order], 1):
            known = getattr(whole[row], letter)
            assert mismatch(getattr(found[row], letter), known) < 1e-13
            lower = below[row].value if n == 1 else getattr(below[row], "GHD"[n - 2])
            if n > 1 or np.isfinite(found[row].value).all():
                step = np.moveaxis(lower.imag / STEP, 0, 1)
                assert mismatch(step, known) < 1e-10 or np.abs(step - known).max() < 1e-12, (row, letter)


@pytest.mark.parametrize("name", ["arm", "chain", "branched"])
@pytest.mark.parametrize("question", [q for q in QUESTIONS if q not in ("motion", "pose", "position")])
def test_results_along_complex_states_are_derivatives(question: str, name: str) -> None:
    """Against differences of sixth order; the state of these mechanisms are their coordinates."""
    a = asked(question, name)
    x, state, step = (
        {key: y[1] for key, y in a.x.items()},
        a.state[1],
        np.linspace(1.0, -0.7, len(a.state[1])),
    )
    near = a.numbers(a.f(state + 1e-3 * OFFSETS[:, None] * step, **x))
    for key, y in a.numbers(a.f(state + 1e-30j * step, **x)).items():
        slope = np.tensordot(WEIGHTS / 1e-3, near[key], axes=1)
        assert np.abs(y.imag / 1e-30 - slope).max() < 1e-8 * max(1.0, np.abs(near[key]).max()), key
