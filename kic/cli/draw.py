"""The command `kic draw`: a picture of a mechanism in a posture, or in several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from kic.cli import completion as completing
from kic.cli.parsing import (
    check_scalar_row,
    configuration_of,
    configuration_options,
    load_model,
    model_argument,
    names_option,
    parse_number,
    split_names,
    usage_error,
)

if TYPE_CHECKING:
    from kic.configuration import Configuration
    from kic.mechanism import Mechanism


# of a motion; the drawing shows fewer, evenly taken
POSTURES = 49


@click.command()
@model_argument
@configuration_options
@click.option("-o", "--output", "file", required=True, metavar="FILE", type=click.Path(dir_okay=False),
              help="Where to; the ending says how: .png, .svg, .pdf, or .gif, .mp4 of a motion.")  # fmt: skip
@click.option("--move", "move", metavar="NAME=FROM..TO", shell_complete=completing.coordinates,
              help="This coordinate moves, the others stay: a fan of postures, or an animation. Where "
                   "there is one freedom, also another joint or a row, as in --at.")  # fmt: skip
@names_option("--trace", "trace", "Points and bodies whose curves are drawn, with --move; repeatable.")
@click.option("--names", is_flag=True, help="Write the names of joints, bodies and points beside them.")
@click.option("--view", metavar="VIEW", shell_complete=completing.views,
              help="top, front, side, or from where, AZIMUTH,ELEVATION in degrees.")  # fmt: skip
@click.option("--dpi", type=click.IntRange(20, 2000), default=200, show_default=True,
              help="Dots an inch of a png, gif or mp4.")  # fmt: skip
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

    An animation of whole turns leaves out the last posture, which is the first again, so that it runs on
    evenly where it is repeated.

    Needs Matplotlib (pip install 'kic[plot]').
    """
    from kic.plotting.animate import FORMATS, animate
    from kic.plotting.draw import draw as drawn

    mechanism = load_model(model)
    looked, traced = _view(view), split_names(trace, "--trace")
    configuration = configuration_of(mechanism, given, near)
    if traced and not move:
        raise usage_error("curves are drawn by what moves. Give --move NAME=FROM..TO.", "--trace")
    if move:
        configuration = _moved(mechanism, configuration, move)
    made: Any
    if file.lower().endswith(tuple(f".{kind}" for kind in FORMATS)):
        if not move:
            raise usage_error(f"{file!r} is for what moves. Give --move NAME=FROM..TO.", "--output")
        if names:
            raise usage_error("names are written beside what stands still, not in an animation.", "--names")
        made = animate(_without_repeat(mechanism, configuration), trace=traced, view=looked)
    else:
        made = drawn(configuration, names=names, view=looked)
        if traced:
            made.trace(traced)
    made.save(file, dpi)


def _view(text: str | None) -> Any:
    """A view by its name, or from where it is looked."""
    if text is None or text in completing.VIEWS:
        return text
    try:
        azimuth, elevation = (float(part) for part in text.split(","))
    except ValueError:
        known = ", ".join(completing.VIEWS)
        rule = f"{text!r} is no view. Give {known} or two angles in degrees, such as 40,20."
        raise usage_error(rule, "--view") from None
    return azimuth, elevation


def _moved(mechanism: Mechanism, configuration: Configuration, text: str) -> Configuration:
    """Postures while one coordinate moves, or a row that alone leads all, from one value to another."""
    import numpy as np

    from kic.errors import InputError
    from kic.report.report import coordinate_values

    found = re.fullmatch(r"([^=]+)=(.+)\.\.(.+)", text)
    if not found:
        raise usage_error(
            f"{text!r} is no motion. Write it as NAME=FROM..TO, such as A=60deg..120deg.", "--move"
        )
    name, first, last = (part.strip() for part in found.groups())
    check_scalar_row(mechanism, name)
    names = mechanism.coordinate_names
    if name not in names and mechanism.dof != 1:
        raise InputError(
            f"--move NAME=FROM..TO leads '{mechanism.name}' by '{name}' alone, but it has "
            f"{mechanism.dof} freedoms. Move one of its coordinates, where the others stay: "
            f"{', '.join(names)}."
        )
    start, end = (parse_number(mechanism, name, text, "--move") for text in (first, last))
    values = np.linspace(start, end, POSTURES)
    if name not in names:
        return mechanism.path({name: values}, near=configuration)
    way = np.tile(coordinate_values(configuration), (POSTURES, 1))
    way[:, names.index(name)] = values
    return mechanism.path(dict(zip(names, way.T, strict=True)), near=configuration)


def _without_repeat(mechanism: Mechanism, moving: Configuration) -> Configuration:
    """Postures of an animation: the last is left out where all bodies are back where they were first."""
    import numpy as np

    from kic.configuration import Configuration

    places = [moving.displacement(body.name) for body in mechanism.bodies]
    if not all(np.allclose(place[0], place[-1], rtol=0.0, atol=1e-9) for place in places):
        return moving
    return Configuration(moving._model, (len(moving.ok) - 1,), moving._states[:-1])
