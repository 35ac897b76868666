"""Events and limits of runs: location, stopping, continuation and errors."""

from __future__ import annotations

import numpy as np
import pytest
from dynamic_cases import TIGHT, pendulum
from raising import raises
from scipy.special import ellipk

import kic
from kic.simulation.events import crossings
from kic.simulation.motion import Snapshot

PERIOD = 4 * ellipk(np.sin(0.6) ** 2) / np.sqrt(9.81)


def test_zeros_of_a_polynomial_with_signs() -> None:
    roots = [0.3, 1.1, 1.9]
    f = np.poly1d(np.poly(roots))
    times = np.linspace(0, 2, 6).tolist()
    found = crossings(lambda t: float(f(t)), times, [float(f(t)) for t in times])
    assert np.allclose([t for t, _ in found], roots, atol=1e-14)
    assert [way for _, way in found] == [1, -1, 1]


@pytest.mark.parametrize("depth", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("middle", [0.02, 0.35, 0.5, 0.8, 0.99])
def test_touching_zeros_between_samples_are_found(depth: float, middle: float) -> None:
    def f(t: float) -> float:
        return 1.0 - depth - np.cos(3 * (t - middle))

    times = [0.0, 1e-3, 1 / 3, 2 / 3, 1 - 1e-3, 1.0]
    found = crossings(f, times, [f(t) for t in times])
    half = np.arccos(1 - depth) / 3
    exact = [t for t in (middle - half, middle + half) if 0 < t < 1]
    assert np.allclose([t for t, _ in found], exact, atol=1e-7)


def test_minima_above_zero_are_not_events() -> None:
    times = np.linspace(0, 1, 6).tolist()
    f = [1e-9 + (t - 0.45) ** 2 for t in times]
    assert crossings(lambda t: 1e-9 + (t - 0.45) ** 2, times, f) == []


@pytest.mark.slow
def test_barely_exceeded_limit_stops_the_run() -> None:
    m = pendulum()
    for depth in (1e-3, 1e-5):
        run = m.simulate(6.0, near=m.at([1.2]), limits={"A": (-1.2 + depth, 3)}, integrator=TIGHT)
        assert "the lower limit of A" in run.stopped
        assert run.q[-1, 0] == pytest.approx(-1.2 + depth, abs=1e-12)
        assert run.t[-1] < PERIOD / 2
    assert not m.simulate(6.0, near=m.at([1.2]), limits={"A": (-1.2 - 1e-6, 3)}, integrator=TIGHT).stopped


def test_limits_apply_at_the_start() -> None:
    m = pendulum()
    # it falls from its lower limit, and would come back to it
    out = m.simulate(1.0, near=m.at([1.2]), limits={"A": (1.2, 3)})
    assert out.stopped == "stopped at t = 0 by the lower limit of A"
    assert len(out.t) == 1
    into = m.simulate(1.0, near=m.at([1.2]), limits={"A": (-2.0, 1.2)})
    assert not into.stopped
    with raises(kic.InputError, key="near", name="the lower limit of A"):
        m.simulate(1.0, near=m.at([1.2]), limits={"A": (1.5, 3)})
    endless = m.simulate(6.0, near=m.at([1.2]), limits={"A": (-0.5, np.inf)})
    again = m.simulate(6.0, near=endless, limits={"A": (-0.5, np.inf)})
    assert again.t[-1] == endless.t[-1]
    assert "the lower limit of A" in again.stopped


def test_continuation_after_a_terminal_event() -> None:
    m = pendulum()

    def bottom(t: float, now: kic.simulating.motion.Now) -> float:
        return now.q[0]

    bottom.terminal = True
    run = m.simulate(6.0, near=m.at([1.2]), events=bottom, integrator=TIGHT)
    for _ in range(3):
        run = m.simulate(6.0, near=run, events=bottom, integrator=TIGHT)
    assert np.allclose([t for t, _ in run.events], PERIOD * (0.25 + np.arange(4) / 2), atol=1e-9)
    assert np.abs(run.energy.residual).max() < 1e-9


def test_events_within_a_step_are_ordered() -> None:
    m = kic.load("five-bar")
    when = (0.05, 0.06, 0.055)
    events = [lambda t, now, x=x: t - x for x in when]
    run = m.simulate([0, 0.1, 0.2], near=m.at(), events=events)
    assert [i for _, i in run.events] == [0, 2, 1]
    assert np.allclose([t for t, _ in run.events], sorted(when), atol=1e-14)
    events[2].terminal = True
    stop = m.simulate([0, 0.1, 0.2], near=m.at(), events=events)
    assert [i for _, i in stop.events] == [0, 2]
    assert np.allclose(stop.t, [0, 0.055], atol=1e-14)


@pytest.mark.parametrize("frequency", [10.0, 33.0, 333.0, pytest.param(1e4, marks=pytest.mark.slow)])
def test_fast_events_are_counted(frequency: float) -> None:
    m = pendulum()
    run = m.simulate(1.0, near=m.at([1.2]), events=lambda t, now: np.sin(frequency * t))
    zeros = np.arange(1, int(frequency / np.pi) + 1) * np.pi / frequency
    assert run.steps < 20  # far fewer than zeros
    assert len(run.events) == len(zeros)
    assert np.allclose([t for t, _ in run.events], zeros, atol=1e-12)


@pytest.mark.slow_for("100.0", "333.0")
@pytest.mark.parametrize("frequency", [10.0, 100.0, 333.0])
def test_touching_zeros_of_fast_events_are_counted(frequency: float) -> None:
    m = pendulum()

    def touching(t: float, now: Snapshot) -> float:
        return np.sin(frequency * t) ** 2

    run = m.simulate(1.0, near=m.at([1.2]), events=touching)
    zeros = np.arange(1, int(frequency / np.pi) + 1) * np.pi / frequency
    assert len(run.events) == len(zeros)
    assert np.allclose([t for t, _ in run.events], zeros, atol=1e-6)
    touching.direction = 1  # it rises nowhere through zero
    assert m.simulate(1.0, near=m.at([1.2]), events=touching).events == ()


@pytest.mark.slow_for("-1")
@pytest.mark.parametrize("direction", [1, -1])
def test_fast_events_with_direction_and_terminal(direction: int) -> None:
    m, period = pendulum(), 2 * np.pi / 1e3

    def fast(t: float, now: Snapshot) -> float:
        return np.sin(1e3 * t)

    fast.direction = direction
    run = m.simulate(1.0, near=m.at([1.2]), events=fast)
    zeros = np.arange(1, 160) * period if direction > 0 else (np.arange(159) + 0.5) * period
    assert np.allclose([t for t, _ in run.events], zeros, atol=1e-12)
    fast.terminal = True
    stop = m.simulate(1.0, near=m.at([1.2]), events=fast)
    assert stop.t[-1] == pytest.approx(zeros[0], abs=1e-12)
    assert stop.events == ((stop.t[-1], 0),)


@pytest.mark.slow
def test_ripple_on_an_event() -> None:
    m, rate = pendulum(), 2000.0
    run = m.simulate([0, 1.0], near=m.at([1.2]), events=lambda t, now: now.q[0] + 0.02 * np.sin(rate * t))
    t = np.linspace(0, 1, 20_001)
    fine = m.simulate(t, near=m.at([1.2])).q[:, 0] + 0.02 * np.sin(rate * t)
    assert len(run.events) == int((np.diff(np.sign(fine)) != 0).sum()) > 1


def test_discontinuous_events_are_found_once() -> None:
    m = pendulum()
    run = m.simulate(1.0, near=m.at([1.2]), events=lambda t, now: np.sign(now.q[0]))
    assert [t for t, _ in run.events] == pytest.approx([PERIOD / 4], abs=1e-6)


def test_events_too_fast_to_resolve_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    from kic.simulation import events

    monkeypatch.setattr(events, "EVALUATIONS_MAX", 500)
    m = pendulum()
    with raises(kic.SimulationError, key="events") as caught:
        m.simulate(1.0, near=m.at([1.2]), events=lambda t, now: np.sin(1e7 * t))
    assert caught.value.evaluations <= 500
    assert caught.value.simulation.t[-1] == 0


def test_events_must_return_numbers() -> None:
    m, start = pendulum(), pendulum().at([1.0])
    with pytest.raises(kic.SimulationError, match=r"returned nan at t = .*q = \[.*qd = \[") as caught:
        m.simulate(1.0, near=start, events=lambda t, now: np.nan if t > 0.3 else 1.0)
    assert 0 < caught.value.simulation.t[-1] <= caught.value.time


def test_simultaneous_stops_are_taken_in_their_order() -> None:
    """Last digits of times do not decide which of two limits stops a run; events before keep their times."""
    first, second, before = (event_at(t) for t in (0.3 + 1e-14, 0.3, 0.3 - 1e-5))
    first.terminal = second.terminal = True
    run = kic.load("horn-two-link").simulate(1.0, events=[first, second, before])
    assert [i for _, i in run.events] == [2, 0]
    assert run.events[0][0] == pytest.approx(0.3 - 1e-5, abs=1e-12)
    assert run.t[-1] == pytest.approx(0.3, abs=1e-12)


def event_at(time: float):
    """Return an event that is zero at a time."""

    def event(t: float, now: object) -> float:
        return t - time

    return event
