"""Closed forms of the classic arms, each beside the general way: its `mechanism()` is the same arm, drawn.

The formulas are those of four documents, with their misprints corrected; every one of them is held against the
general machinery in the tests. Angles are radians; any consistent units.
"""

from kic.classics.counting import OperationCount, count_operations
from kic.classics.dalembert import split
from kic.classics.dropping import DroppingCost, Survey
from kic.classics.operation_counts import OperationTable, table_1
from kic.classics.splitdynamics import SplitDynamics
from kic.classics.threelinkpuma import ThreeLinkPuma

__all__: list[str] = [
    "DroppingCost", "OperationCount", "OperationTable", "SplitDynamics", "Survey", "ThreeLinkPuma",
    "count_operations", "split", "table_1",
]  # fmt: skip
