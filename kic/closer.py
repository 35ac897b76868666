"""Closers for hot loops: plain arrays in and out, everything about the inputs resolved beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, numbers, trailing
from kic.configuration import Configuration
from kic.errors import InputError
from kic.model import Model
from kic.position import closed
from kic.rows import names_of

_REAL = np.dtype(np.float64)


class Closer:
    """Closes postures for values of the same inputs, each from a state near by; made by `prepare_at`.

    Call it with values (..., P) of the inputs' rows and a closed state (..., S); it returns the closed state
    (..., S) that has these values. It may be called from many threads at once.

    Attributes
    ----------
    inputs : tuple of str
        The rows whose values are given, in order.

    Examples
    --------
    >>> import kic
    >>> m = kic.load("five-bar")
    >>> c = m.at()
    >>> close = m.prepare_at(["A", "E"])
    >>> state = close([c.value("A") + 0.01, c.value("E")], c.state)
    >>> bool(abs(m.prepare(of=["A"])(state).A.value[0] - c.value("A") - 0.01) < 1e-15)
    True
    """

    def __init__(self, model: Model, inputs: str | Iterable[str] | None) -> None:
        model.only_real("prepare_at()", "Ask at() for the posture.")
        self._model = model
        self._names = model.coordinates if inputs is None else names_of(inputs, "inputs")
        for name in self._names:
            if not model.value_rows(name)[1]:
                raise InputError(
                    f"'{name}' includes angular velocities, which have no value that could fix a posture. "
                    "Name rows that have one; poses are given to at().",
                    name=name,
                )
        model.check_number(self._names)
        self._closure = model.closure(self._names)
        self.inputs = self._closure.transfer.labels
        self._sizes = len(self.inputs), model.tree.state_size

    def __call__(self, values: Any, near: Any) -> np.ndarray:
        """Close.

        Parameters
        ----------
        values : (..., P) array_like
            Wanted values of `inputs`.
        near : (..., S) array_like
            Closed states, as `Configuration.state` has them, or a `Configuration`; batches broadcast.

        Returns
        -------
        (..., S) ndarray
            Closed states that have these values.

        Raises
        ------
        InputError
            For arrays of another shape or kind.
        PostureError
            As `Mechanism.at`, which is asked wherever Newton's method is not certain of its branch.
        """
        if isinstance(near, Configuration):
            near = near.state
        if _plain(values, near, self._sizes):  # the hot path
            states, arrived = self._closure.arrive(near[None], values[None])
            if arrived[0]:
                return states[0]
        else:
            values, near = self._real("values", values, 0), self._real("near", near, 1)
        batch = values.shape[:-1]
        if batch != near.shape[:-1]:
            batch = broadcast_batches(values=batch, near=near.shape[:-1])
            values = np.broadcast_to(values, (*batch, self._sizes[0]))
            near = np.broadcast_to(near, (*batch, self._sizes[1]))
        start = near.reshape(-1, self._sizes[1])
        states, arrived = self._closure.arrive(start, values.reshape(-1, self._sizes[0]))
        if not arrived.all():
            trailing("near", near, self._sizes[1])
            inputs = {name: values[..., k] for k, name in enumerate(self.inputs)}
            return closed(self._model, inputs, Configuration(self._model, batch, start.copy()), "raise").state
        return states.reshape(*batch, self._sizes[1])

    def _real(self, name: str, value: Any, which: int) -> np.ndarray:
        """An argument as real numbers (..., n)."""
        a = numbers(name, value)
        if a.dtype != _REAL or a.ndim == 0 or a.shape[-1] != self._sizes[which]:
            raise InputError(
                f"Expected `{name}` to be real numbers of shape (..., {self._sizes[which]}), "
                f"got {a.dtype} of {a.shape}.",
                got=a.shape,
            )
        return a

    def __repr__(self) -> str:
        of = ", ".join(self.inputs)
        return f"closer of '{self._model.drawing.name}' for values (..., {self._sizes[0]}) of {of}"


def _plain(values: Any, near: Any, sizes: tuple[int, int]) -> bool:
    """Whether both are arrays for one posture, as they are in hot loops."""
    return (
        type(values) is np.ndarray
        and type(near) is np.ndarray
        and values.shape == sizes[:1]
        and near.shape == sizes[1:]
        and values.dtype is _REAL
        and near.dtype is _REAL
    )
