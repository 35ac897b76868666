"""Trace a few calls on the five-bar: the files of kic that they enter, changes of file, and function calls.

Run ``python -m tests.benchmarks.trace``. A warm call should enter at most eight files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import kic

ROOT = str(Path(kic.__file__).parent)
# files that a warm call may enter
FILES_MAX = 8


@dataclass
class Trace:
    """Functions of kic that a call enters, in order.

    Attributes
    ----------
    files : list of str
        File of each function, relative to the package.
    """

    files: list[str] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """Number of consecutive functions in different files."""
        return sum(a != b for a, b in zip(self.files, self.files[1:], strict=False))

    def __str__(self) -> str:
        distinct = dict.fromkeys(self.files)
        return f"{len(distinct):3d} files, {self.changes:4d} changes, {len(self.files):5d} calls"


def trace(call: Callable[[], Any]) -> Trace:
    """Return the trace of a call."""
    found = Trace()

    def record(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(ROOT):
            found.files.append(name[len(ROOT) + 1 :])

    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def traces() -> dict[str, Trace]:
    """Return the traces of warm calls, and of the first position problem of a fresh mechanism."""
    m = kic.load("five-bar")
    c = m.at()
    near = {name: float(c.value(name)) + 0.01 for name in m.coordinate_names}
    calls: dict[str, Callable[[], Any]] = {
        "at": lambda: m.at(near),
        "coefficients(wrt=…)": lambda: c.coefficients("tip", wrt=["A", "B"]),
        "dynamics(wrt=…)": lambda: c.dynamics(wrt=["A", "B"]),
    }
    for call in calls.values():
        call()
    found = {name: trace(call) for name, call in calls.items()}
    fresh = kic.load("five-bar")
    return {**found, "first at": trace(lambda: fresh.at(near))}


if __name__ == "__main__":
    for name, one in traces().items():
        print(f"{name:20s} {one}")
        if "-v" in sys.argv:
            print("    " + "\n    ".join(dict.fromkeys(one.files)))
