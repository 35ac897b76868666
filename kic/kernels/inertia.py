"""Mass matrix I* (2-157) and P* of the tree, from composite inertias and world screws.

P* is computed in its metric-compatible form: C_kb = q̇_a P*_kab is the Coriolis matrix, and Ṁ - 2C is skew.
In holonomic coordinates these are the Christoffel symbols of the first kind (after Echeandia and Wensing
2021). The angular velocities of a ball joint make P* unsymmetric in its last two indices. The form of (2-193,
2-194) gives the same torques; see `body_contributions`.
"""

from __future__ import annotations

from kic.kernels.frames import rotates
from kic.kernels.functions import at
from kic.kernels.jit import helper
from kic.kernels.layout import (
    ARMATURE,
    AXIS,
    CARRIER,
    CENTRE,
    GROUP,
    KIND,
    LO,
    MASS,
    MOMENTS,
    ORIGIN,
    PARENT,
    PRISMATIC,
    ROTATION,
)
from kic.kernels.vectors import add, axpy, cross, dot, half, put, scale, sub, symmetric, take, turn

# composite (M, 10): mass, first moment (3) and inertia (6) about the frame's own origin
FIRST, SECOND, COMPOSITE_WIDTH = 1, 4, 10


@helper
def rotated_inertia(F, frame, inertias, i):
    """Return the inertia of body i about its centre of mass in world axes (2-164): xx yy zz xy xz yz."""
    j = (
        inertias[i, MOMENTS], inertias[i, MOMENTS + 1], inertias[i, MOMENTS + 2],
        inertias[i, MOMENTS + 3], inertias[i, MOMENTS + 4], inertias[i, MOMENTS + 5],
    )  # fmt: skip
    r0 = take(F, frame, ROTATION)
    r1 = take(F, frame, ROTATION + 3)
    r2 = take(F, frame, ROTATION + 6)
    a0, a1, a2 = symmetric(j, r0), symmetric(j, r1), symmetric(j, r2)
    return (dot(r0, a0), dot(r1, a1), dot(r2, a2), dot(r0, a1), dot(r0, a2), dot(r1, a2))


@helper
def composites(cols, F, bodies, inertias, C):
    """Compute the composite inertia of each column's frame and everything it carries, about its own origin.

    A common reference point would lose digits with the square of its distance.
    """
    for n in range(C.shape[0]):
        for k in range(COMPOSITE_WIDTH):
            C[n, k] = 0
    for i in range(bodies.shape[0]):
        n = bodies[i, CARRIER]
        if n < 0:
            continue
        m = inertias[i, MASS]
        c = turn(F, n, ROTATION, take(inertias, i, CENTRE))
        add_composite(C, n, m, scale(m, c), rotated_inertia(F, n, inertias, i))
        add_steiner(C, n, m, scale(m, c), c)
    for n in range(C.shape[0] - 1, -1, -1):
        parent = cols[n, PARENT]
        if parent >= 0:
            m, h = C[n, 0], take(C, n, FIRST)
            d = sub(take(F, n, ORIGIN), take(F, parent, ORIGIN))
            shift = scale(m, d)
            add_composite(C, parent, m, add(h, shift), second_moment(C, n))
            # about the parent's origin: 2 h·d - (h dᵀ + d hᵀ) + m (d² - d dᵀ)
            add_steiner(C, parent, m, shift, d)
            add_steiner(C, parent, m, h, d)
            add_steiner(C, parent, m, d, h)


@helper
def add_composite(C, n, m, h, j):
    """Add mass, first and second moment."""
    C[n, 0] += m
    for k in range(3):
        C[n, FIRST + k] += h[k]
    for k in range(6):
        C[n, SECOND + k] += j[k]


@helper
def add_steiner(C, n, m, h, c):
    """Add h·c - h cᵀ, symmetrized, to the second moment."""
    C[n, SECOND] += h[1] * c[1] + h[2] * c[2]
    C[n, SECOND + 1] += h[0] * c[0] + h[2] * c[2]
    C[n, SECOND + 2] += h[0] * c[0] + h[1] * c[1]
    C[n, SECOND + 3] -= (h[0] * c[1] + h[1] * c[0]) / 2
    C[n, SECOND + 4] -= (h[0] * c[2] + h[2] * c[0]) / 2
    C[n, SECOND + 5] -= (h[1] * c[2] + h[2] * c[1]) / 2


@helper
def second_moment(C, n):
    """Return the inertia of composite n: xx yy zz xy xz yz."""
    return (
        C[n, SECOND], C[n, SECOND + 1], C[n, SECOND + 2],
        C[n, SECOND + 3], C[n, SECOND + 4], C[n, SECOND + 5],
    )  # fmt: skip


@helper
def momentum(C, n, w, v):
    """Return angular (about the frame's origin) and linear momentum of composite n moving with (w, v)."""
    h = take(C, n, FIRST)
    return add(symmetric(second_moment(C, n), w), cross(h, v)), axpy(C[n, 0], v, cross(w, h))


@helper
def screws(cols, F, k, S):
    """Compute the screws (w, v at the origin of frame k) of the columns on the path to k."""
    origin = take(F, k, ORIGIN)
    n = k
    while n >= 0:
        s = take(F, n, AXIS)
        if rotates(cols, n):
            put(S, n, 0, s)
            put(S, n, 3, cross(sub(take(F, n, ORIGIN), origin), s))
        else:
            put(S, n, 0, sub(s, s))
            put(S, n, 3, s)
        n = cols[n, PARENT]


@helper
def moving(C, n, w, v):
    """Return the rates of first moment and inertia (xx yy zz xy xz yz) of composite n moving with (w, v)."""
    h = take(C, n, FIRST)
    xx, yy, zz, xy, xz, yz = second_moment(C, n)
    x, y, z = cross(w, (xx, xy, xz)), cross(w, (xy, yy, yz)), cross(w, (xz, yz, zz))
    s = 2 * dot(h, v)
    return axpy(C[n, 0], v, cross(w, h)), (
        2 * (x[0] - h[0] * v[0]) + s,
        2 * (y[1] - h[1] * v[1]) + s,
        2 * (z[2] - h[2] * v[2]) + s,
        x[1] + y[0] - h[0] * v[1] - h[1] * v[0],
        x[2] + z[0] - h[0] * v[2] - h[2] * v[0],
        y[2] + z[1] - h[1] * v[2] - h[2] * v[1],
    )


@helper
def christoffel(cols, F, S, C, t):
    """Compute I (M, M) and P (M, M, M), side by side in t, for coordinates moved one after the other.

    With A the rate of I_k as its composite moves with S_k, and B = S_j ×* I_k S_k, the six permutations of
    i <= j <= k hold S_i (A S_j + B) / 2 and ± S_i (A S_j - B) / 2.
    """
    size = cols.shape[0]
    square = size * size
    for place in range(square + square * size):
        t[place] = 0
    for k in range(size):
        screws(cols, F, k, S)
        wk, vk = take(S, k, 0), take(S, k, 3)
        nk, fk = momentum(C, k, wk, vk)
        rate_h, rate_j = moving(C, k, wk, vk)
        j = k
        while j >= 0:
            wj, vj = take(S, j, 0), take(S, j, 3)
            x = dot(wj, nk) + dot(vj, fk)
            t[at(j * size + k)] = x
            t[at(k * size + j)] = x
            an, af = add(symmetric(rate_j, wj), cross(rate_h, vj)), cross(wj, rate_h)
            bn, bf = add(cross(wj, nk), cross(vj, fk)), cross(wj, fk)
            up_n, up_f = half(add(an, bn)), half(add(af, bf))
            down_n, down_f = sub(up_n, bn), sub(up_f, bf)
            i = j
            while i >= 0:
                wi, vi = take(S, i, 0), take(S, i, 3)
                up = dot(wi, up_n) + dot(vi, up_f)
                down = dot(wi, down_n) + dot(vi, down_f)
                t[at(square + i * square + j * size + k)] = up
                t[at(square + i * square + k * size + j)] = up
                t[at(square + j * square + i * size + k)] = down
                t[at(square + j * square + k * size + i)] = down
                if j < k:
                    t[at(square + k * square + i * size + j)] = -down
                    t[at(square + k * square + j * size + i)] = -down
                i = cols[i, PARENT]
            j = cols[j, PARENT]


@helper
def add_armature(rest, size, t):
    """Add the armature of the columns to I; it is constant, and P does not change."""
    for n in range(size):
        t[n * size + n] += rest[n, ARMATURE]


@helper
def balls(cols, t):
    """Change from three successive rotations to the angular velocity of each ball joint.

    The two differ by the second-order coefficients B_p,ab = -ε_abp of the change (3-35), for a before b if
    the axes are fixed in the parent, for a after b if they are fixed in the child.
    """
    size = cols.shape[0]
    for g in range(size):
        if cols[g, GROUP] != g or cols[g, KIND] <= PRISMATIC:
            continue
        forward = cols[g, LO] == g
        for u in range(3):
            w = (u + 1) % 3
            p = (u + 2) % 3
            # ε_uwp = 1: the pair (a, b) is (u, w) or (w, u), depending on the order of the axes
            straight = (u < w) == forward
            a, b = (u, w) if straight else (w, u)
            for k in range(size):
                x = t[k * size + g + p]
                place = size * size + (k * size + g + a) * size + g + b
                t[place] = t[place] - x if straight else t[place] + x
