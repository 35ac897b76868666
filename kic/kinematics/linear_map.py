"""Constant linear map from coordinates to those of the tree, packed for the kernels."""

from __future__ import annotations

import numpy as np

from kic.kernels import layout as lay


class LinearMap:
    """Map φ̇ = A q̇ of constant A (M, m) from rates of coordinates to those of a tree.

    Attributes
    ----------
    A : (M, m)
        The map; read-only.
    size : int
        Number m of the coordinates.
    terms, factors : (n, 2) int64 and (n, 1)
        Nonzero entries of A, in the layout of the kernels (see `kic.kernels.layout`).
    """

    def __init__(self, A: np.ndarray) -> None:
        A = A.copy()
        A.flags.writeable = False
        self.A, self.size = A, A.shape[1]
        terms, factors = [[0, -1] for _ in A], [0.0] * len(A)
        for n, row in enumerate(A):
            last = -1
            for coordinate in np.flatnonzero(row).tolist():
                place = n
                if last >= 0:  # the first entry of a row has its place, others follow at the end
                    place = terms[last][lay.NEXT] = len(terms)
                    terms.append([0, -1])
                    factors.append(0.0)
                terms[place][lay.TARGET], factors[place], last = coordinate, row[coordinate], place
        self.terms, self.factors = np.array(terms, np.int64).reshape(-1, 2), np.array(factors)[:, None]
