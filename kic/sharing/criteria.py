"""Criteria by which efforts are distributed: how they are measured, and within which bounds they stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, numbers, trailing
from kic.errors import InputError, shown
from kic.model import Model
from kic.units import row_unit

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
    a = np.full(len(labels), a) if a.ndim == 0 else trailing(name, a, len(labels), finite=False)
    if a.dtype != np.float64 or np.isnan(a).any():
        raise InputError(f"Expected `{name}` to be real numbers, got {shown(value)}.")
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
    def of(cls, criterion: Any, bounds: Bounds | None, labels: tuple[str, ...], model: Model) -> Metric:
        """From a criterion by name, weights (A,) or a matrix (..., A, A)."""
        if not isinstance(criterion, str):
            return cls("weights", _root(criterion, labels))
        if criterion not in CRITERIA:
            raise InputError(
                f"Expected `criterion` to be one of {', '.join(map(repr, CRITERIA))}, weights (A,) or a "
                f"matrix (..., A, A), got {shown(criterion)}."
            )
        if criterion == "minimum norm":
            turning = {row_unit(model.drawing, x) == "rad" for x in labels}
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
    a = trailing("criterion", a, count) if a.ndim < 2 else trailing("criterion", a, count, count)
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
