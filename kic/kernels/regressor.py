"""Regressor of inertial parameters: the efforts of a motion are linear in them, T = Y π.

The particle of a body at ρ from the moment point has the acceleration a + B ρ, with B = [α] + [ω]², where a
is that of the moment point, less gravity. A column with the axis s moves it by v + s × ρ. The sum over the
body, in its own axes, is m v·a + v·B mρ + s·(mρ × a) + s·(I α + ω × I ω).
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import rotates
from kic.kernels.jit import helper, inlined
from kic.kernels.ranges import accumulate, clear_range, put_at
from kic.kernels.series import vector_series
from kic.kernels.vectors import add, cross, dot, scale, sub, take, turn, turn_back


@inlined
def in_body(F, n, places, i, v):
    """Return a world vector in the axes of body i, which frame n carries."""
    return turn(places, i, lay.TURN0, turn_back(F, n, lay.ROTATION, v))


@inlined
def moment_columns(w, a):
    """Return the moments I α + ω × I ω for unit values of Ixx, Iyy, Izz, and of Ixy, Ixz, Iyz."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return (
        (a[0], xz, -xy), (-yz, a[1], xy), (yz, -xz, a[2]),
        (a[1] - xz, a[0] + yz, xx - yy), (a[2] + xy, zz - xx, a[0] - yz), (yy - zz, a[2] - xy, a[1] + xz),
    )  # fmt: skip


@inlined
def acceleration_columns(w, a):
    """Return the columns of B = [α] + [ω]²."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return (
        (-yy - zz, xy + a[2], xz - a[1]),
        (xy - a[2], -xx - zz, yz + a[0]),
        (xz + a[1], yz - a[0], -xx - yy),
    )


@helper
def body_regressor(cols, F, V, bodies, places, gravity, want, A, size, T, start):
    """Write Y (m, 10 n) of the inertial parameters of n bodies to T, from the series V of the frames.

    Rows are the coordinates q with φ̇ = A q̇, or the columns of the tree if A is None.
    """
    width = lay.N_INERTIAL * bodies.shape[0]
    clear_range(T, start, size * width)
    for i in range(bodies.shape[0]):
        n = bodies[i, lay.CARRIER]
        arm = turn(F, n, lay.ROTATION, take(places, i, lay.OFFSET))
        _, a, _ = vector_series(V, n, lay.POINT, arm, 2)
        if want & lay.WANT_LOADS:
            a = sub(a, gravity)
        a = in_body(F, n, places, i, a)
        w = in_body(F, n, places, i, take(V, n + 1, lay.ANGULAR_VELOCITY))
        turning = in_body(F, n, places, i, take(V, n + 1, lay.ANGULAR_ACCELERATION))
        mxx, myy, mzz, mxy, mxz, myz = moment_columns(w, turning)
        bx, by, bz = acceleration_columns(w, turning)
        origin, place = add(take(F, n, lay.ORIGIN), arm), start + lay.N_INERTIAL * i
        k = n
        while k >= 0:
            s = take(F, k, lay.AXIS)
            if rotates(cols, k):
                v = in_body(F, n, places, i, cross(s, sub(origin, take(F, k, lay.ORIGIN))))
                s = in_body(F, n, places, i, s)
                first = add((dot(v, bx), dot(v, by), dot(v, bz)), cross(a, s))
                second = dot(s, mxx), dot(s, myy), dot(s, mzz)
                third = dot(s, mxy), dot(s, mxz), dot(s, myz)
                add_parameters(A, size, width, k, dot(v, a), first, second, third, T, place)
            else:
                v = in_body(F, n, places, i, s)
                first, second = (dot(v, bx), dot(v, by), dot(v, bz)), scale(0, v)
                add_parameters(A, size, width, k, dot(v, a), first, second, second, T, place)
            k = cols[k, lay.PARENT]


@inlined
def add_parameters(A, size, width, k, mass, first, second, third, T, place):
    """Add the ten coefficients of column k to the rows of the coordinates."""
    if A is None:
        p = place + k * width
        T[p] = mass
        put_at(T, p + lay.FIRST_MOMENTS, 1, first)
        put_at(T, p + lay.DIAGONAL, 1, second)
        put_at(T, p + lay.PRODUCTS, 1, third)
    else:
        for q in range(size):
            f = A[k * size + q]
            if f != 0:
                p = place + q * width
                T[p] += f * mass
                accumulate(T, p + lay.FIRST_MOMENTS, 1, scale(f, first))
                accumulate(T, p + lay.DIAGONAL, 1, scale(f, second))
                accumulate(T, p + lay.PRODUCTS, 1, scale(f, third))
