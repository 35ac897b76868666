"""Printed tables of Appendices C and E."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "notebooks" / "reference" / "dissertation.md"
DATA = json.loads((Path(__file__).parent / "data" / "appendix_c_e.json").read_text(encoding="utf-8"))


def printed_tables() -> dict[tuple[str, str], list[Any]]:
    """Return the numbers of each table as the page has them, by rows, or by planes and rows."""
    cells = re.findall(
        r"^```\{code-cell\} python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    found = {}
    for call in ast.walk(ast.parse("\n".join(cells))):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "compare":
            table, quantity, text = (ast.literal_eval(call.args[k]) for k in (0, 1, 3))
            printed: list[Any] = [[row.split() for row in plane.split(";")] for plane in text.split(" | ")]
            while len(printed) == 1:  # a matrix, or a vector
                printed = printed[0]
            found[table, quantity] = printed
    return found


PRINTED = printed_tables()
TABLES = {key: t | {"printed": PRINTED[key]} for t in DATA["tables"] for key in [(t["table"], t["quantity"])]}
OPEN_W = ["A", "h.x", "h.y", "rocker.angle"]  # the source's w = (φ1; x, y, θ of h)
PLATE = ["w.x", "w.y", "platform.angle"]


def entries(printed: list, at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], str]]:
    """Return every printed number with its position; "-" or None is none."""
    for i, entry in enumerate(printed):
        if isinstance(entry, list):
            yield from entries(entry, (*at, i))
        elif entry not in (None, "-"):
            yield (*at, i), entry


def unit(printed: str) -> float:
    """Return one unit of the last digit; whole numbers in these tables are exact."""
    return 10.0 ** -len(printed.partition(".")[2]) if "." in printed else 1e-9


def agrees(printed: str, number: float, units: float = 0.5) -> bool:
    """Return True if a number is within units of the last printed digit."""
    return bool(abs(float(printed) - number) <= units * unit(printed))
