"""Options that hold for every test."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Make warnings errors in processes that tests start, where the run itself does by `-W error`."""
    if "error" in (config.getoption("pythonwarnings") or ()):
        os.environ["KIC_TEST_WARNINGS"] = "error"
