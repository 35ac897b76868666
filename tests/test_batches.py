"""Every question asked of batches: masked, empty, of one member and with two axes, and of single members."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from questions import CASES, QUESTIONS, Case, arrays, asked, random_arguments
from raising import raises

import kic
from kic.numerics.display import Printable
from kic.numerics.tables import Tabular

# differences between a batch and its members are rounding, magnified by their conditions (up to 1e3)
RTOL = 1e-9
BATCHES = [(), (0,), (1,), (4,), (2, 3)]
# questions that raise an error if a member is unsolved, because their results cannot be NaN
RAISING = ("pose", "grasp closure", "grip")

case_of = cache(lambda name: CASES[name]())


def masks(batch: tuple[int, ...], rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield masks of solved members: all, none, and some."""
    yield np.ones(batch, dtype=bool)
    if 0 not in batch:
        yield np.zeros(batch, dtype=bool)
        yield rng.random(batch) < 0.6


@cache
def shapes_of(case: Case, question: str) -> tuple[dict[str, tuple[int, ...]], set[str]]:
    """Return the shapes of the results of one member, and the names of those that all members share."""
    rng, found = np.random.default_rng(3), []
    for batch in ((), (5,)):
        c = case.mechanism.at(case.inputs(batch, rng))
        result = QUESTIONS[question](c, case, random_arguments(case, batch, rng))
        found.append({key: a.shape for key, a in arrays(result).items()})
    one, several = found
    return one, {key for key, shape in one.items() if shape == several[key]}


def check(case: Case, question: str, ok: np.ndarray, rng: np.random.Generator) -> None:
    """Compare a question asked of a batch with that asked of each member alone."""
    batch, ask = ok.shape, QUESTIONS[question]
    inputs, given = case.inputs(batch, rng), random_arguments(case, batch, rng)
    inputs[~ok] = rng.choice([np.nan, np.inf, -np.inf])
    c = case.mechanism.at(inputs, failures="mask")
    assert np.array_equal(c.ok, ok)
    if question == "draw" and not ok.any():
        with pytest.raises(kic.InputError):
            ask(c, case, given)
        return
    if question in RAISING and not ok.all():
        with pytest.raises(kic.KicError) as caught:
            ask(c, case, given)
        assert caught.value.numbers["failed"] == [tuple(k) for k in np.argwhere(~ok).tolist()]
        return
    result = ask(c, case, given)
    if isinstance(result, Printable):
        assert result.summary().text()
        assert result._repr_html_()
    if isinstance(result, Tabular):
        result._table()
    whole = arrays(result)
    shapes, shared = shapes_of(case, question)
    expected = {key: shape if key in shared else (*batch, *shape) for key, shape in shapes.items()}
    assert {key: a.shape for key, a in whole.items()} == expected
    for index in np.ndindex(batch):
        if not ok[index]:
            for key, a in whole.items():
                if key not in shared:
                    check_missing(key, a[index], question)
            continue
        alone = case.mechanism.at(inputs[index])
        own = {key: a[index] for key, a in given.items()}
        for member in (alone, c[index] if batch else c):
            for key, a in arrays(ask(member, case, own)).items():
                found = whole[key] if key in shared else whole[key][index]
                size = np.abs(a[np.isfinite(a)]).max(initial=0.0) if a.size else 0.0
                assert_allclose(found, a, RTOL, RTOL * max(size, 1.0), err_msg=f"{question} {key}")


def check_missing(key: str, a: np.ndarray, question: str) -> None:
    """Check that the result of an unsolved member is NaN, and that masks are False."""
    if a.dtype.kind in "fc" and key != "dt":
        assert np.isnan(a).all(), f"{question} {key}"
    elif a.dtype.kind == "b":
        assert not a.any(), f"{question} {key}"


ASKED = [(case, question) for case in CASES for question in asked(case)]


@pytest.mark.slow_for(
    "arm-drive", "discretize", "draw", "five-bar", "hand-grasp", "hand-grasp closure", "hand-grasp motion",
    "hand-grip", "hand-joint_forces",
)  # fmt: skip
@pytest.mark.parametrize(("case", "question"), ASKED)
def test_a_batch_answers_as_its_members(case: str, question: str) -> None:
    rng = np.random.default_rng(7)
    for batch in BATCHES:
        for ok in masks(batch, rng):
            check(case_of(case), question, ok, rng)


@pytest.mark.slow
def test_a_report_of_one_member() -> None:
    c = kic.load("four-bar").at({"A": [1.2, np.nan]}, failures="mask")
    assert c[0].to_html()
    assert [one.ok.shape for one in c] == [(), ()]


def test_solved_members_are_starts_like_others() -> None:
    m = kic.load("four-bar")
    c = m.at({"A": [0.5, np.nan, 0.7]}, failures="mask")
    alone = m.at({"A": [0.5, 0.7]})
    assert_allclose(m.at({"A": 0.6}, near=c[0])._phi, m.at({"A": 0.6}, near=alone[0])._phi, 1e-12)
    assert_allclose(c[c.ok].pose("coupler").as_matrix(), alone.pose("coupler").as_matrix(), 1e-12)
    with raises(kic.InputError, key="near"):
        m.at({"A": 0.6}, near=c)


def test_indices_of_failed_members_count_in_the_whole_batch() -> None:
    """Singular members of a masked batch are named by their index, whichever question finds them."""
    arm = kic.load("horn-two-link")
    inputs = np.array([[[0.3, 1.0], [np.nan, 1.0]], [[0.3, 0.8], [0.3, 0.0]]])
    c = arm.at(inputs, failures="mask")
    tip = ["tip.x", "tip.y"]
    questions = (
        lambda: c.coefficients("elbow", wrt=tip),
        lambda: c.dynamics(wrt=tip),
        lambda: c.inverse_dynamics(wrt=tip),
        lambda: c.motion("elbow", [1.0, 0.0], wrt=tip),
        lambda: c.linearize(wrt=tip),
        lambda: c.linearize(wrt=tip).state_space(),
        lambda: c.joint_forces(wrt=tip),
        lambda: c.joint_forces(actuators=tip),
        lambda: c.distribute([1.0, 0.0], actuators=tip),
        lambda: c.internal_loads(actuators=tip),
        lambda: c.operational_space(tip),
        lambda: c.resolve_redundancy(tip, [1.0, 0.0]),
        lambda: c.ellipsoid(tip).gradient(),
        lambda: c.coefficients("com", wrt=tip),
        lambda: c.centroidal_momentum(wrt=tip),
        lambda: c.body_contributions(wrt=tip),
        lambda: arm.at(inputs[1]).coefficients(tip).inverse(),
    )
    for k, question in enumerate(questions):
        with pytest.raises(kic.SingularError) as caught:
            question()
        expected = [(1, 1)] if k < len(questions) - 1 else [(1,)]
        assert caught.value.numbers["failed"] == expected, k
