"""Plugin of pytest for a checkout from which wings were deleted: tests that need them are skipped."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from traceback import extract_tb

import pytest
from layers import ROOT, wings

import kic

# tests that pass at least, so that a mistake does not skip all of them
PASSED_MIN = 3000
TESTS = Path(__file__).parent
passed = 0


def missing(error: BaseException | None) -> str:
    """Return the deleted wing that an error, or one from which it follows, reports as missing, or ''.

    Only a registered method or a test may have imported it, no other code of kic.
    """
    while error is not None:
        names = str(getattr(error, "package", None) or getattr(error, "name", None)).split(".")
        if isinstance(error, ImportError) and names[0] == "kic" and names[1:2] and names[1] in wings():
            frames = [frame.filename for frame in extract_tb(error.__traceback__)]
            user = Path([file for file in frames if "importlib" not in file and file[0] != "<"][-1])
            if not (ROOT / "kic" / names[1]).exists() and (
                isinstance(error, kic.MissingExtraError) or TESTS in user.parents
            ):
                return ".".join(names)
        error = error.__cause__ or error.__context__
    return ""


def skip(report: pytest.TestReport | pytest.CollectReport, error: BaseException | None, place: str) -> None:
    """Turn a failure into a skip if a wing is missing."""
    if report.failed and (package := missing(error)):
        report.outcome, report.longrepr = "skipped", (place, 0, f"Skipped: needs {package}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    skip(report, call.excinfo.value if call.excinfo else None, str(item.path))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    excinfo = report.call.excinfo  # type: ignore[attr-defined]
    skip(report, excinfo.value if excinfo else None, str(collector.path))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests that pass, in the process that reports them."""
    global passed
    passed += report.when == "call" and report.passed


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if hardly any test ran."""
    if not hasattr(session.config, "workerinput") and passed < PASSED_MIN:
        raise pytest.UsageError(f"Only {passed} tests passed; {PASSED_MIN} at least do not need the wings.")
