"""Checks of what a description is made of: each returns the value in its plain form, or says the rule."""

from __future__ import annotations

from cmath import sqrt
from collections.abc import Iterable
from math import dist, hypot
from typing import Any

import numpy as np

from kic.errors import ModelError, short_repr
from kic.numerics.arrays import reals

Vector = tuple[float, float, float]
# largest number in a description: products such as (mass · length²)² stay below the largest float, 1.8e308
SIZE_MAX = 1e50
GROUND = "ground"
# how the schema library reads parts from a file; what it tells of their fields, `modelfile.schema` asks
STRICT: dict[str, Any] = {"extra": "forbid"}


def check_size(owner: str, key: str, a: np.ndarray) -> np.ndarray:
    """Return numbers of a description, or raise an error if products of them could overflow."""
    size = float(np.abs(a).max(initial=0.0))
    if size > SIZE_MAX:
        raise ModelError(
            f"{owner}: `{key}` must not exceed {SIZE_MAX:g}, got {size:g}. Products of larger numbers "
            "overflow; use larger units.",
            key=key,
            size=size,
        )
    return a


def vector(owner: str, key: str, value: Any) -> Vector:
    """Three finite numbers, or an error that names whose they are."""
    a = reals(value)
    if a is None or a.shape != (3,):
        raise ModelError(
            f"{owner}: expected `{key}` to be three finite numbers, got {short_repr(value)}.", key=key
        )
    x, y, z = check_size(owner, key, a).tolist()
    return (x, y, z)


def number(owner: str, key: str, value: Any, least: float | None = None) -> float:
    """One finite number, not below `least`."""
    a = reals(value)
    if a is None or a.shape != () or (least is not None and a.real < least):
        at_least = "" if least is None else f" of at least {least:g}"
        raise ModelError(
            f"{owner}: expected `{key}` to be a finite number{at_least}, got {short_repr(value)}.", key=key
        )
    return check_size(owner, key, a).item()


def direction(owner: str, key: str, value: Any) -> Vector:
    """Three finite numbers that have a direction."""
    a = reals(value)
    # the length does not matter: it is checked below
    v = vector(owner, key, value) if a is None or a.shape != (3,) else tuple(a.tolist())
    size = hypot(*(x.real for x in v))
    if not size:
        raise ModelError(f"{owner}: `{key}` is zero; give a direction.", key=key)
    if not 1e-100 < size < 1e100:
        raise ModelError(
            f"{owner}: expected `{key}` to have an ordinary length (any unit will do), got {short_repr(v)}.",
            key=key,
        )
    return v


def apart(one: Vector, other: Vector) -> float:
    """Distance of two points; complex steps pass."""
    gap = [a - b for a, b in zip(one, other, strict=True)]
    if any(isinstance(x, complex) for x in gap):
        return sqrt(sum(x * x for x in gap))  # type: ignore[return-value]
    return dist(one, other)


def text(owner: str, key: str, value: Any) -> str:
    """Prose, or an error."""
    if not isinstance(value, str):
        raise ModelError(f"{owner}: expected `{key}` to be text, got {short_repr(value)}.", key=key)
    return str(value)


def choice(owner: str, key: str, value: Any, among: Iterable[str]) -> str:
    """One of a few words, or an error."""
    words = tuple(among)
    if not isinstance(value, str) or value not in words:
        said = ", ".join(map(repr, words))
        raise ModelError(f"{owner}: expected `{key}` to be one of {said}, got {short_repr(value)}.", key=key)
    return str(value)


def check_name(kind: str, value: Any, key: str = "name") -> str:
    """A name, or an error; dots are kept for components and rows."""
    word = isinstance(value, str) and value.isprintable() and value == value.strip()
    if not word or not value or "." in value:
        raise ModelError(
            f"A {kind}'s `{key}` must be text without dots, line breaks or outer spaces, and not empty, "
            f"got {short_repr(value)}.",
            key=key,
        )
    return str(value)


def listed(owner: str, key: str, value: Any, what: str) -> tuple[Any, ...]:
    """The members of a list, tuple or other ordered collection; texts, dicts and sets are none."""
    try:
        if not isinstance(value, str | bytes | dict | set | frozenset):
            return tuple(value)
    except TypeError:
        pass
    raise ModelError(f"{owner}: expected `{key}` to be a list of {what}, got {short_repr(value)}.", key=key)


def two_names(owner: str, key: str, value: Any, what: str) -> tuple[str, str]:
    """Two different names."""
    pair = listed(owner, key, value, f"two {what}")
    if len(pair) != 2 or not all(isinstance(name, str) for name in pair) or pair[0] == pair[1]:
        raise ModelError(
            f"{owner}: expected `{key}` to name two different {what}, got {short_repr(value)}.", key=key
        )
    return (str(pair[0]), str(pair[1]))


def assign(item: object, **values: Any) -> None:
    """Write normalised fields of a frozen item that is being made."""
    for key, value in values.items():
        object.__setattr__(item, key, value)
