"""Potential energy of weights and springs, the account that a simulation is kept by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kic.placement import Placement


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
