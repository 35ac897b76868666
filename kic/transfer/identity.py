"""Transfers of constant coefficients: an open chain in its own coordinates, or in others linear in these.

They have the interface of `CoordinateTransfer`. Their kernels are those of open chains and solve no system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.dynamics.mass_and_load_tables import Loads, Masses
from kic.dynamics.queries import ContributionsQuery, DynamicsQuery, ModelTable
from kic.kinematics.linear_map import LinearMap
from kic.kinematics.outputs import Rows
from kic.kinematics.queries import OutputQuery, kernel
from kic.kinematics.scaling import moved_error
from kic.kinematics.tree import Tree
from kic.transfer.constraint_system import TransferResult, column_scales, no_forces
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.motion_query import TreeMotionQuery

if TYPE_CHECKING:
    from kic.transfer.closure import Closure

_EMPTY = np.empty((0, 0))


class IdentityQuery:
    """Rows and dynamics of an open chain in its own coordinates, or in others of a linear map.

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
        linear: LinearMap | None = None,
    ) -> None:
        self.rows = None if rows is None else OutputQuery(tree, rows, order, linear)
        self.model = DynamicsQuery(tree, masses, loads, want, linear) if masses and loads and want else None
        self.outputs = None if self.rows is None else self.rows.layout
        size = tree.size if linear is None else linear.size
        self.dynamics = ModelTable(size, want) if self.model is None else self.model.model
        self.width = 0 if self.rows is None else self.rows.width

    def evaluate(
        self, states: np.ndarray, applied: np.ndarray | None = None, out: TransferResult | None = None
    ) -> TransferResult:
        """Evaluate at states (B, S); NaN propagates."""
        out = TransferResult(_EMPTY, _EMPTY, _EMPTY, _EMPTY) if out is None else out
        not_finite: list[int] = []
        if self.rows is not None:
            out.T = self.rows.table(states, out.T if len(out.T) else None, not_finite)
        if self.model is not None:
            applied = no_forces() if applied is None else applied
            out.K = self.model.table(states, applied, out.K if len(out.K) else None, not_finite)
        out.finite = not not_finite
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
    # the map to coordinates other than those of the tree
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
        return IdentityQuery(self.tree, rows, order, masses, loads, want, self.linear)

    def motion_query(self, masses: Masses, loads: Loads, want: int) -> TreeMotionQuery:
        """Return the query for efforts or accelerations along motions."""
        return TreeMotionQuery(self.tree, masses, loads, want, self.linear)

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
            made.append((kernel(rows.entry), (rows.plan, rows.numbers, states, np.empty(rows.scratch), T)))
        if model is not None:
            arguments = model.plan, model.numbers, states, applied, np.empty(model.scratch), K
            made.append((kernel(model.entry), arguments))
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


class LinearTransfer(IdentityTransfer):
    """From the tree of an open chain to coordinates in which its own are linear: φ - φ₀ = A (q - q₀).

    Couplings (gears, belts, mimic joints) are constant entries of A. The coordinates are joints, followers
    among them, or angles of bodies in a plane. To second order (3-28) and third, A has no coefficients.

    Parameters
    ----------
    inner : CoordinateTransfer
        Transfer to the same coordinates, whose rows are all linear.
    A : (M, m)
        Its first order (3-15).
    """

    permutation = None

    def __init__(self, inner: CoordinateTransfer, A: np.ndarray) -> None:
        self.tree, self.names, self.labels, self.length = inner.tree, inner.names, inner.labels, inner.length
        self.size, self.holonomic, self.quasi = inner.size, inner.holonomic, inner.quasi
        self.linear: LinearMap = LinearMap(A)
        self._inner = inner
        scaled = A * inner.coordinate_scale / column_scales(self.tree, self.length)[:, None]
        self._condition = float(np.linalg.cond(scaled)) if A.size else 1.0

    def amplification(self, pivot: np.ndarray | None) -> Any:
        """Return the growth of rounding errors, from the condition of A."""
        return self._inner.amplification(np.array(1 / self._condition))

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

    def inertia_error(self, error: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the error (B, m) of the diagonal of I*, from that (M,) in the order of the columns."""
        return moved_error(error, self.jets(states, 1)[0])

    def contributions_query(self, masses: Masses) -> ContributionsQuery:
        """Return the query for the contribution of each body to I* and P*."""
        return self._inner.contributions_query(masses)

    def contributions(self, query: ContributionsQuery, states: np.ndarray) -> np.ndarray:
        """Return the table (B, N, …) of contributions."""
        return self._inner.contributions(query, states)

    def condition(self, states: np.ndarray, closure: Callable[[tuple[str, ...]], Closure]) -> np.ndarray:
        """Return the condition (B,) of states, which must satisfy the couplings; see `Closure.check`."""
        return self._inner.condition(states, closure)


Transfer = IdentityTransfer | CoordinateTransfer
