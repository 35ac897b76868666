"""Position problem of one configuration: certified tracking, and Gauss–Newton steps from any start.

The unknowns are the tree's coordinates. The equations are the chosen rows and all closure rows, including
redundant ones, each divided by its scale. Closure rows that require perpendicular directions also hold for
flipped parts. Every solution is therefore checked: directions that must agree may not oppose.

The compiled Newton iteration in `kernels.newton` is preferred: each of its steps is certified. The method
of `numerics.gauss_newton` solves all rows by least squares, for poses, angles of cut joints, rounded
dimensions and distant starts. On a branch its results must pass `Closure.certified`.
"""

from __future__ import annotations

from functools import cached_property
from math import cos

import numpy as np

from kic.kernels import layout as lay
from kic.kinematics.closure_rows import facing_rows, rotation_rows
from kic.kinematics.items import ROOT
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.kinematics.state import distance, integrate
from kic.numerics.caches import without_caches
from kic.numerics.gauss_newton import gauss_newton
from kic.numerics.graphs import blocks
from kic.numerics.linalg import condition_number
from kic.numerics.rotations import wrap_to_pi
from kic.numerics.tolerances import EPS
from kic.transfer.coordinate_transfer import TRIES, CoordinateTransfer, open_error
from kic.transfer.program import Numbered

# share of the largest singular value of the rows below which others are zero
PINV_RTOL = 1e-10
# residual, relative to the characteristic length, at which a configuration counts as closed
LOOP_CLOSURE_RTOL = 1e-12
# the same for states that were not solved for, such as states integrated in time
LOOP_DRIFT_RTOL = 1e-9
# factor of the error of interpolation from the ends and middle of an interval (as in kernels.newton), with a
# margin for rotating goals
CUBIC_FACTOR = 0.0081 * 2.25
# smallest trace of the rotations, of at most 0.8 rad, that three rows determine with a margin
TURN_TRACE_MIN = 1 + 2 * cos(0.8)
# rounding error of positions, relative to the largest length
PLACE_RTOL = 16 * EPS


class Closure:
    """Position problem s(φ) = target, c(φ) = 0 in the tree's coordinates.

    Parameters
    ----------
    transfer : Transfer
        The chosen rows with the closure rows, scales and tree.
    held : tuple of (str, int, int)
        Bodies with a pose among the chosen rows: name, index of the first row, and index of the first of the
        nine orientation rows.
    posed : CoordinateTransfer, optional
        The same rows with three `rotation_rows` in place of the nine of each orientation.
    """

    def __init__(
        self,
        transfer: CoordinateTransfer,
        held: tuple[tuple[str, int, int], ...] = (),
        posed: CoordinateTransfer | None = None,
    ) -> None:
        self.transfer = transfer
        self.held, self._posed = held, posed
        self.turns = tuple(turn for _, _, turn in held)
        tree = transfer.tree
        facing, names = facing_rows(tree)
        self._facing_of = names
        self._facing = output_query(tree, plain_rows(tree, facing), 1) if facing else None
        # the rounding of positions limits the closure of a loop much smaller than the mechanism
        self.limit = max(LOOP_CLOSURE_RTOL, PLACE_RTOL * transfer.length / transfer.system.smallest)
        self.turning = tree.cols[:, lay.KIND] != lay.PRISMATIC
        angles = {row for row, *_ in transfer.system.rows.angles}
        # indices of chosen rows that are angles, known modulo full turns
        self.turned = [k for k, row in enumerate(transfer.system.picked.tolist()) if row in angles]

    __getstate__ = without_caches

    def rows(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scaled values and first order of the chosen and closure rows."""
        t = self.transfer
        values, G = t.values_and_rates(states)
        return values / t.scale, G / t.scale[:, None] * t.column_scale

    def goal(self, target: np.ndarray) -> np.ndarray:
        """Return scaled goals (B, P) of all rows from targets of the chosen rows; closure rows are zero."""
        t = self.transfer
        goal = np.zeros((len(target), len(t.scale)))
        goal[:, : t.size] = target / t.scale[: t.size]
        return goal

    @cached_property
    def blocks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """List of blocks: rows that share no column with other rows, and the columns that move them."""
        system = self.transfer.system
        return blocks(system.moving[system.rows.item_of[system.picked]])

    @cached_property
    def compiled(self) -> bool:
        """True if the compiled iteration can solve these rows."""
        t = self.transfer
        return not (self.turned or self.held or t.tolerance or t.choice is None)

    def track(
        self, start: np.ndarray, target: np.ndarray, choice: np.ndarray | None = None, tries: int = TRIES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the last closed states (B, S) on the paths to targets, and the completed share (B,).

        Every step is certified to stay on its branch (see `kernels.newton`). The rows are chosen at the
        reference configuration unless `choice` is given. Problems with angles of cut joints, rounded
        dimensions or large rotations are not solved: all members stay at their start.
        """
        if self.compiled:
            return self.transfer.track(start, target, choice, tries)
        if self._posed is None or self.turned or self.transfer.tolerance or self._posed.choice is None:
            return start.copy(), np.zeros(len(start))
        return self._track_poses(self._posed, start, target, tries)

    def _track_poses(
        self, posed: CoordinateTransfer, start: np.ndarray, target: np.ndarray, tries: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the results of `track` by the rows of `posed`.

        Members stay at their start if they do not arrive, or their rotations from the reference configuration
        are large.
        """
        t, states, share = self.transfer, start.copy(), np.zeros(len(start))
        drawn = t.values_and_rates(t.tree.reference_state)[0]
        here = t.values_and_rates(states)[0]
        near, parts = np.ones(len(start), dtype=bool), [target[:, : self.held[0][1]]]
        for _, first, turn in self.held:
            axes = drawn[0, turn : turn + 9].reshape(3, 3)
            # R[k, j] is the component along axis k of the drawn axes of axis j
            R, began = (
                axes @ np.swapaxes(a[:, turn : turn + 9].reshape(-1, 3, 3), 1, 2) for a in (target, here)
            )
            near &= np.minimum(*(np.einsum("bkk->b", a) for a in (R, began))) >= TURN_TRACE_MIN
            parts += [target[:, first:turn], rotation_rows(R)]
        some = np.flatnonzero(near)
        if not some.size:
            return states, share
        found, done = posed.track(start[some], np.concatenate(parts, axis=1)[some], None, tries)
        error = self.residual(self.goal(target[some]), self.rows(found)[0])
        arrived = (done == 1) & (np.linalg.norm(error, axis=1) <= self.limit)
        states[some[arrived]], share[some[arrived]] = found[arrived], 1.0
        return states, share

    def solve_from(self, start: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Solve from any states (B, S); return states, residuals (B,) in units of length, and reasons."""
        states, residual = self.newton(start, self.goal(target))
        return states, residual * self.transfer.length, self.failure_reasons(states, residual)

    def certified(
        self, states: np.ndarray, steps: np.ndarray, values: np.ndarray, G: np.ndarray, error: np.ndarray
    ) -> np.ndarray:
        """Return a mask (B,) of curves that Newton–Kantorovich tests certify to be one regular branch.

        Parameters
        ----------
        states : (B, 2 K + 1, S)
            Nodes of K intervals: ends and middles alternate.
        steps : (B, 2 K + 1, M)
            Scaled steps from the first node to each.
        values, G, error : (B, 2 K + 1, P), (B, 2 K + 1, P, M), (B, 2 K + 1, P)
            Scaled rows at the nodes, and their residuals.
        """
        t = self.transfer
        used = self._kept(G[:, 0])[:, None]
        fine = np.isfinite(G).all(axis=(1, 2, 3)) & np.isfinite(error).all(axis=(1, 2))
        error = np.where(fine[:, None, None], error * used, 0.0)
        levers, mask, lengths, angles = self._levers
        moved = np.diff(steps, axis=1)
        T = (np.abs(moved[:, ::2]) + np.abs(moved[:, 1::2])) @ mask.T
        curved = 4 * np.abs(moved[:, 1::2] - moved[:, ::2]) @ mask.T
        slid = np.zeros((len(states), t.tree.size))
        for n in np.flatnonzero(~self.turning):
            here = states[..., t.tree.cols[n, lay.STATE]]
            slid[:, n] = np.abs(here - t.tree.geometry[n, lay.DRAWN].real).max(axis=1)
        lever = (levers + np.where(levers > 0, slid @ mask.T / t.scale, 0.0))[:, None] * np.ones(T.shape)
        # derivatives of |v| are bounded by those of v over powers of the smallest length on the way
        least = np.abs(values[:, 1::2, lengths]) - lever[..., lengths] * T[..., lengths]
        with np.errstate(divide="ignore"):
            ratio = np.where(least > 0, lever[..., lengths] / least, np.inf)
        second = lever.copy()
        second[..., lengths] *= np.minimum(1 + ratio, 1e9)
        lever[..., lengths] *= np.minimum(1 + ratio * (7 + ratio * (18 + 15 * ratio)), 1e9)
        # The derivatives of θ follow from those of cos θ = u·w, which are at most 1. The first is at most 1,
        # because directions turn by at most all rotations; with f = 1 / sin θ, the second is at most 2 f, the
        # third 1 + f + 6 f², and the fourth as written here, since f ≥ 1.
        least = np.sin(values[:, 1::2, angles]) - T[..., angles]
        f = np.where(least > 0, 1 / np.where(least > 0, least, 1.0), 1e9)
        second[..., angles] = np.minimum(2 * f, 1e9)
        lever[..., angles] = np.minimum(f * (18 + f * (4 + 36 * f)), 1e9)
        cubic = CUBIC_FACTOR * lever * (T**3 + 3 * T * curved)
        # loops that share no joint are certified one by one, if each has a row for every column
        few = [len(own) < len(free) for own, free in self.blocks]
        if any(few) or sum(len(free) for _, free in self.blocks) < t.tree.size:
            return np.zeros(len(states), dtype=bool)
        for own, free in self.blocks:
            g = G[:, :, own[:, None], free] * used[..., own, None]
            g[~fine] = 0.0
            bounds = second[..., own], cubic[..., own], mask[np.ix_(own, free)]
            fine &= _is_regular(g, error[..., own], *bounds)
        return fine

    @property
    def constant_rows(self) -> np.ndarray:
        """Mask (P,) of the rows with a constant gradient."""
        return self._levers[0] == 0

    @cached_property
    def _levers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Lever arms (P,) of rows, a mask (P, M) of columns, masks (P,) of lengths and angles."""
        system, tree = self.transfer.system, self.transfer.tree
        items = system.rows.item_of[system.picked]
        mask = np.zeros((len(items), tree.size))
        for row, item in enumerate(items):
            if system.levers[item]:
                mask[row, system.moving[item]] = 1
        angles = np.isin(system.picked, [sine + 1 for _, sine in system.chosen.directed])
        return np.where(angles, 1.0, system.levers[items]), mask, ROOT[system.rows.kinds[items]], angles

    def condition(self, states: np.ndarray) -> np.ndarray:
        """Return the condition (B,) of all rows."""
        return condition_number(self.rows(states)[1])

    def check(self, states: np.ndarray, within: float = LOOP_DRIFT_RTOL, key: str = "state") -> np.ndarray:
        """Return the condition (B,) of states (B, S), all of which must be closed and regular.

        Members that are NaN have the condition NaN. For `within` and `key` see
        `CoordinateTransfer.check_closed`.

        Raises
        ------
        InputError
            If states are not closed (see `CoordinateTransfer.check_closed`), or have flipped joints.
        SingularError
            If the chosen coordinates cannot drive the mechanism.
        """
        worst, t = np.full(len(states), np.nan), self.transfer
        t.check_closed(states, within=within, key=key)
        known = np.flatnonzero(np.isfinite(states).all(axis=1))
        states = states[known].real
        opposed, reasons = self._opposed(states), self.flipped(states)
        if any(reasons):
            joint = self._facing_of[opposed[opposed >= 0][0]]
            numbered, name = Numbered(known, len(worst)), t.tree.description.name
            raise open_error(name, key, reasons, numbered, known, joint=joint)
        G = self.rows(states)[1]
        worst[known] = condition_number(G)
        t.check_regular(G, worst[known], known, len(worst))
        return worst

    def newton(
        self, states: np.ndarray, goal: np.ndarray, within: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve a batch by the damped Gauss–Newton method; return states and the norms of the residuals.

        Members that move farther than `within` (B,), if given, from their start are abandoned. Redundant rows
        of rounded dimensions contradict one another: only independent rows are solved, and the residual of
        the redundant rows is measured by the tolerance.
        """
        t, began = self.transfer, states
        kept = self._kept(self.rows(states)[1]) if t.tolerance else np.ones(goal.shape)

        def rows(states: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            values, G = self.rows(states)
            used = kept[members]
            return -self.residual(goal[members], values) * used, G * used[:, :, None]

        def inside(states: np.ndarray, members: np.ndarray) -> np.ndarray:
            off = distance(t.tree, began[members], states, t.column_scale)
            return off.max(axis=1, initial=0.0) <= within[members]  # type: ignore[index]

        states, left = gauss_newton(
            rows,
            self.moved,
            states,
            rtol=PINV_RTOL,
            # no turn of more than a radian at once; slides are linear and need no limit
            step_max=np.where(self.turning, 1.0, np.inf),
            enough=1e-15 * (1 + np.abs(goal).max(axis=1, initial=0.0)),
            inside=None if within is None else inside,
            blocks=self.blocks if len(self.blocks) > 1 else None,
        )
        if t.tolerance:
            others = np.linalg.norm((goal - self.rows(states)[0]) * (1 - kept), axis=1)
            left = np.maximum(left, others * self.limit / t.tolerance)
        return states, left

    def moved(self, states: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return the states (B, S) after scaled steps (B, M) of the tree's coordinates."""
        return integrate(self.transfer.tree, states, steps * self.transfer.column_scale)

    def _kept(self, G: np.ndarray) -> np.ndarray:
        """Return an array (B, P) with 1 for rows that are solved, and 0 for redundant rows."""
        t = self.transfer
        if not t.tolerance:
            return np.ones(G.shape[:2])
        kept = np.zeros(G.shape[:2])
        kept[:, : t.size] = 1
        for b in np.flatnonzero(np.isfinite(G).all(axis=(1, 2))):
            kept[b, t.independent(G[b])] = 1
        return kept

    def residual(self, goal: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the residual `goal` − `values`, with angles of cut joints in the interval [−π, π)."""
        error = goal - values
        error[:, self.turned] = wrap_to_pi(error[:, self.turned])
        return error

    def failure_reasons(self, states: np.ndarray, residual: np.ndarray) -> list[str]:
        """Return reasons why members are not closed; '' for closed members."""
        reasons = [
            "" if left <= self.limit else self._failure_reason(states[b], left)
            for b, left in enumerate(residual)
        ]
        closed = [b for b, why in enumerate(reasons) if not why]
        for b, why in zip(closed, self.flipped(states[closed]), strict=True):
            reasons[b] = why
        return reasons

    def _failure_reason(self, state: np.ndarray, left: float) -> str:
        """Return the reason why one member is not closed."""
        t = self.transfer
        values, G = self.rows(state[None])
        kept = self._kept(G)[0, t.size :]
        closing = values[0, t.size :]
        if t.tolerance and np.linalg.norm(closing * kept) <= self.limit:
            gap = np.linalg.norm(closing * (1 - kept))
            if gap > t.tolerance:
                return (
                    f"its loops are inconsistent by {gap:.1e} (relative to its length), more than "
                    f"closure_tolerance = {t.tolerance:g} allows"
                )
        return f"out of reach by {left * t.length:.3g} {t.tree.description.units.length}"

    def strained(self, values: np.ndarray, G: np.ndarray) -> str:
        """Return text if redundant conditions are near their tolerance, else ''.

        `values` (P,) and `G` (P, M) are those of the rows at a closed state.
        """
        t = self.transfer
        closing = values[t.size :]
        if t.tolerance:
            gap = np.linalg.norm(closing * (1 - self._kept(G[None])[0, t.size :]))
            allowed, said = t.tolerance, f"closure_tolerance = {t.tolerance:g} allows"
        else:
            gap, allowed = np.linalg.norm(closing), self.limit
            said = f"{allowed:.0e} of its length. Give closure_tolerance if its dimensions are rounded"
        return f"from there on its loops are inconsistent by more than {said}" if 2 * gap > allowed else ""

    def flipped(self, states: np.ndarray) -> list[str]:
        """Return text on the flipped joint of each member; '' without a flipped joint."""
        describe = self.transfer.tree.description._describe
        return [
            f"{describe(self._facing_of[k])} closed the wrong way round: its two axes oppose each other"
            if k >= 0
            else ""
            for k in self._opposed(states)
        ]

    def _opposed(self, states: np.ndarray) -> np.ndarray:
        """Return the index (B,) of the most opposed pair of directions that must agree; -1 for none."""
        if self._facing is None or not len(states):
            return np.full(len(states), -1)
        values = self._facing.arrays(states)[0].real
        return np.where(values.min(axis=1) < 0, values.argmin(axis=1), -1)


def _is_regular(
    G: np.ndarray, error: np.ndarray, second: np.ndarray, cubic: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Return a mask (B,) of curves that pass the tests of `Closure.certified`, for one block of its rows.

    `second` and `cubic` (B, K, P) bound second derivatives of the rows and errors of interpolation.
    """
    Q, R = np.linalg.qr(G[:, 1::2])
    diagonal = np.abs(np.einsum("bkii->bki", R))
    fine = (diagonal > 1e-14 * diagonal.max(axis=2, keepdims=True)).all(axis=(1, 2))
    R[~fine] = np.eye(R.shape[-1])
    A = np.linalg.solve(R, np.swapaxes(Q, -1, -2))
    sums = np.abs(A)
    weights = sums.sum(axis=3)
    kappa, eta = np.zeros(weights.shape), np.abs(np.einsum("bknp,bkp->bkn", A, error[:, 1::2]))
    for k in (0, 2):
        ends = slice(k, k + G.shape[1] - 2, 2)
        change = np.abs(A @ (G[:, ends] - G[:, 1::2]))
        kappa = np.maximum(kappa, np.einsum("bknm,bkm->bkn", change, weights))
        eta = np.maximum(eta, np.abs(np.einsum("bknp,bkp->bkn", A, error[:, ends])))
    W = weights @ mask.T
    kappa += np.einsum("bknp,bkp->bkn", sums, cubic * W)
    eta = 1.25 * eta + np.einsum("bknp,bkp->bkn", sums, cubic)
    bound = np.einsum("bknp,bkp->bkn", sums, second * W**2)
    kappa, eta, bound = ((a / weights).max(axis=2) for a in (kappa, eta, bound))
    return fine & ((kappa < 1) & (4 * bound * eta < (1 - kappa) ** 2)).all(axis=1)
