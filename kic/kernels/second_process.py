"""Second process that compiles parts of a kernel into the cache while the first compiles the rest.

Commands allow it. A program that uses kic as a library must request it.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kic.kernels.library import make_folder

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

_DONE = b"compiled\n"
# time for one part, which takes seconds (s)
TIME_MAX = 120.0
_settings = {"allowed": False}


def allow_second_process(allowed: bool) -> None:
    """Allow or forbid that this process starts a second process to compile parts of kernels."""
    _settings["allowed"] = allowed


class SecondProcess:
    """Queue of parts for a second process; without a process, parts are compiled when they are needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        # one thread passes parts to the process in turn
        self._thread: ThreadPoolExecutor | None = None
        self._parts: dict[str, Future[None]] = {}
        self._owner = 0

    def start(self, folder: Path | None) -> None:
        """Start the process if it is allowed and useful, and the cache folder is writable."""
        # the executable of a frozen program is not an interpreter
        useful = _cores() > 1 and sys.executable and not getattr(sys, "frozen", False)
        if self._thread is not None or not _settings["allowed"] or not useful or folder is None:
            return
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        # RuntimeError: this thread outlives the main one
        with suppress(OSError, ValueError, RuntimeError):
            from concurrent.futures import ThreadPoolExecutor

            make_folder(folder)
            if os.access(folder, os.W_OK):
                self._process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "KIC_KERNELS": "jit", "KIC_VERBOSE": "0"},
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )
                self._thread, self._owner = ThreadPoolExecutor(1), os.getpid()
                atexit.register(self.stop)

    def submit(self, symbol: str, function: Any, args: Any) -> None:
        """Put a part into the queue."""
        if self._thread is not None and os.getpid() == self._owner and symbol not in self._parts:
            part = pickle.dumps((function.__module__, function.__name__, args))
            with suppress(RuntimeError):  # no thread can be started
                self._parts[symbol] = self._thread.submit(self._compile, part)

    def finish(self, symbol: str) -> None:
        """Remove a part from the queue, or wait until it is compiled, if compilation has started."""
        part = self._parts.pop(symbol, None)
        if part is not None and os.getpid() == self._owner and not part.cancel():
            try:
                part.result(TIME_MAX)
            except TimeoutError:  # a process that hangs is of no use
                self.stop()

    def _compile(self, part: bytes) -> None:
        """Compile a part in the second process; return early if that process has exited."""
        process = self._process
        if process is not None and process.stdin is not None and process.stdout is not None:
            with suppress(OSError, ValueError):
                process.stdin.write(part.hex().encode() + b"\n")
                process.stdin.flush()
                process.stdout.readline()

    def stop(self) -> None:
        """Stop the process, even while it compiles."""
        if self._process is not None and os.getpid() == self._owner:
            with suppress(OSError), self._process:
                self._process.kill()


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def serve() -> None:
    """Compile the parts that the first process sends, until its stream ends."""
    from numba.core.registry import cpu_target

    # imports what the compiler needs
    cpu_target.target_context.refresh()
    for line in sys.stdin.buffer:
        module, name, args = pickle.loads(bytes.fromhex(line.decode()))
        getattr(import_module(module), name).kernel.compile(args)
        sys.stdout.buffer.write(_DONE)
        sys.stdout.flush()
