"""Contributions of each body to I* and P*, by linear and angular momentum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kic.description.description import MechanismDescription
from kic.kinematics.coefficients import Coefficients
from kic.numerics.display import Printable, Summary


def add_rotors(
    rows: Coefficients, parts: list[np.ndarray], description: MechanismDescription, joints: Sequence[str]
) -> list[np.ndarray]:
    """Return `parts` with the contributions of joint armatures appended, as angular momentum."""
    H, start, added = rows.needed("H", 2), 0, list[list[np.ndarray]]()
    for joint in (joint for joint in description.joints if joint.name in joints):
        own = slice(start, start + joint.dof)
        G, rotor = rows.G[..., own, :], np.array(joint.armature)
        I = np.einsum("...pa,p,...pb->...ab", G, rotor, G)
        P = np.einsum("...pk,p,...pab->...kab", G, rotor, H[..., own, :, :])
        added.append([np.zeros_like(I), I, np.zeros_like(P), P])
        start += joint.dof
    axes = (-3, -3, -4, -4)
    return [
        np.concatenate([part, np.stack(new, axis=axis)], axis=axis)
        for part, new, axis in zip(parts, zip(*added, strict=True), axes, strict=True)
    ]


@dataclass(eq=False, repr=False)
class Contributions(Printable):
    """Contribution of each body to I* and P*: Freeman's sums, split by linear and angular momentum.

    The parts of P* have Freeman's form, with the gyroscopic term (II g_a)·(g_k × g_b). Summed and symmetrized
    in the last two indices, they give the P* of `Dynamics` in holonomic coordinates.

    Attributes
    ----------
    bodies : tuple of str
        Names of the N bodies (and of points that carry a mass, and joints with armature).
    coordinates : tuple of str
        Names of the M coordinates.
    I_linear, I_angular : (..., N, M, M) ndarray
        Contributions to I* by linear and angular momentum (2-157, 2-193).
    P_linear, P_angular : (..., N, M, M, M) ndarray
        Contributions to P* by linear and angular momentum (2-158, 2-194).
    """

    _one_line = ("bodies", "coordinates")

    bodies: tuple[str, ...]
    coordinates: tuple[str, ...]
    I_linear: np.ndarray
    I_angular: np.ndarray
    P_linear: np.ndarray
    P_angular: np.ndarray

    def summary(self) -> Summary:
        """Return a table of the contributions of each body to the diagonal of I*."""
        sheet = Summary("shares of the diagonal of I*, linear | angular momentum")
        index = sheet.member(self.I_linear.shape[:-3])
        if index is None:
            return sheet
        linear = np.einsum("bnn->bn", self.I_linear[index])
        angular = np.einsum("bnn->bn", self.I_angular[index])
        sheet.matrix("linear", self.bodies, self.coordinates, linear)
        sheet.matrix("angular", self.bodies, self.coordinates, angular)
        return sheet
