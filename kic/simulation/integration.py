"""Integration of a run: step control, switching of coordinates, events and samples.

Method. The equations of motion are integrated in independent coordinates (see `coordinates`), so loops
close exactly and no stabilization is needed. `Integration.run` alternates three tasks:

1. Take one step of a SciPy integrator, at most to the next sample of a sampled controller. If the loops do
   not close within the step, switch to other coordinates or repeat with a shorter step. If nothing must be
   watched, one compiled call takes many steps of an explicit method, and interpolates the samples.
2. Process the accepted step: locate events, contact violations and change points on the dense output, and
   record the samples requested within it.
3. Measure how well the coordinates drive the mechanism. If this falls below `CHART_SWITCH_RATIO` of its
   value when they were chosen, switch to the coordinates that drive it best.

Results are always expressed in the user's coordinates.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

import numpy as np

from kic.errors import ConfigurationError, KicError, SimulationError, SingularError
from kic.kernels import layout as lay
from kic.mechanism.configuration import Configuration
from kic.mechanism.mechanism import Mechanism
from kic.numerics.linalg import decomposition, min_singular_value, null_space
from kic.numerics.progress import Bar
from kic.simulation.contact_monitor import ContactMonitor
from kic.simulation.coordinates import Chart, MotionSample
from kic.simulation.events import Events, crossings
from kic.simulation.motion import NONE, Motion
from kic.simulation.options import Integrator
from kic.simulation.result import Simulation
from kic.simulation.sampling import Sampler
from kic.simulation.stages import EXPLICIT
from kic.transfer.input_selection import ALL_SETS_QUICK_MAX, GOOD, ranking


def _arrays(samples: list[tuple[Chart, MotionSample]]) -> dict[str, np.ndarray]:
    """Return the quantities of samples, evaluated chart by chart, as arrays with the time axis first."""
    parts = list[dict[str, np.ndarray]]()
    for (_, inside), group in groupby(samples, lambda one: (id(one[0]), one[1].tensors is not None)):
        (chart, *_), some = zip(*group, strict=True)
        if inside:
            found = [chart.quantities(one) for one in some]
            parts.append({key: np.array([one[key] for one in found]) for key in found[0]})
        else:
            columns = zip(*(one[:-2] for one in some), strict=True)
            parts.append(chart.quantities(MotionSample(*map(np.array, columns))))
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


# drive quality below this share of its initial value triggers a search for better coordinates
CHART_SWITCH_RATIO = 0.3
# and the new coordinates must exceed the present quality by this factor
CHART_MIN_GAIN = 1.5
# factor on a step whose loops do not close, and the shortest such step as a share of the run
STEP_SHRINK, STEP_MIN_SHARE = 0.1, 1e-13
# first retried step if no step size is known, as a share of the run
FIRST_RETRY_STEP = 1e-3
# failed steps at one time before the loops are closed by the global solver
RETRIES_MAX = 2
# smallest singular value of prescribed coordinates at a dead centre; applies where steps fail (else GOOD)
DEAD_CENTRE_MIN = 0.03
# allowed difference between integrated prescribed rates and prescribed values: a share of the range of the
# values, and a multiple of the integrator's tolerance
PRESCRIBED_RTOL, PRESCRIBED_TOLERANCE_FACTOR = 1e-2, 100.0
# a change point is searched for if a singular value of the closure vanishes within this many steps
LOOKAHEAD_STEPS = 1.5
# relative change of a singular value after which the singular vectors are computed again
TRACKED_RTOL = 0.05
# distance below which a run starts at a change point
CHANGE_POINT_ATOL = 1e-7
# scaled change over the remaining time below which the mechanism is at rest, and the share of the remaining
# time that the first step from rest takes
AT_REST_RTOL, REST_FIRST_STEP = 1e-9, 1e-4


def _least(a: np.ndarray) -> float:
    """Return the smallest singular value of a matrix, without a decomposition of a scalar."""
    return float(abs(a[0, 0]) if a.size == 1 else min_singular_value(a))


def _ignore_overflow() -> np.errstate:
    """Return a context that ignores overflow; results that are not finite are rejected later."""
    return np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True)
class Start:
    """Initial conditions of a run."""

    state: np.ndarray  # (S,): closed state
    # (M,): values and rates of the user's coordinates
    q: np.ndarray
    qd: np.ndarray
    rates: np.ndarray | None = None  # (columns,) or None: rates of the tree, if they are known
    # (n,): currents of the n motors with inductance, if there are voltages
    current: np.ndarray = field(default_factory=lambda: NONE)


class Integration:
    """Integration of one run: its current chart and unknowns, and all records."""

    def __init__(
        self,
        mechanism: Mechanism,
        motion: Motion,
        times: np.ndarray,
        start: Start,
        events: Events,
        integrator: Integrator,
        bar: Bar,
        contacts: ContactMonitor | None,
        sampler: Sampler | None = None,
    ) -> None:
        self.mechanism, self.motion, self.times = mechanism, motion, times
        self.start, self.events, self.integrator, self.bar = start, events, integrator, bar
        self.contacts, self.sampler = contacts, sampler
        self.samples, self.event_hits = list[tuple[Chart, MotionSample]](), list[tuple[float, int]]()
        self.steps, self.charts, self.next_sample = 0, 1, 0
        self.t, self.chart = float(times[0]), Chart(motion, motion.names, start.state, start.q)
        rest = np.concatenate([start.current, np.zeros(self.chart.n_accounts)])
        self.y = self.chart.pack(start.state, start.qd, rest)
        # first step of the next integrator, if it is known
        self.first_step: float | None = None
        # time of the last failed steps, and their number
        self.failed = np.nan, 0
        # largest distance of prescribed values and rates from those at the start
        self.prescribed_range = np.zeros((2, motion.held.size))
        self.change_points = list[float]()
        # distance of the change point ahead, at the last good state
        self.ahead = np.inf
        # singular value decomposition of the closure rows at an anchor, and the anchor
        self._decomposed: tuple[Any, np.ndarray] | None = None
        # decomposition whose singular values are tracked, and its chart
        self._tracked: tuple[Any, Chart] | None = None
        # time at which the coordinates were last compared with others
        self._compared = self.t

    def run(self, before: Simulation | None) -> Simulation:
        """Integrate to the last time, or until the run stops, and return the simulation."""
        stopped = ""
        try:
            stopped = self._integrate()
        except KeyboardInterrupt:
            if not self.samples:
                raise
            self._keep_last()
            stopped = f"interrupted, the last sample is at t = {self.samples[-1][1].t:.6g}"
        except Exception as error:
            self._keep_last()
            run = self._result(before, str(error)) if self.samples else before
            if isinstance(error, KicError):
                error.place_in_time(self.t)
            if isinstance(error, SimulationError):
                raise SimulationError(error.message, **{**error.numbers, "simulation": run}) from None
            with suppress(AttributeError, TypeError):  # some exceptions accept no attributes
                error.simulation = run  # type: ignore[attr-defined]
            raise
        finally:
            self.bar.close()
        return self._result(before, stopped)

    def _result(self, before: Simulation | None, stopped: str) -> Simulation:
        with _ignore_overflow():
            arrays = _arrays(self.samples)
        result = Simulation(
            self.mechanism,
            self.motion.names,
            arrays,
            events=tuple(self.event_hits),
            stopped=stopped,
            steps=self.steps,
            charts=self.charts,
            change_points=tuple(self.change_points),
            actuators=self.motion.actuators,
            control=None if self.sampler is None else self.sampler.samples,
        )
        return result if before is None else before.joined(result)

    def _integrate(self) -> str:
        """Integrate chart by chart; return the reason for an early stop, or ''."""
        with _ignore_overflow():
            self.chart.seek_branch_at_start(self.start.rates, self.start.qd)
        self._choose_first_chart()
        self.events.check(self.chart.snapshot(self.t, self.y))
        if self.sampler is not None:
            self.sampler.act(self.chart, self.t, self.y)
        with _ignore_overflow():
            self._keep(self.chart.samples([self.t], [self.y]))
            if np.isfinite(self.y @ self.y):  # a motion that diverges ends the run instead
                self.chart(self.t, self.y)  # raises errors of the start
        if self.contacts is not None and self.contacts.margin(self.chart, self.t, self.y) < 0:
            return self._contact_stop(self.t, self.y)
        while self.next_sample < len(self.times):
            try:
                quality = self._drive_quality()
                solver = self._solver(quality)
            except (ConfigurationError, SingularError) as error:
                self._recover(error, None)
                continue
            while self.next_sample < len(self.times):
                try:
                    why = ""
                    if not self._takes_many(solver):
                        self._step(solver)
                        if self._crosses_unseen(solver):
                            self.first_step = solver.t - self.t
                            break
                        why = self._accept(solver)
                except (ConfigurationError, SingularError) as error:
                    self._recover(error, solver)
                    break
                if why:
                    return why
                self._change_efforts(solver)
                self.bar.show((self.t - self.times[0]) / (self.times[-1] - self.times[0]))
                self._check_prescribed(GOOD)
                # steps that end at a sample may be much shorter than those that the tolerance allows
                if self.sampler is None or self.t - self._compared >= solver.h_abs:
                    self._compared, now = self.t, self._drive_quality()
                    # the quality is not known at a change point, and measured again behind it
                    if now is not None and (
                        quality is None
                        or (now < CHART_SWITCH_RATIO * quality and self._switch_chart(CHART_MIN_GAIN * now))
                    ):
                        self.first_step = solver.h_abs
                        break
                if solver.status != "running":  # multistep methods start again where efforts jump
                    self.first_step = None
                    break
        return ""

    def _change_efforts(self, solver: Any) -> None:
        """Sample the controller if it is due, and continue an explicit method with the new efforts.

        A recorded sample at that time holds the new efforts.
        """
        if self.sampler is None or not self.sampler.next <= self.t < self.times[-1]:
            return
        self.sampler.act(self.chart, self.t, self.y)
        if self.contacts is not None:
            self.contacts.forget()
        if self.times[self.next_sample] == self.t:
            self._check_consistent(self.t, self.y)
            self._keep(self.chart.samples([self.t], [self.y]))
        if self.integrator.method in EXPLICIT:
            # compiled steps evaluate the derivatives at their start if these are not known
            solver.f = None if hasattr(solver, "interpolate") else self.chart(self.t, self.y)
            solver.t_bound, solver.status = self._bound, "running"

    @property
    def _bound(self) -> float:
        """Latest end of the next step: the end of the run, or the next change of the efforts."""
        end = float(self.times[-1])
        return end if self.sampler is None else min(end, self.sampler.next)

    def _choose_first_chart(self) -> None:
        """Change to coordinates that drive the mechanism and for which compiled code closes the loops.

        Compiled code does not support angles of cut joints; a run needs them only for its results. Efforts
        held at actuators need no Jacobian if the actuators are the coordinates.
        """
        quality = self._drive_quality()
        if quality is None or self._switch_to_actuators():
            return
        if quality < GOOD:
            self._switch_chart(CHART_MIN_GAIN * quality, self.start.rates)
        elif not self.chart.solved.compiled:
            self._switch_chart(GOOD, self.start.rates)

    def _switch_to_actuators(self) -> bool:
        """Change to the coordinates of a sampled controller's actuators; return False if unsuitable."""
        motion, model, chart = self.motion, self.motion.model, self.chart
        names = motion.actuators
        if (
            not motion.is_sampled
            or motion.has_functions
            or motion.held.size
            or len(names) != chart.size
            or set(names) <= set(chart.names)
            or not all(model.value_rows(name)[1] for name in names)
        ):
            return False
        there = Chart(motion, names, chart.anchor_state, chart.q)
        own, closing = there.first_order(there.anchor_state)
        if not there.solved.compiled or _least(own @ null_space(closing, there.size)) < GOOD:
            return False
        rates = self._rates_of(names)
        self.chart, self.charts = there, self.charts + 1
        self.y = there.pack(there.anchor_state, rates, self.y[chart.rest])
        return True

    def _solver(self, quality: float | None) -> Any:
        """Return a SciPy integrator that starts at the present unknowns, with their drive quality."""
        s, last = self.integrator, self._bound
        first = None if self.first_step is None else min(self.first_step, last - self.t)
        method, atol = self.chart.integrator(s.method), s.atol * self.chart.scale
        with _ignore_overflow():
            if first is None and self._is_at_rest():
                first = REST_FIRST_STEP * (last - self.t)
            solver = method(self.chart, self.t, self.y, last, rtol=s.rtol, atol=atol, first_step=first)
        solver.stages = self.chart.stages
        if not self.events.all and self.contacts is None and self._interpolates(solver):
            drive_max = (CHART_SWITCH_RATIO * quality) ** -2 if quality else np.inf
            solver.interpolate(self.times, self.chart.width, drive_max)
        return solver

    def _takes_many(self, solver: Any) -> bool:
        """Take many steps in one compiled call; return False if the next step must be watched.

        Compiled steps prove that loops stay on their branch. They end where the coordinates may drive the
        mechanism less well, and before a state that is much nearer to a change point.
        """
        left = self.integrator.max_steps - self.steps
        if left <= 0 or self.events.all or self.contacts is not None or not self._interpolates(solver):
            return False
        with _ignore_overflow():
            records = self.chart.many_steps(solver, left, self.next_sample)
        if not len(records):
            return False
        # a sample at a change of the efforts follows it
        jumps = self.sampler is not None and self.sampler.next <= solver.t < self.times[-1]
        samples = self.chart.follow(records)
        self.steps += len(records) - len(samples)
        self._keep([one for one in samples if not (jumps and one.t == solver.t)])
        self.t, self.y, self._tracked = solver.t, solver.y.copy(), None
        return True

    def _interpolates(self, solver: Any) -> bool:
        """Return True if the integrator can take many steps at once in the present coordinates."""
        return self.chart.branch is None and self.chart.is_free and hasattr(solver, "interpolate")

    def _is_at_rest(self) -> bool:
        """Return True if the mechanism is at rest and nothing accelerates it yet.

        An example is a motor at equilibrium whose voltage rises later. SciPy would try the whole span in one
        step, which reaches configurations far away.
        """
        rates, last = self.chart(self.t, self.y), self._bound
        return bool((np.abs(rates) * (last - self.t) < AT_REST_RTOL * self.chart.scale).all())

    def _step(self, solver: Any) -> None:
        """Take one step of the integrator.

        Raise `SimulationError` if the step limit is reached or the integrator fails.
        """
        if self.steps >= self.integrator.max_steps:
            raise SimulationError(
                self._stop_message(
                    f"it took {self.steps} steps, the limit `max_steps`. Give `integrator` larger rtol and "
                    "atol, the method 'Radau' if the motion is stiff, or more `max_steps`"
                ),
                key="max_steps",
                got=self.integrator.max_steps,
                time=self.t,
            )
        with _ignore_overflow():
            message = solver.step()
        self.steps += 1
        if message is not None or solver.status == "failed":
            raise SimulationError(
                self._stop_message(
                    f"the steps of {self.integrator.method} become too small ({message or 'it failed'}): the "
                    "motion diverges, jumps, or is stiff. Check the last state. For stiff motions take "
                    "integrator='Radau'"
                ),
                key="method",
                time=self.t,
            )

    def _recover(self, error: Exception, solver: Any) -> None:
        """Handle a step whose loops do not close: switch the chart, or set a shorter step."""
        span = float(self.times[-1] - self.times[0])
        when, fails = self.failed
        self.failed = self.t, fails + 1 if when == self.t else 1
        first, quality = when != self.t, self._drive_quality()
        size = (not first and self.first_step) or FIRST_RETRY_STEP * span
        if solver is not None:  # the step that was taken and not accepted, or tried
            size = float(solver.t - self.t or min(solver.h_abs, self.times[-1] - self.t)) or size
        if first and self._seek_branch(*self._directions()):
            self.first_step = size
            return
        if first and quality is not None and self._switch_chart(CHART_MIN_GAIN * quality):
            self.first_step = None
            return
        self.first_step = STEP_SHRINK * size
        if fails >= RETRIES_MAX:
            self._check_prescribed(DEAD_CENTRE_MIN)
        self.chart.use_global_solver = self.chart.use_global_solver or fails >= RETRIES_MAX
        if self.first_step < STEP_MIN_SHARE * span:
            # the remedies of Mechanism.at do not apply to a run
            why = self.chart.reason(error).split(" Give `near=`")[0].split(" Move off")[0]
            raise SimulationError(
                self._stop_message(
                    f"{why.rstrip('.')}. Other coordinates `wrt` do not help. End the run earlier, by a "
                    "shorter `t` or `limits`, or give an `effort` that keeps the mechanism away from there"
                ),
                time=self.t,
            ) from None

    def _check_prescribed(self, least_quality: float) -> None:
        """Raise SimulationError if prescribed coordinates drive the mechanism below `least_quality`."""
        chart = self.chart
        if not chart.held.size or chart.is_full_state or chart.branch is not None:
            return
        null = self._decomposition()[2][chart.rank :].T
        if _least(chart.first_order(chart.anchor_state)[0][chart.held] @ null) > least_quality:
            return
        held = tuple(chart.names[k] for k in chart.held)
        names = ", ".join(held)
        raise SimulationError(
            self._stop_message(
                f"the motion prescribed for {names} leads to a dead centre, where {names} cannot drive the "
                "mechanism. Prescribe another motion, or the motion of other coordinates"
            ),
            key="prescribed",
            names=held,
            time=self.t,
        )

    def _stop_message(self, why: str) -> str:
        """Return an error message with the time of the last good state."""
        name = self.motion.model.description.name
        return f"'{name}' stops after t = {self.t:.9g}: {why}. The error has the run so far as `simulation`."

    def _accept(self, solver: Any) -> str:
        """Process the events and samples of an accepted step; return the stop reason, or ''."""
        # a sample at a change of the efforts follows it
        jumps = self.sampler is not None and self.sampler.next <= solver.t < self.times[-1]
        side: Literal["left", "right"] = "left" if jumps else "right"
        wanted = self.times[self.next_sample : np.searchsorted(self.times, solver.t, side=side)]
        hits, samples = list[tuple[float, int]](), list[MotionSample]()
        stop, end = "", float(solver.t)
        if self.events.all or len(wanted) or self.contacts is not None or self.chart.branch is not None:
            dense, chart = solver.dense_output(), self.chart
            first = self.t == self.times[0]
            hits = self.events.within(lambda t: chart.snapshot(t, dense(t)), self.t, end, first)
            if hits and self.events.stops(hits[-1][1]):
                end = hits[-1][0]
                stop = f"stopped at t = {end:.9g} by {self.events.name(hits[-1][1])}"
            broken = None if self.contacts is None else self.contacts.broken(chart, self.t, end, dense)
            if broken is not None:
                end, stop = broken, self._contact_stop(broken, dense(broken))
                hits = [hit for hit in hits if hit[0] <= broken]
            passed = self._change_points_passed(dense, end)
            if passed and self.integrator.on_change_point == "stop":
                passed, end = passed[:1], passed[0]
                stop = f"stopped at t = {end:.9g} by a change point, where branches of the loop closure meet"
                hits = [hit for hit in hits if hit[0] <= end]
            self.change_points += passed
            if stop:
                wanted = wanted[wanted <= end]
                if end > max([self.samples[-1][1].t, *wanted]):
                    wanted = np.append(wanted, end)
            unknowns = [dense(t) for t in wanted.tolist()]
            for t, y in zip(wanted.tolist(), unknowns, strict=True):
                self._check_consistent(t, y)
            samples = chart.samples(wanted.tolist(), unknowns) if unknowns else []
        if not stop:
            self.chart.anchor(solver.t, solver.y)
            self.t, self.y = end, solver.y.copy()
            self._leave_branch()
        self.event_hits += hits
        self._keep(samples)
        return stop

    def _directions(self) -> tuple[np.ndarray, ...]:
        """Return directions (M,) of the motion, or of its acceleration from rest."""
        chart = self.chart
        v = self.y[chart.n_positions : chart.n_positions + chart.size]
        if v.any():
            return (v,)
        with suppress(ConfigurationError, SingularError):
            return (chart(self.t, self.y)[chart.n_positions : chart.n_positions + chart.size],)
        return ()

    def _seek_branch(self, *directions: np.ndarray) -> bool:
        """Change to the smooth branch through a change point in one of the directions; return True if found.

        A known branch is replaced only if the last good state is outside its gap.
        """
        chart, known = self.chart, self.chart.branch
        if known is not None and known.inside(chart.anchor_position):
            return False
        chart.branch = None
        with _ignore_overflow():
            if any(chart.seek_branch(d) for d in directions if d.any()):
                self.ahead = np.inf
                return True
        chart.branch = known
        return False

    def _crosses_unseen(self, solver: Any) -> bool:
        """Return True if the step crossed an unknown change point, so that it must be repeated.

        A singular value of the closure rows W vanishes at a change point. It is tracked as uᵀ W v, which
        changes its sign, with singular vectors u, v of an earlier regular state. If it has vanished, or soon
        will, the change point is located.
        """
        chart = self.chart
        if chart.branch is not None or not chart.has_branches:
            self._tracked = None
            return False
        if self._tracked is None or self._tracked[1] is not chart:
            self._tracked = self._decomposition(), chart
        U, sigma, V = self._tracked[0]
        n, last = chart.rank, chart.evaluate(solver.t, solver.y)
        now = np.einsum("ik,ik->k", U[:, :n], chart.first_order(last.state)[1] @ V[:n].T)
        if (np.abs(now - sigma[:n]) > TRACKED_RTOL * sigma[:n]).any():
            self._tracked = None
        if not (now < (1 - 1 / (1 + LOOKAHEAD_STEPS)) * sigma[:n]).any():
            return False
        here, there = chart.coordinates(self.t, self.y)[0], last.x
        if not self._seek_branch(*self._directions(), there - here):
            return False
        assert chart.branch is not None  # for the type checker
        return chart.branch.distance(there) > -chart.branch.gap

    def _decomposition(self) -> Any:
        """Return the singular value decomposition of the closure rows at the anchor."""
        anchor = self.chart.anchor_state
        if self._decomposed is None or self._decomposed[1] is not anchor:
            closing = self.chart.first_order(anchor)[1]
            self._decomposed = decomposition(closing), anchor
        return self._decomposed[0]

    def _change_points_passed(self, dense: Any, end: float) -> list[float]:
        """Return the times within a step at which the motion passes a change point."""
        chart = self.chart
        if chart.branch is None:
            return []
        branch = chart.branch

        def distance(t: float) -> float:
            return branch.distance(chart.coordinates(t, dense(t))[0])

        times = np.linspace(self.t, end, 5).tolist()
        distances = [distance(t) for t in times]
        if self.t == self.times[0] and abs(distances[0]) < CHANGE_POINT_ATOL:
            distances[0] = 0.0  # a start at a change point does not pass it
        return [t for t, _ in crossings(distance, times, distances)]

    def _leave_branch(self) -> None:
        """Close the loops from the last good state again once the change point lies far behind."""
        branch = self.chart.branch
        if branch is None:
            return
        before, self.ahead = self.ahead, -branch.distance(self.chart.anchor_position)
        away = self.ahead < 0 or self.ahead > before
        if away and abs(self.ahead) > branch.half_width:
            self.chart.branch, self.ahead = None, np.inf

    def _contact_stop(self, t: float, y: np.ndarray) -> str:
        """Return the stop reason for a contact that cannot hold."""
        assert self.contacts is not None  # for the type checker
        return f"stopped at t = {t:.9g}: {self.contacts.description(self.chart, t, y)}"

    def _keep(self, samples: list[MotionSample]) -> None:
        self.samples += [(self.chart, sample) for sample in samples]
        self.next_sample += len(samples)

    def _keep_last(self) -> None:
        """Record the last good state unless it is already recorded or a user's function fails."""
        if self.samples and self.t > self.samples[-1][1].t:
            with suppress(Exception, KeyboardInterrupt):
                self._keep(self.chart.samples([self.t], [self.y]))

    def _check_consistent(self, t: float, y: np.ndarray) -> None:
        """Check that prescribed rates and accelerations are the derivatives of the prescribed values.

        Raise `SimulationError` if the integrated values or rates differ from the prescribed ones.
        """
        motion, s = self.motion, self.integrator
        if not motion.held.size:
            return
        given = motion.given(t)[:2]
        self.prescribed_range = np.maximum(
            self.prescribed_range, np.abs(given - motion.given(float(self.times[0]))[:2])
        )
        scale = self.chart.scale[self.chart.n_positions + self.chart.held]
        allowed = np.maximum(
            PRESCRIBED_RTOL * self.prescribed_range,
            PRESCRIBED_TOLERANCE_FACTOR * (s.atol * scale + s.rtol * np.abs(given)),
        )
        integrated = self.chart.integrated(y)
        for row, k in np.argwhere(np.abs(integrated - given) > allowed):
            slopes, values = (("rates", "values"), ("accelerations", "rates"))[row]
            raise SimulationError(
                self._stop_message(
                    f"the motion prescribed for '{motion.names[motion.held[k]]}' contradicts itself: its "
                    f"{slopes} integrate to {integrated[row, k]:.9g} at t = {t:.9g}, where its {values} "
                    f"give {given[row, k]:.9g}"
                ),
                key="prescribed",
                name=motion.names[motion.held[k]],
                order=int(row) + 1,
                time=t,
            )

    def _drive_quality(self) -> float | None:
        """Return the smallest singular value of the rows on free motions, or None for a fixed chart."""
        if self.chart.is_full_state or not self.chart.free.size or self.chart.branch is not None:
            return None
        J, null = self._drive_rows()
        return _least(J @ null)

    def _drive_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scaled rows of the free coordinates, and a basis of the motions they drive."""
        chart = self.chart
        own, closing = chart.first_order(chart.anchor_state)
        if not chart.held.size:
            return own, self._decomposition()[2][chart.rank :].T
        return own[chart.free], null_space(np.concatenate([own[chart.held], closing]), chart.free.size)

    def _switch_chart(self, least_quality: float, known: np.ndarray | None = None) -> bool:
        """Change to the coordinates that drive the mechanism best, if their quality exceeds `least_quality`.

        Prescribed coordinates are kept. `known` gives the rates of the tree where the rates of the chart do
        not determine them.
        """
        tree, chart = self.motion.model.tree, self.chart
        found = ranking(
            self._drive_rows()[1][None], tree.cols[:, lay.KIND] <= lay.PRISMATIC, 1, ALL_SETS_QUICK_MAX
        )
        if not len(found.picks) or found.measures[0, 0] <= least_quality:
            return False
        picks = found.picks[0]
        given = tuple(chart.names[k] for k in chart.held)
        names = (*given, *(tree.columns[n] for n in picks))
        # single angular velocities of a ball have no position to integrate
        parts = {n for n in picks if tree.cols[n, lay.KIND] > lay.PRISMATIC}
        whole = {n + k for n in tree.balls if n in parts for k in range(3)}
        if set(names) == set(chart.names) or parts != whole:
            return False
        if known is None:
            rates = self._rates_of(names)
        else:
            rates = np.concatenate([self.y[chart.n_positions + chart.held], known[picks]])
        self.chart = Chart(self.motion, names, chart.anchor_state, chart.q)
        self.y = self.chart.pack(chart.anchor_state, rates, self.y[chart.rest])
        self.charts += 1
        return True

    def _rates_of(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the rates of other coordinates from those of the chart."""
        chart = self.chart
        here = Configuration(self.motion.model, (), chart.anchor_state[None].copy())
        v = self.y[chart.n_positions : chart.n_positions + chart.size]
        return here.coefficients(list(names), order=1, wrt=chart.names).G @ v
