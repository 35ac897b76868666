"""Metrics that other processes import, for the tests of executors."""

from __future__ import annotations

import numpy as np

import kic


def height(c: kic.Configuration) -> np.ndarray:
    """Height of the tip."""
    return c.value("tip.y")


def both(c: kic.Configuration) -> dict[str, np.ndarray]:
    """Two numbers by name."""
    tip = c.value("tip")
    return {"far": np.hypot(tip[:, 0], tip[:, 1]), "up": tip[:, 1]}
