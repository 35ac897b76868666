"""Questions to the kernels: packed once, then run at any states, in batches and in every scalar."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from kic.masses import Loads, Masses
from kic.rows import Rows
from kic.tree import Tree

# rough cost of one posture (microseconds), by which a batch is given to threads
_START, _PER_NUMBER = 0.15, 0.001
_WANT_INERTIA, _WANT_LOADS = 1, 2
_REAL = np.dtype(np.float64)


@cache
def kernel(name: str) -> Any:
    """A kernel entry by name; the compiler is imported when the first is asked for."""
    if name == "kinematics":
        from kic.kernels import kinematics as module
    elif name == "dynamics":
        from kic.kernels import dynamics as module  # type: ignore[no-redef]
    else:
        from kic.kernels import links as module  # type: ignore[no-redef]
    return getattr(module, name)


@cache
def _over_batch() -> Any:
    from kic.kernels.pool import over_batch

    return over_batch


class Question:
    """What is asked of a tree, as the two arrays that the kernels read (see `kic.kernels.layout`).

    Parameters
    ----------
    tree : Tree
        The tree.
    items, vectors : (n, 5) int64, (n, 9) float, optional
        Rows asked for.
    masses, loads : Masses, Loads, optional
        Bodies and loads.
    asked : tuple of int
        Order, rows, coordinates and what is wanted: the plan's second row.
    width : int
        Numbers that the answer takes for one posture.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        rows: Rows | None = None,
        masses: Masses | None = None,
        loads: Loads | None = None,
        asked: tuple[int, int, int, int],
        width: int,
    ) -> None:
        plans: list[np.ndarray] = [tree.cols]
        tables: list[np.ndarray] = [tree.geometry]
        counts = [tree.size, 0, 0, 0, 0]
        if rows is not None:
            plans.append(rows.items)
            tables.append(rows.vectors)
            counts[1] = len(rows.items)
        if masses is not None:
            plans.append(masses.frames[:, None])
            tables.append(masses.numbers)
            counts[2] = len(masses.names)
        if loads is not None:
            plans += [loads.forces, loads.springs]
            tables += [loads.places, loads.spring_numbers, loads.laws, loads.gravity]
            counts[3:] = [len(loads.forces), len(loads.springs)]
        self.plan = np.zeros((2 + sum(map(len, plans)), 5), dtype=np.int64)
        self.plan[0], self.plan[1, :4] = counts, asked
        _fill(self.plan[2:], plans)
        self.numbers = np.zeros((sum(map(len, tables)), 13))
        _fill(self.numbers, tables)
        self.width = width
        order, _, size, _ = asked
        pair = 6 * sum(size**k for k in range(order + 1))
        products = rows is not None and (rows.items[:, 0] >= 5).any()
        # as `kic.kernels.layout` says
        self.scratch = 20 * tree.size + (max(pair, 17 * tree.size) if products or masses is not None else 0)
        self._mobile = tree.size
        self._sums = (6, tree.size + 1, 3 * size ** (order - 1 if order > 1 else 1))
        self._scalars: dict[np.dtype, np.ndarray] = {_REAL: self.numbers}

    def numbers_in(self, dtype: np.dtype) -> np.ndarray:
        """The numbers in a scalar type."""
        found = self._scalars.get(dtype)
        if found is None:
            found = self._scalars[dtype] = self.numbers.astype(dtype)
        return found

    def run(
        self, name: str, states: np.ndarray, T: np.ndarray, other: np.ndarray | None = None
    ) -> np.ndarray:
        """Run a kernel over a batch, writing T (B, …).

        `other` are the tables that the answer is contracted with, or the applied forces; where its first
        axis is the batch, it is cut with it. Symbols run the kernel's own source as plain Python.
        """
        dtype = states.dtype
        count = len(states)
        numbers = self.numbers_in(dtype)
        entry = kernel(name)
        if dtype.kind == "O":
            entry = entry.py_func

        def work(a: int, b: int) -> None:
            part: Any = other if other is None or len(other) != count else other[a:b]
            if part is not None and name != "dynamics":
                part = part, np.empty(self._mobile, np.int64), np.empty(self._sums, dtype)
            entry(self.plan, numbers, states[a:b], part, np.empty(self.scratch, dtype), T[a:b])

        if count > 1 and dtype.kind != "O":
            _over_batch()(work, count, _START + _PER_NUMBER * (T.size // count))
        else:
            work(0, count)
        return T


def _fill(target: np.ndarray, parts: list[np.ndarray]) -> None:
    """Write tables of different widths under one another."""
    start = 0
    for part in parts:
        target[start : start + len(part), : part.shape[1]] = part
        start += len(part)


class TableQuestion(Question):
    """A question whose answer is one table (B, width) with parts of given shapes side by side."""

    def __init__(
        self, tree: Tree, shapes: list[tuple[int, ...]], asked: tuple[int, int, int, int], **of: Any
    ) -> None:
        self.places: list[tuple[int, tuple[int, ...]]] = []
        self._cuts: list[tuple[slice, tuple[int, ...]]] = []
        start = 0
        for shape in shapes:
            self.places.append((start, shape))
            stop = start + prod(shape)
            self._cuts.append((slice(start, stop), shape))
            start = stop
        super().__init__(tree, asked=asked, width=start, **of)

    def split(self, T: np.ndarray, batch: tuple[int, ...]) -> list[np.ndarray]:
        """Views of the table's parts with the batch axes in front."""
        return [T[:, cut].reshape(batch + shape) for cut, shape in self._cuts]


class RowsQuestion(TableQuestion):
    """Values, G, H, D of rows, in the tree's coordinates or contracted with `size` others."""

    def __init__(self, tree: Tree, rows: Rows, order: int, size: int | None = None) -> None:
        columns = tree.size if size is None else size
        shapes = [(rows.height, *(columns,) * k) for k in range(order + 1)]
        super().__init__(tree, shapes, (order, rows.height, columns, 0), rows=rows)
        self.rows = rows
        self.order = order
        self._columns = columns

    def table(
        self, states: np.ndarray, X: np.ndarray | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Table (B, width) at states (B, nq)."""
        T = np.empty((len(states), self.width), states.dtype) if out is None else out
        return self.run("kinematics", states, T, X)

    def place(self, k: int, span: slice) -> tuple[slice, tuple[int, ...]]:
        """Where some rows of the values (k = 0) or of the k-th order stand in a table, and their shape."""
        start, shape = self.places[k]
        height, width = span.stop - span.start, self._columns**k
        start += span.start * width
        return slice(start, start + height * width), (height, *shape[1:])


class DynamicsQuestion(TableQuestion):
    """I*, P*, load and damping in the tree's coordinates; the first or the last two alone if so wanted."""

    def __init__(
        self, tree: Tree, masses: Masses, loads: Loads, inertia: bool = True, loading: bool = True
    ) -> None:
        M = tree.size
        shapes: list[tuple[int, ...]] = [(M, M), (M, M, M)] if inertia else []
        shapes += [(M,), (M, M)] if loading else []
        want = _WANT_INERTIA * inertia | _WANT_LOADS * loading
        super().__init__(tree, shapes, (2, 0, M, want), masses=masses, loads=loads)

    def table(self, states: np.ndarray, applied: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The parts side by side, (B, width); applied forces are (B or 1, n, 3)."""
        T = np.empty((len(states), self.width), states.dtype) if out is None else out
        if applied.dtype != states.dtype or not applied.flags.carray:
            applied = np.require(applied, states.dtype, ["C", "A", "W"])
        return self.run("dynamics", states, T, applied)


class InertiaQuestion(TableQuestion):
    """I* and P* in `size` other coordinates, by contraction."""

    def __init__(self, tree: Tree, masses: Masses, size: int) -> None:
        super().__init__(tree, [(size, size), (size,) * 3], (2, 0, size, _WANT_INERTIA), masses=masses)

    def table(self, states: np.ndarray, X: np.ndarray) -> np.ndarray:
        """I* and P* side by side, (B, width), with the table X of the tree's coordinates."""
        T = np.empty((len(states), 1, self.width), states.dtype)
        return self.run("links", states, T, X)[:, 0]


class ContributionsQuestion(Question):
    """Each body's shares of I* and P*, in the tree's coordinates or in `size` others."""

    def __init__(self, tree: Tree, masses: Masses, size: int | None = None) -> None:
        M, N = tree.size if size is None else size, len(masses.names)
        self.shapes = [(N, M, M), (N, M, M), (N, M, M, M), (N, M, M, M)]
        super().__init__(tree, masses=masses, asked=(2, 0, M, 0), width=2 * M * M * (1 + M))

    def table(self, states: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """I linear, I angular, P linear, P angular side by side, (B, N, width)."""
        T = np.empty((len(states), self.plan[0, 2], self.width), states.dtype)
        return self.run("links", states, T, X)

    def split(self, T: np.ndarray, batch: tuple[int, ...]) -> list[np.ndarray]:
        """Views of the four parts with the batch axes in front."""
        parts, start = [], 0
        for shape in self.shapes:
            width = prod(shape[1:])
            parts.append(T[..., start : start + width].reshape(batch + shape))
            start += width
        return parts
