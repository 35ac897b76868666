"""The energy account that a simulation is kept by, and potential energy of weights and springs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kic.placement import Placement


@dataclass(frozen=True)
class Energy:
    """The energy account of a run, (T,) each.

    Attributes
    ----------
    kinetic, potential : (T,)
        Of the bodies, with the rotors of motors whose voltages are given; of their weights and of springs.
    work : (T,)
        Done by the efforts since the start, those of prescribed motions included.
    applied : (T,)
        Done by the forces and moments of the model.
    dissipated : (T,)
        Lost in dampers, those of motors included.
    electrical : (T,)
        Taken in by motors since the start: V i of DC motors, the work of plain sources of torque.
    heat : (T,)
        Lost in their armatures: R i², and (k_e − k_t) i u̇ where these constants differ.
    magnetic : (T,)
        In their inductances, ½ L i².
    """

    kinetic: np.ndarray
    potential: np.ndarray
    work: np.ndarray
    applied: np.ndarray
    dissipated: np.ndarray
    electrical: np.ndarray
    heat: np.ndarray
    magnetic: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Kinetic, potential and magnetic energy (T,)."""
        return self.kinetic + self.potential + self.magnetic

    @property
    def residual(self) -> np.ndarray:
        """What the account misses (T,): gain in energy, less what came in, plus what was lost."""
        came = self.work + self.applied + self.electrical
        return self.total - self.total[:1] - came + self.dissipated + self.heat


def potential_energy(c: Placement) -> np.ndarray:
    """Potential energy (...) of gravity and of springs between points and in joints.

    Weights count from the origin of the drawing, springs from where they are free. Forces and moments of the
    model have none; dampers neither.
    """
    drawing = c._model.drawing
    U = np.zeros(c.batch)
    g = np.array(drawing.gravity)
    for body in drawing.bodies:
        if body.mass and g.any():
            T = c.displacement(body.name)
            U = U - body.mass * ((T[..., :3, :3] @ np.array(body.com) + T[..., :3, 3]) @ g)
    for point in drawing.points:
        if point.mass and g.any():
            U = U - point.mass * (c.value(point.name) @ g)
    for spring in drawing.springs:
        r = c.value(spring.points[1]) - c.value(spring.points[0])
        stretch = np.sqrt(np.einsum("...i,...i->...", r, r)) - spring.rest
        U = U + spring.stiffness * stretch**2 / 2
    for joint in drawing.joints:
        for name, k, rest in zip(joint.components, joint.stiffness, joint.rest, strict=True):  # type: ignore[arg-type]
            if k:
                U = U + k * (c.value(name) - rest) ** 2 / 2
    return U
