"""The command `kic warm-up` leaves no kernel to be compiled."""

from __future__ import annotations

import importlib
from pathlib import Path

from click.testing import CliRunner
from numba.core.dispatcher import Dispatcher

import kic
from kic.cli.main import main


def test_every_kernel_is_compiled() -> None:
    result = CliRunner().invoke(main, ["warm-up"])
    assert result.exit_code == 0, result.output
    folder = Path(kic.__file__).parent / "kernels"
    modules = [importlib.import_module(f"kic.kernels.{path.stem}") for path in folder.glob("[a-z]*.py")]
    entries = {f for m in modules for f in vars(m).values() if isinstance(f, Dispatcher)}
    assert len(entries) >= 10
    for entry in entries:
        assert any("float64" in str(sig) for sig in entry.signatures), entry.py_func.__name__
