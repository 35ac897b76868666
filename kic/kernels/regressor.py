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

    Rows are the coordinates q with φ̇ = A q̇, or the columns of the tree if A is None. With WANT_GROUND they
    are the force and the moment about the origin of the world that ground exerts.
    """
    width = lay.N_INERTIAL * bodies.shape[0]
    clear_range(T, start, (6 if want & lay.WANT_GROUND else size) * width)
    for i in range(bodies.shape[0]):
        n = bodies[i, lay.CARRIER]
        arm = turn(F, n, lay.ROTATION, take(places, i, lay.OFFSET))
        _, a, _ = vector_series(V, n, lay.POINT, arm, 2)
        if want & lay.WANT_LOADS:
            a = sub(a, gravity)
        a = in_body(F, n, places, i, a)
        w = in_body(F, n, places, i, take(V, n + 1, lay.ANGULAR_VELOCITY))
        turning = in_body(F, n, places, i, take(V, n + 1, lay.ANGULAR_ACCELERATION))
        M, B = moment_columns(w, turning), acceleration_columns(w, turning)
        origin, place = add(take(F, n, lay.ORIGIN), arm), start + lay.N_INERTIAL * i
        k = n if want & lay.WANT_GROUND == 0 else lay.NO_FRAME
        while k >= 0:
            s = take(F, k, lay.AXIS)
            if rotates(cols, k):
                v = in_body(F, n, places, i, cross(s, sub(origin, take(F, k, lay.ORIGIN))))
                row = of_rotation(v, in_body(F, n, places, i, s), a, B, M)
            else:
                row = of_translation(in_body(F, n, places, i, s), a, B)
            add_parameters(A, size, width, k, row, T, place)
            k = cols[k, lay.PARENT]
        if want & lay.WANT_GROUND:
            for c in range(3):
                s = 1.0 * (c == 0), 1.0 * (c == 1), 1.0 * (c == 2)
                v, axis = in_body(F, n, places, i, cross(s, origin)), in_body(F, n, places, i, s)
                put_parameters(T, place + c * width, of_translation(axis, a, B))
                put_parameters(T, place + (3 + c) * width, of_rotation(v, axis, a, B, M))


@inlined
def of_translation(v, a, B):
    """Return the ten coefficients of a translation along v: the mass, first moments, Ixx …, Ixy …."""
    bx, by, bz = B
    return dot(v, a), (dot(v, bx), dot(v, by), dot(v, bz)), scale(0, v), scale(0, v)


@inlined
def of_rotation(v, s, a, B, M):
    """Return the ten coefficients of a rotation about s that moves the moment point by v."""
    mxx, myy, mzz, mxy, mxz, myz = M
    mass, first, _, _ = of_translation(v, a, B)
    second, third = (dot(s, mxx), dot(s, myy), dot(s, mzz)), (dot(s, mxy), dot(s, mxz), dot(s, myz))
    return mass, add(first, cross(a, s)), second, third


@inlined
def put_parameters(T, p, row):
    """Write ten coefficients to T at p."""
    T[p] = row[0]
    put_at(T, p + lay.FIRST_MOMENTS, 1, row[1])
    put_at(T, p + lay.DIAGONAL, 1, row[2])
    put_at(T, p + lay.PRODUCTS, 1, row[3])


@inlined
def add_parameters(A, size, width, k, row, T, place):
    """Add the ten coefficients of column k to the rows of the coordinates."""
    if A is None:
        put_parameters(T, place + k * width, row)
    else:
        mass, first, second, third = row
        for q in range(size):
            f = A[k * size + q]
            if f != 0:
                p = place + q * width
                T[p] += f * mass
                accumulate(T, p + lay.FIRST_MOMENTS, 1, scale(f, first))
                accumulate(T, p + lay.DIAGONAL, 1, scale(f, second))
                accumulate(T, p + lay.PRODUCTS, 1, scale(f, third))
