"""Controllers as functions of time and state, for open and closed mechanisms.

=======================  ============================  ================================================
`computed_torque`        f(t, state, qd) → efforts     follow a trajectory of any rows by exact linearization
`computed_voltage`       f(t, state, qd, current) → V  the same by the voltages of motors
`pd_gravity`             f(t, state, qd) → efforts     PD control with compensation of static loads
`resolved_rate`          f(t, state) → q̇               rates that move rows along a trajectory
`resolved_acceleration`  f(t, state, qd) → q̈           accelerations that move rows along a trajectory
`resolved_jerk`          f(t, state, qd, qdd) → q⃛      jerks that move rows along a trajectory
=======================  ============================  ================================================

States (..., S) are closed, as in `Configuration.state`. Rates and results are of the coordinates (..., M),
the mechanism's own or those of `wrt`. Beyond its ends a trajectory rests. Gains are numbers, (P,) or (P, P)
arrays for the P coordinates of the trajectory. Errors of angles known modulo full turns take the shorter way.
The functions have no memory and are thread-safe. Those of efforts and voltages can be passed to
`kic.simulate` unchanged: ``effort=computed_torque(…)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from kic.errors import InputError, SingularError, invalid
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.jets import ERROR_FACTOR
from kic.mechanism import Mechanism
from kic.numerics.arguments import instance, names_of
from kic.numerics.arrays import reals
from kic.numerics.tolerances import CONDITION_MAX
from kic.trajectory.trajectory import Motion, Trajectory


class Control:
    """Controller: a function of time and state, or of time and the snapshot that `kic.simulate` provides.

    Attributes
    ----------
    gives : str
        Kind of the result: "efforts", "voltages", "rates", "accelerations" or "jerks".
    coordinates : tuple of str
        Names of the M coordinates of rates and, except for voltages, of results.
    """

    def __init__(self, gives: str, coordinates: tuple[str, ...], law: Callable[..., np.ndarray]) -> None:
        self.gives, self.coordinates, self._law = gives, coordinates, law

    def __call__(self, t: Any, state: Any, *rates: Any) -> np.ndarray:
        """Return (..., M) at a time, for a closed state (..., S) and rates (..., M) as the law takes them."""
        if not rates and hasattr(state, "state"):  # a snapshot of a run
            currents = (state.current,) if self.gives == "voltages" else ()
            return self._law(t, state.state, state.qd, *currents)
        return self._law(t, state, *rates)

    def check(self, gives: str, coordinates: tuple[str, ...]) -> None:
        """Raise InputError for a controller of another kind, or in other coordinates."""
        if self.gives != gives:
            raise InputError(
                f"The controller must give {gives}, got one that gives {self.gives}.",
                key="effort",
                got=self.gives,
                expected=gives,
            )
        if self.coordinates != coordinates:
            raise InputError(
                f"The controller must be in the coordinates {', '.join(coordinates)}, got "
                f"{', '.join(self.coordinates)}. Give both the same `wrt`.",
                key="effort",
                got=self.coordinates,
            )

    def __repr__(self) -> str:
        return f"controller that gives {self.gives} of {', '.join(self.coordinates)}"


__all__ = [
    "computed_torque",
    "computed_voltage",
    "pd_gravity",
    "resolved_acceleration",
    "resolved_jerk",
    "resolved_rate",
]


def computed_torque(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Return the efforts that make errors e of a trajectory decay as ë + kd ė + kp e = 0.

    T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (eq 2-198) with the q̈ of `resolved_acceleration`.

    Parameters
    ----------
    mechanism : Mechanism
        Open or closed.
    trajectory : Trajectory
        As many rows with values as degrees of freedom: the coordinates, or others.
    kp, kd : float, (P,) or (P, P) array_like
        Gains of the errors of positions (1/s²) and of rates (1/s).
    wrt : str or list of str, optional
        The coordinates of q̇ and of the efforts; by default the mechanism's own.

    Returns
    -------
    Control
        f(t, state, qd) → (..., M).

    Raises
    ------
    UnknownNameError, InputError, InertiaError
        For names, gains or numbers of rows that do not fit, or bodies without inertia.
    SingularError
        From the function, where the rows cannot drive the mechanism.

    Examples
    --------
    >>> m = kic.load("five-bar")
    >>> go = kic.trajectory.quintic({"A": 1.2217, "E": 1.5708}, {"A": 1.5, "E": 1.7}, 0.5)
    >>> f = kic.controllers.computed_torque(m, go, kp=100.0, kd=20.0)
    >>> f(0.0, m.at().state, [0.0, 0.0]).shape
    (2,)
    """
    rows = _Rows(mechanism, trajectory, wrt, 2, dynamics=True)
    p, d = rows.gain("kp", kp), rows.gain("kd", kd)

    def effort(t: Any, state: Any, qd: Any) -> np.ndarray:
        return rows.effort(t, np.asarray(state), np.asarray(qd), p, d)[0]

    return Control("efforts", rows.evaluator.coordinates, effort)


def computed_voltage(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    gain: float = 0.0,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Return the motor voltages that make errors e of a trajectory decay as ë + kd ė + kp e = 0.

    V = R i_d + k_e u̇ + r (i_d − i), with the currents i_d of the required torques, rotors included. This is
    exact without inductance. With inductance currents lag by L/(R + r), which should be short compared with
    1/kd.

    Parameters
    ----------
    mechanism, trajectory, kp, kd
        As in `computed_torque`; the mechanism must have as many motors as degrees of freedom.
    gain : float
        Gain r of the current loop, voltage per unit of current.
    wrt
        As in `computed_torque`.

    Returns
    -------
    Control
        f(t, state, qd, current=None) → (..., K); torques for plain sources. Currents (..., K) are needed only
        with `gain`, and are ignored where they are NaN.

    Raises
    ------
    InputError, UnknownNameError, InertiaError, SingularError
        As `computed_torque`; for a mechanism whose motors cannot make any motion; from the function, if
        `gain` is given and currents are not.

    Examples
    --------
    >>> arm = kic.load("puma560-motors")
    >>> go = kic.trajectory.septic([0.0] * 6, [0.5] * 6, duration=1.0)
    >>> f = kic.controllers.computed_voltage(arm, go, kp=400.0, kd=40.0)
    >>> run = kic.simulate(arm, arm.at([0.0] * 6), 0.1, voltage=f, method="LSODA")
    >>> bool(abs(run.q - go(run.t).q).max() < 1e-4)
    True
    """
    rows = _Rows(mechanism, trajectory, wrt, 2, dynamics=True)
    train = mechanism._model.drive_train
    geared = mechanism.prepare(train.joints, 2, wrt=wrt)
    p, d, r = rows.gain("kp", kp), rows.gain("kd", kd), reals(gain)
    if r is None or r.shape != () or r < 0:
        raise invalid("gain", "must be a number of at least 0", gain)

    def voltage(t: Any, state: Any, qd: Any, current: Any = None) -> np.ndarray:
        v, joints = np.asarray(qd), geared(np.asarray(state))
        effort, qdd = rows.effort(t, np.asarray(state), v, p, d)
        parts = [joints[name] for name in train.joints]
        G, H = (
            np.concatenate([getattr(x, key) for x in parts], axis) for key, axis in (("G", -2), ("H", -3))
        )
        shafts = train.shafts(Coefficients(train.joints, geared.coordinates, G, H))
        drive = train.drive(shafts, effort, None, v, qdd, None)
        made = np.where(train.electrical, drive.voltage, drive.torque)
        if not r:
            return made
        if current is None:
            raise InputError("`gain` needs currents. Give now.current as the last argument.", key="gain")
        return made + r * np.nan_to_num(drive.current - np.asarray(current))

    return Control("voltages", rows.evaluator.coordinates, voltage)


def pd_gravity(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Return the efforts of springs and dampers between rows and a trajectory, plus the static loads.

    T = Gᵀ (kp (y_d − y) + kd (ẏ_d − ẏ)) − Tᴸ. Where the trajectory rests, the motion is stable for any
    inertia.

    Parameters
    ----------
    mechanism, trajectory
        As in `computed_torque`; here the trajectory may have any number of rows.
    kp, kd : float, (P,) or (P, P) array_like
        Stiffness and damping, effort per position and per rate.
    wrt
        As in `computed_torque`.

    Returns
    -------
    Control
        f(t, state, qd) → (..., M).

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> stay = kic.trajectory.line([0.0, 0.0], [0.0, 0.0])
    >>> kic.controllers.pd_gravity(arm, stay, 10.0, 1.0)(0.0, arm.at([0.0, 0.0]).state, [0.0, 0.0]).tolist()
    [19.62, 4.905]
    """
    rows = _Rows(mechanism, trajectory, wrt, 1, dynamics=True, square=False)
    p, d = rows.gain("kp", kp), rows.gain("kd", kd)

    def effort(t: Any, state: Any, qd: Any) -> np.ndarray:
        now = rows(t, state)
        rate = now.desired.qd - np.einsum("...pn,...n->...p", now.G, np.asarray(qd))
        force = _apply(p, now.error) + _apply(d, rate)
        static = rows.inverse(np.asarray(state), np.zeros(now.G.shape[-1]), np.zeros(now.G.shape[-1]))
        return np.einsum("...pn,...p->...n", now.G, force) + static

    return Control("efforts", rows.evaluator.coordinates, effort)


def resolved_rate(
    mechanism: Mechanism, trajectory: Trajectory, kp: Any, wrt: str | Iterable[str] | None = None
) -> Control:
    """Return the rates that move rows along a trajectory: q̇ = G⁻¹ (ẏ_d + kp (y_d − y)).

    Parameters and errors as in `computed_torque`; kp in 1/s.

    Returns
    -------
    Control
        f(t, state) → (..., M).
    """
    rows = _Rows(mechanism, trajectory, wrt, 1)
    p = rows.gain("kp", kp)

    def rate(t: Any, state: Any) -> np.ndarray:
        now = rows(t, state)
        return rows.solve(now, now.desired.qd + _apply(p, now.error))

    return Control("rates", rows.evaluator.coordinates, rate)


def resolved_acceleration(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Return the accelerations that move rows along a trajectory: q̈ = G⁻¹ (ÿ_d + kd ė + kp e − q̇ᵀ H q̇).

    Parameters and errors as in `computed_torque`.

    Returns
    -------
    Control
        f(t, state, qd) → (..., M).
    """
    rows = _Rows(mechanism, trajectory, wrt, 2)
    p, d = rows.gain("kp", kp), rows.gain("kd", kd)

    def acceleration(t: Any, state: Any, qd: Any) -> np.ndarray:
        return rows.accelerations(rows(t, state), np.asarray(qd), p, d)

    return Control("accelerations", rows.evaluator.coordinates, acceleration)


def resolved_jerk(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    ka: Any,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Return the jerks that move rows along a trajectory, with e⃛ + ka ë + kd ė + kp e = 0.

    q⃛ = G⁻¹ (y⃛_d + ka ë + kd ė + kp e − q̈ᵀ (H + 2Hᵀ) q̇ − D(q̇, q̇, q̇)). Parameters and errors as in
    `computed_torque`; kp in 1/s³, kd in 1/s², ka in 1/s.

    Returns
    -------
    Control
        f(t, state, qd, qdd) → (..., M).
    """
    rows = _Rows(mechanism, trajectory, wrt, 3)
    p, d, a = (rows.gain(name, gain) for name, gain in (("kp", kp), ("kd", kd), ("ka", ka)))

    def jerk(t: Any, state: Any, qd: Any, qdd: Any) -> np.ndarray:
        v, w, now = np.asarray(qd), np.asarray(qdd), rows(t, state)
        want = now.desired
        rate = np.einsum("...pn,...n->...p", now.G, v)
        acceleration = np.einsum("...pn,...n->...p", now.G, w) + _quadratic(now.H, v, v)
        bias = _quadratic(now.H, w, v) + 2 * _quadratic(now.H, v, w)
        bias = bias + np.einsum("...plmn,...l,...m,...n->...p", now.D, v, v, v)
        force = _apply(a, want.qdd - acceleration) + _apply(d, want.qd - rate) + _apply(p, now.error)
        return rows.solve(now, want.qddd + force - bias)

    return Control("jerks", rows.evaluator.coordinates, jerk)


class _RowState(NamedTuple):
    """Rows at one time: their motion on the trajectory, errors, and coefficients."""

    desired: Motion
    error: np.ndarray
    G: np.ndarray
    H: Any
    D: Any


class _Rows:
    """Rows of a trajectory, prepared for evaluation."""

    def __init__(
        self,
        mechanism: Mechanism,
        trajectory: Trajectory,
        wrt: str | Iterable[str] | None,
        order: int,
        dynamics: bool = False,
        square: bool = True,
    ) -> None:
        instance("mechanism", mechanism, Mechanism)
        instance("trajectory", trajectory, Trajectory)
        self.trajectory, self.names = trajectory, trajectory.names or mechanism.coordinate_names
        wrt = None if wrt is None else names_of(wrt, "wrt")
        self.evaluator = mechanism.prepare(self.names, order, wrt=wrt)
        if dynamics:
            self.inverse = mechanism.prepare_inverse_dynamics(wrt)

        table = self.evaluator.layouts[0]
        assert table is not None  # for the type checker: there are rows
        at = table.rows
        self.labels, dof = at.labels, len(self.evaluator.coordinates)
        wrong = [label for label, has in zip(at.labels, at.valued, strict=True) if not has]
        if wrong:
            raise InputError(
                f"{', '.join(wrong)} have no values to control. Use a trajectory of other rows.",
                key="trajectory",
                names=tuple(wrong),
            )
        if len(at.labels) != trajectory.size or (square and trajectory.size != dof):
            raise InputError(
                f"The trajectory must have {dof if square else len(at.labels)} rows of "
                f"'{mechanism.name}', got {trajectory.size} for {', '.join(at.labels)}.",
                key="trajectory",
                got=trajectory.size,
            )
        self.turns = at.turns
        self.scaling = self.evaluator.scaling
        self.are_coordinates = self.names == self.evaluator.coordinates

    def gain(self, name: str, value: Any) -> np.ndarray:
        """Return a matrix (P, P) of gains."""
        a, size = reals(value), self.trajectory.size
        if a is None or a.shape not in ((), (size,), (size, size)):
            raise invalid(name, f"must be a number, ({size},) or ({size}, {size}) numbers", value)
        return a if a.ndim == 2 else np.diag(np.broadcast_to(a, size))

    def __call__(self, t: Any, state: Any) -> _RowState:
        """Return the rows at a state, and the trajectory at a time."""
        r, desired = self.evaluator(np.asarray(state)), self.trajectory(t, beyond="hold")
        parts = [r[name] for name in self.names]
        y, G = np.concatenate([x.value for x in parts], -1), np.concatenate([x.G for x in parts], -2)
        H, D = (
            None if getattr(parts[0], k) is None else np.concatenate([getattr(x, k) for x in parts], axis)
            for k, axis in (("H", -3), ("D", -4))
        )
        error = desired.q - y
        turn = np.where(self.turns, 2 * np.pi * np.round(np.real(error) / (2 * np.pi)), 0.0)
        return _RowState(desired, error - turn, G, H, D)

    def accelerations(self, now: _RowState, v: np.ndarray, p: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return accelerations of the coordinates that make the errors decay."""
        rate = now.desired.qd - np.einsum("...pn,...n->...p", now.G, v)
        desired = now.desired.qdd + _apply(d, rate) + _apply(p, now.error)
        return self.solve(now, desired - _quadratic(now.H, v, v))

    def effort(
        self, t: Any, state: Any, v: np.ndarray, p: np.ndarray, d: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return efforts at the coordinates, and their accelerations, that make the errors decay."""
        now = self(t, state)
        qdd = self.accelerations(now, v, p, d)
        return self.inverse(state, v, qdd), qdd

    def solve(self, now: _RowState, u: np.ndarray) -> np.ndarray:
        """Return x of G x = u.

        Raises
        ------
        SingularError
            If the rows cannot drive the mechanism.
        """
        if self.are_coordinates:
            return u
        G = now.G
        s = np.linalg.svd(self.scaling.scaled(G), compute_uv=False)
        none = s[..., -1:] <= ERROR_FACTOR * self.scaling.error * len(self.labels)
        share = np.where(none, 0.0, s[..., -1:]) / np.where(none, 1.0, s[..., :1])
        least = float(np.min(share, initial=1.0))
        condition = 1 / least if least > 0 else np.inf
        if not condition < CONDITION_MAX:
            raise SingularError(
                f"{', '.join(self.labels)} cannot drive {', '.join(self.evaluator.coordinates)} here "
                f"(condition {condition:.1e}). Plan the trajectory around this configuration, or use other "
                "rows.",
                names=self.labels,
                condition=condition,
            )
        return np.linalg.solve(np.broadcast_to(G, (*u.shape[:-1], *G.shape[-2:])), u[..., None])[..., 0]


def _apply(K: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("pq,...q->...p", K, x)


def _quadratic(H: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...pmn,...m,...n->...p", H, a, b)
