"""Values and first order of rows in the tree's coordinates, from the columns that carry only one frame.

A column that carries both frames of a row does not affect the row of a closed loop. Such columns are omitted:
their entries stay exactly zero, and a loop depends only on its joints.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import frames, motion
from kic.kernels.functions import has_nonfinite, larger, root
from kic.kernels.influence import affects, first, zero
from kic.kernels.jit import entry, inlined
from kic.kernels.offsets import sections
from kic.kernels.outputs import item_vectors, scalar_item
from kic.kernels.ranges import clear_range
from kic.kernels.vectors import cross, dot, scale, take


@inlined
def gradient(cols, F, items, vectors, i, states, b, t, rows):
    """Compute values and first order of item i in a table t of `rows` rows, which are initially zero."""
    mobile = cols.shape[0]
    if scalar_item(cols, F, None, items, vectors, i, states, b, 1, mobile, t, rows):
        return
    kind, row = items[i, lay.ITEM], items[i, lay.ROW]
    body, base = items[i, lay.FRAME_B], max(items[i, lay.FRAME_A], -1)
    sort, head, tail, gap, u = item_vectors(F, items, vectors, i)
    width = 3 if kind <= lay.OMEGA else 1
    weight = vectors[i, lay.EXTRA] if kind == lay.WEIGHTED_POINT else 1
    if kind == lay.WEIGHTED_POINT:
        for c in range(3):
            t[row + c] += weight * gap[c]
    elif width == 3:
        for c in range(3):
            t[row + c] = gap[c]
    elif kind == lay.DISTANCE:
        t[row] = root(dot(gap, gap))
        u = scale(1 / t[row], gap)
    else:
        t[row] = dot(u, gap)
    while body != base:
        # the deeper column first: both paths end at their common ancestor
        if body > base:
            n, v, sign = body, head, 1
        else:
            n, v, sign = base, tail, -1
        v = scale(sign, first(cols, F, n, sort, v)) if affects(cols, n, sort) else zero(v)
        if body > base:
            body = cols[n, lay.PARENT]
        else:
            base = cols[n, lay.PARENT]
        if kind == lay.WEIGHTED_POINT:
            for c in range(3):
                t[rows + (row + c) * mobile + n] += weight * v[c]
        elif width == 3:
            for c in range(3):
                t[rows + (row + c) * mobile + n] = v[c]
        else:
            x = dot(u, v)
            if sign < 0 and kind > lay.DISTANCE and affects(cols, n, lay.DIRECTION):
                x += dot(cross(take(F, n, lay.AXIS), u), gap)
            t[rows + row * mobile + n] = x


@inlined
def closure_gap(items, vectors, count, value):
    """Return the largest residual of the closure rows among `count` items.

    The residual is relative to the largest residual of a closed state. It is NaN if a value is NaN.
    """
    worst = 0.0
    for i in range(count):
        factor = abs(vectors[i, lay.CLOSED_FACTOR])
        if factor > 0:
            row, rows = items[i, lay.ROW], 3 if items[i, lay.ITEM] <= lay.OMEGA else 1
            for k in range(rows):
                left = factor * abs(value[row + k] - vectors[i, lay.CLOSED_VALUE])
                # NaN remains
                worst = larger(worst, left) + 0 * left
    return worst


@entry
def first_order(plan, numbers, states, scratch, T):
    """Compute values and first order of rows, side by side in T (B, rows (1 + M)).

    Columns that carry both frames of a row are omitted: the row must not depend on them, as in a closed loop.
    Returns the number of members whose results are not finite.
    """
    not_finite = 0
    mobile, height = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT]
    (cols, geometry), (items, vectors), _, _, _, _ = sections(plan, numbers)
    F = scratch[: mobile * lay.FRAME_WIDTH].reshape(mobile, lay.FRAME_WIDTH)
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        clear_range(T[b], 0, height * (1 + mobile))
        for i in range(plan[2, lay.SYSTEM]):
            gradient(cols, F, items, vectors, i, states, b, T[b], height)
        if has_nonfinite(T[b]):
            not_finite += 1
    return not_finite
