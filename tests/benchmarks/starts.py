"""How long a first look takes: import, the first report ever on a machine, and the next one."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

from benchmarks.timing import Report

# what `kic report` does, for a kic that has no command line
_SCRIPT = (
    "import kic; c = kic.load('puma560').at(); "
    "print(c.coefficients([p.name for p in kic.load('puma560').points])); print(c.dynamics())"
)


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def _environment(cache: str) -> dict[str, str]:
    """As a user has it, with kernels kept in `cache`."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**environment, "KIC_CACHE_DIR": cache, "KIC_VERBOSE": "0"}


def report_command() -> list[str]:
    """The command that is timed."""
    if find_spec("kic.cli") is not None and find_spec("kic.__main__") is not None:
        return [sys.executable, "-m", "kic", "report", "puma560"]
    return [sys.executable, "-c", _SCRIPT]


def table(report: Report) -> None:
    """Seconds of each start."""
    command = report_command()
    shown = "kic report puma560" if "report" in command else "a script like kic report puma560"
    with tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as cold:
        idle = [sys.executable, "-c", "pass"]
        importing = [sys.executable, "-c", "import kic"]
        _seconds(command, _environment(warm))  # bytecode and disk caches of everything that is imported
        imports = [_seconds(importing, _environment(warm)) for _ in range(5)]
        bare = [_seconds(idle, _environment(warm)) for _ in range(5)]
        first = _seconds(command, _environment(cold))
        following = [_seconds(command, _environment(cold)) for _ in range(3)]
    rows = [
        ["python -c pass, median of 5", f"{statistics.median(bare):.2f}", ""],
        ["import kic, warm, median of 5", f"{statistics.median(imports):.2f}", ""],
        [f"{shown}, first ever (compiles)", f"{first:.2f}", "≤ 15"],
        [f"{shown}, the next, median of 3", f"{statistics.median(following):.2f}", ""],
    ]
    report.table(["start", "s", "target"], rows)
