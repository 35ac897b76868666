"""The command `kic warm-up` leaves no kernel to be compiled."""

from __future__ import annotations

import pytest
from commands import python

# code that finds the kernels, once they are compiled
KERNELS = """
import importlib, pkgutil
import kic.kernels
from numba.core.dispatcher import Dispatcher
names = [one.name for one in pkgutil.iter_modules(kic.kernels.__path__) if one.name[0] != "_"]
modules = [importlib.import_module(f"kic.kernels.{name}") for name in names]
kernels = {f for m in modules for f in vars(m).values() if isinstance(f, Dispatcher)}
"""


def printed(code: str) -> str:
    """Return the last line that a process prints whose kernels Numba compiles."""
    told = python("-c", code, KIC_KERNELS="jit")
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()[-1]


@pytest.mark.slow
def test_every_kernel_is_compiled() -> None:
    code = f"""
from kic.ui.cli.main import main
main(["warm-up"], standalone_mode=False)
{KERNELS}
print(len(kernels), [f.__name__ for f in kernels if not any("float64" in str(sig) for sig in f.signatures)])
"""
    count, missing = printed(code).split(" ", 1)
    assert (int(count) >= 10, missing) == (True, "[]")


@pytest.mark.slow
def test_no_kernel_is_compiled_after_the_warm_up() -> None:
    """Later calls use no kernel for types of arguments that an empty cache would lack after the warm-up."""
    code = f"""
import numpy as np, kic
from kic.ui.cli.warm_up import compile_kernels
compile_kernels()
{KERNELS}"""
    code += """
def used():
    return {(f.__name__, str(types)) for f in kernels for types in f.signatures}
def answers(m, of, at=None):
    c = m.at(at)
    found = [c.coefficients(of, order=order).G for order in (1, 2, 3)]
    found += [c.value(of), *c.motion(of), c.dynamics().I, c.inverse_dynamics(), c.forward_dynamics()]
    return np.hstack([np.ravel(a) for a in found])
before = used()
for name, of in (("puma560", "link6"), ("gough-stewart", "platform"), ("twin-arm", "eyes")):
    m = kic.load(name)
    c = m.at()
    for order in (1, 2, 3):
        c.coefficients(of, order=order)
        f = m.prepare.coefficients_and_dynamics(of, order=order)
        f(c.state, out=f(c.state))
        f(np.repeat(c.state[None], 300, axis=0))
    zero = np.zeros(m.dof)
    m.prepare.inverse_dynamics()(c.state, zero, zero)
    m.prepare.forward_dynamics()(c.state, zero, zero)
    c.motion(of), c.dynamics(), c.body_contributions(), m.mobility().summary()
    solve = m.prepare.position()
    solve(c.state, np.hstack([np.ravel(c.value(n)) for n in solve.names]) + 1e-3)
    m.simulate([0.0, 0.01], near=c)
for name, of, numbers, at in (
    ("puma560", "wrist", ["link2.com.x", "link2.mass"], None),
    ("four-bar", "tip", ["B.at.x", "coupler.mass"], {"A": 1.2}),
    ("rssr", "flag", ["ball.at.x"], {"crank": 0.5, "spin": 0.2}),
):
    kic.load(name).sensitivity(lambda m: answers(m, of, at), numbers)
sides = ["ground", "crank", "coupler", "rocker"]
bars = lambda x: kic.linkages.four_bar(**dict(zip(sides, x)), masses=dict.fromkeys(sides[1:], 1.0))
kic.sensitivity(bars, lambda m: answers(m, "tip"), [4.0, 1.0, 3.5, 3.0])
print(len(before), sorted(used() - before))
"""
    count, other = printed(code).split(" ", 1)
    assert (int(count) >= 10, other) == (True, "[]")
