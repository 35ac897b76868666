"""Options, environment and fixtures of every test; plain helper functions live in modules of this folder."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from affected import select, skip_after_end
from library_types import BUILD, link_kernels, missing
from representative_models import OTHER_MODELS

from kic.kernels.library import uses_cache


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--since", metavar="COMMIT", help="run tests that changes since a commit affect")


def pytest_configure() -> None:
    """Collect tests without garbage collection, and leave out a library that was built in the checkout.

    Its kernels are for other processors, or of an earlier state.
    """
    gc.disable()
    if BUILD.exists() and not uses_cache():
        os.environ.setdefault("KIC_KERNELS", "jit")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile and link all kernels on all cores before several processes run tests."""
    config = session.config
    is_worker, options = hasattr(config, "workerinput"), config.option
    if getattr(options, "numprocesses", None) and not is_worker and not options.collectonly:
        link_kernels()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests with parameters that `slow_for` names as slow, and run fast tests first."""
    unknown: dict[str, set[str]] = {}
    for item in items:
        names = {name for mark in item.iter_markers("slow_for") for name in mark.args}
        if names:
            own = names & {item.callspec.id, *map(str, item.callspec.params.values())}
            rest = unknown.setdefault(item.nodeid.partition("[")[0], names.difference(OTHER_MODELS))
            rest -= own
            if own:
                item.add_marker("slow")
    wrong = {test: names for test, names in unknown.items() if names}
    if wrong and config.args == config.getini("testpaths"):
        raise pytest.UsageError(f"`slow_for` names no parameter: {wrong}.")
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
    if commit := config.option.since:
        items[:] = select(items, commit)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that `--since` selects beyond the time that they have."""
    skip_after_end(item)


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests, which live to the end, from garbage collection."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands a terminal of 100 columns, and compile kernels without messages or a new library.

    A command that sets `KIC_VERBOSE` does so until its test ends.
    """
    monkeypatch.setattr("kic.kernels.linking.kernels_in", lambda *_: [])
    monkeypatch.setenv("KIC_VERBOSE", "0")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="session", autouse=True)
def types_of_the_library() -> Iterator[None]:
    """Append kernels compiled for types that the library does not have to the file `KIC_TEST_LIBRARY`."""
    yield
    if file := os.environ.get("KIC_TEST_LIBRARY"):
        with open(file, "a", encoding="utf-8") as lines:
            lines.writelines(f"{one}\n" for one in missing())
