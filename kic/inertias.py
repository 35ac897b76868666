"""Inertias that a body can have."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.errors import ModelError

Six = tuple[float, float, float, float, float, float]


def check_inertia(who: str, given: Any, exception: str = "") -> Six:
    """Bring an inertia into the order xx yy zz xy xz yz, and refuse one that no body can have.

    Parameters
    ----------
    who : str
        Whose it is, for the message.
    given : (3,), (6,) or (3, 3) array_like
        Principal values, six numbers xx yy zz xy xz yz, or the symmetric matrix.
    exception : str
        A reason that allows what no body can have.

    Returns
    -------
    tuple of 6 float

    Raises
    ------
    ModelError
        For another shape, a matrix that is not symmetric, or principal moments that are negative or
        of which one exceeds the sum of the others.

    Examples
    --------
    >>> check_inertia("Body 'rod'", (0, 1, 1))
    (0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    """
    try:
        a = np.array(given, dtype=float)
    except (TypeError, ValueError):
        a = np.empty(0)
    if a.shape not in ((3,), (6,), (3, 3)) or not np.isfinite(a).all():
        raise ModelError(
            f"{who}: expected `inertia` to be 3 principal moments, 6 numbers (xx yy zz xy xz yz) or a "
            f"3×3 matrix, all finite, got {given!r}."
        )
    if a.shape == (3, 3):
        if not np.allclose(a, a.T, rtol=0, atol=1e-12 * np.abs(a).max(initial=0)):
            raise ModelError(
                f"{who}: `inertia` must be symmetric; the largest difference to its transpose is "
                f"{np.abs(a - a.T).max():.3g}."
            )
        a = a[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    elif a.shape == (3,):
        a = np.concatenate([a, np.zeros(3)])
    six = tuple(float(x) for x in a)
    if not exception:
        principal = np.linalg.eigvalsh(as_matrix(six))
        slack = 1e-6 * max(principal[2], 0.0)  # published values are rounded
        if principal[0] < -slack or principal[2] > principal[0] + principal[1] + slack:
            shown = ", ".join(f"{x:.6g}" for x in principal)
            raise ModelError(
                f"{who}: no body has the principal moments of inertia {shown}: none may be negative, and "
                "none may exceed the sum of the other two. Mend `inertia`, or say in "
                "`inertia_exception` why it is meant.",
                principal=tuple(principal),
            )
    return six  # type: ignore[return-value]


def as_matrix(six: Six) -> np.ndarray:
    """The symmetric matrix (3, 3) of xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
