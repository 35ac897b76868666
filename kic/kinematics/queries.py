"""Queries to the kernels: packed once, then run at any states, in batches and in every scalar type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cache, cached_property
from importlib import import_module
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kic.errors import InputError
from kic.kernels.layout import (
    BALL,
    BODIES,
    COLUMNS,
    COORDINATE,
    DISTANCE,
    FORCES,
    FRAME_A,
    FRAME_B,
    FRAME_WIDTH,
    GROUP,
    HEADER,
    ITEM,
    ITEMS,
    KIND,
    LINEAR_TERM,
    LOCAL_B,
    NO_FRAME,
    NUMBERS_WIDTH,
    ORDER,
    PARENT,
    PLAN_WIDTH,
    SERIES_WIDTH,
    SIZE,
    SPRINGS,
    TERMS,
)
from kic.kinematics.items import Item
from kic.kinematics.linear_map import LinearMap
from kic.kinematics.outputs import Rows
from kic.kinematics.tree import Tree

if TYPE_CHECKING:
    from kic.dynamics.mass_and_load_tables import Loads, Masses

# approximate cost of a configuration and of each number of its result (µs), for the division among threads
_CONFIGURATION_US, _NUMBER_US = 0.15, 0.001

# modules of the kernel entries
_MODULES = {
    "kinematics": "outputs",
    "linear_kinematics": "outputs",
    "dynamics": "dynamics",
    "linear_dynamics": "dynamics",
    "first_order": "constraint_jacobian",
    "closing": "newton",
    "transfer": "transfer",
    "tree_motion": "motion",
    "linear_tree_motion": "motion",
    "motion_in_coordinates": "motion",
    "output_motion": "motion",
    "tree_stages": "runge_kutta",
    "stages_in_coordinates": "runge_kutta",
    "operational": "operational_space",
    "resolution": "redundancy",
    "links": "body_contributions",
}
_ndarray = np.ndarray


@cache
def kernel(name: str) -> Any:
    """Return a kernel entry by name; the first call imports the compiler."""
    return getattr(import_module(f"kic.kernels.{_MODULES[name]}"), name)


def compiled(entry: Any, *arguments: Any) -> Any:
    """Call a kernel entry, and return a dispatcher limited to its compiled signatures.

    It raises a TypeError for arrays of another type, dimension or memory layout instead of compiling for
    them. This check adds nothing to the time of a call.
    """
    entry(*arguments)
    return _precompiled(entry, tuple(entry.overloads))


@cache
def _precompiled(entry: Any, signatures: tuple[Any, ...]) -> Any:
    """Return a kernel entry with these compiled signatures, which compiles no others.

    It is kept until the process ends: Numba removes compiled functions along with their dispatcher.
    """
    fixed = type(entry)(entry.py_func, targetoptions=entry.targetoptions)
    for signature in signatures:
        fixed.add_overload(entry.overloads[signature])
    fixed.disable_compile()
    return fixed


@cache
def over_batch() -> Any:
    """Return the function that runs a batch on the thread pool."""
    try:
        from kic.kernels import threads as pool
    except RuntimeError:  # Python cannot load thread pools after the main thread has ended
        return lambda work, count, _: work(0, count)

    def run(work: Callable[[int, int], None], count: int, microseconds: float) -> None:
        try:
            pool.over_batch(work, count, microseconds)
        except pool.ThreadCountError as error:
            raise InputError(str(error), key="KIC_THREADS") from None

    return run


class KernelQuery:
    """Query of a tree, as the two arrays that the kernels read (see `kic.kernels.layout`).

    `asked` is the second row of the plan: order, number of rows, number of coordinates, requested parts;
    `system` is the third row. `width` counts the numbers in the result of one configuration. `last` (M +
    1, n) is added to the last rows, those of the joint laws and gravity. `linear` is the map from coordinates
    in which those of the tree are linear; without it, and without a system, they are those of the tree.
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
        system: tuple[int, ...] = (),
        last: np.ndarray | None = None,
        linear: LinearMap | None = None,
    ) -> None:
        plans: list[np.ndarray] = [tree.cols]
        tables: list[np.ndarray] = [tree.geometry]
        counts = np.zeros(PLAN_WIDTH, np.int64)
        counts[COLUMNS] = tree.size
        if rows is not None:
            plans.append(rows.items)
            tables.append(rows.vectors)
            counts[ITEMS] = len(rows.items)
        if masses is not None:
            plans.append(masses.frames[:, None])
            tables.append(masses.numbers)
            counts[BODIES] = len(masses.names)
        if loads is not None:
            plans += [loads.forces, loads.springs]
            tables += [loads.places, loads.spring_numbers, loads.laws, loads.gravity]
            counts[FORCES], counts[SPRINGS] = len(loads.forces), len(loads.springs)
        if last is not None and loads is None:
            tables.append(np.zeros((tree.size + 1, 3)))
        end = sum(map(len, tables))
        if linear is not None:
            plans.append(linear.terms)
            tables.append(linear.factors)
        self.plan = np.zeros((HEADER + sum(map(len, plans)), PLAN_WIDTH), dtype=np.int64)
        self.plan[0], self.plan[1, :4], self.plan[2, : len(system)] = counts, asked, system
        self.plan[1, TERMS] = 0 if linear is None else len(linear.terms)
        _fill(self.plan[HEADER:], plans)
        self.numbers: np.ndarray = np.zeros((sum(map(len, tables)), NUMBERS_WIDTH), tree.scalar)
        _fill(self.numbers, tables)
        self.width = width
        self.tree = tree
        self._kinds = np.zeros(0) if rows is None else rows.items[:, ITEM]
        if last is not None:
            self.numbers[end - len(last) : end, : last.shape[1]] += last
        self._scalars: dict[np.dtype, np.ndarray] = {tree.scalar: self.numbers}

    def omit_frames(self, rows: Rows) -> None:
        """Mark columns whose frames do not affect any row, so that kernels do not compute them.

        Only for kernels of rows. The columns of a ball joint share one frame, which is always kept.
        """
        cols = self.plan[HEADER : HEADER + self.tree.size]
        own = (rows.items[:, ITEM] == COORDINATE) | (rows.items[:, ITEM] == LINEAR_TERM)
        needed = cols[:, KIND] == BALL
        ends = rows.items[~own][:, [FRAME_B, FRAME_A]]
        needed[ends[ends >= 0]] = True
        for n in range(len(cols) - 1, -1, -1):
            if needed[n] and cols[n, PARENT] >= 0:
                needed[cols[n, PARENT]] = True
        cols[~needed, GROUP] = NO_FRAME

    def with_item_vectors(self, start: int, vectors: np.ndarray) -> Self:
        """Return a copy in which items from `start` on have other vectors (n, 3) on their bodies."""
        found, first = copy(self), len(self.tree.geometry) + start
        found.numbers = self.numbers.copy()
        found.numbers[first : first + len(vectors), LOCAL_B : LOCAL_B + 3] = vectors
        found._scalars = {found.numbers.dtype: found.numbers}
        return found

    def numbers_in(self, dtype: np.dtype) -> np.ndarray:
        """Return the numbers in a scalar type."""
        found = self._scalars.get(dtype)
        if found is None:
            if self.tree.scalar.kind == "c" and dtype.kind == "f":  # do not discard a step
                raise InputError(
                    f"'{self.tree.description.name}' carries a complex step and needs complex states. "
                    "Make configurations with its own at().",
                    key="state",
                )
            found = self._scalars[dtype] = self.numbers.astype(dtype)
        return found

    @cached_property
    def scratch(self) -> int:
        """Length of the scratch array of a kernel; see `kic.kernels.layout`."""
        order, size = int(self.plan[1, ORDER]), int(self.plan[1, SIZE])
        frames, pair = FRAME_WIDTH * len(self.tree.cols), 6 * sum(size**k for k in range(order + 1))
        series = SERIES_WIDTH * (len(self.tree.cols) + 1)
        products = bool((self._kinds >= DISTANCE).any())
        return frames + max(series, pair if products or self.plan[0, BODIES] else 0)

    def run(
        self,
        name: str,
        states: np.ndarray,
        T: np.ndarray,
        *others: np.ndarray | None,
        not_finite: list[int] | None = None,
    ) -> np.ndarray:
        """Run a kernel over a batch, writing T (B, …).

        `others` are the arguments between states and scratch; those whose first axis is the batch are divided
        with it. For symbols the source of the kernel runs as plain Python. `not_finite` receives the
        count of members with results that are not finite, for each part of the batch.
        """
        dtype = states.dtype
        count = len(states)
        numbers, length = self.numbers_in(dtype), self.scratch
        entry = kernel(name)
        if dtype.kind == "O":
            entry = entry.py_func
        if count < 2 or dtype.kind == "O":
            found = entry(self.plan, numbers, states, *others, np.empty(length, dtype), T)
            if not_finite is not None and found:
                not_finite.append(found)
            return T

        def work(a: int, b: int) -> None:
            cut = [x[a:b] if x is not None and len(x) == count else x for x in others]
            found = entry(self.plan, numbers, states[a:b], *cut, np.empty(length, dtype), T[a:b])
            if not_finite is not None and found:
                not_finite.append(found)

        over_batch()(work, count, _CONFIGURATION_US + _NUMBER_US * (T.size // count))
        return T


def _fill(target: np.ndarray, parts: list[np.ndarray]) -> None:
    """Write tables of different widths below each other."""
    start = 0
    for part in parts:
        target[start : start + len(part), : part.shape[1]] = part
        start += len(part)


class Table:
    """Arrays of given shapes, side by side in the rows of one array (B, width)."""

    def __init__(self, shapes: list[tuple[int, ...]]) -> None:
        self.places: list[tuple[int, tuple[int, ...]]] = []
        self.width = 0
        for shape in shapes:
            self.places.append((self.width, shape))
            self.width += prod(shape)

    @cached_property
    def views(self) -> Views:
        """Return the views of the arrays."""
        return Views(self.places, self.width)

    def split(self, T: np.ndarray, batch: tuple[int, ...]) -> Sequence[np.ndarray]:
        """Return views of the parts with the batch axes in front."""
        return self.views.of(T, batch)


class Views:
    """Views of arrays at places (start, shape) in the rows of tables (B, width)."""

    def __init__(self, places: Iterable[tuple[int, tuple[int, ...]]], width: int) -> None:
        self._places, self._strides = list(places), (8 * width, 8)
        self._names = list(map(str, range(len(self._places))))
        # fields of structured views are several times cheaper than slices
        layout = {
            "names": self._names,
            "formats": [(np.float64, shape) for _, shape in self._places],
            "offsets": [8 * start for start, _ in self._places],
            "itemsize": 8 * width,
        }
        self._fields = np.dtype(layout)  # type: ignore[call-overload]
        take: Any = itemgetter(*self._names) if len(self._names) > 1 else self._take_each
        self._take: Callable[[np.ndarray], Sequence[np.ndarray]] = take

    def _take_each(self, seen: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(seen[name] for name in self._names)

    def of(self, T: np.ndarray, batch: tuple[int, ...]) -> Sequence[np.ndarray]:
        """Return the views of a table, with the batch axes in front."""
        if T.dtype.char != "d" or T.strides != self._strides or not T.size:
            return [T[:, a : a + prod(shape)].reshape(batch + shape) for a, shape in self._places]
        return self.of_real(T, batch)

    def of_real(self, T: np.ndarray, batch: tuple[int, ...]) -> Sequence[np.ndarray]:
        """Return the views of a contiguous table of float64 that is not empty."""
        return self._take(_ndarray(batch, self._fields, T))


class OutputTable(Table):
    """Values, G, H and D of rows with respect to a number of coordinates."""

    def __init__(self, rows: Rows, order: int, columns: int) -> None:
        super().__init__([(rows.height, *(columns,) * k) for k in range(order + 1)])
        self.rows, self.order, self.columns = rows, order, columns

    def place(self, k: int, span: slice) -> tuple[int, tuple[int, ...]]:
        """Return start and shape of some rows of the values (k = 0) or of order k."""
        start, shape = self.places[k]
        return start + span.start * self.columns**k, (span.stop - span.start, *shape[1:])


def _moved_by_common_columns(tree: Tree, item: Item) -> bool:
    """Return True if columns that carry both frames of an item move its rows."""
    if item.kind >= DISTANCE or item.frame_a < 0:
        return False
    above = []
    for n in (item.frame_a, item.frame_b):
        path = set()
        while n >= 0:
            path.add(n)
            n = int(tree.cols[n, PARENT])
        above.append(path)
    return bool(above[0] & above[1])


class OutputQuery(KernelQuery):
    """Query of values, G, H and D of rows in the coordinates of the tree, or in others of a linear map."""

    def __init__(self, tree: Tree, rows: Rows, order: int, linear: LinearMap | None = None) -> None:
        size = tree.size if linear is None else linear.size
        self.layout = OutputTable(rows, order, size)
        self.entry = "kinematics" if linear is None else "linear_kinematics"
        if linear is None and order == 1 and not any(_moved_by_common_columns(tree, i) for i in rows.source):
            self.entry = "first_order"  # compiles sooner
        super().__init__(
            tree,
            rows=rows,
            asked=(order, rows.height, size, 0),
            width=self.layout.width,
            system=(len(rows.items), rows.height),
            linear=linear,
        )
        self.omit_frames(rows)

    def table(
        self, states: np.ndarray, out: np.ndarray | None = None, not_finite: list[int] | None = None
    ) -> np.ndarray:
        """Return the table (B, width) at states (B, S)."""
        T = np.empty((len(states), self.width), states.dtype) if out is None else out
        return self.run(self.entry, states, T, not_finite=not_finite)

    def motion(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return zeros, then derivatives along motions x (B, 3, M) of the tree: (B, order + 1, height)."""
        size, count, height = self.tree.size, self.layout.order + 1, self.layout.rows.height
        T = np.empty((len(states), count * height), states.dtype)
        self.run("output_motion", states, T, np.ascontiguousarray(x.reshape(len(states), 3 * size)))
        return T.reshape(len(states), count, height)
