"""Report as a self-contained HTML page: drawing, tables, plots and model file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from colorsys import hls_to_rgb, rgb_to_hls
from html import escape
from math import degrees
from pathlib import Path

from kic.description.description import given_names
from kic.io.toml import written
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import check_order, instance, names_of, text
from kic.numerics.display import Table, html
from kic.ui.report.plots import Plot, closure_condition_plots, coordinate_plots, point_curves
from kic.ui.report.ranges import CoordinateRange, coordinate_ranges
from kic.ui.report.report import report, summary

# background of dark pages, equal to --paper in page.css
PAPER = "#17191b"
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-fA-F]{6})\b")
# lighter colours are tints of the background; less saturated ones are shades of ink
_TINT_LIGHTNESS_MIN, _INK_CHROMA_MAX = 0.75, 0.15
# lightness of lines that are visible on a dark page
_DARK_PAGE_LIGHTNESS_MIN = 0.58


def inline_svg(svg: str, prefix: str, alt: str) -> str:
    """Prepare an SVG element from `Picture.svg` for a page with other pictures.

    The prefix is prepended to every id, so that ids are unique within the page; `alt` is the text
    alternative. Every colour is followed by a ``light-dark`` pair, which older browsers ignore.

    Examples
    --------
    >>> from kic.ui.report.page import inline_svg
    >>> inline_svg('<svg><path id="a" style="stroke: #0072b2"/></svg>', "p", "A line.")[:44]
    '<svg role="img" aria-label="A line."><path i'
    """
    svg = re.sub(r"<metadata>[\s\S]*?</metadata>|<!--[\s\S]*?-->", "", svg)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(\bhref="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = _COLOUR.sub(
        lambda found: f"{found[0]}; {found[1]}: light-dark({found[2]}, {dark_colour(found[2])})", svg
    )
    svg = re.sub(r"\n\s*\n+", "\n", svg)
    # a function, since a replacement string would interpret backslashes of `alt`
    opening = f'<svg role="img" aria-label="{escape(alt, quote=True)}"'
    return re.sub(r"<svg\b", lambda _: opening, svg, count=1).strip()


def dark_colour(colour: str) -> str:
    """Return the counterpart of a colour on a dark page: ink and tints are inverted, other colours lightened.

    Examples
    --------
    >>> from kic.ui.report.page import dark_colour
    >>> dark_colour("#ffffff"), dark_colour("#1a1a1a")
    ('#17191b', '#d1d1d1')
    """
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    if r == g == b == 1.0:
        return PAPER
    hue, light, saturation = rgb_to_hls(r, g, b)
    flips = light > _TINT_LIGHTNESS_MIN or max(r, g, b) - min(r, g, b) < _INK_CHROMA_MAX
    light = 0.9 - 0.8 * light if flips else max(light, _DARK_PAGE_LIGHTNESS_MIN)
    return "#" + "".join(f"{round(255 * x):02x}" for x in hls_to_rgb(hue, light, saturation))


# number of coordinates with plots; those with the largest influence on the outputs come first
MOVED_COORDINATES_MAX = 6
# content security policy: only the style of the page, regardless of the text of a model
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# a replay has scripts and data of its own, and loads nothing either
_REPLAY_POLICY = "; ".join(
    [_POLICY, "script-src 'unsafe-inline' 'unsafe-eval' blob: data:"]
    + [f"{kind}-src blob: data:" for kind in ("worker", "connect", "img", "font")]
)

_TOML = re.compile(
    r'(?P<string>"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\')'
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<head>^[ \t]*\[\[?[^\[\]\n]+\]\]?[ \t]*$)"
    r"|(?P<key>^[ \t]*[\w.-]+(?=[ \t]*=)|(?<=[{,])[ \t]*[\w.-]+(?=[ \t]*=))",
    re.MULTILINE,
)


def to_html(
    configuration: Configuration,
    of: str | Sequence[str] = (),
    *,
    order: int = 1,
    wrt: str | Iterable[str] | None = None,
    source: str | None = None,
    repeat: str = "",
    replay: str = "",
) -> str:
    """Return the report on a configuration as one self-contained HTML page.

    The page contains a drawing, all tables of the report, plots over each coordinate moved alone, curves
    of the requested points, the mobility and the model file. It has no script, needs no network and
    supports light pages, dark pages and print. Pictures require the extra ``plot``.

    Parameters
    ----------
    of : str or sequence of str
        Outputs, as in `Configuration.coefficients`; none by default.
    order : {1, 2, 3}
        Highest order of the coefficients.
    wrt : str or list of str, optional
        Coordinates of the coefficients and the dynamics; by default those of the mechanism.
    source : str, optional
        Text of the model file; by default that of `Mechanism.save`.
    repeat : str
        Command that reproduces the page, shown at its end.
    replay : str
        Page of `Viewer.to_html`, which is shown below the drawing; the report then has its scripts.

    Returns
    -------
    str
        HTML, to be encoded in UTF-8.

    Raises
    ------
    UnknownNameError, InputError
        If an output or coordinate does not exist, `order` is out of range, or this is a batch.
    SingularError
        If the coordinates cannot drive the mechanism.
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> page = kic.load("four-bar").at({"A": 1.2}).to_html(of="tip")
    >>> page[:15], "<script" in page
    ('<!doctype html>', False)
    """
    from kic import __version__

    of, order, repeat = names_of(of), check_order(order), text("repeat", repeat)
    replay = text("replay", replay)
    mechanism = _mechanism(configuration)
    full_report = report(mechanism, configuration, of, order, wrt)
    prose, *chapters = full_report.chapters()
    rows = list(configuration.coefficients(of, order=1).rows) if of else []
    sections = [_drawing(configuration), ("About", _tables(prose[1]))]
    if replay:
        frame = '<iframe class="replay" sandbox="allow-scripts" title="Replay of a motion"'
        sections.insert(1, ("Replay", f'{frame} srcdoc="{escape(replay, quote=True)}"></iframe>'))
    pictured = {"Mobility": closure_condition_plots(mechanism, configuration)}
    gap = "A large gap between independent and redundant conditions indicates a reliable mobility."
    for title, parts in chapters:
        figures = _figures(pictured.get(title, []), title)
        sections.append((title, _tables([*parts, gap] if figures else parts) + figures))
    sections += _moving(configuration, rows)
    shown = written(mechanism) if source is None else text("source", source)
    sections.append(("Model file", f'<pre tabindex="0"><code>{_highlighted(shown)}</code></pre>'))
    made = f"Made by kic {escape(__version__)}."
    made += f" Reproduce with: <code>{escape(repeat)}</code>" * bool(repeat)
    policy = _REPLAY_POLICY if replay else _POLICY
    return _page(mechanism.name, mechanism.info.title, sections, made, policy)


def _mechanism(configuration: Configuration) -> Mechanism:
    """Return the mechanism of a configuration."""
    description = model_of(instance("configuration", configuration, Configuration)).description
    assert isinstance(description, Mechanism)  # for the type checker
    return description


def _page(name: str, title: str, sections: list[tuple[str, str]], made: str, policy: str) -> str:
    """Return the page, assembled from sections with headings."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    marks = [(re.sub(r"\W+", "-", heading.lower()).strip("-"), heading) for heading, _ in sections]
    contents = "".join(f'<li><a href="#{mark}">{escape(heading)}</a></li>' for mark, heading in marks)
    body = "\n".join(
        f'<section id="{mark}" aria-labelledby="{mark}-head">\n'
        f'<h2 id="{mark}-head">{escape(heading)}</h2>\n{content}\n</section>'
        for (mark, heading), (_, content) in zip(marks, sections, strict=True)
    )
    headline = f"<p>{escape(title)}</p>" if title else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="kic">
<title>{escape(name)}{escape(f" – {title}" if title else "")}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(name)}</h1>{headline}
</header>
<div class="columns">
<nav aria-labelledby="contents-head">
<h2 id="contents-head">On this page</h2>
<ol>{contents}</ol>
</nav>
<main>
{body}
</main>
</div>
<footer><p>{made}</p></footer>
</body>
</html>
"""


def _drawing(configuration: Configuration) -> tuple[str, str]:
    """Return the section with the drawing of the mechanism."""
    from kic.plotting.draw import draw

    mechanism = _mechanism(configuration)
    driven = ", ".join(mechanism.actuators)
    kind = "the coordinates" if given_names(mechanism, "actuators") is None else "actuators"
    caption = f"Configuration of this report. Vermilion: {kind} {driven or 'none'}."
    picture = draw(configuration, names=True)
    plot = Plot(picture, caption, f"Drawing of {mechanism.name}: {summary(mechanism)}")
    return "Drawing", _figure(plot, "drawing", "drawing")


def _moving(configuration: Configuration, rows: list[str]) -> list[tuple[str, str]]:
    """Return the sections with plots over each coordinate and curves of points."""
    mechanism = _mechanism(configuration)
    spans = coordinate_ranges(mechanism, configuration)
    if not spans:
        return []
    if rows and len(spans) > MOVED_COORDINATES_MAX:
        G = configuration.coefficients(rows, order=1).G
        influence = abs(G).max(axis=0)
        spans = sorted(spans, key=lambda s: -influence[configuration.coordinates.index(s.name)])
    shown, rest = spans[:MOVED_COORDINATES_MAX], [span.name for span in spans[MOVED_COORDINATES_MAX:]]
    parts = [
        "<p>Each coordinate moves alone; the others keep their values. Dots mark the given configuration."
        + (f" Not shown: {escape(', '.join(rest))}." if rest else "")
        + "</p>"
    ]
    for k, span in enumerate(shown):
        ends = "" if span.complete else _ends(span)
        figures = _figures(coordinate_plots(span, rows, mechanism), f"move-{k}")
        parts.append(
            f"<h3>Moving {escape(span.name)}</h3>{ends}{figures or '<p>None of the outputs changes.</p>'}"
        )
    sections = [("One coordinate at a time", "\n".join(parts))]
    drawn = _figures(point_curves(mechanism, shown, rows), "curve", "plots curves")
    text = "<p>Curves of the requested points in these motions, with equal scales.</p>"
    return sections + [("Curves of points", text + drawn)] * bool(drawn)


def _ends(span: CoordinateRange) -> str:
    """Return a sentence with the limits of a coordinate."""
    factor, unit = (degrees(1.0), "°") if span.unit == "rad" else (1.0, f" {span.unit}")
    step = span.values[1] - span.values[0]
    low, high, step = (f"{factor * value:.4g}{unit}" for value in (*span.limits, step))
    return f'<p class="soft">Range on this branch: {low} to {high}, in steps of {step}.</p>'


def _tables(parts: Sequence[Table | str]) -> str:
    """Return paragraphs and tables; consecutive tables are placed side by side."""
    out: list[str] = []
    group: list[str] = []
    for part in [*parts, ""]:
        if isinstance(part, Table):
            label = escape(part.caption.strip(), quote=True)
            region = f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
            group.append(f"{region}{html(part)}</div>")
            continue
        if group:
            out.append(f'<div class="tables">{"".join(group)}</div>')
            group = []
        if part.strip():
            out.append(re.sub(r"`([^`<>]+)`", r"<code>\1</code>", html(part)))
    return "\n".join(out)


def _figures(plots: Sequence[Plot], prefix: str, kind: str = "plots") -> str:
    """Return figures, placed side by side."""
    made = "".join(_figure(plot, f"{prefix}-{k}") for k, plot in enumerate(plots))
    return f'<div class="{kind}">{made}</div>' if made else ""


def _figure(plot: Plot, prefix: str, kind: str = "") -> str:
    """Return a figure with its caption and text alternative."""
    named = f' class="{kind}"' if kind else ""
    svg = inline_svg(plot.picture.svg(), prefix, plot.alt)
    return f"<figure{named}><figcaption>{escape(plot.caption)}</figcaption>{svg}</figure>"


def _highlighted(text: str) -> str:
    """Return TOML with highlighted strings, comments, headings and keys."""
    out, last = [], 0
    for found in _TOML.finditer(text):
        out.append(escape(text[last : found.start()], quote=False))
        out.append(f'<span class="{found.lastgroup}">{escape(found[0], quote=False)}</span>')
        last = found.end()
    return "".join([*out, escape(text[last:], quote=False)])
