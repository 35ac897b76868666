"""Kernels as plain Python, so that a test can tell which of them a call executes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from kic.kinematics import queries


def interpreted(call: Callable[[], Any]) -> tuple[Any, set[str]]:
    """Return the result of a call without compiled code, and the paths of the functions that it executed."""
    call()  # imports the kernels
    compiled = queries.kernel

    def python(name: str) -> Any:
        return getattr(compiled(name), "py_func", compiled(name))

    executed: set[str] = set()

    def record(frame: Any, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("kic."):
            executed.add(f"{module}.{frame.f_code.co_qualname}")

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if not name.startswith("kic."):
                continue
            for key, value in list(vars(module).items()):
                if value is compiled:
                    patch.setattr(module, key, python)
                elif name.startswith("kic.kernels") and hasattr(value, "py_func"):
                    patch.setattr(module, key, value.py_func)
        sys.setprofile(record)
        try:
            return call(), executed
        finally:
            sys.setprofile(None)
