"""First three links of the PUMA of Lee, Lee and Nigam (1982, section 4) in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from kic.classics.common import sin_cos
from kic.classics.split_dynamics import SplitDynamics
from kic.description.parts import Body
from kic.description.validation import assign
from kic.errors import invalid_part
from kic.io.dh import DHRow, from_dh
from kic.mechanism import Mechanism
from kic.numerics.arrays import as_array, reals


@dataclass(frozen=True)
class ThreeLinkPuma:
    """Waist, shoulder and elbow of the PUMA with the split dynamics of the source (pp. 17-31).

    The corrected misprints are the offset d₂, missing in the positions, the factor 2 of one term of H₁, and
    the sign of G. Terms that vanish are omitted.

    Parameters
    ----------
    masses : (3,) array_like
        Masses of the links.
    coms : (3, 3) array_like
        Centre of mass of each link in its own frame, which is at the distal end of the link.
    inertias : (3, 3) array_like
        Moments of inertia of each link about its centre of mass along the axes of its frame. The source has
        no products of inertia (p. 17).
    a2, a3, d2 : float
        Denavit-Hartenberg lengths; the defaults are those of the table on p. 18, in metres.
    g : float
        Gravity along −z.
    inertia_exception : str
        Reason for moments of inertia that no body can have; see `kic.Body`.

    Examples
    --------
    >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
    >>> arm.dynamics([0.0, 0.0, 0.0]).G.round(3)
    array([ 0.   , -8.269,  0.199])
    """

    masses: Any
    coms: Any
    inertias: Any
    a2: float = 0.4318
    a3: float = -0.02032
    d2: float = 0.14909
    g: float = 9.8062
    inertia_exception: str = ""

    coordinates = ("joint1", "joint2", "joint3")
    """Names of the joint angles."""

    def __post_init__(self) -> None:
        shapes = {"masses": (3,), "coms": (3, 3), "inertias": (3, 3), "a2": (), "a3": (), "d2": (), "g": ()}
        for key, shape in shapes.items():
            value = getattr(self, key)
            a = reals(value)
            if a is None or a.shape != shape:
                kind = f"finite numbers of shape {shape}" if shape else "a finite number"
                raise invalid_part("ThreeLinkPuma", key, f"must be {kind}", value, "Give one entry per link.")
            plain = a.tolist()
            if shape:
                plain = tuple(tuple(x) if isinstance(x, list) else x for x in plain)
            assign(self, **{key: plain})
        self._bodies()  # checks masses and inertias

    def _bodies(self) -> list[Body]:
        """Return the links as bodies in their own frames."""
        links = zip(self.masses, self.coms, self.inertias, strict=True)
        return [
            Body(f"link{k}", mass=m, com=c, inertia=I, inertia_exception=self.inertia_exception)
            for k, (m, c, I) in enumerate(links, 1)
        ]

    def dynamics(self, q: Any) -> SplitDynamics:
        """Return the split dynamics in closed form: D (pp. 21-23), H (pp. 24-31) and G (p. 31).

        Parameters
        ----------
        q : (..., 3) array_like
            Denavit-Hartenberg joint angles (rad), also complex numbers or symbols.

        Returns
        -------
        SplitDynamics
            D_tran, D_rot (..., 3, 3), P_tran, P_rot (..., 3, 3, 3) and G (..., 3). H_tran and H_rot of the
            source are quadratic forms of P_tran and P_rot in the joint velocities.

        Examples
        --------
        >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
        >>> d = arm.dynamics([0.0, 0.5, 0.3])
        >>> d.D_tran.round(3)
        array([[ 0.321,  0.06 , -0.002],
               [ 0.06 ,  0.357, -0.008],
               [-0.002, -0.008,  0.   ]])
        >>> d.H_tran([0.0, 1.0, 0.0]).round(4)
        array([ 0.1109,  0.    , -0.0026])
        """
        q = as_array("q", q, 3)
        (s2, c2), (s23, c23) = sin_cos(q[..., 1]), sin_cos(q[..., 1] + q[..., 2])
        m1, m2, m3 = self.masses
        (x1, _, z1), (x2, y2, z2), (x3, y3, z3) = self.coms
        (_, Iy1, _), (Ix2, Iy2, Iz2), (Ix3, Iy3, Iz3) = self.inertias
        # Vectors are written along the arm (C₁x + S₁y of the source), across it (C₁y − S₁x), and upwards:
        # p to the origin of frame 2, r and b to the centres of mass of links 2 and 3 from the shoulder, and
        # c to that of link 3 from the elbow.
        px, pz = self.a2 * c2, -self.a2 * s2
        rx, ry, rz = (self.a2 + x2) * c2 - y2 * s2, self.d2 + z2, -(self.a2 + x2) * s2 - y2 * c2
        cx, cz = (self.a3 + x3) * c23 + z3 * s23, z3 * c23 - (self.a3 + x3) * s23
        bx, by, bz = px + cx, self.d2 + y3, pz + cz

        D_tran = _zeros(q, 3, 3)
        D_tran[..., 0, 0] = m1 * (x1**2 + z1**2) + m2 * (rx**2 + ry**2) + m3 * (bx**2 + by**2)
        D_tran[..., 0, 1] = D_tran[..., 1, 0] = -m2 * rz * ry - m3 * bz * by
        D_tran[..., 0, 2] = D_tran[..., 2, 0] = -m3 * cz * by
        D_tran[..., 1, 1] = m2 * (rz**2 + rx**2) + m3 * (bz**2 + bx**2)
        D_tran[..., 1, 2] = D_tran[..., 2, 1] = m3 * (cz * bz + cx * bx)
        D_tran[..., 2, 2] = m3 * (cz**2 + cx**2)

        D_rot = _zeros(q, 3, 3)
        D_rot[..., 0, 0] = Iy1 + Ix2 * s2**2 + Iy2 * c2**2 + Ix3 * s23**2 + Iz3 * c23**2
        D_rot[..., 1, 1] = Iz2 + Iy3
        D_rot[..., 1, 2] = D_rot[..., 2, 1] = D_rot[..., 2, 2] = Iy3

        P_tran = _zeros(q, 3, 3, 3)
        P_tran[..., 0, 0, 1] = P_tran[..., 0, 1, 0] = m2 * rz * rx + m3 * bx * bz
        P_tran[..., 0, 0, 2] = P_tran[..., 0, 2, 0] = m3 * bx * cz
        P_tran[..., 0, 1, 1] = m2 * rx * ry + m3 * bx * by
        P_tran[..., 0, 1, 2] = P_tran[..., 0, 2, 1] = P_tran[..., 0, 2, 2] = m3 * cx * by
        P_tran[..., 1, 0, 0] = -P_tran[..., 0, 0, 1]
        P_tran[..., 2, 0, 0] = -P_tran[..., 0, 0, 2]
        elbow = m3 * (cz * px - cx * pz)
        P_tran[..., 1, 1, 2] = P_tran[..., 1, 2, 1] = P_tran[..., 1, 2, 2] = elbow
        P_tran[..., 2, 1, 1] = -elbow

        P_rot = _zeros(q, 3, 3, 3)
        upper_arm, forearm = s2 * c2 * (Ix2 - Iy2), s23 * c23 * (Ix3 - Iz3)
        P_rot[..., 0, 0, 1] = P_rot[..., 0, 1, 0] = upper_arm + forearm
        P_rot[..., 0, 0, 2] = P_rot[..., 0, 2, 0] = forearm
        P_rot[..., 1, 0, 0], P_rot[..., 2, 0, 0] = -(upper_arm + forearm), -forearm

        G = _zeros(q, 3)
        G[..., 1] = -self.g * (m2 * rx + m3 * bx)
        G[..., 2] = -self.g * m3 * cx
        return SplitDynamics(self.coordinates, D_tran, D_rot, P_tran, P_rot, G, damping=np.zeros((3, 3)))

    def mechanism(self) -> Mechanism:
        """Return the same arm as a mechanism with zero joint angles in the reference configuration.

        Returns
        -------
        Mechanism
            Joints joint1 to joint3 and bodies link1 to link3.

        Examples
        --------
        >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3).mechanism()
        >>> arm.at([0.0, 0.0, 0.0]).dynamics().load.round(3)
        array([ 0.   ,  8.269, -0.199])
        """
        rows = (0.0, -pi / 2, 0.0), (self.a2, 0.0, self.d2), (self.a3, pi / 2, 0.0)
        return from_dh(
            "three-link-puma",
            [DHRow(f"joint{k}", f"link{k}", a=a, alpha=t, d=d) for k, (a, t, d) in enumerate(rows, 1)],
            convention="standard",
            bodies=self._bodies(),
            gravity=(0.0, 0.0, -self.g),
        )


def _zeros(q: np.ndarray, *shape: int) -> np.ndarray:
    """Return zeros with the batch and the scalar type of q."""
    return np.zeros((*q.shape[:-1], *shape), q.dtype)
