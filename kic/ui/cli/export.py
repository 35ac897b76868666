"""Command `kic export`: C code of a question, FMUs, and actuation maps as tables and polynomials."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from kic.errors import printable
from kic.ui.cli import parsing

if TYPE_CHECKING:
    from kic.export.export import ExportedQuestion
    from kic.mechanism.mechanism import Mechanism

# suffixes of files of actuation maps
_SUFFIXES = {"table": (".csv", ".npz"), "polynomial": (".json", ".xml", ".urdf", ".mjcf")}

# questions by target, and options of targets
_QUESTIONS = {"c": "inverse_dynamics", "fmu": "forward_dynamics"}
_TARGET_OPTIONS = {
    "c": ("precision",),
    "fmu": (),
    "table": ("limits", "points"),
    "polynomial": ("limits", "degree", "error_max"),
}


@click.command()
@parsing.configuration_options
@click.option("--c", "directory", metavar="DIR", type=click.Path(file_okay=False),
              help="Write NAME.h, NAME.c and NAME_test.c into DIR.")  # fmt: skip
@click.option("--fmu", "file", metavar="FILE", help="Write forward dynamics as an FMU of FMI 3.0.")
@click.option("--table", metavar="FILE", help="Write an actuation map as a table: .csv or .npz.")
@click.option("--polynomial", metavar="FILE",
              help="Write an actuation map as polynomials with certified error bounds: .json; or MODEL as "
              ".xml or .mjcf (MJCF) or .urdf, in which they replace the loops.")  # fmt: skip
@click.option("--box", multiple=True, metavar="NAME=LOWER:UPPER",
              help="Limit a coordinate of a table or of polynomials, such as A=10deg:60deg; "
              "repeatable.")  # fmt: skip
@click.option(
    "--points", type=click.IntRange(2), help="Set the points of a table per coordinate, by default 33."
)
@click.option("--degree", type=click.IntRange(1), help="Set the degree of polynomials.")
@click.option("--error-max", type=float, help="Set the largest error of polynomials, in the model's units.")
@click.option("--no-binary", is_flag=True, help="Write an FMU with sources alone, without a C compiler.")
@click.option("--question", metavar="NAME",
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
    table: str | None,
    polynomial: str | None,
    box: tuple[str, ...],
    points: int | None,
    degree: int | None,
    error_max: float | None,
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
    """Write a question about MODEL as C99 code without allocation, its forward dynamics as an FMU, or a map.

    The configuration selects the pivots, and is the start of an FMU. The test program in C compares results
    with those of kic.

    \b
      kic export five-bar --c generated --close --steps 3
      kic export puma560 --c generated --question coefficients_and_dynamics --of link6 --order 1
      kic export gough-stewart --c generated --question position --precision float
      kic export five-bar --c generated --question actuation_map --of B,D
      kic export five-bar --fmu five-bar.fmu --parameter coupler.mass
      kic export four-bar --table map.csv --of B,D --box A=10deg:60deg
      kic export four-bar --polynomial map.json --of B,D --box A=10deg:60deg --error-max 1e-4
    """
    targets = {"c": directory, "fmu": file, "table": table, "polynomial": polynomial}
    chosen = [target for target, path in targets.items() if path is not None]
    if len(chosen) != 1:
        raise click.UsageError("Give one of --c DIR, --fmu FILE, --table FILE and --polynomial FILE.")
    (to,) = chosen
    map_file, suffixes = table or polynomial, _SUFFIXES.get(to, ())
    if map_file and not map_file.lower().endswith(suffixes):
        raise parsing.usage_error(f"FILE must end with {' or '.join(suffixes)}, got {map_file!r}.", f"--{to}")
    if map_file and not box:
        raise click.UsageError(f"--{to} requires --box NAME=LOWER:UPPER.")
    if no_binary and file is None:
        raise click.UsageError("--no-binary requires --fmu.")
    mechanism = request.mechanism
    names = {"of": of, "wrt": wrt, "parameters": parameters, "outputs": outputs}
    options: dict[str, Any] = {
        key: parsing.split_names(words, f"--{key.removesuffix('s')}") for key, words in names.items()
    }
    options |= {"order": order, "close": close, "steps": steps, "precision": precision, "points": points}
    options |= {"degree": degree, "error_max": error_max, "limits": _box(mechanism, box)}
    given = {key: value for key, value in options.items() if value or (value == 0 and value is not False)}
    target = {key: given.pop(key) for key in _TARGET_OPTIONS[to] if key in given}
    ask = _question(mechanism, question or _QUESTIONS.get(to, "actuation_map"), to, given)
    found = getattr(ask(near=request.configuration(), **given), f"to_{to}")(**target)
    if not map_file:
        for path in [found.save(file, binary=not no_binary)] if file else found.save(directory):
            click.echo(printable(str(path)))
        return
    if map_file.lower().endswith((".xml", ".mjcf", ".urdf")):
        mechanism.save(map_file, polynomials=found)
    else:
        found.save(map_file)
    click.echo(printable(f"{map_file}: {found!r}"))


def _question(
    mechanism: Mechanism, question: str, to: str, given: Mapping[str, Any]
) -> Callable[..., ExportedQuestion]:
    """Return the method of a question; raise an error for unknown questions, and options without effect."""
    known = [name for name in dir(type(mechanism.export)) if name[0] != "_"]
    if question not in known:
        raise parsing.usage_error(f"must be one of {', '.join(known)}, got {question}.", "--question")
    default = _QUESTIONS.get(to, "actuation_map")
    if to != "c" and question != default:
        raise parsing.usage_error(f"--{to} only writes {default}, got {question}.", "--question")
    ask: Callable[..., ExportedQuestion] = getattr(mechanism.export, question)
    own = inspect.signature(ask).parameters
    for key in given.keys() - own.keys():
        option = f"--{'box' if key == 'limits' else key.replace('_', '-')}"
        raise click.UsageError(f"{option} must be left out for {question} with --{to}.")
    if "of" in own and "of" not in given:
        raise click.UsageError(f"--of must be given for {question}.")
    return ask


def _box(mechanism: Mechanism, given: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Return the limits of coordinates from the entries of ``--box``."""
    found = {}
    for entry in given:
        name, _, both = (part.strip() for part in entry.partition("="))
        ends = both.split(":")
        if len(ends) != 2:
            raise parsing.usage_error(f"{entry!r} must be NAME=LOWER:UPPER, such as A=10deg:60deg.", "--box")
        parsing.check_scalar_row(mechanism, name)
        if name in found:
            raise parsing.usage_error(f"'{name}' is given twice.", "--box")
        lower, upper = (parsing.parse_number(mechanism, name, x.strip(), "--box") for x in ends)
        found[name] = lower, upper
    return found
