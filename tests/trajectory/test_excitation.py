"""Exciting motions: within limits, from rest to rest, with a small condition of the regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kic

# share of a limit that peaks between samples may exceed; the motion stays a thousandth within
LIMIT_RTOL = 1e-12


def condition(m: kic.Mechanism, go: kic.trajectory.Trajectory, wrt: Any = None) -> float:
    """Return the condition of the base columns of unit norm along a motion."""
    run = go.on(m, 160)
    r = run.configuration.regressor(*run.motion[1:3], wrt=wrt)
    Y = r.matrix[..., r.base().columns]
    Y = Y.reshape(-1, Y.shape[-1])
    return float(np.linalg.cond(Y / np.linalg.norm(Y, axis=0)))


@pytest.mark.parametrize(
    ("name", "wrt", "limits"),
    [
        ("four-bar", None, {"rate_limits": 12.0}),
        pytest.param(
            "four-bar",
            ("D",),
            {"limits": {"D": (2.3, 2.6)}, "acceleration_limits": 30.0, "points": 5},
            marks=pytest.mark.slow,
        ),
        ("horn-two-link", None, {"limits": {"shoulder": (-0.5, 2.0)}, "rate_limits": (3.0, 4.0)}),
    ],
)
def test_limits_are_reached_and_kept(name: str, wrt: Any, limits: dict[str, Any]) -> None:
    m = kic.load(name)
    near = m.at({"A": 2.0}) if wrt else m.at()  # the reference configuration is a dead centre of D
    go = kic.trajectory.exciting(m, 2.0, wrt=wrt, near=near, rng=3, **limits)
    names = wrt or m.coordinates
    q, qd, qdd, _ = go(np.linspace(0.0, 2.0, 20001))
    assert_allclose(q[[0, -1]], np.tile(near.value(list(names)), (2, 1)), atol=1e-12)
    assert_allclose([qd[[0, -1]], qdd[[0, -1]]], 0.0, atol=1e-9)
    shares = []
    for key, x in (("limits", q), ("rate_limits", qd), ("acceleration_limits", qdd)):
        given = limits.get(key, {})
        for k, n in enumerate(names):
            pair = given.get(n) if isinstance(given, dict) else np.broadcast_to(given, len(names))[k]
            if pair is not None:
                low, high = pair if np.ndim(pair) else (-pair, pair)
                origin = q[0, k] if key == "limits" else 0.0
                up, down = x[:, k].max() - origin, origin - x[:, k].min()
                at = max(up / (high - origin), down / (origin - low))
                shares.append(at)
    assert max(shares) <= 1 + LIMIT_RTOL
    assert max(shares) > 0.99


def test_condition_is_smaller_than_of_usual_motions() -> None:
    """Than of random splines, and of sums of sines within the same limits."""
    m = kic.load("horn-two-link").replace("elbow", damping=0.1)
    found = condition(m, kic.trajectory.exciting(m, 3.0, rate_limits=4.0, rng=0))
    rng, times, others = np.random.default_rng(5), np.linspace(0.0, 3.0, 9), []
    for _ in range(40):
        points = np.zeros((9, 2))
        points[1:-1] = rng.normal(size=(7, 2))
        peaks = np.abs(kic.trajectory.spline(points, times)(np.linspace(0.0, 3.0, 300)).qd).max(axis=0)
        others.append(condition(m, kic.trajectory.spline(4.0 * points / peaks, times)))
    assert found < min(others)
    assert found < 0.7 * np.median(others)


def test_parameters_and_seeds() -> None:
    """Named parameters alone count; a seed repeats the motion."""
    m = kic.load("four-bar")
    first, again = (kic.trajectory.exciting(m, 1.0, "A.friction", rate_limits=5.0, rng=1) for _ in range(2))
    t = np.linspace(0.0, 1.0, 11)
    assert_array_equal(first(t).q, again(t).q)
    assert not np.allclose(first(t).q, kic.trajectory.exciting(m, 1.0, rate_limits=5.0, rng=1)(t).q)


def test_start_beyond_the_reference_configuration() -> None:
    """Of a closed mechanism on another branch, through which the path stays."""
    m = kic.load("five-bar")
    names = m.coordinates
    near = m.at(dict(zip(names, m.at().value(list(names)) + 0.2, strict=True)))
    limits = {n: (x - 0.3, x + 0.3) for n, x in zip(names, near.value(list(names)), strict=True)}
    go = kic.trajectory.exciting(m, 1.0, near=near, limits=limits, rng=2)
    run = go.on(m, 50, near=near)
    assert_allclose(run.configuration[0].state, near.state, atol=1e-9)


def test_start_at_a_limit() -> None:
    """A parked robot moves to the middle of its limits."""
    m = kic.load("horn-two-link").replace("elbow", damping=0.1)
    limits = {"shoulder": (0.0, 2.0), "elbow": (-2.0, 2.0)}
    q = kic.trajectory.exciting(m, 3.0, limits=limits)(np.linspace(0.0, 3.0, 20001)).q
    assert q[:, 0].min() > -1e-12
    assert q[:, 0].max() < 2.0
    assert np.ptp(q[:, 0]) > 1.5


def test_held_dimensions_stay() -> None:
    m = kic.load("four-bar").vary("D.at.x")
    assert kic.trajectory.exciting(m, 1.0, rate_limits=3.0).names == ("A",)


@pytest.mark.slow
def test_loops_that_do_not_close_at_the_limits() -> None:
    """Motions reach a part of limits that are too wide for a loop."""
    m = kic.load("four-bar")
    near = m.at({"A": 2.0})
    limits = {"D": (2.25, 3.2)}
    go = kic.trajectory.exciting(m, 1.0, "coupler", wrt="D", limits=limits, near=near, points=5, rng=1)
    q = go(np.linspace(0.0, 1.0, 50)).q
    assert 2.25 < q.min() < q.max() < 3.0
