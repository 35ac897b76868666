"""Weighted right inverses of a task's coefficients, and how they change along the motion that they give."""

from __future__ import annotations

import numpy as np


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
