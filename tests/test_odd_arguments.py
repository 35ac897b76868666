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
# their valid arguments need files, other packages or other mechanisms
WITHOUT_RESULT = {
    "AssemblyModes.grasp", "AssemblyModes.to_html", "ExportedMap.to_sympy", "joint_order", "Simulation.load",
}  # fmt: skip
ARM, BAR = kic.load("horn-two-link"), kic.load("four-bar")
HOLD = kic.controllers.GravityCompensation(ARM)
MASKED = np.ma.array([0.0, 1.0], mask=[True, False])


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


KNOWN = {
    "ragged secondary motion": lambda: kic.load("planar-4r").at().resolve_redundancy(
        "tip", [0.1, 0.1], secondary=([1.0, [2.0]], 1.0)
    ),
    "efforts of another batch": lambda: kic.load("four-bar-motor").at().linearize(
        effort=np.zeros((3, 1)), qd=np.zeros((2, 1))
    ),
    "deviations of another batch": lambda: ARM.at().linearize().inverse_dynamics(
        np.ones((3, 2)), np.ones((4, 2))
    ),
    "deviations and efforts of another batch": lambda: ARM.at().linearize().forward_dynamics(
        np.ones((3, 2)), effort=np.ones((4, 2))
    ),
    "one coordinate twice": lambda: ARM.at().operational_space(["shoulder", "shoulder"]),
    "spline in no time": lambda: kic.trajectory.spline([[0.0], [1.0]], [0.0, 1e-200], degree=7),
    "dates": lambda: ARM.at().dynamics().kinetic_energy(np.array([np.datetime64("2020-01-01")], object)),
    "metrics in an array": lambda: BAR.sweep({"A": [1.0]}, np.ones((2, 2)), progress=False),
    "name in an array": lambda: kic.Body(np.ones(2)),
    "endless starts": lambda: BAR.assembly_modes({"A": 1.2}, starts=10**400),
    "endless samples": lambda: kic.trajectory.quintic([0, 0], [1, 1], 1.0).on(ARM, 2**63),
    "tolerance of 10": lambda: BAR.simulate(0.02, near=BAR.at(), integrator=kic.Integrator(rtol=10)),
    "huge speed": lambda: kic.trajectory.fastest(
        kic.trajectory.line([0.0, 0.0], [1.0, 1.0]), ARM, acceleration_limits=[1.0, 1.0], end_speed=1e200
    ),
    "tiny limits": lambda: BAR.at({"A": 1.0}).distribute([0.3], actuators=["A"], effort_limits=1e-320),
    "symbol in a polynomial": lambda: (
        BAR.export.actuation_map("B")
        .to_polynomial(limits={"A": (0.8, 1.1)}, degree=1)
        .J(np.array([sympy.Symbol("x")]))
    ),
    "masked rates": lambda: ARM.prepare.inverse_dynamics()(ARM.at().state, MASKED, np.zeros(2)),
    "masked accelerations of an output": lambda: ARM.prepare.motion("tip")(
        ARM.at().state, np.zeros(2), MASKED
    ),
    "infinite measurement": lambda: HOLD(0.0, (np.array([np.inf, 0.0]), np.zeros(2))),
    "complex measurement": lambda: HOLD(0.0, (np.array([1j, 0.0]), np.zeros(2))),
    "masked measurement": lambda: HOLD(0.0, (MASKED, np.zeros(2))),
    "huge measurement": lambda: HOLD(0.0, ([10**400, 0.0], np.zeros(2))),
    "huge limits": lambda: kic.Joint("A", "revolute", ("ground", "b"), effort_limits=[0, 10**400]),
    "masked limits": lambda: kic.DHRow("A", "b", limits=np.ma.array([0.0, 1.0], mask=[True, False])),
    "huge lengths": lambda: kic.linkages.chebyshev(coupler=1e155),
    "a number in place of a mechanism": lambda: kic.sensitivity(lambda x: 1.0, lambda m: m.at(), []),
    "huge rates": lambda: ARM.at().dynamics().inverse_dynamics([1e200, 0.0], [0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("what", KNOWN)
def test_known_odd_arguments(what: str) -> None:
    refuses(lambda: KNOWN[what](), kic.KicError)


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
