"""Entry: operational-space dynamics Λ, μ, p and the dynamically consistent inverse.

They follow from a table of rows and a table of dynamics in the same coordinates. With X = I*⁻¹Gᵀ and
Λ = (G X)⁻¹, the inverse is J = X Λ. The velocity forces of the task are μ = Jᵀ P* - Λ H, in rates of the
coordinates.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.jit import entry, helper
from kic.kernels.linear_solve import factor_symmetric, solve_symmetric
from kic.kernels.ranges import add_range, clear_range, copy_range, scale_range

# plan: number of coordinates and of task rows; 1 if the columns are in the order of the coordinates; offsets
# of G and H in the first table, and of I*, P*, load, damping in the second; then the table row of each task
# row, and the column of each coordinate
SIZE, TASK, IN_ORDER, G_PLACE, H_PLACE, I_PLACE, P_PLACE, LOAD_PLACE, DAMPING_PLACE, LISTS = range(10)
# largest dimensionless mobility of a row, the square of its motion, that is round-off
MOBILITY_RTOL = 1e-16


@helper
def gather(plan, t, place, rank, of, Z, start):
    """Copy a tensor of `rank` axes in the order of the coordinates; `of` is the offset of its first row."""
    size, lists = plan[SIZE], LISTS + plan[TASK]
    if plan[IN_ORDER]:
        copy_range(Z, start, t, place + of, size if rank == 1 else size * size)
        return
    if rank == 1:
        for n in range(size):
            Z[start + n] = t[place + of + plan[lists + n]]
        return
    for m in range(size):
        row = of + plan[lists + m] * size
        for n in range(size):
            Z[start + m * size + n] = t[place + row + plan[lists + n]]


@helper
def task_rows(plan, t, Z, start):
    """Copy G (P, M) and then H (P, M, M) of the task."""
    size, rows = plan[SIZE], plan[TASK]
    for p in range(rows):
        row = plan[LISTS + p]
        gather(plan, t, plan[G_PLACE], 1, row * size, Z, start + p * size)
        gather(plan, t, plan[H_PLACE], 2, row * size * size, Z, start + (rows + p * size) * size)


@helper
def transposed(Z, G, X, size, rows):
    """Compute X = Gᵀ (M, P)."""
    for n in range(size):
        for p in range(rows):
            Z[X + n * rows + p] = Z[G + p * size + n]


@helper
def weighted(Z, metric, G, X, A, size, rows):
    """Compute X = Q⁻¹Gᵀ (M, P) and A = G X (P, P); return the smallest pivot share of the metric Q.

    Q is factored in place. A negative offset `metric` stands for the identity.
    """
    transposed(Z, G, X, size, rows)
    least = 1.0
    if metric >= 0:
        least = factor_symmetric(Z, metric, size)
        solve_symmetric(Z, metric, size, Z, X, rows)
    clear_range(Z, A, rows * rows)
    for p in range(rows):
        for n in range(size):
            add_range(Z, A + p * rows, Z[G + p * size + n], Z, X + n * rows, rows)
    return least


@helper
def factor_task(Z, A, rows, soft, place):
    """Factor A (P, P) in place; return the smallest pivot share, 0 if a row does not move.

    `soft` holds the unit of each pivot from index `place` on.
    """
    least = factor_symmetric(Z, A, rows)
    for p in range(rows):
        if not abs(Z[A + p * rows + p]) > MOBILITY_RTOL * abs(soft[place + p]):
            least = 0.0
    return least


@entry
def operational(plan, T, K, soft, scratch, shares, out):
    """Compute Λ (P, P), J (M, P), μ (P, M, M), p (P,), damping (P, M), G (P, M) in each row of `out`.

    `soft` (P,) holds the unit of each row's mobility. `shares` (B,) receives the smallest pivot share, which
    is near zero for a singular task. Returns the number of members with a share of at most PIVOT_SHARE_MIN.
    """
    doubtful = 0
    size, rows = plan[SIZE], plan[TASK]
    square = size * size
    G = 0
    H = G + rows * size
    metric = H + rows * square
    X, A = metric + square, metric + square + rows * size
    plane = A + rows * rows
    for b in range(T.shape[0]):
        task_rows(plan, T[b], scratch, G)
        gather(plan, K[b], plan[I_PLACE], 2, 0, scratch, metric)
        least = weighted(scratch, metric, G, X, A, size, rows)
        other = factor_task(scratch, A, rows, soft, 0)
        shares[b] = other if not other >= least else least
        if not shares[b] > lay.PIVOT_SHARE_MIN:
            doubtful += 1
        o = out[b]
        clear_range(o, 0, rows * rows)
        for p in range(rows):
            o[p * rows + p] = 1
        solve_symmetric(scratch, A, rows, o, 0, rows)
        inverse = rows * rows
        clear_range(o, inverse, size * rows)
        for n in range(size):
            for p in range(rows):
                add_range(o, inverse + n * rows, scratch[X + n * rows + p], o, p * rows, rows)
        power = inverse + size * rows
        load, damping = power + rows * square, power + rows * square + rows
        copy_range(o, damping + rows * size, scratch, G, rows * size)
        for p in range(rows):
            for r in range(rows):
                if r == 0:
                    scale_range(o, power + p * square, -o[p * rows], scratch, H, square)
                else:
                    add_range(o, power + p * square, -o[p * rows + r], scratch, H + r * square, square)
        clear_range(o, load, rows * (1 + size))
        lists = LISTS + rows
        for i in range(size):
            row = plan[lists + i]
            gather(plan, K[b], plan[P_PLACE], 2, row * square, scratch, plane)
            for p in range(rows):
                add_range(o, power + p * square, o[inverse + i * rows + p], scratch, plane, square)
            gather(plan, K[b], plan[DAMPING_PLACE], 1, row * size, scratch, plane)
            for p in range(rows):
                add_range(o, damping + p * size, o[inverse + i * rows + p], scratch, plane, size)
                o[load + p] -= o[inverse + i * rows + p] * K[b, plan[LOAD_PLACE] + row]
    return doubtful
