"""From where a mechanism is looked at: orthographic, so that lengths across the view are true to scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from kic.errors import InputError, short_repr
from kic.numerics.arrays import reals

# azimuth and elevation in degrees, as of a camera that stands so around the vertical
NAMED_VIEWS = {"top": (-90.0, 90.0), "front": (-90.0, 0.0), "side": (0.0, 0.0)}
# tried in this order where nothing is asked for; a later one must show clearly more to be taken
_TRIED = [(az, el) for el in (24.0, 32.0, 14.0) for az in (-60.0, -40.0, -125.0, -75.0, -25.0, 35.0, 125.0)]
_CLEARLY = 1.12
# of more places than these only some are compared
_MANY = 60

# what takes the place of x, y and z where another axis stands up; where y does, x stays to the right
_STANDING = {
    0: np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    1: np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
    2: np.eye(3),
}

ViewName = str | Sequence[float]


class View:
    """An orthographic view.

    Attributes
    ----------
    right, up, toward : (3,)
        Unit vectors in world axes: to the right and up in the picture, and out of it to who looks.
    flat : bool
        Whether a planar mechanism is looked at along its normal, so that nothing hides anything.
    """

    def __init__(self, toward: np.ndarray, up: np.ndarray, flat: bool = False) -> None:
        self.toward = toward / np.linalg.norm(toward)
        across = up - (up @ self.toward) * self.toward
        self.up = across / np.linalg.norm(across)
        self.right = np.cross(self.up, self.toward)
        self.flat = flat

    def project(self, places: Any) -> np.ndarray:
        """Where places (..., 3) appear, (..., 2), in units of length."""
        return np.asarray(places) @ np.stack([self.right, self.up], axis=1)

    def depth(self, places: Any) -> np.ndarray:
        """How near places (..., 3) are to who looks, (...)."""
        return np.asarray(places) @ self.toward


def view_of(
    asked: ViewName | None, normal: np.ndarray | None, gravity: np.ndarray, places: np.ndarray
) -> View:
    """The view that is asked for, or a good one.

    Parameters
    ----------
    asked : str, (2,) floats or None
        "top", "front", "side", or azimuth and elevation in degrees.
    normal : (3,) or None
        Normal of a planar mechanism.
    gravity : (3,)
        What is up stands against it.
    places : (n, 3)
        What should not hide one another.

    Raises
    ------
    InputError
        For another name, or numbers that are none.
    """
    if asked is None and normal is not None:
        return _plan(normal)
    vertical = _vertical(gravity)
    if asked is None:
        return _best(vertical, places)
    if isinstance(asked, str):
        if asked not in NAMED_VIEWS:
            raise InputError(
                f"Expected `view` to be one of {', '.join(map(repr, NAMED_VIEWS))}, or (azimuth, elevation) in "
                f"degrees, got {asked!r}.",
                views=tuple(NAMED_VIEWS),
            )
        angles = NAMED_VIEWS[asked]
    else:
        pair = reals(asked)
        if pair is None or pair.shape != (2,) or not np.isfinite(pair).all():
            raise InputError(
                f"Expected `view` to be (azimuth, elevation), two numbers in degrees, got {short_repr(asked)}."
            )
        angles = float(pair[0]), float(pair[1])
    view = _seen_from(angles, vertical)
    view.flat = normal is not None and bool(abs(normal @ view.toward) > 1 - 1e-9)
    return view


def _plan(normal: np.ndarray) -> View:
    """A planar mechanism as it lies: x to the right and y up, or z up where it stands upright."""
    up = np.eye(3)[1 if abs(normal[2]) > 0.9 else 2]
    view = View(normal, up, flat=True)
    if view.right[np.argmax(np.abs(view.right))] < 0:
        view = View(-normal, up, flat=True)
    return view


def _vertical(gravity: np.ndarray) -> int:
    """Which world axis stands up: the one along gravity, z without it."""
    return int(np.argmax(np.abs(gravity))) if np.linalg.norm(gravity) > 0 else 2


def _seen_from(angles: tuple[float, float], vertical: int) -> View:
    """The view from an azimuth about the vertical and an elevation above the level, both in degrees."""
    az, el = np.radians(angles)
    toward = np.array([np.cos(el) * np.cos(az), np.cos(el) * np.sin(az), np.sin(el)])
    # the way the camera's head points, defined also when it looks straight down
    up = np.array([-np.sin(el) * np.cos(az), -np.sin(el) * np.sin(az), np.cos(el)])
    return View(toward @ _STANDING[vertical], up @ _STANDING[vertical])


def _best(vertical: int, places: np.ndarray) -> View:
    """The first of the usual views, unless another keeps the places clearly further apart."""
    apart = places[np.linspace(0, len(places) - 1, min(len(places), _MANY)).astype(int)]
    pairs = np.array(list(combinations(range(len(apart)), 2)), dtype=int).reshape(-1, 2)
    steps = apart[pairs[:, 0]] - apart[pairs[:, 1]]
    size = np.linalg.norm(steps, axis=1)
    steps = steps[size > 1e-3 * size.max(initial=0.0)]
    near = 0.12 * size.max(initial=0.0)
    best, found = None, -np.inf
    for angles in _TRIED:
        view = _seen_from(angles, vertical)
        if not len(steps):
            return view
        seen = np.linalg.norm(view.project(steps), axis=1)
        # only what comes near one another counts, and the worst pair as much as all the others
        score = np.minimum(seen, near).mean() + 0.5 * np.minimum(seen, near).min()
        if best is None or score > _CLEARLY * found:
            best, found = view, score
    assert best is not None  # the list of views is not empty
    return best
