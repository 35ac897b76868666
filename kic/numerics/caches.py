"""Cached properties of objects, which copies and pickles omit."""

from __future__ import annotations

from functools import cached_property
from typing import Any


def without_caches(owner: Any) -> dict[str, Any]:
    """Return the state of an object without its cached properties, which copies compute again.

    Classes use it as their ``__getstate__``.
    """
    of, known = type(owner), list(vars(owner).items())  # other threads may add caches
    return {k: x for k, x in known if not isinstance(getattr(of, k, None), cached_property)}
