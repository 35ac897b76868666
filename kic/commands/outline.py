"""Names in a model file, straight from its text: lists and completion can not wait for a schema."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kic.jointtypes import FREEDOMS

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Outline:
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


def outline(path: Path) -> Outline:
    """The names in a model file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Outline

    Raises
    ------
    OSError, ValueError
        If it can not be read, or is no TOML.

    Examples
    --------
    >>> from kic.commands.outline import outline
    >>> from kic.shipped import find
    >>> outline(find("four-bar")).coordinates
    ('A',)
    """
    data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    joints = dict(map(_joint, _rows(data)))
    named = data.get("coordinates", [name for name, components in joints.items() if components])
    coordinates = tuple(c for name in named for c in joints.get(name, (name,)))
    parts = dict(joints)
    for kind, rows in (("points", _AXES), ("distances", ()), ("bodies", (*_AXES, "wx", "wy", "wz"))):
        parts |= {part["name"]: tuple(f"{part['name']}.{row}" for row in rows) for part in data.get(kind, [])}
    return Outline(data.get("title", ""), coordinates, parts)


def _rows(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Joints as drawn, or the rows that make them."""
    return data["dh"]["rows"] if "dh" in data else data.get("joints", [])


def _joint(row: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Name and coordinates of a joint."""
    name = str(row.get("name", row.get("joint")))
    count = FREEDOMS.get(row.get("type", "revolute"), 1)
    return name, (name,) if count == 1 else tuple(f"{name}.{k + 1}" for k in range(count))
