"""Finite mobility: closed configurations near a given one, and the orders to which motions extend.

Where closure conditions depend on one another, a first-order motion may not be tangent to a finite one. Let
a motion be φ(t) = x₁ t + x₂ t²/2 + x₃ t³/6. With G, H and D the first, second and third order of the
conditions,

    G x₁ = 0        G x₂ + H(x₁, x₁) = 0        G x₃ + 3 H(x₁, x₂) + D(x₁, x₁, x₁) = 0

Every dependence W among the conditions, Wᵀ G = 0, gives an equation in x₁ and x₂ alone. If no x₁ satisfies
those of second order, the mechanism is rigid: the lowest power of t in any motion satisfies them (Connelly &
Whiteley, SIAM J. Discrete Math. 9 (1996) 453). Third order proves less: it does not exclude a motion that
starts in a cusp, with x₁ = 0 (Connelly & Servatius, Discrete Comput. Geom. 11 (1994) 193).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kic.kinematics.queries import output_query
from kic.kinematics.state import difference
from kic.numerics.gauss_newton import DAMPING_MIN, gauss_newton
from kic.numerics.tolerances import EPS
from kic.transfer.closure import LOOP_CLOSURE_RTOL, Closure
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.rank import first_order_dof

# distance of neighbours: radians, or shares of the characteristic length
NEIGHBOUR_RADIUS = 1e-2
# largest entry of one step: radians, or shares of the characteristic length
LM_STEP_MAX = 0.5
# share below which singular values are rounding error; those of infinitesimal motions shrink towards it
SINGULAR_VALUE_RTOL = 1e-12
# radii of steps along first-order motions (radians, shares of the characteristic length), one of them about
# NEIGHBOUR_RADIUS
RADII = 0.6 / 2.0 ** np.arange(8, -1, -1)
# indices of the radii of the first test: a small one and the three largest
COARSE_RADII = [2, 5, 7, 8]
# radii at which closed configurations are sought without constraint, until some are found
SAMPLE_RADII = (0.5, 0.2, 0.05, NEIGHBOUR_RADIUS)
# number of neighbours, and of generic directions
NEIGHBOURS = 4
# size of the component of starting directions outside the span of the samples
TRANSVERSAL_FACTOR = 0.5
# largest power with which a residual may grow between a radius where it vanishes and the next
ORDER_MAX = 12
# beyond the range of motion a residual is at least this multiple of the squared radius
RANGE_RESIDUAL_MIN = 0.02
# scatter of the fitted power of a residual
SLOPE_ATOL = 0.3
# residuals due to rounded dimensions, in units of the tolerance
ROUNDED_FACTOR = 30
# angle between the secants of a finite curve at the two smallest radii
TANGENT_ATOL = 1e-2
# smallest singular value of independent unit tangents
INDEPENDENCE_MIN = 0.1
# residual of a satisfied equation of second or third order, in units of the conditions' curvature
EXTENSION_TOL = 1e-8
# starts of the search for a motion that extends, for several first-order degrees of freedom
EXTENSION_STARTS = 24
# perceptron steps of the search for a definite form
DEFINITE_STEPS_MAX = 500


def closed_neighbours(
    closure: Closure, state: np.ndarray, directions: np.ndarray, radius: float = NEIGHBOUR_RADIUS
) -> np.ndarray:
    """Return closed states (n, S) near a closed state (1, S), reached along first-order motions (w, M).

    Motions without a closed state at a distance of the order of `radius` are left out.
    """
    states, residual = _close_loops(closure, state, directions, None, np.full(len(directions), radius))
    reached = np.linalg.norm(displacement(closure, state, states), axis=1)
    intended = radius * np.linalg.norm(directions, axis=1) / np.abs(directions).max(axis=1)
    comparable = (reached > intended / 10) & (reached < 10 * intended)
    return states[comparable & (residual <= max(closure.limit, closure.transfer.tolerance))]


def _close_loops(
    closure: Closure, state: np.ndarray, directions: np.ndarray, fixed: np.ndarray | None, radii: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Step from a state (1, S) along scaled rates (B, M) and close the loops by Levenberg–Marquardt steps.

    The largest entry of each step is its radius (B,). Corrections are orthogonal to the orthonormal columns
    of `fixed` (M, p), and the displacement in these directions persists.

    Returns
    -------
    states, residual : (B, S), (B,)
        The residual is the smallest that the corrections reach, relative to the characteristic length.
    """
    t = closure.transfer
    step = directions * (radii / np.abs(directions).max(axis=1))[:, None]
    free = np.eye(t.tree.size) if fixed is None else np.linalg.svd(fixed)[0][:, fixed.shape[1] :]

    def rows(states: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        error, G = closure.rows(states)
        return error, G @ free

    return gauss_newton(
        rows,
        lambda states, y: closure.moved(states, y @ free.T),
        closure.moved(state.repeat(len(step), axis=0), step),
        # rows that are redundant within the tolerance must not return a configuration to the reference
        rtol=max(SINGULAR_VALUE_RTOL, 10 * t.tolerance),
        step_max=LM_STEP_MAX,
        damping=DAMPING_MIN,
    )


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
        Radii in ascending order, and the smallest residual at each.
    limit : float
        Largest residual of a closed configuration, due to rounding error.
    tolerance : float
        Largest residual due to rounded dimensions.

    Returns
    -------
    float
        Infinite if the residual vanishes, or would have to grow with a power above `ORDER_MAX`. An integer if
        a straight line fits its logarithms; otherwise NaN.

    Examples
    --------
    >>> import numpy as np
    >>> s = 0.3 / 2.0 ** np.arange(7, -1, -1)
    >>> contact_order(s, 0.2 * s**4 * (1 + s), 1e-12)
    4.0
    >>> contact_order(s, 1e-15 * s, 1e-12)
    inf
    """
    floor = max(limit, ROUNDED_FACTOR * tolerance)
    exceeds = residual > floor
    n = int(np.argmax(exceeds)) if exceeds.any() else len(radii)
    if n == len(radii):
        return np.inf
    # beyond the range of motion the residual is of second order at once
    if n:
        steepest = floor * (radii[n] / radii[n - 1]) ** ORDER_MAX
        if (residual[n:] > max(steepest, RANGE_RESIDUAL_MIN * radii[n] ** 2)).all():
            return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.diff(np.log(residual[n:])) / np.diff(np.log(radii[n:]))
    for pair in pairwise(slopes):
        order = np.rint(pair[0])
        if np.isfinite(pair).all() and np.abs(pair - order).max() < SLOPE_ATOL and order >= 2:
            return float(order)
    # residuals of rounded dimensions follow no power of the radius
    return np.inf if tolerance and n and radii[n - 1] > NEIGHBOUR_RADIUS / 2 else np.nan


@dataclass(frozen=True, eq=False)
class FirstOrderMotion:
    """Direction of the tangent space at a closed configuration.

    Attributes
    ----------
    rates : (M,) ndarray
        Rates of the tree's coordinates, in their units; the scaled direction is a unit vector. Read-only.
    verdict : {"finite", "obstructed", "undecided"}
        Finite if the direction is the tangent of a curve of closed configurations. Obstructed if the loops
        open along it for every choice of the dependent coordinates.
    order : int or None
        Power of the displacement with which an obstructed direction opens the loops; else None.
    """

    rates: np.ndarray
    verdict: str
    order: int | None = None

    def __post_init__(self) -> None:
        self.rates.flags.writeable = False


@dataclass(frozen=True, eq=False)
class LocalDimension:
    """Number of finite degrees of freedom at a closed configuration.

    Attributes
    ----------
    dimension : int or None
        Dimension of the set of closed configurations at the state; None if it is undecided.
    states : (n, S) ndarray
        Closed states near the given one.
    motions : tuple of FirstOrderMotion
        Directions of the tangent space: tangents of finite curves, then an orthonormal basis of the rest and
        one generic combination of all directions.
    """

    dimension: int | None
    states: np.ndarray
    motions: tuple[FirstOrderMotion, ...]


def regular_dof(
    transfer: CoordinateTransfer, closure: Callable[[], Closure], state: np.ndarray
) -> int | None:
    """Return the degrees of freedom at one configuration (1, S), or None if it is singular.

    The transfer may be to any coordinates; `closure` returns the position problem without inputs. Where
    closure rows depend on one another, steps along generic first-order motions show if the rank is constant
    nearby. For a singular configuration see `Mechanism.mobility`.
    """
    count, certain = first_order_dof(transfer, state)
    if not certain:
        certain = _all_finite(_generic_orders(closure(), state, count, COARSE_RADII)[1])
    return count if certain else None


def _generic_orders(
    closure: Closure, state: np.ndarray, first_order: int, selected: slice | list[int]
) -> tuple[np.ndarray, list[float]]:
    """Close the loops along generic directions at fixed tangential coordinates; return states and orders."""
    K = tangent_space(closure, state, first_order)
    rng = np.random.default_rng(0)
    a = np.array([[1.0], [-1.0]]) if first_order == 1 else _unit_vectors(rng, first_order)
    states, residual = _rays(closure, state, a @ K.T, K, RADII[selected])
    return states, _residual_orders(closure, residual, RADII[selected])


def _unit_vectors(rng: np.random.Generator, size: int, count: int = NEIGHBOURS) -> np.ndarray:
    a = rng.normal(size=(count, size))
    return a / np.linalg.norm(a, axis=1, keepdims=True)


def _all_finite(orders: list[float]) -> bool:
    """Return True if the orders along generic directions show that all first-order motions are finite.

    The residual is an analytic function of the fixed tangential coordinates. If it vanishes along one generic
    direction at finite distance, it vanishes everywhere near the state. Other directions may still leave the
    range of motion.
    """
    return bool(np.isinf(orders).any() and not np.isfinite(orders).any())


def local_dimension(closure: Closure, state: np.ndarray, first_order: int) -> LocalDimension:
    """Compute the number of finite degrees of freedom at a closed state (1, S) by finite steps.

    The loops are closed by Levenberg–Marquardt steps from several radii along directions of the tangent
    space. First all tangential coordinates are fixed: if the loops close to rounding error along generic
    directions, every first-order motion is finite. The residual of an obstructed direction grows with an
    integer power of the radius. If some directions are obstructed, closed configurations near the state are
    sought without constraint. The dimension of their set is the largest number of tangential coordinates that
    can be fixed while the loops close at all radii.
    """
    K, scale = tangent_space(closure, state, first_order), closure.transfer.column_scale
    states, orders = _generic_orders(closure, state, first_order, COARSE_RADII)
    if _all_finite(orders):
        tangent_motions = tuple(FirstOrderMotion(x * scale, "finite") for x in K.T)
        return LocalDimension(first_order, states[np.isinf(orders), 0], tangent_motions)
    orders = _generic_orders(closure, state, first_order, slice(None))[1]
    if first_order == 1:
        # the residual vanishes only at the state: no curve passes through it, not even one with a cusp
        single = _judge_motion(closure, K[:, 0], orders)
        return LocalDimension(0 if single.order else None, state[:0], (single,))
    a = _unit_vectors(np.random.default_rng(0), first_order)
    found = _samples(closure, state, K)
    moved = displacement(closure, state, found) @ K
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    dimension = _finite_dimension(closure, state, K, moved) if len(found) else None
    tangents = np.zeros((0, first_order))
    if dimension:
        # samples may miss tangents: generic directions in their span are tried too
        span = np.linalg.svd(moved)[2][:dimension]
        generic = _unit_vectors(np.random.default_rng(3), dimension, 2 * NEIGHBOURS) @ span
        for directions in (moved, generic):
            if len(tangents) < dimension:
                tangents = _tangents(closure, state, K, directions, tangents)
    rest = np.linalg.svd(tangents)[2][len(tangents) :] if len(tangents) else np.eye(first_order)
    directions = np.concatenate([rest, -rest, a[:1], -a[:1]])
    orders = _residual_orders(closure, _rays(closure, state, directions @ K.T, K, RADII)[1], RADII)
    motions = [FirstOrderMotion(K @ x * scale, "finite") for x in tangents]
    for k, x in enumerate(rest):
        motions.append(_judge_motion(closure, K @ x, [orders[k], orders[k + len(rest)]]))
    motions.append(_judge_motion(closure, K @ a[0], orders[-2:]))
    # samples may miss finite directions, and the tangents of crossing curves span no finite set
    others = zip(rest, motions[len(tangents) : -1], strict=True)
    finite = [*tangents, *(x for x, made in others if made.verdict == "finite")]
    if dimension and dimension < len(finite) < first_order:
        F = np.linalg.svd(np.stack(finite))[2][: len(finite)]
        if np.isinf(_orders_within(closure, state, K, F)).any():
            dimension = len(finite)
    return LocalDimension(dimension, found, tuple(motions))


def _finite_dimension(closure: Closure, state: np.ndarray, K: np.ndarray, moved: np.ndarray) -> int | None:
    """Return the dimension of the set of closed states, or None, from directions (n, k) to samples of it."""
    for d in range(K.shape[1] - 1, 0, -1):
        found_orders = _orders_within(closure, state, K, np.linalg.svd(moved)[2][:d])
        if np.isinf(found_orders).any():
            return d
        # a smaller dimension counts only if the larger ones are shown to be obstructed
        if np.isfinite(found_orders).sum() < len(found_orders) / 2:
            return None
    return None


def _orders_within(closure: Closure, state: np.ndarray, K: np.ndarray, F: np.ndarray) -> list[float]:
    """Close the loops along generic directions with fixed coordinates in orthonormal F (d, k); return orders.

    Directions near the set of closed configurations would prove nothing.
    """
    rng, first_order = np.random.default_rng(2), K.shape[1]
    b = _unit_vectors(rng, len(F)) @ F
    # without a component outside the span of F a start may lie half-way between two curves
    transversal = TRANSVERSAL_FACTOR * _unit_vectors(rng, first_order) @ (np.eye(first_order) - F.T @ F)
    b = np.concatenate([b, -b, b + transversal, transversal - b])
    return _residual_orders(closure, _rays(closure, state, b @ K.T, K @ F.T, RADII)[1], RADII)


def is_finite(closure: Closure, state: np.ndarray, direction: np.ndarray) -> bool:
    """Return True if the loops close at all steps along a scaled direction (M,) or its opposite."""
    direction = direction / np.linalg.norm(direction)
    residual = _rays(closure, state, np.stack([direction, -direction]), direction[:, None], RADII)[1]
    return bool(np.isinf(_residual_orders(closure, residual, RADII)).any())


def _residual_orders(closure: Closure, residual: np.ndarray, radii: np.ndarray) -> list[float]:
    t = closure.transfer
    floor = 64 * EPS * np.sqrt(len(t.scale)) * closure.limit / LOOP_CLOSURE_RTOL
    # a residual above that of a longer step is the noise of a degenerate solution
    smoothed = np.minimum(residual, np.roll(residual, -1, axis=1))
    smoothed[:, -1] = residual[:, -1]
    return [contact_order(radii, x, floor, t.tolerance) for x in smoothed]


def _rays(
    closure: Closure, state: np.ndarray, directions: np.ndarray, fixed: np.ndarray, radii: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return states (w, n, S) and residuals (w, n) along directions (w, M) at radii (n,)."""
    repeated = directions.repeat(len(radii), axis=0)
    states, residual = _close_loops(closure, state, repeated, fixed, np.tile(radii, len(directions)))
    return states.reshape(len(directions), len(radii), -1), residual.reshape(len(directions), -1)


def _samples(closure: Closure, state: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return closed states (n, S) near a state, found from generic steps without constraint."""
    a = _unit_vectors(np.random.default_rng(1), K.shape[1], 2 * NEIGHBOURS + 2 * K.shape[1])
    for radius in SAMPLE_RADII:
        states = closed_neighbours(closure, state, a @ K.T, radius)
        if len(states):
            return states
    return state[:0]


def _tangents(
    closure: Closure, state: np.ndarray, K: np.ndarray, directions: np.ndarray, found: np.ndarray
) -> np.ndarray:
    """Extend independent unit tangents (n, k) of finite curves by new ones near directions (w, k)."""
    for direction in directions @ K.T:
        states, residual = _rays(closure, state, direction[None], direction[:, None], RADII)
        if not np.isinf(_residual_orders(closure, residual, RADII)).all():
            continue
        secants = displacement(closure, state, states[0]) @ K / RADII[:, None]
        size = np.linalg.norm(secants, axis=1, keepdims=True)
        if size.max() > 10 * size.min():
            continue
        unit = secants / size
        turned = np.linalg.norm(unit[1:3] - unit[0], axis=1)
        # a tangent is a limit: chords turn in proportion to the radius
        if turned[0] > 0.6 * turned[1] + TANGENT_ATOL:
            continue
        extended = np.concatenate([found, unit[:1]])
        if len(extended) <= len(K.T) and np.linalg.svd(extended, compute_uv=False)[-1] > INDEPENDENCE_MIN:
            found = extended
    return found


def _judge_motion(closure: Closure, direction: np.ndarray, orders: list[float]) -> FirstOrderMotion:
    """Return the motion along a scaled direction (M,), with a verdict from the orders along it."""
    rates = direction * closure.transfer.column_scale
    if np.isinf(orders).all():
        return FirstOrderMotion(rates, "finite")
    if np.isnan(orders).any() or np.isinf(orders).any():
        return FirstOrderMotion(rates, "undecided")
    return FirstOrderMotion(rates, "obstructed", int(min(orders)))


@dataclass(frozen=True)
class Extension:
    """Result of the search for first-order motions that extend to higher order.

    Attributes
    ----------
    order : {1, 2, 3}
        Highest order to which a motion was found to extend.
    is_certain : bool
        True if no motion is proved to extend further. Orders above 3 are not examined.
    """

    order: int
    is_certain: bool


def extension(closure: Closure, state: np.ndarray, first_order: int) -> Extension:
    """Return the highest order, at most 3, to which a first-order motion extends at a closed state (1, S).

    Parameters
    ----------
    closure : Closure
        Position problem of the conditions, without chosen rows.
    state : (1, S)
        The closed state.
    first_order : int
        Degrees of freedom to first order; at least one.

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
    """Return the equations of dependent conditions in a first-order motion: Q (s, k, k) and C (s, k, k, k).

    Let x₁ = K a, and let the independent conditions determine x₂ up to K b. The equations are Q(a, a) = 0 to
    second and C(a, a, a) + 3 Q(a, b) = 0 to third order, with symmetric forms. C is zero if `order` is 2.
    """
    t = closure.transfer
    question = output_query(t.tree, t.system.rows, order)
    _, G, H, *more = (x[0][t.system.picked] for x in question.arrays(state))
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
    # identities, such as the conditions out of the plane of a planar loop, are left out
    Q, C = (np.tensordot(W.T, x, axes=1) for x in (bent, third))
    large = max(1.0, float(np.abs(bent).max(initial=0.0)))
    forms = np.concatenate([x.reshape(len(Q), -1) for x in (Q, C)], axis=1)
    U, sizes, _ = np.linalg.svd(forms, full_matrices=False)
    count = int((sizes > EXTENSION_TOL * large).sum())
    return tuple(np.tensordot(U.T[:count], x, axes=1) / large for x in (Q, C))  # type: ignore[return-value]


def extends(Q: np.ndarray, C: np.ndarray, second: bool = False) -> bool:
    """Return True if a solution a, b with |a| = 1 of Q(a, a) = 0 and C(a, a, a) + 3 Q(a, b) = 0 is found.

    With `second`, only the first equation counts.
    """
    from scipy.optimize import least_squares

    k = Q.shape[1]
    if k == 1:  # b drops out, because Q(a, a) = 0
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
    for _ in range(EXTENSION_STARTS):
        a = rng.normal(size=k)
        start = np.concatenate([a / np.linalg.norm(a), np.zeros(k)])
        found = least_squares(missing, start, slope, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=300)
        if np.abs(missing(found.x)).max() < EXTENSION_TOL and np.abs(found.x).max() < 1 / np.sqrt(
            EXTENSION_TOL
        ):
            return True
    return False


def definite(Q: np.ndarray) -> bool:
    """Return True if a definite combination of forms Q (s, k, k) is found, so that they have no common zero.

    Examples
    --------
    >>> import numpy as np
    >>> definite(np.array([np.diag([1.0, 0.0]), np.diag([-1.0, 1.0])]))
    True
    >>> definite(np.array([np.diag([1.0, -1.0])]))
    False
    """
    weights = np.zeros(len(Q))
    for _ in range(DEFINITE_STEPS_MAX):  # perceptron: each direction that is still negative adds its values
        eigenvalues, eigenvectors = np.linalg.eigh(np.tensordot(weights, Q, axes=1))
        if eigenvalues[0] > EXTENSION_TOL * np.abs(weights).max():
            return True
        weights = weights + np.einsum("sab,a,b->s", Q, eigenvectors[:, 0], eigenvectors[:, 0])
    return False
