"""Distribution of a generalized effort over more actuators than degrees of freedom (eqs 4-76 to 4-90)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np

from kic.description.description import declared_limits, given_names
from kic.description.units import row_unit
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, LimitError, invalid
from kic.kinematics.coefficients import Coefficients
from kic.mechanism.configuration import Configuration, efforts_at_coordinates, model_of
from kic.numerics.arguments import by_name
from kic.numerics.arrays import as_array, broadcast_batches, map_valid_members, numbers, real_array, scatter
from kic.numerics.convex_programs import largest_feasible_share, minimize_largest_share, nearest
from kic.numerics.display import Batched, Summary
from kic.numerics.limits import bounds
from kic.tasks.actuation.internal_loads import EffortSpace, InternalLoads, stiffness
from kic.transfer.compiled_model import CompiledModel

CRITERIA = ("minimum norm", "limits", "least largest share")
# smallest eigenvalue, and largest asymmetry, of a weight matrix scaled to a unit diagonal
WEIGHTS_RTOL = 1e-12
# an attainable share of a demand above this is reported as nearly all of it
NEARLY_ALL_MIN = 1 - 1e-6


@dataclass(frozen=True)
class EffortBounds:
    """Lower and upper bounds (..., A) of efforts; may be infinite."""

    lower: np.ndarray
    upper: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """Larger magnitude of the two bounds."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def needed(self, criterion: str, labels: tuple[str, ...]) -> np.ndarray:
        """Return `size`; raise InputError unless it is finite and positive."""
        valid = (np.isfinite(self.size) & (self.size > 0)).reshape(-1, len(labels)).all(axis=0)
        if not valid.all():
            names = ", ".join(x for x, ok in zip(labels, valid, strict=True) if not ok)
            raise InputError(
                f"`effort_limits` must be finite and positive for criterion='{criterion}'; those of {names} "
                "are zero or infinite. Change them, leave out these actuators, or give weights.",
                key="effort_limits",
            )
        return self.size


@dataclass(frozen=True)
class EffortMetric:
    """Metric |y|² of efforts T = root y."""

    name: str  # the criterion, or "weights"
    root: np.ndarray  # (..., A, A): F⁻¹, where W = FᵀF

    @classmethod
    def from_arguments(
        cls, criterion: Any, bounds: EffortBounds | None, labels: tuple[str, ...], model: CompiledModel
    ) -> EffortMetric:
        """Return the metric for a criterion, given as a name, weights (A,) or a matrix (..., A, A)."""
        if not isinstance(criterion, str):
            return cls("weights", _inverse_weight_factor(criterion, labels))
        if criterion not in CRITERIA:
            raise invalid(
                "criterion",
                f"must be one of {', '.join(map(repr, CRITERIA))}, weights (A,) or a matrix (..., A, A)",
                criterion,
            )
        if criterion == "minimum norm":
            turning = {row_unit(model.description, x) == "rad" for x in labels}
            if len(turning) > 1:
                message = (
                    "criterion='minimum norm' would add squares of forces and of moments here; the result "
                    "would depend on the unit of length. Give `effort_limits` with criterion='limits', or "
                    "weights."
                )
                raise InputError(message, key="criterion", got=criterion)
            return cls(criterion, np.eye(len(labels)))
        if bounds is None:
            raise InputError(
                f"criterion='{criterion}' requires `effort_limits`, the largest effort of each actuator.",
                key="effort_limits",
            )
        size = bounds.needed(criterion, labels)
        return cls(criterion, size[..., None] * np.eye(len(labels)))


def _inverse_weight_factor(weights: Any, labels: tuple[str, ...]) -> np.ndarray:
    """Return F⁻¹ for W = FᵀF, from weights (A,) or a symmetric positive definite W (..., A, A)."""
    count = len(labels)
    a = numbers("criterion", weights)
    a = as_array("criterion", a, count) if a.ndim < 2 else as_array("criterion", a, count, count)
    if a.dtype != np.float64:
        raise InputError(f"Weights must be real numbers, got {a.dtype}.", key="criterion", got=a.dtype)
    if a.ndim == 1:
        if not (a > 0).all():
            k = int(np.argmin(a))
            message = (
                f"Weights must be positive, got {a[k]:g} for '{labels[k]}': an effort without a cost is "
                "undetermined. Give it a small weight, or limits."
            )
            raise InputError(message, key="criterion", name=labels[k], got=a[k])
        return np.diag(1 / np.sqrt(a))
    size = np.sqrt(np.abs(np.einsum("...ii->...i", a)))
    scaled = a / np.where(size > 0, size, 1.0)[..., :, None] / np.where(size > 0, size, 1.0)[..., None, :]
    symmetric = np.abs(scaled - np.swapaxes(scaled, -1, -2)) <= WEIGHTS_RTOL
    if not symmetric.all() or not (np.linalg.eigvalsh(scaled) > WEIGHTS_RTOL).all():
        raise InputError(
            "Weights must be a symmetric positive definite matrix: otherwise some efforts have zero or "
            "negative cost. Use positive weights.",
            key="criterion",
        )
    return np.swapaxes(np.linalg.inv(np.linalg.cholesky(a)), -1, -2)


@dataclass(eq=False, repr=False)
class Distribution(Batched):
    """Efforts of actuators that produce a generalized effort: GᵀT = T_u.

    Attributes
    ----------
    actuators, coordinates : tuple of str
        Names of the A actuators and the M coordinates.
    criterion : str
        "minimum norm", "limits", "least largest share", or "weights".
    demand : (..., M)
        The generalized effort T_u.
    effort : (..., A)
        Efforts T.
    internal : (..., A)
        Part of the efforts that does no work; zero for the minimum norm without limits and preload.
    share : (..., A) or None
        Efforts as shares of the limits in their directions; 0 for infinite limits. None without limits.
    at_limit : (..., A) bool
        Efforts at their lower or upper limit.
    G, H : (..., A, M) and (..., A, M, M)
        Coefficients of the actuators (eqs 4-78, 4-79).

    Examples
    --------
    >>> c = kic.load("two-finger-hand").at()
    >>> place = ["object.x", "object.y", "object.angle"]
    >>> d = c.distribute([0.0, 3.0, 0.0], actuators=["A1", "B1", "A2", "B2"], wrt=place)
    >>> bool(abs(d.G.T @ d.effort - d.demand).max() < 1e-14)
    True
    """

    _one_line = ("actuators", "coordinates", "criterion", "batch")
    _per_member = ("effort", 1)

    actuators: tuple[str, ...]
    coordinates: tuple[str, ...]
    criterion: str
    demand: np.ndarray
    effort: np.ndarray
    internal: np.ndarray
    bounds: InitVar[EffortBounds | None]
    G: np.ndarray
    H: np.ndarray

    def __post_init__(self, bounds: EffortBounds | None) -> None:
        self.share: np.ndarray | Any = None  # users read it where they gave limits
        self.at_limit = np.zeros(self.effort.shape, dtype=bool)
        if bounds is not None:
            limit = np.where(self.effort < 0, bounds.lower, bounds.upper)
            some = (self.effort != 0) & np.isfinite(limit)
            self.share = np.where(np.isnan(self.effort), np.nan, 0.0)
            np.divide(self.effort, limit, out=self.share, where=some)
            self.at_limit = (self.effort == bounds.lower) | (self.effort == bounds.upper)

    @property
    def stiffness(self) -> np.ndarray:
        """Stiffness K = −Σ T_i H_i (..., M, M) of these efforts; see `InternalLoads.stiffness`."""
        return stiffness(self.H, self.effort)

    def summary(self) -> Summary:
        """Return a labelled table of the efforts."""
        where = ", ".join(self.coordinates)
        sheet = Summary(f"efforts of {len(self.actuators)} actuators for {where}, by {self.criterion}")
        index = sheet.member(self.batch)
        if index is not None:
            sheet.matrix("T_u (generalized effort)", self.coordinates, [""], self.demand[index][:, None])
            heads, columns = ["T", "does no work"], [self.effort[index], self.internal[index]]
            if self.share is not None:
                heads, columns = [*heads, "share of limit"], [*columns, self.share[index]]
            sheet.matrix("T (efforts)", self.actuators, heads, np.stack(columns, axis=-1))
            full = [x for x, at in zip(self.actuators, self.at_limit[index], strict=True) if at]
            if full:
                sheet.say(f"\nat a limit: {', '.join(full)}")
        return sheet


class ActuationProblem:
    """Actuators, a criterion and efforts at configurations: common input of all distribution problems.

    `G` and `H` are the coefficients of the actuators in (4-76), from (4-78) and (4-79). `given` holds the
    arrays `effort` (..., M) and `preload` (..., A), if any.
    """

    def __init__(
        self,
        configuration: Configuration,
        actuators: str | Iterable[str] | None,
        criterion: Any,
        limits: Any,
        wrt: str | Iterable[str] | None,
        failures: Literal["raise", "mask"],
        **given: Any,
    ) -> None:
        model = model_of(configuration)
        model.require_none_held("A distribution of efforts")
        # NaN in members without a configuration
        c = configuration.coefficients(model.actuators(actuators), wrt=wrt, failures=failures)
        self.given = dict[str, np.ndarray]()
        if "effort" in given:
            effort = efforts_at_coordinates(configuration, given["effort"], wrt, failures)
            self.given["effort"] = real_array("effort", effort, len(c.columns))
        if "preload" in given:
            preload = by_name("preload", given["preload"], c.rows)
            self.given["preload"] = real_array("preload", preload, len(c.rows))
        if c.G.dtype != np.float64:
            message = f"Efforts must be real numbers, got a configuration of {c.G.dtype}."
            raise InputError(message, key="configuration", got=c.G.dtype)
        self.model, self.c, self.failures = model, c, failures
        self.labels, self.coordinates = c.rows, c.columns
        limits = declared_limits(model.description, "effort_limits", limits, self.labels)
        self.bounds = None
        if limits is not None:
            self.bounds = EffortBounds(*bounds("effort_limits", limits, self.labels, batch=True))
        self.metric = EffortMetric.from_arguments(criterion, self.bounds, self.labels, model)
        shapes = {name: a.shape[:-1] for name, a in self.given.items()}
        if self.bounds is not None:
            shapes["effort_limits"] = self.bounds.upper.shape[:-1]
        self.batch = broadcast_batches(configuration=c.batch, criterion=self.metric.root.shape[:-2], **shapes)
        self._G, self._H = self.expand(c.G, 2), self.expand(c.needed("H", 2), 3)
        self.G, self.H = self.restore(self._G), self.restore(self._H)
        self._root = self.expand(self.metric.root, 2)
        assert c.scaling is not None  # for the type checker: coefficients of a mechanism have a scaling
        self._scaling, self._error = c.scaling, self.expand(np.broadcast_to(c.scaling.error, c.batch), 0)
        self.ok = np.isfinite(self.G).all(axis=(-2, -1))

    def expand(self, a: np.ndarray, rank: int) -> np.ndarray:
        """Return an array (n, …) with a row for each member; the last `rank` axes are not batch axes."""
        tail = a.shape[a.ndim - rank :]
        return np.broadcast_to(a, (*self.batch, *tail)).reshape(prod(self.batch), *tail)

    def restore(self, a: np.ndarray) -> np.ndarray:
        """Return an array (n, …) with its first axis reshaped to the batch."""
        return a.reshape(*self.batch, *a.shape[1:])

    def space(self, members: Any) -> EffortSpace:
        """Return the effort space at some members."""
        name = self.model.description.name
        parts = self._G[members], self._H[members], self._root[members]
        scaling = replace(self._scaling, error=self._error[members])
        return EffortSpace(*parts, scaling, self.labels, self.coordinates, name)

    def solve(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Return the results (...) of a function of members; NaN in members without a configuration."""
        valid, found = map_valid_members(self.ok, self.failures, function)
        return self.restore(scatter(found, valid))


def _within_bounds(
    problem: ActuationProblem,
    space: EffortSpace,
    least: np.ndarray,
    wanted: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    criterion: str,
) -> np.ndarray:
    """Return efforts (n, A) within bounds, nearest to those wanted, or with the least largest share."""
    T = wanted.copy()
    minimize_share = criterion == "least largest share"
    failed = []
    for b in np.flatnonzero(minimize_share | ~((lower <= wanted) & (wanted <= upper)).all(axis=1)).tolist():
        args = space.basis[b], lower[b], upper[b]
        # the wanted efforts are the minimum: the nearest ones in the metric have the least |z|
        found = minimize_largest_share(least[b], *args) if minimize_share else nearest(wanted[b], *args)
        if found is None:
            failed.append(b)
        else:
            T[b] = found
    if failed:
        b = failed[0]
        _raise_infeasible(problem.labels, space.basis[b], least[b], lower[b], upper[b], failed, len(T))
    return T


def _raise_infeasible(
    labels: tuple[str, ...],
    basis: np.ndarray,
    least: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    failed: list[int],
    count: int,
) -> None:
    """Raise an error with the binding limits and the attainable share of the effort."""
    found = largest_feasible_share(least, basis, lower, upper)
    binding = tuple(labels[i] for i in found.binding)
    which = f" (one of {len(failed)} such members of {count})" if count > 1 else ""
    names = ", ".join(binding)
    if found.scale is None:
        message = (
            f"No share of this generalized effort is attainable within the limits of {names}{which}. Widen "
            f"them by a factor of at least {1 + found.widen:.3g}, or use other actuators."
        )
        raise LimitError(message, scale=None, widen=found.widen, binding=binding, failed=failed)
    attainable = f"{found.scale:.6g}" if found.scale < NEARLY_ALL_MIN else "nearly all"
    message = (
        f"Within the limits the actuators can produce {attainable} of this generalized effort{which}; the "
        f"limits of {names} are binding. Reduce the effort, or raise these limits."
    )
    raise LimitError(message, scale=found.scale, binding=binding, failed=failed)


def distribute(
    configuration: Configuration,
    effort: Any,
    *,
    actuators: str | Iterable[str] | None = None,
    criterion: Any = "minimum norm",
    effort_limits: Any = None,
    preload: Any = None,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> Distribution:
    """Distribute a generalized effort among more actuators than degrees of freedom.

    The coordinates determine the motion of the actuators, but not their efforts T: with their Jacobian G,
    the requirement is GᵀT = T_u (4-80). The criterion selects the efforts of least TᵀWT, in closed form
    (4-81) to (4-86) if no limit is active, otherwise by an active-set method; or those with the smallest
    largest share of the limits.

    Parameters
    ----------
    effort : (..., M) array_like, or dict of str to (...) array_like
        Generalized effort T_u at the coordinates, for example from `Dynamics.inverse_dynamics`. A dict
        gives efforts at rows by name, zero at other rows.
    actuators : str or list of str, optional
        Rows where efforts act, (A,): joints (also those that are cut), distances, rows of points or
        bodies; by default the actuators of the mechanism.
    criterion : str or (A,) or (..., A, A) array_like
        "minimum norm" (W = 1), "limits" (weights 1/limit²), positive weights, or a symmetric positive
        definite W. "least largest share" minimizes the largest share, then the next, and so on; the
        result is unique.
    effort_limits : float, (A,) or (2, ..., A) array_like, dict of str to those, or True, optional
        Magnitudes, or lower and upper limits, which are never exceeded: ``{"L1": 20.0, "L2": (-9, 0)}``;
        (2, 1) numbers are one pair for all. They may be infinite unless the criterion divides by them.
        True selects `Mechanism.effort_limits`.
    preload : (..., A) array_like, or dict of str to (...) array_like, optional
        Efforts of the actuators; their component that does no work is added, as nearly as limits allow.
    wrt : str or list of str, optional
        Coordinates of the effort, as in `coefficients`; by default the mechanism's own.
    failures : {"raise", "mask"}
        Treatment of members without solution: raise an error, or return NaN.

    Returns
    -------
    Distribution
        ``d.effort`` (..., A), ``d.share``, ``d.at_limit``, ``d.internal`` (..., A), ``d.stiffness``.

    Raises
    ------
    InputError
        If there are fewer actuators than degrees of freedom, weights or limits are invalid, or the
        minimum norm is requested for forces and moments together.
    LimitError
        If the limits do not allow the effort. It has the feasible share and the limits that are active.
    SingularError
        If the actuators cannot drive every motion.

    Examples
    --------
    >>> c = kic.load("walking-machine").at()
    >>> weight = c.dynamics().inverse_dynamics([0, 0, 0], [0, 0, 0])
    >>> motors = ["B1", "C1", "B2", "C2"]
    >>> c.distribute(weight, actuators=motors).effort.round(2).tolist()
    [6.67, -5.88, -11.51, 4.04]
    >>> most = [40, 40, 20, 20]
    >>> d = c.distribute(weight, actuators=motors, criterion="least largest share", effort_limits=most)
    >>> d.share.round(3).tolist()
    [0.101, 0.268, 0.444, 0.444]
    """
    given = {"effort": effort} if preload is None else {"effort": effort, "preload": preload}
    problem = ActuationProblem(configuration, actuators, criterion, effort_limits, wrt, failures, **given)
    bounds, name = problem.bounds, problem.metric.name
    if name == "least largest share" and preload is not None:
        raise InputError(
            "`preload` cannot be combined with criterion='least largest share': both determine the internal "
            "loads. Use criterion='limits'.",
            key="preload",
        )
    arrays = dict(problem.given) if bounds is None else {**problem.given, **vars(bounds)}
    rows = {key: problem.expand(a, 1) for key, a in arrays.items()}

    def efforts_of(members: Any) -> np.ndarray:
        space, own = problem.space(members), {key: a[members] for key, a in rows.items()}
        T = least = space.minimum_effort(own["effort"])
        if preload is not None:
            T = least + space.internal_part(own["preload"])
        if bounds is not None:
            T = _within_bounds(problem, space, least, T, own["lower"], own["upper"], name)
        return np.stack([T, T - least], axis=1)

    made = problem.solve(efforts_of)
    demand = np.broadcast_to(problem.given["effort"], (*problem.batch, len(problem.coordinates)))
    return Distribution(
        problem.labels, problem.coordinates, name, demand, made[..., 0, :], made[..., 1, :], bounds,
        problem.G, problem.H,
    )  # fmt: skip


def static_efforts(
    configuration: Configuration,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the actuators and their efforts (..., A) that hold the mechanism against all loads.

    The actuators are `wrt`, else those of the mechanism. More actuators than degrees of freedom share the
    load with the least sum of squares.
    """
    model = model_of(configuration)
    if wrt is not None or given_names(model.description, "actuators") is None:
        d = configuration.dynamics(wrt=wrt, failures=failures)
        return d.coordinates, -d.load
    names = model.actuators(None)
    if len(names) > model.dof:
        load = configuration.dynamics(failures=failures).load
        failed = np.isnan(load).any(axis=-1, keepdims=True)  # masked members
        T = distribute(configuration, np.where(failed, 0.0, -load), actuators=names, failures=failures).effort
        return names, np.where(failed, np.nan, T)
    return names, -configuration.dynamics(wrt=names, failures=failures).load


def internal_loads(
    configuration: Configuration,
    *,
    actuators: str | Iterable[str] | None = None,
    criterion: Any = "minimum norm",
    effort_limits: Any = None,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> InternalLoads:
    """Compute the internal loads: efforts of actuators that balance each other and do no work.

    Parameters
    ----------
    actuators : str or list of str, optional
        Rows where efforts act, (A,), as in `distribute`.
    criterion : str or (A,) or (..., A, A) array_like
        Metric in which the basis is orthonormal: "minimum norm", "limits" or weights, as in `distribute`.
    effort_limits : optional
        Limits as in `distribute`, for "limits".
    wrt, failures
        As in `distribute`. The space does not depend on the coordinates; the stiffness does.

    Returns
    -------
    InternalLoads
        ``loads.basis`` (..., A, A − M), ``loads.efforts``, ``loads.stiffness``.

    Raises
    ------
    InputError, SingularError
        As `distribute`.

    Examples
    --------
    >>> loads = kic.load("walking-machine").at().internal_loads(actuators=["B1", "C1", "B2", "C2"])
    >>> print(*loads.sentences())
    Internal load 1: B1, C1 against B2, C2.
    """
    problem = ActuationProblem(configuration, actuators, criterion, effort_limits, wrt, failures)

    def bases_of(members: Any) -> np.ndarray:
        space = problem.space(members)
        return np.stack([space.basis, space.dual], axis=1)

    made, name = problem.solve(bases_of), problem.metric.name
    basis, dual = made[..., 0, :, :], made[..., 1, :, :]
    return InternalLoads(problem.labels, problem.coordinates, name, basis, problem.G, problem.H, dual)


def actuator_dynamics(
    configuration: Configuration,
    *,
    actuators: str | Iterable[str] | None = None,
    criterion: Any = "minimum norm",
    effort_limits: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> Dynamics:
    """Compute I*, P* and loads at more actuators than degrees of freedom (eqs 4-87 to 4-90).

    The dynamics in the coordinates (4-76) to (4-79) are mapped to the actuators by a pseudo-inverse.

    Parameters
    ----------
    actuators, criterion, effort_limits, wrt
        As in `distribute`; limits act as weights only.
    applied : dict of str to (..., 3) array_like, optional
        As in `dynamics`.
    failures : {"raise", "mask"}
        As in `distribute`.

    Returns
    -------
    Dynamics
        I* (..., A, M), P* (..., A, M, M), Tᴸ (..., A), with the actuators as `efforts`. Its
        `inverse_dynamics` gives the efforts of `dynamics`, distributed to the actuators.

    Raises
    ------
    InputError, SingularError, InertiaError
        As `distribute` and `dynamics`; also for "least largest share", which is not linear.

    Examples
    --------
    >>> c = kic.load("two-finger-hand").at()
    >>> c.actuator_dynamics(actuators=["A1", "B1", "A2", "B2"]).P.shape
    (4, 3, 3)
    """
    problem = ActuationProblem(configuration, actuators, criterion, effort_limits, wrt, failures)
    dynamics = configuration.dynamics(wrt=wrt, applied=applied, failures=failures)
    if problem.metric.name == "least largest share":
        message = (
            "criterion='least largest share' is not linear in the effort and has no mass matrix (I*) or "
            "Christoffel symbols (P*). Use another criterion, or call distribute()."
        )
        raise InputError(message, key="criterion", got="least largest share")
    inverse = problem.solve(lambda members: problem.space(members).inverse())
    quasi = problem.c.quasi.intersection(problem.coordinates)
    left = Coefficients(problem.coordinates, problem.labels, inverse, quasi=problem.c.quasi)
    return dynamics.transfer(Coefficients.identity(problem.coordinates, quasi), left=left)
