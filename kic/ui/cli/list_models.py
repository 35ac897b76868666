"""Command `kic list`: the shipped models."""

from __future__ import annotations

import json
import textwrap

import click

from kic.ui.cli.parsing import at_terminal, width


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, described above.")
def list_models(as_json: bool) -> None:
    """List the shipped models: name, degrees of freedom, title.

    \b
      kic list
      kic report twin-arm
      kic list --json

    --json prints a list of objects with name, dof, coordinates (names), title, file.
    """
    from kic.io.library import find, model_names
    from kic.ui.cli.completion import read_model_index

    found = {name: read_model_index(find(name)) for name in model_names()}
    if as_json:
        rows = [
            {"name": name, "dof": len(o.coordinates), "coordinates": o.coordinates, "title": o.title,
             "file": str(find(name))}
            for name, o in found.items()
        ]  # fmt: skip
        click.echo(json.dumps(rows))
        return
    lines = [("model", "dof", "title")]
    lines += [(name, str(len(o.coordinates)), o.title) for name, o in found.items()]
    wide = max(len(name) for name, _, _ in lines)
    room = width() if at_terminal() else 10_000
    starts = [f"{name.ljust(wide)}  {dof.rjust(3)}  " for name, dof, _ in lines]
    click.echo(
        "\n".join(
            textwrap.fill(start + title, room, subsequent_indent=" " * len(start))
            for start, (_, _, title) in zip(starts, lines, strict=True)
        )
    )
