"""Prepared evaluators for hot loops: plain arrays in and out, everything resolved beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Literal

import numpy as np

from kic.arrays import check_order, numbers
from kic.errors import InputError, UnknownNameError, shown, unknown
from kic.kinematics import kernel
from kic.model import Model
from kic.posture import unit_states
from kic.rows import names_of
from kic.transfer import Transfer, side_by_side

_REAL = np.dtype(np.float64)
_ndarray = np.ndarray


class NoResultError(UnknownNameError, AttributeError):
    """A name that these results do not have."""


class Rates:
    """Arrays of one dependent: `value` (..., P), `G` (..., P, M), `H` (..., P, M, M), `D` (..., P, M, M, M).

    Those beyond the prepared order are None. Made when first looked at, and kept: ``evaluator(state,
    out=…)`` fills the same arrays anew.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        rows: np.ndarray,
        batch: tuple[int, ...],
        name: str,
        views: dict[str, tuple[slice, tuple[int, ...]]],
    ) -> None:
        # not the results themselves, which hold this: a cycle would keep their memory for the collector
        self._evaluator, self._rows, self._batch = evaluator, rows, batch
        self._name = name
        self._views = views

    def __getattr__(self, letter: str) -> Any:
        # reached once for each array, which is an ordinary attribute from then on
        view = self._views.get(letter)
        if view is not None:  # in the kernel's memory as it is asked for
            part, shape = view
            made: Any = self._rows[:, part].reshape(self._batch + shape)
        else:
            if letter not in _LETTERS:
                raise AttributeError(letter)
            made = self._evaluator._array(self._rows, self._batch, self._name, _LETTERS[letter])
        self.__dict__[letter] = made
        return made

    def __repr__(self) -> str:
        shapes = ", ".join(f"{k} {getattr(self, k).shape}" for k in _LETTERS if getattr(self, k) is not None)
        return f"{self._name}: {shapes}"


_LETTERS = {"value": 0, "G": 1, "H": 2, "D": 3}
_MODEL = ("I", "P", "load", "damping")


class Results:
    """Arrays of one evaluation, by name: ``r.tip.G``, ``r["hand.x"].H``, ``r.I``, ``r.P``, ``r.load``.

    ``evaluator(state, out=r)`` fills every array that was looked at anew, in place.
    """

    def __init__(
        self, evaluator: Evaluator, batch: tuple[int, ...], rows: np.ndarray | None, model: np.ndarray | None
    ) -> None:
        self._evaluator = evaluator
        self._batch = batch
        self._rows: Any = rows
        self._model: Any = model
        self._dtype = (rows if model is None else model).dtype  # type: ignore[union-attr]
        # of results for one real state: where the state goes, and the calls that fill all else
        self._key: object = None
        self._states: Any = None
        self._calls: list[tuple[Any, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        # reached once for each name, which is an ordinary attribute from then on
        if name[:1] == "_" and name not in self._evaluator.names:
            raise AttributeError(name)
        made = self._evaluator._part(self, name)
        self.__dict__[name] = made
        return made

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"results for {', '.join(self._evaluator.names)} of the batch {self._batch}"


class Evaluator:
    """Evaluates one question at many states; made by `Mechanism.prepare`.

    Call it with a state (..., S), as `Configuration.state` has it. It keeps no memory between calls and
    may be called from many threads at once.

    Examples
    --------
    >>> import kic
    >>> m = kic.load("horn-two-link")
    >>> f = m.prepare(of=["tip"], dynamics=True, order=2)
    >>> r = f(m.at([0.0, 0.0]).state)
    >>> r.tip.G.shape, r.tip.H.shape, r.I.shape, r.P.shape, r.load.shape
    ((3, 2), (3, 2, 2), (2, 2), (2, 2, 2), (2,))
    """

    def __init__(
        self,
        model: Model,
        of: str | Iterable[str],
        order: int,
        dynamics: bool | Literal["inertia"],
        wrt: str | Iterable[str] | None = None,
    ) -> None:
        names = names_of(of)
        if not names and not dynamics:
            raise InputError("Nothing was asked: name dependents in `of`, or set dynamics=True.")
        check_order(order)
        if dynamics not in (True, False, "inertia"):
            raise InputError(f"Expected `dynamics` to be True, False or 'inertia', got {shown(dynamics)}.")
        parts = _MODEL[:2] if dynamics == "inertia" else _MODEL if dynamics else ()
        clash = sorted(set(names) & set(parts))
        if clash:
            raise InputError(
                f"'{clash[0]}' names both a part of '{model.drawing.name}' and a result of the dynamics. "
                "Prepare the two apart.",
                name=clash[0],
            )
        self._model = model
        self._transfer = model.asked(wrt)
        size = None if self._transfer is None else self._transfer.first
        self._rows = model.rows(names, order, size) if names else None
        alone = dynamics == "inertia" and self._transfer is None
        self._dynamics = (model.unloaded if alone else model.dynamics) if parts else None
        self._applied = model.loads.constant[None] if parts else None
        self._size = model.tree.state_size
        self.names = (*names, *parts)
        # tensors stand in the kernel's memory as they are asked for, unless rows or columns were picked
        self._in_place = model.tree.to_coordinates is None or self._transfer is not None
        self._values_in_place = True
        self._balls = bool(model.tree.balls)
        self._copies = not self._in_place
        # a state of another shape than this one takes the longer way
        hot = self._transfer is None and not model.tree.balls
        self._one = (self._size,) if hot else None
        self._key = object()
        if self._rows is not None:
            rows = self._rows.rows
            self._in_place = self._in_place and rows.select is None
            self._values_in_place = rows.holonomic and not rows.angles and not rows.offsets
            self._copies = self._copies or not (self._in_place and self._values_in_place)
        self._views = {name: self._places(name) for name in names}
        m = model.tree.size if size is None else size
        shapes: dict[str, tuple[int, ...]] = {"I": (m, m), "P": (m, m, m), "load": (m,), "damping": (m, m)}
        ends = np.cumsum([0, *(prod(shape) for shape in shapes.values())]).tolist()
        self._parts = {
            name: (slice(*ends[k : k + 2]), shape) for k, (name, shape) in enumerate(shapes.items())
        }

    def __call__(self, state: np.ndarray, out: Results | None = None) -> Results:
        """Evaluate at a state.

        Parameters
        ----------
        state : (..., S) ndarray
            One state or a batch, as `Configuration.state` has it.
        out : Results, optional
            Earlier results of this evaluator for the same batch, whose arrays are filled anew.

        Returns
        -------
        Results

        Raises
        ------
        InputError
            For a state of another length, or an `out` that does not fit.

        Notes
        -----
        Quaternions of balls are brought to unit length first. For speed nothing else is looked at: where a
        spring or a distance has no length, the numbers that depend on it are NaN.
        """
        # one real state is the hot path: copied into memory of our own, so that its layout does not matter
        if type(state) is _ndarray and state.shape == self._one and state.dtype is _REAL:
            if out is None:
                out = self._fresh()
            elif type(out) is not Results or out._key is not self._key:
                self._refuse(out, (), _REAL)
            out._states[0] = state
            for kernel, arguments in out._calls:
                kernel(*arguments)
            if self._copies:
                self._refreshed(out)
            return out
        if type(state) is not _ndarray or state.dtype is not _REAL or not state.flags.carray:
            state = self._checked(state)
        shape = state.shape
        if not shape or shape[-1] != self._size:
            self._checked(state)
        if len(shape) == 1:
            states, batch = state[None], ()
        else:
            batch = shape[:-1]
            states = state if len(shape) == 2 else state.reshape(-1, self._size)
        if out is not None and (
            getattr(out, "_evaluator", None) is not self or out._batch != batch or out._dtype != state.dtype
        ):
            self._refuse(out, batch, state.dtype)
        if self._balls and states.dtype is _REAL:
            states = unit_states(self._model.tree, states)
        T = K = None
        if self._transfer is not None:
            T, K = self._elsewhere(self._transfer, states)
            if out is None:
                return Results(self, batch, T, K)
            for kept, new in ((out._rows, T), (out._model, K)):
                if kept is not None:
                    kept[:] = new
            return self._refreshed(out)
        if self._rows is not None:
            T = self._rows.table(states, out=None if out is None else out._rows)
        if self._dynamics is not None:
            assert self._applied is not None  # for the type checker
            K = self._dynamics.table(states, self._applied, out=None if out is None else out._model)
        return Results(self, batch, T, K) if out is None else self._refreshed(out)

    def _elsewhere(
        self, transfer: Transfer, states: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Both tables in chosen coordinates, from one transfer."""
        order = 0 if self._rows is None else self._rows.order
        known = states if states.dtype.kind == "O" else states[np.isfinite(states).all(axis=1)]
        X = transfer.solve(known, max(order, 1 if self._dynamics is None else 2)).X
        T = K = None
        if self._rows is not None:
            # the table of lower order stands in front of that of higher
            mobile, size = self._model.tree.size, transfer.first
            front = X[:, : sum(mobile * size**k for k in range(order + 1))]
            T = self._rows.table(known, np.ascontiguousarray(front))
        if self._applied is not None:
            K = side_by_side(self._model.transferred(transfer, known, X, self._applied))
        if len(known) < len(states):
            T, K = _spread(T, states), _spread(K, states)
        return T, K

    def __repr__(self) -> str:
        of = ", ".join(self.names)
        return f"evaluator of {of} for states (..., {self._size}) of '{self._model.drawing.name}'"

    def _fresh(self) -> Results:
        """Results for one real state, with the calls of kernels that fill them."""
        states, T, K = np.empty((1, self._size)), None, None
        calls: list[tuple[Any, tuple[Any, ...]]] = []
        rows, model = self._rows, self._dynamics
        if rows is not None:
            T = np.empty((1, rows.width))
            scratch = np.empty(rows.scratch)
            calls.append((kernel("kinematics"), (rows.plan, rows.numbers, states, None, scratch, T)))
        if model is not None:
            K = np.empty((1, model.width))
            scratch = np.empty(model.scratch)
            calls.append(
                (kernel("dynamics"), (model.plan, model.numbers, states, self._applied, scratch, K))
            )
        out = Results(self, (), T, K)
        out._states, out._calls, out._key = states, calls, self._key
        return out

    def _refuse(self, out: Results, batch: tuple[int, ...], dtype: np.dtype) -> None:
        raise InputError(
            f"`out` must be results of this evaluator for the batch {batch} of {dtype}, got "
            + (f"those for {out._batch} of {out._dtype}." if isinstance(out, Results) else f"{shown(out)}.")
        )

    def _refreshed(self, out: Results) -> Results:
        """Results whose memory was filled anew: arrays that are copies of it are filled as well."""
        if not self._copies:
            return out
        for name in self.names:
            held = out.__dict__.get(name)
            if isinstance(held, Rates):
                for letter, k in _LETTERS.items():
                    array = held.__dict__.get(letter)
                    if array is not None and not (self._values_in_place if k == 0 else self._in_place):
                        np.copyto(array, self._array(out._rows, out._batch, name, k))  # type: ignore[arg-type]
            elif held is not None and self._model.tree.to_coordinates is not None:
                np.copyto(held, self._part(out, name))
        return out

    def _checked(self, state: Any) -> np.ndarray:
        """The state in the only layout for which kernels are compiled."""
        a = np.require(numbers("state", state), requirements=["C", "A", "W"])
        if a.ndim == 0 or a.shape[-1] != self._size:
            raise InputError(
                f"Expected `state` to have shape (..., {self._size}), as `Configuration.state` has it, "
                f"got {a.shape}.",
                got=a.shape,
            )
        return a

    def _part(self, results: Results, name: str) -> Any:
        """What a name stands for in results."""
        if self._rows is not None and name in self._rows.rows.spans:
            return Rates(self, results._rows, results._batch, name, self._views[name])
        if name in self._parts and name in self.names:
            part, shape = self._parts[name]
            found = results._model[:, part].reshape(results._batch + shape)
            if self._transfer is not None:
                return found
            return self._model.in_coordinates([found], (len(shape),))[0]
        error = unknown("result", name, "these results", self.names)
        raise NoResultError(error.message, **error.numbers)

    def _places(self, name: str) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """Where the arrays of a name stand in the kernel's memory, as far as they do."""
        question = self._rows
        assert question is not None  # for the type checker: there is a name
        return {
            letter: question.place(k, question.rows.spans[name])
            for letter, k in _LETTERS.items()
            if k <= question.order and self._in_place and (k or self._values_in_place)
        }

    def _array(self, rows: np.ndarray, batch: tuple[int, ...], name: str, k: int) -> np.ndarray | None:
        """Value (k = 0) or k-th order coefficients of a name."""
        question = self._rows
        assert question is not None  # for the type checker: there is a name
        if k > question.order:
            return None
        span = question.rows.spans[name]
        c = self._model.assemble(question.rows, question.split(rows, batch), self._transfer)
        tensor = (c.values, c.G, c.H, c.D)[k]
        return None if tensor is None else tensor.take(np.arange(span.start, span.stop), axis=-1 - k)


def _spread(table: np.ndarray | None, states: np.ndarray) -> np.ndarray | None:
    """A table of the members that have a posture, with NaN for the others."""
    if table is None:
        return None
    full = np.full((len(states), table.shape[1]), np.nan, table.dtype)
    full[np.isfinite(states).all(axis=1)] = table
    return full
