"""What a shell may complete: models, coordinates, parts and their rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from kic.commands.outline import Outline, outline


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shipped models that begin so, else files."""
    from kic.shipped import model_names

    found = [name for name in model_names() if name.startswith(incomplete)]
    return [CompletionItem(name) for name in found] or [CompletionItem(incomplete, type="file")]


def coordinates(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Coordinates of the model named before, ready for their values: ``waist=``; the last of a list."""
    there = _outline(ctx)
    names = [*there.coordinates, *(row for rows in there.parts.values() for row in rows)]
    return _completed(dict.fromkeys(names), incomplete, "=")


def parts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Parts of the model named before and, once one is named, their rows; the last of a list."""
    there = _outline(ctx).parts
    last = incomplete.rpartition(",")[2].partition(".")
    return _completed(there.get(last[0], ()) if last[1] else there, incomplete)


def _completed(names: Iterable[str], incomplete: str, tail: str = "") -> list[CompletionItem]:
    """Names that go on from what stands behind the last comma."""
    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}{tail}") for name in names if name.startswith(begun)]


def _outline(ctx: click.Context) -> Outline:
    """Names in the model of this line; none if there is no such model."""
    from kic.shipped import find, model_names

    # of a line that ends in an option without its value the parser leaves all words over
    model = ctx.params.get("model") or next(iter(ctx.args), None)
    if not model:
        return Outline()
    try:
        return outline(find(model) if model in model_names() else Path(model))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Outline()  # of a file that is no model there is nothing to say while someone types
