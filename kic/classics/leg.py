"""Leg (or arm) with three degrees of freedom: a column and two thin rods in a plane that turns with it.

Pages are those of B. K. P. Horn, K. Hirokawa and V. V. Vazirani, "Dynamics of a Three Degree of Freedom
Kinematic Chain", Memo 478, Artificial Intelligence Laboratory, Massachusetts Institute of Technology, 1977.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import pi
from typing import Any, Literal

import numpy as np

from kic.classics.common import check_fields, sin_cos
from kic.description.parts import Body, Distance, Joint, Point
from kic.description.validation import Vector, assign, vector
from kic.dynamics.dynamics import Dynamics
from kic.errors import invalid
from kic.kinematics.coefficients import Coefficients
from kic.mechanism import Mechanism
from kic.numerics.arguments import check_order
from kic.numerics.arrays import as_array, broadcast_batches

# products of joint velocities, and the indices of their coefficients in P*
VELOCITY_PRODUCTS = {
    "w1w1": (0, 0), "w2w2": (1, 1), "w3w3": (2, 2), "w1w2": (0, 1), "w2w3": (1, 2), "w3w1": (2, 0)
}  # fmt: skip


@dataclass(frozen=True)
class Leg:
    """Leg with three degrees of freedom, with the dynamics of each body in closed form.

    A column turns about z (θ₁). Link 2 is hinged to it at the origin and leans from the vertical (θ₂, towards
    x for θ₁ = 0). Link 3 is hinged to the end of link 2 (θ₃, from the direction of link 2). Links 2 and 3 are
    thin uniform rods, may be offset from the column axis and may carry point masses at their ends.

    Methods accept batches, complex numbers and symbols.

    Parameters
    ----------
    l2, l3 : float
        Lengths of links 2 and 3.
    m2, m3 : float
        Masses of links 2 and 3.
    m1, R, H : float
        Mass, radius and height of the column, an upright cylinder. The height has no effect (p. 8).
    M2, M3 : float
        Point masses at the ends of link 2 (p. 23) and of link 3, the load (p. 24).
    d2, d3 : float
        Offsets δ₂ and δ₃ of links 2 and 3 from the column axis along the axis of joint 2 (p. 28).
    gravity : (3,) float
        Acceleration of gravity in any direction (p. 21).

    Examples
    --------
    >>> leg = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0)
    >>> d = leg.dynamics([0.0, 1.5, 0.3])
    >>> d.I.shape, d.inverse_dynamics([0.5, 1.0, 0.0], [0.0, 0.0, 0.0]).shape
    ((3, 3), (3,))
    """

    l2: float
    l3: float
    m2: float
    m3: float
    m1: float = 0.0
    R: float = 0.0
    H: float = 0.0
    M2: float = 0.0
    M3: float = 0.0
    d2: float = 0.0
    d3: float = 0.0
    gravity: Vector = (0.0, 0.0, -9.81)

    coordinates = ("waist", "hip", "knee")
    """Names of θ₁, θ₂, θ₃."""
    bodies = ("column", "link2", "link3", "end", "tip")
    """Names of the five bodies; the last two are the point masses M2 and M3."""

    def __post_init__(self) -> None:
        check_fields(self, ["l2", "l3"], ["m1", "m2", "m3", "M2", "M3", "R", "H"], ["d2", "d3"])
        assign(self, gravity=vector("Leg", "gravity", self.gravity))

    def point_coefficients(
        self, q: Any, link: Literal[2, 3] = 3, s: Any = None, order: int = 2
    ) -> Coefficients:
        """Return the position and the derivatives of a point of link 2 or 3 (pp. 11, 15, 29, 31).

        Parameters
        ----------
        q : (..., 3) array_like
            Joint angles (rad).
        link : {2, 3}
            Number of the link; the column is link 1.
        s : (...) array_like, optional
            Distance along the link; by default its length.
        order : {1, 2, 3}
            Highest order.

        Returns
        -------
        Coefficients
            Of x, y, z with respect to q: values (..., 3), G (..., 3, 3), H (..., 3, 3, 3) and D.

        Examples
        --------
        >>> tip = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0).point_coefficients([0.0, 0.0, 0.0])
        >>> tip.values, tip.velocity([0.0, 1.0, 0.0])
        (array([0. , 0. , 0.9]), array([0.9, 0. , 0. ]))
        """
        angles, order = as_array("q", q, 3), check_order(order)
        if not isinstance(link, int | np.integer) or link not in (2, 3):
            raise invalid("link", "must be 2 or 3", link, "The column is link 1.")
        distance = as_array("s", (self.l2 if link == 2 else self.l3) if s is None else s)
        broadcast_batches(q=angles.shape[:-1], s=distance.shape)
        if link == 2:
            u, v, offset = distance, np.zeros_like(distance), self.d2
        else:
            u, v, offset = np.full_like(distance, self.l2), distance, self.d3
        (S2, C2), (S23, C23) = (
            sin_cos_derivatives(x) for x in (angles[..., 1], angles[..., 1] + angles[..., 2])
        )
        radial, height = (
            np.stack([u[..., None] * a + v[..., None] * b, v[..., None] * b], axis=-2)
            for a, b in ((S2, S23), (C2, C23))
        )
        return turning_plane_point(
            ("x", "y", "z"), self.coordinates, angles[..., 0], radial, height, offset, order
        )

    def dynamics_by_body(self, q: Any) -> Dynamics:
        """Return the mass matrix (I*), Christoffel symbols (P*) and gravity load of each body (p. 7).

        The torques T_ij at joint i for the motion of body j follow as
        ``d.inverse_dynamics(qd, qdd) + d.load`` (pp. 13, 19, 25, 30, 35, 41). The
        torques ∂P/∂θᵢ that hold a body against gravity are ``-d.load`` (pp. 20, 22, 26, 38, 43). The source
        prints −∂P/∂θᵢ and adds it to the actuator torques, with the wrong sign.

        Returns
        -------
        Dynamics
            The last batch axis counts the five `bodies`: I* (..., 5, 3, 3), P* (..., 5, 3, 3, 3) and load
            (..., 5, 3).

        Examples
        --------
        >>> leg = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0, m1=10.0, R=0.1)
        >>> leg.dynamics_by_body([0.0, 1.5, 0.3]).kinetic_energy([2.0, 0.0, 0.0]).round(3)
        array([0.1  , 1.161, 3.949, 0.   , 0.   ])
        """
        angles = as_array("q", q, 3)[..., None, :]
        m, d, dd, u, uu, v, vv, uv = self._mass_moments
        (s1, c1), (s2, c2), (s3, c3) = (sin_cos(angles[..., k]) for k in range(3))
        s23, c23 = sin_cos(angles[..., 1] + angles[..., 2])
        X, Z = u * s2 + v * s23, u * c2 + v * c23
        e12 = uu * s2 * c2 + uv * (c2 * s23 + s2 * c23) + vv * s23 * c23
        e13 = uv * s2 * c23 + vv * s23 * c23

        I = np.zeros((*X.shape, 3, 3), X.dtype)
        I[..., 0, 0] = dd + uu * s2**2 + 2 * uv * s2 * s23 + vv * s23**2
        I[..., 0, 1] = I[..., 1, 0] = -d * Z
        I[..., 0, 2] = I[..., 2, 0] = -d * v * c23
        I[..., 1, 1] = uu + 2 * uv * c3 + vv
        I[..., 1, 2] = I[..., 2, 1] = uv * c3 + vv
        I[..., 2, 2] = vv

        P = np.zeros((*X.shape, 3, 3, 3), X.dtype)
        P[..., 0, 0, 1] = P[..., 0, 1, 0] = e12
        P[..., 0, 0, 2] = P[..., 0, 2, 0] = e13
        P[..., 0, 1, 1] = d * X
        P[..., 0, 1, 2] = P[..., 0, 2, 1] = P[..., 0, 2, 2] = d * v * s23
        P[..., 1, 0, 0], P[..., 2, 0, 0] = -e12, -e13
        P[..., 1, 1, 2] = P[..., 1, 2, 1] = P[..., 1, 2, 2] = -uv * s3
        P[..., 2, 1, 1] = uv * s3

        gx, gy, gz = self.gravity
        g_in_plane, g_normal = c1 * gx + s1 * gy, c1 * gy - s1 * gx
        load = [X * g_normal - d * g_in_plane, Z * g_in_plane - X * gz, v * c23 * g_in_plane - v * s23 * gz]
        return Dynamics(
            self.coordinates,
            m[:, None, None] * I,
            m[:, None, None, None] * P,
            m[:, None] * np.stack(load, axis=-1),
        )

    @property
    def _mass_moments(self) -> np.ndarray:
        """Array (8, 5) of the masses of the five bodies and means over each body.

        A particle is at distance u along link 2 and v along link 3, with offset d from the plane.
        """
        l2, l3, d2, d3 = self.l2, self.l3, self.d2, self.d3
        table = [
            # mass, d, d², u, u², v, v², u v
            (self.m1, 0.0, self.R**2 / 2, 0.0, 0.0, 0.0, 0.0, 0.0),
            (self.m2, d2, d2**2, l2 / 2, l2**2 / 3, 0.0, 0.0, 0.0),
            (self.m3, d3, d3**2, l2, l2**2, l3 / 2, l3**2 / 3, l2 * l3 / 2),
            (self.M2, d2, d2**2, l2, l2**2, 0.0, 0.0, 0.0),
            (self.M3, d3, d3**2, l2, l2**2, l3, l3**2, l2 * l3),
        ]
        return np.array(table).T

    def dynamics(self, q: Any) -> Dynamics:
        """Return the dynamic model T = I(θ) θ̈ + Σ C_ijk(θ) θ̇_j θ̇_k + G(θ) of all bodies (p. 5).

        Returns
        -------
        Dynamics
            I* (..., 3, 3), P* (..., 3, 3, 3) and load −G (..., 3).

        Examples
        --------
        >>> leg = Leg(l2=0.5, l3=0.4, m2=2.0, m3=0.0, gravity=(0, 0, -10))
        >>> leg.dynamics([0.0, np.pi / 2, 0.0]).load.round(12) + 0.0
        array([0., 5., 0.])
        """
        d = self.dynamics_by_body(q)
        return Dynamics(self.coordinates, d.I.sum(axis=-3), d.P.sum(axis=-4), d.load.sum(axis=-2))

    def velocity_product_coefficients(self, q: Any) -> dict[str, np.ndarray]:
        """Return the coefficients C_ijk of the products of joint velocities in the torques (p. 6).

        Returns
        -------
        dict of str to (..., 3) ndarray
            Coefficients in T₁, T₂, T₃ of "w1w1", "w2w2", "w3w3", "w1w2", "w2w3" and "w3w1".

        Examples
        --------
        >>> leg = Leg(l2=0.5, l3=0.4, m2=6.0, m3=0.0)
        >>> leg.velocity_product_coefficients([0.0, np.pi / 4, 0.0])["w1w2"].round(3)
        array([0.5, 0. , 0. ])
        """
        P = self.dynamics(q).P
        return {name: P[..., a, b] * (1 if a == b else 2) for name, (a, b) in VELOCITY_PRODUCTS.items()}

    def potential_energy(self, q: Any) -> np.ndarray:
        """Return the potential energy −Σ m g·r of all bodies except the column (pp. 21, 26, 38, 43).

        Returns
        -------
        (...) ndarray
            Relative to the height of the origin.

        Examples
        --------
        >>> Leg(l2=0.5, l3=0.4, m2=2.0, m3=0.0, gravity=(0, 0, -10)).potential_energy([0, 0, 0])
        np.float64(5.0)
        """

        def position(link: Literal[2, 3], s: float) -> np.ndarray:
            return np.asarray(self.point_coefficients(q, link, s, order=1).values)

        moment = self.m2 * position(2, self.l2 / 2) + self.M2 * position(2, self.l2)
        moment = moment + self.m3 * position(3, self.l3 / 2) + self.M3 * position(3, self.l3)
        return -(moment @ np.array(self.gravity))

    def mechanism(self) -> Mechanism:
        """Return the same leg as a mechanism with link 2 along x and link 3 pointing down.

        Returns
        -------
        Mechanism
            With the same names of coordinates and bodies, and reference configuration θ = (0, 90°, 90°).
            M2 and M3 are at the points `end` and `tip`.

        Examples
        --------
        >>> leg = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0).mechanism()
        >>> leg.at([0.0, 0.0, 0.0]).value("tip").round(9) + 0.0
        array([0. , 0. , 0.9])
        """
        l2, l3, d2, d3, H = self.l2, self.l3, self.d2, self.d3, self.H
        axial, transverse1 = self.m1 * self.R**2 / 2, self.m1 * (3 * self.R**2 + H**2) / 12
        transverse2, transverse3 = self.m2 * l2**2 / 12, self.m3 * l3**2 / 12
        y, z, right_angle = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), pi / 2
        return Mechanism(
            "leg",
            bodies=(
                Body(
                    "column", mass=self.m1, com=(0.0, 0.0, -H / 2), inertia=(transverse1, transverse1, axial)
                ),
                Body("link2", mass=self.m2, com=(l2 / 2, d2, 0.0), inertia=(0.0, transverse2, transverse2)),
                Body("link3", mass=self.m3, com=(l2, d3, -l3 / 2), inertia=(transverse3, transverse3, 0.0)),
            ),
            joints=(
                Joint("waist", "revolute", ("ground", "column"), (0.0, 0.0, 0.0), z),
                Joint("hip", "revolute", ("column", "link2"), (0.0, d2, 0.0), y, value=right_angle),
                Joint("knee", "revolute", ("link2", "link3"), (l2, d3, 0.0), y, value=right_angle),
            ),
            points=(
                Point("hub", "column", (0.0, 0.0, 0.0)),
                Point("end", "link2", (l2, d2, 0.0), mass=self.M2),
                Point("tip", "link3", (l2, d3, -l3), mass=self.M3),
            ),
            distances=(Distance("reach", ("hub", "tip")),),
            gravity=self.gravity,
        )


def sin_cos_derivatives(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sine and cosine of angles (...) with their first three derivatives, both (..., 4)."""
    s, c = sin_cos(angle)
    return np.stack([s, c, -s, -c], axis=-1), np.stack([c, -s, -c, s], axis=-1)


def turning_plane_point(
    rows: Iterable[str],
    columns: Iterable[str],
    theta1: np.ndarray,
    radial: np.ndarray,
    height: np.ndarray,
    offset: float,
    order: int,
) -> Coefficients:
    """Return position and derivatives of a point of a planar chain whose plane turns about the z axis.

    With radial distance X, height Z and offset d from the plane, the position is::

        P = (X cos θ₁ − d sin θ₁, X sin θ₁ + d cos θ₁, Z)

    X and Z are sums of a proximal part that depends on θ₂ and a distal part that depends on θ₂ + θ₃. Every
    derivative has the same form, with entries from the tables `radial` and `height` (..., 2, 4): X and Z with
    their derivatives of order 0 to 3, of the sum and of the distal part alone.
    """
    sines, cosines = sin_cos_derivatives(theta1)
    tensors: list[Any] = []
    for n in range(order + 1):
        indices = np.indices((3,) * n)  # indices of the differentiating coordinates
        n_theta1 = (indices == 0).sum(axis=0)
        n_planar = n - n_theta1
        distal = (indices == 2).any(axis=0).astype(int)
        X = radial[..., distal, n_planar]
        Z = height[..., distal, n_planar] * (n_theta1 == 0).astype(int)
        S, C, d = sines[..., n_theta1], cosines[..., n_theta1], offset * (n_planar == 0).astype(int)
        tensors.append(np.stack(np.broadcast_arrays(X * C - d * S, X * S + d * C, Z), axis=-n - 1))
    values, G, H, D = (*tensors, None, None)[:4]
    return Coefficients(rows, columns, G, H, D, values=values)
