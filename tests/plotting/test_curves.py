"""Curves of efforts and joint forces along motions and paths, against the analyses of each configuration."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises

import kic

M = kic.load("four-bar")
PATH = M.path({"A": np.linspace(1.2, 3.2, 9)})


def test_a_path_at_constant_speed():
    turn = kic.trajectory.at_speed(PATH, 10.0)
    assert np.abs(turn.t - np.linspace(0, 0.2, 9)).max() < 1e-14
    effort = PATH.dynamics().inverse_dynamics(np.full((9, 1), 10.0), np.zeros((9, 1)))
    assert np.allclose(turn.effort(), effort, rtol=1e-12, atol=0)
    f = PATH.joint_forces(np.full((9, 1), 10.0), np.zeros((9, 1)))
    assert np.array_equal(turn.joint_forces().force, f.force)


def test_curves_of_efforts_and_joint_forces():
    pytest.importorskip("matplotlib")
    turn = kic.trajectory.at_speed(PATH, 10.0)
    picture = turn.plot(["efforts", "joint forces"])
    effort, force = picture.axes
    assert effort.get_ylabel() == "effort (N m)"
    assert np.array_equal(effort.get_lines()[0].get_ydata(), turn.effort()[:, 0])
    assert force.get_ylabel() == "joint force (N)"
    size = np.linalg.norm(turn.joint_forces()["C"].force, axis=-1)
    assert np.allclose(force.get_lines()[2].get_ydata(), size, rtol=1e-14)


def test_curves_of_shared_efforts():
    """Two cranks share the load by the least squares of efforts over limits, a multiple of G limits²."""
    pytest.importorskip("matplotlib")
    turn, limits = kic.trajectory.at_speed(PATH, 10.0), np.array([5.0, 2.0])
    shared = {"actuators": ["A", "D"], "criterion": "limits", "effort_limits": {"A": 5.0, "D": 2.0}}
    effort, power = turn.plot(["efforts", "powers"], **shared).axes
    shown = np.stack([line.get_ydata() for line in effort.get_lines()], axis=1)
    G = PATH.coefficients(["A", "D"]).G[..., 0]
    share = G * limits**2
    want = turn.effort() * share / (G * share).sum(axis=1, keepdims=True)
    assert np.allclose(shown, want, rtol=1e-9, atol=1e-12)
    shown = np.stack([line.get_ydata() for line in power.get_lines()], axis=1)
    assert np.allclose(shown, want * 10.0 * G, rtol=1e-9, atol=1e-12)
    for of, key, given in (
        ("A", "actuators", {"actuators": "A"}),
        ("joint forces", "criterion", {"criterion": "limits"}),
        ("efforts", "criterion", {"criterion": "limits"}),
    ):
        with pytest.raises(kic.InputError) as caught:
            turn.plot(of, **given)
        assert caught.value.key == key


def test_curves_of_motors():
    """Torques, currents and voltages of geared motors are groups of plots and tables."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    circuit = {"resistance": 0.5, "torque_constant": 0.02}
    crank = kic.Motor("crank motor", ["A"], ratios=[30.0], inertia=1e-5, **circuit)
    turn = kic.trajectory.at_speed(M.add(crank).path({"A": np.linspace(1.2, 2.2, 5)}), 10.0)
    demand, groups = turn.motor_demand(), ["torques", "currents", "voltages"]
    picture, table = turn.plot(["efforts", *groups]), turn.table(groups).to_dataframe()
    for ax, key, unit in zip(
        picture.axes[1:], ("torque", "current", "voltage"), ("N m", "A", "V"), strict=True
    ):
        assert ax.get_ylabel() == f"{key} ({unit})"
        (line,) = ax.get_lines()
        assert line.get_label() == "crank motor"
        assert np.array_equal(line.get_ydata(), getattr(demand, key)[:, 0])
        assert np.array_equal(table[f"crank motor.{key}"], getattr(demand, key)[:, 0])
    for of, actuators in (("torques", "A"), (["torques", "A"], "A")):
        with raises(kic.InputError, key="actuators"):
            turn.plot(of, actuators=actuators)


def test_metrics_are_found_by_their_argument():
    arm = kic.load("horn-two-link")
    w = kic.metrics.min_singular_value()
    s = arm.sweep({"shoulder": 0.0, "elbow": [0.5, 1.0]}, [w, "static_effort", "tip.x"])
    assert np.array_equal(s[w], s["min_singular_value"])
    assert np.array_equal(s["static_effort"], s["largest static effort"])
    assert s["tip.x"].shape == (2,)
    assert set(dir(kic.metrics)) == {
        "force", "inertia", "inverse_condition_number", "manipulability", "mass", "min_singular_value",
        "static_effort", "transmission", "value", "assembly_modes", "condition", "mechanical_advantage",
        "transmission_angle",
    }  # fmt: skip
    assert dir(kic.trajectory) == kic.trajectory.__all__


def test_one_number_serves_one_degree_of_freedom():
    c = M.at(1.2)
    assert np.array_equal(c._phi, M.at([1.2])._phi)
    d = c.dynamics()
    assert d.inverse_dynamics(1.0, 2.0) == d.inverse_dynamics([1.0], [2.0])[0]
    assert np.array_equal(c.joint_forces(1.0).force, c.joint_forces([1.0]).force)


def test_nan_is_reported_as_nan():
    with pytest.raises(kic.ConfigurationError) as caught:
        M.at({"A": [1.2, np.nan]})
    assert caught.value.failed == [(1,)]
    assert "A is NaN" in caught.value.reasons[0]


@pytest.mark.parametrize(
    ("content", "reader"),
    [
        (b"PK\x03\x04\xff", "Simulation.load"),
        (b"<!-- x --><robot name='r'/>", "from_urdf"),
        (b'{"a": 1}', "JSON"),
    ],
)
def test_files_of_other_kinds_are_identified(content, reader, tmp_path):
    path = tmp_path / "model.toml"
    path.write_bytes(content)
    with pytest.raises(kic.ModelFileError) as caught:
        kic.load(path)
    assert reader in caught.value.message


def test_a_planar_body_takes_one_moment_of_inertia():
    assert kic.Body("rod", mass=1.0, com=(0, 0, 0), inertia=0.1) == kic.Body(
        "rod", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1)
    )
    with pytest.raises(kic.ModelError) as caught:
        kic.Body("rod", mass=1.0, com=(0, 0, 0), inertia=(0, 0, 0.1))
    assert "inertia = 0.1" in caught.value.message


def test_the_account_of_mobility_states_its_verdict():
    assert "The motion is finite" in kic.load("bricard").mobility().summary()
    assert "finite" not in kic.load("four-bar").mobility().summary()
