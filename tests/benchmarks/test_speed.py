"""The main rows as pytest-benchmark tests, for comparing with history.

`pytest tests/benchmarks --benchmark-only --benchmark-autosave`, later `--benchmark-compare`. They are off by
default; the table of ratios is `python tests/benchmarks`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("pytest_benchmark")

import kic
from benchmarks import peers

BATCH = 4096

needs_pinocchio = pytest.mark.skipif(peers.pinocchio is None, reason="Pinocchio is not installed")
needs_toolbox = pytest.mark.skipif(peers.toolbox is None, reason="roboticstoolbox is not installed")

ARMS: dict[str, tuple[Callable[[], kic.Mechanism], str]] = {
    "6R": (peers.serial_arm, "hand"),
    "puma560": (lambda: kic.load("puma560"), "link6"),
}


@pytest.fixture(params=ARMS)
def arm(request):
    make, hand = ARMS[request.param]
    m = make()
    rng = np.random.default_rng(1)
    size = len(m.at().coordinates)
    return m, hand, rng.uniform(-1.5, 1.5, size=size), rng.uniform(-1.5, 1.5, size=(BATCH, size))


@pytest.mark.parametrize("reuse", [False, True], ids=["new", "out"])
@pytest.mark.parametrize("many", [False, True], ids=["one", "batch"])
@pytest.mark.parametrize("order", [2, 3])
def test_rates(benchmark, arm, order, many, reuse):
    m, hand, phi, batch = arm
    benchmark.group = f"rates, order {order}, {'batch' if many else 'one'}"
    evaluate = m.prepare("coefficients", of=[hand], order=order)
    state = m.at(batch if many else phi).state
    out = evaluate(state) if reuse else None

    def work():
        rates = evaluate(state, out=out)[hand]
        return rates.G, rates.H, rates.D

    benchmark(work)


@pytest.mark.parametrize("reuse", [False, True], ids=["new", "out"])
@pytest.mark.parametrize("many", [False, True], ids=["one", "batch"])
def test_dynamics(benchmark, arm, many, reuse):
    m, _, phi, batch = arm
    benchmark.group = f"dynamics, {'batch' if many else 'one'}"
    evaluate = m.prepare("dynamics", loads=False)
    state = m.at(batch if many else phi).state
    out = evaluate(state) if reuse else None

    def work():
        r = evaluate(state, out=out)
        return r.I, r.P

    benchmark(work)


def test_everyday_coefficients(benchmark, arm):
    m, hand, phi, _ = arm
    benchmark.group = "everyday"
    benchmark(lambda: m.at(phi).coefficients(hand))


def test_everyday_dynamics(benchmark, arm):
    m, _, phi, _ = arm
    benchmark.group = "everyday"
    benchmark(lambda: m.at(phi).dynamics())


@needs_pinocchio
def test_pinocchio_rates(benchmark, arm):
    m, hand, phi, _ = arm
    benchmark.group = "rates, order 2, one"
    peer = peers.PinocchioPeer(m)
    peers.check_rates(m, peer, hand, phi)
    q, frame = peer.q(phi), peer.frame(hand)
    benchmark(lambda: peer.raw_rates(q, frame))


@needs_pinocchio
def test_pinocchio_dynamics(benchmark, arm):
    m, _, phi, _ = arm
    benchmark.group = "dynamics, one"
    peer = peers.PinocchioPeer(m)
    peers.check_dynamics(m, peer, phi)
    q, v = peer.q(phi), np.ones(len(phi))
    benchmark(lambda: peer.raw_dynamics(q, v))


@needs_toolbox
def test_toolbox_rates(benchmark, arm):
    m, hand, phi, _ = arm
    benchmark.group = "rates, order 2, one"
    peer = peers.ToolboxPeer(m, hand)
    peers.check_rates(m, peer, hand, phi)
    q = peer.q(phi)
    benchmark(lambda: peer.raw_rates(q))
