"""Entry: rates and accelerations of least weighted norm, for more coordinates than task rows.

They follow from a table of rows, and a table of dynamics if needed. With X = Q⁻¹Gᵀ and A = G X + λ²S, the
multiplier is l = A⁻¹(u̇ - G z), and q̇ = z + X l. The time derivative of Q (q̇ - z) = Gᵀ l gives the
acceleration: Q̇ follows from P*, Ġ from H.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.jit import entry, helper
from kic.kernels.linear_solve import solve_symmetric
from kic.kernels.operational_space import (
    DAMPING_PLACE,
    G_PLACE,
    H_PLACE,
    I_PLACE,
    IN_ORDER,
    LISTS,
    LOAD_PLACE,
    P_PLACE,
    SIZE,
    TASK,
    factor_task,
    gather,
    weighted,
)
from kic.kernels.ranges import add_range, clear_range, copy_range

# plan: as in kernels.operational_space. asked: highest order; kind of the weight Q; 1 if accelerations are
# the derivative of the rates, 0 if they are a separate minimum; 1 if rates are given; 1 for efforts
ORDER, METRIC, CONSISTENT, GIVEN_RATES, EFFORTS = range(5)
# numbers: the largest λ², the squared manipulability below which λ² grows (0 for constant λ²), and the unit
# of λ² for each row of the task
LARGEST, NEAR, SOFT = range(3)
# quality: the smallest pivot shares of Q, and of A without damping
METRIC_SHARE, TASK_SHARE = range(2)


@helper
def dot_range(Z, a, Y, b, count):
    """Return the scalar product of two ranges."""
    total = Z[a] * Y[b]
    for k in range(1, count):
        total += Z[a + k] * Y[b + k]
    return total


@helper
def scratch_places(size, rows):
    """Return the offsets of the parts of the scratch, and its length.

    The parts are G, Ġ, X, A, Q, C, a plane, three squares, y and x together, and two right sides.
    """
    G = 0
    rate = G + rows * size
    X = rate + rows * size
    A = X + size * rows
    Q = A + rows * rows
    C = Q + size * size
    plane = C + size * size
    square = plane + size * size
    y = square + 3 * rows * rows
    right = y + 2 * size
    return G, rate, X, A, Q, C, plane, square, y, right, right + 2 * rows


@helper
def task_first(plan, t, Z, start):
    """Copy G (P, M) of the task."""
    size = plan[SIZE]
    for p in range(plan[TASK]):
        gather(plan, t, plan[G_PLACE], 1, plan[LISTS + p] * size, Z, start + p * size)


@helper
def along(plan, t, place, row, v, here, Z, plane, out):
    """Compute v_a times row a of square `row` (M, M) in a table, summed over a, in coordinate order."""
    size = plan[SIZE]
    clear_range(Z, out, size)
    if plan[IN_ORDER]:
        start = place + row * size * size
        for a in range(size):
            add_range(Z, out, v[here + a], t, start + a * size, size)
        return
    gather(plan, t, place, 2, row * size * size, Z, plane)
    for a in range(size):
        add_range(Z, out, v[here + a], Z, plane + a * size, size)


@helper
def swap(Z, A, size, i, k):
    """Exchange rows and columns i and k of a square."""
    for n in range(size):
        Z[A + i * size + n], Z[A + k * size + n] = Z[A + k * size + n], Z[A + i * size + n]
    for n in range(size):
        Z[A + n * size + i], Z[A + n * size + k] = Z[A + n * size + k], Z[A + n * size + i]


@helper
def determinant(Z, A, rate, size):
    """Return the determinant of a symmetric positive matrix, and its rate; both matrices are overwritten.

    The largest pivots come first, so the rate is valid at a zero determinant too.
    """
    total, change = Z[A] * 0 + 1, Z[A] * 0
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if Z[A + i * size + i].real > Z[A + best * size + best].real:
                best = i
        if best != k:
            swap(Z, A, size, best, k)
            swap(Z, rate, size, best, k)
        d, moved = Z[A + k * size + k], Z[rate + k * size + k]
        change = change * d + total * moved
        total = total * d
        if not abs(d) > 0:
            continue
        for i in range(k + 1, size):
            f = Z[A + i * size + k] / d
            g = (Z[rate + i * size + k] - f * moved) / d
            for j in range(k + 1, size):
                Z[A + i * size + j] -= f * Z[A + k * size + j]
                Z[rate + i * size + j] -= g * Z[A + k * size + j] + f * Z[rate + k * size + j]
    return total, change


@helper
def pull(Z, G, X, size, rows, at, r, q):
    """Add X r (M,) to q from index `at` on."""
    for n in range(size):
        q[at + n] += dot_range(Z, X + n * rows, Z, r, rows)


@entry
def resolution(plan, asked, T, K, metric, motion, numbers, scratch, quality, out):
    """Compute rates and accelerations (M,), multipliers (P,), and residuals of task rates and accelerations.

    The residuals are (P,) each. λ² and efforts (M,) follow side by side in each row of `out`; parts not
    requested are not written. `motion` has u̇ (P,), ü (P,), z (M,), ż (M,) in each row. `quality` (B, 2)
    receives the pivot shares. Returns the number of members with singular Q, or with singular A at zero λ²:
    a share of at most PIVOT_SHARE_MIN.
    """
    doubtful = 0
    size, rows, Z = plan[SIZE], plan[TASK], scratch
    G, rate, X, A, Q, C, plane, square, y, right, _ = scratch_places(size, rows)
    x, first, copy = y + size, right + rows, square + rows * rows
    second, consistent, weight = asked[ORDER] > 1, asked[CONSISTENT], asked[METRIC]
    lists = LISTS + rows
    qd, qdd, multiplier = 0, size, 2 * size
    missed, missed_later, lam = 2 * size + rows, 2 * (size + rows), 2 * size + 3 * rows
    effort = lam + 1
    ud, udd, z, zd = 0, rows, 2 * rows, 2 * rows + size
    for b in range(T.shape[0]):
        o, m, t = out[b], motion[b], T[b]
        k = K[b]
        soft = numbers[b if numbers.shape[0] > 1 else 0]
        task_first(plan, t, Z, G)
        if weight == lay.INERTIA_METRIC:
            gather(plan, k, plan[I_PLACE], 2, 0, Z, Q)
        elif weight == lay.GIVEN_METRIC:
            copy_range(Z, Q, metric[b if metric.shape[0] > 1 else 0], 0, size * size)
        least = weighted(Z, Q if weight != lay.UNIT_METRIC else -1, G, X, A, size, rows)
        quality[b, METRIC_SHARE] = least

        # damping
        square_of = soft[LARGEST]
        grown = False
        ratio = square_of * 0
        near = soft[NEAR]  # in units of the determinant
        for p in range(rows):
            near = near * soft[SOFT + p]
        if soft[NEAR].real > 0:
            copy_range(Z, square, Z, A, rows * rows)
            copy_range(Z, copy, Z, A, rows * rows)
            clear_range(Z, copy + rows * rows, rows * rows)
            ratio, _ = determinant(Z, copy, copy + rows * rows, rows)
            ratio = ratio / near
            grown = ratio.real < 1
            square_of = square_of * (1 - ratio) * (1 - ratio) if grown else square_of * 0
        damped = square_of.real > 0
        o[lam] = square_of
        if damped:
            for p in range(rows):
                Z[A + p * rows + p] += square_of * soft[SOFT + p]
        own = factor_task(Z, A, rows, soft, SOFT)
        quality[b, TASK_SHARE] = own
        if not (least > lay.PIVOT_SHARE_MIN and (damped or own > lay.PIVOT_SHARE_MIN)):
            doubtful += 1

        # rates
        copy_range(o, qd, m, z, size)
        for p in range(rows):
            Z[first + p] = m[ud + p] - dot_range(Z, G + p * size, m, z, size)
        if asked[GIVEN_RATES]:
            clear_range(Z, first, rows)
        solve_symmetric(Z, A, rows, Z, first, 1)
        pull(Z, G, X, size, rows, qd, first, o)
        copy_range(o, multiplier, Z, first, rows)
        for p in range(rows):
            o[missed + p] = m[ud + p] - dot_range(Z, G + p * size, o, qd, size)
        if asked[GIVEN_RATES]:  # no task rates are prescribed
            clear_range(o, missed, rows)
        if not second:
            continue

        # rates of G and Q
        for p in range(rows):
            along(plan, t, plan[H_PLACE], plan[LISTS + p], o, qd, Z, plane, rate + p * size)
        if asked[EFFORTS] or (consistent and weight == lay.INERTIA_METRIC):
            for i in range(size):
                along(plan, k, plan[P_PLACE], plan[lists + i], o, qd, Z, plane, C + i * size)
        copy_range(Z, y, m, zd, size)
        if consistent:
            clear_range(Z, x, size)
            for p in range(rows):
                add_range(Z, x, Z[first + p], Z, rate + p * size, size)
            if weight == lay.INERTIA_METRIC:  # İ* = C + Cᵀ
                for i in range(size):
                    step = o[qd + i] - m[z + i]
                    add_range(Z, x, -step, Z, C + i * size, size)
                    for n in range(size):
                        Z[x + i] -= Z[C + i * size + n] * (o[qd + n] - m[z + n])
            if weight != lay.UNIT_METRIC:
                solve_symmetric(Z, Q, size, Z, x, 1)
            add_range(Z, y, 1, Z, x, size)
        for p in range(rows):
            Z[right + p] = (
                m[udd + p]
                - dot_range(Z, rate + p * size, o, qd, size)
                - dot_range(Z, G + p * size, Z, y, size)
            )
        if consistent and grown:
            # rate of A: Ġ X and its transpose, minus Xᵀ (C + Cᵀ) X
            change = copy + rows * rows
            copy_range(Z, copy, Z, square, rows * rows)
            for p in range(rows):
                for r in range(rows):
                    bent = square_of * 0
                    for n in range(size):
                        bent += Z[rate + p * size + n] * Z[X + n * rows + r]
                    if weight == lay.INERTIA_METRIC:
                        for i in range(size):
                            part = square_of * 0
                            for n in range(size):
                                part += Z[C + i * size + n] * Z[X + n * rows + r]
                            bent -= Z[X + i * rows + p] * part
                    Z[change + p * rows + r] = bent
            for p in range(rows):
                for r in range(p + 1):
                    bent = Z[change + p * rows + r] + Z[change + r * rows + p]
                    Z[change + p * rows + r] = bent
                    Z[change + r * rows + p] = bent
            _, grows = determinant(Z, copy, change, rows)
            grows = -2 * soft[LARGEST] * (1 - ratio) * grows / near
            for p in range(rows):
                Z[right + p] -= grows * soft[SOFT + p] * Z[first + p]
        solve_symmetric(Z, A, rows, Z, right, 1)
        copy_range(o, qdd, Z, y, size)
        pull(Z, G, X, size, rows, qdd, right, o)
        for p in range(rows):
            o[missed_later + p] = (
                m[udd + p]
                - dot_range(Z, rate + p * size, o, qd, size)
                - dot_range(Z, G + p * size, o, qdd, size)
            )
        if asked[EFFORTS]:
            for i in range(size):
                row = plan[lists + i]
                total = dot_range(Z, C + i * size, o, qd, size) - k[plan[LOAD_PLACE] + row]
                gather(plan, k, plan[I_PLACE], 1, row * size, Z, plane)
                total += dot_range(Z, plane, o, qdd, size)
                gather(plan, k, plan[DAMPING_PLACE], 1, row * size, Z, plane)
                o[effort + i] = total + dot_range(Z, plane, o, qd, size)
    return doubtful
