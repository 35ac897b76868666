"""Public callables with odd arguments raise errors of kic, never those of the libraries below it."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import odd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import RigidTransform, Rotation

import kic
import kic.classics

pytest.importorskip("matplotlib")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=800,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.randoms(use_true_random=False))
def test_only_errors_of_kic(rng: random.Random) -> None:
    subject = rng.choice(odd.subjects())
    positional, named = subject.draw(rng)
    with suppress(kic.KicError):
        subject.run(positional, named)


def test_every_public_callable_is_called() -> None:
    """A new public class or function is called, or is named as a result or as one that writes files."""
    called = {type(subject.owner).__name__ for subject in odd.subjects()}
    called |= {getattr(subject.function, "__name__", "") for subject in odd.subjects()}
    for name in kic.__all__:
        kind = getattr(kic, name)
        if not callable(kind) or (isinstance(kind, type) and issubclass(kind, Exception)):
            continue
        assert name in called | odd.RESULTS | odd.SKIPPED, name


ARM, BAR = kic.load("horn-two-link"), kic.load("four-bar")
KNOWN = {
    "ragged secondary motion": lambda: kic.load("planar-4r").at().resolve(
        "tip", [0.1, 0.1], secondary=([1.0, [2.0]], 1.0)
    ),
    "sensitivity to a pose": lambda: kic.sensitivity(BAR, lambda m: m.dof, RigidTransform.identity()),
    "seed as an array": lambda: BAR.assemblies({"A": 1.0}, seed=np.array([[1.0]])),
    "efforts of another batch": lambda: kic.load("four-bar-motor").at().state_space(
        effort=np.zeros((3, 1)), qd=np.zeros((2, 1))
    ),
    "positions of text": lambda: kic.load("four-bar").prepare_position().at_positions("x", BAR.at().state),
    "spline in no time": lambda: kic.trajectory.spline([[0.0], [1.0]], [0.0, 1e-200], degree=7),
    "no names, closed": lambda: BAR.at().coefficients([]),
    "no names, open": lambda: ARM.at().coefficients([]),
    "no rows": lambda: BAR.at().manipulability_gradient([]),
    "name as an array": lambda: BAR.at().coefficients(np.array("tip")),
    "with_fixed None": lambda: ARM.at().linearize().with_fixed(None),
    "effort of text": lambda: ARM.at().linearize().inverse_dynamics("x"),
    "acceleration of text": lambda: ARM.at().linearize().forward_dynamics(effort="x"),
    "matched None": lambda: ARM.at().coefficients("tip").matched(None),
    "renamed None": lambda: ARM.at().coefficients("tip").renamed(None),
    "identity None": lambda: kic.Coefficients.identity(None),
    "line to no names": lambda: kic.trajectory.line([1, 2], {}),
    "tolerance of 10": lambda: kic.simulate(BAR, BAR.at(), 0.02, rtol=10),
    "flag of an array": lambda: ARM.at().dynamics(motors=np.zeros(2)),
    "lengths in one array": lambda: kic.classics.reachable_workspace(np.ones(2)),
    "product of endless order": lambda: kic.products.dot(np.eye(3), np.ones((3, 3, 3)), order=2**63),
    "joints as a rotation": lambda: kic.classics.OperationTable(Rotation.identity()),
    "failures as an array": lambda: BAR.at().dynamics(failures=np.zeros(2)),
    "failures as records": lambda: ARM.at().coefficients("tip", failures=np.zeros(1, [("a", float)])),
    "euler of an object without text": lambda: ARM.at().euler(odd.Sour(), "xyz"),
    "seed without an array": lambda: BAR.assemblies({"A": 1.2}, seed=odd.Sour()),
    "run file of an object": lambda: kic.Simulation.load(odd.Sour()),
    "units in an array": lambda: kic.sweep(BAR, {"A": [1.0]}, "static_effort", units=np.zeros(0)),
    "an empty state": lambda: ARM.prepare_inverse_dynamics()([], [0.0, 0.0], [0.0, 0.0]),
    "names in arrays": lambda: kic.CenterOfMass("s", ["a", np.array("b")]),
    "huge speed": lambda: kic.trajectory.fastest(
        kic.trajectory.line([0.0, 0.0], [1.0, 1.0]), ARM, acceleration=[1.0, 1.0], end_speed=1e200
    ),
    "tiny limits": lambda: BAR.at({"A": 1.0}).distribute([0.3], ["A"], limits=1e-320),
    "huge rates": lambda: ARM.at().dynamics().inverse_dynamics([1e200, 0.0], [0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("what", KNOWN)
def test_known_odd_arguments(what: str) -> None:
    with pytest.raises(kic.KicError):
        KNOWN[what]()


def test_a_mechanism_without_loops_is_assembled() -> None:
    m = kic.load("planar-4r").assemble(loops=iter([]))
    assert np.array_equal(m.at().pose(m.bodies[-1].name).as_matrix(), np.eye(4))


def test_an_index_beyond_the_end_ends_a_loop() -> None:
    postures = ARM.at(np.zeros((2, 2)))
    for items in (postures, ARM.independent_sets()):
        with pytest.raises(IndexError) as caught:
            items[7]
        assert isinstance(caught.value, kic.InputError)


def test_names_and_units_are_drawn_literally() -> None:
    m = odd.strange()
    run = kic.simulate(m, m.at(), 0.02)
    plot = run.plot(["_A", "$x^$", m.points[-1].name])
    assert " _A" in [line.get_label() for axes in plot.axes for line in axes.get_lines()]
    assert " _A" in [text.get_text() for axes in plot.axes for text in axes.texts]
    move = {"_A": np.linspace(0.9, 1.0, 3)}
    pictures = [
        plot,
        kic.draw(m.at(), names=True),
        kic.trajectory.line({"_A": 0.9}, {"_A": 1.0}).plot(m, 3),
        kic.sweep(m, move, "static_effort", progress=False).plot(),
        kic.draw(m.at()).velocity([1.0]),
    ]
    for picture in pictures:
        assert picture.svg().startswith("<svg")
        for text in picture.figure.findobj(lambda artist: hasattr(artist, "_preprocess_math")):
            assert not text._preprocess_math(text.get_text())[1], text.get_text()


def test_assemblies_behave_like_other_configurations() -> None:
    found = BAR.assemblies({"A": 1.2}, starts=4)
    weight = np.broadcast_to(np.eye(1), (2, *found.batch, 1, 1))
    r = found.resolve("tip.x", [0.1], weight=weight)
    assert r.qd.shape == (2, *found.batch, 1)
    assert found.resolve("tip.x", [0.1], failures="mask").qd.shape == (*found.batch, 1)
    points = found.singularities(outputs="tip.x")
    assert [type(point.configuration) for point in points] == [kic.Configuration]


def test_a_checked_evaluator_takes_numbers_in_an_array_of_objects() -> None:
    f, state = ARM.prepare(["tip"], dynamics=True), np.array([0.05, 0.1], dtype=object)
    assert np.array_equal(f(state, check=True).I, f(state.astype(float)).I)
