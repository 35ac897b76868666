"""Rows of dynamics along motions as pytest-benchmark tests, for comparing with history; see `test_speed`."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pytest_benchmark")

import kic
from benchmarks import motions
from benchmarks.loops import Loop
from benchmarks.peers import serial_arm

WAYS = [f"{kind}, {way}" for kind in ("inverse", "forward") for way in ("fresh", "out", "batch", "tensors")]


@pytest.fixture(scope="module", params=["puma560", "chain of 60", "four-bar", "gough-stewart"])
def works(request):
    rng = np.random.default_rng(3)
    m = serial_arm(60) if request.param == "chain of 60" else kic.load(request.param)
    if m.cuts:
        loop = Loop(m, m.bodies[-1].name)
        state = m.at(loop.inputs + loop.moves(motions.BATCH), near=m.at()).state
    else:
        state = m.at(rng.uniform(-1, 1, size=(motions.BATCH, len(m.coordinates)))).state
    v, x = rng.normal(size=(2, motions.BATCH, len(m.coordinates)))
    return request.param, motions.works(m, state, v, x)


@pytest.mark.parametrize("way", WAYS)
def test_motion(benchmark, works, way):
    benchmark.group = f"{works[0]}, {way.partition(',')[0]} dynamics"
    benchmark(works[1][way])
