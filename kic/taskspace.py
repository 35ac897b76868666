"""Tasks: what a posture answers about fewer rows than it has freedoms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from kic.actuation import Actuation
from kic.ellipsoids import Ellipsoid, Kind
from kic.measures import gradient_at, make_ellipsoid
from kic.members import spread, surviving
from kic.operational import OperationalEvaluator, OperationalSpace


class TaskSpace(Actuation):
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

    def ellipsoid(
        self,
        kind: Kind,
        of: str | Iterable[str],
        wrt: str | Iterable[str] | None = None,
        limits: Any = None,
        length: float | None = None,
        qd: Any = None,
        load: bool = True,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Ellipsoid:
        """Ellipsoid of a task's velocity, force, inertia or acceleration, with its measures.

        Parameters
        ----------
        kind : {"velocity", "force", "inertia", "acceleration"}
            Of what; the definitions stand at `Ellipsoid`.
        of : str or list of str
            Rows of the task, as in `coefficients`: of one unit, or see `length`.
        wrt : str or list of str, optional
            The coordinates that are measured, as in `coefficients`: those with the actuators.
        limits : dict of str to float, or (M,) array_like, optional
            For each coordinate its largest rate ("velocity") or effort ("force", "acceleration"), by which it
            is measured. Without, each counts with its unit, and they all must have the same.
        length : float, optional
            In the drawing's unit of length: angular rows are multiplied by it (moments divided).
        qd : (..., M) array_like, optional
            Rates of the coordinates, for the center of "acceleration"; at rest if left out.
        load : bool
            Whether gravity, springs and applied forces shift the center of "acceleration". If not, efforts
            are those beyond what holds these.
        failures : {"raise", "mask"}
            As in `coefficients`. A singular task is no failure.

        Returns
        -------
        Ellipsoid
            axes (..., P, P), semi_axes (..., P), and measures (...): manipulability, condition, isotropy.

        Raises
        ------
        UnknownNameError, InertiaError, SingularError
            As `coefficients` and, for "inertia" and "acceleration", `dynamics`; SingularError also where some
            motion moves no mass.
        InputError
            For another kind, rows or coordinates of different units, limits or a length that are not
            positive, an argument that the kind has no use for, or a posture that is not of real numbers.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("gough-stewart").at()
        >>> e = c.ellipsoid("force", "platform", length=0.5)
        >>> e.semi_axes.shape, e.isotropy.round(3)
        ((6,), np.float64(0.351))
        """
        return make_ellipsoid(self, self._model, kind, of, wrt, limits, length, qd, load, failures)

    def manipulability_gradient(
        self,
        of: str | Iterable[str],
        wrt: str | Iterable[str] | None = None,
        limits: Any = None,
        length: float | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> np.ndarray:
        """Gradient of the manipulability w = √det(G Gᵀ) of a task along the coordinates, exactly, by H.

        Parameters
        ----------
        of, wrt, limits, length
            As in `ellipsoid`, of "velocity".
        failures : {"raise", "mask"}
            What becomes of members where w is 0, and has an edge: an error that names them, or NaN.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            As `ellipsoid`, and for more rows than coordinates.
        SingularError
            Where the task is singular.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 1.5]).manipulability_gradient(["tip.x", "tip.y"]).round(4)
        array([0.    , 0.0707])
        """
        return gradient_at(self, self._model, of, wrt, limits, length, failures)
