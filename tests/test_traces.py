"""Bounds of the way that repeated calls take through the package: calls, files and changes of file.

Lower the bounds when a change shortens the way; `python -m tests.benchmarks.trace`
prints the present figures.
"""

from __future__ import annotations

from functools import cache

import pytest
from benchmarks.trace import CALLS, traces

# calls, files, changes of file
BOUNDS = {
    "at": (14, 9, 11),
    "coefficients": (14, 6, 9),
    "coefficients(wrt)": (14, 6, 9),
    "dynamics(wrt)": (13, 6, 8),
    "inverse_dynamics": (9, 5, 5),
    "forward_dynamics": (9, 5, 5),
    "motion": (44, 10, 23),
    "operational_space": (27, 8, 18),
    "resolve": (63, 13, 40),
    "joint_forces": (63, 12, 35),
    "linearize": (192, 18, 77),
    # the number of steps depends on the last bits of the processor
    "simulate": (18000, 30, 5500),
}
# the first call of a fresh mechanism
COLD_BOUNDS = {"at": (150, 24, 96), "coefficients(wrt)": (141, 18, 80)}
all_traces = cache(traces)


@pytest.mark.parametrize("name", CALLS)
def test_repeated_calls_stay_within_bounds(name: str) -> None:
    figures = all_traces()[name][1].figures
    assert all(found <= most for found, most in zip(figures, BOUNDS[name], strict=True)), figures


@pytest.mark.parametrize("name", COLD_BOUNDS)
def test_a_first_call_stays_within_bounds(name: str) -> None:
    figures = all_traces()[name][0].figures
    assert all(found <= most for found, most in zip(figures, COLD_BOUNDS[name], strict=True)), figures
