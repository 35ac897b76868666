"""Piecewise polynomials, and sets where quadratics are not negative."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, factorial, perm

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval

# leading coefficients below this share of the largest are zero; they would spoil the roots
_COEFFICIENT_RTOL = 1e-14
_ORDERS = np.arange(4)[:, None]


@dataclass(frozen=True, eq=False)
class Piecewise:
    """M polynomials on each of K pieces."""

    knots: np.ndarray  # (K + 1,): increasing ends of the pieces; two equal knots are a single instant
    # (K, N + 1, M): coefficients of powers of u, which runs from 0 to 1 on each piece
    coefficients: np.ndarray

    def __post_init__(self) -> None:
        for a in (self.knots, self.coefficients):
            a.setflags(write=False)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Array (K,) of the lengths of the pieces; 1 for a single instant."""
        h = np.diff(self.knots)
        return np.where(h > 0, h, 1.0)

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Return values and three derivatives (..., 4, M) at real or complex t (...).

        At knots they are limits from the right.
        """
        piece = np.minimum(
            np.searchsorted(self.knots[1:-1], t.real, side="right"), len(self.coefficients) - 1
        )
        h = self.lengths[piece]
        u = (t - self.knots[piece]) / h
        height = self.coefficients.shape[1]
        powers = np.ones((*u.shape, height), u.dtype)
        powers[..., 1:] = u[..., None]
        factor, place = _falling(4, height)
        basis = factor * powers.cumprod(axis=-1)[..., place] / h[..., None, None] ** _ORDERS
        return basis @ self.coefficients[piece]

    @cached_property
    def _jets(self) -> tuple[list[float], list[float], list[np.ndarray], range]:
        """Return knots, lengths, coefficients (N + 1, 4 M) of four derivatives, and powers of u."""
        c, h = self.coefficients, self.lengths[:, None, None]
        pieces, height, width = c.shape
        factor, _ = _falling(4, height)
        jets = np.zeros((pieces, height, 4, width))
        for k in range(min(4, height)):
            jets[:, : height - k, k] = factor[k, k:, None] * c[:, k:] / h**k
        by_piece = list(jets.reshape(pieces, height, 4 * width))
        return self.knots.tolist(), self.lengths.tolist(), by_piece, range(height)

    def at(self, t: float) -> np.ndarray:
        """Return values and three derivatives (4, M) at one real time, for control loops."""
        knots, lengths, jets, powers = self._jets
        piece = bisect_right(knots, t, 1, len(lengths)) - 1
        u = (t - knots[piece]) / lengths[piece]
        return np.array([u**n for n in powers]).dot(jets[piece]).reshape(4, -1)

    def end_derivatives(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Return derivatives (K, M) of the given order at both ends of each piece, as limits from inside."""
        c = polyder(self.coefficients, order, axis=1)
        h = self.lengths[:, None] ** order
        return c[:, 0] / h, c.sum(axis=1) / h

    def extremes(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest values (M,) of a derivative, by the roots of the next order."""
        c = polyder(self.coefficients, order, axis=1)
        pieces, height, width = c.shape
        flat = np.swapaxes(c, 1, 2).reshape(-1, height)
        u = np.concatenate([np.zeros((len(flat), 1)), np.ones((len(flat), 1)), stationary(flat)], axis=1)
        values = polyval(u, flat.T[:, :, None], tensor=False)
        values = values.reshape(pieces, width, -1) / self.lengths[:, None, None] ** order
        return values.min(axis=(0, 2)), values.max(axis=(0, 2))

    def refined(self, knots: np.ndarray) -> Piecewise:
        """Return the polynomials on pieces between knots (L + 1,), which must include the present knots."""
        piece = np.searchsorted(self.knots, (knots[:-1] + knots[1:]) / 2, side="right") - 1
        h = self.lengths[piece]
        u = ((knots[:-1] - self.knots[piece]) / h)[:, None]
        ratio = (np.diff(knots) / h)[:, None]
        parts = [
            polyval(u, np.moveaxis(polyder(self.coefficients, k, axis=1)[piece], 1, 0), tensor=False)
            * ratio**k
            / factorial(k)
            for k in range(self.coefficients.shape[1])
        ]
        return Piecewise(knots, np.stack(parts, axis=1))

    def reversed(self) -> Piecewise:
        """Return the polynomials reversed in time."""
        height = self.coefficients.shape[1]
        # (1 − u)ⁿ in powers of u
        flip = np.array([[comb(n, k) * (-1.0) ** k for n in range(height)] for k in range(height)])
        knots = self.knots[0] + (self.knots[-1] - self.knots[::-1])
        return Piecewise(knots, np.einsum("kn,pnm->pkm", flip, self.coefficients[::-1]))

    def scaled(self, factor: float) -> Piecewise:
        """Return the polynomials with their duration multiplied by a factor."""
        return Piecewise(self.knots * factor, self.coefficients)

    def clocked(self, knots: np.ndarray, share: np.ndarray) -> Piecewise:
        """Replace u on each piece by a polynomial of a new variable, from 0 at its start to 1 at its end.

        `knots` (K + 1,) are the new ends of the pieces. `share` (K, L + 1) has the coefficients of u as a
        polynomial of the new variable on each piece.
        """
        c = self.coefficients
        made = c[:, -1:]
        for n in range(c.shape[1] - 2, -1, -1):
            made = polynomial_product(made, share[:, :, None])
            made[:, 0] += c[:, n]
        return Piecewise(knots, made)


def joined(parts: list[Piecewise]) -> Piecewise:
    """Concatenate piecewise polynomials; omit single instants unless there is nothing else."""
    lasting = [p for p in parts if p.knots[-1] > p.knots[0]] or parts[:1]
    height = max(p.coefficients.shape[1] for p in lasting)
    knots, coefficients = [lasting[0].knots[:1]], []
    for p in lasting:
        knots.append(knots[-1][-1] + (p.knots[1:] - p.knots[0]))
        coefficients.append(np.pad(p.coefficients, ((0, 0), (0, height - p.coefficients.shape[1]), (0, 0))))
    return Piecewise(np.concatenate(knots), np.concatenate(coefficients))


def beside(parts: list[Piecewise]) -> Piecewise:
    """Join piecewise polynomials with the same ends along the last axis, on common pieces."""
    knots = np.unique(np.concatenate([p.knots for p in parts]))
    columns = [p.refined(knots).coefficients for p in parts]
    height = max(c.shape[1] for c in columns)
    padded = [np.pad(c, ((0, 0), (0, height - c.shape[1]), (0, 0))) for c in columns]
    return Piecewise(knots, np.concatenate(padded, axis=2))


def hermite(knots: np.ndarray, derivatives: np.ndarray) -> Piecewise:
    """Return polynomials of degree 2n − 1 from n derivatives (n, K + 1, M), values first, at every knot."""
    n = len(derivatives)
    h = np.diff(knots)[:, None]
    first = np.stack([derivatives[k][:-1] * h**k / factorial(k) for k in range(n)], axis=1)
    last = np.stack([derivatives[k][1:] * h**k for k in range(n)], axis=1)
    # contribution of the upper half of the coefficients at u = 1, derivative by derivative
    falling, _ = _falling(n, 2 * n)
    left = last - np.einsum("kp,bpm->bkm", falling[:, :n], first)
    # exact: the inverse has integer entries up to a factorial
    inverse = np.round(np.linalg.inv(falling[:, n:]) * factorial(n)) / factorial(n)
    return Piecewise(knots, np.concatenate([first, inverse @ left], axis=1))


@lru_cache
def _falling(count: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors and powers: the derivative of order k of uⁿ is factor[k, n] times u to power[k, n]."""
    k, n = np.arange(count)[:, None], np.arange(height)
    factor = np.array([[perm(b, a) for b in range(height)] for a in range(count)], dtype=float)
    return factor, np.maximum(n - k, 0)


def polynomial_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return products of polynomials (K, N + 1, M) and (K, L + 1, M)."""
    made = np.zeros((len(a), a.shape[1] + b.shape[1] - 1, a.shape[2]))
    for n in range(b.shape[1]):
        made[:, n : n + a.shape[1]] += a * b[:, n : n + 1]
    return made


def stationary(c: np.ndarray) -> np.ndarray:
    """Return points (B, N − 1) in [0, 1] where polynomials (B, N + 1) may have extremes, padded by zeros.

    They are the real parts of all roots of the derivative. This keeps double roots that rounding makes a
    complex pair, and additional points do not change an extreme.
    """
    slope = polyder(c, axis=1)
    width = slope.shape[1] - 1
    found = np.zeros((len(c), max(width, 0)))
    size = np.abs(slope).max(axis=1, initial=0.0, keepdims=True)
    there = np.abs(slope) > _COEFFICIENT_RTOL * size
    degree = np.where(there.any(axis=1), slope.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1), 0)
    for d in range(1, width + 1):  # companion matrices of one size at a time
        of = np.flatnonzero(degree == d)
        if of.size:
            companion = np.zeros((len(of), d, d))
            companion[:, np.arange(1, d), np.arange(d - 1)] = 1.0
            companion[:, :, -1] = -slope[of, :d] / slope[of, d, None]
            found[of, :d] = np.clip(np.linalg.eigvals(companion).real, 0.0, 1.0)
    return found


def allowed(c0: np.ndarray, c1: np.ndarray, c2: np.ndarray) -> np.ndarray:
    """Return closed, ordered intervals (n, 2) of v ≥ 0 where all N quadratics c0 + c1 v + c2 v² are ≥ 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        disc = c1 * c1 - 4 * c0 * c2
        q = -(c1 + np.copysign(np.sqrt(np.maximum(disc, 0.0)), c1)) / 2
        one, two = q / c2, np.where(q == 0, 0.0, c0 / q)  # without cancellation
        first, last = np.fmin(one, two), np.fmax(one, two)
        root = -c0 / c1
    inf = np.full(np.shape(c0), np.inf)
    bowl, cap, straight = c2 > 0, c2 < 0, c2 == 0
    outside = cap & (disc >= 0)
    nowhere = (cap & (disc < 0)) | (straight & (c1 == 0) & (c0 < 0))
    negative = [
        (bowl & (disc > 0), first, last),
        (outside, -inf, first),
        (outside, last, inf),
        (straight & (c1 > 0), -inf, root),
        (straight & (c1 < 0), root, inf),
        (nowhere, -inf, inf),
    ]
    start = np.concatenate([a[where] for where, a, _ in negative])
    end = np.concatenate([b[where] for where, _, b in negative])
    start, end = start[end > 0], end[end > 0]
    return complement(start, end)


def complement(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return closed, ordered intervals (n, 2) of v ≥ 0 outside open intervals from start to end (N,)."""
    order = np.argsort(start, kind="stable")
    left = np.maximum.accumulate(np.concatenate([[0.0], end[order]]))
    right = np.concatenate([start[order], [np.inf]])
    there = (right >= left) & (left < np.inf)
    return np.stack([left[there], right[there]], axis=1)


def united(parts: list[np.ndarray]) -> np.ndarray:
    """Return the union of closed intervals (n, 2), in order."""
    every = np.concatenate([np.zeros((0, 2)), *parts])
    every = every[np.argsort(every[:, 0], kind="stable")]
    if not len(every):
        return every
    reach = np.maximum.accumulate(every[:, 1])
    new = np.concatenate([[True], every[1:, 0] > reach[:-1]])
    return np.stack([every[new, 0], reach[np.append(new[1:], True)]], axis=1)
