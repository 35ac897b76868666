"""Regressors of efforts, and the combinations of parameters that measurements determine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from kic.dynamics.dynamic_parameters import INERTIAL
from kic.errors import InputError, SingularError, invalid, unknown
from kic.numerics.arguments import at_least, names_of
from kic.numerics.arrays import vector
from kic.numerics.display import Batched, Printable, Summary

# entries below this share of the size that they have if no terms cancel are rounding
ZERO_RTOL = 1e-11
# coefficients of unit columns below this are rounding
COEFFICIENT_ATOL = 1e-9
# smallest ratio of singular values that separates what measurements determine from rounding
SINGULAR_GAP_MIN = 1e6
# first threshold for the distance of a unit column from others, so that coefficients are moderate
DISTANCE_MIN = 1e-2
# order in which the numbers of a body become base parameters: a mass is the first to be expressed by others
_PREFERENCE = (9, 6, 7, 8, 0, 1, 2, 3, 4, 5)


@dataclass(frozen=True, eq=False, repr=False)
class BaseParameters(Printable):
    """Combinations B π of parameters that measurements determine; for efforts, T = Y[..., columns] B π.

    Attributes
    ----------
    expressions : tuple of str
        The R combinations in words, such as "crank.mx + 0.06 coupler.m".
    parameters : tuple of str
        Names of the K parameters.
    columns : (R,) ndarray
        Columns of the regressor, or of another Jacobian, that belong to the combinations.
    matrix : (R, K) ndarray
        Coefficients B of the combinations.
    values : (R,) ndarray
        Values of the combinations in the description.
    gap : float
        Ratio of the smallest singular value of the independent columns to the next one, or to the rounding
        error of singular values if that is larger: eps · largest value · number of rows, as in NumPy's
        `matrix_rank`.
    singular_values : ndarray
        Singular values of the regressor with columns of unit norm.
    without_effect : tuple of str
        Parameters without effect on what is measured.
    """

    _one_line = ("expressions", "gap")

    expressions: tuple[str, ...]
    parameters: tuple[str, ...]
    columns: np.ndarray
    matrix: np.ndarray
    values: np.ndarray
    gap: float
    singular_values: np.ndarray
    without_effect: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number R of combinations."""
        return len(self.expressions)

    def summary(self) -> Summary:
        """Return a table of the combinations with their values."""
        sheet = Summary(f"{len(self)} base parameters of {len(self.parameters)} (gap {self.gap:.1e})")
        sheet.matrix("combinations", list(self.expressions), ["value"], self.values[:, None])
        if self.without_effect:
            sheet.say(f"without effect: {', '.join(self.without_effect)}")
        return sheet


class Regressor(Batched):
    """Regressor Y of the efforts of motions, T = Y π, which does not depend on the parameters π.

    Ten numbers of each body are its mass m, first moments mx, my, mz and inertia Ixx, Iyy, Izz, Ixy, Ixz, Iyz
    about a point, with the point masses it carries, in world axes of the reference configuration; Ixy is an
    entry of the tensor, −∫ x y dm. Numbers of a joint coordinate, a distance or an angle are `armature`,
    `damping`, `friction` (whose effort is that number times the sign of the rate, zero at rest), `stiffness`
    and `offset`, a constant effort, which is −stiffness · rest of a spring.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates, or fx, fy, fz, mx, my, mz on ground.
    parameters : tuple of str
        Names of the K parameters, such as "crank.mx" or "A.damping".
    matrix : (..., M, K) ndarray
        Y. Forces and moments of the mechanism are not included.
    values : (K,) ndarray
        π of the description; NaN where it has no number.
    points : dict of str to (3,)
        Point of each body to which its moments refer, in the reference configuration: `at` of the first joint
        that connects it to ground, else of the first joint whose second body it is, else of the first joint
        whose first body it is, else the origin of the world.

    Examples
    --------
    >>> c = kic.load("horn-two-link").at([0.3, 0.5])
    >>> r = c.regressor([1.0, 2.0], [0.5, 0.0])
    >>> r.matrix.shape, r.parameters[:4]
    ((2, 20), ('link1.m', 'link1.mx', 'link1.my', 'link1.mz'))
    >>> np.allclose(r.matrix @ r.values, c.inverse_dynamics([1.0, 2.0], [0.5, 0.0]))
    True
    """

    _one_line = ("coordinates", "parameters", "matrix")
    _per_member = ("matrix", 2)

    def __init__(
        self,
        coordinates: Iterable[str],
        parameters: Iterable[str],
        matrix: np.ndarray,
        values: np.ndarray,
        points: dict[str, tuple[float, ...]],
        sizes: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    ) -> None:
        self.coordinates, self.parameters = tuple(coordinates), tuple(parameters)
        self.matrix, self.values, self.points = matrix, values, points
        # of entries whose terms do not cancel, computed when first needed: (kinds, B, M), kind of each column
        self._sizes: Any = sizes

    def _finite(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Y (B, M, K) of finite members, the sizes (kinds, B, M) of entries, and kinds (K,)."""
        M, K = self.matrix.shape[-2:]
        Y = self.matrix.reshape(prod(self.batch), M, K)
        members = np.isfinite(Y).all(axis=(1, 2))
        if callable(self._sizes):
            self._sizes = self._sizes(members)
        return (Y[members], *self._sizes)

    def __getstate__(self) -> dict[str, Any]:
        if self.matrix.dtype == np.float64:  # others have no base parameters
            self._finite()
        return self.__dict__ | ({"_sizes": None} if callable(self._sizes) else {})

    def summary(self) -> Summary:
        """Return a table of the values of the parameters and their columns in one member."""
        sheet = Summary(f"regressor with the rows {', '.join(self.coordinates)}")
        index = sheet.member(self.batch)
        if index is not None:
            table = np.concatenate([self.values[:, None], self.matrix[index].T], axis=1)
            sheet.matrix("parameters", self.parameters, ["value", *self.coordinates], table)
        return sheet

    def select(self, rows: str | Iterable[str]) -> Regressor:
        """Return the regressor of some rows, such as those of measured efforts.

        Examples
        --------
        >>> r = kic.load("horn-two-link").at([0.3, 0.5]).regressor([1.0, 2.0])
        >>> r.select("elbow").matrix.shape
        (1, 20)
        """
        names = names_of(rows, "rows", 1)
        for name in names:
            if name not in self.coordinates:
                raise unknown("row", name, "this regressor", self.coordinates)
        places = [self.coordinates.index(name) for name in names]

        def sizes(members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            table, kinds = self._sizes(members) if callable(self._sizes) else self._sizes
            return table[..., places], kinds

        return Regressor(names, self.parameters, self.matrix[..., places, :], self.values, self.points, sizes)

    def with_values(self, values: Any) -> Regressor:
        """Return the regressor with other values (K,) of the parameters.

        Examples
        --------
        >>> r = kic.load("four-bar").at(1.2).regressor(6.0)
        >>> bool(np.allclose(r.with_values(2.0 * r.values).values, 2.0 * r.values))
        True
        """
        values = vector("values", values, len(self.parameters))
        return Regressor(self.coordinates, self.parameters, self.matrix, values, self.points, self._sizes)

    def base(self, *, keep: str | Iterable[str] = (), gap_min: float = SINGULAR_GAP_MIN) -> BaseParameters:
        """Find the combinations of parameters that the efforts of these motions determine.

        The combinations follow from the singular values of the regressor, whose columns have unit norm. For
        those of the mechanism itself the motions must be many and different, with random rates and
        accelerations. Members that are not finite are left out.

        Parameters
        ----------
        keep : str or list of str
            Parameters that begin a combination if they can, such as masses that are known.
        gap_min : float
            Smallest gap of the singular values, at least 1.

        Returns
        -------
        BaseParameters
            Combinations in words, and as a matrix.

        Raises
        ------
        InputError
            If no parameter has an effect, or there are fewer rows, efforts of all motions, than parameters.
        SingularError
            If the singular values decrease without such a gap: the motions do not determine a number of
            combinations. The error has `gap` and `singular_values`.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> A, rates = np.linspace(0.0, 6.0, 40), np.random.default_rng(0).normal(size=(2, 40, 1))
        >>> base = m.path({"A": A}).regressor(*rates).base()
        >>> len(base), base.expressions[0]
        (8, 'crank.Izz + 0.01 coupler.m + 0.03571 rocker.my')
        """
        kept = []
        for name in names_of(keep, "keep"):
            if name not in self.parameters:
                raise unknown("parameter", name, "this regressor", self.parameters, quoted=False)
            kept.append(self.parameters.index(name))
        gap_min = at_least("gap_min", gap_min, 1.0)
        if self.matrix.dtype != np.float64:
            raise invalid("matrix", "must hold real numbers", self.matrix.dtype)
        used, A = self._columns_with_effect()
        order = self._order(used, kept)
        remedy = (
            "Give more motions, with faster and more different ones, or a smaller `gap_min`; dimensions of "
            "loops that are rounded leave no gap."
        )
        return base_parameters(A, used, self.parameters, self.values, order, gap_min, remedy)

    def _columns_with_effect(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns that are not rounding, and their entries in all motions as rows of one unit."""
        Y, sizes, kinds = self._finite()
        limits = ZERO_RTOL * sizes.transpose(1, 2, 0)[..., kinds]
        used = np.flatnonzero((np.abs(Y) > limits).any(axis=(0, 1)))
        if not len(used):
            raise InputError(
                "`matrix` must have an entry that is not zero, got none: no parameter has an effect on these "
                "efforts. Give motions of other joints, or other parameters.",
                key="matrix",
                got=0,
            )
        # coordinates may have different units
        largest = sizes[0].max(axis=0)
        A = (Y[..., used] / np.where(largest > 0, largest, 1.0)[:, None]).reshape(-1, len(used))
        if len(A) < len(used):
            raise InputError(
                f"`matrix` must have a row for each of {len(used)} parameters with effect, got {len(A)}. "
                "Give more configurations and motions.",
                key="matrix",
                got=len(A),
            )
        return used, A

    def _order(self, used: np.ndarray, kept: list[int]) -> list[int]:
        """Return the used columns in the order in which they are preferred as base parameters."""
        bodies = list(self.points)

        def rank(j: int) -> tuple[bool, int, int]:
            k = int(used[j])
            part, _, key = self.parameters[k].rpartition(".")
            if part in bodies:
                return k not in kept, bodies.index(part), _PREFERENCE[INERTIAL.index(key)]
            return k not in kept, len(bodies), k

        return sorted(range(len(used)), key=rank)


def base_parameters(
    A: np.ndarray,
    used: np.ndarray,
    parameters: tuple[str, ...],
    values: np.ndarray,
    order: list[int],
    gap_min: float,
    remedy: str,
) -> BaseParameters:
    """Find the combinations of parameters that measurements determine, from their derivatives.

    Parameters
    ----------
    A : (N, U) ndarray
        Derivatives of N numbers of one unit by the parameters with effect.
    used : (U,) ndarray
        Places of these among the K parameters.
    parameters, values : tuple of str, (K,) ndarray
        Names and values of the parameters.
    order : list of int
        Columns of A, those first that are to begin a combination.
    gap_min : float
        Smallest gap of the singular values.
    remedy : str
        Remedy of the error.

    Raises
    ------
    SingularError
        If the singular values decrease without such a gap.
    """
    norm = np.linalg.norm(A, axis=0)
    _, R = np.linalg.qr(A / norm)
    s = np.linalg.svd(R, compute_uv=False)
    rank, gap = _rank(s, len(A))
    if gap < gap_min:
        raise SingularError(
            f"Singular values must have a gap of {gap_min:g}, got {gap:.1e} between "
            f"{rank} and {rank + 1} of {len(used)} parameters. {remedy}",
            gap=gap,
            singular_values=s,
        )
    chosen = _independent(R, rank, order)
    rest = np.setdiff1d(np.arange(len(used)), chosen)
    Q, top = np.linalg.qr(R[:, chosen])
    shares = np.linalg.solve(top, Q.T @ R[:, rest])
    shares[np.abs(shares) < COEFFICIENT_ATOL] = 0.0
    B = np.zeros((rank, len(parameters)))
    B[np.arange(rank), used[chosen]] = 1.0
    B[:, used[rest]] = shares * norm[rest] / norm[chosen][:, None]
    return BaseParameters(
        tuple(_expression(parameters, row, k) for row, k in zip(B, used[chosen], strict=True)),
        parameters,
        used[chosen],
        B,
        np.where(B != 0, B * values, 0.0).sum(axis=1),  # values without effect may be NaN
        gap,
        s,
        tuple(np.delete(parameters, used).tolist()),
    )


def _expression(parameters: tuple[str, ...], row: np.ndarray, first: int) -> str:
    """Return a combination in words."""
    text = parameters[first]
    for k in np.flatnonzero(row):
        if k != first:
            size = f"{abs(row[k]):.4g} "
            text += f" {'−' if row[k] < 0 else '+'} {'' if size == '1 ' else size}{parameters[k]}"
    return text


def _rank(s: np.ndarray, height: int) -> tuple[int, float]:
    """Return the number of singular values before the largest gap, and the gap, for a matrix of some rows."""
    ends = np.maximum([*s, 0.0], np.finfo(float).eps * s[0] * height)
    ratios = ends[:-1] / ends[1:]
    k = int(np.argmax(ratios))
    return k + 1, float(ratios[k])


def _independent(R: np.ndarray, rank: int, order: list[int]) -> np.ndarray:
    """Return independent columns (rank,) of R, the first ones in an order that are well-conditioned.

    A unit column is taken if its distance from those before it exceeds a threshold, which decreases until
    there are enough.
    """
    threshold, chosen = DISTANCE_MIN, list[int]()
    while len(chosen) < rank:
        basis, chosen = np.zeros((0, len(R))), []
        for j in order:
            left = R[:, j] - basis.T @ (basis @ R[:, j])
            left -= basis.T @ (basis @ left)
            size = float(np.linalg.norm(left))
            if size > threshold:
                basis, chosen = np.vstack([basis, left / size]), [*chosen, j]
        threshold /= 10
    return np.array(chosen[:rank], dtype=np.intp)
