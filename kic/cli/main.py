"""The command line: the group that has all commands, and what ends them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import click

from kic.cli.check import check, schema
from kic.cli.completion_command import completion
from kic.cli.draw import draw
from kic.cli.linearize import linearize
from kic.cli.list_models import list_models
from kic.cli.mobility import mobility
from kic.cli.report import report
from kic.cli.simulate import simulate
from kic.errors import KicError, ModelError

# as shells count: 128 and the number of the signal
EXIT_INTERRUPTED, EXIT_BROKEN_PIPE = 130, 141


class _Group(click.Group):
    """Says what kic refuses in one paragraph, and ends quietly when it is told to."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KicError as error:
            raise click.ClickException(_with_option_names(self, ctx, error)) from None
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:  # the reader, such as head, has seen enough
            _discard_output()
            ctx.exit(EXIT_BROKEN_PIPE)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else "The output cannot be written: "
            with suppress(OSError):
                click.echo(f"Error: {place}{error.strerror or error}.", err=True)
        _discard_output()
        sys.exit(1)


# words of Python, and what they are on the command line, if the command has that option
_OPTION_NAMES = (
    ("look with assemblies(), or keep the others with failures='mask'", "or look with assemblies()", ""),
    ("look with assemblies()", "look with assemblies() in Python", ""),
    ("is kept as `simulation`", "is kept with --save FILE", "--save"),
    ("start nearer with `near`", "start nearer with --at", "--at"),
    *(
        (f"`{name}{equals}`", f"--{name}", f"--{name}")
        for name in ("near", "wrt", "voltage", "current")
        for equals in ("=", "")
    ),
)


def _with_option_names(group: click.Group, ctx: click.Context, error: KicError) -> str:
    """What an error says, with options in place of arguments; keys of model files are named as they are."""
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
    """Discard buffered output, which would fail again when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # no stream, or one without a descriptor
            stream.flush()
            continue
        with suppress(AttributeError, OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
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
    """Kinematic influence coefficients of mechanisms: G, H, D, I*, P* and loads, in a posture.

    \b
    Look at what is shipped, then at one of them:
      kic list
      kic report puma560
      kic draw puma560 --names -o puma560.png
    \b
    Bend it, and ask for another part of it, to second order:
      kic report puma560 --at shoulder=30deg --at wrist_bend=0.8 --of link6 --order 2
    \b
    All of it as one page, with drawing and plots:
      kic report four-bar --at A=70deg --html four-bar.html
    \b
    Your own mechanism is a TOML file; check it while you write it:
      kic check ./arm.toml
      kic report ./arm.toml --at "10deg, 0.5, -30deg"
    \b
    What may move, how it shakes, how it falls:
      kic mobility bricard
      kic linearize four-bar --at A=70deg
      kic simulate four-bar --for 5
    \b
    Numbers for a script:
      kic report puma560 --json > puma560.json
    \b
    Let the shell complete commands, models and names (zsh and fish: kic completion --help):
      eval "$(kic completion bash)"

    The first question ever asked compiles kernels for this machine, which takes some seconds once;
    a line on stderr says so.

    Exit codes: 0, answered; 1, refused, and a paragraph on stderr says why and what to do, with --json, too,
    where stdout then stays empty; 2, usage_error of a command or an option; 130, interrupted (Ctrl-C); 141, who
    reads has gone, as in kic list | head -1.
    """
    os.environ.setdefault("KIC_VERBOSE", "1")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a stream that knows no ᴸ prints ? in its place
            stream.reconfigure(errors="replace")
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for command in (list_models, report, draw, mobility, linearize, simulate, check, schema, completion):
    main.add_command(command)
