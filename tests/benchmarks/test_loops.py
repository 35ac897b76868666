"""Rows of closed mechanisms as pytest-benchmark tests, for comparing with history; see `test_speed`."""

from __future__ import annotations

import pytest

pytest.importorskip("pytest_benchmark")

import kic
from benchmarks import loops, peers
from benchmarks.closed_peers import SIX_ROWS, THREE_ROWS
from benchmarks.ladder import ladder

CASES = {case.model: case for case in loops.CASES}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.mark.parametrize("reuse", ["one", "one, out"])
def test_one(benchmark, case, reuse):
    benchmark.group = f"{case.model}, one"
    benchmark(loops.Loop(kic.load(case.model), case.of).one()[reuse])


@pytest.mark.parametrize("reuse", ["batch", "batch, out"])
def test_batch(benchmark, case, reuse):
    benchmark.group = f"{case.model}, batch"
    benchmark(loops.Loop(kic.load(case.model), case.of).batch(loops.BATCH)[reuse])


def test_closing(benchmark, case):
    benchmark.group = f"{case.model}, closing"
    benchmark(loops.Loop(kic.load(case.model), case.of).closing()["at(near=…)"])


@pytest.mark.parametrize("windows", loops.WINDOWS)
def test_ladder(benchmark, windows):
    benchmark.group = "ladder"
    benchmark(loops.Loop(ladder(windows), "tip").one()["one, out"])


@pytest.mark.skipif(peers.pinocchio is None, reason="Pinocchio is not installed")
@pytest.mark.parametrize("closures", [SIX_ROWS, THREE_ROWS])
def test_pinocchio(benchmark, case, closures):
    if closures not in case.closures:
        pytest.skip("three rows do not close a hinge in space")
    benchmark.group = f"{case.model}, one"
    benchmark(loops.Loop(kic.load(case.model), case.of).peers([closures])[0][closures])
