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
