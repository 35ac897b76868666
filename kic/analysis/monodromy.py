"""Complex solutions of a position problem: monodromy, and parameter homotopies to further inputs.

The closure equations hold for complex coordinates, too. At random complex inputs u* all solutions are
regular. A loop of the inputs that returns to u* permutes them, and loops around branch points lead from one
solution to the others (Duff et al., "Solving polynomial systems via homotopy continuation and monodromy", IMA
Journal of Numerical Analysis 39, 2019, pp. 1421–1446). Paths from u* to wanted inputs lead to all isolated
solutions there; singular ones are limits of paths.

The inputs are functions of complex parameters p, along whose straight lines they move: a turn is
z = exp(iθ), so that a loop around z = 0 is a full turn; a pose is a point and a quaternion of any length; a
distance is its square; other lengths are themselves.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from kic.errors import InputError
from kic.kernels import layout as lay
from kic.kernels import path_tracking as kernel
from kic.kernels.threads import over_batch
from kic.kinematics.state import integrate
from kic.numerics.linalg import condition_number
from kic.numerics.progress import Bar
from kic.transfer.closure import Closure

# paths that are tracked before the time is looked at, and estimated cost of one (µs)
PATHS_AT_ONCE, PATH_US = 128, 500.0
# residual of rows that a flip keeps
FLIP_ATOL = 1e-9
# largest difference of equal solutions; steps from random states to closed ones, and such states
SAME_ATOL, START_STEPS_MAX, STARTS = 1e-6, 60, 16
# smallest difference of regular solutions that two attempts find
OTHER_ATOL = 1e-4
# imaginary parts of real solutions, and of real singular ones (rad, lengths); condition of regular ones
REAL_ATOL, SINGULAR_REAL_ATOL, REGULAR_CONDITION_MAX = 1e-7, 1e-4, 1e7
# imaginary parts of ends whose rounding errors are accepted
IMAGINARY_MIN = 1.0
# circles of the endgame as shares of the path; corners; turns, the largest multiplicity that is resolved
ENDGAME_RADII, ENDGAME_CORNERS, ENDGAME_TURNS_MAX = 10.0 ** -np.arange(2, 13, 2), 8, 8
# residual of an end (scaled rows); it grows with imaginary turns, as squares of cosines do: largest logarithm
ENDGAME_RESIDUAL_MAX, NOISE_MAX = 3e-13, 14.0
# distance of the ends of a closed path, as a share of its extent, and at least (rad, lengths)
CLOSED_RTOL, CLOSED_ATOL = 1e-3, 1e-9
# error of an estimate of two close solutions as a share of their halved difference; steps that refine it
PAIR_RTOL, REFINING_STEPS = 0.1, 3
# step along a part of positive dimension (rad, lengths)
PART_STEP = 1e-3
# ways to given values that are tried: the straight one, and detours
ATTEMPTS = 8
# solutions for whose loops more corners are worth their time
FEW_STATES_MAX = 18
# trace test: points on a line, and states at most; degree; errors of the trace, and of that of all but one
TRACE_POINTS, TRACE_STATES_MAX, TRACE_DEGREE_MAX = 72, 3_000, 12
TRACE_RTOL, TRACE_CONTROL_RTOL = 1e-9, 1e-6
# loops without a new solution: at least, at most; all loops; the estimated chance below which they end
LOOPS_MIN, LOOPS_MAX, LOOPS_ALL_MAX, CHANCE_MAX = 6, 40, 100, 1e-4
# loops in a row that lose paths and find nothing new, after which another base is chosen
STUCK_LOOPS_MAX = 8

# solutions are kept with the mechanism; one thread at a time adds to them
_COLLECTING = threading.Lock()


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
        elif closure._round or (t.system.levers[t.system.rows.item_of[t.system.picked]] >= 1e9).any():
            why = "an angle that is no sum of the tree's coordinates is given"
        elif (linear & ~slides & ~(turns & equal)).any():
            why = "a coupling has a ratio other than 1, or connects turns with slides"
        if why:
            raise InputError(
                f"`complete` must be False for '{name}' with these values: {why}, so that the solutions are "
                "not those of algebraic equations. Use the random search.",
                key="complete",
                got=True,
            )
        named = min((row for _, row, _ in closure.held), default=t.size)
        self.turns = np.flatnonzero(turns)  # of all rows, closing couplings included
        self.angles = np.flatnonzero(turns[:named])
        kinds = [t.system.rows.source[i].kind for i in t.system.rows.item_of[t.system.picked[:named]]]
        self.distances = np.array([k for k, kind in enumerate(kinds) if kind == lay.DISTANCE], dtype=int)
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
        """Return random complex parameters (count, n) about some (n,), at distances of many scales.

        Loops must enclose branch points near and far. The distances are log-normal with the median 1, and
        `spread` is the standard deviation of their logarithm.
        """
        x, y, size = rng.normal(size=(3, count, self.count))
        z = x + 1j * y
        far = np.exp(spread * size) * z / np.abs(z)
        p = like + far
        p[:, self.angles] = 1.5 * far[:, self.angles]  # real ones are on the unit circle
        for row, turn, at in self.poses:
            k = slice(at + turn - row, at + turn - row + 4)
            p[:, k] = x[:, k] + 1j * min(1.0, 2 * spread) * y[:, k]
        return p

    def residual(self, p: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals (B, P) of scaled values of all rows, and their slopes."""
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
        """Return real parameters (B, n) near others; those of turns are on the unit circle."""
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
    """Return quaternions (B, 4) of complex rotation matrices (B, 3, 3); their length is any."""
    K = np.zeros((len(R), 4, 4), R.dtype)  # 4 q qᵀ
    trace = np.einsum("bii->b", R)
    K[:, 1:, 1:] = R + R.swapaxes(1, 2) + (1 - trace)[:, None, None] * np.eye(3)
    K[:, 0, 0] = 1 + trace
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        K[:, 0, 1 + k] = K[:, 1 + k, 0] = R[:, j, i] - R[:, i, j]
    largest = np.argmax(np.abs(np.einsum("bii->bi", K)), axis=1)
    return K[np.arange(len(R)), largest] / np.abs(K[np.arange(len(R)), largest, largest])[:, None] ** 0.5


def _flipped(states: np.ndarray, flip: tuple[int, int, float]) -> np.ndarray:
    """Return states (B, S) with a universal joint turned over: angles a + π and c − b."""
    states, (a, b, c) = states.copy(), flip
    states[:, a], states[:, b] = states[:, a] + np.pi, c - states[:, b]
    return states


class Tracker:
    """Paths of the complex solutions of a closure, and what is asked about such solutions."""

    def __init__(self, closure: Closure, state: np.ndarray, rng: np.random.Generator) -> None:
        self.closure, self.parameters = closure, Parameters(closure, state)
        t = closure.transfer
        self.tree, size = t.tree, len(t.scale)
        self.rows, self.scales = self.parameters.tables()
        mix = np.eye(size, dtype=complex)
        if size != t.tree.size:
            shape = size, t.tree.size
            mix = np.linalg.qr(rng.normal(size=shape) + 1j * rng.normal(size=shape))[0].conj().T
        self.mix = np.ascontiguousarray(mix / t.scale)
        self.columns, self.entries = self.tree.single_columns
        self.turning = self.entries[t.tree.cols[self.columns, lay.KIND] == lay.REVOLUTE]
        self.sliding = self.entries[t.tree.cols[self.columns, lay.KIND] == lay.PRISMATIC]
        self.slide_scale = t.column_scale[self.columns[t.tree.cols[self.columns, lay.KIND] == lay.PRISMATIC]]
        self.flips: list[tuple[int, int, float]] = []
        self.deadline = np.inf
        self.bar: Bar | None = None  # that shows the paths of `track`

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
        query, size = t._own, self.tree.size
        states, start, change = (np.array(a, dtype, order="C") for a in (states, start, end - start))
        shares, numbers = np.zeros(len(states)), query.numbers_in(dtype)
        length = kernel.path_scratch(query.plan, len(self.rows), states.shape[1])

        def work(origin: int, first: int, last: int) -> None:
            part = slice(origin + first, origin + last)
            scratch, whole = np.zeros(length, dtype), np.zeros((2, size), np.int64)
            own = states[part], start[part], change[part], tightness, shares[part]
            kernel.path_tracking(query.plan, numbers, self.rows, self.scales, self.mix, *own, scratch, whole)

        for first in range(0, len(states), PATHS_AT_ONCE):
            if time.monotonic() > self.deadline:
                raise TimeoutError
            if self.bar is not None:
                self.bar.show(first / len(states))
            count = min(PATHS_AT_ONCE, len(states) - first)
            over_batch(partial(work, first), count, PATH_US)
        return states, shares

    def residual(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the norm (B,) of the residuals of scaled rows at states (B, S) for parameters (B, n)."""
        values = self.closure.rows(states)[0]
        return np.linalg.norm(self.parameters.residual(p, values)[0], axis=1)

    def refined(self, states: np.ndarray, p: np.ndarray, rcond: float = 1e-15) -> np.ndarray:
        """Return states (B, S) after Newton steps to parameters p (B, n).

        Singular values below the share `rcond` of the largest are zero.
        """
        for _ in range(REFINING_STEPS):
            values, G = self.closure.rows(states)
            left, slope = self.parameters.residual(p, values)
            G[~np.isfinite(G).all(axis=(1, 2))] = 0
            states = self.moved(states, -(np.linalg.pinv(G, rcond=rcond) @ (left / slope)[..., None])[..., 0])
        return states

    def _far(self, states: np.ndarray) -> np.ndarray:
        """Return a mask (B,) of states near infinity."""
        turn = np.abs(states[:, self.turning].imag).max(axis=1, initial=0.0)
        slide = (np.abs(states[:, self.sliding]) / self.slide_scale).max(axis=1, initial=0.0)
        far: np.ndarray = (turn > kernel.IMAGINARY_TURN_MAX) | (slide > kernel.SLIDE_MAX)
        for _, quaternion in self.tree.ball_slices:
            far |= np.abs(states[:, quaternion]).max(axis=1) > kernel.QUATERNION_MAX
        return far

    def _normal(self, states: np.ndarray) -> np.ndarray:
        """Return states with unit quaternions of ball joints."""
        for _, quaternion in self.tree.ball_slices:
            q = states[:, quaternion]
            states[:, quaternion] = q / np.sqrt(np.einsum("bi,bi->b", q, q))[:, None]
        return states

    def find_flips(self, states: np.ndarray) -> None:
        """Find half turns of universal joints that keep all rows, from random closed states (B, S).

        The axes of such a joint take the angles a + π and c − b in place of a and b, and the body that it
        carries turns about a line of its own, on which lie all points that matter. The rows are linear in
        cos c and sin c. A joint that carries a ball joint of the tree is no such one: the ball joint turns
        back. Its two ways are separate solutions here.
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

    def _canonical(self, states: np.ndarray) -> np.ndarray:
        """Return states (B, S) with the first angle of each flip in the half turn about zero."""
        for flip in self.flips:
            other = np.cos(states[:, flip[0]].real) < 0
            states = np.where(other[:, None], _flipped(states, flip), states)
        return states

    def all_flips(self, states: np.ndarray) -> np.ndarray:
        """Return states (B · 2ᶠ, S) with each combination of the flips."""
        for flip in self.flips:
            states = np.concatenate([states, _flipped(states, flip)])
        return states

    def is_regular(self, states: np.ndarray) -> np.ndarray:
        """Return a mask (B,) of states that the rows determine well."""
        fine, regular = np.isfinite(states).all(axis=1), np.zeros(len(states), dtype=bool)
        regular[fine] = condition_number(self.closure.rows(states[fine])[1]) < REGULAR_CONDITION_MAX
        return regular

    def imaginary(self, states: np.ndarray) -> np.ndarray:
        """Return the largest imaginary part (B,) of states: rad, lengths."""
        scale = np.ones(states.shape[1])
        scale[self.sliding] = self.slide_scale
        return np.abs(states.imag / scale).max(axis=1, initial=0.0)

    def sampled(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a random algebraic function (B,) of states that does not change with full turns."""
        c, turn = rng.normal(size=(3, states.shape[1])), states[:, self.turning]
        sums = np.cos(turn) @ c[0, self.turning] + np.sin(turn) @ c[1, self.turning]
        sums = sums + (states[:, self.sliding] / self.slide_scale) @ c[0, self.sliding]
        for _, quaternion in self.tree.ball_slices:
            q = states[:, quaternion]
            sums += (q @ c[1, quaternion]) * (q @ c[2, quaternion])
        return sums

    def embedded(self, states: np.ndarray) -> np.ndarray:
        """Return real numbers (B, D) that are equal for states equal modulo full turns and flips.

        Large slides and quaternions are on a logarithmic scale, because their rounding errors are relative.
        """
        states = self._canonical(states)
        turn, slide = states[:, self.turning], states[:, self.sliding] / self.slide_scale
        size = np.abs(slide)
        slide = slide * np.log1p(size) / np.where(size > 0, size, 1.0)
        parts = [np.cos(turn.real), np.sin(turn.real), turn.imag, slide.real, slide.imag]
        for _, quaternion in self.tree.ball_slices:
            q = states[:, quaternion]
            length = np.linalg.norm(q, axis=1, keepdims=True)
            q = q / length
            qq = (q[:, :, None] * q[:, None, :])[:, *np.triu_indices(4)]
            parts += [qq.real, qq.imag, np.log(length)]
        return np.concatenate(parts, axis=1)

    def random_closed(self, rng: np.random.Generator, count: int, near: np.ndarray) -> np.ndarray:
        """Return random complex states (n, S) with closed loops, at most `count`, by Gauss–Newton steps."""
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
        for _ in range(START_STEPS_MAX if closure.transfer.owners else 0):
            values, G = closure.rows(states)
            values, G = values[:, size:], G[:, size:]
            left = np.abs(values).max(axis=1)
            if (left < 1e-12).all():
                break
            fine = np.isfinite(G).all(axis=(1, 2)) & (self._far(states) == 0)
            states, values, G = states[fine], values[fine], G[fine]
            if not len(states):
                break
            step = -(np.linalg.pinv(G, rcond=1e-9) @ values[..., None])[..., 0]
            length = np.abs(step).max(axis=1, keepdims=True)
            states = self.moved(states, step / np.maximum(length, 1.0))
        if closure.transfer.owners:
            left = np.abs(closure.rows(states)[0][:, size:]).max(axis=1, initial=0.0)
            states = states[left < 1e-10]
        return states[[not why for why in closure.flipped(states)]]


def proven_number(closure: Closure) -> tuple[int, str] | None:
    """Return the proven largest number of isolated complex solutions, with its source, if it is known."""
    t = closure.transfer
    tree, named = t.tree, t.size
    kinds = tree.cols[:, lay.KIND]
    items = [t.system.rows.source[i] for i in t.system.rows.item_of[t.system.picked]]
    if not t.owners and not closure.held and all(item.kind == lay.COORDINATE for item in items):
        return 1, "the values are those of all coordinates"
    if not t.owners and len(closure.held) == 1 and closure.turns[0] - closure.held[0][1] == 3 and named == 12:
        (row,) = {item.frame_b for item in items}
        path = tree.path(row)
        if len(path) == len(kinds) == 6 and (kinds == lay.REVOLUTE).all():
            return (
                16,
                "six revolute joints in series: E. J. F. Primrose, 1986; H.-Y. Lee and C.-G. Liang, 1988",
            )
    free = len(kinds) == len(items) == 6 and len(tree.balls) == 1 and not t.owners
    pairs = {frozenset((item.frame_a, item.frame_b)) for item in items}
    if free and {item.kind for item in items} == {lay.DISTANCE} and len(pairs) == 1:
        return 40, "six distances of two bodies: F. Ronga and T. Vust, 1992; C. W. Wampler, 1996"
    return None


@dataclass
class Ends:
    """Ends of the paths from generic inputs to the wanted inputs of B members.

    Attributes
    ----------
    states, owner : (n, S), (n,)
        Real states near which paths end, and their members.
    complex, infinite, lost : (B,) int
        Number of paths that end in finite solutions, at infinity, and before their end.
    off : float
        Smallest imaginary part where a path was lost: of its largest coordinate (rad, lengths).
    moving : (n,) bool
        True for states near parts of positive dimension. They are real parts of complex states.
    on_parts : (B,) int
        Number of paths that end on parts of positive dimension.
    """

    states: np.ndarray
    owner: np.ndarray
    complex: np.ndarray
    infinite: np.ndarray
    lost: np.ndarray
    off: float
    moving: np.ndarray
    on_parts: np.ndarray


class GenericSolutions:
    """The solutions of a closure's equations at random complex inputs, as far as they are found.

    Attributes
    ----------
    states : (N, S)
        Distinct solutions at the parameters `base`.
    loops, clean, polygons : int
        Loops tracked; the last ones, without a lost path, that found nothing new; the polygons of these.
    new, stuck : int
        Number of solutions that the last loop found; of the last loops that lost paths and found none.
    moved, tracked : int
        Paths of polygons that ended in another solution than their start, and all that ended. Mirrored loops
        exchange conjugate solutions, which is no sign that they reach others.
    hits, starts : int
        Random complex starts that led to solutions which were known, and all.
    """

    def __init__(self, closure: Closure, reference: np.ndarray, rng: np.random.Generator) -> None:
        self.rng = rng
        self.tracker = Tracker(closure, reference[None], rng)
        P = self.tracker.parameters
        t = closure.transfer
        values = closure.rows(reference[None])[0] * t.scale
        self.like = P.of_values(values[:, : t.size])[0]
        self.base = P.random(self.like, rng, 1, spread=0.2)
        self.reference = reference
        self.states = np.zeros((0, len(reference)), complex)
        self.loops = self.clean = self.polygons = self.moved = self.tracked = self.lost = 0
        self.hits = self.starts = self.new = self.stuck = 0
        self.proven = proven_number(closure)
        self.trace_degree: int | None = None

    def close_to_known(self, states: np.ndarray) -> np.ndarray:
        """Return the index (B,) of the known solution that each state is, -1 for others."""
        if not len(self.states) or not len(states):
            return np.full(len(states), -1)
        from scipy.spatial import cKDTree

        apart, index = cKDTree(self.tracker.embedded(self.states)).query(self.tracker.embedded(states))
        return np.where(apart < SAME_ATOL, index, -1)

    def add(self, states: np.ndarray) -> int:
        """Add solutions at the base that are new; return their number."""
        before = len(self.states)
        for b in np.flatnonzero(self.close_to_known(states) < 0):
            if self.close_to_known(states[[b]])[0] < 0:
                self.states = np.concatenate([self.states, states[[b]]])
        if len(self.states) > before:
            self.clean, self.polygons, self.trace_degree = 0, 0, None
        return len(self.states) - before

    def to_base(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the solutions at the base to which states (B, S) at parameters (B, n) continue."""
        ends, share = self.tracker.track(states, p, np.repeat(self.base, len(p), axis=0))
        return ends[share == 1]

    def start(self, count: int) -> None:
        """Add the solutions to which random complex closed states continue."""
        tracker = self.tracker
        found = tracker.random_closed(self.rng, count, self.reference)
        if len(found) and not self.starts:
            tracker.find_flips(found)
        t = tracker.closure.transfer
        values = tracker.closure.rows(found)[0] * t.scale
        ends = self.to_base(found, tracker.parameters.of_values(values[:, : t.size]))
        known = self.close_to_known(ends) >= 0
        self.starts, self.hits = self.starts + len(ends), self.hits + int(known.sum())
        self.add(ends)

    def loop(self) -> None:
        """Track all known solutions along a random closed path, and add the new ones at its end.

        Every second path leads to real parameters, where solutions are in conjugate pairs, and back with the
        conjugate solutions. The others are polygons. Random starts add solutions that loops rarely reach,
        such as those behind a gap between two close branch points.
        """
        parameters = self.tracker.parameters
        corners = 2 if len(self.states) > FEW_STATES_MAX else 4
        p = [self.base, *parameters.random(self.like, self.rng, corners)[:, None], self.base]
        if self.loops % 2:
            p = [self.base, parameters.real(p[1]), self.base]
        ends, good = self._around(p, self.states, 1.0)
        for tightness in (0.3, 0.1):
            again = ~good | self._meeting(ends, good)
            if not again.any():
                break
            ends[again], good[again] = self._around(p, self.states[again], tightness)
        good &= ~self._meeting(ends, good)
        self.loops += 1
        mirrored = len(p) == 3
        if not mirrored:
            apart = np.abs(self.tracker.embedded(ends[good]) - self.tracker.embedded(self.states[good]))
            self.moved += int((apart.max(axis=1, initial=0.0) > SAME_ATOL).sum())
            self.tracked += int(good.sum())
        self.lost += int((~good).sum())
        self.new = self.add(ends[good])
        self.stuck = 0 if self.new or good.all() else self.stuck + 1
        if not self.new and good.all():
            self.clean += 1
            self.polygons += not mirrored
        self.start(STARTS // 2)
        if self.stuck >= STUCK_LOOPS_MAX:
            self.move_base()

    def move_base(self) -> None:
        """Continue the solutions to another base, because loops lose paths from those near infinity."""
        base, self.stuck = self._detour(), 0
        states, good = self._around([self.base, base], self.states, 0.3)
        good &= ~self._meeting(states, good)
        if good.any():
            self.base, self.states = base, np.zeros((0, states.shape[1]), complex)
            self.add(states[good])

    def _around(
        self, p: list[np.ndarray], states: np.ndarray, tightness: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Track states (B, S) along a polygon; return the corrected ends and a mask of complete paths.

        A polygon of three corners leads to real parameters, and back with the conjugate solutions.
        """
        states, good = states.copy(), np.ones(len(states), dtype=bool)
        for n, (a, b) in enumerate(pairwise(p)):
            if n == 1 and len(p) == 3:
                states = states.conj()
            k = np.flatnonzero(good)
            start, end = (np.repeat(x, len(k), axis=0) for x in (a, b))
            states[k], share = self.tracker.track(states[k], start, end, tightness)
            good[k] = share == 1
        return states, good

    def _meeting(self, ends: np.ndarray, good: np.ndarray, atol: float = SAME_ATOL) -> np.ndarray:
        """Return a mask of complete paths that end where another one does: one of them has jumped."""
        from scipy.spatial import cKDTree

        met, k = np.zeros(len(ends), dtype=bool), np.flatnonzero(good)
        if k.size:
            pairs = cKDTree(self.tracker.embedded(ends[k])).query_pairs(atol, output_type="ndarray")
            met[k[pairs.ravel()]] = True
        return met

    def _trace_test(self) -> int:
        """Return the degree at which the trace on a random line is rational, -1 for none, -2 if not tried.

        The trace is the sum of a function over all solutions. It is a rational function on the line if
        and only if the solutions are closed under monodromy there. A rational function is fitted to half of
        the points, and compared with the others. To be significant, the trace without the last solution must
        deviate.
        """
        tracker, points = self.tracker, TRACE_POINTS
        if len(self.states) < 2 or self.number * points > TRACE_STATES_MAX:
            return -2  # one solution has no control
        way = tracker.parameters.random(self.like, self.rng, 1, spread=0.2) - self.base
        # uniform on the sphere of complex numbers and infinity, so that the fit sees the whole line
        share = self.rng.uniform(0.02, 0.98, points)
        t = np.sqrt(share / (1 - share)) * np.exp(2j * np.pi * self.rng.uniform(size=points))
        end = np.repeat(self.base + t[:, None] * way, len(self.states), axis=0)
        start = np.repeat(self.base, len(end), axis=0)
        ends, share = tracker.track(np.tile(self.states, (points, 1)), start, end)
        good = (share.reshape(points, -1) == 1).all(axis=1)
        if good.sum() < 0.8 * points:
            return -1
        terms = tracker.sampled(tracker.all_flips(ends), self.rng).reshape(-1, points, len(self.states))
        terms, t = terms.sum(axis=0)[good], t[good]
        for degree in range(TRACE_DEGREE_MAX + 1):
            if _rational_error(t, terms.sum(axis=1), degree) < TRACE_RTOL:
                control = _rational_error(t, terms[:, :-1].sum(axis=1), degree)
                return degree if control > TRACE_CONTROL_RTOL else -1
        return -1

    @property
    def number(self) -> int:
        """Number of the solutions."""
        return len(self.states) * 2 ** len(self.tracker.flips)

    @property
    def chance(self) -> float:
        """Estimated chance that one solution is missing, if polygons move it as often as the others."""
        return float((1 - (1 + self.moved) / (2 + self.tracked)) ** self.polygons)

    @property
    def share(self) -> float:
        """Estimated share of the loops that are done."""
        likely = float(np.log(max(self.chance, 1e-300)) / np.log(CHANCE_MAX))
        return min(1.0, max(self.clean / LOOPS_MAX, min(self.clean / LOOPS_MIN, likely)))

    @property
    def is_done(self) -> bool:
        """True if nothing new is expected: a proven number is reached, or loops found nothing new.

        After a failed trace test, as for large degrees, only `LOOPS_MAX` loops suffice.
        """
        if self.is_proven or self.clean >= LOOPS_MAX:
            return True
        return self.clean >= LOOPS_MIN and self.chance < CHANCE_MAX and self.trace_degree != -1

    @property
    def is_proven(self) -> bool:
        """True if there are as many solutions as there can be by a proof."""
        return self.proven is not None and self.number >= self.proven[0]

    def collect(self, seeds: np.ndarray, deadline: float, bar: Bar) -> str:
        """Run loops until nothing new is expected; return '' or the reason why they ended before.

        `seeds` (n, S) are real closed configurations. A later call continues, also after an interruption.
        """
        with _COLLECTING:
            return self._collect(seeds, deadline, bar)

    def _collect(self, seeds: np.ndarray, deadline: float, bar: Bar) -> str:
        """Run the loops of `collect`."""
        tracker = self.tracker
        tracker.deadline = deadline
        try:
            if not self.starts:
                self.start(STARTS // 2)
            if len(seeds):
                t = tracker.closure.transfer
                values = tracker.closure.rows(seeds)[0] * t.scale
                p = tracker.parameters.of_values(values[:, : t.size])
                self.add(self.to_base(seeds.astype(complex), p))
            for _ in range(LOOPS_ALL_MAX):
                if self.is_done and self.trace_degree is None and not self.is_proven:
                    self.trace_degree = self._trace_test()
                    if self.trace_degree == -1:
                        self.trace_degree = self._trace_test()
                if not len(self.states) or self.is_done:
                    break
                bar.show(self.share)
                self.loop()
            else:
                return f"{LOOPS_ALL_MAX} loops were not enough: they found others, or lost paths"
        except TimeoutError:
            last = (
                f" after {self.loops} loops, the last of which found {self.new} others" if self.loops else ""
            )
            return "the time limit ended the search" + last
        finally:
            tracker.deadline = np.inf
        return "" if len(self.states) else "no start led to a regular complex solution"

    def at(self, values: np.ndarray, deadline: float, bar: Bar) -> Ends:
        """Return the ends of the paths from all solutions at the base to values (B, P) of the chosen rows.

        Paths of an attempt that the deadline ends are lost.
        """
        tracker, count, number = self.tracker, len(self.states), len(values)
        target = tracker.parameters.of_values(values)
        ends = np.zeros((number, count, self.states.shape[1]), complex)
        share = np.zeros((number, count))
        members = np.arange(number if count else 0)
        for attempt in range(ATTEMPTS):
            if not members.size:
                break
            with _COLLECTING:
                tracker.deadline, tracker.bar = deadline, bar
                try:
                    found = self._ends(target[members], self.base if attempt == 0 else self._detour())
                except TimeoutError:
                    break
                finally:
                    tracker.deadline, tracker.bar = np.inf, None
            better = (found[1] == 0).sum(axis=1) < (share[members] == 0).sum(axis=1)
            for n, b in enumerate(members):
                both = (ends[b].copy(), share[b].copy()), (found[0][n], found[1][n])
                own, other = both[::-1] if better[n] else both
                ends[b], share[b] = self._filled(*own, *other)
            members = np.flatnonzero((share == 0).any(axis=1))
        finite = share == 1
        owner, k = np.nonzero(finite)
        off, singular = tracker.imaginary(ends[finite]), np.flatnonzero(~tracker.is_regular(ends[finite]))
        real, moving = off < REAL_ATOL, np.zeros(len(owner), dtype=bool)
        moving[singular] = self._moves(ends[finite][singular], target[owner[singular]])
        near = singular[(off[singular] >= REAL_ATOL) & (off[singular] < SINGULAR_REAL_ATOL)]  # less accurate
        real[near] = self._solves(ends[finite][near].real.astype(complex), target[owner[near]])
        on_parts = np.bincount(owner[moving], minlength=number)
        kept = real | moving
        owner, k, moving = owner[kept], k[kept], moving[kept]
        times = 2 ** len(tracker.flips)
        goal = tracker.closure.goal(values)[owner]
        return Ends(
            tracker.all_flips(tracker.unwound(np.ascontiguousarray(ends[owner, k].real), goal)),
            np.tile(owner, times),
            times * finite.sum(axis=1),
            times * (share < 0).sum(axis=1),
            times * (share == 0).sum(axis=1),
            float(tracker.imaginary(ends[share == 0]).min(initial=np.inf)),
            np.tile(moving, times),
            times * on_parts,
        )

    def _filled(
        self, ends: np.ndarray, code: np.ndarray, others: np.ndarray, other_code: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ends (N, S) and codes (N,) with regular ends of another attempt in place of lost ones."""
        from scipy.spatial import cKDTree

        free, k, whole = np.flatnonzero(code == 0), np.flatnonzero(other_code == 1), code == 1
        if free.size and k.size and whole.any():
            k = k[self.tracker.is_regular(others[k])]
            known = cKDTree(self.tracker.embedded(ends[whole]))
            new = k[known.query(self.tracker.embedded(others[k]))[0] > OTHER_ATOL][: len(free)]
            ends[free[: len(new)]], code[free[: len(new)]] = others[new], 1.0
        return ends, code

    def _detour(self) -> np.ndarray:
        """Return other random parameters (1, n)."""
        return self.tracker.parameters.random(self.like, self.rng, 1, spread=0.2)

    def _ends(self, target: np.ndarray, by: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends (B, N, S) of all paths by way of parameters (1, n) to targets (B, n), and codes.

        The codes (B, N) are 1 for finite ends, -1 for ends at infinity, and 0 for lost paths and for regular
        ends at which several paths of a member meet.
        """
        tracker, count, number = self.tracker, len(self.states), len(target)
        start, good = self.states, np.ones(count, dtype=bool)
        if by is not self.base:
            start, good = self._around([self.base, by], self.states, 1.0)
            good &= ~self._meeting(start, good)
        states = np.tile(start, (number, 1))
        begin, end = np.repeat(by, len(states), axis=0), np.repeat(target, count, axis=0)
        ends, code = states.copy(), np.tile(np.where(good, 0.5, 0.0), number)
        turns = np.ones(len(ends), dtype=int)
        for tightness in (1.0, 0.3, 0.0):
            k = np.flatnonzero((code > 0) & (code < 1))
            if not k.size:
                break
            if tightness:
                ends[k], code[k] = tracker.track(states[k], begin[k], end[k], tightness)
                self._accept_imaginary(ends, code, end, count)
                code[self._jumped(ends, code == 1, count)] = 0.5
            else:
                ends[k], code[k], turns[k] = self._endgame(states[k], begin[k], end[k])
                code[self._jumped(ends, (code == 1) & (turns == 1), count)] = 0.0
        return ends.reshape(number, count, -1), code.reshape(number, count)

    def _accept_imaginary(self, ends: np.ndarray, code: np.ndarray, p: np.ndarray, count: int) -> None:
        """Set the code 1 for paths that are lost by rounding at ends with large imaginary parts.

        The sines and cosines of such states are large. The ends must solve the equations at parameters p, and
        no other path of the member may end nearby.
        """
        k = np.flatnonzero((code > 0) & (code < 1))
        k = k[self.tracker.imaginary(ends[k]) > IMAGINARY_MIN]
        k = k[self.tracker.residual(ends[k], p[k]) < OTHER_ATOL]
        if not k.size:
            return
        states = self.tracker.refined(ends[k], p[k])
        good = self._solves(states, p[k]) & (np.abs(states - ends[k]).max(axis=1) < OTHER_ATOL)
        k, states = k[good], states[good]
        accepted = code == 1
        accepted[k] = True
        alone = ~self._meets(ends, accepted, count, OTHER_ATOL)[k]
        ends[k[alone]], code[k[alone]] = states[alone], 1.0

    def _meets(self, ends: np.ndarray, finite: np.ndarray, count: int, atol: float) -> np.ndarray:
        """Return a mask of finite ends where several paths of one member meet."""
        met = np.zeros(len(ends), dtype=bool)
        for first in range(0, len(ends), count):
            own = slice(first, first + count)
            met[own] = self._meeting(ends[own], finite[own], atol)
        return met

    def _jumped(self, ends: np.ndarray, finite: np.ndarray, count: int) -> np.ndarray:
        """Return a mask of finite ends that are regular and where several paths of one member meet."""
        jumped = self._meets(ends, finite, count, SAME_ATOL)
        k = np.flatnonzero(jumped)
        jumped[k] = self.tracker.is_regular(ends[k])
        return jumped

    def _endgame(
        self, states: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ends of paths by Cauchy's integral; 1, -1 at infinity, or 0 if lost; and numbers of turns.

        Lost paths have the last state that was reached in place of an end.

        Near a singular end a path is a power series in a root of the distance: after some turns about the end
        it closes, and the mean of its points is the end. If a circle encloses the branch point of two close
        solutions, their halved difference is a root of an analytic function, whose mean is its value at the
        end. If it encloses more, a smaller circle follows.
        """
        tracker, way = self.tracker, start - end
        code, turns, here = np.zeros(len(states)), np.zeros(len(states), dtype=int), states.copy()
        going, poles, before = np.arange(len(states)), np.zeros(len(states)), 1.0
        for radius in ENDGAME_RADII:
            p = end[going] + before * way[going], end[going] + radius * way[going]
            here[going], share = tracker.track(here[going], *p)
            code[going[(share < 0) | ((share < 1) & tracker._far(here[going]))]] = -1.0
            going, before = going[share == 1], radius
            if not going.size:
                break
            means, halves, closed = self._circles(here[going], end[going], radius * way[going])
            k = np.flatnonzero(closed > 0)
            k = k[self._solves(means[k], end[going[k]])]
            here[going[k]], code[going[k]], turns[going[k]] = means[k], 1.0, closed[k]
            k = np.flatnonzero((closed == 2) & (code[going] == 0))
            guess, p = means[k] + halves[k], end[going[k]]
            pair = tracker.refined(guess, p)
            off, size = (np.abs(x).max(axis=1, initial=0.0) for x in (pair - guess, halves[k]))
            pair[~(off < PAIR_RTOL * size)] = guess[~(off < PAIR_RTOL * size)]
            good = self._solves(pair, p)
            k = going[k[good]]
            here[k], code[k], turns[k] = pair[good], 1.0, 1
            # angles that gain full turns about circles of different size have a pole at the end
            poles[going[closed < 0]] += 1
            code[poles == 2] = -1.0
            going = going[code[going] == 0]
        return tracker._normal(here), code, turns

    def _circles(
        self, states: np.ndarray, end: np.ndarray, way: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Track paths about parameters `end` (B, n) from `end + way` until they close.

        Return their means (B, S), the halved differences (B, S) at `end` of paths that close after two turns,
        and the numbers of turns (B,): 0 for paths that do not close, -1 for angles that gain full turns.
        """
        tracker, here, sums = self.tracker, states.copy(), np.zeros_like(states)
        points = np.zeros((2 * ENDGAME_CORNERS, *states.shape), complex)
        going, turns, extent = np.arange(len(states)), np.zeros(len(states), dtype=int), np.zeros(len(states))
        corners = np.exp(2j * np.pi * np.arange(ENDGAME_CORNERS + 1) / ENDGAME_CORNERS)
        for turn in range(1, ENDGAME_TURNS_MAX + 1):
            for n, (a, b) in enumerate(pairwise(corners)):
                p = end[going] + a * way[going], end[going] + b * way[going]
                if turn <= 2:
                    points[n + (turn - 1) * ENDGAME_CORNERS] = here
                here[going], share = tracker.track(here[going], *p)
                sums[going] += here[going]
                off = np.abs(here[going] - states[going]).max(axis=1, initial=0.0)
                extent[going] = np.maximum(extent[going], off)
                going = going[share == 1]
            moved = here[going] - states[going]
            limit = np.clip(CLOSED_RTOL * extent[going], CLOSED_ATOL, SAME_ATOL)
            closed = np.abs(moved).max(axis=1, initial=0.0) < limit
            moved[:, tracker.turning] -= 2 * np.pi * np.round(moved[:, tracker.turning].real / (2 * np.pi))
            turning = ~closed & (np.abs(moved).max(axis=1, initial=0.0) < limit)
            turns[going[closed]], turns[going[turning]] = turn, -1
            going = going[~closed & ~turning]
        halves = (points[:ENDGAME_CORNERS] - points[ENDGAME_CORNERS:]) / 2
        largest, b = np.abs(halves).max(axis=0).argmax(axis=1), np.arange(len(states))
        products = (halves * halves[:, b, largest][..., None]).mean(axis=0)
        root = np.sqrt(products[b, largest])
        root *= np.where((root.conj() * halves[0, b, largest]).real < 0, -1, 1)
        halves = products / np.where(root == 0, 1, root)[:, None]
        return sums / (ENDGAME_CORNERS * np.maximum(turns, 1))[:, None], halves, turns

    def _moves(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return a mask of singular states (B, S) that can move while parameters (B, n) stand still.

        Near an isolated solution of higher multiplicity, the residual grows with the square of a step.
        """
        if not len(states):
            return np.zeros(0, dtype=bool)
        null = np.linalg.svd(self.tracker.closure.rows(states)[1])[2][:, -1].conj()
        trial = self.tracker.moved(states, PART_STEP * null)
        trial = self.tracker.refined(trial, p, PART_STEP**2)
        apart = np.abs(trial - states).max(axis=1)
        return self._solves(trial, p) & (apart > PART_STEP / 100)

    def _solves(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return a mask of states (B, S) that satisfy the equations at parameters (B, n) to rounding."""
        left = self.tracker.residual(states, p)
        turn = np.abs(states[:, self.tracker.turning].imag).max(axis=1, initial=0.0)
        return left < ENDGAME_RESIDUAL_MAX * np.exp(np.minimum(2 * turn, NOISE_MAX))

    def statement(self, reason: str) -> tuple[str, str]:
        """Return the kind of evidence and a sentence; with a reason why the search is incomplete, if any."""
        count, flips = self.number, len(self.tracker.flips)
        found = f"{count} complex solution{'' if count == 1 else 's'} for generic values"
        if flips:
            found += f", {len(self.states)} apart from half turns of {flips} universal joints"
        searched = f"{self.clean} monodromy loops and {self.starts} random starts"
        if reason:
            return "incomplete", f"incomplete, because {reason}; {found}"
        if self.proven is not None and self.is_proven:
            return "proven number", f"{found}: the proven largest number ({self.proven[1]})"
        if self.trace_degree is not None and self.trace_degree >= 0:
            return "trace test", (
                f"{found}: a trace test of degree {self.trace_degree} passed to rounding, and {searched} "
                "found no other: numerical evidence that none is missing on the components of the "
                "configuration space that random starts reached (after A. J. Sommese, J. Verschelde and "
                "C. W. Wampler, 2002)"
            )
        chance = f"{self.chance:.1g}" if self.chance > CHANCE_MAX else f"less than {CHANCE_MAX:g}"
        return "loops", (
            f"{found}: no proof; {searched} found no other. Estimated chance that one is missing: "
            f"{chance}, if they move it as often as those found (rule of succession)"
        )


def _rational_error(t: np.ndarray, values: np.ndarray, degree: int) -> float:
    """Return the largest error of a rational function fitted to half of the points t (n,), at the others."""
    from scipy.special import comb

    k = np.arange(degree + 1)
    # polynomials that are orthonormal on the sphere
    powers = t[:, None] ** k / (1 + np.abs(t[:, None]) ** 2) ** (degree / 2) * np.sqrt(comb(degree, k))
    values = values / np.median(np.abs(values))
    half, size = len(t) // 2, np.maximum(1.0, np.abs(values))[:, None]
    system = np.concatenate([powers, -values[:, None] * powers], axis=1) / size
    null = np.linalg.svd(system[:half])[2][-1].conj()
    fitted = (powers @ null[: degree + 1]) / (powers @ null[degree + 1 :])
    return float((np.abs(fitted - values) / size[:, 0])[half:].max())


def certified_solutions(closure: Closure, states: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a mask (B,) of real states for which Newton–Kantorovich tests prove one solution near."""
    if not len(states):
        return np.zeros(0, dtype=bool)
    own, G = closure.rows(states)
    error = closure.residual(closure.goal(values), own)
    nodes = [np.repeat(a[:, None], 3, axis=1) for a in (states, own, G, error)]
    steps = np.zeros((len(states), 3, closure.transfer.tree.size))
    return closure.certified(nodes[0], steps, *nodes[1:])
