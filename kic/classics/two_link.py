"""Horn's planar two-link arm in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from math import acos
from typing import Any, ClassVar, Literal

import numpy as np

from kic.arrays import check_failures, trailing
from kic.classics.angles import cos, real, wrapped
from kic.classics.stick_dynamics import StickDynamics
from kic.classics.stick_statics import StickStatics
from kic.classics.workspace import ON_BOUNDARY, Annulus, reachable
from kic.errors import PostureError, SingularError


@dataclass(frozen=True)
class TwoLink(StickStatics, StickDynamics):
    """Two uniform sticks that turn in a vertical plane, in closed form.

    theta1 is measured from x, theta2 from the line of link 1, both counterclockwise; y is up.

    Parameters
    ----------
    l1, l2 : float
        Lengths.
    m1, m2 : float, optional
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
    Intelligence Laboratory, Massachusetts Institute of Technology, June 1975, pp. 4-19.

    Examples
    --------
    >>> arm = TwoLink(1.0, 1.0, m1=2.0, m2=2.0, g=9.81)
    >>> arm.inverse([1.0, 1.0]).round(6).tolist()  # both elbows
    [[0.0, 1.570796], [1.570796, -1.570796]]
    >>> arm.workspace
    Annulus(inner=0.0, outer=2.0)
    """

    size: ClassVar[int] = 2
    quarters: ClassVar[tuple[int, ...]] = (0, 0)
    l1: float
    """Length of link 1."""
    l2: float
    """Length of link 2."""
    m1: float | None = None
    """Mass of link 1."""
    m2: float | None = None
    """Mass of link 2."""
    g: float = 0.0
    """Gravity along −y."""

    @property
    def workspace(self) -> Annulus:
        """Radii that the tip reaches: |l1 − l2| to l1 + l2 (p. 8)."""
        return reachable(self.l1, self.l2)

    def polar(self, q: Any) -> np.ndarray:
        """Position of the tip in polar coordinates (pp. 5, 9).

        With h = theta2/2, r is the hypotenuse of (l1 + l2) cos h and (l1 − l2) sin h, and theta is theta1 + h
        less the angle between them: for equal links p. 9, and no digit is lost where the arm is folded.

        Parameters
        ----------
        q : (..., 2) array_like
            Joint angles (rad).

        Returns
        -------
        (..., 2)
            Radius, and polar angle in (−π, π]. Where equal links fold the tip onto the base, the angle is
            theta1 + theta2/2, that under which the tip leaves as the arm opens.

        Raises
        ------
        InputError
            For another shape, or entries that are not finite and real.

        Examples
        --------
        >>> import numpy as np
        >>> TwoLink(1.0, 1.0).polar([0.25, np.pi / 2]).round(6).tolist()
        [1.414214, 1.035398]
        """
        theta1, theta2 = np.moveaxis(real("q", q, 2), -1, 0)
        half = theta2 / 2
        along, across = (self.l1 + self.l2) * np.cos(half), (self.l1 - self.l2) * np.sin(half)
        theta = wrapped(theta1 + half - np.arctan2(across, along))
        return np.stack([np.hypot(along, across), theta], axis=-1)

    def inverse(self, tip: Any, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Joint angles that put the tip somewhere: both elbows (pp. 6-9).

        Parameters
        ----------
        tip : (..., 2) array_like
            x and y.
        failures : {"raise", "mask"}
            What becomes of members that can not be reached, or in infinitely many ways: an error that says
            which, or NaN.

        Returns
        -------
        (2, ..., 2)
            Angles in (−π, π]; first the branch with theta2 ≥ 0, then its mirror image. On a boundary of the
            workspace, which a tip within rounding of it counts as, both are the same.

        Raises
        ------
        PostureError
            For members without an answer; it carries which (`failed`), why (`reasons`), their `radius`, and
            the `branches` of the others.
        InputError
            For another shape, or entries that are not finite and real.

        Examples
        --------
        >>> TwoLink(2.0, 1.0).inverse([[3.0, 0.0], [0.0, 1.0]])[0].round(6).tolist()  # both on a boundary
        [[0.0, 0.0], [1.570796, 3.141593]]
        """
        places = real("tip", tip, 2)
        branches, count = bend(self.l1, self.l2, places, ON_BOUNDARY * (self.l1 + self.l2))
        check_failures(failures)
        if failures == "raise":
            refuse(self.label, "tip", self, places, branches, count)
        return branches

    def solutions(self, tip: Any) -> np.ndarray:
        """In how many ways a place is reached (p. 8).

        Parameters
        ----------
        tip : (..., 2) array_like
            x and y.

        Returns
        -------
        (...)
            2 within the workspace, 1 on its boundary, 0 outside, and inf at the base of equal links.

        Raises
        ------
        InputError
            For another shape, or entries that are not finite and real.

        Examples
        --------
        >>> TwoLink(1.0, 1.0).solutions([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]).tolist()
        [inf, 2.0, 1.0, 0.0]
        """
        return bend(self.l1, self.l2, real("tip", tip, 2), ON_BOUNDARY * (self.l1 + self.l2))[1]

    def inverse_statics(self, q: Any) -> np.ndarray:
        """Matrix from joint torques to the force of the tip (p. 12); column k is the force of torque k alone.

        Parameters
        ----------
        q : (..., 2) array_like
            Joint angles (rad).

        Returns
        -------
        (..., 2, 2)
            Columns r2 and −(r1 + r2), both over l1 l2 sin theta2.

        Raises
        ------
        SingularError
            Where the links are parallel, theta2 = 0 or π; it carries `failed` and `theta2`.

        Examples
        --------
        >>> TwoLink(1.0, 1.0).inverse_statics([0.0, 0.0])
        Traceback (most recent call last):
        ...
        kic.errors.SingularError: TwoLink(l1=1, l2=1): torques do not tell the force where links 1 and 2 are
        parallel, theta2 = 0. The hinges carry any force along them by themselves. Bend joint 2.
        """
        return self._pinned(q)[..., :2]

    def inverse_inertia(self, q: Any) -> np.ndarray:
        """Inverse of the inertia matrix: which accelerations unit torques give (p. 19).

        Parameters
        ----------
        q : (..., 2) array_like
            Joint angles (rad).

        Returns
        -------
        (..., 2, 2)
            The adjoint over l1² l2² m2 (m1/9 + m2/3 − m2/4 cos² theta2).

        Raises
        ------
        InertiaError
            If a mass was not given.
        SingularError
            If link 2 has no mass.

        Examples
        --------
        >>> import numpy as np
        >>> TwoLink(1.0, 1.0, 2.0, 2.0).inverse_inertia([0.0, np.pi / 2]).round(6).tolist()
        [[0.375, -0.375], [-0.375, 1.875]]
        """
        I = self.inertia(q)
        m1, m2 = self._known()
        if not m2:
            raise SingularError(
                f"{self.label}: link 2 has no mass, and any torque would accelerate it without bound. "
                "Give m2 above 0.",
                condition=np.inf,
            )
        shares = m1 / 9 + m2 / 3 - m2 / 4 * cos(trailing("q", q, 2)[..., 1:]) ** 2
        determinant = (self.l1 * self.l2) ** 2 * m2 * shares
        adjoint = I[..., ::-1, ::-1] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return adjoint / determinant[..., None]

    def decoupling(self) -> np.ndarray:
        """Angles theta2 at which each torque accelerates its own joint only (p. 18).

        There cos theta2 = −2 l2/(3 l1), whatever the masses: link 2, pushed by its hinge alone, goes along.

        Returns
        -------
        (2,)
            The two elbows, up to the sign; one and the same, π, where l2 = 3/2 l1.

        Raises
        ------
        PostureError
            If link 2 is longer than 3/2 of link 1: there is none.

        Examples
        --------
        >>> TwoLink(1.0, 1.0).decoupling().round(6).tolist()
        [2.300524, -2.300524]
        """
        cosine = -2 * self.l2 / (3 * self.l1)
        if abs(cosine + 1) <= ON_BOUNDARY:
            cosine = -1.0
        if cosine < -1:
            raise PostureError(
                f"{self.label}: no posture decouples the joints, which needs cos theta2 = −2 l2/(3 l1) = "
                f"{cosine:.6g}. Link 2 would have to be {1.5 * self.l1:g} long or shorter.",
                failed=[()],
                reasons=["link 2 is too long"],
                cosine=cosine,
            )
        angle = acos(cosine)
        return wrapped(np.array([angle, -angle]))


def bend(l1: float, l2: float, places: np.ndarray, slack: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles (2, ..., 2) of two links that end in `places` (..., 2), and the number of postures (...).

    Half angles of the triangle l1, l2, r from its sides: near a boundary, where the cosine of theta2 has lost
    half of the digits, they have all that the sides have. NaN where there is none, or no end of them.

    Parameters
    ----------
    l1, l2 : float
        Lengths.
    places : (..., 2)
        x and y of the end of link 2.
    slack : float
        Length within which a place counts as on a boundary.
    """
    x, y = np.moveaxis(places, -1, 0)
    r = np.hypot(x, y)
    # the triangle is flat where one of the first three vanishes
    sides = l1 + l2 - r, r - (l1 - l2), r + (l1 - l2), l1 + l2 + r
    short, less, more, whole = (np.where(abs(side) <= slack, 0.0, side) for side in sides)
    free = (less == 0) & (more == 0)
    within = (short >= 0) & (less >= 0) & (more >= 0) & ~free
    a, b, c, d = (np.sqrt(np.where(within, side, np.nan)) for side in (short, less, more, whole))
    theta2, alpha = 2 * np.arctan2(a * d, b * c), 2 * np.arctan2(a * b, c * d)
    edge = (short == 0) | (less == 0) | (more == 0)
    elbows = np.stack([theta2, -theta2])
    # half a turn to either side is the same, but for rounding
    shoulders = np.arctan2(y, x) - np.stack([alpha, np.where(edge, alpha, -alpha)])
    count = np.where(free, np.inf, np.where(within, np.where(edge, 1.0, 2.0), 0.0))
    return wrapped(np.stack([shoulders, elbows], axis=-1)), count


def refuse(
    label: str, what: str, arm: TwoLink, places: np.ndarray, branches: np.ndarray, count: np.ndarray
) -> None:
    """An error for places that no posture, or any number of them, reaches."""
    bad = (count == 0) | np.isinf(count)
    if not bad.any():
        return
    failed = [tuple(index) for index in np.argwhere(bad).tolist()]
    ring, radius = arm.workspace, np.hypot(places[bad][:, 0], places[bad][:, 1])
    reasons = []
    for r, many in zip(radius.tolist(), count[bad].tolist(), strict=True):
        if many:
            reasons.append(
                f"the {what} stands on the base, where equal links are folded at any theta1: infinitely many "
                "postures, choose theta1 yourself and take theta2 = π"
            )
        else:
            way, side = (r - ring.outer, "inwards") if r > ring.outer else (ring.inner - r, "outwards")
            reasons.append(
                f"the {what} is at radius {r:.6g}, links 1 and 2 reach {ring.inner:.6g} to {ring.outer:.6g}; "
                f"move it {way:.3g} {side}"
            )
    if places.ndim == 1:
        message = f"{label}: {reasons[0]}."
    else:
        some = "; ".join(f"{i}: {why}" for i, why in list(zip(failed, reasons, strict=True))[:2])
        message = (
            f"{label}: {len(failed)} of {count.size} members have no answer: {some}"
            f"{'; …' if len(failed) > 2 else ''}. failures='mask' keeps the others."
        )
    raise PostureError(message, failed=failed, reasons=reasons, radius=radius, branches=branches)
