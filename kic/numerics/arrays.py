"""Members of a batch: which of them have an answer, and the answers among NaN for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from kic.errors import InputError, MemberError, batch_indices, short_repr

EXACT_INTEGER_MAX = {int, float, Fraction, Decimal}
# third powers of such numbers, times ordinary ones, are still finite
LARGEST = 1e90
# whether a description may carry complex steps, as it does while a sensitivity is asked
_STEPPING: ContextVar[bool] = ContextVar("stepping", default=False)
# an imaginary part larger than this is no step, but a complex number
_LARGEST_STEP = 1e-12
# imaginary parts this much smaller than those they come from are rounding
_SHARE = 1e-9


def numbers(name: str, value: Any) -> np.ndarray:
    """An array of float64, complex128 or objects (symbols).

    Raises
    ------
    InputError
        If it is no array of numbers; texts and booleans are none, and masked entries are no numbers.

    Examples
    --------
    >>> numbers("phi", [1, 2]).dtype
    dtype('float64')
    """
    a = as_numbers(value)
    if a is None:
        raise InputError(f"Expected `{name}` to be an array of numbers, got {short_repr(value)}.", name=name)
    return a


def as_numbers(value: Any) -> np.ndarray | None:
    """The same, or None instead of an error."""
    try:
        a = np.asarray(value)
        if a.dtype.kind == "O" and {type(x) for x in a.flat} <= EXACT_INTEGER_MAX:
            a = a.astype(np.float64)  # fractions and large integers are numbers, not symbols
    except (ValueError, TypeError, OverflowError, RuntimeError):  # ragged, endless, or its own refusal
        return None
    if np.ma.is_masked(value):
        return None
    if a.dtype == np.float64 or a.dtype == np.complex128:
        return a
    if a.dtype.kind in "fiu":
        return a.astype(np.float64)
    if a.dtype.kind == "c":
        return a.astype(np.complex128)
    return a if a.dtype.kind == "O" and all(map(_is_symbol, a.flat)) else None


def _is_symbol(x: Any) -> bool:
    """Whether the kernels can calculate with it."""
    kind = type(x)
    if issubclass(kind, bool | np.bool_ | np.ndarray):
        return False
    return all(hasattr(kind, sign) for sign in ("__add__", "__mul__", "__neg__"))


def reals(value: Any) -> np.ndarray | None:
    """An array of finite float64, or None where that is not what came; within `stepping`, with its steps."""
    a = as_numbers(value)
    if a is not None and a.dtype == np.complex128 and _STEPPING.get():
        small = np.abs(a.imag).max(initial=0.0) < _LARGEST_STEP
        a = (a if a.imag.any() else a.real) if small else None
        return a if a is not None and np.isfinite(a).all() else None
    return a if a is not None and a.dtype == np.float64 and np.isfinite(a).all() else None


@contextmanager
def stepping() -> Iterator[None]:
    """Descriptions made inside may carry complex steps: tiny imaginary parts that are derivatives."""
    token = _STEPPING.set(True)
    try:
        yield
    finally:
        _STEPPING.reset(token)


def has_complex_step(value: Any) -> bool:
    """Return True if a number, or one in nested tuples, is complex."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, tuple):
            left += one
        elif isinstance(one, complex):
            return True
    return False


def strip_complex_step(value: Any) -> Any:
    """A number, or those in nested tuples, without imaginary parts; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(strip_complex_step, value))
    return value.real if isinstance(value, complex) else value


def step_vanishes(x: Any, *of: Any) -> bool:
    """Whether the imaginary part of x is only rounding, beside those of what it is made of."""
    left, whole = np.abs(np.imag(x)).max(), max(np.abs(np.imag(part)).max() for part in of)
    return bool(left <= _SHARE * whole)


def as_array(name: str, value: Any, *shape: int, finite: bool = True) -> np.ndarray:
    """An array whose last axes have the given lengths; whatever stands in front is batch.

    Raises
    ------
    InputError
        For another shape, or entries that are not finite.

    Examples
    --------
    >>> trailing("qd", [[0, 1], [2, 3]], 2).shape
    (2, 2)
    """
    a = numbers(name, value)
    if a.ndim < len(shape) or a.shape[a.ndim - len(shape) :] != shape:
        wanted = ", ".join(["...", *map(str, shape)])
        raise InputError(
            f"Expected `{name}` to have shape ({wanted}), got {a.shape}.{scalar_hint(a, *shape)}",
            expected=shape,
            got=a.shape,
        )
    if not finite or a.dtype == object:
        return a
    if not np.isfinite(a).all():
        bad = np.argwhere(~np.isfinite(a))
        where = ", ".join(map(str, map(tuple, bad[:4].tolist())))
        raise InputError(
            f"Expected `{name}` to be finite, got {a[tuple(bad[0])]} at {where}"
            f"{' …' if len(bad) > 4 else ''} ({len(bad)} of {a.size} entries).",
            entries=bad,
        )
    return ordinary(name, a)


def ordinary(name: str, a: np.ndarray) -> np.ndarray:
    """Return numbers whose squares and cubes are finite; larger ones raise `InputError`, NaN passes."""
    size = float(np.fmax.reduce(np.abs(a), axis=None, initial=0.0))
    if size > LARGEST:
        raise InputError(
            f"`{name}` must not exceed {LARGEST:g}, got {size:g}. Choose larger units.", name=name, size=size
        )
    return a


def check_finite(quantity: str, owner: str, a: np.ndarray, ok: np.ndarray | None = None) -> None:
    """Refuse results that are not finite, except of members that are not ok.

    Parameters
    ----------
    quantity, owner : str
        Names for the message.
    a : (..., n) ndarray
        Results; symbols pass.
    ok : (...) bool, optional
        Members that have a posture; all by default.

    Raises
    ------
    InputError
        Carries `quantity`.
    """
    if a.dtype.kind == "O" or np.isfinite(a if ok is None else a[ok]).all():
        return
    raise InputError(
        f"{quantity} of '{owner}' must be finite, got numbers that overflow or are undefined here. Lengths, "
        "masses, stiffnesses, rates or the posture are too large for their products: use larger units.",
        quantity=quantity,
    )


def real_trailing(name: str, value: Any, *shape: int) -> np.ndarray:
    """Return the array of `trailing`; complex numbers and symbols raise `InputError`."""
    a = as_array(name, value, *shape)
    if a.dtype != np.float64:
        raise InputError(f"`{name}` must be real numbers, got {a.dtype}.", name=name)
    return a


def directions(name: str, value: Any, size: int | None) -> np.ndarray:
    """Return directions (..., size) scaled to unit length; of any size for None.

    Raises
    ------
    InputError
        For another shape, numbers that are not real and finite, or a direction of zero length.

    Examples
    --------
    >>> directions("direction", [0.0, -2e-200], 2)
    array([ 0., -1.])
    """
    a = numbers(name, value)
    shape = (size,) if size is not None else a.shape[-1:] or (1,)
    d = real_trailing(name, a, *shape)
    largest = np.abs(d).max(axis=-1, keepdims=True, initial=0.0)
    if not largest.all():
        raise InputError(f"`{name}` must have a length other than zero, got {short_repr(value)}.", name=name)
    d = d / largest  # so that squares of tiny numbers do not vanish
    return d / np.sqrt((d**2).sum(axis=-1, keepdims=True))


def scalar_hint(a: np.ndarray, *shape: int) -> str:
    """The remedy where one number came alone for a vector of one; elsewhere nothing.

    Examples
    --------
    >>> alone(np.array(2.0), 1)
    ' Give it in brackets: [2.0].'
    """
    return f" Give it in brackets: [{a[()]}]." if a.ndim == 0 and shape == (1,) else ""


def broadcast_batches(**batches: tuple[int, ...]) -> tuple[int, ...]:
    """Common batch shape of named arguments.

    Raises
    ------
    InputError
        If they do not go together.

    Examples
    --------
    >>> broadcast_batches(qd=(3, 1), qdd=(2,))
    (3, 2)
    """
    try:
        return np.broadcast_shapes(*batches.values())
    except ValueError:
        them = ", ".join(f"`{name}` {shape}" for name, shape in batches.items())
        raise InputError(f"Batch shapes do not broadcast: {them}.", batches=batches) from None


def one_batch(ranks: tuple[int, ...], *arrays: Any) -> tuple[Any, ...]:
    """Return arrays in a common batch; `ranks` are the numbers of their own axes, and None passes."""
    batch = arrays[0].shape[: -ranks[0]]
    for rank, a in zip(ranks, arrays, strict=True):
        if a is not None and a.shape[:-rank] != batch:
            break
    else:
        return arrays
    shapes = {
        f"array {k + 1}": a.shape[:-n]
        for k, (n, a) in enumerate(zip(ranks, arrays, strict=True))
        if a is not None
    }
    batch = broadcast_batches(**shapes)
    return tuple(
        None if a is None else np.broadcast_to(a, batch + a.shape[-rank:])
        for rank, a in zip(ranks, arrays, strict=True)
    )


def check_order(order: Any) -> int:
    """An order of coefficients."""
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool | np.timedelta64)
    if not whole or order not in (1, 2, 3):
        raise InputError(f"Expected `order` to be 1, 2 or 3, got {short_repr(order)}.")
    return int(order)


def check_failures(failures: Any) -> None:
    """What becomes of members that fail, or an error."""
    if not isinstance(failures, str) or failures not in ("raise", "mask"):
        raise InputError(f"Expected `failures` to be 'raise' or 'mask', got {short_repr(failures)}.")


def map_valid_members(ok: np.ndarray, failures: str, answer: Callable[[Any], Any]) -> tuple[np.ndarray, Any]:
    """An answer for the members of a batch that have one, and which these are.

    Parameters
    ----------
    ok : (...) bool
        Members that have a posture.
    failures : {"raise", "mask"}
        What becomes of those without an answer.
    answer : callable
        Takes flat indices of members, or a slice of all.
    """
    check_failures(failures)
    good = ok.copy()
    while True:
        try:
            members = np.flatnonzero(good)
            with batch_indices(members, good.shape):
                # all of them as they stand, without a copy
                return good, answer(slice(None) if len(members) == good.size else members)
        except MemberError as error:
            failed = error.numbers.get("failed")
            if failures == "raise" or not failed:
                raise
            for index in failed:
                good[index] = False


def scatter(part: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Answers (n, …) of the members that have one, among NaN for all others (B, …)."""
    if good.all():
        return part
    whole = np.full((good.size, *part.shape[1:]), np.nan, part.dtype)
    whole[good.reshape(-1)] = part
    return whole
