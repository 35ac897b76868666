"""A real browser for tests: headless Chromium, driven through its DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0
# the protocol is spoken on the descriptors 3 and 4 of the browser
_LAUNCH = """
import os, sys
for fd, place in zip(sys.argv[1:3], (3, 4)):
    os.dup2(int(fd), place)
os.execv(sys.argv[3], sys.argv[3:])
"""
_FLAGS = [
    f"--{flag}"
    for flag in (
        "headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "hide-scrollbars",
        "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage",
        "remote-debugging-pipe", "font-render-hinting=none",
    )
]  # fmt: skip


def found() -> str | None:
    """The browser's program, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One page: commands go out, events are kept."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._held, self._last, self._session = b"", 0, ""
        self.events: list[tuple[str, dict[str, Any]]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            came = self._next()
            if came.get("id") == self._last:
                assert "error" not in came, came
                return came["result"]

    def _next(self) -> dict[str, Any]:
        """The next message; events are kept."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser is silent"
            more = os.read(self._receive, 1 << 20)
            assert more, "the browser has gone"
            self._held += more
        text, _, self._held = self._held.partition(b"\0")
        came = json.loads(text)
        if "method" in came:
            self.events.append((came["method"], came.get("params", {})))
        return came

    def open(self, file: Path, width: int = 1280, dark: bool = False, media: str = "screen") -> None:
        """Show a file in a window of so many pixels."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.events.clear()
        self.ask("Page.navigate", url=file.resolve().as_uri())
        while not any(name == "Page.loadEventFired" for name, _ in self.events):
            self._next()

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        got = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and messages of the page since it was opened."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(what) for name, what in self.events if name in kinds]

    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        return [what["request"]["url"] for name, what in self.events if name == "Network.requestWillBeSent"]

    def picture(self, file: Path, whole: bool = True) -> None:
        """Save the visible page as a PNG file."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def printed(self) -> bytes:
        """The page on paper, as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True)["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """A headless browser with a profile of its own in a folder, gone afterwards."""
    program = found()
    assert program
    theirs, ours = os.pipe()
    back, forth = os.pipe()
    # numbers that are not those where they shall stand
    fds = [os.dup(fd) for fd in (theirs, forth)]
    while min(fds) < 5:
        fds = [os.dup(fd) for fd in fds]
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCH, *map(str, fds), program, *_FLAGS, f"--user-data-dir={folder}"],
        pass_fds=fds,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for fd in {theirs, forth, *fds}:
        os.close(fd)
    try:
        tab = Tab(ours, back)
        yield tab
        tab._session = ""
        tab.ask("Browser.close")
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(back)
