"""Entry points: values and G, H, D of any list of rows, in the tree's coordinates or in others.

`X` is None for the tree's own coordinates; else it is the batch of tables (B, …) that holds the
coefficients of the tree's coordinates with respect to `size` others, and all answers are in those.
Numba compiles the two cases apart.
"""

import numpy as np

from kic.kernels.compiled import entry, helper
from kic.kernels.contraction import contracted_rows, contraction_scratch
from kic.kernels.frames import carried_point, carried_vector, frames, motion
from kic.kernels.layout import (
    AXIS,
    DIRECTION,
    DISTANCE,
    FRAME_A,
    FRAME_B,
    FRAME_WIDTH,
    GEAR,
    ITEM,
    KIND,
    NONE,
    OMEGA,
    ORDER,
    ORDERED,
    PARENT,
    PERPENDICULAR,
    PLANE_ANGLE,
    POINT,
    PRISMATIC,
    REVOLUTE,
    ROW,
    ROWS,
    SIZE,
    SPIN,
    STATE,
    UNIT,
    d_at,
    g_at,
    h_at,
    items_part,
    model_part,
    table_width,
)
from kic.kernels.products import product_row, root_row
from kic.kernels.rows import mirror, vector_rows
from kic.kernels.vectors import dot, sub, take


@helper
def carried(cols, F, work, frame, kind, e, sign, order, ordered, X, b, size, t, rows, row):
    """Coefficients of one carried vector, added to three rows, in the coordinates asked for."""
    if X is None:
        vector_rows(cols, F, frame, kind, e, sign, order, ordered, t, rows, row)
    else:
        path, S = work
        contracted_rows(
            cols, F, path, S, frame, kind, e, sign, order, X[b], size, t, rows, row
        )  # fmt: skip


@helper
def vector_item(cols, F, work, items, vectors, i, order, X, b, size, t, rows, U, W):
    """Everything that is made of carried vectors.

    Points and turnings are three rows of the table itself; a product leaves its two vectors as tables of
    three rows, U of the one fixed in A, W of the other.
    """
    kind, body, base, row = items[i, ITEM], items[i, FRAME_B], items[i, FRAME_A], items[i, ROW]
    ordered = items[i, ORDERED] != 0
    product = kind >= DISTANCE
    head = carried_point(F, body, take(vectors, i, 0))
    tail = carried_point(F, base, take(vectors, i, 3))
    u = carried_vector(F, base, take(vectors, i, 6))
    if kind == DIRECTION:
        head = carried_vector(F, body, take(vectors, i, 0))
    w = sub(head, tail) if base != NONE else head
    sort = kind
    if product:
        sort = POINT
        if kind == PERPENDICULAR:
            u = carried_vector(F, base, take(vectors, i, 3))
            w = carried_vector(F, body, take(vectors, i, 0))
            head, sort = w, DIRECTION
        elif kind == SPIN:
            sort = OMEGA
        for place in range(table_width(3, size, order)):
            U[place] = 0
            W[place] = 0
    # few places of call, for each is compiled into a copy; but no choice between the table and the scratch,
    # which would count references at every posture
    for part in range(3):
        frame, e, sign = body, head, 1
        if part == 1:
            if base == NONE or kind == PERPENDICULAR:
                continue
            frame, e, sign = base, tail, -1
        elif part == 2:
            if not product or kind == DISTANCE:
                continue
            frame, e, sort = base, u, DIRECTION
        if not product:
            carried(cols, F, work, frame, sort, e, sign, order, ordered, X, b, size, t, rows, row)
        else:
            carried(
                cols, F, work, frame, sort, e, sign, order, ordered, X, b, size, U if part == 2 else W, 3, 0
            )
    if X is None and order > 1 and not ordered:
        # plain rows leave out their mirror images until everything has been added
        if product:
            if kind != SPIN:
                mirror(W, 3, size, 0, order)
            if kind != DISTANCE:
                mirror(U, 3, size, 0, order)
        elif kind != OMEGA:
            mirror(t, rows, size, row, order)
    if product:
        for c in range(3):
            U[c] = u[c]
            W[c] = w[c]
    elif kind != OMEGA:
        for c in range(3):
            t[row + c] = w[c]


@helper
def add_coordinate(sign, n, mobile, order, X, b, size, t, rows, row):
    """Add `sign` times coordinate n of the tree to one row."""
    if X is None:
        t[g_at(rows, size, row, n)] += sign
    else:
        x = X[b]
        for a in range(size):
            t[g_at(rows, size, row, a)] += sign * x[g_at(mobile, size, n, a)]
        if order > 1:
            place, origin = h_at(rows, size, row, 0, 0), h_at(mobile, size, n, 0, 0)
            for a in range(size * size):
                t[place + a] += sign * x[origin + a]
        if order > 2:
            place, origin = d_at(rows, size, row, 0, 0, 0), d_at(mobile, size, n, 0, 0, 0)
            for a in range(size * size * size):
                t[place + a] += sign * x[origin + a]


@helper
def linear_item(cols, F, items, vectors, i, states, order, X, b, size, t, rows):
    """A coordinate, a term of a coupling, or the angle of a body of a planar mechanism."""
    n, row = items[i, FRAME_B], items[i, ROW]
    mobile = cols.shape[0]
    if items[i, ITEM] == UNIT:
        add_coordinate(1, n, mobile, order, X, b, size, t, rows, row)
        if cols[n, KIND] <= PRISMATIC:  # the turns of a ball have rates, but no values
            t[row] = states[b, cols[n, STATE]]
        return
    if items[i, ITEM] == GEAR:
        add_coordinate(vectors[i, 6], n, mobile, order, X, b, size, t, rows, row)
        t[row] += vectors[i, 6] * states[b, cols[n, STATE]] - vectors[i, 7]
        return
    normal = take(vectors, i, 6)
    value = vectors[i, 0]
    while n >= 0:
        if cols[n, KIND] == REVOLUTE:
            sign = dot(normal, take(F, n, AXIS))
            add_coordinate(sign, n, mobile, order, X, b, size, t, rows, row)
            value = value + sign * states[b, cols[n, STATE]]
        n = cols[n, PARENT]
    t[row] = value


@helper
def working_space(cols, X, size, order, states):
    """Scratch of the contraction, where there is one."""
    if X is None:
        return None
    else:
        path = np.empty(cols.shape[0], np.int64)
        return path, contraction_scratch(cols, size, order, states)


@entry
def kinematics(plan, numbers, states, X, T):
    """Rows at a batch of postures.

    states (B, nq); the table T (B, width) is overwritten. Values that do not exist (those of angular
    velocities) are zero.
    """
    cols, geometry = model_part(plan, numbers)
    items, vectors = items_part(plan, numbers)
    order, rows, size = plan[1, ORDER], plan[1, ROWS], plan[1, SIZE]
    work = working_space(cols, X, size, order, states)
    # one allocation for all that one posture needs
    framed = cols.shape[0] * FRAME_WIDTH
    width = 0
    for i in range(items.shape[0]):
        if items[i, ITEM] >= DISTANCE:
            width = table_width(3, size, order)
    scratch = np.empty(framed + 2 * width, states.dtype)
    F = scratch[:framed].reshape(cols.shape[0], FRAME_WIDTH)
    U, W = scratch[framed : framed + width], scratch[framed + width :]
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        # what follows stands here and not in a helper: each level of calls is optimised once more
        t = T[b]
        for place in range(table_width(rows, size, order)):
            t[place] = 0
        for i in range(items.shape[0]):
            kind, row = items[i, ITEM], items[i, ROW]
            if kind == UNIT or kind == PLANE_ANGLE or kind == GEAR:
                linear_item(cols, F, items, vectors, i, states, order, X, b, size, t, rows)
                continue
            vector_item(cols, F, work, items, vectors, i, order, X, b, size, t, rows, U, W)
            if kind >= DISTANCE:
                # |w| comes from w . w
                product_row(W if kind == DISTANCE else U, W, kind != SPIN, size, order, t, rows, row)
                if kind == DISTANCE:
                    root_row(size, order, t, rows, row)
