"""Transfer of generalized coordinates: coefficients of the tree's coordinates φ with respect to chosen q.

Chosen rows s(φ) = q and independent rows of the closure c(φ) = 0 are stacked into one square system w(φ)
(4-8 to 4-17). To first order G^w A = [1; 0] (3-15, 4-18, 4-19); to second G^w B = −H^w(A, A) (3-19, 4-20 to
4-23); to third likewise (3-47). The matrix is the same at every order.

A compiled kernel solves the system with the closure rows that are independent in the reference
configuration. Where these are ill-conditioned, rows are chosen again for the configuration, and an error is
raised if they are ill-conditioned too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kic.dynamics.dynamics import moved_error
from kic.errors import InputError, SingularError, coordinates_named, counted
from kic.kernels import layout as lay
from kic.kinematics.euler import check_gimbal, gimbal_condition
from kic.kinematics.items import LINEAR, Item
from kic.kinematics.queries import Query, kernel, output_query
from kic.kinematics.tree import Tree
from kic.numerics.caches import without_caches
from kic.numerics.linalg import condition_number
from kic.numerics.tolerances import CONDITION_MAX, DIGITS_LOST, EPS, ROUNDING_FACTOR
from kic.transfer.conditioning import error_amplification, position_amplification
from kic.transfer.constraint_system import (
    REDUNDANT_ROW_ATOL,
    ZERO_SHARE,
    ConstraintSystem,
    elimination_order,
    row_scales,
    system_query,
)
from kic.transfer.program import LAYOUT, Numbered, Program, Table
from kic.transfer.rank import RANK_SHARE, condition_shares, count_independent, independent_rows

if TYPE_CHECKING:
    from kic.transfer.closure import Closure
    from kic.transfer.mobility.mobility import Mobility

# largest numbers of steps on a path to a near target, and to any target
TRIES, TRIES_MAX = lay.TRIES, 4000


def open_error(
    name: str, key: str, reasons: Sequence[str], numbered: Numbered, failed: np.ndarray, **numbers: Any
) -> InputError:
    """Return the error for states that do not close the loops: those with a reason other than ''."""
    bad = [k for k, why in enumerate(reasons) if why]
    return InputError(
        f"A state of '{name}' must be closed{numbered.named(bad[0])}, but {reasons[bad[0]]}. Close it with "
        "at(), use states of Configuration.state, or shorten the time step.",
        key=key,
        failed=failed[bad].tolist(),
        **numbers,
    )


class NewtonTables(NamedTuple):
    """Arguments of the kernel that closes the loops.

    Parameters
    ----------
    query : Query
        Query of all rows of the system.
    chosen : (m,) ndarray or slice
        Rows that are the coordinates.
    goal : (height,) ndarray
        Values of all rows with loops closed and coordinates zero.
    origin : (m,) ndarray
        Values of the chosen rows at zero coordinates.
    """

    query: Query
    chosen: np.ndarray | slice
    goal: np.ndarray
    origin: np.ndarray


class CoordinateTransfer:
    """Transfer from a tree to named coordinates, for any configuration of the mechanism.

    The tensors of the tree (4-3) to (4-5) are not formed. Parallel mechanisms, built in (4-42) to (4-64) from
    models of their legs, need no special method: all loops enter one system.

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
        Further chosen rows, without names: those of bodies with a given pose.
    """

    def __init__(
        self,
        tree: Tree,
        names: tuple[str, ...],
        length: float,
        tolerance: float = 0.0,
        held: Sequence[Item] = (),
        account: Callable[[], Mobility] | None = None,
    ) -> None:
        self.tree, self.account = tree, account
        self.names = names
        self.system = ConstraintSystem(tree, names, length, tolerance, held)
        self.length, self.tolerance = length, tolerance
        # rows that are the coordinates
        self.chosen = self.system.chosen
        self.labels, self.holonomic = self.chosen.labels, self.chosen.holonomic
        self.has_euler = bool(self.chosen.euler or self.chosen.directed)
        # rounding is relative to the whole mechanism, and larger relative to a small loop
        self.growth = length / self.system.smallest
        # number of the coordinates
        self.size = self.system.n_chosen
        self.scale, self.column_scale = self.system.scale, self.system.column_scale
        self.owners = self.system.owners

    __getstate__ = without_caches

    # the kernels write tensors in the order of the coordinates, and solve a system
    permutation = linear = None
    has_complex_step = False

    @cached_property
    def is_compiled(self) -> bool:
        """True if one kernel call evaluates any regular configuration without further checks."""
        return self.choice is not None and not self.has_euler

    @cached_property
    def row_sizes(self) -> np.ndarray:
        """Characteristic sizes (M,) of the coordinates; read-only."""
        sizes = row_scales(self.tree, self.chosen, self.length)
        sizes.flags.writeable = False
        return sizes

    @property
    def coordinate_scale(self) -> np.ndarray:
        """Scale (M,) of each coordinate in the equations that are solved."""
        return self.scale[: self.size]

    @cached_property
    def quasi(self) -> frozenset[str]:
        """Set of the coordinates that have rates but no values."""
        rows = self.chosen
        return frozenset(label for label, has in zip(rows.labels, rows.valued, strict=True) if not has)

    @property
    def _name(self) -> str:
        return self.tree.description.name

    @cached_property
    def linear_map(self) -> np.ndarray | None:
        """Map A (M, m) if all rows are linear, so that it is constant; else None."""
        if not LINEAR[self.system.rows.kinds].all() or self.choice is None:
            return None
        scaled = self.scaled_rates(self.tree.reference_state)[0]
        if scaled.shape[0] != self.tree.size or not condition_number(scaled[None])[0] < CONDITION_MAX:
            return None
        A = np.linalg.solve(scaled, np.eye(self.tree.size, self.size))
        A[np.abs(A) < ZERO_SHARE * np.abs(A).max(axis=1, keepdims=True, initial=0.0)] = 0
        for n in self.tree.balls:  # its columns must be coordinates
            if not ((A[n : n + 3] != 0).sum(axis=1) == 1).all():
                return None
        return A * self.column_scale[:, None] / self.scale[: self.size]

    @cached_property
    def own(self) -> Query:
        """Query for values and first order of the system's rows in the tree's coordinates."""
        return system_query(self.system, 1)

    def values_and_rates(
        self, states: np.ndarray, query: Query | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return values (B, P) of the chosen rows and then all closure rows, and G^w (B, P, M), unscaled.

        `query` replaces the query for the rows if their constants differ from those of the system.
        """
        system = self.system
        height, size = system.rows.height, system.tree.size
        T = np.empty((len(states), height * (1 + size)), states.dtype)
        (query or self.own).run(states, out=T, entry="first_order")
        values = system.rows.complete(T[:, :height].copy())
        G = T[:, height:].reshape(len(states), height, size)
        return values[:, system.picked], G[:, system.picked]

    def track(
        self,
        start: np.ndarray,
        target: np.ndarray,
        choice: np.ndarray | None = None,
        tries: int = TRIES,
        query: Query | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Continue closed states (B, S) to targets (B, P), in steps that are proved to stay on their branch.

        `query` replaces the query for the rows if their constants differ from those of the system.

        Returns
        -------
        states : (B, S)
            Last closed state of each member.
        share : (B,)
            Completed share of the path: 1 for members that converged.
        """
        own, chosen, closed, origin = self.newton_tables
        query = query or own
        count, choice = len(start), self.choice if choice is None else choice
        states, share, goal = start.copy(), np.empty(count), np.empty((count, len(closed)))
        goal[:] = closed
        goal[:, chosen] = target + origin

        def work(a: int, b: int) -> None:
            scratch, whole = np.empty(query.closing_scratch), np.empty((2, self.tree.size), np.int64)
            part = states[a:b], goal[a:b], choice, scratch, whole, share[a:b]
            kernel("closing")(query.plan, query.numbers, *part, tries)

        if count == 1:  # the hot path
            scratch, whole = np.empty(query.closing_scratch), np.empty((2, self.tree.size), np.int64)
            part = states, goal, choice, scratch, whole, share
            kernel("closing")(query.plan, query.numbers, *part, tries)
        else:
            query.over_members(work, count)
        return states, share

    @cached_property
    def newton_tables(self) -> NewtonTables:
        """Named tuple of arguments of the kernel that closes the loops."""
        chosen, goal = self.system.picked[: self.size], self.system.goal
        first = slice(self.size)  # faster than an array of indices
        consecutive = bool((chosen == np.arange(self.size)).all())
        return NewtonTables(self.own, first if consecutive else chosen, goal, goal[chosen])

    @cached_property
    def _bent(self) -> Program:
        return Program(self, order=2, want=lay.WANT_CURVATURE)

    def curvature(self, states: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Return H(φ', φ') (B, P) of the chosen and closure rows along rates φ' (B, M), unscaled."""
        out = self._bent.table(len(states), states.dtype)
        out.T = np.empty((len(states), self.system.rows.height), states.dtype)
        out.X = np.require(rates, states.dtype, LAYOUT)
        self._bent.launch(out, states, np.zeros((1, 0, 3), states.dtype), self.system.no_choice())
        return out.T[:, self.system.picked]

    @cached_property
    def _programs(self) -> dict[tuple[bool, int], Program]:
        return {}

    def _program(self, along: bool, order: int) -> Program:
        """Return the program for φ to an order, as coefficients or as a series along motions."""
        found = self._programs.get((along, order))
        if found is None:
            want = lay.WANT_SERIES if along else 0
            found = Program(self, order=order, want=want, along=along, keep=not along)
            self._programs[along, order] = found
        return found

    def solve(self, states: np.ndarray, order: int) -> Table:
        """Solve for φ, A, B, C of the tree's coordinates at states (B, S), up to order 1, 2 or 3."""
        return self._program(False, order).run(states)

    def jets(self, states: np.ndarray, order: int) -> list[np.ndarray]:
        """Return A (n, M, m), B (n, M, m, m), … of the tree's coordinates at states (n, S), up to an order.

        They are the columns of the chosen rows in (4-18), (4-19), and in (3-19) and (3-47) for the system w.
        """
        X, start, made = self.solve(states, order).X, self.tree.size, []
        for k in range(1, order + 1):
            stop = start + self.tree.size * self.size**k
            made.append(X[:, start:stop].reshape(len(states), self.tree.size, *(self.size,) * k))
            start = stop
        return made

    def tree_rates(self, states: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the rates φ̇ = A q̇ (B, M) of the tree's coordinates (3-12), from q̇ (B, m)."""
        (A,) = self.jets(states, 1)
        return np.einsum("bni,bi->bn", A, qd)

    def tree_motion(
        self, states: np.ndarray, *rates: np.ndarray, origin: Any = None, closed: Numbered | None = None
    ) -> np.ndarray:
        """Return the series φ̇, φ̈ = A q̈ + q̇ᵀ B q̇ and φ⃛ (order, B, M) of the tree, (3-11) to (3-13).

        `rates` are two or three of q̇, q̈ and q⃛ (B, m). For `origin` and `closed` see `Program.run`.
        """
        order, size = len(rates), self.tree.size
        if not self.size:  # a structure
            if closed is not None:
                self.check_closed(states, closed)
            return np.zeros((order, len(states), size))
        dtype = np.result_type(states, *rates)
        states, *given = [np.require(a, dtype, LAYOUT) for a in (states, *rates)]
        T = self._program(True, order).run(states, *given, origin=origin, closed=closed).T
        return np.ascontiguousarray(T[:, self.size :].reshape(len(T), order, size).swapaxes(0, 1))

    def in_coordinates(self, tensors: list[np.ndarray], ranks: Iterable[int]) -> list[np.ndarray]:
        """Return the tensors unchanged: they have the order of the coordinates."""
        return tensors

    def inertia_error(self, error: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the error (B, m) of the diagonal of I* from the error (M,) in the tree's coordinates."""
        return moved_error(error, self.jets(states, 1)[0])

    def tree_table(self, states: np.ndarray) -> np.ndarray | None:
        """Return the table of φ, A and B (B, n) for the kernel of `Configuration.body_contributions`."""
        return self.solve(states, 2).X

    def condition(self, states: np.ndarray, closure: Callable[[tuple[str, ...]], Closure]) -> np.ndarray:
        """Return the condition (B,) of states that must be closed and regular; see `Closure.check`.

        `closure` returns the position problem of named coordinates.
        """
        return closure(self.names).check(states, self.system.closed_within)

    @cached_property
    def choice(self) -> np.ndarray | None:
        """Chosen rows and order of elimination at the reference configuration; None if it is singular."""
        return self.choice_at(self.tree.reference_state)

    def choice_at(self, state: np.ndarray) -> np.ndarray | None:
        """Return chosen rows and order of elimination at a closed state (1, S); None if it is singular."""
        scaled = self.scaled_rates(state)[0]
        if not np.isfinite(scaled).all():  # Euler angles in gimbal lock
            return None
        try:
            use = self._choice(scaled)
        except SingularError:
            return None
        return self._packed(scaled[use], use)

    def _packed(self, scaled: np.ndarray, use: np.ndarray) -> np.ndarray:
        """Return the kernel's table of rows `use`, with an order of elimination that preserves sparsity."""
        rows, columns = elimination_order(scaled)
        return self.system.packed_choice(use[rows], columns)

    def scaled_rates(self, states: np.ndarray) -> np.ndarray:
        """Return the scaled G^w (B, P, M) of the chosen rows and then all closure rows."""
        return self.values_and_rates(states)[1] / self.system.scale[:, None] * self.system.column_scale

    def first_order(self, state: np.ndarray) -> np.ndarray:
        """Return the scaled G^w (P, M) of the chosen and then all closure rows at a real state (S,)."""
        own, system = self.own, self.system
        height, size = system.rows.height, system.tree.size
        T = np.empty((1, height * (1 + size)))
        kernel("first_order")(own.plan, own.numbers_in(state.dtype), state[None], np.empty(own.scratch), T)
        G = T[0, height:].reshape(height, size)[system.picked]
        return np.asarray(G / self.scale[:, None] * self.column_scale)

    def independent(self, G: np.ndarray) -> np.ndarray:
        """Return the closure rows that are independent at one configuration, from scaled G (P, M)."""
        return independent_rows(G[self.size :], self.tolerance) + self.size

    def shares(self, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the share of each closure condition, from scaled G (P, M); see `condition_shares`."""
        return condition_shares(G[self.size :])

    def gimbal_error(self, states: np.ndarray, order: int) -> np.ndarray:
        """Return the relative errors (B,) that Euler angles among the coordinates cause in an order.

        A rotation of size one is assumed for their direction cosines, see `gimbal_errors`.

        Raises
        ------
        InputError
            If two directions of an angle are parallel.
        SingularError
            If an error exceeds `DIGITS_LOST`.
        """
        rows = self.chosen
        values = self._directions.arrays(states)[0]
        rows.check_directions(values)
        if not rows.euler:
            return np.zeros(len(states))
        error = ROUNDING_FACTOR * EPS * gimbal_condition(rows.euler, values) ** (order + 1)
        return check_gimbal(self._name, rows.labels, error)

    @cached_property
    def _directions(self) -> Query:
        return output_query(self.tree, self.chosen, 1)

    def check_closed(
        self,
        states: np.ndarray,
        numbered: Numbered | None = None,
        within: float | None = None,
        key: str = "state",
    ) -> None:
        """Check that finite states (B, S) close the loops.

        Parameters
        ----------
        states : (B, S) ndarray
            States; those that are not finite are not checked.
        numbered : Numbered, optional
            Indices of the states in their batch, for the error text.
        within : float, optional
            Largest allowed scaled residual, at least `closure_tolerance`; by default that of states given to
            evaluators.
        key : str
            Argument that holds the states.

        Raises
        ------
        InputError
            If states do not close; the error carries `key`, `failed`, `joint`, and the `residual` of the
            first, as a share of the length of its loop, or in rad.
        """
        if not self.owners:
            return
        allowed = self.system.closed_within if within is None else max(within, self.tolerance)
        values = np.abs(self.values_and_rates(states)[0][:, self.size :].real / self.scale[self.size :])
        left = values.max(axis=1, initial=0.0)
        is_open = (left > allowed) & np.isfinite(states).all(axis=1)
        if not is_open.any():
            return
        first = int(np.argmax(is_open))
        joint = self.owners[int(np.argmax(values[first]))]
        why = (
            f"'{joint}' is open by {left[first]:.1e} (relative to its length, or rad), more than {allowed:g}"
        )
        raise open_error(
            self._name,
            key,
            [why if one else "" for one in is_open],
            numbered or Numbered.whole(states),
            np.arange(len(states)),
            joint=joint,
            residual=float(left[first]),
        )

    def recover(self, program: Program, out: Table, states: np.ndarray, applied: np.ndarray) -> None:
        """Evaluate doubtful members again with rows chosen for each of them, and check their condition."""
        order, size, q = program.order, self.size, out.quality
        doubtful = np.ones(len(states), bool)
        if self.choice is not None:
            doubtful = ~(q[:, lay.PIVOT] > lay.GOOD_PIVOT)
            doubtful |= ~(q[:, lay.LEFT : lay.LEFT + order] <= self.system.allowed).all(axis=1)
        members = np.flatnonzero(doubtful)
        if not members.size:
            return
        scaled = self.scaled_rates(states[members])
        if not np.isfinite(scaled).all():
            raise InputError(
                f"Coordinates {', '.join(self.labels)} have no derivatives here: a distance of them is zero, "
                "or two directions of an angle are parallel. Choose other coordinates.",
                coordinates=self.labels,
            )
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
            program.launch(part, states[one], force, self._packed(scaled[k, use[k]], use[k]))
        if self.system.left_out:
            self._check_left_out(out.quality[members], condition, order, members)

    def _rows_of_each(self, scaled: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return rows (B, M) of the square system: the chosen rows and independent closure rows.

        Members have the rows of the first member, unless these are ill-conditioned for them.
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
        """Return the rows of the square system at one configuration."""
        rows = np.concatenate([np.arange(self.size), self.independent(scaled)])
        if len(rows) != self.tree.size:
            dof = self.tree.size - (len(rows) - self.size)
            if dof < self.size:
                self._refuse_contradiction(scaled, dof, member)
            raise SingularError(
                f"Closure conditions of '{self._name}' are dependent at this configuration: it has {dof} "
                f"degrees of freedom here, and {coordinates_named(self.size)}: "
                f"{', '.join(self.labels)}. Choose a configuration away from this bifurcation.",
                dof=dof,
                coordinates=self.labels,
                failed=list(member),
            )
        return rows

    def _refuse_contradiction(self, scaled: np.ndarray, dof: int, member: Sequence[int] | np.ndarray) -> None:
        """Raise an error for closure conditions that leave fewer degrees of freedom than the mobility."""
        shares = self.shares(scaled)[0]
        least = float(shares[count_independent(shares, self.tolerance) - 1])
        raise SingularError(
            f"Closure conditions of '{self._name}' are inconsistent here: they leave "
            f"{counted(dof, 'degree of freedom', 'degrees of freedom')} to first order for "
            f"{counted(self.size, 'coordinate')} ({', '.join(self.labels)}). The weakest of them contributes "
            f"{least:.1e}, and closure_tolerance is {self.tolerance:g}. Correct the dimensions or the state, "
            "or increase closure_tolerance if they are rounded.",
            dof=dof,
            coordinates=self.labels,
            share=least,
            failed=list(member),
        )

    def _check_bifurcation(
        self, states: np.ndarray, taken: np.ndarray, use: np.ndarray, order: int, members: np.ndarray
    ) -> None:
        """Check that the closure is regular enough for the rounding errors of an order."""
        size, lost = self.size, np.zeros(len(members))
        condition = np.linalg.cond(taken[:, size:])
        for k in np.flatnonzero(ROUNDING_FACTOR * EPS * condition**order > DIGITS_LOST):
            A = np.linalg.solve(taken[k], np.eye(self.tree.size, size))
            curvature = self._curvature_at(states[members[[k]]], use[k, size:])
            lost[k] = error_amplification(taken[k, size:], A, curvature, order)
        if lost.max() > DIGITS_LOST:
            worst = int(np.argmax(lost))
            raise SingularError(
                f"Loops of '{self._name}' are nearly singular here (condition {condition[worst]:.0e} of the "
                f"closure alone): order {order} may have a relative error of {lost[worst]:.0e}. Choose a "
                "configuration away from this bifurcation, or a lower order.",
                order=order,
                condition=float(condition[worst]),
                estimate=float(lost[worst]),
                failed=members[lost > DIGITS_LOST].tolist(),
            )

    def _curvature_at(self, state: np.ndarray, rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that computes the scaled H(x, x) (n, R) of some rows at a state (1, S)."""

        def curvature_along(rates: np.ndarray) -> np.ndarray:
            here = state.repeat(len(rates), axis=0)
            return self.curvature(here, rates * self.column_scale)[:, rows].real / self.scale[rows]

        return curvature_along

    def position_error(
        self, states: np.ndarray, found: Table, order: int, origin: CoordinateTransfer
    ) -> np.ndarray | None:
        """Return relative errors (B,) of coefficients due to the error of solved states (B, S).

        States that were solved for values of `origin` have errors of about eps times the condition of those
        rows. Coefficients amplify them by the condition of the square system. Members far from singular
        configurations have the error 0; return None if all are.

        Raises
        ------
        SingularError
            If an error exceeds `DIGITS_LOST`; it carries `condition`, `estimate` and the `failed` members.
        """
        members = np.flatnonzero(~(found.quality[:, lay.PIVOT] > lay.GOOD_PIVOT))
        if not members.size or states.dtype != np.float64:
            return None
        errors, conditions = np.zeros(len(states)), np.ones(len(states))
        scaled = self.values_and_rates(states[members])[1] / self.system.scale[:, None] * self.column_scale
        use = self._rows_of_each(scaled, members)
        taken = np.take_along_axis(scaled, use[:, :, None], axis=1)
        rows = origin.values_and_rates(states[members])[1] / origin.scale[:, None] * origin.column_scale
        tensors = self.jets(states[members], order)
        for n in range(order):  # without units
            tensors[n] /= self.column_scale.reshape(-1, *(1,) * (n + 1))
            for axis in range(n + 1):
                tensors[n] *= self.coordinate_scale.reshape(-1, *(1,) * axis)
        for k, b in enumerate(members):
            curvature = self._curvature_at(states[[b]], use[k])
            errors[b] = position_amplification(rows[k], taken[k], [T[k] for T in tensors], curvature)
            conditions[b] = np.linalg.cond(taken[k])
        failed = np.flatnonzero(errors > DIGITS_LOST)
        if failed.size:
            worst = int(np.argmax(errors))
            raise SingularError(
                f"Coefficients of '{self.tree.description.name}' amplify the rounding error of the solved "
                f"configuration here (condition {conditions[worst]:.0e} of {', '.join(self.labels)} and the "
                f"loops): order {order} may have a relative error of {errors[worst]:.0e}. Choose "
                "another configuration, or use other coordinates.",
                condition=float(conditions[worst]),
                estimate=float(errors[worst]),
                coordinates=self.labels,
                failed=failed.tolist(),
            )
        return errors

    def _check_left_out(
        self, quality: np.ndarray, condition: np.ndarray, order: int, members: np.ndarray
    ) -> None:
        """Check that the redundant closure rows hold at every order."""
        worst = quality[:, lay.LEFT : lay.LEFT + order]
        large = np.maximum(quality[:, lay.LARGEST : lay.LARGEST + order], 1.0)
        allowed = large * (1e3 * EPS * condition + 10 * self.tolerance)[:, None]
        # rates whose squares overflow give no residual; their results are not finite
        overflow = np.isnan(worst) & np.isfinite(condition)[:, None]
        bad = np.argwhere(~(worst <= np.maximum(allowed, REDUNDANT_ROW_ATOL)) & ~overflow)
        if bad.size:
            b, k = bad[0]
            raise SingularError(
                f"Closure conditions of '{self._name}' are inconsistent here: redundant ones have a residual "
                f"of {worst[b, k]:.1e} (condition {condition[b]:.1e}). Correct the dimensions or the state, "
                "or set closure_tolerance if they are rounded.",
                residual=float(worst[b, k]),
                condition=float(condition[b]),
                failed=members[np.unique(bad[:, 0])].tolist(),
            )

    def check_regular(
        self, scaled: np.ndarray, condition: np.ndarray, members: np.ndarray, count: int
    ) -> None:
        """Check that the coordinates can drive the mechanism at every configuration.

        Parameters
        ----------
        scaled, condition : (B, P, M), (B,)
            First order of the rows, and its condition.
        members, count : (B,) int, int
            Indices of the members, and the size of their batch.

        Raises
        ------
        SingularError
            If the coordinates cannot drive `failed` members; with `condition`, `coordinates` and `possible`.
        """
        failed = np.flatnonzero(~(condition < CONDITION_MAX))
        if not failed.size:
            return
        worst = int(failed[0])
        others = self.admissible_inputs(scaled[worst])
        still = self.unconstrained_coordinates(scaled[worst])
        hint = f" {self.undriven_freedom()}".rstrip()
        hint += f" Possible here: {'; '.join(others)}." if others else ""
        several = "members" if failed.size > 1 else "member"
        few = ", ".join(map(str, members[failed[:4]])) + (", …" if failed.size > 4 else "")
        which = f" ({several} {few} of {count})" if count > 1 else ""
        raise SingularError(
            f"Coordinates {', '.join(self.labels)} cannot drive '{self._name}' here{which} (condition "
            f"{condition[worst]:.0e}): while they are at rest, {still} can move.{hint}",
            condition=float(condition[worst]),
            coordinates=self.labels,
            possible=others,
            failed=members[failed].tolist(),
        )

    def undriven_freedom(self) -> str:
        """Return a sentence on a passive dof that is not driven at the reference configuration, or ''."""
        if self.account is None:
            return ""
        rows = self.scaled_rates(self.tree.reference_state)[0, : self.size].real
        return self.account().undriven_freedom(rows)

    def unconstrained_coordinates(self, scaled: np.ndarray) -> str:
        """Return the tree's coordinates that move most while the rows are constant, from scaled G (P, M)."""
        from kic.transfer.input_selection import unconstrained_coordinates

        return unconstrained_coordinates(self.tree, scaled, RANK_SHARE)

    def admissible_inputs(self, scaled: np.ndarray) -> list[str]:
        """Return sets of the tree's coordinates that can drive the mechanism, from scaled G (P, M)."""
        from kic.transfer.input_selection import admissible_inputs

        return admissible_inputs(self.tree, scaled[self.independent(scaled)].real)
