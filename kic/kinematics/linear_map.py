"""Constant linear map from coordinates to those of the tree, packed for the kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kic.kernels import layout as lay


class LinearMap:
    """Map φ̇ = A q̇ with constant A (M, m) from rates of coordinates to those of a tree.

    `couplings` are the terms of all couplings: column, 1 if it is the last of its coupling, factor, constant.

    Attributes
    ----------
    A : (M, m)
        The map; read-only.
    size : int
        Number m of the coordinates.
    terms, factors : (n, 4) int64 and (n, 3)
        Nonzero entries of A, and couplings, in the layout of the kernels (see `kic.kernels.layout`).
    """

    def __init__(self, A: np.ndarray, couplings: Sequence[tuple[int, int, float, float]] = ()) -> None:
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
        count = max(len(terms), len(couplings))
        self.terms, self.factors = np.full((count, 4), -1, np.int64), np.zeros((count, 3))
        self.terms[: len(terms), [lay.TARGET, lay.NEXT]] = np.reshape(terms, (-1, 2))
        self.factors[: len(factors), lay.FACTOR] = factors
        for k, (column, end, factor, constant) in enumerate(couplings):
            self.terms[k, [lay.COUPLED, lay.COUPLING_END]] = column, end
            self.factors[k, [lay.COUPLING_FACTOR, lay.COUPLING_CONSTANT]] = factor, constant
