"""Names beside what they name: none over another, and as little as possible over the drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.picturing.symbols import Shape

# points: between a name and its part at first, and how much further it goes from try to try
_GAP, _STEP, _TRIES = 3.0, 3.5, 24
# angles are tried in this order: beside and above before below
_ANGLES = np.radians([45, 135, -45, -135, 0, 180, 90, -90, 22, 158, -22, -158, 68, 112, -68, -112])
_GRAIN = 2.0  # points between the samples of a line
# a name that had to go further than this is led back by a line
LED = 9.0


@dataclass(frozen=True)
class Label:
    """A name to be placed.

    Attributes
    ----------
    text : str
    at : (2,)
        What it names, in points of the page.
    size : (2,)
        Width and height of the words, in points.
    radius : float
        Of what it names, in points.
    """

    text: str
    at: np.ndarray
    size: np.ndarray
    radius: float


class Ink:
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
        starts, ways = [], []
        for shape in shapes:
            xy = shape.xy * points
            ends = np.roll(xy, -1, axis=0) if shape.closed else xy[1:]
            starts.append(xy[: len(ends)])
            ways.append(ends - xy[: len(ends)])
        a, d = np.concatenate(starts), np.concatenate(ways)
        counts = (np.linalg.norm(d, axis=1) / _GRAIN).astype(int) + 1
        line = np.repeat(np.arange(len(a)), counts)
        step = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts)
        samples = a[line] + (step / counts[line])[:, None] * d[line]
        self.low, size = low, np.ceil(high - low).astype(int)
        cells = np.floor(samples - low).astype(int)
        cells = cells[((cells >= 0) & (cells < size)).all(axis=1)]
        grid = np.zeros(size + 1)
        np.add.at(grid, (cells[:, 0] + 1, cells[:, 1] + 1), 1.0)
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


def place(labels: list[Label], ink: Ink, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
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
    lower, upper = np.zeros((0, 2)), np.zeros((0, 2))
    found = []
    for label in labels:
        half = label.size / 2 + 0.5
        # the near side of the box is so far away, whatever its proportions
        reach = label.radius + _GAP + further + np.abs(turns) @ half
        middles = label.at + turns * reach[:, None]
        a, b = middles - half, middles + half
        outside = np.maximum(low - a, 0).sum(axis=1) + np.maximum(b - high, 0).sum(axis=1)
        hit = ((a[:, None] < upper) & (lower < b[:, None])).all(axis=2).any(axis=1)
        cost = 3.0 * ink.within(a, b) + 1.4 * further + 0.05 * rank + 50.0 * outside + 1e6 * hit
        k = int(cost.argmin())
        lower, upper = np.vstack([lower, a[k]]), np.vstack([upper, b[k]])
        found.append(middles[k])
    return found
