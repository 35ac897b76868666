"""Simulation: motion in time from efforts, with loops closed anew at every step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.arrays import reals, trailing
from kic.configuration import Configuration
from kic.drives import least, null_space, ranking
from kic.errors import InputError, PostureError, SimulationError, SingularError, shown, unknown
from kic.mechanism import Mechanism
from kic.motion import ACCOUNTS, Chart, Effort, Motion
from kic.rows import names_of
from kic.simulation import Moments, Simulation
from kic.tree import PRISMATIC

METHODS = ("DOP853", "RK45", "RK23", "LSODA", "Radau", "BDF")
# a chart is left where its coordinates move less than this share of what they moved when it was chosen
WORN = 0.3
# and for one that moves so much more
BETTER = 1.5
# times at which results are wanted where only an end is given
MOMENTS = 1001
# seconds after which a person wants to know how far it is
PATIENCE = 1.0


def simulate(
    mechanism: Mechanism,
    start: Configuration | Simulation,
    t: Any,
    effort: Effort | Any = None,
    qd: Any = None,
    wrt: str | Iterable[str] | None = None,
    prescribed: Mapping[str, Callable[[float], Any]] | None = None,
    events: Callable[..., float] | Sequence[Callable[..., float]] = (),
    limits: Mapping[str, Any] | None = None,
    method: str = "DOP853",
    rtol: float = 1e-9,
    atol: float = 1e-9,
    max_steps: int = 1_000_000,
    progress: bool | None = None,
) -> Simulation:
    """Motion in time of a mechanism that efforts drive, from a posture and its rates.

    Integrated are independent coordinates alone; everything else follows by closing the loops at each
    evaluation, to machine precision and without stabilisation. Where the coordinates come near a posture in
    which they do not drive the mechanism, others take over; the results stay in the user's.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    start : Configuration or Simulation
        One posture; or an earlier run, which is then continued from its end, and comes back as one.
    t : (T,) array_like
        Increasing times at which results are wanted, the first being that of the start; or the end alone,
        for 1001 times from 0 (from the end of the earlier run).
    effort : callable or (M,) array_like, optional
        ``effort(t, q, qd)`` gives the efforts (M,) at the coordinates; or constant ones. None: it moves freely.
    qd : (M,) array_like, optional
        Rates at the start; at rest if left out. Not with an earlier run.
    wrt : str or list of str, optional
        The user's coordinates, in which efforts, rates and results are; by default the mechanism's own.
    prescribed : dict of str to callable, optional
        Coordinates whose motion is given: ``f(t)`` returns value, rate and acceleration. The effort that they
        take is in the results.
    events : callable or list of them, optional
        ``event(t, q, qd)``, a real number whose zeros are found. Attributes as in SciPy: ``terminal`` (True
        stops the run there), ``direction`` (+1 or -1: only where it rises, or falls).
    limits : dict of str to (lower, upper), optional
        Coordinates at whose limits the run stops.
    method : str
        Integrator of SciPy: "DOP853", "RK45", "RK23" (explicit Runge-Kutta), "LSODA" (the multistep Adams
        family, which goes over to BDF where the motion is stiff), "Radau", "BDF" (stiff).
    rtol, atol : float
        Tolerances of the integrator.
    max_steps : int
        A run that takes more is stopped.
    progress : bool, optional
        Whether a bar is shown on stderr; by default where that is a terminal and the run is long.

    Returns
    -------
    Simulation
        Times, coordinates, rates, accelerations, efforts and states as arrays by name, with the energy account.
        A run that was interrupted (Ctrl-C) keeps what it had, and says so in ``stopped``.

    Raises
    ------
    InputError
        For arguments of another shape or kind, or a start that is not closed.
    SimulationError
        For a run that can not go on: efforts that are not finite, steps that shrink to nothing, no chart that
        drives the mechanism. It carries the run so far as ``simulation``.

    Examples
    --------
    >>> import kic
    >>> m = kic.load("four-bar")
    >>> run = kic.simulate(m, m.at(), 2.0)
    >>> bool(abs(run.energy.residual).max() < 1e-7)
    True
    """
    model = mechanism._model
    names = model.coordinates if wrt is None else model.transfer(names_of(wrt, "wrt")).labels
    model.check_number(names)
    if method not in METHODS:
        raise InputError(f"Expected `method` to be one of {', '.join(METHODS)}, got {shown(method)}.")
    before = start if isinstance(start, Simulation) else None
    state, rates = _begun(mechanism, start, qd, names)
    motion = Motion(model, names, _efforts(effort, names), _prescribed(prescribed, names))
    run = _Run(
        mechanism,
        motion,
        _times(t, before),
        (state, rates),
        [*_events(events), *_stops(limits, names)],
        _Settings(method, float(rtol), float(atol), int(max_steps)),
        _Bar(progress),
    )
    return run.go(before)


@dataclass(frozen=True)
class _Settings:
    method: str
    rtol: float
    atol: float
    most: int


class _Run:
    """One run: a chart, an integrator, and what was found at the times wanted."""

    def __init__(
        self,
        mechanism: Mechanism,
        motion: Motion,
        times: np.ndarray,
        start: tuple[np.ndarray, np.ndarray],
        events: list[Callable[..., float]],
        settings: _Settings,
        bar: _Bar,
    ) -> None:
        self.mechanism, self.motion, self.times = mechanism, motion, times
        self.events, self.settings, self.bar = events, settings, bar
        self.moments, self.found = Moments(), list[tuple[float, int]]()
        self.steps, self.charts = 0, 1
        self.chart = Chart(motion, motion.names, start[0])
        self.t, self.y = float(times[0]), self.chart.pack(*start, np.zeros(ACCOUNTS))
        self.next = 0

    def go(self, before: Simulation | None) -> Simulation:
        """Integrate to the end, or as far as it goes."""
        stopped = ""
        try:
            stopped = self._integrate()
        except KeyboardInterrupt:
            if not self.moments.t:
                raise
            stopped = f"interrupted, the last moment is t = {self.moments.t[-1]:.6g}"
        except SimulationError as error:
            run = self._made(before, error.message) if self.moments.t else before
            raise SimulationError(error.message, **{**error.numbers, "simulation": run}) from None
        finally:
            self.bar.close()
        return self._made(before, stopped)

    def _made(self, before: Simulation | None, stopped: str) -> Simulation:
        made = Simulation(
            self.mechanism,
            self.motion.names,
            self.moments.arrays(),
            tuple(self.found),
            stopped,
            self.steps,
            self.charts,
        )
        return made if before is None else before.joined(made)

    def _integrate(self) -> str:
        """Integrate chart by chart; says why it stopped before its time."""
        self._keep(self.t, self.y)
        last, size, stuck = float(self.times[-1]), None, -1
        while self.next < len(self.times):
            solver = self._solver(last, size)
            worth = self._worth()
            marks = self._marks(self.t, self.y)
            while self.next < len(self.times):
                try:
                    self._step(solver)
                except (PostureError, SingularError) as error:
                    # the chart ends here: from the last good state in another one, if there is one
                    if stuck == self.steps or not self._change(0.0):
                        raise SimulationError(self._lost(str(error)), time=self.t) from None
                    stuck, size = self.steps, None
                    break
                dense, now = solver.dense_output(), self._marks(solver.t, solver.y)
                end = self._events(marks, now, dense, solver)
                self._up_to(end, dense)
                if end < solver.t:
                    event = self.events[self.found[-1][1]]
                    return f"stopped at t = {end:.9g} by {getattr(event, '__name__', 'an event')}"
                marks, self.t, self.y = now, float(solver.t), solver.y.copy()
                self.bar.show((self.t - self.times[0]) / (last - self.times[0]))
                if worth and self._worth() < WORN * worth and self._change(BETTER * self._worth()):
                    size = solver.h_abs if hasattr(solver, "h_abs") else None
                    break
        return ""

    def _solver(self, last: float, size: float | None) -> Any:
        """SciPy's integrator from the present unknowns."""
        import scipy.integrate

        s = self.settings
        first = None if size is None else min(size, last - self.t)
        kind = getattr(scipy.integrate, s.method)
        return kind(self.chart, self.t, self.y, last, rtol=s.rtol, atol=s.atol, first_step=first)

    def _step(self, solver: Any) -> None:
        """One step of the integrator, or why there is none."""
        try:
            message = solver.step()
        except np.linalg.LinAlgError:
            raise SimulationError(
                self._lost("I* has no inverse there: some motion moves no mass"), time=self.t
            ) from None
        self.steps += 1
        if message is not None or solver.status == "failed":
            raise SimulationError(
                self._lost(
                    f"the steps of {self.settings.method} shrink to nothing ({message or 'it failed'}): the motion "
                    "blows up, jumps, or is stiff. Look at the last state; method='Radau' takes stiff motions"
                ),
                time=self.t,
            )
        if self.steps >= self.settings.most and solver.status == "running":
            raise SimulationError(
                self._lost(
                    f"it took {self.steps} steps, as many as `max_steps` allows. Loosen rtol and atol, take "
                    "method='Radau' if the motion is stiff, or allow more"
                ),
                time=self.t,
            )

    def _lost(self, why: str) -> str:
        """What happened, and where the last good state is."""
        name = self.motion.model.drawing.name
        return f"'{name}' stops after t = {self.t:.9g}: {why}. The run up to there is kept as `simulation`."

    def _marks(self, t: float, y: np.ndarray) -> list[float]:
        """Values of the events."""
        if not self.events:
            return []
        state, v = self.chart.parts(t, y)
        q, qd = self.chart.seen(state, v)
        return [float(event(t, q, qd)) for event in self.events]

    def _events(self, marks: list[float], now: list[float], dense: Any, solver: Any) -> float:
        """Zeros within the step; the time at which one stops the run, or the step's end."""
        from scipy.optimize import brentq

        hits = []
        for i, (a, b) in enumerate(zip(marks, now, strict=True)):
            way = getattr(self.events[i], "direction", 0)
            if (a < 0 <= b or a > 0 >= b) and way * (b - a) >= 0:
                hits.append(
                    (
                        float(
                            brentq(
                                lambda t, i=i: self._marks(t, dense(t))[i], solver.t_old, solver.t, xtol=1e-14
                            )
                        ),
                        i,
                    )
                )
        for when, i in sorted(hits):
            self.found.append((when, i))
            if getattr(self.events[i], "terminal", False):
                return when
        return float(solver.t)

    def _up_to(self, end: float, dense: Any) -> None:
        """Keep the moments wanted up to a time; the time itself if the run stops there."""
        while self.next < len(self.times) and self.times[self.next] <= end:
            self._keep(float(self.times[self.next]), dense(self.times[self.next]))
        if self.found and self.found[-1][0] == end and self.moments.t[-1] < end:
            if getattr(self.events[self.found[-1][1]], "terminal", False):
                self.moments.keep(**self.chart.moment(end, dense(end)))

    def _keep(self, t: float, y: np.ndarray) -> None:
        self.moments.keep(**self.chart.moment(t, y))
        self.next += 1

    def _worth(self) -> float:
        """How well the chart drives the mechanism; 0 where none is ever changed."""
        if self.chart.whole or self.motion.held.size:
            return 0.0
        J, null = self._drives()
        return float(least(J @ null))

    def _drives(self) -> tuple[np.ndarray, np.ndarray]:
        """Scaled rows of the chart, and the motions that the closure leaves."""
        closure = self.motion.model.closure(self.chart.names)
        G = closure.rows(self.chart.near[None])[1][0]
        first = closure.transfer.first
        return G[:first], null_space(G[first:], self.chart.size)

    def _change(self, least_worth: float) -> bool:
        """Go over to the coordinates that drive the mechanism best here, if they are better than so much."""
        if self.chart.whole or self.motion.held.size:
            return False
        tree = self.motion.model.tree
        state, v = self.chart.parts(self.t, self.y)
        found = ranking(self._drives()[1][None], tree.cols[:, 1] <= PRISMATIC, 1)
        if not len(found.picks) or found.measures[0, 0] <= least_worth:
            return False
        names = tuple(tree.columns[n] for n in found.picks[0])
        if set(names) == set(self.chart.names):
            return False
        here = Configuration(self.motion.model, (), state[None].copy())
        rates = here.coefficients(list(names), order=1, wrt=self.chart.names).G @ v
        self.chart = Chart(self.motion, names, state)
        self.y = self.chart.pack(state, rates, self.y[-ACCOUNTS:])
        self.charts += 1
        return True


def _begun(
    mechanism: Mechanism, start: Any, qd: Any, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Closed state (S,) and rates (M,) at the start."""
    model = mechanism._model
    if isinstance(start, Simulation):
        if start.mechanism != mechanism or start.coordinates != names:
            raise InputError("A run is continued with its own mechanism and coordinates.")
        if qd is not None:
            raise InputError(
                "`qd` was given with an earlier run, which has its own rates at its end. Leave it out."
            )
        return start.state[-1].copy(), start.qd[-1].copy()
    if not isinstance(start, Configuration) or start._model.drawing != mechanism:
        raise InputError(f"Expected `start` to be a posture of '{mechanism.name}', got {shown(start)}.")
    if start.batch or not start.ok.all():
        raise InputError(f"Expected `start` to be one posture, got a batch {start.batch}.")
    if start.state.dtype != np.float64:
        raise InputError(f"A simulation needs real numbers; the start holds {start.state.dtype}.")
    model.closure(names).check(start.state[None])
    rates = np.zeros(len(names)) if qd is None else trailing("qd", qd, len(names))
    if rates.ndim != 1 or rates.dtype != np.float64:
        raise InputError(f"Expected `qd` to be {len(names)} real numbers, got {shown(qd)}.")
    return start.state, rates.copy()


def _times(t: Any, before: Simulation | None) -> np.ndarray:
    """Increasing times (T,), the first that of the start."""
    begin = 0.0 if before is None else float(before.t[-1])
    a = reals(t)
    if a is not None and a.ndim == 0 and a > begin:
        return np.linspace(begin, float(a), MOMENTS)
    if a is None or a.ndim != 1 or len(a) < 2 or (np.diff(a) <= 0).any():
        raise InputError(
            f"Expected `t` to be increasing times, two at least, or an end after {begin:g}; got {shown(t)}."
        )
    if before is not None and a[0] != begin:
        raise InputError(f"The earlier run ends at t = {begin:.17g}, but `t` begins at {a[0]:.17g}.")
    return a


def _efforts(effort: Any, names: tuple[str, ...]) -> Effort | None:
    if effort is None or callable(effort):
        return effort
    a = reals(effort)
    if a is None or a.shape != (len(names),):
        raise InputError(
            f"Expected `effort` to be a function of (t, q, qd) or {len(names)} finite numbers, one for each of "
            f"{', '.join(names)}; got {shown(effort)}."
        )
    return lambda t, q, qd: a


def _prescribed(given: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(map(callable, given.values())):
        raise InputError(
            f"Expected `prescribed` to be a dict of coordinate to function of t, got {shown(given)}."
        )
    for name in given:
        if name not in names:
            raise unknown("coordinate", name, "the motion", names)
    return dict(given)


def _events(events: Any) -> list[Callable[..., float]]:
    several = [events] if callable(events) else list(events)
    if not all(map(callable, several)):
        raise InputError(f"Expected `events` to be functions of (t, q, qd), got {shown(events)}.")
    return several


def _stops(limits: Any, names: tuple[str, ...]) -> list[Callable[..., float]]:
    """Limits of coordinates as events that stop the run."""
    stops = []
    for name, pair in (limits or {}).items():
        if name not in names:
            raise unknown("coordinate", name, "the motion", names)
        bounds = reals(pair)
        if bounds is None or bounds.shape != (2,) or not bounds[0] < bounds[1]:
            raise InputError(f"Expected `limits` of '{name}' to be (lower, upper), got {shown(pair)}.")
        for bound, way, side in ((bounds[0], -1, "lower"), (bounds[1], 1, "upper")):

            def stop(
                t: float, q: np.ndarray, qd: np.ndarray, k: int = names.index(name), x: float = bound
            ) -> float:
                return float(q[k] - x)

            stop.__name__ = f"the {side} limit of {name}"
            stop.terminal, stop.direction = True, way  # type: ignore[attr-defined]
            stops.append(stop)
    return stops


class _Bar:
    """A bar on stderr, for runs that take long."""

    def __init__(self, wanted: bool | None) -> None:
        self._wanted = sys.stderr.isatty() if wanted is None else bool(wanted)
        self._patience = PATIENCE if wanted is None else 0.0
        self._since = self._last = time.monotonic()
        self._shown = False

    def show(self, share: float) -> None:
        """Draw the bar, now and then."""
        now = time.monotonic()
        if not self._wanted or now - self._since < self._patience or now - self._last < 0.1:
            return
        self._last, self._shown = now, True
        left = (now - self._since) * (1 - share) / max(share, 1e-9)
        done = int(30 * share)
        sys.stderr.write(f"\rkic: [{'#' * done}{'.' * (30 - done)}] {share:4.0%}, {left:.0f} s left ")
        sys.stderr.flush()

    def close(self) -> None:
        """End its line."""
        if self._shown:
            sys.stderr.write("\n")
            self._shown = False
