"""Secondary objectives for the null-space motion of a redundant mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kic.errors import InputError, SingularError, invalid, short_repr
from kic.mechanism.configuration import Configuration, model_of
from kic.numerics.arguments import is_function, mapping, names_of
from kic.numerics.arrays import is_scalar, numbers, ordinary, reals
from kic.numerics.tolerances import EPS
from kic.tasks.operational_space.ellipsoids import manipulability
from kic.tasks.operational_space.pose import MovingRows, RowMotion
from kic.transfer.compiled_model import CompiledModel


class Objective(ABC):
    """A function h of the configuration that null-space motion decreases or increases.

    Its rates are z = ∓gain · ∂h/∂q, projected orthogonally on the null space of the task. The gain has the
    unit that turns the gradient into rates.

    Parameters
    ----------
    gain : float
        Gain; a negative gain reverses the objective.
    """

    def __init__(self, gain: Any = 1.0) -> None:
        found = reals(gain)
        if found is None or found.ndim:
            raise invalid("gain", "must be a number", gain)
        self.gain = float(ordinary("gain", found))

    @abstractmethod
    def rates(self, c: Any, wrt: Any, of: tuple[str, ...]) -> np.ndarray:
        """Return the rates z (..., M) at a configuration."""

    @abstractmethod
    def derivative(self, c: Any, wrt: Any, of: tuple[str, ...], qd: np.ndarray) -> np.ndarray:
        """Return the time derivative ż (..., M) for rates (..., M) of the coordinates."""


class _QuadraticObjective(Objective):
    """Objective h = ½ Σ k (x − x₀)² of rows x with a value."""

    _argument = ""

    def __init__(self, rows: Mapping[str, Any], gain: Any = 1.0) -> None:
        super().__init__(gain)
        if not isinstance(rows, Mapping) or not rows:
            raise invalid(self._argument, "must be a nonempty dict by row, such as {'joint1': …}", rows)
        self.names = names_of(rows, self._argument)
        self._rest = np.zeros(len(rows))
        self._stiffness = np.ones(len(rows))

    def _coefficients(self, c: Any, wrt: Any, order: int) -> Any:
        found = c.coefficients(self.names, order=order, wrt=wrt)
        if len(found.rows) != len(self.names):
            several = next(n for n, r in zip(self.names, (*found.rows, ""), strict=False) if n != r)
            message = f"'{several}' has several rows. Name single rows, such as '{found.rows[0]}'."
            raise InputError(message, key=self._argument, name=several)
        quasi = found.quasi.intersection(found.rows)
        if quasi:
            message = f"`{self._argument}` must name rows with a value, got '{min(quasi)}'."
            raise InputError(message, key=self._argument)
        return found

    def _difference(self, c: Any, u: Any) -> np.ndarray:
        """Return x − x₀ (..., P); angles known modulo full turns are reduced to ±π."""
        return model_of(c).rows(self.names, 1).layout.rows.shortest(u.values - self._rest)

    def rates(self, c: Any, wrt: Any, of: tuple[str, ...]) -> np.ndarray:
        """Return z = −gain · Gᵀ k (x − x₀), (..., M)."""
        u = self._coefficients(c, wrt, 1)
        return self._slope(u.G, self._difference(c, u))

    def _slope(self, G: np.ndarray, difference: np.ndarray) -> np.ndarray:
        """Return z (..., M) for the Jacobian (..., P, M) of the rows and differences x − x₀ (..., P)."""
        z: np.ndarray = ((-self.gain * self._stiffness * difference)[..., None, :] @ G)[..., 0, :]
        return z

    def derivative(self, c: Any, wrt: Any, of: tuple[str, ...], qd: np.ndarray) -> np.ndarray:
        """Return ż (..., M) for rates (..., M)."""
        u, k = self._coefficients(c, wrt, 2), self._stiffness
        curvature = np.einsum("...pmn,...m,p,...p->...n", u.H, qd, k, self._difference(c, u))
        return -self.gain * (curvature + np.einsum("...pn,p,...pm,...m->...n", u.G, k, u.G, qd))


class JointLimits(_QuadraticObjective):
    """Avoidance of joint limits: decreases h = 1/(2n) Σ w ((x − middle) / range)² of n rows (Liégeois).

    Parameters
    ----------
    limits : dict of str to (lower, upper)
        Limits of joints, distances, or any rows with a value, such as `Mechanism.limits`.
    gain : float
        Gain of the objective.
    weights : dict of str to float, optional
        Weights w of some rows; 1 for the other rows.

    Examples
    --------
    >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> away = kic.JointLimits({"joint4": (-3.07, -0.07)}, gain=2.0)
    >>> c.resolve_redundancy("flange", [0.0, 0.0, 0.0], secondary=away).qd.shape
    (7,)
    """

    _argument = "limits"

    def __init__(
        self, limits: Mapping[str, Any], *, gain: Any = 1.0, weights: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(limits, gain)
        pairs = [reals(pair) for pair in limits.values()]
        for name, pair in zip(limits, pairs, strict=True):
            if pair is None or pair.shape != (2,) or not pair[0] < pair[1]:
                message = (
                    f"Limits of '{name}' must be finite and increasing (lower, upper), got "
                    f"{short_repr(limits[name])}."
                )
                raise InputError(message, key="limits", name=name, got=limits[name])
        a = np.array(pairs)
        self._rest = a.mean(axis=1)
        w = np.ones(len(a))
        for name, value in (
            {} if weights is None else mapping("weights", weights, "rows to weights")
        ).items():
            found = reals(value)
            if name not in self.names or found is None or found.ndim or found < 0:
                message = (
                    f"`weights` must be non-negative numbers for rows with limits, got {short_repr(name)}: "
                    f"{short_repr(value)}."
                )
                raise InputError(message, key="weights", name=name, got=value)
            w[self.names.index(name)] = found
        self._stiffness = w / np.ptp(a, axis=1) ** 2 / len(a)


class PreferredConfiguration(_QuadraticObjective):
    """Motion of rows towards preferred values: decreases h = ½ Σ (x − x₀)².

    Parameters
    ----------
    values : dict of str to float
        Values of joints, or of any single rows with a value.
    gain : float
        Gain of the objective. Without a task, rows approach their values as exp(−gain · time).

    Examples
    --------
    >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> bent = kic.PreferredConfiguration({"joint3": 0.5})
    >>> r = c.resolve_redundancy("flange", [0.0, 0.0, 0.0], secondary=bent)
    >>> bool(r.qd[2] > 0)
    True
    """

    _argument = "values"

    def __init__(self, values: Mapping[str, Any], *, gain: Any = 1.0) -> None:
        super().__init__(values, gain)
        for k, (name, value) in enumerate(values.items()):
            found = reals(value)
            if found is None or found.ndim:
                raise invalid("values", f"must hold a number for '{name}'", value)
            self._rest[k] = found


class Manipulability(Objective):
    """Avoidance of singular configurations: increases w = √det(G Gᵀ) (Yoshikawa 1985).

    Parameters
    ----------
    of : str or list of str, optional
        Rows of G; by default those of the task.
    gain : float
        Gain of the objective. w has the units of the rows.

    Examples
    --------
    >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> r = c.resolve_redundancy("flange", [0.0, 0.0, 0.0], secondary=kic.Manipulability(gain=2.0))
    >>> bool(c.ellipsoid("flange").gradient() @ r.qd > 0)
    True
    """

    def __init__(self, of: str | Iterable[str] | None = None, *, gain: Any = 1.0) -> None:
        super().__init__(gain)
        self.of = None if of is None else names_of(of)

    def _parts(self, c: Any, wrt: Any, of: tuple[str, ...], order: int) -> tuple[Any, ...]:
        """Return the coefficients, the right inverse of G, w, and the gradient of log w."""
        u = c.coefficients(of if self.of is None else self.of, order=order, wrt=wrt)
        w, R = manipulability(u.G)
        bad = np.isfinite(u.G).all(axis=(-2, -1)) & np.isnan(w)
        if bad.any():
            raise SingularError(
                f"The manipulability of {', '.join(u.rows)} is zero here and has no gradient. Move "
                "away from this configuration with the task or another objective.",
                names=u.rows,
                failed=[tuple(index) for index in np.argwhere(bad).tolist()],
            )
        return u, R, w, np.einsum("...np,...pmn->...m", R, u.H)

    def rates(self, c: Any, wrt: Any, of: tuple[str, ...]) -> np.ndarray:
        """Return z = gain · ∂w/∂q, (..., M)."""
        _, _, w, slope = self._parts(c, wrt, of, 2)
        return self.gain * w[..., None] * slope

    def derivative(self, c: Any, wrt: Any, of: tuple[str, ...], qd: np.ndarray) -> np.ndarray:
        """Return ż (..., M) for rates (..., M)."""
        u, R, w, slope = self._parts(c, wrt, of, 3)
        dG = np.einsum("...pmn,...m->...pn", u.H, qd)
        N = np.eye(len(u.columns)) - R @ u.G
        dR = N @ np.swapaxes(dG, -1, -2) @ np.swapaxes(R, -1, -2) @ R - R @ dG @ R
        d_slope = np.einsum("...np,...pmn->...m", dR, u.H)
        d_slope = d_slope + np.einsum("...np,...plmn,...l->...m", R, u.D, qd)
        d_log_w = np.einsum("...m,...m->...", slope, qd)[..., None]
        return self.gain * w[..., None] * (d_slope + d_log_w * slope)


class NullSpaceMotion:
    """Rates z and their derivative for the argument `secondary`, which may be a sum of several parts.

    An array (..., M) holds rates z; a tuple holds z, ż and perhaps z̈. In a metric Q other than 1, the
    null-space part N z of objective rates may fail to decrease the objectives. With `projected`, z becomes
    its orthogonal projection P z = (1 − G⁺ G) z; it always decreases them, and N leaves it unchanged.
    """

    def __init__(self, given: Any, size: int, projected: bool = False) -> None:
        self.size = size
        self.parts: list[Any] = []
        several = isinstance(given, list) and any(isinstance(g, Objective) or is_function(g) for g in given)
        for one in given if several else [given]:
            if one is None:
                continue
            if isinstance(one, Objective) or is_function(one):
                self.parts.append(one)
                continue
            arrays = one if isinstance(one, tuple) and one and not is_scalar(one[0]) else (one,)
            if len(arrays) > 3:
                message = f"`secondary` must hold at most the three arrays (z, ż, z̈), got {len(arrays)}."
                raise InputError(message, key="secondary", got=len(arrays))
            self.parts.append([_numbers(a, size) for a in arrays])
        self._projected = projected and any(not isinstance(part, list) for part in self.parts)

    def part(self, batch: tuple[int, ...], members: Any) -> NullSpaceMotion:
        """Return the motion for the given members of a batch, with a flat batch."""
        if not self.parts:
            return self
        made = NullSpaceMotion(None, self.size)
        made._projected = self._projected
        for one in self.parts:
            if isinstance(one, list):
                shape = (*batch, self.size)
                one = [np.broadcast_to(a, shape).reshape(-1, self.size)[members] for a in one]
            made.parts.append(one)
        return made

    @property
    def batches(self) -> dict[str, tuple[int, ...]]:
        """Batch shapes of the given arrays."""
        arrays = [a for part in self.parts if isinstance(part, list) for a in part]
        return {f"secondary {k}": a.shape[:-1] for k, a in enumerate(arrays)}

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def time_dependent(self) -> bool:
        """True if rates were given with their time derivative."""
        return any(isinstance(part, list) and len(part) > 1 for part in self.parts)

    @property
    def has_callable(self) -> bool:
        """True if a part is a callable, which may have no derivative."""
        return any(not isinstance(part, list | Objective) for part in self.parts)

    def rates(self, c: Any, wrt: Any, of: tuple[str, ...], step: complex = 0.0) -> np.ndarray:
        """Return z (..., M) at a configuration that is a (complex) time step ahead of given arrays."""
        z = self._slope(c, wrt, of)
        if self._projected:
            z = _null_part(c.coefficients(of, order=1, wrt=wrt).G, z)[0]
        for part in self.parts:
            if isinstance(part, list):
                z = z + sum(a * (step if k else 1.0) for k, a in enumerate(part[:2]))
        return z

    def _slope(self, c: Any, wrt: Any, of: tuple[str, ...]) -> np.ndarray:
        """Return the rates (..., M) of objectives and functions, without projection."""
        z = np.zeros((*c.batch, self.size), c.state.dtype)
        for part in self.parts:
            if isinstance(part, Objective):
                z = z + part.rates(c, wrt, of)
            elif not isinstance(part, list):
                z = z + _numbers(part(c), self.size)
        return z

    def derivative(
        self, c: Any, wrt: Any, of: tuple[str, ...], qd: np.ndarray, moved: Any, step: complex = 0.0
    ) -> np.ndarray:
        """Return ż (..., M) for rates q̇.

        `moved` returns the configuration after a complex time step h, and h.
        """
        zd = np.zeros((*c.batch, self.size), np.result_type(c.state, qd))
        for part in self.parts:
            if isinstance(part, Objective):
                zd = zd + part.derivative(c, wrt, of, qd)
            elif not isinstance(part, list):
                zd = zd + _callable_derivative(part, moved)
        if self._projected:
            u = c.coefficients(of, order=2, wrt=wrt)
            z, multiplier = _null_part(u.G, self._slope(c, wrt, of))
            rate = np.einsum("...m,...pmn->...pn", qd, u.H)
            # d(P z) = P ż − P Ġᵀ l − G⁺ Ġ P z with l of z
            bent = zd - np.einsum("...pn,...p->...n", rate, multiplier)
            zd = _null_part(u.G, bent)[0] - _row_part(u.G, np.einsum("...pn,...n->...p", rate, z))
        for part in self.parts:
            if isinstance(part, list):
                zd = zd + sum((a * (step if k else 1.0) for k, a in enumerate(part[1:])), np.zeros(self.size))
        return zd


def _null_part(G: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the orthogonal projection P z (..., M) on the null space of G, and l = (G Gᵀ)⁻¹ G z (..., P)."""
    multiplier = _solve(G, np.einsum("...pn,...n->...p", G, z))
    return z - np.einsum("...pn,...p->...n", G, multiplier), multiplier


def _row_part(G: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return G⁺ y (..., M) for y (..., P)."""
    return np.einsum("...pn,...p->...n", G, _solve(G, y))


def _solve(G: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return (G Gᵀ)⁻¹ y (..., P).

    Where the task is singular, ε keeps the result finite; callers then damp it or raise an error.
    """
    size = np.sqrt((np.abs(G) ** 2).sum(axis=-1))
    size = np.where(size > 0, size, 1.0)
    unit = G / size[..., None]
    A = unit @ np.swapaxes(unit, -1, -2) + EPS * np.eye(G.shape[-2])
    solution: np.ndarray = np.linalg.solve(A, (y / size)[..., None])[..., 0] / size
    return solution


class NullSpaceRates:
    """Null-space rates z of one or several objectives at one state, for control loops.

    Rows of quadratic objectives are prepared; others are evaluated at a configuration.
    """

    def __init__(self, model: CompiledModel, given: Any, of: tuple[str, ...], wrt: Any) -> None:
        self._model, self._of, self._wrt = model, of, wrt
        self._size = model.transfer_for(wrt).size
        self._prepared: list[tuple[_QuadraticObjective, MovingRows]] = []
        # for objectives whose rows are coordinates: z = offset − slopes · q
        self._offset, self._slopes = np.zeros(self._size), np.zeros(self._size)
        labels = list(model.transfer_for(wrt).labels)
        self._others: list[Any] = []
        self._last: dict[int, RowMotion] = {}
        for one in given if isinstance(given, list) else [] if given is None else [given]:
            if isinstance(one, _QuadraticObjective):
                one.rates(self._configuration(model.reference_state[0]), wrt, of)  # checks the rows
                if set(one.names) <= set(labels) and not model.rows(one.names, 1).layout.rows.angles:
                    k = [labels.index(name) for name in one.names]
                    self._slopes[k] += one.gain * one._stiffness
                    self._offset[k] += one.gain * one._stiffness * one._rest
                else:
                    self._prepared.append((one, MovingRows(model, one.names, wrt)))
            elif isinstance(one, Objective) or is_function(one):
                self._others.append(one)
            else:
                message = (
                    "`secondary` must be kic.JointLimits, kic.Manipulability, kic.PreferredConfiguration, a "
                    f"function of the configuration, or a list of these; got {short_repr(one)}."
                )
                raise InputError(message, key="secondary", got=one)

    def __bool__(self) -> bool:
        return bool(self._prepared or self._others or self._slopes.any())

    def __call__(self, state: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return z (M,) at a state (S,) and coordinates (M,)."""
        z: np.ndarray = self._offset - self._slopes * q
        for k, (objective, rows) in enumerate(self._prepared):
            self._last[k] = now = rows.at(state, self._last.get(k))
            z += objective._slope(now.G, rows.shortest(now.value - objective._rest))
        if self._others:
            c = self._configuration(state)
            for one in self._others:
                z += (
                    one.rates(c, self._wrt, self._of)
                    if isinstance(one, Objective)
                    else _numbers(one(c), self._size)
                )
        return z

    def _configuration(self, state: np.ndarray) -> Configuration:
        return Configuration(self._model, (), np.array(state[None]))


def _numbers(value: Any, size: int) -> np.ndarray:
    a = numbers("secondary", value)
    if a.ndim == 0 or a.shape[-1] != size or a.dtype.kind == "O":
        message = (
            f"`secondary` must be rates (..., {size}), kic.JointLimits, kic.Manipulability, "
            f"kic.PreferredConfiguration, a callable, or a list of these; got {short_repr(value)}."
        )
        raise InputError(message, key="secondary", got=a.shape)
    if not np.isfinite(a).all():
        raise invalid("secondary", "must be finite", value)
    return a


def _callable_derivative(function: Any, moved: Any) -> np.ndarray:
    """Return the time derivative of a callable by a complex step."""
    if moved is None:
        message = "Jerks require the second derivative of a `secondary` callable. Give (z, ż, z̈) instead."
        raise InputError(message, key="secondary")
    ahead, h = moved()
    try:
        z = np.asarray(function(ahead))
    except (TypeError, ValueError) as error:
        raise InputError(_NOT_ANALYTIC, key="secondary") from error
    if z.dtype.kind != "c":
        raise InputError(_NOT_ANALYTIC, key="secondary")
    return z.imag / h


_NOT_ANALYTIC = (
    "Accelerations require the derivative of `secondary`, a complex step of the callable, but it does not "
    "propagate complex numbers. Build it from results of kic and analytic functions, or give (z, ż)."
)
