"""Internal loads: efforts that actuators exert against each other without doing work (eqs 4-76 to 4-86).

With G the coefficients of A actuators in M coordinates, A ≥ M, efforts T give the generalized effort GᵀT. A
criterion measures efforts by TᵀWT = |y|² with y = F T and W = FᵀF. A QR decomposition of F⁻ᵀG splits y into
the minimum that produces the generalized effort, and a part that does no work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.errors import SingularError, counted
from kic.kinematics import jets
from kic.kinematics.scaling import Scaling
from kic.numerics.arrays import as_array, broadcast_batches
from kic.numerics.display import ROUNDOFF, Batched, Summary
from kic.numerics.tolerances import EPS

# rows of the basis below this, times the condition, are round-off
BASIS_ATOL = 1e3 * EPS
# norms above this share of the largest count as equal to it; the first of them is chosen
EQUAL_NORM_MIN = 1 - 1e-9
# coordinates above this share of the largest are named in an error
UNCONSTRAINED_RTOL = 0.1


class EffortSpace:
    """Effort space of A actuators on M coordinates in n members, split into work and internal loads.

    G, H (n, A, M[, M]) are the coefficients of the actuators, `scaling` has their scales, and `root` (n, A,
    A) is the factor F⁻¹ of the metric. The attributes `basis` and `dual` (n, A, A − M) are efforts B that do
    no work, orthonormal in the metric, and W B. Raise `SingularError` if the actuators cannot prevent every
    motion.
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
            largest = share[b].max()
            unconstrained = tuple(
                x for x, s in zip(coordinates, share[b], strict=True) if s > UNCONSTRAINED_RTOL * largest
            )
            more = f"{failed.size} of {len(G)} members, " if len(G) > 1 else ""
            raise SingularError(
                f"Actuators {', '.join(actuators)} cannot hold '{name}' here ({more}condition "
                f"{condition[b]:.1e}): while they are at rest, {', '.join(unconstrained)} can move. Add an "
                "actuator that this motion moves, or choose another configuration.",
                condition=float(condition[b]),
                coordinates=unconstrained,
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
        participates = _participates(scaling.scaled(G), condition)[..., None]
        basis = participates * (root @ y)
        # repeat: with very different weights the first projection is inaccurate
        self.basis = participates * (basis - self._minimum_efforts(np.swapaxes(G, -1, -2) @ basis))

    def minimum_effort(self, demand: np.ndarray) -> np.ndarray:
        """Return efforts (n, A) of minimum norm that produce generalized efforts (n, M) (eq 4-85).

        They solve the problem (4-80) to (4-84) in the metric of the criterion.
        """
        return self._minimum_efforts(demand[..., None])[..., 0]

    def _minimum_efforts(self, demand: np.ndarray) -> np.ndarray:
        """Return efforts (n, A, k) of minimum norm for generalized efforts in columns (n, M, k)."""
        across, down = np.swapaxes(self.X, -1, -2), np.swapaxes(self.R, -1, -2)
        y = self.Q @ np.linalg.solve(down, demand)
        y = y + self.Q @ np.linalg.solve(down, demand - across @ y)  # iterative refinement
        return self.root @ y

    def inverse(self) -> np.ndarray:
        """Return the left inverse G_q^u (n, M, A); its transpose gives efforts of minimum norm (eq 4-86)."""
        return np.linalg.solve(self.R, np.swapaxes(self.root @ self.Q, -1, -2))

    def internal_part(self, efforts: np.ndarray) -> np.ndarray:
        """Return the part of efforts (n, A) that does no work: their difference from the minimum."""
        return efforts - self.minimum_effort(np.einsum("bim,bi->bm", self.G, efforts))


def _participates(G: np.ndarray, condition: np.ndarray) -> np.ndarray:
    """Return a mask (n, A) of the actuators that take part in some internal load, for scaled G (n, A, M).

    An actuator that alone prevents some motion takes part in no internal load.
    """
    Q = np.linalg.qr(G, mode="complete")[0]
    return np.linalg.norm(Q[..., G.shape[-1] :], axis=-1) > BASIS_ATOL * condition[:, None]


def canonical(Q: np.ndarray) -> np.ndarray:
    """Return a canonical orthonormal basis of the space spanned by orthonormal columns (n, A, K).

    The first column is the normalized projection of the unit effort closest to the space. Later columns are
    chosen likewise in the remaining space. The effort of the chosen actuator is positive in each column.
    """
    count, _, width = Q.shape
    remaining, coefficients = Q.copy(), np.empty((count, width, width))
    members = np.arange(count)
    for k in range(width):
        size = np.linalg.norm(remaining, axis=-1)
        first = np.argmax(size >= EQUAL_NORM_MIN * size.max(axis=-1, keepdims=True), axis=-1)
        v = remaining[members, first]
        for j in range(k):  # reorthogonalize
            v = v - np.einsum("bk,bk->b", v, coefficients[:, j])[:, None] * coefficients[:, j]
        v = v / np.linalg.norm(v, axis=-1, keepdims=True)
        coefficients[:, k] = v
        remaining = remaining - np.einsum("bak,bk->ba", remaining, v)[..., None] * v[:, None, :]
    return Q @ np.swapaxes(coefficients, -1, -2)


def stiffness(H: np.ndarray, efforts: np.ndarray) -> np.ndarray:
    """Return K_ab = −Σ_i T_i H_i,ba (..., M, M), the stiffness due to constant efforts."""
    return -np.einsum("...iba,...i->...ab", H, efforts)


@dataclass(eq=False, repr=False)
class InternalLoads(Batched):
    """Efforts of actuators that do no work in any motion: GᵀT = 0 with the actuators' coefficients G.

    Attributes
    ----------
    actuators, coordinates : tuple of str
        Names of the A actuators and the M coordinates.
    basis : (..., A, K)
        K = A − M loads, orthonormal in the metric: BᵀWB = 1. Along a path the basis may turn, and jump where
        another actuator becomes the leading one. Its span, the internal part of efforts and the stiffness are
        continuous.
    criterion : str
        Metric W: "minimum norm" (W = 1), "limits" (1/limit²), or "weights".
    G, H : (..., A, M) and (..., A, M, M)
        Coefficients of the actuators (eqs 4-78, 4-79).

    Examples
    --------
    >>> c = kic.load("two-finger-hand").at()
    >>> loads = c.internal_loads(actuators=["A1", "B1", "A2", "B2"])
    >>> loads.dimension, bool(abs(loads.G.T @ loads.basis).max() < 1e-15)
    (1, True)
    """

    _one_line = ("actuators", "coordinates", "criterion", "batch")
    _per_member = ("basis", 2)

    actuators: tuple[str, ...]
    coordinates: tuple[str, ...]
    criterion: str
    basis: np.ndarray
    G: np.ndarray
    H: np.ndarray
    _dual: np.ndarray

    @property
    def dimension(self) -> int:
        """Number K of internal loads."""
        return self.basis.shape[-1]

    def efforts(self, amounts: Any) -> np.ndarray:
        """Return the efforts of given amounts of internal loads, such as a preload for `distribute`.

        Parameters
        ----------
        amounts : (..., K) array_like
            Amount of each internal load.

        Returns
        -------
        (..., A)
        """
        a = self._checked("amounts", amounts, self.dimension)
        return np.einsum("...ik,...k->...i", self.basis, a)

    def amounts(self, efforts: Any) -> np.ndarray:
        """Return the components of efforts along the basis, BᵀW T.

        Parameters
        ----------
        efforts : (..., A) array_like
            Efforts of the actuators, which may do work.

        Returns
        -------
        (..., K)
        """
        T = self._checked("efforts", efforts, len(self.actuators))
        return np.einsum("...ik,...i->...k", self._dual, T)

    def stiffness(self, efforts: Any) -> np.ndarray:
        """Return the stiffness due to efforts that stay constant while the mechanism moves.

        A displacement δq changes the generalized effort GᵀT by (Σ T_i H_i) δq. With K = −Σ T_i H_i this is −K
        δq: a positive K is restoring.

        Parameters
        ----------
        efforts : (..., A) array_like
            A preload, or any other efforts.

        Returns
        -------
        (..., M, M)
            Row: effort; column: displacement. Symmetric in holonomic coordinates.

        Examples
        --------
        >>> loads = kic.load("two-finger-hand").at().internal_loads(actuators=["A1", "B1", "A2", "B2"])
        >>> K = loads.stiffness(loads.efforts([1.0]))
        >>> K.shape, bool(abs(K - K.T).max() < 1e-12)
        ((3, 3), True)
        """
        T = self._checked("efforts", efforts, len(self.actuators))
        return stiffness(self.H, T)

    def _checked(self, name: str, value: Any, size: int) -> np.ndarray:
        """Return numbers (..., size), checked to have a batch that broadcasts with that of the loads."""
        a = as_array(name, value, size)
        broadcast_batches(loads=self.batch, **{name: a.shape[:-1]})
        return a

    def sentences(self, index: tuple[int, ...] = ()) -> list[str]:
        """Describe the actuators that act against each other in one member of the batch."""
        if not self.dimension:
            return ["No internal load: there are as many actuators as degrees of freedom."]
        basis = self.basis[index]
        participates = np.abs(basis) > 1e3 * ROUNDOFF * np.abs(basis).max(initial=0.0)
        sentences = []
        for k in range(self.dimension):
            signs = np.where(participates[:, k], np.sign(basis[:, k]), 0.0)
            one, other = (
                [x for x, s in zip(self.actuators, signs, strict=True) if s == side] for side in (1, -1)
            )
            against = f" against {', '.join(other)}" if other else ", all of one sign"
            sentences.append(f"Internal load {k + 1}: {', '.join(one)}{against}.")
        unused = [x for x, acts in zip(self.actuators, participates.any(axis=1), strict=True) if not acts]
        return sentences + ([f"In no internal load: {', '.join(unused)}."] if unused else [])

    def summary(self) -> Summary:
        """Return a labelled table of the basis with an explanation."""
        count, dof = len(self.actuators), len(self.coordinates)
        sheet = Summary(
            f"{counted(self.dimension, 'internal load')} of {count} actuators on {dof} coordinates, "
            f"orthonormal by {self.criterion}"
        )
        index = sheet.member(self.batch)
        if index is not None:
            for sentence in self.sentences(index):
                sheet.say(sentence)
            if self.dimension:
                heads = [str(k + 1) for k in range(self.dimension)]
                sheet.matrix("efforts that do no work", self.actuators, heads, self.basis[index])
        return sheet
