"""Arrays that a prepared evaluator hands out, by name, in the memory that kernels write."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from kic.errors import UnknownNameError, unknown
from kic.kinematics import RowsTable, Table
from kic.model import Model
from kic.transfer import Transfer

LETTERS = {"value": 0, "G": 1, "H": 2, "D": 3}
_REAL = np.dtype(np.float64)


class NoResultError(UnknownNameError, AttributeError):
    """A name that these results do not have."""


class Layout:
    """What the names of a question stand for in the tables that kernels write for it.

    Parameters
    ----------
    model : Model
        The mechanism.
    transfer : Transfer or None
        The coordinates; None for those of the tree.
    names : tuple of str
        Dependents asked for.
    parts : tuple of str
        Parts of the dynamics asked for.
    rows, dynamics : RowsTable or None, Table
        How the tables are laid out.
    """

    def __init__(
        self,
        model: Model,
        transfer: Transfer | None,
        names: tuple[str, ...],
        parts: tuple[str, ...],
        rows: RowsTable | None,
        dynamics: Table,
    ) -> None:
        self._of, self._transfer = model, transfer
        self._table = rows
        self.names, self.all = names, (*names, *parts)
        # tensors stand in the kernel's memory as they are asked for, unless rows or columns were picked
        self._in_place = self._as_asked = model.tree.to_coordinates is None or transfer is not None
        self._values_in_place = True
        if rows is not None:
            of = rows.rows
            self._in_place = self._in_place and of.select is None
            self._values_in_place = of.holonomic and not of.angles and not of.offsets
        self._parts = dict(zip(parts, dynamics.places, strict=True))
        self._views = {name: self._places(name) for name in names}
        # the arrays of one real state as fields of structured views: several times cheaper than slices
        self._fields = [
            (name, tuple(views), _structure(views.items(), rows.width))
            for name, views in self._views.items()
            if rows is not None
        ]
        self._model_fields = None
        if parts and self._as_asked:
            self._model_fields = _structure(self._parts.items(), dynamics.width)

    def _places(self, name: str) -> dict[str, tuple[int, tuple[int, ...]]]:
        """Where the arrays of a name stand in the kernel's memory, as far as they do."""
        table = self._table
        assert table is not None  # for the type checker: there is a name
        return {
            letter: table.place(k, table.rows.spans[name])
            for letter, k in LETTERS.items()
            if k <= table.order and self._in_place and (k or self._values_in_place)
        }

    def show(self, results: Results) -> None:
        """Put the arrays of one real state into its results."""
        held = results.__dict__
        for name, letters, fields in self._fields:
            held[name] = rates = Rates(self, results, name)
            if letters:
                seen = np.ndarray((), fields, results._rows)
                for letter in letters:
                    rates.__dict__[letter] = seen[letter]
        if self._model_fields is not None:
            seen = np.ndarray((), self._model_fields, results._model)
            for name in self._parts:
                held[name] = seen[name]

    def part(self, results: Results, name: str) -> Any:
        """What a name stands for in results."""
        if name in self._views:
            return Rates(self, results, name)
        if name in self._parts:
            start, shape = self._parts[name]
            found = results._model[:, start : start + prod(shape)].reshape(results._batch + shape)
            if self._as_asked:
                return found
            results._copies.append((name, ""))
            return self._of.in_coordinates([found], (len(shape),))[0]
        error = unknown("result", name, "these results", self.all)
        raise NoResultError(error.message, **error.numbers)

    def array(self, rows: np.ndarray, batch: tuple[int, ...], name: str, letter: str) -> np.ndarray | None:
        """Value or coefficients of a name; a view where it stands in the kernel's memory as asked."""
        view = self._views[name].get(letter)
        if view is not None:
            start, shape = view
            return rows[:, start : start + prod(shape)].reshape(batch + shape)
        table, k = self._table, LETTERS[letter]
        assert table is not None  # for the type checker: there is a name
        if k > table.order:
            return None
        span = table.rows.spans[name]
        c = self._of.assemble(table.rows, table.split(rows, batch), self._transfer)
        tensor = (c.values, c.G, c.H, c.D)[k]
        return None if tensor is None else tensor.take(np.arange(span.start, span.stop), axis=-1 - k)

    def refresh(self, out: Results) -> None:
        """Fill arrays anew that were looked at and are copies of the kernel's memory."""
        for name, letter in out._copies.copy():
            held = out.__dict__[name]
            if letter:
                np.copyto(held.__dict__[letter], self.array(out._rows, out._batch, name, letter))  # type: ignore[arg-type]
            else:
                start, shape = self._parts[name]
                found = out._model[:, start : start + prod(shape)].reshape(out._batch + shape)
                np.copyto(held, self._of.in_coordinates([found], (len(shape),))[0])


class Rates:
    """Arrays of one dependent: `value` (..., P), `G` (..., P, M), `H` (..., P, M, M), `D` (..., P, M, M, M).

    Those beyond the prepared order are None. Made when first looked at, and kept: ``evaluator(state,
    out=…)`` fills the same arrays anew.
    """

    def __init__(self, layout: Layout, results: Results, name: str) -> None:
        # not the results themselves, which hold this: a cycle would keep their memory for the collector
        self._layout, self._name = layout, name
        self._rows, self._batch, self._copies = results._rows, results._batch, results._copies

    def __getattr__(self, letter: str) -> Any:
        # reached once for each array, an ordinary attribute from then on; by copies before all else
        if letter not in LETTERS or "_layout" not in self.__dict__:
            raise AttributeError(letter)
        made = self.__dict__[letter] = self._layout.array(self._rows, self._batch, self._name, letter)
        if made is not None and made.base is None:  # a copy of the kernel's memory
            self._copies.append((self._name, letter))
        return made

    def __repr__(self) -> str:
        shapes = ", ".join(f"{k} {getattr(self, k).shape}" for k in LETTERS if getattr(self, k) is not None)
        return f"{self._name}: {shapes}"


class Results:
    """Arrays of one evaluation, by name: ``r.tip.G``, ``r["hand.x"].H``, ``r.I``, ``r.P``, ``r.load``.

    ``evaluator(state, out=r)`` fills every array that was looked at anew, in place.
    """

    def __init__(self, layout: Layout, batch: tuple[int, ...], rows: np.ndarray, model: np.ndarray) -> None:
        self._layout = layout
        self._batch = batch
        self._rows = rows
        self._model = model
        # of results for one real state, used again: where the state goes, and the calls that fill the rest
        self._states: Any = None
        self._calls: Any = None
        # arrays that were looked at and are copies of the kernel's memory
        self._copies: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        # reached once for each name, an ordinary attribute from then on; by copies before all else
        if "_layout" not in self.__dict__ or (name[:1] == "_" and name not in self._layout.all):
            raise AttributeError(name)
        made = self.__dict__[name] = self._layout.part(self, name)
        return made

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"results for {', '.join(self._layout.all)} of the batch {self._batch}"


def _structure(views: Any, width: int) -> np.dtype:
    """The type of a row of numbers whose fields are arrays."""
    named = list(views)
    return np.dtype(
        {
            "names": [name for name, _ in named],
            "formats": [(_REAL, shape) for _, (_, shape) in named],
            "offsets": [8 * start for _, (start, _) in named],
            "itemsize": 8 * width,
        }
    )
