"""Options, environment and fixtures of every test; plain helper functions live in modules of this folder."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from library_types import missing

# the tests are those of kernels that Numba compiles; a library in the user's cache has the same machine code
os.environ.setdefault("KIC_KERNELS", "jit")


def pytest_configure() -> None:
    """Collect tests without garbage collection."""
    gc.disable()


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


@pytest.fixture(scope="session", autouse=True)
def types_of_the_library() -> Iterator[None]:
    """Append kernels compiled for types that the library does not have to the file `KIC_TEST_LIBRARY`."""
    yield
    if file := os.environ.get("KIC_TEST_LIBRARY"):
        with open(file, "a", encoding="utf-8") as lines:
            lines.writelines(f"{one}\n" for one in missing())
