"""Time-optimal rest-to-rest profiles from 0 to 1 in one coordinate, in closed form: trapezoid and S-curve.

Phases of constant acceleration or jerk are omitted if the distance is too short for them.
"""

from __future__ import annotations

from math import cbrt, factorial, inf, log2, sqrt

import numpy as np

from kic.numerics.polynomials import Piecewise

# shortest ramp, as a share of the duration, that is not lost in the rounding of times
RAMP_MIN = 1e-8
# replaces an infinite limit of acceleration, in units in which the jerk is near 1
ACCELERATION_MAX = 1e9
# phase, as a share of the duration, that is zero up to rounding
PHASE_ATOL = 1e-15


def trapezoid(velocity: float, acceleration: float) -> Piecewise | None:
    """Return the fastest profile with limited acceleration, or None if its ramps are too short to resolve.

    It has no phase of constant velocity if the limit of velocity is not reached.
    """
    unit = _unit(1 / sqrt(acceleration))
    v, a = velocity * unit, acceleration * unit * unit
    lengths = [1 / sqrt(a), 0.0, 1 / sqrt(a)] if v * v >= a else [v / a, 1 / v - v / a, v / a]
    return _integrated(lengths, [a, 0.0, -a], 2, unit)


def s_curve(velocity: float, acceleration: float, jerk: float) -> Piecewise | None:
    """Return the fastest profile with limited jerk, of at most seven phases, or None as in `trapezoid`."""
    unit = _unit(1 / cbrt(jerk))
    limit, j = velocity * unit, jerk * unit**3
    a = min(acceleration * unit * unit, ACCELERATION_MAX)
    # peak velocity without a limit of velocity
    peak = 2 / (a / j + sqrt((a / j) ** 2 + 4 / a)) if 2 * a**3 <= j**2 else (j / 4) ** (1 / 3)
    v = min(peak, limit)
    change, even = (a / j, v / a - a / j) if v * j >= a * a else (sqrt(v / j), 0.0)
    cruise = 1 / v - 2 * change - even if limit < peak else 0.0
    lengths = [change, even, change, cruise, change, even, change]
    return _integrated(lengths, [j, 0.0, -j, 0.0, -j, 0.0, j], 3, unit)


def _unit(time: float) -> float:
    """Return a power of 2 near a time. In this unit numbers are near 1, and scaling does not round."""
    return 2.0 ** round(log2(time))


def _integrated(lengths: list[float], constants: list[float], order: int, unit: float) -> Piecewise | None:
    """Integrate a piecewise constant derivative from rest at 0; phases of zero length are omitted."""
    whole = sum(lengths)
    changes = [h for h, constant in zip(lengths, constants, strict=True) if constant]
    if not whole < inf or min(changes) < RAMP_MIN * whole:
        return None
    state, rows, knots, top = np.zeros(order), [], [0.0], 0.0
    for nominal, constant in zip(lengths, constants, strict=True):
        end = knots[-1] + nominal * unit
        top += constant * nominal
        if nominal < PHASE_ATOL * whole or not end > knots[-1]:
            continue
        # the length between rounded knots makes the lower derivative end exactly at its nominal value
        h = (end - knots[-1]) / unit
        jet = np.append(state, (top - state[-1]) / h)
        rows.append([x * h**k / factorial(k) for k, x in enumerate(jet)])
        state = np.array(
            [sum(jet[n] * h ** (n - k) / factorial(n - k) for n in range(k, order + 1)) for k in range(order)]
        )
        knots.append(end)
    return Piecewise(np.array(knots), np.array(rows)[:, :, None])
