"""Traces as expressions of SymPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kic.errors import InputError
from kic.export.questions import Export
from kic.numerics.optional import import_optional


def sympy_expressions(export: Export) -> dict[str, Any]:
    """Return NumPy arrays of expressions by output name, without the guard.

    Symbols are named after coordinates; rates are `name_d`, accelerations `name_dd` and jerks `name_ddd`.
    Parameters keep their names. Symbols of other inputs end with the name of the input, such as
    `name_effort`. Decimal numbers become fractions.
    """
    sympy = import_optional("sympy", "test", "Expressions require SymPy")
    if export.step is not None:
        raise InputError(
            "`close` must be False for SymPy: Newton steps have no closed form. Expressions of a closed "
            "mechanism are in the coordinates of its spanning tree.",
            key="close",
        )

    class Functions:
        cos, sin, sqrt, abs, arctan2 = sympy.cos, sympy.sin, sympy.sqrt, sympy.Abs, sympy.atan2
        minimum, maximum = sympy.Min, sympy.Max

    endings = {"state": "", "parameters": "", "qd": "_d", "qdd": "_dd", "qddd": "_ddd"}
    given = {
        a.name: [sympy.Symbol(f"{label}{endings.get(a.name, f'_{a.name}')}", real=True) for label in a.labels]
        for a in export.inputs
    }
    symbols = [symbol for own in given.values() for symbol in own]
    if len({*symbols}) < len(symbols):
        twice = sorted({str(x) for x in symbols if symbols.count(x) > 1})
        raise InputError(
            f"Symbols of all inputs must be distinct, got {', '.join(twice)} twice. Rename the joint.",
            names=tuple(twice),
        )
    assert export.answer is not None  # for the type checker
    # fractions of decimal numbers keep sums such as 0.3 + 0.2 readable
    exact = [
        node._replace(a=sympy.nan if np.isnan(node.a) else sympy.nsimplify(node.a, rational=True))
        if node.op == "const"
        else node
        for node in export.answer.nodes
    ]
    outputs = export.answer.outputs[:-1]
    found = replace(export.answer, nodes=tuple(exact), outputs=outputs).run(
        Functions, [given[a.name] for a in export.inputs]
    )
    made = {}
    for out, entries in zip(outputs, found, strict=True):
        made[out.name] = np.empty(out.shape, object)
        made[out.name].reshape(-1)[:] = [sympy.sympify(x) for x in entries]
    return made
