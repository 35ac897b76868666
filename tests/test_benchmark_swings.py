"""The simulations of the benchmarks against Exudyn, if it is installed (extra `bench`)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from benchmarks import exudyn_peer, swings
from benchmarks.peers import DisagreementError

needs_exudyn = pytest.mark.skipif(
    exudyn_peer.exudyn is None, reason="pip install -e '.[bench]' to compare with Exudyn"
)


@needs_exudyn
@pytest.mark.parametrize("case", swings.CASES, ids=lambda case: case.point)
def test_exudyn_has_the_same_initial_conditions(case: swings.Case) -> None:
    m, qd = case.make(), np.array(case.qd)
    exudyn_peer.check_acceleration(exudyn_peer.ExudynPeer(m, qd, case.point))
    peer = exudyn_peer.ExudynPeer(m, qd, case.point)
    peer.mechanism = replace(m, gravity=(0.1, *m.gravity[1:]))
    with pytest.raises(DisagreementError):
        exudyn_peer.check_acceleration(peer)


@needs_exudyn
def test_exudyn_converges_to_the_same_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of the four-bar: order two, and the predicted steps give the wanted error."""
    monkeypatch.setattr(swings, "TIMES", np.linspace(0, 1, 11))
    swing = swings.Swing(swings.CASES[0])
    peer = swings.PeerSwing(swing, 250)
    assert 1.9 < peer.order < 2.1
    wanted = peer.error / 10
    assert 0.5 < swing.error(peer.run(peer.steps(wanted))) / wanted < 2
    swing.reference = swing.reference + 1e-3
    with pytest.raises(DisagreementError, match="limit of 'four-bar"):
        swings.PeerSwing(swing, 250)


@pytest.mark.slow
def test_platform_keeps_its_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays in reach of its legs, keeps its energy and matches the reference."""
    monkeypatch.setattr(swings, "TIMES", np.linspace(0, 2, 21))
    swing = swings.Swing(swings.CASES[1])
    run = swing.run()
    assert np.abs(run.q - run.q[0]).max() < 0.15
    assert swing.error(run["eye"]) < 1e-7
    assert np.abs(run.energy.residual).max() < 1e-5 * np.ptp(run.energy.potential)
    loosest = swing.no_worse(1e-4)
    assert swing.error(swing.run(loosest)["eye"]) <= 1e-4 < swing.error(swing.run(100 * loosest)["eye"])


@pytest.mark.slow
@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=needs_exudyn)])
def test_benchmark_table_is_complete(peer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not peer:
        monkeypatch.setattr(exudyn_peer, "exudyn", None)
    monkeypatch.setattr(swings, "TIMES", np.linspace(0, 1, 11))
    rows = swings.case_rows(swings.CASES[0], 0.0, coarse=250, most=500)
    assert len(rows) == len(swings.CASES[0].tolerances) + peer
    assert all(len(row) == len(swings.HEADINGS) for row in rows)
    assert all(all(row) == peer for row in rows)
    assert not peer or ("carried over from 1000 steps" in rows[0][0] and "carried over" not in rows[-1][0])
