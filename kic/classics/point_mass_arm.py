"""Planar three-link arm with point masses at its joints: programming exercise 6 of Craig's textbook."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple

import numpy as np

from kic.classics.common import check_fields, sin_cos
from kic.description.parts import Body, Joint, Point
from kic.dynamics.dynamics import Dynamics
from kic.errors import ModelError
from kic.mechanism import Mechanism
from kic.numerics.arrays import as_array, broadcast_batches


class LinkWrenches(NamedTuple):
    """Forces and moments (..., 3) of a Newton-Euler recursion, in link frames with x along the link."""

    F3: np.ndarray
    """Inertial force of link 3, with gravity; equal to ³f₃."""
    N3: np.ndarray
    """Inertial moment of link 3; equal to ³n₃ with τ₃ along z."""
    f2: np.ndarray
    """Force of link 1 on link 2 at joint 2."""
    n2: np.ndarray
    """Moment of link 1 on link 2 at joint 2, with τ₂ along z."""
    f1: np.ndarray
    """Force of the base on link 1 at joint 1."""
    n1: np.ndarray
    """Moment of the base on link 1 at joint 1, with τ₁ along z."""


@dataclass(frozen=True)
class PointMassArm:
    """Planar arm in a vertical plane: point masses at the ends of links 1 and 2, and a body at joint 3.

    Joint angles are relative and counterclockwise, all zero with the arm along x; y points up. The centre of
    mass of link 3 is on its joint axis, so nothing depends on θ₃. The defaults are those of the exercise.

    Methods accept batches, complex numbers and symbols.

    Parameters
    ----------
    l1, l2 : float
        Lengths of links 1 and 2.
    m1, m2, m3 : float
        Masses.
    Izz : float
        Moment of inertia of link 3 about its joint axis.
    g : float
        Gravity along −y.

    Raises
    ------
    ModelError
        If a length is not positive, a mass is negative, or link 3 has inertia without mass.

    References
    ----------
    Web page with the derivation for programming exercise 6 of J. J. Craig, "Introduction to Robotics:
    Mechanics and Control". Its terms in m₃ are wrong where ³f₃ was not rotated into the frame of link 2. They
    are corrected here.

    Examples
    --------
    >>> arm = PointMassArm()
    >>> arm.dynamics([0.0, 0.0, 0.0]).inverse_dynamics([0, 0, 0], [0, 0, 0]).round(2)
    array([54.88, 16.17,  0.  ])
    """

    l1: float = 0.5
    l2: float = 0.5
    m1: float = 4.6
    m2: float = 2.3
    m3: float = 1.0
    Izz: float = 0.1
    g: float = 9.8

    coordinates = ("joint1", "joint2", "joint3")
    """Names of θ₁, θ₂, θ₃."""

    def __post_init__(self) -> None:
        check_fields(self, ["l1", "l2"], ["m1", "m2", "m3", "Izz"], ["g"])
        if self.Izz and not self.m3:
            message = f"PointMassArm: `Izz` must be 0 for m3 = 0, got {self.Izz:g}. Give link 3 a mass."
            raise ModelError(message, key="Izz")

    def dynamics(self, q: Any) -> Dynamics:
        """Return the dynamic model τ = M(θ) θ̈ + V(θ, θ̇) + G(θ) in closed form.

        With k = m₂ + m₃ and L = l₁ l₂::

            M11 = Izz + (m1 + k) l1² + k (l2² + 2 L c2)     M12 = Izz + k (l2² + L c2)     M22 = Izz + k l2²
            V   = k L s2 (−2 θ̇1 θ̇2 − θ̇2², θ̇1², 0)           G   = g ((m1 + k) l1 c1 + k l2 c12, k l2 c12, 0)

        All other entries of M are Izz.

        Returns
        -------
        Dynamics
            I* = M (..., 3, 3), P* (..., 3, 3, 3) with θ̇ᵀ P* θ̇ = V, and load −G (..., 3).

        Examples
        --------
        >>> PointMassArm().dynamics([0.0, np.pi / 2, 0.0]).I.round(3)
        array([[2.9  , 0.925, 0.1  ],
               [0.925, 0.925, 0.1  ],
               [0.1  , 0.1  , 0.1  ]])
        """
        q = as_array("q", q, 3)
        (_, c1), (s2, c2) = sin_cos(q[..., 0]), sin_cos(q[..., 1])
        _, c12 = sin_cos(q[..., 0] + q[..., 1])
        k, kL = self.m2 + self.m3, (self.m2 + self.m3) * self.l1 * self.l2
        M = np.full((*c1.shape, 3, 3), self.Izz, q.dtype)
        M[..., 0, 0] += (self.m1 + k) * self.l1**2 + k * self.l2**2 + 2 * kL * c2
        M[..., 0, 1] += k * self.l2**2 + kL * c2
        M[..., 1, 0] = M[..., 0, 1]
        M[..., 1, 1] += k * self.l2**2
        P = np.zeros((*c1.shape, 3, 3, 3), q.dtype)
        P[..., 0, 0, 1] = P[..., 0, 1, 0] = P[..., 0, 1, 1] = -kL * s2
        P[..., 1, 0, 0] = kL * s2
        G2 = self.g * k * self.l2 * c12
        G1 = self.g * (self.m1 + k) * self.l1 * c1 + G2
        return Dynamics(self.coordinates, M, P, -np.stack([G1, G2, 0 * c1], axis=-1))

    def newton_euler(self, q: Any, qd: Any, qdd: Any) -> LinkWrenches:
        """Return the forces and moments between the links by the Newton-Euler recursion of the source.

        Parameters
        ----------
        q, qd, qdd : (..., 3) array_like
            Joint angles (rad), velocities and accelerations.

        Examples
        --------
        >>> arm = PointMassArm()
        >>> arm.newton_euler([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]).f1.round(2)
        array([ 0.  , 77.42,  0.  ])
        """
        motion = {"q": as_array("q", q, 3), "qd": as_array("qd", qd, 3), "qdd": as_array("qdd", qdd, 3)}
        broadcast_batches(**{name: a.shape[:-1] for name, a in motion.items()})
        theta, w, a = (np.cumsum(x, axis=-1) for x in motion.values())  # absolute, per link
        s1, c1 = sin_cos(theta[..., 0])
        (s2, c2), (s3, c3) = (sin_cos(motion["q"][..., k]) for k in (1, 2))
        # accelerations minus gravity of the ends of links 1 and 2 in link frames 1, 2 and 3
        x1, y1 = self.g * s1 - self.l1 * w[..., 0] ** 2, self.g * c1 + self.l1 * a[..., 0]
        x2, y2 = c2 * x1 + s2 * y1 - self.l2 * w[..., 1] ** 2, c2 * y1 - s2 * x1 + self.l2 * a[..., 1]
        x3, y3 = c3 * x2 + s3 * y2, c3 * y2 - s3 * x2
        k = self.m2 + self.m3
        fx, fy = k * (c2 * x2 - s2 * y2), k * (s2 * x2 + c2 * y2)  # f2 in frame 1
        n3 = self.Izz * a[..., 2]
        n2 = n3 + self.l2 * k * y2
        n1 = n2 + self.l1 * (self.m1 * y1 + fy)
        zero = 0 * (n3 + x3)
        vectors = (
            (self.m3 * x3, self.m3 * y3, zero), (zero, zero, n3),
            (k * x2, k * y2, zero), (zero, zero, n2),
            (self.m1 * x1 + fx, self.m1 * y1 + fy, zero), (zero, zero, n1),
        )  # fmt: skip
        return LinkWrenches(*(np.stack(np.broadcast_arrays(*v), axis=-1) for v in vectors))

    def mechanism(self) -> Mechanism:
        """Return the same arm as a mechanism with reference configuration θ = (0, 90°, −90°).

        Returns
        -------
        Mechanism
            With the same names of coordinates. Points `frame2` and `frame3` are the ends of links 1 and 2.
            The moment of inertia of link 3 about its own line is Izz/2, as in the exercise.

        Examples
        --------
        >>> PointMassArm().mechanism().at([0.0, 0.0, 0.0]).value("frame3").round(9)
        array([1., 0., 0.])
        """
        zero, z, elbow, wrist = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (self.l1, 0.0, 0.0), (self.l1, self.l2, 0.0)
        return Mechanism(
            "point-mass-arm",
            bodies=(
                Body("link1", mass=self.m1, com=elbow, inertia=zero),
                Body("link2", mass=self.m2, com=wrist, inertia=zero),
                Body("link3", mass=self.m3, com=wrist, inertia=(self.Izz / 2, self.Izz, self.Izz)),
            ),
            joints=(
                Joint("joint1", "revolute", ("ground", "link1"), zero, z),
                Joint("joint2", "revolute", ("link1", "link2"), elbow, z, value=pi / 2),
                Joint("joint3", "revolute", ("link2", "link3"), wrist, z, value=-pi / 2),
            ),
            points=(Point("frame2", "link1", elbow), Point("frame3", "link2", wrist)),
            gravity=(0.0, -self.g, 0.0),
        )
