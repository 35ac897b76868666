"""First three links of a wrist-partitioned arm, inverted in closed form to third order.

Equations and tables are those of Appendix B of R. A. Freeman's dissertation (University of Florida, 1985).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kic.classics.common import SINGULAR_SINE_ATOL, check_fields, real_array, sin_cos, wrap_to_pi
from kic.classics.horn import (
    BOUNDARY_RTOL,
    Annulus,
    inverse_kinematics_error,
    solve_two_link,
    unreachable_reason,
)
from kic.classics.leg import sin_cos_derivatives, turning_plane_point
from kic.description.parts import Point
from kic.errors import SingularError
from kic.io.dh import DHRow, from_dh
from kic.kinematics.coefficients import Coefficients
from kic.mechanism import Mechanism
from kic.numerics.arguments import check_order
from kic.numerics.arrays import as_array, check_failures


@dataclass(frozen=True)
class WristPartitioned:
    """Arm whose wrist centre P is positioned by three joints: waist, shoulder and elbow.

    The waist θ₁ turns about z. The axes of shoulder θ₂ and elbow θ₃ are parallel, their plane of motion
    contains the waist axis, and θ₂ is measured from the horizontal. With r = a₂₃ c₂ + a₃₄ c₂₃ and
    z = a₂₃ s₂ + a₃₄ s₂₃, the wrist centre is P = (r c₁, r s₁, s₁₁ + z).

    Parameters
    ----------
    a23, a34 : float
        Lengths of upper arm and forearm.
    s11 : float
        Height of the shoulder.

    Examples
    --------
    >>> arm = WristPartitioned(1.3, 0.9, 0.4)
    >>> theta = arm.inverse_kinematics([1.5, 0.5, 0.8])  # four branches
    >>> theta.shape, np.abs(arm.wrist_coefficients(theta).values - [1.5, 0.5, 0.8]).max() < 1e-14
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
    """Branches of `inverse_kinematics`: P in front of the waist (r > 0) or behind it, and elbow down or up.
    Down means below the line from the shoulder to P, with θ₃ > 0 in front."""

    def __post_init__(self) -> None:
        check_fields(self, positive=["a23", "a34"], finite=["s11"])

    def wrist_coefficients(self, theta: Any, order: int = 3) -> Coefficients:
        """Return the wrist centre and its derivatives (Table B-1, corrected).

        Parameters
        ----------
        theta : (..., 3) array_like
            Joint angles (rad), also complex numbers or symbols.
        order : {1, 2, 3}
            Highest order.

        Returns
        -------
        Coefficients
            Of P with respect to θ: values (..., 3), G (..., 3, 3), H (..., 3, 3, 3), D (..., 3, 3, 3, 3).

        Examples
        --------
        >>> WristPartitioned(1.3, 0.9, 0.4).wrist_coefficients([0.0, 0.0, 0.0]).values
        array([2.2, 0. , 0.4])
        """
        theta, order = as_array("theta", theta, 3), check_order(order)
        S2, C2 = sin_cos_derivatives(theta[..., 1])
        S23, C23 = sin_cos_derivatives(theta[..., 1] + theta[..., 2])
        a, b = self.a23, self.a34
        radial, height = (np.stack([a * x + b * y, b * y], axis=-2) for x, y in ((C2, C23), (S2, S23)))
        height[..., 0, 0] += self.s11
        return turning_plane_point(self.rows, self.coordinates, theta[..., 0], radial, height, 0.0, order)

    def inverse_kinematics(self, P: Any, *, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Return the joint angles of all four `branches` for a position of the wrist centre.

        Parameters
        ----------
        P : (..., 3) array_like
            Positions of the wrist centre, real.
        failures : {"raise", "mask"}
            Raise an error for members out of reach or on the waist axis, or return NaN for them.

        Returns
        -------
        (4, ..., 3) ndarray
            Angles in (−π, π] in the order of `branches`. The two elbow branches are equal on a boundary of
            the workspace.

        Raises
        ------
        ConfigurationError
            If a member has no solution or θ₁ is arbitrary. It carries `failed`, `reasons` and `branches`.

        Examples
        --------
        >>> WristPartitioned(1.0, 1.0).inverse_kinematics([1.0, 0.0, 1.0])[:2].round(6)
        array([[ 0.      ,  0.      ,  1.570796],
               [ 0.      ,  1.570796, -1.570796]])
        """
        check_failures(failures)
        P = real_array("P", P, 3)
        x, y, z = P[..., 0], P[..., 1], P[..., 2] - self.s11
        radius = np.hypot(x, y)
        atol = BOUNDARY_RTOL * (self.a23 + self.a34 + abs(self.s11))
        planar, count = solve_two_link(self.a23, self.a34, np.stack([radius, z], axis=-1), atol)
        on_waist_axis = radius <= atol
        failed = (count == 0) | np.isinf(count) | on_waist_axis
        shoulder, elbow = np.moveaxis(planar, -1, 0)
        # The arm behind the waist is the mirror image of the arm in front of it.
        waist = np.stack([np.arctan2(y, x)] * 2 + [np.arctan2(-y, -x)] * 2)
        angles = waist, np.concatenate([shoulder, np.pi - shoulder]), np.concatenate([elbow, -elbow])
        branches = np.where(failed[..., None], np.nan, wrap_to_pi(np.stack(angles, axis=-1)))
        if failures == "raise" and failed.any():
            workspace, distance = Annulus(abs(self.a23 - self.a34), self.a23 + self.a34), np.hypot(radius, z)
            reasons = {}
            for index in map(tuple, np.argwhere(failed).tolist()):
                if on_waist_axis[index] and count[index]:
                    reasons[index] = "P is on the waist axis, where any waist angle is possible"
                else:
                    quantity = "distance of P from the shoulder"
                    reasons[index] = unreachable_reason(quantity, distance[index], workspace)
            raise inverse_kinematics_error("P", repr(self), P, reasons, branches=branches)
        return branches

    def inverse_coefficients(self, theta: Any, order: int = 3) -> Coefficients:
        """Return G, H and D of the joint angles with respect to the wrist centre in closed form.

        Let h and n be horizontal unit vectors along the arm and across it. Let f and e be unit vectors along
        upper arm and forearm, and p the vector from the shoulder to P. The first order (B-6, corrected) and
        the second order (B-8; the rows of θ₂ and θ₃ are not printed), the result of (B-1) to (B-15), are::

            G1 = n / r                  H1 = −(n h + h n) / r²
            G2 = e / (a23 s3)           H2 = c23 n n / (a23 s3 r) + f f / (a23 a34 s3³) + c3 e e / (a23² s3³)
            G3 = −p / (a23 a34 s3)      H3 = −(1 + c3 p p / (a23 a34 s3²)) / (a23 a34 s3)

        The third order follows by the product rule.

        Parameters
        ----------
        theta : (..., 3) array_like
            Joint angles (rad), for example a branch of `inverse_kinematics`; also complex numbers or symbols.
        order : {1, 2, 3}
            Highest order.

        Returns
        -------
        Coefficients
            Of θ with respect to P: values θ, G (..., 3, 3), H (..., 3, 3, 3), D (..., 3, 3, 3, 3).

        Raises
        ------
        SingularError
            If the elbow is straight or folded, or P is on the waist axis. It carries `failed`, `r` and `s3`.

        Examples
        --------
        >>> arm = WristPartitioned(1.0, 1.0)
        >>> arm.inverse_coefficients([0.0, 0.0, np.pi / 2]).G.round(12) + 0.0
        array([[ 0.,  1.,  0.],
               [ 0.,  0.,  1.],
               [-1.,  0., -1.]])
        """
        theta, order = as_array("theta", theta, 3), check_order(order)
        # Scalars have shape (..., 1) and multiply vectors (..., 3) by broadcasting.
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
            k_nn, k_ff, k_ee = c23 / (a * s3 * r), 1 / (a * b * s3**3), c3 / (a**2 * s3**3)
            k_one, k_pp = -1 / (a * b * s3), -c3 / (a**2 * b**2 * s3**3)
            nn, ff, ee, pp = (outer(v, v) for v in (n, f, e, p))
            one, nh = np.broadcast_to(np.eye(3), nn.shape), outer(n, h) + outer(h, n)
            H = np.stack(
                [
                    scale(-1 / r**2, nh),
                    scale(k_nn, nn) + scale(k_ff, ff) + scale(k_ee, ee),
                    scale(k_one, one) + scale(k_pp, pp),
                ],
                axis=-3,
            )
        if order > 2:
            # gradients with respect to P of the vectors and of their factors, the differentiating index first
            dn = -outer(g1, h)
            df = outer(g1, c2 * n) + outer(g2, (e - c3 * f) / s3)
            de = outer(g1, c23 * n) + outer(g2 + g3, (c3 * e - f) / s3)
            cot3_g3 = c3 / s3 * g3
            dk_nn = -s23 / (a * s3 * r) * (g2 + g3) - k_nn * (cot3_g3 + h / r)
            dk_ff = -3 * k_ff * cot3_g3
            dk_ee = -g3 / (a * s3) ** 2 - 3 * k_ee * cot3_g3
            k_ppp = -(1 + 2 * c3**2) / (a**3 * b**3 * s3**5)
            D = np.stack(
                [
                    scale(2 / r**3, outer(h, nh) + outer(n, outer(h, h) - nn)),
                    outer(dk_nn, nn) + outer(dk_ff, ff) + outer(dk_ee, ee)
                    + scale(k_nn, square_gradient(dn, n)) + scale(k_ff, square_gradient(df, f))
                    + scale(k_ee, square_gradient(de, e)),
                    scale(k_ppp, outer(p, pp)) + scale(k_pp, outer(p, one) + square_gradient(one, p)),
                ],
                axis=-4,
            )  # fmt: skip
        return Coefficients(self.coordinates, self.rows, G, H, D, values=theta)

    def _check_regular(self, r: np.ndarray, s3: np.ndarray) -> None:
        """Raise an error if the position of P does not determine the joint velocities."""
        if s3.dtype == object:
            return
        r, s3 = np.real(r), np.real(s3)
        singular_elbow = np.abs(s3) <= SINGULAR_SINE_ATOL
        failed = singular_elbow | (np.abs(r) <= SINGULAR_SINE_ATOL * (self.a23 + self.a34))
        members = [tuple(index) for index in np.argwhere(failed).tolist()]
        if not members:
            return
        first = members[0]
        reason = "the elbow is straight or folded" if singular_elbow[first] else "P is on the waist axis"
        where = f" at member {first} ({len(members)} of {failed.size} members fail)" if first else ""
        message = (
            f"`theta` must be nonsingular, got r = {r[first]:.3g} and sin θ₃ = {s3[first]:.3g}{where}: "
            f"{reason}. Choose another configuration."
        )
        raise SingularError(message, key="theta", failed=members, r=float(r[first]), s3=float(s3[first]))

    def mechanism(self) -> Mechanism:
        """Return the same three links as a mechanism without masses.

        Returns
        -------
        Mechanism
            With the same names of coordinates and the point `wrist`, from Freeman's link parameters.

        Examples
        --------
        >>> WristPartitioned(1.3, 0.9, 0.4).mechanism().at([0.0, 0.0, 0.0]).value("wrist")
        array([2.2, 0. , 0.4])
        """
        return from_dh(
            "wrist-partitioned",
            (
                DHRow("waist", "column", type="revolute", a=0.0, alpha=0.0, d=self.s11),
                DHRow("shoulder", "upper_arm", type="revolute", a=0.0, alpha=np.pi / 2),
                DHRow("elbow", "forearm", type="revolute", a=self.a23, alpha=0.0),
            ),
            convention="freeman",
            points=(Point("wrist", "forearm", (self.a34, 0.0, 0.0)),),
        )


def outer(u: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the products u_l T_m… of vectors (..., 3) and tensors (..., 3, …) with the same batch."""
    return u.reshape(*u.shape, *(1,) * (T.ndim - u.ndim + 1)) * np.expand_dims(T, u.ndim - 1)


def scale(k: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return scalars (..., 1) times tensors (..., 3, …)."""
    return k.reshape(*k.shape, *(1,) * (T.ndim - k.ndim)) * T


def square_gradient(dv: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the gradient of v_m v_n from that of v (..., 3, 3), the differentiating index first."""
    first = dv[..., :, :, None] * v[..., None, None, :]
    return first + np.swapaxes(first, -1, -2)
