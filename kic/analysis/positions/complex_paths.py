"""Complex solutions of a position problem, and their paths as its values vary in the complex numbers.

Inputs are functions of complex parameters p, which move along straight lines. The parameter of an angle θ is
exp(iθ), so that a loop around zero is a full turn. Parameters of a pose are a point and an unnormalized
quaternion. The parameter of a distance is its square, and other lengths are parameters themselves.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from kic.analysis.positions.legs import Legs
from kic.errors import InputError
from kic.kernels import layout as lay
from kic.kernels import path_tracking as kernel
from kic.kernels.threads import over_batch
from kic.kinematics.state import integrate
from kic.numerics.gauss_newton import least_squares_step
from kic.numerics.linalg import condition_number
from kic.numerics.progress import Bar
from kic.transfer.closure import Closure
from kic.transfer.constraint_system import TIE_RTOL, elimination_order

# paths that are tracked before the time is checked, and estimated cost of one (µs)
PATHS_AT_ONCE, PATH_US = 128, 500.0
# residual of rows that a flip keeps
FLIP_ATOL = 1e-9
# entries of the first order at random configurations that are zero
ZERO_ATOL = 1e-10
# largest difference of equal solutions; steps from random states to closed ones, and such states
SAME_ATOL, START_STEPS_MAX, STARTS = 1e-6, 60, 16
# imaginary parts of real solutions (rad, lengths)
REAL_ATOL = 1e-7
# condition of regular solutions
REGULAR_CONDITION_MAX = 1e7
# residual of a solution (scaled rows); it grows with imaginary angles as squares of cosines do: largest
# logarithm
RESIDUAL_MAX, NOISE_MAX = 3e-13, 14.0
# residual of a solution of combined rows that does not satisfy all rows, at least
JUMP_RESIDUAL = 1e-3
# Newton steps that refine a solution; a step along a part of positive dimension (rad, lengths)
REFINING_STEPS, PART_STEP = 3, 1e-3
# share of a leg in a direction in which values barely determine a state, from which on it can move there
RELEASED_MIN = 1e-4
# condition on parts of positive dimension, and imaginary parts up to which they are recognized (rad, lengths)
MOVING_CONDITION_MIN, MOVING_IMAGINARY_MAX = 1e10, 8.0
# steps along them from farther states
NEARER_STEP, NEARER_STEPS_MAX = 0.25, 64


class Parameters:
    """Parameters p (B, n) of the chosen rows of a closure, in which all rows are analytic."""

    def __init__(self, closure: Closure, state: np.ndarray) -> None:
        self.closure = closure
        t = closure.transfer
        name = t.tree.description.name
        G = closure.rows(state)[1][0]
        # the rows that are linear in the coordinates: turns, slides, gears
        linear = closure.constant_rows
        turning = closure.turning
        ratios = G / t.column_scale
        ratios = np.abs(ratios) / np.abs(ratios).max(axis=1, keepdims=True, initial=1e-300)
        turns = linear & ~np.abs(G[:, ~turning]).any(axis=1)
        equal = (np.minimum(ratios, 1 - ratios) < 1e-9).all(axis=1)
        slides = linear & ~np.abs(G[:, turning]).any(axis=1)
        why = ""
        if t.tolerance:
            why = f"closure_tolerance = {t.tolerance:g} allows rounded dimensions"
        elif closure.turned or (t.system.levers[t.system.rows.item_of[t.system.picked]] >= 1e9).any():
            why = "a given angle is not a sum of tree coordinates"
        elif (t.system.rows.kinds == lay.NORM).any():
            why = "a distance is from a line, which has no paths of complex values"
        elif (linear & ~slides & ~(turns & equal)).any():
            why = "a coupling has a ratio other than 1, or couples rotations with translations"
        if why:
            raise InputError(
                f"`complete` must be False for '{name}' with these values: {why}. Use the random search.",
                key="complete",
                got=True,
            )
        named = min((row for _, row, _ in closure.held), default=t.size)
        self.turns = np.flatnonzero(turns)  # of all rows, closing couplings included
        self.angles = np.flatnonzero(turns[:named])
        kinds = t.system.rows.kinds[t.system.rows.item_of[t.system.picked[:named]]]
        self.distances = np.flatnonzero(kinds == lay.DISTANCE)
        self.named = named
        self.poses: list[tuple[int, int, int]] = []  # first row of the point, of the turn, first parameter
        at = named
        for _, row, turn in closure.held:
            self.poses.append((row, turn, at))
            at += turn - row + 4
        self.count = at
        self.scale = t.scale

    def of_values(self, values: np.ndarray) -> np.ndarray:
        """Return the parameters (B, n) of unscaled values (B, P) of the chosen rows."""
        p = np.zeros((len(values), self.count), complex)
        scaled = values / self.scale[: values.shape[1]]
        p[:, : self.named] = scaled[:, : self.named]
        p[:, self.distances] **= 2
        p[:, self.angles] = np.exp(1j * values[:, self.angles])
        for row, turn, at in self.poses:
            p[:, at : at + turn - row] = scaled[:, row:turn]
            R = values[:, turn : turn + 9].reshape(-1, 3, 3).swapaxes(1, 2)
            p[:, at + turn - row : at + turn - row + 4] = _quaternions(R)
        return p

    def random(
        self, like: np.ndarray, rng: np.random.Generator, count: int, spread: float = 1.0
    ) -> np.ndarray:
        """Return random complex parameters (count, n) about `like` (n,), at distances of many scales.

        Distances are log-normal with median 1, so that loops enclose branch points near and far. `spread` is
        the standard deviation of their logarithm. Poses of planar mechanisms stay in the plane.
        """
        x, y, size = rng.normal(size=(3, count, self.count))
        z = x + 1j * y
        far = np.exp(spread * size) * z / np.abs(z)
        p = like + far
        p[:, self.angles] = 1.5 * far[:, self.angles]  # real ones are on the unit circle
        normal = self.closure.transfer.tree.planar_normal
        for row, turn, at in self.poses:
            k = at + turn - row
            q = x[:, k : k + 4] + 1j * min(1.0, 2 * spread) * y[:, k : k + 4]
            if normal is not None:
                n, (w, *v) = normal[: k - at], like[k : k + 4]  # n is empty if only the orientation is given
                p[:, at:k] -= np.multiply.outer((p[:, at:k] - like[at:k]) @ n, n)
                about = [-normal @ v, *(w * normal + np.cross(normal, v))]
                q = q[:, :1] * like[k : k + 4] + q[:, 1:2] * about
            p[:, k : k + 4] = q
        return p

    def residual(self, p: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals (B, P) of all rows, and their derivatives in the scaled values."""
        left, slope = values.copy(), np.ones_like(values)
        left[:, self.distances] **= 2
        slope[:, self.distances] = 2 * values[:, self.distances]
        left[:, self.turns] = np.exp(1j * (values * self.scale)[:, self.turns])
        slope[:, self.turns] = 1j * left[:, self.turns] * self.scale[self.turns]
        left[:, self.turns[self.turns >= self.named]] -= 1
        left[:, : self.named] -= p[:, : self.named]
        for row, turn, at in self.poses:
            left[:, row:turn] -= p[:, at : at + turn - row]
            w, *v = p[:, at + turn - row : at + turn - row + 4].T
            square = w * w + sum(x * x for x in v)
            for i, j in np.ndindex(3, 3):  # by columns
                entry = 2 * v[i] * v[j]
                if i == j:
                    entry += 2 * w * w - square
                else:
                    entry += (2 if (j + 1) % 3 == i else -2) * w * v[3 - i - j]
                left[:, turn + 3 * j + i] -= entry / square / self.scale[turn + 3 * j + i]
        return left, slope

    def real(self, p: np.ndarray) -> np.ndarray:
        """Return real parameters (B, n) near given ones; parameters of angles are on the unit circle."""
        result = p.real.astype(complex)
        result[:, self.angles] = p[:, self.angles] / np.abs(p[:, self.angles])
        return result

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows (P, 4) of the equations and their scales (P, 2); see `kernels.path_tracking`."""
        system = self.closure.transfer.system
        rows, scales = np.full((len(self.scale), 4), kernel.ZERO), np.zeros((len(self.scale), 2))
        reference = np.zeros(system.rows.height)
        for row, drawn in system.rows.offsets:
            reference[row] += drawn
        rows[:, kernel.ROW], rows[:, kernel.PARAMETER] = system.picked, -1
        scales[:, 0], scales[:, 1] = self.scale, reference[system.picked]
        rows[: self.named, kernel.GOAL], rows[: self.named, kernel.PARAMETER] = (
            kernel.LINE,
            np.arange(self.named),
        )
        rows[self.turns, kernel.GOAL] = kernel.TURN
        rows[self.distances, kernel.GOAL] = kernel.SQUARE
        for row, turn, at in self.poses:
            rows[row:turn, kernel.GOAL], rows[row:turn, kernel.PARAMETER] = (
                kernel.LINE,
                np.arange(at, at + turn - row),
            )
            rows[turn : turn + 9, kernel.GOAL], rows[turn : turn + 9, kernel.PARAMETER] = (
                kernel.POSE,
                at + turn - row,
            )
            rows[turn : turn + 9, kernel.ENTRY] = np.arange(9)
        return rows, scales


def _quaternions(R: np.ndarray) -> np.ndarray:
    """Return unnormalized quaternions (B, 4) of complex rotation matrices (B, 3, 3)."""
    K = np.zeros((len(R), 4, 4), R.dtype)  # 4 q qᵀ
    trace = np.einsum("bii->b", R)
    K[:, 1:, 1:] = R + R.swapaxes(1, 2) + (1 - trace)[:, None, None] * np.eye(3)
    K[:, 0, 0] = 1 + trace
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        K[:, 0, 1 + k] = K[:, 1 + k, 0] = R[:, j, i] - R[:, i, j]
    largest = np.argmax(np.abs(np.einsum("bii->bi", K)), axis=1)
    return K[np.arange(len(R)), largest] / np.abs(K[np.arange(len(R)), largest, largest])[:, None] ** 0.5


def solved_rows(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve A x = v for linear rows A (L, M): return N (M, U) and E (M, L) of x = N y + E v, for any y (U,).

    The unknowns y are some of the entries of x. Rows that depend on earlier rows are omitted.
    """
    count, size = A.shape
    work, dependent = np.concatenate([A, np.eye(count)], axis=1), list[int]()
    kept = list[int]()
    for k, row in enumerate(work):
        entries = np.abs(row[:size])
        if entries.max(initial=0.0) < ZERO_ATOL:
            continue
        n = int(np.argmax(entries > entries.max() * (1 - TIE_RTOL)))  # the first of the largest
        row /= row[n]
        others = np.arange(count) != k
        work[others] -= np.outer(work[others, n], row)
        kept.append(k)
        dependent.append(n)
    work[np.abs(work) < ZERO_ATOL] = 0
    free = np.setdiff1d(np.arange(size), dependent)
    N, E = np.zeros((size, len(free))), np.zeros((size, count))
    N[free, np.arange(len(free))] = 1
    N[dependent], E[dependent] = -work[kept][:, free], work[kept][:, size:]
    return N, E


def _flipped(states: np.ndarray, flip: tuple[int, int, float]) -> np.ndarray:
    """Return states (B, S) with a universal joint turned over: angles a + π and c − b."""
    states, (a, b, c) = states.copy(), flip
    states[:, a], states[:, b] = states[:, a] + np.pi, c - states[:, b]
    return states


class Tracker:
    """Path tracker for complex solutions of the closure equations, with tests of the solutions."""

    def __init__(self, closure: Closure, state: np.ndarray, rng: np.random.Generator) -> None:
        self.closure, self.parameters = closure, Parameters(closure, state)
        t = closure.transfer
        self.tree = t.tree
        self._eliminate(state, rng)
        self.columns, self.entries = self.tree.single_columns
        self.turning = self.entries[t.tree.cols[self.columns, lay.KIND] == lay.REVOLUTE]
        self.sliding = self.entries[t.tree.cols[self.columns, lay.KIND] == lay.PRISMATIC]
        self.slide_scale = t.column_scale[self.columns[t.tree.cols[self.columns, lay.KIND] == lay.PRISMATIC]]
        self.flips: list[tuple[int, int, float]] = []
        self.legs = Legs(closure)
        self.deadline = np.inf
        self.bar: Bar | None = None  # that shows the paths of `track`

    def _eliminate(self, state: np.ndarray, rng: np.random.Generator) -> None:
        """Choose the equations and unknowns of paths, and eliminate linear rows."""
        t, (rows, scales) = self.closure.transfer, self.parameters.tables()
        x, y = rng.normal(size=(2, 2, state.size))
        G = self.closure.rows(state + x + 0.3j * y)[1]
        linear, zero = self.closure.constant_rows, (np.abs(G) < ZERO_ATOL).all(axis=(0, 2))
        zero[: t.size] = False
        curved, straight = np.flatnonzero(~linear & ~zero), np.flatnonzero(linear)
        N, E = solved_rows((G[0].real * t.scale[:, None] / t.column_scale)[straight])
        own = (G[0] / t.column_scale)[curved] @ N
        if len(curved) == N.shape[1]:
            mix = np.zeros(own.shape, complex)
            order, columns = elimination_order(np.abs(own))
            mix[np.arange(len(order)), order], N = 1, N[:, columns]
        else:
            parts = rng.normal(size=(2, *own.shape))
            mix = np.linalg.qr(parts[0] + 1j * parts[1])[0].conj().T
        self.mix = np.ascontiguousarray(mix / t.scale[curved])
        kept = np.concatenate([curved, straight])
        self.rows, self.scales = rows[kept], scales[kept]
        both = np.concatenate([N, np.zeros((len(N), len(curved))), E], axis=1)
        self.ties = np.ascontiguousarray(np.argwhere(both))
        self.ratios = both[*self.ties.T]
        starts = t.system.rows.items[:, lay.ROW]
        used = np.isin(starts, starts[t.system.rows.item_of[self.rows[:, kernel.ROW]]])
        self.used = np.flatnonzero(used)

    def moved(self, states: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return states (B, S) after scaled steps (B, M)."""
        return integrate(self.tree, states, steps * self.closure.transfer.column_scale)

    def track(
        self, states: np.ndarray, start: np.ndarray, end: np.ndarray, tightness: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Continue states (B, S) from parameters (B, n) to others; return states and completed shares (B,).

        The share is negative for paths that end at infinity.
        """
        t, dtype = self.closure.transfer, np.dtype(complex)
        query, size = t.own, self.tree.size
        states, start, change = (np.array(a, dtype, order="C") for a in (states, start, end - start))
        shares, numbers = np.full(len(states), np.nan), query.numbers_in(dtype)
        length = kernel.path_scratch(query.plan, len(self.rows), states.shape[1])

        def work(origin: int, first: int, last: int) -> None:
            first, last = origin + first, origin + last
            scratch, whole = np.zeros(length, dtype), np.zeros((2, size), np.int64)
            tables = self.used, self.rows, self.scales, self.mix, self.ties, self.ratios
            while first < last:
                part = slice(first, last)
                own = states[part], start[part], change[part], tightness, shares[part]
                # a distance may vanish by rounding, far from reality; the first path without a share is lost
                with suppress(ZeroDivisionError, ValueError):
                    kernel.path_tracking(query.plan, numbers, *tables, *own, scratch, whole)
                first += int(np.argmax(np.append(np.isnan(shares[part]), True))) + 1

        for first in range(0, len(states), PATHS_AT_ONCE):
            if time.monotonic() > self.deadline:
                raise TimeoutError
            if self.bar is not None:
                self.bar.show(first / len(states))
            count = min(PATHS_AT_ONCE, len(states) - first)
            over_batch(partial(work, first), count, PATH_US)
        shares[np.isnan(shares)] = 0.0
        k = np.flatnonzero(shares == 1)
        if self.mix.shape[0] < self.mix.shape[1] and k.size:
            # a path that jumped satisfies the combinations of rows, but not all rows
            shares[k[~(self.residual(states[k], end[k]) < JUMP_RESIDUAL)]] = kernel.ALMOST
        return states, shares

    def residual(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the norm (B,) of the residuals of scaled rows at states (B, S) for parameters (B, n)."""
        values = self.closure.rows(states)[0]
        with np.errstate(over="ignore", invalid="ignore"):  # of states far from reality
            return np.linalg.norm(self.parameters.residual(p, values)[0], axis=1)

    def refined(self, states: np.ndarray, p: np.ndarray, rcond: float = 1e-15) -> np.ndarray:
        """Return states (B, S) after Newton steps to parameters p (B, n).

        Singular values below the share `rcond` of the largest count as zero.
        """
        for _ in range(REFINING_STEPS):
            values, G = self.closure.rows(states)
            left, slope = self.parameters.residual(p, values)
            with np.errstate(all="ignore"):
                left /= slope
            fine = np.isfinite(G).all(axis=(1, 2)) & np.isfinite(left).all(axis=1)
            G[~fine], left[~fine] = 0, 0  # such states stay
            states = self.moved(states, least_squares_step(G, left, 0.0, rcond))
        return states

    def far_legs(self, states: np.ndarray) -> np.ndarray:
        """Return a mask (B, L) of legs near infinity."""
        size = np.zeros(states.shape)
        size[:, self.turning] = np.abs(states[:, self.turning].imag) / kernel.IMAGINARY_TURN_MAX
        size[:, self.sliding] = np.abs(states[:, self.sliding]) / self.slide_scale / kernel.SLIDE_MAX
        for _, quaternion in self.tree.ball_slices:
            size[:, quaternion] = np.abs(states[:, quaternion]) / kernel.QUATERNION_MAX
        return self.legs.largest(size, self.legs.of_entry) > 1

    def _normal(self, states: np.ndarray) -> np.ndarray:
        """Normalize the quaternions of ball joints in states, in place, and return the states."""
        for _, quaternion in self.tree.ball_slices:
            q = states[:, quaternion]
            states[:, quaternion] = q / np.sqrt(np.einsum("bi,bi->b", q, q))[:, None]
        return states

    def logarithms(self, points: np.ndarray) -> np.ndarray:
        """Return logarithms (T, B, n) of coordinates along paths (T, B, S): of turns, ball joints and slides.

        For an angle it is iθ. For a ball joint it is the logarithm of the component of the quaternion along
        the first quaternion; for a slide s, of s + i, which is not zero for real s.
        """
        parts = []
        for _, quaternion in self.tree.ball_slices:
            q = points[..., quaternion]
            parts.append(
                np.einsum("tbi,bi->tb", q, q[0].conj() / np.linalg.norm(q[0], axis=1)[:, None])[..., None]
            )
        z = np.concatenate([*parts, points[..., self.sliding] / self.slide_scale + 1j], axis=-1)
        z = np.log(np.abs(z)) + 1j * np.unwrap(np.angle(z), axis=0)
        return np.concatenate([1j * points[..., self.turning], z], axis=-1)

    def find_flips(self, states: np.ndarray) -> None:
        """Find half turns of universal joints that keep all rows, from random closed states (B, S).

        The axes of such a joint take the angles a + π and c − b in place of a and b. The body that it carries
        turns about a line through all its relevant points. The rows are linear in cos c and sin c. Joints
        that carry a ball joint are excluded: the ball joint can undo the turn, so the two solutions differ.
        """
        cols = self.tree.cols
        states = states[np.argsort(self.imaginary(states))[: STARTS // 4]]  # others are rounded more
        for n in range(1, len(cols)):
            a = int(cols[n, lay.PARENT])
            if a < 0 or {int(cols[n, lay.KIND]), int(cols[a, lay.KIND])} != {lay.REVOLUTE}:
                continue
            pair = int(cols[a, lay.STATE]), int(cols[n, lay.STATE])
            if {*pair} & {k for first, second, _ in self.flips for k in (first, second)}:
                continue
            at_0, at_quarter, at_half = (
                self.closure.rows(_flipped(states, (*pair, c)))[0].ravel() for c in (0.0, np.pi / 2, np.pi)
            )
            middle, wanted = (at_0 + at_half) / 2, self.closure.rows(states)[0].ravel()
            system = np.stack([(at_0 - at_half) / 2, at_quarter - middle], axis=-1)
            (x, y), *_ = np.linalg.lstsq(system, wanted - middle, rcond=None)
            left = np.abs(middle + system @ [x, y] - wanted).max()
            if left < FLIP_ATOL and abs(x.imag) + abs(y.imag) + abs(x * x + y * y - 1) < FLIP_ATOL:
                self.flips.append((*pair, float(np.arctan2(y.real, x.real))))

    def unwound(self, states: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Return real states (B, S) moved by full turns, so that given angles have their goals (B, P)."""
        rows, t = self.parameters.turns, self.closure.transfer
        if not rows.size or not len(states):
            return states
        from scipy.linalg import qr

        values, G = self.closure.rows(states)
        A = (G[0] / t.column_scale * t.scale[:, None])[rows]
        turns = np.round(((goal - values) * t.scale)[:, rows] / (2 * np.pi))
        pivots = qr(A, mode="r", pivoting=True)[1][: np.linalg.matrix_rank(A)]
        shift = np.zeros(G.shape[::2])
        shift[:, pivots] = 2 * np.pi * np.round(turns @ np.linalg.pinv(A[:, pivots]).T)
        return integrate(self.tree, states, shift)

    def canonical(self, states: np.ndarray) -> np.ndarray:
        """Return states (B, S) flipped so that the cosine of the first angle of each flip is not negative."""
        for flip in self.flips:
            other = np.cos(states[:, flip[0]].real) < 0
            states = np.where(other[:, None], _flipped(states, flip), states)
        return states

    def all_flips(self, states: np.ndarray) -> np.ndarray:
        """Return states (B · 2ᶠ, S) with each combination of the flips."""
        for flip in self.flips:
            states = np.concatenate([states, _flipped(states, flip)])
        return states

    def is_regular(self, states: np.ndarray, condition_max: float = REGULAR_CONDITION_MAX) -> np.ndarray:
        """Return a mask (B,) of states at which the rows are well-conditioned."""
        fine, regular = np.isfinite(states).all(axis=1), np.zeros(len(states), dtype=bool)
        regular[fine] = condition_number(self.closure.rows(states[fine])[1]) < condition_max
        return regular

    def released(self, states: np.ndarray) -> np.ndarray:
        """Return a mask (B, L + 1) of legs that can move to first order at fixed values; last for any leg."""
        legs, (s, V) = self.legs, np.linalg.svd(self.closure.rows(states)[1])[1:]
        free = np.ones(V.shape[:2], dtype=bool)
        free[:, : s.shape[1]] = s * REGULAR_CONDITION_MAX < s[:, :1]
        shares = legs.largest((np.abs(V) * free[..., None]).max(axis=1), legs.of_column)
        return np.column_stack([shares > RELEASED_MIN, free.any(axis=1)])

    def imaginary(self, states: np.ndarray) -> np.ndarray:
        """Return the largest imaginary part (B,) of states (rad, lengths)."""
        return self.imaginary_legs(states).max(axis=1)

    def imaginary_legs(self, states: np.ndarray) -> np.ndarray:
        """Return the largest imaginary part (B, L) of each leg (rad, lengths)."""
        scale = np.ones(states.shape[1])
        scale[self.sliding] = self.slide_scale
        return self.legs.largest(np.abs(states.imag / scale), self.legs.of_entry)

    def sampled(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return values (B, S) of random algebraic functions of the entries that full turns do not change."""
        c, turn, found = rng.normal(size=(3, states.shape[1])), states[:, self.turning], 0 * states
        found[:, self.turning] = np.cos(turn) * c[0, self.turning] + np.sin(turn) * c[1, self.turning]
        found[:, self.sliding] = states[:, self.sliding] / self.slide_scale * c[0, self.sliding]
        for _, quaternion in self.tree.ball_slices:
            q = states[:, quaternion]
            found[:, quaternion.start] = (q @ c[1, quaternion]) * (q @ c[2, quaternion])
        return found

    def embedded(self, states: np.ndarray) -> np.ndarray:
        """Return real numbers (B, D) that are equal for states equal modulo full turns and flips.

        Large slides and quaternions are on a logarithmic scale, because their rounding errors are relative.
        """
        states = self.canonical(states)
        turn, slide = states[:, self.turning], states[:, self.sliding] / self.slide_scale
        size = np.abs(slide)
        slide = slide * (np.log1p(size) / np.maximum(size, 1e-300))
        parts = [np.cos(turn.real), np.sin(turn.real), turn.imag, slide.real, slide.imag]
        for _, quaternion in self.tree.ball_slices:
            q = states[:, quaternion]
            length = np.linalg.norm(q, axis=1, keepdims=True)
            q = q / length
            qq = (q[:, :, None] * q[:, None, :])[:, *np.triu_indices(4)]
            parts += [qq.real, qq.imag, np.log(length)]
        return np.concatenate(parts, axis=1)

    @cached_property
    def _leg_of_point(self) -> np.ndarray:
        """Leg of each entry of `embedded`."""
        of = self.legs.of_entry
        balls = [np.repeat(of[quaternion.start], 21) for _, quaternion in self.tree.ball_slices]
        return np.concatenate([np.tile(of[self.turning], 3), np.tile(of[self.sliding], 2), *balls])

    def by_legs(self, states: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return numbers (B, n) that are equal in equal places of the platform, and a list of them by leg."""
        points, legs = self.embedded(states), self.legs
        places = points if legs.count == 1 else legs.poses(self.canonical(states))
        return places, [points[:, self._leg_of_point == j] for j in range(legs.count)]

    def distinct(self, states: np.ndarray) -> np.ndarray:
        """Return states (n, S) without repetitions."""
        from scipy.spatial import cKDTree

        if not len(states):
            return states
        pairs = cKDTree(self.embedded(states)).query_pairs(SAME_ATOL, output_type="ndarray")
        return np.delete(states, pairs[:, 1], axis=0)

    def random_closed(
        self, rng: np.random.Generator, count: int, near: np.ndarray, p: np.ndarray | None = None
    ) -> np.ndarray:
        """Return random complex states (n, S) with closed loops, at most `count`, by Gauss–Newton steps.

        If parameters p (1, n) are given, the states are solutions for them.
        """
        closure, tree = self.closure, self.tree
        z = rng.normal(size=(count, len(near))) + 1j * rng.normal(size=(count, len(near)))
        states = near + 0 * z
        states[:, self.turning] = rng.uniform(-np.pi, np.pi, (count, len(self.turning)))
        states[:, self.turning] += 0.3j * z[:, self.turning].imag
        states[:, self.sliding] += z[:, self.sliding] * self.slide_scale
        for _, quaternion in tree.ball_slices:
            states[:, quaternion] = z[:, quaternion]
        states, size = self._normal(states), closure.transfer.size
        left = np.full(count, np.inf)
        for _ in range(START_STEPS_MAX if closure.transfer.owners or p is not None else 0):
            values, G = closure.rows(states)
            if p is None:
                values, G = values[:, size:], G[:, size:]
            else:
                left, slope = self.parameters.residual(p, values)
                values = left / slope
            left = np.abs(values).max(axis=1)
            if (left < 1e-12).all():
                break
            fine = np.isfinite(G).all(axis=(1, 2)) & ~self.far_legs(states).any(axis=1)
            states, values, G = states[fine], values[fine], G[fine]
            if not len(states):
                break
            step = least_squares_step(G, values, 0.0, 1e-9)
            length = np.abs(step).max(axis=1, keepdims=True)
            states = self.moved(states, step / np.maximum(length, 1.0))
        if p is not None:
            states = states[self.solves(states, p)]
        elif closure.transfer.owners:
            left = np.abs(closure.rows(states)[0][:, size:]).max(axis=1, initial=0.0)
            states = states[left < 1e-10]
        return states[[not why for why in closure.flipped(states)]]

    def around(
        self, p: list[np.ndarray], states: np.ndarray, tightness: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Track states (B, S) along a polygon; return the ends and a mask of complete paths.

        A polygon of three corners leads to real parameters, and back with the conjugate solutions.
        """
        states, good = states.copy(), np.ones(len(states), dtype=bool)
        for n, (a, b) in enumerate(pairwise(p)):
            if n == 1 and len(p) == 3:
                states = states.conj()
            k = np.flatnonzero(good)
            start, end = (np.repeat(x, len(k), axis=0) for x in (a, b))
            states[k], share = self.track(states[k], start, end, tightness)
            good[k] = share == 1
        return states, good

    def meeting(self, ends: np.ndarray, good: np.ndarray, atol: float = SAME_ATOL) -> np.ndarray:
        """Return a mask (N, L + 1) of complete paths that end where another one does: one of them has jumped.

        Paths from different assembly modes of a leg in one place must not end in the same mode. The last
        column is for paths whose whole states meet.
        """
        from scipy.spatial import cKDTree

        legs = self.legs
        met, k = np.zeros((len(ends), legs.count + 1), dtype=bool), np.flatnonzero(good)
        if k.size:
            points = self.embedded(ends[k])
            for j in (*legs.several, legs.count):
                own = np.ones(len(k), dtype=bool) if j == legs.count else legs.own[k, j]
                seen = points[own]
                if j < legs.count:
                    seen = np.column_stack([seen[:, self._leg_of_point == j], legs.place[k[own]]])
                pairs = cKDTree(seen).query_pairs(atol, output_type="ndarray")
                met[k[own][pairs.ravel()], j] = True
        return met

    def solves(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return a mask of states (B, S) that satisfy the equations at parameters (B, n) to rounding."""
        left = self.residual(states, p)
        turn = np.abs(states[:, self.turning].imag).max(axis=1, initial=0.0)
        return left < RESIDUAL_MAX * np.exp(np.minimum(2 * turn, NOISE_MAX))

    def nearer(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return singular states (B, S) moved at fixed parameters (B, n) until imaginary parts are small."""
        states = states.copy()
        far = np.flatnonzero(self.imaginary(states) >= MOVING_IMAGINARY_MAX)
        for _ in range(NEARER_STEPS_MAX):
            if not far.size:
                break
            null = np.linalg.svd(self.closure.rows(states[far])[1])[2][:, -1].conj()
            ahead = self.moved(states[far], null) - states[far]
            # the complex multiple of it that lessens imaginary parts most
            A = np.stack([ahead.imag, ahead.real], axis=2)
            a = np.einsum("bik,bk->bi", np.linalg.pinv(A, PART_STEP), -states[far].imag) @ [1, 1j]
            step = a * np.minimum(NEARER_STEP / np.abs(a), 1.0)
            trial = self.refined(self.moved(states[far], step[:, None] * null), p[far], PART_STEP**2)
            closer = self.imaginary(trial) < self.imaginary(states[far]) - NEARER_STEP / 10
            closer &= np.abs(trial - states[far]).max(axis=1) < 2 * NEARER_STEP
            far, trial = far[closer], trial[closer]
            states[far] = trial
            far = far[self.imaginary(trial) >= MOVING_IMAGINARY_MAX]
        return states

    def moves(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return a mask (B, L) of legs of singular states that can move at fixed parameters (B, n).

        Near an isolated multiple solution, the residual grows with the square of a step. Legs are tested
        together, and each one alone. At far solutions rounding errors hide this growth, but the condition is
        smaller.
        """
        legs = self.legs
        moving = np.zeros((len(states), legs.count), dtype=bool)
        if not len(states):
            return moving
        G, near = self.closure.rows(states)[1], self.imaginary(states) < MOVING_IMAGINARY_MAX
        for leg in (-1, *range(legs.count if legs.count > 1 else 0)):
            columns = np.flatnonzero((legs.of_column == leg) | (leg < 0))
            null = np.zeros((len(states), G.shape[2]), complex)
            null[:, columns] = np.linalg.svd(G[..., columns])[2][:, -1].conj()
            trial = self.refined(self.moved(states, PART_STEP * null), p, PART_STEP**2)
            apart = legs.largest(np.abs(trial - states), legs.of_entry)
            singular = near & self.solves(trial, p) & ~self.is_regular(trial, MOVING_CONDITION_MIN)
            moving |= singular[:, None] & (apart > PART_STEP / 100)
        return moving
