"""Interval arithmetic on arrays: bounds that hold for every rounding, as functions for `Trace.run`."""

from __future__ import annotations

from typing import Any

import numpy as np

EPS, _LEAST = float(np.finfo(float).eps), float(np.nextafter(0.0, 1.0))
# bound of the error of library functions near one, and slack of their arguments
_FUNCTION_ATOL, _SLACK = 8 * EPS, 1e-9
# factor that covers the rounding of sums of up to a thousand nonnegative numbers
_UP = 1 + 1e-12


class Interval:
    """Arrays of lower and upper bounds; NaN where nothing is known."""

    __slots__ = ("hi", "lo")
    __array_ufunc__ = None

    def __init__(self, lo: Any, hi: Any) -> None:
        self.lo, self.hi = lo, hi

    def __add__(self, other: Any) -> Interval:
        b = _interval(other)
        return _outward(self.lo + b.lo, self.hi + b.hi)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Interval:
        b = _interval(other)
        return _outward(self.lo - b.hi, self.hi - b.lo)

    def __rsub__(self, other: Any) -> Interval:
        return -self + other

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __mul__(self, other: Any) -> Interval:
        if other is self:  # a square
            a, b = self.lo * self.lo, self.hi * self.hi
            inside = (self.lo < 0) & (self.hi > 0)
            return _outward(np.where(inside, 0.0, np.minimum(a, b)), np.maximum(a, b))
        if isinstance(other, float):
            a, b = self.lo * other, self.hi * other
            return _outward(a, b) if other >= 0 else _outward(b, a)
        b = _interval(other)
        p, q, r, s = self.lo * b.lo, self.lo * b.hi, self.hi * b.lo, self.hi * b.hi
        lo = np.minimum(np.minimum(p, q), np.minimum(r, s))
        return _outward(lo, np.maximum(np.maximum(p, q), np.maximum(r, s)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Interval:
        b = _interval(other)
        apart = np.where((b.lo > 0) | (b.hi < 0), 1.0, np.nan)
        return self * _outward(apart / b.hi, apart / b.lo)

    def __rtruediv__(self, other: Any) -> Interval:
        return _interval(other) / self


def _interval(x: Any) -> Interval:
    return x if isinstance(x, Interval) else Interval(x, x)


def _outward(lo: Any, hi: Any) -> Interval:
    # one to two units of the last digit, several times faster than np.nextafter; NaN for an infinite end of
    # the other sign, which fails every test of inclusion
    return Interval(lo - (np.abs(lo) * EPS + _LEAST), hi + (np.abs(hi) * EPS + _LEAST))


def around(middle: Any, radius: Any) -> Interval:
    """Return intervals with given middles and radii, rounded outwards."""
    return _outward(middle - radius, middle + radius)


def middle_and_radius(entries: list[Any], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the middles and radii (size, k) of k intervals or constants."""
    pairs = [_interval(x) for x in entries]
    lo, hi = (
        np.stack([np.broadcast_to(x, size) for x in ends], -1) if ends else np.empty((size, 0))
        for ends in ([x.lo for x in pairs], [x.hi for x in pairs])
    )
    middle = lo / 2 + hi / 2
    return middle, np.maximum(hi - middle, middle - lo) * _UP + 4 * EPS * np.abs(middle)


def product(
    a: np.ndarray, a_radius: np.ndarray | float, b: np.ndarray, b_radius: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle and the radius of the matrix product of matrices with radii (Rump 1999)."""
    size, other = np.abs(a), np.abs(b)
    radius = size @ (b_radius + (a.shape[-1] + 2) * EPS * other)
    if isinstance(a_radius, np.ndarray):
        radius = radius + a_radius @ (other + b_radius)
    return a @ b, radius * _UP


def upward(a: np.ndarray) -> np.ndarray:
    """Return a computed sum of nonnegative numbers, enlarged by its rounding errors."""
    return a * _UP


def _wave(x: Interval, f: Any, peak: float) -> Interval:
    """Return the cosine or sine f of intervals; its largest value is at `peak`."""
    a, b = f(x.lo), f(x.hi)
    lo, hi = np.minimum(a, b) - _FUNCTION_ATOL, np.maximum(a, b) + _FUNCTION_ATOL

    def holds(place: float) -> Any:
        turns = np.ceil((x.lo - place - _SLACK) / (2 * np.pi))
        return turns * (2 * np.pi) + place <= x.hi + _SLACK

    return Interval(np.where(holds(peak + np.pi), -1.0, lo), np.where(holds(peak), 1.0, hi))


class Functions:
    """Functions of intervals for `Trace.run`."""

    @staticmethod
    def cos(x: Interval) -> Interval:
        """Return the cosine."""
        return _wave(x, np.cos, 0.0)

    @staticmethod
    def sin(x: Interval) -> Interval:
        """Return the sine."""
        return _wave(x, np.sin, np.pi / 2)

    @staticmethod
    def sqrt(x: Interval) -> Interval:
        """Return the square root, NaN for intervals with negative numbers."""
        return _outward(np.sqrt(x.lo), np.sqrt(x.hi))

    @staticmethod
    def arctan2(y: Any, x: Any) -> Interval:
        """Return the angle, continuous within an interval, of points in a half-plane."""
        y, x = _interval(y), _interval(x)
        s, c = y.lo / 2 + y.hi / 2, x.lo / 2 + x.hi / 2
        along = x * c + y * s
        slope = (y * c - x * s) / Interval(np.where(along.lo > 0, along.lo, np.nan), along.hi)
        angle = np.arctan2(s, c)
        return around(angle, _FUNCTION_ATOL) + Interval(
            np.arctan(slope.lo) - _FUNCTION_ATOL, np.arctan(slope.hi) + _FUNCTION_ATOL
        )

    @staticmethod
    def abs(x: Interval) -> Interval:
        """Return the absolute value."""
        return Interval(np.maximum(np.maximum(x.lo, -x.hi), 0.0), np.maximum(-x.lo, x.hi))

    @staticmethod
    def minimum(a: Any, b: Any) -> Interval:
        """Return the minimum."""
        a, b = _interval(a), _interval(b)
        return Interval(np.minimum(a.lo, b.lo), np.minimum(a.hi, b.hi))

    @staticmethod
    def maximum(a: Any, b: Any) -> Interval:
        """Return the maximum."""
        a, b = _interval(a), _interval(b)
        return Interval(np.maximum(a.lo, b.lo), np.maximum(a.hi, b.hi))
