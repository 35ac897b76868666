"""The ladder of the benchmarks equals the shipped model at its length."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import kic

sys.path.insert(0, str(Path(__file__).parent))
from benchmarks.ladder import ladder


def test_three_windows_are_the_shipped_model() -> None:
    made, shipped = ladder(3), kic.load("ladder")
    assert [j.name for j in made.joints] == [j.name for j in shipped.joints]
    assert [j.bodies for j in made.joints] == [j.bodies for j in shipped.joints]
    for kind, keys in (
        ("bodies", ("mass", "com", "inertia")),
        ("joints", ("at", "value")),
        ("points", ("at",)),
    ):
        for part in getattr(shipped, kind):
            other = made[part.name]
            for key in keys:
                # inertias are printed to eight digits
                assert np.allclose(getattr(other, key), getattr(part, key), rtol=1e-7, atol=1e-12), part.name
    turned = {"D0": shipped.at().value("D0") + 0.1}
    ours, theirs = (m.at(turned).dynamics() for m in (made, shipped))
    for letter in ("I", "P", "load"):
        assert np.allclose(getattr(ours, letter), getattr(theirs, letter), rtol=1e-6, atol=1e-9), letter


@pytest.mark.parametrize("windows", [1, 5, 12])
def test_windows_close_with_one_dof(windows: int) -> None:
    m = ladder(windows)
    assert (m.dof, len(m.cuts)) == (1, windows)
    c = m.at({"D0": m.at().value("D0") + 0.05})
    for k in range(1, windows + 1):
        tops = [c.pose(name).apply(m[f"B{k}"].at) for name in (f"coupler{k}", f"rocker{k}")]
        assert np.abs(tops[0] - tops[1]).max() < 1e-12
