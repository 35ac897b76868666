"""A bounded cache for objects that never change."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

# largest number of entries: more than the sets of names that a program alternates between; a full cache of a
# large mechanism takes some tens of megabytes
CACHE_SIZE_MAX = 128


class BoundedCache(dict[K, V]):
    """Dict that keeps the `size` values set last, and is safe under threads.

    A look-up is that of a dict: it costs nothing more, and does not renew a value.
    """

    size = CACHE_SIZE_MAX

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        while len(self) > self.size:
            try:
                self.pop(next(iter(self)), None)
            except (StopIteration, RuntimeError):  # another thread changes it
                return
