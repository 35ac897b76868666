"""What an answer costs: kic's own kernels, run on scalars that count.

A kernel's source is run as plain Python with every number it reads, keeps or makes replaced by one that
counts what is done to it. Nothing is estimated, and nothing that the kernel does with floats is left out.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, fields
from typing import Any, Literal, SupportsFloat

import numpy as np

from kic.configuration import Configuration
from kic.dynamics import Dynamics
from kic.errors import InputError, SingularError, shown
from kic.mechanism import Mechanism
from kic.tables import Sheet


@dataclass(frozen=True)
class OperationCount:
    """How often each operation was done on numbers; index arithmetic and comparisons are not counted.

    Attributes
    ----------
    additions, subtractions, multiplications, divisions, negations : int
        Arithmetic.
    cosines, sines, roots : int
        Functions.

    Examples
    --------
    >>> count = OperationCount(additions=3, subtractions=1, multiplications=5)
    >>> count.products, count.sums, count + count == OperationCount(6, 2, 10)
    (5, 4, True)
    """

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
        """Multiplications and divisions: the first row of Table 1."""
        return self.multiplications + self.divisions

    @property
    def sums(self) -> int:
        """Additions and subtractions: its second row."""
        return self.additions + self.subtractions

    def __add__(self, other: OperationCount) -> OperationCount:
        if not isinstance(other, OperationCount):
            return NotImplemented
        return OperationCount(*map(operator.add, astuple(self), astuple(other)))

    def sheet(self) -> Sheet:
        """Labelled table, to print or to show."""
        sheet = Sheet(f"{self.products} products and {self.sums} sums")
        names = [field.name for field in fields(self)]
        sheet.matrix("operations", names, [""], np.array(astuple(self))[:, None])
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


def _two(kind: str, operation: Callable[[float, float], float], swapped: bool = False) -> Any:
    """An operation on two numbers, counted; `swapped` where the counting one stands right."""

    def counted(self: Counted, other: SupportsFloat) -> Counted:
        a, b = self.value, float(other)
        self.ledger[kind] += 1
        return Counted(operation(b, a) if swapped else operation(a, b), self.ledger)

    return counted


def _one(kind: str, function: Callable[[float], float]) -> Any:
    """An operation on one number, counted."""

    def counted(self: Counted) -> Counted:
        self.ledger[kind] += 1
        return Counted(function(self.value), self.ledger)

    return counted


def _look(relation: Callable[[float, float], bool]) -> Any:
    """A comparison, which is not counted."""

    def looked(self: Counted, other: SupportsFloat) -> bool:
        return relation(self.value, float(other))

    return looked


class Counted:
    """A real number that enters in a ledger what is done to it.

    Parameters
    ----------
    value : float
        The number.
    ledger : Counter
        Where operations are counted, by the names of `OperationCount`; shared with all that is made from it.

    Examples
    --------
    >>> from collections import Counter
    >>> ledger = Counter()
    >>> x = Counted(3.0, ledger)
    >>> float(x * x - 1 / x), ledger["multiplications"], ledger["subtractions"], ledger["divisions"]
    (8.666666666666666, 1, 1, 1)
    """

    __slots__ = ("ledger", "value")

    def __init__(self, value: SupportsFloat, ledger: Counter[str]) -> None:
        self.value = float(value)
        self.ledger = ledger

    __add__, __radd__ = _two("additions", operator.add), _two("additions", operator.add, True)
    __sub__, __rsub__ = _two("subtractions", operator.sub), _two("subtractions", operator.sub, True)
    __mul__, __rmul__ = _two("multiplications", operator.mul), _two("multiplications", operator.mul, True)
    __truediv__, __rtruediv__ = _two("divisions", operator.truediv), _two("divisions", operator.truediv, True)
    __neg__ = _one("negations", operator.neg)
    cos, sin, sqrt = _one("cosines", math.cos), _one("sines", math.sin), _one("roots", math.sqrt)
    __eq__, __ne__ = _look(operator.eq), _look(operator.ne)
    __lt__, __le__ = _look(operator.lt), _look(operator.le)
    __gt__, __ge__ = _look(operator.gt), _look(operator.ge)
    __hash__ = None  # type: ignore[assignment]

    def __abs__(self) -> float:
        """A magnitude, which kernels only compare."""
        return abs(self.value)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"Counted({self.value!r})"


class _Memory(np.ndarray):
    """Memory of a kernel: what is written into it counts from then on, also the zeros of a cleared table."""

    ledger: Counter[str]

    def __array_finalize__(self, other: Any) -> None:
        if isinstance(other, _Memory):  # a view counts in the same ledger
            self.ledger = other.ledger

    def __setitem__(self, place: Any, value: Any) -> None:
        if not isinstance(value, Counted | np.ndarray):
            value = Counted(value, self.ledger)
        super().__setitem__(place, value)


def _counting(a: Any, ledger: Counter[str]) -> Any:
    """A copy of an array of floats that counts; anything else as it is."""
    if not isinstance(a, np.ndarray) or a.dtype.kind != "f":
        return a
    memory = np.empty(a.shape, dtype=object).view(_Memory)
    memory.ledger = ledger
    for place, value in np.ndenumerate(a):
        memory[place] = value
    return memory


def count_operations(
    mechanism: Mechanism,
    of: str | Iterable[str] = (),
    order: int = 2,
    dynamics: bool | Literal["inertia", "effort"] = False,
    wrt: str | Iterable[str] | None = None,
    at: Configuration | None = None,
) -> OperationCount:
    """Operations that one posture of a prepared evaluator takes, found by running it on counting scalars.

    Counted is every + − × ÷ on floats that the source does, be one of the numbers 0 or 1 by the structure of
    the arm or not: kernels know no structure, so that the counts of an open chain in its own coordinates
    depend on the kind and order of its joints, its bodies and loads alone. In other coordinates, and with
    loops, the elimination leaves out zeros, and the counts are those of the posture. A compiler may fuse or
    spare some of these operations.

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism.
    of : str or list of str
        Dependents, as in `Mechanism.prepare`.
    order : {1, 2, 3}
        Highest order.
    dynamics : bool, "inertia" or "effort"
        Also I*, P*, the load and the damping; "inertia" for I* and P* alone; "effort" for the products of
        `Dynamics.effort` beside them.
    wrt : str or list of str, optional
        The coordinates, as in `Configuration.coefficients`.
    at : Configuration, optional
        The posture, one of real numbers; by default that of the drawing.

    Returns
    -------
    OperationCount

    Raises
    ------
    UnknownNameError, InputError, InertiaError, SingularError
        As `Mechanism.prepare` and its evaluator would; also for a batch, for a posture of another mechanism,
        or for one so near to a singular posture that rows are chosen anew there.

    Examples
    --------
    >>> import kic
    >>> from kic.classics import count_operations
    >>> count = count_operations(kic.load("horn-two-link"), of="tip", order=1)
    >>> count.products, count.sums, count.cosines, count.sines
    (87, 68, 2, 2)
    """
    ledger: Counter[str] = Counter()
    run(ledger, mechanism, of, order, dynamics, wrt, at)
    return OperationCount(**ledger)


def run(
    ledger: Counter[str],
    mechanism: Mechanism,
    of: str | Iterable[str] = (),
    order: int = 2,
    dynamics: bool | Literal["inertia", "effort"] = False,
    wrt: str | Iterable[str] | None = None,
    at: Configuration | None = None,
) -> list[np.ndarray]:
    """The run itself, for `count_operations`.

    Returns
    -------
    list of ndarray
        What the kernels wrote, in floats: tables of rows and of the dynamics, as far as asked; the effort.
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"Expected a Mechanism, got {shown(mechanism)}. `kic.load` makes one.")
    if not isinstance(dynamics, bool | str) or dynamics not in (True, False, "inertia", "effort"):
        raise InputError(
            f"Expected `dynamics` to be True, False, 'inertia' or 'effort', got {shown(dynamics)}."
        )
    posture = mechanism.at() if at is None else at
    state = _state(mechanism, posture)
    evaluator = mechanism.prepare(of, order, True if dynamics == "effort" else dynamics, wrt)
    found = evaluator(state)  # refuses what can not be answered
    made = evaluator._room((), 1, state.dtype)
    if evaluator._transfer is not None and evaluator._transfer.choice is None:
        raise InputError(
            f"Loops of '{mechanism.name}' depend on one another as it is drawn, so that rows are chosen for "
            "every posture anew and there is no one count. Draw it elsewhere."
        )
    tables: list[np.ndarray] = []
    for entry, arguments in evaluator._calls(made, state[None]):
        counting = [_counting(a, ledger) for a in arguments]
        if entry.py_func(*counting):
            raise SingularError(
                f"'{mechanism.name}' is near a singular posture here, where rows are chosen anew and there "
                "is no one count. Give another posture with `at`."
            )
        written = [k for k, a in enumerate(arguments) if a is made._rows or a is made._model]
        tables += [counting[k].astype(float).view(np.ndarray)[0] for k in written if arguments[k].size]
    if dynamics == "effort":
        names = posture.coordinates if evaluator._transfer is None else evaluator._transfer.labels
        parts = [found.I, found.P, found.load, found.damping, np.ones(len(names)), np.ones(len(names))]
        I, P, load, damping, qd, qdd = (_counting(a, ledger).view(np.ndarray) for a in parts)
        tables.append(Dynamics(names, I, P, load, damping).effort(qd, qdd).astype(float))
    return tables


def _state(mechanism: Mechanism, at: Configuration) -> np.ndarray:
    """State of one real posture of this mechanism."""
    if not isinstance(at, Configuration):
        raise InputError(f"Expected `at` to be a Configuration, got {shown(at)}. `Mechanism.at` makes one.")
    if at._model.drawing is not mechanism:
        raise InputError(
            f"Expected `at` to be a posture of this '{mechanism.name}', got one of another mechanism "
            f"('{at.name}'). Make it with this one's `at`."
        )
    if at.batch or at.state.dtype.kind != "f":
        raise InputError(
            f"Expected `at` to be one posture of real numbers, got the batch {at.batch} of {at.state.dtype}: "
            "operations are counted for one."
        )
    return at.state
