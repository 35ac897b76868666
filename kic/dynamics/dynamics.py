"""Dynamics: I*, P* and loads in named coordinates, efforts and accelerations, transfer and sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from kic.display import Summary, largest_of, member
from kic.errors import InputError, SingularError
from kic.kinematics import jets
from kic.kinematics.coefficients import Coefficients, expect, tensor
from kic.kinematics.scaling import moved_error
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_finite, one_batch

# an inertia matrix worse than this has no digit left in its inverse
WORST_CONDITION = 1e15


class Dynamics:
    """The dynamic model T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ in named coordinates.

    P* comes in the form whose Coriolis matrix C_kb = q̇_a P*_kab makes Ṁ − 2C skew, and for which
    ∂I*_lm/∂q_n = P*_lnm + P*_mnl. In holonomic coordinates it is symmetric in its last two indices: the
    Christoffel symbols of the first kind. The angular velocity of a ball joint is no rate of a
    coordinate; there it is not symmetric, and must not be made so.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    I : (..., M, M)
        Effective inertia I* (eq 2-196).
    P : (..., M, M, M)
        Inertia power P* (eq 2-197).
    load : (..., M)
        Generalized applied load Tᴸ: gravity, forces, springs (eqs 2-125, 2-147).
    damping : (..., M, M)
        Matrix B of the dampers, whose load is −B q̇.
    holonomic : bool
        Whether all coordinates have values.
    inertia_error : (..., M) or None
        Estimated round-off in the diagonal of I*, from the masses of the mechanism; inertia within 64 times
        this counts as none. None where I* was given as an array: only a condition above 1e15 is refused.
    efforts : tuple of str
        Names of the coordinates at which the efforts come: those of the model, unless a transfer had
        another left side. Then I*, P*, damping have a row, the load an entry, for each of these names.

    Examples
    --------
    >>> import kic
    >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
    >>> d.I
    array([[2.66666667, 0.83333333],
           [0.83333333, 0.33333333]])
    """

    def __init__(
        self,
        coordinates: Iterable[str],
        I: Any,
        P: Any,
        load: Any = None,
        damping: Any = None,
        holonomic: bool = True,
        efforts: Iterable[str] | None = None,
        inertia_error: np.ndarray | Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.coordinates = names_of(coordinates, "coordinates")
        self.efforts = self.coordinates if efforts is None else names_of(efforts, "efforts")
        height, width = len(self.efforts), len(self.coordinates)
        self.I = tensor("I", I, height, width)
        self.P = tensor("P", P, height, width, width)
        if load is None:
            load = np.zeros_like(self.I, shape=self.I.shape[:-1])
        if damping is None:
            damping = np.zeros_like(self.I)
        load, damping = tensor("load", load, height), tensor("damping", damping, height, width)
        self.I, self.P, self.load, self.damping = one_batch((2, 3, 1, 2), self.I, self.P, load, damping)
        self.holonomic = flag("holonomic", holonomic)
        self._inertia_error = inertia_error

    @property
    def inertia_error(self) -> np.ndarray | None:
        """Estimated round-off (..., M) in the diagonal of I*."""
        if callable(self._inertia_error):  # computed when first needed
            self._inertia_error = self._inertia_error()
        return self._inertia_error

    def _later(self, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[], np.ndarray] | None:
        """Return a function that changes the error when it is needed; None where there is none."""
        own = self._inertia_error
        if own is None:
            return None
        return lambda: change(own() if callable(own) else own)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inertia_error": self.inertia_error}

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.I.shape[:-2]

    def _motion(self, own: bool = True, **given: Any) -> list[np.ndarray]:
        """Arguments of shape (..., M) whose batches go with the model's; efforts at its `own` coordinates."""
        if own and self.efforts != self.coordinates:
            raise InputError(
                f"This needs efforts at the coordinates, {', '.join(self.coordinates)}; here they come at "
                f"{', '.join(self.efforts)}. Transfer without `left`.",
                efforts=self.efforts,
            )
        size = len(self.coordinates)
        arrays = [as_array(name, value, size) for name, value in given.items()]
        batches = {name: a.shape[:-1] for name, a in zip(given, arrays, strict=True)}
        broadcast_batches(model=self.batch, **batches)
        return arrays

    def inverse_dynamics(self, qd: Any, qdd: Any) -> np.ndarray:
        """Efforts that a motion needs: T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (eq 2-198).

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
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.inverse_dynamics([0.0, 0.0], [0.0, 0.0])  # holds the weight
        array([19.62 ,  4.905])
        """
        v, a = self._motion(own=False, qd=qd, qdd=qdd)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is an error
            return self._finite("Efforts", np.einsum("...kn,...n->...k", self.I, a) + self._bias(v))

    def _finite(self, quantity: str, made: np.ndarray) -> np.ndarray:
        """Return results (..., K), or raise an error if a member of this finite model overflows."""
        if made.dtype.kind != "O" and not np.isfinite(made).all():
            known = np.isfinite(self.I).all(axis=(-1, -2)) & np.isfinite(self.load).all(axis=-1)
            name = ", ".join(self.coordinates)
            check_finite(quantity, name, made, np.broadcast_to(known, made.shape[:-1]))
        return made

    def _bias(self, v: np.ndarray) -> np.ndarray:
        """What the effort is beside I* q̈."""
        return (
            np.einsum("...kab,...a,...b->...k", self.P, v, v)
            + np.einsum("...kn,...n->...k", self.damping, v)
            - self.load
        )

    def forward_dynamics(self, qd: Any, effort: Any) -> np.ndarray:
        """Accelerations that efforts give: q̈ = I*⁻¹ (T − q̇ᵀ P* q̇ − B q̇ + Tᴸ) (eq 2-199).

        Parameters
        ----------
        qd, effort : (..., M) array_like
            Rates of the coordinates and efforts at them.

        Returns
        -------
        (..., M)

        Raises
        ------
        SingularError
            Where I* can not be inverted: some motion moves no mass.

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.forward_dynamics([0.0, 0.0], [19.62, 4.905])
        array([0., 0.])
        """
        v, force = self._motion(qd=qd, effort=effort)
        with np.errstate(over="ignore", invalid="ignore"):
            net = self._finite("Velocity forces", force - self._bias(v))
        if self.I.dtype.kind == "O":  # symbols: exactly, and singular only where the determinant is 0
            return np.einsum("...kn,...n->...k", jets.invert((self.I,))[0], net)
        self._check_regular()
        inertia = np.broadcast_to(self.I, net.shape[:-1] + self.I.shape[-2:])
        return np.linalg.solve(inertia, net[..., None])[..., 0]

    def _check_regular(self) -> None:
        """Refuse an I* without inverse, naming the motion that moves no mass."""
        check_inertia_regular(self.I, self.inertia_error, self.coordinates)

    def transfer(self, coefficients: Coefficients, left: Coefficients | None = None) -> Dynamics:
        """The same mechanism in other coordinates q (eqs 3-34 to 3-36), or fewer (4-32), or dependent ones.

        With A = G^φ_q, B = H^φ_qq and L = A::

            I*_q = Lᵀ I* A        P*_q[k,a,b] = L_ik (P*_imn A_ma A_nb + I*_in B_nab)        Tᴸ_q = Lᵀ Tᴸ

        Dampers go as I* does. Ṁ − 2C stays skew and ∂I*_lm/∂q_n = P*_lnm + P*_mnl, also for ω.

        Parameters
        ----------
        coefficients : Coefficients
            Of all coordinates φ of this model (rows, in any order) with respect to the new ones (columns):
            an inverse, or any of full rank. Order 2 at least.
        left : Coefficients, optional
            Of the φ with respect to the coordinates at which efforts are wanted, where these are not the
            new ones: with all of w = (y, c), and motion of y only, the efforts of (4-31), those that hold
            the constraints c among them. Only `effort` can be asked of such a model.

        Returns
        -------
        Dynamics
            I* (..., K, M), P* (..., K, M, M), load (..., K): K efforts, M new coordinates.

        Raises
        ------
        InputError
            If a coordinate is no row of the coefficients, or these have order 1.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.3, 1.5])
        >>> d = c.dynamics().transfer(c.coefficients(["tip.x", "tip.y"]).inverse())
        >>> d.coordinates, d.inverse_dynamics([0.0, 0.0], [0.0, 0.0]).round(3)  # at the tip, it holds the weight
        (('tip.x', 'tip.y'), array([-2.135, 14.055]))
        """
        right = expect("coefficients", coefficients).matched(self.coordinates)
        if left is None and self.efforts != self.coordinates:
            raise InputError(
                f"Efforts come at {', '.join(self.efforts)} here: say with `left` where they shall go, with "
                "kic.Coefficients.identity(…) if they stay."
            )
        other = right if left is None else expect("left", left).matched(self.efforts)
        batch = broadcast_batches(model=self.batch, coefficients=right.batch, left=other.batch)
        right.needed("H", 2)
        # efforts are functions of the motion like any others: composed first, then weighed
        I, P = jets.compose((self.I, self.P), right.tensors)
        L = np.broadcast_to(np.swapaxes(other.G, -1, -2), (*batch, len(other.columns), len(self.efforts)))
        return Dynamics(
            right.columns,
            L @ I,
            jets.contract(L, P, 1, 2),
            jets.contract(L, self.load, 1, 0),
            L @ self.damping @ right.G,
            holonomic=right.quasi.isdisjoint(right.columns),
            efforts=other.columns,
            inertia_error=self._later(lambda error: moved_error(error, right.G)),
        )

    def __add__(self, other: Dynamics) -> Dynamics:
        """Several mechanisms that move the same coordinates, such as legs and their platform (eq 4-48).

        Names find each other; batches broadcast.
        """
        if not isinstance(other, Dynamics):
            return NotImplemented
        places = []
        for mine, its in ((self.efforts, other.efforts), (self.coordinates, other.coordinates)):
            if set(mine) != set(its):
                raise InputError(
                    f"Expected models in the same coordinates, got {', '.join(mine)} and {', '.join(its)}. "
                    "Transfer one of them first."
                )
            places.append([its.index(name) for name in mine])
        k, m = places
        broadcast_batches(first=self.batch, second=other.batch)
        I, P = jets.take((other.I, other.P), k, m)
        return Dynamics(
            self.coordinates,
            self.I + I,
            self.P + P,
            self.load + other.load[..., k],
            self.damping + other.damping[..., k, :][..., m],
            self.holonomic and other.holonomic,
            self.efforts,
            self._later(lambda error: error + _error_of(other)[..., m]),
        )

    def __radd__(self, other: Any) -> Dynamics:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # where sum() starts

    def kinetic_energy(self, qd: Any) -> np.ndarray:
        """Kinetic energy ½ q̇ᵀ I* q̇ (eq 2-140).

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.

        Returns
        -------
        (...,)

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> round(float(d.kinetic_energy([1.0, 0.0])), 6)
        1.333333
        """
        (v,) = self._motion(qd=qd)
        return np.einsum("...kn,...k,...n->...", self.I, v, v) / 2

    def coriolis(self, qd: Any) -> np.ndarray:
        """Coriolis matrix C_kb = q̇_a P*_kab; C q̇ are the velocity efforts and Ṁ − 2C is skew.

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.

        Returns
        -------
        (..., M, M)

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 1.5]).dynamics()
        >>> d.coriolis([1.0, 1.0]).shape
        (2, 2)
        """
        (v,) = self._motion(qd=qd)
        return np.einsum("...kab,...a->...kb", self.P, v)

    def inertia_gradient(self) -> np.ndarray:
        """Derivative of the inertia, ``[..., l, m, n]`` = ∂I*_lm/∂q_n = P*_lnm + P*_mnl.

        Returns
        -------
        (..., M, M, M)

        Examples
        --------
        >>> import kic
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.inertia_gradient().shape
        (2, 2, 2)
        """
        self._motion()
        lmn = np.swapaxes(self.P, -1, -2)
        return lmn + np.swapaxes(lmn, -3, -2)

    def summary(self, power: bool = True) -> Summary:
        """Labelled tables of I*, P* and the load, to print or to show."""
        power = flag("power", power)
        sheet = Summary(f"dynamics in {', '.join(self.coordinates)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        names, efforts = self.coordinates, self.efforts
        sheet.matrix("I* (inertia)", efforts, names, self.I[index])
        if power:
            sheet.say("\nP* (inertia power)")
            sheet.planes("P*", efforts, names, names, self.P[index])
        sheet.matrix("Tᴸ (applied load)", efforts, [""], self.load[index][:, None])
        if largest_of(self.damping[index]):
            sheet.matrix("B (damping)", efforts, names, self.damping[index])
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def check_inertia_regular(I: np.ndarray, error: np.ndarray | None, coordinates: tuple[str, ...]) -> None:
    """Raise an error for an I* (..., M, M) without inverse, naming the motion that moves no mass.

    Parameters
    ----------
    error : (..., M) ndarray or None
        Estimated error of its diagonal.
    """
    flat = np.real(I).reshape(-1, *I.shape[-2:])
    known = np.isfinite(flat).all(axis=(1, 2))
    if not known.any() or not coordinates:
        return
    # coordinates of different units are compared each on its own scale
    scale = np.sqrt(np.abs(np.einsum("bnn->bn", flat[known])))
    safe = np.where(scale > 0, scale, 1.0)
    size, modes = np.linalg.eigh(flat[known] / (safe[:, :, None] * safe[:, None, :]))
    floor = np.zeros_like(size)
    if error is not None:
        of_each = np.broadcast_to(error, I.shape[:-1]).reshape(flat.shape[:-1])[known]
        # to first order, what errors of the entries do to eigenvalues
        floor = np.einsum("bnk,bn->bk", np.abs(modes), np.sqrt(jets.ERROR_FACTOR * of_each) / safe) ** 2
    none = (size <= floor) | (size <= 0)
    condition = np.where(none.any(axis=1), np.inf, size[:, -1] / np.where(size[:, 0] > 0, size[:, 0], 1.0))
    worst = int(np.argmax(condition))
    failed = np.flatnonzero(known)[condition > WORST_CONDITION].tolist()
    if condition[worst] > WORST_CONDITION:
        share = np.abs(modes[worst, :, int(np.argmax(none[worst]))])
        names = [c for c, x in zip(coordinates, share, strict=True) if x > 0.1 * share.max()]
        raise SingularError(
            f"I* has no inverse (condition {condition[worst]:.1e}): the motion of {', '.join(names)} "
            "moves no mass. Give the bodies beyond it mass and inertia.",
            condition=float(condition[worst]),
            coordinates=tuple(names),
            **({"failed": failed} if I.ndim == 3 else {}),
        )


def _error_of(d: Dynamics) -> np.ndarray:
    """Return the error of the diagonal of I*; zero where it is not known."""
    return np.zeros(len(d.coordinates)) if d.inertia_error is None else d.inertia_error
