"""Tracking of a task path: integration of rates of the redundancy resolution, and correction of errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from kic.description.table_columns import motion_columns
from kic.description.units import row_unit
from kic.errors import ConfigurationError, InputError, at_times, invalid
from kic.kernels import layout as lay
from kic.kinematics.state import difference, integrate
from kic.mechanism.configuration import Animated, Configuration, model_of, tree_coordinates
from kic.mechanism.mechanism import Mechanism
from kic.mechanism.position import initial_states, within_limits
from kic.numerics.arguments import at_least, flag, positive
from kic.numerics.arrays import broadcast_batches, reals
from kic.numerics.display import Printable, Summary
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable, batch_axes
from kic.plotting.figures import Picture
from kic.plotting.plots import course_index, draw_plots, motion_panels, part_panels
from kic.tasks.operational_space.redundancy import RedundancyTask, resolve_redundancy, tree_rates
from kic.tasks.operational_space.secondary_objectives import NullSpaceMotion
from kic.tasks.operational_space.weighting import Damping, Weight
from kic.trajectory.task_path import STEP, TaskPath
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import Limits, MotionLimits

# largest scaled error of a corrected configuration, and the error that rounding permits
TRACKING_ERROR_MAX, TRACKING_ERROR_GOOD = 1e-11, 1e-14
# most Newton steps, and most damped ones
TRACKING_NEWTON_STEPS_MAX, DAMPED_STEPS_MAX = 60, 3
# smallest share of a Newton step that is tried if a whole one increases the error
STEP_SHARE_MIN = 0.01
# most steps of the integrator between two times
TRACKING_STEPS_MAX = 400


@dataclass(frozen=True, eq=False, repr=False)
class TrackingResult(Printable, Tabular, Animated):
    """Result of following a path: configurations, rates and errors; made by `Mechanism.track`.

    Attributes
    ----------
    t : (n,)
        Times.
    configuration : Configuration
        The configurations; their batch begins with the n times.
    rows, coordinates : tuple of str
        Names of the P rows of the task and of the M coordinates.
    qd : (n, ..., M)
        Rates of the coordinates.
    qdd : (n, ..., M) or None
        Accelerations by the law "consistent". None unless accelerations of the path are known, every
        configuration was corrected without damping, and no secondary objective is a callable.
    error : (n, ..., P)
        Desired minus actual values: lengths, and rotations as rotation vectors.
    damping : (n, ...)
        λ² at every time; zero without damping.
    """

    _one_line = ("rows", "coordinates", "batch")

    t: np.ndarray
    configuration: Configuration
    rows: tuple[str, ...]
    coordinates: tuple[str, ...]
    qd: np.ndarray
    qdd: np.ndarray | None
    error: np.ndarray
    damping: np.ndarray

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch, which begins with the n times."""
        return self.configuration.batch

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        description = model_of(self.configuration).description
        time = TableAxis("t", self.t, description.units.time)
        made = list(self.configuration.table(self.coordinates if names is None else names).variables)
        if names is None:
            motion = [np.empty(self.qd.shape), self.qd, *([] if self.qdd is None else [self.qdd])]
            made += motion_columns(description, self.coordinates, motion)[len(self.coordinates) :]
            made += [
                Variable(f"{row}.error", self.error[..., k], row_unit(description, row))
                for k, row in enumerate(self.rows)
            ]
        return DataTable(description.name, (time, *batch_axes(self.batch[1:])), tuple(made))

    @property
    def phi(self) -> np.ndarray:
        """Array (n, ..., N) of the coordinates of the spanning tree; ball joints have rotation vectors."""
        return tree_coordinates(self.configuration)[1]

    def drift(self, period: float) -> np.ndarray:
        """Return the change of the coordinates over each cycle of a closed path.

        Redundancy resolution is not repeatable in general: the coordinates may differ when the task returns
        to its start.

        Parameters
        ----------
        period : float
            Duration of one cycle; all its multiples must be among `t`.

        Returns
        -------
        (cycles, ..., N)
            Differences of `phi`, one row for each cycle.

        Raises
        ------
        InputError
            If there is no whole cycle, or a time is missing.

        Examples
        --------
        >>> m = kic.load("panda")
        >>> c = m.at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
        >>> home = c.value("flange")
        >>> turn = lambda t: home + 0.05 * np.stack([np.cos(t) - 1, np.sin(t), 0 * t])
        >>> f = m.track({"flange": turn}, np.linspace(0, 4 * np.pi, 41), near=c)
        >>> f.drift(2 * np.pi).shape, bool(abs(f.error).max() < 1e-12)
        ((2, 7), True)
        """
        found = positive("period", period)
        # the quotient may be infinite
        cycles = int(min(float(self.t[-1] - self.t[0]) / found + 1e-9, len(self.t)))
        times = self.t[0] + found * np.arange(cycles + 1)
        places = np.abs(self.t[:, None] - times).argmin(axis=0)
        if not 1 <= cycles < len(self.t) or np.abs(self.t[places] - times).max() > 1e-9 * found:
            raise InputError(
                f"`t` must span a period of {found:g} at least, and include {self.t[0]:g} plus all multiples "
                f"of it up to its end, got the end {self.t[-1]:g}.",
                key="t",
            )
        tree = model_of(self.configuration).tree
        states = self.configuration.state[places]
        size = states.shape[-1]
        moved = difference(tree, states[:-1].reshape(-1, size), states[1:].reshape(-1, size))
        if tree.to_coordinates is not None:
            moved = moved[:, tree.to_coordinates]
        return moved.reshape(cycles, *self.batch[1:], tree.size)

    def plot(self, *, member: Any = None, width: float = 3.5) -> Picture:
        """Plot the task, its error, the coordinates and their rates over time in stacked panels.

        Parameters
        ----------
        member : int or tuple of int, optional
            Member of a batch of paths.
        width : float
            Width in inches.

        Returns
        -------
        Picture
            Its ``axes`` are a tuple, one for each panel.

        Raises
        ------
        InputError
            If `member` is out of range, or omitted for a batch of paths.
        """
        c, which = self.configuration, (slice(None), *course_index(self.batch[1:], member))
        drawing = model_of(c).description
        # rows of angular velocities have no values, only errors
        valued = [row for row in self.rows if row.rpartition(".")[2] not in ("wx", "wy", "wz")]
        panels = part_panels(drawing, c, valued, which)
        panels += motion_panels(drawing, self.rows, self.error[which], what="error")
        panels += part_panels(drawing, c, self.coordinates, which)
        panels += motion_panels(drawing, self.coordinates, self.qd[which], 1)
        return draw_plots(self.t, panels, drawing.units.time, width=width)

    def summary(self) -> Summary:
        """Return a summary of the path and its errors."""
        sheet = Summary(
            f"{', '.join(self.rows)} followed from t = {self.t[0]:g} to {self.t[-1]:g}, {len(self.t)} times"
        )
        if 0 in self.batch:
            sheet.say(f"empty batch {self.batch}")
            return sheet
        damped = self.damping > 0
        if damped.any():
            sheet.say(f"damped in {int(damped.sum())} of {damped.size} members, where the task is not met")
        worst = np.abs(self.error).reshape(-1, len(self.rows)).max(axis=0)
        sheet.matrix("largest error", self.rows, [""], worst[:, None])
        index = sheet.member(self.batch[1:])
        if index is not None:
            names, phi = tree_coordinates(self.configuration)
            phi = np.moveaxis(phi, 0, -2)[index]
            ends = np.stack([phi[0], phi[-1], phi[-1] - phi[0], np.ptp(phi, axis=0)], axis=-1)
            sheet.matrix("coordinates", names, ["start", "end", "end − start", "range"], ends)
        return sheet


def track(
    mechanism: Mechanism,
    path: Mapping[str, Any] | Any,
    t: Any,
    *,
    near: Configuration | None = None,
    criterion: Weight = "minimum norm",
    secondary: Any = None,
    damping: Damping = None,
    gain: float = 0.0,
    exact: bool = True,
    wrt: str | Iterable[str] | None = None,
    tolerance: float = 1e-10,
    limits: Limits = None,
) -> TrackingResult:
    """Follow a path in time with a task, and resolve redundancy if the task has fewer rows.

    The rates q̇ of `Configuration.resolve_redundancy` are integrated by the method of Dormand and Prince
    of order 8, with closed loops. At every time of `t` the configuration is corrected to the path, so
    that the task does not drift; the coordinates may, see `TrackingResult.drift`. `prepare` provides the
    same rates step by step, for a control loop.

    Parameters
    ----------
    path : Trajectory, or dict of str to callable or array_like
        The task: a trajectory of `kic.trajectory`; or, for rows with a value ("flange", "tip.x") or
        bodies, a trajectory, a function of time that returns values, (values, rates) or (values, rates,
        accelerations), or samples (n, ..., P) at the times, interpolated by a spline of fifth degree. A
        function that returns values alone is differentiated by a complex step and must accept complex
        times. For a body, a SciPy `RigidTransform` or `Rotation` of n members, its displacement from the
        reference configuration; a function that returns such an object with its rates; or a rotation made
        by `kic.trajectory.rotation`.
    t : (n,) array_like
        Times.
    near : Configuration, optional
        Start, one configuration or a batch, near the path; by default the reference configuration.
    criterion, secondary, damping
        As in `Configuration.resolve_redundancy`. A callable receives a configuration of the batch and, at
        the end, one whose first axis is time.
    gain : float
        Feedback of the task's error between the times, 1/time: u̇ = u̇ of the path + gain · error.
    exact : bool
        True to correct configurations to the path at each time; otherwise only `gain` reduces errors.
        With damping the correction is limited.
    wrt
        As in `Configuration.resolve_redundancy`.
    tolerance : float
        Relative tolerance of the integration.
    limits
        As in `at`; a configuration beyond them is an error with its `time`.

    Returns
    -------
    TrackingResult
        Configurations, rates, errors, damping; `drift`.

    Raises
    ------
    UnknownNameError, InputError, InertiaError
        As `Configuration.resolve_redundancy`; also for times that do not increase, an invalid path, or
        rates that contradict the values.
    SingularError
        If the task becomes singular and there is no damping; it has the `time`.
    ConfigurationError
        If the path is out of reach or beyond limits; it has the `time`.

    Examples
    --------
    >>> m = kic.load("three-link-arm")
    >>> c = m.at([0.4, 0.5, 0.6])
    >>> x = c.value("frame3.x")
    >>> f = m.track({"frame3.x": lambda t: x - 0.1 * np.sin(t)}, np.linspace(0, 2 * np.pi, 9), near=c)
    >>> f.qd.shape, bool(abs(f.error).max() < 1e-12)
    ((9, 3), True)
    """
    model = model_of(mechanism)
    model.require_real("Following a path", "Use Configuration.resolve_redundancy().")
    model.require_none_held("Following a path")
    times = reals(t)
    if times is None or times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
        raise invalid("t", "must be at least two increasing times", t)
    gain, exact, tight = at_least("gain", gain, 0.0), flag("exact", exact), reals(tolerance)
    if tight is None or tight.ndim or not 1e-13 <= tight <= 1e-3:
        raise invalid("tolerance", "must be between 1e-13 and 1e-3", tolerance)
    task_path = TaskPath(model, path, times)
    MotionLimits(model, limits)  # raises for an invalid argument before the integration
    start, around = initial_states(model, near)
    follower = _PathFollower(model, task_path, criterion, secondary, damping, wrt)
    shape = broadcast_batches(
        near=around, path=task_path.batch, criterion=follower.f.weighting.batch, **follower.aim.batches
    )
    follower.set_batch(shape)
    states = np.broadcast_to(start, (*shape, start.shape[-1])).reshape(prod(shape), start.shape[-1]).copy()
    found, errors = [], []
    for k, time in enumerate(times.tolist()):
        if k:
            states = follower.advance(states, float(times[k - 1]), time, gain, float(tight))
        with at_times(time):
            if exact:
                states = follower.correct(states, time)
            errors.append(task_path.error(states, time, shape))
        found.append(states)
    whole = (len(times), *shape)
    c = Configuration(model, whole, np.concatenate(found).reshape(-1, start.shape[-1]))
    within_limits(c, limits, "raise", times=times)
    error = (
        np.concatenate(errors).reshape(*whole, -1)
        if prod(whole)
        else np.zeros((*whole, len(follower.f.rows)))
    )
    rates = [np.broadcast_to(task_path.rates(x), (*shape, error.shape[-1])) for x in times.tolist()]
    velocity, acceleration = np.stack(rates) + gain * error, None
    bends = [task_path.accelerations(x) for x in times.tolist()]
    known = exact and damping is None and not follower.aim.has_callable
    if known and all(a is not None for a in bends):
        acceleration = np.stack([np.broadcast_to(a, rates[0].shape) for a in bends if a is not None])
    with at_times(times):
        r = resolve_redundancy(
            c,
            task_path.names,
            velocity,
            acceleration,
            criterion=criterion,
            secondary=secondary,
            damping=damping,
            wrt=wrt,
        )
    return TrackingResult(times, c, r.rows, r.coordinates, r.qd, r.qdd, error, r.damping)


class _PathFollower:
    """Integration of the redundancy resolution between times, and correction at each time."""

    def __init__(
        self,
        model: CompiledModel,
        task_path: TaskPath,
        weight: Weight,
        secondary: Any,
        damping: Damping,
        wrt: Any,
    ) -> None:
        self.model, self.task_path, self.weight, self.wrt = model, task_path, weight, wrt
        self.damping, self.secondary = damping, secondary
        self.f = RedundancyTask(model, task_path.names, weight, "consistent", damping, wrt, order=1)
        projected = self.f.weighting.metric != lay.UNIT_METRIC
        self.aim = NullSpaceMotion(secondary, len(self.f.coordinates), projected)
        if self.aim.time_dependent:
            raise InputError(
                "`secondary` must be constant rates z in a path, got (z, ż). Give an "
                "objective or a callable if they change.",
                key="secondary",
            )
        self.shape: tuple[int, ...] = ()
        # closure of the loops alone
        self.closure = (
            None if model.tree.open and not model.closure(()).transfer.owners else model.closure(())
        )

    def set_batch(self, shape: tuple[int, ...]) -> None:
        """Set the batch shape."""
        self.shape = shape
        if self.f.weighting.batch and self.f.weighting.batch != shape:
            M = len(self.f.coordinates)
            whole = np.broadcast_to(self.f.weighting.matrix, (*shape, M, M))
            self.f = RedundancyTask(
                self.model, self.task_path.names, whole, "consistent", self.damping, self.wrt, order=1
            )

    def rates(self, states: np.ndarray, ud: np.ndarray, secondary: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return rates (B, N) of the tree's coordinates for task rates (B, P), and a mask of damping."""
        c = Configuration(self.model, self.shape, states)
        z = None
        if secondary and self.aim:
            z = self.aim.rates(c, self.wrt, self.task_path.names).reshape(len(states), -1)
        motion = self.f.packed_motion([ud, None, z, None], len(states), states.dtype)
        r = self.f.results(self.f.table(states, motion, False, slice(None)), (len(states),))
        return tree_rates(c, r.qd, self.wrt), r.damped

    def advance(
        self, states: np.ndarray, start: float, end: float, gain: float, tolerance: float
    ) -> np.ndarray:
        """Return the states (B, S) at the end of an interval of time."""
        if not states.size:
            return states
        from scipy.integrate import DOP853

        tree, size = self.model.tree, states.shape[1]

        def slope(time: float, y: np.ndarray) -> np.ndarray:
            here = _unit(tree, y.reshape(-1, size))
            with at_times(time):
                ud = np.broadcast_to(self.task_path.rates(time), (*self.shape, len(self.f.rows)))
                ud = ud.reshape(len(here), -1)
                if gain:
                    ud = ud + gain * self.task_path.error(here, time, self.shape)
                rates, _ = self.rates(here, ud, secondary=True)
            if not tree.balls:
                return rates.ravel()
            return integrate(tree, here.astype(complex), 1j * STEP * rates).imag.ravel() / STEP

        solver = DOP853(slope, start, states.ravel(), end, rtol=tolerance, atol=tolerance * 1e-2)
        reason: str | None = "its steps become too short."
        for _ in range(TRACKING_STEPS_MAX):
            with np.errstate(all="ignore"):  # a step with huge numbers fails
                reason = solver.step() or reason
            if solver.status != "running":
                break
        if solver.status != "finished":
            raise ConfigurationError(
                f"The path cannot be followed beyond t = {solver.t:g}: {reason} The task may be near a "
                "singular configuration there; give `damping`, another secondary objective, or more times.",
                key="path",
                time=float(solver.t),
            )
        return self._close(_unit(tree, solver.y.reshape(-1, size)), end)

    def _close(self, states: np.ndarray, time: float) -> np.ndarray:
        """Return the states with loops closed by the smallest change."""
        if self.closure is None or not len(states):
            return states
        states, _, why = self.closure.solve_from(states, np.zeros((len(states), 0)))
        if any(why):
            k = next(k for k, one in enumerate(why) if one)
            raise ConfigurationError(
                f"Loops of '{self.model.description.name}' do not close{self._member(k)} at t = {time:g}: "
                f"{why[k]}. Give more times, or start nearer to the path.",
                time=time,
            )
        return states

    def correct(self, states: np.ndarray, time: float) -> np.ndarray:
        """Return states (B, S) corrected onto the path at a time, by Newton's method with the same weight."""
        scale, task_path, tree = self.task_path.scale, self.task_path, self.model.tree
        error = task_path.error(states, time, self.shape)
        left = np.abs(error / scale).max(axis=1, initial=0.0)
        damped, share = np.zeros(len(states), dtype=bool), np.ones(len(states))
        for k in range(TRACKING_NEWTON_STEPS_MAX):
            going = (
                (left > TRACKING_ERROR_GOOD) & ~(damped & (k >= DAMPED_STEPS_MAX)) & (share > STEP_SHARE_MIN)
            )
            if not going.any():
                break
            step, damped = self.rates(states, error, secondary=False)
            # limit rotations to half a radian per step
            large = np.abs(step / self.model.transfer(()).column_scale).max(axis=1, initial=0.0)
            step = step * (share / np.maximum(1.0, 2 * large))[:, None]
            tried = self._close(integrate(tree, states, step), time)
            missing = task_path.error(tried, time, self.shape)
            now = np.abs(missing / scale).max(axis=1, initial=0.0)
            better = going & (now < left)
            # near rounding, shorter steps do not help
            share = np.where(better, 1.0, np.where(left > TRACKING_ERROR_MAX, share / 4, 0.0))
            states = np.where(better[:, None], tried, states)
            error = np.where(better[:, None], missing, error)
            left = np.where(better, now, left)
        lost = np.where(damped, 0.0, left)
        if (lost > TRACKING_ERROR_MAX).any():
            k = int(np.argmax(lost))
            raise ConfigurationError(
                f"'{self.model.description.name}' does not reach its path{self._member(k)} at t = {time:g}: "
                f"an error of {left[k]:.1e} (relative to its length, or rad) remains. Start nearer to the "
                "path with `near`, give more times, or give `damping`, which permits errors.",
                key="near",
                failed=[tuple(map(int, np.unravel_index(k, self.shape)))],
                time=time,
                residual=float(left[k]),
            )
        return states

    def _member(self, k: int) -> str:
        """Return a phrase that names the member."""
        return f" in member {list(map(int, np.unravel_index(k, self.shape)))}" if self.shape else ""


def _unit(tree: Any, states: np.ndarray) -> np.ndarray:
    """Return states with normalized quaternions."""
    return integrate(tree, states, np.zeros((len(states), tree.size))) if tree.balls else states
