"""Small loops in large mechanisms: positions are found whatever the ratio of the sizes."""

from __future__ import annotations

import numpy as np
import pytest

import kic

EPS = np.finfo(float).eps
# joints of a four-bar, whose first bar is carried by an arm and whose coupler is pushed along a far slide
PLACES = {"P": (0.0, 0.0), "Q": (0.3, 0.9), "R": (1.4, 1.1), "S": (1.1, -0.1)}


def carried_four_bar(ratio: float, order: str) -> kic.Mechanism:
    """Return a four-bar of size 1 / `ratio` on an arm of length 1; the loop of the arm closes far away."""
    at = {name: np.array([1.0 + x / ratio, y / ratio, 0.0]) for name, (x, y) in PLACES.items()}
    ends = {
        "P": ("arm", "crank"),
        "Q": ("crank", "coupler"),
        "R": ("coupler", "rocker"),
        "S": ("rocker", "arm"),
    }
    joints = [kic.Joint(n, "revolute", ends[n], tuple(at[n]), (0, 0, 1)) for n in PLACES]
    joints.append(kic.Joint("A", "revolute", ("ground", "arm"), (0, 0, 0), (0, 0, 1)))
    joints.append(kic.Joint("B", "revolute", ("coupler", "slide"), tuple(at["Q"]), (0, 0, 1)))
    joints.append(kic.Joint("C", "prismatic", ("ground", "slide"), (2, 0, 0), (1.0, 0.3, 0)))
    by = {joint.name: joint for joint in joints}
    bodies = [kic.Body(n) for n in ("arm", "crank", "coupler", "rocker", "slide")]
    return kic.Mechanism("carried", bodies, [by[name] for name in order])


@pytest.mark.parametrize("order", ["ABCPQRS", "ABCRSPQ", "CBASPQR", "PQRSABC"])
@pytest.mark.parametrize("ratio", [1.0, 10.0, 1e2, 1e3, 1e4, 1e5])
def test_every_joint_drives_a_small_loop(ratio: float, order: str) -> None:
    """Each joint of the loop returns the configurations of another one, in any order of the joints."""
    m = carried_four_bar(ratio, order)
    assert m.dof == 1
    start = m.at()
    p0 = float(start.value("P"))
    way = m.path({"P": p0 + np.linspace(0, 0.3, 7)})
    for name in ("Q", "R", "S"):
        again = m.path({name: way.value(name)})
        # positions are exact to eps of the mechanism, not of its loop
        assert np.abs(again.value("P") - way.value("P")).max() < 1e3 * EPS * ratio
        direct = m.at({name: way.value(name)[1]})
        assert abs(float(direct.value("P")) - way.value("P")[1]) < 1e3 * EPS * ratio
