"""Rows of mimic joints as pytest-benchmark tests, for comparing with history; see `test_speed`."""

from __future__ import annotations

import pytest

pytest.importorskip("pytest_benchmark")

from benchmarks import couplings


@pytest.fixture(scope="module", params=couplings.WORDS, ids=lambda pair: pair[0])
def works(request):
    return couplings.works(request.param[1])


@pytest.mark.parametrize("job", [couplings.DYNAMICS, couplings.RATES, "inverse dynamics", "forward dynamics"])
def test_couplings(benchmark, works, job):
    benchmark.group = f"humanoid, {job}"
    benchmark(works[job])
