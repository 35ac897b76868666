"""Slow tests of what changed since a commit: `pytest -n auto -m slow --since COMMIT`.

Changed test modules, and tests with a changed model or page as parameter, run first. Then modules of packages
that changed and of higher ones, and modules that use a changed file of `tests`, run for three minutes. The
commit selects their order, so that a later change runs others where they take longer. None starts after five.
"""

from __future__ import annotations

import re
import subprocess
import time
from functools import cache
from hashlib import sha256
from pathlib import PurePath, PurePosixPath

import pytest
from layers import ROOT, height, layers

# time of all tests, and of those that are only affected (s)
SECONDS_MAX, AFFECTED_SECONDS_MAX = 300.0, 180.0
# files that may change the result of any test
COMMON = {"pyproject.toml", ".ci", "tests/conftest.py"}
# the limits of time that hold for a test
LIMITS = pytest.StashKey[tuple[float, ...]]()


def git(*arguments: str) -> list[str]:
    """Return the lines that a command of Git prints."""
    command = ["git", "-c", "core.quotePath=false", *arguments]
    return subprocess.check_output(command, cwd=ROOT, text=True, encoding="utf-8").splitlines()


def changed(commit: str) -> set[PurePosixPath]:
    """Return the files that differ from a commit; a test module that only moved does not."""
    files = {PurePosixPath(name) for name in git("ls-files", "--others", "--exclude-standard")}
    for status, *names in (line.split("\t") for line in git("diff", "--name-status", "-M", commit)):
        paths = {PurePosixPath(name) for name in names}
        if not (status == "R100" and all(path.match("test_*.py") for path in paths)):
            files |= paths
    return files


@cache
def texts() -> dict[str, str]:
    """Return the modules of `tests`, by their names without folders."""
    return {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}


def users(file: PurePosixPath) -> set[str]:
    """Return the names of the test modules, or `conftest`, that use a file, also through helpers."""
    name = "benchmarks" if "benchmarks" in file.parts else file.stem
    todo = [rf"(from|import) {name}\b" if file.suffix == ".py" else re.escape(file.name)]
    found = set[str]()
    while todo:
        pattern = todo.pop()
        new = {stem for stem, text in texts().items() if re.search(pattern, text)} - found
        found |= new
        todo += [rf"(from|import) {stem}\b" for stem in new if not stem.startswith("test_")]
    return {stem for stem in found if stem.startswith("test_") or stem == "conftest"}


class Change:
    """The tests that changed files affect."""

    def __init__(self, files: set[PurePosixPath]) -> None:
        self.height = len(layers()) + 1  # of the lowest package that changed
        self.modules, self.users, self.parameters = set[str](), set[str](), set[str]()
        for file in files:
            folder, *_ = file.parts
            if folder in COMMON or str(file) in COMMON:
                self.height = 0
            elif folder == "kic":
                self.height = min(self.height, height(".".join(file.with_suffix("").parts[1:])))
            elif folder == "tests" and file.name.startswith("test_"):
                self.modules.add(str(file))
            elif folder in ("tests", "models", "notebooks", "README.md"):
                found = users(file)
                self.users |= found
                if folder != "tests":
                    self.parameters.add(file.stem)
                elif not found or "conftest" in found:  # tests name it by a pattern, or it affects all
                    self.height = 0

    def is_changed(self, item: pytest.Item) -> bool:
        """Return True if the module of a test changed, or a model or page that is its parameter."""
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        names = {value.stem if isinstance(value, PurePath) else str(value) for value in values}
        return module(item) in self.modules or not self.parameters.isdisjoint(names)

    def is_affected(self, item: pytest.Item) -> bool:
        """Return True if the package of a test may be affected, or the test uses a changed file."""
        path = PurePosixPath(module(item))
        return highest(".".join(path.parent.parts[1:])) >= self.height or path.stem in self.users


def highest(folder: str) -> int:
    """Return the height of the highest member of the package whose tests a folder has."""
    heights = [h for name, h in layers().items() if f"{name}.".startswith(f"{folder}.")]
    return max(heights) if heights else height(folder)


def module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def select(items: list[pytest.Item], commit: str) -> list[pytest.Item]:
    """Return the tests that changes since a commit affect, those that always run first."""
    try:
        (commit,) = git("rev-parse", "--verify", commit)
    except subprocess.CalledProcessError as error:
        raise pytest.UsageError(f"`--since` must be a commit of this repository, got {commit!r}.") from error
    change = Change(changed(commit))
    first = list[pytest.Item]()
    rest = {module(item): list[pytest.Item]() for item in items}
    for item in items:
        if change.is_changed(item):
            item.stash[LIMITS] = (SECONDS_MAX,)
            first.append(item)
        elif change.is_affected(item):
            item.stash[LIMITS] = (SECONDS_MAX, AFFECTED_SECONDS_MAX)
            rest[module(item)].append(item)
    order = sorted(rest, key=lambda name: sha256(f"{commit} {name}".encode()).digest())
    return first + [item for name in order for item in rest[name]]


@cache
def end(seconds: float) -> float:
    """Return the time at which a limit ends, which is counted from the first call."""
    return time.monotonic() + seconds


def skip_after_end(item: pytest.Item) -> None:
    """Skip a test if those before it took the time that there is."""
    for seconds in item.stash.get(LIMITS, ()):
        if time.monotonic() > end(seconds):
            pytest.skip(f"left to `.ci/extended slow positions` after {seconds:.0f} s")
