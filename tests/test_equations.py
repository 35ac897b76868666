"""The indices of equations in the docstrings of packages: every function exists and cites its equations."""

from __future__ import annotations

import inspect
import re

import pytest
from equation_index import INDEX, equations, find

import kic

# numbers of equations in each chapter and appendix, and of tables; Appendix A has four sections
COUNTS = {"2": 252, "3": 53, "4": 90, "A": 4, "B": 15, "C": 7, "D": 2, "E": 7}
COUNTS |= {"T2": 5, "TB": 1, "TC": 3, "TE": 2}


def test_every_equation_and_table_has_a_row() -> None:
    cited = set().union(*(equations(row) for _, row, _ in INDEX))
    assert cited == {(chapter, n) for chapter, count in COUNTS.items() for n in range(1, count + 1)}


def test_every_row_has_a_public_call() -> None:
    public = [row for _, row, path in INDEX if path.split(".")[1] in (*kic.__all__, "classics")]
    internal = {row for _, row, path in INDEX} - set(public)
    covered = set().union(*map(equations, public))
    # ways to write down coordinates and conditions
    assert {row for row in internal if not equations(row) <= covered} == {"(4-6) to (4-17)", "(4-30)"}


def test_docstring_of_kic_names_the_packages_with_an_index() -> None:
    sentence = re.search(
        r"\. ([^.]*(?:\w\.\w[^.]*)*) have an index of equations\.", inspect.getdoc(kic) or ""
    )
    assert sentence is not None
    assert set(re.findall(r"kic[.\w]+", sentence[1])) == {package for package, _, _ in INDEX}


@pytest.mark.parametrize(("package", "cited", "path"), INDEX, ids=[f"{row[2]} {row[1]}" for row in INDEX])
def test_indexed_functions_cite_their_equations(package: str, cited: str, path: str) -> None:
    found = find(path)
    text = found.__doc__ or ""
    if path.startswith("kic.kernels."):
        text += inspect.getsource(getattr(found, "py_func", found))
    missing = equations(cited) - equations(text)
    assert not missing, f"{path} does not cite {sorted(missing)}"
