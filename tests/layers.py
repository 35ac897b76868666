"""The order of the packages of kic, by the contract in `pyproject.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def layers() -> dict[str, int]:
    """Return the height of each package and module at the top of kic."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    names = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]["layers"]
    return {name.removeprefix("kic."): height for height, name in enumerate(reversed(names))}
