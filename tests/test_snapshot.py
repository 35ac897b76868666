"""The snapshot of results asks every question with the present interface, and finds changed results."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import snapshot


@cache
def results(name: str) -> dict[str, np.ndarray]:
    return dict(snapshot.answers([name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", snapshot.OTHERS)
def test_every_question_has_a_result_or_an_error_of_kic(name: str) -> None:
    found = results(name)
    for question in {**snapshot.QUESTIONS, **snapshot.OTHERS[name]}:
        assert any(key.startswith(f"{name}/{question}/") for key in found), question
    for key, value in found.items():
        if key.endswith("/error") and value.dtype.kind == "U" and "/error/" not in key:
            assert json.loads(str(value))[0] in ("InputError", "SingularError"), key


@pytest.mark.slow
def test_changed_results_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    old = results("four-bar")
    assert snapshot.compare(old, old) == 0
    new = dict(old)
    key = "four-bar/coefficients/2/"
    new[key + "G"] = old[key + "G"] * (1 + 1e-15)
    new[key + "H"] = old[key + "H"] * (1 + 1e-12)
    new[key + "values"] = old[key + "values"][None]
    new[key + "other"] = new.pop(key + "rows")
    capsys.readouterr()
    assert snapshot.compare(old, new) == 4
    printed = capsys.readouterr().out
    assert [line.split(":")[0].removeprefix(key) for line in printed.splitlines()[:-1]] == [
        "rows", "values", "H", "other",
    ]  # fmt: skip


def test_names_of_the_models_are_those_of_the_package() -> None:
    assert list(snapshot.MODELS) == list(snapshot.kic.model_names())
