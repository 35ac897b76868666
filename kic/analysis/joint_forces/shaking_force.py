"""Shaking force and moment of moving bodies on ground, their harmonics, and counterweights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count as counting
from math import tau
from typing import Any, Literal

import numpy as np

from kic.analysis.joint_forces.joint_forces import driver_columns
from kic.description.parts import Point
from kic.description.units import row_unit
from kic.description.validation import GROUND
from kic.dynamics.dynamic_parameters import FIRST, INERTIAL, dynamic_parameters, inertial_numbers
from kic.dynamics.regressor import ZERO_RTOL, Regressor
from kic.errors import InputError, invalid, unknown
from kic.kinematics.outputs import WRENCH_LABELS
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import flag, integer, names_of, positive
from kic.numerics.arrays import require_real, vector
from kic.numerics.display import Batched, Printable, Summary
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable, batch_axes

# largest deviation of samples over a turn from equal steps, in turns, and of the force after a turn
TURN_STEP_ATOL, PERIOD_RTOL = 1e-6, 1e-6
# weight of the size of first moments in bounded least squares, relative to the forces
SMALL_RTOL = 1e-8
# places of counterweights that are tried around each joint, and steps that improve them
DIRECTIONS, COUNTERWEIGHT_STEPS_MAX = 72, 200
# complex steps of first moments, for derivatives
MOMENT_STEP = 1e-30
MOMENT_STEPS = 1j * MOMENT_STEP * np.eye(3)
FIRST_MOMENTS = INERTIAL[FIRST]
# powers of length in the ten numbers, less that of first moments
_POWERS = np.array([-1, 0, 0, 0, 1, 1, 1, 1, 1, 1])


@dataclass(frozen=True, eq=False, repr=False)
class Harmonics(Printable, Tabular):
    """Fourier series of the shaking force over a turn: Σ cosine[k] cos kθ + sine[k] sin kθ.

    Attributes
    ----------
    coordinate : str
        The angle θ.
    order : (K,) ndarray of int
        Orders k = 0, 1, …
    cosine, sine : (K, 6) ndarray
        Coefficients of force, then moment.
    """

    _one_line = ("coordinate", "order")

    coordinate: str
    order: np.ndarray
    cosine: np.ndarray
    sine: np.ndarray
    _units: tuple[str, str]

    @property
    def amplitude(self) -> np.ndarray:
        """Array (K, 6) of the amplitudes of all orders."""
        return np.hypot(self.cosine, self.sine)

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        made = [
            Variable(f"{row}.{key}", table[:, k], self._units[k > 2])
            for k, row in enumerate(WRENCH_LABELS)
            for key, table in (("cos", self.cosine), ("sin", self.sine))
        ]
        axis = TableAxis("order", self.order.tolist())
        return DataTable("harmonics of the shaking force", (axis,), tuple(made)).select(names)

    def summary(self) -> Summary:
        """Return a table of the amplitudes."""
        sheet = Summary(f"harmonics of the shaking force over a turn of {self.coordinate}")
        force, moment = self._units
        sheet.matrix(
            f"amplitudes ({force} and {moment})", [str(k) for k in self.order], WRENCH_LABELS, self.amplitude
        )
        return sheet


class ShakingForce(Batched, Tabular):
    """Force and moment that moving bodies exert on ground by inertia, and weight if given, in world axes.

    Attributes
    ----------
    force, moment : (..., 3) ndarray
        Force, and moment about `about`.
    about : (3,) ndarray
        Reference point of the moment.
    components : tuple of str
        Those of fx, fy, fz, mx, my, mz that are not zero up to rounding.
    regressor : Regressor
        The same as −Y π, with the rows fx, fy, fz, mx, my, mz about `about` and ten numbers of each body.
    mechanism : Mechanism
        The mechanism.

    Examples
    --------
    >>> turn = kic.load("four-bar").path({"A": np.linspace(0.0, 2 * np.pi, 72, endpoint=False)})
    >>> s = turn.shaking_force(10.0)
    >>> np.linalg.norm(s.force, axis=-1).max().round(1)
    np.float64(12.1)
    >>> s.harmonics(3).amplitude[1].round(2)
    array([5.97, 8.02, 0.  , 0.  , 0.  , 0.26])
    """

    _one_line = ("about", "batch")
    _per_member = ("force", 1)

    def __init__(
        self, mechanism: Mechanism, source: tuple[Any, Any], about: np.ndarray, regressor: Regressor
    ) -> None:
        self.mechanism, self.about, self.regressor, self._source = mechanism, about, regressor, source
        self._six = -(regressor.matrix @ regressor.values)
        self.force, self.moment = self._six[..., :3], self._six[..., 3:]

    def _terms(self) -> np.ndarray:
        """Return the size (..., 6) of force and moment if no terms cancel."""
        return np.asarray(np.abs(self.regressor.matrix) @ np.abs(self.regressor.values))

    @cached_property
    def components(self) -> tuple[str, ...]:
        """Tuple of the components that are not zero up to rounding."""
        shown = (np.abs(self._six) > ZERO_RTOL * self._terms()).reshape(-1, 6).any(axis=0)
        return tuple(name for name, some in zip(WRENCH_LABELS, shown, strict=True) if some)

    @property
    def _units(self) -> tuple[str, str]:
        """Pair of units of force and moment."""
        u = self.mechanism.units
        return u.force, f"{u.force} {u.length}"

    def curves(self) -> list[tuple[str, str, dict[str, np.ndarray]]]:
        """Return name, unit, and components that are not zero, of force and moment, for plots."""
        names = zip(("shaking force", "shaking moment"), self._units, (0, 3), strict=True)
        made = []
        for what, unit, first in names:
            places = [k for k in range(first, first + 3) if WRENCH_LABELS[k] in self.components]
            if places:
                made.append((what, unit, {WRENCH_LABELS[k]: self._six[..., k] for k in places}))
        return made

    def harmonics(self, count: int | None = None) -> Harmonics:
        """Compute the Fourier series over a turn of the first coordinate of the mechanism.

        The members must be samples of one turn in equal steps, and the motion must repeat itself: rates are
        constant, or those of a periodic motion. The end of the turn may be repeated.

        Parameters
        ----------
        count : int, optional
            Highest order, less than half the number of samples; by default at most 8.

        Returns
        -------
        Harmonics
            Coefficients of orders 0 to `count`.

        Raises
        ------
        InputError
            If the members are no turn in equal steps, are too few, or end with another force.

        Examples
        --------
        >>> turn = kic.load("slider-crank").path({"shaft": np.linspace(0.0, 2 * np.pi, 64)})
        >>> turn.shaking_force(10.0).harmonics(4).order
        array([0, 1, 2, 3, 4])
        """
        require_real("force", self.force)
        count = count if count is None else integer("count", count, 0)
        c, six = self._source[0], self._six
        name = next(iter(c.coordinates), "")
        if not name or row_unit(self.mechanism, name) != "rad":
            problem = "must begin with an angle that turns"
            raise invalid("coordinates", problem, c.coordinates, "Choose others by m.replace(coordinates=…).")
        given = np.broadcast_to(c.value(name), six.shape[:-1])
        if not np.isfinite(six).all():
            remedy = "Give configurations that can move with these rates."
            raise invalid("configuration", "must have a force in every member", given.shape, remedy)
        angle = _one_turn(name, given)
        size, gap = self._terms().max(), np.abs(six[-1] - six[0]).max()
        if len(angle) < len(six) and gap > PERIOD_RTOL * size:
            raise InputError(
                f"Motions must end as they begin, got forces that differ by {gap:.3g} after a turn of "
                f"'{name}'. Give rates and accelerations of a periodic motion.",
                key="qd",
                got=gap,
            )
        most = (len(angle) - 1) // 2
        count = min(8, most) if count is None else integer("count", count, 0, most)
        order = np.arange(count + 1)
        phase, scale = np.outer(order, angle), np.where(order > 0, 2.0, 1.0)[:, None] / len(angle)
        cosine, sine = (scale * (f(phase) @ six[: len(angle)]) for f in (np.cos, np.sin))
        return Harmonics(name, order, cosine, sine, self._units)

    def balance(
        self,
        of: str | Iterable[str],
        *,
        radius: Any,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        weights: Any = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    ) -> Balance:
        """Find counterweights that minimize the shaking force of these motions, by least squares.

        A counterweight is a point mass at a given distance from the joint of its body, the point to which the
        first moments of the body refer; see `results.Regressor`. Its mass and direction are found. Where mass
        and inertia of counterweights have no effect, their first moments are those of least size.

        Parameters
        ----------
        of : str or list of str
            Bodies with counterweights, or components of their first moments, such as "crank.mx".
        radius : float, or dict of str to float
            Distance of the counterweights from the joints of their bodies.
        bounds : dict of str to (2,) float, optional
            Smallest and largest first moment of a counterweight, by component, such as "crank.mx", with zero
            between them.
        weights : (6,) array_like
            Factors of fx, fy, fz, mx, my, mz before they are squared. Those of moments have the unit
            1/length.

        Returns
        -------
        Balance
            Counterweights, the forces that remain, and the mechanism with them.

        Raises
        ------
        InputError, UnknownNameError
            If an argument is wrong, or no counterweight changes the weighted forces.

        Notes
        -----
        Counterweights on crank and rocker of a four-bar remove its shaking force in every motion (Berkof and
        Lowen, 1969). In a slider-crank, one on the crank can only share the primary force between two
        directions. Where mass and inertia of counterweights have an effect, there may be several minima. The
        result is the best one that is found, and never worse than no counterweight.

        Examples
        --------
        >>> turn = kic.load("four-bar").path({"A": np.linspace(0.0, 2 * np.pi, 72, endpoint=False)})
        >>> balanced = turn.shaking_force(10.0).balance(["crank", "rocker"], radius=0.05)
        >>> balanced.mass.round(3)
        array([0.677, 4.636])
        >>> bool(abs(balanced.after.force).max() < 1e-11)
        True
        """
        require_real("force", self.force)
        r = self.regressor
        chosen = self._components(of)
        bodies = tuple(dict.fromkeys(name.rpartition(".")[0] for name in chosen))
        rows = require_real("weights", vector("weights", weights, 6))
        if not (rows >= 0).all() or not rows.any():
            raise invalid("weights", "must be nonnegative and not all zero", weights)
        far = _radii(radius, bodies)
        known = np.isfinite(r.matrix).all(axis=(-1, -2))
        if not known.any():
            remedy = "Give configurations that can move with these rates."
            raise invalid("configuration", "must have a member with a result", self.batch, remedy)
        places = np.array([[r.parameters.index(f"{body}.{key}") for key in INERTIAL] for body in bodies])
        columns = (r.matrix[known] * rows[:, None])[..., places].reshape(-1, len(bodies), 10)
        free = np.array([[f"{body}.{key}" in chosen for key in FIRST_MOMENTS] for body in bodies])
        limits = _limits(bounds, bodies, free)
        largest = np.abs(r.matrix[known][..., :3, places[:, FIRST]]).max(initial=0.0) * rows.max()
        free &= (np.abs(columns[..., FIRST]) > ZERO_RTOL * largest).any(axis=0)
        if not free.any():
            remedy = "Name others, give rates, or weights of other components."
            raise invalid("of", "must have counterweights that change the weighted forces", of, remedy)
        F = -(self._six[known] * rows).ravel()
        moments, rounding = np.zeros(free.shape), ZERO_RTOL * np.linalg.norm(self._terms()[known] * rows)
        if np.linalg.norm(F) > rounding:
            moments = _LeastSquares(columns, F, far, free, limits).moments()
            effect = np.abs(moments) * np.linalg.norm(columns[..., FIRST], axis=0)
            moments[effect <= rounding] = 0.0
        size = np.linalg.norm(moments, axis=1)
        points = np.array([r.points[body] for body in bodies])
        at = points + moments * (far / np.where(size > 0, size, 1.0))[:, None]
        m = self.mechanism
        for body, place, mass in zip(bodies, at, size / far, strict=True):
            if mass:
                m = m.add(Point(_new_name(m, body), body, place, mass=mass))
        return Balance(bodies, moments, points, size / far, at, self, self._with(m))

    def _components(self, of: Any) -> tuple[str, ...]:
        """Return the first moments of bodies, or single ones."""
        chosen: list[str] = []
        bodies = tuple(self.regressor.points)
        singles = [f"{body}.{key}" for body in bodies for key in FIRST_MOMENTS]
        for name in names_of(of, least=1):
            if name not in bodies and name not in singles:
                raise unknown("first moment", name, self.mechanism.name, [*bodies, *singles])
            chosen += [name] if name in singles else [f"{name}.{key}" for key in FIRST_MOMENTS]
        return tuple(dict.fromkeys(chosen))

    def _with(self, mechanism: Mechanism) -> ShakingForce:
        """Return the shaking force of the same motions of a mechanism with other masses."""
        r, tree = self.regressor, model_of(mechanism).tree
        changed = r.with_values(dynamic_parameters(tree, r.parameters, True).values)
        return ShakingForce(mechanism, self._source, self.about, changed)

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        made = driver_columns(*self._source, self.batch)
        made += [
            Variable(f"{GROUND}.{row}", self._six[..., k], self._units[k > 2])
            for k, row in enumerate(WRENCH_LABELS)
        ]
        return DataTable("shaking force", batch_axes(self.batch), tuple(made)).select(names)

    def summary(self) -> Summary:
        """Return a table of force and moment in one member."""
        sheet = Summary(f"shaking force on ground, and its moment about {self.about.tolist()}")
        index = sheet.member(self.batch)
        if index is not None:
            force, moment = self._units
            sheet.matrix(
                f"force ({force}) and moment ({moment})", [GROUND], WRENCH_LABELS, self._six[index][None]
            )
        return sheet


@dataclass(frozen=True, eq=False, repr=False)
class Balance(Printable):
    """Counterweights, and the shaking force before and after they are added.

    Attributes
    ----------
    bodies : tuple of str
        Bodies with counterweights.
    moment : (K, 3) ndarray
        Mass times vector from `point` to the counterweight, in the reference configuration.
    point : (K, 3) ndarray
        Joints of the bodies, to which first moments refer, in the reference configuration.
    mass : (K,) ndarray
        Masses of the counterweights.
    at : (K, 3) ndarray
        Their positions in the reference configuration.
    before, after : ShakingForce
        Of the same motions; `after` includes the masses and inertias of the counterweights.
    """

    _one_line = ("bodies", "mass")

    bodies: tuple[str, ...]
    moment: np.ndarray
    point: np.ndarray
    mass: np.ndarray
    at: np.ndarray
    before: ShakingForce
    after: ShakingForce

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism with counterweights as points "crank counterweight"."""
        return self.after.mechanism

    def summary(self) -> Summary:
        """Return tables of the counterweights and of the forces before and after."""
        sheet = Summary("balance of the shaking force")
        rows = np.column_stack([self.mass, self.at, np.linalg.norm(self.moment, axis=1)])
        u = self.mechanism.units
        heads = [
            f"mass ({u.mass})",
            *(f"{x} ({u.length})" for x in "xyz"),
            f"mass · radius ({u.mass} {u.length})",
        ]
        sheet.matrix("counterweights", self.bodies, heads, rows)
        both = [np.linalg.norm(x, axis=-1) for s in (self.before, self.after) for x in (s.force, s.moment)]
        facts = [[np.sqrt(np.nanmean(x**2)), np.nanmax(x)] for x in both]
        units = self.before._units
        names = [
            f"{key} {when} ({unit})"
            for when in ("before", "after")
            for key, unit in zip(("force", "moment"), units, strict=True)
        ]
        sheet.matrix("size over the motions", names, ["root mean square", "largest"], np.array(facts))
        return sheet


def _one_turn(name: str, given: np.ndarray) -> np.ndarray:
    """Return the angles (N,) of one turn in equal steps, without a repeated end."""
    angle = np.unwrap(given) if given.ndim == 1 else np.zeros(0)
    if len(angle) > 1 and abs(abs(angle[-1] - angle[0]) - tau) < TURN_STEP_ATOL * tau:
        angle = angle[:-1]
    steps = np.abs(np.diff(angle)) * len(angle) / tau
    # written so that NaN fails
    if len(steps) < 2 or not np.abs(steps - 1).max() < TURN_STEP_ATOL * len(angle):
        span = f", from {given[0]:.4g} to {given[-1]:.4g}" if given.ndim == 1 and given.size else ""
        raise InputError(
            f"Configurations must be one turn of '{name}' in equal steps, got {given.shape}{span}. Give "
            f"m.path({{'{name}': np.linspace(0, 2 * np.pi, 181)}}), for example.",
            key="configuration",
        )
    return angle


def _radii(radius: Any, bodies: tuple[str, ...]) -> np.ndarray:
    """Return the distances (K,) of the counterweights from the joints of their bodies."""
    if not isinstance(radius, Mapping):
        return np.full(len(bodies), positive("radius", radius))
    if set(radius) != set(bodies):
        raise invalid("radius", f"must have the keys {', '.join(bodies)}", tuple(radius))
    return np.array([positive(f"radius['{body}']", radius[body]) for body in bodies])


def _limits(bounds: Any, bodies: Sequence[str], free: np.ndarray) -> np.ndarray:
    """Return the smallest and largest values (2, K, 3) of first moments."""
    ends = np.stack([np.full(free.shape, -np.inf), np.full(free.shape, np.inf)])
    if bounds is not None and not isinstance(bounds, Mapping):
        raise invalid("bounds", "must be a dict, such as {'crank.mx': (-0.01, 0.01)}", bounds)
    places = {f"{bodies[i]}.{FIRST_MOMENTS[k]}": (i, k) for i, k in np.argwhere(free).tolist()}
    for name, pair in (bounds or {}).items():
        if name not in places:
            raise unknown("component", name, "`of`", tuple(places), quoted=False)
        low, high = require_real("bounds", vector("bounds", pair, 2, finite=False)).tolist()
        if not low <= 0 <= high or low == high:
            raise invalid("bounds", f"must be two numbers for '{name}' with zero between them", pair)
        ends[(slice(None), *places[name])] = low, high
    return ends


def _new_name(m: Mechanism, body: str) -> str:
    """Return a name for the counterweight of a body."""
    names = (f"{body} counterweight{f' {k}' * (k > 1)}" for k in counting(1))
    return next(name for name in names if name not in model_of(m).parts)


def _counterweight(x: np.ndarray, radius: float) -> np.ndarray:
    """Return the ten numbers (10,) about a joint of a mass at a distance from it, for its first moment x."""
    size = np.sqrt(x @ x)
    return inertial_numbers(size / radius, x * (radius / size), np.zeros((3, 3)), np.zeros(3))


def _directions(free: np.ndarray) -> np.ndarray:
    """Return unit vectors (S, 3) of the free components, on a pair of points, a circle or a sphere."""
    if free.sum() == 1:
        return np.vstack([np.eye(3)[free], -np.eye(3)[free]])
    made = np.zeros((DIRECTIONS, 3))
    k = np.arange(DIRECTIONS)
    if free.sum() == 2:
        made[:, free] = np.stack([np.cos(tau * k / DIRECTIONS), np.sin(tau * k / DIRECTIONS)], axis=1)
    else:  # Fibonacci's sphere
        height, angle = 1 - (2 * k + 1) / DIRECTIONS, tau * k / ((1 + np.sqrt(5)) / 2)
        flat = np.sqrt(1 - height**2)
        made[:] = np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=1)
    return made


@dataclass(frozen=True)
class _LeastSquares:
    """Counterweights on K bodies that minimize |F + columns · π|, with the ten numbers π of each.

    Attributes
    ----------
    columns, F : (N, K, 10), (N,)
        Weighted forces for unit numbers, and those without counterweights.
    radius : (K,)
        Distances from the joints.
    free, limits : (K, 3) bool, (2, K, 3)
        Components of the first moments that are found, and their limits.
    """

    columns: np.ndarray
    F: np.ndarray
    radius: np.ndarray
    free: np.ndarray
    limits: np.ndarray

    def moments(self) -> np.ndarray:
        """Return the first moments (K, 3)."""
        found, first = self._without_masses(), self.columns[..., FIRST][:, self.free]
        # effects of mass and inertia for unit first moments
        others = np.delete(self.columns * self.radius[:, None] ** _POWERS, FIRST, axis=-1)
        if np.abs(others).max() <= ZERO_RTOL * np.abs(first).max():
            return found
        # the same problem without units and with few rows; π(c x) = c π(x)
        K, size = len(self.radius), np.linalg.norm(self.F)
        unit = size / np.linalg.norm(first)
        _, R = np.linalg.qr(np.column_stack([self.columns.reshape(-1, 10 * K) * unit, self.F]) / size)
        limits, columns = self.limits / unit, R[:, :-1].reshape(len(R), K, 10)
        small = replace(self, columns=columns, F=R[:, -1], limits=limits)
        tried = [0 * found, *(small._polished(x) for x in (found / unit, small._around_joints()))]
        return unit * min(tried, key=lambda x: float(np.linalg.norm(small._forces(x))))

    def _without_masses(self) -> np.ndarray:
        """Return the first moments (K, 3) that are best, and smallest, if their masses had no effect."""
        from scipy.optimize import lsq_linear

        first, limits = self.columns[..., FIRST][:, self.free], self.limits[:, self.free]
        x = np.linalg.lstsq(first, -self.F, rcond=ZERO_RTOL)[0]
        if not ((limits[0] <= x) & (x <= limits[1])).all():
            # a small multiple of the moments is minimized, too, so that they are unique
            wide = np.vstack([first, SMALL_RTOL * np.linalg.norm(first) * np.eye(len(x))])
            x = lsq_linear(wide, np.append(-self.F, 0 * x), limits, method="bvls", tol=1e-14).x
        found = np.zeros(self.free.shape)
        found[self.free] = x
        return found

    def _around_joints(self) -> np.ndarray:
        """Return first moments (K, 3) of many nonnegative masses around the joints, within the limits.

        Masses in given places are a linear problem with one minimum, which is near the best counterweights.
        """
        from scipy.optimize import nnls

        places = [(b, u) for b, free in enumerate(self.free) if free.any() for u in _directions(free)]
        C = np.stack([self.columns[:, b] @ _counterweight(u, self.radius[b]) for b, u in places], axis=1)
        found, masses = np.zeros(self.free.shape), nnls(C, -self.F, maxiter=30 * len(places))[0]
        for (b, u), mass in zip(places, masses, strict=True):
            found[b] += mass * u
        return np.clip(found, *self.limits)

    def _polished(self, start: np.ndarray) -> np.ndarray:
        """Return the minimum near some first moments; moments of zero stay zero."""
        from scipy.optimize import least_squares

        size = np.linalg.norm(start, axis=1)
        some = self.free & (size > ZERO_RTOL * size.max())[:, None]
        if not some.any():
            return start

        def placed(x: np.ndarray) -> np.ndarray:
            found = np.zeros(self.free.shape)
            found[some] = x
            return found

        def jacobian(x: np.ndarray) -> np.ndarray:
            moments, J = placed(x), np.zeros((len(self.F), *self.free.shape))
            for b in np.flatnonzero(moments.any(axis=1)):
                stepped = [_counterweight(moments[b] + step, self.radius[b]).imag for step in MOMENT_STEPS]
                J[:, b] = self.columns[:, b] @ np.transpose(stepped) / MOMENT_STEP
            return J[:, some]

        tolerances = dict.fromkeys(("ftol", "xtol", "gtol"), 1e-15)
        found = least_squares(
            lambda x: self._forces(placed(x)), start[some], jacobian, self.limits[:, some],
            x_scale="jac", max_nfev=COUNTERWEIGHT_STEPS_MAX, **tolerances,
        )  # fmt: skip
        return placed(found.x)

    def _forces(self, moments: np.ndarray) -> np.ndarray:
        """Return F + columns · π (N,) for first moments (K, 3)."""
        parts = [
            self.columns[:, b] @ _counterweight(moments[b], self.radius[b])
            for b in np.flatnonzero(moments.any(axis=1))
        ]
        return np.asarray(sum(parts, self.F))


def shaking_force(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    *,
    about: Any = (0.0, 0.0, 0.0),
    wrt: str | Iterable[str] | None = None,
    gravity: bool = False,
    failures: Literal["raise", "mask"] = "raise",
) -> ShakingForce:
    """Compute the shaking force and moment of a motion: −ṗ and −L̇ of all moving bodies.

    This is the resultant of all forces that act on ground at joints, springs and motors, without the weight
    and without applied forces and moments. A gas force on a piston acts on the cylinder in the opposite
    direction, so that it does not shake the engine. Rotors (armature of joints) are not included.

    Parameters
    ----------
    qd, qdd : (..., M) array_like, optional
        Rates and accelerations of the coordinates, by default zero. Scalars are accepted for one coordinate.
    about : (3,) array_like
        Point to which the moment refers, in world coordinates.
    wrt : str or list of str, optional
        Coordinates of the motion, as in `coefficients`.
    gravity : bool
        True to add the weight of the moving bodies.
    failures : {"raise", "mask"}
        As in `coefficients`.

    Returns
    -------
    ShakingForce
        force and moment (..., 3), their harmonics over a turn, counterweights that balance them.

    Raises
    ------
    InertiaError
        If a moving body has no mass or inertia.
    InputError, SingularError
        As `inverse_dynamics`.

    Examples
    --------
    >>> m = kic.load("slider-crank")
    >>> s = m.at(0.5).shaking_force(100.0)
    >>> s.force.shape, s.table().columns
    ((3,), ('shaft', 'ground.fx', 'ground.fy', 'ground.fz', 'ground.mx', 'ground.my', 'ground.mz'))
    """
    model = model_of(configuration)
    place, gravity = require_real("about", vector("about", about, 3)), flag("gravity", gravity)
    moving = [body.name for body in model.description.bodies if model.tree.frame[body.name] >= 0]
    of = moving if model.masses.names else None  # raises an error if a mass or inertia is missing
    r = configuration.regressor(qd, qdd, of=of, wrt=wrt, loads=gravity, ground=True, failures=failures)
    r.matrix[..., 3:, :] -= np.cross(place, r.matrix[..., :3, :], axisb=-2, axisc=-2)
    return ShakingForce(model.description, (configuration, wrt), place, r)
