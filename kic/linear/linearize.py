"""Linearization: how efforts change with small deviations from a motion (2-201 to 2-227)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.arguments import names_of
from kic.arrays import broadcast_batches, trailing
from kic.dynamics import Dynamics
from kic.errors import unknown
from kic.linear.modes import Modes
from kic.tables import Sheet, member


class Linearization:
    """Efforts of motions beside a nominal one: δT = K δq + C δq̇ + I* δq̈ (eqs 2-201, 2-225).

    K comes from third-order coefficients, without differences of any kind. Where a coordinate is the rate of
    nothing (ω of a body, a ball's), δq is the small turn δθ about the same axes and K the quasi-derivative;
    its rate is d(δq)/dt = δq̇ + `commutator` δq.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    K : (..., M, M)
        Stiffness ∂T/∂q, `K_inertia` and `K_load` together.
    C : (..., M, M)
        ∂T/∂q̇, `C_inertia` = q̇ᵀ(P* + P*ᵀ) (eq 2-204) and `C_load`, the damping, together.
    I : (..., M, M)
        Effective inertia ∂T/∂q̈ = I* (eq 2-203).
    K_inertia, K_load : (..., M, M)
        Share of the masses (eqs 2-216, 2-224), and of gravity, forces, springs and dampers, −∂Tᴸ/∂q (2-208).
    C_inertia, C_load : (..., M, M)
        The same of ∂T/∂q̇.
    qd, qdd : (..., M)
        Rates and accelerations of the nominal motion.
    T : (..., M)
        Its efforts.
    commutator : (..., M, M)
        What d(δq)/dt has beside δq̇: diag(0, [ω]×) for a body's x y z wx wy wz, 0 for true coordinates.
    holonomic : bool
        Whether all coordinates have values.
    time : str
        Unit of time.

    Examples
    --------
    >>> import kic
    >>> lin = kic.load("horn-two-link").at([-1.5, 0.0]).linearize()
    >>> lin.K.round(3)
    array([[19.571,  4.893],
           [ 4.893,  4.893]])
    >>> lin.effort([0.001, 0.0]).round(6)
    array([0.019571, 0.004893])
    """

    def __init__(
        self,
        dynamics: Dynamics,
        stiffness: tuple[np.ndarray, np.ndarray],
        qd: np.ndarray,
        qdd: np.ndarray,
        commutator: np.ndarray,
        friction: np.ndarray,
        time: str = "s",
    ) -> None:
        d = dynamics
        self.time = time
        self.coordinates, self.holonomic = d.coordinates, d.holonomic
        M = len(self.coordinates)
        batch = broadcast_batches(
            model=d.batch, qd=qd.shape[:-1], qdd=qdd.shape[:-1], stiffness=stiffness[0].shape[:-2]
        )

        def whole(a: np.ndarray, rank: int) -> np.ndarray:
            return np.broadcast_to(a, (*batch, *(M,) * rank))

        self.qd, self.qdd = whole(qd, 1), whole(qdd, 1)
        self.I = whole(d.I, 2)
        self.inertia_error = None if d.inertia_error is None else whole(d.inertia_error, 1)
        self.T = whole(d.effort(qd, qdd) + friction, 1)
        self.K_inertia, self.K_load = whole(stiffness[0], 2), whole(stiffness[1], 2)
        symmetric = d.P + np.swapaxes(d.P, -1, -2)
        self.C_inertia = whole(np.einsum("...kab,...a->...kb", symmetric, qd), 2)
        self.C_load = whole(d.damping, 2)
        self.commutator = whole(commutator, 2)

    @property
    def K(self) -> np.ndarray:
        """Stiffness ∂T/∂q (..., M, M)."""
        return self.K_inertia + self.K_load

    @property
    def C(self) -> np.ndarray:
        """∂T/∂q̇ (..., M, M)."""
        return self.C_inertia + self.C_load

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.T.shape[:-1]

    def effort(self, dq: Any = None, dqd: Any = None, dqdd: Any = None) -> np.ndarray:
        """Change of the efforts for small deviations: δT = K δq + C δq̇ + I* δq̈ (eq 2-201).

        Parameters
        ----------
        dq, dqd, dqdd : (..., M) array_like, optional
            Deviations of coordinates, rates and accelerations; none if left out.

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
        >>> kic.load("horn-two-link").at([0.0, 0.0]).linearize().effort(dqdd=[1.0, 0.0]).round(3)
        array([2.667, 0.833])
        """
        M = len(self.coordinates)
        total = np.zeros_like(self.T)
        for name, given, by in (("dq", dq, self.K), ("dqd", dqd, self.C), ("dqdd", dqdd, self.I)):
            if given is not None:
                x = trailing(name, given, M)
                broadcast_batches(linearization=self.batch, **{name: x.shape[:-1]})
                total = total + np.einsum("...kn,...n->...k", by, x)
        return total

    def rate(self, qddd: Any) -> np.ndarray:
        """Rate of the efforts along the nominal motion: Ṫ = K q̇ + C q̈ + I* q⃛ (as in eq 2-239).

        Parameters
        ----------
        qddd : (..., M) array_like
            Jerks of the coordinates.

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
        >>> lin = kic.load("horn-two-link").at([0.0, 0.0]).linearize([0.0, 0.0], [0.0, 0.0])
        >>> lin.rate([1.0, 0.0]).round(3)
        array([2.667, 0.833])
        """
        return self.effort(self.qd, self.qdd, qddd)

    def acceleration(self, dq: Any = None, dqd: Any = None, effort: Any = None) -> np.ndarray:
        """Change of the accelerations: δq̈ = I*⁻¹ (δT − K δq − C δq̇).

        Parameters
        ----------
        dq, dqd, effort : (..., M) array_like, optional
            Deviations of coordinates, rates and efforts; none if left out.

        Returns
        -------
        (..., M)

        Raises
        ------
        SingularError
            Where I* can not be inverted.

        Examples
        --------
        >>> import kic
        >>> lin = kic.load("horn-two-link").at([-1.5, 0.0]).linearize()
        >>> lin.acceleration([0.001, 0.0]).round(5)
        array([-0.01258,  0.01678])
        """
        M = len(self.coordinates)
        net = -self.effort(dq, dqd)
        if effort is not None:
            net = net + trailing("effort", effort, M)
        return self.still.acceleration(np.zeros(M), net)

    @property
    def still(self) -> Dynamics:
        """The model of small motions without stiffness and damping: I* alone."""
        zero = np.zeros((*self.batch, *(len(self.coordinates),) * 3))
        return Dynamics(
            self.coordinates, self.I, zero, holonomic=self.holonomic, inertia_error=self.inertia_error
        )

    def held(self, names: str | Iterable[str]) -> Linearization:
        """The same with some coordinates held: what is left are the others, in their order.

        Parameters
        ----------
        names : str or list of str
            Coordinates that keep to the nominal motion.

        Returns
        -------
        Linearization

        Raises
        ------
        UnknownNameError
            For a name that is no coordinate.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([-1.5, 0.0]).linearize().held("elbow").K.round(3)
        array([[19.571]])
        """
        still = names_of(names, "names")
        for name in still:
            if name not in self.coordinates:
                raise unknown("coordinate", name, "this linearization", self.coordinates)
        kept = [n for n, name in enumerate(self.coordinates) if name not in still]
        part = object.__new__(Linearization)
        part.coordinates = tuple(self.coordinates[n] for n in kept)
        part.holonomic, part.time = self.holonomic, self.time
        part.inertia_error = None if self.inertia_error is None else self.inertia_error[..., kept]
        for name in ("qd", "qdd", "T"):
            setattr(part, name, getattr(self, name)[..., kept])
        for name in ("I", "K_inertia", "K_load", "C_inertia", "C_load", "commutator"):
            setattr(part, name, getattr(self, name)[..., kept, :][..., kept])
        return part

    def modes(self) -> Modes:
        """Small motions about the nominal one while its efforts stay as they are: frequencies and shapes.

        Returns
        -------
        Modes
            Eigenvalues (..., 2M) of the state matrix, and natural frequencies (..., M). About a motion they
            are those of the moment.

        Raises
        ------
        SingularError
            Where I* can not be inverted.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([-1.5707963267948966, 0.0]).linearize().modes().natural.round(3)
        array([2.68 , 7.189])
        """
        self.still._check_regular()
        return Modes(self.coordinates, self.I, self.C, self.K, self.commutator, self.time)

    def sheet(self) -> Sheet:
        """Labelled tables, to print or to show."""
        names = self.coordinates
        sheet = Sheet(f"linearization in {', '.join(names)}: δT = K δq + C δq̇ + I* δq̈")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        motion = np.stack([x[index] for x in (self.qd, self.qdd, self.T)], axis=-1)
        sheet.matrix("nominal motion", names, ["q̇", "q̈", "T"], motion)
        sheet.matrix("K = ∂T/∂q", names, names, self.K[index])
        for caption, part in (
            ("K of the masses", self.K_inertia),
            ("K of the loads", self.K_load),
        ):
            if self.K_inertia[index].any() and self.K_load[index].any():
                sheet.matrix(caption, names, names, part[index])
        sheet.matrix("C = ∂T/∂q̇", names, names, self.C[index])
        sheet.matrix("I* = ∂T/∂q̈", names, names, self.I[index])
        if self.commutator[index].any():
            sheet.matrix("commutator, d(δq)/dt − δq̇ for δq", names, names, self.commutator[index])
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
