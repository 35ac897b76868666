"""Start-up times: import, the first report on a machine, and the next one."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

from benchmarks.timing import Report

# an open chain, and loops, which need more kernels
MODELS = ("puma560", "gough-stewart")
# what `kic report` does, for a kic that has no command line
_SCRIPT = (
    "import kic; c = kic.load('{0}').at(); "
    "print(c.coefficients([p.name for p in kic.load('{0}').points])); print(c.dynamics())"
)


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def _environment(cache: str) -> dict[str, str]:
    """Return a user's environment, with kernels stored in `cache`."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**environment, "KIC_CACHE_DIR": cache, "KIC_VERBOSE": "0"}


def report_command(model: str) -> list[str]:
    """The command that is timed."""
    if find_spec("kic.ui.cli") is not None and find_spec("kic.__main__") is not None:
        return [sys.executable, "-m", "kic", "report", model]
    return [sys.executable, "-c", _SCRIPT.format(model)]


def table(report: Report, seconds: float) -> None:
    """Seconds of each start; each is repeated, unless `seconds` is zero."""
    often, few = (5, 3) if seconds else (1, 1)
    idle = [sys.executable, "-c", "pass"]
    importing = [sys.executable, "-c", "import kic"]
    with tempfile.TemporaryDirectory() as warm:
        # bytecode and disk caches of all that is imported
        _seconds(report_command(MODELS[0]), _environment(warm))
        imports = [_seconds(importing, _environment(warm)) for _ in range(often)]
        bare = [_seconds(idle, _environment(warm)) for _ in range(often)]
    rows = [
        [f"python -c pass, median of {often}", f"{statistics.median(bare):.2f}", ""],
        [f"import kic, warm, median of {often}", f"{statistics.median(imports):.2f}", ""],
    ]
    for model in MODELS:
        command = report_command(model)
        shown = f"kic report {model}" if "report" in command else f"a script like kic report {model}"
        with tempfile.TemporaryDirectory() as cold:
            first = _seconds(command, _environment(cold))
            following = [_seconds(command, _environment(cold)) for _ in range(few)]
        rows.append([f"{shown}, first (compiles)", f"{first:.2f}", "≤ 15"])
        rows.append([f"{shown}, the next, median of {few}", f"{statistics.median(following):.2f}", ""])
    report.table(["start", "s", "target"], rows)
