"""Closed forms of classic arms, from the documents below with their misprints corrected.

The method `mechanism` of each arm returns the same arm as a `kic.Mechanism`. Angles are in radians.

=============================================  ==========================  =============================
source                                         class or function           equations
=============================================  ==========================  =============================
Horn, MIT AI Lab Working Paper 99, 1975        `TwoLink`                   pp. 4-19
"                                              `ThreeLink`                 pp. 20-29
Horn, Hirokawa, Vazirani, MIT AI Memo 478      `Leg`                       pp. 5-43
Lee, Lee and Nigam, 1982                       `split`, `SplitDynamics`    (29) to (33), p. 17
"                                              `ThreeLinkPuma`             pp. 17-31
"                                              `table_1`                   Table 1 (p. 16)
Freeman, dissertation, 1985, Appendix B        `WristPartitioned`          (B-1) to (B-15), Table B-1
Web page on exercise 6 of Craig's textbook     `PointMassArm`              M, V and G
=============================================  ==========================  =============================

`count_operations` counts the operations of kic's own kernels for comparison with Table 1.
"""

from __future__ import annotations

import sys

from kic.classics.arms import Leg, PointMassArm, ThreeLink, ThreeLinkPuma, TwoLink, WristPartitioned
from kic.classics.operation_count import OperationCount, count_operations, table_1
from kic.classics.split_dynamics import EffortDeviation, SplitDynamics, split
from kic.numerics.calls import explain

__all__ = [
    "EffortDeviation", "Leg", "OperationCount", "PointMassArm", "SplitDynamics", "ThreeLink", "ThreeLinkPuma",
    "TwoLink", "WristPartitioned", "count_operations", "split", "table_1",
]  # fmt: skip


# a package that is imported by itself, without the hook of `kic.__getattr__`
explain(sys.modules[__name__])
