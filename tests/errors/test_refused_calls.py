"""Calls that raise errors, row by row; the head of the table describes its columns."""

from __future__ import annotations

import builtins
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import refuses

import kic

TABLE = Path(__file__).parents[1] / "data" / "refused_calls.txt"
SECTIONS = TABLE.read_text(encoding="utf-8").split("\n\n")[1:]
ROWS = [(k, row) for k, text in enumerate(SECTIONS) for row in text.splitlines() if " => " in row]


@cache
def names(section: int) -> dict[str, Any]:
    """Return the names that the rows of a section use."""
    known = {"kic": kic, "np": np, "replace": replace, "load": kic.load, "approx": pytest.approx}
    exec("\n".join(line for line in SECTIONS[section].splitlines() if " => " not in line), known)
    return known


@pytest.mark.parametrize(("section", "row"), ROWS)
def test_refused_calls(section: int, row: str) -> None:
    call, kind, data, text = (*row.split(" => "), "", "")[:4]
    known = names(section)
    given = eval(f"dict({data})", known)
    error = refuses(
        lambda: eval(call, known), getattr(kic, kind, None) or getattr(builtins, kind), text, **given
    )
    # messages are short, and name what is unknown
    assert "\n" not in str(error)
    assert len(str(error)) < 600
    if isinstance(error, kic.UnknownNameError):
        assert error.name not in error.candidates
