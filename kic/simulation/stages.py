"""Compiled stages of explicit Runge–Kutta steps.

SciPy's explicit methods call Python at every stage. `Stages` computes all stages of a step in one compiled
call, including prescribed coordinates and motors under constant voltages. User functions for efforts and
voltages, and the Jacobian of actuators that are not coordinates, are evaluated at every stage, between two
compiled calls. Without these and prescribed coordinates, one call takes many steps and interpolates outputs.
`with_stages` returns one of SciPy's methods with these stages; coefficients, error estimate and dense output
remain SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ulp
from typing import Any, NamedTuple

import numpy as np

from kic.kernels import layout as lay
from kic.kinematics.queries import kernel
from kic.simulation.motion import Motion
from kic.simulation.motor_circuits import MotorEquations
from kic.transfer.closure import Closure
from kic.transfer.orientations import Positions
from kic.transfer.program import Program

# SciPy's explicit methods
EXPLICIT = ("RK23", "RK45", "DOP853")
# largest numbers of steps and of records in one call
CALL_STEPS_MAX, RECORDS_MAX = 100, 300


class Tableau(NamedTuple):
    """Stages of an explicit method after the first; stage s is at y + h Σ weights[s, k] K[k].

    Attributes
    ----------
    nodes : (n,) ndarray
        Times of the stages, as shares of the step.
    control : (CONTROL_WIDTH + (n + 1) (n + 2 + DENSE_WIDTH) + N + T,) ndarray
        The step, its stages and its error control, the weights of stages and dense output, absolute
        tolerances of the N unknowns, and times of T outputs; `kernels.layout` names the entries.
    """

    nodes: np.ndarray
    control: np.ndarray


def tableau(
    nodes: np.ndarray, weights: np.ndarray, dense: np.ndarray, atol: Any = (), outputs: Any = ()
) -> Tableau:
    """Return a tableau from nodes (n,), weights (n + 2, n + 1) of stages and error, and tolerances (N,).

    `dense` (n + 1, DENSE_WIDTH) has the weights of the dense output, and `outputs` (T,) its times.
    """
    control = np.concatenate([np.zeros(lay.CONTROL_WIDTH), weights.ravel(), dense.ravel(), atol, outputs])
    control[lay.STEP_STAGES] = len(nodes)
    return Tableau(nodes, control)


# all parts of a stage
ALL_PARTS = lay.PREPARE | lay.EVALUATE
# no prescribed motions
NOTHING_GIVEN = np.empty((0, 3, 0))
# one stage of a step of zero length, which evaluates the derivatives at its start
NO_STEP = tableau(np.zeros(1), np.zeros((3, 2)), np.zeros((2, lay.DENSE_WIDTH)))
NO_RECORDS = np.empty((0, lay.RECORD_UNKNOWNS))


class Stages:
    """Stages of steps in one set of coordinates.

    Parameters
    ----------
    motion : Motion
        Efforts, voltages and prescribed motions.
    forward : Motions
        Forward dynamics in the coordinates.
    closure : Closure or None
        The rows that are solved; None for an open chain in the mechanism's coordinates.
    positions : Positions or None
        Positions if there are angular velocities among the coordinates.
    motors : MotorEquations or None
        Motors under voltages, whose joints must be among the coordinates.
    held : (2, H) ndarray
        Indices of prescribed coordinates, and of their values among the unknowns.
    n_unknowns : int
        Number of the integrator's unknowns.
    inputs : callable
        ``inputs(t, x, state)`` returns the efforts at the coordinates, and the motor voltages or None, for
        unknowns x and a closed state.
    inputs_vary : bool
        True if the inputs depend on time or state and must be evaluated at every stage.

    Attributes
    ----------
    state : (S,) ndarray
        Closed state at the last stage; for an open chain its unknowns, without normalized quaternions.
    unknowns : (N,) ndarray
        Unknowns at the last stage, with prescribed values.
    """

    def __init__(
        self,
        motion: Motion,
        program: Program,
        closure: Closure | None,
        positions: Positions | None,
        motors: MotorEquations | None,
        held: np.ndarray,
        n_unknowns: int,
        inputs: Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | None]],
        inputs_vary: bool,
    ) -> None:
        from kic.kernels import runge_kutta

        query, size = program.queries[0], program.transfer.size
        n_motors, length = 0 if motors is None else len(motors.table), query.tree.state_size
        self._motion, self._inputs, self._inputs_vary = motion, inputs, inputs_vary
        self._has_held, self._n_held = bool(held.size), held.shape[1]
        acting = np.zeros(size + n_motors * (lay.MOTOR_SHAFT + size))
        self._effort, train = runge_kutta.inputs_of(size, acting)
        if motors is not None:
            train[:, : lay.MOTOR_WIDTH], train[:, lay.MOTOR_SHAFT :] = motors.table, motors.fixed
        self._supply = train[:, lay.MOTOR_SUPPLY]
        places = np.zeros((lay.STAGE_HEIGHT, query.tree.size), np.int64)
        places[lay.HELD : lay.HELD_VALUE + 1, : self._n_held] = held
        tables: tuple[np.ndarray, ...] = query.plan, query.numbers, program.applied
        scratch = runge_kutta.stage_scratch(size, n_unknowns) + query.scratch
        self._choice: Any = None
        # start and length of the last step
        self._last: tuple[float, float] | None = None
        self._still = Tableau(NO_STEP.nodes, NO_STEP.control.copy())
        if closure is None:
            work = np.empty(scratch)
            self._point = runge_kutta.stage_space(size, n_unknowns, work)[0]
            self.unknowns, self.state = self._point[1], self._point[1, :length]
            entry = kernel("tree_stages")

            def tree_stages(
                anchor: np.ndarray, choice: Any, *step: np.ndarray, records: np.ndarray = NO_RECORDS
            ) -> bool:
                return bool(entry(*tables, places, acting, *step, work, records))

            self._stages: Callable[..., bool] = tree_stages
            return
        entry, transfer = kernel("stages_in_coordinates"), closure.transfer
        own, self._choice = transfer.newton_tables, transfer.choice
        work = np.empty(scratch + 2 * length + len(own.goal) + own.query.closing_scratch + 1)
        self._point, _, _, rest = runge_kutta.stage_space(size, n_unknowns, work)
        states, goal, *_ = runge_kutta.closed_space(own.query.plan, length, rest)
        goal[0], self.unknowns, self.state = own.goal, self._point[1], states[0][0]
        places[lay.AIM, :size] = np.arange(len(own.goal))[own.chosen]
        places[lay.VALUED, :size] = np.arange(size) if positions is None else positions.order
        n_values = size - 3 * len(() if positions is None else positions.orientations)
        units = np.ones(size if positions is None else positions.size)
        units[:n_values] = 1 / transfer.scale[:n_values]
        reference = np.concatenate([np.empty(length), own.origin, units, np.empty(3 * (size - n_values))])
        # rows of rotations are measured from the anchor; those of many steps may be from an earlier one
        known: tuple[Any, np.ndarray] = (None, own.query.numbers)

        def closed_stages(
            anchor: np.ndarray, choice: Any, *step: np.ndarray, records: np.ndarray = NO_RECORDS
        ) -> bool:
            nonlocal known
            reference[:length], control = anchor, step[-1]
            is_known = known[0] is not None if len(records) else known[0] is anchor
            if positions is not None and not is_known:
                numbers, turned = positions.rows_from(anchor)
                known, reference[len(reference) - turned.size :] = (anchor, numbers), turned.ravel()
            fixed, control[lay.STEP_TURNED] = choice if positions is None else program.transfer.choice, 0
            closing = own.query.plan, known[1], choice
            done = entry(*closing, *tables, fixed, places, reference, acting, *step, work, records)
            if control[lay.STEP_TURNED]:
                known = None, known[1]
            return bool(done)

        self._stages = closed_stages

    def __call__(
        self,
        anchor: np.ndarray,
        choice: np.ndarray | None,
        t: float,
        y: np.ndarray,
        h: float,
        tableau: Tableau,
        K: np.ndarray,
        first: int,
        last: int,
        controlled: bool = False,
    ) -> np.ndarray | None:
        """Compute derivatives K[s + 1] of a step from y (N,) at stages s with `first` ≤ s < `last`.

        A step that error control rejects is repeated with a shorter length, unless the inputs vary.

        Parameters
        ----------
        anchor : (S,) ndarray
            Closed state from which the loops are closed.
        choice : ndarray or None
            Closure rows to use; None for those of the reference configuration.
        t, h : float
            Start and length of the step.
        y : (N,) ndarray
            Unknowns at the start of the step.
        tableau : Tableau
            Times and weights of the stages, and control of the step.
        K : (n + 1, N) ndarray
            Derivatives, given in K[: first + 1].
        controlled : bool, optional
            True to control the error after the last stage.

        Returns
        -------
        (N,) ndarray or None
            Unknowns at the last stage. None if the kernel cannot compute a stage: the loops do not close, the
            inertia is singular, or a number is not finite.
        """
        given, control = NOTHING_GIVEN, tableau.control
        if self._has_held:
            given = np.empty((last, 3, self._n_held))
            for stage in range(first, last):
                given[stage] = self._motion.given(t + float(tableau.nodes[stage]) * h)
        control[lay.STEP_LENGTH], control[lay.STEP_FIRST], control[lay.STEP_LAST] = h, first, last
        control[lay.STEP_REPEATED] = not (self._inputs_vary or self._has_held)
        control[lay.STEP_CONTROLLED], control[lay.STEP_TASK] = controlled, ALL_PARTS
        control[lay.STEP_BEGINS] = first == 0 or self._last != (t, h)
        control[lay.STEP_MOST], self._point[3] = 0, y
        step = anchor, self._choice if choice is None else choice, given, K, control
        if not self._inputs_vary:
            self._set_inputs(t, y, anchor)
            done = self._stages(*step)
            self._last = t, float(control[lay.STEP_LENGTH])
            return self._point[0].copy() if done else None
        self._last = t, h
        for stage in range(first, last):
            control[lay.STEP_FIRST], control[lay.STEP_LAST] = stage, stage + 1
            control[lay.STEP_CONTROLLED], control[lay.STEP_TASK] = False, lay.PREPARE
            if not self._stages(*step):
                return None
            x = self._point[1].copy()
            if not np.isfinite(x @ x):
                return None
            self._set_inputs(t + float(tableau.nodes[stage]) * h, x, self.state)
            control[lay.STEP_CONTROLLED] = controlled and stage + 1 == last
            control[lay.STEP_TASK], control[lay.STEP_BEGINS] = lay.EVALUATE, False
            if not self._stages(*step):
                return None
        return self._point[0].copy()

    def steps(
        self,
        anchor: np.ndarray,
        choice: np.ndarray | None,
        t: float,
        y: np.ndarray,
        tableau: Tableau,
        K: np.ndarray,
        records: np.ndarray,
    ) -> int:
        """Take steps from y (N,) without changes of inputs; return the number of `records` (R, …) written."""
        control = tableau.control
        control[lay.STEP_TASK] = ALL_PARTS
        control[lay.STEP_REPEATED] = control[lay.STEP_CONTROLLED] = control[lay.STEP_BEGINS] = 1
        control[lay.STEP_RECORDS], self._point[3] = 0, y
        self._set_inputs(t, y, anchor)
        choice = self._choice if choice is None else choice
        self._stages(anchor, choice, NOTHING_GIVEN, K, control, records=records)
        return int(control[lay.STEP_RECORDS])

    def _set_inputs(self, t: float, x: np.ndarray, state: np.ndarray) -> None:
        """Store the efforts and voltages for a time, unknowns and a closed state."""
        self._effort[:], supply = self._inputs(t, x, state)
        if supply is not None:
            self._supply[:] = supply

    def derivatives(
        self, anchor: np.ndarray, choice: np.ndarray | None, t: float, y: np.ndarray
    ) -> np.ndarray | None:
        """Return the derivatives (N,) of the unknowns, or None if the kernel cannot compute them."""
        K, y = np.zeros((2, len(y))), np.ascontiguousarray(y)
        return None if self(anchor, choice, t, y, 0.0, self._still, K, 0, 1) is None else K[1]


def _dense_weights(base: Any) -> np.ndarray:
    """Return the weights (n + 1, DENSE_WIDTH) of the dense output of one of SciPy's explicit methods.

    The change from the start of a step of unit length is Σ weights[k, n] K[k] pₙ(x), with the products pₙ of
    x and 1 − x in `kernels.layout`.
    """
    if hasattr(base, "D"):  # the terms of SciPy's interpolant, for unit derivatives
        count = base.D.shape[1]
        change, first, last = np.zeros(count), np.eye(count)[0], np.eye(count)[base.n_stages]
        change[: base.n_stages] = base.B
        return np.vstack([change, first - change, 2 * change - first - last, base.D]).T
    # SciPy gives coefficients of powers
    x = np.linspace(0, 1, 2 * lay.DENSE_WIDTH)[1:, None]
    factors = np.where(np.arange(base.P.shape[1]) % 2, 1 - x, x)
    powers = x ** np.arange(1, base.P.shape[1] + 1)
    dense = np.zeros((len(base.P), lay.DENSE_WIDTH))
    dense[:, : base.P.shape[1]] = np.linalg.lstsq(np.cumprod(factors, axis=1), powers @ base.P.T)[0].T
    return dense


def begin_step(solver: Any, tableau: Tableau) -> np.ndarray:
    """Return the control of the next step of an integrator, at its start."""
    t, step = solver.t, tableau.control
    step[lay.STEP_ACCEPTED] = step[lay.STEP_COUNT] = 0.0
    step[lay.STEP_START], step[lay.STEP_BOUND] = t, solver.t_bound
    step[lay.STEP_MIN], step[lay.STEP_FACTOR_MAX] = 10 * ulp(t), lay.FACTOR_MAX
    step[lay.STEP_RTOL], step[lay.STEP_EXPONENT] = solver.rtol, solver.error_exponent
    step[lay.STEP_NEXT] = step[lay.STEP_TRIAL] = min(max(solver.h_abs, step[lay.STEP_MIN]), solver.max_step)
    if solver.f is not None:
        solver.K[0] = solver.f
    return step


def many_steps(
    solver: Any, stages: Stages, anchor: np.ndarray, choice: Any, most: int, output: int
) -> np.ndarray:
    """Take steps of an integrator until one must be watched, at most `most`, and return their records.

    Inputs do not change within the steps. `output` is the index of the next output. The records are
    overwritten by the next call.
    """
    tableau, K, control = solver.tableau, solver.derivatives, begin_step(solver, solver.tableau)
    control[lay.STEP_MOST], control[lay.STEP_OUTPUT] = min(most, CALL_STEPS_MAX), output
    control[lay.STEP_END] = min(solver.t + control[lay.STEP_NEXT], solver.t_bound)
    control[lay.STEP_LENGTH] = control[lay.STEP_END] - solver.t
    control[lay.STEP_FIRST], control[lay.STEP_LAST] = -1 if solver.f is None else 0, solver.n_stages
    records: np.ndarray = solver.records[
        : stages.steps(anchor, choice, solver.t, solver.y, tableau, K, solver.records)
    ]
    solver.nfev += solver.n_stages * int(control[lay.STEP_COUNT])
    if len(records):
        solver.t, solver.h_abs = float(records[-1, lay.RECORD_TIME]), float(control[lay.STEP_NEXT])
        solver.y = records[-1, lay.RECORD_UNKNOWNS :][: len(solver.y)].copy()
        solver.f, solver.t_old = K[0].copy(), None
        if solver.t >= solver.t_bound:
            solver.status = "finished"
    return records


@cache
def with_stages(method: str) -> Any:
    """Return an explicit method of SciPy whose stages come from ``self.stages``, a function like `Stages`.

    ``stages(t, y, h, tableau, K, first, last, controlled)`` returns the end of the step, or None if SciPy
    must take the step. Integration runs forward in time only.
    """
    import scipy.integrate

    base: Any = getattr(scipy.integrate, method)
    n_stages, interpolated = base.n_stages, _dense_weights(base)
    extra = getattr(base, "A_EXTRA", np.zeros((0, n_stages)))  # stages of the dense output alone
    n_all = n_stages + len(extra)
    nodes, weights = np.ones(n_all), np.zeros((n_all + 2, n_all + 1))
    nodes[: n_stages - 1], nodes[n_stages:] = base.C[1:], getattr(base, "C_EXTRA", ())
    weights[: n_stages - 1, : base.A.shape[1]] = base.A[1:]
    weights[n_stages - 1, :n_stages] = base.B
    weights[n_stages:n_all, :n_all] = extra[:, :n_all]
    errors = weights[n_all:, : n_stages + 1]
    errors[0], errors[1] = (base.E5, base.E3) if hasattr(base, "E5") else (base.E, 0.0)

    class CompiledStepMethod(base):
        """SciPy's method with compiled stages."""

        stages: Any = None
        t: float
        h_abs: float
        y: np.ndarray
        f: np.ndarray | None

        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **given)
            self._tolerances = np.full(len(self.y), self.atol, dtype=float)
            self.tableau = tableau(nodes, weights, interpolated, self._tolerances)

        def interpolate(self, outputs: np.ndarray, width: int, drive_max: float) -> None:
            """Prepare `many_steps`: times of outputs, width of states, and largest drive measure."""
            self.tableau = tableau(nodes, weights, interpolated, self._tolerances, outputs)
            self.tableau.control[lay.STEP_DRIVE_MAX] = drive_max
            self.records = np.empty((RECORDS_MAX, lay.RECORD_UNKNOWNS + len(self.y) + width))
            self.derivatives = self.K_extended if n_all > n_stages else self.K

        def _step_impl(self) -> tuple[bool, str | None]:
            if self.f is None:
                self.f = self.fun(self.t, self.y)
            t, step = self.t, begin_step(self, self.tableau)
            while step[lay.STEP_NEXT] >= step[lay.STEP_MIN]:
                step[lay.STEP_END] = min(t + step[lay.STEP_NEXT], self.t_bound)
                step[lay.STEP_LENGTH] = h = step[lay.STEP_END] - t
                y = self.stages(t, self.y, float(h), self.tableau, self.K, 0, n_stages, True)
                if y is None:  # SciPy takes the step, and its errors are raised
                    self.h_abs = float(step[lay.STEP_NEXT])
                    found: tuple[bool, str | None] = super()._step_impl()
                    return found
                if step[lay.STEP_ACCEPTED]:
                    self.nfev += n_stages * int(step[lay.STEP_COUNT])
                    self.h_previous, self.y_old = float(step[lay.STEP_LENGTH]), self.y
                    self.t, self.h_abs = float(step[lay.STEP_END]), float(step[lay.STEP_NEXT])
                    self.y, self.f = y, self.K[-1].copy()
                    return True, None
            return False, self.TOO_SMALL_STEP

        def _dense_output_impl(self) -> Any:
            if n_all > n_stages:
                start = self.t_old, self.y_old, self.h_previous
                done = self.stages(*start, self.tableau, self.K_extended, n_stages, n_all) is not None
                self.A_EXTRA = () if done else extra  # the stages that SciPy evaluates itself
            return super()._dense_output_impl()

    return CompiledStepMethod
