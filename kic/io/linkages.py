"""Common linkages and parallel robots from their usual lengths.

Every function returns an ordinary `Mechanism`. Planar linkages lie in the plane x y, with the first ground
pivot at the origin; z is up for parallel robots. In the reference configuration joints have the given angles,
even beyond ±π. Bodies in `masses` are slender uniform bars unless stated otherwise. Bodies without a mass
have no dynamics.
"""

from __future__ import annotations

from kic.io.basic_linkages import (
    FourBarMotion,
    delta,
    five_bar,
    four_bar,
    four_bar_motion,
    slider_crank,
    stewart,
)
from kic.io.parallel_robots import cable_robot, three_rps, three_rrr, tricept
from kic.io.planar_linkages import (
    chebyshev,
    klann,
    parallel_gripper,
    peaucellier,
    scissor_lift,
    scott_russell,
    stephenson,
    watt,
)

__all__ = [
    "FourBarMotion",
    "cable_robot",
    "chebyshev",
    "delta",
    "five_bar",
    "four_bar",
    "four_bar_motion",
    "klann",
    "parallel_gripper",
    "peaucellier",
    "scissor_lift",
    "scott_russell",
    "slider_crank",
    "stephenson",
    "stewart",
    "three_rps",
    "three_rrr",
    "tricept",
    "watt",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
