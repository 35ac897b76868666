"""Pictures inside a page: names of their own, words that say what they show, colours for light and dark."""

from __future__ import annotations

import re
from colorsys import hls_to_rgb, rgb_to_hls
from html import escape

# what white becomes on a dark page: the page's own paper, as page.css has it
PAPER = "#17191b"
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-fA-F]{6})\b")
# paler than this is a tint of the paper, greyer than this is ink
_PALE, _GREY = 0.75, 0.15
# how light a line must be to be seen on a dark page
_SEEN = 0.58


def inline(svg: str, prefix: str, alt: str) -> str:
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
    >>> from kic.reporting.inline import inline
    >>> inline('<svg><path id="a" style="stroke: #0072b2"/></svg>', "p", "A line.")[:44]
    '<svg role="img" aria-label="A line."><path i'
    """
    svg = re.sub(r"<metadata>[\s\S]*?</metadata>|<!--[\s\S]*?-->", "", svg)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(\bhref="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = _COLOUR.sub(lambda found: f"{found[0]}; {found[1]}: light-dark({found[2]}, {dark(found[2])})", svg)
    svg = re.sub(r"\n\s*\n+", "\n", svg)
    # the words may hold backslashes, which a replacement given as text would read as groups
    opening = f'<svg role="img" aria-label="{escape(alt, quote=True)}"'
    return re.sub(r"<svg\b", lambda _: opening, svg, count=1).strip()


def dark(colour: str) -> str:
    """The colour that stands for another on a dark page: ink and tints change sides, others grow lighter.

    Examples
    --------
    >>> from kic.reporting.inline import dark
    >>> dark("#ffffff"), dark("#1a1a1a")
    ('#17191b', '#d1d1d1')
    """
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    if r == g == b == 1.0:
        return PAPER
    hue, light, saturation = rgb_to_hls(r, g, b)
    flips = light > _PALE or max(r, g, b) - min(r, g, b) < _GREY
    light = 0.9 - 0.8 * light if flips else max(light, _SEEN)
    return "#" + "".join(f"{round(255 * x):02x}" for x in hls_to_rgb(hue, light, saturation))
