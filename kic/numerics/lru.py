"""A bounded cache for objects that never change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# largest number of entries: more than the sets of names that a program alternates between; a full cache of a
# large mechanism takes some tens of megabytes
CACHE_SIZE_MAX = 128


class LRU(Generic[K, V]):
    """Keep the `size` values used last, none of them None; safe under threads."""

    def __init__(self, size: int = CACHE_SIZE_MAX) -> None:
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        value = self._values.get(key)
        if value is not None:
            try:  # noqa: SIM105 (`suppress` would cost more than the rest)
                self._values.move_to_end(key)
            except KeyError:  # dropped by another thread
                pass
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self._values[key] = value
        with suppress(KeyError):
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        return len(self._values)
