"""Dynamics of planar sticks in closed form.

In the absolute angles a of the sticks the kinetic energy is ½ Σ W_ij cos(a_i − a_j) ȧ_i ȧ_j with constant W;
joint angles are their differences, so that every term in joint coordinates is a sum over the sticks beyond.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.arrays import trailing
from kic.classics.angles import beyond, cos, sin
from kic.classics.sticks import Sticks
from kic.dynamics import Dynamics
from kic.errors import InertiaError


class StickDynamics(Sticks):
    """Inertia, velocity products and gravity of uniform sticks in a row."""

    def inertia(self, q: Any) -> np.ndarray:
        """Inertia matrix of the joint angles (pp. 17, 29).

        Horn calls it, divided by m l²/2, the sensitivity matrix; the sensitivities are its inverse.

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad); nothing depends on the first.

        Returns
        -------
        (..., n, n)

        Raises
        ------
        InertiaError
            If a mass was not given.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(1.0, 1.0, 3.0, 3.0).inertia([0.0, 0.0])
        array([[8. , 2.5],
               [2.5, 1. ]])
        """
        cosines, _ = self._couplings(q)
        return beyond(beyond(cosines), axis=-2)

    def dynamics(self, q: Any) -> Dynamics:
        """I*, P* and the load of gravity in closed form: energies, efforts, transfer to other coordinates.

        P*_kab is the sum of W_ij sin(a_i − a_j) over i ≥ k and j ≥ max(a, b).

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).

        Returns
        -------
        Dynamics
            What ``mechanism().at(q).dynamics()`` answers.

        Raises
        ------
        InertiaError
            If a mass was not given.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(1.0, 1.0, 3.0, 3.0).dynamics([0.3, 1.5]).P.shape
        (2, 2, 2)
        """
        cosines, sines = (beyond(beyond(x), axis=-2) for x in self._couplings(q))
        P = sines[..., :, np.maximum(*np.indices((self.size, self.size)))]
        return Dynamics(self.coordinates, cosines, P, -self.gravity(q))

    def gravity(self, q: Any) -> np.ndarray:
        """Joint torques that hold the arm against gravity (pp. 13, 19, 26).

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).

        Returns
        -------
        (..., n)
            Zero for an arm made without `g`.

        Raises
        ------
        InertiaError
            If a mass was not given.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(1.0, 1.0, 2.0, 2.0, g=10.0).gravity([0.0, 0.0])
        array([40., 10.])
        """
        a = np.cumsum(trailing("q", q, self.size), axis=-1)
        return beyond(self.g * self._heft() * cos(a))

    def potential_energy(self, q: Any) -> np.ndarray:
        """Potential energy of gravity above the height of the base (p. 19); `gravity` is its derivative.

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).

        Returns
        -------
        (...,)

        Raises
        ------
        InertiaError
            If a mass was not given.

        Examples
        --------
        >>> import numpy as np
        >>> from kic.classics import TwoLink
        >>> float(TwoLink(1.0, 1.0, 2.0, 2.0, g=10.0).potential_energy([np.pi / 2, 0.0]))
        40.0
        """
        a = np.cumsum(trailing("q", q, self.size), axis=-1)
        return (self.g * self._heft() * sin(a)).sum(axis=-1)

    def velocity_torque(self, q: Any, qd: Any) -> np.ndarray:
        """Joint torques of the velocity products: Coriolis and centrifugal (pp. 17, 29).

        Parameters
        ----------
        q, qd : (..., n) array_like
            Joint angles (rad) and rates.

        Returns
        -------
        (..., n)

        Raises
        ------
        InertiaError
            If a mass was not given.

        Examples
        --------
        >>> import numpy as np
        >>> from kic.classics import TwoLink
        >>> TwoLink(1.0, 1.0, 2.0, 2.0).velocity_torque([0.0, np.pi / 2], [1.0, 0.0]).round(12).tolist()
        [0.0, 1.0]
        """
        d = self.dynamics(q)
        return Dynamics(d.coordinates, d.I, d.P).effort(qd, np.zeros(self.size))

    def effort(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
        """Joint torques that a motion needs, gravity with it: inverse dynamics (pp. 17, 29).

        Parameters
        ----------
        q, qd, qdd : (..., n) array_like
            Joint angles (rad), rates and accelerations; batches broadcast.

        Returns
        -------
        (..., n)

        Raises
        ------
        InertiaError
            If a mass was not given.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(1.0, 1.0, 3.0, 3.0).effort([0.0, 0.0], [0.0, 0.0], [1.0, 0.0])
        array([8. , 2.5])
        """
        return self.dynamics(q).effort(qd, qdd)

    def acceleration(self, q: Any, qd: Any, torques: Any) -> np.ndarray:
        """Accelerations that joint torques give: forward dynamics (p. 19).

        Parameters
        ----------
        q, qd, torques : (..., n) array_like
            Joint angles (rad), rates, torques; batches broadcast.

        Returns
        -------
        (..., n)

        Raises
        ------
        InertiaError
            If a mass was not given.
        SingularError
            If some motion moves no mass, as with a last link without any.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(1.0, 1.0, 3.0, 3.0).acceleration([0.0, 0.0], [0.0, 0.0], [8.0, 2.5]).round(12).tolist()
        [1.0, 0.0]
        """
        return self.dynamics(q).acceleration(qd, torques)

    def _known(self) -> np.ndarray:
        """The masses (n,), or an error that says which are missing."""
        missing = tuple(f"m{k + 1}" for k, m in enumerate(self.masses) if m is None)
        if missing:
            raise InertiaError(
                f"Dynamics of {self.label} needs the mass of every link; missing: {', '.join(missing)}. "
                "A link without any is written 0.",
                bodies=missing,
            )
        return np.array(self.masses, dtype=float)

    def _heft(self) -> np.ndarray:
        """Moments (n,) of each stick about its hinge with all that hangs at its end, mass times length."""
        m = self._known()
        return np.array(self.lengths) * (beyond(m) - m / 2)

    def _couplings(self, q: Any) -> tuple[np.ndarray, np.ndarray]:
        """W_ij cos(a_i − a_j) and W_ij sin(a_i − a_j), both (..., n, n): dynamics in absolute angles."""
        q = trailing("q", q, self.size)
        m, lengths = self._known(), np.array(self.lengths)
        i, j = np.indices((self.size, self.size))
        W = self._heft()[np.maximum(i, j)] * lengths[np.minimum(i, j)]
        W[i == j] = lengths**2 * (beyond(m) - m * 2 / 3)
        # without the first angle, on which nothing depends: no digit is lost to its turns
        a = np.cumsum(np.concatenate([0 * q[..., :1], q[..., 1:]], axis=-1), axis=-1)
        between = a[..., :, None] - a[..., None, :]
        return W * cos(between), W * sin(between)
