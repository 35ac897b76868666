"""Statics of planar sticks: joint torques and what the tip exerts, both ways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, trailing
from kic.classics.angles import real, sin
from kic.classics.sticks import Sticks
from kic.errors import SingularError

# the sine of the elbow below which torques no longer tell the force, as for a condition of 1e12 elsewhere
STRAIGHT = 1e-12


class StickStatics(Sticks, ABC):
    """Forces and torques of sticks in balance; gravity only adds what `StickDynamics.gravity` says."""

    def statics(self, q: Any) -> np.ndarray:
        """Matrix from what the tip exerts to the joint torques (pp. 11, 24): the transposed Jacobian.

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).

        Returns
        -------
        (..., n, n)
            Rows are torques; columns the force u, v and, of three links, the torque T.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> from kic.classics import ThreeLink
        >>> ThreeLink(3.0, 2.0, 1.0).statics([0.0, 0.0, 0.0])[:, 1:].tolist()
        [[6.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
        """
        return np.swapaxes(self.jacobian(q), -1, -2)

    def torques(self, q: Any, force: Any) -> np.ndarray:
        """Joint torques with which the tip exerts a force, gravity apart (pp. 11, 24).

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).
        force : (..., n) array_like
            What the tip exerts: u, v along x and y and, of three links, the torque T.

        Returns
        -------
        (..., n)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(2.0, 1.0).torques([0.0, 0.0], [0.0, 5.0])
        array([15.,  5.])
        """
        return _applied(self.statics(q), force=trailing("force", force, self.size))

    @abstractmethod
    def inverse_statics(self, q: Any) -> np.ndarray:
        """Matrix from joint torques to what the tip exerts (pp. 12, 25); column k is that of torque k alone.

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).

        Returns
        -------
        (..., n, n)

        Raises
        ------
        SingularError
            Where the first two links are parallel, theta2 = 0 or π; it carries `failed` and `theta2`.
        """

    def force(self, q: Any, torques: Any) -> np.ndarray:
        """What the tip exerts on what holds it, from the joint torques, gravity apart (pp. 12, 25).

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).
        torques : (..., n) array_like
            Torques of the joints.

        Returns
        -------
        (..., n)
            The force u, v and, of three links, the torque T.

        Raises
        ------
        SingularError
            Where the first two links are parallel, theta2 = 0 or π: the joints have no say in the force along
            them. It carries `failed` and `theta2`.

        Examples
        --------
        >>> import numpy as np
        >>> from kic.classics import TwoLink
        >>> TwoLink(2.0, 1.0).force([0.0, np.pi / 2], [2.0, 2.0]).round(12).tolist()
        [-2.0, 0.0]
        """
        return _applied(self.inverse_statics(q), torques=trailing("torques", torques, self.size))

    def force_directions(self, q: Any) -> np.ndarray:
        """Unit vectors along the forces at the tip that positive torques give, each acting alone (pp. 11-12).

        Of two links: torque 1 alone pushes along link 2, torque 2 alone along the line from base to tip.
        Of three: along link 2, along the line from base to wrist, and along link 1.

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).

        Returns
        -------
        (..., n, 2)
            Row k belongs to torque k.

        Raises
        ------
        SingularError
            Where the first two links are parallel.

        Examples
        --------
        >>> import numpy as np
        >>> from kic.classics import TwoLink
        >>> TwoLink(1.0, 1.0).force_directions([0.0, np.pi / 2]).round(6).tolist()
        [[0.0, 1.0], [-0.707107, -0.707107]]
        """
        forces = np.swapaxes(self.inverse_statics(real("q", q, self.size))[..., :2, :], -1, -2)
        return forces / np.hypot(forces[..., 0], forces[..., 1])[..., None]

    def _pinned(self, q: Any) -> np.ndarray:
        """Forces (..., 2, 3) at the end of link 2 for unit torques at hinge 1, hinge 2, and that end."""
        r = self.links(q)
        first, second = r[..., 0, :], r[..., 1, :]
        theta2 = trailing("q", q, self.size)[..., 1:2]
        sine2 = sin(theta2)
        if theta2.dtype != object:
            self._bent(theta2[..., 0], sine2[..., 0])
        span = self.lengths[0] * self.lengths[1] * sine2[..., None]
        return np.stack([second, -(first + second), first], axis=-1) / span

    def _bent(self, theta2: np.ndarray, sine2: np.ndarray) -> None:
        """Refuse a posture whose first two links are parallel."""
        flat = np.abs(np.real(sine2)) <= STRAIGHT
        if not flat.any():
            return
        failed = [tuple(index) for index in np.argwhere(flat).tolist()]
        angle = float(np.real(theta2[failed[0]]))
        where = f" at member {failed[0]}, {len(failed)} of {flat.size} in all" if theta2.shape else ""
        raise SingularError(
            f"{self.label}: torques do not tell the force where links 1 and 2 are parallel, theta2 = "
            f"{angle:.6g}{where}. The hinges carry any force along them by themselves. Bend joint 2.",
            failed=failed,
            theta2=angle,
            condition=float(1 / max(np.abs(np.real(sine2[failed[0]])), np.finfo(float).tiny)),
        )


def _applied(matrix: np.ndarray, **named: np.ndarray) -> np.ndarray:
    """Matrices (..., n, n) of postures times the vectors (..., n) named."""
    ((name, vector),) = named.items()
    broadcast_batches(q=matrix.shape[:-2], **{name: vector.shape[:-1]})
    return np.einsum("...mn,...n->...m", matrix, vector)
