"""Scales of tasks and coordinates: what lets numbers of different units be measured against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.errors import InputError, short_repr, unknown
from kic.kernels.layout import PRISMATIC
from kic.kinematics.tree import steps
from kic.numerics.arrays import ordinary, reals


def coordinate_units(drawing: MechanismDescription) -> dict[str, str]:
    """Unit of each freedom of each joint: rad of those that turn, the unit of length of sliders."""
    return {
        joint.components[step.component]: drawing.units.length if step.kind == PRISMATIC else "rad"
        for joint in drawing.joints
        for step in steps(joint, False)
    }


def row_unit(drawing: MechanismDescription, row: str) -> str:
    """Unit of a dependent."""
    if row.rpartition(".")[2] in ("wx", "wy", "wz", "angle", "s"):
        return "rad"
    return coordinate_units(drawing).get(row, drawing.units.length)


def effort_unit(drawing: MechanismDescription, row: str) -> str:
    """Unit of an effort at a row: force times length of what turns, force of what slides.

    Examples
    --------
    >>> import kic
    >>> effort_unit(kic.load("five-bar"), "A")
    'lbf in'
    """
    units = drawing.units
    return f"{units.force} {units.length}" if row_unit(drawing, row) == "rad" else units.force


def energy_unit(drawing: MechanismDescription) -> str:
    """Unit of energy: force times length, J of newton and metre."""
    force, length = drawing.units.force, drawing.units.length
    return "J" if (force, length) == ("N", "m") else f"{force} {length}"


def motor_unit(drawing: MechanismDescription, what: str) -> str:
    """Unit of a motor's "torque", "current" or "voltage"; '' where it does not follow from the drawing's.

    Examples
    --------
    >>> import kic
    >>> motor_unit(kic.load("four-bar"), "current"), motor_unit(kic.load("five-bar"), "current")
    ('A', '')
    """
    u = drawing.units
    if what == "torque":
        return f"{u.force} {u.length}"
    # volts times amperes are newton metres in a second, and nothing else
    return {"current": "A", "voltage": "V"}[what] if (u.force, u.length, u.time) == ("N", "m", "s") else ""


def rate_unit(unit: str, time: str, order: int) -> str:
    """Unit of a derivative in time of something.

    Examples
    --------
    >>> rate_unit("rad", "s", 2), rate_unit("m", "s", 0)
    ('rad/s²', 'm')
    """
    return unit if order == 0 else f"{unit or '1'}/{time}{('', '²', '³')[order - 1]}"


def row_scales(drawing: MechanismDescription, rows: tuple[str, ...], length: Any) -> np.ndarray:
    """Factors (P,) that bring rows to one unit: `length` of angular ones, 1 of all others.

    Raises
    ------
    InputError
        If there are rows of both kinds and no length, or it is not positive.
    """
    units = [row_unit(drawing, row) for row in rows]
    if length is None:
        remedy = (
            f"Give `length` (in {drawing.units.length}): angular rows times it are arcs at that distance. Or "
            "ask for rows of one unit."
        )
        _check_one_unit("Rows", rows, units, remedy)
        return np.ones(len(rows))
    found = reals(length)
    if found is None or found.ndim or found <= 0:
        raise InputError(f"Expected `length` to be a positive number, got {short_repr(length)}.")
    return np.where(np.array(units) == "rad", ordinary("length", found), 1.0)


def coordinate_limits(
    drawing: MechanismDescription, columns: tuple[str, ...], limits: Any, kind: str
) -> np.ndarray:
    """Limits (M,) of rates or efforts, by name or in order; 1 where none are given.

    Raises
    ------
    InputError
        If coordinates have different units and there are no limits, or some are missing or not positive.
    UnknownNameError
        For a name that is no coordinate.
    """
    what = "rates" if kind == "velocity" else "efforts"
    if limits is None:
        units = [row_unit(drawing, column) for column in columns]
        _check_one_unit("Coordinates", columns, units, f"Give `limits` of their {what}, as {{name: limit}}.")
        return np.ones(len(columns))
    if isinstance(limits, Mapping):
        for name in limits:
            if name not in columns:
                raise unknown("coordinate", name, drawing.name, columns)
        missing = [name for name in columns if name not in limits]
        if missing:
            raise InputError(
                f"Expected `limits` of the {what} of all coordinates; missing: {', '.join(missing)}.",
                missing=tuple(missing),
            )
        limits = [limits[name] for name in columns]
    found = reals(limits)
    if found is None or found.shape != (len(columns),) or not (found > 0).all():
        raise InputError(
            f"Expected `limits` to be positive numbers for {', '.join(columns)}, got {short_repr(limits)}."
        )
    return ordinary("limits", found)


def _check_one_unit(what: str, names: tuple[str, ...], units: list[str], remedy: str) -> None:
    """Refuse to measure things of different units against each other."""
    if len(set(units)) > 1:
        them = ", ".join(f"{name} ({unit})" for name, unit in zip(names, units, strict=True))
        raise InputError(
            f"{what} of different units have no common measure: {them}. {remedy}", units=tuple(units)
        )
