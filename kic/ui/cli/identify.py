"""Command `kic identify`: masses, inertias and friction from a file of measurements."""

from __future__ import annotations

import json
from typing import Any

import click

from kic.ui.cli import completion as completing
from kic.ui.cli import parsing


@click.command()
@parsing.model_argument
@click.argument("data", metavar="FILE", type=click.Path(dir_okay=False))
@parsing.names_option(
    "--of",
    "of",
    "Identify the parameters of these bodies, joints, springs and motors, or single ones such as A.friction; "
    "repeatable. Default: those of the model.",
)
@click.option("--column", "columns", multiple=True, metavar="NAME=COLUMN",
              help="Name a column of the file, such as A='crank angle (deg)'; repeatable.")  # fmt: skip
@parsing.names_option("--wrt", "wrt", "Use these measured coordinates; repeatable.")
@click.option("--near", multiple=True, metavar="VALUES", shell_complete=completing.coordinates,
              help="Set a configuration near the first sample, in order or by name; repeatable.")  # fmt: skip
@click.option("--cutoff", type=float, metavar="FREQUENCY",
              help="Low-pass the samples at this frequency, in cycles per time, and differentiate what is "
                   "not measured.")  # fmt: skip
@click.option("--save", "model_file", type=parsing.OutputFile(dir_okay=False), metavar="FILE",
              help="Write the model with consistent parameters: .toml, .urdf or .xml.")  # fmt: skip
@click.option("-o", "--output", "picture", type=parsing.OutputFile(dir_okay=False), metavar="FILE",
              help="Plot efforts and residuals: .png, .svg or .pdf.")  # fmt: skip
@parsing.json_option
def identify(
    model: str,
    data: str,
    of: tuple[str, ...],
    columns: tuple[str, ...],
    wrt: tuple[str, ...],
    near: tuple[str, ...],
    cutoff: float | None,
    model_file: str | None,
    picture: str | None,
    as_json: bool,
) -> None:
    """Identify masses, inertias and friction of MODEL from the measurements in FILE.

    FILE has comma-separated columns with names and units in its first line: t (s), A (deg), A.rate (deg/s),
    A.acceleration (rad/s²), A.effort (N m), or M1.current (A) of a motor. Print the combinations of
    parameters that the measurements determine, with 95 % intervals.

    \b
      kic identify four-bar bench.csv --of crank,coupler,rocker,A.friction --cutoff 8
      kic identify four-bar bench.csv --of A.damping,A.offset --cutoff 8 --column A="crank angle"
      kic identify four-bar bench.csv --cutoff 8 --save identified.toml -o residuals.png

    --json prints a single object: name, parameters; expressions of the combinations, matrix (their
    coefficients), values, sigma, covariance, interval, description (values of the model); efforts, noise,
    correlation; samples, gap, without_effect, unused.
    """
    named = {}
    for entry in columns:
        name, equals, column = entry.partition("=")
        if not equals:
            raise parsing.usage_error(f"must be NAME=COLUMN, got {entry!r}.", "--column")
        named[name.strip()] = column.strip()
    request = parsing.Request(model, near, (), False)
    found = request.mechanism.identify(
        data,
        parsing.split_names(of, "--of") or None,
        columns=named,
        wrt=parsing.split_names(wrt, "--wrt") or None,
        near=request.configuration() if near else None,
        cutoff=cutoff,
    )
    if model_file is not None:
        found.mechanism.save(model_file)
    if picture is not None:
        found.plot().save(picture)
    click.echo(
        json.dumps(_data(found), allow_nan=False) if as_json else found.summary().text(parsing.width())
    )


def _data(found: Any) -> dict[str, Any]:
    """Return the results in types of JSON."""
    from kic.ui.report.report import plain_lists

    arrays = ("values", "sigma", "covariance", "noise", "correlation")
    return {
        "name": found.description.name,
        "parameters": list(found.parameters),
        "expressions": list(found.base.expressions),
        "matrix": plain_lists(found.base.matrix),
        **{key: plain_lists(getattr(found, key)) for key in arrays},
        "interval": plain_lists(found.interval()),
        "description": plain_lists(found.base.values),
        "efforts": list(found.efforts),
        "samples": len(found.effort),
        "gap": found.base.gap,
        "without_effect": list(found.base.without_effect),
        "unused": list(found.unused),
    }
