"""Plots of a run: what was asked of it, by names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.picturing.figures import Picture
from kic.picturing.panels import effort_panels, motion_panels, part_panels
from kic.picturing.plots import Panel, draw_plots
from kic.rows import names_of
from kic.units import energy_unit

# of the energies, what counts as none: an account that misses as little is a good one
NOTHING = 1e-6
# what a run has beside the rows of its mechanism; a part of the same name is meant first
ACCOUNTS = ("values", "rates", "accelerations", "efforts", "energy")


def plot_run(run: Any, names: str | Iterable[str] | None, width: float) -> Picture:
    """Panels of a run; see `Simulation.plot`."""
    drawing = run.mechanism
    if names is None:
        names = ("values", "rates", *(("efforts",) if np.any(run.effort) else ()))
    panels: list[Panel] = []
    rows: list[str] = []
    for name in names_of(names, "names"):
        if name not in ACCOUNTS or name in drawing.parts:
            rows.append(name)
            continue
        panels += part_panels(drawing, run.configuration, rows) if rows else []
        rows = []
        panels += _account(run, name)
    panels += part_panels(drawing, run.configuration, rows) if rows else []
    return draw_plots(run.t, panels, drawing.units.time, [when for when, _ in run.events], width)


def _account(run: Any, name: str) -> list[Panel]:
    """Panels of what a run has beside its rows."""
    drawing = run.mechanism
    if name == "efforts":
        return effort_panels(drawing, run.coordinates, run.effort)
    if name == "energy":
        return energy_panels(run.energy, energy_unit(drawing))
    order = ACCOUNTS.index(name)
    return motion_panels(drawing, run.coordinates, (run.q, run.qd, run.qdd)[order], order)


def energy_panels(energy: Any, unit: str) -> list[Panel]:
    """The energy account, and below it what it misses."""
    lines = {"kinetic": energy.kinetic, "potential": energy.potential, "total": energy.total}
    others = {"work": energy.work, "work of forces": energy.applied, "dissipated": energy.dissipated}
    others |= {"in inductance": energy.magnetic, "taken by motors": energy.electrical, "heat": energy.heat}
    size = max(np.abs(y).max(initial=0.0) for y in lines.values())
    # what is rounding beside the rest is no line
    lines |= {name: y for name, y in others.items() if np.abs(y).max(initial=0.0) > NOTHING * size}
    return [Panel("energy", unit, lines), Panel("missed", unit, {"residual": energy.residual})]
