"""One table of questions serves `prepare` and `export`, with one error for unknown names and options."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

import pytest
from raising import raises

import kic
from kic.prepared import QUESTIONS


@pytest.mark.parametrize("names", QUESTIONS, ids=" and ".join)
def test_options_of_exports_are_those_of_evaluators(names: tuple[str, ...]) -> None:
    """Exported functions have no option that the evaluator of the same question does not have."""
    question = QUESTIONS[names]
    assert question.evaluator or question.trace
    if question.evaluator and question.trace:
        module, _, function = question.trace.partition(".")
        traced = signature(getattr(import_module(f"kic.export.{module}"), function)).parameters
        known = signature(question.evaluator).parameters
        for name in list(traced)[1:]:
            assert traced[name].default == known[name].default


@pytest.mark.parametrize("ask", ["prepare", "export"])
def test_errors_are_the_same(ask: str) -> None:
    m = kic.load("four-bar")

    def asked(question: Any, **options: Any) -> None:
        if ask == "prepare":
            m.prepare(question, **options)
        else:
            m.export(question, to="numpy", **options)

    with raises(kic.InputError, key="question", got="invers_dynamics") as caught:
        asked("invers_dynamics")
    assert "'inverse_dynamics'" in str(caught.value)
    assert "motion" in caught.value.candidates
    if ask == "prepare":
        with raises(kic.InputError, key="question", got="actuation_map"):
            asked("actuation_map")
    with raises(kic.InputError, key="question", got=("dynamics", "motion")):
        asked(["dynamics", "motion"])
    with raises(kic.InputError, key="of"):
        asked("coefficients")
    with raises(kic.InputError, key="order"):
        asked("dynamics", order=2)
