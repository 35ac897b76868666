"""Planar serial chains of uniform slender links.

In the absolute link angles a the kinetic energy is ½ Σ W_ij cos(a_i − a_j) ȧ_i ȧ_j with constant W.
Joint angles are differences of the absolute angles. Every term of the dynamics in joint angles is
therefore a sum over the links beyond the joint.
"""

from __future__ import annotations

from math import pi
from typing import Any, ClassVar

import numpy as np

from kic.classics.common import SINGULAR_SINE_ATOL, check_fields, real_array, sin_cos
from kic.description.parts import Body, Distance, Joint, Point
from kic.description.validation import GROUND
from kic.dynamics.dynamics import Dynamics
from kic.errors import InertiaError, SingularError
from kic.mechanism import Mechanism
from kic.numerics.arrays import as_array, broadcast_batches


def suffix_sums(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the sum over each entry and all later entries along an axis."""
    return np.flip(np.cumsum(np.flip(x, axis), axis=axis), axis)


class PlanarChain:
    """Base class of `TwoLink` and `ThreeLink`: n uniform slender links that turn in a vertical plane.

    Joint angles `q` (..., n) are relative and counterclockwise (rad); all are zero with the chain along
    x. Gravity acts along −y. Arrays have batch axes in front, and batches broadcast. Methods accept
    complex numbers and symbols unless they solve for angles or directions.
    """

    dof: ClassVar[int]
    # joint angles of the reference configuration of `mechanism`, in quarter turns
    _reference_quarter_turns: ClassVar[tuple[int, ...]]
    g: float

    def __post_init__(self) -> None:
        links = range(1, self.dof + 1)
        masses = [f"m{k}" for k in links if getattr(self, f"m{k}") is not None]
        check_fields(self, [f"l{k}" for k in links], masses, ["g"])

    @property
    def lengths(self) -> tuple[float, ...]:
        """Tuple of the lengths of the links."""
        return tuple(getattr(self, f"l{k + 1}") for k in range(self.dof))

    @property
    def masses(self) -> tuple[float | None, ...]:
        """Tuple of the masses of the links; None where not given."""
        return tuple(getattr(self, f"m{k + 1}") for k in range(self.dof))

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Tuple of the names of the joint angles in `mechanism` and `dynamics`."""
        return ("shoulder", "elbow", "wrist")[: self.dof]

    @property
    def _label(self) -> str:
        """Class name and lengths, for error messages."""
        return f"{type(self).__name__}({', '.join(f'l{k + 1}={x:g}' for k, x in enumerate(self.lengths))})"

    def link_vectors(self, q: Any) -> np.ndarray:
        """Return the vector (..., n, 2) of each link, from joint to joint (Horn 1975, p. 4).

        Examples
        --------
        >>> kic.classics.TwoLink(2.0, 1.0).link_vectors([0.0, 0.0]).tolist()
        [[2.0, 0.0], [1.0, 0.0]]
        """
        s, c = sin_cos(np.cumsum(as_array("q", q, self.dof), axis=-1))
        return np.stack([c, s], axis=-1) * np.array(self.lengths)[:, None]

    def tip_position(self, q: Any) -> np.ndarray:
        """Return the position (..., 2) of the tip (Horn 1975, pp. 4, 20).

        Examples
        --------
        >>> kic.classics.TwoLink(2.0, 1.0).tip_position([0.0, 0.0])
        array([3., 0.])
        """
        return self.link_vectors(q).sum(axis=-2)

    def jacobian(self, q: Any) -> np.ndarray:
        """Return the Jacobian (G) of the tip with respect to the joint angles.

        Returns
        -------
        (..., n, n) ndarray
            Rows x and y, and for three links the direction phi. The determinant is l1 l2 sin theta2 (p. 24).

        Examples
        --------
        >>> kic.classics.ThreeLink(3.0, 2.0, 1.0).jacobian([0.0, 0.0, 0.0])[1:].tolist()
        [[6.0, 3.0, 1.0], [1.0, 1.0, 1.0]]
        """
        x, y = np.moveaxis(self.link_vectors(q), -1, 0)
        rows = [-suffix_sums(y), suffix_sums(x)]
        return np.stack([*rows, np.ones_like(x)][: self.dof], axis=-2)

    def inverse_statics_matrix(self, q: Any) -> np.ndarray:
        """Return the matrix from joint torques to tip wrench (Horn 1975, pp. 12, 25).

        Returns
        -------
        (..., n, n) ndarray
            Column k is the tip wrench of a unit torque at joint k alone. With the vectors r1 and r2 of links
            1 and 2, the forces are r2, −(r1 + r2) and r1, divided by l1 l2 sin theta2.

        Raises
        ------
        SingularError
            If links 1 and 2 are parallel; it carries `failed`, `theta2` and `condition`.

        Examples
        --------
        >>> kic.classics.TwoLink(1.0, 1.0).inverse_statics_matrix([0.0, np.pi / 2]).round(12).tolist()
        [[0.0, -1.0], [1.0, -1.0]]
        """
        r, theta2 = self.link_vectors(q), as_array("q", q, self.dof)[..., 1]
        sine2 = sin_cos(theta2)[0]
        if sine2.dtype != object:
            self._check_not_parallel(theta2, sine2)
        r1, r2 = r[..., 0, :], r[..., 1, :]
        columns = [r2, -(r1 + r2), r1][: self.dof]
        force = np.stack(columns, axis=-1) / (self.lengths[0] * self.lengths[1] * sine2[..., None, None])
        if self.dof == 2:
            return force
        x, y = r[..., 2, :1, None], r[..., 2, 1:, None]
        # moment that balances the force about joint 3; a unit torque at joint 3 adds 1
        moment = y * force[..., :1, :] - x * force[..., 1:, :] + np.array([0, 0, 1])
        return np.concatenate([force, moment], axis=-2)

    def _check_not_parallel(self, theta2: np.ndarray, sine2: np.ndarray) -> None:
        """Raise an error if links 1 and 2 are parallel."""
        size = np.abs(np.real(sine2))
        failed = [tuple(index) for index in np.argwhere(size <= SINGULAR_SINE_ATOL).tolist()]
        if not failed:
            return
        angle = float(np.real(theta2[failed[0]]))
        where = f" at member {failed[0]} ({len(failed)} of {size.size} members fail)" if theta2.shape else ""
        raise SingularError(
            f"`q` must have theta2 other than 0 and π, got theta2 = {angle:.6g}{where}. Links 1 and 2 of "
            f"{self._label} are parallel and carry forces along them without joint torques. Bend joint 2.",
            key="q",
            failed=failed,
            theta2=angle,
            condition=float(1 / max(size[failed[0]], np.finfo(float).tiny)),
        )

    def static_torques(self, q: Any, wrench: Any) -> np.ndarray:
        """Return the joint torques (..., n) with which the tip exerts a wrench (Horn 1975, pp. 11, 24).

        Gravity is not included. The matrix of this map is the transposed Jacobian.

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).
        wrench : (..., n) array_like
            Force u, v that the tip exerts along x and y and, for three links, its moment.

        Examples
        --------
        >>> kic.classics.TwoLink(2.0, 1.0).static_torques([0.0, 0.0], [0.0, 5.0])
        array([15.,  5.])
        """
        return _multiply(np.swapaxes(self.jacobian(q), -1, -2), wrench=as_array("wrench", wrench, self.dof))

    def tip_wrench(self, q: Any, torques: Any) -> np.ndarray:
        """Return the wrench that the tip exerts under joint torques (..., n) alone (Horn 1975, p. 12).

        It is the inverse of `static_torques`, with the errors of `inverse_statics_matrix`.

        Examples
        --------
        >>> kic.classics.TwoLink(2.0, 1.0).tip_wrench([0.0, np.pi / 2], [2.0, 2.0]).round(12).tolist()
        [-2.0, 0.0]
        """
        return _multiply(self.inverse_statics_matrix(q), torques=as_array("torques", torques, self.dof))

    def force_directions(self, q: Any) -> np.ndarray:
        """Return the direction of the tip force that each joint torque causes alone (Horn 1975, p. 11).

        Torque 1 acts along link 2, and torque 3 along link 1. Torque 2 acts along the line from the base to
        the end of link 2. Angles must be real. Errors are those of `inverse_statics_matrix`.

        Returns
        -------
        (..., n, 2) ndarray
            Unit vectors; row k belongs to a positive torque k.

        Examples
        --------
        >>> kic.classics.TwoLink(1.0, 1.0).force_directions([0.0, np.pi / 2]).round(6).tolist()
        [[0.0, 1.0], [-0.707107, -0.707107]]
        """
        wrenches = self.inverse_statics_matrix(real_array("q", q, self.dof))
        forces = np.swapaxes(wrenches[..., :2, :], -1, -2)
        return forces / np.hypot(forces[..., 0], forces[..., 1])[..., None]

    def dynamics(self, q: Any) -> Dynamics:
        """Return the mass matrix (I*), Christoffel symbols (P*) and gravity load (Horn 1975, pp. 13-29).

        I*_kl is the sum of W_ij cos(a_i − a_j) over i ≥ k and j ≥ l (pp. 17, 29). P*_kab is the sum of
        W_ij sin(a_i − a_j) over i ≥ k and j ≥ max(a, b). The gravity torques −load are on pp. 13, 19 and 26.
        Horn calls the mass matrix divided by m l²/2 the sensitivity matrix.

        Returns
        -------
        Dynamics
            The same as ``mechanism().at(q).dynamics()``, with methods for inverse and forward dynamics.

        Examples
        --------
        >>> d = kic.classics.TwoLink(1.0, 1.0, 3.0, 3.0, g=10.0).dynamics([0.0, 0.0])
        >>> d.inverse_dynamics([0.0, 0.0], [1.0, 0.0])
        array([68. , 17.5])
        """
        angles = as_array("q", q, self.dof)
        m, lengths = self._known_masses(), np.array(self.lengths)
        i, j = np.indices((self.dof, self.dof))
        W = self._first_moments()[np.maximum(i, j)] * lengths[np.minimum(i, j)]
        W[i == j] = lengths**2 * (suffix_sums(m) - m * 2 / 3)
        # The result is independent of the first angle; setting it to zero avoids cancellation.
        a = np.cumsum(np.concatenate([0 * angles[..., :1], angles[..., 1:]], axis=-1), axis=-1)
        s, c = sin_cos(a[..., :, None] - a[..., None, :])
        sines, cosines = (suffix_sums(suffix_sums(W * x), axis=-2) for x in (s, c))
        P = sines[..., :, np.maximum(i, j)]
        _, c = sin_cos(np.cumsum(angles, axis=-1))
        load = -suffix_sums(self.g * self._first_moments() * c)
        return Dynamics(self.coordinates, cosines, P, load)

    def potential_energy(self, q: Any) -> np.ndarray:
        """Return the potential energy (...) of gravity relative to the height of the base (Horn 1975, p. 19).

        Its gradient is the gravity torque, −load of `dynamics`.

        Examples
        --------
        >>> float(kic.classics.TwoLink(1.0, 1.0, 2.0, 2.0, g=10.0).potential_energy([np.pi / 2, 0.0]))
        40.0
        """
        s, _ = sin_cos(np.cumsum(as_array("q", q, self.dof), axis=-1))
        return (self.g * self._first_moments() * s).sum(axis=-1)

    def mechanism(self) -> Mechanism:
        """Return the same arm as a mechanism; its reference configuration is nonsingular for three links.

        Returns
        -------
        Mechanism
            Bodies link1 to linkn, joints shoulder, elbow and wrist, points base and tip, and distance reach.

        Examples
        --------
        >>> kic.classics.TwoLink(1.0, 0.5).mechanism().at([0.0, 0.0]).coefficients("tip", order=3).D.shape
        (3, 2, 2, 2)
        """
        bodies, joints, parent, x, y = [], [], GROUND, 0.0, 0.0
        directions = np.cumsum(self._reference_quarter_turns) % 4
        for k, (length, mass) in enumerate(zip(self.lengths, self.masses, strict=True)):
            name, quarter_turns = f"link{k + 1}", self._reference_quarter_turns[k]
            c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[directions[k]]
            inertia = None
            if mass is not None:
                transverse = mass * length**2 / 12
                inertia = (s**2 * transverse, c**2 * transverse, transverse)
            com = (x + c * length / 2, y + s * length / 2, 0.0)
            bodies.append(Body(name, mass=mass, com=com, inertia=inertia))
            axis, angle = (0.0, 0.0, 1.0), quarter_turns * pi / 2
            joints.append(
                Joint(self.coordinates[k], "revolute", (parent, name), (x, y, 0.0), axis, value=angle)
            )
            parent, x, y = name, x + c * length, y + s * length
        return Mechanism(
            {2: "two-link", 3: "three-link"}[self.dof],
            bodies=tuple(bodies),
            joints=tuple(joints),
            points=(Point("base", GROUND, (0.0, 0.0, 0.0)), Point("tip", parent, (x, y, 0.0))),
            distances=(Distance("reach", ("base", "tip")),),
            gravity=(0.0, -self.g, 0.0),
        )

    def _known_masses(self) -> np.ndarray:
        """Return the masses (n,), or raise `InertiaError` if one is missing."""
        missing = tuple(f"m{k + 1}" for k, m in enumerate(self.masses) if m is None)
        if missing:
            raise InertiaError(
                f"`{'`, `'.join(missing)}` must be given for the dynamics of {self._label}, got None. "
                "Give 0 for a massless link.",
                bodies=missing,
            )
        return np.array(self.masses, dtype=float)

    def _first_moments(self) -> np.ndarray:
        """Return the first mass moment (n,) of each link about its joint, with later links at its end."""
        m = self._known_masses()
        return np.array(self.lengths) * (suffix_sums(m) - m / 2)


def _multiply(matrix: np.ndarray, **named: np.ndarray) -> np.ndarray:
    """Return the product of matrices (..., n, n) that depend on q with the named vectors (..., n)."""
    ((name, vector),) = named.items()
    broadcast_batches(q=matrix.shape[:-2], **{name: vector.shape[:-1]})
    return np.einsum("...mn,...n->...m", matrix, vector)
