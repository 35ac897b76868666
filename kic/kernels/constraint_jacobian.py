"""Values and first order of rows in the tree's coordinates, by the columns that move their two frames apart.

A column that carries both frames of a row does not affect it once its loop is closed. Such columns are
omitted: their entries stay exactly zero, and a loop depends on its own joints only.
"""

from __future__ import annotations

from kic.kernels.frames import frames, motion, world_point, world_vector
from kic.kernels.functions import has_nonfinite, root
from kic.kernels.influence import affects, first, zero
from kic.kernels.jit import entry, inlined
from kic.kernels.layout import (
    ANGLE,
    ARCSINE,
    AXIS,
    COLUMNS,
    COORDINATE,
    DIRECTION,
    DISTANCE,
    DOT1,
    DOT2,
    EXTRA,
    FRAME_A,
    FRAME_B,
    FRAME_WIDTH,
    HEADER,
    HEIGHT,
    ITEM,
    ITEMS,
    KIND,
    LINEAR_TERM,
    LOCAL_A,
    LOCAL_B,
    OMEGA,
    PARENT,
    PLANE_ANGLE,
    POINT,
    PRISMATIC,
    RATIO,
    RATIO_OFFSET,
    RELATIVE_OMEGA,
    REVOLUTE,
    ROW,
    STATE,
    SYSTEM,
    WEIGHTED_POINT,
)
from kic.kernels.offsets import section
from kic.kernels.ranges import clear_range
from kic.kernels.vectors import cross, dot, scale, sub, take


@inlined
def linear_gradient(cols, F, items, vectors, i, states, b, value, g):
    """Add a coordinate, a term of a coupling, or the plane angle of a body."""
    n, row = items[i, FRAME_B], items[i, ROW]
    if items[i, ITEM] == COORDINATE:
        g[row, n] += 1
        if cols[n, KIND] <= PRISMATIC:
            value[row] = states[b, cols[n, STATE]]
        return
    if items[i, ITEM] == LINEAR_TERM:
        g[row, n] += vectors[i, RATIO]
        value[row] += vectors[i, RATIO] * states[b, cols[n, STATE]] - vectors[i, RATIO_OFFSET]
        return
    normal = take(vectors, i, EXTRA)
    value[row] = vectors[i, 0]
    while n >= 0:
        if cols[n, KIND] == REVOLUTE:
            sign = dot(normal, take(F, n, AXIS))
            g[row, n] += sign
            value[row] += sign * states[b, cols[n, STATE]]
        n = cols[n, PARENT]


@inlined
def angle_gradient(kind, row, value, g):
    """Compute the first order of an angle from the rows before it; its value is not computed here."""
    if kind == ANGLE:
        s, c = value[row - 2], value[row - 1]
        f = 1 / (c * c + s * s)
        for n in range(g.shape[1]):
            g[row, n] = f * (c * g[row - 2, n] - s * g[row - 1, n])
    else:
        s = value[row - 1]
        f = 1 / root(1 - s * s)
        for n in range(g.shape[1]):
            g[row, n] = f * g[row - 1, n]


@inlined
def gradient(cols, F, items, vectors, i, states, b, value, g):
    """Compute values and first order (…, M) of item i, in rows that are zero before."""
    kind, row = items[i, ITEM], items[i, ROW]
    if kind == COORDINATE or kind == PLANE_ANGLE or kind == LINEAR_TERM:
        linear_gradient(cols, F, items, vectors, i, states, b, value, g)
        return
    if kind == ANGLE or kind == ARCSINE:
        angle_gradient(kind, row, value, g)
        return
    body, base = items[i, FRAME_B], max(items[i, FRAME_A], -1)
    head, tail = (
        world_point(F, body, take(vectors, i, LOCAL_B)),
        world_point(F, base, take(vectors, i, LOCAL_A)),
    )
    u, sort = world_vector(F, base, take(vectors, i, EXTRA)), POINT
    gap, other = sub(head, tail), tail
    rows = 3 if kind <= OMEGA else 1
    weight = vectors[i, EXTRA] if kind == WEIGHTED_POINT else 1
    if kind == DIRECTION or kind == DOT1:
        head, sort = world_vector(F, body, take(vectors, i, LOCAL_B)), DIRECTION
        gap, other = head, zero(head)
        if kind == DOT1:
            u = world_vector(F, base, take(vectors, i, LOCAL_A))
    elif kind == OMEGA or kind == RELATIVE_OMEGA:
        sort, gap = OMEGA, zero(head)
    elif items[i, FRAME_A] < -1:
        gap = head
    if kind == WEIGHTED_POINT:
        for c in range(3):
            value[row + c] += weight * gap[c]
    elif rows == 3:
        for c in range(3):
            value[row + c] = gap[c]
    elif kind == DISTANCE:
        value[row] = root(dot(gap, gap))
        u = scale(1 / value[row], gap)
    else:
        value[row] = dot(u, gap)
    while body != base:
        # the deeper column first: both paths end at their common ancestor
        if body > base:
            n, v, sign = body, head, 1
        else:
            n, v, sign = base, other, -1
        v = scale(sign, first(cols, F, n, sort, v)) if affects(cols, n, sort) else zero(v)
        if body > base:
            body = cols[n, PARENT]
        else:
            base = cols[n, PARENT]
        if kind == WEIGHTED_POINT:
            for c in range(3):
                g[row + c, n] += weight * v[c]
        elif rows == 3:
            for c in range(3):
                g[row + c, n] = v[c]
        else:
            x = dot(u, v)
            if sign < 0 and affects(cols, n, DIRECTION) and (kind == DOT2 or kind == DOT1):
                x += dot(cross(take(F, n, AXIS), u), gap)
            g[row, n] = x


@entry
def first_order(plan, numbers, states, scratch, T):
    """Compute values and first order of rows, side by side in T (B, rows (1 + M)).

    Columns that carry both frames of a row are omitted: the row must not depend on them, as in a closed loop.
    Returns the number of members whose results are not finite.
    """
    not_finite = 0
    mobile, height = plan[0, COLUMNS], plan[2, HEIGHT]
    cols, geometry = plan[HEADER : HEADER + mobile], numbers[:mobile]
    start, _ = section(plan, ITEMS)
    items, vectors = plan[HEADER + start : HEADER + start + plan[2, SYSTEM]], numbers[start:]
    F = scratch[: mobile * FRAME_WIDTH].reshape(mobile, FRAME_WIDTH)
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        clear_range(T[b], 0, height * (1 + mobile))
        value, g = T[b, :height], T[b, height:].reshape(height, mobile)
        for i in range(items.shape[0]):
            gradient(cols, F, items, vectors, i, states, b, value, g)
        if has_nonfinite(T[b]):
            not_finite += 1
    return not_finite
