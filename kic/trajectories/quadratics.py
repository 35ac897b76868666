"""Where quadratics of one variable v ≥ 0 are all at least 0, in closed form."""

from __future__ import annotations

import numpy as np


def allowed(c0: np.ndarray, c1: np.ndarray, c2: np.ndarray) -> np.ndarray:
    """Closed intervals (n, 2) of v ≥ 0, in order, on which c0 + c1 v + c2 v² ≥ 0 for all of (N,)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        disc = c1 * c1 - 4 * c0 * c2
        q = -(c1 + np.copysign(np.sqrt(np.maximum(disc, 0.0)), c1)) / 2
        one, two = q / c2, np.where(q == 0, 0.0, c0 / q)  # without cancellation
        first, last = np.fmin(one, two), np.fmax(one, two)
        root = -c0 / c1
    inf = np.full(np.shape(c0), np.inf)
    bowl, cap, straight = c2 > 0, c2 < 0, c2 == 0
    outside = cap & (disc >= 0)
    nowhere = (cap & (disc < 0)) | (straight & (c1 == 0) & (c0 < 0))
    negative = [
        (bowl & (disc > 0), first, last),
        (outside, -inf, first),
        (outside, last, inf),
        (straight & (c1 > 0), -inf, root),
        (straight & (c1 < 0), root, inf),
        (nowhere, -inf, inf),
    ]
    start = np.concatenate([a[where] for where, a, _ in negative])
    end = np.concatenate([b[where] for where, _, b in negative])
    start, end = start[end > 0], end[end > 0]
    order = np.argsort(start, kind="stable")
    # what is left between open intervals that are forbidden
    left = np.maximum.accumulate(np.concatenate([[0.0], end[order]]))
    right = np.concatenate([start[order], [np.inf]])
    there = (right >= left) & (left < np.inf)
    return np.stack([left[there], right[there]], axis=1)


def united(parts: list[np.ndarray]) -> np.ndarray:
    """The union of closed intervals (n, 2), in order."""
    every = np.concatenate([np.zeros((0, 2)), *parts])
    every = every[np.argsort(every[:, 0], kind="stable")]
    if not len(every):
        return every
    reach = np.maximum.accumulate(every[:, 1])
    new = np.concatenate([[True], every[1:, 0] > reach[:-1]])
    return np.stack([every[new, 0], reach[np.append(new[1:], True)]], axis=1)
