"""Units of coordinates and rows, for labels."""

from __future__ import annotations

from kic.drawing import Drawing
from kic.tree import PRISMATIC, steps


def coordinate_units(drawing: Drawing) -> dict[str, str]:
    """Unit of each freedom of each joint: rad of those that turn, the unit of length of sliders."""
    return {
        joint.components[step.component]: drawing.units.length if step.kind == PRISMATIC else "rad"
        for joint in drawing.joints
        for step in steps(joint, False)
    }


def row_unit(drawing: Drawing, row: str) -> str:
    """Unit of a dependent."""
    if row.rpartition(".")[2] in ("wx", "wy", "wz", "angle", "s"):
        return "rad"
    return coordinate_units(drawing).get(row, drawing.units.length)


def effort_unit(drawing: Drawing, row: str) -> str:
    """Unit of an effort at a row: force times length of what turns, force of what slides.

    Examples
    --------
    >>> import kic
    >>> effort_unit(kic.load("five-bar"), "A")
    'lbf in'
    """
    units = drawing.units
    return f"{units.force} {units.length}" if row_unit(drawing, row) == "rad" else units.force


def energy_unit(drawing: Drawing) -> str:
    """Unit of energy: force times length, J of newton and metre."""
    force, length = drawing.units.force, drawing.units.length
    return "J" if (force, length) == ("N", "m") else f"{force} {length}"


def rate_unit(unit: str, time: str, order: int) -> str:
    """Unit of a derivative in time of something.

    Examples
    --------
    >>> rate_unit("rad", "s", 2), rate_unit("m", "s", 0)
    ('rad/s²', 'm')
    """
    return unit if order == 0 else f"{unit or '1'}/{time}{('', '²', '³')[order - 1]}"
