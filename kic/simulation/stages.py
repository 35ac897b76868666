"""Compiled stages of explicit Runge–Kutta steps.

SciPy's explicit methods call Python at every stage. `Stages` computes all stages of a step in one compiled
call, including prescribed coordinates and motors under constant voltages. User functions for efforts and
voltages, and the Jacobian of actuators that are not coordinates, are evaluated at every stage, between two
compiled calls. `with_stages` returns one of SciPy's methods with these stages; coefficients, error estimate
and dense output remain SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kic.evaluator import Motions
from kic.kernels import layout as lay
from kic.kinematics.queries import kernel
from kic.simulation.motion import Motion
from kic.simulation.motor_circuits import MotorEquations
from kic.transfer.closure import Closure
from kic.transfer.coordinate_transfer import TRIES
from kic.transfer.orientations import TRACE_MIN, Positions

# SciPy's explicit methods, and the largest factor on the next step
EXPLICIT = ("RK23", "RK45", "DOP853")
FACTOR_MAX = 10.0


class Tableau(NamedTuple):
    """Stages of an explicit method after the first; stage s is at y + h Σ weights[s, k] K[k].

    Attributes
    ----------
    nodes : (n,) ndarray
        Times of the stages, as shares of the step.
    weights : (n, n) ndarray
        Weights of the derivatives.
    """

    nodes: np.ndarray
    weights: np.ndarray


class Control(NamedTuple):
    """Error control of a step; see `kernels.runge_kutta`.

    Attributes
    ----------
    errors : (2, n + 1) ndarray
        Weights of the derivatives in the components of the error; (0, 0) without control.
    atol : (N,) ndarray
        Absolute tolerances.
    values : (CONTROL_WIDTH,) ndarray
        Start and length of the step, and further entries, which `kernels.layout` names.
    """

    errors: np.ndarray
    atol: np.ndarray
    values: np.ndarray


NO_CONTROL = Control(np.zeros((0, 0)), np.zeros(0), np.zeros(lay.CONTROL_WIDTH))
# no prescribed motions
NOTHING_GIVEN = np.empty((0, 3, 0))
# one stage of a step of zero length, which evaluates the derivatives at its start
NO_STEP = Tableau(np.zeros(1), np.zeros((1, 1)))


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
        forward: Motions,
        closure: Closure | None,
        positions: Positions | None,
        motors: MotorEquations | None,
        held: np.ndarray,
        n_unknowns: int,
        inputs: Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | None]],
        inputs_vary: bool,
    ) -> None:
        query, size = forward._program.queries[0], forward._transfer.size
        self._motion, self._held, self._inputs, self._inputs_vary = motion, held, inputs, inputs_vary
        self._effort, self._supply = np.zeros(size), np.zeros(0)
        train = (np.zeros((0, lay.MOTOR_WIDTH)), np.zeros((0, size)))
        if motors is not None:
            train = motors.table, motors.fixed
            self._supply = np.zeros(len(motors.table))
        self._point, self._terms = np.empty((3, n_unknowns)), np.empty(query.layout.width)
        self.unknowns = self._point[1]
        solved, scratch = np.empty(size * (size + 1)), np.empty(query.scratch)
        tables: tuple[np.ndarray, ...] = query.plan, query.numbers, forward._program.applied
        acting = self._effort, held
        self._choice: Any = None
        # start and length of the last step
        self._last: tuple[float, float] | None = None
        if closure is None:
            self.state = self._point[1, : query.tree.state_size]
            entry = kernel("tree_stages")

            def tree_stages(anchor: np.ndarray, choice: Any, given: np.ndarray, *step: Any) -> bool:
                last = self._point, scratch, self._terms, solved
                return bool(entry(*tables, *acting, given, *train, self._supply, *step, *last))

            self._stages: Callable[..., bool] = tree_stages
            return
        entry, transfer = kernel("stages_in_coordinates"), closure.transfer
        own, self._choice = transfer.newton_tables, transfer.choice
        aims, order = np.arange(len(own.goal))[own.chosen], np.arange(size)
        turned = np.empty((0, 3, 3))
        if positions is not None:
            order = positions.order
        states, goal = np.empty((2, query.tree.state_size)), own.goal[None].copy()
        n_values = size - 3 * len(() if positions is None else positions.orientations)
        units = np.ones(n_values if positions is None else positions.size)
        units[:n_values] = 1 / transfer.scale[:n_values]
        whole, closing_scratch = (
            np.empty((2, query.tree.size), np.int64),
            np.empty(own.query.closing_scratch),
        )
        quality, share = np.empty((1, lay.QUALITY_WIDTH)), np.empty(1)
        self.state = states[0]
        # rows of rotations are measured from the anchor
        known: tuple[Any, ...] = (None, own.query.numbers, turned)

        def closed_stages(anchor: np.ndarray, choice: Any, given: np.ndarray, *step: Any) -> bool:
            nonlocal known
            if positions is not None and known[0] is not anchor:
                known = (anchor, *positions.rows_from(anchor))
            fixed = choice if positions is None else forward._transfer.choice
            return bool(
                entry(
                    own.query.plan, known[1], choice, *tables, fixed, aims, order, own.origin, units, anchor,
                    known[2], TRACE_MIN, *acting, given, *train, self._supply, *step, self._point, states,
                    goal, closing_scratch, scratch, whole, self._terms, solved, share, quality, TRIES,
                )
            )  # fmt: skip

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
        control: Control = NO_CONTROL,
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
            Times and weights of the stages.
        K : (n + 1, N) ndarray
            Derivatives, given in K[: first + 1].
        control : Control, optional
            Error control after the last stage.

        Returns
        -------
        (N,) ndarray or None
            Unknowns at the last stage. None if the kernel cannot compute a stage: the loops do not close, the
            inertia is singular, or a number is not finite.
        """
        given = NOTHING_GIVEN
        if self._held.size:
            given = np.empty((last, 3, self._held.shape[1]))
            for stage in range(first, last):
                given[stage] = self._motion.given(t + float(tableau.nodes[stage]) * h)
        step = y, h, tableau.weights, K
        if control is not NO_CONTROL:
            control.values[lay.STEP_REPEATED] = not (self._inputs_vary or self._held.size)
        at = anchor, self._choice if choice is None else choice, given
        begins = first == 0 or self._last != (t, h)
        if not self._inputs_vary:
            self._set_inputs(t, y, anchor)
            done = self._stages(*at, *step, *control, first, last, lay.PREPARE | lay.EVALUATE, begins)
            self._last = (t, h) if control is NO_CONTROL else (t, float(control.values[lay.STEP_LENGTH]))
            return self._point[0].copy() if done else None
        self._last = t, h
        for stage in range(first, last):
            if not self._stages(
                *at, *step, *NO_CONTROL, stage, stage + 1, lay.PREPARE, begins and stage == first
            ):
                return None
            x = self._point[1].copy()
            if not np.isfinite(x @ x):
                return None
            self._set_inputs(t + float(tableau.nodes[stage]) * h, x, self.state)
            ends = control if stage + 1 == last else NO_CONTROL
            if not self._stages(*at, *step, *ends, stage, stage + 1, lay.EVALUATE, False):
                return None
        return self._point[0].copy()

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
        return None if self(anchor, choice, t, y, 0.0, NO_STEP, K, 0, 1) is None else K[1]


@cache
def with_stages(method: str) -> Any:
    """Return an explicit method of SciPy whose stages come from ``self.stages``, a function like `Stages`.

    ``stages(t, y, h, tableau, K, first, last, control)`` returns the end of the step, or None if SciPy must
    take the step. Integration runs forward in time only.
    """
    import scipy.integrate

    base: Any = getattr(scipy.integrate, method)
    n_stages = base.n_stages
    extra = getattr(base, "A_EXTRA", np.zeros((0, n_stages)))  # stages of the dense output alone
    n_all = n_stages + len(extra)
    tableau = Tableau(np.ones(n_all), np.zeros((n_all, n_all)))
    tableau.nodes[: n_stages - 1], tableau.nodes[n_stages:] = base.C[1:], getattr(base, "C_EXTRA", ())
    tableau.weights[: n_stages - 1, : base.A.shape[1]] = base.A[1:]
    tableau.weights[n_stages - 1, :n_stages] = base.B
    tableau.weights[n_stages:] = extra[:, :n_all]

    errors = np.zeros((2, n_stages + 1))
    errors[0], errors[1] = (base.E5, base.E3) if hasattr(base, "E5") else (base.E, 0.0)

    class CompiledStepMethod(base):
        """SciPy's method with compiled stages."""

        stages: Any = None
        t: float
        h_abs: float
        y: np.ndarray
        f: np.ndarray

        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **given)
            atol = np.full(len(self.y), self.atol, dtype=float)
            self._control = Control(errors, atol, np.zeros(lay.CONTROL_WIDTH))

        def _step_impl(self) -> tuple[bool, str | None]:
            t, step = self.t, self._control.values
            step[:] = 0.0
            step[lay.STEP_START], step[lay.STEP_BOUND] = t, self.t_bound
            step[lay.STEP_MIN], step[lay.STEP_FACTOR_MAX] = 10 * (np.nextafter(t, np.inf) - t), FACTOR_MAX
            step[lay.STEP_RTOL], step[lay.STEP_EXPONENT] = self.rtol, self.error_exponent
            step[lay.STEP_NEXT] = min(max(self.h_abs, step[lay.STEP_MIN]), self.max_step)
            self.K[0] = self.f
            while step[lay.STEP_NEXT] >= step[lay.STEP_MIN]:
                step[lay.STEP_END] = min(t + step[lay.STEP_NEXT], self.t_bound)
                step[lay.STEP_LENGTH] = h = step[lay.STEP_END] - t
                y = self.stages(t, self.y, float(h), tableau, self.K, 0, n_stages, self._control)
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
                done = self.stages(*start, tableau, self.K_extended, n_stages, n_all) is not None
                self.A_EXTRA = () if done else extra  # the stages that SciPy evaluates itself
            return super()._dense_output_impl()

    return CompiledStepMethod
