"""Sampled control: a controller that measures at discrete times and whose efforts are held between them.

Method. The integration stops at every sample. `Sampler` measures rows of the mechanism there, calls the
controller, limits its efforts, and holds them until the next ones take effect. The equations of motion are
smooth between these times, so the step control of the integrator works as without a controller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.description.description import declared_limits
from kic.errors import InputError, counted, invalid, unknown
from kic.mechanism.evaluator import PositionSolver
from kic.numerics.arguments import generator, names_of
from kic.numerics.arrays import as_numbers
from kic.numerics.display import OneLine
from kic.numerics.limits import bounds
from kic.simulation.controllers import Control, Sampled
from kic.simulation.motion import NONE, Motion, checked

if TYPE_CHECKING:
    from kic.simulation.coordinates import Chart

# largest distance from a sample to a recorded time that counts as rounding, as a share of the sample time
SAMPLE_RTOL = 1e-6
# largest number of samples in a run
SAMPLES_MAX = 100_000_000
# arrays of `ControlSamples`
SAMPLE_ARRAYS = ("t", "q", "qd", "command", "effort", "effective")


class Measurement:
    """Measured rows at a sample, the argument of a sampled controller: ``controller(t, now)``.

    Attributes
    ----------
    names : tuple of str
        The P measured rows, by default the coordinates.
    q, qd : (P,)
        Their measured values and rates. Values of angular velocities are NaN.
    effort : (A,)
        Limited efforts or voltages that act until the next ones take effect. Anti-windup uses their
        difference from the efforts that the controller returned last.
    current : (K,)
        Currents of the motors; NaN for sources of torque. Empty without voltages.
    state : (S,)
        Closed state of the spanning tree for evaluators: exact with ideal sensors, otherwise solved from the
        measured values, which must then determine it.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        q: np.ndarray,
        qd: np.ndarray,
        effort: np.ndarray,
        state: Callable[[], np.ndarray],
        current: np.ndarray,
    ) -> None:
        self.names, self.q, self.qd, self.effort, self.current = names, q, qd, effort, current
        self._state = state

    @property
    def state(self) -> np.ndarray:
        """Closed state (S,) of the spanning tree at the measured values."""
        return self._state()

    def __repr__(self) -> str:
        return f"measurement of {', '.join(self.names)}"


@dataclass(frozen=True, eq=False, repr=False)
class ControlSamples(OneLine):
    """Samples of a run's controller; see `Simulation.control`.

    Attributes
    ----------
    measured : tuple of str
        The P measured rows.
    actuators : tuple of str
        The A rows at which the efforts act, or the A motors whose voltages are controlled.
    t : (N,)
        Times of the samples.
    q, qd : (N, P)
        Measured values and rates.
    command : (N, A)
        Efforts or voltages that the controller returned.
    effort : (N, A)
        Commands after their limits.
    effective : (N,)
        Times at which the efforts take effect, after the delay. Efforts of later samples replace them.
    """

    _one_line = ("measured", "actuators", "t")

    measured: tuple[str, ...]
    actuators: tuple[str, ...]
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    command: np.ndarray
    effort: np.ndarray
    effective: np.ndarray


def joined_samples(one: ControlSamples | None, other: ControlSamples | None) -> ControlSamples | None:
    """Return the samples of a run and of its continuation.

    Raise `InputError` if the runs measure or control different rows.
    """
    if one is None or other is None:
        return one or other
    for key, what in (("measured", "measured"), ("actuators", "controlled")):
        if getattr(one, key) != getattr(other, key):
            names = ", ".join(getattr(one, key))
            raise InputError(
                f"The earlier run {what} {names}. Give the same, or start a new run.",
                key="controller",
                got=getattr(other, key),
            )
    arrays = (np.concatenate([getattr(x, key) for x in (one, other)]) for key in SAMPLE_ARRAYS)
    return ControlSamples(one.measured, one.actuators, *arrays)


class Sampler:
    """Sampler of one run; `next` is the time of the next sample, or of the next change of the efforts."""

    def __init__(
        self,
        sampled: Sampled,
        motion: Motion,
        times: np.ndarray,
        before: ControlSamples | None,
    ) -> None:
        controller = sampled.controller
        self._controller, self._motion = controller, motion
        model, period = motion.model, float(sampled.time)
        names = motion.names if sampled.measured is None else names_of(sampled.measured, "measured", 1)
        rows = model.rows(names, 1).layout.rows
        self.names, self._turns = rows.labels, rows.turns
        self.is_default = self.names == motion.names
        self._model, self._period, self._delay = model, period, float(sampled.delay)
        self.instants = sample_times(times, period, None if before is None else before.t)
        self._times = [*self.instants.tolist(), np.inf]
        self._count, self._pending = 0, deque[tuple[float, np.ndarray]]()
        size = len(self.names)
        errors = ("noise", "rate_noise", "quantization", "rate_quantization")
        given = [_sizes(key, getattr(sampled, key), self.names) for key in errors]
        self._noise, self._steps = np.array(given[:2]), np.array(given[2:])
        self._is_ideal = not (self._noise.any() or self._steps.any())
        self._rng = generator(sampled.rng)
        gives = sampled.gives or (controller.gives if isinstance(controller, Control) else "efforts")
        self._gives_voltages, key = gives == "voltages", f"{gives[:-1]}_limits"
        if self._gives_voltages and motion.train is None:
            message = (
                "A controller that returns voltages requires `voltage`, such as voltage=0, to simulate the "
                "motors."
            )
            raise InputError(message, key="voltage")
        other = "effort_limits" if self._gives_voltages else "voltage_limits"
        if getattr(sampled, other) is not None:
            raise InputError(f"`{other}` do not apply to a controller of {gives}. Give `{key}`.", key=other)
        self._command = motion.voltage_command if self._gives_voltages else motion.command
        self.actuators = motion.train.names if self._gives_voltages and motion.train else motion.actuators
        limits = {} if getattr(sampled, key, None) is None else getattr(sampled, key)
        if not self._gives_voltages:
            limits = declared_limits(motion.model.description, key, limits, self.actuators)
        self._lower, self._upper = bounds(key, limits, self.actuators)
        # chart and evaluator of the measured rows in it; values of the last sample
        self._rows: tuple[Any, Any] = (None, None)
        self._last: np.ndarray | None = None
        self._solver: Any = None
        if before is not None:  # efforts and random numbers of the earlier run continue
            if not (self._is_ideal or isinstance(sampled.rng, np.random.Generator)):
                self._rng.standard_normal((len(before.t), *self._noise.shape))
            begin = float(times[0]) + SAMPLE_RTOL * period
            for when, effort in zip(before.effective.tolist(), before.effort, strict=True):
                self._schedule(when, effort.copy())
            self._apply(begin)
        count, efforts = len(self.instants), (len(self.instants), len(self.actuators))
        shapes = (count, size), (count, size), efforts, efforts, (count,)
        self._arrays = [np.empty(shape) for shape in shapes]

    @property
    def next(self) -> float:
        """Time at which the efforts may change."""
        sample = self._times[self._count]
        return min(sample, self._pending[0][0]) if self._pending else sample

    @property
    def samples(self) -> ControlSamples:
        """The samples recorded so far."""
        n = self._count
        return ControlSamples(
            self.names,
            self.actuators,
            self.instants[:n].copy(),
            *(a[:n].copy() for a in self._arrays),
        )

    def act(self, chart: Chart, t: float, y: np.ndarray) -> None:
        """Sample the controller if a sample is due, and apply the efforts that are due."""
        if t >= self._times[self._count]:
            effort, when = self._sample(chart, t, y), t + self._delay
            if when > t:  # at another sample the change follows the measurement
                when = float(_rounded(np.array([when]), self.instants, SAMPLE_RTOL * self._period)[0])
            self._arrays[-1][self._count - 1] = when
            self._schedule(when, effort)
        self._apply(t)

    def _schedule(self, when: float, effort: np.ndarray) -> None:
        """Plan the efforts of the latest sample; drop planned ones that are due at the same time or later."""
        while self._pending and self._pending[-1][0] >= when:
            self._pending.pop()
        self._pending.append((when, effort))

    def _apply(self, t: float) -> None:
        """Apply the efforts that are due."""
        while self._pending and t >= self._pending[0][0]:
            self._command[:] = self._pending.popleft()[1]

    def _sample(self, chart: Chart, t: float, y: np.ndarray) -> np.ndarray:
        """Return the efforts (A,) of the controller at a time, within limits, and record them."""
        q, qd, state = self._measured(chart, t, y)
        if not self._is_ideal:
            noisy = np.array([q, qd]) + self._noise * self._rng.standard_normal(self._noise.shape)
            rounded = self._steps * np.round(noisy / np.where(self._steps > 0, self._steps, 1.0))
            q, qd = np.where(self._steps > 0, rounded, noisy)
        applied, current = self._command.copy(), chart.snapshot(t, y).current if self._motion.train else NONE
        # the user's function may write into its argument
        now = Measurement(self.names, q.copy(), qd.copy(), applied, lambda: self._state(q, state), current)
        command = checked("controller", self._controller(t, now), self.actuators, t, now)
        effort = np.minimum(np.maximum(command, self._lower), self._upper)
        for array, values in zip(self._arrays, (q, qd, command, effort), strict=False):
            array[self._count] = values
        self._count += 1
        return effort

    def _measured(self, chart: Chart, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the true values and rates (P,) of the measured rows, and the state (S,)."""
        now = chart.evaluate(t, y)
        if self.is_default:
            snapshot = chart.snapshot_of(now)
            return snapshot.q, snapshot.qd, snapshot.state
        if self._rows[0] is not chart:
            self._rows = chart, chart.tables(self.names)
        found = chart.results(now, self._rows[1])
        q = np.concatenate([found[name].value for name in self.names])
        qd = np.concatenate([found[name].G @ now.v for name in self.names])
        if self._last is not None:  # angles count full turns
            q = np.where(self._turns, q + 2 * np.pi * np.round((self._last - q) / (2 * np.pi)), q)
        self._last = q
        return q, qd, now.state

    def _state(self, q: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return the closed state (S,) at measured values, solved from the true state."""
        if self._is_ideal:
            return state.copy()
        if self._solver is None:
            self._model.check_number(self.names)
            self._solver = PositionSolver(self._model, self.names)
        return np.asarray(self._solver(state, q))


def sample_times(times: np.ndarray, period: float, before: np.ndarray | None = None) -> np.ndarray:
    """Return the times (N,) of the samples of a run, all before its end.

    `before` has the sample times of an earlier run, whose clock continues. Samples within rounding of a
    recorded time are moved to it.
    """
    begin, end = float(times[0]), float(times[-1])
    if before is not None and len(before):
        last = float(before[-1])
        begin = last + period * max(1.0, np.ceil((begin - last) / period - SAMPLE_RTOL))
    count = max(end - begin, 0.0) / period
    if not count < SAMPLES_MAX:
        raise invalid("time", f"must divide the run into fewer than {SAMPLES_MAX:.0e} samples", period)
    least = 1 if begin < end else 0  # a continued run may end before its first sample
    instants = begin + period * np.arange(max(least, int(np.ceil(count - SAMPLE_RTOL))))
    return _rounded(instants, times, SAMPLE_RTOL * period)


def _rounded(times: np.ndarray, others: np.ndarray, width: float) -> np.ndarray:
    """Return times, each replaced by an entry of the increasing `others` if it lies within `width`."""
    place = np.searchsorted(others, times)
    for one in (others[np.maximum(place - 1, 0)], others[np.minimum(place, len(others) - 1)]):
        times = np.where(np.abs(times - one) <= width, one, times)
    return times


def sampler(sampled: Sampled, motion: Motion, times: np.ndarray, before: ControlSamples | None) -> Sampler:
    """Return the sampler of a run; the run may continue an earlier one."""
    made = Sampler(sampled, motion, times, before)
    motion.is_sampled = not made._gives_voltages
    if isinstance(sampled.controller, Control):
        gives = "voltages" if made._gives_voltages else "efforts"
        sampled.controller.check(gives, made.names, None if made._gives_voltages else motion.actuators)
    return made


def _sizes(key: str, value: Any, names: tuple[str, ...]) -> np.ndarray:
    """Return nonnegative numbers (P,), one for each row, from a number, a sequence, or a dict by name."""
    if isinstance(value, dict):
        for name in value:
            if name not in names:
                raise unknown("measured row", name, key, names)
        value = [value.get(name, 0.0) for name in names]
    a = as_numbers(value)
    shapes = (), (len(names),)
    if a is None or a.dtype != np.float64 or a.shape not in shapes or not ((a >= 0) & (a < np.inf)).all():
        what = f"a finite number of at least 0, {counted(len(names), 'such number')}, or a dict"
        raise invalid(key, f"must be {what}", value)
    return np.broadcast_to(a, (len(names),))
