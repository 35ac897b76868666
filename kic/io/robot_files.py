"""Files of robots: their format by suffix or root element."""

from __future__ import annotations

from pathlib import Path

from kic.io.mjcf import from_mujoco
from kic.io.sdf import from_sdf
from kic.io.urdf import from_urdf
from kic.io.xml import parse, read_source
from kic.mechanism import Mechanism


def load_robot(path: Path) -> Mechanism:
    """Return the mechanism of a URDF, SDF or MJCF file."""
    root = parse(read_source(path, "robot")).tag
    if root == "robot":
        return from_urdf(path)
    if root == "sdf":
        return from_sdf(path)
    if root == "mujoco":
        return from_mujoco(path)
    raise read_source(path, "robot").error(
        0, f"the root must be <robot> (URDF), <sdf> or <mujoco>, got <{root}>."
    )
