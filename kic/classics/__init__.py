"""Closed forms of classic arms, from the documents below with their misprints corrected.

The classes of arms have a method `mechanism` that returns the same arm as a `kic.Mechanism`. The tests
compare every closed form with the general library. Angles are in radians; units must be consistent.

=============================================  ==========================  =============================
source                                         class or function           equations
=============================================  ==========================  =============================
Horn, MIT AI Lab Working Paper 99, 1975        `TwoLink`                   pp. 4-19
"                                              `ThreeLink`                 pp. 20-29
"                                              `Annulus`                   p. 8
"                                              `reachable_workspace`       p. 8
"                                              `dexterous_radii`           p. 22
Horn, Hirokawa and Vazirani, MIT AI Lab Memo   `Leg`                       pp. 5-43
478, 1977
Lee, Lee and Nigam, 1982                       `split`, `SplitDynamics`    (29) to (33), p. 17
"                                              `ThreeLinkPuma`             pp. 17-31
"                                              `table_1`,                  Table 1 (p. 16)
                                               `OperationTable`
Freeman, dissertation, University of Florida,  `WristPartitioned`          (B-1) to (B-15), Table B-1
1985, Appendix B
Web page on exercise 6 of Craig,               `PointMassArm`              M, V, G and the recursion
"Introduction to Robotics"
=============================================  ==========================  =============================

`count_operations` counts the operations of kic's own kernels for comparison with Table 1.
"""

from __future__ import annotations

import sys

from kic.classics.horn import Annulus, ThreeLink, TwoLink, dexterous_radii, reachable_workspace
from kic.classics.lee_puma import ThreeLinkPuma
from kic.classics.leg import Leg
from kic.classics.operation_count import OperationCount, OperationTable, count_operations, table_1
from kic.classics.point_mass_arm import LinkWrenches, PointMassArm
from kic.classics.split_dynamics import EffortDeviation, PartComparison, SplitDynamics, split
from kic.classics.wrist_partitioned import WristPartitioned
from kic.numerics.calls import explain

__all__ = [
    "Annulus",
    "EffortDeviation",
    "Leg",
    "LinkWrenches",
    "OperationCount",
    "OperationTable",
    "PartComparison",
    "PointMassArm",
    "SplitDynamics",
    "ThreeLink",
    "ThreeLinkPuma",
    "TwoLink",
    "WristPartitioned",
    "count_operations",
    "dexterous_radii",
    "reachable_workspace",
    "split",
    "table_1",
]


# a package that is imported by itself, without the hook of `kic.__getattr__`
explain(sys.modules[__name__])
