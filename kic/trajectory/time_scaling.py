"""Uniform time scaling: the same motion, as much faster or slower as limits allow, in closed form.

After J. M. Hollerbach, "Dynamic scaling of manipulator trajectories", 1984: run r times as fast, rates grow
by r, accelerations and what inertia takes by r², jerks by r³, efforts of dampers by r, and loads not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.display import ROUNDOFF
from kic.errors import InputError, short_repr
from kic.mechanism import Mechanism
from kic.numerics.polynomials import allowed
from kic.trajectory.path_constraints import (
    ConstraintFactory,
    PathConstraints,
    constraint_factories,
    gathered,
    impossible,
    named,
    sample_path,
    shared,
    voltage_room,
)
from kic.trajectory.trajectory import Trajectory


def uniform(
    trajectory: Trajectory,
    mechanism: Mechanism | None = None,
    velocity: Any = None,
    acceleration: Any = None,
    jerk: Any = None,
    effort: Any = None,
    actuators: str | Iterable[str] | None = None,
    rows: ConstraintFactory | Iterable[ConstraintFactory] = (),
    near: Configuration | None = None,
    samples: int = 201,
    voltage: Any = None,
) -> Trajectory:
    """The same motion run as fast as limits allow: one of them is just reached.

    Limits of velocity, acceleration and jerk hold everywhere, by the exact extremes of the polynomials;
    others at the samples and on both sides of all knots, and between them but for what falls with the square
    of their distance.

    Parameters
    ----------
    trajectory : Trajectory
        The motion. Its rates at the ends are scaled, too.
    mechanism : Mechanism, optional
        What moves, where efforts or voltages are limited.
    velocity, acceleration, jerk, effort : float, (M,) or (2, M) array_like, or dict of str to those
        Limits: of the size of all or of each, or lower and upper ones; a dict may leave names free.
    actuators : str or list of str, optional
        Coordinates at which efforts act, as many as freedoms; by default those of the trajectory.
    rows : callable or list of those, optional
        Further limits: each takes an `Along` and returns `Rows` of it.
    near : Configuration, optional
        From where the first configuration is led; by default the drawing.
    samples : int
        How many instants are looked at.
    voltage : float, (K,) or (2, K) array_like, or dict of str to those, optional
        Limits of the voltages of the motors, by name or in the order of the drawing. They count whole: with
        rotors, damping, friction and the inductance, whose share goes with the jerk.

    Returns
    -------
    Trajectory
        Its duration, divided by that before, is the factor.

    Raises
    ------
    InputError
        If nothing limits the motion, or no speed meets the limits, as where gravity alone exceeds that of an
        effort: which, and where; also for wrong shapes, or a trajectory of no duration.

    Examples
    --------
    >>> from kic import trajectory
    >>> slow = trajectory.quintic({"A": 0.0}, {"A": 1.0}, duration=10.0)
    >>> round(trajectory.uniform(slow, velocity=1.875).duration, 12)
    1.0
    """
    check_way(trajectory)
    top, of = np.inf, named(trajectory, mechanism)
    given = ("velocity", velocity), ("acceleration", acceleration), ("jerk", jerk)
    for order, (key, limits) in enumerate(given, start=1):
        if limits is not None:
            share = _share(trajectory.extremes(order), of.bounds(key, limits))
            top = min(top, share ** (-1 / order) if share else np.inf)
    s = grid_of(trajectory, samples, clustered=False)
    made = PathConstraints(())
    room = np.array([[0.0, np.inf]])
    hooks = constraint_factories(rows)
    if effort is not None or actuators is not None or hooks:
        made = gathered(
            sample_path(trajectory, mechanism, near, s), effort=effort, actuators=actuators, rows=hooks
        )
        room = allowed(*(np.concatenate(c) for c in zip(*_quadratics(made), strict=True)))
    if voltage is not None:
        room = shared(room, voltage_room(trajectory, mechanism, near, s, voltage))
    room = room[room[:, 0] <= top]
    fastest = min(float(room[-1, 1]), top) if len(room) else 0.0
    if fastest == np.inf:
        raise InputError("Nothing limits this motion: give limits for what moves.")
    if not fastest > 0:
        why = impossible(made, s, "t")
        if voltage is not None and why is None:
            why = "motors do not reach so far, nor hold what they carry"
        raise InputError(
            f"No speed meets the limits: {why}. Allow more, or take another way."
            if why
            else "No speed meets the limits, however slow. Allow more, or take another way."
        )
    return trajectory.scaled(1 / fastest)


def _quadratics(made: PathConstraints) -> list[list[np.ndarray]]:
    """Coefficients of upper − (B r² + C r + D) and of (B r² + C r + D) − lower, where there are limits."""
    found = []
    for sign, limit in ((-1.0, made.upper), (1.0, made.lower)):
        held = np.isfinite(limit)
        found.append([(sign * (made.D - limit))[held], sign * made.C[held], sign * made.B[held]])
    return found


def _share(reach: tuple[np.ndarray, np.ndarray], bounds: tuple[np.ndarray, np.ndarray]) -> float:
    """The largest share of bounds that is reached; what is only rounding reaches nothing."""
    # a limit of −0 would let everything pass
    out, most = np.array([-reach[0], reach[1]]), np.abs([bounds[0], bounds[1]])
    moves = out > ROUNDOFF * np.abs(reach).max(initial=0.0)
    with np.errstate(divide="ignore"):
        return float(np.max(out[moves] / most[moves], initial=0.0))


def check_way(trajectory: Any) -> None:
    """A trajectory that takes time, or an error."""
    if not isinstance(trajectory, Trajectory):
        raise InputError(f"`path` must be a Trajectory, got {short_repr(trajectory)}.")
    if not trajectory.duration:
        raise InputError("A trajectory of a single instant has no time to scale: it goes nowhere.")


def grid_of(path: Trajectory, count: Any, clustered: bool) -> np.ndarray:
    """Ends (L + 1,) of intervals of a path, all of its knots among them; `clustered` at its two ends."""
    if not isinstance(count, int | np.integer) or isinstance(count, bool | np.timedelta64) or count < 3:
        raise InputError(f"The grid must have at least 3 points, got {short_repr(count)}.")
    share = np.linspace(0.0, 1.0, int(count))
    base = path.duration * ((1 - np.cos(np.pi * share)) / 2 if clustered else share)
    knots = path.pieces.knots
    # points of the grid give way to knots beside them
    place = np.clip(np.searchsorted(knots, base), 1, len(knots) - 1)
    off = np.minimum(np.abs(base - knots[place - 1]), np.abs(base - knots[place]))
    return np.unique(np.concatenate([knots, base[off > np.gradient(base) / 4]]))
