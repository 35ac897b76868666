"""Controllers: functions of time and of measured coordinates, for open and closed mechanisms.

==========================  ==============================================================================
`ComputedTorque`            follow a trajectory of as many rows as degrees of freedom, exactly linearized
`ComputedVoltage`           the same by the voltages of motors
`OperationalSpaceControl`   follow poses or rows, with null-space motion: joint limits, preferred values
`Impedance`                 stiffness, damping and, with a force sensor, inertia at poses or rows
`Admittance`                the same for a stiff machine: measured forces displace its reference
`HybridForcePosition`       motion along some rows and contact forces along others
`GravityCompensation`       balance static loads, with springs and dampers towards a reference
`LQR`                       linear quadratic regulator about an equilibrium
`ResolvedRate`              move poses or rows along a reference by rates of the coordinates
`ResolvedAcceleration`      the same by accelerations
`ResolvedJerk`              the same by jerks
`Sampled`                   sample one of these, or a function, with delay, noise and limits
==========================  ==============================================================================

Controllers other than `Sampled` are called as ``control(t, measured)``. `measured` is a pair (q, qd) of the
coordinates and their rates, (M,) each, or an object with these attributes. A simulation passes such objects
to controllers given as ``effort=``, ``voltage=`` or in `Sampled`. Force sensors return forces of the
environment on the mechanism. If `measured` has no closed `state` (S,), the state is solved near that of the
last call, or at first near the reference configuration; see `start`. In place of angular velocities among the
coordinates, q has a rotation vector.

Results (M,) refer to the coordinates, those of the mechanism or of `wrt`. Outside its time span a trajectory
is at rest. Gains are numbers, (P,) or (P, P) arrays for the P rows of the reference, nonnegative or positive
semidefinite. Errors of angles known modulo full turns are at most half a turn; those of orientations are
rotation vectors. A controller reuses memory, so use it in one loop only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from cmath import isfinite
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from kic.analysis.linear.state_space import held_cost
from kic.errors import InputError, SingularError, counted, invalid, short_repr
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.jets import ERROR_FACTOR
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.evaluator import Motions, PositionSolver, Tables
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import (
    at_least,
    check_parameters,
    choice,
    instance,
    is_function,
    names_of,
    positive,
)
from kic.numerics.arrays import REAL, ordinary, reals
from kic.numerics.rotations import (
    matrix_from_quaternion,
    quaternion_from_vector,
    turning_rates,
    vector_from_matrix,
)
from kic.numerics.tolerances import CONDITION_MAX
from kic.simulation.reference import Desired, Reference
from kic.tasks.operational_space.pose import MovingRows, RowFeedback, RowMotion
from kic.tasks.operational_space.redundancy import RedundancyTask
from kic.tasks.operational_space.secondary_objectives import NullSpaceRates

__all__ = [
    "LQR",
    "Admittance",
    "ComputedTorque",
    "ComputedVoltage",
    "Control",
    "GravityCompensation",
    "HybridForcePosition",
    "Impedance",
    "OperationalSpaceControl",
    "ResolvedAcceleration",
    "ResolvedJerk",
    "ResolvedRate",
    "Sampled",
]

_Names = str | Iterable[str] | None
# a function of time and measurement that returns forces of the environment
ForceSensor = Callable[[float, Any], Any]
# largest effort at a coordinate without actuator that counts as zero, as a share of all efforts
IDLE_EFFORT_RTOL = 1e-9


def __dir__() -> list[str]:
    return __all__


class Control(ABC):
    """Controller: a function of time and of measured coordinates.

    Attributes
    ----------
    gives : str
        Kind of the result: "efforts", "voltages", "rates", "accelerations" or "jerks".
    coordinates : tuple of str
        Names of the M measured coordinates.
    actuators : tuple of str
        Names of the coordinates of efforts or other results; all, except for `LQR` with `actuators`.
    rows : tuple of str
        Names of the P rows that are controlled; empty without a reference.
    """

    gives = "efforts"
    rows: tuple[str, ...] = ()

    def __init__(self, mechanism: Mechanism, *, wrt: _Names = None) -> None:
        instance("mechanism", mechanism, Mechanism)
        self._mechanism, self._model = mechanism, model_of(mechanism)
        self._wrt = None if wrt is None else names_of(wrt, "wrt")
        transfer = self._model.transfer_for(self._wrt)
        self.coordinates: tuple[str, ...] = transfer.labels
        if not self.coordinates:
            message = f"'{mechanism.name}' has mobility 0, so there is nothing to control."
            raise InputError(message, key="mechanism", mobility=0)
        self.actuators = self.coordinates
        self._size = (transfer.size,)
        # coordinates of a tree without balls are its state
        own = self._wrt is None and self._model.is_open_chain and transfer.permutation is None
        self._is_state = own and self._model.tree.state_size == transfer.size
        self._position: PositionSolver | None = None
        self._near: np.ndarray = self._model.reference_state[0]

    @abstractmethod
    def __call__(self, t: float, measured: Any) -> np.ndarray:
        """Return the result (M,) at a time, for measured coordinates and rates."""

    def __getstate__(self) -> dict[str, Any]:
        # results of earlier calls have kernels, and views of one another
        return self.__dict__ | dict.fromkeys({"_now", "_resolved"} & self.__dict__.keys())

    def start(self, *, near: Configuration | None = None) -> None:
        """Clear all memory, and set the configuration near which the next closed state is sought."""
        c = self._mechanism.at() if near is None else instance("near", near, Configuration)
        if c.batch or model_of(c).description != self._mechanism:
            raise invalid("near", f"must be one configuration of '{self._mechanism.name}'", c)
        self._near = c.state

    def check(
        self, gives: str, coordinates: tuple[str, ...], actuators: tuple[str, ...] | None = None
    ) -> None:
        """Raise InputError unless the kind of result, the coordinates and the actuators agree."""
        coordinates = names_of(coordinates, "coordinates", 0)
        if self.gives != instance("gives", gives, str):
            message = f"The controller must give {gives}, got one that gives {self.gives}."
            raise InputError(message, key="effort", got=self.gives, expected=gives)
        if self.coordinates != coordinates:
            message = (
                f"The controller must be in the coordinates {', '.join(coordinates)}, got "
                f"{', '.join(self.coordinates)}. Give both the same `wrt`."
            )
            raise InputError(message, key="effort", got=self.coordinates)
        if actuators is not None and self.actuators != names_of(actuators, "actuators", 0):
            message = (
                f"The controller must give {gives} at {short_repr(actuators)}, got one that gives them at "
                f"{', '.join(self.actuators)}. Give LQR and simulate the same `actuators`; with other "
                "controllers leave it out."
            )
            raise InputError(message, key="actuators", got=self.actuators, expected=actuators)

    def _pair(self, t: Any, measured: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return measured coordinates and rates, and check the time."""
        if not isinstance(t, float) or t != t:
            a = reals(t)
            if a is None or a.ndim:
                raise invalid("t", "must be one time", t)
        try:
            q, qd = measured[:2] if isinstance(measured, tuple) else (measured.q, measured.qd)
        except (AttributeError, ValueError) as error:
            raise self._unknown_measurement(measured) from error
        if not (type(q) is type(qd) is np.ndarray and q.dtype is qd.dtype is REAL):
            q, qd = reals(q), reals(qd)
        if q is None or qd is None or q.shape != self._size or qd.shape != self._size:
            raise self._unknown_measurement(measured)
        if not isfinite(sum(q.tolist(), sum(qd.tolist()))):
            raise self._unknown_measurement(measured)
        return q.copy(), qd.copy()  # C arrays, for the kernels

    def _measurement(self, t: Any, measured: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return coordinates, rates and the closed state of a measurement."""
        q, qd = self._pair(t, measured)
        state = getattr(measured, "state", None)
        if state is None:
            if self._is_state:
                return q, qd, q
            if self._position is None:
                self._position = PositionSolver(self._model, self._wrt)
            state = self._near = self._position(self._near, q)
        return q, qd, state

    def _unknown_measurement(self, measured: Any) -> InputError:
        return InputError(
            f"`measured` must be (q, qd), or have attributes q and qd, {self._size[0]} real numbers each for "
            f"{', '.join(self.coordinates)}; got {short_repr(measured)}.",
            key="measured",
            got=measured,
        )

    def __repr__(self) -> str:
        return f"controller that gives {self.gives} of {', '.join(self.actuators)}"


def _gain(name: str, value: Any, size: int) -> np.ndarray:
    """Return a matrix (P, P) of gains, whose symmetric part is positive semidefinite."""
    a = reals(value)
    if a is None or a.shape not in ((), (size,), (size, size)):
        raise invalid(name, f"must be a number, ({size},) or ({size}, {size}) numbers", value)
    a = ordinary(name, a)
    a = a.copy() if a.ndim == 2 else a * np.eye(size)
    if np.linalg.eigvalsh((a + a.T) / 2).min(initial=0.0) < -1e-9 * np.abs(a).max(initial=0.0):
        raise invalid(
            name, "must be at least 0, or a matrix with positive semidefinite symmetric part", value
        )
    return a


def _gains(size: int, **values: Any) -> np.ndarray:
    """Return the gains (P, 2P) of errors and of their rates side by side."""
    return np.hstack([_gain(name, value, size) for name, value in values.items()])


def _inverse_gain(name: str, value: Any, size: int) -> np.ndarray:
    """Return the inverse (P, P) of a symmetric positive definite matrix of gains."""
    a = _gain(name, value, size)
    if (
        np.abs(a - a.T).max(initial=0.0) > 1e-9 * np.abs(a).max(initial=0.0)
        or not (np.linalg.eigvalsh(a) > 0).all()
    ):
        raise invalid(name, "must be positive, or symmetric and positive definite", value)
    return np.linalg.inv(a)


class _Sensor:
    """Force sensor that checks the measured forces (P,)."""

    def __init__(self, function: Any, size: int) -> None:
        if not is_function(function):
            raise invalid("sensor", "must be a function of (t, measured)", function)
        self._function, self._size = function, size

    def __call__(self, t: float, measured: Any) -> np.ndarray:
        f = reals(self._function(t, measured))
        if f is None or f.shape != (self._size,):
            raise invalid("sensor", f"must return {self._size} finite numbers at t = {t:g}", f)
        return f


class _RowControl(Control):
    """Controller that drives rows to a reference by accelerations and forces at the rows.

    Efforts are T = Gᵀ F + Nᵀ T₀ with F = Λ a + q̇ᵀ μ q̇ + p + J̄ᵀB q̇ + f for the accelerations a and the
    forces f of `_law`. T₀ is the inverse dynamics of null-space accelerations. For square tasks, F is the
    inverse dynamics in the rows. Otherwise T is the inverse dynamics of q̈ = J̄ (a − q̇ᵀ H q̇) + N z̈.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        reference: Any,
        wrt: _Names,
        secondary: Any = None,
        null_damping: float | None = None,
        forces: tuple[str, ...] = (),
    ) -> None:
        super().__init__(mechanism, wrt=wrt)
        model, size = self._model, len(self.coordinates)
        self._reference = Reference(model, reference)
        self._rows = MovingRows(model, (*self._reference.names, *forces), self._wrt)
        self.rows = self._rows.labels
        moved = self._reference.size
        if len(set(self.rows)) < len(self.rows) or len(self.rows) - moved != len(forces):
            raise InputError(
                "A row must be named once in `reference` and `force`, and entries of `force` must be single "
                f"rows, got {', '.join(self.rows)}.",
                key="force" if forces else "reference",
                got=self.rows,
            )
        if len(self.rows) > size:
            raise InputError(
                f"`reference` must have at most {counted(size, 'row')}, the degrees of freedom of "
                f"'{mechanism.name}', got {len(self.rows)}: {', '.join(self.rows)}.",
                key="reference",
                got=len(self.rows),
                dof=size,
            )
        square = len(self.rows) == size
        # rows that are the coordinates have their inverse dynamics, and without orientations need no kernel
        self._is_own = self.rows == self.coordinates
        self._is_measured = self._is_own and not self._rows.turned
        self._now, self._resolved, self._z = cast("RowMotion | None", None), cast("Any", None), np.empty(0)
        wrt = self._wrt if self._is_own else self.rows
        self._inverse = Motions(model, "inverse_dynamics", wrt) if square else None
        self._null, self._null_damping = None, 0.0
        if square and not (secondary is None and null_damping is None):
            key = "null_damping" if secondary is None else "secondary"
            message = f"`{key}` requires fewer rows than the {size} degrees of freedom. Leave it out."
            raise InputError(message, key=key, dof=size)
        if not square:
            self._resolve = RedundancyTask(
                model, self.rows, "minimum kinetic energy", "instantaneous", None, self._wrt, True
            )
            self._tables = self._resolve.tables()
            null = NullSpaceRates(model, secondary, self.rows, self._wrt)
            self._null, self._z = null if null else None, np.zeros(size)
            self._null_damping = 0.0 if null_damping is None else at_least("null_damping", null_damping, 0.0)
            if self._null and not self._null_damping:
                message = "`secondary` requires a positive `null_damping`, the rate at which rates follow it."
                raise InputError(message, key="null_damping", got=null_damping)

    def _feed_back(self, gains: np.ndarray) -> None:
        """Set the gains (P, 2P) of errors and of their rates."""
        self._feedback = RowFeedback(self._rows, gains, self._null_damping, self._is_measured)

    @abstractmethod
    def _law(
        self, t: float, measured: Any, want: Desired, feedback: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return accelerations (P,) of the rows, and additional forces (P,) at them or None.

        `feedback` (P,) is the product of the gains with the errors and their rates.
        """

    def _desired(self, t: float, measured: Any) -> Desired:
        """Return the desired motion of all rows."""
        return self._reference(t)

    def __call__(self, t: float, measured: Any) -> np.ndarray:
        """Return efforts (M,) at a time, for measured coordinates and rates."""
        q, qd, state = self._measurement(t, measured)
        want, table, G = self._desired(t, measured), q, cast("Any", None)
        if not self._is_measured:
            self._now = now = self._rows.at(state, self._now)
            table, G = now.table, now.G
        z = self._z if self._null is None else self._null(state, q)
        feedback, rate, null = self._feedback(table, want.q, want.R, want.qd, qd, z)
        a, force = self._law(t, measured, want, feedback)
        if self._inverse is not None:
            effort = self._inverse(state, rate, a)
            if not self._is_own:
                effort = effort.dot(G)
        elif self._resolved is None:
            self._resolved = self._resolve(self._tables(state), None, None, a, None, null, qd)
            effort = self._resolved.effort.copy()
        else:
            self._tables(state, out=self._resolved._results)
            effort = self._resolve.refill(a, qd, null, self._resolved).effort.copy()
        if force is None:
            return effort
        return effort + (force if G is None else force.dot(G))


class OperationalSpaceControl(_RowControl):
    """Efforts that make errors of a pose or of rows decay, with motion of the null space (Khatib 1987).

    T = Gᵀ F + Nᵀ T₀ with F = Λ (ÿ_d + kd ė + kp e) + q̇ᵀ μ q̇ + p. Errors decay as ë + kd ė + kp e = 0 for
    any motion in the null space. T₀ is the inverse dynamics of accelerations d (z − q̇). The rates z of the
    secondary objectives are projected orthogonally onto the null space. Null-space rates follow them, and the
    objectives decrease.

    Parameters
    ----------
    mechanism : Mechanism
        Open or closed.
    reference : Trajectory or dict
        At most as many rows as degrees of freedom: a trajectory; or a dict of rows, bodies and frames, each
        with a trajectory, a constant value, or a function of time that returns value, rate and acceleration.
        The value of a body or frame is a pose: a `RigidTransform` as `Configuration.pose` returns it (for a
        body, relative to the reference configuration), or a pair of position (3,) and rotation as
        ``prepare.pose(of)`` returns `p` and `R`. Position and rotation may be trajectories. A constant pose
        may be a (4, 4) array.
    kp, kd : float, (P,) or (P, P) array_like
        Gains of the errors of positions (1/s²) and of rates (1/s).
    secondary : objective or list of these, optional
        `PreferredConfiguration`, `JointLimits` to keep away from limits, `Manipulability`; or a
        function of the configuration that returns rates z (M,). By default the null space comes to rest.
    null_damping : float, optional
        The rate d (1/s), needed with `secondary`; by default 0, which leaves null-space motion undamped. A
        preferred configuration of gain g is reached with critical damping if d = 4 g.
    wrt : str or list of str, optional
        Coordinates of measurements and efforts; by default those of the mechanism.

    Raises
    ------
    UnknownNameError, InputError, InertiaError
        If names, gains or numbers of rows do not fit, or bodies have no inertia.
    SingularError
        From the call, if the task is singular.

    Examples
    --------
    >>> m = kic.load("panda")
    >>> c = m.at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> bent = kic.PreferredConfiguration({"joint3": 0.2}, gain=2.0)
    >>> control = kic.controllers.OperationalSpaceControl(
    ...     m, {"link7": c.pose("link7")}, kp=100.0, kd=20.0, secondary=bent, null_damping=8.0
    ... )
    >>> control(0.0, (c.value(c.coordinates), np.zeros(7))).shape
    (7,)
    """

    def __init__(
        self,
        mechanism: Mechanism,
        reference: Any,
        kp: Any,
        kd: Any,
        *,
        secondary: Any = None,
        null_damping: float | None = None,
        wrt: _Names = None,
    ) -> None:
        super().__init__(mechanism, reference, wrt, secondary, null_damping)
        self._feed_back(_gains(len(self.rows), kp=kp, kd=kd))

    def _law(self, t: Any, measured: Any, want: Desired, feedback: np.ndarray) -> Any:
        return want.qdd + feedback, None


class ComputedTorque(OperationalSpaceControl):
    """Efforts that make errors e of a reference decay as ë + kd ė + kp e = 0.

    T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (eq 2-198) with q̈ = G⁻¹ (ÿ_d + kd ė + kp e − q̇ᵀ H q̇).

    Parameters
    ----------
    mechanism : Mechanism
        Open or closed.
    reference : Trajectory or dict
        As many rows as degrees of freedom, as in `OperationalSpaceControl`: the coordinates or other rows.
    kp, kd : float, (P,) or (P, P) array_like
        Gains of the errors of positions (1/s²) and of rates (1/s).
    wrt : str or list of str, optional
        Coordinates of measurements and efforts; by default those of the mechanism.

    Raises
    ------
    UnknownNameError, InputError, InertiaError
        If names, gains or numbers of rows do not fit, or bodies have no inertia.
    SingularError
        From the call, if the rows cannot drive the mechanism.

    Examples
    --------
    >>> m = kic.load("five-bar")
    >>> go = kic.trajectory.quintic({"A": 1.2217, "E": 1.5708}, {"A": 1.5, "E": 1.7}, 0.5)
    >>> control = kic.controllers.ComputedTorque(m, go, kp=100.0, kd=20.0)
    >>> control(0.0, ([1.2217, 1.5708], [0.0, 0.0])).shape
    (2,)
    """

    def __init__(self, mechanism: Mechanism, reference: Any, kp: Any, kd: Any, *, wrt: _Names = None) -> None:
        super().__init__(mechanism, reference, kp, kd, wrt=wrt)
        if self._inverse is None:
            _check_square(mechanism, self.rows, len(self.coordinates), "OperationalSpaceControl")


class Impedance(_RowControl):
    """Efforts that give poses or rows a stiffness and a damping towards a reference (Hogan 1985).

    F = Λ ÿ_d + D ė + K e + q̇ᵀ μ q̇ + p, so that Λ ë + D ė + K e = −f for forces f of the environment. With
    an apparent `inertia` M, which needs a force sensor, M ë + D ė + K e = −f.

    Parameters
    ----------
    mechanism, reference
        As in `OperationalSpaceControl`.
    stiffness, damping : float, (P,) or (P, P) array_like
        K and D of the rows: force per position or moment per angle, and per rate.
    inertia : float, (P,) or (P, P) array_like, optional
        Apparent inertia M; by default Λ, which needs no sensor.
    sensor : callable, optional
        ``sensor(t, measured)`` returns the forces f (P,) of the environment on the mechanism at the
        rows; needed with `inertia`.
    secondary, null_damping, wrt
        As in `OperationalSpaceControl`.

    Raises
    ------
    UnknownNameError, InputError, InertiaError, SingularError
        As `OperationalSpaceControl`.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> soft = kic.controllers.Impedance(arm, {"tip.x": 1.0, "tip.y": 1.0}, stiffness=200.0, damping=20.0)
    >>> soft(0.0, ([0.0, 1.5], [0.0, 0.0])).shape
    (2,)
    """

    def __init__(
        self,
        mechanism: Mechanism,
        reference: Any,
        stiffness: Any,
        damping: Any,
        *,
        inertia: Any = None,
        sensor: ForceSensor | None = None,
        secondary: Any = None,
        null_damping: float | None = None,
        wrt: _Names = None,
    ) -> None:
        super().__init__(mechanism, reference, wrt, secondary, null_damping)
        size = len(self.rows)
        self._feed_back(_gains(size, stiffness=stiffness, damping=damping))
        if (inertia is None) != (sensor is None):
            key = "sensor" if sensor is None else "inertia"
            raise InputError("Give both `inertia` and `sensor`, or neither.", key=key)
        self._mobility = None if inertia is None else _inverse_gain("inertia", inertia, size)
        self._sensor = None if sensor is None else _Sensor(sensor, size)

    def _law(self, t: Any, measured: Any, want: Desired, feedback: np.ndarray) -> Any:
        if self._sensor is None:
            return want.qdd, feedback
        f = self._sensor(t, measured)
        return want.qdd + self._mobility @ (feedback + f), -f


class Admittance(OperationalSpaceControl):
    """Efforts that follow a reference displaced by measured forces, as a mass on a spring and damper.

    M δ̈ + D δ̇ + K δ = f for forces f of the environment. The rows follow the reference displaced by δ;
    orientations are turned by the rotation vector δ. Errors decay as ë + kd ė + kp e = 0. Forces are held
    from one call to the next, and the equation is solved exactly between calls.

    Parameters
    ----------
    mechanism, reference
        As in `OperationalSpaceControl`.
    inertia, damping, stiffness : float, (P,) or (P, P) array_like
        M, D and K of the rows.
    kp, kd : float, (P,) or (P, P) array_like
        Gains of the errors to the displaced reference, as in `OperationalSpaceControl`.
    sensor : callable
        ``sensor(t, measured)`` returns the forces f (P,) of the environment on the mechanism at the
        rows.
    secondary, null_damping, wrt
        As in `OperationalSpaceControl`.

    Raises
    ------
    UnknownNameError, InputError, InertiaError, SingularError
        As `OperationalSpaceControl`; from the call also for decreasing times, because the controller has
        memory. Use it in a sampled simulation. `start` clears the memory.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> control = kic.controllers.Admittance(
    ...     arm, {"tip.x": 1.0, "tip.y": 1.0}, inertia=1.0, damping=20.0, stiffness=100.0, kp=400.0, kd=40.0,
    ...     sensor=lambda t, measured: [5.0, 0.0],
    ... )
    >>> control(0.0, ([0.0, 1.5], [0.0, 0.0])).shape
    (2,)
    """

    def __init__(
        self,
        mechanism: Mechanism,
        reference: Any,
        inertia: Any,
        damping: Any,
        stiffness: Any,
        kp: Any,
        kd: Any,
        *,
        sensor: ForceSensor,
        secondary: Any = None,
        null_damping: float | None = None,
        wrt: _Names = None,
    ) -> None:
        super().__init__(
            mechanism, reference, kp, kd, secondary=secondary, null_damping=null_damping, wrt=wrt
        )
        n = len(self.rows)
        mobility = _inverse_gain("inertia", inertia, n)
        K, D = _gain("stiffness", stiffness, n), _gain("damping", damping, n)
        # rates of x = (δ, δ̇, f), with f held
        self._rates = np.zeros((3 * n, 3 * n))
        self._rates[:n, n : 2 * n] = np.eye(n)
        self._rates[n : 2 * n] = np.hstack([-mobility @ K, -mobility @ D, mobility])
        self._sensor, self._last = _Sensor(sensor, n), np.nan
        self._x, self._step = np.zeros(3 * n), (0.0, np.eye(3 * n))

    def start(self, *, near: Configuration | None = None) -> None:
        """Clear all memory, and set the configuration near which the next closed state is sought."""
        super().start(near=near)
        self._last, self._x = np.nan, np.zeros_like(self._x)

    def _desired(self, t: float, measured: Any) -> Desired:
        want, n = self._reference(t), len(self.rows)
        self._advance(float(t))
        self._x[2 * n :] = self._sensor(t, measured)
        moved, speed, later = self._x[:n], self._x[n : 2 * n], (self._rates @ self._x)[n : 2 * n]
        R, qd, qdd = want.R.copy(), want.qd + speed, want.qdd + later
        for k, places in enumerate(self._rows.turned.values()):
            turn = matrix_from_quaternion(quaternion_from_vector(moved[places]).tolist())
            w, wd = turning_rates(moved[places], speed[places], later[places])
            carried = turn @ want.qd[places]
            R[k] = turn @ R[k]
            qd[places] = w + carried
            qdd[places] = wd + turn @ want.qdd[places] + np.cross(w, carried)
        return Desired(want.q + moved, R, qd, qdd)

    def _advance(self, t: float) -> None:
        """Integrate displacement and rate up to a time, with the last force."""
        step, self._last = t - self._last, t
        if step < 0:
            self._last = t - step
            raise InputError(
                f"`t` must not decrease, because the controller has memory; got {t:g} after {self._last:g}. "
                "Give simulate(controller=controllers.Sampled(…)) in place of `effort`; before a second run "
                "call start().",
                key="t",
                got=t,
            )
        if step > 0:
            if abs(step - self._step[0]) > 1e-12 * max(abs(t), step):
                from scipy.linalg import expm

                self._step = step, expm(step * self._rates)
            self._x = self._step[1] @ self._x


class HybridForcePosition(_RowControl):
    """Efforts that move some rows along a reference and press with given forces along others (Khatib 1987).

    F = Λ a + q̇ᵀ μ q̇ + p + f. Rows of the reference have a = ÿ_d + kd ė + kp e. Rows of `force` have
    a = −kd_force u̇ and the forces f. If contact blocks the rows of `force`, the mechanism presses with
    exactly f, at rest and in motion: the constraint force is −f.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism without the contact.
    reference : Trajectory or dict
        Motion of some rows, as in `OperationalSpaceControl`.
    force : dict of str to float or callable
        Forces with which the mechanism presses on the environment along other rows; numbers, or functions of
        time.
    kp, kd : float, (P,) or (P, P) array_like
        Gains of the rows of the reference, as in `OperationalSpaceControl`.
    kd_force : float
        Damping (1/s) along the rows of `force`, for the approach to contact.
    gain : float
        Gain of force feedback, which replaces f by f + gain (f + s) for sensor forces s.
    sensor : callable, optional
        ``sensor(t, measured)`` returns the forces of the environment on the mechanism at the rows of
        `force`, −f in steady contact; needed with `gain`.
    secondary, null_damping, wrt
        As in `OperationalSpaceControl`.

    Raises
    ------
    UnknownNameError, InputError, InertiaError, SingularError
        As `OperationalSpaceControl`; also for a row that has a reference and a force.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> control = kic.controllers.HybridForcePosition(
    ...     arm, {"tip.y": 1.0}, {"tip.x": 10.0}, kp=100.0, kd=20.0  # a vertical wall
    ... )
    >>> control(0.0, ([0.0, 1.5], [0.0, 0.0])).shape
    (2,)
    """

    def __init__(
        self,
        mechanism: Mechanism,
        reference: Any,
        force: Mapping[str, Any],
        kp: Any,
        kd: Any,
        *,
        kd_force: float = 0.0,
        gain: float = 0.0,
        sensor: ForceSensor | None = None,
        secondary: Any = None,
        null_damping: float | None = None,
        wrt: _Names = None,
    ) -> None:
        if not isinstance(force, Mapping) or not force:
            raise invalid("force", "must be a nonempty dict that maps rows to forces", force)
        super().__init__(mechanism, reference, wrt, secondary, null_damping, names_of(force, "force"))
        n, rows = self._reference.size, len(self.rows)
        gains = np.zeros((rows, 2, rows))
        gains[:n, :, :n] = _gains(n, kp=kp, kd=kd).reshape(n, 2, n)
        # time is the only argument of a function; numbers are constants
        self._force = [(name, f if is_function(f) else _constant(name, f)) for name, f in force.items()]
        gains[n:, 1, n:] = at_least("kd_force", kd_force, 0.0) * np.eye(rows - n)
        self._feed_back(gains.reshape(rows, 2 * rows))
        self._moved, self._gain = n, at_least("gain", gain, 0.0)
        if (sensor is None) != (self._gain == 0):
            key = "sensor" if sensor is None else "gain"
            raise InputError("Give both `gain` and `sensor`, or neither.", key=key)
        self._sensor = None if sensor is None else _Sensor(sensor, len(force))

    def _desired(self, t: float, measured: Any) -> Desired:
        want, none = self._reference(t), np.zeros(len(self.rows) - self._moved)
        q, qd, qdd = (np.append(a, none) for a in (want.q, want.qd, want.qdd))
        return Desired(q, want.R, qd, qdd)

    def _law(self, t: Any, measured: Any, want: Desired, feedback: np.ndarray) -> Any:
        n, force = self._moved, np.zeros(len(feedback))
        for k, (name, f) in enumerate(self._force):
            pressed = reals(f(t))
            if pressed is None or pressed.shape != ():
                raise invalid("force", f"must return a finite number for '{name}' at t = {t:g}", f(t))
            force[n + k] = pressed
        if self._sensor is not None:
            force[n:] += self._gain * (force[n:] + self._sensor(t, measured))
        return want.qdd + feedback, force


def _constant(name: str, value: Any) -> Callable[[float], float]:
    a = reals(value)
    if a is None or a.shape != ():
        raise invalid("force", f"must be a number or a function of time for '{name}'", value)
    return partial(_same, float(a))


def _same(number: float, t: float) -> float:
    return number


class GravityCompensation(Control):
    """Efforts that balance static loads, with springs and dampers towards a reference.

    T = Gᵀ (kp e + kd ė) − Tᴸ. Without a reference the mechanism floats, T = −kd q̇ − Tᴸ. While the reference
    is at rest, the motion is stable for any inertia (Takegaki and Arimoto 1981).

    Parameters
    ----------
    mechanism : Mechanism
        Open or closed.
    reference : Trajectory or dict, optional
        As in `OperationalSpaceControl`, with any number of rows.
    kp : float, (P,) or (P, P) array_like, optional
        Stiffness, effort per position; required with `reference`.
    kd : float, (P,) or (P, P) array_like
        Damping, effort per rate, of the rows of the reference; without a reference, of the M coordinates.
    wrt : str or list of str, optional
        Coordinates of measurements and efforts; by default those of the mechanism.

    Raises
    ------
    UnknownNameError, InputError, InertiaError
        If names or gains do not fit, or bodies have no inertia.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> kic.controllers.GravityCompensation(arm)(0.0, ([0.0, 0.0], [0.0, 0.0])).tolist()
    [19.62, 4.905]
    """

    def __init__(
        self,
        mechanism: Mechanism,
        reference: Any = None,
        kp: Any = None,
        kd: Any = 0.0,
        *,
        wrt: _Names = None,
    ) -> None:
        super().__init__(mechanism, wrt=wrt)
        self._inverse = Motions(self._model, "inverse_dynamics", self._wrt)
        self._rest = np.zeros(self._size)
        self._reference, self._now = cast("Reference | None", None), cast("RowMotion | None", None)
        if (reference is None) != (kp is None):
            key = "kp" if kp is None else "reference"
            raise InputError("Give both `reference` and `kp`, or neither.", key=key)
        if reference is not None:
            self._reference = Reference(self._model, reference)
            self._rows = MovingRows(self._model, self._reference.names, self._wrt)
            self.rows = self._rows.labels
            self._feedback = RowFeedback(self._rows, _gains(len(self.rows), kp=kp, kd=kd))
        else:
            self._kd = _gain("kd", kd, len(self.coordinates))

    def __call__(self, t: float, measured: Any) -> np.ndarray:
        """Return efforts (M,) at a time, for measured coordinates and rates."""
        _, qd, state = self._measurement(t, measured)
        effort: np.ndarray = self._inverse(state, self._rest, self._rest)
        if self._reference is None:
            return effort - self._kd @ qd
        want, self._now = self._reference(t), self._rows.at(state, self._now)
        force = self._feedback(self._now.table, want.q, want.R, want.qd, qd, np.empty(0))[0]
        return effort + force.dot(self._now.G)


class LQR(Control):
    """Linear quadratic regulator about rest: efforts T = T₀ − K x that minimize ∫ (xᵀ Q x + δTᵀ R δT) dt.

    The states x are deviations of the coordinates and of their rates, as in `Linearization.state_space`
    without motors, and T₀ holds the mechanism. With `sample_time`, T uses x of the last sample, and K
    minimizes the same integral, including the motion between samples.

    Parameters
    ----------
    mechanism : Mechanism
        Open or closed.
    Q : float, (2 M,) or (2 M, 2 M) array_like
        Weight of the states.
    R : float, (U,) or (U, U) array_like
        Weight of the efforts.
    near : Configuration, optional
        Configuration of rest; by default the reference configuration. With fewer actuators than coordinates
        it must be an equilibrium.
    actuators : str or list of str, optional
        The U coordinates at which efforts act; by default all. Pass the same to `Mechanism.simulate`.
    sample_time : float, optional
        Time for which efforts are held. By default the regulator is continuous.
    wrt : str or list of str, optional
        Coordinates of measurements and efforts; by default those of the mechanism.

    Attributes
    ----------
    K : (U, 2 M)
        Gain.
    state_space : StateSpace
        The linear model, discrete with a `sample_time`.

    Raises
    ------
    UnknownNameError, InputError, InertiaError, SingularError
        As `Linearization.state_space`; also for weights that are not symmetric and positive, a mechanism that
        the actuators cannot stabilize, and a configuration at which they cannot hold it.

    References
    ----------
    C. F. Van Loan, Computing integrals involving the matrix exponential, IEEE Trans. Autom. Control 23
    (1978).

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> control = kic.controllers.LQR(arm, [100.0, 100.0, 1.0, 1.0], 0.01, near=arm.at([np.pi / 2, 0.0]))
    >>> control.K.shape, control(0.0, ([np.pi / 2, 0.0], [0.0, 0.0])).round(12).tolist()
    ((2, 4), [0.0, 0.0])
    """

    def __init__(
        self,
        mechanism: Mechanism,
        Q: Any,
        R: Any,
        *,
        near: Configuration | None = None,
        actuators: _Names = None,
        sample_time: float | None = None,
        wrt: _Names = None,
    ) -> None:
        super().__init__(mechanism, wrt=wrt)
        self.start(near=near)
        c = mechanism.at() if near is None else near
        acting = self.coordinates if actuators is None else names_of(actuators, "actuators", 1)
        if len(set(acting)) < len(acting):
            raise invalid("actuators", "must name each coordinate once", actuators)
        if sample_time is not None:
            sample_time = positive("sample_time", sample_time)
        for name in acting:
            if name not in self.coordinates:
                raise invalid("actuators", f"must be among {', '.join(self.coordinates)}", name)
        self.actuators, places = acting, [self.coordinates.index(name) for name in acting]
        rows = c.coefficients(self.coordinates, order=1, wrt=self._wrt)
        if rows.quasi or rows.values is None:
            message = (
                f"LQR requires coordinates with values, got {', '.join(sorted(rows.quasi))}. Give `wrt`."
            )
            raise InputError(message, key="wrt", names=tuple(sorted(rows.quasi)))
        self._q = rows.values
        self._shortest = self._model.rows(self.coordinates, 1).layout.rows.shortest
        rest = np.zeros(self._size)
        effort = c.inverse_dynamics(rest, rest, wrt=self._wrt)
        idle = [k for k in range(len(rest)) if k not in places]
        if np.abs(effort[idle]).max(initial=0.0) > IDLE_EFFORT_RTOL * self._effort_size(c, effort):
            k = max(idle, key=lambda k: abs(effort[k]))
            raise InputError(
                f"`near` must be an equilibrium that {', '.join(acting)} can hold; '{self.coordinates[k]}' "
                f"requires an effort of {effort[k]:.6g}. Use find_equilibrium.",
                key="near",
                name=self.coordinates[k],
                got=float(effort[k]),
            )
        self._effort = effort[places]
        model = c.linearize(wrt=self._wrt).state_space(inputs=acting)
        Q, R, S = _weight("Q", Q, len(model.states), False), _weight("R", R, len(acting), True), None
        if sample_time is not None:
            try:
                Q, R, S = held_cost(model, Q, R, sample_time)
                model = model.discretize(sample_time)
            except InputError as error:
                rule = "must suit the linear model"
                raise invalid("sample_time", rule, sample_time, "Shorten it.") from error
        self.state_space = model
        self.K = _regulator(model.A, model.B, Q, R, S)

    def __call__(self, t: float, measured: Any) -> np.ndarray:
        """Return efforts (U,) of the actuators at a time, for measured coordinates and rates."""
        q, qd = self._pair(t, measured)
        return self._effort - self.K @ np.concatenate((self._shortest(q - self._q), qd))

    def _effort_size(self, c: Configuration, effort: np.ndarray) -> float:
        """Return a scale of static efforts: weight times length, or the largest static effort if greater."""
        weight = sum(b.mass or 0.0 for b in self._mechanism.bodies)
        weight *= float(np.linalg.norm(self._mechanism.gravity))
        return max(weight * self._model.length, float(np.abs(effort).max(initial=0.0)))


def _weight(name: str, value: Any, size: int, definite: bool) -> np.ndarray:
    """Return a checked symmetric weight, positive definite or semidefinite."""
    a = _gain(name, value, size)
    least, most = (float(f(np.linalg.eigvalsh((a + a.T) / 2))) for f in (np.min, np.max))
    is_singular = definite and not least > 1e-12 * most
    if np.abs(a - a.T).max() > 1e-9 * np.abs(a).max() or least < -1e-12 * most or is_singular:
        kind = "definite" if definite else "semidefinite"
        raise invalid(name, f"must be symmetric and positive {kind}", value)
    return (a + a.T) / 2


def _regulator(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, S: np.ndarray | None = None
) -> np.ndarray:
    """Return the regulator gain K (U, X), in discrete time if a cross weight S (X, U) is given."""
    from scipy.linalg import solve_continuous_are, solve_discrete_are

    try:
        if S is not None:
            with np.errstate(invalid="ignore"):  # in the balance of a pencil with huge numbers
                X = solve_discrete_are(A, B, Q, R, s=S)
            return np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A + S.T)
        return np.linalg.solve(R, B.T @ solve_continuous_are(A, B, Q, R))
    except (np.linalg.LinAlgError, ValueError) as error:  # ValueError of eigenvalues that cannot be ordered
        message = (
            f"The Riccati equation has no stabilizing solution: the {B.shape[1]} inputs cannot stabilize the "
            f"{len(A)} states, or `Q` gives no weight to some motion. Add inputs, or weight all states"
            f"{'' if S is None else ', or shorten `sample_time`'}."
        )
        raise InputError(message, key="Q") from error


class _ResolvedMotion(Control):
    """Controller that moves rows along a reference by derivatives of the coordinates."""

    _order = 1

    def __init__(self, mechanism: Mechanism, reference: Any, gains: dict[str, Any], wrt: _Names) -> None:
        super().__init__(mechanism, wrt=wrt)
        self._rows = _Rows(self._mechanism, reference, self._wrt, self._order)
        self.rows = self._rows.labels
        self._gains = [_gain(name, gain, len(self.rows)) for name, gain in gains.items()]


class ComputedVoltage(_ResolvedMotion):
    """Motor voltages that make errors e of a reference decay as ë + kd ė + kp e = 0.

    V = R i_d + k_e u̇ + r (i_d − i), where the currents i_d give the required torques, including rotors. This
    is exact without inductance. With inductance, currents lag by L/(R + r), which should be short compared
    with 1/kd. The result (K,) has torques for plain sources.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism with as many motors as degrees of freedom.
    reference, kp, kd
        As in `ComputedTorque`.
    gain : float
        Gain r of the current loop, voltage per unit of current. It requires ``measured.current`` (K,), whose
        NaN entries are ignored.
    wrt
        As in `ComputedTorque`.

    Raises
    ------
    InputError, UnknownNameError, InertiaError, SingularError
        As `ComputedTorque`; also if the motors cannot produce every motion or, from the call, if `gain` is
        given and currents are not.

    Examples
    --------
    >>> arm = kic.load("puma560-motors")
    >>> go = kic.trajectory.septic([0.0] * 6, [0.5] * 6, duration=1.0)
    >>> control = kic.controllers.ComputedVoltage(arm, go, kp=400.0, kd=40.0)
    >>> run = arm.simulate(0.1, near=arm.at([0.0] * 6), voltage=control, integrator="LSODA")
    >>> bool(abs(run.q - go(run.t).q).max() < 1e-4)
    True
    """

    gives, _order = "voltages", 2

    def __init__(
        self,
        mechanism: Mechanism,
        reference: Any,
        kp: Any,
        kd: Any,
        *,
        gain: float = 0.0,
        wrt: _Names = None,
    ) -> None:
        super().__init__(mechanism, reference, {"kp": kp, "kd": kd}, wrt)
        self._inverse = Motions(self._model, "inverse_dynamics", self._wrt)
        self._train = self._model.drive_train
        self._geared = Tables(self._model, self._train.joints, 2, (), self._wrt)
        self._gain = at_least("gain", gain, 0.0)

    def __call__(self, t: float, measured: Any) -> np.ndarray:
        """Return voltages (K,) at a time, for measured coordinates, rates and currents."""
        _, v, state = self._measurement(t, measured)
        joints, train = self._geared(state), self._train
        qdd = self._rows.accelerations(self._rows(t, state), v, *self._gains)
        effort = self._inverse(state, v, qdd)
        parts = [joints[name] for name in train.joints]
        G, H = (
            np.concatenate([getattr(x, key) for x in parts], axis) for key, axis in (("G", -2), ("H", -3))
        )
        shafts = train.shafts(Coefficients(train.joints, self._geared.coordinates, G, H))
        drive = train.drive(shafts, effort, None, v, qdd, None)
        made: np.ndarray = np.where(train.electrical, drive.voltage, drive.torque)
        if not self._gain:
            return made
        current = getattr(measured, "current", None)
        if current is None:
            raise InputError("`gain` requires currents. Give them as `measured.current`.", key="gain")
        return made + self._gain * np.nan_to_num(drive.current - np.asarray(current))


class ResolvedRate(_ResolvedMotion):
    """Rates that move rows, or the pose of a hand, along a reference: q̇ = G⁻¹ (ẏ_d + kp e).

    Parameters
    ----------
    mechanism, reference
        As in `ComputedTorque`: as many rows as degrees of freedom, for example the pose of an arm's hand.
    kp : float, (P,) or (P, P) array_like
        Gain of the errors e of positions and orientations (1/s).
    wrt : str or list of str, optional
        Coordinates of measurements and rates; by default those of the mechanism.

    Raises
    ------
    UnknownNameError, InputError
        If names, gains or numbers of rows do not fit.
    SingularError
        From the call, if the rows cannot drive the mechanism.

    Examples
    --------
    >>> arm = kic.load("puma560")
    >>> there = arm.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
    >>> control = kic.controllers.ResolvedRate(arm, {"link6": there.pose("link6")}, kp=2.0)
    >>> control(0.0, (there.value(arm.coordinates) - 0.01, np.zeros(6))).round(2).tolist()
    [0.02, 0.02, 0.02, 0.02, 0.02, 0.02]
    """

    gives = "rates"

    def __init__(self, mechanism: Mechanism, reference: Any, kp: Any, *, wrt: _Names = None) -> None:
        super().__init__(mechanism, reference, {"kp": kp}, wrt)

    def __call__(self, t: float, measured: Any) -> np.ndarray:
        """Return rates (M,) at a time, for measured coordinates."""
        at = self._rows(t, self._measurement(t, measured)[2])
        return self._rows.solve(at, at.desired.qd + self._gains[0] @ at.error)


class ResolvedAcceleration(_ResolvedMotion):
    """Accelerations that move rows along a reference: q̈ = G⁻¹ (ÿ_d + kd ė + kp e − q̇ᵀ H q̇).

    Parameters and errors as in `ResolvedRate`; kp in 1/s², kd in 1/s.
    """

    gives, _order = "accelerations", 2

    def __init__(self, mechanism: Mechanism, reference: Any, kp: Any, kd: Any, *, wrt: _Names = None) -> None:
        super().__init__(mechanism, reference, {"kp": kp, "kd": kd}, wrt)

    def __call__(self, t: float, measured: Any) -> np.ndarray:
        """Return accelerations (M,) at a time, for measured coordinates and rates."""
        _, qd, state = self._measurement(t, measured)
        return self._rows.accelerations(self._rows(t, state), qd, *self._gains)


class ResolvedJerk(_ResolvedMotion):
    """Jerks that move rows along a reference, with e⃛ + ka ë + kd ė + kp e = 0.

    q⃛ = G⁻¹ (y⃛_d + ka ë + kd ė + kp e − q̈ᵀ (H + 2Hᵀ) q̇ − D(q̇, q̇, q̇)). The call needs accelerations:
    `measured` is (q, qd, qdd), or has an attribute qdd. Functions of time in `reference` return the jerk as
    well. Parameters and errors as in `ResolvedRate`; kp in 1/s³, kd in 1/s², ka in 1/s.
    """

    gives, _order = "jerks", 3

    def __init__(
        self, mechanism: Mechanism, reference: Any, kp: Any, kd: Any, ka: Any, *, wrt: _Names = None
    ) -> None:
        super().__init__(mechanism, reference, {"kp": kp, "kd": kd, "ka": ka}, wrt)

    def __call__(self, t: float, measured: Any) -> np.ndarray:
        """Return jerks (M,) at a time, for measured coordinates, rates and accelerations."""
        _, v, state = self._measurement(t, measured)
        given = measured[2:] if isinstance(measured, tuple) else (getattr(measured, "qdd", None),)
        w = reals(given[0]) if given else None
        if w is None or w.shape != self._size:
            message = (
                "`measured` must be (q, qd, qdd) or have these attributes, with "
                f"{self._size[0]} real numbers each, got {short_repr(given[0] if given else measured)}."
            )
            raise InputError(message, key="measured", got=measured)
        at, (p, d, a) = self._rows(t, state), self._gains
        want, now = at.desired, at.now
        rate = want.qd - now.G @ v
        acceleration = want.qdd - now.G @ w - _quadratic(now.H, v, v)
        bias = _quadratic(now.H, w, v) + 2 * _quadratic(now.H, v, w)
        bias = bias + np.einsum("plmn,l,m,n->p", now.D, v, v, v)
        return self._rows.solve(at, want.qddd + a @ acceleration + d @ rate + p @ at.error - bias)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Sampled controller of `Mechanism.simulate`, whose results are held between samples.

    A single number applies to all rows. A dict gives numbers by name; rows that it omits are ideal.

    Attributes
    ----------
    controller : callable
        ``controller(t, now)`` returns the efforts (A,) or voltages (K,). ``now`` is a `Measurement`:
        ``now.q``, ``now.qd`` are the measured values and rates, ``now.effort`` the limited efforts in effect
        so far. Controllers of `kic.controllers` are allowed.
    time : float
        Time between samples.
    measured : str or list of str, optional
        Rows whose values and rates are measured; by default the coordinates of the run.
    gives : {"efforts", "voltages"}, optional
        Results of the controller: efforts at the actuators, or voltages of the motors, which are torques for
        ideal sources of torque. By default as a controller of `kic.controllers` declares, else efforts.
    delay : float
        Time from a sample to the change of the efforts, which may exceed the sample time. In a continued run,
        pending efforts keep their delay.
    noise, rate_noise : float, (P,) array_like, or dict of str to float
        Standard deviations of normal errors of measured values and rates.
    quantization, rate_quantization : float, (P,) array_like, or dict of str to float
        Steps to which measured values and rates, including noise, are rounded; 0 for none.
    effort_limits, voltage_limits : float, (A,) or (2, A) array_like, or dict of str to those, optional
        Limits of the magnitudes of efforts or voltages, or lower and upper limits. Results are clipped to
        them. `effort_limits=True` takes `Mechanism.effort_limits`.
    rng : int or numpy.random.Generator
        Seed or generator of the noise.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> pd, step = lambda t, now: -50 * now.q - 5 * now.qd, 2 * np.pi / 8192
    >>> held = kic.controllers.Sampled(pd, 1e-3, quantization=step, delay=5e-4, effort_limits=40.0)
    >>> run = arm.simulate(0.1, controller=held, near=arm.at([0.1, 0.0]))
    >>> run.control.t.shape, run.control.effort.shape
    ((100,), (100, 2))
    """

    controller: Callable[[float, Any], Any]
    time: float
    _: KW_ONLY
    measured: str | Iterable[str] | None = None
    gives: Literal["efforts", "voltages"] | None = None
    delay: float = 0.0
    noise: Any = 0.0
    rate_noise: Any = 0.0
    quantization: Any = 0.0
    rate_quantization: Any = 0.0
    effort_limits: Any = None
    voltage_limits: Any = None
    rng: Any = 0

    def __post_init__(self) -> None:
        check_parameters("controller", self.controller, "t", "now")
        positive("time", self.time)
        at_least("delay", self.delay, 0.0)
        if self.gives is not None:
            choice("gives", self.gives, ("efforts", "voltages"))


class _RowState(NamedTuple):
    """Rows at one time: desired motion, errors and coefficients."""

    desired: Desired
    error: np.ndarray
    now: RowMotion


class _Rows:
    """Rows of a reference, one for each degree of freedom, with coefficients up to a given order."""

    def __init__(self, mechanism: Mechanism, reference: Any, wrt: tuple[str, ...] | None, order: int) -> None:
        model = model_of(mechanism)
        self._reference = Reference(model, reference, max(order, 2))
        self._moving = MovingRows(model, self._reference.names, wrt, order)
        self.labels = self._moving.labels
        _check_square(mechanism, self.labels, len(self._moving.coordinates), "resolve_redundancy()")
        self._are_coordinates = self.labels == self._moving.coordinates

    def __call__(self, t: float, state: np.ndarray) -> _RowState:
        """Return the rows at a state, with the desired motion at a time."""
        now, want = self._moving.at(state), self._reference(t)
        error = self._moving.shortest(want.q - now.value)
        for rows, R, R_now in zip(self._moving.turned.values(), want.R, now.R, strict=True):
            error[rows] = vector_from_matrix(R @ R_now.T)
        return _RowState(want, error, now)

    def accelerations(self, at: _RowState, v: np.ndarray, kp: np.ndarray, kd: np.ndarray) -> np.ndarray:
        """Return accelerations of the coordinates that make the errors decay."""
        want, now = at.desired, at.now
        return self.solve(at, want.qdd + kd @ (want.qd - now.G @ v) + kp @ at.error - _quadratic(now.H, v, v))

    def solve(self, at: _RowState, u: np.ndarray) -> np.ndarray:
        """Solve G x = u for x.

        Raises
        ------
        SingularError
            If the rows cannot drive the mechanism.
        """
        if self._are_coordinates:
            return u
        scaling, G = self._moving.scaling, at.now.G
        s = np.linalg.svd(scaling.scaled(G), compute_uv=False)
        none = s[-1] <= ERROR_FACTOR * float(np.max(scaling.error)) * len(self.labels)
        condition = np.inf if none else s[0] / s[-1]
        if not condition < CONDITION_MAX:
            message = (
                f"{', '.join(self.labels)} cannot drive {', '.join(self._moving.coordinates)} here "
                f"(condition {condition:.1e}). Plan the motion around this configuration, or use other rows."
            )
            raise SingularError(message, names=self.labels, condition=condition)
        return np.linalg.solve(G, u)


def _check_square(mechanism: Mechanism, labels: tuple[str, ...], dof: int, fewer: str) -> None:
    """Raise an error unless there are as many rows as degrees of freedom; `fewer` is the call for fewer."""
    if len(labels) != dof:
        remedy = f"For fewer rows, use {fewer}" if len(labels) < dof else "Leave some out"
        raise InputError(
            f"`reference` must have {counted(dof, 'row')} of '{mechanism.name}', got {len(labels)}: "
            f"{', '.join(labels)}. {remedy}.",
            key="reference",
            got=len(labels),
            dof=dof,
        )


def _quadratic(H: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("pmn,m,n->p", H, a, b)
