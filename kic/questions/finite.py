"""Whether first-order motions go on: closed postures beside one, and the orders to which a motion extends.

Where closure conditions depend on one another, a rate that they allow may lead nowhere. Let a motion be
φ(t) = x₁ t + x₂ t²/2 + x₃ t³/6. The conditions, G to first, H to second and D to third order, ask for

    G x₁ = 0        G x₂ + H(x₁, x₁) = 0        G x₃ + 3 H(x₁, x₂) + D(x₁, x₁, x₁) = 0

and every dependence W among them, Wᵀ G = 0, is an equation that x₁ and x₂ alone must meet. No x₁ that meets
those of second order proves a mechanism rigid: of any motion, however slowly it starts, the lowest power of t
meets them (Connelly & Whiteley, SIAM J. Discrete Math. 9 (1996) 453). Third order proves less: a motion that
starts in a cusp, with x₁ = 0, is not seen (Connelly & Servatius, Discrete Comput. Geom. 11 (1994) 193).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.closure import CLOSED, Closure
from kic.kinematics import RowsQuestion
from kic.posture import advance, gaps

# how far neighbours are: radians, or shares of the characteristic length
NEARBY = 1e-2
# Newton's steps to the neighbours, which are close by
STEPS = 12
# an equation of second or third order is met if it misses by less, in units of the conditions' own curvature
MET = 1e-8
# starts of the search for a motion that extends, where it has several first-order freedoms to choose from
STARTS = 24
# corrections of the search for a proof that there is none
TRIES = 500


def beside(closure: Closure, state: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """Closed states (n, S) beside one (1, S), on the way of first-order motions (w, M); far ones left out."""
    t = closure.transfer
    step = ways * (NEARBY / np.abs(ways).max(axis=1, keepdims=True))
    states = start = advance(t.tree, state.repeat(len(step), axis=0), step * t.column_scale)
    # what the tolerance takes for redundant must not pull a neighbour back to where it comes from
    least = max(1e-10, 10 * t.tolerance)
    for _ in range(STEPS):
        missing, G = closure.rows(states)
        if np.abs(missing).max(initial=0.0) < CLOSED / 100:
            break
        step = np.einsum("bnp,bp->bn", np.linalg.pinv(G, rcond=least), -missing)
        states = advance(t.tree, states, step * t.column_scale)
    left = np.linalg.norm(closure.rows(states)[0], axis=1)
    # a posture that fell back to where it started is none beside it
    here = np.broadcast_to(state, states.shape)
    far, gone = (gaps(t.tree, here, x, t.column_scale).max(axis=1) for x in (start, states))
    return states[(left <= max(closure.limit, t.tolerance)) & (gone > far / 10) & (gone < 10 * far)]


@dataclass(frozen=True)
class Extension:
    """How far first-order motions extend.

    Attributes
    ----------
    order : {1, 2, 3}
        The highest order to which one was found that extends.
    certain : bool
        Whether it is certain that none extends further; of 3 nothing further was asked.
    """

    order: int
    certain: bool


def extension(closure: Closure, state: np.ndarray, first_order: int) -> Extension:
    """Highest order, 3 at most, to which a first-order motion extends at a closed state (1, S).

    Parameters
    ----------
    closure : Closure
        The conditions alone, without chosen rows.
    state : (1, S)
        The posture.
    first_order : int
        Freedoms that the conditions leave there to first order; at least one.

    Returns
    -------
    Extension
    """
    Q, C = obstructions(closure, state, first_order, 2)
    if len(Q) and not extends(Q, C, second=True):
        return Extension(1, first_order == 1 or definite(Q))
    Q, C = obstructions(closure, state, first_order, 3)
    if not len(Q) or extends(Q, C):
        return Extension(3, False)
    return Extension(2, first_order == 1)


def obstructions(
    closure: Closure, state: np.ndarray, first_order: int, order: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """What dependent conditions ask of a first-order motion: forms Q (s, k, k) and C (s, k, k, k).

    With a motion x₁ = K a and x₂ as the independent conditions have it, but for K b, they read
    Q(a, a) = 0 to second and C(a, a, a) + 3 Q(a, b) = 0 to third order. Both are symmetric; C is zero if
    only the second order is asked for.
    """
    t = closure.transfer
    question = RowsQuestion(t.tree, t.system.rows, order)
    _, G, H, *more = (x[0][t.system.picked] for x in question.answer.split(question.table(state), (1,)))
    scale, columns = t.scale, t.column_scale
    G = G / scale[:, None] * columns
    H = H / scale[:, None, None] * columns[:, None] * columns
    H = (H + np.swapaxes(H, 1, 2)) / 2
    rank = t.tree.size - first_order
    U, sigma, V = np.linalg.svd(G)
    K, W = V[rank:].T, U[:, rank:]
    inverse = V[:rank].T / sigma[:rank] @ U[:, :rank].T
    bent = np.einsum("pmn,ma,nb->pab", H, K, K)
    third = np.zeros((len(G), *(first_order,) * 3))
    for D in more:
        D = D / scale[:, None, None, None]
        along = K * columns[:, None]
        third = np.einsum("plmc,la,mb->pabc", D @ along, along, along, optimize=True)
        second = -np.einsum("np,pab->nab", inverse, bent)
        third += 3 * np.einsum("pmn,ma,nbc->pabc", H, K, second, optimize=True)
        turned = [np.transpose(third, (0, *p)) for p in ((1, 2, 3), (2, 3, 1), (3, 1, 2))]
        third = np.mean([*turned, *(np.swapaxes(x, 2, 3) for x in turned)], axis=0)
    # dependences that ask for nothing, such as those out of the plane of a planar loop, are left out
    Q, C = (np.tensordot(W.T, x, axes=1) for x in (bent, third))
    large = max(1.0, float(np.abs(bent).max(initial=0.0)))
    U, sizes, _ = np.linalg.svd(np.concatenate([x.reshape(len(Q), -1) for x in (Q, C)], axis=1))
    count = int((sizes > MET * large).sum())
    return tuple(np.tensordot(U.T[:count], x, axes=1) / large for x in (Q, C))  # type: ignore[return-value]


def extends(Q: np.ndarray, C: np.ndarray, second: bool = False) -> bool:
    """Whether a direction a with |a| = 1 was found that meets Q(a, a) = 0 and C(a, a, a) + 3 Q(a, b) = 0."""
    from scipy.optimize import least_squares

    k = Q.shape[1]
    if k == 1:  # b does not count, for Q(a, a) = 0
        return bool(np.abs(Q).max() < MET and np.abs(C).max() < MET)

    def missing(x: np.ndarray) -> np.ndarray:
        a, b = x[:k], x[k:]
        Qa = Q @ a
        rows = [[a @ a - 1], Qa @ a]
        return np.concatenate(rows if second else [*rows, C @ a @ a @ a + 3 * Qa @ b])

    def slope(x: np.ndarray) -> np.ndarray:
        a, b = x[:k], x[k:]
        Qa, none = Q @ a, np.zeros((len(Q), k))
        unit = np.concatenate([2 * a, 0 * b])[None]
        rows = [unit, np.concatenate([2 * Qa, none], axis=1)]
        third = np.concatenate([3 * (C @ a @ a) + 3 * Q @ b, 3 * Qa], axis=1)
        return np.concatenate(rows if second else [*rows, third])

    rng = np.random.default_rng(0)
    for _ in range(STARTS):
        a = rng.normal(size=k)
        start = np.concatenate([a / np.linalg.norm(a), np.zeros(k)])
        found = least_squares(missing, start, slope, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=300)
        if np.abs(missing(found.x)).max() < MET and np.abs(found.x).max() < 1 / np.sqrt(MET):
            return True
    return False


def definite(Q: np.ndarray) -> bool:
    """Whether some combination of forms Q (s, k, k) was found that is definite: they have no zero in common.

    Examples
    --------
    >>> import numpy as np
    >>> definite(np.array([np.diag([1.0, 0.0]), np.diag([-1.0, 1.0])]))
    True
    >>> definite(np.array([np.diag([1.0, -1.0])]))
    False
    """
    weights = np.zeros(len(Q))
    for _ in range(TRIES):  # a perceptron: each direction that is still negative adds its own values
        values, vectors = np.linalg.eigh(np.tensordot(weights, Q, axes=1))
        if values[0] > MET * np.abs(weights).max():
            return True
        weights = weights + np.einsum("sab,a,b->s", Q, vectors[:, 0], vectors[:, 0])
    return False
