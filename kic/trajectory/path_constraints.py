"""Constraints along a path: limits of efforts, rates and motor voltages as functions of s, ṡ and s̈.

Without inductance the voltage V = R i + k_e u̇ is linear in the effort and the speed, so it is one more row.
With inductance it depends on the jerk: for a motion at r times the speed V is a cubic in r. The cubic is
determined from four speeds and solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.description import declared_limits
from kic.dynamics.drive_train import DriveTrain
from kic.errors import InputError, at_times, invalid, short_repr
from kic.kinematics.coefficients import Coefficients
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import entries, instance, is_function, names_of
from kic.numerics.arrays import as_numbers
from kic.numerics.polynomials import Piecewise, complement
from kic.trajectory.actuator_limits import FACETS_FEW_MAX, facets, needed
from kic.trajectory.trajectory import Naming, Trajectory

# jump of a rate, as a share of the largest rate, that is a corner of the path
CORNER_RTOL = 1e-9


@dataclass(frozen=True, eq=False)
class PathConstraints:
    """Constraints lower ≤ A s̈ + B ṡ² + C ṡ + D ≤ upper at both ends of each interval of a path.

    Attributes
    ----------
    names : tuple of str
        Label of each of the R rows, for messages.
    A, B, C, D : (L, 2, R) array_like, or broadcastable to it
        Coefficients at the start and at the end of each of L intervals, as limits from inside.
    lower, upper : (R,) array_like, or broadcastable to (L, 2, R)
        Limits; infinite values mean no limit.
    """

    names: tuple[str, ...]
    A: Any = 0.0
    B: Any = 0.0
    C: Any = 0.0
    D: Any = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf


@dataclass(frozen=True, eq=False, repr=False)
class PathSamples:
    """Path divided into intervals, with a mechanism on it: the argument of functions that return constraints.

    Attributes
    ----------
    s : (L + 1,)
        Ends of the intervals.
    first, second : (L, 2, M)
        Derivatives q′(s), q″(s) of the coordinates at the start and the end of each interval, as limits from
        inside.
    configuration : Configuration or None
        Configurations (L + 1,) of the mechanism.
    wrt : tuple of str or None
        The coordinates, for `wrt` in other methods.
    naming : Naming
        Names of the coordinates.
    """

    s: np.ndarray
    first: np.ndarray
    second: np.ndarray
    configuration: Configuration | None
    wrt: tuple[str, ...] | None
    naming: Naming

    def both(self, a: np.ndarray) -> np.ndarray:
        """Return values at grid points (L + 1, ...) as values at both ends of intervals (L, 2, ...)."""
        return np.stack([a[:-1], a[1:]], axis=1)

    def velocity(self, rate_limits: Any) -> PathConstraints:
        """Return the constraints on the rates u′ ṡ of coordinates, or of other rows."""
        rate_limits = self._declared("rate_limits", rate_limits)
        of, first, _ = self._rows("rate_limits", rate_limits)
        lower, upper = of.bounds("rate_limits", rate_limits)
        return PathConstraints(self._labels("velocity", of), C=first, lower=lower, upper=upper)

    def acceleration(self, acceleration_limits: Any) -> PathConstraints:
        """Return the constraints on the accelerations u′ s̈ + u″ ṡ² of coordinates, or of other rows."""
        of, first, second = self._rows("acceleration_limits", acceleration_limits)
        lower, upper = of.bounds("acceleration_limits", acceleration_limits)
        return PathConstraints(self._labels("acceleration", of), first, second, lower=lower, upper=upper)

    def _declared(self, key: str, limits: Any) -> Any:
        """Return the limits; True selects those of the mechanism."""
        c = self.configuration
        return limits if c is None else declared_limits(model_of(c).description, key, limits)

    def _rows(self, key: str, limits: Any) -> tuple[Naming, np.ndarray, np.ndarray]:
        """Return names and derivatives u′(s), u″(s) of the rows with limits, by default the coordinates."""
        c = self.configuration
        if c is None or not isinstance(limits, Mapping) or set(limits) <= set(self.naming.names):
            return self.naming, self.first, self.second
        names = names_of(limits, key, 1)
        with at_times(self.s):
            rows = c.coefficients(names, order=2, wrt=self.wrt)
        ends = Coefficients(rows.rows, rows.columns, self.both(rows.G), self.both(rows.needed("H", 2)))
        sizes = [len(model_of(c).rows((name,), 1).layout.rows.labels) for name in names]
        of = Naming(tuple(names), tuple(n if n > 1 else 0 for n in sizes), len(rows.rows))
        return of, ends.velocity(self.first), ends.acceleration(self.first, self.second)

    def effort(self, effort_limits: Any, *, actuators: str | Iterable[str] | None = None) -> PathConstraints:
        """Return the constraints on efforts at the coordinates, or at actuators; see `terms`.

        Names in `effort_limits` that are not coordinates denote actuators of the mechanism. With more
        actuators than degrees of freedom, some efforts within the limits must exist.
        """
        c = self.configuration
        if c is None:
            raise InputError("Effort limits require `mechanism`.", key="mechanism")
        model = model_of(c)
        if effort_limits is True:
            actuators = model.actuators(actuators)
            effort_limits = declared_limits(model.description, "effort_limits", True, actuators)
        by_name = isinstance(effort_limits, Mapping) and not set(effort_limits) <= set(self.naming.names)
        if actuators is None and not by_name:
            of, (_, *terms) = self.naming, self.terms()
        else:
            names = model.actuators(actuators)
            others = [] if actuators is not None else [name for name in effort_limits if name not in names]
            if others:
                raise InputError(
                    f"'{others[0]}' is neither a coordinate of the path nor an actuator of '{c.name}' "
                    f"({', '.join(names)}). List every row at which an effort acts in `actuators`.",
                    key="effort_limits",
                    name=others[0],
                    candidates=names,
                )
            of = Naming(names, (0,) * len(names), len(names))
            if len(names) > model.dof:
                return self._redundant(names, *of.bounds("effort_limits", effort_limits, rest=False))
            _, *terms = self.terms(names)
        lower, upper = of.bounds("effort_limits", effort_limits, rest=False)
        A, B, C, D = terms
        return PathConstraints(self._labels("effort", of), A, B, C, D, lower, upper)

    def _redundant(self, names: tuple[str, ...], lower: np.ndarray, upper: np.ndarray) -> PathConstraints:
        """Return the constraints for more actuators than degrees of freedom; see `actuator_limits`."""
        c = self.configuration
        assert c is not None  # for the type checker
        with at_times(self.s):
            G = c.coefficients(names, order=1, wrt=self.wrt).G
        normal, least, most = (self.both(a) for a in facets(G, lower, upper, names))
        A, B, C, D = (np.einsum("lekm,lem->lek", normal, a) for a in self.terms()[1:])
        arrays: tuple[np.ndarray, ...] = A, B, C, D, least, most
        if normal.shape[2] > FACETS_FEW_MAX:
            kept = {}
            for at in np.ndindex(A.shape[:2]):
                kept[at] = needed(np.stack([A[at], B[at], C[at]], axis=1), D[at], least[at], most[at])
            count = max(map(len, kept.values()))
            packed = [np.zeros((*A.shape[:2], count)) for _ in range(4)]
            packed += [np.full((*A.shape[:2], count), limit) for limit in (-np.inf, np.inf)]
            for at, rows in kept.items():
                for a, b in zip(packed, arrays, strict=True):
                    a[at][: len(rows)] = b[at][rows]
            arrays = tuple(packed)
        # every facet is the largest share of the limits that some combination of actuators needs
        return PathConstraints(("share of effort limits",) * arrays[0].shape[2], *arrays)

    def terms(
        self, actuators: str | Iterable[str] | None = None
    ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return names of efforts, and A, B, C, D (L, 2, M) such that T = A s̈ + B ṡ² + C ṡ + D.

        Let y(s) be the path of the coordinates at which the efforts act, one for each degree of freedom. Then
        A = I* y′, B = I* y″ + y′ᵀ P* y′, C = B* y′ with the damping matrix B*, and D = −Tᴸ.
        """
        c = self.configuration
        if c is None:
            raise InputError("Effort limits require `mechanism`.", key="mechanism")
        first, second, names = self.first, self.second, self.wrt
        if actuators is not None:
            with at_times(self.s):
                rows = c.coefficients(actuators, order=2, wrt=self.wrt)
            ends = Coefficients(rows.rows, rows.columns, self.both(rows.G), self.both(rows.H))
            first, second, names = ends.velocity(first), ends.acceleration(first, second), rows.rows
        wrt, count = self.wrt if actuators is None else actuators, len(self.s) - 1
        at_ends = c[np.arange(count)[:, None] + np.arange(2)]
        # the path as a motion with ṡ = 1
        with at_times(self.both(self.s)):
            A = at_ends.inverse_dynamics(qdd=first, wrt=wrt, loads=False)
            B = at_ends.inverse_dynamics(first, second, wrt=wrt, loads=False)
            D = at_ends.inverse_dynamics(wrt=wrt)
            # from the same motion, so that inertia cancels exactly
            C = at_ends.inverse_dynamics(first, second, wrt=wrt) - B - D
        return names or model_of(c).transfer_for(wrt).labels, A, B, C, D

    @staticmethod
    def _labels(what: str, of: Naming) -> tuple[str, ...]:
        return tuple(f"{what} of {label}" for label in of.labels)


def sample_path(
    path: Trajectory, mechanism: Mechanism | None, near: Configuration | None, s: np.ndarray
) -> PathSamples:
    """Return a path divided at s (L + 1,), which must include its knots, with a mechanism on it."""
    pieces: Piecewise = path.pieces.refined(s)
    first, second = (np.stack(pieces.end_derivatives(k), axis=1) for k in (1, 2))
    corner = np.abs(first[1:, 0] - first[:-1, 1]) > CORNER_RTOL * np.abs(first).max(axis=(0, 1), initial=0.0)
    if corner.any():
        k, n = np.argwhere(corner)[0].tolist()
        raise InputError(
            f"The path has a corner at {s[k + 1]:g}, where the rate of {path.naming.labels[n]} is "
            "discontinuous. Use a smooth path, or time its parts and concatenate them.",
            key="path",
            name=path.naming.labels[n],
            s=float(s[k + 1]),
        )
    of = named(path, mechanism)
    if mechanism is None:
        return PathSamples(s, first, second, None, path.names or None, of)
    motion = path.on(mechanism, s, near=near)
    return PathSamples(s, first, second, motion.configuration, motion.wrt, of)


def named(path: Trajectory, mechanism: Mechanism | None) -> Naming:
    """Return the names of the coordinates of a path, by default those of the mechanism."""
    of = path.naming
    if mechanism is not None:
        instance("mechanism", mechanism, Mechanism)
    if of.names or mechanism is None:
        return of
    names = mechanism.coordinates
    if len(names) != of.size:
        raise InputError(
            f"The path must be in the {len(names)} coordinates of '{mechanism.name}', {', '.join(names)}, "
            f"got one in {of.size}.",
            key="path",
            got=of.size,
        )
    return Naming(names, (0,) * of.size, of.size)


ConstraintFactory = Callable[[PathSamples], PathConstraints]


def path_constraints(
    samples: PathSamples,
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    actuators: str | Iterable[str] | None = None,
    rows: ConstraintFactory | Iterable[ConstraintFactory] = (),
) -> PathConstraints:
    """Return all constraints as one set of rows with full shapes; rows without any limit are omitted."""
    made = []
    if velocity is not None:
        made.append(samples.velocity(velocity))
    if acceleration is not None:
        made.append(samples.acceleration(acceleration))
    if effort is not None:
        made.append(samples.effort(effort, actuators=actuators))
    elif actuators is not None:
        raise InputError("`effort_limits` must be given with `actuators`.", key="actuators")
    made += [_checked(factory, samples) for factory in constraint_factories(rows)]
    shape = len(samples.s) - 1, 2
    names = tuple(name for one in made for name in one.names)
    parts = [
        np.concatenate(
            [np.zeros((*shape, 0))]
            + [np.broadcast_to(getattr(one, key), (*shape, len(one.names))) for one in made],
            axis=2,
        )
        for key in ("A", "B", "C", "D", "lower", "upper")
    ]
    held = (np.isfinite(parts[4]) | np.isfinite(parts[5])).any(axis=(0, 1))
    kept = tuple(name for name, there in zip(names, held, strict=True) if there)
    return PathConstraints(kept, *(part[:, :, held] for part in parts))


def constraint_factories(rows: Any) -> list[Any]:
    """Return functions of further constraints as a list; None gives an empty list."""
    if rows is None or is_function(rows):
        return [] if rows is None else [rows]
    return entries(rows)


def _checked(factory: Any, samples: PathSamples) -> PathConstraints:
    """Return the checked constraints of a user's function."""
    if not is_function(factory):
        raise invalid("rows", "must be functions that take PathSamples and return PathConstraints", factory)
    made = factory(samples)
    if not isinstance(made, PathConstraints):
        raise InputError(
            f"A function in `rows` must return PathConstraints, got {short_repr(made)}.", key="rows", got=made
        )
    shape = len(samples.s) - 1, 2, len(made.names)
    for key in ("A", "B", "C", "D", "lower", "upper"):
        a = as_numbers(getattr(made, key))
        if a is None or a.dtype != np.float64 or not _fits(a, shape, finite=key in "ABCD"):
            rule = f"of the rows {', '.join(made.names)} must be numbers that broadcast to {shape}"
            raise invalid(key, rule, getattr(made, key) if a is None else a.shape)
    if not (np.asarray(made.lower) <= np.asarray(made.upper)).all():
        raise InputError(f"`lower` of the rows {', '.join(made.names)} must be at most `upper`.", key="lower")
    return made


def _fits(a: np.ndarray, shape: tuple[int, ...], finite: bool) -> bool:
    """Return True if numbers broadcast to a shape, and are finite (or at least not NaN)."""
    try:
        fits = np.broadcast_shapes(a.shape, shape) == shape
    except ValueError:
        return False
    return fits and bool(np.isfinite(a).all() if finite else not np.isnan(a).any())


def static_violation(rows: PathConstraints, s: np.ndarray, letter: str) -> str | None:
    """Describe the row that most exceeds its limits at rest, or return None if all are within limits."""
    beyond = np.maximum(rows.D - rows.upper, rows.lower - rows.D)
    if not (beyond > 0).any():
        return None
    k, end, r = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
    return (
        f"at {letter} = {s[k + end]:.4g} the {rows.names[r]} is {rows.D[k, end, r]:.5g} at rest, "
        f"with limits {rows.lower[k, end, r]:.5g} and {rows.upper[k, end, r]:.5g}"
    )


# speed factors at which the cubic of the voltage is evaluated
SPEEDS = np.array([0.5, 1.0, 1.5, 2.0])
# relative rounding error of double roots, which may become complex; smallest inverse root
CONSTRAINT_ROOT_RTOL, INVERSE_ROOT_MIN = 1e-7, 1e-12


def voltage_rows(mechanism: Mechanism | None, limits: Any) -> ConstraintFactory:
    """Return a constraint function for the voltages of motors without inductance, for `fastest`.

    V = R τ/k_t + k_e u̇. The torque includes efforts, rotors, damping and friction.
    """
    train, lower, upper = _voltage_limits(mechanism, limits)
    inductive = [name for name, has in zip(train.names, train.is_inductive, strict=True) if has]
    if inductive:
        raise InputError(
            f"Motors have inductance ({', '.join(inductive)}), but accelerations of the fastest motion jump, "
            "and the current through an inductance cannot. Set it to zero by replace(motor, inductance=0.0), "
            "or use uniform() with a smooth motion.",
            key="voltage_limits",
            motors=tuple(inductive),
        )

    def rows(samples: PathSamples) -> PathConstraints:
        c = samples.configuration
        assert c is not None  # for the type checker: there is a mechanism
        with at_times(samples.s):
            joints = c.coefficients(train.joints, order=2, wrt=samples.wrt)
        G, H = samples.both(joints.G), samples.both(joints.needed("H", 2))
        shafts = train.shafts(Coefficients(joints.rows, joints.columns, G, H, quasi=joints.quasi))
        turn, zero = shafts.velocity(samples.first), np.zeros(1)
        # speeds and accelerations of shafts as coefficients of s̈, ṡ², ṡ and 1
        moved = (
            (zero, turn),
            (zero, shafts.acceleration(samples.first, samples.second)),
            (turn, zero),
            (zero, zero),
        )
        found = []
        for effort, (speed, acceleration) in zip(samples.terms()[1:], moved, strict=True):
            torque = train.torques(shafts, effort) + train.rotor_torques(speed, acceleration)
            found.append(train.steady_voltages(torque / train.torque_constant, speed))
        # dry friction opposes the motion, in which s increases
        held = train.steady_voltages(
            train.friction_torques(shafts, samples.first) / train.torque_constant, zero
        )
        A, B, C, D = (np.where(train.electrical, V, 0.0) for V in (*found[:3], found[3] + held))
        return PathConstraints(tuple(f"voltage of {name}" for name in train.names), A, B, C, D, lower, upper)

    return rows


def voltage_speed_intervals(
    trajectory: Trajectory,
    mechanism: Mechanism | None,
    near: Configuration | None,
    t: np.ndarray,
    limits: Any,
) -> np.ndarray:
    """Return closed intervals (n, 2) of the speed factor r at which the motion respects the voltage limits.

    The limits are checked on both sides of each time t (L + 1,), where accelerations and jerks may jump.
    """
    train, lower, upper = _voltage_limits(mechanism, limits)
    samples = sample_path(trajectory, mechanism, near, t)
    assert samples.configuration is not None  # for the type checker: there is a mechanism
    c = samples.configuration
    ends = Configuration(model_of(c), (len(t) - 1, 2), samples.both(c.state).reshape(-1, c.state.shape[-1]))
    third = np.stack(trajectory.pieces.refined(t).end_derivatives(3), axis=1)
    # V(r) is a cubic, determined by four values
    with at_times(samples.both(t)):
        seen = [
            ends.motor_demand(r * samples.first, r**2 * samples.second, r**3 * third, wrt=samples.wrt).voltage
            for r in SPEEDS
        ]
    powers = np.linalg.inv(np.vander(SPEEDS, increasing=True))
    V = np.where(train.electrical, np.einsum("pr,r...k->p...k", powers, np.array(seen)), 0.0)
    room = []
    for sign, limit in ((-1.0, upper), (1.0, lower)):
        held = np.isfinite(limit)
        cubics = sign * V.reshape(4, -1, len(limit))[:, :, held]
        rounding = 1e-13 * (np.abs(cubics[0]) + np.abs(limit[held]))
        cubics[0] -= sign * limit[held]
        cubics[0][np.abs(cubics[0]) <= rounding] = 0.0
        room.append(cubics.reshape(4, -1))
    return nonnegative_intervals(np.concatenate(room, axis=1))


def nonnegative_intervals(c: np.ndarray) -> np.ndarray:
    """Return closed intervals (n, 2) of r ≥ 0, in order, on which all cubics c (4, N) are at least 0."""
    size = np.abs(c).max(axis=0, initial=0.0)
    c = c[:, size > 0] / size[size > 0]
    ends = np.full((5, c.shape[1]), np.inf)
    ends[0], ends[1:4] = 0.0, _roots(c)
    ends = np.sort(ends, axis=0)
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isfinite(ends[1:]), (ends[:-1] + ends[1:]) / 2, 2 * ends[:-1] + 1)
        value = c[0] + middle * (c[1] + middle * (c[2] + middle * c[3]))
    shut = (ends[1:] > ends[:-1]) & (value < 0)
    ends[0] = np.where(c[0] < 0, -np.inf, 0.0)
    return complement(ends[:-1][shut], ends[1:][shut])


def _roots(c: np.ndarray) -> np.ndarray:
    """Return the positive roots (3, N) of cubics (4, N), infinite where there are fewer."""
    for _ in range(3):  # divide by roots at zero
        c = np.where(c[0] == 0, np.concatenate([c[1:], np.zeros_like(c[:1])]), c)
    there = c[0] != 0
    found = np.full((3, c.shape[1]), np.inf)
    c = c[:, there]
    # reversed polynomial in x = s/r, scaled so that its leading coefficient is the largest
    with np.errstate(divide="ignore"):
        s = np.min([np.abs(c[0] / c[k]) ** (1 / k) for k in (1, 2, 3)], axis=0)
    s = np.where(np.isfinite(s), s, 1.0)
    companion = np.zeros((c.shape[1], 3, 3))
    companion[:, 0] = (-c[1:] / c[0] * s ** np.arange(1, 4)[:, None]).T
    companion[:, 1, 0] = companion[:, 2, 1] = 1.0
    x = np.linalg.eigvals(companion).T
    real = (np.abs(x.imag) <= CONSTRAINT_ROOT_RTOL * np.abs(x)) & (x.real > INVERSE_ROOT_MIN)
    r = np.where(real, s / np.where(real, x.real, 1.0), np.inf)
    found[:, there] = np.where(real, _polished(c, r), np.inf)
    return found


def _polished(c: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return roots refined by one Newton step, where the step is small."""
    safe = np.where(np.isfinite(r), r, 1.0)
    value = c[0] + safe * (c[1] + safe * (c[2] + safe * c[3]))
    slope = c[1] + safe * (2 * c[2] + 3 * safe * c[3])
    step = value / np.where(slope != 0, slope, np.inf)
    return np.where(np.abs(step) < CONSTRAINT_ROOT_RTOL * safe, safe - step, r)


def intersection(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the intersection of two unions of closed intervals (n, 2), in order."""
    low = np.maximum(one[:, None, 0], other[None, :, 0]).reshape(-1)
    high = np.minimum(one[:, None, 1], other[None, :, 1]).reshape(-1)
    return np.stack([low, high], axis=1)[low <= high]


def _voltage_limits(mechanism: Mechanism | None, limits: Any) -> tuple[DriveTrain, np.ndarray, np.ndarray]:
    """Return the motors, and limits (K,) of their voltages."""
    if mechanism is None:
        raise InputError("Voltage limits require `mechanism`, which must have motors.", key="mechanism")
    train = model_of(mechanism).drive_train
    of = Naming(train.names, (0,) * len(train.names), len(train.names))
    lower, upper = of.bounds("voltage_limits", limits, rest=False)
    plain = ~train.electrical & (np.isfinite(lower) | np.isfinite(upper))
    if plain.any():
        names = [name for name, has in zip(train.names, plain, strict=True) if has]
        raise InputError(
            f"Motors without a circuit have no voltage to limit ({', '.join(names)}). Give a dict "
            "without these motors, and limit their efforts with `effort_limits`.",
            key="voltage_limits",
            motors=tuple(names),
        )
    return train, lower, upper
