"""Spatial pictures and those of the README: occlusion, symbols and reproducible files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from gallery import FOLDER, PIECES, ROOT

import kic
from kic.plotting.depth_sort import depth_sorted
from kic.plotting.symbols import DRIVEN, Shape, rgba

matplotlib = pytest.importorskip("matplotlib")
DRIVE = rgba(DRIVEN)
SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])


def shape(middle: tuple[float, float], depth: float, number: int, name: str) -> Shape:
    xy = np.array(middle) + 0.1 * (SQUARE / 2 - 1)
    return Shape(xy, rgba("#ff0000"), None, 0.8, True, (depth, number, 0), name=name)


@pytest.mark.parametrize("depth", [-3.0, 0.0, 3.0])
def test_slanted_face_is_painted_between_shapes_behind_and_in_front(depth: float) -> None:
    """The mean depth is irrelevant: the plane is z = x, from 0 at the left to 4 at the right."""
    face = Shape(SQUARE, rgba("#0000ff"), None, 0.8, True, (depth, 9, 0), name="face", plane=(0.0, 1.0, 0.0))
    parts = [
        shape((3.5, 1.0), 3.0, 1, "behind"),
        shape((0.5, 1.0), 1.0, 2, "before"),
        shape((0.5, 3.0), 0.45, 3, "rim"),
        shape((9.0, 9.0), -9.0, 4, "elsewhere"),
    ]
    under = Shape(parts[0].xy + 0.05, None, None, 0.8, True, (3.0, 1, 1), name="highlight")
    order = [s.name for s in depth_sorted([face, *parts, under], 0.1)]
    at = order.index
    assert at("behind") + 1 == at("highlight") < at("face")
    assert at("face") < at("before")
    assert at("face") < at("rim")
    assert sorted(order) == sorted(["face", "highlight", *(p.name for p in parts)])
    assert [s.key for s in depth_sorted([face, *parts], 0.1)] == [(float(k),) for k in range(5)]


@pytest.mark.slow
def test_balls_are_on_the_platform_and_legs_below_it() -> None:
    for shift in (0.0, 0.15):
        c = kic.load("gough-stewart").at()
        lengths = np.array([float(c.value(f"L{k}")) for k in range(1, 7)])
        c = kic.load("gough-stewart").at(lengths + shift * np.array([1, 0, 0, 1, 0, 0]), near=c)
        shapes = c.draw().shapes
        (face,) = [k for k, s in enumerate(shapes) if s.plane is not None]
        balls = [k for k, s in enumerate(shapes) if s.of == "spherical"]
        assert min(balls) > face
        rims = [k for k, s in enumerate(shapes) if s.of == "plate" and k != face]
        assert min(rims) > face - 13  # ends of the rim's rods may lie under it
        back = [k for k, s in enumerate(shapes) if s.name in ("L3", "L4")]
        assert max(back) < face


def test_turning_and_sliding_arrows_differ_from_any_side() -> None:
    """Its arrow is open, also where the joint is seen from its side; it turns about the axis."""
    m = kic.Mechanism(
        "fan",
        [kic.Body("blade", at=(0, 0, 1))],
        [kic.Joint("A", "revolute", ("ground", "blade"), at=(0, 0, 0), axis=(1, 0, 0))],
        coordinates=["A"],
    )
    for view in ((-90, 10), (-60, 10), (60, 10), (-30, 40), (10, 0)):
        picture = m.at([0.3]).draw(view=view)
        arcs = [s for s in picture.shapes if s.of == "revolute" and s.face is None and len(s.xy) == 24]
        arcs.sort(key=lambda s: s.key)
        (tip,) = [s for s in picture.shapes if s.face == DRIVE and not s.name and len(s.xy) == 4]
        seen = np.concatenate([s.xy for s in arcs])
        sizes = np.linalg.svd(seen - seen.mean(axis=0))[1]
        assert sizes[1] > 0.2 * sizes[0]
        toward = picture._scene.view.toward[0]
        middle = (seen.max(axis=0) + seen.min(axis=0)) / 2
        arm, way = tip.xy[0] - middle, tip.xy[0] - tip.xy[2]
        if abs(toward) > 0.1:  # positive about the axis: counter-clockwise where that comes nearer
            assert np.sign(arm[0] * way[1] - arm[1] * way[0]) == np.sign(toward)


def test_axes_of_joints_are_seen() -> None:
    """A line along each, beyond the ends of the cylinder."""
    c = kic.load("bennett").at()
    picture = c.draw()
    view = picture._scene.view
    for joint in c._model.description.joints:
        (mark,) = [k for k in picture._marks if k.name == joint.name]
        lines = np.array([s.xy for s in picture.shapes if s.of == "revolute" and len(s.xy) == 2])
        for side in (1, -1):
            ends = mark.places[0] + side * picture._size * np.outer([1.3, 2.73], mark.directions[0])
            assert np.abs(lines - view.project(ends)).max(axis=(1, 2)).min() < 1e-12


@pytest.mark.slow
def test_couplings_by_ratios_are_dashes_from_joint_to_joint() -> None:
    c = kic.load("bevel-wrist").at()
    picture = c.draw(names=True)
    ties = {mark.name: mark for mark in picture._marks if mark.kind == "tie"}
    assert set(ties) == {"mesh2", "mesh3", "mesh4"}
    marks = {m.name: m for m in picture._marks if m.kind == "revolute"}
    for coupling in c._model.description.couplings:
        places = [marks[name].places[0] for name in coupling.joints]
        np.testing.assert_allclose(ties[coupling.name].places, places, atol=1e-12)
    assert any(s.of == "tie" for s in picture.shapes)
    assert set(ties) <= {t.get_text() for t in picture.axes.texts}


def test_a_hand_has_its_fingers() -> None:
    """A rod to the nearest point of a body, and from that to the next."""
    c = kic.load("bevel-wrist").at()
    links = [m for m in c.draw()._marks if m.body == "hand" and m.kind in ("link", "stem")]
    assert [m.kind for m in links] == ["link", "stem"]
    np.testing.assert_allclose(links[0].places[1], c.value("tip"))
    np.testing.assert_allclose(links[1].places, [c.value("tip"), c.value("finger")])


@pytest.mark.slow
def test_joints_all_in_one_place_are_drawn_larger() -> None:
    def size(name: str) -> float:
        picture = kic.load(name).at().draw()
        return picture._size * picture._canvas.points

    assert size("bevel-wrist") > 1.3 * size("panda") > 1.3 * 2.7


def test_a_curve_along_other_configurations() -> None:
    m = kic.load("jansen-leg")
    turn = m.path({"A": np.linspace(0, 2 * np.pi, 25)})
    picture = m.at().draw().trace("foot", along=turn)
    (curve,) = [s for s in picture.shapes if s.of == "trace"]
    np.testing.assert_allclose(curve.xy, turn.value("foot")[:, :2], atol=1e-12)


# ---- the gallery


def readme() -> str:
    file = ROOT / "README.md"
    if not file.is_file() or not FOLDER.is_dir():
        pytest.skip("the gallery is not part of an installed package")
    return file.read_text(encoding="utf-8")


def test_gallery_matches_its_captions() -> None:
    text = readme()
    section = text[text.index("## Gallery") : text.index("## Tasks")]
    images = re.findall(r'<img src="([^"]+)" alt="([^"]+)" width="390">', section)
    shown = {words: path for path, words in images}
    assert shown == {piece.shows: piece.path for piece in PIECES}
    for piece in PIECES:
        for line in piece.code.split("; "):
            assert f"`{line}`" in section
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {Path(piece.path).name for piece in PIECES}
    sizes = [(ROOT / piece.path).stat().st_size for piece in PIECES]
    assert max(sizes) < 120_000
    assert sum(sizes) < 1_000_000


def version(text: str) -> tuple[str, ...]:
    """Return the first two numbers of a version of Matplotlib."""
    return re.search(r"(\d+)\.(\d+)", text).groups()


def test_the_gallery_is_drawn_by_the_pinned_matplotlib() -> None:
    """After `.ci/renew` draw it again: `python -m tests.gallery`."""
    image = pytest.importorskip("PIL.Image")
    if not (file := ROOT / ".ci" / "constraints.txt").exists():
        pytest.skip("versions are pinned in a checkout alone")
    pinned = re.search(r"^matplotlib==(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)[1]
    for piece in PIECES:
        assert version(image.open(ROOT / piece.path).info["Software"]) == version(pinned)


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.name)
def test_the_gallery_is_drawn_by_kic_as_it_is(piece) -> None:
    """Edges may be smoothed otherwise on another machine; sizes and lines may not differ."""
    readme()
    image = pytest.importorskip("PIL.Image")
    drawn = version(image.open(ROOT / piece.path).info["Software"])
    if piece.code.endswith("plot()") and drawn != version(matplotlib.__version__):
        pytest.skip(f"drawn by Matplotlib {'.'.join(drawn)}, whose margins of axes differ")
    with image.open(ROOT / piece.path) as kept, image.open(piece.bytes()) as now:
        assert kept.size == now.size
        old, new = (np.asarray(one.convert("L").reduce(8), float) for one in (kept, now))
    # of 255; the thinnest arrow left out makes 0.35
    assert np.abs(old - new).mean() < 0.2
