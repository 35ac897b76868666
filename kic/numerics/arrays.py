"""Arrays of arguments and results: checked numbers, shapes, batches and their valid members."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from kic.errors import InputError, MemberError, batch_indices, invalid, short_repr

# types of exact numbers in object arrays, which are converted to float64
_EXACT_TYPES = {int, float, Fraction, Decimal}
REAL = np.dtype(np.float64)
# largest number of an argument; its cube, times numbers of order one, is finite
ARGUMENT_MAX = 1e90
# largest number of members of a batch, 2 GiB for each number that a member has
MEMBERS_MAX = 2**28
# True while sensitivities are computed, when a description may carry complex steps
_STEPPING: ContextVar[bool] = ContextVar("stepping", default=False)
# largest imaginary part of a complex step; numbers with larger ones are complex numbers
_COMPLEX_STEP_MAX = 1e-12
# imaginary parts below this share of those of their terms are rounding errors
_COMPLEX_STEP_RTOL = 1e-9


def numbers(name: str, value: Any) -> np.ndarray:
    """Return an array of float64, complex128 or objects (symbols); reject texts, booleans and masks."""
    a = as_numbers(value)
    if a is None:
        remedy = "Give the numbers in order, without names." if isinstance(value, dict) else ""
        raise invalid(name, "must be an array of numbers", value, remedy)
    return a


def as_numbers(value: Any) -> np.ndarray | None:
    """Return an array as in `numbers`, or None if the value is not an array of numbers."""
    try:
        a = np.asarray(value)
        if a.dtype.kind == "O" and {type(x) for x in a.flat} <= _EXACT_TYPES:
            a = a.astype(np.float64)  # fractions and large integers are numbers, not symbols
    except (ValueError, TypeError, OverflowError, RuntimeError):  # ragged, infinite, or raised by the object
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
    """Return True if an object has the arithmetic that the kernels need."""
    kind = type(x)
    if issubclass(kind, bool | np.bool_ | np.ndarray | np.datetime64 | np.timedelta64 | timedelta):
        return False
    return all(hasattr(kind, sign) for sign in ("__add__", "__mul__", "__neg__"))


def reals(value: Any) -> np.ndarray | None:
    """Return an array of finite float64, or None; inside `stepping` it may have complex steps."""
    a = as_numbers(value)
    if a is not None and a.dtype == np.complex128 and _STEPPING.get():
        small = np.abs(a.imag).max(initial=0.0) < _COMPLEX_STEP_MAX
        a = (a if a.imag.any() else a.real) if small else None
        return a if a is not None and np.isfinite(a).all() else None
    return a if a is not None and a.dtype == np.float64 and np.isfinite(a).all() else None


@contextmanager
def stepping() -> Iterator[None]:
    """Allow complex steps (imaginary parts that carry derivatives) in descriptions made inside the block."""
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
    """Strip imaginary parts from a number, or nested tuples of numbers; return other objects unchanged."""
    if isinstance(value, tuple):
        return tuple(map(strip_complex_step, value))
    return value.real if isinstance(value, complex) else value


def step_vanishes(x: Any, *of: Any) -> bool:
    """Return True if the imaginary part of x is rounding error, compared with those of its terms `of`."""
    left, whole = np.abs(np.imag(x)).max(), max(np.abs(np.imag(part)).max() for part in of)
    return bool(left <= _COMPLEX_STEP_RTOL * whole)


def as_array(name: str, value: Any, *shape: int, finite: bool = True, bounded: bool = True) -> np.ndarray:
    """Return an array whose last axes have the given lengths; the axes in front are the batch.

    One number is accepted where the lengths are (1,). Entries must be finite, unless `finite` is False, and
    not larger than `ARGUMENT_MAX`, unless `bounded` is False. Raise `InputError` otherwise, or if the shape
    is wrong.
    """
    a = numbers(name, value)
    if a.ndim == 0 and shape == (1,):  # one degree of freedom
        a = a[None]
    if a.ndim < len(shape) or a.shape[a.ndim - len(shape) :] != shape:
        wanted = ", ".join(["...", *map(str, shape)])
        raise invalid(name, f"must have shape ({wanted})", a.shape, expected=shape)
    if not finite or a.dtype == object:
        return a
    if not np.isfinite(a).all():
        bad = np.argwhere(~np.isfinite(a))
        where = ", ".join(map(str, map(tuple, bad[:4].tolist())))
        message = (
            f"`{name}` must be finite, got {a[tuple(bad[0])]} at {where}{' …' if len(bad) > 4 else ''} "
            f"({len(bad)} of {a.size} entries)."
        )
        raise InputError(message, key=name, got=a[tuple(bad[0])], entries=bad)
    return ordinary(name, a) if bounded else a


def vector(name: str, value: Any, size: int, **checks: bool) -> np.ndarray:
    """Return `size` numbers without a batch; see `as_array`."""
    a = as_array(name, value, size, **checks)
    if a.ndim > 1:
        raise invalid(name, f"must have shape ({size},)", a.shape, expected=(size,))
    return a


def one_batch_axis(a: np.ndarray, rank: int = 1) -> np.ndarray:
    """Reshape arrays with `rank` axes for each member to a single batch axis, which may be empty."""
    return a.reshape(prod(a.shape[: a.ndim - rank]), *a.shape[a.ndim - rank :])


def is_scalar(value: Any) -> bool:
    """Return True if a value is one number."""
    a = as_numbers(value)
    return a is not None and a.ndim == 0


def ordinary(name: str, a: np.ndarray) -> np.ndarray:
    """Return numbers whose squares and cubes are finite; larger numbers raise `InputError`, NaN passes."""
    size = float(np.fmax.reduce(np.abs(a), axis=None, initial=0.0))
    if size > ARGUMENT_MAX:
        rule = f"must not exceed {ARGUMENT_MAX:g}"
        raise invalid(name, rule, size, "Choose larger units.", shown=f"{size:g}")
    return a


def is_finite(a: np.ndarray) -> bool:
    """Return True if all entries and their sum are finite; True for objects."""
    if a.dtype.kind == "O":
        return True
    with np.errstate(all="ignore"):
        return bool(np.isfinite(a.sum()))


def check_finite(quantity: str, owner: str, a: np.ndarray, ok: np.ndarray | None = None) -> None:
    """Raise an `InputError` that names `quantity` if results (..., n) of solved members are not finite."""
    if a.dtype.kind == "O" or np.isfinite(a if ok is None else a[ok]).all():
        return
    raise InputError(
        f"{quantity} of '{owner}' must be finite, got numbers that overflow or are undefined here. Lengths, "
        "masses, stiffnesses, rates or coordinates are too large for their products: use larger units.",
        quantity=quantity,
    )


def real_array(name: str, value: Any, *shape: int, **checks: bool) -> np.ndarray:
    """Return the array of `as_array`; complex numbers and symbols raise `InputError`."""
    return require_real(name, as_array(name, value, *shape, **checks))


def require_real(name: str, a: np.ndarray) -> np.ndarray:
    """Return an array of real numbers; complex numbers and symbols raise `InputError`."""
    if a.dtype != np.float64:
        raise InputError(f"`{name}` must be real numbers, got {a.dtype}.", key=name, got=a.dtype)
    return a


def not_symbolic(name: str, a: np.ndarray) -> np.ndarray:
    """Return an array of real or complex numbers; symbols raise `InputError`."""
    if a.dtype == object:
        raise InputError(f"`{name}` must be numbers, got symbols.", key=name, got=a.dtype)
    return a


def directions(name: str, value: Any, size: int | None) -> np.ndarray:
    """Return directions (..., size) scaled to unit length; None allows any size.

    Raise `InputError` if the shape is wrong, numbers are not real and finite, or a direction has zero length.
    The error has `entries`, the index of that direction.
    """
    a = numbers(name, value)
    shape = (size,) if size is not None else a.shape[-1:] or (1,)
    d = real_array(name, a, *shape, bounded=False)
    largest = np.abs(d).max(axis=-1, keepdims=True, initial=0.0)
    if not largest.all():
        where = np.argwhere(largest[..., 0] == 0)[0].tolist()
        at = f" at {where}" if where else ""
        message = f"`{name}` must have a length other than zero, got {short_repr(value)}{at}."
        raise InputError(message, key=name, got=value, entries=where)
    d = d / largest  # squares of tiny and huge numbers are not representable
    return d / np.sqrt((d**2).sum(axis=-1, keepdims=True))


def broadcast_batches(**batches: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common batch shape of named arguments; raise `InputError` if none exists or is allowed."""
    try:
        batch = np.broadcast_shapes(*batches.values())
    except ValueError:  # also for shapes beyond the limits of NumPy
        them = ", ".join(f"`{name}` {shape}" for name, shape in batches.items())
        raise InputError(f"Batch shapes do not broadcast: {them}.", batches=batches) from None
    if (count := prod(batch)) > MEMBERS_MAX:
        raise _too_large(count, f"shape {batch}")
    return batch


def _too_large(count: int, of: str) -> InputError:
    """Make the error for a batch that is too large, before it is allocated."""
    message = f"A batch must have at most {MEMBERS_MAX:,} members, got {count:,} in {of}. Divide it."
    return InputError(message, got=count, limit=MEMBERS_MAX)


def grid_points(axes: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the coordinates (n,) of all points of a grid, the last axis fastest."""
    counts = [len(x) for x in axes.values()]
    if (count := prod(counts)) > MEMBERS_MAX:
        raise _too_large(count, f"a grid of {' × '.join(map(str, counts))} points")
    mesh = np.meshgrid(*axes.values(), indexing="ij")
    return {name: x.ravel() for name, x in zip(axes, mesh, strict=True)}


def one_batch(ranks: tuple[int, ...], *arrays: Any) -> tuple[Any, ...]:
    """Broadcast arrays to a common batch, except None; `ranks` are their numbers of axes for one member."""
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


def check_failures(failures: Any) -> None:
    """Raise an error unless `failures` is "raise" or "mask"."""
    if not isinstance(failures, str) or failures not in ("raise", "mask"):
        raise invalid("failures", "must be 'raise' or 'mask'", failures)


def map_valid_members(ok: np.ndarray, failures: str, answer: Callable[[Any], Any]) -> tuple[np.ndarray, Any]:
    """Return the mask of the members with a result, and the result of `answer` for them.

    `answer` is a function of the flat indices of members, or of a slice of all. It is called for the members
    that are `ok`. If it raises `MemberError` for some and `failures` is "mask", it is called again without
    these members.
    """
    check_failures(failures)
    good = np.array(ok)  # an array also for a single member
    while True:
        try:
            members = np.flatnonzero(good)
            with batch_indices(members, good.shape):
                # a slice avoids a copy
                return good, answer(slice(None) if len(members) == good.size else members)
        except MemberError as error:
            failed = error.numbers.get("failed")
            if failures == "raise" or not failed:
                raise
            for index in failed:
                good[index] = False


def scatter(part: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Return results (n, …) of valid members in an array of all members (B, …), NaN elsewhere."""
    if good.all():
        return part
    whole = np.full((good.size, *part.shape[1:]), np.nan, part.dtype)
    whole[good.reshape(-1)] = part
    return whole
