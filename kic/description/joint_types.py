"""Types of joints and their coordinates, importable without NumPy."""

from __future__ import annotations

from typing import Literal

JointType = Literal[
    "revolute", "prismatic", "fixed", "cylindrical", "universal", "spherical", "planar", "free"
]
# coordinates of each type of joint, in order: r is a rotation, t a translation
JOINT_COORDINATES = {
    "fixed": "", "revolute": "r", "prismatic": "t", "cylindrical": "rt", "universal": "rr",
    "spherical": "rrr", "planar": "ttr", "free": "tttrrr",
}  # fmt: skip
JOINT_DOF = {joint_type: len(kinds) for joint_type, kinds in JOINT_COORDINATES.items()}
# fields of the axes of each type of joint
JOINT_AXES = {
    "revolute": ("axis",), "prismatic": ("axis",), "cylindrical": ("axis",), "universal": ("axis", "axis2"),
    "planar": ("axis", "axis2"), "spherical": ("axis", "axis2"), "free": ("axis", "axis2"),
}  # fmt: skip
# joints whose axes are those of the world by default
BALL_TYPES = ("spherical", "free")
# joints that can close a loop; a free joint closes none
LOOP_TYPES = tuple(joint_type for joint_type in JOINT_COORDINATES if joint_type != "free")
