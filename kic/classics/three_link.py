"""Horn's planar three-link arm in closed form: place and direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from kic.arrays import check_failures, trailing
from kic.classics.angles import real, wrapped
from kic.classics.stick_dynamics import StickDynamics
from kic.classics.stick_statics import StickStatics
from kic.classics.two_link import TwoLink, bend, refuse
from kic.classics.workspace import ON_BOUNDARY, Annulus, reachable, usable_radii


@dataclass(frozen=True)
class ThreeLink(StickStatics, StickDynamics):
    """Three uniform sticks that turn in a vertical plane, in closed form.

    theta1 is measured from x, theta2 and theta3 from the line of the link before, counterclockwise; y is up.
    The direction of the last link is Phi = theta1 + theta2 + theta3.

    Parameters
    ----------
    l1, l2, l3 : float
        Lengths.
    m1, m2, m3 : float, optional
        Masses; needed by the dynamics only.
    g : float
        Gravity along −y; none by default.

    Raises
    ------
    ModelError
        For lengths that are not positive, negative masses, or what is no number.

    References
    ----------
    B. K. P. Horn, "Kinematics, Statics, and Dynamics of Two-D Manipulators", Working Paper 99, Artificial
    Intelligence Laboratory, Massachusetts Institute of Technology, June 1975, pp. 20-29.

    Examples
    --------
    >>> arm = ThreeLink(1.0, 0.6, 0.5)
    >>> for ring in arm.usable_workspace:  # every direction of the last link
    ...     print(f"{ring.inner:.3g} to {ring.outer:.3g}")
    0 to 0.1
    0.9 to 1.1
    """

    size: ClassVar[int] = 3
    quarters: ClassVar[tuple[int, ...]] = (0, 1, -1)
    l1: float
    """Length of link 1."""
    l2: float
    """Length of link 2."""
    l3: float
    """Length of link 3."""
    m1: float | None = None
    """Mass of link 1."""
    m2: float | None = None
    """Mass of link 2."""
    m3: float | None = None
    """Mass of link 3."""
    g: float = 0.0
    """Gravity along −y."""

    @property
    def first_two(self) -> TwoLink:
        """The arm of the first two links, which carries the wrist."""
        return TwoLink(self.l1, self.l2, self.m1, self.m2, self.g)

    @property
    def workspace(self) -> Annulus:
        """Radii that the tip reaches with some direction of the last link."""
        return reachable(*self.lengths)

    @property
    def usable_workspace(self) -> tuple[Annulus, ...]:
        """Radii at which the last link can point in every direction (p. 22, corrected); see `usable_radii`.

        A disc, a ring, both, or nothing, the disc first.
        """
        radii = usable_radii(*self.lengths)
        return tuple(Annulus(*pair) for pair in radii[~np.isnan(radii[:, 0])].tolist())

    def pose(self, q: Any) -> np.ndarray:
        """Place of the tip and direction of the last link (p. 20).

        Parameters
        ----------
        q : (..., 3) array_like
            Joint angles (rad).

        Returns
        -------
        (..., 3)
            x, y and Phi, the sum of the angles.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> ThreeLink(3.0, 2.0, 1.0).pose([0.0, 0.0, 0.0])
        array([6., 0., 0.])
        """
        phi = trailing("q", q, 3).sum(axis=-1, keepdims=True)
        return np.concatenate([self.tip(q), phi], axis=-1)

    def wrist(self, pose: Any) -> np.ndarray:
        """Place of the joint between links 2 and 3 that a pose needs (p. 21).

        Parameters
        ----------
        pose : (..., 3) array_like
            x and y of the tip, and Phi (rad).

        Returns
        -------
        (..., 2)

        Raises
        ------
        InputError
            For another shape, or entries that are not finite and real.

        Examples
        --------
        >>> ThreeLink(3.0, 2.0, 1.0).wrist([6.0, 0.0, 0.0]).tolist()
        [5.0, 0.0]
        """
        x, y, phi = np.moveaxis(real("pose", pose, 3), -1, 0)
        return np.stack([x - self.l3 * np.cos(phi), y - self.l3 * np.sin(phi)], axis=-1)

    def inverse(self, pose: Any, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Joint angles that give the tip a place and the last link a direction: both elbows (p. 21).

        Parameters
        ----------
        pose : (..., 3) array_like
            x and y of the tip, and Phi (rad).
        failures : {"raise", "mask"}
            As in `TwoLink.inverse`.

        Returns
        -------
        (2, ..., 3)
            Angles in (−π, π]; first the branch with theta2 ≥ 0, then its mirror image. Both are the same
            where the wrist is within rounding of the boundary of what the first two links reach.

        Raises
        ------
        PostureError
            For members without an answer; it carries which (`failed`), why (`reasons`), the `radius` of their
            wrists, and the `branches` of the others.
        InputError
            For another shape, or entries that are not finite and real.

        Examples
        --------
        >>> ThreeLink(1.0, 1.0, 0.5).inverse([1.0, 1.5, 1.5707963267948966]).round(6).tolist()
        [[0.0, 1.570796, 0.0], [1.570796, -1.570796, 1.570796]]
        """
        places, branches, count = self._bend(pose)
        check_failures(failures)
        if failures == "raise":
            refuse(self.label, "wrist", self.first_two, places, branches, count)
        phi = np.asarray(pose, dtype=float)[..., 2]
        last = wrapped(phi - branches[..., 0] - branches[..., 1])
        return np.concatenate([branches, last[..., None]], axis=-1)

    def solutions(self, pose: Any) -> np.ndarray:
        """In how many ways a pose is reached.

        Parameters
        ----------
        pose : (..., 3) array_like
            x and y of the tip, and Phi (rad).

        Returns
        -------
        (...)
            2, 1 where the first two links are parallel, 0 out of reach, and inf where equal links would be
            folded, the wrist on the base.

        Raises
        ------
        InputError
            For another shape, or entries that are not finite and real.

        Examples
        --------
        >>> ThreeLink(1.0, 1.0, 0.5).solutions([[2.5, 0.0, 0.0], [0.5, 0.0, 0.0]]).tolist()
        [1.0, inf]
        """
        return self._bend(pose)[2]

    def _bend(self, pose: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Wrists, angles of the first two links, and how many; a wrist has the rounding of the whole arm."""
        places = self.wrist(pose)
        return (places, *bend(self.l1, self.l2, places, ON_BOUNDARY * (self.l1 + self.l2 + 2 * self.l3)))

    def jacobian(self, q: Any) -> np.ndarray:
        """Derivatives of the pose by the joint angles.

        Parameters
        ----------
        q : (..., 3) array_like
            Joint angles (rad).

        Returns
        -------
        (..., 3, 3)
            Rows x, y, Phi; the determinant is l1 l2 sin theta2 (p. 24).

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> ThreeLink(3.0, 2.0, 1.0).jacobian([0.0, 0.0, 0.0])[1:].tolist()
        [[6.0, 3.0, 1.0], [1.0, 1.0, 1.0]]
        """
        place = super().jacobian(q)
        return np.concatenate([place, np.ones_like(place[..., :1, :])], axis=-2)

    def inverse_statics(self, q: Any) -> np.ndarray:
        """Matrix from joint torques to force and torque of the tip (p. 25); column k is for torque k alone.

        Parameters
        ----------
        q : (..., 3) array_like
            Joint angles (rad).

        Returns
        -------
        (..., 3, 3)
            Rows u, v, T. The columns of u, v are r2, −(r1 + r2), r1, over l1 l2 sin theta2.

        Raises
        ------
        SingularError
            Where the first two links are parallel, theta2 = 0 or π; it carries `failed` and `theta2`.

        Examples
        --------
        >>> import numpy as np
        >>> arm = ThreeLink(1.0, 1.0, 1.0)
        >>> arm.inverse_statics([0.0, np.pi / 2, 0.0]).round(12)[:, 2].tolist()  # torque 3 alone
        [1.0, 0.0, 2.0]
        """
        force = self._pinned(q)
        last = self.links(q)[..., 2, :, None]
        # the torque is that of joint 3 and what the force turns it by
        moment = force[..., :1, :] * last[..., 1:, :] - force[..., 1:, :] * last[..., :1, :]
        return np.concatenate([force, moment + np.array([0.0, 0.0, 1.0])], axis=-2)
