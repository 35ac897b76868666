"""Traces as functions of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from kic.errors import invalid
from kic.export.numpy_function import matched
from kic.export.questions import Export
from kic.numerics.optional import import_optional


def torch_function(export: Export) -> Callable[..., dict[str, Any]]:
    """Return a function of tensors, for `torch.autograd`, `torch.func` and `torch.compile`.

    It takes the inputs, of their shapes behind leading batch axes, in their order or by name, and returns a
    dict by the names of the outputs, in the precision and on the device of the inputs. Newton steps are part
    of it, so that derivatives of all orders include the closure of the loops.
    """
    torch = import_optional("torch", "torch", "Functions of PyTorch require PyTorch")

    def function(*arguments: Any, **named: Any) -> dict[str, Any]:
        given = matched(export, arguments, named)
        tensors = [x for x in given.values() if isinstance(x, torch.Tensor)]
        kinds = [x.dtype for x in tensors if x.is_floating_point()] or [torch.get_default_dtype()]
        kind = {"dtype": reduce(torch.promote_types, kinds), "device": tensors[0].device if tensors else None}
        for a in export.inputs:
            x = torch.as_tensor(given[a.name], **kind)
            x = x.reshape(a.shape) if x.ndim == 0 and a.size == 1 else x
            if x.ndim == 0 or tuple(x.shape[-1:]) != a.shape:
                raise invalid(a.name, f"must have shape (..., {a.shape[0]})", tuple(x.shape))
            given[a.name] = x
        batch = torch.broadcast_shapes(*(x.shape[:-1] for x in given.values()))

        def pair(operation: Callable[..., Any]) -> Callable[..., Any]:
            return lambda a, b: operation(torch.as_tensor(a, **kind), torch.as_tensor(b, **kind))

        class Functions:
            cos, sin, sqrt, abs = torch.cos, torch.sin, torch.sqrt, torch.abs
            arctan2, minimum, maximum = map(pair, (torch.arctan2, torch.minimum, torch.maximum))

        found = export.run(Functions, {key: list(x.unbind(-1)) for key, x in given.items()})
        made = {}
        for out, entries in zip(export.outputs, found, strict=True):
            whole = [torch.as_tensor(x, **kind).expand(batch) for x in entries]
            made[out.name] = (torch.stack(whole, -1) if whole else torch.zeros(0, **kind)).reshape(
                (*batch, *out.shape)
            )
        return made

    function.__name__ = export.name
    return function
