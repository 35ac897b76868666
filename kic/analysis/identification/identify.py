"""Masses, inertias, friction and springs from measured motions and efforts, by weighted least squares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.analysis.identification.consistency import consistent_values
from kic.analysis.identification.estimates import Estimates, weighted_least_squares
from kic.analysis.identification.measurements import (
    CURRENT,
    EFFORT,
    MOTION,
    MOTION_CYCLES,
    TIME,
    TORQUE,
    Columns,
    check_filter,
    check_near,
    independent,
    low_pass,
    passed_noise,
    standard_deviations,
    within_ends,
)
from kic.description.description import held_coordinates
from kic.description.units import effort_unit
from kic.dynamics.dynamic_parameters import (
    dynamic_parameters,
    parameters_with_value,
    with_parameters,
)
from kic.dynamics.regressor import SINGULAR_GAP_MIN, Regressor
from kic.errors import InertiaError, InputError, invalid, unknown
from kic.mechanism.configuration import Configuration, flat_states, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import mapping, names_of, positive
from kic.numerics.arrays import real_array
from kic.numerics.display import Summary
from kic.numerics.registration import with_methods
from kic.numerics.tables import DataTable, TableAxis, Variable
from kic.numerics.tolerances import RANK_RTOL

if TYPE_CHECKING:
    from kic.plotting import plots as _plots

# correlation of successive residuals above which intervals are too narrow
CORRELATION_MAX = 0.3


@with_methods
@dataclass(frozen=True, eq=False, repr=False)
class Identification(Estimates):
    """Combinations of parameters that measured motions and efforts determine, with their uncertainty.

    Attributes
    ----------
    base : BaseParameters
        The R combinations in words, with the values of the description.
    values : (R,) ndarray
        Estimates of the combinations.
    covariance : (R, R) ndarray
        Covariance of the estimates.
    noise : (E,) ndarray
        Standard deviations of the efforts, after filters.
    residual : (N, E) ndarray
        Efforts less the estimated ones; filtered if `cutoff` was given.
    freedom : (R,) ndarray
        Degrees of freedom of the variances of the estimates; infinite with given noise.
    unused : tuple of str
        Columns of the measurements without use.
    description : Mechanism
        The mechanism before.
    efforts : tuple of str
        Names of the E measured efforts.
    effort : (N, E) ndarray
        Efforts of these parameters, which are the measured ones less known efforts.
    t : (N,) ndarray or None
        Times, if they were measured.

    Examples
    --------
    >>> m = kic.load("horn-two-link")
    >>> run = kic.trajectory.quintic([0.0, 0.0], [1.0, 2.0], duration=1.0).on(m, 50)
    >>> found = m.identify(run.table([*m.coordinates, "efforts"]))
    >>> found.base.expressions[-1], bool(np.allclose(found.values, found.base.values))
    ('link2.my', True)
    """

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        plot = _plots.plot_identification

    _one_line = ("efforts", "noise")

    efforts: tuple[str, ...]
    effort: np.ndarray
    t: np.ndarray | None

    @property
    def correlation(self) -> np.ndarray:
        """Array (E,) of the correlations of successive residuals; near 0 if nothing is missing."""
        size = (self.residual**2).sum(axis=0)
        products = (self.residual[1:] * self.residual[:-1]).sum(axis=0)
        return np.asarray(products / np.where(size > 0, size, 1.0))

    @cached_property
    def consistent(self) -> np.ndarray:
        """Array (K,) of values of all parameters that real bodies can have, with the estimated combinations.

        The pseudo-inertia of every body is positive definite, or, if other numbers are known, as flat as they
        make it, and friction, damping, stiffness and rotor inertias are not negative. Of all such values
        these are nearest to the description: only combinations are measured. If no such values have the
        estimated combinations, because of noise, these are the nearest in the metric of the covariance. It
        requires the solver Clarabel.
        """
        model = model_of(self.description)
        return consistent_values(model, self.base, self.values, self.covariance)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism with the values `consistent`."""
        values = zip(self.parameters, self.consistent.tolist(), strict=True)
        return with_parameters(self.description, dict(values))

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        m, axis = self.description, TableAxis("sample", range(len(self.effort)))
        if self.t is not None:
            axis = TableAxis(TIME, self.t, m.units.time)
        tables = {"": self.effort, ".estimate": self.effort - self.residual, ".residual": self.residual}
        made = [
            Variable(f"{name}.{EFFORT}{end}", table[:, k], effort_unit(m, name))
            for k, name in enumerate(self.efforts)
            for end, table in tables.items()
        ]
        return DataTable(m.name, (axis,), tuple(made)).select(names)

    def summary(self) -> Summary:
        """Return tables of the estimates with their 95 % intervals, and of the residuals."""
        sheet, (low, high) = self._sheet("description", self.base.values), self.interval().T
        units = [f"{name} ({effort_unit(self.description, name)})" for name in self.efforts]
        size = np.linalg.norm(self.effort, axis=0)
        share = np.linalg.norm(self.residual, axis=0) / np.where(size > 0, size, 1.0)
        facts = np.column_stack([self.noise, 100 * share, self.correlation])
        sheet.matrix("residuals", units, ["noise", "% of effort", "correlation"], facts)
        inside = [name for name, a, b in zip(self.base.expressions, low, high, strict=True) if a < 0 < b]
        self._say_names(sheet, {"not distinguished from zero": inside})
        signs = np.where(share > RANK_RTOL, self.correlation, 0.0)
        if (signs > CORRELATION_MAX).any():
            sheet.say(
                "Successive residuals are alike, so that the intervals are too narrow: an effect is not "
                "among the parameters, or samples are closer than noise changes."
            )
        if (signs < -CORRELATION_MAX).any():
            sheet.say(
                "Successive residuals alternate: noise of positions dominates, which biases the estimates. "
                "Give a smaller `cutoff`."
            )
        return sheet


def identify(
    mechanism: Mechanism,
    measurements: Any,
    of: str | Iterable[str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    wrt: str | Iterable[str] | None = None,
    near: Configuration | None = None,
    applied: dict[str, Any] | None = None,
    noise: Mapping[str, float] | None = None,
    cutoff: float | None = None,
    gap_min: float = SINGULAR_GAP_MIN,
) -> Identification:
    """Identify masses, inertias, friction, springs and rotors from measured motions and efforts.

    Efforts are linear in these parameters, T = Y π. Weighted least squares determine the combinations of them
    that have an effect; see `Configuration.regressor`.

    Parameters
    ----------
    measurements : path, DataTable, DataFrame or dict of str to (N,) array_like
        A CSV file or columns by name: "A" for values of a coordinate, "A.rate" and "A.acceleration",
        "A.effort", "M1.current" or "M1.torque" of a motor, "t" for the time. A name may have a unit, such as
        "A (deg)" or "A.rate (rpm)"; other numbers are in units of the model. Samples with empty cells are
        left out.
    of : str or list of str, optional
        The parameters, such as ["crank", "A.friction"]; by default as in `Configuration.regressor`. All other
        parameters of the description are known.
    columns : dict of str to str, optional
        Columns of the measurements by these names, such as {"A": "crank angle (deg)"}.
    wrt : str or list of str, optional
        Measured coordinates; by default those of the mechanism, or all measured ones if these are others.
    near : Configuration, optional
        Configuration near the first sample, as in `Mechanism.path`.
    applied : dict of str to (N, 3) or (3,) array_like, optional
        Known forces and moments, as in `Configuration.dynamics`.
    noise : dict of str to float, optional
        Standard deviations of all efforts, before filters; by default estimated from the residuals.
    cutoff : float, optional
        Frequency, in cycles per time, that contains the motion. Values are low-passed at twice this
        frequency, without delay, and differentiated where rates or accelerations are not measured. Efforts
        and regressor are low-passed at this frequency, with at most two samples in each of its cycles. It
        needs "t" in equal steps.
    gap_min : float
        Smallest gap of singular values, as in `Regressor.base`.

    Returns
    -------
    Identification

    Raises
    ------
    InputError, UnknownNameError, FileError
        If columns are missing or are not numbers.
    SingularError
        If the motions do not determine a number of combinations, as in `Regressor.base`.
    InertiaError
        If a body that is not among the parameters has no mass or inertia.
    ConfigurationError
        If the mechanism cannot have measured values.

    Notes
    -----
    Efforts are measured at coordinates, at as many other rows as degrees of freedom, or at all redundant
    actuators. Coordinates without a measured effort contribute nothing; for a passive one, give zeros. The
    rotors of the description are known where currents or torques of motors are measured. Dry friction of the
    description is known, too, although `inverse_dynamics` does not include it. Efforts of redundant actuators
    become efforts at the coordinates, to which `efforts` and `noise` then refer; those of motors become
    efforts at their joints.

    The regressor is taken as exact: noise of positions that passes `cutoff` biases the estimates.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> t = np.linspace(0.0, 2.0, 200)
    >>> A, rate, acceleration = 3 * t + np.sin(5 * t), 3 + 5 * np.cos(5 * t), -25 * np.sin(5 * t)
    >>> torque = m.path({"A": A}).inverse_dynamics(rate[:, None], acceleration[:, None])[:, 0]
    >>> torque += 0.02 * np.sign(rate) + np.random.default_rng(1).normal(0, 0.005, 200)
    >>> data = {"A": A, "A.rate": rate, "A.acceleration": acceleration, "A.effort": torque}
    >>> found = m.identify(data, "A.friction")
    >>> found.values.round(3), found.sigma.round(4)
    (array([0.02]), array([0.0003]))
    """
    if cutoff is not None:
        cutoff = positive("cutoff", cutoff)
    data = Columns(mechanism, measurements, columns)
    motion = _Motion(mechanism, data, wrt, near, cutoff)
    asked = motion.regressor(of)
    rest = motion.effort - motion.known(asked.parameters, applied)
    base = asked.base(gap_min=gap_min)
    Y, t = asked.matrix[..., base.columns], data.t
    if cutoff is not None:
        chosen = independent(t, cutoff)
        Y, rest, t = (x[chosen] for x in (low_pass(t, cutoff, Y), low_pass(t, cutoff, rest), t))  # type: ignore[index]
    sizes = None
    if noise is not None:
        given = standard_deviations(noise, motion.acting)
        sizes = np.array([given[n] for n in motion.acting])
        sizes = sizes * (1.0 if cutoff is None else passed_noise(data.t, cutoff))
    N, E, R = Y.shape
    if N * E <= R:
        rule = f"must have more efforts of samples than the {R} combinations of parameters"
        raise invalid("measurements", rule, N * E, "Measure longer, or name fewer parameters.")
    remedy = "Give longer measurements" + ("." if cutoff is None else ", or a larger `cutoff`.")
    found = weighted_least_squares(Y, rest, np.abs(rest).max(axis=0), remedy, sizes)
    return Identification(
        base=base,
        values=found.x,
        covariance=found.covariance,
        noise=found.noise,
        residual=rest - Y @ found.x,
        freedom=found.freedom,
        unused=tuple(data.unused),
        description=mechanism,
        efforts=motion.acting,
        effort=rest,
        t=t,
    )


class _Motion:
    """Measured configurations with rates and accelerations, in the rows whose efforts are measured.

    Attributes
    ----------
    path : Configuration
        Configurations (N,).
    wrt : tuple of str
        Coordinates (M) of rates and accelerations.
    rates : (2, N, M)
        Rates and accelerations.
    acting, effort : tuple of str, (N, E)
        Coordinates whose efforts are known, and these.
    motors : tuple of str
        Motors with a measured current or torque.
    samples, kept : int, (N,) int
        Number of the measured samples, and those that remain.
    """

    def __init__(
        self, mechanism: Mechanism, data: Columns, wrt: Any, near: Configuration | None, cutoff: float | None
    ) -> None:
        self.mechanism = mechanism
        there = data.table[""]
        held = held_coordinates(mechanism)
        names = mechanism.coordinates if wrt is None else names_of(wrt, "wrt", 1)
        if wrt is None:
            names = tuple(name for name in names if name in there or name not in held)
            names = names if set(names) <= set(there) else tuple(there) or names
        if not names:
            raise InputError(f"'{mechanism.name}' must move to be identified, but has no coordinates.")
        data.require("values of coordinates", names, there)
        data.unused += [name for name in there if name not in names]
        check_near(near)
        self.kept = self._complete(data, names, cutoff)
        series = np.array([data.series(name, cutoff and 2 * cutoff) for name in names])
        if cutoff is not None:
            cut = within_ends(data.t, cutoff, MOTION_CYCLES)
            data.keep(cut)
            series, self.kept = series[..., cut], self.kept[cut]
        values, *rates = series.transpose(1, 2, 0)
        efforts = self._efforts(data)
        data.require("an effort", () if efforts else [f"{name}.{EFFORT}" for name in names], ())
        self.path = mechanism.path(dict(zip(names, values.T, strict=True)), near=near)
        self.effort = np.stack(list(efforts.values()), axis=1)
        # held dimensions are coordinates at rest
        self.wrt = labels = model_of(mechanism).transfer_for(names).labels
        self.acting, self.rates = tuple(efforts), np.zeros((2, len(values), len(labels)))
        self.rates[..., [labels.index(name) for name in names]] = rates
        if set(efforts) <= set(labels):
            return
        if len(efforts) < len(names):
            raise InputError(
                f"`measurements` must have efforts of the coordinates {', '.join(names)}, or of as many rows "
                f"as the {len(names)} degrees of freedom, got those of {', '.join(efforts)}. Measure the "
                "positions of these, and name them in `wrt`.",
                key="measurements",
                got=tuple(efforts),
            )
        if len(efforts) == len(labels):
            moved = self.path.motion(list(efforts), *self.rates, wrt=labels)
            self.wrt, self.rates = tuple(efforts), np.stack(moved[1:3])
        else:
            G = self.path.coefficients(list(efforts), order=1, wrt=labels).G
            G = G[..., [labels.index(name) for name in names]]
            self.effort, self.acting = np.einsum("npm,np->nm", G, self.effort), names

    def _complete(self, data: Columns, names: tuple[str, ...], cutoff: float | None) -> np.ndarray:
        """Leave samples with empty cells out, and return the indices of the others."""
        used = [data.table[key][name] for key in MOTION for name in names if name in data.table[key]]
        used += [x for key in (EFFORT, CURRENT, TORQUE, TIME) for x in data.table[key].values()]
        complete = np.asarray(np.isfinite(used).all(axis=0))
        if cutoff is not None:
            check_filter(data.t, cutoff, bool(complete.all()))
        kept, self.samples = np.flatnonzero(complete), len(complete)
        if len(kept) < 2:
            raise invalid("measurements", "must have at least 2 samples without empty cells", len(kept))
        data.keep(kept)
        return kept

    def _efforts(self, data: Columns) -> dict[str, np.ndarray]:
        """Return the measured efforts by row, with those of motors at rows that only these drive."""
        made, torque = dict(data.table[EFFORT]), dict(data.table[TORQUE])
        train = model_of(self.mechanism).drive_train if torque or data.table[CURRENT] else None
        for name, current in data.table[CURRENT].items():
            k = train.names.index(name)  # type: ignore[union-attr]
            if name in torque or not train.electrical[k]:  # type: ignore[union-attr]
                rule = "must have the current of a motor with `torque_constant`, or its torque, not both"
                raise invalid("measurements", rule, name)
            torque[name] = train.torque_constant[k] * current  # type: ignore[union-attr]
        self.motors = tuple(torque)
        if train is None:
            return made
        measured = np.isin(train.names, self.motors)
        for j, row in enumerate(train.joints):
            ratios = train.ratios[:, j]
            if not ratios[measured].any():
                continue
            if row in made or ratios[~measured].any():
                rule = f"must have the effort of '{row}' alone, or currents or torques of all of its motors"
                raise invalid("measurements", rule, ", ".join(self.motors))
            made[row] = sum(ratios[train.names.index(name)] * x for name, x in torque.items())
        return made

    def regressor(self, of: Any) -> Regressor:
        """Return the regressor of parameters in the coordinates whose efforts are known."""
        return self.path.regressor(*self.rates, of=of, wrt=self.wrt).select(self.acting)

    def known(self, asked: tuple[str, ...], applied: Mapping[str, Any] | None) -> np.ndarray:
        """Return the efforts (N, E) of all other parameters, and of forces and moments."""
        m, model = self.mechanism, model_of(self.mechanism)
        silent = {motor.name for motor in m.motors}.difference(self.motors)
        if idle := tuple(name for name in asked if name.rpartition(".")[0] in silent):
            raise InputError(
                "`measurements` must have the current or torque of a motor whose parameters are found, "
                f"got none for {', '.join(idle)}. Add a column, or name numbers of its joint.",
                key="measurements",
                names=idle,
            )
        effort = np.zeros(())
        if rest := [name for name in parameters_with_value(model.tree, self.motors) if name not in asked]:
            r = self.regressor(rest)
            bare = np.isnan(r.values)
            if missing := tuple(rest[k] for k in np.flatnonzero(bare) if r.matrix[..., k].any()):
                raise InertiaError(
                    f"Parameters of '{m.name}' that are not identified must have a value, got none for "
                    f"{', '.join(missing)}. Give the mass and inertia of these bodies, or name them in `of`.",
                    names=missing,
                )
            effort = r.matrix @ np.where(bare, 0.0, r.values)
        loads = (*(force.name for force in m.forces), *(moment.name for moment in m.moments))
        known = {}
        for name, x in ({} if applied is None else mapping("applied", applied, "loads to numbers")).items():
            if name not in loads:
                raise unknown("force or moment", name, m.name, loads)
            a = real_array(f"applied[{name!r}]", x, 3)
            if a.ndim > 1 and a.shape != (self.samples, 3):
                raise invalid(f"applied[{name!r}]", f"must have shape (3,) or {(self.samples, 3)}", a.shape)
            known[name] = a[self.kept] if a.ndim > 1 else a
        if loads:
            massless = m.replace(points=tuple(replace(point, mass=0.0) for point in m.points))
            zeros = dict.fromkeys(dynamic_parameters(model.tree, None).names, 0.0)
            other = model_of(with_parameters(massless, zeros))
            c = Configuration(other, self.path.batch, flat_states(self.path))
            places = [self.wrt.index(name) for name in self.acting]
            effort = effort + c.inverse_dynamics(wrt=self.wrt, applied=known)[:, places]
        return effort
