"""Placement of labels: near their part, without overlap, and with little overlap of the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kic.plotting.canvas import FONT_SIZE_PT, measure
from kic.plotting.diagram import Mark
from kic.plotting.symbols import Shape, circle
from kic.plotting.view import View

_BODY_KINDS, _UNLABELLED_KINDS = ("link", "plate", "solid"), ("stem", "frame", "guide", "belt")
# positions for a label along a rod, as shares of its length
_SHARES = np.array([0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8])
# gap in points between a label and its part, its increment, and the number of distances
_GAP_PT, _GAP_STEP_PT, _DISTANCES = 3.0, 3.5, 24
# candidate angles in order of preference: above right first
_ANGLES = np.radians([45, 135, -45, -135, 0, 180, 90, -90, 22, 158, -22, -158, 68, 112, -68, -112])
_SAMPLE_SPACING_PT = 2.0  # along a line
_THIN_LINE_MAX_PT = 1.5  # wider lines are sampled at both rims
_SYMBOL_WEIGHT = 3.0  # overlap weight of part symbols relative to lines
_SAME_POSITION_PT = 4.0  # bodies closer than this cannot be distinguished there
_CANDIDATES_MAX = 250  # number of positions compared by all costs
_LEADER_SHARES = np.linspace(0.15, 0.85, 8)  # samples of a leader for overlap
# a label at a larger distance gets a leader line
LEADER_MIN_PT = 9.0


@dataclass(frozen=True)
class Label:
    """Label to be placed."""

    text: str
    # (k, 2): position of the part in points of the page; one, or several alternatives in order of
    # preference
    at: np.ndarray
    size: np.ndarray  # (2,): width and height of the text in points
    radius: float  # radius of the part in points
    italic: bool = False  # True for names of bodies


def labels_of(marks: Sequence[Mark], view: View, size: float, points: float) -> list[Label]:
    """Return labels of joints, points and other localized parts, then of bodies.

    `size` is the radius of a joint in units of length, `points` the points of the page per unit of length.
    """
    bodies: dict[str, list[Mark]] = {}
    labels = []
    for mark in marks:
        if mark.kind in _BODY_KINDS or (mark.kind == "wheel" and view.flat):
            bodies.setdefault(mark.body, []).append(mark)
        elif mark.name and mark.kind not in _UNLABELLED_KINDS:
            at = view.project(mark.places.mean(axis=0))[None] * points
            labels.append(Label(mark.name, at, measure(mark.name, FONT_SIZE_PT), size * points))
    for body, parts in bodies.items():
        parts.sort(key=lambda mark: -float(np.ptp(mark.places, axis=0).max()))
        at = np.concatenate([_body_positions(mark, view.project(mark.places)) for mark in parts]) * points
        labels.append(Label(body, at, measure(body, FONT_SIZE_PT, italic=True), 0.5 * size * points, True))
    return labels


def _body_positions(mark: Mark, p: np.ndarray) -> np.ndarray:
    """Return positions (k, 2) for the name of a body, the preferred position first."""
    middle = p.mean(axis=0, keepdims=True)
    if mark.kind == "wheel":
        return np.concatenate([middle + 0.6 * mark.sizes[0] * circle(12), middle])
    if mark.kind == "link":
        a, d = p[:-1, None], np.diff(p, axis=0)[:, None]
        return np.asarray((a + _SHARES[:, None] * d).reshape(-1, 2))
    ends = np.roll(p, -1, axis=0) if mark.kind == "plate" else p[:0]
    return np.concatenate([middle, (p[: len(ends)] + ends) / 2])


class OccupancyGrid:
    """Density of a drawing on squares of one point, between the corners `low` and `high` (2,) in points."""

    def __init__(self, shapes: list[Shape], points: float, low: np.ndarray, high: np.ndarray) -> None:
        starts, vectors, weights = [], [], []
        for shape in shapes:
            xy = shape.xy * points
            ends = np.roll(xy, -1, axis=0) if shape.closed else xy[1:]
            start = xy[: len(ends)]
            for rim in _rims(ends - start, shape.width if shape.edge else 0.0):
                starts.append(start + rim)
                vectors.append(ends - start)
                weights.append(np.full(len(ends), _SYMBOL_WEIGHT if shape.name else 1.0))
        a, d, weight = np.concatenate(starts), np.concatenate(vectors), np.concatenate(weights)
        counts = (np.linalg.norm(d, axis=1) / _SAMPLE_SPACING_PT).astype(int) + 1
        line = np.repeat(np.arange(len(a)), counts)
        step = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts)
        samples = a[line] + (step / counts[line])[:, None] * d[line]
        self.low = low
        edges = [np.arange(n + 1) for n in np.ceil(high - low)]
        density = np.histogramdd(samples - low, edges, weights=weight[line])[0]
        # cumulative sums: the sum of any box needs four entries
        self._sums = np.pad(density.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def within(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sum of samples in boxes with corners a, b (n, 2)."""
        most = np.array(self._sums.shape) - 1
        i, j = (np.clip(np.round(c - self.low), 0, most).astype(int) for c in (a, b))
        S = self._sums
        found: np.ndarray = (
            S[j[:, 0], j[:, 1]] - S[i[:, 0], j[:, 1]] - S[j[:, 0], i[:, 1]] + S[i[:, 0], i[:, 1]]
        )
        return found


def _rims(d: np.ndarray, width: float) -> list[np.ndarray]:
    """Return the offsets of the rims of a line with segments d (n, 2)."""
    if width < _THIN_LINE_MAX_PT:
        return [np.zeros(2)]
    length = np.maximum(np.linalg.norm(d, axis=1), 1e-12)[:, None]
    across = width / 2 * np.stack([-d[:, 1], d[:, 0]], axis=1) / length
    return [across, -across]


def leader_line(middle: np.ndarray, label: Label) -> np.ndarray | None:
    """Return the leader line (2, 2) of a label with the given centre, or None if it is near its part."""
    reach = np.clip(label.at - middle, -label.size / 2, label.size / 2)
    gaps = np.linalg.norm(label.at - middle - reach, axis=1)
    k = int(gaps.argmin())
    return None if gaps[k] <= label.radius + LEADER_MIN_PT else np.stack([middle + reach[k], label.at[k]])


def place_labels(
    labels: list[Label], ink: OccupancyGrid, low: np.ndarray, high: np.ndarray
) -> list[np.ndarray]:
    """Return centres (2,) of labels in points, in the order of placement.

    Labels stay near their part, avoid the ink of the drawing, stay within the corners `low` and `high` and
    never overlap.
    """
    directions = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
    further = np.repeat(np.arange(_DISTANCES) * _GAP_STEP_PT, len(directions))
    turns = np.tile(directions, (_DISTANCES, 1))
    rank = np.tile(np.arange(len(directions)), _DISTANCES)
    lower, upper, leaders = (np.zeros((0, 2)) for _ in range(3))
    found = []
    for label in labels:
        half = label.size / 2 + 1.4
        # distance of the centre for a given gap of the near side of the box
        reach = label.radius + _GAP_PT + further + np.abs(turns) @ half
        middles = (label.at[:, None] + turns * reach[:, None]).reshape(-1, 2)
        count = len(label.at)
        away, order = np.tile(further, count), np.tile(rank, count) + np.repeat(np.arange(count), len(rank))
        a, b = middles - half, middles + half
        outside = np.maximum(low - a, 0).sum(axis=1) + np.maximum(b - high, 0).sum(axis=1)
        hit = ((a[:, None] < upper) & (lower < b[:, None])).all(axis=2).any(axis=1)
        crossed = ((a[:, None] < leaders) & (leaders < b[:, None])).all(axis=2).any(axis=1)
        cost = 3.0 * ink.within(a, b) + 1.4 * away + 0.05 * order + 500.0 * outside + 1e6 * hit
        cost += 100.0 * crossed + 20.0 * np.repeat(_shared_positions(label, labels), len(rank))
        # remaining costs, of the best candidates only
        best = np.argsort(cost, kind="stable")[:_CANDIDATES_MAX]
        own = np.repeat(label.at, len(further), axis=0)[best]
        cost = cost[best] + _ambiguity_cost(label, labels, a[best], b[best])
        samples, far = _leaders(own, middles[best], half, away[best])
        within = (lower < samples[:, :, None]) & (samples[:, :, None] < upper)
        leader_crosses = np.any(np.all(within, axis=3), axis=(1, 2))
        over = ink.within(samples.reshape(-1, 2) - 1.0, samples.reshape(-1, 2) + 1.0).reshape(
            -1, len(_LEADER_SHARES)
        )
        cost[far] += 6.0 * over.sum(axis=1) + 100.0 * leader_crosses
        k = int(best[cost.argmin()])
        lower, upper = np.vstack([lower, a[k]]), np.vstack([upper, b[k]])
        found.append(middles[k])
        line = leader_line(middles[k], label)
        if line is not None:
            leaders = np.vstack([leaders, line[0] + _LEADER_SHARES[:, None] * (line[1] - line[0])])
    return found


def _ambiguity_cost(label: Label, labels: list[Label], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cost (n,) of boxes that are as near to other labelled parts as to their own."""

    def gap(to: np.ndarray) -> np.ndarray:
        apart = np.maximum(np.maximum(a[:, None] - to, to - b[:, None]), 0.0)
        return np.asarray(np.linalg.norm(apart, axis=2).min(axis=1))

    # labels of points compete with points, labels of bodies with bodies
    others = [
        one.at for one in labels
        if one.italic == label.italic and one is not label
        and np.linalg.norm(one.at[:1] - label.at, axis=1).min() > max(one.radius, label.radius)
    ]  # fmt: skip
    if not others:
        return np.zeros(len(a))
    return (1.5 if label.italic else 3.0) * np.maximum(gap(label.at) + 3.0 - gap(np.concatenate(others)), 0.0)


def _shared_positions(label: Label, labels: list[Label]) -> np.ndarray:
    """Return 1.0 for positions (k,) of a body at which there is another body, else 0.0."""
    others = [one.at for one in labels if one.italic and label.italic and one is not label]
    if not others:
        return np.zeros(len(label.at))
    apart = np.linalg.norm(label.at[:, None] - np.concatenate(others), axis=2).min(axis=1)
    return np.asarray(apart < _SAME_POSITION_PT, dtype=float)


def _leaders(
    own: np.ndarray, middles: np.ndarray, half: np.ndarray, away: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return samples (k, w, 2) of leaders of distant candidates, and the indices (k,) of the candidates."""
    far = np.flatnonzero(away > LEADER_MIN_PT - _GAP_PT)
    start = middles[far] - np.clip(middles[far] - own[far], -half, half)
    return start[:, None] + _LEADER_SHARES[:, None] * (own[far] - start)[:, None], far
