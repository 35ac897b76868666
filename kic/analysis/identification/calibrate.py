"""Dimensions and offsets of sensors from measured positions, by nonlinear least squares."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.analysis.identification.estimates import (
    NOISE_CHANGE_RTOL,
    WEIGHTINGS_MAX,
    Estimates,
    LeastSquares,
    weighted_least_squares,
)
from kic.analysis.identification.measurements import TIME, Columns, check_near, standard_deviations
from kic.description.description import find_part, held_coordinates
from kic.description.units import row_unit, warn_of_degrees
from kic.description.validation import part_of
from kic.dynamics.regressor import SINGULAR_GAP_MIN, ZERO_RTOL, BaseParameters, base_parameters
from kic.errors import ConfigurationError, DegreesWarning, InputError, SingularError, invalid, unknown
from kic.mechanism.configuration import Configuration, model_of, row_sizes
from kic.mechanism.dimensions import vary_as_drawn, with_dimensions
from kic.mechanism.locking import configuration_like
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import at_least, names_of
from kic.numerics.display import Summary
from kic.numerics.registration import with_methods
from kic.numerics.rotations import wrap_to_pi
from kic.numerics.tables import DataTable, TableAxis, Variable

if TYPE_CHECKING:
    from kic.plotting import plots as _plots

# last relative step of the search, last relative change of its sum of squares, and its evaluations
STEP_RTOL, COST_RTOL, SEARCH_EVALUATIONS_MAX = 1e-13, 1e-14, 200
# searches with more combinations, which have an effect at the estimates but not in the description, and the
# largest standard deviation of their unknowns, in radians or relative to the mechanism
REFITS_MAX, SIGMA_MAX = 3, 0.1
# smallest share of the variance of a number that estimates leave to its residual
LEFT_MIN = 1e-6
# probability of remarks on correct samples
REMARK_PROBABILITY = 0.01
# smallest ratio of residuals to given noise, and of their noise to the size of rows, that are remarked on
NOISE_RATIO_MIN, LARGE_NOISE_MIN = 1.1, 0.1


@with_methods
@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Estimates):
    """Dimensions and offsets of sensors that measured positions determine, with their uncertainty.

    Attributes
    ----------
    base : BaseParameters
        The R combinations in words, with the values of the description; those named first begin combinations.
    values : (R,) ndarray
        Estimates of the combinations.
    covariance : (R, R) ndarray
        Covariance of the estimates.
    noise : (E,) ndarray
        Standard deviations of the rows, one for rows of parts of the same kind and unit unless given.
    residual : (N, E) ndarray
        Measured rows less those of the measured coordinates; NaN in empty cells.
    freedom : (R,) ndarray
        Degrees of freedom of the variances of the estimates; infinite with given noise.
    unused : tuple of str
        Columns of the measurements without use.
    description : Mechanism
        The mechanism before.
    rows : tuple of str
        Names of the E measured rows besides coordinates.
    deviation : (N, E) ndarray
        Standard deviations of the residuals: noise of rows and coordinates, less what the estimates follow;
        NaN for numbers that they follow altogether.
    noise_freedom : (E,) ndarray
        Degrees of freedom of the noise.
    chi_square : float
        Sum of squares of the residuals, with the noise of rows and coordinates as weights.
    before : (N, E) ndarray
        Residuals of the description.
    samples : (N,) ndarray
        Places of these samples among the measured ones, from 0.
    dimensions : dict of str to float
        Estimated dimensions; those in `undetermined` are as described.
    offsets : dict of str to float
        Estimated offsets of sensors, by the name of their row.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> A = np.linspace(0.0, 6.0, 30)
    >>> found = m.calibrate({"A": A, "D": m.at({"A": A}).value("D") + 0.1}, "coupler.length", offsets="D")
    >>> round(found.dimensions["coupler.length"], 9), round(found.offsets["D"], 9)
    (0.29, 0.1)
    """

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        plot = _plots.plot_calibration

    _one_line = ("rows", "noise")

    rows: tuple[str, ...]
    deviation: np.ndarray
    noise_freedom: np.ndarray
    chi_square: float
    before: np.ndarray
    samples: np.ndarray
    dimensions: dict[str, float]
    offsets: dict[str, float]
    _varied: Mechanism

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Tuple of the parameters that keep their values: without effect, or not determined alone."""
        return tuple(np.delete(self.parameters, self.base.columns).tolist())

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism described with the estimated dimensions, without offsets of sensors.

        Its reference configuration has the same coordinates.
        """
        if not self.dimensions:
            return self.description
        return with_dimensions(self._varied, self.description, self.dimensions)

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        m, tables = self.description, {"residual": self.residual, "residual.before": self.before}
        made = [
            Variable(f"{name}.{end}", table[:, k], row_unit(m, name))
            for k, name in enumerate(self.rows)
            for end, table in tables.items()
        ]
        axis = TableAxis("sample", self.samples.tolist())
        return DataTable(m.name, (axis,), tuple(made)).select(names)

    def _probabilities(self, share: np.ndarray) -> np.ndarray:
        """Return the probabilities (N, E) of larger residuals than these in standard deviations.

        They follow from Student's distribution of residuals over the noise that the others show.
        """
        from scipy.special import stdtr

        others = np.where(self.noise_freedom < 2.0, np.nan, self.noise_freedom - 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.maximum(others + 1.0 - share**2, 0.0)
            deleted = np.where(np.isinf(others), share, share * np.sqrt(others / rest))
            return np.asarray(2.0 * stdtr(others, -np.abs(deleted)))

    def root_mean_squares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return root mean squares (E,) of the residuals before and after.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> A = np.linspace(0.0, 6.0, 30)
        >>> found = m.calibrate({"A": A, "D": m.at({"A": A}).value("D") + 0.1}, offsets="D")
        >>> [x.round(6).tolist() for x in found.root_mean_squares()]
        [[0.1], [0.0]]
        """
        before, after = (np.sqrt(np.nanmean(a**2, axis=0)) for a in (self.before, self.residual))
        return before, after

    def summary(self) -> Summary:
        """Return tables of the estimates with their 95 % intervals, and of the residuals."""
        from scipy.special import chdtrc

        sheet = self._sheet("correction", self.values - self.base.values)
        units = [f"{name} ({row_unit(self.description, name)})" for name in self.rows]
        facts = np.column_stack([self.noise, *self.root_mean_squares()])
        sheet.matrix("residuals, root mean square", units, ["noise", "before", "after"], facts)
        rest = [name for name in self.undetermined if name not in self.base.without_effect]
        self._say_names(sheet, {"kept as described (values and intervals hold for such a machine)": rest})
        share, count = self.residual / self.deviation, np.isfinite(self.residual).sum()
        more, given = count - len(self.base), bool(np.isinf(self.noise_freedom).all())
        ratio = float(np.sqrt(self.chi_square / more))
        if given and ratio > NOISE_RATIO_MIN and chdtrc(more, self.chi_square) < REMARK_PROBABILITY:
            sheet.say(
                f"Residuals are {ratio:.1f} times as large as their noise, so that the intervals are too "
                "narrow: other dimensions differ, too, or the noise is larger."
            )
        if not given and (self.noise > LARGE_NOISE_MIN * row_sizes(self.description, self.rows)).any():
            sheet.say(
                "Residuals are as large as the mechanism: samples are on other branches than the reference "
                "configuration or `near`, or columns have other units."
            )
        probability = self._probabilities(share)
        probability = np.nan_to_num(probability * np.isfinite(probability).sum(), nan=1.0)
        n, k = np.unravel_index(np.argmin(probability), share.shape)
        if probability[n, k] < REMARK_PROBABILITY:
            sheet.say(
                f"Sample {self.samples[n]} does not fit the others in {self.rows[k]} (probability "
                f"{probability[n, k]:.1e}); leave it out if it is an error."
            )
        return sheet


def calibrate(
    mechanism: Mechanism,
    measurements: Any,
    dimensions: str | Iterable[str] | Mapping[str, str | Mapping[str, float]] | None = None,
    *,
    offsets: str | Iterable[str] | None = None,
    columns: Mapping[str, str] | None = None,
    wrt: str | Iterable[str] | None = None,
    near: Configuration | None = None,
    noise: Mapping[str, float] | None = None,
    gap_min: float = SINGULAR_GAP_MIN,
) -> Calibration:
    """Calibrate dimensions and offsets of sensors from measured positions.

    The measured coordinates determine the configuration of each sample; further rows, such as positions of
    points, distances or redundant encoders, are compared with the measured ones, by weighted least squares.

    Parameters
    ----------
    measurements : path, DataTable, DataFrame or dict of str to (N,) array_like
        A CSV file or columns by name: coordinates such as "A", and further rows such as "tip.x". A name may
        have a unit, such as "A (deg)" or "tip.x (mm)"; other numbers are in units of the model. Samples are
        configurations in any order. Those without a coordinate are left out; of other rows, only empty cells.
    dimensions : str, list of str, or dict, optional
        Those to calibrate, as in `Mechanism.vary`, such as ["coupler.length", "D.at.x", "A.value"].
    offsets : str or list of str, optional
        Measured rows and coordinates whose sensors have an unknown offset: a number that they read too much.
        Those of coordinates must be moderate, since the search begins at zero.
    columns : dict of str to str, optional
        Columns of the measurements by these names, such as {"A": "crank angle (deg)"}.
    wrt : str or list of str, optional
        Measured coordinates, as many as degrees of freedom; by default those of the mechanism.
    near : Configuration, optional
        Configuration on the branch of the samples, by default the reference configuration.
    noise : dict of str to float, optional
        Standard deviations of all measured rows, and of coordinates if these have noise, too. By default
        coordinates have none, and that of other rows follows from their residuals, one for rows of parts of
        the same kind and unit.
    gap_min : float
        Smallest gap of singular values, as in `Regressor.base`.

    Returns
    -------
    Calibration

    Raises
    ------
    InputError, UnknownNameError, FileError
        If columns are missing or are not numbers, or if there are not more numbers than unknowns.
    SingularError
        If the samples do not determine a number of combinations, or dimensions cannot vary.
    ConfigurationError
        If the mechanism as described cannot have the measured coordinates.

    See Also
    --------
    Mechanism.vary : The dimensions, and what moves with them.
    Mechanism.identify : Masses, inertias and friction.

    Notes
    -----
    Combinations are those to first order in the description, or at estimates of a first search if more have
    an effect there and are determined. The parameters `undetermined` are as described: estimates and
    intervals are those of a machine with these values and the same measurements. Noise of coordinates is
    taken into account to first order.

    The reference for poses is the world: for another one, connect the base to ground by a fixed joint, and
    vary ``"J.at.base.x"`` and ``"J.axes.base.rx"``.

    Examples
    --------
    A four-bar whose coupler and ground are longer than drawn, and whose rocker is measured:

    >>> m = kic.load("four-bar")
    >>> machine = m.vary(["coupler.length", "D.at.x"]).lock({"coupler.length": 0.293, "D.at.x": 0.477})
    >>> A = np.linspace(0.0, 6.0, 50)
    >>> D = machine.at({"A": A}).value("D") + np.random.default_rng(1).normal(0.0, 1e-4, 50)
    >>> found = m.calibrate({"A": A, "D": D}, ["coupler.length", "D.at.x"])
    >>> found.values.round(4), found.sigma.round(5)
    (array([0.293, 0.477]), array([1.e-05, 4.e-05]))
    """
    data = Columns(mechanism, measurements, columns)
    problem = _Calibration(mechanism, data, dimensions, offsets, wrt)
    problem.start_near(near)
    sizes = None if noise is None else standard_deviations(noise, problem.rows, problem.names)
    start = problem.at(problem.start)
    base = problem.base(start, gap_min := at_least("gap_min", gap_min, 1.0))
    found = problem.solve(problem.start, start, base.columns, sizes)
    for _ in range(REFITS_MAX):
        try:
            more = problem.determined(found, problem.base(found.configuration, gap_min), sizes)
            if len(more) <= len(base):
                break
            found = problem.solve(found.x, found.configuration, more.columns, sizes)
        except (SingularError, InputError):  # the first estimates stand
            break
        base = more
    values, shifts = np.split(found.x, [len(problem.dimensions)])
    return Calibration(
        base=base,
        values=base.matrix @ found.x,
        covariance=found.estimates.covariance,
        noise=found.noise,
        residual=problem.residual(found.configuration, found.x),
        freedom=found.estimates.freedom,
        unused=tuple(data.unused),
        description=mechanism,
        rows=problem.rows,
        deviation=problem.deviation(found, base.columns),
        chi_square=problem.chi_square(found),
        noise_freedom=found.estimates.noise_freedom,
        before=problem.residual(start, problem.start),
        samples=problem.samples,
        dimensions=dict(zip(problem.dimensions, values.tolist(), strict=True)),
        offsets=dict(zip(problem.offsets, shifts.tolist(), strict=True)),
        _varied=problem.varied,
    )


@dataclass(frozen=True)
class _Solution:
    """Unknowns (K,), configurations (N,), noise of rows (E,) and coordinates (M,), estimates of unknowns."""

    x: np.ndarray
    configuration: Configuration
    noise: np.ndarray
    inputs: np.ndarray
    estimates: Any = None


class _Calibration:
    """Measured rows as functions of K dimensions and offsets.

    Attributes
    ----------
    varied : Mechanism
        The mechanism with the dimensions as coordinates.
    names, rows : tuple of str
        Measured coordinates (M) and other measured rows (E).
    given, measured : (N, M), (N, E)
        Their numbers; NaN in empty cells of rows.
    samples : (N,) int
        Places of the samples among the measured ones.
    dimensions, offsets, parameters : tuple of str
        Names of the dimensions, of rows whose sensors have an offset, and of all unknowns.
    start : (K,)
        Described dimensions, and offsets of zero.
    unit, row_size : (K,), (E,)
        Sizes of the unknowns and rows: 1 for angles, the size of the mechanism for lengths.
    angles, kinds : (E,) bool, (E,) int
        True for rows that are angles; numbers of rows of parts of one kind and unit.
    near : Configuration or None
        Configurations near the samples, the last accepted ones.
    """

    def __init__(self, mechanism: Mechanism, data: Columns, dimensions: Any, offsets: Any, wrt: Any) -> None:
        m = self.mechanism = mechanism
        self._select(data, wrt)
        named = isinstance(dimensions, Mapping) or dimensions is None
        chosen = dimensions if named else names_of(dimensions, "dimensions")
        self.varied = vary_as_drawn(m, chosen) if chosen else m
        self.dimensions = tuple(self.varied.coordinates[len(m.coordinates) :])
        self.offsets = () if offsets is None else names_of(offsets, "offsets")
        sensors = (*self.names, *self.rows)
        for name in self.offsets:
            if self.offsets.count(name) > 1:
                raise invalid("offsets", "must be distinct", name)
            if name not in sensors:
                raise unknown("measured row", name, "these measurements", sensors, quoted=False)
        if not self.dimensions and not self.offsets:
            raise InputError(
                "`dimensions` must name some, such as 'B.at.x' or 'crank.length', unless `offsets` names "
                "rows, got neither.",
                key="dimensions",
            )
        self.parameters = (*self.dimensions, *(f"{name}.offset" for name in self.offsets))
        described = held_coordinates(self.varied)
        self.start = np.array([*(described[n] for n in self.dimensions), *[0.0] * len(self.offsets)])
        self.unit = np.append(row_sizes(self.varied, self.dimensions), row_sizes(m, self.offsets))
        self.row_size = row_sizes(m, self.rows)
        self.angles = np.array([row_unit(m, name) == "rad" for name in self.rows])
        labels = [f"{type(find_part(m, part_of(name))).__name__} {row_unit(m, name)}" for name in self.rows]
        self.kinds = np.unique(labels, return_inverse=True)[1]
        self.near: Configuration | None = None
        self._last: tuple[Configuration, np.ndarray, np.ndarray] | None = None

    def _select(self, data: Columns, wrt: Any) -> None:
        """Select the measured coordinates, other rows, and samples."""
        m, there, held = self.mechanism, data.table[""], held_coordinates(self.mechanism)
        names = m.coordinates if wrt is None else names_of(wrt, "wrt", 1)
        self.names = names = tuple(n for n in names if wrt is not None or n in there or n not in held)
        if not names:
            raise InputError(f"'{m.name}' must move to be calibrated, but has no coordinates.")
        data.require("values of coordinates", names, there)
        whole = np.isfinite([there[n] for n in names]).all(axis=0)
        if not whole.any():
            raise invalid("measurements", "must have a sample with numbers of all coordinates", 0)
        self.rows = tuple(n for n in there if n not in names and np.isfinite(there[n][whole]).any())
        others = [(key, table) for key, table in data.table.items() if key not in ("", TIME)]
        data.unused += [f"{name}.{key}" for key, table in others for name in table]
        data.unused += [name for name in there if name not in (*names, *self.rows)]
        if not self.rows:
            raise InputError(
                f"`measurements` must have further rows than the coordinates {', '.join(names)}, such as "
                "positions of points, with numbers in the same samples, got none. Add columns, or name them "
                "in `columns`.",
                key="measurements",
            )
        given, measured = (np.stack([there[n] for n in of], 1) for of in (names, self.rows))
        self.samples = np.flatnonzero(whole & np.isfinite(measured).any(axis=1))
        self.given, self.measured = given[self.samples], measured[self.samples]
        warn_of_degrees(m, self.rows, np.nan_to_num(self.measured))

    def start_near(self, near: Configuration | None) -> None:
        """Start from a configuration of the mechanism."""
        check_near(near)
        if near is None:
            return
        if model_of(near).description != self.mechanism:
            raise invalid("near", f"must be a configuration of '{self.mechanism.name}'", near.name)
        self.near = configuration_like(self.varied, self.mechanism, near)

    def at(self, x: np.ndarray, failures: Any = "raise") -> Configuration:
        """Return the configurations (N,) of the measured coordinates for unknowns (K,)."""
        dims, shifts = np.split(x, [len(self.dimensions)])
        over = dict(zip(self.offsets, shifts.tolist(), strict=True))
        values: dict[str, Any] = {
            name: self.given[:, k] - over.get(name, 0.0) for k, name in enumerate(self.names)
        }
        values |= zip(self.dimensions, dims.tolist(), strict=True)
        try:
            return self.varied.at(values, near=self.near, failures=failures)
        except ConfigurationError as error:
            places, (reason, *_) = self._places(np.ravel(error.failed)), error.reasons
            raise ConfigurationError(
                f"`measurements` must have coordinates that '{self.mechanism.name}' can have as described, "
                f"got others in {places}: {reason}. Leave these samples out, name other coordinates in "
                "`wrt`, or give a configuration `near` them.",
                key="measurements",
                failed=error.failed,
            ) from error

    def _places(self, members: Any) -> str:
        """Return the places of members of the samples in words."""
        chosen = self.samples[members].tolist()
        return f"sample{'s' * (len(chosen) > 1)} {', '.join(map(str, chosen[:5]))}{', …' * (len(chosen) > 5)}"

    def residual(self, c: Configuration, x: np.ndarray) -> np.ndarray:
        """Return the measured less the computed rows (N, E), angles within half a turn."""
        left = self.measured - c.value(list(self.rows)).reshape(self.measured.shape)
        for name, shift in zip(self.offsets, x[len(self.dimensions) :], strict=True):
            if name in self.rows:
                left[:, self.rows.index(name)] -= shift
        left[:, self.angles] = wrap_to_pi(left[:, self.angles])
        return left

    def jacobian(self, c: Configuration) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the rows by unknowns (N, E, K) and by measured coordinates (N, E, M).

        They are NaN where coordinates are singular. Those of the last configurations are kept.
        """
        if self._last is not None and self._last[0] is c:
            return self._last[1:]
        names, dims = self.names, self.dimensions
        found = c.coefficients(list(self.rows), order=1, wrt=(*names, *dims), failures="mask")
        places = [found.columns.index(name) for name in (*names, *dims)]
        G, J = np.split(found.G[..., places], [len(names)], axis=-1)
        shifts = np.zeros((*G.shape[:2], len(self.offsets)))
        for k, name in enumerate(self.offsets):
            if name in names:
                shifts[..., k] = -G[..., names.index(name)]
            else:
                shifts[:, self.rows.index(name), k] = 1.0
        self._last = c, np.concatenate([J, shifts], axis=-1), G
        return self._last[1:]

    def base(self, c: Configuration, gap_min: float) -> BaseParameters:
        """Return the combinations of the unknowns that the samples determine in some configurations."""
        J = self.jacobian(c)[0] / self.row_size[:, None] * self.unit
        if len(bad := np.flatnonzero(~np.isfinite(J).all(axis=(1, 2)))):
            raise SingularError(
                f"Measured coordinates must drive '{self.mechanism.name}', but are singular in "
                f"{self._places(bad)}. Leave these samples out, or name other coordinates in `wrt`.",
                coordinates=self.names,
                failed=bad.tolist(),
            )
        A = J[np.isfinite(self.measured)]
        # entries have size 1, unless terms cancel
        limit = ZERO_RTOL * max(1.0, np.abs(A).max(initial=0.0))
        used = np.flatnonzero((np.abs(A) > limit).any(axis=0))
        if not len(used):
            raise InputError(
                "`measurements` must depend on the dimensions, but these rows do not. Measure other rows.",
                key="measurements",
            )
        if len(A) <= len(used):
            rule = f"must have more values of rows than the {len(used)} unknowns"
            raise invalid("measurements", rule, len(A), "Measure more, or name fewer dimensions.")
        remedy = "Give more and more different samples, name fewer dimensions, or give a smaller `gap_min`."
        A, order = A[:, used] / self.unit[used], list(range(len(used)))
        return base_parameters(A, used, self.parameters, self.start, order, gap_min, remedy)

    def solve(
        self, x: np.ndarray, c: Configuration, columns: np.ndarray, noise: Mapping[str, float] | None
    ) -> _Solution:
        """Return estimates of some unknowns, from unknowns (K,) and their configurations."""
        x, size = self._with_mean_offsets(x, c, columns), self.row_size
        inputs = np.zeros(len(self.names))
        if noise is not None:
            size = np.array([noise[n] for n in self.rows])
            inputs = np.array([noise.get(n, 0.0) for n in self.names])
        found = _Solution(x, c, size, inputs)
        for _ in range(WEIGHTINGS_MAX):
            last, weights = found, self._weights(found)
            x, c = self._search(last.x, last.configuration, columns, weights)
            made = self._estimates(x, c, columns, None if noise is None else weights)
            found = _Solution(x, c, made.noise if noise is None else size, inputs, made)
            moved = np.abs(x - last.x)[columns] / np.sqrt(np.diagonal(made.covariance)) * inputs.any()
            if max(moved.max(), np.abs(1.0 - last.noise / found.noise).max()) <= NOISE_CHANGE_RTOL:
                break
        return found

    def _estimates(
        self, x: np.ndarray, c: Configuration, columns: np.ndarray, weights: np.ndarray | None
    ) -> LeastSquares:
        """Return least squares to first order at unknowns, with given weights or estimated noise."""
        left, J, size = self.residual(c, x), self.jacobian(c)[0][..., columns], self.row_size
        remedy = "Give more and more different samples, or name fewer dimensions."
        if weights is None:
            return weighted_least_squares(J, left, size, remedy, kinds=self.kinds)
        J = np.where(np.isfinite(left)[..., None], J, 0.0)
        return weighted_least_squares(weights @ J, _times(weights, left), size, remedy, np.ones(len(size)))

    def _with_mean_offsets(self, x: np.ndarray, c: Configuration, columns: np.ndarray) -> np.ndarray:
        """Return unknowns whose offsets of angles leave residuals with a mean of zero."""
        x, left = x.copy(), self.residual(c, x)
        for k, name in enumerate(self.offsets, len(self.dimensions)):
            if name in self.rows and k in columns and self.angles[j := self.rows.index(name)]:
                x[k] += np.angle(np.nanmean(np.exp(1j * left[:, j])))
        return x

    def determined(
        self, found: _Solution, base: BaseParameters, noise: Mapping[str, float] | None
    ) -> BaseParameters:
        """Return the combinations at a solution that have moderate standard deviations."""
        weights, x, c = self._weights(found), found.x, found.configuration
        kept = np.arange(len(base))
        while len(kept):
            columns = base.columns[kept]
            more = self._estimates(x, c, columns, None if noise is None else weights)
            sigma = np.sqrt(np.diagonal(more.covariance)) / self.unit[columns]
            if sigma.max() < SIGMA_MAX:
                break
            kept = np.delete(kept, sigma.argmax())
        chosen = {key: getattr(base, key)[kept] for key in ("columns", "matrix", "values")}
        return replace(base, expressions=tuple(base.expressions[k] for k in kept), **chosen)

    def _weights(self, found: _Solution) -> np.ndarray:
        """Return matrices (N, E, E) that make residuals of unit covariance, for noise of rows and inputs."""
        G, rows = self.jacobian(found.configuration)[1] * found.inputs, found.noise
        G = np.where(np.isfinite(self.measured)[..., None], G, 0.0)
        parts = np.concatenate([G, np.broadcast_to(np.diag(rows), (len(G), *[len(rows)] * 2))], axis=-1)
        root: Any = np.linalg.qr(parts.swapaxes(1, 2), "r")
        return np.linalg.inv(root.swapaxes(1, 2))

    def deviation(self, found: _Solution, columns: np.ndarray) -> np.ndarray:
        """Return the standard deviations of residuals (N, E), which estimates make smaller."""
        J, G = self.jacobian(found.configuration)
        J = J[..., columns]
        variance = found.noise**2 + ((G * found.inputs) ** 2).sum(axis=-1)
        left = variance - np.einsum("nei,ij,nej->ne", J, found.estimates.covariance, J)
        return np.sqrt(np.where(left > variance * LEFT_MIN, left, np.nan))

    def chi_square(self, found: _Solution) -> float:
        """Return the sum of squares of weighted residuals."""
        left = self.residual(found.configuration, found.x)
        return float((_times(self._weights(found), left) ** 2).sum())

    def _search(
        self, x: np.ndarray, c: Configuration, columns: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, Configuration]:
        """Return unknowns (K,) of least squares from others, and their configurations."""
        from scipy.optimize import least_squares

        first, unit, there = x, self.unit[columns], np.isfinite(self.measured)[..., None]
        tried: list[Any] = [c, None]

        def place(y: np.ndarray) -> np.ndarray:
            x = first.copy()
            x[columns] += unit * (y - 1.0)
            return x

        def errors(y: np.ndarray) -> np.ndarray:
            x = place(y)
            near = self.at(x, "mask")
            J = self.jacobian(near)[0][..., columns] if near.ok.all() else np.array(np.nan)
            if not np.isfinite(J).all():  # the search takes a smaller step
                return np.full(self.measured.size, np.inf)
            tried[:] = near, -(weights @ np.where(there, J * unit, 0.0))
            return _times(weights, self.residual(near, x)).ravel()

        def derivatives(_: np.ndarray) -> np.ndarray:
            nonlocal c
            c, J = tried  # accepted
            self.near = c
            return J.reshape(-1, len(columns))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegreesWarning)  # of columns, which were checked
            found = least_squares(
                errors,
                np.ones(len(columns)),
                derivatives,
                x_scale="jac",
                ftol=COST_RTOL,
                xtol=STEP_RTOL,
                gtol=None,
                max_nfev=SEARCH_EVALUATIONS_MAX,
            )
            if not found.status:
                raise SingularError(
                    f"The search for estimates must converge, but did not in {SEARCH_EVALUATIONS_MAX} "
                    "evaluations. Name fewer dimensions, correct samples that are errors, or describe the "
                    "mechanism and the zeros of its coordinates more closely."
                )
            return place(found.x), c


def _times(weights: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return weighted residuals (N, E), zero in empty cells."""
    return np.asarray((weights @ np.nan_to_num(left)[..., None])[..., 0])
