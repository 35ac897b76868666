"""Options, environment and fixtures of every test; plain helper functions live in modules of this folder."""

from __future__ import annotations

import gc
import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Pass `-W error` on to processes that tests start, and collect tests without garbage collection."""
    gc.disable()
    if "error" in (config.getoption("pythonwarnings") or ()):
        os.environ["KIC_TEST_WARNINGS"] = "error"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run fast tests first."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests, which live to the end, from garbage collection."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands a terminal of 100 columns, and compile kernels without messages.

    A command that sets `KIC_VERBOSE` does so until its test ends.
    """
    monkeypatch.setenv("KIC_VERBOSE", "0")
    monkeypatch.setenv("COLUMNS", "100")
