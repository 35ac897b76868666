"""Entry: rates and accelerations of more coordinates than a task has rows, by a weighted minimum.

Of a table of rows, and one of the dynamics where these are wanted. With X = Q⁻¹Gᵀ and A = G X + λ²S the
multiplier is l = A⁻¹(u̇ - G z), and q̇ = z + X l. The condition Q (q̇ - z) = Gᵀ l, differentiated in time, gives
the acceleration: Q̇ comes from P*, Ġ from H.
"""

from kic.kernels.compiled import entry, helper
from kic.kernels.operational import (
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
    gather,
    weighted,
)
from kic.kernels.ranges import add_range, clear_range, copy_range, scale_range
from kic.kernels.symmetric import factor_symmetric, solve_symmetric

# plan: as in kernels.operational. asked: highest order; the weight Q; whether accelerations are the derivative
# of the velocity law or a minimum of their own; whether rates are given; whether efforts are wanted
ORDER, METRIC, CONSISTENT, GIVEN_RATES, EFFORTS = range(5)
UNIT_METRIC, INERTIA_METRIC, GIVEN_METRIC = range(3)
# numbers: the largest λ², the square of the manipulability below which it grows (0: it is constant), and for
# each row of the task what 1 of λ² stands for
LARGEST, NEAR, SOFT = range(3)
# quality: the smallest shares that pivots of Q, and of A without damping, keep of their own
METRIC_SHARE, TASK_SHARE = range(2)
# as in kernels.operational
LEAST_SHARE = 1e-12


@helper
def dot_range(Z, a, Y, b, count):
    """Scalar product of two stretches."""
    total = Z[a] * Y[b]
    for k in range(1, count):
        total += Z[a + k] * Y[b + k]
    return total


@helper
def scratch_places(size, rows):
    """Where G, Ġ, X, A, Q, C, a plane, three squares, H, four vectors begin in the scratch; then its length."""
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
    """G of the task (P, M)."""
    size = plan[SIZE]
    for p in range(plan[TASK]):
        gather(plan, t, plan[G_PLACE], 1, plan[LISTS + p] * size, Z, start + p * size)


@helper
def along(plan, t, place, row, v, here, Z, plane, out):
    """Sum over a of v_a times row a of a square (M, M) of a table, in the order of the coordinates."""
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
def determinant(Z, A, N, product, size):
    """Determinant of the matrix at A; its adjugate goes to N, by sums and products alone (Faddeev, Le Verrier)."""
    clear_range(Z, N, size * size)
    for p in range(size):
        Z[N + p * size + p] = 1
    c = Z[A] * 0
    for k in range(1, size + 1):
        if k > 1:
            copy_range(Z, N, Z, product, size * size)
            for p in range(size):
                Z[N + p * size + p] += c
        clear_range(Z, product, size * size)
        for p in range(size):
            for r in range(size):
                add_range(Z, product + p * size, Z[A + p * size + r], Z, N + r * size, size)
        c = -Z[product]
        for p in range(1, size):
            c -= Z[product + p * size + p]
        c = c / k
    if size % 2 == 0:
        scale_range(Z, N, -1, Z, N, size * size)
        return c
    return -c


@helper
def pull(Z, G, X, size, rows, at, r, q):
    """Add X r to the coordinates q at `at`."""
    for n in range(size):
        q[at + n] += dot_range(Z, X + n * rows, Z, r, rows)


@entry
def resolution(plan, asked, T, K, metric, motion, numbers, scratch, quality, out):
    """Rates (M,), accelerations (M,), multipliers (P,), missed rates and accelerations of the task (P,) each.

    Then λ² and efforts (M,), side by side in each row of `out`; what is not asked for is left as it is.
    `motion` has u̇ (P,), ü (P,), z (M,), ż (M,) in each row. `quality` (B, 2) receives what pivots keep;
    returns the number of members where that is not more than LEAST_SHARE and λ² is zero, or Q is singular.
    """
    doubtful = 0
    size, rows, Z = plan[SIZE], plan[TASK], scratch
    G, rate, X, A, Q, C, plane, square, y, right, _ = scratch_places(size, rows)
    x, first = y + size, right + rows
    second, consistent, weight = asked[ORDER] > 1, asked[CONSISTENT], asked[METRIC]
    lists = LISTS + rows
    qd, qdd, multiplier = 0, size, 2 * size
    missed, missed_later, lam, effort = 2 * size + rows, 2 * (size + rows), 2 * size + 3 * rows, 0
    effort = lam + 1
    ud, udd, z, zd = 0, rows, 2 * rows, 2 * rows + size
    for b in range(T.shape[0]):
        o, m, t = out[b], motion[b], T[b]
        k = K[b]
        soft = numbers[b if numbers.shape[0] > 1 else 0]
        task_first(plan, t, Z, G)
        if weight == INERTIA_METRIC:
            gather(plan, k, plan[I_PLACE], 2, 0, Z, Q)
        elif weight == GIVEN_METRIC:
            copy_range(Z, Q, metric[b if metric.shape[0] > 1 else 0], 0, size * size)
        least = weighted(Z, Q if weight != UNIT_METRIC else -1, G, X, A, size, rows)
        quality[b, METRIC_SHARE] = least

        # how much it is damped
        square_of = soft[LARGEST]
        grown = False
        ratio = square_of * 0
        if soft[NEAR].real > 0:
            for p in range(rows):
                for r in range(rows):
                    Z[square + p * rows + r] = Z[A + p * rows + r] / soft[SOFT + p]
            ratio = determinant(Z, square, square + rows * rows, square + 2 * rows * rows, rows) / soft[NEAR]
            grown = ratio.real < 1
            square_of = square_of * (1 - ratio) * (1 - ratio) if grown else square_of * 0
        damped = square_of.real > 0
        o[lam] = square_of
        if damped:
            for p in range(rows):
                Z[A + p * rows + p] += square_of * soft[SOFT + p]
        own = factor_symmetric(Z, A, rows)
        for p in range(rows):  # nor may a row be too small for its units
            size_of = abs(Z[A + p * rows + p]) / abs(soft[SOFT + p])
            if not size_of >= own:
                own = size_of
        quality[b, TASK_SHARE] = own
        if not (least > LEAST_SHARE and (damped or own > LEAST_SHARE)):
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
        if not second:
            continue

        # what changes with the posture
        for p in range(rows):
            along(plan, t, plan[H_PLACE], plan[LISTS + p], o, qd, Z, plane, rate + p * size)
        if asked[EFFORTS] or (consistent and weight == INERTIA_METRIC):
            for i in range(size):
                along(plan, k, plan[P_PLACE], plan[lists + i], o, qd, Z, plane, C + i * size)
        copy_range(Z, y, m, zd, size)
        if consistent:
            for n in range(size):
                Z[x + n] = 0
            for p in range(rows):
                add_range(Z, x, Z[first + p], Z, rate + p * size, size)
            if weight == INERTIA_METRIC:  # İ* = C + Cᵀ
                for i in range(size):
                    step = o[qd + i] - m[z + i]
                    add_range(Z, x, -step, Z, C + i * size, size)
                    for n in range(size):
                        Z[x + i] -= Z[C + i * size + n] * (o[qd + n] - m[z + n])
            if weight != UNIT_METRIC:
                solve_symmetric(Z, Q, size, Z, x, 1)
            add_range(Z, y, 1, Z, x, size)
        for p in range(rows):
            Z[right + p] = (
                m[udd + p]
                - dot_range(Z, rate + p * size, o, qd, size)
                - dot_range(Z, G + p * size, Z, y, size)
            )
        if consistent and grown:
            # the change of the determinant by the adjugate of A; of A: Ġ X and its transpose, less Xᵀ Q̇ X
            change = square_of * 0
            for p in range(rows):
                for r in range(rows):
                    bent = square_of * 0
                    for n in range(size):
                        bent += Z[rate + p * size + n] * Z[X + n * rows + r]
                    bent = 2 * bent
                    if weight == INERTIA_METRIC:
                        for i in range(size):
                            part = square_of * 0
                            for n in range(size):
                                part += Z[C + i * size + n] * Z[X + n * rows + r]
                            bent -= 2 * Z[X + i * rows + p] * part
                    change += Z[square + rows * rows + r * rows + p] * bent / soft[SOFT + p]
            change = -2 * soft[LARGEST] * (1 - ratio) * change / soft[NEAR]
            for p in range(rows):
                Z[right + p] -= change * soft[SOFT + p] * Z[first + p]
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
