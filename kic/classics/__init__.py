"""Closed forms of the classic arms, each beside the general way: its `mechanism()` is the same arm, drawn.

The formulas are those of four documents, with their misprints corrected; every one of them is held against
the general machinery in the tests. Angles are radians; any consistent units.

Horn's planar arms: `TwoLink`, `ThreeLink`, and where they reach: `Annulus`, `reachable`, `usable_radii`.
The leg of three freedoms: `Leg`. A planar arm of point masses: `PointMassArm`. The arm of Freeman's Appendix
B, inverted to third order: `WristPartitioned`.
"""

from kic.classics.leg import Leg
from kic.classics.point_mass_arm import PointMassArm
from kic.classics.three_link import ThreeLink
from kic.classics.two_link import TwoLink
from kic.classics.workspace import Annulus, reachable, usable_radii
from kic.classics.wrist_partitioned import WristPartitioned

__all__ = [
    "Annulus",
    "Leg",
    "PointMassArm",
    "ThreeLink",
    "TwoLink",
    "WristPartitioned",
    "reachable",
    "usable_radii",
]
