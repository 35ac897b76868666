"""Commands `kic identify` and `kic calibrate`: parameters and dimensions from a file of measurements."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from kic.ui.cli import completion as completing
from kic.ui.cli import parsing


def _measured(command: Callable[..., Any]) -> Any:
    """Add MODEL, FILE and options for measurements and results to a command that returns the result.

    The command receives the mechanism, the file, and arguments of its method. It returns the result, and
    names of further attributes to print as JSON.
    """

    @wraps(command)
    def run(
        model: str,
        data: str,
        columns: tuple[str, ...],
        wrt: tuple[str, ...],
        near: tuple[str, ...],
        model_file: str | None,
        picture: str | None,
        as_json: bool,
        **options: Any,
    ) -> None:
        request = parsing.Request(model, near, (), False)
        given = {
            "columns": _pairs(columns, "--column", "COLUMN"),
            "wrt": parsing.split_names(wrt, "--wrt") or None,
            "near": request.configuration() if near else None,
        }
        found, further = command(request.mechanism, data, given, **options)
        text = found.summary().text(parsing.width())
        click.echo(json.dumps(_data(found, further), allow_nan=False) if as_json else text)
        if model_file is not None:
            found.mechanism.save(model_file)
        if picture is not None:
            found.plot().save(picture)

    shared = (
        parsing.model_argument,
        click.argument("data", metavar="FILE", type=click.Path(dir_okay=False)),
        click.option("--column", "columns", multiple=True, metavar="NAME=COLUMN",
                     help="Name a column of the file, such as A='crank angle (deg)'; repeatable."),
        parsing.names_option("--wrt", "wrt", "Use these measured coordinates; repeatable."),
        click.option("--near", multiple=True, metavar="VALUES", shell_complete=completing.coordinates,
                     help="Set a configuration near the first sample, on the branch of all, in order or by "
                          "name; repeatable."),
        click.option("--save", "model_file", type=parsing.OutputFile(dir_okay=False), metavar="FILE",
                     help="Write the model with these values: .toml, .urdf or .xml."),
        click.option("-o", "--output", "picture", type=parsing.OutputFile(dir_okay=False), metavar="FILE",
                     help="Plot the residuals: .png, .svg or .pdf."),
        parsing.json_option,
    )  # fmt: skip
    for option in reversed(shared):
        run = option(run)
    return run


@click.command()
@parsing.names_option(
    "--of",
    "of",
    "Identify the parameters of these bodies, joints, springs and motors, or single ones such as A.friction; "
    "repeatable. Default: those of the model.",
)
@click.option("--cutoff", type=float, metavar="FREQUENCY",
              help="Low-pass the samples at this frequency, in cycles per time, and differentiate what is "
                   "not measured.")  # fmt: skip
@_measured
def identify(
    mechanism: Any, data: str, given: dict[str, Any], of: tuple[str, ...], cutoff: float | None
) -> Any:
    """Identify masses, inertias and friction of MODEL from the measurements in FILE.

    FILE has comma-separated columns with names and units in its first line: t (s), A (deg), A.rate (deg/s),
    A.acceleration (rad/s²), A.effort (N m), or M1.current (A) of a motor. Print the combinations of
    parameters that the measurements determine, with 95 % intervals. --save writes consistent parameters.

    \b
      kic identify four-bar bench.csv --of crank,coupler,rocker,A.friction --cutoff 8
      kic identify four-bar bench.csv --of A.damping,A.offset --cutoff 8 --column A="crank angle"
      kic identify four-bar bench.csv --cutoff 8 --save identified.toml -o residuals.png

    --json prints a single object: name, parameters; expressions of the combinations, matrix (their
    coefficients), values, sigma, covariance, interval, description (values of the model); efforts, noise,
    correlation; samples, gap, without_effect, unused.
    """
    found = mechanism.identify(data, parsing.split_names(of, "--of") or None, cutoff=cutoff, **given)
    return found, ("efforts", "correlation")


@click.command()
@parsing.names_option(
    "--dimension",
    "dimensions",
    "Calibrate these dimensions, such as coupler.length, D.at.x or A.value; repeatable.",
)
@parsing.names_option(
    "--offset", "offsets", "Sensors of these measured rows or coordinates have an offset; repeatable."
)
@click.option("--noise", "noise", multiple=True, metavar="NAME=NUMBER",
              help="Set the standard deviation of a measured row, or of a coordinate, in units of the model; "
                   "repeatable. Default: estimated, and none of coordinates.")  # fmt: skip
@_measured
def calibrate(
    mechanism: Any,
    data: str,
    given: dict[str, Any],
    dimensions: tuple[str, ...],
    offsets: tuple[str, ...],
    noise: tuple[str, ...],
) -> Any:
    """Calibrate dimensions and sensor offsets of MODEL from the measured positions in FILE.

    FILE has comma-separated columns with names and units in its first line: coordinates, such as A (deg),
    and further rows, such as tip.x (mm), distances or redundant encoders. Print the combinations of
    dimensions and offsets that the measurements determine, with 95 % intervals.

    \b
      kic calibrate four-bar poses.csv --dimension coupler.length,D.at.x --offset A
      kic calibrate four-bar poses.csv --dimension coupler.length --noise tip.x=2e-5 --noise tip.y=2e-5
      kic calibrate four-bar poses.csv --dimension coupler.length --save calibrated.toml -o residuals.png

    --json prints a single object: name, parameters; expressions of the combinations, matrix (their
    coefficients), values, sigma, covariance, interval, description (values of the model); dimensions and
    offsets by name; rows, noise, residual with its deviation, and before (residuals of the model); samples
    (their places in FILE), gap, without_effect, undetermined, unused.
    """
    split = tuple(parsing.split_names(noise, "--noise"))
    given_noise = _pairs(split, "--noise", "NUMBER").items()
    sizes = {name: parsing.parse_number(mechanism, name, text, "--noise") for name, text in given_noise}
    names, rows = parsing.split_names(dimensions, "--dimension"), parsing.split_names(offsets, "--offset")
    found = mechanism.calibrate(data, names or None, offsets=rows or None, noise=sizes or None, **given)
    arrays = "samples", "residual", "deviation", "before"
    return found, (*arrays, "rows", "dimensions", "offsets", "undetermined")


def _pairs(entries: tuple[str, ...], option: str, what: str) -> dict[str, str]:
    """Return texts by name from entries of an option, "name=text"."""
    found = {}
    for entry in entries:
        name, equals, text = entry.partition("=")
        if not equals or not (name := name.strip()):
            raise parsing.usage_error(f"must be NAME={what}, got {entry!r}.", option)
        if name in found:
            raise parsing.usage_error(f"gives {name} twice.", option)
        found[name] = text.strip()
    return found


def _data(found: Any, further: tuple[str, ...]) -> dict[str, Any]:
    """Return the results in types of JSON, with further attributes."""
    from kic.ui.report.report import plain_lists

    more = {key: getattr(found, key) for key in further}
    return {
        "name": found.description.name,
        "parameters": list(found.parameters),
        "expressions": list(found.base.expressions),
        "matrix": plain_lists(found.base.matrix),
        **{key: plain_lists(getattr(found, key)) for key in ("values", "sigma", "covariance", "noise")},
        "interval": plain_lists(found.interval()),
        "description": plain_lists(found.base.values),
        "samples": len(found.residual),
        **{key: plain_lists(x) if hasattr(x, "tolist") else x for key, x in more.items()},
        "gap": found.base.gap,
        "without_effect": list(found.base.without_effect),
        "unused": list(found.unused),
    }
