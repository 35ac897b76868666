"""The first three links of Lee, Lee and Nigam's PUMA (1982, section 4) in closed form, misprints mended."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, reals, trailing
from kic.checks import assign
from kic.classics.angles import sin_cos
from kic.dh import DHRow, from_dh
from kic.errors import ModelError, shown
from kic.mechanism import Mechanism
from kic.parts import Body

Vector = tuple[Any, Any, Any]


@dataclass(frozen=True)
class ThreeLinkPuma:
    """Waist, shoulder and elbow of the PUMA as the document works them out (pp 17-31), split as in `split`.

    Nothing depends on the waist angle, so that vectors are written along the arm, across it and up: x stands
    for the document's C₁x + S₁y, y for its C₁y − S₁x. Mended are the offset d₂, which its positions lack, the
    factor 2 of one term of H₁ and the sign of G; terms that vanish are left out.

    Parameters
    ----------
    masses : (3,) array_like
        Masses of the links.
    centres : (3, 3) array_like
        Centre of mass of each link in its own frame, at the end of the link.
    moments : (3, 3) array_like
        Moments of inertia of each about its centre of mass, along the axes of its frame (p 17: no products).
    a2, a3, d2 : float
        Lengths; by default those of the table of p 18, in metres.
    g : float
        Acceleration of gravity, downwards.
    inertia_exception : str
        Why a link may have moments that no body has; see `kic.Body`.

    Raises
    ------
    ModelError
        For another shape or kind of numbers, a negative mass, or moments that no body has without an
        `inertia_exception`.

    Examples
    --------
    >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
    >>> arm.G([0.0, 0.0, 0.0]).round(3)
    array([ 0.   , -8.269,  0.199])
    """

    masses: Any
    centres: Any
    moments: Any
    a2: float = 0.4318
    a3: float = -0.02032
    d2: float = 0.14909
    g: float = 9.8062
    inertia_exception: str = ""

    def __post_init__(self) -> None:
        shapes = {"masses": (3,), "centres": (3, 3), "moments": (3, 3)}
        for name in ("masses", "centres", "moments", "a2", "a3", "d2", "g"):
            given, shape = getattr(self, name), shapes.get(name, ())
            a = reals(given)
            if a is None or a.shape != shape:
                wanted = f"finite numbers of shape {shape}" if shape else "a finite number"
                raise ModelError(
                    f"ThreeLinkPuma: expected `{name}` to be {wanted}, got {shown(given)}.", key=name
                )
            assign(self, **{name: _frozen(a.tolist())})
        self._links()  # each refuses what no body can be

    def _links(self) -> list[Body]:
        """The links as bodies, in their own frames."""
        links = zip(self.masses, self.centres, self.moments, strict=True)
        return [
            Body(f"link{k}", mass=m, com=c, inertia=I, inertia_exception=self.inertia_exception)
            for k, (m, c, I) in enumerate(links, 1)
        ]

    def _places(self, q: Any) -> tuple[Vector, Vector, Vector, Vector]:
        """p₂, c₂, c₃, r₃ along the arm, across it and up; c of link s starts at the origin of frame s − 1."""
        q = trailing("q", q, 3)
        two, three = q[..., 1], q[..., 1] + q[..., 2]
        (s, c), (s23, c23) = sin_cos(two), sin_cos(three)
        (x2, y2, z2), (x3, y3, z3) = self.centres[1:]
        across = self.d2 + 0 * c
        p2 = self.a2 * c, across, -self.a2 * s
        c2 = (self.a2 + x2) * c - y2 * s, across + z2, -(self.a2 + x2) * s - y2 * c
        c3 = (self.a3 + x3) * c23 + z3 * s23, y3 + 0 * c, z3 * c23 - (self.a3 + x3) * s23
        return p2, c2, c3, (p2[0] + c3[0], p2[1] + c3[1], p2[2] + c3[2])

    def _rates(self, q: Any, qd: Any) -> tuple[Any, Any, Any]:
        """The three rates."""
        v = trailing("qd", qd, 3)
        broadcast_batches(q=np.shape(q)[:-1], qd=v.shape[:-1])
        return v[..., 0], v[..., 1], v[..., 2]

    def D_tran(self, q: Any) -> np.ndarray:
        """Inertia by moving the links (pp 21-23).

        Parameters
        ----------
        q : (..., 3) array_like
            Joint angles of the Denavit-Hartenberg rows.

        Returns
        -------
        (..., 3, 3)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
        >>> arm.D_tran([0.0, 0.5, 0.3]).round(3)
        array([[ 0.321,  0.06 , -0.002],
               [ 0.06 ,  0.357, -0.008],
               [-0.002, -0.008,  0.   ]])
        """
        _, r2, c3, r3 = self._places(q)
        (x1, _, z1), (m1, m2, m3) = self.centres[0], self.masses
        D11 = m1 * (x1**2 + z1**2) + m2 * (r2[0] ** 2 + r2[1] ** 2) + m3 * (r3[0] ** 2 + r3[1] ** 2)
        D12 = -m2 * r2[2] * r2[1] - m3 * r3[2] * r3[1]
        D13 = -m3 * c3[2] * r3[1]
        D22 = m2 * (r2[2] ** 2 + r2[0] ** 2) + m3 * (r3[2] ** 2 + r3[0] ** 2)
        D23 = m3 * (c3[2] * r3[2] + c3[0] * r3[0])
        D33 = m3 * (c3[2] ** 2 + c3[0] ** 2)
        return _matrix(((D11, D12, D13), (D12, D22, D23), (D13, D23, D33)))

    def D_rot(self, q: Any) -> np.ndarray:
        """Inertia by turning the links (pp 21-23).

        Parameters
        ----------
        q : (..., 3) array_like
            Joint angles of the Denavit-Hartenberg rows.

        Returns
        -------
        (..., 3, 3)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
        >>> arm.D_rot([0.0, 0.5, 0.3]).round(4)
        array([[0.3, 0. , 0. ],
               [0. , 0.2, 0.1],
               [0. , 0.1, 0.1]])
        """
        q = trailing("q", q, 3)
        two, three = q[..., 1], q[..., 1] + q[..., 2]
        (s, c), (s23, c23) = sin_cos(two), sin_cos(three)
        one, (x2, y2, z2), (x3, y3, z3) = self.moments
        D11 = one[1] + x2 * s**2 + y2 * c**2 + x3 * s23**2 + z3 * c23**2
        return _matrix(((D11, 0.0, 0.0), (0.0, z2 + y3, y3), (0.0, y3, y3)))

    def H_tran(self, q: Any, qd: Any) -> np.ndarray:
        """Centrifugal and Coriolis torques of moving the links (pp 24-30).

        Parameters
        ----------
        q, qd : (..., 3) array_like
            Joint angles of the Denavit-Hartenberg rows, and their rates.

        Returns
        -------
        (..., 3)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
        >>> arm.H_tran([0.0, 0.0, 0.0], [0.0, 1.0, 0.0]).round(4)
        array([0.1257, 0.    , 0.    ])
        """
        p2, c2, c3, r3 = self._places(q)
        w1, w2, w3 = self._rates(q, qd)
        _, m2, m3 = self.masses
        elbow = w3 * (w3 + 2 * w2)
        H1 = m2 * (c2[0] * c2[1] * w2**2 + 2 * c2[2] * c2[0] * w1 * w2)
        H1 = H1 + m3 * (r3[0] * r3[1] * w2**2 + c3[0] * r3[1] * elbow)
        H1 = H1 + 2 * m3 * r3[0] * w1 * (r3[2] * w2 + c3[2] * w3)
        H2 = -(m2 * c2[2] * c2[0] + m3 * r3[2] * r3[0]) * w1**2
        H2 = H2 + m3 * (c3[2] * r3[0] - r3[2] * c3[0]) * elbow
        H3 = m3 * (-c3[2] * r3[0] * w1**2 + (c3[0] * p2[2] - c3[2] * p2[0]) * w2**2)
        return _vector((H1, H2, H3))

    def H_rot(self, q: Any, qd: Any) -> np.ndarray:
        """Centrifugal, Coriolis and gyroscopic torques of turning the links (pp 26-31).

        Parameters
        ----------
        q, qd : (..., 3) array_like
            Joint angles of the Denavit-Hartenberg rows, and their rates.

        Returns
        -------
        (..., 3)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
        >>> bool((arm.H_rot([0.0, 0.5, 0.3], [1.0, 1.0, 1.0]) == 0).all())  # balls are the same all round
        True
        """
        q = trailing("q", q, 3)
        w1, w2, w3 = self._rates(q, qd)
        two, three = q[..., 1], q[..., 1] + q[..., 2]
        (s, c), (s23, c23) = sin_cos(two), sin_cos(three)
        (x2, y2, _), (x3, _, z3) = self.moments[1:]
        upper, fore = s * c * (x2 - y2), s23 * c23 * (x3 - z3)
        return _vector((2 * w1 * (upper * w2 + fore * (w2 + w3)), -(upper + fore) * w1**2, -fore * w1**2))

    def G(self, q: Any) -> np.ndarray:
        """Torques that hold the weight (p 31).

        Parameters
        ----------
        q : (..., 3) array_like
            Joint angles of the Denavit-Hartenberg rows.

        Returns
        -------
        (..., 3)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
        >>> arm.G([0.3, 0.0, 0.0]).round(3)
        array([ 0.   , -8.269,  0.199])
        """
        _, c2, c3, r3 = self._places(q)
        _, m2, m3 = self.masses
        return _vector((0.0, -self.g * (m2 * c2[0] + m3 * r3[0]), -self.g * m3 * c3[0]))

    def mechanism(self) -> Mechanism:
        """The same arm, drawn: joints joint1 to joint3, links link1 to link3, at the angles 0.

        Returns
        -------
        Mechanism

        Examples
        --------
        >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3).mechanism()
        >>> arm.at([0.0, 0.0, 0.0]).dynamics().load.round(3)
        array([ 0.   ,  8.269, -0.199])
        """
        rows = (0.0, -pi / 2, 0.0), (self.a2, 0.0, self.d2), (self.a3, pi / 2, 0.0)
        return from_dh(
            "three-link-puma",
            [DHRow(f"joint{k}", f"link{k}", a=a, alpha=t, s=d) for k, (a, t, d) in enumerate(rows, 1)],
            "standard",
            self._links(),
            gravity=(0.0, 0.0, -self.g),
        )


def _frozen(value: Any) -> Any:
    """Lists as tuples."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _vector(entries: tuple[Any, ...]) -> np.ndarray:
    """Entries (...,) side by side, (..., n)."""
    return np.stack(np.broadcast_arrays(*entries), axis=-1)


def _matrix(rows: tuple[tuple[Any, ...], ...]) -> np.ndarray:
    """Entries (...,) of a square matrix as (..., n, n)."""
    flat = _vector(sum(rows, ()))
    return flat.reshape(*flat.shape[:-1], len(rows), len(rows))
