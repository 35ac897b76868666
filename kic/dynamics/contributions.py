"""Contributions of each body to I* and P*, by linear and angular momentum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.dynamics.dynamics import Dynamics
from kic.kinematics.coefficients import Coefficients
from kic.numerics.arrays import as_array, broadcast_batches
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
        added.append([np.zeros_like(I), I, np.zeros_like(P), P, np.zeros_like(I[..., 0])])
        start += joint.dof
    axes = (-3, -3, -4, -4, -2)
    return [
        np.concatenate([part, np.stack(new, axis=axis)], axis=axis)
        for part, new, axis in zip(parts, zip(*added, strict=True), axes, strict=True)
    ]


@dataclass(eq=False, repr=False)
class Contributions(Printable):
    """Contribution of each body to I* and P*, by linear and angular momentum, and its weight: Freeman's sums.

    The parts of P* have Freeman's form, with the gyroscopic term (II g_a)·(g_k × g_b) of (2-194). Summed and
    symmetrized in the last two indices, (P + Pᵀ)/2, they give the P* of `Dynamics` in holonomic coordinates.
    The efforts q̇ᵀ P* q̇ are the same. Applied forces, springs, damping and friction belong to no body here.

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
    weight : (..., N, M) ndarray
        Generalized weight of each body (2-147), the part of `Dynamics.load` by gravity.
    """

    _one_line = ("bodies", "coordinates")

    bodies: tuple[str, ...]
    coordinates: tuple[str, ...]
    I_linear: np.ndarray
    I_angular: np.ndarray
    P_linear: np.ndarray
    P_angular: np.ndarray
    weight: np.ndarray

    def inverse_dynamics(self, qd: Any = None, qdd: Any = None) -> np.ndarray:
        """Return the efforts (..., N, M) that the inertia and the weight of each body require.

        Their sum is the effort of `Dynamics.inverse_dynamics` without applied forces, springs and friction.
        For an arm, entry [j, i] is the torque T_ij of joint i due to link j.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations; zero by default.

        Examples
        --------
        >>> arm = kic.load("horn-two-link").at([0.0, 0.5])
        >>> each = arm.body_contributions().inverse_dynamics([1.0, 2.0], [0.5, 0.0])
        >>> np.abs(each.sum(axis=0) - arm.inverse_dynamics([1.0, 2.0], [0.5, 0.0])).max() < 1e-12
        np.True_
        """
        I, P = self.I_linear + self.I_angular, self.P_linear + self.P_angular
        each, size = Dynamics(self.coordinates, I, P, self.weight), len(self.coordinates)
        given = {"qd": qd, "qdd": qdd}
        v, a = (np.zeros(size) if x is None else as_array(name, x, size) for name, x in given.items())
        broadcast_batches(model=self.weight.shape[:-2], qd=v.shape[:-1], qdd=a.shape[:-1])
        return each.inverse_dynamics(v[..., None, :], a[..., None, :])

    def summary(self) -> Summary:
        """Return tables of the contributions of each body to the diagonal of I*, and of its weight."""
        sheet = Summary("diagonal of I* by linear and angular momentum, and generalized weight, of each body")
        index = sheet.member(self.I_linear.shape[:-3])
        if index is None:
            return sheet
        linear = np.einsum("bnn->bn", self.I_linear[index])
        angular = np.einsum("bnn->bn", self.I_angular[index])
        sheet.matrix("linear", self.bodies, self.coordinates, linear)
        sheet.matrix("angular", self.bodies, self.coordinates, angular)
        sheet.matrix("generalized weight", self.bodies, self.coordinates, self.weight[index])
        return sheet
