"""A dynamic model in named parts, moving and turning apart, of which any can be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from kic.arguments import integer
from kic.arrays import broadcast_batches, trailing
from kic.classics.dropping import DroppingCost, Survey
from kic.classics.entries import PARTS, Rate, entries, listed, said
from kic.dynamics import Dynamics
from kic.errors import InputError, SingularError, shown, unknown
from kic.products import form
from kic.tables import Sheet, member

MIXED = ("both", "tran", "rot", "none")


class SplitDynamics:
    """T = (D_tran + D_rot) q̈ + H_tran(q̇) + H_rot(q̇) + B q̇ + G in named parts, any of which can be dropped.

    Made by `split`. Immutable: `without` and `simplified` make others.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    D_tran, D_rot : (..., M, M) ndarray
        Inertia of joint pairs by moving and by turning the bodies (30): together I*.
    P_tran, P_rot : (..., M, M, M) ndarray
        What a pair of rates takes, ``H_i = Σ P[i, p, q] q̇_p q̇_q``, symmetric in the pair. In holonomic
        coordinates each is the Christoffel tensor of its D, and together they are P*.
    G : (..., M) ndarray
        What holds the weight (33), and any other loads of the model: −Tᴸ.
    damping : (..., M, M) ndarray
        Matrix B of the model's dampers, which the document has not; it is never dropped.
    dropped : tuple of str
        What was dropped, in words.
    whole : SplitDynamics
        The model of which parts were dropped; itself if none were.

    Examples
    --------
    >>> import kic
    >>> from kic.classics import split
    >>> arm = split(kic.load("horn-two-link").at([0.3, 0.5]))
    >>> arm.effort([1.0, 2.0], [0.0, 0.0]).round(4)
    array([15.5574,  3.6571])
    >>> arm.without("H_rot").without("G").effort([1.0, 2.0], [0.0, 0.0]).round(4)
    array([-1.9177,  0.2397])
    """

    def __init__(
        self,
        coordinates: tuple[str, ...],
        parts: Mapping[str, np.ndarray],
        damping: np.ndarray,
        dropped: tuple[str, ...] = (),
        whole: SplitDynamics | None = None,
        no_arm: str = "",
    ) -> None:
        self.coordinates = coordinates
        self.D_tran, self.D_rot, self.P_tran, self.P_rot, self.G = (parts[name] for name in PARTS)
        self.damping = damping
        self.dropped = dropped
        self.whole = self if whole is None else whole
        self._no_arm = no_arm

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.G.shape[:-1]

    def H_tran(self, qd: Any) -> np.ndarray:
        """Centrifugal and Coriolis efforts of moving the bodies (31).

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> from kic.classics import split
        >>> split(kic.load("horn-two-link").at([0.3, 0.5])).H_tran([1.0, 2.0]).round(4)
        array([-1.9177,  0.2397])
        """
        return self._velocity(self.P_tran, qd)

    def H_rot(self, qd: Any) -> np.ndarray:
        """Centrifugal, Coriolis and gyroscopic efforts of turning the bodies (32).

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> from kic.classics import split
        >>> split(kic.load("horn-two-link").at([0.3, 0.5])).H_rot([1.0, 2.0])
        array([0., 0.])
        """
        return self._velocity(self.P_rot, qd)

    def _velocity(self, P: np.ndarray, qd: Any) -> np.ndarray:
        v = trailing("qd", qd, len(self.coordinates))
        broadcast_batches(model=self.batch, qd=v.shape[:-1])
        return form(P, v, v)

    def _left(self) -> Dynamics:
        """The parts that are left, added."""
        inertia, power = self.D_tran + self.D_rot, self.P_tran + self.P_rot
        return Dynamics(self.coordinates, inertia, power, -self.G, self.damping)

    def effort(self, qd: Any, qdd: Any) -> np.ndarray:
        """Efforts that a motion needs, by the parts that are left (29).

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations of the coordinates.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> from kic.classics import split
        >>> split(kic.load("horn-two-link").at([0.0, 0.0])).effort([0.0, 0.0], [0.0, 0.0])
        array([19.62 ,  4.905])
        """
        return self._left().effort(qd, qdd)

    def acceleration(self, qd: Any, effort: Any) -> np.ndarray:
        """Accelerations that efforts give, by the parts that are left.

        Parameters
        ----------
        qd, effort : (..., M) array_like
            Rates of the coordinates and efforts at them.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.
        SingularError
            Where the inertia that is left is not positive definite.

        Examples
        --------
        >>> import kic
        >>> from kic.classics import split
        >>> split(kic.load("horn-two-link").at([0.0, 0.0])).acceleration([0, 0], [19.62, 4.905])
        array([0., 0.])
        """
        try:
            return self._left().acceleration(qd, effort)
        except SingularError as error:
            if not self.dropped:
                raise
            raise SingularError(
                f"The inertia that is left after dropping {'; '.join(self.dropped)} is not positive definite "
                f"(condition {error.numbers['condition']:.1e}): no acceleration follows from it. Drop less.",
                **error.numbers,
            ) from None

    def without(
        self, part: str, at: str | Iterable[str] | None = None, by: str | Iterable[Rate] | None = None
    ) -> SplitDynamics:
        """The model without one of its parts, or without that part at or by some joints only.

        Parameters
        ----------
        part : {"D_tran", "D_rot", "H_tran", "H_rot", "G"}
            The part.
        at : str or list of str, optional
            Coordinates whose efforts do without; by default all.
        by : str or list of str, optional
            Coordinates by whose motion it comes; by default all. Of D the inertia of the pairs of `at` and
            `by`, both ways round, for a pair has one. Of H the terms with a rate of any of them; a pair of
            names in the list, ("waist", "elbow"), is the term with the product of these two rates alone.

        Returns
        -------
        SplitDynamics

        Raises
        ------
        UnknownNameError
            For a part or a coordinate that is not there.
        InputError
            If G is asked by joints, D by pairs of rates, or something is no name.

        Examples
        --------
        >>> import kic
        >>> from kic.classics import split
        >>> arm = split(kic.load("horn-two-link").at([0.3, 0.5]))
        >>> arm.without("D_tran", at="shoulder", by="elbow").D_tran.round(3)
        array([[2.378, 0.   ],
               [0.   , 0.25 ]])
        >>> arm.without("H_tran", by=[("shoulder", "elbow")]).H_tran([1.0, 2.0]).round(4)
        array([-0.9589,  0.2397])
        """
        if not isinstance(part, str) or part not in PARTS:
            raise unknown("part", part, "split dynamics", PARTS)
        at, by = (None if names is None else listed(names) for names in (at, by))
        mask = entries(self.coordinates, part, at, by)
        return self._less({part: mask}, part + said("at", at) + said("by", by))

    def simplified(
        self, first: int = 3, mixed: Literal["both", "tran", "rot", "none"] = "both"
    ) -> SplitDynamics:
        """The document's simplified model of an arm (p 17): its first joints move, its last ones turn.

        Inertia of pairs among the first joints is D_tran alone, among the others D_rot alone. Velocity parts
        are kept; drop those that `survey` finds small with `without`.

        Parameters
        ----------
        first : int
            How many joints count as first.
        mixed : {"both", "tran", "rot", "none"}
            What stays of pairs of a first joint and another, of which the document says nothing.

        Returns
        -------
        SplitDynamics

        Raises
        ------
        InputError
            For what is no serial arm of revolute joints in its own coordinates, or has no joints beyond the
            first.

        Examples
        --------
        >>> import kic
        >>> from kic.classics import split
        >>> arm = split(kic.load("lee-puma").at([0.3, -0.6, 1.1, 0.8, -0.9, 0.2]))
        >>> arm.simplified().dropped
        ('D_rot among joint1, joint2, joint3; D_tran among joint4, joint5, joint6',)
        """
        if self._no_arm:
            raise InputError(
                "The document's simplified model is one of a serial arm of revolute joints in its own "
                f"coordinates; of this mechanism {self._no_arm}. Drop parts by name: `without`."
            )
        size = len(self.coordinates)
        first = integer("first", first, 1, size - 1)
        if not isinstance(mixed, str) or mixed not in MIXED:
            said = ", ".join(map(repr, MIXED))
            raise InputError(f"Expected `mixed` to be one of {said}, got {shown(mixed)}.")
        near = np.arange(size) < first
        between = np.not_equal.outer(near, near)
        lost = {
            "D_rot": np.logical_and.outer(near, near) | (between & (mixed in ("tran", "none"))),
            "D_tran": np.logical_and.outer(~near, ~near) | (between & (mixed in ("rot", "none"))),
        }
        words = f"D_rot among {', '.join(self.coordinates[:first])}"
        words += f"; D_tran among {', '.join(self.coordinates[first:])}"
        gone = {"both": "", "tran": "D_rot", "rot": "D_tran", "none": "D_rot and D_tran"}[mixed]
        return self._less(lost, words + (f"; {gone} between these" if gone else ""))

    def cost(self, qd: Any, qdd: Any) -> DroppingCost:
        """What the dropped parts cost: the effort that is missing, over a motion.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations at the postures of the batch: the motion.

        Returns
        -------
        DroppingCost
            Largest and RMS error of every effort, and its share of that effort's peak. Printed, it is a
            table.

        Raises
        ------
        InputError
            For another shape or entries that are not finite, or a motion without postures.

        Examples
        --------
        >>> import kic
        >>> import numpy as np
        >>> from kic.classics import split
        >>> t = np.linspace(0.0, 1.0, 101)[:, None]
        >>> q, qd, qdd = np.sin(t + [0, 1]), np.cos(t + [0, 1]), -np.sin(t + [0, 1])
        >>> arm = split(kic.load("horn-two-link").at(q))
        >>> arm.without("D_rot").cost(qd, qdd)
        dropped: D_rot
        <BLANKLINE>
        efforts and their errors over 101 postures
                    largest error  RMS error  peak effort  largest / peak
          shoulder        0.21602    0.16218      16.911         0.012774
          elbow           0.1459     0.12012       3.3609        0.043411
        """
        effort = self.whole.effort(qd, qdd)
        return DroppingCost(self.coordinates, self.dropped, effort, self.effort(qd, qdd) - effort)

    def survey(self, qd: Any, qdd: Any) -> Survey:
        """What each part would cost if it alone were dropped, over a motion: which can be spared.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations at the postures of the batch: the motion.

        Returns
        -------
        Survey
            A cost for each of the five parts. Printed, it is a table of shares of the peak effort.

        Raises
        ------
        InputError
            As `cost`.

        Examples
        --------
        >>> import kic
        >>> from kic.classics import split
        >>> arm = split(kic.load("horn-two-link").at([[0.0, 0.0], [0.0, 1.5]]))
        >>> arm.survey([1.0, 1.0], [0.0, 0.0]).share.round(3).tolist()
        [[0.0, 0.0], [0.0, 0.0], [0.076, 0.102], [0.0, 0.0], [1.0, 1.0]]
        """
        return Survey(self.whole.without(part).cost(qd, qdd) for part in PARTS)

    def _less(self, lost: Mapping[str, np.ndarray], words: str) -> SplitDynamics:
        """The model without some entries of some parts."""
        parts = dict(zip(PARTS, (self.D_tran, self.D_rot, self.P_tran, self.P_rot, self.G), strict=True))
        left = parts | {name: np.where(mask, 0, parts[name]) for name, mask in lost.items()}
        dropped = (*self.dropped, words)
        return SplitDynamics(self.coordinates, left, self.damping, dropped, self.whole, self._no_arm)

    def sheet(self) -> Sheet:
        """Labelled tables of the parts that do not depend on rates, to print or to show."""
        sheet = Sheet(f"dynamics in {', '.join(self.coordinates)}, split")
        if self.dropped:
            sheet.say(f"dropped: {'; '.join(self.dropped)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        names = self.coordinates
        sheet.matrix("D_tran (inertia, by moving)", names, names, self.D_tran[index])
        sheet.matrix("D_rot (inertia, by turning)", names, names, self.D_rot[index])
        sheet.matrix("G (holds the weight)", names, [""], self.G[index][:, None])
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
