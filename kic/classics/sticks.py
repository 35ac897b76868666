"""Uniform sticks hinged in a row, in one plane: what they are, where they are, and the same arm drawn."""

from __future__ import annotations

from math import pi
from typing import Any, ClassVar

import numpy as np

from kic.arrays import trailing
from kic.checks import GROUND, assign, number
from kic.classics.angles import beyond, cos, sin
from kic.classics.sizes import check_amounts, check_lengths
from kic.mechanism import Mechanism
from kic.parts import Body, Distance, Joint, Point

JOINTS = ("shoulder", "elbow", "wrist")


class Sticks:
    """Uniform sticks of length l and mass m in a row from the origin; the base of `TwoLink` and `ThreeLink`.

    Angles are relative, counterclockwise, all 0 with the arm along x; gravity pulls along −y. Questions take
    batches of postures, and in all but the inverse ones complex numbers and symbols, too.
    """

    size: ClassVar[int]
    # the posture in which `mechanism` is drawn: joint angles in quarter turns
    quarters: ClassVar[tuple[int, ...]]
    g: float

    def __post_init__(self) -> None:
        check_lengths(self, *(f"l{k + 1}" for k in range(self.size)))
        given = (f"m{k + 1}" for k, mass in enumerate(self.masses) if mass is not None)
        check_amounts(self, *given)
        assign(self, g=number(type(self).__name__, "g", self.g))

    @property
    def lengths(self) -> tuple[float, ...]:
        """Lengths of the sticks."""
        return tuple(getattr(self, f"l{k + 1}") for k in range(self.size))

    @property
    def masses(self) -> tuple[float | None, ...]:
        """Masses of the sticks; None where not given."""
        return tuple(getattr(self, f"m{k + 1}") for k in range(self.size))

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the joints in `mechanism` and `dynamics`."""
        return JOINTS[: self.size]

    @property
    def label(self) -> str:
        """The arm in a message."""
        return f"{type(self).__name__}({', '.join(f'l{k + 1}={x:g}' for k, x in enumerate(self.lengths))})"

    def links(self, q: Any) -> np.ndarray:
        """The sticks as vectors, from hinge to hinge (p. 4).

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad), each from the line of the stick before.

        Returns
        -------
        (..., n, 2)
            x and y of each.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(2.0, 1.0).links([0.0, 0.0]).tolist()
        [[2.0, 0.0], [1.0, 0.0]]
        """
        a = np.cumsum(trailing("q", q, self.size), axis=-1)
        return np.stack([cos(a), sin(a)], axis=-1) * np.array(self.lengths)[:, None]

    def tip(self, q: Any) -> np.ndarray:
        """Position of the tip (pp. 4, 20).

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).

        Returns
        -------
        (..., 2)
            x and y.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(2.0, 1.0).tip([0.0, 0.0])
        array([3., 0.])
        """
        return self.links(q).sum(axis=-2)

    def jacobian(self, q: Any) -> np.ndarray:
        """Derivatives of the tip by the joint angles: each joint turns all that lies beyond it.

        Parameters
        ----------
        q : (..., n) array_like
            Joint angles (rad).

        Returns
        -------
        (..., 2, n)
            Rows x, y; of `ThreeLink` (..., 3, 3), with the direction Phi as third row.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(2.0, 1.0).jacobian([0.0, 0.0])[1].tolist()
        [3.0, 1.0]
        """
        x, y = np.moveaxis(self.links(q), -1, 0)
        return np.stack([-beyond(y), beyond(x)], axis=-2)

    def mechanism(self) -> Mechanism:
        """The same arm drawn, to be asked anything: `TwoLink` stretched along x, `ThreeLink` as a stair.

        Returns
        -------
        Mechanism
            Bodies link1 …, joints shoulder, elbow (and wrist), points base and tip, distance reach.

        Examples
        --------
        >>> from kic.classics import TwoLink
        >>> TwoLink(1.0, 0.5).mechanism().at([0.0, 0.0]).coefficients("tip", order=3).D.shape
        (3, 2, 2, 2)
        """
        bodies, joints, before, x, y = [], [], GROUND, 0.0, 0.0
        for k, (length, mass) in enumerate(zip(self.lengths, self.masses, strict=True)):
            name, ties = f"link{k + 1}", (before, f"link{k + 1}")
            c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[sum(self.quarters[: k + 1]) % 4]
            across = None if mass is None else mass * length**2 / 12
            inertia = None if across is None else (s**2 * across, c**2 * across, across)
            com = (x + c * length / 2, y + s * length / 2, 0.0)
            bodies.append(Body(name, mass=mass, com=com, inertia=inertia))
            angle = self.quarters[k] * pi / 2
            joints.append(Joint(JOINTS[k], "revolute", ties, (x, y, 0.0), (0.0, 0.0, 1.0), value=angle))
            before, x, y = name, x + c * length, y + s * length
        return Mechanism(
            f"{('two', 'three')[self.size - 2]}-link",
            bodies=tuple(bodies),
            joints=tuple(joints),
            points=(Point("base", GROUND, (0.0, 0.0, 0.0)), Point("tip", before, (x, y, 0.0))),
            distances=(Distance("reach", ("base", "tip")),),
            gravity=(0.0, -self.g, 0.0),
        )
