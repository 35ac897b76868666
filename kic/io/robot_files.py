"""Files of robots: their format by suffix or root element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kic.io.mjcf import from_mujoco
from kic.io.sdf import from_sdf
from kic.io.urdf import from_urdf
from kic.io.xml import root_of
from kic.mechanism import Mechanism


def load_robot(path: Path) -> Mechanism:
    """Return the mechanism of a URDF, SDF or MJCF file."""
    root: Any = root_of(path, "robot")
    if root.tag == "robot":
        return from_urdf(root)
    if root.tag == "sdf":
        return from_sdf(root)
    if root.tag == "mujoco":
        return from_mujoco(root)
    return root.fail("the root must be <robot> (URDF), <sdf> or <mujoco>.")
