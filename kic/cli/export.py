"""Command `kic export`: C code of a question, and FMUs."""

from __future__ import annotations

from typing import Any

import click

from kic.cli import parsing


@click.command()
@parsing.configuration_options
@click.option("--c", "directory", metavar="DIR", type=click.Path(file_okay=False),
              help="Write NAME.h, NAME.c and NAME_test.c into DIR.")  # fmt: skip
@click.option("--fmu", "file", metavar="FILE", help="Write forward dynamics as an FMU of FMI 3.0.")
@click.option("--no-binary", is_flag=True, help="Write an FMU with sources alone, without a C compiler.")
@click.option("--question", metavar="NAME[,NAME]",
              help="Set the question, by default inverse_dynamics; the error for an unknown one lists "
              "them.")  # fmt: skip
@parsing.names_option(
    "--of", "of", "Points, bodies, joints, distances or their rows of coefficients; repeatable."
)
@parsing.names_option("--wrt", "wrt", "Use these coordinates; repeatable.")
@click.option("--order", type=click.IntRange(1, 3), help="Set the order of coefficients, by default 2.")
@parsing.names_option("--parameter", "parameters", "Keep a number variable, such as tool.mass; repeatable.")
@parsing.names_option("--output", "outputs", "Return only these results, such as I; repeatable.")
@click.option("--close", is_flag=True, help="Close the loops from values of the coordinates by Newton steps.")
@click.option("--steps", type=click.IntRange(1), help="Set the number of Newton steps, by default 5.")
@click.option("--precision", type=click.Choice(["double", "float"]),
              help="Set the type of numbers in C, by default double.")  # fmt: skip
def export(
    request: parsing.Request,
    directory: str | None,
    file: str | None,
    no_binary: bool,
    question: str | None,
    of: tuple[str, ...],
    wrt: tuple[str, ...],
    order: int | None,
    parameters: tuple[str, ...],
    outputs: tuple[str, ...],
    close: bool,
    steps: int | None,
    precision: str | None,
) -> None:
    """Write a question about MODEL as C99 code without allocation, or its forward dynamics as an FMU.

    The configuration selects the pivots, and is the start of an FMU. The test program in C compares results
    with those of kic.

    \b
      kic export five-bar --c generated --close --steps 3
      kic export puma560 --c generated --question coefficients,dynamics --of link6 --order 1
      kic export gough-stewart --c generated --question position --precision float
      kic export five-bar --c generated --question actuation_map --of B,D
      kic export five-bar --fmu five-bar.fmu --parameter coupler.mass
    """
    if (directory is None) == (file is None):
        raise click.UsageError("Give one of --c DIR and --fmu FILE.")
    if no_binary and file is None:
        raise click.UsageError("--no-binary is an option of --fmu.")
    mechanism = request.mechanism
    names = {"of": of, "wrt": wrt}
    options: dict[str, Any] = {key: parsing.split_names(words, f"--{key}") for key, words in names.items()}
    options |= {"order": order, "steps": steps, "precision": precision}
    found = mechanism.export(
        parsing.split_names(
            (question or ("forward_dynamics" if file else "inverse_dynamics"),), "--question"
        ),
        to="fmu" if file else "c",
        near=request.configuration(),
        parameters=parsing.split_names(parameters, "--parameter"),
        outputs=parsing.split_names(outputs, "--output"),
        close=close,
        **{key: value for key, value in options.items() if value},
    )
    for path in [found.save(file, binary=not no_binary)] if file else found.save(directory):
        click.echo(str(path))
