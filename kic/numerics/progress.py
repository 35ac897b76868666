"""Progress bar on stderr."""

from __future__ import annotations

import sys
import time

from kic.numerics.arguments import flag

# delay before the bar appears, and between updates (s)
SHOW_AFTER_S, REFRESH_S = 1.0, 0.1
# share from which the remaining time is estimated
FORECAST_SHARE_MIN = 0.005


class Bar:
    """Progress bar on stderr: shown if `wanted`, or for None at a terminal after a delay."""

    def __init__(self, wanted: bool | None) -> None:
        seen = sys.stderr is not None and sys.stderr.isatty()
        self._wanted = seen if wanted is None else flag("progress", wanted)
        self._delay = SHOW_AFTER_S if wanted is None else 0.0
        self._since = self._last = time.monotonic()
        self._shown = False

    def show(self, share: float) -> None:
        """Draw the bar, at most every `REFRESH_S` seconds."""
        now = time.monotonic()
        if not self._wanted or now - self._since < self._delay or now - self._last < REFRESH_S:
            return
        self._last, self._shown = now, True
        left = (
            f", {(now - self._since) * (1 - share) / share:.0f} s left" if share > FORECAST_SHARE_MIN else ""
        )
        done = int(30 * share)
        sys.stderr.write(f"\rkic: [{'#' * done}{'.' * (30 - done)}] {share:4.0%}{left:<16}")
        sys.stderr.flush()

    def close(self) -> None:
        """Write the end of the line."""
        if self._shown:
            sys.stderr.write("\n")
            self._shown = False
