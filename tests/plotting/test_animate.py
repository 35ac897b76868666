"""Animations: every frame shows the configuration at its time, with fixed axes."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import kic

pytest.importorskip("matplotlib", reason="pip install -e '.[plot]' to draw")
from PIL import Image, ImageSequence
from raising import raises

from kic.plotting.animate import animate


@pytest.fixture(scope="module")
def bars() -> kic.Mechanism:
    return kic.load("four-bar")


@pytest.fixture(scope="module")
def turn(bars: kic.Mechanism) -> kic.Configuration:
    return bars.path({"A": 1.0 + np.linspace(0, 2 * np.pi, 8, endpoint=False)})


@pytest.mark.slow
def test_frames_of_a_batch_are_its_members(turn, tmp_path) -> None:
    film = turn.animate(fps=10, trace="tip")
    assert len(film) == 8
    assert film.t is None
    assert np.array_equal(film.frames._phi, turn._phi)
    file = film.save(tmp_path / "turn.gif")
    with Image.open(file) as made:
        assert made.n_frames == 8
        assert made.info["duration"] == 100
        assert made.info["loop"] == 0
        seen = [np.asarray(frame.convert("L")) for frame in ImageSequence.Iterator(made)]
    # the paper is white all over its edge: nothing leaves it
    edges = np.concatenate([np.r_[f[0], f[-1], f[:, 0], f[:, -1]] for f in seen])
    assert edges.min() > 250
    # it moves
    assert all((a != b).any() for a, b in pairwise(seen))


def test_view_and_ground_are_fixed(turn) -> None:
    film = turn.animate()
    canvas, posture = film._stage(None)
    limits, grounds = [], []
    for k in range(len(film)):
        film._frame(canvas, posture, k)
        limits.append([*canvas.axes.get_xlim(), *canvas.axes.get_ylim()])
        shapes = posture(k)[0]
        grounds.append([s.xy for s in shapes if 0 < s.key[0] < 2 and s.of == "revolute"])
    assert np.ptp(limits, axis=0).max() == 0
    assert len(grounds[0]) > 0
    for one in grounds[1:]:
        assert all(np.allclose(a, b, atol=1e-12) for a, b in zip(grounds[0], one, strict=True))


def test_a_run_is_shown_in_its_time(bars) -> None:
    run = bars.simulate(np.linspace(0, 0.4, 101), near=bars.at({"A": 1.2}), qd=[3.0])
    film = run.animate(fps=20)
    assert np.allclose(film.t, np.arange(9) / 20)
    assert np.allclose(film.frames.value("A"), run.at(np.arange(9) / 20).value("A"), atol=1e-14)
    slow = run.animate(fps=20, speed=0.1)
    assert len(slow) == 81
    assert slow.t[1] == pytest.approx(0.005)
    canvas, posture = slow._stage(None)
    slow._frame(canvas, posture, 3)
    assert "t = 0.015 s" in [text.get_text() for text in canvas.axes.texts]


def test_a_course_shows_its_nearest_moments(bars) -> None:
    from kic import trajectory as trajectories

    way = trajectories.quintic({"A": 1.0}, {"A": 1.5}, 1.0)
    course = way.on(bars, np.linspace(0, 1, 31))
    film = course.animate(fps=10)
    assert len(film) == 11
    assert np.abs(film.t - np.arange(11) / 10).max() <= 0.5 / 30 + 1e-12
    assert np.allclose(film.frames.value("A"), way(film.t).q[:, 0], atol=1e-12)


@pytest.mark.slow
def test_members_without_configuration_are_left_out(bars) -> None:
    some = bars.at({"D": [2.4, 0.0, 2.6]}, failures="mask")
    assert some.ok.tolist().count(True) == 2
    assert len(some.animate()) == 2


@pytest.mark.slow
def test_times_without_configuration_are_left_out(bars) -> None:
    c = bars.at({"D": [2.4, 2.45, 0.0, 2.6]}, failures="mask")
    film = animate(SimpleNamespace(t=np.arange(4) / 25, configuration=c))
    assert np.array_equal(film.t, np.array([0, 1, 3]) / 25)
    assert len(film) == 3


@pytest.mark.slow
def test_a_notebook_plays_it(turn) -> None:
    film = turn.animate()
    text = film._repr_html_()
    assert text.startswith('<img alt="four-bar, animated" src="data:image/gif;base64,R0lGOD')
    assert film._repr_html_() is not text
    assert film._repr_html_() == text
    named = replace(kic.load("four-bar"), name='a"><b>x')
    html = named.path({"A": [0.0, 0.1]}).animate()._repr_html_()
    assert html.startswith('<img alt="a&quot;&gt;&lt;b&gt;x, animated" src=')


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="install ffmpeg for mp4")
def test_films(turn, tmp_path) -> None:
    made = turn.animate().save(tmp_path / "turn.mp4").read_bytes()
    assert made[4:8] == b"ftyp"


def test_invalid_arguments_raise(turn, tmp_path, monkeypatch) -> None:
    with raises(kic.InputError, formats=("gif", "mp4")):
        turn.animate().save(tmp_path / "turn.avi")
    for dpi in (0, -1, "fine", np.nan, True, 10_000):
        with raises(kic.InputError, key="dpi"):
            turn.animate().save(tmp_path / "turn.gif", dpi=dpi)
        with raises(kic.InputError, key="dpi"):
            turn.draw().save(tmp_path / "turn.png", dpi=dpi)
    assert not list(tmp_path.iterdir())
    from matplotlib.animation import FFMpegWriter

    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with raises(kic.MissingExtraError, extra="ffmpeg"):
        turn.animate().save(tmp_path / "turn.mp4")
    assert not (tmp_path / "turn.mp4").exists()


def test_repr_mentions_save(turn) -> None:
    made = turn.animate(fps=10)
    assert repr(made) == f"<Animation of {len(made)} frames, {len(made) / 10:.1f} s; use save(file)>"
    wide, high = turn.draw().figure.get_size_inches()
    assert repr(turn.draw()) == f"<MechanismPicture of {wide:.1f} × {high:.1f} inches; use save(file)>"
    assert len(turn.animate(speed=np.float32(2.0))) == len(made)  # numbers of any kind


def test_without_matplotlib(turn, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with raises(kic.MissingExtraError, extra="plot"):
        turn.animate()
