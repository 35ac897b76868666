"""Checks of arguments other than arrays; each returns the value in its plain form or raises `InputError`."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np

from kic.errors import InputError, OutOfRangeError, either, invalid, short_repr, unknown
from kic.numerics.arrays import as_numbers, broadcast_batches, reals


def names_of(of: Any, argument: str = "of", least: int = 0) -> tuple[str, ...]:
    """Return one name or several as a tuple.

    Raise `InputError` if an entry is not a string, or there are fewer than `least`.
    """
    if isinstance(of, str):
        return (of,)
    names = of if type(of) is tuple else tuple(entries(of))
    for name in names:
        if type(name) is not str and not isinstance(name, str):
            known = getattr(name, "name", None)  # parts of mechanisms have a name
            remedy = f"Give the name '{known}'." if isinstance(known, str) else ""
            raise invalid(argument, "must contain names", name, remedy)
    if len(names) < least:
        raise InputError(f"`{argument}` must contain at least one name, got none.", key=argument)
    return names


def entries(value: Any) -> list[Any]:
    """Return the entries of an iterable as a list, or [value] for an object that is not iterable."""
    try:
        return list(value) if np.iterable(value) else [value]
    except (TypeError, ValueError):  # a single rotation is iterable by its type only
        return [value]


def is_function(value: Any) -> TypeGuard[Callable[..., Any]]:
    """Return True if a value can be called and is not a class."""
    return callable(value) and not isinstance(value, type)


def check_parameters(name: str, function: Callable[..., Any], *parameters: str) -> None:
    """Raise `InputError` for a function that cannot be called with these positional arguments."""
    try:
        if isinstance(function, np.ufunc) and function.nin != len(parameters):
            raise TypeError
        inspect.signature(function).bind(*parameters)
    except TypeError:
        listed = ", ".join(parameters)
        remedy = f"For example, write lambda {listed}: f({parameters[0]})."
        raise invalid(name, f"must be a function of ({listed})", function, remedy) from None
    except ValueError:  # a function without signature
        return


def flag(name: str, value: Any) -> bool:
    """Return a bool; 0 and 1 are accepted, and other objects raise an error."""
    if value is True or value is False:
        return value
    if isinstance(value, np.ndarray) and value.shape == () and value.dtype == bool:
        return bool(value)
    if isinstance(value, bool | np.bool_ | int | np.integer) and value in (0, 1):
        return bool(value)
    raise invalid(name, "must be True or False", value)


def text(name: str, value: Any) -> str:
    """Return a value that is a string; raise an error for other objects."""
    if not isinstance(value, str):
        raise invalid(name, "must be a string", value)
    return str(value)


def choice(name: str, value: Any, among: Iterable[str]) -> str:
    """Return a word that is in a list; raise an error for other objects."""
    words = tuple(among)
    if not isinstance(value, str) or value not in words:
        listed = either(map(repr, words))
        raise invalid(name, f"must be {listed}", value, candidates=words)
    return str(value)


# largest count, of samples or steps: arrays of as many numbers fit into memory
COUNT_MAX = 10**7


def integer(name: str, value: Any, least: int, most: int | None = COUNT_MAX, other: str = "") -> int:
    """Return an integer within bounds; `other` names an accepted alternative in the error."""
    number = isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
    if not number or value < least or (most is not None and value > most):
        high = number and value >= least
        bounds = f"≤ {most}" if high else f"≥ {least}"
        bounds = bounds if most in (None, COUNT_MAX) else f"from {least} to {most}"
        bounds += f" or {other}" if other else ""
        raise invalid(name, f"must be an integer {bounds}", value)
    return int(value)


def check_order(order: Any) -> int:
    """Return an order of coefficients, 1 to 3."""
    if type(order) is int and 0 < order < 4:
        return order
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool | np.timedelta64)
    if not whole or order not in (1, 2, 3):
        raise invalid("order", "must be 1, 2 or 3", order)
    return int(order)


def generator(rng: Any) -> np.random.Generator:
    """Return the random generator for a seed, or the given generator."""
    if isinstance(rng, np.random.Generator):
        return rng
    # NumPy's own check recurses without end on a matrix
    return np.random.default_rng(integer("rng", rng, 0, None, other="a Generator"))


def positive(name: str, value: Any) -> float:
    """Return a finite number above zero."""
    a = reals(value)
    if a is None or a.shape != () or a.dtype != np.float64 or not a > 0:
        raise invalid(name, "must be a positive finite number", value)
    return float(a)


def at_least(name: str, value: Any, least: float) -> float:
    """Return a finite number of at least `least`."""
    a = reals(value)
    if a is None or a.shape != () or a.dtype != np.float64 or a < least:
        raise invalid(name, f"must be a finite number{f' ≥ {least:g}' * (least > -np.inf)}", value)
    return float(a)


def mapping(name: str, value: Any, of: str) -> dict[str, Any]:
    """Return a dict whose keys are names."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise invalid(name, f"must be a dict that maps {of}", value)
    return dict(value)


def by_name(name: str, value: Any, labels: tuple[str, ...]) -> Any:
    """Convert a dict by label to numbers (..., n) in the order of the labels; return other values unchanged.

    Entries may be batches (...), which broadcast. Absent labels are zero.
    """
    if not isinstance(value, Mapping):
        return value
    for label in value:
        if label not in labels:
            raise unknown("row", label, f"the rows of `{name}`", labels, quoted=False)
    arrays = []
    for label in labels:
        a = as_numbers(value.get(label, 0.0))
        if a is None:
            raise invalid(name, f"must be numbers for '{label}'", value[label])
        arrays.append(a)
    shape = broadcast_batches(**{f"{name}[{x!r}]": a.shape for x, a in zip(labels, arrays, strict=True)})
    return np.stack([np.broadcast_to(a, shape) for a in arrays], axis=-1) if labels else np.zeros(0)


def instance(name: str, value: Any, kind: type, remedy: str = "") -> Any:
    """Return a value that is an instance of `kind`; raise an error for others."""
    if not isinstance(value, kind):
        raise invalid(name, f"must be a {kind.__name__}", value, remedy)
    return value


def item(items: tuple[Any, ...], k: Any) -> Any:
    """Return an item of a tuple by its index, or several by a slice.

    Raise `OutOfRangeError`, which is also an IndexError, if there is no such index.
    """
    try:
        return items[k if isinstance(k, slice) else operator.index(k)]
    except (TypeError, ValueError, OverflowError):
        message = f"The index must be an integer or a slice, got {short_repr(k)}."
        raise InputError(message, key="index", got=k) from None
    except IndexError:
        message = f"The index must be less than {len(items)}, got {short_repr(k)}."
        raise OutOfRangeError(message, key="index", got=k) from None
