"""What a shell may complete: models, coordinates, parts and their rows."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from kic.description.parts import JOINT_DOF

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class ModelIndex:
    """What a model file names; nothing is checked.

    Attributes
    ----------
    title : str
        Its headline.
    coordinates : tuple of str
        Its default coordinates, one for each freedom as named.
    parts : dict of str to tuple of str
        Whatever has rows, each with them: joints, points, distances, bodies.
    """

    title: str = ""
    coordinates: tuple[str, ...] = ()
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_model_index(path: Path) -> ModelIndex:
    """The names in a model file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    ModelIndex

    Raises
    ------
    OSError, ValueError
        If it can not be read, or is no TOML.

    Examples
    --------
    >>> from kic.cli.completion import read_model_index
    >>> from kic.io.library import find
    >>> read_model_index(find("four-bar")).coordinates
    ('A',)
    """
    data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    joints = dict(map(_joint, _rows(data)))
    named = data.get("coordinates", [name for name, components in joints.items() if components])
    coordinates = tuple(c for name in named for c in joints.get(name, (name,)))
    parts = dict(joints)
    for kind, rows in (("points", _AXES), ("distances", ()), ("bodies", (*_AXES, "wx", "wy", "wz"))):
        parts |= {part["name"]: tuple(f"{part['name']}.{row}" for row in rows) for part in data.get(kind, [])}
    return ModelIndex(data.get("title", ""), coordinates, parts)


def _rows(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Joints as drawn, or the rows that make them."""
    return data["dh"]["rows"] if "dh" in data else data.get("joints", [])


def _joint(row: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Name and coordinates of a joint."""
    name = str(row.get("name", row.get("joint")))
    count = JOINT_DOF.get(row.get("type", "revolute"), 1)
    return name, (name,) if count == 1 else tuple(f"{name}.{k + 1}" for k in range(count))


# from where a mechanism is drawn, by name; completion can not wait for the drawing itself
VIEWS = ("top", "front", "side")


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shipped models that begin so, else files."""
    from kic.io.library import model_names

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


def views(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Views that have a name."""
    return _completed(VIEWS, incomplete)


def _completed(names: Iterable[str], incomplete: str, tail: str = "") -> list[CompletionItem]:
    """Names that go on from what stands behind the last comma."""
    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}{tail}") for name in names if name.startswith(begun)]


def _outline(ctx: click.Context) -> ModelIndex:
    """Names in the model of this line; none if there is no such model."""
    from kic.io.library import find, model_names

    # of a line that ends in an option without its value the parser leaves all words over
    model = ctx.params.get("model") or next(iter(ctx.args), None)
    if not model:
        return ModelIndex()
    try:
        return read_model_index(find(model) if model in model_names() else Path(model))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ModelIndex()  # of a file that is no model there is nothing to say while someone types
