"""What a mechanism does on its way along a trajectory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kic.arguments import names_of
from kic.configuration import Configuration
from kic.linear.actuators import Drive
from kic.picturing.figures import Picture
from kic.picturing.panels import motion_panels
from kic.picturing.plots import draw_plots


class Motion(NamedTuple):
    """Positions (..., M) and their derivatives in time, to unpack: ``q, qd, qdd, qddd = trajectory(t)``."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Course:
    """A mechanism on its way along a trajectory; made by `Trajectory.on`.

    Attributes
    ----------
    t : (T,)
        Times.
    configuration : Configuration
        The postures (T,), with all that can be asked of them.
    motion : Motion
        q, q̇, q̈, q⃛ (T, M) of the coordinates.
    wrt : tuple of str or None
        The coordinates, for `wrt` in other questions; None for the mechanism's own.
    """

    t: np.ndarray
    configuration: Configuration
    motion: Motion
    wrt: tuple[str, ...] | None

    def of(self, names: str | Iterable[str]) -> Motion:
        """Values, velocities, accelerations and jerks (T, P) of anything that moves with it.

        Values of angular velocities are NaN.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> reach = kic.trajectories.line({"tip.x": 1.0, "tip.y": 1.0}, {"tip.x": 1.5, "tip.y": 1.0}, 1.0)
        >>> course = reach.on(arm, 3, near=arm.at([0.3, 1.0]))
        >>> course.of("tip").qd[0].round(12).tolist()
        [0.5, 0.0, 0.0]
        """
        _, qd, qdd, qddd = self.motion
        c = self.configuration.coefficients(names, order=3, wrt=self.wrt)
        assert c.values is not None  # for the type checker
        return Motion(c.values, c.velocity(qd), c.acceleration(qd, qdd), c.jerk(qd, qdd, qddd))

    def effort(self, actuators: str | Iterable[str] | None = None) -> np.ndarray:
        """Efforts that the motion takes (eq 2-198).

        Parameters
        ----------
        actuators : str or list of str, optional
            Coordinates at which they act, as many as freedoms; by default those of the trajectory.

        Returns
        -------
        (T, M)

        Raises
        ------
        InertiaError, SingularError
            As `Configuration.dynamics`.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> hold = kic.trajectories.line([0.0, 0.0], [0.0, 0.0], 1.0).on(arm, 2)
        >>> hold.effort()[0].tolist()
        [19.62, 4.905]
        """
        if actuators is None:
            return self.configuration.dynamics(wrt=self.wrt).effort(self.motion.qd, self.motion.qdd)
        moved = self.of(actuators)
        return self.configuration.dynamics(wrt=actuators).effort(moved.qd, moved.qdd)

    def drive(self) -> Drive:
        """What the motors do: speeds, torques, currents and voltages (T, K) of each (eqs 2-238 to 2-240).

        Raises
        ------
        InputError, SingularError, InertiaError
            As `Configuration.drive`.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("puma560-motors")
        >>> swing = kic.trajectories.septic([0.0] * 6, [0.5] * 6, duration=1.0)
        >>> swing.on(arm, 5).drive().voltage.shape
        (5, 6)
        """
        _, qd, qdd, qddd = self.motion
        return self.configuration.drive(qd, qdd, qddd, wrt=self.wrt)

    def plot(self, names: str | Iterable[str] | None = None, width: float = 3.5) -> Picture:
        """Values, velocities, accelerations and jerks over time, above one another.

        Parameters
        ----------
        names : str or list of str, optional
            Anything that moves, as in `of`; by default the coordinates.
        width : float
            In inches.

        Returns
        -------
        Picture
            Its ``axes`` are a tuple, one for each panel.
        """
        drawing = self.configuration._model.drawing
        names = self.wrt or self.configuration.coordinates if names is None else names_of(names, "names")
        rows = self.configuration.coefficients(names, order=1, wrt=self.wrt).rows
        panels = [
            panel
            for order, values in enumerate(self.of(names))
            for panel in motion_panels(drawing, rows, values, order)
        ]
        return draw_plots(self.t, panels, drawing.units.time, width=width)

    def __repr__(self) -> str:
        names = ", ".join(self.wrt or self.configuration.coordinates)
        return f"course of '{self.configuration.name}' in {names}, {len(self.t)} times"
