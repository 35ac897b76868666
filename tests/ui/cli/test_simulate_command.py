"""Command `kic simulate`: printed tables, JSON, files, and errors."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from commands import run

import kic
from kic.ui.cli.main import main


def test_pendulum_swing_is_printed() -> None:
    text = run("simulate", "horn-two-link", "--at", "0deg, 30deg", "--of", "tip", "--samples", "6")
    for said in ("t = 0 to 1, 6 samples", "energy", "energy residual at most", "over time", "tip.x"):
        assert said in text
    arm = kic.load("horn-two-link")
    exact = arm.simulate(np.linspace(0, 1, 6), near=arm.at([0, np.radians(30)]))
    assert f"{exact.q[-1, 0]:.5g}" in text
    assert max(map(len, text.splitlines())) <= 100


def test_each_column_is_printed_once_with_its_unit() -> None:
    text = run("simulate", "four-bar", "--of", "A,tip.x,tip", "--of", "D", "--samples", "3")
    head = next(line for line in text.splitlines() if line.lstrip().startswith("t (s)"))
    assert " ".join(head.split()) == "t (s) A (rad) tip.x (m) tip.y (m) tip.z (m) D (rad)"
    m = kic.load("four-bar")
    last = m.simulate(np.linspace(0, 1, 3), near=m.at())
    numbers = [float(x) for x in text.splitlines()[-1].split()]
    assert np.allclose(numbers, [1.0, last.q[-1, 0], *last["tip"][-1], last["D"][-1]], rtol=1e-4, atol=1e-12)


def test_scripts_get_the_numbers(tmp_path) -> None:
    file = tmp_path / "run.npz"
    data = json.loads(
        run("simulate", "four-bar", "--qd", "A=60deg", "--effort", "A=0.2", "--for", "0.5", "--of", "tip,D",
            "--json", "--save", str(file))
    )  # fmt: skip
    m = kic.load("four-bar")
    exact = m.simulate(np.linspace(0, 0.5, 11), near=m.at(), effort=[0.2], qd=[np.pi / 3])
    for key in ("t", "q", "qd", "qdd", "effort"):
        assert np.array_equal(data[key], getattr(exact, key))
    assert np.array_equal(data["values"]["tip"], exact["tip"])
    assert np.array_equal(data["energy"]["work"], exact.energy.work)
    assert (data["coordinates"], data["stopped"], data["units"]["length"]) == (["A"], "", "m")
    assert np.array_equal(kic.results.Simulation.load(file).q, exact.q)
    help_ = run("simulate", "--help")
    assert all(key in help_ for key in data)


def test_voltages_of_motors() -> None:
    typed = ("puma560-motors", "--for", "0.05", "--samples", "3")
    text = run("simulate", *typed, "--voltage", "waist_motor=12, shoulder_motor=5")
    for said in ("motors, at most", "waist_motor", "heat in motors"):
        assert said in text
    volts = ("--voltage", "waist_motor=12", "--voltage", "shoulder_motor=5")
    data = json.loads(run("simulate", *typed, *volts, "--json"))
    m = kic.load("puma560-motors")
    exact = m.simulate(np.linspace(0, 0.05, 3), near=m.at(), voltage=[12, 5, 0, 0, 0, 0])
    for key in ("q", "current", "voltage", "torque"):
        assert np.array_equal(data[key], getattr(exact, key))
    for key in ("electrical", "heat", "magnetic"):
        assert np.array_equal(data["energy"][key], getattr(exact.energy, key))
    assert tuple(data["motors"]) == exact.motors
    help_ = run("simulate", "--help")
    assert all(key in help_ for key in (*data, *data["energy"], "--voltage"))


def test_currents_at_the_start() -> None:
    typed = ("four-bar-motor", "--for", "0.1", "--samples", "3", "--voltage", "motor=6")
    data = json.loads(run("simulate", *typed, "--current", "motor=1.5", "--json"))
    m = kic.load("four-bar-motor")
    exact = m.simulate(np.linspace(0, 0.1, 3), near=m.at(), voltage=kic.Voltage([6.0], current=[1.5]))
    assert data["current"][0] == [1.5]
    for key in ("q", "current"):
        assert np.array_equal(data[key], getattr(exact, key))
    assert json.loads(run("simulate", *typed, "--json"))["current"][0] == [0.0]


@pytest.mark.slow
def test_contacts_stop_a_run_or_hold() -> None:
    # a held quadruped passes a change point at 0.29 s
    typed = ("quadruped", "--for", "0.3", "--samples", "2", "--json")
    stopped, held = (json.loads(run("simulate", *typed, "--contacts", how)) for how in ("stop", "hold"))
    assert "needs more friction than it has" in stopped["stopped"]
    assert stopped == json.loads(run("simulate", *typed))
    assert held["stopped"] == ""
    m = kic.load("quadruped")
    exact = m.simulate([0, 0.3], near=m.at(), integrator=kic.Integrator(contacts="hold"))
    assert held["t"] == [0, 0.3]
    assert np.array_equal(held["q"], exact.q)


def test_runs_stop_at_or_pass_change_points() -> None:
    typed = ("sarrus", "--qd", "A1=0.5", "--for", "0.5", "--samples", "3", "--json")
    stopped, passed = (
        json.loads(run("simulate", *typed, "--on-change-point", how)) for how in ("stop", "continue")
    )
    assert "by a change point" in stopped["stopped"]
    assert stopped["change_points"] == [stopped["t"][-1]]
    assert passed == json.loads(run("simulate", *typed))
    assert passed["stopped"] == ""
    assert passed["change_points"][0] == pytest.approx(stopped["t"][-1], abs=1e-9)


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_an_interrupted_run_is_saved_and_ends_with_130(tmp_path, json_too) -> None:
    controller, file = tmp_path / "stops.py", tmp_path / "run.npz"
    controller.write_text(
        "def controller(t, now):\n    if t > 0.05:\n        raise KeyboardInterrupt\n    return [0.0]\n"
    )
    where = "--controller", str(controller), "--sample-time", "0.01", "--save", str(file)
    done = CliRunner().invoke(main, ["simulate", "four-bar", "--for", "1", *where, *json_too])
    assert (done.exit_code, done.stderr) == (130, "Interrupted.\n")
    assert "interrupted, the last sample is at t = 0.0" in " ".join(done.stdout.split())
    assert kic.results.Simulation.load(file).stopped.startswith("interrupted")


def test_a_run_that_stops_is_saved(tmp_path) -> None:
    file = tmp_path / "run.npz"
    text = run("simulate", "four-bar", "--qd", "A=1e160", "--save", str(file), code=1)
    assert "stops after t = 0: the motion is no longer finite" in " ".join(text.split())
    assert kic.results.Simulation.load(file).qd[0, 0] == 1e160


def test_sources_of_torque_have_no_voltage(tmp_path) -> None:
    arm = kic.load("horn-two-link")
    replace(arm, motors=[kic.Motor("S", ["shoulder"], ratios=[20.0])]).save(tmp_path / "arm.toml")
    data = json.loads(
        run("simulate", str(tmp_path / "arm.toml"), "--voltage", "S=0.5", "--samples", "2", "--json")
    )
    assert data["current"] == data["voltage"] == [[None], [None]]
    assert data["torque"] == [[0.5], [0.5]]
