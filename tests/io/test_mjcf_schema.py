"""Attributes of MJCF: where MuJoCo's answers change, those of kic do, or a remark or an error says so."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest
from mjcf_answers import answers, compare, different, peer_answers, schema, state, treatment
from mjcf_files import REQUIRED, WITH, changed, files, values

import kic
from kic.io.mjcf_schema import ANY, COMPUTED, ERROR, QUIET, attributes_of

mujoco = pytest.importorskip("mujoco")

# sections that have no effect or are an error; defaults of actuators are attributes of theirs
SKIPPED = ("sensor", "extension", "custom", "visual", "statistic")
# elements whose attributes are changed in the fast tests, too
FAST = (("option", "flag"),)
# attributes without a valid value among those that are tried
UNTRIED = {
    "builtin", "face", "file", "hfield", "cranklength", "cranksite", "input", "refsite", "site",
    "slidersite",
}  # fmt: skip
# remarks on elements that are ignored as a whole with all their attributes, and the answers they are part of
IGNORED = {
    "control laws are ignored": {"effort"},  # actuators are ideal motors
    "does not act on joints": {"effort", "force", "inertia"},
    "flexible bodies are ignored": {"force", "freedom", "gap"},
}
# values with an effect, and without one, that are tried for an attribute of an element
EFFECTS_MAX, OTHERS_MAX = 2, 2


@pytest.fixture(autouse=True)
def quiet_mujoco(tmp_path, monkeypatch):
    """Keep the log of MuJoCo's warnings out of the working directory."""
    monkeypatch.chdir(tmp_path)


def test_table_has_every_attribute_of_the_schema():
    unknown = {(path, name) for path, own in schema().items() for name in own if not treatment(path, name)}
    assert not unknown


@pytest.mark.parametrize("section", ["", "default", "asset", "worldbody", "tendon", "equality", "actuator"])
def test_unknown_elements_have_no_attributes_and_those_of_any_section_have_theirs(section):
    assert attributes_of(section, "nonsense") is None
    assert attributes_of(section, "include").keys() == {"file", "prefix"}
    assert attributes_of(section, "plugin", {ANY: QUIET}) == {ANY: ERROR}


@cache
def known(text: str) -> tuple[set[str], set[str], dict[str, Any], Any]:
    """Return the answers that differ, the remarks, MuJoCo's own answers and their state, of a base file."""
    model = mujoco.MjModel.from_xml_string(text)
    own, peer, remarks = compare(text)
    at = state(model)
    return unexplained(own, peer, remarks), set(remarks), peer_of(model, at), at


def unexplained(own: dict[str, Any], peer: dict[str, Any], remarks: Iterable[str]) -> set[str]:
    """Return the answers that differ, without those of elements that are ignored as a whole."""
    known = [names for text, names in IGNORED.items() if any(text in remark for remark in remarks)]
    return different(own, peer).difference(*known)


def peer_of(model: Any, at: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    """Return the answers of MuJoCo in a state."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = at
    return peer_answers(model, data)


@cache
def is_valid(text: str) -> bool:
    """Return True if MuJoCo compiles a file and computes with it."""
    try:
        model = mujoco.MjModel.from_xml_string(text)
        peer_of(model, state(model))
    except (ValueError, RuntimeError, mujoco.FatalError):
        return False
    return True


@cache
def is_strict(text: str) -> bool:
    """Return True if the strict reader accepts a file."""
    try:
        kic.from_mjcf(text, strict=True)
    except kic.ModelFileError:
        return False
    return True


def check(base: str, text: str, rule: str) -> tuple[bool, bool, str]:
    """Check a changed file; return if MuJoCo's answers changed, if kic read it, and what is wrong."""
    before, remarks, peer, at = known(base)
    assert not before
    model = mujoco.MjModel.from_xml_string(text)
    now = peer_of(model, at) if (model.nq, model.nv) == tuple(map(len, at)) else {}
    effect = not now or bool(different(peer, now))
    if rule == QUIET:
        new = set() if effect else set(kic.from_mjcf(text).remarks) - remarks
        return effect, True, "has an effect" if effect else "has a remark" * bool(new)
    try:
        m = kic.from_mjcf(text)
    except kic.ModelFileError:
        return effect, False, ""
    off = unexplained(*answers(model, m), m.remarks)
    if rule == COMPUTED:
        return effect, True, f"changes {off}" * bool(off)
    named = set(m.remarks) - remarks or (is_strict(base) and not is_strict(text))
    return effect, True, f"changes {off} without a remark" if off and not named else ""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id="/".join(path), marks=() if path in FAST else pytest.mark.slow)
        for path in schema()
        if path[0] not in SKIPPED
        and path[-1] not in ("model", "attach")  # need files
        and not (path[0] == "default" and path[-1] in REQUIRED)
    ],
)
def test_attributes(path):
    wrong, unread, untried = [], [], []
    for name in sorted(schema()[path]):
        more = WITH.get(f"{path[-1]}/{name}", WITH.get(name, {}))
        rule = treatment(path, name)
        if rule == ERROR:
            continue
        tried = read = 0
        for base, place in files(path):
            base = changed(base, place, {})
            left = [EFFECTS_MAX, OTHERS_MAX]
            for value in values(name):
                text = changed(base, place, more | {name: value})
                if min(left) <= 0 or not is_valid(base) or not is_valid(text):
                    continue
                effect, is_read, problem = check(base, text, rule)
                left[not effect] -= 1
                tried, read = tried + 1, read + is_read
                if problem:
                    wrong.append((name, value, problem))
        if tried and not read:
            unread.append(name)
        # values of defaults and of flexible bodies have more conditions
        if not tried and rule != QUIET and path[0] != "default" and "flex" not in "/".join(path):
            untried.append(name)
    assert not wrong, wrong
    assert not unread, unread
    assert not set(untried) - UNTRIED, untried
