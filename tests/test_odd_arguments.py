"""Public callables with odd arguments raise errors of kic, never those of the libraries below it."""

from __future__ import annotations

import random

import numpy as np
import odd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kic

pytest.importorskip("matplotlib")


@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=1000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.randoms(use_true_random=False))
def test_only_errors_of_kic(rng: random.Random) -> None:
    subject = rng.choice(odd.subjects())
    positional, named = subject.draw(rng)
    try:
        subject.run(positional, named)
    except kic.KicError as error:
        assert str(error)
