"""Operation counts of kic's kernels, and the printed operation counts of Lee, Lee and Nigam (1982, Table 1).

Kernels are run as plain Python functions on scalars that count their own operations. The counts are exact.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, SupportsFloat

import numpy as np

from kic.dynamics.dynamics import Dynamics
from kic.errors import invalid
from kic.mechanism.configuration import model_of
from kic.mechanism.evaluator import PARTS, Tables, tables_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import choice, instance, integer

# Table 1: coefficients of n⁴, n³, n², n, 1 for multiplications, then for additions
TABLE_1 = {
    "Lagrange-Euler": (("128/3", "512/3", "739/3", "160/3", "0"), ("98/3", "781/6", "559/3", "245/6", "0")),
    "Newton-Euler": (("0", "0", "0", "132", "0"), ("0", "0", "0", "111", "-4")),
    "generalized d'Alembert": (("0", "13/6", "105/2", "268/3", "69"), ("0", "4/3", "44", "146/3", "45")),
}


@dataclass(frozen=True)
class OperationCount:
    """Number of operations on floating-point numbers, without index arithmetic and comparisons."""

    additions: int = 0
    subtractions: int = 0
    multiplications: int = 0
    divisions: int = 0
    negations: int = 0
    cosines: int = 0
    sines: int = 0
    roots: int = 0

    @property
    def products(self) -> int:
        """Number of multiplications and divisions: the first row of Table 1."""
        return self.multiplications + self.divisions

    @property
    def sums(self) -> int:
        """Number of additions and subtractions: the second row of Table 1."""
        return self.additions + self.subtractions


def _counted(kind: str, operation: Callable[..., float]) -> Any:
    """Return a counted operation on one or two numbers."""

    def counted(self: CountingScalar, *other: SupportsFloat) -> CountingScalar:
        self.counts[kind] += 1
        return CountingScalar(operation(self.value, *map(float, other)), self.counts)

    return counted


def _comparison(relation: Callable[[float, float], bool]) -> Any:
    """Return a comparison that is not counted."""
    return lambda self, other: relation(self.value, float(other))


class CountingScalar:
    """Real number that counts the operations applied to it; all results share the counts."""

    def __init__(self, value: SupportsFloat, counts: Counter[str]) -> None:
        self.value, self.counts = float(value), counts

    __add__ = __radd__ = _counted("additions", float.__add__)
    __sub__, __rsub__ = _counted("subtractions", float.__sub__), _counted("subtractions", float.__rsub__)
    __mul__ = __rmul__ = _counted("multiplications", float.__mul__)
    __truediv__ = _counted("divisions", float.__truediv__)
    __rtruediv__ = _counted("divisions", float.__rtruediv__)
    __neg__ = _counted("negations", float.__neg__)
    cos, sin, sqrt = _counted("cosines", math.cos), _counted("sines", math.sin), _counted("roots", math.sqrt)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)
    __hash__ = None  # type: ignore[assignment]

    def __abs__(self) -> float:
        return abs(self.value)  # kernels only compare magnitudes

    def __float__(self) -> float:
        return self.value


class _CountingArray(np.ndarray):
    """Array of objects that converts assigned numbers to `CountingScalar`, including cleared entries."""

    counts: Counter[str]

    def __array_finalize__(self, other: Any) -> None:
        if isinstance(other, _CountingArray):  # views share the counts
            self.counts = other.counts

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, CountingScalar | np.ndarray):
            value = CountingScalar(value, self.counts)
        super().__setitem__(index, value)


def _with_counting(a: Any, counts: Counter[str]) -> Any:
    """Return a counting copy of an array of floats, or any other argument unchanged."""
    if not isinstance(a, np.ndarray) or a.dtype.kind != "f":
        return a
    copy = np.empty(a.shape, dtype=object).view(_CountingArray)
    copy.counts = counts
    for index, value in np.ndenumerate(a):
        copy[index] = value
    return copy


def count_operations(
    mechanism: Mechanism,
    of: str | Iterable[str] = (),
    *,
    order: int = 2,
    dynamics: bool | Literal["inertia", "inverse_dynamics"] = False,
    wrt: str | Iterable[str] | None = None,
) -> OperationCount:
    """Return the number of operations that a prepared evaluator needs for the reference configuration.

    All + − × ÷ on floats are counted, even with numbers that the geometry makes 0 or 1. Counts of an open
    chain in joint coordinates hold for all configurations. In other coordinates and with loops, elimination
    skips zeros. Closure equations must be independent in this configuration.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism.
    of, order : str or list of str, {1, 2, 3}
        Dependents and highest order, as in `Configuration.coefficients`.
    dynamics : bool, "inertia" or "inverse_dynamics"
        True adds I*, P*, loads and damping, and "inertia" only I* and P*. "inverse_dynamics" also adds the
        products of `Dynamics.inverse_dynamics`.
    wrt : str or list of str, optional
        Coordinates, as in `Configuration.coefficients`.

    Examples
    --------
    >>> count = count_operations(kic.load("horn-two-link"), of="tip", order=1)
    >>> count.products, count.sums, count.cosines, count.sines
    (87, 62, 2, 2)
    """
    return run_counted(mechanism, of, order, dynamics, wrt)[0]


def run_counted(
    mechanism: Any, of: Any, order: Any, dynamics: Any, wrt: Any
) -> tuple[OperationCount, list[np.ndarray]]:
    """Return the operation count of `count_operations`, and the arrays that were computed."""
    instance("mechanism", mechanism, Mechanism, "Use `kic.load`.")
    state = mechanism.at().state
    if not isinstance(dynamics, bool | str) or dynamics not in (True, False, "inertia", "inverse_dynamics"):
        rule = "must be True, False, 'inertia' or 'inverse_dynamics'"
        raise invalid("dynamics", rule, dynamics, "Give True for all of I*, P* and the loads.")
    parts = () if dynamics is False else PARTS[:2] if dynamics == "inertia" else PARTS
    tables = Tables(model_of(mechanism), of, order, parts, wrt)
    result = tables(state)  # raises the errors of an ordinary evaluation
    buffers = tables.empty((), 1, state.dtype)
    rows, model, _ = tables_of(buffers)
    counts: Counter[str] = Counter()
    outputs: list[np.ndarray] = []
    for kernel, arguments in tables.calls(buffers, state[None]):
        counting = [_with_counting(a, counts) for a in arguments]
        assert not kernel.py_func(*counting)  # the closure equations are chosen in this configuration
        written = [k for k, a in enumerate(arguments) if a is rows or a is model]
        outputs += [counting[k].astype(float).view(np.ndarray)[0] for k in written if arguments[k].size]
    if dynamics == "inverse_dynamics":
        names = tables.coordinates
        arrays = (result.I, result.P, result.load, result.damping, *np.ones((2, len(names))))
        I, P, load, damping, qd, qdd = (_with_counting(a, counts).view(np.ndarray) for a in arrays)
        outputs.append(Dynamics(names, I, P, load, damping=damping).inverse_dynamics(qd, qdd).astype(float))
    return OperationCount(**counts), outputs


def table_1(method: str, n_joints: int) -> tuple[int, int]:
    """Return the multiplications and additions of the inverse dynamics of an arm as printed (Table 1, p. 16).

    Methods for revolute joints are "Lagrange-Euler", "Newton-Euler" and "generalized d'Alembert".

    Examples
    --------
    >>> table_1("Newton-Euler", 6), table_1("generalized d'Alembert", 6)
    ((792, 662), (2963, 2209))
    """
    n, columns = integer("n_joints", n_joints, 1), TABLE_1[choice("method", method, TABLE_1)]
    powers = [n**k for k in (4, 3, 2, 1, 0)]
    products, sums = (sum(Fraction(c) * p for c, p in zip(column, powers, strict=True)) for column in columns)
    return int(products), int(sums)
