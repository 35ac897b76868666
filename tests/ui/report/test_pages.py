"""HTML reports and drawings from the command line, against the results that they show."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from commands import run
from raising import raises

import kic
from kic.numerics.display import Summary
from kic.plotting import animate
from kic.ui.report.page import PAPER, dark_colour, inline_svg
from kic.ui.report.plots import closure_condition_plots, coordinate_plots, point_curves
from kic.ui.report.ranges import coordinate_ranges
from kic.ui.report.report import default_outputs, report, report_data

pytest.importorskip("matplotlib", reason="pictures need Matplotlib")

BARE = kic.Mechanism(
    "bare",
    info={
        "title": 'Quotes " and <angles> & more',
        "about": "A `tip` with <script>alert(1)</script>.",
    },
    bodies=[kic.Body("rod")],
    joints=[kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))],
    points=[kic.Point("tip", "rod", at=(1, 0, 0))],
)
BALL = kic.Mechanism(
    "ball",
    bodies=[kic.Body("bob", mass=2.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))],
    joints=[kic.Joint("hip", "spherical", ("ground", "bob"), at=(0, 0, 0))],
    points=[kic.Point("tip", "bob", at=(0, 0, -2))],
    gravity=(0, 0, -9.81),
)
VOID = ("meta", "br", "path", "use", "rect", "link", "img", "hr", "input")


class Outline(HTMLParser):
    """Names, addresses and nesting of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._noted(tag, dict(attrs))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._noted(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def _noted(self, tag: str, attrs: dict[str, str | None]) -> None:
        self.tags.append(tag)
        self.attributes.append((tag, attrs))
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs[key] for key in ("href", "xlink:href", "src") if key in attrs]


# --- the page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "of"),
    [
        (kic.load("four-bar"), "tip"),
        (kic.load("horn-two-link"), ["tip", "reach", "link2"]),
        (kic.load("parallel-serial"), "hand.x"),
        (BARE, "tip"),
        (BALL, ["tip", "bob.wx"]),
        (kic.load("ladder"), ()),
    ],
    ids=lambda m: m.name if isinstance(m, kic.Mechanism) else "",
)
def test_page_is_self_contained(mechanism: kic.Mechanism, of: str | list[str]) -> None:
    if mechanism.name == "parallel-serial":
        of = default_outputs(mechanism)[0]
    c = mechanism.at()
    text = c.to_html(of, order=2)
    page = Outline(text)  # every element that opens is closed in its place
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(page.tags)
    assert not re.search(r"\bon[a-z]+=|@import|url\((?!#)", text)
    assert not re.findall(r"https?://(?!www\.w3\.org/)", text.split('<section id="model-file"')[0])
    # whatever is seen has words
    for tag, attrs in page.attributes:
        if tag == "svg":
            assert attrs["role"] == "img"
            assert len(attrs["aria-label"]) > 10
    assert page.tags.count("figcaption") == page.tags.count("figure") == page.tags.count("svg")
    assert page.tags.count("caption") == page.tags.count("table")
    for used in re.findall(r"url\(#([^)]+)\)", text):
        assert used in page.ids
    # the contents lead to all sections, in their order
    sections = [a["id"] for tag, a in page.attributes if tag == "section"]
    assert page.links[: len(sections)] == [f"#{mark}" for mark in sections]
    assert sections[0] == "drawing"
    assert sections[-1] == "model-file"
    assert ("mobility" in sections) == bool(
        mechanism.mobility().cuts or mechanism._fixed_distances or mechanism.couplings
    )


@pytest.mark.slow
def test_a_page_has_every_table_of_the_report() -> None:
    m = kic.load("five-bar")
    c = m.at({"A": 1.2, "E": 1.5})
    sheet = report(m, c, ["tip", "B"], 3, ["tip.x", "tip.y"])
    text = c.to_html(["tip", "B"], order=3, wrt=["tip.x", "tip.y"])
    tables = [part for _, parts in sheet.chapters() for part in parts if not isinstance(part, str)]
    assert len(tables) > 9
    for table in tables:
        assert table.html() in text
    assert text.count("<table>") == len(tables)
    for title in ("Configuration", "Coefficients of tip", "Coefficients of B", "Dynamics"):
        assert f">{title}</h2>" in text


def test_model_text_is_escaped() -> None:
    text = BARE.at().to_html("tip", repeat="kic report '<b>'")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "<code>tip</code>" in text
    assert "Quotes &quot; and &lt;angles&gt; &amp; more" in text
    assert "kic report &#x27;&lt;b&gt;&#x27;" in text
    assert "default-src 'none'" in text
    assert "I*, P* and loads are not available." in text


@pytest.mark.slow
def test_the_source_of_the_model_is_in_the_page() -> None:
    m = kic.load("four-bar")
    source = 'name = \'x\' # <remark>\n[[bodies]]\nkey = """a\nb"""\nunits = { length = \'m\' }\n'
    text = m.at().to_html(source=source)
    shown = text.split("<pre", 1)[1].split("</pre>")[0]
    plain = re.sub(r"<[^>]+>", "", shown.split(">", 1)[1]).replace("&lt;", "<").replace("&gt;", ">")
    assert plain == source
    for part in (
        '<span class="comment"># &lt;remark&gt;</span>',
        '<span class="head">[[bodies]]</span>',
        '<span class="string">"""a\nb"""</span>',
        '<span class="key">key</span>',
        '<span class="key"> length</span>',
    ):
        assert part in shown, part
    # without one it is what is saved, which is read back the same
    written = BARE.at().to_html().split("<pre", 1)[1]
    assert '<span class="string">"bare"</span>' in written


@pytest.mark.slow
def test_a_replay_is_embedded() -> None:
    """Only the page with a replay has scripts, within a frame of its own, and loads nothing."""
    m = kic.load("four-bar")
    replay = "<!doctype html><script>run('\"&')</script>"
    text = m.at().to_html(replay=replay)
    page = Outline(text)
    frames = [attrs for tag, attrs in page.attributes if tag == "iframe"]
    assert [(one["srcdoc"], one["sandbox"]) for one in frames] == [(replay, "allow-scripts")]
    assert "script" not in page.tags
    policy = next(a["content"] for t, a in page.attributes if t == "meta" and "http-equiv" in a)
    assert not re.search(r"http|\*|'self'", policy)
    assert m.at().to_html() == text.replace(
        text[text.index('<section id="replay"') : text.index('<section id="about"')], ""
    ).replace('<li><a href="#replay">Replay</a></li>', "").replace(
        policy, "default-src 'none'; style-src 'unsafe-inline'"
    )
    with raises(kic.InputError, key="replay"):
        m.at().to_html(replay=3)


# --- what is plotted


def lines(plot: object) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Lines of a plot by their labels."""
    return {line.get_label(): line.get_data() for line in plot.picture.axes.get_lines()}


@pytest.mark.slow
def test_ranges_are_configurations_of_one_coordinate() -> None:
    m = kic.load("quadruped")
    c = m.at()
    start = {q: float(c.value(q)) for q in m.coordinates}
    for span in coordinate_ranges(m, c)[:2]:
        ok = span.configuration.ok
        assert ok[span.index]
        assert not span.complete
        for name, value in start.items():
            expected = span.values if name == span.name else value
            assert np.abs(span.configuration.value(name) - expected)[ok].max() < 1e-12
        assert np.array_equal(np.diff(np.flatnonzero(ok)), np.ones(ok.sum() - 1))  # to an end, no further
        assert span.limits == (span.values[ok][0], span.values[ok][-1])
        assert np.abs(span.configuration.value("head")[span.index] - c.value("head")).max() < 1e-12
        assert span.values[-1] - span.values[0] == pytest.approx(2 * np.pi)
    slides = coordinate_ranges(kic.load("rrprrr"), kic.load("rrprrr").at())
    assert {span.unit for span in slides} == {"rad", "m"}
    assert all(span.complete for span in slides)


@pytest.mark.slow
def test_ranges_end_at_dead_centres() -> None:
    m = kic.load("four-bar")
    angles = m.path({"A": 1.2 + np.linspace(0, 2 * np.pi, 2000)}).value("D")
    rocked = replace(m, coordinates=["D"])
    (span,) = coordinate_ranges(rocked, rocked.at())
    step = span.values[1] - span.values[0]
    low, high = span.limits
    assert angles.min() - 1e-6 <= low <= angles.min() + step
    assert angles.max() - step <= high <= angles.max() + 1e-6
    text = rocked.at().to_html("tip")
    ends = f"{np.degrees(low):.4g}° to {np.degrees(high):.4g}°"
    assert f"Range on this branch: {ends}, in steps of 3°." in text


def test_balls_are_moved_in_open_chains_alone() -> None:
    assert [span.name for span in coordinate_ranges(BALL, BALL.at())] == ["hip.1", "hip.2", "hip.3"]
    loop = replace(
        BALL,
        points=[*BALL.points, kic.Point("hook", "ground", at=(0.5, 0, -2))],
        distances=[kic.Distance("rod", ("tip", "hook"), fixed=True)],
        coordinates=["hip.1", "hip.3"],
    )
    c = loop.at()
    assert coordinate_ranges(loop, c) == []
    assert report_data(loop, c, "tip")["phi"] == [None, None]
    assert "hip.1" in report(loop, c, "tip").text()
    assert ">One coordinate at a time</h2>" not in c.to_html("tip")


def test_panels_show_kics_own_numbers() -> None:
    m = kic.load("four-bar")
    c = m.at({"A": 1.2})
    (span,) = coordinate_ranges(m, c)
    plots = coordinate_plots(span, ["tip.x", "tip.y", "tip.z", "D", "A"], m)
    value, angle, inertia, effort, force, moment = plots
    turn = m.path({"A": span.values}, near=c)
    x = np.degrees(span.values)
    for plot, label, expected in (
        (value, "tip.x", turn.value("tip.x")),
        (value, "tip.y", turn.value("tip.y")),
        (angle, "D", np.degrees(turn.value("D"))),
        (inertia, "A", turn.dynamics().I[:, 0, 0]),
        (effort, "A", -turn.dynamics().load[:, 0]),
        (force, "fy", turn.shaking_force(1.0).force[:, 1]),
        (moment, "mz", turn.shaking_force(1.0).moment[:, 2]),
    ):
        shown = lines(plot)[label]
        assert np.array_equal(shown[0], x)
        assert np.abs(shown[1] - expected).max() < 1e-9 * np.abs(expected).max(), label
        dots = [line for line in plot.picture.axes.get_lines() if line.get_marker() == "o"]
        here = {float(line.get_ydata()[0]) for line in dots}
        assert float(shown[1][span.index]) in here
    assert "tip.z" not in lines(value)  # it stays where it is
    assert value.caption == "tip.x, tip.y (m)"
    assert angle.caption == "D (°)"
    assert inertia.caption == "effective inertia of A (kg m²)"
    assert effort.caption == "holding effort of A (N m)"
    assert force.caption == "shaking force (N per squared rate of A)"
    least, most = turn.value("tip.x").min(), turn.value("tip.x").max()
    assert f"tip.x from {least:.4g} to {most:.4g}" in value.alt
    assert "over A from -111.2° to 248.8°" in value.alt


@pytest.mark.slow
def test_panels_of_actuators() -> None:
    m = kic.load("walking-machine")
    c = m.at()
    span = coordinate_ranges(m, c)[1]
    effort, rate, power = coordinate_plots(span, [], m)[-3:]
    ok = span.configuration.ok
    near = span.configuration[ok]
    G = near.coefficients(m.actuators, order=1).G
    T = np.linalg.pinv(np.swapaxes(G, 1, 2)) @ -near.dynamics().load[..., None]  # of least norm
    for plot, expected in ((effort, T[..., 0]), (rate, G[..., 1]), (power, T[..., 0] * G[..., 1])):
        for name, (_, y) in lines(plot).items():
            if name in m.actuators:
                want = expected[:, m.actuators.index(name)]
                assert np.abs(y[ok] - want).max() < 1e-10 * np.abs(expected).max(), (plot.caption, name)
    assert effort.caption == "holding effort (N m)"
    assert rate.caption == "rate per rate of B1 (rad/rad)"
    assert power.caption == "power per rate of B1 (J/rad)"
    data = report_data(m, c)
    names, efforts = zip(*data["static_efforts"].items(), strict=True)
    assert list(names) == data["actuators"] == list(m.actuators)
    assert np.abs(efforts - T[list(np.flatnonzero(ok)).index(span.index), :, 0]).max() < 1e-10


def test_panels_omit_unavailable_quantities() -> None:
    (span,) = coordinate_ranges(BARE, BARE.at())
    (only,) = coordinate_plots(span, ["tip.x", "tip.y", "rod.wz"], BARE)  # no masses, and a rate has no value
    assert only.caption == "tip.x, tip.y (m)"
    assert coordinate_plots(span, ["tip.z"], BARE) == []
    many = kic.load("puma560")
    rows = [f"{body.name}.{axis}" for body in many.bodies for axis in "xyz"]
    first = coordinate_plots(coordinate_ranges(many, many.at())[0], rows, many)[0]
    shown = [name for name in lines(first) if not name.startswith("_")]
    assert len(shown) == 6
    assert "more with smaller changes" in first.caption


@pytest.mark.slow
def test_poles_do_not_flatten_the_rest() -> None:
    m = kic.load("slider-crank")
    free = kic.load("quadruped")
    c = free.at()
    span = coordinate_ranges(free, c)[0]
    plots = coordinate_plots(span, [], free)
    cut = [plot for plot in plots if "cut off" in plot.caption]
    assert cut
    for plot in cut:
        low, high = plot.picture.axes.get_ylim()
        y = np.concatenate([data[1] for name, data in lines(plot).items() if not name.startswith("_")])
        assert np.nanmax(y) > high or np.nanmin(y) < low
    (whole,) = coordinate_ranges(m, m.at())
    for plot in coordinate_plots(whole, ["A"], m):
        low, high = plot.picture.axes.get_ylim()
        y = np.concatenate([data[1] for name, data in lines(plot).items() if not name.startswith("_")])
        if "cut off" not in plot.caption:
            assert low <= np.nanmin(y) <= np.nanmax(y) <= high


def test_curves_are_ways_of_points() -> None:
    m = kic.load("four-bar")
    c = m.at({"A": 1.2})
    spans = coordinate_ranges(m, c)
    (plot,) = point_curves(m, spans, ["tip.x", "tip.y", "D"])
    turn = m.path({"A": spans[0].values}, near=c).value("tip")
    shown = lines(plot)["moving A"]
    assert np.abs(np.stack(shown, axis=-1) - turn[:, :2]).max() < 1e-12
    assert plot.picture.axes.get_aspect() == 1.0
    assert point_curves(m, spans, ["D"]) == []
    arm = kic.load("puma560")
    above, front = point_curves(arm, coordinate_ranges(arm, arm.at()), ["tool"])
    assert "xy plane" in above.caption
    assert "xz plane" in front.caption


@pytest.mark.parametrize("name", ["bricard", "five-bar", "peaucellier"])
def test_conditions_are_those_of_the_account(name: str) -> None:
    m = kic.load(name)
    c = m.at()
    (plot,) = closure_condition_plots(m, c)
    account = m.mobility(c)
    kept = account.coordinates - account.first_order
    shown = lines(plot)
    assert np.array_equal(shown[f"{kept} independent"][1], account.shares[:kept])
    follow = sum(account.conditions.values()) - kept
    assert len(shown[f"{follow} redundant"][0]) == follow == account.redundant
    assert f"{kept} conditions are independent" in plot.alt
    arm = kic.load("puma560")
    assert closure_condition_plots(arm, arm.at()) == []


def test_pictures_in_a_page_share_no_names() -> None:
    svg = '<svg width="1"><!-- x --><metadata><a/></metadata><g id="a"/><use xlink:href="#a"/>'
    svg += '<path clip-path="url(#a)" style="fill: #ffffff; stroke: #0072b2"/></svg>'
    got = inline_svg(svg, "p", 'an "alt" & more')
    assert got.startswith('<svg role="img" aria-label="an &quot;alt&quot; &amp; more" width="1">')
    assert 'id="p-a"' in got
    assert 'href="#p-a"' in got
    assert "url(#p-a)" in got
    assert "metadata" not in got
    assert "<!--" not in got
    assert f"fill: #ffffff; fill: light-dark(#ffffff, {PAPER})" in got
    assert f"stroke: #0072b2; stroke: light-dark(#0072b2, {dark_colour('#0072b2')})" in got


def test_colours_are_seen_on_dark_paper() -> None:
    from kic.plotting import figures

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    paper = luminance(PAPER)
    names = ("INK", "ORANGE", "SKY", "GREEN", "YELLOW", "BLUE", "VERMILION", "PURPLE")
    for name in names:
        contrast = (luminance(dark_colour(getattr(figures, name))) + 0.05) / (paper + 0.05)
        assert contrast > 4.5, (name, contrast)
    css = (Path(kic.__file__).parent / "ui" / "report" / "page.css").read_text(encoding="utf-8")
    assert f"--paper: {PAPER};" in css


# --- tables


def test_tables_are_captioned_and_scoped() -> None:
    sheet = Summary("title")
    sheet.say("before")
    sheet.chapter("One")
    sheet.matrix("numbers <&>", ["a", "b"], ["x", "y"], np.array([[1.0, 0.25], [0.125, 3e-20]]))
    sheet.chapter("Empty")
    sheet.chapter("Two")
    sheet.texts("words", ["r"], ["value", "|", "what"], [["1.5", "|", "word"]])
    assert [(title, len(parts)) for title, parts in sheet.chapters()] == [("", 1), ("One", 1), ("Two", 1)]
    html = sheet.html()
    assert "numbers &lt;&amp;&gt;</caption>" in html
    assert html.count('scope="row"') == 3
    assert html.count('scope="col"') == 3 + 3
    # what brings decimal points below each other is no part of the text
    assert '<td data-pad=".000">1</td><td>0.25</td>' in html
    assert '<td>0.125</td><td data-pad=".00">0</td>' in html
    # a bar is a rule
    assert '<td>1.5</td><td style="text-align:left;border-left:1px solid">word</td>' in html
    assert "title" in sheet.text()
    assert "One" not in sheet.text()


# --- commands


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    said = run("report", "four-bar", "--at", "A=70deg", "--of", "tip,D", "--order", "2", "--html", str(file))
    text = file.read_text(encoding="utf-8")
    assert said == f"{file}: {len(text.encode()) / 1000:.0f} kB; open it in a browser.\n"
    assert "kic report four-bar --at A=70deg --of tip,D --order 2 --html page.html</code>" in text
    assert str(tmp_path) not in text
    m = kic.load("four-bar")
    for table in report(m, m.at({"A": np.radians(70)}), ["tip", "D"], 2).chapters()[-1][1]:
        assert isinstance(table, str) or table.html() in text
    assert "plate with corners B, C and tip" in text  # the file as it was written, with its comments
    assert run("report", "horn-two-link", "--html", "-").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--html", "x.html", "--json"], 2, "--html and --json exclude each other"),
        (["--html", "no-such-folder/x.html"], 1, "cannot be written: No such file or directory"),
        (["--html", "x.html", "--of", "nose"], 1, "No part 'nose'"),
    ],
)
def test_invalid_page_arguments_are_reported(
    arguments: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in run("report", "horn-two-link", *arguments, code=code)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    file = str(tmp_path / "x.html")
    assert "pip install 'kic[plot]'" in run("report", "horn-two-link", "--html", file, code=1)
    assert "pip install 'kic[plot]'" in run("draw", "horn-two-link", "-o", str(tmp_path / "x.png"), code=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_command_draws(tmp_path: Path, ending: str, start: bytes) -> None:
    file = tmp_path / f"x.{ending}"
    assert run("draw", "four-bar", "--at", "A=70deg", "--names", "-o", str(file)) == ""
    assert file.read_bytes().startswith(start)


@pytest.mark.slow
def test_drawings_follow_their_options(tmp_path: Path) -> None:
    def drawn(*options: str) -> bytes:
        file = tmp_path / "x.svg"
        run("draw", "puma560", *options, "-o", str(file))
        return file.read_bytes()

    plain = drawn()
    assert drawn() == plain
    others = [
        drawn(*options)
        for options in (
            ("--at", "waist=40deg"),
            ("--names",),
            ("--view", "top"),
            ("--view", "40,20"),
            ("--move", "shoulder=0..60deg"),
        )
    ]
    assert len({plain, *others}) == 6
    m = kic.load("puma560")
    assert drawn("--view", "40,20") == m.at().draw(view=(40.0, 20.0)).save(tmp_path / "y.svg").read_bytes()
    way = m.at({"shoulder": np.linspace(0, np.pi / 3, 49)} | zeros(m, "shoulder"))
    assert drawn("--move", "shoulder=0..60deg") == way.draw().save(tmp_path / "y.svg").read_bytes()
    traced = drawn("--move", "shoulder=0..60deg", "--trace", "link6,tool")
    assert traced == way.draw().trace(["link6", "tool"]).save(tmp_path / "y.svg").read_bytes()


@pytest.mark.slow
def test_the_command_animates(tmp_path: Path) -> None:
    file = tmp_path / "turn.gif"
    assert run("draw", "four-bar", "--move", "A=60deg..420deg", "--trace", "tip", "-o", str(file)) == ""
    from PIL import Image

    with Image.open(file) as film:
        assert film.n_frames == 48  # the last of 49 configurations equals the first


@pytest.mark.slow
def test_only_whole_turns_omit_the_last_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[kic.Configuration] = []
    make = animate.animate
    monkeypatch.setattr(animate, "animate", lambda c, **how: shown.append(c) or make(c, **how))
    for move in ("A=60deg..420deg", "A=60deg..780deg", "A=60deg..400deg"):
        run("draw", "four-bar", "--move", move, "--dpi", "20", "-o", str(tmp_path / "x.gif"))
    assert [c.batch for c in shown] == [(48,), (48,), (49,)]
    m = kic.load("four-bar")
    whole = m.path({"A": np.linspace(np.radians(60), np.radians(420), 49)})
    assert np.abs(shown[0].value("tip") - whole.value("tip")[:-1]).max() < 1e-12
    # steps from the last member shown to the first are as those between
    assert np.ptp(np.diff(np.append(shown[0].value("A"), shown[0].value("A")[0] + 2 * np.pi))) < 1e-12
    run("draw", "four-bar", "--move", "A=60deg..420deg", "-o", str(tmp_path / "x.svg"))
    whole.draw().save(tmp_path / "y.svg")
    assert (tmp_path / "x.svg").read_bytes() == (tmp_path / "y.svg").read_bytes()  # a fan keeps all


@pytest.mark.slow
def test_moving_a_row(tmp_path: Path) -> None:
    m = kic.load("four-bar")
    for typed, name, way in (
        ("D=128deg..150deg", "D", np.linspace(*np.radians([128, 150]), 49)),
        ("tip.x=0.1..0.09", "tip.x", np.linspace(0.1, 0.09, 49)),
    ):
        run("draw", "four-bar", "--move", typed, "-o", str(tmp_path / "x.svg"))
        m.path({name: way}).draw().save(tmp_path / "y.svg")
        assert (tmp_path / "x.svg").read_bytes() == (tmp_path / "y.svg").read_bytes()
    refused = run("draw", "five-bar", "--move", "tip.x=20..21", "-o", str(tmp_path / "z.svg"), code=1)
    assert "must name a coordinate of 'five-bar', which has 2 degrees of freedom, got 'tip.x'" in refused
    assert "Coordinates: A, E" in refused
    assert not (tmp_path / "z.svg").exists()


def zeros(m: kic.Mechanism, but: str) -> dict[str, float]:
    """The drawing's coordinates, but one."""
    return {q: float(m.at().value(q)) for q in m.coordinates if q != but}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-o", "x.jpg"], 1, "`file` of a picture must end in .png, .svg or .pdf"),
        (["-o", "x.gif"], 2, "'x.gif' requires a motion. Give --move NAME=FROM..TO"),
        (["-o", "x.svg", "--trace", "tip"], 2, "--trace requires a motion. Give --move"),
        (
            ["-o", "x.svg", "--move", "A=1..2", "--trace", "top"],
            1,
            "No point, frame, centre of mass or body 'top'",
        ),
        (["-o", "x.gif", "--move", "A=1..2", "--names"], 2, "an animation shows no names"),
        ([], 2, "Missing option '-o'"),
        (["-o", "x.png", "--view", "left"], 2, "'left' is not a view. Give top, front, side or two angles"),
        (["-o", "x.png", "--move", "A"], 2, "'A' is not a motion. Write it as NAME=FROM..TO"),
        (
            ["-o", "x.png", "--move", "E=0..1"],
            1,
            "No coordinate 'E' in 'four-bar'. Available: A, B, C, D, tip.x",
        ),
        (["-o", "x.png", "--move", "tip=0..1"], 1, "'tip' has 3 rows; name each: tip.x"),
        (["-o", "x.png", "--move", "D=60deg"], 2, "'D=60deg' is not a motion. Write it as NAME=FROM..TO"),
        (
            ["-o", "x.png", "--move", "D=60deg..200deg"],
            1,
            "Give --near a configuration closer to the desired",
        ),
        (["-o", "x.png", "--move", "A=0..ten"], 2, "'ten' for 'A' is not a number"),
        (["-o", "no-such-folder/x.png"], 1, "cannot be written: No such file or directory"),
    ],
)
def test_invalid_drawing_arguments_are_reported(
    arguments: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in run("draw", "four-bar", *arguments, code=code)
    assert not list(tmp_path.iterdir())


def test_the_report_in_other_coordinates() -> None:
    m = kic.load("five-bar")
    d = json.loads(run("report", "five-bar", "--wrt", "tip.x,tip.y", "--of", "A,E", "--order", "3", "--json"))
    c = m.at()
    rows, dynamics = (
        c.coefficients(["A", "E"], order=3, wrt=["tip.x", "tip.y"]),
        c.dynamics(wrt=["tip.x", "tip.y"]),
    )
    assert d["wrt"] == ["tip.x", "tip.y"]
    assert d["wrt_units"] == ["in", "in"]
    for key in ("G", "H", "D"):
        assert d[key] == getattr(rows, key).tolist()
    for key in ("I", "P", "load", "damping"):
        assert d[key] == getattr(dynamics, key).tolist()
    text = run("report", "five-bar", "--wrt", "tip.x", "--wrt", "tip.y", "--of", "A")
    assert "A (revolute joint): value | G = ∂u/∂q, per in" in text
    assert "mass matrix I* (lbf s²/in)" in text
    own = json.loads(run("report", "five-bar", "--json"))
    assert own["wrt"] == own["coordinates"] == ["A", "E"]
    assert "mobility 2" in run("report", "five-bar", "--wrt", "tip.x", code=1)
    assert "No part 'nose'" in run("report", "five-bar", "--wrt", "nose", code=1)
    stretched = run("report", "horn-two-link", "--wrt", "tip.x,tip.y", code=1)
    assert "Coordinates tip.x, tip.y cannot drive 'horn-two-link' here" in stretched
