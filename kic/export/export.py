"""Export of a question to another language or library."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from kic.export.questions import export_traces
from kic.mechanism import Mechanism
from kic.numerics.arguments import choice, flag

# module and function of each target, and the keywords that are its own
TARGETS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "c": ("c_source", "c_source", ("precision",)),
    "casadi": ("casadi_function", "casadi_function", ("rootfinder",)),
    "fmu": ("fmu", "fmu", ("derivatives",)),
    "jax": ("jax_function", "jax_function", ("callback",)),
    "numpy": ("numpy_function", "ExportedFunction", ()),
    "torch": ("torch_function", "torch_function", ()),
    "sympy": ("sympy_expressions", "sympy_expressions", ()),
}


def export(m: Mechanism, question: str | Iterable[str], to: str, **options: Any) -> Any:
    """Return a question in another language; see `Mechanism.export`."""
    module, name, own = TARGETS[choice("to", to, TARGETS)]
    emit: Callable[..., Any] = getattr(import_module(f"kic.export.{module}"), name)
    given = {key: options.pop(key) for key in own if key in options}
    if to == "jax" and flag("callback", given.pop("callback", False)):
        from kic.export.jax_callback import jax_callback

        return jax_callback(m, question, **options)
    if to == "fmu":
        options["close"] = True  # importers integrate coordinates
    return emit(export_traces(m, question, own, **options), **given)
