"""Closed forms of the classic arms, each beside the general way: its `mechanism()` is the same arm, drawn.

The formulas are those of four documents, with their misprints corrected; every one of them is held against
the general machinery in the tests. Angles are radians; any consistent units.
"""

from kic.classics.leg import Leg
from kic.classics.point_mass_arm import PointMassArm
from kic.classics.wrist_partitioned import WristPartitioned

__all__ = ["Leg", "PointMassArm", "WristPartitioned"]
