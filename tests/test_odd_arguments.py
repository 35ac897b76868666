"""Public callables with odd arguments raise errors of kic, never those of the libraries below it."""

from __future__ import annotations

import random
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import odd
import pytest
import sympy
import wrong_arguments
from raising import refuses

import kic
from kic.kinematics import queries

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
CALLS = 1200
# their valid arguments need files, other packages or other mechanisms; positions have no program
WITHOUT_RESULT = {
    "AssemblyModes.grasp", "AssemblyModes.to_html", "ExportedMap.to_sympy", "joint_order", "Simulation.load",
    "position.specialize",
}  # fmt: skip
ARM, BAR = kic.load("horn-two-link"), kic.load("four-bar")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_only_errors_of_kic() -> None:
    outcomes = odd.search(CALLS, 0)
    assert not {outcome: n for outcome, n in outcomes.items() if outcome.startswith(("raw", "long"))}


@pytest.mark.slow
def test_valid_arguments_are_valid() -> None:
    """Each call has a result with some of its valid arguments; structures raise at most errors of kic."""
    failed, done, missing = set(), set(), set()
    for call in odd.calls():
        structure = call.label.startswith(odd.STRUCTURES)
        for k in range(3 if structure else 40 if call.name not in done else 0):
            positional, given = call.arguments(random.Random(k), share=(0.0, 1.0, 0.3)[k % 3])
            try:
                call.run(positional, given)
            except kic.MissingExtraError:
                missing.add(call.name)
            except kic.KicError:
                failed.add(call.name)
            else:
                done.add(call.name)
                if not structure:
                    break
    assert failed - done - missing <= WITHOUT_RESULT


@pytest.mark.slow
def test_every_public_callable_is_called() -> None:
    """A new public class, method, function or required parameter needs valid arguments in `odd`."""
    called = {call.name for call in odd.calls()}
    for module in odd.MODULES:
        for name, kind in odd.public(module).items():
            short = module.__name__.rpartition(".")[2]
            assert name in odd.RESULTS or {name, f"{short}.{name}"} & called, name
            # evaluators are called as instances of its subclasses; only other packages make a joint order
            if kind is kic.results.Evaluator or (kind is kic.results.JointOrder and not find_spec("mujoco")):
                continue
            if kind is kic.results.Viewer:  # starts a server; see test_viewer.py
                continue
            if isinstance(kind, type):
                assert {f"{name}.{method}" for method in odd.method_names(kind)} <= called


@pytest.mark.slow
def test_errors_name_the_argument() -> None:
    """An object, text, NaN, a wrong length or an unknown name as any argument of any public callable."""
    assert len(wrong_arguments.questions()) > 1000
    assert list(wrong_arguments.search()) == []


@pytest.mark.filterwarnings("error")
def test_odd_arguments_that_have_a_result() -> None:
    """Times of any type, symbols as efforts, and infinite rates."""
    trajectory = kic.trajectory.quintic([0.0, 0.0], [1.0, 1.0], 1.0)
    control = kic.controllers.ComputedTorque(ARM, trajectory, 1.0, 1.0)
    measured = (np.zeros(2), np.zeros(2))
    for t in (0.5, 2.0):
        assert np.array_equal(control(Decimal(t), measured), control(t, measured))
    x, d = sympy.Symbol("x"), ARM.at([0.3, 0.5]).dynamics()
    found = d.forward_dynamics([0.0, 0.0], np.array([x, 0 * x]))
    known = d.forward_dynamics([0.0, 0.0], [2.0, 0.0])
    assert np.allclose(np.array([a.subs(x, 2.0) for a in found], float), known, rtol=1e-12)
    r = BAR.prepare.pose("rocker")(BAR.at().state, np.array([np.inf]))
    assert not np.isfinite(r.twist).all()
    e = refuses(lambda: control.check("efforts", ARM.coordinates, ["A"] * 1000), key="actuators")
    assert len(str(e)) < 500


def test_outputs_may_be_named_twice() -> None:
    for m in (ARM, BAR, kic.load("five-bar")):
        for of in (["tip", "tip"], ["tip.x", "tip", "tip.x"]):
            found = m.prepare.coefficients(of, order=2)(m.at().state)
            for name in of:
                assert np.array_equal(found[name].H, m.at().coefficients(name, order=2).H)


@pytest.mark.parametrize("name", odd.STRUCTURES)
def test_results_of_structures_are_empty(name: str) -> None:
    c = odd.structure(name).at()
    assert c.dynamics().I.shape == c.linearize().K.shape == c.linearize().state_space().A.shape == (0, 0)
    assert c.coefficients("tip", order=3).D.shape == (3, 0, 0, 0)
    assert c.inverse_dynamics([], []).shape == (0,)
    refuses(lambda: c._model.description.simulate(1.0, near=c), mobility=0)


@pytest.mark.parametrize("name", ["horn-two-link", "five-bar"])
def test_results_beyond_a_size_raise_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuses(lambda: queries.Layout([(6, 360, 360, 360)]).check_size(), limit=queries.RESULT_NUMBERS_MAX)
    monkeypatch.setattr(queries, "RESULT_NUMBERS_MAX", 16)
    m = kic.load(name)
    c, v = m.at(), np.ones(m.dof)
    for ask in (
        lambda: c.coefficients("tip", order=3),
        c.dynamics,
        lambda: m.prepare.coefficients("tip", order=3),
        lambda: m.prepare.dynamics(),
    ):
        refuses(ask, limit=16)
    assert [u.shape for u in c.motion("tip", v, v)[:2]] == [(3,), (3,)]
    assert c.inverse_dynamics(v, v).shape == v.shape


def test_long_names_are_shortened() -> None:
    long = "A" * 3000
    for ask in (
        lambda: BAR.at({long: 1.0}),
        lambda: BAR.at().coefficients([long, f"{long}.x"]),
        lambda: kic.load(f"{long}.toml"),
        lambda: BAR.at().table().to_csv(f"{long}/x.csv"),
        lambda: kic.Joint(long, "revolute", ("a", "b")),
    ):
        caught = refuses(ask, kic.KicError)
        assert len(str(caught)) < 1000


def test_a_mechanism_without_loops_is_assembled() -> None:
    m = kic.load("planar-4r").close_loops(loops=iter([]))
    assert np.array_equal(m.at().pose(m.bodies[-1].name).as_matrix(), np.eye(4))


def test_an_index_beyond_the_end_ends_a_loop() -> None:
    postures = ARM.at(np.zeros((2, 2)))
    for items in (postures, ARM.mobility().independent_sets()):
        caught = refuses(lambda items=items: items[7], IndexError)
        assert isinstance(caught, kic.InputError)


@pytest.mark.slow
def test_names_and_units_are_drawn_literally() -> None:
    m = odd.strange()
    run = m.simulate(0.02, near=m.at())
    plot = run.plot(["_A", "$x^$", m.points[-1].name])
    assert " _A" in [line.get_label() for axes in plot.axes for line in axes.get_lines()]
    assert " _A" in [text.get_text() for axes in plot.axes for text in axes.texts]
    move = {"_A": np.linspace(0.9, 1.0, 3)}
    pictures = [
        plot,
        m.at().draw(names=True),
        kic.trajectory.line({"_A": 0.9}, {"_A": 1.0}).plot(m, t=3),
        m.sweep(move, "static_effort", progress=False).plot(),
        m.at().draw().velocity([1.0]),
    ]
    for picture in pictures:
        assert picture.svg().startswith("<svg")
        for text in picture.figure.findobj(lambda artist: hasattr(artist, "_preprocess_math")):
            assert not text._preprocess_math(text.get_text())[1], text.get_text()


def test_assemblies_behave_like_other_configurations() -> None:
    found = BAR.assembly_modes({"A": 1.2}, starts=4)
    weight = np.broadcast_to(np.eye(1), (2, *found.configuration.batch, 1, 1))
    r = found.configuration.resolve_redundancy("tip.x", [0.1], criterion=weight)
    assert r.qd.shape == (2, *found.configuration.batch, 1)
    assert found.configuration.resolve_redundancy("tip.x", [0.1], failures="mask").qd.shape == (
        *found.configuration.batch,
        1,
    )
    points = found.configuration.singularities(of="tip.x")
    assert [type(point.configuration) for point in points] == [kic.Configuration]


def test_a_checked_evaluator_takes_numbers_in_an_array_of_objects() -> None:
    f, state = ARM.prepare.coefficients_and_dynamics(["tip"]), np.array([0.05, 0.1], dtype=object)
    assert np.array_equal(f(state, check=True).I, f(state.astype(float)).I)
