"""Values and first order of rows in the tree's coordinates, from the columns that carry only one frame.

A column that carries both frames of a row does not affect the row of a closed loop. Such columns are omitted:
their entries stay exactly zero, and a loop depends only on its joints.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import frames, motion, world_point, world_vector
from kic.kernels.functions import has_nonfinite, root
from kic.kernels.influence import affects, first, zero
from kic.kernels.jit import compiled_by, entry, inlined
from kic.kernels.offsets import section
from kic.kernels.ranges import clear_range
from kic.kernels.vectors import cross, dot, scale, sub, take


@inlined
def linear_gradient(cols, F, items, vectors, i, states, b, value, g):
    """Add value and gradient of a coordinate, a term of a coupling, or the plane angle of a body."""
    n, row = items[i, lay.FRAME_B], items[i, lay.ROW]
    if items[i, lay.ITEM] == lay.COORDINATE:
        g[row, n] += 1
        if cols[n, lay.KIND] <= lay.PRISMATIC:
            value[row] = states[b, cols[n, lay.STATE]]
        return
    if items[i, lay.ITEM] == lay.LINEAR_TERM:
        g[row, n] += vectors[i, lay.RATIO]
        value[row] += vectors[i, lay.RATIO] * states[b, cols[n, lay.STATE]] - vectors[i, lay.RATIO_OFFSET]
        return
    normal = take(vectors, i, lay.EXTRA)
    value[row] = vectors[i, 0]
    while n >= 0:
        if cols[n, lay.KIND] == lay.REVOLUTE:
            sign = dot(normal, take(F, n, lay.AXIS))
            g[row, n] += sign
            value[row] += sign * states[b, cols[n, lay.STATE]]
        n = cols[n, lay.PARENT]


@inlined
def angle_gradient(kind, row, value, g):
    """Compute the first order of an angle from the preceding rows; its value is not computed here."""
    if kind == lay.ANGLE:
        s, c = value[row - 2], value[row - 1]
        f = 1 / (c * c + s * s)
        for n in range(g.shape[1]):
            g[row, n] = f * (c * g[row - 2, n] - s * g[row - 1, n])
    else:
        x, y = value[row - 4], value[row - 3]
        f = 1 / root(x * x + y * y)
        for n in range(g.shape[1]):
            g[row, n] = f * g[row - 1, n]


@inlined
def gradient(cols, F, items, vectors, i, states, b, value, g):
    """Compute values and first order (…, M) of item i in rows that are initially zero."""
    kind, row = items[i, lay.ITEM], items[i, lay.ROW]
    if kind == lay.COORDINATE or kind == lay.PLANE_ANGLE or kind == lay.LINEAR_TERM:
        linear_gradient(cols, F, items, vectors, i, states, b, value, g)
        return
    if kind == lay.ANGLE or kind == lay.ARCSINE:
        angle_gradient(kind, row, value, g)
        return
    body, base = items[i, lay.FRAME_B], max(items[i, lay.FRAME_A], -1)
    head, tail = (
        world_point(F, body, take(vectors, i, lay.LOCAL_B)),
        world_point(F, base, take(vectors, i, lay.LOCAL_A)),
    )
    u, sort = world_vector(F, base, take(vectors, i, lay.EXTRA)), lay.POINT
    gap, other = sub(head, tail), tail
    rows = 3 if kind <= lay.OMEGA else 1
    weight = vectors[i, lay.EXTRA] if kind == lay.WEIGHTED_POINT else 1
    if kind == lay.DIRECTION or kind == lay.DOT1:
        head, sort = world_vector(F, body, take(vectors, i, lay.LOCAL_B)), lay.DIRECTION
        gap, other = head, zero(head)
        if kind == lay.DOT1:
            u = world_vector(F, base, take(vectors, i, lay.LOCAL_A))
    elif kind == lay.OMEGA or kind == lay.RELATIVE_OMEGA:
        sort, gap = lay.OMEGA, zero(head)
    elif items[i, lay.FRAME_A] < -1:
        gap = head
    if kind == lay.WEIGHTED_POINT:
        for c in range(3):
            value[row + c] += weight * gap[c]
    elif rows == 3:
        for c in range(3):
            value[row + c] = gap[c]
    elif kind == lay.DISTANCE:
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
            body = cols[n, lay.PARENT]
        else:
            base = cols[n, lay.PARENT]
        if kind == lay.WEIGHTED_POINT:
            for c in range(3):
                g[row + c, n] += weight * v[c]
        elif rows == 3:
            for c in range(3):
                g[row + c, n] = v[c]
        else:
            x = dot(u, v)
            if sign < 0 and affects(cols, n, lay.DIRECTION) and (kind == lay.DOT2 or kind == lay.DOT1):
                x += dot(cross(take(F, n, lay.AXIS), u), gap)
            g[row, n] = x


def _closure_gap(items, vectors, count, value):
    worst = 0.0
    for i in range(count):
        factor = abs(vectors[i, lay.CLOSED_FACTOR])
        if factor > 0:
            row, rows = items[i, lay.ROW], 3 if items[i, lay.ITEM] <= lay.OMEGA else 1
            for k in range(rows):
                left = factor * abs(value[row + k] - vectors[i, lay.CLOSED_VALUE])
                # NaN remains
                worst = max(worst, left) + 0 * left
    return worst


def closure_gap(items, vectors, count, value):
    """Return the largest residual of the closure rows among `count` items; 0 for objects.

    The residual is relative to the largest residual of a closed state. It is NaN if a value is NaN.
    """
    return 0.0 if value.dtype.kind == "O" else _closure_gap(items, vectors, count, value)


compiled_by(closure_gap, _closure_gap, forceinline=True)


@entry
def first_order(plan, numbers, states, scratch, T):
    """Compute values and first order of rows, side by side in T (B, rows (1 + M)).

    Columns that carry both frames of a row are omitted: the row must not depend on them, as in a closed loop.
    Returns the number of members whose results are not finite.
    """
    not_finite = 0
    mobile, height = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT]
    cols, geometry = plan[lay.HEADER : lay.HEADER + mobile], numbers[:mobile]
    start, _ = section(plan, lay.ITEMS)
    items, vectors = plan[lay.HEADER + start : lay.HEADER + start + plan[2, lay.SYSTEM]], numbers[start:]
    F = scratch[: mobile * lay.FRAME_WIDTH].reshape(mobile, lay.FRAME_WIDTH)
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
