"""Command `kic assemblies`: the assembly modes of a mechanism for given inputs."""

from __future__ import annotations

import errno
import json
import os

import click

from kic.errors import InputError
from kic.ui.cli import parsing
from kic.ui.cli.completion import coordinates


@click.command()
@parsing.model_argument
@click.option(
    "--at",
    "given",
    multiple=True,
    metavar="VALUES",
    shell_complete=coordinates,
    help="Set the inputs, in order or by name; repeatable. Default: those of the reference configuration.",
)
@click.option("--complete", is_flag=True, help="Collect all solutions, and print the evidence for it.")
@click.option("--certify", is_flag=True, help="With --complete: certify that paths do not jump.")
@click.option(
    "--time-limit", type=float, metavar="SECONDS", help="With --complete: end the search after this time."
)
@click.option("-o", "--output", "file", metavar="FILE", type=parsing.OutputFile(dir_okay=False),
              help="Draw all assembly modes side by side: .png, .svg or .pdf.")  # fmt: skip
@click.option("--limits", is_flag=True, help="Print only assembly modes within the limits of the model.")
@parsing.json_option
def assemblies(
    model: str,
    given: tuple[str, ...],
    complete: bool,
    certify: bool,
    time_limit: float | None,
    file: str | None,
    limits: bool,
    as_json: bool,
) -> None:
    """Print the assembly modes of MODEL for given inputs.

    A quick search from random starts may miss solutions. With --complete, all complex solutions of the
    closure equations are collected, and the evidence that none is missing is printed. The table has at most
    100 assembly modes, --json all of them.

    \b
      kic assemblies four-bar --at A=70deg
      kic assemblies three-rrr --complete -o modes.svg

    --json prints a single object: name, coordinates (names of joints), phi (a list for each assembly mode),
    singular, reason (why there is none); evidence, statement, generic (number of complex solutions), real,
    certified_complex, proven, certified_paths and chance, null without --complete.
    """
    if certify and not complete:
        raise parsing.usage_error("--certify requires --complete.", "--certify")
    if time_limit is not None and not complete:
        raise parsing.usage_error("--time-limit requires --complete.", "--time-limit")
    if file is not None:
        _check_target(file)
    mechanism = parsing.load_model(model)
    values = parsing.inputs_of(mechanism, given)
    found = mechanism.assembly_modes(
        values, complete=complete, certify=certify, time_limit=time_limit, limits=True if limits else None
    )
    if file is not None and not len(found):
        raise InputError(f"There is no assembly mode to draw. {found.reason}", key="output")
    if not as_json:
        click.echo(found.summary())
    if file is not None:
        found.configuration.draw(columns=4).save(file)
    if not as_json:
        return
    known = found.completeness if complete else None
    keys = (
        "evidence",
        "statement",
        "generic",
        "real",
        "certified_complex",
        "proven",
        "certified_paths",
        "chance",
    )
    from kic.mechanism.configuration import tree_coordinates

    names, phi = tree_coordinates(found.configuration)
    data = {
        "name": mechanism.name,
        "coordinates": names,
        "phi": phi.tolist(),
        "singular": found.singular.tolist(),
        "reason": found.reason,
        **{key: getattr(known, key, None) for key in keys},
    }
    click.echo(json.dumps(data, allow_nan=False, default=lambda x: x.item()))


def _check_target(file: str) -> None:
    """Check the suffix and the directory of a picture before a long search."""
    from kic.numerics.files import write_error
    from kic.plotting.figures import FORMATS, check_target

    path, _ = check_target(file, FORMATS, "A picture", 200)
    if not path.parent.is_dir():
        raise write_error(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)))
