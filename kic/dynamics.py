"""Dynamics: I*, P* and loads in named coordinates, efforts and accelerations."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, trailing
from kic.errors import SingularError
from kic.tables import Sheet, largest_of, member

# an inertia matrix worse than this has no digit left in its inverse
WORST_CONDITION = 1e15


class Dynamics:
    """The dynamic model T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ in named coordinates.

    P* comes in the form whose Coriolis matrix C_kb = q̇_a P*_kab makes Ṁ − 2C skew, and for which
    ∂I*_lm/∂q_n = P*_lnm + P*_mnl. In holonomic coordinates it is symmetric in its last two indices: the
    Christoffel symbols of the first kind. The angular velocity of a ball joint is no rate of a
    coordinate; there it is not symmetric, and must not be made so.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    I : (..., M, M)
        Effective inertia I* (eq 2-196).
    P : (..., M, M, M)
        Inertia power P* (eq 2-197).
    load : (..., M)
        Generalized applied load Tᴸ: gravity, forces, springs (eqs 2-125, 2-147).
    damping : (..., M, M)
        Matrix B of the dampers, whose load is −B q̇.
    holonomic : bool
        Whether all coordinates have values.

    Examples
    --------
    >>> import kic
    >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
    >>> d.I
    array([[2.66666667, 0.83333333],
           [0.83333333, 0.33333333]])
    """

    def __init__(
        self,
        coordinates: tuple[str, ...],
        I: np.ndarray,
        P: np.ndarray,
        load: np.ndarray,
        damping: np.ndarray,
        holonomic: bool = True,
    ) -> None:
        self.coordinates = coordinates
        self.I = I
        self.P = P
        self.load = load
        self.damping = damping
        self.holonomic = holonomic

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.I.shape[:-2]

    def _motion(self, **given: Any) -> list[np.ndarray]:
        """Arguments of shape (..., M) whose batches go with the model's."""
        size = len(self.coordinates)
        arrays = [trailing(name, value, size) for name, value in given.items()]
        batches = {name: a.shape[:-1] for name, a in zip(given, arrays, strict=True)}
        broadcast_batches(model=self.batch, **batches)
        return arrays

    def effort(self, qd: Any, qdd: Any) -> np.ndarray:
        """Efforts that a motion needs: T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (eq 2-198).

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations of the coordinates.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.effort([0.0, 0.0], [0.0, 0.0])  # holds the weight
        array([19.62 ,  4.905])
        """
        v, a = self._motion(qd=qd, qdd=qdd)
        return np.einsum("...kn,...n->...k", self.I, a) + self._bias(v)

    def _bias(self, v: np.ndarray) -> np.ndarray:
        """What the effort is beside I* q̈."""
        return (
            np.einsum("...kab,...a,...b->...k", self.P, v, v)
            + np.einsum("...kn,...n->...k", self.damping, v)
            - self.load
        )

    def acceleration(self, qd: Any, effort: Any) -> np.ndarray:
        """Accelerations that efforts give: q̈ = I*⁻¹ (T − q̇ᵀ P* q̇ − B q̇ + Tᴸ) (eq 2-199).

        Parameters
        ----------
        qd, effort : (..., M) array_like
            Rates of the coordinates and efforts at them.

        Returns
        -------
        (..., M)

        Raises
        ------
        SingularError
            Where I* can not be inverted: some motion moves no mass.

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.acceleration([0.0, 0.0], [19.62, 4.905])
        array([0., 0.])
        """
        v, force = self._motion(qd=qd, effort=effort)
        self._check_regular()
        net = force - self._bias(v)
        inertia = np.broadcast_to(self.I, net.shape[:-1] + self.I.shape[-2:])
        return np.linalg.solve(inertia, net[..., None])[..., 0]

    def _check_regular(self) -> None:
        """Refuse an I* without inverse, naming the motion that moves no mass."""
        real = np.real(self.I) if self.I.dtype != object else self.I.astype(float)
        flat = real.reshape(-1, *real.shape[-2:])
        known = np.isfinite(flat).all(axis=(1, 2))
        if not known.any() or not self.coordinates:
            return
        # coordinates of different units are compared each on its own scale
        scale = np.sqrt(np.abs(np.einsum("bnn->bn", flat[known])))
        safe = np.where(scale > 0, scale, 1.0)
        size, modes = np.linalg.eigh(flat[known] / (safe[:, :, None] * safe[:, None, :]))
        condition = np.where(size[:, 0] > 0, size[:, -1] / np.where(size[:, 0] > 0, size[:, 0], 1), np.inf)
        worst = int(np.argmax(condition))
        if condition[worst] > WORST_CONDITION:
            share = np.abs(modes[worst, :, 0])
            names = [c for c, x in zip(self.coordinates, share, strict=True) if x > 0.1 * share.max()]
            raise SingularError(
                f"I* has no inverse (condition {condition[worst]:.1e}): the motion of {', '.join(names)} "
                "moves no mass. Give the bodies beyond it mass and inertia.",
                condition=float(condition[worst]),
                coordinates=tuple(names),
            )

    def kinetic_energy(self, qd: Any) -> np.ndarray:
        """Kinetic energy ½ q̇ᵀ I* q̇ (eq 2-140).

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.

        Returns
        -------
        (...,)

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> round(float(d.kinetic_energy([1.0, 0.0])), 6)
        1.333333
        """
        (v,) = self._motion(qd=qd)
        return np.einsum("...kn,...k,...n->...", self.I, v, v) / 2

    def coriolis(self, qd: Any) -> np.ndarray:
        """Coriolis matrix C_kb = q̇_a P*_kab; C q̇ are the velocity efforts and Ṁ − 2C is skew.

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.

        Returns
        -------
        (..., M, M)

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 1.5]).dynamics()
        >>> d.coriolis([1.0, 1.0]).shape
        (2, 2)
        """
        (v,) = self._motion(qd=qd)
        return np.einsum("...kab,...a->...kb", self.P, v)

    def inertia_gradient(self) -> np.ndarray:
        """Derivative of the inertia, ``[..., l, m, n]`` = ∂I*_lm/∂q_n = P*_lnm + P*_mnl.

        Returns
        -------
        (..., M, M, M)

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.inertia_gradient().shape
        (2, 2, 2)
        """
        lmn = np.swapaxes(self.P, -1, -2)
        return lmn + np.swapaxes(lmn, -3, -2)

    def sheet(self, power: bool = True) -> Sheet:
        """Labelled tables of I*, P* and the load, to print or to show."""
        sheet = Sheet(f"dynamics in {', '.join(self.coordinates)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        names = self.coordinates
        sheet.matrix("I* (inertia)", names, names, self.I[index])
        if power:
            sheet.say("\nP* (inertia power)")
            sheet.planes("P*", names, names, names, self.P[index])
        sheet.matrix("Tᴸ (applied load)", names, [""], self.load[index][:, None])
        if largest_of(self.damping[index]):
            sheet.matrix("B (damping)", names, names, self.damping[index])
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


class Contributions:
    """What each body contributes to I* and P*: Freeman's sums, split by linear and angular momentum.

    The parts of P* are Freeman's own, with the gyroscopic term (II g_a)·(g_k × g_b): summed and made
    symmetric in the last two indices they give the P* of `Dynamics` in holonomic coordinates.

    Attributes
    ----------
    bodies : tuple of str
        Names of the N bodies (and of points that carry a mass).
    coordinates : tuple of str
        Names of the M coordinates.
    I_linear, I_angular : (..., N, M, M)
        Shares of the inertia by linear and angular momentum (eqs 2-157, 2-193).
    P_linear, P_angular : (..., N, M, M, M)
        Shares of the inertia power (eqs 2-158, 2-194).
    """

    def __init__(
        self,
        bodies: tuple[str, ...],
        coordinates: tuple[str, ...],
        I_linear: np.ndarray,
        I_angular: np.ndarray,
        P_linear: np.ndarray,
        P_angular: np.ndarray,
    ) -> None:
        self.bodies = bodies
        self.coordinates = coordinates
        self.I_linear = I_linear
        self.I_angular = I_angular
        self.P_linear = P_linear
        self.P_angular = P_angular

    def sheet(self) -> Sheet:
        """How much of each diagonal entry of I* is whose."""
        sheet = Sheet("shares of the diagonal of I*, linear | angular momentum")
        index, remark = member(self.I_linear.shape[:-3])
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        linear = np.einsum("bnn->bn", self.I_linear[index])
        angular = np.einsum("bnn->bn", self.I_angular[index])
        sheet.matrix("linear", self.bodies, self.coordinates, linear)
        sheet.matrix("angular", self.bodies, self.coordinates, angular)
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
