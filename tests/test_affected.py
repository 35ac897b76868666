"""Tests that a change affects: whole modules, parameters, and packages above those that changed."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import affected
import pytest
from affected import Change, select, skip_after_end, users
from layers import ROOT, layers


def item(path: str, *values: object) -> Any:
    """Return a stand-in for a collected test with parameters."""
    callspec = SimpleNamespace(params=dict(enumerate(values)))
    return SimpleNamespace(nodeid=f"{path}::test", callspec=callspec, stash=pytest.Stash())


def change(*files: str) -> Change:
    return Change({PurePosixPath(file) for file in files})


def test_tests_of_a_package_and_of_those_above_are_affected() -> None:
    one = change("kic/tasks/grasp/grip.py", "CHANGELOG.md", ".github/CONTRIBUTING.md")
    assert one.is_affected(item("tests/tasks/grasp/test_grip.py"))
    assert one.is_affected(item("tests/analysis/linear/test_linearize.py"))
    assert one.is_affected(item("tests/test_docs.py"))
    assert not one.is_affected(item("tests/io/test_urdf.py"))
    assert not one.is_changed(item("tests/tasks/grasp/test_grip.py"))
    lowest = item("tests/errors/test_errors.py")
    assert change("kic/errors.py").is_affected(lowest)
    assert change("kic/kernels/library_build/build.py").height == layers()["kernels"]
    for file in ("pyproject.toml", ".ci/run", "tests/conftest.py"):
        assert change(file).is_affected(lowest)
    assert not change("CHANGELOG.md").is_affected(item("tests/test_docs.py"))
    assert change("kic/__init__.py").is_affected(item("tests/test_docs.py"))


def test_tests_of_changed_modules_models_and_pages_are_changed() -> None:
    one = change(
        "tests/tasks/grasp/test_grip.py", "models/four-bar.toml", "notebooks/guides/grasp.md", "README.md"
    )
    assert one.is_changed(item("tests/tasks/grasp/test_grip.py"))
    assert one.is_changed(item("tests/test_gallery.py", "four-bar"))
    assert one.is_changed(item("tests/test_docs.py", Path("/elsewhere/guides/grasp.md")))
    assert one.is_changed(item("tests/test_docs.py", Path("README.md")))
    assert not one.is_changed(item("tests/test_gallery.py", "four-bar-motor"))
    assert not one.is_affected(item("tests/test_gallery.py", "four-bar-motor"))


def test_users_of_a_file_are_affected() -> None:
    assert users(PurePosixPath("tests/data/leg.json")) == {"test_classics_leg", "test_affected"}
    assert users(PurePosixPath("tests/raising.py")) > {"test_errors", "test_grip"}
    assert change("tests/layers.py").height == change("tests/representative_models.py").height == 0
    assert "test_robot_elements" in change("notebooks/guides/robots.md").users
    by_pattern = "mjcf" + "_open.xml"  # which no module names
    assert change(f"tests/data/{by_pattern}").height == 0
    assert change("tests/data/leg.json").is_affected(item("tests/classics/test_classics_leg.py"))
    assert not change("tests/data/leg.json").is_affected(item("tests/classics/test_classics.py"))


def test_tests_of_changed_modules_run_first_and_others_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [
        f"tests/{name}.py" for name in ("errors/test_errors", "ui/cli/test_cli", "ui/viewer/test_viewer")
    ]
    items = [item(file) for file in files]
    monkeypatch.setattr(affected, "git", lambda *words: ["commit"] if words[0] == "rev-parse" else [])
    assert select(items, "main") == []
    paths = {PurePosixPath(name) for name in ("tests/ui/viewer/test_viewer.py", "kic/ui/cli/main.py")}
    monkeypatch.setattr(affected, "changed", lambda _: paths)
    first, other = select(items, "main")
    assert [first, other] == [items[2], items[1]]

    now = 0.0
    monkeypatch.setattr(affected.time, "monotonic", lambda: now)
    monkeypatch.setattr(affected, "end", cache(affected.end.__wrapped__))
    skip_after_end(first)
    now = 100.0
    skip_after_end(other)
    now = 281.0
    skip_after_end(first)
    with pytest.raises(pytest.skip.Exception, match="after 180 s"):
        skip_after_end(other)
    now = 301.0
    with pytest.raises(pytest.skip.Exception, match="after 300 s"):
        skip_after_end(first)
    skip_after_end(items[0])


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not in a repository")
def test_a_wrong_commit_is_an_error() -> None:
    with pytest.raises(pytest.UsageError, match="got 'no-commit'"):
        select([], "no-commit")
