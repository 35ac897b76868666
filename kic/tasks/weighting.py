"""What is least when redundancy is resolved, and what may give way: weight, law of accelerations, damping."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from kic.arguments import choice
from kic.arrays import ordinary, reals, trailing
from kic.errors import InputError, shown

Weight = Literal["minimum norm", "minimum kinetic energy"] | Any
Law = Literal["consistent", "instantaneous"]
Damping = float | tuple[float, float] | None
# as in the kernels, which are not imported here: they would pull in the compiler
UNIT_METRIC, INERTIA_METRIC, GIVEN_METRIC = range(3)
LEAST_SHARE = 1e-12
_WEIGHTS = {"minimum norm": UNIT_METRIC, "minimum kinetic energy": INERTIA_METRIC}
_LAWS = ("consistent", "instantaneous")
_REAL = np.dtype(np.float64)


class Weighting:
    """What is least, and what may give way: weight, law and damping, looked at once.

    Parameters
    ----------
    weight : {"minimum norm", "minimum kinetic energy"} or (..., M, M) array_like
        The weight Q.
    law : {"consistent", "instantaneous"}
        The law of accelerations.
    damping : float, (float, float) or None
        λ, or the largest λ and the manipulability below which it grows.
    size : int
        The number M of coordinates.
    """

    def __init__(self, weight: Weight, law: Law, damping: Damping, size: int) -> None:
        self.metric = GIVEN_METRIC
        self.matrix = np.zeros((0, 0))
        self.batch: tuple[int, ...] = ()
        if isinstance(weight, str):
            if weight not in _WEIGHTS:
                raise InputError(
                    f"Expected `weight` to be {' or '.join(map(repr, _WEIGHTS))}, or a symmetric matrix "
                    f"({size}, {size}), got {weight!r}.",
                    weight=weight,
                )
            self.metric = _WEIGHTS[weight]
        else:
            self.matrix = _metric(weight, size)
            self.batch = self.matrix.shape[:-2]
        self.consistent = choice("law", law, _LAWS) == "consistent"
        self.largest, self.near = _damping(damping)


def _metric(weight: Any, size: int) -> np.ndarray:
    """A weight (..., M, M) that is symmetric and positive definite, or an error."""
    Q = trailing("weight", weight, size, size)
    if Q.dtype != _REAL:
        raise InputError(f"Expected `weight` to be real numbers, got {Q.dtype}.")
    diagonal = np.einsum("...nn->...n", Q)
    if not (diagonal > 0).all():
        raise InputError(
            f"Expected `weight` to be positive definite, got {diagonal.min():g} on its diagonal. A "
            "coordinate without weight would leave the motion open; give it a small one.",
            least=float(diagonal.min()),
        )
    scale = np.sqrt(diagonal)
    scaled = Q / scale[..., :, None] / scale[..., None, :]
    if (np.abs(scaled - np.swapaxes(scaled, -1, -2)) > 1e-12).any():
        raise InputError("Expected `weight` to be symmetric; give (Q + Qᵀ) / 2.")
    least = np.linalg.eigvalsh(scaled).min(initial=1.0)
    if not least > LEAST_SHARE:
        raise InputError(
            f"Expected `weight` to be positive definite; of its diagonal scaled to 1, the least eigenvalue "
            f"is {least:.1e}. Some motion would cost nothing, or be worth striving for.",
            least=float(least),
        )
    return Q


def _damping(damping: Any) -> tuple[float, float]:
    """The largest λ, and the manipulability below which it grows to that; 0 if it is constant, or none."""
    if damping is None:
        return 0.0, 0.0
    a = reals(damping)
    if a is None or a.shape not in ((), (2,)) or not (a > 0).all():
        raise InputError(
            "Expected `damping` to be a positive number λ, or two: the largest λ and the manipulability "
            f"below which it grows; got {shown(damping)}.",
            damping=damping,
        )
    ordinary("damping", a)
    return (float(a), 0.0) if a.ndim == 0 else (float(a[0]), float(a[1]))
