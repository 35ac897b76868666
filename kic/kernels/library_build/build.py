"""Build the library of kernels: machine code of all kernels for portable processors.

Usage: python kic/kernels/library_build/build.py [--record] [KERNEL...] [--processors NAME...]
       [--output FOLDER]

1. `recorded` finds the kernels and the types of arguments with which the package calls them. It runs the
   calls of ``kic warm-up`` with kernels interpreted by Python. The option ``--record`` writes the types to
   `signatures.json`; `.ci/again` fails if one is missing.
2. `compile_kernels` compiles each kernel with Numba into a cache, in one process for each processor.
3. `kic.kernels.linking.link` links the objects of the caches to one extension module.

The option ``--cached`` compiles the kernels that the user's cache lacks, on all cores. It links them into the
output folder, or without one for later processes of this machine, on Linux with a C compiler.

The build needs Numba, a C compiler and the Python headers. The output folder, by default `kic/kernels` unless
``--cached`` is given, receives the extension module and its description; see `kic.kernels.library`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT))

from kic.kernels import library, linking  # noqa: E402

PLACE = HERE.parent
SIGNATURES = HERE / "signatures.json"
# processors for which kernels are compiled, the best first, as LLVM names them
DEFAULT = ["x86-64-v3", "x86-64-v2"] if platform.machine().lower() in ("x86_64", "amd64") else ["generic"]
# names of the types of scalars
SCALARS = {bool: "bool", int: "int64", float: "float64", type(None): "none"}

Signatures = dict[str, list[str]]


class Recorder:
    """Interpreted kernel that records the types of its arguments."""

    found: ClassVar[dict[tuple[str, str], None]] = {}
    functions: ClassVar[dict[str, Any]] = {}
    inside = False

    def __init__(self, name: str, function: Any) -> None:
        self.name, self.py_func, self.precompiled = name, function, self
        self.functions[name] = function

    def __call__(self, *arguments: Any) -> Any:
        """Record the types, unless another kernel calls this one, and run the function."""
        if Recorder.inside:
            return self.py_func(*arguments)
        self.found[self.name, "".join(map(code, arguments))] = None
        Recorder.inside = True
        try:
            return self.py_func(*arguments)
        finally:
            Recorder.inside = False


class Recording(library.Library):
    """Substitute for the library; it records the calls of all kernels."""

    def __init__(self) -> None:
        pass

    def kernel(self, function: Any, fallback: Any) -> Recorder:
        """Return a kernel that records its calls."""
        return Recorder(library.kernel_name(function), function)


def code(given: Any) -> str:
    """Return the code of an argument's type; see `library.c`."""
    if isinstance(given, np.ndarray):
        assert given.flags.c_contiguous
        assert given.flags.writeable
        return f"{library.ARRAYS[given.dtype.name]}{given.ndim}"
    kind = type(given.item() if isinstance(given, np.generic) else given)
    return f"{library.SCALARS[SCALARS[kind]]} "


def recorded() -> Signatures:
    """Return the types of arguments with which the package calls each kernel, real types first."""
    library.load = Recording
    call_all()
    signatures: Signatures = {name: [] for name in sorted(Recorder.functions)}
    for name, types in sorted(Recorder.found, key=lambda found: "D" in found[1]):
        signatures[name].append(types)
    return signatures


def call_all() -> None:
    """Call every kernel for all types of arguments that the package uses."""
    from kic.ui.cli.warm_up import MODELS, call_kernels

    os.environ["KIC_THREADS"] = "1"
    call_kernels(MODELS)


def numba_types(signature: str) -> tuple[Any, ...]:
    """Return Numba's types of the arguments in a signature."""
    from numba import types

    names = {c: getattr(types, name) for name, c in library.ARRAYS.items()}
    scalars = {"b": types.boolean, "i": types.int64, "f": types.float64, "n": types.none}

    def of(kind: str, n_axes: str) -> Any:
        return scalars[kind] if kind in scalars else types.Array(names[kind], int(n_axes), "C")

    return tuple(map(of, signature[::2], signature[1::2]))


def compile_kernels(signatures: Signatures) -> None:
    """Compile kernels into the cache of this process, for the processor in its environment."""
    os.environ["KIC_KERNELS"] = "jit"
    for name, wanted in signatures.items():
        module, _, kernel = name.partition(".")
        for types in wanted:
            getattr(import_module(f"kic.kernels.{module}"), kernel).compile(numba_types(types))


def build(output: Path, processors: list[str], kernels: list[str]) -> Path:
    """Build the library into a folder, and return the path of the extension module."""
    (output / library.DESCRIPTION).unlink(missing_ok=True)
    key = library.source_key()
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for processor in processors:
            environment = os.environ | {
                "KIC_CACHE_DIR": str(Path(folder, processor)),
                "KIC_VERBOSE": "0",
                "NUMBA_CPU_FEATURES": "",
                "NUMBA_CPU_NAME": processor,
            }
            command = [sys.executable, __file__, *kernels, "--compile"]
            running.append(subprocess.Popen(command, env=environment))
        if any([process.wait() for process in running]):
            raise RuntimeError("Kernels cannot be compiled.")
        caches = {processor: next(Path(folder, processor).iterdir()) for processor in processors}
        return linking.link(output, {p: linking.kernels_in(cache) for p, cache in caches.items()}, key)


def link_cached(output: Path | None, signatures: Signatures) -> None:
    """Compile missing kernels of this machine, and link all to a folder or for its later processes."""
    from kic.kernels.jit import compiler
    from kic.kernels.threads import thread_count

    def cached() -> list[library.Compiled]:
        folder, machine = compiler().cache_directory(), compiler().machine()
        found = {one.symbol: one for one in linking.kernels_in(folder, machine)}
        chosen = [one for one in found.values() if one.types in signatures.get(one.name, ())]
        for one in chosen:  # grows by those that are called
            chosen += [found[s] for s in one.calls if s in found and found[s] not in chosen]
        return chosen

    known = {(one.name, one.types) for one in cached()}
    # the slowest kernels are last in the alphabet; real and complex kernels alternate, because kernels of one
    # kind share parts
    forms = []
    for name in reversed(signatures):
        for is_complex in (False, True):
            types = [one for one in signatures[name] if ("D" in one) == is_complex]
            if not known.issuperset((name, one) for one in types):
                forms.append({name: types})
    if forms:
        print("kic: compiling kernels for this machine, once …", file=sys.stderr, flush=True)
        os.environ["KIC_VERBOSE"] = "0"
        with ProcessPoolExecutor(min(thread_count(), len(forms)), get_context("spawn")) as pool:
            list(pool.map(compile_kernels, forms))
    if output is None:
        linking.link_for_this_machine(cached())
    else:
        linking.link(output, {library.HERE: cached()}, library.source_key())


def main() -> None:
    """Build the library, or run one step of the build in a separate process."""
    parser = argparse.ArgumentParser(description="Build the library of kernels.")
    parser.add_argument(
        "kernels", nargs="*", help="names of kernels, such as motion.tree_motion; all by default"
    )
    parser.add_argument("--output", type=Path, help="folder of the library")
    parser.add_argument("--processors", nargs="+", default=DEFAULT, help="processors, the best first")
    parser.add_argument("--record", action="store_true", help="record the types of arguments of all kernels")
    parser.add_argument("--compile", action="store_true", help="compile the kernels into the cache")
    parser.add_argument("--cached", action="store_true", help="compile and link for this machine")
    given = parser.parse_args()
    if given.cached and given.kernels and not given.output:
        parser.error("a selection of kernels can only be linked into a folder; give --output")
    if given.record:
        SIGNATURES.write_text(json.dumps(recorded(), indent=1) + "\n", encoding="utf-8")
    elif given.compile or given.cached:
        signatures: Signatures = json.loads(SIGNATURES.read_text(encoding="utf-8"))
        chosen = {name: signatures[name] for name in given.kernels or signatures}
        link_cached(given.output, chosen) if given.cached else compile_kernels(chosen)
    else:
        print(build(given.output or PLACE, given.processors, given.kernels))


if __name__ == "__main__":
    main()
