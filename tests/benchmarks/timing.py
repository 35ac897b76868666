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
from typing import Any

import numpy as np

Work = Callable[[], object]
# members of a batch, and of the loop in which a peer takes them
BATCH, PEER_BATCH = 4096, 256


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
        Time to spend on all together. If zero, each is called once and its time means nothing.
    most, least : int
        Bounds of the number of rounds.
    """
    if not seconds:
        return Times({name: [_once(work, 1)] for name, work in works.items()})
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


def reused(evaluate: Callable[..., Any], *inputs: np.ndarray) -> Work:
    """Return a call of an evaluator that uses its memory again."""
    out = evaluate(*inputs)
    return lambda: evaluate(*inputs, out=out)


def ways(
    evaluate: Callable[..., Any], take: Callable[[Any], Any], state: np.ndarray, states: np.ndarray
) -> dict[str, Work]:
    """Return calls for one configuration and a batch, in new and in reused memory, which take the arrays."""
    once, many = reused(evaluate, state), reused(evaluate, states)
    return {
        "one": lambda: take(evaluate(state)),
        "one, out": lambda: take(once()),
        "batch": lambda: take(evaluate(states)),
        "batch, out": lambda: take(many()),
        "batch, out, 1 thread": one_thread(lambda: take(many())),
    }


def peer_ways(raw: Callable[..., Any], q: np.ndarray, qs: np.ndarray, more: object) -> dict[str, Work]:
    """Return calls of a peer for one configuration, and for several in a loop."""
    return {"peer": lambda: raw(q, more), "peer loop": lambda: [raw(row, more) for row in qs]}


def members(name: str) -> int:
    """Return the number of members that a job of this name evaluates."""
    return BATCH if name.startswith("batch") else PEER_BATCH if name == "peer loop" else 1


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

    @classmethod
    def of(cls, what: str, times: Times, name: str, **more: Any) -> Row:
        """Return the row of a job, beside the peer, which takes the members of a batch in a loop."""
        count, row = members(name), cls(what, times.best(name) / members(name) * 1e6, **more)
        peer = "peer loop" if count > 1 and "peer loop" in times.rounds else "peer"
        if peer in times.rounds:
            row.peer = times.best(peer) / members(peer) * 1e6
            row.ratio = times.ratio(name, peer) * members(peer) / count
        return row

    def cells(self) -> list[str]:
        """Return the row as text, with empty cells for missing values."""
        rate = None if self.size is None else self.size / self.ours / 1e3
        numbers = [
            (self.ours, micro), (self.peer, micro), (self.ratio, "{:.3g}".format), (self.target, str),
            (self.size, str), (rate, "{:.1f}".format), (self.fill, "{:.1f}".format),
            (self.worst, "{:.0e}".format),
        ]  # fmt: skip
        return [self.what, *("" if x is None else text(x) for x, text in numbers)]


HEADINGS = [
    "per configuration", "kic µs", "peer µs", "kic/peer", "target", "bytes", "GB/s", "fill GB/s", "differs",
]  # fmt: skip


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

    def rows(self, rows: Iterable[Row]) -> None:
        """A table of rows, without columns that are empty."""
        cells = [row.cells() for row in rows]
        used = [k for k in range(len(HEADINGS)) if any(row[k] for row in cells)]
        self.table([HEADINGS[k] for k in used], [[row[k] for k in used] for row in cells])


def side_by_side(
    report: Report,
    title: str,
    both: dict[str, dict[str, Work]],
    targets: dict[str, str],
    worst: float,
    seconds: float,
) -> None:
    """Write the table of equal jobs of two mechanisms, with the ratio of the first to the second."""
    one, other = both
    rows = []
    for job in both[one]:
        times = interleaved({word: works[job] for word, works in both.items()}, seconds)
        cells = [micro(times.best(word) * 1e6) for word in both]
        rows.append([job, *cells, f"{times.ratio(one, other):.2f}", targets.get(job, ""), f"{worst:.0e}"])
    report.table([title, f"{one} µs", f"{other} µs", "ratio", "target", "differs"], rows)


def micro(microseconds: float) -> str:
    """Format with three significant digits."""
    return f"{microseconds:.3f}" if microseconds < 1 else f"{microseconds:.3g}"


def exponent(sizes: Iterable[int], times: Iterable[float]) -> float:
    """Slope of log time over log size."""
    return float(np.polyfit(np.log(list(sizes)), np.log(list(times)), 1)[0])
