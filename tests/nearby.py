"""Complex steps along any coordinate, of closed mechanisms too; references for linearizations."""

from __future__ import annotations

import numpy as np
from sampling import STEP, moved

from kic.configuration import Configuration


def motion(c: Configuration, wrt=None) -> np.ndarray:
    """Return the rates (B, M_tree, M) of the tree's columns for each coordinate."""
    return c._model.transfer_for(wrt).jets(c._states, 1)[0]


def by_step(c: Configuration, v: np.ndarray, a: np.ndarray, wrt=None, **more) -> np.ndarray:
    """Return ∂T/∂q (..., M, M) by complex steps of the effort, at constant rates and accelerations."""
    A = motion(c, wrt)
    parts = [
        np.imag(moved(c, A[:, :, k]).dynamics(wrt=wrt, **more).inverse_dynamics(v, a)) / STEP
        for k in range(A.shape[2])
    ]
    return np.stack(parts, axis=-1)
