"""Drawings: symbols are in the right places, complete, legible and reproducible."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from raising import raises
from representative_models import OTHER_MODELS

import kic
from kic.description.description import find_part
from kic.errors import InputError, MissingExtraError, UnknownNameError
from kic.mechanism.configuration import Configuration, displacement
from kic.plotting.draw import MechanismPicture, draw
from kic.plotting.symbols import Shape

pytest.importorskip("matplotlib")

MODELS = kic.model_names()
SHOWN = ("revolute", "prismatic", "cylindrical", "universal", "spherical", "fixed")


def drawn(name: str) -> Configuration:
    """Return the exact reference configuration."""
    model = kic.load(name)._model
    return Configuration(model, (), model.reference_state)


def of(picture: MechanismPicture, name: str) -> list[Shape]:
    """The shapes that stand where a part is."""
    return [s for s in picture.shapes if s.name == name]


def middle(shape: Shape) -> np.ndarray:
    """Middle of a shape that is symmetric about it."""
    return (shape.xy.max(axis=0) + shape.xy.min(axis=0)) / 2


def place(c: Configuration, joint: str, first: bool = False) -> np.ndarray:
    """Where a joint is, as its second body (or its first) carries it."""
    part = find_part(c._model.description, joint, "joints")
    bodies = part.bodies if first else part.bodies[::-1]
    body = next(b for b in bodies if b != "ground")
    return (displacement(c, body) @ [*part.at, 1.0])[:3]


@pytest.mark.slow_for("two-arms", *OTHER_MODELS)
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_drawn_whole(name: str) -> None:
    c = drawn(name)
    picture = draw(c)
    low, high = np.array([picture.axes.get_xlim(), picture.axes.get_ylim()]).T
    for shape in picture.shapes:
        assert np.isfinite(shape.xy).all()
        # lines have a width, which the margin has room for
        assert (shape.xy > low).all()
        assert (shape.xy < high).all()
        assert shape.edge is None or shape.width >= 0.5
    assert picture.axes.get_aspect() == 1.0
    size = picture.figure.get_size_inches()
    assert size[0] == 3.5
    np.testing.assert_allclose((high - low)[1] / (high - low)[0], size[1] / size[0], rtol=1e-12)
    # every pair is there once by its name, whatever its symbol is made of
    pairs = {j.name for j in c._model.description.joints if j.type in SHOWN}
    assert pairs <= {s.name for s in picture.shapes}
    points = {p.name for p in c._model.description.points}
    others = {x.name for x in c._model.description.contacts} | points
    assert {s.name for s in picture.shapes} - {""} <= pairs | others
    assert all(t.get_fontsize() >= 6 for t in picture.axes.texts)


@pytest.mark.parametrize("name", ["four-bar", "jansen-leg", "peaucellier", "geared-five-bar"])
def test_joints_and_links_of_planar_mechanisms_are_where_they_are(name: str) -> None:
    m = kic.load(name)
    rng = np.random.default_rng(7)
    start = m._model.reference_state
    driver = m.coordinates[0]
    value = float(m._model.values(driver, start)[0, 0])
    for shift in rng.uniform(-0.3, 0.3, 3):
        c = m.at({driver: value + shift})
        picture = draw(c)
        view = picture._scene.view
        np.testing.assert_array_equal(view.toward, [0, 0, 1])
        np.testing.assert_array_equal(view.project(np.eye(3)), np.eye(3)[:, :2])
        places = {}
        for joint in m.joints:
            places[joint.name] = place(c, joint.name)[:2]
            (shape,) = of(picture, joint.name)
            np.testing.assert_allclose(middle(shape), places[joint.name], atol=1e-12)
            np.testing.assert_allclose(
                np.linalg.norm(shape.xy - places[joint.name], axis=1), picture._size, rtol=1e-9
            )
        ends = [p for s in picture.shapes if s.of == "link" for p in (s.xy[0], s.xy[-1])]
        free = [c.value(p.name)[:2] for p in m.points]
        for end in ends:
            near = min(np.linalg.norm(end - p) for p in [*places.values(), *free])
            assert near < 1e-9


@pytest.mark.parametrize("name", ["bricard", "bennett", "gough-stewart", "rssr"])
def test_joints_in_space_are_where_they_are(name: str) -> None:
    c, m = drawn(name), kic.load(name)
    picture = draw(c, view=(-50, 20))
    view = picture._scene.view
    seen = 0
    held = [j for j in m.joints if j.at]
    for joint in held:
        apart = min(np.linalg.norm(np.subtract(j.at, joint.at)) for j in held if j is not joint)
        if joint.type == "universal" or apart < 1e-3:  # a cross, or set apart from another
            continue
        at = place(c, joint.name)
        shapes = of(picture, joint.name)
        np.testing.assert_allclose(middle(shapes[0]), view.project(at), atol=1e-9)
        seen += 1
    assert seen > 2


def test_joints_that_share_a_place_are_set_apart_along_their_axes() -> None:
    m = kic.load("puma560")
    c = m.at([0.1, 0.4, -2.0, 0.6, 0.7, -0.3])
    picture = draw(c)
    marks = {mark.name: mark for mark in picture._marks if mark.kind == "revolute"}
    assert set(marks) == {j.name for j in m.joints}
    for joint in m.joints:
        mark, at = marks[joint.name], place(c, joint.name)
        off = mark.places[0] - at
        axis = displacement(c, joint.bodies[1])[:3, :3] @ np.array(joint.axis) / np.linalg.norm(joint.axis)
        np.testing.assert_allclose(np.cross(off, axis), 0, atol=1e-9)
        np.testing.assert_allclose(mark.directions[0], axis, atol=1e-9)
    for one, other in combinations(marks.values(), 2):
        assert np.linalg.norm(one.places[0] - other.places[0]) > 2 * picture._size


@pytest.mark.slow
def test_views() -> None:
    c = drawn("gough-stewart")
    for view, right, up in (
        ("top", [1, 0, 0], [0, 1, 0]),
        ("front", [1, 0, 0], [0, 0, 1]),
        ("side", [0, 1, 0], [0, 0, 1]),
        ((-90, 90), [1, 0, 0], [0, 1, 0]),
        ((180, 0), [0, -1, 0], [0, 0, 1]),
    ):
        seen = draw(c, view=view)._scene.view
        np.testing.assert_allclose([seen.right, seen.up], [right, up], atol=1e-12)
    seen = draw(c)._scene.view
    frame = np.stack([seen.right, seen.up, seen.toward])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(frame), 1)
    assert seen.up[2] > 0.5  # what is up stands up
    # a planar mechanism that stands upright is flat from the front
    front = draw(drawn("four-bar"), view="front")._scene.view
    np.testing.assert_allclose([front.right, front.up], np.eye(3)[:2], atol=1e-12)
    assert front.flat
    np.testing.assert_allclose(draw(drawn("four-bar"), view="side")._scene.view.toward, [1, 0, 0], atol=1e-12)
    assert not draw(drawn("four-bar"), view=(30, 30))._scene.view.flat


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four-bar", "gough-stewart", "stewart-6r", "panda", "five-rod-suspension"])
def test_names_do_not_overlap(name: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    picture = draw(drawn(name), names=True)
    model = kic.load(name)
    wanted = {j.name for j in model.joints if j.type in SHOWN} | {p.name for p in model.points}
    texts = picture.axes.texts
    assert wanted <= {t.get_text() for t in texts}
    if name == "four-bar":
        italic = {t.get_text() for t in texts if t.get_style() == "italic"}
        assert italic == {"crank", "coupler", "rocker", "x", "y"}
    renderer = FigureCanvasAgg(picture.figure).get_renderer()
    boxes = [t.get_window_extent(renderer) for t in texts]
    width, height = picture.figure.bbox.size
    for box in boxes:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height
    for one, other in combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        along = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert across <= 0 or along <= 0


def test_batch_members_start_from_the_same_configuration() -> None:
    m = kic.load("four-bar")
    turn = m.path({"A": np.linspace(1.0, 3.0, 40)})
    picture = draw(turn)
    circles = of(picture, "B")
    assert len(circles) == 12
    places = np.array([middle(s) for s in circles])
    angles = np.linspace(1.0, 3.0, 40)
    every = 0.1 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for p in places:
        assert np.linalg.norm(every - p, axis=1).min() < 1e-9
    # the first and the last come on top, in full
    full = [s for s in circles if s.edge[0] < 0.2]
    np.testing.assert_allclose([middle(s) for s in full], every[[0, -1]], atol=1e-9)
    assert circles[-2:] == full
    # in between no ground and no arrows are drawn again
    one = [x for x in draw(m.at({"A": 1.0})).shapes if x.of == "revolute" and not x.name]
    assert len([x for x in picture.shapes if x.of == "revolute" and not x.name]) == 2 * len(one)


@pytest.mark.slow
def test_members_without_configuration_are_left_out() -> None:
    m = kic.load("slider-crank")
    reach = np.array([0.1, 5.0, 0.2])
    c = m.at({"piston": reach}, failures="mask")
    assert c.ok.any()
    assert not c.ok.all()
    picture = draw(c)
    assert len(of(picture, "piston")) == c.ok.sum()


@pytest.mark.slow
def test_a_sheet_has_each_member_without_the_missing_ones() -> None:
    m = kic.load("slider-crank")
    c = m.at({"piston": np.array([0.2, 5.0, 0.19, 0.21])}, failures="mask")
    assert c.ok.tolist() == [True, False, True, True]
    sheet = c.draw(columns=2)
    kept = np.flatnonzero(c.ok)
    assert [ax.get_title() for ax in sheet.axes] == [str(k) for k in kept]
    places = [ax.get_subplotspec() for ax in sheet.axes]
    assert [(p.rowspan.start, p.colspan.start) for p in places] == [(k // 2, k % 2) for k in range(len(kept))]
    units = [np.diff(ax.get_xlim())[0] / ax.get_position().width for ax in sheet.axes]
    assert np.ptp(units) < 1e-9 * units[0]  # one scale
    alone = [np.diff(ax.get_xlim())[0] for k in kept for ax in c[k].draw(columns=4).axes]
    assert np.ptp(alone) > 0.01 * alone[0]
    assert [ax.get_title() for ax in c[0].draw(columns=4).axes] == [""]  # one configuration


@pytest.mark.slow
def test_the_same_picture_is_the_same_file(tmp_path) -> None:
    c = drawn("delta")
    for kind in ("svg", "png"):
        one, two = (draw(c, names=True).save(tmp_path / f"{k}.{kind}") for k in "ab")
        assert one.read_bytes() == two.read_bytes()
    assert draw(c).svg().startswith("<svg")


def test_user_axes_keep_their_artists() -> None:
    from matplotlib.figure import Figure

    figure = Figure((6, 3))
    left, right = figure.subplots(1, 2)
    (line,) = left.plot([0, 1], [0, 1])
    c = drawn("four-bar")
    picture = draw(c, ax=left).velocity([1.0])
    assert picture.axes is left
    assert picture.figure is figure
    assert line in left.lines
    assert not right.collections
    count = len(left.collections)
    picture.velocity([1.0])
    assert len(left.collections) == count  # its own were taken away before they were painted again
    np.testing.assert_array_equal(figure.get_size_inches(), (6, 3))


def test_missing_matplotlib_raises(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"Matplotlib: pip install -e '\.\[plot\]'"):
        draw(drawn("four-bar"))


def arrows(picture: MechanismPicture, kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Start and tip of each arrow of a kind."""
    found = [s for s in picture.shapes if s.of == kind]
    return [(shaft.xy[0], tip.xy[0]) for shaft, tip in zip(found[::2], found[1::2], strict=True)]


def test_velocities_and_accelerations_are_to_scale() -> None:
    arm = kic.load("horn-two-link")
    q, qd, qdd = np.array([0.4, 0.9]), np.array([1.0, -0.5]), np.array([0.3, 2.0])
    picture = draw(arm.at(q)).velocity(qd, of="tip").acceleration(qd, qdd, of="tip")
    angle, rate = q.sum(), qd.sum()

    def e(a: float) -> np.ndarray:
        return np.array([np.cos(a), np.sin(a)])

    def n(a: float) -> np.ndarray:
        return np.array([-np.sin(a), np.cos(a)])

    tip = e(q[0]) + e(angle)
    v = qd[0] * n(q[0]) + rate * n(angle)
    a = qdd[0] * n(q[0]) - qd[0] ** 2 * e(q[0]) + qdd.sum() * n(angle) - rate**2 * e(angle)
    for kind, value in (("v =", v), ("a =", a)):
        ((start, end),) = arrows(picture, kind)
        np.testing.assert_allclose(start, tip, atol=1e-12)
        d = end - start
        np.testing.assert_allclose(d / np.linalg.norm(d), value / np.linalg.norm(value), atol=1e-12)
    words = [t.get_text() for t in picture.axes.texts]
    assert any(w.startswith("v = ") and w.endswith(" m/s") for w in words)
    assert any(w.startswith("a = ") and w.endswith(" m/s²") for w in words)
    # all vectors of a kind have one scale
    c = drawn("four-bar")
    both = draw(c).velocity([3.0], of=["tip", "crank"])
    (s1, e1), (s2, e2) = arrows(both, "v =")
    G = c.coefficients(["tip.x", "tip.y", "crank.x", "crank.y"], order=1).G[:, 0]
    ratio = np.linalg.norm(e1 - s1) / np.linalg.norm(e2 - s2)
    np.testing.assert_allclose(ratio, np.linalg.norm(G[:2]) / np.linalg.norm(G[2:]), rtol=1e-9)
    assert not arrows(draw(c).velocity([0.0]), "v =")


def test_forces_are_those_in_the_joints() -> None:
    c = drawn("four-bar")
    forces = c.joint_forces([3.0])
    picture = draw(c).forces(forces)
    shown = arrows(picture, "F =")
    assert len(shown) == 4
    scale = None
    for name, (start, end) in zip(forces, shown, strict=True):
        np.testing.assert_allclose(start, forces[name].point[:2], atol=1e-12)
        now = (end - start) / forces[name].force[:2]
        scale = now[0] if scale is None else scale
        np.testing.assert_allclose(now, scale, rtol=1e-9)
    assert len(arrows(draw(c).forces(forces["C"]), "F =")) == 1
    draw(c, view=(30, 30)).forces(forces)
    turn = kic.load("four-bar").path({"A": np.linspace(1.0, 2.0, 3)})
    with raises(InputError, key="forces", got=(3,)):
        draw(c).forces(turn.joint_forces())


def test_applied_forces_turn_with_their_body() -> None:
    body = kic.Body("rod", at=(1, 0, 0))
    joint = kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))
    loads = [kic.Force("f", "tip", (1, 0, 0)), kic.Force("g", "tip", (0, 2, 0), axes="body")]
    m = kic.Mechanism("rod", [body], [joint], points=[kic.Point("tip", "rod", (1, 0, 0))], forces=loads)
    (s, f), (_, g) = arrows(draw(m.at([0.5])).forces(), "F =")
    np.testing.assert_allclose(s, [np.cos(0.5), np.sin(0.5)])
    np.testing.assert_allclose((g - s) / np.linalg.norm(f - s), 2 * np.array([-np.sin(0.5), np.cos(0.5)]))


@pytest.mark.parametrize("kind", ["velocity", "force", "inertia", "acceleration"])
def test_ellipses_are_level_lines(kind: str) -> None:
    c = kic.load("horn-two-link").at([0.3, 1.1])
    e = c.ellipsoid(["tip.x", "tip.y"], kind=kind)
    picture = draw(c).ellipsoid(e)
    outline = next(s for s in picture.shapes if s.of == kind and s.closed).xy
    spread = np.linalg.norm(outline - outline.mean(axis=0), axis=1).max()
    scale = spread / e.semi_axes[0]
    x = (outline - c.value("tip")[:2]) / scale
    np.testing.assert_allclose(e.level(x), 1, rtol=2e-3)  # the scale is read off at 72 points
    centre = outline.mean(axis=0) - c.value("tip")[:2]
    np.testing.assert_allclose(centre, scale * e.center, atol=2e-3 * spread)


def test_frames_and_centres_of_mass_are_drawn_as_points() -> None:
    m = kic.load("horn-two-link")
    tip = m["tip"]
    tool = kic.Frame("tool", tip.body, origin=tip.at)
    whole = kic.CenterOfMass("whole", [body.name for body in m.bodies])
    c = replace(m, frames=[tool], centers=[whole]).at([0.3, 1.1])
    one, other = (draw(c).velocity([1.0, 2.0], of=name) for name in ("tool", "tip"))
    np.testing.assert_allclose(arrows(one, "v ="), arrows(other, "v ="))
    one, other = (draw(c).ellipsoid(c.ellipsoid([f"{n}.x", f"{n}.y"])) for n in ("tool", "tip"))
    for a, b in zip(one.shapes, other.shapes, strict=True):
        np.testing.assert_allclose(a.xy, b.xy)
    ((start, _),) = arrows(draw(c).velocity([1.0, 2.0], of="whole"), "v =")
    np.testing.assert_allclose(start, c.value("whole")[:2])


def test_an_ellipsoid_in_space_shows_its_outline() -> None:
    c = kic.load("puma560").at([0.1, 0.4, -2.0, 0.6, 0.7, -0.3])
    e = c.ellipsoid(["face.x", "face.y", "face.z"])
    picture = draw(c).ellipsoid(e)
    view = picture._scene.view
    outline = next(s for s in picture.shapes if s.of == "velocity" and s.closed).xy - view.project(
        c.value("face")
    )
    reach = [float((outline @ view.project(d)).max()) for d in (view.right, view.up)]
    support = e.support(np.stack([view.right, view.up]))
    np.testing.assert_allclose(reach[0] / reach[1], support[0] / support[1], rtol=2e-3)


def test_plates_do_not_hide_pivots_on_the_ground() -> None:
    """The coupler's plate passes over the crank's pivot: all of the pivot is painted after the plate."""
    from matplotlib.path import Path as ModelIndex

    picture = draw(kic.load("four-bar").at({"A": -1.92}))
    painted = picture.shapes
    faces = [k for k, s in enumerate(painted) if s.of == "plate" and s.closed]
    signs = [k for k, s in enumerate(painted) if s.of == "revolute" and s.key[0] < 2]
    pivot = signs + [k for k, s in enumerate(painted) if s.name in ("A", "D")]
    plate = ModelIndex(painted[faces[-1]].xy)
    assert plate.contains_points(middle(of(picture, "A")[0])[None]).all()
    covered = [k for k in pivot if plate.contains_points(painted[k].xy).all()]
    assert len(covered) > 5  # circle, pedestal, line of ground and its strokes
    assert min(pivot) > max(faces)
    assert [s.key for s in painted] == sorted(s.key for s in painted)


@pytest.mark.slow
def test_traces_go_through_all_members() -> None:
    m = kic.load("four-bar")
    turn = m.path({"A": np.linspace(1.0, 1 + 2 * np.pi, 60)})
    picture = draw(turn).trace("tip")
    (curve,) = [s for s in picture.shapes if s.of == "trace"]
    np.testing.assert_allclose(curve.xy, turn.value("tip")[:, :2], atol=1e-12)
    # the curve is interrupted at failed members
    c = kic.load("slider-crank").at({"shaft": np.linspace(0, 1, 7)})
    broken = Configuration(c._model, (7,), c._states, np.array([1, 1, 1, 0, 1, 1, 1], bool))
    pieces = [s for s in draw(broken).trace("crown").shapes if s.of == "trace"]
    assert [len(s.xy) for s in pieces] == [3, 3]
    # the remedy is one
    curves = [s for s in draw(drawn("four-bar")).trace("tip", along=turn).shapes if s.of == "trace"]
    np.testing.assert_allclose(curves[0].xy, turn.value("tip")[:, :2], atol=1e-12)
    with pytest.raises(UnknownNameError):
        draw(turn).trace("top")


def test_points_to_draw_vectors_at() -> None:
    turn = kic.load("four-bar").path({"A": np.linspace(1.0, 2.0, 3)})
    assert len(arrows(draw(turn).velocity([1.0]), "v =")) == 3
    ladder = kic.Mechanism(
        "rod",
        [kic.Body("rod", at=(1, 0, 0))],
        [kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))],
    )
    with raises(InputError, key="of"):
        draw(ladder.at([0.0])).velocity([1.0])
    assert len(arrows(draw(ladder.at([0.0])).velocity([1.0], of="rod"), "v =")) == 1


@pytest.mark.slow
def test_springs_dampers_rods_belts_and_contacts_have_their_signs() -> None:
    kinds = {s.of for s in draw(drawn("five-rod-suspension")).shapes}
    assert {"rod", "coil", "anchor", "solid"} <= kinds
    assert {"belt", "wheel", "cylindrical"} <= {s.of for s in draw(drawn("scara")).shapes}
    assert len([s for s in draw(drawn("geared-five-bar")).shapes if s.of == "wheel" and s.face]) == 2
    assert {"touch", "plate"} <= {s.of for s in draw(drawn("three-finger-hand")).shapes}
    assert {"telescope", "universal", "spherical"} <= {s.of for s in draw(drawn("gough-stewart")).shapes}
    assert {"guide", "prismatic"} <= {s.of for s in draw(drawn("scotch-yoke")).shapes}


Z = (0, 0, 1)


def test_a_cylinder_in_a_plane_is_a_telescope() -> None:
    m = kic.Mechanism(
        "lift",
        [kic.Body("cylinder"), kic.Body("piston"), kic.Body("arm")],
        [
            kic.Joint("A", "revolute", ("ground", "cylinder"), at=(0, 0, 0), axis=Z),
            kic.Joint("P", "prismatic", ("cylinder", "piston"), axis=(1, 1, 0), value=2**0.5),
            kic.Joint("B", "revolute", ("piston", "arm"), at=(1, 1, 0), axis=Z),
            kic.Joint("C", "revolute", ("ground", "arm"), at=(2, 0, 0), axis=Z),
        ],
        coordinates=["P"],
    )
    c = m.at({"P": 1.5})
    picture = draw(c)
    (barrel,) = of(picture, "P")
    assert barrel.of == "telescope"
    along = place(c, "B")[:2] / 1.5
    np.testing.assert_allclose(middle(barrel) @ [-along[1], along[0]], 0, atol=1e-9)
    # the barrel has the same length in all configurations
    barrels = of(draw(m.path({"P": np.linspace(1.2, 1.9, 6)})), "P")
    assert len(barrels) == 6
    lengths = [np.linalg.norm(s.xy[1] - s.xy[0]) for s in barrels]
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)
    # the force in it acts on its line, though the joint was drawn without a place
    load = kic.Force("f", "end", (0, -1, 0))
    loaded = kic.Mechanism(
        "lift",
        [kic.Body(b.name, mass=1.0, com=(1, 0.5, 0), inertia=(1, 1, 1)) for b in m.bodies],
        m.joints,
        points=[kic.Point("end", "arm", (1, 1, 0))],
        forces=[load],
        coordinates=["P"],
    )
    c = loaded.at({"P": 1.5})
    ((start, _),) = arrows(draw(c).forces(c.joint_forces()["P"]), "F =")
    np.testing.assert_allclose(start, 0.75 * along, atol=1e-9)


def test_sliders_without_a_place_are_seen_where_they_go() -> None:
    m = kic.Mechanism(
        "gantry",
        [kic.Body("x"), kic.Body("y"), kic.Body("z")],
        [
            kic.Joint("X", "prismatic", ("ground", "x"), axis=(1, 0, 0)),
            kic.Joint("Y", "prismatic", ("x", "y"), axis=(0, 1, 0)),
            kic.Joint("Z", "prismatic", ("y", "z"), axis=(0, 0, 1)),
        ],
        points=[kic.Point("tool", "z", at=(0, 0, -0.3))],
    )
    picture = draw(m.at([0.3, 0.4, 0.1]))
    found = {mark.name: mark.places[0] for mark in picture._marks if mark.kind == "prismatic"}
    np.testing.assert_allclose([found[n] for n in "XYZ"], [[0.3, 0, 0], [0.3, 0.4, 0], [0.3, 0.4, -0.2]])


def test_a_body_without_any_size_is_drawn() -> None:
    m = kic.Mechanism(
        "bare", [kic.Body("b")], [kic.Joint("A", "revolute", ("ground", "b"), at=(5, 0, 0), axis=Z)]
    )
    picture = draw(m.at([0.0]), names=True)
    assert len(of(picture, "A")) == 1
    assert 1 < np.ptp(picture.axes.get_xlim()) < 10


@pytest.mark.parametrize("view", [None, (-60, 30)])
def test_dampers_lifted_feet_and_welds_have_their_signs(view) -> None:
    m = kic.Mechanism(
        "odds",
        [kic.Body("link", at=(0, 0, 0)), kic.Body("tip", at=(2, 0, 0))],
        [
            kic.Joint("A", "revolute", ("ground", "link"), at=(0, 0, 0), axis=Z),
            kic.Joint("W", "fixed", ("link", "tip"), at=(1, 0, 0)),
        ],
        points=[kic.Point("end", "tip", (2, 0.2, 0)), kic.Point("wall", "ground", (2, 1.5, 0))],
        springs=[kic.Spring("damper", ("end", "wall"), damping=2.0)],
        contacts=[
            kic.Contact(
                "foot",
                "friction",
                ("tip", "ground"),
                (2, 0, 0),
                normal=(0, -1, 0),
                friction=0.5,
                closed=False,
            )
        ],
    )
    picture = draw(m.at([0.1]), view=view, names=True)
    assert {"dashpot", "lifted", "fixed", "anchor"} <= {s.of for s in picture.shapes}
    assert {"damper", "foot", "W"} <= {t.get_text() for t in picture.axes.texts}


@pytest.mark.parametrize("view", [None, (-60, 30)])
def test_a_pinned_foot_without_a_normal_stands_on_the_ground(view) -> None:
    m = kic.Mechanism(
        "foot",
        [kic.Body("slide"), kic.Body("column"), kic.Body("foot")],
        [
            kic.Joint("P", "prismatic", ("ground", "slide"), axis=(1, 0, 0)),
            kic.Joint("R", "prismatic", ("slide", "column"), axis=(0, 1, 0)),
            kic.Joint("Q", "revolute", ("column", "foot"), at=(0, 0, 0), axis=Z),
        ],
        contacts=[kic.Contact("toe", "pinned", ("foot", "ground"), (1, 0, 0))],
    )
    picture = draw(m.at(), view=view)
    assert {"touch"} <= {s.of for s in picture.shapes}


@pytest.mark.slow
def test_importing_kic_does_not_import_matplotlib() -> None:
    import subprocess

    said = subprocess.run(
        [sys.executable, "-c", "import sys; from kic import *; print('matplotlib' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.strip() == "False"


def test_barrels_and_rails_have_constant_length() -> None:
    m = kic.load("slider-crank")
    turn = m.path({"shaft": m.at().value("shaft") + np.linspace(0, 3.0, 9)})
    shapes = draw(turn).shapes
    rails = [s for s in shapes if s.of == "prismatic" and not s.closed and s.width > 1 and not s.name]
    assert len(rails) == 2  # first and last configuration, coincident
    np.testing.assert_allclose(rails[0].xy, rails[1].xy, atol=1e-12)
    blocks = np.concatenate([s.xy for s in shapes if s.name == "piston"])
    assert rails[0].xy[:, 0].min() < blocks[:, 0].min()
    assert rails[0].xy[:, 0].max() > blocks[:, 0].max()
    yoke = kic.load("scotch-yoke")
    turn = yoke.path({"shaft": yoke.at().value("shaft") + np.linspace(0, 3.0, 9)})
    for c, count in ((turn, 9), (yoke.at({"shaft": 1.0}), 1)):
        rods = [s.xy for s in draw(c).shapes if s.of == "guide"]
        lengths = [np.linalg.norm(xy[1] - xy[0]) for xy in rods]
        assert len(lengths) == 2 * count
        np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)
        for xy, block in zip(rods[::2], [s for s in draw(c).shapes if s.name == "slot"], strict=True):
            assert xy[:, 1].min() < block.xy[:, 1].min() < block.xy[:, 1].max() < xy[:, 1].max()


def test_joints_are_painted_over_their_links() -> None:
    shapes = draw(drawn("slider-crank")).shapes
    names = [s.name for s in shapes]
    rods = [k for k, s in enumerate(shapes) if s.of == "link"]
    assert names.index("wristpin") > max(rods[-1], names.index("piston"))
    # a rod that passes over a pin of others covers it, and a face no pin at all
    shapes = draw(drawn("stephenson-six-bar")).shapes
    names = [s.name for s in shapes]
    assert names.index("A") < max(k for k, s in enumerate(shapes) if s.of == "link")
    faces = [k for k, s in enumerate(shapes) if s.of == "plate"]
    assert max(faces) < min(names.index(j.name) for j in kic.load("stephenson-six-bar").joints)


@pytest.mark.slow
def test_scales_are_shared_by_panels() -> None:
    m = kic.load("four-bar")
    one = draw(m.at({"A": 1.0})).velocity([2.0], of="tip")
    length = one.scales["velocity"]
    c = m.at({"A": 2.0})
    other = draw(c).velocity([2.0], of="tip", scale=length)
    assert other.scales == one.scales
    ((start, end),) = arrows(other, "v =")
    G = c.coefficients(["tip.x", "tip.y"], order=1).G[:, 0]
    np.testing.assert_allclose(end - start, length * 2.0 * G, atol=1e-12)
    load = c.joint_forces([3.0])
    both = draw(c).forces(load, scale=0.01).acceleration([1.0], [0.0], of="tip", scale=0.1)
    assert both.scales == {"force": 0.01, "acceleration": 0.1}
    arm = kic.load("horn-two-link").at([0.3, 1.1])
    e = arm.ellipsoid(["tip.x", "tip.y"])
    assert draw(arm).ellipsoid(e, scale=0.2).scales == {"velocity ellipsoid": 0.2}
    for wrong in (0.0, -1.0, np.inf, "1"):
        with raises(InputError, key="scale"):
            draw(c).velocity([1.0], scale=wrong)


def test_a_legend_of_many_rows_is_on_the_paper() -> None:
    c = drawn("four-bar")
    picture = draw(c).velocity([2.0]).acceleration([2.0], [0.5]).forces(c.joint_forces([3.0]))
    low = picture.axes.get_ylim()[0]
    half = 4.0 / picture._canvas.points
    rows = [t for t in picture.axes.texts if t.get_text()[:2] in ("v ", "a ", "F ")]
    assert len(rows) == 3
    assert all(t.get_position()[1] - half > low for t in rows)


@pytest.mark.slow
def test_a_figure_with_a_layout_shows_all(tmp_path, caplog) -> None:
    from matplotlib.figure import Figure

    figure = Figure((7.2, 3.4), layout="constrained")
    panels = figure.subplots(1, 2)
    made = [
        draw(kic.load("four-bar").at({"A": angle}), ax=ax, names=True).velocity([2.0])
        for ax, angle in zip(panels, (1.0, 2.0), strict=True)
    ]
    for ax in panels:
        ax.set_title("a title")
    figure.savefig(tmp_path / "panels.png")
    assert not caplog.records
    for picture in made:
        low, high = np.array([picture.axes.get_xlim(), picture.axes.get_ylim()]).T
        for shape in picture.shapes:
            assert (shape.xy > low).all()
            assert (shape.xy < high).all()
        unit = picture.axes.transData.transform([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        np.testing.assert_allclose(unit[1, 0] - unit[0, 0], unit[2, 1] - unit[0, 1], rtol=1e-9)
        # words have their size whatever the panel: they are as near as they were placed
        shown = (unit[1, 0] - unit[0, 0]) * 72 / figure.dpi
        assert 0.9 < shown / picture._canvas.points < 1.1


def test_faces_of_faded_members_are_translucent() -> None:
    m = kic.load("four-bar")
    alone = [s for s in draw(m.at({"A": 1.0})).shapes if s.of == "plate" and s.face]
    fan = [s for s in draw(m.path({"A": np.linspace(1.0, 1.5, 5)})).shapes if s.of == "plate" and s.face]
    assert [s.face[3] for s in alone] == [1.0]
    assert [s.face[3] for s in fan] == [0.5, 0.5]


def test_gears_have_teeth_that_mesh() -> None:
    """Corners of one wheel are never inside the other, in any position."""
    from matplotlib.path import Path

    m = kic.load("geared-five-bar")
    for angle in (0.64, 0.8, 1.1, 1.3):
        wheels = [s.xy for s in draw(m.at({"A": angle})).shapes if s.of == "wheel" and s.closed]
        small, large = sorted(wheels, key=len)
        assert len(large) == 2 * len(small)
        for one, other in ((small, large), (large, small)):
            assert not Path(other).contains_points(one, radius=-1e-6).any()
        # they reach into each other
        centre = (large.max(axis=0) + large.min(axis=0)) / 2
        assert np.linalg.norm(small - centre, axis=1).min() < np.linalg.norm(large - centre, axis=1).max()


def test_belts_are_closed_and_touch_their_pulleys() -> None:
    bodies = [kic.Body(name, at=(x, 0, 0)) for name, x in (("one", 0.0), ("two", 1.0))]
    joints = [
        kic.Joint(name, "revolute", ("ground", body), at=(x, 0, 0), axis=(0, 0, 1))
        for name, body, x in (("A", "one", 0.0), ("B", "two", 1.0))
    ]
    m = kic.Mechanism(
        "belt", bodies, joints, couplings=[kic.Coupling("k", ["A", "B"], belt=(0.1, 0.3))], coordinates=["A"]
    )
    (belt,) = [s for s in draw(m.at()).shapes if s.of == "belt"]
    assert belt.closed
    for x, radius in ((0.0, 0.1), (1.0, 0.3)):
        assert np.linalg.norm(belt.xy - [x, 0], axis=1).min() == pytest.approx(radius, abs=1e-12)
    # the straight runs touch both pulleys: their normals are the radii
    steps = np.roll(belt.xy, -1, axis=0) - belt.xy
    for k in np.argsort(-np.linalg.norm(steps, axis=1))[:2]:
        start, end = belt.xy[k], belt.xy[(k + 1) % len(belt.xy)]
        for place in (start, end):
            centre = np.array([0.0 if np.linalg.norm(place) < 0.2 else 1.0, 0.0])
            assert abs(steps[k] @ (place - centre)) < 1e-12


def test_a_mechanism_is_drawn_in_its_reference_configuration() -> None:
    m = kic.load("four-bar")
    one, other = m.draw(), m.at().draw()
    assert len(one.shapes) == len(other.shapes)
    for a, b in zip(one.shapes, other.shapes, strict=True):
        assert (a.xy == b.xy).all()
