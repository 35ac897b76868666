"""Shapes that docstrings document."""

from __future__ import annotations

import re


def documented(text: str) -> dict[str, str]:
    """Shapes in an Attributes section: name -> what stands between the parentheses."""
    section = re.split(r"\n\s*[A-Z][a-z]+\n\s*-+\n", text.split("Attributes\n")[1])[0]
    found = {}
    for names, shape in re.findall(r"^\s*([\w, ]+) : \((\.\.\.[^)]*)\)", section, flags=re.MULTILINE):
        for name in names.split(", "):
            found[name] = shape
    return found


BATCH = (3, 1, 2)
