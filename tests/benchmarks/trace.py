"""Trace calls on the five-bar: the files of kic that they enter, changes of file, and function calls.

Run ``python -m tests.benchmarks.trace``, with ``-v`` for the files. `tests/test_traces.py` bounds
the figures of calls that were made before ("warm").
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import kic

ROOT = str(Path(kic.__file__).parent)
# frames that newer versions of Python do not make
INLINED = {"<listcomp>", "<setcomp>", "<dictcomp>"}


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
    def figures(self) -> tuple[int, int, int]:
        """Numbers of calls, of files and of changes of file."""
        return len(self.files), len(set(self.files)), self.changes

    @property
    def changes(self) -> int:
        """Number of consecutive functions in different files."""
        return sum(a != b for a, b in zip(self.files, self.files[1:], strict=False))

    def __str__(self) -> str:
        return "{:5d} calls, {:2d} files, {:4d} changes".format(*self.figures)


def trace(call: Callable[[], Any]) -> Trace:
    """Return the trace of a call."""
    found = Trace()

    def record(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(ROOT) and frame.f_code.co_name not in INLINED:
            found.files.append(name[len(ROOT) + 1 :])

    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


class Subject:
    """A five-bar and a configuration near its reference."""

    def __init__(self) -> None:
        self.m = kic.load("five-bar")
        drawn = self.m.at()
        self.near = {name: float(drawn.value(name)) + 0.01 for name in self.m.coordinates}

    @cached_property
    def c(self) -> kic.Configuration:
        """Solved configuration."""
        return self.m.at(self.near)


WRT, QD, QDD = ["A", "B"], np.array([2.0, 3.0]), np.array([1.0, 0.5])
CALLS: dict[str, Callable[[Subject], Any]] = {
    "at": lambda s: s.m.at(s.near),
    "coefficients": lambda s: s.c.coefficients("tip"),
    "coefficients(wrt)": lambda s: s.c.coefficients("tip", wrt=WRT),
    "dynamics(wrt)": lambda s: s.c.dynamics(wrt=WRT),
    "inverse_dynamics": lambda s: s.c.inverse_dynamics(QD, QDD),
    "forward_dynamics": lambda s: s.c.forward_dynamics(QD, QDD),
    "motion": lambda s: s.c.motion("tip", QD, QDD),
    "operational_space": lambda s: s.c.operational_space("tip.x"),
    "resolve": lambda s: s.c.resolve_redundancy("tip.x", [0.1], [0.2]),
    "joint_forces": lambda s: s.c.joint_forces(QD, QDD),
    "linearize": lambda s: s.c.linearize(QD, QDD),
    "simulate": lambda s: s.m.simulate(0.01, near=s.c),
}


def traces(names: Iterable[str] = CALLS) -> dict[str, tuple[Trace, Trace]]:
    """Return the traces of calls, first on a fresh mechanism ("cold") and then repeated ("warm")."""
    # imports and compiled kernels belong to no trace
    used = Subject()
    for name in names:
        CALLS[name](used)
    found = {}
    for name in names:
        call, one = CALLS[name], Subject()
        if name != "at":
            one.c  # noqa: B018
        found[name] = trace(partial(call, one)), trace(partial(call, one))
    return found


if __name__ == "__main__":
    for name, (cold, warm) in traces().items():
        print(f"{name:20s} cold {cold}    warm {warm}")
        if "-v" in sys.argv:
            print("    " + "\n    ".join(dict.fromkeys(warm.files)))
