"""A run: charts and integrators one after the other, and what is found at the times wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.drives import null_space, ranking
from kic.errors import PostureError, SimulationError, SingularError
from kic.mechanism import Mechanism
from kic.motion import ACCOUNTS, Chart, Motion
from kic.progress import Bar
from kic.simulation import Moments, Simulation
from kic.tree import PRISMATIC

# a chart is left where its coordinates move less than this share of what they moved when it was chosen
WORN = 0.3
# and for one that moves so much more
BETTER = 1.5


@dataclass(frozen=True)
class Settings:
    """How a run is integrated."""

    method: str
    rtol: float
    atol: float
    most: int


class Run:
    """One run: a chart, an integrator, and what was found at the times wanted."""

    def __init__(
        self,
        mechanism: Mechanism,
        motion: Motion,
        times: np.ndarray,
        start: tuple[np.ndarray, np.ndarray],
        events: list[Callable[..., float]],
        settings: Settings,
        bar: Bar,
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
            stopped = f"interrupted, the last moment is t = {self.moments.last:.6g}"
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
                # between the ends of a step only where someone looks: it takes evaluations of its own
                due = bool(self.events) or self.times[self.next] <= solver.t
                dense, now = solver.dense_output() if due else None, self._marks(solver.t, solver.y)
                end = self._events(marks, now, dense, solver)
                self._up_to(end, dense)
                if end < solver.t:
                    event = self.events[self.found[-1][1]]
                    return f"stopped at t = {end:.9g} by {getattr(event, '__name__', 'an event')}"
                marks, self.t, self.y = now, float(solver.t), solver.y.copy()
                self.bar.show((self.t - self.times[0]) / (last - self.times[0]))
                if worth and (left := self._worth()) < WORN * worth and self._change(BETTER * left):
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
        now = self.chart.seen(t, y)
        return [float(event(t, now)) for event in self.events]

    def _mark(self, which: int, dense: Any, t: float) -> float:
        """Value of an event within a step."""
        return self._marks(t, dense(t))[which]

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
        when, which = self.found[-1] if self.found else (np.inf, 0)
        if when == end > self.moments.last and getattr(self.events[which], "terminal", False):
            self.moments.keep(self.chart, self.chart.moment(end, dense(end)))

    def _keep(self, t: float, y: np.ndarray) -> None:
        self.moments.keep(self.chart, self.chart.moment(t, y))
        self.next += 1

    def _worth(self) -> float:
        """How well the chart drives the mechanism; 0 where none is ever changed."""
        if self.chart.whole or self.motion.held.size:
            return 0.0
        # the least that the coordinates move while the mechanism moves by one is one over the most that it
        # moves while they do
        t = self.motion.model.closure(self.chart.names).transfer
        try:
            B = t.solve(self.chart.near[None], 1).X[0, t.tree.size :].reshape(t.tree.size, t.first)
        except SingularError:
            return 0.0
        return 1 / float(np.linalg.norm(B * t.scale[: t.first] / t.column_scale[:, None], 2))

    def _motions(self) -> np.ndarray:
        """The motions (M, f) that the closure leaves."""
        closure = self.motion.model.closure(self.chart.names)
        G = closure.rows(self.chart.near[None])[1][0]
        return null_space(G[closure.transfer.first :], self.chart.size)

    def _change(self, least_worth: float) -> bool:
        """Go over to the coordinates that drive the mechanism best here, if they are better than so much."""
        if self.chart.whole or self.motion.held.size:
            return False
        tree = self.motion.model.tree
        _, state, v = self.chart.parts(self.t, self.y)
        found = ranking(self._motions()[None], tree.cols[:, 1] <= PRISMATIC, 1)
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
