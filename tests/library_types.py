"""Kernels that tests run, and types of their arguments, as in the library of kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kic.kernels.library import kernel_name, uses_cache

# an installed package has no build scripts
BUILD = Path(__file__).resolve().parents[1] / "kic" / "kernels" / "library_build" / "build.py"
SIGNATURES = BUILD.with_name("signatures.json")


def link_kernels() -> None:
    """Compile the kernels that the user's cache lacks, and link them for the processes of this machine."""
    if BUILD.exists() and uses_cache() and subprocess.call([sys.executable, str(BUILD), "--cached"]):
        pytest.exit("Kernels cannot be compiled; see above.", 1)


def missing() -> list[str]:
    """Return the kernels that Numba compiled in this process for types that the library does not have."""
    compiler = sys.modules.get("kic.kernels.compiler")
    if compiler is None or not SIGNATURES.exists():
        return []
    known = json.loads(SIGNATURES.read_text(encoding="utf-8"))
    kernels = {
        kernel
        for name, module in list(sys.modules.items())
        if name.startswith("kic.kernels.")
        for kernel in vars(module).values()
        if hasattr(kernel, "py_func") and not isinstance(kernel, type)
    }
    found = []
    for kernel in kernels:
        name = kernel_name(kernel.py_func)
        # those of a library hand other types to a kernel of Numba
        compiled = kernel if hasattr(kernel, "signatures") else compiler.dispatcher(kernel.py_func)
        types = {"".join(map(compiler.code, one)) for one in compiled.signatures}
        found += [f"{name}: {one}" for one in types - set(known.get(name, ()))]
    return sorted(found)
