"""A bar on stderr, for what takes long."""

from __future__ import annotations

import sys
import time

from kic.numerics.arguments import flag

# seconds after which a person wants to know how far it is, and between two looks
PATIENCE, AGAIN = 1.0, 0.1


class Bar:
    """A bar on stderr.

    Parameters
    ----------
    wanted : bool or None
        Whether it is shown; None: at a terminal, once it takes long.
    """

    def __init__(self, wanted: bool | None) -> None:
        seen = sys.stderr is not None and sys.stderr.isatty()
        self._wanted = seen if wanted is None else flag("progress", wanted)
        self._patience = PATIENCE if wanted is None else 0.0
        self._since = self._last = time.monotonic()
        self._shown = False

    def show(self, share: float) -> None:
        """Draw the bar, now and then."""
        now = time.monotonic()
        if not self._wanted or now - self._since < self._patience or now - self._last < AGAIN:
            return
        self._last, self._shown = now, True
        left = (now - self._since) * (1 - share) / max(share, 1e-9)
        done = int(30 * share)
        sys.stderr.write(f"\rkic: [{'#' * done}{'.' * (30 - done)}] {share:4.0%}, {left:.0f} s left ")
        sys.stderr.flush()

    def close(self) -> None:
        """End its line."""
        if self._shown:
            sys.stderr.write("\n")
            self._shown = False
