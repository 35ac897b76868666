"""I* and P* in chosen coordinates: Newton and Euler on the coefficients of every body, summed up the tree.

Freeman's sums (2-157, 2-158, 2-193, 2-194) with the forces kept apart until they meet an axis: a body's coefficients
of acceleration give it coefficients of force and moment, frames hand these to their parents, and each
joint takes its share. With N of the body's frame and its second moment E = ∫ρρᵀ dm about the centre of mass,
the moment is that of ρ × N ρ: gyroscopic terms included, metric-compatible, Ṁ - 2C skew.
"""

from kic.kernels.carried import arm, of, put_at, turned
from kic.kernels.compiled import helper
from kic.kernels.frames import turns
from kic.kernels.inertia import rotated_inertia
from kic.kernels.layout import AXIS, CENTRE, MASS, PARENT, ROTATION, pair_count
from kic.kernels.vectors import add, cross, dot, scale, symmetric, take, turn

# a frame's block in Y: moment about its origin (3, m) and force (3, m), then both for p pairs. Ground has the first


@helper
def loads_block(size, pairs):
    """Numbers of one frame's block."""
    return 6 * (size + pair_count(size, pairs))


@helper
def add_lever(Y, moment, force, c, count):
    """Add the moment of forces (3, count) at c, to moments (3, count)."""
    for p in range(count):
        f0, f1, f2 = Y[force + p], Y[force + count + p], Y[force + 2 * count + p]
        Y[moment + p] += c[1] * f2 - c[2] * f1
        Y[moment + count + p] += c[2] * f0 - c[0] * f2
        Y[moment + 2 * count + p] += c[0] * f1 - c[1] * f0


@helper
def add_euler(Z, n, Y, moment, e, count):
    """Add the moments of ρ × N ρ for a second moment e (xx yy zz xy xz yz), of every pair."""
    for p in range(count):
        a, b, c = of(Z, n + p, count), of(Z, n + 3 * count + p, count), of(Z, n + 6 * count + p, count)
        Y[moment + p] += c[0] * e[3] + c[1] * e[1] + c[2] * e[5] - b[0] * e[4] - b[1] * e[5] - b[2] * e[2]
        Y[moment + count + p] += (
            a[0] * e[4] + a[1] * e[5] + a[2] * e[2] - c[0] * e[0] - c[1] * e[3] - c[2] * e[4]
        )
        Y[moment + 2 * count + p] += (
            b[0] * e[0] + b[1] * e[3] + b[2] * e[4] - a[0] * e[3] - a[1] * e[1] - a[2] * e[5]
        )


@helper
def body_forces(F, Z, width, own, bodies, inertias, i, size, count):
    """What moving body i along the coordinates takes: moments and forces, into the block `own`, cleared first."""
    n = bodies[i, 0]
    o = width * (n + 1)
    m, c = inertias[i, MASS], turn(F, n, ROTATION, take(inertias, i, CENTRE))
    j = rotated_inertia(F, n, inertias, i)
    half_trace = (j[0] + j[1] + j[2]) / 2
    e = (half_trace - j[0], half_trace - j[1], half_trace - j[2], -j[3], -j[4], -j[5])
    for a in range(size):
        w = of(Z, o + a, size)
        f = scale(m, add(of(Z, o + 3 * size + a, size), cross(w, c)))
        put_at(own, 3 * size + a, size, f)
        put_at(own, a, size, add(symmetric(j, w), cross(c, f)))
    moment, force, second = 6 * size, 6 * size + 3 * count, o + 6 * size
    for p in range(3 * count):
        own[moment + p] = 0
        own[force + p] = m * Z[second + 12 * count + p]
    turned(Z, second + 3 * count, count, c, m, own, force)
    add_euler(Z, second + 3 * count, own, moment, e, count)
    add_lever(own, moment, force, c, count)


@helper
def joint_shares(cols, F, x, Y, o, B, n, size, count, t):
    """What joint n takes of its frame's forces, by A of the joint, into I (m, m) and P (m, p).

    `B` (M, p) is what is not in the frames' second order of that of the tree's coordinates.
    """
    mobile, s, square = cols.shape[0], take(F, n, AXIS), size * size
    first = o if turns(cols, n) else o + 3 * size
    second = o + 6 * size if turns(cols, n) else o + 6 * size + 3 * count
    for a in range(size):
        load = dot(s, of(Y, first + a, size))
        for k in range(size):
            t[k * size + a] += x[mobile + n * size + k] * load
        for p in range(count):
            t[square + a * count + p] += load * B[n, p]
    for k in range(size):
        y = scale(x[mobile + n * size + k], s)
        for p in range(count):
            t[square + k * count + p] += (
                y[0] * Y[second + p] + y[1] * Y[second + count + p] + y[2] * Y[second + 2 * count + p]
            )


@helper
def inertia_tables(cols, F, bodies, inertias, x, Z, width, Y, B, size, pairs, t):
    """I* (m, m) and P* (m, p) of so many pairs, side by side in t; Y has a block more than frames, as scratch."""
    mobile, count = cols.shape[0], pair_count(size, pairs)
    one = loads_block(size, pairs)
    for place in range(size * (size + count)):
        t[place] = 0
    for place in range(one * (mobile + 1)):
        Y[place] = 0
    own = Y[one * (mobile + 1) :]
    for i in range(bodies.shape[0]):
        if bodies[i, 0] >= 0:
            body_forces(F, Z, width, own, bodies, inertias, i, size, count)
            o = one * (bodies[i, 0] + 1)
            for place in range(one):
                Y[o + place] += own[place]
    for n in range(mobile - 1, -1, -1):
        o, up = one * (n + 1), one * (cols[n, PARENT] + 1)
        joint_shares(cols, F, x, Y, o, B, n, size, count, t)
        if up > 0:
            r = arm(cols, F, n)
            for place in range(one):
                Y[up + place] += Y[o + place]
            if r[0] != 0 or r[1] != 0 or r[2] != 0:
                add_lever(Y, up, o + 3 * size, r, size)
                add_lever(Y, up + 6 * size, o + 6 * size + 3 * count, r, count)
