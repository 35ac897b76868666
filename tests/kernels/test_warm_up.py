"""The command `kic warm-up` leaves no kernel to be compiled."""

from __future__ import annotations

import pytest
from commands import python


def printed(code: str) -> str:
    """Return the last line that a process prints whose kernels Numba compiles."""
    told = python("-c", code, KIC_KERNELS="jit")
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()[-1]


@pytest.mark.slow
def test_every_kernel_is_compiled() -> None:
    code = """
import importlib, pkgutil
import kic.kernels
from kic.cli.main import main
from numba.core.dispatcher import Dispatcher
main(["warm-up"], standalone_mode=False)
names = [one.name for one in pkgutil.iter_modules(kic.kernels.__path__) if one.name[0] != "_"]
modules = [importlib.import_module(f"kic.kernels.{name}") for name in names]
kernels = {f for m in modules for f in vars(m).values() if isinstance(f, Dispatcher)}
print(len(kernels), [f.__name__ for f in kernels if not any("float64" in str(sig) for sig in f.signatures)])
"""
    count, missing = printed(code).split(" ", 1)
    assert (int(count) >= 10, missing) == (True, "[]")


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
    assert printed(code) == "[]"
