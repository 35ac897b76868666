"""Members of a batch: which of them have an answer, and the answers among NaN for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kic.arrays import check_failures
from kic.errors import MemberError, placed


def surviving(ok: np.ndarray, failures: str, answer: Callable[[Any], Any]) -> tuple[np.ndarray, Any]:
    """An answer for the members of a batch that have one, and which these are.

    Parameters
    ----------
    ok : (...) bool
        Members that have a posture.
    failures : {"raise", "mask"}
        What becomes of those without an answer.
    answer : callable
        Takes flat indices of members, or a slice of all.
    """
    check_failures(failures)
    good = ok.copy()
    while True:
        try:
            members = np.flatnonzero(good)
            with placed(members, good.shape):
                # all of them as they stand, without a copy
                return good, answer(slice(None) if len(members) == good.size else members)
        except MemberError as error:
            failed = error.numbers.get("failed")
            if failures == "raise" or not failed:
                raise
            for index in failed:
                good[index] = False


def spread(part: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Answers (n, …) of the members that have one, among NaN for all others (B, …)."""
    if good.all():
        return part
    whole = np.full((good.size, *part.shape[1:]), np.nan, part.dtype)
    whole[good.reshape(-1)] = part
    return whole
