"""Commands of `kic`, run in this process."""

from __future__ import annotations

import shlex

from click.testing import CliRunner

from kic.cli.main import main

# a process that takes longer does not end; machines under load are ten times slower than others
HANGS_S = 300.0


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
