"""Following a path of a task in time: rates are integrated, and configurations put on the path."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.display import Summary, member
from kic.errors import ConfigurationError, InputError, SingularError, short_repr
from kic.kinematics.state import difference, integrate
from kic.numerics.arrays import broadcast_batches, reals
from kic.operational_space.redundancy import RedundancyEvaluator, resolve, tree_rates
from kic.operational_space.secondary_objectives import Aim
from kic.operational_space.weighting import Damping, Law, Weight
from kic.plotting.figures import Picture
from kic.plotting.plots import draw_plots, motion_panels, one_line, part_panels
from kic.position import initial_states
from kic.trajectory.task_path import TaskPath
from kic.transfer.compiled_model import CompiledModel

# rows at which a configuration counts as put on the path, of their scale; and how near rounding lets it come
MET, ENOUGH = 1e-11, 1e-14
STEPS, DAMPED_STEPS = 60, 3
# of a step, that is tried if a whole one leads away
LEAST_SHARE = 0.01
# of the integration, between two times
MOST_STEPS = 400
_STEP = 1e-40


class TrackingResult:
    """A path that was followed: configurations, rates, and what was missed; made by `Mechanism.follow`.

    Attributes
    ----------
    t : (n,)
        Times.
    configuration : Configuration
        The configurations, whose batch begins with the n times.
    task, coordinates : tuple of str
        Names of the P rows of the task and of the M coordinates.
    qd : (n, ..., M)
        Rates of the coordinates.
    qdd : (n, ..., M) or None
        Accelerations by the law "consistent"; None unless those of the path are known, every configuration
        was put on it without damping, and nothing secondary is a callable.
    error : (n, ..., P)
        From the configurations to the path: lengths, and turns as rotation vectors.
    damping : (n, ...)
        λ² at every time, zero where it was not damped.
    """

    def __init__(
        self,
        t: np.ndarray,
        configuration: Configuration,
        task: tuple[str, ...],
        coordinates: tuple[str, ...],
        rates: tuple[np.ndarray, np.ndarray | None],
        error: np.ndarray,
        damping: np.ndarray,
    ) -> None:
        self.t, self.configuration, self.task, self.coordinates = t, configuration, task, coordinates
        self.qd, self.qdd = rates
        self.error, self.damping = error, damping

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch, which begins with the n times."""
        return self.configuration.batch

    @property
    def phi(self) -> np.ndarray:
        """Coordinates of the spanning tree (n, ..., N), as `Configuration.phi`."""
        return self.configuration.phi

    def drift(self, period: float) -> np.ndarray:
        """How far the coordinates are from where they were one turn of a closed path ago.

        Laws of fewer rows than coordinates are not repeatable: the task returns, the coordinates do not.

        Parameters
        ----------
        period : float
            Time of one turn; times of all its multiples must be among `t`.

        Returns
        -------
        (cycles, ..., N)
            Differences of `phi`, one line for each turn.

        Raises
        ------
        InputError
            If there is no whole turn, or a time is missing.

        Examples
        --------
        >>> import kic
        >>> import numpy as np
        >>> m = kic.load("panda")
        >>> c = m.at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
        >>> home = c.value("flange")
        >>> turn = lambda t: home + 0.05 * np.stack([np.cos(t) - 1, np.sin(t), 0 * t])
        >>> f = m.follow({"flange": turn}, np.linspace(0, 4 * np.pi, 41), near=c)
        >>> f.drift(2 * np.pi).shape, bool(abs(f.error).max() < 1e-12)
        ((2, 7), True)
        """
        found = reals(period)
        if found is None or found.ndim or not found > 0:
            raise InputError(f"`period` must be a positive time, got {short_repr(period)}.")
        cycles = int((self.t[-1] - self.t[0]) / found + 1e-9)
        times = self.t[0] + found * np.arange(cycles + 1)
        places = np.abs(self.t[:, None] - times).argmin(axis=0)
        if cycles < 1 or np.abs(self.t[places] - times).max() > 1e-9 * found:
            raise InputError(
                f"`t` must have the multiples of the period {float(found):g} from {self.t[0]:g} on, "
                f"and one turn at least; it ends at {self.t[-1]:g}."
            )
        tree = self.configuration._model.tree
        states = self.configuration.state[places]
        size = states.shape[-1]
        moved = difference(tree, states[:-1].reshape(-1, size), states[1:].reshape(-1, size))
        if tree.to_coordinates is not None:
            moved = moved[:, tree.to_coordinates]
        return moved.reshape(cycles, *self.batch[1:], tree.size)

    def plot(self, member: Any = None, width: float = 3.5) -> Picture:
        """The task and its error, the coordinates and their rates over time, above one another.

        Parameters
        ----------
        member : int or tuple of int, optional
            Of a batch of paths, which.
        width : float
            In inches.

        Returns
        -------
        Picture
            Its ``axes`` are a tuple, one for each panel.

        Raises
        ------
        InputError
            For a batch without a member, or a member that is not there.
        MissingExtraError
            Without Matplotlib.
        """
        c, which = self.configuration, (slice(None), *one_line(self.batch[1:], member))
        drawing = c._model.description
        # turns have no values: their rows are seen in the error alone
        valued = [row for row in self.task if row.rpartition(".")[2] not in ("wx", "wy", "wz")]
        panels = part_panels(drawing, c, valued, which)
        panels += motion_panels(drawing, self.task, self.error[which], what="error")
        panels += part_panels(drawing, c, self.coordinates, which)
        panels += motion_panels(drawing, self.coordinates, self.qd[which], 1)
        return draw_plots(self.t, panels, drawing.units.time, width=width)

    def summary(self) -> Summary:
        """Labelled account, to print or to show."""
        sheet = Summary(
            f"{', '.join(self.task)} followed from t = {self.t[0]:g} to {self.t[-1]:g}, {len(self.t)} times"
        )
        if 0 in self.batch:
            sheet.say(f"empty batch {self.batch}")
            return sheet
        damped = self.damping > 0
        if damped.any():
            sheet.say(f"damped in {int(damped.sum())} of {damped.size} members: the task is not met there")
        worst = np.abs(self.error).reshape(-1, len(self.task)).max(axis=0)
        sheet.matrix("largest error", self.task, [""], worst[:, None])
        index, remark = member(self.batch[1:])
        if remark:
            sheet.say(remark)
        if index is not None:
            c = self.configuration
            names = c.coordinates if c._model.is_open_chain else c._model.tree.columns
            phi = np.moveaxis(self.phi, 0, -2)[index]
            ends = np.stack([phi[0], phi[-1], phi[-1] - phi[0], np.ptp(phi, axis=0)], axis=-1)
            sheet.matrix("coordinates", names, ["start", "end", "end − start", "range"], ends)
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def follow(
    model: CompiledModel,
    path: Any,
    t: Any,
    near: Configuration | None,
    weight: Weight,
    secondary: Any,
    damping: Damping,
    gain: Any,
    exact: bool,
    wrt: str | Iterable[str] | None,
    tolerance: float,
) -> TrackingResult:
    """Follow a path; see `Mechanism.follow`."""
    model.require_real("Following a path", "Ask resolve() at configurations made by at().")
    times = reals(t)
    if times is None or times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
        raise InputError(
            f"`t` must be two times or more, each later than the last, got {short_repr(t)}."
        )
    gained, tight = reals(gain), reals(tolerance)
    if gained is None or gained.ndim or gained < 0:
        raise InputError(f"`gain` must be a number (1/time), not negative, got {short_repr(gain)}.")
    if not isinstance(exact, bool):
        raise InputError(f"`exact` must be True or False, got {short_repr(exact)}.")
    if tight is None or tight.ndim or not 1e-13 <= tight <= 1e-3:
        raise InputError(f"`tolerance` must be between 1e-13 and 1e-3, got {short_repr(tolerance)}.")
    course = TaskPath(model, path, times)
    start, around = initial_states(model, near)
    runner = _Runner(model, course, weight, secondary, damping, wrt)
    shape = broadcast_batches(
        near=around, path=course.batch, weight=runner.f.weighting.batch, **runner.aim.batches
    )
    runner.place(shape)
    states = np.broadcast_to(start, (*shape, start.shape[-1])).reshape(prod(shape), start.shape[-1]).copy()
    found, errors = [], []
    for k, time in enumerate(times.tolist()):
        if k:
            states = runner.go(states, float(times[k - 1]), time, float(gained), float(tight))
        if exact:
            states = runner.land(states, time)
        found.append(states)
        errors.append(course.error(states, time, shape))
    whole = (len(times), *shape)
    c = Configuration(model, whole, np.concatenate(found).reshape(-1, start.shape[-1]))
    error = (
        np.concatenate(errors).reshape(*whole, -1) if prod(whole) else np.zeros((*whole, len(runner.f.task)))
    )
    rates = [np.broadcast_to(course.rates(x), (*shape, error.shape[-1])) for x in times.tolist()]
    motion: dict[str, Any] = {
        "ud": np.stack(rates) + float(gained) * error,
        "udd": None,
        "uddd": None,
        "qd": None,
    }
    bends = [course.accelerations(x) for x in times.tolist()]
    known = exact and damping is None and not runner.aim.unknown
    if known and all(a is not None for a in bends):
        motion["udd"] = np.stack([np.broadcast_to(a, rates[0].shape) for a in bends if a is not None])
    law: Law = "consistent"
    r = resolve(c, course.names, motion, weight, law, secondary, damping, wrt, "raise")
    return TrackingResult(times, c, r.task, r.coordinates, (r.qd, r.qdd), error, r.damping)


class _Runner:
    """The law of rates with what it is asked of, between two times and at one."""

    def __init__(
        self,
        model: CompiledModel,
        course: TaskPath,
        weight: Weight,
        secondary: Any,
        damping: Damping,
        wrt: Any,
    ) -> None:
        self.model, self.course, self.weight, self.wrt = model, course, weight, wrt
        self.damping, self.secondary = damping, secondary
        self.f = RedundancyEvaluator(model, course.names, weight, "consistent", damping, wrt, order=1)
        self.aim = Aim(secondary, len(self.f.coordinates))
        if self.aim.varies:
            raise InputError(
                "`secondary` must be constant rates z in a path, got (z, ż). What changes "
                "with the configuration is an objective or a callable.",
            )
        self.shape: tuple[int, ...] = ()
        # what closes the loops again, with nothing else held
        self.closure = (
            None if model.tree.open and not model.closure(()).transfer.owners else model.closure(())
        )

    def place(self, shape: tuple[int, ...]) -> None:
        """Make it for a batch."""
        self.shape = shape
        if self.f.weighting.batch and self.f.weighting.batch != shape:
            M = len(self.f.coordinates)
            whole = np.broadcast_to(self.f.weighting.matrix, (*shape, M, M))
            self.f = RedundancyEvaluator(
                self.model, self.course.names, whole, "consistent", self.damping, self.wrt, order=1
            )

    def rates(self, states: np.ndarray, ud: np.ndarray, strive: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rates (B, N) of the tree's coordinates at states (B, S) for those (B, P) of the task; if damped."""
        c = Configuration(self.model, self.shape, states)
        z = None
        if strive and self.aim:
            z = self.aim.rates(c, self.wrt, self.course.names).reshape(len(states), -1)
        motion = self.f.motion([ud, None, z, None], len(states), states.dtype)
        r = self.f.results(self.f.table(states, motion, False, slice(None)), (len(states),))
        return tree_rates(c, r.qd, self.wrt), r.damped

    def go(self, states: np.ndarray, start: float, end: float, gain: float, tolerance: float) -> np.ndarray:
        """States (B, S) at the end of a stretch of time."""
        if not states.size:
            return states
        from scipy.integrate import DOP853

        tree, size = self.model.tree, states.shape[1]

        def slope(time: float, y: np.ndarray) -> np.ndarray:
            here = _unit(tree, y.reshape(-1, size))
            ud = np.broadcast_to(self.course.rates(time), (*self.shape, len(self.f.task)))
            ud = ud.reshape(len(here), -1)
            if gain:
                ud = ud + gain * self.course.error(here, time, self.shape)
            try:
                rates, _ = self.rates(here, ud, strive=True)
            except SingularError as error:
                raise SingularError(f"At t = {time:g}: {error.message}", **error.numbers) from error
            if not tree.balls:
                return rates.ravel()
            return integrate(tree, here.astype(complex), 1j * _STEP * rates).imag.ravel() / _STEP

        solver = DOP853(slope, start, states.ravel(), end, rtol=tolerance, atol=tolerance * 1e-2)
        said: str | None = "its steps become too short."
        for _ in range(MOST_STEPS):
            said = solver.step() or said
            if solver.status != "running":
                break
        if solver.status != "finished":
            raise ConfigurationError(
                f"The path cannot be followed beyond t = {solver.t:g}: {said} The task may be near a "
                "singular configuration there; give `damping`, another secondary objective, or more times.",
                time=float(solver.t),
            )
        return self._closed(_unit(tree, solver.y.reshape(-1, size)), end)

    def _closed(self, states: np.ndarray, time: float) -> np.ndarray:
        """Loops closed again, by the smallest steps."""
        if self.closure is None or not len(states):
            return states
        states, left = self.closure.newton(states, self.closure.goal(np.zeros((len(states), 0))))
        why = self.closure.failure_reasons(states, left)
        if any(why):
            k = next(k for k, one in enumerate(why) if one)
            raise ConfigurationError(
                f"Loops of '{self.model.description.name}' do not close{self._which(k)} at t = {time:g}: "
                f"{why[k]}. Give more times, or begin nearer to the path.",
                time=time,
            )
        return states

    def land(self, states: np.ndarray, time: float) -> np.ndarray:
        """States (B, S) put on the path at a time, by Newton's method and the same weight."""
        scale, course, tree = self.course.scale, self.course, self.model.tree
        error = course.error(states, time, self.shape)
        left = np.abs(error / scale).max(axis=1, initial=0.0)
        damped, share = np.zeros(len(states), dtype=bool), np.ones(len(states))
        for k in range(STEPS):
            going = (left > ENOUGH) & ~(damped & (k >= DAMPED_STEPS)) & (share > LEAST_SHARE)
            if not going.any():
                break
            try:
                step, damped = self.rates(states, error, strive=False)
            except SingularError as failed:
                raise SingularError(f"At t = {time:g}: {failed.message}", **failed.numbers) from failed
            # no turn of more than half a radian at once
            large = np.abs(step / self.model.transfer(()).column_scale).max(axis=1, initial=0.0)
            step = step * (share / np.maximum(1.0, 2 * large))[:, None]
            tried = self._closed(integrate(tree, states, step), time)
            missing = course.error(tried, time, self.shape)
            now = np.abs(missing / scale).max(axis=1, initial=0.0)
            better = going & (now < left)
            # near rounding a whole step is all there is to try
            share = np.where(better, 1.0, np.where(left > MET, share / 4, 0.0))
            states = np.where(better[:, None], tried, states)
            error = np.where(better[:, None], missing, error)
            left = np.where(better, now, left)
        lost = np.where(damped, 0.0, left)
        if (lost > MET).any():
            k = int(np.argmax(lost))
            raise ConfigurationError(
                f"'{self.model.description.name}' does not reach its path{self._which(k)} at t = {time:g}: "
                f"{left[k]:.1e} left, of its length or in radians, where no step brings it closer. Begin "
                "nearer to the path with `near`, give more times, or `damping`, which says what it misses.",
                time=time,
                left=float(left[k]),
            )
        return states

    def _which(self, k: int) -> str:
        """Which member, in words."""
        return f" in member {list(map(int, np.unravel_index(k, self.shape)))}" if self.shape else ""


def _unit(tree: Any, states: np.ndarray) -> np.ndarray:
    """States with the quaternions of balls brought to unit length."""
    return integrate(tree, states, np.zeros((len(states), tree.size))) if tree.balls else states
