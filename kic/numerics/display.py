"""Labelled tables as text for a terminal and HTML for a notebook."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kic.numerics.calls import explain_methods

# entries below this share of the largest of their table are rounding errors and shown as 0
ROUNDOFF = 1e-14
# width of tables and prose (characters)
WIDTH = 100
# longest repr (characters), and most names of a list in it
LINE_MAX, NAMES_MAX = 200, 8
# head and cells of a column that separates others
BAR = "|"


def cell(x: Any, largest: float) -> str:
    """Format an entry with five significant digits; rounding errors relative to the largest become 0."""
    if not isinstance(x, float | complex | np.inexact):
        return str(x)
    size: Any = abs(x)
    return "0" if size < ROUNDOFF * largest or size == 0 else f"{x:.5g}"


def cut(text: str, most: int) -> str:
    """Return text with at most a number of characters; an ellipsis stands for others."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def largest_of(a: np.ndarray) -> float:
    """Return the largest finite magnitude, 0 if there is none."""
    if a.dtype == object or a.size == 0:
        return 0.0
    size = np.abs(a)
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))


def column(a: Any, largest: float | None = None) -> list[str]:
    """Format a column of numbers with aligned decimal points."""
    numbers = np.asarray(a)
    top = largest_of(numbers) if largest is None else largest
    texts = [cell(x, top) for x in numbers]
    if numbers.dtype.kind != "f":
        return texts
    tails = [len(t) - min((t.index(c) for c in ".e" if c in t), default=len(t)) for t in texts]
    deepest = max(tails, default=0)
    return [t + " " * (deepest - tail) for t, tail in zip(texts, tails, strict=True)]


def grid(a: np.ndarray, largest: float | None = None) -> list[list[str]]:
    """Format a matrix with aligned decimal points in each column."""
    top = largest_of(a) if largest is None else largest
    columns = [column(a[:, k], top) for k in range(a.shape[1])]
    return [list(line) for line in zip(*columns, strict=True)] if columns else [[] for _ in a]


@dataclass(frozen=True)
class Table:
    """Caption, labels and formatted cells; columns of words are aligned left, numbers right."""

    caption: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: list[list[str]]
    corner: str = ""
    words: frozenset[int] = frozenset()

    def text(self, width: int) -> str:
        """Return text for a terminal, with the columns in blocks that fit the width."""
        first = max(len(label) for label in (self.corner, *self.rows)) if self.rows else len(self.corner)
        head = list(self.columns)
        widths = [max(len(line[k]) for line in (head, *self.cells)) for k in range(len(head))]
        blocks = []
        for block in _blocks(widths, width - first):
            lines = [] if not any(head[k] for k in block) else [(self.corner, head)]
            lines += list(zip(self.rows, self.cells, strict=True))
            blocks.append("\n".join(self._line(label, line, first, widths, block) for label, line in lines))
        return "\n\n".join(blocks)

    def _line(self, label: str, line: list[str], first: int, widths: list[int], block: list[int]) -> str:
        placed = [line[k].ljust(widths[k]) if k in self.words else line[k].rjust(widths[k]) for k in block]
        return "  ".join([label.ljust(first), *placed]).rstrip()

    def html(self) -> str:
        """Return HTML for a notebook or a page.

        The attribute ``data-pad`` of a number holds the digits that it lacks compared with the longest number
        of its column. A style sheet can use it to align decimal points.
        """
        heads = f'<th scope="col">{escape(self.corner)}</th>' + "".join(
            f'<th scope="col"{self._styled(k)}>{escape(self.columns[k])}</th>' for k in self._seen
        )
        head = f"<thead><tr>{heads}</tr></thead>" if any(self.columns) else ""
        lines = (
            f'<tr><th scope="row" style="text-align:left">{escape(label)}</th>{self._cells(line)}</tr>'
            for label, line in zip(self.rows, self.cells, strict=True)
        )
        top = '<caption style="caption-side:top;text-align:left">'
        caption = f"{top}{escape(self.caption.strip())}</caption>"
        return f"<table>{caption}{head}<tbody>{''.join(lines)}</tbody></table>"

    @property
    def _seen(self) -> list[int]:
        """List of the columns, without separators; these become borders."""
        return [k for k in range(len(self.columns)) if self.columns[k] != BAR]

    def _styled(self, k: int) -> str:
        """Return the style attribute of a column."""
        left = "text-align:left" if k in self.words else ""
        ruled = "border-left:1px solid" if k and self.columns[k - 1] == BAR else ""
        styles = ";".join(filter(None, (left, ruled)))
        return f' style="{styles}"' if styles else ""

    def _cells(self, line: list[str]) -> str:
        """Return the cells of a row without its label."""
        return "".join(
            f"<td{self._styled(k)}{'' if k in self.words else _pad(line[k])}>{escape(line[k].strip())}</td>"
            for k in self._seen
        )


def _pad(text: str) -> str:
    """Return the padding attribute of a number that `column` padded with blanks."""
    short = len(text) - len(text.rstrip())
    if not short or not text[: len(text) - short][-1:].isdigit():
        return ""
    lacks = "0" * short if "." in text else "." + "0" * (short - 1)
    return f' data-pad="{lacks}"'


def _blocks(widths: list[int], room: int) -> list[list[int]]:
    """Divide columns into blocks of at least one column that fit the width."""
    blocks: list[list[int]] = [[]]
    used = 0
    for k, width in enumerate(widths):
        if blocks[-1] and used + width + 2 > room:
            blocks.append([])
            used = 0
        blocks[-1].append(k)
        used += width + 2
    return blocks


def _wrapped(text: str, width: int) -> str:
    """Wrap prose to the width; existing line breaks are kept."""
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line, max(width, 20), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


class Summary:
    """A page of captions and matrices that can be shown as text or as HTML."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[Table | str] = []
        self._marks: list[tuple[str, int]] = []

    def chapter(self, title: str) -> None:
        """Begin a chapter; `text` omits its title, which pages show as a heading."""
        self._marks.append((title, len(self._parts)))

    def say(self, text: str) -> None:
        """Add a line of prose."""
        self._parts.append(text)

    def member(self, batch: tuple[int, ...], note: str = "") -> tuple[int, ...] | None:
        """Add a remark on a batch, with a note; return the index of the member to show, None if empty."""
        index = (0,) * len(batch)
        if 0 in batch:
            self.say(f"empty batch {batch}{note}")
            return None
        if batch:
            self.say(f"batch {batch}, shown: member {list(index)}{note}")
        return index

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
        self._parts.append(Table(caption, rows, columns, grid(a, largest), corner))

    def texts(
        self, caption: str, rows: Sequence[str], columns: Sequence[str], cells: list[list[str]]
    ) -> None:
        """Add a table of formatted texts; columns that contain words are aligned left."""
        words = {k for k in range(len(columns)) if any(line[k][:1].isalpha() for line in cells)}
        self._parts.append(Table(caption, rows, columns, cells, words=frozenset(words)))

    def planes(
        self,
        symbol: str,
        labels: Sequence[str],
        rows: Sequence[str],
        columns: Sequence[str],
        tensor: np.ndarray,
        unit: str | Sequence[str] = "",
        largest: float | None = None,
    ) -> None:
        """Add a tensor (len(labels), len(rows), len(columns)) as one matrix for each label.

        Zero rows and columns are omitted, and zero matrices are listed together. `unit` is common to all
        labels, or has one entry for each.
        """
        top = largest_of(tensor) if largest is None else largest
        units = [unit] * len(labels) if isinstance(unit, str) else unit
        empty = []
        for label, of, plane in zip(labels, units, tensor, strict=True):
            if plane.dtype == object:
                there = np.ones(plane.shape, dtype=bool)
            else:
                there = ~(np.abs(plane) <= ROUNDOFF * top)  # NaN is there
            down, across = (np.flatnonzero(there.any(axis=k)).tolist() for k in (1, 0))
            if not down:
                empty.append(label)
                continue
            caption = f"{symbol}[{label}]" + (f" ({of})" if of else "")
            shown = plane[np.ix_(down, across)]
            self.matrix(caption, [rows[i] for i in down], [columns[k] for k in across], shown, largest=top)
        if empty:
            self.say(f"\n{symbol} = 0: {('; ' if any(',' in x for x in empty) else ', ').join(empty)}")

    def text(self, width: int = WIDTH) -> str:
        """Return text for a terminal of the given width."""
        out = [_wrapped(self.title, width)]
        for part in self._parts:
            if isinstance(part, str):
                out.append(_wrapped(part, width))
            else:
                out.append("\n" + _wrapped(part.caption, width))
                out += ["  " + line if line else "" for line in part.text(width - 2).splitlines()]
        return "\n".join(out)

    def html(self) -> str:
        """Return HTML for a notebook."""
        return f"<p><b>{escape(self.title)}</b></p>" + "".join(html(part) for part in self._parts)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()

    def chapters(self) -> list[tuple[str, list[Table | str]]]:
        """Return the parts by heading; those before the first heading have the heading ""."""
        marks = [*self._marks, ("", len(self._parts))]
        found = [("", self._parts[: marks[0][1]])]
        found += [(title, self._parts[start:end]) for (title, start), (_, end) in pairwise(marks)]
        return [(title, parts) for title, parts in found if parts]


class OneLine:
    """Base class of objects whose repr is one line of names and shapes, without computation."""

    # attributes that are shown
    _one_line: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        explain_methods(cls)

    def _facts(self) -> Iterator[str]:
        """Yield the parts of the repr."""
        for key in self._one_line:
            if text := _brief(getattr(self, key)):
                yield f"{key} {text}"

    def __repr__(self) -> str:
        name, facts = getattr(self, "name", ""), "; ".join(self._facts())
        owner = f" '{name}'" if name else ""
        line = " ".join(f"{type(self).__name__}{owner}{': ' if facts else ''}{facts}".split())
        return f"<{cut(line, LINE_MAX)}>"


class Hinting:
    """Base class of results whose errors for unknown attributes and arguments suggest names of kic."""

    # counterparts of common terms, in addition to those of the base classes
    _counterparts: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        explain_methods(cls)

    if not TYPE_CHECKING:  # type checkers report unknown attributes

        def __getattr__(self, name: str) -> Any:
            owners = (vars(cls).get("_counterparts", {}) for cls in type(self).__mro__)
            hint = next((owner[name] for owner in owners if name in owner), None)
            message = f"'{type(self).__name__}' object has no attribute '{name}'"
            raise AttributeError(message + (f". Use {hint}." if hint else ""), name=name, obj=self)


class Printable(Hinting, OneLine, ABC):
    """Base class of results with a `summary` that notebooks show as HTML."""

    @abstractmethod
    def summary(self) -> Summary:
        """Return labelled tables of the results."""

    def _repr_html_(self) -> str:
        return self.summary().html()


class Batched(Printable):
    """Base class of results whose arrays begin with batch axes."""

    # an array, and the number of its axes for one member
    _per_member: ClassVar[tuple[str, int]]

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        name, rank = self._per_member
        shape = getattr(self, name).shape
        return shape[: len(shape) - rank]


def _brief(x: Any) -> str:
    """Return names, a number or the shape of an array as text; '' for None."""
    if isinstance(x, np.ndarray) and x.shape:
        return str(x.shape)
    if isinstance(x, tuple) and all(isinstance(name, str) for name in x):
        return ", ".join((*x[:NAMES_MAX], *(["…"] if x[NAMES_MAX:] else [])))
    return "" if x is None else f"{x:.5g}" if isinstance(x, float) else str(x)


def html(part: Table | str) -> str:
    """Return a table or a line of prose as HTML."""
    return f"<p>{escape(part.strip())}</p>" if isinstance(part, str) else part.html()
