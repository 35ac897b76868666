"""The command `kic draw`: a picture of a mechanism in a posture, or in several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from kic.typed import (
    configuration_of,
    load_model,
    misuse,
    model_argument,
    named_numbers,
    names_typed,
    number_of,
    posture_options,
)

if TYPE_CHECKING:
    from kic.configuration import Configuration
    from kic.mechanism import Mechanism

VIEWS = ("top", "front", "side")
# of a motion; the drawing shows fewer, evenly taken
POSTURES = 49


@click.command()
@model_argument
@posture_options
@click.option("-o", "--output", "file", required=True, metavar="FILE", type=click.Path(dir_okay=False),
              help="Where to; the ending says how: .png, .svg, .pdf, or .gif, .mp4 of a motion.")  # fmt: skip
@click.option("--move", "move", metavar="NAME=FROM..TO",
              help="This coordinate moves, the others stay: a fan of postures, or an animation.")  # fmt: skip
@click.option("--trace", "trace", multiple=True, metavar="NAME[,NAME…]",
              help="Points and bodies whose curves are drawn, with --move; repeatable.")  # fmt: skip
@click.option("--names", is_flag=True, help="Write the names of joints, bodies and points beside them.")
@click.option("--view", metavar="VIEW",
              help="top, front, side, or from where, AZIMUTH,ELEVATION in degrees.")  # fmt: skip
@click.option("--dpi", type=click.IntRange(20, 2000), default=200, show_default=True,
              help="Dots an inch of a png.")  # fmt: skip
def draw(
    model: str,
    given: tuple[str, ...],
    near: tuple[str, ...],
    file: str,
    move: str | None,
    trace: tuple[str, ...],
    names: bool,
    view: str | None,
    dpi: int,
) -> None:
    """Draw MODEL, a shipped name or a TOML file, as an engineer does: links, pairs, ground, to scale.

    \b
      kic draw four-bar -o four-bar.svg
      kic draw four-bar --at A=70deg --names -o four-bar.png
      kic draw four-bar --move A=60deg..120deg -o fan.pdf
      kic draw four-bar --move A=60deg..420deg --trace tip -o turn.gif
      kic draw puma560 --at "10deg, 0.5, -30deg, 0, 0.8, 0" --view 40,20 -o arm.png

    Needs Matplotlib (pip install 'kic[plot]').
    """
    from kic.errors import InputError
    from kic.picturing.animate import FORMATS, animate
    from kic.picturing.draw import draw as drawn

    mechanism = load_model(model)
    looked, traced = _view(view), names_typed(trace, "--trace")
    configuration = configuration_of(mechanism, given, near)
    if traced and not move:
        raise misuse("curves are drawn by what moves. Give --move NAME=FROM..TO.", "--trace")
    if move:
        configuration = _moved(mechanism, configuration, move)
    made: Any
    if file.lower().endswith(tuple(f".{kind}" for kind in FORMATS)):
        if not move:
            raise misuse(f"{file!r} is for what moves. Give --move NAME=FROM..TO.", "--output")
        if names:
            raise misuse("names are written beside what stands still, not in an animation.", "--names")
        made = animate(configuration, trace=traced, view=looked)
    else:
        made = drawn(configuration, names=names, view=looked)
        if traced:
            made.trace(traced)
    try:
        made.save(file, dpi)
    except OSError as error:
        raise InputError(f"{file}: can not be written: {error.strerror}.", path=file) from None


def _view(text: str | None) -> Any:
    """A view by its name, or from where it is looked."""
    if text is None or text in VIEWS:
        return text
    try:
        azimuth, elevation = (float(part) for part in text.split(","))
    except ValueError:
        rule = f"{text!r} is no view. Give {', '.join(VIEWS)} or two angles in degrees, such as 40,20."
        raise misuse(rule, "--view") from None
    return azimuth, elevation


def _moved(mechanism: Mechanism, configuration: Configuration, text: str) -> Configuration:
    """Postures while one coordinate moves from one value to another."""
    import numpy as np

    from kic.reporting.account import coordinate_values

    found = re.fullmatch(r"([^=]+)=(.+)\.\.(.+)", text)
    if not found:
        raise misuse(f"{text!r} is no motion. Write it as NAME=FROM..TO, such as A=60deg..120deg.", "--move")
    name, first, last = (part.strip() for part in found.groups())
    names = mechanism.coordinate_names
    named_numbers(mechanism, names, (f"{name}={first}",), "--move")  # the name is a coordinate
    start, end = (number_of(mechanism, name, text, "--move") for text in (first, last))
    way = np.tile(coordinate_values(configuration), (POSTURES, 1))
    way[:, names.index(name)] = np.linspace(start, end, POSTURES)
    return mechanism.path(dict(zip(names, way.T, strict=True)), near=configuration)
