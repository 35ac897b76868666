"""Declared actuators, and distances as coordinates, actuators and shafts of motors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from platforms import LEGS, boom, massless_gough_stewart, platform_on_distances
from raising import raises
from sampling import mismatch

import kic

MOVE = np.array([0.03, -0.02, 0.05, 0.01, 0.02, -0.04])


def test_a_platform_on_six_distances_is_a_stewart_platform() -> None:
    """G, H, D, I*, P* and loads in leg lengths are those of the model with joints and massless legs."""
    m, joints = platform_on_distances(), massless_gough_stewart()
    assert m.dof == 6
    q = np.array([float(m.at().value(leg)) for leg in LEGS]) + MOVE
    c, e = m.at(q), joints.at(q)
    a, b = (x.coefficients("platform", order=3) for x in (c, e))
    for T, S in zip(a.tensors, b.tensors, strict=True):
        assert mismatch(T, S) < 1e-12
    d, f = c.dynamics(), e.dynamics()
    for T, S in ((d.I, f.I), (d.P, f.P), (d.load, f.load)):
        assert mismatch(T, S) < 1e-12
    assert mismatch(c.joint_forces().effort, -f.load) < 1e-12
    # forces along the legs carry the weight
    ends = np.array([c.value(f"P{k}") - c.value(f"B{k}") for k in range(1, 7)])
    lift = c.joint_forces().effort @ (ends / np.linalg.norm(ends, axis=1)[:, None])
    assert lift == pytest.approx([0, 0, 9.81 * m.bodies[0].mass], abs=1e-9)


def test_a_cylinder_lifts_a_boom() -> None:
    """The force of the cylinder is the moment of the weight by the arm of its line (closed form)."""
    m = boom()
    c = m.at({"ram": [0.9, 1.0, 1.3]})
    A = c.value("A")
    pin = 0.8 * np.stack([np.cos(A), np.sin(A)], axis=-1)
    line = pin - np.array([0.2, -0.8])
    assert np.linalg.norm(line, axis=-1) == pytest.approx([0.9, 1.0, 1.3], rel=1e-14)
    arm = (pin[:, 0] * line[:, 1] - pin[:, 1] * line[:, 0]) / np.linalg.norm(line, axis=-1)
    force = 50 * 9.81 * np.cos(A) / arm
    assert c.joint_forces().effort[:, 0] == pytest.approx(force, rel=1e-12)
    assert kic.metrics.static_effort("ram")(c) == pytest.approx(force, rel=1e-12)
    assert kic.metrics.static_effort().unit(m) == "N"
    s = m.sweep({"ram": [0.9, 1.0, 1.3]}, "static_effort")
    assert s["largest static effort"] == pytest.approx(force, rel=1e-9)
    path = m.path({"ram": np.linspace(0.9, 1.3, 9)})
    assert path[-1].value("A") == pytest.approx(A[-1], abs=1e-12)
    # the same effort, in joint coordinates with the cylinder as actuator
    other = boom(coordinates=["A"], actuators=["ram"])
    e = other.at(A[:, None])
    assert e.joint_forces().effort[:, 0] == pytest.approx(force, rel=1e-12)
    assert e.distribute(-e.dynamics().load).effort[:, 0] == pytest.approx(force, rel=1e-12)
    assert kic.metrics.static_effort()(e) == pytest.approx(force, rel=1e-12)


def test_runs_in_the_length_of_a_cylinder() -> None:
    """Free fall is the same in both coordinates, and limits of a passive joint end it."""
    m, other = boom(), boom(coordinates=["A"])
    t = np.linspace(0, 0.4, 5)
    run, same = m.simulate(t), other.simulate(t)
    assert run.configuration.value("tip") == pytest.approx(same.configuration.value("tip"), abs=1e-7)
    assert run.coordinates == ("ram",)
    stopped = m.simulate(2.0, limits=True)
    assert "the lower limit of A" in stopped.stopped
    assert float(stopped.configuration[-1].value("A")) == pytest.approx(-0.2, abs=1e-8)
    assert "the lower limit of ram" in other.simulate(2.0, limits={"ram": (0.9, 1.4)}).stopped


def test_motors_drive_distances() -> None:
    screw = kic.Motor("M", ["ram"], ratios=[600.0], resistance=1.0, torque_constant=0.1)
    m = boom(motors=[screw])
    assert m._shafts["M"] == ("ram",)
    c = m.at([1.1])
    drive = c.motor_demand([0.1], [0.0])
    force = c.joint_forces([0.1], [0.0]).effort
    assert drive.torque == pytest.approx(force / 600, rel=1e-12)
    assert drive.speed == pytest.approx([60.0], rel=1e-12)
    assert c.linearize().state_space().A.shape == (2, 2)
    with raises(kic.ModelError, key="motors[0].joints", name="rum"):
        boom(motors=[replace(screw, joints=["rum"])])


def test_a_quadruped_stands_symmetrically() -> None:
    """All twelve actuators share the weight, the same on both sides."""
    m = kic.load("quadruped")
    c = m.at()
    assert len(m.actuators) == 12
    f = c.joint_forces(criterion="minimum norm")
    weight = 9.81 * sum(b.mass for b in m.bodies)
    feet = {leg: f[f"step_{leg}"].force for leg in ("fl", "fr", "hl", "hr")}
    assert sum(force[2] for force in feet.values()) == pytest.approx(-weight, rel=1e-10)
    for end in "fh":
        left, right = feet[f"{end}l"], feet[f"{end}r"]
        assert left == pytest.approx(right * [1, -1, 1], abs=1e-8 * weight)
    shared = c.distribute(-c.dynamics().load).effort
    assert mismatch(shared, c.distribute(-c.dynamics().load, actuators=m.actuators).effort) < 1e-14
    knees = [m.actuators.index(f"knee_{leg}") for leg in ("fl", "fr")]
    assert shared[knees[0]] == pytest.approx(shared[knees[1]], rel=1e-8)
    assert kic.metrics.static_effort()(c) == pytest.approx(np.abs(shared).max(), rel=1e-12)
    assert c.internal_loads().actuators == m.actuators
    assert c.actuator_dynamics().I.shape == (12, 6)


def test_reports_tell_the_efforts_of_actuators() -> None:
    from kic.ui.report.report import report

    m = kic.load("walking-machine")
    text = report(m, m.at()).text()
    assert "static efforts of 4 actuators, shared by the least sum of squares" in text
    assert "static efforts" not in report(boom(), boom().at()).text()
    lame = boom(actuators=[])
    assert "1 or more" in report(lame, lame.at()).text()


def test_rows_can_be_actuators() -> None:
    m = boom(actuators=["tip.y", "arm"])
    assert m.actuators == ("tip.y", *(f"arm.{row}" for row in ("x", "y", "z", "wx", "wy", "wz")))
    force = boom(actuators=["tip.y"]).at({"A": 0.0}).joint_forces()
    assert force.effort == pytest.approx([50 * 9.81 / 2], rel=1e-12)


@pytest.mark.slow
def test_distances_are_drawn_as_cylinders_and_rods() -> None:
    pytest.importorskip("matplotlib")
    six = platform_on_distances().draw()
    rams = {s.name for s in six.shapes if s.of == "ram" and s.name}
    assert rams == set(LEGS)
    assert len([s for s in six.shapes if s.of == "plate" and s.closed]) > 0
    drawn = {s.of for s in boom().draw().shapes}
    assert "ram" in drawn
    assert "rod" not in drawn
    held = replace(boom(), coordinates=[], distances=[kic.Distance("ram", ("a", "b"), fixed=True)])
    assert {"rod"} == {s.of for s in held.draw().shapes} & {"ram", "rod"}
    # marked are the actuators, not the coordinates
    bare = {s.of for s in boom(coordinates=["A"], actuators=[]).draw().shapes}
    assert "ram" not in bare


def test_barrels_keep_their_length() -> None:
    pytest.importorskip("matplotlib")
    m = boom()
    picture = m.path({"ram": [0.9, 1.1, 1.35]}).draw()
    barrels = [s.xy for s in picture.shapes if s.of == "ram" and s.name == "ram"]
    assert len(barrels) == 3
    lengths = [np.linalg.norm(xy[1] - xy[0]) for xy in barrels]
    assert np.ptp(lengths) < 1e-9
    assert max(lengths) < 0.9


def test_legs_drive_a_platform_described_in_its_pose() -> None:
    """Actuators that are not the coordinates: the same leg forces, and sets of coordinates with legs."""
    m = platform_on_distances()
    other = replace(m, coordinates=["float"], actuators=LEGS)
    force = m.at().joint_forces().effort
    assert other.at().joint_forces().effort == pytest.approx(force, rel=1e-12)
    assert kic.metrics.static_effort()(other.at()) == pytest.approx(np.abs(force).max(), rel=1e-12)
    assert other.at().distribute(-other.at().dynamics().load).effort == pytest.approx(force, rel=1e-9)
    assert set(LEGS) <= set(other.mobility().independent_sets().of)
    assert {s.name for s in other.draw().shapes if s.of == "ram" and s.name} == set(LEGS)
