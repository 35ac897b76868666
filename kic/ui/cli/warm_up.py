"""Command `kic warm-up`: compilation of all kernels."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kic.mechanism.configuration import Configuration

# models that need all kernels, each with one of its rows
_OPEN = {"horn-two-link": "tip.y", "bevel-wrist": "drive1"}
_CLOSED = {"four-bar": "A"}
MODELS = _OPEN | _CLOSED


@click.command("warm-up")
def warm_up() -> None:
    """Compile all kernels, so that later calls start immediately.

    Without a library of kernels, they are compiled once for each machine and version of kic, on first use.
    Run this when a container image is built, or before a course. They are stored in the user's cache
    directory, or in KIC_CACHE_DIR, an absolute path where only you and root may write. On Linux with a C
    compiler, they are linked to a library, which later processes load without Numba.

    \b
      kic warm-up
      KIC_CACHE_DIR=/opt/kic kic warm-up
    """
    from kic.errors import FileError
    from kic.kernels import jit
    from kic.kernels.library import HERE

    if jit.LIBRARY is not None and jit.LIBRARY.processor != HERE:
        click.echo("All kernels are in the library of the package.")
        return
    os.environ.setdefault("KIC_VERBOSE", "1")
    folder, start = jit.compiler().cache_directory(), time.perf_counter()
    if folder is None:
        message = (
            "Kernels cannot be stored. Set KIC_CACHE_DIR to the absolute path of a folder that you alone "
        )
        raise FileError(message + "can write.")
    compile_kernels()
    click.echo(f"All kernels are ready after {time.perf_counter() - start:.0f} s, in {folder}.")


def compile_kernels() -> None:
    """Compile all kernels, those of closed mechanisms in a second process, and load them."""
    # without room or rights for a second process, this one compiles them all
    failures = suppress(OSError, ImportError, BrokenProcessPool)
    with failures, ProcessPoolExecutor(1, get_context("spawn"), _silence) as pool:
        closed = pool.submit(call_kernels, _CLOSED)
        call_kernels(_OPEN)
        closed.result()
    call_kernels(MODELS)


def _silence() -> None:
    """Suppress messages here; they would interleave with those of the main process."""
    os.environ["KIC_VERBOSE"] = "0"


def track_paths(c: Configuration) -> None:
    """Call the kernel of complete searches for assembly modes."""
    import numpy as np

    from kic.analysis.positions.monodromy import GenericSolutions
    from kic.mechanism.configuration import model_of
    from kic.mechanism.inputs import position_problem

    state, m = c.state, model_of(c)
    _, closure = position_problem(m, state[: len(m.description.coordinates)])
    GenericSolutions(closure, state, np.random.default_rng(0)).start(1)


def call_kernels(models: dict[str, str]) -> None:
    """Call every kernel that models use, in all forms that are compiled separately.

    Sensitivities and some rates are computed from complex numbers. The order is such that two processes
    compile few kernels twice: kernels that both need come late.
    """
    from kic.analysis.sensitivity import COMPLEX_STEP, with_complex_step
    from kic.io.toml import load
    from kic.simulation.controllers import OperationalSpaceControl

    for name, row in models.items():
        m = load(name)
        c = m.at()
        call_differentiable_kernels(c, row)
        m.at(c.state[: m.dof], near=c)
        if name in _CLOSED:
            track_paths(c)
        m.simulate(1e-3, near=c)
        control = OperationalSpaceControl(m, {row: 0.0}, 1.0, 1.0)
        control.start(near=c)
        control(0.0, (c.state[: m.dof], [0.0] * m.dof))
        stepped = with_complex_step(m, {f"{m.bodies[0].name}.com.x": 1.0}, COMPLEX_STEP)
        call_differentiable_kernels(stepped.at(), row)
        c.resolve_redundancy(row, [0.1], [0.0], [0.0], criterion="minimum kinetic energy")


def call_differentiable_kernels(c: Configuration, row: str) -> None:
    """Call every kernel that also takes complex numbers."""
    for order in (3, 2, 1):
        c.coefficients("tip", order=order)
    c.inverse_dynamics()
    c.forward_dynamics()
    c.motion("tip")
    c.dynamics()
    c.body_contributions()
    c.operational_space(row)
    c.resolve_redundancy(row, [0.1])
