"""Dimensions and offsets of sensors from measured positions, by nonlinear least squares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import pi, tau
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.analysis.identification.estimates import (
    NOISE_CHANGE_RTOL,
    WEIGHTINGS_MAX,
    Estimates,
    weighted_least_squares,
)
from kic.analysis.identification.measurements import TIME, Columns
from kic.description.description import find_part, held_coordinates
from kic.description.units import row_unit
from kic.description.validation import part_of
from kic.dynamics.regressor import SINGULAR_GAP_MIN, ZERO_RTOL, BaseParameters, base_parameters
from kic.errors import InputError, SingularError, invalid, unknown
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.dimensions import vary, with_dimensions
from kic.mechanism.locking import state_like
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import at_least, instance, mapping, names_of, positive
from kic.numerics.display import Summary
from kic.numerics.registration import with_methods
from kic.numerics.tables import DataTable, TableAxis, Variable

if TYPE_CHECKING:
    from kic.plotting import plots as _plots

# last relative step of the search, last relative change of its sum of squares, and its evaluations
STEP_RTOL, COST_RTOL, SEARCH_EVALUATIONS_MAX = 1e-13, 1e-14, 200
# residuals of this many standard deviations are named
OUTLIER_SIGMA = 5.0
# largest ratio of residuals to given noise that is not named
NOISE_RATIO_MAX = 1.5


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
    freedom : float
        Degrees of freedom of the residuals; infinite with given noise.
    unused : tuple of str
        Columns of the measurements without use.
    description : Mechanism
        The mechanism before.
    rows : tuple of str
        Names of the E measured rows besides coordinates.
    deviation : (N, E) ndarray
        Standard deviations of the residuals, from `noise` and that of coordinates.
    before : (N, E) ndarray
        Residuals of the description.
    samples : (N,) ndarray
        Places of these samples among the measured ones.
    dimensions : dict of str to float
        Estimated dimensions; those that are not determined are as described.
    offsets : dict of str to float
        Estimated offsets of sensors, by the name of their row.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> A = np.linspace(0.0, 6.0, 30)
    >>> found = m.calibrate({"A": A, "D": m.at({"A": A}).value("D")}, "coupler.length", offsets="D")
    >>> round(found.dimensions["coupler.length"], 9), round(found.offsets["D"], 9)
    (0.29, 0.0)
    """

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        plot = _plots.plot_calibration

    _one_line = ("rows", "noise")

    rows: tuple[str, ...]
    deviation: np.ndarray
    before: np.ndarray
    samples: np.ndarray
    dimensions: dict[str, float]
    offsets: dict[str, float]
    _varied: Mechanism

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism described with the estimated dimensions, without offsets of sensors.

        It is described at the same coordinates.
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
        sheet = self._sheet("correction", self.values - self.base.values)
        units = [f"{name} ({row_unit(self.description, name)})" for name in self.rows]
        facts = np.column_stack([self.noise, *self.root_mean_squares()])
        sheet.matrix("residuals, root mean square", units, ["noise", "before", "after"], facts)
        self._say_names(sheet, {})
        share = np.nan_to_num(np.abs(self.residual / self.deviation))
        ratio = np.sqrt((share**2).sum() / max(np.isfinite(self.residual).sum() - len(self.base), 1))
        if np.isinf(self.freedom) and ratio > NOISE_RATIO_MAX:
            sheet.say(
                f"Residuals are {ratio:.1f} times as large as their noise, so that the intervals are too "
                "narrow: other dimensions differ, too, or the noise is larger."
            )
        n, k = np.unravel_index(np.argmax(share), share.shape)
        if share[n, k] > OUTLIER_SIGMA:
            sheet.say(
                f"Sample {self.samples[n]} has a residual of {share[n, k]:.1f} standard deviations in "
                f"{self.rows[k]}; the estimates follow it if it is an error."
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
    Combinations are those to first order at the described dimensions. Dimensions that are not determined keep
    their described values, and a combination then has that of the dimension that begins it. Noise of
    coordinates is taken into account to first order. The reference for poses is the world: for another one,
    connect the base to ground by a fixed joint, and vary ``"J.at.base.x"`` and ``"J.axes.base.rx"``.

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
    problem = _Calibration(mechanism, data, dimensions, offsets, wrt, near)
    start = problem.at(problem.start)
    base = problem.base(start, at_least("gap_min", gap_min, 1.0))
    given = problem.noise(noise)
    x, covariance, sizes, c = problem.solve(start, base.columns, given)
    inputs = given[1] if given else np.zeros(len(problem.names))
    deviation = np.sqrt(sizes**2 + ((problem.jacobian(c)[1] * inputs) ** 2).sum(axis=-1))
    dims, shifts = np.split(x, [len(problem.dimensions)])
    freedom = np.inf if noise is not None else np.isfinite(problem.measured).sum() - len(base)
    return Calibration(
        base,
        base.matrix @ x,
        covariance,
        sizes,
        problem.residual(c, x),
        float(freedom),
        tuple(data.unused),
        mechanism,
        problem.rows,
        deviation,
        problem.residual(start, problem.start),
        problem.samples,
        dict(zip(problem.dimensions, dims.tolist(), strict=True)),
        dict(zip(problem.offsets, shifts.tolist(), strict=True)),
        problem.varied,
    )


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
    dimensions, offsets : tuple of str
        Names of the dimensions, and of rows whose sensors have an offset.
    start : (K,)
        Described dimensions, and offsets of zero.
    unit, row_size : (K,), (E,)
        Sizes of the unknowns and rows: 1 for angles, the size of the mechanism for lengths.
    near : Configuration or None
        Configurations near the samples, the last accepted ones.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        data: Columns,
        dimensions: Any,
        offsets: Any,
        wrt: Any,
        near: Configuration | None,
    ) -> None:
        self.mechanism, there, held = mechanism, data.table[""], held_coordinates(mechanism)
        names = mechanism.coordinates if wrt is None else names_of(wrt, "wrt", 1)
        self.names = names = tuple(n for n in names if wrt is not None or n in there or n not in held)
        if not names:
            raise InputError(f"'{mechanism.name}' must move to be calibrated, but has no coordinates.")
        data.require("values of coordinates", names, there)
        self.rows = tuple(name for name in there if name not in names and np.isfinite(there[name]).any())
        if not self.rows:
            raise InputError(
                f"`measurements` must have further rows than the coordinates {', '.join(names)}, such as "
                "positions of points, got none. Add columns, or name them in `columns`.",
                key="measurements",
            )
        others = [(key, table) for key, table in data.table.items() if key not in ("", TIME)]
        data.unused += [f"{name}.{key}" for key, table in others for name in table]
        data.unused += [name for name in there if name not in (*names, *self.rows)]
        given, measured = (np.stack([there[n] for n in of], 1) for of in (names, self.rows))
        self.samples = np.flatnonzero(np.isfinite(given).all(axis=1) & np.isfinite(measured).any(axis=1))
        if not len(self.samples):
            raise invalid("measurements", "must have at least one sample with all coordinates", 0)
        self.given, self.measured = given[self.samples], measured[self.samples]
        self.varied = mechanism if dimensions is None else vary(mechanism, dimensions)
        self.dimensions = tuple(self.varied.coordinates[len(mechanism.coordinates) :])
        self.offsets = () if offsets is None else names_of(offsets, "offsets")
        sensors = (*names, *self.rows)
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
        length = float(model_of(mechanism).length)
        size = {"rad": 1.0}
        units = [row_unit(self.varied, name) for name in self.dimensions]
        units += [row_unit(mechanism, name) for name in self.offsets]
        self.unit = np.array([size.get(unit, length) for unit in units])
        self.angles = np.array([row_unit(mechanism, name) == "rad" for name in self.rows])
        self.row_size = np.where(self.angles, 1.0, length)
        self.near: Any = None
        if near is not None:
            if instance("near", near, Configuration).batch:
                raise invalid("near", "must be one configuration", near.batch)
            if model_of(near).description != mechanism:
                raise invalid("near", f"must be a configuration of '{mechanism.name}'", near.name)
            state = state_like(self.varied, mechanism, near)
            self.near = Configuration(model_of(self.varied), (), state[None])

    def at(self, x: np.ndarray, failures: Any = "raise") -> Configuration:
        """Return the configurations (N,) of the measured coordinates for unknowns (K,)."""
        dims, shifts = np.split(x, [len(self.dimensions)])
        over = dict(zip(self.offsets, shifts.tolist(), strict=True))
        values: dict[str, Any] = {
            name: self.given[:, k] - over.get(name, 0.0) for k, name in enumerate(self.names)
        }
        values |= zip(self.dimensions, dims.tolist(), strict=True)
        return self.varied.at(values, near=self.near, failures=failures)

    def residual(self, c: Configuration, x: np.ndarray) -> np.ndarray:
        """Return the measured less the computed rows (N, E), angles within half a turn."""
        left = self.measured - c.value(list(self.rows)).reshape(self.measured.shape)
        for name, shift in zip(self.offsets, x[len(self.dimensions) :], strict=True):
            if name in self.rows:
                left[:, self.rows.index(name)] -= shift
        left[:, self.angles] = (left[:, self.angles] + pi) % tau - pi
        return left

    def jacobian(self, c: Configuration) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the rows by unknowns (N, E, K) and by measured coordinates (N, E, M)."""
        found = c.coefficients(list(self.rows), order=1, wrt=(*self.names, *self.dimensions))
        places = [found.columns.index(name) for name in (*self.names, *self.dimensions)]
        M = len(self.names)
        G, J = np.split(found.G[..., places], [M], axis=-1)
        shifts = np.zeros((*G.shape[:2], len(self.offsets)))
        for k, name in enumerate(self.offsets):
            if name in self.names:
                shifts[..., k] = -G[..., self.names.index(name)]
            else:
                shifts[:, self.rows.index(name), k] = 1.0
        return np.concatenate([J, shifts], axis=-1), G

    def base(self, c: Configuration, gap_min: float) -> BaseParameters:
        """Return the combinations of the unknowns that the samples determine, at their start."""
        J = self.jacobian(c)[0] / self.row_size[:, None] * self.unit
        A = J[np.isfinite(self.measured)]
        used = np.flatnonzero((np.abs(A) > ZERO_RTOL * np.abs(A).max(initial=0.0)).any(axis=0))
        if not len(used):
            raise InputError(
                "`measurements` must depend on the dimensions, but these rows do not. Measure other rows.",
                key="measurements",
            )
        if len(A) <= len(used):
            rule = f"must have more values of rows than the {len(used)} unknowns"
            raise invalid("measurements", rule, len(A), "Measure more, or name fewer dimensions.")
        A, order = A[:, used] / self.unit[used], list(range(len(used)))
        return base_parameters(A, used, self.parameters, self.start, order, gap_min)

    def noise(self, noise: Mapping[str, float] | None) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the given standard deviations of rows (E,) and of coordinates (M,), or None."""
        if noise is None:
            return None
        given = mapping("noise", noise, "rows to standard deviations")
        if not set(self.rows) <= set(given) <= {*self.rows, *self.names}:
            rule = f"must have the keys {', '.join(self.rows)}, and may have those of coordinates"
            raise invalid("noise", rule, tuple(given))
        sizes = {name: positive(f"noise[{name!r}]", x) for name, x in given.items()}
        return np.array([sizes[n] for n in self.rows]), np.array([sizes.get(n, 0.0) for n in self.names])

    def solve(
        self, start: Configuration, columns: np.ndarray, noise: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Configuration]:
        """Return unknowns (K,), the covariance of some (R,), noise of rows (E,), and configurations (N,)."""
        x, c, ones = self.start, start, np.ones(len(self.rows))
        sizes, inputs = (self.row_size, np.zeros(len(self.names))) if noise is None else noise
        for _ in range(WEIGHTINGS_MAX):
            weights, last = self._weights(c, sizes, inputs), (x, sizes)
            x, c = self._search(x, c, columns, weights)
            left, J = self.residual(c, x), self.jacobian(c)[0][..., columns]
            if noise is None:
                given: Any = J, left, self.row_size, None, self._kinds
                _, covariance, sizes = weighted_least_squares(*given)
            else:
                _, covariance, _ = weighted_least_squares(weights @ J, self._times(weights, left), ones, ones)
            moved = np.abs(x - last[0])[columns] / np.sqrt(np.diagonal(covariance)) * inputs.any()
            if max(moved.max(), np.abs(1.0 - last[1] / sizes).max()) <= NOISE_CHANGE_RTOL:
                break
        return x, covariance, sizes, c

    @property
    def _kinds(self) -> np.ndarray:
        """Array (E,) of numbers of rows of parts of one kind and unit."""
        m = self.mechanism
        labels = [f"{type(find_part(m, part_of(name))).__name__} {row_unit(m, name)}" for name in self.rows]
        return np.unique(labels, return_inverse=True)[1]

    def _weights(self, c: Configuration, rows: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """Return matrices (N, E, E) that make residuals of unit covariance, for noise of rows and inputs."""
        G = np.where(np.isfinite(self.measured)[..., None], self.jacobian(c)[1], 0.0) * inputs
        return np.linalg.inv(np.linalg.cholesky(G @ G.swapaxes(1, 2) + np.diag(rows**2)))

    def _times(self, weights: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Return weighted residuals (N, E), zero in empty cells."""
        return np.asarray((weights @ np.nan_to_num(left)[..., None])[..., 0])

    def _search(
        self, x: np.ndarray, c: Configuration, columns: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, Configuration]:
        """Return unknowns (K,) of least squares from others, and their configurations."""
        from scipy.optimize import least_squares

        first, unit, there = x, self.unit[columns], np.isfinite(self.measured)[..., None]
        tried = [c]

        def place(y: np.ndarray) -> np.ndarray:
            x = first.copy()
            x[columns] += unit * (y - 1.0)
            return x

        def errors(y: np.ndarray) -> np.ndarray:
            x = place(y)
            tried[:] = [self.at(x, "mask")]
            if not tried[0].ok.all():  # the search takes a smaller step
                return np.full(self.measured.size, np.inf)
            return self._times(weights, self.residual(tried[0], x)).ravel()

        def derivatives(_: np.ndarray) -> np.ndarray:
            self.near = tried[0]  # accepted
            J = np.where(there, self.jacobian(self.near)[0][..., columns] * unit, 0.0)
            return -(weights @ J).reshape(-1, len(columns))

        found = least_squares(
            errors,
            np.ones(len(columns)),
            derivatives,
            ftol=COST_RTOL,
            xtol=STEP_RTOL,
            gtol=None,
            max_nfev=SEARCH_EVALUATIONS_MAX,
        )
        if not found.status:
            raise SingularError(
                f"The search for the estimates must converge, but did not in {SEARCH_EVALUATIONS_MAX} evaluations. "
                "Name fewer dimensions, or correct samples that are errors."
            )
        x = place(found.x)
        return x, self.at(x)
