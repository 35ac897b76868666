"""Polynomials of closed mechanisms with certified error bounds.

Let X(t) be a polynomial of the closed state on the box of the coordinates q, t from -1 to 1. The rows of the
loops and q, as functions of the state, are a square system r(x) = (0, q). On a cell of the box, interval
arithmetic encloses its Jacobian W on a tube of radius τ about X. With C, the inverse of its middle, and
|y| ≤ τ,

    y - C (r(X + y) - (0, q)) = -C (r(X) - (0, q)) + (I - C W) y .

If the right-hand side is inside the tube, each q of the cell has exactly one closed state in it (Krawczyk). X
is continuous, so that the states of all cells are one branch. They are within η of X; the third derivatives
of the rows are enclosed over these states. Values and two derivatives at its centre complete the Taylor
series, with all rounding errors, of the row less its polynomial. Loops that q does not move are at rest, and
are omitted unless the row depends on them.

The bounds are those of the recorded operations, with their constants as double numbers, and of the rows of
the loops that are independent at `near`. The other rows are redundant there and hold at all nodes; that they
hold in the whole box is an assumption. Errors of angles are known modulo full turns, hence below half a turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product as combinations
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from kic.description.units import row_unit
from kic.errors import InputError, SingularError, invalid
from kic.export.derivatives import system_parts
from kic.export.intervals import EPS, Functions, around, middle_and_radius, product, upward
from kic.export.questions import coefficients, export_traces
from kic.export.trace import Trace
from kic.kernels import layout as lay
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import integer, names_of, positive
from kic.numerics.arrays import grid_points
from kic.numerics.limits import bounds
from kic.numerics.polynomial_map import PolynomialMap, derived, evaluate

# radius of the tube (rad, shares of the length): closer singular states count as singular
_TUBE_RADIUS = 1e-3
# numbers of nodes by the number of coordinates, until coefficients fall below a share of the largest
_NODES = {1: (17, 33, 65, 129, 257), 2: (9, 17, 33, 65), 3: (9, 17, 25)}
_TAIL_RTOL = 1e-12
# target ratio of a bound to the largest error at samples; the share of values covers rounding
_MARGIN, _VALUE_SHARE = 1.25, 2e-11
# largest bound of an angle (rad), below half a turn
_ANGLE_ERROR_MAX = 3.0
# errors below these shares, of values and of `error_max`, are not resolved
_SMALL_ERROR, _ERROR_SHARE = 1e-9, 0.01
_SAMPLES = {1: 2001, 2: 161, 3: 41}
_CELLS = {1: 16, 2: 8, 3: 4}  # along an axis at first
_CELLS_MAX = 400_000
_CHUNK_NUMBERS = 4_000_000  # of nodes of a trace, or coefficients, times cells
_RETRACE_SHARE = 0.2  # of the first cells, below which pivots that vanish are replaced
_SMALL_SHARE = 0.1  # of the tube, by which the state changes in cells that need no subdivision to be regular


def certified_polynomials(
    m: Mechanism,
    near: Configuration | None,
    of: str | Iterable[str],
    wrt: Any,
    limits: Any,
    degree: int | None = None,
    error_max: float | None = None,
) -> PolynomialMap:
    """Return polynomials of rows `of`; see `ExportedMap.to_polynomial`."""
    if (degree is None) == (error_max is None):
        message = "Exactly one of `error_max` and `degree` must be given."
        raise InputError(message, key="error_max")
    box = box_of(m, wrt, limits)
    names, M, w = box.names, len(box.names), box.half
    if M not in _NODES:
        raise invalid("wrt", "must have at most 3 coordinates", M, "Lock others by lock().")
    states, values, rows = _sampled(m, near, names_of(of, least=1), box)
    angular = np.array([row_unit(m, row) == "rad" for row in rows])
    count = values.shape[1]
    wanted = np.where(angular, _ANGLE_ERROR_MAX, np.inf)
    if error_max is not None:
        wanted = np.minimum(wanted, positive("error_max", error_max))
    if degree is not None:
        chosen = min(integer("degree", degree, 1, _NODES[M][-1] - 1), count - 1)
    total = sum(np.indices(values.shape[1:]))
    basis = chebvander(np.linspace(-1, 1, _SAMPLES[M]), count - 1)
    size = np.maximum(1.0, np.abs(values).max(axis=tuple(range(1, M + 1))))
    for n in range(1, count) if degree is None else [chosen]:
        rest = np.where(total > n, values, 0)
        for _ in range(M):
            rest = np.tensordot(rest, basis, (1, 1))
        error = np.abs(rest).max(axis=tuple(range(1, M + 1)))
        goal = _MARGIN * error + _VALUE_SHARE * size
        if (goal <= wanted).all():
            break
    else:
        key, rule, got = "error_max", f"at least {goal.max():.2g} for polynomials of degree {n}", error_max
        if degree is not None:
            key, rule, got = "degree", f"larger for errors of angles below {_ANGLE_ERROR_MAX:g} rad", degree
        raise invalid(key, f"must be {rule}", got, "Reduce the box.")
    c = np.where(total > n, 0, values)[(slice(None), *[slice(n + 1)] * M)]
    floor = np.maximum(_SMALL_ERROR * size, 0 if error_max is None else _ERROR_SHARE * wanted)
    goal = np.maximum(goal, np.minimum(wanted, floor))
    bound, slope = _Problem(m, near, of, box, states, c, angular).bounds(goal)
    units = tuple(row_unit(m, row) for row in (*rows, *names))
    return PolynomialMap(m.name, rows, names, units, box.limits, c, bound, slope / w)


@dataclass(frozen=True)
class Box:
    """Coordinates with their limits."""

    names: tuple[str, ...]
    limits: np.ndarray  # (M, 2)

    @property
    def middle(self) -> np.ndarray:
        """Middle (M,) of the box."""
        return self.limits.sum(axis=1) / 2

    @property
    def half(self) -> np.ndarray:
        """Half widths (M,) of the box."""
        return np.diff(self.limits)[:, 0] / 2

    def closed(
        self, m: Mechanism, near: Configuration | None, of: tuple[str, ...], axes: list[np.ndarray]
    ) -> tuple[Configuration, Any]:
        """Return configurations (cells,) on a grid, and the coefficients of rows there."""
        grid = grid_points(dict(zip(self.names, axes, strict=True)))
        c = m.at(grid, near=near, failures="mask")
        if not c.ok.all():
            k = int(np.argmin(c.ok))
            place = {n: float(x[k]) for n, x in grid.items()}
            raise InputError(
                f"`limits` must be a box in which the loops of '{m.name}' close, got no configuration at "
                f"{_shown(place)}. Reduce the box, or give another `near`.",
                key="limits",
                values=place,
            )
        found = c.coefficients(of, wrt=self.names, order=1)
        if np.isnan(found.values).any():
            row = found.rows[int(np.isnan(found.values).any(axis=0).argmax())]
            raise invalid("of", "must be rows with a value", of, shown=f"'{row}', a rate", name=row)
        return c, found


def box_of(m: Mechanism, wrt: Any, limits: Any) -> Box:
    """Return the box of the coordinates."""
    names = model_of(m).transfer_for(wrt).labels
    lower, upper = bounds("limits", limits, names)
    for name, a, b in zip(names, lower, upper, strict=True):
        if not np.isfinite(b - a):
            raise invalid("limits", f"must have a lower and an upper limit of '{name}'", limits, name=name)
    return Box(names, np.stack([lower, upper], axis=1))


def _shown(place: dict[str, float]) -> str:
    return ", ".join(f"{name} = {x:.6g}" for name, x in place.items())


def _sampled(
    m: Mechanism, near: Configuration | None, of: tuple[str, ...], box: Box
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return Chebyshev coefficients of states (S, N, …) and of rows (P, N, …), and the names of the rows."""
    M, c = len(box.names), near
    for before, N in zip((0, *_NODES[M]), _NODES[M], strict=False):
        angles = np.pi * (np.arange(N) + 0.5) / N
        axes = [a + w * np.cos(angles) for a, w in zip(box.middle, box.half, strict=True)]
        if before:  # each node starts from the nearest one of the coarser grid
            assert c is not None  # for the type checker
            nearest = (2 * np.arange(N) + 1) * before // (2 * N)
            c = c[np.ravel_multi_index(np.ix_(*[nearest] * M), [before] * M).ravel()]
        c, found = box.closed(m, c, of, axes)
        values = np.concatenate([c.state, found.values], axis=1).reshape(*[N] * M, -1)
        S = c.state.shape[-1]
        for row in (S + k for k, row in enumerate(found.rows) if row_unit(m, row) == "rad"):
            for axis in range(M):  # angles of cuts are known modulo full turns
                values[..., row] = np.unwrap(values[..., row], axis=axis)
        transform = 2 / N * np.cos(np.outer(np.arange(N), angles))
        transform[0] /= 2
        for _ in range(M):  # each pass transforms the first axis and moves it behind the others
            values = np.moveaxis(np.tensordot(transform, values, (1, 0)), 0, M - 1)
        degree = np.max(np.indices([N] * M), axis=0)
        used = degree[np.abs(values).max(axis=-1) > _TAIL_RTOL * np.maximum(1, np.abs(values).max())].max()
        if used < N - 2:
            break
    coefficients = np.moveaxis(values, -1, 0)
    return coefficients[(slice(S), *[slice(used + 1)] * M)], coefficients[S:], found.rows


class _Polynomials:
    """Polynomials of t and their derivatives, with bounds of rounding errors and bounds on the box."""

    def __init__(self, coefficients: np.ndarray) -> None:
        self.M, self.size = coefficients.ndim - 1, coefficients[0].size
        # coefficients of all derivatives of an order, (P M^order, N, …), and sums of their sizes
        self._orders = [(coefficients, np.abs(coefficients))]
        # units of the recurrence, 3/2 k²; of the sum, one for each term; of each differentiation, 2 k
        self._share = (self.size + 8 * self.M * max(coefficients.shape[1:]) ** 2) * EPS

    def _order(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        while len(self._orders) <= order:
            c, sums = (
                np.stack([derived(c, k) for k in range(self.M)], 1).reshape(-1, *c.shape[1:])
                for c in self._orders[-1]
            )
            self._orders.append((c, sums))
        return self._orders[order]

    def at(self, t: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Return all derivatives (B, P, M, …) of an order, and their error bounds (P, M, …)."""
        found = evaluate(self._order(order)[0], t).reshape(len(t), -1, *[self.M] * order)
        return found, self._share * self.bound(order)

    def bound(self, order: int) -> np.ndarray:
        """Return bounds (P, M, …) of the derivatives on the box: Chebyshev polynomials are at most one."""
        sums = self._order(order)[1]
        return upward(sums.reshape(len(sums), -1).sum(axis=1)).reshape(-1, *[self.M] * order)


class _Problem:
    """Proof for one box, in the variable t = (q - middle) / half."""

    def __init__(
        self,
        m: Mechanism,
        near: Configuration | None,
        of: str | Iterable[str],
        box: Box,
        states: np.ndarray,
        values: np.ndarray,
        angular: np.ndarray,
    ) -> None:
        self.mechanism, self.near, self.of, self.angular = m, near, of, angular
        self.names, self.middle, self.half = box.names, box.middle, box.half
        self.states, self.p = states, _Polynomials(values)
        self.turning = np.array([row_unit(m, name) == "rad" for name in box.names])
        tree = model_of(m).tree
        self.tubes = np.full(len(states), _TUBE_RADIUS)
        for column in tree.cols:
            if column[lay.KIND] == lay.PRISMATIC:
                self.tubes[column[lay.STATE]] *= model_of(m).length

    def trace(self, t: np.ndarray) -> None:
        """Record the equations with pivots that are regular at t (M,)."""
        c = self.mechanism.at(dict(zip(self.names, self.middle + self.half * t, strict=True)), near=self.near)
        own = {"of": self.of, "order": 3, "wrt": self.names}
        e = export_traces(self.mechanism, coefficients, own, near=c, close="equations")
        assert e.answer is not None  # for the type checker
        self.entries, (self.rows, self.system, self.low, self.high) = system_parts(e.answer)
        self.X, self.tube = _Polynomials(self.states[self.entries]), self.tubes[self.entries]

    def bounds(self, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return error bounds of the rows (P,) and of their derivatives with respect to t (P, M).

        Raise an error if some bounds exceed the goal.
        """
        M = len(self.names)
        h = 1 / _CELLS[M]
        t = np.array(list(combinations(np.arange(h - 1, 1, 2 * h), repeat=M)))
        whole, slope, count = np.zeros(len(goal)), np.zeros((len(goal), M)), 0
        self.trace(np.zeros(M))
        numbers = max(self.X.size, *(part.width for part in (self.system, self.low, self.high)))
        chunk = max(16, _CHUNK_NUMBERS // numbers)
        while len(t):
            count += len(t)
            found = [self._cells(t[k : k + chunk], h) for k in range(0, len(t), chunk)]
            error, rate, closed, small = (np.concatenate(x) for x in zip(*found, strict=True))
            good = (error <= goal).all(axis=1)  # False for NaN
            whole = np.maximum(whole, error[good].max(axis=0, initial=0.0))
            slope = np.maximum(slope, rate[good].max(axis=0, initial=0.0))
            unknown = ~(error < np.inf).all(axis=1)
            pivots = closed & unknown
            if pivots.any() and h < _RETRACE_SHARE / _CELLS[M]:
                self.trace(t[int(pivots.argmax())])
            lost = small & unknown & ~closed
            if lost.any() or count > _CELLS_MAX:
                self._fail(t, error, goal, lost)
            steps = np.array(list(combinations((-h / 2, h / 2), repeat=M)))
            t, h = (t[~good, None] + steps).reshape(-1, M), h / 2
        return whole, slope

    def _fail(self, t: np.ndarray, error: np.ndarray, goal: np.ndarray, lost: np.ndarray) -> None:
        """Raise the error for cells that cannot be certified."""
        ratio = np.nan_to_num((error / goal).max(axis=1), nan=np.inf)
        k = int((lost if lost.any() else ratio).argmax())
        values = dict(zip(self.names, (self.middle + self.half * t[k]).tolist(), strict=True))
        if lost.any():
            raise SingularError(
                f"`limits` must be a box without singular configurations of '{self.mechanism.name}', got one "
                f"that has, or nearly has, a singular configuration at {_shown(values)}. Reduce the box.",
                key="limits",
                coordinates=self.names,
                values=values,
            )
        raise InputError(
            f"Errors of {goal.min():.2g} near {_shown(values)} require more than {_CELLS_MAX} cells of the "
            "box `limits`. Reduce the box.",
            key="limits",
            values=values,
        )

    def _run(self, trace: Trace, middle: np.ndarray, radius: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return middles and radii of the results for entries (B, S) of states."""
        x: list[Any] = [None] * len(self.states)
        for k, *pair in zip(self.entries, middle.T, np.broadcast_to(radius, middle.shape).T, strict=True):
            x[k] = around(*pair)
        found = trace.run(Functions, [x], large=True)
        made = []
        for out, entries in zip(trace.outputs, found, strict=True):
            made.append(tuple(a.reshape(-1, *out.shape) for a in middle_and_radius(entries, len(middle))))
        return made  # type: ignore[return-value]

    @np.errstate(all="ignore")
    def _cells(self, t: np.ndarray, h: float) -> tuple[np.ndarray, ...]:
        """Return error bounds of rows (B, P) and slopes (B, P, M) on cells t ± h; NaN if nothing is proved.

        Two masks follow: cells with one closed state in the tube, and cells much smaller than the tube.
        """
        x, x_error = self.X.at(t, 0)
        slope, slope_error = self.X.at(t, 1)
        curve = h * self.X.bound(2).sum(axis=2) + slope_error  # of the slopes in the cell, (S, M)
        reach = upward((np.abs(slope) + curve).sum(axis=2) * h + x_error)  # (B, S)
        # Krawczyk's test
        W, W_radius = self._run(self.system, x, reach + self.tube)[1]
        closed = np.isfinite(W_radius).all(axis=(1, 2))
        size = W.shape[-1]
        W = np.where(closed[:, None, None], W, np.eye(size))
        C = _inverse(W)
        one, one_radius = product(C, 0.0, W, W_radius)
        A = upward(np.abs(np.eye(size) - one) + one_radius + EPS)  # |I - C W|
        ((r, r_radius),) = self._run(self.rows, x, 0.0)[:1]
        q, M = self.middle + self.half * t, len(self.half)
        r[:, size - M :] -= q
        turns = 2 * np.pi * np.round(r[:, size - M :] / (2 * np.pi))
        r[:, size - M :] -= np.where(self.turning, turns, 0.0)
        r_radius[:, size - M :] += 8 * EPS * (np.abs(q) + np.abs(self.middle) + np.abs(turns) + 1)
        rate, rate_radius = product(W, W_radius, slope, np.broadcast_to(slope_error, slope.shape))
        rate[:, range(size - M, size), range(M)] -= self.half
        rate_radius += EPS * (np.abs(rate) + self.half)
        drift, drift_radius = product(C, 0.0, rate, rate_radius)
        grown = A + np.eye(size)
        off, off_radius = product(C, 0.0, r[..., None], r_radius[..., None])
        off, off_radius = off[..., 0], off_radius[..., 0]
        at_centre = np.abs(off) + off_radius
        moved = at_centre + grown @ x_error
        moved += (np.abs(drift) + drift_radius + grown @ curve).sum(axis=2) * h
        eta = upward(moved + A @ self.tube)
        closed &= (eta < self.tube).all(axis=1)
        centre = self.tube + x_error + np.zeros_like(eta)
        for _ in range(4):
            eta, centre = (
                upward(a + (A @ b[..., None])[..., 0]) for a, b in ((moved, eta), (at_centre, centre))
            )
        # about the centre after a Newton step
        radius = upward(off_radius + (A @ centre[..., None])[..., 0] + 2 * EPS * (np.abs(x) + np.abs(off)))
        small: Any = (reach < _SMALL_SHARE * self.tube).all(axis=1)
        shape = len(t), len(self.angular)
        total, rate = np.full(shape, np.nan), np.full((*shape, M), np.nan)
        if closed.any():  # the others are divided
            parts = (a[closed] for a in (t, x - off, radius, x, reach + eta))
            total[closed], rate[closed] = self._errors(h, *parts)
        return total, rate, closed, small

    def _errors(
        self,
        h: float,
        t: np.ndarray,
        x: np.ndarray,
        radius: np.ndarray,
        middle: np.ndarray,
        reach: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return error bounds of rows (B, P) and slopes (B, P, M) on cells t ± h, from their Taylor series.

        States are `x` within a radius at the centre, and `middle` within `reach` on the whole cell.
        """
        found = [*self._run(self.low, x, radius)[:3], *self._run(self.high, middle, reach)[:1]]
        e = []
        for order, (T, radius) in enumerate(found):
            for k in range(order):
                scale = self.half.reshape(-1, *[1] * (order - 1 - k))
                T, radius = T * scale, radius * scale
            p, rounding = self.p.at(t, order)
            radius = radius + rounding + 8 * EPS * (np.abs(T) + np.abs(p) + 1)
            error = T - p
            if order == 0:
                error -= np.where(self.angular, 2 * np.pi * np.round(error / (2 * np.pi)), 0.0)
            if order == 3:  # in the whole cell
                radius = radius + h * self.p.bound(4).sum(axis=-1)
            e.append((np.abs(error) + radius) * h**order)
        third = e[3].sum(axis=(-1, -2))
        rate = upward(e[1] + e[2].sum(axis=-1) + third / 2) / h
        return upward(e[0] + (e[1] + e[2].sum(axis=-1) / 2 + third / 6).sum(axis=-1)), rate


def _inverse(W: np.ndarray) -> np.ndarray:
    """Return approximate inverses of matrices; for singular matrices, the test fails later."""
    try:
        return np.linalg.inv(W)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(W)
