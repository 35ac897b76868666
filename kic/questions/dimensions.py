"""The numbers of a drawing by name, and the same drawing with a complex step in some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.arrays import stepping
from kic.drawing import KINDS, Part
from kic.errors import InputError, unknown
from kic.mechanism import Mechanism
from kic.parts import Distance, Joint

_XYZ = ("x", "y", "z")
_TENSOR = ("xx", "yy", "zz", "xy", "xz", "yz")
_COMPONENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("at", "com", "axis", "axis2", "normal", "force", "moment", "pitch_point"), _XYZ),
    "inertia": _TENSOR,
}
_KEYS = (
    "mass", "com", "inertia", "at", "axis", "axis2", "normal", "value", "stiffness", "rest", "damping",
    "force", "moment", "ratios", "gears", "belt", "pitch_point", "friction", "resistance", "inductance",
    "torque_constant", "speed_constant",
)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """Where a number of a drawing stands: its part, the field, and how the field moves with it."""

    part: str
    key: str
    way: np.ndarray


def numbers_of(part: Part) -> Iterator[tuple[str, Number]]:
    """Names and places of the numbers of a part, and of the angles by which its axes can be turned."""
    for key in _KEYS:
        value = getattr(part, key, None)
        if value is None:
            continue
        if isinstance(value, float):
            yield f"{part.name}.{key}", Number(part.name, key, np.ones(()))
            continue
        count = _count(part, key, len(value))
        names = _COMPONENTS.get(key) or tuple(str(k + 1) for k in range(len(value)))
        single = isinstance(part, Joint) and part.freedoms == 1 and key not in _COMPONENTS
        for name, way in list(zip(names, np.eye(len(value)), strict=True))[:count]:
            yield f"{part.name}.{key}" + ("" if single else f".{name}"), Number(part.name, key, way)
        if key in ("axis", "axis2", "normal"):
            for name, way in zip(_XYZ, np.eye(3), strict=True):
                yield f"{part.name}.{key}.r{name}", Number(part.name, key, np.cross(way, value))


def _count(part: Part, key: str, count: int) -> int:
    """How many of a field's numbers may change: turns of balls have no coordinates, but dampers."""
    ball = isinstance(part, Joint) and part.type in ("spherical", "free")
    return count - 3 if ball and key in ("value", "stiffness", "rest") else count


def find(mechanism: Mechanism, name: str) -> Number:
    """The number of a name.

    Raises
    ------
    UnknownNameError, InputError
        If there is none, with the candidates.
    """
    gravity = {f"gravity.{c}": Number("", "gravity", way) for c, way in zip(_XYZ, np.eye(3), strict=True)}
    if name in gravity:
        return gravity[name]
    part = mechanism.parts.get(name.partition(".")[0])
    if isinstance(part, Distance):
        raise InputError(
            f"Distance '{part.name}' of '{mechanism.name}' has no number of its own: it is as long as drawn. "
            f"Move its points, such as '{part.points[1]}.at.x'.",
            name=name,
        )
    here = {} if part is None else dict(numbers_of(part))
    if name in here:
        return here[name]
    if part is not None:
        key = name.split(".")[1] if "." in name else ""
        if key in _KEYS and getattr(part, key, "") is None:
            raise InputError(
                f"'{part.name}' of '{mechanism.name}' was drawn without `{key}`, so that '{name}' is no "
                "number that could change. Give it first.",
                name=name,
            )
        raise unknown("number", name, mechanism.name, here)
    every = [other for kind in KINDS for one in getattr(mechanism, kind) for other, _ in numbers_of(one)]
    raise unknown("number", name, mechanism.name, [*every, *gravity])


def stepped(mechanism: Mechanism, weights: Mapping[str, float], step: float) -> Mechanism:
    """The mechanism with an imaginary step in some numbers, each as large as its weight says."""
    moves: dict[tuple[str, str], np.ndarray] = {}
    for name, weight in weights.items():
        number = find(mechanism, name)
        place = number.part, number.key
        moves[place] = moves.get(place, 0.0) + weight * number.way
    fields: dict[str, dict[str, Any]] = {}
    for (name, key), way in moves.items():
        value = np.array(mechanism.gravity if not name else getattr(mechanism.parts[name], key))
        moved = value + 1j * step * way
        fields.setdefault(name, {})[key] = tuple(moved.tolist()) if moved.ndim else moved.item()
    whole = fields.pop("", {})
    with stepping():
        for kind in KINDS:
            parts = getattr(mechanism, kind)
            if any(part.name in fields for part in parts):
                whole[kind] = tuple(
                    replace(part, **fields[part.name]) if part.name in fields else part for part in parts
                )
        return replace(mechanism, **whole)
