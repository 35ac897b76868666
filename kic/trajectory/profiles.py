"""Fastest profiles from 0 to 1 at rest in one coordinate: trapezoid and S-curve, in closed form.

Phases of constant acceleration or jerk; those that a short way leaves no time for are not there.
"""

from __future__ import annotations

from math import cbrt, factorial, inf, log2, sqrt

import numpy as np

from kic.numerics.polynomials import Piecewise

# ramps shorter than this share of the whole are lost in the rounding of times
_SHORTEST = 1e-8
# an acceleration that is never reached where the jerk is near 1
_NEVER = 1e9
# a phase of this share of the whole is one that is not there, rounded
_NONE = 1e-15


def trapezoid(velocity: float, acceleration: float) -> Piecewise | None:
    """The fastest way from 0 to 1: faster, even, slower. Without even part where velocity is not reached.

    None where its ramps are too short to be told from jumps.
    """
    unit = _unit(1 / sqrt(acceleration))
    v, a = velocity * unit, acceleration * unit * unit
    lengths = [1 / sqrt(a), 0.0, 1 / sqrt(a)] if v * v >= a else [v / a, 1 / v - v / a, v / a]
    return _integrated(lengths, [a, 0.0, -a], 2, unit)


def s_curve(velocity: float, acceleration: float, jerk: float) -> Piecewise | None:
    """The fastest way from 0 to 1 with limited jerk, in seven phases at most; None as for `trapezoid`."""
    unit = _unit(1 / cbrt(jerk))
    limit, j = velocity * unit, jerk * unit**3
    a = min(acceleration * unit * unit, _NEVER)
    # the peak of the velocity were there no limit to it
    peak = 2 / (a / j + sqrt((a / j) ** 2 + 4 / a)) if 2 * a**3 <= j**2 else (j / 4) ** (1 / 3)
    v = min(peak, limit)
    change, even = (a / j, v / a - a / j) if v * j >= a * a else (sqrt(v / j), 0.0)
    cruise = 1 / v - 2 * change - even if limit < peak else 0.0
    lengths = [change, even, change, cruise, change, even, change]
    return _integrated(lengths, [j, 0.0, -j, 0.0, -j, 0.0, j], 3, unit)


def _unit(time: float) -> float:
    """A power of 2 near to a time: in this unit numbers are near 1, and not rounded."""
    return 2.0 ** round(log2(time))


def _integrated(lengths: list[float], constants: list[float], order: int, unit: float) -> Piecewise | None:
    """From 0 at rest, a derivative of an order constant on each phase; those without length are left out."""
    whole = sum(lengths)
    changes = [h for h, constant in zip(lengths, constants, strict=True) if constant]
    if not whole < inf or min(changes) < _SHORTEST * whole:
        return None
    state, rows, knots, top = np.zeros(order), [], [0.0], 0.0
    for nominal, constant in zip(lengths, constants, strict=True):
        end = knots[-1] + nominal * unit
        top += constant * nominal
        if nominal < _NONE * whole or not end > knots[-1]:
            continue
        # the length between rounded knots: with it the derivative below the constant one ends where it should
        h = (end - knots[-1]) / unit
        jet = np.append(state, (top - state[-1]) / h)
        rows.append([x * h**k / factorial(k) for k, x in enumerate(jet)])
        state = np.array(
            [sum(jet[n] * h ** (n - k) / factorial(n - k) for n in range(k, order + 1)) for k in range(order)]
        )
        knots.append(end)
    return Piecewise(np.array(knots), np.array(rows)[:, :, None])
