"""The order of the packages of kic, by the contracts in `pyproject.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def contracts() -> list[dict[str, list[str]]]:
    """Return the contracts of import-linter."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: list[dict[str, list[str]]] = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return found


@cache
def layers() -> dict[str, int]:
    """Return the heights of the packages and modules at the top of kic, and of members such as "ui.cli".

    Members are those of packages whose order has a contract of its own, except kernels.
    """
    (packages,) = (one["layers"] for one in contracts() if "kic.errors" in one.get("layers", ()))
    order = {one["containers"][0]: one["layers"] for one in contracts() if "containers" in one}
    found = dict[str, int]()
    for package in reversed(packages):
        name = package.removeprefix("kic.")
        found[name] = len(found)
        for layer in reversed(order.get(package, ()) if name != "kernels" else ()):
            height = len(found)
            found |= {f"{name}.{member.strip()}": height for member in layer.split("|")}
    return found


def wings() -> dict[str, set[str]]:
    """Return the packages above the core, each with those that it may use."""
    (contract,) = (one for one in contracts() if "ignore_imports" in one)
    found = {name.removeprefix("kic."): set[str]() for name in contract["modules"]}
    for edge in contract["ignore_imports"]:
        user, used = (name.split(".")[1] for name in edge.split(" -> "))
        found[user].add(used)
    return found


def members() -> list[str]:
    """Return the names in `layers` without the packages whose members are among them."""
    return [name for name in layers() if not any(other.startswith(f"{name}.") for other in layers())]


def height(name: str) -> int:
    """Return the height of a dotted module below kic; what is in no package is above all."""
    while name and name not in layers():
        name = name.rpartition(".")[0]
    return layers().get(name, len(layers()))
