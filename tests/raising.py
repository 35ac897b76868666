"""Errors with given attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import kic


@contextmanager
def raises(
    kind: type[kic.KicError] | tuple[type[kic.KicError], ...], **attributes: Any
) -> Iterator[pytest.ExceptionInfo[kic.KicError]]:
    """Require an error of a type whose data include the given attributes."""
    with pytest.raises(kind) as caught:
        yield caught
    numbers = caught.value.numbers
    assert {key: numbers[key] for key in attributes if key in numbers} == attributes, caught.value
