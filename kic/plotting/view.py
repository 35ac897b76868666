"""Orthographic views, in which lengths across the view are to scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from kic.errors import invalid
from kic.numerics.arrays import reals

# azimuth and elevation of the viewer in degrees
NAMED_VIEWS = {"top": (-90.0, 90.0), "front": (-90.0, 0.0), "side": (0.0, 0.0)}
# candidates for a default view, in order of preference
_CANDIDATES = [
    (az, el) for el in (24.0, 32.0, 14.0) for az in (-60.0, -40.0, -125.0, -75.0, -25.0, 35.0, 125.0)
]
# minimum improvement of the score over a preferred candidate
_SCORE_GAIN_MIN = 1.12
# maximum number of points for the choice of a view
_POINTS_MAX = 60

# axis permutations by index of the vertical axis; for y, x stays to the right
_AXES_BY_VERTICAL = {
    0: np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    1: np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
    2: np.eye(3),
}

ViewName = str | Sequence[float]


class View:
    """Orthographic view.

    Unit vectors in world axes point right and up in the picture, and toward the viewer. `flat` is True if
    a planar mechanism is viewed along its normal, without occlusion.
    """

    def __init__(self, toward: np.ndarray, up: np.ndarray, flat: bool = False) -> None:
        self.toward = toward / np.linalg.norm(toward)
        across = up - (up @ self.toward) * self.toward
        self.up = across / np.linalg.norm(across)
        self.right = np.cross(self.up, self.toward)
        self.flat = flat

    def project(self, places: Any) -> np.ndarray:
        """Return picture coordinates (..., 2) of points (..., 3) in units of length."""
        return np.asarray(places) @ np.stack([self.right, self.up], axis=1)

    def depth(self, places: Any) -> np.ndarray:
        """Return the coordinates of points (..., 3) toward the viewer."""
        return np.asarray(places) @ self.toward


def view_of(
    requested: ViewName | None, normal: np.ndarray | None, gravity: np.ndarray, places: np.ndarray
) -> View:
    """Return the requested view, or by default a suitable view.

    The request is "top", "front", "side", or azimuth and elevation in degrees. `normal` (3,) is that of a
    planar mechanism, shown in plan view by default; up is opposite to `gravity`; `places` (n, 3) should not
    occlude each other. Raise InputError for an unknown name or invalid numbers.
    """
    if requested is None and normal is not None:
        return _plan_view(normal)
    vertical = _vertical(gravity)
    if requested is None:
        return _best(vertical, places)
    if isinstance(requested, str):
        if requested not in NAMED_VIEWS:
            rule = f"must be one of {', '.join(map(repr, NAMED_VIEWS))} or (azimuth, elevation) in degrees"
            raise invalid("view", rule, requested, views=tuple(NAMED_VIEWS))
        angles = NAMED_VIEWS[requested]
    else:
        pair = reals(requested)
        if pair is None or pair.shape != (2,) or not np.isfinite(pair).all():
            raise invalid("view", "must be (azimuth, elevation), two numbers in degrees", requested)
        angles = float(pair[0]), float(pair[1])
    view = _seen_from(angles, vertical)
    view.flat = normal is not None and bool(abs(normal @ view.toward) > 1 - 1e-9)
    return view


def _plan_view(normal: np.ndarray) -> View:
    """Return the view along the normal: x right and y up, or z up if the mechanism is upright."""
    up = np.eye(3)[1 if abs(normal[2]) > 0.9 else 2]
    view = View(normal, up, flat=True)
    if view.right[np.argmax(np.abs(view.right))] < 0:
        view = View(-normal, up, flat=True)
    return view


def _vertical(gravity: np.ndarray) -> int:
    """Return the index of the world axis along gravity, z without gravity."""
    return int(np.argmax(np.abs(gravity))) if np.linalg.norm(gravity) > 0 else 2


def _seen_from(angles: tuple[float, float], vertical: int) -> View:
    """Return the view from an azimuth about the vertical and an elevation, in degrees."""
    az, el = np.radians(angles)
    toward = np.array([np.cos(el) * np.cos(az), np.cos(el) * np.sin(az), np.sin(el)])
    # also defined for a vertical line of sight
    up = np.array([-np.sin(el) * np.cos(az), -np.sin(el) * np.sin(az), np.cos(el)])
    return View(toward @ _AXES_BY_VERTICAL[vertical], up @ _AXES_BY_VERTICAL[vertical])


def _best(vertical: int, places: np.ndarray) -> View:
    """Return the first candidate, unless another separates the points considerably better."""
    apart = places[np.linspace(0, len(places) - 1, min(len(places), _POINTS_MAX)).astype(int)]
    pairs = np.array(list(combinations(range(len(apart)), 2)), dtype=int).reshape(-1, 2)
    steps = apart[pairs[:, 0]] - apart[pairs[:, 1]]
    size = np.linalg.norm(steps, axis=1)
    steps = steps[size > 1e-3 * size.max(initial=0.0)]
    near = 0.12 * size.max(initial=0.0)
    best, found = None, -np.inf
    for angles in _CANDIDATES:
        view = _seen_from(angles, vertical)
        if not len(steps):
            return view
        seen = np.linalg.norm(view.project(steps), axis=1)
        # only close pairs count; the closest pair weighs half as much as the mean
        score = np.minimum(seen, near).mean() + 0.5 * np.minimum(seen, near).min()
        if best is None or score > _SCORE_GAIN_MIN * found:
            best, found = view, score
    assert best is not None  # the list of views is not empty
    return best
