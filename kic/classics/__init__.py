"""Closed forms of the classic arms, each beside the general way: its `mechanism()` is the same arm, drawn.

The formulas are those of four documents, with their misprints corrected; every one of them is held against
the general machinery in the tests. Angles are radians; any consistent units.

Horn's planar arms: `TwoLink`, `ThreeLink`, and where they reach: `Annulus`, `reachable`, `usable_radii`.
"""

from kic.classics.three_link import ThreeLink
from kic.classics.two_link import TwoLink
from kic.classics.workspace import Annulus, reachable, usable_radii

__all__ = [
    "Annulus",
    "ThreeLink",
    "TwoLink",
    "reachable",
    "usable_radii",
]
