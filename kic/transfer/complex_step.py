"""Complex steps through a closure: configurations and coefficients with derivatives of dimensions.

A sensitivity gives a parameter of the description a tiny imaginary part, which + − × ÷ √ sin cos propagate as
an exact derivative. Real closed configurations are solved without it. Their imaginary part solves one linear
system. Redundant closure conditions must hold for the imaginary part too: a dimension that changes the
special shape of an overconstrained linkage raises an error.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kic.errors import InputError, SingularError
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import all_closure_rows
from kic.kinematics.items import OF_COLUMN, WEIGHTED
from kic.kinematics.outputs import plain_rows
from kic.kinematics.state import integrate
from kic.numerics.linalg import condition_number
from kic.numerics.tolerances import EPS
from kic.transfer.constraint_system import REDUNDANT_ROW_ATOL
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.program import Program

# number of Newton steps: one is exact to first order, and the others reduce rounding errors
_REFINEMENTS = 3


class ComplexStepTransfer(CoordinateTransfer):
    """Transfer of a mechanism with a complex step; its results are checked to close with the step."""

    # results need the checks of `certify`
    is_compiled = False
    has_complex_step = True

    def follow(self, states: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return closed real states (B, S) with the imaginary parts due to dimensions and targets (B, P).

        Raises
        ------
        SingularError
            If the inputs do not fix the configuration, or the step contradicts redundant conditions.
        """
        self._refuse_rounded()
        states, goal = states.astype(complex), np.zeros((len(states), len(self.scale)), complex)
        goal[:, : self.size] = target
        values, G = self._scaled(states)
        worst, members = condition_number(G.real), np.arange(len(states))
        self.check_regular(G, worst, members, len(states))
        Q, R = np.linalg.qr(G.real)
        moved = np.zeros((len(states), self.tree.size))
        for _ in range(_REFINEMENTS):
            missing = (goal / self.scale - values).imag
            step = np.linalg.solve(R, np.swapaxes(Q, 1, 2) @ missing[..., None])[..., 0]
            states, moved = integrate(self.tree, states, 1j * step * self.column_scale), moved + step
            values = self._scaled(states)[0]
        size = np.abs(moved).max(axis=1, initial=0.0) + np.abs((goal / self.scale).imag).max(
            axis=1, initial=0.0
        )
        self._judge((goal / self.scale - values).imag, self._floor + size, worst, 0, members)
        return states

    def _scaled(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scaled values and first order of the chosen and closure rows."""
        values, G = self.values_and_rates(states)
        return values / self.scale, G / self.scale[:, None] * self.column_scale

    @cached_property
    def _floor(self) -> float:
        """Largest imaginary part of the geometry; lengths are relative to the smallest loop."""
        geometry, vectors = self.tree.geometry.imag, self.system.rows.vectors.imag
        units = self.system.item_scale
        gears = (OF_COLUMN & WEIGHTED)[self.system.rows.kinds]
        parts = [
            geometry[:, :3] / self.system.smallest,
            geometry[:, lay.TURN0 : lay.DRAWN],
            geometry[:, 12:] / self.column_scale[:, None],
            vectors[:, :6] / units[:, None],
            vectors[:, 6:9] / np.where(gears, units, 1.0)[:, None],
            np.array([complex(constant).imag for _, constant in self.system.rows.offsets]) / self.length,
        ]
        return max(float(np.abs(part).max(initial=0.0)) for part in parts)

    def _conditions(self, order: int) -> Program:
        """Return the program for all closure rows in the chosen coordinates."""
        found = self._asked.get(order)
        if found is None:
            rows = plain_rows(self.tree, all_closure_rows(self.tree)[0])
            found = self._asked[order] = Program(self, rows, order, keep=True)
        return found

    @cached_property
    def _asked(self) -> dict[int, Program]:
        return {}

    def certify(self, program: Program, states: np.ndarray) -> None:
        """Check that the imaginary parts of all closure rows vanish, in value and at every order.

        Raises
        ------
        InputError
            If states do not close with the step, such as states of another mechanism.
        SingularError
            If the step contradicts closure conditions that were redundant.
        """
        order = program.order
        if not self.owners or program is self._asked.get(order):
            return
        self._refuse_rounded()
        members = np.flatnonzero(np.isfinite(states).all(axis=1))
        states, first, size, count = states[members], self.size, self.tree.size, len(members)
        values, G = self._scaled(states)
        worst = condition_number(G.real)
        moved = np.abs(states.imag / self._state_scale).max(axis=1, initial=0.0)
        self._judge(values[:, first:].imag, self._floor + moved, worst, 0, members)
        conditions = self._conditions(order)
        out, layout = conditions.run(states), conditions.outputs
        assert layout is not None  # for the type checker: it has rows
        residuals = layout.split(out.T, (count,))
        units, start, sizes = np.ones(()), size, list[np.ndarray]()
        for k in range(1, order + 1):
            units = np.multiply.outer(units, self.scale[:first])
            X = out.X[:, start : start + size * first**k].reshape(count, size, *(first,) * k)
            X = X * units / self.column_scale.reshape(-1, *(1,) * k)
            flat = X.reshape(count, -1)
            largest = np.abs(flat.real).max(axis=1, initial=0.0)
            sizes.append(largest + 1j * np.abs(flat.imag).max(axis=1, initial=0.0))
            # sizes of the terms of this order and of their steps, by the rules of composition
            a, b, c = (*sizes, np.zeros(()), np.zeros(()))[:3]
            terms = (1 + 1j * self._floor) * (a, b + a * a, c + 3 * a * b + a**3)[k - 1]
            left = residuals[k][:, self.system.closing_rows] * units
            left = left / self.scale[first:].reshape(-1, *(1,) * k)
            left = left.imag.reshape(count, len(self.owners), -1).swapaxes(1, 2)
            self._judge(left, terms.imag, worst, k, members)
            start += size * first**k

    @cached_property
    def _state_scale(self) -> np.ndarray:
        """Array (S,) of the scales of the entries of a state."""
        scale = np.ones(self.tree.state_size)
        single = self.tree.cols[:, lay.KIND] <= lay.PRISMATIC
        scale[self.tree.cols[single, lay.STATE]] = self.column_scale[single]
        return scale

    def _refuse_rounded(self) -> None:
        """Raise an error for a complex step in a mechanism with contradicting loops of rounded dimensions."""
        if self._floor and self.tolerance and self.system.left_out:
            raise InputError(
                f"'{self.tree.description.name}' has closure_tolerance = {self.tolerance:g} for rounded "
                "dimensions, which are inconsistent: there is no derivative with respect to one of "
                "them. Give exact dimensions, and leave closure_tolerance out.",
                closure_tolerance=self.tolerance,
            )

    def _judge(
        self, left: np.ndarray, size: np.ndarray, worst: np.ndarray, order: int, members: np.ndarray
    ) -> None:
        """Check that imaginary residuals (B, …, P) are rounding errors of steps of a given size (B,)."""
        allowed = np.maximum(REDUNDANT_ROW_ATOL, 1e3 * EPS * worst) * size
        most = np.abs(left).max(axis=tuple(range(1, left.ndim)), initial=0.0)
        bad = np.flatnonzero(~(most <= allowed))
        if not bad.size:
            return
        b = int(bad[0])
        row = int(np.argmax(np.abs(left[b]).reshape(-1, left.shape[-1]).max(axis=0)))
        owner = self.owners[max(row - left.shape[-1] + len(self.owners), 0)]
        if not self.system.left_out:
            raise InputError(
                f"This configuration does not close '{owner}' of '{self.tree.description.name}', which "
                "carries a complex step. Make it with at() of that mechanism.",
                joint=owner,
                failed=members[bad].tolist(),
            )
        where = f"at order {order} in the coordinates" if order else "in value"
        raise SingularError(
            f"Loops of '{self.tree.description.name}' become inconsistent when this dimension "
            f"changes: conditions of '{owner}' that are redundant in this shape fail to first order in the "
            f"change ({where}), so it would be rigid. Change dimensions together, so that the special shape "
            "of an overconstrained linkage stays, or describe it without redundant conditions.",
            joint=owner,
            order=order,
            failed=members[bad].tolist(),
        )
