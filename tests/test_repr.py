"""The repr of mechanisms and results: one line, without any computation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from questions import CASES, QUESTIONS, asked, random_arguments

import kic
from kic.analysis.identification.estimates import Estimates
from kic.numerics.display import LINE_MAX, OneLine

ROOT = Path(kic.__file__).parent


def results() -> Iterator[Any]:
    """Yield results of all kinds, of single configurations and of masked batches."""
    rng = np.random.default_rng(0)
    for name, make in CASES.items():
        case = make()
        yield case.mechanism
        for batch in ((), (3,)):
            inputs = case.inputs(batch, rng)
            if batch:
                inputs[1] = np.nan
            c = case.mechanism.at(inputs, failures="mask")
            yield c
            for question in asked(name):
                if question not in ("pose", "draw", "grasp closure", "grip") or not batch:
                    yield QUESTIONS[question](c, case, random_arguments(case, batch, rng))
    arm, bar = kic.load("horn-two-link"), kic.load("four-bar")
    c = arm.at([0.3, 0.8])
    run = arm.simulate([0.0, 0.01], near=c)
    still = kic.controllers.Sampled(lambda t, now: [0.0, 0.0], 1e-3)
    yield arm.simulate(0.01, controller=still, near=c).control
    yield from (
        run,
        run.energy,
        c.joint_forces(),
        c.joint_forces()["elbow"],
        c.force_table(),
        c.grasp,
        c.singularities(),
    )
    yield from (
        bar.info,
        bar.mobility(),
        bar.mobility().independent_sets(),
        bar.assembly_modes({"A": 1.2}),
        bar.find_equilibrium(),
    )
    line = kic.trajectory.line([0.0, 0.0], [1.0, 1.0], 1.0)
    moving = line.on(arm, 9).table([*arm.coordinates, "efforts"])
    regressor = bar.path({"A": np.linspace(0.0, 6.0, 40)}).regressor(np.sin(np.arange(40.0))[:, None])
    shaking = bar.path({"A": np.linspace(0.0, 2 * np.pi, 9)}).shaking_force(1.0)
    yield from (
        regressor,
        regressor.base(),
        arm.identify(moving, "link1.mx"),
        bar.calibrate({"A": np.arange(6.0), "D": np.arange(6.0)}, offsets="D"),
        bar.at().tolerance_analysis("tip", {"crank.length": 1e-4}),
        shaking,
        shaking.harmonics(2),
        shaking.balance("crank", radius=0.1),
    )
    yield from (line, line.on(arm, 3), kic.trajectory.fastest(line, acceleration_limits=1.0, grid=5))
    yield arm.sweep({"shoulder": 0.0, "elbow": [0.5, 1.0]}, "tip.x")
    yield arm.track({"tip.x": lambda t: c.value("tip.x") - 0.01 * t}, [0.0, 0.1], near=c)
    sides = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]
    contacts = kic.ContactSet(sides, -np.array(sides), "friction", mu=0.5, plane=[0, 0, 1])
    yield from (contacts, kic.form_closure(contacts), kic.grip_forces(contacts, [0.0, -1.0, 0.0]))
    yield from (
        kic.linkages.four_bar_motion(ground=4, crank=1, coupler=3, rocker=3),
        arm.prepare.coefficients(["tip"]),
        arm.prepare.position(wrt=["tip.x", "tip.y"]),
    )
    yield replace(arm, name="long" * 100)


@pytest.fixture(scope="module")
def made() -> dict[type, list[Any]]:
    found: dict[type, list[Any]] = {}
    for result in results():
        if type(result).__module__.startswith("kic."):
            found.setdefault(type(result), []).append(result)
    return found


def subclasses(kind: type) -> set[type]:
    """Return all classes below a class."""
    return {kind, *(below for one in kind.__subclasses__() for below in subclasses(one))}


def test_every_kind_of_result_is_here(made: dict[type, list[Any]]) -> None:
    abstract = {OneLine, kic.numerics.display.Printable, kic.numerics.display.Batched, Estimates}
    missing = {kind for kind in subclasses(OneLine) if "classics" not in kind.__module__} - abstract - {*made}
    assert not missing


def test_repr_is_one_line_and_computes_nothing(made: dict[type, list[Any]]) -> None:
    called: list[tuple[Path, str]] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        place = Path(frame.f_code.co_filename)
        if event == "call" and ROOT in place.parents:
            called.append((place, frame.f_code.co_name))

    for kind, several in made.items():
        for result in several:
            sys.setprofile(profile)
            try:
                text = repr(result)
            finally:
                sys.setprofile(None)
            assert "\n" not in text, kind
            assert str(result) == text
            if isinstance(result, OneLine):
                assert len(text) <= LINE_MAX + 2
                assert text.startswith(f"<{kind.__name__}"), kind
                # only descriptions, the classes themselves, and attributes that are shown
                homes = {Path(str(sys.modules[base.__module__].__file__)) for base in kind.__mro__[:-1]}
                others = [
                    (file, name) for file, name in called if file not in homes and name not in kind._one_line
                ]
                assert {file.parent.name for file, _ in others} <= {"description"}, kind
            called.clear()


def test_notebooks_show_tables_without_an_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = kic.load("four-bar").path({"A": np.linspace(1.2, 7.4, 20)}).singularities(drivers="D")
    m = kic.load("gough-stewart")
    monkeypatch.setattr(kic.Mechanism, "mobility", None)
    monkeypatch.setattr(kic.Mechanism, "_model", None)
    monkeypatch.setattr(type(turn), "configurations", None)
    assert "<table>" in m._repr_html_()
    assert "smallest measure" in turn._repr_html_()


def test_tables_are_printed_by_summaries() -> None:
    found = kic.load("four-bar").at({"A": 1.2}).summary()
    assert str(found) == repr(found) == found.text()
    assert found._repr_html_() == found.html()
