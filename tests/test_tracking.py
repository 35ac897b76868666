"""Certified tracking: at() and path() do not pass a range of inputs in which no configuration exists."""

from __future__ import annotations

import numpy as np
import pytest

import kic

Z = (0.0, 0.0, 1.0)


def linkages(sizes: list[tuple[float, ...]], start: float) -> kic.Mechanism:
    """Return four-bars on one crank; each has crank, coupler, rocker, base length, base angle and side."""
    bodies = [kic.Body("crank")]
    joints = [kic.Joint("O", "revolute", ("ground", "crank"), (0, 0, 0), Z, value=start)]
    for k, (a, b, c, d, turn, side) in enumerate(sizes):
        pin = a * np.array([np.cos(start), np.sin(start), 0])
        base = d * np.array([np.cos(turn), np.sin(turn), 0])
        across = pin - base
        reach = np.linalg.norm(across)
        along = (c * c - b * b + reach * reach) / (2 * reach)
        normal = np.array([-across[1], across[0], 0]) / reach
        end = base + along * across / reach + side * np.sqrt(c * c - along * along) * normal
        bodies += [kic.Body(f"coupler{k}"), kic.Body(f"rocker{k}")]
        joints += [
            kic.Joint(f"A{k}", "revolute", ("crank", f"coupler{k}"), tuple(pin), Z),
            kic.Joint(f"B{k}", "revolute", (f"coupler{k}", f"rocker{k}"), tuple(end), Z),
            kic.Joint(f"D{k}", "revolute", ("ground", f"rocker{k}"), tuple(base), Z),
        ]
    return kic.Mechanism("linkages", bodies=bodies, joints=joints, coordinates=["O"])


def margin(sizes: list[tuple[float, ...]], angles: np.ndarray) -> np.ndarray:
    """Return 1 - cos² of each rocker's angle to its diagonal: negative where a linkage cannot close."""
    out = []
    for a, b, c, d, turn, _ in sizes:
        reach = np.sqrt(a * a + d * d - 2 * a * d * np.cos(angles - turn))
        out.append(1 - ((c * c - b * b + reach * reach) / (2 * reach * c)) ** 2)
    return np.array(out)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_narrow_gap_is_not_passed(copies: int) -> None:
    """Mirrored linkages pass an even number of turning points, where the sign of a determinant is kept."""
    sizes = [(0.05, 0.1, 0.05, 0.09999, turn, side) for turn, side in ((0.0, 1), (np.pi, -1))][:copies]
    m = linkages(sizes, np.pi / 3)
    assert margin(sizes, np.array([0.0])).min() < 0
    with pytest.raises(kic.ConfigurationError):
        m.at({"O": -0.5})
    with pytest.raises(kic.ConfigurationError):
        m.path({"O": np.linspace(np.pi / 3, -0.5, 12)})


@pytest.mark.parametrize("seed", range(6))
def test_jumps_reach_the_same_configuration_as_the_path(seed: int) -> None:
    """Random jumps of several linkages on one crank: closed exactly where every angle between closes."""
    rng = np.random.default_rng(seed)
    sizes: list[tuple[float, ...]] = []
    while len(sizes) < 1 + seed % 4:
        a, d, c = rng.uniform(0.3, 1.2, size=3)
        # close to, or far from, a change point
        b = abs(d - a) * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-6, -1)) + c
        one = (a, b, c, d, rng.uniform(-3, 3), rng.choice([-1, 1]))
        if margin([one], np.array([0.4])).min() > 0.05:
            sizes.append(one)
    m = linkages(sizes, 0.4)
    ends = 0.4 + rng.uniform(-2 * np.pi, 2 * np.pi, size=12)
    c = m.at({"O": ends}, failures="mask")
    for end, ok in zip(ends, c.ok, strict=True):
        # extremes of a distance lie on the line of centres
        special = [turn + np.pi * k for *_, turn, _ in sizes for k in range(-4, 5)]
        low, high = min(0.4, end), max(0.4, end)
        angles = np.concatenate([np.linspace(low, high, 20_001), [x for x in special if low < x < high]])
        least = margin(sizes, angles).min()
        assert ok == (least > 0), (end, least)


def test_dead_centres_have_exact_values() -> None:
    """At a dead centre of the input the start is returned if it has the requested values."""
    m = kic.load("slider-crank")
    c = m.at({m.coordinate_names[0]: 0.0})
    slide = next(j.name for j in m.joints if j.type == "prismatic")
    assert np.array_equal(m.at({slide: float(c.value(slide))}, near=c).state, c.state)


@pytest.mark.parametrize("name", ["four-bar", "rssr", "geared-five-bar"])
def test_full_turns_are_passed_at_once(name: str) -> None:
    """A branch that repeats itself after some turns is not followed through all of them."""
    m = kic.load(name)
    c = m.at()
    crank, *others = m.coordinate_names
    still = {x: float(c.value(x)) for x in others}
    start, turns = float(c.value(crank)), 159_120
    far = m.at({crank: start + 2 * np.pi * turns + 0.3, **still})
    close = m.at({crank: start + 0.3, **still})
    # angles of 1e6 rad are known to 1e-10
    for body in m.bodies:
        assert np.abs(far.pose(body.name).as_matrix() - close.pose(body.name).as_matrix()).max() < 1e-8
    assert far.value(crank) == start + 2 * np.pi * turns + 0.3
    with pytest.raises(kic.ConfigurationError):
        m.at({crank: 1e12, **still})
