"""Digits lost near singular loops: each order may lose another factor of the closure's condition.

Near a configuration where several motions meet, the closure rows of the square system are nearly dependent,
with singular values σ_j. Rounding changes the first order by ε/σ_j along each singular direction v_j. The
right side of the next order contains the second-order part of the rows, so an error along v_k reaches v_j
with the weight u_j·H(v_k, A)/σ_j. This weight is large if the rows bend towards the singularity, but not if
σ_j is small only because a loop is small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kic.numerics.tolerances import EPS, ROUNDING_FACTOR

# bound of the rounding error of a solved state, in units of eps times the condition
POSITION_FACTOR = 12
# largest error of each order, in units of that of G. At the distance s from a turning point of the inputs
# G is proportional to 1/s, I* to 1/s², H to 1/s³, P* to 1/s⁴ and D to 1/s⁵
_ORDER_FACTORS = {1: 1, 2: 4, 3: 5}
# condition of inputs below which solved states count as exact, and the largest that counts: a double root of
# the closure keeps half the digits
_CONDITION_MIN, _CONDITION_MAX = 1e3, 4 * EPS**-0.5


def larger(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return the larger of two errors (B,) for each member; None means no error."""
    if one is None or other is None:
        return other if one is None else one
    return np.fmax(one, other)


def error_amplification(
    closing: np.ndarray, A: np.ndarray, curvature: Callable[[np.ndarray], np.ndarray], order: int
) -> float:
    """Return the largest relative error that rounding may cause in an order, at one configuration.

    Parameters
    ----------
    closing : (R, M)
        First order of the closure rows of the square system, scaled.
    A : (M, m)
        First order of the tree's coordinates, scaled.
    curvature : callable
        H(x, x) (n, R) of these rows along rates x (n, M), scaled.
    order : {1, 2, 3}
        The order.

    Returns
    -------
    float
        Error relative to the result.

    Examples
    --------
    Two rows that differ by 1e-6, straight and bent:

    >>> import numpy as np
    >>> closing = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 + 1e-6, 0.0]])
    >>> straight = lambda x: np.zeros((len(x), 2))
    >>> bent = lambda x: np.stack([x[:, 0] * x[:, 2], -x[:, 1] * x[:, 2]], axis=1)
    >>> A = np.array([[0.0], [0.0], [1.0]])
    >>> [f"{error_amplification(closing, A, f, order):.0e}" for f in (straight, bent) for order in (1, 2, 3)]
    ['9e-08', '9e-08', '9e-08', '9e-08', '2e-07', '2e-02']
    """
    U, sigma, V = np.linalg.svd(closing, full_matrices=False)
    with np.errstate(divide="ignore"):
        first = sigma[0] / sigma
    error = first
    if order > 1:
        reach = _reach(U, sigma, V, A, curvature)
        for _ in range(order - 1):
            error = first + reach @ error
    return float(ROUNDING_FACTOR * EPS * error.max())


def position_amplification(
    inputs: np.ndarray,
    rows: np.ndarray,
    tensors: Sequence[np.ndarray],
    curvature: Callable[[np.ndarray], np.ndarray],
) -> float:
    """Return the largest relative error of coefficients due to the error of a solved state.

    Near a turning point of the inputs every order has an error of a few eps κ², with κ the condition of all
    rows. Near a bifurcation of the closure each further order has another factor κ, unless the coefficients
    grow with it.

    Parameters
    ----------
    inputs : (P, M)
        First order of the rows that the state was solved for, with all closure rows, scaled.
    rows : (M, M)
        First order of the square system of the coefficients, scaled.
    tensors : sequence of (M, ...)
        Coefficients A (M, m), B (M, m, m), … of the tree's coordinates up to the order, scaled.
    curvature : callable
        As in `error_amplification`, of all rows of the square system.
    """
    A = tensors[0]
    _, known, W = np.linalg.svd(inputs, full_matrices=False)
    U, sigma, V = np.linalg.svd(rows)
    with np.errstate(divide="ignore"):
        position = np.minimum(known[0] / known, _CONDITION_MAX)
    position[position < _CONDITION_MIN] = 0
    worst = error = _reach(U, sigma, W, A, curvature) @ position
    # at a bifurcation of the closure alone A does not grow
    largest = max(1.0, float(np.linalg.norm(A, 2)))
    step = _reach(U, sigma, V, A, curvature) / largest
    for order, T in enumerate(tensors[1:], 2):
        # errors and coefficients along each v_j, in units of the coefficients at a turning point
        error = step @ error
        size = np.abs(V @ T.reshape(len(T), -1)).max(axis=1) / largest ** (2 * order - 1)
        worst = np.maximum(worst, error / np.maximum(1.0, size))
    return float(POSITION_FACTOR * _ORDER_FACTORS[len(tensors)] * EPS * worst.max())


def _reach(
    U: np.ndarray,
    sigma: np.ndarray,
    directions: np.ndarray,
    A: np.ndarray,
    curvature: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return |U_j·H(d_k, A)| / σ_j (R, n): the effect on v_j of an error along a direction d_k (n, M)."""
    along = (A / np.linalg.norm(A, axis=0)).T
    # by polarization: H(x, y) + H(y, x) = (H(x + y, x + y) − H(x − y, x − y)) / 2
    both = [(directions[:, None] + sign * along).reshape(-1, len(A)) for sign in (1, -1)]
    plus, minus = np.split(curvature(np.concatenate(both)), 2)
    bend = ((plus - minus) / 4).reshape(len(directions), len(along), len(sigma))
    return np.abs(np.einsum("kar,rj->jka", bend, U)).max(axis=2) / sigma[:, None]
