"""A run: charts and integrators one after the other, and what is found at the times wanted."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.errors import ConfigurationError, SimulationError, SingularError
from kic.kernels.layout import PRISMATIC
from kic.mechanism import Mechanism
from kic.numerics.linalg import min_singular_value, null_space
from kic.numerics.progress import Bar
from kic.simulation.contact_monitor import ContactMonitor
from kic.simulation.coordinates import Chart
from kic.simulation.events import Events, crossings
from kic.simulation.motion import NONE, Motion
from kic.simulation.result import Simulation
from kic.transfer.input_selection import GOOD, ranking


class SampleRecorder:
    """What is kept at each of the times wanted, chart by chart."""

    def __init__(self) -> None:
        self._kept: list[tuple[Chart, list[dict[str, Any]]]] = []

    @property
    def t(self) -> list[float]:
        """The times so far."""
        return [moment["t"] for _, moments in self._kept for moment in moments]

    @property
    def last(self) -> float:
        """The last of them."""
        return float(self._kept[-1][1][-1]["t"])

    def keep(self, chart: Chart, moment: dict[str, Any]) -> None:
        """Add a moment of a chart."""
        if not self._kept or self._kept[-1][0] is not chart:
            self._kept.append((chart, []))
        self._kept[-1][1].append(moment)

    def arrays(self) -> dict[str, np.ndarray]:
        """All moments, the time axis first."""
        parts = []
        for chart, moments in self._kept:
            keys = [key for key in moments[0] if key != "motion"]
            part = {key: np.array([moment[key] for moment in moments]) for key in keys}
            state, v, a = part["state"], part.pop("v"), part.pop("a")
            # at change points motions are known already
            rest = np.array([moment["motion"] is None for moment in moments])
            spread = chart.spread(state[rest], v[rest], a[rest])
            for key, some in spread.items():
                part[key] = np.empty((len(moments), *some.shape[1:]))
                part[key][rest] = some
                for k in np.flatnonzero(~rest):
                    part[key][k] = moments[k]["motion"][key]
            parts.append(part)
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


# a chart is left where its coordinates move less than this share of what they moved when it was chosen
CHART_SWITCH_RATIO = 0.3
# and for one that moves so much more
CHART_MIN_GAIN = 1.5
# a step that leads to no posture is tried again so much shorter, down to this share of the run
SHORTER, SHORTEST = 0.1, 1e-13
# the first such step where none came before it, as a share of the run
FIRST_RETRY_STEP = 1e-3
# so many of them, and loops are closed by all means
RETRIES_MAX = 2
# prescribed coordinates are at a dead centre if they move less than GOOD, or than this where steps fail
DEAD_CENTRE_TOL = 0.03
# what prescribed rates lead to may differ from the prescribed values by this share of their way, and by so
# many tolerances
HONEST, TOLERANCES = 1e-2, 100.0
# a change point is near if a singular value of the closure vanishes within so many steps at its present rate
FORESIGHT = 1.5
# a run that starts so near a change point starts at it
AT_CHANGE_POINT = 1e-7
# what changes by less in all of the time left, beside its scale, stands still; and the first step from there
STILL, SHY = 1e-9, 1e-4


def _quiet() -> np.errstate:
    """Numbers too large for steps that are only tried: what is not finite is refused where it comes up."""
    return np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True)
class Settings:
    """How a run is integrated."""

    method: str
    rtol: float
    atol: float
    most: int
    stop_at_change_points: bool = False


@dataclass(frozen=True)
class Start:
    """Where a run starts.

    Attributes
    ----------
    state : (S,)
        Closed state.
    q, qd : (M,)
        Values and rates of the user's coordinates.
    rates : (columns,) or None
        Rates of the tree, if they are known.
    current : (n,)
        Currents of the n motors with inductance, if there are voltages.
    """

    state: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    rates: np.ndarray | None = None
    current: np.ndarray = field(default_factory=lambda: NONE)


class Integration:
    """One run: a chart, an integrator, and what was found at the times wanted."""

    def __init__(
        self,
        mechanism: Mechanism,
        motion: Motion,
        times: np.ndarray,
        start: Start,
        events: Events,
        settings: Settings,
        bar: Bar,
        watch: ContactMonitor | None,
    ) -> None:
        self.mechanism, self.motion, self.times = mechanism, motion, times
        self.start, self.events, self.settings, self.bar = start, events, settings, bar
        self.watch = watch
        self.moments, self.found = SampleRecorder(), list[tuple[float, int]]()
        self.steps, self.charts, self.next = 0, 1, 0
        self.t, self.chart = float(times[0]), Chart(motion, motion.names, start.state, start.q)
        rest = np.concatenate([start.current, np.zeros(self.chart.accounts)])
        self.y = self.chart.pack(start.state, start.qd, rest)
        # the next integrator's first step, if it is known
        self.size: float | None = None
        # the time from which steps led nowhere, and how many
        self.failed = np.nan, 0
        # the furthest that prescribed values and rates have been from those at the start
        self.way = np.zeros((2, motion.held.size))
        self.change_points = list[float]()
        # the distance of the change point ahead, at the last good state
        self.ahead = np.inf
        # singular value decomposition of the closure rows at an anchor, and the anchor
        self._decomposed: tuple[np.ndarray, Any, np.ndarray] | None = None

    def go(self, before: Simulation | None) -> Simulation:
        """Integrate to the end, or as far as it goes."""
        stopped = ""
        try:
            stopped = self._integrate()
        except KeyboardInterrupt:
            if not self.moments.t:
                raise
            self._keep_last()
            stopped = f"interrupted, the last moment is t = {self.moments.last:.6g}"
        except Exception as error:
            self._keep_last()
            run = self._made(before, str(error)) if self.moments.t else before
            if isinstance(error, SimulationError):
                raise SimulationError(error.message, **{**error.numbers, "simulation": run}) from None
            with suppress(AttributeError, TypeError):  # an error that takes no attributes
                error.simulation = run  # type: ignore[attr-defined]
            raise
        finally:
            self.bar.close()
        return self._made(before, stopped)

    def _made(self, before: Simulation | None, stopped: str) -> Simulation:
        with _quiet():
            arrays = self.moments.arrays()
        made = Simulation(
            self.mechanism,
            self.motion.names,
            arrays,
            tuple(self.found),
            stopped,
            self.steps,
            self.charts,
            tuple(self.change_points),
        )
        return made if before is None else before.joined(made)

    def _integrate(self) -> str:
        """Integrate chart by chart; says why it stopped before its time."""
        with _quiet():
            self.chart.begin_branch(self.start.rates, self.start.qd)
        self._begin_well()
        self.events.check(self.chart.seen(self.t, self.y))
        with _quiet():
            self._keep([self.chart.moment(self.t, self.y)])
        if self.watch is not None and self.watch.margin(self.chart, self.t, self.y) < 0:
            return self._off(self.t, self.y)
        while self.next < len(self.times):
            try:
                solver, worth = self._solver(), self._worth()
            except (ConfigurationError, SingularError) as error:
                self._again(error, None)
                continue
            while self.next < len(self.times):
                try:
                    self._step(solver)
                    if self._crosses_unseen(solver):
                        self.size = solver.t - self.t
                        break
                    why = self._took(solver)
                except (ConfigurationError, SingularError) as error:
                    self._again(error, solver)
                    break
                if why:
                    return why
                self.bar.show((self.t - self.times[0]) / (self.times[-1] - self.times[0]))
                self._check_prescribed(GOOD)
                now = self._worth()
                if (
                    worth is not None
                    and now is not None
                    and now < CHART_SWITCH_RATIO * worth
                    and self._change(CHART_MIN_GAIN * now)
                ):
                    self.size = getattr(solver, "h_abs", None)
                    break
        return ""

    def _begin_well(self) -> None:
        """Begin in coordinates that drive the mechanism, and in which loops are closed in compiled code.

        That can not be done in angles of joints that are cut, which a run has no need of but at its ends.
        """
        worth = self._worth()
        if worth is None:
            return
        if worth < GOOD:
            self._change(CHART_MIN_GAIN * worth, self.start.rates)
        elif not self.motion.model.closure(self.chart.names).compiled:
            self._change(GOOD, self.start.rates)

    def _solver(self) -> Any:
        """SciPy's integrator from the present unknowns."""
        import scipy.integrate

        s, last = self.settings, float(self.times[-1])
        first = None if self.size is None else min(self.size, last - self.t)
        kind, atol = getattr(scipy.integrate, s.method), s.atol * self.chart.scale
        with _quiet():
            if first is None and self._rests():
                first = SHY * (last - self.t)
            return kind(self.chart, self.t, self.y, last, rtol=s.rtol, atol=atol, first_step=first)

    def _rests(self) -> bool:
        """Whether all stands still and nothing sets it in motion yet, as a motor that waits at equilibrium.

        From there SciPy would try the whole way in one step, into postures that are nowhere near.
        """
        rates, last = self.chart(self.t, self.y), float(self.times[-1])
        return bool((np.abs(rates) * (last - self.t) < STILL * self.chart.scale).all())

    def _step(self, solver: Any) -> None:
        """One step of the integrator, or why there is none."""
        if self.steps >= self.settings.most:
            raise SimulationError(
                self._lost(
                    f"it took {self.steps} steps, as many as `max_steps` allows. Loosen rtol and atol, take "
                    "method='Radau' if the motion is stiff, or allow more"
                ),
                time=self.t,
            )
        with _quiet():
            message = solver.step()
        self.steps += 1
        if message is not None or solver.status == "failed":
            raise SimulationError(
                self._lost(
                    f"the steps of {self.settings.method} shrink to nothing ({message or 'it failed'}): the "
                    "motion blows up, jumps, or is stiff. Look at the last state; method='Radau' takes stiff "
                    "motions"
                ),
                time=self.t,
            )

    def _again(self, error: Exception, solver: Any) -> None:
        """After a step that led to no posture: another chart, if there is a better one, or a shorter step."""
        span = float(self.times[-1] - self.times[0])
        when, fails = self.failed
        self.failed = self.t, fails + 1 if when == self.t else 1
        first, worth = when != self.t, self._worth()
        if first and self._seek_branch(*self._heading()):
            self.size = getattr(solver, "h_abs", None) or FIRST_RETRY_STEP * span
            return
        if first and worth is not None and self._change(CHART_MIN_GAIN * worth):
            self.size = None
            return
        size = (
            getattr(solver, "h_abs", None)
            or (FIRST_RETRY_STEP * span if first else self.size)
            or FIRST_RETRY_STEP * span
        )
        self.size = SHORTER * size
        if fails >= RETRIES_MAX:
            self._check_prescribed(DEAD_CENTRE_TOL)
        self.chart.careful = self.chart.careful or fails >= RETRIES_MAX
        if self.size < SHORTEST * span:
            # remedies of at() are none here
            why = self.chart.reason(error).split(" Give `near=`")[0].split(" Move off this posture")[0]
            raise SimulationError(
                self._lost(
                    f"{why.rstrip('.')}. Other coordinates `wrt` do not help: end the run before, with a "
                    "shorter `t` or `limits`, or give an `effort` that keeps the mechanism away from there"
                ),
                time=self.t,
            ) from None

    def _check_prescribed(self, least_worth: float) -> None:
        """Refuse to go on where prescribed coordinates themselves move less than so much."""
        chart = self.chart
        if not chart.held.size or chart.whole or chart.branch is not None:
            return
        closure = self.motion.model.closure(chart.names)
        G = closure.rows(chart.near[None])[1][0]
        first = closure.transfer.first
        if min_singular_value(G[chart.held] @ null_space(G[first:], chart.size)) > least_worth:
            return
        names = ", ".join(chart.names[k] for k in chart.held)
        raise SimulationError(
            self._lost(
                f"the motion prescribed for {names} leads to a dead centre, from where {names} can not drive "
                "the mechanism on. Prescribe another motion, or that of other coordinates"
            ),
            time=self.t,
        )

    def _lost(self, why: str) -> str:
        """What happened, and where the last good state is."""
        name = self.motion.model.description.name
        return f"'{name}' stops after t = {self.t:.9g}: {why}. The run up to there is kept as `simulation`."

    def _took(self, solver: Any) -> str:
        """Find what is wanted within a step and go on to its end; says why if the run stops in it."""
        wanted = self.times[self.next :][self.times[self.next :] <= solver.t]
        hits, moments = list[tuple[float, int]](), list[dict[str, Any]]()
        stop, end = "", float(solver.t)
        if self.events.all or len(wanted) or self.watch is not None or self.chart.branch is not None:
            dense, chart = solver.dense_output(), self.chart
            first = self.t == self.times[0]
            hits = self.events.within(lambda t: chart.seen(t, dense(t)), self.t, end, first)
            if hits and self.events.stops(hits[-1][1]):
                end = hits[-1][0]
                stop = f"stopped at t = {end:.9g} by {self.events.name(hits[-1][1])}"
            off = None if self.watch is None else self.watch.broken(chart, self.t, end, dense)
            if off is not None:
                end, stop = off, self._off(off, dense(off))
                hits = [hit for hit in hits if hit[0] <= off]
            passed = self._passed(dense, end)
            if passed and self.settings.stop_at_change_points:
                passed, end = passed[:1], passed[0]
                stop = f"stopped at t = {end:.9g} by a change point, where branches of the loop closure meet"
                hits = [hit for hit in hits if hit[0] <= end]
            self.change_points += passed
            if stop:
                wanted = wanted[wanted <= end]
                if end > max([self.moments.last, *wanted]):
                    wanted = np.append(wanted, end)
            for t in wanted.tolist():
                y = dense(t)
                self._honest(t, y)
                moments.append(chart.moment(t, y))
        if not stop:
            self.chart.anchor(solver.t, solver.y)
            self.t, self.y = end, solver.y.copy()
            self._leave_branch()
        self.found += hits
        self._keep(moments)
        return stop

    def _heading(self) -> tuple[np.ndarray, ...]:
        """Directions (M,) in which the motion goes, or will go from rest."""
        chart = self.chart
        v = self.y[chart.places : chart.places + chart.size]
        if v.any():
            return (v,)
        with suppress(ConfigurationError, SingularError):
            return (chart(self.t, self.y)[chart.places : chart.places + chart.size],)
        return ()

    def _seek_branch(self, *directions: np.ndarray) -> bool:
        """Take the smooth branch through a change point in one of some directions; return True if so.

        It takes the place of another one if the last good state is outside the gap of that.
        """
        chart, known = self.chart, self.chart.branch
        if known is not None and known.inside(chart.start):
            return False
        chart.branch = None
        with _quiet():
            if any(chart.seek_branch(d) for d in directions if d.any()):
                self.ahead = np.inf
                return True
        chart.branch = known
        return False

    def _crosses_unseen(self, solver: Any) -> bool:
        """Return True if a step went through a change point that was not known, and must be repeated.

        A singular value of the closure rows changes its sign there. Its singular vectors at the last good
        state follow it; where it has vanished, or will soon, the change point is looked for.
        """
        chart = self.chart
        if chart.whole or chart.branch is not None or not chart.rank:
            return False
        _, (U, sigma, V) = self._decomposition()
        _, state, _, _ = chart.parts(solver.t, solver.y)
        n = chart.rank
        now = np.einsum("ik,ij,kj->k", U[:, :n], chart.closing_rows(state[None])[0], V[:n])
        if not (now < (1 - 1 / (1 + FORESIGHT)) * sigma[:n]).any():
            return False
        here, there = (chart.coordinates(t, y)[0] for t, y in ((self.t, self.y), (solver.t, solver.y)))
        if not self._seek_branch(*self._heading(), there - here):
            return False
        assert chart.branch is not None  # for the type checker
        return chart.branch.distance(there) > -chart.branch.gap

    def _decomposition(self) -> tuple[np.ndarray, Any]:
        """First order of all rows at the anchor, and the singular value decomposition of the closure rows."""
        chart = self.chart
        if self._decomposed is None or self._decomposed[2] is not chart.near:
            closure = self.motion.model.closure(chart.names)
            G = closure.rows(chart.near[None])[1][0]
            closing = G[closure.transfer.first :]
            wide = closing.shape[0] < closing.shape[1]
            self._decomposed = G, np.linalg.svd(closing, full_matrices=wide), chart.near
        return self._decomposed[:2]

    def _passed(self, dense: Any, end: float) -> list[float]:
        """Times within a step at which the motion passes a change point."""
        chart = self.chart
        if chart.branch is None:
            return []
        branch = chart.branch

        def distance(t: float) -> float:
            return branch.distance(chart.coordinates(t, dense(t))[0])

        times = np.linspace(self.t, end, 5).tolist()
        distances = [distance(t) for t in times]
        if self.t == self.times[0] and abs(distances[0]) < AT_CHANGE_POINT:
            distances[0] = 0.0  # a start there is no passage
        return [t for t, _ in crossings(distance, times, distances)]

    def _leave_branch(self) -> None:
        """Close loops from the last good state again where the change point lies far behind."""
        branch = self.chart.branch
        if branch is None:
            return
        before, self.ahead = self.ahead, -branch.distance(self.chart.start)
        away = self.ahead < 0 or self.ahead > before
        if away and abs(self.ahead) > branch.half_width:
            self.chart.branch, self.ahead = None, np.inf

    def _off(self, t: float, y: np.ndarray) -> str:
        """Why the run stops where contacts can not hold."""
        assert self.watch is not None  # for the type checker
        return f"stopped at t = {t:.9g}: {self.watch.said(self.chart, t, y)}"

    def _keep(self, moments: list[dict[str, Any]]) -> None:
        for moment in moments:
            self.moments.keep(self.chart, moment)
        self.next += len(moments)

    def _keep_last(self) -> None:
        """Keep the last good state, too, where it is none of those wanted and functions still answer."""
        if self.moments.t and self.t > self.moments.last:
            with suppress(Exception, KeyboardInterrupt):
                self._keep([self.chart.moment(self.t, self.y)])

    def _honest(self, t: float, y: np.ndarray) -> None:
        """Refuse prescribed motions whose rates or accelerations are not the slopes of what stands before."""
        motion, s = self.motion, self.settings
        if not motion.held.size:
            return
        given = motion.given(t)[:2]
        self.way = np.maximum(self.way, np.abs(given - motion.given(float(self.times[0]))[:2]))
        scale = self.chart.scale[self.chart.places + self.chart.held]
        allowed = np.maximum(HONEST * self.way, TOLERANCES * (s.atol * scale + s.rtol * np.abs(given)))
        led = self.chart.led(y)
        for row, k in np.argwhere(np.abs(led - given) > allowed):
            slopes, values = (("rates", "values"), ("accelerations", "rates"))[row]
            raise SimulationError(
                self._lost(
                    f"the motion prescribed for '{motion.names[motion.held[k]]}' contradicts itself: its "
                    f"{slopes} lead to {led[row, k]:.9g} at t = {t:.9g}, where its {values} say "
                    f"{given[row, k]:.9g}"
                ),
                time=t,
            )

    def _worth(self) -> float | None:
        """How well the chart drives what is not prescribed; None where no other is ever taken."""
        if self.chart.whole or not self.chart.free.size or self.chart.branch is not None:
            return None
        J, null = self._drives()
        return float(min_singular_value(J @ null))

    def _drives(self) -> tuple[np.ndarray, np.ndarray]:
        """Scaled rows of the chart that may be others, and the motions at its anchor that all else leaves."""
        chart = self.chart
        G, (_, _, V) = self._decomposition()
        first = len(chart.place_scale)
        if not chart.held.size:
            return G[:first], V[chart.rank :].T
        stays = np.concatenate([G[chart.held], G[first:]])
        return G[:first][chart.free], null_space(stays, chart.free.size)

    def _change(self, least_worth: float, known: np.ndarray | None = None) -> bool:
        """Go over to the coordinates that drive the mechanism best here, if they are better than so much.

        Prescribed ones stay. `known` are the rates of the tree, where those of the chart say less.
        """
        tree, chart = self.motion.model.tree, self.chart
        found = ranking(self._drives()[1][None], tree.cols[:, 1] <= PRISMATIC, 1)
        if not len(found.picks) or found.measures[0, 0] <= least_worth:
            return False
        picks = found.picks[0]
        given = tuple(chart.names[k] for k in chart.held)
        names = (*given, *(tree.columns[n] for n in picks))
        # turns of balls have no value that could be integrated
        if set(names) == set(chart.names) or (tree.cols[picks, 1] > PRISMATIC).any():
            return False
        if known is None:
            rates = self._rates(names)
        else:
            rates = np.concatenate([self.y[chart.places + chart.held], known[picks]])
        self.chart = Chart(self.motion, names, chart.near, chart.q)
        self.y = self.chart.pack(chart.near, rates, self.y[chart.rest])
        self.charts += 1
        return True

    def _rates(self, names: tuple[str, ...]) -> np.ndarray:
        """Rates of other coordinates, from those of the chart."""
        chart = self.chart
        here = Configuration(self.motion.model, (), chart.near[None].copy())
        v = self.y[chart.places : chart.places + chart.size]
        return here.coefficients(list(names), order=1, wrt=chart.names).G @ v
