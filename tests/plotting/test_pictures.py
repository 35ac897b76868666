"""Pictures of every shipped model in three configurations, with automatic checks.

The pictures are written to the folder that KIC_PICTURES names, or else to one of pytest's: MODEL-drawn.png,
with names, and MODEL-back.png and MODEL-forth.png.
"""

from __future__ import annotations

import os
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from representative_models import OTHER_MODELS

import kic
from kic.description.units import coordinate_units
from kic.mechanism.configuration import Configuration, displacement
from kic.plotting.draw import MechanismPicture, draw
from kic.plotting.figures import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from kic.plotting.scene import body_order
from kic.plotting.symbols import FLOOR, STEEL, rgba, tint

pytest.importorskip("matplotlib")

MODELS = kic.model_names()
POSTURES = ("drawn", "back", "forth")
# how far coordinates go: an angle in radians, a slider in parts of the mechanism's length, in so many steps
TURN, SLIDE, STEPS = 0.9, 0.25, 6
# share of the range of the loops, which avoids limit configurations
SHARE = 0.75
every_picture = pytest.mark.parametrize(("name", "which"), [(n, w) for n in MODELS for w in POSTURES])


@cache
def postures(name: str) -> dict[str, Configuration]:
    """The drawing, and where its coordinates lead from there, one way and the other, on the same branch."""
    m = kic.load(name)
    drawn, units = m.at(), coordinate_units(m)
    names = m.coordinates
    # neighbours move against one another, so that chains bend; the first turns most
    way = np.array([(-1.0) ** k * (1.0 if k < 2 else 0.6) for k in range(len(names))])
    way *= [TURN if units.get(q, m.units.length) == "rad" else SLIDE * m._model.length for q in names]
    found = {"drawn": drawn}
    for which, sense in (("back", -1.0), ("forth", 1.0)):
        reach = 1.0
        while True:
            share = sense * reach * np.linspace(0.0, 1.0, STEPS + 1)[1:]
            course = {q: drawn.value(q) + share * dx for q, dx in zip(names, way, strict=True)}
            run = m.path(course, near=drawn, failures="mask")
            if run.ok.all():
                found[which] = run[-1]
                break
            # up to some way before it stops, or into the first step
            reach *= SHARE * max(int(np.argmin(run.ok)), 0.5) / STEPS
            assert reach > 0.02, f"{name} hardly moves"
    return found


@cache
def picture(name: str, which: str) -> MechanismPicture:
    return draw(postures(name)[which], names=which == "drawn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    given = os.environ.get("KIC_PICTURES")
    place = Path(given) if given else tmp_path_factory.mktemp("pictures")
    place.mkdir(parents=True, exist_ok=True)
    return place


def boxes(drawn: MechanismPicture) -> list[tuple[str, np.ndarray]]:
    """Words of a picture, with their corners (2, 2) in points."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(drawn.figure).get_renderer()
    found = []
    for text in drawn.axes.texts:
        box = text.get_window_extent(renderer)
        found.append((text.get_text(), np.array([box.min, box.max]) * 72 / drawn.figure.dpi))
    return found


@pytest.mark.slow
@every_picture
def test_every_model_is_pictured(name: str, which: str, folder: Path) -> None:
    from PIL import Image

    file = picture(name, which).save(folder / f"{name}-{which}.png", dpi=150)
    with Image.open(file) as image:
        grey = np.asarray(image.convert("L"))
    assert grey.shape[1] == 525  # a column
    # ink, and nothing at the edges that may be cut
    assert (grey < 128).mean() > 0.003
    assert min(grey[0].min(), grey[-1].min(), grey[:, 0].min(), grey[:, -1].min()) == 255


@pytest.mark.slow_for("gough-stewart", "three-finger-hand", "two-arms", *OTHER_MODELS)
@pytest.mark.parametrize("name", MODELS)
def test_three_configurations_of_one_branch(name: str) -> None:
    found = postures(name)
    m = kic.load(name)
    for c in found.values():
        assert c.ok
        # seen without kic's closure: what turns in one another is in one place
        for j in m.joints:
            if j.at is not None and j.type in ("revolute", "spherical", "universal", "fixed"):
                one, other = (
                    np.array([*j.at, 1.0]) if b == "ground" else displacement(c, b) @ [*j.at, 1.0]
                    for b in j.bodies
                )
                np.testing.assert_allclose(one[:3], other[:3], atol=1e-9 * m._model.length)
    size = m._model.length
    for one, other in combinations(found.values(), 2):
        T = [np.abs(displacement(one, b.name) - displacement(other, b.name)) for b in m.bodies]
        assert max(t[:3, :3].max() + t[:3, 3].max() / size for t in T) > 0.03


@pytest.mark.slow
@every_picture
def test_drawing_is_to_scale_and_complete(name: str, which: str) -> None:
    p = picture(name, which)
    low, high = np.array([p.axes.get_xlim(), p.axes.get_ylim()]).T
    for shape in p.shapes:
        assert np.isfinite(shape.xy).all()
        margin = 0.5 * shape.width / p._canvas.points if shape.edge else 0.0
        assert (shape.xy - margin >= low).all()
        assert (shape.xy + margin <= high).all()
        assert shape.edge is None or shape.width >= 0.5
    # a unit is as long across as up, and as the bar says
    p.axes.apply_aspect()
    unit = p.axes.transData.transform([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    across, up = unit[1] - unit[0], unit[2] - unit[0]
    np.testing.assert_allclose(across, up[::-1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(across[0] * 72 / p.figure.dpi, p._canvas.points, rtol=1e-9)


@pytest.mark.slow
@every_picture
def test_text_is_legible(name: str, which: str) -> None:
    p = picture(name, which)
    words = boxes(p)
    assert all(t.get_fontsize() >= 6 for t in p.axes.texts)
    paper = p.figure.get_size_inches() * 72
    for said, (a, b) in words:
        assert (a >= 0).all(), said
        assert (b <= paper).all(), said
    for (one, (a, b)), (other, (c, d)) in combinations(words, 2):
        assert ((b <= c + 0.2) | (d <= a + 0.2)).any(), f"{one} over {other}"
    # no joint, point or block is hidden by words
    start = np.array([p._canvas.left, p._canvas.bottom])
    for shape in p.shapes:
        if shape.name and shape.closed:
            xy = (shape.xy - start) * p._canvas.points
            for said, (a, b) in words:
                inside = ((xy > a + 0.8) & (xy < b - 0.8)).all(axis=1)
                assert not inside.any(), f"{said} over {shape.name}"


# the colours of drawings, each made light or not
PALETTE = np.array(
    [rgba(c)[:3] for c in (INK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE, STEEL, FLOOR)]
)


def light(colour: np.ndarray) -> np.ndarray:
    """Relative luminance of sRGB colours (..., 3) on white where they are translucent (4)."""
    c = colour[..., :3] * colour[..., 3:] + 1 - colour[..., 3:]
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_colours_are_those_that_all_eyes_tell_apart(name: str) -> None:
    p = picture(name, "drawn")
    used = {c for s in p.shapes for c in (s.face, s.edge) if c}
    for colour in used:
        # between one of the palette and white
        d = 1 - PALETTE
        share = ((1 - np.array(colour[:3])) * d).sum(axis=1) / (d**2).sum(axis=1)
        off = np.abs(1 - share[:, None] * d - colour[:3]).max(axis=1)
        assert off.min() < 0.01, colour
    # printed without colours every face still stands against its outline, and every line against the paper
    for s in p.shapes:
        if s.edge and s.face and s.face != s.edge:
            a, b = sorted(light(np.array([s.face, s.edge])))
            assert (b + 0.05) / (a + 0.05) > 3, s.of


@pytest.mark.parametrize("name", MODELS)
def test_neighbours_have_different_colours(name: str) -> None:
    m = kic.load(name)
    order = body_order(m._model.description)
    assert list(order.values()) == sorted(order.values())
    for j in m.joints:
        if "ground" not in j.bodies:
            assert tint(order[j.bodies[0]]) != tint(order[j.bodies[1]]), j.name


@pytest.mark.slow_for("walking-machine-on-feet", *OTHER_MODELS)
@pytest.mark.parametrize("name", [n for n in MODELS if kic.load(n)._model.tree.planar_normal is not None])
def test_arrows_of_motors_avoid_pedestals(name: str) -> None:
    from matplotlib.path import Path as ModelIndex

    for which in POSTURES:
        shapes = picture(name, which).shapes
        stands = [s for s in shapes if s.closed and s.key[0] == 1.5]
        assert stands or not any(s.of == "revolute" and s.key[0] == 1.6 for s in shapes)
        turns = [s for s in shapes if s.of == "revolute" and s.edge == rgba(VERMILION)]
        for stand in stands:
            for turn in turns:
                assert not ModelIndex(stand.xy).contains_points(turn.xy).any()
