"""I* and P* in chosen coordinates: Newton and Euler on the coefficients of every body, summed up the tree.

Freeman's sums (2-157, 2-158, 2-193, 2-194) with the forces kept apart until they meet an axis: a body's coefficients
of acceleration give it coefficients of force and moment, frames hand these to their parents, and each
joint takes its share. The gyroscopic term is the metric-compatible one: with it Ṁ - 2C is skew.
"""

from kic.kernels.carried import first_of, second_of, turning
from kic.kernels.compiled import helper
from kic.kernels.frames import turns
from kic.kernels.inertia import rotated_inertia
from kic.kernels.layout import AXIS, CENTRE, EVERY, MASS, ORIGIN, PARENT, ROTATION, g_at, h_at, table_width
from kic.kernels.rows import accumulate
from kic.kernels.vectors import add, cross, dot, half, scale, sub, symmetric, take, turn

# Y (2 (M + 1), width): as the frames' Z, of each frame the moment about its origin and then the force


@helper
def body_forces(F, Z, Y, bodies, inertias, i, pairs, size):
    """Add what moving body i along the coordinates takes to its frame: m a, and J α with the gyroscopic moment."""
    n = bodies[i, 0]
    if n < 0:
        return
    k = turning(n)
    m, c = inertias[i, MASS], turn(F, n, ROTATION, take(inertias, i, CENTRE))
    j = rotated_inertia(F, n, inertias, i)
    moment, force = Y[k], Y[k + 1]
    for a in range(size):
        wa = first_of(Z, k, size, a)
        ca, ja = cross(wa, c), symmetric(j, wa)
        f = scale(m, add(first_of(Z, k + 1, size, a), ca))
        accumulate(force, g_at(3, size, 0, a), size, f)
        accumulate(moment, g_at(3, size, 0, a), size, add(ja, cross(c, f)))
        for b in range(size if pairs == EVERY else a + 1):
            wb, wab = first_of(Z, k, size, b), second_of(Z, k, size, a, b)
            f = add(second_of(Z, k + 1, size, a, b), add(cross(wab, c), cross(wb, ca)))
            f = scale(m, f)
            u = half(add(cross(wa, symmetric(j, wb)), cross(wb, ja)))
            u = add(u, symmetric(j, sub(wab, half(cross(wa, wb)))))
            accumulate(force, h_at(3, size, 0, a, b), size * size, f)
            accumulate(moment, h_at(3, size, 0, a, b), size * size, add(u, cross(c, f)))


@helper
def joint_shares(cols, F, x, Y, B, n, pairs, size, t):
    """What joint n takes of its frame's forces, by A of the joint, into I (m, m) and P (m, m, m).

    `B` (M, m²) is what is not in the frames' tables of the second order of the tree's coordinates.
    """
    mobile, s, square = cols.shape[0], take(F, n, AXIS), size * size
    i = turning(n) if turns(cols, n) else turning(n) + 1
    for a in range(size):
        load = dot(s, first_of(Y, i, size, a))
        for k in range(size):
            t[k * size + a] += x[g_at(mobile, size, n, k)] * load
        start = square + a * square
        for c in range(square):
            t[start + c] += load * B[n, c]
        for b in range(size if pairs == EVERY else a + 1):
            load = dot(s, second_of(Y, i, size, a, b))
            for k in range(size):
                t[square + k * square + a * size + b] += x[g_at(mobile, size, n, k)] * load


@helper
def to_parent(cols, F, Y, n, pairs, size):
    """Hand the forces of frame n to its parent, moments about the parent's origin."""
    parent = cols[n, PARENT]
    if parent < 0:
        return
    i, k = turning(n), turning(parent)
    r = sub(take(F, n, ORIGIN), take(F, parent, ORIGIN))
    moment, force = Y[k], Y[k + 1]
    for a in range(size):
        f = first_of(Y, i + 1, size, a)
        accumulate(force, g_at(3, size, 0, a), size, f)
        accumulate(moment, g_at(3, size, 0, a), size, add(first_of(Y, i, size, a), cross(r, f)))
        for b in range(size if pairs == EVERY else a + 1):
            f = second_of(Y, i + 1, size, a, b)
            accumulate(force, h_at(3, size, 0, a, b), size * size, f)
            v = add(second_of(Y, i, size, a, b), cross(r, f))
            accumulate(moment, h_at(3, size, 0, a, b), size * size, v)


@helper
def inertia_tables(cols, F, bodies, inertias, x, Z, Y, B, pairs, size, t):
    """I* (m, m) and P* (m, m, m), side by side in t."""
    square = size * size
    for place in range(square + square * size):
        t[place] = 0
    for i in range(2, Y.shape[0]):
        for place in range(table_width(3, size, 2)):
            Y[i, place] = 0
    for i in range(bodies.shape[0]):
        body_forces(F, Z, Y, bodies, inertias, i, pairs, size)
    for n in range(cols.shape[0] - 1, -1, -1):
        joint_shares(cols, F, x, Y, B, n, pairs, size, t)
        to_parent(cols, F, Y, n, pairs, size)
    if pairs != EVERY:
        for k in range(size):
            start = square + k * square
            for a in range(size):
                for b in range(a):
                    t[start + b * size + a] = t[start + a * size + b]
