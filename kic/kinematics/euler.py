"""Euler angles of frames, bodies and ball joints as rows, in the notation of SciPy's `Rotation.as_euler`.

With axes a₁, a₂, a₃ of a rotation R = R(a₁, θ₁) R(a₂, θ₂) R(a₃, θ₃), the outer angles are those of two
components of R e(a₃) and of Rᵀ e(a₁), and the middle one is the arcsine of e(a₁) · R e(a₃). All are
products of a direction of one frame with one of the other, so that they have coefficients of every order.
"""

from __future__ import annotations

import re
from math import pi

import numpy as np

from kic.description.description import Part as DescribedPart
from kic.description.parts import Body, Frame, Joint
from kic.errors import InputError
from kic.kernels.layout import ANGLE, ARCSINE, DOT1
from kic.kinematics.items import Item, Part
from kic.kinematics.tree import Tree

EULER = "euler_"
# sine of the angle to gimbal lock below which Euler angles and their derivatives are not computed
GIMBAL_LOCK_ATOL = 1e-7


def check_sequence(sequence: str, who: str) -> str:
    """Return a sequence of three axes, or raise an error; consecutive axes differ."""
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
    second body relative to the first, zero in the reference configuration like those of a body.

    Raise `InputError` for another part, or an invalid sequence.
    """
    name, _, group = key.partition(".")
    sequence = check_sequence(group.removeprefix(EULER), name)
    if isinstance(part, Body | Frame):
        a, b, columns = -1, tree.frame[part.body], np.array(part.axes)
    elif isinstance(part, Joint) and part.type in ("spherical", "free"):
        (a, b), columns = (tree.frame[body] for body in part.bodies), np.eye(3)
    else:
        raise InputError(
            f"'{name}' has no Euler angles: name a frame, a body, or a spherical or free joint.", name=name
        )
    extrinsic = sequence.islower()
    # about moving axes the sequence is that of the factors of R; about fixed axes it is reversed
    one, two, three = ("xyz".index(axis) for axis in (sequence[::-1] if extrinsic else sequence.lower()))
    world = np.eye(3)

    def product(i: int, j: int, sign: float) -> Item:
        """Return sign · R[i, j]: direction i of the world (or first body), and axis j of the frame."""
        carried = tuple(tree.local_vector(b, sign * columns[j]))
        return Item(DOT1, b, a, carried, tuple(tree.local_vector(a, world[i])))

    def derived(kind: int) -> Item:
        return Item(kind, b, a)

    if one == three:
        other = 3 - one - two
        sign = _parity(one, two)
        outer = [product(two, one, 1.0), product(other, one, -sign), derived(ANGLE)]
        # arccos x = π/2 + arcsin(−x)
        middle, offset = [product(one, one, -1.0), derived(ARCSINE)], pi / 2
        inner = [product(one, two, 1.0), product(one, other, sign), derived(ANGLE)]
    else:
        sign = _parity(one, two)
        outer = [product(two, three, -sign), product(three, three, 1.0), derived(ANGLE)]
        middle, offset = [product(one, three, sign), derived(ARCSINE)], 0.0
        inner = [product(one, two, -sign), product(one, one, 1.0), derived(ANGLE)]
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
