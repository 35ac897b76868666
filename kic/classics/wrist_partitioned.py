"""The first three links of a wrist-partitioned arm, inverted in closed form to third order (Appendix B).

Equations and Table B-1 are those of Appendix B of R. A. Freeman's dissertation (University of Florida, 1985).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kic.arrays import check_failures, check_order, trailing
from kic.checks import assign, number
from kic.classics.angles import real, sin_cos, wrapped
from kic.classics.sizes import check_lengths
from kic.classics.swing import cycles, swinging
from kic.classics.two_link import bend
from kic.classics.workspace import ON_BOUNDARY
from kic.coefficients import Coefficients
from kic.dh import DHRow, from_dh
from kic.errors import PostureError, SingularError
from kic.mechanism import Mechanism
from kic.parts import Point

# sine of the elbow, or radius by reach, below which nothing of an inverse is sure; see `Coefficients.inverse`
SINGULAR = 1e-12


@dataclass(frozen=True)
class WristPartitioned:
    """An arm whose wrist centre P is placed by three joints alone: waist, shoulder and elbow.

    The waist θ₁ turns about z; shoulder θ₂ and elbow θ₃ are parallel, their plane holds the waist's axis, and
    θ₂ is measured from the horizontal. With r = a₂₃ c₂ + a₃₄ c₂₃ and z = a₂₃ s₂ + a₃₄ s₂₃, P is
    (r c₁, r s₁, s₁₁ + z).

    Parameters
    ----------
    a23, a34 : float
        Lengths of upper arm and forearm.
    s11 : float
        Height of the shoulder.

    Raises
    ------
    ModelError
        For lengths that are not positive, or what is no number.

    Examples
    --------
    >>> arm = WristPartitioned(1.3, 0.9, 0.4)
    >>> theta = arm.inverse([1.5, 0.5, 0.8])  # four branches
    >>> theta.shape, np.abs(arm.wrist(theta).values - [1.5, 0.5, 0.8]).max() < 1e-14
    ((4, 3), np.True_)
    """

    a23: float
    a34: float
    s11: float = 0.0

    coordinates = ("waist", "shoulder", "elbow")
    """Names of θ₁, θ₂, θ₃."""
    rows = ("wrist.x", "wrist.y", "wrist.z")
    """Names of the components of P."""
    branches = (("front", "down"), ("front", "up"), ("back", "down"), ("back", "up"))
    """What the branches of `inverse` are: P in front of the waist (r > 0) or behind it, and the elbow below
    the line from the shoulder to P (in front, with θ₃ > 0) or above it."""

    def __post_init__(self) -> None:
        check_lengths(self, "a23", "a34")
        assign(self, s11=number("WristPartitioned", "s11", self.s11))

    def wrist(self, theta: Any, order: int = 3) -> Coefficients:
        """The wrist centre and its derivatives (Table B-1, corrected).

        Parameters
        ----------
        theta : (..., 3) array_like
            θ₁, θ₂, θ₃ (rad).
        order : {1, 2, 3}
            Highest order.

        Returns
        -------
        Coefficients
            Of P with respect to θ: values (..., 3), G (..., 3, 3), H (..., 3, 3, 3), D (..., 3, 3, 3, 3).

        Raises
        ------
        InputError
            For another shape or order, or entries that are not finite.

        Examples
        --------
        >>> WristPartitioned(1.3, 0.9, 0.4).wrist([0.0, 0.0, 0.0]).values
        array([2.2, 0. , 0.4])
        """
        theta, order = trailing("theta", theta, 3), check_order(order)
        (S2, C2), (S23, C23) = cycles(theta[..., 1]), cycles(theta[..., 1] + theta[..., 2])
        a, b = self.a23, self.a34
        out, up = (np.stack([a * x + b * y, b * y], axis=-2) for x, y in ((C2, C23), (S2, S23)))
        up[..., 0, 0] += self.s11
        return swinging(self.rows, self.coordinates, theta[..., 0], out, up, 0.0, order)

    def inverse(self, P: Any, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Joint angles that put the wrist centre somewhere: all four `branches`.

        Parameters
        ----------
        P : (..., 3) array_like
            Places of the wrist centre.
        failures : {"raise", "mask"}
            What becomes of members that can not be reached, or stand on the waist's axis, where θ₁ is free:
            an error that says which, or NaN.

        Returns
        -------
        (4, ..., 3) ndarray
            Angles in (−π, π], in the order of `branches`. On a boundary of reach, stretched or folded, those
            that differ in the elbow are the same.

        Raises
        ------
        PostureError
            For members without an answer; it carries which (`failed`), why (`reasons`) and the `branches` of
            the others.
        InputError
            For another shape, or entries that are not finite and real.

        Examples
        --------
        >>> WristPartitioned(1.0, 1.0).inverse([1.0, 0.0, 1.0])[:2].round(6)
        array([[ 0.      ,  0.      ,  1.570796],
               [ 0.      ,  1.570796, -1.570796]])
        """
        check_failures(failures)
        P = real("P", P, 3)
        x, y, z = P[..., 0], P[..., 1], P[..., 2] - self.s11
        radius = np.hypot(x, y)
        slack = ON_BOUNDARY * (self.a23 + self.a34 + abs(self.s11))
        bent, count = bend(self.a23, self.a34, np.stack([radius, z], axis=-1), slack)
        axial = radius <= slack
        failed = (count == 0) | np.isinf(count) | axial
        shoulder, elbow = np.moveaxis(bent, -1, 0)
        # behind the waist all is as before it, seen in a mirror
        turn = np.stack([np.arctan2(y, x)] * 2 + [np.arctan2(-y, -x)] * 2)
        angles = turn, np.concatenate([shoulder, np.pi - shoulder]), np.concatenate([elbow, -elbow])
        found = np.where(failed[..., None], np.nan, wrapped(np.stack(angles, axis=-1)))
        if failures == "raise" and failed.any():
            self._refuse(P, np.hypot(radius, z), axial & (count != 0), failed, found)
        return found

    def _refuse(
        self, P: np.ndarray, far: np.ndarray, axial: np.ndarray, failed: np.ndarray, found: np.ndarray
    ) -> None:
        """Say which members have no posture and why."""
        members = [tuple(index) for index in np.argwhere(failed).tolist()]
        least, most = abs(self.a23 - self.a34), self.a23 + self.a34
        reasons = [
            "on the waist's axis, where any angle of the waist will do"
            if axial[index]
            else f"{far[index]:.6g} from the shoulder, which reaches from {least:.6g} to {most:.6g}"
            for index in members
        ]
        some = "; ".join(
            f"{f'{index}: ' if index else ''}P = {P[index].tolist()} is {why}"
            for index, why in list(zip(members, reasons, strict=True))[:4]
        )
        raise PostureError(
            f"WristPartitioned(a23={self.a23:g}, a34={self.a34:g}, s11={self.s11:g}) has no posture: "
            f"{some}{'; …' if len(members) > 4 else ''}. Move P"
            f"{', or keep the others with failures=' + repr('mask') if P.ndim > 1 else ''}.",
            failed=members,
            reasons=reasons,
            branches=found,
        )

    def inverse_coefficients(self, theta: Any, order: int = 3) -> Coefficients:
        """G, H and D of the joint angles with respect to the wrist centre, without inverting anything.

        With unit vectors h out from the waist, n across it, f along the upper arm, e along the forearm, and
        p = P less the shoulder, first order (B-6, corrected) and second (B-8, and the other two rows) are::

            G1 = n / r                  H1 = −(n h + h n) / r²
            G2 = e / (a23 s3)           H2 = c23 n n / (a23 s3 r) + f f / (a23 a34 s3³) + c3 e e / (a23² s3³)
            G3 = −p / (a23 a34 s3)      H3 = −(1 + c3 p p / (a23 a34 s3²)) / (a23 a34 s3)

        and the third follows by the product rule.

        Parameters
        ----------
        theta : (..., 3) array_like
            A posture (rad), such as a branch of `inverse`.
        order : {1, 2, 3}
            Highest order.

        Returns
        -------
        Coefficients
            Of θ with respect to P: values θ, G (..., 3, 3), H (..., 3, 3, 3), D (..., 3, 3, 3, 3).

        Raises
        ------
        SingularError
            Where the elbow is straight or folded, or P on the waist's axis; it carries `failed`.
        InputError
            For another shape or order, or entries that are not finite.

        Examples
        --------
        >>> arm = WristPartitioned(1.0, 1.0)
        >>> arm.inverse_coefficients([0.0, 0.0, np.pi / 2]).G.round(12) + 0.0
        array([[ 0.,  1.,  0.],
               [ 0.,  0.,  1.],
               [-1.,  0., -1.]])
        """
        theta, order = trailing("theta", theta, 3), check_order(order)
        # numbers are (..., 1), so that they multiply vectors (..., 3) as they stand
        (s1, c1), (s2, c2), (s3, c3) = (sin_cos(theta[..., k : k + 1]) for k in range(3))
        s23, c23 = sin_cos(theta[..., 1:2] + theta[..., 2:])
        a, b = self.a23, self.a34
        r, z = a * c2 + b * c23, a * s2 + b * s23
        self._check_regular(r[..., 0], s3[..., 0])
        h, n = (np.concatenate(v, axis=-1) for v in ((c1, s1, 0 * s1), (-s1, c1, 0 * s1)))
        f, e, p = (np.concatenate([x * c1, x * s1, y], axis=-1) for x, y in ((c2, s2), (c23, s23), (r, z)))
        g1, g2, g3 = n / r, e / (a * s3), -p / (a * b * s3)
        G, H, D = np.stack([g1, g2, g3], axis=-2), None, None
        if order > 1:
            alpha, beta, gamma = c23 / (a * s3 * r), 1 / (a * b * s3**3), c3 / (a**2 * s3**3)
            delta, curved = -1 / (a * b * s3), -c3 / (a**2 * b**2 * s3**3)
            nn, ff, ee, pp = (outer(v, v) for v in (n, f, e, p))
            one = np.broadcast_to(np.eye(3), nn.shape)
            nh = outer(n, h) + outer(h, n)
            H = np.stack(
                [
                    times(-1 / r**2, nh),
                    times(alpha, nn) + times(beta, ff) + times(gamma, ee),
                    times(delta, one) + times(curved, pp),
                ],
                axis=-3,
            )
        if order > 2:
            # gradients of the vectors, the differentiating index first, and of the numbers before them
            dn = -outer(g1, h)
            df = outer(g1, c2 * n) + outer(g2, (e - c3 * f) / s3)
            de = outer(g1, c23 * n) + outer(g2 + g3, (c3 * e - f) / s3)
            bent = c3 / s3 * g3
            dalpha = -s23 / (a * s3 * r) * (g2 + g3) - alpha * (bent + h / r)
            dbeta = -3 * beta * bent
            dgamma = -g3 / (a * s3) ** 2 - 3 * gamma * bent
            steep = -(1 + 2 * c3**2) / (a**3 * b**3 * s3**5)
            D = np.stack(
                [
                    times(2 / r**3, above(h, nh) + above(n, outer(h, h) - nn)),
                    above(dalpha, nn) + above(dbeta, ff) + above(dgamma, ee)
                    + times(alpha, of_square(dn, n)) + times(beta, of_square(df, f))
                    + times(gamma, of_square(de, e)),
                    times(steep, above(p, pp)) + times(curved, above(p, one) + of_square(one, p)),
                ],
                axis=-4,
            )  # fmt: skip
        return Coefficients(self.coordinates, self.rows, G, H, D, theta)

    def _check_regular(self, r: np.ndarray, s3: np.ndarray) -> None:
        """Refuse postures at which P can not drive the arm."""
        if s3.dtype == object:
            return
        straight = np.abs(np.real(s3)) <= SINGULAR
        failed = straight | (np.abs(np.real(r)) <= SINGULAR * (self.a23 + self.a34))
        if not failed.any():
            return
        members = [tuple(index) for index in np.argwhere(failed).tolist()]
        first = members[0]
        why = "the elbow is straight or folded" if straight[first] else "P stands on the waist's axis"
        where = f" at member {first}, one of {len(members)} that fail" if first else ""
        raise SingularError(
            f"P can not drive the arm where {why}{where}: r = {np.real(r[first]):.3g}, sin θ₃ = "
            f"{np.real(s3[first]):.3g}. Choose another posture.",
            failed=members,
            r=float(np.real(r[first])),
            s3=float(np.real(s3[first])),
        )

    def mechanism(self) -> Mechanism:
        """The same three links, drawn by Freeman's rows; they have no mass here.

        Returns
        -------
        Mechanism
            With the same names of coordinates, and the point `wrist`.

        Examples
        --------
        >>> WristPartitioned(1.3, 0.9, 0.4).mechanism().at([0.0, 0.0, 0.0]).value("wrist")
        array([2.2, 0. , 0.4])
        """
        return from_dh(
            "wrist-partitioned",
            (
                DHRow("waist", "column", "revolute", 0.0, 0.0, s=self.s11),
                DHRow("shoulder", "upper_arm", "revolute", 0.0, np.pi / 2),
                DHRow("elbow", "forearm", "revolute", self.a23, 0.0),
            ),
            "freeman",
            (),
            (Point("wrist", "forearm", (self.a34, 0.0, 0.0)),),
        )


def outer(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Products u_m v_n of vectors (..., 3)."""
    return u[..., :, None] * v[..., None, :]


def above(u: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Products u_l T_mn of vectors (..., 3) and matrices (..., 3, 3)."""
    return u[..., :, None, None] * T[..., None, :, :]


def times(k: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Numbers (..., 1) times tensors (..., 3, …)."""
    return k.reshape(*k.shape, *(1,) * (T.ndim - k.ndim)) * T


def of_square(dv: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Gradient of v v from that of v (..., 3, 3), the differentiating index first."""
    first = dv[..., :, :, None] * v[..., None, None, :]
    return first + np.swapaxes(first, -1, -2)
