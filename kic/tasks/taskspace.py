"""Tasks: what a posture answers about fewer rows than it has freedoms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.members import spread, surviving
from kic.sharing.actuation import Actuation

if TYPE_CHECKING:
    from kic.tasks.ellipsoids import Ellipsoid, Kind
    from kic.tasks.operational import OperationalSpace
    from kic.tasks.resolution import Resolution
    from kic.tasks.weighting import Damping, Law, Weight


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
        from kic.tasks.operational import OperationalEvaluator

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
        from kic.tasks.measures import make_ellipsoid

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
        from kic.tasks.measures import gradient_at

        return gradient_at(self, self._model, of, wrt, limits, length, failures)

    def resolve(
        self,
        task: str | Iterable[str],
        ud: Any = None,
        udd: Any = None,
        uddd: Any = None,
        weight: Weight = "minimum norm",
        law: Law = "consistent",
        secondary: Any = None,
        damping: Damping = None,
        qd: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Resolution:
        """Motion of all coordinates for that of a task with fewer rows (or as many): redundancy resolved.

        Rates make ½ (q̇ − z)ᵀ Q (q̇ − z) least among those with G q̇ = u̇ (4-68, 4-70)::

            q̇ = z + R (u̇ − G z)        R = Q⁻¹ Gᵀ (G Q⁻¹ Gᵀ)⁻¹

        Accelerations follow one of two laws. "consistent": they are the derivative of these rates, so that a
        motion obeys the law above all the time. "instantaneous": they make ½ (q̈ − ż)ᵀ Q (q̈ − ż) least at the
        instant, whatever the rates are (4-71, 4-72). They differ in the null space, where the second lets
        rates grow that the first would not have; (4-72) is not, as printed, the derivative of (4-68).

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `coefficients`, at most as many as there are freedoms.
        ud, udd, uddd : (..., P) array_like
            Rates, accelerations and jerks of the task, as far as wanted; their batch broadcasts with that of
            the posture.
        weight : {"minimum norm", "minimum kinetic energy"} or (..., M, M) array_like
            The weight Q: 1, in the coordinates as they are; I*; or a symmetric positive definite matrix,
            which does not change with the posture.
        law : {"consistent", "instantaneous"}
            The law of accelerations.
        secondary : optional
            What the null space is for: `JointLimits`, `Manipulability`, `PreferredPosture`; rates z (..., M),
            or (z, ż) or (z, ż, z̈), zero where left out; a callable that takes a configuration of any batch
            and returns z; or a list of these, whose sum counts. Where accelerations are asked, a callable is
            derived by its complex step, and must pass complex numbers on.
        damping : float or (float, float), optional
            λ, or the largest λ and the manipulability w₀ below which λ² grows from 0, as (1 − w²/w₀²)² of the
            largest (after Nakamura and Hanafusa 1986). λ² S is added to G Q⁻¹ Gᵀ, which is measured free of
            units: rows of the task by the characteristic length where they are lengths, Q by a mean of
            its diagonal. So is w = √det. What the task then lacks is in `missed`.
        qd : (..., M) array_like, optional
            Rates as they are, for the law "instantaneous", in place of `ud`.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            What becomes of members where the task is singular: an error that names them, or NaN.

        Returns
        -------
        Resolution
            q̇, q̈, q⃛ (..., M), and what they come from; `effort`, and `coefficients` and `dynamics()` with
            respect to the task (4-73 to 4-75).

        Raises
        ------
        UnknownNameError, InertiaError
            As `coefficients` and `dynamics`.
        InputError
            For a task of more rows than freedoms, a weight that is not symmetric and positive definite,
            arrays of another shape, or symbols.
        SingularError
            Where the task's rows depend on one another and it is not damped, or the weight is I* and some
            motion moves no mass.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
        >>> r = c.resolve("flange", [0.1, 0.0, 0.0], [0.0] * 3, weight="minimum kinetic energy")
        >>> bool(abs(c.coefficients("flange").acceleration(r.qd, r.qdd)).max() < 1e-12)
        True
        """
        from kic.tasks.resolving import resolve

        motion = {"ud": ud, "udd": udd, "uddd": uddd, "qd": qd}
        return resolve(self, task, motion, weight, law, secondary, damping, wrt, failures)
