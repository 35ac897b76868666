"""Frames: pose, rows, targets, files, complex steps and drawing, against displacements of bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.mechanism.configuration import displacement

EPS = np.finfo(float).eps
TURN = Rotation.from_euler("xyz", [0.3, 0.4, 0.5])
Q = np.array([0.1, 0.5, -2.2, 0.7, 0.8, -0.4])


@pytest.fixture(scope="module")
def arm() -> kic.Mechanism:
    frames = [
        kic.Frame("gripper", "link6", origin=(0.7, 0.1, 0.3), axes=TURN),
        kic.Frame("camera", "ground", origin=(1, 1, 1)),
    ]
    return replace(kic.load("puma560"), frames=frames)


def matrix(frame: kic.Frame) -> np.ndarray:
    return RigidTransform.from_components(
        frame.origin, Rotation.from_matrix(np.array(frame.axes).T)
    ).as_matrix()


def test_the_pose_of_a_frame_is_the_displacement_of_its_body_after_its_reference_pose(arm):
    c = arm.at(Q + np.linspace(0, 0.3, 6).reshape(2, 3, 1))
    expected = displacement(c, "link6") @ matrix(arm.frames[0])
    assert np.abs(c.pose("gripper").as_matrix() - expected).max() < 100 * EPS
    assert np.abs(displacement(c, "gripper") - displacement(c, "link6")).max() < 100 * EPS
    assert np.abs(c.pose("camera").as_matrix() - matrix(arm.frames[1])).max() == 0
    assert np.abs(c.value("gripper.x") - expected[..., 0, 3]).max() < 100 * EPS


def test_rows_of_a_frame_are_those_of_its_origin_and_its_body(arm):
    frame = arm.frames[0]
    twin = replace(arm, frames=[], points=[*arm.points, kic.Point("p", "link6", frame.origin)])
    rows, c = arm.at(Q).coefficients("gripper", order=3), twin.at(Q)
    assert rows.rows == tuple(f"gripper.{x}" for x in ("x", "y", "z", "wx", "wy", "wz"))
    parts = c.coefficients(["p", "link6.wx", "link6.wy", "link6.wz"], order=3)
    for got, expected in zip(rows.tensors, parts.tensors, strict=True):
        assert np.abs(got - expected).max() < 100 * EPS * np.abs(expected).max()
    assert not arm.at(Q).coefficients("camera").G.any()


def test_a_pose_of_a_frame_is_a_target_of_inverse_kinematics(arm):
    near, there = arm.at(Q), arm.at(Q + 0.05)
    found = arm.at({"gripper": there.pose("gripper")}, near=near)
    assert np.abs(found._phi - there._phi).max() < 1e-11
    modes = arm.assembly_modes({"gripper": there.pose("gripper")}, near=near)
    assert len(modes.counts) == len(arm.assembly_modes({"link6": there.pose("link6")}, near=near).counts)
    ends = arm.at([Q, Q + 0.05]).pose("gripper")
    path = arm.track({"gripper": ends}, [0.0, 1.0], near=near).configuration
    assert np.abs(displacement(path[-1], "gripper") - displacement(there, "gripper")).max() < 1e-10


def test_an_orientation_of_a_frame_of_a_planar_mechanism_is_its_orientation_in_the_world():
    tool = kic.Frame("tool", "link2", origin=(2, 0, 0), axes=[(0, 1, 0), (-1, 0, 0), (0, 0, 1)])
    arm = replace(kic.load("horn-two-link"), frames=[tool])
    there = arm.at([0.3, 0.9])
    found = arm.at({"tool": there.pose("tool").rotation, "elbow": 0.9})
    assert np.abs(found._phi - there._phi).max() < 1e-11


def test_frames_are_written_and_read(arm, tmp_path):
    arm.save(tmp_path / "arm.toml")
    assert kic.load(tmp_path / "arm.toml") == arm
    assert "gripper" in arm.summary().text()


def test_derivatives_of_a_pose_are_those_of_a_turned_frame(arm):
    turn = arm.sensitivity(lambda m: m.at(Q).coefficients("gripper").G, ["gripper.origin.x"])
    step = 1e-6
    frame = arm.frames[0]

    def jacobian(h: float) -> np.ndarray:
        moved = replace(frame, origin=np.add(frame.origin, [h, 0, 0]))
        return replace(arm, frames=[moved]).at(Q).coefficients("gripper").G

    assert np.abs(turn[0] - (jacobian(step) - jacobian(-step)) / (2 * step)).max() < 1e-8
    # the body turns with the axes' own rotation: the displacement does not depend on them
    assert (
        np.abs(arm.sensitivity(lambda m: displacement(m.at(Q), "gripper"), ["gripper.axes.rx"])).max() < 1e-14
    )


def test_frames_of_dh_rows_are_given_in_the_frame_of_their_link():
    rows = [kic.DHRow("A", "upper", theta=0.4), kic.DHRow("B", "fore", a=1.0, alpha=0.3, theta=0.2)]
    arm = kic.from_dh(
        "arm",
        rows,
        frames=[kic.Frame("tool", "fore", origin=(0.1, 0.2, 0.3), axes=TURN)],
        convention="freeman",
    )

    def product(*q: float) -> np.ndarray:
        T = np.eye(4)
        for row, theta in zip(rows, q, strict=True):
            T = (
                T
                @ RigidTransform.from_components(
                    [row.a, 0, 0], Rotation.from_euler("x", row.alpha)
                ).as_matrix()
            )
            T = T @ RigidTransform.from_components([0, 0, row.d], Rotation.from_euler("z", theta)).as_matrix()
        return T @ RigidTransform.from_components([0.1, 0.2, 0.3], TURN).as_matrix()

    for q in ([0.4, 0.2], [1.3, -0.7]):
        assert np.abs(arm.at(q).pose("tool").as_matrix() - product(*q)).max() < 50 * EPS


def test_rounded_axes_are_replaced_by_the_nearest_rotation():
    frame = kic.Frame("f", "b", origin=(0, 0, 0), axes=[(0.707, 0.707, 0), (-0.707, 0.707, 0), (0, 0, 1)])
    expected = Rotation.from_euler("z", np.pi / 4).as_matrix().T
    assert np.abs(np.array(frame.axes) - expected).max() < 20 * EPS
    assert kic.Frame("f", "b", origin=(0, 0, 0), axes=frame.axes) == frame


def test_a_frame_is_drawn_with_its_axes_and_its_name(arm):
    pytest.importorskip("matplotlib")
    c = arm.at(Q)
    marks = c.draw()._marks
    (mark,) = [m for m in marks if m.kind == "frame" and m.body == "link6"]
    T = c.pose("gripper")
    assert np.abs(mark.places[0] - T.translation).max() < 100 * EPS
    assert np.abs(mark.directions.T - T.rotation.as_matrix()).max() < 100 * EPS
    assert {"gripper", "camera"} <= {m.name for m in marks}
