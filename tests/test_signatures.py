"""The public signatures of kic are those of `tests/data/signatures.txt`, and follow its rules."""

from __future__ import annotations

import inspect
from difflib import unified_diff

import pytest
import signatures

import kic
from kic.export.export import Exports

# classes that only kic constructs; their parameters have the names of their attributes
RESULTS = {f"kic.results.{name}" for name in kic.results.__all__} | {
    "kic.trajectory.PathSamples", "kic.trajectory.SampledMotion", "kic.trajectory.TimeOptimal",
}  # fmt: skip
PROFILES = [f"kic.trajectory.{name}" for name in ("line", "quintic", "septic", "s_curve", "trapezoid")]
# parameters that have another word for one meaning, and the callables where the word has its own meaning
WORDS = {
    "task": [],
    # terms of state spaces and of functions
    "outputs": [
        *(f"kic.results.Exports.{name}" for name in vars(Exports) if name[0] != "_"),
        "kic.results.Linearization.state_space",
    ],
    "inputs": ["kic.results.Linearization.state_space"],
    "names": [
        # labels that are given to arrays
        "kic.Coefficients.identity", "kic.Coefficients.matched", "kic.Coefficients.renamed", "kic.ContactSet",
        "kic.trajectory.PathConstraints",
        "kic.trajectory.Trajectory.sampled", "kic.Mechanism.unlock", "kic.Mechanism.without",
        "kic.Configuration.draw", "kic.Mechanism.draw",  # True to draw names
    ],
    "weight": [],
    "split": [],
    "held": ["kic.Angle", "kic.Distance", "kic.Joint"],
    "among": [],
    "seed": [],
    "least": [],
    "lower": ["kic.trajectory.PathConstraints"],  # bounds of any quantity, beside `upper`
    "start": PROFILES,  # values at the start of a motion, beside `end`
    "at": [
        "kic.Body", "kic.Contact", "kic.Joint", "kic.Point",  # places, as in model files
        "kic.results.Sweep.plot",  # values on the axes that are not drawn
    ],
    # ranges of positions; bounds of other quantities have the name of the quantity
    "limits": [
        "kic.Angle", "kic.DHRow", "kic.Distance", "kic.Joint", "kic.JointLimits",
        *(f"kic.Mechanism.{name}" for name in
          ("assembly_modes", "at", "find_equilibrium", "path", "simulate", "sweep", "track")),
        "kic.results.ExportedMap.to_polynomial", "kic.results.ExportedMap.to_table",
        "kic.trajectory.exciting",
    ],
}  # fmt: skip
OPTIONS = {
    "wrt": None, "failures": "raise", "applied": None, "near": None, "rng": 0, "progress": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def callables() -> dict[str, inspect.Signature]:
    return signatures.callables()


def test_public_signatures_are_those_on_file() -> None:
    pinned = signatures.FILE.read_text(encoding="utf-8").splitlines()
    changed = list(unified_diff(pinned, signatures.lines(), "pinned", "now", lineterm="", n=0))
    remedy = "If the change is meant, run `python tests/signatures.py` and edit .github/renames.md."
    assert not changed, "\n".join([remedy, *changed[2:]])


@pytest.mark.parametrize("word", WORDS)
def test_one_word_for_one_meaning(callables, word: str) -> None:
    having = {path for path, call in callables.items() if word in call.parameters} - RESULTS
    assert sorted(having) == sorted(WORDS[word])


@pytest.mark.parametrize("name", OPTIONS)
def test_common_options_are_keywords_with_one_default(callables, name: str) -> None:
    found = {path: call.parameters[name] for path, call in callables.items() if name in call.parameters}
    optional = {path: p for path, p in found.items() if p.default is not p.empty}
    assert optional
    for path, p in optional.items():
        assert p.kind is p.KEYWORD_ONLY, path
        assert p.default == OPTIONS[name], path
    # required are data of results, and `wrt` of secondary objectives, which the solver passes
    rates = [path for path in found if path.endswith((".rates", ".derivative"))]
    assert set(found) - set(optional) <= RESULTS.union(rates)


def test_most_options_are_keyword_only(callables) -> None:
    """At least 80 % of the optional parameters are keyword-only."""
    options = [
        p
        for path, call in callables.items()
        if path.split(".")[1] not in {"classics", "numerics", "plotting", "analysis", "transfer"}
        for p in call.parameters.values()
        if p.default is not p.empty
    ]
    keyword_only = [p for p in options if p.kind is p.KEYWORD_ONLY]
    assert len(options) > 400
    assert len(keyword_only) >= 0.8 * len(options)
