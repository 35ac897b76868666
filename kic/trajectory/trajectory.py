"""Trajectories: piecewise polynomials of time for named coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from kic.analysis.joint_forces.force_table import tabulate_forces
from kic.analysis.joint_forces.joint_forces import JointForces
from kic.analysis.joint_forces.shaking_force import ShakingForce
from kic.description.table_columns import effort_columns, motion_columns
from kic.description.units import motor_unit, power_unit, rate_unit, row_unit
from kic.dynamics.drive_train import MotorDemand
from kic.errors import InputError, at_times, invalid, short_repr
from kic.mechanism.configuration import Animated, Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import choice, instance, integer, names_of
from kic.numerics.arrays import as_array, as_numbers, numbers, real_array, reals
from kic.numerics.display import Printable, Summary
from kic.numerics.limits import bounds
from kic.numerics.polynomials import Piecewise
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable
from kic.plotting.figures import Picture
from kic.plotting.plots import (
    MOTOR_GROUPS,
    ORDERS,
    Panel,
    by_unit,
    draw_plots,
    effort_panels,
    motion_panels,
    motor_panels,
)


@dataclass(frozen=True)
class Naming:
    """Names of M coordinates; empty for the coordinates of the mechanism, in its order."""

    names: tuple[str, ...]  # joints, points or rows; empty for the coordinates of the mechanism
    widths: tuple[int, ...]  # number of values of each name; 0 for a scalar
    size: int  # number M of coordinates

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of each coordinate, for messages and tables."""
        if not self.names:
            return tuple(f"coordinate {k + 1}" for k in range(self.size))
        return tuple(
            f"{name}[{k}]" if width else name
            for name, width in zip(self.names, self.widths, strict=True)
            for k in range(max(width, 1))
        )

    def inputs(self, q: np.ndarray) -> np.ndarray | dict[str, np.ndarray]:
        """Return positions (..., M) as inputs of `Mechanism.at`: a dict by name, or the array if unnamed."""
        if not self.names:
            return q
        return {name: q[..., at] if width else q[..., at.start] for name, width, at in self._places()}

    def _places(self) -> list[tuple[str, int, slice]]:
        ends = np.cumsum([max(width, 1) for width in self.widths]).tolist()
        starts = [0, *ends][:-1]
        return [
            (name, width, slice(a, b))
            for name, width, a, b in zip(self.names, self.widths, starts, ends, strict=True)
        ]

    def array(self, key: str, value: Any, front: tuple[int, ...] = ()) -> np.ndarray:
        """Return finite numbers (*front, M) from a dict of all names or an array; None gives zeros."""
        if value is None:
            return np.zeros((*front, self.size))
        if isinstance(value, Mapping):
            if not self.names:
                raise invalid(key, "must be an array, like the other arguments", value)
            if set(value) != set(self.names):
                rule = f"must name the same coordinates as the other arguments ({', '.join(self.names)})"
                raise invalid(key, rule, tuple(value), shown=", ".join(map(str, value)))
            parts = []
            for name, width, _ in self._places():
                shape = (*front, width) if width else front
                parts.append(_finite(f"{key}[{name!r}]", value[name], shape).reshape(*front, -1))
            return np.concatenate(parts, axis=-1)
        if self.names:
            raise invalid(key, f"must be a dict with the keys {', '.join(map(repr, self.names))}", value)
        return _finite(key, value, (*front, self.size))

    def bounds(self, key: str, value: Any, rest: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper limits (M,); see `kic.numerics.limits.bounds`."""
        places = {name: at for name, _, at in self._places()}
        return bounds(key, value, self.labels, places, rest=rest)


def naming(key: str, value: Any, rank: int = 0) -> Naming:
    """Return the naming of coordinates in a dict or an array; their values have `rank` leading axes."""
    if isinstance(value, Mapping):
        if not value or not all(isinstance(name, str) for name in value):
            raise invalid(key, "must give coordinates by name", value)
        widths = []
        for name, given in value.items():
            a = as_numbers(given)
            if a is None or a.ndim not in (rank, rank + 1) or 0 in a.shape:
                shapes = ("a number", "a list of numbers") if rank == 0 else ("(K,)", "(K, w) numbers")
                raise invalid(f"{key}[{name!r}]", f"must be {shapes[0]} or {shapes[1]}", given)
            widths.append(0 if a.ndim == rank else a.shape[-1])
        return Naming(tuple(value), tuple(widths), sum(max(w, 1) for w in widths))
    a = as_numbers(value)
    if a is None or a.ndim != rank + 1 or 0 in a.shape:
        shape = "(M,)" if rank == 0 else "(K, M)"
        raise invalid(key, f"must be numbers {shape}, or a dict of them by name", value)
    return Naming((), (), a.shape[-1])


def _finite(key: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    a = reals(value)
    if a is None or a.shape != shape or a.dtype != np.float64:
        raise invalid(key, f"must be finite numbers of shape {shape}", value if a is None else a.shape)
    return a


class Motion(NamedTuple):
    """Positions (..., M) and their time derivatives, to unpack: ``q, qd, qdd, qddd = trajectory(t)``."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class SampledMotion(Tabular, Animated):
    """Mechanism sampled along a trajectory; made by `Trajectory.on`.

    Attributes
    ----------
    t : (T,)
        Times.
    configuration : Configuration
        The configurations (T,).
    motion : Motion
        q, q̇, q̈, q⃛ (T, M) of the coordinates.
    wrt : tuple of str or None
        The coordinates, for `wrt` in other methods; None for the mechanism's own.
    applied : dict of str to (T, 3) or (3,) array_like, or None
        Components of named forces and moments along the motion, each in its axes.
    actuators : tuple of str or None
        Rows at which efforts act; None for the coordinates.
    criterion, effort_limits
        Choice of efforts for more actuators than degrees of freedom, as in `Configuration.distribute`.

    Notes
    -----
    `plot` and the tables also accept "efforts", "powers", "joint forces" and "shaking force", and for
    mechanisms with motors "torques", "currents" and "voltages".
    """

    t: np.ndarray
    configuration: Configuration
    motion: Motion
    wrt: tuple[str, ...] | None
    actuators: tuple[str, ...] | None = field(default=None, kw_only=True)
    applied: dict[str, Any] | None = field(default=None, kw_only=True)
    criterion: Any = field(default="minimum norm", kw_only=True)
    effort_limits: Any = field(default=None, kw_only=True)

    def of(self, of: str | Iterable[str]) -> Motion:
        """Return values, velocities, accelerations and jerks (T, P) of points, joints or rows.

        Values of angular velocities are NaN.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> reach = kic.trajectory.line({"tip.x": 1.0, "tip.y": 1.0}, {"tip.x": 1.5, "tip.y": 1.0}, 1.0)
        >>> motion = reach.on(arm, 3, near=arm.at([0.3, 1.0]))
        >>> motion.of("tip").qd[0].round(12).tolist()
        [0.5, 0.0, 0.0]
        """
        with at_times(self.t):
            return Motion(*self.configuration.motion(of, *self.motion[1:], wrt=self.wrt))

    def effort(
        self,
        *,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = None,
        effort_limits: Any = None,
    ) -> np.ndarray:
        """Return the efforts (T, A) that produce the motion (eq 2-198).

        Parameters
        ----------
        actuators : str or list of str, optional
            Rows at which the efforts act; by default the actuators of this motion.
        criterion, effort_limits
            Choice of efforts for more actuators than degrees of freedom, as in `Configuration.distribute`; by
            default those of this motion.

        Raises
        ------
        InputError, LimitError, SingularError
            As `Configuration.dynamics` and `Configuration.distribute`.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> hold = kic.trajectory.line([0.0, 0.0], [0.0, 0.0], 1.0).on(arm, 2)
        >>> hold.effort()[0].tolist()
        [19.62, 4.905]
        """
        c, names = self.configuration, self._acting(actuators)
        model = model_of(c)
        for key, given in (("criterion", criterion), ("effort_limits", effort_limits)):
            if given is not None and (names is None or len(names) <= model.dof):
                raise InputError(
                    f"`{key}` must be left out unless there are more actuators than the {model.dof} "
                    f"degrees of freedom of '{c.name}': otherwise the motion determines the efforts.",
                    key=key,
                    got=given,
                )
        with at_times(self.t):
            if names is None or len(names) > model.dof:
                T = c.inverse_dynamics(self.motion.qd, self.motion.qdd, wrt=self.wrt, applied=self.applied)
                if names is None:
                    return T
                by = self.criterion if criterion is None else criterion
                limits = self.effort_limits if effort_limits is None else effort_limits
                return c.distribute(
                    T, actuators=names, criterion=by, effort_limits=limits, wrt=self.wrt
                ).effort
            moved = self.of(names)
            return c.inverse_dynamics(moved.qd, moved.qdd, wrt=names, applied=self.applied)

    def power(
        self,
        *,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = None,
        effort_limits: Any = None,
    ) -> np.ndarray:
        """Return the powers (T, A) of the efforts, with the parameters of `effort`.

        Examples
        --------
        >>> crank = kic.load("four-bar").path({"A": np.linspace(1.2, 2.2, 5)})
        >>> kic.trajectory.at_speed(crank, 10.0, actuators=["A", "D"]).power().shape
        (5, 2)
        """
        names = self._acting(actuators)
        rates = self.motion.qd if names is None else self.of(names).qd
        return rates * self.effort(actuators=actuators, criterion=criterion, effort_limits=effort_limits)

    def _acting(self, actuators: str | Iterable[str] | None) -> tuple[str, ...] | None:
        """Return the labels of given actuators, else those of this motion; None for the coordinates."""
        given = self.actuators if actuators is None else actuators
        return None if given is None else model_of(self.configuration).actuators(given)

    def motor_demand(self) -> MotorDemand:
        """Return speeds, torques, currents and voltages (T, K) of the motors (eqs 2-238 to 2-240).

        Raises
        ------
        InputError, SingularError, InertiaError
            As `Configuration.motor_demand`.

        Examples
        --------
        >>> arm = kic.load("puma560-motors")
        >>> swing = kic.trajectory.septic([0.0] * 6, [0.5] * 6, duration=1.0)
        >>> swing.on(arm, 5).motor_demand().voltage.shape
        (5, 6)
        """
        _, qd, qdd, qddd = self.motion
        with at_times(self.t):
            return self.configuration.motor_demand(qd, qdd, qddd, wrt=self.wrt, applied=self.applied)

    def joint_forces(self, *, actuators: str | Iterable[str] | None = None) -> JointForces:
        """Return forces and moments in all joints along the motion, a batch (T,).

        Parameters
        ----------
        actuators : str or list of str, optional
            Rows where efforts act, as in `Configuration.joint_forces`.

        Returns
        -------
        JointForces

        Raises
        ------
        InertiaError, SingularError, InputError
            As `Configuration.joint_forces`.

        Examples
        --------
        >>> crank = kic.load("four-bar").path({"A": np.linspace(1.2, 2.2, 5)})
        >>> kic.trajectory.at_speed(crank, 10.0).joint_forces()["B"].force.shape
        (5, 3)
        """
        _, qd, qdd, _ = self.motion
        names = self._acting(actuators)
        with at_times(self.t):
            return self.configuration.joint_forces(
                qd, qdd, wrt=self.wrt, applied=self.applied, actuators=names
            )

    def shaking_force(self, *, about: Any = (0.0, 0.0, 0.0), gravity: bool = False) -> ShakingForce:
        """Return the shaking force and moment along the motion, a batch (T,).

        Parameters
        ----------
        about, gravity
            As in `Configuration.shaking_force`.

        Returns
        -------
        ShakingForce

        Raises
        ------
        InertiaError, SingularError, InputError
            As `Configuration.shaking_force`.

        Examples
        --------
        >>> crank = kic.load("four-bar").path({"A": np.linspace(1.2, 2.2, 5)})
        >>> kic.trajectory.at_speed(crank, 10.0).shaking_force().force.shape
        (5, 3)
        """
        _, qd, qdd, _ = self.motion
        with at_times(self.t):
            return self.configuration.shaking_force(qd, qdd, about=about, wrt=self.wrt, gravity=gravity)

    def force_table(
        self,
        *,
        of: str | Iterable[str] | None = None,
        actuators: str | Iterable[str] | None = None,
        transmission: str | Iterable[str] | None = None,
    ) -> DataTable:
        """Return the table of the drive and its load over time; see `Configuration.force_table`.

        Parameters
        ----------
        of, actuators, transmission
            As in `Configuration.force_table`.

        Returns
        -------
        DataTable

        Raises
        ------
        InertiaError, InputError, SingularError
            As `Configuration.force_table`.

        Examples
        --------
        >>> crank = kic.load("four-bar").path({"A": np.linspace(1.2, 2.2, 5)})
        >>> table = kic.trajectory.at_speed(crank, 10.0).force_table(transmission="C")
        >>> table["C.transmission_angle"].round(4)
        array([1.5659, 1.6805, 1.8002, 1.9194, 2.0318])
        """
        c, (_, qd, qdd, _) = self.configuration, self.motion
        axis = TableAxis("t", self.t, model_of(c).description.units.time)
        with at_times(self.t):
            return tabulate_forces(c, qd, qdd, of, self.wrt, self.applied, actuators, transmission, axis)

    def plot(
        self,
        of: str | Iterable[str] | None = None,
        *,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = None,
        effort_limits: Any = None,
        width: float = 3.5,
    ) -> Picture:
        """Plot curves over time in stacked panels.

        Parameters
        ----------
        of : str or list of str, optional
            Names as in `of`, each with values, velocities, accelerations and jerks; by default the
            coordinates. "efforts" and "powers" are those of the actuators, "joint forces" the magnitudes of
            the forces in all joints, "shaking force" force and moment on ground. "torques", "currents" and
            "voltages" are those of the motors.
        actuators, criterion, effort_limits
            As in `effort`; by default those of this motion.
        width : float
            Width in inches.

        Returns
        -------
        Picture
            Its ``axes`` are a tuple, one for each panel.
        """
        drawing = model_of(self.configuration).description
        panels: list[Panel] = []
        rows, labels, groups = self._rows_and_groups(of)
        shared: Any = {"actuators": actuators, "criterion": criterion, "effort_limits": effort_limits}
        for key, value in shared.items():
            served = {"efforts", "powers", *(("joint forces",) if key == "actuators" else ())}
            if value is not None and not served & set(groups):
                message = f'`{key}` requires efforts. Name "efforts" or "powers" in `of`.'
                raise InputError(message, key=key, got=of)
        names = self._acting_labels(actuators)
        for order, values in enumerate(self.of(rows) if rows else ()):
            panels += motion_panels(drawing, labels, values, order)
        for name in groups:
            if name == "efforts":
                panels += effort_panels(drawing, names, self.effort(**shared))
            elif name == "powers":
                panels += by_unit("power", [power_unit(drawing)] * len(names), names, self.power(**shared))
            elif name in MOTOR_GROUPS:
                panels += motor_panels(drawing, self.motor_demand(), MOTOR_GROUPS[name])
            elif name == SHAKING:
                panels += [Panel(*curves) for curves in self.shaking_force().curves()]
            else:
                f = self.joint_forces(actuators=actuators)
                size = np.linalg.norm(f.force, axis=-1)
                lines = {joint: size[:, j] for j, joint in enumerate(f.joints)}
                panels.append(Panel("joint force", drawing.units.force, lines))
        return draw_plots(self.t, panels, drawing.units.time, width=width)

    def _acting_labels(self, actuators: Any = None) -> tuple[str, ...]:
        """Return the labels of the rows at which efforts act."""
        names = self._acting(actuators)
        return model_of(self.configuration).transfer_for(self.wrt).labels if names is None else names

    def _rows_and_groups(self, names: Any) -> tuple[list[str], tuple[str, ...], list[str]]:
        """Return the names of rows, their labels, and the names of groups; by default the coordinates."""
        c, parts = self.configuration, model_of(self.configuration).parts
        given = self.wrt or c.coordinates if names is None else names_of(names, "of", 1)
        rows = [name for name in given if name not in FORCE_GROUPS or name in parts]
        labels = c.coefficients(rows, order=1, wrt=self.wrt).rows if rows else ()
        return rows, labels, [name for name in given if name not in rows]

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        m = model_of(self.configuration).description
        rows, labels, groups = self._rows_and_groups(names)
        made: list[Variable] = motion_columns(m, labels, self.of(rows)) if rows else []
        for name in groups:
            if name == "efforts":
                made += effort_columns(m, self._acting_labels(), self.effort())
            elif name == "powers":
                powers = zip(self._acting_labels(), self.power().T, strict=True)
                made += [Variable(f"{label}.power", power, power_unit(m)) for label, power in powers]
            elif name in MOTOR_GROUPS:
                key, demand = MOTOR_GROUPS[name], self.motor_demand()
                values = zip(demand.motors, getattr(demand, key).T, strict=True)
                made += [Variable(f"{motor}.{key}", x, motor_unit(m, key)) for motor, x in values]
            elif name == SHAKING:
                made += self.shaking_force()._table().variables
            else:
                made += self.joint_forces()._table().variables  # with the efforts of actuators
        columns = {variable.name: variable for variable in made}
        return DataTable(m.name, (TableAxis("t", self.t, m.units.time),), tuple(columns.values()))

    def __repr__(self) -> str:
        names = ", ".join(self.wrt or self.configuration.coordinates)
        return f"motion of '{self.configuration.name}' in {names}, {len(self.t)} times"


# groups of curves and columns by name; a part of the same name takes precedence
SHAKING = "shaking force"
FORCE_GROUPS = ("efforts", "powers", "joint forces", SHAKING, *MOTOR_GROUPS)


def at_speed(
    path: Configuration,
    qd: Any,
    *,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    actuators: str | Iterable[str] | None = None,
    criterion: Any = "minimum norm",
    effort_limits: Any = None,
) -> SampledMotion:
    """Return the motion along a path of configurations at constant rates of the coordinates.

    Parameters
    ----------
    path : Configuration
        Configurations (T,), as from `Mechanism.path`.
    qd : (M,) array_like
        Constant rates; a scalar for one degree of freedom.
    wrt : str or list of str, optional
        The coordinates, as in `Configuration.coefficients`; by default the mechanism's own.
    applied, actuators, criterion, effort_limits
        Loads along the path, and rows at which efforts act, as in `Trajectory.on`.

    Returns
    -------
    SampledMotion
        Its times begin at 0; accelerations and jerks of the coordinates are zero.

    Raises
    ------
    InputError
        If the path lacks values of these coordinates, has another batch shape, or does not advance.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> turn = kic.trajectory.at_speed(m.path({"A": np.linspace(1.2, 7.4, 32)}), 10.0)
    >>> turn.t[-1].round(6), turn.effort().shape
    (np.float64(0.62), (32, 1))
    """
    instance("path", path, Configuration)
    if len(path.batch) != 1 or path.batch[0] < 2 or not path.ok.all():
        raise invalid(
            "path",
            "must be a batch (T,) of at least two solved configurations",
            path.batch,
            "Make it with Mechanism.path.",
        )
    chosen = None if wrt is None else names_of(wrt, "wrt", 1)
    rows = path.coefficients(chosen or path.coordinates, order=1, wrt=chosen)
    rates = real_array("qd", qd, len(rows.rows))
    if rates.ndim != 1 or rows.quasi or rows.values is None:
        raise invalid(
            "qd",
            f"must have one rate for each of {', '.join(rows.rows)}, which must have values",
            qd,
        )
    moved = rows.values - rows.values[:1]
    size = float(rates @ rates)
    t = moved @ rates / size if size else np.zeros(len(moved))
    gap = float(np.abs(moved - t[:, None] * rates).max())
    if not (np.diff(t) > 0).all() or gap > PATH_RTOL * float(np.abs(moved).max()):
        raise invalid(
            "qd",
            f"must point along the path, whose coordinates change by {short_repr(moved[-1].tolist())}",
            qd,
            "Give rates in this proportion, or a trajectory.",
        )
    speed = np.broadcast_to(rates, rows.values.shape)
    rest = np.zeros(rows.values.shape)
    acting = None if actuators is None else model_of(path).actuators(actuators)
    motion = Motion(rows.values, speed, rest, rest)
    sharing = {"criterion": criterion, "effort_limits": effort_limits}
    return SampledMotion(t, path, motion, chosen, actuators=acting, applied=applied, **sharing)


# largest deviation of a path from a straight line in its coordinates, as a share of its length
PATH_RTOL = 1e-9
# distance outside the ends, as a share of the duration, that is rounding; also of rates at rest
TIME_RTOL = 1e-9
# range of durations whose third powers neither underflow nor overflow
TRAJECTORY_DURATION_MIN, DURATION_MAX = 1e-60, 1e60


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Printable):
    """Named coordinates as piecewise polynomials of time. Immutable; made by the functions of this package.

    Call it with times. Coordinates may be any inputs of `Mechanism.at`: joints, points, single rows.

    Attributes
    ----------
    pieces : Piecewise
        The polynomials of M coordinates: ``pieces.knots`` (K + 1,), ``pieces.coefficients`` (K, N + 1, M).
    naming : Naming
        Names of the coordinates.

    Examples
    --------
    >>> swing = kic.trajectory.quintic({"A": 0.0}, {"A": 1.0}, duration=2.0)
    >>> q, qd, qdd, qddd = swing([0.0, 1.0, 2.0])
    >>> q[:, 0].tolist(), qd[:, 0].tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.9375, 0.0])
    """

    _one_line = ("names", "size", "duration")

    pieces: Piecewise
    naming: Naming

    def __post_init__(self) -> None:
        h = self.pieces.lengths
        fit = (h >= TRAJECTORY_DURATION_MIN) & (h <= DURATION_MAX)
        if not fit.all():
            raise InputError(
                f"Every piece must last from {TRAJECTORY_DURATION_MIN:g} to {DURATION_MAX:g}, got "
                f"{h[~fit][0]:g}. Give times in another unit.",
                key="duration",
                got=float(h[~fit][0]),
            )
        if not np.isfinite(self.pieces.coefficients).all():
            raise InputError("Positions must be finite, got polynomials that overflow.", key="positions")

    @property
    def names(self) -> tuple[str, ...]:
        """Tuple of the names of the coordinates; empty for those of the mechanism, in its order."""
        return self.naming.names

    @property
    def size(self) -> int:
        """Number M of coordinates."""
        return self.naming.size

    @property
    def duration(self) -> float:
        """Duration."""
        return float(self.pieces.knots[-1])

    @property
    def knots(self) -> np.ndarray:
        """Array (K + 1,) of the times where the polynomials meet, from 0 to the duration."""
        return self.pieces.knots.copy()

    def __call__(self, t: Any, *, beyond: Literal["raise", "hold"] = "raise") -> Motion:
        """Return positions, rates, accelerations and jerks at times.

        Parameters
        ----------
        t : (...) array_like
            Times from 0 to the duration; complex steps are allowed. Where a derivative jumps, the value after
            the jump is returned.
        beyond : {"raise", "hold"}
            Treatment of other times: an error, or rest at the nearer end.

        Returns
        -------
        Motion
            q, q̇, q̈, q⃛, each (..., M).
        """
        times = self._times(t)
        choice("beyond", beyond, ("raise", "hold"))
        slack = TIME_RTOL * self.duration
        outside = ~((times.real >= -slack) & (times.real <= self.duration + slack))
        if beyond == "raise" and outside.any():
            first = times[outside].flat[0]
            raise InputError(
                f"`t` must be from 0 to {self.duration:g}, the duration of this trajectory, got "
                f"{first:g}. Use beyond='hold' to rest at the ends.",
                key="t",
                got=first,
                duration=self.duration,
            )
        if outside.any():
            times = np.where(outside, np.clip(times.real, 0.0, self.duration), times)
        jet = self.pieces(times)
        if outside.any():
            jet[outside, 1:] = 0.0
        return Motion(*np.moveaxis(jet, -2, 0))

    def _times(self, t: Any) -> np.ndarray:
        times = numbers("t", t)
        if times.dtype == object or not np.isfinite(times).all():
            raise invalid("t", "must be finite numbers", t)
        return times

    def _sample_times(self, t: Any) -> np.ndarray:
        """Return the given times (T,), or the given number of times along the trajectory."""
        if isinstance(t, int | np.integer):
            t = np.linspace(0.0, self.duration, integer("t", t, 2))
        times = self._times(t)
        if times.ndim != 1 or times.dtype == complex:
            shown = f"{times.dtype} {times.shape}"
            raise invalid("t", "must be real times (T,)", times.dtype, shown=shown)
        return times

    def inputs(self, q: Any) -> np.ndarray | dict[str, np.ndarray]:
        """Return positions (..., M) as inputs of `Mechanism.at`: a dict by name, or the array if unnamed."""
        return self.naming.inputs(as_array("q", q, self.size, finite=False))

    @property
    def rests(self) -> bool:
        """True if the trajectory is at rest at both ends, so that it can be continued by rest."""
        rates = self.pieces.end_derivatives(1)
        size = np.abs(self.extremes(1)).max(axis=0)
        return bool((np.abs([rates[0][0], rates[1][-1]]) <= TIME_RTOL * size).all())

    def sampled(self, names: Iterable[str] | None = None) -> dict[str, Callable[[Any], Motion]]:
        """Return the coordinates by name as functions of time, for `Mechanism.track`.

        Parameters
        ----------
        names : iterable of str, optional
            Names of the coordinates, if the trajectory has no names.

        Returns
        -------
        dict of str to callable
            Each function returns position, rate, acceleration and jerk of one name. Beyond the ends it
            returns rest if the trajectory is at rest at both ends; otherwise such times raise an error.

        Examples
        --------
        >>> swing = kic.trajectory.quintic({"A": 0.0}, {"A": 1.0}, duration=2.0)
        >>> float(swing.sampled()["A"](1.0).qd)
        0.9375
        """
        of = self.naming
        beyond: Literal["raise", "hold"] = "hold" if self.rests else "raise"
        if not of.names:
            names_given = () if names is None else names_of(names, "names")
            if len(names_given) != of.size:
                raise InputError(
                    f"The trajectory has {of.size} coordinates without names, but `names` "
                    f"has {len(names_given)}: {', '.join(names_given) or 'none'}. "
                    "Give them by name, as {'A': …}.",
                    key="names",
                    got=names_given,
                )
            of = Naming(names_given, (0,) * of.size, of.size)

        def function(name: str) -> Callable[[Any], Motion]:
            return lambda t: Motion(*(of.inputs(x)[name] for x in self(t, beyond=beyond)))

        return {name: function(name) for name in of.names}

    def on(
        self,
        mechanism: Mechanism,
        t: Any = 101,
        *,
        near: Configuration | None = None,
        applied: dict[str, Any] | None = None,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = "minimum norm",
        effort_limits: Any = None,
    ) -> SampledMotion:
        """Return the motion of a mechanism along the trajectory.

        Parameters
        ----------
        mechanism : Mechanism
            A mechanism with as many degrees of freedom as there are coordinates, open or closed.
        t : int or (T,) array_like
            Increasing times, or the number of evenly spaced times.
        near : Configuration, optional
            Start of the continuation to the first configuration, as in `Mechanism.path`; by default the
            reference configuration.
        applied : dict of str to (T, 3) or (3,) array_like, optional
            Components of named forces and moments along the motion, each in its axes.
        actuators : str or list of str, optional
            Rows at which efforts act, such as ``mechanism.actuators``; by default the coordinates of the
            trajectory.
        criterion, effort_limits
            Choice of efforts for more actuators than degrees of freedom, as in `Configuration.distribute`.

        Raises
        ------
        InputError
            If times are invalid, names cannot be coordinates of the mechanism, or a coordinate belongs to a
            ball joint, because its rates are not derivatives.
        ConfigurationError
            If the mechanism cannot continue; the error has the configurations reached and the `time`.
        SingularError
            If the coordinates of the trajectory cannot drive the mechanism; the error has the `time`.

        Examples
        --------
        >>> lift = kic.trajectory.quintic({"A": 1.2}, {"A": 1.6}, duration=0.5)
        >>> motion = lift.on(kic.load("four-bar"), 5)
        >>> motion.configuration.batch, motion.of("tip").qdd.shape
        ((5,), (5, 3))
        """
        instance("mechanism", mechanism, Mechanism)
        times = self._sample_times(t)
        motion = self(times)
        with at_times(times):
            where = mechanism.path(self.inputs(motion.q), near=near)
            acting = None if actuators is None else model_of(mechanism).actuators(actuators)
            names = self.names or None
            sharing = {"criterion": criterion, "effort_limits": effort_limits}
            sampled = SampledMotion(times, where, motion, names, actuators=acting, applied=applied, **sharing)
            wrong = where.coefficients(self.names or where.coordinates, order=1, wrt=sampled.wrt).quasi
        if wrong:
            raise InputError(
                f"Rates of {', '.join(sorted(wrong))} are angular velocities, not derivatives, "
                "so they cannot be coordinates of a trajectory. Name other rows, such as those of a point.",
                names=tuple(sorted(wrong)),
            )
        return sampled

    def extremes(self, order: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return the exact minima and maxima (M,) of the derivative of an order, 0 to 3; 0 is the position.

        Examples
        --------
        >>> kic.trajectory.quintic([0.0], [1.0], duration=1.0).extremes(1)[1].tolist()
        [1.875]
        """
        return self.pieces.extremes(_order(order))

    def jumps(self, order: int) -> np.ndarray:
        """Return the jumps (K − 1, M) of the position, rate, acceleration or jerk at the inner knots."""
        start, end = self.pieces.end_derivatives(_order(order))
        return start[1:] - end[:-1]

    def scaled(self, factor: float) -> Trajectory:
        """Return the same path in `factor` times the duration.

        Examples
        --------
        >>> t = kic.trajectory.trapezoid([0.0], [1.0], rate_limits=1.0, acceleration_limits=2.0)
        >>> t.scaled(2.0).duration
        3.0
        """
        factor = positive_duration("factor", factor)
        return replace(self, pieces=self.pieces.scaled(factor))

    def lasting(self, duration: float) -> Trajectory:
        """Return the same path with the given duration."""
        duration = positive_duration("duration", duration)
        if not self.duration:
            raise InputError("A trajectory of zero duration cannot be stretched.", key="duration", got=0.0)
        return self.scaled(duration / self.duration)

    def reversed(self) -> Trajectory:
        """Return the trajectory reversed in time.

        Examples
        --------
        >>> kic.trajectory.line([0.0], [1.0], duration=1.0).reversed()(0.25).q.tolist()
        [0.75]
        """
        return replace(self, pieces=self.pieces.reversed())

    def plot(self, mechanism: Mechanism | None = None, *, t: Any = 401, width: float = 3.5) -> Picture:
        """Plot value, rate, acceleration and jerk over time in stacked panels, one for each unit.

        Parameters
        ----------
        mechanism : Mechanism, optional
            Mechanism that defines the units of the names. Without it, units are omitted.
        t : int or (T,) array_like
            Times, or the number of evenly spaced times.
        width : float
            Width in inches.

        Returns
        -------
        Picture
            Its ``axes`` are a tuple, one for each panel.
        """
        times = self._sample_times(t)
        units = self._units(mechanism)
        time = "" if mechanism is None else mechanism.units.time
        panels = [
            panel
            for order, values in enumerate(self(times))
            for panel in by_unit(
                ORDERS[order],
                ["" if mechanism is None else rate_unit(u, time, order) for u in units],
                self.naming.labels,
                values,
            )
        ]
        return draw_plots(times, panels, time, width=width)

    def _units(self, mechanism: Mechanism | None) -> list[str]:
        """Return the unit of each coordinate."""
        if mechanism is None:
            return [""] * self.size
        instance("mechanism", mechanism, Mechanism)
        names = self.names or mechanism.coordinates
        rows = [row for name in names for row in model_of(mechanism).rows(name, 1).layout.rows.labels]
        if len(rows) != self.size:
            raise InputError(
                f"This trajectory has {self.size} coordinates, and '{mechanism.name}' has {len(rows)} rows "
                f"of {', '.join(names)}. Plot it without a mechanism.",
                key="mechanism",
                count=self.size,
            )
        return [row_unit(mechanism, row) for row in rows]

    def summary(self) -> Summary:
        """Return a summary of the ends and extremes."""
        sheet = Summary(
            f"trajectory of {', '.join(self.naming.labels)}: duration {self.duration:.5g}, "
            f"{len(self.pieces.coefficients)} polynomials of degree {self.pieces.coefficients.shape[1] - 1}"
        )
        (first, last), reach = self([0.0, self.duration]).q, [self.extremes(k) for k in range(4)]
        columns = ["start", "end", "least", "largest", "largest |q̇|", "|q̈|", "|q⃛|"]
        sizes = [np.abs(pair).max(axis=0) for pair in reach[1:]]
        cells = np.stack([first, last, *reach[0], *sizes], axis=1)
        sheet.matrix("ends and extremes", self.naming.labels, columns, cells)
        return sheet


def _order(order: Any) -> int:
    """Return a checked order of derivative."""
    return integer("order", order, 0, 3)


def positive_duration(name: str, value: Any) -> float:
    """Return a checked duration, or factor of durations: a positive number within bounds."""
    a = reals(value)
    if a is None or a.shape != () or not TRAJECTORY_DURATION_MIN <= a <= DURATION_MAX:
        beyond = a is not None and a.shape == () and a > 0
        span = f" from {TRAJECTORY_DURATION_MIN:g} to {DURATION_MAX:g}" if beyond else ""
        raise invalid(name, f"must be a positive number{span}", value)
    return float(a)
