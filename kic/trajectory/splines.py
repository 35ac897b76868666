"""Trajectories through points: splines, with stops, and Hermite polynomials."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import factorial
from typing import Any, Literal

import numpy as np

from kic.errors import InputError, invalid
from kic.numerics import polynomials as piecewise
from kic.numerics.arguments import choice, entries
from kic.numerics.arrays import reals
from kic.numerics.polynomials import Piecewise
from kic.trajectory.trajectory import Naming, Trajectory, naming, positive_duration

# shortest interval of a spline; its powers up to the seventh and their inverses are floating-point numbers
INTERVAL_MIN = 1e-40


def hermite(
    points: Any, times: Any, rates: Any, *, accelerations: Any = None, jerks: Any = None
) -> Trajectory:
    """Return polynomials of degree three, five or seven through points with given derivatives.

    Parameters
    ----------
    points : dict of str to (K,) or (K, w) array_like, or (K, M) array_like
        Points of the path.
    times : (K,) array_like
        Times of the points, from 0.
    rates, accelerations, jerks : as `points`
        Derivatives at the points. Omitted accelerations and jerks are free, and jump.

    Raises
    ------
    InputError
        If shapes or names differ, times do not increase, rates are missing, or jerks are given without
        accelerations.

    Examples
    --------
    >>> t = kic.trajectory.hermite([[0.0], [1.0], [0.0]], [0.0, 1.0, 2.0], rates=[[1.0], [0.0], [-1.0]])
    >>> t([0.0, 1.0]).qd.tolist()
    [[1.0], [0.0]]
    """
    of, q = _points(points)
    knots = _knots(times, len(q))
    if rates is None:
        raise InputError(
            "`rates` at the points must be given. spline() chooses them if they are free.", key="rates"
        )
    if accelerations is None and jerks is not None:
        raise InputError("`accelerations` must be given with `jerks`.", key="accelerations")
    given = {"rates": rates, "accelerations": accelerations, "jerks": jerks}
    derivatives = [of.array(key, x, q.shape[:1]) for key, x in given.items() if x is not None]
    return Trajectory(piecewise.hermite(knots, np.array([q, *derivatives])), of)


def spline(
    points: Any,
    times: Any = None,
    *,
    duration: float = 1.0,
    degree: Literal[3, 5, 7] = 5,
    ends: Literal["rest", "free"] = "rest",
    stops: bool | Iterable[int] = False,
) -> Trajectory:
    """Return a spline through points. All derivatives below its degree are continuous.

    Parameters
    ----------
    points : dict of str to (K,) or (K, w) array_like, or (K, M) array_like
        The points.
    times : (K,) array_like, optional
        Times from 0. By default centripetal: intervals in proportion to the square roots of the distances
        between points, each coordinate scaled by its range.
    duration : float
        Total time, if no times are given.
    degree : {3, 5, 7}
        3 for continuous accelerations, 5 for continuous jerks and their rates, 7 for two more derivatives.
    ends : {"rest", "free"}
        "rest": zero derivatives at both ends, as many as the degree allows. "free": no end conditions, as for
        a path to be timed by `fastest`.
    stops : bool or iterable of int
        Indices of points at which the motion comes to rest; True for all.

    Raises
    ------
    InputError
        If a shape is wrong, points are fewer than 2 or too few for free ends, times do not increase,
        intervals are outside 1e-40 to 1e40, or points coincide without times.

    Examples
    --------
    >>> t = kic.trajectory.spline({"A": [0.0, 1.0, 0.5]}, times=[0.0, 1.0, 3.0])
    >>> t([0.0, 1.0, 3.0]).q[:, 0].round(12).tolist()
    [0.0, 1.0, 0.5]
    >>> bool(abs(t.jumps(3)).max() < 1e-10)
    True
    """
    of, q = _points(points)
    wanted = reals(degree)
    if wanted is None or wanted.ndim or wanted not in (3, 5, 7):
        raise invalid("degree", "must be 3, 5 or 7", degree)
    choice("ends", ends, ("rest", "free"))
    knots = (
        _centripetal_times(q, positive_duration("duration", duration))
        if times is None
        else _knots(times, len(q))
    )
    at = [0, *_stops(stops, len(q)), len(q) - 1]
    parts = []
    for a, b in pairwise(at):
        resting = [ends == "rest" or a > 0, ends == "rest" or b < len(q) - 1]
        parts.append(_spline(knots[a : b + 1], q[a : b + 1], int(degree), resting))
    return Trajectory(piecewise.joined(parts), of)


def _spline(knots: np.ndarray, q: np.ndarray, degree: int, resting: list[bool]) -> Piecewise:
    """Return a spline of odd degree with knots at the points, at rest or free at each end."""
    from scipy.interpolate import make_interp_spline

    intervals = np.diff(knots)
    unfit = ~((intervals >= INTERVAL_MIN) & (intervals <= 1 / INTERVAL_MIN))
    if unfit.any():
        raise InputError(
            f"Intervals of a spline must last from {INTERVAL_MIN:g} to {1 / INTERVAL_MIN:g}, got "
            f"{intervals[unfit][0]:.3g}. Give times in another unit.",
            key="times",
            got=float(intervals[unfit][0]),
        )
    at_rest = [(k, np.zeros(q.shape[1])) for k in range(1, (degree + 1) // 2)]
    needed = degree + 1 - (degree - 1) // 2 * sum(resting)
    if len(q) < needed:
        raise InputError(
            f"A spline of degree {degree} needs {needed} points between free ends, got {len(q)}. Use a "
            "lower degree, or ends='rest'.",
            key="points",
            got=len(q),
        )
    # a free end omits as many knots as a resting end adds conditions
    spare = [0 if rests else (degree - 1) // 2 for rests in resting]
    inner = knots[1 + spare[0] : len(knots) - 1 - spare[1]]
    t = np.concatenate([np.repeat(knots[0], degree + 1), inner, np.repeat(knots[-1], degree + 1)])
    conditions = tuple(at_rest if rests else None for rests in resting)
    spline = make_interp_spline(knots, q, k=degree, t=t, bc_type=conditions)
    breaks = np.unique(spline.t)
    taylor = [
        spline(breaks[:-1], nu=k) * np.diff(breaks)[:, None] ** k / factorial(k) for k in range(degree + 1)
    ]
    return Piecewise(breaks, np.stack(taylor, axis=1))


def _points(points: Any) -> tuple[Naming, np.ndarray]:
    """Return the names and points (K, M), at least two."""
    of = naming("points", points, 1)
    count = len(np.asarray(next(iter(points.values())) if of.names else points))
    if count < 2:
        raise invalid("points", "must have at least 2 points", count)
    return of, of.array("points", points, (count,))


def _knots(times: Any, count: int) -> np.ndarray:
    """Return checked times (K,) that increase from 0."""
    a = reals(times)
    if a is None or a.shape != (count,):
        raise invalid("times", f"must be {count} finite numbers, one for each point", times)
    if a[0] != 0 or (np.diff(a) <= 0).any():
        wrong = int(np.argmax(np.diff(a) <= 0))
        what = f"a start at {a[0]:g}" if a[0] != 0 else f"{a[wrong]:g} and then {a[wrong + 1]:g}"
        raise InputError(f"`times` must increase from 0, got {what}.", key="times", got=a)
    return a.copy()


def _centripetal_times(q: np.ndarray, duration: float) -> np.ndarray:
    """Return centripetal times (K,); each coordinate is scaled by its range."""
    extent = np.ptp(q, axis=0)
    distances = np.linalg.norm(np.diff(q / np.where(extent > 0, extent, 1.0), axis=0), axis=1)
    return centripetal(distances, duration)


def centripetal(distances: np.ndarray, duration: float) -> np.ndarray:
    """Return times (K,) with intervals in proportion to the square roots of the distances (K − 1,)."""
    if (distances == 0).any():
        k = int(np.argmin(distances))
        raise InputError(
            f"Points {k} and {k + 1} coincide, so the time between them would be zero. Give `times`, "
            "or leave one of them out.",
            key="points",
            point=k,
        )
    at = np.concatenate([[0.0], np.cumsum(np.sqrt(distances))])
    return at / at[-1] * duration


def _stops(stops: bool | Iterable[int], count: int) -> list[int]:
    """Return the indices of inner points at which the motion stops."""
    if isinstance(stops, bool | np.bool_):
        return list(range(1, count - 1)) if stops else []
    # reals() rejects lists of bool, which would mean points 1 and 0
    a = reals(entries(stops)) if np.iterable(stops) else None
    if a is None or a.ndim != 1 or not ((a == np.round(a)) & (a >= -count) & (a < count)).all():
        raise invalid("stops", f"must be points from 0 to {count - 1}", stops)
    return sorted({int(k) % count for k in a} - {0, count - 1})
