"""Cached properties of objects, omitted in copies and pickles."""

from __future__ import annotations

from functools import cached_property
from typing import Any


def without_caches(owner: Any) -> dict[str, Any]:
    """Return the state of an object without its cached properties; copies compute these again.

    Classes use it as their ``__getstate__``.
    """
    of, known = type(owner), list(vars(owner).items())  # other threads may add caches
    return {k: x for k, x in known if not isinstance(getattr(of, k, None), cached_property)}
