"""Trajectory: how named coordinates move in time, and what a mechanism does on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from kic.arrays import numbers, reals
from kic.configuration import Configuration
from kic.errors import InputError, shown
from kic.linear.actuators import Drive
from kic.mechanism import Mechanism
from kic.tables import Sheet
from kic.trajectories.naming import Naming
from kic.trajectories.piecewise import Piecewise

# an instant this share of the duration outside is one of the ends, rounded
_ROUNDED = 1e-9


class Motion(NamedTuple):
    """Positions (..., M) and their derivatives in time, to unpack: ``q, qd, qdd, qddd = trajectory(t)``."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """Named coordinates as piecewise polynomials of time. Immutable; made by the functions of this module.

    Call it with times. Coordinates may be anything that `Mechanism.at` takes: joints, points, single rows.

    Attributes
    ----------
    pieces : Piecewise
        The polynomials of M coordinates: ``pieces.knots`` (K + 1,), ``pieces.coefficients`` (K, N + 1, M).
    naming : Naming
        Names of the coordinates.

    Examples
    --------
    >>> from kic import trajectories
    >>> swing = trajectories.quintic({"A": 0.0}, {"A": 1.0}, duration=2.0)
    >>> q, qd, qdd, qddd = swing([0.0, 1.0, 2.0])
    >>> q[:, 0].tolist(), qd[:, 0].tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.9375, 0.0])
    """

    pieces: Piecewise
    naming: Naming

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates; none means those of the mechanism, in its order."""
        return self.naming.names

    @property
    def size(self) -> int:
        """Number M of coordinates."""
        return self.naming.size

    @property
    def duration(self) -> float:
        """How long it takes."""
        return float(self.pieces.knots[-1])

    @property
    def knots(self) -> np.ndarray:
        """Instants (K + 1,) where its polynomials meet, from 0 to the duration."""
        return self.pieces.knots.copy()

    def __call__(self, t: Any, beyond: Literal["raise", "hold"] = "raise") -> Motion:
        """Positions, rates, accelerations and jerks at times.

        Parameters
        ----------
        t : (...) array_like
            Times from 0 to the duration; complex steps pass. Where a derivative jumps, the value is that
            after the jump.
        beyond : {"raise", "hold"}
            What becomes of other times: an error, or rest at the nearer end.

        Returns
        -------
        Motion
            q, q̇, q̈, q⃛, each (..., M).

        Raises
        ------
        InputError
            For times that are none, or beyond the ends.
        """
        times = self._times(t)
        if beyond not in ("raise", "hold"):
            raise InputError(f"Expected `beyond` to be 'raise' or 'hold', got {shown(beyond)}.")
        slack = _ROUNDED * self.duration
        outside = ~((times.real >= -slack) & (times.real <= self.duration + slack))
        if beyond == "raise" and outside.any():
            first = times[outside].flat[0]
            raise InputError(
                f"Expected times from 0 to {self.duration:g}, the duration of this trajectory, got "
                f"{first:g}. beyond='hold' rests at the ends.",
                t=first,
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
            raise InputError(f"Expected times to be finite numbers, got {shown(t)}.")
        return times

    def inputs(self, q: Any) -> Any:
        """Positions (..., M) as `Mechanism.at` takes them: by name, or bare where there are none."""
        return self.naming.inputs(np.asarray(q))

    def on(self, mechanism: Mechanism, t: Any = 101, near: Configuration | None = None) -> Course:
        """What a mechanism does on the way: its postures, and all that can be asked of them.

        Parameters
        ----------
        mechanism : Mechanism
            One with as many freedoms as there are coordinates here, open or closed.
        t : int or (T,) array_like
            Times, in the order in which the mechanism comes to them; or how many, evenly spaced.
        near : Configuration, optional
            From where the first posture is led, as in `Mechanism.path`; by default the drawing.

        Returns
        -------
        Course

        Raises
        ------
        InputError
            For times that are none, names that can not be coordinates of the mechanism, or those of a ball,
            whose rates are no derivatives.
        PostureError
            Where the mechanism can not go on; it carries how far it came.

        Examples
        --------
        >>> import kic
        >>> lift = kic.trajectories.quintic({"A": 1.2}, {"A": 1.6}, duration=0.5)
        >>> course = lift.on(kic.load("four-bar"), 5)
        >>> course.configuration.batch, course.of("tip").qdd.shape
        ((5,), (5, 3))
        """
        if isinstance(t, int | np.integer) and not isinstance(t, bool):
            if t < 2:
                raise InputError(f"Expected at least 2 times, got {t}.")
            t = np.linspace(0.0, self.duration, int(t))
        times = self._times(t)
        if times.ndim != 1 or times.dtype == complex:
            raise InputError(f"Expected times (T,) of a path, real, got {times.dtype} {times.shape}.")
        motion = self(times)
        where = mechanism.path(self.inputs(motion.q), near=near)
        course = Course(times, where, motion, self.names or None)
        wrong = where.coefficients(self.names or where.coordinates, order=1, wrt=course.wrt).quasi
        if wrong:
            raise InputError(
                f"Rates of {', '.join(sorted(wrong))} are angular velocities, no derivatives of coordinates: "
                "a trajectory can not run in them. Name other rows, such as those of a point."
            )
        return course

    def extremes(self, order: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest position, rate, acceleration or jerk on the way, exactly.

        Parameters
        ----------
        order : {0, 1, 2, 3}
            Which derivative.

        Returns
        -------
        lower, upper : (M,)

        Examples
        --------
        >>> from kic import trajectories
        >>> trajectories.quintic([0.0], [1.0], duration=1.0).extremes(1)[1].tolist()
        [1.875]
        """
        if order not in (0, 1, 2, 3):
            raise InputError(f"Expected `order` to be 0, 1, 2 or 3, got {shown(order)}.")
        return self.pieces.extremes(int(order))

    def jumps(self, order: int) -> np.ndarray:
        """How far a derivative jumps (K − 1, M) at the knots between its ends."""
        start, end = self.pieces.limits(order)
        return start[1:] - end[:-1]

    def scaled(self, factor: float) -> Trajectory:
        """The same way in so many times the time: rates shrink by the factor, accelerations by its square.

        Examples
        --------
        >>> from kic import trajectories
        >>> trajectories.trapezoid([0.0], [1.0], velocity=1.0, acceleration=2.0).scaled(2.0).duration
        3.0
        """
        factor = positive("factor", factor)
        return replace(self, pieces=self.pieces.scaled(factor))

    def lasting(self, duration: float) -> Trajectory:
        """The same way in another time."""
        duration = positive("duration", duration)
        if not self.duration:
            raise InputError("A trajectory of a single instant can not last longer: it goes nowhere.")
        return self.scaled(duration / self.duration)

    def reversed(self) -> Trajectory:
        """The same way back.

        Examples
        --------
        >>> from kic import trajectories
        >>> trajectories.line([0.0], [1.0], duration=1.0).reversed()(0.25).q.tolist()
        [0.75]
        """
        return replace(self, pieces=self.pieces.reversed())

    def sheet(self) -> Sheet:
        """Labelled account of its ends and extremes, to print or to show."""
        sheet = Sheet(
            f"trajectory of {', '.join(self.naming.labels)}: duration {self.duration:.5g}, "
            f"{len(self.pieces.coefficients)} polynomials of degree {self.pieces.coefficients.shape[1] - 1}"
        )
        (first, last), reach = self([0.0, self.duration]).q, [self.extremes(k) for k in range(4)]
        columns = ["start", "end", "least", "largest", "largest |q̇|", "|q̈|", "|q⃛|"]
        sizes = [np.abs(pair).max(axis=0) for pair in reach[1:]]
        cells = np.stack([first, last, *reach[0], *sizes], axis=1)
        sheet.matrix("ends and extremes", self.naming.labels, columns, cells)
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


@dataclass(frozen=True, eq=False, repr=False)
class Course:
    """A mechanism on its way along a trajectory; made by `Trajectory.on`.

    Attributes
    ----------
    t : (T,)
        Times.
    configuration : Configuration
        The postures (T,), with all that can be asked of them.
    motion : Motion
        q, q̇, q̈, q⃛ (T, M) of the coordinates.
    wrt : tuple of str or None
        The coordinates, for `wrt` in other questions; None for the mechanism's own.
    """

    t: np.ndarray
    configuration: Configuration
    motion: Motion
    wrt: tuple[str, ...] | None

    def of(self, names: str | Iterable[str]) -> Motion:
        """Values, velocities, accelerations and jerks (T, P) of anything that moves with it.

        Values of angular velocities are NaN.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> reach = kic.trajectories.line({"tip.x": 1.0, "tip.y": 1.0}, {"tip.x": 1.5, "tip.y": 1.0}, 1.0)
        >>> course = reach.on(arm, 3, near=arm.at([0.3, 1.0]))
        >>> course.of("tip").qd[0].round(12).tolist()
        [0.5, 0.0, 0.0]
        """
        _, qd, qdd, qddd = self.motion
        c = self.configuration.coefficients(names, order=3, wrt=self.wrt)
        assert c.values is not None  # for the type checker
        return Motion(c.values, c.velocity(qd), c.acceleration(qd, qdd), c.jerk(qd, qdd, qddd))

    def effort(self, actuators: str | Iterable[str] | None = None) -> np.ndarray:
        """Efforts that the motion takes (eq 2-198).

        Parameters
        ----------
        actuators : str or list of str, optional
            Coordinates at which they act, as many as freedoms; by default those of the trajectory.

        Returns
        -------
        (T, M)

        Raises
        ------
        InertiaError, SingularError
            As `Configuration.dynamics`.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> hold = kic.trajectories.line([0.0, 0.0], [0.0, 0.0], 1.0).on(arm, 2)
        >>> hold.effort()[0].tolist()
        [19.62, 4.905]
        """
        if actuators is None:
            return self.configuration.dynamics(wrt=self.wrt).effort(self.motion.qd, self.motion.qdd)
        moved = self.of(actuators)
        return self.configuration.dynamics(wrt=actuators).effort(moved.qd, moved.qdd)

    def drive(self) -> Drive:
        """What the motors do: speeds, torques, currents and voltages (T, K) of each (eqs 2-238 to 2-240).

        Raises
        ------
        InputError, SingularError, InertiaError
            As `Configuration.drive`.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("puma560-motors")
        >>> swing = kic.trajectories.septic([0.0] * 6, [0.5] * 6, duration=1.0)
        >>> swing.on(arm, 5).drive().voltage.shape
        (5, 6)
        """
        _, qd, qdd, qddd = self.motion
        return self.configuration.drive(qd, qdd, qddd, wrt=self.wrt)

    def __repr__(self) -> str:
        names = ", ".join(self.wrt or self.configuration.coordinates)
        return f"course of '{self.configuration.name}' in {names}, {len(self.t)} times"


def positive(name: str, value: Any, what: str = "a positive number") -> float:
    """A positive finite number, or an error."""
    a = reals(value)
    if a is None or a.shape != () or not a > 0:
        raise InputError(f"Expected `{name}` to be {what}, got {shown(value)}.", name=name)
    return float(a)
