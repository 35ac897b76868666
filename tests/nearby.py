"""Postures a complex step away along any coordinate, of closed mechanisms too; oracles of linearizations."""

from __future__ import annotations

import numpy as np
from sampling import STEP, moved

from kic.configuration import Configuration
from kic.linear.linearize import columns_of


def motion(c: Configuration, wrt=None) -> np.ndarray:
    """Rates (B, M_tree, M) of the tree's columns for each coordinate."""
    model = c._model
    transfer = model.transfer_for(wrt)
    size = model.tree.size
    if transfer is None:
        eye = np.broadcast_to(np.eye(size), (len(c._states), size, size)).reshape(-1, size)
        return np.swapaxes(columns_of(model, eye).reshape(-1, size, size), 1, 2)
    X = transfer.solve(c._states, 1).X
    return X[:, size:].reshape(len(c._states), size, transfer.first)


def by_step(c: Configuration, v: np.ndarray, a: np.ndarray, wrt=None, **more) -> np.ndarray:
    """∂T/∂q (..., M, M) by complex steps of the effort, rates and accelerations kept."""
    A = motion(c, wrt)
    parts = [
        np.imag(moved(c, A[:, :, k]).dynamics(wrt=wrt, **more).inverse_dynamics(v, a)) / STEP
        for k in range(A.shape[2])
    ]
    return np.stack(parts, axis=-1)
