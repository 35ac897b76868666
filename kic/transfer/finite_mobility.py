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
from itertools import pairwise

import numpy as np

from kic.kinematics.queries import OutputQuery
from kic.kinematics.state import difference, integrate
from kic.transfer.closure import CLOSURE_RTOL, Closure

# how far neighbours are: radians, or shares of the characteristic length
NEARBY = 1e-2
# Levenberg-Marquardt steps; at an infinitesimal freedom of order m they converge by 1 - 1/m each
STEPS = 60
LARGEST_STEP = 0.5
# Levenberg-Marquardt: damping as a multiple of the residual keeps the quadratic convergence
DAMPING = 1e-2
# singular values below this share are rounding error; those of infinitesimal freedoms shrink towards it
SMALLEST_SHARE = 1e-12
# steps that do not reduce a residual by 2 % in a row before it counts as a minimum
PATIENCE, STALLED = 5, 0.98
# residual of closed loops that is rounding error alone
ROUNDING = float(np.finfo(float).eps)
# steps along first-order motions, in radians or shares of the characteristic length; one is about `NEARBY`
RADII = 0.6 / 2.0 ** np.arange(8, -1, -1)
# those of a first look: one near, and the three largest
COARSE = [2, 5, 7, 8]
# radii at which closed configurations are sought without constraint, until some are found
SAMPLED = (0.5, 0.2, 0.05, NEARBY)
NEIGHBOURS = 4
# a walk along the range of motion: length and number of steps, and the least cosine between two of them
RANGE_STEP, RANGE_STEPS, RANGE_TURN = 0.1, 100, 0.3
# share of its first value below which the weakest kept condition tells a singular configuration
SINGULAR = 0.05
ACROSS = 0.5
# a residual that vanishes at one radius and not at the next would have to grow with at least this power
HIGHEST, BEYOND = 12, 0.02
# scatter of the fitted power of a residual
SLOPE_ATOL = 0.3
# residuals of rounded dimensions, in units of the tolerance
ROUNDED = 30
# chords of a finite curve at the smallest radii, and tangents that are independent
TURN_ATOL, INDEPENDENT = 1e-2, 0.1
# an equation of second or third order is met if it misses by less, in units of the conditions' own curvature
EXTENSION_TOL = 1e-8
# starts of the search for a motion that extends, where it has several first-order freedoms to choose from
STARTS = 24
# corrections of the search for a proof that there is none
TRIES = 500


def beside(closure: Closure, state: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """Return closed states (n, S) near a closed one (1, S), reached along first-order motions (w, M).

    Motions that lead to no closed state at a comparable distance are left out.
    """
    return _beside(closure, state, ways, NEARBY)


def _beside(closure: Closure, state: np.ndarray, ways: np.ndarray, radius: float) -> np.ndarray:
    states, residual = _closed(closure, state, ways, None, np.full(len(ways), radius))
    gone = np.linalg.norm(displacement(closure, state, states), axis=1)
    far = radius * np.linalg.norm(ways, axis=1) / np.abs(ways).max(axis=1)
    near = (gone > far / 10) & (gone < 10 * far)
    return states[near & (residual <= max(closure.limit, closure.transfer.tolerance))]


def _closed(
    closure: Closure, state: np.ndarray, ways: np.ndarray, pinned: np.ndarray | None, radii: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Step from a state (1, S) along scaled rates (B, M) and close the loops by Levenberg–Marquardt steps.

    The largest entry of each step is its radius (B,).

    Corrections are orthogonal to the orthonormal columns of `pinned` (M, p), so that the displacement in
    these directions persists.

    Returns
    -------
    states, residual : (B, S), (B,)
        The residual is the least that the corrections reach, relative to the characteristic length.
    """
    t = closure.transfer
    step = ways * (radii / np.abs(ways).max(axis=1))[:, None]
    states = integrate(t.tree, state.repeat(len(step), axis=0), step * t.column_scale)
    free = None if pinned is None else np.linalg.svd(pinned)[0][:, pinned.shape[1] :]
    # rows that the tolerance makes redundant must not pull a configuration back to the reference
    least = max(SMALLEST_SHARE, 10 * t.tolerance)
    missing, G = closure.rows(states)
    residual, damping = np.linalg.norm(missing, axis=1), np.full(len(states), DAMPING)
    idle = np.zeros(len(states), dtype=int)
    going = np.flatnonzero(np.isfinite(G).all(axis=(1, 2)) & (residual > ROUNDING))
    for _ in range(STEPS):
        if not going.size:
            break
        J = G[going] if free is None else G[going] @ free
        U, sigma, V = np.linalg.svd(J, full_matrices=False)
        short = (damping[going] * residual[going])[:, None]
        inverse = sigma / np.maximum(sigma**2 + short**2, ROUNDING**2)
        inverse[sigma <= least * sigma.max(axis=1, initial=0.0)[:, None]] = 0
        step = -np.einsum("bkn,bk->bn", V, inverse * np.einsum("bpk,bp->bk", U, missing[going]))
        step = step if free is None else step @ free.T
        step /= np.maximum(1.0, np.abs(step).max(axis=1, initial=0.0) / LARGEST_STEP)[:, None]
        tried = integrate(t.tree, states[going], step * t.column_scale)
        e, g = closure.rows(tried)
        left = np.linalg.norm(e, axis=1)
        better = (left < residual[going]) & np.isfinite(g).all(axis=(1, 2))
        idle[going] = np.where(better & (left < STALLED * residual[going]), 0, idle[going] + 1)
        k = going[better]
        states[k], missing[k], G[k], residual[k] = tried[better], e[better], g[better], left[better]
        damping[going] *= np.where(better, 0.1, 10.0)
        going = going[(residual[going] > ROUNDING) & (idle[going] < PATIENCE)]
    residual[~np.isfinite(residual)] = np.inf
    return states, residual


def displacement(closure: Closure, state: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return scaled displacements (B, M) from a state (1, S) to states (B, S)."""
    t = closure.transfer
    return difference(t.tree, np.broadcast_to(state, states.shape), states) / t.column_scale


def tangent_space(closure: Closure, state: np.ndarray, first_order: int) -> np.ndarray:
    """Return an orthonormal basis (M, k) of the first-order motions at a closed state (1, S)."""
    return np.linalg.svd(closure.rows(state)[1][0])[2][closure.transfer.tree.size - first_order :].T


def contact_order(radii: np.ndarray, residual: np.ndarray, limit: float, tolerance: float = 0.0) -> float:
    """Return the power of the radius with which a residual grows.

    Parameters
    ----------
    radii, residual : (n,)
        Radii in ascending order, and the least residual at each.
    limit : float
        Largest residual of a closed configuration, which is rounding error.
    tolerance : float
        Residual up to which rounded dimensions explain it.

    Returns
    -------
    float
        Infinite if the residual vanishes, or could do so only with a power above `HIGHEST`; an integer where
        a straight line fits its logarithms; NaN where neither is so.

    Examples
    --------
    >>> import numpy as np
    >>> s = 0.3 / 2.0 ** np.arange(7, -1, -1)
    >>> contact_order(s, 0.2 * s**4 * (1 + s), 1e-12)
    4.0
    >>> contact_order(s, 1e-15 * s, 1e-12)
    inf
    """
    floor = max(limit, ROUNDED * tolerance)
    above = residual > floor
    n = int(np.argmax(above)) if above.any() else len(radii)
    if n == len(radii):
        return np.inf
    # beyond the range of motion the residual is of second order at once
    jump = max(floor * (radii[n] / radii[n - 1]) ** HIGHEST, BEYOND * radii[n] ** 2) if n else np.inf
    if (residual[n:] > jump).all():
        return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.diff(np.log(residual[n:])) / np.diff(np.log(radii[n:]))
    for pair in pairwise(slopes):
        order = np.rint(pair[0])
        if np.isfinite(pair).all() and np.abs(pair - order).max() < SLOPE_ATOL and order >= 2:
            return float(order)
    # residuals of rounded dimensions follow no power of the radius
    return np.inf if tolerance and n and radii[n - 1] > NEARBY / 2 else np.nan


@dataclass(frozen=True, eq=False)
class FirstOrderMotion:
    """A direction of the tangent space at a closed configuration.

    Attributes
    ----------
    rates : (M,) ndarray
        Rates of the tree's coordinates, in their units; the scaled direction is a unit vector. Read-only.
    verdict : {"finite", "obstructed", "undecided"}
        Finite if the direction is the tangent of a curve of closed configurations. Obstructed if the loops
        open along it whatever the dependent coordinates do.
    order : int or None
        The power of the displacement with which an obstructed direction opens the loops; else None.
    """

    rates: np.ndarray
    verdict: str
    order: int | None = None

    def __post_init__(self) -> None:
        self.rates.flags.writeable = False


@dataclass(frozen=True, eq=False)
class LocalDimension:
    """Number of finite freedoms at a closed configuration.

    Attributes
    ----------
    dimension : int or None
        Dimension of the set of closed configurations at the state; None if it is undecided.
    states : (n, S) ndarray
        Closed states near the given one.
    motions : tuple of FirstOrderMotion
        Directions of the tangent space: those of finite curves found, then an orthonormal basis of the rest
        and one generic combination of all directions.
    """

    dimension: int | None
    states: np.ndarray
    motions: tuple[FirstOrderMotion, ...]


def is_regular(closure: Closure, state: np.ndarray, first_order: int) -> bool:
    """Return True if all first-order motions at a closed state (1, S) are found to be finite."""
    return _regular(_generic(closure, state, first_order, COARSE)[1])


def _generic(
    closure: Closure, state: np.ndarray, first_order: int, chosen: slice | list[int]
) -> tuple[np.ndarray, list[float]]:
    """Close the loops along generic directions with all tangential coordinates fixed; states and orders."""
    K = tangent_space(closure, state, first_order)
    a = np.array([[1.0], [-1.0]]) if first_order == 1 else _units(np.random.default_rng(0), first_order)
    states, residual = _rays(closure, state, a @ K.T, K, RADII[chosen])
    return states, _orders(closure, residual, RADII[chosen])


def _units(rng: np.random.Generator, size: int, count: int = NEIGHBOURS) -> np.ndarray:
    a = rng.normal(size=(count, size))
    return a / np.linalg.norm(a, axis=1, keepdims=True)


def _regular(orders: list[float]) -> bool:
    """Return True if generic directions are finite.

    With all tangential coordinates fixed the residual is an analytic function of these: if it vanishes along
    one generic direction at finite distance, it vanishes everywhere near the state. A direction may still
    leave the range of motion.
    """
    return bool(np.isinf(orders).any() and not np.isfinite(orders).any())


def local_dimension(closure: Closure, state: np.ndarray, first_order: int) -> LocalDimension:
    """Compute the number of finite freedoms at a closed state (1, S) by finite steps.

    The loops are closed by Newton's method from steps of several sizes along directions of the tangent space.
    First all tangential coordinates are fixed: if the loops close to rounding error along generic directions,
    every first-order motion is finite. The residual of an obstructed direction grows with an integer power of
    the step. If some directions are obstructed, closed configurations near the state are sought without
    constraint. The dimension of their set is the largest number of their tangential coordinates that can be
    fixed such that the loops close at all steps.
    """
    K, scale = tangent_space(closure, state, first_order), closure.transfer.column_scale
    states, orders = _generic(closure, state, first_order, COARSE)
    if _regular(orders):
        motions = tuple(FirstOrderMotion(x * scale, "finite") for x in K.T)
        return LocalDimension(first_order, states[np.isinf(orders), 0], motions)
    orders = _generic(closure, state, first_order, slice(None))[1]
    if first_order == 1:
        # a zero at the state alone: no curve can pass, not even one with a cusp
        only = _motion(closure, K[:, 0], orders)
        return LocalDimension(0 if only.order else None, state[:0], (only,))
    a = _units(np.random.default_rng(0), first_order)
    found = _samples(closure, state, K)
    moved = displacement(closure, state, found) @ K
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    dimension = None
    for d in range(first_order - 1 if len(found) else 0, 0, -1):
        F = np.linalg.svd(moved)[2][:d]
        # generic in F: those that lie near the set of closed configurations show nothing
        rng = np.random.default_rng(2)
        b = _units(rng, d) @ F
        # with nothing across F a start may lie half-way between two curves
        across = ACROSS * _units(rng, first_order) @ (np.eye(first_order) - F.T @ F)
        b = np.concatenate([b, -b, b + across, across - b])
        residual = _rays(closure, state, b @ K.T, K @ F.T, RADII)[1]
        found_orders = _orders(closure, residual, RADII)
        if np.isinf(found_orders).any():
            dimension = d
        # a smaller dimension counts only if the larger ones are shown to be obstructed
        if dimension or np.isfinite(found_orders).sum() < len(b) / 2:
            break
    tangents = _tangents(closure, state, K, moved) if dimension else np.zeros((0, first_order))
    rest = np.linalg.svd(tangents)[2][len(tangents) :] if len(tangents) else np.eye(first_order)
    ways = np.concatenate([rest, -rest, a[:1], -a[:1]])
    orders = _orders(closure, _rays(closure, state, ways @ K.T, K, RADII)[1], RADII)
    several = [FirstOrderMotion(K @ x * scale, "finite") for x in tangents]
    for k, x in enumerate(rest):
        several.append(_motion(closure, K @ x, [orders[k], orders[k + len(rest)]]))
    several.append(_motion(closure, K @ a[0], orders[-2:]))
    return LocalDimension(dimension, found, tuple(several))


def is_finite(closure: Closure, state: np.ndarray, way: np.ndarray) -> bool:
    """Return True if the loops close at all steps along a scaled direction (M,) or its opposite."""
    way = way / np.linalg.norm(way)
    residual = _rays(closure, state, np.stack([way, -way]), way[:, None], RADII)[1]
    return bool(np.isinf(_orders(closure, residual, RADII)).any())


def weakest_over_range(closure: Closure, state: np.ndarray, rank: int) -> tuple[float, float]:
    """Follow the motion that so many conditions leave, as far as it goes, and compare the others with them.

    Returns
    -------
    dropped, kept : float
        The most that the conditions beyond the rank are worth or missed by anywhere, and the least that those
        within it are worth, as shares of the strongest.
    """
    t = closure.transfer
    size = t.tree.size - rank
    rng = np.random.default_rng(0)
    dropped, kept = 0.0, 1.0
    start = t.shares(closure.rows(state)[1][0])[0][rank - 1]
    starts = [np.ones(1)] if size == 1 else list(_units(rng, size))
    for a in [x * sign for x in starts for sign in (1.0, -1.0)]:
        here, way = state, None
        for _ in range(RANGE_STEPS):
            values, G = (x[0] for x in closure.rows(here))
            shares, pivot = t.shares(G)
            rows = pivot[:rank]
            missed = np.linalg.norm(np.delete(values, rows))
            N = np.linalg.svd(G[rows])[2][rank:].T
            way = N @ a if way is None else N @ (N.T @ way)
            if missed > 1 or not np.linalg.norm(way) > RANGE_TURN:
                break
            if shares[rank - 1] < max(SINGULAR * start, 10 * shares[rank:].max(initial=0.0)):
                break  # other motions meet here, along which more conditions count
            dropped = max(dropped, missed, *shares[rank:])
            kept = min(kept, shares[rank - 1])
            way = way / np.abs(way).max()
            there = integrate(t.tree, here, (RANGE_STEP * way * t.column_scale)[None])
            for _ in range(8):
                values, G = (x[0] for x in closure.rows(there))
                if np.linalg.norm(values[rows]) < CLOSURE_RTOL:
                    break
                step = -np.linalg.pinv(G[rows], rcond=1e-10) @ values[rows]
                there = integrate(t.tree, there, (step * t.column_scale)[None])
            else:
                break
            here = there
    return dropped, kept


def _orders(closure: Closure, residual: np.ndarray, radii: np.ndarray) -> list[float]:
    t = closure.transfer
    floor = 64 * ROUNDING * np.sqrt(len(t.scale)) * closure.limit / CLOSURE_RTOL
    # a residual above that of a longer step is the noise of a degenerate solution
    longer = np.minimum(residual, np.roll(residual, -1, axis=1))
    longer[:, -1] = residual[:, -1]
    return [contact_order(radii, x, floor, t.tolerance) for x in longer]


def _rays(
    closure: Closure, state: np.ndarray, ways: np.ndarray, pinned: np.ndarray, radii: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return states (w, n, S) and residuals (w, n) along directions (w, M) at radii (n,)."""
    each = ways.repeat(len(radii), axis=0)
    states, residual = _closed(closure, state, each, pinned, np.tile(radii, len(ways)))
    return states.reshape(len(ways), len(radii), -1), residual.reshape(len(ways), -1)


def _samples(closure: Closure, state: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return closed states (n, S) near a state, found from generic steps without constraint."""
    a = _units(np.random.default_rng(1), K.shape[1], 2 * NEIGHBOURS + 2 * K.shape[1])
    for radius in SAMPLED:
        states = _beside(closure, state, a @ K.T, radius)
        if len(states):
            return states
    return state[:0]


def _tangents(closure: Closure, state: np.ndarray, K: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """Return independent unit tangents (n, k) of finite curves near directions (w, k)."""
    found = np.zeros((0, K.shape[1]))
    for along in ways @ K.T:
        states, residual = _rays(closure, state, along[None], along[:, None], RADII)
        if not np.isinf(_orders(closure, residual, RADII)).all():
            continue
        chords = displacement(closure, state, states[0]) @ K / RADII[:, None]
        size = np.linalg.norm(chords, axis=1, keepdims=True)
        if size.max() > 10 * size.min():
            continue
        unit = chords / size
        turned = np.linalg.norm(unit[1:3] - unit[0], axis=1)
        # a tangent is a limit: chords turn in proportion to the radius
        if turned[0] > 0.6 * turned[1] + TURN_ATOL:
            continue
        more = np.concatenate([found, unit[:1]])
        if len(more) <= len(K.T) and np.linalg.svd(more, compute_uv=False)[-1] > INDEPENDENT:
            found = more
    return found


def _motion(closure: Closure, way: np.ndarray, orders: list[float]) -> FirstOrderMotion:
    """Return a scaled direction (M,) with the verdict of the orders found along it."""
    rates = way * closure.transfer.column_scale
    if np.isinf(orders).all():
        return FirstOrderMotion(rates, "finite")
    if np.isnan(orders).any() or np.isinf(orders).any():
        return FirstOrderMotion(rates, "undecided")
    return FirstOrderMotion(rates, "obstructed", int(min(orders)))


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
    question = OutputQuery(t.tree, t.system.rows, order)
    _, G, H, *more = (x[0][t.system.picked] for x in question.layout.split(question.table(state), (1,)))
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
    count = int((sizes > EXTENSION_TOL * large).sum())
    return tuple(np.tensordot(U.T[:count], x, axes=1) / large for x in (Q, C))  # type: ignore[return-value]


def extends(Q: np.ndarray, C: np.ndarray, second: bool = False) -> bool:
    """Whether a direction a with |a| = 1 was found that meets Q(a, a) = 0 and C(a, a, a) + 3 Q(a, b) = 0."""
    from scipy.optimize import least_squares

    k = Q.shape[1]
    if k == 1:  # b does not count, for Q(a, a) = 0
        return bool(np.abs(Q).max() < EXTENSION_TOL and np.abs(C).max() < EXTENSION_TOL)

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
        if np.abs(missing(found.x)).max() < EXTENSION_TOL and np.abs(found.x).max() < 1 / np.sqrt(
            EXTENSION_TOL
        ):
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
        if values[0] > EXTENSION_TOL * np.abs(weights).max():
            return True
        weights = weights + np.einsum("sab,a,b->s", Q, vectors[:, 0], vectors[:, 0])
    return False
