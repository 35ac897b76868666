"""Resolving redundancy at postures: rates, accelerations, jerks, and the coefficients of the law itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.configuration import Configuration
from kic.display import Summary, member
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, SingularError, short_repr
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.queries import Table, kernel, over_batch
from kic.kinematics.scaling import EPS
from kic.kinematics.state import integrate
from kic.numerics.arguments import names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_finite, map_valid_members, scatter
from kic.operational_space.operational_space import check_inertia, task_tables
from kic.operational_space.secondary_objectives import Aim
from kic.operational_space.weighting import (
    GIVEN_METRIC,
    INERTIA_METRIC,
    LEAST_SHARE,
    UNIT_METRIC,
    Damping,
    Law,
    RightInverse,
    Weight,
    Weighting,
    task_scaling,
)

if TYPE_CHECKING:
    from kic.transfer.compiled_model import CompiledModel


# what a result that was made for a hot loop says instead
_HOT = "A prepared evaluator answers {}; ask Configuration.resolve for this."


class RedundancyResolution:
    """Rates, accelerations and jerks of M coordinates for a task of P ≤ M rows; see `Configuration.resolve`.

    Attributes
    ----------
    task, coordinates : tuple of str
        Names of the P rows and of the M coordinates.
    qd : (..., M)
        Rates q̇.
    qdd : (..., M) or None
        Accelerations q̈; None where that of the task was not given.
    qddd : (..., M) or None
        Jerks q⃛, likewise.
    multiplier : (..., P)
        λ of Q (q̇ − z) = Gᵀ λ: what the task costs. Of the kinetic energy its momentum Λ (u̇ − G z).
    damping : (...,)
        λ² that was added to the task's rows (see `Configuration.resolve`), zero where it was not damped.
    missed : (..., P)
        What damping costs: u̇ − G q̇, zero but for rounding where it was not damped.
    missed_acceleration : (..., P) or None
        ü − G q̈ − q̇ᵀ H q̇, likewise.

    Examples
    --------
    >>> import kic
    >>> r = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]).resolve("flange", [0.1, 0.0, 0.0])
    >>> r.qd.shape, bool(abs(r.missed).max() < 1e-15)
    ((7,), True)
    """

    def __init__(self, task: tuple[str, ...], coordinates: tuple[str, ...], parts: list[np.ndarray]) -> None:
        self.task, self.coordinates = task, coordinates
        self.qd, self.multiplier, self.missed, self.damping = parts[0], parts[2], parts[3], parts[5][..., 0]
        self.qdd: np.ndarray | None = parts[1]
        self.missed_acceleration: np.ndarray | None = parts[4]
        self.qddd: np.ndarray | None = None
        self._effort: np.ndarray | None = parts[6]
        # where it came from, if that was a configuration
        self._map: Callable[[], Coefficients] | None = None
        self._model: Callable[[], Dynamics] | None = None
        # of an evaluator, which fills them anew
        self._of: Any = None
        self._results: Any = None
        self._motion: Any = None
        self._work: Any = None

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.qd.shape[:-1]

    @property
    def damped(self) -> np.ndarray:
        """Which members were damped, (...) bool: they do not do what the task asks, see `missed`."""
        return self.damping.real > 0

    @property
    def effort(self) -> np.ndarray:
        """Efforts (..., M) of the motion: T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (eq 4-67).

        Raises
        ------
        InputError
            If no acceleration of the task was given, or an evaluator was not prepared for efforts.
        InertiaError
            If a body has no mass or inertia.
        """
        if self._effort is None:
            if self.qdd is None:
                raise InputError("Efforts need accelerations; give `udd`, that of the task.")
            if self._model is None:
                raise InputError("This evaluator was prepared without efforts; set effort=True.")
            self._effort = self._model().inverse_dynamics(self._known(self.qd), self._known(self.qdd))
            self._effort = np.where(np.isnan(self.qd), np.nan, self._effort)
        return self._effort

    @staticmethod
    def _known(a: np.ndarray) -> np.ndarray:
        """Members without an answer as zeros, for questions that refuse NaN."""
        return np.where(np.isnan(a), 0.0, a)

    @property
    def coefficients(self) -> Coefficients:
        """G and H of the coordinates with respect to the task, for the chosen weight and law, without z.

        G is the right inverse of (4-69), H that of (4-72) for the law "instantaneous", and ∂G/∂u along the
        motion of each row of the task for "consistent". Then q̇ = G u̇, q̈ = G ü + u̇ᵀ H u̇ (4-71). With fewer
        rows than coordinates these are no derivatives of any function q(u): going round in the task may end
        elsewhere, so that all names are `quasi`.

        Raises
        ------
        InputError
            Of an evaluator's results.
        """
        if self._map is None:
            raise InputError(_HOT.format("numbers only"))
        return self._map()

    def dynamics(self) -> Dynamics:
        """Efforts at the coordinates for motion of the task: T = I*_qu ü + u̇ᵀ P*_quu u̇ − Tᴸ_q (eq 4-73).

        Returns
        -------
        Dynamics
            With efforts at the M coordinates: I*_qu (..., M, P) (4-74), P*_quu (..., M, P, P) of the chosen
            law, which is (4-75) for "instantaneous", and the load Tᴸ_q (..., M). (The source prints −Rᵀ T_u
            for the last, which has another dimension.)

        Raises
        ------
        InputError, InertiaError
            As `effort`.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
        >>> r = c.resolve("flange", [0.1, 0.0, 0.0], [0.0, 0.2, 0.0])
        >>> d = r.dynamics()
        >>> d.I.shape, bool(abs(d.inverse_dynamics([0.1, 0.0, 0.0], [0.0, 0.2, 0.0]) - r.effort).max() < 1e-12)
        ((7, 3), True)
        """
        if self._model is None:
            raise InputError(_HOT.format("numbers only"))
        model = self._model()
        stay = Coefficients.identity(self.coordinates, quasi=() if model.holonomic else self.coordinates)
        return model.transfer(self.coefficients, left=stay)

    def summary(self) -> Summary:
        """Labelled tables, to print or to show."""
        sheet = Summary(f"{', '.join(self.coordinates)} for the task {', '.join(self.task)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if self.damped.any():
            which = f" in {int(self.damped.sum())} of {self.damped.size} members" if self.batch else ""
            sheet.say(
                f"damped{which}: the task is not met, λ² = {float(np.nanmax(self.damping)):.3g} at most"
            )
        if index is not None:
            of = {"q̇": self.qd, "q̈": self.qdd, "q⃛": self.qddd}
            columns = {name: a[index] for name, a in of.items() if a is not None}
            sheet.matrix("motion", self.coordinates, list(columns), np.stack(list(columns.values()), axis=-1))
            of = {"λ": self.multiplier, "missed u̇": self.missed, "missed ü": self.missed_acceleration}
            columns = {name: a[index] for name, a in of.items() if a is not None}
            sheet.matrix("task", self.task, list(columns), np.stack(list(columns.values()), axis=-1))
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


# rough cost of one posture (microseconds), by which a batch is given to threads
_COST = 3.0
_ndarray, _REAL = np.ndarray, np.dtype(np.float64)


class RedundancyEvaluator:
    """Resolution of redundancy for hot loops; made by `Mechanism.prepare_resolve`.

    Call it with a state (..., S), as `Configuration.state` has it, the motion of the task, and with ``out=``
    earlier results of the same batch, to have their arrays filled anew. It may be called from many threads
    at once.

    Attributes
    ----------
    task, coordinates : tuple of str
        Names of the P rows and of the M coordinates.

    Examples
    --------
    >>> import kic
    >>> m = kic.load("panda")
    >>> f = m.prepare_resolve("flange", weight="minimum kinetic energy", effort=True)
    >>> r = f(m.at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]).state, [0.1, 0.0, 0.0], [0.0, 0.0, 0.0])
    >>> r.qd.shape, r.qdd.shape, r.effort.shape
    ((7,), (7,), (7,))
    """

    def __init__(
        self,
        model: CompiledModel,
        task: str | Iterable[str],
        weight: Weight = "minimum norm",
        law: Law = "consistent",
        damping: Damping = None,
        wrt: str | Iterable[str] | None = None,
        effort: bool = False,
        order: int = 2,
    ) -> None:
        inertia = isinstance(weight, str) and weight == "minimum kinetic energy"
        if type(order) is not int or order not in (1, 2):
            raise InputError(f"Expected `order` to be 1 or 2, got {short_repr(order)}.")
        if not isinstance(effort, bool):
            raise InputError(f"Expected `effort` to be True or False, got {short_repr(effort)}.")
        self._effort, self._order = effort, order
        if effort and order < 2:
            raise InputError("Efforts need accelerations; prepare order 2.")
        dynamics: bool | Literal["inertia"] = True if effort else "inertia" if inertia else False
        tables = task_tables(model, task, order, dynamics, wrt)
        self._model, self._evaluator, self._rows = model, tables.evaluator, tables.rows
        self._plan = tables.plan
        self.task, self.coordinates = tuple(tables.rows.labels), tables.evaluator.coordinates
        P, M = len(self.task), len(self.coordinates)
        self.weighting = Weighting(weight, law, damping, M)
        if self.weighting.largest:
            model.require_real("Damping", "It is measured by the size of the drawing. Leave `damping` out.")
        asked = [order, self.weighting.metric, self.weighting.consistent]
        self._asked = np.array([*asked, False, self._effort]), np.array([*asked, True, self._effort])
        self.soft = task_scaling(model, tables.rows, self.weighting, wrt, M)
        given = self.weighting.metric == GIVEN_METRIC
        self._matrix = self.weighting.matrix.reshape(prod(self.weighting.batch), M * M if given else 0)
        self._numbers = np.empty((len(self.soft), 2 + P))
        self._numbers[:, :2] = self.weighting.largest**2, self.weighting.near**2
        self._numbers[:, 2:] = self.soft
        self._motions = Table([(P,), (P,), (M,), (M,)])
        self._answer = Table([(M,), (M,), (P,), (P,), (P,), (1,), (M,)])
        self._scratch = 2 * P * M + M * P + P * P + 3 * M * M + 3 * P * P + 2 * M + 2 * P

    def __call__(
        self,
        state: np.ndarray,
        ud: Any = None,
        udd: Any = None,
        secondary: Any = None,
        secondary_rate: Any = None,
        out: RedundancyResolution | None = None,
        check: bool = False,
        qd: Any = None,
    ) -> RedundancyResolution:
        """Resolve at a state.

        Parameters
        ----------
        state : (..., S) ndarray
            One state or a batch.
        ud, udd : (..., P) array_like
            Rates and accelerations of the task; the latter are left out where order 1 was prepared.
        secondary, secondary_rate : (..., M) array_like, optional
            z and ż of the null space; zero if left out.
        out : Resolution, optional
            Earlier results of this evaluator for the same batch, whose arrays are filled anew.
        check : bool
            Whether to look first if the states are closed and can be driven; see `Evaluator`.
        qd : (..., M) array_like, optional
            Rates as they are, instead of `ud`, for the law "instantaneous".

        Returns
        -------
        Resolution

        Raises
        ------
        InputError
            For arrays of another shape, or an `out` that does not fit.
        SingularError
            Where the task's rows depend on one another and it is not damped, or a motion moves no mass.

        Notes
        -----
        For speed no number is looked at: what is not finite comes back so.
        """
        if out is None:
            out = self._room(self._evaluator(state, check=check))
        elif type(out) is RedundancyResolution and out._of is self:
            self._evaluator(state, out=out._results, check=check)
        else:
            raise InputError("`out` must be earlier results of this evaluator, for the same batch.")
        given = qd is not None
        if (ud is None) != given or (udd is None) != (self._order < 2) or (given and self._order < 2):
            self._refuse_motion(given, udd)
        if given and self.weighting.consistent:
            raise InputError("Rates `qd` go with law='instantaneous'; the other law has rates of its own.")
        places = out._motion
        for name, value, place in (
            ("ud", ud, places[0]),
            ("udd", udd, places[1]),
            ("qd" if given else "secondary", qd if given else secondary, places[2]),
            ("secondary_rate", secondary_rate, places[3]),
        ):
            if value is None:
                place.fill(0.0)
            elif type(value) is _ndarray and value.shape == place.shape and value.dtype is place.dtype:
                place[...] = value
            else:
                self._put(name, value, place)
        work = out._work
        self._fill((work[0], self._asked[given], *work[2:]))
        return out

    def _refuse_motion(self, given: bool, udd: Any) -> None:
        if given and self._order < 2:
            raise InputError("Rates `qd` are given for accelerations; prepare order 2.")
        if udd is not None and self._order < 2:
            raise InputError(
                "This evaluator was prepared for rates alone; leave `udd` out, or prepare order 2."
            )
        if udd is None and self._order > 1:
            raise InputError("Give `udd`, the acceleration of the task, or prepare order 1.")
        raise InputError("Give either `ud`, the rates of the task, or `qd`, all rates as they are.")

    def _put(self, name: str, value: Any, place: np.ndarray) -> None:
        """Write an argument (..., n) where it belongs, over the whole batch."""
        a = as_array(name, value, place.shape[-1], finite=False)
        batch = place.shape[:-1]
        if broadcast_batches(state=batch, **{name: a.shape[:-1]}) != batch:
            raise InputError(
                f"`{name}` has the batch {a.shape[:-1]}, the states have {batch}. Repeat the states.",
                batch=a.shape[:-1],
            )
        if a.dtype.kind == "O" or (a.dtype.kind == "c" and place.dtype.kind != "c"):
            raise InputError(f"Expected `{name}` to be numbers as the state has them, got {a.dtype}.")
        place[...] = a

    def table(self, states: np.ndarray, motion: np.ndarray, given: bool, members: Any) -> np.ndarray:
        """All parts of the answer side by side, (B, …), at states (B, S) with a motion (B, 2P + 2M).

        `members` are their places in the batch, which a weight for each of its members needs.
        """
        results = self._evaluator(states)
        out = self._room(results, members)
        out._work[5][:] = motion
        if self.weighting.metric == INERTIA_METRIC:
            check_inertia(self._evaluator, states, out._work[3])
        self._fill((out._work[0], self._asked[given], *out._work[2:]))
        self._model.check_distances(self._rows, out._work[2], None)
        if self.weighting.metric == INERTIA_METRIC or self._effort:
            self._model.check_springs(out._work[3], None)
        for quantity, part in zip(("Coefficients", "I*, P* or loads"), out._work[2:4], strict=True):
            check_finite(quantity, self._model.description.name, part)
        return out._work[-1]

    def results(self, table: np.ndarray, batch: tuple[int, ...]) -> RedundancyResolution:
        """Results for a batch whose table is this."""
        parts: list[Any] = self._answer.split(table, batch)
        if self._order < 2:
            parts[1] = parts[4] = None
        if not self._effort:
            parts[6] = None
        return RedundancyResolution(self.task, self.coordinates, parts)

    def motion(self, arrays: Iterable[Any], count: int, dtype: np.dtype) -> np.ndarray:
        """u̇ ü z ż (B, n) side by side; zero where there is none."""
        M = np.zeros((count, self._motions.width), dtype)
        for (start, (size,)), a in zip(self._motions.places, arrays, strict=True):
            if a is not None:
                M[:, start : start + size] = a
        return M

    def _room(self, results: Any, members: Any = slice(None)) -> RedundancyResolution:
        """Results to be filled from those of the rows and the dynamics."""
        T, K, batch = results._rows, results._model, results._batch
        if T.dtype.kind == "O":
            raise InputError("Redundancy is resolved in numbers only; the state holds symbols.")
        made = np.empty((len(T), self._answer.width), T.dtype)
        out = self.results(made, batch)
        motion = np.empty((len(T), self._motions.width), T.dtype)
        soft, matrix = self._numbers, self._matrix
        if len(matrix) > 1:
            matrix, soft = matrix[members], soft[members]
            if len(matrix) != len(T):
                raise InputError(
                    f"`weight` has {len(matrix)} members, the states have {len(T)}.",
                    batch=self.weighting.batch,
                )
        if T.dtype != _REAL:
            matrix, soft = matrix.astype(T.dtype), soft.astype(T.dtype)
        out._of, out._results = self, results
        out._motion = self._motions.split(motion, batch)
        scratch, quality = np.empty(self._scratch, T.dtype), np.empty((len(T), 2))
        out._work = self._plan, None, T, K, matrix, motion, soft, scratch, quality, made
        return out

    def _fill(self, work: tuple[Any, ...]) -> None:
        """Run the kernel; a batch on kic's threads."""
        entry, count = kernel("resolution"), len(work[2])
        if count == 1:
            if entry(*work):
                self._refuse(work)
            return
        plan, asked, T, K, matrix, motion, soft, scratch, quality, made = work
        bad: list[int] = []

        def part(a: int, b: int) -> None:
            Q, s = (x[a:b] if len(x) > 1 else x for x in (matrix, soft))
            m = motion[a:b]
            bad.append(
                entry(plan, asked, T[a:b], K[a:b], Q, m, s, np.empty_like(scratch), quality[a:b], made[a:b])
            )

        if count:
            over_batch()(part, count, _COST)
            if sum(bad):
                self._refuse(work)

    def _refuse(self, work: tuple[Any, ...]) -> None:
        """Name the members whose task is singular; those without a posture are NaN and stay so."""
        _, _, T, K, _, _, _, _, quality, made = work
        known = np.isfinite(T).all(axis=1)
        if self.weighting.metric == INERTIA_METRIC or self._effort:
            known &= np.isfinite(K).all(axis=1)
        massless = ~(quality[:, 0] > LEAST_SHARE)
        damped = self._answer.split(made, (len(made),))[5][:, 0].real > 0
        dependent = ~(quality[:, 1] > LEAST_SHARE) & ~damped
        bad = np.flatnonzero(known & (massless | dependent))
        if not bad.size:
            return
        name = self._model.description.name
        if massless[bad].any():
            bad = np.flatnonzero(known & massless)
            least = float(np.nan_to_num(quality[bad, 0]).min())
            raise SingularError(
                f"Some motion of '{name}' moves no mass here (a pivot of I* keeps {least:.1e} of its own), "
                "so that the kinetic energy does not tell how it should go. Give the bodies mass and "
                "inertia, or take weight='minimum norm'.",
                share=least,
                failed=[(int(i),) for i in bad],
            )
        least = float(np.nan_to_num(quality[bad, 1]).min())
        raise SingularError(
            f"The task {', '.join(self.task)} of '{name}' is singular here: its rows depend on one another, "
            f"or do not move (a pivot keeps {least:.1e} of its own). Name fewer rows, move away from the "
            "posture, or give `damping`, which says what it costs.",
            share=least,
            failed=[(int(i),) for i in bad],
        )

    def __repr__(self) -> str:
        return f"evaluator of {', '.join(self.coordinates)} for the task {', '.join(self.task)}"


# of a complex step: the squares of what moves must vanish beside it
STEP = 1e-40


def resolve(
    c: Configuration,
    task: str | Iterable[str],
    motion: dict[str, Any],
    weight: Weight,
    law: Law,
    secondary: Any,
    damping: Damping,
    wrt: str | Iterable[str] | None,
    failures: str,
) -> RedundancyResolution:
    """The motion of the coordinates for that of a task; see `Configuration.resolve`."""
    names = names_of(task, "task")
    order = 1 + (motion["udd"] is not None)
    f = RedundancyEvaluator(c._model, names, weight, law, damping, wrt, order=order)
    P, M = len(f.task), len(f.coordinates)
    _check(motion, f.weighting.consistent)
    sizes = {"ud": P, "udd": P, "uddd": P, "qd": M}
    given = {k: as_array(k, v, sizes[k]) for k, v in motion.items() if v is not None}
    for name, a in given.items():
        if a.dtype.kind == "O":
            raise InputError(f"Expected `{name}` to be numbers, got symbols.")
    aim = Aim(secondary, M)
    shapes = {k: a.shape[:-1] for k, a in given.items()}
    shape = broadcast_batches(posture=c.batch, weight=f.weighting.batch, **shapes, **aim.batches)
    if f.weighting.batch and f.weighting.batch != shape:
        whole = np.broadcast_to(f.weighting.matrix, (*shape, M, M))
        f = RedundancyEvaluator(c._model, names, whole, law, damping, wrt, order=order)
    c = spread_out(c, shape)
    case = _Case(
        c, f, names, wrt, aim, {k: np.broadcast_to(a, (*shape, a.shape[-1])) for k, a in given.items()}
    )

    found: dict[str, np.ndarray] = {}

    def answer(members: Any) -> np.ndarray:
        found["jerk"] = np.empty(0)
        part = case.part(members)
        table = part.table()
        if "uddd" in given:
            found["jerk"] = part.jerk(table)
        return table

    good, table = map_valid_members(c.ok, failures, answer)
    out = f.results(scatter(table, good), shape)
    if "uddd" in given:
        out.qddd = scatter(found["jerk"], good).reshape(*shape, M)
    out._map = lambda: law_coefficients(c, f, names, wrt, good, out.damping)
    out._model = lambda: c.dynamics(wrt, failures="mask" if failures == "mask" else "raise")
    return out


def _check(motion: dict[str, Any], consistent: bool) -> None:
    """What of the motion goes together."""
    if motion["qd"] is not None:
        if consistent:
            raise InputError(
                "Rates `qd` go with law='instantaneous'; the law 'consistent' has rates of its own."
            )
        if motion["ud"] is not None or motion["udd"] is None:
            raise InputError("With rates `qd` give `udd`, the acceleration of the task, and no `ud`.")
    elif motion["ud"] is None:
        raise InputError("Give `ud`, the rates of the task; zeros if it stands still.")
    if motion["uddd"] is not None and motion["udd"] is None:
        raise InputError("Jerks need `udd`, the acceleration of the task, too.")


def spread_out(c: Configuration, shape: tuple[int, ...]) -> Any:
    """The same posture over a larger batch."""
    if shape == c.batch:
        return c
    size = c._states.shape[-1]
    states = np.broadcast_to(c.state, (*shape, size)).reshape(prod(shape), size)
    ok = None if c._ok is None else np.broadcast_to(c._ok, shape).copy()
    return c._beside(shape, states.copy(), ok)


def tree_rates(c: Any, qd: np.ndarray, wrt: Any) -> np.ndarray:
    """Rates (B, N) of the tree's own coordinates at postures, from those (B, M) of the coordinates."""
    model = c._model
    transfer = model.transfer_for(wrt)
    if transfer is None:
        order = model.tree.to_coordinates
        if order is None:
            return qd
        rates = np.empty_like(qd)
        rates[:, order] = qd
        return rates
    size, first = model.tree.size, transfer.first
    X = transfer.solve(c._states, 1).X
    return np.einsum("bnm,bm->bn", X[:, size : size * (1 + first)].reshape(len(qd), size, first), qd)


class _Case:
    """Postures with a motion that is asked of them, one axis of members."""

    def __init__(
        self,
        c: Any,
        f: RedundancyEvaluator,
        names: tuple[str, ...],
        wrt: Any,
        aim: Aim,
        given: dict[str, np.ndarray],
    ) -> None:
        self.c, self.f, self.names, self.wrt, self.aim, self.given = c, f, names, wrt, aim, given
        self.members: Any = slice(None)

    def part(self, members: Any) -> _Case:
        """Some members alone, in a row."""
        flat = {k: a.reshape(-1, a.shape[-1])[members] for k, a in self.given.items()}
        states = self.c._states[members]
        aim = Aim(None, self.aim.size)
        shape = self.c.batch
        for one in self.aim.parts:
            if isinstance(one, list):
                one = [
                    np.broadcast_to(a, (*shape, a.shape[-1])).reshape(-1, a.shape[-1])[members] for a in one
                ]
            aim.parts.append(one)
        case = _Case(self.c._beside((len(states),), states), self.f, self.names, self.wrt, aim, flat)
        case.members = members
        return case

    def table(self) -> np.ndarray:
        """The kernel's table (B, …)."""
        return self._resolved(self.c, self.given, 0.0, self._ahead)

    def _resolved(self, c: Any, given: dict[str, np.ndarray], step: complex, ahead: Any) -> np.ndarray:
        f, aim = self.f, self.aim
        rates = given.get("qd")
        z = zd = None
        if rates is not None:
            z = rates
        elif aim:
            z = aim.rates(c, self.wrt, self.names, step)
        ud, udd = given.get("ud"), given.get("udd")
        dtype = np.result_type(c._states, *(a for a in (ud, udd, z) if a is not None))
        if aim and udd is not None:
            first = f.motion([ud, udd, z, None], len(c._states), dtype)
            qd = rates
            if qd is None:  # how the aim changes depends on the rates
                table = f.table(_as(c._states, dtype), first, False, self.members)
                qd = f.results(table, (len(first),)).qd
            zd = aim.change(c, self.wrt, self.names, qd, ahead and (lambda: ahead(qd)), step)
            dtype = np.result_type(dtype, zd)
        motion = f.motion([ud, udd, z, zd], len(c._states), dtype)
        return f.table(_as(c._states, dtype), motion, rates is not None, self.members)

    def _ahead(self, qd: np.ndarray) -> tuple[Any, float]:
        """The postures a complex step of time ahead along rates."""
        c = self.c
        if c._states.dtype.kind == "c" or qd.dtype.kind == "c":
            raise InputError(
                "A `secondary` callable is derived by a complex step; the posture holds one already."
            )
        moved = integrate(c._model.tree, c._states.astype(complex), 1j * STEP * tree_rates(c, qd, self.wrt))
        return c._beside(c.batch, moved), STEP

    def jerk(self, table: np.ndarray) -> np.ndarray:
        """Jerks (B, M): the acceleration law a complex step of time ahead."""
        f, given = self.f, self.given
        now = f.results(table, (len(table),))
        qd, qdd = now.qd, now.qdd
        assert qdd is not None  # for the type checker: jerks are asked with accelerations
        if table.dtype.kind == "c":
            raise InputError(
                "Jerks are a complex step of accelerations; the posture holds complex numbers already."
            )
        c, h = self._ahead(qd)
        ahead = {"udd": given["udd"] + 1j * h * given["uddd"]}
        if "qd" in given or not f.weighting.consistent:
            # accelerations that are no derivative of rates: these go where the accelerations bring them
            ahead["qd"] = qd + 1j * h * qdd
        else:
            ahead["ud"] = given["ud"] + 1j * h * given["udd"]
        later = f.results(self._resolved(c, ahead, 1j * h, None), (len(table),)).qdd
        assert later is not None  # for the type checker: accelerations are of order 2
        return later.imag / h


def _as(states: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.require(states, dtype, ["C", "A", "W"])


def law_coefficients(
    c: Any, f: RedundancyEvaluator, names: tuple[str, ...], wrt: Any, good: np.ndarray, damping: np.ndarray
) -> Coefficients:
    """G and H of the coordinates with respect to the task, where there are answers; see `RedundancyResolution`."""
    P, M, batch = len(f.task), len(f.coordinates), c.batch
    G, H = (
        np.full((*batch, M, P), np.nan, c._states.dtype),
        np.full((*batch, M, P, P), np.nan, c._states.dtype),
    )
    sound = c._beside((int(good.sum()),), c._states[good.reshape(-1)])
    u = sound.coefficients(names, order=2, wrt=wrt)
    weighting = f.weighting
    Q: np.ndarray = np.eye(M)
    power = None
    if weighting.metric == INERTIA_METRIC:
        d = sound.dynamics(wrt)
        Q, power = d.I, d.P
    elif weighting.metric != UNIT_METRIC:
        Q = np.broadcast_to(weighting.matrix, (*batch, M, M))[good]
    soft = np.broadcast_to(f.soft, (prod(batch), P))[good.reshape(-1)]
    law = RightInverse(u.G, u.H, Q, power, soft, damping[good][:, None], (weighting.largest, weighting.near))
    G[good] = law.G
    H[good] = law.consistent() if weighting.consistent else law.instantaneous()
    quasi = u.quasi if P == M else {*u.rows, *u.columns}
    scaling = u.scaling and replace(u.scaling, error=EPS).inverse(G)
    return Coefficients(u.columns, u.rows, G, H, quasi=quasi, scaling=scaling)
