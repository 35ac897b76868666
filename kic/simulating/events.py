"""Events of a run: zeros of functions of the motion, and limits of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from kic.arrays import as_numbers
from kic.errors import InputError, SimulationError, shown
from kic.simulating.motion import Now

# where within a step events are looked at: the ends have neighbours, which tell how they begin and end
_LOOKS = np.array([0.0, 1e-3, 1 / 3, 2 / 3, 1 - 1e-3, 1.0])
# an event that differs from zero by this share of what it does in the first step is at zero at the start
_AT_ZERO = 1e-6
# a start may be beyond a limit by this share of the limit, which is rounding
_ROUNDING = 1e-9
_ACCURACY = 4 * float(np.finfo(float).eps)

Event = Callable[[float, Now], Any]


class Limit:
    """A limit of a coordinate, as an event that stops the run; called, it says how far beyond it is.

    Parameters
    ----------
    name : str
        The coordinate.
    k : int
        Its place among the user's.
    bound : float
        The limit.
    way : int
        +1 for an upper limit, -1 for a lower one.
    """

    terminal, direction = True, 1

    def __init__(self, name: str, k: int, bound: float, way: int) -> None:
        self.k, self.bound, self.way = k, bound, way
        self.__name__ = f"the {'upper' if way > 0 else 'lower'} limit of {name}"

    def __call__(self, t: float, now: Now) -> float:
        """How far the motion is beyond it."""
        return self.way * float(now.q[self.k] - self.bound)

    def check(self, now: Now) -> None:
        """Refuse a start beyond it."""
        if self(0.0, now) > _ROUNDING * max(1.0, abs(self.bound)):
            raise InputError(
                f"The motion starts beyond {self.__name__}, at {now.q[self.k]:.9g}; the limit is "
                f"{self.bound:.9g}. Start within the limits."
            )


class Events:
    """The events of a run.

    Parameters
    ----------
    events : sequence of callable
        Functions of (t, now).
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.all = tuple(events)

    def check(self, now: Now) -> None:
        """Refuse a start beyond a limit."""
        for event in self.all:
            if isinstance(event, Limit):
                event.check(now)

    def stops(self, which: int) -> bool:
        """Whether one stops the run."""
        return bool(getattr(self.all[which], "terminal", False))

    def name(self, which: int) -> str:
        """What one is called."""
        return str(getattr(self.all[which], "__name__", "an event"))

    def within(
        self, seen: Callable[[float], Now], begin: float, end: float, first: bool
    ) -> list[tuple[float, int]]:
        """Zeros within a step, in order: when, and which; none after one that stops the run.

        An event that is zero at the start of a run counts from then on. A limit that is reached at the start
        stops the run at once if the motion goes beyond it.

        Parameters
        ----------
        seen : callable
            What events see of the motion at a time of the step.
        begin, end : float
            The step.
        first : bool
            Whether it is the first of the run.
        """
        if not self.all:
            return []
        times = (begin + _LOOKS * (end - begin)).tolist()
        times[-1] = end
        moments = [seen(t) for t in times]
        hits = []
        for i, event in enumerate(self.all):
            values = [_value(event, t, now) for t, now in zip(times, moments, strict=True)]
            if first and abs(values[0]) <= _AT_ZERO * max(map(abs, values)):
                values[0] = 0.0
                if isinstance(event, Limit) and next((x for x in values if x), 0.0) > 0:
                    hits.append((begin, i))
                    continue
            zeros = crossings(partial(_of, event, seen), times, values)
            hits += [(t, i) for t, way in zeros if way * getattr(event, "direction", 0) >= 0]
        hits.sort()
        last = next((n for n, (_, i) in enumerate(hits) if self.stops(i)), len(hits))
        return hits[: last + 1]


def _of(event: Event, seen: Callable[[float], Now], t: float) -> float:
    return _value(event, t, seen(t))


def _value(event: Event, t: float, now: Now) -> float:
    """What an event is, checked."""
    got = event(t, now.handed())
    a = as_numbers(got)
    if a is None or a.dtype != np.float64 or a.size != 1:
        raise InputError(
            f"Expected the event '{getattr(event, '__name__', event)}' to return a real number, got "
            f"{shown(got)} at t = {t:.9g}.",
            time=t,
        )
    if np.isnan(a).any():
        raise SimulationError(
            f"The event '{getattr(event, '__name__', event)}' returned nan at t = {t:.9g}, where q = "
            f"{shown(now.q.tolist())} and qd = {shown(now.qd.tolist())}. Events must be numbers.",
            time=t,
            q=now.q,
            qd=now.qd,
        )
    return float(a.reshape(()))


def crossings(
    value: Callable[[float], float], times: Sequence[float], values: Sequence[float]
) -> list[tuple[float, int]]:
    """Zeros of a smooth function, and whether it rises (+1) or falls (-1) there.

    Between the times at which it is known it may touch zero and turn: where it dips, its least is looked for.
    A zero at the first time does not count, one at the last does.

    Parameters
    ----------
    value : callable
        The function of time.
    times, values : (n,)
        Increasing times at which it is known, and what it is there.

    Examples
    --------
    >>> found = crossings(lambda t: (t - 1.1) ** 2 - 1e-4, [0.0, 1.0, 2.0], [1.2099, 0.0099, 0.8099])
    >>> [(round(t, 9), way) for t, way in found]
    [(1.09, -1), (1.11, 1)]
    """
    from scipy.optimize import brentq

    known = dict(zip(times, values, strict=True))

    def at(t: float) -> float:
        if t not in known:
            known[t] = value(t)
        return known[t]

    knots = sorted([*times, *_dips(at, times)])
    found = []
    for a, b in pairwise(knots):
        before, after = at(a), at(b)
        if before < 0 <= after or before > 0 >= after:
            when = float(brentq(at, a, b, xtol=_ACCURACY * (b - a) or _ACCURACY, rtol=_ACCURACY))
            found.append((when, 1 if after > before else -1))
    return found


def _dips(at: Callable[[float], float], times: Sequence[float]) -> list[float]:
    """Times at which a function that nears zero and turns has gone beyond it."""
    from scipy.optimize import minimize_scalar

    dips = []
    for a, b, c in zip(times, times[1:], times[2:], strict=False):
        side = 1.0 if at(b) > 0 else -1.0
        x, y, z = side * at(a), side * at(b), side * at(c)
        if not (0 < y <= x and y <= z and x + z > 2 * y):
            continue
        # the least of the parabola through the three
        p, q = (x - y) / (b - a), (z - y) / (c - b)
        bend = (p + q) / (c - a)
        slope = (q * (b - a) - p * (c - b)) / (c - a)
        if y - slope * slope / (4 * bend) < y / 2:
            least = minimize_scalar(
                lambda t, side=side: side * at(float(t)),
                bounds=(a, c),
                method="bounded",
                options={"xatol": 1e-7 * (c - a)},
            )
            if least.fun <= 0:
                dips.append(float(least.x))
    return dips
