"""Command `kic warm-up`, which compiles all kernels."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context

import click

# models that need all kernels, each with one of its rows
_OPEN = {"horn-two-link": "tip.y", "bevel-wrist": "drive1"}
_CLOSED = {"four-bar": "A"}


@click.command("warm-up")
def warm_up() -> None:
    """Compile all kernels, so that later calls start immediately.

    Kernels are compiled once for each machine and version of kic, on first use. Run this when a container
    image is built, or before a course. They are stored in the user's cache directory, or in KIC_CACHE_DIR.

    \b
      kic warm-up
      KIC_CACHE_DIR=/opt/kic kic warm-up
    """
    from kic.kernels.jit import cache_directory

    os.environ.setdefault("KIC_VERBOSE", "1")
    start = time.perf_counter()
    compile_kernels()
    click.echo(f"All kernels are ready after {time.perf_counter() - start:.0f} s, in {cache_directory()}.")


def compile_kernels() -> None:
    """Compile all kernels for real numbers, those of closed mechanisms in a second process, and load them."""
    # without room or rights for a second process, this one compiles them all
    failures = suppress(OSError, ImportError, BrokenProcessPool)
    with failures, ProcessPoolExecutor(1, get_context("spawn"), _silence) as pool:
        closed = pool.submit(_call_kernels, _CLOSED)
        _call_kernels(_OPEN)
        closed.result()
    _call_kernels(_OPEN | _CLOSED)


def _silence() -> None:
    """Print no messages in this process, which would interrupt those of the other."""
    os.environ["KIC_VERBOSE"] = "0"


def _call_kernels(models: dict[str, str]) -> None:
    """Call every kernel that models use with real numbers, in all forms that are compiled separately.

    The order is such that two processes compile few kernels twice: those that both need come late.
    """
    from kic.io.toml import load
    from kic.simulation.simulate import simulate

    for name, row in models.items():
        m = load(name)
        c = m.at()
        for order in (3, 2, 1):
            c.coefficients("tip", order=order)
        c.inverse_dynamics()
        c.forward_dynamics()
        c.motion("tip")
        c.dynamics()
        c.contributions()
        c.operational_space(row)
        c.resolve(row, [0.1])
        m.at(c.state[: m.dof], near=c)
        simulate(m, c, 1e-3)
