"""Compiled stages of explicit Runge–Kutta steps, for motions under constant efforts.

SciPy's explicit methods call Python at every stage. `Stages` computes all stages of a step in one compiled
call. This is possible if no stage needs Python: no effort function, no voltages, no prescribed coordinate,
and no change point nearby. `with_stages` returns one of SciPy's methods that takes its stages from there;
coefficients, error estimate and dense output remain SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from kic.evaluator import MotionEvaluator
from kic.kernels.layout import QUALITY_WIDTH
from kic.kinematics.queries import kernel
from kic.transfer.closure import Closure
from kic.transfer.coordinate_transfer import TRIES

# SciPy's explicit methods, and their step control
EXPLICIT = ("RK23", "RK45", "DOP853")
SAFETY_FACTOR, STEP_FACTOR_MIN, STEP_FACTOR_MAX = 0.9, 0.2, 10.0
# weights of one stage of a step of zero length, which evaluates the derivatives at its start
_NO_STEP = np.zeros((1, 1))


class Stages:
    """Stages of steps in one set of coordinates.

    Parameters
    ----------
    forward : MotionEvaluator
        Forward dynamics in these coordinates.
    closure : Closure or None
        Loop closure in these coordinates; None for an open chain in its own.
    effort : (m,) ndarray
        Constant efforts at these coordinates.
    n_unknowns : int
        Number of the integrator's unknowns.
    """

    def __init__(
        self, forward: MotionEvaluator, closure: Closure | None, effort: np.ndarray, n_unknowns: int
    ) -> None:
        query, self._point = forward.query, np.empty(n_unknowns)
        tables: tuple[np.ndarray, ...] = query.plan, query.numbers, forward.applied
        T = np.empty(query.width)
        self._choice = None
        if closure is None:
            entry, scratch = kernel("tree_stages"), np.empty(query.places)

            def tree_stages(anchor: np.ndarray, choice: Any, *step: Any) -> bool:
                return bool(entry(*tables, effort, *step, self._point, scratch, T))

            self._stages: Callable[..., bool] = tree_stages

        else:
            entry, own = kernel("stages_in_coordinates"), closure.transfer.newton_tables
            self._choice = closure.transfer.choice
            tables = (own.query.plan, own.query.numbers, *tables)
            scratch = np.empty(max(own.query.closing_places, query.places))
            whole = np.empty((2, own.query.columns), np.int64)
            chosen = np.arange(len(own.goal))[own.chosen]
            states, goal = np.empty((1, query.tree.state_size)), own.goal[None].copy()
            last = states, goal, scratch, whole, T, np.empty(1), np.empty((1, QUALITY_WIDTH)), TRIES

            def closed_stages(anchor: np.ndarray, choice: Any, *step: Any) -> bool:
                start = choice, chosen, anchor, own.origin, effort
                return bool(entry(*tables, *start, *step, self._point, *last))

            self._stages = closed_stages

    def __call__(
        self,
        anchor: np.ndarray,
        choice: np.ndarray | None,
        y: np.ndarray,
        h: float,
        weights: np.ndarray,
        K: np.ndarray,
    ) -> np.ndarray | None:
        """Compute the derivatives K[1:] (n, N) at the stages of a step from y (N,).

        Parameters
        ----------
        anchor : (S,) ndarray
            Closed state from which the loops are closed.
        choice : ndarray or None
            Closure rows to use; None for those of the reference configuration.
        y : (N,) ndarray
            Unknowns at the start of the step.
        h : float
            Length of the step.
        weights : (n, n) ndarray
            Stage s is at y + h Σ weights[s, k] K[k].
        K : (n + 1, N) ndarray
            Derivatives, given in K[0].

        Returns
        -------
        (N,) ndarray or None
            Unknowns at the last stage. None if the kernel cannot compute a stage: loops that do not
            close, a singular inertia, or numbers that are not finite.
        """
        done = self._stages(anchor, self._choice if choice is None else choice, y, h, weights, K)
        return self._point.copy() if done else None

    def derivatives(self, anchor: np.ndarray, choice: np.ndarray | None, y: np.ndarray) -> np.ndarray | None:
        """Return the derivatives (N,) of the unknowns, or None if the kernel cannot compute them."""
        K, y = np.zeros((2, len(y))), np.ascontiguousarray(y)
        return None if self(anchor, choice, y, 0.0, _NO_STEP, K) is None else K[1]


@cache
def with_stages(method: str) -> Any:
    """Return an explicit method of SciPy whose stages come from ``self.stages``, a function like `Stages`.

    ``stages(y, h, weights, K)`` returns the end of the step, or None if SciPy must take the step. Time runs
    forward only.
    """
    import scipy.integrate

    base: Any = getattr(scipy.integrate, method)
    weights = np.zeros((base.n_stages, base.n_stages))
    weights[:-1, : base.A.shape[1]] = base.A[1:]
    weights[-1] = base.B

    class CompiledStepMethod(base):
        """The method with compiled stages."""

        stages: Any = None
        t: float
        h_abs: float
        y: np.ndarray
        f: np.ndarray

        def _step_impl(self) -> tuple[bool, str | None]:
            shortest = 10 * (np.nextafter(self.t, np.inf) - self.t)
            size, limit = min(max(self.h_abs, shortest), self.max_step), STEP_FACTOR_MAX
            while size >= shortest:
                end = min(self.t + size, self.t_bound)
                h, self.K[0] = end - self.t, self.f
                self.nfev += self.n_stages
                y = self.stages(self.y, h, weights, self.K)
                if y is None:  # SciPy takes the step, and its errors are raised
                    self.h_abs = size
                    found: tuple[bool, str | None] = super()._step_impl()
                    return found
                scale = self.atol + np.maximum(np.abs(self.y), np.abs(y)) * self.rtol
                error = self._estimate_error_norm(self.K, h, scale)
                factor = SAFETY_FACTOR * error**self.error_exponent if error else STEP_FACTOR_MAX
                if error < 1:
                    self.h_previous, self.y_old, self.f = h, self.y, self.K[-1].copy()
                    self.t, self.y, self.h_abs = end, y, h * min(limit, factor)
                    return True, None
                size, limit = h * max(STEP_FACTOR_MIN, factor), 1.0
            return False, self.TOO_SMALL_STEP

    return CompiledStepMethod
