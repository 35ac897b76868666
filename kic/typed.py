"""What was typed: models, postures, numbers with units; shared by the commands."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kic.errors import InputError, ModelFileError, unknown

if TYPE_CHECKING:
    import numpy as np

    from kic.mechanism import Mechanism

# what is wider than this is hard to read, what is narrower can not be helped
WIDEST, NARROWEST = 120, 60

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\W\d]\w*|°)?")
_DEGREES = ("deg", "°")


def load_model(model: str) -> Mechanism:
    """A shipped model by its name, else whatever file there is."""
    from kic.modelfile import load, model_names

    if model not in model_names() and Path(model).exists():
        if Path(model).is_dir():
            raise ModelFileError(f"{model}: is a directory, a model is a TOML file.", path=Path(model))
        return load(Path(model))
    return load(model)


def at_terminal() -> bool:
    """Whether someone is looking."""
    return sys.stdout.isatty()


def width() -> int:
    """Columns of the page."""
    columns = shutil.get_terminal_size((100, 24)).columns
    return min(max(columns, NARROWEST), WIDEST)


def posture_of(mechanism: Mechanism, given: tuple[str, ...]) -> np.ndarray:
    """Coordinates (M,) from ``--at``: all in order, or some by name and the rest as drawn."""
    from kic.posture import drawn_coordinates

    entries = [entry.strip() for text in given for entry in text.split(",")]
    named = ["=" in entry for entry in entries]
    if any(named) and not all(named):
        raise misuse(
            f"{', '.join(given)!r} mixes names and bare numbers. Give either all coordinates in order "
            "(10deg, 0.5, …) or names (waist=10deg)."
        )
    names = mechanism.coordinate_names
    if not any(named):
        if len(entries) != len(names):
            raise InputError(
                f"--at has {len(entries)} number{'s' if len(entries) > 1 else ''}, but the coordinates of "
                f"'{mechanism.name}' are {len(names)}: {', '.join(names)}. Give all in this order, or some "
                "by name (name=value)."
            )
        pairs = list(zip(names, entries, strict=True))
    else:
        pairs = [(key.strip(), text.strip()) for key, _, text in (e.partition("=") for e in entries)]
    phi = drawn_coordinates(mechanism)
    seen = set()
    for name, text in pairs:
        place = names.index(_checked_name(mechanism, name))
        if name in seen:
            raise InputError(f"--at gives '{name}' twice.")
        seen.add(name)
        phi[place] = number_of(mechanism, name, text)
    return phi


def _checked_name(mechanism: Mechanism, name: str) -> str:
    """A single coordinate, or an error that lists them."""
    names = mechanism.coordinate_names
    if name in names:
        return name
    joints = {joint.name: joint for joint in mechanism.joints}
    if name in joints and joints[name].freedoms > 1:
        each = ", ".join(f"{c}=…" for c in joints[name].components)
        raise InputError(f"Joint '{name}' has {joints[name].freedoms} freedoms; name each: {each}.")
    raise unknown("coordinate", name, mechanism.name, names)


def number_of(mechanism: Mechanism, name: str, text: str, option: str = "--at") -> float:
    """The number of a coordinate or row, with its unit."""
    from math import isfinite, radians

    from kic.units import row_unit

    found = _NUMBER.fullmatch(text)
    if not found:
        raise misuse(f"{text!r} for '{name}' is no number. Write it as 0.5, -1e-3 or 30deg.", option)
    number, unit = float(found[1]), found[2] or ""
    if not isfinite(number):
        raise misuse(f"{text!r} for '{name}' is too large for a number.", option)
    if row_unit(mechanism, name) == "rad":
        if unit in ("", "rad"):
            return number
        if unit in _DEGREES:
            return radians(number)
        raise InputError(f"'{name}' turns: {text!r} must be in rad (the default) or deg.")
    length = mechanism.units.length
    if unit in ("", length):
        return number
    raise InputError(f"'{name}' slides, so {text!r} must be a length in {length}, without another unit.")


def names_typed(given: tuple[str, ...], option: str) -> list[str]:
    """Names of an option that may be repeated, or hold several between commas."""
    names = [name.strip() for text in given for name in text.split(",")]
    if "" in names:
        raise misuse(f"there is an empty name in {', '.join(given)!r}.", option)
    return names


def named_numbers(
    mechanism: Mechanism, coordinates: tuple[str, ...], given: tuple[str, ...], option: str
) -> list[float]:
    """Numbers of the coordinates from NAME=NUMBER entries, zero where none is given."""
    values = dict.fromkeys(coordinates, 0.0)
    for entry in (entry.strip() for text in given for entry in text.split(",")):
        name, _, text = (part.strip() for part in entry.partition("="))
        if name not in values or not text:
            raise InputError(
                f"{option} takes NAME=NUMBER of a coordinate, got {entry!r}. The coordinates are "
                f"{', '.join(coordinates)}."
            )
        values[name] = number_of(mechanism, name, text, option)
    return list(values.values())


def misuse(message: str, option: str = "--at") -> click.BadParameter:
    """The error for a posture that can not be read."""
    return click.BadParameter(message, param_hint=f"'{option}'")
