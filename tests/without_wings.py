"""Plugin of pytest for a checkout from which wings were deleted: tests that need them are skipped."""

from __future__ import annotations

from collections.abc import Generator

import pytest


def missing(error: BaseException | None) -> str:
    """Return the package of kic that an error, or one from which it follows, reports as missing, or ''."""
    while error is not None:
        for name in (getattr(error, "package", None), getattr(error, "name", None)):
            if str(name).startswith("kic.") and isinstance(error, ImportError):
                return str(name)
        error = error.__cause__ or error.__context__
    return ""


def skipped(
    report: pytest.TestReport | pytest.CollectReport, error: BaseException | None, place: str
) -> None:
    """Turn a failure into a skip if a wing is missing."""
    if report.failed and (package := missing(error)):
        report.outcome, report.longrepr = "skipped", (place, 0, f"Skipped: needs {package}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    skipped(report, call.excinfo.value if call.excinfo else None, str(item.path))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    excinfo = report.call.excinfo  # type: ignore[attr-defined]
    skipped(report, excinfo.value if excinfo else None, str(collector.path))
    return report
