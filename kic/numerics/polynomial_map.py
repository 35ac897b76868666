"""Polynomials of one or several variables on a box, with error bounds."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly, chebder, chebvander
from numpy.polynomial.polynomial import polyadd, polymul

from kic.errors import InputError, invalid
from kic.numerics.arguments import at_least, choice
from kic.numerics.arrays import not_symbolic, numbers
from kic.numerics.files import atomic_write

# share of the box by which arguments may lie outside, to allow for rounding
_OUTSIDE_RTOL = 1e-9


@dataclass(frozen=True, eq=False)
class PolynomialMap:
    """Polynomials of variables q (M,) on a box, with certified error bounds.

    They are sums of products of Chebyshev polynomials T_k of t = (2 q - lower - upper) / (upper - lower).

    Attributes
    ----------
    name : str
        Name of the mechanism.
    rows : tuple of str
        Names of the P results.
    variables : tuple of str
        Names of the M variables, such as motors.
    units : tuple of str
        Units of the rows and of the variables.
    limits : (M, 2) ndarray
        Box of the variables.
    coefficients : (P, degree + 1, …) ndarray
        Coefficients of the products T_i(t₁) T_j(t₂) …, one axis for each variable.
    error_bound : (P,) ndarray
        Certified error bounds of the results on the box; angles are compared modulo full turns. Rounding
        errors of evaluation are not included.
    J_error_bound : (P, M) ndarray
        Certified error bounds of the derivatives.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> rows = m.export.actuation_map(["B", "D"])
    >>> p = rows.to_polynomial(limits={"A": (0.2, 1.2)}, error_max=1e-4)
    >>> p
    2 polynomials of degree 4 in A, error at most 1.4e-05 rad
    >>> bool((abs(p(0.7) - m.at([0.7]).value(["B", "D"])) <= p.error_bound).all())
    True
    """

    name: str
    rows: tuple[str, ...]
    variables: tuple[str, ...]
    units: tuple[str, ...]
    limits: np.ndarray
    coefficients: np.ndarray
    error_bound: np.ndarray
    J_error_bound: np.ndarray

    def __post_init__(self) -> None:
        for a in (self.limits, self.coefficients, self.error_bound, self.J_error_bound):
            a.setflags(write=False)

    @property
    def degree(self) -> int:
        """Degree of the polynomials, the largest sum of the exponents of a term."""
        used = np.argwhere(self.coefficients.any(axis=0))
        return int(used.sum(axis=1).max(initial=0))

    def __call__(self, q: Any) -> np.ndarray:
        """Return the values.

        Parameters
        ----------
        q : (..., M) array_like
            Values of the variables within `limits`; a scalar is accepted for one variable.

        Returns
        -------
        (..., P) ndarray
        """
        return evaluate(self.coefficients, self._places(q))

    def J(self, q: Any) -> np.ndarray:
        """Return the derivatives of the values with respect to the variables.

        Parameters
        ----------
        q : (..., M) array_like
            As in a call.

        Returns
        -------
        (..., P, M) ndarray
        """
        t, half = self._places(q), np.diff(self.limits)[:, 0] / 2
        slopes = [evaluate(derived(self.coefficients, k), t) for k in range(len(half))]
        return np.stack(slopes, axis=-1) / half

    def _places(self, q: Any) -> np.ndarray:
        """Return the variables scaled from the box to [-1, 1]."""
        x, M = not_symbolic("q", numbers("q", q)), len(self.variables)
        x = x[..., None] if M == 1 and x.shape[-1:] != (1,) else x
        if x.shape[-1:] != (M,):
            raise invalid("q", f"must have shape (..., {M})", x.shape)
        lower, upper = self.limits.T
        t = (2 * x - lower - upper) / (upper - lower)
        if not np.all(np.abs(t) <= 1 + _OUTSIDE_RTOL):
            box = ", ".join(
                f"{n} from {a:g} to {b:g}" for n, (a, b) in zip(self.variables, self.limits, strict=True)
            )
            raise InputError(f"`q` must be within the limits of the polynomials: {box}.", key="q", got=x)
        return t

    def powers(self, row: str, about: float = 0.0) -> tuple[np.ndarray, float]:
        """Return the coefficients of the powers of q - about, for one variable.

        Parameters
        ----------
        row : str
            Name of the result.
        about : float
            Value about which the polynomial is expanded.

        Returns
        -------
        coefficients : (degree + 1,) ndarray
            Coefficients of the powers from zero.
        error_bound : float
            Error bound on the box, including the rounding of the coefficients.

        Raises
        ------
        InputError
            If the polynomials have several variables, or the row is unknown.
        """
        if len(self.variables) > 1:
            names = ", ".join(self.variables)
            raise InputError(f"Polynomials in powers must have one variable, got {names}.", key="row")
        choice("row", row, self.rows)
        about = at_least("about", about, -np.inf)
        k, (a, b) = self.rows.index(row), (Fraction(float(x)) for x in self.limits[0])
        t = [(2 * Fraction(about) - a - b) / (b - a), 2 / (b - a)]  # in powers of q - about
        exact: Any = [Fraction(0)]
        for c in cheb2poly([Fraction(float(c)) for c in self.coefficients[k]])[::-1]:
            exact = polyadd(polymul(exact, t), [c])
        found = np.zeros(self.degree + 1)
        found[: len(exact)] = exact
        reach = np.abs(self.limits[0] - about).max() ** np.arange(len(found))
        rounding = 4 * len(found) * np.finfo(float).eps * float(np.abs(found) @ reach)
        return found, float(self.error_bound[k] + rounding)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the attributes to a JSON file.

        Parameters
        ----------
        path : path
            File to write, with the suffix ".json". An existing file is replaced.

        Raises
        ------
        FileError
            If the file cannot be written.
        """
        if not isinstance(path, str | os.PathLike) or os.path.splitext(os.fspath(path))[1].lower() != ".json":
            raise invalid("path", "must end with .json", path)
        about = "value = sum of coefficients[row][i][j]… T_i(t1) T_j(t2)…, "
        about += "t = (2 q - lower - upper) / (upper - lower)"
        found = {"about": about, "degree": self.degree}
        found |= {key: x.tolist() if isinstance(x, np.ndarray) else x for key, x in vars(self).items()}
        with atomic_write(path) as file:
            file.write(json.dumps(found, indent=1).encode())

    def __repr__(self) -> str:
        worst = ", ".join(
            f"{max(e for e, u in zip(self.error_bound, self.units, strict=False) if u == unit):.2g} {unit}"
            for unit in dict.fromkeys(self.units[: len(self.rows)])
        )
        count = len(self.rows)
        return (
            f"{count} polynomial{'s' * (count > 1)} of degree {self.degree} in {', '.join(self.variables)}, "
            f"error at most {worst}"
        )


def evaluate(coefficients: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return values (..., P) of sums of products of Chebyshev polynomials at t (..., M)."""
    basis = np.ones((*t.shape[:-1], 1))
    for k, size in enumerate(coefficients.shape[1:]):
        own = chebvander(t[..., k], size - 1)[..., None, :]
        basis = (basis[..., :, None] * own).reshape(*t.shape[:-1], basis.shape[-1] * size)
    found: np.ndarray = basis @ coefficients.reshape(len(coefficients), -1).T
    return found


def derived(coefficients: np.ndarray, axis: int) -> np.ndarray:
    """Return the coefficients of the derivative with respect to t along an axis, padded to the same shape."""
    found = chebder(coefficients, axis=axis + 1)
    missing = [(0, n - k) for n, k in zip(coefficients.shape, found.shape, strict=True)]
    return np.pad(found, missing)
