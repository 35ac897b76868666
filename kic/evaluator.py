"""Prepared evaluators for hot loops: plain arrays in and out, everything resolved beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from kic.arrays import numbers
from kic.configuration import check_order
from kic.errors import InputError, unknown
from kic.kinematics import kernel
from kic.model import Model

_REAL = np.dtype(np.float64)


class Results:
    """Arrays of one evaluation, by name: ``r.tip.G``, ``r["hand.x"].H``, ``r.I``, ``r.P``, ``r.load``.

    All are views of one block of memory; ``evaluator(state, out=r)`` fills them anew.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        batch: tuple[int, ...],
        rows: np.ndarray | None,
        dynamics: np.ndarray | None,
    ) -> None:
        self._evaluator = evaluator
        self._batch = batch
        self._rows = rows
        self._dynamics = dynamics

    def __getattr__(self, name: str) -> Any:
        # only reached before the views are made: they are kept as ordinary attributes
        if name.startswith("_") or name in self.__dict__:
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        views = self.__dict__.get("_views")
        if views is None:
            views = self._views = self._evaluator.views(self._rows, self._dynamics, self._batch)
            self.__dict__.update(views)
        if name not in views:
            raise unknown("result", name, "these results", views)
        return views[name]


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

    def __init__(self, model: Model, of: str | Iterable[str], order: int, dynamics: bool) -> None:
        model.check_open()
        names = (of,) if isinstance(of, str) else tuple(of)
        if not names and not dynamics:
            raise InputError("Nothing was asked: name dependents in `of`, or set dynamics=True.")
        check_order(order)
        self._model = model
        self._rows = model.rows(names, order) if names else None
        self._dynamics = model.dynamics if dynamics else None
        self._applied = model.loads.constant[None] if dynamics else None
        self._size = model.tree.state_size
        # columns in the order of the tree are answered in place
        self._in_place = model.tree.to_coordinates is None and (
            self._rows is None or (self._rows.rows.select is None and self._rows.rows.holonomic)
        )
        self._fast = self._rows is not None and not self._rows.rows.products and self._dynamics is None
        if self._fast:
            assert self._rows is not None  # for the type checker
            self._kernel = kernel("kinematics")
            self._plan, self._numbers = self._rows.plan, self._rows.numbers
            self._width = self._rows.width

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
        """
        if type(state) is not np.ndarray or state.dtype is not _REAL or not state.flags.carray:
            state = self._checked(state)
        shape = state.shape
        if not shape or shape[-1] != self._size:
            self._checked(state)
        if len(shape) == 1:
            states, batch = state[None], ()
        else:
            batch = shape[:-1]
            states = state if len(shape) == 2 else state.reshape(-1, self._size)
        if out is not None and (out._evaluator is not self or out._batch != batch):
            raise InputError(f"`out` must be results of this evaluator for the batch {batch}.")
        if self._fast and batch == () and state.dtype is _REAL:
            T = np.empty((1, self._width)) if out is None else out._rows
            self._kernel(self._plan, self._numbers, states, None, T)
            return Results(self, batch, T, None) if out is None else self._refreshed(out)
        T = K = None
        if self._rows is not None:
            T = self._rows.table(states, out=None if out is None else out._rows)
        if self._dynamics is not None:
            K = self._dynamics.table(states, self._applied, out=None if out is None else out._dynamics)
        return Results(self, batch, T, K) if out is None else self._refreshed(out)

    def _refreshed(self, out: Results) -> Results:
        """Results whose memory was filled anew; copies made of it are dropped."""
        if not self._in_place and "_views" in out.__dict__:
            for name in out.__dict__.pop("_views"):
                del out.__dict__[name]
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

    def views(self, T: np.ndarray | None, K: np.ndarray | None, batch: tuple[int, ...]) -> dict[str, Any]:
        """Named arrays of the answer's memory."""
        model, views = self._model, dict[str, Any]()
        if T is not None and self._rows is not None:
            rows = self._rows.rows
            c = model.assemble(rows, self._rows.split(T, batch))
            for name, span in rows.spans.items():
                views[name] = SimpleNamespace(
                    value=None if c.values is None else c.values[..., span],
                    G=c.G[..., span, :],
                    H=None if c.H is None else c.H[..., span, :, :],
                    D=None if c.D is None else c.D[..., span, :, :, :],
                )
        if K is not None and self._dynamics is not None:
            parts = model.in_coordinates(self._dynamics.split(K, batch), (2, 3, 1, 2))
            views.update(zip(("I", "P", "load", "damping"), parts, strict=True))
        return views
