"""Redundancy resolution: rates, accelerations and jerks of coordinates for a task, and their coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, SingularError, invalid
from kic.kernels import layout as lay
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.queries import Layout
from kic.kinematics.state import integrate
from kic.mechanism.configuration import Configuration, flat_states, model_of
from kic.mechanism.evaluator import tables_of
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import (
    REAL,
    as_array,
    broadcast_batches,
    map_valid_members,
    one_batch_axis,
    scatter,
)
from kic.numerics.display import Printable, Summary
from kic.numerics.tolerances import EPS
from kic.tasks.operational_space.operational_space import Task
from kic.tasks.operational_space.secondary_objectives import NullSpaceMotion
from kic.tasks.operational_space.weighting import (
    Damping,
    Law,
    RightInverse,
    Weight,
    Weighting,
    task_scaling,
)
from kic.transfer.program import BOTH

if TYPE_CHECKING:
    from kic.mechanism.evaluator import Evaluator
    from kic.mechanism.prepared import Evaluators
    from kic.transfer.compiled_model import CompiledModel
    from kic.transfer.program import Transfer


_NUMBERS_ONLY = "A prepared evaluator computes numbers only. Use Configuration.resolve_redundancy for this."


class RedundancyResolution(Printable):
    """Motion of M coordinates for a task of P ≤ M rows; made by `Configuration.resolve_redundancy`.

    Attributes
    ----------
    rows, coordinates : tuple of str
        Names of the P rows and of the M coordinates.
    qd : (..., M)
        Rates q̇.
    qdd : (..., M) or None
        Accelerations q̈; None if that of the task was not given.
    qddd : (..., M) or None
        Jerks q⃛, likewise.
    multiplier : (..., P)
        Lagrange multiplier λ in Q (q̇ − z) = Gᵀ λ. For the kinetic energy it is the momentum Λ (u̇ − G z).
    damping : (...,)
        λ² added to the rows of the task (see `Configuration.resolve_redundancy`), zero for undamped members.
    velocity_residual : (..., P)
        Task error due to damping, u̇ − G q̇; zero up to rounding for undamped members.
    acceleration_residual : (..., P) or None
        ü − G q̈ − q̇ᵀ H q̇, likewise.

    Examples
    --------
    >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> r = c.resolve_redundancy("flange", [0.1, 0.0, 0.0])
    >>> r.qd.shape, bool(abs(r.velocity_residual).max() < 1e-15)
    ((7,), True)
    """

    _one_line = ("rows", "coordinates", "batch")

    def __init__(self, rows: tuple[str, ...], coordinates: tuple[str, ...], parts: list[np.ndarray]) -> None:
        self.rows, self.coordinates = rows, coordinates
        self.qd: np.ndarray = parts[0]
        self.qdd: np.ndarray | None = parts[1]
        self.qddd: np.ndarray | None = None
        self.multiplier: np.ndarray = parts[2]
        self.velocity_residual: np.ndarray = parts[3]
        self.acceleration_residual: np.ndarray | None = parts[4]
        self.damping: np.ndarray = parts[5][..., 0]
        self._effort: np.ndarray | None = parts[6]
        # set by `Configuration.resolve_redundancy`
        self._coefficients: Callable[[], Coefficients] | None = None
        self._dynamics: Callable[[], Dynamics] | None = None
        self._efforts: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
        # set by an evaluator, which can refill the arrays
        self._task: Any = None
        self._results: Any = None
        self._motion: Any = None
        self._work: Any = None

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.qd.shape[:-1]

    @property
    def damped(self) -> np.ndarray:
        """Mask of damped members, (...) bool; their motion differs from the task by `velocity_residual`."""
        return self.damping.real > 0

    @property
    def effort(self) -> np.ndarray:
        """Array (..., M) of the efforts of the motion: T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (eq 4-67).

        Raises
        ------
        InputError
            If no acceleration of the task was given, or an evaluator was not prepared for efforts.
        """
        if self._effort is None:
            if self.qdd is None:
                message = "Efforts require accelerations. Give `udd`, the acceleration of the task."
                raise InputError(message, key="udd")
            if self._efforts is None:
                message = "This evaluator was prepared without efforts. Set effort=True."
                raise InputError(message, key="effort")
            # inverse_dynamics rejects the NaN of unsolved members
            known = [np.where(np.isnan(a), 0.0, a) for a in (self.qd, self.qdd)]
            effort = self._efforts(*known)
            self._effort = np.where(np.isnan(self.qd), np.nan, effort)
        return self._effort

    @property
    def coefficients(self) -> Coefficients:
        """G and H of the coordinates with respect to the task, for the chosen weight and law, without z.

        G is the right inverse of (4-69). H is that of (4-72) for the law "instantaneous", and ∂G/∂u along the
        motion of each row of the task for "consistent". Then q̇ = G u̇, q̈ = G ü + u̇ᵀ H u̇ (4-71). With fewer
        rows than coordinates these are not derivatives of a function q(u): a closed path of the task may end
        in another configuration. All names are then `quasi`.

        Raises
        ------
        InputError
            If the results come from an evaluator.
        """
        if self._coefficients is None:
            raise InputError(_NUMBERS_ONLY, key="configuration")
        return self._coefficients()

    def dynamics(self) -> Dynamics:
        """Return the efforts for motion of the task: T = I*_qu ü + u̇ᵀ P*_quu u̇ − Tᴸ_q (eq 4-73).

        Returns
        -------
        Dynamics
            Efforts at the M coordinates: I*_qu (..., M, P) (4-74), P*_quu (..., M, P, P) of the chosen law,
            which is (4-75) for "instantaneous", and the load Tᴸ_q (..., M). (The source prints −Rᵀ T_u
            for the load, which has the wrong dimension.)

        Examples
        --------
        >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
        >>> r = c.resolve_redundancy("flange", [0.1, 0.0, 0.0], [0.0, 0.2, 0.0])
        >>> d = r.dynamics()
        >>> effort = d.inverse_dynamics([0.1, 0.0, 0.0], [0.0, 0.2, 0.0])
        >>> d.I.shape, bool(abs(effort - r.effort).max() < 1e-12)
        ((7, 3), True)
        """
        if self._dynamics is None:
            raise InputError(_NUMBERS_ONLY, key="configuration")
        dynamics = self._dynamics()
        quasi = () if dynamics.holonomic else self.coordinates
        return dynamics.transfer(self.coefficients, left=Coefficients.identity(self.coordinates, quasi=quasi))

    def summary(self) -> Summary:
        """Return tables of the motion of the coordinates, the multipliers and the residuals."""
        sheet = Summary(f"{', '.join(self.coordinates)} for the task {', '.join(self.rows)}")
        index = sheet.member(self.batch)
        if self.damped.any():
            which = f" in {int(self.damped.sum())} of {self.damped.size} members" if self.batch else ""
            sheet.say(
                f"damped{which}: the task is not met, λ² = {float(np.nanmax(self.damping)):.3g} at most"
            )
        if index is not None:
            motion = {"q̇": self.qd, "q̈": self.qdd, "q⃛": self.qddd}
            task = {
                "λ": self.multiplier,
                "residual of u̇": self.velocity_residual,
                "residual of ü": self.acceleration_residual,
            }
            for caption, rows, arrays in (("motion", self.coordinates, motion), ("task", self.rows, task)):
                columns = {name: a[index] for name, a in arrays.items() if a is not None}
                sheet.matrix(caption, rows, list(columns), np.stack(list(columns.values()), axis=-1))
        return sheet


_ndarray = np.ndarray
# indices of arguments of the kernel
_REQUEST, _MOTION = 1, 5


class RedundancyTask(Task):
    """Motion of the coordinates that produces a given motion of a task.

    The rates are those of (4-68). The accelerations have the form (4-71), or follow from the derivative of
    (4-68) for the law "consistent". The arithmetic is in `kic.kernels.redundancy.resolution`.

    Attributes
    ----------
    rows, coordinates : tuple of str
        Names of the P rows and of the M coordinates.
    requests, matrix, damping
        Arguments of the kernel: options (5,) without and with given rates, weights (W, M²), and numbers of
        the damping (W, 2 + P).
    motions : Layout
        Layout of the argument with the motion of a member.
    """

    question = "resolve_redundancy"
    motion = ("ud", "udd", "secondary", "secondary_rate", "qd")
    entry, _cost_us = "resolution", 3.0
    _batched, _workspace, pivots = frozenset((2, 3, 4, 5, 6, 8, 9)), 7, (2,)

    def __init__(
        self,
        model: CompiledModel,
        task: str | Iterable[str],
        weight: Weight = "minimum norm",
        law: Law = "consistent",
        damping: Damping = None,
        wrt: str | Iterable[str] | Transfer | None = None,
        effort: bool = False,
        order: int = 2,
    ) -> None:
        inertia = isinstance(weight, str) and weight == "minimum kinetic energy"
        if type(order) is not int or order not in (1, 2):
            raise invalid("order", "must be 1 or 2", order)
        self._effort, self._order = flag("effort", effort), order
        if effort and order < 2:
            raise InputError("`effort` requires order=2.", key="effort")
        want = BOTH if effort else lay.WANT_INERTIA if inertia else 0
        model.require_none_held("Resolving redundancy")
        super().__init__(model, task, order, want, wrt)
        P, M = len(self.rows), len(self.coordinates)
        self.weighting = Weighting(weight, law, damping, M)
        if self.weighting.largest:
            model.require_real("Damping", "It is scaled by the size of the mechanism. Leave `damping` out.")
        request = [order, self.weighting.metric, self.weighting.consistent]
        # without and with given rates
        self.requests = tuple(np.array([*request, given, self._effort]) for given in (False, True))
        self.scaling = task_scaling(model, self._rows, self.weighting, self._transfer)
        given = self.weighting.metric == lay.GIVEN_METRIC
        # a broadcast matrix has other strides, for which the kernel would be compiled again
        shape = prod(self.weighting.batch), M * M if given else 0
        self.matrix = np.array(self.weighting.matrix.reshape(shape), order="C")
        self.damping = np.empty((len(self.scaling), 2 + P))
        self.damping[:, :2] = self.weighting.largest**2, self.weighting.near**2
        self.damping[:, 2:] = self.scaling
        self.motions = Layout([(P,), (P,), (M,), (M,)])
        self.layout = Layout([(M,), (M,), (P,), (P,), (P,), (1,), (M,)])
        self.scratch = 2 * P * M + M * P + P * P + 3 * M * M + 3 * P * P + 2 * M + 2 * P

    def _fill_motion(
        self,
        out: RedundancyResolution,
        ud: Any = None,
        udd: Any = None,
        secondary: Any = None,
        secondary_rate: Any = None,
        qd: Any = None,
    ) -> None:
        """Copy the motion of a task into the arguments of the kernel; see `Evaluators.resolve_redundancy`."""
        given = qd is not None
        if (ud is None) != given or (udd is None) != (self._order < 2) or (given and self._order < 2):
            self._raise_motion_error(given, udd)
        if given and self.weighting.consistent:
            raise InputError(_GIVEN_RATES, key="qd")
        if out._motion is None:
            out._motion = self.motions.split(out._work[_MOTION], tables_of(out._results)[2])
        values = ud, udd, qd if given else secondary, secondary_rate
        for k, place in enumerate(out._motion):
            value = values[k]
            if value is None:
                place.fill(0.0)
            elif type(value) is _ndarray and value.shape == place.shape and value.dtype is place.dtype:
                place[...] = value
            else:
                self._copy("qd" if given and k == 2 else self.motion[k], value, place)
        out._work[_REQUEST] = self.requests[given]

    def refill(
        self, udd: np.ndarray, qd: np.ndarray, zd: np.ndarray, out: RedundancyResolution
    ) -> RedundancyResolution:
        """Return the motion for new tables, in results `out` of a call with rates `qd`, without checks."""
        motion = out._motion
        motion[1][...], motion[2][...], motion[3][...] = udd, qd, zd
        self._launch(out._work)
        return out

    def _raise_motion_error(self, given: bool, udd: Any) -> NoReturn:
        """Raise the error for a motion that does not match the prepared order."""
        if given and self._order < 2:
            raise InputError(
                "`qd` applies to accelerations only. Leave it out, or prepare with order=2.", key="qd"
            )
        if udd is not None and self._order < 2:
            message = "This evaluator computes rates only. Leave `udd` out, or prepare order 2."
            raise InputError(message, key="udd")
        if udd is None and self._order > 1:
            raise InputError("`udd`, the task acceleration, must be given with order=2.", key="udd")
        message = "Give either `ud`, the rates of the task, or `qd`, the rates of the coordinates."
        raise InputError(message, key="ud")

    def _copy(self, name: str, value: Any, place: np.ndarray) -> None:
        """Copy an argument (..., n) into the array `place` of the motion of the whole batch."""
        a = as_array(name, value, place.shape[-1], finite=False)
        batch = place.shape[:-1]
        if broadcast_batches(state=batch, **{name: a.shape[:-1]}) != batch:
            raise invalid(
                name, f"must fit the batch {batch} of the states", a.shape[:-1], "Repeat the states."
            )
        if a.dtype.kind == "O" or (a.dtype.kind == "c" and place.dtype.kind != "c"):
            raise invalid(name, "must be numbers of the type of the state", a.dtype, shown=f"{a.dtype}")
        place[...] = a

    def table(self, states: np.ndarray, motion: np.ndarray, given: bool, members: Any) -> np.ndarray:
        """Compute all results side by side, (B, …), at states (B, S) with a motion (B, 2P + 2M).

        `members` are the indices of the states in the batch; they select from a batch of weights.
        """
        found = self._program.run(states)
        work = self._work(found.T, found.K, members)
        work[_REQUEST] = self.requests[given]
        work[_MOTION] = motion
        if self.weighting.metric == lay.INERTIA_METRIC:
            self._program.check_inertia(found, states)
        self._launch(work)
        return work[-1]

    def results(self, table: np.ndarray, batch: tuple[int, ...]) -> RedundancyResolution:
        """Return the results for a table of a batch."""
        parts: list[Any] = list(self.layout.split(table, batch))
        if self._order < 2:
            parts[1] = parts[4] = None
        if not self._effort:
            parts[6] = None
        return RedundancyResolution(self.rows, self.coordinates, parts)

    def packed_motion(self, arrays: Iterable[Any], count: int, dtype: np.dtype) -> np.ndarray:
        """Return u̇ ü z ż (B, n) side by side, with zeros for None."""
        motion = np.zeros((count, self.motions.width), dtype)
        for (start, (size,)), a in zip(self.motions.places, arrays, strict=True):
            if a is not None:
                motion[:, start : start + size] = a
        return motion

    def _arguments(self, T: np.ndarray, members: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the place of the request, and the weight, the motion and the damping."""
        damping, matrix = self.damping, self.matrix
        if len(matrix) > 1:
            matrix, damping = matrix[members], damping[members]
            if len(matrix) != len(T):
                message = f"`criterion` must have {len(T)} members, one for each state, got {len(matrix)}."
                raise InputError(message, key="criterion", got=len(matrix), batch=self.weighting.batch)
        if T.dtype != REAL:
            matrix, damping = matrix.astype(T.dtype), damping.astype(T.dtype)
        return (None,), (matrix, np.empty((len(T), self.motions.width), T.dtype), damping)

    def _check_regular(self, work: Any) -> None:
        """Raise `SingularError` for members with a singular task; unsolved members stay NaN."""
        _, _, T, K, _, _, _, _, pivots, table = work
        known = np.isfinite(T).all(axis=1)
        if self.weighting.metric == lay.INERTIA_METRIC or self._effort:
            known &= np.isfinite(K).all(axis=1)
        weight_pivot, task_pivot = pivots.T
        massless = ~(weight_pivot > lay.PIVOT_SHARE_MIN)
        damped = self.results(table, (len(table),)).damped
        dependent = ~(task_pivot > lay.PIVOT_SHARE_MIN) & ~damped
        bad = np.flatnonzero(known & (massless | dependent))
        if not bad.size:
            return
        name = self._program.name
        if massless[bad].any():
            bad = np.flatnonzero(known & massless)
            least = float(np.nan_to_num(weight_pivot[bad]).min())
            message = (
                f"Some motion of '{name}' moves no mass here (relative pivot of I*: {least:.1e}), so the "
                "minimum of the kinetic energy is not unique. Give the bodies mass and inertia, or use "
                "criterion='minimum norm'."
            )
            raise SingularError(message, share=least, failed=[(int(i),) for i in bad])
        least = float(np.nan_to_num(task_pivot[bad]).min())
        message = (
            f"The task {', '.join(self.rows)} of '{name}' is singular here: its rows are dependent or do not "
            f"move (relative pivot {least:.1e}). Name fewer rows, move away from this configuration, or give "
            "`damping`."
        )
        raise SingularError(message, names=self.rows, share=least, failed=[(int(i),) for i in bad])


_GIVEN_RATES = (
    "Rates `qd` require law='instantaneous'. The law 'consistent' computes its own rates; leave `qd` out."
)
# complex step of time; the squares of displacements vanish in rounding
_TIME_STEP = 1e-40


def resolve_redundancy(
    configuration: Configuration,
    of: str | Iterable[str],
    ud: Any = None,
    udd: Any = None,
    uddd: Any = None,
    *,
    qd: Any = None,
    criterion: Weight = "minimum norm",
    law: Law = "consistent",
    secondary: Any = None,
    damping: Damping = None,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> RedundancyResolution:
    """Resolve redundancy: compute the motion of all coordinates from that of a task with fewer rows.

    Rates minimize ½ (q̇ − z)ᵀ Q (q̇ − z) subject to G q̇ = u̇, (4-68) to (4-70)::

        q̇ = z + R (u̇ − G z)        R = Q⁻¹ Gᵀ (G Q⁻¹ Gᵀ)⁻¹

    Accelerations follow one of two laws. "consistent" accelerations are the derivative of these rates, so
    that the rates satisfy the law at all times. "instantaneous" accelerations minimize ½ (q̈ − ż)ᵀ Q (q̈
    − ż) for any rates (4-71, 4-72). The two laws differ in the null space, where the second law lets
    rates grow. (4-72) is not, as printed, the derivative of (4-68).

    Parameters
    ----------
    of : str or list of str
        Rows of the task, as `of` in `coefficients`, at most as many as the degrees of freedom.
    ud, udd, uddd : (..., P) array_like
        Rates, accelerations and jerks of the task, up to the desired order. Their batch broadcasts with
        that of the configuration.
    qd : (..., M) array_like, optional
        Current rates in place of `ud`, for the law "instantaneous".
    criterion : {"minimum norm", "minimum kinetic energy"} or (..., M, M) array_like
        Weight Q: the unit matrix, I*, or a constant symmetric positive definite matrix.
    law : {"consistent", "instantaneous"}
        Law of the accelerations.
    secondary : optional
        Null-space motion: `JointLimits`, `Manipulability`, `PreferredConfiguration`; rates z (..., M), or
        (z, ż) or (z, ż, z̈), zero if omitted; a callable that takes a configuration of any batch and
        returns z; or a list of these, which are added. Rates of objectives and callables are projected
        orthogonally on the null space, so that objectives decrease for any Q. For accelerations a
        callable is differentiated by the complex step, and must propagate complex numbers.
    damping : float or (float, float), optional
        λ; or the largest λ and the manipulability w₀ below which λ² grows from 0 as (1 − w²/w₀²)² of the
        largest (after Nakamura and Hanafusa 1986). λ² S is added to G Q⁻¹ Gᵀ, without units: lengths
        among the rows are divided by the characteristic length, Q by the mean of its diagonal, as is w =
        √det. `velocity_residual` has the resulting error of the task.
    wrt : str or list of str, optional
        Coordinates, as in `coefficients`; by default the mechanism's own.
    failures : {"raise", "mask"}
        Treatment of members whose task is singular: raise an error, or return NaN.

    Returns
    -------
    RedundancyResolution
        q̇, q̈, q⃛ (..., M), with `effort`, and `coefficients` and `dynamics()` with respect to the task
        (4-73 to 4-75).

    Raises
    ------
    InputError
        If the task has more rows than degrees of freedom, the weight is not symmetric and positive
        definite, a shape is wrong, or the state has symbols.
    SingularError
        If the rows of the task are dependent and there is no damping, or the weight is I* and some motion
        moves no mass.

    Examples
    --------
    >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    >>> r = c.resolve_redundancy("flange", [0.1, 0.0, 0.0], [0.0] * 3, criterion="minimum kinetic energy")
    >>> bool(abs(c.coefficients("flange").acceleration(r.qd, r.qdd)).max() < 1e-12)
    True
    """
    motion = {"ud": ud, "udd": udd, "uddd": uddd, "qd": qd}
    names, order = names_of(of, "of"), 1 + (udd is not None)
    f, model = None, model_of(configuration)
    if isinstance(criterion, str) and isinstance(law, str) and damping is None:
        coordinates = None if wrt is None else names_of(wrt, "wrt")
        key = RedundancyTask, names, criterion, law, None, coordinates, False, order
        f = model.prepared(key, lambda: RedundancyTask(model, *key[1:]))
    f = f or RedundancyTask(model, names, criterion, law, damping, wrt, False, order)
    P, M = len(f.rows), len(f.coordinates)
    _check_motion(motion, f.weighting.consistent)
    sizes = {"ud": P, "udd": P, "uddd": P, "qd": M}
    given = {k: as_array(k, v, sizes[k]) for k, v in motion.items() if v is not None}
    for name, a in given.items():
        if a.dtype.kind == "O":
            raise InputError(f"`{name}` must be numbers, got symbols.", key=name)
    null_motion = NullSpaceMotion(secondary, M, f.weighting.metric != lay.UNIT_METRIC)
    shapes = {k: a.shape[:-1] for k, a in given.items()}
    shape = broadcast_batches(
        configuration=configuration.batch, criterion=f.weighting.batch, **shapes, **null_motion.batches
    )
    if f.weighting.batch and f.weighting.batch != shape:
        whole = np.broadcast_to(f.weighting.matrix, (*shape, M, M))
        f = RedundancyTask(model_of(configuration), names, whole, law, damping, wrt, order=order)
    configuration = _broadcast_configuration(configuration, shape)
    given = {k: np.broadcast_to(a, (*shape, a.shape[-1])) for k, a in given.items()}
    problem = _ResolutionProblem(configuration, f, names, wrt, null_motion, given)
    jerks = np.empty(0)

    def evaluate(members: Any) -> np.ndarray:
        nonlocal jerks
        part = problem.part(members)
        table = part.table()
        if "uddd" in given:
            jerks = part.jerk(table)
        return table

    good, table = map_valid_members(configuration.ok, failures, evaluate)
    out = f.results(scatter(table, good), shape)
    if "uddd" in given:
        out.qddd = scatter(jerks, good).reshape(*shape, M)
    out._coefficients = lambda: _coefficients(configuration, f, names, wrt, good, out.damping)
    treatment: Literal["raise", "mask"] = "mask" if failures == "mask" else "raise"
    out._dynamics = lambda: configuration.dynamics(wrt=wrt, failures=treatment)
    out._efforts = lambda qd, qdd: configuration.inverse_dynamics(qd, qdd, wrt=wrt, failures=treatment)
    return out


def _check_motion(motion: dict[str, Any], consistent: bool) -> None:
    """Check that the given parts of the motion are compatible."""
    if motion["qd"] is not None:
        if consistent:
            raise InputError(_GIVEN_RATES, key="qd")
        if motion["ud"] is not None or motion["udd"] is None:
            message = "With `qd`, give `udd`, the acceleration of the task, instead of `ud`."
            raise InputError(message, key="udd")
    elif motion["ud"] is None:
        raise InputError("`ud`, the task velocity, must be given. Use zeros for a task at rest.", key="ud")
    if motion["uddd"] is not None and motion["udd"] is None:
        raise InputError("Jerks also require `udd`, the acceleration of the task.", key="udd")


def _broadcast_configuration(c: Configuration, shape: tuple[int, ...]) -> Any:
    """Return a configuration repeated over a larger batch."""
    if shape == c.batch:
        return c
    size = c.state.shape[-1]
    states = np.broadcast_to(c.state, (*shape, size)).reshape(prod(shape), size)
    return Configuration(model_of(c), shape, states.copy(), np.broadcast_to(c.ok, shape).copy())


def tree_rates(c: Any, qd: np.ndarray, wrt: Any) -> np.ndarray:
    """Return the rates (B, N) of the tree's coordinates from those (B, M) of the coordinates."""
    return model_of(c).transfer_for(wrt).tree_rates(flat_states(c), qd)


class _ResolutionProblem:
    """Redundancy resolution at configurations with a given task motion; parts have a single batch axis."""

    def __init__(
        self,
        c: Any,
        f: RedundancyTask,
        names: tuple[str, ...],
        wrt: Any,
        null_motion: NullSpaceMotion,
        given: dict[str, np.ndarray],
    ) -> None:
        self.c, self.f, self.names, self.wrt = c, f, names, wrt
        self.null_motion, self.given = null_motion, given
        self.members: Any = slice(None)

    def part(self, members: Any) -> _ResolutionProblem:
        """Return the problem of the given members, with a flat batch."""
        flat = {k: one_batch_axis(a)[members] for k, a in self.given.items()}
        states = flat_states(self.c)[members]
        null_motion = self.null_motion.part(self.c.batch, members)
        c = Configuration(model_of(self.c), (len(states),), states)
        problem = _ResolutionProblem(c, self.f, self.names, self.wrt, null_motion, flat)
        problem.members = members
        return problem

    def table(self) -> np.ndarray:
        """Return the table (B, …) of the kernel."""
        return self._resolve(self.c, self.given, 0.0, self._ahead)

    def _resolve(self, c: Any, given: dict[str, np.ndarray], step: complex, ahead: Any) -> np.ndarray:
        f, null_motion, states = self.f, self.null_motion, flat_states(c)
        qd = z = given.get("qd")
        zd = None
        if qd is None and null_motion:
            z = null_motion.rates(c, self.wrt, self.names, step)
        ud, udd = given.get("ud"), given.get("udd")
        dtype = np.result_type(states, *[a for a in (ud, udd, z) if a is not None])
        if null_motion and udd is not None:
            rates = qd
            if rates is None:  # ż depends on the rates
                first = f.packed_motion([ud, udd, z, None], len(states), dtype)
                table = f.table(_contiguous(states, dtype), first, False, self.members)
                rates = f.results(table, (len(first),)).qd
            moved = ahead and (lambda: ahead(rates))
            zd = null_motion.derivative(c, self.wrt, self.names, rates, moved, step)
            dtype = np.result_type(dtype, zd)
        motion = f.packed_motion([ud, udd, z, zd], len(states), dtype)
        return f.table(_contiguous(states, dtype), motion, qd is not None, self.members)

    def _ahead(self, qd: np.ndarray) -> tuple[Any, float]:
        """Return the configurations after a complex time step along rates, and the step."""
        c, h, model, states = self.c, _TIME_STEP, model_of(self.c), flat_states(self.c)
        if states.dtype.kind == "c" or qd.dtype.kind == "c":
            raise InputError(
                "A `secondary` callable is differentiated by a complex step, but the configuration is "
                "complex already. Give (z, ż).",
                key="secondary",
            )
        moved = integrate(model.tree, states.astype(complex), 1j * h * tree_rates(c, qd, self.wrt))
        return Configuration(model, c.batch, moved), h

    def jerk(self, table: np.ndarray) -> np.ndarray:
        """Return jerks (B, M), by a complex time step of the acceleration law."""
        f, given = self.f, self.given
        now = f.results(table, (len(table),))
        qd, qdd = now.qd, now.qdd
        assert qdd is not None  # for the type checker: `uddd` requires `udd`
        if table.dtype.kind == "c":
            raise InputError(
                "Jerks are computed by a complex step of accelerations, but the configuration is already "
                "complex. Use real numbers.",
                key="configuration",
            )
        c, h = self._ahead(qd)
        ahead = {"udd": given["udd"] + 1j * h * given["uddd"]}
        if "qd" in given or not f.weighting.consistent:
            # the accelerations are not the derivative of the rates of the law: integrate them
            ahead["qd"] = qd + 1j * h * qdd
        else:
            ahead["ud"] = given["ud"] + 1j * h * given["udd"]
        later = f.results(self._resolve(c, ahead, 1j * h, None), (len(table),)).qdd
        assert later is not None  # for the type checker: accelerations are of order 2
        return later.imag / h


def _contiguous(states: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return states as an aligned, writable C array of a type, as the kernels require."""
    return np.require(states, dtype, ["C", "A", "W"])


def _coefficients(
    c: Any, f: RedundancyTask, names: tuple[str, ...], wrt: Any, good: np.ndarray, damping: np.ndarray
) -> Coefficients:
    """Compute `RedundancyResolution.coefficients`, NaN for unsolved members."""
    P, M, batch, states = len(f.rows), len(f.coordinates), c.batch, flat_states(c)
    G = np.full((*batch, M, P), np.nan, states.dtype)
    H = np.full((*batch, M, P, P), np.nan, states.dtype)
    solved = Configuration(model_of(c), (int(good.sum()),), states[good.reshape(-1)])
    u = solved.coefficients(names, order=2, wrt=wrt)
    weighting = f.weighting
    Q: np.ndarray = np.eye(M)
    power = None
    if weighting.metric == lay.INERTIA_METRIC:
        d = solved.dynamics(wrt=wrt)
        Q, power = d.I, d.P
    elif weighting.metric != lay.UNIT_METRIC:
        Q = np.broadcast_to(weighting.matrix, (*batch, M, M))[good]
    scaling = np.broadcast_to(f.scaling, (prod(batch), P))[good.reshape(-1)]
    limits = weighting.largest, weighting.near
    inverse = RightInverse(u.G, u.H, Q, power, scaling, damping[good][:, None], limits)
    G[good] = inverse.G
    H[good] = inverse.consistent() if weighting.consistent else inverse.instantaneous()
    quasi = u.quasi if P == M else {*u.rows, *u.columns}
    units = u.scaling and replace(u.scaling, error=EPS).inverse(G)
    return Coefficients(u.columns, u.rows, G, H, quasi=quasi, scaling=units)


def redundancy_evaluator(
    evaluators: Evaluators,
    of: str | Iterable[str],
    *,
    order: int = 2,
    criterion: Weight = "minimum norm",
    law: Law = "consistent",
    damping: Damping = None,
    wrt: str | Iterable[str] | None = None,
    effort: bool = False,
) -> Evaluator[RedundancyResolution]:
    """Return an evaluator of rates and, with `order` 2, accelerations for a motion of rows `of`.

    With `effort`, the efforts are evaluated as well. Its arguments `ud` and `udd` (..., P) are rates and
    accelerations of the task, without accelerations for order 1. The null space follows `secondary` and
    `secondary_rate` (..., M), z and ż, by default zero. Rates `qd` (..., M) of the coordinates replace
    `ud` for the law "instantaneous". These numbers are not checked.
    """
    return RedundancyTask(model_of(evaluators), of, criterion, law, damping, wrt, effort, order).evaluator()
