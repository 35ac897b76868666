"""SciPy's LSODA with the step control of the other integrators."""

from __future__ import annotations

from functools import cache
from typing import Any

from kic.kernels.layout import FACTOR_MAX
from kic.numerics.tolerances import EPS

# entries of LSODA's array of real numbers: end of the next step at the latest, first step, next step
LIMIT, FIRST, NEXT = 0, 4, 11
# shortest step, in units of the round-off of the time
ROUND_OFF_FACTOR = 1e3


@cache
def lsoda() -> Any:
    """Return LSODA with the attribute `h_abs` of SciPy's other methods, and steps that grow at most tenfold.

    Steps of unmodified LSODA may grow by 10⁴, far beyond the region where loops close. The length of such a
    step does not suggest a length for the retry.
    """
    from scipy.integrate import LSODA

    class LimitedLSODA(LSODA):
        """LSODA with limited growth of steps."""

        @property
        def h_abs(self) -> float:
            """Length of the next step, 0 if it is not known."""
            numbers = self._lsoda_solver._integrator.rwork
            return float(numbers[FIRST] if self.t_old is None else min(numbers[NEXT], self._longest()))

        def _longest(self) -> float:
            # LSODA rejects an end of the step within round-off of its start
            return max(FACTOR_MAX * float(self.t - self.t_old), ROUND_OFF_FACTOR * EPS * abs(float(self.t)))

        def _step_impl(self) -> tuple[bool, str | None]:
            if self.t_old is not None:
                self._lsoda_solver._integrator.rwork[LIMIT] = min(self.t_bound, self.t + self._longest())
            found: tuple[bool, str | None] = super()._step_impl()
            return found

    return LimitedLSODA
