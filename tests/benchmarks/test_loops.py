"""Rows of closed mechanisms as pytest-benchmark tests, for comparing with history; see `test_speed`."""

from __future__ import annotations

import pytest

pytest.importorskip("pytest_benchmark")

import kic
from benchmarks import loops
from benchmarks.ladder import ladder
from benchmarks.test_speed import needs_pinocchio

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


@pytest.mark.parametrize("way", ["prepare_position", "at(near=…)"])
def test_closing(benchmark, case, way):
    benchmark.group = f"{case.model}, closing"
    benchmark(loops.Loop(kic.load(case.model), case.of).closing()[way])


@pytest.mark.parametrize("windows", loops.WINDOWS)
def test_ladder(benchmark, windows):
    benchmark.group = "ladder"
    benchmark(loops.Loop(ladder(windows), "tip").one()["one, out"])


# every closure that a case's peer can have; three rows do not close a hinge in space
@needs_pinocchio
@pytest.mark.parametrize(("name", "closures"), [(name, c) for name in CASES for c in CASES[name].closures])
def test_pinocchio(benchmark, name, closures):
    case = CASES[name]
    benchmark.group = f"{case.model}, one"
    benchmark(loops.Loop(kic.load(case.model), case.of).peers([closures])[0][closures])
