"""Regressors by coefficients: a body is an affine frame, the sum over four of its points.

With s̃ = (1, s), every particle moves as x(s) = Σᵢ s̃ᵢ xᵢ, so that T = Σ Jᵢⱼ Gᵢᵀ (aⱼ − g). The pseudo-inertia
J = ∫ s̃ s̃ᵀ dm is linear in ten numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import kic
from kic.dynamics.dynamic_parameters import INERTIAL
from kic.mechanism.configuration import Configuration

# J (10, 4, 4) for a unit of each number: second moments are S = (tr I / 2) E − I
UNITS = np.zeros((10, 4, 4))
UNITS[0, 0, 0] = 1.0
for k in range(3):
    UNITS[1 + k, 0, 1 + k] = UNITS[1 + k, 1 + k, 0] = 1.0
    UNITS[4 + k, 1:, 1:] = np.eye(3) / 2
    UNITS[4 + k, 1 + k, 1 + k] -= 1.0
for k, (i, j) in enumerate([(1, 2), (1, 3), (2, 3)]):
    UNITS[7 + k, i, j] = UNITS[7 + k, j, i] = -1.0


def body_columns(c: Configuration, name: str, point: Any, qd: Any, qdd: Any, wrt: Any) -> np.ndarray:
    """Return the columns (M, 10) of a body with the moment point `point`."""
    m = c._model.description
    rows, R = c.coefficients(name, wrt=wrt), c.pose(name).rotation.as_matrix()
    w, (a, turning) = rows.velocity(qd)[3:], np.split(rows.acceleration(qd, qdd), 2)
    arms = np.vstack([R @ np.subtract(point, m[name].reference), R.T])
    G = np.array([np.cross(rows.G[3:], arm, axis=0) for arm in arms])
    second = np.array([np.cross(turning, arm) + np.cross(w, np.cross(w, arm)) for arm in arms])
    G[0] += rows.G[:3]
    second[0] += a - m.gravity
    return np.einsum("pij,ian,ja->np", UNITS, G, second)


def regressor(c: Configuration, qd: Any, qdd: Any, wrt: Any = None) -> np.ndarray:
    """Return Y (M, K) of the default parameters of a configuration."""
    asked = c.regressor(wrt=wrt)
    bodies = {name: body_columns(c, name, p, qd, qdd, wrt) for name, p in asked.points.items()}
    columns = []
    for name in asked.parameters:
        part, _, key = name.rpartition(".")
        if part in bodies and key in INERTIAL:
            columns.append(bodies[part][:, INERTIAL.index(key)])
            continue
        one = c._model.description._parts.get(part)
        if isinstance(one, kic.Spring):
            a, b = (c.coefficients(point, wrt=wrt) for point in one.points)
            apart = b.values - a.values
            value = np.linalg.norm(apart)
            G, rate, acceleration = apart @ (b.G - a.G) / value, apart @ (b.G - a.G) @ qd / value, np.nan
        else:
            row = c.coefficients(part, wrt=wrt)
            value, G = row.values[0], row.G[0]
            rate, acceleration = row.velocity(qd)[0], row.acceleration(qd, qdd)[0]
        factors = {"armature": acceleration, "damping": rate, "stiffness": value, "offset": 1.0}
        columns.append(G * factors[key])
    return np.stack(columns, axis=-1)
