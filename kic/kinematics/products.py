"""Generalized products of matrices with 3-index arrays: • and × of the source, and quadratic forms.

A 3-index array is a stack of planes, output index first. The source writes its products without indices::

    [A] • [T]     dot(A, T)                (P, M, K)    Σ A[p,n] T[n,m,k]
    [A]ᵀ × [B]    cross(A, B)              (M, 3, K)    (a_m × b_k)[i] at [m,i,k]
    [A]ᵀ × b      cross(A, b, order=0)     (3, M)       (a_m × b)[i] at [i,m]
    [D]ᵀ[C][D]    quadratic(C, D)          (N, K, K)    Σ C[n,a,b] D[a,j] D[b,k]
    [L]ᵀ[C][R]    bilinear(C, L, R)        (N, J, K)    Σ C[n,a,b] L[a,j] R[b,k]
    bᵀ[C]b        form(C, b, b)            (N,)         Σ C[n,i,j] b[i] b[j]

Any number of batch axes stands in front, and batches broadcast. Transposes are never conjugated, so that
complex steps pass through. The scalar type is kept: float, complex, or objects such as SymPy's.
"""

from __future__ import annotations

from string import ascii_letters
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kic.errors import InputError, short_repr
from kic.numerics.arguments import integer
from kic.numerics.arrays import as_numbers

__all__ = ["bilinear", "cross", "dot", "form", "quadratic"]


# infinite and huge numbers go through as in other array arithmetic
_quiet = np.errstate(over="ignore", invalid="ignore")


@_quiet
def dot(A: ArrayLike, T: ArrayLike, *, order: int = 2) -> np.ndarray:
    """Generalized scalar product [A] • [T]: planes of `T` scaled by a row of `A` and summed (App. A.3, A.4).

    Parameters
    ----------
    A : (..., P, N) array_like
        Matrix. One row alone, the source's [A]_p; or a loadᵀ (2-216), is a matrix with P = 1.
    T : (..., N, M, K) array_like
        Array whose first index, after the batch, is summed.
    order : int, default 2
        How many indices of `T` follow the summed one; what stands before it is batch. 2 for H and P*,
        3 for D (..., N, L, M, K), 1 for an ordinary matrix product.

    Returns
    -------
    (..., P, M, K) ndarray
        With `order` indices after P.

    Raises
    ------
    InputError
        If the shapes do not fit.

    Examples
    --------
    >>> dot([[1.0, -1.0]], [[[1.0, 2.0]], [[4.0, 7.0]]])
    array([[[-3., -5.]]])
    >>> dot(np.ones((5, 1, 2)), np.ones((2, 3, 3, 3)), order=3).shape
    (5, 1, 3, 3, 3)
    """
    order = integer("order", order, 1)
    A = _take("A", A, "P", "N")
    N = A.shape[-1]
    rest = "LMK"[-order:] if order <= 3 else [f"M{i + 1}" for i in range(order)]
    T = _take("T", T, N, *rest, fit=f" to match `A` of shape (..., P, {N})")
    batch, tail = T.shape[: -order - 1], T.shape[-order:]
    _batches(A=A.shape[:-2], T=batch)
    # With its planes as rows of numbers, this is an ordinary product.
    product = A @ T.reshape(*batch, N, np.prod(tail, dtype=int))
    return product.reshape(*product.shape[:-1], *tail)


@_quiet
def cross(A: ArrayLike, B: ArrayLike, *, order: int = 1) -> np.ndarray:
    """Generalized cross product [A]ᵀ × [B]: columns of `A` with columns of `B` (2-172, 2-190).

    Parameters
    ----------
    A : (..., 3, M) array_like
        Matrix of columns a_n, as [G] stands, not its transpose. For one vector a, give a[..., None].
    B : (..., 3, K) array_like
        Matrix of columns, or with ``order=0`` one vector (..., 3).
    order : {1, 0}, default 1
        How many indices of `B` follow its three components; what stands before them is batch.

    Returns
    -------
    (..., M, 3, K) ndarray
        Plane n is a_n × [B] (2-190). With ``order=0`` the matrix (..., 3, M) of columns a_n × b (2-172).

    Raises
    ------
    InputError
        If the shapes do not fit.

    Examples
    --------
    >>> cross(np.eye(3), np.ones((5, 3, 2))).shape
    (5, 3, 3, 2)
    >>> cross([[1.0], [0.0], [0.0]], [0.0, 1.0, 0.0], order=0).T
    array([[0., 0., 1.]])
    """
    order = integer("order", order, 0, 1)
    A, B = _take("A", A, 3, "M"), _take("B", B, 3, *"K"[:order])
    _batches(A=A.shape[:-2], B=B.shape[: -1 - order])
    if order == 0:
        return np.cross(A, B[..., None], axis=-2)
    return np.cross(A.swapaxes(-1, -2)[..., None], B[..., None, :, :], axis=-2)


@_quiet
def quadratic(C: ArrayLike, D: ArrayLike) -> np.ndarray:
    """Quadratic operation of a matrix on a 3-index array, [D]ᵀ[C][D] plane by plane (App. A.1).

    Parameters
    ----------
    C : (..., N, M, M) array_like
        Array of N planes.
    D : (..., M, K) array_like
        Matrix, square or not. (The source prints its shape and the result's wrongly.)

    Returns
    -------
    (..., N, K, K) ndarray
        Plane n is [D]ᵀ [C]_n; [D].

    Raises
    ------
    InputError
        If the shapes do not fit.

    Examples
    --------
    >>> quadratic([[[0.0, 1.0], [0.0, 0.0]]], [[2.0], [3.0]])
    array([[[6.]]])
    """
    C = _take("C", C, "N", "M", "M")
    D = _take("D", D, C.shape[-1], "K", fit=f" to match `C` of shape (..., N, M, {C.shape[-1]})")
    _batches(C=C.shape[:-3], D=D.shape[:-2])
    return bilinear(C, D, D)


@_quiet
def bilinear(C: ArrayLike, L: ArrayLike | None, R: ArrayLike | None) -> np.ndarray:
    """Operation of two matrices on a 3-index array, [L]ᵀ[C][R] plane by plane (App. A.1 with two sides).

    Parameters
    ----------
    C : (..., N, M, W) array_like
        Array of N planes, square or not.
    L, R : (..., M, J) and (..., W, K) array_like or None
        Left matrix, which the product transposes, and right matrix. None leaves that side as it is.

    Returns
    -------
    (..., N, J, K) ndarray
        Plane n is [L]ᵀ [C]_n; [R].

    Raises
    ------
    InputError
        If the shapes do not fit, or both sides are None.

    Examples
    --------
    >>> G, II = np.eye(3), np.diag([1.0, 2.0, 4.0])
    >>> bilinear(cross(G, G), II @ G, None)[0, 1]  # [G]ᵀ[II]([G]ᵀ × [G]) of (2-194)
    array([ 0.,  0., -2.])
    """
    if L is None and R is None:
        raise InputError("Expected a matrix for `L` or `R`, got None for both.")
    C = _take("C", C, "N", "M", "W")
    M, W = C.shape[-2:]
    fit = f" to match `C` of shape (..., N, {M}, {W})"
    left = None if L is None else _take("L", L, M, "J", fit=fit)[..., None, :, :]
    right = None if R is None else _take("R", R, W, "K", fit=fit)[..., None, :, :]
    _batches(**{k: a.shape[:-3] for k, a in {"C": C, "L": left, "R": right}.items() if a is not None})
    product = C if left is None else left.swapaxes(-1, -2) @ C
    return product if right is None else product @ right


@_quiet
def form(T: ArrayLike, *vectors: ArrayLike | None) -> np.ndarray:
    """Multilinear form: each index of `T` but the first summed with its own vector (App. A.2).

    The quadratic form bᵀ[C]b is ``form(C, b, b)``; the jerk's D(q̇, q̇, q̇) is ``form(D, qd, qd, qd)`` and its
    q̈ᵀ([H] + 2[H]ᵀ)q̇ is ``form(H, qdd, qd) + 2 * form(H, qd, qdd)``.

    Parameters
    ----------
    T : (..., N, M1, ..., Mk) array_like
        Array with as many indices after N as there are `vectors`; what stands before N is batch.
    *vectors : (..., Mi) array_like or None
        The vector of each index, in order. None leaves that index open: q̇ᵀ[H] is ``form(H, qd, None)`` and
        q̇ᵀ[H]ᵀ is ``form(H, None, qd)``.

    Returns
    -------
    (..., N) ndarray
        With the open indices, in order, after N.

    Raises
    ------
    InputError
        If the shapes do not fit, or no vector is given.

    Examples
    --------
    >>> H = np.array([[[1.0, 2.0], [0.0, 5.0]]])
    >>> form(H, [1.0, 1.0], [1.0, -1.0])
    array([-6.])
    >>> form(H, [1.0, 1.0], None)
    array([[1., 7.]])
    """
    if all(v is None for v in vectors):
        raise InputError("Expected at least one vector, got none.")
    order = len(vectors)
    product = _take("T", T, "N", *(f"M{i + 1}" for i in range(order)), fit=f" to match {order} `vectors`")
    batch, sizes = product.shape[: -order - 1], product.shape[-order:]
    fit = f" to match `T` of shape (..., N, {', '.join(map(str, sizes))})"
    given = {i: _take(f"vectors[{i}]", v, sizes[i], fit=fit) for i, v in enumerate(vectors) if v is not None}
    _batches(T=batch, **{f"vectors[{i}]": v.shape[:-1] for i, v in given.items()})
    left = ascii_letters[: order + 1]  # the indices of T: N, then one for each vector
    for i in reversed(given):  # each sum leaves less for the next
        rest = left[: i + 1] + left[i + 2 :]
        product, left = np.einsum(f"...{left},...{left[i + 1]}->...{rest}", product, given[i]), rest
    return product


def _take(name: str, given: Any, *rule: int | str, fit: str = "") -> np.ndarray:
    """An array of numbers that ends in the shape of the rule: whole numbers, and names for any size."""
    try:
        a = np.asarray(given)
    except ValueError:
        raise InputError(f"Expected `{name}` to be an array, got a ragged {type(given).__name__}.") from None
    if a.dtype.kind == "O" and as_numbers(a) is None:
        raise InputError(f"`{name}` must hold numbers or symbols, got {short_repr(given)}.", name=name)
    if a.dtype.kind not in "ifcO":  # bools multiply as "and", differences of unsigned numbers wrap around
        raise InputError(f"Expected `{name}` to hold signed, complex or object numbers, got {a.dtype}.")
    shape = a.shape[-len(rule) :]
    sizes = dict(zip(rule, shape, strict=False))
    wanted = tuple(sizes.get(r) if isinstance(r, str) else r for r in rule)  # a name twice is one size
    if shape != wanted:
        wish = f"(..., {', '.join(map(str, rule))}){fit}"
        raise InputError(f"Expected `{name}` to have shape {wish}, got {a.shape}.", shape=a.shape)
    return a


def _batches(**batches: tuple[int, ...]) -> None:
    """Refuse batches that do not broadcast."""
    try:
        np.broadcast_shapes(*batches.values())
    except ValueError:
        listed = ", ".join(f"`{name}` {batch}" for name, batch in batches.items())
        raise InputError(f"Expected batches that broadcast, got {listed}.", batches=batches) from None
