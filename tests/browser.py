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

from commands import HANGS_S

NAMES = ("chromium", "chromium-browser", "google-chrome")
# the browser speaks the protocol on its descriptors 3 and 4
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
    """Return the path of an installed browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One page: sends commands and stores events."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._held, self._last, self._session = b"", 0, ""
        self.events: list[tuple[str, dict[str, Any]]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
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
        """Return the next message; store events."""
        end = time.monotonic() + HANGS_S
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, end - time.monotonic()))
            assert ready, "no message from the browser"
            more = os.read(self._receive, 1 << 20)
            assert more, "the browser has ended"
            self._held += more
        text, _, self._held = self._held.partition(b"\0")
        came = json.loads(text)
        if "method" in came:
            self.events.append((came["method"], came.get("params", {})))
        return came

    def open(self, file: Path | str, width: int = 1280, dark: bool = False, media: str = "screen") -> None:
        """Open a file or an address in a window of `width` pixels."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.events.clear()
        self.ask("Page.navigate", url=file if isinstance(file, str) else file.resolve().as_uri())
        while not any(name == "Page.loadEventFired" for name, _ in self.events):
            self._next()

    def run(self, script: str) -> Any:
        """Return the value of an expression evaluated in the page."""
        got = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def complaints(self) -> list[str]:
        """Return errors and messages of the page since it was opened."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(what) for name, what in self.events if name in kinds]

    def errors(self) -> list[str]:
        """Return errors of scripts and failed requests, without notes and warnings."""
        return [what for what in self.complaints() if '"error"' in what or "exceptionDetails" in what]

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Send "mousePressed", "mouseMoved" or "mouseReleased" at a place of the window."""
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def write(self, text: str) -> None:
        """Replace the text of the input that has the focus, and press Enter."""
        self.run("document.activeElement.select()")
        self.ask("Input.insertText", text=text)
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13)

    def requests(self) -> list[str]:
        """Return addresses that the page requested."""
        return [what["request"]["url"] for name, what in self.events if name == "Network.requestWillBeSent"]

    def picture(self, file: Path, whole: bool = True) -> None:
        """Save a screenshot as a PNG file."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def printed(self) -> bytes:
        """Return the printed page as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True)["data"])


@contextmanager
def browser(folder: Path, webgl: bool = False) -> Iterator[Tab]:
    """Run a headless browser with a profile in `folder`, and end it afterwards."""
    flags = [*_FLAGS, "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] if webgl else _FLAGS
    flags = [flag for flag in flags if not (webgl and flag == "--disable-gpu")]
    program = found()
    assert program
    theirs, ours = os.pipe()
    back, forth = os.pipe()
    # descriptors other than 3 and 4
    fds = [os.dup(fd) for fd in (theirs, forth)]
    while min(fds) < 5:
        fds = [os.dup(fd) for fd in fds]
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCH, *map(str, fds), program, *flags, f"--user-data-dir={folder}"],
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
        process.wait(HANGS_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(back)
