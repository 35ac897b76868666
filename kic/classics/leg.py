"""The leg of three freedoms: a column, and two thin rods in a plane that turns with it (Horn 1977).

Page numbers are those of B. K. P. Horn, K. Hirokawa and V. V. Vazirani, "Dynamics of a Three Degree of
Freedom Kinematic Chain", Memo 478, Artificial Intelligence Laboratory, Massachusetts Institute of Technology,
1977.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any, Literal

import numpy as np

from kic.arrays import broadcast_batches, check_order, trailing
from kic.checks import Vector, assign, number, vector
from kic.classics.angles import sin_cos
from kic.classics.sizes import check_amounts, check_lengths
from kic.classics.swing import cycles, swinging
from kic.coefficients import Coefficients
from kic.dynamics import Dynamics
from kic.errors import InputError, shown
from kic.mechanism import Mechanism
from kic.parts import Body, Distance, Joint, Point

# a product of two rates, and where its coefficient is in P*
PRODUCTS = {"w1w1": (0, 0), "w2w2": (1, 1), "w3w3": (2, 2), "w1w2": (0, 1), "w2w3": (1, 2), "w3w1": (2, 0)}


@dataclass(frozen=True)
class Leg:
    """The leg (or arm) of three freedoms, its dynamics in closed form.

    A column turns about z (θ₁); link 2, hinged to it at the origin, leans from the vertical (θ₂, towards x
    where θ₁ = 0); link 3 is hinged to its end (θ₃, from the line of link 2). Links 2 and 3 are thin uniform
    rods that may stand aside of the column's axis, and may carry a mass at their ends. All coordinates are
    radians, all units consistent.

    Parameters
    ----------
    l2, l3 : float
        Lengths of links 2 and 3.
    m2, m3 : float
        Their masses.
    m1, R, H : float
        Mass, radius and height of the column, an upright cylinder; its height has no influence (p. 8).
    M2, M3 : float
        Masses at the end of link 2 (p. 23) and at that of link 3, the load (p. 24).
    d2, d3 : float
        Offsets δ₂ and δ₃ of links 2 and 3, both from the column's axis, along that of joint 2 (p. 28).
    gravity : (3,) float
        Acceleration of gravity, in any direction: the device may be mounted as one likes (p. 21).

    Raises
    ------
    ModelError
        For a length that is not positive, another number that is negative or not finite.

    Examples
    --------
    >>> leg = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0)
    >>> d = leg.dynamics([0.0, 1.5, 0.3])
    >>> d.I.shape, d.effort([0.5, 1.0, 0.0], [0.0, 0.0, 0.0]).shape
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
    """Names of the five bodies; the last two are the masses M2 and M3."""

    def __post_init__(self) -> None:
        check_lengths(self, "l2", "l3")
        check_amounts(self, "m1", "m2", "m3", "M2", "M3", "R", "H")
        for key in ("d2", "d3"):
            assign(self, **{key: number("Leg", key, getattr(self, key))})
        assign(self, gravity=vector("Leg", "gravity", self.gravity))

    @property
    def _moments(self) -> np.ndarray:
        """Masses of the five bodies and mean values over each (8, 5): all that the dynamics ask of a body.

        A particle stands u along link 2, v along link 3, and d aside.
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

    def point(self, q: Any, link: Literal[2, 3] = 3, s: Any = None, order: int = 2) -> Coefficients:
        """Place of a point of link 2 or 3, and its derivatives: velocity, acceleration (pp. 11, 15, 29, 31).

        Parameters
        ----------
        q : (..., 3) array_like
            θ₁, θ₂, θ₃.
        link : {2, 3}
            The link.
        s : (...) array_like, optional
            How far along it; its end if left out.
        order : {1, 2, 3}
            Highest order.

        Returns
        -------
        Coefficients
            Of x, y, z with respect to the coordinates: values (..., 3), G (..., 3, 3), H (..., 3, 3, 3), D.

        Raises
        ------
        InputError
            For another link, shape or order.

        Examples
        --------
        >>> tip = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0).point([0.0, 0.0, 0.0])
        >>> tip.values, tip.velocity([0.0, 1.0, 0.0])
        (array([0. , 0. , 0.9]), array([0.9, 0. , 0. ]))
        """
        angles, order = trailing("q", q, 3), check_order(order)
        if not isinstance(link, int | np.integer) or link not in (2, 3):
            raise InputError(f"Expected `link` to be 2 or 3, got {shown(link)}. The column is link 1.")
        length = trailing("s", (self.l2 if link == 2 else self.l3) if s is None else s)
        broadcast_batches(q=angles.shape[:-1], s=length.shape)
        u, v = (length, np.zeros_like(length)) if link == 2 else (np.full_like(length, self.l2), length)
        (S2, C2), (S23, C23) = cycles(angles[..., 1]), cycles(angles[..., 1] + angles[..., 2])
        u, v = u[..., None], v[..., None]
        out, up = (np.stack([u * a + v * b, v * b], axis=-2) for a, b in ((S2, S23), (C2, C23)))
        aside = self.d2 if link == 2 else self.d3
        return swinging(("x", "y", "z"), self.coordinates, angles[..., 0], out, up, aside, order)

    def shares(self, q: Any) -> Dynamics:
        """Dynamics of each of the five bodies by itself, from which the torques for one link come (p. 7).

        Parameters
        ----------
        q : (..., 3) array_like
            θ₁, θ₂, θ₃.

        Returns
        -------
        Dynamics
            With one batch axis more, the last, for the five `bodies`: I* (..., 5, 3, 3), P* (..., 5, 3, 3, 3)
            and load (..., 5, 3).

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> leg = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0, m1=10.0, R=0.1)
        >>> leg.shares([0.0, 1.5, 0.3]).kinetic_energy([2.0, 0.0, 0.0]).round(3)
        array([0.1  , 1.161, 3.949, 0.   , 0.   ])
        """
        angles = trailing("q", q, 3)[..., None, :]
        m, d, dd, u, uu, v, vv, uv = self._moments
        s1, c1 = sin_cos(angles[..., 0])
        s2, c2 = sin_cos(angles[..., 1])
        s3, c3 = sin_cos(angles[..., 2])
        s23, c23 = sin_cos(angles[..., 1] + angles[..., 2])
        X, Z = u * s2 + v * s23, u * c2 + v * c23
        e12 = uu * s2 * c2 + uv * (c2 * s23 + s2 * c23) + vv * s23 * c23
        e13 = uv * s2 * c23 + vv * s23 * c23
        sway = uv * s3

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
        P[..., 1, 1, 2] = P[..., 1, 2, 1] = P[..., 1, 2, 2] = -sway
        P[..., 2, 1, 1] = sway

        gx, gy, gz = self.gravity
        along, across = c1 * gx + s1 * gy, c1 * gy - s1 * gx
        load = np.stack(
            [
                X * across - d * along,
                Z * along - X * gz,
                v * c23 * along - v * s23 * gz,
            ],
            axis=-1,
        )
        return Dynamics(self.coordinates, m[:, None, None] * I, m[:, None, None, None] * P, m[:, None] * load)

    def dynamics(self, q: Any) -> Dynamics:
        """The dynamic model T = I(θ) θ̈ + Σ C_ijk(θ) θ̇_j θ̇_k + G(θ) (p. 5), all bodies together.

        Parameters
        ----------
        q : (..., 3) array_like
            θ₁, θ₂, θ₃.

        Returns
        -------
        Dynamics
            I* (..., 3, 3), P* (..., 3, 3, 3), load −G (..., 3), with `effort`, `acceleration` and
            `kinetic_energy`.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> leg = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0)
        >>> leg.dynamics([0.0, 0.0, 0.0]).acceleration([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
        Traceback (most recent call last):
        kic.errors.SingularError: I* has no inverse (condition inf): the motion of waist moves no mass. Give
        the bodies beyond it mass and inertia.
        """
        each = self.shares(q)
        return Dynamics(self.coordinates, each.I.sum(axis=-3), each.P.sum(axis=-4), each.load.sum(axis=-2))

    def velocity_coefficients(self, q: Any) -> dict[str, np.ndarray]:
        """Coefficients C_ijk of the products of rates in the torques; they depend on posture only (p. 6).

        Parameters
        ----------
        q : (..., 3) array_like
            θ₁, θ₂, θ₃.

        Returns
        -------
        dict of str to (..., 3) ndarray
            By product, "w1w1", "w2w2", "w3w3", "w1w2", "w2w3", "w3w1": its coefficients in T₁, T₂, T₃.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> Leg(l2=0.5, l3=0.4, m2=6.0, m3=0.0).velocity_coefficients([0.0, np.pi / 4, 0.0])["w1w2"].round(3)
        array([0.5, 0. , 0. ])
        """
        P = self.dynamics(q).P
        return {name: P[..., a, b] * (1 if a == b else 2) for name, (a, b) in PRODUCTS.items()}

    def motion_torques(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
        """Torques T_ij at joint i for the motion of body j, without gravity (pp. 7, 13, 19, 25, 30, 35, 41).

        Parameters
        ----------
        q, qd, qdd : (..., 3) array_like
            Coordinates, rates and accelerations.

        Returns
        -------
        (..., 3, 5) ndarray
            A column for each of the five `bodies`.

        Raises
        ------
        InputError
            For another shape, entries that are not finite, or batches that do not go together.

        Examples
        --------
        >>> leg = Leg(l2=0.5, l3=0.4, m2=6.0, m3=3.0)
        >>> leg.motion_torques([0, 0, 0], [0, 0, 0], [0, 1, 0]).round(3)
        array([[0.  , 0.  , 0.  , 0.  , 0.  ],
               [0.  , 0.5 , 1.51, 0.  , 0.  ],
               [0.  , 0.  , 0.46, 0.  , 0.  ]])
        """
        given = {"q": trailing("q", q, 3), "qd": trailing("qd", qd, 3), "qdd": trailing("qdd", qdd, 3)}
        broadcast_batches(**{name: a.shape[:-1] for name, a in given.items()})
        each = self.shares(given["q"])
        still = Dynamics(each.coordinates, each.I, each.P)
        return np.swapaxes(still.effort(given["qd"][..., None, :], given["qdd"][..., None, :]), -1, -2)

    def gravity_torques(self, q: Any) -> np.ndarray:
        """Torques ∂P/∂θᵢ with which joint i holds body j against gravity (pp. 20, 22, 26, 38, 43).

        The source prints −∂P/∂θᵢ, what gravity itself exerts, and would add that to what actuators supply.

        Parameters
        ----------
        q : (..., 3) array_like
            θ₁, θ₂, θ₃.

        Returns
        -------
        (..., 3, 5) ndarray
            A column for each of the five `bodies`.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> Leg(l2=0.5, l3=0.4, m2=2.0, m3=0.0, gravity=(0, 0, -10)).gravity_torques([0, np.pi / 2, 0])[1]
        array([-0., -5., -0., -0., -0.])
        """
        return -np.swapaxes(self.shares(q).load, -1, -2)

    def potential_energy(self, q: Any) -> np.ndarray:
        """Potential energy −Σ m g·r of all but the column, whose own is constant (pp. 21, 26, 38, 43).

        Parameters
        ----------
        q : (..., 3) array_like
            θ₁, θ₂, θ₃.

        Returns
        -------
        (...) ndarray
            Measured from the origin.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> Leg(l2=0.5, l3=0.4, m2=2.0, m3=0.0, gravity=(0, 0, -10)).potential_energy([0, 0, 0])
        np.float64(5.0)
        """
        second = ((self.m2, self.l2 / 2), (self.M2, self.l2))
        third = ((self.m3, self.l3 / 2), (self.M3, self.l3))
        moment = sum(m * np.asarray(self.point(q, 2, s, order=1).values) for m, s in second)
        moment = sum((m * np.asarray(self.point(q, 3, s, order=1).values) for m, s in third), start=moment)
        return -(moment @ np.array(self.gravity))

    def mechanism(self) -> Mechanism:
        """The same device, drawn: link 2 level along x, link 3 hanging from its end, θ = (0, 90°, 90°).

        Returns
        -------
        Mechanism
            With the same names of coordinates and bodies; M2 and M3 are at the points `end` and `tip`.

        Examples
        --------
        >>> Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0).mechanism().at([0.0, 0.0, 0.0]).value("tip").round(9) + 0.0
        array([0. , 0. , 0.9])
        """
        l2, l3, d2, d3, H = self.l2, self.l3, self.d2, self.d3, self.H
        turning, upright = self.m1 * self.R**2 / 2, self.m1 * (3 * self.R**2 + H**2) / 12
        across2, across3 = self.m2 * l2**2 / 12, self.m3 * l3**2 / 12
        y, level = (0.0, 1.0, 0.0), pi / 2
        return Mechanism(
            "leg",
            bodies=(
                Body("column", self.m1, (0.0, 0.0, -H / 2), (upright, upright, turning)),
                Body("link2", self.m2, (l2 / 2, d2, 0.0), (0.0, across2, across2)),
                Body("link3", self.m3, (l2, d3, -l3 / 2), (across3, across3, 0.0)),
            ),
            joints=(
                Joint("waist", "revolute", ("ground", "column"), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
                Joint("hip", "revolute", ("column", "link2"), (0.0, d2, 0.0), y, value=level),
                Joint("knee", "revolute", ("link2", "link3"), (l2, d3, 0.0), y, value=level),
            ),
            points=(
                Point("hub", "column", (0.0, 0.0, 0.0)),
                Point("end", "link2", (l2, d2, 0.0), self.M2),
                Point("tip", "link3", (l2, d3, -l3), self.M3),
            ),
            distances=(Distance("reach", ("hub", "tip")),),
            gravity=self.gravity,
        )
