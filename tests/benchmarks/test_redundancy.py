"""Control steps of a redundant arm as pytest-benchmark tests; see `test_speed`."""

from __future__ import annotations

import pytest

pytest.importorskip("pytest_benchmark")

from benchmarks import redundancy
from benchmarks.test_speed import needs_pinocchio


@pytest.mark.parametrize("weight", redundancy.WEIGHTS)
@pytest.mark.parametrize("work", ["one", "one, out", "rates alone, one, out", "batch, out"])
def test_step(benchmark, weight, work):
    benchmark.group = f"redundancy, {weight}"
    benchmark(redundancy.Step(weight).works()[work])


@needs_pinocchio
@pytest.mark.parametrize("weight", redundancy.WEIGHTS)
def test_peer(benchmark, weight):
    benchmark.group = f"redundancy, {weight}"
    benchmark(redundancy.Step(weight).peer()[0])
