"""Where quadratics of one variable v ≥ 0 are all at least 0, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, factorial, perm

import numpy as np

# leading coefficients that add less than this share to a polynomial only spoil its roots
_NEGLIGIBLE = 1e-14
_ORDERS = np.arange(4)[:, None]


@dataclass(frozen=True, eq=False)
class Piecewise:
    """M polynomials on each of K pieces.

    Attributes
    ----------
    knots : (K + 1,)
        Where pieces meet, increasing; two equal ones are a single instant.
    coefficients : (K, N + 1, M)
        Of powers of u, which runs from 0 to 1 on each piece.
    """

    knots: np.ndarray
    coefficients: np.ndarray

    def __post_init__(self) -> None:
        for a in (self.knots, self.coefficients):
            a.setflags(write=False)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths (K,) of the pieces; 1 for that of a single instant, on which nothing changes."""
        h = np.diff(self.knots)
        return np.where(h > 0, h, 1.0)

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Values and three derivatives (..., 4, M) at t (...), real or complex; at a knot those after it."""
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

    def limits(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (K, M) of an order at the start and at the end of each piece, from inside it."""
        c = derivative(self.coefficients, order)
        h = self.lengths[:, None] ** order
        return c[:, 0] / h, c.sum(axis=1) / h

    def extremes(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest value (M,) that a derivative of an order takes anywhere, by roots of the next."""
        c = derivative(self.coefficients, order)
        pieces, height, width = c.shape
        flat = np.swapaxes(c, 1, 2).reshape(-1, height)
        u = np.concatenate([np.zeros((len(flat), 1)), np.ones((len(flat), 1)), stationary(flat)], axis=1)
        values = horner(np.broadcast_to(flat[:, None, :, None], (*u.shape, height, 1)), u[..., None])[..., 0]
        values = values.reshape(pieces, width, -1) / self.lengths[:, None, None] ** order
        return values.min(axis=(0, 2)), values.max(axis=(0, 2))

    def refined(self, knots: np.ndarray) -> Piecewise:
        """The same on the pieces between knots (L + 1,), among which its own must be."""
        piece = np.searchsorted(self.knots, (knots[:-1] + knots[1:]) / 2, side="right") - 1
        h = self.lengths[piece]
        u = ((knots[:-1] - self.knots[piece]) / h)[:, None]
        ratio = (np.diff(knots) / h)[:, None]
        parts = [
            horner(derivative(self.coefficients, k)[piece], u) * ratio**k / factorial(k)
            for k in range(self.coefficients.shape[1])
        ]
        return Piecewise(knots, np.stack(parts, axis=1))

    def reversed(self) -> Piecewise:
        """The same, run backwards from its end, which comes first."""
        height = self.coefficients.shape[1]
        # (1 − u)ⁿ in powers of u
        flip = np.array([[comb(n, k) * (-1.0) ** k for n in range(height)] for k in range(height)])
        knots = self.knots[0] + (self.knots[-1] - self.knots[::-1])
        return Piecewise(knots, np.einsum("kn,pnm->pkm", flip, self.coefficients[::-1]))

    def scaled(self, factor: float) -> Piecewise:
        """The same, taking so many times as long."""
        return Piecewise(self.knots * factor, self.coefficients)

    def clocked(self, knots: np.ndarray, share: np.ndarray) -> Piecewise:
        """The same pieces run through at other instants, on each by a polynomial that leads from 0 to 1.

        Parameters
        ----------
        knots : (K + 1,)
            Instants at which the pieces are to meet.
        share : (K, L + 1)
            Of each piece, the u reached as a polynomial of the new one.
        """
        c = self.coefficients
        made = c[:, -1:]
        for n in range(c.shape[1] - 2, -1, -1):
            made = product(made, share[:, :, None])
            made[:, 0] += c[:, n]
        return Piecewise(knots, made)


def joined(parts: list[Piecewise]) -> Piecewise:
    """One after the other; those of a single instant are passed over, unless there is nothing else."""
    lasting = [p for p in parts if p.knots[-1] > p.knots[0]] or parts[:1]
    height = max(p.coefficients.shape[1] for p in lasting)
    knots, coefficients = [lasting[0].knots[:1]], []
    for p in lasting:
        knots.append(knots[-1][-1] + (p.knots[1:] - p.knots[0]))
        coefficients.append(np.pad(p.coefficients, ((0, 0), (0, height - p.coefficients.shape[1]), (0, 0))))
    return Piecewise(np.concatenate(knots), np.concatenate(coefficients))


def hermite(knots: np.ndarray, derivatives: np.ndarray) -> Piecewise:
    """Polynomials of degree 2n − 1 with n given derivatives (n, K + 1, M), values first, at every knot."""
    n = len(derivatives)
    h = np.diff(knots)[:, None]
    scaled = [derivatives[k] for k in range(n)]
    first = np.stack([scaled[k][:-1] * h**k / factorial(k) for k in range(n)], axis=1)
    last = np.stack([scaled[k][1:] * h**k for k in range(n)], axis=1)
    # what the upper half of the coefficients must add at u = 1, derivative by derivative
    falling, _ = _falling(n, 2 * n)
    left = last - np.einsum("kp,bpm->bkm", falling[:, :n], first)
    # whole numbers but for a factorial: without the rounding of a solver
    inverse = np.round(np.linalg.inv(falling[:, n:]) * factorial(n)) / factorial(n)
    return Piecewise(knots, np.concatenate([first, inverse @ left], axis=1))


@lru_cache
def _falling(count: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of powers: that of order k of uⁿ is factor[k, n] times the power place[k, n]."""
    k, n = np.arange(count)[:, None], np.arange(height)
    factor = np.array([[perm(b, a) for b in range(height)] for a in range(count)], dtype=float)
    return factor, np.maximum(n - k, 0)


def derivative(c: np.ndarray, order: int) -> np.ndarray:
    """Coefficients (K, N + 1 − order, M) of a derivative with respect to u; one 0 where nothing is left."""
    for _ in range(order):
        if c.shape[1] == 1:
            return np.zeros_like(c)
        c = c[:, 1:] * np.arange(1, c.shape[1])[:, None]
    return c


def horner(c: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Polynomials c (..., N + 1, M) at u (..., 1)."""
    value = c[..., -1, :] + 0 * u
    for n in range(c.shape[-2] - 2, -1, -1):
        value = value * u + c[..., n, :]
    return value


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of polynomials (K, N + 1, M) and (K, L + 1, M)."""
    made = np.zeros((len(a), a.shape[1] + b.shape[1] - 1, a.shape[2]))
    for n in range(b.shape[1]):
        made[:, n : n + a.shape[1]] += a * b[:, n : n + 1]
    return made


def stationary(c: np.ndarray) -> np.ndarray:
    """Places (B, N − 1) between 0 and 1 where polynomials (B, N + 1) may have extremes, filled up by zeros.

    Real parts of all roots of the derivative: a double root that rounding makes a complex pair is not lost,
    and a place too many does no harm to an extreme.
    """
    slope = derivative(c[:, :, None], 1)[:, :, 0]
    width = slope.shape[1] - 1
    found = np.zeros((len(c), max(width, 0)))
    size = np.abs(slope).max(axis=1, initial=0.0, keepdims=True)
    there = np.abs(slope) > _NEGLIGIBLE * size
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
    """Closed intervals (n, 2) of v ≥ 0, in order, on which c0 + c1 v + c2 v² ≥ 0 for all of (N,)."""
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
    order = np.argsort(start, kind="stable")
    # what is left between open intervals that are forbidden
    left = np.maximum.accumulate(np.concatenate([[0.0], end[order]]))
    right = np.concatenate([start[order], [np.inf]])
    there = (right >= left) & (left < np.inf)
    return np.stack([left[there], right[there]], axis=1)


def united(parts: list[np.ndarray]) -> np.ndarray:
    """The union of closed intervals (n, 2), in order."""
    every = np.concatenate([np.zeros((0, 2)), *parts])
    every = every[np.argsort(every[:, 0], kind="stable")]
    if not len(every):
        return every
    reach = np.maximum.accumulate(every[:, 1])
    new = np.concatenate([[True], every[1:, 0] > reach[:-1]])
    return np.stack([every[new, 0], reach[np.append(new[1:], True)]], axis=1)
