"""Calls that raise errors, row by row; the head of the table describes its columns."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
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
    known = dict(kic=kic, np=np, pytest=pytest, replace=replace, load=kic.load, approx=pytest.approx)
    exec("\n".join(line for line in SECTIONS[section].splitlines() if " => " not in line), known)
    return known


def calls(text: str, known: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a call and its names, for each value of its loop if it has one."""
    statement = ast.parse(text).body[0]
    if not isinstance(statement, ast.For):
        yield text, known
        return
    names, body = ast.unparse(statement.target), ast.unparse(statement.body)
    for value in eval(ast.unparse(statement.iter), known):
        exec(f"{names} = value", now := {**known, "value": value})
        print(names, "=", value)
        yield body, now


@pytest.mark.parametrize(("section", "row"), ROWS)
def test_refused_calls(section: int, row: str) -> None:
    text, kind, data, part = (*row.split(" => "), "", "")[:4]
    error_type = getattr(kic, kind, None) or getattr(builtins, kind)
    made = list(calls(text, names(section)))
    assert made
    for call, known in made:
        given = eval(f"dict({data})", known)
        error = refuses(lambda call=call, known=known: eval(call, known), error_type, part, **given)
        # messages are short, and name what is unknown
        assert "\n" not in str(error)
        assert len(str(error)) < 600
        if isinstance(error, kic.UnknownNameError):
            assert error.name not in error.candidates
