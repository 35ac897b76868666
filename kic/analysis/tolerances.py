"""Effects of tolerances on results: mean, covariance and shares to second order, worst case, Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt, tau
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.description.description import find_part, held_coordinates
from kic.description.parts import Joint
from kic.description.units import row_unit
from kic.description.validation import part_of
from kic.errors import ConfigurationError, InputError, invalid, unknown
from kic.mechanism.configuration import Configuration, model_of, require_solved
from kic.mechanism.dimensions import vary
from kic.mechanism.locking import state_like
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import choice, generator, integer, is_function, mapping, names_of, positive
from kic.numerics.arrays import as_numbers
from kic.numerics.display import Batched, Summary
from kic.numerics.registration import with_methods
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable, batch_axes

if TYPE_CHECKING:
    from kic.plotting import plots as _plots

Distribution = Literal["normal", "uniform"]
# ending of the names of clearances
CLEARANCE = ".clearance"
# searches of the worst case, one number at a time
WORST_SWEEPS_MAX = 50
# rows with a smaller standard deviation, relative to the largest, do not vary
CONSTANT_SIGMA_RTOL = 1e-12
# most shares in the summary
SHARES_MAX = 12


@dataclass(frozen=True)
class _Source:
    """Source of variation: a coordinate with a tolerance, or the directions of a clearance."""

    limit: float
    distribution: str
    columns: tuple[str, ...]


@with_methods
@dataclass(frozen=True, eq=False, repr=False)
class ToleranceAnalysis(Batched, Tabular):
    """Rows of a mechanism whose dimensions have tolerances.

    Attributes
    ----------
    rows : tuple of str
        Names of the P rows, or numbers of the entries of a function's result.
    tolerances : dict of str to float
        Tolerances by name.
    nominal, mean : (..., P) ndarray
        Rows as described, and their mean to second order.
    covariance : (..., P, P) ndarray
        Covariance to second order.
    share : (..., P, K) ndarray
        Share of each tolerance in the variance of a row, with half of what two do together. Shares add up to
        1; they are NaN for rows that do not vary.
    configuration : Configuration
        The nominal configurations.
    coordinates : tuple of str
        Coordinates that keep their values.

    Examples
    --------
    >>> c = kic.load("four-bar").at({"A": 1.2})
    >>> found = c.tolerance_analysis("tip", {"coupler.length": 1e-4, "D.at.x": 2e-4, "B.clearance": 5e-5})
    >>> found.sigma.round(7).tolist(), found.share[0].round(3).tolist()
    ([3.23e-05, 2.94e-05, 0.0], [0.0, 0.002, 0.998])
    """

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        plot = _plots.plot_tolerance_analysis

    _one_line = ("rows", "batch")
    _per_member = ("nominal", 1)

    rows: tuple[str, ...]
    tolerances: dict[str, float]
    nominal: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    share: np.ndarray
    configuration: Configuration
    coordinates: tuple[str, ...]
    _problem: _Problem

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self._problem.mechanism

    @property
    def sigma(self) -> np.ndarray:
        """Array (..., P) of the standard deviations."""
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    @cached_property
    def worst_case(self) -> np.ndarray:
        """Array (..., P, 2) of the smallest and the largest value of each row within the tolerances.

        A search on the quadratic approximation, one tolerance after the other, finds the mechanism in which
        a row is extreme; its value there is exact. Normal distributions end at the tolerance.

        Raises
        ------
        ConfigurationError
            If such a mechanism cannot be assembled.
        """
        return self._problem.worst_case()

    def monte_carlo(
        self, count: int = 10_000, *, rng: Any = 0, failures: Literal["raise", "mask"] = "raise"
    ) -> np.ndarray:
        """Return the rows of random mechanisms, solved exactly.

        Parameters
        ----------
        count : int
            Number N of mechanisms.
        rng : int or numpy.random.Generator
            Seed.
        failures : {"raise", "mask"}
            Treatment of mechanisms that cannot be assembled: raise an error, or return NaN.

        Returns
        -------
        (N, ..., P) ndarray

        Raises
        ------
        ConfigurationError
            If a mechanism cannot be assembled.

        Examples
        --------
        >>> c = kic.load("four-bar").at({"A": 1.2})
        >>> found = c.tolerance_analysis("tip.x", {"coupler.length": 1e-3})
        >>> x = found.monte_carlo(1000)
        >>> x.shape, bool(abs(x.std() / found.sigma[0] - 1) < 0.1)
        ((1000, 1), True)
        """
        choice("failures", failures, ("raise", "mask"))
        drawn = self._problem.drawn(generator(rng), integer("count", count, 1))
        return self._problem.values(drawn, failures)

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        return DataTable(self.mechanism.name, batch_axes(self.batch), tuple(self._columns())).select(names)

    def _columns(self) -> Iterator[Variable]:
        if self.batch:
            yield from self.configuration.table(self.coordinates).variables
        axis = TableAxis("tolerance", list(self.tolerances))
        low, high = np.moveaxis(self.worst_case, -1, 0)
        numbers = {"nominal": self.nominal, "mean": self.mean, "sigma": self.sigma, "low": low, "high": high}
        for k, (row, unit) in enumerate(zip(self.rows, self._problem.units, strict=True)):
            for key, a in numbers.items():
                yield Variable(f"{row}.{key}", a[..., k], unit)
            yield Variable(f"{row}.share", self.share[..., k, :], "", (axis,))

    def summary(self) -> Summary:
        """Return tables of the rows, and of the largest shares in their variance."""
        sheet = Summary(f"{self.mechanism.name}: {len(self.tolerances)} tolerances")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        nominal, worst = self.nominal[index], self.worst_case[index]
        names = [f"{row} ({u})" if u else row for row, u in zip(self.rows, self._problem.units, strict=True)]
        heads = ["nominal", "mean shift", "σ", "worst −", "worst +"]
        numbers = [nominal, self.mean[index] - nominal, self.sigma[index], *(worst - nominal[:, None]).T]
        sheet.matrix("rows", names, heads, np.column_stack(numbers))
        inputs, varies = list(self.tolerances), np.isfinite(self.share[index]).all(axis=-1)
        if not varies.any():
            return sheet
        share = 100 * self.share[index][varies]
        order, rows = np.argsort(-share.max(axis=0), kind="stable")[:SHARES_MAX], np.flatnonzero(varies)
        heads = [self.rows[k] for k in rows]
        sheet.matrix("shares of the variance (%)", [inputs[k] for k in order], heads, share[:, order].T)
        if len(inputs) > len(order):
            sheet.say(f"{len(inputs) - len(order)} smaller shares are in `share`.")
        return sheet


def tolerance_analysis(
    configuration: Configuration,
    of: str | Iterable[str] | Callable[[Configuration], Any],
    tolerances: Mapping[str, float],
    *,
    wrt: str | Iterable[str] | None = None,
    distribution: Distribution | Mapping[str, Distribution] = "normal",
    sigmas: float = 3.0,
) -> ToleranceAnalysis:
    """Return what tolerances of dimensions and coordinates make of rows, or of any other result.

    Parameters
    ----------
    of : str, list of str, or callable
        Names of points, joints, distances or rows with values. Or a function of configurations (N, ...) that
        returns their results (N, ...), such as ``lambda c: np.ptp(c.value("tip.x"), axis=-1)`` for a stroke,
        or ``lambda c: c.dynamics().load[..., 0]``: the entries of dimensions follow those of coordinates.
    tolerances : dict of str to float
        Tolerances ± in the units of the mechanism by the names of

        - dimensions as in `vary`, such as ``"B.at.x"``, ``"crank.length"`` or ``"D.axis.rx"``;
        - coordinates in `wrt`, such as the error of a drive;
        - clearances of revolute, cylindrical and spherical joints, ``"B.clearance"``: the radius in which the
          centres of pin and hole, or of ball and socket, can differ.
    wrt : str or list of str, optional
        Coordinates that keep their values. By default the mechanism's own.
    distribution : {"normal", "uniform"}, or dict of str to those
        Distribution within the tolerances, also by name. Parts with clearance touch in any direction.
    sigmas : float
        Number of standard deviations of a normal distribution in its tolerance.

    Returns
    -------
    ToleranceAnalysis
        With the batch of the configurations; of a function without batch.

    Raises
    ------
    UnknownNameError
        If there is no such dimension, with the candidates.
    InputError
        If a tolerance is not positive, a joint has no clearance, rows have no values, or a function returns
        something else than numbers for all configurations.
    SingularError
        If loops cannot stay closed with a dimension, as in `vary`, or coordinates cannot drive the mechanism.
    ConfigurationError
        If a function is given, and a mechanism within the tolerances cannot be assembled.

    See Also
    --------
    Mechanism.vary : Dimensions as coordinates; a group of them can have one tolerance.
    Mechanism.calibrate : Dimensions from measured positions.

    Notes
    -----
    Tolerances are independent. For deviations x with the derivatives G and H of a row, the mean is ½ Σ Hᵢᵢ
    σᵢ² above the nominal value; the covariance is that of G x + ½ xᵀ H x, with the fourth moments of the
    distributions. For a function, central differences over the tolerances take the place of derivatives.

    Examples
    --------
    >>> turn = kic.load("four-bar").path({"A": np.linspace(1.2, 7.4, 25)})
    >>> found = turn.tolerance_analysis(["tip.x", "tip.y"], {"coupler.length": 1e-4, "A": 1e-3})
    >>> found.sigma.shape
    (25, 2)
    >>> found = turn.tolerance_analysis(lambda c: np.ptp(c.value("tip.x"), axis=-1), {"coupler.length": 1e-4})
    >>> found.rows, found.batch
    (('1',), ())
    """
    require_solved(configuration, "tolerance_analysis()")
    model_of(configuration).require_real("tolerance_analysis()", "Use the mechanism without it.")
    m: Any = model_of(configuration).description
    given = {name: positive(f"tolerances['{name}']", x) for name, x in _named(tolerances).items()}
    kinds = _distributions(distribution, given)
    fixed = m.coordinates if wrt is None else names_of(wrt, "wrt", 1)
    fixed = tuple(dict.fromkeys((*fixed, *held_coordinates(m))))
    sources: dict[str, _Source] = {}
    dimensions: dict[str, Any] = {}
    for name, limit in given.items():
        new = _dimensions(m, name, fixed)
        dimensions |= new
        kind = "contact" if name.endswith(CLEARANCE) else kinds[name]
        sources[name] = _Source(limit, kind, tuple(new) or (name,))
    c = configuration
    if dimensions:
        varied = vary(m, dimensions)
        states = state_like(varied, m, c)
        c = Configuration(model_of(varied), c.batch, states.reshape(-1, states.shape[-1]))
    problem = _Problem(m, c, fixed, of, list(sources.values()), positive("sigmas", sigmas))
    mean, covariance, parts = problem.moments()
    return ToleranceAnalysis(
        problem.rows, given, problem.nominal, mean, covariance, _shares(parts), configuration, fixed, problem
    )


def _named(tolerances: Any) -> dict[str, Any]:
    """Return tolerances by name; raise an error if there are none."""
    found = mapping("tolerances", tolerances, "names of dimensions to numbers")
    if not found:
        raise invalid("tolerances", "must contain at least one name", tolerances)
    return found


def _distributions(distribution: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the distribution of each tolerance."""
    words = ("normal", "uniform")
    if not isinstance(distribution, Mapping):
        return dict.fromkeys(names, choice("distribution", distribution, words))
    kinds = dict.fromkeys(names, words[0])
    for name, kind in mapping("distribution", distribution, "names of tolerances to distributions").items():
        if name not in kinds:
            raise unknown("tolerance", name, "`tolerances`", kinds, quoted=False)
        if name.endswith(CLEARANCE):
            message = f"`distribution` must not name clearances, whose parts touch, got '{name}'. Leave it out."
            raise InputError(message, key="distribution", name=name)
        kinds[name] = choice(f"distribution['{name}']", kind, words)
    return kinds


def _dimensions(m: Mechanism, name: str, fixed: tuple[str, ...]) -> dict[str, Any]:
    """Return the dimensions of a tolerance for `vary`, none for a coordinate."""
    if name in fixed:
        return {}
    if not name.endswith(CLEARANCE):
        part = model_of(m).parts.get(part_of(name))
        if isinstance(part, Joint) and name in part.components:
            raise InputError(
                f"`tolerances` must name coordinates in `wrt`, got '{name}', which is none of "
                f"{', '.join(fixed)}. Name its zero '{part_of(name)}.value', or give it in `wrt`.",
                key="tolerances",
                name=name,
            )
        return {name: name}
    joint: Any = find_part(m, owner := name.removesuffix(CLEARANCE))
    kind = joint.type if isinstance(joint, Joint) else type(joint).__name__
    if kind not in ("revolute", "cylindrical", "spherical"):
        raise InputError(
            f"`tolerances` must name clearances of revolute, cylindrical or spherical joints, got '{name}' "
            f"of type {kind}. Name its play as dimensions, such as '{owner}.at.x'.",
            key="tolerances",
            name=name,
        )
    axis: Any = np.zeros((0, 3)) if kind == "spherical" else np.reshape(joint.axis, (1, 3))
    directions = np.linalg.svd(axis)[2][len(axis) :]
    body = joint.bodies[0]
    return {
        f"{owner} clearance {k}": {f"{owner}.at.{body}.{c}": float(x) for c, x in zip("xyz", d, strict=True)}
        for k, d in enumerate(directions, 1)
    }


def _shares(parts: np.ndarray) -> np.ndarray:
    """Return the shares (..., P, K) of parts of variances, NaN for rows that do not vary."""
    total = parts.sum(axis=-1, keepdims=True)
    small = total <= CONSTANT_SIGMA_RTOL**2 * total.max(initial=0.0)
    return np.where(small, np.nan, parts / np.where(small, 1.0, total))


class _Problem:
    """Rows of a mechanism as functions of deviations (K,) from tolerances.

    Attributes
    ----------
    rows : tuple of str
        The P rows.
    nominal : (..., P)
        Their values without deviations.
    G, H : (..., P, K), (..., P, K, K)
        Their derivatives.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        nominal: Configuration,
        fixed: tuple[str, ...],
        of: Any,
        sources: list[_Source],
        sigmas: float,
    ) -> None:
        self.mechanism, self.configuration, self.of, self.sources = mechanism, nominal, of, sources
        self.groups: list[list[int]] = []
        columns: list[str] = []
        for source in sources:
            self.groups.append([*range(len(columns), len(columns) + len(source.columns))])
            columns += source.columns
        self.columns = columns
        self.names = tuple(dict.fromkeys((*fixed, *columns)))
        self.limit = np.array([source.limit for source in sources])
        self.sigma = np.ones(len(columns))
        # fourth moments, relative to variances: E[xᵢ² xⱼ²] / (σᵢ² σⱼ²)
        self.fourth = np.ones((len(columns), len(columns)))
        for source, own in zip(sources, self.groups, strict=True):
            n = len(own)
            size, mixed, pure = {
                "normal": (sigmas, 1.0, 3.0),
                "uniform": (sqrt(3.0), 1.0, 9 / 5),
                "contact": (sqrt(n), n / (n + 2), 3 * n / (n + 2)),
            }[source.distribution]
            self.sigma[own] = source.limit / size
            self.fourth[np.ix_(own, own)] = mixed
            self.fourth[own, own] = pure
        if is_function(of):
            self._differences()
        else:
            self._coefficients()

    def _coefficients(self) -> None:
        """Find the rows and their derivatives by influence coefficients."""
        c = self.configuration
        found = c.coefficients(self.of, order=2, wrt=self.names)
        places = [found.columns.index(name) for name in self.columns]
        m = model_of(c).description
        self.rows, self.units = found.rows, [row_unit(m, name) for name in found.rows]
        self.angles = np.array([unit == "rad" for unit in self.units])
        self.nominal = c.value(list(self.rows)).reshape(*c.batch, len(self.rows))
        self.G, self.H = found.G[..., places], found.H[..., places, :][..., places]

    def _differences(self) -> None:
        """Find the results of a function, and their derivatives by differences.

        With steps √κ σ, differences contain the third derivatives in the covariance of normal deviations.
        """
        K = len(self.columns)
        h = self.sigma * np.sqrt(np.diagonal(self.fourth))
        steps, (i, j) = np.diag(h), np.triu_indices(K, 1)
        pairs = steps[i] + steps[j]
        x = np.concatenate([np.zeros((1, K)), steps, -steps, pairs, -pairs])
        first, up, down, both, neither = np.split(self._results(x), np.cumsum([1, K, K, len(i)]))
        self.nominal = first[0]
        self.rows = tuple(str(k + 1) for k in range(len(self.nominal)))
        self.units, self.angles = [""] * len(self.rows), np.zeros(len(self.rows), dtype=bool)
        self.G = ((up - down) / (2 * h[:, None])).T
        sums = up + down - 2 * self.nominal
        self.H = np.zeros((len(self.rows), K, K))
        self.H[:, range(K), range(K)] = (sums / h[:, None] ** 2).T
        mixed = (both + neither - 2 * self.nominal - sums[i] - sums[j]) / (2 * h[i] * h[j])[:, None]
        self.H[:, i, j] = self.H[:, j, i] = mixed.T

    def moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the mean (..., P), covariance (..., P, P), and parts (..., P, K) of the variance."""
        L, Q = self.G * self.sigma, self.H * np.multiply.outer(self.sigma, self.sigma)
        pure = np.diagonal(Q, axis1=-2, axis2=-1)
        mixed = self.fourth * (1.0 - np.eye(len(self.sigma)))
        # sums over the first of two deviations remain, for the shares
        squares = np.einsum("...pi,...qj,ij->...pqi", pure, pure, (self.fourth - 1.0) / 4)
        products = np.einsum("...pij,...qij,ij->...pqi", Q, Q, mixed / 2)
        parts = np.einsum("...pi,...qi->...pqi", L, L) + squares + products
        own = np.diagonal(parts, axis1=-3, axis2=-2).swapaxes(-1, -2)
        shares = np.stack([own[..., group].sum(axis=-1) for group in self.groups], axis=-1)
        return self.nominal + pure.sum(axis=-1) / 2, parts.sum(axis=-1), shares

    def worst_case(self) -> np.ndarray:
        """Return the extreme values (..., P, 2)."""
        x = np.stack([self._extreme(sign * self.G, sign * self.H) for sign in (-1.0, 1.0)])
        # rows (P) in front of the batch
        found = self.values(np.moveaxis(x, -2, 1))
        return np.asarray(np.einsum("sp...p->...ps", found))

    def _extreme(self, G: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return deviations (..., P, K) that make quadratic approximations large."""
        x = np.zeros(G.shape)
        for limit, own in zip(self.limit, self.groups, strict=True):
            x[..., own[0]] = limit
        for _ in range(WORST_SWEEPS_MAX):
            last = x.copy()
            for limit, own in zip(self.limit, self.groups, strict=True):
                slope = G[..., own] + np.einsum("...ij,...j->...i", H[..., own, :], x)
                if len(own) > 1:
                    size = np.linalg.norm(slope, axis=-1, keepdims=True)
                    turned = limit * slope / np.where(size > 0, size, 1.0)
                    x[..., own] = np.where(size > 0, turned, x[..., own])
                    continue
                (k,) = own
                curved, slope = H[..., k, k], slope[..., 0] - H[..., k, k] * x[..., k]
                inner = np.clip(-slope / np.where(curved < 0, curved, -1.0), -limit, limit)
                x[..., k] = np.where(curved < 0, inner, np.copysign(limit, slope))
            if np.array_equal(x, last):
                break
        return x

    def drawn(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random deviations (count, 1, ..., K)."""
        x = np.empty((count, len(self.columns)))
        for source, own in zip(self.sources, self.groups, strict=True):
            if source.distribution == "uniform":
                x[:, own] = rng.uniform(-source.limit, source.limit, (count, 1))
                continue
            x[:, own] = rng.standard_normal((count, len(own)))
            if source.distribution == "contact":
                x[:, own] *= source.limit / np.linalg.norm(x[:, own], axis=1, keepdims=True)
            else:
                x[:, own] *= self.sigma[own]
        return x.reshape(count, *[1] * (self.nominal.ndim - 1), x.shape[-1])

    def values(self, x: np.ndarray, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Return the rows (..., P) for deviations (..., K)."""
        if is_function(self.of):
            return self._results(x.reshape(-1, x.shape[-1]), failures).reshape(*x.shape[:-1], -1)
        found = self._at(x, failures).value(list(self.rows))
        moved = found.reshape(*found.shape[: x.ndim - 1], len(self.rows)) - self.nominal
        moved[..., self.angles] = (moved[..., self.angles] + pi) % tau - pi
        return np.asarray(self.nominal + moved)

    def _at(self, x: np.ndarray, failures: Literal["raise", "mask"] = "raise") -> Configuration:
        """Return configurations (...) for deviations (..., K), which broadcast with the nominal ones."""
        c = self.configuration
        values = {name: c.value(name) for name in self.names}
        for k, name in enumerate(self.columns):
            values[name] = values[name] + x[..., k]
        m: Any = model_of(c).description
        try:
            return m.at(values, near=c, failures=failures)
        except ConfigurationError as error:
            reason, *_ = error.reasons
            raise ConfigurationError(
                f"`tolerances` must leave '{m.name}' assembled, but some mechanisms within them are not: "
                f"{reason}. Give smaller tolerances.",
                key="tolerances",
                failed=error.failed,
            ) from error

    def _results(self, x: np.ndarray, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Return the results (N, P) of the function for deviations (N, K)."""
        c = self._at(x.reshape(len(x), *[1] * len(self.configuration.batch), -1), failures)
        returned = self.of(c)
        found = as_numbers(returned)
        if found is None or found.dtype != np.float64 or not found.ndim or len(found) != len(x):
            rule = f"must return numbers ({len(x)}, …) for configurations {c.batch}"
            raise invalid("of", rule, returned, "Keep the first axis.")
        if not np.isfinite(found[c.ok.reshape(len(x), -1).all(axis=1)]).all():
            raise invalid("of", "must return finite numbers", returned)
        return found.reshape(len(x), -1)
