"""Queries to the kernels: packed once, then run at any states, in batches and in every scalar type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import product
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from kic.errors import InputError
from kic.kernels import layout as lay
from kic.kinematics.euler import check_gimbal, gimbal_errors
from kic.kinematics.items import OF_COLUMN, Item
from kic.kinematics.linear_map import LinearMap
from kic.kinematics.outputs import Rows
from kic.kinematics.tree import Tree

if TYPE_CHECKING:
    from kic.dynamics.mass_and_load_tables import Loads, Masses

# approximate cost of a configuration and of each number of its result (µs), for the division among threads
_CONFIGURATION_US, _NUMBER_US = 0.15, 0.001
# estimated cost of a small batch (µs), which is one call of a kernel
_SMALL_US = 200.0

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
    "feedback": "row_feedback",
    "links": "body_contributions",
}
# functions of a plan that return the length of the scratch array, or the ends of its parts
_SCRATCH = {
    "transfer": "scratch_parts",
    "tree_motion": "tree_places",
    "linear_tree_motion": "tree_places",
    "motion_in_coordinates": "motion_scratch",
}
# numbers in the results of one configuration: NumPy describes views of less than 2 GiB
RESULT_NUMBERS_MAX = 2**28 - 1
_ndarray = np.ndarray


def _module(entry: str) -> Any:
    """Return the module of a kernel entry; without a library, the first call imports the compiler."""
    return import_module(f"kic.kernels.{_MODULES[entry]}")


@cache
def kernel(name: str) -> Any:
    """Return a kernel entry by name."""
    return getattr(_module(name), name)


def compiled(entry: Any, *arguments: Any) -> Any:
    """Call a kernel entry, and return a dispatcher limited to its compiled signatures.

    It raises a TypeError for arrays of another type, dimension or memory layout instead of compiling for
    them. This check adds nothing to the time of a call.
    """
    fixed = getattr(entry, "precompiled", None)
    if fixed is not None:  # of a library, which may lack these types
        with suppress(TypeError):
            fixed(*arguments)
            return fixed
        from kic.kernels.jit import compiler

        entry = compiler().dispatcher(entry.py_func)
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

    return pool.over_batch


class Query:
    """Query of one kernel at any states: its entry, the two arrays that it reads, and the results' layout.

    For the arrays see `kic.kernels.layout`. `asked` is the second row of the plan: order, number of rows,
    number of coordinates, requested parts; `system` is the third row. `last` (M + 1, n) is added to the last
    rows, those of the joint laws and gravity. `linear` maps the coordinates linearly to those of the tree;
    without it, and without a system, they are the coordinates of the tree.

    Attributes
    ----------
    entry : str
        Name of the kernel.
    layout : Layout
        Layout of the results of one configuration.
    cost_us : float
        Estimated cost of one configuration (µs), for the division among threads.
    scalars : dict of dtype to ndarray
        The numbers in the scalar types of the states so far.
    """

    def __init__(
        self,
        tree: Tree,
        entry: str,
        layout: Layout,
        *,
        rows: Rows | None = None,
        masses: Masses | None = None,
        loads: Loads | None = None,
        asked: tuple[int, int, int, int],
        system: tuple[int, ...] = (),
        last: np.ndarray | None = None,
        linear: LinearMap | None = None,
        cost_us: float | None = None,
    ) -> None:
        plans: list[np.ndarray] = [tree.cols]
        tables: list[np.ndarray] = [tree.geometry]
        counts = np.zeros(lay.PLAN_WIDTH, np.int64)
        counts[lay.COLUMNS] = tree.size
        if rows is not None:
            plans.append(rows.items)
            tables.append(rows.vectors)
            counts[lay.ITEMS] = len(rows.items)
        if masses is not None:
            plans.append(masses.frames[:, None])
            tables.append(masses.numbers)
            counts[lay.BODIES] = len(masses.names)
        if loads is not None:
            plans += [loads.forces, loads.springs]
            tables += [loads.places, loads.spring_numbers, loads.laws, loads.gravity]
            counts[lay.FORCES], counts[lay.SPRINGS] = len(loads.forces), len(loads.springs)
        if last is not None and loads is None:
            tables.append(np.zeros((tree.size + 1, 3)))
        end = sum(map(len, tables))
        if linear is not None:
            plans.append(linear.terms)
            tables.append(linear.factors)
        self.plan = np.zeros((lay.HEADER + sum(map(len, plans)), lay.PLAN_WIDTH), dtype=np.int64)
        self.plan[0], self.plan[1, :4], self.plan[2, : len(system)] = counts, asked, system
        self.plan[1, lay.TERMS] = 0 if linear is None else len(linear.terms)
        self.numbers: np.ndarray = np.zeros((sum(map(len, tables)), lay.NUMBERS_WIDTH), tree.scalar)
        # tables of different widths below each other
        for target, parts in ((self.plan[lay.HEADER :], plans), (self.numbers, tables)):
            start = 0
            for part in parts:
                target[start : start + len(part), : part.shape[1]] = part
                start += len(part)
        self.tree, self.entry, self.layout, self.order = tree, entry, layout, asked[0]
        self.cost_us = _CONFIGURATION_US + _NUMBER_US * layout.width if cost_us is None else cost_us
        self._kinds = np.zeros(0) if rows is None else rows.kinds
        if last is not None:
            self.numbers[end - len(last) : end, : last.shape[1]] += last
        self.scalars: dict[np.dtype, np.ndarray] = {tree.scalar: self.numbers}

    @property
    def small_max(self) -> int:
        """Largest size of a small batch."""
        return int(_SMALL_US / self.cost_us)

    def omit_frames(self, rows: Rows) -> None:
        """Mark columns whose frames do not affect any row, so that kernels do not compute them.

        Only for kernels of rows. The columns of a ball joint share one frame, which is always kept.
        """
        cols = self.plan[lay.HEADER : lay.HEADER + self.tree.size]
        needed = cols[:, lay.KIND] == lay.BALL
        ends = rows.items[~OF_COLUMN[rows.kinds]][:, [lay.FRAME_B, lay.FRAME_A]]
        needed[ends[ends >= 0]] = True
        for n in range(len(cols) - 1, -1, -1):
            if needed[n] and cols[n, lay.PARENT] >= 0:
                needed[cols[n, lay.PARENT]] = True
        cols[~needed, lay.GROUP] = lay.NO_FRAME

    def with_item_vectors(self, start: int, vectors: np.ndarray) -> Self:
        """Return a copy in which items from `start` on have other vectors (n, 3) on their bodies."""
        found, first = copy(self), len(self.tree.geometry) + start
        found.numbers = self.numbers.copy()
        found.numbers[first : first + len(vectors), lay.LOCAL_B : lay.LOCAL_B + 3] = vectors
        found.scalars = {found.numbers.dtype: found.numbers}
        return found

    def numbers_in(self, dtype: np.dtype) -> np.ndarray:
        """Return the numbers of the query in a scalar type."""
        found = self.scalars.get(dtype)
        if found is None:
            if self.tree.scalar.kind == "c" and dtype.kind == "f":  # do not discard a step
                raise InputError(
                    f"'{self.tree.description.name}' carries a complex step and needs complex states. "
                    "Make configurations with its own at().",
                    key="state",
                )
            found = self.scalars[dtype] = self.numbers.astype(dtype)
        return found

    @cached_property
    def scratch(self) -> int:
        """Length of the scratch array of the kernel; see `kic.kernels.layout`."""
        if self.entry in _SCRATCH:
            return int(np.ravel(getattr(_module(self.entry), _SCRATCH[self.entry])(self.plan))[-1])
        order, size, mobile = int(self.plan[1, lay.ORDER]), int(self.plan[1, lay.SIZE]), len(self.tree.cols)
        pair = 6 * sum(size**k for k in range(order + 1))
        if self.entry == "links":  # with the tables of the frames for other coordinates
            return 20 * mobile + pair + (mobile + 1) * (6 * size + 15 * size * size)
        series, products = lay.SERIES_WIDTH * (mobile + 1), bool((self._kinds >= lay.DISTANCE).any())
        # the loads of the tree, for other coordinates
        loads = mobile * (1 + mobile) if self.entry == "linear_dynamics" else 0
        return (
            lay.FRAME_WIDTH * mobile
            + max(series, pair if products or self.plan[0, lay.BODIES] else 0)
            + loads
        )

    @cached_property
    def closing_scratch(self) -> int:
        """Length of the scratch array of the kernel that moves closed states."""
        return int(_module("closing").closing_scratch(self.plan))

    def over_members(self, work: Callable[[int, int], None], count: int) -> None:
        """Call ``work(start, stop)`` on parts of a batch, on the thread pool if it is large."""
        if count > 1:
            over_batch()(work, count, self.cost_us)
        elif count:
            work(0, 1)

    def run(
        self, states: np.ndarray, *others: np.ndarray | None, out: np.ndarray | None = None, entry: str = ""
    ) -> np.ndarray:
        """Return the table (B, width) of a kernel of the tree at states (B, S).

        `others` are the arguments between states and scratch; those whose first axis is the batch are divided
        with it. For symbols the source of the kernel runs as plain Python. `entry` is another kernel of the
        same arrays, which writes `out`.
        """
        dtype, count = states.dtype, len(states)
        T = self.layout.empty(count, dtype) if out is None else out
        numbers, length, function = self.numbers_in(dtype), self.scratch, kernel(entry or self.entry)
        if dtype.kind == "O" or count < 2:
            function = function.py_func if dtype.kind == "O" else function
            if count:
                function(self.plan, numbers, states, *others, np.empty(length, dtype), T)
            return T
        states = np.ascontiguousarray(states)  # the library has kernels for no other arrays

        def work(a: int, b: int) -> None:
            cut = [x[a:b] if x is not None and len(x) == count else x for x in others]
            function(self.plan, numbers, states[a:b], *cut, np.empty(length, dtype), T[a:b])

        over_batch()(work, count, self.cost_us)
        return T

    def arrays(self, states: np.ndarray, *others: np.ndarray | None) -> Sequence[np.ndarray]:
        """Return the results (B, …) of a kernel of the tree at states (B, S), one array for each block."""
        return self.layout.split(self.run(states, *others), (len(states),))

    @cached_property
    def motion_scratch(self) -> int:
        """Length of the scratch array of the kernel `output_motion`."""
        return int(_module("output_motion").output_scratch(self.plan)[-1])

    def motion(self, states: np.ndarray, rates: Iterable[np.ndarray]) -> np.ndarray:
        """Return values and derivatives (B, 4, height) of rows, along three rates (B, M) of the tree."""
        dtype, shape = states.dtype, (len(states), self.order + 1, self.layout.rows.height)
        T, function, numbers = np.empty(shape, dtype), kernel("output_motion"), self.numbers_in(dtype)
        first, second, third = rates
        if dtype.kind == "O":
            function = function.py_func

        def work(a: int, b: int) -> None:
            motion = first[a:b].ravel(), second[a:b].ravel(), third[a:b].ravel()
            scratch, own = np.empty(self.motion_scratch, dtype), T[a:b].reshape(-1)
            function(self.plan, numbers, states[a:b].ravel(), *motion, scratch, own)

        self.over_members(work, len(states))
        return T


class Layout:
    """Layout of arrays in the rows of tables (B, width): their starts and shapes.

    `rows` are the output rows of values, G, H and D; None for other results.
    """

    def __init__(self, shapes: Iterable[tuple[int, ...]], rows: Rows | None = None) -> None:
        self.places: list[tuple[int, tuple[int, ...]]] = []
        self.width, self.rows = 0, cast("Any", rows)
        for shape in shapes:  # side by side
            self.places.append((self.width, shape))
            self.width += prod(shape)
        self._strides = (8 * self.width, 8)

    @cached_property
    def _fields(self) -> tuple[np.dtype, Callable[[np.ndarray], Sequence[np.ndarray]]]:
        # fields of structured views are several times cheaper than slices
        names = list(map(str, range(len(self.places))))
        layout = {
            "names": names,
            "formats": [(np.float64, shape) for _, shape in self.places],
            "offsets": [8 * start for start, _ in self.places],
            "itemsize": 8 * self.width,
        }
        take: Any = itemgetter(*names) if len(names) > 1 else partial(_each, names)
        return np.dtype(layout), take  # type: ignore[call-overload]

    def check_size(self) -> None:
        """Raise an error if the arrays of one configuration are too large for NumPy's structured views."""
        if self.width > RESULT_NUMBERS_MAX:
            message = (
                f"The results of one configuration must have at most {RESULT_NUMBERS_MAX:,} numbers (2 GiB), "
                f"got {self.width:,}: {', '.join(str(shape) for _, shape in self.places)}. Request a lower "
                "`order`, fewer outputs or fewer coordinates in `wrt`, or motions and efforts, which need no "
                "tensors."
            )
            raise InputError(message, got=self.width, limit=RESULT_NUMBERS_MAX)

    def empty(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Return a new table (B, width), or raise an error if it is too large."""
        if self.width > RESULT_NUMBERS_MAX:
            self.check_size()
        return np.empty((count, self.width), dtype)

    def split(self, T: np.ndarray, batch: tuple[int, ...]) -> Sequence[np.ndarray]:
        """Return views of the arrays in a table, with the batch axes first."""
        if T.dtype.char != "d" or T.strides != self._strides or not T.size:
            return [T[:, a : a + prod(shape)].reshape(batch + shape) for a, shape in self.places]
        fields, take = self._fields
        return take(_ndarray(batch, fields, T))

    def views(self, T: np.ndarray, batch: tuple[int, ...]) -> Sequence[np.ndarray]:
        """Return the views of `split` in a contiguous, nonempty table of float64."""
        fields, take = self._fields
        return take(_ndarray(batch, fields, T))

    def of_rows(self, spans: Iterable[slice], orders: Iterable[int]) -> Layout:
        """Return the layout of selected rows and orders (0 for values) in the same tables."""
        found = Layout(())
        found.width, found._strides = self.width, self._strides
        for span, k in product(spans, orders):
            start, shape = self.places[k]
            place = start + span.start * prod(shape[1:]), (span.stop - span.start, *shape[1:])
            found.places.append(place)
        return found

    def check_gimbal(self, name: str, T: np.ndarray) -> np.ndarray | None:
        """Return the errors (B,) of Euler angles in a table of the mechanism `name`; None without any.

        Raises
        ------
        InputError
            If two directions of an angle are parallel.
        SingularError
            If the relative error of an angle may exceed `DIGITS_LOST`.
        """
        if self.rows is None or not (self.rows.euler or self.rows.directed) or T.dtype.kind == "O":
            return None
        values, *tensors = self.split(T, (len(T),))
        self.rows.check_directions(values)
        if not self.rows.euler:
            return None
        return check_gimbal(name, self.rows.labels, gimbal_errors(self.rows.euler, values, tensors))


def _each(names: list[str], seen: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the fields of a structured array as a tuple, as `itemgetter` does for several fields only."""
    return tuple([seen[name] for name in names])


def output_layout(rows: Rows, order: int, columns: int) -> Layout:
    """Return the layout of values, G, H and D of rows with respect to a number of coordinates."""
    return Layout([(rows.height, *(columns,) * k) for k in range(order + 1)], rows)


def dynamics_layout(size: int, want: int) -> Layout:
    """Return the layout of the requested parts of I*, P*, load and damping in a number of coordinates."""
    shapes: list[tuple[int, ...]] = [(size, size), (size,) * 3] if want & lay.WANT_INERTIA else []
    return Layout(shapes + ([(size,), (size, size)] if want & lay.WANT_LOADS else []))


def _moved_by_common_columns(tree: Tree, item: Item) -> bool:
    """Return True if columns that carry both frames of an item move its rows."""
    if item.kind >= lay.DISTANCE or item.frame_a < 0:
        return False
    above = []
    for n in (item.frame_a, item.frame_b):
        path = set()
        while n >= 0:
            path.add(n)
            n = int(tree.cols[n, lay.PARENT])
        above.append(path)
    return bool(above[0] & above[1])


def output_query(tree: Tree, rows: Rows, order: int, linear: LinearMap | None = None) -> Query:
    """Return the query of values, G, H and D of rows up to an order, for the tree or for a linear map."""
    size = tree.size if linear is None else linear.size
    entry = "kinematics" if linear is None else "linear_kinematics"
    if linear is None and order == 1 and not any(_moved_by_common_columns(tree, i) for i in rows.source):
        entry = "first_order"  # compiles sooner
    found = Query(
        tree,
        entry,
        output_layout(rows, order, size),
        rows=rows,
        asked=(order, rows.height, size, 0),
        system=(len(rows.items), rows.height),
        linear=linear,
    )
    found.omit_frames(rows)
    found.plan[2, lay.STATE_SIZE] = tree.state_size
    return found
