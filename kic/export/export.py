"""Export of a question to another language or library."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from kic.errors import invalid
from kic.export.questions import export_traces, one_state
from kic.mechanism import Mechanism
from kic.numerics.arguments import choice, flag, names_of
from kic.prepared import check_options, find_question

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

# targets that are numbers of the question "actuation_map", in place of operations
NUMBERS = {
    "polynomial": "certified_polynomials.certified_polynomials",
    "table": "actuation_table.actuation_table",
}


def export(m: Mechanism, question: str | Iterable[str], to: str, **options: Any) -> Any:
    """Return a question in another language; see `Mechanism.export`."""
    target = choice("to", to, [*TARGETS, *NUMBERS])
    if target in NUMBERS:
        return _numbers(m, question, target, options)
    module, name, own = TARGETS[target]
    emit: Callable[..., Any] = getattr(import_module(f"kic.export.{module}"), name)
    given = {key: options.pop(key) for key in own if key in options}
    if to == "jax" and flag("callback", given.pop("callback", False)):
        from kic.export.jax_callback import jax_callback

        return jax_callback(m, question, **options)
    if to == "fmu":
        options["close"] = True  # importers integrate coordinates
    return emit(export_traces(m, question, own, **options), **given)


def _numbers(m: Mechanism, question: str | Iterable[str], target: str, options: dict[str, Any]) -> Any:
    """Return an actuation map as numbers."""
    if find_question(question, exported=True) != ("actuation_map",):
        raise invalid("question", f"must be 'actuation_map' for '{target}'", question)
    module, _, name = NUMBERS[target].partition(".")
    make = getattr(import_module(f"kic.export.{module}"), name)
    m._model.require_real("export()", "Export the mechanism itself.")
    for key in ("parameters", "outputs", "close", "derivatives"):
        given = options.pop(key)
        given = names_of(given, key) if key in ("parameters", "outputs") else given
        if given or not isinstance(given, tuple | int):
            raise invalid(key, f"must be left out for '{target}'", given)
    one_state(m._model, options["near"])
    options.setdefault("wrt", None)
    check_options(("actuation_map",), make, options)
    return make(m, **options)
