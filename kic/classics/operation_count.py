"""Operation counts of kic's kernels, and the printed operation counts of Lee, Lee and Nigam (1982, Table 1).

Kernels are run as plain Python functions on scalars that count their own operations. The counts are exact.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from typing import Any, Literal, SupportsFloat

import numpy as np

from kic.configuration import Configuration, model_of
from kic.description.parts import Body, Point
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, SingularError, invalid, short_repr
from kic.evaluator import PARTS, Tables
from kic.io.dh import DHRow, from_dh
from kic.mechanism import Mechanism
from kic.numerics.arguments import choice, instance, integer
from kic.numerics.display import Printable, Summary

# Table 1: coefficients of n⁴, n³, n², n, 1 for multiplications, then for additions
TABLE_1 = {
    "Lagrange-Euler": (("128/3", "512/3", "739/3", "160/3", "0"), ("98/3", "781/6", "559/3", "245/6", "0")),
    "Newton-Euler": (("0", "0", "0", "132", "0"), ("0", "0", "0", "111", "-4")),
    "generalized d'Alembert": (("0", "13/6", "105/2", "268/3", "69"), ("0", "4/3", "44", "146/3", "45")),
}
METHODS = tuple(TABLE_1)


@dataclass(frozen=True, repr=False)
class OperationCount(Printable):
    """Number of operations on floating-point numbers, without index arithmetic and comparisons.

    Attributes
    ----------
    additions, subtractions, multiplications, divisions, negations : int
        Arithmetic operations.
    cosines, sines, roots : int
        Function evaluations.

    Examples
    --------
    >>> count = OperationCount(additions=3, subtractions=1, multiplications=5)
    >>> count.products, count.sums, count + count == OperationCount(6, 2, 10)
    (5, 4, True)
    """

    _one_line = ("additions", "subtractions", "multiplications", "divisions")

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

    def __add__(self, other: OperationCount) -> OperationCount:
        if not isinstance(other, OperationCount):
            return NotImplemented
        return OperationCount(*map(operator.add, astuple(self), astuple(other)))

    def summary(self) -> Summary:
        """Return a table of the counts."""
        sheet = Summary(f"{self.products} products and {self.sums} sums")
        names = [field.name for field in fields(self)]
        sheet.matrix("operations", names, [""], np.array(astuple(self))[:, None])
        return sheet


def _counted(kind: str, operation: Callable[..., float]) -> Any:
    """Return a counted operation on one or two numbers."""

    def counted(self: CountingScalar, *other: SupportsFloat) -> CountingScalar:
        self.counts[kind] += 1
        return CountingScalar(operation(self.value, *map(float, other)), self.counts)

    return counted


def _comparison(relation: Callable[[float, float], bool]) -> Any:
    """Return a comparison that is not counted."""

    def compared(self: CountingScalar, other: SupportsFloat) -> bool:
        return relation(self.value, float(other))

    return compared


class CountingScalar:
    """Real number that counts the operations applied to it; all results share the counts."""

    __slots__ = ("counts", "value")

    def __init__(self, value: SupportsFloat, counts: Counter[str]) -> None:
        self.value = float(value)
        self.counts = counts

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

    def __repr__(self) -> str:
        return f"CountingScalar({self.value!r})"


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
    at: Configuration | None = None,
) -> OperationCount:
    """Return the number of operations that a prepared evaluator needs for one configuration.

    All + − × ÷ on floats are counted, even with numbers that the geometry makes 0 or 1. Counts of an open
    chain in joint coordinates depend only on its joint types, their order, its bodies and its loads. In other
    coordinates and with loops the elimination skips zeros, so counts depend on the configuration. A compiler
    may fuse or remove some operations.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism.
    of : str or list of str
        Dependents, as in `Configuration.coefficients`.
    order : {1, 2, 3}
        Highest order of the coefficients.
    dynamics : bool, "inertia" or "inverse_dynamics"
        True adds I*, P*, loads and damping, and "inertia" only I* and P*. "inverse_dynamics" also adds the
        products of `Dynamics.inverse_dynamics`.
    wrt : str or list of str, optional
        Coordinates, as in `Configuration.coefficients`.
    at : Configuration, optional
        Configuration of real numbers; by default the reference configuration.

    Raises
    ------
    InputError
        If `mechanism`, `dynamics` or `at` is invalid, or the closure equations are dependent in the
        reference configuration.
    SingularError
        If `at` is so close to a singularity that other closure equations are chosen there.
    UnknownNameError, InertiaError
        Under the same conditions as the evaluators of `Mechanism.prepare`.

    Examples
    --------
    >>> from kic.classics.operation_count import count_operations
    >>> count = count_operations(kic.load("horn-two-link"), of="tip", order=1)
    >>> count.products, count.sums, count.cosines, count.sines
    (87, 65, 2, 2)
    """
    return run_counted(mechanism, at, dynamics, of=of, order=order, wrt=wrt)[0]


def run_counted(
    mechanism: Mechanism,
    at: Configuration | None = None,
    dynamics: bool | Literal["inertia", "inverse_dynamics"] = False,
    **query: Any,
) -> tuple[OperationCount, list[np.ndarray]]:
    """Return the operation count of `count_operations` and the arrays that its kernels computed.

    The arrays are coefficients, dynamics and efforts, as far as requested. `query` holds the arguments `of`,
    `order` and `wrt` of `Configuration.coefficients`.
    """
    instance("mechanism", mechanism, Mechanism, "Use `kic.load`.")
    if not isinstance(dynamics, bool | str) or dynamics not in (True, False, "inertia", "inverse_dynamics"):
        raise invalid(
            "dynamics",
            "must be True, False, 'inertia' or 'inverse_dynamics'",
            dynamics,
            "Give True for all of I*, P* and the loads.",
        )
    configuration = mechanism.at() if at is None else at
    state = _single_state(mechanism, configuration)
    parts = () if dynamics is False else PARTS[:2] if dynamics == "inertia" else PARTS
    tables = Tables(mechanism._model, query.get("of", ()), query.get("order", 2), parts, query.get("wrt"))
    result = tables(state)  # raises the errors of an ordinary evaluation
    transfer = tables._transfer
    if not transfer.is_compiled:
        raise InputError(
            f"`mechanism` must have independent closure equations in its reference configuration, got "
            f"'{mechanism.name}' with dependent ones. Describe it in another configuration.",
            key="mechanism",
        )
    buffers = tables.empty((), 1, state.dtype)
    counts: Counter[str] = Counter()
    outputs: list[np.ndarray] = []
    for kernel, arguments in tables.calls(buffers, state[None]):
        counting = [_with_counting(a, counts) for a in arguments]
        if kernel.py_func(*counting):
            raise SingularError(
                f"`at` must not be close to a singularity of '{mechanism.name}', got a configuration where "
                "other closure equations are chosen. Give another configuration.",
                key="at",
            )
        written = [k for k, a in enumerate(arguments) if a is buffers._rows or a is buffers._model]
        outputs += [counting[k].astype(float).view(np.ndarray)[0] for k in written if arguments[k].size]
    if dynamics == "inverse_dynamics":
        names = transfer.labels
        ones = np.ones(len(names))
        arrays = (result.I, result.P, result.load, result.damping, ones, ones)
        I, P, load, damping, qd, qdd = (_with_counting(a, counts).view(np.ndarray) for a in arrays)
        outputs.append(Dynamics(names, I, P, load, damping=damping).inverse_dynamics(qd, qdd).astype(float))
    return OperationCount(**counts), outputs


def _single_state(mechanism: Mechanism, at: Any) -> np.ndarray:
    """Return the state of one real configuration of this mechanism."""
    problem = ""
    if not isinstance(at, Configuration):
        problem = short_repr(at)
    elif model_of(at).description is not mechanism:
        problem = f"one of another mechanism, '{at.name}'"
    elif at.batch or at.state.dtype.kind != "f":
        problem = f"the batch {at.batch} of {at.state.dtype}"
    if problem:
        rule = f"must be one real Configuration of '{mechanism.name}'"
        raise invalid("at", rule, problem, "Use its `at` method.", shown=problem)
    return at.state


def table_1(method: str, n_joints: int) -> tuple[int, int]:
    """Return the multiplications and additions of the inverse dynamics of an arm as printed (Table 1, p. 16).

    Parameters
    ----------
    method : {"Lagrange-Euler", "Newton-Euler", "generalized d'Alembert"}
        Formulation of the dynamics.
    n_joints : int
        Number of revolute joints, at least 1.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> table_1("Newton-Euler", 6), table_1("generalized d'Alembert", 6)
    ((792, 662), (2963, 2209))
    """
    choice("method", method, METHODS)
    n = integer("n_joints", n_joints, 1)
    products, sums = (
        sum(Fraction(c) * n**k for k, c in enumerate(reversed(coefficients)))
        for coefficients in TABLE_1[method]
    )
    return int(products), int(sums)


def generic_revolute_arm(n_joints: int) -> Mechanism:
    """Return an arm of general geometry with joints j1…, bodies l1… and the point "hand"."""
    n = integer("n_joints", n_joints, 1)
    k = np.arange(1, n + 1)
    return from_dh(
        f"{n} revolute joints",
        [DHRow(f"j{i}", f"l{i}", a=0.3 + 0.1 * i, alpha=0.4 * i, d=0.2, theta=0.5 * i) for i in k],
        convention="standard",
        bodies=[Body(f"l{i}", mass=1.0, com=(-0.1, 0.02, 0.03), inertia=(0.1, 0.12, 0.15)) for i in k],
        points=[Point("hand", f"l{n}", at=(0.0, 0.0, 0.0))],
        gravity=(0.0, 0.0, -9.8062),
    )


class OperationTable(Printable):
    """Printed operation counts of Table 1 next to those of kic's kernels, for arms of revolute joints.

    Table 1 counts one evaluation of the inverse dynamics. kic's inverse dynamics also computes I* and P*,
    which hold for all velocities.

    Parameters
    ----------
    n_joints : iterable of int
        Numbers of joints.

    Attributes
    ----------
    n_joints : tuple of int
        Numbers of joints, N of them.
    columns : tuple of str
        The three methods of Table 1, then kic's "inverse dynamics", "I* and P*" and "G and H of the hand".
    products, sums : (N, 6) int ndarray
        Multiplications and divisions; additions and subtractions.

    Examples
    --------
    >>> table = OperationTable([1, 6])
    >>> table.products[:, :3].tolist()
    [[513, 132, 213], [101348, 792, 2963]]
    """

    _one_line = ("columns",)

    def __init__(self, n_joints: Iterable[int] = range(1, 8)) -> None:
        numbers: tuple[int, ...] = ()
        if not isinstance(n_joints, str):
            with suppress(TypeError):  # a single rotation has an iterator that raises an error
                numbers = tuple(n_joints)
        if not numbers:
            raise invalid("n_joints", "must be a list of positive integers", n_joints, "Give at least one.")
        self.n_joints = tuple(integer("n_joints", n, 1) for n in numbers)
        queries: dict[str, dict[str, Any]] = {
            "inverse dynamics": {"dynamics": "inverse_dynamics"},
            "I* and P*": {"dynamics": "inertia"},
            "G and H of the hand": {"of": "hand"},
        }
        self.columns = (*METHODS, *queries)
        rows = []
        for n in self.n_joints:
            arm = generic_revolute_arm(n)
            counts = [count_operations(arm, **query) for query in queries.values()]
            rows.append([table_1(method, n) for method in METHODS] + [(c.products, c.sums) for c in counts])
        self.products, self.sums = np.moveaxis(np.array(rows, dtype=int), -1, 0)

    def summary(self) -> Summary:
        """Return the tables of products and sums."""
        sheet = Summary(
            "operations per configuration of an arm of n revolute joints: Table 1 and kic's kernels"
        )
        columns = ["L-E", "N-E", "G-D", *(f"kic {name}" for name in self.columns[3:])]
        rows = [str(n) for n in self.n_joints]
        sheet.matrix("multiplications and divisions", rows, columns, self.products, corner="n")
        sheet.matrix("additions and subtractions", rows, columns, self.sums, corner="n")
        sheet.say(
            "\nL-E, N-E and G-D are Lagrange-Euler, Newton-Euler and generalized d'Alembert as printed. "
            "kic's counts include products with structural zeros and ones. They exclude negations, the n "
            "cosines and the n sines."
        )
        return sheet
