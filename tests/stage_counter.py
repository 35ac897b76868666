"""Runs with compiled stages beside runs without."""

from __future__ import annotations

import kic
from kic.simulation.coordinates import Chart
from kic.simulation.stages import Stages


def compiled_and_plain(
    monkeypatch, mechanism, start, t, effort=None, **given
) -> tuple[kic.results.Simulation, kic.results.Simulation]:
    """Return a run whose right-hand sides are all compiled, and the same run in Python."""
    found = []
    original = Stages.__call__

    def counted(self, *stages):
        end = original(self, *stages)
        found.append(end is not None)
        return end

    with monkeypatch.context() as patch:
        patch.setattr(Stages, "__call__", counted)
        run = mechanism.simulate(t, effort=effort, near=start, **given)
    assert found
    assert all(found)
    with monkeypatch.context() as patch:
        patch.setattr(Chart, "_stages", None)
        plain = mechanism.simulate(t, effort=effort, near=start, **given)
    return run, plain
