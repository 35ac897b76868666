"""The report's page in a real browser: no errors, no requests, everything visible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import NAMES, Tab, browser, found

import kic
from kic.ui.report.report import default_outputs, report

pytest.importorskip("matplotlib", reason="the page's pictures need Matplotlib")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not found(), reason=f"no browser: none of {', '.join(NAMES)} is installed"),
]

SHOWN = {
    "four-bar": {"A": 1.2},
    "puma560": [0.3, 0.5, -2.2, 0.7, 0.8, -0.4],
}
# boxes of what must be seen, with the room that scrolls around them
BOXES = """
[...document.querySelectorAll(%r)].map(e => {
  const b = e.getBoundingClientRect();
  return [b.width, b.height, b.left, b.right, e.getAttribute("aria-label") || e.textContent.slice(0, 60)];
})
"""
COLOURS = """
(() => {
  const style = getComputedStyle(document.body);
  const path = document.querySelector(".plots svg path[style*=stroke]");
  return [style.backgroundColor, style.color, getComputedStyle(path).stroke];
})()
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the files of the pages."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, posture in SHOWN.items():
        m = kic.load(name)
        made[name] = folder / f"{name}.html"
        made[name].write_text(m.at(posture).to_html(default_outputs(m), order=2), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Return a page of a new browser."""
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


def boxes(tab: Tab, what: str) -> list[list[Any]]:
    """Return width, height, left, right and text of elements."""
    return tab.run(BOXES % what)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", SHOWN)
def test_everything_is_visible(tab: Tab, pages: dict[str, Path], name: str, width: int, dark: bool) -> None:
    tab.open(pages[name], width, dark)
    assert tab.complaints() == []
    assert tab.requests() == [pages[name].resolve().as_uri()]
    assert tab.run("document.title").startswith(f"{name} – ")
    m = kic.load(name)
    sheet = report(m, m.at(SHOWN[name]), default_outputs(m), 2)
    tables = [part for _, parts in sheet.chapters() for part in parts if not isinstance(part, str)]
    seen = boxes(tab, "table")
    assert len(seen) == len(tables)
    assert all(wide > 40 and high > 30 for wide, high, *_ in seen), seen
    pictures = boxes(tab, "svg")
    assert len(pictures) > len(m.coordinates)
    for wide, high, left, right, words in pictures:
        assert wide > 200, words
        assert high > 100, words
        assert left >= 0, words
        assert right <= width, words
    assert pictures[0][-1].startswith(f"Drawing of {name}: ")
    # nothing makes the whole page scroll sideways; what is wide scrolls in its own room
    assert tab.run("document.documentElement.scrollWidth") == width
    # the drawing has ink where it stands: bodies and joints have boxes of their own
    inside = boxes(tab, ".drawing svg path")
    assert sum(wide > 2 and high > 2 for wide, high, *_ in inside) > len(m.bodies)


def test_table_of_contents_links(tab: Tab, pages: dict[str, Path]) -> None:
    tab.open(pages["four-bar"])
    links = tab.run("[...document.querySelectorAll('nav a')].map(a => a.hash)")
    assert len(links) > 6
    for link in links:
        wide, high, *_ = boxes(tab, link)[0]
        assert wide > 300
        assert high > 30


def test_light_dark_and_paper(tab: Tab, pages: dict[str, Path], tmp_path: Path) -> None:
    def numbers(colour: str) -> np.ndarray:
        return np.array([float(x) for x in colour[colour.index("(") + 1 : -1].split(",")[:3]])

    found = {}
    for dark in (False, True):
        tab.open(pages["four-bar"], dark=dark)
        found[dark] = [numbers(colour) for colour in tab.run(COLOURS)]
    assert found[False][0].min() == 255
    assert found[False][1].max() < 60
    assert found[True][0].max() < 60
    assert found[True][1].min() > 200
    assert np.abs(found[True][2] - found[False][2]).max() > 20  # pictures follow
    tab.open(pages["four-bar"], dark=True, media="print")
    paper = [numbers(colour) for colour in tab.run(COLOURS)]
    assert paper[0].min() == 255  # paper is white, whatever the screen is
    assert np.array_equal(paper[2], found[False][2])
    assert tab.printed().startswith(b"%PDF")


def test_errors_are_detected(tab: Tab, tmp_path: Path) -> None:
    """Errors of scripts, requests and hidden tables are detected."""
    file = tmp_path / "bad.html"
    file.write_text(
        "<!doctype html><title>x</title><script>console.error('no'); nothing()</script>"
        "<img src='gone.png'><table hidden><tr><td>1</td></tr></table>",
        encoding="utf-8",
    )
    tab.open(file)
    said = " ".join(tab.complaints())
    assert "nothing is not defined" in said
    assert '"no"' in said
    assert len(tab.requests()) == 2
    assert boxes(tab, "table")[0][:2] == [0, 0]
