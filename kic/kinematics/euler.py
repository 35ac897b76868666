"""Euler angles of frames, bodies and ball joints as rows, in the notation of SciPy's `Rotation.as_euler`.

For a rotation R = R(a₁, θ₁) R(a₂, θ₂) R(a₃, θ₃), two components of R e(a₃) give the outer angle, and two of
Rᵀ e(a₁) the inner one. The middle angle is the arcsine of e(a₁) · R e(a₃). All components are products of a
direction of one frame with a direction of the other, so that they have coefficients of every order.

Near gimbal lock the components of the outer and the inner angle are small and lose digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import pi

import numpy as np

from kic.description.description import Part as DescribedPart
from kic.description.joint_types import BALL_TYPES
from kic.description.parts import Body, Frame, Joint
from kic.description.validation import GROUND
from kic.errors import InputError, SingularError
from kic.kinematics.items import Between, Item, Part
from kic.kinematics.tree import Tree, ball_axes
from kic.numerics.tolerances import DIGITS_LOST, EPS, ROUNDING_FACTOR

EULER = "euler_"
# rows of the direction cosines and of the angles, counted from that of the sine of the middle angle
_COSINES, _ANGLES = np.array([-3, -2, 0, 2, 3]), np.array([-1, 1, 4])


def middle_cosine(values: np.ndarray, sine: int) -> np.ndarray:
    """Return the cosine (...) of a middle angle from values (..., height) and the row of its sine.

    It is the distance to gimbal lock in rad where it is small; 1 − sine² would lose half of its digits.
    """
    c: np.ndarray = np.sqrt(values[..., sine - 3] ** 2 + values[..., sine - 2] ** 2)
    return c


def gimbal_condition(sines: Iterable[int], values: np.ndarray) -> np.ndarray:
    """Return the largest inverse distance (B,) of Euler angles to gimbal lock, from values (B, height)."""
    least = np.array([np.abs(middle_cosine(values.real, sine)) for sine in sines]).min(axis=0)
    with np.errstate(divide="ignore"):
        found: np.ndarray = 1 / least
    return found


def gimbal_errors(sines: Iterable[int], values: np.ndarray, tensors: Sequence[np.ndarray] = ()) -> np.ndarray:
    """Return the largest relative errors (B,) of Euler angles and their derivatives, from tables of rows.

    Near gimbal lock, an error ε of direction cosines changes the outer and the inner angle by ε κ, where κ is
    the inverse distance to it. Derivatives of order k are sums of products of derivatives of direction
    cosines with powers of κ up to k; their errors have the factor ε κ. Errors are relative to the largest
    derivative, or to that of direction cosines, or the k-th power of their first order, if it is larger: the
    angles of a body that does not turn have derivatives that are rounding errors.

    Parameters
    ----------
    sines : iterable of int
        Rows of the sines of middle angles; see `Rows.euler`.
    values, tensors : (B, height), sequence of (B, height, ...)
        Values and derivatives of all rows.
    """
    worst = ROUNDING_FACTOR * EPS * gimbal_condition(sines, values)
    for sine in sines:
        kappa, sizes = gimbal_condition([sine], values), [np.ones(len(values))]
        for k, T in enumerate(tensors, 1):
            size = np.abs(T.real).reshape(*T.shape[:2], -1).max(axis=2, initial=0.0)
            angles = size[:, sine + _ANGLES].max(axis=1)
            sizes.append(size[:, sine + _COSINES].max(axis=1))
            first = sizes[1] ** k
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                error = np.maximum(kappa ** (k + 1) * first, kappa**2 * sizes[k])
                if k > 2:
                    error = np.maximum(error, kappa**k * sizes[1] * sizes[2])
                # rates of zero have no error
                worst = np.fmax(
                    worst, ROUNDING_FACTOR * EPS * error / np.maximum.reduce([angles, first, sizes[k]])
                )
    return worst


def check_gimbal(name: str, labels: Iterable[str], error: np.ndarray) -> np.ndarray:
    """Return errors (B,) of Euler angles, or raise `SingularError` if one exceeds `DIGITS_LOST`.

    `name` is the name of the mechanism. The error names the Euler angles among the row `labels`.
    """
    failed = np.flatnonzero(error > DIGITS_LOST)
    if failed.size:
        estimate = float(error[failed].max())
        names = tuple(sorted({label.rpartition(".")[0] for label in labels if f".{EULER}" in label}))
        message = (
            f"Euler angles {', '.join(names)} of '{name}' are near gimbal lock here, where the first and "
            f"third axes are parallel: they or their derivatives may have a relative error of "
            f"{estimate:.0e}. Use another sequence, a lower order, or pose()."
        )
        raise SingularError(message, names=names, estimate=estimate, failed=failed.tolist())
    return error


def check_sequence(sequence: str, who: str) -> str:
    """Return a sequence of three axes, or raise an error unless consecutive axes differ."""
    if not isinstance(sequence, str) or not re.fullmatch("[xyz]{3}|[XYZ]{3}", sequence):
        rule = "must be three axes, such as 'xyz' (about fixed axes) or 'ZYX' (about moving axes)"
    elif sequence[0] == sequence[1] or sequence[1] == sequence[2]:
        rule = "must not repeat an axis twice in a row"
    else:
        return sequence
    raise InputError(f"The Euler sequence of '{who}' {rule}, got {sequence!r}.", name=who, got=sequence)


def euler_part(tree: Tree, part: DescribedPart, key: str) -> Part:
    """Return the rows of the Euler angles of a frame or body in the world, or of a ball joint.

    `key` is the name with the sequence, such as "tool.euler_xyz". The angles of a joint are those of its
    second body relative to the first, about its axes, and zero in the reference configuration.

    Raise `InputError` for another part, or an invalid sequence.
    """
    name, _, group = key.partition(".")
    sequence = check_sequence(group.removeprefix(EULER), name)
    if isinstance(part, Body | Frame):
        bodies, fixed, moving = (GROUND, part.body), np.eye(3), np.array(part.axes)
    elif isinstance(part, Joint) and part.type in BALL_TYPES:
        bodies, fixed, moving = part.bodies, ball_axes(part).T, ball_axes(part).T
    else:
        message = f"'{name}' has no Euler angles: name a frame, a body, or a spherical or free joint."
        raise InputError(message, name=name)
    extrinsic = sequence.islower()
    # about moving axes the sequence is that of the factors of R; about fixed axes it is reversed
    one, two, three = ("xyz".index(axis) for axis in (sequence[::-1] if extrinsic else sequence.lower()))

    between = Between(tree, bodies)
    angle, arcsine = between.angle(), between.arcsine()

    def product(i: int, j: int, sign: float) -> Item:
        """Return sign · R[i, j]: direction i of the world (or first body), and axis j of the frame."""
        return between.cosine(fixed[i], sign * moving[j])

    if one == three:
        other = 3 - one - two
        sign = _parity(one, two)
        outer = [product(two, one, 1.0), product(other, one, -sign), angle]
        # arccos x = π/2 + arcsin(−x)
        middle, offset = [product(one, one, -1.0), arcsine], pi / 2
        inner = [product(one, two, 1.0), product(one, other, sign), angle]
    else:
        sign = _parity(one, two)
        outer = [product(two, three, -sign), product(three, three, 1.0), angle]
        middle, offset = [product(one, three, sign), arcsine], 0.0
        inner = [product(one, two, -sign), product(one, one, 1.0), angle]
    angles = [(2, 0, 1, 0.0), (4, 3, -1, offset), (7, 5, 6, 0.0)]
    if extrinsic:
        angles = angles[::-1]
    return Part(
        [*outer, *middle, *inner],
        [f"{key}.{k + 1}" for k in range(3)],
        [True] * 3,
        tuple(angles),
        labelled=tuple(row for row, *_ in angles),
    )


def _parity(i: int, j: int) -> float:
    """Return 1 if the axis j follows i in the cycle x y z, else -1."""
    return 1.0 if (j - i) % 3 == 1 else -1.0
