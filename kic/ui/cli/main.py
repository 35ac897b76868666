"""Command-line entry point, signal handling and exit codes."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from functools import partial
from typing import Any

import click

from kic.errors import DegreesWarning, KicError, ModelError, printable
from kic.kernels.second_process import allow_second_process
from kic.ui.cli.assemblies import assemblies
from kic.ui.cli.check import check, schema
from kic.ui.cli.completion import completion
from kic.ui.cli.draw import draw
from kic.ui.cli.export import export
from kic.ui.cli.identify import calibrate, identify
from kic.ui.cli.linearize import linearize
from kic.ui.cli.list_models import list_models
from kic.ui.cli.mobility import mobility
from kic.ui.cli.report import report
from kic.ui.cli.simulate import simulate
from kic.ui.cli.view import view
from kic.ui.cli.warm_up import warm_up

# exit codes of shells: 128 plus the number of the signal
EXIT_INTERRUPTED, EXIT_BROKEN_PIPE = 130, 141


class _Group(click.Group):
    """Command group that prints kic errors as one paragraph and ends quietly on interrupts."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KicError as error:
            raise click.ClickException(_with_option_names(self, ctx, error)) from None
        except click.ClickException as error:
            error.message = printable(error.message)  # type: ignore[misc]
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:  # a reader such as head has closed the pipe
            _discard_output()
            ctx.exit(EXIT_BROKEN_PIPE)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else "The output cannot be written: "
            with suppress(OSError):
                click.echo(printable(f"Error: {place}{error.strerror or error}."), err=True)
        _discard_output()
        sys.exit(1)


def _link_used_kernels() -> None:
    """Link the kernels that Numba has compiled, for later commands; load nothing if it was not used."""
    if "kic.kernels.compiler" in sys.modules:
        from kic.kernels.jit import link_used_kernels

        link_used_kernels()


# arguments that are options of the same name, or of another
_SAME = ("near", "wrt", "voltage", "current", "controller", "of", "order", "steps", "close", "question",
         "points", "degree", "cutoff")  # fmt: skip
_ARGUMENTS = {"error_max": "error-max", "limits": "box", "outputs": "output", "parameters": "parameter",
              "columns": "column"}  # fmt: skip
# wording of the Python interface, its counterpart on the command line, and the option that must exist
_OPTION_NAMES = (
    (
        "look with assembly_modes(), or keep the others with failures='mask'",
        "or look with assembly_modes()",
        "",
    ),
    ("look with assembly_modes()", "look with kic assemblies", ""),
    ("`measurements`", "FILE", "--column"),
    ("is kept as `simulation`", "is kept with --save FILE", "--save"),
    ("`limits` is True, but", "--limits is given, but", "--limits"),
    (", or pass a dict of names to (lower, upper)", "", "--limits"),
    ("start nearer with `near`", "start nearer with --at", "--at"),
    ("`time`", "--sample-time", "--sample-time"),
    *(
        (f"`{name}{equals}`", f"--{option}", f"--{option}")
        for name, option in (*_ARGUMENTS.items(), *zip(_SAME, _SAME, strict=True))
        for equals in ("=", "")
    ),
)


def _with_option_names(group: click.Group, ctx: click.Context, error: KicError) -> str:
    """Return the message of an error with options in place of arguments.

    Errors in model files keep the keys of the file.
    """
    text = str(error)
    command = group.get_command(ctx, ctx.invoked_subcommand or "")
    if command is None or isinstance(error, ModelError):
        return text
    options = {"", *(option for parameter in command.params for option in parameter.opts)}
    for argument, typed, option in _OPTION_NAMES:
        if option in options:
            text = text.replace(argument, typed)
    return text


def _discard_output() -> None:
    """Discard buffered output, because writing it would fail again when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # the stream is missing or has no descriptor
            stream.flush()
            continue
        with suppress(AttributeError, OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested:
        from kic import __version__

        click.echo(f"kic {__version__}")
        ctx.exit()


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
              help="Show the version and exit.")  # fmt: skip
@click.pass_context
def main(ctx: click.Context) -> None:
    """Compute Jacobians (G), Hessians (H), the mass matrix (I*) and other dynamics of mechanisms.

    MODEL is a shipped model, such as four-bar, or a TOML, URDF, SDF or MJCF file.

    \b
    List the shipped models and look at one of them:
      kic list
      kic report puma560
      kic draw puma560 --names -o puma560.png
    \b
    Show it in the browser and move it:
      kic view puma560
    \b
    Choose a configuration, another part and second order:
      kic report puma560 --at shoulder=30deg --at wrist_bend=0.8 --of link6 --order 2
    \b
    Write the whole report as one page, with drawing and plots:
      kic report four-bar --at A=70deg --html four-bar.html
    \b
    Describe your own mechanism in a TOML file and check it:
      kic check ./arm.toml
      kic report ./arm.toml --at "10deg, 0.5, -30deg"
    \b
    Read a robot from a URDF, SDF or MJCF file:
      kic check ./robot.urdf
    \b
    Analyse mobility, small motions and motion in time:
      kic mobility bricard
      kic assemblies three-rrr --complete
      kic linearize four-bar --at A=70deg
      kic simulate four-bar --for 5
    \b
    Write C code for other programs, and FMUs:
      kic export five-bar --c generated --close
      kic export five-bar --fmu five-bar.fmu
    \b
    Print numbers for a script:
      kic report puma560 --json > puma560.json
    \b
    Enable shell completion of commands, models and names (zsh and fish: kic completion --help):
      eval "$(kic completion bash)"

    Without a library of kernels, as in a checkout, the first call compiles them once for this machine, in
    several seconds; a line on stderr reports it. kic warm-up compiles all of them.

    Exit codes: 0, success; 1, error; 2, misuse of a command or an option; 130, interrupted (Ctrl-C); 141,
    closed pipe, as in kic list | head -1. Errors are printed to stderr with their cause and remedy; stdout
    then stays empty, also with --json.
    """
    os.environ.setdefault("KIC_VERBOSE", "1")
    if ctx.invoked_subcommand != "warm-up":  # it has a second process of its own
        allow_second_process(True)
        ctx.call_on_close(partial(allow_second_process, False))
    ctx.call_on_close(_link_used_kernels)
    ctx.with_resource(warnings.catch_warnings())
    warnings.simplefilter("ignore", DegreesWarning)  # numbers of options have notes of their own
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # print ? for characters that the encoding lacks, such as ᴸ
            stream.reconfigure(errors="replace")
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for command in (
    list_models,
    report,
    draw,
    mobility,
    calibrate,
    identify,
    assemblies,
    linearize,
    simulate,
    view,
    export,
    check,
    schema,
    warm_up,
    completion,
):
    main.add_command(command)
