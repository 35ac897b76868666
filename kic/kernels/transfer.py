"""Entry: a mechanism in chosen coordinates q: its tree's coordinates, any rows, I*, P* and loads, from one LU.

The chosen rows and independent closure rows are one square system w(φ). To first order G^w A = [1; 0]; to second
G^w B = -[H^w](A, A); to third likewise, always the same matrix. The right sides are what the rows have with B (or C)
left out; what that leaves out of any answer is linear in it and is added at the end.
"""

from kic.kernels.carried import (
    ball_turns,
    block,
    first_motion,
    of,
    put_at,
    second_motion,
    third_motion,
)
from kic.kernels.compiled import entry, helper
from kic.kernels.frames import frames, motion
from kic.kernels.gradients import gradient
from kic.kernels.inertia import COMPOSITE_WIDTH, composites
from kic.kernels.kinematics import add_item
from kic.kernels.layout import (
    ALLOWED,
    ASKED,
    BODIES,
    COLUMNS,
    EVERY,
    FORCES,
    FRAME_WIDTH,
    HEADER,
    HEIGHT,
    ITEM,
    ITEMS,
    KIND,
    LEFT_OUT,
    LENGTH,
    OMEGA,
    ORDER,
    PAIRS,
    PRISMATIC,
    ROW,
    ROWS,
    SCALE,
    SIZE,
    SPRINGS,
    SYSTEM,
    WANT,
    WANT_INERTIA,
    WANT_LOADS,
    WANT_SYSTEM,
    packed_width,
    pair_count,
    section,
)
from kic.kernels.loads import load_tables
from kic.kernels.lu import factor, solve
from kic.kernels.newton_euler import inertia_tables, loads_block
from kic.kernels.vectors import cross, sub

# quality (B, 7): smallest pivot as a share of the largest; then of each order the largest coefficient of a column of the
# tree, and the worst that is left in a closure row that was not used
PIVOT, LARGEST, LEFT, QUALITY_WIDTH = 0, 1, 4, 7
# a pivot below this share of the largest is worth a second look
GOOD_PIVOT = 1e-3


@helper
def scratch_parts(plan):
    """Where the parts of the scratch end, in the order of their use below."""
    mobile, height, size, rows = plan[0, COLUMNS], plan[2, HEIGHT], plan[1, SIZE], plan[1, ROWS]
    want, order, pairs = plan[1, WANT], plan[1, ORDER], plan[2, PAIRS]
    count, most = pair_count(size, pairs), size
    if order > 1:
        most = count
    if order > 2:
        most = size * size * size
    width = packed_width(3, size, pairs, order)
    F = mobile * FRAME_WIDTH
    Z = F + (mobile + 1) * block(size, count, order)
    U = Z + width
    V = U + width
    x = V + packed_width(mobile, size, pairs, order)
    t = x + packed_width(height, size, pairs, order)
    g = t + height * (1 + mobile)
    W = g + mobile * mobile
    R = W + mobile * most
    late = R + mobile * most
    row = late + 3 * (1 + mobile)
    asked = row + packed_width(rows, size, pairs, plan[2, ASKED])
    inertia = asked
    if want & WANT_INERTIA:
        inertia += (mobile + 2) * loads_block(size, pairs) + size * (size + count)
    loads = inertia + (mobile * (COMPOSITE_WIDTH + 2 + mobile) if want & WANT_LOADS else 0)
    return F, Z, U, V, x, t, g, W, R, late, row, asked, inertia, loads


@helper
def scaled_system(cols, items, vectors, choice, length, g, W):
    """The square system: rows chosen for use, divided by their scales, columns in the order of elimination."""
    mobile = cols.shape[0]
    for j in range(mobile):
        n = choice[1, j]
        column = length if cols[n, KIND] == PRISMATIC else length / length
        for i in range(mobile):
            W[i, j] = g[choice[0, i], n] * column / vectors[choice[2, i], SCALE]


@helper
def spread(cols, choice, length, R, late, count):
    """Solutions R, in the order of elimination, as columns stand."""
    for j in range(cols.shape[0]):
        n = choice[1, j]
        column = length if cols[n, KIND] == PRISMATIC else length / length
        for c in range(count):
            late[n, c] = R[j, c] * column


@helper
def right_sides(vectors, choice, t, start, R, count):
    """What the rows of the system have without the unknown, negative and scaled."""
    for i in range(R.shape[0]):
        f = -1 / vectors[choice[2, i], SCALE]
        place = start + choice[0, i] * count
        for c in range(count):
            R[i, c] = f * t[place + c]


@helper
def add_late(g, row, late, count, t, place):
    """Add what a row has by the part of the columns' coefficients that was left out."""
    for n in range(late.shape[0]):
        f = g[row, n]
        if f != 0:
            for c in range(count):
                t[place + c] += f * late[n, c]


@helper
def judge(vectors, choice, left_out, g, late, t, start, count, order, quality):
    """Largest coefficient of this order, and the worst left in closure rows that were not used."""
    large = worst = abs(late[0, 0]) * 0
    for n in range(late.shape[0]):
        for c in range(count):
            large = max(large, abs(late[n, c]))
    for k in range(left_out):
        row, scale = choice[3, k], abs(vectors[choice[4, k], SCALE])
        place = start + row * count
        add_late(g, row, late, count, t, place)
        for c in range(count):
            worst = max(worst, abs(t[place + c]) / scale)
    quality[LARGEST + order - 1] = large
    quality[LEFT + order - 1] = worst


@helper
def put_order(late, count, x, start):
    """Add the columns' coefficients of one order to their table."""
    for n in range(late.shape[0]):
        for c in range(count):
            x[start + n * count + c] += late[n, c]


@helper
def add_items(cols, F, into, items, vectors, start, stop, states, b, order, size, t, rows, U, V):
    """Rows of several items, the table being cleared first."""
    for place in range(packed_width(rows, size, into[3], order)):
        t[place] = 0
    for i in range(start, stop):
        add_item(cols, F, into, items, vectors, i, states, b, order, size, t, rows, U, V)


@helper
def asked_rows(cols, F, into, items, vectors, start, states, b, order, size, t, rows, U, V, late, value, g):
    """Rows asked for, with what the highest order has by the part of the columns' coefficients left out."""
    add_items(cols, F, into, items, vectors, start, items.shape[0], states, b, order, size, t, rows, U, V)
    if order < 2:
        return
    count = late.shape[1]
    place = rows * (1 + size) if order == 2 else rows * (1 + size + size * size)
    for i in range(start, items.shape[0]):
        for c in range(3):
            for n in range(cols.shape[0]):
                g[c, n] = 0
        gradient(cols, F, items, vectors, i, states, b, 0, value, g)
        row = items[i, ROW]
        for c in range(3 if items[i, ITEM] <= OMEGA else 1):
            add_late(g, c, late, count, t, place + (row + c) * count)


@helper
def unpack(t, start, rows, size, target, place):
    """Square tables of rows of pairs with b <= a."""
    for row in range(rows):
        for a in range(size):
            for b in range(a + 1):
                target[place + a * size + b] = t[start]
                target[place + b * size + a] = t[start]
                start += 1
        place += size * size


@helper
def hand_out(items, first, pairs, order, size, t, rows, target):
    """Rows asked for, with every pair: those of turnings differ by ω_a × ω_b in the order of differentiation."""
    if pairs == EVERY or order < 2:
        for place in range(packed_width(rows, size, pairs, order)):
            target[place] = t[place]
        return
    square = size * size
    for place in range(rows * (1 + size)):
        target[place] = t[place]
    unpack(t, rows * (1 + size), rows, size, target, rows * (1 + size))
    for i in range(first, items.shape[0]):
        if items[i, ITEM] == OMEGA:
            g, h = rows + items[i, ROW] * size, rows * (1 + size) + items[i, ROW] * square
            for a in range(size):
                for b in range(a):
                    v = cross(of(t, g + a, size), of(t, g + b, size))
                    place = h + b * size + a
                    put_at(target, place, square, sub(of(target, place, square), v))


@helper
def hand_out_inertia(t, size, pairs, target):
    """I* and P* with every pair."""
    square = size * size
    for place in range(square):
        target[place] = t[place]
    if pairs == EVERY:
        for place in range(square, square + square * size):
            target[place] = t[place]
    else:
        unpack(t, square, size, size, target, square)


@helper
def chosen_loads(
    cols, F, bodies, inertias, forces, places, applied, springs, coils, rest, states, b, A, size, own, target, start
):  # fmt: skip
    """T^L and damping of the tree, in chosen coordinates by A (M, m), into target from `start` on."""
    mobile = cols.shape[0]
    C = own[: mobile * COMPOSITE_WIDTH].reshape(mobile, COMPOSITE_WIDTH)
    stretch = own[mobile * COMPOSITE_WIDTH : mobile * (COMPOSITE_WIDTH + 1)]
    t = own[mobile * (COMPOSITE_WIDTH + 1) :]
    composites(cols, F, bodies, inertias, C)
    load_tables(cols, F, C, forces, places, applied, springs, coils, rest, states, b, t, stretch)
    for place in range(start, start + size + size * size):
        target[place] = 0
    for n in range(mobile):
        for a in range(size):
            target[start + a] += A[n, a] * t[n]
    start += size
    for m in range(mobile):
        for n in range(mobile):
            f = t[mobile + m * mobile + n]
            if f != 0:
                for a in range(size):
                    for c in range(size):
                        target[start + a * size + c] += A[m, a] * f * A[n, c]


@entry
def transfer(plan, numbers, states, applied, choice, scratch, whole, X, T, K, quality):
    """Coefficients of the tree's coordinates, rows and dynamics in chosen coordinates at a batch of postures.

    choice (5, n): rows used and columns in the order of elimination, the items of those rows; closure rows that are
    not used, and their items. X (B or 0, …) receives the table of the tree's coordinates; T that of the rows asked for, which
    follow the system among the items; K receives I*, P*, load, damping as wanted. Where the system alone is wanted, T
    receives its rows' values and first order in the tree's own coordinates. `whole` (2, M) is scratch.
    """
    mobile, height, size = plan[0, COLUMNS], plan[2, HEIGHT], plan[1, SIZE]
    order, rows, want = plan[1, ORDER], plan[1, ROWS], plan[1, WANT]
    first_asked, left_out = plan[2, SYSTEM], plan[2, LEFT_OUT]
    pairs, asked = plan[2, PAIRS], plan[2, ASKED]
    cols, geometry = plan[HEADER : HEADER + mobile], numbers[:mobile]
    start, stop = section(plan, ITEMS)
    items, vectors = plan[HEADER + start : HEADER + stop], numbers[start:stop]
    start, stop = section(plan, BODIES)
    bodies, inertias = plan[HEADER + start : HEADER + stop], numbers[start:stop]
    start, stop = section(plan, FORCES)
    forces, places = plan[HEADER + start : HEADER + stop], numbers[start:stop]
    start, stop = section(plan, SPRINGS)
    springs, coils, rest = plan[HEADER + start : HEADER + stop], numbers[start:stop], numbers[stop:]
    length = numbers[numbers.shape[0] - 1, LENGTH]
    allowed = abs(numbers[numbers.shape[0] - 1, ALLOWED])
    (
        endF, endZ, endU, endV, endx, endt, endg, endW, endR, endlate, endrow, endasked, endinertia, endloads,
    ) = scratch_parts(plan)  # fmt: skip
    count = pair_count(size, pairs)
    width = block(size, count, order)
    F, Z = scratch[:endF].reshape(mobile, FRAME_WIDTH), scratch[endF:endZ]
    U, V, x, t = scratch[endZ:endU], scratch[endU:endV], scratch[endV:endx], scratch[endx:endt]
    value, g = scratch[endt : endt + height], scratch[endt + height : endg].reshape(height, mobile)
    W, pivots, ends = scratch[endg:endW].reshape(mobile, mobile), whole[0], whole[1]
    R1, R2 = scratch[endW : endW + mobile * size], scratch[endW : endW + mobile * count]
    late1, late2 = scratch[endR : endR + mobile * size], scratch[endR : endR + mobile * count]
    row_value, row_g = scratch[endlate : endlate + 3], scratch[endlate + 3 : endrow].reshape(3, mobile)
    own_rows, own_inertia = scratch[endrow:endasked], scratch[endasked:endinertia]
    own_loads = scratch[endinertia:endloads]
    into = Z, x, width, pairs
    # ground rests
    for place in range(width):
        Z[place] = 0
    suspects = 0
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        for place in range(endt, endg):
            scratch[place] = 0
        for i in range(first_asked):
            gradient(cols, F, items, vectors, i, states, b, items[i, ROW], value, g)
        if want & WANT_SYSTEM:
            for place in range(height * (1 + mobile)):
                T[b, place] = scratch[endt + place]
            continue
        scaled_system(cols, items, vectors, choice, length, g, W)
        quality[b, PIVOT] = factor(W, pivots, ends)
        for place in range(x.shape[0]):
            x[place] = 0
        # first order
        R, late = R1.reshape(mobile, size), late1.reshape(mobile, size)
        for i in range(mobile):
            for a in range(size):
                R[i, a] = 0
        for i in range(size):
            R[i, i] = 1 / vectors[choice[2, i], SCALE]
        solve(W, pivots, ends, R, size)
        spread(cols, choice, length, R, late, size)
        if left_out > 0:
            for place in range(height, height * (1 + size)):
                t[place] = 0
            judge(vectors, choice, left_out, g, late, t, height, size, 1, quality[b])
        put_order(late, size, x, mobile)
        if want & WANT_LOADS:
            start = size * (size + size * size) if want & WANT_INERTIA else 0
            chosen_loads(
                cols, F, bodies, inertias, forces, places, applied, springs, coils, rest, states, b, late, size,
                own_loads, K[b], start,
            )  # fmt: skip
        if order > 1 or asked > 0:
            first_motion(cols, F, x, Z, width, size)
        # second order
        if order > 1:
            R, late = R2.reshape(mobile, count), late2.reshape(mobile, count)
            ball_turns(cols, x, size, pairs)
            second_motion(cols, F, x, Z, width, size, pairs)
            add_items(cols, F, into, items, vectors, 0, first_asked, states, b, 2, size, t, height, U, V)
            right_sides(vectors, choice, t, height * (1 + size), R, count)
            solve(W, pivots, ends, R, count)
            spread(cols, choice, length, R, late, count)
            if left_out > 0:
                judge(vectors, choice, left_out, g, late, t, height * (1 + size), count, 2, quality[b])
            if want & WANT_INERTIA:
                tables, Y = own_inertia[: size * (size + count)], own_inertia[size * (size + count) :]
                inertia_tables(cols, F, bodies, inertias, x, Z, width, Y, late, size, pairs, tables)
                hand_out_inertia(tables, size, pairs, K[b])
        if order < 3 and asked > 0:
            asked_rows(
                cols, F, into, items, vectors, first_asked, states, b, asked, size, own_rows, rows, U, V, late,
                row_value, row_g,
            )  # fmt: skip
        if order > 1:
            put_order(late, count, x, mobile * (1 + size))
        # third order, now with all of B, and with every pair and triple
        if order > 2:
            cube, square = size * count, size + count
            R = scratch[endW : endW + mobile * cube].reshape(mobile, cube)
            late = scratch[endR : endR + mobile * cube].reshape(mobile, cube)
            second_motion(cols, F, x, Z, width, size, pairs)
            third_motion(cols, F, x, Z, width, size)
            add_items(cols, F, into, items, vectors, 0, first_asked, states, b, 3, size, t, height, U, V)
            right_sides(vectors, choice, t, height * (1 + square), R, cube)
            solve(W, pivots, ends, R, cube)
            spread(cols, choice, length, R, late, cube)
            if left_out > 0:
                judge(vectors, choice, left_out, g, late, t, height * (1 + square), cube, 3, quality[b])
            if asked > 0:
                asked_rows(
                    cols, F, into, items, vectors, first_asked, states, b, asked, size, own_rows, rows, U, V,
                    late, row_value, row_g,
                )  # fmt: skip
            put_order(late, cube, x, mobile * (1 + square))
        if asked > 0:
            hand_out(items, first_asked, pairs, asked, size, own_rows, rows, T[b])
        if X.shape[0] > 0:
            for place in range(x.shape[0]):
                X[b, place] = x[place]
        # not-a-number is never fine
        fine = quality[b, PIVOT] > GOOD_PIVOT
        if left_out > 0:
            for k in range(order):
                fine = fine and quality[b, LEFT + k] <= allowed
        suspects += 0 if fine else 1
    return suspects
