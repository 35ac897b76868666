"""Prepared evaluators for hot loops: plain arrays in and out, everything resolved beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from kic.arguments import flag
from kic.arrays import check_finite, check_order, numbers
from kic.errors import InputError, placed, shown
from kic.kinematics import WANT_INERTIA, WANT_LOADS, ModelTable, kernel
from kic.model import Model
from kic.results import Layout, Results
from kic.rows import names_of
from kic.scaling import Scaling
from kic.system import QUALITY_WIDTH, Answer

_REAL = np.dtype(np.float64)
_ndarray, _empty = np.ndarray, np.empty
_MODEL = ("I", "P", "load", "damping")


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
        if not isinstance(dynamics, bool | str) or dynamics not in (True, False, "inertia"):
            raise InputError(f"`dynamics` must be True, False or 'inertia', got {shown(dynamics)}.")
        if not names and not dynamics:
            raise InputError("Nothing was asked: name dependents in `of`, or set dynamics=True.")
        check_order(order)
        parts = _MODEL[:2] if dynamics == "inertia" else _MODEL if dynamics else ()
        clash = sorted(set(names) & set(parts))
        if clash:
            raise InputError(
                f"'{clash[0]}' names both a part of '{model.drawing.name}' and a result of the dynamics. "
                "Prepare the two apart.",
                name=clash[0],
            )
        want = (WANT_INERTIA if parts else 0) | (WANT_LOADS if len(parts) > 2 else 0)
        self._model = model
        self._size = model.tree.state_size
        self._transfer = transfer = model.asked(wrt)
        self._applied = model.loads.constant[None] if parts else _empty((1, 0, 3))
        if transfer is None:
            self._rows = model.rows(names, order) if names else None
            self._dynamics = model.dynamics(want) if want else None
            rows = None if self._rows is None else self._rows.answer
            table = ModelTable(model.tree.size, want)
        else:
            self._question = model.elsewhere(transfer, names, order, want)
            rows, table = self._question.answer, self._question.model
        self.names = (*names, *parts)
        self.coordinates = model.coordinates if transfer is None else transfer.labels
        # how the tables are laid out that a kernel further on may read
        self.layouts = rows, table
        self._layout = Layout(model, transfer, names, parts, rows, table)
        self._widths = (0 if rows is None else rows.width), table.width
        # springs and dampers in cut joints are added to what the kernel gives
        self._cut_laws = transfer is not None and bool(want & WANT_LOADS) and bool(model.cut_laws)
        # a state of another shape than this one takes the longer way
        hot = not model.stepped and (transfer is None or (transfer.choice is not None and not self._cut_laws))
        self._one = (self._size,) if hot else None

    def __call__(self, state: np.ndarray, out: Results | None = None, check: bool = False) -> Results:
        """Evaluate at a state.

        Parameters
        ----------
        state : (..., S) ndarray
            One state or a batch, as `Configuration.state` has it.
        out : Results, optional
            Earlier results of this evaluator for the same batch, whose arrays are filled anew.
        check : bool
            Whether to check that the states are closed, that the coordinates can drive the mechanism there,
            and that the results are finite.

        Returns
        -------
        Results

        Raises
        ------
        InputError
            For a state of another length, or an `out` that does not fit; with `check`, also for states that
            are not closed and results that are not finite.

        SingularError
            Where the coordinates of `wrt` can not drive the mechanism.

        Notes
        -----
        Quaternions of balls are brought to unit length first. For speed nothing else is looked at: where a
        spring or a distance has no length, the numbers that depend on it are NaN, and numbers may overflow.
        """
        if check is not False and flag("check", check):
            self.check(state)
            made = self(state, out=out)
            ok = np.isfinite(np.real(state)).all(axis=-1).reshape(-1)
            for quantity, part in (("Coefficients", made._rows), ("I*, P* or loads", made._model)):
                check_finite(quantity, self._model.drawing.name, part, ok)
            return made
        # one real state is the hot path
        if type(state) is _ndarray and state.shape == self._one and state.dtype is _REAL:
            if out is None:
                return self._fresh(state)
            if type(out) is not Results or out._layout is not self._layout or out._batch:
                self._refuse(out, (), _REAL)
            if out._calls is None:  # used again for the first time, from now on with memory of its own
                out._states = _empty((1, self._size))
                out._calls = self._calls(out, out._states)
            out._states[0] = state
            for entry, arguments in out._calls:
                if entry(*arguments):
                    self._elsewhere(out._states, out)
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
            self._refuse(out, batch, state.dtype)
        made = self._room(batch, len(states), state.dtype) if out is None else out
        if self._transfer is not None:
            self._elsewhere(states, made)
        else:
            if self._rows is not None:
                self._rows.table(states, out=made._rows)
            if self._dynamics is not None:
                self._dynamics.table(states, self._applied, out=made._model)
        if out is not None and out._copies:
            self._layout.refresh(out)
        return made

    @property
    def scaling(self) -> Scaling:
        """Sizes of the rows and of the coordinates, and the error of rows where nothing is singular."""
        table = self.layouts[0]
        assert table is not None  # for the type checker: asked where there are rows
        return self._model.scaling(table.rows, self._transfer)

    def __repr__(self) -> str:
        of = ", ".join(self.names)
        return f"evaluator of {of} for states (..., {self._size}) of '{self._model.drawing.name}'"

    def check(self, state: np.ndarray) -> np.ndarray:
        """Condition (...) of states (..., S) in these coordinates, each looked at; see `__call__`.

        Parameters
        ----------
        state : (..., S) ndarray
            One state or a batch.

        Returns
        -------
        (...) ndarray
            Condition of the system that is solved there; 1 in the coordinates of an open chain itself.

        Raises
        ------
        InputError
            For states that are not closed: which joint, and by how much.
        SingularError
            Where the coordinates can not drive the mechanism.

        Examples
        --------
        >>> import kic
        >>> m = kic.load("four-bar")
        >>> f = m.prepare(of=["tip"])
        >>> bool(f.check(m.at().state) < 100)
        True
        """
        state = self._checked(state)
        if self._transfer is None:
            return np.ones(state.shape[:-1])
        closure = self._model.real.closure(self._transfer.names)
        return closure.check(state.real.reshape(-1, self._size)).reshape(state.shape[:-1])

    def _fresh(self, state: np.ndarray) -> Results:
        """Results for one real state."""
        states = state[None] if state.flags.carray else state.copy()[None]
        out = self._room((), 1, _REAL)
        for entry, arguments in self._calls(out, states):
            if entry(*arguments):
                self._elsewhere(states, out)
        self._layout.show(out)
        return out

    def _room(self, batch: tuple[int, ...], count: int, dtype: np.dtype) -> Results:
        """Results to be filled, for a batch."""
        rows, model = self._widths
        return Results(self._layout, batch, _empty((count, rows), dtype), _empty((count, model), dtype))

    def _calls(self, out: Results, states: np.ndarray) -> list[tuple[Any, tuple[Any, ...]]]:
        """Kernels and arguments that fill results for one real state; what they return is their doubts."""
        if self._transfer is not None:
            q, answer = self._question, self._answer(out)
            choice: Any = self._transfer.choice  # there is one wherever this way is taken
            arguments = q.arguments(answer, states, self._applied, choice)
            return [(kernel("transfer"), arguments)]
        calls: list[tuple[Any, tuple[Any, ...]]] = []
        rows, model = self._rows, self._dynamics
        if rows is not None:
            calls.append(
                (kernel("kinematics"), (rows.plan, rows.numbers, states, _empty(rows.scratch), out._rows))
            )
        if model is not None:
            scratch = _empty(model.scratch)
            arguments = model.plan, model.numbers, states, self._applied, scratch, out._model
            calls.append((kernel("dynamics"), arguments))
        return calls

    def _answer(self, out: Results) -> Answer:
        """Results as the room that a transfer fills."""
        dtype, count = out._rows.dtype, len(out._rows)
        return Answer(_empty((0, 0), dtype), out._rows, out._model, _empty((count, QUALITY_WIDTH)))

    def _elsewhere(self, states: np.ndarray, out: Results) -> None:
        """Fill results in other coordinates, every member looked at; those without a posture are NaN."""
        transfer, answer = self._transfer, self._answer(out)
        assert transfer is not None  # for the type checker
        known = np.ones(len(states), bool) if states.dtype.kind == "O" else np.isfinite(states).all(axis=1)
        with placed(np.flatnonzero(known), out._batch):
            if known.all():
                transfer.answer(self._question, states, self._applied, answer)
            else:
                part = transfer.answer(self._question, states[known], self._applied)
                for whole, found in ((answer.T, part.T), (answer.K, part.K)):
                    whole[:] = np.nan
                    whole[known] = found
        if self._cut_laws:
            load, damping = self._question.model.split(answer.K[known], (int(known.sum()),))[-2:]
            self._model.add_cut_laws(transfer, states[known], load, damping)
            answer.K[known, -load.shape[-1] * (1 + load.shape[-1]) :] = np.concatenate(
                [load, damping.reshape(len(load), -1)], axis=1
            )

    def _refuse(self, out: Any, batch: tuple[int, ...], dtype: np.dtype) -> None:
        raise InputError(
            f"`out` must be results of this evaluator for the batch {batch} of {dtype}, got "
            + (
                f"those for {out._batch} of {out._rows.dtype}."
                if isinstance(out, Results)
                else f"{shown(out)}."
            )
        )

    def _checked(self, state: Any) -> np.ndarray:
        """The state in the only layout for which kernels are compiled."""
        a = np.require(numbers("state", state), requirements=["C", "A", "W"])
        if a.ndim == 0 or a.shape[-1] != self._size:
            raise InputError(
                f"Expected `state` to have shape (..., {self._size}), as `Configuration.state` has it, "
                f"got {a.shape}.",
                got=a.shape,
            )
        if self._model.stepped and a.dtype is _REAL:
            if not self._model.tree.open:
                raise InputError(
                    f"A real state of '{self._model.drawing.name}' does not close with the step of a "
                    "sensitivity. Take states from its own at()."
                )
            a = a.astype(complex)
        return a
