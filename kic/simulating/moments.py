"""Moments: what a run keeps at each of the times wanted, chart by chart."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.simulating.chart import Chart


class Moments:
    """What is kept at each of the times wanted, chart by chart."""

    def __init__(self) -> None:
        self._kept: list[tuple[Chart, list[dict[str, Any]]]] = []

    @property
    def t(self) -> list[float]:
        """The times so far."""
        return [moment["t"] for _, moments in self._kept for moment in moments]

    @property
    def last(self) -> float:
        """The last of them."""
        return float(self._kept[-1][1][-1]["t"])

    def keep(self, chart: Chart, moment: dict[str, Any]) -> None:
        """Add a moment of a chart."""
        if not self._kept or self._kept[-1][0] is not chart:
            self._kept.append((chart, []))
        self._kept[-1][1].append(moment)

    def arrays(self) -> dict[str, np.ndarray]:
        """All moments, the time axis first."""
        parts = []
        for chart, moments in self._kept:
            keys = [key for key in moments[0] if key != "motion"]
            part = {key: np.array([moment[key] for moment in moments]) for key in keys}
            state, v, a = part["state"], part.pop("v"), part.pop("a")
            # at change points motions are known already
            rest = np.array([moment["motion"] is None for moment in moments])
            spread = chart.spread(state[rest], v[rest], a[rest])
            for key, some in spread.items():
                part[key] = np.empty((len(moments), *some.shape[1:]))
                part[key][rest] = some
                for k in np.flatnonzero(~rest):
                    part[key][k] = moments[k]["motion"][key]
            parts.append(part)
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
