"""Points that swing in a plane which itself turns about the vertical."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.classics.angles import sin_cos
from kic.coefficients import Coefficients


def cycles(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of angles (...), each with its first three derivatives, (..., 4).

    Examples
    --------
    >>> cycles(np.array(0.0))[0]
    array([ 0.,  1., -0., -1.])
    """
    s, c = sin_cos(angle)
    return np.stack([s, c, -s, -c], axis=-1), np.stack([c, -s, -c, s], axis=-1)


def swinging(
    rows: Iterable[str],
    columns: Iterable[str],
    turn: np.ndarray,
    out: np.ndarray,
    up: np.ndarray,
    aside: Any,
    order: int,
) -> Coefficients:
    """Place of a point, and its derivatives, in the turn of its plane about z and two angles within it.

    The point is X out from the z axis, Z up, and d aside of the plane that turns::

        P = (X cos θ₁ − d sin θ₁, X sin θ₁ + d cos θ₁, Z)

    where X and Z are sums of a part that moves with the first angle only and a far part that moves with
    both. Each derivative is again such an expression, picked from one table.

    Parameters
    ----------
    rows, columns : three str each
        Names of x, y, z and of the three angles.
    turn : (...) ndarray
        θ₁.
    out, up : (..., 2, 4) ndarray
        X and Z with their derivatives of order 0 to 3: first of the whole, then of the far part alone.
    aside : float
        d.
    order : {1, 2, 3}
        Highest order.

    Returns
    -------
    Coefficients
        Values (..., 3), G (..., 3, 3) and so on.
    """
    sines, cosines = cycles(turn)
    made: list[Any] = []
    for n in range(order + 1):
        which = np.indices((3,) * n)
        turns = (which == 0).sum(axis=0)
        bends = n - turns
        far = (which == 2).any(axis=0).astype(int)
        X, Z = out[..., far, bends], up[..., far, bends] * (turns == 0).astype(int)
        S, C, d = sines[..., turns], cosines[..., turns], aside * (bends == 0).astype(int)
        made.append(np.stack(np.broadcast_arrays(X * C - d * S, X * S + d * C, Z), axis=-n - 1))
    values, G, H, D = (*made, None, None)[:4]
    return Coefficients(rows, columns, G, H, D, values)
