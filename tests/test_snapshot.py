"""The snapshot of results asks every question with the present interface, and finds changed results."""

from __future__ import annotations

import inspect
import json
import re
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pins
import pytest
import snapshot
from benchmarks import versions

ROOT = Path(__file__).parents[1]


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
            assert json.loads(str(value))[0] in ("InputError", "ModelError", "SingularError"), key


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


# public methods that no question of the snapshot asks, with the reason
NOT_ASKED = {
    "Configuration.animate": "a picture; see tests/plotting",
    "Configuration.draw": "a picture; see tests/plotting",
    "Configuration.view": "starts a server; see tests/ui/viewer",
    "Configuration.to_html": "a page; see tests/ui/report",
    "Configuration.summary": "text of results that are asked",
    "Mechanism.draw": "a picture; see tests/plotting",
    "Mechanism.view": "starts a server; see tests/ui/viewer",
    "Mechanism.summary": "text; see tests/mechanism",
    "Mechanism.save": "a file; round trips are tested in tests/io",
}


def test_every_public_method_is_asked() -> None:
    """Each method has a call in the questions; `pins.operations` asks all of `Mechanism.export`."""
    text = Path(snapshot.__file__).read_text(encoding="utf-8").partition("# below: no calls to kic")[0]
    m = snapshot.kic.load("horn-two-link")
    owners = (m.at(), r"\b(c|batch)"), (m, r"(\bm|\))"), (m.prepare, r"\bprepare")
    missing = {
        f"{type(owner).__name__}.{method}"
        for owner, calls in owners
        for method, _ in inspect.getmembers(type(owner), callable)
        if method[0] != "_" and not re.search(rf"{calls}\.{method}\(", text)
    }
    assert missing == set(NOT_ASKED)


@pytest.mark.slow
def test_results_equal_their_digests_on_file() -> None:
    """``python tests/snapshot.py pin`` writes the file after an intended change."""
    found = dict(snapshot.answers(list(snapshot.MODELS)))
    assert pins.differences(found) == []
    key = "four-bar/coefficients/2/G"
    assert [key in x for x in pins.differences(found | {key: found[key] * (1 + 1e-7)})] == [True]
    del found[key]
    assert pins.differences(found) == [f"{key} is missing"]


@pytest.mark.slow
@pytest.mark.parametrize("name", pins.EXPORTED)
def test_exported_questions_have_the_operations_on_file(name: str) -> None:
    found, on_file = pins.operations(snapshot.Case(name)), pins.read_counts()["operations"][name]
    assert found == pytest.approx(on_file, rel=pins.OPERATIONS_RTOL.get(name, 0.0), abs=0.0)


@pytest.mark.slow
def test_paths_take_the_certified_steps_on_file() -> None:
    """Numbers of steps are equal on processors with other rounding errors."""
    assert pins.steps() == pins.read_counts()["steps"]


@pytest.mark.slow
def test_results_are_compared_with_those_of_a_commit(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results of a commit are those of a process that imports kic from its checkout."""
    names = ["horn-two-link"]
    monkeypatch.setattr(versions, "checkout", lambda _: nullcontext(ROOT))
    assert snapshot.main("against", "some commit", *names) == 0
    assert capfd.readouterr().err.count(f"results of {ROOT / 'kic'}") == 2
    found = snapshot.results_of("some commit", names)
    found["horn-two-link/at/state"] *= 1 + 1e-12
    monkeypatch.setattr(snapshot, "results_of", lambda *_: found)
    assert snapshot.main("against", "some commit", *names) == 1
