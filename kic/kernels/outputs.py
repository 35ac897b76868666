"""Entry: values and G, H, D of any list of rows, in the tree's coordinates or in others.

`into` is None for the tree's coordinates. For a linear map to other coordinates, it is a tuple of the terms
and factors of the map (see `linear_map`), 0, the pairs of second order, and True. Along a motion, which is
one column, it is a tuple of the derivatives of frames and of the tree's coordinates (see `series`), 0, the
pairs, and True; `motion_item` has its own rule for vectors. Otherwise it is a tuple of the frames' tables
with respect to `size` other coordinates (see `transferred_influence`), the table of the tree's coordinates,
the width of a frame's block, the pairs of second order, and None if third order is never requested. Numba
compiles the four cases separately. It distinguishes the tuples by the numbers of axes of their first two
entries.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import frames, motion, world_point, world_vector
from kic.kernels.functions import has_large, has_nonfinite
from kic.kernels.influence import vector_rows, zero
from kic.kernels.jit import entry, helper, inlined, overloaded
from kic.kernels.linear_map import linear_coordinate, linear_start, open_members, ordered_rows
from kic.kernels.offsets import g_at, packed_width, pair_count, sections, table_width
from kic.kernels.ranges import clear_range
from kic.kernels.scalar_rows import angle_row, arcsine_row, norm_row, product_row, root_row
from kic.kernels.series import vector_series, world_series
from kic.kernels.transferred_influence import transferred_rows
from kic.kernels.vectors import dot, sub, take


def _choose(into, in_tree, linear, in_frames, along=None):
    """Return the rule for the coordinates of `into`, a value or a Numba type."""
    if into is None or getattr(into, "name", "") == "none":
        return in_tree
    # the type of `links`, where it may be None
    into = getattr(into, "type", into)
    if into[0].ndim == 1:
        return in_frames
    return linear if into[1].ndim == 2 else along


def add_vector_rows(cols, F, into, frame, kind, e, sign, order, ordered, size, t, rows, row):
    """Add the coefficients of one vector fixed in a frame to three rows, in the coordinates of `into`."""
    rule = _choose(into, tree_rows, linear_frame_rows, frame_rows)
    rule(cols, F, into, frame, kind, e, sign, order, ordered, size, t, rows, row)


@overloaded(add_vector_rows)
def _add_vector_rows(cols, F, into, frame, kind, e, sign, order, ordered, size, t, rows, row):
    # a branch on None would compile all cases
    rule = _choose(into, tree_rows, linear_frame_rows, frame_rows)

    def compiled(cols, F, into, frame, kind, e, sign, order, ordered, size, t, rows, row):
        rule(cols, F, into, frame, kind, e, sign, order, ordered, size, t, rows, row)

    return compiled


@helper
def tree_rows(cols, F, into, frame, kind, e, sign, order, ordered, size, t, rows, row):
    """Add rows in the tree's coordinates."""
    if ordered and order > 1:
        ordered_rows(cols, F, None, frame, kind, e, sign, order, size, t, rows, row)
    else:
        vector_rows(cols, F, frame, kind, e, sign, order, t, rows, row)


@helper
def linear_frame_rows(cols, F, into, frame, kind, e, sign, order, ordered, size, t, rows, row):
    """Add rows in coordinates of a linear map."""
    ordered_rows(cols, F, into, frame, kind, e, sign, order, size, t, rows, row)


@helper
def frame_rows(cols, F, into, frame, kind, e, sign, order, ordered, size, t, rows, row):
    """Add rows in other coordinates from the frames' tables."""
    Z, _, width, pairs, with_third = into
    transferred_rows(F, Z, width, pairs, with_third, frame, kind, e, sign, order, size, t, rows, row)


@helper
def pairs_of(into):
    """Return the constant for the pairs of second order in the tables."""
    if into is None:
        return lay.EVERY
    else:
        return into[3]


@helper
def with_third_of(into):
    """Return a value that is None if third order is not compiled."""
    if into is None:
        return True
    else:
        return into[4]


@inlined
def item_vectors(F, items, vectors, i):
    """Return the sort of the vectors of an item; head, tail, difference and direction, in world axes.

    The item is the difference, its length, or its product with the direction. Angular velocities have no
    value, and a zero difference.
    """
    kind, body, base, sort = items[i, lay.ITEM], items[i, lay.FRAME_B], items[i, lay.FRAME_A], lay.POINT
    head = tail = u = take(vectors, i, lay.LOCAL_B)
    if kind == lay.DIRECTION or kind == lay.DOT1:
        sort, head, tail = lay.DIRECTION, world_vector(F, body, head), zero(head)
        w = head
    else:
        head = world_point(F, body, head)
        w = head
        if base != lay.NONE:
            tail = world_point(F, base, take(vectors, i, lay.LOCAL_A))
            w = sub(head, tail)
        if kind == lay.OMEGA or kind == lay.RELATIVE_OMEGA:
            sort, w = lay.OMEGA, zero(head)
    if kind > lay.DISTANCE:
        u = world_vector(F, base, take(vectors, i, lay.LOCAL_A if kind == lay.DOT1 else lay.EXTRA))
    return sort, head, tail, w, u


@inlined
def vector_item(cols, F, into, items, vectors, i, order, size, t, rows, U, W):
    """Add the rows of an item that is made of vectors fixed in frames.

    Points and angular velocities are three rows of the table t. A product leaves its two vectors as tables of
    three rows: U of the vector fixed in A, and W of the other vector.
    """
    kind, body, base = items[i, lay.ITEM], items[i, lay.FRAME_B], items[i, lay.FRAME_A]
    row = items[i, lay.ROW]
    ordered, product = items[i, lay.ORDERED] != 0, kind >= lay.DISTANCE
    weight = vectors[i, lay.EXTRA] if kind == lay.WEIGHTED_POINT else 1
    sort, head, tail, w, u = item_vectors(F, items, vectors, i)
    if product:
        for place in range(packed_width(3, size, pairs_of(into), order)):
            U[place] = 0
            W[place] = 0
    # a single call site, because each is compiled into a copy
    for part in range(3):
        frame, e, sign = body, head, weight
        if part == 1:
            if base == lay.NONE or kind == lay.DOT1:
                continue
            frame, e, sign = base, tail, -weight
        elif part == 2:
            if not product or kind == lay.DISTANCE:
                continue
            frame, e, sort = base, u, lay.DIRECTION
        target, height, place = t, rows, row
        if product:
            target, height, place = U if part == 2 else W, 3, 0
        add_vector_rows(cols, F, into, frame, sort, e, sign, order, ordered, size, target, height, place)
    if product:
        for c in range(3):
            U[c] = u[c]
            W[c] = w[c]
    elif kind == lay.WEIGHTED_POINT:
        for c in range(3):
            t[row + c] += weight * w[c]
    else:
        for c in range(3):
            t[row + c] = w[c]


def add_coordinate(into, sign, n, mobile, order, size, t, rows, row):
    """Add `sign` times coordinate n of the tree to one row, in the coordinates of `into`."""
    rule = _choose(into, tree_coordinate, linear_frame_coordinate, frame_coordinate, motion_coordinate)
    rule(into, sign, n, mobile, order, size, t, rows, row)


@overloaded(add_coordinate)
def _add_coordinate(into, sign, n, mobile, order, size, t, rows, row):
    rule = _choose(into, tree_coordinate, linear_frame_coordinate, frame_coordinate, motion_coordinate)

    def compiled(into, sign, n, mobile, order, size, t, rows, row):
        rule(into, sign, n, mobile, order, size, t, rows, row)

    return compiled


@helper
def tree_coordinate(into, sign, n, mobile, order, size, t, rows, row):
    """Add a coordinate of the tree in the tree's coordinates."""
    t[g_at(rows, size, row, n)] += sign


@helper
def linear_frame_coordinate(into, sign, n, mobile, order, size, t, rows, row):
    """Add the row of a tree coordinate, in coordinates of a linear map."""
    linear_coordinate(into, sign, n, size, t, rows, row)


@inlined
def motion_coordinate(into, sign, n, mobile, order, size, t, rows, row):
    """Add the derivatives of a coordinate of the tree along a motion."""
    for k in range(order):
        t[(k + 1) * rows + row] += sign * into[1][k * mobile + n]


@helper
def frame_coordinate(into, sign, n, mobile, order, size, t, rows, row):
    """Add a coordinate of the tree in other coordinates, from its table."""
    x, start, count = into[1], 1, size
    for k in range(1, order + 1):
        for c in range(count):
            t[rows * start + row * count + c] += sign * x[mobile * start + n * count + c]
        start += count
        count = pair_count(size, into[3]) if k == 1 else size * size * size


@inlined
def linear_item(cols, F, into, items, vectors, i, states, order, b, size, t, rows):
    """Add the row of a coordinate, a term of a coupling, or the plane angle of a body."""
    n, row = items[i, lay.FRAME_B], items[i, lay.ROW]
    mobile = cols.shape[0]
    if items[i, lay.ITEM] == lay.COORDINATE:
        add_coordinate(into, 1, n, mobile, order, size, t, rows, row)
        if cols[n, lay.KIND] <= lay.PRISMATIC:  # the rotations of a ball joint have rates but no values
            t[row] = states[b, cols[n, lay.STATE]]
        return
    if items[i, lay.ITEM] == lay.LINEAR_TERM:
        add_coordinate(into, vectors[i, lay.RATIO], n, mobile, order, size, t, rows, row)
        t[row] += vectors[i, lay.RATIO] * states[b, cols[n, lay.STATE]] - vectors[i, lay.RATIO_OFFSET]
        return
    normal = take(vectors, i, lay.EXTRA)
    value = vectors[i, 0]
    while n >= 0:
        if cols[n, lay.KIND] == lay.REVOLUTE:
            sign = dot(normal, take(F, n, lay.AXIS))
            add_coordinate(into, sign, n, mobile, order, size, t, rows, row)
            value = value + sign * states[b, cols[n, lay.STATE]]
        n = cols[n, lay.PARENT]
    t[row] = value


@inlined
def scalar_item(cols, F, into, items, vectors, i, states, b, order, size, t, rows):
    """Add the row of an item that is not made of vectors; return False for other items."""
    kind, row = items[i, lay.ITEM], items[i, lay.ROW]
    if kind == lay.COORDINATE or kind == lay.PLANE_ANGLE or kind == lay.LINEAR_TERM:
        linear_item(cols, F, into, items, vectors, i, states, order, b, size, t, rows)
    elif kind == lay.ANGLE:
        angle_row(size, pairs_of(into), with_third_of(into), order, t, rows, row)
    elif kind == lay.ARCSINE:
        arcsine_row(size, pairs_of(into), with_third_of(into), order, t, rows, row)
    elif kind == lay.NORM:
        norm_row(size, pairs_of(into), with_third_of(into), order, t, rows, row)
    else:
        return False
    return True


@inlined
def add_item(cols, F, into, items, vectors, i, states, b, order, size, t, rows, U, W):
    """Add the rows of one item, which are initially zero."""
    kind, row = items[i, lay.ITEM], items[i, lay.ROW]
    if scalar_item(cols, F, into, items, vectors, i, states, b, order, size, t, rows):
        return
    vector_item(cols, F, into, items, vectors, i, order, size, t, rows, U, W)
    if kind >= lay.DISTANCE:
        # |w| follows from w . w
        pairs = pairs_of(into)
        with_third, has_value = with_third_of(into), kind != lay.RELATIVE_OMEGA
        product_row(
            W if kind == lay.DISTANCE else U, W, has_value, size, pairs, with_third, order, t, rows, row
        )
        if kind == lay.DISTANCE:
            root_row(size, pairs, with_third, order, t, rows, row)


@inlined
def motion_item(cols, F, V, x, items, vectors, i, states, b, order, t, rows):
    """Add the value and the derivatives along a motion of one item, in a table t (4, rows).

    The rules are those of `add_item` for one column. The vectors stay in registers instead of tables, which
    would take a tenth of the time of small mechanisms.
    """
    if scalar_item(cols, F, (V, x, 0, lay.EVERY, True), items, vectors, i, states, b, order, 1, t, rows):
        return
    kind, body, base = items[i, lay.ITEM], items[i, lay.FRAME_B], items[i, lay.FRAME_A]
    row = items[i, lay.ROW]
    sort, head, tail, w, u = item_vectors(F, items, vectors, i)
    one, two, three = world_series(F, V, body, sort, head, order)
    if base != lay.NONE and sort != lay.DIRECTION:
        a1, a2, a3 = world_series(F, V, base, sort, tail, order)
        one, two, three = sub(one, a1), sub(two, a2), sub(three, a3)
    if kind < lay.DISTANCE:
        weight = vectors[i, lay.EXTRA] if kind == lay.WEIGHTED_POINT else 1
        for c in range(3):
            t[row + c] += weight * w[c]
            t[rows + row + c] += weight * one[c]
            if order > 1:
                t[rows + rows + row + c] += weight * two[c]
            if order > 2:
                t[3 * rows + row + c] += weight * three[c]
        return
    u1, u2, u3 = one, two, three
    if kind == lay.DISTANCE:
        u = w
    else:
        u1, u2, u3 = vector_series(V, base, lay.DIRECTION, u, order)
    y1, y2 = dot(u, one), dot(u1, one) + dot(u, two)
    y3 = dot(u2, one) + 2 * dot(u1, two) + dot(u, three)
    if kind != lay.RELATIVE_OMEGA:
        t[row] = dot(u, w)
        y1 += dot(u1, w)
        y2 += dot(u2, w) + dot(u1, one)
        y3 += dot(u3, w) + 2 * dot(u2, one) + dot(u1, two)
    t[rows + row] = y1
    if order > 1:
        t[rows + rows + row] = y2
    if order > 2:
        t[3 * rows + row] = y3
    if kind == lay.DISTANCE:
        root_row(1, lay.EVERY, True, order, t, rows, row)


@helper
def bounded_rows(items, numbers):
    """Return True if rows to third order are finite whenever no entry of states and frames is large.

    Coefficients are then sums of products of at most nine numbers. Rows with divisions, such as lengths and
    angles, are excluded.
    """
    for i in range(items.shape[0]):
        kind = items[i, lay.ITEM]
        if kind == lay.DISTANCE or kind == lay.ANGLE or kind == lay.ARCSINE or kind == lay.NORM:
            return False
    large = False
    for i in range(numbers.shape[0]):
        large = large or has_large(numbers[i])
    return not large


@helper
def row_tables(plan, numbers, states, into, scratch, T):
    """Compute rows in the coordinates of `into`; return the number of members that are not finite."""
    not_finite = 0
    mobile = plan[0, lay.COLUMNS]
    (cols, geometry), (items, vectors), _, _, _, _ = sections(plan, numbers)
    order, rows, size = plan[1, lay.ORDER], plan[1, lay.ROWS], plan[1, lay.SIZE]
    framed = mobile * lay.FRAME_WIDTH
    F = scratch[:framed].reshape(mobile, lay.FRAME_WIDTH)
    width = (scratch.shape[0] - framed) // 2
    U, W = scratch[framed : framed + width], scratch[framed + width :]
    # large tables have many more entries than the numbers from which they are computed
    bounded = table_width(rows, size, order) > 4 * framed and bounded_rows(items, numbers)
    if bounded:
        clear_range(scratch, 0, framed)  # entries that no joint writes
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        t = T[b]
        clear_range(t, 0, table_width(rows, size, order))
        for i in range(items.shape[0]):
            add_item(cols, F, into, items, vectors, i, states, b, order, size, t, rows, U, W)
        if bounded and not (has_large(states[b]) or has_large(scratch[:framed])):
            continue
        if has_nonfinite(t) or has_nonfinite(states[b]):
            not_finite += 1
    return not_finite


@entry
def kinematics(plan, numbers, states, scratch, T):
    """Compute rows at a batch of configurations.

    states (B, nq); the table T (B, width) is overwritten. Values that do not exist (those of angular
    velocities) are zero. Returns the number of members whose states or results are not finite.
    """
    return row_tables(plan, numbers, states, None, scratch, T)


@entry
def linear_kinematics(plan, numbers, states, scratch, T):
    """Compute rows at a batch of configurations, in coordinates q with φ - φ₀ = A (q - q₀).

    Returns the number of members whose states or results are not finite, plus those whose couplings do not
    hold.
    """
    terms, factors = plan[linear_start(plan, plan) :], numbers[linear_start(plan, numbers) :]
    doubtful = row_tables(plan, numbers, states, (terms, factors, 0, lay.EVERY, True), scratch, T)
    return doubtful + open_members(plan, terms, factors, states)
