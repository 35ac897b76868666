"""Closed forms of the classic arms, each beside the general way: its `mechanism()` is the same arm, drawn.

The formulas are those of four documents, with their misprints corrected; every one of them is held against
the general machinery in the tests. Angles are radians; any consistent units.

Horn's planar arms: `TwoLink`, `ThreeLink`, and where they reach: `Annulus`, `reachable`, `usable_radii`.
The leg of three freedoms: `Leg`. A planar arm of point masses: `PointMassArm`. The arm of Freeman's Appendix
B, inverted to third order: `WristPartitioned`. Lee's PUMA: `ThreeLinkPuma`; and for any mechanism, the
generalized d'Alembert parts of its dynamics and what dropping some costs: `split`; and the operations of
kic's own kernels: `count_operations`, beside the document's Table 1 in `OperationTable`.
"""

from kic.classics.counting import OperationCount, count_operations
from kic.classics.dalembert import split
from kic.classics.dropping import DroppingCost, Survey
from kic.classics.leg import Leg
from kic.classics.operation_counts import OperationTable, table_1
from kic.classics.point_mass_arm import PointMassArm
from kic.classics.splitdynamics import SplitDynamics
from kic.classics.three_link import ThreeLink
from kic.classics.threelinkpuma import ThreeLinkPuma
from kic.classics.two_link import TwoLink
from kic.classics.workspace import Annulus, reachable, usable_radii
from kic.classics.wrist_partitioned import WristPartitioned

__all__ = [
    "Annulus",
    "DroppingCost",
    "Leg",
    "OperationCount",
    "OperationTable",
    "PointMassArm",
    "SplitDynamics",
    "Survey",
    "ThreeLink",
    "ThreeLinkPuma",
    "TwoLink",
    "WristPartitioned",
    "count_operations",
    "reachable",
    "split",
    "table_1",
    "usable_radii",
]
