"""Secondary objectives for the null-space motion of a redundant mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kic.errors import InputError, SingularError, invalid, short_repr
from kic.numerics.arguments import mapping, names_of
from kic.numerics.arrays import is_scalar, numbers, ordinary, reals
from kic.operational_space.ellipsoids import manipulability


class Objective(ABC):
    """A function h of the configuration that null-space motion decreases or increases.

    Its rates are z = ∓gain · ∂h/∂q. Only their null-space part takes effect. The gain has the unit that turns
    the gradient into rates.

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
    def rates(self, c: Any, wrt: Any, task: tuple[str, ...]) -> np.ndarray:
        """Return the rates z (..., M) at a configuration."""

    @abstractmethod
    def derivative(self, c: Any, wrt: Any, task: tuple[str, ...], qd: np.ndarray) -> np.ndarray:
        """Return the time derivative ż (..., M) for rates (..., M) of the coordinates."""


class _QuadraticObjective(Objective):
    """Objective h = ½ Σ k (x − x₀)² of rows x with a value."""

    _argument = ""

    def __init__(self, rows: Mapping[str, Any], gain: Any = 1.0) -> None:
        super().__init__(gain)
        if not isinstance(rows, Mapping) or not rows:
            raise invalid(self._argument, "must be a dict of rows such as 'joint1'", rows)
        self.names = names_of(rows, self._argument)
        self._rest = np.zeros(len(rows))
        self._stiffness = np.ones(len(rows))

    def _coefficients(self, c: Any, wrt: Any, order: int) -> Any:
        found = c.coefficients(self.names, order=order, wrt=wrt)
        if len(found.rows) != len(self.names):
            several = next(n for n, r in zip(self.names, (*found.rows, ""), strict=False) if n != r)
            raise InputError(
                f"'{several}' has several rows. Name single rows, such as '{found.rows[0]}'.",
                key=self._argument,
                name=several,
            )
        quasi = found.quasi.intersection(found.rows)
        if quasi:
            raise InputError(
                f"`{self._argument}` must name rows with a value, got '{min(quasi)}'.", key=self._argument
            )
        return found

    def _difference(self, c: Any, u: Any) -> np.ndarray:
        """Return x − x₀ (..., P); for cut joints, defined up to full turns, the smaller angle."""
        return c._model.rows(self.names, 1).layout.rows.shortest(u.values - self._rest)

    def rates(self, c: Any, wrt: Any, task: tuple[str, ...]) -> np.ndarray:
        """Return z = −gain · Gᵀ k (x − x₀), (..., M)."""
        u = self._coefficients(c, wrt, 1)
        return -self.gain * np.einsum("...pn,p,...p->...n", u.G, self._stiffness, self._difference(c, u))

    def derivative(self, c: Any, wrt: Any, task: tuple[str, ...], qd: np.ndarray) -> np.ndarray:
        """Return ż (..., M) for rates (..., M)."""
        u, k = self._coefficients(c, wrt, 2), self._stiffness
        curvature = np.einsum("...pmn,...m,p,...p->...n", u.H, qd, k, self._difference(c, u))
        return -self.gain * (curvature + np.einsum("...pn,p,...pm,...m->...n", u.G, k, u.G, qd))


class JointLimits(_QuadraticObjective):
    """Avoid joint limits: decreases h = 1/(2n) Σ w ((x − middle) / range)² over n rows (Liégeois 1977).

    Parameters
    ----------
    limits : dict of str to (lower, upper)
        Limits of joints, distances, or any rows with a value, such as `Mechanism.limits`.
    gain : float
        Gain of the objective.
    weights : dict of str to float, optional
        Weights w of some rows; 1 for the others.

    Examples
    --------
    >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> away = kic.JointLimits({"joint4": (-3.07, -0.07)}, gain=2.0)
    >>> c.resolve("flange", [0.0, 0.0, 0.0], secondary=away).qd.shape
    (7,)
    """

    _argument = "limits"

    def __init__(
        self, limits: Mapping[str, Any], gain: Any = 1.0, weights: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(limits, gain)
        pairs = [reals(pair) for pair in limits.values()]
        for name, pair in zip(limits, pairs, strict=True):
            if pair is None or pair.shape != (2,) or not pair[0] < pair[1]:
                raise InputError(
                    f"Limits of '{name}' must be finite and increasing (lower, upper), got "
                    f"{short_repr(limits[name])}.",
                    key="limits",
                    name=name,
                    got=limits[name],
                )
        a = np.array(pairs)
        self._rest = a.mean(axis=1)
        w = np.ones(len(a))
        for name, value in ({} if weights is None else mapping("weights", weights, "weights by row")).items():
            found = reals(value)
            if name not in self.names or found is None or found.ndim or found < 0:
                raise InputError(
                    f"`weights` must be non-negative numbers for rows with limits, got {short_repr(name)}: "
                    f"{short_repr(value)}.",
                    key="weights",
                    name=name,
                    got=value,
                )
            w[self.names.index(name)] = found
        self._stiffness = w / np.ptp(a, axis=1) ** 2 / len(a)


class PreferredConfiguration(_QuadraticObjective):
    """Move rows towards preferred values: decreases h = ½ Σ (x − x₀)².

    Parameters
    ----------
    values : dict of str to float
        Values of joints, or of any single rows with a value.
    gain : float
        Gain of the objective. Without a task, rows approach their values as exp(−gain · time).

    Examples
    --------
    >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> r = c.resolve("flange", [0.0, 0.0, 0.0], secondary=kic.PreferredConfiguration({"joint3": 0.5}))
    >>> bool(r.qd[2] > 0)
    True
    """

    _argument = "values"

    def __init__(self, values: Mapping[str, Any], gain: Any = 1.0) -> None:
        super().__init__(values, gain)
        for k, (name, value) in enumerate(values.items()):
            found = reals(value)
            if found is None or found.ndim:
                raise invalid("values", f"must hold a number for '{name}'", value)
            self._rest[k] = found


class Manipulability(Objective):
    """Avoid singular configurations: increases w = √det(G Gᵀ) (Yoshikawa 1985).

    Parameters
    ----------
    of : str or list of str, optional
        Rows of G; by default those of the task.
    gain : float
        Gain of the objective. w has the units of the rows.

    Examples
    --------
    >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> r = c.resolve("flange", [0.0, 0.0, 0.0], secondary=kic.Manipulability(gain=2.0))
    >>> bool(c.manipulability_gradient("flange") @ r.qd > 0)
    True
    """

    def __init__(self, of: str | Iterable[str] | None = None, gain: Any = 1.0) -> None:
        super().__init__(gain)
        self.of = None if of is None else names_of(of)

    def _parts(self, c: Any, wrt: Any, task: tuple[str, ...], order: int) -> tuple[Any, ...]:
        """Return the coefficients, the right inverse of G, w, and the gradient of log w."""
        u = c.coefficients(task if self.of is None else self.of, order=order, wrt=wrt)
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

    def rates(self, c: Any, wrt: Any, task: tuple[str, ...]) -> np.ndarray:
        """Return z = gain · ∂w/∂q, (..., M)."""
        _, _, w, slope = self._parts(c, wrt, task, 2)
        return self.gain * w[..., None] * slope

    def derivative(self, c: Any, wrt: Any, task: tuple[str, ...], qd: np.ndarray) -> np.ndarray:
        """Return ż (..., M) for rates (..., M)."""
        u, R, w, slope = self._parts(c, wrt, task, 3)
        dG = np.einsum("...pmn,...m->...pn", u.H, qd)
        N = np.eye(len(u.columns)) - R @ u.G
        dR = N @ np.swapaxes(dG, -1, -2) @ np.swapaxes(R, -1, -2) @ R - R @ dG @ R
        d_slope = np.einsum("...np,...pmn->...m", dR, u.H)
        d_slope = d_slope + np.einsum("...np,...plmn,...l->...m", R, u.D, qd)
        d_log_w = np.einsum("...m,...m->...", slope, qd)[..., None]
        return self.gain * w[..., None] * (d_slope + d_log_w * slope)


class NullSpaceMotion:
    """Rates z and their derivative for the argument `secondary`, which may be a sum of several parts.

    An array (..., M) holds rates z, a tuple z with ż and z̈.
    """

    def __init__(self, given: Any, size: int) -> None:
        self.size = size
        self.parts: list[Any] = []
        several = isinstance(given, list) and any(isinstance(g, Objective) or callable(g) for g in given)
        for one in given if several else [given]:
            if one is None:
                continue
            if isinstance(one, Objective) or callable(one):
                self.parts.append(one)
                continue
            arrays = one if isinstance(one, tuple) and one and not is_scalar(one[0]) else (one,)
            if len(arrays) > 3:
                raise InputError(
                    f"`secondary` must hold at most the three arrays (z, ż, z̈), got {len(arrays)}.",
                    key="secondary",
                    got=len(arrays),
                )
            self.parts.append([_numbers(a, size) for a in arrays])

    def part(self, batch: tuple[int, ...], members: Any) -> NullSpaceMotion:
        """Return the motion for some members of a batch, with a flat batch."""
        made = NullSpaceMotion(None, self.size)
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

    def rates(self, c: Any, wrt: Any, task: tuple[str, ...], step: complex = 0.0) -> np.ndarray:
        """Return z (..., M) at a configuration, which is a (complex) time step ahead of given arrays."""
        z = np.zeros((*c.batch, self.size), c.state.dtype)
        for part in self.parts:
            if isinstance(part, Objective):
                z = z + part.rates(c, wrt, task)
            elif isinstance(part, list):
                z = z + sum(a * (step if k else 1.0) for k, a in enumerate(part[:2]))
            else:
                z = z + _numbers(part(c), self.size)
        return z

    def derivative(
        self, c: Any, wrt: Any, task: tuple[str, ...], qd: np.ndarray, moved: Any, step: complex = 0.0
    ) -> np.ndarray:
        """Return ż (..., M) for rates q̇.

        moved() returns the configuration a complex time step h ahead, and h.
        """
        zd = np.zeros((*c.batch, self.size), np.result_type(c.state, qd))
        for part in self.parts:
            if isinstance(part, Objective):
                zd = zd + part.derivative(c, wrt, task, qd)
            elif isinstance(part, list):
                zd = zd + sum((a * (step if k else 1.0) for k, a in enumerate(part[1:])), np.zeros(self.size))
            else:
                zd = zd + _callable_derivative(part, moved)
        return zd


def _numbers(value: Any, size: int) -> np.ndarray:
    a = numbers("secondary", value)
    if a.ndim == 0 or a.shape[-1] != size or a.dtype.kind == "O":
        raise InputError(
            f"`secondary` must be rates (..., {size}), kic.JointLimits, kic.Manipulability, "
            f"kic.PreferredConfiguration, a callable, or a list of these; got {short_repr(value)}.",
            key="secondary",
            got=a.shape,
        )
    if not np.isfinite(a).all():
        raise invalid("secondary", "must be finite", value)
    return a


def _callable_derivative(function: Any, moved: Any) -> np.ndarray:
    """Return the time derivative of a callable by a complex step."""
    if moved is None:
        raise InputError(
            "Jerks require the second derivative of a `secondary` callable. Give (z, ż, z̈).", key="secondary"
        )
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
