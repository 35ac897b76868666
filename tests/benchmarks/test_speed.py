"""The jobs of the tables as pytest-benchmark tests, for comparing with history.

`pytest tests/benchmarks --benchmark-only --benchmark-autosave`, later `--benchmark-compare`. They are off by
default; the table of ratios is `python tests/benchmarks`.
"""

from __future__ import annotations

from functools import cache

import pytest

pytest.importorskip("pytest_benchmark")

from benchmarks.jobs import PEERS, SUBJECTS
from benchmarks.timing import Work


@cache
def jobs(subject: str) -> dict[str, Work]:
    return SUBJECTS[subject][0]()


@pytest.mark.parametrize(
    ("subject", "job"), [(s, job) for s, (_, names) in SUBJECTS.items() for job in names]
)
def test_speed(benchmark, subject: str, job: str) -> None:
    if job in PEERS and job not in jobs(subject):
        pytest.skip("the peer is not installed")
    benchmark.group = f"{subject}, {'batch' if 'batch' in job else 'one'}"
    if "swing" in subject or "hung" in subject:
        benchmark.pedantic(jobs(subject)[job], rounds=3)
    else:
        benchmark(jobs(subject)[job])
