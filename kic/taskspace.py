"""Tasks: what a posture answers about fewer rows than it has freedoms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from kic.members import spread, surviving
from kic.operational import OperationalEvaluator, OperationalSpace
from kic.placement import Placement


class TaskSpace(Placement):
    """A posture with the questions that a task asks; see `Configuration`."""

    def operational_space(
        self,
        task: str | Iterable[str],
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> OperationalSpace:
        """Dynamics as a task feels them: Λ, μ, p, the dynamically consistent inverse and its null space.

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `coefficients`, at most as many as there are freedoms.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            What becomes of members where the task is singular: an error that names them, or NaN.

        Returns
        -------
        OperationalSpace
            Λ (..., P, P), μ (..., P, M, M), p (..., P), J̄ (..., M, P).

        Raises
        ------
        UnknownNameError, InertiaError
            As `coefficients` and `dynamics`.
        InputError
            For a task of more rows than freedoms, or symbols.
        SingularError
            Where the task's rows depend on one another.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("gough-stewart").at()
        >>> s = c.operational_space(["platform.x", "platform.y"])
        >>> bool(abs(s.G @ s.projector).max() < 1e-12)
        True
        """
        f = OperationalEvaluator(self._model, task, wrt)

        good, table = surviving(self.ok, failures, lambda members: f.table(self._states[members]))
        return f.results(spread(table, good), self.batch)
