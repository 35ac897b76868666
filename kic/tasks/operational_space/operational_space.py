"""Operational-space dynamics (Khatib): inertia, velocity forces and loads at a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from kic.errors import InputError, SingularError
from kic.kernels import layout as lay
from kic.kinematics.queries import Layout, kernel, over_batch
from kic.mechanism.configuration import flat_states, model_of, run_program
from kic.mechanism.evaluator import Evaluator, Results, Tables, program_of, tables_of
from kic.numerics.arguments import names_of
from kic.numerics.arrays import (
    as_array,
    broadcast_batches,
    check_finite,
    directions,
)
from kic.numerics.display import Printable, Summary
from kic.tasks.operational_space.weighting import Weighting, task_scaling
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.program import BOTH, Transfer

if TYPE_CHECKING:
    from kic.mechanism.configuration import Configuration
    from kic.mechanism.prepared import Evaluators


class Task(ABC):
    """A task: a kernel on the tables of rows and dynamics of a program.

    `question` and `motion` are those of its evaluator. `entry` is the kernel. Arguments `_batched` are
    sliced for threads if they have more than one member. The argument `_workspace` is scratch memory, and the
    last argument receives the results, of the layout `layout`. `asked` are the rows, their order, and the
    requested parts of the dynamics. `plan` is the first argument. The scratch array has length `scratch`.
    """

    question: str
    motion: tuple[str, ...] = ()
    entry: str
    _batched: frozenset[int]
    _workspace: int
    # estimated cost of one configuration (µs), for sharing a batch among threads
    _cost_us: float
    # shape of the pivots of one member
    pivots: tuple[int, ...] = ()
    scratch: int
    layout: Layout

    def __init__(
        self,
        model: CompiledModel,
        of: str | Iterable[str],
        order: int,
        want: int,
        wrt: str | Iterable[str] | Transfer | None,
    ) -> None:
        names = names_of(of, "of", least=1)
        # at configurations φ is kept, from which the error of I* follows
        self._program = program = model.program(wrt, names, order, want, keep=bool(want))
        self._model, self.asked = model, (names, order, want)
        self._transfer, self.coordinates = program.transfer, program.transfer.labels
        table, dynamics = program.outputs, program.dynamics
        assert table is not None  # for the type checker: a task has rows
        rows = self._rows = table.rows
        self.rows = self.names = tuple(rows.labels)
        P, M = len(self.rows), self._transfer.size
        if P > M:
            message = (
                f"`of` must have at most {M} rows, the degrees of freedom of '{model.description.name}', got "
                f"{P}: {', '.join(rows.labels)}. Name fewer rows."
            )
            raise InputError(message, key="of", got=P, dof=M)
        picked = np.arange(rows.height) if rows.select is None else rows.select
        columns = program.transfer.permutation
        places = [table.places[1][0], table.places[2][0] if order > 1 else 0]
        # the kernel ignores entries of dynamics that are not requested
        places += [start for start, _ in dynamics.places] + [0] * (4 - len(dynamics.places))
        in_order = range(M) if columns is None else columns
        # index plan; see `kic.kernels.operational_space`
        self.plan = np.array([M, P, columns is None, *places, *picked, *in_order])

    @abstractmethod
    def results(self, table: np.ndarray, batch: tuple[int, ...]) -> Any:
        """Return the results for a table of a batch."""

    @abstractmethod
    def _arguments(self, T: np.ndarray, members: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the arguments of the kernel before the tables, and those after them."""

    @abstractmethod
    def _check_regular(self, work: Any) -> None:
        """Raise `SingularError` for members with a singular task; unsolved members stay NaN."""

    def evaluator(self) -> Evaluator[Any]:
        """Return the evaluator of this task."""
        return Tables(self._model, (), program=program_of(self.tables()), task=self)

    def tables(self) -> Tables:
        """Return the evaluator of the rows and dynamics from which the task is computed."""
        return Tables(self._model, (), program=self._model.program(self._transfer, *self.asked))

    def __call__(self, results: Results, out: Any, *motion: Any) -> Any:
        """Return the task for results of rows and dynamics along a motion; `out` reuses earlier ones."""
        if out is None:
            out = self._allocate(results)
        self._fill_motion(out, *motion)
        self._launch(out._work)
        return out

    def _fill_motion(self, out: Any) -> None:  # noqa: B027
        """Copy the arguments after the state into the arguments of the kernel."""

    def _allocate(self, results: Results) -> Any:
        """Allocate results that are computed from those of the tables."""
        T, K, batch = tables_of(results)
        work = self._work(T, K)
        out = self.results(work[-1], batch)
        out._task, out._results, out._work = self, results, work
        return out

    def _work(self, T: np.ndarray, K: np.ndarray, members: Any = slice(None)) -> list[Any]:
        """Return the arguments of the kernel for members of a batch; the last one receives the results."""
        if T.dtype.kind == "O":
            message = f"{self.question}() requires a numeric configuration, got symbols."
            raise InputError(message, key="configuration")
        count, dtype = len(T), T.dtype
        before, after = self._arguments(T, members)
        scratch, pivots = np.empty(self.scratch, dtype), np.empty((count, *self.pivots))
        table = np.empty((count, self.layout.width), dtype)
        return [self.plan, *before, T, K, *after, scratch, pivots, table]

    def _launch(self, work: Any) -> None:
        """Run the kernel; raise `SingularError` for a singular task."""
        try:
            self._run_kernel(work)
        except (ValueError, ZeroDivisionError):
            # a complex pivot was exactly zero, which stops the kernel; real ones are compared afterwards
            if work[-1].dtype.kind == "c":
                self._run_kernel([x.real.copy() if np.iscomplexobj(x) else x for x in work])
            raise

    def _run_kernel(self, work: Any) -> None:
        """Run the kernel, for a batch on the thread pool."""
        entry, count = kernel(self.entry), len(work[-1])
        if count == 1:
            if entry(*work):
                self._check_regular(work)
            return
        bad: list[int] = []

        def part(a: int, b: int) -> None:
            own = [x[a:b] if k in self._batched and len(x) > 1 else x for k, x in enumerate(work)]
            own[self._workspace] = np.empty_like(work[self._workspace])
            bad.append(entry(*own))

        if count:
            over_batch()(part, count, self._cost_us)
            if sum(bad):
                self._check_regular(work)


class OperationalSpace(Printable):
    """Operational-space dynamics of a task: F = Λ ü + q̇ᵀ μ q̇ + p + J̄ᵀB q̇.

    F are forces at the P rows of the task, P ≤ M, equivalent to efforts T = GᵀF at the coordinates.
    Null-space efforts Nᵀ T₀ and rates N q̇₀ do not affect the task.

    Attributes
    ----------
    rows, coordinates : tuple of str
        Names of the P rows and of the M coordinates.
    Lambda : (..., P, P)
        Task inertia Λ = (G I*⁻¹ Gᵀ)⁻¹.
    mu : (..., P, M, M)
        Velocity forces μ[p, a, b] = J̄ᵀP* − Λ H, in rates of the coordinates, including null-space rates.
    p : (..., P)
        Load −J̄ᵀTᴸ, which balances gravity, springs and applied forces.
    damping : (..., P, M)
        J̄ᵀ B of the dampers.
    inverse : (..., M, P)
        Dynamically consistent right inverse J̄ = I*⁻¹ Gᵀ Λ (eq 4-70): q̇ = J̄ u̇ has the least kinetic energy.
    G : (..., P, M)
        Jacobian of the task.

    Examples
    --------
    >>> s = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]).operational_space("flange")
    >>> s.Lambda.shape, s.mu.shape, s.p.shape
    ((3, 3), (3, 7, 7), (3,))
    """

    _one_line = ("rows", "coordinates", "batch")
    _counterparts: ClassVar[dict[str, str]] = {
        "mass_matrix": "Lambda, the task inertia",
        "inertia": "Lambda, the task inertia",
        "jacobian": "G, the Jacobian",
    }

    def __init__(self, rows: tuple[str, ...], coordinates: tuple[str, ...], parts: list[np.ndarray]) -> None:
        self.rows, self.coordinates = rows, coordinates
        self.Lambda, self.inverse, self.mu, self.p, self.damping, self.G = parts
        # set by an evaluator, which can refill the arrays
        self._task: Any = None
        self._results: Any = None
        self._work: Any = None

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.p.shape[:-1]

    @property
    def projector(self) -> np.ndarray:
        """Null-space projector N = 1 − J̄ G, (..., M, M), with G N = 0; Nᵀ projects efforts."""
        return np.eye(len(self.coordinates)) - self.inverse @ self.G

    @property
    def mu_task(self) -> np.ndarray:
        """Velocity forces in rates of the task, μ(J̄, J̄), (..., P, P, P), without null-space motion."""
        J = self.inverse
        return np.swapaxes(J, -1, -2)[..., None, :, :] @ self.mu @ J[..., None, :, :]

    def mass(self, direction: Any) -> np.ndarray:
        """Return the effective mass (...,) that a force at the task accelerates along a direction (..., P).

        It is 1 / (dᵀ Λ⁻¹ d) for the unit vector d.

        Examples
        --------
        >>> arm = kic.load("horn-two-link").at([0.0, 1.5])
        >>> round(float(arm.operational_space(["tip.x", "tip.y"]).mass([1, 0])), 4)
        0.3341
        """
        d = directions("direction", direction, len(self.rows))
        broadcast_batches(space=self.batch, direction=d.shape[:-1])
        compliance = np.linalg.inv(self.Lambda)
        return 1 / np.einsum("...p,...pr,...r->...", d, compliance, d)

    def force(self, qd: Any, udd: Any) -> np.ndarray:
        """Compute the task force (..., P) for accelerations of the task: F = Λ ü + q̇ᵀ μ q̇ + p + J̄ᵀB q̇.

        Parameters
        ----------
        qd, udd : (..., M), (..., P) array_like
            Rates of the coordinates, and accelerations of the task.

        Examples
        --------
        >>> arm = kic.load("horn-two-link").at([0.0, 1.5])
        >>> s = arm.operational_space(["tip.x", "tip.y"])
        >>> s.effort(s.force([0.0, 0.0], [0.0, 0.0])).round(3).tolist()  # holds the weight
        [15.062, 0.347]
        """
        v, a = self._checked(qd=(qd, len(self.coordinates)), udd=(udd, len(self.rows)))
        return (
            np.einsum("...pr,...r->...p", self.Lambda, a)
            + np.einsum("...pab,...a,...b->...p", self.mu, v, v)
            + np.einsum("...pn,...n->...p", self.damping, v)
            + self.p
        )

    def effort(self, force: Any, null: Any = None) -> np.ndarray:
        """Compute the efforts (..., M) for a task force (..., P): T = Gᵀ F + Nᵀ T₀.

        Only the null-space part Nᵀ T₀ of the efforts T₀ (`null`, (..., M)) is added.
        """
        M = len(self.coordinates)
        F, T0 = self._checked(force=(force, len(self.rows)), null=(np.zeros(M) if null is None else null, M))
        T = np.einsum("...pn,...p->...n", self.G, F)
        return T if null is None else T + np.einsum("...kn,...k->...n", self.projector, T0)

    def _checked(self, **given: tuple[Any, int]) -> list[np.ndarray]:
        """Return arguments (..., n) whose batches broadcast with that of the results."""
        arrays = [as_array(name, value, size) for name, (value, size) in given.items()]
        broadcast_batches(space=self.batch, **{k: a.shape[:-1] for k, a in zip(given, arrays, strict=True)})
        return arrays

    def summary(self) -> Summary:
        """Return tables of Λ, μ, p and the consistent inverse."""
        sheet = Summary(f"operational space of {', '.join(self.rows)}")
        index = sheet.member(self.batch)
        if index is not None:
            task, names = self.rows, self.coordinates
            sheet.matrix("Λ (inertia)", task, task, self.Lambda[index])
            sheet.say("\nμ (velocity forces, in rates of the coordinates)")
            sheet.planes("μ", task, names, names, self.mu[index])
            sheet.matrix("p (load)", task, [""], self.p[index][:, None])
            sheet.matrix("J̄ (dynamically consistent inverse)", names, task, self.inverse[index])
        return sheet


class OperationalSpaceTask(Task):
    """Operational-space dynamics of a task."""

    question = "operational_space"
    entry, _cost_us = "operational", 2.0
    _batched, _workspace = frozenset((1, 2, 5, 6)), 4

    def __init__(
        self, model: CompiledModel, of: str | Iterable[str], wrt: str | Iterable[str] | Transfer | None = None
    ) -> None:
        model.require_none_held("The operational space")
        super().__init__(model, of, 2, BOTH, wrt)
        P, M = len(self.rows), len(self.coordinates)
        weighting = Weighting("minimum kinetic energy", "consistent", None, M)
        self.scaling = task_scaling(model, self._rows, weighting, self._transfer)[0]
        self.scratch = P * M + P * M * M + 2 * M * M + M * P + P * P
        self.layout = Layout([(P, P), (M, P), (P, M, M), (P,), (P, M), (P, M)])

    def _at(self, configuration: Configuration, failures: str) -> OperationalSpace:
        """Return the dynamics at a configuration; singular members raise an error or are NaN."""
        program, found = self._program, run_program(configuration, self._program, failures)
        work, states = self._work(found.T, found.K), flat_states(configuration)
        table = work[-1]
        while True:
            try:
                program.check_inertia(found, states)
                self._launch(work)
                break
            except SingularError as error:
                failed = np.ravel(error.numbers["failed"])
                if failures == "raise":
                    error.place(range(len(states)), found.batch)
                    raise
                good = np.ones(found.batch, bool) if found.ok is None else np.array(found.ok)
                good.reshape(-1)[failed] = False
                found.ok, found.T[failed], found.K[failed] = good, np.nan, np.nan
        if found.ok is not None:
            table[~found.ok.reshape(-1)] = np.nan
        if not np.isfinite(table).all():
            known = None if found.ok is None else found.ok.reshape(-1)
            check_finite("Operational-space dynamics", program.name, table, known)
        return self.results(table, found.batch)

    def results(self, table: np.ndarray, batch: tuple[int, ...]) -> OperationalSpace:
        """Return the results for a table of a batch."""
        return OperationalSpace(self.rows, self._transfer.labels, list(self.layout.split(table, batch)))

    def _arguments(self, T: np.ndarray, members: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return no arguments before the tables, and the scale of each row."""
        return (), (self.scaling,)

    def _check_regular(self, work: Any) -> None:
        """Raise `SingularError` for members with a singular task; unsolved members stay NaN."""
        _, T, K, _, _, pivots, _ = work
        known = np.isfinite(T).all(axis=1) & np.isfinite(K).all(axis=1)
        bad = np.flatnonzero(known & ~(pivots > lay.PIVOT_SHARE_MIN))
        if not bad.size:
            return
        least = float(np.nan_to_num(pivots[bad]).min())
        message = (
            f"The task {', '.join(self.rows)} of '{self._program.name}' is singular here: its rows are "
            f"dependent or do not move, or some motion moves no mass (relative pivot {least:.1e}). Name "
            "fewer rows, or move away from this configuration."
        )
        raise SingularError(message, names=self.rows, share=least, failed=[(int(i),) for i in bad])


def operational_space(
    configuration: Configuration,
    of: str | Iterable[str],
    *,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> OperationalSpace:
    """Compute the operational-space dynamics of a task: Λ, μ, p, consistent inverse and null space.

    Parameters
    ----------
    of : str or list of str
        Rows of the task, as `of` in `coefficients`, at most as many as the degrees of freedom.
    wrt : str or list of str, optional
        Coordinates, as in `coefficients`; by default the mechanism's own.
    failures : {"raise", "mask"}
        Treatment of members whose task is singular: raise an error, or return NaN.

    Returns
    -------
    OperationalSpace
        ``s.Lambda`` (..., P, P), ``s.mu`` (..., P, M, M), ``s.p`` (..., P), ``s.inverse`` (..., M, P).

    Raises
    ------
    InputError
        If the task has more rows than degrees of freedom, or the state has symbols.
    SingularError
        If the rows of the task are dependent.

    Examples
    --------
    >>> c = kic.load("gough-stewart").at()
    >>> s = c.operational_space(["platform.x", "platform.y"])
    >>> bool(abs(s.G @ s.projector).max() < 1e-12)
    True
    """
    model = model_of(configuration)
    names = of if type(of) is str else names_of(of, "of", 1)
    key = OperationalSpaceTask, names, None if wrt is None else names_of(wrt, "wrt")
    f = model.prepared(key, lambda: OperationalSpaceTask(model, *key[1:]))
    return f._at(configuration, failures)


def operational_space_evaluator(
    evaluators: Evaluators, of: str | Iterable[str], *, wrt: str | Iterable[str] | None = None
) -> Evaluator[OperationalSpace]:
    """Return an evaluator of the dynamics of a task in terms of its rows `of`."""
    return OperationalSpaceTask(model_of(evaluators), of, wrt).evaluator()
