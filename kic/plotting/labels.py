"""Names beside what they name: none over another, and as little as possible over the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kic.plotting.canvas import SMALL, measure
from kic.plotting.diagram import Mark
from kic.plotting.symbols import Shape, circle
from kic.plotting.view import View

_BODIES, _UNNAMED = ("link", "plate", "solid"), ("stem", "frame", "guide", "belt")
# shares of a rod at which its name may stand
_SHARES = np.array([0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8])
# points: between a name and its part at first, and how much further it goes from try to try
_GAP, _STEP, _TRIES = 3.0, 3.5, 24
# angles are tried in this order: beside and above before below
_ANGLES = np.radians([45, 135, -45, -135, 0, 180, 90, -90, 22, 158, -22, -158, 68, 112, -68, -112])
_GRAIN = 2.0  # points between the samples of a line
_THICK = 1.5  # a wider line is one with two rims
_SIGN = 3.0  # what stands for a part of its own counts so much more than a line
_SAME = 4.0  # points: bodies that are so near one another are not told apart there
_MORE = 250  # of the places for a name so many are looked at closely
_WAY = np.linspace(0.15, 0.85, 8)  # where a leader must be free
# a name that had to go further than this is led back by a line
LEADER_MIN_PT = 9.0


@dataclass(frozen=True)
class Label:
    """A name to be placed.

    Attributes
    ----------
    text : str
    at : (k, 2)
        What it names, in points of the page: one place, or several of which any will do; the first is best.
    size : (2,)
        Width and height of the words, in points.
    radius : float
        Of what it names, in points.
    italic : bool
        As names of bodies are.
    """

    text: str
    at: np.ndarray
    size: np.ndarray
    radius: float
    italic: bool = False


def labels_of(marks: Sequence[Mark], view: View, size: float, points: float) -> list[Label]:
    """Names of joints, points and what else is one thing in one place, then of bodies.

    Parameters
    ----------
    marks : list of Mark
        Of a posture.
    view : View
    size : float
        Radius of a joint, in units of length.
    points : float
        Points of the page in a unit of length.
    """
    bodies: dict[str, list[Mark]] = {}
    labels = []
    for mark in marks:
        if mark.kind in _BODIES or (mark.kind == "wheel" and view.flat):
            bodies.setdefault(mark.body, []).append(mark)
        elif mark.name and mark.kind not in _UNNAMED:
            at = view.project(mark.places.mean(axis=0))[None] * points
            labels.append(Label(mark.name, at, measure(mark.name, SMALL), size * points))
    for body, parts in bodies.items():
        parts.sort(key=lambda mark: -float(np.ptp(mark.places, axis=0).max()))
        at = np.concatenate([_beside(mark, view.project(mark.places)) for mark in parts]) * points
        labels.append(Label(body, at, measure(body, SMALL, italic=True), 0.5 * size * points, True))
    return labels


def _beside(mark: Mark, p: np.ndarray) -> np.ndarray:
    """Places (k, 2) at one of which the name of a body stands, its middle first."""
    middle = p.mean(axis=0, keepdims=True)
    if mark.kind == "wheel":
        return np.concatenate([middle + 0.6 * mark.sizes[0] * circle(12), middle])
    if mark.kind == "link":
        a, d = p[:-1, None], np.diff(p, axis=0)[:, None]
        return np.asarray((a + _SHARES[:, None] * d).reshape(-1, 2))
    ends = np.roll(p, -1, axis=0) if mark.kind == "plate" else p[:0]
    return np.concatenate([middle, (p[: len(ends)] + ends) / 2])


class OccupancyGrid:
    """How much of a drawing lies where, on squares of a point.

    Parameters
    ----------
    shapes : list of Shape
    points : float
        Points of the page in a unit of length.
    low, high : (2,)
        Corners, in points, of what counts.
    """

    def __init__(self, shapes: list[Shape], points: float, low: np.ndarray, high: np.ndarray) -> None:
        starts, ways, weights = [], [], []
        for shape in shapes:
            xy = shape.xy * points
            ends = np.roll(xy, -1, axis=0) if shape.closed else xy[1:]
            start = xy[: len(ends)]
            for rim in _rims(ends - start, shape.width if shape.edge else 0.0):
                starts.append(start + rim)
                ways.append(ends - start)
                weights.append(np.full(len(ends), _SIGN if shape.name else 1.0))
        a, d, weight = np.concatenate(starts), np.concatenate(ways), np.concatenate(weights)
        counts = (np.linalg.norm(d, axis=1) / _GRAIN).astype(int) + 1
        line = np.repeat(np.arange(len(a)), counts)
        step = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts)
        samples = a[line] + (step / counts[line])[:, None] * d[line]
        self.low, size = low, np.ceil(high - low).astype(int)
        cells = np.floor(samples - low).astype(int)
        inside = ((cells >= 0) & (cells < size)).all(axis=1)
        cells = cells[inside]
        grid = np.zeros(size + 1)
        np.add.at(grid, (cells[:, 0] + 1, cells[:, 1] + 1), weight[line][inside])
        # sums from the corner on: those of any box are four numbers
        self._sums = grid.cumsum(axis=0).cumsum(axis=1)

    def within(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Samples in boxes with corners a, b (n, 2)."""
        most = np.array(self._sums.shape) - 1
        i, j = (np.clip(np.round(c - self.low), 0, most).astype(int) for c in (a, b))
        S = self._sums
        found: np.ndarray = (
            S[j[:, 0], j[:, 1]] - S[i[:, 0], j[:, 1]] - S[j[:, 0], i[:, 1]] + S[i[:, 0], i[:, 1]]
        )
        return found


def _rims(d: np.ndarray, width: float) -> list[np.ndarray]:
    """Where a line with segments d (n, 2) has its rims, beside its middle."""
    if width < _THICK:
        return [np.zeros(2)]
    length = np.maximum(np.linalg.norm(d, axis=1), 1e-12)[:, None]
    across = width / 2 * np.stack([-d[:, 1], d[:, 0]], axis=1) / length
    return [across, -across]


def leader_line(middle: np.ndarray, label: Label) -> np.ndarray | None:
    """The line (2, 2) from a name that stands in the middle given to what it names, if that is far."""
    reach = np.clip(label.at - middle, -label.size / 2, label.size / 2)
    gaps = np.linalg.norm(label.at - middle - reach, axis=1)
    k = int(gaps.argmin())
    return None if gaps[k] <= label.radius + LEADER_MIN_PT else np.stack([middle + reach[k], label.at[k]])


def place_labels(
    labels: list[Label], ink: OccupancyGrid, low: np.ndarray, high: np.ndarray
) -> list[np.ndarray]:
    """Middles (2,) of names, in points: near, off the ink, within the corners, and never over one another.

    Parameters
    ----------
    labels : list of Label
        The first come first.
    ink : Ink
        What better stays free.
    low, high : (2,)
        Corners of the room there is.
    """
    ways = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
    further = np.repeat(np.arange(_TRIES) * _STEP, len(ways))
    turns = np.tile(ways, (_TRIES, 1))
    rank = np.tile(np.arange(len(ways)), _TRIES)
    lower, upper, leaders = (np.zeros((0, 2)) for _ in range(3))
    found = []
    for label in labels:
        half = label.size / 2 + 1.4
        # the near side of the box is so far away, whatever its proportions
        reach = label.radius + _GAP + further + np.abs(turns) @ half
        middles = (label.at[:, None] + turns * reach[:, None]).reshape(-1, 2)
        count = len(label.at)
        away, order = np.tile(further, count), np.tile(rank, count) + np.repeat(np.arange(count), len(rank))
        a, b = middles - half, middles + half
        outside = np.maximum(low - a, 0).sum(axis=1) + np.maximum(b - high, 0).sum(axis=1)
        hit = ((a[:, None] < upper) & (lower < b[:, None])).all(axis=2).any(axis=1)
        crossed = ((a[:, None] < leaders) & (leaders < b[:, None])).all(axis=2).any(axis=1)
        cost = 3.0 * ink.within(a, b) + 1.4 * away + 0.05 * order + 500.0 * outside + 1e6 * hit
        cost += 100.0 * crossed + 20.0 * np.repeat(_shared(label, labels), len(rank))
        # of the best ones more is asked
        best = np.argsort(cost, kind="stable")[:_MORE]
        own = np.repeat(label.at, len(further), axis=0)[best]
        cost = cost[best] + _mistaken(label, labels, a[best], b[best])
        way, far = _leaders(own, middles[best], half, away[best])
        within = (lower < way[:, :, None]) & (way[:, :, None] < upper)
        led_over = np.any(np.all(within, axis=3), axis=(1, 2))
        over = ink.within(way.reshape(-1, 2) - 1.0, way.reshape(-1, 2) + 1.0).reshape(-1, len(_WAY))
        cost[far] += 6.0 * over.sum(axis=1) + 100.0 * led_over
        k = int(best[cost.argmin()])
        lower, upper = np.vstack([lower, a[k]]), np.vstack([upper, b[k]])
        found.append(middles[k])
        line = leader_line(middles[k], label)
        if line is not None:
            leaders = np.vstack([leaders, line[0] + _WAY[:, None] * (line[1] - line[0])])
    return found


def _mistaken(label: Label, labels: list[Label], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What it costs boxes (n, 2) to be as near to what others name as to their own."""

    def gap(to: np.ndarray) -> np.ndarray:
        apart = np.maximum(np.maximum(a[:, None] - to, to - b[:, None]), 0.0)
        return np.asarray(np.linalg.norm(apart, axis=2).min(axis=1))

    # what stands beside a point is read as its name; italics only beside another body
    others = [
        one.at for one in labels
        if one.italic == label.italic and one is not label
        and np.linalg.norm(one.at[:1] - label.at, axis=1).min() > max(one.radius, label.radius)
    ]  # fmt: skip
    if not others:
        return np.zeros(len(a))
    return (1.5 if label.italic else 3.0) * np.maximum(gap(label.at) + 3.0 - gap(np.concatenate(others)), 0.0)


def _shared(label: Label, labels: list[Label]) -> np.ndarray:
    """Whether at places (k,) of a body some other body is, too."""
    others = [one.at for one in labels if one.italic and label.italic and one is not label]
    if not others:
        return np.zeros(len(label.at))
    apart = np.linalg.norm(label.at[:, None] - np.concatenate(others), axis=2).min(axis=1)
    return np.asarray(apart < _SAME, dtype=float)


def _leaders(
    own: np.ndarray, middles: np.ndarray, half: np.ndarray, away: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Samples (k, w, 2) of the lines that lead names back to places that are far, and which (k,) are that."""
    far = np.flatnonzero(away > LEADER_MIN_PT - _GAP)
    start = middles[far] - np.clip(middles[far] - own[far], -half, half)
    return start[:, None] + _WAY[:, None] * (own[far] - start)[:, None], far
