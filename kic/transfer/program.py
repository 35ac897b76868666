"""Programs: queries in the coordinates of a transfer, packed once and run at any states.

All kernel calls for results go through a program. `Program.run` handles the common cases: one state or a
batch, threads, complex numbers and symbols, members without a configuration, members that need other closure
rows, springs in cut joints, and results that are not finite.

Along a motion, H, I* and P* are not formed. Rates and accelerations are propagated through the tree and its
loops as a Taylor series in time, and forces are returned by the Newton–Euler equations (2-198), (2-199),
(4-40) and (4-41); see `kic.kernels.motion`. `Dynamics` computes the same results from the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from kic.dynamics.dynamics import Dynamics, check_inertia_regular, computed_dynamics, moved_error
from kic.dynamics.mass_and_load_tables import Loads, Masses
from kic.dynamics.queries import dynamics_query
from kic.errors import InputError, MemberError
from kic.kernels import layout as lay
from kic.kinematics.coefficients import Coefficients, computed_coefficients
from kic.kinematics.euler import check_gimbal, gimbal_errors
from kic.kinematics.outputs import Rows
from kic.kinematics.queries import Layout, Query, compiled, dynamics_layout, kernel, output_query
from kic.kinematics.scaling import Scaling
from kic.kinematics.tree import Tree
from kic.numerics.arrays import (
    ARGUMENT_MAX,
    REAL,
    as_array,
    broadcast_batches,
    check_finite,
    map_valid_members,
    scatter,
)
from kic.transfer.conditioning import larger
from kic.transfer.constraint_system import row_scales, system_query

if TYPE_CHECKING:
    from kic.description.parts import Joint
    from kic.transfer.closure import Closure
    from kic.transfer.compiled_model import CompiledModel

BOTH = lay.WANT_INERTIA | lay.WANT_LOADS
# memory layout for which kernels are compiled
LAYOUT: tuple[Literal["C"], Literal["A"], Literal["W"]] = ("C", "A", "W")
# empty table of quality, for calls without it
_BRIEF = np.empty((0, lay.QUALITY_WIDTH))
_NOTHING = np.empty((0, 0))
_NO_ENTRIES = np.empty((1, 0))
# estimated cost of one configuration of a tree along a motion (µs), to divide a batch among threads
_START_US, _PER_COLUMN_US = 0.05, 0.06
_ndarray, _empty = np.ndarray, np.empty


class Numbered(NamedTuple):
    """Indices of states in a batch, by which an error text names one of them.

    Attributes
    ----------
    numbers : sequence of int
        Index of each state.
    size : int
        Size of the batch.
    """

    numbers: Any
    size: int

    @classmethod
    def whole(cls, states: np.ndarray) -> Numbered:
        """Return the indices of the states (B, S) of a whole batch."""
        return cls(range(len(states)), len(states))

    def some(self, members: Any) -> Numbered:
        """Return the indices of some of the states."""
        return Numbered(np.asarray(self.numbers)[members], self.size)

    def named(self, k: int) -> str:
        """Return the text that names state k; '' in a batch of one."""
        return f" (member {self.numbers[k]} of {self.size})" if self.size > 1 else ""


class Transfer(Protocol):
    """Transfer from the coordinates φ of a tree to other coordinates q, for any configuration.

    Transfers that solve a `system` also have `gimbal_error`, `recover` and `position_error`, and `certify` if
    they have a complex step.

    Attributes
    ----------
    names, labels : tuple of str
        The given names of the coordinates q, and a label for each coordinate.
    system : ConstraintSystem or None
        The equations that are solved at each configuration; None if the map is constant.
    linear : LinearMap or None
        The map, if it is constant and the coordinates are not those of the tree.
    permutation : (M,) int or None
        Column of the tree for each coordinate; None if the tables of the kernels have this order.
    is_compiled : bool
        True if one kernel call evaluates any regular configuration without further checks.
    choice : ndarray or None
        Chosen rows and order of elimination at the reference configuration, for the kernels.
    quasi : frozenset of str
        Coordinates that have rates but no values.
    row_sizes, coordinate_scale : (M,)
        Characteristic sizes of the coordinates, and their scales in the equations that are solved.
    growth : float
        Estimated growth of rounding errors in coefficients, for pivots of one.
    """

    tree: Tree
    names: tuple[str, ...]
    labels: tuple[str, ...]
    size: int
    holonomic: bool
    has_euler: bool
    has_complex_step: bool
    growth: float

    @property
    def system(self) -> Any:
        """System that is solved, or None."""

    @property
    def linear(self) -> Any:
        """Constant map, or None."""

    @property
    def permutation(self) -> Any:
        """Array of the tree's column for each coordinate, or None."""

    @property
    def is_compiled(self) -> Any:
        """True if one kernel call suffices."""

    @property
    def choice(self) -> Any:
        """Array of chosen rows, or None."""

    @property
    def quasi(self) -> Any:
        """Set of coordinates without values."""

    @property
    def row_sizes(self) -> Any:
        """Array (M,) of characteristic sizes."""

    @property
    def coordinate_scale(self) -> Any:
        """Array (M,) of scales."""

    def jets(self, states: np.ndarray, order: int) -> list[np.ndarray]:
        """Return A (B, M, m), B (B, M, m, m), … of the tree's coordinates, up to an order."""

    def tree_rates(self, states: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the rates (B, M) of the tree's coordinates."""

    def tree_motion(
        self, states: np.ndarray, *rates: np.ndarray, origin: Any = None, closed: Numbered | None = None
    ) -> np.ndarray:
        """Return derivatives (order, B, M) of the tree's coordinates along motions; see `Program.run`."""

    def tree_table(self, states: np.ndarray) -> np.ndarray | None:
        """Return the table of φ to second order; None if the coordinates are those of the tree."""

    def in_coordinates(self, tensors: list[np.ndarray], ranks: Iterable[int]) -> list[np.ndarray]:
        """Return tensors with their last `rank` axes reordered from columns to coordinates."""

    def check_closed(self, states: np.ndarray, numbered: Numbered | None = None) -> None:
        """Check that finite states (B, S) are closed; see `CoordinateTransfer.check_closed`."""

    def inertia_error(self, error: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the error (B, m) of the diagonal of I* from the error (M,) in the tree's coordinates."""

    def condition(self, states: np.ndarray, closure: Callable[[tuple[str, ...]], Closure]) -> np.ndarray:
        """Return the condition (B,) of states that must be closed and regular."""


@dataclass(slots=True)
class Table:
    """Results of a program for a batch, in the layout of the kernels.

    Attributes
    ----------
    T, K : (B, n)
        Rows or results along motions, and dynamics.
    X : (B or 0, n)
        The tree's coordinates φ with the computed orders of A, B, C, if they are kept.
    quality : (B or 0, QUALITY_WIDTH)
        Pivots and residuals of the systems, if any are solved.
    rates : tuple of (B, m)
        Motions: rates of the coordinates, accelerations or efforts, and jerks if given.
    batch : tuple of int
        Shape of the batch.
    ok : (...) bool, optional
        Mask of the members with results; None for all.
    error : (B,), optional
        Relative error due to Euler angles near gimbal lock and errors of solved states.
    finite : bool
        True if all results are finite; False if this is uncertain.
    outputs, dynamics : Layout, optional
        Layouts of T and K.
    """

    T: np.ndarray
    K: np.ndarray
    X: np.ndarray
    quality: np.ndarray
    rates: tuple[np.ndarray, ...] = ()
    batch: tuple[int, ...] = ()
    ok: np.ndarray | None = None
    error: np.ndarray | None = None
    finite: bool = True
    outputs: Layout | None = None
    dynamics: Layout | None = None

    @property
    def arrays(self) -> Sequence[np.ndarray]:
        """Sequence of values, G, H, D (..., P, …) of the rows, or of results along motions."""
        assert self.outputs is not None  # for the type checker: there are rows
        return self.outputs.split(self.T, self.batch)

    @property
    def model(self) -> Sequence[np.ndarray]:
        """Sequence of the requested I*, P*, load and damping (..., m, …)."""
        assert self.dynamics is not None  # for the type checker: they are requested
        return self.dynamics.split(self.K, self.batch)

    def members(self, some: Any) -> Table:
        """Return a table with views of a slice of the members, or with copies of members by index."""
        T, K, X, quality = (a[some] if len(a) else a for a in (self.T, self.K, self.X, self.quality))
        return Table(T, K, X, quality, tuple(a[some] for a in self.rates))

    def scatter(self, good: np.ndarray) -> Table:
        """Return the table of a batch whose members `good` (...) have these results, and others NaN."""
        T, K, X = (scatter(a, good) if a.shape[1] else a for a in (self.T, self.K, self.X))
        quality = scatter(self.quality, good) if len(self.quality) else self.quality
        error = None if self.error is None else scatter(self.error, good)
        ok = None if good.all() else good
        return replace(self, T=T, K=K, X=X, quality=quality, error=error, batch=good.shape, ok=ok)


class MotionTerms(NamedTuple):
    """Terms of the equations of motion I* q̈ + h = T along motions, in the order of the coordinates.

    Attributes
    ----------
    acceleration : (..., m)
        Accelerations due to efforts; NaN where I* may be singular.
    bias : (..., m)
        Efforts h of the motion at q̈ = 0.
    I : (..., m, m)
        Mass matrix.
    load_power, dissipation : (...)
        Power of the loads Tᴸ, and power dissipated by dampers.
    """

    acceleration: np.ndarray
    bias: np.ndarray
    I: np.ndarray
    load_power: Any
    dissipation: Any


def _row_arguments(q: Query, out: Table, states: np.ndarray, _: np.ndarray, __: Any) -> tuple[Any, ...]:
    return q.plan, q.numbers_in(states.dtype), states, _empty(q.scratch, states.dtype), out.T


def _dynamics_arguments(
    q: Query, out: Table, states: np.ndarray, applied: np.ndarray, _: Any
) -> tuple[Any, ...]:
    return q.plan, q.numbers_in(states.dtype), states, applied, _empty(q.scratch, states.dtype), out.K


def _system_arguments(
    q: Query, out: Table, states: np.ndarray, applied: np.ndarray, choice: Any
) -> tuple[Any, ...]:
    dtype, third = states.dtype, True if q.order > 2 else None
    scratch, whole = _empty(q.scratch, dtype), _empty((3, q.tree.size), np.int64)
    given = q.plan, q.numbers_in(dtype), states, applied, choice, third, scratch, whole
    return (*given, out.X, out.T, out.K, out.quality)


def _tree_motion_arguments(
    q: Query, out: Table, states: np.ndarray, applied: np.ndarray, _: Any
) -> tuple[Any, ...]:
    dtype, (first, second) = states.dtype, out.rates
    flat = states.reshape(-1), applied, first.reshape(-1), second.reshape(-1)
    return q.plan, q.numbers_in(dtype), *flat, _empty(q.scratch, dtype), out.T.reshape(-1)


def _motion_arguments(
    q: Query, out: Table, states: np.ndarray, applied: np.ndarray, choice: Any
) -> tuple[Any, ...]:
    dtype, first, second, last = states.dtype, out.rates[0], out.rates[1], out.rates[-1]
    rates = first.reshape(-1), second.reshape(-1), last.reshape(-1)
    scratch, whole = _empty(q.scratch, dtype), _empty((2, q.tree.size), np.int64)
    given = q.plan, q.numbers_in(dtype), states.reshape(-1), applied, choice, *rates, scratch, whole
    return (*given, out.T.reshape(-1), out.quality)


# arguments of each kernel for a query, a table, states, applied forces and a choice of rows
ARGUMENTS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "kinematics": _row_arguments,
    "linear_kinematics": _row_arguments,
    "first_order": _row_arguments,
    "dynamics": _dynamics_arguments,
    "linear_dynamics": _dynamics_arguments,
    "transfer": _system_arguments,
    "tree_motion": _tree_motion_arguments,
    "linear_tree_motion": _tree_motion_arguments,
    "motion_in_coordinates": _motion_arguments,
}


def _launch_batch(
    query: Query, entry: Any, out: Table, states: np.ndarray, applied: np.ndarray, choice: Any
) -> int:
    """Run a kernel for a batch on the thread pool; return the number of members that it rejects."""
    count, arguments, found = len(states), ARGUMENTS[query.entry], list[int]()

    def work(a: int, b: int) -> None:
        force = applied[a:b] if len(applied) == count else applied
        part = out if b - a == count else out.members(slice(a, b))
        found.append(entry(*arguments(query, part, states[a:b], force, choice)))

    query.over_members(work, count)
    return sum(found)


def motion_layout(size: int, want: int, series: tuple[int, ...] = (), bodies: int = 0) -> Layout:
    """Return the layout of efforts, and a series of φ if given; or of `MotionTerms` for forward dynamics.

    That of a regressor is (size, 10 bodies), or (6, 10 bodies) with the rows of ground.
    """
    if want & lay.WANT_REGRESSOR:
        return Layout([(6 if want & lay.WANT_GROUND else size, lay.N_INERTIAL * bodies)])
    if want & lay.WANT_FORWARD:
        return Layout([(size,), (size,), (size, size), (), ()])
    return Layout([(size,), series] if series else [(size,)])


class Program:
    """Kernel queries in the coordinates of a transfer, with the layouts of their results.

    A program has no mutable state and is thread-safe.

    Parameters
    ----------
    transfer : Transfer
        The coordinates.
    rows, order : Rows, int, optional
        Requested rows, and their order; without rows, the order of φ.
    masses, loads : Masses, Loads, optional
        Masses and loads, for dynamics.
    want : int
        Flags of the requested parts of the dynamics.
    along : bool
        True for results along motions.
    keep : bool
        True to keep the table of φ among the results.
    model : CompiledModel, optional
        The mechanism; needed for dynamics, and for checks of the results.

    Attributes
    ----------
    outputs : Layout or None
        Layout of the rows, or of results along motions.
    dynamics : Layout
        Layout of I*, P*, load and damping.
    recovered : int or None
        Number of states that the kernels evaluated in place of specialized code, if there is such code.
    """

    recovered: int | None = None

    def __init__(
        self,
        transfer: Transfer,
        rows: Rows | None = None,
        order: int = 1,
        masses: Masses | None = None,
        loads: Loads | None = None,
        want: int = 0,
        along: bool = False,
        keep: bool = False,
        model: CompiledModel | None = None,
    ) -> None:
        tree, system, size = transfer.tree, transfer.system, transfer.size
        keep = keep and system is not None
        self.transfer, self.want, self.model, self.along = transfer, want, model, along
        self.order = max(order, 2) if along or want & lay.WANT_INERTIA else order
        self.dynamics = dynamics_layout(size, 0 if along else want)
        queries: list[Query] = []
        if along:
            series = (order, tree.size) if want & lay.WANT_SERIES else ()
            layout = motion_layout(size, want, series, 0 if masses is None else len(masses.names))
            if system is not None:
                queries.append(system_query(system, self.order, None, 0, masses, loads, want, False, layout))
            else:
                assert masses is not None  # for the type checker: series are those of a system
                assert loads is not None
                queries.append(tree_motion_query(transfer, masses, loads, want, layout))
        elif system is not None:
            asked = order if rows is not None or want & BOTH else 0
            queries.append(system_query(system, self.order, rows, asked, masses, loads, want, keep))
        else:
            if rows is not None:
                queries.append(output_query(tree, rows, order, transfer.linear))
            if want and masses is not None and loads is not None:
                queries.append(dynamics_query(tree, masses, loads, want, transfer.linear))
        self.queries = tuple(queries)
        self.outputs = queries[0].layout if along or rows is not None else None
        self.width = self.outputs.width if self.outputs is not None else 0
        self.dynamics.check_size()
        if self.outputs is not None:
            self.outputs.check_size()
        self._x_width = tree.size * sum(size**k for k in range(self.order + 1)) if keep else 0
        self._quality = lay.QUALITY_WIDTH if system is not None else 0
        self._euler = bool(rows is not None and (rows.euler or rows.directed))
        self.is_regressor = bool(want & lay.WANT_REGRESSOR)
        # springs, dampers and armature of cut joints
        self.cut_joints = bool(
            want & BOTH and not self.is_regressor and model is not None and model.cut_joint_loads
        )
        self.applied = loads.constant[None] if loads is not None else _empty((1, 0, 3))

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.transfer.tree.description.name

    @property
    def is_compiled(self) -> bool:
        """True if one kernel call suffices for results along a motion at any real, regular state."""
        transfer, model = self.transfer, self.model
        plain = transfer.permutation is None and transfer.is_compiled and not self.cut_joints
        return bool(plain and transfer.size and model is not None and not model.has_complex_step)

    def table(self, count: int, dtype: np.dtype, rates: tuple[np.ndarray, ...] = ()) -> Table:
        """Return an empty table for a batch, to be filled by the kernels."""
        outputs, dynamics = self.outputs, self.dynamics
        # kernels index the rows of each member, even in tables without entries
        if count == 1 and dtype == REAL:
            nothing, nobody = _NO_ENTRIES, _NOTHING
        else:
            nothing = _empty((count, 0), dtype)
            nobody = nothing[:0]
        if self.along:  # kernels omit results that are not finite
            T = np.full((count, self.width), np.nan, dtype)
        else:
            T = nothing if outputs is None else _empty((count, self.width), dtype)
        X = _empty((count, self._x_width), dtype) if self._x_width else nobody
        quality = _empty((count, lay.QUALITY_WIDTH)) if self._quality else _BRIEF
        K = _empty((count, dynamics.width), dtype) if dynamics.width else nothing
        return Table(T, K, X, quality, rates, (count,), None, None, True, outputs, dynamics)

    def calls(self, out: Table, states: np.ndarray) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return kernel entries and arguments that fill a table; an entry returns the number it rejects."""
        given = out, states, self.applied, self.transfer.choice
        return [(kernel(q.entry), ARGUMENTS[q.entry](q, *given)) for q in self.queries]

    def launch(self, out: Table, states: np.ndarray, applied: np.ndarray, choice: Any) -> int:
        """Run the kernels and return the number of members that are doubtful or not finite."""
        rejected, symbols = 0, states.dtype.kind == "O"
        for query in self.queries:
            entry = kernel(query.entry)
            if symbols or len(states) == 1:
                function = entry.py_func if symbols else entry
                rejected += function(*ARGUMENTS[query.entry](query, out, states, applied, choice))
            else:
                rejected += _launch_batch(query, entry, out, states, applied, choice)
        return rejected

    def run(
        self,
        states: np.ndarray,
        *rates: np.ndarray,
        applied: np.ndarray | None = None,
        batch: tuple[int, ...] | None = None,
        ok: np.ndarray | None = None,
        failures: str = "raise",
        origin: Any = None,
        out: Table | None = None,
        checked: bool = True,
        closed: Numbered | None = None,
    ) -> Table:
        """Return the results at states (B, S) of a batch, with every check.

        Parameters
        ----------
        states : (B, S) ndarray
            Contiguous states.
        *rates : (B, m) ndarray
            Motions, with the dtype of the states.
        applied : (B or 1, n, 3) ndarray, optional
            Applied forces and moments, by default those of the model.
        batch : tuple of int, optional
            Shape of the batch.
        ok : (...) ndarray, optional
            Mask of the members to evaluate; the others are NaN.
        failures : {"raise", "mask"}
            Result for members that cannot be evaluated: an error that names them, or NaN.
        origin : CoordinateTransfer, optional
            Transfer for which the states were solved; the resulting errors are estimated.
        out : Table, optional
            Table to fill.
        checked : bool
            True to raise an error for results that are not finite.
        closed : Numbered, optional
            Indices of the states in their batch. If given, states that do not close the loops raise an error.

        Raises
        ------
        InputError
            If symbols occur in coordinates that need a choice of rows, results are not finite, or states do
            not close the loops.
        SingularError
            If the coordinates cannot drive the mechanism at a configuration, or its loops are singular there.
        """
        batch = (len(states),) if batch is None else batch
        applied = self.applied if applied is None else applied
        if ok is None and type(failures) is str and failures == "raise":
            try:
                found = self._evaluate(states, rates, applied, origin, out, checked, closed)
            except (MemberError, InputError) as error:
                error.place(range(len(states)), batch)
                raise
            found.batch = batch
            return found

        def some(members: Any) -> Table:
            force = applied if len(applied) == 1 else applied[members]
            motion = tuple(a[members] for a in rates)
            numbered = None if closed is None else closed.some(members)
            return self._evaluate(states[members], motion, force, origin, None, checked, numbered)

        good, part = map_valid_members(np.ones(batch, bool) if ok is None else ok, failures, some)
        found = part.scatter(good)
        if out is not None:
            for whole, a in ((out.T, found.T), (out.K, found.K)):
                if whole.size:
                    whole[...] = a
        return found

    def _evaluate(
        self,
        states: np.ndarray,
        rates: tuple[np.ndarray, ...],
        applied: np.ndarray,
        origin: Any,
        out: Table | None,
        checked: bool,
        closed: Numbered | None,
    ) -> Table:
        """Return the results of members that have a configuration."""
        count, dtype = len(states), states.dtype
        transfer: Any = self.transfer  # for the type checker: some methods are not in the protocol
        if dtype.kind == "O" and self._quality:
            raise InputError(
                "`configuration` must hold numbers, got symbols: in these coordinates, equations are chosen "
                "by numerical size. Substitute numbers, or use the joint coordinates of an open chain.",
                key="configuration",
            )
        out = self.table(count, dtype, rates) if out is None else out
        if not count:
            return out
        choice, solves = transfer.choice, bool(self._quality)
        if (self.want or solves) and (applied.dtype != dtype or not applied.flags.carray):
            applied = np.require(applied, dtype, LAYOUT)
        error = transfer.gimbal_error(states, self.order) if transfer.has_euler else None
        regular = choice is not None or not solves
        if not regular or self.launch(out, states, applied, choice):
            regular = out.finite = False
            measured = solves and choice is not None
            if closed is not None and (not measured or (out.quality[:, lay.GAP] > 1).any()):
                transfer.check_closed(states, closed)
            if solves:
                transfer.recover(self, out, states, applied)
        if self._euler:
            error = larger(error, self.outputs.check_gimbal(self.name, out.T))  # type: ignore[union-attr]
        if transfer.has_complex_step:
            transfer.certify(self, states)
        if origin is not None and solves and not regular:
            error = larger(error, transfer.position_error(states, out, self.order, origin))
        out.error = error
        if self.cut_joints and not self.along:
            self._add_cut_joints(out, states)
        if checked and not out.finite and not self.along and self.model is not None:
            self._check(out)
        return out

    def _check(self, out: Table) -> None:
        """Raise an error for results that are not finite."""
        model = self.model
        assert model is not None  # for the type checker
        if self.outputs is not None and self.outputs.rows is not None:
            model.check_distances(self.outputs.rows, out.T, None)
        if self.want & lay.WANT_LOADS:
            model.check_springs(out.model[-2], None)
        for quantity, part in (("Coefficients", out.T), ("I*, P* or loads", out.K)):
            check_finite(quantity, self.name, part)

    def _add_cut_joints(self, out: Table, states: np.ndarray) -> None:
        """Add inertia, loads and damping of cut joints at states (B, S)."""
        out.finite = False
        model, transfer = self.model, self.transfer
        assert model is not None  # for the type checker

        def motion(joint: Joint, order: int) -> tuple[np.ndarray, ...]:
            c = model.rates_of(transfer, joint.name, order, states)
            values = np.where(np.isnan(c.values), np.array(joint.rest), c.values)
            return (values, c.G) if order < 2 else (values, c.G, c.needed("H", 2))

        self.add_joints(out, [(joint, joint_laws(joint)) for joint in model.cut_joint_loads], motion)

    def add_joints(
        self,
        out: Table,
        joints: Iterable[tuple[Joint, np.ndarray]],
        motion: Callable[[Joint, int], tuple[np.ndarray, ...]],
    ) -> None:
        """Add inertia, loads and damping of joints outside the tree, given with their `joint_laws` (4, n).

        ``motion(joint, order)`` returns values (B, n), G (B, n, m) and for order 2 also H (B, n, m, m) of the
        coordinates of a joint. Values of rates without values are `rest`.
        """
        parts = out.model
        inertia, loads = (parts[:2], parts[2:]) if self.want & lay.WANT_INERTIA else ([], parts)
        for joint, (stiffness, rest, drag, rotor) in joints:
            values, G, *H = motion(joint, 2 if inertia else 1)
            if inertia:
                I, P = inertia
                I += np.einsum("bpa,p,bpc->bac", G, rotor, G)
                P += np.einsum("bpk,p,bpac->bkac", G, rotor, H[0])
            if loads:
                load, damping = loads
                load -= np.einsum("bpa,p,bp->ba", G, stiffness, values - rest)
                damping += np.einsum("bpa,p,bpc->bac", G, drag, G)

    @cached_property
    def scaling(self) -> Scaling:
        """Scaling: sizes of the rows and coordinates, and the error of the rows for pivots of one."""
        model, transfer = self.model, self.transfer
        assert model is not None  # for the type checker: there are rows
        assert self.outputs is not None
        sizes = row_scales(transfer.tree, self.outputs.rows, model.length)
        sizes.flags.writeable = False  # shared by all results
        return Scaling(sizes, transfer.row_sizes, model.rounding * transfer.growth)

    @cached_property
    def _quasi(self) -> frozenset[str]:
        """Set of the names of rows and columns that have rates but no values."""
        transfer, rows, tree = self.transfer, self.outputs.rows, self.transfer.tree  # type: ignore[union-attr]
        if rows.holonomic and transfer.holonomic:
            return frozenset()
        kinds = tree.cols[:, lay.KIND]
        turning = {name for name, n in tree.column.items() if kinds[n] > lay.PRISMATIC}
        return transfer.quasi | turning | set(np.compress(~rows.valued, rows.labels).tolist())

    def coefficients(self, found: Table) -> Coefficients:
        """Return the coefficients in a table, with errors inversely proportional to its smallest pivots."""
        error, batch, scaling = found.error, found.batch, self.scaling
        if error is not None or len(found.quality):
            rounding = scaling.error
            if len(found.quality):
                pivot = found.quality[:, lay.PIVOT].reshape(batch)
                rounding = rounding / np.where(pivot > 0, pivot, 1.0)
            if error is not None:
                rounding = np.fmax(rounding, error.reshape(batch))
            scaling = Scaling(scaling.rows, scaling.columns, rounding)
        return self.coefficients_of(self.outputs.split(found.T, batch), scaling)  # type: ignore[union-attr]

    def coefficients_of(self, parts: Sequence[np.ndarray], scaling: Scaling) -> Coefficients:
        """Return the coefficients from values, G, H, … in the order of the kernels."""
        values, *tensors = parts
        rows, transfer = self.outputs.rows, self.transfer  # type: ignore[union-attr]
        if rows.angles or rows.offsets:
            values = rows.complete(values.copy())
        if rows.select is not None:
            values = values[..., rows.select]
            tensors = [t.take(rows.select, axis=t.ndim - k - 2) for k, t in enumerate(tensors)]
        if transfer.permutation is not None:
            tensors = transfer.in_coordinates(tensors, range(1, len(tensors) + 1))
        if not rows.holonomic:
            values = np.where(rows.valued, values, np.nan)
        description = transfer.tree.description
        return computed_coefficients(
            rows.labels, transfer.labels, tuple(tensors), values, self._quasi, scaling, description
        )

    def model_of(self, found: Table, states: np.ndarray) -> Dynamics:
        """Return the dynamics in a table for states (B, S)."""
        transfer, model, ok, batch = self.transfer, self.model, found.ok, found.batch
        assert model is not None  # for the type checker

        def error() -> np.ndarray:
            known = slice(None) if ok is None else ok.reshape(-1)
            e = transfer.inertia_error(model.inertia_error, states[known])
            e = e if ok is None else scatter(e, ok)
            return e.reshape(*batch, e.shape[-1])

        tensors = self.dynamics.split(found.K, batch)
        if transfer.permutation is not None:
            tensors = transfer.in_coordinates(list(tensors), (2, 3, 1, 2)[: len(tensors)])
        return computed_dynamics(transfer.labels, tensors, transfer.holonomic, error, model.description)

    def check_inertia(self, found: Table, states: np.ndarray) -> None:
        """Raise an error if I* is singular in a table for states (B, S); a solved table must keep φ."""
        transfer, count = self.transfer, len(states)
        height, size = transfer.tree.size, transfer.size
        assert self.model is not None  # for the type checker: there are dynamics
        I, error = found.model[0].reshape(count, size, size), self.model.inertia_error
        if not self._x_width:
            (I,), error = transfer.in_coordinates([I], [2]), transfer.inertia_error(error, states)
        else:
            A = found.X[:, height : height * (1 + size)].reshape(count, height, size)
            error = moved_error(error, A)
        check_inertia_regular(I, error, transfer.labels)

    # along motions

    def to_columns(self, rates: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Return arrays (B, m) reordered from coordinates to the columns of the tree."""
        order = self.transfer.permutation
        if order is None:
            return rates
        made = tuple(_empty(a.shape, a.dtype) for a in rates)
        for a, b in zip(made, rates, strict=True):
            a[:, order] = b
        return made

    def efforts(
        self,
        states: np.ndarray,
        rates: tuple[np.ndarray, ...],
        batch: tuple[int, ...],
        applied: np.ndarray | None = None,
        ok: np.ndarray | None = None,
        failures: str = "raise",
        origin: Any = None,
        closed: Numbered | None = None,
    ) -> np.ndarray:
        """Return efforts or accelerations (..., m) along motions (B, m); see `run` for the arguments.

        Those of a regressor are (..., m, K).
        """
        transfer, size = self.transfer, self.transfer.size
        rates = rates if transfer.permutation is None else self.to_columns(rates)
        force = self.applied if applied is None else applied
        plain = ok is None and transfer.is_compiled and not self.cut_joints and states.dtype == REAL
        if plain and type(failures) is str and failures == "raise" and len(states) and size:
            width = self.width if self.is_regressor else size
            out = Table(_empty((len(states), width)), _NOTHING, _NOTHING, _BRIEF, rates)
            if not self.launch(out, states, np.require(force, REAL, LAYOUT), transfer.choice):
                if self.is_regressor:
                    return self._shaped(out.T, batch)
                T = out.T if transfer.permutation is None else transfer.in_coordinates([out.T], (1,))[0]
                return T.reshape(*batch, size)
        given: dict[str, Any] = {"batch": batch, "ok": ok, "failures": failures}
        found = self.run(states, *rates, applied=force, origin=origin, closed=closed, **given)
        known = np.ones(len(states), bool) if found.ok is None else found.ok.reshape(-1)
        if self.is_regressor:
            check_finite("Regressors", self.name, found.T, known)
            return self._shaped(found.T, batch)
        T = self._completed(states, rates, found.T, known, batch, failures)
        if not found.finite or found.ok is not None or self.cut_joints:
            if self.want & lay.WANT_LOADS:
                self.model.check_springs(T, known)  # type: ignore[union-attr]
            check_finite("Accelerations" if self.want & lay.WANT_FORWARD else "Efforts", self.name, T, known)
        return T.reshape(*batch, size)

    def _shaped(self, T: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
        """Return a regressor (..., m, K) with its rows in the order of the coordinates, or that of ground."""
        shape = self.outputs.places[0][1]  # type: ignore[union-attr]
        if self.want & lay.WANT_GROUND:
            return T.reshape(*batch, *shape)
        (T,) = self.transfer.in_coordinates([T.reshape(len(T), *shape).swapaxes(1, 2)], (1,))
        return T.swapaxes(1, 2).reshape(*batch, *shape)

    def _completed(
        self,
        states: np.ndarray,
        rates: tuple[np.ndarray, ...],
        T: np.ndarray,
        known: np.ndarray,
        batch: tuple[int, ...],
        failures: str,
    ) -> np.ndarray:
        """Return efforts or accelerations (B, m) in the order of the coordinates, from results T.

        Armature, springs and dampers of cut joints are added. I* is checked for members with NaN
        accelerations. `known` (B,) is the mask of members with a result; members with a singular I* are
        removed from it, or raise an error.
        """
        transfer = self.transfer
        if not self.want & lay.WANT_FORWARD:
            if self.cut_joints:
                T = T.copy()
                I, bias, _, _ = self._cut_joint_terms(states[known], rates[0][known])
                T[known] += _times(I, rates[1][known]) + bias
            return transfer.in_coordinates([T], (1,))[0]
        terms = self._terms(states, rates, T, known)
        doubtful = known & np.isnan(terms.acceleration.real).any(axis=1) & np.isfinite(terms.I).all((1, 2))
        if transfer.size and doubtful.any():
            assert self.model is not None  # for the type checker
            inertia_error, (effort,) = self.model.inertia_error, transfer.in_coordinates([rates[1]], (1,))
            net = (effort - terms.bias)[..., None]

            def solve(members: Any) -> np.ndarray:
                I = terms.I[members]
                error = transfer.inertia_error(inertia_error, states[members])
                check_inertia_regular(I, error, transfer.labels)
                return np.linalg.solve(I, net[members])[..., 0]

            regular, found = map_valid_members(doubtful.reshape(batch), failures, solve)
            terms.acceleration[regular.reshape(-1)] = found
            known &= regular.reshape(-1) | ~doubtful
        return terms.acceleration

    def terms(
        self,
        states: np.ndarray,
        rates: tuple[np.ndarray, ...],
        ok: np.ndarray | None = None,
        batch: tuple[int, ...] | None = None,
        closed: Numbered | None = None,
    ) -> MotionTerms:
        """Return the terms (B, …) of forward dynamics along motions (B, m); see `run` for the arguments."""
        motion = self.to_columns(rates)
        found = self.run(states, *motion, ok=ok, batch=batch, closed=closed)
        known = np.ones(len(states), bool) if ok is None else ok.reshape(-1)
        return self._terms(states, motion, found.T, known)

    def _terms(
        self, states: np.ndarray, rates: tuple[np.ndarray, ...], T: np.ndarray, known: np.ndarray
    ) -> MotionTerms:
        """Return the terms (B, …) from results T of the kernels, with springs in cut joints."""
        size = self.transfer.size
        a, bias, I = T[:, :size], T[:, size : 2 * size], T[:, 2 * size : -2].reshape(len(T), size, size)
        load_power, dissipation = T[:, -2], T[:, -1]
        if self.cut_joints:
            parts = self._cut_joint_terms(states[known], rates[0][known])
            for whole, part in zip((I, bias, load_power, dissipation), parts, strict=True):
                whole[known] += part
            a[:] = np.nan  # to be solved for again
        a, bias, I = self.transfer.in_coordinates([a, bias, I], (1, 1, 2))
        return MotionTerms(a, bias, I, load_power, dissipation)

    def _cut_joint_terms(self, states: np.ndarray, v: np.ndarray) -> tuple[Any, Any, Any, Any]:
        """Return I*, bias, and powers of loads and dampers, of cut joints."""
        assert self.model is not None  # for the type checker
        program = self.model.program(self.transfer, want=self.want & BOTH)
        out = program.table(len(states), states.dtype)
        out.K[:] = 0
        program._add_cut_joints(out, states)
        return terms_along(out.model, v)

    def motion_function(self, width: int) -> Callable[..., Any]:
        """Return the function that runs the kernel for one real state along a motion, or a small batch.

        Its arguments are the state, an array (`width`,) for the result or None for a new one, two rates, and
        q⃛ for third-order series. It returns the result, or None if the kernel writes none. It accepts
        only contiguous one-dimensional arrays of float64, and returns None or raises a TypeError for others.
        Those of a batch of `count` are flat, with an array for the result, and must have the right lengths.
        """
        transfer, query, size = self.transfer, self.queries[0], self.transfer.size
        model, applied, choice = self.model, self.applied, transfer.choice
        if model is None or not self.is_compiled:
            return lambda *_: None
        plan, numbers, places = query.plan, query.numbers_in(REAL), query.scratch
        series = bool(self.want & lay.WANT_SERIES)
        rates = (np.zeros((1, size)),) * 2
        out = Table(_empty((1, self.width)), _NOTHING, _NOTHING, _BRIEF, rates)
        arguments = ARGUMENTS[query.entry](query, out, model.reference_state, applied, choice)
        entry = compiled(kernel(query.entry), *arguments)
        # scratch of calls that have ended; taking and returning is atomic
        free: list[Any] = []
        take, give, shape = free.pop, free.append, (2, transfer.tree.size)

        def run(
            state: Any, out: Any, qd: Any = None, second: Any = None, third: Any = None, count: int = 1
        ) -> Any:
            if out is None:
                T = _empty(width)
            elif len(out) == count * width:
                T = out
            else:
                return None
            if (third is None) is series or not type(state) is type(qd) is type(second) is _ndarray:
                return None  # lists, masks
            try:
                mine = take()
            except IndexError:
                mine = _empty(places) if choice is None else (_empty(places), _empty(shape, np.int64))
            if choice is None:
                left = entry(plan, numbers, state, applied, qd, second, mine, T)
            else:
                scratch, whole = mine
                last = third if series else second
                left = entry(
                    plan, numbers, state, applied, choice, qd, second, last, scratch, whole, T, _BRIEF
                )
            give(mine)
            return None if left else T

        return run


class OutputMotion(NamedTuple):
    """Values of outputs and their time derivatives, made by `Configuration.motion`; can be unpacked.

    Attributes
    ----------
    value, velocity, acceleration, jerk : (..., P)
        The derivatives of order 0 to 3. Values of angular velocities are NaN.

    Examples
    --------
    >>> kic.load("horn-two-link").at([0.0, 0.0]).motion("tip", [1.0, 0.0]).acceleration
    array([-2.,  0.,  0.])
    """

    value: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray

    def __repr__(self) -> str:
        return f"<OutputMotion: {', '.join(self._fields)} of shape {np.shape(self.value)}>"


def output_motion_function(
    model: CompiledModel, transfer: Transfer, names: tuple[str, ...]
) -> Callable[..., Any]:
    """Return a fast version of `output_motion` for one real state (S,) and rates (m,), or a small batch.

    Rates are zero if they are None. It accepts only contiguous one-dimensional arrays of float64, flat for a
    batch of `count`, and raises a TypeError for others. It returns None if `output_motion` must be called
    instead. Results are new arrays, not `out`; those of a batch are one array (count, 4, P).
    """
    query, tree, size = model.rows(names, 3), transfer.tree, transfer.size
    rows, mobile = query.layout.rows, tree.size
    if model.has_complex_step or rows.euler or rows.directed or not size:
        return lambda *_: None
    if transfer.linear is not None:  # with the couplings
        query = output_query(tree, rows, 3, transfer.linear)
    plan, numbers, places, height = query.plan, query.numbers_in(REAL), query.motion_scratch, rows.height
    unit, series = np.eye(size), None
    if transfer.system is None:  # rates of the tree are linear
        A = transfer.tree_rates(tree.reference_state, unit)
    else:
        program = Program(transfer, order=3, want=lay.WANT_SERIES, along=True, model=model)
        series = program.motion_function(program.width)
    plain = series is None and np.array_equal(A, unit)
    zeros, given = np.zeros(size), (tree.reference_state[0], *np.zeros((3, mobile)))
    given = *given, _empty(places), _empty(4 * height)
    entry = compiled(kernel("output_motion"), plan, numbers, *given)
    free: list[tuple[np.ndarray, ...]] = []
    take, give = free.pop, free.append

    def run(state: Any, out: Any, qd: Any = None, qdd: Any = None, qddd: Any = None, count: int = 0) -> Any:
        batch, count = count, count or 1
        rest = zeros if count == 1 else np.zeros(count * size)
        qd, qdd = rest if qd is None else qd, rest if qdd is None else qdd
        qddd = rest if qddd is None else qddd
        if not type(state) is type(qd) is type(qdd) is type(qddd) is _ndarray:
            return None
        if not plain and not all(a.shape == (count * size,) and a.dtype is REAL for a in (qd, qdd, qddd)):
            return None
        try:
            mine = take()
        except IndexError:
            φ = _empty(size + 3 * mobile)
            mine = _empty(places), φ, *φ[size:].reshape(3, mobile)
        scratch, φ, *orders = mine
        left, T = 0, _empty(count * 4 * height)
        first, second, third = (qd, qdd, qddd) if plain else orders
        if series is not None and count == 1:
            left = series(state, φ, qd, qdd, qddd) is None
        elif series is not None:
            φ = _empty(count * len(φ))
            left = series(state, φ, qd, qdd, qddd, count) is None
            of_tree = φ.reshape(count, -1)[:, size:].reshape(count, 3, mobile)
            first, second, third = (of_tree[:, k].ravel() for k in range(3))
        elif not plain:
            with np.errstate(over="ignore", invalid="ignore"):
                # one by one, as for batches: products of stacked rates differ by rounding
                given = (a.reshape(count, size) for a in (qd, qdd, qddd))
                first, second, third = (transfer.tree_rates(state, a).ravel() for a in given)
        left = left or entry(plan, numbers, state, first, second, third, scratch, T)
        give(mine)
        if left:
            return None
        if batch:
            return rows.requested(T.reshape(count, 4, height))
        return OutputMotion(*rows.requested(T.reshape(4, height)))

    return run


def tree_motion_query(transfer: Transfer, masses: Masses, loads: Loads, want: int, layout: Layout) -> Query:
    """Return the query along motions in coordinates of an open chain or a linear map."""
    tree, entry = transfer.tree, "tree_motion" if transfer.linear is None else "linear_tree_motion"
    found = Query(
        tree,
        entry,
        layout,
        masses=masses,
        loads=loads,
        asked=(2, 0, transfer.size, want),
        linear=transfer.linear,
        cost_us=_START_US + _PER_COLUMN_US * tree.size,
    )
    found.plan[2, lay.STATE_SIZE] = tree.state_size
    return found


def joint_laws(joint: Joint) -> np.ndarray:
    """Return stiffness, rest, damping and armature (4, n) of the coordinates of a joint."""
    return np.array([joint.stiffness, joint.rest, joint.damping, joint.armature])


def terms_along(tensors: Sequence[np.ndarray], v: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Return I*, bias, and powers of loads and dampers, from tensors of dynamics and rates (B, m)."""
    I, P, *loads = tensors
    bias = np.einsum("bkac,ba,bc->bk", P, v, v)
    if not loads:
        return I, bias, 0.0, 0.0
    load, drag = loads[0], _times(loads[1], v)
    return I, bias + drag - load, (load * v).sum(axis=1), (drag * v).sum(axis=1)


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("bac,bc->ba", A, x)


def flat_members(
    size: int,
    batch: tuple[int, ...],
    states: np.ndarray,
    given: dict[str, Any],
    *others: Any,
    finite: bool = True,
    **batches: Any,
) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[int, ...]]:
    """Return states (B, S) and arrays (B, m), broadcast to a common batch, and the shape of that batch.

    `states` have the shape `batch`. `given` are arrays (..., m) by name, or None for zeros. The dtypes of
    `others` and the shapes `batches` also enter the common dtype and batch.
    """
    arrays, batched = {}, bool(batch or batches)
    for name, a in given.items():
        if a is None:
            arrays[name] = np.zeros(size)
        elif not (
            type(a) is np.ndarray
            and a.shape == (size,)
            and a.dtype is REAL
            and a.flags.carray
            and size
            and a.max() <= ARGUMENT_MAX
            and a.min() >= -ARGUMENT_MAX
        ):
            arrays[name] = as_array(name, a, size, finite=finite)
            batched |= arrays[name].ndim > 1
        else:
            arrays[name] = a
    shape = batch
    if batched:
        batches.update(configuration=batch, **{k: a.shape[:-1] for k, a in arrays.items()})
        shape = broadcast_batches(**batches)
    dtype = np.result_type(states, *arrays.values(), *others)
    rows, flat = states.reshape(*batch, states.shape[-1]), []
    for a in (rows, *arrays.values()):
        if a.shape[:-1] != shape:
            a = np.broadcast_to(a, (*shape, a.shape[-1]))
        flat.append(np.require(a.reshape(prod(shape), a.shape[-1]), dtype, LAYOUT))
    return flat[0], tuple(flat[1:]), shape


def output_motion(
    model: CompiledModel,
    transfer: Transfer,
    names: str | tuple[str, ...],
    states: np.ndarray,
    rates: tuple[np.ndarray, ...],
    batch: tuple[int, ...],
    ok: np.ndarray | None = None,
    failures: str = "raise",
    origin: Any = None,
    closed: Numbered | None = None,
) -> OutputMotion:
    """Return values, velocities, accelerations and jerks (..., P) of outputs along motions (B, m).

    For `closed` see `Program.run`.
    """
    query, name = model.rows(names, 3), model.description.name
    rows = query.layout.rows

    def some(members: Any) -> np.ndarray:
        here, own = states[members], tuple(a[members] for a in rates)
        numbered = None if closed is None else closed.some(members)
        T = query.motion(here, transfer.tree_motion(here, *own, origin=origin, closed=numbered))
        if T.dtype.kind != "O":
            rows.check_directions(T[:, 0])
        if rows.euler and T.dtype.kind != "O":
            errors = gimbal_errors(rows.euler, T[:, 0], [T[:, k] for k in (1, 2, 3)])
            check_gimbal(name, rows.labels, errors)
        return T

    good, T = map_valid_members(np.ones(batch, bool) if ok is None else ok, failures, some)
    known, T = good.reshape(-1), scatter(T, good)
    model.check_distances(rows, T, good)
    check_finite("Velocities, accelerations or jerks", name, T, known)
    T = rows.requested(T)
    return OutputMotion(*(T[:, k].reshape(*batch, len(rows.labels)) for k in range(4)))
