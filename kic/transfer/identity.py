"""The identity transfer: an open chain in the coordinates of its own tree.

It has the interface of `CoordinateTransfer`. Its kernels are those of open chains, which solve no system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.dynamics.mass_tables import Loads, Masses
from kic.dynamics.queries import ContributionsQuery, DynamicsQuery, ModelTable
from kic.kinematics.outputs import Rows
from kic.kinematics.queries import OutputQuery, kernel
from kic.kinematics.tree import Tree
from kic.transfer.constraint_system import TransferResult, column_scales, no_forces
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.motion_query import TreeMotionQuery

if TYPE_CHECKING:
    from kic.transfer.closure import Closure

_EMPTY = np.empty((0, 0))


class IdentityQuery:
    """Rows and dynamics requested in the coordinates of an open chain; see `TransferQuery`.

    Attributes
    ----------
    outputs : OutputTable or None
        Layout of the rows.
    dynamics : ModelTable
        Layout of I*, P*, load and damping.
    """

    def __init__(
        self,
        tree: Tree,
        rows: Rows | None,
        order: int,
        masses: Masses | None,
        loads: Loads | None,
        want: int,
    ) -> None:
        self.rows = None if rows is None else OutputQuery(tree, rows, order)
        self.model = DynamicsQuery(tree, masses, loads, want) if masses and loads and want else None
        self.outputs = None if self.rows is None else self.rows.layout
        self.dynamics = ModelTable(tree.size, want) if self.model is None else self.model.model
        self.width = 0 if self.rows is None else self.rows.width

    def evaluate(
        self, states: np.ndarray, applied: np.ndarray | None = None, out: TransferResult | None = None
    ) -> TransferResult:
        """Evaluate at states (B, S); NaN propagates."""
        out = TransferResult(_EMPTY, _EMPTY, _EMPTY, _EMPTY) if out is None else out
        strange: list[int] = []
        if self.rows is not None:
            out.T = self.rows.table(states, out.T if len(out.T) else None, strange)
        if self.model is not None:
            applied = no_forces() if applied is None else applied
            out.K = self.model.table(states, applied, out.K if len(out.K) else None, strange)
        out.finite = not strange
        return out


class IdentityTransfer:
    """From the tree of an open chain to its default coordinates: the tree's columns, perhaps reordered.

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
    # labels that the tree does not name and that have rates but no values
    quasi: frozenset[str] = frozenset()

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

    def amplification(self, pivot: np.ndarray | None) -> float:
        """Return the growth of rounding errors: no system is solved, so that there is none."""
        return 1.0

    def position_error(
        self, states: np.ndarray, found: TransferResult, query: IdentityQuery, inputs: CoordinateTransfer
    ) -> None:
        """Return None: states of an open chain are exact in its own coordinates."""

    def query(
        self,
        rows: Rows | None = None,
        order: int = 1,
        masses: Masses | None = None,
        loads: Loads | None = None,
        want: int = 0,
    ) -> IdentityQuery:
        """Return the query for rows and for the dynamics."""
        return IdentityQuery(self.tree, rows, order, masses, loads, want)

    def motion_query(self, masses: Masses, loads: Loads, want: int) -> TreeMotionQuery:
        """Return the query for efforts or accelerations along motions."""
        return TreeMotionQuery(self.tree, masses, loads, want)

    def evaluate(
        self, query: Any, states: np.ndarray, applied: np.ndarray | None = None, out: Any = None
    ) -> Any:
        """Evaluate a query at states (B, S); NaN propagates."""
        return query.evaluate(states, applied, out)

    def fill(
        self,
        query: IdentityQuery,
        states: np.ndarray,
        applied: np.ndarray,
        T: np.ndarray,
        K: np.ndarray,
        batch: tuple[int, ...],
    ) -> bool:
        """Evaluate a query into tables T (B, …) and K (B, …); return True if all results are finite."""
        return bool(self.evaluate(query, states, applied, TransferResult(_EMPTY, T, K, _EMPTY)).finite)

    def calls(
        self, query: IdentityQuery, states: np.ndarray, applied: np.ndarray, T: np.ndarray, K: np.ndarray
    ) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return kernel entries with the arguments that fill tables for one real state."""
        made: list[tuple[Any, tuple[Any, ...]]] = []
        rows, model = query.rows, query.model
        if rows is not None:
            made.append((kernel("kinematics"), (rows.plan, rows.numbers, states, np.empty(rows.scratch), T)))
        if model is not None:
            arguments = model.plan, model.numbers, states, applied, np.empty(model.scratch), K
            made.append((kernel("dynamics"), arguments))
        return made

    def in_coordinates(self, tensors: list[np.ndarray], ranks: Iterable[int]) -> list[np.ndarray]:
        """Return tensors with the last `rank` axes in the order of the coordinates, not of the columns."""
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

        To first order (3-27) it is the unit matrix, to second order (3-28) zero.
        """
        A = np.eye(self.size)
        A = A if self.permutation is None else A[:, self.permutation]
        made = [np.broadcast_to(A, (len(states), *A.shape))]
        made += [np.zeros((len(states), *(self.size,) * (k + 1))) for k in range(2, order + 1)]
        return made

    def tree_rates(self, states: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the rates (B, M) of the tree's coordinates from those (B, M) of the coordinates."""
        if self.permutation is None:
            return qd
        rates = np.empty_like(qd)
        rates[:, self.permutation] = qd
        return rates

    def tree_motion(self, states: np.ndarray, *rates: np.ndarray) -> np.ndarray:
        """Return derivatives (order, B, M) of the tree's coordinates from those of the coordinates."""
        return np.array([self.tree_rates(states, a) for a in rates])

    def inertia_error(self, error: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the error (B, M) of the diagonal of I*, from that (M,) in the order of the columns."""
        (error,) = self.in_coordinates([error], [1])
        return np.broadcast_to(error, (len(states), self.size))

    def contributions_query(self, masses: Masses) -> ContributionsQuery:
        """Return the query for the contribution of each body to I* and P*."""
        return ContributionsQuery(self.tree, masses)

    def contributions(self, query: ContributionsQuery, states: np.ndarray) -> np.ndarray:
        """Return the table (B, N, …) of contributions, in the order of the columns."""
        return query.table(states)

    def condition(self, states: np.ndarray, closure: Callable[[tuple[str, ...]], Closure]) -> np.ndarray:
        """Return the condition (B,) of the system that is solved: 1."""
        return np.ones(len(states))


Transfer = IdentityTransfer | CoordinateTransfer
