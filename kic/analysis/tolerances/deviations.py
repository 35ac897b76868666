"""Deviations within tolerances: distributions, moments and extremes of quadratic functions of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

# starts of the search for extremes, most rounds of each, one tolerance after the other, and their last change
# relative to tolerances: values change by its square
STARTS, SWEEPS_MAX, SWEEP_ATOL = 12, 50, 1e-9


@dataclass(frozen=True)
class Contributor:
    """Tolerance of a coordinate, or of the directions of a clearance, with their dimensions for `vary`."""

    limit: float
    distribution: str
    columns: dict[str, Any]


class Deviations:
    """Independent deviations x (K,) of coordinates.

    Attributes
    ----------
    columns : tuple of str
        The K coordinates.
    sigma : (K,)
        Standard deviations.
    """

    def __init__(self, contributors: Iterable[Contributor], sigmas: float) -> None:
        self._groups: list[tuple[Contributor, list[int]]] = []
        self.columns: tuple[str, ...] = ()
        for one in contributors:
            start = len(self.columns)
            self.columns += tuple(one.columns)
            self._groups.append((one, [*range(start, len(self.columns))]))
        K = len(self.columns)
        self.sigma, self._limit = np.ones(K), np.ones(K)
        # fourth moments, relative to variances: E[xᵢ² xⱼ²] / (σᵢ² σⱼ²)
        self._fourth = np.ones((K, K))
        for one, own in self._groups:
            n = len(own)
            share, mixed, pure = {
                "normal": (sigmas, 1.0, 3.0),
                "uniform": (sqrt(3.0), 1.0, 9 / 5),
                "contact": (sqrt(n), n / (n + 2), 3 * n / (n + 2)),
            }[one.distribution]
            self.sigma[own], self._limit[own] = one.limit / share, one.limit
            self._fourth[np.ix_(own, own)] = mixed
            self._fourth[own, own] = pure

    def moments(self, G: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the mean (..., P), covariance (..., P, P) and parts (..., P, n) of the variance by one.

        They are those of G x + ½ xᵀ H x, for G (..., P, K) and H (..., P, K, K).
        """
        L, Q = G * self.sigma, H * np.multiply.outer(self.sigma, self.sigma)
        pure, squares = np.diagonal(Q, axis1=-2, axis2=-1), (self._fourth - 1.0) / 4
        mixed = Q * self._fourth * (1.0 - np.eye(len(squares))) / 2
        flat = [a.reshape(*L.shape[:-1], squares.size) for a in (mixed, Q)]
        sides = ((L, L), (pure @ squares, pure), flat)
        covariance: Any = sum(a @ b.swapaxes(-1, -2) for a, b in sides)
        each = L**2 + pure @ squares * pure + (mixed * Q).sum(axis=-1)
        parts = np.stack([each[..., own].sum(axis=-1) for _, own in self._groups], axis=-1)
        return pure.sum(axis=-1) / 2, covariance, parts

    def largest(self, G: np.ndarray, H: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return deviations (..., P, K) where G x + ½ xᵀ H x is largest, and its values (..., P).

        Parts with clearance touch. A search from several starts gives no proof that no value is larger, but
        where all slopes keep their signs. Gains below `least` (P,) do not count.
        """
        shape, (K,) = G.shape, G.shape[-1:]
        gain = np.broadcast_to(least, shape[:-1]).reshape(-1)
        G = (G * self._limit).reshape(-1, K)
        H = (H * np.multiply.outer(self._limit, self._limit)).reshape(-1, K, K)
        corner, rows = np.where(G < 0, -1.0, 1.0), np.arange(len(G))
        best, top = np.zeros(G.shape), np.zeros(len(G))
        others = np.random.default_rng(0).choice([-1.0, 1.0], (STARTS - 3, K))
        for start in (corner, -corner, np.zeros(K), *others):
            x = self._ascended(G[rows], H[rows], np.broadcast_to(start, G.shape)[rows])
            value = np.einsum("nk,nk->n", x, G[rows] + np.einsum("nij,nj->ni", H[rows], x) / 2)
            better = value > top[rows] + gain[rows]
            best[rows[better]], top[rows[better]] = x[better], value[better]
            if start is corner:
                rows = np.flatnonzero((np.abs(H).sum(axis=-1) > np.abs(G)).any(axis=-1))
        return (best * self._limit).reshape(shape), top.reshape(shape[:-1])

    def _ascended(self, G: np.ndarray, H: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return deviations (N, K) at a local maximum, in tolerances, from signs of a start."""
        x, steps = start.copy(), []
        for _, own in self._groups:
            x[:, own] /= sqrt(len(own))
            steps.append((own, np.minimum(np.linalg.eigvalsh(H[:, own][:, :, own])[:, :1], 0.0)))
        for _ in range(SWEEPS_MAX):
            last = x.copy()
            for own, curved in steps:
                # without the smallest curvature if negative, steps to the edge ascend
                slope = G[:, own] + np.einsum("nij,nj->ni", H[:, own], x) - curved * x[:, own]
                size = np.linalg.norm(slope, axis=-1, keepdims=True)
                edge = np.where(size > 0, slope / np.where(size > 0, size, 1.0), x[:, own])
                inner = np.clip(-slope / np.where(curved < 0, curved, -1.0), -1.0, 1.0)
                x[:, own] = np.where(curved < 0, inner, edge) if len(own) == 1 else edge
            if np.abs(x - last).max(initial=0.0) <= SWEEP_ATOL:
                break
        return x

    def differentiated(self, values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return values (N, P) of a function of deviations (N, K), the first without deviation, G and H.

        With steps √κ σ, central differences contain the third derivatives in the covariance of normal
        deviations.
        """
        h = self.sigma * np.sqrt(np.diagonal(self._fourth))
        (K,), steps, (i, j) = h.shape, np.diag(h), np.triu_indices(len(h), 1)
        pairs = steps[i] + steps[j]
        found = values(np.concatenate([np.zeros((1, K)), steps, -steps, pairs, -pairs]))
        (first,), up, down, both, neither = np.split(found, np.cumsum([1, K, K, len(i)]))
        sums, H = up + down - 2 * first, np.zeros((len(first), K, K))
        H[:, range(K), range(K)] = (sums / h[:, None] ** 2).T
        mixed = (both + neither - 2 * first - sums[i] - sums[j]) / (2 * h[i] * h[j])[:, None]
        H[:, i, j] = H[:, j, i] = mixed.T
        return found, ((up - down) / (2 * h[:, None])).T, H

    def drawn(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random deviations (count, K)."""
        x = np.empty((count, len(self.columns)))
        for one, own in self._groups:
            if one.distribution == "uniform":
                x[:, own] = rng.uniform(-one.limit, one.limit, (count, 1))
                continue
            x[:, own] = rng.standard_normal((count, len(own)))
            if one.distribution == "normal":
                x[:, own] *= self.sigma[own]
            else:
                x[:, own] *= one.limit / np.linalg.norm(x[:, own], axis=1, keepdims=True)
        return x
