"""Traces as functions of NumPy arrays, for tests and for batches without a compiler."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.errors import InputError, invalid
from kic.export.trace import Argument
from kic.numerics.arrays import broadcast_batches, numbers

if TYPE_CHECKING:
    from kic.export.questions import Export

# batches of at least this size release results early
_LARGE = 100


class ExportedFunction:
    """An exported question as a function of NumPy arrays.

    Call it with the inputs in order, or by name. Each may have leading batch axes; a scalar is accepted for
    an array of size one. The result is a dict of arrays (..., shape) by the names of the outputs.

    Attributes
    ----------
    name : str
        Name of the function.
    inputs, outputs : dict of str to tuple of int
        Names and shapes; inputs `parameters` and `near` have defaults.
    labels : dict of str to tuple of str
        Names along the first axis of each input and output.
    nonzero : dict of str to ndarray
        Sparsity of each output: False for entries that are always zero.
    operations : int
        Number of arithmetic operations of one call.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> f = m.export.coefficients("tip").to_numpy()
    >>> f(m.at({"A": 0.5}).state)["tip.G"].shape
    (3, 1)
    """

    def __init__(self, export: Export) -> None:
        self._export, self.name = export, export.name
        self.inputs = {a.name: a.shape for a in export.inputs}
        self.outputs = {a.name: a.shape for a in export.outputs}
        self.labels = {a.name: a.labels for a in (*export.inputs, *export.outputs)}
        self.nonzero = {
            a.name: np.ones(a.shape, bool) if a.nonzero is None else a.nonzero for a in export.outputs
        }
        self.operations = export.operations

    def __call__(self, *arguments: Any, **named: Any) -> dict[str, np.ndarray]:
        """Return the outputs by name.

        Parameters
        ----------
        *arguments : (..., n) array_like
            Inputs in their order.
        **named : (..., n) array_like
            Inputs by name.

        Returns
        -------
        dict of str to ndarray
            The outputs.

        Raises
        ------
        InputError
            If inputs are missing, unknown or misshaped, or batches do not broadcast.
        """
        given = matched(self.name, self._export.inputs, arguments, named)
        arrays = {}
        for a in self._export.inputs:
            x = numbers(a.name, given[a.name])
            x = x.reshape(a.shape) if x.ndim == 0 and a.size == 1 else x  # one number
            if x.ndim == 0 or x.shape[-1:] != a.shape:
                raise invalid(a.name, f"must have shape (..., {a.shape[0]})", x.shape)
            arrays[a.name] = x
        batch = broadcast_batches(**{name: x.shape[:-1] for name, x in arrays.items()})
        with np.errstate(all="ignore"):
            found = self._export.run(
                np, {k: list(np.moveaxis(x, -1, 0)) for k, x in arrays.items()}, prod(batch) >= _LARGE
            )
        made = {}
        for out, entries in zip(self._export.outputs, found, strict=True):
            whole = [np.broadcast_to(x, batch) for x in entries]
            made[out.name] = (
                np.stack(whole, -1).reshape((*batch, *out.shape)) if whole else np.empty((*batch, *out.shape))
            )
        return made

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}"


def matched(
    function: str, inputs: tuple[Argument, ...], arguments: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Return inputs by name, with defaults for omitted inputs; raise an error for wrong arguments."""
    names = [a.name for a in inputs]
    if len(arguments) > len(names):
        raise InputError(f"`{function}` takes {len(names)} inputs, got {len(arguments)}: {', '.join(names)}.")
    given = dict(zip(names, arguments, strict=False))
    wrong = [key for key in named if key not in names or key in given]
    given |= named
    missing = [a.name for a in inputs if a.name not in given and not defaulted(a)]
    if wrong or missing:
        key = (wrong or missing)[0]
        if not wrong:
            rule = f"`{key}` must be given to `{function}`"
        elif key in names:
            rule = f"`{function}` got `{key}` twice, by position and by name"
        else:
            rule = f"`{function}` has no input `{key}`"
        message = f"{rule}. Its inputs are {', '.join(names)}."
        if key in ("q", "values") and "state" in names:
            message += " Give `Configuration.state`, or export with close=True, which takes coordinates `q`."
        raise InputError(message, key=key)
    return {a.name: given.get(a.name, a.default) for a in inputs}


def defaulted(a: Argument) -> bool:
    """Return True for inputs that may be omitted."""
    return a.name in ("parameters", "near")
