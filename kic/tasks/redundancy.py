"""Redundancy resolved in hot loops: rates, accelerations and efforts for the motion of a task."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.arrays import broadcast_batches, check_finite, trailing
from kic.errors import InputError, SingularError, shown
from kic.kinematics import Table, kernel, over_batch
from kic.tasks.resolution import Resolution
from kic.tasks.softness import softness
from kic.tasks.tasktables import check_inertia, task_tables
from kic.tasks.weighting import GIVEN_METRIC, INERTIA_METRIC, LEAST_SHARE, Damping, Law, Weight, Weighting

if TYPE_CHECKING:
    from kic.model import Model

# rough cost of one posture (microseconds), by which a batch is given to threads
_COST = 3.0
_ndarray, _REAL = np.ndarray, np.dtype(np.float64)


class ResolutionEvaluator:
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
        model: Model,
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
            raise InputError(f"Expected `order` to be 1 or 2, got {shown(order)}.")
        if not isinstance(effort, bool):
            raise InputError(f"Expected `effort` to be True or False, got {shown(effort)}.")
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
            model.only_real("Damping", "It is measured by the size of the drawing. Leave `damping` out.")
        asked = [order, self.weighting.metric, self.weighting.consistent]
        self._asked = np.array([*asked, False, self._effort]), np.array([*asked, True, self._effort])
        self.soft = softness(model, tables.rows, self.weighting, wrt, M)
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
        out: Resolution | None = None,
        check: bool = False,
        qd: Any = None,
    ) -> Resolution:
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
        elif type(out) is Resolution and out._of is self:
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
        a = trailing(name, value, place.shape[-1], finite=False)
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
            check_finite(quantity, self._model.drawing.name, part)
        return out._work[-1]

    def results(self, table: np.ndarray, batch: tuple[int, ...]) -> Resolution:
        """Results for a batch whose table is this."""
        parts: list[Any] = self._answer.split(table, batch)
        if self._order < 2:
            parts[1] = parts[4] = None
        if not self._effort:
            parts[6] = None
        return Resolution(self.task, self.coordinates, parts)

    def motion(self, arrays: Iterable[Any], count: int, dtype: np.dtype) -> np.ndarray:
        """u̇ ü z ż (B, n) side by side; zero where there is none."""
        M = np.zeros((count, self._motions.width), dtype)
        for (start, (size,)), a in zip(self._motions.places, arrays, strict=True):
            if a is not None:
                M[:, start : start + size] = a
        return M

    def _room(self, results: Any, members: Any = slice(None)) -> Resolution:
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
        name = self._model.drawing.name
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
