"""Labelled tables for people: text for a terminal, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np


def cell(x: object, largest: float) -> str:
    """One entry with five significant digits; what is round-off beside the largest shows as 0."""
    if isinstance(x, float | np.floating):
        return "0" if abs(x) < 1e-15 * largest or x == 0 else f"{x:.5g}"
    if isinstance(x, complex | np.complexfloating):
        return "0" if abs(x) < 1e-15 * largest else f"{x:.5g}"
    return str(x)


def largest_of(a: np.ndarray) -> float:
    """Largest finite magnitude, 0 if there is none."""
    if a.dtype == object or a.size == 0:
        return 0.0
    size = np.abs(a)
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))


def grid(a: np.ndarray, largest: float | None = None) -> list[list[str]]:
    """A matrix as texts."""
    top = largest_of(a) if largest is None else largest
    return [[cell(x, top) for x in row] for row in a]


def text_table(rows: Sequence[str], columns: Sequence[str], cells: list[list[str]], corner: str = "") -> str:
    """Rows and columns with their labels, right-aligned."""
    head = [corner, *columns]
    body = [[label, *line] for label, line in zip(rows, cells, strict=True)]
    widths = [max(len(line[k]) for line in [head, *body]) for k in range(len(head))]

    def line(texts: list[str]) -> str:
        first = texts[0].ljust(widths[0])
        return "  ".join([first, *(t.rjust(w) for t, w in zip(texts[1:], widths[1:], strict=True))]).rstrip()

    return "\n".join([line(head), *(line(b) for b in body)])


def html_table(rows: Sequence[str], columns: Sequence[str], cells: list[list[str]], corner: str = "") -> str:
    """The same as an HTML table."""
    head = "".join(f"<th>{escape(t)}</th>" for t in [corner, *columns])
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(label)}</th>"
        + "".join(f"<td>{escape(t)}</td>" for t in line)
        + "</tr>"
        for label, line in zip(rows, cells, strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Sheet:
    """A page of captions and matrices that can be shown as text or as HTML."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[tuple[str, Sequence[str], Sequence[str], list[list[str]], str] | str] = []

    def say(self, text: str) -> None:
        """Add a line of prose."""
        self._parts.append(text)

    def matrix(
        self,
        caption: str,
        rows: Sequence[str],
        columns: Sequence[str],
        a: np.ndarray,
        corner: str = "",
        largest: float | None = None,
    ) -> None:
        """Add a matrix (len(rows), len(columns)) with a caption."""
        self._parts.append((caption, rows, columns, grid(a, largest), corner))

    def texts(
        self, caption: str, rows: Sequence[str], columns: Sequence[str], cells: list[list[str]]
    ) -> None:
        """Add a table of ready texts."""
        self._parts.append((caption, rows, columns, cells, ""))

    def text(self) -> str:
        """For a terminal."""
        out = [self.title]
        for part in self._parts:
            if isinstance(part, str):
                out.append(part)
            else:
                caption, rows, columns, cells, corner = part
                table = text_table(rows, columns, cells, corner)
                out.append(f"\n{caption}\n" + "\n".join("  " + line for line in table.splitlines()))
        return "\n".join(out)

    def html(self) -> str:
        """For a notebook."""
        out = [f"<p><b>{escape(self.title)}</b></p>"]
        for part in self._parts:
            if isinstance(part, str):
                out.append(f"<p>{escape(part)}</p>")
            else:
                caption, rows, columns, cells, corner = part
                out.append(f"<p>{escape(caption)}</p>" + html_table(rows, columns, cells, corner))
        return "".join(out)


def member(batch: tuple[int, ...]) -> tuple[tuple[int, ...] | None, str]:
    """Index of the member of a batch that is shown, with a remark that says so."""
    if not batch:
        return (), ""
    if 0 in batch:
        return None, f"empty batch {batch}"
    index = (0,) * len(batch)
    return index, f"batch {batch}, shown: member {list(index)}"
