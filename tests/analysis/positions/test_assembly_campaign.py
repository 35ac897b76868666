"""Complete searches against independent solvers and many random starts, for many mechanisms and inputs."""

from __future__ import annotations

import numpy as np
import pytest
from complete_searches import FAMILIES, compare_arm, compare_dyad, compare_starts

pytestmark = pytest.mark.slow

# mechanisms, inputs of each, and random starts; the campaign before a release has 100, 10, 4096
MECHANISMS, INPUTS, STARTS = 3, 4, 1024


def test_arms_agree_with_ikdh() -> None:
    pytest.importorskip("ikdh")
    rng = np.random.default_rng(30)
    assert sum(compare_arm(rng, INPUTS) for _ in range(MECHANISMS)) >= 2 * MECHANISMS * INPUTS


def test_dyads_agree_with_two_circles() -> None:
    rng = np.random.default_rng(31)
    assert sum(compare_dyad(rng, 10 * INPUTS) for _ in range(MECHANISMS)) > 2 * MECHANISMS * INPUTS


@pytest.mark.parametrize("family", FAMILIES)
def test_many_random_starts_find_no_more(family: str) -> None:
    assert sum(compare_starts(FAMILIES[family], seed, STARTS) for seed in range(MECHANISMS)) >= MECHANISMS


def test_solutions_near_infinity_at_the_first_base() -> None:
    """One of 16 solutions of this arm has such imaginary parts at the first base that loops lose it."""
    assert compare_starts(FAMILIES["6R"], 5067, STARTS) >= 2
