"""Effects of tolerances on results: mean, covariance and shares to second order, worst case, Monte Carlo."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count as counting
from math import ceil, prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.analysis.tolerances.deviations import Contributor, Deviations
from kic.description.description import find_part, held_coordinates
from kic.description.joint_types import BALL_TYPES
from kic.description.parts import Body, Frame, Joint
from kic.description.units import row_unit
from kic.description.validation import part_of
from kic.dynamics.regressor import ZERO_RTOL
from kic.errors import (
    ConfigurationError,
    DegreesWarning,
    InputError,
    SingularError,
    UnknownNameError,
    counted,
    invalid,
    unknown,
)
from kic.kinematics.outputs import XYZ
from kic.mechanism.configuration import Configuration, flat_states, model_of, require_solved, row_sizes
from kic.mechanism.dimensions import vary_as_drawn
from kic.mechanism.locking import configuration_like, kept_rows, values_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import choice, generator, integer, is_function, mapping, names_of, positive
from kic.numerics.arrays import as_numbers
from kic.numerics.display import Batched, Summary
from kic.numerics.registration import with_methods
from kic.numerics.rotations import wrap_to_pi
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable, batch_axes

if TYPE_CHECKING:
    from kic.plotting import plots as _plots

Distribution = Literal["normal", "uniform"]
Failures = Literal["raise", "mask"]
# ending of the names of clearances, and joints that have them
CLEARANCE, CLEARANCE_TYPES = ".clearance", ("revolute", "cylindrical", "spherical")
# smallest difference of exact extreme values from quadratic ones that is remarked on, relative to deviations
CUBIC_SHARE_MIN = 0.1
# rounding errors of differences of a function's results, relative to the largest
DIFFERENCE_RTOL = 1e-12
# largest difference of a function's results with dimensions as coordinates, relative to their size
SAME_RESULT_RTOL = 1e-6
# most configurations that are solved at once
SOLVED_AT_ONCE_MAX = 10**6
# most shares in the summary
SHARES_MAX = 12


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
        Share of each tolerance in the variance of a row, with half of the variance that it causes together
        with another one. Shares add up to 1; they are NaN for rows that do not vary.
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
        return model_of(self.configuration).description

    @property
    def sigma(self) -> np.ndarray:
        """Array (..., P) of the standard deviations."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=-2, axis2=-1), 0.0))

    @property
    def worst_case(self) -> np.ndarray:
        """Array (..., P, 2) of the smallest and the largest value of each row within the tolerances.

        A search on the quadratic approximation finds the mechanism in which a row is extreme; its value there
        is exact. Normal distributions end at the tolerance.

        Raises
        ------
        ConfigurationError
            If such a mechanism cannot be assembled.
        """
        found = self._problem.extremes[0]
        failed = [tuple(index) for index in np.argwhere(np.isnan(found).any(axis=(-2, -1))).tolist()]
        if failed:
            where = f" of members {', '.join(map(str, failed[:5]))}" * bool(self.batch)
            raise _not_assembled(self.mechanism.name, f"in the worst case{where}", failed)
        return found

    def monte_carlo(self, count: int = 10_000, *, rng: Any = 0, failures: Failures = "raise") -> np.ndarray:
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
        return self._problem.sample(generator(rng), integer("count", count, 1), failures)

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        return DataTable(self.mechanism.name, batch_axes(self.batch), tuple(self._columns())).select(names)

    def _columns(self) -> Iterator[Variable]:
        if self.batch:
            yield from self.configuration.table(self.coordinates).variables
        axis = TableAxis("tolerance", list(self.tolerances))
        low, high = np.moveaxis(self._problem.extremes[0], -1, 0)
        numbers = {"nominal": self.nominal, "mean": self.mean, "sigma": self.sigma, "low": low, "high": high}
        for k, (row, unit) in enumerate(zip(self.rows, self._problem.units, strict=True)):
            for key, a in numbers.items():
                yield Variable(f"{row}.{key}", a[..., k], unit)
            yield Variable(f"{row}.share", self.share[..., k, :], "", (axis,))

    def summary(self) -> Summary:
        """Return tables of the rows, and of the largest shares in their variance."""
        sheet = Summary(f"{self.mechanism.name}: {counted(len(self.tolerances), 'tolerance')}")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        nominal, extremes = self.nominal[index], self._problem.extremes
        worst, quadratic = (a[index] for a in extremes)
        names = [f"{row} ({u})" if u else row for row, u in zip(self.rows, self._problem.units, strict=True)]
        heads = ["nominal", "mean shift", "σ", "worst −", "worst +"]
        numbers = [nominal, self.mean[index] - nominal, self.sigma[index], *(worst - nominal[:, None]).T]
        sheet.matrix("rows", names, heads, np.column_stack(numbers))
        if lost := int(np.isnan(extremes[0]).any(axis=(-2, -1)).sum()):
            where = f" in {counted(lost, 'member')}" * bool(self.batch)
            sheet.say(f"The worst case cannot be assembled{where}.")
        varies = np.isfinite(self.share[index]).all(axis=-1)
        far = np.abs(worst - quadratic) > CUBIC_SHARE_MIN * np.abs(quadratic - nominal[:, None])
        if cubic := [self.rows[k] for k in np.flatnonzero(far.any(axis=-1) & varies)]:
            sheet.say(
                f"Second order does not describe {', '.join(cubic)} within the tolerances; see `monte_carlo`."
            )
        inputs = list(self.tolerances)
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
    """Find the effects of tolerances of dimensions and coordinates on rows, or on any other result.

    Parameters
    ----------
    of : str, list of str, or callable
        Names of points, joints, distances or rows with values. Or a function of configurations (N, ...) that
        returns their results (N, ...), such as ``lambda c: np.ptp(c.value("tip.x"), axis=-1)`` for a stroke,
        or ``lambda c: c.dynamics().load[..., 0]``: the entries of dimensions follow those of coordinates.
        It must be smooth. Results with functions cannot be pickled if these cannot.
    tolerances : dict of str to float
        Tolerances ± in the units of the mechanism by the names of

        - dimensions as in `vary`, such as ``"crank.length"``, ``"B.at.crank.x"`` of a hole in the crank,
          or ``"tip.at.y"``; ``"B.at.x"`` moves the joint in both bodies;
        - coordinates in `wrt`, such as the error of a drive;
        - clearances of revolute, cylindrical and spherical joints, ``"B.clearance"``: the distance by which
          the centres of pin and hole, or of ball and socket, can differ, half the difference of diameters.
    wrt : str or list of str, optional
        Coordinates that keep their values. By default the mechanism's own.
    distribution : {"normal", "uniform"}, or dict of str to those
        Distribution within the tolerances, also by name. Parts with clearance always touch, in directions of
        the same probability.
    sigmas : float
        Tolerance of a normal distribution in standard deviations.

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
    given = mapping("tolerances", tolerances, "names of dimensions to numbers")
    if not given:
        raise invalid("tolerances", "must contain at least one name", tolerances)
    given = {name: positive(f"tolerances['{name}']", x) for name, x in given.items()}
    kinds = _distributions(distribution, given)
    # names are checked in the mechanism of the user, which has no slides
    asked: Any = f"{m.bodies[0].name}.x" if is_function(of) else of
    rows = configuration.coefficients(asked, order=1, wrt=wrt).rows
    kept = kept_rows(m, m.coordinates if wrt is None else names_of(wrt, "wrt", 1))
    fixed = tuple(dict.fromkeys((*kept, *held_coordinates(m))))
    contributors = {
        name: Contributor(limit, kinds[name], _dimensions(m, name, fixed)) for name, limit in given.items()
    }
    c = _varied(configuration, contributors)
    deviations = Deviations(contributors.values(), positive("sigmas", sigmas))
    names = tuple(dict.fromkeys((*fixed, *deviations.columns)))
    problem: _Rows | _Result
    if is_function(of):
        problem = _Result(c, names, deviations, of)
        problem.require_same(configuration)
    else:
        problem = _Rows(c, names, deviations, rows)
    shift, covariance, parts = deviations.moments(problem.G, problem.H)
    nominal, total = problem.nominal, parts.sum(axis=-1, keepdims=True)
    varies = total > problem.rounding[:, None] ** 2
    share = np.where(varies, parts / np.where(varies, total, 1.0), np.nan)
    return ToleranceAnalysis(
        problem.rows, given, nominal, nominal + shift, covariance, share, configuration, fixed, problem
    )


def _distributions(distribution: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the distribution of each tolerance."""
    words = ("normal", "uniform")
    every = words[0] if isinstance(distribution, Mapping) else choice("distribution", distribution, words)
    kinds = {name: "contact" if name.endswith(CLEARANCE) else every for name in names}
    if not isinstance(distribution, Mapping):
        return kinds
    for name, kind in mapping("distribution", distribution, "names of tolerances to distributions").items():
        if name not in kinds:
            raise unknown("tolerance", name, "`tolerances`", kinds, quoted=False)
        if kinds[name] == "contact":
            message = (
                f"`distribution` must not name clearances, whose parts touch, got '{name}'. Leave it out."
            )
            raise InputError(message, key="distribution", name=name)
        kinds[name] = choice(f"distribution['{name}']", kind, words)
    return kinds


def _dimensions(m: Mechanism, name: str, fixed: tuple[str, ...]) -> dict[str, Any]:
    """Return the coordinates of a tolerance, and their dimensions for `vary`, None if they are there."""
    part: Any = model_of(m).parts.get(owner := part_of(name))
    if name.endswith(CLEARANCE):
        return _clearance(m, name.removesuffix(CLEARANCE))
    joint = isinstance(part, Joint) and name in part.components
    rotation = joint and part.type in BALL_TYPES and name in part.components[-3:]
    remedy = ""
    if owner in fixed and isinstance(part, Body | Frame):
        remedy = f"Name rows of '{owner}' in `wrt`, such as '{owner}.x' and '{owner}.euler_xyz.1'"
    elif rotation and name in fixed:
        remedy = "Leave it out, because its rotation has no coordinates"
    elif joint and name not in fixed:
        zero = f", or name its zero '{owner}.value'" * (part.dof == 1)
        remedy = f"Give it in `wrt`{zero}"
    if remedy:
        raise InputError(
            f"`tolerances` must name dimensions or single coordinates that keep their values, got '{name}'. "
            f"{remedy}.",
            key="tolerances",
            name=name,
        )
    return {name: None if name in fixed else name}


def _clearance(m: Mechanism, name: str) -> dict[str, Any]:
    """Return coordinates for the directions of the clearance of a joint, and their dimensions."""
    joint: Any = find_part(m, name)
    kind = joint.type if isinstance(joint, Joint) else type(joint).__name__
    if kind not in CLEARANCE_TYPES:
        remedy = "Name a joint."
        if isinstance(joint, Joint):
            play = f"{name}.at.{joint.bodies[0]}"
            remedy = f"Name its play as dimensions, those of '{play}.x' to z that the loops allow."
        raise InputError(
            f"`tolerances` must name clearances of revolute, cylindrical or spherical joints, got "
            f"'{name}{CLEARANCE}' of type {kind}. {remedy}",
            key="tolerances",
            name=name,
        )
    axis: Any = np.zeros((0, 3)) if kind == "spherical" else np.reshape(joint.axis, (1, 3))
    body, made = joint.bodies[0], {}
    for k, direction in enumerate(np.linalg.svd(axis)[2][len(axis) :], 1):
        label = f"{name} clearance {k}"
        while label in model_of(m).parts:
            label += "'"
        made[label] = {f"{name}.at.{body}.{x}": float(w) for x, w in zip(XYZ, direction, strict=True)}
    return made


def _varied(configuration: Configuration, contributors: Mapping[str, Contributor]) -> Configuration:
    """Return the configurations with the dimensions of tolerances as coordinates."""
    m: Any = model_of(configuration).description
    dimensions = {label: what for one in contributors.values() for label, what in one.columns.items() if what}
    if not dimensions:
        return configuration
    try:
        varied = vary_as_drawn(m, dimensions)
    except UnknownNameError as error:
        known = [f"{joint.name}{CLEARANCE}" for joint in m.joints if joint.type in CLEARANCE_TYPES]
        raise unknown("tolerance", error.name, m.name, [*error.candidates, *known]) from error
    except SingularError as error:
        names = tuple(name for name, one in contributors.items() if one.columns.keys() & {*error.names})
        raise SingularError(
            f"`tolerances` must leave the loops of '{m.name}' closed, but these do not close with other "
            f"values of {', '.join(names)}. Leave them out.",
            key="tolerances",
            names=names,
        ) from error
    return configuration_like(varied, m, configuration)


class _Problem(ABC):
    """Rows of a mechanism as functions of deviations from tolerances.

    Attributes
    ----------
    rows, units : tuple of str
        The P rows.
    nominal : (..., P)
        Their values without deviations.
    G, H : (..., P, K), (..., P, K, K)
        Their derivatives by the K deviations.
    rounding : (P,)
        Standard deviations of rounding errors.
    """

    rows: tuple[str, ...]
    units: tuple[str, ...]
    nominal: np.ndarray
    G: np.ndarray
    H: np.ndarray
    rounding: np.ndarray

    def __init__(self, nominal: Configuration, names: tuple[str, ...], deviations: Deviations) -> None:
        self.configuration, self.deviations = nominal, deviations
        # values of the coordinates without deviations
        self.held = values_of(model_of(nominal).description, nominal, names)

    @abstractmethod
    def solved(self, x: np.ndarray, failures: Failures) -> np.ndarray:
        """Return the rows (N, ..., P) for deviations (N, ..., K)."""

    def values(self, x: np.ndarray, failures: Failures = "raise") -> np.ndarray:
        """Return the rows (N, ..., P) for deviations (N, ..., K), solved in pieces that fit into memory."""
        pieces = np.array_split(x, ceil(len(x) * max(1, prod(self.configuration.batch)) / SOLVED_AT_ONCE_MAX))
        return np.concatenate([self.solved(piece, failures) for piece in pieces])

    def at(self, x: np.ndarray, failures: Failures) -> Configuration:
        """Return configurations (...) for deviations (..., K), which broadcast with the nominal ones."""
        values = dict(self.held)
        for k, name in enumerate(self.deviations.columns):
            values[name] = values[name] + x[..., k]
        m: Any = model_of(self.configuration).description
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DegreesWarning)  # of nominal values, which were accepted
                found: Configuration = m.at(values, near=self.configuration, failures=failures)
        except ConfigurationError as error:
            raise _not_assembled(m.name, error.reasons[0], error.failed) from error
        return found

    @cached_property
    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Extreme values (..., P, 2), NaN where not assembled, and their quadratic approximations."""
        ends = [self.deviations.largest(sign * self.G, sign * self.H, self.rounding) for sign in (-1.0, 1.0)]
        quadratic = self.nominal[..., None] + np.stack([-ends[0][1], ends[1][1]], axis=-1)
        # mechanisms of rows P in front of the batch
        x = np.concatenate([np.moveaxis(x, -2, 0) for x, _ in ends])
        found = self.values(x, "mask")
        own = np.einsum("sp...p->...ps", found.reshape(2, len(self.rows), *self.nominal.shape))
        # a mechanism in which one row is extreme may exceed the extreme of another
        among = np.concatenate([found, self.nominal[None]])
        extreme = np.stack([np.fmin.reduce(among), np.fmax.reduce(among)], axis=-1)
        return np.where(np.isnan(own), np.nan, extreme), quadratic

    def sample(self, rng: np.random.Generator, count: int, failures: Failures) -> np.ndarray:
        """Return the rows (count, ..., P) of random mechanisms."""
        x = self.deviations.drawn(rng, count)
        return self.values(x.reshape(count, *[1] * (self.nominal.ndim - 1), x.shape[-1]), failures)


class _Rows(_Problem):
    """Rows by names, with derivatives by influence coefficients."""

    def __init__(
        self, nominal: Configuration, names: tuple[str, ...], x: Deviations, rows: tuple[str, ...]
    ) -> None:
        super().__init__(nominal, names, x)
        m: Any = model_of(nominal).description
        self.rows, self.units = rows, tuple(row_unit(m, row) for row in rows)
        joints = {name for joint in m.joints for name in joint.components}
        # angles of joints are continuous, others within a turn
        self.wrapped = [k for k, row in enumerate(rows) if self.units[k] == "rad" and row not in joints]
        self.nominal = nominal.value(list(rows)).reshape(*nominal.batch, len(rows))
        found = nominal.coefficients(list(rows), order=2, wrt=names)
        places = [found.columns.index(name) for name in x.columns]
        self.G, self.H = found.G[..., places], found.H[..., places, :][..., places]
        self.rounding = ZERO_RTOL * row_sizes(m, rows) * (x.sigma / row_sizes(m, x.columns)).sum()

    def solved(self, x: np.ndarray, failures: Failures) -> np.ndarray:
        found = self.at(x, failures).value(list(self.rows))
        found = found.reshape(*found.shape[: x.ndim - 1], len(self.rows))
        if k := self.wrapped:
            expected = self.nominal[..., k] + np.einsum("...pk,...k->...p", self.G[..., k, :], x)
            found[..., k] = expected + wrap_to_pi(found[..., k] - expected)
        return np.asarray(found)


class _Result(_Problem):
    """Result of a function, with derivatives by differences."""

    def __init__(self, nominal: Configuration, names: tuple[str, ...], x: Deviations, of: Any) -> None:
        super().__init__(nominal, names, x)
        if 0 in nominal.batch:
            message = f"`configuration` must have members for a function, got the batch {nominal.batch}."
            raise InputError(f"{message} Name rows.", key="configuration", got=nominal.batch)
        self.of = of
        found, self.G, self.H = x.differentiated(self.values)
        self.nominal, self.rounding = found[0], DIFFERENCE_RTOL * np.abs(found).max(axis=0)
        self.rows = tuple(str(k + 1) for k in range(len(self.nominal)))
        self.units = ("",) * len(self.rows)

    def require_same(self, given: Configuration) -> None:
        """Raise an error if the nominal result differs from that without dimensions as coordinates."""
        without = self.result(Configuration(model_of(given), (1, *given.batch), flat_states(given)))[0]
        most = SAME_RESULT_RTOL * np.abs(without).max()
        if without.shape != self.nominal.shape or np.abs(without - self.nominal).max() > most:
            raise InputError(
                "`of` must return the same with dimensions as further coordinates, got other numbers. Select "
                "the entries of the mechanism's own coordinates, which come first, such as "
                "`c.dynamics().I[..., :1, :1]`, before an inverse, norm or other function of all entries.",
                key="of",
                got=self.nominal,
            )

    def solved(self, x: np.ndarray, failures: Failures) -> np.ndarray:
        n, batch = len(x), self.configuration.batch
        # a number of mechanisms that differs from the axes of the batch shows results with other axes
        spare = next(k for k in counting() if n + k not in batch)
        x = np.concatenate([x, np.repeat(x[:1], spare, axis=0)])
        return self.result(self.at(x.reshape(n + spare, *[1] * len(batch), -1), failures))[:n]

    def result(self, c: Configuration) -> np.ndarray:
        """Return the results (N, P) of configurations (N, ...), NaN for members that are not assembled."""
        returned, (n, *_) = self.of(c), c.batch
        found = as_numbers(returned)
        if found is None or found.dtype != np.float64 or found.shape[:1] != (n,) or not found.size:
            rule = f"must return numbers ({n}, …) for configurations {c.batch}"
            raise invalid("of", rule, returned, "Keep the first axis.")
        assembled: Any = c.ok.reshape(n, -1).all(axis=1)
        made = np.where(assembled[:, None], found.reshape(n, -1), np.nan)
        if not np.isfinite(made[assembled]).all():
            raise invalid("of", "must return finite numbers", returned)
        return made


def _not_assembled(name: str, reason: str, failed: Any) -> ConfigurationError:
    """Make the error for mechanisms within tolerances that cannot be assembled."""
    return ConfigurationError(
        f"`tolerances` must leave '{name}' assembled, but some mechanisms within them are not: {reason}. "
        "Give smaller tolerances.",
        key="tolerances",
        failed=failed,
    )
