"""Conversion of efforts at named rows to generalized efforts at the coordinates: T_u = GᵀT (4-76)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from kic.configuration import Configuration, model_of
from kic.errors import invalid
from kic.kinematics.coefficients import Coefficients
from kic.numerics.arguments import by_name, mapping
from kic.numerics.arrays import broadcast_batches


def acting_efforts(
    configuration: Configuration,
    effort: Mapping[str, Any],
    wrt: Any,
    failures: Literal["raise", "mask"],
    order: Literal[1, 2] = 2,
) -> tuple[Coefficients, np.ndarray]:
    """Return the coefficients of the rows in a dict of efforts, and the efforts (..., A)."""
    effort = mapping("effort", effort, "rows to efforts")
    if not effort:
        raise invalid("effort", "must have an effort for at least one row", effort)
    names = model_of(configuration).actuators(list(effort), hold_all=False)
    if names != tuple(effort):
        raise invalid("effort", "must be efforts of single rows", tuple(effort))
    rows = configuration.coefficients(names, order=order, wrt=wrt, failures=failures)
    return rows, by_name("effort", effort, names)


def generalized_efforts(G: np.ndarray, effort: np.ndarray) -> np.ndarray:
    """Return the generalized efforts GᵀT (..., M) of efforts T (..., A) at rows with G (..., A, M)."""
    broadcast_batches(configuration=G.shape[:-2], effort=effort.shape[:-1])
    return np.einsum("...pn,...p->...n", G, effort)


def efforts_at_coordinates(
    configuration: Configuration, effort: Any, wrt: Any, failures: Literal["raise", "mask"]
) -> Any:
    """Return efforts (..., M) at the coordinates from a dict by row; return other arguments unchanged.

    Efforts are zero in members where the coordinates cannot drive the mechanism.
    """
    if not isinstance(effort, Mapping):
        return effort
    labels = model_of(configuration).transfer_for(wrt).labels
    if effort.keys() <= set(labels):
        return by_name("effort", effort, labels)
    rows, given = acting_efforts(configuration, effort, wrt, failures, order=1)
    G = rows.G
    if G.dtype != object:  # symbols have no such members
        G = np.where(np.isfinite(G).all(axis=(-2, -1), keepdims=True), G, 0.0)
    return generalized_efforts(G, given)
