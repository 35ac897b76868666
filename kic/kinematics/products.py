"""Generalized products of matrices with 3-index arrays, • and × of the source, and multilinear forms.

A 3-index array is a stack of planes with the output index first. The source (Appendix A) writes its products
without indices::

    [A] • [T]     dot(A, T)                (P, M, K)    Σ A[p,n] T[n,m,k]
    [A]ᵀ × [B]    cross(A, B)              (M, 3, K)    (a_m × b_k)[i] at [m,i,k]
    [A]ᵀ × b      cross(A, b, order=0)     (3, M)       (a_m × b)[i] at [i,m]
    [D]ᵀ[C][D]    quadratic(C, D)          (N, K, K)    Σ C[n,a,b] D[a,j] D[b,k]
    [L]ᵀ[C][R]    bilinear(C, L, R)        (N, J, K)    Σ C[n,a,b] L[a,j] R[b,k]
    bᵀ[C]b        form(C, b, b)            (N,)         Σ C[n,i,j] b[i] b[j]

Batch axes come first and broadcast. Transposes are never conjugated, which keeps complex steps. The scalar
type is kept: float, complex, or objects such as SymPy's.

The functions above are for learning and for work by hand: they check their arguments and use the names of the
source. They call `contract`, `transform` and `evaluate_form`, which kic itself uses without checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kic.errors import InputError, invalid
from kic.numerics.arguments import integer
from kic.numerics.arrays import as_numbers

__all__ = ["bilinear", "cross", "dot", "form", "quadratic"]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


NDIM_MAX = 64  # no array of NumPy has more indices
# infinite and huge numbers pass, as in other array arithmetic
_quiet = np.errstate(over="ignore", invalid="ignore")


def dot(A: ArrayLike, T: ArrayLike, *, order: int = 2) -> np.ndarray:
    """Compute the generalized dot product [A] • [T], weighted sums of the planes of T (Appendix A.3, A.4).

    Parameters
    ----------
    A : (..., P, N) array_like
        Matrix of weights. A single row (``[A]_p;`` in the source) or transposed load (2-216) has P = 1.
    T : (..., N, M, K) array_like
        Array whose first index after the batch is summed.
    order : int, default 2
        Number of indices of `T` after the summed one: 2 for H and P*, 3 for D (..., N, L, M, K), 1 for an
        ordinary matrix product. Axes in front of the summed index are batch axes.

    Returns
    -------
    (..., P, M, K) ndarray
        With `order` indices after P.

    Examples
    --------
    >>> dot([[1.0, -1.0]], [[[1.0, 2.0]], [[4.0, 7.0]]])
    array([[[-3., -5.]]])
    >>> dot(np.ones((5, 1, 2)), np.ones((2, 3, 3, 3)), order=3).shape
    (5, 1, 3, 3, 3)
    """
    order = min(integer("order", order, 1), NDIM_MAX)
    A = _checked("A", A, "P", "N")
    N = A.shape[-1]
    rest = "LMK"[-order:] if order <= 3 else [f"M{i + 1}" for i in range(order)]
    T = _checked("T", T, N, *rest, fit=f" to match `A` of shape (..., P, {N})")
    _check_batches(A=A.shape[:-2], T=T.shape[: -order - 1])
    return contract(A, T, 1, order)


@_quiet
def cross(A: ArrayLike, B: ArrayLike, *, order: int = 1) -> np.ndarray:
    """Compute the generalized cross product [A]ᵀ × [B] of columns of A with columns of B (2-172, 2-190).

    Parameters
    ----------
    A : (..., 3, M) array_like
        Matrix of columns a_n, not transposed. Give a single vector a as a[..., None].
    B : (..., 3, K) array_like
        Matrix of columns, or with ``order=0`` one vector (..., 3).
    order : {1, 0}, default 1
        Number of indices of `B` after its three components. Axes in front of these are batch axes.

    Returns
    -------
    (..., M, 3, K) ndarray
        Plane n is a_n × [B] (2-190). With ``order=0``, the matrix (..., 3, M) of columns a_n × b (2-172).

    Examples
    --------
    >>> cross(np.eye(3), np.ones((5, 3, 2))).shape
    (5, 3, 3, 2)
    >>> cross([[1.0], [0.0], [0.0]], [0.0, 1.0, 0.0], order=0).T
    array([[0., 0., 1.]])
    """
    order = integer("order", order, 0, 1)
    A, B = _checked("A", A, 3, "M"), _checked("B", B, 3, *"K"[:order])
    _check_batches(A=A.shape[:-2], B=B.shape[: -1 - order])
    if order == 0:
        return np.cross(A, B[..., None], axis=-2)
    return np.cross(A.swapaxes(-1, -2)[..., None], B[..., None, :, :], axis=-2)


def quadratic(C: ArrayLike, D: ArrayLike) -> np.ndarray:
    """Compute [D]ᵀ[C][D] plane by plane, the quadratic operation on a 3-index array (Appendix A.1).

    Parameters
    ----------
    C, D : (..., N, M, M), (..., M, K) array_like
        Array of N planes, and a matrix. (The source misprints its shape and that of the result.)

    Returns
    -------
    (..., N, K, K) ndarray
        Plane n is [D]ᵀ ``[C]_n;`` [D], where ``[C]_n;`` is the source's notation for plane n of C.

    Examples
    --------
    >>> quadratic([[[0.0, 1.0], [0.0, 0.0]]], [[2.0], [3.0]])
    array([[[6.]]])
    """
    C = _checked("C", C, "N", "M", "M")
    D = _checked("D", D, C.shape[-1], "K", fit=f" to match `C` of shape (..., N, M, {C.shape[-1]})")
    _check_batches(C=C.shape[:-3], D=D.shape[:-2])
    return transform(C, D, 2)


@_quiet
def bilinear(C: ArrayLike, L: ArrayLike | None, R: ArrayLike | None) -> np.ndarray:
    """Compute [L]ᵀ[C][R] plane by plane (Appendix A.1 with different matrices on the two sides).

    Parameters
    ----------
    C : (..., N, M, W) array_like
        Array of N planes, square or not.
    L, R : (..., M, J) and (..., W, K) array_like or None
        Left matrix, which the product transposes, and right matrix. None leaves that side unchanged.

    Returns
    -------
    (..., N, J, K) ndarray
        Plane n is [L]ᵀ ``[C]_n;`` [R], where ``[C]_n;`` is the source's notation for plane n of C.

    Examples
    --------
    >>> G, II = np.eye(3), np.diag([1.0, 2.0, 4.0])
    >>> bilinear(cross(G, G), II @ G, None)[0, 1]  # [G]ᵀ[II]([G]ᵀ × [G]) of (2-194)
    array([ 0.,  0., -2.])
    """
    if L is None and R is None:
        raise InputError("`L` or `R` must be a matrix, got None for both.", key="L")
    C = _checked("C", C, "N", "M", "W")
    M, W = C.shape[-2:]
    fit = f" to match `C` of shape (..., N, {M}, {W})"
    left = None if L is None else _checked("L", L, M, "J", fit=fit)[..., None, :, :]
    right = None if R is None else _checked("R", R, W, "K", fit=fit)[..., None, :, :]
    _check_batches(**{k: a.shape[:-3] for k, a in {"C": C, "L": left, "R": right}.items() if a is not None})
    product = C if left is None else left.swapaxes(-1, -2) @ C
    return product if right is None else product @ right


def form(T: ArrayLike, *vectors: ArrayLike | None) -> np.ndarray:
    """Compute a multilinear form: contract each index of T after the first with a vector (Appendix A.2).

    The quadratic form bᵀ[C]b is ``form(C, b, b)``. The jerk (2-44) has D(q̇, q̇, q̇) = ``form(D, qd, qd, qd)``
    and q̈ᵀ([H] + 2[H]ᵀ)q̇ = ``form(H, qdd, qd) + 2 * form(H, qd, qdd)``.

    Parameters
    ----------
    T : (..., N, M1, ..., Mk) array_like
        Array with one index after N for each of the `vectors`. Axes in front of N are batch axes.
    *vectors : (..., Mi) array_like or None
        Vectors for the indices, in order. None leaves that index open: q̇ᵀ[H] is ``form(H, qd, None)`` and
        q̇ᵀ[H]ᵀ is ``form(H, None, qd)``, as in the partial derivatives (2-20), (2-35) and (2-43).

    Returns
    -------
    (..., N) ndarray
        With the open indices, in order, after N.

    Examples
    --------
    >>> H = np.array([[[1.0, 2.0], [0.0, 5.0]]])
    >>> form(H, [1.0, 1.0], [1.0, -1.0])
    array([-6.])
    >>> form(H, [1.0, 1.0], None)
    array([[1., 7.]])
    """
    if all(v is None for v in vectors):
        raise InputError("`vectors` must hold at least one vector, got none.", key="vectors")
    order = len(vectors)
    T = _checked("T", T, "N", *(f"M{i + 1}" for i in range(order)), fit=f" to match {order} `vectors`")
    sizes = T.shape[-order:]
    fit = f" to match `T` of shape (..., N, {', '.join(map(str, sizes))})"
    given = [
        None if v is None else _checked(f"vectors[{i}]", v, sizes[i], fit=fit) for i, v in enumerate(vectors)
    ]
    batches = {f"vectors[{i}]": v.shape[:-1] for i, v in enumerate(given) if v is not None}
    _check_batches(T=T.shape[: -order - 1], **batches)
    return evaluate_form(T, given)


@_quiet
def contract(X: np.ndarray, T: np.ndarray, left: int, right: int) -> np.ndarray:
    """Contract the last index of X (..., *left, N) with the first of T (..., N, *right); core of `dot`.

    `left` and `right` are the numbers of remaining indices.

    Examples
    --------
    >>> contract(np.ones((5, 2, 3)), np.ones((3, 4, 4)), 1, 2).shape
    (5, 2, 4, 4)
    """
    head, tail = X.shape[X.ndim - left - 1 : -1], T.shape[T.ndim - right :]
    # with the remaining indices merged, this is an ordinary matrix product
    rows = X.reshape(*X.shape[: X.ndim - left - 1], prod(head), X.shape[-1])
    columns = T.reshape(*T.shape[: T.ndim - right], prod(tail))
    product = rows @ columns
    return product.reshape(*product.shape[:-2], *head, *tail)


@_quiet
def transform(T: np.ndarray, A: np.ndarray, order: int) -> np.ndarray:
    """Contract each of the last `order` indices of T (..., P, N, …) with A (..., N, M); core of `quadratic`.

    Examples
    --------
    >>> transform(np.ones((5, 2, 3, 3)), np.ones((3, 4)), 2).shape
    (5, 2, 4, 4)
    """
    N, M = A.shape[-2:]
    batch, P = T.shape[: -order - 1], T.shape[-order - 1]
    # the last index, then those before it, each as one matrix product without a copy
    product = T.reshape(*batch, P * N ** (order - 1), N) @ A
    batch = product.shape[:-2]
    left = A.swapaxes(-1, -2)[..., None, :, :]
    for k in range(1, order):
        product = left @ product.reshape(*batch, P * N ** (order - 1 - k), N, M**k)
    return product.reshape(*batch, P, *(M,) * order)


@_quiet
def evaluate_form(T: np.ndarray, vectors: Sequence[np.ndarray | None]) -> np.ndarray:
    """Contract last indices of T (..., P, M1, …) with vectors (..., Mi), None for open; core of `form`."""
    order = len(vectors)
    for i in reversed(range(order)):  # each sum leaves less for the next
        v = vectors[i]
        if v is None:
            continue
        if i < order - 1:
            T = np.moveaxis(T, i - order, -1)
        T = T @ v if v.ndim == 1 else contract(T, v[..., None], order, 1)[..., 0]
        order -= 1
    return T


def _checked(name: str, value: Any, *rule: int | str, fit: str = "") -> np.ndarray:
    """Return an array of numbers whose last axes follow the rule: sizes, or names for any size."""
    try:
        a = np.asarray(value)
    except ValueError:
        message = f"`{name}` must be an array, got a ragged {type(value).__name__}."
        raise InputError(message, key=name) from None
    if a.dtype.kind == "O" and as_numbers(a) is None:
        raise invalid(name, "must hold numbers or symbols", value)
    if a.dtype.kind not in "ifcO":  # bools multiply as "and", differences of unsigned numbers wrap around
        raise invalid(name, "must hold signed, complex or object numbers", a.dtype, shown=f"{a.dtype}")
    shape = a.shape[-len(rule) :]
    sizes = dict(zip(rule, shape, strict=False))
    wanted = tuple(sizes.get(r) if isinstance(r, str) else r for r in rule)  # a name twice is one size
    if shape != wanted:
        text = f"(..., {', '.join(map(str, rule))}){fit}"
        raise invalid(name, f"must have shape {text}", a.shape)
    return a


def _check_batches(**batches: tuple[int, ...]) -> None:
    """Raise an error for batches that do not broadcast."""
    try:
        np.broadcast_shapes(*batches.values())
    except ValueError:
        listed = ", ".join(f"`{name}` {batch}" for name, batch in batches.items())
        raise InputError(f"Batches must broadcast, got {listed}.", batches=batches) from None
