"""`kic simulate`: what is printed, what scripts get, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import kic
from kic.cli import main


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["simulate", *arguments], env={"COLUMNS": "100"})
    assert result.exit_code == code, result.output
    return result.output


def test_a_swing_is_told() -> None:
    text = run("horn-two-link", "--at", "0deg, 30deg", "--of", "tip", "--moments", "6")
    for said in ("t = 0 to 1, 6 moments", "energy", "account misses at most", "over time", "tip.x"):
        assert said in text
    arm = kic.load("horn-two-link")
    exact = kic.simulate(arm, arm.at([0, np.radians(30)]), np.linspace(0, 1, 6))
    assert f"{exact.q[-1, 0]:.5g}" in text
    assert max(map(len, text.splitlines())) <= 100


def test_scripts_get_the_numbers(tmp_path) -> None:
    file = tmp_path / "run.npz"
    text = run("four-bar", "--wrt", "D", "--wrt", "A", "--json", code=1)
    assert "mobility 1; 2 coordinates" in text
    data = json.loads(
        run("four-bar", "--rate", "A=60deg", "--effort", "A=0.2", "--for", "0.5", "--of", "tip,D", "--json",
            "--save", str(file))
    )  # fmt: skip
    m = kic.load("four-bar")
    exact = kic.simulate(m, m.at(), np.linspace(0, 0.5, 11), effort=[0.2], qd=[np.pi / 3])
    for key in ("t", "q", "qd", "qdd", "effort"):
        assert np.array_equal(data[key], getattr(exact, key))
    assert np.array_equal(data["values"]["tip"], exact["tip"])
    assert np.array_equal(data["energy"]["work"], exact.energy.work)
    assert (data["coordinates"], data["stopped"], data["units"]["length"]) == (["A"], "", "m")
    assert np.array_equal(kic.Simulation.load(file).q, exact.q)
    help_ = run("--help")
    assert all(key in help_ for key in data)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("four-bar", "--for", "-1"), "--for takes a time larger than 0, got -1", 1),
        (("four-bar", "--for", "nan"), "--for takes a time larger than 0, got nan", 1),
        (("four-bar", "--rate", "B=1"), "--rate takes NAME=NUMBER of a coordinate, got 'B=1'", 1),
        (("four-bar", "--effort", "A=much"), "--effort takes NAME=NUMBER of a coordinate, got 'A=much'", 1),
        (("four-bar", "--effort", "B=1"), "The coordinates are A", 1),
        (("four-bar", "--of", "coupler"), "includes angular velocities", 1),
        (("four-bar", "--of", "tip,,D"), "there is an empty name", 2),
        (("four-bar", "--moments", "1"), "x>=2", 2),
        (("no-such-model",), "no-such-model", 1),
        (("four-bar", "--save", "/no/such/folder/run.npz"), "can not be written", 1),
    ],
)
def test_bad_input_is_said(arguments: tuple[str, ...], message: str, code: int) -> None:
    assert message in " ".join(run(*arguments, code=code).split())
