"""Estimates by weighted least squares, with their covariance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from kic.dynamics.regressor import BaseParameters
from kic.errors import SingularError, counted, invalid
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import positive
from kic.numerics.display import Printable, Summary, cut
from kic.numerics.tables import Tabular
from kic.numerics.tolerances import RANK_RTOL

# estimates of the noise of each row, and their last relative change
WEIGHTINGS_MAX, NOISE_CHANGE_RTOL = 20, 1e-6
# noise below this share of a row is rounding; smallest share, relative to that of the noisiest row
NOISE_RTOL, NOISE_SHARE_MIN = 1e-15, 1e-6
# fewest degrees of freedom of residuals of one noise
FREEDOM_MIN = 0.5
# longest words of a combination in the summary
LABEL_MAX = 58


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Printable, Tabular):
    """Combinations of parameters that measurements determine, with their uncertainty."""

    base: BaseParameters
    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residual: np.ndarray
    freedom: np.ndarray
    unused: tuple[str, ...]
    description: Mechanism

    @property
    def parameters(self) -> tuple[str, ...]:
        """Tuple of the names of the K parameters."""
        return self.base.parameters

    @property
    def sigma(self) -> np.ndarray:
        """Array (R,) of the standard deviations of the estimates."""
        return np.sqrt(np.diagonal(self.covariance))

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Return confidence intervals (R, 2) of the estimates, by Student's distribution of `freedom`.

        Examples
        --------
        >>> m = kic.load("horn-two-link")
        >>> run = kic.trajectory.quintic([0.0, 0.0], [1.0, 2.0], duration=1.0).on(m, 50)
        >>> m.identify(run.table([*m.coordinates, "efforts"])).interval(0.99).shape
        (6, 2)
        """
        from scipy.special import stdtrit

        if not (1 + (level := positive("level", level))) / 2 < 1:
            raise invalid("level", "must be between 0 and 1", level)
        half = stdtrit(self.freedom, (1 + level) / 2) * self.sigma
        return np.stack([self.values - half, self.values + half], axis=1)

    def _sheet(self, last: str, column: np.ndarray) -> Summary:
        """Return a summary with a table of the estimates, their 95 % intervals, and a last column (R,)."""
        base, (low, high) = self.base, self.interval().T
        combinations = counted(len(base), "combination", "combinations")
        parameters = counted(len(self.parameters), "parameter", "parameters")
        samples = counted(len(self.residual), "sample", "samples")
        counts = f"{combinations} of {parameters} from {samples} (gap {base.gap:.1e})"
        sheet = Summary(f"{self.description.name}: {counts}")
        rows = np.column_stack([self.values, (high - low) / 2, column])
        texts = [cut(x, LABEL_MAX) for x in base.expressions]
        sheet.matrix("estimates", texts, ["value", "± (95 %)", last], rows)
        return sheet

    def _say_names(self, sheet: Summary, more: Mapping[str, Iterable[str]]) -> None:
        """Add lists of parameters and columns to a summary."""
        unused = {"columns without use": self.unused}
        for what, names in ({"without effect": self.base.without_effect} | dict(more) | unused).items():
            if text := ", ".join(names):
                sheet.say(f"{what}: {text}")


@dataclass(frozen=True)
class LeastSquares:
    """Estimates (R,) of weighted least squares.

    Attributes
    ----------
    x, covariance : (R,), (R, R)
        Estimates, and their covariance.
    freedom : (R,)
        Degrees of freedom of their variances (Welch and Satterthwaite); infinite with given noise.
    noise, noise_freedom : (E,)
        Noise of the rows, and its degrees of freedom.
    """

    x: np.ndarray
    covariance: np.ndarray
    freedom: np.ndarray
    noise: np.ndarray
    noise_freedom: np.ndarray


def weighted_least_squares(
    Y: np.ndarray,
    measured: np.ndarray,
    peak: np.ndarray,
    remedy: str,
    noise: np.ndarray | None = None,
    kinds: np.ndarray | None = None,
) -> LeastSquares:
    """Return estimates for measured (N, E) = Y (N, E, R) x.

    Without given noise, its size in the rows of each kind (E,) follows from their residuals, whose degrees of
    freedom are the numbers less the share of the estimates that these determine; estimates are repeated with
    it. `peak` (E,) are the largest numbers of rows, for rounding. NaN numbers are not measured.

    Raise `SingularError` with the remedy if estimates are not determined.
    """
    N, E, R = Y.shape
    there = np.isfinite(measured)
    Y, measured = np.where(there[..., None], Y, 0.0), np.where(there, measured, 0.0)
    peak = np.where(peak > 0, peak, peak.max() or 1.0)
    kinds = np.arange(E) if kinds is None else kinds
    sizes, left = np.ones(E) if noise is None else noise, np.full(E, np.inf)
    for _ in range(WEIGHTINGS_MAX):
        A = (Y / sizes[:, None]).reshape(-1, R)
        unit = np.linalg.norm(A, axis=0)
        Q, top = np.linalg.qr(A / np.where(unit > 0, unit, 1.0))
        if np.abs(np.diagonal(top)).min() <= RANK_RTOL:
            raise SingularError(
                f"Samples must determine {R} combinations of parameters, but these {N} do not. {remedy}"
            )
        x = np.linalg.solve(top, Q.T @ (measured / sizes).ravel()) / unit
        if noise is not None:
            break
        own = there.sum(axis=0) - (Q**2).reshape(N, E, R).sum(axis=(0, 2))
        squares = ((measured - Y @ x) ** 2).sum(axis=0)
        last, left = sizes, np.bincount(kinds, own)
        if left.min() < FREEDOM_MIN:
            raise invalid("measurements", "must have more samples to estimate noise", N, "Give `noise`.")
        sizes = np.sqrt(np.bincount(kinds, squares) / left)[kinds]
        sizes = np.maximum(sizes, peak * max(NOISE_SHARE_MIN * (sizes / peak).max(), NOISE_RTOL))
        if (np.abs(sizes - last) <= NOISE_CHANGE_RTOL * sizes).all():
            break
    root = np.linalg.inv(top)
    if noise is None:
        shares = ((root @ Q.T) ** 2).reshape(R, N, E).sum(axis=1)
        parts = np.stack([np.bincount(kinds, row, len(left)) for row in shares])
        freedom = parts.sum(axis=1) ** 2 / (parts**2 / left).sum(axis=1)
        left = left[kinds]
    else:
        freedom = np.full(R, np.inf)
    root = root / unit[:, None]
    return LeastSquares(x, root @ root.T, freedom, sizes, left)
