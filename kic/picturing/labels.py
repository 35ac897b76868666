"""Names beside what they name: none over another, and as little as possible over the drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.picturing.symbols import Shape

# points: between a name and its part at first, and how much further it goes from try to try
_GAP, _STEP, _TRIES = 3.0, 3.5, 12
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


def inked(shapes: list[Shape], points: float) -> np.ndarray:
    """Samples (n, 2), in points, of the outlines of shapes."""
    lines = []
    for shape in shapes:
        xy = shape.xy * points
        ends = np.roll(xy, -1, axis=0) if shape.closed else xy[1:]
        for a, b in zip(xy, ends, strict=False):
            count = int(np.linalg.norm(b - a) / _GRAIN) + 1
            lines.append(a + np.linspace(0, 1, count, endpoint=False)[:, None] * (b - a))
    return np.concatenate(lines)


def place(labels: list[Label], ink: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """Middles (2,) of names, in points: near, off the ink, within the corners, and never over one another.

    Parameters
    ----------
    labels : list of Label
        The first come first.
    ink : (n, 2)
        What better stays free.
    low, high : (2,)
        Corners of the room there is.
    """
    boxes: list[tuple[np.ndarray, np.ndarray]] = []
    found = []
    ways = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
    for label in labels:
        half = label.size / 2
        best, least = label.at, np.inf
        for k in range(_TRIES * 3):
            if k >= _TRIES and least < np.inf:
                break  # further away only where nothing was free at all
            gap = label.radius + _GAP + k * _STEP
            for turn, way in enumerate(ways):
                # the near side of the box is so far away, whatever its proportions
                reach = float(np.abs(way) @ half)
                middle = label.at + way * (gap + reach)
                a, b = middle - half - 0.5, middle + half + 0.5
                if any((a < q).all() and (p < b).all() for p, q in boxes):
                    continue
                outside = float(np.maximum(low - a, 0).sum() + np.maximum(b - high, 0).sum())
                over = int(((ink > a) & (ink < b)).all(axis=1).sum())
                cost = 3.0 * over + 1.4 * k * _STEP + 0.05 * turn + 50.0 * outside
                if cost < least:
                    best, least = middle, cost
        boxes.append((best - half - 0.5, best + half + 0.5))
        found.append(best)
    return found
