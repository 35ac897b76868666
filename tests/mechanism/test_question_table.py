"""Questions are methods of `prepare` and of `export`, with the same options."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from questions import asked_of_evaluator
from raising import raises

import kic
from kic.export.export import ExportOptions, Exports
from kic.mechanism.prepared import Evaluators

ARGUMENTS = {
    "inverse_dynamics": "qd qdd",
    "forward_dynamics": "qd effort",
    "regressor": "qd qdd",
    "motion": "qd qdd qddd",
    "pose": "qd",
    "position": "values",
    "resolve_redundancy": "ud udd secondary secondary_rate qd",
}
QUESTIONS = {name for name in vars(Evaluators) if name[0] != "_"}


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_options_of_exports_are_those_of_evaluators(name: str) -> None:
    """Exported questions have no option of their own but those of all exports."""
    known = inspect.signature(getattr(Evaluators, name)).parameters
    exported = dict(inspect.signature(getattr(Exports, name)).parameters)
    for option in ExportOptions.__annotations__:
        assert exported.pop(option).kind is inspect.Parameter.KEYWORD_ONLY
    for option, p in exported.items():
        same = known[option]
        written = str(p.annotation).replace("_Names", "str | Iterable[str]")
        assert (p.kind, p.default) == (same.kind, same.default)
        assert written == str(same.annotation).replace("_Names", "str | Iterable[str]")


def test_methods_of_configurations_have_the_same_names() -> None:
    others = {"coefficients_and_dynamics", "position"}  # two at once; `Mechanism.at`
    assert QUESTIONS - others <= set(dir(kic.Configuration))
    assert {name for name in vars(Exports) if name[0] != "_"} == QUESTIONS | {"actuation_map"}


def test_questions_are_shown() -> None:
    m = kic.load("four-bar")
    assert repr(m.prepare).startswith("<prepare: coefficients, coefficients_and_dynamics, dynamics,")
    assert repr(m.export.dynamics()).startswith("<dynamics of 'four-bar' for to_c, to_casadi,")


@pytest.mark.parametrize(
    ("question", "method"),
    [
        ("dynamics", "dynamics"), (["dynamics", "coefficients"], "coefficients_and_dynamics"),
        ("jacobian", "coefficients"), ("rnea", "inverse_dynamics"), (3, ""), (np.array(["a", "b"]), ""),
    ],
)  # fmt: skip
def test_calls_name_the_method(question: object, method: str) -> None:
    """The line that an error gives works; none is given for what is no question."""
    m = kic.load("four-bar")
    for ask, then in ((m.prepare, ""), (m.export, ".to_c()")):
        with pytest.raises(TypeError) as caught:
            ask(question, to="c")  # type: ignore[operator]
        written = f"Write m.{'export' if then else 'prepare'}.{method}(…){then}."
        assert (written in str(caught.value)) is bool(method)
        assert "Available: " in str(caught.value)
        if method:
            assert callable(getattr(ask, method))


def test_questions_keep_copies_of_names() -> None:
    """A list that changes, and an iterator that ends, leave the question as it is."""
    m = kic.load("four-bar")
    of = ["tip"]
    asked, once = m.export.coefficients(of), m.export.coefficients(name for name in ["tip"])
    of.append("B")
    assert asked.to_numpy().outputs == once.to_numpy().outputs == once.to_numpy().outputs
    assert "B.G" not in asked.to_numpy().outputs


def test_questions_pickle() -> None:
    m = kic.load("four-bar")
    c = m.at()
    f = pickle.loads(pickle.dumps(m.prepare)).inverse_dynamics()
    assert f(c.state, [1.0], [2.0]) == m.prepare.inverse_dynamics()(c.state, [1.0], [2.0])
    asked = pickle.loads(pickle.dumps(m.export.dynamics()))
    assert asked.to_numpy()(c.state)["load"] == m.export.dynamics().to_numpy()(c.state)["load"]


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_arguments_of_evaluators_have_names(name: str) -> None:
    """Arguments are given by position or by name; errors list the names."""
    a, names = asked_of_evaluator(name, "five-bar"), tuple(ARGUMENTS.get(name, "").split())
    assert (*inspect.signature(a.f).parameters,) == ("state", *names, "out", "check")
    assert a.f.motion == names
    state, given = a.state[0], {key: x[0] for key, x in a.x.items()}
    by_name, by_place = a.f(state, check=True, **given), a.f(state, *given.values())
    np.testing.assert_equal(a.numbers(by_name), a.numbers(by_place))
    for wrong in ("tau", *names[:1]):
        with pytest.raises(TypeError, match=wrong):
            a.f(state, *given.values(), **{wrong: 1.0})
    with pytest.raises(TypeError, match=r"\(\) takes "):
        a.f(state, *[np.zeros(1)] * (len(names) + 1))


def test_tasks_may_have_names_of_results() -> None:
    """Results of a task are not named after its rows, in contrast to those of coefficients and dynamics."""
    m = kic.load("five-bar").add(kic.Point("load", "coupler", at=(1.0, 1.0, 0.0)))
    c = m.at()
    found = m.prepare.operational_space("load.x")(c.state)
    assert_allclose(found.Lambda, c.operational_space("load.x").Lambda, 1e-12)
    with raises(kic.InputError, name="load"):
        m.prepare.coefficients_and_dynamics("load")
