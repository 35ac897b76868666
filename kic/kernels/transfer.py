"""Entry: a mechanism in chosen coordinates q: its tree's coordinates, rows, I*, P* and loads, from one LU.

The chosen rows and independent closure rows are one square system w(φ). To first order G^w A = [1; 0], to
second G^w B = -[H^w](A, A), and to third likewise with the same matrix. The right sides are the rows computed
with B (or C) set to zero. All results are linear in B (or C), and its part is added at the end.

With LOWER pairs the angular velocities ω of balls may be coordinates. The second order is then computed for
rotation vectors ρ from the current configuration, true coordinates with ρ̇ = ω − ½ ρ × ω. It differs from that
for ω by ∓½ of the first order for the third axis (3-35).
"""

from __future__ import annotations

import numpy as np

from kic.kernels import layout as lay
from kic.kernels.constraint_jacobian import closure_gap, gradient
from kic.kernels.frames import frames, motion
from kic.kernels.functions import has_nonfinite, larger
from kic.kernels.inertia import COMPOSITE_WIDTH, composites
from kic.kernels.jit import entry, helper, inlined, part
from kic.kernels.linear_solve import factor, solve
from kic.kernels.loads import load_tables
from kic.kernels.newton_euler import inertia_tables, loads_block
from kic.kernels.offsets import block, packed_width, pair_count, sections
from kic.kernels.outputs import add_item
from kic.kernels.ranges import add_range, clear_range, copy_range, put_at, scale_range, vector_at
from kic.kernels.transferred_influence import (
    ball_turns,
    bare_frames,
    first_motion,
    second_motion,
    third_motion,
)
from kic.kernels.vectors import cross, sub


@helper
def scratch_parts(plan):
    """Return the ends of the parts of the scratch, in the order of their use below."""
    mobile, height = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT]
    size, rows = plan[1, lay.SIZE], plan[1, lay.ROWS]
    want, order, pairs = plan[1, lay.WANT], plan[1, lay.ORDER], plan[2, lay.PAIRS]
    count, most, every = pair_count(size, pairs), size, height + rows
    if order > 1:
        most = count
    if order > 2:
        most = size * size * size
    width = packed_width(1, size, pairs, order)  # of one row
    F = mobile * lay.FRAME_WIDTH
    Z = F + (mobile + 1) * block(size, count, order)
    U = Z + 3 * width
    V = U + 3 * width
    x = V + mobile * width
    t = x + every * width
    g = t + every * (1 + mobile)
    W = g + mobile * mobile
    R = W + mobile * most
    late = R + mobile * most
    units = late + width
    inertia = units
    if want & lay.WANT_INERTIA:
        inertia += 2 * loads_block(size, count) + size * (size + count)
    loads = inertia + (mobile * (COMPOSITE_WIDTH + 2 + mobile) if want & lay.WANT_LOADS else 0)
    return F, Z, U, V, x, t, g, W, R, late, units, inertia, loads


@helper
def scaled_system(mobile, vectors, choice, rest, g, W):
    """Compute the scaled square system G^w (4-11): used rows, columns in the order of elimination."""
    for i in range(mobile):
        f = 1 / vectors[choice[lay.USED_ITEM, i], lay.SCALE]
        row = choice[lay.USED_ROW, i]
        for j in range(mobile):
            W[i, j] = f * g[row, choice[lay.ELIMINATED, j]]
    for j in range(mobile):
        f = rest[choice[lay.ELIMINATED, j], lay.COLUMN_SCALE]
        for i in range(mobile):
            W[i, j] *= f


@inlined
def assemble(system, states, b, F, value, g, W):
    """Compute values and first order of all rows of a system at state b, and the scaled square system W.

    The system is (columns, geometry, items, vectors, rest, choice, number of items). The first order `g`
    (rows, M) follows the values in the same array.
    """
    cols, geometry, items, vectors, rest, choice, count = system
    motion(cols, geometry, states, b, F)
    frames(cols, geometry, F)
    clear_range(value, 0, value.shape[0])
    for i in range(count):
        gradient(cols, F, items, vectors, i, states, b, value, g.shape[0])
    scaled_system(cols.shape[0], vectors, choice, rest, g, W)


@helper
def spread(mobile, choice, rest, R, late, count):
    """Write solutions R, scaled and in the order of elimination, in units and order of the columns."""
    for j in range(mobile):
        n = choice[lay.ELIMINATED, j]
        scale_range(late, n * count, rest[n, lay.COLUMN_SCALE], R, j * count, count)


@helper
def right_sides(mobile, vectors, choice, t, start, R, count):
    """Write the scaled right sides of second order, -H^w(A, A) (4-20) to (4-23), or of third order."""
    for i in range(mobile):
        f = -1 / vectors[choice[lay.USED_ITEM, i], lay.SCALE]
        place = start + choice[lay.USED_ROW, i] * count
        scale_range(R, i * count, f, t, place, count)


@helper
def ball_coordinate(mobile, items, choice, n):
    """Return the index of the coordinate that is column n of a ball, or -1."""
    for i in range(mobile):
        if choice[lay.INPUT, i] >= 0:
            item = choice[lay.USED_ITEM, i]
            if items[item, lay.ITEM] == lay.COORDINATE and items[item, lay.FRAME_B] == n:
                return choice[lay.INPUT, i]
    return -1


@helper
def clear_balls(cols, items, choice, R, count):
    """Clear the right sides of balls that are coordinates: `ball_turns` is their second order for ρ."""
    for i in range(cols.shape[0]):
        item = choice[lay.USED_ITEM, i]
        chosen = choice[lay.INPUT, i] >= 0 and items[item, lay.ITEM] == lay.COORDINATE
        if chosen and cols[items[item, lay.FRAME_B], lay.KIND] == lay.BALL:
            clear_range(R, i * count, count)


@helper
def angular_velocities(cols, items, choice, size, rows, target, first, second):
    """Convert the second order of rows, at `second`, from coordinates ρ to ω; first order is at `first`."""
    for g in range(cols.shape[0]):
        if (
            cols[g, lay.KIND] != lay.BALL
            or cols[g, lay.GROUP] != g
            or ball_coordinate(cols.shape[0], items, choice, g) < 0
        ):
            continue
        for u in range(3):
            a = ball_coordinate(cols.shape[0], items, choice, g + u)
            b = ball_coordinate(cols.shape[0], items, choice, g + (u + 1) % 3)
            c = ball_coordinate(cols.shape[0], items, choice, g + (u + 2) % 3)
            for k in range(rows):
                x = target[first + k * size + c] / 2
                place = second + k * size * size
                target[place + a * size + b] -= x
                target[place + b * size + a] += x


@helper
def add_late(g, row, late, count, t, place):
    """Add the part of a row due to the coefficients `late` of the columns, which were set to zero."""
    for n in range(g.shape[1]):
        f = g[row, n]
        if f != 0:
            add_range(t, place, f, late, n * count, count)


@helper
def coordinate_units(vectors, choice, mobile, size, pairs, order, units):
    """Compute the factors that make coefficients of every order dimensionless in the coordinates."""
    for a in range(size):
        units[a] = 1
    for i in range(mobile):
        if choice[lay.INPUT, i] >= 0 and choice[lay.INPUT, i] < size:
            units[choice[lay.INPUT, i]] = abs(vectors[choice[lay.USED_ITEM, i], lay.SCALE])
    place = size
    if order > 1:
        for a in range(size):
            for b in range(size if pairs == lay.EVERY else a + 1):
                units[place] = units[a] * units[b]
                place += 1
    if order > 2:
        for c in range(size):
            for p in range(size * size):
                units[place] = units[c] * units[size + p]
                place += 1


@helper
def complete_rows(vectors, choice, left_out, height, rest, g, late, t, start, count, units, quality, order):
    """Complete one order of the requested rows, and store residuals of unused closure rows in `quality`.

    `units` (count,) are the factors of this order, which make residuals dimensionless.
    """
    large = worst = abs(late[0]) * 0
    for k in range(left_out + g.shape[0] - height):
        row = choice[lay.UNUSED_ROW, k] if k < left_out else height + k - left_out
        place = start + row * count
        add_late(g, row, late, count, t, place)
        if k < left_out:
            scale = abs(vectors[choice[lay.UNUSED_ITEM, k], lay.SCALE])
            for c in range(count):
                left = abs(t[place + c]) * abs(units[c]) / scale
                worst = larger(worst, left) + 0 * left
    if left_out > 0:
        for n in range(g.shape[1]):
            column = abs(rest[n, lay.COLUMN_SCALE])
            for c in range(count):
                large = max(large, abs(late[n * count + c]) * abs(units[c]) / column)
    quality[lay.LARGEST + order - 1] = large
    quality[lay.LEFT + order - 1] = worst


@helper
def unpack(t, start, rows, size, target, place):
    """Expand rows of pairs with b <= a to symmetric square tables."""
    for _ in range(rows):
        for a in range(size):
            for b in range(a + 1):
                target[place + a * size + b] = t[start]
                target[place + b * size + a] = t[start]
                start += 1
        place += size * size


@helper
def hand_out(items, first, height, pairs, order, size, t, rows, target):
    """Write the requested rows with every pair (a, b).

    For angular velocities H[a, b] and H[b, a] differ by ω_a × ω_b.
    """
    copy_range(target, 0, t, height, rows)
    start, count, place = height + rows, size, rows
    for k in range(1, order + 1):
        if k == 2 and pairs != lay.EVERY:
            unpack(t, start + height * count, rows, size, target, place)
        else:
            copy_range(target, place, t, start + height * count, rows * count)
        start += (height + rows) * count
        place += rows * size**k
        count = pair_count(size, pairs) if k == 1 else size * size * size
    if pairs == lay.EVERY or order < 2:
        return
    for i in range(first, items.shape[0]):
        if items[i, lay.ITEM] == lay.OMEGA:
            row = items[i, lay.ROW] - height
            g, h = rows + row * size, rows * (1 + size) + row * size * size
            for a in range(size):
                for b in range(a):
                    v = cross(vector_at(target, g + a, size), vector_at(target, g + b, size))
                    at = h + b * size + a
                    put_at(target, at, size * size, sub(vector_at(target, at, size * size), v))


@helper
def hand_out_inertia(t, size, pairs, target):
    """Write I* and P* with every pair."""
    square = size * size
    copy_range(target, 0, t, 0, square if pairs != lay.EVERY else square + square * size)
    if pairs != lay.EVERY:
        unpack(t, square, size, size, target, square)


@part
def chosen_loads(plan, numbers, applied, states, b, F, A, own, target, start):
    """Write T^L and damping in chosen coordinates into target from `start` on, from A (M m,).

    This is (3-37) to (3-42), or (4-28), (4-29) for closed loops: the loads of the tree times A.
    """
    mobile, size = plan[0, lay.COLUMNS], plan[1, lay.SIZE]
    (cols, _), _, bodies, forces, springs, rest = sections(plan, numbers)
    C = own[: mobile * COMPOSITE_WIDTH].reshape(mobile, COMPOSITE_WIDTH)
    stretch = own[mobile * COMPOSITE_WIDTH : mobile * (COMPOSITE_WIDTH + 1)]
    t = own[mobile * (COMPOSITE_WIDTH + 1) :]
    composites(cols, F, *bodies, C)
    load_tables(cols, F, C, *forces, applied, *springs, rest, states, b, t, stretch)
    clear_range(target, start, size + size * size)
    for n in range(mobile):
        for a in range(size):
            target[start + a] += A[n * size + a] * t[n]
    start += size
    for m in range(mobile):
        for n in range(mobile):
            f = t[mobile + m * mobile + n]
            if f != 0:
                for a in range(size):
                    for c in range(size):
                        target[start + a * size + c] += A[m * size + a] * f * A[n * size + c]


@part
def higher_rows(cols, F, into, bare, items, vectors, states, b, k, size, t, rows, U, V):
    """Compute the motion of every frame and all rows to order k, with order k of the tree set to zero."""
    Z, x, width, pairs, with_third = into
    if k == 2:
        ball_turns(cols, x, size, pairs)
    first_motion(cols, F, x, Z, width, size)
    second_motion(cols, F, x, Z, width, size, pairs, bare)
    if with_third is not None and k == 3:
        third_motion(cols, F, x, Z, width, size)
    clear_range(t, 0, t.shape[0])
    for i in range(items.shape[0]):
        add_item(cols, F, into, items, vectors, i, states, b, k, size, t, rows, U, V)


@entry
def transfer(plan, numbers, states, applied, choice, with_third, scratch, whole, X, T, K, quality):
    """Compute coefficients of the tree's coordinates, rows and dynamics in chosen coordinates at many states.

    For `choice` see `layout`. X (B or 0, …) receives the table of the tree's coordinates, T the table of the
    requested rows, which follow those of the system, and K the requested I*, P*, load and damping. With
    WANT_CURVATURE, T receives H(φ', φ') of the system's rows along the rates given in X. `whole` (3, M) is
    scratch. Third order is compiled only if `with_third` is not None. Returns the number of doubtful members:
    ill-conditioned or not finite, with open loops, or with unused closure rows that do not hold.
    """
    mobile, height, size = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT], plan[1, lay.SIZE]
    order, rows, want = plan[1, lay.ORDER], plan[1, lay.ROWS], plan[1, lay.WANT]
    first_asked, left_out = plan[2, lay.SYSTEM], plan[2, lay.LEFT_OUT]
    pairs, asked = plan[2, lay.PAIRS], plan[2, lay.ASKED]
    (cols, geometry), (items, vectors), (bodies, inertias), _, _, rest = sections(plan, numbers)
    allowed = abs(rest[mobile, lay.ALLOWED])
    endF, endZ, endU, endV, endx, endt, endg, endW, endR, endlate, endunits, endinertia, endloads = (
        scratch_parts(plan)
    )
    count, every = pair_count(size, pairs), height + rows
    width = block(size, count, order)
    F, Z = scratch[:endF].reshape(mobile, lay.FRAME_WIDTH), scratch[endF:endZ]
    U, V, x, t = scratch[endZ:endU], scratch[endU:endV], scratch[endV:endx], scratch[endx:endt]
    first = scratch[endt:endg]
    value, g = first[:every], first[every:].reshape(every, mobile)
    W, R, late = scratch[endg:endW].reshape(mobile, mobile), scratch[endW:endR], scratch[endR:endlate]
    pivots, ends, bare = whole[0], whole[1], whole[2]
    units = scratch[endlate:endunits]
    own_inertia, own_loads = scratch[endunits:endinertia], scratch[endinertia:endloads]
    tables, own = own_inertia[: size * (size + count)], own_inertia[size * (size + count) :]
    coordinate_units(vectors, choice, mobile, size, pairs, order, units)
    into = Z, x, width, pairs, with_third
    # ground is at rest
    clear_range(Z, 0, width)
    bare_frames(cols, geometry, items, bodies, bare)
    doubtful, nothing = 0, np.nan
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        clear_range(scratch, endt, every * (1 + mobile))
        for i in range(items.shape[0]):
            gradient(cols, F, items, vectors, i, states, b, first, every)
        quality[b, lay.PIVOT] = 1
        gap = closure_gap(items, vectors, first_asked, value)
        quality[b, lay.GAP] = gap
        if not want & lay.WANT_CURVATURE:
            scaled_system(mobile, vectors, choice, rest, g, W)
            quality[b, lay.PIVOT] = factor(W, pivots, ends)
            if quality[b, lay.PIVOT] == 0:
                # nothing can be solved for
                quality[b, lay.LARGEST : lay.GAP] = nothing
                T[b], K[b] = nothing, nothing
                if X.shape[0] > 0:
                    X[b] = nothing
                doubtful += 1
                continue
        # offsets of the current order in the tables of the tree's coordinates and of rows
        clear_range(x, 0, x.shape[0])
        x_start, t_start, terms = mobile, every, size
        for k in range(1, order + 1):
            if k == 1:
                clear_range(R, 0, mobile * size)
                for i in range(mobile):
                    if choice[lay.INPUT, i] >= 0:
                        R[i * size + choice[lay.INPUT, i]] = 1 / vectors[choice[lay.USED_ITEM, i], lay.SCALE]
                copy_range(t, 0, value, 0, every)
                clear_range(t, t_start, every * size)
            else:
                higher_rows(cols, F, into, bare, items, vectors, states, b, k, size, t, every, U, V)
                right_sides(mobile, vectors, choice, t, t_start, R, terms)
                if pairs != lay.EVERY:
                    clear_balls(cols, items, choice, R, terms)
            if want & lay.WANT_CURVATURE:
                if k == 2:
                    copy_range(T[b], 0, t, t_start, every)
                    break
                copy_range(late, 0, X[b], 0, mobile)
            else:
                solve(W, pivots, ends, R, terms)
                spread(mobile, choice, rest, R, late, terms)
            own_units = units[x_start // mobile - 1 :]
            complete_rows(
                vectors, choice, left_out, height, rest, g, late, t, t_start, terms, own_units, quality[b], k,
            )  # fmt: skip
            if k == 2 and want & lay.WANT_INERTIA:
                inertia_tables(
                    cols, F, bodies, inertias, rest, x, Z, width, own, late, size, count, tables,
                )  # fmt: skip
                hand_out_inertia(tables, size, pairs, K[b])
                if pairs != lay.EVERY:
                    angular_velocities(cols, items, choice, size, size, K[b], 0, size * size)
            add_range(x, x_start, 1, late, 0, mobile * terms)
            if k == 1 and want & lay.WANT_LOADS:
                start = size * (size + size * size) if want & lay.WANT_INERTIA else 0
                chosen_loads(plan, numbers, applied, states, b, F, late, own_loads, K[b], start)
            x_start += mobile * terms
            t_start += every * terms
            terms = count if k == 1 else size * size * size
        if asked > 0:
            hand_out(items, first_asked, height, pairs, asked, size, t, rows, T[b])
            if pairs != lay.EVERY and asked > 1:
                angular_velocities(cols, items, choice, size, rows, T[b], rows, rows * (1 + size))
        if X.shape[0] > 0 and not want & lay.WANT_CURVATURE:
            copy_range(X[b], 0, x, 0, x.shape[0])
        # NaN fails this test
        fine = quality[b, lay.PIVOT] > lay.GOOD_PIVOT and gap <= 1
        if left_out > 0:
            for k in range(order):
                fine = fine and quality[b, lay.LEFT + k] <= allowed
        fine = fine and not (has_nonfinite(T[b]) or has_nonfinite(K[b]) or has_nonfinite(states[b]))
        doubtful += 0 if fine else 1
    return doubtful
