"""Runs with compiled stages equal runs whose right-hand sides are evaluated in Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dynamic_cases import top
from stage_counter import compiled_and_plain

import kic

SPACING = np.linspace(0, 0.3, 7)
CIRCUIT = {"resistance": 0.5, "torque_constant": 0.02}


def motor(m: kic.Mechanism, joint: str, **given) -> kic.Mechanism:
    """The mechanism with a motor at a joint, and a source of torque there."""
    source = kic.Motor("source", [joint], ratios=[2.0], damping=1e-4)
    return replace(
        m, motors=[kic.Motor("M", [joint], ratios=[30.0], inertia=1e-5, damping=2e-6, **given), source]
    )


def swinging(start: float, rate: float):
    """A prescribed motion that begins with a value and a rate."""
    return lambda t: (start + rate * np.sin(3 * t) / 3, rate * np.cos(3 * t), -3 * rate * np.sin(3 * t))


def check(run: kic.results.Simulation, plain: kic.results.Simulation, tolerance: float = 1e-9) -> None:
    """Compare all arrays of two runs."""
    for key, value in run._arrays.items():
        other = plain._arrays[key]
        scale = max(1.0, float(np.abs(np.nan_to_num(other)).max(initial=0.0)))
        assert np.array_equal(np.isnan(value), np.isnan(other)), key
        assert np.abs(np.nan_to_num(value - other)).max(initial=0.0) <= tolerance * scale, key
    assert run.charts == plain.charts


@pytest.mark.slow_for("RK23")
@pytest.mark.parametrize("method", ["DOP853", "RK23", "LSODA"])
def test_prescribed_coordinates_agree_with_python_stages(method, monkeypatch) -> None:
    m = kic.load("five-bar")
    start = m.at()
    given = {"E": swinging(float(start.value("E")), 0.8)}
    # methods with step control by other quantities agree to their tolerance
    limits = kic.Integrator(method, rtol=1e-8, atol=1e-10)
    rates = [0.5, 0.8]
    args = m, start, SPACING, [2.0, 5.0]
    check(
        *compiled_and_plain(monkeypatch, *args, qd=rates, prescribed=given, integrator=limits),
        1e-9 if method != "LSODA" else 1e-6,
    )
    # the only other coordinate, too: nothing is left to integrate but the energies
    both = given | {"A": swinging(float(start.value("A")), -0.3)}
    check(*compiled_and_plain(monkeypatch, m, start, SPACING, prescribed=both, integrator=limits))


def test_efforts_at_prescribed_coordinates_do_not_act_after_a_change_of_coordinates(monkeypatch) -> None:
    m = kic.load("five-bar")
    start = m.at()
    first = float(start.value("E"))
    args = m, start, np.linspace(0, 0.9, 10)
    given = {"qd": [3.0, -1.0], "prescribed": {"E": lambda t: (first - t, -1.0, 0.0)}}
    runs = [m.simulate(args[2], effort=effort, near=start, **given) for effort in (None, [0.0, 5.0])]
    assert runs[0].charts > 1
    for key in ("q", "qd", "qdd", "effort"):
        assert np.abs(getattr(runs[1], key) - getattr(runs[0], key)).max() <= 1e-9, key
    check(*compiled_and_plain(monkeypatch, *args, effort=[0.0, 5.0], **given), 1e-6)


def test_prescribed_coordinates_of_open_chain_agree_with_python_stages(monkeypatch) -> None:
    m = kic.load("horn-three-link")
    start, names = m.at(), m.coordinates
    given = {names[1]: swinging(float(start.value(names[1])), 0.5)}
    effort = np.linspace(-1, 1, len(names))
    check(*compiled_and_plain(monkeypatch, m, start, SPACING, effort, prescribed=given))


@pytest.mark.slow
@pytest.mark.parametrize("inductance", [0.0, 1e-3])
def test_motors_under_voltages_agree_with_python_stages(inductance, monkeypatch) -> None:
    m = motor(kic.load("four-bar"), "A", inductance=inductance, **CIRCUIT)
    start = m.at()
    check(*compiled_and_plain(monkeypatch, m, start, SPACING, [0.1], voltage=[6.0, 0.02]))

    def voltage(t: float, now) -> list[float]:
        return [5.0 - 0.1 * now.qd[0], 0.01 * np.cos(t)]

    check(*compiled_and_plain(monkeypatch, m, start, SPACING, voltage=voltage, effort=lambda t, now: [t]))


def test_motors_and_prescribed_coordinate_agree_with_python_stages(monkeypatch) -> None:
    m = motor(kic.load("five-bar"), "A", **CIRCUIT)
    start = m.at()
    given = {"E": swinging(float(start.value("E")), 0.4)}
    check(*compiled_and_plain(monkeypatch, m, start, SPACING, prescribed=given, voltage=[3.0, 0.0]))


@pytest.mark.slow_for("puma560")
@pytest.mark.parametrize("name", ["gough-stewart", "puma560", "top"])
def test_effort_functions_agree_with_python_stages(name: str, monkeypatch) -> None:
    m = top((0.3, 0.3, 0.5)) if name == "top" else kic.load(name)
    size = len(m.coordinates)

    def effort(t: float, now) -> np.ndarray:
        now.q[:] = now.q + 1.0  # without effect on the run
        return np.linspace(-0.2, 0.1, size) * np.cos(t) - 0.1 * now.qd

    rates = np.linspace(0.1, 0.3, size)
    check(*compiled_and_plain(monkeypatch, m, m.at(), SPACING, effort, qd=rates))


@pytest.mark.parametrize(("name", "rate"), [("four-bar", 4.0), ("gough-stewart", 0.5)])
def test_long_steps_agree_with_python_stages(name: str, rate: float, monkeypatch) -> None:
    """Stages far from the last good state are closed by way of others."""
    m = kic.load(name)
    rates = np.full(len(m.coordinates), rate)
    args = m, m.at(), np.linspace(0, 0.4, 5)
    run, plain = compiled_and_plain(
        monkeypatch, *args, qd=rates, integrator=kic.Integrator(rtol=1e-5, atol=1e-5)
    )
    check(run, plain, 1e-7)
    assert run.steps == plain.steps
    assert rate * 0.4 / run.steps > 0.04


def test_compiled_stages_raise_errors_of_functions() -> None:
    m = kic.load("four-bar")

    def effort(t: float, now) -> list[float]:
        if t > 0.1:
            raise ZeroDivisionError("of the user")
        return [0.1]

    with pytest.raises(ZeroDivisionError, match="of the user") as caught:
        m.simulate(SPACING, near=m.at(), effort=effort)
    assert caught.value.simulation.t[-1] <= 0.1
