"""Linear maps from coordinates q to those of the tree: gears, belts, mimic joints, angles in a plane.

With φ - φ₀ = A (q - q₀) and constant A, influence coefficients in q are sums of those of the columns: G A,
AᵀH A and so on, I* and P* likewise, without second-order terms of A. `linear` has the nonzero terms of A (see
`kic.kernels.layout`), or is None for the coordinates of the tree. Numba compiles the two cases separately.
The columns are those of `influence`, which is faster than a rule for each frame.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.functions import at, larger
from kic.kernels.influence import affects, first, second, third
from kic.kernels.jit import compiled_by, helper, inlined
from kic.kernels.offsets import d_at, g_at, h_at
from kic.kernels.ranges import accumulate, clear_range, copy_range
from kic.kernels.vectors import put, scale


@helper
def linear_start(plan, table):
    """Return the index of the first row of the terms of A, the last rows of plan and numbers."""
    return table.shape[0] - plan[1, lay.TERMS]


@inlined
def coupling_gap(plan, terms, factors, states, b):
    """Return the largest residual of the couplings at a state, relative to the largest of a closed state."""
    left, i, gap = 0.0, 0, 0.0
    while i < terms.shape[0] and terms[i, lay.COUPLED] >= 0:
        x = states[b, plan[lay.HEADER + terms[i, lay.COUPLED], lay.STATE]]
        left += factors[i, lay.COUPLING_FACTOR] * x - factors[i, lay.COUPLING_CONSTANT]
        if terms[i, lay.COUPLING_END]:
            gap = larger(gap, abs(left))
            left = 0.0
        i += 1
    return gap


def _open_members(plan, terms, factors, states):
    found = 0
    for b in range(states.shape[0]):
        found += coupling_gap(plan, terms, factors, states, b) > 1
    return found


def open_members(plan, terms, factors, states):
    """Return the number of states (B, S) whose couplings do not hold; 0 for objects."""
    return 0 if states.dtype.kind == "O" else _open_members(plan, terms, factors, states)


compiled_by(open_members, _open_members, forceinline=True)


@helper
def add_single(linear, t, place, stride, f, n, v):
    """Add f v times row n of A to the vectors at `place`."""
    if linear is None:
        accumulate(t, place + n, stride, scale(f, v))
    else:
        terms, factors = linear[0], linear[1]
        while n >= 0:
            accumulate(t, place + terms[n, lay.TARGET], stride, scale(f * factors[n, lay.FACTOR], v))
            n = terms[n, lay.NEXT]


@helper
def add_pair(linear, size, t, place, stride, f, m, n, v):
    """Add f v times the product of rows m and n of A to the vectors at `place`."""
    if linear is None:
        add_single(None, t, place + m * size, stride, f, n, v)
    else:
        terms, factors = linear[0], linear[1]
        while m >= 0:
            start = place + terms[m, lay.TARGET] * size
            add_single(linear, t, start, stride, f * factors[m, lay.FACTOR], n, v)
            m = terms[m, lay.NEXT]


@helper
def add_triple(linear, size, t, place, stride, f, i, m, n, v):
    """Add f v times the product of rows i, m and n of A to the vectors at `place`."""
    if linear is None:
        add_pair(None, size, t, place + i * size * size, stride, f, m, n, v)
    else:
        terms, factors = linear[0], linear[1]
        while i >= 0:
            start = place + terms[i, lay.TARGET] * size * size
            add_pair(linear, size, t, start, stride, f * factors[i, lay.FACTOR], m, n, v)
            i = terms[i, lay.NEXT]


@helper
def linear_coordinate(linear, sign, n, size, t, rows, row):
    """Add `sign` times coordinate n of the tree to one row."""
    terms, factors = linear[0], linear[1]
    while n >= 0:
        t[g_at(rows, size, row, terms[n, lay.TARGET])] += sign * factors[n, lay.FACTOR]
        n = terms[n, lay.NEXT]


@helper
def ordered_rows(cols, F, linear, frame, kind, e, sign, order, size, t, rows, row):
    """Add `sign` times the coefficients of one vector fixed in a frame to three rows (Tables 2-3 to 2-5).

    Every ordered pair and triple of columns is evaluated, as ball joints require.
    """
    square, cube = size * size, size * size * size
    g, h, d = g_at(rows, size, row, 0), h_at(rows, size, row, 0, 0), d_at(rows, size, row, 0, 0, 0)
    n = frame
    while n >= 0:
        if affects(cols, n, kind):
            v = first(cols, F, n, kind, e)
            put(F, n, lay.EFFECT, v)
            add_single(linear, t, g, size, sign, n, v)
        n = cols[n, lay.PARENT]
    n = frame if order > 1 else -1
    while n >= 0:
        m = frame if affects(cols, n, kind) else -1
        while m >= 0:
            if affects(cols, m, kind):
                add_pair(linear, size, t, h, square, sign, m, n, second(cols, F, m, n, kind))
                i = frame if order > 2 else -1
                while i >= 0:
                    if affects(cols, i, kind):
                        add_triple(linear, size, t, d, cube, sign, i, m, n, third(cols, F, i, m, n, kind))
                    i = cols[i, lay.PARENT]
            m = cols[m, lay.PARENT]
        n = cols[n, lay.PARENT]


@inlined
def add_entry(linear, size, t, place, m, n, x):
    """Add x times the product of rows m and n of A to a matrix at `place`."""
    terms, factors = linear[0], linear[1]
    while m >= 0:
        p, f, row = n, x * factors[m, lay.FACTOR], place + terms[m, lay.TARGET] * size
        while p >= 0:
            t[at(row + terms[p, lay.TARGET])] += f * factors[p, lay.FACTOR]
            p = terms[p, lay.NEXT]
        m = terms[m, lay.NEXT]


@helper
def project_matrix(linear, mobile, size, X, start, t, place):
    """Write AᵀX A (m, m) to t, from X (M, M)."""
    clear_range(t, place, size * size)
    for m in range(mobile):
        for n in range(mobile):
            x = X[start + m * mobile + n]
            if x != 0:
                add_entry(linear, size, t, place, m, n, x)


@helper
def project_vector(linear, mobile, size, x, start, t, place):
    """Write Aᵀx (m,) to t, from x (M,)."""
    terms, factors = linear[0], linear[1]
    clear_range(t, place, size)
    for n in range(mobile):
        p = n
        while p >= 0:
            t[place + terms[p, lay.TARGET]] += factors[p, lay.FACTOR] * x[start + n]
            p = terms[p, lay.NEXT]


@helper
def tree_rates(linear, mobile, q, place, x, start):
    """Write A q (M,) to x, from q (m,)."""
    if linear is None:
        copy_range(x, start, q, place, mobile)
    else:
        clear_range(x, start, mobile)
        for n in range(mobile):
            p = n
            while p >= 0:
                x[start + n] += linear[1][p, lay.FACTOR] * q[place + linear[0][p, lay.TARGET]]
                p = linear[0][p, lay.NEXT]


@helper
def dense_map(linear, mobile, size, A):
    """Write the map A (M, m), row by row."""
    terms, factors = linear[0], linear[1]
    clear_range(A, 0, mobile * size)
    for n in range(mobile):
        p = n
        while p >= 0:
            A[n * size + terms[p, lay.TARGET]] += factors[p, lay.FACTOR]
            p = terms[p, lay.NEXT]
