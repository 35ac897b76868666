"""The command `kic warm-up` leaves no kernel to be compiled."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from numba.core.dispatcher import Dispatcher

import kic
from kic.cli.main import main


def entries() -> set[Dispatcher]:
    """Return all kernels."""
    folder = Path(kic.__file__).parent / "kernels"
    modules = [importlib.import_module(f"kic.kernels.{path.stem}") for path in folder.glob("[a-z]*.py")]
    return {f for m in modules for f in vars(m).values() if isinstance(f, Dispatcher)}


def test_every_kernel_is_compiled() -> None:
    result = CliRunner().invoke(main, ["warm-up"])
    assert result.exit_code == 0, result.output
    assert len(entries()) >= 10
    for entry in entries():
        assert any("float64" in str(sig) for sig in entry.signatures), entry.py_func.__name__


@pytest.mark.slow
def test_no_kernel_is_compiled_after_the_warm_up() -> None:
    """The calls are those of a fresh process, which finds every kernel in the cache."""
    code = """
import numpy as np, kic
from numba.core import event
from kic.cli.warm_up import compile_kernels
compile_kernels()
with event.install_recorder("numba:compile") as recorder:
    for name, of in (("puma560", "link6"), ("gough-stewart", "platform"), ("twin-arm", "eyes")):
        m = kic.load(name)
        c = m.at()
        for order in (1, 2, 3):
            c.coefficients(of, order=order)
            f = m.prepare(["coefficients", "dynamics"], of=[of], order=order)
            f(c.state, out=f(c.state))
            f(np.repeat(c.state[None], 300, axis=0))
        zero = np.zeros(m.dof)
        m.prepare("inverse_dynamics")(c.state, zero, zero)
        m.prepare("forward_dynamics")(c.state, zero, zero)
        c.motion(of), c.dynamics(), c.body_contributions(), m.mobility().summary()
        solve = m.prepare("position")
        solve(c.state, np.hstack([np.ravel(c.value(n)) for n in solve.names]) + 1e-3)
        m.simulate([0.0, 0.01], near=c)
print(sorted({e.data["dispatcher"].py_func.__name__ for _, e in recorder.buffer}))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (told.stdout.strip(), told.returncode) == ("[]", 0), told.stderr
