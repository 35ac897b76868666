"""Distribution of a generalized effort over more actuators than freedoms (eqs 4-76 to 4-90)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np

from kic.actuation.internal_loads import InternalLoads, Space, stiffness
from kic.configuration import Configuration
from kic.description.units import row_unit
from kic.display import Summary, member
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, LimitError, short_repr
from kic.kinematics.coefficients import Coefficients
from kic.numerics.arguments import names_of
from kic.numerics.arrays import as_array, broadcast_batches, map_valid_members, numbers, scatter
from kic.numerics.convex_programs import least_largest, nearest, reach
from kic.transfer.compiled_model import CompiledModel

CRITERIA = ("minimum norm", "limits", "least largest share")
# weights worse than this, each scaled by its own size, are no measure
_WORST_WEIGHTS = 1e-12


@dataclass(frozen=True)
class Bounds:
    """Least and greatest efforts (..., A) of actuators, perhaps infinite."""

    lower: np.ndarray
    upper: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """The larger of both, by magnitude."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    @classmethod
    def of(cls, limits: Any, lower: Any, labels: tuple[str, ...]) -> Bounds | None:
        """From arguments (..., A) or scalars; lower ones are by default the negative of the upper."""
        if limits is None and lower is None:
            return None
        high = np.full(len(labels), np.inf) if limits is None else _efforts("limits", limits, labels)
        low = -high if lower is None else _efforts("lower", lower, labels)
        broadcast_batches(limits=high.shape[:-1], lower=low.shape[:-1])
        low, high = np.broadcast_arrays(low, high)
        wrong = np.argwhere(~(low <= high))
        if len(wrong):
            at = tuple(wrong[0])
            name = labels[at[-1]]
            if lower is None:
                raise InputError(
                    f"Expected `limits` to be zero or more, got {high[at]:g} for '{name}'. They are "
                    "magnitudes; give `lower` beside them where an effort has one sign.",
                    name=name,
                )
            raise InputError(
                f"Limits of '{name}' leave nothing: its `lower` is {low[at]:g}, its `limits` {high[at]:g}. "
                "Exchange or widen them.",
                name=name,
            )
        return cls(low, high)

    def needed(self, criterion: str, labels: tuple[str, ...]) -> np.ndarray:
        """Sizes, if every actuator has limits that are finite, and not zero."""
        good = (np.isfinite(self.size) & (self.size > 0)).reshape(-1, len(labels)).all(axis=0)
        if not good.all():
            names = ", ".join(x for x, fine in zip(labels, good, strict=True) if not fine)
            raise InputError(
                f"The criterion '{criterion}' divides by limits; those of {names} are zero or infinite. Give "
                "finite ones, leave out actuators that give nothing, or give weights as the criterion."
            )
        return self.size


def _efforts(name: str, value: Any, labels: tuple[str, ...]) -> np.ndarray:
    """Real numbers (..., A), perhaps infinite; a single one stands for all."""
    a = numbers(name, value)
    a = np.full(len(labels), a) if a.ndim == 0 else as_array(name, a, len(labels), finite=False)
    if a.dtype != np.float64 or np.isnan(a).any():
        raise InputError(f"Expected `{name}` to be real numbers, got {short_repr(value)}.")
    return a


@dataclass(frozen=True)
class Metric:
    """How efforts are measured: |y|² of y with T = root y.

    Attributes
    ----------
    name : str
        The criterion, or "weights".
    root : (..., A, A)
        F⁻¹, where W = FᵀF.
    """

    name: str
    root: np.ndarray

    @classmethod
    def of(
        cls, criterion: Any, bounds: Bounds | None, labels: tuple[str, ...], model: CompiledModel
    ) -> Metric:
        """From a criterion by name, weights (A,) or a matrix (..., A, A)."""
        if not isinstance(criterion, str):
            return cls("weights", _root(criterion, labels))
        if criterion not in CRITERIA:
            raise InputError(
                f"Expected `criterion` to be one of {', '.join(map(repr, CRITERIA))}, weights (A,) or a "
                f"matrix (..., A, A), got {short_repr(criterion)}."
            )
        if criterion == "minimum norm":
            turning = {row_unit(model.description, x) == "rad" for x in labels}
            if len(turning) > 1:
                raise InputError(
                    "A minimum norm would add squares of forces and of moments here, and its answer depend "
                    "on the unit of length. Give `limits` with criterion='limits', or weights instead."
                )
            return cls(criterion, np.eye(len(labels)))
        if bounds is None:
            raise InputError(
                f"The criterion '{criterion}' needs `limits`, the greatest effort of each actuator."
            )
        size = bounds.needed(criterion, labels)
        return cls(criterion, size[..., None] * np.eye(len(labels)))


def _root(weights: Any, labels: tuple[str, ...]) -> np.ndarray:
    """F⁻¹ of weights (A,) or a symmetric positive definite W (..., A, A)."""
    count = len(labels)
    a = numbers("criterion", weights)
    a = as_array("criterion", a, count) if a.ndim < 2 else as_array("criterion", a, count, count)
    if a.dtype != np.float64:
        raise InputError(f"Expected weights to be real numbers, got {a.dtype}.")
    if a.ndim == 1:
        if not (a > 0).all():
            k = int(np.argmin(a))
            raise InputError(
                f"Expected weights above zero, got {a[k]:g} for '{labels[k]}': an effort that costs nothing "
                "is not told. Give it a small weight, or limits.",
                name=labels[k],
            )
        return np.diag(1 / np.sqrt(a))
    size = np.sqrt(np.abs(np.einsum("...ii->...i", a)))
    scaled = a / np.where(size > 0, size, 1.0)[..., :, None] / np.where(size > 0, size, 1.0)[..., None, :]
    even = np.abs(scaled - np.swapaxes(scaled, -1, -2)) <= 1e-12
    if not even.all() or not (np.linalg.eigvalsh(scaled) > _WORST_WEIGHTS).all():
        raise InputError(
            "Expected weights to be a symmetric positive definite matrix, got one that is not: some efforts "
            "would cost nothing, or less. Give a positive weight to each."
        )
    return np.swapaxes(np.linalg.inv(np.linalg.cholesky(a)), -1, -2)


# a share of a demand that is not told from all of it
_NEARLY_ALL = 1 - 1e-6


class Distribution:
    """Efforts of actuators that give a generalized effort: GᵀT = T_u.

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
        The part of them that does no work; without limits and preload what is least has none.
    share : (..., A) or None
        Of its limit that each effort takes, in its direction; 0 where that is infinite. None without limits.
    at_limit : (..., A) bool
        Efforts that are as small or as large as they may be.
    G, H : (..., A, M) and (..., A, M, M)
        Coefficients of the actuators (eqs 4-78, 4-79).

    Examples
    --------
    >>> import kic
    >>> c = kic.load("two-finger-hand").at()
    >>> place = ["object.x", "object.y", "object.angle"]
    >>> d = c.distribute([0.0, 3.0, 0.0], ["A1", "B1", "A2", "B2"], wrt=place)
    >>> bool(abs(d.G.T @ d.effort - d.demand).max() < 1e-14)
    True
    """

    def __init__(
        self,
        actuators: tuple[str, ...],
        coordinates: tuple[str, ...],
        criterion: str,
        demand: np.ndarray,
        effort: np.ndarray,
        internal: np.ndarray,
        bounds: Bounds | None,
        G: np.ndarray,
        H: np.ndarray,
    ) -> None:
        self.actuators, self.coordinates, self.criterion = actuators, coordinates, criterion
        self.demand, self.effort, self.internal = demand, effort, internal
        self.G, self.H = G, H
        self.share: np.ndarray | None = None
        self.at_limit = np.zeros(effort.shape, dtype=bool)
        if bounds is not None:
            limit = np.where(effort < 0, bounds.lower, bounds.upper)
            some = (effort != 0) & np.isfinite(limit)
            self.share = np.where(np.isnan(effort), np.nan, 0.0)
            np.divide(effort, limit, out=self.share, where=some)
            self.at_limit = (effort == bounds.lower) | (effort == bounds.upper)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.effort.shape[:-1]

    @property
    def stiffness(self) -> np.ndarray:
        """Stiffness K = −Σ T_i H_i (..., M, M) of these efforts; see `InternalLoads.stiffness`."""
        return stiffness(self.H, self.effort)

    def summary(self) -> Summary:
        """Labelled table of the efforts, to print or to show."""
        where = ", ".join(self.coordinates)
        sheet = Summary(f"efforts of {len(self.actuators)} actuators for {where}, by {self.criterion}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
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

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def labels_of(model: CompiledModel, actuators: str | Iterable[str]) -> tuple[str, ...]:
    """Rows at which efforts act, all of which can do work."""
    return model.actuators(names_of(actuators, "actuators"))


class Sharing:
    """Actuators with a criterion at postures: what every question of distribution begins with.

    Parameters
    ----------
    model : Model
        The mechanism.
    c : Coefficients
        Of the actuators, to second order; NaN in members without an answer.
    criterion, limits, lower
        As in `Configuration.distribute`.
    **given : (..., n) ndarray
        Further arguments, whose batches count.
    """

    def __init__(
        self,
        model: CompiledModel,
        c: Coefficients,
        criterion: Any,
        limits: Any,
        lower: Any = None,
        **given: np.ndarray,
    ) -> None:
        if c.G.dtype != np.float64:
            raise InputError(f"Efforts are distributed in real numbers; this posture holds {c.G.dtype}.")
        self.model, self.c = model, c
        self.labels, self.coordinates = c.rows, c.columns
        self.bounds = Bounds.of(limits, lower, self.labels)
        self.metric = Metric.of(criterion, self.bounds, self.labels, model)
        shapes = {name: a.shape[:-1] for name, a in given.items()}
        if self.bounds is not None:
            shapes["limits"] = self.bounds.upper.shape[:-1]
        self.batch = broadcast_batches(posture=c.batch, criterion=self.metric.root.shape[:-2], **shapes)
        self.G, self.H = self.every(c.G, 2), self.every(c.needed("H", 2), 3)
        self._root = self.every(self.metric.root, 2)
        assert c.scaling is not None  # for the type checker: these are of a mechanism
        self._scaling, self._error = c.scaling, self.every(np.broadcast_to(c.scaling.error, c.batch), 0)
        self.ok = np.isfinite(self.G).all(axis=(1, 2)).reshape(self.batch)

    def every(self, a: np.ndarray, rank: int) -> np.ndarray:
        """An array (n, …) with a row for each member, from one whose last axes are no batch."""
        tail = a.shape[a.ndim - rank :]
        return np.broadcast_to(a, (*self.batch, *tail)).reshape(prod(self.batch), *tail)

    def batched(self, a: np.ndarray) -> np.ndarray:
        """The other way round."""
        return a.reshape(*self.batch, *a.shape[1:])

    def space(self, members: Any) -> Space:
        """Efforts on freedoms in some members."""
        name = self.model.description.name
        parts = self.G[members], self.H[members], self._root[members]
        scaling = replace(self._scaling, error=self._error[members])
        return Space(*parts, scaling, self.labels, self.coordinates, name)


def _distribute(
    sharing: Sharing, demand: np.ndarray, preload: np.ndarray | None, failures: str
) -> Distribution:
    """Efforts for a generalized effort (..., M); see `Configuration.distribute`."""
    bounds, criterion = sharing.bounds, sharing.metric.name
    if criterion == "least largest share" and preload is not None:
        raise InputError(
            "A preload and the least largest share contradict each other: both settle what does no work. "
            "Take criterion='limits' with a preload."
        )
    wanted = sharing.every(demand, 1)
    wish = None if preload is None else sharing.every(preload, 1)
    low, high = (
        (None, None) if bounds is None else (sharing.every(b, 1) for b in (bounds.lower, bounds.upper))
    )

    def answer(members: Any) -> np.ndarray:
        space, asked = sharing.space(members), wanted[members]
        T = needed = space.smallest(asked)
        if wish is not None:
            T = needed + space.internal(wish[members])
        if low is not None and high is not None:
            T = _inside(sharing, space, needed, T, low[members], high[members], criterion)
        return np.stack([T, T - needed], axis=1)

    good, found = map_valid_members(sharing.ok, failures, answer)
    effort, internal = (sharing.batched(scatter(found, good)[:, k]) for k in (0, 1))
    G, H = (sharing.batched(a) for a in (sharing.G, sharing.H))
    demand = np.broadcast_to(demand, (*sharing.batch, demand.shape[-1]))
    return Distribution(
        sharing.labels, sharing.coordinates, criterion, demand, effort, internal, bounds, G, H
    )


def _inside(
    sharing: Sharing,
    space: Space,
    needed: np.ndarray,
    wanted: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    criterion: str,
) -> np.ndarray:
    """Efforts (n, A) within bounds, nearest to those wanted, or with the least largest share."""
    T = wanted.copy()
    every = criterion == "least largest share"
    failed = []
    for b in np.flatnonzero(every | ~((lower <= wanted) & (wanted <= upper)).all(axis=1)).tolist():
        given = space.basis[b], lower[b], upper[b]
        # what is wanted is already least: the nearest in the metric has the least |z|
        found = least_largest(needed[b], *given) if every else nearest(wanted[b], *given)
        if found is None:
            failed.append(b)
        else:
            T[b] = found
    if failed:
        b = failed[0]
        _refuse(sharing.labels, space.basis[b], needed[b], lower[b], upper[b], failed, len(T))
    return T


def _refuse(
    labels: tuple[str, ...],
    basis: np.ndarray,
    needed: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    failed: list[int],
    count: int,
) -> None:
    """Say which limits bind, and how much of the effort they allow."""
    found = reach(needed, basis, lower, upper)
    binding = tuple(labels[i] for i in found.binding)
    which = f" (one of {len(failed)} such members of {count})" if count > 1 else ""
    names = ", ".join(binding)
    if found.scale is None:
        raise LimitError(
            f"The limits leave nothing{which}: not even a share of this generalized effort can be had within "
            f"those of {names}, unless they are wider by {found.widen:.3g} of themselves. Widen them, or "
            "take other actuators.",
            scale=None,
            widen=found.widen,
            binding=binding,
            failed=failed,
        )
    much = f"{found.scale:.6g}" if found.scale < _NEARLY_ALL else "nearly all"
    raise LimitError(
        f"Within the limits the actuators can give {much} of this generalized effort{which}; what "
        f"stops them are the limits of {names}. Ask for less, or raise those.",
        scale=found.scale,
        binding=binding,
        failed=failed,
    )


def _internal_loads(sharing: Sharing, failures: str) -> InternalLoads:
    """Efforts that do no work; see `Configuration.internal_loads`."""

    def answer(members: Any) -> np.ndarray:
        space = sharing.space(members)
        return np.stack([space.basis, space.dual], axis=1)

    good, found = map_valid_members(sharing.ok, failures, answer)
    basis, dual = (sharing.batched(scatter(found, good)[:, k]) for k in (0, 1))
    G, H = (sharing.batched(a) for a in (sharing.G, sharing.H))
    return InternalLoads(sharing.labels, sharing.coordinates, sharing.metric.name, basis, dual, G, H)


def _actuator_dynamics(sharing: Sharing, dynamics: Dynamics, failures: str) -> Dynamics:
    """The model seen from the actuators; see `Configuration.actuator_dynamics`."""
    if sharing.metric.name == "least largest share":
        raise InputError(
            "The least largest share is no linear law of the effort and has no I* and P* of its own. Take "
            "another criterion, or distribute() the effort."
        )
    good, inverse = map_valid_members(sharing.ok, failures, lambda members: sharing.space(members).inverse())
    quasi = sharing.c.quasi.intersection(sharing.coordinates)
    left = Coefficients(
        sharing.coordinates, sharing.labels, sharing.batched(scatter(inverse, good)), quasi=sharing.c.quasi
    )
    return dynamics.transfer(Coefficients.identity(sharing.coordinates, quasi), left=left)


def efforts_of(name: str, value: Any, size: int) -> np.ndarray:
    """Finite real numbers (..., size)."""
    a = as_array(name, value, size)
    if a.dtype != np.float64:
        raise InputError(f"Efforts are distributed in real numbers; `{name}` holds {a.dtype}.")
    return a


def distribute(
    configuration: Configuration,
    effort: Any,
    actuators: str | Iterable[str],
    criterion: Any = "minimum norm",
    limits: Any = None,
    lower: Any = None,
    preload: Any = None,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> Distribution:
    """Efforts of more actuators than freedoms that together give a generalized effort.

    See `Configuration.distribute`.
    """
    c = configuration.coefficients(labels_of(configuration._model, actuators), wrt=wrt, failures=failures)
    given = {"effort": efforts_of("effort", effort, len(c.columns))}
    if preload is not None:
        given["preload"] = efforts_of("preload", preload, len(c.rows))
    sharing = Sharing(configuration._model, c, criterion, limits, lower, **given)
    return _distribute(sharing, given["effort"], given.get("preload"), failures)


def internal_loads(
    configuration: Configuration,
    actuators: str | Iterable[str],
    criterion: Any = "minimum norm",
    limits: Any = None,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> InternalLoads:
    """Efforts of actuators that do no work: what they pull against each other, whatever moves.

    See `Configuration.internal_loads`.
    """
    c = configuration.coefficients(labels_of(configuration._model, actuators), wrt=wrt, failures=failures)
    return _internal_loads(Sharing(configuration._model, c, criterion, limits), failures)


def actuator_dynamics(
    configuration: Configuration,
    actuators: str | Iterable[str],
    criterion: Any = "minimum norm",
    limits: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> Dynamics:
    """I*, P* and loads seen from more actuators than freedoms (eqs 4-87 to 4-90).

    See `Configuration.actuator_dynamics`.
    """
    c = configuration.coefficients(labels_of(configuration._model, actuators), wrt=wrt, failures=failures)
    dynamics = configuration.dynamics(wrt=wrt, applied=applied, failures=failures)
    return _actuator_dynamics(Sharing(configuration._model, c, criterion, limits), dynamics, failures)
