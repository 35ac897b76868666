"""Hermite interpolation of motions in time from values, rates and accelerations, with error estimates."""

from __future__ import annotations

from math import perm

import numpy as np

# largest ratio of the lengths of neighbouring intervals that are used together
LENGTH_RATIO_MAX = 8.0


class HermiteInterpolant:
    """Piecewise polynomial interpolant of values, rates and accelerations x, v, a (T, S) at times t (T,).

    In every interval it is of fifth degree, from the data at both ends. Two polynomials of eighth degree add
    the data before or after the interval. Their mean is used if they differ by less than the error estimate.
    """

    def __init__(self, t: np.ndarray, x: np.ndarray, v: np.ndarray, a: np.ndarray) -> None:
        self.t, self.h, self._given = t, np.diff(t), (x, v, a)
        self._quintic = self._polynomials(np.arange(len(self.h)), (0, 1))
        self._error = self._quintic_error()

    def at(self, when: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values (n, S) at times (n,) in intervals k (n,), with estimates of their errors."""
        share = (when - self.t[k]) / self.h[k]
        found, error = _value(self._quintic[k], share), self._error[k]
        some = np.flatnonzero(self._even[k])
        if some.size:
            one, other = (self._polynomials(k[some], side) for side in ((-1, 0, 1), (0, 1, 2)))
            # their errors have opposite signs and are largest in the middle
            apart = np.abs(_value(one - other, np.full(some.size, 0.5)))
            closer = apart < error[some]
            found[some] = np.where(closer, _value((one + other) / 2, share[some]), found[some])
            error[some] = np.where(closer, apart, error[some])
        return found, error

    @property
    def _alike(self) -> np.ndarray:
        """Mask of inner times (T - 2,) with intervals of about the same length on both sides."""
        longer = self.h[1:] / self.h[:-1]
        return (longer < LENGTH_RATIO_MAX) & (longer > 1 / LENGTH_RATIO_MAX)

    @property
    def _even(self) -> np.ndarray:
        """Mask of intervals (T - 1,) with neighbours of about the same length on both sides."""
        even = np.zeros(len(self.h), dtype=bool)
        even[1:-1] = self._alike[1:] & self._alike[:-1]
        return even

    def _polynomials(self, k: np.ndarray, side: tuple[int, ...]) -> np.ndarray:
        """Return polynomials (n, 3 p, S), in relative time of intervals k, through p neighbouring times."""
        at = k[:, None] + np.array(side)
        h = self.h[k][:, None]
        share = (self.t[at] - self.t[k][:, None]) / h
        n = np.arange(3 * len(side))
        rows, right = [], []
        for order, given in enumerate(self._given):
            factor = np.array([float(perm(i, order)) for i in n])
            rows.append(factor * share[..., None] ** np.maximum(n - order, 0))
            right.append(given[at] * h[..., None] ** order)
        return np.linalg.solve(np.concatenate(rows, axis=1), np.concatenate(right, axis=1))

    def _quintic_error(self) -> np.ndarray:
        """Estimate the error of the quintic in the middle of each interval (T - 1, S).

        With the sixth derivative f the error is f h⁶/46080 there. The error of the third derivative is f
        h³/120 at both ends, with opposite signs, and jumps by f (h₁³ + h₂³)/120 between intervals. Without a
        neighbour of similar length, the change of the third derivative in the interval is used.
        """
        h, c = self.h[:, None], self._quintic
        begin = 6 * c[:, 3]
        end = begin + 24 * c[:, 4] + 60 * c[:, 5]
        alone = np.abs(end - begin) / 384
        jump = np.abs(begin[1:] / h[1:] ** 3 - end[:-1] / h[:-1] ** 3)
        sixth = np.where(self._alike[:, None], 120 * jump / (h[1:] ** 3 + h[:-1] ** 3), -1.0)
        none = np.full((1, alone.shape[1]), -1.0)
        beside = np.maximum(np.concatenate([none, sixth]), np.concatenate([sixth, none]))
        return np.where(beside < 0, alone, beside * h**6 / 46080)


def _value(c: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return values (n, S) of polynomials (n, d, S) at points (n,)."""
    return np.einsum("nds,nd->ns", c, share[:, None] ** np.arange(c.shape[1]))
