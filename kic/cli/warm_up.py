"""Command `kic warm-up`, which compiles all kernels."""

from __future__ import annotations

import os
import time

import click


@click.command("warm-up")
def warm_up() -> None:
    """Compile all kernels, so that no later call waits for the compiler.

    Kernels are compiled once for each machine and version of kic, on first use. Run this when a container
    image is built, or before a class. They are kept in the user's cache directory, or in KIC_CACHE_DIR.

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
    """Call every kernel with real numbers, in all forms that are compiled separately."""
    from kic.io.toml import load
    from kic.simulation.simulate import simulate

    arm, loop, geared = load("horn-two-link"), load("four-bar"), load("bevel-wrist")
    for m, c, row in (
        (arm, arm.at([0.3, 0.5]), "tip.x"),
        (loop, loop.at({"A": 0.5}), "A"),
        (geared, geared.at(), "drive1"),
    ):
        for order in (1, 2, 3):
            c.coefficients("tip", order=order)
        c.motion("tip")
        c.inverse_dynamics()
        c.forward_dynamics()
        c.dynamics()
        c.contributions()
        c.operational_space(row)
        c.resolve(row, [0.1])
        m.at(c.state[: m.dof], near=c)
        simulate(m, c, 1e-3)
