"""The indices of equations in the docstrings of packages."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import kic

ROOT = Path(kic.__file__).parents[1]
PACKAGES = [".".join(p.relative_to(ROOT).parts[:-1]) for p in sorted(ROOT.glob("kic/*/**/__init__.py"))]
NUMBER = r"(T?[A-E]|T?\d)[-.](\d+)"
TABLES = r"Tables? \w-\d(?: to \w-\d)?"
ROW = re.compile(rf"^(\([^`]*?\)|{TABLES}|Appendix A\.\d)\s+`(kic[\w.]*)`\s*$")


def index_of(package: str) -> list[tuple[str, str]]:
    """Return the rows (equations, function) of the index in a package's docstring."""
    doc = inspect.cleandoc(importlib.import_module(package).__doc__ or "")
    if "Equation index\n" not in doc:
        return []
    lines = doc.partition("Equation index\n")[2].splitlines()
    ends = [k for k, line in enumerate(lines) if line.startswith("=====")]
    rows = [ROW.match(line) for line in lines[ends[1] + 1 : ends[2]]]
    assert all(rows), f"{package}: a row of the index is not '(equation)  `function`'"
    return [(row[1], row[2]) for row in rows if row]


def equations(text: str) -> set[tuple[str, int]]:
    """Return the equations that a text cites, with those between the ends of ranges.

    An equation is ("2", 3), and ("T2", 3) is Table 2-3.
    """
    text = re.sub(TABLES, lambda m: re.sub(r"(\w)-(\d)", r"T\1-\2", m[0]), re.sub(r"\s+", " ", text))
    found = {(chapter, int(n)) for chapter, n in re.findall(NUMBER, text)}
    for chapter, first, other, last in re.findall(rf"{NUMBER}\)?\s+to\s+\(?{NUMBER}", text):
        if chapter == other:
            found |= {(chapter, n) for n in range(int(first), int(last) + 1)}
    return found


def find(path: str) -> Any:
    """Return the object of a dotted path."""
    parts = path.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for name in parts[k:]:
            found = getattr(found, name)
        return found
    raise AssertionError(path)


INDEX = [(package, *row) for package in PACKAGES for row in index_of(package)]
