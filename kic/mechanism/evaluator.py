"""Evaluators for hot loops: one question at any states, with plain arrays and all names resolved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import copy
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from kic.errors import (
    ConfigurationError,
    InputError,
    UnknownNameError,
    batch_indices,
    invalid,
    short_repr,
    unknown,
)
from kic.kernels import layout as lay
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.scaling import Scaling
from kic.mechanism.configuration import Configuration
from kic.mechanism.position import solve_position
from kic.mechanism.regressor import RegressorQuestion, regressor_question
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import (
    ARGUMENT_MAX,
    REAL,
    as_array,
    broadcast_batches,
    is_finite,
    numbers,
    one_batch_axis,
)
from kic.numerics.calls import wrong_arguments
from kic.numerics.display import NAMES_MAX
from kic.numerics.registration import with_methods
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.orientations import Positions
from kic.transfer.program import (
    BOTH,
    LAYOUT,
    MotionTerms,
    Numbered,
    OutputMotion,
    Program,
    Table,
    Transfer,
    flat_members,
    output_motion,
    output_motion_function,
)

if TYPE_CHECKING:
    from kic.export import specialize as _specialize

LETTERS = {"value": 0, "G": 1, "H": 2, "D": 3}
PARTS = ("I", "P", "load", "damping")
# arguments after the state of questions about motions
MOTIONS = {
    "inverse_dynamics": ("qd", "qdd"),
    "forward_dynamics": ("qd", "effort"),
    "regressor": ("qd", "qdd"),
    "motion": ("qd", "qdd", "qddd"),
}
Result = TypeVar("Result")
_ndarray, _empty = np.ndarray, np.empty
# largest size of a batch of tables for which arguments of kernels are kept
_SMALL_MAX = 16


class NoResultError(UnknownNameError, AttributeError):
    """Access to an array that results do not have."""


class _CallSignature:
    """Signature of the calls of an evaluator, with the names of its arguments."""

    def __get__(self, evaluator: Evaluator[Any] | None, cls: type) -> Signature | None:
        if evaluator is None:
            return None
        state = Parameter("state", Parameter.POSITIONAL_OR_KEYWORD, annotation="Any")
        motion = [state.replace(name=name, default=None) for name in evaluator.motion]
        out = Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation="Any")
        return Signature([state, *motion, out, out.replace(name="check", default=False, annotation="bool")])


@with_methods
class Evaluator(ABC, Generic[Result]):
    """Evaluator of a question at any states, for hot loops; made by `Mechanism.prepare`.

    Call it with a state (..., S), see `Configuration.state`, and the motion that the question needs, such as
    ``f(state, qd, qdd)``. It has no mutable state and is thread-safe.

    Attributes
    ----------
    question : str
        Name of the question. It is also the ``__name__``, which Dask and others use to name tasks.
    motion : tuple of str
        Names of the arguments after the state.
    names : tuple of str
        Names of the results, if there are several.
    coordinates : tuple of str
        Names of the coordinates.

    Examples
    --------
    >>> m = kic.load("horn-two-link")
    >>> f = m.prepare.coefficients_and_dynamics("tip")
    >>> r = f(m.at([0.0, 0.0]).state)
    >>> r.tip.G.shape, r.tip.H.shape, r.I.shape, r.P.shape, r.load.shape
    ((3, 2), (3, 2, 2), (2, 2), (2, 2, 2), (2,))
    """

    _model: CompiledModel
    _transfer: Any
    question: str
    motion: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    __signature__ = _CallSignature()

    @property
    def __name__(self) -> str:
        """Name of the question."""
        return self.question

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Tuple of the names of the coordinates."""
        return self._transfer.labels

    @property
    def recovered(self) -> int | None:
        """Number of states so far that a specialized evaluator left to the kernels; None for others."""
        holder = getattr(self, "_regressor", None)
        found = getattr(self, "_program", None) if holder is None else holder.program
        return None if found is None else found.recovered

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        specialize = _specialize.specialize

    @abstractmethod
    def __call__(
        self, state: Any, *motion: Any, out: Any = None, check: bool = False, **named: Any
    ) -> Result:
        """Evaluate the question at a state.

        Parameters
        ----------
        state : (..., S) ndarray
            One closed state or a batch; see `Configuration.state`.
        *motion : (..., n) array_like
            The arguments named in `motion`. Batches of all arguments broadcast.
        out : optional
            Earlier results of this evaluator for the same batch, which are overwritten. If the result is an
            array, an array of float64 that receives it; it may be one of the arguments.
        check : bool
            True to check also that the coordinates can drive the mechanism at the states, by their condition,
            and that no joint is flipped.
        **named : (..., n) array_like
            Arguments of `motion` by name.

        Returns
        -------
        Results, OperationalSpace, RedundancyResolution, PoseMotion or ndarray
            Results of the question.

        Raises
        ------
        InputError
            If an array has a wrong shape, or `out` another batch. If results at a finite state are not
            finite, because numbers overflow, or a spring or a distance has length zero. If states do not
            close the loops; `failed` are their indices, `joint` and `residual` are those of the first.
        SingularError
            If the coordinates cannot drive the mechanism, or Euler angles are near gimbal lock.

        Notes
        -----
        A state closes the loops if their residuals are at most 1e-6 of the length of each loop, or 1e-6 rad,
        or `closure_tolerance` if that is larger. States in single precision are accepted if their angles are
        within a turn. Quaternions are normalized first. Results at states that are not finite are NaN. After
        an error, the values in `out` are undefined.
        """

    def check(self, state: np.ndarray) -> np.ndarray:
        """Check states (..., S) and return their condition (...) in these coordinates.

        Parameters
        ----------
        state : (..., S) ndarray
            One state or a batch.

        Returns
        -------
        (...) ndarray
            Condition of the system that is solved; 1 for an open chain in its own coordinates.

        Raises
        ------
        InputError
            If a state does not close the loops, with the joint and the residual, or has a flipped joint.
        SingularError
            If the coordinates cannot drive the mechanism.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> f = m.prepare.coefficients("tip")
        >>> bool(f.check(m.at().state) < 100)
        True
        """
        state = checked_state(self._model, state)
        if state.dtype == object:
            raise invalid("state", "must hold real numbers", state.dtype)
        states, batch = one_batch_axis(np.require(state.real, requirements=LAYOUT)), state.shape[:-1]
        with batch_indices(range(len(states)), batch):
            return self._transfer.condition(states, self._model.real.closure).reshape(batch)

    def _by_place(self, state: Any, motion: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments after the state by position; those that are not given are None."""
        places, count = self.motion, len(motion)
        if not motion and (*named,) == places:  # the usual case is fast
            return (*named.values(),)
        given = [*motion, *[None] * (len(places) - count)]
        for name, value in named.items():
            k = places.index(name) if name in places else -1
            if k < count:
                count = len(places) + 1
                break
            given[k] = value
        if count > len(places):
            raise TypeError(wrong_arguments(self, (state, *motion), named))
        return tuple(given)

    def __repr__(self) -> str:
        some = (*self.names[:NAMES_MAX], *("…",) * (len(self.names) > NAMES_MAX))
        of = f" of {', '.join(some)}" if self.names else ""
        arguments = ", ".join(("state", *self.motion))
        name = self._model.description.name
        kind = "" if self.recovered is None else "specialized "
        return f"{kind}evaluator of {self.question}{of} of '{name}': f({arguments})"


def program_of(evaluator: Tables | Motions) -> Program:
    """Return the program that an evaluator runs; an evaluator of the motion of rows has none."""
    return evaluator._program


def with_program(evaluator: Evaluator[Result], change: Callable[[Program], Program]) -> Evaluator[Result]:
    """Return a copy of an evaluator that runs a changed program."""
    made: Any = copy(evaluator)  # without scratch
    holder = getattr(made, "_regressor", None)
    if holder is not None:
        made._regressor = holder = copy(holder)
    found = getattr(made, "_program", None) if holder is None else holder.program
    if found is None:
        raise InputError(
            f"`{evaluator.question}` must run one program to be specialized. Specialize another question.",
            key="question",
        )
    setattr(*((made, "_program") if holder is None else (holder, "program")), change(found))
    return made


def checked_state(model: CompiledModel, state: Any) -> np.ndarray:
    """Return a state (..., S) in the memory layout of the kernels, after checking its shape."""
    a, size = np.require(numbers("state", state), requirements=LAYOUT), model.tree.state_size
    if a.ndim == 0 or a.shape[-1] != size:
        raise invalid("state", f"must have shape (..., {size}), as `Configuration.state`", a.shape)
    if model.has_complex_step and a.dtype is REAL:
        if not model.tree.open:
            raise InputError(
                f"'{model.description.name}' carries the complex step of a sensitivity, with which a real "
                "state does not close its loops. Use states from its own at().",
                key="state",
            )
        a = a.astype(complex)
    return a


def known_members(*arrays: np.ndarray) -> np.ndarray | None:
    """Return the mask (B,) of members that are finite in all arrays (B, n); None if all members are."""
    if all(map(is_finite, arrays)):
        return None
    ok = np.isfinite(arrays[0]).all(axis=1)
    for a in arrays[1:]:
        ok &= np.isfinite(a).all(axis=1)
    return None if ok.all() else ok


class Rates:
    """Arrays of one output: `value` (..., P), `G` (..., P, M), `H` (..., P, M, M), `D` (..., P, M, M, M).

    Arrays beyond the prepared order are None. Views are set at once; copies are made on first access, and
    ``evaluator(state, out=…)`` updates them in place.
    """

    _name: str
    value: Any
    G: Any
    H: Any
    D: Any
    # `copy` reads attributes of an uninitialized object; reading `__dict__` here would slow down later access
    _tables: Any = None
    _rows: np.ndarray
    _batch: tuple[int, ...]
    _copies: list[tuple[str, str]]

    def __getattr__(self, letter: str) -> Any:
        # called once for each copy, which then becomes an attribute
        if letter not in LETTERS or self._tables is None:
            message = f"Outputs of an evaluator have no '{letter}'. Available: {', '.join(LETTERS)}."
            raise AttributeError(message, name=letter, obj=self)
        made = self._tables._array(self._rows, self._batch, self._name, letter)
        setattr(self, letter, made)
        if made is not None:
            self._copies.append((self._name, letter))
        return made

    def __dir__(self) -> Iterable[str]:
        return LETTERS

    def __repr__(self) -> str:
        shapes = ", ".join(f"{k} {getattr(self, k).shape}" for k in LETTERS if getattr(self, k) is not None)
        return f"{self._name}: {shapes}"


class Results:
    """Arrays of one evaluation, by name: ``r.tip.G``, ``r["hand.x"].H``, ``r.I``, ``r.P``, ``r.load``.

    Made by `Tables.results`. ``evaluator(state, out=r)`` updates all accessed arrays in place.
    """

    I: Any
    P: Any
    load: Any
    damping: Any
    _tables: Any = None  # as for `Rates`
    _batch: tuple[int, ...]
    _rows: np.ndarray
    _model: np.ndarray
    # accessed arrays that are copies of the tables
    _copies: Any = ()
    # evaluator, scratch state and kernel calls of in-place evaluation of one real state
    _reuse: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: a for name, a in self.__dict__.items() if name != "_reuse"}

    def __getattr__(self, name: str) -> Any:
        # called once for each name that is not set, which then becomes an attribute
        tables = self._tables
        if tables is None or (name[:1] == "_" and name not in tables.names):
            raise AttributeError(name)
        made = tables.part(self, name)
        setattr(self, name, made)
        return made

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __dir__(self) -> Iterable[str]:
        return (*super().__dir__(), *filter(str.isidentifier, self._tables.names))

    def __repr__(self) -> str:
        return f"results for {', '.join(self._tables.names)} of the batch {self._batch}"


def tables_of(results: Results) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return the tables of which results are views: rows (B, n) and dynamics (B, k), and the batch."""
    return results._rows, results._model, results._batch


class Tables(Evaluator[Results]):
    """Evaluator of coefficients of outputs, of dynamics, or of both in one call of the kernels.

    With a task, the results are those that the task computes from the tables.

    Parameters
    ----------
    model : CompiledModel
        The mechanism.
    of, order
        Outputs, and their order.
    parts : tuple of str
        Requested parts of the dynamics: none, the first two or all of `PARTS`.
    wrt
        Coordinates.
    check_results : bool
        False to return results that are not finite instead of raising an error.
    program : Program, optional
        A program to run, for results without names.
    task : callable, optional
        Task with a question; ``task(tables, out, *motion)`` computes its results from those of the tables.
    """

    def __init__(
        self,
        model: CompiledModel,
        of: str | Iterable[str],
        order: int = 2,
        parts: tuple[str, ...] = (),
        wrt: str | Iterable[str] | Transfer | None = None,
        check_results: bool = True,
        program: Program | None = None,
        task: Any = None,
    ) -> None:
        outputs = names_of(of, least=0 if parts or program else 1)
        clash = sorted(set(outputs) & set(parts))
        if clash:
            raise InputError(
                f"'{clash[0]}' names both a part of '{model.description.name}' and a result of the dynamics. "
                "Prepare them in separate evaluators.",
                name=clash[0],
            )
        want = (lay.WANT_INERTIA if parts else 0) | (lay.WANT_LOADS if len(parts) > 2 else 0)
        self._model, self._outputs, self.names = model, outputs, (*outputs, *parts)
        self.question = "_and_".join(["coefficients"] * bool(outputs) + ["dynamics"] * bool(parts))
        self._task = task
        if task is not None:
            self.question, self.motion, self.names = task.question, task.motion, task.names
        self._program = program = program or model.program(wrt, outputs, order, want)
        rows, dynamics = program.outputs, program.dynamics
        self._transfer = transfer = program.transfer
        self._size, self._check_results = model.tree.state_size, check_results
        # results are views of the tables, unless rows or columns were selected or reordered
        self._in_order = transfer.permutation is None
        self._in_place = self._values_in_place = False
        self._all_views, self._starts = self._in_order, list[tuple[str, int]]()
        self._parts = dict(zip(parts, dynamics.places, strict=False))
        self._order = 0 if rows is None else len(rows.places) - 1
        if rows is not None and outputs:
            of_rows = rows.rows
            self._in_place = self._in_order and of_rows.select is None
            self._values_in_place = (
                self._in_place and of_rows.holonomic and not of_rows.angles and not of_rows.offsets
            )
            self._all_views = self._values_in_place
            orders = range(0 if self._values_in_place else 1, len(rows.places))
            if self._in_place:
                self._views = rows.of_rows([of_rows.spans[name] for name in outputs], orders)
            # index of the view of G of each name; the view of values precedes it
            self._starts = [(name, k * len(orders) + 1 - orders[0]) for k, name in enumerate(outputs)]
        # shapes of the tables of one state; None for empty ones, which share one array
        widths = (0 if rows is None else rows.width), dynamics.width
        self._shapes = [(1, width) if width else None for width in widths]
        self._none = _empty((1, 0))
        # only states of this shape, and small batches of them, take the hot path
        hot = not model.has_complex_step and transfer.is_compiled and not program.cut_joints
        hot = hot and (rows is None or rows.rows is None or not (rows.rows.euler or rows.rows.directed))
        self._one = (self._size,) if hot else None
        self._small_max = min([_SMALL_MAX, *(query.small_max for query in program.queries)]) if hot else 0
        # states and arguments of completed calls by size of the batch; taking and returning is atomic
        self._spare = defaultdict[int, list[tuple[np.ndarray, list[Any]]]](list)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spare": defaultdict(list)}

    @property
    def scaling(self) -> Scaling:
        """Scaling: typical sizes of rows and coordinates, and the error of rows at regular configurations."""
        return self._program.scaling

    def __call__(self, state: Any, *motion: Any, out: Any = None, check: bool = False, **named: Any) -> Any:
        """Return the results at a state, stored in earlier results `out` if given."""
        if check is not False and flag("check", check):
            self.check(state)
        if named or len(motion) > len(self.motion):
            motion = self._by_place(state, motion, named)
        task, held = self._task, out
        if task is not None and out is not None:
            held = getattr(out, "_results", None)
            if held is None or out._task is not task:
                message = "`out` must be earlier results of this evaluator, for the same batch."
                raise InputError(message, key="out")
        # one real state, or a small batch, is the hot path
        shape: Any = getattr(state, "shape", None)
        plain = type(state) is _ndarray and state.dtype is REAL
        if not plain or (shape != self._one and not self._is_small(shape)):
            held = self._general(state, held)
        elif held is None:
            held = self._fresh(state)
        else:
            if type(held) is not Results:
                self._check_out(held, shape[:-1], REAL)
            tables, given, states, calls = held._reuse or self._prepare(held, shape)
            if tables is not self or given != shape:
                self._check_out(held, shape[:-1], REAL)
            states[:] = state
            for entry, arguments in calls:
                if entry(*arguments):
                    self._fill(states, held)
            if held._copies:
                self._refresh(held)
        return held if task is None else task(held, out, *motion)

    def _is_small(self, shape: tuple[int, ...]) -> bool:
        """Return True for the shape of a small batch (B, S) of states."""
        return len(shape) == 2 and 0 < shape[0] <= self._small_max and shape[1:] == self._one

    def _prepare(self, out: Results, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Prepare the in-place evaluation of real states of a shape in earlier results."""
        if out._tables is not self or out._batch != shape[:-1] or out._rows.dtype != REAL:
            self._check_out(out, shape[:-1], REAL)
        states = _empty((*shape[:-1], self._size) if len(shape) > 1 else (1, self._size))
        out._reuse = self, shape, states, self.calls(out, states)
        return out._reuse

    def _general(self, state: Any, out: Any) -> Results:
        """Return the results at any states."""
        if type(state) is not _ndarray or state.dtype is not REAL or not state.flags.carray or not self._one:
            state = checked_state(self._model, state)
        shape = state.shape
        if not shape or shape[-1] != self._size:
            checked_state(self._model, state)
        batch = shape[:-1]
        states = one_batch_axis(state)
        made: Results = self.empty(batch, len(states), state.dtype) if out is None else out
        if (
            getattr(made, "_tables", None) is not self
            or made._batch != batch
            or made._rows.dtype != state.dtype
        ):
            self._check_out(made, batch, state.dtype)
        self._fill(states, made)
        if out is not None and made._copies:
            self._refresh(made)
        return made

    def empty(self, batch: tuple[int, ...], count: int, dtype: np.dtype) -> Results:
        """Return results with uninitialized tables for a batch."""
        rows, model = (_empty((count, shape[1] if shape else 0), dtype) for shape in self._shapes)
        return self.results(batch, rows, model, plain=dtype is REAL and count > 0)

    def results(
        self, batch: tuple[int, ...], rows: np.ndarray, model: np.ndarray, plain: bool = False
    ) -> Results:
        """Return results for a batch with given tables; `plain` tables are newly allocated and real."""
        made = Results()
        # set through the dictionary: names differ among evaluators, so attributes could not share keys
        held = made.__dict__
        held["_tables"], held["_batch"], held["_rows"], held["_model"] = self, batch, rows, model
        if not self._all_views or rows.dtype.char == "O":
            held["_copies"] = []
        if self._in_place and (plain or rows.dtype.char != "O"):
            # making all views at once is several times cheaper than one by one
            seen = self._views.views(rows, batch) if plain else self._views.split(rows, batch)
            values, order = self._values_in_place, self._order
            for name, k in self._starts:
                held[name] = rates = Rates()
                arrays = rates.__dict__
                arrays["_name"], arrays["G"] = name, seen[k]
                if values:
                    arrays["value"] = seen[k - 1]
                else:
                    self._connect(arrays, made)
                arrays["H"] = seen[k + 1] if order > 1 else None
                arrays["D"] = seen[k + 2] if order > 2 else None
        if self._parts and self._in_order:
            parts = self._program.dynamics
            seen = parts.views(model, batch) if plain else parts.split(model, batch)
            held["I"], held["P"] = seen[0], seen[1]
            if len(seen) > 2:
                held["load"], held["damping"] = seen[2], seen[3]
        return made

    def _connect(self, held: dict[str, Any], results: Results) -> None:
        """Set the attributes that an output needs to make its arrays on access."""
        # no reference to the results: a cycle would keep their memory until garbage collection
        held["_tables"], held["_copies"] = self, results._copies
        held["_rows"], held["_batch"] = results._rows, results._batch

    def part(self, results: Results, name: str) -> Any:
        """Return the arrays of a name in results that are copies or symbolic, made on first access.

        Their name is added to `results._copies`, so that the next call with these results as `out` updates
        them.
        """
        if name in self._outputs:
            rates = Rates()
            rates._name = name
            self._connect(rates.__dict__, results)
            return rates
        if name in self._parts:
            results._copies.append((name, ""))
            return self._part(results, name)
        error = unknown("result", name, "these results", self.names, quoted=False)
        raise NoResultError(error.message, **error.numbers)

    def _part(self, results: Results, name: str) -> np.ndarray:
        """Return a copy of a part of the dynamics, in the order of the coordinates."""
        k = list(self._parts).index(name)
        found = self._program.dynamics.split(results._model, results._batch)[k]
        return self._program.transfer.in_coordinates([found], (found.ndim - len(results._batch),))[0]

    def _assembled(self, rows: np.ndarray, batch: tuple[int, ...]) -> Coefficients:
        """Return the coefficients of all outputs."""
        layout = self._program.outputs
        assert layout is not None  # for the type checker: there are outputs
        return self._program.coefficients_of(layout.split(rows, batch), self._program.scaling)

    def _array(
        self,
        rows: np.ndarray,
        batch: tuple[int, ...],
        name: str,
        letter: str,
        known: Coefficients | None = None,
    ) -> np.ndarray | None:
        """Return a copy of the value or coefficients of a name; None beyond the prepared order."""
        layout, k = self._program.outputs, LETTERS[letter]
        if k > self._order:
            return None
        assert layout is not None  # for the type checker: there is a name
        span = layout.rows.spans[name]
        c = self._assembled(rows, batch) if known is None else known
        tensor = (c.values, c.G, c.H, c.D)[k]
        return None if tensor is None else tensor.take(np.arange(span.start, span.stop), axis=-1 - k)

    def jacobian(self, results: Results) -> np.ndarray:
        """Return G (..., P, M) of all outputs at once, which is faster than by name."""
        layout, transfer = self._program.outputs, self._program.transfer
        assert layout is not None  # for the type checker: there are outputs
        G = layout.split(results._rows, results._batch)[1]
        if layout.rows.select is not None:
            G = G.take(layout.rows.select, axis=-2)
        return G if transfer.permutation is None else transfer.in_coordinates([G], (1,))[0]

    def _refresh(self, out: Results) -> None:
        """Update the accessed arrays that are copies of the tables."""
        known = self._assembled(out._rows, out._batch) if any(letter for _, letter in out._copies) else None
        for name, letter in out._copies.copy():
            held = getattr(out, name)
            if letter:
                array = self._array(out._rows, out._batch, name, letter, known)
                np.copyto(getattr(held, letter), array)  # type: ignore[arg-type]
            else:
                np.copyto(held, self._part(out, name))

    def calls(self, out: Results, states: np.ndarray) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return kernel entries and arguments that fill results for real states.

        An entry returns a nonzero number if `_fill` must evaluate the states instead.
        """
        return self._program.calls(self._table(out), states)

    def _table(self, out: Results) -> Table:
        """Return a `Table` with the arrays of results."""
        rows, model, program = out._rows, out._model, self._program
        quality = _empty((len(rows) if program.transfer.system is not None else 0, lay.QUALITY_WIDTH))
        X = _empty((0, 0), rows.dtype)
        found = Table(rows, model, X, quality, batch=(len(rows),))
        found.outputs, found.dynamics = program.outputs, program.dynamics
        return found

    def _fresh(self, state: np.ndarray) -> Results:
        """Return results for one real state or a small batch."""
        of_rows, of_model = self._shapes
        batch = state.shape[:-1]
        if batch:
            (count,) = batch
            rows = _empty((count, of_rows[1] if of_rows else 0))
            model = _empty((count, of_model[1] if of_model else 0))
        else:
            count = 1
            rows = _empty(of_rows) if of_rows else self._none
            model = _empty(of_model) if of_model else self._none
        out = self.results(batch, rows, model, plain=True)
        spare = self._spare[count]
        try:
            states, calls = mine = spare.pop()
        except IndexError:
            states = _empty((count, self._size))
            # with the indices of the two result arrays among the arguments
            calls = [
                (
                    entry,
                    list(arguments),
                    next((k for k, a in enumerate(arguments) if a is rows), None),
                    next((k for k, a in enumerate(arguments) if a is model), None),
                )
                for entry, arguments in self.calls(out, states)
            ]
            mine = states, calls
        states[:] = state
        for entry, arguments, k, j in calls:
            if k is not None:
                arguments[k] = rows
            if j is not None:
                arguments[j] = model
            if entry(*arguments):
                self._fill(states, out)
            # keep no reference to results, which belong to the caller
            if k is not None:
                arguments[k] = None
            if j is not None:
                arguments[j] = None
        spare.append(mine)
        return out

    def _fill(self, states: np.ndarray, out: Results) -> None:
        """Fill results at states (B, S) with all checks; members with non-finite states are NaN."""
        ok, batch, table = known_members(states), out._batch, self._table(out)
        ok = None if ok is None else ok.reshape(batch)
        closed = Numbered.whole(states)
        self._program.run(states, batch=batch, ok=ok, out=table, checked=self._check_results, closed=closed)

    def _check_out(self, out: Any, batch: tuple[int, ...], dtype: np.dtype) -> None:
        got = short_repr(out)
        if isinstance(out, Results):
            got = f"results for {out._batch} and {out._rows.dtype}"
            got += "" if out._tables is self else " of another evaluator"
        raise invalid(
            "out", f"must be results of this evaluator for batch {batch} and {dtype}", out, shown=got
        )


def stored(made: Any, out: Any) -> Any:
    """Return an array or a tuple of arrays, copied into earlier results `out` if given."""
    if out is None:
        return made
    if isinstance(made, _ndarray):
        _copy(made, out, "an array")
    else:
        olds = out if isinstance(out, type(made)) else [out] * len(made)
        for new, old in zip(made, olds, strict=True):
            _copy(new, old, "earlier results, arrays")
    return out


def _copy(new: np.ndarray, old: Any, kind: str) -> None:
    """Copy an array into an array of earlier results."""
    if not isinstance(old, _ndarray) or old.shape != new.shape or old.dtype != new.dtype:
        raise invalid("out", f"must be {kind} of {new.dtype} and shape {new.shape}", old)
    if not old.flags.writeable:
        raise InputError("`out` must be writable, got a read-only array.", key="out")
    old[...] = new


class Motions(Evaluator[Any]):
    """Evaluator along motions: efforts and their regressor, accelerations due to efforts, motion of outputs.

    Parameters
    ----------
    model : CompiledModel
        The mechanism.
    question : {"inverse_dynamics", "forward_dynamics", "regressor", "motion"}
        Name of the question.
    wrt
        Coordinates.
    loads : bool
        False to leave out gravity, forces, springs and dampers.
    of
        Outputs, for the question "motion"; parameters, for "regressor".
    ground : bool
        True for a regressor of force and moment on ground.
    """

    def __init__(
        self,
        model: CompiledModel,
        question: str,
        wrt: str | Iterable[str] | None = None,
        loads: bool = True,
        of: str | Iterable[str] | None = (),
        ground: bool = False,
    ) -> None:
        self._model, self.question, self.motion = model, question, MOTIONS[question]
        self._of: tuple[str, ...] = ()
        self._regressor: RegressorQuestion | None = None
        if question == "motion":
            self._of = names_of(of, least=1)
            self._transfer = model.transfer_for(wrt)
            model.rows(self._of, 3)
        elif question == "regressor":
            self._regressor = asked = regressor_question(model, of, wrt, loads, ground)
            self._transfer, self.names = asked.transfer, asked.parameters.names
        else:
            want = BOTH if flag("loads", loads) else lay.WANT_INERTIA
            want |= lay.WANT_FORWARD if question == "forward_dynamics" else 0
            self._program = model.program(wrt, want=want, along=True)
            self._transfer = self._program.transfer
        # function of one real state, made on first use, and the largest size of a batch for it
        self._one: Any = None
        self._small_max = 0
        self._terms_of_one: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_one": None, "_small_max": 0, "_terms_of_one": None}

    def __call__(  # type: ignore[override]
        self,
        state: Any = None,
        qd: Any = None,
        second: Any = None,
        third: Any = None,
        /,  # packing `*motion` would take a tenth of a call
        *,
        out: Any = None,
        check: bool = False,
        **named: Any,
    ) -> Any:
        """Return results (..., n), stored in earlier results `out` if given; `motion` has the arguments."""
        if named:
            state, motion = named.pop("state", state), self._given(qd, second, third)
            qd, second, third, *_ = *self._by_place(state, motion, named), None, None
        if check is not False and flag("check", check):
            self.check(state)
        one = self._one
        if one is None:
            self._one = one = self._function()
        try:
            if state.ndim == 1:
                made = one(state, out, qd, second, third)
            else:
                made = self._small(one, state, qd, second, third)
            if made is not None:
                return made if out is None or made is out else stored(made, out)
        except Exception:  # other scalars, lists
            pass
        states, rates, given = self._members(state, self._given(qd, second, third))
        if self._of:
            made = output_motion(self._model, self._transfer, self._of, states, rates, **given)
        elif self._regressor is not None:
            made = self._regressor.matrix(states, rates, **given)
        else:
            made = self._program.efforts(states, rates, **given)
        return stored(made, out)

    @staticmethod
    def _given(*motion: Any) -> tuple[Any, ...]:
        """Return arguments without those at the end that are None."""
        while motion and motion[-1] is None:
            motion = motion[:-1]
        return motion

    def _function(self) -> Any:
        """Return the function of one real state, and set the largest size of a batch for it."""
        if self._of:
            self._small_max = self._model.rows(self._of, 3).small_max
            return output_motion_function(self._model, self._transfer, self._of)
        program = self._program if self._regressor is None else self._regressor.program
        self._small_max = 0 if program is None else program.queries[0].small_max
        if self._regressor is not None:
            return self._regressor.function()
        return self._program.motion_function(self._transfer.size)

    def _small(self, one: Any, state: Any, qd: Any, second: Any, third: Any) -> Any:
        """Return the results of the function `one` for a small batch (B, S); None for other batches."""
        count, size = len(state), self._transfer.size
        shape = count, size
        if not 0 < count <= self._small_max or state.shape != (count, self._model.tree.state_size):
            return None
        flat = [state.reshape(-1)]
        for a in (qd, second, third):
            if a is None:
                flat.append(a)
            elif a.shape == shape:
                flat.append(a.reshape(-1))
            else:
                return None
        state, *motion = flat
        if self._of:
            T = one(state, None, *motion, count)
            return None if T is None else OutputMotion(*T.swapaxes(0, 1))
        if self._regressor is not None:
            return one(state, None, *motion, count)
        T = one(state, _empty(count * size), *motion, count)
        return None if T is None else T.reshape(shape)

    def _members(self, state: Any, motion: tuple[Any, ...]) -> tuple[Any, Any, dict[str, Any]]:
        """Return states (B, S), motions (B, m), and the batch, the mask and the indices of their members."""
        state = checked_state(self._model, state)
        given = dict(zip(self.motion, self._by_place(state, motion, {}), strict=True))
        states, rates, batch = flat_members(
            self._transfer.size, state.shape[:-1], one_batch_axis(state), given, finite=False
        )
        if states.dtype.kind == "O" and self.question == "forward_dynamics":
            message = (
                "Prepared forward dynamics requires numbers, got symbols. Use Configuration.forward_dynamics."
            )
            raise InputError(message, key="configuration")
        ok = known_members(states, *rates)
        ok = None if ok is None else ok.reshape(batch)
        return states, rates, {"batch": batch, "ok": ok, "closed": Numbered.whole(states)}

    def terms(self, state: np.ndarray, qd: np.ndarray, effort: np.ndarray) -> MotionTerms:
        """Return the terms of forward dynamics at real states (..., S)."""
        state, qd, effort = (a if a.flags.carray else a.copy() for a in (state, qd, effort))
        size, program = self._transfer.size, self._program
        if state.ndim == 1:
            self._terms_of_one = self._terms_of_one or program.motion_function(program.width)
            T = self._terms_of_one(state, None, qd, effort)
            if T is not None:
                I = T[2 * size : -2].reshape(size, size)
                return MotionTerms(T[:size], T[size : 2 * size], I, T[-2], T[-1])
        states, rates, given = self._members(state, (qd, effort))
        found, batch = program.terms(states, rates, **given), given["batch"]
        return MotionTerms(*(part.reshape((*batch, *part.shape[1:])) for part in found))


class PositionSolver(Evaluator[np.ndarray]):
    """Evaluator of closed states with given values of fixed rows, each from a nearby closed state.

    The three angular velocities of a joint, body or frame take a rotation vector from the reference
    configuration: that of the second body of a joint relative to the first, or that of a body. `names` are
    the rows, in order.
    """

    question, motion = "position", ("values",)

    def __init__(self, model: CompiledModel, wrt: str | Iterable[str] | None = None) -> None:
        model.require_real("prepare.position()", "Use at(), which returns a configuration.")
        self._model = model
        names = None if wrt is None else model.with_held(names_of(wrt, "wrt"))
        self._names = model.coordinates if names is None else names
        model.check_number(names)
        self._closure = model.closure(self._names)
        self._positions = model.positions(self._names)
        self._transfer = self._closure.transfer
        self.names = self._transfer.labels
        self._sizes = len(self.names), model.tree.state_size

    def __call__(  # type: ignore[override]
        self, state: Any, values: Any = None, *, out: Any = None, check: bool = False
    ) -> np.ndarray:
        """Return closed states (..., S) with given values, near closed states `state` (..., S).

        `values` (..., P) include a rotation vector for three angular velocities. Instead, values of the other
        rows can be followed by a quaternion (w, x, y, z) of any norm for each orientation.

        Raises
        ------
        InputError
            If an array has a wrong shape, or a quaternion is zero or not finite.
        ConfigurationError
            As for `Mechanism.at`, which is used if the compiled Newton iteration does not converge.
        """
        if check is not False and flag("check", check):
            self.check(state)
        found: np.ndarray = stored(self._solved(state, values), out)
        return found

    def _solved(self, near: Any, values: Any) -> np.ndarray:
        """Return closed states (..., S) with values (..., P), or at `Positions` (..., n)."""
        if isinstance(near, Configuration):
            near = near.state
        positions, (size, state_size) = self._positions, self._sizes
        if positions is None and _plain(values, near, self._sizes):  # the hot path
            states, share = self._closure.track(near[None], values[None])
            if share[0] == 1:
                return states[0]
        else:
            turned = positions is not None and numbers("values", values).shape[-1:] == (positions.size,)
            values = self._real("values", values, positions.size if turned and positions else size)
            near = self._real("state", near, state_size)
        batch = values.shape[:-1]
        if batch != near.shape[:-1]:
            batch = broadcast_batches(values=batch, state=near.shape[:-1])
            values = np.broadcast_to(values, (*batch, values.shape[-1]))
            near = np.broadcast_to(near, (*batch, state_size))
        if positions is not None:
            if turned:
                return self._at_positions(positions, positions.normalized(values), near)
            fit = (np.abs(values) < ARGUMENT_MAX).all(axis=-1)
            if not fit.all():
                first = values[~fit][0]
                raise ConfigurationError(
                    f"`values` must be finite and below {ARGUMENT_MAX:g} in magnitude, got "
                    f"{short_repr(first.tolist())}. Check their source, such as a sensor.",
                    failed=[tuple(index) for index in np.argwhere(~fit).tolist()],
                )
            return self._at_positions(positions, positions.from_values(values), near)
        states, share = self._closure.track(one_batch_axis(near), one_batch_axis(values))
        if (share != 1).any():
            return self._solve({name: values[..., k] for k, name in enumerate(self.names)}, near)
        return states.reshape(*batch, state_size)

    def _at_positions(self, positions: Positions, x: np.ndarray, near: np.ndarray) -> np.ndarray:
        batch = x.shape[:-1]
        states, share = positions.track(one_batch_axis(near), one_batch_axis(x))
        if (share == 1).all():
            return states.reshape(*batch, self._sizes[1])
        inputs = positions.inputs(x)
        if inputs is not None:
            return self._solve(inputs, near)
        raise ConfigurationError(
            f"Loops of '{self._model.description.name}' do not close on the way from the given states to the "
            "wanted orientations. Give nearer states or values.",
            failed=[tuple(index) for index in np.argwhere(share.reshape(batch) != 1).tolist()],
        )

    def _solve(self, inputs: dict[str, Any], near: np.ndarray) -> np.ndarray:
        """Return the states (..., S) that `Mechanism.at` finds near given states."""
        as_array("state", near, self._sizes[1])  # raises an error if some are not finite
        start = one_batch_axis(near).copy()
        around = Configuration(self._model, near.shape[:-1], start)
        return solve_position(self._model, inputs, around, "raise").state

    def _real(self, name: str, value: Any, size: int) -> np.ndarray:
        """Return an argument as a real array (..., `size`)."""
        a = numbers(name, value)
        if a.dtype != REAL or a.ndim == 0 or a.shape[-1] != size:
            raise InputError(
                f"`{name}` must be real numbers of shape (..., {size}), got {a.dtype} of shape {a.shape}.",
                key=name,
                got=a.shape,
            )
        return a


def _plain(values: Any, near: Any, sizes: tuple[int, int]) -> bool:
    """Return True if both arguments are float64 arrays for one configuration."""
    return (
        type(values) is np.ndarray
        and type(near) is np.ndarray
        and values.shape == sizes[:1]
        and near.shape == sizes[1:]
        and values.dtype is REAL
        and near.dtype is REAL
    )
