"""Types of joints and how many freedoms each has: words of the drawing, without its arithmetic."""

from __future__ import annotations

from typing import Literal

JointType = Literal[
    "revolute", "prismatic", "fixed", "cylindrical", "universal", "spherical", "planar", "free"
]
FREEDOMS: dict[str, int] = {
    "fixed": 0, "revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2,
    "spherical": 3, "planar": 3, "free": 6,
}  # fmt: skip
