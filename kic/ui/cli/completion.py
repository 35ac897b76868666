"""Shell completion of models, coordinates, parts and rows, and the command `kic completion`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from kic.description.joint_types import JOINT_DOF

_AXES = ("x", "y", "z")
_TWIST = (*_AXES, "wx", "wy", "wz")


@dataclass(frozen=True)
class ModelIndex:
    """Names and texts in a model file, read without validation."""

    title: str = ""
    coordinates: tuple[str, ...] = ()  # default coordinates
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)  # rows of each part with a place or value
    about: str = ""
    source: str = ""


def read_model_index(path: Path) -> ModelIndex:
    """Return names and texts of a model file; raise OSError or ValueError if it cannot be read as TOML.

    Examples
    --------
    >>> from kic.ui.cli.completion import read_model_index
    >>> from kic.io.library import find
    >>> read_model_index(find("four-bar")).coordinates
    ('A',)
    """
    data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    joints = dict(map(_joint, _rows(data)))
    named = data.get("coordinates", [name for name, components in joints.items() if components])
    coordinates = tuple(c for name in named for c in joints.get(name, (name,)))
    parts = dict(joints)
    rows_of = {"points": _AXES, "distances": (), "angles": (), "bodies": _TWIST, "frames": _TWIST}
    for kind, rows in rows_of.items():
        parts |= {part["name"]: tuple(f"{part['name']}.{row}" for row in rows) for part in data.get(kind, [])}
    title, about, source = (data.get(key, "") for key in ("title", "about", "source"))
    return ModelIndex(title, coordinates, parts, about, source)


def _rows(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the joints of a model file, or the rows of its DH table."""
    return data["dh"]["rows"] if "dh" in data else data.get("joints", [])


def _joint(row: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the name and the coordinates of a joint."""
    name = str(row.get("name", row.get("joint")))
    count = JOINT_DOF.get(row.get("type", "revolute"), 1)
    return name, (name,) if count == 1 else tuple(f"{name}.{k + 1}" for k in range(count))


# copied from kic.plotting.view, whose import is too slow for completion
VIEWS = ("top", "front", "side")


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of shipped models, else files."""
    from kic.io.library import model_names

    found = [name for name in model_names() if name.startswith(incomplete)]
    return [CompletionItem(name) for name in found] or [CompletionItem(incomplete, type="file")]


def coordinates(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete coordinates of the model in the command line as ``waist=``, after the last comma."""
    there = _model_index(ctx)
    names = [*there.coordinates, *(row for rows in there.parts.values() for row in rows)]
    return _completed(dict.fromkeys(names), incomplete, "=")


def parts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete parts of the model and, after a dot, their rows; after the last comma."""
    there = _model_index(ctx).parts
    last = incomplete.rpartition(",")[2].partition(".")
    return _completed(there.get(last[0], ()) if last[1] else there, incomplete)


def views(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of views."""
    return _completed(VIEWS, incomplete)


# characters of names that shells interpret, since they do not quote completed words
_SHELL = re.compile(r"[\s\"'`$&;|<>(){}*?!~#\\\[\]]")


def _completed(names: Iterable[str], incomplete: str, tail: str = "") -> list[CompletionItem]:
    """Return the names that start with the text after the last comma, and that need no quotes."""
    before, comma, begun = incomplete.rpartition(",")
    found = (name for name in names if name.startswith(begun))
    return [
        CompletionItem(f"{before}{comma}{name}{tail}")
        for name in found
        if name.isprintable() and not _SHELL.search(name)
    ]


def _model_index(ctx: click.Context) -> ModelIndex:
    """Return the names in the model of the command line; none if it cannot be read."""
    from kic.io.library import find, model_names

    # if the line ends in an option without a value, the parser leaves all words in ctx.args
    model = ctx.params.get("model") or next(iter(ctx.args), None)
    if not model:
        return ModelIndex()
    try:
        return read_model_index(find(model) if model in model_names() else Path(model))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ModelIndex()  # completion prints no errors


SHELLS = ("bash", "zsh", "fish")
# bash appends a blank to a completed word; a number must follow waist=
_NO_BLANK = "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2> /dev/null\n\n    return 0\n"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a shell completion script.

    It completes commands, options, models and names.

    \b
    bash, in ~/.bashrc:
      eval "$(kic completion bash)"
    \b
    zsh, in ~/.zshrc:
      eval "$(kic completion zsh)"
    \b
    fish, once:
      kic completion fish > ~/.config/fish/completions/kic.fish

    Then `kic report pu<TAB>` completes the model, and `kic report puma560 --at sh<TAB>` its coordinate.
    """
    found = get_completion_class(shell)
    assert found is not None  # for the type checker: click provides these three
    maker = found(click.Group("kic"), {}, "kic", "_KIC_COMPLETE")
    script = maker.source_template % maker.source_vars()
    if shell == "bash":
        script = script.replace("    return 0\n", _NO_BLANK, 1)
    elif shell == "fish":  # a completed word may contain commas
        script = script.replace('string split ","', 'string split -m 1 ","')
    click.echo(script.strip())
