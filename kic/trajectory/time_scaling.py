"""Uniform time scaling: the same motion, faster or slower as limits allow, in closed form.

After J. M. Hollerbach, "Dynamic scaling of manipulator trajectories", 1984. At r times the speed, rates scale
with r, accelerations and inertial efforts with r², jerks with r³, efforts of dampers with r. Loads stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.errors import InputError
from kic.mechanism import Mechanism
from kic.numerics.arguments import instance, integer
from kic.numerics.display import ROUNDOFF
from kic.numerics.polynomials import allowed
from kic.trajectory.path_constraints import (
    ConstraintFactory,
    PathConstraints,
    constraint_factories,
    intersection,
    named,
    path_constraints,
    sample_path,
    static_violation,
    voltage_speed_intervals,
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
    """Return the same motion at the highest speed that the limits allow; one limit is just reached.

    Limits of velocity, acceleration and jerk hold everywhere, by the exact extremes of the polynomials.
    Others hold at the samples and on both sides of all knots. Between them they may be exceeded by an amount
    that falls with the square of the sample distance.

    Parameters
    ----------
    trajectory : Trajectory
        The motion. Its rates at the ends are scaled, too.
    mechanism, velocity, acceleration, jerk, effort, actuators, rows, near
        Mechanism, limits and start of the continuation, as in `fastest`.
    samples : int
        Number of sample times.
    voltage : float, (K,) or (2, K) array_like, or dict of str to those, optional
        Limits of the motor voltages, by name or in the order of the description. Rotors, damping, friction
        and inductance are included; the share of the inductance scales with the jerk.

    Returns
    -------
    Trajectory
        Its duration divided by the duration before is the factor.

    Raises
    ------
    InputError
        If nothing limits the motion, or no speed meets the limits, for example where gravity alone exceeds an
        effort limit; the message names the limit and the time. Also for wrong shapes, or a trajectory of zero
        duration.

    Examples
    --------
    >>> slow = kic.trajectory.quintic({"A": 0.0}, {"A": 1.0}, duration=10.0)
    >>> round(kic.trajectory.uniform(slow, velocity=1.875).duration, 12)
    1.0
    """
    check_duration(trajectory)
    highest, of = np.inf, named(trajectory, mechanism)
    given = ("velocity", velocity), ("acceleration", acceleration), ("jerk", jerk)
    for order, (key, limits) in enumerate(given, start=1):
        if limits is not None:
            share = _share(trajectory.extremes(order), of.bounds(key, limits))
            highest = min(highest, share ** (-1 / order) if share else np.inf)
    s = grid_points(trajectory, samples, clustered=False)
    made = PathConstraints(())
    allowed_speeds = np.array([[0.0, np.inf]])
    hooks = constraint_factories(rows)
    if effort is not None or actuators is not None or hooks:
        made = path_constraints(
            sample_path(trajectory, mechanism, near, s), effort=effort, actuators=actuators, rows=hooks
        )
        allowed_speeds = allowed(*(np.concatenate(c) for c in zip(*_quadratics(made), strict=True)))
    if voltage is not None:
        allowed_speeds = intersection(
            allowed_speeds, voltage_speed_intervals(trajectory, mechanism, near, s, voltage)
        )
    allowed_speeds = allowed_speeds[allowed_speeds[:, 0] <= highest]
    fastest = min(float(allowed_speeds[-1, 1]), highest) if len(allowed_speeds) else 0.0
    if fastest == np.inf:
        raise InputError("Nothing limits this motion. Give limits for coordinates that move.", key="limits")
    if not fastest > 0:
        why = static_violation(made, s, "t")
        if voltage is not None and why is None:
            why = "the motors cannot hold the static load"
        raise InputError(
            f"No speed meets the limits{f': {why}' if why else ''}. Relax the limits, or use another path.",
            key="limits",
        )
    return trajectory.scaled(1 / fastest)


def _quadratics(made: PathConstraints) -> list[list[np.ndarray]]:
    """Return coefficients of upper − (B r² + C r + D) and of (B r² + C r + D) − lower, for finite limits."""
    found = []
    for sign, limit in ((-1.0, made.upper), (1.0, made.lower)):
        held = np.isfinite(limit)
        found.append([(sign * (made.D - limit))[held], sign * made.C[held], sign * made.B[held]])
    return found


def _share(reach: tuple[np.ndarray, np.ndarray], bounds: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the largest ratio of extremes to bounds; extremes within rounding count as zero."""
    # a limit of −0 would have the wrong sign in the ratio
    out, most = np.array([-reach[0], reach[1]]), np.abs([bounds[0], bounds[1]])
    moves = out > ROUNDOFF * np.abs(reach).max(initial=0.0)
    with np.errstate(divide="ignore"):
        return float(np.max(out[moves] / most[moves], initial=0.0))


def check_duration(trajectory: Any) -> None:
    """Check that a trajectory has a positive duration."""
    if not instance("path", trajectory, Trajectory).duration:
        raise InputError("A trajectory of zero duration cannot be scaled.", key="path", got=0.0)


def grid_points(path: Trajectory, count: Any, clustered: bool) -> np.ndarray:
    """Return ends (L + 1,) of intervals of a path that include all knots; `clustered` at both ends."""
    share = np.linspace(0.0, 1.0, integer("grid", count, 3))
    base = path.duration * ((1 - np.cos(np.pi * share)) / 2 if clustered else share)
    knots = path.pieces.knots
    # knots replace points of the grid near them
    place = np.clip(np.searchsorted(knots, base), 1, len(knots) - 1)
    off = np.minimum(np.abs(base - knots[place - 1]), np.abs(base - knots[place]))
    return np.unique(np.concatenate([knots, base[off > np.gradient(base) / 4]]))
