"""Prepared evaluators for hot loops: plain arrays in and out, everything resolved beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from kic.configuration import check_order
from kic.errors import InputError, unknown
from kic.kinematics import inertia_tables, load_tables, row_tables, run, split_table, table_width
from kic.model import Model


class Results:
    """Arrays of one evaluation, by name: ``r.tip.G``, ``r["hand.x"].H``, ``r.I``, ``r.P``, ``r.load``."""

    __slots__ = ("_batch", "_evaluator", "_inertia", "_loads", "_rows", "_views")

    def __init__(
        self,
        evaluator: Evaluator,
        batch: tuple[int, ...],
        rows: np.ndarray | None,
        inertia: np.ndarray | None,
        loads: np.ndarray | None,
    ) -> None:
        self._evaluator = evaluator
        self._batch = batch
        self._rows = rows
        self._inertia = inertia
        self._loads = loads
        self._views: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        views = self._views
        if views is None:
            views = self._views = self._evaluator._views(self)
        try:
            return views[name]
        except KeyError:
            raise unknown("result", name, "these results", views) from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __dir__(self) -> list[str]:
        return [*self["_names"], *super().__dir__()]


class Evaluator:
    """Evaluates one question at many states; made by `Mechanism.prepare`.

    Call it with a state (..., S), as `Configuration.state` has it. It keeps no memory between calls and
    may be called from many threads.

    Examples
    --------
    >>> import kic
    >>> m = kic.load("horn-two-link")
    >>> f = m.prepare(of=["tip"], dynamics=True, order=2)
    >>> r = f(m.at([0.0, 0.0]).state)
    >>> r.tip.G.shape, r.tip.H.shape, r.I.shape, r.P.shape, r.load.shape
    ((3, 2), (3, 2, 2), (2, 2), (2, 2, 2), (2,))
    """

    def __init__(self, model: Model, of: Iterable[str], order: int, dynamics: bool) -> None:
        model.check_open()
        self._model = model
        self._order = check_order(order)
        names = (of,) if isinstance(of, str) else tuple(of)
        if not names and not dynamics:
            raise InputError("Nothing was asked: name dependents in `of`, or set dynamics=True.")
        self.names = names
        self._rows = model.rows(names) if names else None
        self._masses = model.masses if dynamics else None
        self._state_size = model.tree.state_size
        self._size = model.tree.size
        rows = self._rows
        if rows is not None:
            self._width = table_width(rows.height, self._size, self._order)
            self._tables = (model.tree.cols, model.tree.geometry, rows.items, rows.vectors)
            self._height = rows.height
            self._plain = not rows.products
            self._kernel: Any = run("kinematics", np.dtype(np.float64))

    def __call__(self, state: np.ndarray, out: Results | None = None) -> Results:
        """Evaluate at a state (..., S); `out` may be earlier results of the same batch, to be reused."""
        if (
            type(state) is not np.ndarray
            or state.dtype != np.float64
            or not state.flags.carray  # in C order, aligned and writable: anything else compiles anew
            or state.shape[-1:] != (self._state_size,)
        ):
            state = self._checked(state)
        batch = state.shape[:-1]
        states = state.reshape(-1, self._state_size)
        if out is not None:
            return self._again(states, batch, out)
        T = M = K = None
        rows = self._rows
        if rows is not None:
            if batch == () and self._plain and states.dtype == np.float64:
                T = np.empty((1, self._width))
                self._kernel(*self._tables, states, None, self._size, self._order, self._height, T)
            else:
                T = row_tables(self._model.tree, rows, states, self._order)
        if self._masses is not None:
            M, K = self._dynamics(states)
        return Results(self, batch, T, M, K)

    def _dynamics(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model = self._model
        assert self._masses is not None  # for the type checker: callers ask first
        M = inertia_tables(model.tree, self._masses, states)
        force = model.loads.constant[None]
        K = load_tables(model.tree, self._masses, model.loads, states, force)
        return M, K

    def _again(self, states: np.ndarray, batch: tuple[int, ...], out: Results) -> Results:
        """Into the arrays of earlier results."""
        if out._evaluator is not self or out._batch != batch:
            raise InputError(
                f"`out` must be results of this evaluator for the batch {batch}, got {out._batch}."
            )
        if self._rows is not None:
            row_tables(self._model.tree, self._rows, states, self._order, out=out._rows)
        if self._masses is not None:
            M, K = self._dynamics(states)
            out._inertia[:], out._loads[:] = M, K  # type: ignore[index]
        return out

    def _checked(self, state: Any) -> np.ndarray:
        a = np.require(state, requirements=["C", "A", "W"])
        if a.dtype not in (np.float64, np.complex128, object):
            a = a.astype(np.float64)
        if a.ndim == 0 or a.shape[-1] != self._state_size:
            raise InputError(
                f"Expected `state` to have shape (..., {self._state_size}), as `Configuration.state` has it, "
                f"got {a.shape}."
            )
        return a

    def _views(self, results: Results) -> dict[str, Any]:
        """Named views of the tables."""
        views: dict[str, Any] = {}
        rows, model = self._rows, self._model
        if rows is not None and results._rows is not None:
            parts = split_table(results._rows, rows.height, self._size, self._order, results._batch)
            if rows.select is None and model.tree.to_coordinates is None:
                values, G, H, D = (*parts, None, None)[:4]
            else:
                c = model.assemble(rows, parts)
                values, G, H, D = c.values, c.G, c.H, c.D
            for name, span in rows.spans.items():
                views[name] = SimpleNamespace(
                    value=values[..., span],  # type: ignore[index]
                    G=G[..., span, :],  # type: ignore[index]
                    H=None if H is None else H[..., span, :, :],
                    D=None if D is None else D[..., span, :, :, :],
                )
        if results._inertia is not None and results._loads is not None:
            size, batch, order = self._size, results._batch, model.tree.to_coordinates
            I = results._inertia[:, : size**2].reshape(*batch, size, size)
            P = results._inertia[:, size**2 :].reshape(*batch, size, size, size)
            load = results._loads[:, :size].reshape(*batch, size)
            damping = results._loads[:, size:].reshape(*batch, size, size)
            if order is not None:
                I = I[..., order[:, None], order]
                P = P[..., order[:, None, None], order[:, None], order]
                load, damping = load[..., order], damping[..., order[:, None], order]
            views.update(I=I, P=P, load=load, damping=damping)
        views["_names"] = tuple(views)
        return views
