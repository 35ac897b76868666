"""Events of a run: zeros of functions of the motion, and limits of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kic.errors import InputError, SimulationError, short_repr
from kic.numerics.arrays import as_numbers
from kic.numerics.tolerances import EPS
from kic.simulation.motion import Snapshot

# samples next to the ends of a step, which show an extremum of an event there
EDGE_SHARES = (1e-3, 1 - 1e-3)
# initial number of intervals of a step, and the places in an interval where interpolation is checked
INTERVALS, CHECK, SECOND_CHECK = 3, 0.47, 0.79
# an interval is resolved if the error of cubic interpolation at the check is below this share of the smallest
# value in it, which excludes hidden zeros, or of the range of the event within the step
NEAR_RTOL, RANGE_RTOL = 0.2, 1e-4
# interpolation errors below this are rounding
ROUNDING_ATOL = 1e-13
# all intervals are divided where more than this share is unresolved
REFINE_ALL = 0.1
# intervals shorter than this share of the step hold a jump, not a fast variation
JUMP_WIDTH = 1e-9
# largest number of evaluations of an event within a step
EVALUATIONS_MAX = 32_768
# minimum of an event, as a share of its neighbouring values, below which it touches zero
TOUCH_RTOL = 1e-11
# predicted minimum, as a share of the neighbouring values, below which the minimum is searched for
DIP_RTOL = 1e-2
# value at the start, as a share of the largest in the first step, below which the event starts at zero
EVENT_START_RTOL = 1e-6
# distance of a start beyond a limit, as a share of the limit, that is rounding
LIMIT_RTOL = 1e-9
# difference of times, as a share of a step, of events that are simultaneous but for rounding errors
SIMULTANEOUS_RTOL = 1e-9
ROOT_RTOL = 4 * EPS

Event = Callable[[float, Snapshot], Any]


class Limit:
    """Limit of a row or swing, as an event that stops the run. Its value is the distance beyond the limit.

    `read` returns the value of row `name` of a `Snapshot`; `sign` is +1 for an upper limit, −1 for a lower
    one.
    """

    terminal, direction = True, 1

    def __init__(self, name: str, read: Callable[[Snapshot], float], bound: float, sign: int) -> None:
        self.read, self.bound, self.sign = read, bound, sign
        self.__name__ = f"the {'upper' if sign > 0 else 'lower'} limit of {name}"

    def __call__(self, t: float, now: Snapshot) -> float:
        """Return the distance beyond the limit."""
        return self.sign * (self.read(now) - self.bound)

    def check(self, now: Snapshot) -> None:
        """Check that the start is within the limit.

        Raise `InputError` if it is beyond the limit by more than rounding.
        """
        if self(0.0, now) > LIMIT_RTOL * max(1.0, abs(self.bound)):
            message = (
                f"The motion starts beyond {self.__name__}, at {self.read(now):.9g}; the limit is "
                f"{self.bound:.9g}. Start within the limits."
            )
            raise InputError(message, key="near", name=self.__name__)


class Events:
    """The events of a run: functions of (t, now)."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.all = tuple(events)
        # number of bisections that resolved each event in the last step: the first guess for the next
        self._levels = [0] * len(self.all)

    def check(self, now: Snapshot) -> None:
        """Check that the start is within all limits."""
        for event in self.all:
            if isinstance(event, Limit):
                event.check(now)

    def stops(self, which: int) -> bool:
        """Return True if the event stops the run."""
        return bool(getattr(self.all[which], "terminal", False))

    def name(self, which: int) -> str:
        """Return the name of an event."""
        return str(getattr(self.all[which], "__name__", "an event"))

    def _resolved(self, which: int, value: Callable[[float], float], begin: float, end: float) -> list[float]:
        """Return times within a step between which an event varies slowly enough to find all its zeros.

        Each interval of the samples is checked by one more sample, which interpolation must predict.

        Raise `SimulationError` if this takes more than the allowed number of evaluations.
        """
        level = self._levels[which]
        count = INTERVALS * 2**level
        times = np.linspace(begin, end, count + 1).tolist()
        values, checked = [value(t) for t in times], [False] * count
        while not all(checked):
            floor = max(RANGE_RTOL * (max(values) - min(values)), ROUNDING_ATOL)
            middles = [a + CHECK * (b - a) for a, b in pairwise(times)]
            for k, t in enumerate(middles):
                if checked[k]:
                    continue
                a, b = times[k], times[k + 1]
                seconds = (a + SECOND_CHECK * (b - a),) if len(times) == INTERVALS + 1 else ()
                checked[k] = b - a <= JUMP_WIDTH * (end - begin) or all(
                    abs(value(x) - _predicted(times, values, k, x))
                    <= max(floor, NEAR_RTOL * min(abs(values[k]), abs(values[k + 1]), abs(value(x))))
                    for x in (t, *seconds)
                )
            unresolved = {k for k, done in enumerate(checked) if not done}
            if not unresolved:
                break
            divided = {n for k in unresolved for n in (k - 1, k, k + 1)}
            if len(times) <= 2 * INTERVALS or len(unresolved) > REFINE_ALL * len(checked):
                divided, level = set(range(len(checked))), level + 1
            if 2 * len(times) > EVALUATIONS_MAX:
                message = (
                    f"The event '{self.name(which)}' varies too fast: {len(times)} evaluations between t = "
                    f"{begin:.9g} and t = {end:.9g}, one step of the integrator, do not resolve it. Give an "
                    "event that varies more slowly, or an `integrator` of smaller rtol, which shortens steps."
                )
                raise SimulationError(message, key="events", time=begin, evaluations=len(times))
            old, times, checks = times, [begin], checked
            checked = list[bool]()
            for k, t in enumerate(middles):
                if k in divided:
                    times.append(t)
                    checked += [False]
                times.append(old[k + 1])
                checked += [checks[k] and k not in divided]
            values = [value(t) for t in times]
        # try one bisection less in the next step if none was added in this one
        self._levels[which] = level if level > self._levels[which] else max(level - 1, 0)
        edges = [begin + share * (end - begin) for share in EDGE_SHARES]
        return sorted({*times, *edges})

    def within(
        self, snapshot: Callable[[float], Snapshot], begin: float, end: float, first: bool
    ) -> list[tuple[float, int]]:
        """Return the zeros within a step in order, as (time, index), up to the first that stops the run.

        A zero at the start of a run does not count. A limit that is reached at the start stops the run at
        once if the motion goes beyond it. `snapshot` returns the argument of events at a time of the step;
        `first` is True for the first step.
        """
        hits, moments = [], dict[float, Snapshot]()

        def at(t: float) -> Snapshot:
            if t not in moments:
                moments[t] = snapshot(t)
            return moments[t]

        for i, event in enumerate(self.all):
            known = dict[float, float]()

            def value(t: float, event: Event = event, known: dict[float, float] = known) -> float:
                if t not in known:
                    # snapshots at the first samples are shared by all events
                    known[t] = _value(event, t, at(t) if len(known) < 4 * INTERVALS else snapshot(t))
                return known[t]

            times = self._resolved(i, value, begin, end)
            values = [value(t) for t in times]
            if first and abs(values[0]) <= EVENT_START_RTOL * max(map(abs, values)):
                values[0] = known[begin] = 0.0
                if isinstance(event, Limit) and next((x for x in values if x), 0.0) > 0:
                    hits.append((begin, i))
                    continue
            direction = getattr(event, "direction", 0)
            zeros = crossings(value, times, values)
            hits += [(t, i) for t, sign in zeros if not direction or sign * direction > 0]
        hits.sort()
        stops = [n for n, (_, i) in enumerate(hits) if self.stops(i)]
        if not stops:
            return hits
        # of simultaneous events the first in their order stops the run, whatever the last digits of the times
        limit = hits[stops[0]][0] + SIMULTANEOUS_RTOL * (end - begin)
        last = min((n for n in stops if hits[n][0] <= limit), key=lambda n: hits[n][1])
        return [hit for n, hit in enumerate(hits[:last]) if n not in stops] + [hits[last]]


def _predicted(times: Sequence[float], values: Sequence[float], k: int, t: float) -> float:
    """Return the value at a time in interval k, by cubic interpolation between the samples around it."""
    first = min(max(k - 1, 0), len(times) - 4)
    x, p = times[first : first + 4], list(values[first : first + 4])
    for order in range(1, 4):  # Neville's scheme
        for n in range(4 - order):
            p[n] = ((t - x[n + order]) * p[n] + (x[n] - t) * p[n + 1]) / (x[n] - x[n + order])
    return p[0]


def _value(event: Event, t: float, now: Snapshot) -> float:
    """Return the checked value of an event."""
    got = event(t, now.copy())
    a = as_numbers(got)
    if a is None or a.dtype != np.float64 or a.size != 1:
        message = (
            f"The event '{getattr(event, '__name__', event)}' must return a real number, got "
            f"{short_repr(got)} at t = {t:.9g}."
        )
        raise InputError(message, key="events", got=got, time=t)
    if np.isnan(a).any():
        message = (
            f"The event '{getattr(event, '__name__', event)}' returned nan at t = {t:.9g}, where q = "
            f"{short_repr(now.q.tolist())} and qd = {short_repr(now.qd.tolist())}. An event must return a "
            "number."
        )
        raise SimulationError(message, key="events", time=t, q=now.q, qd=now.qd)
    return float(a.reshape(()))


def crossings(
    value: Callable[[float], float], times: Sequence[float], values: Sequence[float]
) -> list[tuple[float, int]]:
    """Return zeros of a smooth function, with +1 where it rises, -1 where it falls, 0 where it touches.

    Between the increasing times at which its values are known, the function may cross zero twice or touch it.
    Where it dips towards zero, its minimum is located. A zero at the first time does not count; one at the
    last time does.

    Examples
    --------
    >>> found = crossings(lambda t: (t - 1.1) ** 2 - 1e-4, [0.0, 1.0, 2.0], [1.2099, 0.0099, 0.8099])
    >>> [(round(t, 9), sign) for t, sign in found]
    [(1.09, -1), (1.11, 1)]
    """
    from scipy.optimize import brentq

    known = dict(zip(times, values, strict=True))

    def at(t: float) -> float:
        if t not in known:
            known[t] = value(t)
        return known[t]

    dips, found = _dips(at, times)
    for a, b in pairwise(sorted([*times, *dips])):
        before, after = at(a), at(b)
        if before < 0 <= after or before > 0 >= after:
            when = float(brentq(at, a, b, xtol=ROOT_RTOL * (b - a) or ROOT_RTOL, rtol=ROOT_RTOL))
            found.append((when, 1 if after > before else -1))
    return sorted(found)


def _dips(
    at: Callable[[float], float], times: Sequence[float]
) -> tuple[list[float], list[tuple[float, int]]]:
    """Return the times of minima beyond zero, and the zeros that the function only touches."""
    from scipy.optimize import minimize_scalar

    dips, touched = list[float](), list[tuple[float, int]]()
    for a, b, c in zip(times, times[1:], times[2:], strict=False):
        side = 1.0 if at(b) > 0 else -1.0
        x, y, z = side * at(a), side * at(b), side * at(c)
        if not (0 < y <= x and y <= z and x + z > 2 * y):
            continue
        # minimum of the parabola through the three samples
        p, q = (x - y) / (b - a), (z - y) / (c - b)
        bend = (p + q) / (c - a)
        slope = (q * (b - a) - p * (c - b)) / (c - a)
        if y - slope * slope / (4 * bend) < max(y / 2, DIP_RTOL * max(x, z)):
            # relative to the middle, since the minimizer's tolerance grows with the size of its variable
            lowest = minimize_scalar(
                lambda t, b=b, side=side: side * at(b + float(t)),
                bounds=(a - b, c - b),
                method="bounded",
                options={"xatol": 1e-8 * (c - a)},
            )
            if lowest.fun < 0:
                dips.append(b + float(lowest.x))
            elif lowest.fun <= TOUCH_RTOL * max(x, z):
                touched.append((b + float(lowest.x), 0))
    return dips, touched
