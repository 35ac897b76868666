"""Depth sorting of shapes; shapes near a face are ordered by the side of its plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kic.plotting.link_shapes import within
from kic.plotting.symbols import Shape


def depth_sorted(shapes: Sequence[Shape], slack: float) -> list[Shape]:
    """Return shapes in painting order, the farthest first, with corresponding keys.

    The initial keys are depths; shapes with a plane are convex faces. A face that extends in depth has no
    single depth. Shapes that overlap it are painted before it if they lie behind its plane by more than the
    length `slack`, else after it.
    """
    order = sorted(shapes, key=lambda s: s.key)
    # shapes of one solid stay together, at the position of the first
    group = {s.key[:2]: k for k, s in reversed(list(enumerate(order)))}
    first = [group[s.key[:2]] for s in order]
    low, high = (np.array([f(s.xy, axis=0) for s in order]).reshape(-1, 2) for f in (np.min, np.max))
    middle, near = (low + high) / 2, np.array([s.key[0] for s in order])
    row = list(range(len(order)))
    for k, face in enumerate(order):
        if face.plane is None:
            continue
        meets = (high > low[k]).all(axis=1) & (low < high[k]).all(axis=1)
        # two faces are ordered by depth only
        overlapping = {first[j] for j in np.flatnonzero(meets) if _meet(order[j].xy, face.xy)}
        overlapping -= {j for j in overlapping if order[j].plane is not None}
        level, slope = face.plane[0], np.array(face.plane[1:])
        front = {j for j in overlapping if near[j] >= level + middle[j] @ slope - slack}
        _insert(row, k, *({j for j in row if first[j] in some} for some in (front, overlapping - front)))
    return [replace(order[j], key=(float(n),)) for n, j in enumerate(row)]


def _insert(row: list[int], face: int, front: set[int], behind: set[int]) -> None:
    """Place a face after all shapes behind it and before those in front of it."""
    if not front and not behind:
        return
    now = row.index(face)
    row.remove(face)
    last = max((n for n, j in enumerate(row) if j in behind), default=-1)
    first = min((n for n, j in enumerate(row) if j in front), default=len(row))
    spot = max(last + 1, min(now, first))
    late = [j for j in row[:spot] if j in front]
    row[:] = [j for j in row[:spot] if j not in front] + [face, *late] + row[spot:]


def _meet(xy: np.ndarray, face: np.ndarray) -> bool:
    """Return True if a corner or the centre of one outline lies within the other."""
    corners = np.vstack([xy, xy.mean(axis=0)])
    return bool(within(corners, face).any() or (len(xy) > 2 and within(face, xy).any()))
