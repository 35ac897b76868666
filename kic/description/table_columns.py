"""Columns of tables over time, with the units of a mechanism: motions and efforts of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.units import effort_unit, rate_unit, row_unit
from kic.numerics.tables import Variable

# endings of the names of derivatives
DERIVATIVES = ("", ".rate", ".acceleration", ".jerk")


def motion_columns(
    description: MechanismDescription, names: Sequence[str], motion: Iterable[np.ndarray]
) -> list[Variable]:
    """Return columns of values (..., n) of rows and of their derivatives, called "A", "A.rate" and so on."""
    time = description.units.time
    return [
        Variable(name + ending, values[..., k], rate_unit(row_unit(description, name), time, order))
        for order, (ending, values) in enumerate(zip(DERIVATIVES, motion, strict=False))
        for k, name in enumerate(names)
    ]


def effort_columns(
    description: MechanismDescription, names: Sequence[str], efforts: np.ndarray
) -> list[Variable]:
    """Return columns of efforts (..., n) at rows, called "A.effort"."""
    return [
        Variable(f"{name}.effort", efforts[..., k], effort_unit(description, name))
        for k, name in enumerate(names)
    ]
