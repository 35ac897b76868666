"""Entry: feedback of rows for controllers, with the rates of their null space; real numbers only."""

from __future__ import annotations

from math import atan2, floor, sqrt

from kic.kernels import layout as lay
from kic.kernels.jit import entry, helper
from kic.kernels.linear_solve import factor_symmetric, solve_symmetric
from kic.kernels.operational_space import weighted
from kic.kernels.ranges import add_range, copy_range

# plan: number of rows, of coordinates and of orientations; table offsets of the axes of the parts (after the
# values) and of G, −1 if the rows are the coordinates; then the three rows of each orientation
ROWS, COLUMNS, PARTS, AXES, G_PLACE, PLACES = range(6)
# numbers: gain with which null-space rates follow z; full turn of each row or 0; then the gains (P, 2P)
NULL_DAMPING, TURNS = range(2)
# size of 2 sin θ below which asin(s)/s is evaluated by its series
SMALL_SINE = 1e-3


@helper
def rotation_vector(a, b, c, d, e, f, g, h, i):
    """Return the rotation vector of a matrix that is given by rows.

    Up to an angle of 120° it follows from the antisymmetric part, otherwise from the quaternion of Shepperd
    (1978), whose largest component is computed first.
    """
    trace, x, y, z = a + e + i, h - f, c - g, d - b  # 1 + 2 cos, and 2 sin along the axis
    if trace > 0:
        size = sqrt(x * x + y * y + z * z)
        if size > SMALL_SINE:
            ratio = atan2(size, trace - 1) / size
        else:
            ratio = 0.5 + size**2 / 48 + 3 * size**4 / 1280
        return ratio * x, ratio * y, ratio * z
    largest = max(a, e, i)
    twice = sqrt(max(1 + 2 * largest - trace, 0.0))  # of the largest component
    if largest == a:
        w, x, y, z = x / twice, twice, (b + d) / twice, (c + g) / twice
    elif largest == e:
        w, x, y, z = y / twice, (b + d) / twice, twice, (f + h) / twice
    else:
        w, x, y, z = z / twice, (c + g) / twice, (f + h) / twice, twice
    size = sqrt(x * x + y * y + z * z)
    ratio = 2 * atan2(size, w) / size if w >= 0 else -2 * atan2(size, -w) / size
    return ratio * x, ratio * y, ratio * z


@helper
def turned(R, k, T, axes, i, j):
    """Return an element of R_k Aᵀ, for the axes (columns) of the orientation A in a table."""
    return R[k, i, 0] * T[axes + j] + R[k, i, 1] * T[axes + 3 + j] + R[k, i, 2] * T[axes + 6 + j]


@entry
def feedback(plan, numbers, T, q, R, qd, v, z, scratch, out):
    """Write feedback (P,), rates (P,) of the rows, and null-space accelerations (M,) into `out`.

    The feedback is the gains times the errors and their rates. T has values, axes and G of the rows. q, qd
    (P,) and R (K, 3, 3) are desired; v (M,) are the rates of the coordinates. The null-space accelerations
    d (z' − v), absent for empty z, have z' = (1 − G⁺ G) z, or z if the rows are singular.
    """
    rows, size, place = plan[ROWS], plan[COLUMNS], plan[G_PLACE]
    for p in range(rows):
        e, turn = q[p] - T[p], numbers[TURNS + p]
        scratch[p] = e - turn * floor(e / turn + 0.5) if turn > 0 else e
    for k in range(plan[PARTS]):
        axes, first = plan[AXES] + 9 * k, PLACES + 3 * k
        r = rotation_vector(
            turned(R, k, T, axes, 0, 0), turned(R, k, T, axes, 0, 1), turned(R, k, T, axes, 0, 2),
            turned(R, k, T, axes, 1, 0), turned(R, k, T, axes, 1, 1), turned(R, k, T, axes, 1, 2),
            turned(R, k, T, axes, 2, 0), turned(R, k, T, axes, 2, 1), turned(R, k, T, axes, 2, 2),
        )  # fmt: skip
        scratch[plan[first]], scratch[plan[first + 1]], scratch[plan[first + 2]] = r[0], r[1], r[2]
    for p in range(rows):
        rate = v[p] if place < 0 else 0.0
        if place >= 0:
            for n in range(size):
                rate += T[place + p * size + n] * v[n]
        out[rows + p], scratch[rows + p] = rate, qd[p] - rate
    gains = TURNS + rows
    for p in range(rows):
        total = 0.0
        for c in range(2 * rows):
            total += numbers[gains + p * 2 * rows + c] * scratch[c]
        out[p] = total
    if z.shape[0] == 0:
        return
    null = 2 * rows
    copy_range(out, null, z, 0, size)
    G = 0
    X, A = G + rows * size, G + 2 * rows * size
    right = A + rows * rows
    copy_range(scratch, G, T, place, rows * size)
    for p in range(rows):
        scratch[right + p] = 0.0
        for n in range(size):
            scratch[right + p] += scratch[G + p * size + n] * z[n]
    weighted(scratch, -1, G, X, A, size, rows)
    if factor_symmetric(scratch, A, rows) > lay.PIVOT_SHARE_MIN:
        solve_symmetric(scratch, A, rows, scratch, right, 1)
        for p in range(rows):
            add_range(out, null, -scratch[right + p], scratch, G + p * size, size)
    for n in range(size):
        out[null + n] = numbers[NULL_DAMPING] * (out[null + n] - v[n])
