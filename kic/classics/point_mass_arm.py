"""A planar arm of three links whose mass is where its joints are, an exercise solved on a web page."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple

import numpy as np

from kic.arrays import broadcast_batches, trailing
from kic.checks import assign, number
from kic.classics.angles import sin_cos
from kic.classics.sizes import check_amounts, check_lengths
from kic.dynamics import Dynamics
from kic.errors import ModelError
from kic.mechanism import Mechanism
from kic.parts import Body, Joint, Point


class Inward(NamedTuple):
    """What the links hand on in a Newton-Euler recursion, each in the axes of its own link, x along it."""

    F3: np.ndarray
    """Mass times acceleration of link 3, gravity's opposite included (..., 3); ³f₃ is the same."""
    N3: np.ndarray
    """Moment that turns link 3 (..., 3); ³n₃ is the same, and its z the torque τ₃."""
    f2: np.ndarray
    """Force that link 1 exerts on link 2 at joint 2 (..., 3)."""
    n2: np.ndarray
    """Moment there (..., 3); its z is τ₂."""
    f1: np.ndarray
    """Force that the base exerts on link 1 at joint 1 (..., 3)."""
    n1: np.ndarray
    """Moment there (..., 3); its z is τ₁."""


@dataclass(frozen=True)
class PointMassArm:
    """A planar arm in a vertical plane: point masses at the far ends of links 1 and 2, a body on joint 3.

    Angles are relative and counterclockwise, all 0 with the arm along x; y is up. The centre of mass of link
    3 is on its joint's axis, so that nothing depends on θ₃. The numbers given are those of the exercise.

    Parameters
    ----------
    l1, l2 : float
        Lengths of links 1 and 2.
    m1, m2, m3 : float
        Masses.
    Izz : float
        Moment of inertia of link 3 about its joint; no other enters.
    g : float
        Gravity along −y.

    Raises
    ------
    ModelError
        For lengths that are not positive, negative masses, or inertia without mass.

    References
    ----------
    Web page with the derivation for programming exercise 6 of J. J. Craig, "Introduction to Robotics:
    Mechanics and Control". Its terms in m₃ are wrong wherever ³f₃ was not turned into the axes of link 2;
    those here are right.

    Examples
    --------
    >>> arm = PointMassArm()
    >>> arm.dynamics([0.0, 0.0, 0.0]).effort([0, 0, 0], [0, 0, 0]).round(2)  # holds the weight
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
        check_lengths(self, "l1", "l2")
        check_amounts(self, "m1", "m2", "m3", "Izz")
        assign(self, g=number("PointMassArm", "g", self.g))
        if self.Izz and not self.m3:
            raise ModelError(
                f"PointMassArm: a body without mass has no inertia, got m3 = 0 and Izz = {self.Izz:g}. "
                "Give it mass, or Izz = 0.",
                key="Izz",
            )

    def dynamics(self, q: Any) -> Dynamics:
        """The model τ = M(θ) θ̈ + V(θ, θ̇) + G(θ) in closed form.

        With k = m₂ + m₃ and L = l₁ l₂::

            M11 = Izz + (m1 + k) l1² + k (l2² + 2 L c2)     M12 = Izz + k (l2² + L c2)     M22 = Izz + k l2²
            V   = k L s2 (−2 θ̇1 θ̇2 − θ̇2², θ̇1², 0)           G   = g ((m1 + k) l1 c1 + k l2 c12, k l2 c12, 0)

        and Izz in all else of M.

        Parameters
        ----------
        q : (..., 3) array_like
            θ₁, θ₂, θ₃ (rad).

        Returns
        -------
        Dynamics
            I* = M (..., 3, 3), P* (..., 3, 3, 3) with θ̇ᵀ P* θ̇ = V, load −G (..., 3).

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> PointMassArm().dynamics([0.0, np.pi / 2, 0.0]).I.round(3)
        array([[2.9  , 0.925, 0.1  ],
               [0.925, 0.925, 0.1  ],
               [0.1  , 0.1  , 0.1  ]])
        """
        angles = trailing("q", q, 3)
        _, c1 = sin_cos(angles[..., 0])
        s2, c2 = sin_cos(angles[..., 1])
        _, c12 = sin_cos(angles[..., 0] + angles[..., 1])
        k, coupled = self.m2 + self.m3, (self.m2 + self.m3) * self.l1 * self.l2
        M = np.full((*c1.shape, 3, 3), self.Izz, angles.dtype)
        M[..., 0, 0] += (self.m1 + k) * self.l1**2 + k * self.l2**2 + 2 * coupled * c2
        M[..., 0, 1] += k * self.l2**2 + coupled * c2
        M[..., 1, 0] = M[..., 0, 1]
        M[..., 1, 1] += k * self.l2**2
        P = np.zeros((*c1.shape, 3, 3, 3), angles.dtype)
        P[..., 0, 0, 1] = P[..., 0, 1, 0] = P[..., 0, 1, 1] = -coupled * s2
        P[..., 1, 0, 0] = coupled * s2
        second = self.g * k * self.l2 * c12
        first = self.g * (self.m1 + k) * self.l1 * c1 + second
        return Dynamics(self.coordinates, M, P, -np.stack([first, second, 0 * c1], axis=-1))

    def inward(self, q: Any, qd: Any, qdd: Any) -> Inward:
        """Forces and moments from link to link for a motion, in the axes of the links, as the page has them.

        Parameters
        ----------
        q, qd, qdd : (..., 3) array_like
            Joint angles (rad), rates and accelerations.

        Returns
        -------
        Inward
            F3, N3, f2, n2, f1, n1, each (..., 3).

        Raises
        ------
        InputError
            For another shape, entries that are not finite, or batches that do not go together.

        Examples
        --------
        >>> arm = PointMassArm()
        >>> arm.inward([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]).f1.round(2)
        array([ 0.  , 77.42,  0.  ])
        """
        given = {"q": trailing("q", q, 3), "qd": trailing("qd", qd, 3), "qdd": trailing("qdd", qdd, 3)}
        broadcast_batches(**{name: a.shape[:-1] for name, a in given.items()})
        theta, w, a = (np.cumsum(x, axis=-1) for x in given.values())  # of the links themselves
        s1, c1 = sin_cos(theta[..., 0])
        s2, c2 = sin_cos(given["q"][..., 1])
        s3, c3 = sin_cos(given["q"][..., 2])
        # accelerations of the ends of links 1 and 2, less gravity's, in the axes of the link
        x1, y1 = self.g * s1 - self.l1 * w[..., 0] ** 2, self.g * c1 + self.l1 * a[..., 0]
        x2, y2 = c2 * x1 + s2 * y1 - self.l2 * w[..., 1] ** 2, c2 * y1 - s2 * x1 + self.l2 * a[..., 1]
        x3, y3 = c3 * x2 + s3 * y2, c3 * y2 - s3 * x2
        k = self.m2 + self.m3
        # all that link 2 carries is at its end
        fx, fy = c2 * x2 - s2 * y2, s2 * x2 + c2 * y2
        turning = self.Izz * a[..., 2]
        n2 = turning + self.l2 * k * y2
        n1 = n2 + self.l1 * (self.m1 * y1 + k * fy)
        zero = 0 * (turning + x3)
        made = (
            (self.m3 * x3, self.m3 * y3, zero), (zero, zero, turning),
            (k * x2, k * y2, zero), (zero, zero, n2),
            (self.m1 * x1 + k * fx, self.m1 * y1 + k * fy, zero), (zero, zero, n1),
        )  # fmt: skip
        return Inward(*(np.stack(np.broadcast_arrays(*vector), axis=-1) for vector in made))

    def mechanism(self) -> Mechanism:
        """The same arm, drawn as a stair: link 1 along x, link 2 up, link 3 along x, θ = (0, 90°, −90°).

        Returns
        -------
        Mechanism
            With the same names of coordinates; `frame2` and `frame3` are the ends of links 1 and 2. About its
            own line link 3 has half of Izz, as in the exercise.

        Examples
        --------
        >>> PointMassArm().mechanism().at([0.0, 0.0, 0.0]).value("frame3").round(9)
        array([1., 0., 0.])
        """
        l1, l2, z, none = self.l1, self.l2, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
        elbow, wrist = (l1, 0.0, 0.0), (l1, l2, 0.0)
        return Mechanism(
            "point-mass-arm",
            bodies=(
                Body("link1", self.m1, elbow, none),
                Body("link2", self.m2, wrist, none),
                Body("link3", self.m3, wrist, (self.Izz / 2, self.Izz, self.Izz)),
            ),
            joints=(
                Joint("joint1", "revolute", ("ground", "link1"), none, z),
                Joint("joint2", "revolute", ("link1", "link2"), elbow, z, value=pi / 2),
                Joint("joint3", "revolute", ("link2", "link3"), wrist, z, value=-pi / 2),
            ),
            points=(Point("frame2", "link1", elbow), Point("frame3", "link2", wrist)),
            gravity=(0.0, -self.g, 0.0),
        )
