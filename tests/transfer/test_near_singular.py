"""Results near singular configurations and in odd units are right within the stated errors, or raise."""

from __future__ import annotations

import near_singular
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linkages", "arms"])
def test_random_mechanisms(kind: str) -> None:
    """See `near_singular`, which runs many more."""
    seeds = range(kind == "arms", 24, 2)
    outcomes = {seed: near_singular.verdict(seed) for seed in seeds}
    for outcome, details in outcomes.values():
        assert not any(word in outcome for word in ("wrong", "falsely", "law")), details
    assert sum("right" in outcome for outcome, _ in outcomes.values()) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [500032, 501334])
def test_loops_that_bend_sharply(seed: int) -> None:
    """Short couplers of long slides: closed to round-off, and compared with the size of each order."""
    outcome, details = near_singular.verdict(seed)
    assert outcome == "crank right", details


def test_all_pivots_are_small() -> None:
    """The condition is checked where all pivots are small beside the entries, as in this random arm."""
    outcome, details = near_singular.verdict(201319)
    assert outcome == "solved arm refused", details
