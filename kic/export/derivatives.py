"""Derivatives of exported functions, by differentiation of the list of operations."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from kic.errors import invalid
from kic.export.trace import BINARY, UNARY, Argument, Graph, Scalar, Trace, make_trace, needed_nodes
from kic.export.tracer import arctan2
from kic.numerics.graphs import blocks


class _Recording:
    cos, sin, sqrt, abs = map(methodcaller, ("cos", "sin", "sqrt", "__abs__"))
    arctan2 = staticmethod(arctan2)

    @staticmethod
    def minimum(a: Any, b: Any) -> Any:
        return a.minimum(b) if isinstance(a, Scalar) else b.minimum(a)

    @staticmethod
    def maximum(a: Any, b: Any) -> Any:
        return a.maximum(b) if isinstance(a, Scalar) else b.maximum(a)


def with_derivatives(answer: Trace, step: Trace, near: dict[str, np.ndarray], order: int) -> Trace:
    """Extend a trace by derivatives with respect to q and the other inputs along closed states.

    A closed state is a fixed point of the Newton step. The derivative of the step with respect to q is that
    of the state; as a function of the state and q, it can be differentiated again.
    """
    graph = Graph()
    vectors = [k for k, a in enumerate(answer.outputs) if len(a.shape) == 1 and a.size]
    if not vectors:
        remedy = "Its results are not vectors; coefficients of higher order are its derivatives."
        raise invalid("derivatives", f"must be 0 for '{answer.name}'", order, remedy)
    labels = tuple(f"{answer.outputs[k].name}.{label}" for k in vectors for label in answer.outputs[k].labels)
    weights = Argument("weights", (len(labels),), "factors of the vectors in their weighted sum", labels)
    inputs = {a.name: a for a in (*answer.inputs, *step.inputs, *([weights] if order > 1 else []))}
    given: dict[str, Any] = {}
    for n, (name, a) in enumerate(inputs.items()):
        default = np.full(a.shape, 0.7) if a.default is None else a.default
        given[name] = graph.inputs(n, near.get(name, default))
    found = answer.run(_Recording, [given[a.name] for a in answer.inputs])
    moved = step.run(_Recording, [given[a.name] for a in step.inputs])[0]
    made: list[tuple[Argument, Any]] = list(zip(answer.outputs[:-1], found, strict=False))
    slopes = _tangents(graph, moved, {x.index: {n: 1.0} for n, x in enumerate(given["q"])})
    seeds = {x.index: row for x, row in zip(given["state"], slopes, strict=True)}
    spans, size, names = {}, 0, []
    for name in ("q", *(a.name for a in answer.inputs if a.name not in ("state", "q", "parameters"))):
        spans[name] = range(size, size + inputs[name].size)
        seeds |= {x.index: {n: 1.0} for x, n in zip(given[name], spans[name], strict=True)}
        names += [f"{name}.{label}" for label in inputs[name].labels]
        size += inputs[name].size
    for k in vectors:
        out, rows = answer.outputs[k], _tangents(graph, found[k], seeds)
        for name, span in spans.items():
            J = np.array([[row.get(n, 0.0) for n in span] for row in rows], object)
            about = f"[p][n] = d {out.name}[p] / d {name}[n]"
            made.append((Argument(f"{out.name}.d_{name}", J.shape, about, out.labels), J))
    if order > 1:
        ends = [x for k in vectors for x in found[k]]
        slope = _gradient(graph, ends, given["weights"])
        gradient = [0.0] * size
        for index, row in seeds.items():
            for n, x in row.items():
                gradient[n] = gradient[n] + slope.get(index, 0.0) * x
        rows = _tangents(graph, gradient, seeds)
        hessian = np.array([[row.get(n, 0.0) for n in range(size)] for row in rows], object)
        for name, value, about in (
            ("gradient", np.array(gradient, object), "[m]: derivatives of the weighted sum by all inputs"),
            ("hessian", hessian, "[m][n], second derivatives of the weighted sum"),
        ):
            made.append((Argument(name, value.shape, about, tuple(names)), value))
    return make_trace(answer.name, graph, inputs.values(), made)


def system_parts(answer: Trace) -> tuple[np.ndarray, tuple[Trace, ...]]:
    """Return unknowns (entries of the state) and four traces for the system of the outputs "closure" and "q".

    The traces compute (1) the rows of the system, (2) the rows and their Jacobian, (3) values, G and H of the
    answer, and (4) its D. Loops that q does not move are omitted unless the answer depends on them.
    """
    graph, (state,) = Graph(), answer.inputs
    assert state.default is not None  # for the type checker
    x = graph.inputs(0, state.default)
    found = dict(zip([a.name for a in answer.outputs], answer.run(_Recording, [list(x)]), strict=True))
    shapes = {a.name: a.shape for a in answer.outputs}

    def joined(letter: str) -> tuple[Argument, Any]:
        names = [name for name in shapes if name.endswith(f".{letter}")]
        whole = [np.array(found[n], object).reshape(shapes[n]) for n in names]
        made = np.concatenate(whole)
        return Argument(letter, made.shape), made

    rows: list[Any] = [*found["closure"], *found["q"]]
    tangents = _tangents(graph, rows, {s.index: {n: 1.0} for n, s in enumerate(x)})
    asked = [joined(k) for k in ("value", "G", "H", "D")]
    needed = needed_nodes(graph, [graph.index(y) for _, made in asked for y in made.flat])
    used = {graph.nodes[k].b for k in needed if graph.nodes[k].op == "input"}
    pattern = np.array([[n in row for n in range(state.size)] for row in tangents], dtype=bool)
    moving = [
        block
        for block in blocks(pattern)
        if block[0][-1] >= len(found["closure"]) or used & {*block[1].tolist()}
    ]
    kept, entries = (np.sort(np.concatenate(x)) for x in zip(*moving, strict=True))
    W = np.array([[tangents[k].get(n, 0.0) for n in entries.tolist()] for k in kept.tolist()], object)
    r: tuple[Argument, Any] = Argument("rows", (len(kept),)), [rows[k] for k in kept.tolist()]
    jacobian: tuple[Argument, Any] = Argument("W", W.shape), W
    parts = [r], [r, jacobian], asked[:3], asked[3:]
    return entries, tuple(make_trace(answer.name, graph, [state], part) for part in parts)


def _slopes(graph: Graph, k: int) -> list[tuple[int, Any]]:
    """Return the operands of a node, and the derivative with respect to each."""
    op, a, b = graph.nodes[k]
    c = graph.scalars[k]
    x, y = (
        graph.scalars[i] if graph.nodes[i].op != "const" else graph.scalars[i].number
        for i in (a, b if op in BINARY else a)
    )
    if op == "atan2":
        square = x * x + y * y
        return [(a, y / square), (b, -x / square)]
    if op in BINARY:
        if op == "/":
            return [(a, 1 / y), (b, -c / y)]
        return [(a, y if op == "*" else 1.0), (b, {"*": x, "+": 1.0, "-": -1.0}[op])]
    slope = {
        "neg": lambda: -1.0, "cos": lambda: -x.sin(), "sin": lambda: x.cos(), "sqrt": lambda: 0.5 / c,
        "abs": lambda: x / c,
    }  # fmt: skip
    return [(a, slope[op]())]


def _tangents(graph: Graph, ends: Sequence[Any], seeds: dict[int, dict[int, Any]]) -> list[dict[int, Any]]:
    """Return the derivatives of scalars in numbered directions, in forward mode, without zeros."""
    found: dict[int, dict[int, Any]] = {}
    for k in needed_nodes(graph, [x.index for x in ends if isinstance(x, Scalar)]):
        if k in seeds:
            found[k] = seeds[k]
        elif graph.nodes[k].op in BINARY | UNARY:
            row: dict[int, Any] = {}
            for i, slope in _slopes(graph, k):
                for n, x in found.get(i, {}).items():
                    row[n] = row.get(n, 0.0) + slope * x
            found[k] = {n: x for n, x in row.items() if isinstance(x, Scalar) or x != 0}
    return [found.get(x.index, {}) if isinstance(x, Scalar) else {} for x in ends]


def _gradient(graph: Graph, ends: Sequence[Any], weights: Sequence[Any]) -> dict[int, Any]:
    """Return the gradient of a weighted sum with respect to the nodes below it, in reverse mode."""
    found: dict[int, Any] = {}
    for x, weight in zip(ends, weights, strict=True):
        if isinstance(x, Scalar):
            found[x.index] = found.get(x.index, 0.0) + weight
    for k in reversed(needed_nodes(graph, list(found))):
        if k in found and graph.nodes[k].op in BINARY | UNARY:
            for i, slope in _slopes(graph, k):
                found[i] = found.get(i, 0.0) + slope * found[k]
    return found
