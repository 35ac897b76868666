"""Files of robots: their format by suffix or root element."""

from __future__ import annotations

from pathlib import Path

from kic.io.mjcf import read_mjcf
from kic.io.sdf import read_sdf
from kic.io.urdf import read_urdf
from kic.io.xml import parse, read_source
from kic.mechanism import Mechanism


def load_robot(path: Path) -> Mechanism:
    """Return the mechanism of a URDF, SDF or MJCF file."""
    root = parse(read_source(path, "robot"))
    if root.tag == "robot":
        return read_urdf(root)
    if root.tag == "sdf":
        return read_sdf(root)
    if root.tag == "mujoco":
        return read_mjcf(root)
    return root.fail("the root must be <robot> (URDF), <sdf> or <mujoco>.")
