"""The square system of a transfer: chosen rows and closure rows, packed for the kernel that solves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from kic.dynamics.mass_and_load_tables import Loads, Masses
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import all_closure_rows
from kic.kinematics.items import COSINE, LENGTH, LINEAR, OF_COLUMN, PRODUCT, RATE, WEIGHTED, Item, heights
from kic.kinematics.outputs import Rows, make_rows, plain_rows
from kic.kinematics.queries import Layout, Query, output_layout
from kic.kinematics.tree import SMALL, SMALLEST, Tree

# largest residual of a redundant closure row at any condition
REDUNDANT_ROW_ATOL = 1e-9
# Scaled residual of a closure row up to which a state given to an evaluator counts as closed. States in
# single precision, or written with eight digits, have a few times 1e-7. The relative error of results is
# about the residual times their condition.
STATE_CLOSURE_RTOL = 1e-6
# pivots above this share of the largest of their column may be chosen for sparsity
PIVOT_SHARE = 0.1
# lever arm of rows with unbounded derivatives: no step along them is proved
UNBOUNDED = 1e9
# An entry below this share of its row is rounding. It counts as a zero in the order of elimination.
ZERO_SHARE = 1e-12
# Sizes that differ by less are equal, and the lowest index among them is chosen.
TIE_RTOL = 1e-6
# estimated cost of one configuration (µs), for sharing a batch among threads
_START, _PER_COLUMN = 1.0, 0.3


def joined(rows: Rows, values: np.ndarray, join: np.ufunc) -> np.ndarray:
    """Accumulate `values` (n, …) in place by `join`, over items that are terms of one sum."""
    starts = rows.items[:, lay.ROW]
    for k in np.flatnonzero(starts[1:] == starts[:-1]):
        values[k + 1] = join(values[k], values[k + 1])
    return values


def item_scales(rows: Rows, sizes: np.ndarray | float, columns: np.ndarray) -> np.ndarray:
    """Return the scale (n,) of the rows of each item: a length for lengths, 1 for other items.

    Parameters
    ----------
    rows : Rows
        Rows of n items.
    sizes : (n,) or float
        Characteristic length of each item.
    columns : (M,)
        Scale of each coordinate of the tree.
    """
    scales, own = np.where(LENGTH[rows.kinds], sizes, 1.0), OF_COLUMN[rows.kinds]
    terms = own & WEIGHTED[rows.kinds]
    scales[own] = columns[rows.items[own, lay.FRAME_B]]
    scales[terms] *= np.abs(rows.vectors[terms, lay.RATIO])
    return joined(rows, scales, np.maximum)


def row_scales(tree: Tree, rows: Rows, length: float) -> np.ndarray:
    """Return the scale (P,) of each requested row, with one length for all rows."""
    scales = item_scales(rows, length, column_scales(tree, length))[rows.item_of]
    return scales if rows.select is None else scales[rows.select]


def column_scales(tree: Tree, length: float) -> np.ndarray:
    """Return the scale of each coordinate of the tree: the characteristic length for sliders."""
    return np.where(tree.cols[:, lay.KIND] == lay.PRISMATIC, length, 1.0)


def moving(tree: Tree, rows: Rows) -> np.ndarray:
    """Return a mask (n, M) of the columns that move one side of each item relative to the other."""
    b, a = rows.items[:, lay.FRAME_B], np.maximum(rows.items[:, lay.FRAME_A], -1)
    return joined(rows, tree.paths[b] ^ tree.paths[a], np.logical_or)


def ends_of(tree: Tree, item: Item) -> list[np.ndarray]:
    """Return the reference points of an item: on frame B, and on frame A if the item has this frame."""
    ends = []
    for frame, local in ((item.frame_b, item.local_b), (item.frame_a, item.local_a)):
        point = np.asarray(local, dtype=tree.scalar)
        if frame >= 0:
            point = tree.zero_origins[frame] + tree.zero_axes[frame] @ point
        if frame != lay.NONE:
            ends.append(point)
    return ends


def own_sizes(tree: Tree, rows: Rows, columns_of: np.ndarray, length: float, closing: int) -> np.ndarray:
    """Return the characteristic length of each item: the extent of its turning joints and its points.

    It is measured in the reference configuration. A loop of micrometres in a mechanism of metres thus has a
    small length. The stroke of sliders is unknown: items on them have the length of the whole mechanism,
    except the last `closing` items, which constrain them. A closing item that only one joint moves has that
    length too, because its distance to the joint can be rounding. Directions and angles have `length`, but it
    is not used. `columns_of` is the mask of `moving`.
    """
    count, slides = len(rows.items), tree.cols[:, lay.KIND] == lay.PRISMATIC
    sizes = np.full(count, length)
    for k in np.flatnonzero(LENGTH[rows.kinds]):
        columns = columns_of[k]
        is_closing = k >= count - closing
        if columns.sum() == 1 if is_closing else (columns & slides).any():
            continue
        places = [tree.zero_origins[n] for n in np.flatnonzero(columns & ~slides)]
        extent = float(np.ptp(np.array([*places, *ends_of(tree, rows.source[k])]).real, axis=0).max())
        if SMALLEST * length < extent < SMALL * length:
            sizes[k] = extent
    return sizes


def lever_arm(tree: Tree, item: Item) -> float:
    """Return the longest lever arm of an item whose rows are lengths, with sliders at their reference."""
    b, a = tree.paths[[item.frame_b, max(item.frame_a, -1)]]
    sides = [[tree.zero_origins[n] for n in np.flatnonzero(side)] for side in (b & ~a, a & ~b)]
    ways = [[*side, end] for side, end in zip(sides, ends_of(tree, item), strict=False)]
    if PRODUCT[item.kind] and len(ways) > 1:
        # its direction turns with frame A: add the links from one end to the other
        ways = [[*ways[1][::-1], *ways[0]]]
    return max([float(np.linalg.norm(np.diff(np.array(way).real, axis=0), axis=1).sum()) for way in ways])


class ConstraintSystem:
    """Rows s(φ) chosen as coordinates, named or `held` without a name, then all closure rows c(φ).

    They are the intermediate coordinates w and the partition of φ and e in (4-6) to (4-17). The free rows are
    y (4-30). The source chooses coordinates of the tree; here any rows can be chosen.

    Attributes
    ----------
    rows : Rows
        All rows of the items. The `picked` (P,) rows are used; the first `n_chosen` of these are chosen.
    owners : list of str
        Joint or other part that imposes each closure row.
    closing_rows : (R,) int
        Closure rows among all rows of `all_closure_rows`.
    scale : (P,)
        Scale by which each picked row is divided.
    column_scale : (M,)
        Scale of each coordinate of the tree: a characteristic length for sliders.
    smallest : float
        Smallest length by which a row is divided.
    moving : (n, M) bool
        Columns that move one side of each item relative to the other.
    allowed : float
        Largest residual of redundant closure rows that is accepted at any condition.
    closed_within : float
        Largest scaled residual of the closure rows of states that evaluators accept.
    is_closing : (n,) bool
        Mask of the items whose rows are closure rows.
    left_out : int
        Number of closure rows that are not in the square system.
    """

    def __init__(
        self,
        tree: Tree,
        names: tuple[str, ...],
        length: float,
        tolerance: float,
        held: Sequence[Item] = (),
    ) -> None:
        self.tree = tree
        self.allowed = max(REDUNDANT_ROW_ATOL, 10 * tolerance)
        self.closed_within = max(STATE_CLOSURE_RTOL, tolerance)
        self.chosen = make_rows(tree, names) if names else plain_rows(tree, [])
        more = sum(heights(held)) if held else 0
        self.n_chosen = len(self.chosen.labels) + more
        closing, owners, constant = all_closure_rows(tree)
        self.closing_rows = np.flatnonzero([bool(owner) for owner in owners])
        self.owners = [owner for owner in owners if owner]
        self.left_out = max(len(self.owners) - (tree.size - self.n_chosen), 0)
        items = [*self.chosen.source, *held, *closing]
        select = np.arange(self.chosen.height) if self.chosen.select is None else self.chosen.select
        held_rows = self.chosen.height + np.arange(more)
        closed = self.chosen.height + more + self.closing_rows
        self.picked = np.concatenate([select, held_rows, closed]).astype(np.intp)
        offsets = (
            *self.chosen.offsets,
            *[(self.chosen.height + more + row, drawn) for row, drawn in constant],
        )
        self.rows = replace(plain_rows(tree, items), angles=self.chosen.angles, offsets=offsets)
        self.moving = moving(tree, self.rows)
        sizes = own_sizes(tree, self.rows, self.moving, length, len(closing))
        self.smallest = float(sizes.min(initial=length))
        self.column_scale = column_scales(tree, length)
        # the scale of a slider is that of the smallest loop that constrains it
        slides = tree.cols[:, lay.KIND] == lay.PRISMATIC
        closed_by = len(items) - len(closing)
        for columns, size in zip(self.moving[closed_by:], sizes[closed_by:], strict=True):
            sliders = columns & slides
            self.column_scale[sliders] = np.minimum(self.column_scale[sliders], size)
        self.item_scale = item_scales(self.rows, sizes, self.column_scale)
        self.is_closing = np.isin(self.rows.items[:, lay.ROW], closed)
        self.scale = self.item_scale[self.rows.item_of[self.picked]]

    @cached_property
    def has_true_coordinates(self) -> bool:
        """True if the only chosen rows without values are all three of some ball joints."""
        tree, chosen = self.tree, self.chosen
        bare = {label for label, has in zip(chosen.labels, chosen.valued, strict=True) if not has}
        balls = [tree.columns[n : n + 3] for n in tree.balls if tree.columns[n] in bare]
        return bare == set().union(*balls)

    @cached_property
    def goal(self) -> np.ndarray:
        """Array (height,) of the values of all rows in the kernels at zero values of the chosen rows."""
        goal = np.zeros(self.rows.height)
        for row, drawn in self.rows.offsets:
            goal[row] -= drawn
        return goal

    @cached_property
    def levers(self) -> np.ndarray:
        """Scaled lever arms (n,) of the items, at least the scale of their sliders; 0 for linear items.

        The k-th derivative of a row along x is at most its lever arm times ‖x‖₁ᵏ, over the columns that move
        the row.
        """
        kinds = self.rows.kinds
        # other kinds have no bounds: Euler angles near gimbal lock
        made = np.where(LINEAR[kinds], 0.0, np.where((COSINE | RATE)[kinds], 1.0, UNBOUNDED))
        for k in np.flatnonzero(LENGTH[kinds]):
            made[k] = lever_arm(self.tree, self.rows.source[k])
        slides = self.tree.cols[:, lay.KIND] == lay.PRISMATIC
        for k in np.flatnonzero(made):
            made[k] = max(made[k], self.column_scale[self.moving[k] & slides].max(initial=0.0))
        return joined(self.rows, made, np.maximum) / self.item_scale

    @property
    def coupling_terms(self) -> list[tuple[int, int, float, float]]:
        """List of the terms of all couplings, for `LinearMap`."""
        items, found = self.rows.items, list[tuple[int, int, float, float]]()
        rows = [*items[:, lay.ROW].tolist(), -1]
        for k in np.flatnonzero(self.is_closing & WEIGHTED[self.rows.kinds]).tolist():
            ratio, constant = self.rows.vectors[k, [lay.RATIO, lay.RATIO_OFFSET]].real
            unit = (
                self.item_scale[self.rows.item_of[rows[k]]] * self.closed_within
            )  # one for all terms of a row
            found.append(
                (int(items[k, lay.FRAME_B]), int(rows[k + 1] != rows[k]), ratio / unit, constant / unit)
            )
        return found

    def no_choice(self) -> np.ndarray:
        """Return a table of zeros in place of the choice, for queries that need no choice."""
        return np.zeros((lay.CHOICE_HEIGHT, max(self.tree.size, self.rows.height, 1)), dtype=np.int64)

    def packed_choice(self, use: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return the kernel's table of picked rows `use` (M,) and columns in the order of elimination."""
        size = self.tree.size
        rest = np.setdiff1d(np.arange(self.n_chosen, len(self.picked)), use)
        choice, item_of = self.no_choice(), self.rows.item_of
        rows, others = self.picked[use], self.picked[rest]
        choice[lay.USED_ROW, :size], choice[lay.USED_ITEM, :size] = rows, item_of[rows]
        choice[lay.ELIMINATED, :size] = order
        choice[lay.UNUSED_ROW, : len(rest)] = others
        choice[lay.UNUSED_ITEM, : len(rest)] = item_of[others]
        # index of the coordinate of each row; -1 for closure rows
        choice[lay.INPUT, :size] = np.where(use < self.n_chosen, use, -1)
        return choice


def system_query(
    system: ConstraintSystem,
    order: int,
    rows: Rows | None = None,
    asked: int = 0,
    masses: Masses | None = None,
    loads: Loads | None = None,
    want: int = 0,
    keep: bool = False,
    layout: Layout | None = None,
) -> Query:
    """Return the query in the coordinates of a system: φ up to an order, rows, I*, P* and loads.

    Parameters
    ----------
    system : ConstraintSystem
        The coordinates.
    order : {1, 2, 3}
        Order up to which φ is computed.
    rows, asked : Rows, int, optional
        Requested rows, and their order.
    masses, loads : Masses, Loads, optional
        Masses for I* and P*; loads for load and damping.
    keep : bool
        True to keep the table of φ among the results.
    layout : Layout, optional
        Layout of results along motions; it selects the kernel for motions.
    """
    along = layout is not None
    size, own, tree = 1 if want & lay.WANT_CURVATURE else system.n_chosen, system.rows, system.tree
    height = 0 if rows is None else rows.height
    both = own if rows is None else plain_rows(tree, [*own.source, *rows.source])
    vectors = np.zeros((len(both.items), lay.NUMBERS_WIDTH), tree.scalar)
    vectors[:, :9] = both.vectors
    vectors[: len(own.items), lay.SCALE] = system.item_scale
    vectors[: len(own.items), lay.LEVER] = system.levers
    factor = system.is_closing / (system.item_scale * system.closed_within)
    vectors[: len(own.items), lay.CLOSED_FACTOR] = factor
    for row, drawn in own.offsets:
        vectors[own.item_of[row], lay.CLOSED_VALUE] = -drawn
    last = np.zeros((tree.size + 1, 5))
    lower = order < 3 and not keep and system.has_true_coordinates
    lower = lower and (rows is None or not _has_ordered(tree, rows))
    last[:-1, lay.COLUMN_SCALE], last[-1, lay.ALLOWED] = system.column_scale, system.allowed
    if masses is not None:  # in the order of their frames
        order_of = np.argsort(masses.frames, kind="stable")
        masses = replace(masses, frames=masses.frames[order_of], numbers=masses.numbers[order_of])
    if layout is None:
        layout = Layout([(own.height,)] if want & lay.WANT_CURVATURE else [])
        layout = layout if rows is None else output_layout(rows, asked, size)
    found = Query(
        tree,
        "motion_in_coordinates" if along else "transfer",
        layout,
        rows=replace(both, vectors=vectors),
        masses=masses,
        loads=loads,
        asked=(order, height, size, want),
        system=(len(own.items), own.height, system.left_out, lay.LOWER if lower else 0, asked),
        last=last,
        cost_us=_START + _PER_COLUMN * tree.size,
    )
    if (rows is not None or keep) and masses is None and loads is None:
        found.omit_frames(both)
    if along:
        found.plan[2, lay.STATE_SIZE] = tree.state_size
    return found


def _has_ordered(tree: Tree, rows: Rows) -> bool:
    """Return True if rows other than ω have a second order that depends on the order of differentiation."""
    frames, others = rows.items[:, [lay.FRAME_B, lay.FRAME_A]].T
    turning = tree.cols[frames[rows.kinds == lay.COORDINATE], lay.KIND] > lay.PRISMATIC
    relative = RATE[rows.kinds] & (others != lay.NONE)
    return bool(relative.any() or turning.any())


def elimination_order(scaled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of rows and columns that preserves sparsity in a square system (M, M) (Markowitz).

    The order does not depend on rounding: among pivots of equal cost and equal size the first is taken.
    """
    size = np.abs(scaled.real)
    there = size > ZERO_SHARE * size.max(axis=1, keepdims=True, initial=0.0)
    # no pivot much smaller than the largest of its column
    fit = size >= (1 - TIE_RTOL) * PIVOT_SHARE * size.max(axis=0, initial=0.0)
    rows, columns = np.empty(len(size), dtype=np.intp), np.empty(len(size), dtype=np.intp)
    left = np.ones(size.shape, dtype=bool)
    for k in range(len(size)):
        usable = left & there
        best = usable & fit if (usable & fit).any() else usable if usable.any() else left
        cost = np.multiply.outer(there.sum(axis=1) - 1, there.sum(axis=0) - 1)
        best = best & (cost == cost[best].min())
        # not less, so that a NaN is a candidate too
        i, j = np.argwhere(best & ~(size < (1 - TIE_RTOL) * size[best].max()))[0]
        rows[k], columns[k] = i, j
        others = there[:, j].copy()
        others[i] = False
        there[others] |= there[i]
        there[i] = there[:, j] = False
        left[i] = left[:, j] = False
    return rows, columns
