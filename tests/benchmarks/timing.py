"""Times on a noisy machine: compared functions run in turn within each of many rounds.

The ratio of two functions is the median over rounds of the ratio within a round, next to the best
time of each. No test asserts a time.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

Work = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds for each call: one entry for each round."""

    rounds: dict[str, list[float]]

    def best(self, name: str) -> float:
        """The shortest."""
        return min(self.rounds[name])

    def ratio(self, name: str, other: str) -> float:
        """Median of the ratios within a round."""
        return statistics.median(a / b for a, b in zip(self.rounds[name], self.rounds[other], strict=True))


def interleaved(works: dict[str, Work], seconds: float = 1.5, most: int = 200, least: int = 7) -> Times:
    """Time several functions in turn.

    Parameters
    ----------
    works : dict of str to callable
        What is compared.
    seconds : float
        Time to spend on all together.
    most, least : int
        Bounds of the number of rounds.
    """
    repeats = {}
    for name, work in works.items():
        work()
        start = time.perf_counter()
        work()
        once = max(time.perf_counter() - start, 1e-7)
        repeats[name] = max(1, int(1e-3 / once))  # a millisecond each, so that the clock does not count
    rounds: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    stop = time.perf_counter() + seconds
    count = 0
    while count < least or (count < most and time.perf_counter() < stop):
        for name in names:
            rounds[name].append(_once(works[name], repeats[name]))
        names.append(names.pop(0))  # who comes first changes
        count += 1
    return Times(rounds)


def _once(work: Work, repeats: int) -> float:
    work()  # as within a loop: what it reads and writes is no longer what its neighbour left in the caches
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def one_thread(work: Work) -> Work:
    """Return the function restricted to one core."""

    def alone() -> None:
        before = os.environ.get("KIC_THREADS")
        os.environ["KIC_THREADS"] = "1"
        try:
            work()
        finally:
            if before is None:
                del os.environ["KIC_THREADS"]
            else:
                os.environ["KIC_THREADS"] = before

    return alone


@dataclass
class Row:
    """One line of the table; times in microseconds for one configuration."""

    what: str
    ours: float
    peer: float | None = None
    ratio: float | None = None
    target: str = ""
    size: int | None = None
    fill: float | None = None
    worst: float | None = None

    def cells(self) -> list[str]:
        """Return the row as text, with empty cells for missing values."""
        rate = None if self.size is None else self.size / self.ours / 1e3
        return [
            self.what,
            micro(self.ours),
            "" if self.peer is None else micro(self.peer),
            "" if self.ratio is None else f"{self.ratio:.2f}",
            self.target,
            "" if self.size is None else f"{self.size}",
            "" if rate is None else f"{rate:.1f}",
            "" if self.fill is None else f"{self.fill:.1f}",
            "" if self.worst is None else f"{self.worst:.0e}",
        ]


HEADINGS = [
    "per configuration",
    "kic µs",
    "peer µs",
    "kic/peer",
    "target",
    "bytes",
    "GB/s",
    "fill GB/s",
    "differs",
]


@dataclass
class Report:
    """Everything printed, as Markdown."""

    lines: list[str] = field(default_factory=list)

    def say(self, text: str = "") -> None:
        """A line of text, shown at once."""
        self.lines.append(text)
        print(text, flush=True)

    def table(self, headings: list[str], rows: Iterable[list[str]]) -> None:
        """A table, shown when complete."""
        rows = [headings, *rows]
        widths = [max(len(row[k]) for row in rows) for k in range(len(headings))]
        for i, row in enumerate(rows):
            cells = [
                c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
            ]
            self.say(f"| {' | '.join(cells)} |")
            if i == 0:
                marks = [("-" * w if k == 0 else "-" * (w - 1) + ":") for k, w in enumerate(widths)]
                self.say(f"| {' | '.join(marks)} |")
        self.say()


def micro(microseconds: float) -> str:
    """Format with three significant digits."""
    return f"{microseconds:.3f}" if microseconds < 1 else f"{microseconds:.3g}"


def exponent(sizes: Iterable[int], times: Iterable[float]) -> float:
    """Slope of log time over log size."""
    return float(np.polyfit(np.log(list(sizes)), np.log(list(times)), 1)[0])
