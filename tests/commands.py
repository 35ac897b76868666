"""Commands of `kic`, run in this process, and other processes of Python."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

import kic
from kic.ui.cli.main import main

# a process that takes longer does not end; machines under load are ten times slower than others
HANGS_S = 300.0
# folder of the package
ROOT = Path(kic.__file__).parents[1]


def run(*arguments: str, code: int = 0) -> str:
    """Run a command and return its standard output; if it fails, return its message in one line.

    A command that fails prints only on standard error, without a traceback.
    """
    result = CliRunner().invoke(main, list(arguments), prog_name="kic")
    assert result.exit_code == code, (result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if code:
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return " ".join(result.stderr.split())
    assert result.stderr == ""
    return result.stdout


def run_line(command: str, code: int = 0) -> str:
    """Run a command that is written as in a shell."""
    return run(*shlex.split(command), code=code)


def python(*arguments: str, root: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter on the package of a folder."""
    everything = {**os.environ, "PYTHONPATH": str(root), "PYTHONIOENCODING": "utf-8", **env}
    return subprocess.run(
        [sys.executable, *arguments],
        env=everything,
        cwd=root,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
