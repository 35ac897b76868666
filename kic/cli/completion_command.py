"""The command `kic completion`: what a shell reads to complete kic's words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
# bash puts a blank behind what it completed; behind waist= a number comes
_NO_BLANK = "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2> /dev/null\n\n    return 0\n"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script with which SHELL completes commands, options, models and names in a model.

    \b
    bash, in ~/.bashrc:
      eval "$(kic completion bash)"
    \b
    zsh, in ~/.zshrc:
      eval "$(kic completion zsh)"
    \b
    fish, once:
      kic completion fish > ~/.config/fish/completions/kic.fish

    Then `kic report pu<TAB>` finds the model, and `kic report puma560 --at sh<TAB>` its coordinate.
    """
    found = get_completion_class(shell)
    assert found is not None  # for the type checker: these three are click's own
    maker = found(click.Group("kic"), {}, "kic", "_KIC_COMPLETE")
    script = maker.source_template % maker.source_vars()
    if shell == "bash":
        script = script.replace("    return 0\n", _NO_BLANK, 1)
    elif shell == "fish":  # what is completed may hold commas
        script = script.replace('string split ","', 'string split -m 1 ","')
    click.echo(script.strip())
