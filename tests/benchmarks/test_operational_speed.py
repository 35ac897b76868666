"""Rows of the operational space as pytest-benchmark tests, for comparing with history; see `test_speed`."""

from __future__ import annotations

import pytest

pytest.importorskip("pytest_benchmark")

from benchmarks import operational
from benchmarks.test_speed import needs_pinocchio


@pytest.fixture(params=operational.CASES, ids=" ".join)
def task(request):
    return operational.Task(*request.param)


@pytest.mark.parametrize("reuse", ["one", "one, out"])
def test_one(benchmark, task, reuse):
    benchmark.group = f"operational space of {task.task}, one"
    benchmark(task.one()[reuse])


@pytest.mark.parametrize("reuse", ["batch", "batch, out"])
def test_batch(benchmark, task, reuse):
    benchmark.group = f"operational space of {task.task}, batch"
    benchmark(task.batch()[reuse])


@needs_pinocchio
def test_pinocchio(benchmark, task):
    benchmark.group = f"operational space of {task.task}, one"
    peer = operational.Peer(task)
    peer.differs()
    benchmark(peer.works()["peer"])
