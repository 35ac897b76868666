"""Printed tables: alignment, blocks, planes, prose, HTML."""

import numpy as np
import sympy

from kic.numerics.display import Summary, cell, column, largest_of

ABC = ["a", "b", "c"]


def body(sheet, **width):
    """Lines below the title."""
    return sheet.text(**width).split("\n")[1:]


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
    assert cell(7, 0.0) == "7"


def test_largest_ignores_entries_that_are_not_finite():
    assert largest_of(np.array([1.0, -3.0, np.nan, np.inf])) == 3.0
    assert largest_of(np.zeros((0, 2))) == 0.0
    assert largest_of(np.array([sympy.Symbol("a")])) == 0.0


def test_decimal_points_are_aligned():
    assert column([1.0, -0.25, 12.5]) == ["1   ", "-0.25", "12.5 "]
    assert column([1.0, 4e-5, np.nan]) == ["1    ", "4e-05", "nan    "]
    assert column([]) == []
    assert column(np.array([1 + 1j, 2])) == ["1+1j", "2+0j"]


def test_a_matrix_has_labels_and_a_caption():
    sheet = Summary("title")
    sheet.matrix("A (m)", ["x", "long"], ["p", "q"], np.array([[1.0, -0.5], [0.25, 0.0]]), corner="u")
    assert sheet.text() == ("title\n\nA (m)\n  u        p     q\n  x     1     -0.5\n  long  0.25   0")


def test_a_vector_has_no_empty_header():
    sheet = Summary("t")
    sheet.matrix("v", ["x", "y"], [""], np.array([[1.5], [-2.0]]))
    assert body(sheet) == ["", "v", "  x   1.5", "  y  -2"]
    assert "<thead>" not in sheet.html()


def test_wide_matrices_are_broken_into_blocks():
    names = [f"joint{k}" for k in range(14)]
    a = np.arange(14 * 14, dtype=float).reshape(14, 14) / 3
    sheet = Summary("t")
    sheet.matrix("A", names, names, a)
    for width in (100, 40):
        lines = body(sheet, width=width)
        assert max(map(len, lines)) <= width
        # each name heads one column and each block one line per row
        heads = [line.split() for line in lines if line.startswith("         ")]
        assert [name for head in heads for name in head] == names
        assert sum(line.startswith("  joint13") for line in lines) == len(heads) > 1
    assert sheet.text() == sheet.text(width=100)
    assert len(body(sheet, width=1000)) == 17
    # no page is too narrow: then each column stands alone
    assert sum("joint13" in line for line in body(sheet, width=1)) == 15


def test_text_is_left_and_numbers_are_right_aligned():
    sheet = Summary("t")
    sheet.texts("parts", ["A", "B"], ["type", "mass"], [["revolute", "1"], ["slide", "20.5"]])
    assert body(sheet)[2:] == ["     type      mass", "  A  revolute     1", "  B  slide     20.5"]


def test_planes_omit_zero_rows_and_columns():
    T = np.zeros((3, 3, 3))
    T[0, 1, 2] = T[0, 2, 1] = 2.0
    T[1, 0, 0] = 1e-17
    sheet = Summary("t")
    sheet.planes("H", ["u", "v", "w, z"], ABC, ABC, T, ["m", "rad", ""])
    assert body(sheet) == ["", "H[u] (m)", "     b  c", "  b  0  2", "  c  2  0", "", "H = 0: v; w, z"]
    sheet = Summary("t")
    sheet.planes("P*", ["u"], ABC, ABC, np.full((1, 3, 3), np.nan), "N")
    assert body(sheet)[1:3] == ["P*[u] (N)", "       a    b    c"]
    sheet = Summary("t")
    sheet.planes("H", ["u", "v"], ABC, ABC, T[:2], largest=1e20)
    assert body(sheet) == ["", "H = 0: u, v"]


def test_planes_of_symbols_are_shown_whole():
    T = np.full((1, 1, 2), sympy.Symbol("s"), dtype=object)
    sheet = Summary("t")
    sheet.planes("H", ["u"], ["a"], ["b", "c"], T)
    assert body(sheet) == ["", "H[u]", "     b  c", "  a  s  s"]


def test_prose_is_wrapped_and_keeps_its_own_lines():
    sheet = Summary("t")
    sheet.say("\n" + "word " * 12 + "\nsecond")
    assert body(sheet, width=30) == ["", *["word word word word word word"] * 2, "second"]
    sheet = Summary("a title of many words that is longer than its page")
    assert sheet.text(width=30) == "a title of many words that is\nlonger than its page"


def test_html_escapes_and_shows_everything():
    sheet = Summary("a<b")
    sheet.say("x & y")
    sheet.matrix("G <1>", ["r"], ["c&d"], np.array([[0.5]]))
    sheet.texts("words", ["r"], ["type"], [["<revolute>"]])
    sheet.texts("words", ["r"], ["type"], [["revolute"]])
    html = sheet.html()
    for shown in ("a&lt;b", "x &amp; y", "G &lt;1&gt;", "c&amp;d", "<td>0.5</td>", "&lt;revolute&gt;"):
        assert shown in html
    assert '<td style="text-align:left">revolute</td>' in html


def test_empty_matrices_have_a_text():
    sheet = Summary("t")
    sheet.matrix("none", [], ["c"], np.zeros((0, 1)))
    sheet.matrix("none", ["r"], [], np.zeros((1, 0)))
    assert sheet.text() == "t\n\nnone\n    c\n\nnone\n  r"


def test_one_member_of_a_batch_is_shown_and_named():
    for batch, index, lines in (
        ((), (), "x"),
        ((3, 2), (0, 0), "x\nbatch (3, 2), shown: member [0, 0]; note"),
        ((3, 0), None, "x\nempty batch (3, 0); note"),
    ):
        sheet = Summary("x")
        assert sheet.member(batch, "; note") == index
        assert sheet.text() == lines
