"""Errors with given attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import kic

Kind = type[Exception] | tuple[type[Exception], ...]


@contextmanager
def raises(
    kind: Kind, match: str | None = None, **attributes: Any
) -> Iterator[pytest.ExceptionInfo[kic.KicError]]:
    """Require an error of a type whose data include the given attributes."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    numbers = getattr(caught.value, "numbers", {})
    assert {key: numbers[key] for key in attributes if key in numbers} == attributes, caught.value


def refuses(
    call: Callable[[], Any], kind: Kind = kic.InputError, text: str = "", **attributes: Any
) -> kic.KicError:
    """Return the error of a call, whose message must contain a text."""
    with raises(kind, **attributes) as caught:
        call()
    assert text in str(caught.value), str(caught.value)
    return caught.value
