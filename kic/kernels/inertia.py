"""Mass matrix I* (2-157) and P* of the tree, from composite inertias and world screws.

P* is computed in its metric-compatible form: C_kb = q̇_a P*_kab is the Coriolis matrix, and Ṁ - 2C is skew.
In holonomic coordinates these are the Christoffel symbols of the first kind (after Echeandia and Wensing
2021). The angular velocities of a ball joint make P* unsymmetric in its last two indices. The form of (2-193,
2-194) gives the same torques; see `body_contributions`.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import rotates
from kic.kernels.functions import at
from kic.kernels.jit import helper, inlined
from kic.kernels.linear_map import add_entry
from kic.kernels.vectors import add, axpy, cross, dot, half, put, scale, sub, symmetric, take, turn

# composite (M, 10): mass, first moment (3) and inertia (6) about the frame's origin
FIRST, SECOND, COMPOSITE_WIDTH = 1, 4, 10


@helper
def moments(inertias, i):
    """Return the inertia of body i about its centre of mass in the frame's axes: xx yy zz xy xz yz."""
    return (
        inertias[i, lay.MOMENTS], inertias[i, lay.MOMENTS + 1], inertias[i, lay.MOMENTS + 2],
        inertias[i, lay.MOMENTS + 3], inertias[i, lay.MOMENTS + 4], inertias[i, lay.MOMENTS + 5],
    )  # fmt: skip


@inlined
def rotated_inertia(F, frame, inertias, i):
    """Return the inertia of body i about its centre of mass in world axes (2-164): xx yy zz xy xz yz."""
    j = moments(inertias, i)
    r0 = take(F, frame, lay.ROTATION)
    r1 = take(F, frame, lay.ROTATION + 3)
    r2 = take(F, frame, lay.ROTATION + 6)
    a0, a1, a2 = symmetric(j, r0), symmetric(j, r1), symmetric(j, r2)
    return (dot(r0, a0), dot(r1, a1), dot(r2, a2), dot(r0, a1), dot(r0, a2), dot(r1, a2))


@inlined
def composites(cols, F, bodies, inertias, C):
    """Compute the composite inertia of each frame and everything it carries, about the frame's origin.

    About a common reference point, digits would be lost with the square of its distance.
    """
    for n in range(C.shape[0]):
        for k in range(COMPOSITE_WIDTH):
            C[n, k] = 0
    for i in range(bodies.shape[0]):
        n = bodies[i, lay.CARRIER]
        if n < 0:
            continue
        m = inertias[i, lay.MASS]
        c = turn(F, n, lay.ROTATION, take(inertias, i, lay.CENTRE))
        add_composite(C, n, m, scale(m, c), rotated_inertia(F, n, inertias, i))
        add_steiner(C, n, m, scale(m, c), c)
    for n in range(C.shape[0] - 1, -1, -1):
        parent = cols[n, lay.PARENT]
        if parent >= 0:
            m, h = C[n, 0], take(C, n, FIRST)
            d = sub(take(F, n, lay.ORIGIN), take(F, parent, lay.ORIGIN))
            shift = scale(m, d)
            add_composite(C, parent, m, add(h, shift), second_moment(C, n))
            # about the parent's origin: 2 h·d - (h dᵀ + d hᵀ) + m (d² - d dᵀ)
            add_steiner(C, parent, m, shift, d)
            add_steiner(C, parent, m, h, d)
            add_steiner(C, parent, m, d, h)


@inlined
def add_composite(C, n, m, h, j):
    """Add mass, first and second moment to composite n."""
    C[n, 0] += m
    for k in range(3):
        C[n, FIRST + k] += h[k]
    for k in range(6):
        C[n, SECOND + k] += j[k]


@inlined
def add_steiner(C, n, m, h, c):
    """Add the symmetric part of (h·c) 1 - h cᵀ to the second moment."""
    C[n, SECOND] += h[1] * c[1] + h[2] * c[2]
    C[n, SECOND + 1] += h[0] * c[0] + h[2] * c[2]
    C[n, SECOND + 2] += h[0] * c[0] + h[1] * c[1]
    C[n, SECOND + 3] -= (h[0] * c[1] + h[1] * c[0]) / 2
    C[n, SECOND + 4] -= (h[0] * c[2] + h[2] * c[0]) / 2
    C[n, SECOND + 5] -= (h[1] * c[2] + h[2] * c[1]) / 2


@inlined
def second_moment(C, n):
    """Return the inertia of composite n: xx yy zz xy xz yz."""
    return (
        C[n, SECOND], C[n, SECOND + 1], C[n, SECOND + 2],
        C[n, SECOND + 3], C[n, SECOND + 4], C[n, SECOND + 5],
    )  # fmt: skip


@inlined
def momentum(C, n, w, v):
    """Return angular (about the frame's origin) and linear momentum of composite n moving with (w, v)."""
    h = take(C, n, FIRST)
    return add(symmetric(second_moment(C, n), w), cross(h, v)), axpy(C[n, 0], v, cross(w, h))


@helper
def screws(cols, F, k, S):
    """Compute the screws (w, v at the origin of frame k) of the columns on the path to k."""
    origin = take(F, k, lay.ORIGIN)
    n = k
    while n >= 0:
        s = take(F, n, lay.AXIS)
        if rotates(cols, n):
            put(S, n, 0, s)
            put(S, n, 3, cross(sub(take(F, n, lay.ORIGIN), origin), s))
        else:
            put(S, n, 0, sub(s, s))
            put(S, n, 3, s)
        n = cols[n, lay.PARENT]


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


@inlined
def add_christoffel(cols, S, j, k, up_n, up_f, down_n, down_f, linear, size, t):
    """Add the permutations of i <= j <= k to P in coordinates of a linear map."""
    terms, factors, m, square = linear[0], linear[1], at(size), at(size * size)
    p = k
    while p >= 0:
        c, q = at(terms[p, lay.TARGET]), j
        while q >= 0:
            b, f, i = at(terms[q, lay.TARGET]), factors[p, lay.FACTOR] * factors[q, lay.FACTOR], j
            while i >= 0:
                wi, vi = take(S, i, 0), take(S, i, 3)
                up = f * (dot(wi, up_n) + dot(vi, up_f))
                down = f * (dot(wi, down_n) + dot(vi, down_f))
                s = i
                while s >= 0:
                    a, ratio = at(terms[s, lay.TARGET]), factors[s, lay.FACTOR]
                    x, y = ratio * up, ratio * down
                    t[square + a * square + b * m + c] += x
                    if j < k:
                        t[square + a * square + c * m + b] += x
                        t[square + c * square + a * m + b] -= y
                    if i < j:
                        t[square + b * square + a * m + c] += y
                        t[square + b * square + c * m + a] += y
                        if j < k:
                            t[square + c * square + b * m + a] -= y
                    s = terms[s, lay.NEXT]
                i = cols[i, lay.PARENT]
            q = terms[q, lay.NEXT]
        p = terms[p, lay.NEXT]


@helper
def christoffel(cols, F, S, C, linear, size, t):
    """Compute I (m, m) and P (m, m, m) side by side in t, with ball joints as three successive rotations.

    With A the rate of I_k as its composite moves with S_k, and B = S_j ×* I_k S_k, the six permutations of
    i <= j <= k are S_i (A S_j + B) / 2 and ± S_i (A S_j - B) / 2. `linear` is None for the coordinates of
    the tree.
    """
    square = size * size
    for place in range(square + square * size):
        t[place] = 0
    for k in range(cols.shape[0]):
        screws(cols, F, k, S)
        wk, vk = take(S, k, 0), take(S, k, 3)
        nk, fk = momentum(C, k, wk, vk)
        rate_h, rate_j = moving(C, k, wk, vk)
        j = k
        while j >= 0:
            wj, vj = take(S, j, 0), take(S, j, 3)
            x = dot(wj, nk) + dot(vj, fk)
            an, af = add(symmetric(rate_j, wj), cross(rate_h, vj)), cross(wj, rate_h)
            bn, bf = add(cross(wj, nk), cross(vj, fk)), cross(wj, fk)
            up_n, up_f = half(add(an, bn)), half(add(af, bf))
            down_n, down_f = sub(up_n, bn), sub(up_f, bf)
            if linear is None:
                t[at(j * size + k)] = x
                t[at(k * size + j)] = x
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
                    i = cols[i, lay.PARENT]
            else:
                add_entry(linear, size, t, 0, j, k, x)
                if j < k:
                    add_entry(linear, size, t, 0, k, j, x)
                add_christoffel(cols, S, j, k, up_n, up_f, down_n, down_f, linear, size, t)
            j = cols[j, lay.PARENT]


@helper
def add_armature(rest, mobile, linear, size, t):
    """Add the armature of the columns to I; it is constant and does not affect P."""
    for n in range(mobile):
        if linear is None:
            t[n * size + n] += rest[n, lay.ARMATURE]
        else:
            add_entry(linear, size, t, 0, n, n, rest[n, lay.ARMATURE])


@helper
def coordinate_of(linear, n):
    """Return the coordinate of a column of a ball joint."""
    if linear is None:
        return n
    else:
        return linear[0][n, lay.TARGET]


@helper
def balls(cols, linear, size, t):
    """Convert P from three successive rotations to the angular velocity of each ball joint.

    The conversion has the second-order coefficients B_p,ab = -ε_abp (3-35), for a before b if the axes are
    fixed in the parent, for a after b if they are fixed in the child.
    """
    for g in range(cols.shape[0]):
        if cols[g, lay.GROUP] != g or cols[g, lay.KIND] <= lay.PRISMATIC:
            continue
        forward = cols[g, lay.LO] == g
        for u in range(3):
            w = (u + 1) % 3
            p = (u + 2) % 3
            # ε_uwp = 1: the pair (a, b) is (u, w) or (w, u), depending on the order of the axes
            straight = (u < w) == forward
            a, b = (u, w) if straight else (w, u)
            a, b = coordinate_of(linear, g + a), coordinate_of(linear, g + b)
            p = coordinate_of(linear, g + p)
            for k in range(size):
                x = t[k * size + p]
                place = size * size + (k * size + a) * size + b
                t[place] = t[place] - x if straight else t[place] + x
