"""Command `kic draw`: a picture of a mechanism in one configuration, or an animation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from kic.ui.cli import completion as completing
from kic.ui.cli import parsing
from kic.ui.cli.parsing import usage_error

if TYPE_CHECKING:
    from kic.mechanism.configuration import Configuration
    from kic.mechanism.mechanism import Mechanism


# configurations computed along a motion; a drawing shows a selection
MOTION_SAMPLES = 49


@click.command()
@parsing.configuration_options
@click.option("-o", "--output", "file", required=True, metavar="FILE",
              type=parsing.OutputFile(dir_okay=False),
              help="Write FILE: .png, .svg or .pdf for a picture, .gif or .mp4 for a motion.")  # fmt: skip
@click.option("--move", "move", metavar="NAME=FROM..TO", shell_complete=completing.coordinates,
              help="Move this coordinate, with the others fixed, and show several configurations or an "
                   "animation. In a mechanism with one degree of freedom, NAME may be any joint or "
                   "row.")  # fmt: skip
@parsing.names_option(
    "--trace", "trace", "Draw the curves of these points and bodies, with --move; repeatable."
)
@click.option("--names", is_flag=True, help="Label joints, bodies and points.")
@click.option("--view", metavar="VIEW", shell_complete=completing.views,
              help="Set the view: top, front, side, or AZIMUTH,ELEVATION in degrees.")  # fmt: skip
@click.option("--dpi", type=click.IntRange(20, 2000), default=200, show_default=True,
              help="Set the resolution of a png, gif or mp4 in dots per inch.")  # fmt: skip
def draw(
    request: parsing.Request,
    file: str,
    move: str | None,
    trace: tuple[str, ...],
    names: bool,
    view: str | None,
    dpi: int,
) -> None:
    """Draw MODEL to scale with standard kinematic symbols.

    \b
      kic draw four-bar -o four-bar.svg
      kic draw four-bar --at A=70deg --names -o four-bar.png
      kic draw four-bar --move A=60deg..120deg -o fan.pdf
      kic draw four-bar --move A=60deg..420deg --trace tip -o turn.gif
      kic draw puma560 --at "10deg, 0.5, -30deg, 0, 0.8, 0" --view 40,20 -o arm.png

    Animations of whole turns omit the last frame, which equals the first, so they loop smoothly.

    Requires Matplotlib (pip install -e '.[plot]' in the checkout).
    """
    from kic.plotting.animate import FORMATS, animate
    from kic.plotting.draw import draw as drawn

    mechanism = request.mechanism
    view_angles, traced = _view(view), parsing.split_names(trace, "--trace")
    configuration = request.configuration()
    if traced and not move:
        raise usage_error("--trace requires a motion. Give --move NAME=FROM..TO.", "--trace")
    if move:
        configuration = _moved(mechanism, configuration, move, request.limits)
    made: Any
    if file.lower().endswith(tuple(f".{kind}" for kind in FORMATS)):
        if not move:
            raise usage_error(f"{file!r} requires a motion. Give --move NAME=FROM..TO.", "--output")
        if names:
            raise usage_error("an animation shows no names. Leave --names out or save a picture.", "--names")
        made = animate(_without_repeat(mechanism, configuration), trace=traced, view=view_angles)
    else:
        made = drawn(configuration, names=names, view=view_angles)
        if traced:
            made.trace(traced)
    made.save(file, dpi=dpi)


def _view(text: str | None) -> Any:
    """Return a view name, or azimuth and elevation."""
    if text is None or text in completing.VIEWS:
        return text
    try:
        azimuth, elevation = (float(part) for part in text.split(","))
    except ValueError:
        known = ", ".join(completing.VIEWS)
        message = f"{text!r} is not a view. Give {known} or two angles in degrees, such as 40,20."
        raise usage_error(message, "--view") from None
    return azimuth, elevation


def _moved(mechanism: Mechanism, configuration: Configuration, text: str, limits: bool) -> Configuration:
    """Return configurations along the motion of one coordinate, or of a row for mechanisms with one dof."""
    import numpy as np

    from kic.errors import InputError
    from kic.ui.report.report import coordinate_values

    found = re.fullmatch(r"([^=]+)=(.+)\.\.(.+)", text)
    if not found:
        raise usage_error(
            f"{text!r} is not a motion. Write it as NAME=FROM..TO, such as A=60deg..120deg.", "--move"
        )
    name, first, last = (part.strip() for part in found.groups())
    parsing.check_scalar_row(mechanism, name)
    names = mechanism.coordinates
    if name not in names and mechanism.dof != 1:
        message = (
            f"--move must name a coordinate of '{mechanism.name}', which has {mechanism.dof} degrees of "
            f"freedom, got '{name}'. Coordinates: {', '.join(names)}."
        )
        raise InputError(message, key="--move", got=name)
    start, end = (parsing.parse_number(mechanism, name, text, "--move") for text in (first, last))
    values = np.linspace(start, end, MOTION_SAMPLES)
    if name not in names:
        return mechanism.path({name: values}, near=configuration, limits=limits)
    path = np.tile(coordinate_values(configuration), (MOTION_SAMPLES, 1))
    path[:, names.index(name)] = values
    return mechanism.path(dict(zip(names, path.T, strict=True)), near=configuration, limits=limits)


def _without_repeat(mechanism: Mechanism, moving: Configuration) -> Configuration:
    """Return the configurations, without the last if it equals the first."""
    import numpy as np

    places = [moving.pose(body.name).as_matrix() for body in mechanism.bodies]
    same = all(np.allclose(place[0], place[-1], rtol=0.0, atol=1e-9) for place in places)
    return moving[:-1] if same else moving
