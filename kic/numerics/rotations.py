"""Rotations: rotation vectors in the interface, unit quaternions (w, x, y, z) in the state."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, pi, tau
from typing import Any

import numpy as np

from kic.errors import InputError

# largest deviation of R Rᵀ from I in a rotation matrix
ROTATION_ATOL = 1e-6


def quaternion_from_vector(r: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (..., 4) of a rotation vector (..., 3); complex steps are kept."""
    if r.dtype == object:
        return _symbolic_quaternion(r)
    with np.errstate(over="ignore"):
        square = np.einsum("...i,...i->...", r, r)
    small = np.abs(square) < 1e-4
    if r.dtype.kind == "c":
        angle = np.sqrt(np.where(small, 1.0, square))
    else:  # hypot does not overflow
        angle = np.where(small, 1.0, np.hypot(np.hypot(r[..., 0], r[..., 1]), r[..., 2]))
    square = np.where(small, square, 0.0)
    # sin(a/2)/a and cos(a/2), by their series where the angle is small
    s = np.where(small, 0.5 - square / 48 + square**2 / 3840 - square**3 / 645120, np.sin(angle / 2) / angle)
    c = np.where(small, 1 - square / 8 + square**2 / 384 - square**3 / 46080, np.cos(angle / 2))
    return np.concatenate([c[..., None], s[..., None] * r], axis=-1)


def _symbolic_quaternion(r: np.ndarray) -> np.ndarray:
    """Return the unit quaternion of the zero rotation; raise `InputError` for other symbolic rotations."""
    if any(x != 0 for x in r.flat):
        raise InputError(
            "Rotations of ball and free joints must be zero in a symbolic state, got nonzero ones. "
            "Use numbers.",
            key="state",
        )
    q = np.zeros((*r.shape[:-1], 4), dtype=object)
    q[..., 0] = 1
    return q


def vector_from_quaternion(q: np.ndarray) -> np.ndarray:
    """Return the rotation vector (..., 3), at most π long, of a unit quaternion; complex steps are kept."""
    if q.dtype == object:
        return q[..., 1:] * 2
    q = np.where(q[..., :1].real < 0, -q, q)
    square = np.einsum("...i,...i->...", q[..., 1:], q[..., 1:])
    small = np.abs(square) < 1e-4
    size = np.sqrt(np.where(small, 1.0, square))
    w = q[..., 0]
    if q.dtype.kind == "c":  # arctan2 is not defined: use the smaller over the larger
        flat = np.abs(size) <= np.abs(w)
        ratio = np.where(flat, size, w) / np.where(flat, w, size)
        half = np.where(flat, np.arctan(ratio), np.pi / 2 - np.arctan(ratio))
    else:
        half = np.arctan2(size, w)
    # asin(s)/s by its series where s is small
    square = np.where(small, square, 0.0)
    series = 1 + square / 6 + 3 * square**2 / 40 + 15 * square**3 / 336 + 105 * square**4 / 3456
    return q[..., 1:] * (2 * np.where(small, series, half / size))[..., None]


@np.errstate(over="ignore", invalid="ignore")
def is_rotation(R: np.ndarray) -> bool:
    """Return True if all matrices (..., 3, 3) satisfy Rᵀ R = I and det R = +1 to tolerance; NaN passes."""
    if R.dtype == object:
        return True
    R = R.real  # scalars for one matrix, which are faster; arrays for a batch
    (a, b, c), (d, e, f), (g, h, i) = R.tolist() if R.ndim == 2 else np.moveaxis(R, (-2, -1), (0, 1))
    rows = a * a + b * b + c * c - 1, d * d + e * e + f * f - 1, g * g + h * h + i * i - 1
    pairs = a * d + b * e + c * f, a * g + b * h + c * i, d * g + e * h + f * i
    lengths, angles = (x * x + y * y + z * z for x, y, z in (rows, pairs))
    det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    wrong = (lengths > ROTATION_ATOL**2) | (angles > ROTATION_ATOL**2) | (det < 0)
    return not (wrong if R.ndim == 2 else wrong.any())


def wrap_to_pi(angle: Any) -> Any:
    """Return an angle, or an array of angles, within ±π."""
    return (angle + pi) % tau - pi


def vector_from_matrix(R: np.ndarray) -> np.ndarray:
    """Return the rotation vector (..., 3), of length at most π, of a rotation matrix (..., 3, 3)."""
    return vector_from_quaternion(quaternion_from_matrix(R))


def matrix_from_quaternion(q: Sequence[float]) -> np.ndarray:
    """Return the rotation matrix (3, 3) of one real quaternion (4,) of any length, for control loops."""
    w, x, y, z = q
    f = 2 / (w * w + x * x + y * y + z * z)
    return np.array(
        (
            (1 - f * (y * y + z * z), f * (x * y - w * z), f * (x * z + w * y)),
            (f * (x * y + w * z), 1 - f * (x * x + z * z), f * (y * z - w * x)),
            (f * (x * z - w * y), f * (y * z + w * x), 1 - f * (x * x + y * y)),
        )
    )


def turning_rates(r: np.ndarray, rd: np.ndarray, rdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ω and ω̇ (3,) in fixed axes from a rotation vector (3,), at most two turns, and its derivatives.

    ω = ṙ + a r × ṙ + b r × (r × ṙ) with a = (1 − cos θ)/θ² and b = (θ − sin θ)/θ³, by their series in θ²; ω̇
    is computed by a complex step in time.
    """
    h = 1e-40
    r, rd = r + 1j * h * rd, rd + 1j * h * rdd
    powers = (-(r @ r)) ** _SERIES_ORDERS
    across = np.cross(r, rd)
    w = rd + (powers @ _VERSINE_SERIES) * across + (powers @ _SINE_SERIES) * np.cross(r, across)
    return w.real, w.imag / h


_SERIES_ORDERS = np.arange(26)
_VERSINE_SERIES, _SINE_SERIES = (np.array([1 / factorial(2 * k + n) for k in range(26)]) for n in (2, 3))


def quaternion_from_matrix(R: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (..., 4), of either sign, of a rotation matrix (..., 3, 3)."""
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    # the quaternion is the leading eigenvector of this matrix, for any angle (Bar-Itzhack 2000)
    K = np.empty((*R.shape[:-2], 4, 4))
    K[..., 1:, 1:] = R + np.swapaxes(R, -1, -2) - (xx + yy + zz)[..., None, None] * np.eye(3)
    K[..., 0, 0] = xx + yy + zz
    for k, (i, j) in enumerate(((2, 1), (0, 2), (1, 0))):
        K[..., 0, k + 1] = K[..., k + 1, 0] = R[..., i, j] - R[..., j, i]
    return np.asarray(np.linalg.eigh(K)[1][..., -1])


def displaced(pose: Any, point: np.ndarray) -> np.ndarray:
    """Return a point (3,) displaced by a `RigidTransform`; complex steps are kept."""
    place: np.ndarray = pose.apply(point.real)
    return place + 1j * pose.rotation.apply(point.imag) if point.dtype.kind == "c" else place


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the product (..., 4) of quaternions: rotation q, then rotation p."""
    w, v = p[..., :1], p[..., 1:]
    x, u = q[..., :1], q[..., 1:]
    scalar = w * x - np.einsum("...i,...i->...", v, u)[..., None]
    return np.concatenate([scalar, w * u + x * v + np.cross(v, u)], axis=-1)


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Rotate vectors (..., 3) by unit quaternions (..., 4)."""
    w, u = q[..., :1], q[..., 1:]
    across = np.cross(u, v)
    return v + 2 * (w * across + np.cross(u, across))


def universal_angles(a: np.ndarray, b: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Return the angles (..., 2) of rotations about perpendicular axes a and b, where the first carries b.

    Parameters
    ----------
    a, b : (3,)
        Unit axes where both angles are 0.
    turn : (..., 3, 3)
        Rotation about a times rotation about b; an additional spin has little effect on the angles.
    """
    # the first rotation alone moves b; the second alone moves a, in axes of the second body
    image, seen, normal = turn @ b, a @ turn, np.cross(a, b)
    return np.stack([np.arctan2(image @ normal, image @ b), np.arctan2(seen @ normal, seen @ a)], axis=-1)
