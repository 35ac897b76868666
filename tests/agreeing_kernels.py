"""Compare the kernels of a library with those that Numba compiles, bit for bit, in all calls for some models.

Usage: python tests/agreeing_kernels.py [0 | 1], for one half of the shipped models, by default for all. Both
have the same objects. A library links them and calls them without Numba's wrappers. Prints the kernels that
were called, with types of arguments and counts, and the differences.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from library_types import BUILD

from kic.kernels import compiler, library

ROOT = BUILD.parents[3]
# calls that are compared, for each kernel, types of arguments and model
CALLS_MAX = 200


class Both:
    """A kernel of the library that runs Numba's on copies of its arguments, and compares all arrays."""

    calls: ClassVar[Counter[Any]] = Counter()
    differences: ClassVar[Counter[Any]] = Counter()
    model = ""

    def __init__(self, own: Any, function: Any) -> None:
        self.own, self.py_func = own, function

    @property
    def precompiled(self) -> Both:
        """Kernel that raises a TypeError for other arguments."""
        return Both(self.own.precompiled, self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        other = compiler.dispatcher(self.py_func)
        types = "".join(compiler.code(other.typeof_pyval(given)) for given in arguments)
        name = library.kernel_name(self.py_func)
        if types not in self.own.types:
            found = self.own(*arguments)
            self.differences["not in the library", name, types] += 1
            return found
        self.calls[self.model, name, types] += 1
        if self.calls[self.model, name, types] > CALLS_MAX:
            return self.own(*arguments)
        copies = [given.copy() if isinstance(given, np.ndarray) else given for given in arguments]
        found, want = self.own(*arguments), other(*copies)
        if found != want:
            self.differences[self.model, name, types] += 1
        for a, b in zip(arguments, copies, strict=True):
            if isinstance(a, np.ndarray) and a.tobytes() != b.tobytes():
                self.differences[self.model, name, types] += 1
        return found


class BothLibrary(library.Library):
    """The library with kernels that are compared."""

    def kernel(self, function: Any, fallback: Any) -> Any:
        return Both(super().kernel(function, fallback), function)


def main(half: str = "") -> int:
    """Compare the calls of all questions, and of those with complex numbers."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(BUILD), "--cached", "--output", folder]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        description = json.loads(Path(folder, library.DESCRIPTION).read_text(encoding="utf-8"))
        module = library.imported(Path(folder, description["file"]))
    library.load = lambda: BothLibrary(module, library.HERE)
    from snapshot import MODELS, OTHERS, QUESTIONS, Case, answer

    sys.path.insert(0, str(BUILD.parent))
    from build import call_all

    call_all()
    for name in list(MODELS)[int(half or 0) :: 2 if half else 1]:
        Both.model = name
        case = Case(name)
        for question in (*QUESTIONS.values(), *OTHERS.get(name, {}).values()):
            answer(question, case)
    calls = Counter[Any]()
    for (_, *key), count in Both.calls.items():
        calls[tuple(key)] += count
    print(json.dumps([[*key, count] for key, count in sorted(calls.items())]))
    print(json.dumps([[*key, count] for key, count in sorted(Both.differences.items())]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
