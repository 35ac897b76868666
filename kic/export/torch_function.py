"""Traces as functions of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from kic.errors import invalid
from kic.export.numpy_function import matched
from kic.export.questions import Export
from kic.numerics.arrays import broadcast_batches
from kic.numerics.optional import import_optional


def torch_function(export: Export) -> Callable[..., dict[str, Any]]:
    """Return a function of tensors, for `torch.autograd`, `torch.func` and `torch.compile`.

    The function takes the inputs, with leading batch axes, in order or by name. It returns a dict of the
    outputs, in the precision and on the device of the inputs. Newton steps are included, so that derivatives
    of all orders account for the closure of the loops.
    """
    torch = import_optional("torch", "torch", "Functions of PyTorch require PyTorch")

    def tensor(name: str, value: Any, **kind: Any) -> Any:
        """Return real numbers as a tensor."""
        try:
            x = torch.as_tensor(value, **({} if hasattr(value, "dtype") else kind))
        except (TypeError, ValueError, RuntimeError):
            raise invalid(name, "must be an array of real numbers", value) from None
        if x.is_complex() or x.dtype == torch.bool:
            raise invalid(name, "must be real numbers", x.dtype)
        return x.to(**kind) if kind else x

    def pair(operation: Callable[..., Any]) -> Callable[..., Any]:
        def of_two(a: Any, b: Any) -> Any:
            like = a if isinstance(a, torch.Tensor) else b  # the other one may be a number
            kind = {"dtype": like.dtype, "device": like.device}
            return operation(torch.as_tensor(a, **kind), torch.as_tensor(b, **kind))

        return of_two

    class Functions:
        cos, sin, sqrt, abs = torch.cos, torch.sin, torch.sqrt, torch.abs
        arctan2, minimum, maximum = map(pair, (torch.arctan2, torch.minimum, torch.maximum))

    def function(*arguments: Any, **named: Any) -> dict[str, Any]:
        given = matched(export.name, export.inputs, arguments, named)
        # lists and defaults adapt to tensors and arrays
        own = {**dict(zip(given, arguments, strict=False)), **named}
        typed = [tensor(key, x) for key, x in own.items() if hasattr(x, "dtype")]
        kinds = [x.dtype for x in typed if x.is_floating_point()] or [torch.get_default_dtype()]
        kind = {"dtype": reduce(torch.promote_types, kinds), "device": typed[0].device if typed else None}
        for a in export.inputs:
            x = tensor(a.name, given[a.name], **kind)
            x = x.reshape(a.shape) if x.ndim == 0 and a.size == 1 else x
            if x.ndim == 0 or tuple(x.shape[-1:]) != a.shape:
                raise invalid(a.name, f"must have shape (..., {a.shape[0]})", tuple(x.shape))
            given[a.name] = x
        batch = broadcast_batches(**{key: tuple(x.shape[:-1]) for key, x in given.items()})
        found = export.run(Functions, {key: list(x.unbind(-1)) for key, x in given.items()})
        made = {}
        for out, entries in zip(export.outputs, found, strict=True):
            whole = [torch.as_tensor(x, **kind).expand(batch) for x in entries]
            stacked = torch.stack(whole, -1) if whole else torch.zeros(0, **kind)
            made[out.name] = stacked.reshape((*batch, *out.shape))
        return made

    function.__name__ = export.name
    return function
