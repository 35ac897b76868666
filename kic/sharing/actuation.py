"""Actuation: what a posture answers about more actuators than it has freedoms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from kic.dynamics import Dynamics
from kic.placement import Placement

if TYPE_CHECKING:
    from kic.sharing.distribution import Distribution
    from kic.sharing.internalloads import InternalLoads


class Actuation(Placement):
    """A posture with the questions that actuators ask; see `Configuration`."""

    # answered by `Configuration`, on which these stand
    coefficients: Any
    dynamics: Any

    def distribute(
        self,
        effort: Any,
        actuators: str | Iterable[str],
        criterion: Any = "minimum norm",
        limits: Any = None,
        lower: Any = None,
        preload: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Distribution:
        """Efforts of more actuators than freedoms that together give a generalized effort.

        The motion of the coordinates settles that of the actuators, but not their efforts T: with G their
        coefficients, GᵀT = T_u is all that is needed (4-80). The criterion takes those of least TᵀWT, in
        closed form where no limit is met (4-85), else by an active set; or those of the least largest share.

        Parameters
        ----------
        effort : (..., M) array_like
            Generalized effort T_u at the coordinates, such as `Dynamics.effort` gives.
        actuators : str or list of str
            Rows where efforts act: joints, cut ones included, distances, rows of points or bodies; A of them.
        criterion : str or (A,) or (..., A, A) array_like
            "minimum norm" (W = 1); "limits" (weights 1/limit²); "least largest share" of the limits, and
            among those of the next largest, and so on, which is unique; or positive weights, or a symmetric
            positive definite W.
        limits : float or (..., A) array_like, optional
            Greatest efforts, which are never exceeded. They may be infinite, but not where the criterion
            divides by them.
        lower : float or (..., A) array_like, optional
            Least efforts, such as 0 of a cable; by default −limits.
        preload : (..., A) array_like, optional
            Efforts whose part that does no work is added, as nearly as the limits let it.
        wrt : str or list of str, optional
            The coordinates of the effort, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            What becomes of members without an answer: an error that names them, or NaN.

        Returns
        -------
        Distribution
            ``d.effort`` (..., A), ``d.share``, ``d.at_limit``, ``d.internal`` (..., A), ``d.stiffness``.

        Raises
        ------
        InputError
            For fewer actuators than freedoms, weights or limits that are none, or a minimum norm over forces
            and moments together.
        LimitError
            Where the limits do not allow the effort; it says how much of it, and which limits stop it.
        SingularError
            Where the actuators can not hold every motion.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("walking-machine").at()
        >>> weight = c.dynamics().effort([0, 0, 0], [0, 0, 0])
        >>> motors = ["B1", "C1", "B2", "C2"]
        >>> c.distribute(weight, motors).effort.round(2).tolist()
        [6.67, -5.88, -11.51, 4.04]
        >>> d = c.distribute(weight, motors, "least largest share", limits=[40, 40, 20, 20])
        >>> d.share.round(3).tolist()
        [0.101, 0.268, 0.444, 0.444]
        """
        from kic.sharing.distribution import Sharing, distribute, efforts_of, labels_of

        c = self.coefficients(labels_of(self._model, actuators), wrt=wrt, failures=failures)
        given = {"effort": efforts_of("effort", effort, len(c.columns))}
        if preload is not None:
            given["preload"] = efforts_of("preload", preload, len(c.rows))
        sharing = Sharing(self._model, c, criterion, limits, lower, **given)
        return distribute(sharing, given["effort"], given.get("preload"), failures)

    def internal_loads(
        self,
        actuators: str | Iterable[str],
        criterion: Any = "minimum norm",
        limits: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> InternalLoads:
        """Efforts of actuators that do no work: what they pull against each other, whatever moves.

        Parameters
        ----------
        actuators : str or list of str
            As in `distribute`; A of them.
        criterion : str or (A,) or (..., A, A) array_like
            In which metric the basis is orthonormal: "minimum norm", "limits" or weights, as in `distribute`.
        limits : (..., A) array_like, optional
            For "limits".
        wrt, failures
            As in `distribute`. The space does not depend on the coordinates; the stiffness does.

        Returns
        -------
        InternalLoads
            ``loads.basis`` (..., A, A − M), ``loads.efforts``, ``loads.stiffness``.

        Raises
        ------
        InputError, SingularError
            As `distribute`.

        Examples
        --------
        >>> import kic
        >>> loads = kic.load("walking-machine").at().internal_loads(["B1", "C1", "B2", "C2"])
        >>> print(*loads.sentences())
        Internal load 1: B1, C1 against B2, C2.
        """
        from kic.sharing.distribution import Sharing, internal_loads, labels_of

        c = self.coefficients(labels_of(self._model, actuators), wrt=wrt, failures=failures)
        return internal_loads(Sharing(self._model, c, criterion, limits), failures)

    def actuator_dynamics(
        self,
        actuators: str | Iterable[str],
        criterion: Any = "minimum norm",
        limits: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Dynamics:
        """I*, P* and loads seen from more actuators than freedoms (eqs 4-87 to 4-90).

        Parameters
        ----------
        actuators, criterion, limits, wrt, failures
            As in `distribute`; limits are weights here, and not watched.
        applied : dict of str to (..., 3) array_like, optional
            As in `dynamics`.

        Returns
        -------
        Dynamics
            I* (..., A, M), P* (..., A, M, M), Tᴸ (..., A), with `efforts` the actuators: its `effort` of a
            motion is that of `dynamics`, distributed.

        Raises
        ------
        InputError, SingularError, InertiaError
            As `distribute` and `dynamics`; and for "least largest share", which is no linear law.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("two-finger-hand").at()
        >>> c.actuator_dynamics(["A1", "B1", "A2", "B2"]).P.shape
        (4, 3, 3)
        """
        from kic.sharing.distribution import Sharing, actuator_dynamics, labels_of

        c = self.coefficients(labels_of(self._model, actuators), wrt=wrt, failures=failures)
        dynamics = self.dynamics(wrt=wrt, applied=applied, failures=failures)
        return actuator_dynamics(Sharing(self._model, c, criterion, limits), dynamics, failures)
