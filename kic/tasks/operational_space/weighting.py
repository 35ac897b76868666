"""Weight, law and damping of a redundancy resolution, and the scale of the rows of a task under a weight."""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import numpy as np

from kic.errors import InputError, short_repr
from kic.kernels import layout as lay
from kic.kinematics.outputs import Rows
from kic.numerics.arguments import choice
from kic.numerics.arrays import ordinary, real_array, reals
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.constraint_system import column_scales, row_scales
from kic.transfer.program import Program, Transfer

Weight = Literal["minimum norm", "minimum kinetic energy"] | Any
Law = Literal["consistent", "instantaneous"]
Damping = float | tuple[float, float] | None
_WEIGHTS = {"minimum norm": lay.UNIT_METRIC, "minimum kinetic energy": lay.INERTIA_METRIC}
_LAWS = ("consistent", "instantaneous")


class Weighting:
    """Validated weight, acceleration law and damping; see `Configuration.resolve_redundancy`."""

    def __init__(self, weight: Weight, law: Law, damping: Damping, size: int) -> None:
        self.metric = lay.GIVEN_METRIC
        self.matrix = np.zeros((0, 0))
        self.batch: tuple[int, ...] = ()
        if isinstance(weight, str):
            if weight not in _WEIGHTS:
                message = (
                    f"`criterion` must be {' or '.join(map(repr, _WEIGHTS))}, or a symmetric matrix ({size}, "
                    f"{size}), got {weight!r}."
                )
                raise InputError(message, key="criterion", got=weight)
            self.metric = _WEIGHTS[weight]
        else:
            self.matrix = _metric(weight, size)
            self.batch = self.matrix.shape[:-2]
        self.consistent = choice("law", law, _LAWS) == "consistent"
        self.largest, self.near = _damping(damping)


def _metric(weight: Any, size: int) -> np.ndarray:
    """Return a weight (..., M, M), checked to be symmetric and positive definite."""
    Q = real_array("criterion", weight, size, size)
    diagonal = np.einsum("...nn->...n", Q)
    if not (diagonal > 0).all():
        message = (
            f"`criterion` must be positive definite, got {diagonal.min():g} on its diagonal. A coordinate "
            "without weight leaves the motion undetermined; give it a small weight."
        )
        raise InputError(message, key="criterion", got=diagonal.min(), least=float(diagonal.min()))
    scale = np.sqrt(diagonal)
    scaled = Q / scale[..., :, None] / scale[..., None, :]
    if (np.abs(scaled - np.swapaxes(scaled, -1, -2)) > 1e-12).any():
        raise InputError("`criterion` must be symmetric. Give (Q + Qᵀ) / 2.", key="criterion")
    least = np.linalg.eigvalsh(scaled).min(initial=1.0)
    if not least > lay.PIVOT_SHARE_MIN:
        message = (
            f"`criterion` must be positive definite, got a smallest eigenvalue of {least:.1e} after scaling "
            "its diagonal to 1. Give the unweighted direction a positive weight."
        )
        raise InputError(message, key="criterion", least=float(least))
    return Q


def _damping(damping: Any) -> tuple[float, float]:
    """Return the largest λ and the manipulability below which damping begins, 0 for constant damping."""
    if damping is None:
        return 0.0, 0.0
    a = reals(damping)
    if a is None or a.shape not in ((), (2,)) or not (a > 0).all():
        message = (
            "`damping` must be a positive number λ, or two: the largest λ and the manipulability below which "
            f"damping sets in; got {short_repr(damping)}."
        )
        raise InputError(message, key="damping", got=damping)
    ordinary("damping", a)
    return (float(a), 0.0) if a.ndim == 0 else (float(a[0]), float(a[1]))


class RightInverse:
    """Weighted, damped right inverse of a task Jacobian: Q⁻¹Gᵀ(G Q⁻¹Gᵀ + λ²S)⁻¹ (4-69, 4-70).

    The attribute G (..., M, P) is the right inverse. Arguments are the coefficients G, H of the task, the
    weight Q (..., M, M), P* (..., M, M, M) if Q is I*, the diagonal of S (..., P), λ² (..., 1), and the
    largest λ with the manipulability below which damping sets in, 0 for constant damping.
    """

    def __init__(
        self,
        G: np.ndarray,
        H: np.ndarray,
        Q: np.ndarray,
        P: np.ndarray | None,
        scaling: np.ndarray,
        damping: np.ndarray,
        limits: tuple[float, float],
    ) -> None:
        self._task_G, self._task_H, self._P, self._scaling, self._limits = G, H, P, scaling, limits
        self._Q_inverse = np.broadcast_to(np.linalg.inv(Q), (*G.shape[:-2], *Q.shape[-2:]))
        self._X = self._Q_inverse @ np.swapaxes(G, -1, -2)
        self._A = G @ self._X
        self._inverse = np.linalg.inv(self._A + (damping * scaling)[..., None] * np.eye(scaling.shape[-1]))
        self.G = self._X @ self._inverse

    def instantaneous(self) -> np.ndarray:
        """Return H[i, m, n] = −G_ip H_pab G_am G_bn (4-72), (..., M, P, P)."""
        R = self.G
        return -np.einsum("...ip,...pab,...am,...bn->...imn", R, self._task_H, R, R, optimize=True)

    def consistent(self) -> np.ndarray:
        """Return H[i, m, n], the derivative of G[i, n] along row m of the task, (..., M, P, P)."""
        R, K, W = self.G, self._inverse, self._Q_inverse
        dG = np.einsum("...pab,...am->...mpb", self._task_H, R)  # of the task Jacobian along row m
        y = np.einsum("...mpj,...pn->...mjn", dG, K)
        dQ = None
        if self._P is not None:
            C = np.einsum("...kab,...am->...mkb", self._P, R)
            dQ = C + np.swapaxes(C, -1, -2)
            y = y - dQ @ R[..., None, :, :]
        y = W[..., None, :, :] @ y
        right = -dG @ R[..., None, :, :] - self._task_G[..., None, :, :] @ y
        if self._limits[1]:
            d_damping = self._damping_derivative(dG, dQ)[..., None, None]
            right = right - d_damping * (self._scaling[..., None] * K)[..., None, :, :]
        return np.swapaxes(y + R[..., None, :, :] @ right, -3, -2)

    def _damping_derivative(self, dG: np.ndarray, dQ: np.ndarray | None) -> np.ndarray:
        """Return the derivative (..., P) of λ² along each row."""
        root = np.sqrt(self._scaling)
        scale = root[..., :, None] * root[..., None, :]
        half = dG @ self._X[..., None, :, :]
        dA = half + np.swapaxes(half, -1, -2)
        if dQ is not None:
            X = self._X[..., None, :, :]
            dA = dA - np.swapaxes(X, -1, -2) @ dQ @ X
        A, dA = (self._A / scale)[..., None, :, :], dA / scale[..., None, :, :]
        # derivative of the determinant, row by row because it may be 0
        P = A.shape[-1]
        rows = np.eye(P, dtype=bool)[..., None]
        slope = sum(np.linalg.det(np.where(rows[p], dA, A)) for p in range(P))
        largest, near = self._limits[0] ** 2, self._limits[1] ** 2
        ratio = np.linalg.det(A) / near
        return np.where(ratio.real < 1, -2 * largest * (1 - ratio) * slope / near, 0.0)


def task_scaling(model: CompiledModel, rows: Rows, weighting: Weighting, transfer: Transfer) -> np.ndarray:
    """Return scale factors (B or 1, P) that make the rows of G Q⁻¹Gᵀ dimensionless.

    They are squared units of the rows over the mean diagonal entry of the weight, and scale damping and
    rounding. The weight I* is represented by the tree's mass matrix in the reference configuration.
    """
    tree = model.tree
    task = row_scales(tree, rows, model.length) ** 2
    lengths = column_scales(tree, model.length)
    if weighting.metric == lay.INERTIA_METRIC:
        of_tree = Program(model.identity, masses=model.masses, loads=model.loads, want=lay.WANT_INERTIA)
        I = of_tree.run(model.reference_state, batch=()).model[0].real
        return task[None] / np.mean(np.einsum("nn->n", I) * lengths**2)
    columns, size = transfer.coordinate_scale, transfer.size
    if weighting.metric == lay.UNIT_METRIC:
        return task[None] / np.mean(columns**2)
    diagonal = np.einsum("bnn->bn", weighting.matrix.reshape(prod(weighting.batch), size, size))
    return task / np.mean(diagonal * columns**2, axis=-1)[:, None]
