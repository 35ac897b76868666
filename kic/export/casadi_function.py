"""Traces as functions of CasADi."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kic.errors import InputError
from kic.export.c_source import identifier
from kic.export.questions import Export
from kic.export.trace import Argument, Trace
from kic.numerics.arguments import choice
from kic.numerics.optional import import_optional


def casadi_function(export: Export, rootfinder: str | None = None) -> Any:
    """Return a `casadi.Function` with named arguments and sparsity.

    CasADi has matrices only: an output (P, M, M) is a matrix (P, M M) whose columns are those of NumPy's
    ``reshape(P, -1)``. Newton steps are part of the function of SX, so that its derivatives of all orders
    include the closure of the loops and CasADi generates C from them. With a root finder, it is a function of
    MX. CasADi differentiates the root as an implicit function; a closed state is a fixed point of a step.
    With "chords", Newton steps find the root, and two chords from it provide first and second derivatives.
    Third derivatives are NaN.
    """
    casadi = import_optional("casadi", "casadi", "Functions of CasADi require CasADi")
    if rootfinder is None:
        return _function(casadi, export.name, export.inputs, export.outputs, export.run)
    plugin = choice("rootfinder", rootfinder, ("chords", "fast_newton", "newton", "kinsol"))
    if export.step is None or export.certificate is None or export.chords is None:
        raise InputError(
            "`rootfinder` requires close=True. Add it, or leave `rootfinder` out.", key="rootfinder"
        )

    def part(trace: Trace, ending: str) -> Any:
        def run(functions: Any, given: dict[str, Any]) -> list[Any]:
            return trace.run(functions, [given[a.name] for a in trace.inputs])

        return _function(casadi, f"{export.name}_{ending}", trace.inputs, trace.outputs, run)

    name, known = identifier(export.name), export.step.inputs
    step, certificate = part(export.step, "step"), part(export.certificate, "certificate")
    x, *p = (casadi.SX.sym(identifier(a.name), a.size) for a in known)
    rates = [a for a in export.inputs if a.name not in {"near", *(b.name for b in known)}]
    q = casadi.vertcat(*p)
    constant = casadi.SX.sym("constant", q.numel())
    if plugin == "chords":
        moved = x
        for _ in range(export.steps):
            moved = step(moved, *p)[0]
        find = casadi.Function(identifier(f"{name}_closed"), [x, q], [moved], {"is_diff_in": [False, False]})
        # make third derivatives, which chords lack, non-finite
        state = part(export.chords(), "chords")(x, *p)[0] + casadi.sum1(q - constant) ** 2.5
    else:
        find = casadi.rootfinder(
            identifier(f"{name}_closed"), plugin, {"x": x, "p": q, "g": x - step(x, *p)[0]}
        )
        state = x
    results, guard = [], casadi.SX.inf()
    inputs = [*p, *(casadi.SX.sym(identifier(a.name), a.size) for a in rates)]
    if export.answer is not None:
        own = dict(zip([a.name for a in (*known, *rates)], [state, *inputs], strict=True))
        *results, guard = part(export.answer, "answer").call([own[a.name] for a in export.answer.inputs])
    differentiable = {"is_diff_in": [plugin != "chords", False, *[True] * len(inputs)], "never_inline": True}
    given = {a.name: casadi.MX.sym(identifier(a.name), a.size) for a in export.inputs}
    first = [given[a.name] for a in known[1:]]
    closed, branch = find(given["near"], casadi.vertcat(*first)), certificate(given["near"], *first)[1]
    residual, radius, least = certificate(closed, *first)

    def answer(ending: str, outputs: list[Any]) -> list[Any]:
        f = casadi.Function(identifier(f"{name}_{ending}"), [x, constant, *inputs], outputs, differentiable)
        found: list[Any] = f.call([closed, casadi.vertcat(*first), *first, *(given[a.name] for a in rates)])
        return found

    # functions that are differentiated have no other results
    kept = [*answer("results", results), *answer("state", [state])]
    least = casadi.fmin(least, answer("guard", [guard])[0])
    results = [*kept, residual, radius, branch, least]
    names = [[identifier(a.name) for a in group] for group in (export.inputs, export.outputs)]
    # certificates that a caller does not use are left out
    whole: dict[str, Any] = {**_differentiable(export.inputs, export.outputs), "always_inline": True}
    return casadi.Function(name, list(given.values()), results, *names, whole)


def _function(
    casadi: Any, name: str, inputs: Sequence[Argument], outputs: Sequence[Argument], run: Callable[..., Any]
) -> Any:
    """Return a function of SX."""

    class Functions:
        cos, sin, sqrt, abs = casadi.cos, casadi.sin, casadi.sqrt, casadi.fabs
        arctan2, minimum, maximum = casadi.atan2, casadi.fmin, casadi.fmax

    given = {a.name: casadi.SX.sym(identifier(a.name), a.size) for a in inputs}
    found = run(Functions, {key: casadi.vertsplit(x) if x.numel() else [] for key, x in given.items()})
    results = []
    for out, entries in zip(outputs, found, strict=True):
        rows = out.shape[0] if out.shape else 1
        matrix = casadi.SX(rows, out.size // rows if rows else 0)  # without entries
        used = np.ones(out.shape, bool) if out.nonzero is None else out.nonzero
        for k in np.flatnonzero(used):
            matrix[int(k) // matrix.shape[1], int(k) % matrix.shape[1]] = entries[k]
        results.append(matrix)
    names = [[identifier(a.name) for a in group] for group in (inputs, outputs)]
    options = _differentiable(inputs, outputs)
    return casadi.Function(identifier(name), list(given.values()), results, *names, options)


def _differentiable(inputs: Sequence[Argument], outputs: Sequence[Argument]) -> dict[str, Any]:
    """Return the options that exclude residuals and certificates, which may be NaN, from derivatives."""
    fixed = ("near", "residual", "radius", "branch", "guard")
    return {
        key: [a.name not in fixed for a in group]
        for key, group in (("is_diff_in", inputs), ("is_diff_out", outputs))
    }
