"""Frames of the spanning tree at one configuration, and points and vectors fixed in them."""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.functions import cosine, root, sine
from kic.kernels.jit import helper, inlined
from kic.kernels.vectors import add, axpy, put, scale, take, turn


@inlined
def has_frame(cols, n):
    """Return True if a query needs the frame of column n."""
    return cols[n, lay.GROUP] >= 0


@inlined
def motion(cols, geometry, states, b, F):
    """Write cosines and sines of revolute, lengths of prismatic, and quaternions of ball joints into F.

    The values are for configuration b of `states` (B, nq), relative to the reference configuration.
    """
    for n in range(cols.shape[0]):
        if not has_frame(cols, n):
            continue
        k = cols[n, lay.STATE]
        kind = cols[n, lay.KIND]
        if kind == lay.REVOLUTE:
            angle = states[b, k] - geometry[n, lay.DRAWN]
            F[n, lay.MOTION] = cosine(angle)
            F[n, lay.MOTION + 1] = sine(angle)
        elif kind == lay.PRISMATIC:
            F[n, lay.MOTION] = states[b, k] - geometry[n, lay.DRAWN]
        elif cols[n, lay.GROUP] == n:
            w, x, y, z = states[b, k], states[b, k + 1], states[b, k + 2], states[b, k + 3]
            # normalize: integrators let the norm drift
            f = 1 / root(w * w + x * x + y * y + z * z)
            F[n, lay.MOTION] = f * w
            F[n, lay.MOTION + 1] = f * x
            F[n + 1, lay.MOTION] = f * y
            F[n + 1, lay.MOTION + 1] = f * z


@helper
def ball_rotation(F, n):
    """Return the rows of the rotation matrix of the unit quaternion (w, x, y, z) at columns n and n + 1."""
    w, x, y, z = F[n, lay.MOTION], F[n, lay.MOTION + 1], F[n + 1, lay.MOTION], F[n + 1, lay.MOTION + 1]
    return (
        (w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z),
    )


@inlined
def frames(cols, geometry, F):
    """Compute origin, axis and rotation of every column's frame in world axes (eqs 2-45 to 2-50).

    The third axis of the frame is the axis of a revolute joint or the direction of a prismatic joint. The
    three columns of a ball joint share one frame. Their axes are fixed in the joint's first body, which is
    the parent, or the child if the tree traverses the joint backwards (see `LO` in `layout`).
    """
    for n in range(cols.shape[0]):
        kind = cols[n, lay.KIND]
        if cols[n, lay.GROUP] != n:
            continue
        parent = cols[n, lay.PARENT]
        z0 = take(geometry, n, lay.TURN0)
        z1 = take(geometry, n, lay.TURN0 + 3)
        z2 = take(geometry, n, lay.TURN0 + 6)
        if parent < 0:
            w0, w1, w2 = z0, z1, z2
            p = take(geometry, n, lay.OFFSET)
        else:
            a = take(F, parent, lay.ROTATION)
            b = take(F, parent, lay.ROTATION + 3)
            c = take(F, parent, lay.ROTATION + 6)
            w0 = add(axpy(a[0], z0, scale(a[1], z1)), scale(a[2], z2))
            w1 = add(axpy(b[0], z0, scale(b[1], z1)), scale(b[2], z2))
            w2 = add(axpy(c[0], z0, scale(c[1], z1)), scale(c[2], z2))
            offset = turn(F, parent, lay.ROTATION, take(geometry, n, lay.OFFSET))
            p = add(take(F, parent, lay.ORIGIN), offset)
        axis = (w0[2], w1[2], w2[2])
        if kind == lay.REVOLUTE:
            co, si = F[n, lay.MOTION], F[n, lay.MOTION + 1]
            w0 = (co * w0[0] + si * w0[1], co * w0[1] - si * w0[0], w0[2])
            w1 = (co * w1[0] + si * w1[1], co * w1[1] - si * w1[0], w1[2])
            w2 = (co * w2[0] + si * w2[1], co * w2[1] - si * w2[0], w2[2])
        elif kind == lay.PRISMATIC:
            p = axpy(F[n, lay.MOTION], axis, p)
        else:
            q0, q1, q2 = ball_rotation(F, n)
            backwards = cols[n, lay.LO] > n
            if backwards:
                q0, q1, q2 = (
                    (q0[0], q1[0], q2[0]),
                    (q0[1], q1[1], q2[1]),
                    (q0[2], q1[2], q2[2]),
                )
            r0 = add(axpy(w0[0], q0, scale(w0[1], q1)), scale(w0[2], q2))
            r1 = add(axpy(w1[0], q0, scale(w1[1], q1)), scale(w1[2], q2))
            r2 = add(axpy(w2[0], q0, scale(w2[1], q1)), scale(w2[2], q2))
            if backwards:
                w0, w1, w2 = scale(-1, r0), scale(-1, r1), scale(-1, r2)
            for k in range(3):
                put(F, n + k, lay.AXIS, (w0[k], w1[k], w2[k]))
                put(F, n + k, lay.ORIGIN, p)
                put(F, n + k, lay.ROTATION, r0)
                put(F, n + k, lay.ROTATION + 3, r1)
                put(F, n + k, lay.ROTATION + 6, r2)
            continue
        put(F, n, lay.AXIS, axis)
        put(F, n, lay.ORIGIN, p)
        put(F, n, lay.ROTATION, w0)
        put(F, n, lay.ROTATION + 3, w1)
        put(F, n, lay.ROTATION + 6, w2)


@inlined
def world_point(F, frame, local):
    """Return the world position of a point fixed in a frame (-1: ground, whose frame is the world)."""
    if frame < 0:
        return local
    return add(take(F, frame, lay.ORIGIN), turn(F, frame, lay.ROTATION, local))


@inlined
def world_vector(F, frame, local):
    """Return the world components of a vector fixed in a frame."""
    if frame < 0:
        return local
    return turn(F, frame, lay.ROTATION, local)


@helper
def rotates(cols, n):
    """Return True if column n rotates the frames that it carries."""
    return cols[n, lay.KIND] != lay.PRISMATIC
