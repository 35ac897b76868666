"""Controllers as functions of time and state, for open and closed mechanisms.

=======================  ============================  ================================================
`computed_torque`        f(t, state, qd) → efforts     follows a trajectory of any rows, exactly linearised
`computed_voltage`       f(t, state, qd, current) → V  the same by the voltages of motors
`pd_gravity`             f(t, state, qd) → efforts     springs and dampers to it, and the loads held
`resolved_rate`          f(t, state) → q̇               rates that lead rows along a trajectory
`resolved_acceleration`  f(t, state, qd) → q̈           accelerations that do
`resolved_jerk`          f(t, state, qd, qdd) → q⃛      jerks that do
=======================  ============================  ================================================

States (..., S) are closed ones, as `Configuration.state` has them; rates and what comes back are of the
coordinates (..., M), the mechanism's own or those of `wrt`. Beyond its ends a trajectory rests. Gains are
numbers, (P,) or (P, P) arrays for the P coordinates of the trajectory; errors of angles that are known but
for full turns go the shorter way. The functions keep no memory and may be called from many threads. Those of
efforts and voltages may be given to `kic.simulate` as they are: ``effort=computed_torque(…)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from kic.errors import InputError, SingularError, short_repr
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.jets import ERROR_FACTOR
from kic.mechanism import Mechanism
from kic.numerics.arguments import instance, names_of
from kic.numerics.arrays import reals
from kic.trajectory.trajectory import Motion, Trajectory


class Control:
    """A controller: a function of time and state, or of time and what `kic.simulate` shows of a moment.

    Attributes
    ----------
    gives : str
        What comes back: "efforts", "voltages", "rates", "accelerations" or "jerks".
    coordinates : tuple of str
        Names of the M coordinates that it gives them for, but for voltages; and whose rates it takes.
    """

    def __init__(self, gives: str, coordinates: tuple[str, ...], law: Callable[..., np.ndarray]) -> None:
        self.gives, self.coordinates, self._law = gives, coordinates, law

    def __call__(self, t: Any, state: Any, *rates: Any) -> np.ndarray:
        """(..., M) at a time, for a closed state (..., S) and rates (..., M) as the law takes them."""
        if not rates and hasattr(state, "state"):  # a moment of a run
            currents = (state.current,) if self.gives == "voltages" else ()
            return self._law(t, state.state, state.qd, *currents)
        return self._law(t, state, *rates)

    def check(self, gives: str, coordinates: tuple[str, ...]) -> None:
        """Refuse a controller of something else, or in other coordinates."""
        if self.gives != gives:
            raise InputError(f"Expected a controller that gives {gives}, got one of {self.gives}.")
        if self.coordinates != coordinates:
            raise InputError(
                f"Expected a controller in the coordinates {', '.join(coordinates)}, got one in "
                f"{', '.join(self.coordinates)}. Give both the same `wrt`.",
                coordinates=self.coordinates,
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

# a system of rates worse than this has no digit left in what it resolves
_WORST_CONDITION = 1e12


def computed_torque(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Efforts that make errors e of a trajectory die as ë + kd ė + kp e = 0.

    T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (eq 2-198) with the q̈ of `resolved_acceleration`.

    Parameters
    ----------
    mechanism : Mechanism
        Open or closed.
    trajectory : Trajectory
        Of as many rows with values as there are freedoms: the coordinates, or others.
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
        From the function, where the rows can not drive the mechanism.

    Examples
    --------
    >>> import kic
    >>> m = kic.load("five-bar")
    >>> go = kic.trajectory.quintic({"A": 1.2217, "E": 1.5708}, {"A": 1.5, "E": 1.7}, 0.5)
    >>> f = kic.controllers.computed_torque(m, go, kp=100.0, kd=20.0)
    >>> f(0.0, m.at().state, [0.0, 0.0]).shape
    (2,)
    """
    rows = _Rows(mechanism, trajectory, wrt, 2, dynamics=True)
    p, d = rows.gain("kp", kp), rows.gain("kd", kd)

    def effort(t: Any, state: Any, qd: Any) -> np.ndarray:
        return rows.effort(t, state, np.asarray(qd), p, d)[0]

    return Control("efforts", rows.evaluator.coordinates, effort)


def computed_voltage(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    gain: float = 0.0,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Voltages of motors that make errors e of a trajectory die as ë + kd ė + kp e = 0.

    V = R i_d + k_e u̇ + r (i_d − i), with the currents i_d of the torques that this takes, rotors included.
    Exactly so without inductance; with it currents lag by L/(R + r), which should be short beside 1/kd.

    Parameters
    ----------
    mechanism, trajectory, kp, kd, wrt
        As in `computed_torque`; the mechanism with as many motors as freedoms.
    gain : float
        r of the current loop, voltage for each unit of current.

    Returns
    -------
    Control
        f(t, state, qd, current=None) → (..., K), of plain sources their torque. Currents (..., K) are not
        needed without `gain`, and do not count where they are NaN.

    Raises
    ------
    InputError, UnknownNameError, InertiaError, SingularError
        As `computed_torque`; for a mechanism whose motors can not make any motion; from the function, where
        `gain` asks for currents and none came.

    Examples
    --------
    >>> import kic
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
        raise InputError(f"Expected `gain` to be a number of at least 0, got {short_repr(gain)}.")

    def voltage(t: Any, state: Any, qd: Any, current: Any = None) -> np.ndarray:
        v, joints = np.asarray(qd), geared(np.asarray(state))
        effort, qdd = rows.effort(t, state, v, p, d)
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
            raise InputError("With `gain` the voltages need currents: give now.current as the last argument.")
        return made + r * np.nan_to_num(drive.current - np.asarray(current))

    return Control("voltages", rows.evaluator.coordinates, voltage)


def pd_gravity(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Efforts of springs and dampers between the rows and a trajectory, which hold the loads besides.

    T = Gᵀ (kp (y_d − y) + kd (ẏ_d − ẏ)) − Tᴸ. Where the trajectory rests, it is stable whatever the inertia.

    Parameters
    ----------
    mechanism, trajectory, wrt
        As in `computed_torque`; here the trajectory may have any number of rows.
    kp, kd : float, (P,) or (P, P) array_like
        Stiffness and damping, effort per position and per rate.

    Returns
    -------
    Control
        f(t, state, qd) → (..., M).

    Examples
    --------
    >>> import kic
    >>> arm = kic.load("horn-two-link")
    >>> stay = kic.trajectory.line([0.0, 0.0], [0.0, 0.0])
    >>> kic.controllers.pd_gravity(arm, stay, 10.0, 1.0)(0.0, arm.at([0.0, 0.0]).state, [0.0, 0.0]).tolist()
    [19.62, 4.905]
    """
    rows = _Rows(mechanism, trajectory, wrt, 1, dynamics=True, square=False)
    p, d = rows.gain("kp", kp), rows.gain("kd", kd)

    def effort(t: Any, state: Any, qd: Any) -> np.ndarray:
        now = rows(t, state)
        rate = now.wanted.qd - np.einsum("...pn,...n->...p", now.G, np.asarray(qd))
        force = _times(p, now.error) + _times(d, rate)
        return np.einsum("...pn,...p->...n", now.G, force) - now.results.load

    return Control("efforts", rows.evaluator.coordinates, effort)


def resolved_rate(
    mechanism: Mechanism, trajectory: Trajectory, kp: Any, wrt: str | Iterable[str] | None = None
) -> Control:
    """Rates that lead rows along a trajectory: q̇ = G⁻¹ (ẏ_d + kp (y_d − y)).

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
        return rows.solve(now, now.wanted.qd + _times(p, now.error))

    return Control("rates", rows.evaluator.coordinates, rate)


def resolved_acceleration(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Accelerations that lead rows along a trajectory: q̈ = G⁻¹ (ÿ_d + kd ė + kp e − q̇ᵀ H q̇).

    Parameters and errors as in `computed_torque`.

    Returns
    -------
    Control
        f(t, state, qd) → (..., M).
    """
    rows = _Rows(mechanism, trajectory, wrt, 2)
    p, d = rows.gain("kp", kp), rows.gain("kd", kd)

    def acceleration(t: Any, state: Any, qd: Any) -> np.ndarray:
        return rows.accelerated(rows(t, state), np.asarray(qd), p, d)

    return Control("accelerations", rows.evaluator.coordinates, acceleration)


def resolved_jerk(
    mechanism: Mechanism,
    trajectory: Trajectory,
    kp: Any,
    kd: Any,
    ka: Any,
    wrt: str | Iterable[str] | None = None,
) -> Control:
    """Jerks that lead rows along a trajectory, with e⃛ + ka ë + kd ė + kp e = 0.

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
        want = now.wanted
        rate = np.einsum("...pn,...n->...p", now.G, v)
        acceleration = np.einsum("...pn,...n->...p", now.G, w) + _form(now.H, v, v)
        bias = _form(now.H, w, v) + 2 * _form(now.H, v, w)
        bias = bias + np.einsum("...plmn,...l,...m,...n->...p", now.D, v, v, v)
        force = _times(a, want.qdd - acceleration) + _times(d, want.qd - rate) + _times(p, now.error)
        return rows.solve(now, want.qddd + force - bias)

    return Control("jerks", rows.evaluator.coordinates, jerk)


class _Now(NamedTuple):
    """What rows are at an instant, and what is wanted of them."""

    wanted: Motion
    error: np.ndarray
    G: np.ndarray
    H: Any
    D: Any
    results: Any


class _Rows:
    """The rows of a trajectory, prepared."""

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
        self.evaluator = mechanism.prepare(self.names, order, dynamics, wrt)
        # labels, and which values are known but for full turns
        table = self.evaluator.layouts[0]
        assert table is not None  # for the type checker: there are rows
        at = table.rows
        self.labels, freedoms = at.labels, len(self.evaluator.coordinates)
        wrong = [label for label, has in zip(at.labels, at.valued, strict=True) if not has]
        if wrong:
            raise InputError(
                f"{', '.join(wrong)} have no values that could be led. Take a trajectory of other rows."
            )
        if len(at.labels) != trajectory.size or (square and trajectory.size != freedoms):
            raise InputError(
                f"Expected a trajectory of {freedoms if square else len(at.labels)} rows of "
                f"'{mechanism.name}', got {trajectory.size} for {', '.join(at.labels)}."
            )
        self.turns = at.turns
        self.scaling = self.evaluator.scaling
        self.same = self.names == self.evaluator.coordinates

    def gain(self, name: str, value: Any) -> np.ndarray:
        """A matrix (P, P) of gains."""
        a, size = reals(value), self.trajectory.size
        if a is None or a.shape not in ((), (size,), (size, size)):
            raise InputError(
                f"Expected `{name}` to be a number, ({size},) or ({size}, {size}) numbers, got "
                f"{short_repr(value)}."
            )
        return a if a.ndim == 2 else np.diag(np.broadcast_to(a, size))

    def __call__(self, t: Any, state: Any) -> _Now:
        """The rows at a state, and the trajectory at a time."""
        r, wanted = self.evaluator(np.asarray(state)), self.trajectory(t, beyond="hold")
        parts = [r[name] for name in self.names]
        y, G = np.concatenate([x.value for x in parts], -1), np.concatenate([x.G for x in parts], -2)
        H, D = (
            None if getattr(parts[0], k) is None else np.concatenate([getattr(x, k) for x in parts], axis)
            for k, axis in (("H", -3), ("D", -4))
        )
        error = wanted.q - y
        turn = np.where(self.turns, 2 * np.pi * np.round(np.real(error) / (2 * np.pi)), 0.0)
        return _Now(wanted, error - turn, G, H, D, r)

    def accelerated(self, now: _Now, v: np.ndarray, p: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Accelerations of the coordinates that let errors die."""
        rate = now.wanted.qd - np.einsum("...pn,...n->...p", now.G, v)
        wanted = now.wanted.qdd + _times(d, rate) + _times(p, now.error)
        return self.solve(now, wanted - _form(now.H, v, v))

    def effort(
        self, t: Any, state: Any, v: np.ndarray, p: np.ndarray, d: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Efforts at the coordinates, and their accelerations, that let errors die."""
        now = self(t, state)
        qdd, r = self.accelerated(now, v, p, d), now.results
        bias = _form(r.P, v, v) + np.einsum("...kn,...n->...k", r.damping, v) - r.load
        return np.einsum("...kn,...n->...k", r.I, qdd) + bias, qdd

    def solve(self, now: _Now, u: np.ndarray) -> np.ndarray:
        """x of G x = u, or an error where the rows can not drive the mechanism."""
        if self.same:
            return u
        G = now.G
        s = np.linalg.svd(self.scaling.scaled(G), compute_uv=False)
        none = s[..., -1:] <= ERROR_FACTOR * self.scaling.error * len(self.labels)
        share = np.where(none, 0.0, s[..., -1:]) / np.where(none, 1.0, s[..., :1])
        least = float(np.min(share, initial=1.0))
        condition = 1 / least if least > 0 else np.inf
        if not condition < _WORST_CONDITION:
            raise SingularError(
                f"{', '.join(self.labels)} can not drive {', '.join(self.evaluator.coordinates)} here "
                f"(condition {condition:.1e}). Lead the trajectory around this posture, or take other rows.",
                condition=condition,
            )
        return np.linalg.solve(np.broadcast_to(G, (*u.shape[:-1], *G.shape[-2:])), u[..., None])[..., 0]


def _times(K: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("pq,...q->...p", K, x)


def _form(H: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...pmn,...m,...n->...p", H, a, b)
