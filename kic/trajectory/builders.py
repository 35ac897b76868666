"""Straight, polynomial and profiled trajectories between states of motion."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from kic.errors import InputError, invalid
from kic.numerics import polynomials as piecewise
from kic.numerics.arguments import choice
from kic.numerics.polynomials import Piecewise
from kic.trajectory import profiles
from kic.trajectory.trajectory import Naming, Trajectory, naming, positive_duration

# relative tolerance of positions, rates and durations where trajectories meet
JOIN_RTOL = 1e-9


def line(start: Any, end: Any, duration: float = 1.0) -> Trajectory:
    """Return a straight path at constant rate, to be timed by `fastest` or used as it is.

    Positions `start` and `end` are (M,) array_like, or dicts of str to float or list.

    Examples
    --------
    >>> kic.trajectory.line({"tip.x": 1.0}, {"tip.x": 3.0})(0.5).q.tolist()
    [2.0]
    """
    of, ends = _ends(start, end)
    knots = np.array([0.0, positive_duration("duration", duration)])
    return Trajectory(piecewise.hermite(knots, ends[None]), of)


def quintic(
    start: Any,
    end: Any,
    duration: float,
    *,
    start_rate: Any = None,
    end_rate: Any = None,
    start_acceleration: Any = None,
    end_acceleration: Any = None,
) -> Trajectory:
    """Return one polynomial of degree five between two states of motion; at rest by default.

    Positions and derivatives at start and end are (M,) array_like, or dicts of str to float or list.

    Examples
    --------
    >>> t = kic.trajectory.quintic([0.0, 0.0], [1.0, 2.0], 1.0, end_rate=[0.0, 1.0])
    >>> t(1.0).qd.tolist()
    [0.0, 1.0]
    """
    return _between(start, end, duration, [(start_rate, end_rate), (start_acceleration, end_acceleration)])


def septic(
    start: Any,
    end: Any,
    duration: float,
    *,
    start_rate: Any = None,
    end_rate: Any = None,
    start_acceleration: Any = None,
    end_acceleration: Any = None,
    start_jerk: Any = None,
    end_jerk: Any = None,
) -> Trajectory:
    """Return one polynomial of degree seven between two states of motion, jerks included; see `quintic`.

    Examples
    --------
    >>> kic.trajectory.septic([0.0], [1.0], 1.0)([0.0, 1.0]).qddd.tolist()
    [[0.0], [0.0]]
    """
    rates, accelerations = (start_rate, end_rate), (start_acceleration, end_acceleration)
    return _between(start, end, duration, [rates, accelerations, (start_jerk, end_jerk)])


def _between(start: Any, end: Any, duration: float, given: list[tuple[Any, Any]]) -> Trajectory:
    of, ends = _ends(start, end)
    words = ("rate", "acceleration", "jerk")
    derivatives = [ends] + [
        np.stack([of.array(f"start_{word}", first), of.array(f"end_{word}", last)])
        for word, (first, last) in zip(words, given, strict=False)
    ]
    knots = np.array([0.0, positive_duration("duration", duration)])
    return Trajectory(piecewise.hermite(knots, np.array(derivatives)), of)


def _ends(start: Any, end: Any) -> tuple[Naming, np.ndarray]:
    of = naming("start", start)
    return of, np.stack([of.array("start", start), of.array("end", end)])


def trapezoid(
    start: Any,
    end: Any,
    *,
    rate_limits: Any,
    acceleration_limits: Any,
    together: Literal["line", "ends"] = "line",
) -> Trajectory:
    """Return the fastest rest-to-rest trajectory within limits of velocity and acceleration.

    Parameters
    ----------
    start, end : dict of str to float or list, or (M,) array_like
        Positions at start and end.
    rate_limits, acceleration_limits : float, (M,) or (2, M) array_like, or dict of str to those
        One limit for all magnitudes, one for each, or lower and upper limits; names missing from a dict are
        unlimited. The velocity limit in the direction of motion applies; for acceleration and jerk, the
        smaller of both limits.
    together : {"line", "ends"}
        "line": all coordinates in proportion, along a straight line. "ends": each as fast as possible, slowed
        down so that all end together; never slower than "line".

    Returns
    -------
    Trajectory
        The trajectory, of zero duration if start and end coincide.

    Raises
    ------
    InputError
        If shapes are wrong, limits are not positive, a moving coordinate has no limit, or limits differ so
        much that phases are lost in rounding.

    Examples
    --------
    >>> t = kic.trajectory.trapezoid(
    ...     {"A": 0.0, "E": 0.0}, {"A": 3.0, "E": -1.0}, rate_limits=1.0, acceleration_limits=1.0
    ... )
    >>> t.duration, t(2.0).q.tolist()
    (4.0, [1.5, -0.5])
    """
    limits = {"rate_limits": rate_limits, "acceleration_limits": acceleration_limits}
    return _profiled(start, end, limits, together)


def s_curve(
    start: Any,
    end: Any,
    *,
    rate_limits: Any,
    acceleration_limits: Any,
    jerk_limits: Any,
    together: Literal["line", "ends"] = "line",
) -> Trajectory:
    """Return the fastest rest-to-rest trajectory with limited jerk; see `trapezoid`.

    It has seven phases of constant jerk, or fewer if the path is too short to reach a limit.

    Examples
    --------
    >>> limits = {"rate_limits": 2.0, "acceleration_limits": 2.0, "jerk_limits": 2.0}
    >>> kic.trajectory.s_curve([0.0], [4.0], **limits).duration
    4.0
    """
    limits = {"rate_limits": rate_limits, "acceleration_limits": acceleration_limits}
    return _profiled(start, end, {**limits, "jerk_limits": jerk_limits}, together)


def _profiled(start: Any, end: Any, given: dict[str, Any], together: str) -> Trajectory:
    of, ends = _ends(start, end)
    choice("together", together, ("line", "ends"))
    displacement = ends[1] - ends[0]
    limits = np.array(
        [_share(of.bounds(key, x), displacement, key == "rate_limits") for key, x in given.items()]
    )
    moves = np.flatnonzero(displacement)
    if not len(moves):
        return Trajectory(Piecewise(np.zeros(2), ends[None, :1]), of)
    if together == "line":
        moves, limits = moves[:1], np.broadcast_to(limits.min(axis=1, keepdims=True), limits.shape)
    made = {k: _profile(tuple(given), limits[:, k], of.labels[k]) for k in moves.tolist()}
    longest = max(p.knots[-1] for p in made.values())
    # slowing down by a factor ≥ 1 respects all limits; all coordinates end at the same time
    made = {
        k: p if p.knots[-1] == longest else Piecewise(p.knots / p.knots[-1] * longest, p.coefficients)
        for k, p in made.items()
    }
    shares = piecewise.beside([made.get(k, made[int(moves[0])]) for k in range(of.size)])
    c = shares.coefficients * displacement
    c[:, 0] += ends[0]
    return Trajectory(Piecewise(shares.knots, c), of)


def _profile(keys: tuple[str, ...], limits: np.ndarray, label: str) -> Piecewise:
    """Return the fastest profile from 0 to 1 within limits of its derivatives."""
    for key, limit in zip(keys, limits.tolist(), strict=True):
        if not limit > 0 or (key == keys[-1] and limit == np.inf):
            shown = f"{limit:g} in shares of the displacement"
            raise invalid(key, f"must be finite and let {label} move", limit, shown=shown)
    made = (profiles.trapezoid if len(keys) == 2 else profiles.s_curve)(*limits.tolist())
    if made is None:
        values = ", ".join(f"{key} {limit:g}" for key, limit in zip(keys, limits.tolist(), strict=True))
        raise InputError(
            f"Limits of {label} must be closer in size, relative to its displacement, got {values}. "
            f"Phases of its motion would be lost in the rounding of times. Lower the limit of `{keys[-1]}`"
            + ("." if len(keys) == 2 else ", or use trapezoid()."),
            key="limits",
            limits=limits,
        )
    return made


def _share(bounds: tuple[np.ndarray, np.ndarray], displacement: np.ndarray, signed: bool) -> np.ndarray:
    """Return limits (M,) divided by the displacement; `signed` limits apply in its direction only."""
    lower, upper = bounds
    ahead = np.where(displacement > 0, upper, -lower)
    size = np.abs(ahead if signed else np.minimum(upper, -lower))
    with np.errstate(over="ignore"):
        return np.where(
            displacement == 0, np.inf, size / np.where(displacement == 0, 1.0, np.abs(displacement))
        )


def concatenate(parts: Iterable[Trajectory]) -> Trajectory:
    """Return trajectories joined one after another.

    Parameters
    ----------
    parts : iterable of Trajectory
        Trajectories in the same coordinates. Positions and rates must agree where they meet, to a billionth
        of their largest values; accelerations may jump.

    Raises
    ------
    InputError
        If `parts` is empty, coordinates differ, positions or rates jump, or pieces are lost in the
        rounding of long times.

    Examples
    --------
    >>> there = kic.trajectory.quintic([0.0], [1.0], 1.0)
    >>> kic.trajectory.concatenate([there, there.reversed()])([0.0, 1.0, 2.0]).q[:, 0].tolist()
    [0.0, 1.0, 0.0]
    """
    try:
        given = list(parts)
    except TypeError:
        given = []
    if not given or not all(isinstance(part, Trajectory) for part in given):
        raise invalid("parts", "must be trajectories", given or parts)
    first = given[0]
    for k, (one, next_one) in enumerate(pairwise(given)):
        if next_one.naming != first.naming:
            raise InputError(
                f"Trajectories must be in the same coordinates, {', '.join(first.naming.labels)}, got "
                f"{', '.join(next_one.naming.labels)}.",
                key="parts",
                got=next_one.naming.labels,
                part=k,
            )
        for order, word in enumerate(("positions", "rates")):
            end, start = one(one.duration)[order], next_one(0.0)[order]
            size = np.max([np.abs(one.extremes(order)), np.abs(next_one.extremes(order))], axis=(0, 1))
            off = np.abs(end - start)
            if (off > JOIN_RTOL * size).any():
                n = int(np.argmax(off))
                raise InputError(
                    f"The {word} must meet, but {first.naming.labels[n]} jumps from {end[n]:g} to "
                    f"{start[n]:g} between trajectories {k} and {k + 1}.",
                    key="parts",
                    name=first.naming.labels[n],
                    part=k,
                )
    made = piecewise.joined([part.pieces for part in given])
    before = np.concatenate([np.diff(part.pieces.knots) for part in given if part.duration] or [np.zeros(1)])
    off = np.abs(np.diff(made.knots) - before) > JOIN_RTOL * before
    if off.any():
        k = int(np.argmax(off))
        raise InputError(
            f"A piece of duration {before[k]:.3g} is lost to the rounding of times at {made.knots[k]:.9g}. "
            "Do not concatenate the trajectories.",
            key="duration",
            piece=k,
        )
    return Trajectory(made, first.naming)
