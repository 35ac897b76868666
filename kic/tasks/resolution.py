"""Resolution of redundancy: the motion of all coordinates that was chosen for a task of fewer rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kic.coefficients import Coefficients
from kic.dynamics import Dynamics
from kic.errors import InputError
from kic.tables import Sheet, member

# what a result that was made for a hot loop says instead
_HOT = "A prepared evaluator answers {}; ask Configuration.resolve for this."


class Resolution:
    """Rates, accelerations and jerks of M coordinates for a task of P ≤ M rows; see `Configuration.resolve`.

    Attributes
    ----------
    task, coordinates : tuple of str
        Names of the P rows and of the M coordinates.
    qd : (..., M)
        Rates q̇.
    qdd : (..., M) or None
        Accelerations q̈; None where that of the task was not given.
    qddd : (..., M) or None
        Jerks q⃛, likewise.
    multiplier : (..., P)
        λ of Q (q̇ − z) = Gᵀ λ: what the task costs. Of the kinetic energy its momentum Λ (u̇ − G z).
    damping : (...,)
        λ² that was added to the task's rows (see `Configuration.resolve`), zero where it was not damped.
    missed : (..., P)
        What damping costs: u̇ − G q̇, zero but for rounding where it was not damped.
    missed_acceleration : (..., P) or None
        ü − G q̈ − q̇ᵀ H q̇, likewise.

    Examples
    --------
    >>> import kic
    >>> r = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]).resolve("flange", [0.1, 0.0, 0.0])
    >>> r.qd.shape, bool(abs(r.missed).max() < 1e-15)
    ((7,), True)
    """

    def __init__(self, task: tuple[str, ...], coordinates: tuple[str, ...], parts: list[np.ndarray]) -> None:
        self.task, self.coordinates = task, coordinates
        self.qd, self.multiplier, self.missed, self.damping = parts[0], parts[2], parts[3], parts[5][..., 0]
        self.qdd: np.ndarray | None = parts[1]
        self.missed_acceleration: np.ndarray | None = parts[4]
        self.qddd: np.ndarray | None = None
        self._effort: np.ndarray | None = parts[6]
        # where it came from, if that was a configuration
        self._map: Callable[[], Coefficients] | None = None
        self._model: Callable[[], Dynamics] | None = None
        # of an evaluator, which fills them anew
        self._of: Any = None
        self._results: Any = None
        self._motion: Any = None
        self._work: Any = None

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.qd.shape[:-1]

    @property
    def damped(self) -> np.ndarray:
        """Which members were damped, (...) bool: they do not do what the task asks, see `missed`."""
        return self.damping.real > 0

    @property
    def effort(self) -> np.ndarray:
        """Efforts (..., M) of the motion: T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (eq 4-67).

        Raises
        ------
        InputError
            If no acceleration of the task was given, or an evaluator was not prepared for efforts.
        InertiaError
            If a body has no mass or inertia.
        """
        if self._effort is None:
            if self.qdd is None:
                raise InputError("Efforts need accelerations; give `udd`, that of the task.")
            if self._model is None:
                raise InputError("This evaluator was prepared without efforts; set effort=True.")
            self._effort = self._model().effort(self._known(self.qd), self._known(self.qdd))
            self._effort = np.where(np.isnan(self.qd), np.nan, self._effort)
        return self._effort

    @staticmethod
    def _known(a: np.ndarray) -> np.ndarray:
        """Members without an answer as zeros, for questions that refuse NaN."""
        return np.where(np.isnan(a), 0.0, a)

    @property
    def coefficients(self) -> Coefficients:
        """G and H of the coordinates with respect to the task, for the chosen weight and law, without z.

        G is the right inverse of (4-69), H that of (4-72) for the law "instantaneous", and ∂G/∂u along the
        motion of each row of the task for "consistent". Then q̇ = G u̇, q̈ = G ü + u̇ᵀ H u̇ (4-71). With fewer
        rows than coordinates these are no derivatives of any function q(u): going round in the task may end
        elsewhere, so that all names are `quasi`.

        Raises
        ------
        InputError
            Of an evaluator's results.
        """
        if self._map is None:
            raise InputError(_HOT.format("numbers only"))
        return self._map()

    def dynamics(self) -> Dynamics:
        """Efforts at the coordinates for motion of the task: T = I*_qu ü + u̇ᵀ P*_quu u̇ − Tᴸ_q (eq 4-73).

        Returns
        -------
        Dynamics
            With efforts at the M coordinates: I*_qu (..., M, P) (4-74), P*_quu (..., M, P, P) of the chosen
            law, which is (4-75) for "instantaneous", and the load Tᴸ_q (..., M). (The source prints −Rᵀ T_u
            for the last, which has another dimension.)

        Raises
        ------
        InputError, InertiaError
            As `effort`.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
        >>> r = c.resolve("flange", [0.1, 0.0, 0.0], [0.0, 0.2, 0.0])
        >>> d = r.dynamics()
        >>> d.I.shape, bool(abs(d.effort([0.1, 0.0, 0.0], [0.0, 0.2, 0.0]) - r.effort).max() < 1e-12)
        ((7, 3), True)
        """
        if self._model is None:
            raise InputError(_HOT.format("numbers only"))
        model = self._model()
        stay = Coefficients.identity(self.coordinates, quasi=() if model.holonomic else self.coordinates)
        return model.transfer(self.coefficients, left=stay)

    def sheet(self) -> Sheet:
        """Labelled tables, to print or to show."""
        sheet = Sheet(f"{', '.join(self.coordinates)} for the task {', '.join(self.task)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if self.damped.any():
            which = f" in {int(self.damped.sum())} of {self.damped.size} members" if self.batch else ""
            sheet.say(
                f"damped{which}: the task is not met, λ² = {float(np.nanmax(self.damping)):.3g} at most"
            )
        if index is not None:
            of = {"q̇": self.qd, "q̈": self.qdd, "q⃛": self.qddd}
            columns = {name: a[index] for name, a in of.items() if a is not None}
            sheet.matrix("motion", self.coordinates, list(columns), np.stack(list(columns.values()), axis=-1))
            of = {"λ": self.multiplier, "missed u̇": self.missed, "missed ü": self.missed_acceleration}
            columns = {name: a[index] for name, a in of.items() if a is not None}
            sheet.matrix("task", self.task, list(columns), np.stack(list(columns.values()), axis=-1))
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
