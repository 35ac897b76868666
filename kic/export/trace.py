"""Traces: a question as a list of operations on scalars, from one run of the kernels on recording scalars.

A recording scalar has a number and a node. Branches of the kernels depend on the number, and operations add
nodes. A test for zero depends on the node: only constants are zero. Equal operations are one node
(hash-consing), operations on constants are computed at once, and signs move outwards, so that a product of
opposite sign is the same node.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kic.kernels import layout as lay

# operations of two operands, of one, and the leaves: (input, argument, entry) and (const, number, 0)
BINARY = {"+", "-", "*", "/", "atan2", "min", "max"}
UNARY = {"neg", "cos", "sin", "sqrt", "abs"}


class Node(NamedTuple):
    """An operation: its name and the indices of its operands; for leaves see `BINARY`."""

    op: str
    a: Any
    b: Any


class Graph:
    """Nodes of a trace in the order of their creation, with their values."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.scalars: list[Scalar] = []
        # sizes of divisors, by their nodes
        self.wholes: dict[int, Any] = {}
        self._known: dict[tuple[str, Any, Any], Scalar] = {}

    def node(self, op: str, a: Any, b: Any, number: float) -> Scalar:
        """Return the scalar of a node; equal nodes are created only once."""
        key = (op, a, b)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Scalar(self, len(self.nodes), number, op, a, b)
            self.nodes.append(Node(op, a, b))
            self.scalars.append(found)
        return found

    def inputs(self, argument: int, numbers: np.ndarray) -> np.ndarray:
        """Return the scalars of an argument, in an array shaped like `numbers`."""
        made = np.empty(numbers.shape, object)
        for k, x in enumerate(numbers.flat):
            made.flat[k] = self.node("input", argument, k, float(x))
        return made

    def index(self, x: Any) -> int:
        """Return the node of a scalar or a constant."""
        return x.index if type(x) is Scalar else self.node("const", float(x), 0, float(x)).index

    def pair(self, op: str, a: Any, b: Any, number: float) -> Scalar:
        """Return the node of an operation of two operands; operands of sums and products are sorted."""
        i, j = self.index(a), self.index(b)
        return self.node(op, *((j, i) if i > j and op in "+*" else (i, j)), number)


def _is_constant(x: Any) -> bool:
    return type(x) is not Scalar


def _add(a: Any, b: Any) -> Any:
    if _is_constant(b):
        a, b = b, a
    if _is_constant(a):
        if _is_constant(b):
            return float(a) + float(b)
        if a == 0:
            return b
    elif a.op == "neg" and b.op != "neg":
        a, b = b, a
    if type(b) is Scalar and b.op == "neg":
        inner = b.graph.scalars[b.a]
        if type(a) is Scalar and a.op == "neg":
            return -_add(inner, a.graph.scalars[a.a])
        return _subtract(a, inner)
    return b.graph.pair("+", a, b, float(a) + b.number)


def _subtract(a: Any, b: Any) -> Any:
    if a is b:
        return 0.0
    if _is_constant(b):
        return float(a) - float(b) if _is_constant(a) else _add(a, -float(b))
    if b.op == "neg":
        return _add(a, b.graph.scalars[b.a])
    if _is_constant(a):
        return -b if a == 0 else b.graph.pair("-", a, b, float(a) - b.number)
    if a.op == "neg":
        return -_add(a.graph.scalars[a.a], b)
    if a.index > b.index:
        return -b.graph.pair("-", b, a, b.number - a.number)
    return a.graph.pair("-", a, b, a.number - b.number)


def _multiply(a: Any, b: Any) -> Any:
    if _is_constant(b):
        a, b = b, a
    if _is_constant(a):
        a = float(a)
        if _is_constant(b):
            return a * float(b)
        if a == 0:
            return 0.0
        if a == 1:
            return b
        if a < 0:
            return -_multiply(-a, b)
        if b.op == "neg":
            return -_multiply(a, b.graph.scalars[b.a])
        if b.op == "*" and b.graph.nodes[b.a].op == "const":
            return _multiply(a * b.graph.nodes[b.a].a, b.graph.scalars[b.b])
        if b.op == "*" and b.graph.nodes[b.b].op == "const":
            return _multiply(a * b.graph.nodes[b.b].a, b.graph.scalars[b.a])
        return b.graph.pair("*", a, b, a * b.number)
    if a.op == "neg":
        return -_multiply(a.graph.scalars[a.a], b)
    if b.op == "neg":
        return -_multiply(a, b.graph.scalars[b.a])
    return a.graph.pair("*", a, b, a.number * b.number)


def _divide(a: Any, b: Any) -> Any:
    if _is_constant(b):
        return _multiply(a, 1.0 / float(b)) if b != 0 else float("nan")
    if a is b:
        return 1.0
    if _is_constant(a) and a == 0:
        return 0.0
    if b.op == "neg":
        return -_divide(a, b.graph.scalars[b.a])
    if _is_constant(a) and a < 0:
        return -_divide(-a, b)
    if type(a) is Scalar and a.op == "neg":
        return -_divide(a.graph.scalars[a.a], b)
    return b.graph.pair("/", a, b, float(a) / b.number if b.number else float("nan"))


class Scalar:
    """A scalar that records the operations on it: a number, and a node of a graph."""

    __slots__ = ("a", "b", "graph", "index", "number", "op")

    def __init__(self, graph: Graph, index: int, number: float, op: str, a: Any, b: Any) -> None:
        self.graph, self.index, self.number, self.op, self.a, self.b = graph, index, number, op, a, b

    def __add__(self, other: Any) -> Any:
        return _add(self, other)

    def __radd__(self, other: Any) -> Any:
        return _add(other, self)

    def __sub__(self, other: Any) -> Any:
        return _subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return _subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return _multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return _multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return _divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _divide(other, self)

    def __neg__(self) -> Scalar:
        if self.op == "neg":
            return self.graph.scalars[self.a]
        return self.graph.node("neg", self.index, -1, -self.number)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        inner = self.graph.scalars[self.a] if self.op == "neg" else self
        return self.graph.node("abs", inner.index, -1, abs(self.number))

    def __pow__(self, exponent: int) -> Any:
        if exponent != 2:
            return NotImplemented
        return _multiply(self, self)

    def cos(self) -> Scalar:
        """Return the cosine."""
        inner = self.graph.scalars[self.a] if self.op == "neg" else self
        return self.graph.node("cos", inner.index, -1, math.cos(self.number))

    def sin(self) -> Scalar:
        """Return the sine."""
        if self.op == "neg":
            return -self.graph.scalars[self.a].sin()
        return self.graph.node("sin", self.index, -1, math.sin(self.number))

    def sqrt(self) -> Scalar:
        """Return the square root."""
        return self.graph.node(
            "sqrt", self.index, -1, math.sqrt(self.number) if self.number >= 0 else math.nan
        )

    def arctan2(self, other: Any) -> Scalar:
        """Return the angle of the point (other, self)."""
        return self.graph.pair("atan2", self, other, math.atan2(self.number, float(other)))

    def share_of(self, whole: Any) -> Scalar:
        """Measure this scalar as a share of another in guards."""
        self.graph.wholes[self.index] = whole
        return self

    def minimum(self, other: Any) -> Scalar:
        """Record the minimum; either operand may be smaller for other inputs."""
        return self.graph.pair("min", self, other, min(self.number, float(other)))

    def maximum(self, other: Any) -> Scalar:
        """Record the maximum; either operand may be larger for other inputs."""
        return self.graph.pair("max", self, other, max(self.number, float(other)))

    # branches

    def __float__(self) -> float:
        return self.number

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return self.index

    def __eq__(self, other: object) -> bool:
        return self is other

    def __lt__(self, other: Any) -> bool:
        return self.number < float(other)

    def __le__(self, other: Any) -> bool:
        return self.number <= float(other)

    def __gt__(self, other: Any) -> bool:
        return self.number > float(other)

    def __ge__(self, other: Any) -> bool:
        return self.number >= float(other)

    def __repr__(self) -> str:
        return f"<{self.op} {self.number:g}>"


@dataclass(frozen=True)
class Argument:
    """An input or output of a trace.

    Attributes
    ----------
    name : str
        Its name, such as "state" or "tip.G".
    shape : tuple of int
        Its shape.
    about : str
        Meaning, index order and units.
    labels : tuple of str
        Names along the first axis.
    default : ndarray or None
        Value that an input has unless it is given.
    entries : tuple of int
        For an output, the node of each entry in C order.
    nonzero : ndarray or None
        For an output, True for entries that are not always zero.
    """

    name: str
    shape: tuple[int, ...]
    about: str = ""
    labels: tuple[str, ...] = ()
    default: np.ndarray | None = None
    entries: tuple[int, ...] = ()
    nonzero: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of its entries."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Trace:
    """A list of operations with named inputs and outputs.

    Attributes
    ----------
    name : str
        Name of the function.
    nodes : tuple of Node
        Operations, each after its operands.
    inputs, outputs : tuple of Argument
        Arguments and results. The last result is "guard": the smallest ratio of a divisor, such as a pivot,
        to its bound, which is its value at the chosen configuration times `GOOD_PIVOT` of the kernels. Below
        one, results may have lost digits; choose another configuration.
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    @cached_property
    def operations(self) -> int:
        """Number of arithmetic operations."""
        return sum(node.op not in ("input", "const", "neg") for node in self.nodes)

    @cached_property
    def _dropped(self) -> list[list[int]]:
        """List, for each node, of the nodes that are not needed after it."""
        last = list(range(len(self.nodes)))
        for n, (op, a, b) in enumerate(self.nodes):
            for k in (a, b) if op in BINARY else (a,) if op in UNARY else ():
                last[k] = n
        kept, found = {k for out in self.outputs for k in out.entries}, [list[int]() for _ in last]
        for k, n in enumerate(last):
            if k not in kept:
                found[n].append(k)
        return found

    @cached_property
    def width(self) -> int:
        """Largest number of results that are needed simultaneously."""
        return int(np.cumsum([1 - len(dropped) for dropped in self._dropped]).max(initial=0)) + 1

    def run(self, functions: Any, inputs: Sequence[Sequence[Any]], large: bool = False) -> list[list[Any]]:
        """Compute the entries of the outputs in the arithmetic of any library.

        `functions` has cos, sin, sqrt, abs, arctan2, minimum and maximum; `inputs` are entries of the inputs.
        With `large`, results are released after their last use; for small arrays this costs time.
        """
        f: dict[str, Callable[..., Any]] = {
            "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
            "atan2": functions.arctan2, "min": functions.minimum, "max": functions.maximum,
        }  # fmt: skip
        g: dict[str, Callable[[Any], Any]] = {
            "neg": operator.neg, "cos": functions.cos, "sin": functions.sin, "sqrt": functions.sqrt,
            "abs": functions.abs,
        }  # fmt: skip
        x: list[Any] = []
        pieces: Any = zip(zip(self.nodes), self._dropped, strict=True) if large else [(self.nodes, ())]
        for nodes, dropped in pieces:
            for op, a, b in nodes:
                if op in f:
                    x.append(f[op](x[a], x[b]))
                elif op in g:
                    x.append(g[op](x[a]))
                else:
                    x.append(inputs[a][b] if op == "input" else a)
            for k in dropped:
                x[k] = None
        return [[x[k] for k in out.entries] for out in self.outputs]


def make_trace(
    name: str, graph: Graph, inputs: Iterable[Argument], outputs: Iterable[tuple[Argument, Any]]
) -> Trace:
    """Return the trace of the nodes on which the outputs, arrays of scalars, and the guard depend."""
    results = []
    for out, a in outputs:
        a = np.asarray(a, object).reshape(out.shape)
        results.append((out, [graph.index(x) for x in a.flat]))
    guard = _guard(graph, needed_nodes(graph, [k for _, entries in results for k in entries]))
    about = "smallest ratio of a divisor to its bound; results with a guard below one may have lost digits"
    results.append((Argument("guard", (), about), [graph.index(guard)]))
    needed = needed_nodes(graph, [k for _, entries in results for k in entries])
    place = {k: n for n, k in enumerate(needed)}
    nodes = []
    for k in needed:
        op, a, b = graph.nodes[k]
        if op in BINARY:
            a, b = place[a], place[b]
        elif op in UNARY:
            a = place[a]
        nodes.append(Node(op, a, b))
    made = []
    for out, entries in results:
        nonzero = np.array([graph.nodes[k][:2] != ("const", 0.0) for k in entries], bool).reshape(out.shape)
        made.append(replace(out, entries=tuple(place[k] for k in entries), nonzero=nonzero))
    return Trace(name, tuple(nodes), tuple(inputs), tuple(made))


def needed_nodes(graph: Graph, ends: list[int]) -> list[int]:
    """Return the nodes on which `ends` depend, including these, in increasing order."""
    found, stack = set(ends), list(ends)
    while stack:
        op, a, b = graph.nodes[stack.pop()]
        for k in (a, b) if op in BINARY else (a,) if op in UNARY else ():
            if k not in found:
                found.add(k)
                stack.append(k)
    return sorted(found)


def _guard(graph: Graph, needed: list[int]) -> Any:
    """Return the smallest ratio of a divisor to its bound."""
    guard: Any = 1 / lay.GOOD_PIVOT
    for k in dict.fromkeys(graph.nodes[k].b for k in needed if graph.nodes[k].op == "/"):
        share = abs(graph.scalars[k]) / abs(graph.wholes.get(k, 1.0))
        if _is_constant(share):
            continue
        ratio = share * (1 / (lay.GOOD_PIVOT * share.number))
        guard = ratio if _is_constant(guard) else guard.minimum(ratio)
    return guard
