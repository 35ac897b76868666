"""Caches of objects, which stay behind when these are copied or pickled."""

from __future__ import annotations

from functools import cached_property
from typing import Any


def without_caches(owner: Any) -> dict[str, Any]:
    """Return the state of an object without its cached properties, which copies make again.

    Classes take it as their ``__getstate__``.
    """
    of = type(owner)
    return {k: x for k, x in vars(owner).items() if not isinstance(getattr(of, k, None), cached_property)}
