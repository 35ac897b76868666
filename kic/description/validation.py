"""Validators for the parts of a mechanism; they return normalized values or raise `ModelError`."""

from __future__ import annotations

import re
from cmath import sqrt
from collections.abc import Callable, Iterable, Sequence
from math import dist, hypot
from typing import Any

import numpy as np

from kic.errors import ModelError, invalid_part, printable, short_repr
from kic.numerics.arrays import reals

Vector = tuple[float, float, float]
# largest number in a description; products such as (mass · length²)² stay below the largest float, 1.8e308
SIZE_MAX = 1e50
# sine (cosine) of the angle below which two given directions count as parallel (perpendicular)
PARALLEL_ATOL = 1e-9
GROUND = "ground"
# name of the joint that changes a dimension, such as "B.at.x", "B.axis.crank.rx" or "B.value"
_DIMENSION = re.compile(r"[^.]+\.(value|length|(at|axis|axes|com|origin)(\.[^.]+)?\.r?[xyz])(?![^.])")


def check_size(owner: str, key: str, a: np.ndarray) -> np.ndarray:
    """Return numbers of a description, or raise an error if products of them could overflow."""
    size = float(np.abs(a).max(initial=0.0))
    if size > SIZE_MAX:
        remedy = "Products of larger numbers overflow; use larger units."
        raise invalid_part(owner, key, f"must not exceed {SIZE_MAX:g}", size, remedy, shown=f"{size:g}")
    return a


def vector(owner: str, key: str, value: Any) -> Vector:
    """Return a value as three finite numbers."""
    a = reals(value)
    if a is None or a.shape != (3,):
        raise invalid_part(owner, key, "must be three finite numbers", value)
    x, y, z = check_size(owner, key, a).tolist()
    return (x, y, z)


def number(owner: str, key: str, value: Any, least: float | None = None) -> float:
    """Return a value as a finite number of at least `least`."""
    a = reals(value)
    if a is None or a.shape != () or (least is not None and a.real < least):
        at_least = "" if least is None else f" ≥ {least:g}"
        raise invalid_part(owner, key, f"must be a finite number{at_least}", value)
    return check_size(owner, key, a).item()


def nonnegative(owner: str, key: str, value: Any) -> float:
    """Return a value as a finite number of at least 0."""
    return number(owner, key, value, 0.0)


def share(owner: str, key: str, value: Any) -> float:
    """Return a value as a number of at least 0 and less than 1."""
    found = nonnegative(owner, key, value)
    if not found.real < 1:
        raise invalid_part(owner, key, "must be less than 1, because it is relative", value)
    return found


def direction(owner: str, key: str, value: Any) -> Vector:
    """Return a value as three finite numbers that are not all zero."""
    a = reals(value)
    # the length may exceed SIZE_MAX and is checked below
    v = vector(owner, key, value) if a is None or a.shape != (3,) else tuple(a.tolist())
    size = hypot(*(x.real for x in v))
    if not size:
        raise ModelError(f"{owner}: `{key}` is zero; give a direction.", key=key)
    if not 1e-100 < size < 1e100:
        raise invalid_part(owner, key, "must have a length between 1e-100 and 1e100 (it need not be 1)", v)
    return v


def point_distance(one: Vector, other: Vector) -> float:
    """Return the distance of two points; complex steps are kept."""
    gap = [a - b for a, b in zip(one, other, strict=True)]
    if any(isinstance(x, complex) for x in gap):
        return sqrt(sum(x * x for x in gap))  # type: ignore[return-value]
    return dist(one, other)


def interval(owner: str, key: str, value: Any, remedy: str = "") -> tuple[float, float]:
    """Return a value as a lower and an upper limit; both may be infinite."""
    try:
        pair = () if isinstance(value, str | bytes) or np.ma.is_masked(value) else tuple(map(float, value))
    except (TypeError, ValueError, OverflowError):
        pair = ()
    if len(pair) != 2 or not pair[0] < pair[1]:
        raise invalid_part(owner, key, "must be two numbers, the lower one first", value, remedy)
    return (pair[0], pair[1])


def bounds(owner: str, key: str, value: Any) -> tuple[float, float]:
    """Return lower and upper limits around 0 from a magnitude or a pair."""
    try:
        other = isinstance(value, bool | np.bool_ | str | bytes) or np.ma.is_masked(value)
        size = float("nan" if other else value)
        pair = -size, size
    except (TypeError, ValueError, OverflowError):
        pair = interval(owner, key, value)
    if not (pair[0] <= 0 <= pair[1] and pair[0] < pair[1]):
        raise invalid_part(owner, key, "must be a positive number, or two with 0 between them", value)
    return pair


def flag(owner: str, key: str, value: Any, remedy: str = "") -> bool:
    """Return a value that is a bool; raise `ModelError` for other types."""
    if value is not True and value is not False:
        raise invalid_part(owner, key, "must be True or False", value, remedy)
    return value


def text(owner: str, key: str, value: Any) -> str:
    """Return a string that can safely be printed at a terminal."""
    if not isinstance(value, str):
        raise invalid_part(owner, key, "must be text", value)
    if printable(value) != value:
        rule, remedy = (
            "must be text without control characters",
            "Remove them; tabs and line breaks (\\n) may stay.",
        )
        raise invalid_part(owner, key, rule, value, remedy)
    return str(value)


def choice(owner: str, key: str, value: Any, among: Iterable[str]) -> str:
    """Return a value that is one of several words."""
    words = tuple(among)
    if not isinstance(value, str) or value not in words:
        raise invalid_part(owner, key, f"must be one of {', '.join(map(repr, words))}", value)
    return str(value)


def split_row(name: str) -> tuple[str, str]:
    """Return the name of the part of a row or component, and the rest without its dot.

    Joints of dimensions are the only parts with dots in their names.
    """
    found = _DIMENSION.match(name)
    part = found.group() if found else name.partition(".")[0]
    return part, name[len(part) + 1 :]


def part_of(row: str) -> str:
    """Return the name of the part of a row or component."""
    return split_row(row)[0] if "." in row else row


def check_name(kind: str, value: Any, key: str = "name") -> str:
    """Return a valid name; dots are reserved for components, rows, and joints of dimensions."""
    word = isinstance(value, str) and value.isprintable() and value == value.strip()
    if not word or not value or ("." in value and (kind != "joint" or part_of(value) != value)):
        raise ModelError(
            f"A {kind}'s `{key}` must be text without dots, line breaks or outer spaces, and not empty, "
            f"got {short_repr(value)}.",
            key=key,
        )
    return str(value)


def listed(owner: str, key: str, value: Any, what: str) -> tuple[Any, ...]:
    """Return the members of a list or other ordered collection; strings, dicts and sets are errors."""
    try:
        if not isinstance(value, str | bytes | dict | set | frozenset):
            return tuple(value)
    except TypeError:
        pass
    raise invalid_part(owner, key, f"must be a list of {what}", value)


def joint_names(owner: str, given: Any, least: int, remedy: str = "") -> tuple[str, ...]:
    """Return the names of different joints, at least `least`."""
    names = listed(owner, "joints", given, "joint names")
    if len(names) < least or not all(isinstance(name, str) for name in names):
        count = "one joint" if least == 1 else "two joints"
        raise invalid_part(owner, "joints", f"must name {count} or more", given, remedy)
    check_distinct(owner, names, given)
    return tuple(map(str, names))


def check_distinct(owner: str, names: Sequence[str], given: Any) -> None:
    """Raise an error if `joints` names a joint or a coordinate twice."""
    if len(set(names)) < len(names):
        raise invalid_part(owner, "joints", "must not repeat a joint", given)


def two_names(owner: str, key: str, value: Any) -> tuple[str, str]:
    """Return two different names."""
    pair = listed(owner, key, value, f"two {key}")
    if len(pair) != 2 or not all(isinstance(name, str) for name in pair) or pair[0] == pair[1]:
        raise invalid_part(owner, key, f"must name two different {key}", value)
    return (str(pair[0]), str(pair[1]))


def check_part(part: Any, kind: str, **validators: Callable[[str, str, Any], Any]) -> str:
    """Check the name and the given fields of a part; return its kind and name as a label for messages.

    Optional fields may be None.
    """
    assign(part, name=check_name(kind, part.name))
    label = f"{kind.capitalize()} '{part.name}'"
    for key, validate in validators.items():
        given = getattr(part, key)
        if given is not None or getattr(type(part), key, ...) is not None:
            assign(part, **{key: validate(label, key, given)})
    return label


def assign(item: object, **values: Any) -> None:
    """Set normalized fields of a frozen instance during its construction."""
    for key, value in values.items():
        object.__setattr__(item, key, value)
