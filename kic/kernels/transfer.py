"""Entry: a mechanism in chosen coordinates q: its tree's coordinates, any rows, I*, P* and loads, from one LU.

The chosen rows and independent closure rows are one square system w(φ). To first order G^w A = [1; 0]; to second
G^w B = -[H^w](A, A); to third likewise, always the same matrix. The right sides are what the rows have with B (or C)
left out; what that leaves out of any answer is linear in it and is added at the end.
"""

from kic.kernels.carried import ball_turns, frame_motion
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
    d_at,
    g_at,
    h_at,
    section,
    table_width,
)
from kic.kernels.loads import load_tables
from kic.kernels.lu import factor, solve
from kic.kernels.newton_euler import inertia_tables

# quality (B, 7): smallest pivot as a share of the largest; then of each order the largest coefficient of a column of the
# tree, and the worst that is left in a closure row that was not used
PIVOT, LARGEST, LEFT, QUALITY_WIDTH = 0, 1, 4, 7
# a pivot below this share of the largest is worth a second look
GOOD_PIVOT = 1e-3


@helper
def scratch_parts(plan):
    """Where the parts of the scratch end, in the order of their use below."""
    mobile, height, size = plan[0, COLUMNS], plan[2, HEIGHT], plan[1, SIZE]
    want, order = plan[1, WANT], plan[1, ORDER]
    width = table_width(3, size, order)
    F = mobile * FRAME_WIDTH
    Z = F + 2 * (mobile + 1) * width
    Y = Z + (2 * (mobile + 1) * width if want & WANT_INERTIA else 0)
    U = Y + width
    V = U + width
    x = V + table_width(mobile, size, order)
    t = x + table_width(height, size, order)
    g = t + height * (1 + mobile)
    W = g + mobile * mobile
    R = W + mobile * size**order
    late = R + mobile * size**order
    row = late + 3 * (1 + mobile)
    loads = row + (mobile * (COMPOSITE_WIDTH + 2 + mobile) if want & WANT_LOADS else 0)
    return F, Z, Y, U, V, x, t, g, W, R, late, row, loads


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
def spread(cols, choice, length, R, late, size, order, pairs):
    """Solutions R, in the order of elimination and perhaps without their mirror images, as columns stand."""
    for j in range(cols.shape[0]):
        n = choice[1, j]
        column = length if cols[n, KIND] == PRISMATIC else length / length
        if order == 2 and pairs != EVERY:
            place = 0
            for a in range(size):
                for b in range(a + 1):
                    v = R[j, place] * column
                    late[n, a * size + b] = v
                    late[n, b * size + a] = v
                    place += 1
        else:
            for c in range(size**order):
                late[n, c] = R[j, c] * column


@helper
def right_sides(vectors, choice, t, height, R, size, order, pairs):
    """What the rows of the system have without the unknown, negative and scaled; returns how many there are."""
    count = size**order
    start = h_at(height, size, 0, 0, 0) if order == 2 else d_at(height, size, 0, 0, 0, 0)
    for i in range(R.shape[0]):
        scale = vectors[choice[2, i], SCALE]
        place = start + choice[0, i] * count
        if order == 2 and pairs != EVERY:
            k = 0
            for a in range(size):
                for b in range(a + 1):
                    R[i, k] = -t[place + a * size + b] / scale
                    k += 1
        else:
            for c in range(count):
                R[i, c] = -t[place + c] / scale
    return size * (size + 1) // 2 if order == 2 and pairs != EVERY else count


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
def put_order(x, late, start, count):
    """Add the columns' coefficients of one order to their table."""
    for n in range(late.shape[0]):
        for c in range(count):
            x[start + n * count + c] += late[n, c]


@helper
def add_items(cols, F, into, items, vectors, start, stop, states, b, order, size, t, rows, U, V):
    """Rows of several items, the table being cleared first."""
    for place in range(table_width(rows, size, order)):
        t[place] = 0
    for i in range(start, stop):
        add_item(cols, F, into, items, vectors, i, states, b, order, size, t, rows, U, V)


@helper
def loads_of(cols, late, size, t, loads, damping):
    """T^L and damping of the tree, side by side in t, in chosen coordinates: by A, which is in `late`."""
    mobile = cols.shape[0]
    for a in range(size):
        x = t[0] * 0
        for n in range(mobile):
            x += late[n, a] * t[n]
        loads[a] = x
        for c in range(size):
            damping[a * size + c] = x * 0
    for m in range(mobile):
        for n in range(mobile):
            f = t[mobile + m * mobile + n]
            if f != 0:
                for a in range(size):
                    for c in range(size):
                        damping[a * size + c] += late[m, a] * f * late[n, c]


@helper
def asked_rows(cols, F, into, items, vectors, start, states, b, order, size, t, rows, U, V, late, value, g):
    """Rows asked for, with what the highest order has by the part of the columns' coefficients left out."""
    add_items(cols, F, into, items, vectors, start, items.shape[0], states, b, order, size, t, rows, U, V)
    if order < 2:
        return
    count = size**order
    place = h_at(rows, size, 0, 0, 0) if order == 2 else d_at(rows, size, 0, 0, 0, 0)
    for i in range(start, items.shape[0]):
        for c in range(3):
            for n in range(cols.shape[0]):
                g[c, n] = 0
        gradient(cols, F, items, vectors, i, states, b, 0, value, g)
        row = items[i, ROW]
        for c in range(3 if items[i, ITEM] <= OMEGA else 1):
            add_late(g, c, late, count, t, place + (row + c) * count)


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
    endF, endZ, endY, endU, endV, endx, endt, endg, endW, endR, endlate, endrow, endloads = scratch_parts(
        plan
    )
    F = scratch[:endF].reshape(mobile, FRAME_WIDTH)
    Z = scratch[endF:endZ].reshape(2 * (mobile + 1), table_width(3, size, order))
    U, V, x, t = scratch[endY:endU], scratch[endU:endV], scratch[endV:endx], scratch[endx:endt]
    value, g = scratch[endt : endt + height], scratch[endt + height : endg].reshape(height, mobile)
    W, pivots, ends = scratch[endg:endW].reshape(mobile, mobile), whole[0], whole[1]
    row_value, row_g = scratch[endlate : endlate + 3], scratch[endlate + 3 : endrow].reshape(3, mobile)
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
        for place in range(x.shape[0]):
            x[place] = 0
        scaled_system(cols, items, vectors, choice, length, g, W)
        quality[b, PIVOT] = factor(W, pivots, ends)
        # three orders, one after the other
        for k in range(1, order + 1):
            count, now = size**k, pairs if k < 3 else EVERY
            into = Z, x, now
            R = scratch[endW : endW + mobile * count].reshape(mobile, count)
            late = scratch[endR : endR + mobile * count].reshape(mobile, count)
            if k == 1:
                for place in range(endW, endW + mobile * count):
                    scratch[place] = 0
                for i in range(size):
                    R[i, i] = 1 / vectors[choice[2, i], SCALE]
                table_start, x_start, wide = g_at(height, size, 0, 0), mobile, count
                for place in range(table_start, t.shape[0]):
                    t[place] = 0
            else:
                if k == 2:
                    ball_turns(cols, x, size)
                    x_start, table_start = h_at(mobile, size, 0, 0, 0), h_at(height, size, 0, 0, 0)
                else:
                    # now with all of B, and with every order of differentiation
                    frame_motion(cols, F, x, Z, 2, EVERY, size)
                    x_start, table_start = d_at(mobile, size, 0, 0, 0, 0), d_at(height, size, 0, 0, 0, 0)
                frame_motion(cols, F, x, Z, k, now, size)
                add_items(cols, F, into, items, vectors, 0, first_asked, states, b, k, size, t, height, U, V)
                wide = right_sides(vectors, choice, t, height, R, size, k, now)
            solve(W, pivots, ends, R, wide)
            spread(cols, choice, length, R, late, size, k, now)
            judge(vectors, choice, left_out, g, late, t, table_start, count, k, quality[b])
            if k == 1:
                put_order(x, late, x_start, count)
                frame_motion(cols, F, x, Z, 1, pairs, size)
                if want & WANT_LOADS:
                    C = scratch[endrow : endrow + mobile * COMPOSITE_WIDTH].reshape(mobile, COMPOSITE_WIDTH)
                    middle = endrow + mobile * COMPOSITE_WIDTH
                    tree, stretch = scratch[middle + mobile : endloads], scratch[middle : middle + mobile]
                    composites(cols, F, bodies, inertias, C)
                    load_tables(
                        cols, F, C, forces, places, applied, springs, coils, rest, states, b, tree, stretch
                    )
                    at_load = size * size * (1 + size) if want & WANT_INERTIA else 0
                    loads_of(cols, late, size, tree, K[b, at_load:], K[b, at_load + size :])
            elif k == 2 and want & WANT_INERTIA:
                Y = scratch[endZ:endY].reshape(2 * (mobile + 1), table_width(3, size, order))
                inertia_tables(cols, F, bodies, inertias, x, Z, Y, late, pairs, size, K[b])
            if k == asked and rows > 0:
                asked_rows(
                    cols, F, into, items, vectors, first_asked, states, b, k, size, T[b], rows, U, V, late,
                    row_value, row_g,
                )  # fmt: skip
            if k > 1:
                put_order(x, late, x_start, count)
        if X.shape[0] > 0:
            for place in range(x.shape[0]):
                X[b, place] = x[place]
        # not-a-number is never fine
        fine = quality[b, PIVOT] > GOOD_PIVOT
        for k in range(order):
            fine = fine and quality[b, LEFT + k] <= allowed
        suspects += 0 if fine else 1
    return suspects
