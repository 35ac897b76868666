"""Limits of joints, distances and swings: one concept for every function with an argument `limits`."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from commands import run, run_line
from platforms import LEGS, STROKE, boom, platform_on_distances
from raising import raises
from scipy.spatial.transform import Rotation

import kic

SIX = platform_on_distances()
HEIGHT = float(SIX.at().value("platform.z"))
UPRIGHT = {"platform.z": HEIGHT, **{f"platform.euler_xyz.{k}": 0.0 for k in (1, 2, 3)}}


def lengths(c) -> np.ndarray:
    return np.stack([c.value(leg) for leg in LEGS], axis=-1)


def within(c) -> np.ndarray:
    """Members whose legs are within their stroke; those that were not solved are not."""
    a = lengths(c)
    return ((a >= STROKE[0]) & (a <= STROKE[1])).all(axis=-1)


def test_the_mapping_of_limits() -> None:
    assert dict(SIX.limits) == dict.fromkeys(LEGS, STROKE)
    assert dict(boom().limits) == {"A": (-0.2, 0.6), "ram": (0.7, 1.4)}
    with pytest.raises(TypeError):
        SIX.limits["L1"] = (0, 1)


def test_positions_beyond_limits_are_errors_or_masked() -> None:
    with raises(kic.ConfigurationError, failed=[()]) as caught:
        SIX.at([1.3, 1.1, 1.1, 1.1, 0.75, 1.0], limits=True)
    error = caught.value
    assert error.failed == [()]
    assert error.beyond == [{"L1": pytest.approx(0.1), "L5": pytest.approx(-0.05)}]
    assert lengths(error.reached)[0, 0] == pytest.approx(1.3)
    x = np.linspace(-0.4, 0.4, 21)
    c = SIX.at({"platform.x": x[:, None], "platform.y": [0.0, 0.1], **UPRIGHT}, failures="mask", limits=True)
    free = SIX.at({"platform.x": x[:, None], "platform.y": [0.0, 0.1], **UPRIGHT})
    assert (c.ok == within(free)).all()
    assert 0 < c.ok.sum() < c.ok.size
    assert np.isnan(c.value("L1")[~c.ok]).all()
    # those of an argument replace those of the description, at any row
    assert SIX.at([1.25] + [1.1] * 5, limits={"platform.x": (-1, 1)}).ok
    with pytest.raises(kic.ConfigurationError) as caught:
        SIX.at([1.15] + [1.1] * 5, limits={"platform.z": (0.0, 0.9)})
    assert list(caught.value.beyond[0]) == ["platform.z"]
    assert SIX.at(limits=True).ok
    assert SIX.at([1.3] + [1.1] * 5, limits=False).ok


@pytest.mark.parametrize("coordinates", [["A"], ["ram"]])
def test_paths_end_at_limits(coordinates: list[str]) -> None:
    """The same for open chains in their own coordinates and for others."""
    m = boom(coordinates=coordinates)
    there = {"A": np.concatenate([np.linspace(0, 0.7, 8), np.linspace(0.7, 0, 8)])}
    turn = m.path(there, failures="mask", limits=True)
    assert turn.ok.tolist() == [True] * 7 + [False] * 9
    with pytest.raises(kic.ConfigurationError) as caught:
        m.path(there, limits=True)
    assert caught.value.failed[0] == (7,)
    assert caught.value.beyond[0] == {"A": pytest.approx(0.1)}
    assert m.at(there, failures="mask", limits=True).ok.sum() == 14


def test_orientations_are_inputs_and_axes_of_a_sweep() -> None:
    """The workspace over place and tilt is that of the leg lengths, computed from points."""
    x, tilt = np.linspace(-0.4, 0.4, 11), np.linspace(-0.6, 0.6, 13)
    grid = {"platform.x": x, **UPRIGHT, "platform.y": 0.0, "platform.euler_xyz.2": tilt}
    s = SIX.sweep(grid, "L1", limits=True)
    home = SIX.at()
    base, top = (np.array([home.value(f"{p}{k}") for k in range(1, 7)]) for p in "BP")
    centre = np.array([home.value(f"platform.{axis}") for axis in "xyz"])
    possible = np.zeros((len(x), len(tilt)), dtype=bool)
    for i, one in enumerate(x):
        for k, angle in enumerate(tilt):
            place = np.array([one, 0, HEIGHT])
            ends = Rotation.from_euler("xyz", [0, angle, 0]).apply(top - centre) + place
            legs = np.linalg.norm(ends - base, axis=1)
            possible[i, k] = ((legs >= STROKE[0]) & (legs <= STROKE[1])).all()
            if s.reached[i, k]:
                assert s["L1"][i, k] == pytest.approx(legs[0], abs=1e-9)
    assert (s.reached == possible).all()
    assert 0 < s.reached.sum() < s.reached.size
    assert any("beyond the limits of 'L" in str(why) for why in s.reasons.ravel())


def test_swings_of_passive_joints() -> None:
    """Ball: the angle between a direction and its image. Universal joint: cos swing = cos q1 cos q2."""
    body = kic.Body("b", at=(1, 0, 0))
    ball = kic.Joint("S", "spherical", ("ground", "b"), at=(0, 0, 0), swing=0.5, swing_axis=(0, 0, 2))
    m = kic.Mechanism("ball", [body], [ball])
    r = np.random.default_rng(0).normal(size=(20, 3))
    c = m.at({"S": r})
    image = Rotation.from_rotvec(r).apply([0.0, 0.0, 1.0])
    assert c.value("S.swing") == pytest.approx(np.arccos(image[:, 2]), abs=1e-7)
    assert m.at({"S": [0.0, 0.0, 3.0]}, limits=True).ok  # a turn about the direction is no swing
    assert (m.at({"S": r}, failures="mask", limits=True).ok == (np.arccos(image[:, 2]) <= 0.5)).all()
    cross = kic.Joint("U", "universal", ("ground", "b"), (0, 0, 0), (1, 0, 0), axis2=(0, 1, 0), swing=0.4)
    u = kic.Mechanism("cross", [body], [cross])
    q = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    swing = u.at(q).value("U.swing")
    assert swing == pytest.approx(np.arccos(np.cos(q[:, 0]) * np.cos(q[:, 1])), abs=1e-7)
    with pytest.raises(kic.ConfigurationError) as caught:
        u.at([0.3, 0.5], limits=True)
    assert list(caught.value.beyond[0]) == ["U.swing"]


def test_legs_stop_a_run_at_their_joints() -> None:
    """A platform of joints, whose universal joints may swing a little."""
    m = kic.load("gough-stewart")
    joints = [replace(j, swing=0.05) if j.type == "universal" else j for j in m.joints]
    run = replace(m, joints=joints).simulate(2.0, limits=True)
    name = run.stopped.split()[-1]
    assert name.endswith(".swing")
    assert float(run.configuration[-1].value(name)) == pytest.approx(0.05, abs=1e-8)


def test_assembly_modes_equilibria_and_paths() -> None:
    arm = kic.load("horn-two-link")
    elbow, wide = (-0.5, 2.0), (-4.0, 4.0)
    joints = [replace(j, limits=elbow if j.name == "elbow" else wide) for j in arm.joints]
    m = replace(arm, joints=joints)
    where = {"tip.x": 1.0, "tip.y": 1.0}
    assert len(arm.assembly_modes(where).counts) == 2
    assert m.assembly_modes(where, limits=True).configuration.value("elbow") == pytest.approx([np.pi / 2])
    assert m.assembly_modes(where, limits={"elbow": elbow}).configuration.value("elbow") == pytest.approx(
        [np.pi / 2]
    )
    hangs = m.find_equilibrium(stable=True, limits=True)
    assert hangs.configuration.value("tip") == pytest.approx([0, -2, 0], abs=1e-9)
    high = replace(arm, joints=[replace(j, limits=(-1.0, 1.0)) for j in arm.joints])
    with pytest.raises(kic.ConfigurationError) as caught:
        high.find_equilibrium(stable=True, limits=True)
    assert caught.value.beyond[0] == {"shoulder": pytest.approx(1.0 - np.pi / 2)}
    t = np.linspace(0, 1, 11)
    start = m.at([0.0, 0.5])
    home = start.value("tip.x")
    out = {"tip.x": lambda t: home - 1.2 * t}
    with pytest.raises(kic.ConfigurationError) as caught:
        m.track(out, t, near=start, limits={"elbow": (0.0, 0.8)})
    assert 0 < caught.value.time < 1
    assert "elbow" in caught.value.beyond[0]
    assert kic.JointLimits(m.limits).names == ("shoulder", "elbow")


def test_arguments_are_checked() -> None:
    with pytest.raises(kic.UnknownNameError) as caught:
        boom().at(limits={"rum": (0, 1)})
    assert "ram" in caught.value.candidates


def test_at_checks_the_solution_and_path_the_way() -> None:
    """The tip of a crank-rocker leaves its limits between two configurations that are within them."""
    m = kic.load("four-bar")
    start = m.at({"A": 0.5})
    A = np.linspace(0.5, 0.5 + 2 * np.pi, 61)
    turn = m.path({"A": A}, near=start)
    height = turn.value("tip.y")
    limits = {"tip.y": (height.min() - 1.0, height[0] + 1e-6)}
    assert height.max() > height[0] + 1e-3
    assert m.at({"A": A[-1]}, near=start, limits=limits).ok
    with pytest.raises(kic.ConfigurationError) as caught:
        m.path({"A": A}, near=start, limits=limits)
    assert caught.value.failed[0] == (int(np.argmax(height > limits["tip.y"][1])),)
    assert list(caught.value.beyond[0]) == ["tip.y"]


@pytest.mark.parametrize("command", ["report", "mobility", "linearize", "simulate", "draw -o arm.svg"])
def test_commands_respect_limits(command: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    boom(coordinates=["A"]).save("boom.toml")
    name, *rest = command.split()
    within, beyond = ([name, "boom.toml", "--at", f"A={A}", *rest] for A in (0.3, 0.7))
    run(*beyond)  # without the option there are no limits
    assert "exceeds its limits: beyond the limits of 'A' by 0.1 (above 0.6)" in run(
        *beyond, "--limits", code=1
    )
    if name != "simulate":
        assert run(*within, "--limits") == run(*within)
    message = run(name, "four-bar", *rest, "--limits", code=1)
    assert "--limits is given, but 'four-bar' has no limits." in message
    assert "dict" not in message


def test_runs_and_motions_of_commands_end_at_limits(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    boom(coordinates=["A"]).save("boom.toml")
    data = json.loads(run_line("simulate boom.toml --at A=0.3 --for 5 --limits --json"))
    assert "A" in data["stopped"]
    assert data["q"][-1] == pytest.approx([-0.2])
    assert json.loads(run_line("simulate boom.toml --at A=0.3 --for 0.1 --json"))["stopped"] == ""
    message = run_line("draw boom.toml --move A=0..0.7 --limits -o boom.svg", code=1)
    assert "beyond the limits of 'A'" in message
    assert not (tmp_path / "boom.svg").exists()
    run_line("draw boom.toml --move A=0..0.6 --limits -o boom.svg")


def test_shipped_models_have_the_limits_of_their_sources() -> None:
    """The reference configurations are inside; the leg that exceeds the length of its parts is not."""
    for name in ("panda", "gough-stewart"):
        m = kic.load(name)
        assert m.at(limits=True).ok
        assert set(m.limits) == set(m.coordinates)
    with raises(kic.ConfigurationError, beyond=[{"joint4": pytest.approx(0.0698)}]):
        kic.load("panda").at(np.zeros(7), limits=True)
    legs = kic.load("gough-stewart")
    assert all(low >= 0.6 and high <= 1.2 for low, high in legs.limits.values())
    assert "lower limit of L1" in legs.simulate(0.5, limits=True).stopped
