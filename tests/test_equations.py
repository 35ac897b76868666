"""The indices of equations in the docstrings of packages: every function exists and cites its equations."""

from __future__ import annotations

import inspect
import re

import pytest
from equation_index import INDEX, equations, find

import kic


def test_chapters_three_and_four_have_an_index() -> None:
    cited = set().union(*(equations(row) for package, row, _ in INDEX if package == "kic.transfer"))
    assert {("3", n) for n in (15, 19, 22, 26, 34, 35, 36, 47, 53)} <= cited
    assert {("4", n) for n in range(1, 91)} <= cited


def test_docstring_of_kic_names_the_packages_with_an_index() -> None:
    sentence = re.search(r"^(.*) have an index of equations\.$", inspect.getdoc(kic) or "", re.M)
    assert sentence is not None
    assert set(re.findall(r"kic\.\w+", sentence[1])) == {package for package, _, _ in INDEX}


@pytest.mark.parametrize(("package", "cited", "path"), INDEX, ids=[f"{row[2]} {row[1]}" for row in INDEX])
def test_indexed_functions_cite_their_equations(package: str, cited: str, path: str) -> None:
    found = find(path)
    text = found.__doc__ or ""
    if path.startswith("kic.kernels."):
        text += inspect.getsource(getattr(found, "py_func", found))
    missing = equations(cited) - equations(text)
    assert not missing, f"{path} does not cite {sorted(missing)}"
