"""Free swings as pytest-benchmark tests, for comparing with history; see `test_speed`."""

from __future__ import annotations

import pytest

pytest.importorskip("pytest_benchmark")

from benchmarks import exudyn_peer, swings
from benchmarks.timing import Report

needs_exudyn = pytest.mark.skipif(exudyn_peer.exudyn is None, reason="Exudyn is not installed")


@pytest.fixture(params=swings.CASES, ids=lambda case: case.title.partition(",")[0])
def swing(request):
    return swings.Swing(request.param)


def test_run(benchmark, swing):
    benchmark.group = f"swing of {swing.case.title}"
    benchmark.pedantic(swing.run, rounds=3)


def test_right_side(benchmark, swing):
    benchmark.group = "right-hand side of a motion, twice"
    benchmark(swing.right_side())


@needs_exudyn
def test_peer(benchmark, swing):
    """Time as many steps as the coarse run has, after comparing accelerations and limits."""
    benchmark.group = f"swing of {swing.case.title}"
    peer = swings.PeerSwing(swing)
    assert 1.9 < peer.order < 2.1
    benchmark.pedantic(lambda: peer.run(swings.COARSE), rounds=1)


@pytest.mark.parametrize("with_peer", [False, pytest.param(True, marks=needs_exudyn)])
def test_lines(benchmark, monkeypatch, with_peer):
    """The four-bar's lines are complete, with the peer and without."""
    if not with_peer:
        monkeypatch.setattr(exudyn_peer, "exudyn", None)
    monkeypatch.setattr(swings, "CASES", swings.CASES[:1])
    report = Report()
    benchmark.pedantic(lambda: swings.table(report, 0.0), rounds=1)
    (heading,) = (i for i, line in enumerate(report.lines) if line.startswith("| swing"))
    lines = report.lines[heading + 2 : heading + (4 if with_peer else 3)]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(len(row) == len(swings.HEADINGS) for row in cells)
    assert all(all(row) == with_peer for row in cells)
    assert (exudyn_peer.MISSING in "\n".join(report.lines)) != with_peer
