"""Internal loads: what actuators can exert against each other without doing work (eqs 4-76 to 4-86).

With G the coefficients of A actuators in M coordinates, A ≥ M, efforts T give the generalized effort GᵀT. A
criterion measures them by TᵀWT; in y = F T, with W = FᵀF, it is |y|², and a QR of F⁻ᵀG parts y into what is
needed, the least that gives an effort, and what does no work at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.display import ROUNDOFF, Summary, member
from kic.errors import SingularError
from kic.kinematics import jets
from kic.kinematics.scaling import Scaling
from kic.numerics.arrays import as_array, broadcast_batches

# of units of the last digit, times the condition: a row of the basis below this is none
_DIGITS = 1e3 * float(np.finfo(float).eps)
# what counts as the largest of several: the first of those that differ by round-off
_EQUAL = 1 - 1e-9


class Space:
    """Efforts of A actuators on M coordinates in n members: what gives a generalized effort, what none.

    Parameters
    ----------
    G, H : (n, A, M) and (n, A, M, M)
        Coefficients of the actuators.
    root : (n, A, A)
        Of the metric.
    scaling : Scaling
        Sizes of the rows and columns of G.

    Attributes
    ----------
    basis, dual : (n, A, A − M)
        Efforts B that do no work, orthonormal in the metric, and W B.

    Raises
    ------
    SingularError
        Where the actuators do not hold every motion.
    """

    def __init__(
        self,
        G: np.ndarray,
        H: np.ndarray,
        root: np.ndarray,
        scaling: Scaling,
        actuators: tuple[str, ...],
        coordinates: tuple[str, ...],
        name: str,
    ) -> None:
        condition, _, share = jets.diagnose(G, H, scaling)
        failed = np.flatnonzero(~(condition <= jets.CONDITION_MAX))
        if failed.size:
            b = int(failed[0])
            most = share[b].max()
            loose = tuple(x for x, s in zip(coordinates, share[b], strict=True) if s > 0.1 * most)
            more = f" ({failed.size} members of {len(G)})" if len(G) > 1 else ""
            raise SingularError(
                f"Actuators {', '.join(actuators)} can not hold '{name}' here{more} (condition "
                f"{condition[b]:.1e}): while they stand still, {', '.join(loose)} can move. Add an actuator "
                "that this motion moves, or choose another posture.",
                condition=float(condition[b]),
                coordinates=loose,
                actuators=actuators,
                failed=failed.tolist(),
            )
        width = G.shape[-1]
        self.G, self.root = G, root
        self.X = np.swapaxes(root, -1, -2) @ G
        Q, R = np.linalg.qr(self.X, mode="complete")
        self.Q, self.R = Q[..., :width], R[..., :width, :]
        y = canonical(Q[..., width:])
        self.dual = np.linalg.solve(np.swapaxes(root, -1, -2), y)
        part = _taking_part(scaling.scaled(G), condition)[..., None]
        basis = part * (root @ y)
        # once more, for what weights that differ much have left to round-off
        self.basis = part * (basis - self._least(np.swapaxes(G, -1, -2) @ basis))

    def smallest(self, demand: np.ndarray) -> np.ndarray:
        """Efforts (n, A) of least measure that give generalized efforts (n, M) (eq 4-85)."""
        return self._least(demand[..., None])[..., 0]

    def _least(self, demand: np.ndarray) -> np.ndarray:
        """The same for several, as columns (n, M, k)."""
        across, down = np.swapaxes(self.X, -1, -2), np.swapaxes(self.R, -1, -2)
        y = self.Q @ np.linalg.solve(down, demand)
        y = y + self.Q @ np.linalg.solve(down, demand - across @ y)  # what the first left to round-off
        return self.root @ y

    def inverse(self) -> np.ndarray:
        """The left inverse G_q^u (n, M, A) whose transpose gives efforts of least measure (eq 4-86)."""
        return np.linalg.solve(self.R, np.swapaxes(self.root @ self.Q, -1, -2))

    def internal(self, efforts: np.ndarray) -> np.ndarray:
        """The part of efforts (n, A) that does no work: what a distribution of least measure would leave."""
        return efforts - self.smallest(np.einsum("bim,bi->bm", self.G, efforts))


def _taking_part(G: np.ndarray, condition: np.ndarray) -> np.ndarray:
    """Return which actuators (n, A) take part in some internal load, from scaled G (n, A, M).

    An actuator that alone holds a motion takes part in none.
    """
    Q = np.linalg.qr(G, mode="complete")[0]
    return np.linalg.norm(Q[..., G.shape[-1] :], axis=-1) > _DIGITS * condition[:, None]


def canonical(Q: np.ndarray) -> np.ndarray:
    """The same space (n, A, K) spanned by orthonormal columns that do not depend on how it was found.

    The first is the one nearest to a unit effort of an actuator, of the one that it comes nearest to; so are
    the next, of what is left. In each the effort of its actuator is positive.
    """
    count, _, width = Q.shape
    left, made = Q.copy(), np.empty((count, width, width))
    each = np.arange(count)
    for k in range(width):
        size = np.linalg.norm(left, axis=-1)
        first = np.argmax(size >= _EQUAL * size.max(axis=-1, keepdims=True), axis=-1)
        v = left[each, first]
        for j in range(k):  # once more against those before, for round-off
            v = v - np.einsum("bk,bk->b", v, made[:, j])[:, None] * made[:, j]
        v = v / np.linalg.norm(v, axis=-1, keepdims=True)
        made[:, k] = v
        left = left - np.einsum("bak,bk->ba", left, v)[..., None] * v[:, None, :]
    return Q @ np.swapaxes(made, -1, -2)


def stiffness(H: np.ndarray, efforts: np.ndarray) -> np.ndarray:
    """K_ab = −Σ_i T_i H_i,ba (..., M, M): what efforts that stay the same add to a stiffness."""
    return -np.einsum("...iba,...i->...ab", H, efforts)


class InternalLoads:
    """Efforts of actuators that do no work, whatever moves: with G their coefficients, GᵀT = 0.

    Attributes
    ----------
    actuators, coordinates : tuple of str
        Names of the A actuators and the M coordinates.
    basis : (..., A, K)
        K = A − M loads, orthonormal in the metric: BᵀWB = 1. Along a path the basis may turn and jump where
        another actuator takes the lead; the space that it spans does not, nor do `part` and `stiffness`.
    criterion : str
        What the metric W is: "minimum norm" (W = 1), "limits" (1/limit²), or "weights".
    G, H : (..., A, M) and (..., A, M, M)
        Coefficients of the actuators (eqs 4-78, 4-79).

    Examples
    --------
    >>> import kic
    >>> c = kic.load("two-finger-hand").at()
    >>> loads = c.internal_loads(["A1", "B1", "A2", "B2"])
    >>> loads.dimension, bool(abs(loads.G.T @ loads.basis).max() < 1e-15)
    (1, True)
    """

    def __init__(
        self,
        actuators: tuple[str, ...],
        coordinates: tuple[str, ...],
        criterion: str,
        basis: np.ndarray,
        dual: np.ndarray,
        G: np.ndarray,
        H: np.ndarray,
    ) -> None:
        self.actuators, self.coordinates, self.criterion = actuators, coordinates, criterion
        self.basis, self.G, self.H = basis, G, H
        self._dual = dual

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.basis.shape[:-2]

    @property
    def dimension(self) -> int:
        """Number K of internal loads."""
        return self.basis.shape[-1]

    def efforts(self, amounts: Any) -> np.ndarray:
        """Efforts of so much along each of the basis, as a preload for `distribute`.

        Parameters
        ----------
        amounts : (..., K) array_like
            One for each internal load.

        Returns
        -------
        (..., A)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.
        """
        (a,) = self._matched(self.dimension, amounts=amounts)
        return np.einsum("...ik,...k->...i", self.basis, a)

    def amounts(self, efforts: Any) -> np.ndarray:
        """How much of each of the basis efforts have: BᵀW T.

        Parameters
        ----------
        efforts : (..., A) array_like
            Of the actuators, doing work or not.

        Returns
        -------
        (..., K)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.
        """
        (T,) = self._matched(len(self.actuators), efforts=efforts)
        return np.einsum("...ik,...i->...k", self._dual, T)

    def stiffness(self, efforts: Any) -> np.ndarray:
        """Stiffness that efforts give which stay the same while the mechanism moves.

        A displacement δq turns the generalized effort GᵀT by (Σ T_i H_i) δq. With K = −Σ T_i H_i this is
        −K δq: a positive K drives it back.

        Parameters
        ----------
        efforts : (..., A) array_like
            A preload, or any others.

        Returns
        -------
        (..., M, M)
            Row: effort; column: displacement. Symmetric in holonomic coordinates.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> loads = kic.load("two-finger-hand").at().internal_loads(["A1", "B1", "A2", "B2"])
        >>> K = loads.stiffness(loads.efforts([1.0]))
        >>> K.shape, bool(abs(K - K.T).max() < 1e-12)
        ((3, 3), True)
        """
        (T,) = self._matched(len(self.actuators), efforts=efforts)
        return stiffness(self.H, T)

    def _matched(self, size: int, **given: Any) -> list[np.ndarray]:
        arrays = [as_array(name, value, size) for name, value in given.items()]
        broadcast_batches(loads=self.batch, **{k: a.shape[:-1] for k, a in zip(given, arrays, strict=True)})
        return arrays

    def sentences(self, index: tuple[int, ...] = ()) -> list[str]:
        """Which actuators pull against each other, in words, for one member of the batch."""
        if not self.dimension:
            return ["No internal load: there are as many actuators as freedoms."]
        basis = self.basis[index]
        there = np.abs(basis) > 1e3 * ROUNDOFF * np.abs(basis).max(initial=0.0)
        said = []
        for k in range(self.dimension):
            one, other = (
                [
                    x
                    for x, T, has in zip(self.actuators, basis[:, k], there[:, k], strict=True)
                    if has and s * T > 0
                ]
                for s in (1, -1)
            )
            against = f" against {', '.join(other)}" if other else ", all of one sign"
            said.append(f"Internal load {k + 1}: {', '.join(one)}{against}.")
        idle = [x for x, has in zip(self.actuators, there.any(axis=1), strict=True) if not has]
        return said + ([f"No part in any: {', '.join(idle)}."] if idle else [])

    def summary(self) -> Summary:
        """Labelled table of the basis, and what it means, to print or to show."""
        plural = "load" if self.dimension == 1 else "loads"
        count, freedoms = len(self.actuators), len(self.coordinates)
        sheet = Summary(
            f"{self.dimension} internal {plural} of {count} actuators on {freedoms} freedoms, orthonormal by "
            f"{self.criterion}"
        )
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is not None:
            for sentence in self.sentences(index):
                sheet.say(sentence)
            if self.dimension:
                heads = [str(k + 1) for k in range(self.dimension)]
                sheet.matrix("efforts that do no work", self.actuators, heads, self.basis[index])
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()
