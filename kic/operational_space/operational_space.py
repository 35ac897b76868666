"""Operational-space dynamics: inertia, velocity forces and loads as a task feels them (Khatib)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.display import Summary, member
from kic.dynamics.dynamics import check_inertia_regular
from kic.errors import InputError, SingularError
from kic.evaluator import Evaluator
from kic.kinematics.outputs import Rows
from kic.kinematics.queries import Table, kernel, over_batch
from kic.numerics.arguments import names_of
from kic.numerics.arrays import (
    as_array,
    broadcast_batches,
    check_finite,
    directions,
    map_valid_members,
    scatter,
)
from kic.operational_space.weighting import LEAST_SHARE, Weighting, task_scaling
from kic.transfer.compiled_model import CompiledModel

if TYPE_CHECKING:
    from kic.configuration import Configuration
    from kic.evaluator import Results
    from kic.transfer.compiled_model import CompiledModel


@dataclass(frozen=True)
class TaskTables:
    """What a kernel of tasks is given.

    Attributes
    ----------
    evaluator : Evaluator
        Fills the tables.
    rows : Rows
        Of the task, P of them in M coordinates.
    plan : (…) int
        See `kic.kernels.operational`.
    """

    evaluator: Evaluator
    rows: Rows
    plan: np.ndarray


def task_tables(
    model: CompiledModel,
    task: str | Iterable[str],
    order: int,
    dynamics: bool | Literal["inertia"],
    wrt: str | Iterable[str] | None,
) -> TaskTables:
    """Tables for a task of at most as many rows as there are freedoms.

    Raises
    ------
    InputError
        For a task of no rows, or of more than freedoms.
    """
    names = names_of(task, "task")
    if not names:
        raise InputError("Expected at least one row in `task`, got none.")
    evaluator = Evaluator(model, names, order, dynamics, wrt)
    table, parts = evaluator.layouts
    assert table is not None  # for the type checker: a task has rows
    rows, M = table.rows, len(evaluator.coordinates)
    P = len(rows.labels)
    if P > M:
        raise InputError(
            f"'{model.description.name}' has {M} freedoms, but the task has {P} rows: "
            f"{', '.join(rows.labels)}. Name at most as many as there are freedoms.",
            rows=P,
            freedoms=M,
        )
    picked = np.arange(rows.height) if rows.select is None else rows.select
    columns = evaluator._transfer.permutation
    places = [table.places[1][0], table.places[2][0] if order > 1 else 0]
    # of dynamics that are not asked for no place is read
    places += [start for start, _ in parts.places] + [0] * (4 - len(parts.places))
    in_order = range(M) if columns is None else columns
    return TaskTables(evaluator, rows, np.array([M, P, columns is None, *places, *picked, *in_order]))


def check_inertia(evaluator: Evaluator, states: np.ndarray, table: np.ndarray) -> None:
    """Raise an error where I* in a table (B, n) of the dynamics at states (B, S) has no inverse."""
    model, transfer, M = evaluator._model, evaluator._transfer, len(evaluator.coordinates)
    start, _ = evaluator.layouts[1].places[0]
    I = table[:, start : start + M * M].reshape(-1, M, M)
    (I,) = transfer.in_coordinates([I], [2])
    error = transfer.inertia_error(model.inertia_error, states)
    check_inertia_regular(I, error, evaluator.coordinates)


# rough cost of one posture (microseconds), by which a batch is given to threads
_COST = 2.0


class OperationalSpace:
    """The dynamics of a mechanism as a task feels them: F = Λ ü + q̇ᵀ μ q̇ + p + J̄ᵀB q̇.

    F are forces at the task's rows that the efforts T = GᵀF stand for. With M coordinates and P ≤ M task
    rows; efforts Nᵀ T₀ and rates N q̇₀, of the null space, are not felt by the task.

    Attributes
    ----------
    task, coordinates : tuple of str
        Names of the P rows and of the M coordinates.
    Lambda : (..., P, P)
        Inertia Λ = (G I*⁻¹ Gᵀ)⁻¹.
    mu : (..., P, M, M)
        μ[p, a, b] = J̄ᵀP* − Λ H, in rates of the coordinates: those in the null space count, too.
    p : (..., P)
        Load −J̄ᵀTᴸ: what holds gravity, springs and applied forces.
    damping : (..., P, M)
        J̄ᵀ B of the dampers.
    inverse : (..., M, P)
        Dynamically consistent right inverse J̄ = I*⁻¹ Gᵀ Λ (eq 4-70): q̇ = J̄ u̇ has the least kinetic energy.
    G : (..., P, M)
        First-order coefficients of the task.

    Examples
    --------
    >>> import kic
    >>> s = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]).operational_space("flange")
    >>> s.Lambda.shape, s.mu.shape, s.p.shape
    ((3, 3), (3, 7, 7), (3,))
    """

    def __init__(self, task: tuple[str, ...], coordinates: tuple[str, ...], parts: list[np.ndarray]) -> None:
        self.task, self.coordinates = task, coordinates
        self.Lambda, self.inverse, self.mu, self.p, self.damping, self.G = parts
        # of an evaluator, which fills them anew
        self._of: Any = None
        self._results: Any = None
        self._work: Any = None

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.p.shape[:-1]

    @property
    def projector(self) -> np.ndarray:
        """Projector on the null space N = 1 − J̄ G, (..., M, M): G N = 0; of efforts it is Nᵀ."""
        return np.eye(len(self.coordinates)) - self.inverse @ self.G

    @property
    def mu_task(self) -> np.ndarray:
        """μ in the task's own rates, (..., P, P, P), for motion without any in the null space: μ(J̄, J̄)."""
        J = self.inverse
        return np.swapaxes(J, -1, -2)[..., None, :, :] @ self.mu @ J[..., None, :, :]

    def mass(self, direction: Any) -> np.ndarray:
        """Effective mass along a direction: what a force in it, at the task, has to accelerate.

        Parameters
        ----------
        direction : (..., P) array_like
            In the task's rows; need not have unit length.

        Returns
        -------
        (...,)
            1 / (dᵀ Λ⁻¹ d), of the unit vector d.

        Raises
        ------
        InputError
            For another shape, or a direction of no length.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link").at([0.0, 1.5])
        >>> round(float(arm.operational_space(["tip.x", "tip.y"]).mass([1, 0])), 4)
        0.3341
        """
        d = directions("direction", direction, len(self.task))
        broadcast_batches(space=self.batch, direction=d.shape[:-1])
        compliance = np.linalg.inv(self.Lambda)
        return 1 / np.einsum("...p,...pr,...r->...", d, compliance, d)

    def force(self, qd: Any, udd: Any) -> np.ndarray:
        """Force at the task that its acceleration takes: F = Λ ü + q̇ᵀ μ q̇ + p + J̄ᵀB q̇.

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.
        udd : (..., P) array_like
            Acceleration of the task.

        Returns
        -------
        (..., P)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link").at([0.0, 1.5])
        >>> s = arm.operational_space(["tip.x", "tip.y"])
        >>> s.inverse_dynamics(s.force([0.0, 0.0], [0.0, 0.0])).round(3).tolist()  # holds the weight
        [15.062, 0.347]
        """
        v, a = self._matched(qd=(qd, len(self.coordinates)), udd=(udd, len(self.task)))
        return (
            np.einsum("...pr,...r->...p", self.Lambda, a)
            + np.einsum("...pab,...a,...b->...p", self.mu, v, v)
            + np.einsum("...pn,...n->...p", self.damping, v)
            + self.p
        )

    def effort(self, force: Any, null: Any = None) -> np.ndarray:
        """Efforts of a force at the task, and of others that it does not feel: T = Gᵀ F + Nᵀ T₀.

        Parameters
        ----------
        force : (..., P) array_like
            Force at the task.
        null : (..., M) array_like, optional
            Efforts of which the part in the null space is added.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.
        """
        M = len(self.coordinates)
        F, T0 = self._matched(force=(force, len(self.task)), null=(np.zeros(M) if null is None else null, M))
        T = np.einsum("...pn,...p->...n", self.G, F)
        return T if null is None else T + np.einsum("...kn,...k->...n", self.projector, T0)

    def _matched(self, **given: tuple[Any, int]) -> list[np.ndarray]:
        """Arguments (..., n) whose batches go with this."""
        arrays = [as_array(name, value, size) for name, (value, size) in given.items()]
        broadcast_batches(space=self.batch, **{k: a.shape[:-1] for k, a in zip(given, arrays, strict=True)})
        return arrays

    def summary(self) -> Summary:
        """Labelled tables, to print or to show."""
        sheet = Summary(f"operational space of {', '.join(self.task)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is not None:
            task, names = self.task, self.coordinates
            sheet.matrix("Λ (inertia)", task, task, self.Lambda[index])
            sheet.say("\nμ (velocity forces, in rates of the coordinates)")
            sheet.planes("μ", task, names, names, self.mu[index])
            sheet.matrix("p (load)", task, [""], self.p[index][:, None])
            sheet.matrix("J̄ (dynamically consistent inverse)", names, task, self.inverse[index])
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


class OperationalSpaceEvaluator:
    """Operational space for hot loops; made by `Mechanism.prepare_operational_space`.

    Call it with a state (..., S), as `Configuration.state` has it, and with ``out=`` earlier results of the
    same batch, to have their arrays filled anew. It may be called from many threads at once.

    Examples
    --------
    >>> import kic
    >>> m = kic.load("panda")
    >>> f = m.prepare_operational_space("flange")
    >>> s = f(m.at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]).state)
    >>> s.Lambda.shape
    (3, 3)
    """

    def __init__(
        self, model: CompiledModel, task: str | Iterable[str], wrt: str | Iterable[str] | None = None
    ) -> None:
        tables = task_tables(model, task, 2, True, wrt)
        self._model, self._evaluator, self._rows = model, tables.evaluator, tables.rows
        self._plan = tables.plan
        self.task, self.coordinates = tuple(tables.rows.labels), tables.evaluator.coordinates
        P, M = len(self.task), len(self.coordinates)
        least = Weighting("minimum kinetic energy", "consistent", None, M)
        self._soft = task_scaling(model, tables.rows, least, wrt, M)[0]
        self._scratch = P * M + P * M * M + 2 * M * M + M * P + P * P
        self._answer = Table([(P, P), (M, P), (P, M, M), (P,), (P, M), (P, M)])

    def __call__(
        self, state: np.ndarray, out: OperationalSpace | None = None, check: bool = False
    ) -> OperationalSpace:
        """Evaluate at a state.

        Parameters
        ----------
        state : (..., S) ndarray
            One state or a batch.
        out : OperationalSpace, optional
            Earlier results of this evaluator for the same batch, whose arrays are filled anew.
        check : bool
            Whether to look first if the states are closed and can be driven; see `Evaluator`.

        Returns
        -------
        OperationalSpace

        Raises
        ------
        InputError
            For a state of another length, or an `out` that does not fit.
        SingularError
            Where the task's rows depend on one another, or a motion of it moves no mass.
        """
        if out is None:
            out = self._room(self._evaluator(state, check=check))
        elif type(out) is OperationalSpace and out._of is self:
            self._evaluator(state, out=out._results, check=check)
        else:
            raise InputError("`out` must be earlier results of this evaluator, for the same batch.")
        self._fill(out._work)
        return out

    def table(self, states: np.ndarray) -> np.ndarray:
        """All parts of the answer side by side, (B, …), at states (B, S)."""
        out = self._room(self._evaluator(states))
        check_inertia(self._evaluator, states, out._work[2])
        self._fill(out._work)
        self._model.check_distances(self._rows, out._work[1], None)
        self._model.check_springs(out.p, None)
        check_finite("Operational-space dynamics", self._model.description.name, out._work[-1])
        return out._work[-1]

    def results(self, table: np.ndarray, batch: tuple[int, ...]) -> OperationalSpace:
        """Results for a batch whose table is this."""
        return OperationalSpace(self.task, self.coordinates, self._answer.split(table, batch))

    def _room(self, results: Results) -> OperationalSpace:
        """Results to be filled from those of the rows and the dynamics."""
        T, K = results._rows, results._model
        if T.dtype.kind == "O":
            raise InputError("The operational space is answered in numbers only; the state holds symbols.")
        made = np.empty((len(T), self._answer.width), T.dtype)
        out = self.results(made, results._batch)
        out._of, out._results = self, results
        out._work = self._plan, T, K, self._soft, np.empty(self._scratch, T.dtype), np.empty(len(T)), made
        return out

    def _fill(self, work: tuple[np.ndarray, ...]) -> None:
        """Run the kernel; a batch on kic's threads."""
        entry, count = kernel("operational"), len(work[1])
        if count == 1:
            if entry(*work):
                self._refuse(work)
            return
        plan, T, K, soft, scratch, shares, made = work

        def part(a: int, b: int) -> None:
            entry(plan, T[a:b], K[a:b], soft, np.empty_like(scratch), shares[a:b], made[a:b])

        if count:
            over_batch()(part, count, _COST)
            if not (shares > LEAST_SHARE).all():
                self._refuse(work)

    def _refuse(self, work: tuple[np.ndarray, ...]) -> None:
        """Name the members whose task is singular; those without a posture are NaN and stay so."""
        _, T, K, _, _, shares, _ = work
        known = np.isfinite(T).all(axis=1) & np.isfinite(K).all(axis=1)
        bad = np.flatnonzero(known & ~(shares > LEAST_SHARE))
        if not bad.size:
            return
        least = float(np.nan_to_num(shares[bad]).min())
        raise SingularError(
            f"The task {', '.join(self.task)} of '{self._model.description.name}' is singular here: its rows "
            "depend on one another, or do not move, or some motion moves no mass (a pivot keeps "
            f"{least:.1e} of its own). Name fewer rows, or move away from the posture.",
            share=least,
            failed=[(int(i),) for i in bad],
        )


def operational_space(
    configuration: Configuration,
    task: str | Iterable[str],
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> OperationalSpace:
    """Dynamics as a task feels them: Λ, μ, p, the dynamically consistent inverse and its null space.

    See `Configuration.operational_space`.
    """
    f = OperationalSpaceEvaluator(configuration._model, task, wrt)
    good, table = map_valid_members(
        configuration.ok, failures, lambda members: f.table(configuration._states[members])
    )
    return f.results(scatter(table, good), configuration.batch)
