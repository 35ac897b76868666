"""Evaluators and position solvers for hot loops, and dynamics along motions.

Evaluators take plain arrays, with all names resolved. Along a motion, H, I* and P* are not formed: rates and
accelerations pass through the tree and its loops as a Taylor series in time, and forces return by Newton and
Euler, (2-198), (2-199), (4-40) and (4-41); see `kic.kernels.motion`. `Dynamics` has the same results from the
tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from kic.configuration import Configuration
from kic.dynamics.dynamics import check_inertia_regular
from kic.errors import ConfigurationError, InputError, UnknownNameError, invalid, short_repr, unknown
from kic.kernels.layout import QUALITY_WIDTH, WANT_FORWARD, WANT_INERTIA, WANT_LOADS
from kic.kinematics.queries import OutputTable, Table, Views, compiled, kernel
from kic.kinematics.scaling import Scaling
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import (
    ARGUMENT_MAX,
    as_array,
    broadcast_batches,
    check_finite,
    check_order,
    is_finite,
    numbers,
    squeeze_for_scalars,
)
from kic.position import solve_position
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.identity import IdentityTransfer, Transfer
from kic.transfer.motion_query import brief_result
from kic.transfer.orientations import Positions

LETTERS = {"value": 0, "G": 1, "H": 2, "D": 3}
_REAL = np.dtype(np.float64)
BOTH = WANT_INERTIA | WANT_LOADS
# memory layout for which kernels are compiled
_LAYOUT: tuple[Literal["C"], Literal["A"], Literal["W"]] = ("C", "A", "W")


class NoResultError(UnknownNameError, AttributeError):
    """Results have no array of this name."""


class Layout:
    """Places of named results in the tables that the kernels write.

    `parts` are the requested parts of the dynamics; `rows` and `dynamics` are the layouts of the tables.
    """

    def __init__(
        self,
        model: CompiledModel,
        transfer: Transfer,
        names: tuple[str, ...],
        parts: tuple[str, ...],
        rows: OutputTable | None,
        dynamics: Table,
    ) -> None:
        self._of, self._transfer = model, transfer
        self._table, self._dynamics = rows, dynamics
        self.names, self.all = names, (*names, *parts)
        # results are views of the tables, unless rows or columns were selected or reordered
        self._in_requested_order = transfer.permutation is None
        self._in_place = self._values_in_place = False
        self._all_views = self._in_requested_order
        self._parts = dict(zip(parts, dynamics.places, strict=True))
        if rows is None:
            return
        of = rows.rows
        self._in_place = self._in_requested_order and of.select is None
        self._values_in_place = self._in_place and of.holonomic and not of.angles and not of.offsets
        self._all_views = self._values_in_place
        orders = range(0 if self._values_in_place else 1, rows.order + 1)
        places = [rows.place(k, of.spans[name]) for name in names for k in orders]
        self._views = Views(places, rows.width)
        # index of the view of G of each name; that of values precedes it
        self._starts = [(name, k * len(orders) + 1 - orders[0]) for k, name in enumerate(names)]

    def results(
        self, batch: tuple[int, ...], rows: np.ndarray, model: np.ndarray, plain: bool = False
    ) -> Results:
        """Return results for a batch whose tables are given.

        With `plain`, results are newly allocated and real.
        """
        made = Results()
        # set through the dictionary: names differ among evaluators, so attributes could not share keys
        held = made.__dict__
        held["_layout"], held["_batch"], held["_rows"], held["_model"] = self, batch, rows, model
        table = self._table
        if not self._all_views or rows.dtype.char == "O":
            held["_copies"] = []
        if table is not None and self._in_place and (plain or rows.dtype.char != "O"):
            # at once, views are several times cheaper than one by one
            seen = self._views.of_real(rows, batch) if plain else self._views.of(rows, batch)
            values, order = self._values_in_place, table.order
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
        if self._parts and self._in_requested_order:
            parts = self._dynamics.views
            seen = parts.of_real(model, batch) if plain else parts.of(model, batch)
            held["I"], held["P"] = seen[0], seen[1]
            if len(seen) > 2:
                held["load"], held["damping"] = seen[2], seen[3]
        return made

    def _connect(self, held: dict[str, Any], results: Results) -> None:
        """Set the attributes that an output needs to create its arrays on access."""
        # no reference to the results: a cycle would keep their memory until garbage collection
        held["_layout"], held["_copies"] = self, results._copies
        held["_rows"], held["_batch"] = results._rows, results._batch

    def part(self, results: Results, name: str) -> Any:
        """Return the arrays of a name in results that are not views, or are symbolic."""
        if name in self.names:
            rates = Rates()
            rates._name = name
            self._connect(rates.__dict__, results)
            return rates
        if name in self._parts:
            results._copies.append((name, ""))
            return self._model_part(results, name)
        error = unknown("result", name, "these results", self.all)
        raise NoResultError(error.message, **error.numbers)

    def _model_part(self, results: Results, name: str) -> np.ndarray:
        """Return a copy of a part of the dynamics, in the order of the coordinates."""
        start, shape = self._parts[name]
        found = results._model[:, start : start + prod(shape)].reshape(results._batch + shape)
        return self._transfer.in_coordinates([found], (len(shape),))[0]

    def array(self, rows: np.ndarray, batch: tuple[int, ...], name: str, letter: str) -> np.ndarray | None:
        """Return the value or coefficients of a name, as a copy unless they are symbols."""
        table, k = self._table, LETTERS[letter]
        assert table is not None  # for the type checker: there is a name
        if k > table.order:
            return None
        span = table.rows.spans[name]
        c = self._of.assemble(table.rows, table.split(rows, batch), self._transfer)
        tensor = (c.values, c.G, c.H, c.D)[k]
        return None if tensor is None else tensor.take(np.arange(span.start, span.stop), axis=-1 - k)

    def refresh(self, out: Results) -> None:
        """Update arrays that were accessed and are copies of the tables."""
        for name, letter in out._copies.copy():
            held = getattr(out, name)
            if letter:
                np.copyto(getattr(held, letter), self.array(out._rows, out._batch, name, letter))  # type: ignore[arg-type]
            else:
                np.copyto(held, self._model_part(out, name))


class Rates:
    """Arrays of one output: `value` (..., P), `G` (..., P, M), `H` (..., P, M, M), `D` (..., P, M, M, M).

    Those beyond the prepared order are None. Views are set at once; a copy is made on first access, and
    ``evaluator(state, out=…)`` updates it in place.
    """

    _name: str
    value: Any
    G: Any
    H: Any
    D: Any
    # `copy` reads attributes of an uninitialized object; reading `__dict__` here would slow down later access
    _layout: Any = None
    _rows: np.ndarray
    _batch: tuple[int, ...]
    _copies: list[tuple[str, str]]

    def __getattr__(self, letter: str) -> Any:
        # called once for each copy, which is then an attribute
        if letter not in LETTERS or self._layout is None:
            raise AttributeError(letter)
        made = self._layout.array(self._rows, self._batch, self._name, letter)
        setattr(self, letter, made)
        if made is not None:
            self._copies.append((self._name, letter))
        return made

    def __repr__(self) -> str:
        shapes = ", ".join(f"{k} {getattr(self, k).shape}" for k in LETTERS if getattr(self, k) is not None)
        return f"{self._name}: {shapes}"


class Results:
    """Arrays of one evaluation, by name: ``r.tip.G``, ``r["hand.x"].H``, ``r.I``, ``r.P``, ``r.load``.

    ``evaluator(state, out=r)`` updates, in place, every array accessed before. Made by `Layout.results`.
    """

    I: Any
    P: Any
    load: Any
    damping: Any
    _layout: Any = None  # as for `Rates`
    _batch: tuple[int, ...]
    _rows: np.ndarray
    _model: np.ndarray
    # arrays that were accessed and are copies of the tables
    _copies: Any = ()
    # scratch state and kernel calls, reused by in-place evaluation of one real state
    _states: Any = None
    _calls: Any = None

    def __getattr__(self, name: str) -> Any:
        # called once for each name that is not set, which is then an attribute
        layout = self._layout
        if layout is None or (name[:1] == "_" and name not in layout.all):
            raise AttributeError(name)
        made = layout.part(self, name)
        setattr(self, name, made)
        return made

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"results for {', '.join(self._layout.all)} of the batch {self._batch}"


_ndarray, _empty = np.ndarray, np.empty
_MODEL = ("I", "P", "load", "damping")


class Evaluator:
    """Evaluator of fixed outputs at any states, made by `Mechanism.prepare`.

    Call it with a state (..., S); see `Configuration.state`. It has no mutable state and is thread-safe.

    Examples
    --------
    >>> m = kic.load("horn-two-link")
    >>> f = m.prepare(of=["tip"], dynamics=True, order=2)
    >>> r = f(m.at([0.0, 0.0]).state)
    >>> r.tip.G.shape, r.tip.H.shape, r.I.shape, r.P.shape, r.load.shape
    ((3, 2), (3, 2, 2), (2, 2), (2, 2, 2), (2,))
    """

    def __init__(
        self,
        model: CompiledModel,
        of: str | Iterable[str],
        order: int,
        dynamics: bool | Literal["inertia"],
        wrt: str | Iterable[str] | None = None,
        check_results: bool = True,
    ) -> None:
        names = names_of(of)
        if not isinstance(dynamics, bool | str) or dynamics not in (True, False, "inertia"):
            raise invalid("dynamics", "must be True, False or 'inertia'", dynamics)
        if not names and not dynamics:
            raise InputError(
                "`of` must name an output if `dynamics` is False, got none. Name one, or set dynamics=True.",
                key="of",
            )
        check_order(order)
        parts = _MODEL[:2] if dynamics == "inertia" else _MODEL if dynamics else ()
        clash = sorted(set(names) & set(parts))
        if clash:
            raise InputError(
                f"'{clash[0]}' names both a part of '{model.description.name}' and a result of the dynamics. "
                "Prepare the two apart.",
                name=clash[0],
            )
        want = (WANT_INERTIA if parts else 0) | (WANT_LOADS if len(parts) > 2 else 0)
        self._model = model
        self._size = model.tree.state_size
        self._transfer = transfer = model.transfer_for(wrt)
        self._applied = model.loads.constant[None] if parts else _empty((1, 0, 3))
        self._query = model.query(transfer, names, order, want)
        rows, table = self._query.outputs, self._query.dynamics
        self.names = (*names, *parts)
        self.coordinates = transfer.labels
        # layouts of the tables, for kernels that read them
        self.layouts = rows, table
        self._layout = Layout(model, transfer, names, parts, rows, table)
        self._widths = (0 if rows is None else rows.width), table.width
        # shapes of the tables of one state; None for empty ones, all of which are the same array
        self._shapes = [(1, width) if width else None for width in self._widths]
        self._none = _empty((1, 0))
        # springs, dampers and armature of cut joints are added to the kernel's tables
        self._cut_laws = bool(want) and bool(model.cut_joint_loads)
        # only states of this shape take the hot path
        hot = not model.has_complex_step and transfer.is_compiled and not self._cut_laws
        self._one = (self._size,) if hot else None
        # False returns results that are not finite instead of raising
        self._check_results = check_results
        # states and arguments of calls that have ended; taking and returning is atomic
        self._spare: list[tuple[np.ndarray, list[Any]]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spare": []}

    def __call__(self, state: np.ndarray, out: Results | None = None, check: bool = False) -> Results:
        """Evaluate the outputs at a state.

        Parameters
        ----------
        state : (..., S) ndarray
            One state or a batch; see `Configuration.state`.
        out : Results, optional
            Earlier results of this evaluator for the same batch, which are overwritten.
        check : bool
            True to check that the states are closed and that the coordinates can drive the mechanism there.

        Raises
        ------
        InputError
            If the state has another length, or `out` another batch. If results at a finite state are not
            finite, because numbers overflow, or a spring or a distance has length zero. With `check`, also
            for open states.
        SingularError
            If the coordinates of `wrt` cannot drive the mechanism, or Euler angles are in gimbal lock.

        Notes
        -----
        Quaternions are normalized first. Results at states that are not finite are NaN.
        """
        if check is not False and flag("check", check):
            self.check(state)
        # one real state is the hot path
        if type(state) is _ndarray and state.shape == self._one and state.dtype is _REAL:
            if out is None:
                return self._fresh(state)
            if type(out) is not Results or out._layout is not self._layout or out._batch:
                self._check_out(out, (), _REAL)
            if out._calls is None:  # first reuse
                out._states = _empty((1, self._size))
                out._calls = self._calls(out, out._states)
            out._states[0] = state
            for entry, arguments in out._calls:
                if entry(*arguments):
                    self._fill(out._states, out)
            if out._copies:
                self._layout.refresh(out)
            return out
        if type(state) is not _ndarray or state.dtype is not _REAL or not state.flags.carray or not self._one:
            state = self._checked(state)
        shape = state.shape
        if not shape or shape[-1] != self._size:
            self._checked(state)
        batch = shape[:-1]
        states = state.reshape(-1, self._size)
        if out is not None and (
            getattr(out, "_layout", None) is not self._layout
            or out._batch != batch
            or out._rows.dtype != state.dtype
        ):
            self._check_out(out, batch, state.dtype)
        made = self._empty(batch, len(states), state.dtype) if out is None else out
        self._fill(states, made)
        if out is not None and out._copies:
            self._layout.refresh(out)
        return made

    @property
    def scaling(self) -> Scaling:
        """Typical sizes of rows and coordinates, and the error of rows at regular configurations."""
        table = self.layouts[0]
        assert table is not None  # for the type checker: used only if there are rows
        return self._model.scaling(table.rows, self._transfer)

    def __repr__(self) -> str:
        of = ", ".join(self.names)
        return f"evaluator of {of} for states (..., {self._size}) of '{self._model.description.name}'"

    def check(self, state: np.ndarray) -> np.ndarray:
        """Check states (..., S) and return their condition (...) in these coordinates.

        Parameters
        ----------
        state : (..., S) ndarray
            One state or a batch.

        Returns
        -------
        (...) ndarray
            Condition of the system that is solved; 1 in the coordinates of an open chain itself.

        Raises
        ------
        InputError
            If a state is not closed, with the joint and the residual.
        SingularError
            If the coordinates cannot drive the mechanism.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> f = m.prepare(of=["tip"])
        >>> bool(f.check(m.at().state) < 100)
        True
        """
        state = self._checked(state)
        states = state.real.reshape(-1, self._size)
        return self._transfer.condition(states, self._model.real.closure).reshape(state.shape[:-1])

    def _fresh(self, state: np.ndarray) -> Results:
        """Return results for one real state."""
        of_rows, of_model = self._shapes
        rows = _empty(of_rows) if of_rows else self._none
        model = _empty(of_model) if of_model else self._none
        out = self._layout.results((), rows, model, plain=True)
        try:
            states, calls = mine = self._spare.pop()
        except IndexError:
            states = _empty((1, self._size))
            # with the positions of the two result arrays among the arguments
            calls = [
                (
                    entry,
                    list(arguments),
                    next((k for k, a in enumerate(arguments) if a is rows), None),
                    next((k for k, a in enumerate(arguments) if a is model), None),
                )
                for entry, arguments in self._calls(out, states)
            ]
            mine = states, calls
        states[0] = state
        for entry, arguments, k, j in calls:
            if k is not None:
                arguments[k] = rows
            if j is not None:
                arguments[j] = model
            if entry(*arguments):
                self._fill(states, out)
            # the results belong to the caller
            if k is not None:
                arguments[k] = None
            if j is not None:
                arguments[j] = None
        self._spare.append(mine)
        return out

    def _empty(self, batch: tuple[int, ...], count: int, dtype: np.dtype) -> Results:
        """Return empty results for a batch."""
        rows, model = self._widths
        tables = _empty((count, rows), dtype), _empty((count, model), dtype)
        return self._layout.results(batch, *tables, plain=dtype is _REAL and count > 0)

    def _calls(self, out: Results, states: np.ndarray) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return kernel entries and arguments that fill results for one real state.

        An entry returns a number other than zero where `_fill` must evaluate the state instead.
        """
        return self._transfer.calls(self._query, states, self._applied, out._rows, out._model)

    def _fill(self, states: np.ndarray, out: Results) -> None:
        """Fill results at states (B, S) with every check; members whose state is not finite are NaN."""
        transfer, K = self._transfer, out._model
        finite = transfer.fill(self._query, states, self._applied, out._rows, K, out._batch)
        if self._cut_laws:
            known = np.isfinite(states).all(axis=1)
            self._model.add_cut_joint_loads(transfer, self._query, states, K, known)
        if self._check_results and (not finite or (self._cut_laws and not is_finite(K))):
            self._check_finite(states, out)

    def _check_finite(self, states: np.ndarray, out: Results) -> None:
        """Raise an error for results that are not finite at finite states (B, S)."""
        model, (table, dynamics), T, K = self._model, self.layouts, out._rows, out._model
        ok = np.isfinite(states).all(axis=1)
        if table is not None:
            model.check_distances(table.rows, T, ok)
            model.check_gimbal(table.rows, table.split(T, (len(T),))[0], "raise", ok)
        if len(dynamics.places) > 2:  # with loads
            model.check_springs(K, ok)
        for quantity, part in (("Coefficients", T), ("I*, P* or loads", K)):
            check_finite(quantity, model.description.name, part, ok)

    def _check_out(self, out: Any, batch: tuple[int, ...], dtype: np.dtype) -> None:
        raise InputError(
            f"`out` must be results of this evaluator for the batch {batch} of {dtype}, got "
            + (
                f"those for {out._batch} of {out._rows.dtype}."
                if isinstance(out, Results)
                else f"{short_repr(out)}."
            ),
            key="out",
            got=out,
        )

    def _checked(self, state: Any) -> np.ndarray:
        """Return the state in the memory layout for which kernels are compiled."""
        a = np.require(numbers("state", state), requirements=["C", "A", "W"])
        if a.ndim == 0 or a.shape[-1] != self._size:
            raise invalid("state", f"must have shape (..., {self._size}), as `Configuration.state`", a.shape)
        if self._model.has_complex_step and a.dtype is _REAL:
            if not self._model.tree.open:
                raise InputError(
                    f"A real state of '{self._model.description.name}' does not close with the step of a "
                    "sensitivity. Take states from its own at().",
                    key="state",
                )
            a = a.astype(complex)
        return a


class PositionSolver:
    """Position solver for values of the same inputs, each from a nearby state; made by `prepare_position`.

    Call it with values (..., P) of the inputs' rows and a closed state (..., S); it returns the closed state
    (..., S) that has these values. It may be called from many threads at once.

    The three angular velocities of a joint, body or frame take a rotation vector: the orientation of the
    second body of a joint relative to the first, or that of a body, as a rotation from the reference
    configuration.

    Attributes
    ----------
    inputs : tuple of str
        The rows whose values are given, in order.

    Examples
    --------
    >>> m = kic.load("five-bar")
    >>> c = m.at()
    >>> close = m.prepare_position(["A", "E"])
    >>> state = close([c.value("A") + 0.01, c.value("E")], c.state)
    >>> bool(abs(m.prepare(of=["A"])(state).A.value[0] - c.value("A") - 0.01) < 1e-15)
    True
    """

    def __init__(self, model: CompiledModel, inputs: str | Iterable[str] | None) -> None:
        model.require_real("prepare_position()", "Use at(), which returns a configuration.")
        self._model = model
        self._names = model.coordinates if inputs is None else names_of(inputs, "inputs")
        model.check_number(None if inputs is None else self._names)
        self._closure = model.closure(self._names)
        self._positions = model.positions(self._names)
        self.inputs = self._closure.transfer.labels
        self._sizes = len(self.inputs), model.tree.state_size

    def __call__(self, values: Any, near: Any) -> np.ndarray:
        """Return closed states that have wanted values.

        Parameters
        ----------
        values : (..., P) array_like
            Wanted values of `inputs`; a rotation vector for three angular velocities.
        near : (..., S) array_like
            Closed states, as `Configuration.state` has them, or a `Configuration`; batches broadcast.

        Returns
        -------
        (..., S) ndarray
            Closed states that have these values.

        Raises
        ------
        ConfigurationError
            As `Mechanism.at`, which is used where the compiled Newton iteration does not arrive.
        """
        if isinstance(near, Configuration):
            near = near.state
        if self._positions is None and _plain(values, near, self._sizes):  # the hot path
            states, converged = self._closure.newton_local(near[None], values[None])
            if converged[0]:
                return states[0]
        else:
            values, near = (
                self._real("values", values, self._sizes[0]),
                self._real("near", near, self._sizes[1]),
            )
        batch = values.shape[:-1]
        if batch != near.shape[:-1]:
            batch = broadcast_batches(values=batch, near=near.shape[:-1])
            values = np.broadcast_to(values, (*batch, self._sizes[0]))
            near = np.broadcast_to(near, (*batch, self._sizes[1]))
        if self._positions is not None:
            fit = (np.abs(values) < ARGUMENT_MAX).all(axis=-1)
            if not fit.all():
                first = values[~fit][0]
                raise ConfigurationError(
                    f"`values` must be finite and below {ARGUMENT_MAX:g}, got {short_repr(first.tolist())}. "
                    "Correct them.",
                    failed=[tuple(index) for index in np.argwhere(~fit).tolist()],
                )
            return self._at_positions(self._positions, self._positions.from_values(values), near)
        start = near.reshape(-1, self._sizes[1])
        states, converged = self._closure.newton_local(start, values.reshape(-1, self._sizes[0]))
        if not converged.all():
            return self._solve({name: values[..., k] for k, name in enumerate(self.inputs)}, near)
        return states.reshape(*batch, self._sizes[1])

    def at_positions(self, x: Any, near: Any) -> np.ndarray:
        """Return closed states at positions, in which orientations are quaternions.

        Parameters
        ----------
        x : (..., n) array_like
            Values of the inputs that have them, then a quaternion (w, x, y, z) of any size for each
            orientation whose angular velocity is an input.
        near : (..., S) array_like
            Closed states; batches broadcast.

        Returns
        -------
        (..., S) ndarray
            Closed states that have these positions.

        Raises
        ------
        InputError
            For arrays of other shapes, and quaternions that are zero or not finite.
        ConfigurationError
            If the loops do not close on the way from the given states.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> c, solve = m.at(), m.prepare_position(["A"])
        >>> solve.at_positions([c.value("A") + 0.1], c.state).shape
        (3,)
        """
        if self._positions is None:
            return self(x, near)
        x, near = self._real("x", x, self._positions.size), self._real("near", near, self._sizes[1])
        batch = broadcast_batches(x=x.shape[:-1], near=near.shape[:-1])
        x, near = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (x, near))
        return self._at_positions(self._positions, self._positions.normalized(x), near)

    def _at_positions(self, positions: Positions, x: np.ndarray, near: np.ndarray) -> np.ndarray:
        batch = x.shape[:-1]
        states, converged = positions.newton_local(
            near.reshape(-1, self._sizes[1]), x.reshape(-1, x.shape[-1])
        )
        if converged.all():
            return states.reshape(*batch, self._sizes[1])
        inputs = positions.inputs(x)
        if inputs is not None:
            return self._solve(inputs, near)
        raise ConfigurationError(
            f"Loops of '{self._model.description.name}' do not close on the way from the given states to the "
            "wanted orientations. Give nearer states or values.",
            failed=[tuple(index) for index in np.argwhere(~converged.reshape(batch)).tolist()],
        )

    def _solve(self, inputs: dict[str, Any], near: np.ndarray) -> np.ndarray:
        """Return the states (..., S) that `Mechanism.at` finds near given ones."""
        as_array("near", near, self._sizes[1])  # raises an error if some are not finite
        start = near.reshape(-1, self._sizes[1]).copy()
        around = Configuration(self._model, near.shape[:-1], start)
        return solve_position(self._model, inputs, around, "raise").state

    def _real(self, name: str, value: Any, size: int) -> np.ndarray:
        """Return an argument as real numbers (..., n)."""
        a = numbers(name, value)
        if a.dtype != _REAL or a.ndim == 0 or a.shape[-1] != size:
            raise InputError(
                f"`{name}` must be real numbers of shape (..., {size}), got {a.dtype} of shape {a.shape}.",
                key=name,
                got=a.shape,
            )
        return a

    def __repr__(self) -> str:
        of = ", ".join(self.inputs)
        return (
            f"position solver of '{self._model.description.name}' for values (..., {self._sizes[0]}) of {of}"
        )


def _plain(values: Any, near: Any, sizes: tuple[int, int]) -> bool:
    """Return True if both are plain arrays for one configuration."""
    return (
        type(values) is np.ndarray
        and type(near) is np.ndarray
        and values.shape == sizes[:1]
        and near.shape == sizes[1:]
        and values.dtype is _REAL
        and near.dtype is _REAL
    )


def inverse_dynamics(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
    loads: bool = True,
    motors: bool = False,
) -> np.ndarray:
    """Compute the efforts of a motion; see `Configuration.inverse_dynamics`."""
    want = BOTH if flag("loads", loads) else WANT_INERTIA
    rotors = None
    if flag("motors", motors):
        from kic.actuation.motor_demand import rotor_dynamics

        rotors = rotor_dynamics(configuration, wrt, failures)
    T = _along(configuration, want, {"qd": qd, "qdd": qdd}, wrt, applied, failures)
    if rotors is not None:
        size = len(rotors.coordinates)
        given = {"qd": qd, "qdd": qdd}
        v, a = (np.zeros(size) if x is None else as_array(k, x, size) for k, x in given.items())
        T = T + rotors.inverse_dynamics(v, a)
    return squeeze_for_scalars(T, qd, qdd)


def forward_dynamics(
    configuration: Configuration,
    qd: Any = None,
    effort: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
    motors: bool = False,
) -> np.ndarray:
    """Compute the accelerations that efforts cause; see `Configuration.forward_dynamics`."""
    given = {"qd": qd, "effort": effort}
    if flag("motors", motors) or configuration.state.dtype.kind == "O":
        # rotors and symbols take the tensors
        d = configuration.dynamics(wrt, applied, failures, motors)
        size = len(d.coordinates)
        v, force = (as_array(k, np.zeros(size) if a is None else a, size) for k, a in given.items())
        return squeeze_for_scalars(d.forward_dynamics(v, force), qd, effort)
    found = _along(configuration, BOTH | WANT_FORWARD, given, wrt, applied, failures)
    return squeeze_for_scalars(found, qd, effort)


def output_motion(
    configuration: Configuration,
    of: str | Iterable[str],
    qd: Any = None,
    qdd: Any = None,
    qddd: Any = None,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Compute the motion of outputs; see `Configuration.motion`."""
    model = configuration._model
    transfer, names = model.transfer_for(wrt), (of,) if isinstance(of, str) else names_of(of, least=1)
    states, rates, shape, ok = _members(configuration, transfer, {"qd": qd, "qdd": qdd, "qddd": qddd})
    if isinstance(transfer, IdentityTransfer) or not transfer.size:
        x = transfer.tree_motion(states, *rates)
    else:
        query = transfer.series_query(3)
        found, ok = configuration._evaluate(transfer, query, failures, states, shape, ok, None, rates)
        x = transfer.series(found.T)
    outputs = model.rows(names, 3)
    rows = outputs.layout.rows
    parts = outputs.motion(states, np.moveaxis(x, 0, 1))
    known = None if ok is None else ok.reshape(-1)
    model.check_distances(rows, parts, ok)
    check_finite("Velocities, accelerations or jerks", configuration.name, parts, known)
    if rows.select is not None:
        parts = parts[..., rows.select]
    values = np.where(rows.valued, model.values(names, states), np.nan)
    size = len(rows.labels)
    first, second, third = (parts[:, k].reshape(*shape, size) for k in (1, 2, 3))
    return values.reshape(*shape, size), first, second, third


def _members(
    configuration: Configuration,
    transfer: Transfer,
    given: dict[str, Any],
    *others: np.ndarray,
    **batches: Any,
) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[int, ...], np.ndarray | None]:
    """Return states (B, S), arrays (B, m) by default zero, the batch and the mask of solved members."""
    size = len(transfer.labels)
    arrays = {k: as_array(k, np.zeros(size) if a is None else a, size) for k, a in given.items()}
    batches.update(configuration=configuration.batch, **{k: a.shape[:-1] for k, a in arrays.items()})
    shape = broadcast_batches(**batches)
    states = configuration.state
    dtype = np.result_type(configuration._model.tree.scalar, states, *arrays.values(), *others)
    states, *rates = (
        np.require(
            np.broadcast_to(a, (*shape, a.shape[-1])).reshape(prod(shape), a.shape[-1]), dtype, _LAYOUT
        )
        for a in (states, *arrays.values())
    )
    ok = configuration._ok
    return states, tuple(rates), shape, None if ok is None else np.broadcast_to(ok, shape)


def _along(
    configuration: Configuration,
    want: int,
    given: dict[str, Any],
    wrt: str | Iterable[str] | None,
    applied: dict[str, Any] | None,
    failures: Literal["raise", "mask"],
) -> np.ndarray:
    """Return efforts or accelerations (..., M) of motions given by two arrays (..., M)."""
    model = configuration._model
    force, loaded = model.loads.applied(applied, configuration.name)
    transfer = model.transfer_for(wrt)
    states, rates, shape, ok = _members(configuration, transfer, given, force, applied=loaded)
    if loaded:
        force = np.broadcast_to(force, (*shape, *force.shape[-2:]))
    force = force.reshape(len(states) if loaded else 1, *force.shape[-2:])
    force = np.require(force, states.dtype, _LAYOUT)
    size = len(transfer.labels)
    query = model.motion_query(transfer, want)
    rates = to_columns(transfer, *rates)
    found, ok = configuration._evaluate(transfer, query, failures, states, shape, ok, force, rates)
    known = np.ones(len(found.T), bool) if ok is None else ok.reshape(-1)
    T = completed(model, transfer, want, states, rates, found.T, known)
    quantity = "Accelerations" if want & WANT_FORWARD else "Efforts"
    if want & WANT_LOADS:
        model.check_springs(T.reshape(*shape, size), ok)
    check_finite(quantity, configuration.name, T, None if ok is None else ok.reshape(-1))
    return T.reshape(*shape, size)


def to_columns(transfer: Transfer, *rates: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return arrays (B, m) in the order of the kernels."""
    order = transfer.permutation
    if order is None:
        return rates
    made = tuple(np.empty_like(a) for a in rates)
    for a, b in zip(made, rates, strict=True):
        a[:, order] = b
    return made


class MotionTerms(NamedTuple):
    """Terms of the equations of motion I* q̈ + h = T along motions, in the order of the coordinates.

    Attributes
    ----------
    acceleration : (..., m)
        Accelerations due to efforts; NaN where I* may be singular.
    bias : (..., m)
        Efforts h of the motion at q̈ = 0.
    I : (..., m, m)
        Mass matrix.
    load_power, dissipation : (...)
        Power of the loads Tᴸ, and that lost in dampers.
    """

    acceleration: np.ndarray
    bias: np.ndarray
    I: np.ndarray
    load_power: Any
    dissipation: Any


def completed(
    model: CompiledModel,
    transfer: Transfer,
    want: int,
    states: np.ndarray,
    rates: tuple[np.ndarray, ...],
    T: np.ndarray,
    known: np.ndarray,
) -> np.ndarray:
    """Return efforts or accelerations (B, m) in the order of the coordinates, from results T of the kernels.

    Springs in cut joints are added, and I* is checked where the kernel doubts it. `known` (B,) are the
    members with a result.
    """
    if not want & WANT_FORWARD:
        if model.cut_joint_loads:
            T = T.copy()
            I, bias, _, _ = _cut_joints(model, transfer, want, states[known], rates[0][known])
            T[known] += _times(I, rates[1][known]) + bias
        return transfer.in_coordinates([T], (1,))[0]
    size = len(transfer.labels)
    terms = forward_terms(model, transfer, states, rates, T, known)
    doubtful = known & np.isnan(terms.acceleration.real).any(axis=1) & np.isfinite(terms.I).all((1, 2))
    if size and doubtful.any():
        I, (effort,) = terms.I[doubtful], transfer.in_coordinates([rates[1]], (1,))
        error = transfer.inertia_error(model.inertia_error, states[doubtful])
        check_inertia_regular(I, error, transfer.labels)
        net = (effort - terms.bias)[doubtful]
        terms.acceleration[doubtful] = np.linalg.solve(I, net[..., None])[..., 0]
    return terms.acceleration


def forward_terms(
    model: CompiledModel,
    transfer: Transfer,
    states: np.ndarray,
    rates: tuple[np.ndarray, ...],
    T: np.ndarray,
    known: np.ndarray,
) -> MotionTerms:
    """Return the terms (B, …) from results T of the kernels, with springs in cut joints."""
    size = len(transfer.labels)
    a, bias, I = T[:, :size], T[:, size : 2 * size], T[:, 2 * size : -2].reshape(len(T), size, size)
    load_power, dissipation = T[:, -2], T[:, -1]
    if model.cut_joint_loads:
        parts = _cut_joints(model, transfer, BOTH, states[known], rates[0][known])
        for whole, part in zip((I, bias, load_power, dissipation), parts, strict=True):
            whole[known] += part
        a[:] = np.nan  # to be solved for again
    a, bias, I = transfer.in_coordinates([a, bias, I], (1, 1, 2))
    return MotionTerms(a, bias, I, load_power, dissipation)


def _cut_joints(
    model: CompiledModel, transfer: Transfer, want: int, states: np.ndarray, v: np.ndarray
) -> tuple[Any, Any, Any, Any]:
    """Return I*, bias, and powers of loads and dampers, of joints that are no columns of the tree."""
    I, P, *loads = model.cut_joint_terms(transfer, states, want)
    bias = np.einsum("bkac,ba,bc->bk", P, v, v)
    if not loads:
        return I, bias, 0.0, 0.0
    load, drag = loads[0], _times(loads[1], v)
    return I, bias + drag - load, (load * v).sum(axis=1), (drag * v).sum(axis=1)


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("bac,bc->ba", A, x)


class MotionEvaluator:
    """Evaluator of inverse or forward dynamics in fixed coordinates, for hot loops.

    Made by `Mechanism.prepare_inverse_dynamics` and `Mechanism.prepare_forward_dynamics`. Call it with a
    state (..., S), rates (..., M), and accelerations or efforts (..., M). It is thread-safe.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the coordinates.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> f = arm.prepare_inverse_dynamics()
    >>> f(arm.at([0.0, 0.0]).state, [0.0, 0.0], [0.0, 0.0])
    array([19.62 ,  4.905])
    """

    def __init__(
        self, model: CompiledModel, forward: bool, wrt: str | Iterable[str] | None = None, loads: bool = True
    ) -> None:
        want = BOTH if flag("loads", loads) else WANT_INERTIA
        self._model, self._want = model, want | (WANT_FORWARD if forward else 0)
        self._transfer = transfer = model.transfer_for(wrt)
        self.query = model.motion_query(transfer, self._want)
        self.coordinates = transfer.labels
        size = len(self.coordinates)
        self.applied = model.loads.constant[None]
        plain = transfer.permutation is None and not model.cut_joint_loads
        # only real states take the hot path
        self.is_compiled = bool(plain and transfer.is_compiled and not model.has_complex_step and size)
        self._sizes = model.tree.state_size, size
        self._size = size
        self.choice = getattr(transfer, "choice", None)
        self._run: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run": None}

    def _prepare(self) -> Any:
        """Return the function that runs the kernel, whose module is imported on first use, for one state.

        It raises a TypeError for anything but contiguous arrays of float64 with one axis, and returns a
        number other than zero where the kernel writes no result.
        """
        if not self.is_compiled:
            self._run = lambda *_: 1
            return self._run
        query, applied, choice = self.query, self.applied, self.choice
        plan, numbers_, places = query.plan, query.numbers_in(_REAL), query.places
        rates = (np.zeros((1, self._size)),) * 2
        given = (self._model.reference_state, applied) + (() if choice is None else (choice,))
        entry = compiled(kernel(query.entry), *query.arguments(brief_result(rates), *given))
        # scratch of calls that have ended; taking and returning is atomic
        free: list[tuple[np.ndarray, np.ndarray]] = []
        take, give = free.pop, free.append
        quality, shape = _empty((0, QUALITY_WIDTH)), (2, self._model.tree.size)

        def run(state: np.ndarray, qd: np.ndarray, second: np.ndarray, T: np.ndarray) -> Any:
            try:
                mine = take()
            except IndexError:
                mine = _empty(places), _empty(shape, np.int64)
            scratch, whole = mine
            if choice is None:
                left = entry(plan, numbers_, state, applied, qd, second, scratch, T)
            else:
                left = entry(
                    plan, numbers_, state, applied, choice, qd, second, second, scratch, whole, T, quality
                )  # fmt: skip
            give(mine)
            return left

        self._run = run
        return run

    def __call__(self, state: Any, qd: Any, second: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Evaluate efforts, or accelerations.

        Parameters
        ----------
        state : (..., S) array_like
            One closed state or a batch; see `Configuration.state`. Batches of all arguments broadcast.
        qd : (..., M) array_like
            Rates of the coordinates.
        second : (..., M) array_like
            Accelerations, for inverse dynamics; efforts, for forward dynamics.
        out : (..., M) ndarray, optional
            Array of float64 that receives the result. It may be one of the arguments.

        Returns
        -------
        (..., M) ndarray
            Efforts, or accelerations.

        Raises
        ------
        InputError
            For arrays of another shape, and for results that are not finite although all arguments are.
        SingularError
            If the coordinates cannot drive the mechanism, or I* is singular.

        Notes
        -----
        For speed it is not checked that states are closed. Results of arguments that are not finite are NaN.
        """
        try:
            T = _empty(self._size) if out is None else out
            if len(T) == self._size and not (self._run or self._prepare())(state, qd, second, T):
                return T
        except (TypeError, ValueError):  # lists, batches, other scalars
            pass
        return self._general(state, qd, second, out)

    def _general(self, state: Any, qd: Any, second: Any, out: np.ndarray | None) -> np.ndarray:
        """Evaluate batches, other scalars, and members that need more than the kernel."""
        made = self.raw(state, qd, second)
        if out is None:
            return made
        if not isinstance(out, np.ndarray) or out.shape != made.shape or out.dtype != made.dtype:
            raise invalid("out", f"must be an array of {made.dtype} and shape {made.shape}", out)
        if not out.flags.writeable:
            raise InputError("`out` must be writable, got a read-only array.", key="out")
        out[...] = made
        return out

    def raw(self, state: Any, qd: Any, second: Any) -> np.ndarray:
        """Return the results of a batch."""
        shape, states, rates, known = self._given(state, qd, second)
        if self.is_compiled and known is None and states.dtype is _REAL:
            out = brief_result(rates)
            if not self.query.run_into(out, states, self.applied, self.choice):
                return out.T.reshape(*shape, self._size)
        T, known = self._table(states, rates, known)
        made = completed(self._model, self._transfer, self._want, states, rates, T, known)
        if not is_finite(made):
            if self._want & WANT_LOADS:
                self._model.check_springs(made, known)
            quantity = "Accelerations" if self._want & WANT_FORWARD else "Efforts"
            check_finite(quantity, self._model.description.name, made, known)
        return made.reshape(*shape, self._size)

    def terms(self, state: np.ndarray, qd: np.ndarray, effort: np.ndarray) -> MotionTerms:
        """Return the terms of forward dynamics at one real state."""
        state, qd, effort = (a if a.flags.carray else a.copy() for a in (state, qd, effort))
        size, T = self._size, _empty(self.query.width)
        if not (self._run or self._prepare())(state, qd, effort, T):
            I = T[2 * size : -2].reshape(size, size)
            return MotionTerms(T[:size], T[size : 2 * size], I, T[-2], T[-1])
        _, states, rates, known = self._given(state, qd, effort)
        T, known = self._table(states, rates, known)
        found = forward_terms(self._model, self._transfer, states, rates, T, known)
        return MotionTerms(*(part[0] for part in found))

    def _given(self, state: Any, qd: Any, second: Any) -> tuple[Any, ...]:
        """Return the batch, its states and rates (B, m), and the mask of finite members; None if all are."""
        model, transfer, (state_size, size) = self._model, self._transfer, self._sizes
        given = {
            "state": (numbers("state", state), state_size),
            "qd": (numbers("qd", qd), size),
            "effort" if self._want & WANT_FORWARD else "qdd": (numbers("second", second), size),
        }
        for name, (a, width) in given.items():
            if a.ndim == 0 or a.shape[-1] != width:
                raise invalid(name, f"must have shape (..., {width})", a.shape)
        shape = broadcast_batches(**{name: a.shape[:-1] for name, (a, _) in given.items()})
        dtype = np.result_type(model.tree.scalar, *(a for a, _ in given.values()))
        if dtype.kind == "O" and self._want & WANT_FORWARD:
            raise InputError(
                "Prepared forward dynamics needs numbers. Use Configuration.forward_dynamics.",
                key="configuration",
            )
        states, *rates = (
            np.require(np.broadcast_to(a, (*shape, n)).reshape(prod(shape), n), dtype, _LAYOUT)
            for a, n in given.values()
        )
        motion = to_columns(transfer, *rates)
        parts = (states, *motion)
        if dtype.kind == "O" or all(map(is_finite, parts)):
            return shape, states, motion, None
        return shape, states, motion, np.all([np.isfinite(a).all(axis=1) for a in parts], axis=0)

    def _table(
        self, states: np.ndarray, rates: tuple[np.ndarray, ...], known: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the full results of the kernel for a batch, NaN outside `known`, and the mask `known`."""
        query, transfer, dtype = self.query, self._transfer, states.dtype
        applied = np.require(self.applied, dtype, _LAYOUT)
        out = query.result(rates, dtype)
        if known is None:
            return transfer.evaluate(query, states, applied, out).T, np.ones(len(states), bool)
        part = query.result(tuple(a[known] for a in rates), dtype)
        out.T[:] = np.nan
        out.T[known] = transfer.evaluate(query, states[known], applied, part).T
        return out.T, known

    def __repr__(self) -> str:
        what = "forward" if self._want & WANT_FORWARD else "inverse"
        return f"{what} dynamics of '{self._model.description.name}' in {', '.join(self.coordinates)}"
