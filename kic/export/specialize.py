"""Evaluators whose kernels are compiled for one mechanism: recorded programs as machine code."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from kic.errors import KernelLibraryWarning, batch_indices
from kic.export.c_source import function_text
from kic.export.parameters import Parameters
from kic.export.questions import one_state
from kic.export.trace import Argument, Trace
from kic.export.tracer import Tracer
from kic.kernels import layout as lay
from kic.kernels import library
from kic.kernels.functions import larger
from kic.kernels.library import Compiled
from kic.kernels.linear_map import coupling_gap
from kic.kinematics.queries import over_batch
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.evaluator import Evaluator, Result, with_program
from kic.numerics.arrays import REAL
from kic.numerics.tolerances import EPS
from kic.transfer.program import LAYOUT, Numbered, Program, Table

_SOURCE = Path(__file__).with_name("specialized.c")
_OPTIONS = ("-O2", "-std=gnu11", "-Wno-psabi", "-march=native", "-fvisibility=hidden")
_NAME = "specialized"
# number of operations or results above which arrays are not on the stack
_ON_STACK_MAX = 1024
# largest number of operations in a C function; shorter ones take longer to run, longer ones to compile
_VECTOR_PART_MAX = 500
# smallest share of a divisor in its recorded value, and smallest share of a pivot of I* in its diagonal
_SHARE_MIN, _INERTIA_SHARE_MIN = 0.01, 1e-6
# largest input: numbers that the recorded program leaves out may overflow for larger ones
_INPUT_MAX = 1e40
# estimated cost of an operation, to divide a batch among threads (µs)
_OPERATION_US = 1e-4


class SpecializedProgram(Program):
    """Program with machine code for the real states of one mechanism.

    The code was recorded at one state. Other states are evaluated by the kernels if a divisor, such as a
    pivot, is below `_SHARE_MIN` of its value there, or pivots may be below the bound of the kernels, if loops
    are open, and if inputs or results are large or not finite.

    Parameters
    ----------
    general : Program
        The program.
    near : (S,) ndarray
        State at which it is recorded.
    kernel : callable
        Its machine code, see specialized.c: a function of states, rates and result arrays.
    width : int
        Length of the rows of results.
    cost_us : float
        Estimated cost of a state (µs).
    """

    recovered: int

    def __init__(self, general: Program, near: np.ndarray, kernel: Any, width: int, cost_us: float) -> None:
        self.__dict__.update(general.__dict__)
        self.applied = np.require(general.applied, REAL, LAYOUT)
        self.recovered = 0
        self._general, self._near, self._kernel, self._cost_us = general, near, kernel, cost_us
        self._result_width, self._lock = width, Lock()

    def __reduce__(self) -> Any:
        return _specialized, (self._general, self._near)

    def _arrays(self, out: Table) -> tuple[np.ndarray, ...]:
        """Return the arrays of results that are not empty."""
        return tuple(a for a in (out.T, out.K) if a.shape[1])

    def calls(self, out: Table, states: np.ndarray) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return the machine code and its arguments."""
        return [(self._kernel, (states, *self._arrays(out)))]

    def launch(self, out: Table, states: np.ndarray, applied: np.ndarray, choice: Any) -> int:
        """Run the machine code, and the kernels for members that it rejects; return how many are doubtful."""
        arrays = self._arrays(out)
        fits = states.dtype == REAL and applied is self.applied and choice is self.transfer.choice
        if not fits or sum(a.shape[1] for a in arrays) != self._result_width:
            return super().launch(out, states, applied, choice)
        if len(out.quality):
            out.quality[:] = 0.0
            out.quality[:, lay.PIVOT] = 1.0
        members = self._rejected((states, *out.rates, *arrays))
        if not members.size:
            return 0
        part = out.members(members)
        doubtful = super().launch(part, states[members], applied, choice)
        for whole, a in zip((out.T, out.K, out.quality), (part.T, part.K, part.quality), strict=True):
            if len(whole):
                whole[members] = a
        return doubtful

    def efforts(
        self,
        states: np.ndarray,
        rates: tuple[np.ndarray, ...],
        batch: tuple[int, ...],
        applied: np.ndarray | None = None,
        ok: np.ndarray | None = None,
        failures: str = "raise",
        origin: Any = None,
        closed: Numbered | None = None,
    ) -> np.ndarray:
        """Return efforts or accelerations (..., m); only members that the code rejects run the kernels."""
        fits = states.dtype == REAL and applied is origin is None and not self.cut_joints and len(states)
        if not fits or not self.transfer.is_compiled or failures != "raise":
            return super().efforts(states, rates, batch, applied, ok, failures, origin, closed)
        T = np.empty((len(states), self._result_width))
        members = self._rejected((states, *self.to_columns(rates), T), ok)
        if self.is_regressor:
            made = self._shaped(T, (len(T),))
        else:
            (made,) = self.transfer.in_coordinates([T], (1,))
        if members.size:
            part = states[members], tuple(a[members] for a in rates), members.shape
            known = None if ok is None else ok.reshape(-1)[members]
            numbered = None if closed is None else closed.some(members)
            with batch_indices(members, batch):
                made[members] = self._general.efforts(*part, ok=known, closed=numbered)
        return made.reshape(*batch, *made.shape[1:])

    def _rejected(self, arrays: tuple[np.ndarray, ...], ok: np.ndarray | None = None) -> np.ndarray:
        """Run the machine code for arrays (B, n); return members that it rejects and that are not `ok`."""
        count, found = len(arrays[0]), list[int]()

        def work(a: int, b: int) -> None:
            parts = (array[a:b] for array in arrays)
            found.append(self._kernel(*(x.reshape(-1) if self.along else x for x in parts)))

        arrays[-1][:, 0] = np.nan  # remains for members that the code rejects
        over_batch()(work, count, self._cost_us)
        if min(found) < 0:  # arrays of another memory layout
            members = np.arange(count)
        elif ok is None and not any(found):
            return np.zeros(0, np.intp)
        else:
            bad = np.isnan(arrays[-1][:, 0])
            members = np.flatnonzero(bad if ok is None else bad | ~ok.reshape(-1))
        with self._lock:
            self.recovered += members.size if ok is None else int(ok.reshape(-1)[members].sum())
        return members

    def motion_function(self, width: int) -> Callable[..., Any]:
        """Return the function that runs the machine code for one real state or a small batch."""
        general = super().motion_function(width)
        if width != self._result_width or not self.is_compiled:
            return general
        kernel, empty = self._kernel, np.empty

        def run(
            state: Any, out: Any, qd: Any = None, second: Any = None, third: Any = None, count: int = 1
        ) -> Any:
            if out is None:
                out = empty(width)
            elif len(out) != count * width:
                return None
            # it also rejects other types and shapes
            return None if third is not None or kernel(state, qd, second, out) else out

        return run


def specialize(evaluator: Evaluator[Result], *, near: Configuration | None = None) -> Evaluator[Result]:
    """Return an evaluator with machine code for this mechanism, which a C compiler makes.

    It is called in the same way. Batches of linkages are about ten to sixty times faster, those of arms five
    times, single calls two to four times. The kernels are recorded at `near` and compiled on the first use on
    this machine, which takes 0.3 s for a linkage and a minute for a Gough–Stewart platform; later uses only
    record them. Results differ from those of the kernels by rounding. States at which the recorded code would
    lose digits, and complex numbers, are evaluated by the kernels: `recovered` is the number of such states
    so far. Without a compiler, a warning is issued, and the evaluator itself is returned.

    Parameters
    ----------
    near : Configuration, optional
        One configuration, by default the reference configuration: a regular one, typical of the states.

    Returns
    -------
    Evaluator
        An evaluator of the same question.

    Raises
    ------
    InputError
        If the question is "position" or "motion", or a regressor without bodies.
    SingularError
        If the coordinates cannot drive the mechanism at `near`.

    Examples
    --------
    >>> m = kic.load("puma560")
    >>> f = m.prepare.inverse_dynamics()
    >>> g = f.specialize()
    >>> state, qd = m.at([0.1] * 6).state, [0.5] * 6
    >>> bool(abs(g(state, qd, qd) - f(state, qd, qd)).max() < 1e-12), g.recovered
    (True, 0)
    """

    model = model_of(evaluator)
    model.require_real("specialize()", "Specialize an evaluator of the mechanism itself.")
    state = one_state(model, near)
    return with_program(evaluator, lambda program: _specialized(program, state))


def _specialized(program: Program, near: np.ndarray) -> Program:
    """Return a program with machine code; the program itself, and a warning, if there is no compiler."""
    program = getattr(program, "_general", program)
    if not near.size or not program.transfer.size:  # there is nothing to record
        return program
    trace, guard_min = _trace(program, near)
    *results, _, _ = trace.outputs
    try:
        axes, count = 1 if program.along else 2, len(trace.inputs) + len(results)
        kernel = _kernel(_text(trace, guard_min, axes), f"d{axes}" * count)
    except (OSError, ValueError, ImportError, subprocess.SubprocessError) as error:
        if isinstance(error, subprocess.CalledProcessError):
            told = error.stderr.decode(errors="replace") or f"'{error.cmd[0]}' fails"
        else:
            told = str(error)
        _warn(told.strip().partition("\n")[0].rstrip("."))
        return program
    width, cost_us = sum(out.size for out in results), trace.operations * _OPERATION_US
    return SpecializedProgram(program, near, kernel, width, cost_us)


def _trace(program: Program, near: np.ndarray) -> tuple[Trace, float]:
    """Return the trace of a program, its tables and the residual of the loops, and the smallest guard.

    The residual is relative to the largest of closed states.
    """
    model: Any = program.model
    tracer = Tracer(near, model, Parameters(model.description, ()), lambda _: program.transfer)
    size = program.transfer.size
    rates = [
        tracer.input(name, np.full((1, size), 0.7), "", ()) for name in ("qd", "second") if program.along
    ]
    found = tracer.run(lambda _: program, *rates, width=size if program.want & lay.WANT_FORWARD else None)
    residual: Any = 0.0
    linear, system, least = program.transfer.linear, program.transfer.system, _SHARE_MIN
    if linear is not None:
        plan, states = program.queries[0].plan, tracer.state[None]
        residual = coupling_gap(plan, linear.terms, linear.factors, states, 0)
    if system is not None:
        residual = found.quality[0, lay.GAP]
        # all pivots remain above the bound of the kernels
        least = max(least, lay.GOOD_PIVOT / float(found.quality[0, lay.PIVOT]))
        for left in found.quality[0, lay.LEFT : lay.LEFT + program.order]:
            residual = larger(residual, left * (1 / system.allowed))
    for k, whole in tracer.graph.wholes.items():
        share = abs(float(tracer.graph.scalars[k])) / abs(float(whole))
        least = max(least, _INERTIA_SHARE_MIN / max(share, EPS))
    arrays = {"T": found.T, "K": found.K, "residual": np.array([[residual]], object)}
    outputs = [(Argument(name, a[0].shape), a[0]) for name, a in arrays.items() if a.size]
    return tracer.finish(_NAME, outputs), least / lay.GOOD_PIVOT


def _text(trace: Trace, guard_min: float, axes: int) -> str:
    """Return the text of `evaluate.h`."""
    *results, _, _ = trace.outputs
    arrays = [*trace.inputs, *results]
    starts = np.cumsum([0, *(a.size for a in trace.inputs)]), np.cumsum([0, *(a.size for a in results)])
    words = [f"in + {k}" for k in starts[0][:-1]] + [f"out + {k}" for k in (*starts[1], starts[1][-1] + 1)]
    size = max(starts[1][-1], trace.operations)
    counts = {
        "AXES": axes, "INPUTS": len(trace.inputs), "OUTPUTS": len(results),
        "SIZE_IN": starts[0][-1], "SIZE_OUT": starts[1][-1],
    }  # fmt: skip
    return "\n".join(
        [
            f"#define GUARD_MIN {guard_min!r}",
            f"#define INPUT_MAX {_INPUT_MAX!r}",
            f"#define PLACE {'static _Thread_local' if size > _ON_STACK_MAX else ''}",
            f"enum {{ {', '.join(f'{key} = {n}' for key, n in counts.items())} }};",
            f"static const int64_t sizes[] = {{ {', '.join(str(a.size) for a in arrays)} }};",
            function_text(trace, _NAME, "V", True, _VECTOR_PART_MAX),
            f"static void evaluate(const V *in, V *out)\n{{\n    {_NAME}({', '.join(words)});\n}}\n",
        ]
    )


@lru_cache(maxsize=64)
def _kernel(text: str, types: str) -> Any:
    """Return the machine code of a text, from the cache of this machine if it is there."""
    from kic.kernels import linking

    compiler = shutil.which(linking.c_compiler()[0])
    if compiler is None:
        raise FileNotFoundError(f"there is no C compiler '{linking.c_compiler()[0]}'")
    found = os.stat(os.path.realpath(compiler))
    parts = text, types, _SOURCE.read_text(encoding="utf-8"), _OPTIONS, linking.c_compiler(), compiler
    made = repr((*parts, found.st_size, found.st_mtime_ns)).encode()
    key, home = hashlib.sha256(made).hexdigest()[:32], library.machine_folder()
    folder = None if home is None else home / _NAME / key
    if folder is not None:
        description, problem = library.described(folder, key)
        if description and not problem:
            return _loaded(folder / description["file"])
    code = linking.compiled_c(_SOURCE, _OPTIONS, {"evaluate.h": text})
    kernels = {library.HERE: [Compiled(_NAME, _NAME, types, "i", "", (), code)]}
    if folder is not None and not library.exposed(folder):
        with suppress(OSError):  # a cache that cannot be written
            return _loaded(linking.link(folder, kernels, key))
    with tempfile.TemporaryDirectory() as scratch:
        return _loaded(linking.link(Path(scratch), kernels, key))


def _loaded(file: Path) -> Any:
    """Return the machine code in an extension module."""
    return library.imported(file).kernel(library.HERE, _NAME, _refused, _refused)


def _refused(*_: Any) -> int:
    """Reject arrays of other types, which the machine code cannot read."""
    return -1


@cache
def _warn(reason: str) -> None:
    """Warn once per process that code cannot be compiled."""
    text = (
        f"code cannot be specialized: {reason}. The kernels are used. Install a C compiler and the headers "
        "of Python."
    )
    # no source line is relevant to the user
    warnings.warn_explicit(text, KernelLibraryWarning, "kic", 0, __name__)
