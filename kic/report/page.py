"""The report as one page: drawing, tables, plots, the model's source; no scripts, nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from colorsys import hls_to_rgb, rgb_to_hls
from html import escape
from math import degrees
from pathlib import Path

from kic.configuration import Configuration
from kic.display import Table, html
from kic.io.toml import written
from kic.mechanism import Mechanism
from kic.report.plots import Plot, closure_condition_plots, coordinate_plots, point_curves
from kic.report.ranges import CoordinateRange, coordinate_ranges
from kic.report.report import report, summary

# what white becomes on a dark page: the page's own paper, as page.css has it
PAPER = "#17191b"
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-fA-F]{6})\b")
# paler than this is a tint of the paper, greyer than this is ink
_PALE, _GREY = 0.75, 0.15
# how light a line must be to be seen on a dark page
_SEEN = 0.58


def inline_svg(svg: str, prefix: str, alt: str) -> str:
    """An SVG element to stand beside others in a page.

    Parameters
    ----------
    svg : str
        The element as `Picture.svg` gives it.
    prefix : str
        Put before every name inside, so that no two pictures of a page share one.
    alt : str
        What the picture shows, in words.

    Returns
    -------
    str
        The element. Every colour is followed by a pair, one for light pages and one for dark ones, which
        browsers that know none pass over.

    Examples
    --------
    >>> from kic.report.page import inline_svg
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
    # the words may hold backslashes, which a replacement given as text would read as groups
    opening = f'<svg role="img" aria-label="{escape(alt, quote=True)}"'
    return re.sub(r"<svg\b", lambda _: opening, svg, count=1).strip()


def dark_colour(colour: str) -> str:
    """The colour that stands for another on a dark page: ink and tints change sides, others grow lighter.

    Examples
    --------
    >>> from kic.report.page import dark_colour
    >>> dark_colour("#ffffff"), dark_colour("#1a1a1a")
    ('#17191b', '#d1d1d1')
    """
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    if r == g == b == 1.0:
        return PAPER
    hue, light, saturation = rgb_to_hls(r, g, b)
    flips = light > _PALE or max(r, g, b) - min(r, g, b) < _GREY
    light = 0.9 - 0.8 * light if flips else max(light, _SEEN)
    return "#" + "".join(f"{round(255 * x):02x}" for x in hls_to_rgb(hue, light, saturation))


# of larger mechanisms so many coordinates are moved, those first that what is asked feels most
MOVED = 6
# what may be shown: the page's own style and nothing from elsewhere, whatever a model's prose says
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_TOML = re.compile(
    r'(?P<string>"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\')'
    r"|(?P<remark>#[^\n]*)"
    r"|(?P<head>^[ \t]*\[\[?[^\[\]\n]+\]\]?[ \t]*$)"
    r"|(?P<key>^[ \t]*[\w.-]+(?=[ \t]*=)|(?<=[{,])[ \t]*[\w.-]+(?=[ \t]*=))",
    re.MULTILINE,
)


def report_page(
    configuration: Configuration,
    of: str | Sequence[str] = (),
    order: int = 1,
    wrt: str | Iterable[str] | None = None,
    source: str | None = None,
    repeat: str = "",
) -> str:
    """The report of a posture as one self-contained HTML page.

    Drawing, all tables of the report, plots of every coordinate moved alone, curves of the points asked
    about, the account of the freedoms, and the model's source. The page has no script, needs no network, is
    readable in light and dark and on paper. Pictures need the extra ``plot``.

    Parameters
    ----------
    configuration : Configuration
        One posture.
    of : str or sequence of str
        Dependents, as in `Configuration.coefficients`; none by default.
    order : {1, 2, 3}
        Highest order of the coefficients.
    wrt : str or list of str, optional
        Coordinates of the coefficients and of the dynamics; by default the mechanism's own.
    source : str, optional
        Text of the model file; by default what `kic.save` would write.
    repeat : str
        The command that makes the page again, for its foot.

    Returns
    -------
    str
        HTML, to be written in UTF-8.

    Raises
    ------
    UnknownNameError, InputError
        For dependents or coordinates that are not there, another order, or a batch of postures.
    SingularError
        Where the coordinates can not drive the mechanism.
    MissingExtraError
        Without Matplotlib.

    Examples
    --------
    >>> import kic
    >>> page = kic.report_page(kic.load("four-bar").at({"A": 1.2}), of="tip")
    >>> page[:15], "<script" in page
    ('<!doctype html>', False)
    """
    from kic import __version__

    mechanism = _mechanism(configuration)
    sheet = report(mechanism, configuration, of, order, wrt)
    prose, *chapters = sheet.chapters()
    names = [of] if isinstance(of, str) else list(of)
    rows = list(configuration.coefficients(names, 1).rows) if names else []
    sections = [_drawing(configuration), ("About", _tables(prose[1]))]
    pictured = {"Mobility": closure_condition_plots(mechanism, configuration)}
    gap = (
        "The gap between conditions that count and those that follow says how sure the number of freedoms is."
    )
    for title, parts in chapters:
        figures = _figures(pictured.get(title, []), title)
        sections.append((title, _tables([*parts, gap] if figures else parts) + figures))
    sections += _moving(configuration, rows)
    text = written(mechanism) if source is None else source
    sections.append(("Model file", f'<pre tabindex="0"><code>{_coloured(text)}</code></pre>'))
    made = f"Made by kic {escape(__version__)}."
    made += f" Again: <code>{escape(repeat)}</code>" * bool(repeat)
    return _page(mechanism.name, mechanism.title, sections, made)


def _mechanism(configuration: Configuration) -> Mechanism:
    """What the posture is one of."""
    drawing = configuration._model.description
    assert isinstance(drawing, Mechanism)  # for the type checker: only mechanisms make postures
    return drawing


def _page(name: str, title: str, sections: list[tuple[str, str]], made: str) -> str:
    """The whole, from sections with their headings."""
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
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
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
    """The mechanism as an engineer draws it."""
    from kic.plotting.draw import draw

    mechanism = _mechanism(configuration)
    driven = ", ".join(configuration.coordinates)
    caption = f"The posture of this report. Vermilion: joints of the coordinates {driven}."
    picture = draw(configuration, names=True)
    plot = Plot(picture, caption, f"Drawing of {mechanism.name}: {summary(mechanism)}")
    return "Drawing", _figure(plot, "drawing", "drawing")


def _moving(configuration: Configuration, rows: list[str]) -> list[tuple[str, str]]:
    """One coordinate at a time, and where points go."""
    mechanism = _mechanism(configuration)
    spans = coordinate_ranges(mechanism, configuration)
    if not spans:
        return []
    if rows and len(spans) > MOVED:
        G = configuration.coefficients(rows, 1).G
        felt = abs(G).max(axis=0)
        spans = sorted(spans, key=lambda s: -felt[configuration.coordinates.index(s.name)])
    shown, rest = spans[:MOVED], [span.name for span in spans[MOVED:]]
    parts = [
        "<p>Each coordinate moved alone, the others staying as they are. Dots are the posture of this report."
        + (f" Not shown: {escape(', '.join(rest))}." if rest else "")
        + "</p>"
    ]
    for k, span in enumerate(shown):
        ends = "" if span.whole else _ends(span)
        figures = _figures(coordinate_plots(span, rows, mechanism), f"move-{k}")
        parts.append(
            f"<h3>Moving {escape(span.name)}</h3>{ends}{figures or '<p>Nothing that is asked changes.</p>'}"
        )
    sections = [("One coordinate at a time", "\n".join(parts))]
    drawn = _figures(point_curves(mechanism, shown, rows), "curve", "plots curves")
    said = "<p>The ways of the points asked about in these motions, in equal scales.</p>"
    return sections + [("Where points go", said + drawn)] * bool(drawn)


def _ends(span: CoordinateRange) -> str:
    """Where a coordinate can go no further."""
    factor, unit = (degrees(1.0), "°") if span.unit == "rad" else (1.0, f" {span.unit}")
    step = span.values[1] - span.values[0]
    low, high, step = (f"{factor * value:.4g}{unit}" for value in (*span.reached, step))
    return f'<p class="soft">On this branch it goes from {low} to {high}, tried in steps of {step}.</p>'


def _tables(parts: Sequence[Table | str]) -> str:
    """Prose, and tables that follow each other side by side where there is room."""
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
    """Figures side by side where there is room."""
    made = "".join(_figure(plot, f"{prefix}-{k}") for k, plot in enumerate(plots))
    return f'<div class="{kind}">{made}</div>' if made else ""


def _figure(plot: Plot, prefix: str, kind: str = "") -> str:
    """A figure with its caption; what it shows is said for those who do not see it."""
    named = f' class="{kind}"' if kind else ""
    svg = inline_svg(plot.picture.svg(), prefix, plot.alt)
    return f"<figure{named}><figcaption>{escape(plot.caption)}</figcaption>{svg}</figure>"


def _coloured(text: str) -> str:
    """TOML with its strings, remarks, headings and keys told apart."""
    out, last = [], 0
    for found in _TOML.finditer(text):
        out.append(escape(text[last : found.start()], quote=False))
        out.append(f'<span class="{found.lastgroup}">{escape(found[0], quote=False)}</span>')
        last = found.end()
    return "".join([*out, escape(text[last:], quote=False)])
