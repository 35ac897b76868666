"""Fastest profiles from 0 to 1 at rest in one coordinate: trapezoid and S-curve, in closed form.

Phases of constant acceleration or jerk; those that a short way leaves no time for are not there.
"""

from __future__ import annotations

from math import factorial, sqrt

import numpy as np

from kic.trajectories.piecewise import Piecewise


def trapezoid(velocity: float, acceleration: float) -> Piecewise:
    """The fastest way from 0 to 1: faster, even, slower. Without even part where velocity is not reached."""
    if velocity * velocity >= acceleration:
        ramp = 1 / sqrt(acceleration)
        return integrated([ramp, ramp], [acceleration, -acceleration], 2)
    ramp = velocity / acceleration
    return integrated([ramp, 1 / velocity - ramp, ramp], [acceleration, 0.0, -acceleration], 2)


def s_curve(velocity: float, acceleration: float, jerk: float) -> Piecewise:
    """The fastest way from 0 to 1 with limited jerk, in seven phases at most."""
    # the peak of the velocity were there no limit to it
    if 2 * acceleration**3 <= jerk**2:
        peak = 2 / (acceleration / jerk + sqrt((acceleration / jerk) ** 2 + 4 / acceleration))
    else:
        peak = (jerk / 4) ** (1 / 3)
    v = min(peak, velocity)
    if v * jerk >= acceleration**2:
        change = acceleration / jerk
        even = v / acceleration - change
    else:
        change, even = sqrt(v / jerk), 0.0
    cruise = 1 / v - 2 * change - even if velocity < peak else 0.0
    j = [jerk, 0.0, -jerk, 0.0, -jerk, 0.0, jerk]
    return integrated([change, even, change, cruise, change, even, change], j, 3)


def integrated(lengths: list[float], constants: list[float], order: int) -> Piecewise:
    """From 0 at rest, a derivative of an order constant on each phase; those without length are left out."""
    state, rows, knots = np.zeros(order), [], [0.0]
    for h, constant in zip(lengths, constants, strict=True):
        if knots[-1] + h <= knots[-1]:
            continue
        jet = np.append(state, constant)
        rows.append([x * h**k / factorial(k) for k, x in enumerate(jet)])
        state = np.array(
            [sum(jet[n] * h ** (n - k) / factorial(n - k) for n in range(k, order + 1)) for k in range(order)]
        )
        knots.append(knots[-1] + h)
    return Piecewise(np.array(knots), np.array(rows)[:, :, None])
