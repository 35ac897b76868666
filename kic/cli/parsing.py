"""What was typed: models, postures, numbers with units; shared by the commands."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kic.cli import completion as completing
from kic.errors import InputError, ModelFileError, unknown

if TYPE_CHECKING:
    import numpy as np

    from kic.configuration import Configuration
    from kic.mechanism import Mechanism


# what is wider than this is hard to read, what is narrower can not be helped
WIDEST, NARROWEST = 120, 60

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\W\d]\w*|°)?")
_DEGREES = ("deg", "°")
# options whose angles seldom are many turns, as rates may be
_CONFIGURATION_OPTIONS = ("--at", "--near", "--move")


model_argument = click.argument("model", shell_complete=completing.models)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object for scripts, see above.")


def configuration_options(command: Any) -> Any:
    """``--at`` and ``--near`` of a command."""
    about: dict[str, Any] = {"multiple": True, "metavar": "POSTURE", "shell_complete": completing.coordinates}
    said = "Coordinates, in order or by name; repeatable. As drawn if left out."
    at = click.option("--at", "given", help=said, **about)
    said = "From where that posture is led, so that its assembly is kept; as --at."
    near = click.option("--near", "near", help=said, **about)
    return at(near(command))


def names_option(option: str, name: str, text: str) -> Any:
    """An option that takes names of parts or their rows."""
    return click.option(option, name, multiple=True, metavar="NAME[,NAME…]", help=text,
                        shell_complete=completing.parts)  # fmt: skip


def model_file(model: str) -> Path:
    """File of a shipped model by its name, else whatever file there is."""
    from kic.io.library import find, model_names

    # unlike those of Path, these functions raise nothing for names that the system does not take
    if model not in model_names() and os.path.exists(model):
        if os.path.isdir(model):
            raise ModelFileError(f"{model}: is a directory, a model is a TOML file.", path=Path(model))
        return Path(model)
    return find(model)


def load_model(model: str) -> Mechanism:
    """The mechanism in that file."""
    from kic.io.toml import load

    return load(model_file(model))


def at_terminal() -> bool:
    """Return True if the output goes to a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int:
    """Columns of the page."""
    columns = shutil.get_terminal_size((100, 24)).columns
    return min(max(columns, NARROWEST), WIDEST)


def configuration_of(
    mechanism: Mechanism, given: tuple[str, ...], near: tuple[str, ...] = ()
) -> Configuration:
    """The posture of ``--at``, led from that of ``--near`` if there is one; as drawn without either."""
    if not near:
        return mechanism.at(_inputs(mechanism, given, None, "--at") if given else None)
    if not given:
        raise usage_error("a posture to start from needs one to go to: give --at, too.", "--near")
    start = mechanism.at(_inputs(mechanism, near, None, "--near"))
    return mechanism.at(_inputs(mechanism, given, start, "--at"), near=start)


def _inputs(
    mechanism: Mechanism, given: tuple[str, ...], start: Configuration | None, option: str
) -> np.ndarray | dict[str, float]:
    """What `Mechanism.at` takes: coordinates in order, or some by name and the rest as at the start or drawn.

    Once something else is named, such as a row of a point, what is named is all there is.
    """
    from kic.kinematics.state import reference_coordinates
    from kic.report.report import coordinate_values

    entries = [entry.strip() for text in given for entry in text.split(",")]
    named = ["=" in entry for entry in entries]
    if any(named) and not all(named):
        raise usage_error(
            f"{', '.join(given)!r} mixes names and bare numbers. Give either all coordinates in order "
            "(10deg, 0.5, …) or names (waist=10deg).",
            option,
        )
    names = mechanism.coordinate_names
    if any(named):
        pairs = [(key.strip(), text.strip()) for key, _, text in (e.partition("=") for e in entries)]
    else:
        if len(entries) != len(names):
            raise InputError(
                f"{option} has {len(entries)} number{'s' if len(entries) > 1 else ''}, but the coordinates "
                f"of '{mechanism.name}' are {len(names)}: {', '.join(names)}. Give all in this order, or "
                "some by name (name=value)."
            )
        pairs = list(zip(names, entries, strict=True))
    values: dict[str, float] = {}
    for name, text in pairs:
        check_scalar_row(mechanism, name)
        if name in values:
            raise InputError(f"{option} gives '{name}' twice.")
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
    """One number sets it: a coordinate, or a single row of something; else an error that lists them."""
    names = mechanism.coordinate_names
    if name in names:
        return
    joints = {joint.name: joint for joint in mechanism.joints}
    if name in joints and joints[name].dof > 1:
        each = ", ".join(f"{c}=…" for c in joints[name].components)
        raise InputError(f"Joint '{name}' has {joints[name].dof} freedoms; name each: {each}.")
    if name.partition(".")[0] not in mechanism.parts:
        raise unknown("coordinate", name, mechanism.name, _scalar_rows(mechanism))
    rows = mechanism.at().coefficients(name, 1).rows
    if len(rows) > 1:
        raise InputError(f"'{name}' has {len(rows)} rows; name each: {', '.join(f'{r}=…' for r in rows)}.")


def _scalar_rows(mechanism: Mechanism) -> tuple[str, ...]:
    """What one number may set: coordinates first, then other joints, distances, rows of points and bodies."""
    import numpy as np

    normal = mechanism._model.tree.planar_normal
    flat = np.zeros(3) if normal is None else np.abs(normal)
    axes = [x for x, out in zip("xyz", flat, strict=True) if out < 1 - 1e-9]  # nothing moves out of its plane
    names = [*mechanism.coordinate_names]
    names += [c for joint in mechanism.joints for c in joint.components]
    names += [part.name for part in mechanism.distances]
    names += [f"{part.name}.{x}" for part in mechanism.points for x in axes]
    names += [f"{part.name}.{x}" for part in mechanism.bodies if part.reference is not None for x in axes]
    names += [f"{part.name}.angle" for part in mechanism.bodies if normal is not None]
    return tuple(dict.fromkeys(names))


def parse_number(mechanism: Mechanism, name: str, text: str, option: str = "--at") -> float:
    """The number of a coordinate or row, with its unit; of postures, many turns without a unit are told."""
    from math import isfinite, pi, radians

    from kic.kinematics.scales import row_unit

    found = _NUMBER.fullmatch(text)
    if not found:
        raise usage_error(f"{text!r} for '{name}' is no number. Write it as 0.5, -1e-3 or 30deg.", option)
    number, unit = float(found[1]), found[2] or ""
    if not isfinite(number):
        raise usage_error(f"{text!r} for '{name}' is too large for a number.", option)
    if row_unit(mechanism, name) == "rad":
        if unit in ("", "rad"):
            if not unit and option in _CONFIGURATION_OPTIONS and abs(number) > 4 * pi:
                turns = f"{text} rad, {abs(number) / (2 * pi):.1f} turns"
                click.echo(f"{name}={text} is read as {turns}; for degrees write {name}={text}deg.", err=True)
            return number
        if unit in _DEGREES:
            return radians(number)
        raise InputError(f"'{name}' turns: {text!r} must be in rad (the default) or deg.")
    length = mechanism.units.length
    if unit in ("", length):
        return number
    raise InputError(f"'{name}' slides, so {text!r} must be a length in {length}, without another unit.")


def split_names(given: tuple[str, ...], option: str) -> list[str]:
    """Names of an option that may be repeated, or hold several between commas."""
    names = [name.strip() for text in given for name in text.split(",")]
    if "" in names:
        raise usage_error(f"there is an empty name in {', '.join(given)!r}.", option)
    return names


def parse_numbers(
    mechanism: Mechanism, coordinates: tuple[str, ...], given: tuple[str, ...], option: str
) -> list[float]:
    """Numbers of the coordinates from NAME=NUMBER entries, zero where none is given."""
    return _numbers_by_name(
        "a coordinate", coordinates, given, option, lambda x, text: parse_number(mechanism, x, text, option)
    )


def parse_plain_numbers(
    what: str, names: tuple[str, ...], given: tuple[str, ...], option: str
) -> list[float]:
    """The same of efforts or motors, in the model's units, which have no names of their own here."""
    return _numbers_by_name(what, names, given, option, lambda name, text: float(text))


def _numbers_by_name(
    what: str,
    names: tuple[str, ...],
    given: tuple[str, ...],
    option: str,
    number: Callable[[str, str], float],
) -> list[float]:
    """Numbers by name, zero where none is given."""
    values: dict[str, float] = {}
    for entry in (entry.strip() for text in given for entry in text.split(",")):
        name, _, text = (part.strip() for part in entry.partition("="))
        refusal = InputError(
            f"{option} takes NAME=NUMBER of {what}, got {entry!r}. "
            + (f"The {what.split()[1]}s are {', '.join(names)}." if names else "There are none.")
        )
        if name not in names or not text:
            raise refusal
        if name in values:
            raise InputError(f"{option} gives '{name}' twice.")
        try:
            values[name] = number(name, text)
        except ValueError as error:
            raise error if isinstance(error, InputError) else refusal from None
    return [values.get(name, 0.0) for name in names]


def usage_error(message: str, option: str = "--at") -> click.BadParameter:
    """The error for a posture that can not be read."""
    return click.BadParameter(message, param_hint=f"'{option}'")
