"""The viewer without a browser: poses of the solids, motion by coordinates and by dragging, the server."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from click.testing import CliRunner
from commands import HANGS_S
from raising import raises
from representative_models import OTHER_MODELS
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import kic
from kic.description.units import row_unit
from kic.mechanism.configuration import displacements, model_of
from kic.numerics.rotations import quaternion_from_vector
from kic.ui.cli.main import main
from kic.ui.report.ranges import there_and_back
from kic.ui.viewer.session import Session
from kic.ui.viewer.solids import SolidScene
from kic.ui.viewer.visuals import Folders, visual_parts

SHOWN = ["four-bar", "gough-stewart", "panda", "scotch-yoke", "quadruped", "geared-five-bar", "bevel-wrist"]


def poses(session: Session) -> Iterator[kic.Configuration]:
    """Iterate over the reference configuration and two others, at most 0.3 rad or 8 % of the size away."""
    yield session.configuration
    start, rng = np.nan_to_num(session.values()), np.random.default_rng(3)
    units = [row_unit(session.mechanism, name) for name in session.drivers]
    step = np.array([0.3 if unit == "rad" else 0.08 * session.mechanism._model.length for unit in units])
    for _ in range(2):
        session.move(start + step * rng.uniform(-1, 1, len(step)))
        yield session.configuration


@pytest.mark.slow_for(*OTHER_MODELS)
@pytest.mark.parametrize("name", kic.model_names())
def test_solids_of_every_model_are_at_its_bodies(name: str) -> None:
    """Solids are finite, have areas, and lie at the joints and points of their bodies."""
    session = Session(kic.load(name).at())
    m, scene = session.mechanism, SolidScene(session.configuration)
    near = 4 * scene.size
    assert {part.body for part in scene.parts} <= {"ground", *(body.name for body in m.bodies)}
    for part in scene.parts:
        corners = part.mesh.vertices[part.mesh.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        assert np.linalg.norm(normals, axis=1).sum() > 1e-3 * scene.size**2
    for c in poses(session):
        T = displacements(c)
        links = scene.links(T)
        for solid in links:
            assert np.abs(solid.axes.T @ solid.axes - np.eye(3)).max() < 1e-14
            assert np.linalg.det(solid.axes) > 0
            assert min(solid.scale) > 0
        moved = [part.mesh.vertices @ T[part.body][:3, :3].T + T[part.body][:3, 3] for part in scene.parts]
        seen = np.concatenate([*moved, *(solid.placed() for solid in links)])
        assert np.isfinite(seen).all()
        for point in m.points:
            place = c.value([f"{point.name}.{x}" for x in "xyz"])
            assert np.abs((T[point.body] @ [*point.at, 1.0])[:3] - place).max() < 1e-12 * c._model.length
            assert np.linalg.norm(seen - place, axis=1).min() < near
        for joint in m.joints:
            if joint.at is not None and joint.type in ("revolute", "spherical", "universal"):
                for body in joint.bodies:
                    place = (T[body] @ [*joint.at, 1.0])[:3]
                    assert np.linalg.norm(seen - place, axis=1).min() < near
        for body in m.bodies:
            if body.reference is not None:
                place = c.value([f"{body.name}.{x}" for x in "xyz"])
                assert np.abs((T[body.name] @ [*body.reference, 1.0])[:3] - place).max() < 1e-11


def closure(c: kic.Configuration) -> float:
    """Return the largest distance of the two sides of a joint with a point, as a share of the size."""
    T = displacements(c)
    apart = [
        np.linalg.norm(np.subtract(*((T[body] @ [*joint.at, 1.0])[:3] for body in joint.bodies)))
        for joint in c._model.description.joints
        if joint.at is not None and joint.type in ("revolute", "spherical", "universal")
    ]
    return max(apart, default=0.0) / c._model.length


@pytest.mark.parametrize("name", SHOWN)
def test_solids_meet_while_a_part_is_dragged(name: str) -> None:
    session = Session(kic.load(name).at())
    part = session.parts()[0]
    length = session.mechanism._model.length
    target = session.pose(part)
    for step in 0.02 * length * np.random.default_rng(0).normal(size=(15, 3)):
        target[:3, 3] += step
        before = np.linalg.norm(target[:3, 3] - session.pose(part)[:3, 3])
        distance = session.drag(part, target)
        assert distance <= before
        assert distance == pytest.approx(np.linalg.norm(target[:3, 3] - session.pose(part)[:3, 3]))
        assert closure(session.configuration) < 1e-12


def test_platform_follows_the_gizmo() -> None:
    session = Session(kic.load("gough-stewart").at())
    target = session.pose("platform")
    a = 0.1
    turned = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    target[:3, 3] += [0.05, -0.02, 0.04]
    target[:3, :3] = turned @ target[:3, :3]
    session.drag("platform", target, turn=True)
    assert np.abs(session.pose("platform") - target).max() < 1e-8
    assert not session.message


def test_rods_of_cylinders_end_at_their_points() -> None:
    """A ram is drawn from the point on one body to that on the other, in every configuration."""
    m = kic.load("gough-stewart")
    scene = SolidScene(m.at())
    for c in (m.at(), m.at([1.3, 1.2, 1.25, 1.3, 1.2, 1.1], near=m.at())):
        ends = np.concatenate([s.placed() for s in scene.links(displacements(c))])
        for distance in m.distances:
            for name in distance.points:
                assert np.linalg.norm(ends - c.value(name), axis=1).min() < 3 * scene.size
        lengths = [s.scale[2] for s in scene.links(displacements(c))]
        assert max(lengths) < 2.0


@pytest.mark.slow
def test_a_dead_centre_stops_the_motion_and_can_be_left() -> None:
    session = Session(kic.load("four-bar").at())
    assert session.drive("D")
    start = session.values()[0]
    assert not session.move({"D": start + 3.0})
    assert session.blocked
    assert "dead centre" in session.message
    stopped = session.values()[0]
    assert start < stopped < start + 1.0
    assert closure(session.configuration) < 1e-12
    # on the same branch, back to the start
    assert session.move({"D": start})
    assert not session.blocked
    assert session.values()[0] == pytest.approx(start)
    # dragging stops there too, and returns
    assert session.move({"D": stopped - 0.3})
    toward = session.configuration.coefficients("tip", wrt="D", order=1).G[:, 0]
    step = 0.05 * toward / np.linalg.norm(toward)
    target = session.pose("tip")
    for sign in (1, -1):
        for _ in range(12):
            target[:3, 3] = session.pose("tip")[:3, 3] + sign * step
            session.drag("tip", target)
        if sign == 1:
            assert session.blocked
            assert session.values()[0] == pytest.approx(stopped, abs=1e-6)
    assert session.values()[0] < stopped - 0.3


def test_balls_are_set_as_a_whole() -> None:
    """The rotation of a free body has sliders; the others move while it is turned."""
    bodies = [kic.Body(name, mass=1, com=(0, 0, 0), inertia=1) for name in ("trunk", "leg")]
    joints = [
        kic.Joint("base", "free", ("ground", "trunk"), at=(0, 0, 0)),
        kic.Joint("hip", "revolute", ("trunk", "leg"), at=(0, 0, 0), axis=(0, 1, 0)),
    ]
    session = Session(kic.Mechanism("walker", bodies, joints).at())
    assert session.move({"base.4": 0.2, "base.5": 0.4})
    assert session.move({"hip": 0.3, "base.1": 2.0})
    assert session.values() == pytest.approx([2, 0, 0, 0.2, 0.4, 0, 0.3], abs=1e-12)
    assert session.frame("trunk")[:3, :3] == pytest.approx(Rotation.from_rotvec([0.2, 0.4, 0]).as_matrix())


@pytest.mark.slow
def test_spins_of_rods_rest() -> None:
    """A rod between balls follows as one without spin; its spin, a coordinate without value, is held."""
    bodies = [kic.Body(name) for name in ("crank", "rod", "rocker")]
    joints = [
        kic.Joint("A", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=(0, 0, 1)),
        kic.Joint("one", "spherical", ("crank", "rod"), at=(1, 0, 0)),
        kic.Joint("two", "spherical", ("rod", "rocker"), at=(3, 0.5, 2)),
        kic.Joint("B", "revolute", ("ground", "rocker"), at=(3, 2, 0), axis=(1, 0, 0)),
    ]
    spinning = kic.Mechanism("rssr", bodies, joints, coordinates=["A", "one.1"])
    plain = kic.Joint("one", "universal", ("crank", "rod"), at=(1, 0, 0), axis=(0, 1, 0), axis2=(0, 0, 1))
    known = kic.Mechanism("rsur", bodies, [joints[0], plain, *joints[2:]], coordinates=["A"])
    session = Session(spinning.at())
    assert np.isnan(session.values()[1])
    states = []
    for angle in (0.2, 0.5, -0.3):
        assert session.move({"A": angle}), session.message
        states.append(session.configuration.state)
        c, alike = session.configuration, known.at({"A": angle})
        assert closure(c) < 1e-12
        assert c.value("B") == pytest.approx(alike.value("B"), abs=1e-9)
    # on its way back the rod does not spin
    assert session.move({"A": 0.0})
    assert session.configuration.state == pytest.approx(spinning.at().state, abs=1e-9)
    assert model_of(session.configuration).description == spinning
    # points that were placed before a turn of ±90° about the rod are in line with it, and hold nothing
    tree, turning = spinning._model.tree, c.pose("crank").rotation.inv()
    for angle in (np.pi / 2, -np.pi / 2):
        line = np.subtract(*(c.pose("rod").apply(joint.at) for joint in joints[2:0:-1]))
        turned = Rotation.from_rotvec(angle * line / np.linalg.norm(line)) * c.pose("rod").rotation
        state = c.state
        state[tree.ball_slices[0][1]] = quaternion_from_vector((turning * turned).as_rotvec()[None])[0]
        session.configuration = kic.Configuration(spinning._model, (), state[None])
        assert closure(session.configuration) < 1e-12
        for A in (0.3, -0.3):
            assert session.move({"A": A}), session.message
        assert session.configuration.state == pytest.approx(state, abs=1e-9)
    assert session.move({"A": 0.0})
    modes = session.modes()
    assert modes.value("A") == pytest.approx(np.zeros(len(modes)))
    # the rocker has two, and none of them is repeated with another spin
    assert len(modes) == 2
    assert np.ptp(modes.value("B")) > 0.1
    # a changed mechanism, which also follows a motion of the one before
    frames = kic.Configuration(spinning._model, (3,), np.array(states))
    assert session.change("two", np.array([3, 0.6, 2]))
    assert session.move({"A": 0.25}), session.message
    followed = session.follow(frames)
    assert model_of(followed).description == session.mechanism
    assert followed.value("A") == pytest.approx([0.2, 0.5, -0.3])
    # a motion that stops keeps the configuration that was reached: the rocker is in line with crank and rod
    session = Session(spinning.at())
    assert not session.move({"A": 3.0})
    assert session.blocked
    c = session.configuration
    assert model_of(c).description == spinning
    assert closure(c) < 1e-9
    limit = brentq(lambda a: (3 - np.cos(a)) ** 2 + (0.5 + np.sin(a)) ** 2 - 8.25, 0.5, 1.2)
    assert c.value("A") == pytest.approx(limit, abs=1e-5)


def test_other_coordinates() -> None:
    session = Session(kic.load("five-bar").at())
    assert session.drive("tip.x, tip.y")
    x, y = session.values()
    assert session.move([x - 1.0, y])
    assert session.configuration.value("tip")[:2] == pytest.approx([x - 1.0, y])
    for wrong in ("tip.x", "nothing, tip.x", "tip.x, tip.x", ""):
        assert not session.drive(wrong)
        assert session.message
        assert session.drivers == ("tip.x", "tip.y")


def test_server_ports_and_hosts() -> None:
    pytest.importorskip("viser")
    m = kic.load("four-bar")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        viewer = m.view(port=port)
        try:
            assert viewer.server.get_port() != port
            address, _, token = viewer.url.partition("?token=")
            assert address == f"http://127.0.0.1:{viewer.server.get_port()}/"
            assert address in repr(viewer)
            assert token not in repr(viewer)
            assert viewer.url in viewer._repr_html_()
            viewer.show(m.at({"A": 1.2}))
            assert viewer.configuration.value("A") == pytest.approx(1.2)
        finally:
            viewer.stop()
    for wrong in ({"port": 0}, {"port": "x"}, {"host": ""}, {"host": 3}):
        with raises(kic.InputError, key=next(iter(wrong))):
            m.view(**wrong)
    with raises(kic.InputError, key="host"):
        m.view(host="203.0.113.7")  # an address for documentation, of no computer


@pytest.mark.filterwarnings("ignore:The page of the viewer is open")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::1"])
def test_inline_frames_of_hosts(host: str) -> None:
    """The frame of a notebook has an address to which a browser can connect."""
    pytest.importorskip("viser")
    try:
        with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            pass
    except OSError:
        pytest.skip("this computer has no IPv6")
    viewer = kic.load("four-bar").view(host=host)
    try:
        (address,) = re.findall('src="(.*?)"', viewer._repr_html_())
        with urlopen(address, timeout=HANGS_S) as page:
            assert page.status == 200
    finally:
        viewer.stop()


def test_assembly_modes_and_changes() -> None:
    session = Session(kic.load("four-bar").at({"A": 1.2}))
    modes = session.modes()
    assert modes.batch == (2,)
    assert modes.value("A") == pytest.approx([1.2, 1.2])
    before = session.curves("tip")
    assert list(before)[:2] == ["curve", "A"]
    assert before["curve"].shape == (*before["A"].shape, 3)
    assert {"effort A", "transmission B"} <= set(before)
    assert set(before) == {"curve", "A", *session.quantities(session.configuration)}
    assert set(session.plots()) == {*session.quantities(session.configuration)}
    assert session.change("C", np.array([0.3, 0.3, 0.0]))
    assert session.mechanism["C"].at == (0.3, 0.3, 0.0)
    assert session.values() == pytest.approx([1.2])
    assert closure(session.configuration) < 1e-12
    assert np.abs(session.curves("tip")["curve"] - before["curve"]).max() > 1e-3
    # a change that contradicts the model leaves it
    assert not session.change("nothing", np.zeros(3))
    assert not session.change("C", np.full(3, np.nan))
    assert session.mechanism["C"].at == (0.3, 0.3, 0.0)
    assert closure(session.configuration) < 1e-12
    # several degrees of freedom have no single curve
    assert Session(kic.load("five-bar").at()).curves("tip") == {}
    assert Session(kic.load("five-bar").at()).plots() == ()


def test_dynamics_are_computed_only_for_plots_of_efforts(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*arguments: Any, **named: Any) -> None:
        raise AssertionError

    session = Session(kic.load("four-bar").at({"A": 1.2}))
    monkeypatch.setattr(kic.Configuration, "inverse_dynamics", unwanted)
    assert "effort A" in session.plots()
    with pytest.raises(AssertionError):
        session.quantities(session.configuration)


@pytest.mark.slow
def test_frames_of_a_changed_mechanism(tmp_path: Path) -> None:
    """The time slider shows the changed mechanism with the same values of the coordinates."""
    pytest.importorskip("viser")
    m, angles = kic.load("four-bar"), np.linspace(0.5, 1.5, 5)
    viewer = m.path({"A": angles}).view(trace="tip", port=8960)
    try:
        panels = viewer._panels
        panels.pivot.value = "C"
        place = np.array([0.3, 0.3, 0.0])
        panels._change(panels.pivot.value, place)
        viewer._update()
        changed = m.replace("C", at=tuple(place))
        known = changed.path({"A": angles}, near=changed.at()).state
        assert np.abs(viewer.frames.state - known).max() < 1e-9
        panels.frame.value = 3
        panels._show_frame(3)
        assert viewer.configuration.state == pytest.approx(known[3], abs=1e-9)
        assert viewer._session.mechanism == changed
        viewer.save(tmp_path / "replay.html")
        # frames that the changed mechanism does not reach are left out
        panels._change(panels.pivot.value, np.array([0.34, 0.1, 0.0]))
        assert viewer.frames.ok.tolist() == [True, True, True, False, False]
        before = viewer.configuration
        panels._show_frame(int(np.flatnonzero(~viewer.frames.ok)[0]))
        assert viewer.configuration is before
        assert "does not reach" in viewer._session.message
        viewer.save(tmp_path / "replay.html")
        panels._change(panels.pivot.value, np.array([0.71, 0.1, 0.0]))
        assert not viewer.frames.ok.any()
        viewer.save(tmp_path / "replay.html")
    finally:
        viewer.stop()


def test_drivers_that_cannot_move_a_mechanism_are_a_message() -> None:
    """The block is where the rod is perpendicular to its slide, and the closure loses rank."""
    pytest.importorskip("viser")
    joints = [
        kic.Joint("one", "spherical", ("ground", "rod"), at=(0, 0, 0)),
        kic.Joint("two", "spherical", ("rod", "block"), at=(1, 0.5, 0.2)),
        kic.Joint("P", "prismatic", ("ground", "block"), at=(1, 0.5, 0.2), axis=(0, 0, 1)),
    ]
    m = kic.Mechanism("slide", [kic.Body("rod"), kic.Body("block")], joints, coordinates=["one.1"])
    viewer = m.at().view(port=8961)
    try:
        session, frames = viewer._session, kic.Configuration(m._model, (2,), np.tile(m.at().state, (2, 1)))
        viewer._panels._show_modes()
        assert session.message == ""
        session.change("two", np.array([1, 0.5, 0.0]))
        assert "dependent" in session.message
        assert not session.follow(frames).ok.any()
        session.message = ""
        viewer._panels._show_modes()
        assert "dependent" in session.message
    finally:
        viewer.stop()


# drives of Windows are relative paths on other systems
DRIVES = (
    [("file:///C:/my%20arm.stl", "C:/my arm.stl"), ("file://localhost/C:/arm.stl", "C:/arm.stl")]
    if os.name != "nt"
    else []
)


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("package://a%20robot/my%20arm.stl", "my arm.stl"),
        ("package://a robot/arm%20.stl", "arm%20.stl"),
        ("my%20arm.stl", "my arm.stl"),
        ("model://robot/arm.stl", "arm.stl"),
        *DRIVES,
    ],
)
def test_addresses_of_meshes(uri: str, name: str, tmp_path: Path) -> None:
    """Percent-encoded names, packages and drives; on Windows the address of the file itself has a drive."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"")
    (tmp_path / "package.xml").touch()
    folders = Folders(tmp_path / "urdf" / "r.urdf")
    assert folders.find(uri) == file
    assert folders.find(file.as_uri()) == file
    assert folders.find("file:///C:/none.stl") is None


@pytest.mark.slow
def test_what_cannot_move_is_marked() -> None:
    session = Session(kic.load("four-bar").at())
    assert session.stopped().shape == (0, 3)
    session.drive("D")
    session.move({"D": session.values()[0] + 3.0})
    assert session.stopped() == pytest.approx(np.array([session.mechanism["D"].at]))
    # a leg without a point of its own is marked between its joints; a leg moves alone until all are blocked
    session = Session(kic.load("gough-stewart").at())
    session.move({"L1": 0.2})
    assert session.blocked
    for k, place in enumerate(session.stopped()):
        ends = [
            session.frame(m.bodies[0]) @ [*m.at, 1]
            for m in map(session.mechanism.__getitem__, (f"U{k + 1}", f"S{k + 1}"))
        ]
        assert place == pytest.approx(np.mean(ends, axis=0)[:3])
    # a driver that the lost direction leaves out is not marked
    links = [
        kic.Body("arm", at=(0, 0, 0)),
        *(kic.Body(name, at=(1, 1, 0)) for name in ("one", "two", "three")),
    ]
    bars = kic.load("four-bar")
    arm = kic.Joint("R", "revolute", ("ground", "arm"), at=(2, 0, 0), axis=(0, 0, 1))
    session = Session(bars.replace(coordinates=None).add(links[0], arm).at())
    assert session.drive("D, R")
    session.move({"D": session.values()[0] + 3.0})
    assert session.stopped() == pytest.approx(np.array([bars["D"].at]))


@pytest.mark.slow
def test_singular_configurations_nearby() -> None:
    """The rocker drives a four-bar as far as crank and coupler are in line."""
    session = Session(kic.load("four-bar").at())
    assert session.singular("tip") == []
    session.drive("D")
    found = session.singular("tip")
    assert len(found) == 2
    for one in found:
        A, B, C = (np.array(session.mechanism[name].at) for name in "ABC")
        T = displacements(one.configuration)
        B, C = ((T["coupler"] @ [*place, 1.0])[:3] for place in (B, C))
        # the sine of an angle that vanishes with the square root of a measure
        assert np.linalg.norm(np.cross(B - A, C - B)) < 1e-6 * np.linalg.norm(B - A) * np.linalg.norm(C - B)
    distances = [abs(one.configuration.value("D") - session.values()[0]) for one in found]
    assert distances == sorted(distances)
    # an arm is singular where it is stretched
    session = Session(kic.load("horn-two-link").at({"shoulder": 0.2, "elbow": 0.5}))
    values = [one.configuration.value("elbow") for one in session.singular("tip")]
    assert values[0] == pytest.approx(0.0, abs=1e-9)


def test_a_load_by_virtual_work() -> None:
    session = Session(kic.load("gough-stewart").at([1.1, 1.2, 1.15, 1.2, 1.1, 1.0]))
    c = session.configuration
    F, M = np.array([10.0, -20.0, 30.0]), np.array([1.0, 2.0, -3.0])
    for part in ("platform", "eye"):
        G = c.coefficients([part, "platform"], order=1).G
        work = F @ G[:3] + M @ G[-3:]
        session.apply(part, F, M)
        assert session.loaded(c).inverse_dynamics() == pytest.approx(c.inverse_dynamics() - work)
        forces = session.loaded(c).joint_forces()
        assert forces.effort == pytest.approx(c.joint_forces().effort - work)
    session.apply("", F, M)
    assert session.loaded(c) is c
    # the curve of the effort follows
    session = Session(kic.load("four-bar").at())
    before = session.curves("tip")["effort A"]
    session.apply("tip", np.array([0.0, -5.0, 0.0]), np.zeros(3))
    after = session.curves("tip")
    path = session.mechanism.at(after["A"][:, None], near=session.configuration)
    G = path.coefficients("tip", order=1).G
    assert after["effort A"] == pytest.approx(before + 5.0 * G[:, 1, 0], abs=1e-9)


def test_all_that_is_seen_and_a_replay(tmp_path: Path) -> None:
    pytest.importorskip("viser")
    m = kic.load("four-bar")
    viewer = m.path({"A": np.linspace(0.5, 1.5, 25)}).view(trace="tip", port=8900)
    try:
        panels = viewer._panels
        panels.ellipsoid.value, panels.plot.value, panels.part.value = "velocity", "effort A", "tip"
        panels.loaded.value, panels.force.value, panels.moment.value = "tip", (0, 5, 0), (0, 0, 1)
        panels._apply()
        panels._show_singular()
        assert "No singular" in viewer._session.message
        for box in (panels.com, panels.forces, panels.trace, panels.tables):
            box.value = True
        viewer._update()
        assert "mass" in panels.text.content or "inertia" in panels.text.content
        for word in ("tip.x", "axis 1", "static efforts", "centre of mass"):
            assert word in panels.text.content
        assert panels.sliders[0].label == "A (deg)"
        assert panels.sliders[0].value == pytest.approx(np.degrees(0.5))
        assert panels.gizmo.position == pytest.approx(viewer.configuration.value("tip"))
        file = viewer.save(tmp_path / "replay.html")
        assert file.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
        assert file.stat().st_size < 1.2e6
        assert viewer.configuration.value("A") == pytest.approx(0.5)
        with raises(kic.FileError):
            viewer.save(tmp_path / "missing" / "replay.html")
    finally:
        viewer.stop()


def test_a_body_without_reference_point_is_no_part() -> None:
    pytest.importorskip("viser")
    joint = kic.Joint("j", "revolute", ("ground", "b"), at=(0, 0, 0), axis=(0, 0, 1))
    m = kic.Mechanism("m", [kic.Body("b")], [joint])
    assert Session(m.at()).parts() == ()
    viewer = m.view(port=8920)
    try:
        panels = viewer._panels
        panels.plot.value = panels.plot.options[-1]
        panels.ellipsoid.value = "velocity"
        for box in (panels.com, panels.forces, panels.trace, panels.tables):
            box.value = True
        panels._show_singular()
        viewer._update()
        assert "singular configurations" in panels.text.content
    finally:
        viewer.stop()


@pytest.mark.slow
def test_ghosts_and_a_change_that_the_drivers_do_not_reach() -> None:
    pytest.importorskip("viser")
    viewer = kic.load("four-bar").at({"A": 2.5}).view(port=8910)
    try:
        panels, session = viewer._panels, viewer._session
        session.drive("D")
        assert not session.move({"D": session.values()[0] + 3.0})
        panels._show_modes()
        panels._take("2")
        assert not session.blocked
        assert panels.mode.options == ("none",)
        session.drive("A")
        session.move({"A": 2.5})
        panels._show_modes()
        panels.pivot.value = "D"
        before = viewer._scene
        panels._change(panels.pivot.value, np.array([1.0, 0.0, 0.0]))
        assert session.message
        assert session.mechanism["D"].at == (1.0, 0.0, 0.0)
        assert viewer._scene is not before
        assert viewer._scene.description == session.mechanism == session.configuration._model.description
        assert panels.mode.options == ("none",)
        assert not panels.ghosts
    finally:
        viewer.stop()


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "panda", "five-rod-suspension"])
def test_each_coordinate_moves_there_and_back(name: str) -> None:
    m = kic.load(name)
    c = m.at()
    motion = there_and_back(c)
    assert len(motion) <= 250
    values = np.array([motion.value(name) for name in m.coordinates if np.isfinite(c.value(name))])
    moved = np.abs(values.T - [c.value(name) for name in m.coordinates if np.isfinite(c.value(name))]) > 1e-9
    assert moved.any(axis=0).all() or len(motion) == 1
    assert (moved.sum(axis=1) <= 1).all()


@pytest.mark.slow
def test_a_report_with_a_replay(tmp_path: Path) -> None:
    pytest.importorskip("viser")
    pytest.importorskip("matplotlib")
    run = CliRunner()
    file = tmp_path / "page.html"
    done = run.invoke(main, ["report", "four-bar", "--html", str(file), "--replay"])
    assert done.exit_code == 0, done.output
    text = file.read_text(encoding="utf-8")
    assert '<iframe class="replay"' in text
    assert "--replay --html page.html" in text
    assert file.stat().st_size < 2e6
    done = run.invoke(main, ["report", "four-bar", "--replay"])
    assert done.exit_code == 2


ROBOT = """<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"/><link name="arm">
<visual><origin xyz="0.5 0 0"/>
<geometry><mesh filename="package://r/meshes/arm.stl" scale="2 2 2"/></geometry>
<material name="red"/></visual>
<visual><geometry><mesh filename="package://r/meshes/none.stl"/></geometry></visual></link>
<link name="tool">
<visual><origin rpy="0 0 1.5707963267948966"/><geometry><box size="1 2 3"/></geometry></visual></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 1" rpy="0 0 0.5"/>
<axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="9" velocity="9"/></joint>
<joint name="k" type="fixed"><parent link="arm"/><child link="tool"/><origin xyz="3 0 0"/></joint></robot>"""


@pytest.mark.slow
def test_visual_meshes_of_a_robot(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh", reason="meshes need trimesh")
    file = tmp_path / "r" / "urdf" / "r.urdf"
    for folder in (file.parent, tmp_path / "r" / "meshes"):
        folder.mkdir(parents=True)
    (tmp_path / "r" / "package.xml").touch()
    file.write_text(ROBOT, encoding="utf-8")
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "r" / "meshes" / "arm.stl")
    m = kic.load(file)
    (arm, tool), missing = visual_parts(m, file)
    assert [one.partition(" (")[0] for one in missing] == ["package://r/meshes/none.stl"]
    assert (arm.body, arm.colour, tool.body) == ("arm", (1, 0, 0, 1), "arm")
    c = m.at([0.7])
    T, x = displacements(c)["arm"], np.array([np.cos(1.2), np.sin(1.2), 0])
    middle = T[:3, :3] @ arm.mesh.vertices.mean(axis=0) + T[:3, 3]
    assert np.abs(middle - [0.5 * x[0], 0.5 * x[1], 1.0]).max() < 1e-12
    assert np.ptp(arm.mesh.vertices[:, 2]) == pytest.approx(2.0)
    assert np.ptp(tool.mesh.vertices[:, 2]) == pytest.approx(3.0)
    # the long side is across the arm
    along = (tool.mesh.vertices @ T[:3, :3].T + T[:3, 3] - [0, 0, 1]) @ x
    assert (along.min(), along.max()) == pytest.approx((2.0, 4.0))
    pytest.importorskip("viser")
    viewer = m.view(port=8930, visuals=file)
    try:
        assert "none.stl" in viewer._panels.message.content
        assert "Stopped" not in viewer._panels.message.content
        assert len(viewer._bodies) == 2
    finally:
        viewer.stop()
    with raises(kic.ModelFileError):
        visual_parts(m, tmp_path / "missing.urdf")


SDF = """<sdf version="1.9"><model name="r"><link name="base"/><link name="arm"><pose>0 0 1 0 0 0.5</pose>
<visual name="a"><pose>0.5 0 0 0 0 0</pose><geometry><mesh><uri>model://r/meshes/arm.stl</uri>
<scale>2 2 2</scale></mesh></geometry><material><diffuse>1 0 0 1</diffuse></material></visual>
<visual name="b"><geometry><capsule><radius>0.5</radius><length>3</length></capsule></geometry></visual>
<visual name="c"><geometry><mesh><uri>model://r/meshes/none.stl</uri></mesh></geometry></visual>
<visual name="d"><pose relative_to="base"/><geometry><box><size>1 2 3</size></box></geometry></visual></link>
<joint name="f" type="fixed"><parent>world</parent><child>base</child></joint>
<joint name="j" type="revolute"><parent>base</parent><child>arm</child><axis><xyz>0 0 1</xyz></axis></joint>
</model></sdf>"""
MJCF = """<mujoco><compiler meshdir="meshes"/><asset><mesh name="arm" file="arm.stl" scale="2 2 2"/>
<mesh name="none" file="none.stl"/><mesh name="far" file="../../far.stl"/>
<material name="red" rgba="1 0 0 1"/></asset><worldbody>
<geom type="plane" size="1 1 1"/><geom type="box" size="1 2 3" pos="0 0 9"/>
<body name="arm" pos="0 0 1" euler="0 0 28.64788975654116">
<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>
<joint name="j" axis="0 0 1"/><geom type="mesh" mesh="arm" pos="0.5 0 0" material="red"/>
<geom type="capsule" size="0.5 1.5"/><geom type="mesh" mesh="none"/><geom type="mesh" mesh="far"/>
<geom type="sphere" size="7" group="3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("text", "suffix"), [(SDF, "sdf"), (MJCF, "xml")])
def test_visual_meshes_of_other_formats(tmp_path: Path, text: str, suffix: str) -> None:
    """The arm of three formats is the same: a red cube of side 2, and a capsule at its joint."""
    trimesh = pytest.importorskip("trimesh", reason="meshes need trimesh")
    if suffix == "xml":
        pytest.importorskip("mujoco", reason="MJCF needs mujoco")
    (tmp_path / "meshes").mkdir()
    file = tmp_path / f"r.{suffix}"
    file.write_text(text, encoding="utf-8")
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "meshes" / "arm.stl")
    m = kic.load(file)
    parts, missing = visual_parts(m, file)
    reasons = {
        "sdf": ["model://r/meshes/none.stl (no such file", "box (relative to base)"],
        "xml": ["none.stl (no such file)", "../../far.stl (outside the directory", "plane (no solid)"],
    }
    assert all(one.startswith(known) for one, known in zip(missing, reasons[suffix], strict=True)), missing
    (arm, capsule) = parts[-2:]
    assert [part.body for part in parts] == ["ground"] * (suffix == "xml") + ["arm", "arm"]
    assert arm.colour == (1, 0, 0, 1)
    T = displacements(m.at([0.7]))["arm"]
    x = np.array([np.cos(1.2), np.sin(1.2), 0])
    moved = [part.mesh.vertices @ T[:3, :3].T + T[:3, 3] for part in (arm, capsule)]
    assert np.abs(moved[0].mean(axis=0) - [0.5 * x[0], 0.5 * x[1], 1.0]).max() < 1e-6
    assert np.ptp(moved[0] @ x) == pytest.approx(2.0)
    assert np.ptp(moved[1], axis=0) == pytest.approx([1.0, 1.0, 4.0], abs=0.02)
    assert moved[1].mean(axis=0) == pytest.approx([0, 0, 1], abs=1e-9)
    if suffix == "sdf":
        file.write_text('<sdf version="1.9"><world name="empty"/></sdf>', encoding="utf-8")
        assert visual_parts(m, file) == ([], [])


@pytest.mark.slow
def test_the_server_starts_before_slow_imports() -> None:
    slow = {"scipy", "numba", "kic.mechanism.mechanism"}
    script = f"import sys, kic.ui.viewer.server; print(*({slow} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_without_viser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with raises(kic.MissingExtraError, extra="view"):
        kic.load("four-bar").view()


def test_a_drag_is_handled_once_and_before_what_follows() -> None:
    """Late handlers of a drag change nothing: neither the reason of a stop nor the answer to a button."""
    pytest.importorskip("viser")
    viewer = kic.load("four-bar").at({"A": 2.5}).view(port=8990)
    try:
        panels, session = viewer._panels, viewer._session
        session.drive("D")
        target = session.pose("tip")
        target[:3, 3] += [-1.0, 0.0, 0.0]
        panels.part.value = "tip"
        panels._pulled["gizmo"] = partial(panels._drag, "tip", target, False)
        panels._follow()
        reason, reached = session.message, viewer.configuration
        assert session.blocked
        for _ in range(3):
            panels._follow()
        assert (session.message, viewer.configuration) == (reason, reached)
        assert session.blocked
        panels._drag("none", target, False)  # while no part was chosen
        assert viewer.configuration is reached
    finally:
        viewer.stop()
