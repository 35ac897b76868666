"""Inertias that a body can have."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.arrays import reals, step_vanishes, without_step
from kic.checks import check_size
from kic.errors import ModelError, shown

Six = tuple[float, float, float, float, float, float]
# published values are rounded
SLACK = 1e-6


def check_inertia(who: str, given: Any, mass: float | None = None, exception: str = "") -> Six:
    """Bring an inertia into the order xx yy zz xy xz yz, and refuse one that no body can have.

    The numbers are entries of the tensor, ∫ (r² 1 − r rᵀ) dm: the products of inertia carry the sign
    xy = −∫ x y dm.

    Parameters
    ----------
    who : str
        Whose it is, for the message.
    given : (3,), (6,) or (3, 3) array_like
        Moments about the three axes, six numbers xx yy zz xy xz yz, or the symmetric matrix.
    mass : float, optional
        Mass of the body; without any, it has no inertia.
    exception : str
        A reason that allows what no body can have.

    Returns
    -------
    tuple of 6 float

    Raises
    ------
    ModelError
        For another shape, a matrix that is not symmetric, or principal moments that are negative or
        of which one exceeds the sum of the others, or any without mass.

    Examples
    --------
    >>> check_inertia("Body 'rod'", (0, 1, 1))
    (0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    """
    a = reals(given)
    if a is None or a.shape not in ((3,), (6,), (3, 3)):
        raise ModelError(
            f"{who}: expected `inertia` to be 3 moments (xx yy zz), 6 numbers (xx yy zz xy xz yz) or a "
            f"3×3 matrix, all finite, got {shown(given)}.",
            key="inertia",
        )
    check_size(who, "inertia", a)
    if a.shape == (3, 3):
        difference = float(np.abs(a - a.T).max())
        if difference > 1e-12 * np.abs(a).max() or not step_vanishes(a - a.T, a):
            raise ModelError(
                f"{who}: `inertia` must be symmetric; the largest difference to its transpose is "
                f"{difference:.3g}.",
                key="inertia",
                difference=difference,
            )
        a = a[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    xx, yy, zz, *products = a.tolist()
    xy, xz, yz = products or (0.0, 0.0, 0.0)
    six = (xx, yy, zz, xy, xz, yz)
    if not exception:
        _check_possible(who, without_step(six), without_step(mass))
    return six


def _check_possible(who: str, six: Six, mass: float | None) -> None:
    """Refuse what no distribution of mass has."""
    remedy = "Mend `inertia`, or say in `inertia_exception` why it is meant."
    if mass == 0 and any(six):
        raise ModelError(
            f"{who}: a body with mass = 0 has no inertia, got {shown(six)}. {remedy}", key="inertia"
        )
    low, middle, high = (float(x) for x in np.linalg.eigvalsh(as_matrix(six)))
    slack = SLACK * max(high, 0.0)
    if low < -slack or high > low + middle + slack:
        raise ModelError(
            f"{who}: no body has the principal moments of inertia {low:.6g}, {middle:.6g}, {high:.6g}: none "
            f"may be negative, and none may exceed the sum of the other two. {remedy}",
            key="inertia",
            principal=(low, middle, high),
        )


def as_matrix(six: Six) -> np.ndarray:
    """The symmetric matrix (3, 3) of xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
