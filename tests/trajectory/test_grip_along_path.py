"""Grip forces along a path of the object stay within the friction cones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from raising import raises
from sampling import mismatch
from scipy.spatial.transform import RigidTransform

import kic
from kic import trajectory as trajectories

HAND = kic.load("three-finger-hand")


def led(count: int) -> tuple[kic.Configuration, np.ndarray, np.ndarray]:
    """The ball lifted 10 mm, and 5 mm aside, within 0.2 s: configurations, its rates and accelerations."""
    way = trajectories.quintic([0.0, 0.0, 0.0], [0.005, 0.0, 0.01], 0.2)
    x, xd, xdd, _ = way(np.linspace(0, 0.2, count))
    c = HAND.path({"ball": RigidTransform.from_translation(x)})
    turn = np.zeros_like(x)
    return c, np.concatenate([xd, turn], axis=1), np.concatenate([xdd, turn], axis=1)


def test_objects_follow_trajectories() -> None:
    c, qd, qdd = led(9)
    g = c.grasp("ball")
    m = g.motion(qd, qdd, forces=g.grip(safety=1.2))
    assert m.feasible.all()
    assert m.effort.shape == (9, 9)
    # what the contacts do is what the ball's weight and acceleration take
    ball = HAND["ball"]
    load = np.concatenate([ball.mass * (qdd[:, :3] - HAND.gravity), np.zeros((9, 3))], axis=1)
    assert mismatch(np.einsum("bwr,br->bw", g.G, m.force), load) < 1e-9
    f = m.force.reshape(9, 3, 3)
    margins = g.friction * f[..., 0] - np.hypot(f[..., 1], f[..., 2])
    assert margins.min() > 0
    # a firmer grip costs efforts, and gives margins
    firm = g.motion(qd, qdd, forces=g.grip(normal_force_min=5.0))
    assert firm.force.reshape(9, 3, 3)[..., 0].min() > 5 - 1e-9
    assert np.abs(firm.effort).sum() > np.abs(m.effort).sum()
    # fingers follow: their rates are those of differences along the path
    rate = c.coefficients([*g.fingers], order=1, wrt="ball").G
    assert mismatch(m.rate, np.einsum("bnm,bm->bn", rate, qd)) < 1e-10


def test_closure_and_what_is_missing() -> None:
    g = HAND.at().grasp("ball")
    assert g.closure().closed
    assert g.contact_set.kinds == g.kinds == ("friction",) * 3
    assert mismatch(g.contact_set.map * g.signs, g.G) < 1e-14
    two = replace(HAND, contacts=HAND.contacts[:2]).at().grasp("ball", fingers=g.fingers)
    closure = two.closure()
    assert not closure.closed
    assert "a moment about the line" in closure.missing[0]
    with raises(kic.SingularError, failed=[()]):
        kic.grip_forces(two.contact_set, [0, 0, 0, 5.0, 1.0, -2.0])
