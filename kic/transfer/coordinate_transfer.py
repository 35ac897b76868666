"""Transfer of generalized coordinates: coefficients of the tree's coordinates φ with respect to chosen q.

Chosen rows s(φ) = q and independent rows of the closure c(φ) = 0 are stacked into one square system w(φ).
To first order G^w A = [1; 0]; to second G^w B = −H^w(A, A); to third likewise: the matrix is the same at
every order. A compiled kernel solves it with the closure rows that a pivoted QR of scaled rows finds to be
independent in the drawing. Postures where these serve badly get a second look, with rows of their own and a
condition, by which they are answered or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kic.errors import InputError, SingularError
from kic.kernels.layout import GOOD_PIVOT, LARGEST, LEFT, PIVOT
from kic.kinematics.items import Item
from kic.kinematics.outputs import Rows
from kic.kinematics.state import integrate, reference_states
from kic.kinematics.tree import Tree
from kic.transfer.conditioning import ROUNDING_FACTOR, error_amplification, position_amplification
from kic.transfer.constraint_system import (
    REDUNDANT_ROW_ATOL,
    ConstraintSystem,
    TransferQuery,
    TransferResult,
    curvature,
    curvature_query,
    elimination_order,
    no_forces,
    system_query,
    values_and_rates,
)

# a pivot below this share of the largest is no row of its own: closed postures are known to about 1e-13
RANK_SHARE = 1e-9
# a system worse than this has lost too many digits to be called an answer
WORST_CONDITION = 1e12
# share of an answer that may be lost to a closure that is nearly singular in itself
DIGITS_LOST = 1e-4
# steps that are tried on a way whose end is taken to be near
TRIES = 100
_EPS = float(np.finfo(float).eps)


class CoordinateTransfer:
    """From a tree to the coordinates of some names, for any posture of the mechanism.

    Parameters
    ----------
    tree : Tree
        The spanning tree.
    names : tuple of str
        Rows that are the coordinates: joints, points, body motion, distances, or single rows of them.
    length : float
        Characteristic length of the mechanism.
    tolerance : float
        Relative length within which a redundant closure row may contradict the others.
    held : list of Item
        Further chosen rows, without names: those of bodies whose pose is given.
    """

    def __init__(
        self,
        tree: Tree,
        names: tuple[str, ...],
        length: float,
        tolerance: float = 0.0,
        held: Sequence[Item] = (),
    ) -> None:
        self.tree = tree
        self.names = names
        self.system = ConstraintSystem(tree, names, length, tolerance, held)
        self.length, self.tolerance = length, tolerance
        self.labels = self.system.chosen.labels
        self.first = self.system.first
        self.scale, self.column_scale = self.system.scale, self.system.column_scale
        self.owners = self.system.owners
        # what else there is to say of coordinates that can not drive, by those who know the mechanism
        self.remark: Callable[[], str] = str

    def amplification(self, pivot: np.ndarray | None) -> Any:
        """Estimate by how much errors of rounding grow in coefficients, from the smallest pivots (...).

        Rows are computed in the coordinates of the whole: small loops are known less well than it.
        """
        small = self.length / self.system.smallest
        return small if pivot is None else small / np.where(pivot > 0, pivot, 1.0)

    @property
    def chosen(self) -> Rows:
        """The rows that are the coordinates."""
        return self.system.chosen

    @property
    def holonomic(self) -> bool:
        """Whether every chosen coordinate has a value."""
        return self.system.holonomic

    @cached_property
    def _own(self) -> TransferQuery:
        return system_query(self.system)

    def values_and_rates(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (B, P) of the chosen rows and then all closure rows, and their G^w (B, P, M), unscaled."""
        return values_and_rates(self._own, states)

    def newton_local(
        self, start: np.ndarray, target: np.ndarray, choice: np.ndarray | None = None, tries: int = TRIES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Track closed states (B, S) to targets (B, P), in steps that are proved to stay on their branch.

        Returns
        -------
        states : (B, S)
            The last closed states on the way.
        share : (B,)
            The part of the way that was made: 1 for members that arrived.
        """
        aims, rest, drawn = self._aims
        goal = np.empty((len(start), len(rest)))
        goal[:], goal[:, aims] = rest, target + drawn
        states, share = start.copy(), np.empty(len(start))
        self._own.newton_local(states, goal, self.choice if choice is None else choice, share, tries)
        return states, share

    @cached_property
    def _aims(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the chosen rows stand among all, the goal of all, and that of the chosen for zeros."""
        aims, goal = self.system.picked[: self.first], self.system.goal
        return aims, goal, goal[aims]

    @cached_property
    def _bent(self) -> TransferQuery:
        return curvature_query(self.system)

    def curvature(self, states: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """H(φ', φ') (B, P) of the chosen rows and then all closure rows along rates φ' (B, M), unscaled."""
        return curvature(self._bent, states, rates)

    @cached_property
    def _only(self) -> dict[int, TransferQuery]:
        return {}

    def solve(self, states: np.ndarray, order: int) -> TransferResult:
        """A, B, C of the tree's coordinates at states (B, S), as far as asked; see `answer`."""
        question = self._only.get(order)
        if question is None:
            question = self._only[order] = TransferQuery(self.system, order, keep=True)
        return self.answer(question, states)

    @cached_property
    def choice(self) -> np.ndarray | None:
        """Rows and order of elimination that serve wherever they are regular: those of the drawing."""
        return self.choice_at(reference_states(self.tree))

    def choice_at(self, state: np.ndarray) -> np.ndarray | None:
        """Those of a closed state (1, S); None where its closure conditions depend on one another."""
        G = self.values_and_rates(state)[1][0]
        scaled = G / self.system.scale[:, None] * self.system.column_scale
        try:
            use = self._choice(scaled)
        except SingularError:
            return None
        return self._packed(scaled[use], use)

    def _packed(self, scaled: np.ndarray, use: np.ndarray) -> np.ndarray:
        """The kernel's table of a choice, with an order of elimination that keeps zeros."""
        rows, columns = elimination_order(scaled)
        return self.system.packed_choice(use[rows], columns)

    def rank(self, states: np.ndarray) -> int:
        """Number of independent closure rows at one posture (1, S)."""
        if not self.owners:
            return 0
        return len(
            self.independent(
                self.values_and_rates(states)[1][0] / self.system.scale[:, None] * self.system.column_scale
            )
        )

    def dof(self, states: np.ndarray) -> tuple[int, bool]:
        """Return the degrees of freedom to first order at one configuration (1, S), and if they are certain.

        They are certain if nothing moves, or if the closure rows are independent but for those that vanish
        because all motion is in one plane: the rank is then constant nearby.
        """
        if not self.owners:
            return self.tree.size, True
        G = self.values_and_rates(states)[1][0] / self.system.scale[:, None] * self.system.column_scale
        rank = len(self.independent(G))
        rows = G[self.first :]
        if self.tree.planar_normal is not None:
            # rows out of the plane vanish everywhere; others may vanish at a singular configuration
            step = self.column_scale * np.sin(1.0 + np.arange(self.tree.size))
            apart = self.values_and_rates(integrate(self.tree, states, step[None]))[1][0]
            size = np.abs(apart / self.system.scale[:, None] * self.system.column_scale).max(
                axis=1, initial=0.0
            )
            rows = rows[size[self.first :] > RANK_SHARE]
        return self.tree.size - rank, rank in (self.tree.size, len(rows))

    def independent(self, G: np.ndarray) -> np.ndarray:
        """Closure rows that are independent at one posture, from scaled G (P, M)."""
        shares, pivot = self.shares(G)
        return np.sort(pivot[: self.count(shares)]) + self.first

    def shares(self, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What closure conditions are worth, from scaled G (P, M), best first: pivots of a QR, and the rows.

        Each pivot is what its row has beyond the rows before it, as a share of the largest. Where the largest
        is rounding itself, as out of the plane of a planar mechanism, no condition is worth anything.
        """
        closing = G[self.first :].real
        if not len(closing):
            return np.empty(0), np.empty(0, dtype=np.intp)
        from scipy.linalg import qr

        R, pivot = qr(closing.T, mode="r", pivoting=True)
        diagonal = np.abs(np.diag(R))
        largest = diagonal[0] if diagonal.size else 0.0
        return diagonal / largest if largest > RANK_SHARE else 0 * diagonal, pivot

    def count(self, shares: np.ndarray) -> int:
        """How many conditions are independent."""
        return int((shares > max(RANK_SHARE, self.tolerance)).sum())

    def answer(
        self,
        question: TransferQuery,
        states: np.ndarray,
        applied: np.ndarray | None = None,
        out: TransferResult | None = None,
    ) -> TransferResult:
        """Answers of a question at states (B, S), every member looked at.

        Raises
        ------
        SingularError
            If the coordinates can not drive the mechanism at a posture, or its loops are singular there.
        """
        if states.dtype.kind == "O":
            raise InputError(
                "Symbols are answered in the coordinates of an open chain itself; a transfer to others "
                "chooses rows by their size and needs numbers. Put numbers in first."
            )
        applied = no_forces() if applied is None else applied
        out = question.blank(len(states), states.dtype) if out is None else out
        if not len(states):
            return out
        choice = self.choice
        if choice is None or question.run_into(out, states, applied, choice):
            q = out.quality
            suspect = ~(q[:, PIVOT] > GOOD_PIVOT) if choice is not None else np.ones(len(states), bool)
            if choice is not None:
                suspect |= ~(q[:, LEFT : LEFT + question.order] <= question.allowed).all(axis=1)
            self._second_look(question, states, applied, out, np.flatnonzero(suspect))
        return out

    def _second_look(
        self,
        question: TransferQuery,
        states: np.ndarray,
        applied: np.ndarray,
        out: TransferResult,
        members: np.ndarray,
    ) -> None:
        """Members near a singular posture: rows chosen for each, what is lost judged by condition."""
        order, size = question.order, self.first
        G = self.values_and_rates(states[members])[1]
        if not np.isfinite(G).all():
            raise InputError(
                f"Coordinates {', '.join(self.labels)} have no derivatives here: a distance of them is zero.",
                coordinates=self.labels,
            )
        scaled = G / self.system.scale[:, None] * self.system.column_scale
        use = self._rows_of_each(scaled, members)
        taken = np.take_along_axis(scaled, use[:, :, None], axis=1).real
        condition = np.linalg.cond(taken)
        self.check_regular(scaled, condition, members, len(states))
        if size < self.tree.size:
            self._check_bifurcation(states, taken, use, order, members)
        for k, b in enumerate(members):
            one = slice(b, b + 1)
            part = out.members(one)
            force = applied[one] if len(applied) == len(states) else applied
            question.run_into(part, states[one], force, self._packed(scaled[k, use[k]], use[k]))
        if self.system.left_out:
            self._check_left_out(out.quality[members], condition, order, members)

    def _rows_of_each(self, scaled: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Rows (B, M) of the square system: the chosen ones and independent closure rows.

        Members share the choice of the first; it is made anew where that would not do.
        """
        count, mobile = len(scaled), self.tree.size
        use = np.zeros((count, mobile), dtype=np.intp)
        if not count:
            return use
        use[:] = self._choice(scaled[0], members[:1])
        if count > 1 and self.owners:
            for b in np.flatnonzero(~(np.linalg.cond(scaled[:, use[0]].real) < 1e4)):
                use[b] = self._choice(scaled[b], members[b : b + 1])
        return use

    def _choice(self, scaled: np.ndarray, member: Sequence[int] | np.ndarray = ()) -> np.ndarray:
        """Rows of the square system at one posture."""
        rows = np.concatenate([np.arange(self.first), self.independent(scaled)])
        if len(rows) != self.tree.size:
            freedoms = self.tree.size - (len(rows) - self.first)
            if freedoms < self.first:
                self._refuse_contradiction(scaled, freedoms, member)
            raise SingularError(
                f"Closure conditions of '{self.tree.description.name}' depend on one another at this posture: it "
                f"has {freedoms} freedoms here, and {self.first} coordinates were named: "
                f"{', '.join(self.labels)}. Move off this posture, where several motions meet.",
                freedoms=freedoms,
                coordinates=self.labels,
                failed=list(member),
            )
        return rows

    def _refuse_contradiction(
        self, scaled: np.ndarray, freedoms: int, member: Sequence[int] | np.ndarray
    ) -> None:
        """Closure conditions hold the mechanism more than its mobility says."""
        shares = self.shares(scaled)[0]
        least = float(shares[self.count(shares) - 1])
        raise SingularError(
            f"Loops of '{self.tree.description.name}' contradict each other here: they leave {freedoms} freedoms "
            f"to first order, and {self.first} coordinates were named: {', '.join(self.labels)}. The weakest "
            f"condition counts {least:.1e} of the strongest, closure_tolerance is {self.tolerance:g}. Mend "
            "the dimensions or the state, or give a larger closure_tolerance if they are rounded.",
            freedoms=freedoms,
            coordinates=self.labels,
            share=least,
            failed=list(member),
        )

    def _check_bifurcation(
        self, states: np.ndarray, taken: np.ndarray, use: np.ndarray, order: int, members: np.ndarray
    ) -> None:
        """Refuse orders that have lost their digits to loops that are nearly singular in themselves."""
        size, lost = self.first, np.zeros(len(members))
        condition = np.linalg.cond(taken[:, size:])
        for k in np.flatnonzero(ROUNDING_FACTOR * _EPS * condition**order > DIGITS_LOST):
            A = np.linalg.solve(taken[k], np.eye(self.tree.size, size))
            curvature = self._curvature_at(states[members[[k]]], use[k, size:])
            lost[k] = error_amplification(taken[k, size:], A, curvature, order)
        if lost.max() > DIGITS_LOST:
            worst = int(np.argmax(lost))
            raise SingularError(
                f"Loops of '{self.tree.description.name}' are nearly singular here (condition "
                f"{condition[worst]:.0e} of the closure alone): order {order} may be wrong by "
                f"{lost[worst]:.0e} of itself. Move off this posture, where several motions meet, or ask for "
                "a lower order.",
                condition=float(condition[worst]),
                estimate=float(lost[worst]),
                failed=members[lost > DIGITS_LOST].tolist(),
            )

    def _curvature_at(self, state: np.ndarray, rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that computes H(x, x) (n, R) of some rows at a state (1, S), scaled."""

        def curvature_along(rates: np.ndarray) -> np.ndarray:
            here = state.repeat(len(rates), axis=0)
            return self.curvature(here, rates * self.column_scale)[:, rows].real / self.scale[rows]

        return curvature_along

    def check_position_error(
        self, states: np.ndarray, quality: np.ndarray, order: int, inputs: CoordinateTransfer
    ) -> np.ndarray:
        """Return relative errors (B,) of coefficients that the error of solved states (B, S) causes.

        States that were solved for values of `inputs` have errors of about eps times the condition of these
        rows. Coefficients amplify them by their own condition. Members far from singular configurations have
        the error 0.

        Raises
        ------
        SingularError
            If an error exceeds `DIGITS_LOST`; it carries `condition`, `estimate` and the `failed` members.
        """
        errors, conditions = np.zeros(len(states)), np.ones(len(states))
        members = np.flatnonzero(~(quality[:, PIVOT] > GOOD_PIVOT))
        if not members.size or states.dtype != np.float64:
            return errors
        scaled = self.values_and_rates(states[members])[1] / self.system.scale[:, None] * self.column_scale
        use = self._rows_of_each(scaled, members)
        taken = np.take_along_axis(scaled, use[:, :, None], axis=1)
        rows = inputs.values_and_rates(states[members])[1] / inputs.scale[:, None] * inputs.column_scale
        for k, b in enumerate(members):
            curvature = self._curvature_at(states[[b]], use[k])
            A = np.linalg.solve(taken[k], np.eye(self.tree.size, self.first))
            errors[b] = position_amplification(rows[k], taken[k], A, curvature, order)
            conditions[b] = np.linalg.cond(taken[k])
        failed = np.flatnonzero(errors > DIGITS_LOST)
        if failed.size:
            worst = int(np.argmax(errors))
            raise SingularError(
                f"Coefficients of '{self.tree.description.name}' amplify the rounding error of the solved "
                f"configuration here (condition {conditions[worst]:.0e} of {', '.join(self.labels)} and the "
                f"loops): order {order} may be wrong by {errors[worst]:.0e} of itself. Move off this "
                "configuration, or use other coordinates.",
                condition=float(conditions[worst]),
                estimate=float(errors[worst]),
                coordinates=self.labels,
                failed=failed.tolist(),
            )
        return errors

    def _check_left_out(
        self, quality: np.ndarray, condition: np.ndarray, order: int, members: np.ndarray
    ) -> None:
        """Closure rows that were left out must hold by themselves, at every order."""
        worst = quality[:, LEFT : LEFT + order]
        large = np.maximum(quality[:, LARGEST : LARGEST + order], 1.0)
        allowed = large * (1e3 * _EPS * condition + 10 * self.tolerance)[:, None]
        bad = np.argwhere(~(worst <= np.maximum(allowed, REDUNDANT_ROW_ATOL)))
        if bad.size:
            b, k = bad[0]
            raise SingularError(
                f"Loops of '{self.tree.description.name}' contradict each other here: closure rows that should "
                f"follow from the others miss by {worst[b, k]:.1e} (condition {condition[b]:.1e}). Mend the "
                "dimensions or the state, or give closure_tolerance if they are rounded.",
                residual=float(worst[b, k]),
                condition=float(condition[b]),
                failed=members[np.unique(bad[:, 0])].tolist(),
            )

    def check_regular(
        self, scaled: np.ndarray, condition: np.ndarray, members: np.ndarray, count: int
    ) -> None:
        """Refuse coordinates that can not drive the mechanism at some posture, and say which can.

        Parameters
        ----------
        scaled, condition : (B, P, M), (B,)
            First order of the rows, and its condition.
        members, count : (B,) int, int
            Which members of how many these are.

        Raises
        ------
        SingularError
            It carries `condition`, `coordinates`, those `possible`, and the `failed` members.
        """
        failed = np.flatnonzero(~(condition < WORST_CONDITION))
        if not failed.size:
            return
        worst = int(failed[0])
        others = self.admissible_inputs(scaled[worst])
        hint = f" {self.remark()}".rstrip()
        hint += f" Possible here: {'; '.join(others)}." if others else ""
        several = "members" if failed.size > 1 else "member"
        few = ", ".join(map(str, members[failed[:4]])) + (", …" if failed.size > 4 else "")
        which = f" ({several} {few} of {count})" if count > 1 else ""
        raise SingularError(
            f"Coordinates {', '.join(self.labels)} cannot drive '{self.tree.description.name}' here{which} "
            f"(condition {condition[worst]:.0e}): while they stand still, {self.unconstrained_coordinates(scaled[worst])} can "
            f"move.{hint}",
            condition=float(condition[worst]),
            coordinates=self.labels,
            possible=others,
            failed=members[failed].tolist(),
        )

    def unconstrained_coordinates(self, scaled: np.ndarray) -> str:
        """Names of the tree's coordinates that move most where the rows give way, from scaled G (P, M)."""
        from kic.transfer.input_selection import unconstrained_coordinates

        return unconstrained_coordinates(self.tree, scaled, RANK_SHARE)

    def admissible_inputs(self, scaled: np.ndarray) -> list[str]:
        """Sets of the tree's coordinates that can drive the mechanism, from scaled G (P, M)."""
        from kic.transfer.input_selection import admissible_inputs

        return admissible_inputs(self.tree, scaled[self.independent(scaled)].real)
