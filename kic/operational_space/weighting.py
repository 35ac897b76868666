"""The size of a task's rows under a weight, free of units: what damping and rounding are measured by."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Literal

import numpy as np

from kic.errors import InputError, short_repr
from kic.kernels.layout import WANT_INERTIA
from kic.kinematics.outputs import Rows
from kic.numerics.arguments import choice
from kic.numerics.arrays import as_array, ordinary, reals
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.constraint_system import column_scales, row_scales

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
    Q = as_array("weight", weight, size, size)
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
            f"below which it grows; got {short_repr(damping)}.",
            damping=damping,
        )
    ordinary("damping", a)
    return (float(a), 0.0) if a.ndim == 0 else (float(a[0]), float(a[1]))


class RightInverse:
    """G of the coordinates with respect to a task: Q⁻¹Gᵀ(G Q⁻¹Gᵀ + λ²S)⁻¹ (4-69, 4-70); plain arrays.

    Parameters
    ----------
    G, H : (..., P, M), (..., P, M, M)
        Coefficients of the task.
    Q : (..., M, M)
        The weight.
    power : (..., M, M, M) or None
        P*, where Q is I*, which changes with the posture; None where Q does not.
    soft : (..., P)
        Diagonal of S.
    damping : (..., 1)
        λ².
    grows : (float, float)
        The largest λ, and the manipulability below which it grows; 0 where it is constant.

    Attributes
    ----------
    G : (..., M, P)
    """

    def __init__(
        self,
        G: np.ndarray,
        H: np.ndarray,
        Q: np.ndarray,
        power: np.ndarray | None,
        soft: np.ndarray,
        damping: np.ndarray,
        grows: tuple[float, float],
    ) -> None:
        self._of, self._bent, self._power, self._soft, self._grows = G, H, power, soft, grows
        self._compliance = np.broadcast_to(np.linalg.inv(Q), (*G.shape[:-2], *Q.shape[-2:]))
        self._X = self._compliance @ np.swapaxes(G, -1, -2)
        self._A = G @ self._X
        self._damping = damping
        self._inverse = np.linalg.inv(self._A + (damping * soft)[..., None] * np.eye(soft.shape[-1]))
        self.G = self._X @ self._inverse

    def instantaneous(self) -> np.ndarray:
        """H[i, m, n] = −G_ip H_pab G_am G_bn (4-72), (..., M, P, P)."""
        R = self.G
        return -np.einsum("...ip,...pab,...am,...bn->...imn", R, self._bent, R, R, optimize=True)

    def consistent(self) -> np.ndarray:
        """H[i, m, n] = change of G[i, n] along the motion of row m of the task, (..., M, P, P)."""
        R, K, W = self.G, self._inverse, self._compliance
        bent = np.einsum("...pab,...am->...mpb", self._bent, R)  # change of the task's G along row m
        y = np.einsum("...mpj,...pn->...mjn", bent, K)
        metric = None
        if self._power is not None:
            C = np.einsum("...kab,...am->...mkb", self._power, R)
            metric = C + np.swapaxes(C, -1, -2)
            y = y - metric @ R[..., None, :, :]
        y = W[..., None, :, :] @ y
        right = -bent @ R[..., None, :, :] - self._of[..., None, :, :] @ y
        if self._grows[1]:
            right = (
                right
                - self._growth(bent, metric)[..., None, None] * (self._soft[..., None] * K)[..., None, :, :]
            )
        return np.swapaxes(y + R[..., None, :, :] @ right, -3, -2)

    def _growth(self, bent: np.ndarray, metric: np.ndarray | None) -> np.ndarray:
        """Change (..., P) of λ² along the motion of each row."""
        root = np.sqrt(self._soft)
        scale = root[..., :, None] * root[..., None, :]
        half = bent @ self._X[..., None, :, :]
        change = half + np.swapaxes(half, -1, -2)
        if metric is not None:
            X = self._X[..., None, :, :]
            change = change - np.swapaxes(X, -1, -2) @ metric @ X
        A, change = (self._A / scale)[..., None, :, :], change / scale[..., None, :, :]
        # of a determinant, row by row: it may be 0
        P = A.shape[-1]
        rows = np.eye(P, dtype=bool)[..., None]
        slope = sum(np.linalg.det(np.where(rows[p], change, A)) for p in range(P))
        largest, near = self._grows[0] ** 2, self._grows[1] ** 2
        ratio = np.linalg.det(A) / near
        return np.where(ratio.real < 1, -2 * largest * (1 - ratio) * slope / near, 0.0)


def task_scaling(
    model: CompiledModel, rows: Rows, weighting: Weighting, wrt: str | Iterable[str] | None, size: int
) -> np.ndarray:
    """What 1 stands for in each row of G Q⁻¹Gᵀ: its units, over a mean of the weight's diagonal.

    Parameters
    ----------
    model : Model
        The mechanism.
    rows : Rows
        The P rows of the task.
    weighting : Weighting
        The weight; of I*, that of the tree as drawn.
    wrt : str or list of str, optional
        The coordinates, as they were asked.
    size : int
        How many they are.

    Returns
    -------
    (B or 1, P)
        For each member of a batch of weights.
    """
    tree = model.tree
    task = row_scales(tree, list(rows.source), model.length)
    task = (task if rows.select is None else task[rows.select]) ** 2
    lengths = column_scales(tree, model.length)
    if weighting.metric == INERTIA_METRIC:
        query = model.query(model.identity, want=WANT_INERTIA)
        K = model.identity.evaluate(query, model.reference_state).K
        I = query.dynamics.split(K, ())[0].real
        return task[None] / np.mean(np.einsum("nn->n", I) * lengths**2)
    columns = model.transfer_for(wrt).coordinate_scale
    if weighting.metric == UNIT_METRIC:
        return task[None] / np.mean(columns**2)
    diagonal = np.einsum("bnn->bn", weighting.matrix.reshape(prod(weighting.batch), size, size))
    return task / np.mean(diagonal * columns**2, axis=-1)[:, None]
