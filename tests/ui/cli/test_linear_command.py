"""Command `kic linearize`: printed tables, JSON against arrays, and errors."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
from commands import run_line

import kic


def test_a_page() -> None:
    page = run_line("linearize four-bar --at A=70deg")
    for text in ("linearization in A", "K = ∂T/∂q", "C = ∂T/∂q̇", "I* = ∂T/∂q̈", "grows with time constant"):
        assert text in page
    rest = run_line('linearize horn-two-link --at "-80deg, 5deg" --equilibrium')
    assert rest.startswith("horn-two-link: equilibrium, stable")
    assert "oscillates at 0.4266 Hz: shoulder 1, elbow 0.4305" in rest
    assert rest.count("oscillates at 0.4266 Hz") == 1
    assert "commutator" in run_line(
        'linearize puma560 --at "10deg, 0.5, -30deg, 0, 0.8, 0" --wrt link6 --qd link6.wz=1'
    )


def test_json_matches_the_python_result() -> None:
    data = json.loads(
        run_line(
            "linearize five-bar --at A=1.2,E=1.5 --wrt coupler.x --wrt coupler.y --qd coupler.x=2 --json"
        )
    )
    m = kic.load("five-bar")
    lin = m.at({"A": 1.2, "E": 1.5}).linearize([2.0, 0.0], wrt=["coupler.x", "coupler.y"])
    for key in ("qd", "qdd", "T", "K", "C", "I", "K_inertia", "K_load", "C_inertia", "C_load", "commutator"):
        assert np.array_equal(np.array(data[key]), getattr(lin, key)), key
    assert data["coordinates"] == ["coupler.x", "coupler.y"]
    assert data["holonomic"] is True
    assert data["stability"] is None
    values = np.array(data["modes"]["eigenvalues"])
    assert np.array_equal(values[:, 0] + 1j * values[:, 1], lin.modes().eigenvalues)
    s = m.at({"A": 1.2, "E": 1.5}).linearize([2.0, 0.0], wrt=["coupler.x", "coupler.y"]).state_space()
    for letter in "ABCD":
        assert np.array_equal(
            np.array(data["state_space"][letter]).reshape(getattr(s, letter).shape), getattr(s, letter)
        )
    assert data["state_space"]["states"] == list(s.states)
    rest = json.loads(run_line("linearize four-bar --equilibrium --json"))
    assert rest["stability"] == "unstable"
    assert rest["modes"]["natural"] == [None]
    assert rest["name"] == "four-bar"
    assert rest["units"]["force"] == "N"


def test_a_model_with_motors(tmp_path) -> None:
    motor = kic.Motor("M", ["A"], ratios=[30.0], resistance=0.5, inductance=1e-3, torque_constant=0.02)
    file = tmp_path / "driven.toml"
    replace(kic.load("four-bar"), motors=[motor]).save(file)
    page = run_line(f"linearize {shlex.quote(str(file))} --at A=1.2")
    assert "state space of A" in page
    assert "M.current" in page
    report = run_line(f"report {shlex.quote(str(file))}")
    assert "1 motor" in report
    assert "rotors and damping are included with motors=True" in report


def test_help_runs() -> None:
    assert "kic linearize four-bar --at A=70deg" in run_line("linearize --help")
    assert "linearize" in run_line("--help")
