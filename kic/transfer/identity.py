"""Transfers with constant coefficients: an open chain in its own coordinates, or in linear functions of them.

They have the interface of `CoordinateTransfer`. Their kernels are those of open chains and solve no system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.dynamics.dynamics import moved_error
from kic.kernels import layout as lay
from kic.kinematics.linear_map import LinearMap
from kic.kinematics.tree import Tree
from kic.transfer.constraint_system import column_scales
from kic.transfer.coordinate_transfer import CoordinateTransfer

if TYPE_CHECKING:
    from kic.transfer.closure import Closure


class IdentityTransfer:
    """Transfer from the tree of an open chain to its default coordinates, a permutation of the columns.

    Parameters
    ----------
    tree : Tree
        The tree.
    names : tuple of str
        Names of all its coordinates, in their order.
    length : float
        Characteristic length of the mechanism.

    Attributes
    ----------
    permutation : (M,) int or None
        Column of the tree for each coordinate; None if the tables of the kernels have this order.
    """

    # one call of each kernel evaluates any configuration
    is_compiled = True
    system = choice = None
    has_euler = has_complex_step = False
    growth = 1.0
    # labels that the tree does not name and that have rates but no values
    quasi: frozenset[str] = frozenset()
    # constant map to coordinates other than those of the tree
    linear: LinearMap | None = None

    def __init__(self, tree: Tree, names: tuple[str, ...], length: float) -> None:
        self.tree, self.names, self.labels, self.length = tree, names, names, length
        self.size = tree.size
        self.holonomic = not tree.balls
        self.permutation = tree.to_coordinates

    @cached_property
    def row_sizes(self) -> np.ndarray:
        """Characteristic sizes (M,) of the coordinates; read-only."""
        (sizes,) = self.in_coordinates([column_scales(self.tree, self.length)], [1])
        sizes.flags.writeable = False
        return sizes

    @property
    def coordinate_scale(self) -> np.ndarray:
        """Scale (M,) of each coordinate in the equations that are solved."""
        return self.row_sizes

    def in_coordinates(self, tensors: list[np.ndarray], ranks: Iterable[int]) -> list[np.ndarray]:
        """Return tensors with their last `rank` axes reordered from columns to coordinates."""
        order = self.permutation
        if order is None:
            return tensors
        turned = []
        for tensor, rank in zip(tensors, ranks, strict=True):
            for axis in range(-rank, 0):
                tensor = tensor.take(order, axis=axis)
            turned.append(tensor)
        return turned

    def jets(self, states: np.ndarray, order: int) -> list[np.ndarray]:
        """Return A (B, M, M), B (B, M, M, M), … of the tree's coordinates, up to an order.

        A is a permutation matrix (3-27), and B is zero (3-28).
        """
        A = np.eye(self.size)
        A = A if self.permutation is None else A[:, self.permutation]
        made = [np.broadcast_to(A, (len(states), *A.shape))]
        made += [np.zeros((len(states), *(self.size,) * (k + 1))) for k in range(2, order + 1)]
        return made

    def tree_rates(self, states: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the rates (B, M) of the tree's coordinates from rates (B, M) of the coordinates."""
        if self.permutation is None:
            return qd
        rates = np.empty_like(qd)
        rates[:, self.permutation] = qd
        return rates

    def tree_motion(
        self, states: np.ndarray, *rates: np.ndarray, origin: Any = None, closed: Any = None
    ) -> np.ndarray:
        """Return derivatives (order, B, M) of the tree's coordinates from those of the coordinates."""
        return np.array([self.tree_rates(states, a) for a in rates])

    def check_closed(self, states: np.ndarray, numbered: Any = None) -> None:
        """Do nothing: any state of an open chain is closed."""

    def inertia_error(self, error: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the error (B, M) of the diagonal of I* from the error (M,) in the order of the columns."""
        (error,) = self.in_coordinates([error], [1])
        return np.broadcast_to(error, (len(states), self.size))

    def tree_table(self, states: np.ndarray) -> np.ndarray | None:
        """Return None: the coordinates are those of the tree."""
        return None

    def condition(self, states: np.ndarray, closure: Callable[[tuple[str, ...]], Closure]) -> np.ndarray:
        """Return the condition (B,) of the system that is solved: 1."""
        return np.ones(len(states))


class LinearTransfer(IdentityTransfer):
    """Transfer from the tree of an open chain to coordinates with a constant map: φ - φ₀ = A (q - q₀).

    Couplings (gears, belts, mimic joints) are constant entries of A. The coordinates are joints, including
    followers, or angles of bodies in a plane. The second (3-28) and third order are zero.

    Parameters
    ----------
    inner : CoordinateTransfer
        Transfer to the same coordinates, whose rows are all linear.
    A : (M, m)
        First order of this transfer (3-15).
    """

    permutation = None

    def __init__(self, inner: CoordinateTransfer, A: np.ndarray) -> None:
        self.tree, self.names, self.labels, self.length = inner.tree, inner.names, inner.labels, inner.length
        self.size, self.holonomic, self.quasi = inner.size, inner.holonomic, inner.quasi
        self._inner = inner
        self.linear: LinearMap = LinearMap(A, inner.system.coupling_terms)
        scaled = A * inner.coordinate_scale / column_scales(self.tree, self.length)[:, None]
        condition = float(np.linalg.cond(scaled)) if A.size else 1.0
        self.growth = inner.growth / (1 / condition)

    @property
    def row_sizes(self) -> np.ndarray:
        """Characteristic sizes (m,) of the coordinates; read-only."""
        return self._inner.row_sizes

    @property
    def coordinate_scale(self) -> np.ndarray:
        """Scale (m,) of each coordinate in the equations that are solved."""
        return self._inner.coordinate_scale

    def jets(self, states: np.ndarray, order: int) -> list[np.ndarray]:
        """Return A (B, M, m), B (B, M, m, m), … of the tree's coordinates, up to an order; B is zero."""
        mobile, size = self.linear.A.shape
        made = [np.broadcast_to(self.linear.A, (len(states), mobile, size))]
        made += [np.zeros((len(states), mobile, *(size,) * k)) for k in range(2, order + 1)]
        return made

    def tree_rates(self, states: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the rates A q̇ (B, M) of the tree's coordinates."""
        return qd @ self.linear.A.T

    def tree_motion(
        self, states: np.ndarray, *rates: np.ndarray, origin: Any = None, closed: Any = None
    ) -> np.ndarray:
        """Return derivatives (order, B, M) of the tree's coordinates; for `closed` see `Program.run`."""
        if closed is not None:
            self.check_closed(states, closed)
        return super().tree_motion(states, *rates)

    def check_closed(self, states: np.ndarray, numbered: Any = None) -> None:
        """Check that finite states (B, S) satisfy the couplings; see `CoordinateTransfer.check_closed`."""
        if states.dtype.kind == "O":
            return
        C, constant = self._couplings
        with np.errstate(over="ignore", invalid="ignore"):
            closed = (np.abs(states @ C.T - constant) <= 1).all()
        if not closed:
            self._inner.check_closed(states, numbered)

    @cached_property
    def _couplings(self) -> tuple[np.ndarray, np.ndarray]:
        """Pair of factors (n, S) and constants (n,) of couplings, divided by the allowed residuals."""
        rows: list[np.ndarray] = [np.zeros(self.tree.state_size + 1)]
        for column, end, factor, constant in self._inner.system.coupling_terms:
            rows[-1][[self.tree.cols[column, lay.STATE], -1]] += factor, constant
            if end:
                rows.append(np.zeros(self.tree.state_size + 1))
        made = np.array(rows)
        return made[:, :-1], made[:, -1]

    def inertia_error(self, error: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the error (B, m) of the diagonal of I* from the error (M,) in the order of the columns."""
        return moved_error(error, self.jets(states, 1)[0])

    def tree_table(self, states: np.ndarray) -> np.ndarray | None:
        """Return the table of φ, A and B (B, n) for the kernel of `Configuration.body_contributions`."""
        return self._inner.tree_table(states)

    def condition(self, states: np.ndarray, closure: Callable[[tuple[str, ...]], Closure]) -> np.ndarray:
        """Return the condition (B,) of states, which must satisfy the couplings; see `Closure.check`."""
        return self._inner.condition(states, closure)
