"""Parsing of models, configurations and numbers with units; options shared by the commands."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kic.errors import InputError, ModelFileError, counted, shorten_words, unknown
from kic.ui.cli import completion as completing

if TYPE_CHECKING:
    import numpy as np

    from kic.mechanism.configuration import Configuration
    from kic.mechanism.mechanism import Mechanism


# bounds of the line length, in characters
LINE_LENGTH_MAX, LINE_LENGTH_MIN = 120, 60

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\W\d]\w*|°)?")
_DEGREES = ("deg", "°")
# options with angles, which rarely exceed two turns; rates may
_CONFIGURATION_OPTIONS = ("--at", "--near", "--move", "--box")


model_argument = click.argument("model", shell_complete=completing.models)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, described above.")


@dataclass(frozen=True)
class Request:
    """Argument MODEL of a command, with its options ``--at``, ``--near`` and ``--limits``."""

    model: str
    given: tuple[str, ...]
    near: tuple[str, ...]
    limits: bool

    @cached_property
    def mechanism(self) -> Mechanism:
        """Mechanism of the model."""
        return load_model(self.model)

    def configuration(self) -> Configuration:
        """Return the configuration of ``--at``, reached from that of ``--near``, within ``--limits``.

        Without options this is the reference configuration.
        """
        m, given = self.mechanism, self.given
        if not self.near:
            return m.at(_inputs(m, given, None, "--at") if given else None, limits=self.limits)
        if not given:
            raise usage_error("--near requires --at.", "--near")
        start = m.at(_inputs(m, self.near, None, "--near"))
        return m.at(_inputs(m, given, start, "--at"), near=start, limits=self.limits)


def configuration_options(command: Callable[..., None]) -> Any:
    """Add MODEL, ``--at``, ``--near`` and ``--limits`` to a command that receives them as a `Request`."""

    @wraps(command)
    def run(model: str, given: tuple[str, ...], near: tuple[str, ...], limits: bool, **options: Any) -> None:
        command(Request(model, given, near, limits), **options)

    shared: dict[str, Any] = {"multiple": True, "metavar": "VALUES", "shell_complete": completing.coordinates}
    text = "Set the coordinates, in order or by name; repeatable. Default: the reference configuration."
    at = click.option("--at", "given", help=text, **shared)
    text = "Start from this configuration to select the assembly mode of --at; written like --at."
    near = click.option("--near", "near", help=text, **shared)
    text = "Enforce the limits of joints, distances and angles of the model; exceeding them is an error."
    limits = click.option("--limits", "limits", is_flag=True, help=text)
    return model_argument(at(near(limits(run))))


class OutputFile(click.Path):
    """Type of an option that names a file to write; names that no system accepts are errors."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name of a file; fail if no system accepts it."""
        if "\0" in os.fspath(value):
            self.fail(f"{value!r} cannot name a file.", param, ctx)
        return super().convert(value, param, ctx)


def names_option(option: str, name: str, text: str) -> Any:
    """Return an option that takes names of parts or their rows."""
    return click.option(option, name, multiple=True, metavar="NAME[,NAME…]", help=text,
                        shell_complete=completing.parts)  # fmt: skip


def model_file(model: str) -> Path:
    """Return the path of a shipped model, or of a file if no shipped model has this name."""
    from kic.io.library import find, model_names

    # unlike methods of Path, these functions do not raise for names that the system rejects
    if model not in model_names() and os.path.exists(model):
        if os.path.isdir(model):
            raise ModelFileError(f"{model} is a directory; `MODEL` must be a model file.", path=Path(model))
        return Path(model)
    return find(model)


def load_model(model: str) -> Mechanism:
    """Load the mechanism of a shipped model or a file."""
    from kic.io.toml import load

    return load(model_file(model))


def at_terminal() -> bool:
    """Return True if the output goes to a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int:
    """Return the line length for printed tables."""
    columns = shutil.get_terminal_size((100, 24)).columns
    return min(max(columns, LINE_LENGTH_MIN), LINE_LENGTH_MAX)


def inputs_of(mechanism: Mechanism, given: tuple[str, ...]) -> np.ndarray | dict[str, float]:
    """Return the inputs of ``--at``; without options those of the reference configuration."""
    from kic.kinematics.state import reference_coordinates

    return _inputs(mechanism, given, None, "--at") if given else reference_coordinates(mechanism)


def _inputs(
    mechanism: Mechanism, given: tuple[str, ...], start: Configuration | None, option: str
) -> np.ndarray | dict[str, float]:
    """Return the inputs of `Mechanism.at`.

    Coordinates given by name replace those of the start or of the reference configuration. If another row is
    named, such as a row of a point, the named values are the only inputs.
    """
    from kic.kinematics.state import reference_coordinates
    from kic.ui.report.report import coordinate_values

    entries = [entry.strip() for text in given for entry in text.split(",")]
    named = ["=" in entry for entry in entries]
    if any(named) and not all(named):
        raise usage_error(
            f"{', '.join(given)!r} mixes names and plain numbers. Give either all coordinates in order "
            "(10deg, 0.5, …) or names (waist=10deg).",
            option,
        )
    names = mechanism.coordinates
    if any(named):
        pairs = [(key.strip(), text.strip()) for key, _, text in (e.partition("=") for e in entries)]
    else:
        if len(entries) != len(names):
            message = (
                f"{option} has {len(entries)} number{'s' if len(entries) > 1 else ''}, but "
                f"'{mechanism.name}' has {counted(len(names), 'coordinate')}: {', '.join(names)}. Give all "
                "in this order, or some by name (name=value)."
            )
            raise InputError(message, key=option, count=len(entries))
        pairs = list(zip(names, entries, strict=True))
    values: dict[str, float] = {}
    for name, text in pairs:
        check_scalar_row(mechanism, name)
        if name in values:
            raise InputError(f"{option} gives '{name}' twice.", key=option, name=name)
        values[name] = parse_number(mechanism, name, text, option)
    if not set(values) <= set(names):
        return values
    phi = reference_coordinates(mechanism)
    if start is not None:
        phi = coordinate_values(start)
    for name, value in values.items():
        phi[names.index(name)] = value
    return phi


def check_scalar_row(mechanism: Mechanism, name: str) -> None:
    """Check that a name is a coordinate or a single row; the error lists the alternatives."""
    from kic.description.parts import COM
    from kic.description.validation import part_of
    from kic.mechanism.configuration import model_of

    names = mechanism.coordinates
    if name in names:
        return
    joints = {joint.name: joint for joint in mechanism.joints}
    if name in joints and joints[name].dof > 1:
        each = ", ".join(f"{c}=…" for c in joints[name].components)
        message = f"Joint '{name}' has {joints[name].dof} degrees of freedom; name each: {each}."
        raise InputError(message, name=name)
    if part_of(name) not in {COM, *model_of(mechanism).parts}:
        raise unknown("coordinate", name, mechanism.name, _scalar_rows(mechanism))
    rows = mechanism.at().coefficients(name, order=1).rows
    if len(rows) > 1:
        message = f"'{name}' has {len(rows)} rows; name each: {', '.join(f'{r}=…' for r in rows)}."
        raise InputError(message, name=name)


def _scalar_rows(mechanism: Mechanism) -> tuple[str, ...]:
    """Return all names that one number can set, coordinates first."""
    import numpy as np

    from kic.mechanism.configuration import model_of

    normal = model_of(mechanism).tree.planar_normal
    flat = np.zeros(3) if normal is None else np.abs(normal)
    axes = [x for x, out in zip("xyz", flat, strict=True) if out < 1 - 1e-9]  # not out of the plane
    names = [*mechanism.coordinates]
    names += [c for joint in mechanism.joints for c in joint.components]
    names += [part.name for part in (*mechanism.distances, *mechanism.angles)]
    names += [f"{part.name}.{x}" for part in mechanism.points for x in axes]
    placed = [body.name for body in mechanism.bodies if body.reference is not None]
    placed += [frame.name for frame in mechanism.frames]
    names += [f"{name}.{x}" for name in placed for x in axes]
    names += [f"{part.name}.angle" for part in mechanism.bodies if normal is not None]
    return tuple(dict.fromkeys(names))


def parse_number(mechanism: Mechanism, name: str, text: str, option: str = "--at") -> float:
    """Return the number of a coordinate or row, converted from its unit.

    Print a note for angles of a configuration that exceed two turns and have no unit.
    """
    from math import isfinite, radians

    from kic.description.units import DEGREES_ANGLE_MIN, row_unit, turns_note

    found = _NUMBER.fullmatch(text)
    if not found:
        raise usage_error(f"{text!r} for '{name}' is not a number. Write {name}=0.5, -1e-3 or 30deg.", option)
    number, unit = float(found[1]), found[2] or ""
    if not isfinite(number):
        raise usage_error(f"{text!r} for '{name}' is too large for a floating-point number.", option)
    if row_unit(mechanism, name) == "rad":
        if unit in ("", "rad"):
            if not unit and option in _CONFIGURATION_OPTIONS and abs(number) > DEGREES_ANGLE_MIN:
                click.echo(turns_note(f"{name}={text}", number, f"write {name}={text}deg"), err=True)
            return number
        if unit in _DEGREES:
            return radians(number)
        message = f"'{name}' is an angle; {text!r} must be in rad (the default) or deg."
        raise InputError(message, name=name, got=text)
    length = mechanism.units.length
    if unit in ("", length):
        return number
    message = f"'{name}' is a length; {text!r} must be in {length}, without another unit."
    raise InputError(message, name=name, got=text)


def split_names(given: tuple[str, ...], option: str) -> list[str]:
    """Return the names given by a repeatable option, each a list separated by commas."""
    names = [name.strip() for text in given for name in text.split(",")]
    if "" in names:
        raise usage_error(f"{', '.join(given)!r} contains an empty name.", option)
    return names


def parse_numbers(
    what: str,
    names: tuple[str, ...],
    given: tuple[str, ...],
    option: str,
    number: Callable[[str, str], float] = lambda name, text: float(text),
) -> list[float]:
    """Return numbers in the order of `names` from NAME=NUMBER entries, zero if not given.

    `number` converts the text of a name, by default a plain number in the model's units.
    """
    values: dict[str, float] = {}
    for entry in (entry.strip() for text in given for entry in text.split(",")):
        name, _, text = (part.strip() for part in entry.partition("="))
        invalid = InputError(
            f"{option} must be NAME=NUMBER of {what}, got {entry!r}. "
            + (f"The {what.split()[1]}s are {', '.join(names)}." if names else "There are none."),
            key=option,
            got=entry,
        )
        if name not in names or not text:
            raise invalid
        if name in values:
            raise InputError(f"{option} gives '{name}' twice.", key=option, name=name)
        try:
            values[name] = number(name, text)
        except InputError:
            raise
        except ValueError:
            raise invalid from None
    return [values.get(name, 0.0) for name in names]


def parse_rates(mechanism: Mechanism, coordinates: tuple[str, ...], given: tuple[str, ...]) -> list[float]:
    """Return the rates of coordinates from the entries of ``--qd``, which may be in degrees."""

    def number(name: str, text: str) -> float:
        return parse_number(mechanism, name, text, "--qd")

    return parse_numbers("a coordinate", coordinates, given, "--qd", number)


def usage_error(message: str, option: str = "--at") -> click.BadParameter:
    """Return the error for invalid use of an option."""
    return click.BadParameter(shorten_words(message), param_hint=f"'{option}'")
