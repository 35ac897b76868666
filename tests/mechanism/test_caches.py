"""Caches on mechanisms are bounded."""

from __future__ import annotations

import gc
from itertools import product

import pytest

import kic
from kic.transfer.compiled_model import CACHE_SIZE_MAX, BoundedCache


def test_the_oldest_is_dropped() -> None:
    kept: BoundedCache[str, int] = BoundedCache()
    kept.size = 3
    for k, name in enumerate("abc"):
        kept[name] = k
    kept["d"] = 3
    assert [kept.get(name) for name in "abcd"] == [None, 1, 2, 3]
    kept["c"] = 5
    assert (kept.get("c"), len(kept)) == (5, 3)


@pytest.mark.slow
def test_many_names_do_not_fill_the_memory() -> None:
    m = kic.load("five-bar")
    c = m.at()
    rows = [f"{body.name}.{x}" for body in m.bodies for x in ("x", "y", "angle")]
    asked = [(of, *rest) for of, *rest in product(rows, rows, rows)][: 3 * CACHE_SIZE_MAX]
    assert len(asked) == 3 * CACHE_SIZE_MAX
    for names in asked:
        c.coefficients(names, order=1)
        c.coefficients(names[0], wrt=("A", "E"), order=1)
    for pair in product(rows, rows):
        if pair[0] != pair[1]:
            m._model.closure(pair)
    gc.collect()
    caches = (m._model._row_queries, m._model._programs, m._model._transfers, m._model._closures)
    assert max(map(len, caches)) == CACHE_SIZE_MAX
    # what was dropped is made again
    assert (c.coefficients(asked[0], order=1).G == c.coefficients(list(asked[0]), order=1).G).all()
