"""Postures a complex step away along any coordinate, of closed mechanisms too; oracles of linearizations."""

from __future__ import annotations

import numpy as np
from sampling import STEP

from kic.configuration import Configuration


def motion(c: Configuration, wrt=None) -> np.ndarray:
    """Return the rates (B, M_tree, M) of the tree's columns for each coordinate."""
    return c._model.transfer_for(wrt).jets(c._states, 1)[0]


def moved(c: Configuration, rates: np.ndarray, step: complex = 1j * STEP) -> Configuration:
    """The posture with a step of the tree's columns (B, M), closed to first order."""
    tree = c._model.tree
    states = c._states.astype(complex)
    for n in range(tree.size):
        place = tree.cols[n, 3]
        if n in tree.balls:  # q' = (1, ½ e) q
            q, e = c._states[:, place : place + 4], step / 2 * rates[:, n : n + 3]
            w, v = q[:, :1], q[:, 1:]
            turn = [-(v * e).sum(axis=1, keepdims=True), w * e + np.cross(e, v)]
            states[:, place : place + 4] += np.concatenate(turn, axis=1)
        elif place >= 0:
            states[:, place] += step * rates[:, n]
    return Configuration(c._model, c.batch, states)


def by_step(c: Configuration, v: np.ndarray, a: np.ndarray, wrt=None, **more) -> np.ndarray:
    """∂T/∂q (..., M, M) by complex steps of the effort, rates and accelerations kept."""
    A = motion(c, wrt)
    parts = [
        np.imag(moved(c, A[:, :, k]).dynamics(wrt=wrt, **more).inverse_dynamics(v, a)) / STEP
        for k in range(A.shape[2])
    ]
    return np.stack(parts, axis=-1)
