"""Digits lost where loops are nearly singular: each order may lose the closure's condition once more.

Near a posture where several motions meet, the closure rows of the square system are nearly dependent, with
singular values σ_j. Rounding moves the first order by ε/σ_j along each singular direction v_j. The next order
has the second-order part of the rows on its right side, so an error along v_k reaches v_j with the weight
u_j·H(v_k, A)/σ_j: large where the rows bend towards the singularity, and not where a σ_j is small because a
loop is small beside the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# units of the last digit, times the condition, that an answer is known to
UNITS = 100
_EPS = float(np.finfo(float).eps)


def error_amplification(
    closing: np.ndarray, A: np.ndarray, curvature: Callable[[np.ndarray], np.ndarray], order: int
) -> float:
    """Largest relative error that rounding may bring to an order, at one posture.

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
        As a share of the answer.

    Examples
    --------
    Two rows that differ by 1e-6, and where they differ they bend:

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
        M, rank = A.shape[0], len(sigma)
        along = (A / np.linalg.norm(A, axis=0)).T
        # by polarization: H(x, y) + H(y, x) = (H(x + y, x + y) − H(x − y, x − y)) / 2
        both = [(V[:, None] + sign * along).reshape(-1, M) for sign in (1, -1)]
        plus, minus = np.split(curvature(np.concatenate(both)), 2)
        bend = ((plus - minus) / 4).reshape(rank, len(along), rank)
        reach = np.abs(np.einsum("kar,rj->jka", bend, U)).max(axis=2) / sigma[:, None]
        for _ in range(order - 1):
            error = first + reach @ error
    return float(UNITS * _EPS * error.max())
