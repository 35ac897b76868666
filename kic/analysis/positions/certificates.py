"""Proofs that exactly one solution of a position problem, real or complex, is near a state.

Krawczyk's test. Near a state, rows are f(x), for steps x of the tree's coordinates. For any matrix A, a zero
of A f is a fixed point of K(x) = x − A f(x). If |A f(0)| ≤ ρ w/2 and |I − A f'(x)| w ≤ w/2 in the ball |x| ≤
ρ w, by components, K maps the ball to itself and contracts: the ball has one zero, which is a solution.

f' is bounded through power series. At the state, column k turns the links behind it about an axis a_k, a
complex vector with a_k·a_k = 1. Its rotation by x_k is a series in x_k whose coefficients are, in 2-norm, at
most those of exp(‖a_k‖ x_k). A point behind columns with the origins p_1, p_2, … is therefore majorized by

    u(x) = Σ_j ‖p_{j+1} − p_j‖ exp(Σ_{k≤j} ‖a_k‖ x_k),

where sliders add ‖a_k‖ x_k to their link. Products of vectors are majorized by the products of their series.
Coefficients of such series are not negative, so that derivatives at ρ w bound those of f in the ball. Norms
of axes and links are those at the state. The rotation of a joint has the 2-norm exp(|Im θ|), or |q|² + √(|q|⁴
− 1) for a unit quaternion q, in place of 1.

Rounding errors are bounded a priori by the norms of the computed frames, as in N. J. Higham, "Accuracy and
Stability of Numerical Algorithms", 2002, section 3.5: an error ε_k of the rotation of joint k reaches frame n
as ε_k R_kᵀ R_n, and places behind it in proportion to their distance. Sines, cosines and logarithms are
assumed accurate to four units of the last digit. The proof holds for the numbers that the kernels store, with
directions rounded to unit length.

The nine rows of a pose are contracted with its axes to the three components of a rotation, which vanish at
the pose only while the rotation is less than a half turn away. Redundant rows of closed loops enter only
through A f. The test does not exclude that they contradict one another; only the geometry can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.analysis.positions.complex_paths import REAL_ATOL, Tracker
from kic.kernels import layout as lay
from kic.kinematics.items import COSINE, LINEAR, PRODUCT, WEIGHTED, Item, axes_of
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.kinematics.state import difference
from kic.numerics.progress import Bar
from kic.numerics.rotations import product
from kic.numerics.tolerances import EPS
from kic.transfer.constraint_system import joined

# rounding error of a frame or a row, in eps times norms, for each link: products of complex matrices in
# Frobenius norm, sines and cosines, sums
LINK_ROUNDING = 32.0
# kinds of items whose series are known
SERVED = (
    lay.POINT, lay.WEIGHTED_POINT, lay.DIRECTION, lay.DISTANCE, lay.DOT1, lay.DOT2, lay.COORDINATE,
    lay.PLANE_ANGLE, lay.LINEAR_TERM,
)  # fmt: skip
# halved products r @ HALF_TURNS[k] of the k-th unit vector with r
HALF_TURNS = np.cross(np.eye(3)[:, None], np.eye(3)) / 2
# states that are tested at once, because tables are large
STATES_AT_ONCE = 256
# nodes of a tube in its parameter, between −1 and 1; bounds of the sum of the moduli of their Lagrange
# polynomials, of those without the middle, and of the error of interpolation of the first power that is not
# exact. That of the k-th later one is less than 8ᵏ times as large.
NODES = -np.cos(np.pi * np.arange(5) / 4)
LEBESGUE, LEBESGUE_OTHERS, POWER_ERROR = 1.8, 1.32, 0.117
POWERS = np.linalg.inv(NODES[:, None] ** np.arange(len(NODES)))
# Taylor coefficients are bounded on a larger circle: radii that are tried, of which the first is the least;
# turns there (rad); steps of poses and of parameters of turns, as shares
CIRCLES, CIRCLE_TURN, CIRCLE_POSE, CIRCLE_PARAMETER = 8.0 * 1.3 ** np.arange(20), 3.0, 0.3, 0.5
# first and shortest segment as a share of a path, growth, and the bound at which segments aim
SEGMENT_FIRST, SEGMENT_MIN, SEGMENT_GROWTH, SEGMENT_KAPPA = 0.01, 1e-7, 1.5, 0.35
# largest radius of a ball that counts; change of an embedded ball joint for a step of each of its columns
RADIUS_MAX, BALL_FACTOR = 1e-4, 8.0


@dataclass
class _Near:
    """Norms at B states, for the series of the rows."""

    turn: np.ndarray  # (B, M): of axes of turning columns, for scaled steps
    slide: np.ndarray  # (B, M): of axes of sliders
    links: np.ndarray  # (B, n, 2, M): from the origin of each column to the next, or to the end, of items
    gap: np.ndarray  # (B, n): of the difference of the ends
    factor: np.ndarray  # (B, n): product of the vectors of items
    noise: np.ndarray  # (B, P): rounding errors of scaled rows, squared distances
    lever_noise: np.ndarray  # (B, P): errors of rows by those of places, for each radian
    turn_noise: np.ndarray  # (B,): relative errors of frames


class Certificates:
    """Certificates of the solutions of a tracker's equations.

    Attributes
    ----------
    is_served : bool
        True if there are bounds for all rows; otherwise nothing is certified.
    """

    def __init__(self, tracker: Tracker) -> None:
        self.tracker, self.closure = tracker, tracker.closure
        t = self.closure.transfer
        self.system, self.tree = t.system, t.tree
        tree, rows = t.tree, t.system.rows
        kinds = rows.kinds
        self.frames = frames = np.maximum(rows.items[:, [lay.FRAME_B, lay.FRAME_A]], -1)
        sides = tree.paths[frames]
        self.mask = sides & ~sides[:, ::-1]  # (n, 2, M): columns that move one end, not the other
        self.common = sides.all(axis=1) & (kinds == lay.POINT)[:, None]
        whole = (kinds != lay.COORDINATE) | (tree.cols[frames[:, 0], lay.KIND] != lay.BALL)
        self.is_served = bool((np.isin(kinds, SERVED) & whole).all())
        # items: squares of the gap; of directions, of two of them; products with a third; moved by the second
        self.linear, self.squared = LINEAR[kinds], kinds == lay.DISTANCE
        self.pointing, self.carried = COSINE[kinds], PRODUCT[kinds]
        self.paired, self.along = self.pointing & self.carried, ~self.pointing & self.carried
        size, count = tree.size, len(kinds)
        self.placed = np.stack([~self.pointing, ~self.pointing, np.zeros(count, dtype=bool)], axis=1)
        self.ends_moved = tree.paths[frames[:, [0, 1, 1]]].reshape(-1, size).T  # (M, 3 n)
        self.next = np.zeros(self.mask.shape, dtype=int)
        for i, side, k in np.argwhere(self.mask):
            behind = np.flatnonzero(self.mask[i, side, k + 1 :])
            self.next[i, side, k] = k + 1 + behind[0] if behind.size else size + 2 * i + side
        items = [*map(Item.point, range(size)), *map(self._axis, range(size)), *axes_of(range(size))]
        for item, (b, a) in zip(rows.source, self.frames.tolist(), strict=True):
            end = Item.direction if COSINE[item.kind] else Item.point
            items += [end(b, item.local_b), end(a, item.local_a), Item.direction(a, item.extra)]
        self.places = output_query(tree, plain_rows(tree, items), 1)
        self.ratios = np.abs(np.array([i.extra[:2] for i in rows.source], dtype=complex).reshape(count, 2))
        self.ratios[~WEIGHTED[kinds]] = 1.0, 0.0
        self.item_of = rows.item_of[self.system.picked]
        scale = self.system.item_scale
        self.scale = np.where(self.squared, scale**2, scale)
        self.distances = self.squared[self.item_of]
        scales = tracker.parameters.tables()[1]
        # negative lengths of rods
        self.lengths = scales[:, 1] / scales[:, 0]

    def _axis(self, n: int) -> Item:
        """Return the item of the axis of a column; the axes of a ball joint are fixed in its first body."""
        cols, k = self.tree.cols, int(self.tree.cols[n, lay.GROUP])
        ball = cols[n, lay.KIND] == lay.BALL
        e = np.eye(3)[n - k if ball else 2]
        if not ball or cols[k, lay.LO] > k:
            return Item.direction(n, e)
        turned = self.tree.geometry[k, lay.TURN0 : lay.DRAWN].reshape(3, 3) @ e
        return Item.direction(int(cols[k, lay.PARENT]), turned)

    def _near(self, states: np.ndarray) -> _Near:
        """Return the norms for the series at states (B, S)."""
        tree, cols = self.tree, self.tree.cols
        size, count, parents = tree.size, len(self.frames), cols[:, lay.PARENT]
        columns, entries = tree.single_columns
        T = self.places.arrays(states)[0].reshape(len(states), -1, 3)
        ends = T[:, 5 * size :].reshape(len(states), count, 3, 3)
        frames = T[:, 2 * size : 5 * size].reshape(len(states), size, 3, 3)  # transposed
        # norms of rotations: of each joint, and of its frame, and of ground
        x, logs = np.zeros((2, len(states), size))
        x[:, columns] = np.abs(states[:, entries] - tree.geometry[columns, lay.DRAWN])
        turning = cols[:, lay.KIND] != lay.PRISMATIC
        logs[:, columns] = np.abs(states[:, entries].imag) * turning[columns]
        for turn, quaternion in tree.ball_slices:
            q = states[:, quaternion]
            square = np.einsum("bi,bi->b", q.conj(), q).real / np.abs(np.einsum("bi,bi->b", q, q))
            logs[:, turn.start] = np.arccosh(np.maximum(square, 1.0))
        whole = np.ones((len(states), size + 1))
        whole[:, :-1] = np.linalg.norm(frames, axis=(2, 3))
        places = np.concatenate([T[:, :size], ends[:, :, :2].reshape(len(states), 2 * count, 3)], axis=1)
        far = np.linalg.norm(places, axis=2).max(axis=1, initial=0.0)
        links = np.linalg.norm(places[:, self.next] - T[:, None, None, :size], axis=4)
        # relative errors of frames, and errors of places: those of one link turn all links behind it
        unit = (LINK_ROUNDING + x[:, turning].max(axis=1, initial=0.0)) * EPS
        steps = whole[:, parents] * np.exp(logs) * (cols[:, lay.GROUP] == np.arange(size))
        sums = ((steps * whole[:, :-1]) @ tree.paths.T).max(axis=1) + size
        offsets = np.linalg.norm(tree.geometry[:, lay.OFFSET : lay.TURN0], axis=1) + x * ~turning
        offsets = ((whole[:, parents] * offsets) @ tree.paths.T).max(axis=1)
        turned, moved = unit * sums, unit * (2 * sums * far + offsets)
        turned, moved = turned[:, None], moved[:, None]
        axes = np.linalg.norm(T[:, size : 2 * size], axis=2) * (1 + turned)
        axes = axes * self.closure.transfer.column_scale
        norms = np.linalg.norm(ends, axis=3) * (1 + turned[..., None])
        gap = np.linalg.norm(ends[:, :, 0] - ends[:, :, 1], axis=2) + 2 * moved
        factor = self.ratios[:, 0] * np.where(self.pointing, norms[..., 0], 1.0)
        factor = factor * np.where(self.paired, norms[..., 1], 1.0) * np.where(self.along, norms[..., 2], 1.0)
        factor = np.where(self.linear, 0.0, factor)
        lengths = factor * np.where(self.squared, 2 * gap, ~self.pointing)  # by errors of places
        # errors of the ends and of the third vector, to first order
        behind = (ends[:, None] - T[:, :size, None, None] * self.placed[:, :, None]).reshape(
            len(states), size, -1, 3
        )
        local = np.linalg.norm(behind @ frames.swapaxes(2, 3), axis=3) * steps[:, :, None] * self.ends_moved
        error = unit[:, None, None] * local.sum(axis=1).reshape(ends.shape[:3])
        error += (unit * (size * far + offsets))[:, None, None] * self.placed
        first, second, third = np.moveaxis(error, 2, 0)
        noise = lengths * (first + second) + self.along * third * gap
        noise += self.pointing * first * np.where(self.paired, norms[..., 1], 1.0)
        noise += self.paired * second * norms[..., 0]
        sizes = np.where(self.pointing, 1.0, np.where(self.squared, gap**2, gap))
        noise += LINK_ROUNDING * EPS * factor * sizes
        linear = self.ratios[:, 0] * (x @ tree.paths.T)[:, self.frames[:, 0]] + self.ratios[:, 1]
        noise = np.where(self.linear, unit[:, None] * linear, noise)
        return _Near(
            axes * turning,
            axes * ~turning,
            (links + 2 * moved[..., None, None]) * self.mask,
            gap,
            factor,
            self._by_rows(noise),
            self._by_rows(2 * moved * lengths),
            turned[:, 0],
        )

    def _by_rows(self, items: np.ndarray) -> np.ndarray:
        """Return scaled bounds (B, P) of rows from bounds (B, n) of items."""
        return (joined(self.system.rows, items.T.copy(), np.add).T / self.scale)[:, self.item_of]

    def _series(self, near: _Near, r: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
        """Return the series (B, P) of rows at r (B, M), and their first two derivatives along w (B, M)."""
        at, turned = (np.cumsum(self.mask * (near.turn * x)[:, None, None], axis=3) for x in (r, w))
        slid, slides = (self.mask * (near.slide * x)[:, None, None] for x in (r, w))
        E, long = np.exp(at), near.links + slid
        change = near.links * (E - 1) + slid * E
        slopes = (long * turned + slides) * E, (long * turned + 2 * slides) * turned * E
        gap = [way.sum(axis=(2, 3)) for way in (change, *slopes)]
        gap[0] += near.gap
        total = at[..., 0, -1] * self.pointing + at[..., 1, -1] * self.carried
        rate = turned[..., 0, -1] * self.pointing + turned[..., 1, -1] * self.carried
        vector = near.factor * np.exp(total)
        vectors = vector, vector * rate, vector * rate**2
        other = [np.where(self.squared, g, v) for g, v in zip(gap, vectors, strict=True)]
        gap = [np.where(self.pointing, float(k == 0), g) for k, g in enumerate(gap)]
        value = other[0] * gap[0]
        first = other[1] * gap[0] + other[0] * gap[1]
        second = other[2] * gap[0] + 2 * other[1] * gap[1] + other[0] * gap[2]
        # differences of points turn with columns that carry both ends
        common = (near.factor > 0) * np.exp((near.turn * r) @ self.common.T)
        return [self._by_rows(x * common) for x in (value, first, second)]

    def _equations(
        self, states: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return residuals (B, P) of rows at parameters p (B, n), their G and rounding errors, and axes.

        Distances are squared. The axes (B, P', P) contract rows of poses to components of rotations.
        """
        P = self.tracker.parameters
        values, G = self.closure.rows(states)
        left, slope = P.residual(p, values)
        noise = 8 * EPS * (np.abs(values) + np.abs(left))
        # turns are linear: e^{iθ} − z becomes θ − arg z
        z = p[:, P.angles]
        goal = np.concatenate([z, np.ones((len(p), len(P.turns) - z.shape[1]))], axis=1)
        left[:, P.turns] = -1j * np.log1p(left[:, P.turns] / goal) / P.scale[P.turns]
        slope[:, P.turns] = 1.0
        noise[:, P.turns] += 8 * EPS / P.scale[P.turns]
        # rods are quadratic: d − L becomes d² − L²
        rods = np.flatnonzero(self.distances)
        rods = rods[rods >= P.named]
        length = values[:, rods] - self.lengths[rods]
        left[:, rods] *= length - self.lengths[rods]
        slope[:, rods] = 2 * length
        noise[:, self.distances] += 8 * EPS * np.abs(slope[:, self.distances]) ** 2
        kept = np.ones(len(P.scale), dtype=bool)
        axes = []
        for row, turn, at in P.poses:
            k = slice(turn, turn + 9)
            kept[k] = False
            q = p[:, at + turn - row : at + turn - row + 4]
            size = np.einsum("bi,bi->b", q.conj(), q).real / np.abs(np.einsum("bi,bi->b", q, q))
            noise[:, k] += 32 * EPS * size[:, None]
            goals = (values - left)[:, k].reshape(-1, 3, 3)
            made = np.zeros((len(p), 3, len(kept)), complex)
            made[:, :, k] = (goals[:, None] @ HALF_TURNS).reshape(-1, 3, 9)
            axes.append(made)
        whole = np.broadcast_to(np.eye(len(kept))[kept], (len(p), kept.sum(), len(kept)))
        return left, slope[..., None] * G, noise, np.concatenate([whole, *axes], axis=1)

    def balls(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return radii (B,) of balls about states (B, S) that contain one solution for parameters p (B, n).

        They bound the steps to the solution (rad, lengths). NaN where the test fails.
        """
        return self._all_bounds(states, p).max(axis=1, initial=0.0)

    def _all_bounds(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return bounds (B, M) of the scaled steps to solutions, NaN where the test fails."""
        bounds = np.full((len(states), self.tree.size), np.nan)
        if self.is_served:
            for k in range(0, len(states), STATES_AT_ONCE):
                some = slice(k, k + STATES_AT_ONCE)
                with np.errstate(all="ignore"):
                    bounds[some] = self._bounds(states[some].astype(complex), p[some])
        return bounds

    def _bounds(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the bounds of `_all_bounds` for at most `STATES_AT_ONCE` states."""
        left, G, noise, C = self._equations(states, p)
        A, fine = _left_inverse(C, G)
        near = self._near(states)
        sums, noise = np.abs(A), noise + near.noise
        w = sums.sum(axis=2)
        rounding = 8 * len(self.distances) * EPS  # of products of matrices, and of the bounds themselves
        eta = np.abs((A @ left[..., None])[..., 0])
        eta += (sums @ (noise + rounding * np.abs(left))[..., None])[..., 0]
        rho = 2 * (1 + rounding) * (eta / w).max(axis=1)
        kappa = np.abs(np.eye(A.shape[1]) - A @ G)
        errors = (np.abs(G) @ w[..., None])[..., 0] * rounding
        series = self._series(near, rho[:, None] * w, w)
        errors += 4 * near.turn_noise[:, None] * series[1]
        errors += near.lever_noise * (near.turn * w).sum(axis=1)[:, None]
        errors += rho[:, None] * series[2]
        kappa = (kappa @ w[..., None] + sums @ errors[..., None])[..., 0]
        for _, turn, _ in self.tracker.parameters.poses:  # less than a half turn from the pose
            k = slice(turn, turn + 9)
            off = (np.abs(left) + noise + rho[:, None] * series[1])[:, k].sum(axis=1)
            fine &= off * np.linalg.norm(C[:, :, k], axis=(1, 2)) < 0.5
        good = fine & ((1 + rounding) * (kappa / w).max(axis=1) <= 0.5)
        bounds = rho[:, None] * w
        return np.where((good & (bounds.max(axis=1) <= RADIUS_MAX))[:, None], bounds, np.nan)

    def counts(
        self, states: np.ndarray, owner: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Count the certified solutions among states (n, S), for real parameters p (B, m).

        Return the numbers (B,) of solutions distinct modulo full turns and flips, and of real ones. A ball
        about a real state equals its conjugate, so the only solution in it is real. The third result (B,) is
        True if the balls of all others contain no real states. The last are the radii (n,) of the balls,
        about the real parts of nearly real states. `owner` (n,) is the member of a state.
        """
        tracker, size = self.tracker, np.ones(len(states))
        real = tracker.imaginary(states) < REAL_ATOL
        states = np.where(real[:, None], states.real, states)
        radii = self.balls(states, p[owner])
        for _, quaternion in self.tree.ball_slices:
            size = np.maximum(size, 4 * np.abs(states[:, quaternion]).max(axis=1))
        decided = real | (tracker.imaginary(states) > size * radii)
        good = np.isfinite(radii)
        for b in range(len(p)):
            k = np.flatnonzero(good & (owner == b))
            good[k] = self._apart(states[k], radii[k])
        numbers = [np.bincount(owner[k], minlength=len(p)) for k in (good, good & real, good & ~decided)]
        return numbers[0], numbers[1], numbers[2] == 0, radii

    def _apart(self, states: np.ndarray, radii: np.ndarray) -> np.ndarray:
        """Return a mask (n,) of balls about states (n, S) that meet no other ball."""
        from scipy.spatial import cKDTree

        tracker, apart = self.tracker, np.ones(len(states), dtype=bool)
        for a, _, _ in tracker.flips:  # `embedded` jumps there
            apart &= np.abs(np.cos(states[:, a].real)) > 2 * radii
        if len(states) > 1:
            factor = 1.1 * np.sqrt(len(tracker.columns) + BALL_FACTOR**2 * len(self.tree.balls))
            places, reach = tracker.embedded(states), factor * radii
            pairs = cKDTree(places).query_pairs(2 * reach.max(), output_type="ndarray")
            near = np.linalg.norm(np.diff(places[pairs], axis=1), axis=(1, 2)) <= reach[pairs].sum(axis=1)
            apart[pairs[near].ravel()] = False
        return apart

    def follow(
        self, states: np.ndarray, start: np.ndarray, end: np.ndarray, bar: Bar | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Follow certified curves from states (B, S) at parameters (B, n) or (1, n) to others.

        Return the last states and the completed shares (B,). A curve of regular solutions leads from the
        solution near each state to the one near the last state, while the parameters move along a line. The
        tracker's deadline ends curves.
        """
        if len(states) > STATES_AT_ONCE:
            some = np.array_split(np.arange(len(states)), 1 + len(states) // STATES_AT_ONCE)
            start, end = (np.broadcast_to(x, (len(states), x.shape[1])) for x in (start, end))
            curves = [self.follow(states[k], start[k], end[k], bar) for k in some]
            return np.concatenate([x for x, _ in curves]), np.concatenate([x for _, x in curves])
        states, parts = states.astype(complex), len(NODES) - 1
        start, change = (np.broadcast_to(x, (len(states), x.shape[1])) for x in (start, end - start))
        share, step = np.zeros(len(states)), np.full(len(states), SEGMENT_FIRST)
        error = self._all_bounds(states, start)
        going = np.flatnonzero(np.isfinite(error).all(axis=1))
        while going.size:
            if bar is not None:
                bar.show(float(share.mean()))
            ends = np.minimum(share[going] + step[going], 1.0)
            first, last = (start[going] + x[:, None] * change[going] for x in (share[going], ends))
            middle, half = (first + last) / 2, (last - first) / 2
            p = middle[:, None] + NODES[1:, None] * half[:, None]
            p[:, -1] = last
            again = np.repeat(states[going], parts, axis=0), np.repeat(first, parts, axis=0)
            try:
                found, done = self.tracker.track(*again, p.reshape(-1, p.shape[2]))
            except TimeoutError:
                break
            nodes = np.concatenate([states[going, None], found.reshape(len(going), parts, -1)], axis=1)
            with np.errstate(all="ignore"):
                kappa, after = self._tubes(nodes, middle, half, error[going])
            kappa[(done.reshape(len(going), parts) != 1).any(axis=1)] = np.inf
            good = kappa <= 0.5
            k = going[good]
            states[k], share[k], error[k] = nodes[good, -1], ends[good], after[good]
            step[going] *= np.clip(np.sqrt(SEGMENT_KAPPA / kappa), 0.25, SEGMENT_GROWTH)
            going = going[(share[going] < 1) & (step[going] > SEGMENT_MIN)]
        return states, share

    def _tubes(
        self, nodes: np.ndarray, middle: np.ndarray, half: np.ndarray, before: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds (B,) of |I − A f'| in tubes: a tube with a bound ≤ 1/2 has one curve of solutions.

        Also return bounds (B, M) of scaled steps from the last nodes to the solution there. Parameters are
        `middle + τ half` (B, n), −1 ≤ τ ≤ 1. The tube is about the polynomial Y(τ) through `nodes` (B, 5, S).
        Its curve begins with the solution that is no farther than steps `before` (B, M) from the first node.

        A f(Y(τ)) and A f'(Y(τ)) are interpolated in τ at the nodes. The errors are those of powers of τ,
        whose coefficients are bounded by the series of the rows on a circle of radius R (Cauchy).
        """
        count, size, number, middle_node = len(nodes), self.tree.size, len(NODES), len(NODES) // 2
        flat = nodes.reshape(-1, nodes.shape[2])
        here = np.repeat(nodes[:, middle_node], number, axis=0)
        at = difference(self.tree, here, flat) / self.closure.transfer.column_scale
        flat, at = self.tracker.moved(here, at), at.reshape(count, number, size)
        powers = np.abs(np.einsum("ki,bim->bkm", POWERS, at))
        p = (middle[:, None] + NODES[:, None] * half[:, None]).reshape(len(flat), -1)
        left, G, noise, C = self._equations(flat, p)
        left, G, noise = (x.reshape(count, number, *x.shape[1:]) for x in (left, G, noise))
        C = C.reshape(count, number, *C.shape[1:])[:, middle_node]
        A, fine = _left_inverse(C, G[:, middle_node])
        near, sums = self._near(nodes[:, middle_node]), np.abs(A)
        w = sums.sum(axis=2)

        def applied(rows: np.ndarray) -> np.ndarray:
            return (sums @ rows[..., None])[..., 0]

        # the largest circle
        reach, degrees = powers.sum(axis=1), np.arange(len(NODES))
        beyond = np.einsum("bkm,kr->brm", powers, CIRCLES ** degrees[:, None])
        pose, pole = self._relative(middle, half)
        shares = np.maximum(pose / CIRCLE_POSE, pole / CIRCLE_PARAMETER)[:, None] * CIRCLES
        turned = ((near.turn[:, None] * beyond) @ self.tree.paths.T).max(axis=2)
        inside = ((shares <= 1) & (turned <= CIRCLE_TURN)).sum(axis=1)
        fine &= inside > 0
        some = np.arange(count), np.maximum(inside - 1, 0)
        R, beyond = CIRCLES[some[1]], beyond[some]
        growth = np.exp(8 * ((near.turn * reach) @ self.tree.paths.T).max(axis=1))[:, None]
        value, first, _ = self._series(near, beyond, w)
        turns = self.tracker.parameters.turns
        value[:, turns] += 1 / self.tracker.parameters.scale[turns]  # of logarithms
        for _, turn, _ in self.tracker.parameters.poses:
            k = slice(turn, turn + 9)
            value[:, k] += 5 * np.linalg.norm(C[:, :, k], axis=(1, 2))[:, None] * 2
        share = (POWER_ERROR / R ** len(NODES))[:, None]
        # residuals at the nodes, and rounding errors of rows and of steps there
        rounding = 8 * len(self.distances) * EPS
        noise = noise.max(axis=1) + growth * near.noise + rounding * np.abs(left).max(axis=1)
        moved, scale = np.zeros((count, size)), self.closure.transfer.column_scale
        columns, entries = self.tree.single_columns
        moved[:, columns] = np.abs(nodes[..., entries]).max(axis=1) / scale[columns]
        for part, quaternion in self.tree.ball_slices:
            moved[:, part] = 16 * (np.abs(nodes[..., quaternion]) ** 2).sum(axis=2).max(axis=1)[:, None]
        noise += (np.abs(G).max(axis=1) @ (4 * EPS * moved)[..., None])[..., 0]
        eta = np.abs(np.einsum("bnp,bip->bin", A, left)) + applied(noise)[:, None]
        last = self._widened(2 * (1 + rounding) * (eta[:, -1] / w).max(axis=1)[:, None] * w, reach)
        tube = LEBESGUE * eta.max(axis=1) + applied(share * value)
        rho = np.maximum(
            2 * (1 + rounding) * (tube / w).max(axis=1), (self._widened(before, reach) / w).max(axis=1)
        )
        kappa = (np.abs(np.eye(size) - A[:, None] @ G) @ w[:, None, :, None])[..., 0]
        kappa = LEBESGUE_OTHERS * np.delete(kappa, middle_node, axis=1).max(axis=1) + kappa[:, middle_node]
        series = self._series(near, reach + rho[:, None] * w, w)
        errors = share * first + rho[:, None] * series[2] + growth * near.turn_noise[:, None] * series[1]
        errors += growth * near.lever_noise * (near.turn * w).sum(axis=1)[:, None]
        errors += (np.abs(G).max(axis=1) @ w[..., None])[..., 0] * rounding
        kappa += applied(errors)
        bound = np.where(fine, (1 + rounding) * (kappa / w).max(axis=1), np.inf)
        for _, turn, _ in self.tracker.parameters.poses:
            k = slice(turn, turn + 9)
            rows = LEBESGUE * np.abs(left).max(axis=1) + noise + share * value + rho[:, None] * series[1]
            near_pose = rows[:, k].sum(axis=1) * 2 * np.linalg.norm(C[:, :, k], axis=(1, 2)) < 0.1
            bound[~near_pose] = np.inf
        return np.where(np.isfinite(bound), bound, np.inf), last

    def _widened(self, steps: np.ndarray, reach: np.ndarray) -> np.ndarray:
        """Return bounds (B, M) of steps after other steps, at most `reach` (B, M), are added or removed.

        The rotation vectors r + s and r of a ball joint differ by the rotation J s with ‖J − 1‖ ≤ ‖r‖ ≤ 1.
        """
        wide = steps.copy()
        for turn, _ in self.tree.ball_slices:
            wide[:, turn] += np.prod([np.linalg.norm(x[:, turn], axis=1) for x in (steps, reach)], axis=0)[
                :, None
            ]
        return wide

    def _relative(self, middle: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest relative changes (B,) of quaternions and of parameters of turns in a segment."""
        P = self.tracker.parameters
        pose = np.full(len(middle), 1e-9)
        for row, turn, at in P.poses:
            k = slice(at + turn - row, at + turn - row + 4)
            q, d = middle[:, k], half[:, k]
            inverse = q * [1, -1, -1, -1] / np.einsum("bi,bi->b", q, q)[:, None]
            pose = np.maximum(pose, np.linalg.norm(product(d, inverse), axis=1))
        pole = np.abs(half[:, P.angles] / middle[:, P.angles]).max(axis=1, initial=1e-9)
        return pose, pole


def _left_inverse(C: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return matrices A = (C G)⁺ C (B, M, P) by normal equations, and a mask (B,) of those that exist."""
    J = C @ G
    H = np.swapaxes(J, 1, 2).conj()
    fine = np.isfinite(J).all(axis=(1, 2))
    H = np.where(fine[:, None, None], H, 0.0)
    normal = H @ np.where(fine[:, None, None], J, 0.0)
    size = np.maximum(np.linalg.norm(normal, axis=(1, 2)), 1e-300)[:, None, None]
    normal = normal / size
    fine &= np.abs(np.linalg.det(normal)) > 0
    normal[~fine] = np.eye(J.shape[2])
    return np.linalg.solve(normal, H / size) @ C, fine
